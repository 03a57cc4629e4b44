//! The MCP servers that Foreword is a client of: kept connected, their tools described and handed on.
//!
//! Everything that a request needs, the prompt and the list of tools, is made when a server's tools change, so that no
//! server can delay or fail a prompt. Deliberately absent: sampling, elicitation and roots, which servers are not
//! offered, and the servers' resources and prompts, which are not handed on.

mod board;
mod catalog;
mod child;
mod config;
mod file;
mod keeper;
mod link;
mod pattern;
mod progress;
mod remote;
mod supervisor;

use std::{
    collections::BTreeMap,
    fmt,
    path::PathBuf,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use arc_swap::ArcSwap;
use foreword_store::Clock;
use rmcp::{
    ErrorData,
    model::{CallToolResult, ContentBlock, JsonObject, ProgressNotificationParam},
};
use tokio::{sync::watch, time::sleep};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::{config::ToolsPromptConfig, session::Session};

pub use board::{ConnectionState, ConnectionStatus, Written};
pub use catalog::Catalog;
pub use child::Launch;
pub use config::{ConnectionConfig, ConnectionError, MAX_CONNECTIONS, MAX_NAME};
pub use supervisor::child_init_main;

use board::{Board, Turn};
use catalog::Offered;
use config::Connection;
use link::{Failed, Line, Link, Opening, ToolCall};

pub(crate) use catalog::Route;
pub(crate) use catalog::options as tools_prompt_options;

/// Looks a variable of the environment up.
pub type Variables = Arc<dyn Fn(&str) -> Option<String> + Send + Sync>;

/// What connections are made of; all of it is chosen by the caller.
#[derive(Clone)]
pub struct ConnectionsSetup {
    /// Those of the configuration, by name.
    pub configured: BTreeMap<String, ConnectionConfig>,
    /// The file with more of them, which is watched.
    pub file: Option<PathBuf>,
    /// What the tools prompt shows.
    pub tools_prompt: ToolsPromptConfig,
    /// How programs are started.
    pub launch: Launch,
    /// Where `${NAME}` comes from.
    pub variables: Variables,
    /// Where the time comes from.
    pub clock: Clock,
}

impl fmt::Debug for ConnectionsSetup {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("ConnectionsSetup")
            .field("configured", &self.configured)
            .field("file", &self.file)
            .field("tools_prompt", &self.tools_prompt)
            .finish_non_exhaustive()
    }
}

/// The connected MCP servers; cheap to clone.
#[derive(Clone)]
pub struct Connections {
    shared: Arc<Shared>,
}

struct Shared {
    board: Mutex<Board>,
    /// Held by who makes the catalog, which takes longer than the board may be held.
    publishing: Mutex<()>,
    catalog: ArcSwap<Catalog>,
    changes: watch::Sender<u64>,
    tools_prompt: ToolsPromptConfig,
    launch: Launch,
    variables: Variables,
    clock: Clock,
    stopping: CancellationToken,
    tasks: TaskTracker,
}

impl Connections {
    /// None, now and later.
    #[must_use]
    pub fn none(clock: Clock) -> Self {
        Self::new(ConnectionsSetup {
            configured: BTreeMap::new(),
            file: None,
            tools_prompt: ToolsPromptConfig::default(),
            launch: Launch::default(),
            variables: Arc::new(|_| None),
            clock,
        })
    }

    fn new(setup: ConnectionsSetup) -> Self {
        Self {
            shared: Arc::new(Shared {
                board: Mutex::default(),
                publishing: Mutex::default(),
                catalog: ArcSwap::default(),
                changes: watch::Sender::new(0),
                tools_prompt: setup.tools_prompt,
                launch: setup.launch,
                variables: setup.variables,
                clock: setup.clock,
                stopping: CancellationToken::new(),
                tasks: TaskTracker::new(),
            }),
        }
    }

    /// Starts to connect, in the background; to be called within a runtime.
    #[must_use]
    pub fn start(setup: ConnectionsSetup) -> Self {
        let configured: BTreeMap<String, Written> = setup
            .configured
            .iter()
            .map(|(name, config)| {
                let written = Written {
                    config: Ok(config.clone()),
                    doubts: Vec::new(),
                };
                (name.clone(), written)
            })
            .collect();
        let file = setup.file.clone();
        let connections = Self::new(setup);
        let shared = &connections.shared;
        match file {
            None => shared.apply(configured, Vec::new(), Told::ByTheCaller),
            Some(path) => {
                // Before this returns, so that the start can say what is exposed.
                let stamp = file::Stamp::of(&path);
                shared.apply_file(&configured, file::read(&path), Told::ByTheCaller);
                let watching = Arc::clone(shared).watch(path, stamp, configured);
                shared.tasks.spawn(watching);
            }
        }
        connections
    }

