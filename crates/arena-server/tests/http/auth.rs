//! Authentication mode: joins are signed, later requests need a session key, and `from` is ignored. `secrecy.rs` tests
//! visibility in this mode too; `arena-identity` tests the formats of keys and signatures.

use std::collections::BTreeSet;
use std::fs;
use std::num::NonZeroU16;
use std::thread;

use arena_engine::Environment;
use arena_server::Settings;
use arena_testkit::{Answer, Client, Host, Player, TestEnvironment, known_secret, until};
use serde_json::{Map, Value, json};

const APIS: [&str; 2] = ["/api", "/api/v1"];

fn with_auth(settings: &mut Settings) {
    settings.auth.enabled = true;
    settings.auth.secret = Some(known_secret());
}

struct Game {
    id: String,
    players: Vec<String>,
    keys: Vec<String>,
}

/// A server with two games: one of Ada and Bob, and one of Carl and Dora. The clock is manual.
struct AuthFixture {
    host: Host,
    client: Client,
    environment: TestEnvironment,
    here: Game,
    there: Game,
}

impl AuthFixture {
    fn new() -> AuthFixture {
        AuthFixture::with(|_| {})
    }

    fn with(change: impl FnOnce(&mut Settings)) -> AuthFixture {
        let environment = TestEnvironment::new(1);
        let psi = arena_games::challenge("psi", &Map::new()).expect("psi is built in").expect("its defaults are good");
        let host = Host::start_in(environment.for_engine(), vec![psi], |settings| {
            with_auth(settings);
            change(settings);
        });
        let client = host.client();
        let [here, there] = [[1, 2], [3, 4]].map(|seeds| {
            let (id, players) = client.create("psi");
            let join = |(seed, invite): (u8, &String)| Player::new(seed).join(&client, invite, environment.now());
            let keys = seeds.into_iter().zip(&players).map(join).collect();
            Game { id, players, keys }
        });
        AuthFixture { host, client, environment, here, there }
    }

    /// Returns all publicly visible data.
    fn seen(&self) -> Vec<String> {
        let mut seen = vec![self.client.get("/api/challenges?limit=100").ok().to_string()];
        for Game { id, keys, .. } in [&self.here, &self.there] {
            for key in keys {
                for route in ["arena", "chat"] {
                    let sync = self.client.get_with(key, &format!("/api/{route}/sync?channel={id}"));
                    seen.push(sync.ok().to_string());
                }
            }
        }
        seen
    }
}

fn set_of(client: &Client, game: &Game, seat: usize) -> BTreeSet<u64> {
    let sync = client.get_with(&game.keys[seat], &format!("/api/arena/sync?channel={}", game.id));
    sync.set().into_iter().collect()
}

fn act(client: &Client, key: &str, session: &str, content: &str) -> Answer {
    let body = json!({ "challengeId": session, "messageType": "guess", "content": content });
    client.post_with(key, "/api/arena/message", &body)
}

fn say(client: &Client, key: &str, session: &str, content: &str) -> Answer {
    client.post_with(key, "/api/chat/send", &json!({ "channel": session, "content": content }))
}

/// Lets both players guess right. Checks that the game ends with the best scores and shows the players' identities.
#[track_caller]
fn ends_well(client: &Client, game: &Game, users: &[String]) {
    let common = &set_of(client, game, 0) & &set_of(client, game, 1);
    let guess = common.iter().map(u64::to_string).collect::<Vec<_>>().join(", ");
    for key in &game.keys {
        act(client, key, &game.id, &guess).ok();
    }
    let state = client.ended_well(&game.id);
    let identities = game.players.iter().zip(users).map(|(player, user)| (player.clone(), json!(user))).collect();
    assert_eq!(state["playerIdentities"], Value::Object(identities));
}

fn users(seeds: &[u8]) -> Vec<String> {
    seeds.iter().map(|seed| Player::new(*seed).user_id()).collect()
}

/// Returns status, code and sentence of a refusal, on one line.
fn summary(answer: &Answer) -> String {
    let (status, code) = answer.refusal();
    format!("{status} {code}: {}", answer.json()["error"].as_str().expect("a sentence"))
}

const UNAUTHENTICATED: &str = "401 AUTHENTICATION_REQUIRED: Authentication required";
const INVALID: &str = "401 INVALID_SIGNATURE: Invalid signature";
const EXPIRED: &str = "401 TIMESTAMP_EXPIRED: Timestamp expired";

// Joining.

#[test]
fn a_game_is_played_with_keys_alone() {
    let AuthFixture { host: _host, client, here, there, .. } = AuthFixture::new();
    say(&client, &here.keys[0], &here.id, "hello").ok();
    let said = client.get(&format!("/api/chat/sync?channel={}", here.id)).messages();
    assert_eq!((&said[0]["from"], &said[0]["content"]), (&json!(here.players[0]), &json!("hello")));
    ends_well(&client, &here, &users(&[1, 2]));
    ends_well(&client, &there, &users(&[3, 4]));
}

