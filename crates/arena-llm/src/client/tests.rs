//! Attempts against a server that sends prepared bytes.

use std::net::SocketAddr;

use expect_test::{Expect, expect};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use super::*;
use crate::{Api, Key, Pacer, Retry, Timeouts, ask};

const ANSWER: &str = r#"{"choices": [{"message": {"content": "hello"}, "finish_reason": "stop"}]}"#;

/// The behavior of the server after it has read a request.
#[derive(Clone)]
enum Act {
    /// Sends these bytes and keeps the connection.
    Send(Vec<u8>),
    /// Sends these bytes and closes the connection.
    Close(Vec<u8>),
    /// Sends these bytes and nothing more.
    Stop(Vec<u8>),
}

fn answer(status: u16, headers: &str, body: &str) -> Vec<u8> {
    format!("HTTP/1.1 {status} X\r\n{headers}content-length: {}\r\n\r\n{body}", body.len()).into_bytes()
}

/// Reads one request. Returns its text; `None` if the client has disconnected.
async fn read_request(stream: &mut TcpStream) -> Option<String> {
    let (mut bytes, mut part) = (Vec::new(), [0; 4096]);
    loop {
        let text = String::from_utf8_lossy(&bytes).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")).unwrap();
            if body.len() >= length.parse().unwrap() {
                return Some(text);
            }
        }
        let read = stream.read(&mut part).await.ok().filter(|read| *read > 0)?;
        bytes.extend_from_slice(&part[..read]);
    }
}

/// Starts a server that acts in the same way on each request, and returns its address.
async fn serve(act: Act) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            let act = act.clone();
            tokio::spawn(async move {
                while read_request(&mut stream).await.is_some() {
                    let (Act::Send(bytes) | Act::Close(bytes) | Act::Stop(bytes)) = &act;
                    if stream.write_all(bytes).await.is_err() || matches!(act, Act::Close(_)) {
                        return;
                    }
                }
            });
        }
    });
    address
}

fn endpoint(address: SocketAddr) -> Endpoint {
    let key = Key::new("sk-123").unwrap();
    Endpoint::new(Api::ChatCompletions, &format!("http://{address}/v1"), Some(key)).unwrap()
}

fn shown(sent: Result<Received, Fault>) -> String {
    match sent {
        Ok(received) => format!("answer: {}, {:?}", received.reply.text, received.reply.finish),
        Err(fault) => {
            let Fault { class, sentence, retry_after, request_id, .. } = fault;
            let pause = retry_after.map(|pause| format!("; pause {pause:?}")).unwrap_or_default();
            let id = request_id.map(|id| format!("; id {id}")).unwrap_or_default();
            format!("{}: {sentence}{pause}{id}", class.name())
        }
    }
}

async fn check(act: Act, expected: Expect) {
    let times =
        Timeouts { first_byte: Duration::from_millis(300), whole: Duration::from_millis(600), ..Timeouts::default() };
    let endpoint = endpoint(serve(act).await).with_timeouts(times);
    expected.assert_eq(&shown(Client::new().send(&endpoint, b"{}").await));
}

