//! An upstream that notes what it gets and answers as it is told.

use std::{
    io,
    net::SocketAddr,
    sync::{Arc, Mutex, MutexGuard},
    time::Duration,
};

use axum::{
    Router,
    body::Body,
    extract::{Request, State},
    response::{IntoResponse, Response},
};
use bytes::Bytes;
use futures::stream;
use http::{HeaderMap, StatusCode, header};
use http_body_util::BodyExt;
use serde_json::{Value, json};
use tokio::{net::TcpListener, sync::mpsc, task::JoinHandle};

/// An upstream that runs until it is dropped.
pub(crate) struct Upstream {
    address: SocketAddr,
    state: Shared,
    serving: JoinHandle<()>,
}

type Shared = Arc<Mutex<Noted>>;

/// What it got, and how it answers.
#[derive(Default)]
pub(crate) struct Noted {
    pub(crate) got: Vec<Got>,
    answers: Answers,
}

/// A request.
#[derive(Debug, Clone)]
pub(crate) struct Got {
    pub(crate) path: String,
    pub(crate) headers: HeaderMap,
    pub(crate) body: String,
}

#[derive(Default)]
enum Answers {
    #[default]
    WithACompletion,
    With(StatusCode, HeaderMap, String),
    /// Events as the test sends them; `Err` breaks off.
    Streaming(HeaderMap, Option<mpsc::Receiver<io::Result<Bytes>>>),
    Never,
}

impl Upstream {
    pub(crate) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let state = Shared::default();
        let router = Router::new()
            .fallback(answer)
            .with_state(Arc::clone(&state));
        let serving = tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
        Self {
            address,
            state,
            serving,
        }
    }

    pub(crate) fn url(&self, below: &str) -> String {
        format!("http://{}{below}", self.address)
    }

    pub(crate) fn noted(&self) -> MutexGuard<'_, Noted> {
        self.state.lock().unwrap()
    }

    /// The last request.
    pub(crate) fn got(&self) -> Got {
        self.noted().got.last().expect("it was asked").clone()
    }

    pub(crate) fn answers(&self, status: u16, headers: &[(&str, &str)], body: &str) {
        let status = StatusCode::from_u16(status).unwrap();
        self.noted().answers = Answers::With(status, read_headers(headers), body.to_owned());
    }

    /// Answers with the events that are sent, piece by piece; breaks off where that is an error.
    pub(crate) fn streams(&self) -> mpsc::Sender<io::Result<Bytes>> {
        self.streams_as(&[("content-type", "text/event-stream")])
    }

    /// The same with these headers.
    pub(crate) fn streams_as(&self, headers: &[(&str, &str)]) -> mpsc::Sender<io::Result<Bytes>> {
        let (send, receive) = mpsc::channel(1);
        self.noted().answers = Answers::Streaming(read_headers(headers), Some(receive));
        send
    }

    pub(crate) fn is_silent(&self) {
        self.noted().answers = Answers::Never;
    }
}

impl Got {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap()
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(|value| value.to_str().unwrap())
    }
}

impl Drop for Upstream {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

async fn answer(State(state): State<Shared>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let body = body.collect().await.unwrap().to_bytes();
    let answer = {
        let mut state = state.lock().unwrap();
        state.got.push(Got {
            path: parts.uri.to_string(),
            headers: parts.headers,
            body: String::from_utf8(body.to_vec()).unwrap(),
        });
        match &mut state.answers {
            Answers::WithACompletion => Some(completion(&parts.uri.to_string())),
            Answers::With(status, headers, body) => {
                Some((*status, headers.clone(), body.clone()).into_response())
            }
            Answers::Streaming(headers, receive) => {
                Some(streamed(headers.clone(), receive.take().unwrap()))
            }
            Answers::Never => None,
        }
    };
    if let Some(answer) = answer {
        return answer;
    }
    tokio::time::sleep(Duration::from_hours(1)).await;
    StatusCode::OK.into_response()
}

fn completion(path: &str) -> Response {
    let body = if path.ends_with("/models") {
        "{ \"object\":\"list\", \"data\":[{\"id\":\"gpt-5\", \"created\":1.50}, {\"id\":\"a@b\"}]}"
            .to_owned()
    } else {
        let message = json!({"role": "assistant", "content": "Hello."});
        json!({"choices": [{"index": 0, "message": message}], "usage": {"total_tokens": 7}})
            .to_string()
    };
    ([(header::CONTENT_TYPE, "application/json")], body).into_response()
}

fn read_headers(headers: &[(&str, &str)]) -> HeaderMap {
    let headers = headers.iter();
    headers
        .map(|(name, value)| {
            let name: http::HeaderName = name.parse().unwrap();
            (name, value.parse().unwrap())
        })
        .collect()
}

fn streamed(headers: HeaderMap, receive: mpsc::Receiver<io::Result<Bytes>>) -> Response {
    let pieces = stream::unfold(receive, async |mut receive| {
        Some((receive.recv().await?, receive))
    });
    (headers, Body::from_stream(pieces)).into_response()
}
