//! The content of a journal: the plan, the schedule and the result of each match. `arena-runner` reads and writes the
//! file.

use serde_json::{Map, Value};

use crate::journal::{ChangedLine, CheckedLine, Columns, GameLine, JournalLine, QuarantinedLine, SpreadLine};
use crate::plan::{PlanError, TournamentPlan};
use crate::schedule::{RecordError, Schedule};

/// A tournament, as recorded in its journal.
#[derive(Debug, Clone)]
pub struct Record {
    /// The plan.
    pub plan: TournamentPlan,
    /// The schedule with the results so far.
    pub schedule: Schedule,
    /// The result of each match, by its number minus one.
    games: Vec<Option<GameLine>>,
    /// The changes of agents' files that the user accepted.
    pub changes: Vec<ChangedLine>,
    /// The start of execution by NATS workers; `None` if no workers have played.
    pub spread: Option<SpreadLine>,
    /// The confirmations of matches by other workers.
    pub checked: Vec<CheckedLine>,
    /// The quarantined workers.
    pub quarantined: Vec<QuarantinedLine>,
    /// The number of bytes in the incomplete last line, which the reader ignores.
    pub cut_off: usize,
}

/// A rebuilt schedule with its results, and the number of the first match that doesn't fit this schedule.
type Rebuilt = ((Schedule, Vec<Option<GameLine>>), Option<usize>);

/// An error in a line of a journal.
#[derive(Debug, PartialEq, Eq)]
pub struct InvalidLine {
    /// The number of the line, from 1.
    pub line: usize,
    /// The error, in one sentence.
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

    /// Reads the text of a journal.
    pub fn read(text: &[u8]) -> Result<Record, InvalidLine> {
        let whole = text.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        let mut lines = (1..).zip(text[..whole].split_inclusive(|byte| *byte == b'\n'));
        let wrong = |line: usize, what: String| InvalidLine { line, what };
        let Some((_, first)) = lines.next() else {
            return Err(wrong(1, "the plan is missing".to_owned()));
        };
        let plan: TournamentPlan = serde_json::from_slice(first)
            .map_err(|error| wrong(1, format!("the line isn't the plan of a tournament: {}", without_place(&error))))?;
        let mut record = Record::new(plan).map_err(|error| wrong(1, error.to_string()))?;
        for (number, line) in lines {
            let line: JournalLine =
                serde_json::from_slice(line).map_err(|error| wrong(number, record.explain(line, &error)))?;
            record.take(line).map_err(|what| wrong(number, what))?;
        }
        record.cut_off = text.len() - whole;
        Ok(record)
    }

