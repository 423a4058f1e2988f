//! The costs of a node and a database, fitted to measurements on this machine. A simulation with these costs is
//! compared with measurements, including some that were not fitted, and predicts clusters that are larger than one
//! machine. `docs/scaling.md` explains the results.

mod fit;
mod measured;

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, ensure};
use arena_testkit::{NatsServer, Postgres};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use self::fit::{Cost, FitPoint, PerGame, fit};
use self::measured::{PacedPoint, Point, Subject, measure_order};
use crate::arguments::Arguments;
use crate::latency::median;
use crate::machine::Machine;
use crate::report::Report;
use crate::server::{ArenaFolder, check_binary};
use crate::simulation::{Costs, Layout, Load, Plan, READS, SimulationResult, Store, WRITES, simulate};

const NAME: &str = "scaling";

/// The numbers of connections for the measurements that costs are fitted to.
const FITTED: [usize; 5] = [1, 4, 16, 64, 256];

/// The numbers of connections for the measurements that test the fitted costs.
const PREDICTED: [usize; 3] = [8, 32, 128];

/// The number of connections for the measurement of reads. It is so high that many reads share a journal read.
const READING: usize = 64;

/// The numbers of simulated games: for each step of the fit, and for the results.
const GAMES: [u64; 2] = [500, 20_000];

/// The numbers of nodes of a cluster.
const NODES: [usize; 11] = [2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64];

/// The numbers of cores of each node of a cluster, and of its database.
const NODE_CORES: usize = 4;
const DATABASE_CORES: [usize; 5] = [4, 8, 16, 32, 64];

/// A number of nodes that is so high that nodes are not the bottleneck.
const MANY: usize = 16;

/// The times of a disk to make a batch durable, in microseconds.
const SYNCS: [f64; 3] = [100.0, 500.0, 2_000.0];

/// The time of a message between two machines of one data center, in microseconds.
const WAY: f64 = 125.0;

/// The target rate of a cluster: sessions per second, each a game that is played to its end.
const WANTED: f64 = 10_000.0;

/// The target p99 of a cluster's requests, in milliseconds.
const IN_TIME: f64 = 20.0;

/// The costs from which the fit starts. The fit needs nonzero values.
const START: Costs = Costs {
    client: 15.0,
    read: 15.0,
    write: 30.0,
    journal_read: 30.0,
    journal_read_stored: 30.0,
    batch: 60.0,
    batch_stored: 150.0,
    commit: 20.0,
    event: 20.0,
    flush: 100.0,
    wake: 20.0,
    switch: 10.0,
};

/// Options of this scenario.
#[derive(Debug, clap::Args)]
#[group(skip)]
#[command(next_help_heading = "scaling")]
pub struct ScalingOptions {
    /// JSON report of an earlier run; its measurements are fitted, and nothing is measured
    #[arg(long, value_name = "FILE")]
    scaling_from: Option<PathBuf>,
}

/// All measurements.
#[derive(Debug, Serialize, Deserialize)]
struct ScalingMeasurements {
    cores: usize,
    /// The serial part of a batch: its share of the batch's work in the database.
    ordered: f64,
    subjects: Vec<Measurements>,
}

/// The measurements of one configuration of nodes and store.
#[derive(Debug, Serialize, Deserialize)]
struct Measurements {
    what: String,
    nodes: usize,
    /// The name of the fitted costs. Configurations with the same name share their costs.
    costs: String,
    /// Measurements of reads only.
    reads: Vec<Point>,
    /// Measurements of games, one per round and number of connections.
    games: Vec<Point>,
    /// The measurement of games at half of the maximal rate. Measured for single nodes only.
    paced: Option<PacedPoint>,
}

