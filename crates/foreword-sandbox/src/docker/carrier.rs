//! The server's side of carrying files to and from one container; see [`super::carry`].

use std::{
    collections::HashSet,
    fs::{self, File},
    io::{self, Write},
    path::{Path, PathBuf},
    sync::Weak,
    time::{Duration, UNIX_EPOCH},
};

use tokio::sync::Mutex;

use super::{
    carry::{self, Changes, Survey},
    container::Container,
    frames::{Answer, Ask, Place},
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
/// How often is looked for what is written in the background.
const PERIOD: Duration = Duration::from_secs(5);
/// What an unfinished file is called.
const PART: &str = ".foreword-part";

/// Where the files of one chat are on this host, and what is known to be the same on both sides.
pub(super) struct Carrier {
    uploads: PathBuf,
    outputs: PathBuf,
    skills: Vec<(String, PathBuf)>,
    known: Mutex<Known>,
}

#[derive(Default)]
struct Known {
    uploads: Option<Survey>,
    skills: Option<Survey>,
    outputs: Survey,
}

impl Carrier {
    pub(super) fn new(spec: &SandboxSpec) -> Self {
        Self {
            uploads: spec.uploads.clone(),
            outputs: spec.outputs.clone(),
            skills: spec
                .skills
                .iter()
                .map(|skills| (skills.name.clone(), skills.host.clone()))
                .collect(),
            known: Mutex::default(),
        }
    }

    /// Carries in what the sandbox does not have yet.
    pub(super) async fn bring_in(&self, container: &Container) -> Result<(), RunError> {
        let mut known = self.known.lock().await;
        let uploads = survey(vec![(String::new(), self.uploads.clone())]).await?;
        if known.uploads.as_ref() != Some(&uploads) {
            let find = |path: &str| carry::below(&self.uploads, path);
            make_alike(container, Place::Uploads, &uploads, find).await?;
            known.uploads = Some(uploads);
        }
        let skills = survey(self.skills.clone()).await?;
        if known.skills.as_ref() != Some(&skills) {
            let find = |path: &str| {
                let (name, rest) = path.split_once('/')?;
                let (_, host) = self.skills.iter().find(|(other, _)| other == name)?;
                carry::below(host, rest)
            };
            make_alike(container, Place::Skills, &skills, find).await?;
            known.skills = Some(skills);
        }
        Ok(())
    }

    /// Carries out what the user does not have yet.
    pub(super) async fn bring_out(&self, container: &Container) -> Result<(), RunError> {
        let mut known = self.known.lock().await;
        let there = match container.answer(&Ask::Survey(Place::Outputs)).await? {
            Answer::Survey(survey) => survey,
            other => return Err(super::container::error_of(other)),
        };
        if known.outputs == there {
            return Ok(());
        }
        let here = survey(vec![(String::new(), self.outputs.clone())]).await?;
        let mut changes = Changes::between(&there, &here);
        // A time can be set back, but not when it was set.
        let carried: HashSet<_> = changes.files.iter().cloned().collect();
        changes.files.extend(
            there
                .iter()
                .filter(|(path, found)| {
                    let before = known.outputs.get(*path);
                    before.is_some_and(|before| before.changed != found.changed)
                        && !found.is_directory
                        && !carried.contains(*path)
                })
                .map(|(path, _)| path.clone()),
        );
        carry::delete(&self.outputs, &changes.gone)?;
        let parents = carry::parents(changes.files.iter());
        let directories = changes.directories.iter().map(String::as_str);
        for path in directories.chain(parents) {
            if let Some(path) = carry::below(&self.outputs, path) {
                fs::create_dir_all(path)?;
            }
        }
        let mut all = true;
        for path in &changes.files {
            all &= self.fetch(container, path, there[path].modified).await?;
        }
        // What changed while it was fetched is looked at again.
        known.outputs = if all { there } else { Survey::new() };
        Ok(())
    }

    /// Fetches a file; says whether it was there.
    async fn fetch(
        &self,
        container: &Container,
        path: &str,
        modified: i64,
    ) -> Result<bool, RunError> {
        let Some(target) = carry::below(&self.outputs, path) else {
            return Ok(true);
        };
        let part = self.outputs.join(PART);
        let mut file = File::create(&part)?;
        let mut offset = 0;
        loop {
            let ask = Ask::Fetch {
                place: Place::Outputs,
                path: path.to_owned(),
                offset,
                limit: PIECE_BYTES,
            };
            let (answer, bytes) = container.answer_with_content(&ask, PIECE_BYTES).await?;
            let Answer::Fetched(length) = answer else {
                // It was deleted, or became something else.
                let _ = fs::remove_file(&part);
                return Ok(false);
            };
            file.write_all(&bytes)?;
            offset += bytes.len() as u64;
            if bytes.is_empty() || offset >= length {
                break;
            }
        }
        let modified = u64::try_from(modified).unwrap_or_default();
        file.set_modified(UNIX_EPOCH + Duration::from_nanos(modified))?;
        fs::rename(&part, &target)?;
        Ok(true)
    }

    /// Gives a container whose volumes are new the outputs that this host has.
    pub(super) async fn restore_outputs(&self, container: &Container) -> Result<(), RunError> {
        let here = survey(vec![(String::new(), self.outputs.clone())]).await?;
        for (path, found) in here.iter().filter(|(_, found)| !found.is_directory) {
            let Some(host) = carry::below(&self.outputs, path) else {
                continue;
            };
            let operation = FileOperation::Write {
                path: Path::new(OUTPUTS).join(path),
                instead_of: InsteadOf::File,
                mode: None,
                bytes: found.size,
            };
            let mut content = Content::File(File::open(host)?);
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
        container.bring_out().await;
    }
}

/// Surveys directories of this host, the paths of each below its name.
async fn survey(places: Vec<(String, PathBuf)>) -> io::Result<Survey> {
    let work = move || {
        let mut all = Survey::new();
        for (name, root) in places {
            let found = carry::survey(&root)?;
            if name.is_empty() {
                return Ok(found);
            }
            all.insert(
                name.clone(),
                carry::Found {
                    is_directory: true,
                    size: 0,
                    modified: 0,
                    changed: 0,
                },
            );
            all.extend(
                found
                    .into_iter()
                    .map(|(path, found)| (format!("{name}/{path}"), found)),
            );
        }
        Ok(all)
    };
    tokio::task::spawn_blocking(work)
        .await
        .map_err(io::Error::other)?
}

/// Makes a place of the container like `here`, whose files `find` finds.
async fn make_alike(
    container: &Container,
    place: Place,
    here: &Survey,
    find: impl Fn(&str) -> Option<PathBuf>,
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
    for path in files {
        // Deleted meanwhile: the next survey says so.
        let Some(Ok(file)) = find(&path).map(File::open) else {
            continue;
        };
        let bring = Ask::Bring {
            place,
            bytes: file.metadata()?.len(),
            modified: here[&path].modified,
            path,
        };
        match container.send(&bring, &mut Content::File(file)).await? {
            Answer::Brought => {}
            other => return Err(super::container::error_of(other)),
        }
    }
    Ok(())
}
