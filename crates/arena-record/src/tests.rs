//! Records of whole sessions between bots: writing, reading, re-execution, and the discovery of every change.

use std::collections::BTreeMap;
use std::sync::Arc;

use arena_house::{Bot, Heard, Step, random_bot};
use arena_model::{
    After, ChallengeType, Channel, ChatMessage, ContentHash, InactivityLimits, InviteCode, Party, Phase, Seat, Seed,
    Session, SessionFacts, SessionId, SessionPolicy, Status, Timestamp, Transition, UsageReport, Viewer, act, announce,
    chat, hex, join, open, redact, report_usage, wake,
};
use arena_wire::Message;
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use super::*;

mod during_play;
mod mutations;
mod season;

/// A session with all its messages in commit order, as a store has them.
struct Played {
    challenge: Arc<dyn ChallengeType>,
    session: Session,
    messages: Vec<ChatMessage>,
    now: Timestamp,
    inactivity: InactivityLimits,
    /// The messages that the player at each seat has received, on the operator's channel and in the chat.
    heard: Vec<[Vec<Message>; 2]>,
    delivered: usize,
}

impl Played {
    fn open(id: &str, options: &Value, seed: u64) -> Played {
        let options: Map<String, Value> = options.as_object().cloned().unwrap_or_default();
        let challenge = arena_games::challenge(id, &options).expect("it is built in").expect("the options are valid");
        let facts = SessionFacts::numbered(&*challenge, Seed::from_number(seed), 0).expect("there are no overrides");
        let facts = SessionFacts { created_at: Timestamp(1_000), ..facts };
        let session = open(facts, &*challenge, InactivityLimits::ENDLESS).expect("the rules don't fail");
        let inactivity = InactivityLimits::ENDLESS;
        let heard = session.facts.invites.iter().map(|_| [Vec::new(), Vec::new()]).collect();
        Played { challenge, session, messages: Vec::new(), now: Timestamp(1_000), inactivity, heard, delivered: 0 }
    }

    /// Plays a whole session between random bots, with chat, usage reports and an offered invite.
    fn whole(id: &str, options: &Value, seed: u64) -> Played {
        let mut played = Played::open(id, options, seed);
        played.announce(0);
        let seats = played.session.facts.invites.len();
        for seat in 0..seats {
            played.join((seat == 0).then_some("ada"));
        }
        played.say(0, None, "hello");
        played.say(1, Some(0), "a private word");
        played.report(0);
        let bot = |seat: usize| random_bot(&*played.challenge, seed * 31 + seat as u64).expect("a built-in challenge");
        let mut bots: Vec<Box<dyn Bot>> = (0..seats).map(bot).collect();
        played.play(&mut bots);
        played.say(0, None, "good game");
        // The answer is a message that no transition causes.
        let late = act(&played.session, &*played.challenge, &played.policy(), played.invite(0), None, "", played.now);
        let late = late.expect("an action after the end is answered");
        played.take(late);
        played
    }