/// Measures, fits and predicts.
///
/// # Errors
/// If a server doesn't start or ends, or the given report can't be read.
pub fn run(arguments: &Arguments, report: &mut Report) -> anyhow::Result<()> {
    let measured = match &arguments.scaling.scaling_from {
        Some(path) => read(path)?,
        None => measure(arguments, report)?,
    };
    let mut names: Vec<&str> = measured.subjects.iter().map(|subject| subject.costs.as_str()).collect();
    names.dedup();
    let mut fitted = serde_json::Map::new();
    for name in names {
        eprintln!("scaling: fitting {name}");
        let subjects: Vec<&Measurements> = measured.subjects.iter().filter(|subject| subject.costs == name).collect();
        let costs = measured.fitted(&subjects);
        fitted.insert(name.to_owned(), json!(costs));
        tell_costs(report, name, &costs, subjects[0].store());
        for subject in &subjects {
            measured.compare(report, subject, costs);
        }
        if let Some(shared) = subjects.iter().find(|subject| subject.store() == Store::Shared) {
            let plan = measured.plan(shared, costs);
            report.row(
                NAME,
                format!("{name}: writes that read the journal first"),
                plan.writes_read_journal * 100.0,
                "%",
            );
            report.row(NAME, format!("{name}: serial part of a batch"), plan.ordered * 100.0, "%");
            foretell(report, &plan);
        }
    }
    report.detail(NAME, "measured", json!(measured));
    report.detail(NAME, "costs", Value::Object(fitted));
    Ok(())
}

/// Reads the measurements of an earlier run.
fn read(path: &Path) -> anyhow::Result<ScalingMeasurements> {
    let text = fs::read_to_string(path).with_context(|| format!("could not read {}", path.display()))?;
    let mut whole: Value =
        serde_json::from_str(&text).with_context(|| format!("{} is not a report of arena-bench", path.display()))?;
    let measured = whole["details"][NAME]["measured"].take();
    ensure!(!measured.is_null(), "{} contains no measurements of this scenario", path.display());
    serde_json::from_value(measured)
        .with_context(|| format!("the measurements in {} have another format", path.display()))
}

fn measure(arguments: &Arguments, report: &mut Report) -> anyhow::Result<ScalingMeasurements> {
    let machine = Machine::detect(&arguments.work())?;
    check_binary(&arguments.arena())?;
    let (mut postgres, nats) = (Postgres::start(), NatsServer::start());
    measured::watch_disk(&postgres);
    let folder = || ArenaFolder::new(&arguments.arena(), &arguments.work(), None);
    let folders = [folder()?, folder()?, folder()?, folder()?, folder()?];
    let shared = || super::nodes::environment(&postgres.schema(), &nats.url());
    let embedded = folders[0].start()?;
    let only = folders[1].start_with(&[("DATABASE_URL", postgres.schema())])?;
    let one = folders[2].start_with(&shared())?;
    let both = shared();
    let two = [folders[3].start_with(&both)?, folders[4].start_with(&both)?];
    let subjects = [
        ("SQLite", "SQLite", Subject { nodes: vec![&embedded], database: None, nats: None }),
        (
            "Postgres, the only node",
            "Postgres alone",
            Subject { nodes: vec![&only], database: Some(&postgres), nats: None },
        ),
        (
            "Postgres, one node of several",
            "Postgres shared",
            Subject { nodes: vec![&one], database: Some(&postgres), nats: Some(&nats) },
        ),
        (
            "Postgres, two nodes",
            "Postgres shared",
            Subject { nodes: two.iter().collect(), database: Some(&postgres), nats: Some(&nats) },
        ),
    ];
    let empty = |(what, costs, subject): &(&str, &str, Subject<'_>)| Measurements {
        what: (*what).to_owned(),
        nodes: subject.nodes.len(),
        costs: (*costs).to_owned(),
        reads: Vec::new(),
        games: Vec::new(),
        paced: None,
    };
    let mut all: Vec<Measurements> = subjects.iter().map(empty).collect();
    let rounds = arguments.rounds();
    for round in 1..=rounds {
        for ((what, _, subject), measurements) in subjects.iter().zip(&mut all) {
            eprintln!("scaling: {what}, reads, round {round} of {rounds}");
            measurements.reads.push(subject.read(arguments, READING)?);
        }
        for connections in FITTED.into_iter().chain(PREDICTED) {
            // The configurations take turns, so that the state of the machine is the same for all.
            for ((what, _, subject), measurements) in subjects.iter().zip(&mut all) {
                eprintln!("scaling: {what}, {}, round {round} of {rounds}", on(connections));
                let (point, faults) = subject.play(arguments, connections)?;
                report.faults(format!("scaling, {what}, {}", on(connections)), &faults);
                measurements.games.push(point);
            }
        }
    }
    for ((what, _, subject), measurements) in subjects.iter().zip(&mut all).filter(|(_, all)| all.nodes == 1) {
        let most = FITTED.into_iter().map(|connections| measurements.at(connections).games_per_second());
        let rate = (most.fold(0.0, f64::max) / 2.0).round().max(1.0) as u64;
        eprintln!("scaling: {what}, {rate} games/s");
        let (paced, faults) = subject.pace(arguments, rate)?;
        report.faults(format!("scaling, {what}, {rate} games/s"), &faults);
        measurements.paced = Some(paced);
    }
    for server in two.into_iter().chain([one, only, embedded]) {
        server.terminate()?;
    }
    eprintln!("scaling: the serial part of a batch");
    let ordered = measure_order(arguments, &mut postgres, &nats, &folder()?)?;
    Ok(ScalingMeasurements { cores: machine.cores, ordered, subjects: all })
}

