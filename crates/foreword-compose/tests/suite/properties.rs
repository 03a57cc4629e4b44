//! What holds for any library and any request.

use foreword_compose::{
    Composition, ContextBlock, GlobalPrompt, Library, LibraryDraft, PartSource, Request,
    SessionName, SessionValues, Stability, Tool, ToolServer, ToolsPromptOptions, Trust, compose,
    lint, tools_prompt,
};
use proptest::{collection::vec, option, prelude::*, sample::select};
use serde_json::{Value, json};

use crate::support::{inline, profile};

/// Text in which braces, placeholders, line ends and white space are frequent.
fn text() -> impl Strategy<Value = String> {
    let token = prop_oneof![
        4 => select(vec![
            "{", "}", "\\", "{chat_id}", "{user_name}", "{date}", "{a}", "{b}", "{unknown}", "\r", "\n", "\r\n",
            " ", "\t", "\u{2028}", "\u{a0}", "word", "ü", "🙂",
        ]).prop_map(str::to_owned),
        1 => any::<String>(),
    ];
    vec(token, 0..12).prop_map(|tokens| tokens.concat())
}

/// Everything that one composition is made of.
#[derive(Debug, Clone)]
struct Case {
    global: Option<String>,
    sections: Vec<(String, i64)>,
    a: String,
    b: String,
    chat_id: Option<String>,
    request_a: Option<String>,
    tools: String,
    context: Vec<(String, bool)>,
    budget: Option<usize>,
}

fn case() -> impl Strategy<Value = Case> {
    (
        (
            option::of(text()),
            vec((text(), 0..3_i64), 0..5),
            text(),
            text(),
        ),
        (
            option::of(text()),
            option::of(text()),
            text(),
            vec((text(), any::<bool>()), 0..3),
        ),
        option::of(0..200_usize),
    )
        .prop_map(
            |((global, sections, a, b), (chat_id, request_a, tools, context), budget)| Case {
                global,
                sections,
                a,
                b,
                chat_id,
                request_a,
                tools,
                context,
                budget,
            },
        )
}

impl Case {
    fn library(&self) -> Library {
        let place = |(at, (content, order)): (usize, &(String, i64))| {
            let mut place = inline(&format!("s{at}"), content);
            place.order = *order;
            place
        };
        let places = self.sections.iter().enumerate().map(place).collect();
        let draft = LibraryDraft {
            global_prompt: self.global.clone().map(|content| GlobalPrompt {
                content,
                enabled: true,
            }),
            variables: [
                ("a".to_owned(), self.a.clone()),
                ("b".to_owned(), self.b.clone()),
            ]
            .into(),
            profiles: vec![profile("p", places)],
            ..LibraryDraft::default()
        };
        Library::new(draft).expect("the library of the case is valid")
    }

    fn request(&self) -> Request<'_> {
        let block = |(text, trusted): &(String, bool)| ContextBlock {
            id: "block".into(),
            name: "Block".into(),
            text: text.clone().into(),
            trust: if *trusted {
                Trust::Library
            } else {
                Trust::Foreign
            },
        };
        Request {
            session: SessionValues::default().with(SessionName::ChatId, self.chat_id.as_deref()),
            variables: self
                .request_a
                .iter()
                .map(|value| ("a".to_owned(), value.clone()))
                .collect(),
            tools_prompt: &self.tools,
            context: self.context.iter().map(block).collect(),
            budget: self.budget,
            ..Request::default()
        }
    }

    fn compose(&self) -> Composition {
        compose(&self.library(), &self.request()).expect("the default profile exists")
    }
}

