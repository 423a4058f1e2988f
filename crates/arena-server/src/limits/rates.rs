//! Rate limits: requests per address and writes per player.

use std::collections::HashMap;
use std::hash::Hash;
use std::net::{IpAddr, Ipv6Addr};
use std::time::{Duration, Instant};

use arena_model::Party;
use axum::http::StatusCode;
use parking_lot::Mutex;

use super::LimitSettings;
use crate::error::ApiError;

/// Number of bytes of a body that count as one more request.
const BYTES: usize = 16 * 1024;

pub(crate) struct Rates {
    requests: Limiter<IpAddr>,
    writes: Limiter<Party>,
    /// Maximum number of tickets in queues per network; `None` for no limit.
    tickets: Option<i64>,
    limit_loopback: bool,
}

impl Rates {
    pub(crate) fn new(limits: &LimitSettings) -> Rates {
        Rates {
            requests: Limiter::new(limits.requests_per_second, limits.requests_burst, |per_second| {
                format!(
                    "more than {per_second} requests per second from this address; each full 16 KiB of a JSON body or form counts \
                     as one more request (limits.requests_per_second)"
                )
            }),
            writes: Limiter::new(limits.writes_per_second, limits.writes_burst, |per_second| {
                format!(
                    "more than {per_second} actions and messages per second from this player (limits.writes_per_second)"
                )
            }),
            tickets: Some(limits.tickets_per_address.into()).filter(|most| *most > 0),
            limit_loopback: limits.limit_loopback,
        }
    }

    /// Counts a request against the limit of its address.
    ///
    /// # Errors
    /// 429 with the time to wait, if the limit is exceeded.
    pub(crate) fn admit(&self, address: IpAddr) -> Result<(), ApiError> {
        if self.is_exempt(address) { Ok(()) } else { self.requests.admit(&network_of(address), 1) }
    }

    /// Counts the JSON body or form of an admitted request against the limit of its address, because the server parses
    /// it. Each full 16 KiB count as one more request. Uploaded files and imports have limits of their own.
    ///
    /// # Errors
    /// 429 with the time to wait, if the limit is exceeded.
    pub(crate) fn admit_body(&self, address: Option<IpAddr>, bytes: usize) -> Result<(), ApiError> {
        let units = u32::try_from(bytes / BYTES).unwrap_or(u32::MAX);
        // The limiter can't admit more than the burst at once, and the request itself has taken one unit.
        let more = units.min(self.requests.burst.saturating_sub(1));
        match address.filter(|address| more > 0 && !self.is_exempt(*address)) {
            Some(address) => self.requests.admit(&network_of(address), more),
            None => Ok(()),
        }
    }

    /// Counts a write against the limit of its player, which holds for all addresses together.
    ///
    /// # Errors
    /// 429 with the time to wait, if the limit is exceeded.
    pub(crate) fn admit_writer(&self, address: Option<IpAddr>, writer: &Party) -> Result<(), ApiError> {
        if address.is_none_or(|address| self.is_exempt(address)) { Ok(()) } else { self.writes.admit(writer, 1) }
    }

    /// Returns the client's network for the queues, and the maximum number of its tickets; `None` for no limit.
    pub(crate) fn tickets_of(&self, address: Option<IpAddr>) -> (String, Option<i64>) {
        let network = address.map_or_else(String::new, |address| network_of(address).to_string());
        let is_limited = address.is_some_and(|address| !self.is_exempt(address));
        (network, self.tickets.filter(|_| is_limited))
    }

    fn is_exempt(&self, address: IpAddr) -> bool {
        is_exempt(address, self.limit_loopback)
    }

    /// Drops the counts of addresses and players that have their whole burst available again.
    pub(crate) fn forget_idle(&self) {
        self.requests.forget_idle();
        self.writes.forget_idle();
    }
}

/// A rate limiter with a separate budget for each key. Each unit takes `per_unit` of the time for which the budget
/// recovers, and the budget is never larger than `burst` units.
struct Limiter<K> {
    /// The time in which a unit becomes available again; zero for no limit.
    per_unit: Duration,
    /// Maximum number of units in a burst.
    burst: u32,
    /// The times at which the budgets are whole again.
    whole_at: Mutex<HashMap<K, Instant>>,
    /// The exceeded limit, as shown to the caller.
    limit: String,
}

impl<K: Hash + Eq + Clone> Limiter<K> {
    fn new(per_second: u32, burst: u32, limit: impl FnOnce(u32) -> String) -> Limiter<K> {
        Limiter {
            per_unit: Duration::from_secs(1).checked_div(per_second).unwrap_or_default(),
            burst: if burst == 0 { per_second } else { burst },
            whole_at: Mutex::default(),
            limit: limit(per_second),
        }
    }

