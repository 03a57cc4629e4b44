//! The way into a chat's workspace: its owner is checked, its files are held, its README is what the session's prompt is.

use std::{path::Path, sync::Arc};

use foreword_sandbox::{
    Content, FileStat, InsteadOf, SandboxError, SandboxKey, SandboxSpec, WriteFile,
};
use moka::future::Cache;

use crate::{
    app::App,
    config::Form,
    render::{README_PATH, RenderError, SessionPrompt},
    session::{ChatId, Session},
    skills::Patience,
    workspace::{Workspace, WorkspaceError},
};

/// A workspace, for as long as a tool works in it.
pub struct Entered {
    /// Holds its files.
    _workspace: Workspace,
    /// Its sandbox.
    pub spec: SandboxSpec,
}

/// Why a workspace cannot be worked in, in words for the model.
#[derive(Debug, thiserror::Error)]
pub enum EntryError {
    /// It is another user's, or cannot be made.
    #[error(transparent)]
    Workspace(#[from] WorkspaceError),
    /// There is no prompt to write into it.
    #[error(transparent)]
    Render(#[from] RenderError),
    /// There is no sandbox.
    #[error(transparent)]
    Sandbox(#[from] SandboxError),
    /// Without its README it would not be what it is said to be.
    #[error("the instructions could not be written to {README_PATH}: {0}")]
    Readme(SandboxError),
}

/// Enters the session's workspace: made on first use, started if it does not run.
pub async fn enter(app: &App, session: &Session) -> Result<Entered, EntryError> {
    let workspace = app.workspaces().enter(session).await?;
    let skills = app
        .skills()
        .of(session.prompt_email(), Patience::Call)
        .await;
    let prompt = app
        .renderer()
        .render_showing(session, Form::Full, &skills)
        .await?;
    let mut sets = vec![skills];
    // A request that names no user is about what is for all, and takes nothing away from the chat's user.
    if let (None, Some(owner)) = (&session.user_email, workspace.owner()) {
        let owner = Arc::from(owner);
        sets.push(app.skills().of(Some(&owner), Patience::Call).await);
    }
    let key = sandbox_key(&session.chat_id);
    let shown = app.skills().show(&sets, &workspace, &key).await;
    let spec = SandboxSpec {
        key,
        home: workspace.home_path(),
        outputs: workspace.outputs_path(),
        uploads: workspace.uploads_path(),
        skills: shown,
    };
    let started = app.sandboxes().open(&spec).await?;
    let readme = refresh(app, &spec, &prompt, started).await;
    readme.map_err(EntryError::Readme)?;
    Ok(Entered {
        _workspace: workspace,
        spec,
    })
}

/// The name of a chat's sandbox.
pub(crate) fn sandbox_key(chat_id: &ChatId) -> SandboxKey {
    SandboxKey::new(chat_id.file_name()).expect("file names of chats are safe words")
}

/// What was written where, as far as that is remembered; what is forgotten is written once more.
pub(crate) struct Readmes(Cache<SandboxKey, Written>);

/// How many workspaces' READMEs are remembered.
const MOST_REMEMBERED: u64 = 10_000;

/// A README as it was when it was written.
#[derive(Clone, PartialEq, Eq)]
struct Written {
    revision: String,
    size: u64,
    changed: i64,
}

impl Readmes {
    pub(crate) fn new() -> Self {
        Self(Cache::new(MOST_REMEMBERED))
    }
}

/// Writes the README unless it is there as it should be. It is looked at each time: the model may have changed it.
async fn refresh(
    app: &App,
    spec: &SandboxSpec,
    prompt: &SessionPrompt,
    started: bool,
) -> Result<(), SandboxError> {
    let Readmes(readmes) = app.readmes();
    let (sandboxes, path) = (app.sandboxes(), Path::new(README_PATH));
    let as_it_is = |stat: FileStat| Written {
        revision: prompt.revision().to_owned(),
        size: stat.size,
        changed: stat.changed,
    };
    if !started
        && let Some(written) = readmes.get(&spec.key).await
        && let Ok(stat) = sandboxes.stat(spec, path).await
        && written == as_it_is(stat)
    {
        return Ok(());
    }
    let write = WriteFile {
        path: path.to_owned(),
        instead_of: InsteadOf::Anything,
        mode: Some(0o644),
        content: Content::Bytes(prompt.text().into()),
    };
    sandboxes.write_file(spec, write).await?;
    let stat = sandboxes.stat(spec, path).await?;
    readmes.insert(spec.key.clone(), as_it_is(stat)).await;
    Ok(())
}
