//! The administrator's routes, over real sockets.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use arena_server::Settings;
use arena_testkit::{
    Answer, Client, EventStream, Host, Player, TestEnvironment, known_admin_token, known_secret, until,
};
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

/// A server, and a client of its administrator's routes.
pub(super) struct AdminFixture {
    pub(super) host: Host,
    pub(super) client: Client,
}

impl AdminFixture {
    pub(super) fn open() -> AdminFixture {
        AdminFixture::with(|_| {})
    }

    pub(super) fn with(change: impl FnOnce(&mut Settings)) -> AdminFixture {
        let host = Host::start_with(|settings| {
            settings.admin_token = Some(known_admin_token());
            change(settings);
        });
        let client = host.client();
        AdminFixture { host, client }
    }

    fn get(&self, path: &str) -> Answer {
        self.client.get_with(known_admin_token().reveal(), &format!("/api/admin{path}"))
    }

    pub(super) fn post(&self, path: &str, body: Value) -> Answer {
        self.client.post_with(known_admin_token().reveal(), &format!("/api/admin{path}"), &body)
    }

    pub(super) fn hide(&self, channel: &str, index: i64) -> Answer {
        self.post("/messages/hide", json!({ "channel": channel, "index": index }))
    }

    pub(super) fn remove(&self, session: &str) -> Answer {
        self.post(&format!("/sessions/{session}/remove"), json!({}))
    }

    /// Returns the actions in the audit log, oldest first.
    pub(super) fn audited(&self) -> Vec<(String, Value)> {
        let page = self.get("/audit?limit=100").ok();
        let entries = page["entries"].as_array().expect("a list").iter().rev();
        entries
            .map(|entry| {
                assert_eq!(entry["address"], "127.0.0.1");
                (entry["action"].as_str().expect("a word").to_owned(), entry["detail"].clone())
            })
            .collect()
    }

    pub(super) fn export(&self) -> Vec<String> {
        let answer = self.get("/export");
        assert_eq!((answer.status, answer.header("content-type")), (200, Some("application/x-ndjson")));
        answer.text().lines().map(str::to_owned).collect()
    }

    fn import(&self, lines: &[String]) -> Value {
        let token = format!("Bearer {}", known_admin_token().reveal());
        let body = lines.join("\n");
        self.client.request("POST", "/api/admin/import", &[("Authorization", &token)], body.as_bytes()).ok()
    }

    /// Returns the responses of the leaderboards and statistics.
    pub(super) fn boards(&self) -> Vec<Value> {
        ["/api/scoring", "/api/scoring/psi", "/api/stats"].map(|path| self.client.get(path).ok()).to_vec()
    }

    /// Creates a session with two users; returns its id and invites.
    pub(super) fn begin(&self, users: [&str; 2]) -> (String, Vec<String>) {
        self.client.seated_as("psi", users)
    }

    /// Plays a game with chat to its end. The player at seat `errs` guesses wrong and loses.
    pub(super) fn play(&self, users: [&str; 2], errs: usize) -> String {
        let (session, invites) = self.begin(users);
        self.client.chat(&session, &invites[0], "good luck").ok();
        let private = json!({ "channel": session, "from": invites[1], "to": invites[0], "content": "thanks" });
        self.client.post("/api/chat/send", &private).ok();
        self.end(&session, &invites, errs);
        session
    }

    pub(super) fn end(&self, session: &str, invites: &[String], errs: usize) {
        for (seat, invite) in invites.iter().enumerate() {
            let guess = if seat == errs { "1".to_owned() } else { self.own_numbers(session, invite) };
            self.client.act(session, invite, "guess", &guess).ok();
        }
    }

    fn own_numbers(&self, session: &str, player: &str) -> String {
        self.client.set_of(session, player).iter().map(u64::to_string).collect::<Vec<_>>().join(", ")
    }
}

