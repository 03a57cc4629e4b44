//! The server's side of carrying files to and from one container; see [`super::carry`].

use std::{
    collections::BTreeMap,
    io,
    path::{Path, PathBuf},
    sync::{Arc, Weak},
    time::Duration,
};

use tokio::{sync::Mutex, time::timeout};

use super::{
    carry::{self, Changes, Found, Survey},
    container::Container,
    frames::{Answer, Ask, Place},
    places::Root,
};
use crate::{
    files::{Content, InsteadOf},
    operation::FileOperation,
    pool::Life,
    pooled::RunError,
    spec::{OUTPUTS, SandboxSpec},
};

/// How much of a file is asked for at a time.
const PIECE_BYTES: u64 = 1 << 20;
/// How long a call waits for its outputs; what takes longer is carried in the background.
const CALL_PATIENCE: Duration = Duration::from_secs(30);
/// How often is looked for what is written in the background.
const PERIOD: Duration = Duration::from_secs(5);

/// Where the files of one chat are on this host, and what is known to be the same on both sides.
pub(super) struct Carrier {
    uploads: PathBuf,
    outputs: PathBuf,
    skills: Vec<(String, PathBuf)>,
    /// The most that outputs may take here; what the sandbox counts leaves out holes. 0 is without limit.
    quota_bytes: u64,
    min_free_bytes: u64,
    brought_in: Mutex<BroughtIn>,
    /// What was there when outputs were last carried out, all of it.
    brought_out: Mutex<Survey>,
}

#[derive(Default)]
struct BroughtIn {
    uploads: Option<Survey>,
    skills: Option<Survey>,
}

impl Carrier {
    pub(super) fn new(spec: &SandboxSpec, quota_bytes: u64, min_free_bytes: u64) -> Self {
        Self {
            uploads: spec.uploads.clone(),
            outputs: spec.outputs.clone(),
            skills: spec
                .present_skills()
                .map(|skills| (skills.name.clone(), skills.host.clone()))
                .collect(),
            quota_bytes,
            min_free_bytes,
            brought_in: Mutex::default(),
            brought_out: Mutex::default(),
        }
    }

    /// Carries in what the sandbox does not have yet.
    pub(super) async fn bring_in(&self, container: &Container) -> Result<(), RunError> {
        let mut known = self.brought_in.lock().await;
        let here = survey(vec![(String::new(), self.uploads.clone())]).await?;
        if known.uploads.as_ref() != Some(&here) {
            let roots = [(String::new(), self.uploads.clone())];
            make_alike(container, Place::Uploads, &here, &roots).await?;
            known.uploads = Some(here);
        }
        let here = survey(self.skills.clone()).await?;
        if known.skills.as_ref() != Some(&here) {
            make_alike(container, Place::Skills, &here, &self.skills).await?;
            known.skills = Some(here);
        }
        Ok(())
    }

    /// Carries out what the last call left for the user, or begins to.
    pub(super) async fn bring_out_after_call(&self, container: &Container) -> Result<(), RunError> {
        // What is not done by then, or is being done, is gone on with in the background.
        timeout(CALL_PATIENCE, self.bring_out(container))
            .await
            .unwrap_or(Ok(()))
    }

    /// Carries out what the user does not have yet.
    async fn bring_out(&self, container: &Container) -> Result<(), RunError> {
        let mut known = self.brought_out.lock().await;
        let there = match container.answer(&Ask::Survey(Place::Outputs)).await? {
            Answer::Survey(survey) => survey,
            other => return Err(super::container::error_of(other)),
        };
        if *known == there {
            return Ok(());
        }
        let (root, here) = open(self.outputs.clone()).await?;
        let mut changes = Changes::between(&there, &here);
        // What this server did not bring was not deleted by the sandbox.
        changes.gone.retain(|path| known.files.contains_key(path));
        // A time can be set back, but not when it was set.
        let tampered = there.files.iter().filter(|(path, found)| {
            let before = known.files.get(*path);
            before.is_some_and(|before| before.changed != found.changed) && !found.is_directory
        });
        changes.files.extend(tampered.map(|(path, _)| path.clone()));
        changes.files.sort();
        changes.files.dedup();
        let root = arrange(root, changes.gone, changes.directories).await?;
        let mut taken: u64 = here.files.values().map(|found| found.size).sum();
        let mut all = true;
        for path in &changes.files {
            let found = there.files[path];
            taken = taken.saturating_add(found.size);
            if !self.has_room(&root, taken, found.size) {
                tracing::warn!(
                    container = container.id,
                    path,
                    "An output is not carried out: there is no room for it"
                );
                continue;
            }
            match fetch(&root, container, path, found).await {
                Ok(was_there) => all &= was_there,
                // It cannot be made here; the others can.
                Err(RunError::Io(error)) => {
                    all = false;
                    container.note_not_carried(&RunError::Io(error));
                }
                Err(error) => return Err(error),
            }
        }
        // What changed while it was fetched is looked at again.
        *known = if all { there } else { Survey::default() };
        Ok(())
    }

    fn has_room(&self, root: &Root, taken: u64, size: u64) -> bool {
        let in_quota = self.quota_bytes == 0 || taken <= self.quota_bytes;
        let needed = self.min_free_bytes.saturating_add(size);
        in_quota
            && root
                .free()
                .is_ok_and(|free| free >= needed || self.min_free_bytes == 0)
    }

