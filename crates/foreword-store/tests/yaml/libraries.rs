//! Libraries and edits, made at random.

use foreword_compose::{
    GlobalPrompt, LibraryDraft, Profile, Section, SectionType, SharedSection, WorkspaceGuide,
    library::{Place, PlaceContent},
};
use proptest::{collection::vec, option, prelude::*, sample::select};

/// Texts with everything that is special somewhere in YAML.
pub(crate) fn text() -> impl Strategy<Value = String> {
    let pieces = select(vec![
        "a",
        "word",
        "two words",
        " ",
        "  ",
        "\n",
        "\n\n",
        "\t",
        "#",
        " # ",
        ": ",
        ":",
        "- ",
        "-",
        "é",
        "你",
        "🙂",
        "'",
        "\"",
        "|",
        ">",
        "\\",
        "{",
        "}",
        "[",
        "]",
        ",",
        "*",
        "&",
        "!",
        "%",
        "@",
        "`",
        "?",
        "=",
        "---",
        "...",
        "{chat_id}",
    ]);
    let odd = select(vec![
        "\r", "\r\n", "\0", "\u{1}", "\u{7f}", "\u{85}", "\u{2028}", "\u{feff}", "\u{a0}",
        "\u{ffff}",
    ]);
    let words = select(vec![
        "",
        "yes",
        "No",
        "on",
        "y",
        "null",
        "~",
        "true",
        "012",
        "1_000",
        "1e3",
        ".inf",
        "0x1F",
        "2026-11-30",
        "12:30",
        "=",
        "<<",
        "-",
        "?",
        "a\n",
        "a\n\n",
        " a",
        "\na",
        "a\n ",
        "a\n   \n",
        "\n",
        " ",
        "a b\n\n\n",
        "\ta",
        "a\t",
    ]);
    prop_oneof![
        4 => vec(pieces.clone(), 0..12).prop_map(|pieces| pieces.concat()),
        3 => vec("[a-z]{1,8}( [a-z]{1,8}){0,6}", 1..5).prop_map(|lines| lines.join("\n")),
        2 => words.prop_map(str::to_owned),
        1 => vec(prop_oneof![4 => pieces, 1 => odd], 0..12).prop_map(|pieces| pieces.concat()),
    ]
}

fn line() -> impl Strategy<Value = String> {
    prop_oneof![
        3 => "[A-Za-z]{1,8}( [a-z]{1,6}){0,3}",
        1 => text(),
    ]
}

fn order() -> impl Strategy<Value = i64> {
    prop_oneof![2 => Just(0), 3 => -3..100_i64]
}

fn section(id: String) -> impl Strategy<Value = Section> {
    (
        option::of(line()),
        select(SectionType::ALL.to_vec()),
        text(),
    )
        .prop_map(move |(name, section_type, content)| Section {
            name: name.unwrap_or_else(|| id.clone()),
            id: id.clone(),
            section_type,
            content,
        })
}

fn shared_section(id: String) -> impl Strategy<Value = SharedSection> {
    (section(id), option::of(line())).prop_map(|(section, description)| SharedSection {
        section,
        description,
    })
}

fn place(content: impl Strategy<Value = PlaceContent>) -> impl Strategy<Value = Place> {
    (content, any::<bool>(), order(), order()).prop_map(|(content, enabled, order, priority)| {
        Place {
            content,
            enabled,
            order,
            priority,
        }
    })
}

fn profile(id: String, shared: usize) -> impl Strategy<Value = Profile> {
    let inline = (0..3_usize).prop_flat_map(|count| {
        (0..count)
            .map(|at| place(section(format!("own{at}")).prop_map(PlaceContent::Inline)))
            .collect::<Vec<_>>()
    });
    // Which shared sections it uses, and how: not at all, in `sections`, in `section_ids`.
    let uses = vec((0..3_u8, any::<bool>(), order()), shared);
    (
        option::of(line()),
        option::of(line()),
        any::<bool>(),
        inline,
        uses,
        any::<u64>(),
    )
        .prop_map(
            move |(name, description, tools_prompt, mut places, uses, seed)| {
                let mut section_ids = Vec::new();
                for (at, (how, enabled, order)) in uses.into_iter().enumerate() {
                    match how {
                        1 => places.push(Place {
                            content: PlaceContent::Shared(format!("shared{at}")),
                            enabled,
                            order,
                            priority: 0,
                        }),
                        2 => section_ids.push(format!("shared{at}")),
                        _ => {}
                    }
                }
                let places_count = places.len().max(1);
                places.rotate_left(usize::try_from(seed % 7).unwrap() % places_count);
                Profile {
                    name: name.unwrap_or_else(|| id.clone()),
                    id: id.clone(),
                    description,
                    is_default: false,
                    tools_prompt,
                    places,
                    section_ids,
                }
            },
        )
}

