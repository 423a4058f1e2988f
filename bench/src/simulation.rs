//! An arena under load, as queues: clients, nodes with their processors, the writer of each that commits in batches, a
//! database, and the disk that makes a batch durable. What things cost comes from measurements (`scenarios/scaling.rs`); what is
//! simulated is who waits for whom, at sizes that can't be measured on one machine.
//!
//! A discrete-event simulation: processors take work in the order in which it comes, and each piece of it takes a time that is
//! drawn, exponentially distributed around its mean.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use arena_model::{Seed, SeedRng};

use crate::latency::{Latencies, LatencySummary};

/// The requests of a game of PSI, in order: whether each is a write.
const GAME: [bool; 11] = [true, true, true, false, false, true, true, true, true, false, false];

/// Its reads and writes.
const READS: f64 = 4.0;
const WRITES: f64 = 7.0;

/// Commits that a writer takes in one batch, at most.
const BATCH: usize = 256;

/// What things cost: processor time, or time that is only waited. All in microseconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Costs {
    /// The client's processor, per request.
    pub client: f64,
    /// The node's processor, per read.
    pub read: f64,
    /// The database's processor, per read: whether what the node knows is still so. Costs a trip as well, unless it is nothing.
    pub check: f64,
    /// The node's processor, per write, beside what follows.
    pub write: f64,
    /// Per commit: the processor of whoever stores it, one commit of a batch after the other.
    pub commit: f64,
    /// Per batch: the same.
    pub batch: f64,
    /// Per batch: until the disk has it.
    pub flush: f64,
    /// Per batch, and per question of a read: messages on their way to the database and back.
    pub trip: f64,
}

/// Where things run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Layout {
    /// Clients, nodes and whatever stores share one machine of so many cores.
    OneMachine {
        /// How many cores they share.
        cores: usize,
        /// How many nodes there are.
        nodes: usize,
    },
    /// Each node has a machine, the database too, and clients cost nothing.
    Apart {
        /// How many nodes there are.
        nodes: usize,
        /// Cores of each.
        node_cores: usize,
        /// Cores of the database.
        database_cores: usize,
    },
}

/// What clients do.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Load {
    /// So many connections, each playing game after game.
    Closed(usize),
    /// So many games begin each second, evenly.
    Open(f64),
}

impl Costs {
    /// What the node's processor works per request of a game, when so many commits make a batch. Without a database the node stores.
    pub fn node_per_request(&self, batch: f64) -> f64 {
        let stores = if self.trip > 0.0 { 0.0 } else { self.commit + self.batch / batch };
        (READS * self.read + WRITES * (self.write + stores)) / (READS + WRITES)
    }

    /// What the database's processor works per game, when so many commits make a batch.
    pub fn database_per_game(&self, batch: f64) -> f64 {
        if self.trip > 0.0 { READS * self.check + WRITES * (self.commit + self.batch / batch) } else { 0.0 }
    }
}

/// What comes of it.
#[derive(Debug, Clone, Copy)]
pub struct Outcome {
    /// Games that ended, per second.
    pub games_per_second: f64,
    /// Of all requests.
    pub latency: LatencySummary,
    /// Commits in a batch, on average.
    pub batch: f64,
    /// Share of the time in which nodes' processors work (all processors, on one machine).
    pub nodes_busy: f64,
    /// Share of the time in which the database's processors work; none on one machine.
    pub database_busy: f64,
    /// Share of the time in which the disk writes.
    pub disk_busy: f64,
}

/// Something happens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    /// A game begins (open load): the next one follows.
    Begins,
    /// A player's next request is on its way.
    Sends(usize),
    /// A node has worked on a request.
    Serves(usize),
    /// A read's question has reached the database.
    Asks(usize),
    /// The database has the answer to a read's question.
    Tells(usize),
    /// The answer to a read's question has reached the node.
    Learns(usize),
    /// A batch of a node has reached the database.
    Reaches(usize),
    /// The commits of a batch of a node are written, if not durable.
    Writes(usize),
    /// The disk is done with what it was given.
    Flushes,
    /// A node hears that its batch is durable.
    Hears(usize),
}

