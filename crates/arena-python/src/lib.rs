//! The extension module `arena_agents._rules`: matches without processes, clocks and files, for training environments.
//!
//! A [`RulesMatch`] is a match of any game or challenge as the match runner plays it: equal options, seed and actions
//! give equal states, scores and results. States, configs and actions are JSON texts of the protocol. `clients/python`
//! contains the environments on top of it.

mod bots;
mod snake;

use std::sync::{Mutex, MutexGuard};

use arena_house::MatchBot;
use arena_model::{AgentId, Disqualified, GameType, Match, Seat, Seed, Setup, TAINTED_SCORE, Verdict, agent_ids};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

/// Returns the names of all games and challenges, with the allowed numbers of agents and the update mode of each.
#[pyfunction]
fn games() -> Vec<(&'static str, usize, usize, String)> {
    let mode = |game: &GameType| json!(game.mode).as_str().unwrap_or_default().to_owned();
    arena_games::games().map(|game| (game.name, *game.seats.start(), *game.seats.end(), mode(game))).collect()
}

/// A match, which Python's threads may share.
#[pyclass(frozen, module = "arena_agents._rules")]
struct RulesMatch(Mutex<Inner>);

struct Inner {
    play: Match,
    start: StartOptions,
    seed: Seed,
    ids: Vec<AgentId>,
    bots: Vec<Option<(String, MatchBot)>>,
    /// The accepted actions of all epochs, with which a copy repeats the match.
    past: Vec<PastEpoch>,
    state: Vec<u8>,
}

/// The parameters that determine a match, besides the actions.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct StartOptions {
    game: String,
    options: Map<String, Value>,
    /// The seed as 64 hexadecimal digits.
    seed: String,
    seats: usize,
}

/// The replies of one epoch, by seat: the text of a list of actions, or `None`.
type PastEpoch = Vec<Option<String>>;

#[derive(Serialize, Deserialize)]
struct SavedMatch {
    start: StartOptions,
    bots: Vec<Option<String>>,
    past: Vec<PastEpoch>,
}

#[pymethods]
impl RulesMatch {
    /// Starts a match. `options` is a JSON object, and `seed` a number or the 64 digits of a seed.
    #[new]
    fn new(game: &str, options: &str, seed: &str, seats: usize) -> PyResult<RulesMatch> {
        let options = serde_json::from_str(options).map_err(wrong)?;
        let seed = seed.parse().map_or_else(|_| seed.to_owned(), |number| Seed::from_number(number).reveal());
        let start = StartOptions { game: game.to_owned(), options, seed, seats };
        Ok(RulesMatch(Mutex::new(Inner::new(start)?)))
    }

    /// Restores a match from the output of `save`.
    #[staticmethod]
    fn load(saved: &str) -> PyResult<RulesMatch> {
        let SavedMatch { start, bots, past } = serde_json::from_str(saved).map_err(wrong)?;
        let mut inner = Inner::new(start)?;
        for (seat, bot) in bots.iter().enumerate() {
            if let Some(bot) = bot {
                inner.seat_bot(seat, bot)?;
            }
        }
        for replies in past {
            // The bots see all states again, because they remember them.
            inner.ask_bots();
            inner.play(replies);
        }
        Ok(RulesMatch(Mutex::new(inner)))
    }

    /// Returns the match as JSON: its parameters and its actions so far.
    fn save(&self) -> PyResult<String> {
        let Inner { start, bots, past, .. } = &*self.inner();
        let bots = bots.iter().map(|bot| bot.as_ref().map(|(name, _)| name.clone())).collect();
        let saved = SavedMatch { start: start.clone(), bots, past: past.clone() };
        serde_json::to_string(&saved).map_err(wrong)
    }

    /// Lets a bot play a seat: `house`, `house:easy` or `random`.
    fn seat_bot(&self, seat: usize, bot: &str) -> PyResult<()> {
        self.inner().seat_bot(seat, bot)
    }

    /// Plays one epoch. `replies` contains, by seat, the text of a list of actions, or `None` for no valid reply. Bots
    /// reply by themselves. Returns `status`.
    fn step(&self, replies: PastEpoch) -> PyResult<(Vec<f64>, Vec<bool>, Option<String>)> {
        let mut inner = self.inner();
        if replies.len() != inner.ids.len() {
            return Err(wrong(format!("{} replies for {} seats", replies.len(), inner.ids.len())));
        }
        let mut replies = replies;
        for (reply, bots) in replies.iter_mut().zip(inner.ask_bots()) {
            *reply = bots.or(reply.take());
        }
        inner.play(replies);
        Ok(inner.status())
    }

    /// Returns the scores by seat, true for each seat that is asked for actions in the coming epoch, and the reason of
    /// the match's end, if it has ended.
    fn status(&self) -> (Vec<f64>, Vec<bool>, Option<String>) {
        self.inner().status()
    }

    /// Returns the state that an agent receives in the coming epoch, or its last state.
    fn state(&self, seat: usize) -> PyResult<String> {
        let mut inner = self.inner();
        let seat = inner.checked(seat)?;
        inner.write_state(seat);
        String::from_utf8(std::mem::take(&mut inner.state)).map_err(wrong)
    }

