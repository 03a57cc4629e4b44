//! A library file that was read, and the next one that an edit makes of it.

use std::sync::Arc;

use foreword_compose::{Fault, Library, LibraryDraft};

use super::{
    LoadError, MAX_ERRORS,
    fields::entries,
    layout::Layout,
    lines::Lines,
    read::{Reading, read},
    reorder::moves,
    rewrite::{self, changes, unwritable},
    shape,
    splice::Overlap,
    syntax::empty_file,
    tree::{Kind, NodeId, Tree},
};

/// A library file that was read: its text, where in it everything stands, and the library it is.
///
/// Cheap to clone: all of it is shared.
#[derive(Debug, Clone)]
pub struct Document {
    text: Arc<str>,
    tree: Arc<Tree>,
    library: Arc<Library>,
}

/// Why a file could not be changed so that it says something else.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RewriteError {
    /// What it should say is not a library.
    #[error("the change does not leave a valid library")]
    Faults(Vec<Fault>),
    /// The change would reach other places, too, because they share the value through an alias.
    #[error("the value is shared through the YAML anchor `&{anchor}`; change it in the file")]
    Aliased {
        /// The anchor's name.
        anchor: String,
    },
    /// The changed text did not read back as it should; nothing was changed.
    #[error("the edit could not be written safely: {0}")]
    Unwritable(String),
}

impl Document {
    /// Reads a library file.
    ///
    /// # Errors
    ///
    /// Every mistake of the text, in the order of its lines; a syntax error ends the reading, so it is one per text.
    pub fn parse(text: Arc<str>) -> Result<Self, Vec<LoadError>> {
        let (tree, library) = load(&text)?;
        Ok(Self {
            text,
            tree: Arc::new(tree),
            library: Arc::new(library),
        })
    }

    /// The library.
    #[must_use]
    pub fn library(&self) -> &Library {
        &self.library
    }

    /// The file, byte for byte.
    #[must_use]
    pub fn text(&self) -> &Arc<str> {
        &self.text
    }

    /// Where the value at a JSON pointer stands, or what is around it: line and column, from 1.
    #[must_use]
    pub fn position(&self, pointer: &str) -> (usize, usize) {
        position(&self.tree, pointer)
    }

    /// The document in which this one's library has become `draft`; an unchanged library keeps every byte.
    ///
    /// Nothing comes back that was not read again and found to say `draft`.
    ///
    /// # Errors
    ///
    /// See [`RewriteError`].
    pub fn rewrite(&self, draft: &LibraryDraft) -> Result<Self, RewriteError> {
        // Checking a large draft costs as much as writing it, and reading it back checks it as well.
        self.rewritten(draft)
            .map_err(|error| match Library::new(draft.clone()) {
                Err(faults) => RewriteError::Faults(faults),
                Ok(_) => error,
            })
    }

    fn rewritten(&self, draft: &LibraryDraft) -> Result<Self, RewriteError> {
        let mut document = self.clone();
        for _ in 0..MOST_PASSES {
            let now = document.library.draft();
            if now == draft {
                return Ok(document);
            }
            let wanted = shape::library(now, draft);
            let mut splices = moves(document.layout(), &wanted)?;
            let moved = !splices.is_empty();
            if !moved {
                splices = changes(document.layout(), &wanted)?;
            }
            let text = splices
                .apply(&document.text)
                .map_err(|Overlap| unwritable("two of its changes are in one place"))?;
            document =
                Self::parse(text.into()).map_err(|errors| self.not_read_back(&errors, moved))?;
        }
        if document.library.draft() == draft {
            Ok(document)
        } else {
            Err(unwritable("the file would say something else"))
        }
    }

    fn layout(&self) -> Layout<'_> {
        Layout {
            tree: &self.tree,
            lines: Lines(&self.text),
        }
    }

    fn not_read_back(&self, errors: &[LoadError], moved: bool) -> RewriteError {
        // After a move, the usual reason is an alias that now stands above its anchor.
        let anchor = rewrite::shared_within(&self.tree, self.tree.root()).filter(|_| moved);
        if let Some(anchor) = anchor {
            return RewriteError::Aliased {
                anchor: anchor.to_owned(),
            };
        }
        let first = errors.first().map(ToString::to_string).unwrap_or_default();
        unwritable(&format!("it would not read back: {first}"))
    }
}

/// Profiles change places, then the places in them (a list inside an item that moves waits), then all else changes.
const MOST_PASSES: usize = 3;

