//! Writes values that are new to a file.

use super::{
    scalar::{Quotes, block_text, can_be_block, on_one_line},
    shape::{Field, Item, Value},
};

/// How a file is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Manner {
    /// What ends its lines.
    pub(super) newline: &'static str,
    /// How far a list's dashes stand right of their key.
    pub(super) dash: usize,
    /// How far an item's keys stand right of their dash.
    pub(super) item: usize,
    /// How far a mapping's keys, and a text's lines, stand right of their key.
    pub(super) step: usize,
}

impl Default for Manner {
    fn default() -> Self {
        Self {
            newline: "\n",
            dash: 2,
            item: 2,
            step: 2,
        }
    }
}

/// A value as it is written behind `key:`.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Written {
    /// What stands on the key's line; may be nothing.
    pub(super) inline: String,
    /// The lines below, each with its end; may be nothing.
    pub(super) body: String,
    /// Whether blank lines that follow would become part of the value.
    pub(super) keeps_blank_lines: bool,
}

impl Manner {
    /// `value` for a key in `column` (from 0).
    pub(super) fn value(&self, value: &Value<'_>, column: usize) -> Written {
        match value {
            Value::Text(text) if text.contains('\n') && can_be_block(text) => {
                self.block(text, column, column + self.step)
            }
            Value::Prompt { content, enabled } => self.value(&prompt(content, *enabled), column),
            Value::Map(fields) if fields.iter().any(is_written) => {
                self.mapping(fields, column + self.step)
            }
            Value::List(items) if !items.is_empty() => {
                let mut written = Written::default();
                for item in items {
                    let item = self.item(item, column + self.dash);
                    written.body.push_str(&item.body);
                    written.keeps_blank_lines = item.keeps_blank_lines;
                }
                written
            }
            other => Written {
                inline: in_flow(other, false),
                ..Written::default()
            },
        }
    }

    /// A text under a `|` behind a key in column `parent`.
    pub(super) fn block(&self, text: &str, parent: usize, column: usize) -> Written {
        let block = block_text(text, parent, column, self.newline);
        Written {
            keeps_blank_lines: block.header.ends_with('+'),
            inline: block.header,
            body: block.body,
        }
    }

    /// `key: value` as lines.
    pub(super) fn field(&self, field: &Field<'_>, column: usize) -> Written {
        let mut written = Written::default();
        self.push_field(field, column, &mut written);
        written
    }

    /// An item as lines, its dash in `column`.
    pub(super) fn item(&self, item: &Item<'_>, column: usize) -> Written {
        let mut written = Written::default();
        match &item.value {
            Value::Map(fields) if fields.iter().any(is_written) => {
                written = self.mapping(fields, column + self.item);
                // The first key stands on the dash's line.
                let indentation = " ".repeat(column + self.item);
                let rest = written.body.split_off(indentation.len());
                written.body =
                    format!("{}-{}{rest}", " ".repeat(column), " ".repeat(self.item - 1));
            }
            other => {
                written.body = format!(
                    "{}-{}{}{}",
                    " ".repeat(column),
                    " ".repeat(self.item - 1),
                    in_flow(other, false),
                    self.newline
                );
            }
        }
        written
    }

    /// The entries of a mapping as lines, their keys in `column`.
    pub(super) fn mapping(&self, fields: &[Field<'_>], column: usize) -> Written {
        let mut written = Written::default();
        for field in fields.iter().filter(|field| is_written(field)) {
            self.push_field(field, column, &mut written);
        }
        written
    }

    fn push_field(&self, field: &Field<'_>, column: usize, written: &mut Written) {
        let value = self.value(&field.value, column);
        let body = &mut written.body;
        body.extend(std::iter::repeat_n(' ', column));
        body.push_str(&on_one_line(field.key, Quotes::None, false));
        body.push(':');
        if !value.inline.is_empty() {
            body.push(' ');
            body.push_str(&value.inline);
        }
        body.push_str(self.newline);
        body.push_str(&value.body);
        written.keeps_blank_lines = value.keeps_blank_lines;
    }
}

/// Whether a new mapping has this key: not if leaving it out says the same.
fn is_written(field: &Field<'_>) -> bool {
    !field.optional && field.value != Value::Unchanged
}

/// A prompt as a mapping.
pub(super) fn prompt(content: &str, enabled: bool) -> Value<'_> {
    Value::Map(vec![
        Field {
            key: "content",
            value: Value::Text(content),
            optional: false,
        },
        Field {
            key: "enabled",
            value: Value::Flag(enabled),
            optional: enabled,
        },
    ])
}

/// `key: value` between braces.
pub(super) fn flow_field(field: &Field<'_>) -> String {
    format!(
        "{}: {}",
        on_one_line(field.key, Quotes::None, true),
        in_flow(&field.value, true)
    )
}

/// `value` on one line; `inside` brackets or braces, some texts need quotes that need none elsewhere.
pub(super) fn in_flow(value: &Value<'_>, inside: bool) -> String {
    match value {
        Value::Unchanged => String::new(),
        Value::Text(text) => on_one_line(text, Quotes::None, inside),
        Value::Flag(flag) => flag.to_string(),
        Value::Number(number) => number.to_string(),
        Value::Prompt { content, enabled } => in_flow(&prompt(content, *enabled), inside),
        Value::Map(fields) => {
            let fields: Vec<String> = fields
                .iter()
                .filter(|field| is_written(field))
                .map(flow_field)
                .collect();
            format!("{{{}}}", fields.join(", "))
        }
        Value::List(items) => {
            let items: Vec<String> = items
                .iter()
                .map(|item| in_flow(&item.value, true))
                .collect();
            format!("[{}]", items.join(", "))
        }
    }
}
