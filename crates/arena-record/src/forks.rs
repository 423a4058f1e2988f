//! The pure part of forks: the messages before the fork, and new randomness after it.
//!
//! A fork has the past of its original, up to and including event `at`. With the same randomness, the rules draw the
//! same numbers for the same purposes. A reseeded fork draws others after event `at`: they come from
//! [`reseed`], which depends on the original's seed and the fork's id only, so that a fork's record can be played
//! again from the one seed that it contains.

use std::sync::Arc;

use arena_model::{Channel, ChatMessage, Party, Seat, Seed, Session, SessionFacts, SessionId, hex};

use crate::{Event, EventKind, Parsed, RecordedChannel, RecordedMessage, RecordedParty};

/// The number of hexadecimal digits in the key of a stored stream of random numbers.
const KEY_DIGITS: usize = 64;

/// Returns the seed of a reseeded fork after its last common event.
pub fn fork_seed(seed: &Seed, fork: SessionId) -> Seed {
    seed.derive(&format!("fork/{fork}"))
}

/// Gives a session new randomness: a seed derived from its own seed and its id, and new keys for the streams of random
/// numbers in the state of its rules. A scripted challenge that computes its secrets from the seed in each call has
/// other secrets from now on. A session without a seed stays unchanged.
pub fn reseed(session: &mut Session) {
    let Some(seed) = &session.facts.seed else { return };
    let fresh = fork_seed(seed, session.facts.id);
    session.state = reseed_state(&session.state, &fresh);
    session.facts = Arc::new(SessionFacts { seed: Some(fresh), ..(*session.facts).clone() });
}

/// Gives each stream of random numbers in a state, stored as `"KEY:WORDS"`, a key derived from its old one, and begins
/// it anew.
fn reseed_state(state: &str, seed: &Seed) -> String {
    let mut out = String::with_capacity(state.len());
    let mut rest = state;
    while let Some(at) = rest.find('"') {
        let (before, after) = rest.split_at(at + 1);
        out.push_str(before);
        rest = after;
        if let Some((key, end)) = stream_key(rest) {
            out.push_str(&hex::encode(&seed.derive(&format!("stream/{key}")).0));
            out.push_str(":0");
            rest = &rest[end..];
        }
    }
    out.push_str(rest);
    out
}

/// Parses a stream of random numbers at the start of a text. Returns its key, and the position of the closing quote.
fn stream_key(text: &str) -> Option<(&str, usize)> {
    let key = text.get(..KEY_DIGITS)?;
    if !key.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f')) {
        return None;
    }
    let words = text[KEY_DIGITS..].strip_prefix(':')?;
    let digits = words.bytes().take_while(u8::is_ascii_digit).count();
    (digits > 0 && words[digits..].starts_with('"')).then_some((key, KEY_DIGITS + 1 + digits))
}

/// Returns the messages of the first `until` events of a record, in commit order, as those of `session`: inputs, chat
/// and the operator's. `session` has the seats of these events; its id may be another one than the record's.
///
/// # Errors
/// If the record withholds a content, as one sentence with the event and the missing opening.
pub fn past_messages(parsed: &Parsed, session: &Session, until: u64) -> Result<Vec<ChatMessage>, String> {
    let mut messages = Vec::new();
    for event in parsed.events.iter().take_while(|event| event.event <= until) {
        if let Some(input) = input_message(parsed, session, event)? {
            messages.push(input);
        }
        for recorded in &event.messages {
            if recorded.channel != RecordedChannel::Usage {
                messages.push(message(parsed, session, event, recorded)?);
            }
        }
    }
    Ok(messages)
}

/// Returns the first of the first `until` events with a withheld content, and the name of the missing opening.
pub fn first_withheld(parsed: &Parsed, until: u64) -> Option<(u64, String)> {
    let past = parsed.events.iter().take_while(|event| event.event <= until);
    let mut names = past.flat_map(|event| event.messages.iter().map(|message| (event.event, message.opening())));
    names.find(|(_, name)| !parsed.openings.contains_key(name))
}

/// Returns the hidden message of an event that no other message shows.
fn input_message(parsed: &Parsed, session: &Session, event: &Event) -> Result<Option<ChatMessage>, String> {
    let is_input = match event.kind {
        EventKind::Action | EventKind::Chat | EventKind::Notice => false,
        EventKind::Join
        | EventKind::Deadline
        | EventKind::Failed
        | EventKind::Abandon
        | EventKind::Wake
        | EventKind::Usage
        | EventKind::Announce => true,
    };
    let Some(version) = event.version.filter(|_| is_input) else { return Ok(None) };
    let report = event.messages.iter().find(|recorded| recorded.channel == RecordedChannel::Usage);
    Ok(Some(ChatMessage {
        channel: Channel::Inputs(session.facts.id),
        index: version,
        from: event.seat.map_or(Party::Operator, |seat| player(session, seat)),
        to: None,
        content: report.map(|report| content(parsed, event, report)).transpose()?.unwrap_or_default(),
        method: Some(event.kind.to_string()),
        at: event.at,
        hidden: None,
    }))
}

