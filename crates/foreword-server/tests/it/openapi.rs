//! `/openapi.json` and `/docs`.

use std::{env, fs, path::Path};

use http::Method;
use insta::assert_snapshot;
use serde_json::Value;

use crate::support::TestServer;

/// The committed copy; set `FOREWORD_UPDATE_DOCS=1` to write it anew.
const COPY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/openapi.json");

async fn document() -> Value {
    TestServer::new().get("/openapi.json").await.json()
}

#[tokio::test]
async fn the_committed_copy_is_fresh() {
    let current = format!("{:#}\n", document().await);
    if env::var_os("FOREWORD_UPDATE_DOCS").is_some() {
        fs::create_dir_all(Path::new(COPY).parent().unwrap()).unwrap();
        fs::write(COPY, &current).unwrap();
    }
    let copy = fs::read_to_string(COPY).unwrap_or_default();
    assert!(
        copy == current,
        "docs/openapi.json is not what the server serves; run this test with FOREWORD_UPDATE_DOCS=1"
    );
}

#[tokio::test]
async fn every_operation_has_a_name_of_its_own() {
    let document = document().await;
    let mut names = Vec::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            names.push(format!(
                "{:<6} {path} {}",
                method.to_uppercase(),
                operation["operationId"].as_str().unwrap()
            ));
        }
    }
    assert_snapshot!(names.join("\n"), @r"
    GET    /api/prompts/profiles list_profiles
    POST   /api/prompts/profiles create_profile
    GET    /api/prompts/profiles/{id} get_profile
    PUT    /api/prompts/profiles/{id} replace_profile
    DELETE /api/prompts/profiles/{id} delete_profile
    PATCH  /api/prompts/profiles/{id} patch_profile
    POST   /api/prompts/profiles/{id}/default set_default_profile
    PUT    /api/prompts/profiles/{id}/sections/{section} put_place
    DELETE /api/prompts/profiles/{id}/sections/{section} remove_place
    PATCH  /api/prompts/profiles/{id}/sections/{section} patch_place
    PUT    /api/prompts/profiles/{id}/order order_places
    GET    /api/prompts/global get_global_prompt
    POST   /api/prompts/global/update update_global_prompt
    GET    /api/prompts/sections list_sections
    POST   /api/prompts/sections create_section
    GET    /api/prompts/sections/{id} get_section
    PUT    /api/prompts/sections/{id} replace_section
    DELETE /api/prompts/sections/{id} delete_section
    PATCH  /api/prompts/sections/{id} patch_section
    GET    /api/prompts/workspace-guide get_workspace_guide
    PUT    /api/prompts/workspace-guide replace_workspace_guide
    GET    /api/prompts/variables get_variables
    PUT    /api/prompts/variables replace_variables
    GET    /api/prompts/compose preview_prompt
    POST   /api/prompts/compose preview_given_prompt
    GET    /api/prompts/mcp-tools get_tools_prompt
    POST   /api/prompts/mcp-tools make_tools_prompt
    GET    /api/prompts/status get_status
    GET    /api/prompts/export export_library
    POST   /api/prompts/import import_library
    POST   /api/prompts/undo undo_edit
    GET    /api/prompts/events follow_changes
    GET    /system-prompt get_system_prompt
    POST   /mcp deliver
    GET    /mcp-info get_mcp_info
    DELETE /api/render-cache delete_render_cache
    GET    /api/skills get_skills
    GET    /skill-list get_skill_list
    POST   /v1/chat/completions create_completion
    GET    /v1/models list_models
    POST   /v1/messages create_message
    POST   /api/chat answer_message
    GET    /beta/litellm_prompt_management get_litellm_prompt
    PUT    /api/uploads/{chat_id}/{path} put_upload
    POST   /api/uploads/{chat_id}/{path} post_upload
    DELETE /api/uploads/{chat_id}/{path} delete_upload
    GET    /api/uploads/{chat_id}/list list_uploads
    GET    /api/uploads/{chat_id} list_uploads_of_chat
    GET    /api/uploads/{chat_id}/manifest get_manifest
    GET    /api/outputs/{chat_id} list_outputs
    GET    /files/{chat_id}/{path} get_file
    GET    /files/{chat_id}/archive get_archive
    GET    /preview/{chat_id} show_preview
    DELETE /api/chats/{chat_id} delete_chat
    GET    /health health
    GET    /readyz readyz
    GET    /metrics show_metrics
    GET    /openapi.json show_openapi
    GET    /docs show_docs
    GET    /healthz healthz
    POST   /mcp/c/{chat_id} deliver_to_chat
    ");
    let ids = |name: &String| name.rsplit(' ').next().unwrap().to_owned();
    let mut ids: Vec<String> = names.iter().map(ids).collect();
    ids.sort();
    let count = ids.len();
    ids.dedup();
    assert_eq!(ids.len(), count);
}

