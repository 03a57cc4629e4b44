//! Puts the server together from the configuration: which store, which sandboxes, which link key, which clock.

use std::{net::SocketAddr, sync::Arc};

use foreword_sandbox::BackendName;
use foreword_server::{
    App, AppParts, Session, Workspaces,
    config::{ConfigError, Warning},
    session::{SessionError, SessionSources},
    workspace::DEFAULT_HOST_UID,
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
    let workspaces = Workspaces::new(Some(files), DEFAULT_HOST_UID, &server, Arc::clone(&clock));
    let app = App::new(AppParts {
        store,
        config: server,
        clock,
        link_key,
        workspaces,
    });
    Ok((app, warnings))
}

/// Refuses what this version cannot do; `auto` becomes `none`.
pub(crate) fn check_sandbox(config: &Config) -> Result<(), Failure> {
    let word = match config.sandbox.backend {
        BackendName::Auto | BackendName::None => return Ok(()),
        BackendName::Namespace => "namespace",
        BackendName::Docker => "docker",
    };
    Err(Failure::new(
        Exit::Unusable,
        format!("`sandbox.backend` is `{word}`, but this version has no sandboxes yet"),
    )
    .hint("set it to `auto` or `none`: prompts are served without sandbox tools"))
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
