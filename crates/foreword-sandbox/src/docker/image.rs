//! Makes an image ready for sandboxes: the operator's image, and in it our program, the user, and the places of the workspace.
//!
//! That is done once for each image and program, and kept under a name that says which, so all containers start alike, on whichever
//! engine, and with a root file system that nobody can write to.

use std::{
    collections::HashMap,
    hash::{DefaultHasher, Hash, Hasher},
    io,
    path::Path,
    sync::Arc,
};

use bollard::{
    Docker,
    errors::Error,
    models::{ContainerConfig, ContainerCreateBody, HostConfig},
    query_parameters::{
        CommitContainerOptionsBuilder, ContainerArchiveInfoOptionsBuilder,
        CreateContainerOptionsBuilder, CreateImageOptionsBuilder,
        DownloadFromContainerOptionsBuilder, UploadToContainerOptionsBuilder,
    },
};
use bytes::Bytes;
use futures::{StreamExt, TryStreamExt};
use tokio::sync::mpsc;

use super::{
    Unfinished,
    engine::{self, Engine},
    program::Program,
};
use crate::{
    error::SandboxError,
    spec::{HOME, OUTPUTS, SKILLS, UPLOADS},
    state::Unavailable,
};

/// What prepared images are called.
const REPOSITORY: &str = "foreword-prepared";
/// How long `/etc/passwd` and `/etc/group` may be.
const MOST_ACCOUNT_BYTES: usize = 1 << 20;
/// How many pieces of an archive may wait to be sent.
const PIECES: usize = 8;
const PIECE_BYTES: usize = 256 << 10;

/// An image that sandboxes can be made of.
#[derive(Debug, Clone)]
pub(super) struct Prepared {
    /// Its name.
    pub(super) name: String,
    /// The environment that it wants programs to have, without the search path.
    pub(super) environment: Vec<(String, String)>,
    /// Places that it wants volumes for.
    pub(super) volumes: Vec<String>,
}

/// Who works in a sandbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct User {
    pub(super) uid: u32,
    pub(super) gid: u32,
}

/// Prepares `image`, which is pulled if it is not there.
pub(super) async fn prepare(
    engine: &Arc<Engine>,
    instance: &str,
    image: &str,
    program: &Program,
    user: User,
) -> Result<Prepared, SandboxError> {
    let client = engine.client().await?;
    let found = match client.inspect_image(image).await {
        Err(error) if engine::is_absent(&error) => {
            pull(&client, image).await?;
            client.inspect_image(image).await
        }
        other => other,
    };
    let found = found.map_err(|error| engine.explain(error))?;
    check_architecture(image, found.architecture.as_deref(), program)?;
    let config = found.config.unwrap_or_default();
    let volumes = config.volumes.unwrap_or_default();
    let environment = config.env.unwrap_or_default();
    let environment: Vec<(String, String)> = environment
        .iter()
        .filter_map(|line| line.split_once('='))
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect();
    let path = environment
        .iter()
        .find(|(name, _)| name == "PATH")
        .map(|(_, path)| path.clone());
    let mut hasher = DefaultHasher::new();
    let stamp = program.stamp().map_err(super::backend_error)?;
    (found.id, stamp, user, VERSION).hash(&mut hasher);
    let tag = format!("{:016x}", hasher.finish());
    let name = format!("{REPOSITORY}:{tag}");
    match client.inspect_image(&name).await {
        Ok(_) => {}
        Err(error) if engine::is_absent(&error) => {
            tracing::info!(image, "Preparing the image `{image}` for sandboxes");
            let draft = Draft {
                engine,
                instance,
                client: &client,
                program,
                user,
                path: path.as_deref(),
            };
            draft.make(image, &tag).await?;
        }
        Err(error) => return Err(engine.explain(error)),
    }
    Ok(Prepared {
        name,
        environment: environment
            .into_iter()
            .filter(|(name, _)| !OURS.contains(&name.as_str()))
            .collect(),
        volumes,
    })
}

/// Changed whenever an image is prepared in another way.
const VERSION: u32 = 4;
/// Variables that are not for the image to decide.
const OURS: [&str; 8] = [
    "HOME", "USER", "LOGNAME", "SHELL", "PATH", "PWD", "TMPDIR", "HOSTNAME",
];

