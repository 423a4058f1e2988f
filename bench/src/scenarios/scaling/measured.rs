//! Measurements of nodes under load and of their database: games, journal reads, committed batches, and the processor
//! time of each process.

use std::time::Duration;

use anyhow::{Context as _, bail};
use arena_testkit::{NatsServer, Postgres};
use serde::{Deserialize, Serialize};

use crate::arguments::Arguments;
use crate::client_pool;
use crate::connection::Connection;
use crate::faults::Faults;
use crate::latency::LatencySummary;
use crate::player_pool::Until;
use crate::psi::{self, ServerKind};
use crate::scenarios::{nodes, paced};
use crate::server::{ArenaFolder, Server};
use crate::usage::Usage;

/// The number of reads that are measured alone.
const READS: u64 = 40_000;

/// A configuration: nodes, and the servers that they share.
pub struct Subject<'a> {
    /// The nodes, which connections take in turn.
    pub nodes: Vec<&'a Server>,
    /// The nodes' database; `None` for SQLite.
    pub database: Option<&'a Postgres>,
    /// The NATS server between the nodes; `None` if the configuration has no NATS.
    pub nats: Option<&'a NatsServer>,
}

/// The results of one measurement.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Point {
    /// The number of connections that played or read.
    pub connections: usize,
    /// The duration in seconds.
    pub seconds: f64,
    /// The number of finished games; 0 if only reads were measured.
    pub games: f64,
    /// The number of answered requests.
    pub requests: f64,
    /// The number of journal reads.
    #[serde(rename = "looks")]
    pub journal_reads: f64,
    /// The number of transactions that wrote.
    pub batches: f64,
    /// The number of syncs of the database's write-ahead log.
    pub syncs: f64,
    /// The total time of the syncs, in microseconds.
    pub synced_us: f64,
    /// The processor time of the clients, in microseconds.
    pub client_us: f64,
    /// The processor time of the nodes, in microseconds.
    pub node_us: f64,
    /// The processor time of the database, in microseconds.
    pub database_us: f64,
    /// The processor time of NATS, in microseconds.
    pub nats_us: f64,
}

impl Point {
    pub fn games_per_second(&self) -> f64 {
        self.games / self.seconds
    }

    /// Returns the mean time of a sync in microseconds, or 0 if it wasn't measured.
    pub fn sync_us(&self) -> f64 {
        if self.syncs > 0.0 { self.synced_us / self.syncs } else { 0.0 }
    }
}

/// The results of games at a fixed rate.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct PacedPoint {
    /// The number of started games per second.
    pub rate: f64,
    /// The median latency of requests, in microseconds.
    pub p50_us: f64,
    /// The 99th percentile of the latencies, in microseconds.
    pub p99_us: f64,
    /// The mean time of a sync in microseconds, or 0 if it wasn't measured.
    pub sync_us: f64,
}

