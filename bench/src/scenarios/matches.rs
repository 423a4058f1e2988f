//! Matches between fast agents, in turn with a bare pipe to two children with messages of the same size; the start time
//! of a match; wrong forfeits on time under load; and the delay of justified forfeits.

mod coverage;

use std::io::Write;
use std::process::{Child, Command as Process, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, anyhow, bail};
use arena_match::{
    Agent, Confinement, Launcher, MatchPlan, MatchSnapshot, PlayedMatch, SandboxMode, Watch, cores, play_match, stay_on,
};
use arena_model::{GameType, Seed, TimeLimits};
use rustix::time::{ClockId, clock_gettime};
use serde_json::{Map, Value, json};

use crate::arguments::Arguments;
use crate::latency::median;
use crate::quick_agent::QUICK_AGENT;
use crate::report::{Goal, Report};

const NAME: &str = "matches";

/// The argument that makes this binary the launcher of agents.
pub const LAUNCH: &str = "launch-agent";

/// The games; for each game the epochs of a measurement, and the goals: the rounds per second as a percentage of the
/// bare pipe's, and the runner's CPU time per epoch in microseconds.
const GAMES: [(&str, u64, Option<f64>, f64); 4] = [
    ("snake", 200_000, Some(60.0), 5.0),
    ("food_catcher", 50_000, Some(30.0), 30.0),
    ("cherry_picker", 50_000, None, 30.0),
    ("chess", 5_000, None, 20.0),
];

/// The number of epochs between two readings of the CPU clock, which is slower to read than the monotonic clock.
const SAMPLE: u64 = 32;

/// Options of this scenario.
#[derive(Debug, clap::Args)]
#[group(skip)]
#[command(next_help_heading = "matches")]
pub struct MatchesOptions {
    /// Number of exchanges in the test for wrong forfeits under load [default: 1000000; 20000 if quick]
    #[arg(long)]
    exchanges: Option<u64>,
    /// Measure the coverage of rating intervals in simulated leagues instead of matches
    #[arg(long)]
    coverage: bool,
}

/// Runs the scenario.
///
/// # Errors
/// If a match cannot be played, for example because the sandbox is not available.
pub fn run(arguments: &Arguments, report: &mut Report) -> anyhow::Result<()> {
    if arguments.matches.coverage {
        return coverage::run(arguments, report);
    }
    for (name, epochs, share, cpu_us) in GAMES {
        measure(arguments, report, name, if arguments.quick { epochs / 20 } else { epochs }, share, cpu_us)?;
    }
    engines(arguments, report)?;
    starts(arguments, report)?;
    forfeits(arguments, report)?;
    lateness(arguments, report)
}

/// The results of a match or a bare pipe.
#[derive(Debug, Clone, Copy, serde::Serialize)]
struct RoundPace {
    rounds_per_s: f64,
    /// The CPU time of the calling thread per round, in microseconds.
    cpu_us: f64,
}

fn measure(
    arguments: &Arguments,
    report: &mut Report,
    name: &'static str,
    epochs: u64,
    share: Option<f64>,
    cpu_us: f64,
) -> anyhow::Result<()> {
    let game = arena_games::game(name).with_context(|| format!("unknown game {name}"))?;
    let sizes = sizes(game)?;
    let (mut plain, mut recorded, mut pipes) = (Vec::new(), Vec::new(), Vec::new());
    for number in 1..=arguments.rounds() {
        eprintln!("{NAME}: {name}, round {number} of {}", arguments.rounds());
        plain.push(on_core(move || rounds(game, epochs, false))?);
        pipes.push(on_core(move || bare_pipe(game, sizes, epochs))?);
        recorded.push(on_core(move || rounds(game, epochs, true))?);
    }
    let mid = |paces: &[RoundPace], value: fn(&RoundPace) -> f64| median(paces.iter().map(value));
    let ratio =
        |paces: &[RoundPace]| 100.0 * median(paces.iter().zip(&pipes).map(|(a, b)| a.rounds_per_s / b.rounds_per_s));
    let own = |paces: &[RoundPace]| median(paces.iter().zip(&pipes).map(|(a, b)| a.cpu_us - b.cpu_us));
    let per_s = |pace: &RoundPace| pace.rounds_per_s;
    let cpu = |pace: &RoundPace| pace.cpu_us;
    report
        .row(NAME, format!("{name}: epochs/s"), mid(&plain, per_s), "")
        .note(format!("messages of {} bytes, answers of {}; all on one core", sizes.0, sizes.1));
    let row = report.row(NAME, format!("{name}: share of a bare pipe's rounds/s"), ratio(&plain), "%");
    row.note(format!("bare pipe {:.0} rounds/s; with a replay on disk {:.1} %", mid(&pipes, per_s), ratio(&recorded)));
    if let Some(share) = share {
        row.goal(Goal::AtLeast(share));
    }
    report.row(NAME, format!("{name}: the engine's CPU per epoch"), own(&plain), "µs").goal(Goal::AtMost(cpu_us)).note(
        format!(
            "the runner's thread {:.1} µs less {:.1} µs of the bare pipe's; with a replay {:.1} µs",
            mid(&plain, cpu),
            mid(&pipes, cpu),
            own(&recorded)
        ),
    );
    report.detail(NAME, name, json!({ "plain": plain, "recorded": recorded, "pipe": pipes, "sizes": sizes }));
    Ok(())
}

