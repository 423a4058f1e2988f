//! The ledger of addresses: the bytes that each has stored within a day, and the refusals that it got.

use std::collections::HashMap;
use std::net::IpAddr;
use std::time::Duration;

use arena_engine::{Once, Respond, Written};
use arena_model::{ChatMessage, Party, Session};
use axum::http::StatusCode;
use parking_lot::Mutex;
use tokio::time::Instant;

use crate::arena::Arena;
use crate::error::{ApiError, ApiResult};
use crate::rates::{is_exempt, network_of};
use crate::settings::LimitSettings;

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// The time after which the ledger forgets addresses that have stored little and were refused nothing.
const HOUR: Duration = Duration::from_secs(60 * 60);

/// The number of bytes below which an address has stored little.
const LITTLE: u64 = 1024 * 1024;

/// The maximum number of addresses that have stored little.
const MANY: usize = 100_000;

/// The bytes that a message occupies besides its content.
const MESSAGE: u64 = 100;

/// The bytes that a session occupies besides its state and messages.
pub(crate) const SESSION: u64 = 1024;

/// The ledger of a node. Its days begin with an address's first entry.
pub(crate) struct Ledger {
    /// The number of bytes that an address may store within a day.
    limit: u64,
    limit_loopback: bool,
    addresses: Mutex<HashMap<IpAddr, AddressEntry>>,
}

/// The entry of an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct AddressEntry {
    begun: Instant,
    /// The number of bytes that the address has stored.
    pub(crate) stored: u64,
    /// The number of requests of the address that were refused because of a limit.
    pub(crate) refusals: u64,
}

/// The parts of an address's budget.
#[derive(Debug, Clone, Copy)]
enum Share {
    /// New sessions, tickets, tournaments and uploads may use the budget.
    New,
    /// Moves and chat may use twice the budget, so that games that have begun can end.
    Play,
}

impl Ledger {
    pub(crate) fn new(limits: &LimitSettings) -> Ledger {
        let limit = limits.stored_bytes_per_address;
        Ledger { limit, limit_loopback: limits.limit_loopback, addresses: Mutex::default() }
    }

    /// Returns the number of bytes that an address may store within a day; `None` for no limit.
    pub(crate) fn limit(&self) -> Option<u64> {
        (self.limit > 0).then_some(self.limit)
    }

    /// Returns the number of bytes below which an address has stored little.
    fn little(&self) -> u64 {
        self.limit().map_or(LITTLE, |limit| limit.min(LITTLE))
    }

    /// Returns the entries of the last day.
    pub(crate) fn entries(&self) -> Vec<(IpAddr, AddressEntry)> {
        let now = Instant::now();
        let addresses = self.addresses.lock();
        addresses
            .iter()
            .filter(|(_, entry)| now - entry.begun < DAY)
            .map(|(address, entry)| (*address, *entry))
            .collect()
    }

    /// Counts bytes that an address has stored. The address is unknown only in tests that call the router without a
    /// socket.
    pub(crate) fn charge(&self, address: impl Into<Option<IpAddr>>, bytes: u64) {
        if let Some(address) = address.into() {
            self.enter(address, |entry| entry.stored += bytes);
        }
    }

    /// Counts a refusal, if the status means that a limit was exceeded.
    pub(crate) fn count_refusal(&self, address: IpAddr, status: StatusCode) {
        let refusals = [
            StatusCode::PAYLOAD_TOO_LARGE,
            StatusCode::TOO_MANY_REQUESTS,
            StatusCode::SERVICE_UNAVAILABLE,
            StatusCode::INSUFFICIENT_STORAGE,
        ];
        if refusals.contains(&status) {
            self.enter(address, |entry| entry.refusals += 1);
        }
    }

