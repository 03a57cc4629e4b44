//! The two requests that the provider answers. What comes is bounded here; whether it is good is for others to say.

use std::{fmt, fmt::Write as _, fs, io, time::Duration};

use foreword_compose::one_line;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use percent_encoding::utf8_percent_encode;
use reqwest::{Client, Response, Url, redirect::Policy};
use sha2::{Digest as _, Sha256};
use tokio::{io::AsyncWriteExt, time::timeout};

use super::list::List;
use crate::{
    choose_tls,
    links::UNRESERVED,
    skills::{
        archive::PACKED_BYTES,
        cache::{Cache, Digest},
        config::ProviderConfig,
        local::MAX_SKILLS,
        name::SkillName,
    },
};

/// How long the list of a user's skills may take.
pub(super) const LIST_WITHIN: Duration = Duration::from_secs(5);

/// The largest list, in bytes.
const MAX_LIST_BYTES: usize = 1 << 20;

/// The header of the key.
const KEY_HEADER: HeaderName = HeaderName::from_static("x-internal-api-key");

/// The provider's service.
pub(super) struct Service {
    client: Client,
    base: Url,
}

/// Why there is no answer.
#[derive(Debug)]
pub(super) enum Fault {
    /// Nothing came, or not in time: whoever else asks now will fare alike.
    Silent(String),
    /// Something came that is no answer.
    Wrong(String),
    /// It could not be received here.
    Here(io::Error),
}

/// What a download came to.
pub(super) enum Download {
    Archive {
        file: fs::File,
        digest: Digest,
        etag: Option<HeaderValue>,
    },
    /// More than an archive may have.
    TooLarge,
    /// What the `ETag` was of.
    AsKnown,
    /// A skill that this server has itself.
    Native,
}

impl Service {
    /// None where none is configured.
    pub(super) fn new(config: &ProviderConfig) -> Result<Option<Self>, String> {
        let Some(url) = config.url.as_deref().filter(|url| !url.trim().is_empty()) else {
            return Ok(None);
        };
        let base = Url::parse(url).ok().filter(|url| {
            matches!(url.scheme(), "http" | "https") && url.has_host() && !url.cannot_be_a_base()
        });
        let base = base.ok_or("`skills.provider.url` has to begin with `http://` or `https://`")?;
        choose_tls();
        let mut headers = HeaderMap::new();
        if let Some(key) = &config.key {
            let mut value = HeaderValue::try_from(key.expose())
                .map_err(|_| "`skills.provider.key` has characters that no header may have")?;
            value.set_sensitive(true);
            headers.insert(KEY_HEADER, value);
        }
        let client = Client::builder()
            .user_agent(concat!("foreword/", env!("CARGO_PKG_VERSION")))
            .default_headers(headers)
            .connect_timeout(LIST_WITHIN)
            // The key must not follow a redirect.
            .redirect(Policy::none())
            .build()
            .map_err(|error| error.to_string())?;
        Ok(Some(Self { client, base }))
    }

    /// The skills of a user; none for a user whom the provider does not know.
    pub(super) async fn list(&self, email: &str) -> Result<Option<List>, Fault> {
        let within = LIST_WITHIN.as_secs();
        timeout(LIST_WITHIN, self.list_at_leisure(email))
            .await
            .map_err(|_| Fault::Silent(format!("it did not answer within {within} s")))?
    }

    async fn list_at_leisure(&self, email: &str) -> Result<Option<List>, Fault> {
        let url = self.url(&["api", "internal", "user-config", email], email);
        let answer = self.client.get(url).send().await?;
        if answer.status() == StatusCode::NOT_FOUND {
            return Ok(None);
        }
        let body = read_bounded(succeeded(answer)?).await?;
        let list: List = serde_json::from_slice(&body)
            .map_err(|error| Fault::Wrong(format!("its list cannot be read: {error}")))?;
        if list.is_too_long() {
            return Err(Fault::Wrong(format!(
                "it lists more than {MAX_SKILLS} skills"
            )));
        }
        Ok(Some(list))
    }

