//! The gateway between an agent and a provider that counts its tokens itself.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};

use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::net::{TcpListener, TcpStream};

use super::*;

const TOKEN: &str = "seat-token";
const SECRET: &str = "sk-provider";

/// The provider's own counts, and its last request.
#[derive(Default)]
struct Provider {
    calls: AtomicU64,
    input: AtomicU64,
    output: AtomicU64,
    last: Mutex<Option<(HeaderMap, Value)>>,
}

/// Serves HTTP on a free port.
async fn serve<F, A>(answer: F) -> SocketAddr
where
    F: Fn(Request<Incoming>) -> A + Clone + Send + Sync + 'static,
    A: Future<Output = Response<GatewayBody>> + Send,
{
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            stream.set_nodelay(true).unwrap();
            let answer = answer.clone();
            tokio::spawn(async move {
                let service = service_fn(move |request| {
                    let answer = answer.clone();
                    async move { Ok::<_, std::convert::Infallible>(answer(request).await) }
                });
                let server = hyper::server::conn::http1::Builder::new();
                let _ = server.serve_connection(TokioIo::new(stream), service).await;
            });
        }
    });
    address
}

impl Provider {
    async fn start(self: &Arc<Self>) -> SocketAddr {
        let provider = Arc::clone(self);
        serve(move |request| {
            let provider = Arc::clone(&provider);
            async move { provider.answer(request).await }
        })
        .await
    }

    async fn answer(self: Arc<Self>, request: Request<Incoming>) -> Response<GatewayBody> {
        let (parts, body) = request.into_parts();
        let body: Value = serde_json::from_slice(&body.collect().await.unwrap().to_bytes()).unwrap();
        *self.last.lock() = Some((parts.headers.clone(), body.clone()));
        let ask = body["user"].as_str().unwrap_or_default();
        if ask == "fail" {
            return respond(StatusCode::SERVICE_UNAVAILABLE, &json!({"error": {"message": format!("no {SECRET}")}}));
        }
        if ask == "redirect" {
            let mut answer = respond(StatusCode::FOUND, &json!({}));
            answer.headers_mut().insert("location", HeaderValue::from_static("http://127.0.0.1:1/"));
            return answer;
        }
        let number = self.calls.fetch_add(1, Ordering::Relaxed) + 1;
        let (input, output) = (100 + number, 10 * number);
        self.input.fetch_add(input, Ordering::Relaxed);
        self.output.fetch_add(output, Ordering::Relaxed);
        let is_stream = body["stream"] == true;
        let (whole, events) = match parts.uri.path() {
            "/v1/chat/completions" => {
                assert!(!is_stream || body["stream_options"]["include_usage"] == true);
                let usage = json!({"prompt_tokens": input, "completion_tokens": output});
                (
                    json!({"choices": [], "usage": usage}),
                    vec![json!({"choices": [{}], "usage": null}), json!({"choices": [], "usage": usage})],
                )
            }
            "/v1/responses" => {
                let usage = json!({"input_tokens": input, "output_tokens": output});
                let done = json!({"type": "response.completed", "response": {"usage": usage}});
                (json!({"output": [], "usage": usage}), vec![json!({"type": "response.created"}), done])
            }
            "/v1/messages" => {
                let begun =
                    json!({"type": "message_start", "message": {"usage": {"input_tokens": input, "output_tokens": 1}}});
                let done = json!({"type": "message_delta", "usage": {"output_tokens": output}});
                (json!({"content": [], "usage": {"input_tokens": input, "output_tokens": output}}), vec![begun, done])
            }
            path => panic!("{path}"),
        };
        if !is_stream {
            return respond(StatusCode::OK, &whole);
        }
        let (mut sender, body) = Channel::<Bytes, io::Error>::new(1);
        tokio::spawn(async move {
            for (place, event) in events.into_iter().enumerate() {
                if place > 0 {
                    tokio::time::sleep(Duration::from_millis(60)).await;
                }
                let _ = sender.send_data(format!("data: {event}\n\n").into()).await;
            }
        });
        let mut answer = Response::new(body.boxed());
        answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream; charset=utf-8"));
        answer
    }
}

async fn gateway(api: Api, provider: SocketAddr, caps: Caps) -> (Arc<Gateway>, SocketAddr) {
    let base =
        if api == Api::AnthropicMessages { format!("http://{provider}") } else { format!("http://{provider}/v1") };
    let spec = GatewaySpec {
        api,
        base,
        key: Some(Key::new(SECRET).unwrap()),
        model: "small".to_owned(),
        prices: Some(Prices { input: 1.0, cached: None, output: 10.0 }),
        caps,
        max_output_tokens: 1000,
        token: TOKEN.to_owned(),
    };
    let gateway = Gateway::new(spec).unwrap();
    let served = Arc::clone(&gateway);
    let address = serve(move |request| {
        let gateway = Arc::clone(&served);
        async move { gateway.answer(request).await }
    })
    .await;
    (gateway, address)
}

