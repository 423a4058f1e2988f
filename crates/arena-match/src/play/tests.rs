//! Tests of the match loop, with agents that are threads behind real pipes.

use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::ops::RangeInclusive;
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::Instant;

use arena_model::Dialect;
use arena_model::{
    Actions, Events, Game, GameType, IndexedAction, MatchResult, SeatResult, Setup, UpdateMode, Verdict, agent_ids,
};
use expect_test::{expect, expect_file};
use rustix::fs::{OFlags, fcntl_setfl};
use rustix::pipe::{PipeFlags, pipe_with};
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::*;
use crate::body::{Body, End, Log};
use crate::conversation::STARTUP;
use crate::link::Link;

/// The tolerance of times on a busy machine.
const SLACK: Duration = Duration::from_secs(4);

/// Time limits so long that only agents in tests of timeouts reach them.
const LONG: TimeLimits = TimeLimits { step_ms: 20_000, bank_ms: 500 };

/// A game in which each agent sends a number in each epoch. An agent's score is the sum of its numbers; the number 13
/// loses the game.
struct Tally {
    config: TallyConfig,
    said: Vec<Vec<u64>>,
    epochs: u64,
    gone: Vec<usize>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct TallyConfig {
    n_epochs: u64,
    /// True if the agents move one after the other.
    by_turns: bool,
}

impl Default for TallyConfig {
    fn default() -> TallyConfig {
        TallyConfig { n_epochs: 3, by_turns: false }
    }
}

#[derive(Serialize, Deserialize)]
#[serde(tag = "action", rename_all = "snake_case")]
enum Say {
    Say { number: u64 },
}

impl Game for Tally {
    const NAME: &'static str = "tally";
    const DESCRIPTION: &'static str = "Numbers are said.";
    const MODE: UpdateMode = UpdateMode::Simultaneous;
    const SEATS: RangeInclusive<usize> = 1..=4;
    const LIMITS: TimeLimits = LONG;
    type Config = TallyConfig;
    type Action = Say;

    fn new(config: TallyConfig, setup: Setup) -> Result<Tally, OptionsError> {
        Ok(Tally { config, said: vec![Vec::new(); setup.agents.len()], epochs: 0, gone: Vec::new() })
    }

    fn config(&self) -> &TallyConfig {
        &self.config
    }

    fn is_asked(&self, seat: SeatNumber) -> bool {
        !self.config.by_turns || self.epochs as usize % self.said.len() == seat.0
    }

    fn write_state(&self, _seat: SeatNumber, out: &mut Vec<u8>) {
        out.extend_from_slice(format!("\"said\":{}", json!(self.said)).as_bytes());
    }

    fn step(&mut self, actions: &Actions<Say>, events: &mut Events) {
        self.epochs += 1;
        for seat in 0..self.said.len() {
            for IndexedAction { index, action: Say::Say { number } } in actions.of(SeatNumber(seat)) {
                match number {
                    0 => events.reject(SeatNumber(seat), *index, "0 is nothing"),
                    13 => events.forfeit(SeatNumber(seat), Verdict::IllegalMove, "said 13"),
                    number => self.said[seat].push(*number),
                }
            }
        }
    }

    fn disqualify(&mut self, seat: SeatNumber) {
        assert!(!self.gone.contains(&seat.0), "disqualified twice");
        self.gone.push(seat.0);
    }

    fn termination(&self) -> Option<&'static str> {
        (self.epochs >= self.config.n_epochs).then_some("GAME_ENDED")
    }

    fn scores(&self) -> Vec<f64> {
        self.said.iter().map(|said| said.iter().sum::<u64>() as f64).collect()
    }
}

static TALLY: GameType = GameType::of::<Tally>();

/// The agent's ends of the pipes to the match.
struct Wire {
    input: BufReader<File>,
    output: File,
    heard: Arc<Mutex<Vec<String>>>,
    id: String,
    /// True once the script has closed its output and keeps running.
    stays: Arc<AtomicBool>,
}

