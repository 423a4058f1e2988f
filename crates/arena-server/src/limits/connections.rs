//! The registry of open connections. It limits them per address, reserves some for players and administrators, and
//! closes idle ones to accept new ones.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use axum::http::Extensions;
use hashlink::LinkedHashMap;
use parking_lot::Mutex;
use tokio::sync::Notify;

use super::memory::Memory;
use super::rates::{is_exempt, network_of};
use super::{AddressBudget, LimitSettings, TrustedProxies};

/// The registry of all open connections.
///
/// Requests and responses only write the connection's `idle_since`, without the registry's lock. The registry looks at
/// it when it needs an idle connection to close.
#[derive(Debug)]
pub(crate) struct Connections {
    registry: Mutex<Registry>,
    /// The number of times that connections became idle.
    idled: AtomicU64,
    memory: Arc<Memory>,
    /// Maximum number of connections.
    most: usize,
    /// Number of connections within `most` that are reserved for players and administrators.
    reserved: usize,
    /// Maximum number of connections per address; `None` means no limit.
    most_of_address: Option<usize>,
    limit_loopback: bool,
    /// Proxies, whose connections have no limit of their own.
    proxies: TrustedProxies,
}

#[derive(Debug, Default)]
struct Registry {
    last: u64,
    open: usize,
    addresses: HashMap<IpAddr, Address>,
    /// All connections. Those that the registry looked at last are at the end.
    all: LinkedHashMap<u64, Arc<Connection>>,
}

#[derive(Debug, Default)]
struct Address {
    open: usize,
    /// The address's connections. There are at most a few hundred, so the registry looks at each for the longest idle.
    all: HashMap<u64, Arc<Connection>>,
}

/// The maximum number of connections that the registry looks at to find an idle one. It bounds the cost of accepting a
/// connection on a full server.
const LOOKS: usize = 512;

/// The value of `idle_since` of a busy connection.
const BUSY: u64 = 0;

/// The value of `idle_since` of a connection that the registry closes. It never changes, so either the registry closes
/// an idle connection or a request is carried out on it, but not both.
const CLOSING: u64 = u64::MAX;

#[derive(Debug)]
pub(crate) struct Connection {
    number: u64,
    address: IpAddr,
    budget: AddressBudget,
    /// True if the connection was accepted from the reserve. The server closes such a connection after its first
    /// response unless the caller is a player or an administrator.
    is_reserve: bool,
    /// True if the caller is a player or has the administrator's token.
    is_known: AtomicBool,
    /// [`BUSY`] during a request. Otherwise a number that is greater the later the connection became idle.
    idle_since: AtomicU64,
    /// True if the registry has requested the close, or the connection has ended. The registry no longer counts it.
    is_closing: AtomicBool,
    closing: Notify,
}

/// A guard that counts a connection until it is dropped.
#[derive(Debug)]
pub(crate) struct ConnectionGuard {
    pub(crate) connection: Arc<Connection>,
    connections: Arc<Connections>,
}

