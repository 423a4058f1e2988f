//! The verification of replays. It plays the game again from the seed with the recorded actions, and compares
//! all states and the result.

use std::io::BufRead;

use arena_model::{
    AgentId, Disqualified, Forfeit, GameType, Match, MatchResult, Rejected, Seat, Seed, Setup, TAINTED_SCORE,
    TimeLimits, Verdict, agent_ids, hex, ranks,
};
use arena_record::RecordPublicKey;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use super::read::{EpochLine, HeaderLine, Replay, ReplayError, ReplayLine, ResultLine, ResultPart};
use super::write::States;
use super::{FIRST_VERSION, MAX_REJECTED};
use crate::moves::MovesHash;
use crate::play::states;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verified {
    pub game: String,
    pub epochs: u64,
    /// The number of states compared, including the final state.
    pub states: u64,
    /// False if a challenge's prompt or methods have other texts in this program. Texts aren't rules, so everything
    /// else was compared.
    pub has_same_texts: bool,
    /// True if each line has the hash of the line before it, as in all replays since format 2.
    pub is_chained: bool,
    /// The key of the replay's seal, whose signature is valid.
    pub sealed_by: Option<RecordPublicKey>,
}

/// Plays a replay's actions again, and compares each state, the accepted actions and the result. Also checks the chain
/// of lines and the seal.
///
/// A replay can't prove which lines the agents sent or when they sent them. So rejections, faults, protocol
/// disqualifications and agents' names are only checked for plausibility. In a chain they can't be changed unseen.
///
/// # Errors
/// The first line that contradicts the rules. [`ReplayError::OtherRules`] if the replay was played by another version
/// of the rules and is consistent otherwise.
pub fn verify(from: impl BufRead) -> Result<Verified, ReplayError> {
    verify_by(from, |header| arena_games::game(&header.game))
}

/// Verifies a replay like [`verify`], with the game that `find` returns. This supports rules that aren't
/// built in.
///
/// # Errors
/// As [`verify`]; also if the replay's script is missing or of another version.
pub fn verify_by(
    from: impl BufRead,
    find: impl FnOnce(&HeaderLine) -> Option<&'static GameType>,
) -> Result<Verified, ReplayError> {
    let (replay, replayed) = verify_each(from, find, |_, _, _| ())?;
    Ok(Verified {
        epochs: replayed.play.epochs(),
        states: replayed.compared,
        has_same_texts: replayed.has_same_texts,
        is_chained: replay.is_chained(),
        sealed_by: replay.seal().map(|seal| seal.key),
        game: replay.header.game,
    })
}

/// Verifies a replay, and calls `each` with each verified line.
fn verify_each<R: BufRead>(
    from: R,
    find: impl FnOnce(&HeaderLine) -> Option<&'static GameType>,
    mut each: impl FnMut(&HeaderLine, &Match, &ReplayLine),
) -> Result<(Replay<R>, ReplayedMatch), ReplayError> {
    let mut replay = Replay::open(from)?.checked();
    let game = find(&replay.header);
    if let Some(game) = game.filter(|game| game.rules_version != replay.header.rules_version) {
        return Err(check_form(replay, game)?);
    }
    let mut replayed = ReplayedMatch::start(&replay, game)?;
    while let Some(line) = replay.next_line()? {
        let checked = match &line {
            ReplayLine::Epoch(epoch) => replayed.check_epoch(epoch),
            ReplayLine::Result(result) => replayed.check_result(result),
        };
        checked.map_err(|what| ReplayError::Line { line: replay.line(), what })?;
        each(&replay.header, &replayed.play, &line);
    }
    Ok((replay, replayed))
}

