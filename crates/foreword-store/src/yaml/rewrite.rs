//! Computes the changes to a text after which it says something else, and touches no other byte.
//!
//! The tree of what the file says is compared with the value it should say. Where they differ, the smallest piece is
//! replaced: a text, a flag, an entry, an item. Lists are matched by the places that [`Item::from`] names. Items are
//! first put into their order (`reorder`), in passes of their own, so that here they only come and go.

mod replace;

use std::collections::{HashMap, HashSet};

use super::{
    document::RewriteError,
    emit::{Manner, Written, flow_field, in_flow, prompt},
    fields::{Entry, entries},
    flow,
    layout::{Layout, Row},
    rows::{Insertion, edit_rows},
    scalar::integer,
    shape::{Field, Item, Value},
    splice::Splices,
    tree::{Kind, NodeId, Tree},
};

/// The changes that make a file say `wanted`, with all lists in their order already.
pub(super) fn changes(layout: Layout<'_>, wanted: &Value<'_>) -> Result<Splices, RewriteError> {
    let mut rewriter = Rewriter {
        layout,
        manner: layout.manner(),
        splices: Splices::default(),
    };
    rewriter.value(Spot::root(layout), wanted)?;
    Ok(rewriter.splices)
}

/// A value in the file.
#[derive(Debug, Clone, Copy)]
pub(super) struct Spot<'d> {
    /// The value.
    pub(super) node: NodeId,
    /// Just behind the colon or dash that introduces it.
    pub(super) after: usize,
    /// The column of its key; none for the root and for items.
    pub(super) column: Option<usize>,
    /// Whether it stands between brackets or braces.
    pub(super) in_flow: bool,
    /// The anchor through which other places share it.
    pub(super) through: Option<&'d str>,
}

impl<'d> Spot<'d> {
    /// The spot of all there is.
    pub(super) fn root(layout: Layout<'d>) -> Self {
        Self {
            node: layout.tree.root(),
            after: layout.lines.first(),
            column: None,
            in_flow: false,
            through: None,
        }
    }

    /// The spot of the value itself where this is an alias, noting what it is shared through.
    pub(super) fn resolved(mut self, tree: &'d Tree) -> Self {
        let target = tree.resolve(self.node);
        self.through = self.through.or(tree.node(target).shared_anchor());
        self.node = target;
        self
    }

    /// Refuses a change here if other places would change with it.
    pub(super) fn own(&self) -> Result<(), RewriteError> {
        match self.through {
            None => Ok(()),
            Some(anchor) => Err(RewriteError::Aliased {
                anchor: anchor.to_owned(),
            }),
        }
    }
}

struct Rewriter<'d> {
    layout: Layout<'d>,
    manner: Manner,
    splices: Splices,
}

