//! One live connection to an MCP server: how it is made, what is asked of it, how it ends.

use std::{
    borrow::Cow,
    error::Error,
    fmt,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use rmcp::{
    ClientHandler, ErrorData, Peer, RoleClient,
    model::{
        CallToolRequest, CallToolRequestParams, CallToolResult, ClientCapabilities, ClientConfig,
        ClientRequest, ElicitRequestParams, ElicitResult, ElicitationCreateRequestMethod,
        Implementation, JsonObject, ListToolsRequest, PaginatedRequestParams,
        ProgressNotificationParam, ProtocolVersion, ServerNotification, ServerPeerInfo,
        ServerResult, SubscriptionFilter, Tool,
    },
    service::{
        ClientInitializeError, ClientLifecycleMode, ClientServiceExt, NotificationContext,
        PeerRequestOptions, RequestContext, RequestHandle, ServiceError,
    },
    transport::{
        StreamableHttpClientTransport,
        async_rw::AsyncRwTransport,
        streamable_http_client::{StreamableHttpClientTransportConfig, StreamableHttpError},
    },
};
use serde_json::{Value, json};
use tokio::{
    sync::Notify,
    time::{Instant, sleep, sleep_until, timeout},
};
use tokio_util::sync::CancellationToken;

use super::{
    catalog::Offered,
    child::{Launch, Running, Severable},
    config::{Connection, Remote, Transport},
    progress::{Progress, Watched},
    remote::{CallHeaders, RemoteClient},
};
use crate::session::Session;
use foreword_compose::one_line;

/// How long a server may take from its start to its first answer; a package that is downloaded first takes its time.
const TO_CONNECT: Duration = Duration::from_mins(2);

/// How long a server may take to list its tools, all pages together.
const TO_LIST: Duration = Duration::from_secs(30);

/// How long closing may take before it goes on in the background.
const TO_CLOSE: Duration = Duration::from_secs(2);

/// How long to wait before listening again, where the server ended that.
const TO_LISTEN_AGAIN: Duration = Duration::from_secs(5);

/// How many requests a server on the network is sent at once; each takes a slot until its answer begins.
const CALLS_AT_ONCE: usize = 1024;

/// The most tools of a server.
const MAX_TOOLS: usize = 5_000;

/// The longest such wait, where it ends or fails each time.
const LONGEST_TO_LISTEN_AGAIN: Duration = Duration::from_mins(5);

/// The most pages that a list may have.
const MAX_PAGES: usize = 1_000;

/// The most bytes that the tools of a server may have together, as JSON.
const MAX_TOOLS_BYTES: usize = 16 << 20;

/// How a server is spoken to at first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Opening {
    /// As the newest revision does, then as the older ones.
    Newest,
    /// As the older revisions do. Some servers end at what they do not know, or take so long to start that both questions wait
    /// for them.
    Older,
}

/// A live connection.
pub(super) struct Link {
    peer: Peer<RoleClient>,
    progress: Progress,
    calls: Arc<AtomicUsize>,
    running: Option<Running>,
    /// Rings when the server says that its tools are others now, and when a call shows that it may be gone.
    pub(super) changed: Arc<Notify>,
    end: CancellationToken,
    ended: CancellationToken,
}

/// What calls need of a live connection; cheap to clone.
#[derive(Clone)]
pub(super) struct Line {
    peer: Peer<RoleClient>,
    progress: Progress,
    calls: Arc<AtomicUsize>,
    changed: Arc<Notify>,
}

