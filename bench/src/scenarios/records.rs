//! Records and the log: whole games on an arena with the log, in turn with an arena without it. Then the records of
//! these games are verified on one core, and one of them is forked.

use std::fs;
use std::hint::black_box;
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context as _, anyhow, ensure};
use arena_model::ChallengeType;
use arena_record::forks::{past_messages, reseed};
use arena_record::{EventKind, ReadLimits, read, reexecute, reexecute_to};
use bytes::Bytes;
use serde::Deserialize;
use serde_json::{Map, json};

use super::games::round_json;
use crate::arguments::Arguments;
use crate::client_pool;
use crate::connection::Connection;
use crate::latency::median;
use crate::player_pool::{Round, Until};
use crate::psi::ServerKind;
use crate::report::{Goal, Report};
use crate::server::{ArenaFolder, Server};

const NAME: &str = "records";

/// The configuration of an arena without the log.
const UNLOGGED: &str = "[records]\nlog = false\n";

/// The numbers of connections of the compared games.
const CONNECTIONS: [usize; 2] = [16, 64];

/// The number of sessions on a page.
const PAGE: usize = 100;

/// Runs the scenario.
///
/// # Errors
/// If a server doesn't start or refuses, or a record isn't verified.
pub fn run(arguments: &Arguments, report: &mut Report) -> anyhow::Result<()> {
    let plain_folder = ArenaFolder::new(&arguments.arena(), &arguments.work(), Some(UNLOGGED))?;
    let logged_folder = ArenaFolder::new(&arguments.arena(), &arguments.work(), None)?;
    let (plain, logged) = (plain_folder.start()?, logged_folder.start()?);
    let mut added = Vec::new();
    for connections in CONNECTIONS {
        added.push((connections, compare(arguments, report, [&plain, &logged], connections)?));
    }
    let count = if arguments.quick { 300 } else { 5_000 };
    let records = client_pool::alone(fetch(&logged, count))?;
    plain.terminate()?;
    logged.terminate()?;

    let challenge = arena_games::challenge("psi", &Map::new()).context("unknown challenge psi")?;
    let challenge = challenge.map_err(|error| anyhow!("psi: {error}"))?;
    let messages = verify(report, &*challenge, &records)?;
    verify_by_program(arguments, report, &records)?;
    fork(report, &*challenge, &records[0], if arguments.quick { 500 } else { 5_000 })?;
    for (connections, cpu_us) in added {
        let what = format!("{connections} connections: server CPU for the log and the chain, per message");
        report.row(NAME, what, cpu_us / messages, "µs").note(format!("{messages:.1} messages in a game"));
    }
    Ok(())
}

/// Plays on both arenas in turn. Returns the additional CPU time of a game with the log, in microseconds.
fn compare(
    arguments: &Arguments,
    report: &mut Report,
    [plain, logged]: [&Server; 2],
    connections: usize,
) -> anyhow::Result<f64> {
    let players = arguments.player_pool(connections);
    let (length, rounds) = (arguments.round()?, arguments.rounds());
    let (mut without, mut with) = (Vec::new(), Vec::new());
    for server in [plain, logged] {
        players.play(server, ServerKind::Arena, Until::Elapsed(length / 5))?;
    }
    for number in 1..=rounds {
        eprintln!("{NAME}: {connections} connections, round {number} of {rounds}");
        without.push(players.play(plain, ServerKind::Arena, Until::Elapsed(length))?);
        with.push(players.play(logged, ServerKind::Arena, Until::Elapsed(length))?);
    }
    // Each share is computed within one pair of rounds, in which the state of the machine is the same for both arenas.
    let share = median(with.iter().zip(&without).map(|(with, without)| with.rate() / without.rate()));
    let games = |rounds: &[Round]| median(rounds.iter().map(|round| round.games as f64 / round.spent.seconds));
    let cpu = |rounds: &[Round]| median(rounds.iter().map(|round| round.spent.server_cpu_us / round.games as f64));
    let at = format!("{connections} connections");
    report
        .row(NAME, format!("{at}: games/s, with the log / without"), share * 100.0, "%")
        .goal(Goal::AtLeast(98.0))
        .note(format!("{:.0} and {:.0} games/s", games(&with), games(&without)));
    let added = cpu(&with) - cpu(&without);
    report.row(NAME, format!("{at}: server CPU for the log, per game"), added, "µs").note(format!(
        "{:.0} and {:.0} µs for a whole game",
        cpu(&with),
        cpu(&without)
    ));
    for round in with.iter().chain(&without) {
        report.faults(format!("{NAME}, {at}"), &round.faults);
    }
    let json = |rounds: &[Round]| rounds.iter().map(round_json).collect::<Vec<_>>();
    report.detail(NAME, at, json!({ "logged": json(&with), "not_logged": json(&without) }));
    Ok(added)
}

