//! The content of a journal: the plan, the schedule, and the result of each match. `arena-runner` reads and writes the file.

use serde_json::{Map, Value};

use crate::journal::{ChangedLine, CheckedLine, Columns, GameLine, Line, QuarantinedLine, SpreadLine};
use crate::plan::{Plan, PlanError};
use crate::schedule::{RecordError, Schedule};

/// A tournament as its journal tells it.
#[derive(Debug, Clone)]
pub struct Record {
    /// What is played.
    pub plan: Plan,
    /// Who meets whom, and what came of it so far.
    pub schedule: Schedule,
    /// What came of each match, by its number less one.
    games: Vec<Option<GameLine>>,
    /// The agents that were changed on the way.
    pub changes: Vec<ChangedLine>,
    /// By which workers know the tournament, if they play it.
    pub spread: Option<SpreadLine>,
    /// The matches that another worker has played with the same result.
    pub checked: Vec<CheckedLine>,
    /// The workers that aren't believed any more.
    pub quarantined: Vec<QuarantinedLine>,
    /// How many bytes at the end were no whole line and don't count.
    pub cut_off: usize,
}

/// A schedule with what came of its matches, and the first match that doesn't belong there.
type Rebuilt = ((Schedule, Vec<Option<GameLine>>), Option<usize>);

/// What is wrong with a journal, and in which line, from 1.
#[derive(Debug, PartialEq, Eq)]
pub struct Wrong {
    /// From 1.
    pub line: usize,
    /// In a sentence.
    pub what: String,
}