/// Processors that share a queue.
#[derive(Debug, Default)]
struct Pool {
    cores: usize,
    busy: usize,
    waiting: VecDeque<(f64, Event)>,
    worked: f64,
}

/// The writer of a node.
#[derive(Debug, Default)]
struct Writer {
    waiting: Vec<usize>,
    under_way: Vec<usize>,
}

/// A disk: what comes while it writes is written together, next.
#[derive(Debug, Default)]
struct Disk {
    waiting: Vec<usize>,
    under_way: Vec<usize>,
    worked: f64,
}

/// A connection on which games are played.
#[derive(Debug, Clone, Copy)]
struct Player {
    step: usize,
    sent: f64,
}

struct World {
    costs: Costs,
    layout: Layout,
    load: Load,
    now: f64,
    /// What is to happen: when, in picoseconds since the beginning (an integer has an order), and what.
    agenda: BinaryHeap<Reverse<(u64, u64, Event)>>,
    entered: u64,
    pools: Vec<Pool>,
    writers: Vec<Writer>,
    disk: Disk,
    players: Vec<Player>,
    idle: Vec<usize>,
    rng: SeedRng,
    measured: Measured,
}

/// What is counted once the beginning is over.
#[derive(Debug, Default)]
struct Measured {
    since: f64,
    games: u64,
    latencies: Latencies,
    batches: u64,
    commits: u64,
}

/// Simulates so many games, after a tenth as many that aren't counted.
pub fn simulate(costs: Costs, layout: Layout, load: Load, games: u64) -> Outcome {
    let mut world = World::new(costs, layout, load);
    world.begin();
    let warm_up = games / 10;
    let mut ended = 0;
    while ended < warm_up {
        ended += world.step();
    }
    world.measured = Measured { since: world.now, ..Measured::default() };
    world.pools.iter_mut().for_each(|pool| pool.worked = 0.0);
    world.disk.worked = 0.0;
    while world.measured.games < games {
        world.step();
    }
    world.outcome()
}

impl World {
    fn new(costs: Costs, layout: Layout, load: Load) -> World {
        let pool = |cores: usize| Pool { cores, ..Pool::default() };
        let (pools, nodes) = match layout {
            Layout::OneMachine { cores, nodes } => (vec![pool(cores)], nodes),
            Layout::Apart { nodes, node_cores, database_cores } => {
                let mut pools: Vec<Pool> = (0..nodes).map(|_| pool(node_cores)).collect();
                pools.push(pool(database_cores));
                (pools, nodes)
            }
        };
        World {
            costs,
            layout,
            load,
            now: 0.0,
            agenda: BinaryHeap::new(),
            entered: 0,
            pools,
            writers: (0..nodes).map(|_| Writer::default()).collect(),
            disk: Disk::default(),
            players: Vec::new(),
            idle: Vec::new(),
            rng: Seed::from_number(1).rng("simulation"),
            measured: Measured::default(),
        }
    }

    fn begin(&mut self) {
        match self.load {
            Load::Closed(connections) => {
                for player in 0..connections {
                    self.players.push(Player { step: 0, sent: 0.0 });
                    // Not all at once.
                    let at = self.draw(1_000.0);
                    self.enter(at, Event::Sends(player));
                }
            }
            Load::Open(_) => self.enter(0.0, Event::Begins),
        }
    }

    fn enter(&mut self, after: f64, event: Event) {
        self.entered += 1;
        let at = ((self.now + after) * 1e6) as u64;
        self.agenda.push(Reverse((at, self.entered, event)));
    }

    fn draw(&mut self, mean: f64) -> f64 {
        -mean * (1.0 - self.rng.unit()).ln()
    }

    fn node_of(&self, player: usize) -> usize {
        player % self.writers.len()
    }

    fn pool_of_node(&self, node: usize) -> usize {
        match self.layout {
            Layout::OneMachine { .. } => 0,
            Layout::Apart { .. } => node,
        }
    }

    fn pool_of_database(&self) -> usize {
        self.pools.len() - 1
    }

