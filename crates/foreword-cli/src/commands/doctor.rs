//! `foreword doctor`: what works here, one line each, with the cure for what does not.
//!
//! Looks without touching: it makes no directory, writes no file, and stops no server. One sandbox is started and ended, with the
//! control groups that it needs, and so is the program of each connection, since nothing less shows that they work.

use std::{
    collections::BTreeMap,
    fs,
    io::{ErrorKind, Read, Write},
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream},
    path::Path,
    process::ExitCode,
    time::Duration,
};

use foreword_sandbox::{BackendName, Enforcement, SandboxesState, Setup};
use foreword_server::{
    connections::{self, Written},
    skills::Answered,
};
use foreword_store::{LoadError, OpenError, Source};
use serde_json::{Value, json};

use super::{print, print_json};
use crate::{
    args::{Common, Output, Serving},
    config::{self, Config, Loaded},
    failure::{Exit, Failure},
    library, link_key, server,
    terminal::{self, count},
};

pub(crate) fn run(common: &Common, serving: &Serving, output: Output) -> anyhow::Result<ExitCode> {
    let loaded = config::load(&common.sources(Some(serving)))?;
    let findings = examine(&loaded, serving.allow_unauthenticated);
    let failed = findings.iter().any(|finding| finding.state == State::Bad);
    if output.json {
        let findings: Vec<Value> = findings.iter().map(Finding::json).collect();
        print_json(&json!({ "findings": findings }))?;
    } else {
        let lines: Vec<String> = findings.iter().map(Finding::line).collect();
        print(&lines.join("\n"))?;
    }
    Ok(if failed {
        Exit::Failed.into()
    } else {
        ExitCode::SUCCESS
    })
}

/// How something is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// As it should be.
    Good,
    /// Worth knowing.
    Note,
    /// `serve` would not start.
    Bad,
}

impl State {
    fn word(self) -> &'static str {
        match self {
            Self::Good => "ok",
            Self::Note => "note",
            Self::Bad => "error",
        }
    }
}

/// One thing that was looked at.
struct Finding {
    what: &'static str,
    state: State,
    found: String,
    cure: Option<String>,
}

impl Finding {
    fn new(what: &'static str, state: State, found: impl Into<String>) -> Self {
        Self {
            what,
            state,
            found: found.into(),
            cure: None,
        }
    }

    fn cure(mut self, cure: impl Into<String>) -> Self {
        self.cure = Some(cure.into());
        self
    }

    fn line(&self) -> String {
        let style = match self.state {
            State::Good => terminal::HINT,
            State::Note => terminal::WARNING,
            State::Bad => terminal::ERROR,
        };
        let word = self.state.word();
        let cure = match &self.cure {
            Some(cure) => format!("; {cure}"),
            None => String::new(),
        };
        format!(
            "{style}{word:<5}{style:#}  {:<13}  {}{cure}",
            self.what, self.found
        )
    }

    fn json(&self) -> Value {
        json!({
            "what": self.what,
            "state": self.state.word(),
            "found": self.found,
            "cure": self.cure,
        })
    }
}

fn examine(loaded: &Loaded, allow_unauthenticated: bool) -> Vec<Finding> {
    let config = &loaded.config;
    let mut findings = vec![
        configuration(loaded),
        data_dir(&config.data_dir),
        library(config),
        links(&config.data_dir),
    ];
    findings.extend(settings(loaded, allow_unauthenticated));
    findings.push(address(config));
    findings.extend(sandbox(config));
    findings.extend(skills(config));
    findings.extend(chat(config));
    findings.extend(connections(loaded));
    findings.extend(
        loaded
            .warnings
            .iter()
            .map(|warning| Finding::new("setting", State::Note, warning)),
    );
    findings
}

fn configuration(loaded: &Loaded) -> Finding {
    let found = match &loaded.file {
        Some(file) => format!("read from `{}`", file.display()),
        None => "no `foreword.toml`, so defaults, environment and flags".to_owned(),
    };
    Finding::new("configuration", State::Good, found)
}

fn data_dir(path: &Path) -> Finding {
    let what = "data";
    let shown = path.display();
    match fs::metadata(path) {
        Err(_) => Finding::new(
            what,
            State::Good,
            format!("`{shown}` will be made on first use"),
        ),
        Ok(metadata) if !metadata.is_dir() => {
            Finding::new(what, State::Bad, format!("`{shown}` is not a directory"))
                .cure("name another with `--data`")
        }
        // A file without a name: it is gone when it is closed, whatever happens.
        Ok(_) => match tempfile::tempfile_in(path) {
            Ok(_) => Finding::new(what, State::Good, format!("`{shown}` can be written")),
            Err(error) => Finding::new(
                what,
                State::Note,
                format!("`{shown}` cannot be written, so edits are refused: {error}"),
            )
            .cure("make it writable for the user that runs Foreword"),
        },
    }
}