    /// The tools of all servers, as of now.
    #[must_use]
    pub fn catalog(&self) -> Arc<Catalog> {
        self.shared.catalog.load_full()
    }

    /// Tells of each change of the catalog, by its generation.
    #[must_use]
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.shared.changes.subscribe()
    }

    /// Every connection and how it is, by name.
    #[must_use]
    pub fn statuses(&self) -> Vec<ConnectionStatus> {
        self.shared.board().statuses()
    }

    /// What is wrong with the file of connections as a whole.
    #[must_use]
    pub fn errors(&self) -> Vec<String> {
        self.shared.board().errors.clone()
    }

    /// What the tools prompt shows.
    #[must_use]
    pub fn tools_prompt(&self) -> &ToolsPromptConfig {
        &self.shared.tools_prompt
    }

    /// Waits until each connection has been made or has failed once.
    pub async fn settled(&self) {
        while self
            .statuses()
            .iter()
            .any(|status| status.state == ConnectionState::Connecting)
        {
            sleep(std::time::Duration::from_millis(50)).await;
        }
    }

    /// Ends all connections and the programs behind them.
    pub async fn close(&self) {
        self.shared.stopping.cancel();
        self.shared.tasks.close();
        self.shared.tasks.wait().await;
    }

    /// Calls a tool on behalf of `session`; `news` gets what the server tells on the way. What goes wrong on the way is a result
    /// that names the server; an error is the server's own.
    pub(crate) async fn call<F>(
        &self,
        route: &Route,
        call: Call<'_>,
        news: impl FnMut(ProgressNotificationParam) -> F,
    ) -> Result<CallToolResult, ErrorData>
    where
        F: Future<Output = ()>,
    {
        let server = &route.server;
        let (connection, line) = self.shared.reach(server);
        let refusal = connection.as_ref();
        let refusal =
            refusal.and_then(|connection| connection.refusal(call.session, call.profile_id));
        if let Some(why) = refusal {
            return Ok(failed(&format!(
                "the tool `{}` of the MCP server `{server}` is not for this session: {why}",
                route.tool
            )));
        }
        // Why it is not connected is for the operator: its program's words may be about other users.
        let (Some(connection), Some(line)) = (connection, line) else {
            return Ok(failed(&format!(
                "the MCP server `{server}` is not connected now; try again in a moment, or tell the user"
            )));
        };
        let call = ToolCall {
            tool: route.tool.clone(),
            arguments: call.arguments,
            session: call.session,
            connection: &connection,
            cancelled: call.cancelled,
        };
        match line.call(call, news).await {
            Ok(result) => Ok(result),
            Err(Failed::Refused(error)) => Err(error),
            Err(Failed::Silent(why) | Failed::Broken(why)) => {
                let why = connection.secrets.shown(why);
                Ok(failed(&format!(
                    "the MCP server `{server}` {why}; the call of `{}` may or may not have had its effect",
                    route.tool
                )))
            }
        }
    }
}

/// A call of a tool that is handed on.
pub(crate) struct Call<'a> {
    pub(crate) arguments: Option<JsonObject>,
    pub(crate) session: &'a Session,
    /// The profile in force.
    pub(crate) profile_id: Option<&'a str>,
    pub(crate) cancelled: &'a CancellationToken,
}

fn failed(why: &str) -> CallToolResult {
    CallToolResult::error(vec![ContentBlock::text(why)])
}

/// Tries a connection once: connects, lists the tools, and closes. Says how many there are, with what is wrong with them.
///
/// # Errors
/// Why it cannot be made.
pub async fn try_connection(
    name: &str,
    config: &ConnectionConfig,
    launch: &Launch,
    variables: &Variables,
) -> Result<(usize, Vec<String>), String> {
    let connection = Connection::read(name, config, &**variables);
    let connection = connection.map_err(|error| error.to_string())?;
    let tried = async {
        let link = match Link::open(name, &connection, launch, Opening::Newest).await {
            // Some programs end at a question that they do not know.
            Err(_) if matches!(connection.transport, config::Transport::Stdio(_)) => {
                Link::open(name, &connection, launch, Opening::Older).await?
            }
            opened => opened?,
        };
        let offered = link.offered(connection.tools.as_deref()).await;
        link.close().await;
        let offered = offered.map_err(|why| why.to_string());
        offered.map(|(offered, problems)| (offered.tools.len(), problems))
    };
    tried
        .await
        .map_err(|why: String| connection.secrets.shown(why))
}