    /// Gives work to processors; `event` follows when it is done.
    fn work(&mut self, pool: usize, mean: f64, event: Event) {
        let time = self.draw(mean);
        if self.pools[pool].busy < self.pools[pool].cores {
            self.pools[pool].busy += 1;
            self.start(pool, time, event);
        } else {
            self.pools[pool].waiting.push_back((time, event));
        }
    }

    fn start(&mut self, pool: usize, time: f64, event: Event) {
        self.pools[pool].worked += time;
        self.enter(time, event);
    }

    /// A processor is free again.
    fn release(&mut self, pool: usize) {
        match self.pools[pool].waiting.pop_front() {
            Some((time, event)) => self.start(pool, time, event),
            None => self.pools[pool].busy -= 1,
        }
    }

    /// Goes to the next event. Returns how many games ended there.
    fn step(&mut self) -> u64 {
        let Reverse((at, _, event)) = self.agenda.pop().expect("players never stop");
        self.now = at as f64 / 1e6;
        match event {
            Event::Begins => {
                let Load::Open(rate) = self.load else { unreachable!("games begin by themselves in an open load") };
                let player = self.idle.pop().unwrap_or_else(|| {
                    self.players.push(Player { step: 0, sent: 0.0 });
                    self.players.len() - 1
                });
                self.enter(0.0, Event::Sends(player));
                self.enter(1e6 / rate, Event::Begins);
                0
            }
            Event::Sends(player) => {
                self.players[player].sent = self.now;
                let (node, step) = (self.node_of(player), self.players[player].step);
                let mut cost = if GAME[step] { self.costs.write } else { self.costs.read };
                if let Layout::OneMachine { .. } = self.layout {
                    // The client works before and after; where it does makes no difference to the processors.
                    cost += self.costs.client;
                }
                self.work(self.pool_of_node(node), cost, Event::Serves(player));
                0
            }
            Event::Serves(player) => {
                let node = self.node_of(player);
                self.release(self.pool_of_node(node));
                if GAME[self.players[player].step] {
                    self.writers[node].waiting.push(player);
                    self.write(node);
                    0
                } else if self.costs.check > 0.0 {
                    self.enter(self.costs.trip / 2.0, Event::Asks(player));
                    0
                } else {
                    self.answer(player)
                }
            }
            Event::Asks(player) => {
                self.work(self.pool_of_database(), self.costs.check, Event::Tells(player));
                0
            }
            Event::Tells(player) => {
                self.release(self.pool_of_database());
                self.enter(self.costs.trip / 2.0, Event::Learns(player));
                0
            }
            Event::Learns(player) => self.answer(player),
            Event::Reaches(node) => {
                let commits = self.writers[node].under_way.len() as f64;
                let mean = self.costs.batch + commits * self.costs.commit;
                self.work(self.pool_of_database(), mean, Event::Writes(node));
                0
            }
            Event::Writes(node) => {
                self.release(self.pool_of_database());
                self.disk.waiting.push(node);
                self.flush();
                0
            }
            Event::Flushes => {
                let done = std::mem::take(&mut self.disk.under_way);
                for node in done {
                    self.enter(self.costs.trip / 2.0, Event::Hears(node));
                }
                self.flush();
                0
            }
            Event::Hears(node) => {
                let batch = std::mem::take(&mut self.writers[node].under_way);
                self.measured.batches += 1;
                self.measured.commits += batch.len() as u64;
                let ended = batch.into_iter().map(|player| self.answer(player)).sum();
                self.write(node);
                ended
            }
        }
    }

    /// The writer takes what waits, if it isn't at work.
    fn write(&mut self, node: usize) {
        let writer = &mut self.writers[node];
        if !writer.under_way.is_empty() || writer.waiting.is_empty() {
            return;
        }
        let taken = writer.waiting.len().min(BATCH);
        writer.under_way = writer.waiting.drain(..taken).collect();
        self.enter(self.costs.trip / 2.0, Event::Reaches(node));
    }

    fn flush(&mut self) {
        let disk = &mut self.disk;
        if !disk.under_way.is_empty() || disk.waiting.is_empty() {
            return;
        }
        disk.under_way = std::mem::take(&mut disk.waiting);
        let time = self.draw(self.costs.flush);
        self.disk.worked += time;
        self.enter(time, Event::Flushes);
    }

