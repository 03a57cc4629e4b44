//! What is doubtful about a library that loads, each with its place in the file.
//!
//! To what [`lint()`] says of the library, this adds what only matters to somebody who has the file open: words in braces
//! that are almost a placeholder, and placeholders that stand too early.

use std::collections::{HashMap, HashSet};

use foreword_compose::{
    Diagnostic, DiagnosticCode, Library, SessionName, Severity, library::PlaceContent, lint,
    nearest,
};
use foreword_store::yaml::Document;
use serde_json::{Value, json};

/// Something that is probably not what the author wanted.
pub(super) struct Doubt {
    code: &'static str,
    pub(super) severity: Severity,
    part: Option<String>,
    pub(super) message: String,
    pub(super) hint: Option<String>,
    pub(super) line: usize,
    pub(super) column: usize,
}

impl Doubt {
    pub(super) fn json(&self) -> Value {
        json!({
            "code": self.code,
            "severity": super::severity_word(self.severity),
            "part": self.part,
            "message": self.message,
            "hint": self.hint,
            "line": self.line,
            "column": self.column,
        })
    }
}

/// What is doubtful about a library, from its first line to its last.
pub(super) fn doubts(document: &Document) -> Vec<Doubt> {
    let mut doubts = linted(document);
    doubts.extend(no_profiles(document));
    let mut guesses = Guesses::new(document.library());
    for text in texts(document.library()) {
        unknown_words(document, &text, &mut guesses, &mut doubts);
        doubts.extend(unstable(document, &text));
    }
    doubts.sort_by_key(|doubt| (doubt.line, doubt.column));
    doubts
}

fn linted(document: &Document) -> Vec<Doubt> {
    let library = document.library();
    let mut taken = HashSet::new();
    let located = lint(library).into_iter().map(|diagnostic| {
        let pointer = pointers(library, &diagnostic)
            .into_iter()
            .find(|pointer| taken.insert((diagnostic.code, pointer.clone())));
        let (line, column) = document.position(&pointer.unwrap_or_default());
        let Diagnostic {
            code,
            severity,
            part,
            message,
            hint,
            range: _,
        } = diagnostic;
        Doubt {
            code: code.as_str(),
            severity,
            part,
            message,
            hint,
            line,
            column,
        }
    });
    located.collect()
}

/// JSON pointers to all that a diagnostic may be about; several where profiles have sections of one id.
fn pointers(library: &Library, diagnostic: &Diagnostic) -> Vec<String> {
    let draft = library.draft();
    let id = diagnostic.part.as_deref().unwrap_or_default();
    if diagnostic.code == DiagnosticCode::UnusedVariable {
        return vec![format!("/variables/{id}")];
    }
    let shared = draft
        .sections
        .iter()
        .position(|shared| shared.section.id == id)
        .map(|at| format!("/sections/{at}"));
    let profiles = draft.profiles.iter().enumerate();
    let inline = profiles.flat_map(|(profile, written)| {
        let places = written.places.iter().enumerate();
        places
            .filter(|(_, place)| match &place.content {
                PlaceContent::Inline(section) => {
                    section.id == id && section.content.trim().is_empty()
                }
                PlaceContent::Shared(_) => false,
            })
            .map(move |(at, _)| format!("/profiles/{profile}/sections/{at}"))
    });
    shared.into_iter().chain(inline).collect()
}

fn no_profiles(document: &Document) -> Option<Doubt> {
    if !document.library().draft().profiles.is_empty() {
        return None;
    }
    let (line, column) = document.position("/profiles");
    Some(Doubt {
        code: "no-profiles",
        severity: Severity::Warning,
        part: None,
        message: "the library has no profiles, so prompts hold the global prompt and the workspace guide only"
            .to_owned(),
        hint: Some("write one: `- id: default` with its `sections`".to_owned()),
        line,
        column,
    })
}

/// A text in which placeholders are replaced.
struct Text<'a> {
    /// Where it stands in the file.
    pointer: String,
    /// The id under which compositions know it.
    part: &'a str,
    /// What to call it in a sentence.
    name: String,
    content: &'a str,
    /// Whether it is part of prompts, before what belongs to a session.
    early: bool,
}

/// Every text of the library, in file order.
fn texts(library: &Library) -> Vec<Text<'_>> {
    let draft = library.draft();
    let used: HashSet<&str> = draft
        .profiles
        .iter()
        .flat_map(|profile| library.places(profile))
        .filter(|place| place.shared && place.enabled)
        .map(|place| place.section.id.as_str())
        .collect();
    let global = draft.global_prompt.iter().map(|global| Text {
        pointer: "/global_prompt/content".to_owned(),
        part: "global",
        name: "the global prompt".to_owned(),
        content: &global.content,
        early: global.enabled,
    });
    let shared = draft.sections.iter().enumerate().map(|(at, shared)| Text {
        pointer: format!("/sections/{at}/content"),
        part: &shared.section.id,
        name: format!("section `{}`", shared.section.id),
        content: &shared.section.content,
        early: used.contains(shared.section.id.as_str()),
    });
    let profiles = draft.profiles.iter().enumerate();
    let inline = profiles.flat_map(|(profile_at, profile)| {
        let places = profile.places.iter().enumerate();
        places.filter_map(move |(at, place)| match &place.content {
            PlaceContent::Inline(section) => Some(Text {
                pointer: format!("/profiles/{profile_at}/sections/{at}/content"),
                part: &section.id,
                name: format!("section `{}` of profile `{}`", section.id, profile.id),
                content: &section.content,
                early: place.enabled,
            }),
            PlaceContent::Shared(_) => None,
        })
    });
    let guide = draft.workspace_guide.iter().map(|guide| Text {
        pointer: "/workspace_guide/content".to_owned(),
        part: "workspace-guide",
        name: "the workspace guide".to_owned(),
        content: &guide.content,
        early: false,
    });
    global.chain(shared).chain(inline).chain(guide).collect()
}

