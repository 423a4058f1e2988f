//! The server over real sockets, a module per promise.

mod deal;
mod once;
mod races;
mod refusals;
mod scoring;
mod secrecy;
mod stream;