impl Measurements {
    /// Returns the median round with this number of connections.
    fn at(&self, connections: usize) -> Point {
        let mut rounds: Vec<Point> =
            self.games.iter().copied().filter(|point| point.connections == connections).collect();
        rounds.sort_unstable_by(|one, other| one.games_per_second().total_cmp(&other.games_per_second()));
        rounds.get(rounds.len() / 2).copied().unwrap_or_default()
    }

    fn store(&self) -> Store {
        let stores = self.games.iter().any(|point| point.batches > 0.0);
        let journal_reads = self.games.iter().any(|point| point.journal_reads > 0.0);
        match (stores, journal_reads) {
            (false, _) => Store::Inside,
            (true, false) => Store::Own,
            (true, true) => Store::Shared,
        }
    }
}

impl ScalingMeasurements {
    /// Returns the plan of a configuration with these costs and one player.
    fn plan(&self, subject: &Measurements, costs: Costs) -> Plan {
        Plan {
            costs,
            store: subject.store(),
            writes_read_journal: self.writes_read_journal(),
            ordered: self.ordered,
            layout: Layout::OneMachine { cores: self.cores, nodes: subject.nodes },
            load: Load::Closed(1),
        }
    }

    /// Returns the share of writes that read the journal first. With one player, each read request reads the journal
    /// once, so the other journal reads are those of writes.
    fn writes_read_journal(&self) -> f64 {
        let alone = self.subjects.iter().find(|subject| subject.nodes == 1 && subject.store() == Store::Shared);
        let alone = alone.map(|subject| subject.at(1)).unwrap_or_default();
        let share = (alone.journal_reads / alone.games.max(1.0) - READS) / WRITES;
        // The share is rounded, because the node also reads the journal once a second without a request.
        (share.clamp(0.0, 1.0) * 10.0).round() / 10.0
    }

    /// Returns the measurement with this number of connections, and its plan.
    fn seen(&self, subject: &Measurements, costs: Costs, connections: usize) -> FitPoint {
        let point = subject.at(connections);
        // The time of the disk is that of this measurement, because the speed of a shared disk varies.
        let plan = self.plan(subject, Costs { flush: point.sync_us(), ..costs });
        let each = |all: f64| all / point.games.max(1.0);
        FitPoint {
            plan: Plan { load: Load::Closed(connections), ..plan },
            games_per_second: point.games_per_second(),
            per_game: PerGame {
                journal_reads: each(point.journal_reads),
                batches: each(point.batches),
                worked_us: [point.client_us, point.node_us, point.database_us, point.nats_us].map(each),
            },
        }
    }

