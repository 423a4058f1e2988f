//! The content of a journal: the plan, the schedule and the result of each match. `arena-runner` reads and writes the
//! file.

use serde_json::{Map, Value};

use crate::journal::{ChangedLine, CheckedLine, Columns, GameLine, JournalLine, QuarantinedLine, SpreadLine};
use crate::plan::{PlanError, TournamentPlan};
use crate::schedule::{RecordError, Schedule};

/// A tournament, as recorded in its journal.
#[derive(Debug, Clone)]
pub struct Record {
    pub plan: TournamentPlan,
    pub schedule: Schedule,
    /// The result of each match, by its number minus one.
    games: Vec<Option<GameLine>>,
    /// The changes of agents' files that the user accepted.
    pub changes: Vec<ChangedLine>,
    /// The start of execution by NATS workers; `None` if no workers have played.
    pub spread: Option<SpreadLine>,
    /// The second plays of matches by other workers.
    pub checked: Vec<CheckedLine>,
    /// The workers that an earlier program put in quarantine.
    pub quarantined: Vec<QuarantinedLine>,
    /// The number of bytes in the incomplete last line, which the reader ignores.
    pub cut_off: usize,
}

#[derive(Debug, PartialEq, Eq)]
pub struct InvalidLine {
    /// The number of the line, from 1.
    pub line: usize,
    pub what: String,
}

impl Record {
    /// Creates a tournament without results.
    ///
    /// # Errors
    /// [`PlanError`] if the plan is invalid.
    pub fn new(plan: TournamentPlan) -> Result<Record, PlanError> {
        plan.check()?;
        let schedule = Schedule::new(plan.shape()?)?;
        Ok(Record {
            plan,
            schedule,
            games: Vec::new(),
            changes: Vec::new(),
            spread: None,
            checked: Vec::new(),
            quarantined: Vec::new(),
            cut_off: 0,
        })
    }

    pub fn read(text: &[u8]) -> Result<Record, InvalidLine> {
        let Lines { plan, lines, cut_off } = lines_of(text)?;
        let wrong = |line: usize, what: String| InvalidLine { line, what };
        let mut record = Record::new(plan).map_err(|error| wrong(1, error.to_string()))?;
        let quarantined: Vec<(usize, QuarantinedLine)> =
            lines.clone().filter_map(|(number, line)| Some((number, quarantine_in(line)?))).collect();
        for (number, line) in lines {
            let line: JournalLine =
                serde_json::from_slice(line).map_err(|error| wrong(number, record.explain(line, &error)))?;
            let game = match &line {
                JournalLine::Game(game) => Some(game.number),
                JournalLine::Checked(checked) => Some(checked.fixture),
                _ => None,
            };
            let is_void = |game| quarantined.iter().any(|(at, line)| number < *at && line.void.contains(&game));
            if game.is_some_and(is_void) {
                continue;
            }
            record.take(line).map_err(|what| wrong(number, what))?;
        }
        record.cut_off = cut_off;
        Ok(record)
    }

    /// Checks that a line doesn't contradict the earlier lines, but doesn't apply it. The error is the reason that
    /// [`Record::take`] would return.
    pub fn check_line(&self, line: &JournalLine) -> Result<(), String> {
        match line {
            JournalLine::Game(game) => self.check_game(game),
            JournalLine::Changed(changed) => self.find_agent(&changed.agent).map(drop),
            JournalLine::Spread(_) | JournalLine::Quarantined(_) => Ok(()),
            JournalLine::Checked(checked) => self.check_played(checked),
            JournalLine::Added(_)
            | JournalLine::Removed(_)
            | JournalLine::Suspended(_)
            | JournalLine::SeasonClosed(_) => {
                Err("agents join and leave, and seasons end, only in a league".to_owned())
            }
        }
    }