    /// Checks that a line doesn't contradict the earlier lines, but doesn't apply it. The error is the reason that
    /// [`Record::take`] would return.
    pub fn check_line(&self, line: &JournalLine) -> Result<(), String> {
        match line {
            JournalLine::Game(game) => self.check_game(game),
            JournalLine::Changed(changed) => self.find_agent(&changed.agent).map(drop),
            JournalLine::Spread(_) => Ok(()),
            JournalLine::Checked(checked) => self.check_played(checked),
            JournalLine::Quarantined(quarantined) => self.without_void(quarantined).map(drop),
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
            JournalLine::Quarantined(quarantined) => self.quarantine(quarantined),
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

    /// Applies the change of an agent.
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

    /// Applies the confirmation of a match.
    fn check(&mut self, checked: CheckedLine) -> Result<(), String> {
        self.check_played(&checked)?;
        self.checked.push(checked);
        Ok(())
    }

    /// Checks that a confirmed match has a result.
    fn check_played(&self, checked: &CheckedLine) -> Result<(), String> {
        match self.game(checked.fixture) {
            Some(_) => Ok(()),
            None => Err(format!("game {} was checked before it was played", checked.fixture)),
        }
    }

    /// Applies the quarantine of a worker, and removes its void matches.
    fn quarantine(&mut self, quarantined: QuarantinedLine) -> Result<(), String> {
        (self.schedule, self.games) = self.without_void(&quarantined)?;
        self.checked.retain(|checked| !quarantined.void.contains(&checked.fixture));
        self.quarantined.push(quarantined);
        Ok(())
    }

    /// Returns the schedule and the results without the void matches of a quarantine.
    fn without_void(&self, quarantined: &QuarantinedLine) -> Result<(Schedule, Vec<Option<GameLine>>), String> {
        match self.rebuilt(|game| !quarantined.void.contains(&game.number))? {
            (left, None) => Ok(left),
            (_, Some(game)) => Err(format!("game {game} depends on games that don't count")),
        }
    }

    /// Returns the numbers of the matches for which `is_void` is true, and of the matches whose pairings depend on
    /// their results. If the former don't count, all of these matches must be played again.
    pub fn void_with(&self, is_void: impl Fn(&GameLine) -> bool) -> Vec<usize> {
        let mut void: Vec<usize> =
            self.games.iter().flatten().filter(|game| is_void(game)).map(|game| game.number).collect();
        // The pairings of a wave depend on all results before it.
        while let Ok((_, Some(first))) = self.rebuilt(|game| !void.contains(&game.number)) {
            let later = |game: &&GameLine| game.number >= first && !void.contains(&game.number);
            let more: Vec<usize> = self.games.iter().flatten().filter(later).map(|game| game.number).collect();
            void.extend(more);
        }
        void.sort_unstable();
        void
    }

    /// Rebuilds the schedule from the matches for which `counts` is true. Stops at the first match that isn't in the
    /// rebuilt schedule or contradicts it, and also returns this match's number.
    fn rebuilt(&self, counts: impl Fn(&GameLine) -> bool) -> Result<Rebuilt, String> {
        let shape = self.plan.shape().map_err(|error| error.to_string())?;
        let mut again = Record {
            schedule: Schedule::new(shape).map_err(|error| error.to_string())?,
            games: Vec::new(),
            ..self.clone()
        };
        for game in self.games.iter().flatten().filter(|game| counts(game)) {
            let number = game.number;
            if again.schedule.pairing(number).is_none() || again.add(game.clone()).is_err() {
                return Ok(((again.schedule, again.games), Some(number)));
            }
        }
        Ok(((again.schedule, again.games), None))
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

/// Returns the error's text without its position. Each journal line is parsed separately, so the position always says
/// `line 1`.
fn without_place(error: &serde_json::Error) -> String {
    let text = error.to_string();
    match text.rfind(" at line ") {
        Some(at) => text[..at].to_owned(),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use arena_model::{Dialect, Seed};
    use serde_json::json;

    use super::*;
    use crate::format::Format;
    use crate::journal::WorkerPart;
    use crate::plan::{AgentAddress, Entrant};
    use crate::shape::Shape;

    /// Returns a Swiss tournament of four agents and three rounds, with unpaired games.
    fn swiss() -> Record {
        let entrant = |name: &str| Entrant {
            name: name.to_owned(),
            agent_id: None,
            version: None,
            path: name.to_owned(),
            dialect: Dialect::default(),
            reach: AgentAddress::Url(format!("http://127.0.0.1/{name}")),
            files: Vec::new(),
            sha256: None,
        };
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
    fn void_games_are_played_again_with_those_that_depend_on_them() {
        let mut record = swiss();
        for (number, worker) in [(1, "one"), (2, "liar"), (3, "one"), (4, "one"), (5, "liar")] {
            record.add(game(&record, number, 0, worker)).unwrap();
        }
        let is_its = |game: &GameLine| game.worker.as_ref().is_some_and(|worker| worker.id == "liar");
        let void = record.void_with(is_its);
        // The second round depends on the first, and the third on the second.
        assert_eq!(void, [2, 3, 4, 5]);
        let line = QuarantinedLine { worker: "liar".into(), id: "liar".into(), why: "it lied".into(), void };
        let text = serde_json::to_string(&JournalLine::Quarantined(line.clone())).unwrap();
        record.quarantine(line).unwrap();
        let pending = |record: &Record| record.schedule.pending().map(|pairing| pairing.number).collect::<Vec<_>>();
        assert_eq!((pending(&record), record.games().count()), (vec![2], 1));
        record.add(game(&record, 2, 1, "one")).unwrap();
        assert_eq!(pending(&record), [3, 4]);
        assert!(text.starts_with(r#"{"type":"quarantined","worker":"liar""#), "{text}");
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
        let early = CheckedLine { fixture: 2, worker: "two".into(), id: "two".into() };
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

    #[test]
    fn games_of_the_same_wave_stay() {
        let mut record = swiss();
        record.add(game(&record, 1, 0, "one")).unwrap();
        record.add(game(&record, 2, 0, "two")).unwrap();
        assert_eq!(record.void_with(|game| game.number > 2), [0; 0]);
        let early = CheckedLine { fixture: 3, worker: "two".into(), id: "two".into() };
        assert_eq!(record.check(early).unwrap_err(), "game 3 was checked before it was played");
        let wrong = QuarantinedLine { worker: "one".into(), id: "one".into(), why: String::new(), void: vec![1] };
        record.add(game(&record, 3, 0, "two")).unwrap();
        let error = record.quarantine(wrong).unwrap_err();
        assert_eq!(error, "game 3 depends on games that don't count");
    }
}
