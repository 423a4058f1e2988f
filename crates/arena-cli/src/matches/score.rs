//! Results for people: a single game in full, one line for each of several games, and the total score.

use std::fmt::{self, Display};
use std::path::Path;

use arena_match::{Agent, Channel, OwnerLog, PlayedMatch, SeatedAgent};
use arena_model::{GameType, MatchOutcome, MatchResult, Moves, Score as ChallengeScore, Verdict};
use arena_report::{finished, number_of, shell_word};
use serde::Serialize;
use serde_json::Value;

use crate::output::{Table, counted, printable};

/// The number of stderr lines shown for a disqualified agent.
const LINES: usize = 5;

pub struct TotalScore {
    agents: Vec<AgentScore>,
    games: usize,
    void: usize,
}

#[derive(Default)]
struct AgentScore {
    name: String,
    wins: u32,
    losses: u32,
    draws: u32,
    disqualified: u32,
    score: f64,
    errors: AnswerErrors,
}

/// The answers of an agent that were faults or had refused actions.
#[derive(Default)]
struct AnswerErrors {
    /// The command that checks the agent; `None` for a built-in agent.
    check: Option<String>,
    answers: u32,
    faulty: u32,
    refused: u32,
    first: Option<String>,
}

impl AnswerErrors {
    fn of(agent: &Agent) -> AnswerErrors {
        let is_word = Path::new(&agent.path).exists() || agent.path.starts_with("py:");
        let check = match &agent.channel {
            Channel::BuiltIn(_) => None,
            Channel::Http(url) => Some(format!("arena agent check {}", shell_word(url))),
            Channel::Stdio(_) if is_word => Some(format!("arena agent check {}", shell_word(&agent.path))),
            Channel::Stdio(_) => Some(format!("arena agent check -- {}", agent.path)),
        };
        AnswerErrors { check, ..AnswerErrors::default() }
    }

    fn add(&mut self, log: &OwnerLog) {
        self.answers += log.answers;
        self.faulty += log.faults.len() as u32;
        self.refused += log.refused;
        self.first = self.first.take().or_else(|| log.first_error.clone());
    }

    /// Describes the errors of the agent `name` in one line, if there are any.
    fn describe(&self, name: &str) -> Option<String> {
        let (first, answers) = (self.first.as_ref()?, self.answers);
        let count = match (self.faulty, self.refused) {
            (faulty, 0) => format!("{faulty} of {answers} answers unusable"),
            (0, refused) => format!("{refused} of {answers} answers with refused actions"),
            (faulty, refused) => {
                format!("{faulty} of {answers} answers unusable and {refused} with refused actions")
            }
        };
        let advice = self.check.as_ref().map(|command| format!("; try `{command}`")).unwrap_or_default();
        Some(printable(&format!("{name}: {count}, first: {first}{advice}")).into_owned())
    }
}

impl AgentScore {
    fn points(&self) -> f64 {
        f64::from(self.wins) + f64::from(self.draws) / 2.0
    }
}

impl TotalScore {
    pub fn new(agents: &[Agent]) -> TotalScore {
        let line = |agent: &Agent| {
            let (name, errors) = (agent.name.clone(), AnswerErrors::of(agent));
            AgentScore { name, errors, ..AgentScore::default() }
        };
        TotalScore { agents: agents.iter().map(line).collect(), games: 0, void: 0 }
    }

    pub fn games(&self) -> usize {
        self.games + self.void
    }

    /// Counts a game. `first` is the index of the agent on the first seat; the agents after it, cyclically, have the
    /// next seats.
    pub fn add(&mut self, first: usize, played_match: &PlayedMatch) {
        let result = &played_match.result;
        for (number, log) in played_match.logs.iter().enumerate() {
            let at = (first + number) % self.agents.len();
            self.agents[at].errors.add(log);
        }
        if result.outcome.is_void() {
            self.void += 1;
            return;
        }
        self.games += 1;
        let best = result.seats.iter().filter(|seat| seat.rank == 1 && seat.verdict.is_none()).count();
        for (number, seat) in result.seats.iter().enumerate() {
            let at = (first + number) % self.agents.len();
            let line = &mut self.agents[at];
            line.score += seat.score;
            line.disqualified += u32::from(seat.verdict.is_some());
            match (seat.rank == 1 && seat.verdict.is_none(), best) {
                (true, 1) => line.wins += 1,
                (true, _) | (false, 0) => line.draws += 1,
                (false, _) => line.losses += 1,
            }
        }
    }
}

