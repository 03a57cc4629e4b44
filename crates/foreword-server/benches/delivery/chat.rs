//! What the chat endpoint adds to an upstream that answers at once, beside the least that passes the same on: a reverse proxy of axum
//! and reqwest.

use std::{
    net::SocketAddr,
    sync::Mutex,
    time::{Duration, Instant},
};

use axum::{
    Router,
    body::Body,
    extract::{Request, State},
    response::{IntoResponse, Response},
    routing::post,
};
use bytes::Bytes;
use futures::StreamExt;
use http::header::CONTENT_TYPE;
use tokio::{net::TcpListener, sync::mpsc};

use super::{CONNECTIONS, Report, load::Load, median, servers::Server};

/// How many requests a second, which leaves the machine idle for most of the time.
const PACE: f64 = 400.0;

/// How many pieces of a stream are timed.
const PIECES: usize = 300;

/// How many rounds latencies are compared in; the percentiles are those of the median round.
const ROUNDS: usize = 5;

/// Compares latencies at the same pace, in turns.
pub(crate) async fn measure(round: Duration, report: &mut Report) {
    foreword_server::choose_tls();
    let upstream = Server::start(super::Kind::Upstream);
    let foreword = Server::start_before(super::Kind::Foreword, upstream.address);
    let proxy = Server::start_before(super::Kind::Proxy, upstream.address);
    let request = super::Request::completion();
    let mut found = [const { (Vec::new(), Vec::new()) }; 3];
    for _ in 0..ROUNDS {
        for (server, (p50, p99)) in [&upstream, &proxy, &foreword].into_iter().zip(&mut found) {
            let load = Load::new(server.address, CONNECTIONS);
            let latencies = load.paced(round, PACE, &request).await;
            let milliseconds = |share| latencies.percentile(share).as_secs_f64() * 1_000.0;
            p50.push(milliseconds(0.5));
            p99.push(milliseconds(0.99));
        }
    }
    let [direct, proxied, ours] = found.map(|(p50, p99)| (median(p50), median(p99)));
    println!(
        "chat completions at {PACE}/s, p50 / p99 in ms: upstream {:.2} / {:.2}, reverse proxy {:.2} / {:.2}, foreword {:.2} / {:.2}",
        direct.0, direct.1, proxied.0, proxied.1, ours.0, ours.1
    );
    report.at_most("  added at the median, ms", ours.0 - direct.0, Some(1.0));
    report.at_most("  added at 99 of 100, ms", ours.1 - direct.1, Some(5.0));
    let ratio = (ours.0 - direct.0) / (proxied.0 - direct.0);
    report.at_most("  added / added by the reverse proxy", ratio, None);
    let delay = pieces().await;
    report.at_most("  a piece of a stream passes after, ms", delay, Some(2.0));
}

/// How long a piece takes through Foreword, at the median, in milliseconds.
async fn pieces() -> f64 {
    let (send, receive) = mpsc::channel::<Bytes>(1);
    let listener = listen().await;
    let address = listener
        .local_addr()
        .expect("a bound socket has an address");
    let receive: &'static Mutex<_> = Box::leak(Box::new(Mutex::new(Some(receive))));
    let stream = async move || {
        let receive = receive.lock().expect("nobody panics here").take();
        let pieces = futures::stream::unfold(receive, async |receive| {
            let mut receive = receive?;
            let piece = receive.recv().await?;
            Some((Ok::<_, std::io::Error>(piece), Some(receive)))
        });
        let events = [(CONTENT_TYPE, "text/event-stream")];
        (events, Body::from_stream(pieces)).into_response()
    };
    let router = Router::new().route("/v1/chat/completions", post(stream));
    tokio::spawn(async move { axum::serve(listener, router).await });
    let foreword = Server::start_before(super::Kind::Foreword, address);
    let url = format!("http://{}/v1/chat/completions", foreword.address);
    let request = reqwest::Client::new().post(url);
    let request = request.header(CONTENT_TYPE, "application/json");
    let answer = request.body("{\"messages\":[]}").send().await;
    let mut pieces = answer.expect("the server answers").bytes_stream();
    let mut delays = Vec::new();
    for _ in 0..PIECES {
        let started = Instant::now();
        let piece = Bytes::from_static(b"data: {\"choices\":[]}\n\n");
        send.send(piece).await.expect("the upstream listens");
        let piece = pieces.next().await.expect("the stream goes on");
        piece.expect("nothing breaks");
        delays.push(started.elapsed().as_secs_f64() * 1_000.0);
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    median(delays)
}

/// An upstream that answers at once.
pub(crate) fn upstream() -> Router {
    let answer = r#"{"choices":[{"index":0,"message":{"role":"assistant","content":"Hello."}}]}"#;
    // What is not read of a request would cost the connection.
    let answer = move |_: Bytes| async move { ([(CONTENT_TYPE, "application/json")], answer) };
    Router::new().route("/v1/chat/completions", post(answer))
}

/// Passes everything on to `upstream`, and answers back, piece by piece.
pub(crate) fn proxy(upstream: SocketAddr) -> Router {
    foreword_server::choose_tls();
    let client = reqwest::Client::new();
    Router::new()
        .fallback(pass_on)
        .with_state((client, upstream))
}

async fn pass_on(
    State((client, upstream)): State<(reqwest::Client, SocketAddr)>,
    request: Request,
) -> Response {
    let (mut parts, body) = request.into_parts();
    parts.headers.remove(http::header::HOST);
    let url = format!("http://{upstream}{}", parts.uri);
    let body = reqwest::Body::wrap_stream(body.into_data_stream());
    let asked = client.request(parts.method, url).headers(parts.headers);
    let answer = asked.body(body).send().await.expect("the upstream answers");
    let (status, headers) = (answer.status(), answer.headers().clone());
    (status, headers, Body::from_stream(answer.bytes_stream())).into_response()
}

async fn listen() -> TcpListener {
    let listener = TcpListener::bind("127.0.0.1:0").await;
    listener.expect("a free port exists")
}