fn prompt() -> impl Strategy<Value = Option<(String, bool)>> {
    option::of((text(), any::<bool>()))
}

/// A library in which every reference resolves.
pub(crate) fn library() -> impl Strategy<Value = LibraryDraft> {
    (0..4_usize, 0..4_usize).prop_flat_map(|(shared, profiles)| {
        (
            prompt(),
            vec(text(), 0..3),
            (0..shared)
                .map(|at| shared_section(format!("shared{at}")))
                .collect::<Vec<_>>(),
            (0..profiles)
                .map(|at| profile(format!("profile{at}"), shared))
                .collect::<Vec<_>>(),
            prompt(),
            option::of(any::<prop::sample::Index>()),
        )
            .prop_map(
                |(global, variables, sections, mut profiles, guide, default)| {
                    if let Some(default) = default.filter(|_| !profiles.is_empty()) {
                        let at = default.index(profiles.len());
                        profiles[at].is_default = true;
                    }
                    LibraryDraft {
                        global_prompt: global
                            .map(|(content, enabled)| GlobalPrompt { content, enabled }),
                        variables: variables
                            .into_iter()
                            .enumerate()
                            .map(|(at, value)| (format!("variable_{at}"), value))
                            .collect(),
                        sections,
                        profiles,
                        workspace_guide: guide
                            .map(|(content, enabled)| WorkspaceGuide { content, enabled }),
                    }
                },
            )
    })
}

/// One change to a library.
#[derive(Debug, Clone)]
pub(crate) enum Change {
    SetGlobalPrompt(Option<(String, bool)>),
    SetWorkspaceGuide(Option<(String, bool)>),
    SetVariable(String, String),
    RemoveVariable(usize),
    AddSection(usize, Box<SharedSection>),
    ReplaceSection(usize, Box<SharedSection>),
    RemoveSection(usize),
    MoveSection(usize, usize),
    AddProfile(usize, Box<Profile>),
    ReplaceProfile(usize, Box<Profile>),
    RemoveProfile(usize),
    MoveProfile(usize, usize),
    AddPlace(usize, usize, Box<Place>),
    SetContent(usize, usize, String),
    Toggle(usize, usize),
    SetOrder(usize, usize, i64),
    RemovePlace(usize, usize),
    MovePlace(usize, usize, usize),
    PlaceSectionId(usize, usize, bool, i64),
    RemoveSectionId(usize, usize),
}

/// Any change.
pub(crate) fn change() -> impl Strategy<Value = Change> {
    let at = || 0..4_usize;
    let new_place =
        || place(section("new".to_owned()).prop_map(PlaceContent::Inline)).prop_map(Box::new);
    prop_oneof![
        prompt().prop_map(Change::SetGlobalPrompt),
        prompt().prop_map(Change::SetWorkspaceGuide),
        ("variable_[0-5]", text()).prop_map(|(name, text)| Change::SetVariable(name, text)),
        at().prop_map(Change::RemoveVariable),
        (at(), shared_section("added".to_owned()).prop_map(Box::new))
            .prop_map(|(at, section)| Change::AddSection(at, section)),
        (at(), shared_section(String::new()).prop_map(Box::new))
            .prop_map(|(at, section)| Change::ReplaceSection(at, section)),
        at().prop_map(Change::RemoveSection),
        (at(), at()).prop_map(|(from, to)| Change::MoveSection(from, to)),
        (at(), profile("added".to_owned(), 0).prop_map(Box::new))
            .prop_map(|(at, profile)| Change::AddProfile(at, profile)),
        (at(), profile(String::new(), 0).prop_map(Box::new))
            .prop_map(|(at, profile)| Change::ReplaceProfile(at, profile)),
        at().prop_map(Change::RemoveProfile),
        (at(), at()).prop_map(|(from, to)| Change::MoveProfile(from, to)),
        (at(), at(), new_place())
            .prop_map(|(profile, at, place)| Change::AddPlace(profile, at, place)),
        (at(), at(), text()).prop_map(|(profile, at, text)| Change::SetContent(profile, at, text)),
        (at(), at()).prop_map(|(profile, at)| Change::Toggle(profile, at)),
        (at(), at(), order()).prop_map(|(profile, at, order)| Change::SetOrder(profile, at, order)),
        (at(), at()).prop_map(|(profile, at)| Change::RemovePlace(profile, at)),
        (at(), at(), at()).prop_map(|(profile, from, to)| Change::MovePlace(profile, from, to)),
        (at(), at(), any::<bool>(), order()).prop_map(|(profile, at, enabled, order)| {
            Change::PlaceSectionId(profile, at, enabled, order)
        }),
        (at(), at()).prop_map(|(profile, at)| Change::RemoveSectionId(profile, at)),
    ]
}

