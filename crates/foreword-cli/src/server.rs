//! Puts the server together from the configuration: which store, which sandboxes, which link key, which clock.

use std::{ffi::OsString, net::SocketAddr, path::PathBuf, sync::Arc};

use foreword_sandbox::{BackendName, Enforcement, Network, Sandboxes, SandboxesState, Setup};
use foreword_server::{
    App, AppParts, Connections, Session, Skills, Workspaces,
    config::{ConfigError, Warning},
    connections::{ConnectionState, ConnectionsSetup, Launch, Variables},
    render::Surroundings,
    session::{SessionError, SessionSources},
};
use foreword_store::{Clock, Store};
use http::HeaderMap;

use crate::{
    config::{Config, Loaded},
    failure::{Exit, Failure},
    library, link_key,
};

/// The server's state, with what the operator should know about it.
///
/// `listening` is the address in force, which stands in URLs while `public_base_url` is not set.
pub(crate) fn app(
    config: &Config,
    environment: &[(OsString, OsString)],
    store: Arc<dyn Store>,
    listening: SocketAddr,
) -> anyhow::Result<(App, Vec<String>)> {
    #[cfg(unix)]
    raise_open_files();
    let mut warnings = Vec::new();
    let mut server = config.server();
    server.http.listen = listening;
    let link_key = match link_key::of(&config.data_dir) {
        Ok(key) => key,
        Err(error) if error.is::<Failure>() => return Err(error),
        // A data directory that cannot be written to is no reason not to serve.
        Err(error) => {
            warnings.push(format!(
                "links stop working when the server ends: {error:#}"
            ));
            link_key::random()?
        }
    };
    let clock = library::clock();
    let files = config.data_dir.join("workspaces");
    let host_uid = config.sandbox.files_owner();
    let workspaces = Workspaces::new(Some(files), host_uid, &server, Arc::clone(&clock));
    let sandboxes = foreword_sandbox::open(&Setup::new(config.sandbox.clone(), &config.data_dir));
    let (skills, troubles) = Skills::open(&config.skills, &config.data_dir, &workspaces);
    warnings.extend(troubles);
    let connections = Connections::start(connections_setup(config, environment, &clock));
    let app = App::new(AppParts {
        store,
        config: server,
        clock,
        link_key,
        workspaces,
        surroundings: surroundings(config, &*sandboxes),
        sandboxes,
        connections,
        skills,
    });
    Ok((app, warnings))
}

/// The file with the connections, beside those of the configuration.
pub(crate) fn connections_file(config: &Config) -> PathBuf {
    config.data_dir.join("connections.json")
}

/// What programs of connections are given of this server's environment; nothing else, since it holds keys.
const HANDED_DOWN: [&str; 4] = ["PATH", "HOME", "LANG", "TMPDIR"];

/// How the programs of connections are started.
pub(crate) fn launch(environment: &[(OsString, OsString)]) -> Launch {
    let handed_down = environment
        .iter()
        .filter(|(name, _)| HANDED_DOWN.iter().any(|known| name == known));
    Launch {
        supervisor: own_program(),
        environment: handed_down.cloned().collect(),
    }
}

/// This program, also after its file was replaced by a newer one.
fn own_program() -> Option<PathBuf> {
    if cfg!(target_os = "linux") {
        return Some(PathBuf::from("/proc/self/exe"));
    }
    std::env::current_exe().ok()
}

/// Where connections find `${NAME}`.
pub(crate) fn variables(environment: &[(OsString, OsString)]) -> Variables {
    let environment = environment.to_vec();
    Arc::new(move |name| {
        let found = environment.iter().find(|(known, _)| known == name);
        found?.1.to_str().map(str::to_owned)
    })
}

fn connections_setup(
    config: &Config,
    environment: &[(OsString, OsString)],
    clock: &Clock,
) -> ConnectionsSetup {
    ConnectionsSetup {
        configured: config.connections.clone(),
        file: Some(connections_file(config)),
        tools_prompt: config.tools_prompt.clone(),
        launch: launch(environment),
        variables: variables(environment),
        clock: Arc::clone(clock),
    }
}

/// The connections in one line, those that are handed on first; none where there are none.
pub(crate) fn describe_connections(app: &App) -> Option<String> {
    let statuses = app.connections().statuses();
    let names = |exposed: bool| {
        let chosen = statuses.iter().filter(|status| {
            let is_left_out =
                [ConnectionState::Disabled, ConnectionState::Refused].contains(&status.state);
            status.exposed == exposed && !is_left_out
        });
        let names: Vec<&str> = chosen.map(|status| status.name.as_str()).collect();
        (!names.is_empty()).then(|| names.join(", "))
    };
    let handed_on = names(true).map(|names| format!("tools handed on to clients: {names}"));
    let described = names(false).map(|names| format!("not handed on: {names}"));
    let parts: Vec<String> = [handed_on, described].into_iter().flatten().collect();
    (!parts.is_empty()).then(|| parts.join("; "))
}

/// Where chat requests are passed on to; none where they are not.
pub(crate) fn describe_chat(config: &Config) -> Option<String> {
    let chat = &config.chat;
    let openai = chat.upstream.base_url.as_deref();
    let has_key = chat.anthropic.api_key.is_some();
    let anthropic = chat.anthropic.base_url.as_deref().filter(|_| has_key);
    let routes = [
        ("/v1/chat/completions", openai),
        ("/v1/messages", anthropic),
    ];
    let routes = routes.into_iter().filter_map(|(route, url)| {
        let url = url.filter(|url| !url.trim().is_empty())?;
        Some(format!("{route} goes to {url}"))
    });
    let routes: Vec<String> = routes.collect();
    (!routes.is_empty()).then(|| routes.join(", "))
}

