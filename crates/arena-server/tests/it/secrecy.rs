//! Twin runs: two servers, equal to the last random byte, but for the numbers that only seat 1 holds. Whatever anybody
//! else asks, at any moment before the end, both give the same bytes. In both modes: where `from` is believed, and where
//! keys are asked for.

use std::sync::Arc;

use arena_model::ChallengeType;
use arena_testkit::{Answer, Client, EventStream, Host, Lab, Player, PsiWithSecret, known_secret};
use proptest::prelude::*;
use serde_json::{Value, json};

/// The secrets differ in their digits and in their length. Nobody else can hold these numbers: the range ends at 900.
const SECRETS: [[u64; 10]; 2] = [
    [1001, 1002, 1003, 1004, 1005, 1006, 1007, 1008, 1009, 1010],
    [200_011, 200_012, 200_013, 200_014, 200_015, 200_016, 200_017, 200_018, 200_019, 200_020],
];

#[derive(Debug, Clone)]
enum Step {
    Join,
    Chat {
        seat: usize,
        private: bool,
        text: String,
    },
    /// A guess of some of the guesser's own numbers, the first `of_own`, and perhaps one that nobody holds.
    Guess {
        seat: usize,
        of_own: usize,
        wrong: bool,
    },
    BadAction {
        seat: usize,
        method: &'static str,
        content: &'static str,
    },
    Announce {
        invite: usize,
    },
    OtherSession,
    Wait {
        ms: i64,
    },
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => Just(Step::Join),
        4 => (0usize..2, any::<bool>(), "[a-z ]{0,12}").prop_map(|(seat, private, text)| Step::Chat { seat, private, text }),
        2 => (0usize..2, 0usize..4, any::<bool>()).prop_map(|(seat, of_own, wrong)| Step::Guess { seat, of_own, wrong }),
        1 => (0usize..2, prop_oneof![Just(("guess", "nothing")), Just(("guess", "-5")), Just(("look", "1001"))])
            .prop_map(|(seat, (method, content))| Step::BadAction { seat, method, content }),
        1 => (0usize..2).prop_map(|invite| Step::Announce { invite }),
        1 => Just(Step::OtherSession),
        1 => (1i64..5000).prop_map(|ms| Step::Wait { ms }),
    ]
}

/// Whom the servers believe.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Mode {
    /// `from`.
    Standalone,
    /// Keys.
    Authenticated,
}

/// Something that anybody can ask.
#[derive(Debug, Clone)]
struct Question {
    path: String,
    /// Sent as a bearer's.
    key: Option<String>,
    /// Of a POST; nothing is a GET.
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

/// One of the two.
struct Twin {
    _host: Host,
    client: Client,
    lab: Lab,
    mode: Mode,
    session: String,
    invites: Vec<String>,
    joined: usize,
    /// Session keys of those who have joined, where there are any.
    keys: Vec<String>,
    guessed: [bool; 2],
    streams: Vec<EventStream>,
}

impl Twin {
    fn new(seed: u64, secret: &[u64], mode: Mode) -> Twin {
        let lab = Lab::new(seed);
        let psi: Arc<dyn ChallengeType> = Arc::new(PsiWithSecret::new(secret.to_vec()));
        let host = Host::start_in(lab.environment(), vec![psi], |settings| {
            settings.auth.enabled = mode == Mode::Authenticated;
            settings.auth.secret = Some(known_secret());
        });
        let client = host.client();
        let (session, invites) = client.create("psi");
        let mut twin = Twin {
            _host: host,
            client,
            lab,
            mode,
            session,
            invites,
            joined: 0,
            keys: Vec::new(),
            guessed: [false; 2],
            streams: Vec::new(),
        };
        let first = format!("?from={}", twin.invites[0]);
        for viewer in ["", "?from=viewer", "?from=operator", &first] {
            twin.watch(viewer);
        }
        twin
    }

    /// Opens the streams of both channels.
    fn watch(&mut self, viewer: &str) {
        let session = &self.session;
        for channel in [session.clone(), format!("challenge_{session}")] {
            self.streams.push(self.client.stream(&format!("/api/chat/ws/{channel}{viewer}"), None));
        }
    }

    /// A player asks.
    fn get_as(&self, seat: usize, path: &str) -> Answer {
        match self.keys.get(seat) {
            Some(key) => self.client.get_with(key, path),
            None => self.client.get(&format!("{path}&from={}", self.invites[seat])),
        }
    }