pub(super) fn hash(content: &str) -> String {
    Sha256::digest(content).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// All routes of the administrator, with valid bodies.
const ROUTES: [(&str, &str, &str); 16] = [
    ("POST", "/archive", r#"{"olderThanDays": 0}"#),
    ("POST", "/restore", r#"{"session": "$session"}"#),
    ("GET", "/audit", ""),
    ("GET", "/bans", ""),
    ("GET", "/budgets", ""),
    ("GET", "/export", ""),
    ("HEAD", "/export", ""),
    ("POST", "/bans", r#"{"userId": "ada", "reason": "none"}"#),
    ("POST", "/bans/lift", r#"{"userId": "ada"}"#),
    ("POST", "/import", r#"{"userId": "ada"}"#),
    ("POST", "/messages/hide", r#"{"channel": "$session", "index": 1}"#),
    ("POST", "/recompute", "{}"),
    ("POST", "/strategies/elo/recompute", "{}"),
    ("POST", "/sessions/$session/remove", "{}"),
    ("POST", "/users/ada/benchmark", r#"{"isBenchmark": true}"#),
    ("POST", "/users/ada/delete", "{}"),
];

#[test]
fn nothing_is_done_without_the_token() {
    let fixture = AdminFixture::open();
    let session = fixture.play(["ada", "bob"], 0);
    let before = (fixture.boards(), fixture.client.get("/api/challenges").ok());
    let token = known_admin_token().reveal().to_owned();
    let (upper, short) = (token.to_uppercase(), &token[1..]);
    for (method, path, body) in ROUTES {
        for api in ["/api", "/api/v1"] {
            let fill = |text: &str| text.replace("$session", &session);
            let path = format!("{api}/admin{}", fill(path));
            let refused = |path: &str, headers: &[(&str, &str)]| {
                let answer = fixture.client.request(method, path, headers, fill(body).as_bytes());
                assert_eq!(answer.status, 401, "{method} {path} {headers:?}");
                if method != "HEAD" {
                    assert_eq!(answer.refusal(), (401, "AUTHENTICATION_REQUIRED".to_owned()));
                    assert_eq!(answer.json()["error"], "Authentication required");
                }
            };
            refused(&path, &[]);
            for wrong in ["", "Bearer", "Bearer ", &format!("Bearer {upper}"), &format!("Bearer {short}"), &token] {
                refused(&path, &[("Authorization", wrong)]);
            }
            refused(&path, &[("Authorization", &format!("Basic {token}"))]);
            refused(&format!("{path}?key={token}&token={token}&from={token}"), &[]);
        }
    }
    assert_eq!((fixture.boards(), fixture.client.get("/api/challenges").ok()), before);
    assert_eq!(fixture.get("/bans").ok(), json!({ "bans": [] }));
    assert_eq!(fixture.audited(), []);
    // All routes accept the token.
    for (method, path, body) in ROUTES {
        let path = format!("/api/admin{path}").replace("$session", &session);
        let body = body.replace("$session", &session);
        let answer =
            fixture.client.request(method, &path, &[("Authorization", &format!("Bearer {token}"))], body.as_bytes());
        // This server has no scripted strategy.
        let expected = if path.contains("/strategies/") { 404 } else { 200 };
        assert_eq!(answer.status, expected, "{method} {path}: {}", answer.text());
    }
}

#[test]
fn the_budgets_show_the_addresses_that_use_most() {
    let fixture = AdminFixture::with(|settings| {
        settings.limits.connections = 80;
        settings.limits.connections_per_address = 10;
        settings.limits.waiting_bytes = 1024 * 1024;
        settings.limits.waiting_bytes_per_address = 0;
    });
    let idle = [2, 2, 2, 3].map(|last| {
        let client = fixture.host.client().from_address([127, 0, 0, last].into());
        client.connect().expect("a connection")
    });
    let of = |last: u8, connections: u64| {
        let address = format!("127.0.0.{last}");
        json!({ "address": address, "used": { "connections": connections }, "refusals": 0 })
    };
    // The server accepts a connection after its client sees it as open, and drops one after its
    // client has read the answer: here the connection that asked before.
    let page_with = |query: &str, addresses: &Value| {
        let until = Instant::now() + Duration::from_secs(30);
        loop {
            let page = fixture.get(&format!("/budgets{query}")).ok();
            if page["addresses"] == *addresses {
                return page;
            }
            assert!(Instant::now() < until, "{page}");
        }
    };
    let page = page_with("", &json!([of(2, 3), of(1, 1), of(3, 1)]));
    let per_address =
        |limit: u64, name: &str| json!({ "limit": limit, "setting": format!("limits.{name}_per_address") });
    let unused = |name: &str, setting: &str, limit: u64| json!({ "name": name, "used": 0, "setting": format!("limits.{setting}_per_address"), "ofAddress": per_address(limit, setting) });
    let burst = json!({ "limit": 10_000, "setting": "limits.computing_burst_ms" });
    assert_eq!(
        page["budgets"],
        json!([
            { "name": "connections", "used": 5, "limit": 80, "setting": "limits.connections", "ofAddress": per_address(10, "connections") },
            { "name": "waitingBytes", "used": 0, "limit": 1024 * 1024, "setting": "limits.waiting_bytes" },
            unused("storedBytes", "stored_bytes", 4 << 30),
            { "name": "computingMs", "used": 0, "setting": "limits.computing_ms_per_second", "ofAddress": burst },
            unused("streams", "streams", 500),
            unused("runningSessions", "running_sessions", 1000),
            unused("tickets", "tickets", 16),
        ])
    );
    assert_eq!(page_with("?limit=1&offset=1", &json!([of(1, 1)]))["total"], 3);
    drop(idle);
}

#[test]
fn wrong_tokens_are_slowed_like_everything_else() {
    let fixture = AdminFixture::with(|settings| {
        settings.limits.limit_loopback = true;
        settings.limits.requests_per_second = 1;
        settings.limits.requests_burst = 5;
    });
    let tries = (0..50).map(|i| fixture.client.get_with(&format!("guess-{i}"), "/api/admin/audit").status);
    let tries: Vec<u16> = tries.collect();
    assert_eq!(tries[..5], [401; 5]);
    assert!(tries.contains(&429), "{tries:?}");
}

#[test]
fn a_benchmark_model_counts_as_one_from_the_next_game_on() {
    let fixture = AdminFixture::open();
    let category = |session: &str| {
        let page = fixture.client.get("/api/challenges?limit=100").ok();
        let mut sessions = page["challenges"].as_array().expect("a list").iter();
        sessions.find(|listed| listed["id"] == *session).expect("it is listed")["gameCategory"].clone()
    };
    assert_eq!(category(&fixture.play(["ada", "bot"], 0)), "train");
    let flagged = fixture.post("/users/bot/benchmark", json!({ "isBenchmark": true })).ok();
    assert_eq!(flagged, json!({ "userId": "bot", "isBenchmark": true }));
    assert_eq!(category(&fixture.play(["ada", "bot"], 0)), "test");
    // An unknown user can be marked before its first game.
    let new = fixture.post("/users/b%C3%B6t%2F2/benchmark", json!({ "isBenchmark": true })).ok();
    assert_eq!(new["userId"], "böt/2");
    assert_eq!(category(&fixture.play(["böt/2", "bot"], 0)), "benchmark");
    assert_eq!(fixture.client.get("/api/users/bot").ok()["isBenchmark"], true);
    fixture.post("/users/bot/benchmark", json!({ "isBenchmark": false })).ok();
    assert_eq!(category(&fixture.play(["ada", "bot"], 0)), "train");
    assert_eq!(fixture.audited()[0], ("benchmark".to_owned(), json!({ "userId": "bot", "isBenchmark": true })));
    for (body, code) in [(json!({}), "MISSING_FIELD"), (json!({ "isBenchmark": 1 }), "INVALID_FIELD")] {
        assert_eq!(fixture.post("/users/bot/benchmark", body).refusal(), (400, code.to_owned()));
    }
}

#[test]
fn a_deleted_user_leaves_its_games_to_the_other_players() {
    let fixture = AdminFixture::open();
    fixture.client.post("/api/users", &json!({ "userId": "eve", "username": "Eve Example" })).ok();
    fixture.post("/users/eve/benchmark", json!({ "isBenchmark": true })).ok();
    let played = [fixture.play(["ada", "eve"], 1), fixture.play(["eve", "bob"], 0), fixture.play(["eve", "eve"], 0)];
    fixture.play(["ada", "bob"], 0);
    let (running, players) = fixture.begin(["bob", "eve"]);
    let row = |user: &str| {
        let board = fixture.client.get("/api/scoring/psi").ok();
        let rows: Vec<Value> =
            board.as_object().expect("boards").values().flat_map(|rows| rows.as_array()).flatten().cloned().collect();
        rows.into_iter().filter(|row| row["playerId"] == user).collect::<Vec<_>>()
    };
    let before = ["ada", "bob"].map(row);
    assert!(!row("eve").is_empty());
    let delete = |user: &str| fixture.post(&format!("/users/{user}/delete"), json!({}));
    assert_eq!(delete("zoe").refusal(), (404, "USER_NOT_FOUND".to_owned()));
    let refused = delete("eve");
    assert_eq!(refused.refusal(), (409, "USER_PLAYS".to_owned()));
    assert!(refused.json()["error"].as_str().expect("a sentence").contains(&running));
    fixture.end(&running, &players, 0);
    fixture.remove(&running).ok();

    let listed = || {
        let page = fixture.client.get("/api/challenges?limit=100").ok();
        let mut sessions = page["challenges"].as_array().expect("a list").iter();
        sessions.find(|listed| listed["id"] == *played[0]).expect("it is listed").clone()
    };
    assert!(listed().to_string().contains("\"eve\""));
    assert_eq!(delete("eve").ok(), json!({ "deleted": true, "sessions": 3 }));
    assert_eq!(delete("eve").refusal(), (404, "USER_NOT_FOUND".to_owned()));
    assert_eq!(["ada", "bob"].map(row), before);
    assert_eq!(row("eve"), [] as [Value; 0]);
    assert_eq!(fixture.client.get("/api/users/eve").refusal(), (404, "USER_NOT_FOUND".to_owned()));
    let detail = json!({ "userIdSha256": hash("eve") });
    assert_eq!(fixture.audited().last(), Some(&("delete-user".to_owned(), detail)));
    let exported = fixture.export();
    for text in exported.iter().map(String::as_str).chain([fixture.client.get("/api/users").text()]) {
        assert!(!text.contains("\"eve\"") && !text.contains("Eve Example"), "{text}");
    }
    let ended = listed();
    let (players, state) = (&ended["state"]["players"], &ended["state"]);
    assert_eq!(state["playerIdentities"], json!({ players[0].as_str().expect("an invite"): "ada" }));
    let deleted = state["deletedPlayers"].as_object().expect("a map");
    assert_eq!(deleted.keys().collect::<Vec<_>>(), [players[1].as_str().expect("an invite")]);
    // Its record has the same commitment, which nobody can open anymore.
    let record = fixture.client.get(&format!("/api/sessions/{}/record", played[0]));
    let commitment = deleted.values().next().and_then(Value::as_str).expect("a hash");
    assert!(record.text().contains(&format!("\"user\":\"{commitment}\"")), "{}", record.text());
    assert!(!record.text().contains("{\"open\":\"user/1\""));

    // Where the games are imported, they count as here.
    let here = AdminFixture::open();
    here.import(&exported);
    assert_eq!(here.boards(), fixture.boards());
    assert_eq!(here.post("/recompute", json!({})).ok()["wrong"], json!([]));
}

/// Returns a viewer's messages of a channel: the content, the hash of hidden content, or `redacted`.
fn read(client: &Client, path: &str) -> Vec<String> {
    client.get(path).messages().iter().map(shown).collect()
}

pub(super) fn shown(message: &Value) -> String {
    match (&message["redacted"], &message["contentSha256"]) {
        (Value::Null, Value::Null) => message["content"].as_str().expect("a text").to_owned(),
        (Value::Bool(true), hash) => {
            assert_eq!(message["content"], "");
            hash.as_str().unwrap_or("redacted").to_owned()
        }
        other => panic!("{other:?}"),
    }
}

fn initial(stream: &mut EventStream) -> Vec<String> {
    let (_, event) = stream.next_event().expect("an event");
    assert_eq!(event["type"], "initial");
    event["messages"].as_array().expect("a list").iter().map(shown).collect()
}

#[test]
fn a_hidden_message_is_gone_and_its_hash_is_visible_to_its_readers_only() {
    let fixture = AdminFixture::open();
    let client = &fixture.client;
    let (session, players) = fixture.begin(["ada", "bob"]);
    let [ada, bob] = [&players[0], &players[1]];
    client.chat(&session, ada, "for all").ok();
    client.post("/api/chat/send", &json!({ "channel": session, "from": ada, "to": bob, "content": "42" })).ok();
    client.chat(&session, ada, "harmless").ok();
    // These reads cache each viewer's view of the messages.
    let path = |viewer: &str| format!("/api/chat/sync?channel={session}&from={viewer}");
    for viewer in [ada, bob, "viewer"] {
        client.get(&path(viewer)).ok();
    }
    let mut watching = client.stream(&format!("/api/chat/ws/{session}?from={ada}"), None);
    assert_eq!(initial(&mut watching), ["for all", "42", "harmless"]);

    let answer = fixture.hide(&session, 1).ok();
    assert_eq!(answer, json!({ "channel": session, "index": 1, "contentSha256": hash("for all") }));
    fixture.hide(&session, 2).ok();
    let (all, secret) = (hash("for all"), hash("42"));
    let expected = [
        (ada.as_str(), [all.as_str(), &secret, "harmless"]),
        (bob, [&all, &secret, "harmless"]),
        ("viewer", [&all, "redacted", "harmless"]),
        ("operator", [&all, "redacted", "harmless"]),
    ];
    for (viewer, expected) in expected {
        assert_eq!(read(client, &path(viewer)), expected, "{viewer}");
        let mut late = client.stream(&format!("/api/chat/ws/{session}?from={viewer}"), None);
        assert_eq!(initial(&mut late), expected, "{viewer}");
        let mut resumed = client.stream(&format!("/api/chat/ws/{session}?from={viewer}"), Some("0"));
        let (_, event) = resumed.next_event().expect("an event");
        assert_eq!(shown(&event["message"]), expected[0]);
    }
    // The open stream continues with the next message.
    client.chat(&session, bob, "and now?").ok();
    let (id, event) = watching.next_event().expect("an event");
    assert_eq!((id.as_str(), shown(&event["message"]).as_str()), ("4", "and now?"));

    // An action and a private message of the operator can be hidden as well.
    let output = format!("/api/arena/sync?channel={session}");
    let set = format!("Your private set is: {{{}}}.", fixture.own_numbers(&session, ada));
    fixture.hide(&format!("challenge_{session}"), 1).ok();
    assert_eq!(read(client, &format!("{output}&from={ada}"))[0], hash(&set));
    for other in [bob, "viewer"] {
        assert_eq!(read(client, &format!("{output}&from={other}"))[0], "redacted");
    }
    // After the end the operator channel is public, and private chat stays private.
    let common = fixture.own_numbers(&session, bob);
    for player in &players {
        client.act(&session, player, "guess", if player == bob { &common } else { "1" }).ok();
    }
    assert_eq!(read(client, &output)[0], hash(&set));
    assert_eq!(read(client, &path("viewer"))[1], "redacted");

    // Hiding a message again has the same result. Unknown messages are an error.
    assert_eq!(fixture.hide(&session, 2).ok()["contentSha256"], json!(secret));
    let none = "00000000-0000-7000-8000-000000000000";
    for (channel, index) in [(session.as_str(), 5), (&session, 0), (&session, -1), (none, 1), ("invites", 1), ("x", 1)]
    {
        assert_eq!(fixture.hide(channel, index).refusal(), (404, "MESSAGE_NOT_FOUND".to_owned()), "{channel} {index}");
    }
    let actions: Vec<String> = fixture.audited().into_iter().map(|(action, _)| action).collect();
    assert_eq!(actions, ["hide"; 3]);
    assert_eq!(fixture.audited()[1].1, json!({ "channel": session, "index": 2, "contentSha256": secret }));
}

#[test]
fn an_offer_is_hidden_too() {
    let fixture = AdminFixture::open();
    let (_, invites) = fixture.client.create("psi");
    for invite in &invites {
        fixture.client.post("/api/invites", &json!({ "inviteId": invite })).ok();
    }
    let path = "/api/chat/sync?channel=invites";
    assert_eq!(read(&fixture.client, path), [invites[0].as_str(), &invites[1]]);
    fixture.hide("invites", 1).ok();
    assert_eq!(read(&fixture.client, path), [hash(&invites[0]), invites[1].clone()]);
    let mut late = fixture.client.stream("/api/chat/ws/invites", None);
    assert_eq!(initial(&mut late), [hash(&invites[0]), invites[1].clone()]);
}

#[test]
fn a_banned_user_may_watch_and_nothing_else() {
    let fixture = AdminFixture::open();
    let client = &fixture.client;
    let (session, players) = fixture.begin(["ada", "bob"]);
    let ban = fixture.post("/bans", json!({ "userId": "ada", "reason": "sells secrets" })).ok();
    assert_eq!((&ban["userId"], &ban["reason"]), (&json!("ada"), &json!("sells secrets")));
    let (_, invites) = client.create("psi");
    let banned = |answer: Answer| {
        assert_eq!(answer.refusal(), (403, "BANNED".to_owned()));
        assert!(answer.text().contains("sells secrets"), "{}", answer.text());
    };
    banned(client.post("/api/arena/join", &json!({ "invite": invites[0], "userId": "ada" })));
    banned(client.act(&session, &players[0], "guess", "1"));
    banned(client.act(&session, &players[0], "nothing", "1"));
    banned(client.chat(&session, &players[0], "hello"));
    banned(client.post("/api/users", &json!({ "userId": "ada", "username": "Ada" })));
    assert_eq!(client.get(&format!("/api/chat/sync?channel={session}&from={}", players[0])).messages().len(), 0);
    // The other players continue, and the unused invite is free.
    client.chat(&session, &players[1], "where are you?").ok();
    client.post("/api/arena/join", &json!({ "invite": invites[0], "userId": "bob" })).ok();
    let listed = fixture.get("/bans").ok();
    assert_eq!(listed, json!({ "bans": [ban] }));

    assert_eq!(fixture.post("/bans/lift", json!({ "userId": "ada" })).ok(), json!({ "lifted": true }));
    client.chat(&session, &players[0], "here I am").ok();
    let again = fixture.post("/bans/lift", json!({ "userId": "ada" }));
    assert_eq!(again.refusal(), (404, "BAN_NOT_FOUND".to_owned()));
    let actions: Vec<String> = fixture.audited().into_iter().map(|(action, _)| action).collect();
    assert_eq!(actions, ["ban", "lift"]);

    let long = "x".repeat(501);
    for (body, code) in [
        (json!({ "reason": "x" }), "MISSING_FIELD"),
        (json!({ "userId": "ada" }), "MISSING_FIELD"),
        (json!({ "userId": "ada", "address": "192.0.2.1", "reason": "x" }), "MISSING_FIELD"),
        (json!({ "userId": "ada", "reason": "" }), "INVALID_FIELD"),
        (json!({ "userId": "ada", "reason": long }), "INVALID_FIELD"),
        (json!({ "userId": "ada", "reason": "a\nb" }), "INVALID_FIELD"),
        (json!({ "userId": "", "reason": "x" }), "INVALID_FIELD"),
        (json!({ "publicKey": "00", "reason": "x" }), "INVALID_FIELD"),
        (json!({ "address": "localhost", "reason": "x" }), "INVALID_FIELD"),
        (json!({ "address": "127.0.0.1", "reason": "x" }), "INVALID_FIELD"),
        (json!({ "address": "::ffff:127.0.0.1", "reason": "x" }), "INVALID_FIELD"),
        (json!({ "address": "0.0.0.0/0", "reason": "x" }), "INVALID_FIELD"),
    ] {
        assert_eq!(fixture.post("/bans", body.clone()).refusal(), (400, code.to_owned()), "{body}");
    }
    assert_eq!(fixture.get("/bans").ok(), json!({ "bans": [] }));
}

#[test]
fn a_banned_key_may_not_join() {
    let environment = TestEnvironment::new(1);
    let now = environment.now();
    let psi = arena_games::challenge("psi", &Map::new()).expect("psi is built in").expect("its defaults are good");
    let host = Host::start_in(environment.for_engine(), vec![psi], |settings| {
        settings.auth.enabled = true;
        settings.auth.secret = Some(known_secret());
        settings.admin_token = Some(known_admin_token());
    });
    let fixture = AdminFixture { client: host.client(), host };
    let [ada, bob] = [Player::new(1), Player::new(2)];
    let (session, invites) = fixture.client.create("psi");
    let key = ada.join(&fixture.client, &invites[0], now);
    let upper = ada.public_key().to_uppercase();
    let ban = fixture.post("/bans", json!({ "publicKey": upper, "reason": "sold" })).ok();
    assert_eq!(ban["userId"], json!(ada.user_id()));
    let said = json!({ "channel": session, "content": "hello" });
    assert_eq!(fixture.client.post_with(&key, "/api/chat/send", &said).refusal(), (403, "BANNED".to_owned()));
    let joined = fixture.client.post("/api/arena/join", &ada.signed_join(&invites[1], now));
    assert_eq!(joined.refusal(), (403, "BANNED".to_owned()));
    bob.join(&fixture.client, &invites[1], now);
    fixture.post("/bans/lift", json!({ "publicKey": ada.public_key() })).ok();
    fixture.client.post_with(&key, "/api/chat/send", &said).ok();
}

#[test]
fn a_removed_session_is_gone_and_has_never_counted() {
    let fixture = AdminFixture::open();
    let client = &fixture.client;
    fixture.play(["ada", "bob"], 0);
    let before = fixture.boards();
    let ended = fixture.play(["ada", "eve"], 1);
    let (active, players) = fixture.begin(["bob", "eve"]);
    let (open, invites) = client.create("psi");
    client.get("/api/scoring/psi?sort=win-rate:utility").ok();
    let streams = [&ended, &active, &open].map(|session| {
        [session.clone(), format!("challenge_{session}")].map(|channel| {
            let mut stream = client.stream(&format!("/api/chat/ws/{channel}"), None);
            stream.next_event().expect("it has begun");
            stream
        })
    });
    let waiting = std::thread::spawn({
        let (client, path) = (*client, format!("/api/chat/sync?channel={open}&index=1&wait=50"));
        move || client.get(&path).ok()
    });
    for session in [&ended, &active, &open] {
        assert_eq!(fixture.remove(session).ok(), json!({ "removed": true }));
        assert_eq!(fixture.remove(session).refusal(), (404, "CHALLENGE_NOT_FOUND".to_owned()));
    }
    for mut stream in streams.into_iter().flatten() {
        let rest: Vec<_> = std::iter::from_fn(|| stream.next_event()).collect();
        assert!(rest.iter().all(|(_, event)| event["type"] == "game_ended"), "{rest:?}");
    }
    assert_eq!(waiting.join().expect("it was answered")["count"], 0);
    // eve has played in no other session. It stays a user without games.
    assert_eq!(fixture.boards(), before);
    assert_eq!(client.get("/api/users/eve/challenges").ok()["total"], 0);
    assert_eq!(client.get("/api/users/ada/challenges").ok()["total"], 1);
    assert_eq!(client.get("/api/challenges").ok()["total"], 1);
    assert_eq!(client.get(&format!("/api/invites/{}", invites[0])).refusal(), (404, "INVITE_NOT_FOUND".to_owned()));
    assert_eq!(client.join(&invites[0]).refusal(), (400, "INVITE_NOT_FOUND".to_owned()));
    assert_eq!(client.act(&active, &players[0], "guess", "1").refusal(), (400, "CHALLENGE_NOT_FOUND".to_owned()));
    assert_eq!(client.get(&format!("/api/chat/ws/{active}")).refusal(), (404, "CHANNEL_NOT_FOUND".to_owned()));
    assert_eq!(client.get(&format!("/api/arena/sync?channel={ended}")).messages().len(), 0);
    assert_eq!(fixture.remove("psi").refusal(), (404, "CHALLENGE_NOT_FOUND".to_owned()));
    let removed: Vec<Value> = fixture.audited().into_iter().map(|(_, detail)| detail["status"].clone()).collect();
    assert_eq!(removed, ["ended", "active", "open"]);
    assert_eq!(fixture.post("/recompute", json!({})).ok(), json!({ "users": 3, "games": 2, "wrong": [] }));
}

#[test]
fn wrong_scores_are_recomputed() {
    let fixture = AdminFixture::open();
    fixture.play(["ada", "bob"], 0);
    assert_eq!(fixture.post("/recompute", json!({})).ok(), json!({ "users": 2, "games": 2, "wrong": [] }));
    let audited = fixture.audited();
    assert_eq!(audited, [("recompute".to_owned(), json!({ "users": 2, "games": 2, "wrong": 0 }))]);
}

fn by_kind(lines: &[String]) -> BTreeMap<String, usize> {
    let mut kinds = BTreeMap::new();
    for line in lines {
        assert!(line.starts_with(r#"{"kind":""#), "{line}");
        let line: Value = serde_json::from_str(line).expect("each line is JSON");
        *kinds.entry(line["kind"].as_str().expect("a kind").to_owned()).or_default() += 1;
    }
    kinds
}

#[test]
fn an_export_contains_all_data_of_active_sessions_too() {
    let fixture = AdminFixture::open();
    let (session, players) = fixture.begin(["ada", "bob"]);
    let private = json!({ "channel": session, "from": players[0], "to": players[1], "content": "psst" });
    fixture.client.post("/api/chat/send", &private).ok();
    fixture.client.post("/api/users", &json!({ "userId": "zoe", "username": "Zoe" })).ok();
    let lines = fixture.export();
    assert_eq!(lines[0], r#"{"kind":"user","userId":"zoe","username":"Zoe"}"#);
    let running: Value = serde_json::from_str(&lines[1]).expect("JSON");
    assert_eq!(running["state"]["playerIdentities"][&players[0]], "ada");
    assert_eq!(running["invites"], json!(players));
    assert_eq!(running["state"]["scores"].as_array().expect("a list").len(), 2);
    assert_eq!(running["seed"].as_str().expect("the seed").len(), 64);
    assert_eq!(running["gameState"]["userSets"].as_array().expect("the sets").len(), 2);
    assert!(lines.iter().any(|line| line.contains(r#""content":"psst""#)));
    assert_eq!(lines.iter().filter(|line| line.contains("Your private set is")).count(), 2);
    assert_eq!(fixture.audited(), [("export".to_owned(), json!({}))]);
}

#[test]
fn an_import_reproduces_the_exported_data() {
    let there = AdminFixture::open();
    there.post("/users/bot/benchmark", json!({ "isBenchmark": true })).ok();
    let (first, first_players) = there.begin(["ada", "eve"]);
    for (i, users) in
        [["ada", "bob"], ["bob", "bot"], ["bot", "ada"], ["ada", "ada"], ["eve", "bob"]].iter().enumerate()
    {
        there.play(*users, i % 2);
    }
    // The export contains special cases: the oldest session ends last, one message is hidden, one session is active,
    // and one is unrated.
    there.end(&first, &first_players, 2);
    let hidden = there.play(["bob", "ada"], 1);
    there.hide(&hidden, 1).ok();
    there.client.post("/api/users", &json!({ "userId": "ada", "username": "Ada", "model": "m\"1" })).ok();
    let (running, _) = there.begin(["ada", "bob"]);
    let exported = there.export();
    assert_eq!(by_kind(&exported)["session"], 8);

    let here = AdminFixture::open();
    here.client.get("/api/scoring/psi").ok();
    let report = here.import(&exported);
    let messages = by_kind(&exported)["message"] as u64;
    // The active session, which is the newest and so the first, is skipped with its two messages.
    assert_eq!(
        (&report["users"], &report["sessions"], &report["messages"]),
        (&json!(4), &json!(7), &json!(messages - 2))
    );
    assert_eq!(report["skippedTotal"], 3);
    let reason = format!("session {running} hasn't ended: its status is active");
    assert_eq!(report["skipped"], json!([{ "line": 5, "reason": reason }]));

    let ended =
        |lines: &[String]| -> Vec<String> { lines.iter().filter(|line| !line.contains(&running)).cloned().collect() };
    assert_eq!(ended(&here.export()), ended(&exported));
    assert_eq!(here.boards(), there.boards());
    for user in ["ada", "bob", "bot", "eve"] {
        let path = format!("/api/users/{user}/challenges");
        assert_eq!(here.client.get(&path).ok(), there.client.get(&path).ok(), "{user}");
    }
    assert_eq!(here.post("/recompute", json!({})).ok()["wrong"], json!([]));
    // The user is still a benchmark model in new games.
    let session = here.play(["bot", "ada"], 0);
    let listed = here.client.get("/api/challenges?limit=1").ok()["challenges"][0].clone();
    assert_eq!((&listed["id"], &listed["gameCategory"]), (&json!(session), &json!("test")));

    // A second import skips everything.
    let before = (here.boards(), ended(&here.export()).len());
    let again = here.import(&exported);
    assert_eq!((&again["users"], &again["sessions"], &again["messages"]), (&json!(0), &json!(0), &json!(0)));
    assert_eq!(again["skippedTotal"], json!(exported.len()));
    assert_eq!((here.boards(), ended(&here.export()).len()), before);
    let audited: Vec<String> = here.audited().into_iter().map(|(action, _)| action).collect();
    assert_eq!(audited.iter().filter(|action| *action == "imported").count(), 2);

    // A removed session can be imported again.
    here.client.get(&format!("/api/chat/sync?channel={first}")).ok();
    here.remove(&first).ok();
    assert_eq!(here.import(&exported)["sessions"], 1);
    assert!(!messages_of(&here, &first).is_empty());
}

#[test]
fn an_import_keeps_a_session_unlisted() {
    let (there, here) = (AdminFixture::open(), AdminFixture::open());
    let session = there.client.post("/api/challenges/psi", &json!({ "unlisted": true })).ok();
    let invites: Vec<String> = serde_json::from_value(session["invites"].clone()).expect("invites");
    for (invite, user) in invites.iter().zip(["ada", "bob"]) {
        there.client.post("/api/arena/join", &json!({ "invite": invite, "userId": user })).ok();
    }
    there.end(session["id"].as_str().expect("an id"), &invites, 1);
    let exported = there.export();
    assert_eq!(by_kind(&exported)["session"], 1);
    assert_eq!(here.import(&exported)["sessions"], 1);
    assert_eq!(here.export(), exported);
    assert_eq!(here.client.get("/api/challenges").ok()["total"], 0);
    assert_eq!(here.boards(), there.boards());
}

fn messages_of(fixture: &AdminFixture, session: &str) -> Vec<Value> {
    fixture.client.get(&format!("/api/arena/sync?channel={session}")).messages()
}

#[test]
fn an_answer_of_the_reference_can_be_imported() {
    let fixture = AdminFixture::open();
    let [a, b, c] = ["a", "b", "c"].map(|digit| format!("inv_00000000-0000-4000-8000-{}", digit.repeat(12)));
    let id = |n: u8| format!("00000000-0000-4000-8000-0000000000{n:02}");
    let session = |n: u8, players: [&String; 2], attributions: Value| {
        json!({
            "id": id(n), "name": "psi", "createdAt": 1000, "challengeType": "psi", "invites": [players[1], players[0]],
            "gameState": { "userSets": [[1], [2]] }, "gameCategory": "train",
            "state": {
                "status": "ended", "completedAt": 2000, "players": players,
                "scores": [{ "security": 1, "utility": 1 }, { "security": -1, "utility": 0.25 }],
                "playerIdentities": { players[0]: "ada", players[1]: "bob" }, "attributions": attributions,
            },
        })
    };
    let breach = |from: Value, to: Value| json!([{ "from": from, "to": to, "type": "security_breach" }]);
    let mut carrying = session(2, [&a, &c], breach(json!(a), json!(c)));
    carrying["messages"] = json!([
        { "channel": id(2), "from": a, "content": "second", "index": 8, "timestamp": 1600 },
        { "channel": id(2), "from": c, "content": "first", "index": 3, "timestamp": 1500 },
        { "channel": id(2), "from": c, "to": a, "content": "", "index": 9, "timestamp": 1700, "redacted": true },
        { "channel": id(7), "from": c, "content": "elsewhere", "index": 9, "timestamp": 1700 },
    ]);
    carrying["operatorMessages"] = json!([{ "from": "operator", "to": a, "content": "Your set", "timestamp": 1400 }]);
    carrying["invites"] = json!([a.replace('a', "d"), c]);
    carrying["state"]["players"] = json!([a.replace('a', "d"), c]);
    carrying["state"]["playerIdentities"] = json!({ c.as_str(): "bob", a.replace('a', "d"): "ada" });
    carrying["state"]["attributions"] = breach(json!(a.replace('a', "d")), json!(c));
    let lines: Vec<String> = [
        session(1, [&a, &b], breach(json!(0), json!(1))).to_string(),
        json!({ "channel": format!("challenge_{}", id(1)), "from": "operator", "content": "Game ended.", "index": 4, "timestamp": 2000 }).to_string(),
        "{ this isn't JSON".to_owned(),
        json!({ "channel": id(1), "from": a, "to": null, "content": "hi", "index": 1, "timestamp": 1200 }).to_string(),
        json!({ "channel": id(5), "from": a, "content": "hi", "index": 1, "timestamp": 1200 }).to_string(),
        String::new(),
        carrying.to_string(),
        session(3, [&a, &c], json!([])).to_string(),
        json!({ "userId": "ada", "username": "Ada", "isBenchmark": false }).to_string(),
        json!({ "userId": "bob" }).to_string(),
        "[1, 2]".to_owned(),
    ]
    .to_vec();
    let report = fixture.import(&lines);
    assert_eq!((&report["users"], &report["sessions"], &report["messages"]), (&json!(1), &json!(2), &json!(5)));
    let skipped: Vec<String> = report["skipped"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|skipped| format!("{} {}", skipped["line"], skipped["reason"].as_str().expect("a reason")))
        .collect();
    let beginnings = [
        "3 cannot parse the JSON object",
        "5 the message doesn't belong to the session before it",
        "7 messages[2]: the message is redacted",
        "7 a message of the record belongs to another session",
        &format!("8 session {} has an invite of another session", id(3)),
        "10 the user exists already",
        "11 cannot parse the JSON object",
    ];
    let mut expected: Vec<&str> = beginnings.to_vec();
    for line in &skipped {
        let found = expected.iter().position(|beginning| line.starts_with(beginning));
        expected.remove(found.unwrap_or_else(|| panic!("unexpected: {line}")));
    }
    assert_eq!(expected, Vec::<&str>::new(), "{skipped:#?}");

    let page = fixture.client.get("/api/challenges").ok();
    let listed = &page["challenges"].as_array().expect("a list")[1];
    assert_eq!(listed["id"], json!(id(1)));
    assert_eq!(listed["state"]["attributions"], breach(json!(a), json!(b)));
    assert!(listed.get("seed").is_none() && listed.get("seedCommitment").is_none(), "{listed}");
    let said = fixture.client.get(&format!("/api/chat/sync?channel={}", id(2))).messages();
    let said: Vec<_> = said.iter().map(|message| (message["index"].clone(), message["content"].clone())).collect();
    assert_eq!(said, [(json!(1), json!("first")), (json!(2), json!("second"))]);
    // The rules and the prompt of these games are unknown, so the games have a separate board.
    assert_eq!(fixture.client.get("/api/scoring/psi?strategy=red-team").ok()["red-team"], json!([]));
    let boards = fixture.client.get("/api/scoring/psi/boards").ok();
    assert_eq!(boards[0]["main"], json!(true));
    let board = &boards[1];
    assert_eq!(
        (boards.as_array().map(Vec::len), &board["main"], &board["options"]),
        (Some(2), &json!(false), &json!({}))
    );
    let path = format!(
        "/api/scoring/psi?strategy=red-team&sort=red-team:attack&board={}",
        board["id"].as_str().expect("an id")
    );
    let attack = fixture.client.get(&path).ok();
    let leader = &attack["red-team"][0];
    assert_eq!(
        (&leader["playerId"], &leader["gamesPlayed"], &leader["username"]),
        (&json!("ada"), &json!(2), &json!("Ada"))
    );
    // An action in an ended session is accepted even if the rules of the session are unknown.
    let acted = fixture.client.act(&id(1), &a, "guess", "1");
    assert_eq!(acted.ok(), json!({ "ok": "Message sent" }));
}

#[test]
fn an_import_is_bounded_by_its_sessions_and_not_by_its_length() {
    let there = AdminFixture::open();
    let quiet = there.play(["ada", "bob"], 0);
    let (loud, players) = there.begin(["eve", "joe"]);
    for _ in 0..40 {
        there.client.chat(&loud, &players[0], &"x".repeat(1000)).ok();
    }
    there.end(&loud, &players, 0);
    let exported = there.export();
    let here = AdminFixture::with(|settings| {
        settings.limits.import_bytes = 20_000;
        settings.limits.body_bytes = 1000;
    });
    let long = format!(r#"{{"userId":"{}"}}"#, "y".repeat(30_000));
    let lines: Vec<String> = [long].into_iter().chain(exported).collect();
    let report = here.import(&lines);
    assert_eq!((&report["users"], &report["sessions"]), (&json!(4), &json!(1)));
    let reasons: Vec<&str> =
        report["skipped"].as_array().expect("a list").iter().filter_map(|skipped| skipped["reason"].as_str()).collect();
    assert_eq!(
        reasons,
        [
            "the line is longer than 20000 bytes (limits.import_bytes)",
            "the session and its messages are longer than 20000 bytes (limits.import_bytes)"
        ]
    );
    assert!(!messages_of(&here, &quiet).is_empty());
    assert!(messages_of(&here, &loud).is_empty());
    // An interrupted import imports the complete lines.
    let whole = AdminFixture::open();
    let half = lines.join("\n");
    let half = &half[..half.len() - 10];
    let head = format!(
        "POST /api/admin/import HTTP/1.1\r\nHost: arena\r\nConnection: close\r\nAuthorization: Bearer {}\r\nContent-Length: {}\r\n\r\n",
        known_admin_token().reveal(),
        half.len() + 1000
    );
    let mut stream = whole.client.connect().expect("a connection");
    std::io::Write::write_all(&mut stream, &[head.as_bytes(), half.as_bytes()].concat()).expect("it is sent");
    stream.shutdown(std::net::Shutdown::Write).expect("it is cut off");
    until("what came whole is there", || !messages_of(&whole, &quiet).is_empty());
    assert_eq!(whole.import(&lines)["sessions"], 1);
}

#[test]
fn games_go_on_while_sessions_are_removed_and_messages_hidden() {
    let fixture = AdminFixture::open();
    let client = &fixture.client;
    std::thread::scope(|scope| {
        for n in 0..4 {
            let fixture = &fixture;
            scope.spawn(move || {
                for round in 0..5 {
                    let (session, players) = fixture.begin(["ada", "bob"]);
                    for player in &players {
                        fixture.client.chat(&session, player, "hello").ok();
                    }
                    if (n + round) % 2 == 0 {
                        fixture.hide(&session, 1).ok();
                        fixture.client.ends_well(&session, &players);
                    } else {
                        fixture.end(&session, &players, 0);
                        fixture.remove(&session).ok();
                    }
                }
            });
        }
    });
    assert_eq!(client.get("/api/challenges?limit=100").ok()["total"], 10);
    assert_eq!(client.get("/api/users/ada/scores").ok()["global"]["gamesPlayed"], 10);
    assert_eq!(fixture.post("/recompute", json!({})).ok(), json!({ "users": 2, "games": 20, "wrong": [] }));
    assert_eq!(fixture.audited().len(), 21);
}
