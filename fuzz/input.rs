//! Cuts a fuzzer's bytes into values, and does with a library all that can be done with it.
//!
//! Texts end at the byte 0xFF, which no UTF-8 holds, so a fuzzer can splice and repeat them without moving lengths.

use foreword_compose::{
    ContextBlock, Library, Request, SessionName, SessionValues, Trust, compose, lint, revision,
};

/// The bytes that were not used yet; where they end, everything is empty.
pub(crate) struct Input<'a> {
    rest: &'a [u8],
}

impl<'a> Input<'a> {
    pub(crate) fn new(data: &'a [u8]) -> Self {
        Self { rest: data }
    }

    pub(crate) fn byte(&mut self) -> u8 {
        let Some((first, rest)) = self.rest.split_first() else {
            return 0;
        };
        self.rest = rest;
        *first
    }

    pub(crate) fn flag(&mut self) -> bool {
        self.byte() & 1 == 1
    }

    pub(crate) fn text(&mut self) -> String {
        let mut parts = self.rest.splitn(2, |byte| *byte == 0xFF);
        let text = parts.next().unwrap_or_default();
        self.rest = parts.next().unwrap_or_default();
        String::from_utf8_lossy(text).into_owned()
    }

    /// Mostly one of a few short names, so that references find something.
    #[allow(dead_code, reason = "one of the two targets has no names to make")]
    pub(crate) fn name(&mut self) -> String {
        match self.byte() {
            chosen @ 0..=15 => char::from(b'a' + chosen).to_string(),
            _ => self.text(),
        }
    }

    #[allow(dead_code, reason = "one of the two targets has no lists to make")]
    pub(crate) fn several<T>(&mut self, mut make: impl FnMut(&mut Self) -> T) -> Vec<T> {
        let count = self.byte() % 4;
        (0..count).map(|_| make(self)).collect()
    }
}

/// Lints and composes `library` with a request made of `input`, and checks what holds for every composition.
pub(crate) fn exercise(library: &Library, input: &mut Input<'_>) {
    lint(library);
    let (profile, system_override) = (input.text(), input.text());
    let (chat_id, tools, block) = (input.text(), input.text(), input.text());
    let session = SessionValues::default().with(SessionName::ChatId, Some(&chat_id));
    let request = Request {
        profile_id: input.flag().then_some(profile.as_str()),
        session,
        variables: [(input.text(), input.text())].into_iter().collect(),
        tools_prompt: &tools,
        context: vec![ContextBlock {
            id: "block".into(),
            name: "Block".into(),
            text: block.as_str().into(),
            trust: if input.flag() {
                Trust::Library
            } else {
                Trust::Foreign
            },
        }],
        system_override: Some(&system_override),
        budget: Some(usize::from(input.byte())),
    };
    let Ok(composition) = compose(library, &request) else {
        assert!(
            library.profile(&profile).is_none(),
            "only an unknown profile is an error"
        );
        return;
    };
    let text = &composition.text;
    let parts: Vec<&str> = composition
        .parts
        .iter()
        .map(|part| &text[part.range.clone()])
        .collect();
    assert_eq!(*text, parts.join("\n\n"));
    assert!(text.is_char_boundary(composition.stable_prefix));
    for range in composition
        .diagnostics
        .iter()
        .filter_map(|diagnostic| diagnostic.range.clone())
    {
        assert!(text.get(range).is_some());
    }
    assert_eq!(revision(text, None).len(), 16);
}
