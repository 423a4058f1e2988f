//! What is measured of a node under load, and of what stores for it: not only games, but how often the journal was looked at, how
//! many batches were committed, and whose processors that took.

use std::time::Duration;

use anyhow::{Context as _, bail};
use arena_testkit::{NatsServer, Postgres};
use serde::{Deserialize, Serialize};

use crate::arguments::Arguments;
use crate::connection::Connection;
use crate::crew;
use crate::crowd::Until;
use crate::faults::Faults;
use crate::latency::LatencySummary;
use crate::psi::{self, Opposite};
use crate::scenarios::{nodes, paced};
use crate::server::{ArenaFolder, Server};
use crate::usage::Usage;

/// Reads that are measured alone.
const READS: u64 = 40_000;

/// Nodes, and what they share.
pub struct Subject<'a> {
    /// The nodes; connections take these in turn.
    pub nodes: Vec<&'a Server>,
    /// The database with their tables, unless the node stores by itself.
    pub database: Option<&'a Postgres>,
    /// By what they hear of each other, unless there is one alone.
    pub nats: Option<&'a NatsServer>,
}

/// What one measurement came to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Point {
    /// Connections that played, or read.
    pub connections: usize,
    /// How long they did.
    pub seconds: f64,
    /// Games that ended; none where only reads were measured.
    pub games: f64,
    /// Requests that were answered.
    pub requests: f64,
    /// Looks at the journal.
    pub looks: f64,
    /// Transactions that wrote.
    pub batches: f64,
    /// Syncs of the database's log.
    pub syncs: f64,
    /// How long they took, in microseconds.
    pub synced_us: f64,
    /// Processor time of the clients, in microseconds.
    pub client_us: f64,
    /// Of the nodes.
    pub node_us: f64,
    /// Of the database.
    pub database_us: f64,
    /// Of NATS.
    pub nats_us: f64,
}

impl Point {
    /// Games that ended per second.
    pub fn games_per_second(&self) -> f64 {
        self.games / self.seconds
    }

    /// How long a sync took; 0 if that isn't known.
    pub fn sync_us(&self) -> f64 {
        if self.syncs > 0.0 { self.synced_us / self.syncs } else { 0.0 }
    }
}

/// What games came to that began by themselves.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Paced {
    /// How many began each second.
    pub rate: f64,
    /// Half of the requests were answered within this time, in microseconds.
    pub p50_us: f64,
    /// 99 of 100 were.
    pub p99_us: f64,
    /// How long a sync took; 0 if that isn't known.
    pub sync_us: f64,
}

/// What has happened so far.
#[derive(Debug, Clone, Copy, Default)]
struct Counts {
    looks: f64,
    batches: f64,
    syncs: f64,
    synced_us: f64,
    database_us: f64,
    nats_us: f64,
}

