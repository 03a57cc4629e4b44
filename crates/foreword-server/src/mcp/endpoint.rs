//! MCP over HTTP: what comes before rmcp and after it.
//!
//! Before: session and form are read once, and every way to say which answers a client takes becomes the one that rmcp
//! knows. After: what rmcp could not read gets the error that JSON-RPC has for it. A well-formed body is parsed once, by
//! rmcp.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use axum::{
    body::{Body, to_bytes},
    extract::{RawPathParams, Request, State, rejection::RawPathParamsRejection},
    response::{IntoResponse, Response},
};
use bytes::Bytes;
use http::{HeaderValue, StatusCode, header, request::Parts};
use http_body_util::Full;
use rmcp::{
    model::{ProtocolVersion, RequestId, RequestMetaObject},
    transport::streamable_http_server::{
        StreamableHttpServerConfig, StreamableHttpService, session::never::NeverSessionManager,
    },
};
use serde::Deserialize;

use crate::{
    api::openapi::{MessageProblems, SessionParameters},
    app::App,
    auth::Caller,
    config::Form,
    error::ApiError,
    extract::{WholeBody, require_json},
    session::{SessionRequest, SessionSources},
};

use super::{
    accept::{Answers, Events, as_event_stream, is_json},
    batch,
    handler::{Call, Handler},
    instructions::form_in_query,
    message::{Refusal, is_batch, why_unreadable},
    patience::stream_if_slow,
    running::{CallName, RunningCalls},
};

const JSON: HeaderValue = HeaderValue::from_static("application/json");

/// What rmcp wants to read in `Accept`, whatever the client wrote.
const BOTH: HeaderValue = HeaderValue::from_static("application/json, text/event-stream");

/// The MCP endpoint of one server; cheap to clone.
#[derive(Clone)]
pub(crate) struct Endpoint {
    app: App,
    rmcp: StreamableHttpService<Handler, NeverSessionManager>,
    running: Arc<RunningCalls>,
}

impl Endpoint {
    /// Nothing is kept between requests. `Host` and `Origin` are checked by the middleware, for all routes alike.
    pub(crate) fn new(app: App) -> Self {
        let config = StreamableHttpServerConfig::default()
            .with_legacy_session_mode(false)
            .with_json_response(true)
            .with_max_request_body_bytes(app.config().http.mcp_max_body)
            .disable_allowed_hosts()
            .disable_allowed_origins();
        let handlers_app = app.clone();
        let handler = move || Ok(Handler::for_http(handlers_app.clone()));
        Self {
            app,
            rmcp: StreamableHttpService::new(handler, Arc::default(), config),
            running: Arc::default(),
        }
    }

    /// The answer to one message.
    pub(super) async fn answer(&self, parts: Parts, message: Bytes) -> Response {
        let call = parts.extensions.get::<Arc<Call>>().cloned();
        let cancelled = call
            .as_deref()
            .and_then(|call| self.cancelled_by(&parts, call, &message));
        let request = Request::from_parts(parts, Full::new(message.clone()));
        let mut response = Box::pin(self.rmcp.handle(request)).await.map(Body::new);
        match response.status() {
            // The content type was set before, so this is about what the body holds.
            StatusCode::UNSUPPORTED_MEDIA_TYPE => return why_unreadable(&message).into_response(),
            StatusCode::BAD_REQUEST if !is_json(&response) => {
                return in_json_rpc(response, &message).await;
            }
            StatusCode::ACCEPTED => {
                if let Some(name) = cancelled {
                    self.running.cancel(&name);
                }
            }
            _ => {}
        }
        if call.is_some_and(|call| call.refused.load(Ordering::Relaxed)) {
            *response.status_mut() = StatusCode::BAD_REQUEST;
        }
        response
    }

    /// The call that `message` cancels. Later revisions do that by closing the connection, which rmcp sees.
    fn cancelled_by(&self, parts: &Parts, call: &Call, message: &[u8]) -> Option<CallName> {
        memchr::memmem::find(message, Cancelled::METHOD.as_bytes())?;
        let is_older = parts
            .headers
            .get("mcp-protocol-version")
            .is_none_or(|version| {
                version.as_bytes() < ProtocolVersion::V_2026_07_28.as_str().as_bytes()
            });
        let Cancelled { method, params } = serde_json::from_slice(message).ok()?;
        if !is_older || method != Cancelled::METHOD {
            return None;
        }
        let session = call.session(self.app.sessions(), &parts.headers, &params.meta);
        let session = session.and_then(SessionRequest::require).ok()?;
        Some(call.name(&session, params.request_id))
    }

