//! List pages of a store with many sessions, at the start, the middle and the end, with and without filters; and the
//! start time of a server on that store, after a graceful stop and after SIGKILL.

use std::time::{Duration, Instant};

use anyhow::{Context as _, bail, ensure};
use serde::Deserialize;
use serde_json::json;

use crate::arguments::Arguments;
use crate::client_pool;
use crate::connection::Connection;
use crate::latency::{Latencies, LatencySummary, median};
use crate::player_pool::{PlayerPool, Until};
use crate::psi::{self, Invited, ServerKind};
use crate::report::{Goal, Report};
use crate::server::{ArenaFolder, KEEP_OPEN_SESSIONS, Server};

const NAME: &str = "lists";

/// The number of connections that fill the store.
const FILLERS: usize = 128;

const PAGE: u64 = 50;

/// The largest number of requests for one page, and the largest time.
const REQUESTS: u64 = 1_000;
const TIME: Duration = Duration::from_secs(2);

/// The time limit from the start of a process to its first answer.
const START_LIMIT: Duration = Duration::from_secs(60);

/// The pages that are requested at several offsets.
const LISTS: &[&str] = &[
    "/api/v1/challenges",
    "/api/v1/challenges?status=open",
    "/api/v1/challenges?status=active",
    "/api/v1/challenges?status=ended",
    "/api/v1/challenges/psi",
    "/api/v1/challenges/psi?status=ended",
];

/// The pages without an offset.
const PAGES: &[&str] = &["/api/v1/stats"];

/// Options of this scenario.
#[derive(Debug, clap::Args)]
#[group(skip)]
#[command(next_help_heading = "lists")]
pub struct ListsOptions {
    /// Number of sessions in the store [default: 1000000; 20000 if quick]
    #[arg(long, value_name = "N")]
    sessions: Option<u64>,
    /// Share of ended sessions; 1 % are active, the rest are open
    #[arg(long, value_name = "0..0.9", default_value_t = 0.1)]
    ended_share: f64,
}

/// Runs the scenario.
///
/// # Errors
/// If the server doesn't start, refuses, or answers with a wrong page.
pub fn run(arguments: &Arguments, report: &mut Report) -> anyhow::Result<()> {
    let sessions = arguments.size(arguments.lists.sessions, 1_000_000, 20_000);
    let share = arguments.lists.ended_share;
    ensure!((0.0..=0.9).contains(&share), "--ended-share {share} is not between 0 and 0.9");
    let ended = (sessions as f64 * share) as u64;
    let active = sessions / 100;
    let open = sessions - ended - active;

    let folder = ArenaFolder::new(&arguments.arena(), &arguments.work(), Some(KEEP_OPEN_SESSIONS))?;
    let arena = folder.start()?;
    let empty_start = first_answer(&arena)?;
    let fillers = arguments.player_pool(FILLERS);
    let filling = Instant::now();
    eprintln!("lists: creating {open} open sessions, playing {ended} games, starting {active} games");
    // Half of the open sessions are created before the other sessions, and half after them, so that the store isn't
    // sorted by status.
    create(fillers, &arena, open / 2)?;
    let round = fillers.play(&arena, ServerKind::Arena, Until::Games(ended))?;
    report.faults("lists, games while filling", &round.faults);
    ensure!(round.games == ended, "only {} of {ended} games were played to the end", round.games);
    fillers.repeat(&arena, active, async |connection, _| {
        let Invited { invites, .. } = psi::create(connection, ServerKind::Arena).await?;
        for invite in &invites {
            psi::join(connection, invite).await?;
        }
        Ok(())
    })?;
    create(fillers, &arena, open - open / 2)?;
    report
        .row(
            NAME,
            format!("sessions/s while filling with {sessions}"),
            sessions as f64 / filling.elapsed().as_secs_f64(),
            "",
        )
        .note(format!("{ended} played to the end, {active} active; {} MiB on disk", folder.size()? >> 20));
    report.row(NAME, "server memory, full store", arena.usage()?.rss_kib as f64 / 1024.0, "MiB");

    let expected = Expected { all: sessions, open, active, ended };
    measure_pages(report, &arena, expected)?;
    report.row(NAME, "start to first answer, empty store", ms(empty_start), "ms");
    measure_starts(arguments, report, &folder, arena, sessions)
}

