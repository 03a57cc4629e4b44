//! Reads a session from headers, query, path and `_meta`: one function for every kind of request.
//!
//! A source that is blank, or still holds a template that its client failed to fill in, counts as absent. A value that
//! is there but cannot be right is refused rather than skipped: a fallback to another chat would mix two users' files.

use std::{
    borrow::Cow,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use foreword_compose::library::MAX_ID_LENGTH;
use http::{HeaderMap, HeaderName, HeaderValue};
use percent_encoding::percent_decode_str;
use serde_json::{Map, Value};

use super::{
    ChatId, InvalidChatId, InvalidEmail, Session,
    email::{is_template, parse_email, trim},
};
use crate::config::{SessionConfig, SessionMode};

/// The largest length of a user name, in characters; what is longer is cut.
const MAX_NAME_LENGTH: usize = 200;

/// Reads sessions as the configuration says.
pub struct SessionReader {
    mode: SessionMode,
    /// The header that a client should send, as the configuration spells it.
    preferred_header: Arc<str>,
    vary: HeaderValue,
    chat_in_path: Source<&'static str>,
    chat_id: Sources,
    user_email: Sources,
    user_name: Sources,
    profile_id: Sources,
}

/// Where a request may name its session.
#[derive(Debug, Clone, Copy)]
pub struct SessionSources<'a> {
    /// The headers.
    pub headers: &'a HeaderMap,
    /// The query as it was sent; none on MCP, where it names no session.
    pub query: Option<&'a str>,
    /// The chat id of the path, percent-decoded once.
    pub path_chat: Option<&'a str>,
    /// The `_meta` object of an MCP request.
    pub meta: Option<&'a Map<String, Value>>,
}

impl<'a> SessionSources<'a> {
    /// The sources of an HTTP request outside MCP that names no chat in its path.
    #[must_use]
    pub fn http(headers: &'a HeaderMap, query: Option<&'a str>) -> Self {
        Self {
            headers,
            query,
            path_chat: None,
            meta: None,
        }
    }
}

/// What a request says about its session; in `strict` mode that may be too little for a [`Session`].
#[derive(Debug, Clone)]
pub struct SessionRequest {
    session: Session,
    missing_header: Option<Arc<str>>,
}

impl SessionRequest {
    /// The session, where one can be had without naming a chat.
    pub fn require(self) -> Result<Session, SessionError> {
        match self.missing_header {
            None => Ok(self.session),
            Some(header) => Err(SessionError::ChatIdRequired { header }),
        }
    }

    /// What is there whether or not the chat is named: `default` stands in for a chat that is required and missing.
    #[must_use]
    pub fn as_given(&self) -> &Session {
        &self.session
    }
}

/// Why a request has no usable session. No message repeats a value, since values may come back in logs and prompts.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SessionError {
    /// The chat id cannot be one.
    #[error("the chat id is not valid: {0}")]
    InvalidChatId(#[from] InvalidChatId),
    /// The e-mail address cannot be one.
    #[error("the user's e-mail address is not valid: {0}")]
    InvalidUserEmail(#[from] InvalidEmail),
    /// The profile id cannot be one.
    #[error("the profile id is not valid: it has at most {MAX_ID_LENGTH} bytes and no line breaks")]
    InvalidProfileId,
    /// A header does not hold text.
    #[error("the value of the header `{0}` is not UTF-8")]
    NotText(HeaderName),
    /// A value of `_meta` is not a text.
    #[error("the value of `_meta` under `{0}` is not a string")]
    MetaNotText(&'static str),
    /// `strict` mode, and the request names no chat.
    #[error("this server needs a chat id: send the header `{header}`")]
    ChatIdRequired {
        /// The header to send.
        header: Arc<str>,
    },
}

impl SessionError {
    /// A stable word for the kind of error, in snake case.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::InvalidChatId(_) => "invalid_chat_id",
            Self::InvalidUserEmail(_) => "invalid_user_email",
            Self::InvalidProfileId => "invalid_profile_id",
            Self::NotText(_) => "invalid_header",
            Self::MetaNotText(_) => "invalid_meta",
            Self::ChatIdRequired { .. } => "chat_id_required",
        }
    }
}

