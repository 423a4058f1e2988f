//! A queuing simulation of an arena under load: clients, nodes, their writers, and the disk that makes a batch
//! durable. Costs are fitted to measurements (`scenarios/scaling.rs`). The simulation adds the waiting times, and so
//! predicts clusters that can't be measured on one machine.
//!
//! It is a discrete-event simulation. Threads share the cores of their machine evenly ([`machine`]), and each piece of
//! work takes a random time, exponentially distributed around its mean. Three activities run one at a
//! time:
//! - A node's journal reads. All requests that waited at the start of a journal read share it, and proceed one after
//!   the other when it has ended.
//! - A node's batches. Commits that arrive during a batch wait for the next batch.
//! - The serial part of batches, if nodes share a database. In it a batch runs its last statements and is made durable.

mod calendar;
mod machine;
mod plan;

use std::collections::VecDeque;

use arena_model::{Seed, SeedRng};

use self::calendar::Calendar;
use self::machine::{SimulatedMachine, WorkState};
pub use self::plan::{Costs, Layout, Load, Plan, SimulationResult, Store};
use crate::latency::Latencies;

/// The requests of a game of PSI, in order: true for a write.
const GAME: [bool; 11] = [true, true, true, false, false, true, true, true, true, false, false];

/// The numbers of reads and writes in a game.
pub const READS: f64 = 4.0;
pub const WRITES: f64 = 7.0;

/// The largest number of commits in one batch.
const LARGEST_BATCH: usize = 1024;

/// The smallest and the largest time for which a node collects commits for a batch, in microseconds. The time depends
/// on the waiting times of the node's last batches for the serial part; below the smallest time the node doesn't wait.
const GATHER: [f64; 2] = [1_000.0, 5_000.0];

/// The collecting time as a multiple of the waiting time, and the smallest batch, in commits, to which it applies.
const GATHER_TIMES: f64 = 3.0;
const GATHER_FROM: usize = 4;

/// A worker of the simulation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Who {
    Clients,
    Node(usize),
    /// The writer of a node: a process of the database, or a thread of the node.
    Writer(usize),
    /// The process of the database that executes a node's journal reads.
    JournalReader(usize),
    Nats,
}

/// The end of a piece of work or a wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Done {
    /// The time of the next game has come (open load only).
    Began,
    /// A client has handled the answer to its previous request and sent the next request.
    Sent(usize),
    /// A node has read a request.
    Attended(usize),
    /// A node has decided on a write.
    Decided(usize),
    /// A node has answered a request.
    Answered(usize),
    /// A node's journal read has reached this stage.
    JournalRead(usize, ReadStage),
    /// A node's batch has reached this stage.
    Batch(usize, Batch),
    /// NATS has announced a node's batch to the other nodes.
    Announced(usize),
}

/// The stages of a journal read: the node has sent the query, the database has executed it, and the node has received
/// the answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ReadStage {
    Asked,
    Read,
    Received,
}

/// The stages of a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Batch {
    /// The node has collected the commits.
    Gathered,
    /// The node has requested the data that it needs.
    Asked,
    /// The database has read the data.
    Read,
    /// The node has sent the writes.
    Planned,
    /// The database has executed all statements except for those of the serial part.
    Written,
    /// The database has executed all statements. The batch is not yet on disk.
    Ordered,
    /// The batch is on disk.
    Durable,
    /// The node has received the confirmation.
    Received,
}

#[derive(Debug, Clone, Copy)]
enum Event {
    /// A wait has ended.
    Passed(Done),
    /// A message with work for a worker has arrived.
    Arrived(Who, f64, Done),
    /// A core of a machine is awake.
    Awake(usize, usize, f64, Done),
    /// Work on a machine is done. The event is ignored if the machine's version differs from the second number.
    Worked(usize, u64),
}

/// An activity with one run at a time. Requests that arrive during a run share the next run.
#[derive(Debug, Default)]
struct Ferry {
    waiting: Vec<usize>,
    under_way: VecDeque<usize>,
    /// True during a run.
    away: bool,
}

/// A connection that plays games.
#[derive(Debug, Clone, Copy)]
struct SimulatedPlayer {
    step: usize,
    sent: f64,
    /// True if the player's next request is the first of a new game.
    fresh: bool,
}

