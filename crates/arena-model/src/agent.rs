//! Agents as plans describe them: how they are given states, and how their processes are confined.

use serde::{Deserialize, Serialize};

/// The keys under which an agent is given the state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Dialect {
    /// Under `world_state` and at the top level too, since agents in the wild read either.
    #[default]
    Both,
    /// Under `world_state` only, as the protocol says.
    Spec,
    /// At the top level only.
    Flat,
}

/// The confinement of an agent's processes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SandboxMode {
    /// By namespaces where the system allows them, else as in `NoNamespaces`.
    #[default]
    On,
    /// By namespaces, or else the agent doesn't start.
    Required,
    /// By Landlock, a filter of system calls and limits alone.
    NoNamespaces,
    /// Not at all, except for the limits; still nothing is left behind.
    Off,
}

/// Limits on an agent with all processes that it starts. A limit that is unset isn't in force.
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
