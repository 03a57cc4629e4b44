//! What a completion says, for callers who want its text and nothing else; whole, or piece by piece.

use std::time::Duration;

use bytes::{BufMut, BytesMut};
use foreword_compose::one_line;
use http::StatusCode;
use serde::{Deserialize, de::IgnoredAny};
use serde_json::value::RawValue;

use super::upstream::{MAX_WHOLE, UpstreamError, next_piece};

/// The longest event of an upstream that is read, in bytes.
const MAX_EVENT: usize = 1 << 20;

/// How much of an upstream's error is repeated, in characters.
const MAX_SAID: usize = 500;

/// What a completion cost, as the upstream counts.
pub(crate) type Usage = Box<RawValue>;

/// As much of a completion, or of an event of one, as is read.
#[derive(Deserialize)]
struct Completion<'a> {
    choices: Option<Vec<Choice>>,
    #[serde(borrow)]
    usage: Option<&'a RawValue>,
    error: Option<Failure>,
}

#[derive(Deserialize)]
struct Choice {
    #[serde(default)]
    index: u64,
    message: Option<Said>,
    delta: Option<Said>,
}

#[derive(Deserialize)]
struct Said {
    content: Option<Content>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Content {
    Text(String),
    Other(IgnoredAny),
}

#[derive(Deserialize)]
struct Failure {
    message: Option<String>,
}

impl Completion<'_> {
    fn text(&mut self) -> Option<String> {
        // Of several answers the first one.
        let mut choices = self.choices.take()?.into_iter();
        let choice = choices.find(|choice| choice.index == 0)?;
        match choice.message.or(choice.delta)?.content? {
            Content::Text(text) => Some(text),
            Content::Other(_) => None,
        }
    }

    fn usage(&self) -> Option<Usage> {
        let usage = self.usage.filter(|usage| usage.get() != "null");
        usage.map(ToOwned::to_owned)
    }
}

/// The text of a whole completion, and what it cost; none where it is none.
pub(crate) fn read(whole: &[u8]) -> Option<(String, Option<Usage>)> {
    let mut completion: Completion<'_> = serde_json::from_slice(whole).ok()?;
    let usage = completion.usage();
    Some((completion.text()?, usage))
}

/// What an upstream says of its refusal.
pub(crate) fn read_refusal(status: StatusCode, body: &[u8]) -> String {
    let completion: Option<Completion<'_>> = serde_json::from_slice(body).ok();
    let said = completion.and_then(|completion| completion.error?.message);
    let status = status.as_u16();
    match said {
        Some(said) => format!(
            "the upstream answers with HTTP {status}: {}",
            one_line(&said, MAX_SAID)
        ),
        None => format!("the upstream answers with HTTP {status}"),
    }
}

/// What a line says.
enum Line {
    Text(String),
    Nothing,
    End,
}

/// A completion that comes as events.
pub(crate) struct Events {
    answer: reqwest::Response,
    limit: Duration,
    received: BytesMut,
    /// How much of it has no end of a line.
    looked_at: usize,
    /// Whether anything was understood.
    is_stream: bool,
    /// All that was said.
    text: String,
    usage: Option<Usage>,
}

impl Events {
    /// Those of `answer`, which may be silent for as long as `limit`.
    pub(crate) fn new(answer: reqwest::Response, limit: Duration) -> Self {
        Self {
            answer,
            limit,
            received: BytesMut::new(),
            looked_at: 0,
            is_stream: false,
            text: String::new(),
            usage: None,
        }
    }

    /// The next piece of text; none at the end.
    pub(crate) async fn next(&mut self) -> Result<Option<String>, UpstreamError> {
        loop {
            while let Some(line) = self.next_line() {
                match self.read_line(&line)? {
                    Line::Text(text) => return Ok(Some(text)),
                    Line::End => return Ok(None),
                    Line::Nothing => {}
                }
            }
            if self.received.len() > MAX_EVENT {
                let why = format!("an event has more than {MAX_EVENT} bytes");
                return Err(broke_off(&why));
            }
            match next_piece(&mut self.answer, self.limit).await? {
                Some(bytes) => self.received.extend_from_slice(&bytes),
                // The last line may have no end.
                None if !self.received.is_empty() => self.received.put_u8(b'\n'),
                None if self.is_stream => return Ok(None),
                None => return Err(broke_off("it sent no stream of events")),
            }
        }
    }

