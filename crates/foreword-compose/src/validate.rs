//! Decides whether a draft is a library: every fault, each with a JSON pointer to where it lies.
//!
//! All faults are found at once, in the order of the file; a reader mends a file in one go. What a hostile file can
//! cause is bounded: only so many faults are described, the others are counted. Deliberately absent: everything that
//! depends on how the values are written down (unknown keys, wrong types, duplicate keys); that is the parsers' business.

use std::collections::{HashMap, HashSet};

use crate::{
    library::{LibraryDraft, MAX_ID_LENGTH, PlaceContent, Profile},
    nearest::{MAX_GUESSES, nearest},
    placeholder::is_name,
    request::SessionName,
};

/// One thing that makes a draft unusable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// A JSON pointer (RFC 6901) into the library as its file writes it, such as `/profiles/0/sections/2/use`.
    pub pointer: String,
    /// A stable word for the kind of fault, in kebab case.
    pub code: &'static str,
    /// What is wrong, with the value in backticks.
    pub message: String,
    /// What to do about it, such as the nearest valid name.
    pub hint: Option<String>,
}

/// Every fault of `draft`, in the order of its parts.
pub(crate) fn faults(draft: &LibraryDraft) -> Vec<Fault> {
    let mut faults = Faults::default();
    check_variables(draft, &mut faults);
    let shared = check_shared_sections(draft, &mut faults);
    check_profiles(draft, &shared, &mut faults);
    faults.finish()
}

fn check_variables(draft: &LibraryDraft, faults: &mut Faults) {
    for name in draft.variables.keys() {
        let pointer = || format!("/variables/{}", pointer_token(name));
        if SessionName::from_word(name).is_some() {
            faults.push(|| Fault {
                pointer: pointer(),
                code: "reserved-variable-name",
                message: format!("variable name {} belongs to the session", quoted(name)),
                hint: Some(
                    "choose another name; the value of this one comes with each session".to_owned(),
                ),
            });
        } else if !is_name(name) {
            faults.push(|| Fault {
                pointer: pointer(),
                code: "invalid-variable-name",
                message: format!("{} cannot be a variable name", quoted(name)),
                hint: Some(
                    "use a lower-case letter, then lower-case letters, digits and `_`".to_owned(),
                ),
            });
        }
    }
}

/// Checks the shared sections and answers their ids with the position of the first that has it.
fn check_shared_sections<'a>(
    draft: &'a LibraryDraft,
    faults: &mut Faults,
) -> HashMap<&'a str, usize> {
    let mut seen = HashMap::new();
    for (at, shared) in draft.sections.iter().enumerate() {
        let id = shared.section.id.as_str();
        check_id(id, || format!("/sections/{at}/id"), faults);
        if let Some(first) = seen.get(id) {
            faults.push(|| Fault {
                pointer: format!("/sections/{at}/id"),
                code: "duplicate-id",
                message: format!("section id {} is taken by `/sections/{first}`", quoted(id)),
                hint: Some("give each shared section an id of its own".to_owned()),
            });
        } else {
            seen.insert(id, at);
        }
    }
    seen
}

fn check_profiles(draft: &LibraryDraft, shared: &HashMap<&str, usize>, faults: &mut Faults) {
    let mut seen: HashMap<&str, usize> = HashMap::new();
    let mut default: Option<&Profile> = None;
    for (at, profile) in draft.profiles.iter().enumerate() {
        let id = profile.id.as_str();
        check_id(id, || format!("/profiles/{at}/id"), faults);
        if let Some(first) = seen.get(id) {
            faults.push(|| Fault {
                pointer: format!("/profiles/{at}/id"),
                code: "duplicate-id",
                message: format!("profile id {} is taken by `/profiles/{first}`", quoted(id)),
                hint: Some("give each profile an id of its own".to_owned()),
            });
        } else {
            seen.insert(id, at);
        }
        if profile.is_default {
            if let Some(first) = default {
                faults.push(|| Fault {
                    pointer: format!("/profiles/{at}/is_default"),
                    code: "second-default",
                    message: format!(
                        "profile {} is a second default beside {}",
                        quoted(id),
                        quoted(&first.id)
                    ),
                    hint: Some("mark one profile only as `is_default`".to_owned()),
                });
            } else {
                default = Some(profile);
            }
        }
        check_places(draft, profile, at, shared, faults);
    }
}