    fn enter(&self, address: IpAddr, change: impl FnOnce(&mut AddressEntry)) {
        let now = Instant::now();
        let mut addresses = self.addresses.lock();
        let address = network_of(address);
        if addresses.len() >= MANY && !addresses.contains_key(&address) {
            addresses.retain(|_, entry| entry.stored >= self.little());
        }
        let fresh = AddressEntry { begun: now, stored: 0, refusals: 0 };
        let entry = addresses.entry(address).or_insert(fresh);
        if now - entry.begun >= DAY {
            *entry = fresh;
        }
        change(entry);
    }

    /// Checks that an address may store more.
    ///
    /// # Errors
    /// 429 if it has used its budget of the day.
    fn check(&self, address: impl Into<Option<IpAddr>>, share: Share) -> ApiResult<()> {
        let limited = address.into().filter(|address| !is_exempt(*address, self.limit_loopback));
        let (Some(address), Some(limit)) = (limited, self.limit()) else { return Ok(()) };
        let Some(entry) = self.addresses.lock().get(&network_of(address)).copied() else { return Ok(()) };
        let (most, what) = match share {
            Share::New => (limit, "may begin nothing new"),
            Share::Play => (limit.saturating_mul(2), "may write nothing"),
        };
        let left = DAY.saturating_sub(entry.begun.elapsed());
        if entry.stored < most || left.is_zero() {
            return Ok(());
        }
        let minutes = left.as_secs().div_ceil(60);
        let text = format!(
            "this address has stored more than {most} bytes within a day and {what} for {minutes} minutes \
             (limits.stored_bytes_per_address)"
        );
        Err(ApiError::new(StatusCode::TOO_MANY_REQUESTS, "STORAGE_BUDGET_USED", text).retry_after(left))
    }

    /// Forgets the entries of earlier days, and those of addresses that have stored little.
    pub(crate) fn forget_idle(&self) {
        let now = Instant::now();
        let is_idle = |entry: &AddressEntry| entry.stored < self.little() && entry.refusals == 0;
        let is_kept = |entry: &AddressEntry| now - entry.begun < if is_idle(entry) { HOUR } else { DAY };
        let mut addresses = self.addresses.lock();
        addresses.retain(|_, entry| is_kept(entry));
        addresses.shrink_to_fit();
    }
}

impl Arena {
    /// Checks that an address may begin something new, and that the disk has room for it. A repeated request passes,
    /// because its first answer is stored already.
    ///
    /// # Errors
    /// 429 if the address has used its budget of the day, 507 if the disk is almost full.
    pub(crate) async fn admit_new(&self, address: Option<IpAddr>, once: Option<Once>) -> ApiResult<()> {
        let admitted = self.ledger.check(address, Share::New).and_then(|()| self.check_disk());
        let Err(refusal) = admitted else { return Ok(()) };
        match self.engine.find_answer(once).await? {
            Some(_) => Ok(()),
            None => Err(refusal),
        }
    }

    /// Counts a write against the limits of its player and its address.
    ///
    /// # Errors
    /// 429 if a limit is exceeded.
    pub(crate) fn admit_writer(&self, address: Option<IpAddr>, writer: &Party) -> ApiResult<()> {
        self.ledger.check(address, Share::Play)?;
        self.rates.admit_writer(address, writer)
    }

