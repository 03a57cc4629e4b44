//! Who may call: keys and roles, host names and origins.

use foreword_server::config::{Form, KeyConfig, Role, Secret};
use http::Method;
use insta::assert_snapshot;

use crate::support::{ADMIN_KEY, API_KEY, TestServer};

#[tokio::test]
async fn without_keys_everybody_is_an_administrator() {
    let server = TestServer::new();
    assert_eq!(server.get("/system-prompt").await.status, 200);
    assert_eq!(server.delete("/api/render-cache").await.status, 204);
}

#[tokio::test]
async fn a_key_is_asked_for_on_every_route_but_the_probes() {
    let server = TestServer::with_keys();
    let routes = [
        (Method::GET, "/metrics"),
        (Method::GET, "/system-prompt"),
        (Method::GET, "/mcp-info"),
        (Method::POST, "/mcp"),
        (Method::POST, "/mcp/"),
        (Method::POST, "/mcp/c/someone-elses-chat"),
        (Method::DELETE, "/api/render-cache"),
    ];
    for (method, path) in routes {
        let response = server.request(method, path).await;
        assert_eq!(
            response.summary_with(&["www-authenticate"]),
            "401 key_required: this needs a key: send it as `Authorization: Bearer …`, `X-Foreword-Key` or \
             `x-api-key`\nwww-authenticate: Bearer",
            "{path}"
        );
    }
}

#[tokio::test]
async fn a_key_is_taken_from_any_of_three_headers() {
    let server = TestServer::with_keys();
    let ways = [
        ("authorization", format!("Bearer {API_KEY}")),
        ("authorization", format!("bearer {API_KEY}")),
        ("authorization", format!("BEARER   {API_KEY} ")),
        ("x-foreword-key", API_KEY.to_owned()),
        ("x-api-key", API_KEY.to_owned()),
    ];
    for (name, value) in ways {
        let response = server.get("/mcp-info").header(name, value.as_str()).await;
        assert_eq!(response.status, 200, "{name}: {value}");
    }
    let behind_a_proxy = server
        .get("/mcp-info")
        .header("authorization", "Basic cHJveHk6cHJveHk=")
        .header("x-foreword-key", API_KEY);
    assert_eq!(behind_a_proxy.await.status, 200);
}

#[tokio::test]
async fn fault_25_only_the_whole_key_opens() {
    let server = TestServer::with_keys();
    let wrong = [
        "",
        "t",
        &API_KEY[..API_KEY.len() - 1],
        &format!("{API_KEY}x"),
        &API_KEY.to_uppercase(),
        "test-api-key,test-admin-key",
    ];
    for key in wrong {
        let response = server.get("/mcp-info").key(key).await;
        assert_eq!(response.status, 401, "{key:?}");
        let response = server.get("/mcp-info").header("x-api-key", key).await;
        assert_eq!(response.status, 401, "{key:?}");
    }
    assert_snapshot!(
        server.get("/mcp-info").key("wrong").await.summary(),
        @"401 key_not_valid: the key is not valid here"
    );
    let in_another_scheme = server
        .get("/mcp-info")
        .header("authorization", format!("Basic {API_KEY}"));
    assert_eq!(in_another_scheme.await.status, 401);
    let without_scheme = server.get("/mcp-info").header("authorization", API_KEY);
    assert_eq!(without_scheme.await.status, 401);
}

#[tokio::test]
async fn fault_25_an_empty_key_is_no_key() {
    let server = TestServer::builder()
        .key("", Role::Api)
        .key("  ", Role::Admin)
        .key("real", Role::Api)
        .start();
    assert_eq!(server.get("/mcp-info").key("").await.status, 401);
    assert_eq!(
        server.get("/mcp-info").header("x-api-key", "").await.status,
        401
    );
    assert_eq!(server.get("/mcp-info").key("real").await.status, 200);
}

