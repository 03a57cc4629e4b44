//! What a scalar without quotes says, and how a text is written so that it says just that.

/// How YAML reads a plain scalar.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Plain {
    /// As text.
    Text,
    /// As nothing.
    Null,
    /// As `true` or `false`.
    Bool,
    /// As a whole number.
    Integer,
    /// As another number.
    Float,
}

impl Plain {
    /// With its article, for messages.
    pub(super) fn describe(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Null => "empty",
            Self::Bool => "a yes-or-no value",
            Self::Integer | Self::Float => "a number",
        }
    }
}

/// How YAML 1.2 (core schema) reads `text` where it stands without quotes.
pub(super) fn plain(text: &str) -> Plain {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => Plain::Null,
        "true" | "True" | "TRUE" | "false" | "False" | "FALSE" => Plain::Bool,
        ".nan" | ".NaN" | ".NAN" => Plain::Float,
        _ => number(text),
    }
}

fn number(text: &str) -> Plain {
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if let Some(octal) = text.strip_prefix("0o") {
        let octal_digits =
            !octal.is_empty() && octal.bytes().all(|byte| matches!(byte, b'0'..=b'7'));
        return if octal_digits {
            Plain::Integer
        } else {
            Plain::Text
        };
    }
    if let Some(hexadecimal) = text.strip_prefix("0x") {
        let hexadecimal_digits =
            !hexadecimal.is_empty() && hexadecimal.bytes().all(|byte| byte.is_ascii_hexdigit());
        return if hexadecimal_digits {
            Plain::Integer
        } else {
            Plain::Text
        };
    }
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    if digits(unsigned) {
        return Plain::Integer;
    }
    if matches!(unsigned, ".inf" | ".Inf" | ".INF") {
        return Plain::Float;
    }
    let (mantissa, exponent) = match unsigned.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent)),
        None => (unsigned, None),
    };
    let exponent_fits = exponent
        .is_none_or(|exponent| digits(exponent.strip_prefix(['+', '-']).unwrap_or(exponent)));
    let mantissa_fits = match mantissa.split_once('.') {
        None => digits(mantissa),
        Some(("", fraction)) => digits(fraction),
        Some((whole, fraction)) => digits(whole) && (fraction.is_empty() || digits(fraction)),
    };
    if exponent_fits && mantissa_fits {
        Plain::Float
    } else {
        Plain::Text
    }
}

/// The whole number that `digits` stand for.
pub(super) fn integer(digits: &str) -> Option<i64> {
    if let Some(octal) = digits.strip_prefix("0o") {
        return i64::from_str_radix(octal, 8).ok();
    }
    if let Some(hexadecimal) = digits.strip_prefix("0x") {
        return i64::from_str_radix(hexadecimal, 16).ok();
    }
    digits.parse().ok()
}

/// How a text is quoted, or not, on one line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Quotes {
    /// Not, where that says the same.
    None,
    /// `'…'`, where that can hold the text.
    Single,
    /// `"…"`
    Double,
}

/// `text` on one line, in the wished style if that can say it.
pub(super) fn on_one_line(text: &str, wish: Quotes, in_flow: bool) -> String {
    match wish {
        Quotes::None if can_be_plain(text, in_flow) => text.to_owned(),
        Quotes::Single
            if text
                .chars()
                .all(|character| character != '\n' && can_be_bare(character)) =>
        {
            format!("'{}'", text.replace('\'', "''"))
        }
        _ => double_quoted(text),
    }
}

/// A text under a `|`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct BlockText {
    /// `|` with its indicators.
    pub(super) header: String,
    /// The lines, each with its indentation and its end.
    pub(super) body: String,
}

/// Whether a block scalar can say `text`.
pub(super) fn can_be_block(text: &str) -> bool {
    let lines = text.trim_end_matches('\n');
    // A last line of blanks is read differently by different parsers, and a text of blanks has no first line.
    let last_line = lines.rsplit('\n').next().unwrap_or_default();
    !last_line.trim_matches([' ', '\t']).is_empty() && text.chars().all(can_be_bare)
}

/// `text` as a block scalar whose lines start in `column` (from 0), below a parent in column `parent`.
pub(super) fn block_text(text: &str, parent: usize, column: usize, newline: &str) -> BlockText {
    debug_assert!(can_be_block(text) && column > parent);
    let mut header = "|".to_owned();
    if text.starts_with([' ', '\t', '\n']) {
        // Without the number, the blanks of the first line would count as indentation.
        header.push_str(&(column - parent).to_string());
    }
    let content = text.trim_end_matches('\n');
    match text.len() - content.len() {
        0 => header.push('-'),
        1 => {}
        _ => header.push('+'),
    }
    let mut body = String::with_capacity(text.len() + text.len() / 8);
    for line in text.strip_suffix('\n').unwrap_or(text).split('\n') {
        if !line.is_empty() {
            body.extend(std::iter::repeat_n(' ', column));
            body.push_str(line);
        }
        body.push_str(newline);
    }
    BlockText { header, body }
}

/// Whether `character` may stand in a file as it is, and is the same after reading.
fn can_be_bare(character: char) -> bool {
    !matches!(
        character,
        '\0'..='\u{8}' | '\u{b}'..='\u{1f}' | '\u{7f}'..='\u{9f}' | '\u{2028}' | '\u{2029}' | '\u{feff}'
            | '\u{fffe}' | '\u{ffff}'
    )
}

fn can_be_plain(text: &str, in_flow: bool) -> bool {
    const INDICATORS: &[char] = &[
        '-', '?', ':', ',', '[', ']', '{', '}', '#', '&', '*', '!', '|', '>', '\'', '"', '%', '@',
        '`', '=', '.',
    ];
    !text.starts_with(INDICATORS)
        && text.trim_matches([' ', '\t']) == text
        && !text.ends_with(':')
        && !text.contains(": ")
        && !text.contains(":\t")
        && !text.contains(" #")
        && !text.contains("\t#")
        && !(in_flow && text.contains([',', '[', ']', '{', '}', ':', '#', '"', '\'']))
        && text
            .chars()
            .all(|character| character != '\n' && can_be_bare(character))
        && !means_something(text)
}

/// Whether some YAML, of today or of 1.1, reads `text` without quotes as something else than text.
fn means_something(text: &str) -> bool {
    const WORDS: &[&str] = &[
        "y", "n", "yes", "no", "on", "off", "true", "false", "null", "~", "<<", "",
    ];
    let number_like = text.starts_with(|first: char| first.is_ascii_digit() || first == '+')
        && text.chars().all(|character| {
            character.is_ascii_hexdigit() || "xXoO_.,:+- tTzZ".contains(character)
        });
    number_like || WORDS.iter().any(|word| text.eq_ignore_ascii_case(word))
}

fn double_quoted(text: &str) -> String {
    use std::fmt::Write as _;
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for character in text.chars() {
        match character {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            '\n' => quoted.push_str("\\n"),
            '\r' => quoted.push_str("\\r"),
            '\t' => quoted.push_str("\\t"),
            other if can_be_bare(other) => quoted.push(other),
            other if u32::from(other) < 0x100 => {
                write!(quoted, "\\x{:02X}", u32::from(other)).expect("a string takes everything");
            }
            other => {
                write!(quoted, "\\u{:04X}", u32::from(other)).expect("a string takes everything");
            }
        }
    }
    quoted.push('"');
    quoted
}
