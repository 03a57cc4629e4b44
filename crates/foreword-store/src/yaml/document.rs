//! A library file that was read, and the next one that an edit makes of it.

use std::sync::Arc;

use foreword_compose::{Fault, Library, LibraryDraft};

use super::{
    LoadError, MAX_ERRORS, print_library,
    read::{Reading, read},
    syntax::empty_file,
    tree::{Kind, NodeId, Tree},
};

/// A library file that was read: its text, where in it everything stands, and the library it is.
#[derive(Debug)]
pub struct Document {
    text: Arc<str>,
    tree: Tree,
    library: Library,
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
            tree,
            library,
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

    /// The document in which this one's library has become `draft`.
    ///
    /// # Errors
    ///
    /// See [`RewriteError`].
    pub fn rewrite(&self, draft: &LibraryDraft) -> Result<Self, RewriteError> {
        if self.library.draft() == draft {
            return Ok(Self::parse(Arc::clone(&self.text)).expect("it was read before"));
        }
        Library::new(draft.clone()).map_err(RewriteError::Faults)?;
        Self::parse(print_library(draft).into()).map_err(|errors| {
            RewriteError::Unwritable(errors.first().map(ToString::to_string).unwrap_or_default())
        })
    }
}

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
    errors.sort_by(|left, right| (left.line, left.column).cmp(&(right.line, right.column)));
    errors.truncate(MAX_ERRORS);
    errors
}

fn located(tree: &Tree, fault: Fault) -> LoadError {
    let node = tree.node(find(tree, &fault.pointer));
    LoadError {
        line: node.line,
        column: node.column,
        pointer: Some(fault.pointer),
        code: fault.code,
        message: fault.message,
        hint: fault.hint,
    }
}

/// The node at `pointer`, or the last one on the way to it.
fn find(tree: &Tree, pointer: &str) -> NodeId {
    let mut found = tree.root();
    for segment in pointer.split('/').skip(1) {
        let segment = segment.replace("~1", "/").replace("~0", "~");
        let target = tree.resolve(found);
        let next = match &tree.node(target).kind {
            Kind::Sequence { items, .. } => segment
                .parse()
                .ok()
                .and_then(|at: usize| items.get(at).copied()),
            Kind::Mapping { .. } => super::fields::entries(tree, target)
                .unwrap_or_default()
                .into_iter()
                .find(|entry| tree.text(entry.key) == Some(&segment))
                .map(|entry| entry.value),
            _ => None,
        };
        match next {
            Some(next) => found = next,
            None => break,
        }
    }
    found
}
