//! `foreword serve`: starts, says how, reacts to signals, stops.

use std::{io, net::SocketAddr, process, sync::Arc};

use anyhow::Context;
use foreword_server::{App, serve};
use foreword_store::Snapshot;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::{
    args::{Common, Serving},
    config::{self, Config, Loaded, LogFormat, Sources},
    failure::{Exit, Failure},
    library,
    logging::Logging,
    server,
    signals::{Signal, Signals},
    telemetry::Traces,
    terminal,
};

pub(crate) fn run(common: &Common, serving: &Serving) -> anyhow::Result<()> {
    let sources = common.sources(Some(serving));
    let loaded = config::load(&sources)?;
    let traces = Traces::start(&sources.environment)?;
    let logging = Logging::start(&loaded.config.log, traces)?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .context("could not start")?;
    let served = runtime.block_on(start(
        &sources,
        &loaded,
        &logging,
        serving.allow_unauthenticated,
    ));
    runtime.shutdown_background();
    logging.finish();
    served
}

async fn start(
    sources: &Sources,
    loaded: &Loaded,
    logging: &Logging,
    allow_unauthenticated: bool,
) -> anyhow::Result<()> {
    let config = &loaded.config;
    let mut warnings = loaded.warnings.clone();
    let mut signals = Signals::listen().context("could not listen for signals")?;
    server::check_sandbox(config)?;
    let found = server::check(loaded, allow_unauthenticated)?;
    warnings.extend(found.into_iter().map(|warning| warning.message));
    let store = library::open_to_serve(config)?;
    let listener = bind(config.http.listen).await?;
    let listening = listener.local_addr().context("could not listen")?;
    let (app, more) = server::app(config, &loaded.environment, Arc::clone(&store), listening)?;
    warnings.extend(more);
    warnings.extend(server::sandbox_warnings(config, &app).await);
    warnings.extend(server::connection_warnings(&app));
    announce(config, &app, listening, &store.snapshot(), &warnings)?;

    let stop = CancellationToken::new();
    let mut serving = tokio::spawn(serve(listener, app, stop.clone()));
    loop {
        tokio::select! {
            served = &mut serving => {
                served.context("the server ended unexpectedly")?;
                tracing::info!("Stopped");
                return Ok(());
            }
            signal = signals.next() => match signal {
                Signal::Reload => reload(sources, config, logging),
                Signal::Stop if stop.is_cancelled() => {
                    tracing::warn!("Stopped at once, on a second signal");
                    process::exit(Exit::Failed as i32);
                }
                Signal::Stop => {
                    tracing::info!("Stopping: running requests may finish; a second signal ends them");
                    stop.cancel();
                }
            },
        }
    }
}

async fn bind(address: SocketAddr) -> Result<TcpListener, Failure> {
    TcpListener::bind(address).await.map_err(|error| {
        let failure = |what: String| Failure::new(Exit::Unusable, what);
        match error.kind() {
            io::ErrorKind::AddrInUse => failure(format!(
                "`{address}` is in use by another process"
            ))
            .hint("stop that one, or listen elsewhere: `--listen 127.0.0.1:0` takes a free port"),
            io::ErrorKind::AddrNotAvailable => failure(format!(
                "`{address}` is not an address of this machine"
            ))
            .hint("listen on `127.0.0.1`, on `0.0.0.0` for all, or on one of its own addresses"),
            io::ErrorKind::PermissionDenied => {
                failure(format!("`{address}` may not be listened on by this user"))
                    .hint("take a port from 1024 on")
            }
            _ => failure(format!("could not listen on `{address}`: {error}")),
        }
    })
}

/// The most lines that are printed at the start.
const MAX_LINES: usize = 15;

/// Says where the server listens and what it serves; as log lines where a program reads those.
fn announce(
    config: &Config,
    app: &App,
    listening: SocketAddr,
    snapshot: &Snapshot,
    warnings: &[String],
) -> anyhow::Result<()> {
    let base = app.links().public_base_url();
    let mcp = format!("{base}/mcp");
    let docs = format!("{base}/docs");
    let library = library::describe(config, snapshot);
    let sandbox = server::describe_sandboxes(config, &app.sandboxes().state());
    let connections = server::describe_connections(app);
    let chat = server::describe_chat(config);
    if config.log.format == LogFormat::Json {
        let connections = connections.unwrap_or_else(|| "none".to_owned());
        let chat = chat.unwrap_or_else(|| "none".to_owned());
        tracing::info!(
            %listening, %mcp, %docs, %library, %sandbox, %connections, %chat,
            "Listening on {listening}"
        );
        for warning in warnings {
            tracing::warn!("{warning}");
        }
        return Ok(());
    }
    let mut facts = vec![
        ("listening", format!("http://{listening}")),
        ("mcp", mcp),
        ("docs", docs),
        ("library", library),
        ("sandbox", sandbox),
    ];
    facts.extend(connections.map(|connections| ("servers", connections)));
    facts.extend(chat.map(|chat| ("chat", chat)));
    let strong = terminal::STRONG;
    let mut lines = vec![format!(
        "{strong}Foreword {}{strong:#}",
        env!("CARGO_PKG_VERSION")
    )];
    lines.extend(
        facts
            .iter()
            .map(|(name, value)| format!("  {name:<9}  {value}")),
    );
    let style = terminal::WARNING;
    let room = MAX_LINES - lines.len();
    let shown = if warnings.len() > room {
        room - 1
    } else {
        warnings.len()
    };
    lines.extend(
        warnings[..shown]
            .iter()
            .map(|warning| format!("  {style}warning{style:#}    {warning}")),
    );
    if shown < warnings.len() {
        lines.push(format!(
            "  and {} more warnings: `foreword doctor`",
            warnings.len() - shown
        ));
    }
    super::print(&lines.join("\n"))
}

/// Reads the configuration again. The log level changes at once; what else changed is named, and waits for a restart.
fn reload(sources: &Sources, running: &Config, logging: &Logging) {
    let loaded = match config::load(sources) {
        Ok(loaded) => loaded,
        Err(failure) => {
            tracing::error!("The configuration stays as it is: {failure}");
            return;
        }
    };
    if let Err(failure) = logging.set_level(&loaded.config.log.level) {
        tracing::error!("The log level stays as it is: {failure}");
        return;
    }
    let waiting: Vec<String> = config::show::differences(running, &loaded.config)
        .into_iter()
        .filter(|path| path != "log.level")
        .collect();
    if waiting.is_empty() {
        tracing::info!(
            level = loaded.config.log.level,
            "Read the configuration again"
        );
    } else {
        let waiting = waiting.join(", ");
        tracing::warn!(
            level = loaded.config.log.level,
            "Read the configuration again; a restart is needed for {waiting}"
        );
    }
}
