//! Verifying replays: the game is played again from the seed with the recorded actions, and everything must come out the same.

use std::io::BufRead;

use arena_model::{AnyGame, Events, Seat, Seed, Setup};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::read::{EpochLine, Line, Replay, ReplayError, ResultLine};
use super::write::States;
use crate::play::{states, write_state};
use crate::report::{self, Disqualified};

/// What was found to agree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verified {
    /// The game's name.
    pub game: String,
    /// How many epochs were played.
    pub epochs: u64,
    /// How many states were compared, the final one among them.
    pub states: u64,
}

/// Plays a replay's actions again, and compares each state, what was taken, and the result.
///
/// What can't be told from a replay is whether agents really sent what it says, and what was rejected.
///
/// # Errors
/// Where the replay first says something else than the rules, with the line.
pub fn verify(from: impl BufRead) -> Result<Verified, ReplayError> {
    let mut replay = Replay::open(from)?;
    let mut again = Again::start(&replay)?;
    while let Some(line) = replay.next_line()? {
        let checked = match &line {
            Line::Epoch(epoch) => again.check_epoch(epoch),
            Line::Result(result) => again.check_result(result),
        };
        checked.map_err(|what| ReplayError::Line { line: replay.line(), what })?;
    }
    Ok(Verified { game: replay.header.game.clone(), epochs: again.epoch, states: again.compared })
}

/// The match, played again.
struct Again {
    game: Box<dyn AnyGame>,
    ids: Vec<arena_model::AgentId>,
    ids_json: Vec<u8>,
    out: Vec<Option<Disqualified>>,
    epoch: u64,
    compared: u64,
    states: Vec<Vec<u8>>,
    events: Events,
}

impl Again {
    fn start<R: BufRead>(replay: &Replay<R>) -> Result<Again, ReplayError> {
        let header = &replay.header;
        let wrong = |what: String| ReplayError::Line { line: 1, what };
        let game =
            arena_games::find(&header.game).ok_or_else(|| wrong(format!("there is no game `{}`", header.game)))?;
        let seed = Seed::from_revealed(&header.seed)
            .ok_or_else(|| wrong("the seed isn't 64 hexadecimal digits".to_owned()))?;
        if header.update_mode != game.mode {
            return Err(wrong(format!("`update_mode` isn't that of {}", header.game)));
        }
        let ids = replay.agent_ids()?;
        let game = game
            .start(&header.options, Setup { seed, agents: ids.clone() })
            .map_err(|error| wrong(error.to_string()))?;
        let config = game.config();
        if let Some((key, value)) = config.iter().find(|(key, value)| header.config.get(*key) != Some(*value)) {
            return Err(wrong(format!("`{key}` was another constant when this was played; it is {value} now")));
        }
        Ok(Again {
            ids_json: serde_json::to_vec(&ids).expect("ids are texts"),
            out: vec![None; ids.len()],
            states: vec![Vec::new(); ids.len()],
            ids,
            game,
            epoch: 0,
            compared: 0,
            events: Events::default(),
        })
    }

    fn check_epoch(&mut self, line: &EpochLine) -> Result<(), String> {
        if line.epoch == 0 && self.epoch == 0 {
            return self.disqualify(&line.disqualified);
        }
        if line.epoch != self.epoch + 1 {
            return Err(format!("epoch {} comes after epoch {}", line.epoch, self.epoch));
        }
        self.epoch = line.epoch;
        for (number, state) in self.states.iter_mut().enumerate() {
            state.clear();
            if self.out[number].is_none() && self.game.is_asked(Seat(number)) {
                write_state(&*self.game, number, line.epoch, &self.ids_json, state);
            }
        }
        self.compare_states(line.world_state.as_deref(), line.worlds.as_deref())?;
        let (of_game, of_protocol): (Vec<Disqualified>, Vec<Disqualified>) =
            line.disqualified.iter().cloned().partition(|out| out.verdict.is_of_the_game());
        self.disqualify(&of_protocol)?;
        let Some(actions) = &line.actions else { return Ok(()) };
        let actions = actions.get();
        let lists: Vec<Option<&RawValue>> =
            serde_json::from_str(actions).map_err(|error| format!("the actions can't be read: {error}"))?;
        let replies: Vec<Option<&str>> = lists.into_iter().map(|list| list.map(RawValue::get)).collect();
        let mut taken = Vec::new();
        self.game.play(&replies, &mut taken, &mut self.events);
        if taken != actions.as_bytes() {
            let taken = serde_json::from_slice(&taken).unwrap_or_default();
            return Err(format!("of these actions the rules take {}", shortly(&taken)));
        }
        let forfeited: Vec<usize> = self.events.forfeits().iter().map(|forfeit| forfeit.seat.0).collect();
        let recorded: Vec<usize> = of_game.iter().map(|out| out.seat).collect();
        if forfeited != recorded {
            return Err(format!("by the rules the seats {forfeited:?} forfeit, and the replay says {recorded:?}"));
        }
        self.disqualify(&of_game)
    }

