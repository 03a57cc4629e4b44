//! Keeps of a command's output what a model can use: the beginning and the end, and the whole in a file.
//!
//! However much is written, memory stays flat and the time linear. Characters are never cut, also where chunks meet.

use std::{
    fs::File,
    io::{self, Write},
    mem,
};

use foreword_sandbox::Output;

/// How much of an output is shown, in characters; half of it from the beginning, half from the end.
pub const MAX_CHARACTERS: usize = 30_000;

/// How much of an output is kept in a file, in bytes.
pub(super) const MAX_KEPT: u64 = 10 << 20;

const HALF: usize = MAX_CHARACTERS / 2;

/// How large the end may grow before it is cut back, in bytes; a character has at most four.
const TAIL_BYTES: usize = 8 * HALF;

/// Collects an output as it comes.
#[derive(Default)]
pub(super) struct Collector {
    /// The first bytes of a character whose rest has not come yet.
    pending: Vec<u8>,
    head: String,
    head_characters: usize,
    tail: String,
    /// Characters after the head, also those that are no longer in the tail.
    tail_characters: usize,
    bytes: u64,
    whole: Whole,
}

/// Where the whole output goes.
enum Whole {
    /// Into memory, while all of it may still be shown.
    Short(Vec<u8>),
    /// Into a file without a name, up to a number of bytes.
    Long { file: File, bytes: u64 },
    /// Nowhere.
    Lost,
}

impl Default for Whole {
    fn default() -> Self {
        Self::Short(Vec::new())
    }
}

/// An output that has ended.
pub(super) struct Collected {
    /// What is shown.
    pub(super) text: Shown,
    /// Bytes written in all.
    pub(super) bytes: u64,
}

/// What is shown of an output.
pub(super) enum Shown {
    /// All of it.
    Whole(String),
    /// Its beginning and its end.
    Cut {
        /// The beginning, cut at the end of a line.
        head: String,
        /// The end, from the beginning of a line.
        tail: String,
        /// Characters left out in between.
        left_out: usize,
        /// The whole, from its first byte on; none where it could not be kept.
        file: Option<File>,
    },
}

impl Collector {
    /// What there is, once no more will come.
    pub(super) fn finish(mut self) -> Collected {
        let pending = mem::take(&mut self.pending);
        if !pending.is_empty() {
            self.take_text(&String::from_utf8_lossy(&pending));
        }
        let bytes = self.bytes;
        let text = if self.head_characters + self.tail_characters <= MAX_CHARACTERS {
            Shown::Whole(self.head + &self.tail)
        } else {
            self.trim_tail();
            let head = to_line_end(&self.head);
            let tail = from_line_start(&self.tail);
            let shown = head.chars().count() + tail.chars().count();
            Shown::Cut {
                left_out: self.head_characters + self.tail_characters - shown,
                head: head.to_owned(),
                tail: tail.to_owned(),
                file: match self.whole {
                    Whole::Long { file, .. } => Some(file),
                    Whole::Short(_) | Whole::Lost => None,
                },
            }
        };
        Collected { text, bytes }
    }

    fn take_text(&mut self, text: &str) {
        let mut rest = text;
        if self.head_characters < HALF {
            let room = HALF - self.head_characters;
            let end = text
                .char_indices()
                .nth(room)
                .map_or(text.len(), |(at, _)| at);
            let (fitting, after) = text.split_at(end);
            self.head.push_str(fitting);
            self.head_characters += fitting.chars().count();
            rest = after;
        }
        if rest.is_empty() {
            return;
        }
        self.tail_characters += rest.chars().count();
        self.tail.push_str(last_characters(rest, HALF));
        if self.tail.len() > TAIL_BYTES {
            self.trim_tail();
        }
    }

    fn trim_tail(&mut self) {
        let kept = last_characters(&self.tail, HALF).len();
        self.tail.drain(..self.tail.len() - kept);
    }

    fn keep(&mut self, chunk: &[u8]) {
        let written = match &mut self.whole {
            Whole::Lost => return,
            Whole::Short(early) => {
                early.extend_from_slice(chunk);
                // A character has at least one byte, so up to here everything may still be shown.
                if early.len() <= MAX_CHARACTERS {
                    return;
                }
                let early = mem::take(early);
                self.begin_file(&early)
            }
            Whole::Long { file, bytes } => write_up_to_limit(file, bytes, chunk),
        };
        if let Err(error) = written {
            tracing::warn!(%error, "A long output could not be kept");
            self.whole = Whole::Lost;
        }
    }

    fn begin_file(&mut self, early: &[u8]) -> io::Result<()> {
        let mut file = tempfile::tempfile()?;
        let mut bytes = 0;
        write_up_to_limit(&mut file, &mut bytes, early)?;
        self.whole = Whole::Long { file, bytes };
        Ok(())
    }
}

