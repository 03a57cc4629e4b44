//! An API of a model that notes what it is asked, for the settings of the chat endpoints.

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    sync::{Arc, Mutex},
    time::Duration,
};

use socket2::{Domain, Socket, Type};

/// Answers each request with a completion or a list of models, and the model `silent` never.
pub(crate) struct Upstream {
    pub(crate) address: SocketAddr,
    asked: Arc<Mutex<Vec<String>>>,
}

impl Upstream {
    pub(crate) fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let upstream = Self {
            address: listener.local_addr().unwrap(),
            asked: Arc::default(),
        };
        let asked = Arc::clone(&upstream.asked);
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let asked = Arc::clone(&asked);
                std::thread::spawn(move || answer(stream, &asked));
            }
        });
        upstream
    }

    /// The last request, head and body.
    pub(crate) fn asked(&self) -> String {
        self.asked
            .lock()
            .unwrap()
            .last()
            .cloned()
            .unwrap_or_default()
    }
}

fn answer(stream: TcpStream, asked: &Mutex<Vec<String>>) {
    let mut reader = BufReader::new(stream);
    let (mut request, mut length) = (String::new(), 0);
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).unwrap_or(0) == 0 {
            return;
        }
        if let Some(value) = line.to_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().unwrap();
        }
        request.push_str(&line);
        if line == "\r\n" {
            break;
        }
    }
    let mut body = vec![0; length];
    if reader.read_exact(&mut body).is_err() {
        return;
    }
    request.push_str(std::str::from_utf8(&body).unwrap());
    let is_silent = request.contains("\"silent\"");
    let is_list = request.starts_with("GET ");
    asked.lock().unwrap().push(request);
    let mut stream = reader.into_inner();
    if is_silent {
        // Until the other side goes.
        let _ = stream.read(&mut [0]);
        return;
    }
    let body = if is_list {
        r#"{"data":[{"id":"m"}]}"#
    } else {
        r#"{"choices":[{"message":{"content":"Hello."}}]}"#
    };
    let length = body.len();
    let _ = write!(
        stream,
        "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}"
    );
}

/// Where connecting takes for ever: nobody accepts, and there is no room to wait in.
pub(crate) struct Full {
    pub(crate) address: SocketAddr,
    _waiting: Vec<TcpStream>,
    _listener: Socket,
}

impl Full {
    pub(crate) fn start() -> Self {
        let listener = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
        let any = SocketAddr::from(([127, 0, 0, 1], 0));
        listener.bind(&any.into()).unwrap();
        listener.listen(0).unwrap();
        let address = listener.local_addr().unwrap().as_socket().unwrap();
        let waiting = (0..4)
            .filter_map(|_| TcpStream::connect_timeout(&address, Duration::from_millis(300)).ok());
        Self {
            address,
            _waiting: waiting.collect(),
            _listener: listener,
        }
    }
}