    /// Fits the costs that these configurations share.
    fn fitted(&self, subjects: &[&Measurements]) -> Costs {
        let of_reads = |value: fn(&Point) -> f64| {
            median(subjects.iter().flat_map(|subject| &subject.reads).map(|point| value(point) / point.requests))
        };
        let points = subjects.iter().flat_map(|subject| FITTED.map(|connections| subject.at(connections)));
        let syncs: Vec<f64> = points.map(|point| point.sync_us()).filter(|us| *us > 0.0).collect();
        let flush = if syncs.is_empty() { START.flush } else { median(syncs) };
        let start =
            Costs { client: of_reads(|read| read.client_us), read: of_reads(|read| read.node_us), flush, ..START };
        let mut free: Vec<Cost> = vec![
            |costs| &mut costs.write,
            |costs| &mut costs.batch_stored,
            |costs| &mut costs.commit,
            |costs| &mut costs.wake,
            |costs| &mut costs.switch,
        ];
        let stores: Vec<Store> = subjects.iter().map(|subject| subject.store()).collect();
        if stores.contains(&Store::Inside) {
            free.push(|costs| &mut costs.flush);
        } else {
            free.push(|costs| &mut costs.batch);
        }
        if stores.contains(&Store::Shared) {
            let more: [Cost; 3] =
                [|costs| &mut costs.journal_read, |costs| &mut costs.journal_read_stored, |costs| &mut costs.event];
            free.extend(more);
        }
        let seen: Vec<FitPoint> = subjects
            .iter()
            .flat_map(|subject| FITTED.map(|connections| self.seen(subject, start, connections)))
            .collect();
        fit(&seen, start, &free, GAMES[0])
    }

    /// Simulates the measurements of a configuration, and reports the deviations.
    fn compare(&self, report: &mut Report, subject: &Measurements, costs: Costs) {
        let what = &subject.what;
        let kinds = [("", &FITTED[..]), (", not fitted", &PREDICTED[..])];
        for (fitted, connections) in kinds.into_iter().flat_map(|(kind, all)| all.iter().map(move |one| (kind, *one))) {
            let seen = self.seen(subject, costs, connections);
            let predicted = seen.simulated(costs, GAMES[1]);
            let PerGame { journal_reads, batches, worked_us: [_, nodes, database, _] } = seen.per_game;
            let of_game = [
                ("µs of the nodes", 0, predicted.node_us, nodes),
                ("µs of the database", 0, predicted.database_us, database),
                ("journal reads", 2, predicted.journal_reads, journal_reads),
                ("batches", 2, predicted.batches, batches),
            ];
            // A value is 0 if it doesn't exist in this configuration or isn't counted.
            let of_game = of_game.into_iter().filter(|(.., seen)| *seen > 0.0);
            let of_game: Vec<String> = of_game
                .map(|(what, digits, predicted, seen)| format!("{predicted:.digits$} {what} ({seen:.digits$})"))
                .collect();
            report
                .row(
                    NAME,
                    format!("{what}, {}{fitted}: games/s, simulated", on(connections)),
                    predicted.games_per_second,
                    "",
                )
                .note(format!(
                    "measured {:.0}: {}; simulated (measured) per game: {}",
                    seen.games_per_second,
                    percent(predicted.games_per_second, seen.games_per_second),
                    of_game.join(", ")
                ));
        }
        if let Some(PacedPoint { rate, p50_us, p99_us, sync_us }) = subject.paced {
            let flush = if sync_us > 0.0 { sync_us } else { costs.flush };
            let plan = Plan { load: Load::Open(rate), ..self.plan(subject, Costs { flush, ..costs }) };
            let predicted = simulate(plan, GAMES[1]);
            report
                .row(
                    NAME,
                    format!("{what}, {rate} games/s, not fitted: p50, simulated"),
                    predicted.latency.p50_us / 1e3,
                    "ms",
                )
                .note(format!(
                    "measured {:.2} ms: {}; p99 {:.1} ms, measured {:.1}",
                    p50_us / 1e3,
                    percent(predicted.latency.p50_us, p50_us),
                    predicted.latency.p99_us / 1e3,
                    p99_us / 1e3
                ));
        }
    }
}

