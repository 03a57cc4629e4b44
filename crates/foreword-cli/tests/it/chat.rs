//! A chat whose tools a test calls, over MCP, in a real sandbox of the real binary.

use std::time::Duration;

use reqwest::blocking::{Client, Response};
use serde_json::{Value, json};

use crate::support::{Place, Server};

/// A server with the library's simplest prompt, and a chat.
pub(crate) struct Chat<'a> {
    /// The MCP endpoint.
    pub(crate) url: &'a str,
    pub(crate) id: &'a str,
}

/// What a tool answered.
pub(crate) struct Answer {
    pub(crate) text: String,
    pub(crate) is_error: bool,
    pub(crate) content: Value,
}

impl std::fmt::Display for Answer {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mark = if self.is_error { "[isError] " } else { "" };
        write!(formatter, "{mark}{}", self.text)
    }
}

/// The answer to a message: JSON, or the last event of a stream if it took long.
pub(crate) fn read(response: Response) -> Value {
    let is_stream = response.headers()["content-type"] == "text/event-stream";
    let text = response.text().unwrap();
    let json = if is_stream {
        text.lines()
            .filter_map(|line| line.strip_prefix("data: "))
            .next_back()
            .unwrap_or_default()
    } else {
        &text
    };
    serde_json::from_str(json).unwrap_or_else(|error| panic!("{error}: {text}"))
}

pub(crate) fn server() -> (Place, Server) {
    let place = Place::new();
    place.write("data/system_prompts.yaml", "global_prompt: Be kind.\n");
    let server = place.serve(&["--sandbox", "namespace"]);
    (place, server)
}

impl Chat<'_> {
    #[expect(
        clippy::needless_pass_by_value,
        reason = "calls read better with `json!` alone"
    )]
    pub(crate) fn call(&self, tool: &str, arguments: Value) -> Answer {
        self.call_as(tool, &arguments, &[])
    }

    pub(crate) fn call_as(
        &self,
        tool: &str,
        arguments: &Value,
        headers: &[(&str, &str)],
    ) -> Answer {
        let message = json!({
            "jsonrpc": "2.0", "id": 1, "method": "tools/call",
            "params": { "name": tool, "arguments": arguments },
        });
        let mut request = Client::builder()
            .timeout(Duration::from_mins(2))
            .build()
            .unwrap()
            .post(self.url)
            .header("accept", "application/json, text/event-stream");
        if !self.id.is_empty() {
            request = request.header("x-chat-id", self.id);
        }
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let response = request.json(&message).send().unwrap();
        let answer = read(response);
        let result = &answer["result"];
        let content = result["content"].clone();
        let texts = content.as_array().unwrap_or_else(|| panic!("{answer}"));
        let texts: Vec<&str> = texts
            .iter()
            .filter_map(|block| block["text"].as_str())
            .collect();
        Answer {
            text: texts.join("\n---\n"),
            is_error: result["isError"] == true,
            content,
        }
    }

    pub(crate) fn bash(&self, command: &str) -> String {
        self.call("bash_tool", json!({ "command": command }))
            .to_string()
    }

    pub(crate) fn view(&self, path: &str) -> String {
        self.call("view", json!({ "path": path })).to_string()
    }
}
