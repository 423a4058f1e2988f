//! Matches from their plan to their result. This module starts the agents, runs the match loop and returns
//! the result with the logs.

use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use arena_model::agent_ids;
use arena_model::{
    Adjudication, Adjudicator, AgentId, GameType, MatchResult, Seed, Setup, TimeControl, TimeLimits, Verdict,
};
use arena_record::Hash;
use rustix::pipe::{PipeFlags, pipe_with};
use serde_json::{Map, Value, json};

use crate::agent::{Agent, Channel};
use crate::body::{Absent, Body, End, Log};
use crate::conversation::Player;
use crate::cpu_times::CpuTimes;
use crate::http;
use crate::kinds::{
    self, BuiltIn, DrivenBody, EngineKey, EngineReturn, KeptEngine, KeptEngines, Means, Program, SeatServices,
};
use crate::link::Link;
use crate::play::{MatchError, MatchRun, Watch, in_ms};
use crate::process::{self, Ended, ExitCause, KillReason, Launcher, Limits, Process, SandboxMode, StartError};
use crate::replay::Recorder;
use crate::seat::Fault;
use crate::stderr::Stderr;
use crate::thread_body::ThreadBody;

/// The time limit for reading the rest of an agent's stderr after its end.
const LAST_WORDS: Duration = Duration::from_millis(100);

#[derive(Clone)]
pub struct MatchPlan<'a> {
    pub game: &'static GameType,
    /// The keys of the game's config that differ from the defaults.
    pub options: &'a Map<String, Value>,
    pub seed: Seed,
    pub limits: TimeLimits,
    /// The agents, in the order of their seats.
    pub agents: Vec<&'a Agent>,
    pub confinement: &'a Confinement,
    /// The rules of adjudication, for chess with the option `agreements`.
    pub adjudication: Option<Adjudication>,
}

impl MatchPlan<'_> {
    /// Returns the agents' ids in the match: their own, or else those that follow from the seed.
    pub fn agent_ids(&self) -> Vec<AgentId> {
        let from_seed = agent_ids(&self.seed, self.agents.len());
        from_seed.into_iter().zip(&self.agents).map(|(id, agent)| agent.id.clone().unwrap_or(id)).collect()
    }
}

#[derive(Debug, Clone)]
pub struct Confinement {
    pub launcher: Launcher,
    pub mode: SandboxMode,
    /// The resource limits of each process.
    pub limits: Limits,
    /// Additional paths that agents may read.
    pub expose: Vec<PathBuf>,
    /// Paths of the arena that are hidden from all agents. See [`crate::private`].
    pub private: Vec<PathBuf>,
    /// True if HTTP agents must have public addresses, so that users can't make the arena connect to a
    /// private network.
    pub public_only: bool,
}