/// What an operator should know of the connections as they are written; whether they can be made is seen later.
pub(crate) fn connection_warnings(app: &App) -> Vec<String> {
    let statuses = app.connections().statuses().into_iter();
    let refused = statuses.filter(|status| status.state == ConnectionState::Refused);
    let refused = refused.map(|status| {
        let why = status.last_error.unwrap_or_default();
        format!("the MCP server `{}` is left out: {why}", status.name)
    });
    let doubts = app.connections().statuses().into_iter().flat_map(|status| {
        let name = status.name;
        let problems = status.problems.into_iter();
        problems.map(move |problem| format!("the MCP server `{name}`: {problem}"))
    });
    let errors = app.connections().errors().into_iter();
    errors.chain(refused).chain(doubts).collect()
}

/// Lets the server have as many open files as it may. The soft limit is small for programs that use `select`, and each chat takes
/// some.
#[cfg(unix)]
fn raise_open_files() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit {
        current: limit.maximum,
        maximum: limit.maximum,
    };
    // It works without, for fewer chats at a time.
    let _ = setrlimit(Resource::Nofile, raised);
}

/// What the model finds. `auto` becomes `none` where no sandbox works; with a backend that was asked for by name the tools are
/// there all the same, and say what is wrong.
fn surroundings(config: &Config, sandboxes: &dyn Sandboxes) -> Surroundings {
    let state = sandboxes.state();
    let works = state.unavailable.is_none();
    match config.sandbox.backend {
        BackendName::None => Surroundings::without_workspace(),
        BackendName::Auto if !works => Surroundings::without_workspace(),
        BackendName::Auto | BackendName::Namespace | BackendName::Docker => {
            Surroundings::with_workspace(&config.sandbox, &state.limits)
        }
    }
}

/// What an operator should know of the sandboxes, which are asked whether they work now.
pub(crate) async fn sandbox_warnings(config: &Config, app: &App) -> Vec<String> {
    let state = app.sandboxes().check().await;
    let mut warnings = Vec::new();
    match &state.unavailable {
        Some(unavailable) if config.sandbox.backend != BackendName::None => {
            warnings.push(unavailable.to_string());
        }
        None if state.backend != "none" && config.sandbox.network == Network::Host => {
            warnings.push(
                "`sandbox.network` is `host`: commands of the model reach this server, this machine's other services and its \
                 network; set it to `none` unless you want that"
                    .to_owned(),
            );
        }
        _ => {}
    }
    let weak: Vec<String> = state
        .limits
        .iter()
        .filter(|limit| {
            matches!(
                limit.enforcement,
                Enforcement::EachProcess(_) | Enforcement::Missing(_)
            )
        })
        .map(|limit| format!("`sandbox.{}`", limit.setting))
        .collect();
    if !weak.is_empty() {
        warnings.push(format!(
            "{} cannot be kept for a sandbox as a whole here; `foreword doctor` says why, and what to do",
            weak.join(", ")
        ));
    }
    warnings
}

/// Refuses what cannot be served.
pub(crate) fn check_sandbox(config: &Config) -> Result<(), Failure> {
    let refuse = |what: String| Failure::new(Exit::Unusable, what);
    config.sandbox.check().map_err(|error| {
        refuse(error.to_string()).hint("change it in `[sandbox]` and start again")
    })?;
    let has_key = config.auth.merged().set_keys().next().is_some();
    if config.sandbox.network == Network::Host && !has_key {
        return Err(refuse(
            "`sandbox.network` is `host` without a key, so whatever a command reaches could command this server".to_owned(),
        )
        .hint("set `FOREWORD_API_KEY`, or `sandbox.network` to `none`"));
    }
    Ok(())
}

/// The sandboxes in one line.
pub(crate) fn describe_sandboxes(config: &Config, state: &SandboxesState) -> String {
    if state.backend == "none" {
        return match &state.unavailable {
            Some(_) => "none: prompts only, since no sandbox works here".to_owned(),
            None => "none: prompts only".to_owned(),
        };
    }
    if state.unavailable.is_some() {
        return format!("{}: does not work now", state.backend);
    }
    let network = match config.sandbox.network {
        Network::None => "no network",
        Network::Host => "the host's network",
    };
    format!(
        "{}: {network}, {} MiB of memory and {} processes each, {} at a time",
        state.backend,
        config.sandbox.memory_bytes >> 20,
        config.sandbox.max_processes,
        state.max_running
    )
}

/// Refuses settings that cannot be served; what comes back works, and the operator should know about it.
pub(crate) fn check(loaded: &Loaded, allow_unauthenticated: bool) -> Result<Vec<Warning>, Failure> {
    let checked = loaded.config.server().check(allow_unauthenticated);
    checked.map_err(|error| {
        let origin = match &error {
            ConfigError::Invalid { setting, .. } => loaded.origins.get(*setting),
            _ => None,
        };
        let place = origin.map_or_else(String::new, |origin| format!("{origin}: "));
        Failure::new(Exit::Unusable, format!("{place}{error}"))
    })
}

/// The session that the server reads from these values.
pub(crate) fn session(
    app: &App,
    chat: &str,
    user_email: Option<&str>,
    profile: Option<&str>,
) -> Result<Session, SessionError> {
    let values = [
        ("foreword/chat_id", Some(chat)),
        ("foreword/user_email", user_email),
        ("foreword/profile_id", profile),
    ];
    let meta = values
        .into_iter()
        .filter_map(|(name, value)| Some((name.to_owned(), value?.into())))
        .collect();
    let request = app.sessions().read(SessionSources {
        headers: &HeaderMap::new(),
        query: None,
        path_chat: None,
        meta: Some(&meta),
    })?;
    request.require()
}
