//! `POST /api/chat`: one message in, one answer out, without memory.

use std::convert::Infallible;

use axum::{
    Json,
    extract::State,
    response::{
        IntoResponse, Response,
        sse::{Event, KeepAlive, Sse},
    },
};
use foreword_compose::one_line;
use futures::{Stream, StreamExt, stream};
use http::{HeaderMap, HeaderValue, Method, StatusCode, Uri, header};
use indexmap::IndexMap;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json, value::RawValue};
use utoipa::ToSchema;

use super::{configured, name_prompt, session};
use crate::{
    api::openapi::TurnProblems,
    app::App,
    chat::{
        ChatPrompt, Named,
        request::split,
        upstream::{Upstream, UpstreamError, next},
    },
    error::{ApiError, FaultItem},
    extract::{
        self,
        fields::{Fields, read_text_or_texts, read_texts},
    },
    operations::chat::prompt_of_chat,
    render::Extras,
};

/// The longest event of an upstream that is read, in bytes.
const MAX_EVENT: usize = 1 << 20;

/// How much of an upstream's error is repeated, in characters.
const MAX_SAID: usize = 500;

/// A message.
#[derive(Debug, Serialize, ToSchema)]
#[schema(example = json!({"message": "What is our refund policy?", "profile_id": "support", "model": "gpt-5"}))]
pub(crate) struct TurnBody {
    /// What the user says.
    #[schema(required)]
    message: String,
    /// The model; `chat.default_model` without it. May name a profile behind its last `@`.
    model: Option<String>,
    /// Whether the answer comes as a stream of events: `start`, `chunk`, `done`, `error`.
    stream: Option<bool>,
    /// The profile; the library's default without it.
    profile_id: Option<String>,
    /// If not blank, it is the prompt.
    system_override: Option<String>,
    /// A text, or a list of texts, that come after everything else.
    #[schema(schema_with = crate::api::prompts::compose::text_or_texts)]
    additional_context: Vec<String>,
    /// Values for placeholders; they win over everything else.
    #[schema(value_type = Option<std::collections::HashMap<String, String>>)]
    variables: IndexMap<String, String>,
    /// The chat.
    chat_id: Option<String>,
    /// The user's e-mail address.
    user_email: Option<String>,
}

/// The answer.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct TurnAnswer {
    /// What the model says.
    response: String,
    #[serde(flatten)]
    about: About,
    /// What it cost, as the upstream counts.
    #[schema(value_type = Option<Object>)]
    usage: Option<Box<RawValue>>,
}

/// What answered.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct About {
    /// The model that was asked.
    model: String,
    /// The profile in force.
    profile_id: Option<String>,
    /// Of the prompt.
    revision: String,
}

/// Answers one message.
///
/// There is no memory: each request is a conversation of its own. With `stream` the answer comes as events: `start` names model, profile
/// and revision, each `chunk` has a piece of the answer in `content`, `done` has all of it, and `error` ends a stream that broke off.
#[utoipa::path(
    post, path = "/api/chat", tag = "chat",
    request_body(content = TurnBody),
    responses(
        (status = 200, description = "The answer", content(
            (TurnAnswer = "application/json"),
            (String = "text/event-stream"),
        )),
        TurnProblems,
    ),
)]
pub(crate) async fn answer_message(
    State(app): State<App>,
    uri: Uri,
    headers: HeaderMap,
    extract::Json(body): extract::Json<Value>,
) -> Result<Response, ApiError> {
    let upstream = configured(app.upstreams().openai.as_ref(), "chat.upstream.base_url")?;
    let turn = Turn::read(&body, &app)?;
    let session = session(&app, &uri, &headers, &turn.named)?;
    let prompt = prompt_of_chat(&app, &session, &turn.extras).await?;
    let body = turn.request(&prompt, &app);
    let mut passed = upstream.headers(&HeaderMap::new(), app.keys());
    passed.insert(
        header::CONTENT_TYPE,
        HeaderValue::from_static("application/json"),
    );
    let asked = upstream.ask(Method::POST, "chat/completions", passed, body.into());
    let answer = asked.await?;
    if !answer.status().is_success() {
        return Err(refused(upstream, answer).await);
    }
    let about = About {
        model: turn.model,
        profile_id: prompt.profile_id.clone(),
        revision: prompt.revision.clone(),
    };
    let response = if turn.stream {
        let limit = upstream.timeout();
        let stopping = app.stopping().clone().cancelled_owned();
        let events = events(about, Pieces::new(answer, limit)).take_until(stopping);
        Sse::new(events.map(Ok::<_, Infallible>))
            .keep_alive(KeepAlive::default())
            .into_response()
    } else {
        let whole = upstream.whole(answer).await?;
        let (response, usage) = read_answer(&whole)?;
        Json(TurnAnswer {
            response,
            about,
            usage,
        })
        .into_response()
    };
    Ok(name_prompt(response, &prompt))
}