impl Confinement {
    /// Returns the default limits, without exposed and private paths.
    pub fn new(launcher: Launcher, mode: SandboxMode) -> Confinement {
        let (limits, expose, private) = (Limits::default(), Vec::new(), Vec::new());
        Confinement { launcher, mode, limits, expose, private, public_only: false }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SeatedAgent {
    pub id: AgentId,
    /// The name that the agent sent, or else the name of its file.
    pub name: String,
    pub version: Option<String>,
}

#[derive(Debug)]
pub struct PlayedMatch {
    pub result: MatchResult<SeatedAgent>,
    /// The sandbox and limits of the first local agent, as reported by its launcher. Null if all agents are HTTP
    /// servers.
    pub sandbox: Value,
    /// The logs for the agents' owners, by seat.
    pub logs: Vec<OwnerLog>,
    /// The hash of the replay's last line, if there is a replay. See [`seal_line`](crate::seal_line).
    pub replay: Option<Hash>,
}

/// The log of a match for the owner of an agent.
#[derive(Debug)]
pub struct OwnerLog {
    pub stderr: Log,
    /// The agent's violations of the protocol, in order.
    pub faults: Vec<Fault>,
    pub answers: u32,
    /// The number of answers without a fault, but with refused actions.
    pub refused: u32,
    /// The first fault or refused action, in words.
    pub first_error: Option<String>,
    /// The verdict and its detail, if the agent was disqualified.
    pub verdict: Option<(Verdict, String)>,
    /// The calls, tokens and costs of the agent's model, as the arena has measured them.
    pub metered: Option<Value>,
}

/// Plays a match on the calling thread. All processes of the agents have ended when this returns.
///
/// # Errors
/// See [`MatchError`]. An agent's behavior is never an error.
pub fn play_match(
    plan: &MatchPlan<'_>,
    replay: Option<&mut (dyn Write + Send)>,
    watch: Option<&mut dyn Watch>,
    called_off: &AtomicBool,
) -> Result<PlayedMatch, MatchError> {
    play(plan, replay, watch, called_off, None)
}

/// Plays a match like [`play_match`], with engines that earlier matches have kept. The engines of this match stay alive
/// for later ones.
///
/// # Errors
/// See [`MatchError`]. An agent's behavior is never an error.
pub fn play_keeping(
    plan: &MatchPlan<'_>,
    replay: Option<&mut (dyn Write + Send)>,
    engines: &KeptEngines,
    called_off: &AtomicBool,
) -> Result<PlayedMatch, MatchError> {
    play(plan, replay, None, called_off, Some(engines))
}

fn play(
    plan: &MatchPlan<'_>,
    replay: Option<&mut (dyn Write + Send)>,
    watch: Option<&mut dyn Watch>,
    called_off: &AtomicBool,
    engines: Option<&KeptEngines>,
) -> Result<PlayedMatch, MatchError> {
    let began = Instant::now();
    let ids = plan.agent_ids();
    let game = plan.game.start(plan.options, Setup { seed: plan.seed.clone(), agents: ids.clone() })?;
    let (players, sandbox) = seat_all(plan, &ids, engines)?;
    let mut run = MatchRun::new(game, plan.seed.clone(), plan.options, plan.limits, players, called_off);
    run.adjudicator = plan.adjudication.map(Adjudicator::new);
    run.recorder = replay.map(|out| Recorder::new(out as &mut (dyn Write + Send)));
    run.watch = watch.map(|watch| watch as &mut dyn Watch);
    let mut played = run.play()?;
    played.result.took_ms = in_ms(began.elapsed());
    Ok(PlayedMatch { sandbox, ..played })
}

/// Starts all agents in parallel and seats them. An agent that fails to start is seated and disqualified. Returns the
/// players, and the value for [`PlayedMatch::sandbox`].
fn seat_all(
    plan: &MatchPlan<'_>,
    ids: &[AgentId],
    engines: Option<&KeptEngines>,
) -> Result<(Vec<Player>, Value), MatchError> {
    let started: Vec<Result<Started, StartError>> = (plan.agents.iter())
        .map(|agent| start(agent, plan.confinement, plan.limits, others(agent, plan), Some(plan.game), engines))
        .collect();
    let mut sandbox = Value::Null;
    let mut players = Vec::new();
    for (number, (started, agent)) in started.into_iter().zip(&plan.agents).enumerate() {
        let is_kept = matches!(started, Ok(Started::Kept(..)));
        let started = started.and_then(|started| started.settle(&mut sandbox));
        let mut player = Player::new(agent, number, ids[number].clone(), plan.limits, started)?;
        if is_kept {
            player.seat.ping_limit = Duration::from_millis(agent.start_limits.later_ms());
        }
        players.push(player);
    }
    Ok((players, sandbox))
}

/// Starts one agent and waits until the agent runs.
///
/// # Errors
/// The reason of the failure; see [`StartError::is_agents_fault`].
pub(crate) fn start_one(
    agent: &Agent,
    game: Option<&'static GameType>,
    confinement: &Confinement,
    limits: TimeLimits,
) -> Result<(Link, Box<dyn Body>), StartError> {
    start(agent, confinement, limits, Vec::new(), game, None)?.settle(&mut Value::Null)
}

/// An agent that is starting.
enum Started {
    Process(Box<Process>),
    /// The process of a built-in agent, whose driver starts when the process runs.
    Driven(Box<Process>, Driver),
    /// An engine that played an earlier match.
    Kept(Box<KeptEngine>, Driver),
    Thread(Link, ThreadBody),
}

/// The parts of a driver that isn't running yet.
struct Driver {
    agent: BuiltIn,
    game: &'static GameType,
    limits: TimeLimits,
    services: Option<SeatServices>,
    /// The place for the engine after the match; `None` for a process that ends with the match.
    back: Option<(KeptEngines, EngineKey)>,
}

/// Returns the files and folders of the other agents in a match. Leaves out those that belong to this agent too.
fn others(agent: &Agent, plan: &MatchPlan<'_>) -> Vec<PathBuf> {
    let others = plan.agents.iter().filter_map(|other| other.channel.command()).flat_map(|command| &command.own);
    without_own(agent, others)
}

fn without_own<'p>(agent: &Agent, paths: impl IntoIterator<Item = &'p PathBuf>) -> Vec<PathBuf> {
    let own = agent.channel.command().map_or(&[][..], |command| &command.own);
    paths.into_iter().filter(|path| !own.contains(path)).cloned().collect()
}

fn start(
    agent: &Agent,
    confinement: &Confinement,
    limits: TimeLimits,
    mut hidden: Vec<PathBuf>,
    game: Option<&'static GameType>,
    engines: Option<&KeptEngines>,
) -> Result<Started, StartError> {
    let refused = |error: io::Error| StartError::Spec { reason: error.to_string() };
    let limits = agent.time_control.map_or(limits, TimeControl::limits);
    let (mut services, mut back) = (None, None);
    let process = match agent.channel.command() {
        None => None,
        Some(command) => {
            let engines = engines.filter(|_| matches!(&agent.channel, Channel::BuiltIn(agent) if agent.stays()));
            if let Some(engines) = engines {
                // Later opponents are other agents, and their files are hidden from now on.
                hidden = without_own(agent, engines.files());
            }
            hidden.extend_from_slice(&confinement.private);
            let mut spec = command.spec(&confinement.expose, hidden, confinement.mode, confinement.limits);
            if let (Channel::BuiltIn(agent), Some(game)) = (&agent.channel, game) {
                services = agent.prepare(game, &mut spec).map_err(|error| refused(io::Error::other(error)))?;
                if let Some(engines) = engines {
                    let key = EngineKey { agent: agent.clone(), spec: spec.clone() };
                    let waiting = engines.take(&key);
                    back = Some((engines.clone(), key));
                    if let Some(engine) = waiting {
                        let driver = Driver { agent: agent.clone(), game, limits, services, back };
                        return Ok(Started::Kept(Box::new(engine), driver));
                    }
                }
            }
            Some(Box::new(process::start(&confinement.launcher, &spec)?))
        }
    };
    match (&agent.channel, process) {
        (Channel::Http(url), _) => {
            // The deadlines of the match are shorter. This timeout ends requests for which the match no
            // longer waits.
            let patience = Duration::from_millis(limits.step_ms + limits.bank_ms) + Duration::from_secs(10);
            let (link, body) = http::connect(url, patience, confinement.public_only).map_err(refused)?;
            Ok(Started::Thread(link, body))
        }
        (Channel::BuiltIn(agent), process) => {
            let game = game.ok_or_else(|| refused(io::Error::other(format!("{agent} plays only in matches"))))?;
            agent.check(game).map_err(|error| refused(io::Error::other(error)))?;
            if let Some(process) = process {
                let driver = Driver { agent: agent.clone(), game, limits, services, back };
                return Ok(Started::Driven(process, driver));
            }
            let (link, body) = kinds::start(agent, game, limits, Means::default()).map_err(refused)?;
            Ok(Started::Thread(link, body))
        }
        (Channel::Stdio(_), Some(process)) => Ok(Started::Process(process)),
        (Channel::Stdio(_), None) => Err(StartError::Vanished),
    }
}

impl Started {
    /// Waits until the agent runs. Stores the limits in force in `sandbox` if `sandbox` is null.
    fn settle(self, sandbox: &mut Value) -> Result<(Link, Box<dyn Body>), StartError> {
        let refused = |error: io::Error| StartError::Spec { reason: error.to_string() };
        let (process, driver) = match self {
            Started::Thread(link, body) => return Ok((link, Box::new(body))),
            Started::Kept(kept, driver) => {
                let KeptEngine { sandbox: in_force, program, body, .. } = *kept;
                if sandbox.is_null() {
                    sandbox.clone_from(&in_force);
                }
                return driver.drive(program, body, in_force).map_err(refused);
            }
            Started::Process(process) => (process, None),
            Started::Driven(process, driver) => (process, Some(driver)),
        };
        let mut process = *process;
        let in_force = json!(process.in_force()?);
        if sandbox.is_null() {
            sandbox.clone_from(&in_force);
        }
        let listener = process.take_listener();
        let (stdin, stdout, body) = LocalBody::of(process).map_err(refused)?;
        match driver {
            None => Ok((Link::new(stdin, stdout), Box::new(body))),
            Some(mut driver) => {
                if let (Some(services), Some(listener)) = (&mut driver.services, listener) {
                    services.listener = Some(listener.into());
                }
                driver.drive(Program::new(stdin, stdout), Box::new(body), in_force).map_err(refused)
            }
        }
    }
}

impl Driver {
    /// Starts the thread that drives the program of `process`, which runs in the sandbox `in_force`.
    fn drive(self, program: Program, process: Box<dyn Body>, in_force: Value) -> io::Result<(Link, Box<dyn Body>)> {
        let Driver { agent, game, limits, services, back } = self;
        let (give_back, program_back) = mpsc::channel();
        let give_back = back.is_some().then_some(give_back);
        let means = Means { program: Some(program), give_back, services };
        let (link, thread) = kinds::start(&agent, game, limits, means)?;
        let back = back.map(|(engines, key)| EngineReturn { engines, key, sandbox: in_force, program: program_back });
        Ok((link, Box::new(DrivenBody::new(thread, process, back))))
    }
}

/// The body of an agent that is a child process.
struct LocalBody {
    process: Option<Process>,
    stderr: Stderr,
    limits_memory: Option<u64>,
}

impl LocalBody {
    /// Returns the pipes to the process's stdin and stdout, and its body.
    fn of(mut process: Process) -> io::Result<(OwnedFd, OwnedFd, LocalBody)> {
        let stdin = process.stdin.take().ok_or_else(|| io::Error::other("the agent's input was taken before"))?;
        let (stdout, stderr) = (process.stdout.try_clone()?, process.stderr.try_clone()?);
        let limits_memory = process.in_force().ok().and_then(|in_force| in_force.limits.memory_bytes);
        let body = LocalBody { process: Some(process), stderr: Stderr::read(stderr)?, limits_memory };
        Ok((stdin, stdout, body))
    }