impl Display for TotalScore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let [a, b] = &self.agents[..] {
            let games = self.games;
            let share = if games > 0 { a.points() / games as f64 } else { 0.0 };
            let (wins, losses, draws) = (a.wins, a.losses, a.draws);
            writeln!(f, "Score of {} vs {}: {wins} - {losses} - {draws}  [{share:.3}] {games}", a.name, b.name)?;
        }
        let mut table =
            Table::new(&["agent", "games", "wins", "losses", "draws", "points", "mean score", "disqualified"]);
        let mut lines: Vec<&AgentScore> = self.agents.iter().collect();
        lines.sort_by(|a, b| b.points().total_cmp(&a.points()));
        for line in lines {
            table.row([
                line.name.clone(),
                self.games.to_string(),
                line.wins.to_string(),
                line.losses.to_string(),
                line.draws.to_string(),
                format!("{:.1}", line.points()),
                format!("{:.2}", line.score / self.games.max(1) as f64),
                line.disqualified.to_string(),
            ]);
        }
        write!(f, "{}", table.right(1..=7))?;
        for sentence in self.agents.iter().filter_map(|line| line.errors.describe(&line.name)) {
            write!(f, "\n{sentence}")?;
        }
        match self.void {
            0 => Ok(()),
            1 => write!(f, "\n1 game was void and counts for no agent"),
            void => write!(f, "\n{void} games were void and count for no agent"),
        }
    }
}

/// Formats a game as one line, in the style of chess runners: `Finished game 3 (a vs b): 1-0 {CHECKMATE}`.
pub fn line(number: usize, result: &MatchResult<SeatedAgent>) -> String {
    let names: Vec<&str> = result.seats.iter().map(|seat| seat.agent.name.as_str()).collect();
    let outcome = match &result.outcome.result {
        _ if result.outcome.is_void() => arena_report::VOID.to_owned(),
        Some(result) => result.to_string(),
        None => result.seats.iter().map(|seat| number_of(seat.score)).collect::<Vec<_>>().join(" : "),
    };
    finished(number, &names, &outcome, &result.outcome)
}

/// Returns the seats, best first.
fn by_rank(result: &MatchResult<SeatedAgent>) -> Vec<usize> {
    let mut seats: Vec<usize> = (0..result.seats.len()).collect();
    seats.sort_by_key(|seat| result.seats[*seat].rank);
    seats
}

/// The JSON output for a game.
#[derive(Serialize)]
pub struct Printed<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    number: Option<usize>,
    game: &'static str,
    rules_version: u32,
    scores: Vec<PrintedSeat<'a>>,
    outcome: &'a MatchOutcome,
    has_tainted_agent: bool,
    replay_file: Option<String>,
    seed: String,
    epochs: u64,
    moves: &'a Option<Moves>,
    sandbox: &'a Value,
}

#[derive(Serialize)]
struct PrintedSeat<'a> {
    agent_id: &'a str,
    name: &'a str,
    version: Option<&'a str>,
    agent_path: &'a str,
    seat: usize,
    rank: usize,
    score: f64,
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    challenge_score: Option<ChallengeScore>,
    tainted: bool,
    tainted_reason: Option<Verdict>,
    tainted_detail: Option<&'a str>,
    faults: u32,
    answers: u32,
    refused_answers: u32,
    first_error: Option<&'a str>,
    time_used_ms: f64,
    longest_step_ms: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    metered: Option<&'a Value>,
}

impl<'a> Printed<'a> {
    /// Creates the output for a game. `number` is the game's number if the run has several games.
    pub fn of(
        number: Option<usize>,
        game: &'static GameType,
        played_match: &'a PlayedMatch,
        agents: impl Iterator<Item = &'a Agent>,
        replay_file: Option<String>,
    ) -> Printed<'a> {
        let result = &played_match.result;
        let agents: Vec<&Agent> = agents.collect();
        let seat = |seat: usize| {
            let (agent, result) = (&result.seats[seat].agent, &result.seats[seat]);
            let log = played_match.logs.get(seat);
            PrintedSeat {
                agent_id: agent.id.as_str(),
                name: &agent.name,
                version: agent.version.as_deref(),
                agent_path: &agents[seat].path,
                seat,
                rank: result.rank,
                score: result.score,
                challenge_score: result.challenge_score,
                tainted: result.verdict.is_some(),
                tainted_reason: result.verdict,
                tainted_detail: result.detail.as_deref(),
                faults: result.faults,
                answers: log.map_or(0, |log| log.answers),
                refused_answers: log.map_or(0, |log| log.refused),
                first_error: log.and_then(|log| log.first_error.as_deref()),
                time_used_ms: result.waited_ms,
                longest_step_ms: result.longest_step_ms,
                metered: log.and_then(|log| log.metered.as_ref()),
            }
        };
        Printed {
            number,
            game: game.name,
            rules_version: game.rules_version,
            scores: by_rank(result).into_iter().map(seat).collect(),
            outcome: &result.outcome,
            has_tainted_agent: result.seats.iter().any(|seat| seat.verdict.is_some()),
            replay_file,
            seed: result.seed.reveal(),
            epochs: result.epochs,
            moves: &result.moves,
            sandbox: &played_match.sandbox,
        }
    }
}

