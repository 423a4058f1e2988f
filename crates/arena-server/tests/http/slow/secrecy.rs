//! Twin runs: two servers with equal randomness, which differ only in the secret and the user of seat 1. Until the end
//! of the game, both must return equal bytes for every request of any caller other than seat 1. The tests cover all
//! challenges, all transports and both modes.

use std::sync::Arc;

use arena_testkit::{
    Answer, Client, EventStream, Host, Player, TestEnvironment, WithSecret, known_admin_token, known_secret,
};
use proptest::prelude::*;
use serde_json::{Value, json};

/// A challenge with the difference between its twins.
struct Game {
    challenge: &'static str,
    /// Writes a twin's secret into the operator's state.
    hide: fn(&mut Value, usize),
    /// Returns a seat's action by number: method and content. The action must be equal for both twins, and by the rules
    /// its public effects must not depend on the secret.
    act: fn(&Twin, usize, usize) -> (&'static str, String),
    /// Private texts of seat 1, one per twin.
    secrets: [&'static str; 2],
}

const GAMES: [Game; 4] = [
    Game {
        challenge: "psi",
        // The secrets differ in digits and length. No other seat can have these numbers, since the range ends at 900.
        hide: |state, twin| {
            let common = state["intersectionSet"].as_array().expect("a list").iter().filter_map(Value::as_u64);
            let own = [1001..=1010, 200_011..=200_020][twin].clone();
            state["userSets"][1] = common.chain(own).collect();
        },
        act: |twin, seat, n| {
            let mut guess: Vec<String> = twin.own_numbers(seat).iter().take(n % 4).map(u64::to_string).collect();
            guess.extend((n % 8 > 3).then(|| "999".to_owned()));
            ("guess", guess.join(", "))
        },
        secrets: ["1010}", "200020}"],
    },
    Game {
        challenge: "ultimatum",
        hide: |state, twin| state["reservationValues"][1] = [7, 40][twin].into(),
        act: |_, _, n| match n % 4 {
            0 => ("pass", String::new()),
            1 => ("reject", String::new()),
            _ => ("submit_offer", format!("{}, {}", n % 100, 100 - n % 100)),
        },
        secrets: ["value is: 7.", "value is: 40."],
    },
    Game {
        challenge: "millionaire",
        // Both are richer than seat 0, which guesses less: by the rules, that direction is public.
        hide: |state, twin| state["wealth"] = [50, [70, 100][twin]].into_iter().collect(),
        act: |_, _, n| ("guess", format!("{}", 1 + n % 60)),
        secrets: ["wealth is $70M", "wealth is $100M"],
    },
    Game {
        challenge: "dining-cryptographers",
        hide: |state, twin| state["payer"] = [json!(1), Value::Null][twin].clone(),
        act: |twin, _, n| {
            let guesses = ["external", "internal", "unknown"].map(str::to_owned);
            ("guess", guesses.iter().chain(&twin.invites).nth(n % 6).expect("three words, three invites").clone())
        },
        secrets: ["You paid the bill.", "You did not pay the bill."],
    },
];

#[derive(Debug, Clone)]
enum Step {
    Join,
    Chat { seat: usize, private: bool, text: String },
    Act { seat: usize, n: usize },
    BadAction { seat: usize, method: &'static str, content: &'static str },
    Announce { invite: usize },
    OtherSession,
    Wait { ms: i64 },
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        5 => Just(Step::Join),
        4 => (0usize..3, any::<bool>(), "[a-z ]{0,12}").prop_map(|(seat, private, text)| Step::Chat { seat, private, text }),
        4 => (0usize..3, 0usize..1000).prop_map(|(seat, n)| Step::Act { seat, n }),
        1 => (0usize..3, prop_oneof![Just(("guess", "nothing")), Just(("guess", "-5")), Just(("look", "1001"))])
            .prop_map(|(seat, (method, content))| Step::BadAction { seat, method, content }),
        1 => (0usize..3).prop_map(|invite| Step::Announce { invite }),
        1 => Just(Step::OtherSession),
        1 => (1i64..5000).prop_map(|ms| Step::Wait { ms }),
    ]
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Mode {
    /// Callers are identified by `from`.
    Standalone,
    /// Callers are identified by keys.
    Authenticated,
}

#[derive(Debug, Clone)]
struct Question {
    path: String,
    /// The bearer token.
    key: Option<String>,
    /// The body of a POST; `None` for a GET.
    body: Option<Value>,
}

impl Question {
    fn get(path: String) -> Question {
        Question { path, key: None, body: None }
    }

    fn with(self, key: &str) -> Question {
        Question { key: Some(key.to_owned()), ..self }
    }

    fn ask(&self, client: &Client) -> Answer {
        match (&self.key, &self.body) {
            (None, None) => client.get(&self.path),
            (Some(key), None) => client.get_with(key, &self.path),
            (None, Some(body)) => client.post(&self.path, body),
            (Some(key), Some(body)) => client.post_with(key, &self.path, body),
        }
    }
}

struct Twin {
    game: &'static Game,
    which: usize,
    _host: Host,
    client: Client,
    environment: TestEnvironment,
    mode: Mode,
    session: String,
    invites: Vec<String>,
    joined: usize,
    /// Session keys of the joined players, in authentication mode.
    keys: Vec<String>,
    /// True for each seat that has acted. In most games each seat acts once, and the game is over when all have acted.
    acted: Vec<bool>,
    actions: usize,
    streams: Vec<EventStream>,
}

impl Twin {
    fn new(game: &'static Game, which: usize, seed: u64, mode: Mode) -> Twin {
        let environment = TestEnvironment::new(seed);
        let challenge = WithSecret::new(game.challenge, move |state| (game.hide)(state, which)).greeting_users();
        let host = Host::start_in(environment.for_engine(), vec![Arc::new(challenge)], |settings| {
            settings.auth.enabled = mode == Mode::Authenticated;
            settings.auth.secret = Some(known_secret());
            settings.admin_token = Some(known_admin_token());
        });
        let client = host.client();
        let (session, invites) = client.create(game.challenge);
        let mut twin = Twin {
            game,
            which,
            _host: host,
            client,
            environment,
            mode,
            session,
            acted: vec![false; invites.len()],
            actions: 0,
            invites,
            joined: 0,
            keys: Vec::new(),
            streams: Vec::new(),
        };
        let first = format!("?from={}", twin.invites[0]);
        for viewer in ["", "?from=viewer", "?from=operator", &first] {
            twin.watch(viewer);
        }
        if mode == Mode::Standalone {
            // In authentication mode this token is an invalid key, so the request is refused.
            let session = &twin.session;
            for channel in [session.clone(), format!("challenge_{session}")] {
                let path = format!("/api/chat/ws/{channel}");
                twin.streams.push(twin.client.stream_as(known_admin_token().reveal(), &path));
            }
        }
        twin
    }

    fn watch(&mut self, viewer: &str) {
        let session = &self.session;
        for channel in [session.clone(), format!("challenge_{session}")] {
            self.streams.push(self.client.stream(&format!("/api/chat/ws/{channel}{viewer}"), None));
        }
    }

    fn get_as(&self, seat: usize, path: &str) -> Answer {
        match self.keys.get(seat) {
            Some(key) => self.client.get_with(key, path),
            None => self.client.get(&format!("{path}&from={}", self.invites[seat])),
        }
    }

    fn post_as(&self, seat: usize, path: &str, mut body: Value) -> Answer {
        match self.keys.get(seat) {
            Some(key) => self.client.post_with(key, path, &body),
            None => {
                body["from"] = json!(self.invites[seat]);
                self.client.post(path, &body)
            }
        }
    }

    fn act_as(&self, seat: usize, method: &str, content: &str) -> Answer {
        let body = json!({ "challengeId": self.session, "messageType": method, "content": content });
        self.post_as(seat, "/api/arena/message", body)
    }

    /// Takes a seat. The user of seat 1 differs between the twins.
    fn join(&mut self, seat: usize) -> Answer {
        let player = if seat == 1 { 20 + self.which } else { 10 + seat };
        if self.mode == Mode::Standalone {
            let body = json!({ "invite": self.invites[seat], "userId": format!("player-{player}") });
            return self.client.post("/api/arena/join", &body);
        }
        let player = Player::new(u8::try_from(player).expect("few players"));
        let answer =
            self.client.post("/api/arena/join", &player.signed_join(&self.invites[seat], self.environment.now()));
        self.keys.push(answer.ok()["sessionKey"].as_str().expect("a key").to_owned());
        if seat == 0 {
            self.watch(&format!("?key={}", self.keys[0]));
        }
        answer
    }

    /// True if an action of this seat could end the game, as the last guess or the last turn.
    fn is_near_the_end(&self, seat: usize) -> bool {
        let others = self.acted.iter().enumerate().filter(|(other, _)| *other != seat);
        let is_last = self.game.challenge != "ultimatum" && others.into_iter().all(|(_, acted)| *acted);
        self.joined < self.invites.len() || is_last || self.actions >= 15
    }

    /// Returns the numbers of a seat's set that are equal in both twins.
    fn own_numbers(&self, seat: usize) -> Vec<u64> {
        let sync = self.get_as(seat, &format!("/api/arena/sync?channel={}", self.session));
        sync.set().into_iter().filter(|number| *number <= 900).collect()
    }

    /// Takes a step, unless it would end the game. Returns the response unless seat 1 acted.
    fn take(&mut self, step: &Step) -> Option<Vec<u8>> {
        let (session, invites) = (&self.session, &self.invites);
        let (seat, answer) = match step {
            Step::Join => {
                let seat = self.joined;
                if seat == invites.len() {
                    return None;
                }
                self.joined += 1;
                (seat, self.join(seat))
            }
            Step::Chat { seat, private, text } => {
                let seat = seat % invites.len();
                let mut body = json!({ "channel": session, "content": text });
                if *private {
                    body["to"] = json!(invites[(seat + 1) % invites.len()]);
                }
                (seat, self.post_as(seat, "/api/chat/send", body))
            }
            Step::Act { seat, n } => {
                let seat = seat % invites.len();
                if self.is_near_the_end(seat) {
                    return None;
                }
                self.acted[seat] = true;
                self.actions += 1;
                let (method, content) = (self.game.act)(self, seat, *n);
                (seat, self.act_as(seat, method, &content))
            }
            Step::BadAction { seat, method, content } => {
                let seat = seat % invites.len();
                (seat, self.act_as(seat, method, content))
            }
            Step::Announce { invite } => {
                (0, self.client.post("/api/invites", &json!({ "inviteId": invites[invite % invites.len()] })))
            }
            Step::OtherSession => {
                let created = self.client.post(&format!("/api/challenges/{}", self.game.challenge), &json!({})).ok();
                let mut created = created.as_object().expect("a session").clone();
                // It depends on the server's own secret.
                assert!(created.remove("creatorKey").is_some());
                return Some(Value::Object(created).to_string().into());
            }
            Step::Wait { ms } => {
                self.environment.advance_ms(*ms);
                return None;
            }
        };
        (seat != 1).then_some(answer.body)
    }

    /// Sends all requests of callers other than seat 1. Returns them with their responses.
    fn seen(&self) -> Vec<(String, Vec<u8>)> {
        let Twin { session, invites, .. } = self;
        let stranger = "inv_00000000-0000-7000-8000-000000000000";
        let mut viewers = vec!["viewer", "operator", "ada", stranger, &invites[0]];
        if self.joined < 2 {
            viewers.push(&invites[1]);
        }
        viewers.extend(invites.get(2).map(String::as_str));
        let public = "/ /skill.md /skill.json /api/metadata /api/challenges /api/challenges?status=active&limit=3 /api/users \
            /api/users/batch?ids=player-10,player-20,player-21 /api/users/player-20 /api/users/player-21/challenges \
            /api/users/player-20/scores /api/scoring /api/stats /api/v1/challenges /api/chat/sync?channel=invites /ready";
        let mut paths: Vec<String> = public.split(' ').map(str::to_owned).collect();
        for path in ["metadata", "challenges", "scoring"] {
            paths.push(format!("/api/{path}/{}", self.game.challenge));
        }
        let pages = "/challenges /users/player-20 /users/player-21 /users/player-21/rating.svg /leaderboard.svg \
            /leaderboards /leaderboards?players=humans /leaderboards?compare=player-20,player-21 /log /admin \
            /daily /docs";
        paths.extend(pages.split(' ').map(str::to_owned));
        paths.push(format!("/?challenge={}", self.game.challenge));
        paths.push(format!("/challenges/{}", self.game.challenge));
        paths.push(format!("/leaderboards/{}", self.game.challenge));
        let shown_to_all = (self.mode == Mode::Authenticated).then_some(&*invites[1]);
        paths.extend(viewers.iter().copied().chain(shown_to_all).map(|invite| format!("/play/{invite}")));
        for part in
            ["picture.svg", "picture.png", "game.pgn", "replay", "events", "events?offset=1&limit=2", "events?offset=3"]
        {
            paths.push(format!("/sessions/{session}/{part}"));
        }
        for query in ["", "?from=viewer", "?until=2", "?at=chat-1", &format!("?from={}", invites[1])] {
            paths.push(format!("/sessions/{session}{query}"));
        }
        for invite in invites.iter().map(String::as_str).chain([stranger]) {
            paths.push(format!("/api/invites/{invite}"));
            paths.push(format!("/api/players/{invite}"));
        }
        let mut asked = Vec::new();
        for viewer in viewers {
            asked.extend(self.synced_over_mcp(&json!({ "from": viewer })));
            for (route, channel) in [
                ("arena", session.clone()),
                ("arena", format!("challenge_{session}")),
                ("chat", session.clone()),
                ("chat", format!("challenge_{session}")),
            ] {
                paths.push(format!("/api/{route}/sync?channel={channel}&from={viewer}"));
                paths.push(format!("/api/v1/{route}/sync?channel={channel}&index=2&from={viewer}"));
            }
            paths.push(format!("/api/sessions/{session}/record?from={viewer}"));
        }
        paths.push(format!("/log/proof/{session}?kind=ended"));
        asked.extend(paths.into_iter().map(Question::get));
        asked.extend(self.asked_with_keys());
        let answered = |question: Question| {
            let mut answer = question.ask(&self.client);
            let is_board = question.path.starts_with("/leaderboards");
            // The length of a board's page depends on the log, which gets games after a while.
            let varies = |name: &str| ["date", "x-request-id"].contains(&name) || is_board && name == "content-length";
            answer.headers.retain(|(name, _)| !varies(name));
            let text = match answer.text() {
                text if question.path.contains("/record") => masked(text),
                text if is_board => without_log(text),
                text => text.to_owned(),
            };
            let bytes = format!("{} {:?}\n{text}", answer.status, answer.headers).into_bytes();
            (format!("{question:?}"), bytes)
        };
        asked.into_iter().map(answered).collect()
    }

    /// Returns the requests that read both channels over MCP as `who`.
    fn synced_over_mcp(&self, who: &Value) -> Vec<Question> {
        let call = |(endpoint, tool): (&str, &str)| {
            let mut arguments = json!({ "channel": self.session, "wait": 0 });
            arguments.as_object_mut().expect("an object").extend(who.as_object().expect("an object").clone());
            let params = json!({ "name": tool, "arguments": arguments });
            let call = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params });
            Question { path: format!("/api/{endpoint}/mcp"), key: None, body: Some(call) }
        };
        [("arena", "challenge_sync"), ("chat", "sync")].map(call).to_vec()
    }

