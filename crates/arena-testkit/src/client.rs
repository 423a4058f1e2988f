//! A minimal HTTP/1.1 client. It sends the test's bytes unchanged and returns the server's whole response.

use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Write};
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::time::Duration;

use serde_json::Value;

/// The time limit for a response. A test without a response in this time fails.
const TIMEOUT: Duration = Duration::from_secs(30);

/// A client of one server. Each request has a connection of its own.
#[derive(Debug, Clone, Copy)]
pub struct Client {
    address: SocketAddr,
    /// The local address of the client's connections; `None` means that the system chooses one.
    from: Option<IpAddr>,
    patience: Duration,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    pub status: u16,
    /// Headers in the order received: names in lower case, and values.
    pub headers: Vec<(String, String)>,
    /// The body, reassembled if it was chunked.
    pub body: Vec<u8>,
}

impl Answer {
    /// Reads an answer from a connection on which a request was sent. An answer to HEAD (`head_only`) has no body.
    ///
    /// # Errors
    /// If the connection ends before the answer does.
    pub fn read(reader: &mut impl BufRead, head_only: bool) -> std::io::Result<Answer> {
        let (status, headers) = read_head(reader)?;
        let header = |name: &str| headers.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str());
        let mut body = Vec::new();
        if head_only {
        } else if header("transfer-encoding") == Some("chunked") {
            while let Some(chunk) = read_chunk(reader)? {
                body.extend(chunk);
            }
        } else if let Some(length) = header("content-length").and_then(|length| length.parse().ok()) {
            body.resize(length, 0);
            reader.read_exact(&mut body)?;
        } else {
            reader.read_to_end(&mut body)?;
        }
        Ok(Answer { status, headers, body })
    }

    pub fn text(&self) -> &str {
        std::str::from_utf8(&self.body).expect("the body is UTF-8")
    }

    #[track_caller]
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("invalid JSON ({error}): {}", self.text()))
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    /// Returns the body as JSON; the status must be 200.
    #[track_caller]
    pub fn ok(&self) -> Value {
        assert_eq!(self.status, 200, "{}", self.text());
        self.json()
    }

    /// Returns the status and `code` of a refusal; the body must have both `error` and `code`.
    #[track_caller]
    pub fn refusal(&self) -> (u16, String) {
        let body = self.json();
        assert!(body["error"].as_str().is_some_and(|error| !error.is_empty()), "no error: {body}");
        (self.status, body["code"].as_str().unwrap_or_else(|| panic!("no code: {body}")).to_owned())
    }
}

fn connect_from(from: IpAddr, to: SocketAddr) -> std::io::Result<TcpStream> {
    use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, connect, socket_with};
    let family = if from.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let socket = socket_with(family, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
    bind(&socket, &SocketAddr::new(from, 0))?;
    connect(&socket, &to)?;
    Ok(socket.into())
}

impl Client {
    pub fn new(address: SocketAddr) -> Client {
        Client { address, from: None, patience: TIMEOUT }
    }

    /// Returns the same client with another time limit for answers.
    pub fn patient_for(self, patience: Duration) -> Client {
        Client { patience, ..self }
    }

