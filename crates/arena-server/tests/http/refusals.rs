//! Refused requests: status, code and sentence of each. A refusal stores nothing, and games continue.
//!
//! Tables of requests are sent to `/api` and to `/api/v1`, and malformed HTTP over raw sockets. `secrecy.rs` tests
//! visibility, and `once.rs` repeated requests.

use std::fmt::Write as _;
use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use arena_server::Settings;
use arena_testkit::{Answer, Client, Host, until};
use proptest::prelude::*;
use proptest::sample::select;
use proptest::test_runner::TestRunner;
use serde_json::{Map, Value, json};

/// Both prefixes of every route.
const APIS: [&str; 2] = ["/api", "/api/v1"];

/// A request with its expected response. Names such as `$ada` are replaced by ids of a [`RefusalFixture`].
struct Row {
    what: String,
    /// Method and path after `/api`.
    request: String,
    headers: Vec<(&'static str, String)>,
    body: Vec<u8>,
    /// The expected response: `STATUS CODE: sentence`.
    answer: String,
}

fn row(what: &str, request: &str, body: impl AsRef<[u8]>, answer: &str) -> Row {
    let (what, request, answer) = (what.to_owned(), request.to_owned(), answer.to_owned());
    Row { what, request, headers: Vec::new(), body: body.as_ref().to_vec(), answer }
}

fn bare(request: &str, answer: &str) -> Row {
    row("", request, "", answer)
}

impl Row {
    fn with(mut self, name: &'static str, value: &str) -> Row {
        self.headers.push((name, value.to_owned()));
        self
    }
}

/// A server with an active session and an open one.
///
/// `$active` is the active session, with the players `$ada` and `$bob`. `$open` is the open one, with the player
/// `$carl` and the unused invite `$free`. `$none` is an unknown UUID.
struct RefusalFixture {
    _host: Host,
    client: Client,
    names: Vec<(&'static str, String)>,
}

impl RefusalFixture {
    fn new() -> RefusalFixture {
        RefusalFixture::with(|_| {})
    }

    fn with(change: impl FnOnce(&mut Settings)) -> RefusalFixture {
        let host = Host::start_with(change);
        let client = host.client();
        let [(active, players), (open, invites)] = [client.create("psi"), client.create("psi")];
        for invite in [&players[0], &players[1], &invites[0]] {
            client.join(invite).ok();
        }
        client.chat(&active, &players[0], "hello").ok();
        let names = vec![
            ("$active", active),
            ("$open", open),
            ("$ada", players[0].clone()),
            ("$bob", players[1].clone()),
            ("$carl", invites[0].clone()),
            ("$free", invites[1].clone()),
            ("$none", "00000000-0000-7000-8000-000000000000".to_owned()),
        ];
        RefusalFixture { _host: host, client, names }
    }

    fn name(&self, name: &str) -> &str {
        self.names.iter().find(|(key, _)| *key == name).map(|(_, value)| value.as_str()).expect("a name of the stage")
    }

    fn fill(&self, text: &str) -> String {
        self.names.iter().fold(text.to_owned(), |text, (name, value)| text.replace(name, value))
    }

    fn ask(&self, api: &str, row: &Row) -> Answer {
        let (method, path) = row.request.split_once(' ').expect("a method and a path");
        let headers: Vec<(&str, &str)> = row.headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
        let body = match std::str::from_utf8(&row.body) {
            Ok(text) => self.fill(text).into_bytes(),
            Err(_) => row.body.clone(),
        };
        self.client.request(method, &format!("{api}{}", self.fill(path)), &headers, &body)
    }

    fn seen(&self) -> Vec<String> {
        let mut paths = vec!["/api/challenges?limit=100".to_owned(), "/api/chat/sync?channel=invites".to_owned()];
        for viewer in ["$ada", "$bob", "$carl", "viewer"] {
            for session in ["$active", "$open"] {
                for route in ["arena", "chat"] {
                    paths.push(format!("/api/{route}/sync?channel={session}&from={viewer}"));
                }
            }
        }
        paths.iter().map(|path| self.client.get(&self.fill(path)).ok().to_string()).collect()
    }

