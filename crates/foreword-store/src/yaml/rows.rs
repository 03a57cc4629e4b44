//! Takes rows of a block collection out and puts new ones in.

use std::ops::Range;

use super::{
    document::RewriteError,
    emit::Written,
    layout::{Layout, Row},
    rewrite::unwritable,
    splice::Splices,
};

/// New lines for a collection.
#[derive(Debug)]
pub(super) struct Insertion {
    /// The row behind which they go, one that stays; none puts them first.
    pub(super) behind: Option<usize>,
    /// The lines.
    pub(super) written: Written,
}

/// Takes the `removed` ones of `rows` out and puts `insertions` in, which are in order.
pub(super) fn edit_rows(
    layout: Layout<'_>,
    splices: &mut Splices,
    rows: &[Row],
    removed: &[bool],
    insertions: Vec<Insertion>,
    newline: &'static str,
) -> Result<(), RewriteError> {
    for run in runs(removed) {
        remove_run(layout, splices, rows, run)?;
    }
    let mut insertions = insertions.into_iter().peekable();
    while let Some(Insertion { behind, written }) = insertions.next() {
        let mut group = vec![written];
        while let Some(next) = insertions.next_if(|next| next.behind == behind) {
            group.push(next.written);
        }
        insert_rows(layout, splices, rows, behind, &group, newline)?;
    }
    Ok(())
}

/// The runs of neighbours that are `removed`.
pub(super) fn runs(removed: &[bool]) -> Vec<Range<usize>> {
    let mut start = 0;
    let mut runs = Vec::new();
    for run in removed.chunk_by(|left, right| left == right) {
        let end = start + run.len();
        if run[0] {
            runs.push(start..end);
        }
        start = end;
    }
    runs
}

/// Takes a run of neighbours out, with as many blank lines as there are too many then.
///
/// Comments that belong to no row stay.
pub(super) fn remove_run(
    layout: Layout<'_>,
    splices: &mut Splices,
    rows: &[Row],
    run: Range<usize>,
) -> Result<(), RewriteError> {
    let lines = layout.lines;
    let (first, last) = (&rows[run.start], &rows[run.end - 1]);
    for at in run.clone() {
        let row = &rows[at];
        if row.shares_line {
            remove_from_line(
                layout,
                splices,
                row,
                rows.get(run.end).filter(|_| run.len() == 1),
            )?;
        } else {
            splices.delete(row.range.clone());
        }
        let gap = row.range.end..lines.after_blank_lines(row.range.end);
        if at + 1 < run.end && gap.end == rows[at + 1].range.start {
            splices.delete(gap);
        }
    }
    let before = run.start.checked_sub(1).map(|before| &rows[before]);
    let floor = before.map_or(first.range.start, |before| before.range.end);
    let above = lines.before_blank_lines(first.range.start, floor)..first.range.start;
    let below = last.range.end..lines.after_blank_lines(last.range.end);
    match before {
        // The blank lines below would become a part of the text above.
        Some(before) if before.keeps_blank_lines => splices.delete(below),
        // What follows is no row of this collection, and its distance is its own.
        Some(_) if run.end == rows.len() => splices.delete(above),
        Some(_) if above.is_empty() => {}
        _ => splices.delete(below),
    }
    Ok(())
}

/// Takes the first key of an item out, which stands behind the item's dash.
fn remove_from_line(
    layout: Layout<'_>,
    splices: &mut Splices,
    row: &Row,
    next: Option<&Row>,
) -> Result<(), RewriteError> {
    let lines = layout.lines;
    let next = next.ok_or_else(|| unwritable("the first keys of an item cannot be taken out"))?;
    let adjacent = row.range.end == lines.start(next.start);
    splices.delete(if adjacent {
        // The next key moves up behind the dash.
        row.start..next.start
    } else {
        let before = layout.slice(lines.start(row.start)..row.start);
        let blanks = before.len() - before.trim_end_matches([' ', '\t']).len();
        row.start - blanks..lines.end(lines.previous(row.range.end))
    });
    Ok(())
}

fn insert_rows(
    layout: Layout<'_>,
    splices: &mut Splices,
    rows: &[Row],
    behind: Option<usize>,
    group: &[Written],
    newline: &'static str,
) -> Result<(), RewriteError> {
    let lines = layout.lines;
    let parted = are_parted(layout, rows, behind);
    let mut text = String::new();
    let at = if let Some(row) = behind {
        let mut open = rows[row].keeps_blank_lines;
        for written in group {
            if parted && !open {
                text.push_str(newline);
            }
            text.push_str(&written.body);
            open = written.keeps_blank_lines;
        }
        rows[row].range.end
    } else {
        if rows[0].shares_line {
            return Err(unwritable(
                "nothing can be put before the first key of an item",
            ));
        }
        for written in group {
            text.push_str(&written.body);
            if parted && !written.keeps_blank_lines {
                text.push_str(newline);
            }
        }
        rows[0].range.start
    };
    let open = group
        .last()
        .is_some_and(|written| written.keeps_blank_lines);
    put_lines(layout, splices, at..at, text, newline);
    if open {
        splices.delete(at..lines.after_blank_lines(at));
    }
    Ok(())
}

/// Whether blank lines part the rows around the place behind `behind`.
fn are_parted(layout: Layout<'_>, rows: &[Row], behind: Option<usize>) -> bool {
    let gap = |at: usize| {
        rows.get(at + 1).is_some_and(|next| {
            next.range.start > rows[at].range.end && layout.lines.is_blank(rows[at].range.end)
        })
    };
    match behind {
        None => gap(0),
        Some(at) if at + 1 < rows.len() => gap(at),
        Some(at) => at > 0 && gap(at - 1),
    }
}

/// Replaces whole lines; behind a last line without an end, that end comes first.
pub(super) fn put_lines(
    layout: Layout<'_>,
    splices: &mut Splices,
    range: Range<usize>,
    mut text: String,
    newline: &'static str,
) {
    let all = layout.lines.0;
    if range.start == all.len() && !all.ends_with(['\n', '\r']) && !text.is_empty() {
        text.insert_str(0, newline);
    }
    splices.replace(range, text);
}