    fn policy(&self) -> SessionPolicy<'static> {
        SessionPolicy { inactivity: self.inactivity, ..SessionPolicy::UNBOUNDED }
    }

    fn invite(&self, seat: usize) -> InviteCode {
        self.session.facts.invites[seat]
    }

    fn take(&mut self, transition: Transition) {
        if let After::Changed(after) = transition.after {
            self.session = *after;
        }
        for draft in transition.drafts {
            if draft.channel == Channel::Invites {
                continue;
            }
            let before = self.messages.iter().filter(|message| message.channel == draft.channel).count() as u64;
            let index = if draft.channel.is_inputs() { self.session.version } else { before + 1 };
            self.messages.push(draft.at(index, self.now));
        }
    }

    fn announce(&mut self, seat: usize) {
        let offered = announce(&self.session, self.invite(seat)).expect("the invite is free");
        self.take(offered);
    }

    fn join(&mut self, user: Option<&str>) {
        let invite = self.invite(self.session.seats.len());
        let user = user.map(|user| user.parse().expect("a user id"));
        let joined = join(&self.session, &*self.challenge, &self.policy(), invite, user, self.now);
        self.take(joined.expect("the seat is free"));
    }

    fn say(&mut self, seat: usize, to: Option<usize>, content: &str) {
        let to = to.map(|to| Party::Player(self.invite(to)));
        let said = chat(&self.session, false, Party::Player(self.invite(seat)), to, content).expect("players may chat");
        self.take(said);
    }

    fn report(&mut self, seat: usize) {
        let report = UsageReport {
            at: self.now,
            model: Some("opus".parse().expect("short")),
            input_tokens: 7,
            output_tokens: 2,
            cached_tokens: 1,
            cost_usd: Some(0.1),
            ms: None,
            estimated: false,
        };
        let reported = report_usage(&self.session, self.invite(seat), report).expect("the game runs");
        self.take(reported);
    }

    fn wake(&mut self, at: Timestamp) {
        self.now = self.now.max(at);
        let last = self.messages.iter().filter(|message| !message.channel.is_inputs()).map(|message| message.at).max();
        let last = last.unwrap_or(self.session.facts.created_at);
        let woken = wake(&self.session, &*self.challenge, &self.policy(), last, self.now).expect("a readable state");
        self.take(woken);
    }

    fn act(&mut self, seat: usize, method: &str, content: &str) -> Result<(), String> {
        let (from, policy) = (self.invite(seat), self.policy());
        let acted = act(&self.session, &*self.challenge, &policy, from, Some(method), content, self.now);
        self.take(acted.map_err(|error| error.to_string())?);
        Ok(())
    }

    /// Delivers new messages to all players, as each may see them.
    fn deliver(&mut self) {
        for message in &self.messages[self.delivered..] {
            let channel = match message.channel {
                Channel::Operator(_) => 0,
                Channel::Chat(_) => 1,
                Channel::Invites | Channel::Inputs(_) => continue,
            };
            for (invite, heard) in self.session.facts.invites.iter().zip(&mut self.heard) {
                let view = redact(message, Viewer::Player(*invite), false, false);
                let view = serde_json::to_value(view).expect("JSON");
                heard[channel].push(serde_json::from_value(view).expect("a message"));
            }
        }
        self.delivered = self.messages.len();
    }

    /// Plays to the end. If no bot takes a step, the next deadline passes.
    fn play(&mut self, bots: &mut [Box<dyn Bot>]) {
        for _ in 0..20_000 {
            if self.session.status() == Status::Ended {
                return;
            }
            self.now = self.now.plus_ms(1);
            if !self.round(bots, false) && !self.round(bots, true) {
                self.wake(self.session.deadline.expect("without a deadline, a player has to act"));
            }
        }
        panic!("the game doesn't end");
    }

    fn round(&mut self, bots: &mut [Box<dyn Bot>], is_late: bool) -> bool {
        let mut has_stepped = false;
        for (seat, bot) in bots.iter_mut().enumerate() {
            for _ in 0..20 {
                if self.session.status() == Status::Ended {
                    return true;
                }
                self.deliver();
                let me = self.invite(seat).to_string();
                let [operator, chat] = &self.heard[seat];
                let heard = Heard { me: &me, operator, chat, is_late };
                let Some(step) = bot.next(&heard) else { break };
                let done = match &step {
                    Step::Act { method, content } => self.act(seat, method, content),
                    Step::Say { content, .. } => {
                        self.say(seat, None, content);
                        Ok(())
                    }
                };
                if done.is_ok() {
                    has_stepped = true;
                    break;
                }
                bot.refused(&step);
            }
        }
        has_stepped
    }

    fn record_for(&self, viewer: RecordViewer) -> String {
        self.record_with(viewer, &BTreeMap::new()).expect("a record")
    }

    fn record_with(
        &self,
        viewer: RecordViewer,
        commitments: &BTreeMap<(Channel, u64), Commitment>,
    ) -> Result<String, RecordError> {
        let input = RecordInput {
            session: &self.session,
            messages: &self.messages,
            commitments,
            prompt_sha256: hex::encode(&Sha256::digest(&self.challenge.metadata().prompt)),
            rules_version: self.challenge.rules_version(),
            release: "0.1.0",
            record_key: Some(&key().public_key()),
            fork: None,
        };
        let record = write_record(&input, &self.salts(), viewer, Some(&key()))?;
        if self.session.status() == Status::Ended {
            assert_eq!(record_hash(&input, &self.salts()), last_hash(&record));
        }
        Ok(record)
    }

    fn salts(&self) -> SessionSalts {
        SaltSecret::from_random([5; 32]).of_session(self.session.facts.id)
    }
}

fn key() -> RecordKey {
    RecordKey::from_random([9; 32])
}

/// Options of games that are short enough for tests.
fn short(challenge: &str) -> Value {
    match challenge {
        "chess" => json!({ "n_epochs": 40 }),
        "snake" => json!({ "n_epochs": 60 }),
        "food-catcher" | "cherry-picker" => json!({
            "grid_width": 20, "grid_height": 20, "actor_speed": 4, "take_food_speed": 25, "spawn_actor_cost": 30,
            "make_base_cost": 25, "n_epochs": 60
        }),
        _ => json!({}),
    }
}

fn read_text(record: &str) -> Result<Parsed, ReadError> {
    read(record.as_bytes(), ReadLimits::default())
}

/// Returns the contradiction that reading or re-execution finds.
fn found(record: &str, challenge: &dyn ChallengeType) -> Option<Lie> {
    match read_text(record) {
        Ok(parsed) => reexecute(&parsed, challenge).err(),
        Err(ReadError::Lie(lie)) => Some(lie),
        Err(error) => Some(Lie { line: 0, event: None, what: error.to_string() }),
    }
}

