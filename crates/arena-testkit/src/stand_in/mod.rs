//! A server on the loopback interface that stands in for a provider of language models. It speaks the three APIs, and
//! its models answer from the conversation and a seed alone. On request it injects faults.

mod apis;
mod faults;
mod script;
mod scripted;

use std::collections::BTreeMap;
use std::io;
use std::net::{Ipv4Addr, TcpListener};
use std::sync::{Arc, LazyLock};
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

use self::apis::Format;
pub use self::apis::Tokens;
use self::faults::{EndpointFault, EndpointFaults};
use self::script::{MODELS, Scene};
pub use self::scripted::{ModelAnswer, ModelConversation, ModelEndpoint};

/// The maximum size of a request in bytes.
const LARGEST: usize = 64 << 20;

/// The delay of a slow answer.
const SLOW: Duration = Duration::from_millis(400);

/// The settings of a [`StandIn`].
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct StandInSpec {
    /// The number that determines all answers and faults.
    pub seed: u64,
    /// The share of requests that fail at their first attempt, from 0 to 1.
    pub faults: f64,
    /// The time of an answer in milliseconds.
    pub answer_ms: u64,
}

/// A running stand-in. It stops when it is dropped.
#[derive(Debug)]
pub struct StandIn {
    base: String,
    server: Arc<Server>,
    /// The server stops when the sender is dropped.
    _stop: oneshot::Sender<()>,
}

#[derive(Debug)]
struct Server {
    seed: u64,
    delay: Duration,
    faults: EndpointFaults,
    counts: Mutex<Counts>,
}

/// The numbers of a [`StandIn`].
#[derive(Debug, Clone, Default)]
pub struct Counts {
    pub requests: u64,
    /// The number of answers that a provider would bill.
    pub answers: u64,
    /// The tokens of these answers.
    pub tokens: Tokens,
    /// The numbers of injected faults by name.
    pub faults: BTreeMap<&'static str, u64>,
}

impl StandIn {
    /// Starts a stand-in on a free port.
    ///
    /// # Panics
    /// If the port can't be opened.
    pub fn start(spec: StandInSpec) -> StandIn {
        let server = Arc::new(Server {
            seed: spec.seed,
            delay: Duration::from_millis(spec.answer_ms),
            faults: EndpointFaults::new(spec.seed, spec.faults),
            counts: Mutex::default(),
        });
        let (url, stop) = start(Router::new().fallback(answer).with_state(Arc::clone(&server)));
        StandIn { base: format!("{url}/v1"), server, _stop: stop }
    }

    /// Returns the stand-in of this process with the usual settings.
    pub fn shared() -> &'static StandIn {
        static SHARED: LazyLock<StandIn> = LazyLock::new(|| StandIn::start(StandInSpec::default()));
        &SHARED
    }

    /// Returns the address for clients, such as `http://127.0.0.1:8089/v1`.
    pub fn base(&self) -> &str {
        &self.base
    }

    /// Changes the share of requests that fail at their first attempt.
    pub fn set_faults(&self, share: f64) {
        self.server.faults.set_share(share);
    }

    pub fn counts(&self) -> Counts {
        self.server.counts.lock().clone()
    }
}

/// Serves on a free port, until the returned sender is dropped. Returns the address without a path, too.
fn start(router: Router) -> (String, oneshot::Sender<()>) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
    listener.set_nonblocking(true).expect("a socket that doesn't block");
    let url = format!("http://{}", listener.local_addr().expect("an address"));
    let (stop, stopped) = oneshot::channel();
    let serving = serve(listener, router, stopped);
    // The thread ends with the server, since the runtime runs nothing else.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    thread::Builder::new().name("stand-in".to_owned()).spawn(move || runtime.block_on(serving)).expect("a thread");
    (url, stop)
}

