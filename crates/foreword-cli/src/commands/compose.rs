//! `foreword compose`: a prompt, what it is made of, and what is doubtful about it.
//!
//! For a chat the server's own renderer is asked, so that this prints what every tier delivers.

use std::{error::Error, sync::Arc, time::Duration};

use foreword_compose::{
    Composition, Library, Part, Request, SectionType, Stability, compose, nearest, revision,
};
use foreword_server::{App, config::Form, connections::ConnectionState, render::Extras};
use serde_json::{Value, json};
use tokio::time::timeout;

use super::{
    check::{diagnostic_json, word},
    print, print_json, print_text,
};
use crate::{
    args::Composing,
    config::Loaded,
    failure::{Exit, Failure},
    library::Kept,
    server,
    terminal::{self, columns},
};

pub(crate) fn run(loaded: &Loaded, request: &Composing) -> anyhow::Result<()> {
    let kept = Kept::open_to_read(&loaded.config)?;
    let composed = match &request.chat {
        None => of_library(&kept, request)?,
        Some(chat) => of_chat(loaded, &kept, chat, request)?,
    };
    if request.output.json {
        return print_json(&composed.json());
    }
    if request.explain {
        print(&composed.explanation())?;
        if request.chat.is_none() {
            terminal::note(
                "chats get more: the workspace guide, skills, tools of connected servers; `--chat ID` counts those too",
            );
        }
        return Ok(());
    }
    print_text(&composed.composition.text)?;
    for diagnostic in &composed.composition.diagnostics {
        terminal::say(
            terminal::WARNING,
            word(diagnostic.severity),
            &diagnostic.message,
        );
    }
    Ok(())
}

/// A prompt with what is said about it.
struct Composed {
    composition: Composition,
    profile_id: Option<String>,
    revision: String,
}

/// What the library gives without any session.
fn of_library(kept: &Kept, request: &Composing) -> anyhow::Result<Composed> {
    let snapshot = kept.snapshot();
    let library = &snapshot.library;
    let composition = compose(
        library,
        &Request {
            profile_id: request.profile.as_deref(),
            ..Request::default()
        },
    )
    .map_err(|error| failed(&error, library, request))?;
    let default = library.default_profile().map(|profile| profile.id.clone());
    Ok(Composed {
        revision: revision(&composition.text, None),
        profile_id: request.profile.clone().or(default),
        composition,
    })
}

/// How long connected MCP servers may take to list their tools.
const TO_CONNECT: Duration = Duration::from_secs(20);

/// What every tier delivers to a chat, once the connected MCP servers have listed their tools.
fn of_chat(
    loaded: &Loaded,
    kept: &Kept,
    chat: &str,
    request: &Composing,
) -> anyhow::Result<Composed> {
    let config = &loaded.config;
    kept.block_on(async {
        let store = Arc::clone(kept.store());
        let (app, of_links) = server::app(config, &loaded.environment, store, config.http.listen)?;
        let mut warnings = Vec::new();
        let connections = app.connections();
        let settled = timeout(TO_CONNECT, connections.settled()).await;
        if settled.is_err() {
            let seconds = TO_CONNECT.as_secs();
            warnings.push(format!(
                "some MCP servers did not answer within {seconds} s"
            ));
        }
        let missing = connections.statuses().into_iter();
        let missing = missing.filter(|status| status.state == ConnectionState::Down);
        warnings.extend(missing.map(|status| {
            let why = status.last_error.unwrap_or_default();
            format!(
                "the tools of the MCP server `{}` are not shown: {why}",
                status.name
            )
        }));
        warnings.extend(server::connection_warnings(&app));
        // Where there is no data directory, there are no links yet that could stop working.
        if kept.has_data_dir() {
            super::warn(&of_links);
        }
        super::warn(&warnings);
        let composed = render_for(&app, kept, chat, request).await;
        connections.close().await;
        composed
    })
}

