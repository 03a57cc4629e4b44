//! Changes to a text by place.

use std::ops::Range;

/// The changes that one edit makes.
#[derive(Debug, Default)]
pub(super) struct Splices {
    splices: Vec<(Range<usize>, String)>,
}

/// Two changes of one place.
#[derive(Debug)]
pub(super) struct Overlap;

impl Splices {
    /// Whether there is nothing to change.
    pub(super) fn is_empty(&self) -> bool {
        self.splices.is_empty()
    }

    /// Puts `replacement` where `range` is.
    pub(super) fn replace(&mut self, range: Range<usize>, replacement: impl Into<String>) {
        let replacement = replacement.into();
        if !(range.is_empty() && replacement.is_empty()) {
            self.splices.push((range, replacement));
        }
    }

    /// Puts `text` at `at`, behind what was put there before.
    pub(super) fn insert(&mut self, at: usize, text: impl Into<String>) {
        self.replace(at..at, text);
    }

    /// Takes `range` out.
    pub(super) fn delete(&mut self, range: Range<usize>) {
        self.replace(range, "");
    }

    /// `text` with all changes made.
    ///
    /// What is only taken out may overlap, and something may be put in amid it.
    pub(super) fn apply(self, text: &str) -> Result<String, Overlap> {
        let splices = self.in_order()?;
        let grown: usize = splices
            .iter()
            .map(|(_, replacement)| replacement.len())
            .sum();
        let mut changed = String::with_capacity(text.len() + grown);
        let mut done = 0;
        for (range, replacement) in &splices {
            changed.push_str(&text[done..range.start]);
            changed.push_str(replacement);
            done = range.end;
        }
        changed.push_str(&text[done..]);
        Ok(changed)
    }

    fn in_order(mut self) -> Result<Vec<(Range<usize>, String)>, Overlap> {
        // Stable: what was inserted first at one place comes first, and before what is taken out there.
        self.splices
            .sort_by_key(|(range, _)| (range.start, !range.is_empty()));
        let mut ordered: Vec<(Range<usize>, String)> = Vec::with_capacity(self.splices.len());
        for (range, replacement) in self.splices {
            let Some((last, text)) = ordered
                .last_mut()
                .filter(|(last, _)| range.start < last.end)
            else {
                ordered.push((range, replacement));
                continue;
            };
            if !text.is_empty() {
                return Err(Overlap);
            }
            match (range.is_empty(), replacement.is_empty()) {
                (_, true) => last.end = last.end.max(range.end),
                (true, false) => {
                    // Around what is put there, all the rest is still taken out.
                    let rest = range.end..last.end;
                    last.end = range.start;
                    ordered.push((range, replacement));
                    ordered.push((rest, String::new()));
                }
                (false, false) => return Err(Overlap),
            }
        }
        Ok(ordered)
    }
}
