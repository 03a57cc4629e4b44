//! `/health`, `/readyz`, `/metrics`, and what is answered where there is no route.

use insta::assert_snapshot;

use crate::support::TestServer;

#[tokio::test]
async fn health_is_open_to_all() {
    let server = TestServer::with_keys();
    for path in ["/health", "/healthz"] {
        let response = server.get(path).header("host", "10.0.0.7:8081").await;
        assert_snapshot!(response.summary(), @r#"
        200
        {
          "status": "ok"
        }
        "#);
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
    assert_snapshot!(server.get("/metrics").await.summary_with(&["www-authenticate"]), @"");
}

#[tokio::test]
async fn a_path_without_a_route_is_not_found() {
    let server = TestServer::new();
    assert_snapshot!(server.get("/nowhere").await.summary(), @"");
}

#[tokio::test]
async fn a_method_that_a_path_does_not_take_is_told_those_that_it_takes() {
    let server = TestServer::new();
    let response = server.post("/metrics").await;
    assert_snapshot!(response.summary_with(&["allow"]), @"");
}