impl Wire {
    /// Closes the output, and keeps running.
    fn close_output(&mut self) {
        self.stays.store(true, Ordering::Relaxed);
        self.output = File::open("/dev/null").unwrap();
    }

    /// Reads the next message, or null at the end.
    fn read(&mut self) -> Value {
        let mut line = String::new();
        if self.input.read_line(&mut line).unwrap_or(0) == 0 {
            return Value::Null;
        }
        let message: Value = serde_json::from_str(&line).unwrap();
        if let Some(id) = message["set_agent_id"].as_str() {
            self.id = id.to_owned();
        }
        self.heard.lock().unwrap().push(line);
        message
    }

    /// Writes the text in one call. The pipe may be closed, so errors are ignored.
    fn write(&mut self, text: &str) {
        let _ = self.output.write_all(text.as_bytes());
    }

    fn answer(&self, number: u64) -> String {
        format!("{}\n", json!({"agent_id": self.id, "actions": [{"action": "say", "number": number}]}))
    }

    fn say(&mut self, number: u64) {
        let answer = self.answer(number);
        self.write(&answer);
    }

    fn pong(&mut self) {
        self.read();
        self.write("{\"pong\":1}\n");
    }

    fn shake_hands(&mut self) {
        self.pong();
        self.read();
        let consent = format!("{}\n", json!({"agent_id": self.id}));
        self.write(&consent);
    }

    /// Returns the epoch of the next state, or `None` at the end.
    fn epoch(&mut self) -> Option<u64> {
        let message = self.read();
        let state = if message["world_state"].is_object() { &message["world_state"] } else { &message };
        state["epoch"].as_u64()
    }
}

/// The behavior of an agent from its start to its end.
type Script = Box<dyn FnOnce(&mut Wire) + Send>;

fn script(script: impl FnOnce(&mut Wire) + Send + 'static) -> Script {
    Box::new(script)
}

/// Returns a script with a correct handshake that calls `act` for each state.
fn each(mut act: impl FnMut(&mut Wire, u64) + Send + 'static) -> Script {
    script(move |wire| {
        wire.shake_hands();
        while let Some(epoch) = wire.epoch() {
            act(wire, epoch);
        }
    })
}

/// Returns a script that says the same number in each epoch.
fn says(number: u64) -> Script {
    each(move |wire, _| wire.say(number))
}

/// The body of an agent that is a thread.
struct Thread {
    thread: Option<JoinHandle<()>>,
    end: End,
    is_flooding: bool,
    stays: Arc<AtomicBool>,
}

impl Thread {
    fn has_ended_within(&self, time: Duration) -> bool {
        let by = Instant::now() + time;
        while self.thread.as_ref().is_some_and(|thread| !thread.is_finished()) && Instant::now() < by {
            thread::sleep(Duration::from_millis(1));
        }
        self.thread.as_ref().is_none_or(JoinHandle::is_finished)
    }
}

impl Body for Thread {
    fn ended(&mut self, patience: Duration) -> Option<End> {
        // Waiting for a thread that doesn't end would only slow down the tests.
        let time = if self.stays.load(Ordering::Relaxed) { Duration::ZERO } else { patience + SLACK };
        self.has_ended_within(time).then(|| self.end.clone())
    }

    fn is_flooding(&self) -> bool {
        self.is_flooding
    }

    fn kill(&mut self) {}

    fn finish(&mut self, grace: Duration) -> Log {
        // A thread that is blocked in a write ends later, when the pipes are closed.
        // Each other thread ends, and a test reads after it which messages the thread got.
        if self.has_ended_within(grace + SLACK)
            && let Some(thread) = self.thread.take()
        {
            thread.join().unwrap();
        }
        Log::default()
    }
}

/// A match that a test prepares and plays.
struct Arena {
    limits: TimeLimits,
    options: Value,
    players: Vec<Player>,
    heard: Vec<Arc<Mutex<Vec<String>>>>,
    called_off: Arc<AtomicBool>,
}