impl Link {
    /// Connects. The error says what is wrong, and what to do where that is known.
    pub(super) async fn open(
        name: &str,
        connection: &Connection,
        launch: &Launch,
        opening: Opening,
    ) -> Result<Self, String> {
        match &connection.transport {
            Transport::Stdio(program) => {
                let started = Running::start(name, program, &connection.secrets, launch);
                let (mut running, stdin, stdout) = started.map_err(|error| {
                    if let Some(cwd) = program.cwd.as_deref().filter(|cwd| !cwd.is_dir()) {
                        return format!("`cwd` is no directory now: `{}`", cwd.display());
                    }
                    format!("`{}` could not be started: {error}", program.command)
                })?;
                let end = CancellationToken::new();
                let transport = AsyncRwTransport::new_client(stdout, Severable::new(stdin, &end));
                let shaken = tokio::select! {
                    shaken = shake_hands(transport, opening, end) => shaken,
                    how = running.ended() => Err(how),
                };
                match shaken {
                    Ok(link) => Ok(Self {
                        running: Some(running),
                        ..link
                    }),
                    // A server that ended says more about it than that it did not answer.
                    Err(why) => {
                        let ended = timeout(Duration::from_millis(500), running.ended()).await;
                        if ended.is_err() {
                            tokio::spawn(running.finish());
                        }
                        // One that ends as it should has said what is wrong before.
                        let ended = ended.ok().filter(|how| how != "its program ended with 0");
                        Err(ended.unwrap_or(why))
                    }
                }
            }
            Transport::Http(remote) => open_remote(remote, opening).await,
        }
    }

    /// What the server said about itself.
    pub(super) fn info(&self) -> Option<Arc<ServerPeerInfo>> {
        self.peer.peer_info()
    }

    pub(super) fn line(&self) -> Line {
        Line {
            peer: self.peer.clone(),
            progress: self.progress.clone(),
            calls: Arc::clone(&self.calls),
            changed: Arc::clone(&self.changed),
        }
    }

    /// Whether calls are under way. Some servers do one thing at a time, and answer nothing else meanwhile.
    pub(super) fn is_busy(&self) -> bool {
        self.calls.load(Ordering::Relaxed) > 0
    }

    /// Waits until the connection has ended, and says how.
    pub(super) async fn ended(&mut self) -> String {
        let Some(running) = &mut self.running else {
            self.ended.cancelled().await;
            return "closed the connection".to_owned();
        };
        tokio::select! {
            how = running.ended() => how,
            () = self.ended.cancelled() => {
                let ended = timeout(TO_CLOSE, running.ended()).await;
                ended.unwrap_or_else(|_| "its program closed its standard output".to_owned())
            }
        }
    }

    /// Closes the connection; a program gets its time to end in the background.
    pub(super) async fn close(self) {
        self.end.cancel();
        let _ = timeout(TO_CLOSE, self.ended.cancelled()).await;
        if let Some(running) = self.running {
            running.finish().await;
        }
    }

    /// Hears of changes as the newest revision tells them, for as long as the connection lasts; not where the server never tells.
    pub(super) fn listen(&self) {
        let Some(info) = self.info() else { return };
        let tells = info.capabilities.tools.as_ref();
        let tells = tells.and_then(|tools| tools.list_changed) == Some(true);
        if info.protocol_version.has_initialize() || !tells {
            return;
        }
        let (peer, changed, ended) = (
            self.peer.clone(),
            Arc::clone(&self.changed),
            self.ended.clone(),
        );
        tokio::spawn(async move {
            let hearing = async {
                let mut pause = TO_LISTEN_AGAIN;
                loop {
                    let filter = SubscriptionFilter::builder().tools_list_changed().build();
                    if let Ok(mut subscription) = peer.listen(filter).await {
                        // What was told before was not heard.
                        changed.notify_one();
                        pause = TO_LISTEN_AGAIN;
                        while let Ok(Some(news)) = subscription.next().await {
                            if matches!(news, ServerNotification::ToolListChangedNotification(_)) {
                                changed.notify_one();
                            }
                        }
                    }
                    sleep(pause).await;
                    pause = (pause * 2).min(LONGEST_TO_LISTEN_AGAIN);
                }
            };
            tokio::select! {
                () = hearing => {}
                () = ended.cancelled() => {}
            }
        });
    }
}

