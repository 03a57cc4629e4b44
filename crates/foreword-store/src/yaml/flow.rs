//! Takes items between brackets or braces out and puts new ones in.

use std::ops::Range;

use super::{layout::Layout, rows::runs, splice::Splices};

/// Changes the collection at `whole` whose items stand at `ranges`; each of `added` goes behind an item that stays, or first.
pub(super) fn edit(
    layout: Layout<'_>,
    splices: &mut Splices,
    whole: Range<usize>,
    ranges: &[Range<usize>],
    removed: &[bool],
    added: Vec<(Option<usize>, String)>,
) {
    if removed.iter().all(|removed| *removed) {
        // Nothing stays that could part the new items from each other.
        let inside = whole.start + 1..whole.end - 1;
        let texts: Vec<String> = added.into_iter().map(|(_, text)| text).collect();
        splices.replace(inside, texts.join(", "));
        return;
    }
    for (behind, text) in added {
        match behind {
            Some(at) => splices.insert(ranges[at].end, format!(", {text}")),
            None => splices.insert(ranges[0].start, format!("{text}, ")),
        }
    }
    for run in runs(removed) {
        remove(layout, splices, ranges, run);
    }
}

/// Takes a run of neighbours out with their commas; comments around them stay.
fn remove(layout: Layout<'_>, splices: &mut Splices, ranges: &[Range<usize>], run: Range<usize>) {
    let (first, last) = (&ranges[run.start], &ranges[run.end - 1]);
    let next = ranges.get(run.end);
    let before = run.start.checked_sub(1).map(|before| &ranges[before]);
    let comments = |range: Range<usize>| layout.slice(range).contains('#');
    match (before, next) {
        (_, Some(next)) if !comments(last.end..next.start) => {
            splices.delete(first.start..next.start);
        }
        (Some(before), None) if !comments(before.end..first.start) => {
            splices.delete(before.end..last.end);
        }
        _ => {
            let comma = layout.lines.after_space(last.end);
            let end = if layout.lines.0.as_bytes().get(comma) == Some(&b',')
                && !comments(last.end..comma)
            {
                comma + 1
            } else {
                last.end
            };
            splices.delete(first.start..end);
        }
    }
}
