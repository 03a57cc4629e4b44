//! Puts the items of lists into another order.
//!
//! Items change places; what stands between them, blank lines and a heading, stays. A list inside an item that moves
//! waits for the next pass.

use super::{
    document::RewriteError,
    fields::entries,
    layout::Layout,
    rewrite::{Spot, shared_within, unwritable},
    shape::{Item, Value},
    splice::Splices,
    tree::{Kind, NodeId},
};

/// The changes that put the outermost lists that are in another order than in `wanted` into that order.
pub(super) fn moves(layout: Layout<'_>, wanted: &Value<'_>) -> Result<Splices, RewriteError> {
    let mut mover = Mover {
        layout,
        newline: None,
        splices: Splices::default(),
    };
    mover.value(Spot::root(layout), wanted)?;
    Ok(mover.splices)
}

struct Mover<'d> {
    layout: Layout<'d>,
    newline: Option<&'static str>,
    splices: Splices,
}

impl<'d> Mover<'d> {
    fn value(&mut self, spot: Spot<'d>, wanted: &Value<'_>) -> Result<(), RewriteError> {
        let tree = self.layout.tree;
        let spot = spot.resolved(tree);
        match (&tree.node(spot.node).kind, wanted) {
            (Kind::Mapping { flow, .. }, Value::Map(fields)) => {
                let entries = entries(tree, spot.node).unwrap_or_default();
                let collections = fields
                    .iter()
                    .filter(|field| matches!(field.value, Value::Map(_) | Value::List(_)));
                for field in collections {
                    let mut entries = entries.iter();
                    let entry = entries.find(|entry| tree.text(entry.key) == Some(field.key));
                    let Some(entry) = entry else { continue };
                    let inner = Spot {
                        node: entry.value,
                        after: self.layout.after_key(entry.key),
                        in_flow: spot.in_flow || *flow,
                        ..spot
                    };
                    self.value(inner, &field.value)?;
                }
                Ok(())
            }
            (Kind::Sequence { flow, items }, Value::List(wanted)) => {
                self.list(spot, *flow, items, wanted)
            }
            _ => Ok(()),
        }
    }

    fn list(
        &mut self,
        spot: Spot<'d>,
        flow: bool,
        now: &[NodeId],
        wanted: &[Item<'_>],
    ) -> Result<(), RewriteError> {
        let order: Vec<usize> = wanted.iter().filter_map(|item| item.from).collect();
        if order.is_sorted() {
            for item in wanted {
                if let Some(from) = item.from {
                    let inner = Spot {
                        node: now[from],
                        ..spot
                    };
                    self.value(inner, &item.value)?;
                }
            }
            return Ok(());
        }
        spot.own()?;
        let mut slots = order.clone();
        slots.sort_unstable();
        let moved: Vec<(usize, usize)> = slots
            .into_iter()
            .zip(order)
            .filter(|(slot, item)| slot != item)
            .collect();
        for (_, item) in &moved {
            if let Some(anchor) = shared_within(self.layout.tree, now[*item]) {
                return Err(RewriteError::Aliased {
                    anchor: anchor.to_owned(),
                });
            }
        }
        if flow {
            let ranges = self.layout.flow_ranges(now);
            for (slot, item) in moved {
                let text = self.layout.slice(ranges[item].clone());
                self.splices.replace(ranges[slot].clone(), text);
            }
            return Ok(());
        }
        self.block(spot, now, &moved)
    }

    fn block(
        &mut self,
        spot: Spot<'d>,
        now: &[NodeId],
        moved: &[(usize, usize)],
    ) -> Result<(), RewriteError> {
        let lines = self.layout.lines;
        let Some(rows) = self
            .layout
            .item_rows(now, spot.after)
            .filter(|rows| rows.iter().all(|row| !row.shares_line))
        else {
            return Err(unwritable(
                "a list is written in a way that cannot be reordered",
            ));
        };
        for &(slot, item) in moved {
            let range = rows[slot].range.clone();
            let mut text = self.layout.slice(rows[item].range.clone()).to_owned();
            if !text.ends_with(['\n', '\r']) {
                text.push_str(self.newline.get_or_insert_with(|| lines.newline()));
            }
            if rows[item].keeps_blank_lines {
                // They would become a part of the text that now stands above them.
                self.splices
                    .delete(range.end..lines.after_blank_lines(range.end));
            }
            self.splices.replace(range, text);
        }
        Ok(())
    }
}