#[test]
fn a_join_that_proves_nothing_is_refused_and_leaves_the_seat_free() {
    let fixture = AuthFixture::new();
    let AuthFixture { client, environment, .. } = &fixture;
    let (_, invites) = client.create("psi");
    let now = environment.now();
    let (eve, foreign) = (Player::new(5), Player::new(6));
    let good = eve.signed_join(&invites[0], now);
    let text = |name: &str| good[name].as_str().expect("a text").to_owned();
    let with = |name: &str, value: Value| {
        let mut body = good.clone();
        body[name] = value;
        body
    };
    let without = |name: &str| {
        let mut body = good.clone();
        body.as_object_mut().expect("an object").remove(name);
        body
    };
    let at = |ms: i64| eve.signed_join(&invites[0], now.plus_ms(ms));
    let flipped = |name: &str, at: usize| {
        let mut text = text(name);
        let digit = if &text[at..=at] == "0" { "1" } else { "0" };
        text.replace_range(at..=at, digit);
        json!(text)
    };
    let required = "400 MISSING_FIELD: publicKey, signature, and timestamp are required";
    let mut rows: Vec<(&str, Value, String)> = Vec::new();
    let mut row = |what, body, answer: &str| rows.push((what, body, answer.to_owned()));

    row("expired", at(-300_001), EXPIRED);
    row("future", at(300_001), EXPIRED);
    for never in [0, -1, i64::MAX, i64::MIN] {
        row("another age", with("timestamp", json!(never)), EXPIRED);
    }
    row("another time than was signed", with("timestamp", json!(now.0 + 1)), INVALID);
    row("signed for another invite", with("invite", json!(invites[1])), INVALID);
    row("another's key", with("publicKey", json!(foreign.public_key())), INVALID);
    row("another's signature", with("signature", foreign.signed_join(&invites[0], now)["signature"].clone()), INVALID);
    for at in [0, 1, 63, 64, 127] {
        row("tampered signature", with("signature", flipped("signature", at)), INVALID);
    }
    for at in [0, 20, 24, 50, 87] {
        row("tampered key", with("publicKey", flipped("publicKey", at)), INVALID);
    }
    for name in ["publicKey", "signature"] {
        row("empty", with(name, json!("")), required);
    }
    for junk in ["junk".to_owned(), "zz".repeat(64), "00".repeat(64), "ff".repeat(64), "é".repeat(64)] {
        row("no signature", with("signature", json!(junk)), INVALID);
    }
    for tail in ["00", " ", "\n", "é"] {
        row("a signature and more", with("signature", json!(text("signature") + tail)), INVALID);
        row("a key and more", with("publicKey", json!(text("publicKey") + tail)), INVALID);
    }
    let spki = "302a300506032b6570032100";
    for (what, key) in [
        ("no key", "junk".to_owned()),
        ("no key", "x".repeat(500_000)),
        ("bare", text("publicKey")[24..].to_owned()),
        ("X25519", text("publicKey").replace("2b6570", "2b656e")),
        ("P-256", format!("3059301306072a8648ce3d020106082a8648ce3d03010703420004{}", "7".repeat(128))),
        ("small order", format!("{spki}{}", "00".repeat(32))),
        ("small order", format!("{spki}01{}", "00".repeat(31))),
        ("not canonical", format!("{spki}ee{}7f", "ff".repeat(30))),
        ("no point", format!("{spki}02{}", "00".repeat(31))),
    ] {
        row(what, with("publicKey", json!(key)), INVALID);
    }
    for name in ["publicKey", "signature", "timestamp"] {
        row("missing", without(name), required);
    }
    row("as in standalone mode", json!({ "invite": invites[0], "userId": "eve", "from": invites[0] }), required);
    row("missing", without("invite"), "400 MISSING_FIELD: invite is required");
    for wrong in [json!(null), json!(1), json!(true), json!([]), json!({})] {
        for name in ["invite", "publicKey", "signature"] {
            row("mistyped", with(name, wrong.clone()), &format!("400 INVALID_FIELD: {name} must be a string"));
        }
    }
    for name in ["invite", "publicKey", "signature"] {
        row("in a list", with(name, json!([text(name)])), &format!("400 INVALID_FIELD: {name} must be a string"));
    }
    for wrong in [json!(null), json!("never"), json!(now.0.to_string()), json!([now.0]), json!(1.5), json!(u64::MAX)] {
        row("mistyped", with("timestamp", wrong), "400 INVALID_FIELD: timestamp must be a whole number");
    }
    row("empty invite", with("invite", json!("")), "400 MISSING_FIELD: invite is required");
    for invite in ["inv_x", "INV_018f6b2e-0000-7000-8000-00000000abcd"] {
        let answer = format!("400 INVITE_NOT_FOUND: Challenge not found for invite: {invite}");
        row("no invite", with("invite", json!(invite)), &answer);
    }
    let unknown = "inv_00000000-0000-7000-8000-000000000000";
    let answer = format!("400 INVITE_NOT_FOUND: Challenge not found for invite: {unknown}");
    row("unknown invite", eve.signed_join(unknown, now), &answer);

    let before = fixture.seen();
    for (what, body, expected) in rows {
        for api in APIS {
            let answer = client.post(&format!("{api}/arena/join"), &body);
            assert_eq!(summary(&answer), expected, "{what}: {:.300}", body.to_string());
            assert_eq!(answer.header("www-authenticate").is_some(), answer.status == 401, "{what}");
        }
    }
    assert_eq!(fixture.seen(), before, "something was stored");
    eve.join(client, &invites[0], now.plus_ms(-300_000));
    foreign.join(client, &invites[1], now.plus_ms(300_000));
}