    /// A player has its answer, and goes on. Returns how many games ended.
    fn answer(&mut self, player: usize) -> u64 {
        let latency = self.now - self.players[player].sent;
        self.measured.latencies.record(std::time::Duration::from_secs_f64(latency / 1e6));
        let step = (self.players[player].step + 1) % GAME.len();
        self.players[player].step = step;
        let ended = step == 0;
        if ended {
            self.measured.games += 1;
        }
        match self.load {
            Load::Open(_) if ended => self.idle.push(player),
            Load::Open(_) | Load::Closed(_) => self.enter(0.0, Event::Sends(player)),
        }
        u64::from(ended)
    }

    fn outcome(&self) -> Outcome {
        let time = self.now - self.measured.since;
        let busy = |pools: &[Pool]| {
            let (worked, cores) =
                pools.iter().fold((0.0, 0), |(worked, cores), pool| (worked + pool.worked, cores + pool.cores));
            if cores == 0 { 0.0 } else { worked / (time * cores as f64) }
        };
        let (nodes, database) = match self.layout {
            Layout::OneMachine { .. } => (&self.pools[..], &[][..]),
            Layout::Apart { .. } => self.pools.split_at(self.pools.len() - 1),
        };
        Outcome {
            games_per_second: self.measured.games as f64 / time * 1e6,
            latency: self.measured.latencies.summary(),
            batch: self.measured.commits as f64 / self.measured.batches.max(1) as f64,
            nodes_busy: busy(nodes),
            database_busy: busy(database),
            disk_busy: self.disk.worked / time,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const COSTS: Costs =
        Costs { client: 10.0, read: 10.0, check: 0.0, write: 20.0, commit: 5.0, batch: 20.0, flush: 100.0, trip: 0.0 };

    #[test]
    fn one_player_waits_for_everything_one_thing_after_the_other() {
        let alone = simulate(COSTS, Layout::OneMachine { cores: 2, nodes: 1 }, Load::Closed(1), 20_000);
        let expected = 4.0 * (10.0 + 10.0) + 7.0 * (10.0 + 20.0 + 20.0 + 5.0 + 100.0);
        let taken = 1e6 / alone.games_per_second;
        assert!((taken / expected - 1.0).abs() < 0.02, "{taken} µs a game instead of {expected}");
        assert_eq!(alone.batch, 1.0);
        let (worked, waited) = (4.0 * 20.0 + 7.0 * 55.0, 7.0 * 100.0);
        assert!((alone.nodes_busy / (worked / expected / 2.0) - 1.0).abs() < 0.02, "{alone:?}");
        assert!((alone.disk_busy / (waited / expected) - 1.0).abs() < 0.02, "{alone:?}");
    }

    #[test]
    fn many_players_are_bound_by_the_processors() {
        let many = simulate(COSTS, Layout::OneMachine { cores: 2, nodes: 1 }, Load::Closed(256), 20_000);
        // What a batch costs is shared by the many that are in it.
        let least = 4.0 * 20.0 + 7.0 * (35.0 + 20.0 / many.batch);
        assert!((many.games_per_second * least / 2e6 - 1.0).abs() < 0.02, "{many:?}");
        assert!(many.nodes_busy > 0.98 && many.batch > 10.0, "{many:?}");
    }

    #[test]
    fn an_open_load_is_served_until_the_database_can_no_more() {
        let costs = Costs { trip: 200.0, ..COSTS };
        let layout = Layout::Apart { nodes: 8, node_cores: 2, database_cores: 4 };
        let light = simulate(costs, layout, Load::Open(10_000.0), 20_000);
        assert!((light.games_per_second / 10_000.0 - 1.0).abs() < 0.02, "{light:?}");
        assert!(light.database_busy < 0.9 && light.latency.p50_us < 1_000.0, "{light:?}");
        // 7 commits a game at 5 µs are 28,571 games a second on one core at most.
        let layout = Layout::Apart { nodes: 8, node_cores: 4, database_cores: 1 };
        let heavy = simulate(costs, layout, Load::Closed(2_000), 20_000);
        assert!(heavy.database_busy > 0.98 && heavy.games_per_second < 28_571.0, "{heavy:?}");
    }
}