/// A request that was read.
struct Turn {
    message: String,
    model: String,
    stream: bool,
    named: Named,
    extras: Extras,
}

impl Turn {
    fn read(body: &Value, app: &App) -> Result<Self, ApiError> {
        let mut faults = Vec::new();
        let mut fields = Fields::new(body, String::new(), &mut faults);
        let message = fields.required_text("message");
        let model = fields.nullable_text("model");
        let mut turn = Self {
            message,
            model: String::new(),
            stream: fields.read("stream", |value, pointer, faults| {
                let flag = value.as_bool();
                if flag.is_none() {
                    extract::fields::note(faults, || {
                        extract::fields::wrong_type(pointer, "true or false", value)
                    });
                }
                flag.unwrap_or_default()
            }),
            named: Named {
                profile_id: fields.nullable_text("profile_id"),
                chat_id: fields.nullable_text("chat_id"),
                user_email: fields.nullable_text("user_email"),
            },
            extras: Extras {
                system_override: fields.nullable_text("system_override"),
                context: fields.read("additional_context", read_text_or_texts),
                variables: fields.read("variables", |value, pointer, faults| {
                    read_texts(value, pointer, faults).collect()
                }),
                tools_prompt: None,
            },
        };
        fields.finish();
        let mut faults: Vec<FaultItem> = faults.into_iter().map(Into::into).collect();
        let named = model.filter(|model| !model.trim().is_empty());
        match named.or_else(|| app.config().chat.default_model.clone()) {
            Some(model) => turn.model = model,
            None => faults.push(FaultItem::new(
                "/model",
                "`model` is missing, and no `chat.default_model` is set; give one of those that `/v1/models` lists",
            )),
        }
        if !faults.is_empty() {
            return Err(ApiError::invalid(faults));
        }
        if let Some((model, profile)) = split(&turn.model, &app.store().snapshot().library) {
            turn.model = model;
            turn.named.profile_id.get_or_insert(profile);
        }
        Ok(turn)
    }

    /// What the upstream is asked.
    fn request(&self, prompt: &ChatPrompt, app: &App) -> String {
        let role = app.config().chat.system_role.as_str();
        let system = prompt
            .message()
            .map(|text| json!({"role": role, "content": text}));
        let user = json!({"role": "user", "content": self.message});
        let messages: Vec<Value> = system.into_iter().chain([user]).collect();
        let mut request = json!({"model": self.model, "messages": messages});
        if self.stream {
            request["stream"] = true.into();
            request["stream_options"] = json!({"include_usage": true});
        }
        request.to_string()
    }
}

/// As much of an upstream's answer, or of a piece of it, as is read.
#[derive(Deserialize)]
struct Completion<'a> {
    #[serde(default)]
    choices: Vec<Choice>,
    #[serde(borrow)]
    usage: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Choice {
    #[serde(alias = "delta")]
    message: Option<Said>,
}

#[derive(Deserialize)]
struct Said {
    content: Option<String>,
}

impl Completion<'_> {
    fn content(&mut self) -> Option<String> {
        self.choices.first_mut()?.message.take()?.content
    }

    fn usage(&self) -> Option<Box<RawValue>> {
        let usage = self.usage.filter(|usage| usage.get() != "null");
        usage.map(ToOwned::to_owned)
    }
}

fn read_answer(whole: &[u8]) -> Result<(String, Option<Box<RawValue>>), ApiError> {
    let mut answer: Completion<'_> = serde_json::from_slice(whole).map_err(|_| garbage())?;
    let usage = answer.usage();
    // A model that only calls tools says nothing; there are none here.
    let content = answer.content().ok_or_else(garbage)?;
    Ok((content, usage))
}

fn garbage() -> ApiError {
    ApiError::new(
        StatusCode::BAD_GATEWAY,
        "upstream_not_understood",
        "the upstream's answer is no completion with a text",
    )
}