    /// Returns the same client with connections from this local address, such as 127.0.0.2.
    pub fn from_address(self, address: IpAddr) -> Client {
        Client { from: Some(address), ..self }
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    pub fn get(&self, path: &str) -> Answer {
        self.request("GET", path, &[], b"")
    }

    pub fn post(&self, path: &str, body: &Value) -> Answer {
        self.request("POST", path, &[], body.to_string().as_bytes())
    }

    /// Sends a JSON value by POST with an idempotency key.
    pub fn post_once(&self, path: &str, key: &str, body: &Value) -> Answer {
        self.request("POST", path, &[("Idempotency-Key", key)], body.to_string().as_bytes())
    }

    pub fn request(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) -> Answer {
        self.try_request(method, path, headers, body).expect("an answer")
    }

    /// Sends a request, as [`Client::request`], to a server that may stop at any time.
    ///
    /// # Errors
    /// If there is no connection, or no answer in time.
    pub fn try_request(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> std::io::Result<Answer> {
        let mut head = format!("{method} {path} HTTP/1.1\r\nHost: arena\r\nConnection: close\r\n");
        for (name, value) in headers {
            let _ = write!(head, "{name}: {value}\r\n");
        }
        if method == "POST" {
            if !headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("content-type")) {
                head.push_str("Content-Type: application/json\r\n");
            }
            let _ = write!(head, "Content-Length: {}\r\n", body.len());
        }
        head.push_str("\r\n");
        self.raw(&[head.as_bytes(), body].concat())
    }

    /// Sends any bytes and returns the answer.
    ///
    /// # Errors
    /// If the connection fails, or the server sends no complete answer in time.
    pub fn raw(&self, bytes: &[u8]) -> std::io::Result<Answer> {
        let mut stream = self.connect()?;
        // The server may respond and close the connection before it has read the whole request. A write error
        // is therefore returned only if there is no response.
        let written = stream.write_all(bytes);
        let head_only = bytes.starts_with(b"HEAD ");
        Answer::read(&mut BufReader::new(stream), head_only).map_err(|error| written.err().unwrap_or(error))
    }

    /// Opens a connection to the server.
    ///
    /// # Errors
    /// If the server doesn't accept the connection.
    pub fn connect(&self) -> std::io::Result<TcpStream> {
        let stream = match self.from {
            None => TcpStream::connect(self.address)?,
            Some(from) => connect_from(from, self.address)?,
        };
        stream.set_read_timeout(Some(self.patience))?;
        stream.set_write_timeout(Some(self.patience))?;
        stream.set_nodelay(true)?;
        Ok(stream)
    }

    /// Returns the value of a counter in the server's metrics.
    ///
    /// # Panics
    /// If there is no such counter.
    pub fn counter(&self, name: &str) -> u64 {
        let metrics = self.get("/metrics");
        let value = metrics.text().lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        value.unwrap_or_else(|| panic!("no {name}: {}", metrics.text())).parse().expect("a number")
    }

    /// Creates a session and returns its id and invites.
    pub fn create(&self, challenge: &str) -> (String, Vec<String>) {
        let session = self.post(&format!("/api/challenges/{challenge}"), &serde_json::json!({})).ok();
        let invites = session["invites"].as_array().expect("invites are a list");
        let text = |value: &Value| value.as_str().expect("a text").to_owned();
        (text(&session["id"]), invites.iter().map(text).collect())
    }

    /// Creates a session in which all players have joined, without user ids.
    pub fn seated(&self, challenge: &str) -> (String, Vec<String>) {
        let (session, invites) = self.create(challenge);
        invites.iter().for_each(|invite| drop(self.join(invite).ok()));
        (session, invites)
    }

    /// Creates a session in which these users have joined.
    pub fn seated_as<'u>(&self, challenge: &str, users: impl IntoIterator<Item = &'u str>) -> (String, Vec<String>) {
        let (session, invites) = self.create(challenge);
        for (invite, user) in invites.iter().zip(users) {
            self.post("/api/arena/join", &serde_json::json!({ "invite": invite, "userId": user })).ok();
        }
        (session, invites)
    }

    pub fn join(&self, invite: &str) -> Answer {
        self.post("/api/arena/join", &serde_json::json!({ "invite": invite }))
    }

    pub fn act(&self, session: &str, from: &str, method: &str, content: &str) -> Answer {
        let body =
            serde_json::json!({ "challengeId": session, "from": from, "messageType": method, "content": content });
        self.post("/api/arena/message", &body)
    }

    pub fn chat(&self, session: &str, from: &str, content: &str) -> Answer {
        self.post("/api/chat/send", &serde_json::json!({ "channel": session, "from": from, "content": content }))
    }