impl<'d> Rewriter<'d> {
    fn tree(&self) -> &'d Tree {
        self.layout.tree
    }

    /// Makes the value at `spot` say `wanted`.
    fn value(&mut self, spot: Spot<'d>, wanted: &Value<'_>) -> Result<(), RewriteError> {
        let spot = spot.resolved(self.tree());
        if says(self.tree(), spot.node, wanted) {
            return Ok(());
        }
        match (&self.tree().node(spot.node).kind, wanted) {
            (Kind::Mapping { .. }, Value::Prompt { content, enabled }) => {
                self.value(spot, &prompt(content, *enabled))
            }
            (
                Kind::Scalar { .. },
                Value::Prompt {
                    content,
                    enabled: true,
                },
            ) if !self.tree().is_null(spot.node) => self.set(spot, &Value::Text(content)),
            (Kind::Mapping { flow, entries }, Value::Map(fields)) if !entries.is_empty() => {
                self.map(spot, *flow, entries, fields)
            }
            (Kind::Sequence { flow, items }, Value::List(wanted)) if !items.is_empty() => {
                self.list(spot, *flow, items, wanted)
            }
            (_, Value::Map(fields)) if spot.node == self.tree().root() => {
                self.first_lines(spot, fields);
                Ok(())
            }
            _ => self.set(spot, wanted),
        }
    }

    fn map(
        &mut self,
        spot: Spot<'d>,
        flow: bool,
        own: &[(NodeId, NodeId)],
        fields: &[Field<'_>],
    ) -> Result<(), RewriteError> {
        let tree = self.tree();
        let in_force = entries(tree, spot.node).unwrap_or_default();
        let mut turnover = Turnover::new(own.len());
        let wanted: HashSet<&str> = fields.iter().map(|field| field.key).collect();
        let mut found: HashMap<&str, &Entry> = HashMap::with_capacity(in_force.len());
        for entry in &in_force {
            let key = tree.text(entry.key).unwrap_or_default();
            if wanted.contains(key) {
                found.insert(key, entry);
            } else if entry.merged_through.is_none() {
                self.may_go(spot, entry.value)?;
                turnover.removed[entry.row] = true;
            } else {
                // What a merge brings can be overruled here, but not taken away.
                self.merged(entry)?;
            }
        }
        let mut behind = None;
        for field in fields {
            match found.get(field.key).copied() {
                None if field.optional || field.value == Value::Unchanged => {}
                None => turnover.added.push((behind, field)),
                Some(entry) if entry.merged_through.is_none() => {
                    behind = Some(entry.row);
                    turnover.open[entry.row] = field.value.may_keep_blank_lines();
                    let column =
                        (!flow).then(|| self.layout.lines.column(self.layout.start(entry.key)));
                    let inner = Spot {
                        node: entry.value,
                        after: self.layout.after_key(entry.key),
                        column,
                        in_flow: spot.in_flow || flow,
                        through: spot.through,
                    };
                    self.value(inner, &field.value)?;
                }
                Some(entry) if says(tree, entry.value, &field.value) => {}
                Some(_) if field.value.is_leaf() => turnover.added.push((behind, field)),
                Some(entry) => self.merged(entry)?,
            }
        }
        if turnover.is_empty() {
            return Ok(());
        }
        spot.own()?;
        let last = turnover.last_staying();
        for (behind, _) in &mut turnover.added {
            *behind = behind.or(last);
        }
        if flow {
            self.flow_entries(spot, own, &turnover);
            return Ok(());
        }
        let rows = self.layout.entry_rows(own, spot.after);
        let (manner, column) = (self.manner, rows[0].column);
        self.rows(spot, rows, "{}", &turnover, |field| {
            manner.field(field, column)
        })
    }

    fn list(
        &mut self,
        spot: Spot<'d>,
        flow: bool,
        now: &[NodeId],
        wanted: &[Item<'_>],
    ) -> Result<(), RewriteError> {
        let rows = (!flow)
            .then(|| self.layout.item_rows(now, spot.after))
            .flatten();
        let mut turnover = Turnover::new(now.len());
        turnover.removed.fill(true);
        let mut behind = None;
        for item in wanted {
            let Some(from) = item.from else {
                turnover.added.push((behind, item));
                continue;
            };
            behind = Some(from);
            turnover.removed[from] = false;
            turnover.open[from] = item.value.may_keep_blank_lines();
            let inner = Spot {
                node: now[from],
                after: rows
                    .as_ref()
                    .map_or(spot.after, |rows| rows[from].start + 1),
                column: None,
                in_flow: spot.in_flow || flow,
                through: spot.through,
            };
            self.value(inner, &item.value)?;
        }
        if turnover.is_empty() {
            return Ok(());
        }
        spot.own()?;
        for (item, _) in now
            .iter()
            .zip(&turnover.removed)
            .filter(|(_, removed)| **removed)
        {
            self.may_go(spot, *item)?;
        }
        if flow {
            self.flow_items(spot, now, &turnover);
            return Ok(());
        }
        let Some(rows) = rows else {
            return Err(unwritable(
                "a list is written in a way that cannot be edited",
            ));
        };
        let (manner, column) = (self.manner_of_items(&rows, now), rows[0].column);
        self.rows(spot, rows, "[]", &turnover, |item| {
            manner.item(item, column)
        })
    }

    /// Changes the rows of a block collection; one that becomes empty is written as `brackets`.
    fn rows<T>(
        &mut self,
        spot: Spot<'d>,
        mut rows: Vec<Row>,
        brackets: &str,
        turnover: &Turnover<'_, T>,
        write: impl Fn(&T) -> Written,
    ) -> Result<(), RewriteError> {
        if turnover.added.is_empty() && turnover.last_staying().is_none() {
            return self.empty(spot, &rows, brackets);
        }
        for (row, open) in rows.iter_mut().zip(&turnover.open) {
            row.keeps_blank_lines |= open;
        }
        let insertions = turnover
            .added
            .iter()
            .map(|(behind, new)| Insertion {
                behind: *behind,
                written: write(new),
            })
            .collect();
        edit_rows(
            self.layout,
            &mut self.splices,
            &rows,
            &turnover.removed,
            insertions,
            self.manner.newline,
        )
    }

    fn flow_entries(
        &mut self,
        spot: Spot<'d>,
        own: &[(NodeId, NodeId)],
        turnover: &Turnover<'_, Field<'_>>,
    ) {
        let ranges: Vec<_> = own
            .iter()
            .map(|&(key, value)| {
                let end = self.layout.end(value, self.layout.after_key(key)).at;
                self.layout.start(key)..end
            })
            .collect();
        let added = turnover
            .added
            .iter()
            .map(|(behind, field)| (*behind, flow_field(field)))
            .collect();
        let whole = self.tree().node(spot.node).span.clone();
        flow::edit(
            self.layout,
            &mut self.splices,
            whole,
            &ranges,
            &turnover.removed,
            added,
        );
    }

    fn flow_items(&mut self, spot: Spot<'d>, now: &[NodeId], turnover: &Turnover<'_, Item<'_>>) {
        let ranges = self.layout.flow_ranges(now);
        let added = turnover
            .added
            .iter()
            .map(|(behind, item)| (*behind, in_flow(&item.value, true)))
            .collect();
        let whole = self.tree().node(spot.node).span.clone();
        flow::edit(
            self.layout,
            &mut self.splices,
            whole,
            &ranges,
            &turnover.removed,
            added,
        );
    }

    fn manner_of_items(&self, rows: &[Row], items: &[NodeId]) -> Manner {
        let mut manner = self.manner;
        let first = self.tree().node(items[0]);
        let start = first.span.start;
        if let Kind::Mapping { flow: false, .. } = first.kind
            && self.layout.lines.start(start) == self.layout.lines.start(rows[0].start)
        {
            manner.item = start - rows[0].start;
        }
        manner
    }

    /// Refuses to take out what other places point to.
    fn may_go(&self, spot: Spot<'d>, node: NodeId) -> Result<(), RewriteError> {
        spot.own()?;
        match shared_within(self.tree(), node) {
            None => Ok(()),
            Some(anchor) => Err(RewriteError::Aliased {
                anchor: anchor.to_owned(),
            }),
        }
    }

    /// Refuses to change what a merge brings.
    fn merged(&self, entry: &Entry) -> Result<(), RewriteError> {
        let source = entry
            .merged_through
            .map(|source| self.tree().resolve(source));
        let anchor = source.and_then(|source| self.tree().node(source).shared_anchor());
        Err(RewriteError::Aliased {
            anchor: anchor.unwrap_or("<<").to_owned(),
        })
    }
}

/// What comes and goes in a collection.
struct Turnover<'v, T> {
    /// For each of its rows, whether it goes.
    removed: Vec<bool>,
    /// For each of its rows, whether blank lines behind it may be a part of what it will say.
    open: Vec<bool>,
    /// What is new, and behind which row that stays it goes; none puts it first.
    added: Vec<(Option<usize>, &'v T)>,
}

impl<T> Turnover<'_, T> {
    fn new(rows: usize) -> Self {
        Self {
            removed: vec![false; rows],
            open: vec![false; rows],
            added: Vec::new(),
        }
    }

    fn is_empty(&self) -> bool {
        self.added.is_empty() && !self.removed.contains(&true)
    }

    fn last_staying(&self) -> Option<usize> {
        self.removed.iter().rposition(|removed| !removed)
    }
}

