//! A text as lines, whichever way they end.

/// What some editors put at the start of a file.
const BYTE_ORDER_MARK: &str = "\u{feff}";

/// Looking around in a text.
#[derive(Debug, Clone, Copy)]
pub(super) struct Lines<'t>(pub(super) &'t str);

impl<'t> Lines<'t> {
    /// Where the first line starts.
    pub(super) fn first(self) -> usize {
        if self.0.starts_with(BYTE_ORDER_MARK) {
            BYTE_ORDER_MARK.len()
        } else {
            0
        }
    }

    /// Where the line of `at` starts.
    pub(super) fn start(self, at: usize) -> usize {
        self.0.as_bytes()[..at]
            .iter()
            .rposition(|byte| matches!(byte, b'\n' | b'\r'))
            .map_or(self.first(), |at| at + 1)
    }

    /// Where the line of `at` ends, before its line break.
    pub(super) fn end(self, at: usize) -> usize {
        memchr::memchr2(b'\n', b'\r', &self.0.as_bytes()[at..])
            .map_or(self.0.len(), |length| at + length)
    }

    /// Where the line after the one of `at` starts; the end of the text if there is none.
    pub(super) fn next(self, at: usize) -> usize {
        let end = self.end(at);
        let rest = &self.0.as_bytes()[end..];
        end + match rest {
            [b'\r', b'\n', ..] => 2,
            [_, ..] => 1,
            [] => 0,
        }
    }

    /// Where the line before the one that starts at `start` starts.
    pub(super) fn previous(self, start: usize) -> usize {
        let before = &self.0[..start];
        let end = before
            .strip_suffix("\r\n")
            .or_else(|| before.strip_suffix(['\n', '\r']))
            .map_or(start, str::len);
        self.start(end)
    }

    /// How many bytes stand before `at` in its line.
    pub(super) fn column(self, at: usize) -> usize {
        at - self.start(at)
    }

    /// The line that starts at `start`, without its line break.
    pub(super) fn line(self, start: usize) -> &'t str {
        &self.0[start..self.end(start)]
    }

    /// Whether there is nothing but blanks on the line that starts at `start`.
    pub(super) fn is_blank(self, start: usize) -> bool {
        self.line(start).trim_matches([' ', '\t']).is_empty()
    }

    /// The column of the comment that is all of the line that starts at `start`, if it is one.
    pub(super) fn comment(self, start: usize) -> Option<usize> {
        let line = self.line(start);
        let trimmed = line.trim_start_matches([' ', '\t']);
        trimmed.starts_with('#').then(|| line.len() - trimmed.len())
    }

    /// The end of the blank lines that start at `start`.
    pub(super) fn after_blank_lines(self, mut start: usize) -> usize {
        while start < self.0.len() && self.is_blank(start) {
            start = self.next(start);
        }
        start
    }

    /// The start of the blank lines that end at `end`, not going above `floor`.
    pub(super) fn before_blank_lines(self, end: usize, floor: usize) -> usize {
        let mut start = end;
        while start > floor {
            let previous = self.previous(start);
            if previous < floor || !self.is_blank(previous) {
                break;
            }
            start = previous;
        }
        start
    }

    /// The first byte at or after `at` that is neither blank nor part of a comment.
    pub(super) fn after_space(self, mut at: usize) -> usize {
        let bytes = self.0.as_bytes();
        while let Some(byte) = bytes.get(at) {
            match byte {
                b' ' | b'\t' | b'\n' | b'\r' => at += 1,
                b'#' => at = self.end(at),
                _ => break,
            }
        }
        at
    }

    /// What ends most of the lines.
    pub(super) fn newline(self) -> &'static str {
        let bytes = self.0.as_bytes();
        let returns = memchr::memchr_iter(b'\r', bytes).count();
        if returns == 0 {
            return "\n";
        }
        let feeds = memchr::memchr_iter(b'\n', bytes).count();
        let pairs = memchr::memmem::find_iter(bytes, b"\r\n").count();
        if pairs * 2 > feeds.max(returns) {
            "\r\n"
        } else if returns - pairs > feeds - pairs {
            "\r"
        } else {
            "\n"
        }
    }
}