/// Reads a library file without keeping its text.
pub(super) fn load(text: &str) -> Result<(Tree, Library), Vec<LoadError>> {
    let tree = Tree::parse(text).map_err(|error| vec![error])?;
    if tree.is_null(tree.root()) {
        return Err(vec![empty_file()]);
    }
    let Reading {
        draft,
        mut errors,
        lost_section_id,
    } = read(&tree);
    match Library::new(draft) {
        Ok(library) if errors.is_empty() => Ok((tree, library)),
        Ok(_) => Err(sorted(errors)),
        Err(faults) => {
            let unreadable: Vec<String> = errors
                .iter()
                .filter_map(|error| error.pointer.clone())
                .collect();
            errors.extend(
                faults
                    .into_iter()
                    .filter(|fault| !(lost_section_id && fault.code == UNKNOWN_SECTION))
                    .filter(|fault| {
                        !unreadable
                            .iter()
                            .any(|pointer| concerns(pointer, &fault.pointer))
                    })
                    .take(MAX_ERRORS)
                    .map(|fault| located(&tree, fault)),
            );
            Err(sorted(errors))
        }
    }
}

/// The fault that a reference seems to have where its target could not be read.
const UNKNOWN_SECTION: &str = "unknown-section";

/// Whether a mistake at `unreadable` may be why there is a fault at `pointer`.
fn concerns(unreadable: &str, pointer: &str) -> bool {
    pointer
        .strip_prefix(unreadable)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

fn sorted(mut errors: Vec<LoadError>) -> Vec<LoadError> {
    errors.sort_by_key(|error| (error.line, error.column));
    // What stands behind an anchor is looked into wherever it is used.
    errors.dedup_by(|left, right| {
        (left.line, left.column, &left.message) == (right.line, right.column, &right.message)
    });
    errors.truncate(MAX_ERRORS);
    errors
}

fn located(tree: &Tree, fault: Fault) -> LoadError {
    let (line, column) = position(tree, &fault.pointer);
    LoadError {
        line,
        column,
        pointer: Some(fault.pointer),
        code: fault.code,
        message: with_lines(tree, fault.message),
        hint: fault.hint,
    }
}

/// The message with a line of the file in place of the pointer to another value in it, where it has one.
fn with_lines(tree: &Tree, message: String) -> String {
    let pointer = ["`/sections/", "`/profiles/"]
        .into_iter()
        .find_map(|list| Some((message.rfind(list)?, list.len())));
    let Some((start, list)) = pointer else {
        return message;
    };
    let (before, pointer) = message.split_at(start);
    let Some((index, after)) = pointer[list..].split_once('`') else {
        return message;
    };
    if !index.bytes().all(|byte| byte.is_ascii_digit()) {
        return message;
    }
    let (line, _) = position(tree, &pointer[1..list + index.len()]);
    let one = if before.ends_with(" by ") {
        "the one "
    } else {
        ""
    };
    format!("{before}{one}on line {line}{after}")
}

fn position(tree: &Tree, pointer: &str) -> (usize, usize) {
    let (key, value) = find(tree, pointer);
    // What is said about a variable is about its name.
    let at = key.filter(|_| pointer.starts_with("/variables/"));
    let node = tree.node(at.unwrap_or(value));
    (node.line, node.column)
}

/// The node at `pointer`, or the last one on the way to it, with its key.
fn find(tree: &Tree, pointer: &str) -> (Option<NodeId>, NodeId) {
    let mut found = (None, tree.root());
    for segment in pointer.split('/').skip(1) {
        let segment = segment.replace("~1", "/").replace("~0", "~");
        let target = tree.resolve(found.1);
        let next = match &tree.node(target).kind {
            Kind::Sequence { items, .. } => {
                let item = segment.parse().ok().and_then(|at: usize| items.get(at));
                item.map(|item| (None, *item))
            }
            Kind::Mapping { entries: own, .. } => own
                .iter()
                .find(|(key, _)| tree.text(*key) == Some(&segment))
                .map(|(key, value)| (Some(*key), *value))
                .or_else(|| merged(tree, target, &segment)),
            Kind::Scalar { .. } | Kind::Alias(_) => None,
        };
        let Some(next) = next else { break };
        found = next;
    }
    found
}

fn merged(tree: &Tree, mapping: NodeId, key: &str) -> Option<(Option<NodeId>, NodeId)> {
    let entries = entries(tree, mapping).unwrap_or_default();
    let entry = entries
        .iter()
        .find(|entry| tree.text(entry.key) == Some(key))?;
    Some((Some(entry.key), entry.value))
}
