//! Replaces a value as a whole: on the line of its key, and in the lines below.

use super::super::{
    document::RewriteError,
    emit::{Written, in_flow},
    layout::Row,
    rows::{put_lines, remove_run},
    scalar::{Quotes, can_be_block, on_one_line},
    shape::{Field, Value},
    tree::{Kind, Style},
};
use super::{Rewriter, Spot};

impl<'d> Rewriter<'d> {
    /// Replaces the value at `spot`, whatever it is.
    pub(super) fn set(&mut self, spot: Spot<'d>, wanted: &Value<'_>) -> Result<(), RewriteError> {
        spot.own()?;
        self.may_go(spot, spot.node)?;
        let place = self.layout.slot(spot.node, spot.after);
        let style = match &self.tree().node(spot.node).kind {
            Kind::Scalar { style, .. } => Some(*style),
            _ => None,
        };
        let written = match (wanted, spot.column) {
            (Value::Text(text), column) => {
                self.text(text, style, column.filter(|_| !spot.in_flow), place.column)
            }
            (wanted, Some(column)) if !spot.in_flow => self.manner.value(wanted, column),
            (wanted, _) => Written {
                inline: in_flow(wanted, spot.in_flow),
                ..Written::default()
            },
        };
        let lines = self.layout.lines;
        let mut inline = place.inline;
        let before = lines.0.as_bytes()[..inline.start].last();
        let mut on_line = written.inline;
        if on_line.is_empty() {
            while matches!(
                lines.0.as_bytes()[..inline.start].last(),
                Some(b' ' | b'\t')
            ) {
                inline.start -= 1;
            }
        } else if !matches!(before, Some(b' ' | b'\t' | b'\n' | b'\r')) {
            let colon = if before == Some(&b':') || !spot.in_flow {
                ""
            } else {
                ":"
            };
            on_line = format!("{colon} {on_line}");
        }
        let line_end = lines.next(inline.end);
        let body = place.body.unwrap_or(line_end..line_end);
        if written.keeps_blank_lines {
            self.splices
                .delete(body.end..lines.after_blank_lines(body.end));
        }
        self.splices.replace(inline, on_line);
        put_lines(
            self.layout,
            &mut self.splices,
            body,
            written.body,
            self.manner.newline,
        );
        Ok(())
    }

    /// `text` in the style in which the value is written now, if that can say it.
    fn text(
        &self,
        text: &str,
        style: Option<Style>,
        key: Option<usize>,
        column: Option<usize>,
    ) -> Written {
        let was_block = matches!(style, Some(Style::Literal | Style::Folded));
        if let Some(key) = key
            && (text.contains('\n') || was_block)
            && can_be_block(text)
        {
            // The indicator, where one is needed, is a single digit.
            let column = column
                .filter(|column| *column > key && *column <= key + 9)
                .unwrap_or(key + self.manner.step);
            return self.manner.block(text, key, column);
        }
        let quotes = match style {
            Some(Style::Single) => Quotes::Single,
            Some(Style::Double) => Quotes::Double,
            _ => Quotes::None,
        };
        Written {
            inline: on_one_line(text, quotes, key.is_none()),
            ..Written::default()
        }
    }

    /// Writes the first values of a library that was written as `{}`.
    pub(super) fn first_lines(&mut self, spot: Spot<'d>, fields: &[Field<'_>]) {
        let lines = self.layout.lines;
        let braces = self.tree().node(spot.node).span.clone();
        let (start, next) = (lines.start(braces.start), lines.next(braces.end));
        let written = self.manner.mapping(fields, 0);
        let alone = self.layout.slice(start..lines.end(braces.end)).trim_end()
            == self.layout.slice(braces.clone());
        let place = if alone {
            start..next
        } else {
            self.splices.delete(braces);
            next..next
        };
        put_lines(
            self.layout,
            &mut self.splices,
            place,
            written.body,
            self.manner.newline,
        );
        if written.keeps_blank_lines {
            self.splices.delete(next..lines.after_blank_lines(next));
        }
    }

    /// Takes out all rows of a collection and writes `brackets` instead.
    pub(super) fn empty(
        &mut self,
        spot: Spot<'d>,
        rows: &[Row],
        brackets: &str,
    ) -> Result<(), RewriteError> {
        if spot.column.is_some() {
            let at = self.layout.behind_properties(spot.node, spot.after);
            self.splices.insert(at, format!(" {brackets}"));
        } else {
            let line = format!("{brackets}{}", self.manner.newline);
            self.splices.insert(rows[0].range.start, line);
        }
        remove_run(self.layout, &mut self.splices, rows, 0..rows.len())
    }
}