#[test]
fn a_name_in_the_body_is_no_identity() {
    let AuthFixture { host: _host, client, environment, .. } = AuthFixture::new();
    let (id, players) = client.create("psi");
    let keys = [5, 6].map(|seed| {
        let player = Player::new(seed);
        let mut body = player.signed_join(&players[usize::from(seed) - 5], environment.now());
        // `userId` and `from` are ignored, with any value and type.
        body["userId"] = if seed == 5 { json!(Player::new(1).user_id()) } else { json!(["nonsense"]) };
        body["from"] = json!(7);
        client.post("/api/arena/join", &body).ok()["sessionKey"].as_str().expect("a key").to_owned()
    });
    ends_well(&client, &Game { id, players, keys: keys.to_vec() }, &users(&[5, 6]));
}

#[test]
fn a_key_is_one_user_however_it_is_written_and_may_hold_both_seats() {
    let AuthFixture { host: _host, client, environment, .. } = AuthFixture::new();
    let player = Player::new(7);
    let (id, players) = client.create("psi");
    let mut body = player.signed_join(&players[1], environment.now());
    for name in ["publicKey", "signature"] {
        body[name] = json!(body[name].as_str().expect("a text").to_uppercase());
    }
    let first = player.join(&client, &players[0], environment.now());
    let second = client.post("/api/arena/join", &body).ok()["sessionKey"].as_str().expect("a key").to_owned();
    assert!(first.starts_with("s_0.") && second.starts_with("s_1."), "{first} {second}");
    ends_well(&client, &Game { id, players, keys: vec![first, second] }, &users(&[7, 7]));
}

#[test]
fn a_join_that_is_sent_again_gets_the_key_under_its_idempotency_key_only() {
    let AuthFixture { host, client, environment, .. } = AuthFixture::new();
    let (session, invites) = client.create("psi");
    let player = Player::new(8);
    let body = player.signed_join(&invites[0], environment.now());
    let joined = client.post_once("/api/arena/join", "join-8", &body).ok();
    let key = joined["sessionKey"].as_str().expect("a key");
    assert!(
        key.starts_with("s_0.") && joined["ChallengeID"] == session.as_str() && joined["ChallengeInfo"].is_object()
    );
    assert_eq!(client.post_once("/api/arena/join", "join-8", &body).ok(), joined);

    let used = "400 INVITE_ALREADY_USED: This invite has already been used.";
    let reused = "422 IDEMPOTENCY_KEY_REUSED: the Idempotency-Key was used for a different request";
    assert_eq!(summary(&client.post("/api/arena/join", &body)), used);
    assert_eq!(summary(&client.post_once("/api/arena/join", "join-9", &body)), used);
    let mut longer = body.clone();
    longer["more"] = json!(1);
    assert_eq!(summary(&client.post_once("/api/arena/join", "join-8", &longer)), reused);
    // Equal idempotency keys of different players are independent.
    let other = Player::new(9).signed_join(&invites[0], environment.now());
    assert_eq!(summary(&client.post_once("/api/arena/join", "join-8", &other)), used);
    let forged = {
        let mut forged = body.clone();
        forged["signature"] = other["signature"].clone();
        forged
    };
    assert_eq!(summary(&client.post_once("/api/arena/join", "join-8", &forged)), INVALID);
    environment.advance_ms(300_001);
    assert_eq!(summary(&client.post_once("/api/arena/join", "join-8", &body)), EXPIRED);

    // Neither the secret nor any key is in the store.
    let hmac = &key[4..];
    for entry in fs::read_dir(host.folder()).expect("a folder") {
        let path = entry.expect("a file").path();
        let bytes = fs::read(&path).expect("readable");
        for secret in [hmac, "everybody knows this"] {
            let found = bytes.windows(secret.len()).any(|window| window == secret.as_bytes());
            assert!(!found, "{} holds {secret}", path.display());
        }
    }
}

// Keys.

