//! The server over real sockets, a module per promise.

mod deal;
mod mcp;
mod once;
mod races;
mod refusals;
mod secrecy;
mod skill;
mod stream;