/// Returns the record with changed lines, and with hashes and a seal that fit them: the work of a forger who has the
/// record key. `change` gets each line of the chain and its number, from 1.
fn forged(record: &str, change: &dyn Fn(usize, String) -> Option<String>) -> String {
    let (mut text, mut last) = (String::new(), Hash([0; 32]));
    for (number, line) in (1..).zip(record.lines()) {
        let is_chained = ["{\"arenaRecord\"", "{\"event\"", "{\"end\""].iter().any(|start| line.starts_with(start));
        let line = if is_chained {
            let Some(mut line) = change(number, line.to_owned()) else { continue };
            if let Some(at) = line.find("\"previous\":\"") {
                line.replace_range(at + 12..at + 76, &last.to_string());
            }
            last = Hash::of(line.as_bytes());
            line
        } else if line.starts_with("{\"seal\"") {
            let mut seal: Seal = serde_json::from_str(line).expect("a seal");
            seal.seal = last;
            let text = format!("arena record seal\n{}\n{last}\n", seal.session);
            seal.signature = SealSignature(key().sign(text.as_bytes()));
            serde_json::to_string(&seal).expect("JSON")
        } else {
            line.to_owned()
        };
        text.push_str(&line);
        text.push('\n');
    }
    text
}

#[test]
fn every_challenge_has_records_that_can_be_played_again() {
    for id in arena_games::challenges() {
        let played = Played::whole(id, &short(id), 3);
        let record = played.record_for(RecordViewer::Everything);
        let parsed = read_text(&record).unwrap_or_else(|error| panic!("{id}: {error}"));
        assert_eq!(parsed.header.inputs, InputsStored::Stored, "{id}");
        assert_eq!(parsed.hash, last_hash(&record).expect("a record"), "{id}");
        let again = reexecute(&parsed, &*played.challenge).unwrap_or_else(|lie| panic!("{id}: {lie}"));
        assert_eq!((again.withheld, &again.unchecked), (0, &None), "{id}");
        assert_eq!(again.transitions + 1, played.session.version, "{id}");
        let posted = played.messages.iter().filter(|message| !message.channel.is_inputs()).count() as u64;
        assert_eq!(again.messages, posted, "{id}");
        assert_eq!(again.session.state, played.session.state, "{id}");
        assert_eq!(again.session.seats, played.session.seats, "{id}");
        assert_eq!(again.session.phase, played.session.phase, "{id}");
        assert_eq!(again.session.usage, played.session.usage, "{id}");

        // A stranger's record has the same chain, and its readable messages suffice to play the game again.
        let public = played.record_for(RecordViewer::Viewer(Viewer::Nobody, false));
        let parsed = read_text(&public).unwrap_or_else(|error| panic!("{id}: {error}"));
        let again = reexecute(&parsed, &*played.challenge).unwrap_or_else(|lie| panic!("{id}: {lie}"));
        assert_eq!(parsed.hash, last_hash(&record).expect("a record"), "{id}");
        // The private chat message and the usage report.
        assert_eq!((again.withheld, &again.unchecked), (2, &None), "{id}");
        assert!(!public.contains("a private word") && !public.contains("\"open\":\"usage/"), "{id}: {public}");
        assert!(record.contains("a private word") && public.contains("\"user/0\""), "{id}");
    }
}

#[test]
fn a_record_has_this_form() {
    let mut played = Played::open("ultimatum", &json!({}), 3);
    played.join(Some("ada"));
    played.say(0, None, "hello");
    let record = played.record_for(RecordViewer::Everything);
    // The parts that contain hashes are checked by independent code below.
    let lines: Vec<Value> = record.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let kinds: Vec<String> = lines.iter().filter_map(|line| line["kind"].as_str().map(str::to_owned)).collect();
    assert_eq!(kinds, ["join", "chat"]);
    let start =
        r#"{"arenaRecord":1,"session":"00000000-0000-7000-8000-000000000000","challenge":"ultimatum","rules":{"#;
    assert!(record.starts_with(start), "{record}");
    let text: Vec<&str> = record.lines().collect();
    for (number, pair) in text.windows(2).enumerate().filter(|(_, pair)| pair[1].starts_with("{\"event\"")) {
        let event: Value = serde_json::from_str(pair[1]).expect("JSON");
        assert_eq!(event["previous"], hex::encode(&Sha256::digest(pair[0])), "event {number}");
    }
    let opening = lines.iter().find(|line| line["open"] == "chat/1").expect("the chat message is opened");
    let salt: [u8; 32] = hex::decode(opening["salt"].as_str().expect("a salt")).expect("64 digits");
    let commitment = hex::encode(&Sha256::digest([&salt[..], b"hello"].concat()));
    let said = lines.iter().find(|line| line["kind"] == "chat").expect("a chat event");
    assert_eq!(said["messages"][0]["content"], commitment);
    assert_eq!(said["messages"][0]["from"], 0);
    assert_eq!(said["version"], Value::Null);
}

