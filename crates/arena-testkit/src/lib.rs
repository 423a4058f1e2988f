//! What the tests of the arena share: a manual clock, seeded randomness, twins that differ in a secret, players with keys,
//! a server on a free port, and a plain HTTP client that hides nothing.

mod client;
mod host;
mod lab;
mod player;
mod twins;

pub use client::{Answer, Client, EventStream};
pub use host::Host;
pub use lab::Lab;
pub use player::{Player, known_admin_token, known_secret};
pub use twins::WithSecret;