struct World {
    plan: Plan,
    now: f64,
    agenda: Calendar<Event>,
    machines: Vec<SimulatedMachine<Done>>,
    journal_reads: Vec<Ferry>,
    /// For each node, the request that was last released after a journal read and still holds up the next one.
    leaving: Vec<Option<usize>>,
    /// For each node, true if an event has arrived since the start of the last journal read.
    was_notified: Vec<bool>,
    batches: Vec<Ferry>,
    /// The start time of the batch in the serial part.
    ordering: Option<f64>,
    /// The batches that wait for the serial part: their nodes, and the start times of the wait.
    waiting: VecDeque<(usize, f64)>,
    /// The time for which each node collects commits for a batch, in microseconds.
    gather: Vec<f64>,
    players: Vec<SimulatedPlayer>,
    idle: Vec<usize>,
    rng: SeedRng,
    measured: SimulationCounters,
}

/// The counters after the warm-up.
#[derive(Debug, Default)]
struct SimulationCounters {
    since: f64,
    games: u64,
    latencies: Latencies,
    /// The sum of all latencies, in microseconds.
    waited: f64,
    journal_reads: u64,
    batches: u64,
    ordered: f64,
}

/// Simulates `games` games, after a warm-up with a tenth of that number.
pub fn simulate(plan: Plan, games: u64) -> SimulationResult {
    let mut world = World::new(plan);
    world.begin();
    let warm_up = games / 10;
    let mut ended = 0;
    while ended < warm_up {
        ended += world.step();
    }
    world.measured = SimulationCounters { since: world.now, ..SimulationCounters::default() };
    world.machines.iter_mut().for_each(SimulatedMachine::forget);
    while world.measured.games < games {
        world.step();
    }
    world.outcome()
}

impl World {
    fn new(plan: Plan) -> World {
        let machine = |cores| SimulatedMachine::new(cores, plan.costs.wake, plan.costs.switch);
        let (machines, nodes) = match plan.layout {
            Layout::OneMachine { cores, nodes } => {
                let mut machine = machine(cores);
                // The thread pools of the clients, of each node with its two database processes, and of NATS.
                let pools = [cores].into_iter().chain((0..nodes).flat_map(|_| [cores, 1, 1])).chain([1]);
                pools.for_each(|threads| {
                    machine.add_crew(threads);
                });
                (vec![machine], nodes)
            }
            Layout::Apart { nodes, node_cores, database_cores, .. } => {
                let mut machines: Vec<SimulatedMachine<Done>> = (0..nodes).map(|_| machine(node_cores)).collect();
                machines.iter_mut().for_each(|node| {
                    node.add_crew(node_cores);
                });
                let mut database = machine(database_cores);
                (0..2 * nodes).for_each(|_| {
                    database.add_crew(1);
                });
                let mut nats = machine(1);
                nats.add_crew(1);
                machines.extend([database, nats]);
                (machines, nodes)
            }
        };
        World {
            plan,
            now: 0.0,
            agenda: Calendar::new(),
            machines,
            journal_reads: (0..nodes).map(|_| Ferry::default()).collect(),
            leaving: vec![None; nodes],
            was_notified: vec![false; nodes],
            batches: (0..nodes).map(|_| Ferry::default()).collect(),
            ordering: None,
            waiting: VecDeque::new(),
            gather: vec![0.0; nodes],
            players: Vec::new(),
            idle: Vec::new(),
            rng: Seed::from_number(1).rng("simulation"),
            measured: SimulationCounters::default(),
        }
    }

    fn begin(&mut self) {
        match self.plan.load {
            Load::Closed(connections) => {
                for player in 0..connections {
                    self.players.push(SimulatedPlayer { step: 0, sent: 0.0, fresh: true });
                    // The starts are spread over time.
                    let at = self.draw(1_000.0);
                    self.agenda.enter(at, Event::Arrived(Who::Clients, self.plan.costs.client, Done::Sent(player)));
                }
            }
            Load::Open(_) => self.agenda.enter(0.0, Event::Passed(Done::Began)),
        }
    }

    fn draw(&mut self, mean: f64) -> f64 {
        -mean * (1.0 - self.rng.unit()).ln()
    }