/// The counters at a moment.
#[derive(Debug, Clone, Copy, Default)]
struct Counts {
    journal_reads: f64,
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
            // Every transaction that writes gets the next number, so differences of this number count the batches.
            let sql = "SELECT pg_snapshot_xmax(pg_current_snapshot()), wal_sync, wal_sync_time * 1000 FROM pg_stat_wal";
            let row = postgres.run_sql(&postgres.url(""), sql);
            let numbers: Result<Vec<f64>, _> = row.trim().split('|').map(str::parse).collect();
            let numbers = numbers.context("the database's statistics aren't numbers")?;
            let [batches, syncs, synced_us] = numbers[..] else {
                bail!("the database's statistics have an unexpected format")
            };
            counts = Counts { batches, syncs, synced_us, ..counts };
            counts.database_us = Usage::cpu_of_family(postgres.pid())? as f64;
        }
        if let Some(nats) = self.nats {
            counts.nats_us = Usage::of(nats.pid())?.cpu_us as f64;
            for node in &self.nodes {
                counts.journal_reads += journal_reads(node)?;
            }
        }
        Ok(counts)
    }

    /// Plays games on this number of connections, after a warm-up. Returns the measurement, and the failed games.
    ///
    /// # Errors
    /// If a node has ended.
    pub fn play(&self, arguments: &Arguments, connections: usize) -> anyhow::Result<(Point, Faults)> {
        let player_pool = arguments.player_pool(connections);
        let tables: Vec<Vec<&Server>> = self.nodes.iter().map(|node| vec![*node]).collect();
        let length: Duration = arguments.round()?;
        player_pool.play_at(&tables, ServerKind::Arena, Until::Elapsed(length / 5))?;
        let before = self.counts()?;
        let round = player_pool.play_at(&tables, ServerKind::Arena, Until::Elapsed(length))?;
        let after = self.counts()?;
        let point = Point {
            connections,
            seconds: round.spent.seconds,
            games: round.games as f64,
            requests: round.requests() as f64,
            journal_reads: after.journal_reads - before.journal_reads,
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

    /// Plays games on the first node at a fixed rate. Returns the measurement, and the failed games.
    ///
    /// # Errors
    /// If the node has ended.
    pub fn pace(&self, arguments: &Arguments, rate: u64) -> anyhow::Result<(PacedPoint, Faults)> {
        let before = self.counts()?;
        let played = paced::play(arguments.player_pool(256), self.nodes[0], ServerKind::Arena, rate, 5 * rate)?;
        let after = self.counts()?;
        let LatencySummary { p50_us, p99_us, .. } = played.latencies.all().summary();
        let sync_us = (after.synced_us - before.synced_us) / (after.syncs - before.syncs).max(1.0);
        Ok((PacedPoint { rate: rate as f64, p50_us, p99_us, sync_us }, played.faults))
    }

    /// Reads the operator's channel of a game repeatedly, on this number of connections to the first node.
    ///
    /// # Errors
    /// If the node refuses.
    pub fn read(&self, arguments: &Arguments, connections: usize) -> anyhow::Result<Point> {
        let node = self.nodes[0];
        let address = node.address();
        let invited = client_pool::alone(async {
            let mut connection = Connection::open(address).await?;
            psi::begin(&mut connection, ServerKind::Arena).await
        })?;
        let times = arguments.size(None, READS, READS / 10);
        let before = self.counts()?;
        let spent = arguments.player_pool(connections).repeat(node, times, async move |connection, _| {
            psi::sync(connection, &invited.id, &invited.invites[0]).await.map(drop)
        })?;
        let after = self.counts()?;
        Ok(Point {
            connections,
            seconds: spent.seconds,
            requests: times as f64,
            journal_reads: after.journal_reads - before.journal_reads,
            client_us: spent.client_cpu_us,
            node_us: spent.server_cpu_us,
            database_us: after.database_us - before.database_us,
            ..Point::default()
        })
    }
}

/// Returns the number of a node's journal reads.
fn journal_reads(node: &Server) -> anyhow::Result<f64> {
    let address = node.address();
    let metrics = client_pool::alone(async { Connection::open(address).await?.get("/metrics").await?.ok("metrics") })?;
    let metrics = str::from_utf8(&metrics).context("the metrics aren't text")?;
    let line = metrics.lines().find_map(|line| line.strip_prefix("arena_journal_looks_total "));
    line.context("the metrics lack the number of journal reads")?.trim().parse().context("journal reads")
}

/// Configures a database to measure the time of its syncs.
pub fn watch_disk(postgres: &Postgres) {
    postgres.run_sql(&postgres.url(""), "ALTER SYSTEM SET track_wal_io_timing = on");
    postgres.run_sql(&postgres.url(""), "SELECT pg_reload_conf()");
}

/// Measures the serial part of a batch, in which the writers of other nodes wait: the time of the statements after the
/// lock, as a share of the time of all statements of the writer. Restarts the database with statement statistics.
///
/// # Errors
/// If the node doesn't start, or ends.
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
    // The statement of journal reads is excluded, because it isn't part of a batch.
    let sql =
        "SELECT sum(total_exec_time) FILTER (WHERE query ~ 'INSERT INTO (journal|endings|session_counts|totals)'),
            sum(total_exec_time) FROM pg_stat_statements WHERE query !~ 'AS once'";
    let row = postgres.run_sql(&all, sql);
    let times: Result<Vec<f64>, _> = row.trim().split('|').map(str::parse).collect();
    node.terminate()?;
    match times.context("the times of statements aren't numbers")?[..] {
        [ordered, all] if all > 0.0 => Ok(ordered / all),
        _ => bail!("the database has no times of statements"),
    }
}
