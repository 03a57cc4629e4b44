//! The volumes of a chat whose container does not see this server's files: home, outputs, uploads, skills.
//!
//! Which they are is noted in the chat's workspace, once everything is in them. So a workspace that was deleted and made again has other
//! volumes, one whose making broke off gets new ones, and nothing but a proof that nobody can come back to them deletes any: a home directory
//! in a volume is the only one that there is.

use std::{
    collections::HashMap,
    fs, io,
    path::{Path, PathBuf},
    sync::Arc,
};

use super::{CHAT, DATA, MANAGED, engine::Engine, instance, terms};
use crate::{
    error::SandboxError,
    spec::{HOME, OUTPUTS, SKILLS, SandboxKey, SandboxSpec, UPLOADS},
};

/// The word of a set of volumes, and the file where it is noted.
const WORD: &str = "foreword.word";
const NOTE: &str = "foreword.note";
/// What the note in a workspace is called.
const NOTE_NAME: &str = "volumes";

/// The volumes of one chat.
pub(super) struct Volumes {
    word: String,
    key: String,
    note: PathBuf,
    /// They have to be filled before they are noted.
    pub(super) are_new: bool,
}

impl Volumes {
    /// The volumes of a chat, made where they are missing.
    pub(super) async fn of(
        engine: &Engine,
        data: &str,
        spec: &SandboxSpec,
    ) -> Result<Self, SandboxError> {
        let note = spec.home.parent().unwrap_or(&spec.home).join(NOTE_NAME);
        let noted = fs::read_to_string(&note).ok();
        let noted = noted.filter(|word| instance::is_word(word));
        let mut volumes = Self {
            are_new: noted.is_none(),
            word: noted.unwrap_or_else(instance::new_word),
            key: spec.key.as_str().to_owned(),
            note,
        };
        let labels: HashMap<String, String> = [
            (MANAGED, "true"),
            (DATA, data),
            (CHAT, spec.key.as_str()),
            (WORD, &volumes.word),
            (NOTE, &volumes.note.display().to_string()),
        ]
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .into();
        for (place, name) in volumes.names() {
            if engine.labels_of_volume(&name).await?.is_some() {
                continue;
            }
            engine.create_volume(&name, labels.clone()).await?;
            // It was removed behind our back.
            volumes.are_new |= place == OUTPUTS;
        }
        Ok(volumes)
    }

    /// Notes that everything is in them.
    pub(super) fn note(&self) -> io::Result<()> {
        let part = self.note.with_extension("part");
        fs::write(&part, &self.word)?;
        fs::rename(part, &self.note)
    }

    /// What of them a container sees. What only the agent may write to belongs to root.
    pub(super) fn mounts(&self) -> Vec<bollard::models::Mount> {
        let mount = |(place, name): (&str, String)| terms::volume(&name, place);
        self.names().map(mount).into()
    }

    /// Each place with the volume's name.
    fn names(&self) -> [(&'static str, String); 4] {
        let chat = super::container::name_of(&self.word, &self.key);
        [
            (HOME, format!("{chat}-home")),
            (OUTPUTS, format!("{chat}-outputs")),
            (UPLOADS, format!("{chat}-uploads")),
            (SKILLS, format!("{chat}-skills")),
        ]
    }
}

/// Removes all volumes of a chat.
pub(super) async fn forget(
    engine: &Engine,
    data: &str,
    key: &SandboxKey,
) -> Result<(), SandboxError> {
    let mut failed = None;
    for (name, labels) in engine.list_volumes(&format!("{DATA}={data}")).await? {
        if labels.get(CHAT).is_some_and(|chat| chat == key.as_str())
            && let Err(error) = engine.remove_volume(&name).await
        {
            failed = Some(error);
        }
    }
    failed.map_or(Ok(()), Err)
}

/// The volumes that no workspace notes, though it can be seen that the workspaces are there.
pub(super) async fn left_over(
    engine: &Arc<Engine>,
    data: &str,
) -> Result<Vec<String>, SandboxError> {
    let listed = engine.list_volumes(&format!("{DATA}={data}")).await?;
    let left = listed.into_iter().filter(|(_, labels)| {
        let (Some(note), Some(word)) = (labels.get(NOTE), labels.get(WORD)) else {
            return false;
        };
        is_left_over(Path::new(note), word)
    });
    Ok(left.map(|(name, _)| name).collect())
}

/// Whether nobody can come back to the volumes of this word.
fn is_left_over(note: &Path, word: &str) -> bool {
    let is_absent = |path: &Path| {
        fs::symlink_metadata(path).is_err_and(|error| error.kind() == io::ErrorKind::NotFound)
    };
    let Some(workspace) = note.parent() else {
        return false;
    };
    if workspace.parent().is_none_or(|all| !all.is_dir()) {
        return false;
    }
    is_absent(workspace) || fs::read_to_string(note).is_ok_and(|noted| noted != word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_nobody_can_come_back_to_is_left_over() {
        let place = tempfile::tempdir().unwrap();
        let workspace = place.path().join("workspaces/chat");
        let note = workspace.join(NOTE_NAME);
        // The data directory was moved, or is not mounted yet.
        assert!(!is_left_over(&note, "aaaaaaaa"));
        fs::create_dir_all(&workspace).unwrap();
        // It is being made.
        assert!(!is_left_over(&note, "aaaaaaaa"));
        fs::write(&note, "aaaaaaaa").unwrap();
        assert!(!is_left_over(&note, "aaaaaaaa"));
        assert!(is_left_over(&note, "bbbbbbbb"));
        fs::remove_dir_all(&workspace).unwrap();
        assert!(is_left_over(&note, "aaaaaaaa"));
    }
}