/// The text as rule 3 says it, written down once more in the simplest way.
fn normalised(text: &str) -> String {
    let text = text.replace("\r\n", "\n").replace('\r', "\n");
    let text = text.trim_end();
    let blank_lines = text
        .split_inclusive('\n')
        .take_while(|line| line.trim().is_empty());
    text[blank_lines.map(str::len).sum()..].to_owned()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn parts_are_normal_and_joined_by_exactly_one_blank_line(case in case()) {
        let composition = case.compose();
        let parts: Vec<&str> = composition
            .parts
            .iter()
            .map(|part| &composition.text[part.range.clone()])
            .collect();
        for part in &parts {
            prop_assert!(!part.trim().is_empty());
            prop_assert_eq!(*part, normalised(part));
        }
        prop_assert_eq!(&composition.text, &parts.join("\n\n"));
    }

    #[test]
    fn offsets_cover_the_text_exactly(case in case()) {
        let composition = case.compose();
        let mut end = None;
        for part in &composition.parts {
            prop_assert_eq!(part.range.start, end.map_or(0, |end| end + 2));
            end = Some(part.range.end);
        }
        prop_assert_eq!(composition.text.len(), end.unwrap_or(0));
        for range in composition.diagnostics.iter().filter_map(|diagnostic| diagnostic.range.clone()) {
            prop_assert!(composition.text.get(range).is_some());
        }
    }

    #[test]
    fn the_same_values_give_the_same_composition(case in case()) {
        prop_assert_eq!(case.compose(), case.compose());
    }

    #[test]
    fn values_are_replaced_in_one_pass(values in vec(text(), 3), foreign in text()) {
        // Each value stands between marks of its own; whatever it holds, it arrives as it is.
        let [a, b, chat_id] = &values[..] else { unreachable!("three values were asked for") };
        let case = Case {
            global: Some("<a{a}a> <b{b}b> <c{chat_id}c>".to_owned()),
            a: a.clone(),
            b: b.clone(),
            chat_id: Some(chat_id.clone()),
            context: vec![(format!("<{foreign}>"), false)],
            sections: Vec::new(),
            request_a: None,
            tools: String::new(),
            budget: None,
        };
        let expected = format!("<a{a}a> <b{b}b> <c{chat_id}c>\n\n<{foreign}>");
        prop_assert_eq!(case.compose().text, normalised(&expected));
    }

    #[test]
    fn braces_without_a_known_name_are_untouched(text in any::<String>(), json in "[{}a-z\":, \\\\]{0,40}") {
        for text in [text, json] {
            prop_assume!(!text.contains("{a}") && !text.contains("{b}"));
            prop_assume!(SessionName::ALL.iter().all(|name| !text.contains(name.as_str())));
            let case = Case {
                global: Some(text.clone()),
                sections: Vec::new(),
                a: "x".to_owned(),
                b: "y".to_owned(),
                chat_id: None,
                request_a: None,
                tools: String::new(),
                context: Vec::new(),
                budget: None,
            };
            let composition = case.compose();
            prop_assert_eq!(composition.text, normalised(&text));
            prop_assert_eq!(composition.unresolved, Vec::<String>::new());
        }
    }

    #[test]
    fn what_stands_before_the_stable_prefix_is_the_same_in_another_session(
        case in case(),
        chat_id in option::of(text()),
        request_a in text(),
    ) {
        // Whether a session has a value for a name may differ too; a request's variables are the request's own choice.
        let one = Case { request_a: Some(case.request_a.clone().unwrap_or_default()), ..case };
        let other = Case { chat_id, request_a: Some(request_a), ..one.clone() };
        let (one, other) = (one.compose(), other.compose());
        let stable = one.stable_prefix.min(other.stable_prefix);
        // White space is trimmed where a value ends its part, so only what is followed by text must agree.
        let stable = one.text[..one.text.floor_char_boundary(stable)].trim_end();
        prop_assert!(other.text.starts_with(stable));
    }

    #[test]
    fn the_stable_prefix_lies_before_all_that_varies(case in case()) {
        let composition = case.compose();
        prop_assert!(composition.text.is_char_boundary(composition.stable_prefix));
        for part in &composition.parts {
            let varies = part.stability == Stability::Session;
            prop_assert!(varies || part.source != PartSource::Context);
            prop_assert!(!varies || composition.stable_prefix <= part.range.end);
        }
    }

    #[test]
    fn an_override_is_kept_byte_for_byte(case in case(), text in text()) {
        let request = Request { system_override: Some(&text), ..case.request() };
        let composition = compose(&case.library(), &request).expect("the default profile exists");
        if text.trim().is_empty() {
            prop_assert_eq!(composition, case.compose());
        } else {
            prop_assert_eq!(&composition.text, &text);
            prop_assert_eq!(composition.parts.len(), 1);
        }
    }

    #[test]
    fn linting_reads_any_text(case in case()) {
        for diagnostic in lint(&case.library()) {
            prop_assert!(!diagnostic.message.is_empty());
        }
    }

    #[test]
    fn tools_in_any_order_give_the_same_bytes(
        (servers, shuffled) in servers().prop_flat_map(|servers| (Just(servers.clone()), shuffled(servers))),
        max_tools in option::of(0..8_usize),
    ) {
        let options = ToolsPromptOptions { max_tools, ..ToolsPromptOptions::default() };
        prop_assert_eq!(tools_prompt(&servers, options), tools_prompt(&shuffled, options));
    }

    #[test]
    fn only_our_own_lines_of_the_tools_prompt_begin_a_line(servers in servers()) {
        let prompt = tools_prompt(&servers, ToolsPromptOptions::default());
        for line in prompt.text.lines() {
            let ours = line.is_empty()
                || ["## Tools", "You can call ", "The server describes itself:"].iter().any(|own| line.starts_with(own));
            prop_assert!(ours || ["### ", "- `", "  ", ">"].iter().any(|start| line.starts_with(start)), "{line:?}");
        }
        let entries = prompt.text.lines().filter(|line| line.starts_with("- `")).count();
        prop_assert_eq!(entries, prompt.shown);
    }
}

