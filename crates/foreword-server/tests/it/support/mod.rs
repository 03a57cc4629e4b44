//! A server to ask, in this process, and its answers in a form that reads well in a snapshot.

mod response;
mod troubled_store;

use std::{
    future::{Future, IntoFuture},
    pin::Pin,
    sync::{Arc, Mutex},
};

use axum::{Router, body::Body, response::Response};
use foreword_sandbox::{NoSandboxes, SandboxConfig, Sandboxes};
use foreword_server::{
    App, AppParts, Connections, ServerConfig, Skills, Workspaces,
    config::{KeyConfig, Role, Secret},
    connections::{ConnectionsSetup, Launch},
    render::Surroundings,
};
use foreword_store::{Clock, Store, StoreConfig, YamlStore};
use http::{HeaderValue, Method, Request, header};
use jiff::{SignedDuration, Timestamp};
use tempfile::TempDir;
use tokio::{net::TcpListener, task::JoinHandle};
use tokio_util::sync::CancellationToken;
use tower::ServiceExt;

pub(crate) use response::TestResponse;
pub(crate) use troubled_store::Trouble;
use troubled_store::TroubledStore;

/// The keys of servers that were made `with_keys`.
pub(crate) const API_KEY: &str = "test-api-key";
pub(crate) const ADMIN_KEY: &str = "test-admin-key";

/// The moment at which tests begin.
pub(crate) const START: &str = "2026-07-01T12:00:00Z";

/// The real router over a real store, with a clock that stands still.
pub(crate) struct TestServer {
    pub(crate) app: App,
    /// Where the library is kept, in `system_prompts.yaml`.
    pub(crate) data: TempDir,
    router: Router,
    now: Arc<Mutex<Timestamp>>,
}

/// What a server is to be like.
pub(crate) struct TestServerBuilder {
    library: Option<String>,
    config: ServerConfig,
    trouble: Option<Trouble>,
    without_files: bool,
    sandboxes: Option<Arc<dyn Sandboxes>>,
    workspace: bool,
    data: Option<TempDir>,
}

impl TestServer {
    /// Without keys, with the default configuration and the built-in library.
    pub(crate) fn new() -> Self {
        Self::builder().start()
    }

    /// With an API key and an admin key.
    pub(crate) fn with_keys() -> Self {
        Self::builder().keys().start()
    }

    pub(crate) fn builder() -> TestServerBuilder {
        TestServerBuilder {
            library: None,
            config: ServerConfig::default(),
            trouble: None,
            without_files: false,
            sandboxes: None,
            workspace: false,
            data: None,
        }
    }

    pub(crate) fn get(&self, path: &str) -> TestRequest {
        self.request(Method::GET, path)
    }

    pub(crate) fn post(&self, path: &str) -> TestRequest {
        self.request(Method::POST, path)
    }

    pub(crate) fn put(&self, path: &str) -> TestRequest {
        self.request(Method::PUT, path)
    }

    pub(crate) fn patch(&self, path: &str) -> TestRequest {
        self.request(Method::PATCH, path)
    }

    pub(crate) fn delete(&self, path: &str) -> TestRequest {
        self.request(Method::DELETE, path)
    }

    pub(crate) fn request(&self, method: Method, path: &str) -> TestRequest {
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header(header::HOST, "localhost:8081")
            .body(Body::empty())
            .expect("tests ask for valid paths");
        TestRequest {
            router: self.router.clone(),
            request,
        }
    }

    /// Another server on the same data, after this one.
    pub(crate) fn restarted(self, mut builder: TestServerBuilder) -> Self {
        builder.data = Some(self.data);
        builder.start()
    }

    /// Lets time pass.
    pub(crate) fn advance(&self, duration: SignedDuration) {
        let mut now = self.now.lock().unwrap();
        *now = now.checked_add(duration).unwrap();
    }

    /// Serves real connections on a free port.
    pub(crate) async fn listen(&self) -> Listening {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let shutdown = CancellationToken::new();
        let served = tokio::spawn(foreword_server::serve(
            listener,
            self.app.clone(),
            shutdown.clone(),
        ));
        Listening {
            address,
            shutdown,
            served,
        }
    }
}

/// A server with a socket.
pub(crate) struct Listening {
    pub(crate) address: std::net::SocketAddr,
    /// Stops it.
    pub(crate) shutdown: CancellationToken,
    /// Ends when it has stopped.
    pub(crate) served: JoinHandle<()>,
}

impl TestServerBuilder {
    /// The library as YAML.
    pub(crate) fn library(mut self, yaml: &str) -> Self {
        self.library = Some(yaml.to_owned());
        self
    }

    pub(crate) fn config(mut self, adjust: impl FnOnce(&mut ServerConfig)) -> Self {
        adjust(&mut self.config);
        self
    }

    /// Without workspaces.
    pub(crate) fn without_files(mut self) -> Self {
        self.without_files = true;
        self
    }