/// Checks the parts of a replay that don't depend on the version of the rules: ids follow from the seed,
/// epochs are consecutive, lists have an entry for each seat, no seat is disqualified twice, and the result
/// fits scores, disqualifications and the number of epochs. Returns the error about the version.
fn check_form<R: BufRead>(mut replay: Replay<R>, game: &'static GameType) -> Result<ReplayError, ReplayError> {
    let header = replay.header.clone();
    let seats = header.agents.len();
    let wrong = |line: usize, what: String| ReplayError::Line { line, what };
    check_ids(&replay).map_err(|what| wrong(1, what))?;
    let mut out: Vec<Option<Disqualified>> = vec![None; seats];
    let (mut last, mut epochs) = (None, 0);
    while let Some(line) = replay.next_line()? {
        let checked = match &line {
            ReplayLine::Epoch(line) => check_epoch_form(line, last.replace(line.epoch), &mut out),
            ReplayLine::Result(line) => check_result_form(line, last.unwrap_or(0), &out),
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
        (last, epoch) => return Err(format!("epoch {epoch} follows epoch {}", last.unwrap_or(0))),
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
    let ResultPart { epochs, scores, ranks: recorded, outcome, causes } = &line.result;
    if *epochs != last {
        return Err(format!("the result has {epochs} epochs, but the replay has {last}"));
    }
    if scores.len() != out.len() || recorded.len() != out.len() || !(causes.is_empty() || causes.len() == out.len()) {
        return Err(format!("the result has other seats than the {} of the match", out.len()));
    }
    if let Some(seat) = (0..out.len()).find(|seat| out[*seat].is_some() && scores[*seat] != TAINTED_SCORE) {
        return Err(format!("seat {seat} was disqualified, but its score is {}", scores[seat]));
    }
    let expected = ranks(scores, |seat| out[seat].is_some());
    if *recorded != expected {
        return Err(format!("the ranks are {recorded:?}, but the scores give {expected:?}"));
    }
    if outcome.tainted_reason != out.iter().flatten().next().map(|out| out.verdict) {
        return Err("the result and the epochs have different reasons for a disqualification".to_owned());
    }
    Ok(())
}

/// Checks that the agents' ids follow from the seed, except for ids that are names.
fn check_ids<R: BufRead>(replay: &Replay<R>) -> Result<(Seed, Vec<AgentId>), String> {
    let seed = Seed::from_revealed(&replay.header.seed).ok_or("the seed isn't 64 hexadecimal digits")?;
    let ids = replay.agent_ids().map_err(|error| error.to_string())?;
    let expected = agent_ids(&seed, ids.len());
    if let Some(seat) = (1..ids.len()).find(|seat| ids[..*seat].contains(&ids[*seat])) {
        return Err(format!("two agents have the id {}", ids[seat]));
    }
    match (0..ids.len()).find(|seat| ids[*seat].is_uuid() && ids[*seat] != expected[*seat]) {
        Some(seat) => Err(format!("the agent on seat {seat} is {}, but the seed gives {}", ids[seat], expected[seat])),
        None => Ok((seed, ids)),
    }
}

/// The result of a match, as its verified replay proves it.
#[derive(Debug, Clone)]
pub struct VerifiedResult {
    pub header: HeaderLine,
    /// The result, with all times 0.
    pub result: MatchResult,
    /// The SHA-256, in hex, of everything that doesn't depend on the clock: header, states, actions, rejections and
    /// result.
    pub played: String,
    pub is_sealed: bool,
}

/// Verifies a replay, and returns the result of its match.
///
/// # Errors
/// As [`verify`]; also if the replay has another prompt or other methods than this program's challenge.
pub fn verified_result(from: impl BufRead) -> Result<VerifiedResult, ReplayError> {
    let mut hash = Sha256::new();
    let (mut out, mut faults, mut refused) = (Vec::<Disqualified>::new(), Vec::new(), Vec::new());
    let builtin = |header: &HeaderLine| arena_games::game(&header.game);
    let mut moves: Option<MovesHash> = None;
    let (replay, replayed) = verify_each(from, builtin, |header, play, line| match line {
        ReplayLine::Epoch(epoch) => {
            let moves = moves.get_or_insert_with(|| MovesHash::new(play, &header.options));
            let states = epoch.world_state.as_ref().or(epoch.worlds.as_ref());
            if let Some(states) = states.filter(|_| moves.wants_states()) {
                moves.see(states.get());
            }
            // The fingerprint doesn't include faults in the handshake.
            if epoch.epoch > 0 || !epoch.disqualified.is_empty() {
                moves.play(epoch.actions.as_deref().map(RawValue::get), epoch.disqualified.iter());
            }
            let texts = [&epoch.world_state, &epoch.worlds, &epoch.actions];
            add(&mut hash, epoch.epoch.to_string().as_bytes());
            texts.into_iter().for_each(|text| add(&mut hash, text.as_deref().map_or("", RawValue::get).as_bytes()));
            for disqualified in &epoch.disqualified {
                // The detail of a timeout contains the time left in the bank.
                let detail = if disqualified.verdict == Verdict::Timeout { "" } else { &disqualified.detail };
                add(&mut hash, format!("{} {} {detail}", disqualified.seat, disqualified.verdict).as_bytes());
            }
            add(&mut hash, json!(epoch.rejected).to_string().as_bytes());
            out.extend(epoch.disqualified.iter().cloned());
            faults.extend(epoch.faults.iter().map(|fault| fault.seat));
            let is_refused = |seat: &usize| epoch.rejected.iter().any(|rejected| rejected.seat == *seat);
            refused.extend((0..header.agents.len()).filter(is_refused));
        }
        ReplayLine::Result(line) => {
            // Formats differ in parts that follow from the others. The hash is the same in all formats.
            let result = ResultPart { causes: Vec::new(), ..line.result.clone() };
            add(&mut hash, json!(result).to_string().as_bytes());
            let texts = [&line.world_state, &line.worlds];
            texts.into_iter().for_each(|text| add(&mut hash, text.as_deref().map_or("", RawValue::get).as_bytes()));
        }
    })?;
    let (is_sealed, header) = (replay.seal().is_some(), replay.header);
    if !replayed.has_same_texts {
        let what = "the states have another prompt or other methods than this program's challenge".to_owned();
        return Err(ReplayError::Line { line: 1, what });
    }
    let first_format = HeaderLine { arena_replay: FIRST_VERSION, ..header.clone() };
    add(&mut hash, json!(first_format).to_string().as_bytes());
    let moves = moves.unwrap_or_else(|| MovesHash::new(&replayed.play, &header.options));
    let mut result = replayed.result().with_agents(|seat, _| header.agents[seat].name.clone());
    result.moves = Some(moves.finish(&result.scores()));
    for (number, seat) in result.seats.iter_mut().enumerate() {
        let count = |seats: &[usize]| seats.iter().filter(|seat| **seat == number).count();
        seat.faults = u32::try_from(count(&faults)).unwrap_or(u32::MAX);
        seat.refused = u32::try_from(count(&refused)).unwrap_or(u32::MAX);
        seat.detail = out.iter().find(|out| out.seat == number).map(|out| out.detail.clone());
    }
    Ok(VerifiedResult { result, played: hex::encode(&hash.finalize()), is_sealed, header })
}

/// Adds a text with its length, so that different lists of texts have different hashes.
fn add(hash: &mut Sha256, text: &[u8]) {
    hash.update((text.len() as u64).to_be_bytes());
    hash.update(text);
}

struct ReplayedMatch {
    play: Match,
    seed: Seed,
    /// The epoch of the last line; `None` before the first.
    last: Option<u64>,
    /// The rejected actions of the line before.
    rejected: Vec<Rejected>,
    compared: u64,
    has_same_texts: bool,
    /// True if the result has termination causes, as in all replays since format 2.
    has_causes: bool,
    states: Vec<Vec<u8>>,
}

impl ReplayedMatch {
    fn start<R: BufRead>(replay: &Replay<R>, game: Option<&'static GameType>) -> Result<ReplayedMatch, ReplayError> {
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
                None => return Err(wrong(format!("{} is built in, not a script", header.game))),
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
        let states = vec![Vec::new(); ids.len()];
        let game = game
            .start(&header.options, Setup { seed: seed.clone(), agents: ids.clone() })
            .map_err(|error| wrong(error.to_string()))?;
        let play = Match::new(game, ids);
        check_config(&play, &header.config).map_err(wrong)?;
        let has_causes = replay.is_chained();
        Ok(ReplayedMatch {
            play,
            seed,
            last: None,
            rejected: Vec::new(),
            compared: 0,
            has_same_texts: true,
            has_causes,
            states,
        })
    }

    fn result(&self) -> MatchResult<AgentId> {
        self.play.result(self.seed.clone())
    }

    fn check_epoch(&mut self, line: &EpochLine) -> Result<(), String> {
        let last = self.last.replace(line.epoch);
        if line.epoch == 0 && last.is_none() {
            return self.check_handshake(line);
        }
        if line.epoch != self.play.epochs() + 1 {
            return Err(format!("epoch {} follows epoch {}", line.epoch, self.play.epochs()));
        }
        if !self.play.is_on() {
            return Err(format!("by the rules the match was over before epoch {}", line.epoch));
        }
        self.write_states(Match::is_asked);
        self.compare_states(line.world_state.as_deref(), line.worlds.as_deref())?;
        let (of_game, of_protocol): (Vec<Disqualified>, Vec<Disqualified>) =
            line.disqualified.iter().cloned().partition(|out| out.verdict.is_of_the_game());
        self.disqualify(&of_protocol)?;
        let actions = match (&line.actions, self.play.is_on()) {
            (Some(actions), true) => actions.get(),
            (None, true) => return Err("the actions are missing".to_owned()),
            (Some(_), false) => {
                return Err("there are actions, but by the rules the match was already over".to_owned());
            }
            (None, false) if !of_game.is_empty() || !line.rejected.is_empty() => {
                return Err("there are rejections or forfeits, but no actions".to_owned());
            }
            (None, false) => "[]",
        };
        let lists: Vec<Option<&RawValue>> =
            serde_json::from_str(actions).map_err(|error| format!("the actions cannot be read: {error}"))?;
        let replies: Vec<Option<&str>> = lists.into_iter().map(|list| list.map(RawValue::get)).collect();
        let mut taken = Vec::new();
        let is_played = self.play.play(|game, events| game.play(&replies, &mut taken, events));
        if is_played && taken != actions.as_bytes() {
            let taken = serde_json::from_slice(&taken).unwrap_or_default();
            return Err(format!("the rules accept only these of the actions: {}", shortly(&taken)));
        }
        self.check_forfeits(&of_game, line)?;
        self.rejected.clone_from(&line.rejected);
        Ok(())
    }

    fn write_states(&mut self, sees: impl Fn(&Match, Seat) -> bool) {
        for (number, state) in self.states.iter_mut().enumerate() {
            state.clear();
            if sees(&self.play, Seat(number)) {
                self.play.write_state(Seat(number), state);
            }
        }
    }

    /// Checks the line of epoch 0, which contains only the faults and disqualifications of the handshake.
    fn check_handshake(&mut self, line: &EpochLine) -> Result<(), String> {
        let is_played = line.actions.is_some() || line.world_state.is_some() || line.worlds.is_some();
        let is_of_the_game = line.disqualified.iter().any(|out| out.verdict.is_of_the_game());
        match is_played || is_of_the_game || !line.rejected.is_empty() {
            true => Err("epoch 0 contains more than the handshake".to_owned()),
            false => self.disqualify(&line.disqualified),
        }
    }

    /// Checks that the same seats forfeit by the rules and in the replay, for the same reasons.
    fn check_forfeits(&self, recorded: &[Disqualified], line: &EpochLine) -> Result<(), String> {
        // A replay lists forfeits by seat.
        let mut forfeits: Vec<&Forfeit> = self.play.events().forfeits().iter().collect();
        forfeits.sort_by_key(|forfeit| forfeit.seat);
        let by_rules: Vec<_> = forfeits.iter().map(|forfeit| (forfeit.seat.0, forfeit.verdict)).collect();
        let recorded_ones: Vec<_> = recorded.iter().map(|out| (out.seat, out.verdict)).collect();
        if by_rules != recorded_ones {
            let seats = |list: &[(usize, _)]| list.iter().map(|(seat, _)| *seat).collect::<Vec<usize>>();
            let (by_rules, recorded) = (seats(&by_rules), seats(&recorded_ones));
            return Err(format!("by the rules the seats {by_rules:?} forfeit, but the replay has {recorded:?}"));
        }
        for (forfeit, recorded) in forfeits.iter().zip(recorded) {
            // Rejected actions aren't played again, so the reason may be among the rejections instead.
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
                    "seat {} forfeits for another reason: {}, but the rules give {}",
                    recorded.seat,
                    shortly(&json!(detail)),
                    shortly(&json!(reasons.first().unwrap_or(&forfeit.detail.as_str())))
                ));
            }
        }
        Ok(())
    }

    fn check_result(&mut self, line: &ResultLine) -> Result<(), String> {
        if self.play.is_on() {
            return Err("the match isn't over yet".to_owned());
        }
        self.write_states(|_, _| true);
        self.compare_states(line.world_state.as_deref(), line.worlds.as_deref())?;
        let mut expected = ResultPart::of(&self.result());
        if !self.has_causes {
            expected.causes.clear();
        }
        let (recorded, expected) = (json!(line.result), json!(expected));
        match recorded == expected {
            true => Ok(()),
            false => Err(format!("the result differs: {}", differences("", &recorded, &expected))),
        }
    }

    fn disqualify(&mut self, out: &[Disqualified]) -> Result<(), String> {
        for disqualified in out {
            let seat = disqualified.seat;
            match self.play.out().get(seat) {
                None => return Err(format!("there is no seat {seat}")),
                Some(Some(_)) => return Err(format!("seat {seat} is disqualified a second time")),
                Some(None) => self.play.disqualify(disqualified.clone()),
            }
        }
        Ok(())
    }

    fn compare_states(&mut self, one: Option<&RawValue>, each: Option<&RawValue>) -> Result<(), String> {
        let states = states(self.play.game().game_type(), &self.states);
        let recorded = match states {
            States::None => one.or(each),
            States::One(_) => one,
            States::Each(_) => each,
        };
        let expected = states.text().unwrap_or_else(|| "null".to_owned());
        let recorded = recorded.map_or("null", RawValue::get);
        if recorded == expected {
            self.compared += 1;
            return Ok(());
        }
        let read = |text: &str| serde_json::from_str::<Value>(text).unwrap_or_default();
        let (recorded, mut expected) = (read(recorded), read(&expected));
        if adopt_rejected(&mut expected, &recorded, &self.rejected) && expected == recorded {
            self.compared += 1;
            return Ok(());
        }
        // A script's version covers its texts, so they can't differ.
        let is_script = self.play.game().game_type().script().is_some();
        if !is_script && adopt_texts(&mut expected, &recorded) && expected == recorded {
            self.has_same_texts = false;
            self.compared += 1;
            return Ok(());
        }
        let path = if expected.is_array() { "worlds" } else { "" };
        Err(format!("the state differs: {}", differences(path, &recorded, &expected)))
    }
}

