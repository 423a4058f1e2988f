//! Whole PSI games at full speed, on the arena and the ceiling in turn. Each of a fixed number of connections plays
//! game after game from both seats. Other measurements of whole games are options of the scenario.

mod compared;
mod mcp;
mod memory;
pub mod script;

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use serde_json::{Value, json};

use crate::arguments::Arguments;
use crate::latency::median;
use crate::machine::sync_while;
use crate::player_pool::{Round, Until};
use crate::psi::{ServerKind, Step, StepLatencies};
use crate::report::{Goal, Report};
use crate::server::{ArenaFolder, Server};

const NAME: &str = "games";

/// The goals for the number of connections: games/s as a multiple of the peer's, and the share of the ceiling in percent.
const GOALS: [(usize, Option<f64>, f64); 3] = [(16, None, 35.0), (64, Some(15.0), 50.0), (256, None, 50.0)];

/// The games/s of the peer in memory with 64 connections, and the CPU time in microseconds for a request of the ceiling
/// on the machine where it was measured. On other machines, the ceiling's CPU time scales the number.
const PEER: (f64, f64) = (137.0, 12.8);

/// The maximum p99 of all requests with 16 connections, in milliseconds.
const P99_MS: f64 = 3.0;

/// The maximum p999 of all requests beyond their median, as a multiple of the p999 of a bare loop of durable writes.
const P999_SYNCS: f64 = 1.5;

/// The number of connections at which latencies are compared with durable writes.
const SYNCS_CONNECTIONS: usize = 16;

/// Options of this scenario.
#[derive(Debug, clap::Args)]
#[group(skip)]
#[command(next_help_heading = "games")]
pub struct GamesOptions {
    /// Numbers of connections, each playing both seats; one row of measurements per number
    #[arg(long, value_name = "N,N,…", value_delimiter = ',', default_value = "16,64,256")]
    connections: Vec<usize>,
    /// Measure the costs of these instead of the plain games
    #[arg(long, value_name = "WHAT,…", value_delimiter = ',')]
    with: Vec<Measured>,
}

/// A measurement other than the plain games.
#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum Measured {
    /// Games with authentication, compared with games without
    Auth,
    /// Games by a script, compared with the built-in rules
    Script,
    /// Calls over MCP, compared with REST
    Mcp,
    /// Games with the log of records, compared with games without
    Records,
    /// Memory when idle, after many games, and per open session
    Memory,
}

/// Runs the scenario.
///
/// # Errors
/// If a server doesn't start or ends.
pub fn run(arguments: &Arguments, report: &mut Report) -> anyhow::Result<()> {
    if arguments.ceiling {
        return ceiling_alone(arguments, report);
    }
    for measured in &arguments.games.with {
        match measured {
            Measured::Auth => compared::auth(arguments, report)?,
            Measured::Script => compared::script(arguments, report)?,
            Measured::Mcp => mcp::run(arguments, report)?,
            Measured::Records => compared::records(arguments, report)?,
            Measured::Memory => memory::run(arguments, report)?,
        }
    }
    if !arguments.games.with.is_empty() {
        return Ok(());
    }
    let folder = ArenaFolder::new(&arguments.arena(), &arguments.work(), None)?;
    let arena = folder.start()?;
    let ceiling = Server::start_ceiling(&arguments.work())?;
    for &connections in &arguments.games.connections {
        measure(arguments, report, &arena, &ceiling, connections)?;
    }
    if arguments.games.connections.contains(&SYNCS_CONNECTIONS) {
        compare_with_syncs(arguments, report, &arena)?;
    }
    report.detail(NAME, "bytes on disk at the end", json!(folder.size()?));
    arena.terminate()?;
    Ok(())
}