impl Subject<'_> {
    fn counts(&self) -> anyhow::Result<Counts> {
        let mut counts = Counts::default();
        if let Some(postgres) = self.database {
            // Whoever writes gets a number, and the number of the next one is known.
            let sql = "SELECT pg_snapshot_xmax(pg_current_snapshot()), wal_sync, wal_sync_time * 1000 FROM pg_stat_wal";
            let row = postgres.run_sql(&postgres.url(""), sql);
            let numbers: Result<Vec<f64>, _> = row.trim().split('|').map(str::parse).collect();
            let numbers = numbers.context("what the database tells of itself isn't numbers")?;
            let [batches, syncs, synced_us] = numbers[..] else { bail!("the database tells something else of itself") };
            counts = Counts { batches, syncs, synced_us, ..counts };
            counts.database_us = Usage::cpu_of_family(postgres.pid())? as f64;
        }
        if let Some(nats) = self.nats {
            counts.nats_us = Usage::of(nats.pid())?.cpu_us as f64;
            for node in &self.nodes {
                counts.looks += looks(node)?;
            }
        }
        Ok(counts)
    }

    /// Plays games on so many connections, after some that aren't counted. Games that go wrong are told beside.
    ///
    /// # Errors
    /// If a node has ended.
    pub fn play(&self, arguments: &Arguments, connections: usize) -> anyhow::Result<(Point, Faults)> {
        let crowd = arguments.crowd(connections);
        let tables: Vec<Vec<&Server>> = self.nodes.iter().map(|node| vec![*node]).collect();
        let length: Duration = arguments.round()?;
        crowd.play_at(&tables, Opposite::Arena, Until::Elapsed(length / 5))?;
        let before = self.counts()?;
        let round = crowd.play_at(&tables, Opposite::Arena, Until::Elapsed(length))?;
        let after = self.counts()?;
        let point = Point {
            connections,
            seconds: round.spent.seconds,
            games: round.games as f64,
            requests: round.requests() as f64,
            looks: after.looks - before.looks,
            batches: after.batches - before.batches,
            syncs: after.syncs - before.syncs,
            synced_us: after.synced_us - before.synced_us,
            client_us: round.spent.client_cpu_us,
            node_us: round.spent.server_cpu_us,
            database_us: after.database_us - before.database_us,
            nats_us: after.nats_us - before.nats_us,
        };
        Ok((point, round.faults))
    }

    /// Games on the first node that begin by themselves, so many each second. Those that go wrong are told beside.
    ///
    /// # Errors
    /// If the node has ended.
    pub fn pace(&self, arguments: &Arguments, rate: u64) -> anyhow::Result<(Paced, Faults)> {
        let before = self.counts()?;
        let played = paced::play(arguments.crowd(256), self.nodes[0], Opposite::Arena, rate, 5 * rate)?;
        let after = self.counts()?;
        let LatencySummary { p50_us, p99_us, .. } = played.latencies.all().summary();
        let sync_us = (after.synced_us - before.synced_us) / (after.syncs - before.syncs).max(1.0);
        Ok((Paced { rate: rate as f64, p50_us, p99_us, sync_us }, played.faults))
    }

    /// Reads the end of a game again and again, on so many connections to the first node.
    ///
    /// # Errors
    /// If the node refuses.
    pub fn read(&self, arguments: &Arguments, connections: usize) -> anyhow::Result<Point> {
        let node = self.nodes[0];
        let address = node.address();
        let invited = crew::alone(async {
            let mut connection = Connection::open(address).await?;
            psi::begin(&mut connection, Opposite::Arena).await
        })?;
        let times = arguments.size(None, READS, READS / 10);
        let before = self.counts()?;
        let spent = arguments.crowd(connections).repeat(node, times, async move |connection, _| {
            psi::sync(connection, &invited.id, &invited.invites[0]).await.map(drop)
        })?;
        let after = self.counts()?;
        Ok(Point {
            connections,
            seconds: spent.seconds,
            requests: times as f64,
            looks: after.looks - before.looks,
            client_us: spent.client_cpu_us,
            node_us: spent.server_cpu_us,
            database_us: after.database_us - before.database_us,
            ..Point::default()
        })
    }
}

/// How often a node has looked at the journal.
fn looks(node: &Server) -> anyhow::Result<f64> {
    let address = node.address();
    let metrics = crew::alone(async { Connection::open(address).await?.get("/metrics").await?.ok("metrics") })?;
    let metrics = str::from_utf8(&metrics).context("the metrics aren't text")?;
    let line = metrics.lines().find_map(|line| line.strip_prefix("arena_journal_looks_total "));
    line.context("the metrics don't say how often the journal was looked at")?.trim().parse().context("looks")
}

/// Lets a database tell how long its disk takes.
pub fn watch_disk(postgres: &Postgres) {
    postgres.run_sql(&postgres.url(""), "ALTER SYSTEM SET track_wal_io_timing = on");
    postgres.run_sql(&postgres.url(""), "SELECT pg_reload_conf()");
}

/// Which share of a batch's work in the database is done in the order of the journal, where one node waits for the other: of the time
/// that all statements of the writer take, that of those that are behind it. Starts the database again, with its own account of them.
///
/// # Errors
/// If the node doesn't come up, or ends.
pub fn measure_order(
    arguments: &Arguments,
    postgres: &mut Postgres,
    nats: &NatsServer,
    folder: &ArenaFolder,
) -> anyhow::Result<f64> {
    let all = postgres.url("");
    postgres.run_sql(&all, "ALTER SYSTEM SET shared_preload_libraries = 'pg_stat_statements'");
    postgres.crash();
    postgres.start_again();
    postgres.run_sql(&all, "CREATE EXTENSION pg_stat_statements");
    let node = folder.start_with(&nodes::environment(&postgres.schema(), &nats.url()))?;
    let subject = Subject { nodes: vec![&node], database: Some(postgres), nats: Some(nats) };
    postgres.run_sql(&all, "SELECT pg_stat_statements_reset()");
    subject.play(arguments, 64)?;
    // Looks are no part of a batch.
    let sql =
        "SELECT sum(total_exec_time) FILTER (WHERE query ~ 'INSERT INTO (journal|endings|session_counts|totals)'),
            sum(total_exec_time) FROM pg_stat_statements WHERE query !~ 'AS once'";
    let row = postgres.run_sql(&all, sql);
    let times: Result<Vec<f64>, _> = row.trim().split('|').map(str::parse).collect();
    node.terminate()?;
    match times.context("the times of statements aren't numbers")?[..] {
        [ordered, all] if all > 0.0 => Ok(ordered / all),
        _ => bail!("the database doesn't tell what its statements took"),
    }
}
