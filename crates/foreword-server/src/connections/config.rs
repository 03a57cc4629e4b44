//! What is said of a connection, as it is written, and what it comes to once it is read.
//!
//! The shape is that of the `mcpServers` block which other clients have too, so that theirs can be pasted. Deliberately
//! absent: where it is written ([`super::file`] and the binary's configuration).

use std::{cell::RefCell, collections::BTreeMap, path::PathBuf, sync::Arc, time::Duration};

use foreword_compose::one_line;
use http::{HeaderName, HeaderValue};
use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};
use reqwest::Url;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{config::Secret, session::Session};

use super::pattern::Pattern;

/// How an MCP server is reached, and who may use its tools (`[connections.NAME]`, or an entry of `mcpServers`).
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ConnectionConfig {
    /// The program to start, for a server that speaks on its standard input and output.
    pub command: Option<String>,
    /// The program's arguments.
    pub args: Vec<String>,
    /// The program's environment, beside `PATH`, `HOME`, `LANG` and `TMPDIR`; nothing else of this server's is passed on.
    pub env: BTreeMap<String, Secret>,
    /// Where the program runs; where this server runs if unset.
    pub cwd: Option<PathBuf>,
    /// Where the server is, for one that speaks Streamable HTTP.
    #[serde(alias = "serverUrl", alias = "httpUrl")]
    pub url: Option<String>,
    /// Headers of every request; those that hold `{user_email}` or `{chat_id}` are sent with calls only.
    pub headers: BTreeMap<String, Secret>,
    /// Whether it is left alone.
    pub disabled: bool,
    /// The only tools that are taken; all if unset.
    pub tools: Option<Vec<String>>,
    /// Whether the server's own instructions stand in the tools prompt.
    pub instructions: bool,
    /// Whether its tools are handed on to our clients.
    pub expose: bool,
    /// How long a call may take, in seconds.
    pub timeout: u64,
    /// How often its tools are listed anew, in seconds.
    pub refresh: u64,
    /// The profiles that may call its tools; all if empty.
    pub profiles: Vec<String>,
    /// The users who may call its tools, by e-mail; `*` stands for any characters; all if empty.
    pub users: Vec<String>,
}

impl Default for ConnectionConfig {
    fn default() -> Self {
        Self {
            command: None,
            args: Vec::new(),
            env: BTreeMap::new(),
            cwd: None,
            url: None,
            headers: BTreeMap::new(),
            disabled: false,
            tools: None,
            instructions: true,
            expose: true,
            timeout: 30,
            refresh: 60,
            profiles: Vec::new(),
            users: Vec::new(),
        }
    }
}

/// The longest of other people's words in an error, in characters.
const MAX_WORDS: usize = 500;

/// The longest name of a connection, in bytes.
pub const MAX_NAME: usize = 32;

/// The most connections of the configuration and the file together; those of the configuration come first.
pub const MAX_CONNECTIONS: usize = 100;

