//! The servers: this one, and the least that delivers the same bytes with rmcp and with axum.

use std::{
    fmt,
    io::{BufRead, BufReader},
    net::SocketAddr,
    process::{Child, Command, Stdio},
    str::FromStr,
    sync::Arc,
};

use axum::{
    Router,
    routing::{get, post},
    serve::ListenerExt,
};
use foreword_sandbox::{NoSandboxes, SandboxConfig};
use foreword_server::{
    App, AppParts, Connections, ServerConfig, Skills, Workspaces, config::SessionMode,
    render::Surroundings,
};
use foreword_store::{Clock, StoreConfig, YamlStore};
use http::header::CONTENT_TYPE;
use rmcp::{
    ErrorData, RoleServer, ServerHandler,
    model::{
        ListToolsResult, PaginatedRequestParams, ServerCapabilities, ServerConfig as McpConfig,
        Tool,
    },
    service::RequestContext,
    transport::streamable_http_server::{
        StreamableHttpServerConfig, StreamableHttpService, session::never::NeverSessionManager,
    },
};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use super::chat;

/// The length of the prompt, in bytes.
const PROMPT: usize = 30 << 10;

/// Which server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Foreword,
    Rmcp,
    Axum,
    /// An API of a model, which answers at once.
    Upstream,
    /// Passes everything on to an upstream.
    Proxy,
}

impl fmt::Display for Kind {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Foreword => "foreword",
            Self::Rmcp => "rmcp",
            Self::Axum => "axum",
            Self::Upstream => "upstream",
            Self::Proxy => "proxy",
        })
    }
}

impl FromStr for Kind {
    type Err = String;

    fn from_str(word: &str) -> Result<Self, String> {
        [
            Self::Foreword,
            Self::Rmcp,
            Self::Axum,
            Self::Upstream,
            Self::Proxy,
        ]
        .into_iter()
        .find(|kind| kind.to_string() == word)
        .ok_or_else(|| format!("there is no server `{word}`"))
    }
}

/// A server in a process of its own, which ends with this value.
pub(crate) struct Server {
    pub(crate) kind: Kind,
    pub(crate) address: SocketAddr,
    child: Child,
}

impl Server {
    /// Starts this program again, as a server; it says on which port it listens.
    pub(crate) fn start(kind: Kind) -> Self {
        Self::start_with(kind, &[])
    }

    /// The same, which passes chat requests on.
    pub(crate) fn start_before(kind: Kind, upstream: SocketAddr) -> Self {
        Self::start_with(kind, &["--upstream".to_owned(), upstream.to_string()])
    }

    fn start_with(kind: Kind, arguments: &[String]) -> Self {
        let program = std::env::current_exe().expect("this program is somewhere");
        let mut child = Command::new(program)
            .args(["--serve", &kind.to_string()])
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("this program can be started again");
        let output = child.stdout.take().expect("the output is piped");
        let mut line = String::new();
        BufReader::new(output)
            .read_line(&mut line)
            .expect("the server says its address");
        Self {
            kind,
            address: line.trim().parse().expect("the server says its address"),
            child,
        }
    }