// Computed by Python: hmac.new(hmac.new(bytes([5]) * 32, id, 'sha256').digest(), b'operator/7', 'sha256').
#[test]
fn salts_are_those_of_an_independent_program() {
    let id: SessionId = "00000000-0000-7000-8000-000000000000".parse().expect("a UUID");
    let salts = SaltSecret::from_random([5; 32]).of_session(id);
    assert_eq!(
        hex::encode(&salts.salt("operator/7")),
        "58bf1993dd511e90e46f07e67e4529e52ee0132cf814926592baeccca1493e07"
    );
    assert_eq!(
        salts.commit("operator/7", "héllo").to_string(),
        "75efccca403c87a5594b1857240eb998e80e618931fcd25de3b97502299bd487"
    );
    assert_eq!(format!("{salts:?} {:?}", SaltSecret::from_random([5; 32])), "SessionSalts(…) SaltSecret(…)");
    assert_ne!(salts.salt("operator/7"), salts.salt("chat/7"));
}

#[test]
fn every_changed_byte_is_found() {
    let played = Played::whole("psi", &json!({}), 4);
    let record = played.record_for(RecordViewer::Everything);
    assert_eq!(found(&record, &*played.challenge), None);
    let bytes = record.as_bytes();
    for at in 0..bytes.len() {
        let mut changed = bytes.to_vec();
        changed[at] ^= 1 << (at % 8);
        assert!(read(&changed[..], ReadLimits::default()).is_err(), "byte {at} of {record}");
    }
}

#[test]
fn cut_reordered_doubled_and_mixed_lines_are_found() {
    let played = Played::whole("psi", &json!({}), 5);
    let record = played.record_for(RecordViewer::Everything);
    let lines: Vec<&str> = record.split_inclusive('\n').collect();
    for at in 0..lines.len() {
        let is_opening = lines[at].starts_with("{\"open\"");
        let without = [&lines[..at], &lines[at + 1..]].concat().concat();
        // An opening may be withheld; every other line is needed.
        assert_eq!(read_text(&without).is_ok(), is_opening, "without line {}", at + 1);
        assert!(read_text(&lines[..at].concat()).is_err(), "cut before line {}", at + 1);
        let twice = [&lines[..=at], &lines[at..]].concat().concat();
        assert!(read_text(&twice).is_err(), "line {} is doubled", at + 1);
        if at > 0 {
            let mut swapped = lines.clone();
            swapped.swap(at - 1, at);
            assert!(read_text(&swapped.concat()).is_err(), "lines {at} and {} are swapped", at + 1);
        }
    }
    let other = Played::whole("psi", &json!({}), 6).record_for(RecordViewer::Everything);
    let others: Vec<&str> = other.split_inclusive('\n').collect();
    for at in 1..lines.len().min(others.len()) {
        let mixed = [&lines[..at], &others[at..]].concat().concat();
        assert!(read_text(&mixed).is_err(), "the second game begins at line {}", at + 1);
    }
}

fn is_private(message: &RecordedMessage) -> bool {
    message.from == RecordedParty::Operator && message.to.is_some()
}

#[test]
fn a_forger_with_the_key_is_found_by_the_rules() {
    let played = Played::whole("psi", &json!({}), 7);
    let record = played.record_for(RecordViewer::Everything);
    assert_eq!(forged(&record, &|_, line| Some(line)), record);
    let parsed = read_text(&record).expect("a record");
    let end_line = parsed.events.len() + 2;
    let with_end = |change: &dyn Fn(&mut End)| {
        let change = |number: usize, line: String| {
            if number != end_line {
                return Some(line);
            }
            let mut end: End = serde_json::from_str(&line).expect("the end");
            change(&mut end);
            serde_json::to_string(&end).ok()
        };
        (forged(&record, &change), end_line)
    };
    let with_event = |is_it: &dyn Fn(&Event) -> bool, change: &dyn Fn(&mut Event)| {
        let event = parsed.events.iter().position(is_it).expect("there is such an event");
        let change = |number: usize, line: String| {
            if number != event + 2 {
                return Some(line);
            }
            let mut event: Event = serde_json::from_str(&line).expect("an event");
            change(&mut event);
            serde_json::to_string(&event).ok()
        };
        (forged(&record, &change), event + 2)
    };
    let with_header = |change: &dyn Fn(&mut Header)| {
        let change = |number: usize, line: String| {
            if number != 1 {
                return Some(line);
            }
            let mut header: Header = serde_json::from_str(&line).expect("a header");
            change(&mut header);
            serde_json::to_string(&header).ok()
        };
        (forged(&record, &change), 1)
    };
    let is_action = |event: &Event| event.kind == EventKind::Action;
    let is_offer = |event: &Event| event.kind == EventKind::Announce;
    let is_deal = |event: &Event| event.messages.iter().any(is_private);
    let other = |seat: Seat| Seat(1 - seat.0);
    let rows = [
        ("}], but by the rules [{\"security\":", with_end(&|end| end.scores[0].utility += 1.0)),
        ("state", with_end(&|end| end.state = Hash([0; 32]))),
        ("category", with_end(&|end| end.category = arena_model::GameCategory::Benchmark)),
        ("causes", with_end(&|end| end.causes[0] = Cause::Resigned)),
        ("usage", with_end(&|end| end.usage[1] = end.usage[0].clone())),
        ("attributions", with_end(&|end| end.attributions.push(AttributionRow(Seat(0), Seat(1), "x".to_owned())))),
        ("time", with_end(&|end| end.at = end.at.plus_ms(1))),
        ("kind", with_end(&|end| end.end = EndKind::Abandoned)),
        ("seed", with_end(&|end| end.seed = Some(Hash([0; 32])))),
        ("action", with_event(&is_action, &|event| event.seat = event.seat.map(other))),
        ("messages", with_event(&is_action, &|event| event.kind = EventKind::Wake)),
        ("invite", with_event(&is_offer, &|event| event.invite = None)),
        ("fork", with_header(&|header| header.fork = Some(ForkOf { of: header.session, at: 1 << 40, reseeded: true }))),
        (
            "recipient",
            with_event(&is_deal, &|event| {
                let dealt = event.messages.iter_mut().find(|message| is_private(message)).expect("a private message");
                dealt.to = None;
            }),
        ),
    ];
    for (word, (record, line)) in rows {
        let lie = found(&record, &*played.challenge).unwrap_or_else(|| panic!("{word}: nothing is found"));
        assert!(lie.line == line && lie.what.contains(word), "{word}: {lie}, but line {line} is forged");
    }
    // Without the last action, the game wouldn't have ended.
    let is_action = |(_, line): &(usize, &str)| line.contains("\"kind\":\"action\"");
    let last = (1..).zip(record.lines()).filter(is_action).last().expect("an action").0;
    let dropped = forged(&record, &|at, line| (at != last).then_some(line));
    assert!(found(&dropped, &*played.challenge).is_some());
}