impl Drop for ConnectionGuard {
    fn drop(&mut self) {
        self.connections.leave(&self.connection);
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ConnectionRefusal {
    Address,
    Server,
}

#[derive(Debug)]
pub(crate) struct ConnectionUse {
    pub(crate) open: usize,
    /// Maximum number of connections.
    pub(crate) most: usize,
    /// Maximum number of connections per address; `None` means no limit.
    pub(crate) most_of_address: Option<usize>,
    /// The number of open connections of each address that has some.
    pub(crate) addresses: Vec<(IpAddr, usize)>,
}

impl Connections {
    /// Creates an empty registry for at most `most` connections.
    pub(crate) fn new(limits: &LimitSettings, proxies: &TrustedProxies, most: usize) -> Connections {
        let quarter = (most / 4).max(1);
        let stalled = Duration::from_millis(limits.stalled_ms);
        let of_address = Some(limits.connections_per_address).filter(|most| *most > 0);
        Connections {
            registry: Mutex::default(),
            idled: AtomicU64::new(BUSY),
            memory: Arc::new(Memory::new(limits.waiting_bytes, limits.waiting_bytes_per_address, stalled)),
            most,
            reserved: limits.connections_reserved.min(most / 4),
            most_of_address: of_address.map(|most_of_address| most_of_address.min(quarter)),
            limit_loopback: limits.limit_loopback,
            proxies: proxies.clone(),
        }
    }

    pub(crate) fn memory(&self) -> &Arc<Memory> {
        &self.memory
    }

    pub(crate) fn in_use(&self) -> ConnectionUse {
        let registry = self.registry.lock();
        ConnectionUse {
            open: registry.open,
            most: self.most,
            most_of_address: self.most_of_address,
            addresses: registry.addresses.iter().map(|(address, own)| (*address, own.open)).collect(),
        }
    }

    /// Accepts a connection. At the limit per address, the registry first closes an idle connection of that address. At
    /// the server's limit it closes an idle connection of a caller that is neither a player nor an administrator.
    ///
    /// # Errors
    /// If the limit is reached and no idle connection can be closed.
    pub(crate) fn enter(self: &Arc<Connections>, peer: IpAddr) -> Result<ConnectionGuard, ConnectionRefusal> {
        let is_exempt = self.is_exempt(peer) || self.proxies.contain(peer);
        let address = network_of(peer);
        let mut registry = self.registry.lock();
        if let Some(most) = self.most_of_address.filter(|_| !is_exempt)
            && let Some(own) = registry.addresses.get(&address)
            && own.open >= most
        {
            let oldest = own.longest_idle().ok_or(ConnectionRefusal::Address)?;
            if !registry.request_close(&oldest) {
                return Err(ConnectionRefusal::Address);
            }
        }
        let mut is_reserve = false;
        if registry.open + self.reserved >= self.most {
            if let Some(oldest) = registry.long_idle() {
                registry.request_close(&oldest);
            }
            if registry.open >= self.most {
                return Err(ConnectionRefusal::Server);
            }
            // Even after the close, only connections of the reserve may be left.
            is_reserve = registry.open + self.reserved >= self.most && !is_exempt;
        }
        registry.last += 1;
        registry.open += 1;
        let number = registry.last;
        let own = registry.addresses.entry(address).or_default();
        own.open += 1;
        let idle_since = self.idled.fetch_add(1, Ordering::Relaxed) + 1;
        let connection = Arc::new(Connection {
            number,
            address,
            budget: if is_exempt { self.memory.common() } else { self.memory.budget_of(address) },
            is_reserve,
            is_known: AtomicBool::new(false),
            idle_since: AtomicU64::new(idle_since),
            is_closing: AtomicBool::new(false),
            closing: Notify::new(),
        });
        own.all.insert(number, Arc::clone(&connection));
        registry.all.insert(number, Arc::clone(&connection));
        Ok(ConnectionGuard { connection, connections: Arc::clone(self) })
    }

    pub(crate) fn budget_behind_proxy(&self, client: IpAddr) -> AddressBudget {
        if self.is_exempt(client) { self.memory.common() } else { self.memory.budget_of(network_of(client)) }
    }

    fn is_exempt(&self, address: IpAddr) -> bool {
        is_exempt(address, self.limit_loopback)
    }

    /// Marks a connection as busy when a request arrives.
    pub(crate) fn begin(&self, connection: &Connection) {
        connection.set_idle_since(BUSY);
    }

    /// Marks a connection as idle after a response.
    pub(crate) fn end(&self, connection: &Connection) {
        connection.set_idle_since(self.idled.fetch_add(1, Ordering::Relaxed) + 1);
    }

    fn leave(&self, connection: &Connection) {
        let mut registry = self.registry.lock();
        if !connection.is_closing.swap(true, Ordering::Relaxed) {
            registry.remove(connection);
        }
    }
}

impl Registry {
    /// Requests the close of an idle connection and stops counting it. Returns false if a request has arrived on it.
    fn request_close(&mut self, connection: &Connection) -> bool {
        if !connection.set_idle_since(CLOSING) {
            return false;
        }
        if !connection.is_closing.swap(true, Ordering::Relaxed) {
            self.remove(connection);
        }
        connection.closing.notify_one();
        true
    }

    fn remove(&mut self, connection: &Connection) {
        self.all.remove(&connection.number);
        self.open -= 1;
        if let Some(own) = self.addresses.get_mut(&connection.address) {
            own.all.remove(&connection.number);
            own.open -= 1;
            if own.open == 0 {
                self.addresses.remove(&connection.address);
            }
        }
    }

    /// Returns the longest idle connection of callers that are neither players nor administrators, among the next
    /// [`LOOKS`] connections.
    fn long_idle(&mut self) -> Option<Arc<Connection>> {
        let mut found: Option<(u64, u64)> = None;
        for _ in 0..LOOKS.min(self.all.len()) {
            let (number, connection) = self.all.pop_front()?;
            if let Some(since) = connection.idle_since().filter(|_| !connection.is_known()) {
                found = Some(found.map_or((since, number), |longest| longest.min((since, number))));
            }
            self.all.insert(number, connection);
        }
        found.and_then(|(_, number)| self.all.get(&number).cloned())
    }
}

impl Address {
    fn longest_idle(&self) -> Option<Arc<Connection>> {
        let idle = self.all.values().filter_map(|connection| Some((connection.idle_since()?, connection)));
        idle.min_by_key(|(since, _)| *since).map(|(_, connection)| Arc::clone(connection))
    }
}

impl Connection {
    /// Returns a number that is greater the later the connection became idle; `None` if it is busy.
    fn idle_since(&self) -> Option<u64> {
        Some(self.idle_since.load(Ordering::Relaxed)).filter(|since| ![BUSY, CLOSING].contains(since))
    }

    /// Returns false if the registry closes the connection. A busy connection can't begin to close.
    fn set_idle_since(&self, value: u64) -> bool {
        let allowed = |now: u64| (now != CLOSING && !(now == BUSY && value == CLOSING)).then_some(value);
        self.idle_since.fetch_update(Ordering::AcqRel, Ordering::Acquire, allowed).is_ok()
    }

    /// Marks the caller as a player or an administrator.
    pub(crate) fn mark_known(&self) {
        self.is_known.store(true, Ordering::Relaxed);
    }

    pub(crate) fn is_known(&self) -> bool {
        self.is_known.load(Ordering::Relaxed)
    }

    /// True if the connection is from the reserve, which shortens the timeout for headers.
    pub(crate) fn is_reserve(&self) -> bool {
        self.is_reserve
    }

    /// True if the connection is from the reserve and its caller is neither a player nor an administrator. Such a
    /// connection closes after its first response and can't use long polls.
    pub(crate) fn is_brief(&self) -> bool {
        self.is_reserve && !self.is_known()
    }

    /// True if the registry has requested the close, or the connection has ended. The registry no longer counts it.
    pub(crate) fn is_closing(&self) -> bool {
        self.is_closing.load(Ordering::Relaxed) || self.idle_since.load(Ordering::Acquire) == CLOSING
    }

    /// Waits until the registry requests the close of the connection.
    pub(crate) async fn closing(&self) {
        self.closing.notified().await;
    }
}

#[derive(Debug, Clone)]
pub(crate) struct RequestConnection {
    pub(crate) connection: Arc<Connection>,
    /// The memory budget of the client's address.
    pub(crate) budget: AddressBudget,
    /// True if the response is written to the connection. False if an MCP tool calls the route: the response then
    /// becomes part of the tool's response.
    pub(crate) is_written_to_connection: bool,
    /// True if the connection's listener serves administration and metrics.
    pub(crate) has_administration: bool,
}

impl RequestConnection {
    pub(crate) fn new(connection: &Arc<Connection>, has_administration: bool) -> RequestConnection {
        let budget = connection.budget.clone();
        RequestConnection {
            connection: Arc::clone(connection),
            budget,
            is_written_to_connection: true,
            has_administration,
        }
    }

    /// Returns the connection of a request; `None` only in tests that call the router without a socket.
    pub(crate) fn of(extensions: &Extensions) -> Option<RequestConnection> {
        extensions.get::<RequestConnection>().cloned()
    }

    /// Returns the memory budget for the response's bytes; `None` if the response isn't written to the connection.
    pub(crate) fn response_budget(&self) -> Option<&AddressBudget> {
        self.is_written_to_connection.then_some(&self.budget)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn connections(most: usize, change: impl FnOnce(&mut LimitSettings)) -> Arc<Connections> {
        let mut limits =
            LimitSettings { connections_per_address: 3, connections_reserved: 2, ..LimitSettings::default() };
        change(&mut limits);
        Arc::new(Connections::new(&limits, &TrustedProxies::default(), most))
    }

    fn enter(connections: &Arc<Connections>, address: &str) -> Result<ConnectionGuard, ConnectionRefusal> {
        connections.enter(address.parse().expect("an address"))
    }

    fn is_closing(guard: &ConnectionGuard) -> bool {
        use futures_util::FutureExt;
        guard.connection.closing().now_or_never().is_some()
    }

    #[test]
    fn an_address_has_a_share_and_its_idle_connections_make_room() {
        let connections = connections(100, |_| {});
        let all: Vec<_> = (0..3).map(|_| enter(&connections, "192.0.2.1").expect("room")).collect();
        connections.begin(&all[0].connection);
        let fourth = enter(&connections, "192.0.2.1").expect("an idle one makes room");
        assert_eq!(all.iter().map(is_closing).collect::<Vec<_>>(), [false, true, false]);
        for busy in [&all[2], &fourth] {
            connections.begin(&busy.connection);
        }
        assert_eq!(enter(&connections, "192.0.2.1").err(), Some(ConnectionRefusal::Address));
        assert!(enter(&connections, "192.0.2.2").is_ok());
        connections.end(&fourth.connection);
        assert!(enter(&connections, "192.0.2.1").is_ok() && is_closing(&fourth));
        // Connections from loopback have no limit per address.
        let near: Vec<_> = (0..20).map_while(|_| enter(&connections, "127.0.0.1").ok()).collect();
        assert_eq!(near.len(), 20);
        drop((all, fourth, near));
        assert_eq!(connections.registry.lock().open, 0);
        assert!(connections.registry.lock().addresses.is_empty());
    }

    #[test]
    fn clients_behind_a_proxy_have_shares_of_memory_and_the_proxy_has_no_limit() {
        let limits = LimitSettings {
            waiting_bytes_per_address: 64 * 1024,
            connections_per_address: 3,
            ..LimitSettings::default()
        };
        let proxies = TrustedProxies::new(vec!["192.0.2.1".parse().expect("a range")]);
        let connections = Arc::new(Connections::new(&limits, &proxies, 100));
        let all: Vec<_> = (0..20).map_while(|_| enter(&connections, "192.0.2.1").ok()).collect();
        all.iter().for_each(|guard| connections.begin(&guard.connection));
        assert_eq!(all.len(), 20);
        let hold =
            |client: &str| connections.budget_behind_proxy(client.parse().expect("an address")).try_hold(64 * 1024);
        let held = hold("203.0.113.5").expect("the whole share");
        // Housekeeping keeps a budget of which memory is reserved.
        connections.memory().forget_idle();
        assert!(hold("203.0.113.5").is_none());
        assert!(hold("203.0.113.6").is_some());
        drop(held);
        assert!(hold("203.0.113.5").is_some());
    }

    #[test]
    fn a_close_and_a_request_exclude_each_other() {
        let connections = connections(100, |_| {});
        let ConnectionGuard { connection, .. } = &enter(&connections, "192.0.2.1").expect("room");
        connections.begin(connection);
        assert!(!connections.registry.lock().request_close(connection) && !connection.is_closing());
        connections.end(connection);
        assert!(connections.registry.lock().request_close(connection));
        // A request that arrives now is refused, and changes nothing.
        connections.begin(connection);
        assert!(connection.is_closing());
        connections.end(connection);
        assert!(connection.is_closing() && connection.idle_since().is_none());
    }

    #[test]
    fn strangers_make_room_for_others_and_players_do_not() {
        let connections = connections(8, |limits| limits.connections_per_address = 0);
        let all: Vec<_> = (0..6).map(|n| enter(&connections, &format!("192.0.2.{n}")).expect("room")).collect();
        for known in &all[..2] {
            connections.begin(&known.connection);
            known.connection.mark_known();
            connections.end(&known.connection);
        }
        for streaming in &all[2..5] {
            connections.begin(&streaming.connection);
        }
        let next = enter(&connections, "192.0.2.9").expect("the idle stranger makes room");
        assert!(is_closing(&all[5]) && !next.connection.is_reserve());
        connections.begin(&next.connection);
        let idle = enter(&connections, "192.0.2.8").expect("the reserve");
        let late = [(); 2].map(|()| {
            let late = enter(&connections, "192.0.2.9").expect("the reserve");
            connections.begin(&late.connection);
            late
        });
        assert!(is_closing(&idle) && late.iter().all(|late| late.connection.is_brief()));
        late[0].connection.mark_known();
        assert!(!late[0].connection.is_brief());
        assert_eq!(enter(&connections, "192.0.2.10").err(), Some(ConnectionRefusal::Server));
        assert!(!all[..5].iter().any(is_closing));
    }

    #[test]
    fn an_address_never_has_more_than_a_quarter() {
        let connections = connections(40, |limits| {
            limits.connections_per_address = 1000;
            limits.connections_reserved = 1000;
        });
        let all: Vec<_> = (0..10).map(|_| enter(&connections, "2001:db8::1").expect("room")).collect();
        all.iter().for_each(|guard| connections.begin(&guard.connection));
        assert_eq!(enter(&connections, "2001:db8::2").err(), Some(ConnectionRefusal::Address));
        assert_eq!((connections.reserved, connections.most_of_address), (10, Some(10)));
    }
}
