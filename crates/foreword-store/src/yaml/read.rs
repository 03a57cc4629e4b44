//! Decides what a tree says as a library, and names everything in it that says nothing.
//!
//! The reader goes on after a mistake, so that one look at the file finds all of them. It checks the form: keys, kinds of
//! values, aliases and merges. What only makes sense of the library as a whole (references, unique ids, two defaults) is
//! [`Library::new`](foreword_compose::Library::new)'s business; the draft keeps every item in its place, so that a
//! pointer into the draft is one into the tree.

mod values;

use foreword_compose::{
    GlobalPrompt, LibraryDraft, Profile, Section, SectionType, SharedSection, WorkspaceGuide,
    library::{Place, PlaceContent},
    nearest,
};
use indexmap::IndexMap;

use super::{
    LoadError,
    fields::Entry,
    tree::{Kind, NodeId, Tree},
};
use values::{Fields, Reader, list};

/// The keys of the library itself.
const LIBRARY_KEYS: &[&str] = &[
    "global_prompt",
    "variables",
    "sections",
    "profiles",
    "workspace_guide",
];
const PROMPT_KEYS: &[&str] = &["content", "enabled"];
const SHARED_SECTION_KEYS: &[&str] = &["id", "name", "type", "content", "description"];
const PROFILE_KEYS: &[&str] = &[
    "id",
    "name",
    "description",
    "is_default",
    "sections",
    "section_ids",
    "tools_prompt",
];
const INLINE_KEYS: &[&str] = &[
    "id", "name", "type", "content", "enabled", "order", "priority",
];
const USE_KEYS: &[&str] = &["use", "enabled", "order", "priority"];

/// A library as far as it could be read.
#[derive(Debug)]
pub(super) struct Reading {
    /// The values; whatever could not be read is its default.
    pub(super) draft: LibraryDraft,
    /// What could not be read, in the order of the walk, at most [`MAX_ERRORS`](super::MAX_ERRORS).
    pub(super) errors: Vec<LoadError>,
    /// Whether the id of a shared section could not be read, so that references to it seem broken.
    pub(super) lost_section_id: bool,
}

/// Reads the library that `tree` holds.
pub(super) fn read(tree: &Tree) -> Reading {
    let mut reader = Reader::new(tree);
    let draft = reader.library(tree.root());
    Reading {
        draft,
        errors: reader.errors,
        lost_section_id: reader.lost_section_id,
    }
}

impl Reader<'_> {
    fn library(&mut self, root: NodeId) -> LibraryDraft {
        let fields = self.fields(root, "the library", LIBRARY_KEYS);
        LibraryDraft {
            global_prompt: self.optional(&fields, "global_prompt", |reader, node| {
                reader.global_prompt(node)
            }),
            variables: self
                .optional(&fields, "variables", Self::variables)
                .unwrap_or_default(),
            sections: self.list(&fields, "sections", Self::shared_section),
            profiles: self.list(&fields, "profiles", Self::profile),
            workspace_guide: self.optional(&fields, "workspace_guide", |reader, node| {
                let (content, enabled) = reader.prompt(node, "the workspace guide");
                WorkspaceGuide { content, enabled }
            }),
        }
    }

    fn global_prompt(&mut self, node: NodeId) -> GlobalPrompt {
        if matches!(
            self.tree.node(self.tree.resolve(node)).kind,
            Kind::Scalar { .. }
        ) {
            return GlobalPrompt {
                content: self.text(node, "global_prompt").unwrap_or_default(),
                enabled: true,
            };
        }
        let (content, enabled) = self.prompt(node, "the global prompt");
        GlobalPrompt { content, enabled }
    }

    fn prompt(&mut self, node: NodeId, what: &str) -> (String, bool) {
        let fields = self.fields(node, what, PROMPT_KEYS);
        (
            self.required_text(node, &fields, "content", what)
                .unwrap_or_default(),
            self.flag(&fields, "enabled", true),
        )
    }

    fn variables(&mut self, node: NodeId) -> IndexMap<String, String> {
        let mut variables = IndexMap::new();
        let Some(entries) = self.mapping(node, "`variables`") else {
            return variables;
        };
        for Entry { key, value, .. } in entries {
            let Some(name) = self.tree.text(key).map(str::to_owned) else {
                continue;
            };
            let default = self.within(&name, |reader| reader.text(value, &name));
            variables.insert(name, default.unwrap_or_default());
        }
        variables
    }

    fn shared_section(&mut self, node: NodeId) -> SharedSection {
        let fields = self.fields(node, "a shared section", SHARED_SECTION_KEYS);
        let made_up = self.unreadable;
        let section = self.section(node, &fields, "a shared section");
        self.lost_section_id |= self.unreadable > made_up;
        SharedSection {
            section,
            description: self.optional_text(&fields, "description"),
        }
    }

    fn section(&mut self, node: NodeId, fields: &Fields, what: &str) -> Section {
        let id = self.id(node, fields, "id", what);
        Section {
            name: self
                .optional_text(fields, "name")
                .unwrap_or_else(|| id.clone()),
            section_type: self
                .optional(fields, "type", Self::section_type)
                .unwrap_or_default(),
            content: self
                .required_text(node, fields, "content", what)
                .unwrap_or_default(),
            id,
        }
    }

    fn section_type(&mut self, node: NodeId) -> SectionType {
        let Some(word) = self.text(node, "type") else {
            return SectionType::default();
        };
        word.parse().unwrap_or_else(|_| {
            let known = SectionType::ALL.map(SectionType::as_str);
            let hint = match nearest(&word, known) {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("the types are {}", list(&known)),
            };
            self.error(
                node,
                "unknown-type",
                format!("unknown section type `{word}`"),
                hint,
            );
            SectionType::default()
        })
    }

    fn profile(&mut self, node: NodeId) -> Profile {
        let fields = self.fields(node, "a profile", PROFILE_KEYS);
        let id = self.id(node, &fields, "id", "a profile");
        Profile {
            name: self
                .optional_text(&fields, "name")
                .unwrap_or_else(|| id.clone()),
            description: self.optional_text(&fields, "description"),
            is_default: self.flag(&fields, "is_default", false),
            tools_prompt: self.flag(&fields, "tools_prompt", true),
            places: self.list(&fields, "sections", Self::place),
            section_ids: self.list(&fields, "section_ids", |reader, node| {
                reader
                    .text(node, "an entry of `section_ids`")
                    .unwrap_or_else(|| reader.make_up_id())
            }),
            id,
        }
    }

    fn place(&mut self, node: NodeId) -> Place {
        let shared = self
            .tree_entries(node)
            .iter()
            .any(|entry| self.tree.text(entry.key) == Some("use"));
        let (fields, content) = if shared {
            let fields = self.fields(node, "an entry with `use`", USE_KEYS);
            let id = self.id(node, &fields, "use", "an entry with `use`");
            (fields, PlaceContent::Shared(id))
        } else {
            let fields = self.fields(node, "a section", INLINE_KEYS);
            let section = self.section(node, &fields, "a section");
            (fields, PlaceContent::Inline(section))
        };
        Place {
            content,
            enabled: self.flag(&fields, "enabled", true),
            order: self.number(&fields, "order"),
            priority: self.number(&fields, "priority"),
        }
    }
}