    fn node_of(&self, player: usize) -> usize {
        player % self.journal_reads.len()
    }

    /// Returns the indexes of a worker's machine and of its thread pool there, or `None` for workers without cost.
    fn place(&self, who: Who) -> Option<(usize, usize)> {
        let nodes = self.journal_reads.len();
        match (self.plan.layout, who) {
            (Layout::OneMachine { .. }, Who::Clients) => Some((0, 0)),
            (Layout::OneMachine { .. }, Who::Node(node)) => Some((0, 1 + 3 * node)),
            (Layout::OneMachine { .. }, Who::Writer(node)) => Some((0, 2 + 3 * node)),
            (Layout::OneMachine { .. }, Who::JournalReader(node)) => Some((0, 3 + 3 * node)),
            (Layout::OneMachine { .. }, Who::Nats) => Some((0, 1 + 3 * nodes)),
            (Layout::Apart { .. }, Who::Clients) => None,
            (Layout::Apart { .. }, Who::Node(node)) => Some((node, 0)),
            (Layout::Apart { .. }, Who::Writer(node)) => Some((nodes, 2 * node)),
            (Layout::Apart { .. }, Who::JournalReader(node)) => Some((nodes, 2 * node + 1)),
            (Layout::Apart { .. }, Who::Nats) => Some((nodes + 1, 0)),
        }
    }

    /// Sends work to a worker by a message, which takes time between machines.
    fn send(&mut self, to: Who, mean: f64, then: Done) {
        match self.plan.layout {
            Layout::Apart { way, .. } => self.agenda.enter(self.now + way, Event::Arrived(to, mean, then)),
            Layout::OneMachine { .. } => self.work(to, mean, then),
        }
    }

    /// Gives work to a worker.
    fn work(&mut self, who: Who, mean: f64, then: Done) {
        let Some((machine, pool)) = self.place(who).filter(|_| mean > 0.0) else {
            return self.agenda.enter(self.now, Event::Passed(then));
        };
        let time = self.draw(mean);
        match self.machines[machine].work(self.now, pool, time, then) {
            WorkState::Here => self.watch(machine),
            WorkState::Asleep(wake, pool, time, then) => {
                self.agenda.enter(self.now + wake, Event::Awake(machine, pool, time, then));
            }
        }
    }

    /// Schedules the next end of work on a machine.
    fn watch(&mut self, machine: usize) {
        if let Some((at, version)) = self.machines[machine].next() {
            self.agenda.enter(at, Event::Worked(machine, version));
        }
    }

    /// Runs the next event. Returns the number of games that end with it.
    fn step(&mut self) -> u64 {
        let (at, event) = self.agenda.take().expect("players never stop");
        self.now = at;
        match event {
            Event::Passed(done) => self.go_on(done),
            Event::Arrived(who, mean, then) => {
                self.work(who, mean, then);
                0
            }
            Event::Awake(machine, pool, time, then) => {
                self.machines[machine].awake(self.now, pool, time, then);
                self.watch(machine);
                0
            }
            Event::Worked(machine, version) => match self.machines[machine].done(self.now, version) {
                Some(done) => {
                    self.watch(machine);
                    self.go_on(done)
                }
                None => 0,
            },
        }
    }

    /// Continues after the end of a piece of work. Returns the number of games that end with it.
    fn go_on(&mut self, done: Done) -> u64 {
        match done {
            Done::Began => self.begin_game(),
            Done::Sent(player) => return self.receive(player),
            Done::Attended(player) => self.read_journal_first(player),
            Done::Decided(player) => {
                let node = self.node_of(player);
                self.lets_go(player);
                self.batches[node].waiting.push(player);
                self.write(node);
            }
            Done::Answered(player) => {
                self.lets_go(player);
                self.work(Who::Clients, self.plan.costs.client, Done::Sent(player));
            }
            Done::JournalRead(node, ReadStage::Asked) => {
                self.send(
                    Who::JournalReader(node),
                    self.plan.costs.journal_read_stored,
                    Done::JournalRead(node, ReadStage::Read),
                );
            }
            Done::JournalRead(node, ReadStage::Read) => {
                self.send(
                    Who::Node(node),
                    self.plan.costs.journal_read / 2.0,
                    Done::JournalRead(node, ReadStage::Received),
                );
            }
            Done::JournalRead(node, ReadStage::Received) => {
                self.measured.journal_reads += 1;
                self.let_go(node);
            }
            Done::Batch(node, so_far) => self.go_on_with_batch(node, so_far),
            Done::Announced(from) => {
                for node in (0..self.journal_reads.len()).filter(|node| *node != from) {
                    self.was_notified[node] = true;
                    self.start_journal_read(node);
                }
            }
        }
        0
    }