    fn check_result(&mut self, line: &ResultLine) -> Result<(), String> {
        let in_game = self.out.iter().filter(|out| out.is_none()).count();
        if self.game.termination().is_none() && in_game >= self.out.len().min(2) {
            return Err("the match isn't over yet".to_owned());
        }
        for (number, state) in self.states.iter_mut().enumerate() {
            state.clear();
            write_state(&*self.game, number, self.epoch + 1, &self.ids_json, state);
        }
        self.compare_states(line.world_state.as_deref(), line.worlds.as_deref())?;
        let scores = report::final_scores(&*self.game, &self.out);
        let ranks = report::ranks(&scores, &self.out);
        let outcome = report::outcome(&*self.game, &self.ids, &self.out, &ranks);
        let expected = json!({"outcome": outcome, "epochs": self.epoch, "scores": scores, "ranks": ranks});
        let recorded = json!(line.result);
        match recorded == expected {
            true => Ok(()),
            false => Err(format!("the result is another one: {}", differences("", &recorded, &expected))),
        }
    }

    fn disqualify(&mut self, out: &[Disqualified]) -> Result<(), String> {
        for disqualified in out {
            let seat = disqualified.seat;
            let place = self.out.get_mut(seat).ok_or_else(|| format!("there is no seat {seat}"))?;
            if place.replace(disqualified.clone()).is_some() {
                return Err(format!("seat {seat} is disqualified a second time"));
            }
            self.game.disqualify(Seat(seat));
        }
        Ok(())
    }

    fn compare_states(&mut self, one: Option<&RawValue>, each: Option<&RawValue>) -> Result<(), String> {
        let wrap = |members: &[u8]| format!("{{{}}}", String::from_utf8_lossy(members));
        let (expected, recorded) = match states(self.game.game_type().mode, &self.states) {
            States::None => ("null".to_owned(), one.or(each)),
            States::One(members) => (wrap(members), one),
            States::Each(worlds) => {
                (format!("[{}]", worlds.iter().map(|world| wrap(world)).collect::<Vec<_>>().join(",")), each)
            }
        };
        let recorded = recorded.map_or("null", RawValue::get);
        if recorded == expected {
            self.compared += 1;
            return Ok(());
        }
        let read = |text: &str| serde_json::from_str::<Value>(text).unwrap_or_default();
        let (recorded, expected) = (read(recorded), read(&expected));
        let path = if expected.is_array() { "worlds" } else { "" };
        Err(format!("the state is another one: {}", differences(path, &recorded, &expected)))
    }
}

/// More differences than these are only counted.
const MAX_DIFFERENCES: usize = 3;

/// Where two JSON values differ, for people. `path` leads to them, and is empty for a whole line or state.
fn differences(path: &str, recorded: &Value, expected: &Value) -> String {
    let mut found = Vec::new();
    find_differences(path, recorded, expected, &mut found);
    match found.len() {
        // Equal values, written in another way.
        0 => "it isn't written as this program writes it".to_owned(),
        count if count <= MAX_DIFFERENCES => found.join("; "),
        count => format!("{}; and {} more", found[..MAX_DIFFERENCES].join("; "), count - MAX_DIFFERENCES),
    }
}

/// Adds a sentence for each value that differs, as deep inside as it can be found. `path` leads there: `snakes.ada.positions[0]`.
fn find_differences(path: &str, recorded: &Value, expected: &Value, found: &mut Vec<String>) {
    match (recorded, expected) {
        (Value::Object(recorded), Value::Object(expected)) => {
            let inner = |key: &str| if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") };
            for (key, expected) in expected {
                match recorded.get(key) {
                    Some(recorded) => find_differences(&inner(key), recorded, expected, found),
                    None => found.push(format!("{} is missing", inner(key))),
                }
            }
            let added = recorded.keys().filter(|key| !expected.contains_key(*key));
            found.extend(added.map(|key| format!("{} isn't there by the rules", inner(key))));
        }
        (Value::Array(recorded), Value::Array(expected)) if recorded.len() == expected.len() => {
            for (index, (recorded, expected)) in recorded.iter().zip(expected).enumerate() {
                find_differences(&format!("{path}[{index}]"), recorded, expected, found);
            }
        }
        _ if recorded == expected => {}
        _ => {
            let path = if path.is_empty() { "it" } else { path };
            found.push(format!("{path} is {}, and by the rules {}", shortly(recorded), shortly(expected)));
        }
    }
}

/// A value as text that fits into a sentence.
fn shortly(value: &Value) -> String {
    const MOST: usize = 60;
    let text = value.to_string();
    match text.char_indices().nth(MOST) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}