/// Measures matches between two engines that speak UCI.
fn engines(arguments: &Arguments, report: &mut Report) -> anyhow::Result<()> {
    let chess = arena_games::game("chess").context("unknown game chess")?;
    let plies = if arguments.quick { 1_000 } else { 20_000 };
    let (mut plain, mut recorded) = (Vec::new(), Vec::new());
    for number in 1..=arguments.rounds() {
        eprintln!("{NAME}: UCI engines, round {number} of {}", arguments.rounds());
        for (is_recorded, paces) in [(false, &mut plain), (true, &mut recorded)] {
            paces.push(on_core(move || rounds_of(&engine()?, chess, plies, is_recorded))?);
        }
    }
    let per_s = |paces: &[RoundPace]| median(paces.iter().map(|pace| pace.rounds_per_s));
    report
        .row(NAME, "chess, UCI engines: plies/s", per_s(&plain), "")
        .goal(Goal::AtLeast(10_000.0))
        .note(format!("all on one core; with a replay on disk {:.0}", per_s(&recorded)));
    report.detail(NAME, "uci", json!({ "plain": plain, "recorded": recorded }));
    Ok(())
}

/// Returns this program as an engine behind `uci:`.
fn engine() -> anyhow::Result<Agent> {
    let text = format!("uci:{}?arg={QUICK_AGENT}&arg=uci&depth=1", this_program()?.display());
    Agent::find(&text, "").map_err(|error| anyhow!("{error}"))
}

/// Runs a job on a new thread that stays on the last core.
fn on_core<T: Send>(job: impl FnOnce() -> anyhow::Result<T> + Send) -> anyhow::Result<T> {
    thread::scope(|scope| {
        let thread = scope.spawn(|| {
            if let Some(core) = cores().last() {
                stay_on(*core);
            }
            job()
        });
        thread.join().map_err(|_| anyhow!("a measurement panicked"))?
    })
}

fn this_program() -> anyhow::Result<std::path::PathBuf> {
    std::env::current_exe().context("could not find this binary's own path")
}

fn agent(words: &[&str]) -> anyhow::Result<Agent> {
    let program = this_program()?;
    let words: Vec<String> =
        [&program.to_string_lossy(), QUICK_AGENT].iter().chain(words).map(|word| (*word).to_owned()).collect();
    Agent::command(&words, "").map_err(|error| anyhow!("{error}"))
}

fn confinement(mode: SandboxMode) -> anyhow::Result<Confinement> {
    let launcher = Launcher { program: this_program()?, args: vec![LAUNCH.into()] };
    Ok(Confinement::new(launcher, mode))
}

/// Reads the clocks during a match.
#[derive(Default)]
struct Stopwatch {
    /// The start time of the first epoch, and the CPU time at that moment.
    first: Option<(Instant, Duration)>,
    /// The time, CPU time and number of the last sampled epoch.
    last: Option<(Instant, Duration, u64)>,
    /// The start time of the last epoch.
    begun: Option<Instant>,
    epoch: u64,
}

impl Watch for Stopwatch {
    fn on_epoch(&mut self, snapshot: MatchSnapshot<'_>) {
        let now = Instant::now();
        self.begun = Some(now);
        self.epoch = snapshot.epoch;
        // The first epochs are excluded, because the agents prepare their answers at their first state.
        if snapshot.epoch == SAMPLE {
            self.first = Some((now, cpu()));
        } else if snapshot.epoch.is_multiple_of(SAMPLE) {
            self.last = Some((now, cpu(), snapshot.epoch));
        }
    }
}