/// Returns invalid keys: forged, of the other game, and malformed.
fn wrong_keys(fixture: &AuthFixture) -> Vec<String> {
    let good = &fixture.here.keys[0];
    let hmac = &good[4..];
    let forged = |seat: &str| format!("s_{seat}.{hmac}");
    let mut flipped = good.clone();
    flipped.replace_range(10..11, if &good[10..11] == "0" { "1" } else { "0" });
    let mut keys = fixture.there.keys.clone();
    keys.extend(["1", "2", "00", "-0", "0x0", "0e0", "0.0", "99999999999999999999", "", "x"].map(forged));
    keys.push(flipped);
    keys.push(good[..good.len() - 1].to_owned());
    keys.push(format!("{good}0"));
    keys.push(format!("{good}.{hmac}"));
    keys.push(good.to_uppercase());
    keys.push(fixture.here.players[0].clone());
    keys.push(fixture.here.id.clone());
    keys.extend(["operator", "viewer", "null", "undefined", "s_0", "x", "admin", "[object Object]"].map(str::to_owned));
    keys.push("x".repeat(5_000));
    keys
}

/// Returns reads and writes in a session: method, path and body of each.
fn requests_about(game: &Game) -> Vec<(&'static str, String, Value)> {
    let id = &game.id;
    let mut requests = Vec::new();
    for name in [id.clone(), format!("challenge_{id}")] {
        for path in ["/arena/sync?channel=", "/chat/sync?channel=", "/chat/ws/"] {
            for method in ["GET", "HEAD"] {
                requests.push((method, format!("{path}{name}"), json!(null)));
            }
        }
    }
    for method in ["GET", "HEAD"] {
        requests.push((method, format!("/sessions/{id}/stream"), json!(null)));
    }
    let (act, chat) = ("/arena/message".to_owned(), "/chat/send".to_owned());
    let from = &game.players[0];
    let content = json!({ "challengeId": id, "from": from, "messageType": "guess", "content": "1" });
    requests.push(("POST", act, content));
    requests.push(("POST", chat.clone(), json!({ "channel": id, "from": from, "content": "hi" })));
    requests.push(("POST", chat, json!({ "channel": id, "from": from, "to": game.players[1], "content": "hi" })));
    requests
}

/// Sends a request with a key, in the header or the query.
fn ask(client: &Client, (method, path, body): &(&str, String, Value), key: &str, in_query: bool) -> Answer {
    let body = if body.is_null() { Vec::new() } else { body.to_string().into_bytes() };
    let bearer = format!("Bearer {key}");
    if !in_query {
        return client.request(method, path, &[("Authorization", &bearer)], &body);
    }
    let sign = if path.contains('?') { '&' } else { '?' };
    let key = key.replace('+', "%2B").replace(' ', "%20");
    client.request(method, &format!("{path}{sign}key={key}"), &[], &body)
}

/// Invites of seats are public, so a form with one proves nothing.
#[test]
fn forms_of_seats_need_signatures() {
    let fixture = AuthFixture::new();
    let Game { id, players, keys } = &fixture.here;
    for (player, key) in players.iter().zip(keys) {
        let guess = json!({ "challengeId": id, "from": player, "messageType": "guess", "content": "101" });
        let request = ("POST", "/api/arena/message".to_owned(), guess);
        assert_eq!(ask(&fixture.client, &request, key, false).status, 200);
    }
    let total = || fixture.client.get("/api/challenges").ok()["total"].clone();
    let before = total();
    let form = [("content-type", "application/x-www-form-urlencoded")];
    for wanted in ["join", "act", "chat", "rematch"] {
        let body = format!("do={wanted}&user=eve&method=guess&content=1");
        let answer = fixture.client.request("POST", &format!("/play/{}", players[0]), &form, body.as_bytes());
        assert_eq!((answer.status, answer.header("location")), (401, None), "{wanted}");
    }
    assert_eq!(total(), before);
    let page = fixture.client.get(&format!("/play/{}", players[0])).text().to_owned();
    assert!(page.contains("Play again") && !page.contains("value=\"rematch\""), "{page}");
}

#[test]
fn a_wrong_key_opens_nothing_on_any_route() {
    let fixture = AuthFixture::new();
    let before = fixture.seen();
    for (method, path, body) in requests_about(&fixture.here) {
        for key in wrong_keys(&fixture) {
            for in_query in [false, true] {
                for api in APIS {
                    let request = (method, format!("{api}{path}"), body.clone());
                    let answer = ask(&fixture.client, &request, &key, in_query);
                    let what = format!("{method} {path} with {key:.80}");
                    assert_eq!(answer.status, 401, "{what}: {}", answer.text());
                    assert_eq!(answer.header("www-authenticate"), Some("Bearer"), "{what}");
                    if method != "HEAD" {
                        assert_eq!(summary(&answer), UNAUTHENTICATED, "{what}");
                    }
                }
            }
        }
    }
    assert_eq!(fixture.seen(), before, "something was stored");
    assert_eq!(fixture.client.counter("arena_stream_subscribers"), 0);
    ends_well(&fixture.client, &fixture.here, &users(&[1, 2]));
}

