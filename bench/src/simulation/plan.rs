//! The input of a simulation: costs, layout and load; and its results.

use serde::{Deserialize, Serialize};

use crate::latency::LatencySummary;

/// The costs in microseconds. Each is processor time, except for the waiting times `flush` and `wake`.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct Costs {
    /// The client's processor time per request.
    pub client: f64,
    /// The node's processor time per read.
    pub read: f64,
    /// The node's processor time per write.
    pub write: f64,
    /// The node's processor time per journal read.
    #[serde(rename = "look")]
    pub journal_read: f64,
    /// The database's processor time per journal read.
    #[serde(rename = "look_stored")]
    pub journal_read_stored: f64,
    /// The node's processor time per batch.
    pub batch: f64,
    /// The writer's processor time per batch, in the database or in the node.
    pub batch_stored: f64,
    /// The writer's processor time per commit.
    pub commit: f64,
    /// The processor time of NATS per batch.
    pub event: f64,
    /// The waiting time until a batch is on disk.
    pub flush: f64,
    /// The waiting time until an idle core has woken up.
    pub wake: f64,
    /// The additional processor time of a thread that has slept.
    pub switch: f64,
}

/// The kind of store.
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
    /// Each node, the database and NATS have their own machines. Clients cost nothing.
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
    /// The share of writes that read the journal first. If nodes share a database, all reads do this.
    pub writes_read_journal: f64,
    /// The serial part of a batch: its share of the batch's work in the database.
    pub ordered: f64,
    /// The placement on machines.
    pub layout: Layout,
    /// The load from clients.
    pub load: Load,
}

/// The results of a simulation.
#[derive(Debug, Clone, Copy)]
pub struct SimulationResult {
    /// The number of finished games per second.
    pub games_per_second: f64,
    /// The latencies of all requests.
    pub latency: LatencySummary,
    /// The mean latency of all requests, in microseconds.
    pub mean_us: f64,
    /// The number of journal reads per game.
    pub journal_reads: f64,
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
    /// The share of time in which the nodes' processors work. On one machine, all processors count.
    pub nodes_busy: f64,
    /// The share of time in which the database's processors work. On one machine, this is 0.
    pub database_busy: f64,
    /// The share of time in which a batch is in the serial part. Without a shared database, the share of time in which
    /// the disk writes.
    pub order_busy: f64,
}
