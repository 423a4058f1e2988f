//! What a node and a database cost per request, fitted to measurements on this machine; how well a simulation with these costs
//! foretells what was measured; and what it foretells of sizes that don't fit one machine. `docs/scaling.md` tells what follows.

use arena_testkit::{NatsServer, Postgres};
use serde_json::json;

use crate::arguments::Arguments;
use crate::connection::Connection;
use crate::crew;
use crate::crowd::Until;
use crate::machine::Machine;
use crate::psi::{self, Opposite};
use crate::report::Report;
use crate::scenarios::paced;
use crate::server::{ArenaFolder, Server, check_binary};
use crate::simulation::{Costs, Layout, Load, simulate};
use crate::usage::Usage;

const NAME: &str = "scaling";

/// Connections at which games are measured.
const CONNECTIONS: [usize; 4] = [4, 16, 64, 256];

/// Games that are simulated for each of them while costs are sought, and for what is told.
const GAMES: [u64; 2] = [4_000, 20_000];

/// Reads that are measured alone.
const READS: u64 = 40_000;

/// How many nodes a cluster may have.
const NODES: [usize; 11] = [2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64];

/// Games per second that a cluster shall play.
const WANTED: f64 = 10_000.0;

/// Milliseconds within which 99 of 100 of a cluster's requests shall be answered.
const IN_TIME: f64 = 10.0;

/// One measurement: so many connections, what came of them.
#[derive(Debug, Clone, Copy)]
struct Point {
    connections: usize,
    games_per_second: f64,
    node_us_per_request: f64,
    database_us_per_game: f64,
}

/// What is fitted: a node, and the database that it asks, if any.
struct Subject<'a> {
    what: &'static str,
    node: &'a Server,
    database: Option<&'a Postgres>,
}

/// Measures, fits and foretells.
///
/// # Errors
/// If a server doesn't come up or ends.
pub fn run(arguments: &Arguments, report: &mut Report) -> anyhow::Result<()> {
    let machine = Machine::look(&arguments.work())?;
    check_binary(&arguments.arena())?;
    let (postgres, nats) = (Postgres::start(), NatsServer::start());
    let folder = || ArenaFolder::new(&arguments.arena(), &arguments.work(), None);
    let folders = [folder()?, folder()?];
    let embedded = folders[0].start()?;
    let shared = folders[1].start_with(&super::nodes::environment(&postgres.schema(), &nats.url()))?;
    let subjects = [
        Subject { what: "SQLite", node: &embedded, database: None },
        Subject { what: "Postgres", node: &shared, database: Some(&postgres) },
    ];
    for subject in &subjects {
        let costs = subject.fitted(arguments, report, &machine)?;
        if subject.database.is_some() {
            foretell(report, costs);
        }
    }
    shared.terminate()?;
    embedded.terminate()?;
    Ok(())
}