async fn open_remote(remote: &Remote, opening: Opening) -> Result<Link, String> {
    let client = RemoteClient::new(remote).map_err(|error| error.to_string())?;
    let config = StreamableHttpClientTransportConfig::with_uri(remote.url.as_str())
        .max_concurrent_requests(CALLS_AT_ONCE);
    let transport = StreamableHttpClientTransport::with_client(client.clone(), config);
    match shake_hands(transport, opening, CancellationToken::new()).await {
        // Only where the endpoint is not what it should be.
        Err(why)
            if why.starts_with("answers with")
                && client.speaks_the_older_transport(remote).await => Err(
            "speaks the older HTTP+SSE transport, which Foreword does not: give the URL of its Streamable HTTP \
             endpoint (often `/mcp`), or put a bridge such as mcp-remote in front of it"
                .to_owned(),
        ),
        shaken => shaken,
    }
}

async fn shake_hands<T>(
    transport: T,
    opening: Opening,
    end: CancellationToken,
) -> Result<Link, String>
where
    T: rmcp::transport::Transport<RoleClient> + 'static,
{
    let progress = Progress::default();
    let changed = Arc::new(Notify::new());
    let client = Client {
        changed: Arc::clone(&changed),
    };
    let transport = Watched::new(transport, progress.clone());
    let lifecycle = match opening {
        Opening::Newest => ClientLifecycleMode::Auto {
            preferred_versions: vec![ProtocolVersion::V_2026_07_28],
            legacy_version: Some(ProtocolVersion::V_2025_11_25),
        },
        Opening::Older => ClientLifecycleMode::Initialize,
    };
    let shaken = timeout(
        TO_CONNECT,
        client.serve_with_lifecycle(transport, lifecycle),
    )
    .await;
    let service = shaken
        .map_err(|_| format!("did not answer within {} s", TO_CONNECT.as_secs()))?
        .map_err(|error| describe(&error))?;
    let peer = service.peer().clone();
    let ended = CancellationToken::new();
    let (ending, over) = (end.clone(), ended.clone());
    let cancel = service.cancellation_token();
    tokio::spawn(async move {
        let mut waiting = std::pin::pin!(service.waiting());
        tokio::select! {
            _ = &mut waiting => {}
            () = ending.cancelled() => {
                cancel.cancel();
                let _ = waiting.await;
            }
        }
        over.cancel();
    });
    Ok(Link {
        peer,
        progress,
        calls: Arc::default(),
        running: None,
        changed,
        end,
        ended,
    })
}

/// What went wrong in a handshake, without the messages themselves.
fn describe(error: &ClientInitializeError) -> String {
    match error {
        ClientInitializeError::LegacyFallbackFailed { fallback, .. } => describe(fallback),
        ClientInitializeError::ExpectedInitResponse(_)
        | ClientInitializeError::ExpectedInitResult(_) => {
            "answers the handshake with something else: is it an MCP server?".to_owned()
        }
        ClientInitializeError::ConnectionClosed(_) => "closed the connection".to_owned(),
        ClientInitializeError::TransportError { error, .. } => why_not_sent(&*error.error),
        ClientInitializeError::JsonRpcError(error) => {
            format!("refused the handshake: {}", error.message)
        }
        other => other.to_string(),
    }
}

