//! The server's memory: idle, after many games have ended, and per open session; and the size of the binary.

use std::fs;
use std::thread;
use std::time::Duration;

use anyhow::{Context as _, ensure};
use serde_json::json;

use crate::arguments::Arguments;
use crate::player_pool::Until;
use crate::psi::{self, ServerKind};
use crate::report::{Goal, Report};
use crate::server::{ArenaFolder, KEEP_OPEN_SESSIONS, Server};
use crate::usage::Usage;

const NAME: &str = "games with memory";

const CONNECTIONS: usize = 64;

/// The goal for the growth of memory: 8 MiB after a million ended games.
const FLAT_KIB_PER_THOUSAND: f64 = 8.0;

/// Measures the memory.
///
/// # Errors
/// If the server doesn't start or refuses.
pub fn run(arguments: &Arguments, report: &mut Report) -> anyhow::Result<()> {
    let games = arguments.size(None, 100_000, 6_000);
    let sessions = arguments.size(None, 100_000, 20_000);
    let player_pool = arguments.player_pool(CONNECTIONS);
    let binary = fs::metadata(arguments.arena()).context("could not read the size of the arena's binary")?.len();

    let folder = ArenaFolder::new(&arguments.arena(), &arguments.work(), None)?;
    let arena = folder.start()?;
    let idle = settled(&arena)?;
    eprintln!("{NAME}: {games} games");
    let play = |games: u64| {
        let round = player_pool.play(&arena, ServerKind::Arena, Until::Games(games))?;
        ensure!(round.games == games, "only {} of {games} games were played to the end", round.games);
        settled(&arena)
    };
    // Growth is measured in the second half of the games, because caches fill in the first half.
    let first_half = play(games / 2)?;
    let second_half = play(games - games / 2)?;
    arena.terminate()?;

    eprintln!("{NAME}: {sessions} open sessions");
    let folder = ArenaFolder::new(&arguments.arena(), &arguments.work(), Some(KEEP_OPEN_SESSIONS))?;
    let arena = folder.start()?;
    let open = |sessions: u64| {
        player_pool.repeat(&arena, sessions, async |connection, _| {
            psi::create(connection, ServerKind::Arena).await.map(drop)
        })?;
        settled(&arena)
    };
    let warm = open(sessions / 20)?;
    let full = open(sessions)?;
    arena.terminate()?;

    let grown = |from: Usage, to: Usage, count: u64| (to.rss_kib as f64 - from.rss_kib as f64) / count as f64;
    report.row(NAME, "idle, after the start", mib(idle.rss_kib), "MiB").goal(Goal::AtMost(40.0)).note(format!(
        "{:.1} MiB anonymous; {} threads",
        mib(idle.anon_kib),
        idle.threads
    ));
    report.row(NAME, format!("after {games} games have ended"), mib(second_half.rss_kib), "MiB").note(format!(
        "{:.1} MiB anonymous; half-way {:.1} MiB",
        mib(second_half.anon_kib),
        mib(first_half.rss_kib)
    ));
    report
        .row(
            NAME,
            "growth per 1,000 ended games, second half",
            grown(first_half, second_half, games - games / 2) * 1e3,
            "KiB",
        )
        .goal(Goal::AtMost(FLAT_KIB_PER_THOUSAND))
        .note("the goal is 8 MiB after a million games");
    report.row(NAME, "growth per 1,000 ended games, since the start", grown(idle, second_half, games) * 1e3, "KiB");
    report
        .row(NAME, format!("per open session, {sessions} of them"), grown(warm, full, sessions), "KiB")
        .goal(Goal::AtMost(2.0))
        .note(format!("{:.1} MiB in total", mib(full.rss_kib)));
    report.row(NAME, "binary", binary as f64 / f64::from(1 << 20), "MiB").goal(Goal::AtMost(30.0));
    let readings = [idle, first_half, second_half, warm, full]
        .map(|usage| json!({ "rss_kib": usage.rss_kib, "anon_kib": usage.anon_kib }));
    report.detail(NAME, "idle, half of the games, all games, warm, full", json!(readings));
    Ok(())
}

fn mib(kib: u64) -> f64 {
    kib as f64 / 1024.0
}

/// Reads the usage after a pause of a second, in which connections close and memory is released.
fn settled(arena: &Server) -> anyhow::Result<Usage> {
    thread::sleep(Duration::from_secs(1));
    arena.usage()
}