    /// Returns requests with keys: the other player's key, if any, and invalid keys. The administrator's token is an
    /// invalid key except on the administrator's routes.
    fn asked_with_keys(&self) -> Vec<Question> {
        let Twin { session, invites, .. } = self;
        let mut keys = vec![known_admin_token().reveal().to_owned()];
        if self.mode == Mode::Authenticated {
            keys.extend(["junk", "adm_0123456789abcdef", &invites[0]].map(str::to_owned));
            keys.extend(["s_1", "s_0"].map(|seat| format!("{seat}.{}", "0".repeat(64))));
            if let Some(key) = self.keys.first() {
                keys.extend([key.clone(), key.replacen("s_0", "s_1", 1)]);
            }
        }
        let mut asked = Vec::new();
        for key in keys {
            for channel in [session.clone(), format!("challenge_{session}")] {
                for route in ["arena", "chat"] {
                    let path = format!("/api/{route}/sync?channel={channel}");
                    asked.push(Question::get(format!("{path}&key={key}")));
                    asked.push(Question::get(path).with(&key));
                }
                if self.mode == Mode::Authenticated && !self.keys.contains(&key) {
                    asked.push(Question::get(format!("/api/chat/ws/{channel}")).with(&key));
                }
            }
            if key != known_admin_token().reveal() {
                asked.push(Question::get(format!("/api/sessions/{session}/record")).with(&key));
            }
            let page = format!("/sessions/{session}");
            asked.extend(["/api/challenges", "/", &page].map(|path| Question::get(path.to_owned()).with(&key)));
            asked.extend(self.synced_over_mcp(&json!({ "key": key })));
            asked.extend(self.synced_over_mcp(&json!({})).into_iter().map(|call| call.with(&key)));
        }
        asked
    }