    /// What the process holds in memory.
    pub(crate) fn resident_mebibytes(&self) -> f64 {
        let path = format!("/proc/{}/status", self.child.id());
        let status = std::fs::read_to_string(path).expect("Linux tells about processes");
        let line = status.lines().find(|line| line.starts_with("VmRSS:"));
        let kibibytes = line.and_then(|line| line.split_whitespace().nth(1)?.parse::<f64>().ok());
        kibibytes.expect("the status names a size") / 1_024.0
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended by itself, which is what is wanted.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Serves until this process is ended.
pub(crate) fn serve(kind: Kind, upstream: Option<SocketAddr>) {
    let runtime = tokio::runtime::Runtime::new().expect("threads can be started");
    runtime.block_on(async {
        let listener = TcpListener::bind("127.0.0.1:0")
            .await
            .expect("a free port exists");
        println!(
            "{}",
            listener
                .local_addr()
                .expect("a bound socket has an address")
        );
        match kind {
            Kind::Foreword => serve_foreword(listener, upstream).await,
            Kind::Rmcp => serve_router(listener, bare_rmcp()).await,
            Kind::Axum => serve_router(listener, bare_axum()).await,
            Kind::Upstream => serve_router(listener, chat::upstream()).await,
            Kind::Proxy => {
                let upstream = upstream.expect("a proxy is before something");
                serve_router(listener, chat::proxy(upstream)).await;
            }
        }
    });
}

async fn serve_foreword(listener: TcpListener, upstream: Option<SocketAddr>) {
    let data = tempfile::tempdir().expect("a directory can be made");
    let folder = data.path();
    std::fs::write(folder.join("system_prompts.yaml"), library()).expect("a file can be written");
    let clock: Clock = Arc::new(jiff::Timestamp::now);
    let store = YamlStore::open(folder, &StoreConfig::default(), Arc::clone(&clock))
        .expect("the library is valid");
    let mut config = ServerConfig::default();
    config.session.mode = SessionMode::Lenient;
    config.chat.upstream.base_url = upstream.map(|address| format!("http://{address}/v1"));
    let workspaces = Workspaces::new(
        None,
        SandboxConfig::default().host_uid,
        &config,
        Arc::clone(&clock),
    );
    let app = App::new(AppParts {
        connections: Connections::none(Arc::clone(&clock)),
        skills: Skills::none(),
        sandboxes: Arc::new(NoSandboxes::wanted()),
        surroundings: Surroundings::without_workspace(),
        store: Arc::new(store),
        workspaces,
        config,
        clock,
        link_key: [7; 32],
    });
    foreword_server::serve(listener, app, CancellationToken::new()).await;
}

/// A library as people write them: a global prompt, eight sections, the guide last.
fn library() -> String {
    let sentence = "Answer in the language of the question, and \"quote\" what you cite. ";
    let global = sentence.repeat(3_000 / sentence.len());
    let content = sentence.repeat(3_300 / sentence.len());
    let section = |at: usize| {
        let heading = format!("## Section {at}\n\n        ");
        format!("      - {{id: section-{at}, content: '{heading}{content}'}}\n")
    };
    let sections = (0..8).map(section).collect::<Vec<_>>().concat();
    format!("global_prompt: '{global}'\nprofiles:\n  - id: default\n    sections:\n{sections}")
}

async fn serve_router(listener: TcpListener, router: Router) {
    let listener = listener.tap_io(|stream| {
        stream
            .set_nodelay(true)
            .expect("a fresh socket takes options");
    });
    axum::serve(listener, router)
        .await
        .expect("serving ends by a signal only");
}

/// Text of the same length and kind as the prompt.
fn constant_text() -> String {
    let sentence = "Answer in the language of the question, and \"quote\" what you cite. ";
    sentence.repeat(PROMPT / sentence.len())
}

fn bare_axum() -> Router {
    let text: &'static str = constant_text().leak();
    let answer = serde_json::json!({"jsonrpc": "2.0", "id": 1, "result": {"instructions": text}});
    let answer: &'static str = answer.to_string().leak();
    Router::new()
        .route(
            "/mcp",
            post(move || async move { ([(CONTENT_TYPE, "application/json")], answer) }),
        )
        .route("/system-prompt", get(move || async move { text }))
}

fn bare_rmcp() -> Router {
    let config = StreamableHttpServerConfig::default()
        .with_legacy_session_mode(false)
        .with_json_response(true);
    let text: &'static str = constant_text().leak();
    let factory = move || Ok(Constant { text });
    let service =
        StreamableHttpService::new(factory, Arc::<NeverSessionManager>::default(), config);
    Router::new().nest_service("/mcp", service)
}

/// What the documentation of rmcp shows: information with instructions, and one tool.
#[derive(Clone)]
struct Constant {
    text: &'static str,
}

impl ServerHandler for Constant {
    fn get_info(&self) -> McpConfig {
        McpConfig::new(ServerCapabilities::builder().enable_tools().build())
            .with_instructions(self.text)
    }

    async fn list_tools(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let schema =
            serde_json::json!({"type": "object", "properties": {}, "additionalProperties": false});
        let schema = schema.as_object().expect("this is an object").clone();
        let tool = Tool::new(
            "read_me",
            "Returns the instructions for this session in full.",
            schema,
        );
        Ok(ListToolsResult::with_all_items(vec![tool]))
    }
}