impl Output for Collector {
    fn chunk(&mut self, bytes: &[u8]) {
        self.bytes += bytes.len() as u64;
        self.keep(bytes);
        let joined;
        let bytes = if self.pending.is_empty() {
            bytes
        } else {
            self.pending.extend_from_slice(bytes);
            joined = mem::take(&mut self.pending);
            &joined
        };
        let whole = bytes.len() - incomplete_character(bytes);
        self.pending.extend_from_slice(&bytes[whole..]);
        self.take_text(&String::from_utf8_lossy(&bytes[..whole]));
    }
}

fn write_up_to_limit(file: &mut File, written: &mut u64, chunk: &[u8]) -> io::Result<()> {
    let room = usize::try_from(MAX_KEPT - *written).unwrap_or(usize::MAX);
    let fitting = &chunk[..chunk.len().min(room)];
    file.write_all(fitting)?;
    *written += fitting.len() as u64;
    Ok(())
}

/// The number of bytes at the end that may be the beginning of a character.
fn incomplete_character(bytes: &[u8]) -> usize {
    let last = bytes.len().saturating_sub(3);
    for at in (last..bytes.len()).rev() {
        let expected = match bytes[at] {
            0xC2..=0xDF => 2,
            0xE0..=0xEF => 3,
            0xF0..=0xF4 => 4,
            0x80..=0xBF => continue,
            _ => return 0,
        };
        let there = bytes.len() - at;
        return if there < expected { there } else { 0 };
    }
    0
}

fn last_characters(text: &str, count: usize) -> &str {
    if text.len() <= count {
        return text;
    }
    match text.char_indices().rev().nth(count - 1) {
        Some((at, _)) => &text[at..],
        None => text,
    }
}

/// `text` up to its last line end, if that leaves at least half of it.
fn to_line_end(text: &str) -> &str {
    match text.rfind('\n') {
        Some(at) if at >= text.len() / 2 => &text[..at],
        _ => text,
    }
}

/// `text` from the beginning of a line on, if that leaves at least half of it.
fn from_line_start(text: &str) -> &str {
    match text.find('\n') {
        Some(at) if at < text.len() / 2 => &text[at + 1..],
        _ => text,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn collect(chunks: &[&[u8]]) -> Collected {
        let mut collector = Collector::default();
        for chunk in chunks {
            collector.chunk(chunk);
        }
        collector.finish()
    }

    fn whole(collected: Collected) -> String {
        match collected.text {
            Shown::Whole(text) => text,
            Shown::Cut { .. } => panic!("it was cut"),
        }
    }

    #[test]
    fn fault_28_characters_survive_wherever_chunks_meet() {
        let text = "aé€😀\u{FFFD}b";
        for cut in 0..=text.len() {
            let (one, other) = text.as_bytes().split_at(cut);
            assert_eq!(whole(collect(&[one, other])), text);
        }
        assert_eq!(
            whole(collect(&[b"\xF0\x9F", b"x\xE2"])),
            "\u{FFFD}x\u{FFFD}"
        );
    }

    #[test]
    fn up_to_thirty_thousand_characters_are_shown_whole() {
        let text = "é".repeat(MAX_CHARACTERS);
        assert_eq!(whole(collect(&[text.as_bytes()])), text);
        let more = text + "é";
        assert!(matches!(
            collect(&[more.as_bytes()]).text,
            Shown::Cut { .. }
        ));
    }

    #[test]
    fn of_more_the_beginning_and_the_end_are_shown_by_whole_lines() {
        let lines: Vec<String> = (0..100_000).map(|at| format!("line {at}\n")).collect();
        let lines = lines.concat();
        let Shown::Cut {
            head,
            tail,
            left_out,
            file,
        } = collect(&[lines.as_bytes()]).text
        else {
            panic!("it is long")
        };
        assert!(head.starts_with("line 0\n") && !head.ends_with('\n'));
        assert!(tail.starts_with("line ") && tail.ends_with("line 99999\n"));
        assert_eq!(head.len() + tail.len() + left_out, lines.len());
        let mut kept = file.expect("it was kept");
        let mut text = String::new();
        io::Seek::rewind(&mut kept).expect("files can be rewound");
        io::Read::read_to_string(&mut kept, &mut text).expect("it can be read");
        assert_eq!(text, lines);
    }

    proptest! {
        #[test]
        fn any_bytes_in_any_chunks_give_the_same_text(bytes: Vec<u8>, cuts in proptest::collection::vec(0..64_usize, 0..8)) {
            let mut chunks = Vec::new();
            let mut rest = &bytes[..];
            for cut in cuts {
                let (chunk, after) = rest.split_at(cut.min(rest.len()));
                chunks.push(chunk);
                rest = after;
            }
            chunks.push(rest);
            let text = whole(collect(&chunks));
            let expected = String::from_utf8_lossy(&bytes).into_owned();
            prop_assert_eq!(text, expected);
        }
    }
}