struct TestRun {
    played: Result<PlayedMatch, MatchError>,
    heard: Vec<Vec<String>>,
    replay: String,
}

impl Arena {
    fn new(limits: TimeLimits, options: Value) -> Arena {
        Arena { limits, options, players: Vec::new(), heard: Vec::new(), called_off: Arc::default() }
    }

    fn seat(self, script: Script) -> Arena {
        self.seat_with(Dialect::Both, false, false, script)
    }

    fn seat_with(mut self, dialect: Dialect, is_out_of_memory: bool, is_flooding: bool, script: Script) -> Arena {
        let (their_input, input) = pipe_with(PipeFlags::CLOEXEC).unwrap();
        let (output, their_output) = pipe_with(PipeFlags::CLOEXEC).unwrap();
        for fd in [input.as_fd(), output.as_fd()] {
            fcntl_setfl(fd, OFlags::NONBLOCK).unwrap();
        }
        let number = self.players.len();
        let name = ["a", "b", "c", "d"][number];
        let (heard, stays) = (Arc::default(), Arc::<AtomicBool>::default());
        let mut wire = Wire {
            input: BufReader::new(their_input.into()),
            output: their_output.into(),
            heard: Arc::clone(&heard),
            id: String::new(),
            stays: Arc::clone(&stays),
        };
        let end = End {
            sentence: if is_out_of_memory { "exceeded the memory limit" } else { "exited with code 1" }.to_owned(),
            is_out_of_memory,
            code: None,
            left_behind: 0,
        };
        self.heard.push(heard);
        self.players.push(Player {
            seat: Seat::new(number, name.parse().unwrap(), name.to_owned(), None, dialect, self.limits),
            link: Link::new(input, output),
            body: Box::new(Thread { thread: Some(thread::spawn(move || script(&mut wire))), end, is_flooding, stays }),
        });
        self
    }

    fn play(self) -> TestRun {
        self.play_game(&TALLY)
    }

    fn play_game(self, game: &'static GameType) -> TestRun {
        let Value::Object(options) = self.options else { unreachable!("options are an object") };
        let seed = Seed([7; 32]);
        let agents = self.players.iter().map(|player| player.seat.id.clone()).collect();
        let game = game.start(&options, Setup { seed: seed.clone(), agents }).unwrap();
        let mut replay = Vec::new();
        let mut run = MatchRun::new(game, seed, &options, self.limits, self.players, &self.called_off);
        run.recorder = Some(Recorder::new(&mut replay));
        let played = run.play();
        let heard = self.heard.iter().map(|heard| heard.lock().unwrap().clone()).collect();
        TestRun { played, heard, replay: String::from_utf8(replay).unwrap() }
    }
}

impl TestRun {
    #[track_caller]
    fn result(&self) -> &MatchResult<SeatedAgent> {
        &self.played.as_ref().unwrap().result
    }

    /// Returns score, rank, faults and disqualification of each seat.
    #[track_caller]
    fn summary(&self) -> String {
        let MatchResult { outcome, epochs, seats, .. } = self.result();
        let mut actual = format!("{} after {epochs}, {} wins\n", outcome.termination, outcome.winner);
        for SeatResult { agent, score, rank, faults, verdict, detail, .. } in seats {
            let out = verdict.zip(detail.as_deref()).map(|(verdict, detail)| format!(", {verdict}: {detail}"));
            actual += &format!("{} score {score} rank {rank} faults {faults}{}\n", agent.id, out.unwrap_or_default());
        }
        actual
    }

    fn stop(&self, seat: usize) -> Option<String> {
        let last: Value = serde_json::from_str(self.heard[seat].last()?).unwrap();
        Some(last["stop"]["reason"].as_str()?.to_owned())
    }

    /// Returns the agent's remaining time bank in each state that it received.
    fn banks(&self, seat: usize) -> Vec<u64> {
        let message = |line: &String| serde_json::from_str::<Value>(line).unwrap();
        self.heard[seat]
            .iter()
            .filter_map(|line| message(line)["world_state"]["remaining_overage_ms"].as_u64())
            .collect()
    }
}

