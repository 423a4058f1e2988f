//! Agent settings of tournament and batch plans: the state's keys, the sandbox mode and resource limits.

use serde::{Deserialize, Serialize};

/// The keys of a request under which an agent receives the state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Dialect {
    /// Under `world_state` and at the top level, because some existing agents read only one of the two places.
    #[default]
    Both,
    /// Under `world_state` only, as the protocol specifies.
    Spec,
    /// At the top level only.
    Flat,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SandboxMode {
    /// Namespaces if the system allows them; otherwise the same as `NoNamespaces`.
    #[default]
    On,
    /// Namespaces. If the system has none, the agent doesn't start.
    Required,
    /// Landlock, a system call filter and resource limits, without namespaces.
    NoNamespaces,
    /// Resource limits only. The agent's processes are still removed at the end.
    Off,
}

/// Resource limits of an agent, over all processes that it starts. `None` means no limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Limits {
    /// The memory of all processes of the agent together, in bytes: resident memory, swap, page tables and, with
    /// namespaces, the buffers of all sockets beyond a few dozen. The private writable memory of each process has the
    /// same limit. An allocation above the limit fails; if the processes exceed the limit together, the agent is ended.
    pub memory_bytes: Option<u64>,
    /// The number of processes and threads at one time.
    pub processes: Option<u32>,
    /// The number of open files of each process.
    pub open_files: Option<u32>,
    /// The size of any file that the agent writes, in bytes. With namespaces, also the size of all these files
    /// together.
    pub file_size_bytes: Option<u64>,
}

impl Limits {
    pub const NONE: Limits = Limits { memory_bytes: None, processes: None, open_files: None, file_size_bytes: None };
}

impl Default for Limits {
    /// Limits for an interpreter with a model of moderate size. Node.js alone starts a dozen threads.
    fn default() -> Limits {
        Limits {
            memory_bytes: Some(1 << 30),
            processes: Some(64),
            open_files: Some(256),
            file_size_bytes: Some(64 << 20),
        }
    }
}
