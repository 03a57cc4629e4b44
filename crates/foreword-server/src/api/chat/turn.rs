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
use futures::{Stream, StreamExt, stream};
use http::{HeaderMap, HeaderValue, Method, StatusCode, Uri, header};
use indexmap::IndexMap;
use serde::Serialize;
use serde_json::{Value, json};
use utoipa::ToSchema;

use super::{OPENAI, configured, name_prompt, session};
use crate::{
    api::openapi::{SessionParameters, TurnProblems},
    app::App,
    chat::{
        ChatPrompt, Named,
        completion::{self, Events, Usage},
        request::{read_named_and_extras, split_profile},
        upstream::Upstream,
    },
    error::{ApiError, FaultItem},
    extract::{self, fields::Fields},
    operations::chat::prompt_of_chat,
    render::Extras,
};

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
    #[schema(schema_with = crate::api::prompts::compose::text_or_texts, required = false)]
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
    usage: Option<Usage>,
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
    params(SessionParameters),
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
    let upstream = configured(app.upstreams().openai.as_ref(), OPENAI)?;
    let turn = Turn::read(&body, &app)?;
    let session = session(&app, &uri, &headers, &turn.named)?;
    let prompt = prompt_of_chat(&app, &session, &turn.extras).await?;
    let body = turn.request(&prompt, &app);
    let mut passed = upstream.own_headers();
    let json = HeaderValue::from_static("application/json");
    passed.insert(header::CONTENT_TYPE, json);
    let asked = upstream.ask(Method::POST, ("chat/completions", None), passed, body);
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
        let events = events(about, Events::new(answer, upstream.timeout()));
        Sse::new(events.map(Ok::<_, Infallible>))
            .keep_alive(KeepAlive::default())
            .into_response()
    } else {
        let whole = upstream.whole(answer).await?;
        let (response, usage) = completion::read(&whole).ok_or_else(garbage)?;
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
        let stream = fields.nullable_flag("stream");
        let (mut named, extras) = read_named_and_extras(&mut fields);
        fields.finish();
        let mut faults: Vec<FaultItem> = faults.into_iter().map(Into::into).collect();
        let given = model.filter(|model| !model.trim().is_empty());
        let model = given.or_else(|| app.config().chat.default_model.clone());
        if model.is_none() {
            faults.push(FaultItem::new(
                "/model",
                "`model` is missing, and no `chat.default_model` is set; give one of those that `/v1/models` lists",
            ));
        }
        let (Some(mut model), true) = (model, faults.is_empty()) else {
            return Err(ApiError::invalid(faults));
        };
        if let Some((name, profile)) = split_profile(&model, &app.store().snapshot().library) {
            model = name;
            named.profile_of_model = Some(profile);
        }
        Ok(Self {
            message,
            model,
            stream: stream.unwrap_or_default(),
            named,
            extras,
        })
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
    let body = match upstream.whole(answer).await {
        Ok(body) => body,
        Err(error) => return error.into(),
    };
    let (own, code) = match status {
        StatusCode::TOO_MANY_REQUESTS => (status, "upstream_busy"),
        _ => (StatusCode::BAD_GATEWAY, "upstream_refused"),
    };
    let error = ApiError::new(own, code, completion::read_refusal(status, &body));
    let error = error.with("upstream_status", status.as_u16());
    match retry_after {
        Some(value) => error.with_header(header::RETRY_AFTER, value),
        None => error,
    }
}

/// Where a stream stands.
enum Stage {
    Start(About, Events),
    Pieces(About, Events),
    Over,
}

fn events(about: About, events: Events) -> impl Stream<Item = Event> {
    stream::unfold(Stage::Start(about, events), async |stage| {
        let (about, mut events) = match stage {
            Stage::Over => return None,
            Stage::Start(about, events) => {
                let start = event("start", &about);
                return Some((start, Stage::Pieces(about, events)));
            }
            Stage::Pieces(about, events) => (about, events),
        };
        match events.next().await {
            Ok(Some(text)) => {
                let chunk = event("chunk", &json!({"content": text}));
                Some((chunk, Stage::Pieces(about, events)))
            }
            Ok(None) => {
                let (response, usage) = events.into_whole();
                let answer = TurnAnswer {
                    response,
                    about,
                    usage,
                };
                Some((event("done", &answer), Stage::Over))
            }
            Err(error) => {
                tracing::warn!("A stream of a chat answer ends early: {error}");
                let data = json!({"code": error.code(), "detail": error.to_string()});
                Some((event("error", &data), Stage::Over))
            }
        }
    })
}

fn event(name: &str, data: &impl Serialize) -> Event {
    let data = serde_json::to_string(data).expect("plain data");
    Event::default().event(name).data(data)
}