/// The library as `serve` would find it.
fn library(config: &Config) -> Finding {
    let what = "library";
    let error = match library::look(config) {
        Ok(snapshot) => {
            let profiles = count(snapshot.library.draft().profiles.len(), "profile");
            let file = library::file(&config.data_dir);
            return match snapshot.source {
                Source::File(_) => Finding::new(
                    what,
                    State::Good,
                    format!("`{}`, {profiles}", file.display()),
                ),
                Source::BuiltIn => {
                    Finding::new(what, State::Good, "built in, since there is no file yet")
                        .cure("`foreword init` writes one to start from")
                }
            };
        }
        Err(error) => error,
    };
    match &error {
        OpenError::Broken { path, errors } => {
            let number = count(errors.len(), "mistake");
            let found = format!("`{}` has {number}", path.display());
            Finding::new(what, State::Bad, found).cure("`foreword check` shows them")
        }
        OpenError::NewerVersion { .. } => {
            failed("version", &library::unusable(&error, LoadError::in_full))
        }
        error => failed(what, &library::unusable(error, LoadError::in_full)),
    }
}

/// The key that signs links.
fn links(data_dir: &Path) -> Finding {
    let what = "links";
    match link_key::look(data_dir) {
        Ok(true) => Finding::new(what, State::Good, "the link key can be read"),
        Ok(false) => Finding::new(what, State::Good, "a link key will be made on first use"),
        Err(error) => match error.downcast_ref::<Failure>() {
            Some(failure) => failed(what, failure),
            None => Finding::new(
                what,
                State::Note,
                format!("links stop working whenever the server ends: {error:#}"),
            )
            .cure("make the file readable for the user that runs Foreword"),
        },
    }
}

/// What keeps `serve` from starting, in its own words.
fn failed(what: &'static str, failure: &Failure) -> Finding {
    let finding = Finding::new(what, State::Bad, failure.to_string());
    match failure.cure() {
        Some(cure) => finding.cure(cure),
        None => finding,
    }
}

fn address(config: &Config) -> Finding {
    let what = "address";
    let address = config.http.listen;
    match TcpListener::bind(address) {
        Ok(_) => Finding::new(what, State::Good, format!("`{address}` is free")),
        Err(error) if error.kind() == ErrorKind::AddrInUse => {
            if is_foreword(address) {
                return Finding::new(
                    what,
                    State::Note,
                    format!("a Foreword runs on `{address}` already"),
                );
            }
            let found = format!("`{address}` is in use by another process");
            Finding::new(what, State::Bad, found).cure("stop that one, or use `--listen`")
        }
        Err(error) => Finding::new(what, State::Bad, format!("`{address}`: {error}"))
            .cure("use `--listen` with an address of this machine"),
    }
}

/// How long a running server may take to answer.
const ANSWER_TIME: Duration = Duration::from_secs(1);

/// Whether what listens at an address answers `/health` as Foreword does.
fn is_foreword(address: SocketAddr) -> bool {
    let host = match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        ip => ip,
    };
    let answer = health(SocketAddr::new(host, address.port())).unwrap_or_default();
    let answer = answer.to_lowercase();
    answer.starts_with("http/1.1 200")
        && answer.contains("\r\nx-request-id:")
        && answer.trim_end().ends_with("{\"status\":\"ok\"}")
}

fn health(address: SocketAddr) -> std::io::Result<String> {
    let mut stream = TcpStream::connect_timeout(&address, ANSWER_TIME)?;
    stream.set_read_timeout(Some(ANSWER_TIME))?;
    stream.set_write_timeout(Some(ANSWER_TIME))?;
    stream.write_all(b"GET /health HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n")?;
    let mut answer = Vec::new();
    stream.take(4096).read_to_end(&mut answer)?;
    Ok(String::from_utf8_lossy(&answer).into_owned())
}