    fn begin_game(&mut self) {
        let Load::Open(rate) = self.plan.load else { unreachable!("only an open load schedules games") };
        let player = self.idle.pop().unwrap_or_else(|| {
            self.players.push(SimulatedPlayer { step: 0, sent: 0.0, fresh: true });
            self.players.len() - 1
        });
        self.players[player] = SimulatedPlayer { step: 0, sent: self.now, fresh: true };
        self.work(Who::Clients, self.plan.costs.client, Done::Sent(player));
        self.agenda.enter(self.now + 1e6 / rate, Event::Passed(Done::Began));
    }

    /// Handles the answer for a client and sends the next request. Returns the number of games that end.
    fn receive(&mut self, player: usize) -> u64 {
        let SimulatedPlayer { step, sent, fresh } = self.players[player];
        let mut next = step;
        if !fresh {
            let latency = self.now - sent;
            self.measured.waited += latency;
            self.measured.latencies.record(std::time::Duration::from_secs_f64(latency / 1e6));
            next = (step + 1) % GAME.len();
        }
        let ended = !fresh && next == 0;
        if ended {
            self.measured.games += 1;
        }
        // The first request of a game counts from the intended start of the game.
        let sent = if fresh && matches!(self.plan.load, Load::Open(_)) { sent } else { self.now };
        self.players[player] = SimulatedPlayer { step: next, sent, fresh: false };
        if ended && matches!(self.plan.load, Load::Open(_)) {
            self.idle.push(player);
            return 1;
        }
        let (node, cost) = (self.node_of(player), self.piece(player));
        self.work(Who::Node(node), cost, Done::Attended(player));
        u64::from(ended)
    }

    /// Returns the node's work on a request up to the next wait, in microseconds.
    fn piece(&self, player: usize) -> f64 {
        let Plan { costs, .. } = self.plan;
        if GAME[self.players[player].step] { costs.write / 3.0 } else { costs.read / 2.0 }
    }

    fn read_journal_first(&mut self, player: usize) {
        let reads_journal = self.plan.store == Store::Shared
            && (!GAME[self.players[player].step] || self.rng.unit() < self.plan.writes_read_journal);
        if reads_journal {
            let node = self.node_of(player);
            self.journal_reads[node].waiting.push(player);
            self.start_journal_read(node);
        } else {
            self.be_current(player);
        }
    }

    /// Starts a journal read if a request or an event requires one and none is running.
    fn start_journal_read(&mut self, node: usize) {
        let ferry = &mut self.journal_reads[node];
        if ferry.away || (ferry.waiting.is_empty() && !self.was_notified[node]) {
            return;
        }
        ferry.away = true;
        ferry.under_way = std::mem::take(&mut ferry.waiting).into();
        self.was_notified[node] = false;
        self.work(Who::Node(node), self.plan.costs.journal_read / 2.0, Done::JournalRead(node, ReadStage::Asked));
    }

    /// Releases the next request that waited for the journal read. After the last request, starts the next journal
    /// read.
    fn let_go(&mut self, node: usize) {
        match self.journal_reads[node].under_way.pop_front() {
            Some(player) => {
                self.leaving[node] = Some(player);
                self.be_current(player);
            }
            None => {
                self.leaving[node] = None;
                self.journal_reads[node].away = false;
                self.start_journal_read(node);
            }
        }
    }

    /// Releases the next request of the node, if `player`'s request was released last.
    fn lets_go(&mut self, player: usize) {
        let node = self.node_of(player);
        if self.leaving[node] == Some(player) {
            self.let_go(node);
        }
    }

