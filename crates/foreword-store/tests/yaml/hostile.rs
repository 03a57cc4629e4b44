//! Files that somebody made to break the reader, and files that look as if.

use std::{
    fmt::Write as _,
    sync::Arc,
    time::{Duration, Instant},
};

use foreword_store::{
    parse_library,
    yaml::{Document, MAX_DEPTH, MAX_ERRORS, MAX_FILE_BYTES, MAX_NODES},
};

/// The code and the place of the first mistake.
fn refused(text: &str) -> (&'static str, usize, usize) {
    let errors = parse_library(text).expect_err("the text is refused");
    (errors[0].code, errors[0].line, errors[0].column)
}

#[test]
fn a_bomb_of_aliases_costs_what_its_text_costs() {
    let mut text =
        String::from("sections:\n  - id: a\n    content: &l0 aaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\n");
    for level in 1..30 {
        let previous = level - 1;
        writeln!(
            text,
            "  - &l{level} [{}]",
            vec![format!("*l{previous}"); 10].join(", ")
        )
        .unwrap();
    }
    let start = Stopwatch::start();
    assert_eq!(refused(&text).0, "too-large");
    // Expanded, it would fill all memory there is; a generous bound tells the two apart on any machine.
    assert!(start.elapsed().as_secs() < 5);
}

#[test]
fn a_bomb_of_merges_costs_what_its_text_costs() {
    let mut text = String::from(
        "sections:\n  - &l0 {id: a, content: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa}\n",
    );
    for level in 1..30 {
        let previous = level - 1;
        writeln!(
            text,
            "  - &l{level} {{<<: [{}], id: b}}",
            vec![format!("*l{previous}"); 10].join(", ")
        )
        .unwrap();
    }
    assert_eq!(refused(&text).0, "too-large");
}

#[test]
fn a_chain_of_merges_is_not_followed_without_end() {
    let mut text = String::from("sections:\n  - &l0 {id: a, content: x}\n");
    for level in 1..100_000 {
        writeln!(text, "  - &l{level} {{<<: *l{}}}", level - 1).unwrap();
    }
    assert_eq!(refused(&text).0, "too-deep");
}

#[test]
fn an_alias_of_what_it_is_a_part_of_is_refused() {
    assert_eq!(refused("sections: &a\n  - *a\n"), ("alias-in-itself", 2, 5));
}

#[test]
fn a_file_over_the_limit_is_refused_and_one_under_it_is_not() {
    let file = |bytes: usize| {
        let head = "global_prompt: |\n";
        let line = "  a line of some text that says nothing at all\n";
        format!("{head}{}", line.repeat((bytes - head.len()) / line.len()))
    };
    assert_eq!(refused(&file(17 << 20)), ("too-large", 1, 1));
    let text = file(MAX_FILE_BYTES);
    assert!(parse_library(&text).is_ok());
}

#[test]
fn a_file_of_too_many_values_is_refused() {
    let text = format!("profiles: [{}]\n", "[],".repeat(MAX_NODES + 1));
    assert_eq!(refused(&text).0, "too-many-values");
}

#[test]
fn deep_nesting_is_refused_in_every_style() {
    let flow = format!("profiles: {}{}", "[".repeat(100_000), "]".repeat(100_000));
    assert_eq!(refused(&flow).0, "too-deep");
    let dashes = format!("profiles:\n  {}x\n", "- ".repeat(100_000));
    assert_eq!(refused(&dashes).0, "too-deep");
    let mut keys = String::new();
    for level in 0..300 {
        writeln!(keys, "{}a:", " ".repeat(level)).unwrap();
    }
    assert_eq!(refused(&keys).0, "too-deep");
    // Neither style alone is too deep here.
    keys.truncate(0);
    for level in 0..MAX_DEPTH / 2 {
        writeln!(keys, "{}a:", " ".repeat(level)).unwrap();
    }
    let levels = MAX_DEPTH / 2 + 1;
    let (indentation, open, close) = (
        " ".repeat(MAX_DEPTH),
        "[".repeat(levels),
        "]".repeat(levels),
    );
    let mixed = format!("{keys}{indentation}{open}{close}\n");
    assert_eq!(refused(&mixed).0, "too-deep");
}

#[test]
fn there_is_an_end_to_mistakes() {
    let text = format!(
        "{{{}}}\n",
        (0..100_000)
            .map(|at| format!("k{at}: 1"))
            .collect::<Vec<_>>()
            .join(", ")
    );
    assert_eq!(parse_library(&text).unwrap_err().len(), MAX_ERRORS);
}

