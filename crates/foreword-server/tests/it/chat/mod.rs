//! Chat endpoints: what reaches the upstream, what comes back, and what happens where there is trouble.

mod anthropic;
mod openai;
mod trouble;
mod turn;
mod upstream;

use foreword_server::{ServerConfig, config::Secret};

use crate::support::{TestServer, TestServerBuilder};
use upstream::Upstream;

const LIBRARY: &str = "\
global_prompt: Be kind.
variables: {company: Example}
profiles:
  - id: support
    is_default: true
    sections: [{id: role, content: 'You help {user_email} at {company}.'}]
  - id: developer
    sections: [{id: role, content: You write code.}]
";

fn passing_on(upstream: &Upstream) -> TestServerBuilder {
    with(upstream, |_| {})
}

fn with(upstream: &Upstream, adjust: impl FnOnce(&mut ServerConfig)) -> TestServerBuilder {
    TestServer::builder().library(LIBRARY).config(|config| {
        config.chat.upstream.base_url = Some(upstream.url("/v1/"));
        config.chat.upstream.api_key = Some(Secret::new("of-the-upstream"));
        config.chat.anthropic.base_url = Some(upstream.url(""));
        config.chat.anthropic.api_key = Some(Secret::new("of-the-other"));
        adjust(config);
    })
}

/// The text that ends with the mark, without it.
fn unmarked<'a>(text: &'a str, revision: &str) -> &'a str {
    text.strip_suffix(&format!("\n<!-- foreword {revision} -->"))
        .unwrap_or_else(|| panic!("no mark of {revision} in {text}"))
}
