//! Puts the server together from the configuration: which store, which sandboxes, which link key, which clock.

use std::{net::SocketAddr, sync::Arc};

use foreword_sandbox::{BackendName, Enforcement, Network, Sandboxes, SandboxesState, Setup};
use foreword_server::{
    App, AppParts, Session, Workspaces,
    config::{ConfigError, Warning},
    render::Surroundings,
    session::{SessionError, SessionSources},
};
use foreword_store::Store;
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
    let app = App::new(AppParts {
        store,
        config: server,
        clock,
        link_key,
        workspaces,
        surroundings: surroundings(config, &*sandboxes),
        sandboxes,
    });
    Ok((app, warnings))
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