    /// What the handler has to know of the request beside the message.
    fn read_call(
        &self,
        caller: &Caller,
        answers: Answers,
        parts: &Parts,
        path: Result<RawPathParams, RawPathParamsRejection>,
    ) -> Result<Call, Refusal> {
        let path_chat = match path {
            Ok(path) => path.iter().next().map(|(_, value)| value.to_owned()),
            Err(RawPathParamsRejection::MissingPathParams(_)) => None,
            Err(_) => {
                let message = "the chat id in the path is not UTF-8";
                return Err(Refusal::invalid_params("invalid_chat_id", message));
            }
        };
        let session = self.app.sessions().read(SessionSources {
            headers: &parts.headers,
            query: None,
            path_chat: path_chat.as_deref(),
            meta: None,
        })?;
        let form = form_in_query(parts.uri.query(), "instructions")?
            .or(caller.instructions)
            .unwrap_or(self.app.config().delivery.instructions);
        Ok(Call {
            session,
            path_chat,
            form,
            key_name: caller.key_name.clone(),
            takes_progress: answers.events > Events::Refused,
            running: Arc::clone(&self.running),
            refused: AtomicBool::new(false),
        })
    }
}

/// Says that a client does not wait for an answer any more.
#[derive(Deserialize)]
struct Cancelled {
    method: String,
    params: CancelledParams,
}

#[derive(Deserialize)]
struct CancelledParams {
    #[serde(rename = "requestId")]
    request_id: RequestId,
    #[serde(rename = "_meta", default)]
    meta: RequestMetaObject,
}

impl Cancelled {
    const METHOD: &str = "notifications/cancelled";
}

/// Answers one MCP message (Streamable HTTP, stateless).
///
/// `initialize` and `server/discover` carry the session's prompt as `instructions`. A chat id in the path beats those of
/// headers. An answer that takes over 10 seconds is an event stream where `Accept` names `text/event-stream`, and so is one
/// that a progress token was given for.
#[utoipa::path(
    post, path = "/mcp", tag = "delivery",
    params(
        ("instructions" = Option<Form>, Query, description = "How much of the prompt; what the key or server says where \
                                                              it is not given"),
        SessionParameters,
    ),
    request_body(content = Object, description = "A JSON-RPC message"),
    responses(
        (
            status = 200, description = "The answer, in whichever of the two formats the client takes",
            content((Object = "application/json"), (String = "text/event-stream")),
        ),
        (status = 202, description = "A notification was taken"),
        MessageProblems,
    ),
)]
pub(crate) async fn deliver(
    State(endpoint): State<Endpoint>,
    caller: Caller,
    path: Result<RawPathParams, RawPathParamsRejection>,
    request: Request,
) -> Result<Response, ApiError> {
    let (mut parts, _) = request.into_parts();
    let body = WholeBody::of(&parts.extensions);
    parts.extensions.remove::<WholeBody>();
    require_json(&parts.headers)?;
    let answers = Answers::accepted(&parts.headers).ok_or_else(not_acceptable)?;
    let mut call = match endpoint.read_call(&caller, answers, &parts, path) {
        Err(refusal) => return Ok(refusal.in_answer_to(&body).into_response()),
        Ok(call) => call,
    };
    parts.headers.insert(header::ACCEPT, BOTH);
    parts.headers.insert(header::CONTENT_TYPE, JSON);
    let response = if is_batch(&body) {
        // Its answers come together, as one array.
        call.takes_progress = false;
        parts.extensions.insert(Arc::new(call));
        batch::answer(&endpoint, parts, &body).await.into_response()
    } else {
        parts.extensions.insert(Arc::new(call));
        let answer = Box::pin(async move { endpoint.answer(parts, body).await });
        if answers.events == Events::Named {
            stream_if_slow(answer).await
        } else {
            answer.await
        }
    };
    Ok(if answers.json {
        response
    } else {
        as_event_stream(response).await
    })
}

/// The same refusal in the words of the protocol; rmcp says some of them in plain text.
async fn in_json_rpc(response: Response, message: &[u8]) -> Response {
    let text = to_bytes(response.into_body(), usize::MAX)
        .await
        .expect("an answer that is in memory already can be read");
    let text = String::from_utf8_lossy(&text);
    let text = text.strip_prefix("Bad Request: ").unwrap_or(&text);
    Refusal::invalid_request(text)
        .in_answer_to(message)
        .into_response()
}

fn not_acceptable() -> ApiError {
    ApiError::new(
        StatusCode::NOT_ACCEPTABLE,
        "not_acceptable",
        "answers here are `application/json` or `text/event-stream`; let `Accept` name one of them",
    )
}
