//! A small HTTP/1.1 client for one thing: asking the same over kept connections, as fast as answers come or at a pace.

use std::{
    net::SocketAddr,
    time::{Duration, Instant},
};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

/// A whole request, head and body.
#[derive(Clone)]
pub(crate) struct Request(Vec<u8>);

impl Request {
    pub(crate) fn initialize(chat: &str) -> Self {
        Self::post(
            chat,
            "",
            r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"bench","version":"1"}}}"#,
        )
    }

    pub(crate) fn discover(chat: &str) -> Self {
        Self::post(
            chat,
            "mcp-protocol-version: 2026-07-28\r\nmcp-method: server/discover\r\n",
            r#"{"jsonrpc":"2.0","id":1,"method":"server/discover","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"bench","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}}}"#,
        )
    }

    pub(crate) fn list_tools(chat: &str) -> Self {
        Self::post(
            chat,
            "",
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{}}"#,
        )
    }

    pub(crate) fn system_prompt(chat: &str) -> Self {
        Self(
            format!("GET /system-prompt HTTP/1.1\r\nhost: localhost\r\nx-chat-id: {chat}\r\n\r\n")
                .into_bytes(),
        )
    }

    pub(crate) fn completion() -> Self {
        let body = r#"{"model":"m","messages":[{"role":"user","content":"Hello?"}]}"#;
        let length = body.len();
        let head = "POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json";
        Self(format!("{head}\r\ncontent-length: {length}\r\n\r\n{body}").into_bytes())
    }

    fn post(chat: &str, headers: &str, body: &str) -> Self {
        let length = body.len();
        Self(
            format!(
                "POST /mcp HTTP/1.1\r\nhost: localhost\r\nx-chat-id: {chat}\r\ncontent-type: application/json\r\n\
                 accept: application/json, text/event-stream\r\n{headers}content-length: {length}\r\n\r\n{body}"
            )
            .into_bytes(),
        )
    }
}

/// One answer's body.
pub(crate) async fn once(address: SocketAddr, request: &Request) -> Vec<u8> {
    let mut connection = Connection::open(address).await;
    connection.ask(request).await;
    connection.body().to_vec()
}

/// Some connections to one server.
pub(crate) struct Load {
    address: SocketAddr,
    connections: usize,
}

/// How many answers came in which time.
pub(crate) struct Rate {
    answers: usize,
    elapsed: Duration,
}

impl Rate {
    pub(crate) fn per_second(&self) -> f64 {
        self.answers as f64 / self.elapsed.as_secs_f64()
    }
}

/// How long each answer took, counted from when it should have been asked for.
pub(crate) struct Latencies(Vec<Duration>);

impl Latencies {
    pub(crate) fn percentile(&self, share: f64) -> Duration {
        let mut latencies = self.0.clone();
        latencies.sort_unstable();
        latencies[(latencies.len() as f64 * share) as usize]
    }
}

impl Load {
    pub(crate) fn new(address: SocketAddr, connections: usize) -> Self {
        Self {
            address,
            connections,
        }
    }

    /// Asks again and again for as long as `duration`.
    pub(crate) async fn run(&self, duration: Duration, request: &Request) -> Rate {
        let started = Instant::now();
        let tasks = (0..self.connections).map(|_| {
            let (address, request) = (self.address, request.clone());
            tokio::spawn(async move {
                let mut connection = Connection::open(address).await;
                let mut answers = 0;
                while started.elapsed() < duration {
                    connection.ask(&request).await;
                    answers += 1;
                }
                answers
            })
        });
        let answers = sum(tasks.collect()).await;
        Rate {
            answers,
            elapsed: started.elapsed(),
        }
    }