#[test]
fn abandoned_games_are_played_again() {
    let hour = 3_600_000;
    let mut idle = Played::open("psi", &json!({}), 8);
    idle.inactivity.active_ms = Some(90_500);
    idle.join(None);
    idle.join(None);
    idle.wake(idle.now.plus_ms(1_000));
    idle.say(0, None, "is somebody there?");
    idle.wake(idle.now.plus_ms(hour));
    assert!(matches!(idle.session.phase, Phase::Ended { .. }));
    let record = idle.record_for(RecordViewer::Everything);
    let parsed = read_text(&record).expect("a record");
    let kinds: Vec<EventKind> = parsed.events.iter().map(|event| event.kind).collect();
    assert_eq!(kinds[2..], [EventKind::Wake, EventKind::Chat, EventKind::Abandon]);
    assert_eq!(parsed.end.as_ref().map(|end| end.causes.clone()), Some(vec![Cause::Abandoned; 2]));
    let again = reexecute(&parsed, &*idle.challenge).expect("no lie");
    assert_eq!(again.session.phase, idle.session.phase);

    // The rules of a game act at its deadlines until they have written too much.
    let mut unattended = Played::open("snake", &json!({}), 8);
    unattended.inactivity.unattended_bytes = Some(0);
    while unattended.session.status() == Status::Open {
        unattended.join(None);
    }
    unattended.wake(unattended.session.deadline.expect("games have deadlines"));
    assert_eq!(unattended.session.status(), Status::Ended);
    let record = unattended.record_for(RecordViewer::Everything);
    assert_eq!(found(&record, &*unattended.challenge), None);
}

#[test]
fn impossible_reports_and_limits_are_found() {
    let idle = |limit_ms: i64, tokens: u64| {
        let mut played = Played::open("psi", &json!({}), 8);
        played.inactivity.active_ms = Some(limit_ms);
        played.join(None);
        played.join(None);
        let report = UsageReport {
            at: played.now,
            model: None,
            input_tokens: tokens,
            output_tokens: 0,
            cached_tokens: 0,
            cost_usd: None,
            ms: None,
            estimated: false,
        };
        let reported = report_usage(&played.session, played.invite(0), report).expect("the game runs");
        played.take(reported);
        played.wake(played.now.plus_ms(3_600_000));
        assert_eq!(played.session.status(), Status::Ended);
        let record = played.record_for(RecordViewer::Everything);
        found(&record, &*played.challenge).map(|lie| lie.what)
    };
    assert_eq!(idle(90_500, 7), None);
    let what = idle(90_500, u64::MAX).expect("no arena accepts this report");
    assert!(what.contains("inputTokens must be a whole number"), "{what}");
    let what = idle(-1, 7).expect("no time is negative");
    assert!(what.contains("an event of kind wake"), "{what}");
}

