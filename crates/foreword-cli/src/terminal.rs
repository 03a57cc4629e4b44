//! How output looks: styles that `anstream` leaves out where there is no terminal or `NO_COLOR` is set.

use anstyle::{AnsiColor, Style};

/// The word `error`.
pub(crate) const ERROR: Style = AnsiColor::Red.on_default().bold();
/// The word `warning`.
pub(crate) const WARNING: Style = AnsiColor::Yellow.on_default().bold();
/// The word `hint`, and things that are well.
pub(crate) const HINT: Style = AnsiColor::Cyan.on_default().bold();
/// What matters most in a line.
pub(crate) const STRONG: Style = Style::new().bold();
/// What matters least in a line.
pub(crate) const FAINT: Style = Style::new().dimmed();