    /// Gives a container whose volumes are new the outputs that this host has.
    pub(super) async fn restore_outputs(&self, container: &Container) -> Result<(), RunError> {
        let (root, here) = open(self.outputs.clone()).await?;
        for (path, found) in here.files.iter().filter(|(_, found)| !found.is_directory) {
            let Ok(file) = root.file(path) else { continue };
            let operation = FileOperation::Write {
                path: Path::new(OUTPUTS).join(path),
                instead_of: InsteadOf::File,
                mode: None,
                bytes: found.size,
            };
            let mut content = Content::File(file);
            container.do_work(&operation, Some(&mut content)).await?;
        }
        Ok(())
    }
}

/// Carries out again and again what is written in the background, as long as the container is used.
pub(super) async fn keep_bringing_out(container: Weak<Container>) {
    loop {
        tokio::time::sleep(PERIOD).await;
        let Some(container) = container.upgrade().filter(|container| container.is_alive()) else {
            return;
        };
        if let Some(carrier) = &container.carrier
            && let Err(error) = carrier.bring_out(&container).await
        {
            container.note_not_carried(&error);
        }
    }
}

/// Fetches a file; says whether it was there to its end.
async fn fetch(
    root: &Arc<Root>,
    container: &Container,
    path: &str,
    found: Found,
) -> Result<bool, RunError> {
    let mut incoming = {
        let (root, path) = (Arc::clone(root), path.to_owned());
        blocking(move || root.create(&path)).await?
    };
    let mut offset = 0;
    // As long as it was when it was surveyed: what is appended to without end would else never be done.
    while offset < found.size {
        let ask = Ask::Fetch {
            place: Place::Outputs,
            path: path.to_owned(),
            offset,
            limit: PIECE_BYTES.min(found.size - offset),
        };
        let (answer, bytes) = container.answer_with_content(&ask, PIECE_BYTES).await?;
        if !matches!(answer, Answer::Fetched(_)) || bytes.is_empty() {
            // It was deleted, or became something else or shorter.
            return Ok(false);
        }
        offset += bytes.len() as u64;
        incoming = blocking(move || {
            let mut incoming = incoming;
            incoming.write(&bytes)?;
            Ok(incoming)
        })
        .await?;
    }
    blocking(move || incoming.finish(found.modified)).await?;
    Ok(true)
}

/// Opens a place on this host, and surveys it.
async fn open(path: PathBuf) -> io::Result<(Arc<Root>, Survey)> {
    blocking(move || {
        let root = Root::open(path.as_path())?;
        let found = root.survey()?;
        Ok((Arc::new(root), found))
    })
    .await
}

/// Deletes these and makes these directories, on this host.
async fn arrange(
    root: Arc<Root>,
    gone: Vec<String>,
    directories: Vec<String>,
) -> io::Result<Arc<Root>> {
    blocking(move || {
        root.delete(&gone)?;
        for path in directories {
            root.make_directory(&path)?;
        }
        Ok(root)
    })
    .await
}

/// Surveys places of this host, the paths of each below its name.
async fn survey(places: Vec<(String, PathBuf)>) -> io::Result<Survey> {
    blocking(move || {
        let mut all = Survey::default();
        for (name, path) in places {
            let found = Root::open(path.as_path())?.survey()?;
            if name.is_empty() {
                return Ok(found);
            }
            all.is_cut |= found.is_cut;
            all.files.insert(name.clone(), DIRECTORY);
            let inner = found.files.into_iter();
            all.files
                .extend(inner.map(|(path, found)| (format!("{name}/{path}"), found)));
        }
        Ok(all)
    })
    .await
}

const DIRECTORY: Found = Found {
    is_directory: true,
    size: 0,
    modified: 0,
    changed: 0,
};

/// Makes a place of the container like `here`, which is what `roots` hold.
async fn make_alike(
    container: &Container,
    place: Place,
    here: &Survey,
    roots: &[(String, PathBuf)],
) -> Result<(), RunError> {
    let there = match container.answer(&Ask::Survey(place)).await? {
        Answer::Survey(survey) => survey,
        other => return Err(super::container::error_of(other)),
    };
    let Changes {
        gone,
        mut directories,
        files,
    } = Changes::between(here, &there);
    directories.extend(carry::parents(files.iter()).into_iter().map(str::to_owned));
    if !(gone.is_empty() && directories.is_empty()) {
        let arrange = Ask::Arrange {
            place,
            gone,
            directories,
        };
        match container.answer(&arrange).await? {
            Answer::Arranged => {}
            other => return Err(super::container::error_of(other)),
        }
    }
    let roots: BTreeMap<&str, &PathBuf> = roots
        .iter()
        .map(|(name, path)| (name.as_str(), path))
        .collect();
    for path in files {
        let (root, inner) = match roots.get("") {
            Some(root) => (root, path.as_str()),
            None => match path
                .split_once('/')
                .and_then(|(name, inner)| Some((roots.get(name)?, inner)))
            {
                Some(found) => found,
                None => continue,
            },
        };
        let (root, inner) = ((*root).clone(), inner.to_owned());
        // Deleted meanwhile: the next survey says so.
        let Ok((file, bytes)) = blocking(move || {
            let file = Root::open(root.as_path())?.file(&inner)?;
            let bytes = file.metadata()?.len();
            Ok((file, bytes))
        })
        .await
        else {
            continue;
        };
        let bring = Ask::Bring {
            place,
            bytes,
            modified: here.files[&path].modified,
            path,
        };
        match container.send(&bring, &mut Content::File(file)).await? {
            Answer::Brought => {}
            other => return Err(super::container::error_of(other)),
        }
    }
    Ok(())
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> io::Result<T> {
    tokio::task::spawn_blocking(work)
        .await
        .map_err(io::Error::other)?
}
