//! The server over real sockets, a module per promise.

mod admin;
mod auth;
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
mod services;
mod skill;
mod stream;
mod tournaments;
mod usage;
mod web;