    /// Opens an event stream. With `last_event_id`, the stream continues after that event.
    pub fn stream(&self, path: &str, last_event_id: Option<&str>) -> EventStream {
        self.stream_with(path, last_event_id.map(|id| ("Last-Event-ID", id)))
    }

    pub fn stream_with(&self, path: &str, header: Option<(&str, &str)>) -> EventStream {
        self.try_stream(path, header).expect("a stream")
    }

    /// Opens an event stream, as [`Client::stream_with`], on a server that may be stopped.
    ///
    /// # Errors
    /// If there is no connection, or no head of an answer in time.
    pub fn try_stream(&self, path: &str, header: Option<(&str, &str)>) -> std::io::Result<EventStream> {
        let mut stream = self.connect()?;
        let header = header.map(|(name, value)| format!("{name}: {value}\r\n")).unwrap_or_default();
        write!(stream, "GET {path} HTTP/1.1\r\nHost: arena\r\n{header}\r\n")?;
        let mut reader = BufReader::new(stream);
        let (status, headers) = read_head(&mut reader)?;
        Ok(EventStream { status, headers, reader, pending: Vec::new() })
    }
}

pub struct EventStream {
    pub status: u16,
    /// Headers: names in lower case, and values.
    pub headers: Vec<(String, String)>,
    reader: BufReader<TcpStream>,
    pending: Vec<u8>,
}

impl EventStream {
    /// Returns the id and data of the next event; `None` when the server has ended the stream. Skips comments.
    pub fn next_event(&mut self) -> Option<(String, Value)> {
        let (id, data) = self.next_text()?;
        Some((id, serde_json::from_str(&data).expect("events are JSON")))
    }

    /// Returns the next event as text.
    pub fn next_text(&mut self) -> Option<(String, String)> {
        loop {
            let event = self.next_block()?;
            let field = |name: &str| event.lines().find_map(|line| line.strip_prefix(name)).map(str::to_owned);
            if let Some(data) = field("data: ") {
                return Some((field("id: ").unwrap_or_default(), data));
            }
        }
    }

    /// Returns the next event or comment as received, without the empty line after it.
    pub fn next_block(&mut self) -> Option<String> {
        loop {
            if let Some(end) = self.pending.windows(2).position(|pair| pair == b"\n\n") {
                let mut block: Vec<u8> = self.pending.drain(..end + 2).collect();
                block.truncate(end);
                return Some(String::from_utf8(block).expect("events are UTF-8"));
            }
            let chunk = read_chunk(&mut self.reader).ok().flatten()?;
            self.pending.extend(chunk);
        }
    }
}

type Head = (u16, Vec<(String, String)>);

fn read_head(reader: &mut impl BufRead) -> std::io::Result<Head> {
    let malformed = |line: &str| std::io::Error::other(format!("invalid HTTP: {line:?}"));
    let mut line = String::new();
    reader.read_line(&mut line)?;
    let status = line.split(' ').nth(1).and_then(|status| status.parse().ok()).ok_or_else(|| malformed(&line))?;
    let mut headers = Vec::new();
    loop {
        line.clear();
        reader.read_line(&mut line)?;
        let Some((name, value)) = line.trim_end().split_once(": ") else { break };
        headers.push((name.to_ascii_lowercase(), value.to_owned()));
    }
    Ok((status, headers))
}

/// Reads a chunk of a chunked body; `None` is the last chunk.
fn read_chunk(reader: &mut impl BufRead) -> std::io::Result<Option<Vec<u8>>> {
    let mut line = String::new();
    if reader.read_line(&mut line)? == 0 {
        return Err(std::io::ErrorKind::UnexpectedEof.into());
    }
    let length = usize::from_str_radix(line.trim_end(), 16).map_err(std::io::Error::other)?;
    let mut chunk = vec![0; length + 2];
    reader.read_exact(&mut chunk)?;
    chunk.truncate(length);
    Ok((length > 0).then_some(chunk))
}
