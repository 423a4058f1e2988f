//! Seats: the state of each agent in a match, and the validation of its lines. No I/O.

use std::borrow::Cow;
use std::time::Duration;

use arena_model::{AgentId, Dialect, Disqualified, Owner, TimeLimits, Verdict};

use crate::reply::{Claim, Reply, Unreadable};

/// The number of faults at which an agent is disqualified.
const TOO_MANY: u32 = 11;

/// The fault text for an `agent_id` that isn't a string.
const NO_TEXT: &str = "`agent_id` isn't a text";

/// The maximum length of a quoted line in a fault, in bytes.
const QUOTED: usize = 200;

/// An agent's seat in a match.
#[derive(Debug)]
pub struct Seat {
    /// The seat's number, from 0.
    pub number: usize,
    /// The agent's id.
    pub id: AgentId,
    /// The agent's id as JSON text.
    pub id_json: String,
    /// The ids of the match's players, from [`Seat::meet`].
    players: Vec<String>,
    /// The keys under which the agent receives the state.
    pub dialect: Dialect,
    /// The agent's name.
    pub name: String,
    /// The agent's version, if it has one.
    pub version: Option<String>,
    /// The disqualification, if the agent is out.
    pub out: Option<Disqualified>,
    /// The number of faults so far.
    pub faults: u32,
    /// The total time charged to the agent.
    pub used: Duration,
    /// The longest time charged for one step.
    pub longest: Duration,
    /// The time left in the time bank, for steps that exceed the step limit.
    pub bank: Duration,
    /// The number of faults for replies without an id.
    missing_ids: u32,
    /// True if the agent hasn't answered `set_agent_id`. A late answer to that message must not count as the
    /// answer to a state.
    owes_consent: bool,
    /// The faults since the last call of [`Seat::take_faults`].
    fresh_faults: Vec<Fault>,
}

/// A line of an agent that violates the protocol.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// The agent's seat.
    pub seat: usize,
    /// The violation, in a sentence.
    pub what: String,
    /// The start of the line, for the agent's owner.
    pub line: String,
}

impl Seat {
    /// Creates the seat of an agent that hasn't received a message yet.
    pub fn new(
        number: usize,
        id: AgentId,
        name: String,
        version: Option<String>,
        dialect: Dialect,
        limits: TimeLimits,
    ) -> Seat {
        let id_json = serde_json::to_string(&id).expect("an id is a text");
        Seat {
            number,
            id,
            id_json,
            players: Vec::new(),
            dialect,
            name,
            version,
            out: None,
            faults: 0,
            used: Duration::ZERO,
            longest: Duration::ZERO,
            bank: Duration::from_millis(limits.bank_ms),
            missing_ids: 0,
            owes_consent: false,
            fresh_faults: Vec::new(),
        }
    }

