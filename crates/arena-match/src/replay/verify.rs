//! Verifying replays: the game is played again from the seed with the recorded actions, and everything must come out the same.

use std::io::BufRead;

use arena_model::agent_ids;
use arena_model::{
    AnyGame, Events, Forfeit, GameType, MatchResult, Seat, SeatResult, Seed, Setup, TimeLimits, Verdict,
};
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use super::MAX_REJECTED;
use super::read::{EpochLine, HeaderLine, Line, Replay, ReplayError, ResultLine, ResultPart};
use super::write::States;
use crate::moves::MovesHash;
use crate::play::{config, is_on, states, write_state};
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
/// What can't be told from a replay is what the agents really sent and when: what was rejected of it, which faults it had, who was
/// disqualified for it by the protocol, and what the agents are called. These must only be possible.
///
/// # Errors
/// The first line that differs from the rules. [`ReplayError::OtherRules`] if it was played by another
/// version of the rules, and nothing else in it is wrong.
pub fn verify(from: impl BufRead) -> Result<Verified, ReplayError> {
    verify_by(from, |header| arena_games::game(&header.game))
}

/// The same, with the game that `find` has for a replay: for rules that aren't built in.
///
/// # Errors
/// As [`verify`]; and if the replay was played by a script, and there is none for it, or only in another version.
pub fn verify_by(
    from: impl BufRead,
    find: impl FnOnce(&HeaderLine) -> Option<&'static GameType>,
) -> Result<Verified, ReplayError> {
    let (header, verified, _) = verify_each(from, find, |_, _, _| ())?;
    Ok(Verified { game: header.game, ..verified })
}

/// Verifies a replay, and hands over each of its lines that agrees.
fn verify_each(
    from: impl BufRead,
    find: impl FnOnce(&HeaderLine) -> Option<&'static GameType>,
    mut each: impl FnMut(&HeaderLine, &dyn AnyGame, &Line),
) -> Result<(HeaderLine, Verified, report::ChallengeScores), ReplayError> {
    let mut replay = Replay::open(from)?;
    let game = find(&replay.header);
    if let Some(game) = game.filter(|game| game.rules_version != replay.header.rules_version) {
        return Err(check_form(replay, game)?);
    }
    let mut again = Again::start(&replay, game)?;
    while let Some(line) = replay.next_line()? {
        let checked = match &line {
            Line::Epoch(epoch) => again.check_epoch(epoch),
            Line::Result(result) => again.check_result(result),
        };
        checked.map_err(|what| ReplayError::Line { line: replay.line(), what })?;
        each(&replay.header, &*again.game, &line);
    }
    let challenge_scores = report::challenge_scores(&*again.game, &again.out);
    Ok((replay.header, Verified { game: String::new(), epochs: again.epoch, states: again.compared }, challenge_scores))
}

/// Checks of a replay by other rules what doesn't depend on them: ids follow from the seed, epochs follow each other, lists have an entry
/// for each seat, nobody is out twice, and the result fits scores, disqualifications and the number of epochs. Gives the error that tells
/// of the rules.
fn check_form<R: BufRead>(mut replay: Replay<R>, game: &'static GameType) -> Result<ReplayError, ReplayError> {
    let header = replay.header.clone();
    let seats = header.agents.len();
    let wrong = |line: usize, what: String| ReplayError::Line { line, what };
    check_ids(&replay).map_err(|what| wrong(1, what))?;
    let mut out: Vec<Option<Disqualified>> = vec![None; seats];
    let (mut last, mut epochs) = (None, 0);
    while let Some(line) = replay.next_line()? {
        let checked = match &line {
            Line::Epoch(line) => check_epoch_form(line, last.replace(line.epoch), &mut out),
            Line::Result(line) => check_result_form(line, last.unwrap_or(0), &out),
        };
        checked.map_err(|what| wrong(replay.line(), what))?;
        epochs = last.unwrap_or(0);
    }
    let (version, found) = (header.rules_version, game.rules_version);
    Ok(ReplayError::OtherRules { game: header.game, version, found, epochs })
}

