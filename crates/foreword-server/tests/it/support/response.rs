//! An answer, read to its end.

use std::fmt::Write;

use axum::{body::Body, response::Response};
use bytes::Bytes;
use http::{HeaderMap, StatusCode};
use http_body_util::BodyExt;
use serde_json::Value;

pub(crate) struct TestResponse {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

impl TestResponse {
    pub(crate) async fn read(response: Response<Body>) -> Self {
        let (parts, body) = response.into_parts();
        Self {
            status: parts.status,
            headers: parts.headers,
            body: body.collect().await.unwrap().to_bytes(),
        }
    }

    pub(crate) fn text(&self) -> &str {
        std::str::from_utf8(&self.body).unwrap()
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap()
    }

    /// The value of a header; empty where there is none.
    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers
            .get(name)
            .map_or("", |value| value.to_str().unwrap())
    }

    /// The answer for a snapshot.
    ///
    /// A problem is its status, code and detail, with a line per fault and further member; JSON is indented; a text is
    /// itself.
    pub(crate) fn summary(&self) -> String {
        let status = self.status.as_u16();
        let content_type = self.header("content-type");
        if self.body.is_empty() {
            return status.to_string();
        }
        if content_type == "application/problem+json" {
            return format!("{status} {}", problem(&self.json()));
        }
        if content_type.starts_with("application/json") {
            return format!("{status}\n{:#}", self.json());
        }
        format!("{status} {content_type}\n{}", self.text())
    }

    /// The answer for a snapshot, with these headers where they are set.
    pub(crate) fn summary_with(&self, headers: &[&str]) -> String {
        let mut summary = self.summary();
        for name in headers {
            for value in self.headers.get_all(*name) {
                write!(summary, "\n{name}: {}", value.to_str().unwrap()).unwrap();
            }
        }
        summary
    }
}

fn problem(problem: &Value) -> String {
    let text = |name: &str| problem[name].as_str().unwrap();
    let mut summary = format!("{}: {}", text("code"), text("detail"));
    for fault in problem["errors"].as_array().into_iter().flatten() {
        let (pointer, detail) = (&fault["pointer"], &fault["detail"]);
        write!(summary, "\n  {} {}", pointer, detail.as_str().unwrap()).unwrap();
    }
    let known = ["type", "title", "status", "detail", "code", "errors"];
    for (name, value) in problem.as_object().unwrap() {
        if !known.contains(&name.as_str()) {
            write!(summary, "\n  {name}: {value}").unwrap();
        }
    }
    summary
}