/// Plays a match of an agent against one that says 1. Returns a line with the summary and the reasons in the `stop`
/// messages of both, after a description of the agent.
fn play(agent: &str, n_epochs: u64, script: impl FnOnce(&mut Wire) + Send + 'static) -> String {
    let actual = Arena::new(LONG, json!({"n_epochs": n_epochs})).seat(Box::new(script)).seat(says(1)).play();
    let stops = format!("stop {:?} {:?}", actual.stop(0), actual.stop(1));
    format!("{agent}: {}{stops}\n", actual.summary().replace('\n', " | "))
}

#[test]
fn who_fails_at_the_handshake_never_plays() {
    let transcript = [
        play("exits at once", 3, |_| {}),
        play("answers without `pong`", 3, |wire| {
            wire.read();
            wire.write("{\"pong\":null}\n");
            while !wire.read().is_null() {}
        }),
        play("exits after the ping", 3, |wire| {
            wire.pong();
            wire.read();
        }),
        play("exits after an unknown id", 3, |wire| {
            wire.pong();
            wire.read();
            wire.write("{\"agent_id\":\"x\"}\n");
            wire.read();
        }),
        play("has another's id", 3, |wire| {
            wire.pong();
            wire.read();
            wire.write("{\"agent_id\":\"b\"}\n");
            while !wire.read().is_null() {}
        }),
    ];
    expect![[r#"
        exits at once: TAINTED after 0, b wins | a score -10 rank 2 faults 0, STARTUP_FAIL: exited with code 1 | b score 0 rank 1 faults 0 | stop None Some("end_of_game")
        answers without `pong`: TAINTED after 0, b wins | a score -10 rank 2 faults 0, PING_FAIL: answered the ping without `pong`: {"pong":null} | b score 0 rank 1 faults 0 | stop Some("end_of_game") Some("end_of_game")
        exits after the ping: TAINTED after 0, b wins | a score -10 rank 2 faults 0, STARTUP_FAIL: exited with code 1 | b score 0 rank 1 faults 0 | stop None Some("end_of_game")
        exits after an unknown id: TAINTED after 1, b wins | a score -10 rank 2 faults 1, CRASHED: exited with code 1 | b score 0 rank 1 faults 0 | stop None Some("end_of_game")
        has another's id: TAINTED after 0, b wins | a score -10 rank 2 faults 0, AGENT_ID_SPOOFING: spoke as "b" | b score 0 rank 1 faults 0 | stop Some("cheating_detected") Some("end_of_game")
    "#]].assert_eq(&transcript.concat());
}

#[test]
fn who_is_silent_at_the_ping_is_waited_for_five_seconds() {
    let began = Instant::now();
    expect![[r#"
        is silent: TAINTED after 0, b wins | a score -10 rank 2 faults 0, PING_FAIL: no answer to the ping within 5000 ms | b score 0 rank 1 faults 0 | stop Some("end_of_game") Some("end_of_game")
    "#]].assert_eq(&play("is silent", 3, |wire| while !wire.read().is_null() {}));
    assert!(began.elapsed() >= STARTUP && began.elapsed() < STARTUP + SLACK);
}

#[test]
fn each_failure_in_the_game_has_its_verdict() {
    let ends = each(|wire, epoch| if epoch == 1 { wire.say(2) } else { wire.close_output() });
    let cheats = each(|wire, _| {
        wire.id = "b".to_owned();
        wire.say(2);
    });
    let transcript = [
        play("closes its output", 3, ends),
        play("writes endlessly", 3, |wire| {
            wire.shake_hands();
            wire.read();
            wire.write(&"x".repeat(2 << 20));
        }),
        play("uses another's id", 3, cheats),
        play("loses by the rules", 3, each(|wire, epoch| wire.say(if epoch == 2 { 13 } else { 2 }))),
    ];
    expect![[r#"
        closes its output: TAINTED after 2, b wins | a score -10 rank 2 faults 0, CRASHED: closed its output | b score 1 rank 1 faults 0 | stop Some("end_of_game") Some("end_of_game")
        writes endlessly: TAINTED after 1, b wins | a score -10 rank 2 faults 0, OUTPUT_LIMIT: wrote a line or unrequested output beyond the limit | b score 0 rank 1 faults 0 | stop None Some("end_of_game")
        uses another's id: TAINTED after 1, b wins | a score -10 rank 2 faults 0, AGENT_ID_SPOOFING: spoke as "b" | b score 0 rank 1 faults 0 | stop Some("cheating_detected") Some("end_of_game")
        loses by the rules: TAINTED after 2, b wins | a score -10 rank 2 faults 0, ILLEGAL_MOVE: said 13 | b score 2 rank 1 faults 0 | stop Some("end_of_game") Some("end_of_game")
    "#]].assert_eq(&transcript.concat());
}

#[test]
fn what_ended_an_agent_is_told_apart() {
    let ends = |is_out_of_memory, is_flooding, limits, agent| {
        // The opponent gets no request, so that the test doesn't depend on the opponent's time.
        let arena = Arena::new(limits, json!({ "by_turns": true }));
        let arena = arena.seat_with(Dialect::Both, is_out_of_memory, is_flooding, agent);
        arena.seat(says(1)).play().summary()
    };
    let gone = || {
        script(|wire| {
            wire.shake_hands();
            wire.read();
        })
    };
    expect![[r#"
        TAINTED after 1, b wins
        a score -10 rank 2 faults 0, MEMORY_LIMIT: exceeded the memory limit
        b score 0 rank 1 faults 0
    "#]]
    .assert_eq(&ends(true, false, LONG, gone()));
    let short = TimeLimits { step_ms: 50, bank_ms: 0 };
    let stuck = || each(|_, _| {});
    expect![[r#"
        TAINTED after 1, b wins
        a score -10 rank 2 faults 0, OUTPUT_LIMIT: wrote a line or unrequested output beyond the limit
        b score 0 rank 1 faults 0
    "#]]
    .assert_eq(&ends(false, true, short, stuck()));
}

#[test]
fn ten_faults_are_forgiven() {
    let faulty = |count: u64, fault: &'static str| {
        let agent = each(move |wire, epoch| if epoch <= count { wire.write(fault) } else { wire.say(2) });
        play(&format!("{count} times {}", fault.trim_end()), 12, agent)
    };
    let spoken = "{\"agent_id\":\"B\",\"actions\":[{\"action\":\"say\",\"number\":5}]}\n";
    let transcript = [faulty(10, "oops\n"), faulty(11, "oops\n"), faulty(11, "{\"actions\":[]}\n"), faulty(10, spoken)];
    expect![[r#"
        10 times oops: GAME_ENDED after 12, b wins | a score 4 rank 2 faults 10 | b score 12 rank 1 faults 0 | stop Some("end_of_game") Some("end_of_game")
        11 times oops: TAINTED after 11, b wins | a score -10 rank 2 faults 11, TOO_MANY_ERRORS: 11 faults, the last one: the line isn't JSON (expected value at line 1 column 1); logs belong on stderr | b score 10 rank 1 faults 0 | stop Some("end_of_game") Some("end_of_game")
        11 times {"actions":[]}: TAINTED after 11, b wins | a score -10 rank 2 faults 11, MISSING_AGENT_ID: 11 replies without `agent_id` | b score 10 rank 1 faults 0 | stop Some("end_of_game") Some("end_of_game")
        10 times {"agent_id":"B","actions":[{"action":"say","number":5}]}: GAME_ENDED after 12, b wins | a score 4 rank 2 faults 10 | b score 12 rank 1 faults 0 | stop Some("end_of_game") Some("end_of_game")
    "#]].assert_eq(&transcript.concat());
}

#[test]
fn actions_that_are_not_taken_are_no_faults() {
    let actions = r#"[{"action":"say","number":"1"},7,{"action":"say","number":0},{"action":"say","number":5}]"#;
    let transcript = [actions, "null"].map(|actions| {
        let line = move |wire: &Wire| format!("{{\"agent_id\":\"{}\",\"actions\":{actions}}}\n", wire.id);
        play(actions, 2, each(move |wire, _| wire.write(&line(wire))))
    });
    expect![[r#"
        [{"action":"say","number":"1"},7,{"action":"say","number":0},{"action":"say","number":5}]: GAME_ENDED after 2, a wins | a score 10 rank 1 faults 0 | b score 2 rank 2 faults 0 | stop Some("end_of_game") Some("end_of_game")
        null: GAME_ENDED after 2, b wins | a score 0 rank 2 faults 0 | b score 2 rank 1 faults 0 | stop Some("end_of_game") Some("end_of_game")
    "#]].assert_eq(&transcript.concat());
}

#[test]
fn the_deadline_is_the_limit_and_the_bank_and_is_kept() {
    let limits = TimeLimits { step_ms: 60, bank_ms: 90 };
    let waited = Arc::new(Mutex::new(Duration::ZERO));
    let late = {
        let waited = Arc::clone(&waited);
        each(move |wire, _| {
            let asked = Instant::now();
            // The next message is `stop`.
            wire.read();
            *waited.lock().unwrap() = asked.elapsed();
        })
    };
    // The opponent gets no request.
    let actual = Arena::new(limits, json!({ "by_turns": true })).seat(late).seat(says(1)).play();
    expect![[r#"
        TAINTED after 1, b wins
        a score -10 rank 2 faults 0, TIMEOUT: no answer within 150 ms (60 ms a step and 90 ms in the bank)
        b score 0 rank 1 faults 0
    "#]]
    .assert_eq(&actual.summary());
    assert_eq!(actual.result().seats[0].waited_ms, 150.0);
    let waited = *waited.lock().unwrap();
    assert!(waited < Duration::from_millis(150) + SLACK, "{waited:?}");
}

#[test]
fn the_bank_pays_for_what_is_beyond_the_limit_only() {
    let limits = TimeLimits { step_ms: 3000, bank_ms: 12000 };
    let nap = |ms| {
        each(move |wire, _| {
            thread::sleep(Duration::from_millis(ms));
            wire.say(1);
        })
    };
    let actual = Arena::new(limits, json!({})).seat(nap(3500)).seat(nap(20)).seat(nap(3450)).play();
    // The agents' clocks run in parallel: no agent is charged for the time that another one uses.
    assert_eq!(actual.banks(1), [12000; 3]);
    // About half a second each time, and far less than the total.
    for seat in [0, 2] {
        let banks = actual.banks(seat);
        let paid: Vec<u64> = banks.windows(2).map(|pair| pair[0] - pair[1]).collect();
        assert!(paid.iter().all(|paid| (100..3500).contains(paid)), "{banks:?}");
        let waited_ms = actual.result().seats[seat].waited_ms;
        assert!(waited_ms >= 3.0 * 3100.0, "{waited_ms}");
    }
}

#[test]
fn silence_at_set_agent_id_is_consent() {
    let transcript = play("says nothing", 3, |wire| {
        wire.pong();
        wire.read();
        while wire.epoch().is_some() {
            wire.say(2);
        }
    });
    expect![[r#"
        says nothing: GAME_ENDED after 3, a wins | a score 6 rank 1 faults 0 | b score 3 rank 2 faults 0 | stop Some("end_of_game") Some("end_of_game")
    "#]].assert_eq(&transcript);
    // The late answer doesn't count for the first state.
    let late = script(|wire| {
        wire.pong();
        wire.read();
        wire.epoch();
        let consent = format!("{}\n", json!({"agent_id": wire.id, "agent_name": "Late"}));
        wire.write(&consent);
        wire.say(2);
        while wire.epoch().is_some() {
            wire.say(2);
        }
    });
    let actual = Arena::new(LONG, json!({})).seat(late).seat(says(1)).play();
    let first = &actual.result().seats[0];
    assert_eq!((first.score, first.agent.name.as_str()), (6.0, "Late"));
}

#[test]
fn no_line_counts_for_another_epoch_than_its_own() {
    // Two answers in one write: the second is discarded and doesn't answer the next state.
    let double = each(|wire, epoch| {
        let both = wire.answer(epoch) + &wire.answer(100);
        wire.write(&both);
    });
    // The rest of a line that began before the state is discarded with its beginning.
    let torn = each(|wire, epoch| {
        let whole = wire.answer(epoch);
        let rest = if epoch == 1 { "" } else { "100}]}\n" };
        wire.write(&format!("{rest}{whole}{}", whole.split_at(40).0));
    });
    expect![[r#"
        answers twice: GAME_ENDED after 3, a wins | a score 6 rank 1 faults 0 | b score 3 rank 2 faults 0 | stop Some("end_of_game") Some("end_of_game")
        writes half a line: GAME_ENDED after 3, a wins | a score 6 rank 1 faults 0 | b score 3 rank 2 faults 0 | stop Some("end_of_game") Some("end_of_game")
    "#]].assert_eq(&(play("answers twice", 3, double) + &play("writes half a line", 3, torn)));
}

#[test]
fn three_go_on_without_one_and_two_do_not() {
    let leaves = || each(|wire, epoch| if epoch < 2 { wire.say(9) } else { wire.close_output() });
    let arena = || Arena::new(LONG, json!({"n_epochs": 5}));
    let three = arena().seat(says(1)).seat(leaves()).seat(says(2)).play();
    assert_eq!(three.heard[0].len(), 2 + 5 + 1);
    let fewer = [arena().seat(says(1)).seat(leaves()), arena().seat(says(1)), arena().seat(leaves())];
    expect_file!["tests/three_go_on_without_one_and_two_do_not.txt"]
        .assert_eq(&(three.summary() + &fewer.map(|arena| arena.play().summary()).concat()));
}

#[test]
fn only_who_is_to_move_is_asked() {
    let actual = Arena::new(LONG, json!({"n_epochs": 5, "by_turns": true})).seat(says(1)).seat(says(2)).play();
    expect![[r#"
        GAME_ENDED after 5, b wins
        a score 3 rank 2 faults 0
        b score 4 rank 1 faults 0
    "#]]
    .assert_eq(&actual.summary());
    let epochs = |seat: usize| -> Vec<u64> {
        let message = |line: &String| serde_json::from_str::<Value>(line).unwrap();
        actual.heard[seat].iter().filter_map(|line| message(line)["world_state"]["epoch"].as_u64()).collect()
    };
    assert_eq!((epochs(0), epochs(1)), (vec![1, 3, 5], vec![2, 4]));
}

#[test]
fn in_a_world_of_its_own_each_agent_sees_itself_alone() {
    let actual = Arena::new(LONG, json!({"n_epochs": 2})).seat(says(1)).seat(says(2));
    let actual = actual.play_game(arena_games::game("cherry_picker").unwrap());
    for (seat, id) in ["a", "b"].into_iter().enumerate() {
        let states: Vec<Value> = actual.heard[seat].iter().map(|line| serde_json::from_str(line).unwrap()).collect();
        let owners: Vec<&Value> = (states.iter().filter_map(|message| message["world_state"]["bases"].as_array()))
            .flatten()
            .map(|base| &base["owner_id"])
            .collect();
        assert_eq!(owners, [id, id]);
    }
}

#[test]
fn in_a_world_of_its_own_the_last_one_plays_on() {
    let leaves = || each(|wire, _| wire.close_output());
    let play = |arena: Arena| arena.play_game(arena_games::game("cherry_picker").unwrap());
    let arena = || Arena::new(LONG, json!({"n_epochs": 4}));
    let actual = play(arena().seat(leaves()).seat(says(1)));
    expect![[r#"
        GAME_ENDED after 4, b wins
        a score -10 rank 2 faults 0, CRASHED: closed its output
        b score 0 rank 1 faults 0
    "#]]
    .assert_eq(&actual.summary());
    assert_eq!(actual.result().outcome.tainted_reason, Some(Verdict::Crashed));
    assert_eq!(actual.heard[1].len(), 2 + 4 + 1);
    // If all agents leave, the match ends with the last one.
    let actual = play(arena().seat(leaves()).seat(leaves()).seat(leaves()));
    expect![[r#"
        TAINTED after 1, DRAW wins
        a score -10 rank 1 faults 0, CRASHED: closed its output
        b score -10 rank 1 faults 0, CRASHED: closed its output
        c score -10 rank 1 faults 0, CRASHED: closed its output
    "#]]
    .assert_eq(&actual.summary());
}

#[test]
fn two_that_fail_at_once_both_lose() {
    let cheat = |id: &'static str| {
        each(move |wire, _| {
            wire.id = id.to_owned();
            wire.say(1);
        })
    };
    let actual = Arena::new(LONG, json!({})).seat(cheat("b")).seat(cheat("a")).play();
    expect![[r#"
        TAINTED after 1, DRAW wins
        a score -10 rank 1 faults 0, AGENT_ID_SPOOFING: spoke as "b"
        b score -10 rank 1 faults 0, AGENT_ID_SPOOFING: spoke as "a"
    "#]]
    .assert_eq(&actual.summary());
}

#[test]
fn equal_replies_give_equal_replays() {
    let replay = |nap_ms: u64| {
        let agent = each(move |wire, epoch| {
            thread::sleep(Duration::from_millis(nap_ms));
            if epoch == 2 { wire.write("oops\n") } else { wire.say(epoch) }
        });
        let cheat = each(|wire, epoch| {
            if epoch == 3 {
                wire.id = "a".to_owned();
            }
            wire.say(0);
        });
        Arena::new(LONG, json!({"n_epochs": 4})).seat(agent).seat(says(2)).seat(cheat).play().replay
    };
    let first = replay(0);
    assert_eq!(first, replay(20));
    assert_eq!(first.lines().count(), 6);
}

#[test]
fn a_replay_gives_the_result_of_its_match() {
    let chatty = script(|wire| {
        wire.pong();
        wire.read();
        wire.write("hello\n");
        while wire.epoch().is_some() {
            wire.say(1);
        }
    });
    let mut arena = Arena::new(LONG, json!({"n_epochs": 2})).seat(chatty).seat(says(1));
    for (number, id) in agent_ids(&Seed([7; 32]), 2).into_iter().enumerate() {
        arena.players[number].seat = Seat::new(number, id, number.to_string(), None, Dialect::Both, LONG);
    }
    let actual = arena.play_game(arena_games::game("cherry_picker").unwrap());
    let result = actual.result().clone().with_agents(|_, agent| agent.name);
    assert_eq!(result.seats[0].faults, 1);
    let verified = crate::replay::verified_result(actual.replay.as_bytes()).unwrap();
    assert!(verified.result.is_same(&result), "{:?}\n{result:?}", verified.result);
}

#[test]
fn agents_read_what_the_protocol_says() {
    let mut arena = Arena::new(LONG, json!({"n_epochs": 1}));
    for dialect in [Dialect::Both, Dialect::Spec, Dialect::Flat] {
        arena = arena.seat_with(dialect, false, false, says(2));
    }
    let actual = arena.play();
    expect_file!["tests/agents_read_what_the_protocol_says.txt"].assert_eq(&actual.heard.concat().concat());
}

#[test]
fn a_match_that_is_called_off_ends_soon() {
    let arena = Arena::new(LONG, json!({}));
    let called_off = Arc::clone(&arena.called_off);
    let asleep = each(move |wire, _| {
        called_off.store(true, Ordering::Relaxed);
        wire.read();
    });
    let began = Instant::now();
    let actual = arena.seat(asleep).seat(says(1)).play();
    assert!(matches!(actual.played, Err(MatchError::CalledOff)));
    assert!(began.elapsed() < SLACK);
}