/// Why a message did not get there, said of the server. Of HTTP errors the innermost cause says most, and the outer ones hold
/// URLs.
fn why_not_sent(error: &(dyn Error + Send + Sync + 'static)) -> String {
    let Some(http) = error.downcast_ref::<StreamableHttpError<reqwest::Error>>() else {
        return format!("cannot be reached: {error}");
    };
    match http {
        StreamableHttpError::Client(error) => match innermost(error) {
            _ if error.is_timeout() => "did not answer in time".to_owned(),
            Some(cause) => format!("cannot be reached: {cause}"),
            None => "cannot be reached".to_owned(),
        },
        StreamableHttpError::AuthRequired(_) => refused_with("HTTP 401"),
        StreamableHttpError::InsufficientScope(_) => refused_with("HTTP 403"),
        StreamableHttpError::HttpStatus(status) => refused_with(&status.to_string()),
        StreamableHttpError::UnexpectedServerResponse(answer) => match answer.split_once(':') {
            // What follows is the page that a server shows to people.
            Some((status, _)) if status.starts_with("HTTP ") => refused_with(status),
            _ => format!("answers with something else: {answer}"),
        },
        StreamableHttpError::UnexpectedContentType(kind) => {
            let kind = kind.as_deref().unwrap_or("nothing");
            format!("answers with `{kind}`: is `url` that of its MCP endpoint (often `/mcp`)?")
        }
        error => format!("cannot be talked to: {error}"),
    }
}

fn refused_with(status: &str) -> String {
    let hint = match status.split_whitespace().nth(1) {
        Some("401" | "403") => ": give it a key in `headers`, such as `Authorization`",
        Some("404" | "405" | "406") => ": is `url` that of its MCP endpoint (often `/mcp`)?",
        _ => "",
    };
    format!("answers with {status}{hint}")
}

fn innermost(error: &dyn Error) -> Option<String> {
    let mut cause = error.source()?;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    Some(cause.to_string())
}

/// Our side of the protocol: nothing is offered to servers, and of what they tell only this is heard.
#[derive(Clone)]
struct Client {
    changed: Arc<Notify>,
}

impl ClientHandler for Client {
    fn get_info(&self) -> ClientConfig {
        let us = Implementation::new("foreword", env!("CARGO_PKG_VERSION")).with_title("Foreword");
        ClientConfig::new(ClientCapabilities::default(), us)
            .with_protocol_version(ProtocolVersion::V_2025_11_25)
    }

    async fn on_tool_list_changed(&self, _: NotificationContext<RoleClient>) {
        self.changed.notify_one();
    }

    #[expect(deprecated, reason = "servers of older revisions still ask")]
    async fn list_roots(
        &self,
        _: RequestContext<RoleClient>,
    ) -> Result<rmcp::model::ListRootsResult, ErrorData> {
        Err(ErrorData::method_not_found::<
            rmcp::model::ListRootsRequestMethod,
        >())
    }

    async fn create_elicitation(
        &self,
        _: ElicitRequestParams,
        _: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        Err(ErrorData::method_not_found::<ElicitationCreateRequestMethod>())
    }
}

/// Why there is no list of tools.
#[derive(Debug)]
pub(super) enum NotListed {
    /// It did not come within [`TO_LIST`].
    InTime,
    /// Something was wrong.
    For(String),
}

impl fmt::Display for NotListed {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::InTime => {
                write!(
                    formatter,
                    "did not list its tools within {} s",
                    TO_LIST.as_secs()
                )
            }
            Self::For(why) => formatter.write_str(why),
        }
    }
}

/// A list of tools as it was read, and what of it could not be.
pub(super) struct Listed {
    pub(super) tools: Vec<Tool>,
    pub(super) problems: Vec<String>,
}

impl Link {
    /// What the server offers now, of which `wanted` are taken.
    pub(super) async fn offered(
        &self,
        wanted: Option<&[String]>,
    ) -> Result<(Offered, Vec<String>), NotListed> {
        let listing = timeout(TO_LIST, list(&self.peer)).await;
        let listed = listing
            .map_err(|_| NotListed::InTime)?
            .map_err(NotListed::For)?;
        let Listed {
            mut tools,
            mut problems,
        } = listed;
        if let Some(wanted) = wanted {
            for name in wanted {
                if !tools.iter().any(|tool| tool.name == *name) {
                    let name = one_line(name, 128);
                    problems.push(format!(
                        "`tools` names `{name}`, which the server does not have"
                    ));
                }
            }
            tools.retain(|tool| wanted.iter().any(|name| tool.name == *name));
        }
        let instructions = self.info().and_then(|info| info.instructions.clone());
        Ok((
            Offered {
                instructions,
                tools,
            },
            problems,
        ))
    }
}