/// Whether sandboxes work here, and which limits are kept by what.
fn sandbox(config: &Config) -> Vec<Finding> {
    if let Err(failure) = server::check_sandbox(config) {
        return vec![failed("sandbox", &failure)];
    }
    let state = match state_of(config) {
        Ok(state) => state,
        Err(error) => return vec![Finding::new("sandbox", State::Bad, error.to_string())],
    };
    if let Some(unavailable) = &state.unavailable
        && config.sandbox.backend != BackendName::None
    {
        let named = config.sandbox.backend != BackendName::Auto;
        let weight = if named { State::Bad } else { State::Note };
        return vec![
            Finding::new("sandbox", weight, unavailable.reason.clone()).cure(&unavailable.cure),
        ];
    }
    let mut findings = vec![Finding::new(
        "sandbox",
        State::Good,
        server::describe_sandboxes(config, &state),
    )];
    let limits = state.limits.iter().map(|limit| {
        let (weight, words) = match &limit.enforcement {
            Enforcement::Cgroup2 => (State::Good, "kept by control groups (v2)".to_owned()),
            Enforcement::Cgroup1 => (State::Good, "kept by control groups (v1)".to_owned()),
            Enforcement::Engine => (State::Good, "kept by the container engine".to_owned()),
            Enforcement::Kernel => (State::Good, "kept by the kernel".to_owned()),
            Enforcement::Sampled => (State::Good, "looked at each second".to_owned()),
            Enforcement::EachProcess(how) => (State::Note, format!("weaker, {how}")),
            Enforcement::Missing(why) => (State::Note, format!("not kept: {why}")),
            Enforcement::Off => (State::Good, "none, since it is 0".to_owned()),
        };
        Finding::new("limit", weight, format!("{}: {words}", limit.setting))
    });
    findings.extend(limits);
    let notes = state.notes.into_iter();
    findings.extend(notes.map(|note| Finding::new("sandbox", State::Note, note)));
    findings
}

/// Which skills are there for all, which are left out, and whether the provider answers.
fn skills(config: &Config) -> Vec<Finding> {
    let what = "skills";
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let Ok(runtime) = runtime else {
        return Vec::new();
    };
    let looked = runtime.block_on(foreword_server::skills::look(
        &config.skills,
        &config.data_dir,
    ));
    let shipped = if config.skills.shipped {
        "and those that come with Foreword"
    } else {
        "and no others"
    };
    let found = format!(
        "{} for all in the data directory, {shipped}",
        count(looked.public, "skill")
    );
    let mut findings = vec![Finding::new(what, State::Good, found)];
    findings.extend(looked.refused.into_iter().map(|refused| {
        Finding::new(
            what,
            State::Note,
            format!("`{}` is left out: {}", refused.name, refused.why),
        )
    }));
    findings.extend(looked.provider.map(|answer| match answer {
        Ok(Answered::WithAList) => {
            Finding::new("provider", State::Good, "the provider of skills answers")
        }
        Ok(Answered::NotFound) => Finding::new(
            "provider",
            State::Good,
            "the provider of skills answers, with 404 for an address that is nobody's; \
             if it knows none of your users either, `skills.provider.url` is not its URL",
        ),
        Err(why) => Finding::new("provider", State::Note, format!("the provider of skills: {why}"))
            .cure("check `skills.provider.url` and its key; until it answers, what it said last counts"),
    }));
    findings
}

/// Whether the upstreams of the chat endpoints answer, and take their keys.
fn chat(config: &Config) -> Vec<Finding> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let Ok(runtime) = runtime else {
        return Vec::new();
    };
    let looked = runtime.block_on(foreword_server::chat::look(&config.chat));
    let is_for_callers = config.chat.upstream.forward_authorization;
    let findings = looked.into_iter().map(|looked| {
        let setting = looked.setting;
        let note = |found: String| Finding::new("chat", State::Note, found);
        match looked.answer.map(|status| status.as_u16()) {
            Ok(200..=299) => Finding::new("chat", State::Good, format!("`{setting}` answers")),
            Ok(401 | 403) if setting == "chat.upstream" && is_for_callers => Finding::new(
                "chat",
                State::Good,
                format!("`{setting}` answers; it takes the keys of callers"),
            ),
            Ok(status @ (401 | 403)) => note(format!("`{setting}` answers with {status}"))
                .cure(format!("check `{setting}.api_key`")),
            Ok(status) => note(format!(
                "`{setting}` answers with {status} when asked for its models"
            ))
            .cure(format!(
                "check `{setting}.base_url`: one of OpenAI's shape ends with the version, as `…/v1`, one of Anthropic's does not; some upstreams have no list of models"
            )),
            Err(why) => {
                note(format!("`{setting}`: {why}")).cure(format!("check `{setting}.base_url`"))
            }
        }
    });
    findings.collect()
}

/// How long a connected server may take to list its tools here.
const TO_CONNECT: Duration = Duration::from_secs(20);

