//! A library as a fresh file.

use foreword_compose::LibraryDraft;

use super::{
    emit::Manner,
    shape::{self, Value},
};

/// `draft` as a whole YAML text, for where there is no file whose writing could be kept.
#[must_use]
pub fn print_library(draft: &LibraryDraft) -> String {
    let nothing = LibraryDraft::default();
    let manner = Manner::default();
    let Value::Map(fields) = shape::library(&nothing, draft) else {
        unreachable!("a library is keys with values");
    };
    let mut text = String::new();
    let mut blank_line = false;
    for field in fields.iter().filter(|field| !field.optional) {
        if blank_line {
            text.push('\n');
        }
        let written = manner.field(field, 0);
        text.push_str(&written.body);
        blank_line = !written.keeps_blank_lines;
    }
    if text.is_empty() {
        text.push_str("{}\n");
    }
    text
}