impl Subject<'_> {
    fn database_us(&self) -> anyhow::Result<u64> {
        self.database.map_or(Ok(0), |postgres| Usage::cpu_of_family(postgres.pid()))
    }

    fn fitted(&self, arguments: &Arguments, report: &mut Report, machine: &Machine) -> anyhow::Result<Costs> {
        let what = self.what;
        let (read, check, client) = self.reads(arguments)?;
        let mut points = Vec::new();
        let mut client_us = client;
        for connections in CONNECTIONS {
            eprintln!("scaling: {what}, {connections} connections");
            let crowd = arguments.crowd(connections);
            crowd.play(self.node, Opposite::Arena, Until::Elapsed(arguments.round()? / 5))?;
            let before = self.database_us()?;
            let round = crowd.play(self.node, Opposite::Arena, Until::Elapsed(arguments.round()?))?;
            let database_us = (self.database_us()? - before) as f64;
            report.faults(format!("scaling, {what}, {connections} connections"), &round.faults);
            client_us = round.client_us_per_request();
            points.push(Point {
                connections,
                games_per_second: round.games as f64 / round.spent.seconds,
                node_us_per_request: round.server_us_per_request(),
                database_us_per_game: database_us / round.games.max(1) as f64,
            });
        }
        // Whether the model holds is seen where it wasn't fitted: at half the load, with games that come by themselves.
        let rate = (points.iter().map(|point| point.games_per_second).fold(0.0, f64::max) / 2.0).round() as u64;
        let rate = rate.max(1);
        let open = paced::play(arguments.crowd(256), self.node, Opposite::Arena, rate, 5 * rate)?;
        report.faults(format!("scaling, {what}, {rate} games/s"), &open.faults);

        let stored = self.database.is_some();
        let start = Costs {
            client: client_us,
            read,
            check: if stored { check.max(0.1) } else { 0.0 },
            write: 20.0,
            commit: 10.0,
            batch: 20.0,
            flush: machine.fdatasync_us,
            trip: if stored { 100.0 } else { 0.0 },
        };
        let layout = Layout::OneMachine { cores: machine.cores, nodes: 1 };
        let costs = fit(&points, layout, start, GAMES[0]);
        for point in &points {
            let told = simulate(costs, layout, Load::Closed(point.connections), GAMES[1]);
            report
                .row(NAME, format!("{what}, {} connections: games/s, simulated", point.connections), told.games_per_second, "")
                .note(format!(
                    "measured {:.0}; node {:.1} µs a request, measured {:.1}; database {:.0} µs a game, measured {:.0}; {:.1} commits a batch",
                    point.games_per_second,
                    costs.node_per_request(told.batch),
                    point.node_us_per_request,
                    costs.database_per_game(told.batch),
                    point.database_us_per_game,
                    told.batch,
                ));
        }
        let told = simulate(costs, layout, Load::Open(rate as f64), GAMES[1]);
        let measured = open.latencies.all().summary();
        report
            .row(NAME, format!("{what}, {rate} games/s, not fitted: p50, simulated"), told.latency.p50_us / 1e3, "ms")
            .note(format!(
                "measured {:.2} ms; p99 {:.1} ms, measured {:.1}",
                measured.p50_us / 1e3,
                told.latency.p99_us / 1e3,
                measured.p99_us / 1e3
            ));
        for (name, value) in [
            ("node, per read", costs.read),
            ("database, per read", costs.check),
            ("node, per write", costs.write),
            ("stored, per commit", costs.commit),
            ("stored, per batch", costs.batch),
            ("disk, per batch", costs.flush),
            ("on the way, per batch", costs.trip),
        ] {
            report.row(NAME, format!("{what}: {name}"), value, "µs");
        }
        let points: Vec<_> = points.iter().map(|point| format!("{point:?}")).collect();
        report.detail(NAME, what, json!({ "points": points, "costs": format!("{costs:?}") }));
        Ok(costs)
    }

    /// What a read costs the node, the database and the client, in microseconds: the end of a game, read again and again.
    fn reads(&self, arguments: &Arguments) -> anyhow::Result<(f64, f64, f64)> {
        let address = self.node.address();
        let invited = crew::alone(async {
            let mut connection = Connection::open(address).await?;
            let invited = psi::create(&mut connection, Opposite::Arena).await?;
            for invite in &invited.invites {
                psi::join(&mut connection, invite).await?;
            }
            Ok(invited)
        })?;
        let times = arguments.size(None, READS, READS / 10);
        let before = self.database_us()?;
        let spent = arguments.crowd(16).repeat(self.node, times, async move |connection, _| {
            psi::sync(connection, &invited.id, &invited.invites[0]).await.map(drop)
        })?;
        let each = |us: f64| us / times as f64;
        Ok((each(spent.server_cpu_us), each((self.database_us()? - before) as f64), each(spent.client_cpu_us)))
    }
}

