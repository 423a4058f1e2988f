//! The ledger of addresses: the bytes that each has stored within a day, the time that rules have computed for it, its
//! streams and its running sessions, and the refusals that it got.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use arena_engine::{Respond, Written};
use arena_model::SessionId;
use axum::http::StatusCode;
use parking_lot::Mutex;
use tokio::time::Instant;

use super::LimitSettings;
use super::memory::FREE;
use super::rates::{is_exempt, network_of};
use crate::error::{ApiError, ApiResult};

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// The time after which the ledger forgets addresses that have stored little and were refused nothing.
const HOUR: Duration = Duration::from_secs(60 * 60);

/// The number of bytes below which an address has stored little.
const LITTLE: u64 = 1024 * 1024;

/// The maximum number of addresses that have stored little.
const MANY: usize = 100_000;

/// The bytes that a message occupies besides its content.
const MESSAGE: u64 = 100;

/// The computing time that counts for each KiB of a long text that an address reads. Pages and records take about that.
const READING: Duration = Duration::from_micros(20);

/// The bytes that a session occupies besides its state and messages.
pub(crate) const SESSION: u64 = 1024;

/// The time for which an address is refused new sessions without another look at those that it has.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// The time after which a new session is in the store, if it will ever be.
const STORED_WITHIN: Duration = Duration::from_secs(10);

/// The minimum time between two searches for addresses to forget, when there are too many.
const SEARCH_AGAIN: Duration = Duration::from_secs(1);

/// The ledger of a node. Its days begin with an address's first entry.
#[derive(Debug)]
pub(crate) struct Ledger {
    limits: AddressLimits,
    limit_loopback: bool,
    addresses: Mutex<Addresses>,
}

#[derive(Debug, Default)]
struct Addresses {
    by_address: HashMap<IpAddr, AddressEntry>,
    /// The time of the last search for addresses to forget.
    searched_at: Option<Instant>,
}

/// The limits of each address. 0 means no limit.
#[derive(Debug)]
struct AddressLimits {
    /// The bytes that it may store within a day.
    stored: u64,
    /// The computing time that it may have after a pause, and the part of each second that it gets from then on.
    computed: Duration,
    computed_per_second: Duration,
    streams: u64,
    sessions: u64,
}

#[derive(Debug, Clone)]
struct AddressEntry {
    begun: Instant,
    /// The number of bytes that the address has stored.
    stored: u64,
    /// The number of requests of the address that were refused because of a limit.
    refusals: u64,
    /// The computing time that counted against the limit at `computed_at`. It becomes less with time.
    computed: Duration,
    computed_at: Instant,
    streams: u64,
    /// Sessions that the address has created, with the times of their notes. Some may have ended since the last look.
    sessions: HashMap<SessionId, Instant>,
    /// The time of the last look, if the address had its maximum number of them.
    full_at: Option<Instant>,
}

/// The resources that an address uses, and the refusals that it got within a day.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct LedgerUse {
    pub(crate) stored: u64,
    pub(crate) computed_ms: u64,
    pub(crate) streams: u64,
    pub(crate) sessions: u64,
    pub(crate) refusals: u64,
}

impl LedgerUse {
    pub(crate) const STORED: &str = "storedBytes";
    pub(crate) const COMPUTED: &str = "computingMs";
    pub(crate) const STREAMS: &str = "streams";
    pub(crate) const SESSIONS: &str = "runningSessions";

    /// Returns the amounts with the names of their budgets.
    pub(crate) fn by_budget(self) -> [(&'static str, u64); 4] {
        let LedgerUse { stored, computed_ms, streams, sessions, .. } = self;
        [(Self::STORED, stored), (Self::COMPUTED, computed_ms), (Self::STREAMS, streams), (Self::SESSIONS, sessions)]
    }

    pub(crate) fn plus(self, other: LedgerUse) -> LedgerUse {
        LedgerUse {
            stored: self.stored + other.stored,
            computed_ms: self.computed_ms + other.computed_ms,
            streams: self.streams + other.streams,
            sessions: self.sessions + other.sessions,
            refusals: self.refusals + other.refusals,
        }
    }
}

#[derive(Debug, Clone, Copy)]
pub(crate) enum Share {
    /// New sessions, tickets, tournaments and uploads may use the budget.
    New,
    /// Joins, moves and chat may use twice the budget, so that games that have begun can end.
    Play,
    /// Reads of long games and of records may use the budget of computing time.
    Read,
}

impl AddressEntry {
    /// True if the address has open streams, running sessions, or computing time that counts.
    fn holds_something(&self, now: Instant, limits: &AddressLimits) -> bool {
        self.streams > 0 || !self.sessions.is_empty() || !self.computed(now, limits).is_zero()
    }

