//! The check of a run's folder: all finished games are played again from their seeds and the recorded answers. Nothing
//! is sent, started or written.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use arena_match::line_file::scan;
use arena_players::Halt;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::game::FinishedGame;
use crate::hash::sha256;
use crate::journal::JOURNAL;
use crate::recorded::{Difference, NeededCalls, RecordedCalls, compare};
use crate::runner::Replayer;
use crate::{
    CallLine, EvalAgentKind, EvalPlan, EvalRun, FolderError, GameRecord, JournalLine, PlannedGame, RunError, RunFile,
    Transcript,
};

/// The numbers of [`crate::Measured`] that don't depend on the endpoint and the clock.
const COUNTS: [&str; 4] = ["calls", "invalid", "refusals", "truncated"];

/// The result of the check of a run's folder.
#[derive(Debug)]
pub struct Verification {
    /// The finished games in the order of the journal.
    pub games: Vec<CheckedGame>,
    /// The differences that belong to no game.
    pub others: Vec<Difference>,
    /// The number of games of the run file without a result.
    pub unfinished: usize,
    /// The games that have a transcript, but no line in the journal.
    pub without_line: Vec<String>,
}

#[derive(Debug)]
pub struct CheckedGame {
    /// The id.
    pub game: String,
    pub check: GameCheck,
}

#[derive(Debug, PartialEq)]
pub enum GameCheck {
    /// The recorded answers give the recorded result and transcript.
    Agrees,
    Contradicts(Vec<Difference>),
    /// The game can't be played again, for this reason.
    Unchecked(String),
}

/// The games of the run file that the journal had accepted last at a line.
struct Era {
    plan: EvalPlan,
    games: BTreeMap<String, PlannedGame>,
    /// The agents and challenges whose recorded identity isn't that of their definition in this program.
    changed: BTreeSet<String>,
    replayer: Replayer,
}

/// Plays all finished games of a run again, and compares them with the journal and the transcripts. Another process may
/// be continuing the run.
///
/// # Errors
/// If there is no run, or a file is unreadable.
pub async fn verify(dir: &Path) -> Result<Verification, RunError> {
    let run = EvalRun::load(dir)?;
    let mut lines = Vec::new();
    scan(&dir.join(JOURNAL), |_, line| {
        let line = serde_json::from_slice(line).map_err(|error| error.to_string())?;
        lines.push(line);
        Ok(())
    })
    .map_err(FolderError::from)?;
    let calls = Arc::new(RecordedCalls::new(run.call_file()?));
    let mut era: Option<(RunFile, BTreeMap<String, String>)> = None;
    let mut current: Option<Era> = None;
    let (mut games, mut seen) = (Vec::new(), BTreeSet::new());
    for line in lines {
        match line {
            JournalLine::Start { file, identities, .. } => {
                era = Some((*file, identities.into_iter().collect()));
                current = None;
            }
            JournalLine::Resume { file, identities, .. } => {
                if let Some((old, known)) = &mut era {
                    *old = file.map_or_else(|| old.clone(), |file| *file);
                    known.extend(identities);
                }
                current = None;
            }
            JournalLine::Game(record) => {
                let Some((file, identities)) = &era else { continue };
                if current.is_none() {
                    current = Some(Era::new(file, identities, dir, &calls)?);
                }
                let Some(era) = &current else { continue };
                let is_new = seen.insert(record.game.clone());
                let check = if is_new { era.check(&run, &record, &calls).await? } else { repeated() };
                games.push(CheckedGame { game: record.game, check });
            }
            JournalLine::Change(_) | JournalLine::Void(_) => {}
        }
    }
    let unfinished = run.plan.games.iter().filter(|game| !seen.contains(&game.id)).count();
    let without_line = run.transcript_ids()?.into_iter().filter(|id| !seen.contains(id)).collect();
    Ok(Verification { games, others: false_texts(dir)?, unfinished, without_line })
}

fn repeated() -> GameCheck {
    GameCheck::Contradicts(vec![Difference::new("journal.jsonl", "another line of this game", Value::Null)])
}

