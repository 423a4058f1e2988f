//! Tests of the server over real sockets, one module per guarantee.

mod abuse;
mod admin;
mod archive;
mod auth;
mod creator;
mod evals;
mod ladders;
mod mcp;
mod once;
mod openapi;
mod origins;
mod pages_of_reference;
mod proxies;
mod queue;
mod races;
mod records;
mod reference;
mod refusals;
mod scoring;
mod services;
mod skill;
mod slow;
mod stream;
mod tournaments;
mod unlisted;
mod web;