/// Copies the rejected actions that states show, if their reasons are among those of the line before. A replay contains
/// accepted actions only, so the rules don't reject them again. Returns true if it has copied any.
fn adopt_rejected(expected: &mut Value, recorded: &Value, rejected: &[Rejected]) -> bool {
    let (Some(expected), Some(recorded)) = (expected.as_array_mut(), recorded.as_array()) else { return false };
    let mut has_copied = false;
    for (seat, (expected, recorded)) in expected.iter_mut().zip(recorded).enumerate() {
        let (Some(place), Some(shown)) = (expected.get_mut("rejected"), recorded.get("rejected")) else { continue };
        let mut reasons = rejected.iter().filter(|one| one.seat == seat).map(|one| &*one.reason);
        // A replay counts further rejections only.
        let is_cut = reasons.clone().count() > MAX_REJECTED;
        let reason = |one: &Value| Some(format!("{}: {}", one.get("code")?.as_str()?, one.get("error")?.as_str()?));
        let mut is_known = |one: &Value| reason(one).is_some_and(|text| is_cut || reasons.any(|reason| reason == text));
        if shown.as_array().is_some_and(|shown| shown.iter().all(&mut is_known)) {
            has_copied |= place != shown;
            place.clone_from(shown);
        }
    }
    has_copied
}

