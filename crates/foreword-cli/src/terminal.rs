//! How output looks: styles that `anstream` leaves out where there is no terminal or `NO_COLOR` is set.

use std::io::Write;

use anstyle::{AnsiColor, Style};

/// The word `error`.
pub(crate) const ERROR: Style = AnsiColor::Red.on_default().bold();
/// The word `warning`.
pub(crate) const WARNING: Style = AnsiColor::Yellow.on_default().bold();
/// The word `hint`, and things that are well.
pub(crate) const HINT: Style = AnsiColor::Cyan.on_default().bold();
/// What matters most in a line.
pub(crate) const STRONG: Style = Style::new().bold();

/// Says on stderr what whoever typed the command may not expect.
pub(crate) fn note(text: &str) {
    say(HINT, "note", text);
}

/// A line on stderr. That nobody can read it is no reason to fail.
pub(crate) fn say(style: Style, word: &str, text: &str) {
    let _ = writeln!(anstream::stderr().lock(), "{style}{word}{style:#}: {text}");
}

/// Rows with their columns one under the other.
pub(crate) fn columns<const N: usize>(rows: impl IntoIterator<Item = [String; N]>) -> String {
    let rows: Vec<[String; N]> = rows.into_iter().collect();
    let width = |column: usize| {
        let widths = rows.iter().map(|row| row[column].chars().count());
        widths.max().unwrap_or_default()
    };
    let widths: [usize; N] = std::array::from_fn(width);
    let mut text = String::new();
    for row in &rows {
        let cells = row.iter().zip(widths);
        let line: Vec<String> = cells
            .map(|(cell, width)| format!("{cell:width$}"))
            .collect();
        text.push_str(line.join("  ").trim_end());
        text.push('\n');
    }
    text
}

/// A number of things.
pub(crate) fn count(number: usize, what: &str) -> String {
    match number {
        1 => format!("1 {what}"),
        number => format!("{number} {what}s"),
    }
}