#[test]
fn a_header_without_a_bearer_key_is_a_wrong_key() {
    let AuthFixture { host: _host, client, here, .. } = AuthFixture::new();
    let key = &here.keys[0];
    let path = format!("/api/chat/sync?channel={}", here.id);
    for header in ["Basic YWRhOng=", key, "Bearer", "Bearer ", &format!("Token {key}"), &format!("Bearer {key} x")] {
        let answer = client.request("GET", &path, &[("Authorization", header)], b"");
        assert_eq!(summary(&answer), UNAUTHENTICATED, "{header}");
    }
    for header in [format!("Bearer {key}"), format!("bearer {key}"), format!("BEARER   {key}")] {
        client.request("GET", &path, &[("Authorization", &header)], b"").ok();
    }
    let twice = [("Authorization", format!("Bearer {key}")), ("Authorization", format!("Bearer {}", here.keys[1]))];
    let twice: Vec<(&str, &str)> = twice.iter().map(|(name, value)| (*name, value.as_str())).collect();
    assert_eq!(summary(&client.request("GET", &path, &twice, b"")), UNAUTHENTICATED);
}

#[test]
fn a_key_comes_in_the_header_or_the_query_and_two_must_agree() {
    let AuthFixture { host: _host, client, here, .. } = AuthFixture::new();
    let Game { id, keys, players } = &here;
    for request in requests_about(&here) {
        let request = (request.0, format!("/api{}", request.1), request.2);
        if (request.1.contains("/ws/") || request.1.ends_with("/stream")) && request.0 == "GET" {
            continue;
        }
        if request.1.ends_with("/arena/message") {
            continue;
        }
        for in_query in [false, true] {
            assert_eq!(ask(&client, &request, &keys[0], in_query).status, 200, "{request:?}");
        }
    }
    let body = json!({ "channel": id, "content": "hi" });
    let both = |bearer: &str, query: &str| client.post_with(bearer, &format!("/api/chat/send?key={query}"), &body);
    assert_eq!(both(&keys[1], &keys[1]).ok()["from"], players[1].as_str());
    assert_eq!(summary(&both(&keys[0], &keys[1])), UNAUTHENTICATED);
    assert_eq!(summary(&both(&keys[0], "")), UNAUTHENTICATED);
    assert_eq!(summary(&both("x", &keys[0])), UNAUTHENTICATED);
    let twice = format!("/api/chat/send?key={}&key={}", keys[0], keys[1]);
    assert_eq!(summary(&client.post(&twice, &body)), UNAUTHENTICATED);
}

#[test]
fn without_a_key_callers_are_anonymous_and_from_is_ignored() {
    let fixture = AuthFixture::new();
    let AuthFixture { client, here, there, .. } = &fixture;
    let Game { id, keys, players } = here;
    let private = json!({ "channel": id, "to": players[1], "content": "between us" });
    client.post_with(&keys[0], "/api/chat/send", &private).ok();
    for from in [&players[0], "operator", "viewer", &there.players[0]] {
        for name in ["arena", "chat"] {
            let read = |query: &str| client.get(&format!("/api/{name}/sync?channel={id}{query}")).ok();
            assert_eq!(read(&format!("&from={from}")), read(""), "{from}");
            assert!(!read("").to_string().contains("Your private set") && !read("").to_string().contains("between us"));
        }
        for (method, path, mut body) in requests_about(here) {
            if method == "POST" {
                body["from"] = json!(from);
                let answer = client.post(&format!("/api{path}?from={from}"), &body);
                assert_eq!(summary(&answer), "400 MISSING_FIELD: from is required", "{path} as {from}");
            }
        }
    }
    // The key identifies the caller; `from` is ignored, with any value and type.
    for from in [json!(players[1]), json!("operator"), json!(null), json!(7)] {
        let body = json!({ "channel": id, "content": "hi", "from": from });
        let sent = client.post_with(&keys[0], &format!("/api/chat/send?from={}", players[1]), &body).ok();
        assert_eq!(sent["from"], players[0].as_str());
    }
    let own = client.get_with(&keys[1], &format!("/api/chat/sync?channel={id}&from={}", players[0])).messages();
    assert_eq!(own[0]["content"], "between us");
}