/// Replaces the prompt and the descriptions of methods in the `expected` states of a challenge with the recorded
/// texts. Returns true if there are any.
fn adopt_texts(expected: &mut Value, recorded: &Value) -> bool {
    match (expected, recorded) {
        (Value::Array(expected), Value::Array(recorded)) => expected
            .iter_mut()
            .zip(recorded)
            .fold(false, |any, (expected, recorded)| adopt_texts(expected, recorded) | any),
        (Value::Object(expected), Value::Object(recorded)) => {
            for (key, expected) in expected.iter_mut() {
                match (key.as_str(), recorded.get(key)) {
                    ("prompt" | "description", Some(Value::String(text))) => *expected = json!(text),
                    ("methods", Some(recorded)) => {
                        adopt_texts(expected, recorded);
                    }
                    _ => {}
                }
            }
            expected.contains_key("prompt")
        }
        _ => false,
    }
}

/// Checks the header's config against the game's, with the recorded time limits. Older replays lack the game's name.
fn check_config(play: &Match, recorded: &Map<String, Value>) -> Result<(), String> {
    let limits: TimeLimits = serde_json::from_value(Value::Object(recorded.clone()))
        .map_err(|error| format!("the config has no time limits: {error}"))?;
    let mut expected = play.config(limits);
    if !recorded.contains_key("game_name") {
        expected.remove("game_name");
    }
    if let Some((key, value)) = expected.iter().find(|(key, value)| recorded.get(*key) != Some(*value)) {
        return Err(format!(
            "the constant `{key}` had another value when the match was played; the value is {value} now"
        ));
    }
    match recorded.keys().find(|key| !expected.contains_key(*key)) {
        Some(key) => Err(format!("the config has an unknown constant {}", shortly(&json!(key)))),
        None => Ok(()),
    }
}

