//! Shared tools of the arena's tests: a manual clock, seeded randomness, sessions that differ in a secret only, players
//! with keys, a server on a free port, a plain HTTP client, a checker of client histories, databases, message servers,
//! and a Python with packages.

mod client;
mod dice;
pub mod history;
mod host;
mod lab;
mod nats;
mod node;
mod player;
mod port;
mod postgres;
mod python;
mod tier;
mod twins;

pub use client::{Answer, Client, EventStream};
pub use dice::Dice;
pub use host::Host;
pub use lab::Lab;
pub use nats::NatsServer;
pub use node::node_packages;
pub use player::{Player, known_admin_token, known_secret};
pub use postgres::{Pooler, Postgres};
pub use python::python;
pub use twins::WithSecret;