    /// A player writes.
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

    fn join(&mut self, seat: usize) -> Answer {
        if self.mode == Mode::Standalone {
            return self.client.join(&self.invites[seat]);
        }
        let seed = if seat == 0 { 10 } else { 11 };
        let answer =
            self.client.post("/api/arena/join", &Player::new(seed).signed_join(&self.invites[seat], self.lab.now()));
        self.keys.push(answer.ok()["sessionKey"].as_str().expect("a key").to_owned());
        if seat == 0 {
            self.watch(&format!("?key={}", self.keys[0]));
        }
        answer
    }

    /// The numbers of a seat that both twins agree on.
    fn own_numbers(&self, seat: usize) -> Vec<u64> {
        let sync = self.get_as(seat, &format!("/api/arena/sync?channel={}", self.session)).ok();
        let messages = sync["messages"].as_array().expect("a list").clone();
        let mut texts = messages.iter().filter_map(|message| message["content"].as_str());
        let set = texts.find(|text| text.starts_with("Your private set")).expect("a player knows its set").to_owned();
        let numbers = set.split(|char: char| !char.is_ascii_digit()).filter_map(|number| number.parse().ok());
        numbers.filter(|number| *number <= 900).collect()
    }

    /// Takes a step, unless it would end the game. What the one who took it is told counts if it isn't seat 1.
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
                let mut body = json!({ "channel": session, "content": text });
                if *private {
                    body["to"] = json!(invites[1 - seat]);
                }
                (*seat, self.post_as(*seat, "/api/chat/send", body))
            }
            Step::Guess { seat, of_own, wrong } => {
                if self.joined < 2 || self.guessed[1 - seat] {
                    return None;
                }
                self.guessed[*seat] = true;
                let mut guess: Vec<String> = self.own_numbers(*seat).iter().take(*of_own).map(u64::to_string).collect();
                guess.extend(wrong.then(|| "999".to_owned()));
                (*seat, self.act_as(*seat, "guess", &guess.join(", ")))
            }
            Step::BadAction { seat, method, content } => (*seat, self.act_as(*seat, method, content)),
            Step::Announce { invite } => {
                (0, self.client.post("/api/invites", &json!({ "inviteId": invites[*invite] })))
            }
            Step::OtherSession => (0, self.client.post("/api/challenges/psi", &json!({}))),
            Step::Wait { ms } => {
                self.lab.advance_ms(*ms);
                return None;
            }
        };
        (seat != 1).then_some(answer.body)
    }

    /// Everything that anybody but seat 1 can ask, and what is answered.
    fn seen(&self) -> Vec<(String, Vec<u8>)> {
        let Twin { session, invites, .. } = self;
        let stranger = "inv_00000000-0000-7000-8000-000000000000";
        let mut viewers = vec!["viewer", "operator", "ada", stranger, &invites[0]];
        if self.joined < 2 {
            viewers.push(&invites[1]);
        }
        let mut paths: Vec<String> = [
            "/",
            "/skill.md",
            "/skill.json",
            "/api/metadata",
            "/api/metadata/psi",
            "/api/challenges",
            "/api/challenges?status=active&limit=3",
            "/api/challenges/psi?offset=1",
            "/api/v1/challenges",
            "/api/chat/sync?channel=invites",
            "/ready",
        ]
        .map(str::to_owned)
        .to_vec();
        for invite in invites.iter().map(String::as_str).chain([stranger]) {
            paths.push(format!("/api/invites/{invite}"));
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
        }
        asked.extend(paths.into_iter().map(Question::get));
        asked.extend(self.asked_with_keys());
        let answered = |question: Question| {
            let mut answer = question.ask(&self.client);
            answer.headers.retain(|(name, _)| name != "date");
            let bytes = format!("{} {:?}\n{}", answer.status, answer.headers, answer.text()).into_bytes();
            (format!("{question:?}"), bytes)
        };
        asked.into_iter().map(answered).collect()
    }

    /// Both channels, read over MCP by whoever `who` says.
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

    /// What is asked with keys: the other player's, where there is one, and such as open nothing.
    fn asked_with_keys(&self) -> Vec<Question> {
        if self.mode == Mode::Standalone {
            return Vec::new();
        }
        let Twin { session, invites, .. } = self;
        let mut keys = vec!["junk".to_owned(), "adm_0123456789abcdef".to_owned(), invites[0].clone()];
        keys.extend(["s_1", "s_0"].map(|seat| format!("{seat}.{}", "0".repeat(64))));
        if let Some(key) = self.keys.first() {
            keys.extend([key.clone(), key.replacen("s_0", "s_1", 1)]);
        }
        let mut asked = Vec::new();
        for key in keys {
            for channel in [session.clone(), format!("challenge_{session}")] {
                for route in ["arena", "chat"] {
                    let path = format!("/api/{route}/sync?channel={channel}");
                    asked.push(Question::get(format!("{path}&key={key}")));
                    asked.push(Question::get(path).with(&key));
                }
                if !self.keys.contains(&key) {
                    asked.push(Question::get(format!("/api/chat/ws/{channel}")).with(&key));
                }
            }
            asked.extend(["/api/challenges", "/"].map(|path| Question::get(path.to_owned()).with(&key)));
            asked.extend(self.synced_over_mcp(&json!({ "key": key })));
            asked.extend(self.synced_over_mcp(&json!({})).into_iter().map(|call| call.with(&key)));
        }
        asked
    }

    /// All that the streams have told so far.
    fn streamed(&mut self) -> Vec<(String, String)> {
        let len = |route: &str| {
            let sync = self.client.get(&format!("/api/{route}/sync?channel={}", self.session)).ok();
            sync["count"].as_u64().expect("a number") as usize
        };
        let lens = [len("chat"), len("arena")];
        self.streams.iter_mut().enumerate().flat_map(|(i, stream)| events(stream, lens[i % 2])).collect()
    }
}