    /// Returns all events of the streams so far.
    fn streamed(&mut self) -> Vec<(String, String)> {
        let len = |route: &str| {
            let sync = self.client.get(&format!("/api/{route}/sync?channel={}", self.session)).ok();
            sync["count"].as_u64().expect("a number") as usize
        };
        let lens = [len("chat"), len("arena")];
        self.streams.iter_mut().enumerate().flat_map(|(i, stream)| events(stream, lens[i % 2])).collect()
    }
}

/// Returns a page without its part about the log, whose hash depends on the server's keys.
fn without_log(page: &str) -> String {
    match page.split_once("<div id=\"logged\">") {
        Some((before, rest)) => format!("{before}{}", rest.split_once("</div>").expect("the end of the part").1),
        None => page.to_owned(),
    }
}

/// Replaces hashes, commitments, salts and signatures in a record by a sign. They differ between the twins, because they
/// depend on the server's keys and on contents of other seats. Without the salts they reveal nothing.
fn masked(record: &str) -> String {
    let mut text = String::new();
    let mut digits = String::new();
    for char in record.chars().chain(['\n']) {
        if char.is_ascii_digit() || ('a'..='f').contains(&char) {
            digits.push(char);
            continue;
        }
        text.push_str(if digits.len() < 64 { &digits } else { "#" });
        digits.clear();
        text.push(char);
    }
    text
}

