//! `foreword stdio`: MCP on stdin and stdout, for the one chat that this directory stands for.

use std::path::{Path, PathBuf};

use anyhow::Context;
use foreword_compose::revision;
use foreword_server::{ChatId, StdioSession, serve_stdio};
use serde_json::json;

use crate::{
    args::{Common, Serving},
    config::{self, Sources, variable},
    failure::{Exit, Failure},
    library,
    logging::Logging,
    server,
    signals::{Signal, Signals},
    telemetry::Traces,
};

pub(crate) fn run(common: &Common, serving: &Serving, chat: Option<&str>) -> anyhow::Result<()> {
    let mut sources = common.sources(Some(serving));
    if let Some(data_dir) = user_data(&sources) {
        sources
            .command_defaults
            .push(("data_dir", json!(data_dir), "`foreword stdio`"));
    }
    let loaded = config::load(&sources)?;
    let traces = Traces::start(&sources.environment)?;
    let logging = Logging::start(&loaded.config.log, traces)?;
    for warning in &loaded.warnings {
        tracing::warn!("{warning}");
    }
    let config = &loaded.config;
    server::check_sandbox(config)?;
    let chat = chat_id(chat, &sources)?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .context("could not start")?;
    let served = runtime.block_on(async {
        let store = library::open_to_serve(config)?;
        let library = library::describe(config, &store.snapshot());
        tracing::info!(chat.id = %chat, %library, "Serves chat {chat}, library: {library}");
        let (app, warnings) = server::app(config, &loaded.environment, store, config.http.listen)?;
        for warning in warnings
            .into_iter()
            .chain(server::sandbox_warnings(config, &app).await)
            .chain(server::connection_warnings(&app))
        {
            tracing::warn!("{warning}");
        }
        if app.config().public_base_url.is_none() && app.surroundings().has_workspace() {
            tracing::warn!(
                "Links to outputs lead to http://{}, where nobody answers unless `foreword serve --data {}` runs; or set \
                 `FOREWORD_PUBLIC_BASE_URL`",
                config.http.listen,
                config.data_dir.display()
            );
        }
        let stopping = app.stopping().clone();
        let mut signals = Signals::listen().context("could not listen for signals")?;
        let session = StdioSession {
            chat_id: Some(chat.to_string()),
            ..StdioSession::default()
        };
        let served = serve_stdio(app, session, tokio::io::stdin(), tokio::io::stdout());
        let mut served = std::pin::pin!(served);
        loop {
            tokio::select! {
                served = &mut served => break served.context("the client did not speak MCP"),
                signal = signals.next() => if signal == Signal::Stop { stopping.cancel() },
            }
        }
    });
    // A read of stdin that nobody will answer must not hold the process.
    runtime.shutdown_background();
    logging.finish();
    served
}

/// `$XDG_DATA_HOME/foreword`: a desktop client starts the command anywhere, and its user has one library.
fn user_data(sources: &Sources) -> Option<PathBuf> {
    variable(&sources.environment, "XDG_DATA_HOME")
        .map(Path::to_owned)
        .or_else(|| Some(variable(&sources.environment, "HOME")?.join(".local/share")))
        .map(|directory| directory.join("foreword"))
}

/// The chat asked for, else one that stands for the working directory.
fn chat_id(asked: Option<&str>, sources: &Sources) -> anyhow::Result<ChatId> {
    if let Some(asked) = asked {
        return ChatId::parse(asked).map_err(|error| {
            Failure::new(
                Exit::Unusable,
                format!("`--chat` is not a chat id: {error}"),
            )
            .into()
        });
    }
    let directory = std::env::current_dir().context("could not tell the working directory")?;
    let home = variable(&sources.environment, "HOME");
    let name = if directory.parent().is_none() || home == Some(&directory) {
        ChatId::DEFAULT.to_owned()
    } else {
        slug(&directory)
    };
    ChatId::parse(&name).context("the working directory's name makes no chat id")
}

/// The directory's name in letters, digits and dashes, and eight digits that tell its path from others of that name.
fn slug(directory: &Path) -> String {
    let path = directory.to_string_lossy();
    let name = directory.file_name().unwrap_or_default().to_string_lossy();
    let mut slug = String::new();
    for character in name.chars().take(MAX_NAME) {
        if character.is_ascii_alphanumeric() {
            slug.push(character.to_ascii_lowercase());
        } else if !slug.is_empty() && !slug.ends_with('-') {
            slug.push('-');
        }
    }
    let digits = &revision(&path, None)[..8];
    match slug.trim_end_matches('-') {
        "" => digits.to_owned(),
        name => format!("{name}-{digits}"),
    }
}

/// The most characters of a directory's name that go into a chat id.
const MAX_NAME: usize = 64;
