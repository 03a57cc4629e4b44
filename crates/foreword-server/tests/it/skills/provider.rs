//! A provider of skills that a test can make slow, wrong or silent while it runs.

use std::{
    collections::BTreeMap,
    io::{Cursor, Write},
    net::SocketAddr,
    sync::{Arc, Mutex, MutexGuard},
    time::Duration,
};

use axum::{
    Json, Router,
    extract::{Path, Query, State},
    response::{IntoResponse, Response},
    routing::get,
};
use http::{HeaderMap, StatusCode};
use serde_json::{Value, json};
use tokio::{net::TcpListener, task::JoinHandle};
use zip::{ZipWriter, write::SimpleFileOptions};

/// A provider that runs until it is dropped.
pub(crate) struct Provider {
    pub(crate) address: SocketAddr,
    state: Shared,
    serving: JoinHandle<()>,
}

type Shared = Arc<Mutex<Said>>;

/// What the provider says, and what it was asked.
#[derive(Default)]
pub(crate) struct Said {
    /// The list of each user.
    pub(crate) lists: BTreeMap<String, Value>,
    /// Archives by user and name; of no user in particular under the empty name.
    pub(crate) archives: BTreeMap<(String, String), Vec<u8>>,
    /// In place of every answer.
    pub(crate) instead: Option<Instead>,
    /// Whether archives have an `ETag`, and 304 for who has it.
    pub(crate) tags: bool,
    /// Each request: what for, and with which key.
    pub(crate) asked: Vec<(String, String)>,
}

/// What happens in place of an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Instead {
    Status(u16),
    Text(String),
    Silence,
}

impl Provider {
    pub(crate) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let state = Shared::default();
        let router = Router::new()
            .route("/base/api/internal/user-config/{email}", get(list))
            .route("/base/api/internal/skills/{name}/download", get(archive))
            .with_state(Arc::clone(&state));
        let serving = tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
        Self {
            address,
            state,
            serving,
        }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}/base/", self.address)
    }

    pub(crate) fn said(&self) -> MutexGuard<'_, Said> {
        self.state.lock().unwrap()
    }

    /// Gives a user these skills.
    #[expect(
        clippy::needless_pass_by_value,
        reason = "`json!` makes values that nobody needs afterwards"
    )]
    pub(crate) fn give(&self, email: &str, skills: Value) {
        let list = json!({"email": email, "enabled_skills": skills});
        self.said().lists.insert(email.to_owned(), list);
    }

    /// Holds an archive for all users.
    pub(crate) fn hold(&self, name: &str, archive: Vec<u8>) {
        self.said()
            .archives
            .insert((String::new(), name.to_owned()), archive);
    }

    pub(crate) fn instead(&self, instead: Option<Instead>) {
        self.said().instead = instead;
    }

    /// How often it was asked for that.
    pub(crate) fn count(&self, what: &str) -> usize {
        let said = self.said();
        said.asked.iter().filter(|(asked, _)| asked == what).count()
    }
}

impl Drop for Provider {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

async fn list(
    State(state): State<Shared>,
    Path(email): Path<String>,
    headers: HeaderMap,
) -> Response {
    if let Some(instead) = note(&state, format!("list {email}"), &headers) {
        return answer_instead(instead).await;
    }
    match state.lock().unwrap().lists.get(&email) {
        Some(list) => Json(list.clone()).into_response(),
        None => StatusCode::NOT_FOUND.into_response(),
    }
}

async fn archive(
    State(state): State<Shared>,
    Path(name): Path<String>,
    Query(query): Query<BTreeMap<String, String>>,
    headers: HeaderMap,
) -> Response {
    if let Some(instead) = note(&state, format!("archive {name}"), &headers) {
        return answer_instead(instead).await;
    }
    let email = query.get("email").cloned().unwrap_or_default();
    let found = {
        let mut state = state.lock().unwrap();
        if state.tags && headers.get("if-none-match").is_some_and(|tag| tag == TAG) {
            state.asked.push((format!("known {name}"), String::new()));
            return StatusCode::NOT_MODIFIED.into_response();
        }
        let own = state.archives.get(&(email, name.clone()));
        own.or_else(|| state.archives.get(&(String::new(), name.clone())))
            .cloned()
    };
    match found {
        // One without bytes hangs.
        Some(archive) if archive.is_empty() => answer_instead(Instead::Silence).await,
        Some(archive) => {
            let tag = if state.lock().unwrap().tags { TAG } else { "" };
            let headers = [("content-type", "application/zip"), ("etag", tag)];
            (headers, archive).into_response()
        }
        None => Json(json!({"name": name, "native": true})).into_response(),
    }
}

/// The `ETag` of every archive.
const TAG: &str = "\"1\"";

fn note(state: &Shared, what: String, headers: &HeaderMap) -> Option<Instead> {
    let key = headers
        .get("x-internal-api-key")
        .map_or("", |key| key.to_str().unwrap());
    let mut state = state.lock().unwrap();
    state.asked.push((what, key.to_owned()));
    state.instead.clone()
}

async fn answer_instead(instead: Instead) -> Response {
    match instead {
        Instead::Status(status) => StatusCode::from_u16(status).unwrap().into_response(),
        Instead::Text(text) => ([("content-type", "application/json")], text).into_response(),
        Instead::Silence => {
            tokio::time::sleep(Duration::from_mins(10)).await;
            StatusCode::OK.into_response()
        }
    }
}

/// A ZIP of these files.
pub(crate) fn zip(files: &[(&str, &str)]) -> Vec<u8> {
    let mut writer = ZipWriter::new(Cursor::new(Vec::new()));
    for (path, text) in files {
        writer
            .start_file(*path, SimpleFileOptions::default())
            .unwrap();
        writer.write_all(text.as_bytes()).unwrap();
    }
    writer.finish().unwrap().into_inner()
}

/// A SKILL.md.
pub(crate) fn skill_md(name: &str, description: &str) -> String {
    format!("---\nname: {name}\ndescription: {description}\n---\n\nDo {name}.\n")
}