/// Pulls an image, and says in the log how far it is.
async fn pull(client: &Docker, image: &str) -> Result<(), SandboxError> {
    tracing::info!(image, "Pulling the image `{image}` for sandboxes");
    let named = if image.contains('@')
        || image
            .rsplit('/')
            .next()
            .is_some_and(|last| last.contains(':'))
    {
        image.to_owned()
    } else {
        format!("{image}:latest")
    };
    let options = CreateImageOptionsBuilder::default()
        .from_image(&named)
        .build();
    let mut progress = std::pin::pin!(client.create_image(Some(options), None, None));
    let mut said = HashMap::new();
    while let Some(step) = progress.next().await {
        let step = step.map_err(|error| not_pulled(image, &engine::in_words(&error)))?;
        if let Some(error) = step.error_detail.and_then(|error| error.message) {
            return Err(not_pulled(image, &error));
        }
        let (Some(layer), Some(status)) = (step.id, step.status) else {
            continue;
        };
        // The bytes of a layer come many times a second; what it is at, a few times in all.
        if said.insert(layer.clone(), status.clone()).as_ref() != Some(&status) {
            tracing::info!(
                image,
                layer,
                "Pulling the image `{image}`: {layer} {status}"
            );
        }
    }
    Ok(())
}

fn not_pulled(image: &str, why: &str) -> SandboxError {
    Unavailable {
        reason: format!("the container engine has no image `{image}` and cannot pull it: {why}"),
        cure: format!(
            "`docker pull {image}` or `docker load` it there, or set `sandbox.docker.image` to one that is there"
        ),
    }
    .into()
}

/// An image that is being prepared.
struct Draft<'a> {
    engine: &'a Arc<Engine>,
    instance: &'a str,
    client: &'a Docker,
    program: &'a Program,
    user: User,
    path: Option<&'a str>,
}