fn servers() -> impl Strategy<Value = Vec<ToolServer>> {
    let tool = (name(), option::of(text()), option::of(schema())).prop_map(
        |(name, description, input_schema)| Tool {
            name,
            description,
            input_schema,
        },
    );
    let server =
        (name(), option::of(text()), vec(tool, 0..4)).prop_map(|(name, instructions, tools)| {
            ToolServer {
                name,
                instructions,
                tools,
            }
        });
    vec(server, 0..4)
}

/// Few names, so that some are equal; and some that nobody should have.
fn name() -> impl Strategy<Value = String> {
    prop_oneof![3 => select(vec!["a", "b"]).prop_map(str::to_owned), 1 => text()]
}

/// JSON that looks like a schema, in which anything may stand anywhere.
fn schema() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        select(vec![
            json!(null),
            json!(true),
            json!(7),
            json!("string"),
            json!("array"),
            json!("#"),
            json!("#/properties/a"),
            json!({}),
        ]),
        text().prop_map(Value::from),
    ];
    let key = select(vec![
        "type",
        "properties",
        "required",
        "items",
        "prefixItems",
        "anyOf",
        "oneOf",
        "allOf",
        "$ref",
        "enum",
        "const",
        "default",
        "description",
        "a",
    ]);
    leaf.prop_recursive(5, 40, 4, move |inner| {
        prop_oneof![
            vec(inner.clone(), 0..4).prop_map(Value::from),
            vec((key.clone(), inner), 0..4).prop_map(|members| members
                .into_iter()
                .map(|(key, value)| (key.to_owned(), value))
                .collect()),
        ]
    })
}

/// The same tools in another order, each under an entry of its own for its server.
fn shuffled(servers: Vec<ToolServer>) -> impl Strategy<Value = Vec<ToolServer>> {
    let single = servers.into_iter().flat_map(|server| {
        let tools = server.tools;
        let empty = ToolServer {
            tools: Vec::new(),
            ..server
        };
        let with_tool = |tool| ToolServer {
            tools: vec![tool],
            ..empty.clone()
        };
        let mut entries: Vec<ToolServer> = tools.into_iter().map(with_tool).collect();
        entries.push(empty);
        entries
    });
    Just(single.collect::<Vec<_>>()).prop_shuffle()
}
