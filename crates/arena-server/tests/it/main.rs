//! The server over real sockets, a module per promise.

mod auth;
mod deal;
mod once;
mod races;
mod refusals;
mod scoring;
mod secrecy;
mod stream;