#[test]
fn public_routes_need_no_key_and_ignore_one() {
    let AuthFixture { host: _host, client, environment, here, .. } = AuthFixture::new();
    let (_, invites) = client.create("psi");
    let answers = |key: Option<&str>| {
        let free = format!("/api/invites/{}", invites[0]);
        let paths =
            ["/", "/api/metadata", "/api/challenges", "/api/challenges/psi", &free, "/api/chat/sync?channel=invites"];
        paths.map(|path| {
            let answer = match key {
                None => client.get(path),
                Some(key) => client.get_with(key, path),
            };
            assert_eq!(answer.status, 200, "{path}");
            answer.text().to_owned()
        })
    };
    for key in ["junk", &here.keys[0]] {
        assert_eq!(answers(Some(key)), answers(None));
        client.post_with(key, "/api/challenges/psi", &json!({})).ok();
        assert_eq!(client.stream_as(key, "/api/chat/ws/invites").status, 200);
    }
    client.post_with("junk", "/api/invites", &json!({ "inviteId": invites[1] })).ok();
    // A player of one session may join another one while sending the key to the first.
    for (invite, key) in invites.iter().zip(["junk", &here.keys[0]]) {
        client
            .post_with(key, "/api/arena/join?channel=elsewhere", &Player::new(5).signed_join(invite, environment.now()))
            .ok();
    }
}

#[test]
fn a_key_to_a_missing_session_or_seat_is_invalid() {
    let AuthFixture { host: _host, client, environment, here, .. } = AuthFixture::new();
    let key = &here.keys[0];
    let secret = known_secret();
    let none = "00000000-0000-7000-8000-000000000000";
    // The server's secret also yields keys for empty seats and for a removed session. They are invalid.
    let (open, invites) = client.create("psi");
    let first = Player::new(5).join(&client, &invites[0], environment.now());
    let issue =
        |session: &str, seat| secret.session_key(session.parse().expect("an id"), arena_model::Seat(seat)).reveal();
    assert_eq!(issue(&open, 0), first);
    for (session, key) in [(&open[..], issue(&open, 1)), (&here.id, issue(&here.id, 2)), (none, issue(none, 0))] {
        for path in [format!("/api/arena/sync?channel={session}"), format!("/api/chat/ws/{session}")] {
            assert_eq!(summary(&client.get_with(&key, &path)), UNAUTHENTICATED, "{path}");
        }
        assert_eq!(summary(&say(&client, &key, session, "hi")), UNAUTHENTICATED);
    }
    for name in [none, "nothing", "challenge_", "challenge_nothing", "__proto__", "challenge_challenge_x", "%00"] {
        for path in ["/api/arena/sync?channel=", "/api/chat/sync?channel=", "/api/chat/ws/"] {
            assert_eq!(summary(&client.get_with(key, &format!("{path}{name}"))), UNAUTHENTICATED, "{path}{name}");
        }
        assert_eq!(summary(&say(&client, key, name, "hi")), UNAUTHENTICATED, "{name}");
        assert_eq!(summary(&act(&client, key, name, "1")), UNAUTHENTICATED, "{name}");
    }
    // The session is checked before the key.
    assert_eq!(summary(&client.get_with("junk", "/api/chat/sync")), "400 MISSING_FIELD: channel is required");
}

#[test]
fn a_key_ends_with_its_session() {
    let host = Host::start_with(|settings| {
        with_auth(settings);
        settings.sessions.stale_open_s = 8;
    });
    let client = host.client();
    let (session, invites) = client.create("psi");
    let key = Player::new(5).join(&client, &invites[0], Environment::system().now());
    let stream = format!("/api/chat/ws/{session}");
    until("the session without its second player is removed", || client.get_with(&key, &stream).status == 401);
    assert_eq!(summary(&say(&client, &key, &session, "hi")), UNAUTHENTICATED);
    assert_eq!(summary(&client.get(&stream)), "404 CHANNEL_NOT_FOUND: channel not found");
}

#[test]
fn a_request_that_names_two_sessions_is_refused() {
    let fixture = AuthFixture::new();
    let AuthFixture { client, here, there, .. } = &fixture;
    let (a, b) = (&here.id, &there.id);
    let mismatch = "400 SESSION_MISMATCH: query, body and path name different sessions";
    let before = fixture.seen();
    let mut keys = vec![None];
    keys.extend(here.keys.iter().chain(&there.keys).map(|key| Some(key.as_str())));
    for key in keys {
        let headers: Vec<(&str, String)> =
            key.map(|key| ("Authorization", format!("Bearer {key}"))).into_iter().collect();
        let headers: Vec<(&str, &str)> = headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
        for path in [
            format!("/api/arena/sync?channel={a}&challengeId={b}"),
            format!("/api/chat/sync?channel={a}&channel={b}"),
            format!("/api/chat/sync?channel={b}&channel=challenge_{a}"),
            format!("/api/chat/sync?channel=invites&channel={a}"),
            format!("/api/chat/ws/{a}?channel={b}"),
            format!("/api/chat/ws/challenge_{a}?challengeId={b}"),
            format!("/api/chat/ws/{a}?channel=invites"),
        ] {
            assert_eq!(summary(&client.request("GET", &path, &headers, b"")), mismatch, "{path}");
        }
        let chat = |channel: &str| json!({ "channel": channel, "content": "hi" });
        let act = |session: &str| json!({ "challengeId": session, "messageType": "guess", "content": "1" });
        let with = |mut body: Value, name: &str, value: &str| {
            body[name] = json!(value);
            body
        };
        for (path, body) in [
            (format!("/api/chat/send?channel={b}"), chat(a)),
            (format!("/api/chat/send?challengeId={b}"), chat(a)),
            ("/api/chat/send".to_owned(), with(chat(a), "challengeId", b)),
            ("/api/chat/send".to_owned(), with(chat(a), "challengeId", "invites")),
            (format!("/api/arena/message?channel=challenge_{b}"), act(a)),
            (format!("/api/arena/message?challengeId={b}"), act(a)),
            ("/api/arena/message".to_owned(), with(act(a), "channel", b)),
        ] {
            let answer = client.request("POST", &path, &headers, body.to_string().as_bytes());
            assert_eq!(summary(&answer), mismatch, "{path} {body}");
        }
    }
    let mistyped = json!({ "channel": a, "challengeId": [b], "content": "hi" });
    let answer = client.post_with(&here.keys[0], "/api/chat/send", &mistyped);
    assert_eq!(summary(&answer), "400 INVALID_FIELD: challengeId must be a string");
    assert_eq!(fixture.seen(), before, "something was stored");
    // The same session may be named repeatedly.
    let body = json!({ "channel": a, "challengeId": a, "content": "hi" });
    client.post_with(&here.keys[0], &format!("/api/chat/send?channel=challenge_{a}&challengeId={a}"), &body).ok();
}