fn check_epoch_form(line: &EpochLine, last: Option<u64>, out: &mut [Option<Disqualified>]) -> Result<(), String> {
    match (last, line.epoch) {
        (None, 0 | 1) => {}
        (last, epoch) if epoch == last.unwrap_or(0) + 1 => {}
        (last, epoch) => return Err(format!("epoch {epoch} comes after epoch {}", last.unwrap_or(0))),
    }
    for disqualified in &line.disqualified {
        let seat = disqualified.seat;
        let place = out.get_mut(seat).ok_or_else(|| format!("there is no seat {seat}"))?;
        if place.replace(disqualified.clone()).is_some() {
            return Err(format!("seat {seat} is disqualified a second time"));
        }
    }
    let is_of_each = |list: &RawValue| {
        serde_json::from_str::<Vec<Option<&RawValue>>>(list.get()).is_ok_and(|list| list.len() == out.len())
    };
    if line.actions.as_deref().is_some_and(|actions| !is_of_each(actions)) {
        return Err(format!("the actions aren't a list of {} seats", out.len()));
    }
    if line.worlds.as_deref().is_some_and(|worlds| !is_of_each(worlds)) {
        return Err(format!("the worlds aren't a list of {} seats", out.len()));
    }
    Ok(())
}

fn check_result_form(line: &ResultLine, last: u64, out: &[Option<Disqualified>]) -> Result<(), String> {
    let ResultPart { epochs, scores, ranks, outcome } = &line.result;
    if *epochs != last {
        return Err(format!("the result is of {epochs} epochs, and there are {last}"));
    }
    if scores.len() != out.len() || ranks.len() != out.len() {
        return Err(format!("the result has other seats than the {} of the match", out.len()));
    }
    if let Some(seat) = (0..out.len()).find(|seat| out[*seat].is_some() && scores[*seat] != report::TAINTED_SCORE) {
        return Err(format!("seat {seat} was disqualified, and its score is {}", scores[seat]));
    }
    let expected = report::ranks(scores, out);
    if *ranks != expected {
        return Err(format!("the ranks are {ranks:?}, and by the scores {expected:?}"));
    }
    if outcome.tainted_reason != out.iter().flatten().next().map(|out| out.verdict) {
        return Err("the result has another reason of a disqualification than the epochs".to_owned());
    }
    Ok(())
}

/// The ids of the agents must be those that follow from the seed.
fn check_ids<R: BufRead>(replay: &Replay<R>) -> Result<(Seed, Vec<arena_model::AgentId>), String> {
    let seed = Seed::from_revealed(&replay.header.seed).ok_or("the seed isn't 64 hexadecimal digits")?;
    let ids = replay.agent_ids().map_err(|error| error.to_string())?;
    let expected = agent_ids(&seed, ids.len());
    match (0..ids.len()).find(|seat| ids[*seat] != expected[*seat]) {
        Some(seat) => Err(format!("the agent on seat {seat} is {}, and by the seed {}", ids[seat], expected[seat])),
        None => Ok((seed, ids)),
    }
}

/// What a replay says of its match, for somebody who wasn't there.
#[derive(Debug, Clone)]
pub struct Account {
    /// The first line.
    pub header: HeaderLine,
    /// The result, with all times 0.
    pub result: MatchResult,
    /// The SHA-256, in hex, of all that the clock has no part in: what was to be played, what was seen, done and refused, and the result.
    pub played: String,
}

/// Verifies a replay, and says what it tells.
///
/// # Errors
/// As [`verify`].
pub fn account(from: impl BufRead) -> Result<Account, ReplayError> {
    let mut hash = Sha256::new();
    let (mut out, mut faults, mut result): (Vec<Disqualified>, Vec<usize>, _) = (Vec::new(), Vec::new(), None);
    let builtin = |header: &HeaderLine| arena_games::game(&header.game);
    let mut moves: Option<MovesHash> = None;
    let (header, _, challenge_scores) = verify_each(from, builtin, |header, game, line| match line {
        Line::Epoch(epoch) => {
            let ids = header.agents.iter().map(|agent| agent.agent_id.as_str());
            let moves = moves.get_or_insert_with(|| MovesHash::new(game, &header.options, ids));
            let states = epoch.world_state.as_ref().or(epoch.worlds.as_ref());
            if let Some(states) = states.filter(|_| moves.wants_states()) {
                moves.see(states.get());
            }
            moves.play(epoch.actions.as_deref().map(RawValue::get), epoch.disqualified.iter());
            let texts = [&epoch.world_state, &epoch.worlds, &epoch.actions];
            add(&mut hash, epoch.epoch.to_string().as_bytes());
            texts.into_iter().for_each(|text| add(&mut hash, text.as_deref().map_or("", RawValue::get).as_bytes()));
            for disqualified in &epoch.disqualified {
                // What was left of its time is told in a sentence too.
                let detail = if disqualified.verdict == Verdict::Timeout { "" } else { &disqualified.detail };
                add(&mut hash, format!("{} {} {detail}", disqualified.seat, disqualified.verdict).as_bytes());
            }
            add(&mut hash, json!(epoch.rejected).to_string().as_bytes());
            out.extend(epoch.disqualified.iter().cloned());
            faults.extend(epoch.faults.iter().map(|fault| fault.seat));
        }
        Line::Result(line) => {
            add(&mut hash, json!(line.result).to_string().as_bytes());
            let texts = [&line.world_state, &line.worlds];
            texts.into_iter().for_each(|text| add(&mut hash, text.as_deref().map_or("", RawValue::get).as_bytes()));
            let ids = header.agents.iter().map(|agent| agent.agent_id.as_str());
            let played = moves.take().unwrap_or_else(|| MovesHash::new(game, &header.options, ids));
            result = Some((line.result.clone(), played.finish(&line.result.scores)));
        }
    })?;
    add(&mut hash, json!(header).to_string().as_bytes());
    let (ResultPart { epochs, scores, ranks, outcome }, moves) =
        result.expect("a replay without a result is broken off");
    let seats = header.agents.iter().enumerate().map(|(number, agent)| {
        let out = out.iter().find(|out| out.seat == number);
        let faults = faults.iter().filter(|seat| **seat == number).count();
        SeatResult {
            agent: agent.name.clone(),
            rank: ranks[number],
            score: scores[number],
            challenge_score: challenge_scores.as_ref().and_then(|scores| scores[number]),
            verdict: out.map(|out| out.verdict),
            detail: out.map(|out| out.detail.clone()),
            faults: u32::try_from(faults).unwrap_or(u32::MAX),
            waited_ms: 0.0,
            longest_step_ms: 0.0,
        }
    });
    let seed = Seed::from_revealed(&header.seed).expect("the seed was checked with the ids");
    Ok(Account {
        result: MatchResult { seats: seats.collect(), outcome, seed, epochs, moves: Some(moves), took_ms: 0.0 },
        played: hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect(),
        header,
    })
}