impl Draft<'_> {
    async fn make(&self, image: &str, tag: &str) -> Result<(), SandboxError> {
        let labels = [(super::MANAGED, "true"), (super::INSTANCE, self.instance)];
        let body = ContainerCreateBody {
            image: Some(image.to_owned()),
            entrypoint: Some(vec!["/bin/bash".to_owned()]),
            labels: Some(
                labels
                    .map(|(name, value)| (name.to_owned(), value.to_owned()))
                    .into(),
            ),
            host_config: Some(HostConfig {
                network_mode: Some("none".to_owned()),
                ..HostConfig::default()
            }),
            ..ContainerCreateBody::default()
        };
        let options = CreateContainerOptionsBuilder::default().build();
        let created = self.client.create_container(Some(options), body).await;
        let container = created.map_err(|error| self.engine.explain(error))?.id;
        let unfinished = Unfinished::new(self.engine, container.clone());
        let made = self.fill(image, &container, tag).await;
        unfinished.remove().await;
        made
    }

    /// Whether there is bash, without which nothing can be done.
    async fn check_bash(&self, image: &str, container: &str) -> Result<(), SandboxError> {
        for path in ["/bin/bash", "/usr/bin/bash"] {
            let options = ContainerArchiveInfoOptionsBuilder::default()
                .path(path)
                .build();
            let found = self
                .client
                .get_container_archive_info(container, Some(options))
                .await;
            match found {
                Ok(_) => return Ok(()),
                Err(error) if engine::is_absent(&error) => {}
                Err(error) => return Err(self.engine.explain(error)),
            }
        }
        Err(Unavailable {
            reason: format!("the image `{image}` has no bash, which commands are run by"),
            cure: "install it in the image, or set `sandbox.docker.image` to another one"
                .to_owned(),
        }
        .into())
    }

    async fn fill(&self, image: &str, container: &str, tag: &str) -> Result<(), SandboxError> {
        self.check_bash(image, container).await?;
        self.fill_and_commit(container, tag)
            .await
            .map_err(|error| self.engine.explain(error))
    }

    async fn fill_and_commit(&self, container: &str, tag: &str) -> Result<(), Error> {
        let accounts = Accounts {
            passwd: self.read(container, "/etc/passwd").await?,
            group: self.read(container, "/etc/group").await?,
        }
        .with(self.user);
        let (sender, mut receiver) = mpsc::channel(PIECES);
        let (program, user, profile) = (self.program.clone(), self.user, profile(self.path));
        let writing = tokio::task::spawn_blocking(move || {
            let pieces = Pieces {
                sender,
                piece: Vec::with_capacity(PIECE_BYTES),
            };
            write_archive(pieces, &program, user, &accounts, &profile)
        });
        let pieces = futures::stream::poll_fn(move |context| receiver.poll_recv(context));
        let options = UploadToContainerOptionsBuilder::default().path("/").build();
        let body = bollard::body_try_stream(pieces.map(Ok::<_, io::Error>));
        let sent = self
            .client
            .upload_to_container(container, Some(options), body)
            .await;
        let written = writing.await.map_err(io::Error::other)?;
        sent?;
        written?;
        let options = CommitContainerOptionsBuilder::default()
            .container(container)
            .repo(REPOSITORY)
            .tag(tag)
            .pause(false)
            .build();
        let config = ContainerConfig {
            labels: Some([(super::MANAGED.to_owned(), "true".to_owned())].into()),
            ..ContainerConfig::default()
        };
        self.client.commit_container(options, config).await?;
        Ok(())
    }

    /// Reads a small text file of a container; one that is not there, or is none, is empty.
    async fn read(&self, container: &str, path: &str) -> Result<String, Error> {
        let options = DownloadFromContainerOptionsBuilder::default()
            .path(path)
            .build();
        let archive = self
            .client
            .download_from_container(container, Some(options))
            .try_fold(Vec::new(), |mut all, piece| async move {
                if all.len() + piece.len() <= MOST_ACCOUNT_BYTES {
                    all.extend_from_slice(&piece);
                }
                Ok(all)
            });
        let archive = match archive.await {
            Err(error) if engine::is_absent(&error) => return Ok(String::new()),
            other => other?,
        };
        Ok(text_of(&archive).unwrap_or_default())
    }
}

/// The files of an archive, one after the other.
fn text_of(archive: &[u8]) -> io::Result<String> {
    let mut text = Vec::new();
    for entry in tar::Archive::new(archive).entries()? {
        io::Read::read_to_end(&mut entry?, &mut text)?;
    }
    Ok(String::from_utf8_lossy(&text).into_owned())
}

/// Refuses an image that our program cannot run in.
fn check_architecture(
    image: &str,
    architecture: Option<&str>,
    program: &Program,
) -> Result<(), SandboxError> {
    let ours = match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    };
    match architecture {
        Some(theirs) if program.is_ours() && !theirs.is_empty() && theirs != ours => {
            Err(Unavailable {
                reason: format!(
                    "the image `{image}` is for {theirs}, and this server is for {ours}"
                ),
                cure:
                    "set `sandbox.docker.program` to a static `foreword` for Linux that runs there"
                        .to_owned(),
            }
            .into())
        }
        _ => Ok(()),
    }
}

/// Who is known in an image.
struct Accounts {
    passwd: String,
    group: String,
}

impl Accounts {
    /// The same with the sandbox's user, who comes first, so that the number has this name and no other.
    fn with(&self, user: User) -> Self {
        let User { uid, gid } = user;
        let others = |text: &str| -> String {
            let others = text
                .lines()
                .filter(|line| !line.is_empty() && !line.starts_with("assistant:"));
            others.flat_map(|line| [line, "\n"]).collect()
        };
        Self {
            passwd: format!(
                "assistant:x:{uid}:{gid}:assistant:{HOME}:/bin/bash\n{}",
                others(&self.passwd)
            ),
            group: format!("assistant:x:{gid}:\n{}", others(&self.group)),
        }
    }
}

/// Gives a login shell the search path of the image: `/etc/profile` of most distributions sets its own.
fn profile(path: Option<&str>) -> String {
    let path = path.unwrap_or("/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin");
    let quoted = path.replace('\'', r"'\''");
    format!("PATH=\"$HOME/.local/bin\":'{quoted}'\nexport PATH\numask 022\n")
}

