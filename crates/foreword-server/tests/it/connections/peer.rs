//! An MCP server to connect to: rmcp's, on a free port, with tools that can change while it runs.

use std::{
    net::SocketAddr,
    sync::{Arc, Mutex},
    time::Duration,
};

use axum::{
    Router,
    extract::{Request, State},
    middleware::{Next, from_fn_with_state},
    response::Response,
};
use http::HeaderMap;
use rmcp::{
    ErrorData, RoleServer, ServerHandler,
    model::{
        CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, ErrorCode,
        JsonObject, ListToolsResult, PaginatedRequestParams, ProgressNotificationParam,
        ServerCapabilities, ServerConfig, Tool,
    },
    service::RequestContext,
    transport::streamable_http_server::{
        StreamableHttpServerConfig, StreamableHttpService, session::local::LocalSessionManager,
    },
};
use serde_json::{Value, json};
use tokio::{net::TcpListener, sync::Notify, task::JoinHandle};
use tokio_util::sync::CancellationToken;

/// A server that runs until it is dropped.
pub(crate) struct Peer {
    pub(crate) address: SocketAddr,
    seen: Arc<Seen>,
    serving: JoinHandle<()>,
    stopping: CancellationToken,
}

/// What the server has, and what was done to it.
#[derive(Default)]
struct Seen {
    tools: Mutex<Vec<Tool>>,
    /// Headers of each request, with the message's method.
    requests: Mutex<Vec<(String, HeaderMap)>>,
    cancelled: Notify,
    begun: Notify,
}

impl Peer {
    /// With tools of these names.
    pub(crate) async fn start(tools: &[&str]) -> Self {
        Self::start_at(SocketAddr::from(([127, 0, 0, 1], 0)), tools).await
    }

    /// The same at a certain address, where another one was.
    pub(crate) async fn start_at(address: SocketAddr, tools: &[&str]) -> Self {
        let listener = TcpListener::bind(address).await.unwrap();
        let seen = Arc::new(Seen::default());
        *seen.tools.lock().unwrap() = tools.iter().map(|name| tool(name)).collect();
        let stopping = CancellationToken::new();
        let address = listener.local_addr().unwrap();
        let serving = tokio::spawn(serve(listener, Arc::clone(&seen), stopping.clone()));
        Self {
            address,
            seen,
            serving,
            stopping,
        }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}/mcp", self.address)
    }

    /// Other tools from now on; whoever listens is not told.
    pub(crate) fn change(&self, tools: Vec<Tool>) {
        *self.seen.tools.lock().unwrap() = tools;
    }

    /// The headers of the last request with that method.
    pub(crate) fn headers_of(&self, method: &str) -> HeaderMap {
        let requests = self.seen.requests.lock().unwrap();
        let found = requests.iter().rev().find(|(known, _)| known == method);
        found
            .unwrap_or_else(|| panic!("no {method} came"))
            .1
            .clone()
    }

    /// Waits until a call of `wait` has begun.
    pub(crate) async fn call_begun(&self) {
        self.seen.begun.notified().await;
    }

    /// Waits until a call of `wait` was cancelled.
    pub(crate) async fn call_cancelled(&self) {
        self.seen.cancelled.notified().await;
    }

    /// Ends it, with all its connections.
    pub(crate) async fn stop(mut self) {
        self.stopping.cancel();
        self.serving.abort();
        let _ = (&mut self.serving).await;
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        self.stopping.cancel();
        self.serving.abort();
    }
}

/// A tool with one parameter.
pub(crate) fn tool(name: &str) -> Tool {
    let schema = json!({
        "type": "object",
        "properties": {"text": {"type": "string", "description": "What to say."}},
    });
    let Value::Object(schema) = schema else {
        unreachable!("it is written as an object");
    };
    Tool::new(name.to_owned(), format!("Does {name}."), Arc::new(schema))
}

async fn serve(listener: TcpListener, seen: Arc<Seen>, stopping: CancellationToken) {
    let handled = Arc::clone(&seen);
    let config = StreamableHttpServerConfig::default().with_cancellation_token(stopping);
    let service = StreamableHttpService::new(
        move || {
            Ok(Handler {
                seen: Arc::clone(&handled),
            })
        },
        Arc::new(LocalSessionManager::default()),
        config,
    );
    let router = Router::new()
        .route_service("/mcp", service)
        .layer(from_fn_with_state(seen, note));
    axum::serve(listener, router).await.unwrap();
}

async fn note(State(seen): State<Arc<Seen>>, request: Request, next: Next) -> Response {
    let (parts, body) = request.into_parts();
    let bytes = axum::body::to_bytes(body, 1 << 20).await.unwrap();
    let message: Value = serde_json::from_slice(&bytes).unwrap_or_default();
    let method = message["method"].as_str().unwrap_or_default().to_owned();
    seen.requests
        .lock()
        .unwrap()
        .push((method, parts.headers.clone()));
    next.run(Request::from_parts(parts, bytes.into())).await
}

struct Handler {
    seen: Arc<Seen>,
}

impl ServerHandler for Handler {
    fn get_info(&self) -> ServerConfig {
        let mut info = ServerConfig::new(ServerCapabilities::builder().enable_tools().build());
        info.instructions = Some("Words of the peer.".to_owned());
        info
    }

    async fn list_tools(
        &self,
        request: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        // Two a page, so that every list of more has several.
        let first = request.and_then(|request| request.cursor);
        let first: usize = first.map_or(0, |cursor| cursor.parse().unwrap());
        let tools = self.seen.tools.lock().unwrap();
        let page: Vec<Tool> = tools.iter().skip(first).take(2).cloned().collect();
        let next = first + page.len();
        let mut result = ListToolsResult::with_all_items(page);
        result.next_cursor = (next < tools.len()).then(|| next.to_string());
        Ok(result)
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let arguments = request.arguments.unwrap_or_default();
        match &*request.name {
            "refuse" => Err(ErrorData::new(
                ErrorCode(-32099),
                "not that one",
                Some(json!({"why": "so"})),
            )),
            "fail" => Ok(CallToolResult::error(vec![ContentBlock::text("it failed")]).into()),
            "wait" => {
                self.seen.begun.notify_one();
                context.ct.cancelled().await;
                self.seen.cancelled.notify_one();
                Ok(CallToolResult::success(Vec::new()).into())
            }
            "steps" => {
                if let Some(token) = context.meta.get_progress_token() {
                    for step in 1..=3 {
                        let step = ProgressNotificationParam::new(token.clone(), f64::from(step));
                        let _ = context.peer.notify_progress(step).await;
                        tokio::time::sleep(Duration::from_millis(1)).await;
                    }
                }
                Ok(echo(arguments).into())
            }
            _ => Ok(echo(arguments).into()),
        }
    }
}

/// Everything that a result can hold.
fn echo(arguments: JsonObject) -> CallToolResult {
    let mut result = CallToolResult::success(vec![
        ContentBlock::text("echo"),
        ContentBlock::image("aGVsbG8=", "image/png"),
    ]);
    result.structured_content = Some(Value::Object(arguments));
    result
}
