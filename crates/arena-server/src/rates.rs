//! How often one address may ask.

use std::net::{IpAddr, Ipv6Addr};
use std::num::NonZeroU32;

use axum::http::StatusCode;
use governor::clock::{Clock, DefaultClock};
use governor::{DefaultKeyedRateLimiter, Quota};

use crate::error::ApiError;
use crate::settings::LimitSettings;

/// Counts requests by address.
pub(crate) struct Rates {
    limiter: Option<DefaultKeyedRateLimiter<IpAddr>>,
    clock: DefaultClock,
    limit_loopback: bool,
    per_second: u32,
}

impl Rates {
    pub(crate) fn new(limits: &LimitSettings) -> Rates {
        let quota = NonZeroU32::new(limits.requests_per_second).map(|per_second| {
            let burst = NonZeroU32::new(limits.requests_burst).unwrap_or(per_second);
            Quota::per_second(per_second).allow_burst(burst)
        });
        Rates {
            limiter: quota.map(DefaultKeyedRateLimiter::keyed),
            clock: DefaultClock::default(),
            limit_loopback: limits.limit_loopback,
            per_second: limits.requests_per_second,
        }
    }

    /// Lets a request in, or says until when the address has to wait.
    pub(crate) fn admit(&self, address: IpAddr) -> Result<(), ApiError> {
        let Some(limiter) = &self.limiter else { return Ok(()) };
        if address.to_canonical().is_loopback() && !self.limit_loopback {
            return Ok(());
        }
        limiter.check_key(&household(address)).map_err(|refusal| {
            let wait = refusal.wait_time_from(self.clock.now());
            let text = format!(
                "more than {} requests per second from one address (limits.requests_per_second); wait {:.1} s",
                self.per_second,
                wait.as_secs_f64().max(0.1),
            );
            ApiError::new(StatusCode::TOO_MANY_REQUESTS, "RATE_LIMITED", text).retry_after(wait)
        })
    }

    /// Forgets addresses that haven't asked for a while.
    pub(crate) fn forget_idle(&self) {
        if let Some(limiter) = &self.limiter {
            limiter.retain_recent();
            limiter.shrink_to_fit();
        }
    }
}

/// An IPv6 customer has a /64 of addresses to ask from; they count as one.
fn household(address: IpAddr) -> IpAddr {
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
}