/// The connections of a file as [`ConnectionsSetup::file`] names it.
///
/// # Errors
/// What is wrong with the file as a whole.
pub fn read_file(path: &std::path::Path) -> Result<BTreeMap<String, Written>, String> {
    file::read(path)
}

/// Who says what is wrong with connections as they are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Told {
    /// Who starts the server, with all else that is to be known at a start.
    ByTheCaller,
    /// Nobody else, since it changed while the server runs.
    InTheLog,
}

impl Shared {
    fn board(&self) -> MutexGuard<'_, Board> {
        self.board.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Looks at the file now and then, and puts in force what it says.
    async fn watch(
        self: Arc<Self>,
        path: PathBuf,
        mut known: file::Stamp,
        configured: BTreeMap<String, Written>,
    ) {
        let mut was_gone = false;
        loop {
            tokio::select! {
                () = sleep(file::LOOK) => {}
                () = self.stopping.cancelled() => return,
            }
            let (looked_at, known_before) = (path.clone(), known.clone());
            let looking = tokio::task::spawn_blocking(move || {
                let stamp = file::Stamp::of(&looked_at);
                (stamp != known_before)
                    .then(|| (stamp.clone(), file::read(&looked_at)))
                    .ok_or(known_before)
            });
            let looked = tokio::select! {
                looked = looking => looked,
                () = self.stopping.cancelled() => return,
            };
            match looked.expect("reading a file does not panic, and nobody cancels it") {
                Err(same) => (known, was_gone) = (same, false),
                // Some editors take a file away before they put it back.
                Ok((stamp, _)) if stamp.is_of_nothing() && !was_gone => was_gone = true,
                Ok((stamp, read)) => {
                    if stamp.is_of_nothing() {
                        tracing::warn!("The file of connections is gone, and so are its servers");
                    }
                    (known, was_gone) = (stamp, false);
                    self.apply_file(&configured, read, Told::InTheLog);
                }
            }
        }
    }

    /// Puts in force what the file says beside the configuration. A file that cannot be read changes nothing.
    fn apply_file(
        self: &Arc<Self>,
        configured: &BTreeMap<String, Written>,
        read: Result<BTreeMap<String, Written>, String>,
        told: Told,
    ) {
        let of_file = match read {
            Ok(of_file) => of_file,
            Err(why) => {
                if told == Told::InTheLog {
                    tracing::error!("The connections stay as they are: {why}");
                    self.board().errors = vec![why];
                } else {
                    self.apply(configured.clone(), vec![why], told);
                }
                return;
            }
        };
        let mut errors = Vec::new();
        let mut all = configured.clone();
        for (name, written) in of_file {
            if all.contains_key(&name) {
                errors.push(format!(
                    "`{name}` is in `connections.json` and in the configuration, which counts; rename one of them"
                ));
            } else if all.len() >= MAX_CONNECTIONS {
                errors.push(format!(
                    "`{name}` is left out: there are {MAX_CONNECTIONS} connections"
                ));
            } else {
                all.insert(name, written);
            }
        }
        if told == Told::InTheLog {
            for error in &errors {
                tracing::error!("{error}");
            }
        }
        self.apply(all, errors, told);
    }

    /// Puts these connections in the place of those before; what is written as it was goes on as it is.
    fn apply(self: &Arc<Self>, all: BTreeMap<String, Written>, errors: Vec<String>, told: Told) {
        let mut board = self.board();
        board.errors = errors;
        let (mut replaced, mut before) = (BTreeMap::new(), BTreeMap::new());
        board.entries.retain(|name, entry| {
            let written = all.get(name);
            let stays = written.is_some_and(|written| written.says_the_same(&entry.written));
            if !stays {
                entry.stop.cancel();
                before.insert(name.clone(), entry.over.clone());
                // The tools of a server that is only written otherwise stay until it is connected again.
                let is_the_same =
                    written.is_some_and(|written| written.is_of_the_same(&entry.written));
                if is_the_same && let Some(offered) = entry.offered.take() {
                    replaced.insert(name.clone(), offered);
                }
            }
            stays
        });
        for (name, written) in all {
            if board.entries.contains_key(&name) {
                continue;
            }
            let read = match &written.config {
                Ok(config) if config.disabled => Ok(None),
                Ok(config) => Connection::read(&name, config, &*self.variables)
                    .map(|connection| Some(Arc::new(connection)))
                    .map_err(|error| error.to_string()),
                Err(why) => Err(why.clone()),
            };
            if let Err(why) = &read
                && told == Told::InTheLog
            {
                tracing::error!(
                    connection = name,
                    "The MCP server `{name}` cannot be connected: {why}"
                );
            }
            if told == Told::InTheLog {
                for doubt in &written.doubts {
                    tracing::warn!(connection = name, "{doubt}");
                }
            }
            let connection = read.as_ref().ok().cloned().flatten();
            let stop = self.stopping.child_token();
            let offered = connection.as_ref().and_then(|connection| {
                let offered = replaced.remove(&name)?;
                Some(Arc::new(offered.only(connection.tools.as_deref())))
            });
            let over = CancellationToken::new();
            let turn = board.enter(&name, written, read, offered, stop.clone(), over.clone());
            if let Some(connection) = connection {
                let before = before.remove(&name);
                let life = keeper::Life { stop, before, over };
                let keeping = keeper::keep(Arc::clone(self), turn, connection, life);
                self.tasks.spawn(keeping);
            } else {
                over.cancel();
            }
        }
        drop(board);
        self.publish();
    }

