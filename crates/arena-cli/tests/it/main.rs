//! The `arena` binary from outside: real processes, real sockets, real folders.
#![allow(clippy::unwrap_used, reason = "in tests a failed unwrap is a failed test")]

mod admin;
mod agent;
mod attacks;
mod auth;
mod challenge;
mod crash;
mod demo;
mod examples;
mod hall;
mod help_and_errors;
mod league;
mod lifecycle;
mod live;
mod log;
mod matches;
mod nodes;
mod old_sdk;
mod pgn;
mod play;
mod players;
mod postgres;
mod program;
mod python_client;
mod rate;
mod recount;
mod replay;
mod replay_web;
mod rules;
mod scripts;
mod spies;
mod terminal;
mod tls;
mod tournament;
mod trouble;
mod users;