fn write_archive(
    to: Pieces,
    program: &Program,
    user: User,
    accounts: &Accounts,
    profile: &str,
) -> io::Result<()> {
    let mut archive = tar::Builder::new(to);
    let root = User { uid: 0, gid: 0 };
    for (path, owner, mode) in [
        (super::program::DIRECTORY, root, 0o755),
        (".foreword/lib", root, 0o755),
        // An engine gives what it mounts there this mode.
        (&super::MEETING_PLACE[1..], root, 0o700),
        ("etc/profile.d", root, 0o755),
        (&HOME[1..], user, 0o755),
        (&UPLOADS[1..], root, 0o755),
        (&OUTPUTS[1..], user, 0o755),
        (&SKILLS[1..], root, 0o755),
    ] {
        let header = header(tar::EntryType::Directory, mode, owner, 0);
        append(&mut archive, header, path, io::empty())?;
    }
    for (path, text) in [
        ("etc/passwd", accounts.passwd.as_str()),
        ("etc/group", &accounts.group),
        ("etc/profile.d/zz-foreword.sh", profile),
        // What an image preloads would run in our program, too.
        ("etc/ld.so.preload", ""),
    ] {
        let header = header(tar::EntryType::Regular, 0o644, root, text.len() as u64);
        append(&mut archive, header, path, text.as_bytes())?;
    }
    for (path, name) in program.files() {
        let file = std::fs::File::open(path)?;
        let length = file.metadata()?.len();
        let header = header(tar::EntryType::Regular, 0o755, root, length);
        append(&mut archive, header, &name, file)?;
    }
    archive.into_inner()?.finish()
}

fn header(kind: tar::EntryType, mode: u32, owner: User, length: u64) -> tar::Header {
    let mut header = tar::Header::new_gnu();
    header.set_entry_type(kind);
    header.set_mode(mode);
    header.set_uid(owner.uid.into());
    header.set_gid(owner.gid.into());
    header.set_size(length);
    header.set_mtime(0);
    header
}

fn append(
    archive: &mut tar::Builder<Pieces>,
    mut header: tar::Header,
    path: impl AsRef<Path>,
    content: impl io::Read,
) -> io::Result<()> {
    archive.append_data(&mut header, path, content)
}

/// Sends what is written in pieces, and waits while too many wait to be taken.
struct Pieces {
    sender: mpsc::Sender<Bytes>,
    piece: Vec<u8>,
}

impl Pieces {
    fn finish(mut self) -> io::Result<()> {
        io::Write::flush(&mut self)
    }
}

impl io::Write for Pieces {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.piece.extend_from_slice(bytes);
        if self.piece.len() >= PIECE_BYTES {
            self.flush()?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        let piece = std::mem::replace(&mut self.piece, Vec::with_capacity(PIECE_BYTES));
        if piece.is_empty() {
            return Ok(());
        }
        self.sender
            .blocking_send(piece.into())
            .map_err(|_| io::ErrorKind::BrokenPipe.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_user_takes_the_place_of_whoever_had_the_number_or_the_name() {
        let accounts = Accounts {
            passwd: "root:x:0:0::/root:/bin/bash\nassistant:x:7:7::/:/bin/sh\nnode:x:1000:1000::/home/node:/bin/bash".to_owned(),
            group: String::new(),
        }
        .with(User {
            uid: 1000,
            gid: 1000,
        });
        assert_eq!(
            accounts.passwd,
            "assistant:x:1000:1000:assistant:/home/assistant:/bin/bash\nroot:x:0:0::/root:/bin/bash\n\
             node:x:1000:1000::/home/node:/bin/bash\n"
        );
        assert_eq!(accounts.group, "assistant:x:1000:\n");
    }

    #[test]
    fn the_search_path_of_an_image_is_quoted() {
        assert_eq!(
            profile(Some("/opt/it's/bin:/bin")),
            "PATH=\"$HOME/.local/bin\":'/opt/it'\\''s/bin:/bin'\nexport PATH\numask 022\n"
        );
    }
}
