//! Leagues: agents that play each other season after season, while agents come and go.
//!
//! A tournament ends, and what it is going to be is known from its plan. A league goes on: each meeting is chosen when it begins, by
//! what the results so far leave open. What has been played is in the store, each game in a commit of its own, so that a league goes
//! on from wherever it was broken off.
//!
//! `season.rs` says who meets next, and is pure; `agents.rs` finds out whether agents still are what they were; `play.rs` plays.
//! Tables and keys belong to `arena-store`, words for people to those who ask.

mod agents;
mod play;
mod report;
mod season;

pub use agents::{AgentError, Change, check_agents, entrant_of, facts_of};
pub use play::{LeagueRun, RulesError, Sandbox, Until, check_rules, check_season};
pub use report::{line, report};
pub use season::Season;