/// Words in braces that are no placeholder but look like one; each once in a text.
fn unknown_words(
    document: &Document,
    text: &Text<'_>,
    guesses: &mut Guesses<'_>,
    doubts: &mut Vec<Doubt>,
) {
    let mut seen = HashSet::new();
    for word in words(text.content).filter(|word| word.before != Some(b'$')) {
        if guesses.is_known(word.inside) || !seen.insert(word.inside) {
            continue;
        }
        let Some(meant) = guesses.guess(word.inside.trim_matches(' ')) else {
            continue;
        };
        let written = format!("{{{}}}", word.inside);
        let (line, column) = place(document, text, word.at, &written);
        doubts.push(Doubt {
            code: "unknown-placeholder",
            severity: Severity::Warning,
            part: Some(text.part.to_owned()),
            message: format!(
                "`{written}` in {} is no placeholder and stays as it is written",
                text.name
            ),
            hint: Some(format!("did you mean `{{{meant}}}`?")),
            line,
            column,
        });
    }
}

/// The first placeholder of a session in a text that comes before what belongs to a session.
fn unstable(document: &Document, text: &Text<'_>) -> Option<Doubt> {
    if !text.early {
        return None;
    }
    let word = words(text.content).find(|word| SessionName::from_word(word.inside).is_some())?;
    let written = format!("{{{}}}", word.inside);
    let (line, column) = place(document, text, word.at, &written);
    Some(Doubt {
        code: DiagnosticCode::UnstablePrefix.as_str(),
        severity: Severity::Warning,
        part: Some(text.part.to_owned()),
        message: format!(
            "`{written}` in {} makes the prompt differ between sessions from there on",
            text.name
        ),
        hint: Some(
            "move it to the workspace guide, which comes last, so that providers can cache what stands before it"
                .to_owned(),
        ),
        line,
        column,
    })
}

/// A word in braces.
struct Word<'a> {
    /// Where its brace opens, in bytes.
    at: usize,
    /// What stands between the braces.
    inside: &'a str,
    /// The byte before the brace.
    before: Option<u8>,
}

/// The words in braces of a text, without those that a backslash makes text.
fn words(text: &str) -> impl Iterator<Item = Word<'_>> {
    text.match_indices('{').filter_map(move |(at, _)| {
        let rest = &text[at + 1..];
        let length = rest
            .bytes()
            .take(LONGEST)
            .position(|byte| matches!(byte, b'{' | b'}' | b'\n'))?;
        let inside = &rest[..length];
        let word = inside.trim_matches(' ');
        let is_word = word.starts_with(|first: char| first.is_ascii_alphabetic())
            && word
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte));
        let before = at.checked_sub(1).map(|before| text.as_bytes()[before]);
        (rest[length..].starts_with('}') && is_word && before != Some(b'\\')).then_some(Word {
            at,
            inside,
            before,
        })
    })
}

/// The longest word in braces that is looked at, in bytes.
const LONGEST: usize = 80;

/// Finds out which placeholder a word was meant to be.
struct Guesses<'a> {
    library: &'a Library,
    made: HashMap<String, Option<&'a str>>,
}

impl<'a> Guesses<'a> {
    fn new(library: &'a Library) -> Self {
        Self {
            library,
            made: HashMap::new(),
        }
    }

    fn is_known(&self, word: &str) -> bool {
        SessionName::from_word(word).is_some() || self.library.draft().variables.contains_key(word)
    }

    /// The placeholder that is near; none for words that are too short to tell, or once there were too many.
    fn guess(&mut self, word: &str) -> Option<&'a str> {
        if let Some(guess) = self.made.get(word) {
            return *guess;
        }
        if self.made.len() >= MOST_GUESSES {
            return None;
        }
        let variables = self.library.draft().variables.keys().map(String::as_str);
        let session = SessionName::ALL.map(SessionName::as_str);
        let near = nearest(word, variables.chain(session))
            .filter(|near| word.len() >= TELLING || near.eq_ignore_ascii_case(word));
        self.made.insert(word.to_owned(), near);
        near
    }
}

/// The most different words that are guessed at.
const MOST_GUESSES: usize = 200;

/// In shorter words one other letter makes another word: `{data}` is not `{date}`.
const TELLING: usize = 5;

/// The line and column of what is `written` at a byte of a text; where the text begins if it is not found there.
fn place(document: &Document, text: &Text<'_>, at: usize, written: &str) -> (usize, usize) {
    let begins = document.position(&text.pointer);
    let file = document.text();
    let (line, column) = begins;
    let Some(start) = offset(file, line, column) else {
        return begins;
    };
    // An alias stands for a text that is written elsewhere.
    if file[start..].starts_with('*') {
        return begins;
    }
    let nth = text.content[..at].matches(written).count();
    let found = file[start..].match_indices(written).nth(nth);
    found.map_or(begins, |(found, _)| {
        let before = &file[..start + found];
        let line_start = before.rfind('\n').map_or(0, |at| at + 1);
        (
            before.matches('\n').count() + 1,
            before[line_start..].chars().count() + 1,
        )
    })
}

/// The byte at a line and a column, both from 1.
fn offset(text: &str, line: usize, column: usize) -> Option<usize> {
    let line_start = match line {
        1 => 0,
        line => text.match_indices('\n').nth(line - 2)?.0 + 1,
    };
    let rest = &text[line_start..];
    let within = rest.char_indices().nth(column - 1)?.0;
    Some(line_start + within)
}