async fn list(peer: &Peer<RoleClient>) -> Result<Listed, String> {
    let mut listed = Listed {
        tools: Vec::new(),
        problems: Vec::new(),
    };
    let (mut cursor, mut bytes) = (None::<String>, 0);
    for _ in 0..MAX_PAGES {
        let mut request = ListToolsRequest::default();
        if cursor.is_some() {
            request.params = Some(PaginatedRequestParams::default().with_cursor(cursor.take()));
        }
        let answer = peer
            .send_request(ClientRequest::ListToolsRequest(request))
            .await;
        let next = match answer {
            Ok(ServerResult::ListToolsResult(page)) => {
                for tool in page.tools {
                    listed.take(tool, &mut bytes)?;
                }
                page.next_cursor
            }
            // One tool that cannot be read makes the page something else to rmcp; the others are as good as ever.
            Ok(ServerResult::CustomResult(page)) => {
                let Some(tools) = page.0.get("tools").and_then(Value::as_array) else {
                    return Err("answers `tools/list` with something else".to_owned());
                };
                for tool in tools {
                    listed.take_if_readable(tool, &mut bytes)?;
                }
                page.0
                    .get("nextCursor")
                    .and_then(Value::as_str)
                    .map(str::to_owned)
            }
            Ok(_) => return Err("answers `tools/list` with something else".to_owned()),
            Err(ServiceError::McpError(error))
                if error.code.0 == METHOD_NOT_FOUND && listed.tools.is_empty() =>
            {
                None
            }
            Err(error) => return Err(describe_service(&error)),
        };
        match next {
            Some(next) => cursor = Some(next),
            None => return Ok(listed),
        }
    }
    Err(format!("lists more than {MAX_PAGES} pages of tools"))
}

/// A server without tools says that it does not know the question.
const METHOD_NOT_FOUND: i32 = -32601;

impl Listed {
    fn take(&mut self, mut tool: Tool, bytes: &mut usize) -> Result<(), String> {
        let mended = mend(&mut tool);
        let name = one_line(&tool.name, 128);
        match mended {
            Ok(None) => {}
            Ok(Some(fault)) => {
                self.note(format!(
                    "the tool `{name}` is taken without its output schema: {fault}"
                ));
            }
            Err(fault) => {
                self.note(format!("the tool `{name}` is left out: {fault}"));
                return Ok(());
            }
        }
        if self.tools.iter().any(|known| known.name == tool.name) {
            self.note(format!(
                "the tool `{name}` is listed twice; the first one counts"
            ));
            return Ok(());
        }
        *bytes += serde_json::to_vec(&tool).map_or(0, |json| json.len());
        if self.tools.len() == MAX_TOOLS {
            return Err(format!("lists more than {MAX_TOOLS} tools"));
        }
        if *bytes > MAX_TOOLS_BYTES {
            let most = MAX_TOOLS_BYTES >> 20;
            return Err(format!("lists more than {most} MiB of tools"));
        }
        self.tools.push(tool);
        Ok(())
    }

    fn take_if_readable(&mut self, tool: &Value, bytes: &mut usize) -> Result<(), String> {
        match serde_json::from_value(usual(tool)) {
            Ok(tool) => self.take(tool, bytes),
            Err(error) => {
                let name = tool
                    .get("name")
                    .and_then(Value::as_str)
                    .unwrap_or("without a name");
                let (name, error) = (one_line(name, 128), one_line(&error.to_string(), 200));
                self.note(format!(
                    "the tool `{name}` cannot be read and is left out: {error}"
                ));
                Ok(())
            }
        }
    }

    fn note(&mut self, problem: String) {
        match self.problems.len() {
            MAX_PROBLEMS => self.problems.push("and more of the kind".to_owned()),
            told if told < MAX_PROBLEMS => self.problems.push(problem),
            _ => {}
        }
    }
}

/// The tool as MCP spells it: some servers write `input_schema`, and some leave it out where there are no parameters.
fn usual(tool: &Value) -> Value {
    let mut tool = tool.clone();
    if let Some(fields) = tool.as_object_mut()
        && fields.get("inputSchema").is_none_or(Value::is_null)
    {
        let schema = fields
            .remove("input_schema")
            .filter(|schema| !schema.is_null());
        let schema = schema.unwrap_or_else(|| json!({ "type": "object" }));
        fields.insert("inputSchema".to_owned(), schema);
    }
    tool
}