    fn new(now: Instant) -> AddressEntry {
        AddressEntry {
            begun: now,
            stored: 0,
            refusals: 0,
            computed: Duration::ZERO,
            computed_at: now,
            streams: 0,
            sessions: HashMap::new(),
            full_at: None,
        }
    }

    /// Returns the computing time that counts against the limit now.
    fn computed(&self, now: Instant, limits: &AddressLimits) -> Duration {
        let earned = limits.computed_per_second.mul_f64((now - self.computed_at).as_secs_f64());
        self.computed.saturating_sub(earned)
    }
}

impl Ledger {
    pub(crate) fn new(limits: &LimitSettings) -> Ledger {
        let per_address = AddressLimits {
            stored: limits.stored_bytes_per_address,
            computed: Duration::from_millis(limits.computing_burst_ms.into()),
            computed_per_second: Duration::from_millis(limits.computing_ms_per_second.into()),
            streams: limits.streams_per_address as u64,
            sessions: limits.running_sessions_per_address as u64,
        };
        Ledger { limits: per_address, limit_loopback: limits.limit_loopback, addresses: Mutex::default() }
    }

    /// Returns the number of bytes below which an address has stored little.
    fn little(&self) -> u64 {
        if self.limits.stored == 0 { LITTLE } else { self.limits.stored.min(LITTLE) }
    }

    /// Returns the resources that addresses use, and the refusals of the last day.
    pub(crate) fn uses(&self) -> Vec<(IpAddr, LedgerUse)> {
        let now = Instant::now();
        let addresses = self.addresses.lock();
        let to_use = |(address, entry): (&IpAddr, &AddressEntry)| {
            let (stored, refusals) = if now - entry.begun < DAY { (entry.stored, entry.refusals) } else { (0, 0) };
            let computed_ms = u64::try_from(entry.computed(now, &self.limits).as_millis()).unwrap_or(u64::MAX);
            let (streams, sessions) = (entry.streams, entry.sessions.len() as u64);
            (*address, LedgerUse { stored, computed_ms, streams, sessions, refusals })
        };
        addresses.by_address.iter().map(to_use).filter(|(_, used)| *used != LedgerUse::default()).collect()
    }

    /// The address is unknown only in tests that call the router without a socket.
    pub(crate) fn charge(&self, address: impl Into<Option<IpAddr>>, bytes: u64) {
        self.enter(address, |entry, _| entry.stored += bytes);
    }

    /// Counts the time for which rules have computed for an address.
    pub(crate) fn charge_computing(&self, address: Option<IpAddr>, computed: Duration) {
        self.charge_up_to(address, computed, Duration::MAX);
    }

    /// Counts the time for which matches have computed for the address that has created their tournament. It may prevent
    /// new things, but no moves.
    pub(crate) fn charge_matches(&self, address: Option<IpAddr>, computed: Duration) {
        self.charge_up_to(address, computed, self.limits.computed.saturating_mul(3) / 2);
    }

    /// Checks that an address may read records and long games.
    ///
    /// # Errors
    /// 429 if it has used its computing time.
    pub(crate) fn admit_read(&self, address: Option<IpAddr>) -> ApiResult<()> {
        self.check(address, Share::Read)
    }

    /// Counts the text of messages that an address reads as computing time, if it is long. Like matches, reads prevent no
    /// moves.
    ///
    /// # Errors
    /// 429 if the address has used its computing time.
    pub(crate) fn charge_read(&self, address: Option<IpAddr>, bytes: usize) -> ApiResult<()> {
        if bytes > FREE {
            self.check(address, Share::Read)?;
            self.charge_matches(address, READING.saturating_mul(u32::try_from(bytes / 1024).unwrap_or(u32::MAX)));
        }
        Ok(())
    }

