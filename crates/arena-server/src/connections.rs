//! The connections that are open: a share for each address, a reserve for players and administrators, and idle ones that make room.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use axum::http::Extensions;
use hashlink::LinkedHashMap;
use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::memory::{Memory, Share};
use crate::rates::household;
use crate::settings::LimitSettings;

/// All open connections.
#[derive(Debug)]
pub(crate) struct Connections {
    registry: Mutex<Registry>,
    memory: Arc<Memory>,
    /// Most connections.
    most: usize,
    /// Connections of `most` that are kept for players and administrators.
    reserved: usize,
    /// Most connections of one address; unset is no limit.
    most_of_address: Option<usize>,
    limit_loopback: bool,
}

#[derive(Debug, Default)]
struct Registry {
    last: u64,
    open: usize,
    addresses: HashMap<IpAddr, Address>,
    /// Connections of strangers without a request, the longest idle first.
    idle: LinkedHashMap<u64, Arc<Connection>>,
}

#[derive(Debug)]
struct Address {
    open: usize,
    share: Share,
    /// Its connections without a request, the longest idle first.
    idle: LinkedHashMap<u64, Arc<Connection>>,
}

/// One connection.
#[derive(Debug)]
pub(crate) struct Connection {
    number: u64,
    address: IpAddr,
    share: Share,
    /// Taken from the reserve: unless its caller turns out to be a player or an administrator, it ends with its first answer.
    is_reserve: bool,
    /// Its caller has shown a seat, or the administrator's token.
    is_known: AtomicBool,
    /// It has been told to end, and isn't counted any more.
    is_told: AtomicBool,
    told: Notify,
}

/// A connection that is counted until this is dropped.
#[derive(Debug)]
pub(crate) struct Entered {
    pub(crate) connection: Arc<Connection>,
    connections: Arc<Connections>,
}

impl Drop for Entered {
    fn drop(&mut self) {
        self.connections.leave(&self.connection);
    }
}

/// The reason why a connection isn't taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Full {
    /// Its address has as many as one address may have.
    Address,
    /// There are as many as there may be.
    Server,
}

impl Connections {
    /// No connections yet; there may be `most` of them.
    pub(crate) fn new(limits: &LimitSettings, most: usize) -> Connections {
        let quarter = (most / 4).max(1);
        let stalled = Duration::from_millis(limits.stalled_ms);
        let of_address = Some(limits.connections_per_address).filter(|most| *most > 0);
        Connections {
            registry: Mutex::default(),
            memory: Arc::new(Memory::new(limits.waiting_bytes, limits.waiting_bytes_per_address, stalled)),
            most,
            reserved: limits.connections_reserved.min(most / 4),
            most_of_address: of_address.map(|most_of_address| most_of_address.min(quarter)),
            limit_loopback: limits.limit_loopback,
        }
    }

    /// The memory that connections share.
    pub(crate) fn memory(&self) -> &Memory {
        &self.memory
    }

    /// Takes a connection. If there is no room, an idle one is told to end: the address's own, or else a stranger's.
    ///
    /// # Errors
    /// If there is no room and none can be made.
    pub(crate) fn enter(self: &Arc<Connections>, peer: IpAddr) -> Result<Entered, Full> {
        let is_exempt = peer.to_canonical().is_loopback() && !self.limit_loopback;
        let address = household(peer);
        let mut registry = self.registry.lock();
        if let Some(most) = self.most_of_address.filter(|_| !is_exempt)
            && let Some(own) = registry.addresses.get(&address)
            && own.open >= most
        {
            let oldest = own.idle.values().next().cloned().ok_or(Full::Address)?;
            registry.tell(&oldest);
        }
        let mut is_reserve = false;
        if registry.open + self.reserved >= self.most {
            if let Some(oldest) = registry.idle.values().next().cloned() {
                registry.tell(&oldest);
            }
            if registry.open >= self.most {
                return Err(Full::Server);
            }
            // Unless the one that makes room was itself taken from the reserve.
            is_reserve = registry.open + self.reserved >= self.most && !is_exempt;
        }
        registry.last += 1;
        registry.open += 1;
        let number = registry.last;
        let memory = &self.memory;
        let own = registry.addresses.entry(address).or_insert_with(|| {
            let share = if is_exempt { memory.common() } else { memory.share() };
            Address { open: 0, share, idle: LinkedHashMap::new() }
        });
        own.open += 1;
        let connection = Arc::new(Connection {
            number,
            address,
            share: own.share.clone(),
            is_reserve,
            is_known: AtomicBool::new(false),
            is_told: AtomicBool::new(false),
            told: Notify::new(),
        });
        registry.rest(&connection);
        Ok(Entered { connection, connections: Arc::clone(self) })
    }