// Streams.

#[test]
fn a_stream_contains_each_players_private_messages() {
    let AuthFixture { host: _host, client, here, .. } = AuthFixture::new();
    let Game { id, keys, players } = &here;
    let private = json!({ "channel": id, "to": players[1], "content": "between us" });
    client.post_with(&keys[0], "/api/chat/send", &private).ok();
    let first = |mut stream: arena_testkit::EventStream| {
        assert_eq!(stream.status, 200);
        let (_, event) = stream.next_event().expect("an event");
        assert_eq!(event["type"], "initial");
        event["messages"].as_array().expect("a list").iter().map(|m| m["content"].clone()).collect::<Vec<_>>()
    };
    for key in keys {
        for stream in [
            client.stream_as(key, &format!("/api/chat/ws/{id}")),
            client.stream(&format!("/api/chat/ws/{id}?key={key}"), None),
            client.stream(&format!("/api/v1/chat/ws/{id}?key={key}&channel={id}&from=viewer"), None),
        ] {
            assert_eq!(first(stream), ["between us"]);
        }
    }
    for watcher in ["", "?from=viewer", &format!("?from={}", players[1])] {
        assert_eq!(first(client.stream(&format!("/api/chat/ws/{id}{watcher}"), None)), [""]);
    }
    let summary = first(client.stream_as(&keys[1], &format!("/api/chat/ws/challenge_{id}")));
    assert_eq!(summary[0], "");
    assert!(summary[1].as_str().is_some_and(|text| text.starts_with("Your private set is")), "{summary:?}");
}

// Repetition.

#[test]
fn the_same_idempotency_key_at_another_seat_or_session_is_another_key() {
    let AuthFixture { host: _host, client, here, there, .. } = AuthFixture::new();
    let say = |game: &Game, seat: usize, text: &str| {
        let headers = [("Authorization", format!("Bearer {}", game.keys[seat])), ("Idempotency-Key", "1".to_owned())];
        let headers = headers.each_ref().map(|(name, value)| (*name, value.as_str()));
        // `from` isn't part of the idempotency scope.
        let body = json!({ "channel": game.id, "content": text, "from": "ada" });
        client.request("POST", "/api/chat/send", &headers, body.to_string().as_bytes())
    };
    assert_eq!(say(&here, 0, "hi").ok()["index"], 1);
    assert_eq!(say(&here, 1, "hi").ok()["index"], 2);
    assert_eq!(say(&there, 0, "hi").ok()["index"], 1);
    assert_eq!(
        say(&here, 0, "hi").ok(),
        json!({ "index": 1, "channel": here.id, "from": here.players[0], "to": null })
    );
    assert_eq!(say(&here, 1, "hi").ok()["from"], here.players[1].as_str());
    assert_eq!(say(&here, 0, "other").refusal().1, "IDEMPOTENCY_KEY_REUSED");
}

// Load.

#[test]
fn a_flood_of_bad_joins_is_refused_one_way_or_the_other_and_games_go_on() {
    let AuthFixture { host: _host, client, environment, here, .. } =
        AuthFixture::with(|settings| settings.limits.signature_queue = NonZeroU16::new(4).expect("not 0"));
    let (_, invites) = client.create("psi");
    let (signer, other) = (Player::new(5), Player::new(6));
    let mut body = signer.signed_join(&invites[0], environment.now());
    body["publicKey"] = json!(other.public_key());
    let busy = "503 SIGNATURES_BUSY: 4 signature checks are queued (limits.signature_queue); try again";
    thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                for _ in 0..50 {
                    let answer = client.post("/api/arena/join", &body);
                    let summary = summary(&answer);
                    assert!(summary == INVALID || summary == busy, "{summary}");
                    assert_eq!(answer.header("retry-after").is_some(), summary == busy);
                }
            });
        }
        for text in ["one", "two", "three"] {
            say(&client, &here.keys[0], &here.id, text).ok();
        }
        ends_well(&client, &here, &users(&[1, 2]));
    });
    signer.join(&client, &invites[0], environment.now());
}