    /// Adds computing time, until it is `most` in total.
    fn charge_up_to(&self, address: Option<IpAddr>, computed: Duration, most: Duration) {
        self.enter(address, |entry, now| {
            let before = entry.computed(now, &self.limits);
            entry.computed = before.saturating_add(computed).min(most.max(before));
            entry.computed_at = now;
        });
    }

    /// True if the status of a response means that a limit was exceeded.
    pub(crate) fn is_refusal(status: StatusCode) -> bool {
        let refusals = [
            StatusCode::PAYLOAD_TOO_LARGE,
            StatusCode::TOO_MANY_REQUESTS,
            StatusCode::SERVICE_UNAVAILABLE,
            StatusCode::INSUFFICIENT_STORAGE,
        ];
        refusals.contains(&status)
    }

    pub(crate) fn count_refusal(&self, address: IpAddr) {
        self.enter(address, |entry, _| entry.refusals += 1);
    }

    /// Notes a session that an address has created. Addresses without limits aren't noted.
    pub(crate) fn note_session(&self, address: Option<IpAddr>, session: SessionId) {
        self.enter(self.limited(address), |entry, now| entry.sessions.insert(session, now));
    }

    /// Returns the network of an address to which the limits apply.
    pub(crate) fn limited(&self, address: Option<IpAddr>) -> Option<IpAddr> {
        address.filter(|address| !is_exempt(*address, self.limit_loopback)).map(network_of)
    }

    /// Changes the entry of an address; `None` if the address is unknown.
    fn enter<T>(
        &self,
        address: impl Into<Option<IpAddr>>,
        change: impl FnOnce(&mut AddressEntry, Instant) -> T,
    ) -> Option<T> {
        let address = network_of(address.into()?);
        let now = Instant::now();
        let mut addresses = self.addresses.lock();
        let Addresses { by_address, searched_at } = &mut *addresses;
        let may_search = searched_at.is_none_or(|searched_at| now - searched_at >= SEARCH_AGAIN);
        if by_address.len() >= MANY && may_search && !by_address.contains_key(&address) {
            *searched_at = Some(now);
            let little = self.little();
            by_address.retain(|_, entry| entry.stored >= little || entry.holds_something(now, &self.limits));
        }
        let entry = by_address.entry(address).or_insert_with(|| AddressEntry::new(now));
        if now - entry.begun >= DAY {
            (entry.begun, entry.stored, entry.refusals) = (now, 0, 0);
        }
        Some(change(entry, now))
    }

    /// Checks that an address may store more, and that rules may compute for it.
    ///
    /// # Errors
    /// 429 if it has used its budget of stored bytes for the day, or its computing time.
    pub(crate) fn check(&self, address: Option<IpAddr>, share: Share) -> ApiResult<()> {
        let (times, consequence) = match share {
            Share::New => (1, "may begin nothing new"),
            Share::Play => (2, "may write nothing"),
            Share::Read => (1, "may read no records and no long games"),
        };
        let limits = &self.limits;
        let (stored, computed) = (limits.stored.saturating_mul(times.into()), limits.computed.saturating_mul(times));
        let now = Instant::now();
        let (day_left, above) = {
            let addresses = self.addresses.lock();
            let entry = self.limited(address).and_then(|address| addresses.by_address.get(&address));
            let Some(entry) = entry else { return Ok(()) };
            let has_stored = stored > 0 && entry.stored >= stored && !matches!(share, Share::Read);
            (
                if has_stored { DAY.saturating_sub(now - entry.begun) } else { Duration::ZERO },
                entry.computed(now, limits).saturating_sub(computed),
            )
        };
        if !day_left.is_zero() {
            let minutes = day_left.as_secs().div_ceil(60);
            let text = format!(
                "this address has stored more than {stored} bytes within a day and {consequence} for {minutes} minutes \
                 (limits.stored_bytes_per_address)"
            );
            let refusal = ApiError::new(StatusCode::TOO_MANY_REQUESTS, "STORAGE_BUDGET_USED", text);
            return Err(refusal.retry_after(day_left));
        }
        if above.is_zero() || limits.computed_per_second.is_zero() {
            return Ok(());
        }
        let wait = Duration::from_secs_f64(above.as_secs_f64() / limits.computed_per_second.as_secs_f64());
        let text = format!(
            "this address has used its computing time and {consequence} for {} seconds \
             (limits.computing_ms_per_second)",
            wait.as_secs() + 1
        );
        Err(ApiError::new(StatusCode::TOO_MANY_REQUESTS, "COMPUTING_BUDGET_USED", text).retry_after(wait))
    }