    /// Returns the board of snake as each seat sees it: one byte for each cell. See `snake.rs`.
    fn snake_boards<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let mut inner = self.inner();
        inner.write_state(Seat(0));
        let boards = snake::boards(&inner.state, &inner.ids).map_err(wrong)?;
        Ok(PyBytes::new(py, &boards))
    }

    /// Returns the config that agents receive.
    fn config(&self) -> String {
        let inner = self.inner();
        Value::Object(inner.play.config(inner.play.game().game_type().limits)).to_string()
    }

    /// Returns the agents' ids by seat.
    fn agents(&self) -> Vec<String> {
        self.inner().ids.iter().map(ToString::to_string).collect()
    }

    /// Returns the number of epochs that have been played.
    fn epochs(&self) -> u64 {
        self.inner().play.epochs()
    }

    /// Returns the rejected actions of the last epoch, as seats and reasons.
    fn rejections(&self) -> Vec<(usize, String)> {
        let inner = self.inner();
        let rejections = inner.play.events().rejections().iter();
        rejections.map(|rejected| (rejected.seat, rejected.reason.to_string())).collect()
    }

    /// Takes an agent out of the match, as the match runner does after a broken rule.
    fn disqualify(&self, seat: usize, reason: &str) -> PyResult<()> {
        let mut inner = self.inner();
        let Seat(seat) = inner.checked(seat)?;
        inner.play.disqualify(Disqualified::new(seat, Verdict::Crashed, reason));
        Ok(())
    }

    /// Returns the result of the match so far as JSON: scores, ranks and outcome.
    fn result(&self) -> String {
        let inner = self.inner();
        let result = inner.play.result(inner.seed.clone());
        let seats: Vec<Value> = (result.seats.iter())
            .map(
                |seat| json!({"agent_id": seat.agent, "rank": seat.rank, "score": seat.score, "verdict": seat.verdict}),
            )
            .collect();
        json!({"outcome": result.outcome, "seats": seats, "epochs": result.epochs}).to_string()
    }
}

impl RulesMatch {
    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

impl Inner {
    fn new(start: StartOptions) -> PyResult<Inner> {
        let game = arena_games::game(&start.game).ok_or_else(|| {
            let names: Vec<&str> = arena_games::games().map(|game| game.name).collect();
            wrong(format!("there is no game `{}`; the games are {}", start.game, names.join(", ")))
        })?;
        let seed = Seed::from_revealed(&start.seed)
            .ok_or_else(|| wrong("a seed is a number from 0 to 2**64 - 1, or 64 hexadecimal digits"))?;
        let ids = agent_ids(&seed, start.seats);
        let setup = Setup { seed: seed.clone(), agents: ids.clone() };
        let play = Match::new(game.start(&start.options, setup).map_err(wrong)?, ids.clone());
        let bots = ids.iter().map(|_| None).collect();
        Ok(Inner { play, start, seed, ids, bots, past: Vec::new(), state: Vec::new() })
    }

    fn checked(&self, seat: usize) -> PyResult<Seat> {
        match seat < self.ids.len() {
            true => Ok(Seat(seat)),
            false => Err(wrong(format!("there is no seat {seat} among {} seats", self.ids.len()))),
        }
    }

    fn seat_bot(&mut self, seat: usize, name: &str) -> PyResult<()> {
        let Seat(seat) = self.checked(seat)?;
        let game = self.play.game().game_type();
        let config = Value::Object(self.play.config(game.limits));
        let bot = bots::seat(name, game, self.ids[seat].as_str(), &config).map_err(wrong)?;
        self.bots[seat] = Some((name.to_owned(), bot));
        Ok(())
    }

    /// Returns the replies of the bots that are asked.
    fn ask_bots(&mut self) -> PastEpoch {
        let mut replies = vec![None; self.ids.len()];
        for (seat, reply) in replies.iter_mut().enumerate() {
            if self.bots[seat].is_none() || !self.play.is_on() || !self.play.is_asked(Seat(seat)) {
                continue;
            }
            self.write_state(Seat(seat));
            let state: Map<String, Value> = serde_json::from_slice(&self.state).unwrap_or_default();
            if let Some((_, bot)) = &mut self.bots[seat] {
                *reply = Some(Value::Array(bot.actions(&state)).to_string());
            }
        }
        replies
    }

    fn play(&mut self, mut replies: PastEpoch) {
        for (seat, reply) in replies.iter_mut().enumerate() {
            if !self.play.is_asked(Seat(seat)) {
                *reply = None;
            }
        }
        let mut taken = Vec::new();
        let texts: Vec<Option<&str>> = replies.iter().map(Option::as_deref).collect();
        if self.play.play(|game, events| game.play(&texts, &mut taken, events)) {
            self.past.push(replies);
        }
    }

    fn status(&self) -> (Vec<f64>, Vec<bool>, Option<String>) {
        let score = |(seat, score)| if self.play.is_in(Seat(seat)) { score } else { TAINTED_SCORE };
        let scores = self.play.game().scores().into_iter().enumerate().map(score).collect();
        let is_on = self.play.is_on();
        let asked = (0..self.ids.len()).map(|seat| is_on && self.play.is_asked(Seat(seat))).collect();
        let end = (!is_on).then(|| self.play.game().termination().unwrap_or("TAINTED").to_owned());
        (scores, asked, end)
    }

    /// Writes a state as a JSON object into the buffer.
    fn write_state(&mut self, seat: Seat) {
        self.state.clear();
        self.state.push(b'{');
        self.play.write_state(seat, &mut self.state);
        self.state.push(b'}');
    }
}

fn wrong(error: impl ToString) -> PyErr {
    PyValueError::new_err(error.to_string())
}

/// The module.
#[pymodule(name = "_rules")]
mod rules {
    #[pymodule_export]
    use super::{RulesMatch, games};
}
