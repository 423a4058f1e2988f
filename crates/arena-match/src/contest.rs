//! Contests: a match from its plan to its result, with agents that are found, started and seated here.

use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use arena_model::agent_ids;
use arena_model::{AgentId, GameType, MatchResult, SeatResult, Seed, Setup, TimeLimits, Verdict};
use rustix::pipe::{PipeFlags, pipe_with};
use serde_json::{Map, Value, json};

use crate::agent::{Agent, Channel};
use crate::body::{Body, End, Log};
use crate::http;
use crate::link::Link;
use crate::play::{MatchError, Played, Player, Table, Watch};
use crate::process::{self, Ended, How, KillReason, Launcher, Limits, Process, SandboxMode, StartError};
use crate::replay::Recorder;
use crate::report::SeatedAgent;
use crate::seat::{Fault, Seat};
use crate::spent::Spent;
use crate::stderr::Stderr;

/// How long an agent's stderr is read on after its end.
const LAST_WORDS: Duration = Duration::from_millis(100);

/// What is to be played, by whom, and how.
#[derive(Clone)]
pub struct Plan<'a> {
    /// The game.
    pub game: &'static GameType,
    /// Keys of its config that shall differ from the usual.
    pub options: &'a Map<String, Value>,
    /// All that is random comes of this.
    pub seed: Seed,
    /// How long agents may take.
    pub limits: TimeLimits,
    /// The agents, in the order of their seats.
    pub agents: Vec<&'a Agent>,
    /// What holds their processes in.
    pub confinement: &'a Confinement,
}

/// What holds the processes of agents in.
#[derive(Debug, Clone)]
pub struct Confinement {
    /// The program that starts them.
    pub launcher: Launcher,
    /// Sandbox mode.
    pub mode: SandboxMode,
    /// Resource limits of each process.
    pub limits: Limits,
    /// Further paths that agents may read.
    pub expose: Vec<PathBuf>,
    /// Places that are hidden from them, wherever else they may read: those of the arena, see [`crate::private`].
    pub private: Vec<PathBuf>,
    /// Whether agents that are servers are asked at public addresses only, so that nobody reaches into a private network by naming
    /// them.
    pub public_only: bool,
}

/// What a match leaves behind.
#[derive(Debug)]
pub struct Contest {
    /// The result.
    pub result: MatchResult<SeatedAgent>,
    /// The limits that were in force for the agents' processes, as they reported them when they started.
    pub sandbox: Value,
    /// For the owner of each agent, by seat.
    pub logs: Vec<OwnerLog>,
}

/// What the owner of an agent should know of its match.
#[derive(Debug)]
pub struct OwnerLog {
    /// What the agent wrote to stderr.
    pub stderr: Log,
    /// What it got wrong in the protocol, in order.
    pub faults: Vec<Fault>,
    /// Why it was disqualified, if it was.
    pub verdict: Option<(Verdict, String)>,
}

/// Plays a match, on the calling thread. Whatever comes of it, no process of an agent is left when this returns.
///
/// # Errors
/// See [`MatchError`]. What agents do is never an error.
pub fn hold(
    plan: &Plan<'_>,
    replay: Option<&mut (dyn Write + Send)>,
    watch: Option<&mut dyn Watch>,
    called_off: &AtomicBool,
) -> Result<Contest, MatchError> {
    let began = Instant::now();
    let ids = agent_ids(&plan.seed, plan.agents.len());
    let game = plan.game.start(plan.options, Setup { seed: plan.seed.clone(), agents: ids.clone() })?;
    let (players, sandbox) = seat_all(plan, &ids)?;
    let table = Table::new(game, plan.seed.clone(), plan.options, plan.limits, players, called_off);
    let recorder = replay.map(|out| Recorder::new(out as &mut (dyn Write + Send)));
    let played = table.recorded_by(recorder).watched_by(watch.map(|watch| watch as &mut dyn Watch)).play()?;
    Ok(Contest { result: result(plan, &played, began.elapsed()), sandbox, logs: owner_logs(played) })
}

fn result(plan: &Plan<'_>, played: &Played, took: Duration) -> MatchResult<SeatedAgent> {
    let ms = |duration: Duration| (duration.as_secs_f64() * 1e6).round() / 1e3;
    let seats = played.seats.iter().enumerate().map(|(number, seat)| SeatResult {
        agent: SeatedAgent { id: seat.id.clone(), name: seat.name.clone(), version: seat.version.clone() },
        rank: played.ranks[number],
        score: played.scores[number],
        challenge_score: played.challenge_scores.as_ref().and_then(|scores| scores[number]),
        verdict: seat.out.as_ref().map(|out| out.verdict),
        detail: seat.out.as_ref().map(|out| out.detail.clone()),
        faults: seat.faults,
        waited_ms: ms(seat.used),
        longest_step_ms: ms(seat.longest),
    });
    MatchResult {
        seats: seats.collect(),
        outcome: played.outcome.clone(),
        seed: plan.seed.clone(),
        epochs: played.epochs,
        moves: Some(played.moves.clone()),
        took_ms: ms(took),
    }
}