async fn render_for(
    app: &App,
    kept: &Kept,
    chat: &str,
    request: &Composing,
) -> anyhow::Result<Composed> {
    let snapshot = kept.snapshot();
    let failed = |error: &dyn Error| failed(error, &snapshot.library, request);
    let session = server::session(
        app,
        chat,
        request.email.as_deref(),
        request.profile.as_deref(),
    )
    .map_err(|error| failed(&error))?;
    let rendered = app
        .renderer()
        .render_with(&session, Form::Full, &Extras::default())
        .await
        .map_err(|error| failed(&error))?;
    Ok(Composed {
        composition: rendered.composition,
        profile_id: rendered.profile_id,
        revision: rendered.revision,
    })
}

/// Why there is no prompt, with the profile that was probably meant.
fn failed(error: &dyn Error, library: &Library, request: &Composing) -> Failure {
    let failure = Failure::new(Exit::Failed, error.to_string());
    let asked = request.profile.as_deref();
    let unknown = asked.filter(|id| library.profile(id).is_none());
    let known = library.draft().profiles.iter();
    let near = unknown.and_then(|id| nearest(id, known.map(|profile| profile.id.as_str())));
    match near {
        Some(near) => failure.hint(format!("did you mean `{near}`?")),
        None => failure,
    }
}

impl Composed {
    fn json(&self) -> Value {
        let Composition {
            text,
            parts,
            stable_prefix,
            unresolved,
            diagnostics,
        } = &self.composition;
        json!({
            "system_prompt": text,
            "profile_id": self.profile_id,
            "revision": self.revision,
            "parts": parts.iter().map(part_json).collect::<Vec<_>>(),
            "stable_prefix": stable_prefix,
            "tokens": { "estimate": tokens(text), "method": "bytes/4" },
            "unresolved": unresolved,
            "diagnostics": diagnostics.iter().map(diagnostic_json).collect::<Vec<_>>(),
        })
    }

    fn explanation(&self) -> String {
        let Composition {
            text,
            parts,
            stable_prefix,
            unresolved,
            diagnostics,
        } = &self.composition;
        let total = text.len();
        let heading = ["FROM", "ID", "TYPE", "FOR", "BYTES", "SHARE"].map(str::to_owned);
        let rows = parts.iter().map(|part| {
            [
                part.source.as_str().to_owned(),
                part.id.clone(),
                part.section_type
                    .map(|label| label.to_string())
                    .unwrap_or_default(),
                match part.stability {
                    Stability::Static => "everybody".to_owned(),
                    Stability::Session => "session".to_owned(),
                },
                part.range.len().to_string(),
                share(part.range.len(), total),
            ]
        });
        let mut lines = vec![
            format!(
                "profile {}, revision {}: {total} bytes, about {} tokens (bytes/4, an estimate)\n",
                self.profile_id.as_deref().unwrap_or("(none)"),
                self.revision,
                tokens(text),
            ),
            columns(std::iter::once(heading).chain(rows)),
            format!(
                "the first {stable_prefix} bytes ({}) are the same for every session",
                share(*stable_prefix, total)
            ),
        ];
        if !unresolved.is_empty() {
            lines.push(format!("without a value: {}", unresolved.join(", ")));
        }
        lines.extend(
            diagnostics
                .iter()
                .map(|diagnostic| format!("{}: {}", word(diagnostic.severity), diagnostic.message)),
        );
        lines.join("\n")
    }
}

fn part_json(part: &Part) -> Value {
    json!({
        "source": part.source.as_str(),
        "id": part.id,
        "name": part.name,
        "type": part.section_type.map(SectionType::as_str),
        "start": part.range.start,
        "end": part.range.end,
        "stability": match part.stability {
            Stability::Static => "static",
            Stability::Session => "session",
        },
    })
}

fn tokens(text: &str) -> usize {
    text.len().div_ceil(4)
}

/// Per cent with one digit, without floating point.
fn share(bytes: usize, total: usize) -> String {
    let tenths = (bytes * 1000 + total / 2).checked_div(total).unwrap_or(0);
    format!("{}.{} %", tenths / 10, tenths % 10)
}