    /// Returns a function that formats the answer to a write and counts what it stores.
    pub(crate) fn charging(
        &self,
        address: Option<IpAddr>,
        respond: impl Fn(&Written<'_>) -> String + Send + 'static,
    ) -> Respond {
        let arena = self.clone();
        Box::new(move |written| {
            arena.ledger.charge(address, stored_bytes(written));
            respond(written)
        })
    }
}

/// Returns about the number of bytes that a write adds to the store.
fn stored_bytes(written: &Written<'_>) -> u64 {
    match written.session.version {
        1 => bytes_of(written.session, written.messages),
        _ => bytes_of_messages(written.messages),
    }
}

/// Returns about the number of bytes that a session with these messages occupies.
pub(crate) fn bytes_of(session: &Session, messages: &[ChatMessage]) -> u64 {
    session.state.len() as u64 + SESSION + bytes_of_messages(messages)
}

fn bytes_of_messages(messages: &[ChatMessage]) -> u64 {
    messages.iter().map(|message| message.content.len() as u64 + MESSAGE).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ledger(stored_bytes_per_address: u64) -> Ledger {
        Ledger::new(&LimitSettings { stored_bytes_per_address, ..LimitSettings::default() })
    }

    fn address(text: &str) -> IpAddr {
        text.parse().expect("an address")
    }

    #[test]
    fn an_address_begins_nothing_new_above_its_budget_and_plays_on_until_twice() {
        let ledger = ledger(1000);
        let [ada, bob] = ["192.0.2.1", "192.0.2.2"].map(address);
        let may = |who| [Share::New, Share::Play].map(|share| ledger.check(who, share).is_ok());
        assert_eq!(may(ada), [true, true]);
        ledger.charge(ada, 999);
        assert_eq!(may(ada), [true, true]);
        ledger.charge(ada, 1);
        assert_eq!((may(ada), may(bob)), ([false, true], [true, true]));
        ledger.charge(ada, 1000);
        assert_eq!(may(ada), [false, false]);
        // All addresses of an IPv6 network count as one, and this machine has no limit.
        ledger.charge(address("2001:db8::1"), 2000);
        assert_eq!(may(address("2001:db8::2")), [false, false]);
        ledger.charge(address("127.0.0.1"), 5000);
        assert_eq!(may(address("127.0.0.1")), [true, true]);
    }

    #[test]
    fn a_budget_of_0_is_no_limit() {
        let ledger = ledger(0);
        ledger.charge(address("192.0.2.1"), u64::MAX / 2);
        assert!(ledger.check(address("192.0.2.1"), Share::New).is_ok());
        assert_eq!(ledger.limit(), None);
    }

    #[tokio::test(start_paused = true)]
    async fn days_end_and_small_entries_are_forgotten_sooner() {
        let ledger = ledger(LITTLE);
        let [small, large, refused] = ["192.0.2.1", "192.0.2.2", "192.0.2.3"].map(address);
        ledger.charge(small, LITTLE - 1);
        ledger.charge(large, LITTLE);
        for status in [StatusCode::OK, StatusCode::NOT_FOUND, StatusCode::TOO_MANY_REQUESTS] {
            ledger.count_refusal(refused, status);
        }
        let entries = || {
            let mut entries: Vec<_> = ledger.entries();
            entries.sort_by_key(|(address, _)| *address);
            entries.into_iter().map(|(address, entry)| (address, entry.stored, entry.refusals)).collect::<Vec<_>>()
        };
        ledger.forget_idle();
        assert_eq!(entries(), [(small, LITTLE - 1, 0), (large, LITTLE, 0), (refused, 0, 1)]);
        tokio::time::advance(HOUR).await;
        ledger.forget_idle();
        assert_eq!(entries(), [(large, LITTLE, 0), (refused, 0, 1)]);
        tokio::time::advance(DAY - HOUR - Duration::from_secs(90)).await;
        let refusal = ledger.check(large, Share::New).expect_err("the budget is used");
        let refusal = format!("{refusal:?}");
        assert!(refusal.contains("for 2 minutes (limits.stored_bytes_per_address)"), "{refusal}");
        tokio::time::advance(Duration::from_secs(90)).await;
        assert!(ledger.check(large, Share::New).is_ok() && entries().is_empty());
        ledger.charge(large, 1);
        assert_eq!(entries(), [(large, 1, 0)]);
    }

    #[test]
    fn a_flood_of_addresses_leaves_those_that_have_stored_much() {
        let ledger = ledger(LITTLE);
        let large = address("192.0.2.1");
        ledger.charge(large, LITTLE);
        for n in 0..MANY as u32 + 10 {
            ledger.charge(IpAddr::from(n.to_be_bytes()), 1);
        }
        let entries = ledger.entries();
        assert!(entries.len() <= MANY && entries.iter().any(|(address, _)| *address == large), "{}", entries.len());
    }
}
