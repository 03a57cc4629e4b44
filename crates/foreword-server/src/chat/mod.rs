//! Chat requests of clients that speak no MCP: the prompt is put into them, and the rest passes byte for byte.
//!
//! Deliberately absent: the routes (`api/chat`), and what a prompt is made of (`render`).

pub(crate) mod anthropic;
pub(crate) mod completion;
mod config;
pub(crate) mod errors;
mod marker;
mod object;
pub(crate) mod openai;
mod prompt;
pub(crate) mod request;
pub(crate) mod upstream;

use std::time::Duration;

use http::{Method, StatusCode};

pub use config::{AnthropicConfig, ChatConfig, SystemRole, UpstreamConfig};

pub(crate) use object::{Object, entries};
pub(crate) use prompt::ChatPrompt;
pub(crate) use request::{ChatRequest, Named};

/// How long an upstream may take to answer whoever only looks.
const TO_LOOK: Duration = Duration::from_secs(10);

/// An upstream that was asked for its models.
#[derive(Debug)]
pub struct Looked {
    /// The section of the settings that names it.
    pub setting: &'static str,
    /// The status of its answer, or why there is none.
    pub answer: Result<StatusCode, String>,
}

/// Asks each upstream for its models, as with the configured key.
pub async fn look(config: &ChatConfig) -> Vec<Looked> {
    let upstreams = upstream::Upstreams::new(config);
    let asked = [
        ("chat.upstream", upstreams.openai, "models"),
        ("chat.anthropic", upstreams.anthropic, "v1/models"),
    ];
    let mut looked = Vec::new();
    for (setting, upstream, path) in asked {
        let Some(upstream) = upstream else { continue };
        let headers = upstream.own_headers();
        let asking = upstream.ask(Method::GET, (path, None), headers, bytes::Bytes::new());
        let answer = match tokio::time::timeout(TO_LOOK, asking).await {
            Ok(Ok(answer)) => Ok(answer.status()),
            Ok(Err(error)) => Err(error.to_string()),
            Err(_) => Err(format!("it did not answer within {} s", TO_LOOK.as_secs())),
        };
        looked.push(Looked { setting, answer });
    }
    looked
}