/// Returns the texts of `calls.jsonl` that don't fit their hashes.
fn false_texts(dir: &Path) -> Result<Vec<Difference>, FolderError> {
    #[derive(Deserialize)]
    struct Text {
        sha256: Option<String>,
        text: Option<String>,
    }
    let mut found = Vec::new();
    scan(&dir.join(crate::calls::CALLS), |_, line| {
        let Text { sha256: hash, text } = serde_json::from_slice(line).map_err(|error| error.to_string())?;
        if let Some((hash, text)) = hash.zip(text) {
            compare("calls.jsonl, a text: sha256", &hash.into(), &sha256(&text).into(), &mut found);
        }
        Ok(())
    })?;
    Ok(found)
}

impl Era {
    fn new(
        file: &RunFile,
        identities: &BTreeMap<String, String>,
        dir: &Path,
        calls: &Arc<RecordedCalls>,
    ) -> Result<Era, RunError> {
        let plan = |identities| EvalPlan::recorded(file.clone(), dir, identities).map_err(FolderError::from);
        let (own, plan) = (plan(&BTreeMap::new())?.identities(), plan(identities)?);
        let own: BTreeMap<String, String> = own.into_iter().collect();
        let changed = plan.identities().into_iter().filter(|(name, identity)| own.get(name) != Some(identity));
        Ok(Era {
            games: plan.games.iter().map(|game| (game.id.clone(), game.clone())).collect(),
            changed: changed.map(|(name, _)| name).filter(|name| !name.starts_with("baseline ")).collect(),
            replayer: Replayer::new(&plan, calls)?,
            plan,
        })
    }

    async fn check(&self, run: &EvalRun, record: &GameRecord, calls: &RecordedCalls) -> Result<GameCheck, RunError> {
        let Some(game) = self.games.get(&record.game) else {
            let place = "journal.jsonl: game";
            return Ok(GameCheck::Contradicts(vec![Difference::new(place, record.game.as_str(), Value::Null)]));
        };
        let mut found = Vec::new();
        self.compare_plan(record, game, &mut found);
        if let Some(program) = self.program(game) {
            let why = format!("cannot be played again: the answers of {program}, a program, aren't recorded");
            return Ok(if found.is_empty() { GameCheck::Unchecked(why) } else { GameCheck::Contradicts(found) });
        }
        let recorded = run.calls(&record.game)?;
        let played = self.replayer.play(game).await;
        let needed = calls.take();
        let mut why = None;
        match played {
            Ok(played) => {
                found.clear();
                compare("journal.jsonl: ", &comparable(record), &comparable(&played.record), &mut found);
                compare_transcript(run.transcript(&record.game)?.as_ref(), &played, &mut found);
                compare_calls(&recorded, &needed, &mut found);
            }
            Err(Halt::Stopped) => why = missing(record, &recorded, &needed, &mut found),
            Err(Halt::Broken(why)) => return Err(RunError::Failed(why)),
            Err(Halt::Failed(reason) | Halt::Suspended { why: reason, .. }) => why = Some(reason),
            Err(Halt::Budget(cap)) => why = Some(format!("the cap {cap} is reached")),
        }
        found.extend(needed.differences);
        if let (Some(changed), false) = (self.changed_of(game), found.is_empty() && why.is_none()) {
            why = Some(format!("{changed} differs from the recorded one in this program or in the run file"));
            found.clear();
        }
        Ok(match why {
            _ if !found.is_empty() => GameCheck::Contradicts(found),
            Some(why) => GameCheck::Unchecked(format!("cannot be played again: {why}")),
            None => GameCheck::Agrees,
        })
    }

    /// Compares the deal and the seats of a game with the run file.
    fn compare_plan(&self, record: &GameRecord, game: &PlannedGame, found: &mut Vec<Difference>) {
        let agents: Vec<&str> = game.seats.iter().map(|agent| self.plan.agents[*agent].name.as_str()).collect();
        let recorded: Vec<&str> = record.seats.iter().map(|seat| seat.agent.as_str()).collect();
        let label = &self.plan.challenges[game.challenge].label;
        let planned = json!({"challenge": label, "seed": game.seed_number, "agents": agents});
        let recorded = json!({"challenge": record.challenge, "seed": record.seed, "agents": recorded});
        compare("journal.jsonl: ", &recorded, &planned, found);
    }

