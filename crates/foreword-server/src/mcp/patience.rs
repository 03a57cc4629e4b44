//! An answer that takes long becomes an event stream, so that no proxy between takes the connection for dead.
//!
//! Comments keep it alive until the answer comes, as its only event. Whoever reads only JSON waits without them.

use std::{pin::Pin, time::Duration};

use axum::{
    body::{Body, BodyDataStream},
    response::{IntoResponse, Response},
};
use bytes::Bytes;
use futures::{StreamExt, stream};
use http::{HeaderValue, header};
use tokio::time::{Interval, interval, timeout};

use super::accept::{EVENT_STREAM, as_event};

/// How long an answer may take before its client gets an event stream.
const PATIENCE: Duration = Duration::from_secs(10);
/// How often the stream shows that it is alive; proxies give up after a minute or more.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

const COMMENT: &[u8] = b": still running\n\n";

type Answer = Pin<Box<dyn Future<Output = Response> + Send>>;

/// The answer, or the beginning of a stream in which it will come. Dropping the stream drops `answer`.
pub(super) async fn stream_if_slow(mut answer: Answer) -> Response {
    if let Ok(answer) = timeout(PATIENCE, &mut answer).await {
        return answer;
    }
    let events = stream::unfold(
        Stage::Waiting(answer, interval(KEEP_ALIVE)),
        |stage| async move {
            match stage {
                Stage::Waiting(mut answer, mut ticks) => tokio::select! {
                    biased;
                    answer = &mut answer => {
                        let mut body = as_event(answer).await.into_data_stream();
                        body.next().await.map(|data| (data, Stage::Answering(body)))
                    }
                    _ = ticks.tick() => {
                        let comment = Ok(Bytes::from_static(COMMENT));
                        Some((comment, Stage::Waiting(answer, ticks)))
                    }
                },
                Stage::Answering(mut body) => {
                    body.next().await.map(|data| (data, Stage::Answering(body)))
                }
            }
        },
    );
    let headers = [
        (header::CONTENT_TYPE, EVENT_STREAM),
        (header::CACHE_CONTROL, HeaderValue::from_static("no-cache")),
    ];
    (headers, Body::from_stream(events)).into_response()
}

enum Stage {
    Waiting(Answer, Interval),
    Answering(BodyDataStream),
}

#[cfg(test)]
mod tests {
    use axum::body::to_bytes;

    use super::*;

    async fn after(seconds: u64) -> Response {
        stream_if_slow(Box::pin(async move {
            tokio::time::sleep(Duration::from_secs(seconds)).await;
            let headers = [(header::CONTENT_TYPE, "application/json")];
            (http::StatusCode::BAD_REQUEST, headers, "{}").into_response()
        }))
        .await
    }

    #[tokio::test(start_paused = true)]
    async fn only_what_is_slow_becomes_a_stream() {
        let quick = after(9).await;
        assert_eq!(quick.status(), 400);
        assert_eq!(quick.headers()["content-type"], "application/json");
        let slow = after(11).await;
        assert_eq!(slow.status(), 200);
        assert_eq!(slow.headers()["content-type"], EVENT_STREAM);
    }

    #[tokio::test(start_paused = true)]
    async fn a_stream_shows_that_it_lives_until_its_only_event() {
        let body = after(41).await.into_body();
        let text = to_bytes(body, 1000).await.unwrap();
        let comment = ": still running\n\n";
        let expected = format!("{}event: message\ndata: {{}}\n\n", comment.repeat(3));
        assert_eq!(text, expected);
    }
}