fn measure(
    arguments: &Arguments,
    report: &mut Report,
    arena: &Server,
    ceiling: &Server,
    connections: usize,
) -> anyhow::Result<()> {
    let player_pool = arguments.player_pool(connections);
    let (length, rounds) = (arguments.round()?, arguments.rounds());
    // The warm-up fills caches and prepares statements. Its latencies are not used.
    let warm_up = Until::Elapsed(length / 5);
    let mut faults = player_pool.play(arena, ServerKind::Arena, warm_up)?.faults;
    player_pool.play(ceiling, ServerKind::Ceiling, warm_up)?;

    let (mut of_arena, mut of_ceiling) = (Vec::new(), Vec::new());
    for number in 1..=rounds {
        eprintln!("games: {connections} connections, round {number} of {rounds}");
        of_arena.push(player_pool.play(arena, ServerKind::Arena, Until::Elapsed(length))?);
        of_ceiling.push(player_pool.play(ceiling, ServerKind::Ceiling, Until::Elapsed(length))?);
    }

    let mid = |rounds: &[Round], value: fn(&Round) -> f64| median(rounds.iter().map(value));
    let (rate, ceiling_rate) = (mid(&of_arena, Round::rate), mid(&of_ceiling, Round::rate));
    let cpu = mid(&of_arena, Round::server_us_per_request);
    let ceiling_cpu = mid(&of_ceiling, Round::server_us_per_request);
    let client_cpu = mid(&of_arena, Round::client_us_per_request);
    let ceiling_client_cpu = mid(&of_ceiling, Round::client_us_per_request);
    let latencies = merged(&of_arena);
    // Each share is computed within one round, in which the state of the machine is the same for arena and ceiling.
    let share = median(of_arena.iter().zip(&of_ceiling).map(|(arena, ceiling)| arena.rate() / ceiling.rate()));

    let at = format!("{connections} connections");
    let goals = GOALS.iter().find(|(number, ..)| *number == connections);
    let games = mid(&of_arena, |round| round.games as f64 / round.spent.seconds);
    let row = report.row(NAME, format!("{at}: games/s"), games, "");
    if let Some((_, Some(multiple), _)) = goals {
        let (peer, peer_ceiling_cpu) = PEER;
        let scaled = peer * peer_ceiling_cpu / ceiling_cpu;
        row.goal(Goal::AtLeast(multiple * scaled)).note(format!("goal: {multiple} × the peer's {scaled:.0}, scaled"));
    }
    report.row(NAME, format!("{at}: requests/s"), rate, "").note(format!("ceiling {ceiling_rate:.0}"));
    let row = report.row(NAME, format!("{at}: share of the ceiling"), share * 100.0, "%");
    if let Some((.., share)) = goals {
        row.goal(Goal::AtLeast(*share));
    }
    report
        .row(NAME, format!("{at}: server CPU per request, to the ceiling's"), cpu / ceiling_cpu, "×")
        .goal(Goal::AtMost(2.5));
    report
        .row(NAME, format!("{at}: server CPU per request"), cpu, "µs")
        .note(format!("ceiling {ceiling_cpu:.1} µs; client {client_cpu:.1} and {ceiling_client_cpu:.1} µs"));
    let row = report.p99(NAME, &format!("{at}: all requests"), latencies.all().summary());
    if connections == 16 {
        row.goal(Goal::AtMost(P99_MS));
    }
    for step in Step::ALL {
        report.p99(NAME, &format!("{at}: {}", step.name()), latencies.of(step).summary());
    }
    of_arena.iter().for_each(|round| faults.merge(round.faults.clone()));
    of_ceiling.iter().for_each(|round| report.faults(format!("games, {at}, ceiling"), &round.faults));
    report.row(NAME, format!("{at}: errors"), faults.count() as f64, "").goal(Goal::AtMost(0.0));
    report.faults(format!("games, {at}"), &faults);

    let detail = json!({
        "arena_rounds": of_arena.iter().map(round_json).collect::<Vec<_>>(),
        "ceiling_rounds": of_ceiling.iter().map(round_json).collect::<Vec<_>>(),
        "arena_latencies": latencies_json(&latencies),
        "ceiling_latencies": latencies_json(&merged(&of_ceiling)),
        "arena_at_the_end": { "rss_kib": arena.usage()?.rss_kib, "threads": arena.usage()?.threads },
    });
    report.detail(NAME, at, detail);
    Ok(())
}

