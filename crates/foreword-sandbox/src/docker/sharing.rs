//! How files get into containers: as binds if a container sees this server's files and both may work on them, else as volumes.
//!
//! Which it is cannot be known from an address: an engine may run in a machine of its own, this server in a container, root of a
//! container may be nobody. So it is tried, with a throw-away container and a file.

use std::{
    fs, io,
    path::{Path, PathBuf},
    sync::Arc,
};

use bollard::models::{ContainerCreateBody, HostConfig};
use tokio::time::timeout;

use super::{
    Unfinished,
    engine::{Engine, EngineRun},
    image::{Prepared, User},
    terms,
};
use crate::{error::SandboxError, spec::OUTPUTS};

/// How long the throw-away container may take.
const PATIENCE: std::time::Duration = std::time::Duration::from_secs(30);
const QUESTION: &str = "question";
const ANSWER: &str = "answer";
/// Only whoever sees the question can give this answer, and only whoever may write there gives it.
const SCRIPT: &str =
    "umask 022; cd /mnt/user-data/outputs && read -r word < question && echo \"$word\" > answer";

/// How files get in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Sharing {
    /// Containers see directories of the engine's host; this one is our data directory.
    Binds {
        /// Our path of it.
        here: PathBuf,
        /// The engine's.
        there: PathBuf,
    },
    /// They do not.
    Volumes {
        /// The word of our data directory.
        data: String,
    },
}

impl Sharing {
    /// What the engine calls a path of ours.
    pub(super) fn path(&self, path: &Path) -> io::Result<PathBuf> {
        let path = std::path::absolute(path)?;
        Ok(match self {
            Self::Binds { here, there } => match path.strip_prefix(here) {
                Ok(rest) => there.join(rest),
                Err(_) => path,
            },
            Self::Volumes { .. } => path,
        })
    }
}

/// What was found out before. It holds for as long as the data directory does: homes in volumes would else seem empty, and those in
/// directories as well.
pub(super) struct Decision {
    file: PathBuf,
}

impl Decision {
    pub(super) fn of(data_dir: &Path) -> Self {
        Self {
            file: data_dir.join("docker/files"),
        }
    }

    /// Whether files were shared, if that was found out.
    pub(super) fn read(&self) -> Option<bool> {
        match fs::read_to_string(&self.file).ok()?.trim() {
            "binds" => Some(true),
            "volumes" => Some(false),
            _ => None,
        }
    }

    pub(super) fn write(&self, is_shared: bool) {
        let word = if is_shared { "binds" } else { "volumes" };
        if let Err(error) = fs::write(&self.file, word) {
            tracing::warn!(%error, "It is not noted how files get into containers");
        }
    }
}

/// Tries whether a container sees what is in `here`, which the engine is told to find at `there`, and may work on it as `user`.
pub(super) async fn is_shared(
    engine: &Arc<Engine>,
    instance: &str,
    image: &Prepared,
    user: User,
    here: &Path,
    there: &Path,
) -> Result<bool, SandboxError> {
    let probe = Probe::new(here).map_err(super::backend_error)?;
    let there = there.join("docker").join(&probe.name);
    let body = ContainerCreateBody {
        image: Some(image.name.clone()),
        entrypoint: Some(vec!["/bin/bash".to_owned()]),
        cmd: Some(vec!["-c".to_owned(), SCRIPT.to_owned()]),
        user: Some(format!("{}:{}", user.uid, user.gid)),
        labels: Some(
            [(super::MANAGED, "true"), (super::INSTANCE, instance)]
                .map(|(name, value)| (name.to_owned(), value.to_owned()))
                .into(),
        ),
        host_config: Some(HostConfig {
            mounts: Some(vec![terms::bind(&there, OUTPUTS, true)]),
            network_mode: Some("none".to_owned()),
            ulimits: Some(terms::ulimits(1024, 32_768)),
            ..HostConfig::default()
        }),
        ..ContainerCreateBody::default()
    };
    let name = format!("foreword-{}", probe.name);
    let id = match engine.create(&name, body).await {
        Ok(id) => id,
        Err(error @ SandboxError::Unavailable(_)) => return Err(error),
        // An engine that does not have the directory refuses to show it.
        Err(error) => {
            tracing::debug!(error = %super::in_words(&error), "A container cannot see this server's files");
            return Ok(false);
        }
    };
    let unfinished = Unfinished::new(engine, id.clone());
    let ran = timeout(PATIENCE, engine.run(&id)).await;
    unfinished.remove().await;
    match ran {
        Ok(Ok(())) => Ok(probe.is_answered()),
        // It ran, and could not.
        Ok(Err(EngineRun::Failed)) => Ok(false),
        Ok(Err(EngineRun::Refused(error))) => Err(error),
        Err(_) => Err(super::backend_error(io::Error::new(
            io::ErrorKind::TimedOut,
            "a container that tries whether files are shared did not end in time",
        ))),
    }
}

/// A directory with a question, which goes when this is dropped.
struct Probe {
    directory: PathBuf,
    name: String,
    word: String,
}

impl Probe {
    fn new(data_dir: &Path) -> io::Result<Self> {
        let word = super::instance::new_word();
        let name = format!("probe-{word}");
        let directory = data_dir.join("docker").join(&name);
        fs::create_dir_all(&directory)?;
        let probe = Self {
            directory,
            name,
            word,
        };
        fs::write(probe.directory.join(QUESTION), format!("{}\n", probe.word))?;
        #[cfg(unix)]
        if super::terms::is_root() {
            let uid = Some(crate::config::CONTAINER_UID);
            std::os::unix::fs::chown(&probe.directory, uid, uid)?;
        }
        Ok(probe)
    }

    /// Whether the answer is there, and may be deleted.
    fn is_answered(&self) -> bool {
        let answer = self.directory.join(ANSWER);
        fs::read_to_string(&answer).is_ok_and(|answer| answer.trim() == self.word)
            && fs::remove_file(answer).is_ok()
    }
}

impl Drop for Probe {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.directory);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_of_the_data_directory_has_the_engines_name_and_others_have_their_own() {
        let binds = Sharing::Binds {
            here: "/data".into(),
            there: "/srv/foreword".into(),
        };
        let path = |path: &str| binds.path(Path::new(path)).unwrap();
        assert_eq!(
            path("/data/workspaces/a/home"),
            Path::new("/srv/foreword/workspaces/a/home")
        );
        assert_eq!(path("/database/x"), Path::new("/database/x"));
    }
}