/// The events of a stream, until it has told of `len` messages.
fn events(stream: &mut EventStream, len: usize) -> Vec<(String, String)> {
    let (mut events, mut told) = (Vec::new(), 0);
    while events.is_empty() || told < len {
        let (id, data) = stream.next_text().expect("an event");
        let event: Value = serde_json::from_str(&data).expect("events are JSON");
        told += event["messages"].as_array().map_or(1, Vec::len);
        events.push((id, data));
    }
    events
}

/// Each case starts two servers, so there are few of them unless more are asked for.
fn cases() -> ProptestConfig {
    let mut config = ProptestConfig::default();
    if std::env::var_os("PROPTEST_CASES").is_none() {
        config.cases = 24;
    }
    config
}

/// Takes the steps with both twins, and compares all that anybody but seat 1 can see after each.
fn look_the_same(seed: u64, steps: &[Step], mode: Mode) -> Result<(), TestCaseError> {
    let mut twins = SECRETS.map(|secret| Twin::new(seed, &secret, mode));
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
    fn twins_that_differ_in_a_secret_look_the_same_to_everybody_else(
        seed in any::<u64>(),
        steps in prop::collection::vec(step(), 1..14),
    ) {
        look_the_same(seed, &steps, Mode::Standalone)?;
    }

    #[test]
    fn twins_look_the_same_to_everybody_without_the_key(
        seed in any::<u64>(),
        steps in prop::collection::vec(step(), 1..14),
    ) {
        look_the_same(seed, &steps, Mode::Authenticated)?;
    }
}

// The check above can fail: the twins do differ, for the one who may know, and for all once the game is over.
#[test]
fn twins_differ_for_the_one_concerned_and_after_the_end() {
    for mode in [Mode::Standalone, Mode::Authenticated] {
        let mut twins = SECRETS.map(|secret| Twin::new(7, &secret, mode));
        for step in [Step::Join, Step::Join] {
            for twin in &mut twins {
                twin.take(&step);
            }
        }
        let own = |twin: &Twin| twin.get_as(1, &format!("/api/arena/sync?channel={}", twin.session)).text().to_owned();
        let [a, b] = twins.each_ref().map(own);
        assert!(a.contains("1010") && !b.contains("1010") && b.contains("200020"), "{a}\n{b}");
        for twin in &twins {
            for seat in 0..2 {
                twin.act_as(seat, "guess", "999").ok();
            }
        }
        let [a, b] = twins.each_ref().map(|twin| twin.client.get("/api/challenges").text().to_owned());
        assert!(a.contains("1010") && b.contains("200020"), "{a}\n{b}");
    }
}

#[test]
fn an_unclaimed_invite_is_told_to_its_creator_and_holder_only() {
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
