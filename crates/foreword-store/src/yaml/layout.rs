//! Where the pieces of a tree stand in their text: what belongs to an entry or item when it is moved or taken out.
//!
//! The parser says where a value was seen, not where its lines end, where its header or dash is, or which comments are
//! about it. Comments stand between the nodes, so they are found by looking at the lines there:
//!
//! * indented deeper than the entry above them, they belong to that entry (a key that was commented out);
//! * else they belong to the entry directly below them;
//! * above the first entry they are a heading of the whole, unless a blank line parts them from it.

use std::ops::Range;

use super::{
    emit::Manner,
    lines::Lines,
    tree::{Kind, NodeId, Style, Tree},
};

/// A tree with its text.
#[derive(Debug, Clone, Copy)]
pub(super) struct Layout<'d> {
    pub(super) tree: &'d Tree,
    pub(super) lines: Lines<'d>,
}

/// Where a value ends.
#[derive(Debug, Clone, Copy)]
pub(super) struct End {
    /// Just behind its last byte.
    pub(super) at: usize,
    /// Whether that is the start of the line behind it, as it is for texts under a `|`.
    whole_lines: bool,
    /// Whether blank lines that follow would be a part of it.
    pub(super) keeps_blank_lines: bool,
}

/// The two places in which a value can stand.
#[derive(Debug, Clone)]
pub(super) struct Slot {
    /// On the line of its key: the value itself, the header of a text, or nothing.
    pub(super) inline: Range<usize>,
    /// The lines below, if it has some.
    pub(super) body: Option<Range<usize>>,
    /// The column of the lines of a text.
    pub(super) column: Option<usize>,
}

/// An entry of a block mapping, or an item of a block sequence, with all its lines.
#[derive(Debug, Clone)]
pub(super) struct Row {
    /// Its lines with the comments that belong to it.
    pub(super) range: Range<usize>,
    /// Where its key or dash stands.
    pub(super) start: usize,
    /// The column of its key or dash.
    pub(super) column: usize,
    /// Whether something else stands before it on its line, as the dash does before an item's first key.
    pub(super) shares_line: bool,
    /// Whether blank lines that follow would be a part of it.
    pub(super) keeps_blank_lines: bool,
}

/// The first part of a text under a `|` or `>`.
struct Header {
    range: Range<usize>,
    keep: bool,
}