async fn serve(listener: TcpListener, router: Router, stopped: oneshot::Receiver<()>) {
    // Both errors mean that the listener is unusable. Clients then report a refused connection.
    let Ok(listener) = tokio::net::TcpListener::from_std(listener) else { return };
    let listener = listener.tap_io(|stream| {
        let _ = stream.set_nodelay(true);
    });
    let stop = async move {
        let _ = stopped.await;
    };
    let _ = axum::serve(listener, router).with_graceful_shutdown(stop).await;
}

async fn answer(State(server): State<Arc<Server>>, request: Request) -> Response {
    let path = request.uri().path().to_owned();
    if request.method() == Method::GET {
        return match path.as_str() {
            "/v1/models" => {
                let models = MODELS.map(|name| json!({"id": name, "object": "model"}));
                json_response(StatusCode::OK, &json!({"object": "list", "data": models}))
            }
            _ => no_path(&path),
        };
    }
    let Some(format) = Format::of(&path) else { return no_path(&path) };
    server.counts.lock().requests += 1;
    match to_bytes(request.into_body(), LARGEST).await {
        Ok(body) => server.answer(format, &body).await,
        Err(why) => error(format, StatusCode::BAD_REQUEST, "invalid_request_error", &why.to_string()),
    }
}

impl Server {
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
        if !MODELS.contains(&conversation.model.as_str()) {
            let why = format!("the model `{}` does not exist", conversation.model);
            return error(format, StatusCode::NOT_FOUND, "model_not_found", &why);
        }
        let scene = Scene::of(self.seed, &conversation);
        let fault = self.faults.of_request(&conversation, &scene);
        if let Some(fault) = fault {
            *self.counts.lock().faults.entry(fault.name()).or_default() += 1;
        }
        tokio::time::sleep(self.delay).await;
        if let Some(response) = fault.and_then(|fault| fault_response(fault, format, &conversation.model)) {
            return response;
        }
        if fault == Some(EndpointFault::Slow) {
            tokio::time::sleep(SLOW).await;
        }
        let regular = script::answer(&scene);
        let answer = match fault {
            Some(fault) => fault.replace(regular, &scene),
            None => regular,
        };
        let tokens = Tokens::count(body.len(), &conversation, &answer);
        let id = format!("{:016x}", scene.number);
        let written = format.write(&conversation, &answer, tokens, &id).to_string();
        if fault == Some(EndpointFault::HalfJson) {
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
}

/// Returns the response of a fault that replaces the answer.
fn fault_response(fault: EndpointFault, format: Format, model: &str) -> Option<Response> {
    let set = |response: &mut Response, name: header::HeaderName, value: &'static str| {
        response.headers_mut().insert(name, header::HeaderValue::from_static(value));
    };
    Some(match fault {
        EndpointFault::Busy => {
            let mut response = error(format, StatusCode::TOO_MANY_REQUESTS, "rate_limit_error", "too many requests");
            set(&mut response, header::RETRY_AFTER, "1");
            response
        }
        EndpointFault::Failing => {
            error(format, StatusCode::INTERNAL_SERVER_ERROR, "api_error", "the server had an error")
        }
        EndpointFault::Unpaid => error(format, StatusCode::PAYMENT_REQUIRED, "billing_error", "the balance is too low"),
        // An error in a body ends the connection before the first byte.
        EndpointFault::Reset => {
            let broken = stream::iter([Err::<Bytes, io::Error>(io::Error::from(io::ErrorKind::ConnectionReset))]);
            Response::new(Body::from_stream(broken))
        }
        EndpointFault::Html => {
            let mut response = Response::new(Body::from("<!doctype html><title>Please stand by</title>"));
            set(&mut response, header::CONTENT_TYPE, "text/html; charset=utf-8");
            response
        }
        EndpointFault::Empty => json_response(StatusCode::OK, &format.write_empty(model)),
        _ => return None,
    })
}

fn no_path(path: &str) -> Response {
    let message = format!("there is no path {path}; see /v1/models");
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