    /// Applies a line of the journal, or returns the reason that the line contradicts the earlier lines.
    pub fn take(&mut self, line: JournalLine) -> Result<(), String> {
        match line {
            JournalLine::Game(game) => self.add(*game),
            JournalLine::Changed(changed) => self.change(changed),
            JournalLine::Spread(spread) => {
                self.spread = Some(spread);
                Ok(())
            }
            JournalLine::Checked(checked) => self.check(checked),
            JournalLine::Quarantined(quarantined) => {
                self.quarantined.push(quarantined);
                Ok(())
            }
            line => self.check_line(&line),
        }
    }

    /// Applies the result of a match, or returns the reason that the result contradicts the schedule or an earlier
    /// result.
    pub fn add(&mut self, game: GameLine) -> Result<(), String> {
        self.check_game(&game)?;
        let (number, result) = (game.number, &game.result);
        let moves = result.moves.as_ref().map(|moves| (moves.first, moves.sha256.as_str()));
        let recorded = match result.outcome.is_void() {
            true => self.schedule.record_void(number),
            false => self.schedule.record_moves(number, &result.ranks(), moves),
        };
        recorded.map_err(|error: RecordError| error.to_string())?;
        if self.games.len() < number {
            self.games.resize(number, None);
        }
        self.games[number - 1] = Some(game);
        Ok(())
    }

    /// Checks the result of a match against the schedule and the earlier results.
    fn check_game(&self, game: &GameLine) -> Result<(), String> {
        let (number, result) = (game.number, &game.result);
        if let Some(before) = self.game(number) {
            return Err(match before.round == game.round && before.result.is_same(result) {
                true => format!("game {number} is recorded twice; remove one of the lines"),
                false => format!("game {number} has another result on an earlier line; remove one of the lines"),
            });
        }
        self.check_pairing(number, game.round, &result.names(), &result.seed.reveal())?;
        let ranks = (!result.outcome.is_void()).then(|| result.ranks());
        self.schedule.check(number, ranks.as_deref()).map_err(|error: RecordError| error.to_string())
    }

    /// Checks a result's agents, seed and round against the schedule, if the schedule already contains the match.
    fn check_pairing(&self, number: usize, round: usize, agents: &[&str], seed: &str) -> Result<(), String> {
        let Some(pairing) = self.schedule.pairing(number) else { return Ok(()) };
        let names: Vec<&str> = pairing.agents.iter().map(|agent| self.name(*agent)).collect();
        if agents != names {
            let (names, agents) = (names.join(" and "), agents.join(" and "));
            return Err(format!("game {number} is between {names}, not between {agents}"));
        }
        if seed != pairing.seed.reveal() || round != pairing.round {
            return Err(format!("game {number} has another seed or round in the schedule"));
        }
        Ok(())
    }

    /// Returns the most helpful error for a line that can't be parsed.
    fn explain(&self, line: &[u8], error: &serde_json::Error) -> String {
        let columns = || {
            let mut line: Map<String, Value> = serde_json::from_slice(line).ok()?;
            line.remove("type");
            serde_json::from_value::<Columns>(Value::Object(line)).ok()
        };
        let wrong = columns().and_then(|columns| {
            let agents: Vec<&str> = columns.agents.iter().map(String::as_str).collect();
            let checked = self.check_pairing(columns.fixture, columns.round, &agents, &columns.seed);
            checked.and_then(|()| GameLine::try_from(columns).map(drop)).err()
        });
        wrong.unwrap_or_else(|| format!("the line isn't the result of a match: {}", without_place(error)))
    }

    fn change(&mut self, changed: ChangedLine) -> Result<(), String> {
        let agent = self.find_agent(&changed.agent)?;
        self.plan.agents[agent].sha256.clone_from(&changed.sha256);
        self.changes.push(changed);
        Ok(())
    }

    /// Returns the number of the agent with this name, from 0.
    fn find_agent(&self, name: &str) -> Result<usize, String> {
        let found = self.plan.agents.iter().position(|agent| agent.name == name);
        found.ok_or_else(|| format!("there is no agent {name}"))
    }

    /// Applies the second play of a match.
    fn check(&mut self, checked: CheckedLine) -> Result<(), String> {
        self.check_played(&checked)?;
        self.checked.push(checked);
        Ok(())
    }