impl Change {
    /// The library after the change; a change to something that is not there changes nothing.
    pub(crate) fn apply(&self, draft: &LibraryDraft) -> LibraryDraft {
        let mut draft = draft.clone();
        self.make(&mut draft);
        draft
    }

    fn make(&self, draft: &mut LibraryDraft) -> Option<()> {
        match self.clone() {
            Self::SetGlobalPrompt(prompt) => {
                draft.global_prompt =
                    prompt.map(|(content, enabled)| GlobalPrompt { content, enabled });
            }
            Self::SetWorkspaceGuide(guide) => {
                draft.workspace_guide =
                    guide.map(|(content, enabled)| WorkspaceGuide { content, enabled });
            }
            Self::SetVariable(name, text) => {
                draft.variables.insert(name, text);
            }
            Self::RemoveVariable(at) => {
                draft.variables.shift_remove_index(at)?;
            }
            Self::AddSection(at, section) => {
                let id = |section: &SharedSection| section.section.id.clone();
                insert(&mut draft.sections, at, *section, id)?;
            }
            Self::ReplaceSection(at, mut section) => {
                let old = draft.sections.get_mut(at)?;
                section.section.id.clone_from(&old.section.id);
                *old = *section;
            }
            Self::RemoveSection(at) => {
                let id = draft.sections.get(at)?.section.id.clone();
                draft.sections.remove(at);
                for profile in &mut draft.profiles {
                    profile.places.retain(|place| place.id() != id);
                    profile.section_ids.retain(|other| *other != id);
                }
            }
            Self::MoveSection(from, to) => relocate(&mut draft.sections, from, to)?,
            Self::AddProfile(at, profile) => {
                insert(&mut draft.profiles, at, *profile, |profile| {
                    profile.id.clone()
                })?;
            }
            Self::ReplaceProfile(at, mut profile) => {
                let old = draft.profiles.get_mut(at)?;
                profile.id.clone_from(&old.id);
                *old = *profile;
            }
            Self::RemoveProfile(at) => {
                (at < draft.profiles.len()).then(|| draft.profiles.remove(at))?;
            }
            Self::MoveProfile(from, to) => relocate(&mut draft.profiles, from, to)?,
            Self::AddPlace(profile, at, place) => {
                let places = &mut draft.profiles.get_mut(profile)?.places;
                insert(places, at, *place, |place| place.id().to_owned())?;
            }
            Self::SetContent(profile, at, text) => {
                let place = draft.profiles.get_mut(profile)?.places.get_mut(at)?;
                if let PlaceContent::Inline(section) = &mut place.content {
                    section.content = text;
                }
            }
            Self::Toggle(profile, at) => {
                let place = draft.profiles.get_mut(profile)?.places.get_mut(at)?;
                place.enabled = !place.enabled;
            }
            Self::SetOrder(profile, at, order) => {
                draft.profiles.get_mut(profile)?.places.get_mut(at)?.order = order;
            }
            Self::RemovePlace(profile, at) => {
                let places = &mut draft.profiles.get_mut(profile)?.places;
                (at < places.len()).then(|| places.remove(at))?;
            }
            Self::MovePlace(profile, from, to) => {
                relocate(&mut draft.profiles.get_mut(profile)?.places, from, to)?;
            }
            Self::PlaceSectionId(profile, at, enabled, order) => {
                let profile = draft.profiles.get_mut(profile)?;
                let id =
                    (at < profile.section_ids.len()).then(|| profile.section_ids.remove(at))?;
                profile.places.push(Place {
                    content: PlaceContent::Shared(id),
                    enabled,
                    order,
                    priority: 0,
                });
            }
            Self::RemoveSectionId(profile, at) => {
                let ids = &mut draft.profiles.get_mut(profile)?.section_ids;
                (at < ids.len()).then(|| ids.remove(at))?;
            }
        }
        Some(())
    }
}

fn insert<T>(list: &mut Vec<T>, at: usize, item: T, id: impl Fn(&T) -> String) -> Option<()> {
    let taken = list.iter().any(|other| id(other) == id(&item));
    (!taken).then(|| list.insert(at.min(list.len()), item))
}

fn relocate<T>(list: &mut Vec<T>, from: usize, to: usize) -> Option<()> {
    if from >= list.len() || to >= list.len() {
        return None;
    }
    let item = list.remove(from);
    list.insert(to, item);
    Some(())
}