/// Makes of a tool what MCP allows. Some clients refuse a whole list for one tool that is not.
///
/// # Errors
/// What cannot be mended: then the tool is left out.
fn mend(tool: &mut Tool) -> Result<Option<String>, String> {
    if tool.name.trim().is_empty() {
        return Err("it has no name".to_owned());
    }
    if !tool.input_schema.contains_key("type") {
        let schema = Arc::make_mut(&mut tool.input_schema);
        schema.insert("type".to_owned(), json!("object"));
    }
    if let Some(fault) = fault_of_schema(&tool.input_schema) {
        return Err(format!("{fault} in its `inputSchema`"));
    }
    let fault = tool.output_schema.as_deref().and_then(fault_of_schema);
    Ok(fault.map(|fault| {
        tool.output_schema = None;
        format!("{fault} in its `outputSchema`")
    }))
}

fn fault_of_schema(schema: &JsonObject) -> Option<&'static str> {
    if schema.get("type").and_then(Value::as_str) != Some("object") {
        return Some("`type` is not `object`");
    }
    let is_record = |properties: &Value| {
        properties
            .as_object()
            .is_some_and(|properties| properties.values().all(Value::is_object))
    };
    if !schema.get("properties").is_none_or(is_record) {
        return Some("`properties` is not an object of schemas");
    }
    let are_names = |required: &Value| {
        required
            .as_array()
            .is_some_and(|required| required.iter().all(Value::is_string))
    };
    if !schema.get("required").is_none_or(are_names) {
        return Some("`required` is not a list of names");
    }
    None
}

/// How many problems of a list are told.
const MAX_PROBLEMS: usize = 20;

/// A call to make.
pub(super) struct ToolCall<'a> {
    pub(super) tool: String,
    pub(super) arguments: Option<JsonObject>,
    pub(super) session: &'a Session,
    pub(super) connection: &'a Connection,
    /// Ends the call when nobody waits for it any more.
    pub(super) cancelled: &'a CancellationToken,
}

/// Why there is no result.
pub(super) enum Failed {
    /// The server's own error, to be passed on as it is.
    Refused(ErrorData),
    /// No answer: it may be gone.
    Silent(String),
    /// An answer that cannot be handed on.
    Broken(String),
}

impl Line {
    /// Calls a tool; `news` gets what the server tells on the way.
    pub(super) async fn call<F>(
        &self,
        call: ToolCall<'_>,
        news: impl FnMut(ProgressNotificationParam) -> F,
    ) -> Result<CallToolResult, Failed>
    where
        F: Future<Output = ()>,
    {
        let _under_way = UnderWay::new(&self.calls);
        let called = self.try_call(call, news).await;
        if let Err(Failed::Silent(_)) = called {
            self.changed.notify_one();
        }
        called
    }