    /// A skill's archive, received into `cache`; whoever asks says how long it may take.
    pub(super) async fn download(
        &self,
        name: &SkillName,
        email: &str,
        etag: Option<HeaderValue>,
        cache: &Cache,
    ) -> Result<Download, Fault> {
        let path = ["api", "internal", "skills", name.as_str(), "download"];
        let mut request = self.client.get(self.url(&path, email));
        let is_known = etag.is_some();
        if let Some(etag) = etag {
            request = request.header(header::IF_NONE_MATCH, etag);
        }
        let answer = request.send().await?;
        if is_known && answer.status() == StatusCode::NOT_MODIFIED {
            return Ok(Download::AsKnown);
        }
        let mut answer = succeeded(answer)?;
        let kind = answer.headers().get(header::CONTENT_TYPE);
        let kind = kind.and_then(|kind| kind.to_str().ok()).unwrap_or_default();
        if kind.starts_with("application/json") {
            return Ok(Download::Native);
        }
        let length = answer.content_length().unwrap_or_default();
        if length > PACKED_BYTES {
            return Ok(Download::TooLarge);
        }
        let etag = answer.headers().get(header::ETAG).cloned();
        let (written, read) = cache.receive().await.map_err(Fault::Here)?;
        let mut written = tokio::fs::File::from_std(written);
        let (mut hasher, mut bytes) = (Sha256::new(), 0);
        while let Some(chunk) = answer.chunk().await? {
            bytes += chunk.len() as u64;
            if bytes > PACKED_BYTES {
                return Ok(Download::TooLarge);
            }
            hasher.update(&chunk);
            written.write_all(&chunk).await.map_err(Fault::Here)?;
        }
        written.flush().await.map_err(Fault::Here)?;
        Ok(Download::Archive {
            file: read,
            digest: Digest::of(&hasher.finalize()),
            etag,
        })
    }

    fn url(&self, path: &[&str], email: &str) -> Url {
        let mut url = self.base.clone();
        let mut whole = url.path().trim_end_matches('/').to_owned();
        for segment in path {
            let _ = write!(whole, "/{}", utf8_percent_encode(segment, UNRESERVED));
        }
        url.set_path(&whole);
        url.query_pairs_mut().append_pair("email", email);
        url
    }
}

fn succeeded(answer: Response) -> Result<Response, Fault> {
    let status = answer.status();
    if status.is_success() {
        Ok(answer)
    } else {
        let status = status.as_u16();
        Err(Fault::Wrong(format!("it answers with HTTP {status}")))
    }
}

async fn read_bounded(mut answer: Response) -> Result<Vec<u8>, Fault> {
    let mut body = Vec::new();
    while let Some(chunk) = answer.chunk().await? {
        if body.len() + chunk.len() > MAX_LIST_BYTES {
            let why = format!("its list has more than {MAX_LIST_BYTES} bytes");
            return Err(Fault::Wrong(why));
        }
        body.extend_from_slice(&chunk);
    }
    Ok(body)
}

impl From<reqwest::Error> for Fault {
    /// Says the innermost cause; outer ones hold the URL, and with it the user.
    fn from(error: reqwest::Error) -> Self {
        if error.is_timeout() {
            return Self::Silent("it did not answer in time".to_owned());
        }
        let mut cause = std::error::Error::source(&error);
        while let Some(inner) = cause.and_then(std::error::Error::source) {
            cause = Some(inner);
        }
        let cause = cause.map(|cause| one_line(&cause.to_string(), 200));
        Self::Silent(format!(
            "it cannot be reached{}{}",
            if cause.is_some() { ": " } else { "" },
            cause.unwrap_or_default()
        ))
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Silent(why) | Self::Wrong(why) => formatter.write_str(why),
            Self::Here(error) => write!(formatter, "it cannot be kept: {error}"),
        }
    }
}