/// An upstream's refusal: 429 as it is, with when to try again, and all others as a failure of the upstream.
async fn refused(upstream: &Upstream, answer: reqwest::Response) -> ApiError {
    let status = answer.status();
    let retry_after = answer.headers().get(header::RETRY_AFTER).cloned();
    let said = match upstream.whole(answer).await {
        Ok(body) => serde_json::from_slice::<Value>(&body).ok(),
        Err(error) => return error.into(),
    };
    let said = said.and_then(|body| {
        let message = body["error"]["message"].as_str()?;
        Some(format!(": {}", one_line(message, MAX_SAID)))
    });
    let (own, code) = match status {
        StatusCode::TOO_MANY_REQUESTS => (status, "upstream_busy"),
        _ => (StatusCode::BAD_GATEWAY, "upstream_refused"),
    };
    let detail = format!(
        "the upstream answers with HTTP {}{}",
        status.as_u16(),
        said.unwrap_or_default()
    );
    let error = ApiError::new(own, code, detail).with("upstream_status", status.as_u16());
    match retry_after {
        Some(value) => error.with_header(header::RETRY_AFTER, value),
        None => error,
    }
}

/// The pieces of a streamed answer.
struct Pieces {
    answer: reqwest::Response,
    limit: std::time::Duration,
    received: Vec<u8>,
    /// Whether anything was understood.
    is_stream: bool,
}

/// What an upstream's event says.
enum Piece {
    Text(String),
    Usage(Box<RawValue>),
    End,
}

impl Pieces {
    fn new(answer: reqwest::Response, limit: std::time::Duration) -> Self {
        Self {
            answer,
            limit,
            received: Vec::new(),
            is_stream: false,
        }
    }

    /// The next one that says something.
    async fn next(&mut self) -> Result<Piece, UpstreamError> {
        loop {
            while let Some(end) = self.received.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.received.drain(..=end).collect();
                let Some(data) = line.strip_prefix(b"data:") else {
                    continue;
                };
                let piece = read_data(data.trim_ascii())?;
                self.is_stream = true;
                if let Some(piece) = piece {
                    return Ok(piece);
                }
            }
            if self.received.len() > MAX_EVENT {
                return Err(UpstreamError::TooLarge);
            }
            match next(&mut self.answer, self.limit).await? {
                Some(bytes) => self.received.extend_from_slice(&bytes),
                None if self.is_stream => return Ok(Piece::End),
                None => return Err(broke_off("it sent no stream of events")),
            }
        }
    }
}

fn broke_off(why: &str) -> UpstreamError {
    UpstreamError::BrokeOff(why.to_owned())
}

/// What an event of an upstream says; each is one line.
fn read_data(data: &[u8]) -> Result<Option<Piece>, UpstreamError> {
    if data == b"[DONE]" {
        return Ok(Some(Piece::End));
    }
    if let Ok(Value::Object(error)) = serde_json::from_slice(data)
        && let Some(error) = error.get("error").filter(|error| !error.is_null())
    {
        let said = error["message"]
            .as_str()
            .unwrap_or("it says that there was an error");
        return Err(broke_off(&one_line(said, MAX_SAID)));
    }
    let piece: Result<Completion<'_>, _> = serde_json::from_slice(data);
    let mut piece = piece.map_err(|_| broke_off("it sent what is no completion"))?;
    Ok(match piece.content().filter(|text| !text.is_empty()) {
        Some(text) => Some(Piece::Text(text)),
        None => piece.usage().map(Piece::Usage),
    })
}

/// Where a stream stands.
enum Stage {
    Start,
    Pieces,
    Over,
}

fn events(about: About, pieces: Pieces) -> impl Stream<Item = Event> {
    let start = (Stage::Start, about, pieces, String::new(), None);
    stream::unfold(
        start,
        async |(stage, about, mut pieces, mut said, mut usage)| {
            let (event, stage) = match stage {
                Stage::Over => return None,
                Stage::Start => (event("start", &about), Stage::Pieces),
                Stage::Pieces => loop {
                    match pieces.next().await {
                        Ok(Piece::Text(text)) => {
                            said.push_str(&text);
                            break (event("chunk", &json!({"content": text})), Stage::Pieces);
                        }
                        Ok(Piece::Usage(counted)) => usage = Some(counted),
                        Ok(Piece::End) => {
                            let answer = TurnAnswer {
                                response: std::mem::take(&mut said),
                                about: about.clone(),
                                usage: usage.take(),
                            };
                            break (event("done", &answer), Stage::Over);
                        }
                        Err(error) => {
                            let data = json!({"code": error.code(), "detail": error.to_string()});
                            break (event("error", &data), Stage::Over);
                        }
                    }
                },
            };
            Some((event, (stage, about, pieces, said, usage)))
        },
    )
}

fn event(name: &str, data: &impl Serialize) -> Event {
    let data = serde_json::to_string(data).expect("plain data");
    Event::default().event(name).data(data)
}
