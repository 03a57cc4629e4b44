//! `/health`, `/readyz`, `/metrics`, and what is answered where there is no route.

use insta::assert_snapshot;

use crate::support::TestServer;

#[tokio::test]
async fn health_is_open_to_all() {
    let server = TestServer::with_keys();
    for path in ["/health", "/healthz"] {
        let response = server.get(path).header("host", "10.0.0.7:8081").await;
        assert_eq!(response.summary(), "200\n{\n  \"status\": \"ok\"\n}");
    }
}

#[tokio::test]
async fn readiness_names_components_to_those_with_a_key() {
    let server = TestServer::with_keys();
    assert_snapshot!(server.get("/readyz").await.summary(), @r#"
    200
    {
      "status": "ok"
    }
    "#);
    assert_snapshot!(server.get("/readyz").api().await.summary(), @r#"
    200
    {
      "status": "ok",
      "components": [
        {
          "name": "library",
          "status": "ok"
        }
      ]
    }
    "#);
}

#[tokio::test]
async fn metrics_need_a_key() {
    let server = TestServer::with_keys();
    assert_snapshot!(server.get("/metrics").await.summary_with(&["www-authenticate"]), @r"
    401 key_required: this needs a key: send it as `Authorization: Bearer …`, `X-Foreword-Key` or `x-api-key`
    www-authenticate: Bearer
    ");
}

#[tokio::test]
async fn a_path_without_a_route_is_not_found() {
    let server = TestServer::new();
    assert_snapshot!(server.get("/nowhere").await.summary(), @"404 route_not_found: there is nothing at this path; `/openapi.json` lists what there is");
}

#[tokio::test]
async fn a_method_that_a_path_does_not_take_is_told_those_that_it_takes() {
    let server = TestServer::new();
    let response = server.post("/metrics").await;
    assert_snapshot!(response.summary_with(&["allow"]), @r"
    405 method_not_allowed: this path does not take this method; the header `Allow` lists those that it takes
    allow: GET,HEAD
    ");
}