fn message(
    parsed: &Parsed,
    session: &Session,
    event: &Event,
    recorded: &RecordedMessage,
) -> Result<ChatMessage, String> {
    let content = content(parsed, event, recorded)?;
    let is_action = event.kind == EventKind::Action && matches!(recorded.from, RecordedParty::Player(_));
    let method = content.strip_prefix('(').and_then(|rest| rest.split_once(") ")).map(|(method, _)| method.to_owned());
    let id = session.facts.id;
    Ok(ChatMessage {
        channel: match recorded.channel {
            RecordedChannel::Chat => Channel::Chat(id),
            RecordedChannel::Operator | RecordedChannel::Usage => Channel::Operator(id),
        },
        index: recorded.index,
        from: party(session, recorded.from),
        to: recorded.to.map(|to| party(session, to)),
        method: method.filter(|_| is_action),
        content,
        at: event.at,
        hidden: None,
    })
}

fn content(parsed: &Parsed, event: &Event, recorded: &RecordedMessage) -> Result<String, String> {
    let name = recorded.opening();
    match parsed.openings.get(&name) {
        Some(opening) => Ok(opening.content.clone()),
        None => Err(format!("event {}: the record withholds {name}, and a fork needs its whole past", event.event)),
    }
}

fn party(session: &Session, party: RecordedParty) -> Party {
    match party {
        RecordedParty::Operator => Party::Operator,
        RecordedParty::Player(seat) => player(session, seat),
        RecordedParty::Other => Party::Other("other".into()),
    }
}

