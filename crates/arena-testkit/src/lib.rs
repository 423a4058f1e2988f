//! Shared tools of the arena's tests: a manual clock, seeded randomness, challenges with a replaced secret,
//! players with keys, attacks, a server on a free port, folders for data, an HTTP client, a checker of client
//! histories, PostgreSQL and NATS servers, a provider of language models, load balancers, agents in Python, transcripts, and the locations of
//! Node.js and Python packages.

pub mod attacks;
mod balancer;
mod bot;
mod client;
mod data;
mod environment;
pub mod history;
mod host;
mod nats;
mod node;
mod player;
mod port;
mod postgres;
mod psi;
mod python;
mod rng;
mod stand_in;
mod tier;
mod transcript;
mod twins;
mod wait;
mod watcher;

pub use balancer::{Balancer, BalancerKind};
pub use bot::{python_bot, snake_bot};
pub use client::{Answer, Client, EventStream};
pub use data::data_folder;
pub use environment::TestEnvironment;
pub use host::Host;
pub use nats::NatsServer;
pub use node::node_packages;
pub use player::{Player, known_admin_token, known_secret};
pub use port::free_port;
pub use postgres::{Pooler, Postgres};
pub use python::python;
pub use rng::TestRng;
pub use stand_in::{Counts, ModelAnswer, ModelConversation, ModelEndpoint, StandIn, StandInSpec, Tokens};
pub use transcript::transcript;
pub use twins::WithSecret;
pub use wait::{eventually, until};
