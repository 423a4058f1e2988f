//! The stand-in: a server on the loopback interface that stands in for language models. It speaks the three APIs, and
//! its scripted models answer from the conversation and a seed alone. On request it injects faults.

mod apis;
mod characters;
mod faults;

use std::collections::BTreeMap;
use std::io;
use std::net::{Ipv4Addr, TcpListener};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes, to_bytes};
use axum::extract::{Request, State};
use axum::http::{Method, StatusCode, header};
use axum::response::Response;
use axum::serve::ListenerExt;
use futures_util::stream;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::sync::oneshot;

use self::apis::{Format, Tokens};
use self::characters::{Character, Scene};
use self::faults::{Fault, Faults};
use crate::run_file::StandInSpec;

/// The maximum size of a request in bytes.
const LARGEST: usize = 64 << 20;

/// The delay of a slow answer.
const SLOW: Duration = Duration::from_millis(400);

/// A running stand-in. It stops when it is dropped.
#[derive(Debug)]
pub struct StandIn {
    base: String,
    /// The server stops when the sender is dropped.
    _stop: oneshot::Sender<()>,
}

#[derive(Debug)]
struct Server {
    seed: u64,
    delay: Duration,
    key: Option<String>,
    faults: Faults,
    counts: Mutex<Counts>,
}

/// The numbers at the path `/stats`.
#[derive(Debug, Default)]
struct Counts {
    requests: u64,
    /// The number of answers that a provider would bill.
    answers: u64,
    tokens: Tokens,
    faults: BTreeMap<&'static str, u64>,
    /// The number of requests that are being answered.
    open: u64,
    most_open: u64,
}

impl StandIn {
    /// Starts a stand-in on a free port.
    ///
    /// # Errors
    /// If the port can't be opened.
    pub fn start(spec: &StandInSpec) -> io::Result<StandIn> {
        StandIn::start_at(spec, 0)
    }

    /// Starts a stand-in for a run that an earlier process has begun. No request is unpaid any more, since the user has
    /// repaired that, and no model refuses.
    ///
    /// # Errors
    /// If the port can't be opened.
    pub fn start_again(spec: &StandInSpec) -> io::Result<StandIn> {
        StandIn::start_with(spec, 0, None, Faults::of(spec.seed, spec.faults).continued())
    }

    /// Starts a stand-in on a port of 127.0.0.1; 0 means a free one.
    ///
    /// # Errors
    /// If the port can't be opened.
    pub fn start_at(spec: &StandInSpec, port: u16) -> io::Result<StandIn> {
        StandIn::start_with_key(spec, port, None)
    }

    /// Starts a stand-in, as [`StandIn::start_at`], that answers only requests with this key.
    ///
    /// # Errors
    /// If the port can't be opened.
    pub fn start_with_key(spec: &StandInSpec, port: u16, key: Option<&str>) -> io::Result<StandIn> {
        StandIn::start_with(spec, port, key, Faults::of(spec.seed, spec.faults))
    }

    fn start_with(spec: &StandInSpec, port: u16, key: Option<&str>, faults: Faults) -> io::Result<StandIn> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port))?;
        listener.set_nonblocking(true)?;
        let base = format!("http://{}/v1", listener.local_addr()?);
        let server = Arc::new(Server {
            seed: spec.seed,
            delay: Duration::from_millis(spec.answer_ms),
            key: key.map(str::to_owned),
            faults,
            counts: Mutex::default(),
        });
        let (stop, stopped) = oneshot::channel();
        let serving = serve(listener, server, stopped);
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(serving);
        } else {
            // The thread ends with the server, since the runtime runs nothing else.
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
            thread::Builder::new().name("stand-in".to_owned()).spawn(move || runtime.block_on(serving))?;
        }
        Ok(StandIn { base, _stop: stop })
    }

    /// Returns the address for clients, such as `http://127.0.0.1:8089/v1`.
    pub fn base(&self) -> &str {
        &self.base
    }
}

/// Serves until the sender of `stopped` is dropped.
async fn serve(listener: TcpListener, server: Arc<Server>, stopped: oneshot::Receiver<()>) {
    // Both errors mean that the listener is unusable. Clients then report a refused connection.
    let Ok(listener) = tokio::net::TcpListener::from_std(listener) else { return };
    let listener = listener.tap_io(|stream| {
        let _ = stream.set_nodelay(true);
    });
    let router = Router::new().fallback(answer).with_state(server);
    let stop = async move {
        let _ = stopped.await;
    };
    let _ = axum::serve(listener, router).with_graceful_shutdown(stop).await;
}

async fn answer(State(server): State<Arc<Server>>, request: Request) -> Response {
    let path = request.uri().path().to_owned();
    if request.method() == Method::GET {
        return match path.as_str() {
            "/stats" => json_response(StatusCode::OK, &server.counts.lock().to_json()),
            "/v1/models" => {
                let models = Character::ALL.map(|(name, _)| json!({"id": name, "object": "model"}));
                json_response(StatusCode::OK, &json!({"object": "list", "data": models}))
            }
            _ => no_path(&path),
        };
    }
    let Some(format) = Format::of(&path) else { return no_path(&path) };
    {
        let mut counts = server.counts.lock();
        counts.requests += 1;
        counts.open += 1;
        counts.most_open = counts.most_open.max(counts.open);
    }
    // The future is dropped if the client leaves, and then the request is no longer open either.
    let _open = OpenRequest(&server);
    if !server.accepts(&request) {
        return error(format, StatusCode::UNAUTHORIZED, "authentication_error", "the key is missing or wrong");
    }
    match to_bytes(request.into_body(), LARGEST).await {
        Ok(body) => server.answer(format, &body).await,
        Err(why) => error(format, StatusCode::BAD_REQUEST, "invalid_request_error", &why.to_string()),
    }
}