#[tokio::test]
async fn the_admin_key_passes_everywhere_and_the_api_key_does_not() {
    let server = TestServer::with_keys();
    assert_eq!(server.get("/mcp-info").key(ADMIN_KEY).await.status, 200);
    assert_eq!(server.delete("/api/render-cache").admin().await.status, 204);
    assert_snapshot!(
        server.delete("/api/render-cache").api().await.summary(),
        @"403 admin_required: this needs the admin key"
    );
}

#[tokio::test]
async fn where_there_is_no_admin_key_the_api_key_is_one() {
    let server = TestServer::builder().key(API_KEY, Role::Api).start();
    assert_eq!(server.delete("/api/render-cache").api().await.status, 204);
}

#[tokio::test]
async fn a_value_that_is_listed_twice_opens_what_the_larger_role_opens() {
    let server = TestServer::builder()
        .key("both", Role::Api)
        .key("both", Role::Admin)
        .start();
    assert_eq!(
        server.delete("/api/render-cache").key("both").await.status,
        204
    );
}

#[tokio::test]
async fn fault_42_requests_without_a_key_leave_nothing_behind() {
    let server = TestServer::with_keys();
    for chat in 0..50 {
        let response = server
            .get("/system-prompt")
            .header("x-chat-id", format!("invented-{chat}"))
            .await;
        assert_eq!(response.status, 401);
    }
    let metrics = server.get("/metrics").api().await;
    assert!(!metrics.text().contains("foreword_renders_total{"));
    assert!(!metrics.text().contains("invented"));
}

#[tokio::test]
async fn a_key_may_ask_for_a_form_of_its_own() {
    let server = TestServer::builder()
        .config(|config| {
            config.auth.keys.push(KeyConfig {
                name: "gateway".to_owned(),
                key: Secret::new("gateway-key"),
                role: Role::Api,
                instructions: Some(Form::Hint),
            });
        })
        .key(API_KEY, Role::Api)
        .start();
    let instructions = async |key: &str| {
        let response = server
            .post("/mcp")
            .key(key)
            .header("accept", "application/json")
            .json(initialize())
            .await;
        response.json()["result"]["instructions"]
            .as_str()
            .unwrap()
            .encode_utf16()
            .count()
    };
    assert!(instructions("gateway-key").await <= 512);
    assert!(instructions(API_KEY).await > 512);
}

fn initialize() -> serde_json::Value {
    serde_json::json!({
        "jsonrpc": "2.0",
        "id": 1,
        "method": "initialize",
        "params": {
            "protocolVersion": "2025-11-25",
            "capabilities": {},
            "clientInfo": {"name": "test", "version": "1"},
        },
    })
}

#[tokio::test]
async fn a_request_for_another_host_is_refused() {
    let server = TestServer::builder()
        .config(|config| {
            config.public_base_url = Some("https://Prompts.example/base".to_owned());
            config.http.allowed_hosts = vec!["foreword".to_owned(), "gateway:9000".to_owned()];
        })
        .start();
    let allowed = [
        "localhost",
        "LOCALHOST:1",
        "localhost.:8081",
        "127.0.0.1:8081",
        "127.9.9.9",
        "[::1]:8081",
        "prompts.example",
        "prompts.example:444",
        "foreword:8081",
        "gateway:9000",
    ];
    for host in allowed {
        let response = server.get("/mcp-info").header("host", host).await;
        assert_eq!(response.status, 200, "{host}");
    }
    let refused = [
        "evil.example",
        "localhost.evil.example",
        "evil.example:8081",
        "192.168.0.1",
        "[::2]:8081",
        "gateway",
        "gateway:9001",
        "user@localhost",
        "local host",
        "",
    ];
    for host in refused {
        let response = server.get("/mcp-info").header("host", host).await;
        assert_eq!(response.status, 403, "{host}");
    }
    assert_snapshot!(
        server.get("/nowhere").header("host", "evil.example").await.summary(),
        @"403 host_not_allowed: this server is not known under the name in `Host`; the operator can name it in `http.allowed_hosts` or `public_base_url`"
    );
    assert_snapshot!(server.get("http://evil.example/mcp-info").await.summary(), @"403 host_not_allowed: this server is not known under the name in `Host`; the operator can name it in `http.allowed_hosts` or `public_base_url`");
    assert_eq!(
        server
            .get("/health")
            .header("host", "evil.example")
            .await
            .status,
        200
    );
    assert_eq!(
        server
            .get("/metrics")
            .header("host", "10.1.2.3:8081")
            .await
            .status,
        200
    );
}

