//! Seats: the state of each agent in a match, and the validation of its lines. No I/O.

use std::borrow::Cow;
use std::time::Duration;

use arena_model::{AgentId, Dialect, Disqualified, Owner, StartLimits, TimeControl, TimeLimits, Verdict};

use crate::reply::{Claim, MISNAMED, Reply, Unreadable};

/// The number of faults at which an agent is disqualified.
const TOO_MANY: u32 = 11;

const NO_TEXT: &str = "`agent_id` isn't a text";

/// The maximum length of a quoted line in a fault, in bytes.
const QUOTED: usize = 200;

/// The maximum length of a quoted line in the summary of a match, in bytes.
const SHORT: usize = 60;

#[derive(Debug)]
pub struct Seat {
    /// The seat's number, from 0.
    pub number: usize,
    pub id: AgentId,
    pub id_json: String,
    /// The ids of the match's players, from [`Seat::meet`].
    players: Vec<String>,
    /// The keys under which the agent receives the state.
    pub dialect: Dialect,
    pub name: String,
    pub version: Option<String>,
    pub out: Option<Disqualified>,
    pub faults: u32,
    /// The number of answers so far, of those to `set_agent_id` only the faults.
    pub answers: u32,
    /// The number of answers without a fault, but with actions that the game refused.
    pub refused: u32,
    /// The number of answers without a fault, but with a misspelled key for the actions. Replays don't contain it.
    pub misnamed: u32,
    /// The first fault or refused action, in words.
    pub first_error: Option<String>,
    /// The total time charged to the agent.
    pub used: Duration,
    /// The longest time charged for one step.
    pub longest: Duration,
    /// The time left in the time bank, for steps that exceed the step limit. With a clock, the time left on it.
    pub bank: Duration,
    pub ping_limit: Duration,
    /// The time control, if it differs from the match's limits.
    pub time_control: Option<TimeControl>,
    /// The number of moves until the base time of the clock is added again; 0 without such moves.
    pub moves_to_go: u32,
    /// The time charged for the step of this epoch, until the epoch is recorded.
    pub step_used: Option<Duration>,
    /// The `info` in the reply of this epoch, as JSON text, until the epoch is recorded.
    pub info: Option<String>,
    /// The actions that replace the agent's disqualification if its time is over in this epoch, as JSON text.
    pub on_time_over: Option<String>,
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
            answers: 0,
            refused: 0,
            misnamed: 0,
            first_error: None,
            used: Duration::ZERO,
            longest: Duration::ZERO,
            bank: Duration::from_millis(limits.bank_ms),
            ping_limit: Duration::from_millis(StartLimits::USUAL_MS),
            time_control: None,
            moves_to_go: 0,
            step_used: None,
            info: None,
            on_time_over: None,
            missing_ids: 0,
            owes_consent: false,
            fresh_faults: Vec::new(),
        }
    }

    /// Sets the time control, before the first step.
    pub fn set_time_control(&mut self, control: Option<TimeControl>) {
        self.time_control = control;
        if let Some(control) = control {
            self.bank = Duration::from_millis(control.limits().bank_ms);
        }
        if let Some(TimeControl::Clock { moves, .. }) = control {
            self.moves_to_go = moves;
        }
    }

    /// Returns the time limit of a step in a match with these limits, without the bank.
    pub fn step(&self, limits: TimeLimits) -> Duration {
        Duration::from_millis(self.time_control.map_or(limits, TimeControl::limits).step_ms)
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
        let faults = self.faults;
        self.read_consent(line);
        self.answers += self.faults - faults;
    }

    fn read_consent(&mut self, line: &[u8]) {
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
        self.answers += 1;
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
                None => {
                    self.info = reply.info().map(str::to_owned);
                    if reply.misnames_actions() {
                        self.misnamed += 1;
                        self.first_error.get_or_insert_with(|| MISNAMED.to_owned());
                    }
                    Some(reply.actions())
                }
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

    /// Charges the agent the time of a step. Time beyond the step limit is taken from the time bank. A clock then gets
    /// its increment, and after the last move of a period its base time.
    pub fn charge(&mut self, used: Duration, limits: TimeLimits) {
        self.used += used;
        self.longest = self.longest.max(used);
        self.step_used = Some(used);
        self.bank = self.bank.saturating_sub(used.saturating_sub(self.step(limits)));
        if let Some(TimeControl::Clock { base_ms, increment_ms, moves }) = self.time_control {
            self.bank += Duration::from_millis(increment_ms);
            if moves > 0 {
                self.moves_to_go = self.moves_to_go.saturating_sub(1);
                if self.moves_to_go == 0 {
                    (self.moves_to_go, self.bank) = (moves, self.bank + Duration::from_millis(base_ms));
                }
            }
        }
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

    /// Counts the last answer as one with refused actions. `reason` is the reason of the first refusal.
    pub fn note_refused(&mut self, reason: &str) {
        self.refused += 1;
        self.first_error.get_or_insert_with(|| quote(reason.as_bytes()));
    }

    fn fault(&mut self, line: &[u8], what: &str) {
        self.faults += 1;
        self.first_error.get_or_insert_with(|| format!("`{}`: {what}", quote(&line[..line.len().min(SHORT)])));
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
    fn the_first_error_is_kept_for_the_summary() {
        let mut seat = seat();
        let long = format!("{{\"agent_id\":\"me\",\"actions\":{}", "7".repeat(100));
        for line in [r#"{"agent_id":"me","actions":[]}"#, &long, r#"{"agent_id":"me","action":"UP"}"#, "oops"] {
            seat.validate_actions(line.as_bytes());
        }
        seat.note_refused("no such cell");
        assert_eq!((seat.answers, seat.faults, seat.misnamed, seat.refused), (4, 2, 1, 1));
        let first = seat.first_error.take().unwrap();
        let quoted = &long[..60];
        assert!(first.starts_with(&format!("`{quoted}`: the line isn't JSON")), "{first}");
        seat.validate_actions(br#"{"agent_id":"me","action":{"move":"UP"}}"#);
        assert_eq!(seat.first_error.as_deref(), Some(MISNAMED));
        seat.validate_actions(br#"{"agent_id":"me","action":"move","move":"UP"}"#);
        assert_eq!((seat.answers, seat.faults, seat.misnamed), (6, 2, 2));
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
    fn a_clock_gets_its_increment_and_its_time_for_the_next_moves() {
        let mut seat = seat();
        seat.set_time_control(Some("2/1+0.1".parse().unwrap()));
        assert_eq!((seat.bank_ms(), seat.step(LIMITS), seat.moves_to_go), (1000, Duration::ZERO, 2));
        seat.charge(Duration::from_millis(300), LIMITS);
        assert_eq!((seat.bank_ms(), seat.moves_to_go), (800, 1));
        seat.charge(Duration::from_millis(800), LIMITS);
        assert_eq!((seat.bank_ms(), seat.moves_to_go), (1100, 2));
        seat.set_time_control(Some("st=0.5".parse().unwrap()));
        seat.charge(Duration::from_millis(499), LIMITS);
        assert_eq!((seat.bank_ms(), seat.step(LIMITS)), (0, Duration::from_millis(500)));
    }

    #[test]
    fn the_info_of_a_valid_reply_is_kept_if_it_is_a_small_object() {
        let info = |info: &str| {
            let mut seat = seat();
            seat.validate_actions(format!(r#"{{"agent_id":"me","actions":[],"info":{info}}}"#).as_bytes());
            assert_eq!(seat.faults, 0);
            seat.info
        };
        assert_eq!(info(r#"{"cp":12}"#).as_deref(), Some(r#"{"cp":12}"#));
        assert_eq!(info("[1]"), None);
        assert_eq!(info("null"), None);
        assert_eq!(info(&format!(r#"{{"pv":"{}"}}"#, "x".repeat(4000))), None);
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