/// Why a connection cannot be made as it is written.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConnectionError {
    /// The name cannot be a part of a tool's name.
    #[error("the name has to be 1 to 32 letters, digits, `-` and `_`, without `__`")]
    Name,
    /// Neither.
    #[error("it needs either `command`, for a program, or `url`, for a server on the network")]
    NoTransport,
    /// Both.
    #[error("it has both `command` and `url`: keep one of them")]
    TwoTransports,
    /// What a shell would take apart.
    #[error("`command` is the program alone; what follows it goes into `args`, a list")]
    Arguments,
    /// A value for the other kind.
    #[error("`{0}` goes with `{1}` only")]
    OutOfPlace(&'static str, &'static str),
    /// No such variable.
    #[error("the environment variable `{0}` is not set")]
    NoVariable(String),
    /// A notation of other programs.
    #[error(
        "`${{{0}}}` is not read: a variable is written `${{NAME}}`, with nothing beside its name"
    )]
    NotAName(String),
    /// `${` without an end.
    #[error("`{0}` has a `${{` that is not closed")]
    Unclosed(&'static str),
    /// Not one that can be called.
    #[error("`url` has to begin with `http://` or `https://`")]
    Url,
    /// HTTP does not allow it.
    #[error("`headers` cannot have `{0}`: {1}")]
    Header(String, &'static str),
    /// Zero, or more than a day.
    #[error("`{0}` has to be from 1 to 86400 seconds")]
    Seconds(&'static str),
}

/// A connection, read and checked.
#[derive(Debug, Clone)]
pub(super) struct Connection {
    pub(super) transport: Transport,
    pub(super) tools: Option<Vec<String>>,
    pub(super) instructions: bool,
    pub(super) expose: bool,
    pub(super) timeout: Duration,
    pub(super) refresh: Duration,
    pub(super) profiles: Vec<String>,
    pub(super) users: Vec<Pattern>,
    /// What stands for `${NAME}`, and other values that are not shown.
    pub(super) secrets: Arc<Secrets>,
}

/// Values that are not for those who read logs and errors.
#[derive(Debug, Default)]
pub(super) struct Secrets(Vec<Secret>);

impl Secrets {
    /// Shorter ones are words and numbers that are found in any text.
    const SHORTEST: usize = 8;

    fn of(config: &ConnectionConfig, filled: Vec<String>) -> Self {
        let written = config.env.values().chain(config.headers.values());
        let written = written.map(|value| value.expose().to_owned());
        let whole: Vec<String> = filled.into_iter().chain(written).collect();
        // Of `Bearer KEY` the key alone, too.
        let last = whole
            .iter()
            .filter_map(|value| value.split_whitespace().next_back());
        let last: Vec<String> = last.map(str::to_owned).collect();
        let mut secrets: Vec<String> = whole.into_iter().chain(last).collect();
        // Paths are what messages are about.
        let is_path = |text: &str| text.starts_with('/') && std::path::Path::new(text).exists();
        secrets.retain(|secret| secret.len() >= Self::SHORTEST && !is_path(secret));
        // A value within another one would leave the rest of that.
        secrets.sort_by_key(|secret| std::cmp::Reverse(secret.len()));
        Self(secrets.into_iter().map(Secret::new).collect())
    }

    /// The text without them, on one line and not too long, for those who ask what is wrong.
    pub(super) fn shown(&self, text: String) -> String {
        one_line(&self.hidden_in(text), MAX_WORDS)
    }

    /// The text without them.
    pub(super) fn hidden_in(&self, text: String) -> String {
        self.0.iter().fold(text, |text, secret| {
            if text.contains(secret.expose()) {
                text.replace(secret.expose(), "[redacted]")
            } else {
                text
            }
        })
    }
}

/// How it is reached.
#[derive(Debug, Clone)]
pub(super) enum Transport {
    Stdio(Program),
    Http(Remote),
}

/// A program to start.
#[derive(Debug, Clone)]
pub(super) struct Program {
    pub(super) command: String,
    pub(super) args: Vec<String>,
    pub(super) env: Vec<(String, Secret)>,
    pub(super) cwd: Option<PathBuf>,
}

/// A server on the network.
#[derive(Debug, Clone)]
pub(super) struct Remote {
    pub(super) url: Url,
    /// Sent with every request.
    pub(super) headers: Vec<(HeaderName, HeaderValue)>,
    /// Sent with calls, made of the caller's session.
    pub(super) session_headers: Vec<(HeaderName, Template)>,
}

impl Connection {
    /// Reads `config`; `variable` looks `${NAME}` up.
    pub(super) fn read(
        name: &str,
        config: &ConnectionConfig,
        variable: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Self, ConnectionError> {
        if !is_name(name) {
            return Err(ConnectionError::Name);
        }
        let filled = RefCell::new(Vec::new());
        let variable = &|name: &str| {
            let value = variable(name)?;
            filled.borrow_mut().push(value.clone());
            Some(value)
        };
        for (field, seconds) in [("timeout", config.timeout), ("refresh", config.refresh)] {
            if !(1..=86_400).contains(&seconds) {
                return Err(ConnectionError::Seconds(field));
            }
        }
        let transport = match (&config.command, &config.url) {
            (Some(command), None) if !command.trim().is_empty() => {
                if !config.headers.is_empty() {
                    return Err(ConnectionError::OutOfPlace("headers", "url"));
                }
                Transport::Stdio(program(command, config, variable)?)
            }
            (None, Some(url)) => {
                let only_of_programs = [
                    ("args", config.args.is_empty()),
                    ("env", config.env.is_empty()),
                    ("cwd", config.cwd.is_none()),
                ];
                if let Some((field, _)) = only_of_programs.iter().find(|(_, unused)| !unused) {
                    return Err(ConnectionError::OutOfPlace(field, "command"));
                }
                Transport::Http(remote(url, config, variable)?)
            }
            (Some(_), Some(_)) => return Err(ConnectionError::TwoTransports),
            _ => return Err(ConnectionError::NoTransport),
        };
        if let Transport::Stdio(program) = &transport
            && program.command.contains(char::is_whitespace)
            && !std::path::Path::new(&program.command).exists()
        {
            return Err(ConnectionError::Arguments);
        }
        Ok(Self {
            transport,
            tools: config.tools.clone(),
            instructions: config.instructions,
            expose: config.expose,
            timeout: Duration::from_secs(config.timeout),
            refresh: Duration::from_secs(config.refresh),
            profiles: config.profiles.clone(),
            users: config.users.iter().map(|user| Pattern::new(user)).collect(),
            secrets: Arc::new(Secrets::of(config, filled.into_inner())),
        })
    }

    /// Why the session may not call, in words for whoever reads the result; none if it may.
    pub(super) fn refusal(&self, session: &Session, profile_id: Option<&str>) -> Option<String> {
        let is_profile = |id: &String| profile_id == Some(id);
        if !self.profiles.is_empty() && !self.profiles.iter().any(is_profile) {
            let profile = profile_id.unwrap_or("none");
            return Some(format!("the profile in use (`{profile}`) may not call it"));
        }
        let Some(email) = session.user_email.as_deref() else {
            return (!self.users.is_empty())
                .then(|| "only some users may call it, and the request names none".to_owned());
        };
        let may = self.users.is_empty() || self.users.iter().any(|users| users.matches(email));
        (!may).then(|| "this user may not call it".to_owned())
    }
}

/// Whether a connection can be called that.
pub(super) fn is_name(name: &str) -> bool {
    let safe = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    (1..=MAX_NAME).contains(&name.len()) && name.bytes().all(safe) && !name.contains("__")
}

fn program(
    command: &str,
    config: &ConnectionConfig,
    variable: &dyn Fn(&str) -> Option<String>,
) -> Result<Program, ConnectionError> {
    let args = config.args.iter().map(|arg| fill("args", arg, variable));
    let env = config.env.iter().map(|(name, value)| {
        let value = fill("env", value.expose(), variable)?;
        Ok((name.clone(), Secret::new(value)))
    });
    Ok(Program {
        command: fill("command", command, variable)?,
        args: args.collect::<Result<_, _>>()?,
        env: env.collect::<Result<_, _>>()?,
        cwd: config.cwd.clone(),
    })
}

fn remote(
    url: &str,
    config: &ConnectionConfig,
    variable: &dyn Fn(&str) -> Option<String>,
) -> Result<Remote, ConnectionError> {
    let url = Url::parse(&fill("url", url, variable)?).map_err(|_| ConnectionError::Url)?;
    if !matches!(url.scheme(), "http" | "https") || !url.has_host() {
        return Err(ConnectionError::Url);
    }
    let mut remote = Remote {
        url,
        headers: Vec::new(),
        session_headers: Vec::new(),
    };
    for (name, value) in &config.headers {
        let refuse = |why| ConnectionError::Header(name.clone(), why);
        let header = HeaderName::try_from(name.as_str());
        let header = header.map_err(|_| refuse("that is no name of a header"))?;
        if is_of_the_protocol(&header) {
            return Err(refuse("the protocol sets it by itself"));
        }
        let template = Template::read(value.expose(), variable)?;
        if template.is_of_a_session() {
            remote.session_headers.push((header, template));
            continue;
        }
        let value = template.value(None).and_then(|value| {
            let mut value = HeaderValue::try_from(value).ok()?;
            value.set_sensitive(true);
            Some(value)
        });
        let value =
            value.ok_or_else(|| refuse("its value has characters that no header may have"))?;
        remote.headers.push((header, value));
    }
    Ok(remote)
}

/// What the client of the protocol sets, and what would change how a message is read.
fn is_of_the_protocol(name: &HeaderName) -> bool {
    let name = name.as_str();
    name.starts_with("mcp-")
        || [
            "accept",
            "connection",
            "content-length",
            "content-type",
            "host",
            "last-event-id",
            "transfer-encoding",
        ]
        .contains(&name)
}

/// Puts variables in the place of `${NAME}`.
fn fill(
    field: &'static str,
    text: &str,
    variable: &dyn Fn(&str) -> Option<String>,
) -> Result<String, ConnectionError> {
    let mut filled = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("${") {
        let (name, after) = after
            .split_once('}')
            .ok_or(ConnectionError::Unclosed(field))?;
        let is_name = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
        if name.is_empty() || !name.bytes().all(is_name) {
            return Err(ConnectionError::NotAName(name.to_owned()));
        }
        let value = variable(name).filter(|value| !value.is_empty());
        filled.push_str(before);
        filled.push_str(&value.ok_or_else(|| ConnectionError::NoVariable(name.to_owned()))?);
        rest = after;
    }
    filled.push_str(rest);
    Ok(filled)
}

/// The value of a header that may hold something of the caller's session.
#[derive(Debug, Clone)]
pub(super) struct Template(Vec<Piece>);

#[derive(Debug, Clone)]
enum Piece {
    Text(Secret),
    UserEmail,
    ChatId,
}

/// What a value of a session may not bring into a header: separators of lists and parameters, quotes, what is not ASCII.
const ENCODED: &AsciiSet = &CONTROLS
    .add(b' ')
    .add(b'%')
    .add(b'"')
    .add(b'\'')
    .add(b',')
    .add(b';')
    .add(b'=')
    .add(b'<')
    .add(b'>')
    .add(b'\\')
    .add(b'(')
    .add(b')');

impl Template {
    /// Variables are filled in now, and nothing in them is looked at again.
    fn read(
        text: &str,
        variable: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Self, ConnectionError> {
        let placeholders = [
            ("{user_email}", Piece::UserEmail),
            ("{chat_id}", Piece::ChatId),
        ];
        let mut pieces = Vec::new();
        let mut rest = text;
        loop {
            let next = placeholders
                .iter()
                .filter_map(|(word, piece)| Some((rest.find(word)?, word, piece)))
                .min_by_key(|(at, ..)| *at);
            let text = next.map_or(rest, |(at, ..)| &rest[..at]);
            if !text.is_empty() {
                pieces.push(Piece::Text(Secret::new(fill("headers", text, variable)?)));
            }
            let Some((at, word, piece)) = next else {
                return Ok(Self(pieces));
            };
            pieces.push(piece.clone());
            rest = &rest[at + word.len()..];
        }
    }

    fn is_of_a_session(&self) -> bool {
        self.0.iter().any(|piece| !matches!(piece, Piece::Text(_)))
    }

    /// None where the session lacks what it needs.
    fn value(&self, session: Option<&Session>) -> Option<String> {
        let mut value = String::new();
        for piece in &self.0 {
            match piece {
                Piece::Text(text) => value.push_str(text.expose()),
                Piece::UserEmail => value.push_str(&encoded(session?.user_email.as_deref()?)),
                Piece::ChatId => value.push_str(&encoded(session?.chat_id.as_str())),
            }
        }
        Some(value)
    }

    /// The header of a call for `session`; none where the session lacks what it needs.
    pub(super) fn header(&self, session: &Session) -> Option<HeaderValue> {
        let mut value = HeaderValue::try_from(self.value(Some(session))?).ok()?;
        value.set_sensitive(true);
        Some(value)
    }
}

fn encoded(text: &str) -> String {
    utf8_percent_encode(text, ENCODED).to_string()
}