#[test]
fn the_header_has_the_facts_of_the_creation() {
    let mut played = Played::open("psi", &json!({}), 9);
    let own = read_text(&played.record_for(RecordViewer::Everything)).expect("a record").header;
    let prompt = Hash([7; 32]);
    let content = json!({ "release": "0.0.9", "rules": "7", "prompt": prompt }).to_string();
    let channel = Channel::Inputs(played.session.facts.id);
    let (from, method) = (Party::Operator, Some("created".to_owned()));
    let at = played.session.facts.created_at;
    let created = ChatMessage { channel, index: 1, from, to: None, content, method, at, hidden: None };
    played.messages.insert(0, created);
    played.join(None);
    let parsed = read_text(&played.record_for(RecordViewer::Everything)).expect("a record");
    let expected = RecordedRules::Builtin { version: 7, prompt };
    assert_eq!((&*parsed.header.release, &parsed.header.rules), ("0.0.9", &expected));
    assert_eq!((&*own.release, parsed.header.inputs, parsed.events.len()), ("0.1.0", InputsStored::Stored, 1));
    assert_ne!(own.rules, expected);
}

#[test]
fn other_instructions_are_said_and_no_lie() {
    let played = Played::whole("psi", &json!({}), 19);
    let record = played.record_for(RecordViewer::Everything);
    let other = forged(&record, &|number, line| {
        let mut header: Header = match number {
            1 => serde_json::from_str(&line).expect("a header"),
            _ => return Some(line),
        };
        header.rules = RecordedRules::Builtin { version: played.challenge.rules_version(), prompt: Hash([7; 32]) };
        serde_json::to_string(&header).ok()
    });
    for (record, is_same) in [(record, true), (other, false)] {
        let again = reexecute(&read_text(&record).expect("a record"), &*played.challenge).expect("no lie");
        assert_eq!((again.unchecked, again.has_same_prompt), (None, is_same));
    }
}

#[test]
fn a_hidden_message_and_a_withheld_action_leave_the_chain_whole() {
    let mut played = Played::whole("psi", &json!({}), 9);
    let before = played.record_for(RecordViewer::Everything);
    let salts = played.salts();
    let action = played.messages.iter().position(|message| message.method.is_some() && !message.channel.is_inputs());
    let message = &mut played.messages[action.expect("an action")];
    let name = format!("operator/{}", message.index);
    let place = (message.channel, message.index);
    let commitment = salts.commit(&name, &message.content);
    let secret = SaltSecret::from_random([5; 32]);
    assert_eq!(secret.commit(message.channel, message.index, &message.content), Some(commitment));
    assert_eq!(secret.commit(Channel::Invites, 1, "x"), None);
    message.hidden = Some(ContentHash::of(&message.content));
    message.content.clear();
    // Without its commitment, the content can't be verified, and the chain is another one.
    let missing = played.record_with(RecordViewer::Everything, &BTreeMap::new()).expect("a record");
    assert!(missing.contains("\"content\":null") && last_hash(&missing) != last_hash(&before));
    assert_eq!(read_text(&missing).expect("a whole chain").unverifiable(), 1);
    let first = before.lines().find(|line| line.starts_with(&format!("{{\"open\":\"{name}\""))).expect("its opening");
    let opened = missing.replacen("{\"open\"", &format!("{first}\n{{\"open\""), 1);
    let lie = found(&opened, &*played.challenge).expect("the opening has no commitment");
    assert!(lie.what.contains(&name), "{lie}");
    let after = played.record_with(RecordViewer::Everything, &BTreeMap::from([(place, commitment)])).expect("a record");
    assert_eq!(last_hash(&after), last_hash(&before));
    assert_eq!(after, strip(&before, &|open| open != name));
    let parsed = read_text(&after).expect("the chain is whole");
    let again = reexecute(&parsed, &*played.challenge).expect("no lie");
    let event = parsed.events.iter().find(|event| event.kind == EventKind::Action).expect("an action").event;
    assert_eq!(again.unchecked, Some(Unchecked::Withheld { event }));
    // A game can be continued from any event before it.
    assert!(reexecute_to(&parsed, &*played.challenge, event - 1).is_ok());
    assert!(reexecute_to(&parsed, &*played.challenge, event).is_err());
}

#[test]
fn a_game_can_be_continued_from_each_event() {
    let played = Played::whole("ultimatum", &json!({}), 10);
    let parsed = read_text(&played.record_for(RecordViewer::Everything)).expect("a record");
    let last = parsed.events.len() as u64;
    for event in 0..=last {
        let session = reexecute_to(&parsed, &*played.challenge, event).unwrap_or_else(|lie| panic!("{event}: {lie}"));
        let version = parsed.events[..event as usize].iter().rev().find_map(|event| event.version).unwrap_or(1);
        assert_eq!(session.version, version, "event {event}");
    }
    assert!(reexecute_to(&parsed, &*played.challenge, last + 1).is_err());
}

/// Checks the joins of a whole game in which the first player is ada, and the second one has no user id.
#[track_caller]
fn check_players_of(parsed: &Parsed) {
    let joins: Vec<&Event> = parsed.events.iter().filter(|event| event.kind == EventKind::Join).collect();
    let seats: Vec<(Option<Seat>, bool)> = joins.iter().map(|join| (join.seat, join.user.is_some())).collect();
    assert_eq!(seats, [(Some(Seat(0)), true), (Some(Seat(1)), false)]);
    assert_eq!(parsed.openings["user/0"].content, "ada");
}

