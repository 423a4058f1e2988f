//! What the tests of the arena share: a manual clock, seeded randomness, twins that differ in a secret, players with keys,
//! a server on a free port, a plain HTTP client that hides nothing, a checker of what clients saw, databases and message servers,
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
