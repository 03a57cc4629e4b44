//! The entries of a mapping, with merge keys followed.

use std::collections::HashSet;

use super::tree::{Kind, NodeId, Tree};

/// One entry that is in force.
#[derive(Debug, Clone, Copy)]
pub(super) struct Entry {
    /// The key's node.
    pub(super) key: NodeId,
    /// The value's node.
    pub(super) value: NodeId,
    /// Its place among the entries of the mapping that it was written in.
    pub(super) row: usize,
    /// The value of the `<<` through which it came; none if the mapping has it itself.
    pub(super) merged_through: Option<NodeId>,
}

/// The entries of the mapping at `mapping`: its own in their order, then the merged ones that it does not have itself.
///
/// Where a key is there twice, the first one counts. Empty for anything but a mapping.
///
/// # Errors
///
/// The node that was to be merged but has no keys.
pub(super) fn entries(tree: &Tree, mapping: NodeId) -> Result<Vec<Entry>, NodeId> {
    let mut found = Vec::new();
    collect(tree, mapping, None, &mut HashSet::new(), &mut found)?;
    Ok(found)
}

fn collect<'t>(
    tree: &'t Tree,
    mapping: NodeId,
    through: Option<NodeId>,
    seen: &mut HashSet<&'t str>,
    found: &mut Vec<Entry>,
) -> Result<(), NodeId> {
    let Kind::Mapping { entries, .. } = &tree.node(mapping).kind else {
        return Ok(());
    };
    // Most mappings are small and merge nothing, so that nothing needs to be remembered.
    let merges = entries.iter().any(|(key, _)| tree.is_merge(*key));
    if !merges && through.is_none() {
        found.extend(
            entries
                .iter()
                .enumerate()
                .map(|(row, &(key, value))| Entry {
                    key,
                    value,
                    row,
                    merged_through: None,
                }),
        );
        return Ok(());
    }
    for (row, &(key, value)) in entries.iter().enumerate() {
        if !tree.is_merge(key) && tree.text(key).is_none_or(|word| seen.insert(word)) {
            found.push(Entry {
                key,
                value,
                row,
                merged_through: through,
            });
        }
    }
    for &(_, value) in entries.iter().filter(|(key, _)| tree.is_merge(*key)) {
        let target = tree.resolve(value);
        match &tree.node(target).kind {
            Kind::Mapping { .. } => collect(tree, target, through.or(Some(value)), seen, found)?,
            Kind::Sequence { items, .. } => {
                for &item in items {
                    let source = tree.resolve(item);
                    if !matches!(tree.node(source).kind, Kind::Mapping { .. }) {
                        return Err(item);
                    }
                    collect(tree, source, through.or(Some(item)), seen, found)?;
                }
            }
            _ => return Err(value),
        }
    }
    Ok(())
}