    /// Takes `n` units of the budget of `key`. The caller ensures that `n` doesn't exceed the burst.
    fn admit(&self, key: &K, n: u32) -> Result<(), ApiError> {
        if self.per_unit.is_zero() {
            return Ok(());
        }
        let wait = self.take(key, n);
        if wait.is_zero() {
            return Ok(());
        }
        let text = format!("{}; wait {:.1} s", self.limit, wait.as_secs_f64().max(0.1));
        Err(ApiError::new(StatusCode::TOO_MANY_REQUESTS, "RATE_LIMITED", text).retry_after(wait))
    }

    /// Takes `n` units, or returns the time after which they are available.
    fn take(&self, key: &K, n: u32) -> Duration {
        let now = Instant::now();
        let mut whole_at = self.whole_at.lock();
        let then = whole_at.get(key).map_or(now, |then| now.max(*then)) + self.per_unit * n;
        let wait = then.saturating_duration_since(now + self.per_unit * self.burst);
        if wait.is_zero() {
            whole_at.insert(key.clone(), then);
        }
        wait
    }

    fn forget_idle(&self) {
        let now = Instant::now();
        let mut whole_at = self.whole_at.lock();
        whole_at.retain(|_, then| *then > now);
        whole_at.shrink_to_fit();
    }
}

/// True if the limits of addresses don't apply to an address: this machine's, unless `limits.limit_loopback` is true.
pub(crate) fn is_exempt(address: IpAddr, limit_loopback: bool) -> bool {
    address.to_canonical().is_loopback() && !limit_loopback
}

/// Returns the address under which the limits count a client. All addresses of an IPv6 /64 network count as one.
pub(crate) fn network_of(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(v6) => IpAddr::V6(Ipv6Addr::from(u128::from(v6) & !u128::from(u64::MAX))),
        v4 => v4,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_is_exempt_and_a_network_counts_as_one() {
        let limits = LimitSettings { requests_per_second: 1, requests_burst: 2, ..LimitSettings::default() };
        let rates = Rates::new(&limits);
        let loopback: IpAddr = "127.0.0.1".parse().expect("an address");
        assert!((0..100).all(|_| rates.admit(loopback).is_ok()));
        for address in ["2001:db8::1", "2001:db8::2"] {
            assert!(rates.admit(address.parse().expect("an address")).is_ok());
        }
        assert!(rates.admit("2001:db8::3".parse().expect("an address")).is_err());
        assert!(rates.admit("2001:db8:0:1::1".parse().expect("an address")).is_ok());
    }

    #[test]
    fn large_bodies_count_as_more_requests() {
        // The rate is so low that the budget doesn't recover during the test.
        let limits = LimitSettings { requests_per_second: 1, requests_burst: 10_000, ..LimitSettings::default() };
        let rates = Rates::new(&limits);
        let admits = |from: &str, bytes: usize| {
            let address: IpAddr = from.parse().expect("an address");
            rates.admit(address).is_ok() && rates.admit_body(Some(address), bytes).is_ok()
        };
        assert!((0..1000).all(|_| admits("192.0.2.1", BYTES - 1)));
        assert!(
            admits("192.0.2.1", 5000 * BYTES)
                && !admits("192.0.2.1", 5000 * BYTES)
                && admits("192.0.2.1", 3000 * BYTES)
        );
        // A body above the burst is clamped, not refused forever.
        assert!(admits("192.0.2.2", 600_000 * BYTES) && !admits("192.0.2.2", 1000 * BYTES));
        assert!((0..100).all(|_| admits("127.0.0.1", 600_000 * BYTES)));
    }

    #[test]
    fn a_player_is_limited_wherever_it_asks_from() {
        let limits = LimitSettings { writes_per_second: 1, writes_burst: 2, ..LimitSettings::default() };
        let rates = Rates::new(&limits);
        let admits = |address: &str, writer: &str| {
            rates.admit_writer(Some(address.parse().expect("an address")), &Party::from_wire(writer)).is_ok()
        };
        let [ada, bob] = ["a", "b"].map(|digit| format!("inv_00000000-0000-7000-8000-{}", digit.repeat(12)));
        assert!((0..100).all(|_| admits("127.0.0.1", &ada)));
        assert!(admits("192.0.2.1", &ada) && admits("192.0.2.2", &ada) && !admits("192.0.2.3", &ada));
        assert!(admits("192.0.2.1", &bob));
    }
}