fn player(session: &Session, seat: Seat) -> Party {
    session.seats.get(seat.0).map_or_else(|| Party::Other("other".into()), |occupant| Party::Player(occupant.invite))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use arena_model::{
        After, ChallengeType, InactivityLimits, Phase, SessionPolicy, Timestamp, Transition, join, open, wake,
    };
    use serde_json::Map;

    use super::*;
    use crate::{
        ForkOf, ReadLimits, RecordInput, RecordViewer, SaltSecret, read, reexecute, reexecute_to, write_record,
    };

    struct SnakeGame {
        challenge: Arc<dyn ChallengeType>,
        session: Session,
        messages: Vec<ChatMessage>,
        now: Timestamp,
    }

    impl SnakeGame {
        fn joined() -> SnakeGame {
            let challenge = arena_games::challenge("snake", &Map::new()).unwrap().unwrap();
            let facts = SessionFacts::numbered(&*challenge, Seed::from_number(7), 0).unwrap();
            let facts = SessionFacts { created_at: Timestamp(1_000), ..facts };
            let invites = facts.invites.clone();
            let session = open(facts, &*challenge, InactivityLimits::ENDLESS).unwrap();
            let mut game = SnakeGame { challenge, session, messages: Vec::new(), now: Timestamp(1_000) };
            for invite in invites {
                let policy = &SessionPolicy::UNBOUNDED;
                let joined = join(&game.session, &*game.challenge, policy, invite, None, game.now).unwrap();
                game.take(joined);
            }
            game
        }

        /// Lets all deadlines pass until the game is over.
        fn finish(&mut self) {
            while !matches!(self.session.phase, Phase::Ended { .. }) {
                self.now = self.session.deadline.unwrap();
                let policy = &SessionPolicy::UNBOUNDED;
                let woken = wake(&self.session, &*self.challenge, policy, self.now, self.now).unwrap();
                self.take(woken);
            }
        }

        fn take(&mut self, transition: Transition) {
            let After::Changed(after) = transition.after else { panic!("the transition changes nothing") };
            self.session = *after;
            for draft in transition.drafts {
                let index = match draft.channel {
                    Channel::Inputs(_) => self.session.version,
                    _ => 1 + self.messages.iter().filter(|message| message.channel == draft.channel).count() as u64,
                };
                self.messages.push(draft.at(index, self.now));
            }
        }

        fn record(&self, fork: Option<ForkOf>) -> Parsed {
            let input = RecordInput {
                session: &self.session,
                messages: &self.messages,
                commitments: &BTreeMap::new(),
                prompt_sha256: "a".repeat(64),
                rules_version: self.challenge.rules_version(),
                release: "0.1.0",
                record_key: None,
                fork,
            };
            let salts = SaltSecret::from_random([7; 32]).of_session(self.session.facts.id);
            let text = write_record(&input, &salts, RecordViewer::Everything, None).unwrap();
            read(text.as_bytes(), ReadLimits::default()).unwrap()
        }
    }

    #[test]
    fn forks_have_the_past_of_their_original_and_can_be_played_again() {
        let mut original = SnakeGame::joined();
        let at = original.session.facts.invites.len() as u64;
        original.finish();
        let parsed = original.record(None);
        assert_eq!(reexecute(&parsed, &*original.challenge).unwrap().unchecked, None);
        let seed = original.session.facts.seed.clone();
        for reseeded in [false, true] {
            let mut session = reexecute_to(&parsed, &*original.challenge, at).unwrap();
            let id: SessionId = "00000000-0000-7000-8000-00000000000f".parse().unwrap();
            session.facts = Arc::new(SessionFacts { id, ..(*session.facts).clone() });
            let messages = past_messages(&parsed, &session, at).unwrap();
            let past = original.messages.iter().take(messages.len());
            assert!(past.map(|message| &message.content).eq(messages.iter().map(|message| &message.content)));
            if reseeded {
                reseed(&mut session);
                assert_ne!(session.facts.seed, seed);
            }
            let mut fork =
                SnakeGame { session, messages, now: Timestamp(1_000), challenge: original.challenge.clone() };
            fork.finish();
            let facts = SessionFacts { seed: seed.clone(), ..(*fork.session.facts).clone() };
            fork.session.facts = Arc::new(facts);
            assert_eq!(fork.session.state == original.session.state, !reseeded);
            let origin = |reseeded| Some(ForkOf { of: original.session.facts.id, at, reseeded });
            let played = reexecute(&fork.record(origin(reseeded)), &*fork.challenge).unwrap();
            assert_eq!((played.unchecked, &played.session.state), (None, &fork.session.state));
            assert!(reexecute(&fork.record(origin(!reseeded)), &*fork.challenge).is_err(), "{reseeded}");
        }
    }

    #[test]
    fn withheld_contents_are_named() {
        let mut game = SnakeGame::joined();
        game.finish();
        let mut parsed = game.record(None);
        let last = parsed.events.last().unwrap().event;
        assert_eq!(first_withheld(&parsed, last), None);
        let (event, name) = parsed
            .events
            .iter()
            .rev()
            .find_map(|event| Some((event.event, event.messages.first()?.opening())))
            .unwrap();
        parsed.openings.remove(&name);
        assert_eq!(first_withheld(&parsed, last), Some((event, name.clone())));
        assert_eq!(first_withheld(&parsed, event - 1), None);
        assert!(past_messages(&parsed, &game.session, last).unwrap_err().contains(&name));
        assert!(past_messages(&parsed, &game.session, event - 1).is_ok());
    }

    #[test]
    fn only_streams_of_random_numbers_get_new_keys() {
        let seed = Seed::from_number(7);
        let key = "ab".repeat(32);
        let fresh = |key: &str| hex::encode(&seed.derive(&format!("stream/{key}")).0);
        for (state, expected) in [
            (format!(r#"{{"rng":"{key}:12","n":1}}"#), format!(r#"{{"rng":"{}:0","n":1}}"#, fresh(&key))),
            (format!(r#"["{key}:1","{key}:2"]"#), format!(r#"["{0}:0","{0}:0"]"#, fresh(&key))),
            // Not streams: no number, another length, upper case, more text, no quote before.
            (format!(r#"["{key}"]"#), format!(r#"["{key}"]"#)),
            (format!(r#"["{key}:"]"#), format!(r#"["{key}:"]"#)),
            (format!(r#"["a{key}:1"]"#), format!(r#"["a{key}:1"]"#)),
            (format!(r#"["{}:1"]"#, key.to_uppercase()), format!(r#"["{}:1"]"#, key.to_uppercase())),
            (format!(r#"["{key}:1 "]"#), format!(r#"["{key}:1 "]"#)),
            (format!(r#"["x {key}:1"]"#), format!(r#"["x {key}:1"]"#)),
            ("é\"é".to_owned(), "é\"é".to_owned()),
            (String::new(), String::new()),
        ] {
            assert_eq!(reseed_state(&state, &seed), expected, "{state}");
        }
    }

    #[test]
    fn forks_of_one_session_have_different_seeds() {
        let seed = Seed::from_number(7);
        let id = |digit: &str| -> SessionId { format!("018f6b2e-0000-7000-8000-00000000000{digit}").parse().unwrap() };
        assert_eq!(fork_seed(&seed, id("1")), fork_seed(&seed, id("1")));
        assert_ne!(fork_seed(&seed, id("1")), fork_seed(&seed, id("2")));
        assert_ne!(fork_seed(&seed, id("1")), seed);
    }
}