    /// With these in the place of none.
    pub(crate) fn sandboxes(mut self, sandboxes: Arc<dyn Sandboxes>) -> Self {
        self.sandboxes = Some(sandboxes);
        self
    }

    /// With a workspace in what is said, if not in what is there.
    pub(crate) fn workspace(mut self) -> Self {
        self.workspace = true;
        self
    }

    /// On this data directory.
    pub(crate) fn data(mut self, data: TempDir) -> Self {
        self.data = Some(data);
        self
    }

    /// With a store that has trouble.
    pub(crate) fn trouble(mut self, trouble: Trouble) -> Self {
        self.trouble = Some(trouble);
        self
    }

    /// With [`API_KEY`] and [`ADMIN_KEY`].
    pub(crate) fn keys(self) -> Self {
        self.key(API_KEY, Role::Api).key(ADMIN_KEY, Role::Admin)
    }

    pub(crate) fn key(mut self, key: &str, role: Role) -> Self {
        self.config.auth.keys.push(KeyConfig {
            name: format!("{role:?}").to_lowercase(),
            key: Secret::new(key),
            role,
            instructions: None,
        });
        self
    }

    pub(crate) fn start(self) -> TestServer {
        foreword_server::choose_tls();
        let now = Arc::new(Mutex::new(START.parse().unwrap()));
        let clock: Clock = {
            let now = Arc::clone(&now);
            Arc::new(move || *now.lock().unwrap())
        };
        let data = self.data.unwrap_or_else(|| tempfile::tempdir().unwrap());
        if let Some(library) = &self.library {
            std::fs::write(data.path().join("system_prompts.yaml"), library).unwrap();
        }
        let store = YamlStore::open(data.path(), &StoreConfig::default(), Arc::clone(&clock));
        let mut store: Arc<dyn Store> = Arc::new(store.unwrap());
        if let Some(trouble) = self.trouble {
            let inner = store;
            store = Arc::new(TroubledStore { inner, trouble });
        }
        let files = (!self.without_files).then(|| data.path().join("workspaces"));
        let workspaces = Workspaces::new(
            files,
            SandboxConfig::default().host_uid,
            &self.config,
            Arc::clone(&clock),
        );
        let connections = Connections::start(ConnectionsSetup {
            configured: self.config.connections.clone(),
            file: None,
            tools_prompt: self.config.tools_prompt.clone(),
            launch: Launch::default(),
            variables: Arc::new(|name| (name == "SET").then(|| "from the environment".to_owned())),
            clock: Arc::clone(&clock),
        });
        let (skills, _) = Skills::open(&self.config.skills, data.path(), &workspaces);
        let app = App::new(AppParts {
            connections,
            skills,
            sandboxes: self
                .sandboxes
                .unwrap_or_else(|| Arc::new(NoSandboxes::wanted())),
            surroundings: if self.workspace {
                Surroundings::with_workspace(&SandboxConfig::default(), &[])
            } else {
                Surroundings::without_workspace()
            },
            store,
            workspaces,
            config: self.config,
            clock,
            link_key: [7; 32],
        });
        TestServer {
            router: foreword_server::router(app.clone()),
            app,
            data,
            now,
        }
    }
}

/// A request that is sent when it is awaited.
#[must_use = "it is sent when it is awaited"]
pub(crate) struct TestRequest {
    router: Router,
    request: Request<Body>,
}

impl TestRequest {
    pub(crate) fn header<V>(mut self, name: &'static str, value: V) -> Self
    where
        V: TryInto<HeaderValue, Error: std::fmt::Debug>,
    {
        let value = value.try_into().unwrap();
        self.request.headers_mut().insert(name, value);
        self
    }

    pub(crate) fn key(self, key: &str) -> Self {
        self.header("authorization", format!("Bearer {key}"))
    }

    pub(crate) fn api(self) -> Self {
        self.key(API_KEY)
    }

    pub(crate) fn admin(self) -> Self {
        self.key(ADMIN_KEY)
    }

    #[expect(
        clippy::needless_pass_by_value,
        reason = "`json!` makes values that nobody needs afterwards"
    )]
    pub(crate) fn json(self, body: serde_json::Value) -> Self {
        self.header("content-type", "application/json")
            .body(body.to_string())
    }

    /// Sends JSON as it is written.
    pub(crate) fn sends(self, json: impl Into<Body>) -> Self {
        self.header("content-type", "application/json").body(json)
    }

    pub(crate) fn body(mut self, body: impl Into<Body>) -> Self {
        *self.request.body_mut() = body.into();
        self
    }

    /// Sends it, without reading the answer's body.
    pub(crate) async fn response(self) -> Response<Body> {
        match self.router.oneshot(self.request).await {
            Ok(response) => response,
            Err(never) => match never {},
        }
    }
}

impl IntoFuture for TestRequest {
    type Output = TestResponse;
    type IntoFuture = Pin<Box<dyn Future<Output = TestResponse> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move { TestResponse::read(self.response().await).await })
    }
}
