//! The limits of callers: connections, requests, memory, and what each address stores and computes. This folder imports
//! no other part of the server but the form of its errors.

mod connections;
mod disk;
mod ledger;
pub(crate) mod memory;
mod proxies;
mod rates;

use std::num::NonZeroU16;

use serde::Deserialize;

pub(crate) use connections::{Connection, ConnectionGuard, ConnectionRefusal, Connections, RequestConnection};
pub(crate) use disk::{check_disk, free_bytes};
pub(crate) use ledger::{Ledger, LedgerUse, SESSION, Share, StreamPlace};
pub(crate) use memory::{AddressBudget, NoMemory, Reservation, ReservesMemory};
pub(crate) use proxies::client_of;
pub use proxies::{ClientHeader, TrustedProxies};
pub(crate) use rates::{Rates, network_of};

/// Limits on requests, connections and memory: `[limits]` in `arena.toml`.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct LimitSettings {
    /// Maximum size of a request body, in bytes.
    pub body_bytes: usize,
    /// Maximum size of a message's content, in bytes.
    pub message_bytes: usize,
    /// Maximum size of an imported session with its messages, in bytes. An import's total size is not limited, since it
    /// holds only a few sessions in memory at a time.
    pub import_bytes: usize,
    /// Maximum number of messages in a channel.
    pub channel_messages: u64,
    /// Maximum size of a session's chat, in bytes.
    pub chat_bytes: u64,
    /// Maximum sustained number of requests per second and address. Each full 16 KiB of a JSON body or form counts as
    /// one more request. 0 means no limit.
    pub requests_per_second: u32,
    /// Maximum number of requests per address in a burst, after which `requests_per_second` applies.
    pub requests_burst: u32,
    /// Maximum sustained number of actions and chat messages per second and player. 0 means no limit.
    pub writes_per_second: u32,
    /// Maximum number of these writes per player in a burst, after which `writes_per_second` applies.
    pub writes_burst: u32,
    /// True if the limits per address and per player also apply to clients on this machine. If false, only the total
    /// limits of connections and memory apply to these clients.
    pub limit_loopback: bool,
    /// Free space on the disk of the data folder, in bytes, that is kept for games that have begun. With less, new
    /// sessions, uploads and tournaments are refused. 0 means no reserve.
    pub disk_reserve_bytes: u64,
    /// Maximum number of bytes that each address may store within a day. Moves and chat may use twice as many. 0 means no
    /// limit.
    pub stored_bytes_per_address: u64,
    /// Computing time of rules and matches that each address gets per second, in milliseconds. Joins, moves and chat get
    /// twice as much. 0 means no limit.
    pub computing_ms_per_second: u32,
    /// Computing time of an address in a burst, in milliseconds, after which `computing_ms_per_second` applies.
    pub computing_burst_ms: u32,
    /// Maximum number of sessions per address that the address has created and that haven't ended. 0 means no limit.
    pub running_sessions_per_address: usize,
    /// Maximum number of places in queues per address. 0 means no limit.
    pub tickets_per_address: u32,
    /// Maximum number of open streams per address, so that connections are left for moves. 0 means no limit.
    pub streams_per_address: usize,
    /// Maximum number of connections.
    pub connections: usize,
    /// Maximum number of connections per address, at most a quarter of `connections`. 0 means no limit.
    pub connections_per_address: usize,
    /// Number of connections reserved for players and administrators, at most a quarter of `connections`. Other clients
    /// get only one response on such a connection.
    pub connections_reserved: usize,
    /// Maximum memory for large responses and requests of slow clients, in bytes. The first 32 KiB of each connection
    /// don't count.
    pub waiting_bytes: usize,
    /// Maximum part of `waiting_bytes` per address, in bytes. 0 means no limit.
    pub waiting_bytes_per_address: usize,
    /// Time in milliseconds after which a connection is closed if the client doesn't read the response.
    pub stalled_ms: u64,
    /// Maximum number of queued signature checks, in authentication mode. A check takes about 0.1 ms.
    pub signature_queue: NonZeroU16,
    /// Time limit for receiving a request, in milliseconds. In an import it applies to each received piece of the body.
    pub request_ms: u64,
    /// Time in milliseconds for which a stopping server continues to serve while `/ready` reports `STOPPING`, so that
    /// load balancers can move requests to other nodes.
    pub drain_ms: u64,
    /// Time limit for running requests when the server stops, in milliseconds.
    pub shutdown_ms: u64,
}

impl Default for LimitSettings {
    fn default() -> Self {
        LimitSettings {
            body_bytes: 1024 * 1024,
            message_bytes: 1024 * 1024,
            import_bytes: 64 * 1024 * 1024,
            channel_messages: 1_000_000,
            chat_bytes: 4 * 1024 * 1024,
            requests_per_second: 100,
            requests_burst: 400,
            writes_per_second: 20,
            writes_burst: 100,
            limit_loopback: false,
            disk_reserve_bytes: 256 * 1024 * 1024,
            stored_bytes_per_address: 4 * 1024 * 1024 * 1024,
            computing_ms_per_second: 500,
            computing_burst_ms: 10_000,
            running_sessions_per_address: 1_000,
            tickets_per_address: 16,
            streams_per_address: 500,
            connections: 50_000,
            connections_per_address: 1_000,
            connections_reserved: 500,
            waiting_bytes: 256 * 1024 * 1024,
            waiting_bytes_per_address: 32 * 1024 * 1024,
            stalled_ms: 30_000,
            signature_queue: const { NonZeroU16::new(256).expect("not 0") },
            request_ms: 30_000,
            drain_ms: 0,
            shutdown_ms: 10_000,
        }
    }
}