#[test]
fn records_by_older_rules_are_played_again() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../arena-cli/tests/format-3/records");
    for name in ["psi", "dining", "ultimatum"] {
        let text = std::fs::read_to_string(format!("{folder}/{name}.jsonl")).expect("a record");
        let parsed = read_text(&text).expect("a record");
        assert!(matches!(parsed.header.rules, RecordedRules::Builtin { version: 1, .. }), "{name}");
        let found = arena_games::challenge(&parsed.header.challenge, &Map::new()).expect("it is built in");
        let challenge = found.expect("valid options");
        assert_eq!(challenge.rules_version(), 2);
        let again = reexecute(&parsed, &*challenge).unwrap_or_else(|lie| panic!("{name}: {lie}"));
        assert_eq!((again.unchecked, again.withheld), (None, 0), "{name}");
    }
}

#[test]
fn other_rules_missing_inputs_and_secret_seeds_are_no_lies() {
    let played = Played::whole("psi", &json!({}), 11);
    let parsed = read_text(&played.record_for(RecordViewer::Everything)).expect("a record");
    let chess = arena_games::challenge("chess", &Map::new()).expect("it is built in").expect("valid options");
    let again = reexecute(&parsed, &*chess).expect("no lie");
    assert!(matches!(again.unchecked, Some(Unchecked::OtherRules { .. })), "{:?}", again.unchecked);

    let mut old = Played {
        messages: played.messages.clone(),
        session: played.session.clone(),
        ..Played::open("psi", &json!({}), 11)
    };
    old.messages.retain(|message| !message.channel.is_inputs());
    let parsed = read_text(&old.record_for(RecordViewer::Everything)).expect("the chain is whole");
    assert_eq!(parsed.header.inputs, InputsStored::Missing);
    let again = reexecute(&parsed, &*old.challenge).expect("no lie");
    assert_eq!(again.unchecked, Some(Unchecked::InputsMissing));
    // The players are known all the same. A session that was open at an update has later joins with inputs.
    check_players_of(&parsed);
    let first_join = played.messages.iter().position(|message| message.method.as_deref() == Some("join"));
    old.messages = played.messages.clone();
    old.messages.remove(first_join.expect("a stored join"));
    let parsed = read_text(&old.record_for(RecordViewer::Everything)).expect("the chain is whole");
    assert_eq!(parsed.header.inputs, InputsStored::Missing);
    check_players_of(&parsed);

    let mut running = Played::open("psi", &json!({}), 12);
    running.join(None);
    running.join(None);
    let record = running.record_for(RecordViewer::Viewer(Viewer::Nobody, true));
    let parsed = read_text(&record).expect("a record");
    assert_eq!((parsed.end.is_none(), parsed.seal.is_some()), (true, true));
    assert_eq!(reexecute(&parsed, &*running.challenge).expect("no lie").unchecked, Some(Unchecked::NoSeed));
}

#[test]
fn foreign_and_later_files_and_long_lines_are_named() {
    let record = Played::whole("psi", &json!({}), 13).record_for(RecordViewer::Everything);
    let kind = |text: &[u8], limits: ReadLimits| match read(text, limits) {
        Ok(_) => "ok".to_owned(),
        Err(error) => error.to_string(),
    };
    let later = record.replacen("\"arenaRecord\":1", "\"arenaRecord\":2", 1);
    let all = ReadLimits::default();
    let rows: [(&[u8], ReadLimits); 8] = [
        (b"", all),
        (b"hello\n", all),
        (b"{\"epochs\":[]}\n", all),
        (b"\xff\xfe\n", all),
        (later.as_bytes(), all),
        (record.as_bytes(), ReadLimits { line_bytes: 100, bytes: 1 << 20 }),
        (record.as_bytes(), ReadLimits { line_bytes: 1 << 20, bytes: 2_000 }),
        (b"{\"arenaRecord\":1}\n", all),
    ];
    let actual: Vec<String> = rows.iter().map(|(text, limits)| kind(text, *limits)).collect();
    let starts = [
        "not a record: the file is empty",
        "not a record: the first line has no number `arenaRecord`",
        "not a record: the first line has no number `arenaRecord`",
        "not a record: it isn't UTF-8 text",
        "the record has format 2, but this program reads format 1",
        "line 1: the record is longer than the limits allow",
        "line ",
        "line 1: the line is malformed: missing field `session`",
    ];
    for (actual, start) in actual.iter().zip(starts) {
        assert!(actual.starts_with(start), "{actual:?} doesn't start with {start:?}");
    }
    assert!(actual[6].ends_with("longer than the limits allow"), "{}", actual[6]);
}