fn owner_logs(played: Played) -> Vec<OwnerLog> {
    let Played { seats, logs, faults, .. } = played;
    let log = |(seat, stderr): (Seat, Log)| OwnerLog {
        stderr,
        faults: faults.iter().filter(|fault| fault.seat == seat.number).cloned().collect(),
        verdict: seat.out.map(|out| (out.verdict, out.detail)),
    };
    seats.into_iter().zip(logs).map(log).collect()
}

/// Starts all agents at once and seats them; tells what is in force. An agent that doesn't start is seated and out.
fn seat_all(plan: &Plan<'_>, ids: &[AgentId]) -> Result<(Vec<Player>, Value), MatchError> {
    let started: Vec<Result<Started, StartError>> =
        (plan.agents.iter()).map(|agent| start(agent, plan.confinement, plan.limits, others(agent, plan))).collect();
    let mut sandbox = Value::Null;
    let mut players = Vec::new();
    for (number, (started, agent)) in started.into_iter().zip(&plan.agents).enumerate() {
        let (name, version) = (agent.name.clone(), agent.version.clone());
        let mut seat = Seat::new(number, ids[number].clone(), name, version, agent.dialect, plan.limits);
        let body = started.and_then(|started| started.settle(&mut sandbox));
        let (link, body): (Link, Box<dyn Body>) = match body {
            Ok(parts) => parts,
            Err(error) if error.is_of_the_agent() => {
                seat.disqualify(Verdict::StartupFail, error.to_string());
                absent()?
            }
            Err(error) => return Err(MatchError::Start(error)),
        };
        players.push(Player { seat, link, body });
    }
    Ok((players, sandbox))
}

/// Starts one agent, and waits until it runs.
///
/// # Errors
/// Why it doesn't; [`StartError::is_of_the_agent`] tells whose fault it is.
pub(crate) fn start_one(
    agent: &Agent,
    confinement: &Confinement,
    limits: TimeLimits,
) -> Result<(Link, Box<dyn Body>), StartError> {
    start(agent, confinement, limits, Vec::new())?.settle(&mut Value::Null)
}

/// An agent that was told to start.
enum Started {
    Process(Box<Process>),
    Server(Link, http::Server),
}

/// What belongs to the other agents of a match and not to this one as well.
fn others(agent: &Agent, plan: &Plan<'_>) -> Vec<PathBuf> {
    let own = |agent: &Agent| match &agent.channel {
        Channel::Stdio(command) => command.own.clone(),
        Channel::Http(_) => Vec::new(),
    };
    let mine = own(agent);
    plan.agents.iter().flat_map(|other| own(other)).filter(|path| !mine.contains(path)).collect()
}

fn start(
    agent: &Agent,
    confinement: &Confinement,
    limits: TimeLimits,
    mut hidden: Vec<PathBuf>,
) -> Result<Started, StartError> {
    match &agent.channel {
        Channel::Stdio(command) => {
            hidden.extend_from_slice(&confinement.private);
            let spec = command.spec(&confinement.expose, hidden, confinement.mode, confinement.limits);
            process::start(&confinement.launcher, &spec).map(|process| Started::Process(Box::new(process)))
        }
        Channel::Http(url) => {
            // The match's own deadlines are shorter; this one is for posts that nobody waits for any more.
            let patience = Duration::from_millis(limits.step_ms + limits.bank_ms) + Duration::from_secs(10);
            let (link, server) = http::connect(url, patience, confinement.public_only)
                .map_err(|error| StartError::Spec { reason: error.to_string() })?;
            Ok(Started::Server(link, server))
        }
    }
}

impl Started {
    /// Waits until the agent runs. Notes what is in force, unless another agent's has been noted.
    fn settle(self, sandbox: &mut Value) -> Result<(Link, Box<dyn Body>), StartError> {
        match self {
            Started::Process(process) => {
                let mut process = *process;
                let in_force = process.in_force()?;
                if sandbox.is_null() {
                    *sandbox = json!(in_force);
                }
                let (link, bot) = Bot::of(process).map_err(|error| StartError::Spec { reason: error.to_string() })?;
                Ok((link, Box::new(bot)))
            }
            Started::Server(link, server) => Ok((link, Box::new(server))),
        }
    }
}

/// An agent that is a process of ours.
struct Bot {
    process: Option<Process>,
    stderr: Stderr,
    limits_memory: Option<u64>,
}

