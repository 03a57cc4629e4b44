//! The values of a library and a request, and the tools of servers: nothing may panic, whatever they are.
#![no_main]

#[path = "../input.rs"]
mod input;

use foreword_compose::{
    GlobalPrompt, Library, LibraryDraft, Place, Profile, Section, SectionType, SharedSection, Tool,
    ToolServer, ToolsPromptOptions, library::PlaceContent, tools::MAX_TOOLS_PROMPT, tools_prompt,
};
use libfuzzer_sys::fuzz_target;

use crate::input::Input;

fuzz_target!(|data: &[u8]| {
    let mut input = Input::new(data);
    match Library::new(draft(&mut input)) {
        Ok(library) => input::exercise(&library, &mut input),
        Err(faults) => assert!(!faults.is_empty(), "a draft is refused for a reason"),
    }
    make_tools_prompt(&mut input);
});

fn draft(input: &mut Input<'_>) -> LibraryDraft {
    LibraryDraft {
        global_prompt: input.flag().then(|| GlobalPrompt {
            content: input.text(),
            enabled: input.flag(),
        }),
        variables: input
            .several(|input| (input.name(), input.text()))
            .into_iter()
            .collect(),
        sections: input.several(|input| SharedSection {
            section: section(input),
            description: None,
        }),
        profiles: input.several(|input| Profile {
            id: input.name(),
            name: input.text(),
            description: None,
            is_default: input.flag(),
            tools_prompt: input.flag(),
            places: input.several(|input| Place {
                content: if input.flag() {
                    PlaceContent::Inline(section(input))
                } else {
                    PlaceContent::Shared(input.name())
                },
                enabled: input.flag(),
                order: i64::from(input.byte()),
                priority: 0,
            }),
            section_ids: input.several(Input::name),
        }),
        workspace_guide: None,
    }
}

fn section(input: &mut Input<'_>) -> Section {
    Section {
        id: input.name(),
        name: String::new(),
        section_type: SectionType::Custom,
        content: input.text(),
    }
}

fn make_tools_prompt(input: &mut Input<'_>) {
    let servers: Vec<ToolServer> = input.several(|input| ToolServer {
        name: input.text(),
        instructions: input.flag().then(|| input.text()),
        tools: input.several(|input| Tool {
            name: input.text(),
            description: input.flag().then(|| input.text()),
            input_schema: serde_json::from_str(&input.text()).ok(),
        }),
    });
    let options = ToolsPromptOptions {
        max_tools: input.flag().then(|| usize::from(input.byte())),
        ..ToolsPromptOptions::default()
    };
    let prompt = tools_prompt(&servers, options);
    assert!(prompt.shown <= prompt.total && prompt.text.len() <= MAX_TOOLS_PROMPT);
}