    /// Checks that a match that was played twice has a result.
    fn check_played(&self, checked: &CheckedLine) -> Result<(), String> {
        match self.game(checked.fixture) {
            Some(_) => Ok(()),
            None => Err(format!("game {} was checked before it was played", checked.fixture)),
        }
    }

    /// Returns the name of the agent with this number, from 0.
    pub fn name(&self, agent: usize) -> &str {
        &self.plan.agents[agent].name
    }

    /// Returns the result of the match with this number, from 1, if it was played.
    pub fn game(&self, number: usize) -> Option<&GameLine> {
        self.games.get(number.checked_sub(1)?)?.as_ref()
    }

    /// Returns the seat that reports list first for the match with this number, from 1: White's seat, or the first seat
    /// in games without White.
    pub fn first_seat(&self, number: usize) -> usize {
        let (pairing, game) = (self.schedule.pairing(number), self.plan.game().ok());
        let first = pairing
            .zip(game)
            .map(|(pairing, game)| game.first_seat(&self.plan.options, &pairing.seed, pairing.agents.len()));
        first.unwrap_or(0)
    }

    /// Returns the results of all matches that have been played and count, in the order of their numbers.
    pub fn games(&self) -> impl Iterator<Item = &GameLine> {
        self.games.iter().flatten().filter(|game| self.schedule.counts(game.number))
    }
}

impl TournamentPlan {
    /// Reads the plan in a journal without the later lines. Doesn't check it.
    ///
    /// # Errors
    /// [`InvalidLine`] if the first line isn't a plan.
    pub fn read(journal: &[u8]) -> Result<TournamentPlan, InvalidLine> {
        lines_of(journal).map(|lines| lines.plan)
    }
}

/// The complete lines of a journal.
pub(crate) struct Lines<'t, I: Iterator<Item = (usize, &'t [u8])>> {
    pub plan: TournamentPlan,
    /// The lines after the plan, with their numbers from 2.
    pub lines: I,
    /// The number of bytes in the incomplete last line.
    pub cut_off: usize,
}

pub(crate) fn lines_of(text: &[u8]) -> Result<Lines<'_, impl Iterator<Item = (usize, &[u8])> + Clone>, InvalidLine> {
    let whole = text.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
    let mut lines = (1..).zip(text[..whole].split_inclusive(|byte| *byte == b'\n'));
    let wrong = |what: String| InvalidLine { line: 1, what };
    let (_, first) = lines.next().ok_or_else(|| wrong("the plan is missing".to_owned()))?;
    let plan = serde_json::from_slice(first)
        .map_err(|error| wrong(format!("the line isn't the plan of a tournament: {}", without_place(&error))))?;
    Ok(Lines { plan, lines, cut_off: text.len() - whole })
}

/// Returns the quarantine in a line of an earlier program's journal; `None` for other lines.
fn quarantine_in(line: &[u8]) -> Option<QuarantinedLine> {
    if !line.starts_with(br#"{"type":"quarantined""#) {
        return None;
    }
    match serde_json::from_slice(line) {
        Ok(JournalLine::Quarantined(quarantined)) => Some(quarantined),
        _ => None,
    }
}