    /// A whole line of what was received, if there is one.
    fn next_line(&mut self) -> Option<BytesMut> {
        let unseen = &self.received[self.looked_at..];
        let Some(end) = unseen.iter().position(|byte| *byte == b'\n') else {
            self.looked_at = self.received.len();
            return None;
        };
        let line = self.received.split_to(self.looked_at + end + 1);
        self.looked_at = 0;
        Some(line)
    }

    /// Each event of such an API is one line.
    fn read_line(&mut self, line: &[u8]) -> Result<Line, UpstreamError> {
        let data = line.strip_prefix(b"data:").map(<[u8]>::trim_ascii);
        match data.unwrap_or_default() {
            b"" => Ok(Line::Nothing),
            b"[DONE]" => Ok(Line::End),
            data => Ok(self.read(data)?.map_or(Line::Nothing, Line::Text)),
        }
    }

    fn read(&mut self, data: &[u8]) -> Result<Option<String>, UpstreamError> {
        let event: Result<Completion<'_>, _> = serde_json::from_slice(data);
        let mut event = event.map_err(|_| broke_off("it sent what is no completion"))?;
        if let Some(failure) = event.error {
            let said = failure.message.unwrap_or_default();
            return Err(broke_off(&format!(
                "it says `{}`",
                one_line(&said, MAX_SAID)
            )));
        }
        self.is_stream = true;
        if let Some(usage) = event.usage() {
            self.usage = Some(usage);
        }
        let Some(text) = event.text().filter(|text| !text.is_empty()) else {
            return Ok(None);
        };
        if self.text.len() + text.len() > MAX_WHOLE {
            return Err(UpstreamError::TooLarge);
        }
        self.text.push_str(&text);
        Ok(Some(text))
    }

    /// All that was said, and what it cost.
    pub(crate) fn into_whole(self) -> (String, Option<Usage>) {
        (self.text, self.usage)
    }
}

fn broke_off(why: &str) -> UpstreamError {
    UpstreamError::BrokeOff(why.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn events() -> Events {
        let answer = http::Response::new("");
        Events::new(answer.into(), Duration::from_secs(1))
    }

    #[test]
    fn text_and_usage_may_come_in_one_event() {
        let mut events = events();
        let event = br#"{"x":1e400,"choices":[{"message":null,"delta":{"content":"Hi."}}],"usage":{"total_tokens":7}}"#;
        assert_eq!(events.read(event).ok(), Some(Some("Hi.".to_owned())));
        let (text, usage) = events.into_whole();
        assert_eq!(
            (
                text.as_str(),
                usage.map(|usage| usage.get().to_owned()).as_deref()
            ),
            ("Hi.", Some(r#"{"total_tokens":7}"#))
        );
    }

    #[test]
    fn a_stream_may_say_16_mib_and_no_more() {
        let mut events = events();
        let event = |bytes: usize| {
            format!(
                r#"{{"choices":[{{"delta":{{"content":"{}"}}}}]}}"#,
                "x".repeat(bytes)
            )
        };
        assert!(events.read(event(MAX_WHOLE).as_bytes()).is_ok());
        assert!(matches!(
            events.read(event(1).as_bytes()),
            Err(UpstreamError::TooLarge)
        ));
    }

    #[test]
    fn a_refusal_is_repeated_on_one_line_and_not_at_any_length() {
        let body = format!(
            r#"{{"error":{{"message":"slow\ndown {}","x":1e400}}}}"#,
            "x".repeat(MAX_SAID)
        );
        let said = read_refusal(StatusCode::TOO_MANY_REQUESTS, body.as_bytes());
        assert!(
            said.starts_with("the upstream answers with HTTP 429: slow down x"),
            "{said}"
        );
        assert!(said.len() < MAX_SAID + 50);
        assert_eq!(
            read_refusal(StatusCode::BAD_GATEWAY, b"<html>"),
            "the upstream answers with HTTP 502"
        );
    }
}