/// Adds a text, so that no two lists of texts are alike.
fn add(hash: &mut Sha256, text: &[u8]) {
    hash.update((text.len() as u64).to_be_bytes());
    hash.update(text);
}

/// The match, played again.
struct Again {
    game: Box<dyn AnyGame>,
    ids: Vec<arena_model::AgentId>,
    ids_json: Vec<u8>,
    out: Vec<Option<Disqualified>>,
    /// Of the last line; `None` before the first.
    last: Option<u64>,
    epoch: u64,
    compared: u64,
    states: Vec<Vec<u8>>,
    events: Events,
}

impl Again {
    fn start<R: BufRead>(replay: &Replay<R>, game: Option<&'static GameType>) -> Result<Again, ReplayError> {
        let header = &replay.header;
        let wrong = |what: String| ReplayError::Line { line: 1, what };
        let game = match (game, &header.script) {
            (Some(game), None) => game,
            (Some(game), Some(version)) => match game.script() {
                Some(found) if found.to_string() == *version => game,
                Some(found) => {
                    let (game, version, found) = (header.game.clone(), version.clone(), found.to_string());
                    return Err(ReplayError::OtherScript { game, version, found });
                }
                None => return Err(wrong(format!("{} is built in, and no script's", header.game))),
            },
            (None, Some(version)) => {
                return Err(ReplayError::NoScript { game: header.game.clone(), version: version.clone() });
            }
            (None, None) => return Err(wrong(format!("there is no game `{}`", header.game))),
        };
        if header.update_mode != game.mode {
            return Err(wrong(format!("`update_mode` isn't that of {}", header.game)));
        }
        let (seed, ids) = check_ids(replay).map_err(wrong)?;
        let game = game
            .start(&header.options, Setup { seed, agents: ids.clone() })
            .map_err(|error| wrong(error.to_string()))?;
        check_config(&*game, &header.config).map_err(wrong)?;
        Ok(Again {
            ids_json: serde_json::to_vec(&ids).expect("ids are texts"),
            out: vec![None; ids.len()],
            states: vec![Vec::new(); ids.len()],
            ids,
            game,
            last: None,
            epoch: 0,
            compared: 0,
            events: Events::default(),
        })
    }