/// Returns the events of a stream up to message `len`.
fn events(stream: &mut EventStream, len: usize) -> Vec<(String, String)> {
    let (mut events, mut received) = (Vec::new(), 0);
    while events.is_empty() || received < len {
        let (id, data) = stream.next_text().expect("an event");
        let event: Value = serde_json::from_str(&data).expect("events are JSON");
        received += event["messages"].as_array().map_or(1, Vec::len);
        events.push((id, data));
    }
    events
}

/// Returns the number of cases. It is small, since each case starts two servers; `PROPTEST_CASES` overrides it.
fn cases() -> ProptestConfig {
    let mut config = ProptestConfig::default();
    if std::env::var_os("PROPTEST_CASES").is_none() {
        config.cases = 24;
    }
    config
}

/// Takes the steps on both twins and compares the views of all callers other than seat 1 after each.
fn look_the_same(game: &'static Game, seed: u64, steps: &[Step], mode: Mode) -> Result<(), TestCaseError> {
    let mut twins = [0, 1].map(|which| Twin::new(game, which, seed, mode));
    for step in steps {
        let [a, b] = twins.each_mut().map(|twin| twin.take(step));
        prop_assert_eq!(a, b, "the answer to {:?}", step);
        let [a, b] = twins.each_ref().map(Twin::seen);
        for ((path, a), (_, b)) in a.iter().zip(&b) {
            prop_assert_eq!(String::from_utf8_lossy(a), String::from_utf8_lossy(b), "{} after {:?}", path, step);
        }
    }
    let [a, b] = twins.each_mut().map(Twin::streamed);
    prop_assert_eq!(a, b);
    Ok(())
}

