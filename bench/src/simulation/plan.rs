//! What is simulated: what things cost, where they run, what clients do; and what comes of it.

use serde::{Deserialize, Serialize};

use crate::latency::LatencySummary;

/// What things cost: processor time, or time that is only waited. All in microseconds.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct Costs {
    /// The client's processor, per request.
    pub client: f64,
    /// The node's processor, per read.
    pub read: f64,
    /// The node's processor, per write.
    pub write: f64,
    /// The node's processor, per look at the journal.
    pub look: f64,
    /// The database's processor, per look.
    pub look_stored: f64,
    /// The node's processor, per batch.
    pub batch: f64,
    /// The processor of whoever stores, per batch.
    pub batch_stored: f64,
    /// The processor of whoever stores, per commit.
    pub commit: f64,
    /// The processor of NATS, per batch.
    pub event: f64,
    /// Until the disk has a batch.
    pub flush: f64,
    /// Until an idle core works.
    pub wake: f64,
    /// The processor of whoever has slept, before it works.
    pub switch: f64,
}

/// What stands between nodes and the disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Store {
    /// A thread of the node.
    Inside,
    /// A database that the node has for itself.
    Own,
    /// A database that it shares.
    Shared,
}

/// Where things run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Layout {
    /// Clients, nodes and whatever stores share one machine.
    OneMachine {
        /// How many cores they share.
        cores: usize,
        /// How many nodes there are.
        nodes: usize,
    },
    /// Each node has a machine, the database and NATS too, and clients cost nothing.
    Apart {
        /// How many nodes there are.
        nodes: usize,
        /// Cores of each.
        node_cores: usize,
        /// Cores of the database.
        database_cores: usize,
        /// How long a message between them is on its way, in microseconds.
        way: f64,
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

/// What there is, and what it is used for.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Plan {
    /// What things cost.
    pub costs: Costs,
    /// Who stores.
    pub store: Store,
    /// Which share of the writes looks at the journal first; reads all do, where a database is shared.
    pub writes_look: f64,
    /// Which share of a batch's work in the database is done in the order of the journal.
    pub ordered: f64,
    /// Where things run.
    pub layout: Layout,
    /// What clients do.
    pub load: Load,
}

/// What comes of it.
#[derive(Debug, Clone, Copy)]
pub struct Outcome {
    /// Games that ended, per second.
    pub games_per_second: f64,
    /// Of all requests.
    pub latency: LatencySummary,
    /// Their mean latency, in microseconds.
    pub mean_us: f64,
    /// Looks at the journal, per game.
    pub looks: f64,
    /// Batches, per game.
    pub batches: f64,
    /// What the clients' processors work per game, in microseconds.
    pub client_us: f64,
    /// The nodes'.
    pub node_us: f64,
    /// The database's.
    pub database_us: f64,
    /// NATS's.
    pub nats_us: f64,
    /// Share of the time in which nodes' processors work (all processors, on one machine).
    pub nodes_busy: f64,
    /// Share of the time in which the database's processors work; none on one machine.
    pub database_busy: f64,
    /// Share of the time in which a batch is in the order of the journal; where none is shared, in which the disk writes.
    pub order_busy: f64,
}