    fn check_epoch(&mut self, line: &EpochLine) -> Result<(), String> {
        let last = self.last.replace(line.epoch);
        if line.epoch == 0 && last.is_none() {
            return self.check_handshake(line);
        }
        if line.epoch != self.epoch + 1 {
            return Err(format!("epoch {} comes after epoch {}", line.epoch, self.epoch));
        }
        if !self.is_on() {
            return Err(format!("by the rules the match was over before epoch {}", line.epoch));
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
        let actions = match (&line.actions, self.is_on()) {
            (Some(actions), true) => actions.get(),
            (None, true) => return Err("the actions are missing".to_owned()),
            (Some(_), false) => {
                return Err("there are actions, and by the rules the match was over before them".to_owned());
            }
            (None, false) if !of_game.is_empty() || !line.rejected.is_empty() => {
                return Err("something came of actions, and there are none".to_owned());
            }
            (None, false) => return Ok(()),
        };
        let lists: Vec<Option<&RawValue>> =
            serde_json::from_str(actions).map_err(|error| format!("the actions can't be read: {error}"))?;
        let replies: Vec<Option<&str>> = lists.into_iter().map(|list| list.map(RawValue::get)).collect();
        let mut taken = Vec::new();
        self.game.play(&replies, &mut taken, &mut self.events);
        if taken != actions.as_bytes() {
            let taken = serde_json::from_slice(&taken).unwrap_or_default();
            return Err(format!("of these actions the rules take {}", shortly(&taken)));
        }
        self.check_forfeits(&of_game, line)?;
        self.disqualify(&of_game)
    }

    /// Who was out before the first epoch. Of the game there is nothing yet.
    fn check_handshake(&mut self, line: &EpochLine) -> Result<(), String> {
        let is_played = line.actions.is_some() || line.world_state.is_some() || line.worlds.is_some();
        let is_of_the_game = line.disqualified.iter().any(|out| out.verdict.is_of_the_game());
        match is_played || is_of_the_game || !line.rejected.is_empty() {
            true => Err("something was played before the first epoch".to_owned()),
            false => self.disqualify(&line.disqualified),
        }
    }

    /// Those who forfeit by the rules must be those of the replay, for the same reason.
    fn check_forfeits(&self, recorded: &[Disqualified], line: &EpochLine) -> Result<(), String> {
        // A replay has them by seat.
        let mut forfeits: Vec<&Forfeit> = self.events.forfeits().iter().collect();
        forfeits.sort_by_key(|forfeit| forfeit.seat);
        let by_rules: Vec<_> = forfeits.iter().map(|forfeit| (forfeit.seat.0, forfeit.verdict)).collect();
        let recorded_ones: Vec<_> = recorded.iter().map(|out| (out.seat, out.verdict)).collect();
        if by_rules != recorded_ones {
            let seats = |list: &[(usize, _)]| list.iter().map(|(seat, _)| *seat).collect::<Vec<usize>>();
            let (by_rules, recorded) = (seats(&by_rules), seats(&recorded_ones));
            return Err(format!("by the rules the seats {by_rules:?} forfeit, and the replay says {recorded:?}"));
        }
        for (forfeit, recorded) in forfeits.iter().zip(recorded) {
            // What was rejected isn't played again, so the reason may stand among the rejections instead.
            let reasons: Vec<&str> = (line.rejected.iter())
                .filter(|rejected| rejected.seat == recorded.seat)
                .map(|rejected| &*rejected.reason)
                .collect();
            let detail = recorded.detail.as_str();
            let is_reason = detail == forfeit.detail && (reasons.is_empty() || recorded.verdict == Verdict::NoAction)
                || reasons.iter().any(|reason| detail == *reason || detail == format!("{}: {reason}", forfeit.detail))
                || reasons.len() > MAX_REJECTED;
            if !is_reason {
                return Err(format!(
                    "seat {} forfeits for another reason: {}, and by the rules {}",
                    recorded.seat,
                    shortly(&json!(detail)),
                    shortly(&json!(reasons.first().unwrap_or(&forfeit.detail.as_str())))
                ));
            }
        }
        Ok(())
    }

    fn is_on(&self) -> bool {
        let left = self.out.iter().filter(|out| out.is_none()).count();
        is_on(&*self.game, left, self.out.len())
    }

    fn check_result(&mut self, line: &ResultLine) -> Result<(), String> {
        if self.is_on() {
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
        let (expected, recorded) = match states(self.game.game_type(), &self.states) {
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

/// The header's config must be what the agents were told of this game, with the time limits that it names itself. Older replays lack the
/// game's name there.
fn check_config(game: &dyn AnyGame, recorded: &Map<String, Value>) -> Result<(), String> {
    let limits: TimeLimits = serde_json::from_value(Value::Object(recorded.clone()))
        .map_err(|error| format!("the config has no time limits: {error}"))?;
    let mut expected = config(game, limits);
    if !recorded.contains_key("game_name") {
        expected.remove("game_name");
    }
    if let Some((key, value)) = expected.iter().find(|(key, value)| recorded.get(*key) != Some(*value)) {
        return Err(format!("`{key}` was another constant when this was played; it is {value} now"));
    }
    match recorded.keys().find(|key| !expected.contains_key(*key)) {
        Some(key) => Err(format!("there is no constant {}", shortly(&json!(key)))),
        None => Ok(()),
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