impl SessionReader {
    /// A reader for `config`. Header names that cannot be any are left out; [`crate::ServerConfig::check`] refuses them.
    #[must_use]
    pub fn new(config: &SessionConfig) -> Self {
        let chat_id_headers: Vec<&str> =
            config.chat_id_headers.iter().map(String::as_str).collect();
        let chat_id = Sources::new(&chat_id_headers, "chat_id", Some("foreword/chat_id"));
        let user_email = Sources::new(
            &["x-user-email", "x-openwebui-user-email"],
            "user_email",
            Some("foreword/user_email"),
        );
        let user_name = Sources::new(&["x-user-name", "x-openwebui-user-name"], "user_name", None);
        let profile_id = Sources::new(&["x-profile-id"], "profile_id", Some("foreword/profile_id"));
        let reader = Self {
            mode: config.mode,
            preferred_header: chat_id_headers
                .first()
                .map_or("X-Chat-Id", |name| *name)
                .into(),
            chat_in_path: Source::new("path"),
            vary: HeaderValue::from_static("accept"),
            chat_id,
            user_email,
            user_name,
            profile_id,
        };
        let names = reader.headers().map(HeaderName::as_str);
        let names: Vec<&str> = names.chain(["accept"]).collect();
        let vary =
            HeaderValue::try_from(names.join(", ")).expect("names of headers are visible ASCII");
        Self { vary, ..reader }
    }

    /// Reads the session of one request.
    pub fn read(&self, from: SessionSources<'_>) -> Result<SessionRequest, SessionError> {
        let named = match self.mode {
            SessionMode::Single => None,
            SessionMode::Lenient | SessionMode::Strict => self.named_chat(from)?,
        };
        let missing_header = (self.mode == SessionMode::Strict && named.is_none())
            .then(|| Arc::clone(&self.preferred_header));
        let chat_id_given = named.is_some() || self.mode == SessionMode::Single;
        let chat_id = named.unwrap_or_else(ChatId::default_chat);
        let session = Session {
            shared: self.is_shared(&chat_id),
            chat_id,
            chat_id_given,
            user_email: self
                .user_email
                .first(from)?
                .map(|found| parse_email(&email(&found)))
                .transpose()?,
            user_name: self.user_name.first(from)?.and_then(|found| name(&found)),
            profile_id: self
                .profile_id
                .first(from)?
                .map(|found| profile_id(&found.text))
                .transpose()?,
        };
        Ok(SessionRequest {
            session,
            missing_header,
        })
    }

    /// Whether the chat belongs to nobody in particular, see [`Session::shared`].
    pub(crate) fn is_shared(&self, chat_id: &ChatId) -> bool {
        let is_default = chat_id.as_str() == ChatId::DEFAULT;
        chat_id.is_channel() || (is_default && self.mode != SessionMode::Single)
    }

    /// The header in which a client should name its chat.
    #[must_use]
    pub fn preferred_header(&self) -> &str {
        &self.preferred_header
    }

    /// All headers that can change a session.
    pub fn headers(&self) -> impl Iterator<Item = &HeaderName> {
        [
            &self.chat_id,
            &self.user_email,
            &self.user_name,
            &self.profile_id,
        ]
        .into_iter()
        .flat_map(|sources| sources.headers.iter().map(|source| &source.name))
    }

    /// The same, and what can change the format of an answer, for `Vary`.
    #[must_use]
    pub fn vary(&self) -> HeaderValue {
        self.vary.clone()
    }

    fn named_chat(&self, from: SessionSources<'_>) -> Result<Option<ChatId>, SessionError> {
        let in_path = from
            .path_chat
            .filter(|text| self.chat_in_path.accepts(text));
        let text = match in_path {
            Some(text) => Some(Cow::Borrowed(text)),
            None => self.chat_id.first(from)?.map(|found| found.text),
        };
        Ok(text.map(|text| ChatId::parse(&text)).transpose()?)
    }
}

/// The places where one value may stand, best first: headers, query, `_meta`.
struct Sources {
    headers: Vec<Source<HeaderName>>,
    query: Source<&'static str>,
    meta: Option<Source<&'static str>>,
}

/// What was found, and whether it is still percent-encoded where the value is meant to be.
struct Found<'a> {
    text: Cow<'a, str>,
    from_header: bool,
}

impl Sources {
    fn new(headers: &[&str], query: &'static str, meta: Option<&'static str>) -> Self {
        Self {
            headers: headers
                .iter()
                .filter_map(|name| name.parse().ok())
                .map(Source::new)
                .collect(),
            query: Source::new(query),
            meta: meta.map(Source::new),
        }
    }