/// Measures the starts of the server on a full store, and its ends.
fn measure_starts(
    arguments: &Arguments,
    report: &mut Report,
    folder: &ArenaFolder,
    mut server: Server,
    sessions: u64,
) -> anyhow::Result<()> {
    eprintln!("lists: restarting");
    let (mut orderly, mut stops, mut killed) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..arguments.rounds() {
        stops.push(ms(server.terminate()?));
        server = folder.start()?;
        orderly.push(ms(first_answer(&server)?));
    }
    for _ in 0..arguments.rounds() {
        // The load leaves data that the server must recover at its next start.
        arguments.player_pool(64).play(&server, ServerKind::Arena, Until::Elapsed(arguments.round()? / 3))?;
        server.kill()?;
        server = folder.start()?;
        killed.push(ms(first_answer(&server)?));
    }
    let note = "pages of the store are still in the system's cache";
    report
        .row(NAME, format!("start to first answer, {sessions} sessions"), median(orderly.iter().copied()), "ms")
        .goal(Goal::AtMost(100.0))
        .note(note);
    report
        .row(NAME, "the same after SIGKILL under load", median(killed.iter().copied()), "ms")
        .goal(Goal::AtMost(100.0))
        .note(note);
    report.row(NAME, "SIGTERM to end", median(stops.iter().copied()), "ms");
    report.row(NAME, "server memory after a start, full store", server.usage()?.rss_kib as f64 / 1024.0, "MiB");
    report.detail(NAME, "starts_ms", json!({ "orderly": orderly, "killed": killed, "stops": stops }));
    server.terminate()?;
    Ok(())
}

fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

fn create(fillers: PlayerPool, arena: &Server, sessions: u64) -> anyhow::Result<()> {
    fillers
        .repeat(arena, sessions, async |connection, _| psi::create(connection, ServerKind::Arena).await.map(drop))?;
    Ok(())
}

/// Returns the time from the start of the process to its first status 200.
fn first_answer(server: &Server) -> anyhow::Result<Duration> {
    client_pool::alone(async {
        loop {
            let answer =
                async { Connection::open(server.address()).await?.get("/api/v1/metadata").await?.ok("metadata") };
            match answer.await {
                Ok(_) => return Ok(server.spawned().elapsed()),
                Err(err) if server.spawned().elapsed() > START_LIMIT => return Err(err),
                Err(_) => tokio::time::sleep(Duration::from_millis(1)).await,
            }
        }
    })
}

/// The number of sessions by status.
#[derive(Clone, Copy)]
struct Expected {
    all: u64,
    open: u64,
    active: u64,
    ended: u64,
}

impl Expected {
    fn on(self, list: &str) -> u64 {
        match list.split_once("status=").map(|(_, status)| status) {
            None => self.all,
            Some("open") => self.open,
            Some("active") => self.active,
            Some(_) => self.ended,
        }
    }
}

fn measure_pages(report: &mut Report, arena: &Server, expected: Expected) -> anyhow::Result<()> {
    client_pool::alone(async {
        let mut connection = Connection::open(arena.address()).await?;
        let mut worst = None::<LatencySummary>;
        let mut measured = |report: &mut Report, page: String, summary: LatencySummary| {
            report.row(NAME, format!("{page}, p50"), summary.p50_us / 1e3, "ms").goal(Goal::AtMost(1.0)).note(format!(
                "p99 {:.2} ms, max {:.2} ms, n = {}",
                summary.p99_us / 1e3,
                summary.max_us / 1e3,
                summary.count
            ));
            report.detail(NAME, page, json!(summary));
            if worst.is_none_or(|worst| worst.p99_us < summary.p99_us) {
                worst = Some(summary);
            }
        };
        for &list in LISTS {
            let total = expected.on(list);
            let last = total.saturating_sub(PAGE);
            // In a list of one page, all offsets are equal.
            let mut offsets = vec![0, last / 2, last];
            offsets.dedup();
            for offset in offsets {
                let joint = if list.contains('?') { '&' } else { '?' };
                let target = format!("{list}{joint}limit={PAGE}&offset={offset}");
                check_page(&mut connection, &target, total, offset).await?;
                let summary = ask(&mut connection, &target).await?;
                measured(report, format!("{list}, offset {offset}"), summary);
            }
        }
        for &page in PAGES {
            let summary = ask(&mut connection, page).await?;
            measured(report, page.to_owned(), summary);
        }
        let worst = worst.context("no page was measured")?;
        report.row(NAME, "worst p99 of all pages", worst.p99_us / 1e3, "ms").goal(Goal::AtMost(10.0));
        Ok(())
    })
}

async fn check_page(connection: &mut Connection, target: &str, total: u64, offset: u64) -> anyhow::Result<()> {
    #[derive(Deserialize)]
    struct Page {
        challenges: Vec<serde::de::IgnoredAny>,
        total: u64,
    }
    let body = connection.get(target).await?.ok(target)?;
    let page: Page = serde_json::from_slice(&body).with_context(|| format!("{target} isn't a page of sessions"))?;
    if page.total != total {
        bail!("{target} reports a total of {} sessions instead of {total}", page.total);
    }
    let wanted = PAGE.min(total.saturating_sub(offset));
    ensure!(
        page.challenges.len() as u64 == wanted,
        "{target} has {} sessions instead of {wanted}",
        page.challenges.len()
    );
    Ok(())
}

/// Requests the same page repeatedly, and returns the latencies.
async fn ask(connection: &mut Connection, target: &str) -> anyhow::Result<LatencySummary> {
    let mut latencies = Latencies::default();
    let start = Instant::now();
    for _ in 0..REQUESTS {
        let sent = Instant::now();
        let answer = connection.get(target).await?;
        latencies.record(sent.elapsed());
        answer.ok(target)?;
        if start.elapsed() > TIME {
            break;
        }
    }
    Ok(latencies.summary())
}