impl Bot {
    fn of(mut process: Process) -> io::Result<(Link, Bot)> {
        let stdin = process.stdin.take().ok_or_else(|| io::Error::other("the agent's input was taken before"))?;
        let (stdout, stderr) = (process.stdout.try_clone()?, process.stderr.try_clone()?);
        let limits_memory = process.in_force().ok().and_then(|in_force| in_force.limits.memory_bytes);
        let bot = Bot { process: Some(process), stderr: Stderr::read(stderr)?, limits_memory };
        Ok((Link::new(stdin, stdout), bot))
    }

    fn end(&self, ended: &Ended) -> End {
        let code = match ended.how {
            How::Exited(code) => Some(code),
            _ => None,
        };
        let (mut sentence, is_killed) = match ended.how {
            How::Exited(code) => (format!("exited with code {code}"), false),
            How::Signalled(signal) => (format!("was ended by signal {signal}{}", name_of(signal)), false),
            How::Killed(KillReason::Memory) => ("took more memory than it may".to_owned(), true),
            How::Killed(KillReason::Processes) => ("had more processes than it may".to_owned(), false),
            How::Killed(KillReason::Asked) => ("was stopped".to_owned(), false),
            How::NotStarted => ("didn't start".to_owned(), false),
            How::Unknown => ("ended, and nobody can tell how".to_owned(), false),
        };
        // An agent that asks for more than it may gets none, and ends of that by itself: by a signal, or with a last word.
        let is_much = self.limits_memory.is_some_and(|limit| ended.max_rss_bytes >= limit / 10 * 8);
        let is_crash = matches!(ended.how, How::Signalled(_));
        let ran_out = !is_killed && code != Some(0) && (is_much && is_crash || self.stderr.tells_of_memory());
        if is_much && !is_killed {
            let mib = |bytes: u64| bytes >> 20;
            let limit = mib(self.limits_memory.unwrap_or(0));
            sentence += &format!(", and had taken {} of {limit} MiB of memory", mib(ended.max_rss_bytes));
        } else if ran_out {
            sentence += " when it ran out of memory";
        }
        let is_out_of_memory = is_killed || ran_out;
        End { sentence, is_out_of_memory, code, left_behind: ended.left_behind }
    }
}

/// The signals by which programs usually end.
fn name_of(signal: i32) -> &'static str {
    match signal {
        4 => " (SIGILL)",
        6 => " (SIGABRT)",
        7 => " (SIGBUS)",
        8 => " (SIGFPE)",
        9 => " (SIGKILL)",
        11 => " (SIGSEGV)",
        15 => " (SIGTERM)",
        25 => " (SIGXFSZ)",
        31 => " (SIGSYS)",
        _ => "",
    }
}

impl Body for Bot {
    fn ended(&mut self, patience: Duration) -> Option<End> {
        let ended = self.process.as_mut()?.ended(patience)?.clone();
        // Its last words may still be on the way.
        self.stderr.wait(LAST_WORDS);
        Some(self.end(&ended))
    }

    fn spent(&self) -> Spent {
        self.process.as_ref().map_or_else(Spent::default, |process| Spent::below(process.launcher_pid()))
    }

    fn is_flooding(&self) -> bool {
        self.stderr.is_flooding()
    }

    fn kill(&mut self) {
        if let Some(process) = self.process.take() {
            process.wait(Duration::ZERO);
        }
    }

    fn finish(&mut self, grace: Duration) -> Log {
        if let Some(process) = self.process.take() {
            process.wait(grace);
        }
        self.stderr.finish()
    }
}

/// What stands for an agent that didn't start.
pub(crate) fn absent() -> Result<(Link, Box<dyn Body>), MatchError> {
    Ok((Link::dead().map_err(MatchError::System)?, Box::new(Absent)))
}

/// Nobody: the body of an agent that didn't start.
struct Absent;

impl Body for Absent {
    fn ended(&mut self, _patience: Duration) -> Option<End> {
        None
    }

    fn is_flooding(&self) -> bool {
        false
    }

    fn kill(&mut self) {}

    fn finish(&mut self, _grace: Duration) -> Log {
        Log::default()
    }
}

impl Link {
    /// A link to nobody.
    fn dead() -> Result<Link, rustix::io::Errno> {
        let (_, input) = pipe_with(PipeFlags::CLOEXEC)?;
        let (output, _) = pipe_with(PipeFlags::CLOEXEC)?;
        Ok(Link::new(input, output))
    }
}

impl StartError {
    /// Whether it is the agent that is wrong, rather than the system it should run on.
    pub(crate) fn is_of_the_agent(&self) -> bool {
        match self {
            StartError::NotFound { .. }
            | StartError::NotAFile { .. }
            | StartError::NotExecutable { .. }
            | StartError::NotReadable { .. }
            | StartError::MissingInterpreter { .. }
            | StartError::Format { .. }
            | StartError::Refused { .. } => true,
            StartError::Spec { .. }
            | StartError::NoSandbox { .. }
            | StartError::Setup { .. }
            | StartError::Launcher { .. }
            | StartError::Vanished
            | StartError::TooSlow { .. } => false,
        }
    }
}