/// Returns the error's text without its position. Each journal line is parsed separately, so the position always says
/// `line 1`.
pub(crate) fn without_place(error: &serde_json::Error) -> String {
    let text = error.to_string();
    match text.rfind(" at line ") {
        Some(at) => text[..at].to_owned(),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use arena_model::Seed;
    use serde_json::json;

    use super::*;
    use crate::format::Format;
    use crate::journal::WorkerPart;
    use crate::plan::{AgentAddress, Entrant};
    use crate::shape::Shape;

    /// Returns a Swiss tournament of four agents and three rounds, with unpaired games.
    fn swiss() -> Record {
        let entrant = |name: &str| Entrant::new(name, name, AgentAddress::Url(format!("http://127.0.0.1/{name}")));
        let seed = Seed::from_number(5);
        let shape = Shape { format: Format::Swiss, agents: 4, rounds: 3, seats: 2, paired: false, stop: None, seed };
        let game = arena_games::game("snake").unwrap();
        Record::new(TournamentPlan::new(game, ["a", "b", "c", "d"].map(entrant).to_vec(), &shape)).unwrap()
    }

    /// Returns a result of the game with this number in which the seat `first`, from 0, wins.
    fn game(record: &Record, number: usize, first: usize, worker: &str) -> GameLine {
        let pairing = record.schedule.pairing(number).unwrap();
        let ranks = if first == 0 { [1, 2] } else { [2, 1] };
        let names: Vec<&str> = pairing.agents.iter().map(|agent| record.name(*agent)).collect();
        let mut line: GameLine = serde_json::from_value(json!({
            "fixture": number, "round": pairing.round, "agents": names, "ranks": ranks, "scores": [0.0, 0.0],
            "verdicts": [null, null], "details": [null, null], "faults": [0, 0], "seed": pairing.seed.reveal(), "epochs": 1,
            "outcome": {"termination": "GAME_ENDED", "winner": "DRAW"},
            "time": {"took_ms": 0.0, "waited_ms": [0.0, 0.0], "longest_step_ms": [0.0, 0.0]},
        }))
        .unwrap();
        line.worker = Some(WorkerPart { name: worker.to_owned(), id: worker.to_owned(), played: String::new() });
        line
    }

    #[test]
    fn void_games_in_journals_of_earlier_programs_do_not_count() {
        let mut record = swiss();
        let mut text = serde_json::to_vec(&record.plan).unwrap();
        let mut write = |line: JournalLine| {
            text.push(b'\n');
            text.extend(serde_json::to_vec(&line).unwrap());
        };
        for (number, worker) in [(1, "one"), (2, "liar"), (3, "one"), (4, "one"), (5, "liar")] {
            let line = game(&record, number, 0, worker);
            write(JournalLine::Game(Box::new(line.clone())));
            record.add(line).unwrap();
        }
        write(JournalLine::Checked(CheckedLine { fixture: 3, worker: "two".into(), id: "two".into(), differs: false }));
        let (worker, id, why) = ("liar".to_owned(), "liar".to_owned(), "it lied".to_owned());
        write(JournalLine::Quarantined(QuarantinedLine { worker, id, why, void: vec![2, 3, 4, 5] }));
        let again = game(&record, 2, 1, "one");
        write(JournalLine::Game(Box::new(again.clone())));
        text.push(b'\n');
        let read = Record::read(&text).unwrap();
        let pending: Vec<usize> = read.schedule.pending().map(|pairing| pairing.number).collect();
        assert_eq!((pending, read.games().count()), (vec![3, 4], 2));
        assert_eq!((read.game(2), read.checked.len(), read.quarantined.len()), (Some(&again), 0, 1));
    }

    #[test]
    fn a_line_is_checked_without_being_applied() {
        let mut record = swiss();
        let first = game(&record, 1, 0, "one");
        let line = |game: &GameLine| JournalLine::Game(Box::new(game.clone()));
        record.check_line(&line(&first)).unwrap();
        assert_eq!(record.games().count(), 0);
        record.add(first.clone()).unwrap();
        let unknown = GameLine { number: 9, ..first.clone() };
        let early = CheckedLine { fixture: 2, worker: "two".into(), id: "two".into(), differs: false };
        let lines = [
            (line(&first), "game 1 is recorded twice; remove one of the lines"),
            (line(&unknown), "there is no game 9; games scheduled so far: 2"),
            (JournalLine::Checked(early), "game 2 was checked before it was played"),
            (JournalLine::Changed(ChangedLine { agent: "e".into(), sha256: None }), "there is no agent e"),
        ];
        for (line, reason) in lines {
            assert_eq!(record.check_line(&line).unwrap_err(), reason);
            assert_eq!(record.take(line).unwrap_err(), reason);
        }
        assert_eq!(record.games().count(), 1);
    }
}
