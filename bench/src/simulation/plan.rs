//! The input of a simulation: costs, layout and load; and its results.

use serde::{Deserialize, Serialize};

use crate::latency::LatencySummary;

/// The costs: processor time, or pure waiting time. All in microseconds.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct Costs {
    /// The client's processor time per request.
    pub client: f64,
    /// The node's processor time per read.
    pub read: f64,
    /// The node's processor time per write.
    pub write: f64,
    /// The node's processor time per look at the journal.
    pub look: f64,
    /// The database's processor time per look.
    pub look_stored: f64,
    /// The node's processor time per batch.
    pub batch: f64,
    /// The writer's processor time per batch, in the database or in the node.
    pub batch_stored: f64,
    /// The writer's processor time per commit.
    pub commit: f64,
    /// The processor time of NATS per batch.
    pub event: f64,
    /// The time until a batch is on disk.
    pub flush: f64,
    /// The time until an idle core works.
    pub wake: f64,
    /// The additional processor time of a thread that has slept.
    pub switch: f64,
}

/// The store between nodes and the disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Store {
    /// A thread of the node.
    Inside,
    /// A database for one node.
    Own,
    /// A database that nodes share.
    Shared,
}

/// The placement on machines.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Layout {
    /// Clients, nodes and the store share one machine.
    OneMachine { cores: usize, nodes: usize },
    /// Each node has a machine, the database and NATS too, and clients cost nothing.
    Apart {
        nodes: usize,
        node_cores: usize,
        database_cores: usize,
        /// The time of a message between machines, in microseconds.
        way: f64,
    },
}

/// The load from clients.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Load {
    /// A number of connections, each playing game after game.
    Closed(usize),
    /// A number of games that start each second, evenly spaced.
    Open(f64),
}

/// The configuration of a simulation.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Plan {
    pub costs: Costs,
    pub store: Store,
    /// The share of writes that look at the journal first; reads always do if a database is shared.
    pub writes_look: f64,
    /// The share of a batch's work in the database that is done in the order of the journal.
    pub ordered: f64,
    /// The placement on machines.
    pub layout: Layout,
    /// The load from clients.
    pub load: Load,
}

/// The results of a simulation.
#[derive(Debug, Clone, Copy)]
pub struct Outcome {
    /// The number of finished games per second.
    pub games_per_second: f64,
    /// The latencies of all requests.
    pub latency: LatencySummary,
    /// Their mean, in microseconds.
    pub mean_us: f64,
    /// The number of looks at the journal per game.
    pub looks: f64,
    /// The number of batches per game.
    pub batches: f64,
    /// The clients' processor time per game, in microseconds.
    pub client_us: f64,
    /// The nodes' processor time per game, in microseconds.
    pub node_us: f64,
    /// The database's processor time per game, in microseconds.
    pub database_us: f64,
    /// The processor time of NATS per game, in microseconds.
    pub nats_us: f64,
    /// The share of time in which nodes' processors work (all processors, on one machine).
    pub nodes_busy: f64,
    /// The share of time in which the database's processors work; none on one machine.
    pub database_busy: f64,
    /// The share of time in which a batch is in the order of the journal; without a shared one, in which the disk
    /// writes.
    pub order_busy: f64,
}