    /// Notes that a request has come on a connection.
    pub(crate) fn begin(&self, connection: &Connection) {
        self.registry.lock().wake(connection);
    }

    /// Notes that a request has been answered: the connection is idle again.
    pub(crate) fn end(&self, connection: &Arc<Connection>) {
        self.registry.lock().rest(connection);
    }

    fn leave(&self, connection: &Connection) {
        let mut registry = self.registry.lock();
        if !connection.is_told.swap(true, Ordering::Relaxed) {
            registry.forget(connection);
        }
    }
}

impl Registry {
    /// Tells a connection to end, and counts it no more.
    fn tell(&mut self, connection: &Connection) {
        if !connection.is_told.swap(true, Ordering::Relaxed) {
            self.forget(connection);
        }
        connection.told.notify_one();
    }

    fn forget(&mut self, connection: &Connection) {
        self.wake(connection);
        self.open -= 1;
        if let Some(own) = self.addresses.get_mut(&connection.address) {
            own.open -= 1;
            // Room that its bytes still take is given back to the total all the same.
            if own.open == 0 {
                self.addresses.remove(&connection.address);
            }
        }
    }

    fn rest(&mut self, connection: &Arc<Connection>) {
        if connection.is_told.load(Ordering::Relaxed) {
            return;
        }
        if let Some(own) = self.addresses.get_mut(&connection.address) {
            own.idle.insert(connection.number, Arc::clone(connection));
        }
        if !connection.is_known() {
            self.idle.insert(connection.number, Arc::clone(connection));
        }
    }

    fn wake(&mut self, connection: &Connection) {
        self.idle.remove(&connection.number);
        if let Some(own) = self.addresses.get_mut(&connection.address) {
            own.idle.remove(&connection.number);
        }
    }
}

impl Connection {
    /// The part of memory that its address may take.
    pub(crate) fn share(&self) -> &Share {
        &self.share
    }

    /// Notes that its caller has shown a seat, or the administrator's token.
    pub(crate) fn know(&self) {
        self.is_known.store(true, Ordering::Relaxed);
    }

    pub(crate) fn is_known(&self) -> bool {
        self.is_known.load(Ordering::Relaxed)
    }

    /// True if it was taken from the reserve: its head has to come soon.
    pub(crate) fn is_reserve(&self) -> bool {
        self.is_reserve
    }

    /// True if it was taken from the reserve and its caller has shown nothing: it ends with its first answer, and nothing on it waits.
    pub(crate) fn is_brief(&self) -> bool {
        self.is_reserve && !self.is_known()
    }

    /// True if it has been told to end, and isn't counted any more.
    pub(crate) fn is_told(&self) -> bool {
        self.is_told.load(Ordering::Relaxed)
    }

    /// Waits until it is told to end.
    pub(crate) async fn told(&self) {
        self.told.notified().await;
    }
}

/// The connection that a request came by.
#[derive(Debug, Clone)]
pub(crate) struct Line {
    pub(crate) connection: Arc<Connection>,
    /// The answer goes to the connection as it is. That of a route behind a tool doesn't: it is part of another.
    pub(crate) is_direct: bool,
}