    /// Returns the sessions of an address that must be looked up, because it has its maximum number; `None` if it has
    /// fewer.
    ///
    /// # Errors
    /// 429 if all of them were running a moment ago.
    pub(crate) fn sessions_to_look_up(&self, address: Option<IpAddr>) -> ApiResult<Option<Vec<(IpAddr, SessionId)>>> {
        let limit = self.limits.sessions;
        let Some(address) = self.limited(address) else { return Ok(None) };
        let found = self.enter(address, |entry, now| {
            if limit == 0 || (entry.sessions.len() as u64) < limit {
                return Ok(None);
            }
            if entry.full_at.is_some_and(|full_at| now - full_at < LOOK_AGAIN) {
                return Err(too_many_sessions(limit));
            }
            Ok(Some(entry.sessions.keys().map(|session| (address, *session)).collect()))
        });
        found.unwrap_or(Ok(None))
    }

    /// Checks that an address whose sessions were looked up has fewer than its maximum number.
    ///
    /// # Errors
    /// 429 if it has as many.
    pub(crate) fn check_sessions(&self, address: Option<IpAddr>) -> ApiResult<()> {
        let limit = self.limits.sessions;
        let is_full = self.enter(self.limited(address), |entry, now| {
            let is_full = entry.sessions.len() as u64 >= limit;
            entry.full_at = is_full.then_some(now);
            is_full
        });
        if is_full == Some(true) { Err(too_many_sessions(limit)) } else { Ok(()) }
    }

    /// Forgets sessions that have ended or were removed. `found` has those of `looked_up` that exist, with true for those
    /// that have ended. A session that was noted a moment ago may not be in the store yet.
    pub(crate) fn forget_sessions(&self, looked_up: &[(IpAddr, SessionId)], found: &HashMap<SessionId, bool>) {
        let now = Instant::now();
        let by_address = &mut self.addresses.lock().by_address;
        for (address, session) in looked_up {
            let Some(entry) = by_address.get_mut(address) else { continue };
            let is_over = |noted: &Instant| match found.get(session) {
                Some(has_ended) => *has_ended,
                None => now - *noted >= STORED_WITHIN,
            };
            if entry.sessions.get(session).is_some_and(is_over) {
                entry.sessions.remove(session);
            }
        }
    }

    /// Counts a stream of an address until the guard is dropped.
    ///
    /// # Errors
    /// 429 if the address has its maximum number of streams.
    pub(crate) fn open_stream(self: &Arc<Self>, address: Option<IpAddr>) -> ApiResult<StreamPlace> {
        let limit = self.limits.streams;
        let is_limited = limit > 0 && self.limited(address).is_some();
        let is_full = self.enter(address, |entry, _| {
            let is_full = is_limited && entry.streams >= limit;
            entry.streams += u64::from(!is_full);
            is_full
        });
        if is_full == Some(true) {
            let text = format!(
                "this address has {limit} open streams; it can open another when one of them ends \
                 (limits.streams_per_address)"
            );
            let refusal = ApiError::new(StatusCode::TOO_MANY_REQUESTS, "TOO_MANY_STREAMS", text);
            return Err(refusal.retry_after(Duration::from_secs(1)));
        }
        Ok(StreamPlace { ledger: Arc::clone(self), address })
    }