/// The answer of a request, with the time of its first part.
struct Answered {
    status: u16,
    body: String,
    first_part: Duration,
    whole: Duration,
}

async fn connect(to: SocketAddr) -> hyper::client::conn::http1::SendRequest<Full<Bytes>> {
    let stream = TcpStream::connect(to).await.unwrap();
    stream.set_nodelay(true).unwrap();
    let (sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.unwrap();
    tokio::spawn(connection);
    sender
}

async fn post(to: SocketAddr, path: &str, token: &str, body: &Value) -> Answered {
    let request = Request::post(path).header("host", "x").header("authorization", format!("Bearer {token}"));
    let request = request.header("accept-encoding", "gzip").body(Full::new(Bytes::from(body.to_string()))).unwrap();
    let begun = Instant::now();
    let response = connect(to).await.send_request(request).await.unwrap();
    let (status, mut body, mut text) = (response.status().as_u16(), response.into_body(), Vec::new());
    let mut first_part = None;
    while let Some(frame) = body.frame().await {
        first_part.get_or_insert(begun.elapsed());
        text.extend_from_slice(&frame.unwrap().into_data().unwrap());
    }
    Answered {
        status,
        body: String::from_utf8(text).unwrap(),
        first_part: first_part.unwrap_or_default(),
        whole: begun.elapsed(),
    }
}

const PATHS: [(Api, &str); 3] = [
    (Api::ChatCompletions, "/v1/chat/completions"),
    (Api::Responses, "/v1/responses"),
    (Api::AnthropicMessages, "/v1/messages"),
];

#[tokio::test]
async fn tokens_are_those_that_the_provider_counts() {
    for (api, path) in PATHS {
        let provider = Arc::new(Provider::default());
        let (gateway, address) = gateway(api, provider.start().await, Caps::default()).await;
        for number in 0..10 {
            let choice = "x".repeat(200);
            let body = json!({"model": "dear", "stream": number % 2 == 1, "max_tokens": 100, "tool_choice": choice});
            let answered = post(address, path, TOKEN, &body).await;
            assert_eq!(answered.status, 200, "{}", answered.body);
            if number % 2 == 1 {
                // The second event comes later, so the first one wasn't held back.
                assert!(answered.first_part + Duration::from_millis(30) < answered.whole, "{path}");
            }
        }
        let Metered { spent, failed, outage, .. } = gateway.metered();
        let count = |number: &AtomicU64| number.load(Ordering::Relaxed);
        let counted = [spent.calls, spent.usage.input, spent.usage.output];
        assert_eq!(counted, [count(&provider.calls), count(&provider.input), count(&provider.output)], "{path}");
        assert_eq!((counted[0], failed, outage, spent.usage.is_estimated), (10, 0, None, false));
        let usd = (counted[1] as f64 + counted[2] as f64 * 10.0) / 1e6;
        assert!((spent.usd - usd).abs() < 1e-12);
    }
}

#[tokio::test]
async fn the_key_stays_with_the_gateway_and_the_token_with_the_agent() {
    let provider = Arc::new(Provider::default());
    let (_, address) = gateway(Api::AnthropicMessages, provider.start().await, Caps::default()).await;
    let tools = json!([{"name": "own"}, {"type": "web_search_20250305"}]);
    let answered = post(address, "/v1/messages?beta=true", TOKEN, &json!({"max_tokens": 9999, "tools": tools})).await;
    assert_eq!(answered.status, 200);
    let (headers, body) = provider.last.lock().take().unwrap();
    assert_eq!(body, json!({"model": "small", "max_tokens": 1000, "tools": [{"name": "own"}]}));
    assert_eq!(headers["x-api-key"], SECRET);
    assert!(!headers.contains_key("authorization") && !headers.contains_key("accept-encoding"), "{headers:?}");
    for (path, token, status) in [
        ("/v1/messages", "", 401),
        ("/v1/messages", SECRET, 401),
        ("/v1/messages", "seat-tokeN", 401),
        ("/v1/files", TOKEN, 404),
        ("/v1/messages/batches", TOKEN, 404),
        ("/v1/chat/completions", TOKEN, 404),
        ("/", TOKEN, 404),
    ] {
        let answered = post(address, path, token, &json!({})).await;
        assert_eq!(answered.status, status, "{path} {token}");
        let error: Value = serde_json::from_str(&answered.body).unwrap();
        assert_eq!(error["type"], "error", "{error}");
    }
    assert_eq!(provider.calls.load(Ordering::Relaxed), 1);
}

#[tokio::test]
async fn a_call_that_may_exceed_the_budget_is_refused() {
    let provider = Arc::new(Provider::default());
    let address = provider.start().await;
    let caps = Caps { usd: Some(0.02), ..Caps::default() };
    let (gateway, address) = gateway(Api::ChatCompletions, address, caps).await;
    // A call may cost about 0.01 US dollars, and costs 0.0002 for each call before.
    let body = json!({"max_tokens": 1000});
    let mut sent = 0;
    let refused = loop {
        let answered = post(address, "/v1/chat/completions", TOKEN, &body).await;
        match answered.status {
            200 => sent += 1,
            _ => break answered,
        }
        assert!(sent < 100);
    };
    let error: Value = serde_json::from_str(&refused.body).unwrap();
    assert_eq!((refused.status, &error["error"]["code"]), (402, &json!("insufficient_quota")));
    assert!(error["error"]["message"].as_str().unwrap().contains("budget of 0.02 US dollars"), "{error}");
    let metered = gateway.metered();
    assert_eq!((metered.spent.calls, metered.over_budget), (sent, 1));
    assert!(metered.spent.usd <= 0.02 && metered.spent.usd > 0.009, "{metered:?}");
    assert_eq!(provider.calls.load(Ordering::Relaxed), sent);
}

#[tokio::test]
async fn faults_of_the_provider_are_no_faults_of_the_agent() {
    let provider = Arc::new(Provider::default());
    let (gateway, address) = gateway(Api::Responses, provider.start().await, Caps::default()).await;
    let failed = post(address, "/v1/responses", TOKEN, &json!({"user": "fail"})).await;
    assert_eq!(failed.status, 503);
    assert!(failed.body.contains("no [key]"), "{}", failed.body);
    assert_eq!(gateway.metered().outage.unwrap(), "HTTP 503: no [key]");
    let redirected = post(address, "/v1/responses", TOKEN, &json!({"user": "redirect"})).await;
    assert_eq!(redirected.status, 502);
    assert_eq!(post(address, "/v1/responses", TOKEN, &json!({})).await.status, 200);
    let Metered { spent, failed, outage, .. } = gateway.metered();
    assert_eq!((spent.calls, failed, outage), (1, 2, None));

    let closed = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let (gateway, address) = self::gateway(Api::Responses, closed, Caps::default()).await;
    assert_eq!(post(address, "/v1/responses", TOKEN, &json!({})).await.status, 502);
    assert!(gateway.metered().outage.unwrap().contains("cannot be connected"));
}

#[tokio::test]
async fn an_answer_that_the_agent_does_not_read_to_its_end_counts_whole() {
    let provider = Arc::new(Provider::default());
    let (gateway, address) = gateway(Api::AnthropicMessages, provider.start().await, Caps::default()).await;
    let request = Request::post("/v1/messages").header("host", "x").header("x-api-key", TOKEN);
    let body = json!({"stream": true, "max_tokens": 100}).to_string();
    let mut sender = connect(address).await;
    let mut response = sender.send_request(request.body(Full::new(Bytes::from(body))).unwrap()).await.unwrap();
    let first = response.body_mut().frame().await.unwrap().unwrap();
    assert!(first.into_data().unwrap().starts_with(b"data: "));
    drop((response, sender));
    gateway.settle(Duration::from_secs(5)).await;
    let spent = gateway.metered().spent;
    assert_eq!((spent.calls, spent.usage.input, spent.usage.output, spent.usage.is_estimated), (1, 101, 10, false));
}

/// Measures the time that the gateway adds to a call: the difference of the medians of 300 calls, each on a new
/// connection, without and with the gateway. `cargo test -p arena-llm added_time -- --nocapture` prints it.
#[tokio::test]
async fn the_added_time_of_a_call_is_small() {
    let provider = Arc::new(Provider::default());
    let direct = provider.start().await;
    let (_, through) = gateway(Api::ChatCompletions, direct, Caps::default()).await;
    let message = json!({"role": "user", "content": "x".repeat(8000)});
    let body = json!({"messages": [message], "max_tokens": 10});
    let mut times = [Vec::new(), Vec::new()];
    for _ in 0..300 {
        for (place, address) in [direct, through].into_iter().enumerate() {
            times[place].push(post(address, "/v1/chat/completions", TOKEN, &body).await.whole);
        }
    }
    let [direct, through] = times.map(|mut times| {
        times.sort();
        times[times.len() / 2]
    });
    println!("direct {direct:?}, through the gateway {through:?}");
    // The bound is wide, because builds for tests aren't optimized and share the machine.
    assert!(through < direct + Duration::from_millis(20), "{direct:?} {through:?}");
}