impl Line {
    /// The line of a request; unset only in tests that call the router without a socket.
    pub(crate) fn of(extensions: &Extensions) -> Option<Line> {
        extensions.get::<Line>().cloned()
    }

    /// The share that the answer's bytes count to.
    pub(crate) fn share(&self) -> Option<&Share> {
        self.is_direct.then(|| self.connection.share())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn connections(most: usize, change: impl FnOnce(&mut LimitSettings)) -> Arc<Connections> {
        let mut limits =
            LimitSettings { connections_per_address: 3, connections_reserved: 2, ..LimitSettings::default() };
        change(&mut limits);
        Arc::new(Connections::new(&limits, most))
    }

    fn enter(connections: &Arc<Connections>, address: &str) -> Result<Entered, Full> {
        connections.enter(address.parse().expect("an address"))
    }

    fn is_told(entered: &Entered) -> bool {
        use futures_util::FutureExt;
        entered.connection.told().now_or_never().is_some()
    }

    #[test]
    fn an_address_has_a_share_and_its_idle_connections_make_room() {
        let connections = connections(100, |_| {});
        let all: Vec<_> = (0..3).map(|_| enter(&connections, "192.0.2.1").expect("room")).collect();
        connections.begin(&all[0].connection);
        let fourth = enter(&connections, "192.0.2.1").expect("an idle one makes room");
        assert_eq!(all.iter().map(is_told).collect::<Vec<_>>(), [false, true, false]);
        for busy in [&all[2], &fourth] {
            connections.begin(&busy.connection);
        }
        assert_eq!(enter(&connections, "192.0.2.1").err(), Some(Full::Address));
        assert!(enter(&connections, "192.0.2.2").is_ok());
        connections.end(&fourth.connection);
        assert!(enter(&connections, "192.0.2.1").is_ok() && is_told(&fourth));
        // Loopback has no share of its own.
        let near: Vec<_> = (0..20).map_while(|_| enter(&connections, "127.0.0.1").ok()).collect();
        assert_eq!(near.len(), 20);
        drop((all, fourth, near));
        assert_eq!(connections.registry.lock().open, 0);
        assert!(connections.registry.lock().addresses.is_empty());
    }

    #[test]
    fn strangers_make_room_for_others_and_players_do_not() {
        let connections = connections(8, |limits| limits.connections_per_address = 0);
        let all: Vec<_> = (0..6).map(|n| enter(&connections, &format!("192.0.2.{n}")).expect("room")).collect();
        for known in &all[..2] {
            connections.begin(&known.connection);
            known.connection.know();
            connections.end(&known.connection);
        }
        for streaming in &all[2..5] {
            connections.begin(&streaming.connection);
        }
        let next = enter(&connections, "192.0.2.9").expect("the idle stranger makes room");
        assert!(is_told(&all[5]) && !next.connection.is_reserve());
        connections.begin(&next.connection);
        let idle = enter(&connections, "192.0.2.8").expect("the reserve");
        let late = [(); 2].map(|()| {
            let late = enter(&connections, "192.0.2.9").expect("the reserve");
            connections.begin(&late.connection);
            late
        });
        assert!(is_told(&idle) && late.iter().all(|late| late.connection.is_brief()));
        late[0].connection.know();
        assert!(!late[0].connection.is_brief());
        assert_eq!(enter(&connections, "192.0.2.10").err(), Some(Full::Server));
        assert!(!all[..5].iter().any(is_told));
    }

    #[test]
    fn an_address_never_has_more_than_a_quarter() {
        let connections = connections(40, |limits| {
            limits.connections_per_address = 1000;
            limits.connections_reserved = 1000;
        });
        let all: Vec<_> = (0..10).map(|_| enter(&connections, "2001:db8::1").expect("room")).collect();
        all.iter().for_each(|entered| connections.begin(&entered.connection));
        assert_eq!(enter(&connections, "2001:db8::2").err(), Some(Full::Address));
        assert_eq!((connections.reserved, connections.most_of_address), (10, Some(10)));
    }
}
