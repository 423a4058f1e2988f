//! Ports for servers that can't be told to take any free one and say which.

use std::hash::{BuildHasher, RandomState};
use std::net::TcpListener;

/// Where they are looked for: below the ports that systems give to whoever asks for any, so that nobody is given one meanwhile.
const FIRST: u16 = 20_000;
const COUNT: u16 = 10_000;

/// A port of the loopback interface on which nobody listens. Another test may come to the same one, once in ten thousand times.
pub(crate) fn free_port() -> u16 {
    // Each of these has keys of its own.
    let drawn = || FIRST + (RandomState::new().hash_one(0) % u64::from(COUNT)) as u16;
    std::iter::repeat_with(drawn)
        .take(1000)
        .find(|port| TcpListener::bind(("127.0.0.1", *port)).is_ok())
        .expect("a free port")
}