/// Measures games with [`SYNCS_CONNECTIONS`] beside a loop that writes durably to the same disk, and compares their rarest
/// latencies. The server writes to the disk as the loop does, so the loop shows the delays that the disk causes.
fn compare_with_syncs(arguments: &Arguments, report: &mut Report, arena: &Server) -> anyhow::Result<()> {
    let (length, player_pool) = (arguments.round()? * 3, arguments.player_pool(SYNCS_CONNECTIONS));
    eprintln!("games: 16 connections, beside a loop of fdatasync");
    let is_played = AtomicBool::new(false);
    let (round, syncs) = thread::scope(|scope| {
        let syncs = scope.spawn(|| sync_while(&arguments.work(), || !is_played.load(Ordering::Relaxed)));
        let round = player_pool.play(arena, ServerKind::Arena, Until::Elapsed(length));
        is_played.store(true, Ordering::Relaxed);
        (round, syncs.join().expect("the loop doesn't panic"))
    });
    let (round, syncs) = (round?, syncs?.summary());
    let requests = round.latencies.all().summary();
    report.faults("games, beside a loop of fdatasync", &round.faults);
    let multiple = (requests.p999_us - requests.p50_us) / syncs.p999_us;
    report
        .row(NAME, "16 connections: p999 beyond p50, to the p999 of fdatasync", multiple, "×")
        .goal(Goal::AtMost(P999_SYNCS))
        .note(format!(
            "p999 {:.1} ms, p50 {:.2} ms; fdatasync p999 {:.1} ms, p50 {:.2} ms, n = {}",
            requests.p999_us / 1e3,
            requests.p50_us / 1e3,
            syncs.p999_us / 1e3,
            syncs.p50_us / 1e3,
            syncs.count
        ));
    Ok(())
}

/// Measures the ceiling without an arena, which shows the maximum for this client and this machine.
fn ceiling_alone(arguments: &Arguments, report: &mut Report) -> anyhow::Result<()> {
    let ceiling = Server::start_ceiling(&arguments.work())?;
    for &connections in &arguments.games.connections {
        let player_pool = arguments.player_pool(connections);
        player_pool.play(&ceiling, ServerKind::Ceiling, Until::Elapsed(arguments.round()? / 5))?;
        let round = player_pool.play(&ceiling, ServerKind::Ceiling, Until::Elapsed(arguments.round()?))?;
        report.faults("games, ceiling", &round.faults);
        let at = format!("{connections} connections, ceiling");
        report.row(NAME, format!("{at}: requests/s"), round.rate(), "").note(format!(
            "CPU per request: server {:.1} µs, client {:.1} µs",
            round.server_us_per_request(),
            round.client_us_per_request()
        ));
        report.p99(NAME, &format!("{at}: all requests"), round.latencies.all().summary());
    }
    Ok(())
}

fn merged(rounds: &[Round]) -> StepLatencies {
    let mut all = StepLatencies::default();
    for round in rounds {
        all.merge(&round.latencies);
    }
    all
}

pub fn round_json(round: &Round) -> Value {
    json!({
        "games": round.games,
        "seconds": round.spent.seconds,
        "requests_per_second": round.rate(),
        "server_us_per_request": round.server_us_per_request(),
        "client_us_per_request": round.client_us_per_request(),
        "errors": round.faults.count(),
    })
}

fn latencies_json(latencies: &StepLatencies) -> Value {
    let steps = Step::ALL.iter().map(|step| (step.name().to_owned(), json!(latencies.of(*step).summary())));
    let mut steps: serde_json::Map<String, Value> = steps.collect();
    steps.insert("all".to_owned(), json!(latencies.all().summary()));
    Value::Object(steps)
}
