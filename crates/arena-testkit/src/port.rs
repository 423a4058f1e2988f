//! Free ports, for servers whose port must be known before they start.

use std::hash::{BuildHasher, RandomState};
use std::net::TcpListener;

/// The lowest port of the range. The range is below the system's ephemeral ports, so the system doesn't give a chosen
/// port to another program before the server uses it.
const FIRST: u16 = 20_000;
const COUNT: u16 = 10_000;

/// Returns a random port of the loopback interface without a listener. The probability that another test gets the
/// same port is about one in ten thousand.
pub fn free_port() -> u16 {
    // Each `RandomState` has its own random keys, so the hash is a random number.
    let drawn = || FIRST + (RandomState::new().hash_one(0) % u64::from(COUNT)) as u16;
    std::iter::repeat_with(drawn)
        .take(1000)
        .find(|port| TcpListener::bind(("127.0.0.1", *port)).is_ok())
        .expect("a free port")
}