impl Stopwatch {
    fn epochs(&self) -> u64 {
        self.last.map_or(0, |(_, _, epoch)| epoch - SAMPLE)
    }
}

/// Returns the CPU time of the calling thread.
fn cpu() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).unwrap_or(0))
}

fn held(
    game: &'static GameType,
    options: &Map<String, Value>,
    seed: u64,
    limits: TimeLimits,
    agents: [&Agent; 2],
    replay: Option<&mut (dyn Write + Send)>,
) -> anyhow::Result<(PlayedMatch, Stopwatch)> {
    let confinement = confinement(SandboxMode::On)?;
    let (seed, mut watch) = (Seed::from_number(seed), Stopwatch::default());
    let plan = MatchPlan {
        game,
        options,
        seed,
        limits,
        agents: agents.to_vec(),
        confinement: &confinement,
        adjudication: None,
    };
    let played_match = play_match(&plan, replay, Some(&mut watch), &AtomicBool::new(false))?;
    Ok((played_match, watch))
}

/// Returns the options of a game: the defaults, with this number of epochs.
fn options(game: &'static GameType, epochs: u64) -> Map<String, Value> {
    // A game of chess ends by its own rules, so it needs no limit.
    if game.name == "chess" { Map::new() } else { Map::from_iter([("n_epochs".to_owned(), json!(epochs))]) }
}

/// Plays matches until this number of epochs has been played.
///
/// # Errors
/// If no match can be played here, or an agent is disqualified.
fn rounds(game: &'static GameType, epochs: u64, is_recorded: bool) -> anyhow::Result<RoundPace> {
    rounds_of(&agent(&[game.name])?, game, epochs, is_recorded)
}

/// Plays matches of an agent against itself, like [`rounds`].
fn rounds_of(agent: &Agent, game: &'static GameType, epochs: u64, is_recorded: bool) -> anyhow::Result<RoundPace> {
    let (mut played, mut time, mut cpu_time) = (0, Duration::ZERO, Duration::ZERO);
    for seed in 0.. {
        let mut file = if is_recorded { Some(tempfile::tempfile().context("no file for the replay")?) } else { None };
        let replay = file.as_mut().map(|file| file as &mut (dyn Write + Send));
        let (played_match, watch) = held(game, &options(game, epochs), seed, game.limits, [agent, agent], replay)?;
        if played_match.result.seats.iter().any(|seat| seat.verdict.is_some()) {
            bail!("a fast agent was disqualified: {:?}", played_match.result);
        }
        if let (Some((first, first_cpu)), Some((last, last_cpu, _))) = (watch.first, watch.last) {
            played += watch.epochs();
            time += last - first;
            cpu_time += last_cpu - first_cpu;
        }
        if played * 10 >= epochs * 9 {
            break;
        }
        if seed > 500 {
            bail!("{}: the matches of the quick agents are too short: {played} epochs in {seed} matches", game.name);
        }
    }
    Ok(RoundPace {
        rounds_per_s: played as f64 / time.as_secs_f64(),
        cpu_us: cpu_time.as_secs_f64() * 1e6 / played as f64,
    })
}

