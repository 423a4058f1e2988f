//! A crowd: many connections that play whole games in a loop, or repeat one request, and what that cost the server.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::connection::Connection;
use crate::crew::Crew;
use crate::faults::Faults;
use crate::psi::{self, Opposite, Players, REQUESTS_PER_GAME, StepLatencies};
use crate::server::Server;
use crate::usage::Usage;

/// Games in a row that may fail on one connection before it gives up: the server is surely gone then.
const PATIENCE: u32 = 5;

/// When a crowd stops to start new games. Those that have begun are played to the end.
#[derive(Debug, Clone, Copy)]
pub enum Until {
    /// When this time is over.
    Elapsed(Duration),
    /// When so many were begun.
    Games(u64),
}

/// A crowd's size.
#[derive(Debug, Clone, Copy)]
pub struct Crowd {
    /// Client threads.
    pub threads: usize,
    /// Connections.
    pub connections: usize,
    /// Who plays on them.
    pub players: Players,
}

/// A moment of a measurement.
#[derive(Debug, Clone, Copy)]
pub struct Mark {
    at: Instant,
    server: Usage,
    client: Usage,
}

impl Mark {
    /// Reads the clock and the usage of both processes.
    ///
    /// # Errors
    /// If the server has ended.
    pub fn take(pid: u32) -> anyhow::Result<Mark> {
        Mark::take_all(&[pid])
    }

    /// The same with several servers, whose usage is added up.
    fn take_all(pids: &[u32]) -> anyhow::Result<Mark> {
        let mut server = Usage::default();
        for &pid in pids {
            server.add(&Usage::of(pid)?);
        }
        Ok(Mark { at: Instant::now(), server, client: Usage::of_this_process()? })
    }

    /// What went by between two marks.
    pub fn until(&self, end: &Mark) -> Spent {
        Spent {
            seconds: (end.at - self.at).as_secs_f64(),
            server_cpu_us: end.server.cpu_us.saturating_sub(self.server.cpu_us) as f64,
            client_cpu_us: end.client.cpu_us.saturating_sub(self.client.cpu_us) as f64,
        }
    }

    /// The server at this moment.
    pub fn server(&self) -> Usage {
        self.server
    }
}

/// Time and CPU time between two marks.
#[derive(Debug, Clone, Copy)]
pub struct Spent {
    /// Elapsed time.
    pub seconds: f64,
    /// CPU time of the server, in microseconds.
    pub server_cpu_us: f64,
    /// CPU time of this process, in microseconds.
    pub client_cpu_us: f64,
}

/// What a crowd of players did.
pub struct Round {
    /// Games that were played to the end, and found right.
    pub games: u64,
    /// Latencies of their steps.
    pub latencies: StepLatencies,
    /// What went wrong.
    pub faults: Faults,
    /// What it took.
    pub spent: Spent,
}

impl Round {
    /// Requests of the games that were played to the end.
    pub fn requests(&self) -> u64 {
        self.games * REQUESTS_PER_GAME
    }

    /// Requests per second.
    pub fn rate(&self) -> f64 {
        self.requests() as f64 / self.spent.seconds
    }

    /// The server's CPU time per request, in microseconds.
    pub fn server_us_per_request(&self) -> f64 {
        self.spent.server_cpu_us / self.requests() as f64
    }

    /// This process's CPU time per request, in microseconds.
    pub fn client_us_per_request(&self) -> f64 {
        self.spent.client_cpu_us / self.requests() as f64
    }
}

async fn open_all(addresses: &[SocketAddr]) -> anyhow::Result<Vec<Connection>> {
    let mut connections = Vec::with_capacity(addresses.len());
    for &address in addresses {
        connections.push(Connection::open(address).await?);
    }
    Ok(connections)
}

impl Crowd {
    /// Plays games on all connections.
    ///
    /// # Errors
    /// If the server can't be reached at all; games that go wrong are counted in the round.
    pub fn play(self, server: &Server, opposite: Opposite, until: Until) -> anyhow::Result<Round> {
        self.play_at(&[vec![server]], opposite, until)
    }

    /// Plays games at tables, each of which is the servers that its seats talk to. Connections take the tables in turn.
    ///
    /// # Errors
    /// As [`Crowd::play`].
    pub fn play_at(self, tables: &[Vec<&Server>], opposite: Opposite, until: Until) -> anyhow::Result<Round> {
        let addresses: Vec<Vec<SocketAddr>> =
            tables.iter().map(|table| table.iter().map(|server| server.address()).collect()).collect();
        let pids: BTreeSet<u32> = tables.iter().flatten().map(|server| server.pid()).collect();
        let pids: Vec<u32> = pids.into_iter().collect();
        let again = addresses.clone();
        let limit = match until {
            Until::Elapsed(time) => time + Duration::from_secs(60),
            Until::Games(games) => Duration::from_secs(60 + games / 50),
        };
        let begun = Arc::new(AtomicU64::new(0));
        let shift = Crew { threads: self.threads, workers: self.connections, limit }.run(
            async move |worker| open_all(&addresses[worker % addresses.len()]).await,
            async move |worker, mut connections| {
                let (mut games, mut latencies, mut faults) = (0_u64, StepLatencies::default(), Faults::default());
                let start = Instant::now();
                let mut failed_in_a_row = 0;
                loop {
                    let over = match until {
                        Until::Elapsed(time) => start.elapsed() >= time,
                        Until::Games(wanted) => begun.fetch_add(1, Ordering::Relaxed) >= wanted,
                    };
                    if over || failed_in_a_row == PATIENCE {
                        return Ok((games, latencies, faults));
                    }
                    match psi::play(&mut connections, opposite, self.players, Instant::now(), &mut latencies).await {
                        Ok(()) => {
                            games += 1;
                            failed_in_a_row = 0;
                        }
                        Err(err) => {
                            faults.add(&err);
                            failed_in_a_row += 1;
                            // A connection may be what broke.
                            match open_all(&again[worker % again.len()]).await {
                                Ok(fresh) => connections = fresh,
                                Err(err) => {
                                    faults.add(&err);
                                    return Ok((games, latencies, faults));
                                }
                            }
                        }
                    }
                }
            },
            || Mark::take_all(&pids),
        )?;
        let mut round = Round {
            games: 0,
            latencies: StepLatencies::default(),
            faults: Faults::default(),
            spent: shift.start.until(&shift.end),
        };
        for (games, latencies, faults) in shift.results {
            round.games += games;
            round.latencies.merge(&latencies);
            round.faults.merge(faults);
        }
        Ok(round)
    }

    /// Does `job` so many times, spread over all connections; each is told its number, from 0.
    ///
    /// # Errors
    /// The first error of a job.
    pub fn repeat(
        self,
        server: &Server,
        times: u64,
        job: impl AsyncFn(&mut Connection, u64) -> anyhow::Result<()> + Clone + Send + 'static,
    ) -> anyhow::Result<Spent> {
        let address = server.address();
        let begun = Arc::new(AtomicU64::new(0));
        let crew =
            Crew { threads: self.threads, workers: self.connections, limit: Duration::from_secs(60 + times / 500) };
        let shift = crew.run(
            async move |_| Connection::open(address).await,
            async move |_, mut connection| {
                loop {
                    let number = begun.fetch_add(1, Ordering::Relaxed);
                    if number >= times {
                        return Ok(());
                    }
                    job(&mut connection, number).await?;
                }
            },
            || Mark::take(server.pid()),
        )?;
        Ok(shift.start.until(&shift.end))
    }
}
