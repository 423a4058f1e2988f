//! A minimal keep-alive HTTP/1.1 connection: hyper's client connection, polled by the task that waits for the answer,
//! so that a request needs no switch between tasks.
//!
//! Scenarios define the requests; the module `stream` reads event streams.

use std::future::poll_fn;
use std::net::SocketAddr;
use std::pin::{Pin, pin};
use std::task::Poll;

use anyhow::{Context as _, bail};
use bytes::{Bytes, BytesMut};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::client::conn::http1::{self, SendRequest};
use hyper::header::{ACCEPT, CONTENT_TYPE, HOST, HeaderValue};
use hyper::{Method, Request, Response, StatusCode, Uri};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;

type Driver = http1::Connection<TokioIo<TcpStream>, Full<Bytes>>;

/// The largest number of characters of a refused request's answer in an error message.
const EXCERPT: usize = 200;

/// A connection for sequential requests.
pub struct Connection {
    sender: SendRequest<Full<Bytes>>,
    socket: Socket,
    host: HeaderValue,
}

/// The part of a connection that reads and writes while it is polled.
pub struct Socket {
    driver: Pin<Box<Driver>>,
    closed: bool,
}

pub struct Answer {
    pub status: StatusCode,
    pub body: Bytes,
}

impl Answer {
    /// Returns the body; the status must be 200.
    ///
    /// # Errors
    /// If the status isn't 200. The error contains `what`, the status and the start of the body.
    pub fn ok(self, what: &str) -> anyhow::Result<Bytes> {
        if self.status == StatusCode::OK {
            return Ok(self.body);
        }
        let text = String::from_utf8_lossy(&self.body);
        let excerpt: String = text.chars().take(EXCERPT).collect();
        bail!("{what} was answered with {}: {excerpt}", self.status.as_u16());
    }
}

impl Connection {
    /// Connects to a server.
    ///
    /// # Errors
    /// If the server can't be reached.
    pub async fn open(address: SocketAddr) -> anyhow::Result<Connection> {
        let stream = TcpStream::connect(address).await.with_context(|| format!("could not connect to {address}"))?;
        stream.set_nodelay(true).context("could not set TCP_NODELAY")?;
        let (sender, driver) = http1::handshake(TokioIo::new(stream)).await.context("HTTP handshake")?;
        Ok(Connection {
            sender,
            socket: Socket { driver: Box::pin(driver), closed: false },
            host: HeaderValue::from_str(&address.to_string()).context("address as header")?,
        })
    }

    /// Sends a GET request and reads the complete answer.
    ///
    /// # Errors
    /// If the connection breaks.
    pub async fn get(&mut self, target: &str) -> anyhow::Result<Answer> {
        let request = self.request(Method::GET, target, Bytes::new())?;
        self.exchange(request).await
    }

    /// Sends a JSON body by POST and reads the complete answer.
    ///
    /// # Errors
    /// If the connection breaks.
    pub async fn post(&mut self, target: &str, body: impl Into<Bytes>) -> anyhow::Result<Answer> {
        let mut request = self.request(Method::POST, target, body.into())?;
        request.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        self.exchange(request).await
    }

    /// Sends a GET request and returns the body for reading in pieces.
    ///
    /// # Errors
    /// If the connection breaks, or the status isn't 200.
    pub async fn subscribe(mut self, target: &str) -> anyhow::Result<(Socket, Incoming)> {
        let mut request = self.request(Method::GET, target, Bytes::new())?;
        request.headers_mut().insert(ACCEPT, HeaderValue::from_static("text/event-stream"));
        let response = self.send(request).await?;
        if response.status() != StatusCode::OK {
            let status = response.status();
            let body = collect(&mut self.socket, response.into_body()).await?;
            Answer { status, body }.ok("the subscription")?;
            bail!("unreachable: the status is 200");
        }
        Ok((self.socket, response.into_body()))
    }

    fn request(&self, method: Method, target: &str, body: Bytes) -> anyhow::Result<Request<Full<Bytes>>> {
        let uri = Uri::try_from(target).with_context(|| format!("`{target}` isn't a request target"))?;
        let mut request = Request::new(Full::new(body));
        *request.method_mut() = method;
        *request.uri_mut() = uri;
        request.headers_mut().insert(HOST, self.host.clone());
        Ok(request)
    }

    async fn exchange(&mut self, request: Request<Full<Bytes>>) -> anyhow::Result<Answer> {
        let response = self.send(request).await?;
        let status = response.status();
        let body = collect(&mut self.socket, response.into_body()).await?;
        Ok(Answer { status, body })
    }

    async fn send(&mut self, request: Request<Full<Bytes>>) -> anyhow::Result<Response<Incoming>> {
        let Connection { sender, socket, .. } = self;
        socket
            .drive(async {
                sender.ready().await?;
                sender.send_request(request).await
            })
            .await
            .context("the connection broke during a request")
    }
}

impl Socket {
    /// Awaits `waiting`, and polls the connection in the meantime.
    pub async fn drive<T>(&mut self, waiting: impl Future<Output = T>) -> T {
        let mut waiting = pin!(waiting);
        poll_fn(|cx| {
            if let Poll::Ready(done) = waiting.as_mut().poll(cx) {
                return Poll::Ready(done);
            }
            if !self.closed {
                // The connection's error is ignored here, because `waiting` returns it with a better message.
                self.closed = self.driver.as_mut().poll(cx).is_ready();
            }
            // `waiting` is polled after the connection, so it gets the data just read without another wakeup.
            waiting.as_mut().poll(cx)
        })
        .await
    }
}

/// Reads a body to its end. A body that arrives in one piece isn't copied.
async fn collect(socket: &mut Socket, mut body: Incoming) -> anyhow::Result<Bytes> {
    socket
        .drive(async {
            let mut first = Bytes::new();
            let mut rest = BytesMut::new();
            while let Some(frame) = body.frame().await {
                let Ok(data) = frame.context("the connection broke during an answer")?.into_data() else { continue };
                if first.is_empty() {
                    first = data;
                } else {
                    rest.extend_from_slice(&data);
                }
            }
            if rest.is_empty() {
                return Ok(first);
            }
            let mut whole = BytesMut::with_capacity(first.len() + rest.len());
            whole.extend_from_slice(&first);
            whole.extend_from_slice(&rest);
            Ok(whole.freeze())
        })
        .await
}