fn on(connections: usize) -> String {
    format!("{connections} connection{}", if connections == 1 { "" } else { "s" })
}

/// Returns the deviation of a prediction from a measurement.
fn percent(predicted: f64, seen: f64) -> String {
    format!("{:+.0} %", (predicted / seen - 1.0) * 100.0)
}

fn tell_costs(report: &mut Report, name: &str, costs: &Costs, store: Store) {
    let mut tell = |what: &str, value: f64| {
        report.row(NAME, format!("{name}: {what}"), value, "µs");
    };
    tell("client, per request", costs.client);
    tell("node, per read", costs.read);
    tell("node, per write", costs.write);
    tell("stored, per batch", costs.batch_stored);
    tell("stored, per commit", costs.commit);
    if store != Store::Inside {
        tell("node, per batch", costs.batch);
    }
    if store == Store::Shared {
        tell("node, per journal read", costs.journal_read);
        tell("database, per journal read", costs.journal_read_stored);
        tell("NATS, per batch", costs.event);
    }
    tell("disk, per batch", costs.flush);
    tell("an idle core, until it works", costs.wake);
    tell("a thread that has slept, in addition", costs.switch);
}

/// Predicts the throughput of clusters of nodes with 4 cores and a database with an increasing number of cores. The
/// cores are as fast as this machine's. The times of the disk are assumed, because operators choose the database's
/// disk.
fn foretell(report: &mut Report, plan: &Plan) {
    let sync_us = SYNCS[0];
    for database_cores in DATABASE_CORES {
        eprintln!("scaling: {WANTED} games/s, database with {database_cores} cores");
        let of = |nodes: usize, load: Load| {
            let layout = Layout::Apart { nodes, node_cores: NODE_CORES, database_cores, way: WAY };
            let costs = Costs { flush: sync_us, ..plan.costs };
            simulate(Plan { costs, layout, load, ..*plan }, GAMES[1])
        };
        let enough = NODES.into_iter().find_map(|nodes| {
            let predicted = of(nodes, Load::Open(WANTED));
            let in_time = predicted.latency.p99_us / 1e3 <= IN_TIME && predicted.games_per_second > 0.98 * WANTED;
            in_time.then_some((nodes, predicted))
        });
        let what = format!(
            "{WANTED} games/s, database with {database_cores} cores, a sync of {sync_us} µs: nodes of {NODE_CORES} cores"
        );
        match enough {
            Some((nodes, predicted)) => report.row(NAME, what, nodes as f64, "").note(describe(&predicted)),
            None => {
                let predicted = of(MANY, Load::Closed(4_096));
                let note = format!(
                    "not reached with any number of nodes: {MANY} nodes play {:.0} games/s; {}",
                    predicted.games_per_second,
                    describe(&predicted)
                );
                report.row(NAME, what, 0.0, "").note(note)
            }
        };
    }
    // The maximal throughput with enough cores, by the speed of the disk.
    for flush in SYNCS {
        let costs = Costs { flush, ..plan.costs };
        let layout = Layout::Apart { nodes: MANY, node_cores: NODE_CORES, database_cores: 64, way: WAY };
        let predicted = simulate(Plan { costs, layout, load: Load::Closed(4_096), ..*plan }, 2 * GAMES[1]);
        let what = format!("{MANY} nodes, database with 64 cores, 4096 connections, a sync of {flush} µs: games/s");
        report.row(NAME, what, predicted.games_per_second, "").note(describe(&predicted));
    }
}

/// Returns a description of a cluster's results.
fn describe(predicted: &SimulationResult) -> String {
    format!(
        "p50 {:.1} ms, p99 {:.1} ms, mean {:.1} ms; busy: nodes {:.0} %, database {:.0} %, serial part {:.0} %; \
         {:.0} commits a batch",
        predicted.latency.p50_us / 1e3,
        predicted.latency.p99_us / 1e3,
        predicted.mean_us / 1e3,
        predicted.nodes_busy * 100.0,
        predicted.database_busy * 100.0,
        predicted.order_busy * 100.0,
        WRITES / predicted.batches,
    )
}
