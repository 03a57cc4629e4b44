//! The HTTP client of connections: rmcp's, with headers that are made for each call, and redirects within one origin only.

use std::{collections::HashMap, sync::Arc, time::Duration};

use futures::stream::BoxStream;
use http::{HeaderName, HeaderValue, header};
use reqwest::{Client, redirect::Policy};
use rmcp::{
    model::{ClientJsonRpcMessage, ClientRequest, JsonRpcMessage},
    transport::streamable_http_client::{
        SseError, StreamableHttpClient, StreamableHttpError, StreamableHttpPostResponse,
        StreamableHttpResponseLimits,
    },
};
use sse_stream::Sse;

use super::config::Remote;
use crate::choose_tls;

/// How long it may take to reach a server.
const CONNECT: Duration = Duration::from_secs(10);

/// How many redirects are followed.
const REDIRECTS: usize = 3;

/// How long a server may take to show that it speaks the older transport.
const LOOK: Duration = Duration::from_secs(3);

/// Headers of one call, carried in its extensions.
#[derive(Debug, Clone)]
pub(super) struct CallHeaders(pub(super) Vec<(HeaderName, HeaderValue)>);

/// rmcp's client on reqwest, which puts [`CallHeaders`] in.
#[derive(Clone)]
pub(super) struct RemoteClient(Client);

impl RemoteClient {
    pub(super) fn new(remote: &Remote) -> Result<Self, reqwest::Error> {
        // A connection's keys must not follow a redirect to another server.
        let within_its_origin = Policy::custom(|attempt| {
            let origin = attempt.previous().first().map(reqwest::Url::origin);
            if origin.is_some_and(|origin| origin != attempt.url().origin()) {
                attempt.error("it redirects to another server")
            } else if attempt.previous().len() > REDIRECTS {
                attempt.error("it redirects too often")
            } else {
                attempt.follow()
            }
        });
        choose_tls();
        let client = Client::builder()
            .user_agent(concat!("foreword/", env!("CARGO_PKG_VERSION")))
            .default_headers(remote.headers.iter().cloned().collect())
            .connect_timeout(CONNECT)
            .redirect(within_its_origin)
            .build()?;
        Ok(Self(client))
    }

    /// Whether there is a server of the older HTTP+SSE transport, which opens a stream to whoever asks.
    pub(super) async fn speaks_the_older_transport(&self, remote: &Remote) -> bool {
        let asked = self
            .0
            .get(remote.url.clone())
            .header(header::ACCEPT, "text/event-stream")
            .timeout(LOOK)
            .send();
        let looking = async {
            let mut answer = asked
                .await
                .ok()
                .filter(|answer| answer.status().is_success())?;
            let kind = answer.headers().get(header::CONTENT_TYPE)?.to_str().ok()?;
            if !kind.starts_with("text/event-stream") {
                return None;
            }
            // Its first event says where to send messages; others may open streams too.
            let first = answer.chunk().await.ok()??;
            let first = String::from_utf8_lossy(&first[..first.len().min(1024)]).into_owned();
            first.contains("event: endpoint").then_some(())
        };
        let looked = tokio::time::timeout(LOOK, looking).await;
        looked.is_ok_and(|found| found.is_some())
    }
}

type Outcome<T> = Result<T, StreamableHttpError<reqwest::Error>>;
type Headers = HashMap<HeaderName, HeaderValue>;

/// rmcp logs errors, and a URL may hold a key.
fn without_url(error: StreamableHttpError<reqwest::Error>) -> StreamableHttpError<reqwest::Error> {
    match error {
        StreamableHttpError::Client(error) => StreamableHttpError::Client(error.without_url()),
        error => error,
    }
}

impl StreamableHttpClient for RemoteClient {
    type Error = reqwest::Error;

    async fn post_message(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session_id: Option<Arc<str>>,
        auth_header: Option<String>,
        headers: Headers,
    ) -> Outcome<StreamableHttpPostResponse> {
        let limits = StreamableHttpResponseLimits::default();
        self.post_message_with_response_limits(
            uri,
            message,
            session_id,
            auth_header,
            headers,
            limits,
        )
        .await
    }

    async fn post_message_with_response_limits(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session_id: Option<Arc<str>>,
        auth_header: Option<String>,
        mut headers: Headers,
        limits: StreamableHttpResponseLimits,
    ) -> Outcome<StreamableHttpPostResponse> {
        if let JsonRpcMessage::Request(request) = &message
            && let ClientRequest::CallToolRequest(call) = &request.request
            && let Some(CallHeaders(own)) = call.extensions.get()
        {
            headers.extend(own.iter().cloned());
        }
        self.0
            .post_message_with_response_limits(
                uri,
                message,
                session_id,
                auth_header,
                headers,
                limits,
            )
            .await
            .map_err(without_url)
    }

    async fn delete_session(
        &self,
        uri: Arc<str>,
        session_id: Arc<str>,
        auth_header: Option<String>,
        headers: Headers,
    ) -> Outcome<()> {
        self.0
            .delete_session(uri, session_id, auth_header, headers)
            .await
            .map_err(without_url)
    }

    async fn get_stream(
        &self,
        uri: Arc<str>,
        session_id: Option<Arc<str>>,
        last_event_id: Option<String>,
        auth_header: Option<String>,
        headers: Headers,
    ) -> Outcome<BoxStream<'static, Result<Sse, SseError>>> {
        self.0
            .get_stream(uri, session_id, last_event_id, auth_header, headers)
            .await
            .map_err(without_url)
    }

    async fn get_stream_with_max_sse_event_size(
        &self,
        uri: Arc<str>,
        session_id: Option<Arc<str>>,
        last_event_id: Option<String>,
        auth_header: Option<String>,
        headers: Headers,
        max_sse_event_size: usize,
    ) -> Outcome<BoxStream<'static, Result<Sse, SseError>>> {
        self.0
            .get_stream_with_max_sse_event_size(
                uri,
                session_id,
                last_event_id,
                auth_header,
                headers,
                max_sse_event_size,
            )
            .await
            .map_err(without_url)
    }
}