/// A page of sessions.
#[derive(Deserialize)]
struct EndedPage {
    challenges: Vec<EndedSession>,
}

#[derive(Deserialize)]
struct EndedSession {
    id: String,
}

/// Fetches the records of up to `count` ended sessions, as a stranger gets them.
async fn fetch(server: &Server, count: usize) -> anyhow::Result<Vec<Bytes>> {
    let mut connection = Connection::open(server.address()).await?;
    let mut records = Vec::new();
    for offset in (0..count).step_by(PAGE) {
        let target = format!("/api/challenges?status=ended&limit={PAGE}&offset={offset}");
        let page = connection.get(&target).await?.ok("the list of sessions")?;
        let page: EndedPage = serde_json::from_slice(&page).context("the list of sessions is malformed")?;
        if page.challenges.is_empty() {
            break;
        }
        for session in page.challenges {
            let record = connection.get(&format!("/api/sessions/{}/record", session.id)).await?;
            records.push(record.ok("the record")?);
        }
    }
    ensure!(!records.is_empty(), "the arena has no ended session");
    Ok(records)
}

/// Verifies the records in this process: form, chain, contents, seal, and all transitions. Returns the number of
/// messages in a game.
fn verify(report: &mut Report, challenge: &dyn ChallengeType, records: &[Bytes]) -> anyhow::Result<f64> {
    let (mut messages, mut bytes) = (0, 0);
    let started = Instant::now();
    for record in records {
        let parsed = read(record, ReadLimits::default())?;
        let played = reexecute(&parsed, challenge)?;
        ensure!(played.unchecked.is_none(), "a game can't be played again: {:?}", played.unchecked);
        messages += played.messages;
        bytes += record.len();
    }
    let seconds = started.elapsed().as_secs_f64();
    let games = records.len() as f64;
    report.row(NAME, "verified PSI games/s on one core", games / seconds, "").goal(Goal::AtLeast(2_000.0)).note(
        format!(
            "{games:.0} records of {:.0} bytes; {:.1} µs a message",
            bytes as f64 / games,
            seconds * 1e6 / messages as f64
        ),
    );
    Ok(messages as f64 / games)
}

/// Verifies the records with the program, which also reads them from files.
fn verify_by_program(arguments: &Arguments, report: &mut Report, records: &[Bytes]) -> anyhow::Result<()> {
    let folder = tempfile::tempdir_in(arguments.work()).context("no folder for the records")?;
    for (number, record) in records.iter().enumerate() {
        fs::write(folder.path().join(format!("{number:06}.jsonl")), record).context("could not write a record")?;
    }
    let mut command = Command::new(arguments.arena());
    command.args(["verify", "--jobs", "1"]).arg(folder.path()).stdin(Stdio::null()).stdout(Stdio::null());
    let started = Instant::now();
    let status = command.status().context("could not start arena verify")?;
    let seconds = started.elapsed().as_secs_f64();
    ensure!(status.success(), "arena verify ended with {status}");
    let rate = records.len() as f64 / seconds;
    report.row(NAME, "`arena verify --jobs 1`: PSI games/s", rate, "").goal(Goal::AtLeast(2_000.0));
    Ok(())
}

/// Forks a game before its last action, with new randomness.
fn fork(report: &mut Report, challenge: &dyn ChallengeType, record: &Bytes, forks: u64) -> anyhow::Result<()> {
    let parsed = read(record, ReadLimits::default())?;
    let last = parsed.events.iter().rev().find(|event| event.kind == EventKind::Action);
    let at = last.context("the game has no action")?.event - 1;
    let started = Instant::now();
    for _ in 0..forks {
        let mut session = reexecute_to(&parsed, challenge, at)?;
        reseed(&mut session);
        let messages = past_messages(&parsed, &session, at).map_err(|reason| anyhow!(reason))?;
        black_box((session, messages));
    }
    let rate = forks as f64 / started.elapsed().as_secs_f64();
    report
        .row(NAME, "forks/s from one record, on one core", rate, "")
        .goal(Goal::AtLeast(1_000.0))
        .note(format!("after event {at} of {}", parsed.events.len()));
    Ok(())
}