    /// Continues a request for which the node has current data.
    fn be_current(&mut self, player: usize) {
        let (node, cost) = (self.node_of(player), self.piece(player));
        let then = if GAME[self.players[player].step] { Done::Decided(player) } else { Done::Answered(player) };
        self.work(Who::Node(node), cost, then);
    }

    /// Starts a batch if there are commits and none is running.
    fn write(&mut self, node: usize) {
        let ferry = &mut self.batches[node];
        if ferry.away || ferry.waiting.is_empty() {
            return;
        }
        ferry.away = true;
        let gather = self.gather[node];
        if gather >= GATHER[0] {
            self.agenda.enter(self.now + gather, Event::Passed(Done::Batch(node, Batch::Gathered)));
        } else {
            self.go_on_with_batch(node, Batch::Gathered);
        }
    }

    /// Takes the waiting commits into a batch, and starts it.
    fn begin_batch(&mut self, node: usize) {
        let ferry = &mut self.batches[node];
        let taken = ferry.waiting.len().min(LARGEST_BATCH);
        ferry.under_way = ferry.waiting.drain(..taken).collect();
        match self.plan.store {
            Store::Inside => self.work(Who::Writer(node), self.stored(node).0, Done::Batch(node, Batch::Ordered)),
            Store::Own | Store::Shared => {
                self.work(Who::Node(node), self.plan.costs.batch / 3.0, Done::Batch(node, Batch::Asked));
            }
        }
    }

    /// Returns the costs of storing a node's running batch: before the serial part, and in it.
    fn stored(&self, node: usize) -> (f64, f64) {
        let Plan { costs, store, ordered, .. } = self.plan;
        let all = costs.batch_stored + costs.commit * self.batches[node].under_way.len() as f64;
        let ordered = if store == Store::Shared { all * ordered } else { 0.0 };
        (all - ordered, ordered)
    }

    /// Starts the next stage of a node's batch after the stage `so_far`.
    fn go_on_with_batch(&mut self, node: usize, so_far: Batch) {
        let Plan { costs, store, .. } = self.plan;
        let then = |next| Done::Batch(node, next);
        match so_far {
            Batch::Gathered => self.begin_batch(node),
            Batch::Asked => self.send(Who::Writer(node), self.stored(node).0 / 2.0, then(Batch::Read)),
            Batch::Read => self.send(Who::Node(node), costs.batch / 3.0, then(Batch::Planned)),
            Batch::Planned => self.send(Who::Writer(node), self.stored(node).0 / 2.0, then(Batch::Written)),
            Batch::Written if store == Store::Shared => {
                self.waiting.push_back((node, self.now));
                self.order();
            }
            Batch::Written | Batch::Ordered => {
                let flush = self.draw(costs.flush);
                if store != Store::Shared {
                    self.measured.ordered += flush;
                }
                self.agenda.enter(self.now + flush, Event::Passed(then(Batch::Durable)));
            }
            Batch::Durable => {
                if let Some(since) = self.ordering.take() {
                    self.measured.ordered += self.now - since;
                    self.order();
                }
                match store {
                    Store::Inside => self.go_on_with_batch(node, Batch::Received),
                    Store::Own | Store::Shared => self.send(Who::Node(node), costs.batch / 3.0, then(Batch::Received)),
                }
            }
            Batch::Received => {
                self.measured.batches += 1;
                let written = std::mem::take(&mut self.batches[node].under_way);
                self.batches[node].away = false;
                self.write(node);
                for player in written {
                    self.work(Who::Node(node), self.piece(player), Done::Answered(player));
                }
                if store == Store::Shared {
                    self.send(Who::Nats, costs.event, Done::Announced(node));
                }
            }
        }
    }

    /// Starts the serial part of the next batch, if no batch is in it.
    fn order(&mut self) {
        if self.ordering.is_some() {
            return;
        }
        if let Some((node, since)) = self.waiting.pop_front() {
            let few = self.batches[node].under_way.len() < GATHER_FROM;
            let worthwhile = if few { 0.0 } else { GATHER_TIMES * (self.now - since) };
            self.gather[node] = f64::midpoint(self.gather[node], worthwhile).min(GATHER[1]);
            self.ordering = Some(self.now);
            self.work(Who::Writer(node), self.stored(node).1, Done::Batch(node, Batch::Ordered));
        }
    }