#[test]
fn each_seats_record_hides_the_secrets_of_others_during_play() {
    let mut played = Played::open("psi", &json!({}), 14);
    played.join(Some("ada"));
    played.join(None);
    played.say(0, Some(1), "for player 2");
    let [first, second, stranger] =
        [Viewer::Player(played.invite(0)), Viewer::Player(played.invite(1)), Viewer::Nobody]
            .map(|viewer| played.record_for(RecordViewer::Viewer(viewer, false)));
    assert!(first.contains("for player 2") && second.contains("for player 2") && !stranger.contains("for player 2"));
    for record in [&first, &second, &stranger] {
        assert_eq!(last_hash(record), last_hash(&first));
        assert!(!record.contains("\"ada\"") && !record.contains("\"seed\":"), "{record}");
    }
    // The operator's private messages have the secret sets of each player.
    let openings = |record: &str| record.lines().filter(|line| line.starts_with("{\"open\":\"operator/")).count();
    assert!(openings(&stranger) < openings(&first));
    assert_ne!(first, second);
}

#[test]
fn a_proof_follows_or_replaces_the_seal_of_an_ended_session() {
    let proof = format!("{{\"leaf\":3,\"size\":4,\"path\":[\"{}\"],\"checkpoint\":\"arena\\n4\\n\"}}\n", Hash([2; 32]));
    let record = Played::whole("psi", &json!({}), 16).record_for(RecordViewer::Everything);
    let parsed = read_text(&format!("{record}{proof}")).expect("a record with a proof");
    let expected = LogProof { leaf: 3, size: 4, path: vec![Hash([2; 32])], checkpoint: "arena\n4\n".to_owned() };
    assert_eq!(parsed.proof, Some(expected));
    assert!(read_text(&format!("{record}{proof}{proof}")).is_err());
    // The arena lost its key, so the proof has to confirm the record.
    let seal = record.lines().position(|line| line.starts_with("{\"seal\"")).expect("a seal");
    let unsealed: String = record.split_inclusive('\n').take(seal).collect();
    let lost = read_text(&format!("{unsealed}{proof}")).expect("a record with a proof in place of the seal");
    assert_eq!((lost.needs_log(), lost.hash, parsed.needs_log()), (true, parsed.hash, false));
    assert!(read_text(&unsealed).is_err());
    assert!(read_text(&format!("{unsealed}{proof}{}", &record[unsealed.len()..])).is_err());
    let keyless = forged(&unsealed, &|number, line| match number {
        1 => Some(line.replace(&format!("\"recordKey\":\"{}\"", key().public_key()), "\"recordKey\":null")),
        _ => Some(line),
    });
    assert!(read_text(&keyless).is_ok() && read_text(&format!("{keyless}{proof}")).is_err());
    let mut running = Played::open("psi", &json!({}), 16);
    running.join(None);
    let unfinished = running.record_for(RecordViewer::Everything);
    assert!(read_text(&unfinished).is_ok() && read_text(&format!("{unfinished}{proof}")).is_err());
}

#[test]
fn games_with_other_options_are_played_again_and_impossible_options_are_named() {
    let played = Played::whole("psi", &json!({ "players": 3 }), 17);
    let usual = arena_games::challenge("psi", &Map::new()).expect("it is built in").expect("valid options");
    let record = played.record_for(RecordViewer::Everything);
    assert_eq!(found(&record, &*usual), None);
    for (name, value) in [("players", json!(0)), ("players", json!("x")), ("nothing", json!(1)), ("players", json!(4))]
    {
        let changed = forged(&record, &|number, line| {
            if number > 1 {
                return Some(line);
            }
            let mut header: Header = serde_json::from_str(&line).expect("a header");
            header.options[name] = value.clone();
            serde_json::to_string(&header).ok()
        });
        let lie = found(&changed, &*usual).unwrap_or_else(|| panic!("{name}: {value}: nothing is found"));
        assert!(lie.line == 1 && lie.what.contains("options"), "{name}: {value}: {lie}");
    }
}

#[test]
fn seals_need_the_key_of_the_header() {
    let played = Played::whole("psi", &json!({}), 15);
    let (commitments, other_key) = (BTreeMap::new(), RecordPublicKey([1; 32]));
    let input = RecordInput {
        session: &played.session,
        messages: &played.messages,
        commitments: &commitments,
        prompt_sha256: "0".repeat(64),
        rules_version: 1,
        release: "0.1.0",
        record_key: Some(&other_key),
        fork: None,
    };
    let salts = played.salts();
    let sealed = write_record(&input, &salts, RecordViewer::Everything, Some(&key()));
    assert_eq!(sealed, Err(RecordError::OtherKey));
    let unnamed = RecordInput { record_key: None, ..input.clone() };
    let unsealed = write_record(&unnamed, &salts, RecordViewer::Everything, None).expect("a record");
    let parsed = read_text(&unsealed).expect("a record needs no seal");
    assert_eq!((parsed.header.record_key, parsed.seal), (None, None));
    let wrong = RecordInput { prompt_sha256: "abc".to_owned(), ..input };
    assert_eq!(write_record(&wrong, &salts, RecordViewer::Everything, None), Err(RecordError::Prompt));
    let key = key();
    assert_eq!(RecordKey::from_hex(&key.to_hex()).expect("a key").public_key(), key.public_key());
    assert!(!format!("{key:?}").contains(&key.to_hex()));
}