/// The costs with which a simulation comes nearest to what was measured: from some costs on, each is made larger and smaller as
/// long as that helps, in smaller and smaller steps.
fn fit(points: &[Point], layout: Layout, start: Costs, games: u64) -> Costs {
    let stored = start.trip > 0.0;
    let free: [fn(&mut Costs) -> &mut f64; 4] = [
        |costs| &mut costs.write,
        |costs| &mut costs.commit,
        |costs| &mut costs.batch,
        if stored { |costs| &mut costs.trip } else { |costs| &mut costs.flush },
    ];
    let distance = |costs: Costs| -> f64 {
        let of_point = |point: &Point| {
            let told = simulate(costs, layout, Load::Closed(point.connections), games);
            let off = |told: f64, measured: f64| (told / measured).ln().powi(2);
            let mut distance = off(told.games_per_second, point.games_per_second)
                + off(costs.node_per_request(told.batch), point.node_us_per_request);
            if stored {
                distance += off(costs.database_per_game(told.batch), point.database_us_per_game);
            }
            distance
        };
        points.iter().map(of_point).sum()
    };
    let (mut best, mut least) = (start, distance(start));
    for step in [2.0, 1.4, 1.2, 1.1, 1.05, 1.02] {
        let mut better = true;
        while better {
            better = false;
            for cost in free {
                for factor in [step, 1.0 / step] {
                    let mut tried = best;
                    *cost(&mut tried) *= factor;
                    let off = distance(tried);
                    if off < least * 0.999 {
                        (best, least, better) = (tried, off, true);
                    }
                }
            }
        }
    }
    best
}

/// What a cluster with these costs does, of machines that are like this one: nodes with 4 cores, and a database with more and more.
fn foretell(report: &mut Report, costs: Costs) {
    // Between machines of one data centre.
    let costs = Costs { trip: 2.0 * costs.trip.max(250.0), ..costs };
    for database_cores in [4, 8, 16, 32, 64] {
        let of = |nodes: usize| Layout::Apart { nodes, node_cores: 4, database_cores };
        let enough = NODES.into_iter().find_map(|nodes| {
            let told = simulate(costs, of(nodes), Load::Open(WANTED), GAMES[1]);
            let in_time = told.latency.p99_us / 1e3 <= IN_TIME && told.games_per_second > 0.98 * WANTED;
            in_time.then_some((nodes, told))
        });
        let what = format!("{WANTED} games/s, database with {database_cores} cores: nodes of 4 cores");
        match enough {
            Some((nodes, told)) => report.row(NAME, what, nodes as f64, "").note(format!(
                "p50 {:.1} ms, p99 {:.1} ms; busy: nodes {:.0} %, database {:.0} %, disk {:.0} %; {:.1} commits a batch",
                told.latency.p50_us / 1e3,
                told.latency.p99_us / 1e3,
                told.nodes_busy * 100.0,
                told.database_busy * 100.0,
                told.disk_busy * 100.0,
                told.batch
            )),
            None => {
                let told = simulate(costs, of(64), Load::Closed(4_096), GAMES[1]);
                report.row(NAME, what, 0.0, "").note(format!(
                    "not with any number: 64 nodes play {:.0} games/s; busy: nodes {:.0} %, database {:.0} %, disk {:.0} %",
                    told.games_per_second,
                    told.nodes_busy * 100.0,
                    told.database_busy * 100.0,
                    told.disk_busy * 100.0
                ))
            }
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Games that are simulated at a time: the fewest with which a batch is as large as it gets.
    const FEW: u64 = 1_500;

    #[test]
    fn costs_are_found_again_from_what_they_cause() {
        let costs = Costs {
            client: 11.0,
            read: 9.0,
            check: 30.0,
            write: 18.0,
            commit: 40.0,
            batch: 150.0,
            flush: 90.0,
            trip: 140.0,
        };
        let layout = Layout::OneMachine { cores: 2, nodes: 1 };
        let points = CONNECTIONS.map(|connections| {
            let told = simulate(costs, layout, Load::Closed(connections), FEW);
            Point {
                connections,
                games_per_second: told.games_per_second,
                node_us_per_request: costs.node_per_request(told.batch),
                database_us_per_game: costs.database_per_game(told.batch),
            }
        });
        let start = Costs { write: 20.0, commit: 10.0, batch: 20.0, trip: 100.0, ..costs };
        let found = fit(&points, layout, start, FEW);
        for (found, truth) in [(found.write, 18.0), (found.commit, 40.0), (found.batch, 150.0), (found.trip, 140.0)] {
            assert!((found / truth - 1.0_f64).abs() < 0.15, "{found} instead of {truth}");
        }
    }
}