    fn outcome(&self) -> SimulationResult {
        let SimulationCounters { games, latencies, journal_reads, batches, .. } = &self.measured;
        let time = self.now - self.measured.since;
        let per_game = |count: f64| count / (*games).max(1) as f64;
        let worked = |who: Who| self.place(who).map_or(0.0, |(machine, pool)| self.machines[machine].worked(pool));
        let nodes = || 0..self.journal_reads.len();
        let writers: f64 = nodes().map(|node| worked(Who::Writer(node))).sum();
        let lookers: f64 = nodes().map(|node| worked(Who::JournalReader(node))).sum();
        let inside = if self.plan.store == Store::Inside { writers } else { 0.0 };
        let node_us = nodes().map(|node| worked(Who::Node(node))).sum::<f64>() + inside;
        let database_us = writers - inside + lookers;
        let (client_us, nats_us) = (worked(Who::Clients), worked(Who::Nats));
        let busy = |worked: f64, cores: usize| worked / (time * cores as f64);
        let (nodes_busy, database_busy) = match self.plan.layout {
            Layout::OneMachine { cores, .. } => (busy(client_us + node_us + database_us + nats_us, cores), 0.0),
            Layout::Apart { nodes, node_cores, database_cores, .. } => {
                (busy(node_us, nodes * node_cores), busy(database_us, database_cores))
            }
        };
        SimulationResult {
            games_per_second: *games as f64 / time * 1e6,
            latency: latencies.summary(),
            mean_us: self.measured.waited / latencies.summary().count.max(1) as f64,
            journal_reads: per_game(*journal_reads as f64),
            batches: per_game(*batches as f64),
            client_us: per_game(client_us),
            node_us: per_game(node_us),
            database_us: per_game(database_us),
            nats_us: per_game(nats_us),
            nodes_busy,
            database_busy,
            order_busy: self.measured.ordered / time,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const COSTS: Costs = Costs {
        client: 10.0,
        read: 10.0,
        write: 30.0,
        journal_read: 20.0,
        journal_read_stored: 40.0,
        batch: 30.0,
        batch_stored: 100.0,
        commit: 5.0,
        event: 10.0,
        flush: 100.0,
        wake: 0.0,
        switch: 0.0,
    };

    fn plan(store: Store, nodes: usize, load: Load) -> Plan {
        let layout = Layout::OneMachine { cores: 2, nodes };
        Plan { costs: COSTS, store, writes_read_journal: 1.0, ordered: 0.25, layout, load }
    }

    #[track_caller]
    fn assert_near(is: f64, expected: f64) {
        assert!((is / expected - 1.0).abs() < 0.03, "{is} instead of {expected}");
    }

    #[test]
    fn a_request_of_one_player_takes_the_sum_of_all_costs() {
        let request = |of_node: f64| COSTS.client + of_node;
        let journal_read = COSTS.journal_read + COSTS.journal_read_stored;
        let stored = COSTS.batch_stored + COSTS.commit + COSTS.flush;
        let cases = [
            (Store::Inside, READS * request(COSTS.read) + WRITES * (request(COSTS.write) + stored)),
            (Store::Own, READS * request(COSTS.read) + WRITES * (request(COSTS.write) + stored + COSTS.batch)),
            (
                Store::Shared,
                READS * (request(COSTS.read) + journal_read)
                    + WRITES * (request(COSTS.write) + journal_read + stored + COSTS.batch),
            ),
        ];
        for (store, expected) in cases {
            let alone = simulate(plan(store, 1, Load::Closed(1)), 2_000);
            assert_near(1e6 / alone.games_per_second, expected);
            assert_near(alone.batches, WRITES);
            let journal_reads = if store == Store::Shared { READS + WRITES } else { 0.0 };
            assert!(
                (alone.journal_reads - journal_reads).abs() < 0.1,
                "{store:?}: {} journal reads",
                alone.journal_reads
            );
        }
    }

    #[test]
    fn wakeups_of_cores_and_threads_take_time() {
        let plan = plan(Store::Inside, 1, Load::Closed(1));
        let costs = Costs { wake: 50.0, switch: 20.0, ..COSTS };
        let (quick, slow) = (simulate(plan, 2_000), simulate(Plan { costs, ..plan }, 2_000));
        // For a read the client and the node wake up; for a write the client, the node, the writer, and the node again.
        let slept = READS * 2.0 + WRITES * 4.0;
        assert_near(1e6 / slow.games_per_second - 1e6 / quick.games_per_second, slept * 70.0);
        assert_near(slow.node_us + slow.client_us - quick.node_us - quick.client_us, slept * 20.0);
    }

    #[test]
    fn rate_times_latency_is_the_number_of_concurrent_requests() {
        // By Little's law, the number of concurrent requests is their rate times their mean latency.
        for store in [Store::Inside, Store::Own, Store::Shared] {
            let many = simulate(plan(store, 1, Load::Closed(32)), 2_000);
            let under_way = many.games_per_second * (READS + WRITES) * many.mean_us / 1e6;
            assert_near(under_way, 32.0);
        }
    }

    #[test]
    fn waiting_requests_share_the_next_journal_read() {
        let journal_reads =
            |connections| simulate(plan(Store::Shared, 1, Load::Closed(connections)), 2_000).journal_reads;
        let (one, few, many) = (journal_reads(1), journal_reads(8), journal_reads(128));
        assert!(few < one * 0.7 && many < one / 20.0, "{one}, {few} and {many} journal reads a game");
        let costs = Costs { journal_read_stored: 20_000.0, ..COSTS };
        let slow = simulate(Plan { costs, ..plan(Store::Shared, 1, Load::Closed(64)) }, 1_000);
        // A request that arrives during a journal read waits for the next one, so it takes one to two journal reads.
        assert!((20_000.0..45_000.0).contains(&slow.mean_us), "{slow:?}");
        assert!(slow.journal_reads * 64.0 < 2.2 * (READS + WRITES), "{slow:?}");
    }

    #[test]
    fn nodes_read_each_others_batches_and_commit_one_at_a_time() {
        let two = simulate(plan(Store::Shared, 2, Load::Closed(1)), 2_000);
        // The node without requests reads the journal once for each batch of the other node.
        assert_near(two.journal_reads, READS + WRITES + WRITES);
        let costs = Costs { flush: 2_000.0, ..COSTS };
        let layout = Layout::Apart { nodes: 8, node_cores: 4, database_cores: 16, way: 50.0 };
        let bound = simulate(Plan { costs, layout, ..plan(Store::Shared, 8, Load::Closed(256)) }, 2_000);
        assert!(bound.order_busy > 0.95 && bound.database_busy < 0.1, "{bound:?}");
        let per_second = bound.batches * bound.games_per_second;
        // The times are random, so the rate may be a little higher.
        assert!(per_second < 1.1 * 1e6 / 2_000.0, "{per_second} batches a second of 2 ms each");
    }

    #[test]
    fn processors_limit_the_throughput_of_many_players() {
        let many = simulate(plan(Store::Inside, 1, Load::Closed(256)), 4_000);
        // The lower bound omits the cost of batches, because a batch has many commits.
        let least = (READS + WRITES) * COSTS.client
            + READS * COSTS.read
            + WRITES * (COSTS.write + COSTS.commit)
            + many.batches * COSTS.batch_stored;
        assert_near(many.games_per_second * least / 2e6, 1.0);
        assert!(many.nodes_busy > 0.97 && many.batches < 0.7, "{many:?}");
    }

    #[test]
    fn the_database_limits_the_throughput_of_an_open_load() {
        let layout = Layout::Apart { nodes: 8, node_cores: 2, database_cores: 4, way: 100.0 };
        let light = simulate(Plan { layout, ..plan(Store::Own, 8, Load::Open(10_000.0)) }, 4_000);
        assert_near(light.games_per_second, 10_000.0);
        assert!(light.database_busy < 0.9 && light.latency.p50_us < 1_500.0, "{light:?}");
        // 7 commits a game at 5 µs are 28,571 games a second on one core at most.
        let layout = Layout::Apart { nodes: 8, node_cores: 4, database_cores: 1, way: 100.0 };
        let heavy = simulate(Plan { layout, ..plan(Store::Own, 8, Load::Closed(2_000)) }, 4_000);
        assert!(heavy.database_busy > 0.97 && heavy.games_per_second < 28_571.0, "{heavy:?}");
    }
}
