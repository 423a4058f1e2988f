//! Twin runs: two servers, equal to the last random byte, but for the numbers that only seat 1 holds. Whatever anybody
//! else asks, at any moment before the end, both give the same bytes.

use std::sync::Arc;

use arena_model::ChallengeType;
use arena_testkit::{Answer, Client, EventStream, Host, Lab, PsiWithSecret};
use proptest::prelude::*;
use serde_json::json;

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

/// One of the two.
struct Twin {
    _host: Host,
    client: Client,
    lab: Lab,
    session: String,
    invites: Vec<String>,
    joined: usize,
    guessed: [bool; 2],
    streams: Vec<EventStream>,
}

impl Twin {
    fn new(seed: u64, secret: &[u64]) -> Twin {
        let lab = Lab::new(seed);
        let psi: Arc<dyn ChallengeType> = Arc::new(PsiWithSecret::new(secret.to_vec()));
        let host = Host::start_in(lab.environment(), vec![psi], |_| {});
        let client = host.client();
        let (session, invites) = client.create("psi");
        let streams = ["", "?from=viewer", "?from=operator", &format!("?from={}", invites[0])]
            .iter()
            .flat_map(|viewer| {
                [session.clone(), format!("challenge_{session}")]
                    .map(|channel| client.stream(&format!("/api/chat/ws/{channel}{viewer}"), None))
            })
            .collect();
        Twin { _host: host, client, lab, session, invites, joined: 0, guessed: [false; 2], streams }
    }

    /// The numbers of a seat that both twins agree on.
    fn own_numbers(&self, seat: usize) -> Vec<u64> {
        let sync =
            self.client.get(&format!("/api/arena/sync?channel={}&from={}", self.session, self.invites[seat])).ok();
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
                (seat, self.client.join(&invites[seat]))
            }
            Step::Chat { seat, private, text } => {
                let mut body = json!({ "channel": session, "from": invites[*seat], "content": text });
                if *private {
                    body["to"] = json!(invites[1 - seat]);
                }
                (*seat, self.client.post("/api/chat/send", &body))
            }
            Step::Guess { seat, of_own, wrong } => {
                if self.joined < 2 || self.guessed[1 - seat] {
                    return None;
                }
                self.guessed[*seat] = true;
                let mut guess: Vec<String> = self.own_numbers(*seat).iter().take(*of_own).map(u64::to_string).collect();
                guess.extend(wrong.then(|| "999".to_owned()));
                (*seat, self.client.act(session, &invites[*seat], "guess", &guess.join(", ")))
            }
            Step::BadAction { seat, method, content } => {
                (*seat, self.client.act(session, &invites[*seat], method, content))
            }
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
        let mut calls = Vec::new();
        for viewer in viewers {
            for (endpoint, tool) in [("arena", "challenge_sync"), ("chat", "sync")] {
                let arguments = json!({ "channel": session, "from": viewer, "wait": 0 });
                let params = json!({ "name": tool, "arguments": arguments });
                let call = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params });
                calls.push((format!("/api/{endpoint}/mcp"), call));
            }
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
        let bare = |path: String, mut answer: Answer| {
            answer.headers.retain(|(name, _)| name != "date");
            let bytes = format!("{} {:?}\n{}", answer.status, answer.headers, answer.text()).into_bytes();
            (path, bytes)
        };
        let got = paths.into_iter().map(|path| (self.client.get(&path), path));
        let called = calls.into_iter().map(|(path, call)| (self.client.post(&path, &call), format!("{path} {call}")));
        got.chain(called).map(|(answer, question)| bare(question, answer)).collect()
    }

    /// All that the streams have told so far.
    fn streamed(&mut self) -> Vec<(String, String)> {
        let len = |route: &str| {
            let sync = self.client.get(&format!("/api/{route}/sync?channel={}", self.session)).ok();
            sync["count"].as_u64().expect("a number") as usize
        };
        let lens = [len("chat"), len("arena")];
        let streams = self.streams.iter_mut().enumerate();
        streams
            .flat_map(|(i, stream)| {
                (0..=lens[i % 2]).map(|_| stream.next_text().expect("an event")).collect::<Vec<_>>()
            })
            .collect()
    }
}

/// Each case starts two servers, so there are few of them unless more are asked for.
fn cases() -> ProptestConfig {
    let mut config = ProptestConfig::default();
    if std::env::var_os("PROPTEST_CASES").is_none() {
        config.cases = 24;
    }
    config
}

proptest! {
    #![proptest_config(cases())]

    #[test]
    fn twins_that_differ_in_a_secret_look_the_same_to_everybody_else(
        seed in any::<u64>(),
        steps in prop::collection::vec(step(), 1..14),
    ) {
        let mut twins = SECRETS.map(|secret| Twin::new(seed, &secret));
        for step in &steps {
            let [a, b] = twins.each_mut().map(|twin| twin.take(step));
            prop_assert_eq!(a, b, "the answer to {:?}", step);
            let [a, b] = twins.each_ref().map(Twin::seen);
            for ((path, a), (_, b)) in a.iter().zip(&b) {
                prop_assert_eq!(String::from_utf8_lossy(a), String::from_utf8_lossy(b), "{} after {:?}", path, step);
            }
        }
        let [a, b] = twins.each_mut().map(Twin::streamed);
        prop_assert_eq!(a, b);
    }
}

// The check above can fail: the twins do differ, for the one who may know, and for all once the game is over.
#[test]
fn twins_differ_for_the_one_concerned_and_after_the_end() {
    let mut twins = SECRETS.map(|secret| Twin::new(7, &secret));
    for step in [Step::Join, Step::Join] {
        for twin in &mut twins {
            twin.take(&step);
        }
    }
    let own = |twin: &Twin| {
        twin.client.get(&format!("/api/arena/sync?channel={}&from={}", twin.session, twin.invites[1])).text().to_owned()
    };
    let [a, b] = twins.each_ref().map(own);
    assert!(a.contains("1010") && !b.contains("1010") && b.contains("200020"), "{a}\n{b}");
    for twin in &twins {
        for seat in 0..2 {
            twin.client.act(&twin.session, &twin.invites[seat], "guess", "999").ok();
        }
    }
    let [a, b] = twins.each_ref().map(|twin| twin.client.get("/api/challenges").text().to_owned());
    assert!(a.contains("1010") && b.contains("200020"), "{a}\n{b}");
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
