//! The server over real sockets, a module per promise.

mod admin;
mod auth;
mod deal;
mod fuzz;
mod games;
mod mcp;
mod once;
mod openapi;
mod origins;
mod races;
mod reference;
mod refusals;
mod scoring;
mod secrecy;
mod skill;
mod stream;
mod tournaments;
mod usage;
mod web;
