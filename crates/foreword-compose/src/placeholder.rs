//! Placeholders: `{name}` for a known name.