    /// Sets the ids of all players of the match. The agent's own id may be among them.
    pub fn meet<'id>(&mut self, ids: impl IntoIterator<Item = &'id str>) {
        self.players.clear();
        self.players.extend(ids.into_iter().map(str::to_owned));
    }

    /// Returns true if the agent isn't disqualified.
    pub fn is_in(&self) -> bool {
        self.out.is_none()
    }

    /// Disqualifies the agent. The first disqualification counts.
    pub fn disqualify(&mut self, verdict: Verdict, detail: impl Into<String>) {
        self.out.get_or_insert_with(|| Disqualified::new(self.number, verdict, detail));
    }

    /// Validates the answer to the first ping.
    pub fn validate_pong(&mut self, line: &[u8]) {
        match Reply::read(line) {
            Ok(reply) if reply.has_pong() => {}
            Ok(_) => self.disqualify(Verdict::PingFail, format!("answered the ping without `pong`: {}", quote(line))),
            Err(error) => {
                self.disqualify(Verdict::PingFail, format!("answered the ping, but {error}: {}", quote(line)))
            }
        }
    }

    /// Validates the answer to `set_agent_id`.
    pub fn validate_consent(&mut self, line: &[u8]) {
        let reply = match Reply::read(line) {
            Ok(reply) => reply,
            Err(error) => return self.fault(line, &error.to_string()),
        };
        match reply.claim(&self.id_json) {
            Claim::Own | Claim::Missing => {
                self.name = reply.agent_name().unwrap_or(std::mem::take(&mut self.name));
                self.version = reply.agent_version().or(self.version.take());
            }
            Claim::Invalid => self.fault(line, NO_TEXT),
            Claim::Other(id) => self.judge_other(line, &id),
        }
    }

    /// Records that the agent didn't answer `set_agent_id` in time, which is allowed.
    pub fn note_silence(&mut self) {
        self.owes_consent = true;
    }

    /// Returns true if a line is certainly the answer to a state. A line without actions may instead be a
    /// late answer to `set_agent_id`.
    pub fn is_answer(&mut self, line: &[u8]) -> bool {
        if !std::mem::replace(&mut self.owes_consent, false) {
            return true;
        }
        match Reply::read(line) {
            Ok(reply) if !reply.has_actions() => {
                self.validate_consent(line);
                !self.is_in()
            }
            _ => true,
        }
    }

    /// Validates the answer to a state. Returns the text of its actions, or `None` if the answer is invalid.
    pub fn validate_actions<'line>(&mut self, line: &'line [u8]) -> Option<Cow<'line, str>> {
        let reply = match Reply::read(line) {
            Ok(reply) => reply,
            Err(Unreadable::NotJson(words)) => {
                self.fault(line, &format!("the line isn't JSON ({words}); logs belong on stderr"));
                return None;
            }
            Err(error) => {
                self.fault(line, &error.to_string());
                return None;
            }
        };
        match reply.claim(&self.id_json) {
            Claim::Own => match reply.fault() {
                None => Some(reply.actions()),
                Some(what) => {
                    self.fault(line, &quote(what.as_bytes()));
                    None
                }
            },
            Claim::Missing => {
                self.missing_ids += 1;
                self.fault(line, "the reply lacks `agent_id`");
                None
            }
            Claim::Invalid => {
                self.fault(line, NO_TEXT);
                None
            }
            Claim::Other(id) => {
                self.judge_other(line, &id);
                None
            }
        }
    }

    /// Charges the agent the time of a step. Time beyond the step limit is taken from the time bank.
    pub fn charge(&mut self, used: Duration, limits: TimeLimits) {
        self.used += used;
        self.longest = self.longest.max(used);
        let beyond = used.saturating_sub(Duration::from_millis(limits.step_ms));
        self.bank = self.bank.saturating_sub(beyond);
    }

    /// Returns the time left in the bank, in whole milliseconds, as in messages to agents.
    pub fn bank_ms(&self) -> u64 {
        u64::try_from(self.bank.as_millis()).unwrap_or(u64::MAX)
    }

    /// Removes and returns the faults since the last call.
    pub fn take_faults(&mut self) -> std::vec::Drain<'_, Fault> {
        self.fresh_faults.drain(..)
    }

    /// Records a reply with an id other than the agent's own. Another player's id disqualifies the agent for
    /// spoofing; an unknown id is a fault.
    fn judge_other(&mut self, line: &[u8], id: &str) {
        match Owner::of(id, &self.id, self.players.iter().map(String::as_str)) {
            Owner::Player(_) => self.disqualify(Verdict::AgentIdSpoofing, format!("spoke as {id:?}")),
            Owner::Sender | Owner::Stranger => self.fault(line, "`agent_id` isn't a player of this match"),
        }
    }

    fn fault(&mut self, line: &[u8], what: &str) {
        self.faults += 1;
        self.fresh_faults.push(Fault { seat: self.number, what: what.to_owned(), line: quote(line) });
        if self.faults >= TOO_MANY {
            match self.missing_ids == self.faults {
                true => self.disqualify(Verdict::MissingAgentId, format!("{TOO_MANY} replies without `agent_id`")),
                false => self.disqualify(Verdict::TooManyErrors, format!("{TOO_MANY} faults, the last one: {what}")),
            }
        }
    }
}