    /// What a call needs of the connection `server`.
    fn reach(&self, server: &str) -> (Option<Arc<Connection>>, Option<Line>) {
        let board = self.board();
        match board.entries.get(server) {
            Some(entry) => (entry.connection.clone(), entry.line.clone()),
            None => (None, None),
        }
    }

    fn connecting(&self, turn: &Turn) {
        if let Some(entry) = self.board().of(turn) {
            // One that is down stays so in the eyes of those who look, until it is up.
            if entry.last_error.is_none() {
                entry.state = ConnectionState::Connecting;
            }
        }
    }

    /// Notes what a server offers. It counts as ready when its tools are where everybody looks for them.
    fn ready(&self, turn: &Turn, link: &Link, offered: Offered, problems: Vec<String>) {
        let now = (self.clock)();
        let tools = offered.tools.len();
        let mut board = self.board();
        let Some(entry) = board.of(turn) else { return };
        if problems != entry.problems {
            for problem in &problems {
                tracing::warn!(connection = turn.name, "{problem}");
            }
        }
        entry.problems = problems;
        let is_new = entry.offered.as_deref() != Some(&offered);
        if is_new {
            entry.offered = Some(Arc::new(offered));
        }
        drop(board);
        if is_new {
            self.publish();
        }
        let mut board = self.board();
        let Some(entry) = board.of(turn) else { return };
        if entry.state != ConnectionState::Ready {
            tracing::info!(
                connection = turn.name,
                tools,
                "The MCP server `{}` is connected",
                turn.name
            );
        }
        entry.state = ConnectionState::Ready;
        entry.last_error = None;
        entry.last_refresh = Some(now);
        entry.protocol_version = link.info().map(|info| info.protocol_version.to_string());
        entry.line = Some(link.line());
    }

    fn disconnected(&self, turn: &Turn) {
        if let Some(entry) = self.board().of(turn) {
            entry.line = None;
        }
    }

    fn down(&self, turn: &Turn, why: String) {
        if let Some(entry) = self.board().of(turn) {
            // Tried again and again, it would say the same again and again.
            if entry.last_error.as_ref() != Some(&why) {
                tracing::warn!(
                    connection = turn.name,
                    "The MCP server `{}` is down: {why}",
                    turn.name
                );
            }
            entry.state = ConnectionState::Down;
            entry.last_error = Some(why);
        }
    }

    /// Takes the tools of a server that stayed away out of the prompt.
    fn withdraw(&self, turn: &Turn) {
        let taken = self.board().of(turn).and_then(|entry| entry.offered.take());
        if taken.is_some() {
            self.publish();
        }
    }

    /// Makes the catalog anew; if it says what it said, nothing has changed. The board must not be held: what a server lists may take a
    /// while to describe.
    fn publish(&self) {
        let _alone = self
            .publishing
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let servers = self.board().servers();
        let (catalog, mut clashes) = Catalog::new(&servers, &self.tools_prompt);
        for (name, entry) in &mut self.board().entries {
            let clashes = clashes.remove(name).unwrap_or_default();
            if clashes != entry.clashes {
                for clash in &clashes {
                    tracing::warn!(connection = name, "{clash}");
                }
            }
            entry.clashes = clashes;
        }
        let before = self.catalog.load();
        if catalog.says_the_same(&before) {
            return;
        }
        let generation = before.generation + 1;
        self.catalog.store(catalog::numbered(catalog, generation));
        self.changes.send_replace(generation);
    }
}