    /// Asks once for each of `names`.
    pub(crate) async fn run_each(
        &self,
        names: Vec<String>,
        request_of: impl Fn(&str) -> Request,
    ) -> Rate {
        let requests: Vec<Request> = names.iter().map(|name| request_of(name)).collect();
        let shares = requests.chunks(requests.len().div_ceil(self.connections));
        let started = Instant::now();
        let tasks = shares.map(|share| {
            let (address, share) = (self.address, share.to_vec());
            tokio::spawn(async move {
                let mut connection = Connection::open(address).await;
                for request in &share {
                    connection.ask(request).await;
                }
                share.len()
            })
        });
        let answers = sum(tasks.collect()).await;
        Rate {
            answers,
            elapsed: started.elapsed(),
        }
    }

    /// Asks `rate` times a second, whether or not answers come in time.
    pub(crate) async fn paced(
        &self,
        duration: Duration,
        rate: f64,
        request: &Request,
    ) -> Latencies {
        let interval = Duration::from_secs_f64(self.connections as f64 / rate);
        let started = Instant::now();
        let tasks: Vec<_> = (0..self.connections)
            .map(|at| {
                let (address, request) = (self.address, request.clone());
                let mut due = started + interval.mul_f64(at as f64 / self.connections as f64);
                tokio::spawn(async move {
                    let mut connection = Connection::open(address).await;
                    let mut latencies = Vec::new();
                    while due < started + duration {
                        wait_until(due).await;
                        connection.ask(&request).await;
                        latencies.push(due.elapsed());
                        due += interval;
                    }
                    latencies
                })
            })
            .collect();
        let mut latencies = Vec::new();
        for task in tasks {
            latencies.extend(task.await.expect("asking does not panic"));
        }
        Latencies(latencies)
    }
}

/// Timers are good to a millisecond only; the rest is spent giving way to others.
async fn wait_until(due: Instant) {
    let coarse = Duration::from_millis(2);
    if let Some(wait) = due.checked_duration_since(Instant::now() + coarse) {
        tokio::time::sleep(wait).await;
    }
    while Instant::now() < due {
        tokio::task::yield_now().await;
    }
}

async fn sum(tasks: Vec<tokio::task::JoinHandle<usize>>) -> usize {
    let mut answers = 0;
    for task in tasks {
        answers += task.await.expect("asking does not panic");
    }
    answers
}

struct Connection {
    stream: TcpStream,
    buffer: Vec<u8>,
    head: usize,
}

impl Connection {
    async fn open(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address)
            .await
            .expect("the server listens");
        stream
            .set_nodelay(true)
            .expect("a fresh socket takes options");
        Self {
            stream,
            buffer: Vec::new(),
            head: 0,
        }
    }

    /// Sends `request` and reads its answer to the end.
    async fn ask(&mut self, request: &Request) {
        self.stream
            .write_all(&request.0)
            .await
            .expect("the server stays");
        self.buffer.clear();
        let (head, length) = loop {
            self.read().await;
            if let Some(found) = head_and_length(&self.buffer) {
                break found;
            }
        };
        while self.buffer.len() < head + length {
            self.read().await;
        }
        self.head = head;
    }

    async fn read(&mut self) {
        self.buffer.reserve(64 << 10);
        let read = self
            .stream
            .read_buf(&mut self.buffer)
            .await
            .expect("the server stays");
        assert_ne!(read, 0, "the server closed the connection");
    }

    fn body(&self) -> &[u8] {
        &self.buffer[self.head..]
    }
}

/// Where the body begins and how long it is; none while the head is incomplete.
fn head_and_length(buffer: &[u8]) -> Option<(usize, usize)> {
    let head = buffer.windows(4).position(|window| window == b"\r\n\r\n")? + 4;
    let text = std::str::from_utf8(&buffer[..head]).expect("heads are ASCII");
    assert!(
        text.starts_with("HTTP/1.1 200"),
        "{}",
        String::from_utf8_lossy(buffer)
    );
    let (_, rest) = text
        .split_once("content-length: ")
        .expect("answers say their length");
    let length = rest
        .split("\r\n")
        .next()
        .and_then(|length| length.parse().ok());
    Some((head, length.expect("a length is a number")))
}