    async fn try_call<F>(
        &self,
        call: ToolCall<'_>,
        mut news: impl FnMut(ProgressNotificationParam) -> F,
    ) -> Result<CallToolResult, Failed>
    where
        F: Future<Output = ()>,
    {
        let deadline = Instant::now() + call.connection.timeout;
        let too_long = || {
            let seconds = call.connection.timeout.as_secs();
            Failed::Silent(format!("did not answer within {seconds} s"))
        };
        let mut params = CallToolRequestParams::new(Cow::Owned(call.tool));
        params.arguments = call.arguments;
        let mut request = CallToolRequest::new(params);
        if let Transport::Http(remote) = &call.connection.transport {
            let headers = remote.session_headers.iter();
            let headers = headers
                .filter_map(|(name, value)| Some((name.clone(), value.header(call.session)?)));
            request.extensions.insert(CallHeaders(headers.collect()));
        }
        let sending = self.peer.send_request_with_option(
            ClientRequest::CallToolRequest(request),
            PeerRequestOptions::no_options(),
        );
        let sent = tokio::time::timeout_at(deadline, sending).await;
        let handle = sent
            .map_err(|_| too_long())?
            .map_err(|error| Failed::from(&error))?;
        let mut progress = self.progress.subscribe(handle.progress_token.clone());
        let mut handle = Abandoned::new(handle);
        let answer = loop {
            tokio::select! {
                biased;
                () = call.cancelled.cancelled() => {
                    handle.cancel("nobody waits for it any more").await;
                    return Err(Failed::Broken("was told that the call is cancelled".to_owned()));
                }
                () = sleep_until(deadline) => {
                    handle.cancel("it takes too long").await;
                    return Err(too_long());
                }
                answer = handle.answer() => break answer,
                Some(step) = progress.news.recv() => tokio::select! {
                    () = news(step) => {}
                    // A client that does not read holds up nothing but its own news.
                    () = call.cancelled.cancelled() => {}
                    () = sleep_until(deadline) => {}
                },
            }
        };
        handle.done();
        // Those that came before the answer.
        while let Ok(step) = progress.news.try_recv() {
            let _ = timeout(TO_CLOSE, news(step)).await;
        }
        match answer.map_err(|error| Failed::from(&error))? {
            ServerResult::CallToolResult(result) => Ok(result),
            // A result without content is one that rmcp knows by another name.
            ServerResult::EmptyResult(_) => Ok(CallToolResult::success(Vec::new())),
            ServerResult::InputRequiredResult(_) => Err(Failed::Broken(
                "asks for more input, which cannot be handed on".to_owned(),
            )),
            ServerResult::CreateTaskResult(_) => Err(Failed::Broken(
                "made a task of the call, which cannot be handed on".to_owned(),
            )),
            _ => Err(Failed::Broken(
                "answered with something that is no result of a tool".to_owned(),
            )),
        }
    }
}

impl From<&ServiceError> for Failed {
    fn from(error: &ServiceError) -> Self {
        match error {
            ServiceError::McpError(error) => Self::Refused(error.clone()),
            error => Self::Silent(describe_service(error)),
        }
    }
}

fn describe_service(error: &ServiceError) -> String {
    match error {
        ServiceError::McpError(error) => {
            format!("refused: {}", error.message)
        }
        ServiceError::TransportClosed => "ended before it answered".to_owned(),
        ServiceError::TransportSend(error) => why_not_sent(&*error.error),
        ServiceError::Cancelled { .. } => "was told that the call is cancelled".to_owned(),
        error => error.to_string(),
    }
}

/// Counts a call for as long as it lasts.
struct UnderWay<'a>(&'a AtomicUsize);

impl<'a> UnderWay<'a> {
    fn new(calls: &'a AtomicUsize) -> Self {
        calls.fetch_add(1, Ordering::Relaxed);
        Self(calls)
    }
}

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A call under way, which the server is told of if it is given up, however that happens.
struct Abandoned(Option<RequestHandle<RoleClient>>);

impl Abandoned {
    fn new(handle: RequestHandle<RoleClient>) -> Self {
        Self(Some(handle))
    }

    async fn answer(&mut self) -> Result<ServerResult, ServiceError> {
        match &mut self.0 {
            Some(handle) => (&mut handle.rx)
                .await
                .unwrap_or(Err(ServiceError::TransportClosed)),
            None => std::future::pending().await,
        }
    }

    fn done(&mut self) {
        self.0 = None;
    }

    /// Tells the server, but does not wait for long: it may be what hangs.
    async fn cancel(&mut self, reason: &str) {
        if let Some(handle) = self.0.take() {
            let telling = handle.cancel(Some(reason.to_owned()));
            let told = tokio::spawn(async move { timeout(TO_CLOSE, telling).await });
            let _ = timeout(Duration::from_millis(100), told).await;
        }
    }
}

impl Drop for Abandoned {
    fn drop(&mut self) {
        if let Some(handle) = self.0.take()
            && let Ok(runtime) = tokio::runtime::Handle::try_current()
        {
            runtime.spawn(async move {
                let telling = handle.cancel(Some("nobody waits for it any more".to_owned()));
                let _ = timeout(TO_CLOSE, telling).await;
            });
        }
    }
}