    /// Checks every row under both prefixes. Then checks that no data has changed and that games can be played.
    #[track_caller]
    fn refuses(&self, rows: impl IntoIterator<Item = Row>) {
        let before = self.seen();
        let mut wrong = String::new();
        for row in rows {
            let expected = self.fill(&row.answer);
            for api in APIS {
                let answer = summary(&self.ask(api, &row)).replace("/api/v1/", "/api/");
                if answer != expected {
                    let body = String::from_utf8_lossy(&row.body);
                    let body = body.get(..body.len().min(200)).unwrap_or("…");
                    let Row { what, request, .. } = &row;
                    let answer: String = answer.chars().take(300).collect();
                    let _ = writeln!(wrong, "{what}: {api} {request} {body}\n  want {expected}\n  have {answer}");
                }
            }
        }
        assert!(wrong.is_empty(), "\n{wrong}");
        assert_eq!(self.seen(), before, "something was stored");
        self.client.plays_a_game();
    }
}

/// Returns a refusal as one line. If it isn't JSON with a sentence, a code and the right media type, or pages of other
/// origins can't read it, the line says so.
fn summary(answer: &Answer) -> String {
    if answer.header("access-control-allow-origin") != Some("*") {
        return format!("{} that pages can't read: {:?}", answer.status, answer.headers);
    }
    let kind = answer.header("content-type");
    let Ok(body) = serde_json::from_slice::<Value>(&answer.body) else {
        return format!("{} no JSON: {}", answer.status, String::from_utf8_lossy(&answer.body));
    };
    match (body["error"].as_str(), body["code"].as_str()) {
        (Some(error), Some(code)) if kind == Some("application/json") => format!("{} {code}: {error}", answer.status),
        _ => format!("{} {kind:?} {body}", answer.status),
    }
}

/// Waits until all other connections are closed.
#[track_caller]
fn until_alone(client: &Client) {
    until("all other connections are closed", || client.counter("arena_connections") == 1);
}

// Unknown resources.

/// Parses `refusals.txt`.
fn listed_rows() -> Vec<Row> {
    let mut rows = Vec::new();
    for block in include_str!("refusals.txt").split("\n\n") {
        // Each variant of a block has a value for each name.
        let mut variants: Vec<Vec<(&str, String)>> = vec![Vec::new()];
        let (loops, lines): (Vec<&str>, Vec<&str>) =
            block.lines().filter(|line| !line.starts_with('#')).partition(|line| line.starts_with("for "));
        for (name, values) in loops.iter().filter_map(|line| line["for ".len()..].split_once(" in ")) {
            let values: Vec<String> = serde_json::from_str(values).expect("a list of strings");
            let mut longer = Vec::new();
            for variant in &variants {
                longer.extend(values.iter().map(|value| [&[(name, value.clone())][..], variant].concat()));
            }
            variants = longer;
        }
        for variant in variants {
            let filled = |text: &str, of: &dyn Fn(&str) -> String| {
                variant.iter().fold(text.to_owned(), |text, (name, value)| text.replace(name, &of(value)))
            };
            let escaped = |value: &str| json!(value).to_string().trim_matches('"').to_owned();
            let mut requests: Vec<(String, String)> = Vec::new();
            for line in &lines {
                if line.starts_with(|char: char| char.is_ascii_digit()) {
                    let answer = filled(line, &str::to_owned);
                    rows.extend(requests.drain(..).map(|(request, body)| row("", &request, body, &answer)));
                } else {
                    let (request, body) = line.split_at(line.find(" {").unwrap_or(line.len()));
                    requests.push((filled(request, &str::to_owned), filled(body.trim_start(), &escaped)));
                }
            }
            assert!(requests.is_empty(), "requests without an answer: {requests:?}");
        }
    }
    rows
}

#[test]
fn listed_requests_are_refused() {
    let mut rows = listed_rows();
    for (path, name) in [("psi%20", "psi "), ("%00", "\0"), ("%e2%98%83", "☃"), ("psi%2fx", "psi/x")] {
        let answer = format!("400 UNKNOWN_CHALLENGE: Unknown challenge type: {name}");
        rows.push(bare(&format!("POST /challenges/{path}"), &answer));
        rows.push(row("with a body", &format!("POST /challenges/{path}"), "{}", &answer));
    }
    RefusalFixture::new().refuses(rows);
}

#[test]
fn an_invite_that_was_offered_is_not_to_be_had_again_but_can_be_joined_once() {
    let fixture = RefusalFixture::new();
    fixture.client.post("/api/invites", &json!({ "inviteId": fixture.name("$free") })).ok();
    let used = "409 INVITE_ALREADY_USED: Invite already used: $free";
    let rows = || [bare("GET /invites/$free", used), row("", "POST /invites", r#"{"inviteId": "$free"}"#, used)];
    fixture.refuses(rows());
    fixture.client.join(fixture.name("$free")).ok();
    let join = row(
        "",
        "POST /arena/join",
        r#"{"invite": "$free"}"#,
        "400 INVITE_ALREADY_USED: This invite has already been used.",
    );
    fixture.refuses(rows().into_iter().chain([join]));
}

#[test]
fn lists_and_syncs_of_unknown_ids_are_empty() {
    let fixture = RefusalFixture::new();
    for api in APIS {
        for name in ["nothing", "PSI", "__proto__", "constructor", "%00"] {
            let page = fixture.client.get(&format!("{api}/challenges/{name}")).ok();
            assert_eq!(page, json!({"challenges": [], "total": 0, "limit": 10, "offset": 0, "profiles": {}}), "{name}");
        }
        for channel in ["$none", "challenge_$none", "nothing", "__proto__", "constructor", "challenge_", "%00", "%20"] {
            for route in ["arena", "chat"] {
                // A sync of an unknown channel doesn't wait.
                for wait in ["", "&wait=50"] {
                    let path = format!("{api}/{route}/sync?channel={channel}{wait}");
                    assert_eq!(
                        fixture.client.get(&fixture.fill(&path)).ok(),
                        json!({"messages": [], "count": 0}),
                        "{path}"
                    );
                }
            }
        }
    }
    fixture.refuses([]);
}

#[test]
fn wrong_methods_are_refused_with_the_error_body() {
    let fixture = RefusalFixture::new();
    let mut rows = Vec::new();
    for (path, allowed) in [
        ("/metadata", "GET,HEAD"),
        ("/metadata/psi", "GET,HEAD"),
        ("/challenges", "GET,HEAD"),
        ("/challenges/psi", "GET,HEAD,POST"),
        ("/invites", "POST"),
        ("/invites/$free", "GET,HEAD"),
        ("/arena/join", "POST"),
        ("/arena/message", "POST"),
        ("/arena/sync", "GET,HEAD"),
        ("/chat/send", "POST"),
        ("/chat/sync", "GET,HEAD"),
        ("/chat/ws/$active", "GET,HEAD"),
        ("/admin/bans", "GET,HEAD,POST"),
        ("/admin/bans/lift", "POST"),
        ("/admin/export", "GET,HEAD"),
        ("/admin/sessions/$active/remove", "POST"),
        ("/arena/mcp", "POST"),
        ("/chat/mcp", "POST"),
    ] {
        for method in ["GET", "POST", "PUT", "DELETE", "PATCH", "TRACE", "QUERY", "FOO"] {
            if allowed.split(',').any(|other| other == method) {
                continue;
            }
            let answer = format!("405 METHOD_NOT_ALLOWED: {method} is not allowed at /api{path}");
            rows.push(row("", &format!("{method} {path}"), "{}", &answer));
            for api in APIS {
                let answer = fixture.client.request(method, &fixture.fill(&format!("{api}{path}")), &[], b"");
                assert_eq!(answer.header("allow"), Some(allowed), "{method} {path}");
            }
        }
    }
    for path in ["/api", "/api/v1", "/api/v2/metadata", "/robots.txt", "/.env", "/API/metadata", "/index.html"] {
        let answer = summary(&fixture.client.get(path));
        assert_eq!(answer, format!("404 NOT_FOUND: path not found: {path}"));
    }
    for path in ["/", "/health", "/ready", "/metrics", "/web/style.css", "/skill.md", "/skill.json"] {
        let answer = summary(&fixture.client.request("POST", path, &[], b"{}"));
        assert_eq!(answer, format!("405 METHOD_NOT_ALLOWED: POST is not allowed at {path}"));
    }
    fixture.refuses(rows);
}

// Bodies.

/// A route with a JSON body, a valid body, and for each string field whether it is required.
type NeedsObject = (&'static str, &'static str, &'static [(&'static str, bool)]);

/// All routes with a JSON body.
const POSTS: [NeedsObject; 4] = [
    ("POST /arena/join", r#"{"invite": "$free", "userId": "ada"}"#, &[("invite", true), ("userId", false)]),
    (
        "POST /arena/message",
        r#"{"challengeId": "$active", "from": "$ada", "messageType": "guess", "content": "1"}"#,
        &[("challengeId", true), ("from", true), ("messageType", false), ("content", true)],
    ),
    (
        "POST /chat/send",
        r#"{"channel": "$active", "from": "$ada", "to": "$bob", "content": "hi"}"#,
        &[("channel", true), ("from", true), ("to", false), ("content", true)],
    ),
    ("POST /invites", r#"{"inviteId": "$free"}"#, &[("inviteId", true)]),
];

fn object(text: &str) -> Map<String, Value> {
    serde_json::from_str(text).expect("an object")
}

#[test]
fn a_body_that_is_no_json_object_is_refused() {
    let deep = |open: &str, close: &str| format!("{}{}", open.repeat(100_000), close.repeat(100_000));
    let in_field = |good: &str, value: &str| {
        let (rest, _) = good.rsplit_once('}').expect("an object");
        format!(r#"{rest}, "more": {value}}}"#).into_bytes()
    };
    let mut rows = Vec::new();
    for (request, good, _) in POSTS {
        rows.push(row("empty", request, "", "400 INVALID_JSON: Invalid JSON in request body"));
        // The body is optional for creating a session, so that route is tested only here.
        for request in [request, "POST /challenges/psi"] {
            let mut refuse = |what: &str, body: &[u8]| {
                rows.push(row(what, request, body, "400 INVALID_JSON: Invalid JSON in request body"));
            };
            let malformed = " |{|}|[]|null|true|42|NaN|\"text\"|{'a': 1}|{a: 1}|{\"a\":}|{\"a\": 1,}|{}{}|{} x|/**/{}|[{}]|\0|\
                {\"a\": \"\n\"}|{\"a\": \"\\x41\"}|{\"a\": 01}|invite=x";
            for body in malformed.split('|') {
                refuse("malformed", body.as_bytes());
            }
            refuse("byte order mark", format!("\u{feff}{good}").as_bytes());
            refuse("UTF-16", &good.encode_utf16().flat_map(u16::to_le_bytes).collect::<Vec<u8>>());
            refuse("cut off", &good.as_bytes()[..good.len() - 1]);
            refuse("a list of objects", format!("[{good}]").as_bytes());
            refuse("twice", format!("{good}{good}").as_bytes());
            refuse(
                "invalid UTF-8",
                &in_field(good, "\"?\"").iter().map(|b| if *b == b'?' { 0xff } else { *b }).collect::<Vec<u8>>(),
            );
            refuse("overlong UTF-8", &[b"{\"a\": \"".as_slice(), b"\xc0\x80", b"\"}"].concat());
            refuse("UTF-8 of a surrogate", &[b"{\"a\": \"".as_slice(), b"\xed\xa0\x80", b"\"}"].concat());
            for value in [r#""\ud800""#, r#""\udc00""#, r#""\ud800\ud800""#, r#""\udc00\ud800""#, r#""\ud83dx""#] {
                refuse("a lone surrogate", &in_field(good, value));
            }
            for value in ["NaN", "Infinity", "-Infinity", "1e999", "0x10", "1.", ".5", "+1", "undefined"] {
                refuse("no number of JSON", &in_field(good, value));
            }
            refuse("deep", deep("[", "]").as_bytes());
            refuse("deep and open", "[".repeat(100_000).as_bytes());
            refuse("deep objects", deep("{\"a\":", "}").as_bytes());
            refuse("deep field", &in_field(good, &deep("[", "]")));
            refuse("deep options", format!(r#"{{"options": {}}}"#, deep("[", "]")).as_bytes());
        }
    }
    RefusalFixture::new().refuses(rows);
}

#[test]
fn a_missing_null_or_mistyped_field_is_named() {
    let mut rows = Vec::new();
    for (request, good, fields) in POSTS {
        for &(field, needed) in fields {
            let mut case = |what: &str, value: Option<Value>, answer: String| {
                let mut body = object(good);
                match value {
                    Some(value) => body.insert(field.to_owned(), value),
                    None => body.remove(field),
                };
                rows.push(row(what, request, Value::Object(body).to_string(), &answer));
            };
            if needed {
                case("missing", None, format!("400 MISSING_FIELD: {field} is required"));
            }
            let good = object(good)[field].clone();
            let wrong = [
                Value::Null,
                json!(0),
                json!(-1.5),
                json!(u64::MAX),
                json!(true),
                json!([]),
                json!([good]),
                json!([[good]]),
                json!({}),
                json!({ "toString": good }),
            ];
            for value in wrong {
                case("mistyped", Some(value), format!("400 INVALID_FIELD: {field} must be a string"));
            }
            let answer = format!("400 INVALID_FIELD: {field} must not contain the character U+0000");
            for text in ["\0", "a\0b", &format!("{}\0", good.as_str().expect("a text"))] {
                case("U+0000", Some(json!(text)), answer.clone());
            }
        }
        rows.push(row(
            "nothing in it",
            request,
            "{}",
            &format!(
                "400 MISSING_FIELD: {} is required",
                fields.iter().find(|(field, _)| *field != "from").expect("a field").0
            ),
        ));
    }
    let long = json!({ "invite": "$free", "userId": "x".repeat(256) }).to_string();
    let answer = "400 INVALID_FIELD: userId is not a user id (1 to 255 bytes without control characters)";
    rows.push(row("a long name", "POST /arena/join", long, answer));
    RefusalFixture::new().refuses(rows);
}

#[test]
fn options_of_a_wrong_type_are_refused() {
    let fixture = RefusalFixture::new();
    let before = fixture.seen();
    // The sentence about a wrong type comes from serde and is not checked.
    for options in [
        r#"{"setSize": "4"}"#,
        r#"{"setSize": -1}"#,
        r#"{"setSize": 1.5}"#,
        r#"{"setSize": 1e3}"#,
        r#"{"setSize": null}"#,
        r#"{"setSize": 99999999999999999999}"#,
        r#"{"range": 5}"#,
        r#"{"range": [1]}"#,
        r#"{"range": [1, 2, 3]}"#,
        r#"{"range": ["1", "900"]}"#,
        r#"{"range": {"0": 1, "1": 900}}"#,
    ] {
        for api in APIS {
            let body = format!(r#"{{"options": {options}}}"#);
            let answer = fixture.client.request("POST", &format!("{api}/challenges/psi"), &[], body.as_bytes());
            assert_eq!(answer.refusal(), (400, "INVALID_OPTIONS".to_owned()), "{options}");
        }
    }
    assert_eq!(fixture.seen(), before);
    fixture.client.plays_a_game();
}

#[test]
fn proto_and_constructor_are_names_like_any_other() {
    let host = Host::start();
    let client = host.client();
    let (session, players) = client.create("psi");
    for (player, user) in players.iter().zip(["__proto__", "constructor"]) {
        client.post("/api/arena/join", &json!({ "invite": player, "userId": user, "__proto__": {"x": 1} })).ok();
        client.chat(&session, player, user).ok();
    }
    client.ends_well(&session, &players);
    let page = client.get("/api/challenges").ok();
    let identities = json!({ players[0].clone(): "__proto__", players[1].clone(): "constructor" });
    assert_eq!(page["challenges"][0]["state"]["playerIdentities"], identities);
    let profiles = json!({ "__proto__": {"userId": "__proto__"}, "constructor": {"userId": "constructor"} });
    assert_eq!(page["profiles"], profiles);
    let said = client.get(&format!("/api/chat/sync?channel={session}")).messages();
    assert_eq!(said.iter().map(|message| &message["content"]).collect::<Vec<_>>(), ["__proto__", "constructor"]);
}

// Sizes.

/// Pads a valid object to a number of bytes, with an unknown field.
fn blown_up(good: &str, bytes: usize) -> Vec<u8> {
    let (rest, _) = good.rsplit_once('}').expect("an object");
    let frame = format!(r#"{rest}, "more": ""}}"#).len();
    format!(r#"{rest}, "more": "{}"}}"#, "x".repeat(bytes - frame)).into_bytes()
}

fn chunked(path: &str, body: &[u8]) -> Vec<u8> {
    let mut request =
        format!("POST {path} HTTP/1.1\r\nHost: arena\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n")
            .into_bytes();
    for chunk in body.chunks(10_000) {
        request.extend(format!("{:x}\r\n", chunk.len()).into_bytes());
        request.extend(chunk);
        request.extend(b"\r\n");
    }
    request.extend(b"0\r\n\r\n");
    request
}

#[test]
fn a_body_may_be_as_large_as_the_limit_and_no_larger() {
    const MIB: usize = 1024 * 1024;
    let fixture = RefusalFixture::new();
    let too_large = "413 BODY_TOO_LARGE: the request body is larger than 1048576 bytes (limits.body_bytes)";
    let invite = "inv_00000000-0000-7000-8000-000000000000";
    let join = format!(r#"{{"invite": "{invite}"}}"#);
    let unknown = format!("400 INVITE_NOT_FOUND: Challenge not found for invite: {invite}");
    let mut rows = vec![row("at the limit", "POST /arena/join", blown_up(&join, MIB), &unknown)];
    for request in
        POSTS.map(|(request, _, _)| request).into_iter().chain(["POST /challenges/psi", "POST /challenges/x"])
    {
        rows.push(row("over the limit", request, blown_up(&join, MIB + 1), too_large));
        rows.push(row("no JSON", request, vec![0xff; MIB + 1], too_large));
        rows.push(row("far over the limit", request, vec![b'['; 8 * MIB], too_large));
    }
    for api in APIS {
        let answer = |bytes| {
            let request = chunked(&format!("{api}/arena/join"), &blown_up(&join, bytes));
            summary(&fixture.client.raw(&request).expect("an answer"))
        };
        assert_eq!(answer(MIB), unknown);
        assert_eq!(answer(MIB + 1), too_large);
        assert_eq!(answer(8 * MIB), too_large);
    }
    fixture.refuses(rows);
}

#[test]
fn a_message_may_be_as_long_as_the_limit_and_no_longer() {
    let fixture = RefusalFixture::with(|settings| settings.limits.message_bytes = 100);
    let too_large = "413 MESSAGE_TOO_LARGE: content is longer than 100 bytes (limits.message_bytes)";
    let mut rows = Vec::new();
    for content in ["x".repeat(101), "é".repeat(51), "x".repeat(500_000)] {
        for (request, good, _) in &POSTS[1..3] {
            let mut body = object(good);
            body.insert("content".to_owned(), json!(content));
            rows.push(row("", request, Value::Object(body).to_string(), too_large));
        }
    }
    fixture.refuses(rows);
    let (active, ada) = (fixture.name("$active"), fixture.name("$ada"));
    for content in ["x".repeat(100), "é".repeat(50), String::new()] {
        fixture.client.chat(active, ada, &content).ok();
        let said = fixture.client.get(&format!("/api/chat/sync?channel={active}")).messages();
        assert_eq!(said.last().expect("a message")["content"], content.as_str());
    }
}

#[test]
fn a_full_channel_takes_no_more_chat_and_the_game_can_end() {
    let host = Host::start_with(|settings| settings.limits.channel_messages = 5);
    let client = host.client();
    let (session, players) = client.seated("psi");
    for n in 1..=5 {
        assert_eq!(client.chat(&session, &players[n % 2], "hello").ok()["index"], n);
    }
    for player in &players {
        let answer = client.chat(&session, player, "hello");
        assert_eq!(
            summary(&answer),
            "413 CHANNEL_FULL: the channel is full: it holds at most 5 messages (limits.channel_messages)"
        );
    }
    assert_eq!(client.get(&format!("/api/chat/sync?channel={session}")).ok()["count"], 5);
    client.ends_well(&session, &players);
    client.plays_a_game();
}

#[test]
fn players_write_a_bounded_text_in_a_session_and_the_game_can_end() {
    let host = Host::start_with(|settings| settings.limits.chat_bytes = 1000);
    let client = host.client();
    let (session, players) = client.seated("psi");
    for n in 0..10 {
        client.chat(&session, &players[n % 2], &"x".repeat(100)).ok();
    }
    for player in &players {
        let answer = client.chat(&session, player, "x");
        let text = "413 CHAT_FULL: the chat of this session holds at most 1000 bytes (limits.chat_bytes)";
        assert_eq!(summary(&answer), text);
    }
    client.ends_well(&session, &players);
    client.plays_a_game();
}

#[test]
fn a_full_operator_channel_takes_nothing_idle_and_the_game_can_end() {
    let host = Host::start_with(|settings| settings.limits.channel_messages = 3);
    let client = host.client();
    let (session, players) = client.create("psi");
    let sync = format!("/api/arena/sync?channel={session}");
    client.join(&players[0]).ok();
    // The operator replies to each action before the game, until the channel is full.
    for _ in 0..3 {
        client.act(&session, &players[0], "guess", "1").ok();
    }
    for _ in 0..2 {
        let answer = client.act(&session, &players[0], "guess", "1");
        assert_eq!(
            summary(&answer),
            "413 CHANNEL_FULL: the channel is full: it holds at most 3 messages (limits.channel_messages)"
        );
    }
    assert_eq!(client.get(&sync).ok()["count"], 3);
    // Messages that advance the game are sent even if the channel is full. The game's rules bound their number.
    client.join(&players[1]).ok();
    client.ends_well(&session, &players);
    let indexes: Vec<u64> =
        client.get(&sync).messages().iter().filter_map(|message| message["index"].as_u64()).collect();
    assert_eq!(indexes, (1..=indexes.len() as u64).collect::<Vec<u64>>());
    assert_eq!(client.act(&session, &players[0], "guess", "1").refusal(), (413, "CHANNEL_FULL".to_owned()));
}

// Queries, paths and headers.

#[test]
fn invalid_idempotency_keys_are_refused() {
    let mut rows = Vec::new();
    let key = "400 INVALID_IDEMPOTENCY_KEY: Idempotency-Key must be 1 to 255 printable ASCII characters";
    for (request, good, _) in POSTS.into_iter().chain([("POST /challenges/psi", "{}", [].as_slice())]) {
        for bad in ["x".repeat(256), "x".repeat(20_000), String::new(), "schlüssel".to_owned(), "a\tb".to_owned()] {
            rows.push(row("", request, good, key).with("Idempotency-Key", &bad));
        }
    }
    RefusalFixture::new().refuses(rows);
}

#[test]
fn an_idempotency_key_may_have_255_characters() {
    let host = Host::start();
    let client = host.client();
    let create = |key: &str| client.post_once("/api/challenges/psi", key, &json!({})).ok();
    let (long, other) = ("k".repeat(255), format!("{}l", "k".repeat(254)));
    assert_eq!(create(&long), create(&long));
    assert_ne!(create(&long), create(&other));
    assert_eq!(client.get("/api/challenges").ok()["total"], 2);
}

#[test]
fn numbers_that_are_none_count_as_left_out() {
    let fixture = RefusalFixture::new();
    let (client, active) = (&fixture.client, fixture.name("$active"));
    for text in ["two", "three"] {
        client.chat(active, fixture.name("$bob"), text).ok();
    }
    let get = |path: &str| client.get(path).ok().to_string();
    let junk = "|-1|-0|1.5|NaN|nan|0x2|0b1|1e9|1e0|Infinity|-Infinity|two|null|true|%2B2|+2|2%20|%00|1_000|1,000|[2]|%D9%A2|\
        99999999999999999999|-9223372036854775809";
    for api in APIS {
        for value in junk.split('|') {
            for route in ["arena", "chat"] {
                let sync = format!("{api}/{route}/sync?channel={active}");
                assert_eq!(get(&format!("{sync}&index={value}")), get(&sync), "index={value}");
                for limit in [value, "0"] {
                    let answer = summary(&client.get(&format!("{sync}&limit={limit}")));
                    assert_eq!(
                        answer, "400 INVALID_LIMIT: limit must be a whole number of at least 1",
                        "limit={limit}"
                    );
                }
            }
            for list in ["challenges", "challenges/psi"] {
                let list = format!("{api}/{list}");
                // An offset of 20 digits is beyond the end of the list, so it is not an invalid value.
                let offset = if value.len() == 20 && value.starts_with('9') { "0" } else { value };
                let end = client.get(&format!("{list}?offset=99999999999999999999")).ok();
                assert_eq!((&end["challenges"], &end["offset"]), (&json!([]), &json!(9_007_199_254_740_991_u64)));
                assert_eq!(
                    get(&format!("{list}?limit={value}&offset={offset}")),
                    get(&list),
                    "limit and offset {value}"
                );
            }
        }
        for (list, default) in [("challenges", 50), ("challenges/psi", 10)] {
            for (query, limit, offset, items) in [
                ("limit=0", json!(default), json!(0), 2),
                ("limit=1", json!(1), json!(0), 1),
                ("limit=100", json!(100), json!(0), 2),
                ("limit=101", json!(100), json!(0), 2),
                ("limit=18446744073709551615", json!(100), json!(0), 2),
                ("offset=1", json!(default), json!(1), 1),
                ("offset=2", json!(default), json!(2), 0),
                ("offset=1000000000", json!(default), json!(1_000_000_000), 0),
                ("offset=18446744073709551615", json!(default), json!(9_007_199_254_740_991_u64), 0),
                ("limit=1&limit=2", json!(1), json!(0), 1),
                ("status=nothing&status=ended", json!(default), json!(0), 2),
                ("status=__proto__", json!(default), json!(0), 2),
            ] {
                let page = client.get(&format!("{api}/{list}?{query}")).ok();
                let found = page["challenges"].as_array().expect("a list").len();
                assert_eq!((&page["limit"], &page["offset"], found), (&limit, &offset, items), "{list}?{query}");
                assert_eq!(page["total"], 2, "{list}?{query}");
            }
        }
        for (index, count) in [("0", 3), ("1", 3), ("2", 2), ("03", 1), ("4", 0), ("18446744073709551615", 0)] {
            let sync = client.get(&format!("{api}/chat/sync?channel={active}&index={index}")).ok();
            assert_eq!(sync["count"], count, "index={index}");
        }
        for (limit, count) in [("1", 1), ("3", 3), ("4", 3), ("18446744073709551615", 3)] {
            let sync = client.get(&format!("{api}/chat/sync?channel={active}&limit={limit}")).ok();
            assert_eq!(sync["count"], count, "limit={limit}");
        }
    }
    fixture.refuses([]);
}

// Senders.

#[test]
fn spectators_speak_under_names_of_reasonable_size_only() {
    let fixture = RefusalFixture::with(|settings| settings.sessions.spectators_chat = true);
    let say = |from: &str| json!({ "channel": "$active", "from": from, "content": "hi" }).to_string();
    let mut rows = vec![
        row("", "POST /chat/send", say("operator"), "400 FORBIDDEN_SENDER: from cannot be operator"),
        row("", "POST /chat/send", say("$free"), "400 PLAYER_NOT_FOUND: only players of the session may chat here"),
    ];
    let no_name = "400 INVALID_FIELD: from is not a user id (1 to 255 bytes without control characters)";
    for name in ["x".repeat(256), "x".repeat(500_000), "a\nb".to_owned()] {
        rows.push(row("", "POST /chat/send", say(&name), no_name));
    }
    rows.push(row("", "POST /chat/send?from=a%00b", say("$ada"), no_name));
    fixture.refuses(rows);
    assert_eq!(fixture.client.chat(fixture.name("$active"), "eve", "hi").ok()["from"], "eve");
}

#[test]
fn metrics_do_not_grow_with_unknown_paths_and_methods() {
    let fixture = RefusalFixture::new();
    let client = &fixture.client;
    let series = |n: usize| {
        for i in 0..n {
            for path in ["/health", "/api/metadata", "/api/v1/arena/join", "/api/chat/ws/x"] {
                assert_eq!(client.request(&format!("METHOD{i}"), path, &[], b"").status, 405);
            }
            for path in ["/api/metadata", "/api/challenges", "/api/invites", "/api/chat/ws", "/nothing"] {
                client.get(&format!("{path}/{i}?from={i}&{i}={i}"));
            }
        }
        client.get("/metrics").text().lines().count()
    };
    let few = series(1);
    // The time series of `/metrics` itself exists only after the first request.
    assert!((few..few + 20).contains(&series(50)));
    fixture.refuses([]);
}

// Streams, slow and broken requests.

#[test]
fn a_stream_that_is_not_read_on_leaves_no_subscriber() {
    let fixture = RefusalFixture::new();
    let client = &fixture.client;
    let subscribers = || client.counter("arena_stream_subscribers");
    let path = fixture.fill("/api/chat/ws/$active");
    for _ in 0..20 {
        let answer = client.request("HEAD", &path, &[], b"");
        assert_eq!((answer.status, answer.header("content-type")), (200, Some("text/event-stream")));
        assert_eq!(subscribers(), 0);
    }
    let stream = client.stream(&path, None);
    until("a stream is counted", || subscribers() == 1);
    drop(stream);
    until("a stream that was left isn't", || subscribers() == 0);
    until_alone(client);
    fixture.refuses([]);
}

/// Sends bytes, optionally closes the sending side, and returns the received bytes until the server disconnects.
#[track_caller]
pub(super) fn exchange(client: &Client, bytes: &[u8], and_end: bool) -> String {
    let mut stream = client.connect().expect("a connection");
    // The server may disconnect before it has read everything.
    let _ = stream.write_all(bytes);
    if and_end {
        let _ = stream.shutdown(Shutdown::Write);
    }
    until_hung_up(&mut stream)
}

#[track_caller]
pub(super) fn until_hung_up(stream: &mut TcpStream) -> String {
    let mut answer = Vec::new();
    match stream.read_to_end(&mut answer) {
        Ok(_) => {}
        Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
            panic!("the server neither responds nor disconnects: {}", String::from_utf8_lossy(&answer))
        }
        // The server closed the connection without reading everything.
        Err(_) => {}
    }
    String::from_utf8_lossy(&answer).into_owned()
}

/// Returns the statuses of all responses in the received bytes.
fn statuses(answers: &str) -> Vec<&str> {
    let lines = answers.lines().filter_map(|line| line.split_once("HTTP/1.")?.1.get(2..5));
    lines.filter(|status| status.bytes().all(|byte| byte.is_ascii_digit())).collect()
}

#[test]
fn a_request_that_does_not_arrive_is_answered_in_time() {
    let fixture = RefusalFixture::with(|settings| settings.limits.request_ms = 200);
    let client = &fixture.client;
    let before = fixture.seen();
    let too_slow =
        r#"{"error":"the request did not arrive within 200 ms (limits.request_ms)","code":"REQUEST_TIMEOUT"}"#;
    let waits = |route: &str, rest: &str| {
        let answer = exchange(client, format!("{route} HTTP/1.1\r\nHost: arena\r\n{rest}").as_bytes(), false);
        assert!(answer.starts_with("HTTP/1.1 408 ") && answer.ends_with(too_slow), "{route} {rest}\n{answer}");
    };
    let waits = &waits;
    thread::scope(|scope| {
        for api in APIS {
            for (route, _, _) in POSTS {
                for rest in [
                    "Content-Length: 100\r\n\r\n",
                    "Content-Length: 100\r\n\r\n{\"invite\"",
                    "Transfer-Encoding: chunked\r\n\r\n",
                    "Transfer-Encoding: chunked\r\n\r\n5\r\n{\"inv",
                    "Transfer-Encoding: chunked\r\n\r\n5\r\n{\"inv\r\n",
                    "Transfer-Encoding: chunked\r\n\r\nf",
                ] {
                    scope.spawn(move || waits(&route.replace("POST ", &format!("POST {api}")), rest));
                }
            }
        }
    });
    // Sending byte by byte doesn't extend the timeout.
    let mut stream = client.connect().expect("a connection");
    stream.write_all(b"POST /api/arena/join HTTP/1.1\r\nHost: arena\r\nContent-Length: 100000\r\n\r\n").expect("sent");
    stream.set_read_timeout(Some(Duration::from_millis(10))).expect("a timeout");
    let mut start = [0; 12];
    let started = Instant::now();
    while stream.read_exact(&mut start).is_err() {
        assert!(started.elapsed() < Duration::from_secs(20), "drops are taken for ever");
        let _ = stream.write_all(b"x");
    }
    assert_eq!(&start, b"HTTP/1.1 408");
    drop(stream);
    until_alone(client);
    assert_eq!(fixture.seen(), before);
    client.plays_a_game();
}

#[test]
fn a_body_that_breaks_off_is_no_body() {
    let fixture = RefusalFixture::new();
    let client = &fixture.client;
    let before = fixture.seen();
    for (request, good, _) in POSTS {
        let (_, path) = request.split_once(' ').expect("a method and a path");
        let body = fixture.fill(good);
        let head = format!("POST /api{path} HTTP/1.1\r\nHost: arena\r\nContent-Length: {}\r\n\r\n", body.len());
        for sent in [0, 1, body.len() / 2, body.len() - 1] {
            let request = [head.as_bytes(), &body.as_bytes()[..sent]].concat();
            let answer = exchange(client, &request, true);
            assert!(answer.is_empty() || answer.contains("BODY_INCOMPLETE"), "{answer}");
            drop(client.connect().expect("a connection").write_all(&request));
        }
        let whole = chunked(&format!("/api{path}"), body.as_bytes());
        for sent in [1, 3, 10] {
            let answer = exchange(client, &whole[..whole.len() - sent], true);
            assert!(answer.is_empty() || answer.contains("BODY_INCOMPLETE"), "{answer}");
        }
    }
    until_alone(client);
    assert_eq!(fixture.seen(), before);
    client.plays_a_game();
}

#[test]
fn malformed_http_is_refused() {
    let fixture = RefusalFixture::new();
    let client = &fixture.client;
    let before = fixture.seen();
    let join = fixture.fill(r#"{"invite": "$free"}"#);
    let head = "POST /api/arena/join HTTP/1.1\r\nHost: arena\r\n";
    let mut bytes: Vec<(&str, Vec<u8>)> = vec![
        ("zeros", vec![0; 10_000]),
        ("high bytes", vec![0xff; 10_000]),
        ("line ends", b"\r\n".repeat(50_000)),
        ("every byte", (0..=u8::MAX).cycle().take(10_000).collect()),
        ("a TLS hello", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03".to_vec()),
        ("HTTP/2", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0".to_vec()),
        ("HTTP/9", b"GET /api/metadata HTTP/9.9\r\n\r\n".to_vec()),
        ("no version", b"GET /api/metadata\r\n\r\n".to_vec()),
        ("no path", b"GET HTTP/1.1\r\n\r\n".to_vec()),
        ("a space too many", b"GET  /api/metadata HTTP/1.1\r\n\r\n".to_vec()),
        ("high bytes in the path", b"GET /api/metadata/\xff\xfe HTTP/1.1\r\nConnection: close\r\n\r\n".to_vec()),
        ("a control character in the path", b"GET /api/metadata/\x01 HTTP/1.1\r\n\r\n".to_vec()),
        ("a zero in a header", b"GET /api/metadata HTTP/1.1\r\nX: a\0b\r\n\r\n".to_vec()),
        ("a header without colon", b"GET /api/metadata HTTP/1.1\r\nnothing\r\n\r\n".to_vec()),
        ("a space before the colon", b"GET /api/metadata HTTP/1.1\r\nHost : arena\r\n\r\n".to_vec()),
        ("a line of 1 MB", [b"GET /api/metadata?".as_slice(), &b"x".repeat(1_000_000), b" HTTP/1.1\r\n\r\n"].concat()),
        ("a method of 1 MB", [b"G".repeat(1_000_000).as_slice(), b" / HTTP/1.1\r\n\r\n"].concat()),
        ("a header of 1 MB", [b"GET / HTTP/1.1\r\nX: ".as_slice(), &b"x".repeat(1_000_000), b"\r\n\r\n"].concat()),
        ("10,000 headers", [b"GET / HTTP/1.1\r\n".as_slice(), &b"X: y\r\n".repeat(10_000), b"\r\n"].concat()),
        ("200 headers", [b"GET / HTTP/1.1\r\n".as_slice(), &b"X: y\r\n".repeat(200), b"\r\n"].concat()),
    ];
    for length in ["-1", "+19", "x", "1e3", "0x10", "99999999999999999999", "19, 20", "19\r\nContent-Length: 20", "1 9"]
    {
        bytes.push(("a length that is none", format!("{head}Content-Length: {length}\r\n\r\n{join}").into_bytes()));
    }
    for coding in ["gzip", "chunked, gzip", "chunked\r\nTransfer-Encoding: identity", "chunke d"] {
        let body = format!("{:x}\r\n{join}\r\n0\r\n\r\n", join.len());
        bytes.push(("an unknown coding", format!("{head}Transfer-Encoding: {coding}\r\n\r\n{body}").into_bytes()));
    }
    for chunk in ["x", "-1", "", "fffffffffffffffff", "0x13", "13 13"] {
        let body = format!("{chunk}\r\n{join}\r\n0\r\n\r\n");
        bytes.push(("a chunk without size", format!("{head}Transfer-Encoding: chunked\r\n\r\n{body}").into_bytes()));
    }
    let mut wrong = String::new();
    for (what, bytes) in &bytes {
        let answer = exchange(client, bytes, true);
        let good = statuses(&answer).iter().all(|status| status.starts_with('4') || ["501", "505"].contains(status));
        if !good {
            let start = String::from_utf8_lossy(&bytes[..bytes.len().min(200)]);
            let _ = writeln!(wrong, "{what}: {start:?}\n  {answer}");
        }
    }
    assert!(wrong.is_empty(), "\n{wrong}");
    until_alone(client);
    assert_eq!(fixture.seen(), before);
    client.plays_a_game();
}

#[test]
fn odd_but_good_http_is_served() {
    let fixture = RefusalFixture::new();
    let client = &fixture.client;
    for request in [
        "GET /api/metadata HTTP/1.1\r\nHost:\r\nConnection: close\r\n\r\n",
        "GET /api/metadata HTTP/1.0\r\n\r\n",
        "GET http://elsewhere/api/metadata HTTP/1.1\r\nHost: arena\r\nConnection: close\r\n\r\n",
        "\r\n\r\nGET /api/metadata HTTP/1.1\r\nHost: arena\r\nConnection: close\r\n\r\n",
        "GET /api/metadata HTTP/1.1\r\nHost: arena\r\nConnection: close\r\nContent-Length: 5\r\n\r\nhello",
    ] {
        assert_eq!(statuses(&exchange(client, request.as_bytes(), false)), ["200"], "{request}");
    }
    for request in ["OPTIONS * HTTP/1.1", "CONNECT arena:80 HTTP/1.1", "GET * HTTP/1.1"] {
        let answer =
            exchange(client, format!("{request}\r\nHost: arena\r\nConnection: close\r\n\r\n").as_bytes(), false);
        assert!(statuses(&answer).iter().all(|status| !status.starts_with('5')), "{request}: {answer}");
    }
    fixture.refuses([]);
}

#[test]
fn requests_in_one_go_are_answered_one_by_one() {
    let fixture = RefusalFixture::new();
    let client = &fixture.client;
    let say = |text: &str| {
        let body = fixture.fill(&format!(r#"{{"channel": "$active", "from": "$ada", "content": "{text}"}}"#));
        format!("POST /api/chat/send HTTP/1.1\r\nHost: arena\r\nContent-Length: {}\r\n\r\n{body}", body.len())
    };
    let get = "GET /api/metadata HTTP/1.1\r\nHost: arena\r\n\r\n";
    let bad = "POST /api/chat/send HTTP/1.1\r\nHost: arena\r\nContent-Length: 4\r\n\r\nnull";
    let last = "GET /health HTTP/1.1\r\nHost: arena\r\nConnection: close\r\n\r\n";
    let all = [&say("one"), get, bad, &say("two"), bad, get, last].concat();
    assert_eq!(statuses(&exchange(client, all.as_bytes(), false)), ["200", "200", "400", "200", "400", "200", "200"]);
    // Requests before malformed bytes are served. Requests after them are not.
    let broken = [say("three").as_bytes(), b"\xff\xff garbage \r\n\r\n", say("four").as_bytes()].concat();
    assert_eq!(statuses(&exchange(client, &broken, false)), ["200", "400"]);
    let said = client.get(&fixture.fill("/api/chat/sync?channel=$active")).messages();
    let texts: Vec<&str> = said.iter().filter_map(|message| message["content"].as_str()).collect();
    assert_eq!(texts, ["hello", "one", "two", "three"]);
    let many = [get.repeat(500).as_str(), last].concat();
    assert_eq!(statuses(&exchange(client, many.as_bytes(), false)), ["200"; 501]);
    fixture.refuses([]);
}

// Rates.

#[test]
fn a_rate_limit_names_its_setting_and_the_time_to_wait() {
    let host = Host::start_with(|settings| {
        settings.limits.limit_loopback = true;
        settings.limits.requests_per_second = 2;
        settings.limits.requests_burst = 20;
    });
    let client = host.client();
    let (session, players) = client.seated("psi");
    let state = format!("/api/chat/sync?channel={session}");
    let allowed = (0..1000).take_while(|_| client.get("/api/metadata").status == 200).count();
    assert!(allowed >= 20 - 3, "{allowed}");
    let requests: [&dyn Fn() -> Answer; 6] = [
        &|| client.get(&state),
        &|| client.get("/api/v1/challenges"),
        &|| client.get("/skill.md"),
        &|| client.chat(&session, &players[0], "hello"),
        &|| client.act(&session, &players[0], "nothing", "1"),
        &|| client.post("/api/v1/challenges/psi", &json!({})),
    ];
    for request in requests {
        // Each half second allows one more request.
        let answer = (0..1000).map(|_| request()).find(|answer| answer.status == 429).expect("too many at last");
        let body = answer.json();
        assert_eq!(body["code"], "RATE_LIMITED");
        let error = body["error"].as_str().expect("a text");
        let limit = "more than 2 requests per second from this address; each full 16 KiB of a JSON body or form counts \
                     as one more request (limits.requests_per_second); wait 0.";
        assert!(error.starts_with(limit), "{error}");
        assert_eq!(answer.header("retry-after"), Some("1"));
        let wait_ms = body["retryAfterMs"].as_u64().expect("a number");
        assert!((1..=500).contains(&wait_ms), "{wait_ms}");
    }
    // Monitoring isn't limited, and waiting helps.
    assert_eq!(client.get("/health").status, 200);
    assert_eq!(client.get("/metrics").status, 200);
    until("the address may ask again", || client.get(&state).status == 200);
}

#[test]
fn large_bodies_count_as_several_requests_and_change_nothing_when_there_are_too_many() {
    let host = Host::start_with(|settings| {
        settings.limits.limit_loopback = true;
        settings.limits.requests_per_second = 1;
        settings.limits.requests_burst = 80;
    });
    let client = host.client();
    let (session, players) = client.seated("psi");
    // Each body counts as 33 requests, so two are accepted, and the next one only after many seconds.
    let long = "x".repeat(512 * 1024);
    let summary: Vec<u16> = (0..4).map(|_| client.chat(&session, &players[0], &long).status).collect();
    let taken = summary.iter().filter(|status| **status == 200).count();
    assert!(summary[..2] == [200, 200] && summary.contains(&429), "{summary:?}");
    let state = format!("/api/chat/sync?channel={session}");
    until("the address may ask again", || client.get("/api/metadata").status == 200);
    until("all of it was read", || {
        let answer = client.get(&state);
        answer.status == 200 && answer.json()["messages"].as_array().unwrap().len() == taken
    });
}

#[test]
fn the_limit_of_writes_applies_to_one_player_only() {
    let host = Host::start_with(|settings| {
        settings.limits.limit_loopback = true;
        settings.limits.requests_per_second = 0;
        settings.limits.writes_per_second = 2;
        settings.limits.writes_burst = 10;
    });
    let client = host.client();
    let (session, players) = client.seated("psi");
    let writes: [&dyn Fn() -> Answer; 2] =
        [&|| client.chat(&session, &players[0], "hello"), &|| client.act(&session, &players[0], "nothing", "1")];
    for write in writes {
        let refused = (0..1000).map(|_| write()).find(|answer| answer.status == 429).expect("too many at last");
        let body = refused.json();
        assert_eq!(body["code"], "RATE_LIMITED");
        let limit = "more than 2 actions and messages per second from this player (limits.writes_per_second); wait 0.";
        assert!(body["error"].as_str().expect("a text").starts_with(limit), "{body}");
        assert!((1..=500).contains(&body["retryAfterMs"].as_u64().expect("a number")), "{body}");
    }
    // The limit affects neither other players nor the player's reads.
    for _ in 0..10 {
        client.chat(&session, &players[1], "are you still there?").ok();
        client.get(&format!("/api/chat/sync?channel={session}&from={}", players[0])).ok();
    }
    until("the player may write again", || client.chat(&session, &players[0], "yes").status == 200);
}

// Random requests.

/// Names of fields, and other names.
const FIELDS: &str = "invite|userId|challengeId|content|messageType|from|channel|to|inviteId|options|publicKey|signature|\
    timestamp|__proto__|constructor|";

fn field_name() -> impl Strategy<Value = &'static str> {
    select(FIELDS.split('|').collect::<Vec<_>>())
}

fn odd_text() -> impl Strategy<Value = String> {
    const KNOWN: &str = "$active|$open|$ada|$bob|$carl|$free|$none|inv_$none|challenge_$active|invites|guess|operator|viewer|\
        __proto__|constructor|inv_hidden|1, 2, 3|-5||\0";
    prop_oneof![
        6 => select(KNOWN.split('|').collect::<Vec<_>>()).prop_map(str::to_owned),
        2 => any::<String>(),
        1 => (any::<char>(), 1usize..20_000).prop_map(|(char, n)| char.to_string().repeat(n)),
    ]
}

fn odd_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        12 => odd_text().prop_map(Value::from),
        1 => Just(Value::Null),
        1 => any::<bool>().prop_map(Value::from),
        1 => any::<i64>().prop_map(Value::from),
        1 => any::<f64>().prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 16, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((field_name(), inner), 0..4)
                .prop_map(|fields| fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()),
        ]
    })
}

#[test]
fn no_object_makes_the_server_fail() {
    let fixture = RefusalFixture::new();
    let field = prop_oneof![
        1 => (field_name(), odd_value()),
        // Some values are valid, so that some requests reach later checks.
        1 => select(&[
            ("invite", "$free"), ("inviteId", "$free"), ("challengeId", "$active"), ("channel", "$active"), ("from", "$ada"),
            ("from", "$bob"), ("to", "$bob"), ("messageType", "guess"), ("content", "1, 2"), ("content", "hi"),
        ][..]).prop_map(|(name, text)| (name, json!(text))),
    ];
    let body = prop::collection::vec(field, 0..9)
        .prop_map(|fields| fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect::<Value>());
    let api = select(&APIS[..]);
    let query =
        prop_oneof![4 => Just(""), 1 => select(&["?from=", "?from=$ada", "?from=operator", "?from=%00", "?&=&"][..])];
    TestRunner::new(ProptestConfig { source_file: Some(file!()), ..ProptestConfig::default() })
        .run(&(api, query, body), |(api, query, body)| {
            let body = fixture.fill(&body.to_string());
            let routes = POSTS.map(|(request, _, _)| request.trim_start_matches("POST "));
            for route in routes.into_iter().chain(["/challenges/psi", "/challenges/__proto__"]) {
                let path = fixture.fill(&format!("{api}{route}{query}"));
                let answer = fixture.client.request("POST", &path, &[], body.as_bytes());
                prop_assert!(answer.status < 500, "{} {}", path, answer.text());
                if answer.status >= 400 {
                    let (status, code) = answer.refusal();
                    prop_assert!(!code.is_empty() && status == answer.status);
                } else {
                    prop_assert!(answer.json().is_object(), "{} {}", path, answer.text());
                }
            }
            prop_assert_eq!(fixture.client.get("/health").status, 200);
            Ok(())
        })
        .unwrap_or_else(|error| panic!("{error}"));
    for session in ["$active", "$open"] {
        for route in ["arena", "chat"] {
            let stored = fixture.client.get(&fixture.fill(&format!("/api/{route}/sync?channel={session}"))).messages();
            let indexes: Vec<u64> = stored.iter().filter_map(|message| message["index"].as_u64()).collect();
            assert_eq!(indexes, (1..=stored.len() as u64).collect::<Vec<u64>>());
        }
    }
    fixture.client.plays_a_game();
}

#[test]
fn names_that_look_like_others_are_refused() {
    let host = Host::start();
    let client = host.client();
    let (session, invites) = client.create("psi");
    for (name, why) in [
        ("ad\u{200b}a", "contains the invisible character U+200B; leave it out"),
        ("ada\u{e0041}", "contains the invisible character U+E0041; leave it out"),
        ("e\u{301}ve", "isn't in Unicode's normal form C; write it as \u{e9}ve"),
    ] {
        for (field, path, body) in [
            ("userId", "/api/arena/join", json!({ "invite": invites[0], "userId": name })),
            ("userId", "/api/users", json!({ "userId": name, "username": "Eve" })),
            ("userId", "/api/users", json!({ "from": name, "username": "Eve" })),
            ("username", "/api/users", json!({ "userId": "eve", "username": name })),
            ("model", "/api/users", json!({ "userId": "eve", "model": name })),
            ("from", "/api/chat/send", json!({ "channel": session, "from": name, "content": "hello" })),
        ] {
            let answer = client.post(path, &body);
            assert_eq!(answer.refusal(), (400, "INVALID_FIELD".to_owned()), "{body}");
            assert_eq!(answer.json()["error"], format!("{field} {why}"), "{body}");
        }
    }
    client.post("/api/arena/join", &json!({ "invite": invites[0], "userId": "\u{e9}ve \u{7530}" })).ok();
    // A name of Cyrillic letters that look Latin is accepted, and marked on pages.
    client.post("/api/users", &json!({ "userId": "x", "username": "\u{430}d\u{430}" })).ok();
    let answer = client.get("/users/x");
    let page = answer.text();
    assert!(page.contains("(looks like <bdi>ada</bdi>)"), "{page}");
}