/// Whether each connected MCP server can be reached, all at once; their programs are started and ended for it.
fn connections(loaded: &Loaded) -> Vec<Finding> {
    let config = &loaded.config;
    let what = "connection";
    let mut findings = Vec::new();
    let mut all: BTreeMap<String, Written> = BTreeMap::new();
    match connections::read_file(&server::connections_file(config)) {
        Ok(of_file) => all.extend(of_file),
        Err(why) => findings.push(
            Finding::new(what, State::Note, why)
                .cure("mend the file; what it said before stays in force while the server runs"),
        ),
    }
    let configured = config.connections.clone().into_iter();
    for (name, config) in configured {
        let written = Written {
            config: Ok(config),
            doubts: Vec::new(),
        };
        if all.insert(name.clone(), written).is_some() {
            let found = format!("`{name}` is in `connections.json` too, where it has no effect");
            findings.push(Finding::new(what, State::Note, found).cure("rename one of them"));
        }
    }
    for (name, written) in &all {
        let doubts = written.doubts.iter();
        findings.extend(
            doubts.map(|doubt| Finding::new(what, State::Note, format!("`{name}`: {doubt}"))),
        );
    }
    if all.is_empty() && findings.is_empty() {
        let file = server::connections_file(config);
        let found = format!(
            "none; `{}` would name MCP servers to connect to",
            file.display()
        );
        return vec![Finding::new(what, State::Good, found)];
    }
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let Ok(runtime) = runtime else {
        return findings;
    };
    let launch = server::launch(&loaded.environment);
    let variables = server::variables(&loaded.environment);
    findings.extend(runtime.block_on(async {
        let trying = all.into_iter().map(|(name, written)| {
            let (launch, variables) = (&launch, &variables);
            async move {
                let config = match written.config {
                    Ok(config) if config.disabled => {
                        return Finding::new(what, State::Good, format!("`{name}` is disabled"));
                    }
                    Ok(config) => config,
                    Err(why) => {
                        return Finding::new(
                            what,
                            State::Note,
                            format!("`{name}` is left out: {why}"),
                        );
                    }
                };
                let tried = connections::try_connection(&name, &config, launch, variables);
                match tokio::time::timeout(TO_CONNECT, tried).await {
                    Ok(Ok((tools, problems))) if problems.is_empty() => {
                        let tools = count(tools, "tool");
                        Finding::new(what, State::Good, format!("`{name}` has {tools}"))
                    }
                    Ok(Ok((tools, problems))) => {
                        let (tools, problems) = (count(tools, "tool"), problems.join("; "));
                        let found = format!("`{name}` has {tools}, but {problems}");
                        Finding::new(what, State::Note, found)
                    }
                    Ok(Err(why)) => Finding::new(what, State::Note, format!("`{name}`: {why}")),
                    Err(_) => {
                        let seconds = TO_CONNECT.as_secs();
                        let found = format!("`{name}` did not answer within {seconds} s");
                        Finding::new(what, State::Note, found)
                    }
                }
            }
        });
        futures::future::join_all(trying).await
    }));
    findings
}

/// Looks whether sandboxes work here.
fn state_of(config: &Config) -> std::io::Result<SandboxesState> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let setup = Setup::new(config.sandbox.clone(), &config.data_dir);
    Ok(runtime.block_on(async { foreword_sandbox::open(&setup).check().await }))
}

/// Keys, the public URL, and what else the server says about its settings.
fn settings(loaded: &Loaded, allow_unauthenticated: bool) -> Vec<Finding> {
    let warnings = match server::check(loaded, allow_unauthenticated) {
        Ok(warnings) => warnings,
        Err(failure) => return vec![Finding::new("settings", State::Bad, failure.to_string())],
    };
    let config = &loaded.config;
    let (about_keys, others): (Vec<_>, Vec<_>) = warnings
        .iter()
        .partition(|warning| KEY_WARNINGS.contains(&warning.code));
    let (about_url, others): (Vec<_>, Vec<_>) = others
        .into_iter()
        .partition(|warning| warning.code == "no_public_base_url");
    let keys = config.auth.merged().keys.len();
    let url = config.public_base_url.clone().unwrap_or_default();
    let mut findings = Vec::new();
    for (what, warnings, good) in [
        ("keys", about_keys, Some(format!("{keys} set"))),
        ("url", about_url, Some(format!("`{url}`"))),
        ("hosts", others, None),
    ] {
        if warnings.is_empty() {
            findings.extend(good.map(|good| Finding::new(what, State::Good, good)));
        }
        let notes = warnings.into_iter();
        findings.extend(notes.map(|warning| Finding::new(what, State::Note, &warning.message)));
    }
    findings
}

/// The warnings of the server that are about keys.
const KEY_WARNINGS: [&str; 3] = ["no_key", "api_key_is_admin", "short_key"];