/// Formats a single game in full. `agents` are in the order of their seats.
pub fn describe(played_match: &PlayedMatch, agents: &[Agent], replay_file: Option<&str>) -> String {
    let result = &played_match.result;
    let mut table = Table::new(&["rank", "agent", "score", "seat", "total ms", "longest step ms", "faults", ""]);
    let by_rank = by_rank(result);
    for &number in &by_rank {
        let seat = &result.seats[number];
        let name = match &seat.agent.version {
            Some(version) => format!("{} {version}", seat.agent.name),
            None => seat.agent.name.clone(),
        };
        let disqualification = match (&seat.verdict, &seat.detail) {
            (Some(reason), Some(detail)) => format!("{reason}: {detail}"),
            _ => String::new(),
        };
        table.row([
            seat.rank.to_string(),
            name,
            number_of(seat.score),
            number.to_string(),
            format!("{:.1}", seat.waited_ms),
            format!("{:.1}", seat.longest_step_ms),
            seat.faults.to_string(),
            disqualification,
        ]);
    }
    let mut text = format!("{}\n", table.right([0, 2, 3, 4, 5, 6]));
    let winner = match result.seats.iter().find(|seat| seat.rank == 1 && seat.verdict.is_none()) {
        _ if result.outcome.is_void() => "void, counts for no agent,".to_owned(),
        Some(first) if result.outcome.winner != "DRAW" => format!("{} wins", first.agent.name),
        _ => "a draw".to_owned(),
    };
    let epochs = counted(result.epochs, "epoch");
    text += &printable(&format!("{}: {winner} after {epochs}\n", result.outcome.termination));
    for &number in &by_rank {
        let mut errors = AnswerErrors::of(&agents[number]);
        errors.add(&played_match.logs[number]);
        let sentence = errors.describe(&result.seats[number].agent.name);
        text += &sentence.map_or_else(String::new, |sentence| sentence + "\n");
    }
    for number in by_rank.into_iter().filter(|number| result.seats[*number].verdict.is_some()) {
        text += &last_stderr_lines(&result.seats[number].agent.name, &played_match.logs[number].stderr);
    }
    text += &format!("sandbox: {}\n", sandbox(&played_match.sandbox));
    if let Some(file) = replay_file {
        text += &printable(&format!("replay: {file} (arena replay show {file})\n"));
    }
    text + &format!("seed: {}", result.seed.reveal())
}

/// Formats the last stderr lines of a disqualified agent, which often contain the cause.
fn last_stderr_lines(name: &str, stderr: &arena_match::Log) -> String {
    let last = stderr.last_lines(LINES);
    if last.is_empty() {
        return String::new();
    }
    let quoted: String = last.iter().map(|line| format!("  | {line}\n")).collect();
    printable(&format!("{name}'s last lines on stderr:\n{quoted}")).into_owned()
}

/// Formats the sandbox in one line.
fn sandbox(report: &Value) -> String {
    let Ok(in_force) = serde_json::from_value::<arena_match::ActiveSandbox>(report.clone()) else {
        return "none; no agent ran as a program on this machine".to_owned();
    };
    let mut parts = Vec::new();
    if !in_force.namespaces.is_empty() {
        parts.push(format!("namespaces ({})", in_force.namespaces.join(", ")));
    }
    parts.extend(in_force.landlock_abi.map(|abi| format!("Landlock {abi}")));
    if in_force.seccomp {
        parts.push("system call filter".to_owned());
    }
    if parts.is_empty() {
        parts.push("OFF: agents can read your files and use the network".to_owned());
    }
    parts.extend(in_force.limits.memory_bytes.map(|bytes| format!("{} MiB of memory", bytes >> 20)));
    parts.extend(in_force.limits.processes.map(|processes| format!("{processes} processes")));
    let missing: String = in_force.missing.iter().map(|sentence| format!("\n  missing: {sentence}")).collect();
    parts.join(", ") + &missing
}
