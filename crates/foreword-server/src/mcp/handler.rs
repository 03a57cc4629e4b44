//! Answers the protocol's requests. Nothing here creates anything: a handshake only reads.

use std::{
    borrow::Cow,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use http::{HeaderMap, header, request::Parts};
use rmcp::{
    ErrorData, RoleServer, ServerHandler,
    model::{
        CacheScope, CallToolRequestParams, CallToolResponse, CallToolResult, CompleteRequestParams,
        CompleteResult, ContentBlock, CustomRequest, CustomResult, DiscoverResult, ErrorCode,
        GetSkillRequestParams, GetSkillResult, Implementation, InitializeRequestParams,
        InitializeResult, JsonObject, ListResourceTemplatesResult, ListResourcesResult,
        ListSkillsResult, ListToolsResult, PaginatedRequestParams, ProgressToken, ProtocolVersion,
        ReadResourceRequestParams, ReadResourceResponse, RequestId, RequestMetaObject,
        ServerCapabilities, ServerConfig, SubscriptionFilter, Tool,
    },
    service::{NotificationContext, RequestContext, SubscriptionContext},
};
use serde_json::json;
use tokio::time::Instant;

use crate::{
    app::App,
    config::Form,
    connections::Route,
    metrics::{Tier, ToolOutcome},
    render::RenderError,
    session::{Session, SessionError, SessionReader, SessionRequest, SessionSources},
};

use super::{
    changes, handed_on,
    instructions::nobodys_session,
    resources,
    running::{CallName, RunningCall, RunningCalls},
    skills,
    stdio::StdioSession,
    tools, work,
};

/// How long a client may keep the list of tools, in milliseconds: it is the same for all, and changes with connected servers, which is
/// told to those who listen.
const TOOLS_TTL_MS: u64 = 60_000;

/// How long the first answers of a process wait for connected servers.
const CONNECTIONS_WITHIN: Duration = Duration::from_secs(4);

/// Answers one client: over HTTP for one request, over stdio for as long as it runs.
pub(super) struct Handler {
    app: App,
    source: Source,
}

/// Where a request says whose session it is.
enum Source {
    /// In what the edge left in its extensions.
    Http,
    /// In its `_meta`, else on the command line.
    Stdio(StdioSession),
}

/// What the edge read of an HTTP request.
pub(super) struct Call {
    pub(super) session: SessionRequest,
    pub(super) path_chat: Option<String>,
    pub(super) form: Form,
    /// The key that it came with, by its name.
    pub(super) key_name: Option<Arc<str>>,
    /// Whether the answer may be a stream, in which there is room for messages before it.
    pub(super) takes_progress: bool,
    /// The calls that the client may still cancel.
    pub(super) running: Arc<RunningCalls>,
    /// Set where the session turns out to be unusable only here; the edge answers that with status 400.
    pub(super) refused: AtomicBool,
}

impl Call {
    /// Whose session it is; what `meta` says counts where path and headers are silent.
    pub(super) fn session(
        &self,
        reader: &SessionReader,
        headers: &HeaderMap,
        meta: &RequestMetaObject,
    ) -> Result<SessionRequest, SessionError> {
        if !names_session(meta) {
            return Ok(self.session.clone());
        }
        reader.read(SessionSources {
            headers,
            query: None,
            path_chat: self.path_chat.as_deref(),
            meta: Some(meta),
        })
    }

    /// By what the client knows its request.
    pub(super) fn name(&self, session: &Session, request_id: RequestId) -> CallName {
        CallName::new(self.key_name.clone(), session, request_id)
    }
}

impl Handler {
    pub(super) fn for_http(app: App) -> Self {
        Self {
            app,
            source: Source::Http,
        }
    }

    pub(super) fn for_stdio(app: App, session: StdioSession) -> Self {
        Self {
            app,
            source: Source::Stdio(session),
        }
    }

    /// The session's prompt in the form that this client gets.
    async fn instructions(
        &self,
        context: &RequestContext<RoleServer>,
    ) -> Result<String, ErrorData> {
        self.wait_for_connections().await;
        let form = match http_call(context) {
            Some((_, call)) => call.form,
            None => self.app.config().delivery.instructions,
        };
        let request = self.session(context);
        let session = match form {
            Form::Neutral => request.map(|_| nobodys_session(None)),
            Form::Full | Form::Brief | Form::Hint => request.and_then(SessionRequest::require),
        };
        let session = session.map_err(|error| refuse(context, &error))?;
        let prompt = self.app.renderer().render(&session, form).await;
        let prompt = prompt.map_err(|error| not_rendered(&error))?;
        self.app.metrics().delivery(Tier::Instructions);
        Ok(prompt.text())
    }

    /// Waits for connected servers, but not for long, where a client is there from the start of the process: what it reads first is
    /// often all that it ever reads.
    async fn wait_for_connections(&self) {
        if let Source::Stdio(_) = &self.source {
            let settled = self.app.connections().settled();
            let _ = tokio::time::timeout(CONNECTIONS_WITHIN, settled).await;
        }
    }

    /// One of our own tools, or one that is handed on.
    fn tool(&self, name: &str) -> Option<Called> {
        let own = self.app.tools().iter().find(|tool| tool.name == name);
        own.map(|tool| Called::Own(tool.clone())).or_else(|| {
            let catalog = self.app.connections().catalog();
            catalog.route(name).cloned().map(Called::HandedOn)
        })
    }

    /// The full text, whatever form the handshake had.
    async fn read_me(
        &self,
        arguments: Option<JsonObject>,
        session: SessionRequest,
    ) -> Result<String, ToolFailure> {
        if arguments.is_some_and(|arguments| !arguments.is_empty()) {
            return Err(ToolFailure::TakesNoArguments);
        }
        let session = session.require()?;
        let prompt = self.app.renderer().render(&session, Form::Full).await?;
        Ok(prompt.text())
    }

    /// What the tool says. What goes wrong is for the model to read.
    async fn work(
        &self,
        tool: &Tool,
        arguments: Option<JsonObject>,
        session: SessionRequest,
        context: &RequestContext<RoleServer>,
    ) -> CallToolResult {
        if tool.name != tools::READ_ME {
            return match session.require() {
                Ok(session) => {
                    let _running = listed(context, &session);
                    Box::pin(work::call(
                        &self.app, &session, &tool.name, arguments, context,
                    ))
                    .await
                }
                Err(error) => CallToolResult::error(vec![ContentBlock::text(error.to_string())]),
            };
        }
        match self.read_me(arguments, session).await {
            Ok(text) => CallToolResult::success(vec![ContentBlock::text(text)]),
            Err(failure) => CallToolResult::error(vec![ContentBlock::text(failure.to_string())]),
        }
    }

    /// What the server says whose tool it is. Whose call it is has to be known, as for our own tools.
    async fn hand_on(
        &self,
        route: &Route,
        arguments: Option<JsonObject>,
        session: SessionRequest,
        context: &RequestContext<RoleServer>,
    ) -> Result<CallToolResult, ErrorData> {
        match session.require() {
            Ok(session) => {
                let _running = listed(context, &session);
                handed_on::call(&self.app, &session, route, arguments, context).await
            }
            Err(error) => Ok(CallToolResult::error(vec![ContentBlock::text(
                error.to_string(),
            )])),
        }
    }

    fn session(
        &self,
        context: &RequestContext<RoleServer>,
    ) -> Result<SessionRequest, SessionError> {
        let (reader, meta) = (self.app.sessions(), &context.meta);
        if let Source::Stdio(session) = &self.source {
            return session.read(reader, meta);
        }
        let (parts, call) = http_call(context).expect("the edge leaves its call in each request");
        call.session(reader, &parts.headers, meta)
    }
}

impl ServerHandler for Handler {
    /// Static and cheap: it is asked for with every request. The instructions are put in where a session is known.
    fn get_info(&self) -> ServerConfig {
        let mut capabilities = ServerCapabilities::builder().enable_tools().build();
        resources::declare(&self.app, &mut capabilities);
        changes::declare(&mut capabilities);
        skills::declare(&self.app, &mut capabilities);
        ServerConfig::new(capabilities).with_server_info(server_info())
    }

    async fn initialize(
        &self,
        request: InitializeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<InitializeResult, ErrorData> {
        let mut result = self.negotiate_initialize(&request)?;
        skills::retract(&mut result.capabilities);
        if matches!(self.source, Source::Http) {
            changes::retract(&mut result.capabilities);
        }
        context.peer.set_peer_info(request);
        result.instructions = Some(self.instructions(&context).await?);
        Ok(result)
    }

    /// Private and stale at once: a client's cache knows no headers and would serve one user's text to another.
    async fn discover(
        &self,
        context: RequestContext<RoleServer>,
    ) -> Result<DiscoverResult, ErrorData> {
        let mut info = self.get_info();
        info.instructions = Some(self.instructions(&context).await?);
        let versions = self.supported_protocol_versions().into_owned();
        Ok(DiscoverResult::from_server_info(versions, info))
    }

    async fn list_tools(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        if request.is_some_and(|request| request.cursor.is_some()) {
            let message = "the cursor is not known; the list of tools has one page";
            return Err(ErrorData::invalid_params(message, None));
        }
        let session = self.session(&context);
        session.map_err(|error| refuse(&context, &error))?;
        self.wait_for_connections().await;
        let catalog = self.app.connections().catalog();
        let handed_on = if is_foreword(&context) {
            &[]
        } else {
            &catalog.tools[..]
        };
        let tools = self.app.tools().iter().chain(handed_on);
        let mut result = ListToolsResult::with_all_items(tools.cloned().collect());
        if speaks_2026(&context) {
            result.ttl_ms = Some(TOOLS_TTL_MS);
            result.cache_scope = Some(CacheScope::Public);
        }
        Ok(result)
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        let own = self.app.tools().iter().find(|tool| tool.name == name);
        own.cloned()
            .or_else(|| self.app.connections().catalog().tool(name).cloned())
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let Some(called) = self.tool(&request.name) else {
            let message = format!(
                "unknown tool `{}`; `tools/list` names those that exist",
                request.name
            );
            return Err(ErrorData::invalid_params(message, None));
        };
        let session = self.session(&context);
        let session = session.map_err(|error| refuse(&context, &error))?;
        let started = Instant::now();
        let (label, result) = match called {
            Called::Own(tool) => {
                let result = self.work(&tool, request.arguments, session, &context).await;
                (tool.name, result)
            }
            Called::HandedOn(route) => {
                let called = self.hand_on(&route, request.arguments, session, &context);
                let result = Box::pin(called).await;
                let result = result.inspect_err(|_| {
                    let seconds = started.elapsed().as_secs_f64();
                    let label = label_of(&route);
                    self.app
                        .metrics()
                        .tool_call(label, ToolOutcome::Error, seconds);
                })?;
                (label_of(&route), result)
            }
        };
        let outcome = if result.is_error == Some(true) {
            ToolOutcome::Error
        } else {
            ToolOutcome::Success
        };
        let seconds = started.elapsed().as_secs_f64();
        self.app.metrics().tool_call(label, outcome, seconds);
        Ok(result.into())
    }

    async fn list_resources(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        let session = self.session(&context).and_then(SessionRequest::require);
        let session = session.map_err(|error| refuse(&context, &error))?;
        resources::list(&self.app, &session, request).await
    }

    async fn list_resource_templates(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        resources::templates(&self.app)
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let session = self.session(&context);
        let session = session.map_err(|error| refuse(&context, &error))?;
        if request.uri.starts_with(skills::SCHEME) && !skills::are_negotiated(&context) {
            return Err(resources::not_found(&request.uri));
        }
        let result = resources::read(&self.app, session.as_given(), &request.uri).await?;
        Ok(result.into())
    }

    async fn list_skills(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListSkillsResult, ErrorData> {
        if !skills::are_negotiated(&context) {
            return Err(unknown_method("skills/list"));
        }
        let session = self.session(&context).and_then(SessionRequest::require);
        let session = session.map_err(|error| refuse(&context, &error))?;
        skills::list(&self.app, &session, request).await
    }

    async fn get_skill(
        &self,
        request: GetSkillRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<GetSkillResult, ErrorData> {
        if !skills::are_negotiated(&context) {
            return Err(unknown_method("skills/get"));
        }
        let session = self.session(&context).and_then(SessionRequest::require);
        let session = session.map_err(|error| refuse(&context, &error))?;
        skills::get(&self.app, &session, &request.uri).await
    }

    async fn complete(
        &self,
        request: CompleteRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CompleteResult, ErrorData> {
        let session = self.session(&context).and_then(SessionRequest::require);
        let session = session.map_err(|error| refuse(&context, &error))?;
        resources::complete(&self.app, &session, &request).await
    }

    fn accepted_subscription_filter(
        &self,
        _requested: &SubscriptionFilter,
    ) -> Option<SubscriptionFilter> {
        Some(changes::subscription(&self.app))
    }

    async fn listen(&self, subscription: SubscriptionContext) -> Result<(), ErrorData> {
        let context = subscription.request_context();
        let session = self.session(context).and_then(SessionRequest::require);
        let session = session.map_err(|error| refuse(context, &error))?;
        changes::listen(&self.app, &session, &subscription).await
    }

    /// A client of an older revision on stdio hears of changes without asking.
    async fn on_initialized(&self, context: NotificationContext<RoleServer>) {
        if let Source::Stdio(session) = &self.source {
            let session = session.read(self.app.sessions(), &RequestMetaObject::default());
            if let Ok(session) = session.and_then(SessionRequest::require) {
                changes::tell(self.app.clone(), session, context.peer);
            }
        }
    }

    /// A method that exists ends up here too, if its parameters could not be read.
    async fn on_custom_request(
        &self,
        request: CustomRequest,
        context: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        let method = request.method;
        let removed = method == "initialize" && speaks_2026(&context)
            || method.starts_with("skills/") && !skills::are_negotiated(&context);
        Err(if KNOWN_METHODS.contains(&method.as_str()) && !removed {
            ErrorData::invalid_params(format!("the parameters of `{method}` are not valid"), None)
        } else {
            unknown_method(&method)
        })
    }
}

fn unknown_method(method: &str) -> ErrorData {
    let message = format!("unknown method `{method}`");
    ErrorData::new(ErrorCode::METHOD_NOT_FOUND, message, None)
}

/// The methods of the protocol that have parameters which can be wrong here.
const KNOWN_METHODS: [&str; 13] = [
    "skills/list",
    "skills/get",
    "initialize",
    "server/discover",
    "ping",
    "tools/list",
    "tools/call",
    "resources/list",
    "resources/templates/list",
    "resources/read",
    "completion/complete",
    "subscriptions/listen",
    "prompts/list",
];

/// Whether another Foreword asks, or this one itself. It gets our own tools alone: what is handed on would be handed on to each other
/// without end.
fn is_foreword(context: &RequestContext<RoleServer>) -> bool {
    let agent = http_call(context)
        .and_then(|(parts, _)| parts.headers.get(header::USER_AGENT)?.to_str().ok());
    let by_agent = agent.is_some_and(|agent| agent.starts_with("foreword/"));
    by_agent
        || context
            .client_info()
            .is_some_and(|client| client.name == "foreword")
}

/// What counts the calls of a server's tools, all together: their names are not ours, and there may be thousands.
fn label_of(route: &Route) -> Cow<'static, str> {
    format!("{}__*", route.server).into()
}

/// A tool that a client calls.
enum Called {
    Own(Tool),
    HandedOn(Route),
}

/// Why a tool did not do its work, in words for the model.
#[derive(Debug, thiserror::Error)]
enum ToolFailure {
    #[error("`read_me` takes no arguments; call it with `{{}}`")]
    TakesNoArguments,
    #[error(transparent)]
    NoSession(#[from] SessionError),
    #[error(transparent)]
    NotRendered(#[from] RenderError),
}

fn http_call(context: &RequestContext<RoleServer>) -> Option<(&Parts, &Call)> {
    let parts = context.extensions.get::<Parts>()?;
    let call = parts.extensions.get::<Arc<Call>>()?;
    Some((parts, call))
}

/// Lists a call that a message of its own may cancel, for as long as the guard lives. On stdio, and by closing the connection, rmcp does it.
fn listed(context: &RequestContext<RoleServer>, session: &Session) -> Option<RunningCall> {
    let (_, call) = http_call(context).filter(|_| !speaks_2026(context))?;
    let name = call.name(session, context.id.clone());
    Some(call.running.enter(name, context.ct.clone()))
}

/// The token under which the client hears how its call goes on, if it asked for that and can.
pub(super) fn progress_token(context: &RequestContext<RoleServer>) -> Option<ProgressToken> {
    let takes_progress = http_call(context).is_none_or(|(_, call)| call.takes_progress);
    context.meta.get_progress_token().filter(|_| takes_progress)
}

fn names_session(meta: &RequestMetaObject) -> bool {
    meta.keys().any(|name| name.starts_with("foreword/"))
}

fn refuse(context: &RequestContext<RoleServer>, error: &SessionError) -> ErrorData {
    if let Some((_, call)) = http_call(context) {
        call.refused.store(true, Ordering::Relaxed);
    }
    ErrorData::invalid_params(error.to_string(), Some(json!({ "code": error.code() })))
}

/// A profile that does not exist is never replaced by another, nor by the static line.
fn not_rendered(error: &RenderError) -> ErrorData {
    match error {
        RenderError::ProfileNotFound(error) => {
            let data = json!({ "code": "profile_not_found", "known": error.known });
            ErrorData::invalid_params(error.to_string(), Some(data))
        }
    }
}

pub(super) fn speaks_2026(context: &RequestContext<RoleServer>) -> bool {
    context
        .protocol_version()
        .is_some_and(|version| version.as_str() >= ProtocolVersion::V_2026_07_28.as_str())
}

fn server_info() -> Implementation {
    Implementation::new("foreword", env!("CARGO_PKG_VERSION")).with_title("Foreword")
}