    /// Returns the functions that format the answer to a write and count what it costs.
    pub(crate) fn charging(
        self: &Arc<Self>,
        address: Option<IpAddr>,
        respond: impl Fn(&Written<'_>) -> String + Send + Sync + 'static,
    ) -> Respond {
        let (ledger, metered) = (Arc::clone(self), Arc::clone(self));
        let respond = Respond::new(move |written| {
            ledger.charge(address, stored_bytes(written));
            if is_new(written) {
                ledger.note_session(address, written.session.facts.id);
            }
            respond(written)
        });
        respond.metered(move |computed| metered.charge_computing(address, computed))
    }

    /// Returns the sessions of each address that the ledger counts as running.
    pub(crate) fn sessions(&self) -> Vec<(IpAddr, SessionId)> {
        let addresses = self.addresses.lock();
        let of_address = |(address, entry): (&IpAddr, &AddressEntry)| {
            entry.sessions.keys().map(|session| (*address, *session)).collect::<Vec<_>>()
        };
        addresses.by_address.iter().flat_map(of_address).collect()
    }

    /// Forgets the entries of earlier days, and those of addresses that have stored little.
    pub(crate) fn forget_idle(&self) {
        let now = Instant::now();
        let is_kept = |entry: &AddressEntry| {
            let is_idle = entry.stored < self.little() && entry.refusals == 0;
            now - entry.begun < if is_idle { HOUR } else { DAY } || entry.holds_something(now, &self.limits)
        };
        let by_address = &mut self.addresses.lock().by_address;
        by_address.retain(|_, entry| is_kept(entry));
        by_address.shrink_to_fit();
    }
}

fn too_many_sessions(limit: u64) -> ApiError {
    let text = format!(
        "this address has created {limit} sessions that haven't ended; it may create another when one of them ends \
         (limits.running_sessions_per_address)"
    );
    ApiError::new(StatusCode::TOO_MANY_REQUESTS, "TOO_MANY_SESSIONS", text).retry_after(LOOK_AGAIN)
}

/// A guard that counts a stream of an address until it is dropped.
pub(crate) struct StreamPlace {
    ledger: Arc<Ledger>,
    address: Option<IpAddr>,
}

impl Drop for StreamPlace {
    fn drop(&mut self) {
        self.ledger.enter(self.address, |entry, _| entry.streams = entry.streams.saturating_sub(1));
    }
}

/// True if the write has created the session. Chat before the first join has messages.
fn is_new(written: &Written<'_>) -> bool {
    written.session.version == 1 && written.messages.is_empty()
}

/// Returns about the number of bytes that a write adds to the store.
fn stored_bytes(written: &Written<'_>) -> u64 {
    let messages: u64 = written.messages.iter().map(|message| message.content.len() as u64 + MESSAGE).sum();
    if is_new(written) { messages + written.session.state.len() as u64 + SESSION } else { messages }
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
        let may = |who| [Share::New, Share::Play].map(|share| ledger.check(Some(who), share).is_ok());
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
        assert!(ledger.check(Some(address("192.0.2.1")), Share::New).is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn days_end_and_small_entries_are_forgotten_sooner() {
        let ledger = ledger(LITTLE);
        let [small, large, refused] = ["192.0.2.1", "192.0.2.2", "192.0.2.3"].map(address);
        ledger.charge(small, LITTLE - 1);
        ledger.charge(large, LITTLE);
        let statuses = [StatusCode::OK, StatusCode::NOT_FOUND, StatusCode::TOO_MANY_REQUESTS];
        statuses.into_iter().filter(|status| Ledger::is_refusal(*status)).for_each(|_| ledger.count_refusal(refused));
        let entries = || {
            let mut entries: Vec<_> = ledger.uses();
            entries.sort_by_key(|(address, _)| *address);
            entries.into_iter().map(|(address, entry)| (address, entry.stored, entry.refusals)).collect::<Vec<_>>()
        };
        ledger.forget_idle();
        assert_eq!(entries(), [(small, LITTLE - 1, 0), (large, LITTLE, 0), (refused, 0, 1)]);
        tokio::time::advance(HOUR).await;
        ledger.forget_idle();
        assert_eq!(entries(), [(large, LITTLE, 0), (refused, 0, 1)]);
        tokio::time::advance(DAY - HOUR - Duration::from_secs(90)).await;
        let refusal = ledger.check(Some(large), Share::New).expect_err("the budget is used");
        let refusal = format!("{refusal:?}");
        assert!(refusal.contains("for 2 minutes (limits.stored_bytes_per_address)"), "{refusal}");
        tokio::time::advance(Duration::from_secs(90)).await;
        assert!(ledger.check(Some(large), Share::New).is_ok() && entries().is_empty());
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
        let entries = ledger.uses();
        assert!(entries.len() <= MANY && entries.iter().any(|(address, _)| *address == large), "{}", entries.len());
    }

    #[tokio::test(start_paused = true)]
    async fn computing_time_is_limited_in_bursts_and_comes_back() {
        let limits =
            LimitSettings { computing_ms_per_second: 100, computing_burst_ms: 1_000, ..LimitSettings::default() };
        let ledger = Ledger::new(&limits);
        let ada = Some(address("192.0.2.1"));
        let may = || [Share::New, Share::Play].map(|share| ledger.check(ada, share).is_ok());
        ledger.charge_computing(ada, Duration::from_millis(1_000));
        assert_eq!(may(), [true, true]);
        ledger.charge_computing(ada, Duration::from_millis(600));
        assert_eq!(may(), [false, true]);
        let refusal = format!("{:?}", ledger.check(ada, Share::New).expect_err("the time is used"));
        assert!(refusal.contains("may begin nothing new for 7 seconds (limits.computing_ms_per_second)"), "{refusal}");
        assert!(refusal.contains("COMPUTING_BUDGET_USED") && refusal.contains("retry_after: Some(6s)"), "{refusal}");
        ledger.charge_computing(ada, Duration::from_millis(401));
        assert_eq!(may(), [false, false]);
        tokio::time::advance(Duration::from_millis(5)).await;
        assert_eq!(may(), [false, false]);
        tokio::time::advance(Duration::from_millis(5)).await;
        assert_eq!(may(), [false, true]);
        tokio::time::advance(Duration::from_secs(10)).await;
        assert_eq!(may(), [true, true]);
        // The ledger keeps the address until all of its time has come back.
        tokio::time::advance(Duration::from_secs(9)).await;
        assert_eq!(ledger.uses(), [(address("192.0.2.1"), LedgerUse { computed_ms: 100, ..LedgerUse::default() })]);
        tokio::time::advance(Duration::from_secs(1)).await;
        assert_eq!(ledger.uses(), []);
        // Matches prevent new things only, however long they take.
        ledger.charge_matches(ada, HOUR);
        assert_eq!(may(), [false, true]);
        // Without a limit, and on this machine, no time is refused.
        ledger.charge_computing(Some(address("127.0.0.1")), HOUR);
        assert!(ledger.check(Some(address("127.0.0.1")), Share::New).is_ok());
        let unlimited = Ledger::new(&LimitSettings { computing_ms_per_second: 0, ..limits });
        unlimited.charge_computing(ada, HOUR);
        assert!(unlimited.check(ada, Share::New).is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn sessions_are_looked_up_once_a_second_and_forgotten_when_they_have_ended() {
        let ledger = Ledger::new(&LimitSettings { running_sessions_per_address: 2, ..LimitSettings::default() });
        let ada = Some(address("192.0.2.1"));
        let sessions = [1, 2].map(|n| format!("00000000-0000-7000-8000-00000000000{n}").parse().expect("an id"));
        ledger.note_session(ada, sessions[0]);
        assert_eq!(ledger.sessions_to_look_up(ada).expect("it may"), None);
        ledger.note_session(ada, sessions[1]);
        ledger.note_session(Some(address("127.0.0.1")), sessions[0]);
        let noted = sessions.map(|session| (address("192.0.2.1"), session));
        let look = || ledger.sessions_to_look_up(ada).map(|found| found.map(|sessions| sessions.len()));
        let is_refused = |refusal: ApiError| format!("{refusal:?}").contains("TOO_MANY_SESSIONS");
        assert_eq!(look().expect("a look"), Some(2));
        ledger.forget_sessions(&noted, &HashMap::from(sessions.map(|session| (session, false))));
        assert!(is_refused(ledger.check_sessions(ada).expect_err("both are running")));
        assert!(is_refused(look().expect_err("both were running a moment ago")));
        tokio::time::advance(LOOK_AGAIN).await;
        // A look that finds an ended session leaves room, and the next look may follow at once.
        for _ in 0..2 {
            assert_eq!(look().expect("a look"), Some(2));
            ledger.forget_sessions(&noted, &HashMap::from([(sessions[0], true), (sessions[1], false)]));
            ledger.check_sessions(ada).expect("one has ended");
            assert_eq!(look().expect("it may"), None);
            ledger.note_session(ada, sessions[0]);
        }
        ledger.forget_sessions(&noted, &HashMap::from([(sessions[0], true), (sessions[1], false)]));
        // An address with a running session is kept for longer than an hour.
        tokio::time::advance(HOUR).await;
        ledger.forget_idle();
        assert_eq!(ledger.uses(), [(address("192.0.2.1"), LedgerUse { sessions: 1, ..LedgerUse::default() })]);
    }
}