    /// Returns the name of a program in a game.
    fn program(&self, game: &PlannedGame) -> Option<&str> {
        let mut agents = game.seats.iter().map(|agent| &self.plan.agents[*agent]);
        let program = agents.find(|agent| matches!(agent.kind, EvalAgentKind::Program(_)));
        program.map(|agent| agent.name.as_str())
    }

    /// Returns the first agent or challenge of a game whose definition has changed.
    fn changed_of(&self, game: &PlannedGame) -> Option<&String> {
        let models = game.seats.iter().filter_map(|agent| self.plan.model(*agent));
        let names = models.map(|model| format!("model {}", model.name));
        let challenge = format!("challenge {}", self.plan.challenges[game.challenge].label);
        names.chain([challenge]).find_map(|name| self.changed.get(&name))
    }
}

/// Returns the values of a record that follow from the answers.
fn comparable(record: &GameRecord) -> Value {
    // Through a text, as the recorded values.
    let text = serde_json::to_string(record).unwrap_or_default();
    let mut value: Value = serde_json::from_str(&text).unwrap_or_default();
    for seat in value["seats"].as_array_mut().into_iter().flatten() {
        if let Some(measured) = seat["measured"].as_object_mut() {
            measured.retain(|key, _| COUNTS.contains(&key.as_str()));
        }
    }
    value
}

fn compare_transcript(recorded: Option<&Transcript>, played: &FinishedGame, found: &mut Vec<Difference>) {
    let place = "transcripts.jsonl: ";
    let Some(recorded) = recorded else {
        found.push(Difference::new(place.trim_end_matches(": "), Value::Null, "a transcript"));
        return;
    };
    let [recorded, played] = [recorded, &played.transcript].map(|one| serde_json::to_value(one).unwrap_or_default());
    compare(place, &recorded, &played, found);
}

/// Returns the seats and numbers of calls in the order of the file.
fn places(recorded: &[CallLine]) -> Vec<(usize, u32)> {
    let place = |line: &CallLine| match line {
        CallLine::Call(call) => call.seat.map(|seat| (seat, call.number)),
        CallLine::Text { .. } => None,
    };
    recorded.iter().filter_map(place).collect()
}

/// Finds the recorded calls that a game hasn't needed, and those that are out of order.
fn compare_calls(recorded: &[CallLine], needed: &NeededCalls, found: &mut Vec<Difference>) {
    let mut last: BTreeMap<usize, u32> = BTreeMap::new();
    for (seat, number) in places(recorded) {
        let place = format!("calls.jsonl, seat {seat}, number {number}");
        let before = last.insert(seat, number).unwrap_or(0);
        if !needed.found.contains(&(seat, number)) {
            found.push(Difference::new(place, "an answer", Value::Null));
        } else if number != before + 1 {
            found.push(Difference::new(
                place,
                format!("after number {before}"),
                format!("after number {}", number - 1),
            ));
        }
    }
}

/// Returns the reason why a game can't be played again if a call isn't recorded. A call contradicts the game if it
/// has another request, or if the journal counts fewer calls.
fn missing(
    record: &GameRecord,
    recorded: &[CallLine],
    needed: &NeededCalls,
    found: &mut Vec<Difference>,
) -> Option<String> {
    let Some((seat, number)) = needed.missing else { return Some("it was stopped".to_owned()) };
    let of_seat = record.seats.get(seat);
    let counted = of_seat.map_or(0, |seat| seat.measured.calls);
    if places(recorded).contains(&(seat, number)) {
        let place = format!("calls.jsonl, seat {seat}, number {number}: key");
        found.push(Difference::new(place, "the answer to another request", "the request after the earlier answers"));
    } else if number > counted {
        let place = format!("journal.jsonl: seats[{seat}].measured.calls");
        found.push(Difference::new(place, counted, format!("{number} or more")));
    } else {
        let agent = of_seat.map_or("", |seat| seat.agent.as_str());
        return Some(format!("call {number} of {agent} on seat {} is missing", seat + 1));
    }
    None
}