/// A request that is being answered.
struct OpenRequest<'s>(&'s Server);

impl Drop for OpenRequest<'_> {
    fn drop(&mut self) {
        self.0.counts.lock().open -= 1;
    }
}

impl Server {
    /// True if the request has the right key, or if no key is needed.
    fn accepts(&self, request: &Request) -> bool {
        let Some(key) = &self.key else { return true };
        let value = |name: &str| request.headers().get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
        value("authorization").strip_prefix("Bearer ") == Some(key) || value("x-api-key") == key
    }

    async fn answer(&self, format: Format, body: &Bytes) -> Response {
        let refuse = |why: &str| error(format, StatusCode::BAD_REQUEST, "invalid_request_error", why);
        let conversation = match serde_json::from_slice::<Value>(body) {
            Ok(body) => format.read(&body),
            Err(why) => Err(format!("the body isn't JSON: {why}")),
        };
        let conversation = match conversation {
            Ok(conversation) => conversation,
            Err(why) => return refuse(&why),
        };
        let Some(character) = Character::of(&conversation.model) else {
            let why = format!("the model `{}` does not exist", conversation.model);
            return error(format, StatusCode::NOT_FOUND, "model_not_found", &why);
        };
        let scene = Scene::of(self.seed, &conversation);
        let fault = self.faults.of_request(&conversation, &scene);
        if let Some(fault) = fault {
            *self.counts.lock().faults.entry(fault.name()).or_default() += 1;
        }
        tokio::time::sleep(self.delay).await;
        match fault {
            Some(Fault::Busy) => {
                let mut response =
                    error(format, StatusCode::TOO_MANY_REQUESTS, "rate_limit_error", "too many requests");
                response.headers_mut().insert(header::RETRY_AFTER, header::HeaderValue::from_static("1"));
                return response;
            }
            Some(Fault::Failing) => {
                return error(format, StatusCode::INTERNAL_SERVER_ERROR, "api_error", "the server had an error");
            }
            Some(Fault::Unpaid) => {
                return error(format, StatusCode::PAYMENT_REQUIRED, "billing_error", "the balance is too low");
            }
            // An error in a body ends the connection before the first byte.
            Some(Fault::Reset) => {
                let broken = stream::iter([Err::<Bytes, io::Error>(io::Error::from(io::ErrorKind::ConnectionReset))]);
                return Response::new(Body::from_stream(broken));
            }
            Some(Fault::Html) => {
                let mut response = Response::new(Body::from("<!doctype html><title>Please stand by</title>"));
                let kind = header::HeaderValue::from_static("text/html; charset=utf-8");
                response.headers_mut().insert(header::CONTENT_TYPE, kind);
                return response;
            }
            Some(Fault::Empty) => return json_response(StatusCode::OK, &format.write_empty(&conversation.model)),
            Some(Fault::Slow) => tokio::time::sleep(SLOW).await,
            _ => {}
        }
        let regular = characters::answer(character, &scene);
        let answer = match fault {
            Some(fault) => fault.replace(regular, &scene),
            None => regular,
        };
        let tokens = Tokens::count(body.len(), &conversation, &answer);
        let id = format!("{:016x}", scene.number);
        let written = format.write(&conversation, &answer, tokens, &id).to_string();
        if fault == Some(Fault::HalfJson) {
            return text_response(StatusCode::OK, written[..written.floor_char_boundary(written.len() / 2)].to_owned());
        }
        self.counts.lock().add(tokens);
        let mut response = text_response(StatusCode::OK, written);
        if let Ok(id) = header::HeaderValue::from_str(&format!("req_{id}")) {
            response.headers_mut().insert(format.id_header(), id);
        }
        response
    }
}

impl Counts {
    fn add(&mut self, tokens: Tokens) {
        self.answers += 1;
        self.tokens.input += tokens.input;
        self.tokens.cached += tokens.cached;
        self.tokens.output += tokens.output;
    }

    fn to_json(&self) -> Value {
        let Tokens { input, cached, output } = self.tokens;
        json!({
            "requests": self.requests, "answers": self.answers, "faults": self.faults, "open": self.open,
            "most_open": self.most_open, "tokens": {"input": input, "cached": cached, "output": output},
        })
    }
}

fn no_path(path: &str) -> Response {
    let message = format!("there is no path {path}; see /v1/models and /stats");
    error(Format::Chat, StatusCode::NOT_FOUND, "not_found_error", &message)
}

fn error(format: Format, status: StatusCode, kind: &str, message: &str) -> Response {
    json_response(status, &format.write_error(kind, message))
}

fn json_response(status: StatusCode, body: &Value) -> Response {
    text_response(status, body.to_string())
}

/// Returns a response with the type of JSON.
fn text_response(status: StatusCode, body: String) -> Response {
    let mut response = Response::new(Body::from(body));
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, header::HeaderValue::from_static("application/json"));
    response
}

#[cfg(test)]
mod tests;
