//! Deadlines at which the rules failed, the events that players see before the end, and the order of times.

use std::sync::atomic::{AtomicBool, Ordering};

use arena_model::{ChallengeMetadata, Method, Operator, OptionsError, Rejection, RestoreError, Script, Table};

use super::*;

/// A game of one player, who ends it with an action. At the deadline, the rules send a message or fail.
struct Alarm {
    metadata: ChallengeMetadata,
    script: Option<Script>,
    is_failing: AtomicBool,
}

impl Alarm {
    fn new(is_script: bool) -> Alarm {
        let metadata = ChallengeMetadata {
            name: "Alarm".to_owned(),
            description: "Stop the alarm.".to_owned(),
            players: 1,
            prompt: "Call `stop`.".to_owned(),
            methods: vec![Method { name: "stop".to_owned(), description: "Nothing.".to_owned() }],
            ..ChallengeMetadata::default()
        };
        let script = is_script.then(|| Script::new("{}".to_owned()));
        Alarm { metadata, script, is_failing: AtomicBool::new(false) }
    }

    fn operator(&self) -> Box<dyn Operator> {
        Box::new(Ringing { is_failing: self.is_failing.load(Ordering::SeqCst) })
    }
}

impl ChallengeType for Alarm {
    fn id(&self) -> &str {
        "alarm"
    }

    fn metadata(&self) -> &ChallengeMetadata {
        &self.metadata
    }

    fn resolve(&self, _overrides: &Map<String, Value>) -> Result<Value, OptionsError> {
        Ok(json!({}))
    }

    fn script(&self) -> Option<&Script> {
        self.script.as_ref()
    }

    fn create(&self, _facts: &SessionFacts) -> Result<Box<dyn Operator>, Rejection> {
        Ok(self.operator())
    }

    fn restore(&self, _facts: &SessionFacts, _state: &str) -> Result<Box<dyn Operator>, RestoreError> {
        Ok(self.operator())
    }
}

struct Ringing {
    is_failing: bool,
}

impl Operator for Ringing {
    fn join(&mut self, table: &mut Table<'_>, _seat: Seat) -> Result<(), Rejection> {
        table.set_deadline_in(1_000);
        Ok(())
    }

    fn message(&mut self, table: &mut Table<'_>, _seat: Seat, _method: &str, _content: &str) -> Result<(), Rejection> {
        table.end();
        Ok(())
    }

    fn deadline(&mut self, table: &mut Table<'_>) -> Result<(), Rejection> {
        if self.is_failing {
            return Err(Rejection::new("CHALLENGE_FAILED", "the time for the call is over"));
        }
        table.broadcast("ring".to_owned());
        Ok(())
    }

    fn serialize(&self) -> String {
        "{}".to_owned()
    }
}

/// Plays a game of the alarm whose rules fail at the deadline or not.
fn rung(alarm: &Arc<Alarm>, is_failing: bool) -> Played {
    let facts = SessionFacts::numbered(&**alarm, Seed::from_number(1), 0).expect("there are no options");
    let facts = SessionFacts { created_at: Timestamp(1_000), ..facts };
    let session = open(facts, &**alarm, InactivityLimits::ENDLESS).expect("the rules don't fail");
    let mut played = Played {
        challenge: alarm.clone(),
        session,
        messages: Vec::new(),
        now: Timestamp(1_000),
        inactivity: InactivityLimits::ENDLESS,
        heard: vec![[Vec::new(), Vec::new()]],
        delivered: 0,
    };
    played.join(None);
    alarm.is_failing.store(is_failing, Ordering::SeqCst);
    played.wake(played.session.deadline.expect("the rules set a deadline"));
    alarm.is_failing.store(false, Ordering::SeqCst);
    played.act(0, "stop", "").expect("the action is possible");
    assert_eq!(played.session.status(), Status::Ended);
    played
}

#[test]
fn a_failure_at_a_deadline_is_in_the_record() {
    // Each row: the rules are a script, they failed in the arena, they fail here; the number of failures that weren't
    // checked, or the beginning of the reason why the rest wasn't, or the contradiction.
    let rows = [
        (true, false, false, "0"),
        (true, true, false, "1"),
        (true, true, true, "1"),
        (true, false, true, "the game cannot be played beyond event 2"),
        (false, false, false, "0"),
        (false, true, true, "0"),
        (false, true, false, "line 3 (event 2): for the rules, this is an event of kind deadline"),
        (false, false, true, "line 3 (event 2): for the rules, this is an event of kind failed"),
    ];
    for (is_script, failed_there, fails_here, expected) in rows {
        let alarm = Arc::new(Alarm::new(is_script));
        let record = rung(&alarm, failed_there).record_for(RecordViewer::Everything);
        let parsed = read_text(&record).expect("a record");
        let kind = if failed_there { EventKind::Failed } else { EventKind::Deadline };
        assert_eq!(parsed.events[1].kind, kind);
        alarm.is_failing.store(fails_here, Ordering::SeqCst);
        let result = match reexecute(&parsed, &*alarm) {
            Ok(Reexecuted { unchecked: Some(reason), .. }) => reason.to_string(),
            Ok(played) => played.failed.to_string(),
            Err(lie) => lie.to_string(),
        };
        let row = (is_script, failed_there, fails_here);
        assert!(result.starts_with(expected), "{row:?}: {result:?} doesn't start with {expected:?}");
    }
}