/// An anchor at or below `node` that an alias points to.
pub(super) fn shared_within(tree: &Tree, node: NodeId) -> Option<&str> {
    let found = tree.node(node);
    if let Some(anchor) = found.shared_anchor() {
        return Some(anchor);
    }
    match &found.kind {
        Kind::Sequence { items, .. } => items.iter().find_map(|item| shared_within(tree, *item)),
        Kind::Mapping { entries, .. } => entries.iter().find_map(|(key, value)| {
            shared_within(tree, *key).or_else(|| shared_within(tree, *value))
        }),
        Kind::Scalar { .. } | Kind::Alias(_) => None,
    }
}

/// Whether the value at `node` says `wanted` already, as far as that shows without looking into collections.
fn says(tree: &Tree, node: NodeId, wanted: &Value<'_>) -> bool {
    let node = tree.resolve(node);
    match wanted {
        Value::Unchanged => true,
        Value::Text(text) => !tree.is_null(node) && tree.text(node) == Some(text),
        Value::Flag(flag) => tree
            .text(node)
            .is_some_and(|word| word.eq_ignore_ascii_case(if *flag { "true" } else { "false" })),
        Value::Number(number) => tree.text(node).and_then(integer) == Some(*number),
        Value::Prompt { content, enabled } => {
            *enabled && !tree.is_null(node) && tree.text(node) == Some(content)
        }
        Value::List(items) => {
            items.is_empty()
                && (tree.is_null(node)
                    || matches!(&tree.node(node).kind, Kind::Sequence { items, .. } if items.is_empty()))
        }
        Value::Map(fields) => {
            fields.is_empty()
                && (tree.is_null(node)
                    || matches!(&tree.node(node).kind, Kind::Mapping { entries, .. } if entries.is_empty()))
        }
    }
}

pub(super) fn unwritable(why: &str) -> RewriteError {
    RewriteError::Unwritable(why.to_owned())
}