impl<'d> Layout<'d> {
    /// The text of `range`.
    pub(super) fn slice(&self, range: Range<usize>) -> &'d str {
        &self.lines.0[range]
    }

    /// Where `node` starts, with its anchor and tag.
    pub(super) fn start(&self, node: NodeId) -> usize {
        let node = self.tree.node(node);
        match &node.properties {
            Some(properties) => properties.span.start.min(node.span.start),
            None => node.span.start,
        }
    }

    /// Just behind the colon of `key`, if it has one.
    pub(super) fn colon(&self, key: NodeId) -> Option<usize> {
        let at = self.lines.after_space(self.tree.node(key).span.end);
        (self.lines.0.as_bytes().get(at) == Some(&b':')).then_some(at + 1)
    }

    /// Just behind what introduces the value of `key`.
    pub(super) fn after_key(&self, key: NodeId) -> usize {
        self.colon(key).unwrap_or(self.tree.node(key).span.end)
    }

    /// Where `node` ends, which stands somewhere behind `after`.
    pub(super) fn end(&self, node: NodeId, after: usize) -> End {
        let found = self.tree.node(node);
        match &found.kind {
            Kind::Scalar {
                style: Style::Literal | Style::Folded,
                ..
            } => self.block_end(node, &self.header(node, after)),
            // The parser may see a value that is not there where the next thing is.
            Kind::Scalar {
                style: Style::Absent,
                ..
            } => End::within_line(self.behind_properties(node, after)),
            Kind::Sequence { flow: false, items } => match items.last() {
                Some(&last) if self.needs_introduction(last) => self
                    .item_ends(items, after)
                    .and_then(|ends| ends.last().map(|(_, end)| *end))
                    .unwrap_or(End::within_line(found.span.end)),
                Some(&last) => self.end(last, after),
                None => End::within_line(found.span.end),
            },
            Kind::Mapping {
                flow: false,
                entries,
            } => match entries[..] {
                [.., (key, value)] => self.end(value, self.after_key(key)),
                [] => End::within_line(found.span.end),
            },
            _ => End::within_line(found.span.end),
        }
    }

    /// The places of `node`, which is no block collection and stands somewhere behind `after`.
    pub(super) fn slot(&self, node: NodeId, after: usize) -> Slot {
        let found = self.tree.node(node);
        let behind_properties = self.behind_properties(node, after);
        match &found.kind {
            Kind::Scalar {
                style: Style::Literal | Style::Folded,
                ..
            } => {
                let header = self.header(node, after);
                let end = self.block_end(node, &header);
                Slot {
                    body: Some(self.lines.next(header.range.end)..end.at),
                    inline: header.range,
                    column: (!found.span.is_empty()).then(|| self.lines.column(found.span.start)),
                }
            }
            Kind::Scalar {
                style: Style::Absent,
                ..
            } => Slot::inline(behind_properties..behind_properties),
            _ => Slot::inline(found.span.clone()),
        }
    }

    /// Just behind the anchor and tag of `node`, or else behind `after`.
    pub(super) fn behind_properties(&self, node: NodeId, after: usize) -> usize {
        self.tree
            .node(node)
            .properties
            .as_ref()
            .map_or(after, |properties| properties.span.end.max(after))
    }

    /// The entries of a block mapping, which stands somewhere behind `after`.
    pub(super) fn entry_rows(&self, entries: &[(NodeId, NodeId)], after: usize) -> Vec<Row> {
        let mut floor = self.floor(after);
        let mut rows = Vec::with_capacity(entries.len());
        for (at, &(key, value)) in entries.iter().enumerate() {
            let mut start = self.start(key);
            let line = self.lines.start(start);
            let explicit = self.slice(line..start).trim_end_matches([' ', '\t']);
            if explicit.ends_with('?') {
                start = line + explicit.len() - 1;
            }
            let row = self.row(start, self.end(value, self.after_key(key)), floor, at == 0);
            floor = row.range.end;
            rows.push(row);
        }
        rows
    }

    /// The items of a block sequence, whose first dash stands somewhere behind `after`; none if that is not so.
    pub(super) fn item_rows(&self, items: &[NodeId], after: usize) -> Option<Vec<Row>> {
        let mut floor = self.floor(after);
        let mut rows = Vec::with_capacity(items.len());
        for (at, (dash, end)) in self.item_ends(items, after)?.into_iter().enumerate() {
            let row = self.row(dash, end, floor, at == 0);
            floor = row.range.end;
            rows.push(row);
        }
        Some(rows)
    }

    /// Where the dash of each item stands, and where the item ends.
    fn item_ends(&self, items: &[NodeId], after: usize) -> Option<Vec<(usize, End)>> {
        let mut behind = after;
        let mut ends = Vec::with_capacity(items.len());
        for &item in items {
            let dash = self.lines.after_space(behind);
            if self.lines.0.as_bytes().get(dash) != Some(&b'-') {
                return None;
            }
            let end = self.end(item, dash + 1);
            behind = end.at;
            ends.push((dash, end));
        }
        Some(ends)
    }

    /// Whether the end of `node` can only be found from what stands before it.
    fn needs_introduction(&self, node: NodeId) -> bool {
        matches!(
            self.tree.node(node).kind,
            Kind::Sequence { flow: false, .. }
                | Kind::Scalar {
                    style: Style::Absent | Style::Literal | Style::Folded,
                    ..
                }
        )
    }

    /// Where the items of a flow sequence stand.
    pub(super) fn flow_ranges(&self, items: &[NodeId]) -> Vec<Range<usize>> {
        items
            .iter()
            .map(|&item| {
                let start = self.start(item);
                start..self.end(item, start).at
            })
            .collect()
    }

    /// How the file is written, as far as its lists and mappings show.
    pub(super) fn manner(&self) -> Manner {
        let mut manner = Manner {
            newline: self.lines.newline(),
            ..Manner::default()
        };
        let Kind::Mapping {
            flow: false,
            entries,
        } = &self.tree.node(self.tree.root()).kind
        else {
            return manner;
        };
        for &(key, value) in entries {
            let column = self.lines.column(self.start(key));
            match &self.tree.node(value).kind {
                Kind::Sequence { flow: false, items } => {
                    let dash = self
                        .lines
                        .after_space(self.behind_properties(value, self.after_key(key)));
                    manner.dash = self.lines.column(dash).saturating_sub(column);
                    let item = self.tree.node(items[0]);
                    if matches!(item.kind, Kind::Mapping { flow: false, .. })
                        && self.lines.start(item.span.start) == self.lines.start(dash)
                    {
                        manner.item = item.span.start - dash;
                    }
                }
                Kind::Mapping { flow: false, .. } => {
                    let start = self.tree.node(value).span.start;
                    manner.step = self.lines.column(start).saturating_sub(column).clamp(1, 9);
                }
                _ => {}
            }
        }
        manner
    }

    /// Above this, nothing belongs to the first entry of a collection that stands behind `after`.
    fn floor(&self, after: usize) -> usize {
        if after <= self.lines.first() {
            self.lines.first()
        } else {
            self.lines.next(after)
        }
    }

    fn row(&self, start: usize, end: End, floor: usize, first: bool) -> Row {
        let line = self.lines.start(start);
        let column = start - line;
        let shares_line = !self.slice(line..start).trim_matches(' ').is_empty();
        let leading = if shares_line {
            start
        } else {
            self.leading_comments(line, floor, first)
        };
        let lines_end = self.lines_end(end);
        Row {
            range: leading..self.deeper_comments(lines_end, column),
            start,
            column,
            shares_line,
            keeps_blank_lines: end.keeps_blank_lines,
        }
    }

    fn leading_comments(&self, line: usize, floor: usize, first: bool) -> usize {
        let mut start = line;
        while start > floor {
            let previous = self.lines.previous(start);
            if previous < floor || self.lines.comment(previous).is_none() {
                let parted = previous >= floor && self.lines.is_blank(previous);
                return if first && !parted { line } else { start };
            }
            start = previous;
        }
        if first { line } else { start }
    }

    fn deeper_comments(&self, mut end: usize, column: usize) -> usize {
        let mut line = end;
        while line < self.lines.0.len() {
            match self.lines.comment(line) {
                Some(comment) if comment > column => end = self.lines.next(line),
                None if self.lines.is_blank(line) => {}
                _ => break,
            }
            line = self.lines.next(line);
        }
        end
    }

    /// The start of the line behind `end`.
    pub(super) fn lines_end(&self, end: End) -> usize {
        if end.whole_lines {
            end.at
        } else {
            self.lines.next(end.at)
        }
    }

    fn header(&self, node: NodeId, after: usize) -> Header {
        let bytes = self.lines.0.as_bytes();
        let start = self.lines.after_space(self.behind_properties(node, after));
        let length = bytes[start..]
            .iter()
            .take_while(|byte| matches!(byte, b'|' | b'>' | b'+' | b'-' | b'0'..=b'9'))
            .count();
        let range = start..start + length;
        Header {
            keep: self.slice(range.clone()).contains('+'),
            range,
        }
    }

    fn block_end(&self, node: NodeId, header: &Header) -> End {
        let span = &self.tree.node(node).span;
        let body = self.lines.next(header.range.end);
        let at = if span.is_empty() {
            // Without any line of text, only blank lines can be content.
            self.lines.after_blank_lines(body)
        } else if span.end == self.lines.0.len() && self.lines.column(span.end) > 0 {
            span.end
        } else {
            self.lines.start(span.end)
        };
        let at = at.max(body);
        End {
            at: if header.keep {
                at
            } else {
                self.lines.before_blank_lines(at, body)
            },
            whole_lines: true,
            keeps_blank_lines: header.keep,
        }
    }
}

impl End {
    fn within_line(at: usize) -> Self {
        Self {
            at,
            whole_lines: false,
            keeps_blank_lines: false,
        }
    }
}

impl Slot {
    fn inline(range: Range<usize>) -> Self {
        Self {
            inline: range,
            body: None,
            column: None,
        }
    }
}