    fn end(&self, ended: &Ended) -> End {
        let code = match ended.cause {
            ExitCause::Exited(code) => Some(code),
            _ => None,
        };
        let (mut sentence, is_killed) = match ended.cause {
            ExitCause::Exited(code) => (format!("exited with code {code}"), false),
            ExitCause::Signaled(signal) => (format!("was ended by signal {signal}{}", name_of(signal)), false),
            ExitCause::Killed(KillReason::Memory) => ("exceeded the memory limit".to_owned(), true),
            ExitCause::Killed(KillReason::Processes) => ("exceeded the process limit".to_owned(), false),
            ExitCause::Killed(KillReason::Requested) => ("was stopped".to_owned(), false),
            ExitCause::NotStarted => ("didn't start".to_owned(), false),
            ExitCause::Unknown => ("ended for an unknown reason".to_owned(), false),
        };
        // If an allocation exceeds the limit, the agent usually ends by itself: by a signal, or with a
        // message on stderr.
        let is_much = self.limits_memory.is_some_and(|limit| ended.max_rss_bytes >= limit / 10 * 8);
        let is_crash = matches!(ended.cause, ExitCause::Signaled(_));
        let ran_out = !is_killed && code != Some(0) && (is_much && is_crash || self.stderr.reports_out_of_memory());
        if is_much && !is_killed {
            let mib = |bytes: u64| bytes >> 20;
            let limit = mib(self.limits_memory.unwrap_or(0));
            sentence += &format!(", after using {} of {limit} MiB of memory", mib(ended.max_rss_bytes));
        } else if ran_out {
            sentence += " when it ran out of memory";
        }
        let is_out_of_memory = is_killed || ran_out;
        End { sentence, is_out_of_memory, code, left_behind: ended.left_behind }
    }
}

/// Returns the name of a common signal in parentheses, or an empty text for other signals.
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

impl Body for LocalBody {
    fn ended(&mut self, patience: Duration) -> Option<End> {
        let ended = self.process.as_mut()?.ended(patience)?.clone();
        // The last bytes of stderr may arrive after the report of the agent's end.
        self.stderr.wait(LAST_WORDS);
        Some(self.end(&ended))
    }

    fn cpu_times(&self) -> CpuTimes {
        self.process.as_ref().map_or_else(CpuTimes::default, |process| CpuTimes::below(process.launcher_pid()))
    }

    fn awaited(&self) -> Option<String> {
        let causes = "perhaps it doesn't flush stdout, reads all of stdin first, or starts slowly (`--startup-ms`)";
        Some(causes.to_owned())
    }

    fn take_log(&mut self) -> Log {
        self.stderr.take()
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

/// Returns a link and a body for an agent that didn't start.
pub(crate) fn absent() -> Result<(Link, Box<dyn Body>), MatchError> {
    Ok((Link::dead().map_err(MatchError::System)?, Box::new(Absent)))
}

impl Link {
    /// Creates a link with pipes that lead to no agent.
    fn dead() -> Result<Link, rustix::io::Errno> {
        let (_, input) = pipe_with(PipeFlags::CLOEXEC)?;
        let (output, _) = pipe_with(PipeFlags::CLOEXEC)?;
        Ok(Link::new(input, output))
    }
}
