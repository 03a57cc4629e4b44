//! `foreword doctor`: what works here, one line each, with the cure for what does not.
//!
//! Looks without touching: it makes no directory, writes no file, and stops no server.

use std::{fs, net::TcpListener, path::Path, process::ExitCode};

use foreword_store::parse_library;
use serde_json::{Value, json};

use super::{count, print, print_json};
use crate::{
    args::{Common, Output, Serving},
    config::{self, Config, Loaded},
    failure::Exit,
    library, server, terminal,
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
    ];
    findings.extend(settings(loaded, allow_unauthenticated));
    findings.push(address(config));
    findings.push(sandbox(config));
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

fn library(config: &Config) -> Finding {
    let what = "library";
    let file = library::file(&config.data_dir);
    let shown = file.display();
    let text = match fs::read_to_string(&file) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            return Finding::new(what, State::Good, "built in, since there is no file yet")
                .cure("`foreword init` writes one to start from");
        }
        Err(error) => {
            return Finding::new(
                what,
                State::Bad,
                format!("`{shown}` cannot be read: {error}"),
            )
            .cure("make it readable for the user that runs Foreword");
        }
    };
    match parse_library(&text) {
        Ok(library) => {
            let profiles = count(library.draft().profiles.len(), "profile");
            Finding::new(what, State::Good, format!("`{shown}`, {profiles}"))
        }
        Err(errors) => {
            let number = count(errors.len(), "mistake");
            Finding::new(what, State::Bad, format!("`{shown}` has {number}"))
                .cure("`foreword check` shows them")
        }
    }
}

fn address(config: &Config) -> Finding {
    let address = config.http.listen;
    match TcpListener::bind(address) {
        Ok(_) => Finding::new("address", State::Good, format!("`{address}` is free")),
        Err(error) => Finding::new("address", State::Bad, format!("`{address}`: {error}"))
            .cure("if that is not a Foreword that runs already, stop it or use `--listen`"),
    }
}

fn sandbox(config: &Config) -> Finding {
    match server::check_sandbox(config) {
        Ok(()) => Finding::new(
            "sandbox",
            State::Note,
            "none: this version has no sandbox tools yet",
        ),
        Err(failure) => Finding::new("sandbox", State::Bad, failure.to_string())
            .cure("set `sandbox.backend` to `auto` or `none`"),
    }
}

/// Keys, the public URL, and what else the server says about its settings.
fn settings(loaded: &Loaded, allow_unauthenticated: bool) -> Vec<Finding> {
    let warnings = match server::check(loaded, allow_unauthenticated) {
        Ok(warnings) => warnings,
        Err(failure) => return vec![Finding::new("settings", State::Bad, failure.to_string())],
    };
    let config = &loaded.config;
    let noted =
        |what, code: &str, good: String| match warnings.iter().find(|warning| warning.code == code)
        {
            Some(warning) => Finding::new(what, State::Note, &warning.message),
            None => Finding::new(what, State::Good, good),
        };
    let keys = config.auth.merged().keys.len();
    let url = config.public_base_url.clone().unwrap_or_default();
    vec![
        noted("keys", "no_key", format!("{keys} set")),
        noted("url", "no_public_base_url", format!("`{url}`")),
    ]
}