#[tokio::test]
async fn half_of_a_character_is_replaced() {
    let half = ANSWER.replace("hello", "hello \\ud83d");
    check(Act::Send(answer(200, "", &half)), expect!["answer: hello \u{fffd}, Done"]).await;
    check(Act::Send(answer(500, "", r#"{"error": "\ud83d"}"#)), expect!["failing: HTTP 500: \u{fffd}"]).await;
}

#[tokio::test]
async fn an_answer_has_its_measurements() {
    let usage = r#""usage": {"prompt_tokens": 9, "completion_tokens": 3}"#;
    let counted = ANSWER.replacen('{', &format!("{{{usage}, "), 1);
    let address = serve(Act::Send(answer(200, "x-request-id: req_1\r\n", &counted))).await;
    let (client, endpoint) = (Client::new(), endpoint(address));
    let received = client.send(&endpoint, b"{\"model\":1}").await.unwrap();
    assert_eq!((received.reply.text.as_str(), received.reply.request_id.as_deref()), ("hello", Some("req_1")));
    assert_eq!((received.request_bytes, received.reply.usage.input, received.reply.usage.output), (11, 9, 3));
    assert!(received.first_byte_ms <= received.ms && !received.reply.usage.is_estimated);
    assert_eq!(received.body["usage"]["prompt_tokens"], 9);
    // Without a count, a token has 4 bytes.
    let address = serve(Act::Send(answer(200, "", ANSWER))).await;
    let received = client.send(&self::endpoint(address), &[b' '; 41]).await.unwrap();
    let raw = received.reply.raw.to_string().len() as u64;
    let expected = Usage { input: 11, cached: 0, output: raw.div_ceil(4), reasoning: 0, is_estimated: true };
    assert_eq!(received.reply.usage, expected);
}

#[tokio::test]
async fn requests_have_the_headers_of_the_api() {
    for (api, head) in [
        (Api::ChatCompletions, "POST /v1/chat/completions HTTP/1.1\r\n"),
        (Api::Responses, "POST /v1/responses HTTP/1.1\r\n"),
        (Api::AnthropicMessages, "POST /v1/messages HTTP/1.1\r\n"),
    ] {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base = format!("http://{}/v1", listener.local_addr().unwrap());
        let endpoint = Endpoint::new(api, &base, Some(Key::new("sk-123").unwrap())).unwrap();
        let asked = tokio::spawn(async move { Client::new().send(&endpoint, b"{\"a\":1}").await });
        let (mut stream, _) = listener.accept().await.unwrap();
        let request = read_request(&mut stream).await.unwrap();
        assert!(request.starts_with(head) && request.ends_with("\r\n\r\n{\"a\":1}"), "{request}");
        assert!(request.contains("content-type: application/json\r\n"), "{request}");
        let is_anthropic = api == Api::AnthropicMessages;
        assert_eq!(request.contains("authorization: Bearer sk-123\r\n"), !is_anthropic, "{request}");
        assert_eq!(
            request.contains("x-api-key: sk-123\r\nanthropic-version: 2023-06-01\r\n")
                || request.contains("anthropic-version: 2023-06-01\r\nx-api-key: sk-123\r\n"),
            is_anthropic,
            "{request}"
        );
        drop(stream);
        assert_eq!(asked.await.unwrap().unwrap_err().class, FaultClass::Unreachable);
    }
}

#[tokio::test]
async fn faults_have_classes_and_sentences_without_the_key() {
    let html = answer(200, "content-type: text/html\r\n", "<html>");
    check(Act::Send(html), expect!["malformed: its answer isn't JSON (expected value at line 1 column 1)"]).await;
    check(
        Act::Send(answer(200, "", r#"{"choices": [{"mess"#)),
        expect!["malformed: its answer isn't JSON (EOF while parsing a string at line 1 column 19)"],
    )
    .await;
    for stream in ["data: {}\n\n", "\nevent: response.created\ndata: {}\n\n", ": waiting\n\n"] {
        check(
            Act::Send(answer(200, "content-type: text/event-stream\r\n", stream)),
            expect!["malformed: its answer is a stream of events, although the request has `stream: false`"],
        )
        .await;
    }
    check(
        Act::Send(answer(200, "request-id: req_2\r\n", r#"{"choices": []}"#)),
        expect![[
            r#"malformed: its answer doesn't fit the API chat-completions: it has no choices: {"choices": []}; id req_2"#
        ]],
    )
    .await;
    check(
        Act::Send(answer(200, "", r#"{"error": {"message": "upstream failed", "code": 502}}"#)),
        expect!["failing: its answer is an error: upstream failed"],
    )
    .await;
    check(
        Act::Send(answer(401, "", r#"{"error": {"message": "bad key sk-123"}}"#)),
        expect!["unauthorized: it rejects the key (HTTP 401: bad key [key])"],
    )
    .await;
    check(
        Act::Send(answer(429, "retry-after: 2\r\nx-request-id: r\r\n", r#"{"error": {"message": "slow down"}}"#)),
        expect!["busy: HTTP 429: slow down; pause 2s; id r"],
    )
    .await;
    check(
        Act::Send(answer(302, "location: https://b.example/v1\r\n", "")),
        expect!["rejected: HTTP 302: it redirects to https://b.example/v1; give that URL"],
    )
    .await;
    check(
        Act::Send(answer(400, "", r#"{"error": {"message": "filtered", "code": "content_filter"}}"#)),
        expect!["answer: filtered, Refused"],
    )
    .await;
    check(Act::Stop(Vec::new()), expect!["silent: it sent no answer within 0.3 s"]).await;
    let part = answer(200, "", ANSWER)[..60].to_vec();
    check(Act::Stop(part.clone()), expect!["slow: its answer wasn't complete within 0.6 s"]).await;
    check(
        Act::Close(part),
        expect![
            "unreachable: the connection broke in the middle of its answer: end of file before message length reached"
        ],
    )
    .await;
    check(
        Act::Close(Vec::new()),
        expect!["unreachable: the connection broke before its answer: connection closed before message completed"],
    )
    .await;
    check(
        Act::Close(b"SSH-2.0-x\r\n\r\n".to_vec()),
        expect!["malformed: its answer isn't HTTP: invalid HTTP version parsed"],
    )
    .await;
    let head = format!("HTTP/1.1 200 X\r\ncontent-length: {}\r\n\r\n", (16 << 20) + 1);
    let large = [head.into_bytes(), vec![b' '; (16 << 20) + 1]].concat();
    let endpoint = endpoint(serve(Act::Send(large)).await);
    expect!["malformed: its answer is larger than 16 MiB"]
        .assert_eq(&shown(Client::new().send(&endpoint, b"{}").await));
}

#[tokio::test]
async fn a_request_is_sent_again_in_the_form_that_the_endpoint_asks_for() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base = format!("http://{}/v1", listener.local_addr().unwrap());
    let serving = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut bodies = Vec::new();
        while let Some(request) = read_request(&mut stream).await {
            let body = request.split_once("\r\n\r\n").unwrap().1.to_owned();
            let reject = |text: &str| answer(400, "", &format!(r#"{{"error": {{"message": "{text}"}}}}"#));
            let sent = match body.as_str() {
                old if old.contains("\"max_tokens\"") => reject("Use 'max_completion_tokens' instead."),
                extra if extra.contains("reasoning") => reject("property 'reasoning' is unsupported"),
                _ => answer(200, "", ANSWER),
            };
            bodies.push(body);
            stream.write_all(&sent).await.unwrap();
        }
        bodies
    });
    let (client, endpoint) = (Client::new(), Endpoint::new(Api::ChatCompletions, &base, None).unwrap());
    let body = br#"{"max_tokens":5,"messages":[{"reasoning":"hm","role":"assistant"}]}"#;
    for _ in 0..2 {
        let received = client.send(&endpoint, body).await.unwrap();
        assert_eq!((received.reply.text.as_str(), received.request_bytes), ("hello", body.len()));
    }
    drop(client);
    let last = r#"{"max_completion_tokens":5,"messages":[{"role":"assistant"}]}"#;
    let second = r#"{"max_completion_tokens":5,"messages":[{"reasoning":"hm","role":"assistant"}]}"#;
    assert_eq!(serving.await.unwrap(), [std::str::from_utf8(body).unwrap(), second, last, last]);
}

#[tokio::test]
async fn servers_that_nothing_reaches_are_unreachable() {
    let closed = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    expect!["unreachable: it cannot be connected: Connection refused (os error 111)"]
        .assert_eq(&shown(Client::new().send(&endpoint(closed), b"{}").await));
    // The URL has TLS, the server doesn't.
    let address = serve(Act::Send(answer(200, "", ANSWER))).await;
    let endpoint = Endpoint::new(Api::Responses, &format!("https://{address}"), None).unwrap();
    let times = Timeouts { connect: Duration::from_millis(300), ..Timeouts::default() };
    let sent = Client::new().send(&endpoint.with_timeouts(times), b"{}").await;
    expect!["unreachable: it cannot be connected within 0.3 s"].assert_eq(&shown(sent));
}

/// Starts a server that sends these answers to its first requests, and the last one to all others.
async fn serve_in_turn(answers: Vec<Vec<u8>>) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        let mut number = 0;
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            // One connection at a time is enough for one caller.
            while read_request(&mut stream).await.is_some() {
                stream.write_all(&answers[number.min(answers.len() - 1)]).await.unwrap();
                number += 1;
            }
        }
    });
    address
}

/// Asks with retries, and compares the retries and the result.
async fn check_ask(answers: Vec<Vec<u8>>, patience_ms: u64, expected: Expect) {
    let endpoint = endpoint(serve_in_turn(answers).await);
    let (pacer, patience) = (Pacer::new(4), Duration::from_millis(patience_ms));
    let mut lines = Vec::new();
    let mut on_retry = |retry: &Retry| {
        lines.push(format!("{}: {}; pause {} ms", retry.class.name(), retry.sentence, retry.pause_ms));
        true
    };
    let asked = ask(&Client::new(), &endpoint, &pacer, b"{}", patience, &mut on_retry).await;
    lines.push(shown(asked));
    expected.assert_eq(&lines.join("\n"));
}

#[tokio::test]
async fn passing_faults_are_retried_with_growing_pauses() {
    let busy = answer(429, "retry-after: 0\r\n", "slow down");
    let failing = answer(503, "retry-after-ms: 120\r\n", "overloaded");
    let well = answer(200, "", ANSWER);
    check_ask(
        vec![busy.clone(), failing, busy, well],
        60_000,
        expect![[r#"
            busy: HTTP 429: slow down; pause 50 ms
            failing: HTTP 503: overloaded; pause 120 ms
            busy: HTTP 429: slow down; pause 200 ms
            answer: hello, Done"#]],
    )
    .await;
    check_ask(
        vec![answer(429, "retry-after: 3600\r\n", "come back later")],
        60_000,
        expect!["busy: HTTP 429: come back later; it requests a pause of 3600 s; pause 3600s"],
    )
    .await;
    check_ask(vec![answer(500, "", "oops")], 0, expect!["failing: HTTP 500: oops"]).await;
    // A conversation that is too long is sent once, whatever the status is.
    check_ask(
        vec![answer(500, "", r#"{"error": "exceeds the context window"}"#)],
        60_000,
        expect!["rejected: HTTP 500: exceeds the context window"],
    )
    .await;
    check_ask(vec![answer(402, "", "no credit")], 60_000, expect!["unpaid: HTTP 402: no credit"]).await;
}

#[test]
fn certificates_are_faults_that_last() {
    let inner = rustls::Error::InvalidCertificate(CertificateError::UnknownIssuer);
    let error = io::Error::other(io::Error::new(io::ErrorKind::InvalidData, inner));
    assert!(matches!(tls_error(&error), Some(rustls::Error::InvalidCertificate(_))));
    assert!(tls_error(&io::Error::other("else")).is_none());
}