    /// The first value that counts.
    fn first<'a>(&self, from: SessionSources<'a>) -> Result<Option<Found<'a>>, SessionError> {
        for source in &self.headers {
            let Some(value) = from.headers.get(&source.name) else {
                continue;
            };
            let text = std::str::from_utf8(value.as_bytes())
                .map_err(|_| SessionError::NotText(source.name.clone()))?;
            if source.accepts(text) {
                return Ok(Some(Found {
                    text: Cow::Borrowed(text),
                    from_header: true,
                }));
            }
        }
        let query = from.query.unwrap_or_default().as_bytes();
        for (name, text) in form_urlencoded::parse(query) {
            if name == self.query.name && self.query.accepts(&text) {
                return Ok(Some(Found {
                    text,
                    from_header: false,
                }));
            }
        }
        self.in_meta(from.meta)
    }

    fn in_meta<'a>(
        &self,
        meta: Option<&'a Map<String, Value>>,
    ) -> Result<Option<Found<'a>>, SessionError> {
        let (Some(source), Some(meta)) = (&self.meta, meta) else {
            return Ok(None);
        };
        match meta.get(source.name) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) => Ok(source.accepts(text).then_some(Found {
                text: Cow::Borrowed(text),
                from_header: false,
            })),
            Some(_) => Err(SessionError::MetaNotText(source.name)),
        }
    }
}

/// One place, and whether a template was seen there.
struct Source<N> {
    name: N,
    warned: AtomicBool,
}

impl<N: AsRef<str>> Source<N> {
    fn new(name: N) -> Self {
        Self {
            name,
            warned: AtomicBool::new(false),
        }
    }

    /// Whether `text` counts as given. The first template at each place is worth a warning, the next ones are not.
    fn accepts(&self, text: &str) -> bool {
        let is_template = is_template(text);
        if is_template && !self.warned.swap(true, Ordering::Relaxed) {
            let name = self.name.as_ref();
            tracing::warn!(
                source = name,
                "The value of `{name}` still holds a template, so it counts as absent: the client does not fill it in"
            );
        }
        !is_template && !trim(text).is_empty()
    }
}

/// An address with the characters beyond ASCII that a client has encoded, as Open WebUI does: it leaves the rest of the address as it
/// is, keeps addresses in lower case, and writes escapes in upper case. So an escape in lower case, of an ASCII character, or of what
/// is no UTF-8 stands for itself, and one user is not taken for another.
fn email<'a>(found: &'a Found<'_>) -> Cow<'a, str> {
    let text = &*found.text;
    if !found.from_header || !text.contains('%') {
        return Cow::Borrowed(text);
    }
    let are_escapes = text.split('%').skip(1).all(|rest| {
        let mut digits = rest.bytes();
        let is_digit = |digit: u8| matches!(digit, b'0'..=b'9' | b'A'..=b'F');
        let beyond_ascii = |digit: u8| matches!(digit, b'8' | b'9' | b'A'..=b'F');
        digits.next().is_some_and(beyond_ascii) && digits.next().is_some_and(is_digit)
    });
    match percent_decode_str(text).decode_utf8() {
        Ok(decoded) if are_escapes => decoded,
        _ => Cow::Borrowed(text),
    }
}

/// A name is shown, not compared, so it is made fit rather than refused.
fn name(found: &Found<'_>) -> Option<Arc<str>> {
    let decoded = if found.from_header {
        percent_decode_str(&found.text).decode_utf8_lossy()
    } else {
        Cow::Borrowed(&*found.text)
    };
    let on_one_line: String = decoded
        .trim()
        .chars()
        .map(|c| if breaks_a_line(c) { ' ' } else { c })
        .take(MAX_NAME_LENGTH)
        .collect();
    let on_one_line = on_one_line.trim();
    (!on_one_line.is_empty()).then(|| on_one_line.into())
}

fn breaks_a_line(c: char) -> bool {
    c.is_control() || matches!(c, '\u{2028}' | '\u{2029}')
}

/// Whether the profile exists is the library's business; that its id can stand in a message is ours.
fn profile_id(text: &str) -> Result<Arc<str>, SessionError> {
    let text = trim(text);
    if text.len() <= MAX_ID_LENGTH && !text.contains(breaks_a_line) {
        Ok(text.into())
    } else {
        Err(SessionError::InvalidProfileId)
    }
}
