//! The workspace guide: the block of context that tells the model where it is, and the line that opens it.
//!
//! The line carries the revision of the very text that it stands in, so the text is composed with zeros in that place,
//! hashed, and then sealed.

use std::{borrow::Cow, ops::Range};

use foreword_compose::{
    Composition, ContextBlock, Library, PartSource, Trust,
    revision::{REVISION_LENGTH, ZERO_REVISION},
};

use super::surroundings::Surroundings;

/// The word under which explanations name the block.
const BLOCK_ID: &str = "workspace-guide";

/// What stands before and after the name of the place where the text can be read again, and after its revision.
const BEFORE_PLACE: &str =
    "These instructions as a whole, what stands before this line too, are also ";
const BEFORE_REVISION: &str = ", revision `";
const AFTER_REVISION: &str = "`; ";

/// Which line opens the guide.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Opening {
    /// That the text can be read again, and its revision.
    Identity,
    /// That the text is nobody's in particular.
    Neutral,
    /// None: whoever fills in the placeholders changes the text, so nothing said about it would stay true.
    None,
}

/// The guide as a block of context; none where the library has it switched off or left it blank.
pub(super) fn block<'a>(
    library: &'a Library,
    surroundings: &'a Surroundings,
    opening: Opening,
) -> Option<ContextBlock<'a>> {
    let content = match &library.draft().workspace_guide {
        None => surroundings.guide(),
        Some(guide) if guide.enabled => &guide.content,
        Some(_) => return None,
    };
    let content = without_leading_blank_lines(content);
    if content.is_empty() {
        return None;
    }
    let text = match opening {
        Opening::Identity => {
            let (place, again) = (surroundings.full_text(), surroundings.again());
            Cow::Owned(format!(
                "{BEFORE_PLACE}{place}{BEFORE_REVISION}{ZERO_REVISION}{AFTER_REVISION}{again}\n\n{content}"
            ))
        }
        Opening::Neutral => {
            let yours = surroundings.those_of_yours();
            Cow::Owned(format!(
                "These instructions are the same for every session; {yours}, with its values filled in.\n\n{content}"
            ))
        }
        Opening::None => Cow::Borrowed(content),
    };
    Some(ContextBlock {
        id: BLOCK_ID.into(),
        name: "Workspace guide".into(),
        text,
        trust: Trust::Library,
    })
}

/// Computes the revision of the composed text and writes it into the line that opens the guide, if the line is there.
pub(super) fn seal(composition: &mut Composition, surroundings: &Surroundings) -> String {
    let Some(digits) = digits(composition, surroundings) else {
        return foreword_compose::revision(&composition.text, None);
    };
    let revision = foreword_compose::revision(&composition.text, Some(digits.clone()));
    // The digits depend on every byte of the text, the session's own included.
    composition.stable_prefix = composition.stable_prefix.min(digits.start);
    composition.text.replace_range(digits, &revision);
    revision
}

/// Where the text carries its own revision.
fn digits(composition: &Composition, surroundings: &Surroundings) -> Option<Range<usize>> {
    let guide = composition
        .parts
        .iter()
        .find(|part| part.source == PartSource::Context && part.id == BLOCK_ID)?;
    let text = &composition.text[guide.range.clone()];
    let after = text
        .strip_prefix(BEFORE_PLACE)?
        .strip_prefix(surroundings.full_text())?
        .strip_prefix(BEFORE_REVISION)?;
    let start = guide.range.end - after.len();
    after
        .starts_with(ZERO_REVISION)
        .then_some(start..start + REVISION_LENGTH)
}

/// Leading blank lines go, the indentation of the first line with text stays; blank text becomes empty.
fn without_leading_blank_lines(text: &str) -> &str {
    let indented = text.trim_start();
    if indented.is_empty() {
        return "";
    }
    let blank = &text[..text.len() - indented.len()];
    let line = blank.rfind(['\n', '\r']).map_or(0, |end| end + 1);
    &text[line..]
}