impl Record {
    /// A tournament in which nothing has been played.
    ///
    /// # Errors
    /// When it can't be played.
    pub fn new(plan: Plan) -> Result<Record, PlanError> {
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

    /// What this text says.
    pub fn read(text: &[u8]) -> Result<Record, Wrong> {
        let whole = text.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        let mut lines = (1..).zip(text[..whole].split_inclusive(|byte| *byte == b'\n'));
        let wrong = |line: usize, what: String| Wrong { line, what };
        let Some((_, first)) = lines.next() else {
            return Err(wrong(1, "the plan is missing".to_owned()));
        };
        let plan: Plan = serde_json::from_slice(first)
            .map_err(|error| wrong(1, format!("this isn't the plan of a tournament: {}", told(&error))))?;
        let mut record = Record::new(plan).map_err(|error| wrong(1, error.to_string()))?;
        for (number, line) in lines {
            let line: Line =
                serde_json::from_slice(line).map_err(|error| wrong(number, record.explain(line, &error)))?;
            record.take(line).map_err(|what| wrong(number, what))?;
        }
        record.cut_off = text.len() - whole;
        Ok(record)
    }

    /// Takes a line of the journal, or says why it doesn't belong here.
    pub fn take(&mut self, line: Line) -> Result<(), String> {
        match line {
            Line::Game(game) => self.add(*game),
            Line::Changed(changed) => self.change(changed),
            Line::Spread(spread) => {
                self.spread = Some(spread);
                Ok(())
            }
            Line::Checked(checked) => self.check(checked),
            Line::Quarantined(quarantined) => self.quarantine(quarantined),
        }
    }

    /// Takes the result of a match, or says why it doesn't belong here.
    pub fn add(&mut self, game: GameLine) -> Result<(), String> {
        let (number, result) = (game.number, &game.result);
        if let Some(before) = self.game(number) {
            return Err(match before.round == game.round && before.result.is_same(result) {
                true => format!("game {number} stands here twice; take one of the lines out"),
                false => format!("game {number} has another result before this; one of them has to go"),
            });
        }
        self.check_pairing(number, game.round, &result.names(), &result.seed.reveal())?;
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

    /// Refuses the result of a match that isn't in the schedule as it is known so far.
    fn check_pairing(&self, number: usize, round: usize, agents: &[&str], seed: &str) -> Result<(), String> {
        let Some(pairing) = self.schedule.pairing(number) else { return Ok(()) };
        let names: Vec<&str> = pairing.agents.iter().map(|agent| self.name(*agent)).collect();
        if agents != names {
            let (names, agents) = (names.join(" and "), agents.join(" and "));
            return Err(format!("game {number} is between {names}, and not between {agents}"));
        }
        if seed != pairing.seed.reveal() || round != pairing.round {
            return Err(format!("game {number} has another seed or round in this tournament"));
        }
        Ok(())
    }

    /// Says what is wrong with a line that can't be read.
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
        wrong.unwrap_or_else(|| format!("this isn't the result of a match: {}", told(error)))
    }

    /// Takes it that an agent was changed.
    fn change(&mut self, changed: ChangedLine) -> Result<(), String> {
        let agent = self.plan.agents.iter_mut().find(|agent| agent.name == changed.agent);
        let agent = agent.ok_or_else(|| format!("there is no agent {}", changed.agent))?;
        agent.sha256.clone_from(&changed.sha256);
        self.changes.push(changed);
        Ok(())
    }

    /// Takes it that another worker has played a match with the same result.
    fn check(&mut self, checked: CheckedLine) -> Result<(), String> {
        if self.game(checked.fixture).is_none() {
            return Err(format!("game {} was checked before it was played", checked.fixture));
        }
        self.checked.push(checked);
        Ok(())
    }

    /// Takes it that a worker isn't believed any more, and that matches don't count.
    fn quarantine(&mut self, quarantined: QuarantinedLine) -> Result<(), String> {
        let is_void = |number: usize| quarantined.void.contains(&number);
        let left = self.rebuilt(|game| !is_void(game.number))?;
        if let Some(game) = left.1 {
            return Err(format!("game {game} can't have been played when those before it don't count"));
        }
        (self.schedule, self.games) = left.0;
        self.checked.retain(|checked| !is_void(checked.fixture));
        self.quarantined.push(quarantined);
        Ok(())
    }

    /// The matches that couldn't have come to be without those that `is_void`, and these: what has to be played again when they don't
    /// count.
    pub fn void_with(&self, is_void: impl Fn(&GameLine) -> bool) -> Vec<usize> {
        let mut void: Vec<usize> =
            self.games.iter().flatten().filter(|game| is_void(game)).map(|game| game.number).collect();
        // Who meets whom in a later wave depends on the results before it.
        while let Ok((_, Some(first))) = self.rebuilt(|game| !void.contains(&game.number)) {
            let later = |game: &&GameLine| game.number >= first && !void.contains(&game.number);
            let more: Vec<usize> = self.games.iter().flatten().filter(later).map(|game| game.number).collect();
            void.extend(more);
        }
        void.sort_unstable();
        void
    }

    /// Schedule and matches as they are when only those count that `counts`; and the first of these that the schedule doesn't have then.
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

    /// The name of the agent of this number, from 0.
    pub fn name(&self, agent: usize) -> &str {
        &self.plan.agents[agent].name
    }

    /// What came of the match of this number, from 1, if it was played.
    pub fn game(&self, number: usize) -> Option<&GameLine> {
        self.games.get(number.checked_sub(1)?)?.as_ref()
    }

    /// The seat that is named first in the match of this number, from 1: that of White, or else the first.
    pub fn first_seat(&self, number: usize) -> usize {
        let (pairing, game) = (self.schedule.pairing(number), self.plan.game().ok());
        let first = pairing
            .zip(game)
            .map(|(pairing, game)| game.first_seat(&self.plan.options, &pairing.seed, pairing.agents.len()));
        first.unwrap_or(0)
    }

    /// What came of all matches that were played and count, by number.
    pub fn games(&self) -> impl Iterator<Item = &GameLine> {
        self.games.iter().flatten().filter(|game| self.schedule.counts(game.number))
    }
}

/// What is wrong with a line, without the place in it, which says `line 1` for each.
fn told(error: &serde_json::Error) -> String {
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
    use crate::plan::{Entrant, Reach};
    use crate::shape::Shape;

    /// A Swiss of four agents and three rounds, of single games.
    fn swiss() -> Record {
        let entrant = |name: &str| Entrant {
            name: name.to_owned(),
            version: None,
            path: name.to_owned(),
            dialect: Dialect::default(),
            reach: Reach::Url(format!("http://127.0.0.1/{name}")),
            files: Vec::new(),
            sha256: None,
        };
        let seed = Seed::from_number(5);
        let shape = Shape { format: Format::Swiss, agents: 4, rounds: 3, seats: 2, paired: false, stop: None, seed };
        let game = arena_games::game("snake").unwrap();
        Record::new(Plan::new(game, ["a", "b", "c", "d"].map(entrant).to_vec(), &shape)).unwrap()
    }

    /// The result of the game of this number, in which the seat `first`, from 0, has won.
    fn game(record: &Record, number: usize, first: usize, worker: &str) -> GameLine {
        let fixture = record.schedule.pairing(number).unwrap();
        let ranks = if first == 0 { [1, 2] } else { [2, 1] };
        let names: Vec<&str> = fixture.agents.iter().map(|agent| record.name(*agent)).collect();
        let mut line: GameLine = serde_json::from_value(json!({
            "fixture": number, "round": fixture.round, "agents": names, "ranks": ranks, "scores": [0.0, 0.0],
            "verdicts": [null, null], "details": [null, null], "faults": [0, 0], "seed": fixture.seed.reveal(), "epochs": 1,
            "outcome": {"termination": "GAME_ENDED", "winner": "DRAW"},
            "time": {"took_ms": 0.0, "waited_ms": [0.0, 0.0], "longest_step_ms": [0.0, 0.0]},
        }))
        .unwrap();
        line.worker = Some(WorkerPart { name: worker.to_owned(), id: worker.to_owned(), played: String::new() });
        line
    }

    #[test]
    fn what_a_worker_has_played_that_lied_is_played_again_with_what_came_of_it() {
        let mut record = swiss();
        for (number, worker) in [(1, "one"), (2, "liar"), (3, "one"), (4, "one"), (5, "liar")] {
            record.add(game(&record, number, 0, worker)).unwrap();
        }
        let is_its = |game: &GameLine| game.worker.as_ref().is_some_and(|worker| worker.id == "liar");
        let void = record.void_with(is_its);
        // The second round came of the first, and the third of the second.
        assert_eq!(void, [2, 3, 4, 5]);
        let line = QuarantinedLine { worker: "liar".into(), id: "liar".into(), why: "it lied".into(), void };
        let text = serde_json::to_string(&Line::Quarantined(line.clone())).unwrap();
        record.quarantine(line).unwrap();
        let pending = |record: &Record| record.schedule.pending().map(|fixture| fixture.number).collect::<Vec<_>>();
        assert_eq!((pending(&record), record.games().count()), (vec![2], 1));
        record.add(game(&record, 2, 1, "one")).unwrap();
        assert_eq!(pending(&record), [3, 4]);
        assert!(text.starts_with(r#"{"type":"quarantined","worker":"liar""#), "{text}");
    }

    #[test]
    fn nothing_else_is_played_again_where_all_games_were_known() {
        let mut record = swiss();
        record.add(game(&record, 1, 0, "one")).unwrap();
        record.add(game(&record, 2, 0, "two")).unwrap();
        assert_eq!(record.void_with(|game| game.number > 2), [0; 0]);
        let early = CheckedLine { fixture: 3, worker: "two".into(), id: "two".into() };
        assert_eq!(record.check(early).unwrap_err(), "game 3 was checked before it was played");
        let wrong = QuarantinedLine { worker: "one".into(), id: "one".into(), why: String::new(), void: vec![1] };
        record.add(game(&record, 3, 0, "two")).unwrap();
        let told = record.quarantine(wrong).unwrap_err();
        assert_eq!(told, "game 3 can't have been played when those before it don't count");
    }
}
