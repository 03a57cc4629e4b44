//! `/api/prompts`, over a real YAML store.

mod compose;
mod conventions;
mod editing;
mod events;
mod library;
mod places;
mod profiles;
mod sections;
mod texts;
mod tools;

use std::fs;

use crate::support::TestServer;

/// A library with everything in it that the routes show: comments, shared and inline sections, the short form.
const LIBRARY: &str = "\
# The house library.
global_prompt:
  content: |
    Be kind to {company}'s users.
  enabled: true

variables:
  company: Example Ltd

sections:
  - id: safety # reviewed
    name: Safety
    type: constraints
    content: Never print secrets.
    description: Ask legal first
  - {id: tone, content: \"Be brief.\"}

profiles:
  - id: default
    name: Default Assistant
    sections:
      - id: identity
        type: persona
        content: You are a helpful assistant.
        order: 5
      - use: safety
        enabled: false
        order: 10
        priority: 3
    section_ids: [tone]
  # For people who write code.
  - id: developer
    name: Developer
    description: Writes and reviews code
    tools_prompt: false
    sections:
      - id: role
        content: |
          You are a senior engineer
          in chat {chat_id}.
";

/// A server without keys over [`LIBRARY`].
fn server() -> TestServer {
    TestServer::builder().library(LIBRARY).start()
}

impl TestServer {
    /// The library's file.
    fn file(&self) -> String {
        fs::read_to_string(self.data.path().join("system_prompts.yaml")).unwrap()
    }

    /// What changed in the library's file: removed and added lines.
    fn difference_to(&self, before: &str) -> String {
        let after = self.file();
        let lines = similar::TextDiff::from_lines(before, &after);
        let changed: Vec<String> = lines
            .iter_all_changes()
            .filter(|change| change.tag() != similar::ChangeTag::Equal)
            .map(|change| format!("{}{change}", change.tag()))
            .collect();
        changed.concat()
    }

    /// The entity tag of what is at `path`.
    async fn tag(&self, path: &str) -> String {
        self.get(path).await.header("etag").to_owned()
    }
}