/// Returns the start of a line, as text without control characters.
pub fn quote(line: &[u8]) -> String {
    let text: String = String::from_utf8_lossy(&line[..line.len().min(QUOTED)])
        .chars()
        .map(|char| if char.is_control() { '\u{b7}' } else { char })
        .collect();
    if line.len() > QUOTED { format!("{text}… ({} bytes)", line.len()) } else { text }
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;

    const LIMITS: TimeLimits = TimeLimits { step_ms: 100, bank_ms: 1000 };

    fn seat() -> Seat {
        let mut seat = Seat::new(0, "me".parse().unwrap(), "bot".to_owned(), None, Dialect::Both, LIMITS);
        seat.meet(["you", "me", "them"]);
        seat
    }

    /// Checks the faults and the verdict of an agent that answers states with these lines.
    #[track_caller]
    fn check(lines: &[&str], expected: Expect) {
        let mut seat = seat();
        let mut actual = String::new();
        for line in lines {
            actual += &format!("{:?}\n", seat.validate_actions(line.as_bytes()));
        }
        for fault in seat.take_faults() {
            actual += &format!("fault: {} [{}]\n", fault.what, fault.line);
        }
        if let Some(Disqualified { verdict, detail, .. }) = &seat.out {
            actual += &format!("out: {verdict}, {detail}\n");
        }
        expected.assert_eq(&actual);
    }

    #[test]
    fn an_answer_without_an_id_of_the_match_counts_for_nothing_and_another_players_is_cheating() {
        check(
            &[
                r#"{"agent_id":"me","actions":[1]}"#,
                r#"{"actions":[2]}"#,
                r#"{"agent_id":7}"#,
                r#"{"agent_id":"","actions":[3]}"#,
                r#"{"agent_id":"Me","actions":[3]}"#,
                r#"{"agent_id":"nobody","actions":[3]}"#,
                r#"{"agent_id":"you ","actions":[3]}"#,
                r#"{"agent_id":["you"],"actions":[3]}"#,
                r#"{"agent_id":"you","actions":[3]}"#,
            ],
            expect![[r#"
                Some("[1]")
                None
                None
                None
                None
                None
                None
                None
                None
                fault: the reply lacks `agent_id` [{"actions":[2]}]
                fault: `agent_id` isn't a text [{"agent_id":7}]
                fault: `agent_id` isn't a player of this match [{"agent_id":"","actions":[3]}]
                fault: `agent_id` isn't a player of this match [{"agent_id":"Me","actions":[3]}]
                fault: `agent_id` isn't a player of this match [{"agent_id":"nobody","actions":[3]}]
                fault: `agent_id` isn't a player of this match [{"agent_id":"you ","actions":[3]}]
                fault: `agent_id` isn't a text [{"agent_id":["you"],"actions":[3]}]
                out: AGENT_ID_SPOOFING, spoke as "you"
            "#]],
        );
    }

    #[test]
    fn an_agent_may_report_its_own_fault() {
        check(
            &[
                r#"{"agent_id":"me","actions":[1],"fault":null}"#,
                r#"{"agent_id":"me","actions":[],"fault":"agent raised ValueError:\n bad"}"#,
                r#"{"agent_id":"me","actions":[2],"fault":7}"#,
            ],
            expect![[r#"
                Some("[1]")
                None
                Some("[2]")
                fault: agent raised ValueError:· bad [{"agent_id":"me","actions":[],"fault":"agent raised ValueError:\n bad"}]
            "#]],
        );
    }

    #[test]
    fn the_eleventh_fault_ends_it_with_the_reason_that_fits() {
        let out = |lines: &mut dyn Iterator<Item = &str>| {
            let mut seat = seat();
            for line in lines {
                assert!(seat.is_in());
                seat.validate_actions(line.as_bytes());
            }
            seat.out.map(|out| (out.verdict, out.detail))
        };
        assert_eq!(out(&mut std::iter::repeat_n("oops", 10)), None);
        let (verdict, detail) = out(&mut std::iter::repeat_n("oops", 11)).unwrap();
        assert_eq!(verdict, Verdict::TooManyErrors);
        expect![
            "11 faults, the last one: the line isn't JSON (expected value at line 1 column 1); logs belong on stderr"
        ]
        .assert_eq(&detail);
        assert_eq!(out(&mut std::iter::repeat_n("{}", 11)).unwrap().0, Verdict::MissingAgentId);
        assert_eq!(out(&mut std::iter::repeat_n("{}", 10).chain(["[]"])).unwrap().0, Verdict::TooManyErrors);
        for line in [r#"{"agent_id":""}"#, r#"{"agent_id":"ME"}"#, r#"{"agent_id":"x"}"#, r#"{"agent_id":{}}"#] {
            assert_eq!(out(&mut std::iter::repeat_n(line, 10)), None);
            assert_eq!(out(&mut std::iter::repeat_n(line, 11)).unwrap().0, Verdict::TooManyErrors);
        }
    }

    #[test]
    fn handshakes() {
        let pong = |line: &str| {
            let mut seat = seat();
            seat.validate_pong(line.as_bytes());
            seat.out.map(|out| format!("{}: {}", out.verdict, out.detail)).unwrap_or_default()
        };
        assert_eq!(pong(r#"{"pong":0}"#), "");
        expect![[r#"PING_FAIL: answered the ping without `pong`: {"pong":null}"#]].assert_eq(&pong(r#"{"pong":null}"#));
        expect!["PING_FAIL: answered the ping, but the line isn't JSON: expected value at line 1 column 1: ready"]
            .assert_eq(&pong("ready"));
        let consent = |line: &str| {
            let mut seat = seat();
            seat.validate_consent(line.as_bytes());
            (seat.name, seat.version, seat.out.map(|out| out.verdict), seat.faults)
        };
        let named = r#"{"agent_id":"me","agent_name":"Ada","agent_version":"1.2"}"#;
        assert_eq!(consent(named), ("Ada".to_owned(), Some("1.2".to_owned()), None, 0));
        assert_eq!(consent("{}"), ("bot".to_owned(), None, None, 0));
        for id in ["\"\"", "\"ME\"", "\"nobody\"", "7", "null", "[\"you\"]"] {
            let line = format!(r#"{{"agent_id":{id},"agent_name":"Ada"}}"#);
            let expected = if id == "null" { ("Ada".to_owned(), 0) } else { ("bot".to_owned(), 1) };
            let (name, _, out, faults) = consent(&line);
            assert_eq!(((name, faults), out), (expected, None), "{id}");
        }
        assert_eq!(consent(r#"{"agent_id":"you"}"#).2, Some(Verdict::AgentIdSpoofing));
    }

    #[test]
    fn what_may_be_late_consent_is_no_sure_answer_but_once() {
        let mut seat = seat();
        assert!(seat.is_answer(b"{}"));
        seat.note_silence();
        assert!(!seat.is_answer(br#"{"agent_id":"me","agent_name":"Late"}"#));
        assert_eq!(seat.name, "Late");
        assert!(seat.is_answer(br#"{"agent_id":"me"}"#));
        seat.note_silence();
        assert!(seat.is_answer(br#"{"agent_id":"me","actions":[]}"#));
    }

    #[test]
    fn only_time_beyond_the_limit_is_drawn_from_the_bank() {
        let mut seat = seat();
        seat.charge(Duration::from_millis(100), LIMITS);
        assert_eq!(seat.bank_ms(), 1000);
        seat.charge(Duration::from_millis(350), LIMITS);
        assert_eq!(seat.bank_ms(), 750);
        assert_eq!((seat.used, seat.longest), (Duration::from_millis(450), Duration::from_millis(350)));
    }
}