/// Returns the sizes of a message and of an answer in bytes, in the middle of a match.
fn sizes(game: &'static GameType) -> anyhow::Result<(usize, usize)> {
    let agent = agent(&[game.name])?;
    let longest = Arc::new(Mutex::new(Vec::<usize>::new()));
    struct Sizes(Arc<Mutex<Vec<usize>>>);
    impl Watch for Sizes {
        fn on_epoch(&mut self, snapshot: MatchSnapshot<'_>) {
            self.0
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .push(snapshot.states.iter().map(Vec::len).max().unwrap_or(0));
        }
    }
    let confinement = confinement(SandboxMode::On)?;
    let options = options(game, 1000);
    let plan = MatchPlan {
        game,
        options: &options,
        seed: Seed::from_number(0),
        limits: game.limits,
        agents: vec![&agent, &agent],
        confinement: &confinement,
        adjudication: None,
    };
    play_match(&plan, None, Some(&mut Sizes(longest.clone())), &AtomicBool::new(false))?;
    let sizes = longest.lock().unwrap_or_else(PoisonError::into_inner);
    let mean = sizes.iter().sum::<usize>() / sizes.len().max(1);
    // A message contains the state twice, the agent's time bank, and keys.
    let message = 2 * (mean + r#","remaining_overage_ms":20000"#.len()) + r#"{"world_state":{},}"#.len() + 1;
    let actions = match game.name {
        "snake" | "chess" => r#"[{"action":"move","move":"RIGHT"}]"#,
        _ => r#"[{"action":"move","actor_id":"aaaaaa","target":[6.123456789,6.123456789]}]"#,
    };
    Ok((message, r#"{"actions":,"agent_id":"00000000-0000-4000-8000-000000000000"}"#.len() + actions.len() + 1))
}

/// Exchanges messages of these sizes with two children, and does nothing else. As in a match, each exchange is with all
/// agents to move, of which turn-based games have one.
fn bare_pipe(game: &'static GameType, (message, answer): (usize, usize), rounds: u64) -> anyhow::Result<RoundPace> {
    let child = || -> anyhow::Result<Child> {
        let mut child = Process::new(this_program()?);
        child.args([QUICK_AGENT, "echo", &answer.to_string()]).stdin(Stdio::piped()).stdout(Stdio::piped());
        child.spawn().context("could not start a child of the bare pipe")
    };
    let children = [child()?, child()?];
    let mut line = vec![b'x'; message];
    line[message - 1] = b'\n';
    let mut buffer = vec![0; 1 << 16];
    let mut exchange = |round: u64| -> anyhow::Result<()> {
        let is_turns = game.mode == arena_model::UpdateMode::Alternating;
        let asked = |at: usize| !is_turns || round % 2 == at as u64;
        for (at, child) in children.iter().enumerate().filter(|(at, _)| asked(*at)) {
            let input = child.stdin.as_ref().with_context(|| format!("child {at} has no input"))?;
            let mut written = 0;
            while written < line.len() {
                written += rustix::io::write(input, &line[written..])?;
            }
        }
        for (at, child) in children.iter().enumerate().filter(|(at, _)| asked(*at)) {
            let output = child.stdout.as_ref().with_context(|| format!("child {at} has no output"))?;
            let mut end = 0;
            while end == 0 || buffer[end - 1] != b'\n' {
                let read = rustix::io::read(output, &mut buffer[end..])?;
                if read == 0 {
                    bail!("child {at} has ended");
                }
                end += read;
            }
        }
        Ok(())
    };
    for round in 0..SAMPLE {
        exchange(round)?;
    }
    let (start, start_cpu) = (Instant::now(), cpu());
    for round in 0..rounds {
        exchange(round)?;
    }
    let (time, cpu_time) = (start.elapsed(), cpu() - start_cpu);
    for mut child in children {
        drop(child.stdin.take());
        child.wait()?;
    }
    Ok(RoundPace {
        rounds_per_s: rounds as f64 / time.as_secs_f64(),
        cpu_us: cpu_time.as_secs_f64() * 1e6 / rounds as f64,
    })
}

/// Measures the time to the first epoch, and a whole match of two epochs, with and without the sandbox.
fn starts(arguments: &Arguments, report: &mut Report) -> anyhow::Result<()> {
    let matches = if arguments.quick { 20 } else { 200 };
    let once = |mode: SandboxMode, seed: u64| -> anyhow::Result<(f64, f64)> {
        let (game, agent, confinement) =
            (arena_games::game("snake").context("unknown game snake")?, agent(&["snake"])?, confinement(mode)?);
        let options = Map::from_iter([("n_epochs".to_owned(), json!(2))]);
        let seed = Seed::from_number(seed);
        let agents = vec![&agent, &agent];
        let plan = MatchPlan {
            game,
            options: &options,
            seed,
            limits: game.limits,
            agents,
            confinement: &confinement,
            adjudication: None,
        };
        let mut watch = Stopwatch::default();
        let start = Instant::now();
        play_match(&plan, None, Some(&mut watch), &AtomicBool::new(false))?;
        let first = watch.begun.context("the match had no epoch")?;
        Ok(((first - start).as_secs_f64() * 1e3, start.elapsed().as_secs_f64() * 1e3))
    };
    let (mut confined, mut free) = (Vec::new(), Vec::new());
    for seed in 0..matches {
        confined.push(on_core(|| once(SandboxMode::On, seed))?);
        free.push(on_core(|| once(SandboxMode::Off, seed))?);
    }
    let mid = |times: &[(f64, f64)], value: fn(&(f64, f64)) -> f64| median(times.iter().map(value));
    let sandbox = median(confined.iter().zip(&free).map(|(a, b)| a.0 - b.0));
    report
        .row(NAME, "what the sandbox adds to a match's start, two agents", sandbox, "ms")
        .goal(Goal::AtMost(10.0))
        .note(format!(
            "to the second epoch: {:.1} ms with sandbox, {:.1} ms without",
            mid(&confined, |t| t.0),
            mid(&free, |t| t.0)
        ));
    report
        .row(NAME, "a whole match of two epochs", mid(&confined, |t| t.1), "ms")
        .note(format!("without the sandbox {:.1} ms; in sequence on one core", mid(&free, |t| t.1)));
    Ok(())
}

/// Plays many exchanges while every core is overloaded, and counts the agents that lose on time.
fn forfeits(arguments: &Arguments, report: &mut Report) -> anyhow::Result<()> {
    let exchanges = arguments.size(arguments.matches.exchanges, 1_000_000, 20_000);
    let stop = AtomicBool::new(false);
    let (mut done, mut lost) = (0, 0);
    thread::scope(|scope| -> anyhow::Result<()> {
        for core in cores() {
            let stop = &stop;
            scope.spawn(move || {
                stay_on(core);
                while !stop.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
            });
        }
        let played = (|| {
            let game = arena_games::game("snake").context("unknown game snake")?;
            let agent = agent(&["snake"])?;
            // These are the shortest limits of all games.
            let limits = TimeLimits { step_ms: 200, bank_ms: 2000 };
            for seed in 0.. {
                if done >= exchanges {
                    break;
                }
                let options = options(game, (exchanges - done).div_ceil(2).max(2));
                let (played_match, _) = on_core(|| held(game, &options, seed, limits, [&agent, &agent], None))?;
                lost += played_match.result.seats.iter().filter(|seat| seat.verdict.is_some()).count();
                done += 2 * played_match.result.epochs;
            }
            anyhow::Ok(())
        })();
        stop.store(true, Ordering::Relaxed);
        played
    })?;
    report
        .row(NAME, "false forfeits on time with every core busy", lost as f64, "")
        .goal(Goal::AtMost(0.0))
        .note(format!("{done} exchanges, limits of 200 ms and a bank of 2 s"));
    Ok(())
}

/// A replay's writer that records the time of the last write, which is the line about the forfeit.
struct LastWrite(Arc<Mutex<Option<Instant>>>);

impl Write for LastWrite {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Measures the time from the deadline of a silent agent to its disqualification.
fn lateness(arguments: &Arguments, report: &mut Report) -> anyhow::Result<()> {
    let limits = TimeLimits { step_ms: 50, bank_ms: 50 };
    let mut late_ms = Vec::new();
    for seed in 0..if arguments.quick { 5 } else { 50 } {
        let game = arena_games::game("snake").context("unknown game snake")?;
        let (mute, quick) = (agent(&["mute", "3"])?, agent(&["snake"])?);
        let at = Arc::new(Mutex::new(None));
        let mut writes = LastWrite(at.clone());
        let options = Map::new();
        let (played_match, watch) = on_core(|| held(game, &options, seed, limits, [&mute, &quick], Some(&mut writes)))?;
        if played_match.result.outcome.tainted_reason != Some(arena_model::Verdict::Timeout) {
            continue;
        }
        let written = at.lock().unwrap_or_else(PoisonError::into_inner).context("no replay was written")?;
        let asked = watch.begun.context("the match had no epoch")?;
        late_ms.push((written - asked).as_secs_f64() * 1e3 - (limits.step_ms + limits.bank_ms) as f64);
    }
    late_ms.sort_by(f64::total_cmp);
    let worst = late_ms.last().copied().context("no silent agent was disqualified")?;
    report
        .row(NAME, "a true forfeit on time is called, at the latest", worst, "ms")
        .goal(Goal::AtMost(5.0))
        .note(format!("after the deadline; median {:.2} ms of {}", median(late_ms.iter().copied()), late_ms.len()));
    Ok(())
}