/// The number of differences that are described; more are only counted.
const MAX_DIFFERENCES: usize = 3;

/// Describes the differences of two JSON values. `path` is the path of the values in their line or state. It
/// is empty for the whole line or state.
fn differences(path: &str, recorded: &Value, expected: &Value) -> String {
    let mut found = Vec::new();
    find_differences(path, recorded, expected, &mut found);
    match found.len() {
        // The values are equal, and their texts differ.
        0 => "the values are equal, but their JSON text differs".to_owned(),
        count if count <= MAX_DIFFERENCES => found.join("; "),
        count => format!("{}; and {} more", found[..MAX_DIFFERENCES].join("; "), count - MAX_DIFFERENCES),
    }
}

/// Adds a sentence for each different value, with the longest possible path, such as
/// `snakes.ada.positions[0]`.
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
            found.extend(added.map(|key| format!("{} is unexpected", inner(key))));
        }
        (Value::Array(recorded), Value::Array(expected)) if recorded.len() == expected.len() => {
            for (index, (recorded, expected)) in recorded.iter().zip(expected).enumerate() {
                find_differences(&format!("{path}[{index}]"), recorded, expected, found);
            }
        }
        _ if recorded == expected => {}
        _ => {
            let path = if path.is_empty() { "it" } else { path };
            found.push(format!("{path} is {}, but the rules give {}", shortly(recorded), shortly(expected)));
        }
    }
}

/// Returns a value as text, cut to fit into a sentence.
fn shortly(value: &Value) -> String {
    const MOST: usize = 60;
    let text = value.to_string();
    match text.char_indices().nth(MOST) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}