#[tokio::test]
async fn the_host_is_checked_before_the_key_and_the_method() {
    let server = TestServer::with_keys();
    for path in ["/mcp-info", "/nowhere"] {
        let response = server.put(path).header("host", "evil.example").await;
        assert_eq!(response.status, 403, "{path}");
    }
}

#[tokio::test]
async fn pages_of_other_origins_are_refused() {
    let server = TestServer::builder()
        .config(|config| {
            config.public_base_url = Some("https://prompts.example".to_owned());
            config.http.cors_origins = vec!["app://desktop".to_owned()];
        })
        .start();
    for origin in [
        "http://localhost:3000",
        "https://prompts.example",
        "app://desktop",
    ] {
        let response = server.get("/mcp-info").header("origin", origin).await;
        assert_eq!(response.status, 200, "{origin}");
    }
    for origin in [
        "null",
        "https://evil.example",
        "http://localhost.evil.example",
        "app://other",
        "file://",
        "localhost",
    ] {
        let response = server.get("/mcp-info").header("origin", origin).await;
        assert_eq!(response.status, 403, "{origin}");
    }
    assert_snapshot!(server.get("/mcp-info").header("origin", "null").await.summary(), @"403 origin_not_allowed: pages of this origin may not call; the operator can name it in `http.cors_origins`");
}

#[tokio::test]
async fn cors_is_off_unless_origins_are_named() {
    let preflight = |server: &TestServer| {
        server
            .request(Method::OPTIONS, "/mcp")
            .header("origin", "http://localhost:3000")
            .header("access-control-request-method", "POST")
            .header("access-control-request-headers", "x-chat-id")
    };
    let names = [
        "access-control-allow-origin",
        "access-control-allow-methods",
        "access-control-allow-headers",
        "access-control-expose-headers",
        "allow",
    ];
    let off = TestServer::with_keys();
    assert_snapshot!(preflight(&off).await.summary_with(&names), @r"
    405 method_not_allowed: this is the MCP endpoint (Streamable HTTP): MCP clients send it JSON-RPC messages by `POST`, and there is nothing to get; `/mcp-info` describes it, `/docs` describes the other routes
    allow: POST
    ");
    let on = TestServer::builder()
        .keys()
        .config(|config| config.http.cors_origins = vec!["http://localhost:3000".to_owned()])
        .start();
    assert_snapshot!(preflight(&on).await.summary_with(&names), @r"
    200
    access-control-allow-origin: http://localhost:3000
    access-control-allow-methods: GET,HEAD,POST,PUT,PATCH,DELETE
    access-control-allow-headers: x-chat-id
    allow: POST
    ");
    let other = preflight(&on)
        .header("origin", "http://localhost:4000")
        .await;
    assert_snapshot!(other.summary_with(&names), @r"
    200
    access-control-allow-methods: GET,HEAD,POST,PUT,PATCH,DELETE
    access-control-allow-headers: x-chat-id
    allow: POST
    ");
    let refused = on
        .get("/mcp-info")
        .header("origin", "http://localhost:3000")
        .await;
    assert_snapshot!(refused.summary_with(&names), @r"
    401 key_required: this needs a key: send it as `Authorization: Bearer …`, `X-Foreword-Key` or `x-api-key`
    access-control-allow-origin: http://localhost:3000
    access-control-expose-headers: etag,location,mcp-protocol-version,x-library-revision,x-profile-id,x-prompt-revision,x-request-id
    ");
}
