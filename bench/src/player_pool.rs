//! A player pool: many connections that play whole games in a loop, or repeat one request, with a measurement of the
//! server's usage.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::client_pool::ClientPool;
use crate::connection::Connection;
use crate::faults::Faults;
use crate::psi::{self, Players, REQUESTS_PER_GAME, ServerKind, StepLatencies};
use crate::server::Server;
use crate::usage::Usage;

/// The number of failed games in a row after which a connection ends its work, because the server must have stopped.
const MAX_FAILURES: u32 = 5;

/// The end of a player pool's work. Games in progress are completed.
#[derive(Debug, Clone, Copy)]
pub enum Until {
    Elapsed(Duration),
    /// After this number of started games.
    Games(u64),
}

/// The size of a player pool.
#[derive(Debug, Clone, Copy)]
pub struct PlayerPool {
    pub threads: usize,
    pub connections: usize,
    pub players: Players,
}

/// A point in time of a measurement.
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

    /// Reads the clock and the summed usage of several servers.
    fn take_all(pids: &[u32]) -> anyhow::Result<Mark> {
        let mut server = Usage::default();
        for &pid in pids {
            server.add(&Usage::of(pid)?);
        }
        Ok(Mark { at: Instant::now(), server, client: Usage::of_this_process()? })
    }

    /// Returns the differences between two marks.
    pub fn until(&self, end: &Mark) -> MeasuredCost {
        MeasuredCost {
            seconds: (end.at - self.at).as_secs_f64(),
            server_cpu_us: end.server.cpu_us.saturating_sub(self.server.cpu_us) as f64,
            client_cpu_us: end.client.cpu_us.saturating_sub(self.client.cpu_us) as f64,
        }
    }

    pub fn server(&self) -> Usage {
        self.server
    }
}

/// Time and CPU time between two marks.
#[derive(Debug, Clone, Copy)]
pub struct MeasuredCost {
    /// Elapsed time.
    pub seconds: f64,
    /// CPU time of the server, in microseconds.
    pub server_cpu_us: f64,
    /// CPU time of this process, in microseconds.
    pub client_cpu_us: f64,
}

/// The results of a player pool.
pub struct Round {
    /// The number of completed and correct games.
    pub games: u64,
    /// The latencies of the games' steps.
    pub latencies: StepLatencies,
    pub faults: Faults,
    /// The time and CPU time used.
    pub spent: MeasuredCost,
}

impl Round {
    /// Returns the number of requests in the completed games.
    pub fn requests(&self) -> u64 {
        self.games * REQUESTS_PER_GAME
    }

    /// Returns the number of requests per second.
    pub fn rate(&self) -> f64 {
        self.requests() as f64 / self.spent.seconds
    }

    /// Returns the server's CPU time per request, in microseconds.
    pub fn server_us_per_request(&self) -> f64 {
        self.spent.server_cpu_us / self.requests() as f64
    }

    /// Returns this process's CPU time per request, in microseconds.
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

impl PlayerPool {
    /// Plays games on all connections.
    ///
    /// # Errors
    /// If the server can't be reached at all. A failed game is not an error, but is counted in the round.
    pub fn play(self, server: &Server, server_kind: ServerKind, until: Until) -> anyhow::Result<Round> {
        self.play_at(&[vec![server]], server_kind, until)
    }

    /// Plays games at several servers. An element of `tables` lists the servers of a game's seats. Connections take the
    /// elements in turn.
    ///
    /// # Errors
    /// As [`PlayerPool::play`].
    pub fn play_at(self, tables: &[Vec<&Server>], server_kind: ServerKind, until: Until) -> anyhow::Result<Round> {
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
        let finished = ClientPool { threads: self.threads, workers: self.connections, limit }.run(
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
                    if over || failed_in_a_row == MAX_FAILURES {
                        return Ok((games, latencies, faults));
                    }
                    match psi::play(&mut connections, server_kind, self.players, Instant::now(), &mut latencies).await {
                        Ok(()) => {
                            games += 1;
                            failed_in_a_row = 0;
                        }
                        Err(err) => {
                            faults.add(&err);
                            failed_in_a_row += 1;
                            // After an error, the connection may be broken, so it is replaced.
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
            spent: finished.start.until(&finished.end),
        };
        for (games, latencies, faults) in finished.results {
            round.games += games;
            round.latencies.merge(&latencies);
            round.faults.merge(faults);
        }
        Ok(round)
    }

    /// Runs `job` `times` times, spread over all connections. The jobs are numbered from 0.
    ///
    /// # Errors
    /// If a job fails (the first error).
    pub fn repeat(
        self,
        server: &Server,
        times: u64,
        job: impl AsyncFn(&mut Connection, u64) -> anyhow::Result<()> + Clone + Send + 'static,
    ) -> anyhow::Result<MeasuredCost> {
        let address = server.address();
        let begun = Arc::new(AtomicU64::new(0));
        let client_pool = ClientPool {
            threads: self.threads,
            workers: self.connections,
            limit: Duration::from_secs(60 + times / 500),
        };
        let finished = client_pool.run(
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
        Ok(finished.start.until(&finished.end))
    }
}