fn check_places(
    draft: &LibraryDraft,
    profile: &Profile,
    profile_at: usize,
    shared: &HashMap<&str, usize>,
    faults: &mut Faults,
) {
    let mut seen = HashSet::new();
    for (at, place) in profile.places.iter().enumerate() {
        let id = place.id();
        let pointer = |key| format!("/profiles/{profile_at}/sections/{at}/{key}");
        match &place.content {
            PlaceContent::Inline(_) => {
                check_id(id, || pointer("id"), faults);
                if let Some(first) = shared.get(id) {
                    faults.push(|| Fault {
                        pointer: pointer("id"),
                        code: "inline-id-taken",
                        message: format!(
                            "section id {} is taken by the shared section `/sections/{first}`",
                            quoted(id)
                        ),
                        hint: Some(
                            "write `use` instead of `id` to use the shared section, or choose another id"
                                .to_owned(),
                        ),
                    });
                } else {
                    check_repeat(id, &mut seen, || pointer("id"), faults);
                }
            }
            PlaceContent::Shared(_) => {
                check_use(draft, shared, id, &mut seen, || pointer("use"), faults);
            }
        }
    }
    for (at, id) in profile.section_ids.iter().enumerate() {
        let pointer = || format!("/profiles/{profile_at}/section_ids/{at}");
        check_use(draft, shared, id, &mut seen, pointer, faults);
    }
}

/// Checks that `id` is not among those `seen` before in its profile.
fn check_repeat<'a>(
    id: &'a str,
    seen: &mut HashSet<&'a str>,
    pointer: impl Fn() -> String,
    faults: &mut Faults,
) {
    if !seen.insert(id) {
        faults.push(|| Fault {
            pointer: pointer(),
            code: "duplicate-place",
            message: format!(
                "section {} stands in this profile more than once",
                quoted(id)
            ),
            hint: Some("keep one of the places".to_owned()),
        });
    }
}

/// Checks that `id` is a shared section that its profile does not use yet.
fn check_use<'a>(
    draft: &LibraryDraft,
    shared: &HashMap<&str, usize>,
    id: &'a str,
    seen: &mut HashSet<&'a str>,
    pointer: impl Fn() -> String,
    faults: &mut Faults,
) {
    if shared.contains_key(id) {
        return check_repeat(id, seen, pointer, faults);
    }
    let ids = draft.sections.iter().map(|shared| &*shared.section.id);
    let near = faults.guess(id, ids);
    faults.push(|| Fault {
        pointer: pointer(),
        code: "unknown-section",
        message: format!("there is no shared section {}", quoted(id)),
        hint: Some(match near {
            Some(near) => format!("did you mean {}?", quoted(near)),
            None => "add it under `sections`, or write the section here with an `id`".to_owned(),
        }),
    });
}

fn check_id(id: &str, pointer: impl Fn() -> String, faults: &mut Faults) {
    if is_id(id) {
        return;
    }
    faults.push(|| Fault {
        pointer: pointer(),
        code: "invalid-id",
        message: format!("{} cannot be an id", quoted(id)),
        hint: Some(format!(
            "use a letter or digit, then letters, digits, `.`, `_` and `-`, at most {MAX_ID_LENGTH} in all"
        )),
    });
}

/// Whether `word` matches `[A-Za-z0-9][A-Za-z0-9._-]{0,63}`.
fn is_id(word: &str) -> bool {
    word.len() <= MAX_ID_LENGTH
        && word.starts_with(|first: char| first.is_ascii_alphanumeric())
        && word
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte))
}

/// The largest number of faults that are described one by one.
const MAX_FAULTS: usize = 1_000;

/// Faults, up to [`MAX_FAULTS`]; those beyond are counted only.
#[derive(Default)]
struct Faults {
    described: Vec<Fault>,
    not_described: usize,
    guesses: usize,
}

impl Faults {
    fn push(&mut self, fault: impl FnOnce() -> Fault) {
        if self.described.len() < MAX_FAULTS {
            self.described.push(fault());
        } else {
            self.not_described += 1;
        }
    }

    /// The candidate that `word` probably means; none once there were [`MAX_GUESSES`].
    fn guess<'a>(
        &mut self,
        word: &str,
        candidates: impl Iterator<Item = &'a str>,
    ) -> Option<&'a str> {
        self.guesses += 1;
        if self.guesses > MAX_GUESSES {
            return None;
        }
        nearest(word, candidates)
    }

    fn finish(mut self) -> Vec<Fault> {
        if self.not_described > 0 {
            self.described.push(Fault {
                pointer: String::new(),
                code: "more-faults",
                message: format!("{} more faults are not listed", self.not_described),
                hint: Some("mend those listed, then check again".to_owned()),
            });
        }
        self.described
    }
}

/// The longest piece of a value that a message shows, in characters.
const SHOWN: usize = 80;

/// `value` in backticks, on one line and cut where it is long.
fn quoted(value: &str) -> String {
    let mut shown = String::from("`");
    for character in value.chars().take(SHOWN) {
        if character.is_control() {
            shown.extend(character.escape_default());
        } else {
            shown.push(character);
        }
    }
    if value.chars().nth(SHOWN).is_some() {
        shown.push('…');
    }
    shown.push('`');
    shown
}

/// `key` as a token of a JSON pointer.
fn pointer_token(key: &str) -> String {
    key.replace('~', "~0").replace('/', "~1")
}