#[test]
fn a_failure_needs_a_passed_deadline() {
    let alarm = Arc::new(Alarm::new(true));
    let record = rung(&alarm, true).record_for(RecordViewer::Everything);
    let early = forged(&record, &|number, line| {
        Some(if number == 3 { line.replace("\"at\":2000,", "\"at\":1500,") } else { line })
    });
    assert_ne!(early, record);
    let lie = found(&early, &*alarm).expect("the forger is found");
    assert_eq!(lie.to_string(), "line 3 (event 2): no deadline has passed");
}

/// Begins a game of three players. Everything that only the second player and the arena know differs with `secret`:
/// the contents of private messages, the user, and the reports, offers and wake-ups.
fn course(secret: &str) -> Played {
    let is_twin = !secret.is_empty();
    let mut played = Played::open("psi", &json!({ "players": 3 }), 14);
    played.join(Some("ada"));
    if is_twin {
        played.announce(2);
    }
    played.join(is_twin.then_some("bob"));
    played.join(None);
    played.say(0, None, "hello");
    played.say(1, Some(2), &format!("a private word{secret}"));
    for _ in 0..secret.len() {
        played.report(1);
        played.wake(played.now);
    }
    played.say(1, Some(0), "for player 1");
    let second = Party::Player(played.invite(1));
    let is_dealt = |message: &&mut ChatMessage| message.from == Party::Operator && message.to.as_ref() == Some(&second);
    for dealt in played.messages.iter_mut().filter(is_dealt) {
        dealt.content.push_str(secret);
    }
    played
}

/// Reads a record, and removes the hashes that differ with the withheld contents.
fn masked(record: &str) -> Parsed {
    let mut parsed = read_text(record).expect("a record");
    (parsed.hash, parsed.seal) = (Hash([0; 32]), None);
    for event in &mut parsed.events {
        event.previous = Hash([0; 32]);
        for message in &mut event.messages {
            if !parsed.openings.contains_key(&message.opening()) {
                message.content = None;
            }
        }
    }
    parsed
}

#[test]
fn during_play_a_record_is_the_same_whatever_others_do_in_private() {
    let [first, second] = ["", "xyz"].map(course);
    let record = |played: &Played, viewer| played.record_for(RecordViewer::Viewer(viewer, false));
    for viewer in [Viewer::Player(first.invite(0)), Viewer::Nobody] {
        let [one, other] = [&first, &second].map(|played| record(played, viewer));
        assert_eq!(one.len(), other.len());
        assert_eq!(masked(&one), masked(&other));
        let parsed = masked(&one);
        assert_eq!(parsed.header.inputs, InputsStored::Withheld);
        assert!(parsed.events.iter().all(|event| event.version.is_none() && event.user.is_none()), "{one}");
        // The events of the API: joins, and the messages of both channels with their places.
        let posted = first.messages.iter().filter(|message| !message.channel.is_inputs()).count();
        assert_eq!(parsed.events.iter().map(|event| event.messages.len()).sum::<usize>(), posted);
    }
    // The player itself and the administrator see the differences.
    let own = [&first, &second].map(|played| masked(&record(played, Viewer::Player(first.invite(1)))));
    assert_ne!(own[0], own[1]);
    let all = [&first, &second].map(|played| masked(&played.record_for(RecordViewer::Everything)));
    assert_eq!(all[1].events.len(), all[0].events.len() + 1 + 2 * 3);
}

#[test]
fn a_record_with_withheld_inputs_has_no_end() {
    let record = Played::whole("psi", &json!({}), 18).record_for(RecordViewer::Everything);
    let withheld = forged(&record, &|number, line| {
        if number == 1 {
            return Some(line.replace("\"inputs\":\"stored\"", "\"inputs\":\"withheld\""));
        }
        let Ok(mut event) = serde_json::from_str::<Event>(&line) else { return Some(line) };
        event.version = None;
        event.messages.retain(|message| message.channel != RecordedChannel::Usage);
        serde_json::to_string(&event).ok()
    });
    match read_text(&withheld) {
        Err(ReadError::Lie(lie)) => assert_eq!(lie.what, "a record with withheld inputs has no end"),
        other => panic!("{other:?}"),
    }
}

#[test]
fn times_before_earlier_messages_are_found() {
    let played = Played::whole("psi", &json!({}), 20);
    let record = played.record_for(RecordViewer::Everything);
    let parsed = read_text(&record).expect("a record");
    for event in &parsed.events {
        let line = event.event as usize + 1;
        let earlier = forged(&record, &|number, text| {
            if number != line {
                return Some(text);
            }
            let mut event: Event = serde_json::from_str(&text).expect("an event");
            event.at = Timestamp(999);
            serde_json::to_string(&event).ok()
        });
        match read_text(&earlier) {
            Err(ReadError::Lie(lie)) => assert!(lie.line == line && lie.what.starts_with("the time"), "{lie}"),
            other => panic!("event {}: {other:?}", event.event),
        }
    }
    // If the clock is set back, only messages keep their order.
    let mut back = Played::open("psi", &json!({}), 20);
    back.join(None);
    back.now = back.now.plus_ms(5_000);
    back.report(0);
    back.now = back.now.plus_ms(-4_000);
    back.say(0, None, "hello");
    assert!(read_text(&back.record_for(RecordViewer::Everything)).is_ok());
}