#[tokio::test]
async fn every_operation_of_the_document_is_served() {
    let server = TestServer::new();
    for (path, item) in document().await["paths"].as_object().unwrap() {
        let path = path
            .replace("{id}", "nobody")
            .replace("{section}", "nothing")
            .replace("{chat_id}", "c1");
        if path.ends_with("/events") {
            continue;
        }
        for method in item.as_object().unwrap().keys() {
            let method: Method = method.to_uppercase().parse().unwrap();
            let response = server.request(method.clone(), &path).await;
            assert_ne!(response.status, 405, "{method} {path}");
            if response.status == 404 {
                assert_ne!(
                    response.json()["code"],
                    "route_not_found",
                    "{method} {path}"
                );
            }
        }
    }
}

#[tokio::test]
async fn every_reference_of_the_document_leads_somewhere() {
    fn check(document: &Value, value: &Value) {
        match value {
            Value::Object(object) => {
                if let Some(reference) = object.get("$ref").and_then(Value::as_str) {
                    let pointer = reference.strip_prefix('#').unwrap();
                    assert!(document.pointer(pointer).is_some(), "{reference}");
                }
                object.values().for_each(|value| check(document, value));
            }
            Value::Array(values) => values.iter().for_each(|value| check(document, value)),
            _ => {}
        }
    }
    let document = document().await;
    check(&document, &document);
}

#[tokio::test]
async fn the_page_shows_every_operation_and_loads_nothing() {
    let server = TestServer::new();
    let response = server.get("/docs").await;
    assert_eq!(response.status, 200);
    let page = response.text();
    for item in document().await["paths"].as_object().unwrap().values() {
        for operation in item.as_object().unwrap().values() {
            let id = operation["operationId"].as_str().unwrap();
            assert!(page.contains(&format!("<article id=\"{id}\">")), "{id}");
        }
    }
    for loading in ["<script", "<link", "<img", "src=", "@import", "url(", "//"] {
        assert!(!page.contains(loading), "{loading}");
    }
    let policy = response.header("content-security-policy");
    assert!(
        policy.starts_with("default-src 'none'; style-src 'sha256-"),
        "{policy}"
    );
}

#[tokio::test]
async fn the_documentation_needs_no_key_and_is_the_same_whatever_is_kept_and_set() {
    let library = "global_prompt: Marked-text.\nprofiles:\n  - id: marked-profile\n";
    let server = TestServer::builder()
        .keys()
        .library(library)
        .config(|config| config.public_base_url = Some("https://marked.example".to_owned()))
        .start();
    let other = TestServer::new();
    for path in ["/docs", "/openapi.json"] {
        let response = server.get(path).await;
        assert_eq!(response.status, 200, "{path}");
        assert_eq!(response.body, other.get(path).await.body, "{path}");
        let text = response.text().to_lowercase();
        assert!(!text.contains("marked"), "{path}");
        let elsewhere = server.get(path).header("host", "evil.example").await;
        assert_eq!(elsewhere.status, 403, "{path}");
    }
}

#[tokio::test]
async fn the_root_leads_to_the_documentation() {
    let server = TestServer::with_keys();
    let response = server.get("/").await;
    assert_eq!(
        (response.status.as_u16(), response.header("location")),
        (307, "docs")
    );
    let elsewhere = server.get("/").header("host", "evil.example").await;
    assert_eq!(elsewhere.status, 403);
}
