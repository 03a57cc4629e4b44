//! Refuses requests that a browser was tricked into sending: DNS rebinding, and pages of other origins.

use std::net::IpAddr;

use axum::{
    extract::{Request, State},
    middleware::Next,
    response::Response,
};
use http::{HeaderMap, StatusCode, Uri, header, uri::Authority};

use crate::{app::App, chat::errors::refuse, config::ServerConfig, error::ApiError};

/// The names under which this server may be asked for.
pub(crate) struct Hosts {
    allowed: Vec<AllowedHost>,
    origins: Vec<String>,
}

/// A host name, in lower case, on one port or on any.
struct AllowedHost {
    name: String,
    port: Option<u16>,
}

impl Hosts {
    /// The public URL's host and those of the configuration; loopback names are always allowed.
    pub(crate) fn new(config: &ServerConfig, public_base_url: &str) -> Self {
        let public = public_base_url.parse::<Uri>().ok();
        let public = public
            .iter()
            .filter_map(Uri::authority)
            .map(|authority| AllowedHost {
                name: name(authority),
                port: None,
            });
        let configured = config
            .http
            .allowed_hosts
            .iter()
            .filter_map(|host| host.parse::<Authority>().ok())
            .map(|authority| AllowedHost {
                name: name(&authority),
                port: authority.port_u16(),
            });
        Self {
            allowed: public.chain(configured).collect(),
            origins: config.http.cors_origins.clone(),
        }
    }

    fn check(&self, uri: &Uri, headers: &HeaderMap) -> Result<(), ApiError> {
        let mut named = false;
        for host in headers.get_all(header::HOST) {
            named = true;
            let authority = Authority::try_from(host.as_bytes()).ok();
            if !authority.is_some_and(|authority| self.allows(&authority)) {
                return Err(host_refused());
            }
        }
        if let Some(authority) = uri.authority() {
            named = true;
            if !self.allows(authority) {
                return Err(host_refused());
            }
        }
        if !named {
            return Err(ApiError::new(
                StatusCode::BAD_REQUEST,
                "host_required",
                "the request has no `Host` header",
            ));
        }
        for origin in headers.get_all(header::ORIGIN) {
            if !origin
                .to_str()
                .is_ok_and(|origin| self.allows_origin(origin))
            {
                return Err(ApiError::new(
                    StatusCode::FORBIDDEN,
                    "origin_not_allowed",
                    "pages of this origin may not call; the operator can name it in `http.cors_origins`",
                ));
            }
        }
        Ok(())
    }

    fn allows(&self, authority: &Authority) -> bool {
        if authority.as_str().contains('@') {
            return false;
        }
        let name = name(authority);
        is_loopback(&name)
            || self.allowed.iter().any(|allowed| {
                allowed.name == name
                    && (allowed.port.is_none() || allowed.port == authority.port_u16())
            })
    }

    fn allows_origin(&self, origin: &str) -> bool {
        if self.origins.iter().any(|named| named == origin) {
            return true;
        }
        let Some((scheme, authority)) = origin.split_once("://") else {
            return false;
        };
        matches!(scheme, "http" | "https")
            && authority
                .parse::<Authority>()
                .is_ok_and(|authority| self.allows(&authority))
    }
}

/// The layer: refuses what [`Hosts`] does not allow.
pub(super) async fn check(State(app): State<App>, request: Request, next: Next) -> Response {
    match app.hosts().check(request.uri(), request.headers()) {
        Ok(()) => next.run(request).await,
        Err(error) => refuse(request.uri().path(), error),
    }
}

fn host_refused() -> ApiError {
    ApiError::new(
        StatusCode::FORBIDDEN,
        "host_not_allowed",
        "this server is not known under the name in `Host`; the operator can name it in `http.allowed_hosts` or \
         `public_base_url`",
    )
}

/// The host in lower case, without the brackets of an IPv6 address and the dot of a full name.
fn name(authority: &Authority) -> String {
    let host = authority.host();
    let bare = host
        .strip_prefix('[')
        .and_then(|host| host.strip_suffix(']'))
        .unwrap_or(host);
    bare.strip_suffix('.').unwrap_or(bare).to_ascii_lowercase()
}

fn is_loopback(name: &str) -> bool {
    name == "localhost" || name.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback())
}
