//! Decides what other people's words look like inside a prompt: cleaned, bounded, and never able to leave their place.
//!
//! Control characters and those that reorder text are removed, every line end becomes LF, and what is too long is cut
//! and said to be cut. The work is bounded by what is shown, not by what was sent. Deliberately absent: any judgement
//! of what the words say.

use std::io;

use serde_json::Value;

/// `text` without control and bidirectional characters, trimmed, at most `limit` bytes and a note if it was cut.
pub(crate) fn cleaned(text: &str, limit: usize) -> String {
    let looked_at = head(text, limit);
    let mut clean = String::with_capacity(looked_at.len().min(limit));
    let mut previous = None;
    for character in looked_at.trim().chars() {
        if clean.len() > limit {
            break;
        }
        match character {
            '\n' if previous == Some('\r') => {}
            '\t' => clean.push('\t'),
            _ if breaks_line(character) => clean.push('\n'),
            _ if is_removed(character) => {}
            _ => clean.push(character),
        }
        previous = Some(character);
    }
    if clean.len() > limit || looked_at.len() < text.len() {
        clean.truncate(clean.floor_char_boundary(limit));
        clean.truncate(clean.trim_end().len());
        let note = format!("… [cut: {} bytes in all]", text.len());
        clean.push_str(&note);
    }
    clean
}

/// `text` on one line, at most `limit` characters and an ellipsis if it was cut.
#[must_use]
pub fn one_line(text: &str, limit: usize) -> String {
    let looked_at = head(text, limit);
    let mut kept = looked_at
        .trim()
        .chars()
        .map(|character| {
            if breaks_line(character) || character == '\t' {
                ' '
            } else {
                character
            }
        })
        .filter(|character| !is_removed(*character));
    let mut line: String = kept.by_ref().take(limit).collect();
    if kept.next().is_some() || looked_at.len() < text.len() {
        line.push('…');
    }
    line
}

/// `text` as a Markdown code span on one line, whatever backticks it holds.
pub(crate) fn code(text: &str, limit: usize) -> String {
    let text = one_line(text, limit);
    let runs = text.split(|character| character != '`').map(str::len);
    let longest_run = runs.max().unwrap_or(0);
    let fence = "`".repeat(longest_run + 1);
    // A space keeps a backtick at the edge apart from the fence, and the two fences of an empty text apart.
    let space = if longest_run > 0 || text.is_empty() {
        " "
    } else {
        ""
    };
    format!("{fence}{space}{text}{space}{fence}")
}

/// `value` as JSON in a code span, at most `limit` characters.
pub(crate) fn json_code(value: &Value, limit: usize) -> String {
    let mut json = Head {
        bytes: Vec::new(),
        limit: limit * 4,
    };
    // An error says that there is more than the head, which `code` then cuts anyway.
    let whole = serde_json::to_writer(&mut json, value).is_ok();
    let text = String::from_utf8_lossy(&json.bytes);
    if whole {
        code(&text, limit)
    } else {
        code(&format!("{}…", text.trim_end_matches('\u{fffd}')), limit)
    }
}

/// As much of `text` as can matter where `limit` characters are shown: a few removed ones beside each of them.
fn head(text: &str, limit: usize) -> &str {
    &text[..text.floor_char_boundary(limit * 8)]
}

fn breaks_line(character: char) -> bool {
    matches!(
        character,
        '\n' | '\r' | '\u{b}' | '\u{c}' | '\u{85}' | '\u{2028}' | '\u{2029}'
    )
}

fn is_removed(character: char) -> bool {
    character.is_control()
        || matches!(
            character,
            '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}'
        )
}

/// Keeps the first bytes that are written to it and then refuses.
struct Head {
    bytes: Vec<u8>,
    limit: usize,
}

impl io::Write for Head {
    fn write(&mut self, chunk: &[u8]) -> io::Result<usize> {
        let room = self.limit - self.bytes.len();
        if room == 0 && !chunk.is_empty() {
            return Err(io::ErrorKind::StorageFull.into());
        }
        let taken = chunk.len().min(room);
        self.bytes.extend_from_slice(&chunk[..taken]);
        Ok(taken)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