// Profiles, self-play, and standalone mode.

#[test]
fn a_profile_change_needs_the_key_and_each_signature_works_once() {
    let AuthFixture { host: _host, client, environment, .. } = AuthFixture::new();
    let now = || environment.now();
    let ada = Player::new(1);
    let change = json!({ "username": "Ada", "model": "engine-1" });
    let post = |body: &Value| client.post("/api/users", body);
    let profile = json!({ "userId": ada.user_id(), "username": "Ada", "model": "engine-1" });
    let bound = ada.signed_profile(&change, true, now());
    // An eavesdropper can't use the signature for another change, or a second time.
    let mut forged = bound.clone();
    forged["username"] = json!("Eve");
    assert_eq!(summary(&post(&forged)), "401 INVALID_SIGNATURE: Invalid signature");
    assert_eq!(post(&bound).ok(), profile);
    assert_eq!(post(&bound).refusal(), (401, "SIGNATURE_USED".to_owned()));

    // The signed text of the reference server doesn't include the change. So the signature is valid only once, even if
    // its digits are in upper case.
    environment.advance_ms(1);
    let mut unbound = ada.signed_profile(&json!({ "username": "Lovelace", "userId": "somebody else" }), false, now());
    assert_eq!(post(&unbound).ok()["username"], "Lovelace");
    unbound["username"] = json!("Eve");
    assert_eq!(post(&unbound).refusal(), (401, "SIGNATURE_USED".to_owned()));
    unbound["signature"] = json!(unbound["signature"].as_str().expect("a text").to_uppercase());
    assert_eq!(post(&unbound).status, 401);
    let read = client.get(&format!("/api/users/{}", ada.user_id())).ok();
    assert_eq!(read, json!({ "userId": ada.user_id(), "username": "Lovelace", "model": "engine-1" }));

    // A lost response can be requested again only with the same `Idempotency-Key`.
    environment.advance_ms(1);
    let again = ada.signed_profile(&json!({ "model": "engine-2" }), true, now());
    let first = client.post_once("/api/users", "k", &again).ok();
    assert_eq!(client.post_once("/api/users", "k", &again).ok(), first);
    assert_eq!(client.post_once("/api/users", "l", &again).refusal(), (401, "SIGNATURE_USED".to_owned()));

    let late = ada.signed_profile(&change, true, now().plus_ms(-300_001));
    assert_eq!(post(&late).refusal(), (401, "TIMESTAMP_EXPIRED".to_owned()));
    assert_eq!(post(&change).refusal(), (400, "MISSING_FIELD".to_owned()));
    let mut odd = ada.signed_profile(&json!({ "username": "x".repeat(201) }), true, now());
    assert_eq!(post(&odd).refusal(), (400, "INVALID_FIELD".to_owned()));
    odd["username"] = json!(["x"]);
    assert_eq!(post(&odd).refusal(), (400, "INVALID_FIELD".to_owned()));
}

#[test]
fn self_play_can_be_refused() {
    let fixture = AuthFixture::with(|settings| settings.sessions.self_play = false);
    let (_, invites) = fixture.client.create("psi");
    let ada = Player::new(1);
    ada.join(&fixture.client, &invites[0], fixture.environment.now());
    let second = fixture.client.post("/api/arena/join", &ada.signed_join(&invites[1], fixture.environment.now()));
    assert_eq!(second.refusal(), (400, "SELF_PLAY".to_owned()));
    Player::new(2).join(&fixture.client, &invites[1], fixture.environment.now());
}

#[test]
fn in_standalone_mode_keys_count_for_nothing() {
    let host = Host::start();
    let client = host.client();
    let (session, invites) = client.create("psi");
    let joined = client.post_with("junk", "/api/arena/join?key=junk", &json!({ "invite": invites[0] })).ok();
    assert_eq!(joined["sessionKey"], Value::Null);
    client.join(&invites[1]).ok();
    let body = json!({ "channel": session, "challengeId": "another", "from": invites[0], "content": "hi" });
    client.post_with("junk", "/api/chat/send?key=other", &body).ok();
    let read = format!("/api/arena/sync?channel={session}&from={}&key=other", invites[0]);
    assert!(client.get_with("junk", &read).text().contains("Your private set"));
    let mut stream = client.stream_as("junk", &format!("/api/chat/ws/{session}?from={}", invites[0]));
    assert_eq!(stream.next_event().expect("an event").1["messages"][0]["content"], "hi");
    assert!(!host.folder().join("auth.secret").exists());
}
