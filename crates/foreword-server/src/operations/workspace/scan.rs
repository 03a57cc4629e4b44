//! Numbers the lines of a text that comes in pieces, and keeps of them what may be shown.
//!
//! The numbers are the file's own, also in a range. Memory stays flat however long the file or one of its lines is.

use std::collections::VecDeque;

use super::{MAX_CHARACTERS, edit::counted};

/// How much of one line is kept, in bytes.
const MOST_OF_A_LINE: usize = 4 * MAX_CHARACTERS;

const HALF: usize = MAX_CHARACTERS / 2;

/// Which lines are wanted, from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Lines {
    pub(super) first: u64,
    /// None for the last there is.
    pub(super) last: Option<u64>,
}

impl Lines {
    pub(super) const ALL: Self = Self {
        first: 1,
        last: None,
    };

    fn contains(self, line: u64) -> bool {
        line >= self.first && self.last.is_none_or(|last| line <= last)
    }
}

/// Takes a file piece by piece.
pub(super) struct Scan {
    wanted: Lines,
    /// Line ends so far.
    complete: u64,
    line: Vec<u8>,
    /// Bytes of the line that are not kept.
    line_rest: u64,
    line_begun: bool,
    head: Vec<String>,
    head_characters: usize,
    tail: VecDeque<String>,
    tail_characters: usize,
    left_out: u64,
}

/// What is shown.
pub(super) struct Scanned {
    pub(super) text: String,
    /// Lines in the part of the file that was looked at.
    pub(super) lines: u64,
}

impl Scan {
    pub(super) fn new(wanted: Lines) -> Self {
        Self {
            wanted,
            complete: 0,
            line: Vec::new(),
            line_rest: 0,
            line_begun: false,
            head: Vec::new(),
            head_characters: 0,
            tail: VecDeque::new(),
            tail_characters: 0,
            left_out: 0,
        }
    }

    /// Takes the next bytes; answers whether more are of use.
    pub(super) fn take(&mut self, bytes: &[u8]) -> bool {
        let mut rest = bytes;
        while let Some(end) = memchr::memchr(b'\n', rest) {
            self.add(&rest[..end]);
            self.end_line();
            rest = &rest[end + 1..];
            if self.wanted.last.is_some_and(|last| self.complete >= last) {
                return false;
            }
        }
        if !rest.is_empty() {
            self.add(rest);
        }
        true
    }

    pub(super) fn finish(mut self) -> Scanned {
        if self.line_begun {
            self.end_line();
        }
        let mut parts = self.head;
        if self.left_out > 0 {
            parts.push(format!(
                "[… {} left out here; use `view_range` to see others …]",
                counted(usize::try_from(self.left_out).unwrap_or(usize::MAX), "line")
            ));
        }
        parts.extend(self.tail);
        Scanned {
            text: parts.join("\n"),
            lines: self.complete,
        }
    }

    fn add(&mut self, bytes: &[u8]) {
        self.line_begun = true;
        if !self.wanted.contains(self.complete + 1) {
            return;
        }
        let room = MOST_OF_A_LINE - self.line.len();
        let fitting = bytes.len().min(room);
        self.line.extend_from_slice(&bytes[..fitting]);
        self.line_rest += (bytes.len() - fitting) as u64;
    }

    fn end_line(&mut self) {
        self.complete += 1;
        self.line_begun = false;
        let rest = std::mem::take(&mut self.line_rest);
        if !self.wanted.contains(self.complete) {
            return;
        }
        let bytes = std::mem::take(&mut self.line);
        let line = String::from_utf8_lossy(&bytes);
        let line = line.strip_suffix('\r').unwrap_or(&line);
        let numbered = format!("{:>6}\t{}", self.complete, shortened(line, rest));
        let characters = numbered.chars().count() + 1;
        if self.tail.is_empty() && self.left_out == 0 && self.head_characters + characters <= HALF {
            self.head_characters += characters;
            self.head.push(numbered);
            return;
        }
        self.tail_characters += characters;
        self.tail.push_back(numbered);
        while self.tail_characters > HALF && self.tail.len() > 1 {
            let dropped = self.tail.pop_front().unwrap_or_default();
            self.tail_characters -= dropped.chars().count() + 1;
            self.left_out += 1;
        }
    }
}

/// A line of which too much would be shown, cut in its middle.
fn shortened(line: &str, rest: u64) -> String {
    let characters = line.chars().count();
    // Room for the number before it and the words in its middle.
    let most = HALF - 200;
    if characters <= most && rest == 0 {
        return line.to_owned();
    }
    let half = most / 2;
    let head: String = line.chars().take(half).collect();
    if rest > 0 {
        return format!(
            "{head} [… about {} bytes of this line left out]",
            line.len() - head.len() + usize::try_from(rest).unwrap_or(usize::MAX - line.len())
        );
    }
    let tail: String = line.chars().skip(characters - half).collect();
    format!(
        "{head} [… {} characters of this line left out …] {tail}",
        characters - 2 * half
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scan(text: &str, wanted: Lines, piece: usize) -> Scanned {
        let mut scan = Scan::new(wanted);
        for piece in text.as_bytes().chunks(piece) {
            if !scan.take(piece) {
                break;
            }
        }
        scan.finish()
    }

    #[test]
    fn fault_14_lines_have_the_numbers_of_the_file() {
        let text = "a\nb\r\nc\n\nlast";
        for piece in [1, 2, 100] {
            let all = scan(text, Lines::ALL, piece);
            assert_eq!(
                all.text,
                "     1\ta\n     2\tb\n     3\tc\n     4\t\n     5\tlast"
            );
            assert_eq!(all.lines, 5);
            let some = Lines {
                first: 2,
                last: Some(3),
            };
            assert_eq!(scan(text, some, piece).text, "     2\tb\n     3\tc");
            let to_the_end = Lines {
                first: 5,
                last: None,
            };
            assert_eq!(scan(text, to_the_end, piece).text, "     5\tlast");
        }
    }

    #[test]
    fn fault_52_a_range_has_the_limit_of_a_whole_file() {
        let lines: Vec<String> = (1..=100_000).map(|at| format!("line {at}\n")).collect();
        let text = lines.concat();
        for wanted in [
            Lines::ALL,
            Lines {
                first: 5,
                last: Some(99_990),
            },
        ] {
            let scanned = scan(&text, wanted, 64 << 10);
            assert!(scanned.text.chars().count() <= MAX_CHARACTERS + 200);
            assert!(scanned.text.contains("lines left out here"));
            let last = wanted.last.unwrap_or(100_000);
            assert!(scanned.text.ends_with(&format!("\tline {last}")));
        }
    }

    #[test]
    fn one_endless_line_is_cut_too() {
        let scanned = scan(&"é".repeat(1 << 20), Lines::ALL, 4 << 10);
        assert!(
            scanned.text.chars().count() <= MAX_CHARACTERS,
            "{}",
            scanned.text.len()
        );
        let scanned = scan(&format!("{}\nend", "x".repeat(40_000)), Lines::ALL, 4 << 10);
        assert!(scanned.text.contains("characters of this line left out"));
        assert!(scanned.text.ends_with("     2\tend"));
    }
}