#[test]
fn control_characters_are_pointed_at() {
    assert_eq!(
        refused("global_prompt: a\nvariables: {x: \"a\0b\"}\n"),
        ("control-character", 2, 18)
    );
    assert_eq!(
        refused("global_prompt: é\u{7f}\n"),
        ("control-character", 1, 17)
    );
    assert_eq!(refused("# \u{1b}[31m\n{}\n"), ("control-character", 1, 3));
}

#[test]
fn a_file_without_a_value_is_no_library() {
    for text in [
        "",
        "\n",
        "# nothing yet\n",
        "---\n",
        "---\n# nothing yet\n...\n",
        "\u{feff}",
        "~\n",
    ] {
        assert_eq!(refused(text).0, "empty-file", "{text:?}");
    }
}

#[test]
fn a_second_document_is_refused_wherever_it_stands() {
    assert_eq!(refused("{}\n---\n{}\n"), ("several-documents", 2, 1));
    assert_eq!(refused("---\n{}\n...\n---\n"), ("several-documents", 4, 1));
    assert!(parse_library("---\n{}\n...\n").is_ok());
}

#[test]
fn every_kind_of_line_end_and_a_byte_order_mark_are_read() {
    let text = "\u{feff}global_prompt: |\n  One.\n  Two.\nprofiles:\n  - id: a\n";
    let library = parse_library(text).unwrap();
    assert_eq!(
        library.draft().global_prompt.as_ref().unwrap().content,
        "One.\nTwo.\n"
    );
    for line_end in ["\r\n", "\r"] {
        let text = text.replace('\n', line_end);
        assert_eq!(parse_library(&text).unwrap(), library, "{line_end:?}");
        let document = Document::parse(Arc::from(text)).unwrap();
        let mut draft = library.draft().clone();
        draft.profiles[0].name = "A".to_owned();
        draft.global_prompt.as_mut().unwrap().content = "Three.\nFour.\n".to_owned();
        let rewritten = document.rewrite(&draft).unwrap();
        let expected =
            "\u{feff}global_prompt: |\n  Three.\n  Four.\nprofiles:\n  - id: a\n    name: A\n";
        assert_eq!(**rewritten.text(), expected.replace('\n', line_end));
    }
}

#[test]
fn any_number_of_comment_lines_may_follow_each_other() {
    let comments = "  # - id: commented out\n".repeat(1_000);
    let text = format!("profiles:\n{comments}  - id: a\n{comments}  - id: b\n");
    let document = Document::parse(Arc::from(text.as_str())).unwrap();
    let mut draft = document.library().draft().clone();
    draft.profiles[1].name = "B".to_owned();
    let rewritten = document.rewrite(&draft).unwrap();
    assert_eq!(**rewritten.text(), format!("{text}    name: B\n"));
}

#[test]
fn work_grows_with_the_file_and_not_with_its_square() {
    const COUNT: usize = 50_000;
    let lines = |suffix: &str| {
        (0..COUNT).fold(String::new(), |mut lines, at| {
            writeln!(lines, "  v{at}{suffix}: x").unwrap();
            lines
        })
    };
    let start = Stopwatch::start();
    let document = Document::parse(Arc::from(format!("variables:\n{}", lines("")))).unwrap();
    let mut draft = document.library().draft().clone();
    draft.variables.shift_remove("v0");
    draft.variables.insert("v1".to_owned(), "y".to_owned());
    draft.variables.insert("new".to_owned(), "z".to_owned());
    document.rewrite(&draft).unwrap();
    let unknown = lines("").replace("  v", "v");
    assert_eq!(parse_library(&unknown).unwrap_err().len(), MAX_ERRORS);
    let repeated = format!("variables:\n{}{}", lines(""), lines(""));
    assert_eq!(parse_library(&repeated).unwrap_err().len(), MAX_ERRORS);
    let invalid = format!("variables:\n{}", lines("-"));
    assert_eq!(parse_library(&invalid).unwrap_err().len(), MAX_ERRORS);
    // Squared, these would take minutes.
    assert!(start.elapsed().as_secs() < 15);
}

/// Measures how long this thread really runs, so that a busy machine fails no test; elsewhere than on Linux, all time.
struct Stopwatch {
    processor: Option<Duration>,
    wall: Instant,
}

impl Stopwatch {
    fn start() -> Self {
        Self {
            processor: processor_time(),
            wall: Instant::now(),
        }
    }

    fn elapsed(&self) -> Duration {
        let processor = processor_time().zip(self.processor);
        processor.map_or_else(
            || self.wall.elapsed(),
            |(now, start)| now.saturating_sub(start),
        )
    }
}

fn processor_time() -> Option<Duration> {
    let statistics = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    let nanoseconds = statistics.split(' ').next()?.parse().ok()?;
    Some(Duration::from_nanos(nanoseconds))
}
