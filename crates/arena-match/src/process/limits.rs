//! What an agent may use.

use serde::{Deserialize, Serialize};

/// What an agent and all processes it starts may use. A limit that is unset isn't in force.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Limits {
    /// Memory of all processes of the agent together, in bytes: resident, in swap, in tables of pages, and with
    /// namespaces what fits into the sockets beyond some dozens; also the private writable memory of each of them. Who
    /// asks for more than that gets none, and an agent whose processes exceed it together is ended.
    pub memory_bytes: Option<u64>,
    /// Processes and threads at one time.
    pub processes: Option<u32>,
    /// Open files of each process.
    pub open_files: Option<u32>,
    /// Size of any file it writes, in bytes; with namespaces also of all of them together.
    pub file_size_bytes: Option<u64>,
}

impl Limits {
    /// No limits at all.
    pub const NONE: Limits = Limits { memory_bytes: None, processes: None, open_files: None, file_size_bytes: None };
}

impl Default for Limits {
    /// Enough for an interpreter with a model of moderate size: node alone has a dozen threads.
    fn default() -> Limits {
        Limits {
            memory_bytes: Some(1 << 30),
            processes: Some(64),
            open_files: Some(256),
            file_size_bytes: Some(64 << 20),
        }
    }
}