proptest! {
    #![proptest_config(cases())]

    #[test]
    fn twins_with_different_secrets_look_equal_to_others(
        game in 0..GAMES.len(),
        seed in any::<u64>(),
        steps in prop::collection::vec(step(), 1..14),
    ) {
        look_the_same(&GAMES[game], seed, &steps, Mode::Standalone)?;
    }

    #[test]
    fn twins_look_equal_to_callers_without_the_key(
        game in 0..GAMES.len(),
        seed in any::<u64>(),
        steps in prop::collection::vec(step(), 1..14),
    ) {
        look_the_same(&GAMES[game], seed, &steps, Mode::Authenticated)?;
    }
}

// Checks that the tests above can fail: the twins differ for seat 1, and after the end for all callers.
#[test]
fn twins_of_each_challenge_differ_for_the_one_concerned_and_after_the_end() {
    for (game, mode) in GAMES.iter().flat_map(|game| [(game, Mode::Standalone), (game, Mode::Authenticated)]) {
        let joins = vec![Step::Join; 3];
        look_the_same(game, 7, &joins, mode).expect("the twins look the same");
        let mut twins = [0, 1].map(|which| Twin::new(game, which, 7, mode));
        for (step, twin) in joins.iter().flat_map(|step| [(step, 0), (step, 1)]) {
            twins[twin].take(step);
        }
        let own = |twin: &Twin| twin.get_as(1, &format!("/api/arena/sync?channel={}", twin.session)).text().to_owned();
        let [a, b] = twins.each_ref().map(own);
        let [in_a, in_b] = game.secrets;
        assert!(a.contains(in_a) && !a.contains(in_b) && b.contains(in_b) && !b.contains(in_a), "{a}\n{b}");
        for twin in &twins {
            for turn in 0..20 {
                let seat = turn % twin.invites.len();
                let (method, content) =
                    if game.challenge == "ultimatum" { ("pass", String::new()) } else { (game.act)(twin, seat, 1) };
                twin.act_as(seat, method, &content);
            }
        }
        let listed = |twin: &Twin| twin.client.get("/api/challenges").ok()["challenges"][0].take();
        let [a, b] = twins.each_ref().map(listed);
        assert_eq!((&a["state"]["status"], &b["state"]["status"]), (&json!("ended"), &json!("ended")), "{a}");
        assert_ne!(a["gameState"], b["gameState"]);
        assert_ne!(a["state"]["playerIdentities"], b["state"]["playerIdentities"]);
    }
}

#[test]
fn an_unclaimed_invite_is_visible_to_its_creator_and_holder_only() {
    let host = Host::start();
    let client = host.client();
    let (session, invites) = client.create("psi");
    client.join(&invites[0]).ok();
    let listed = client.get("/api/challenges").text().to_owned();
    assert!(listed.contains(&invites[0]) && listed.contains("inv_hidden") && !listed.contains(&invites[1]), "{listed}");
    let held = client.get(&format!("/api/invites/{}", invites[1])).ok();
    assert_eq!(held["invites"], json!([invites[0], invites[1]]));
    assert_eq!(held["id"], json!(session));
}
