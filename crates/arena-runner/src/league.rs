//! Leagues: open-ended competitions in seasons, which agents may join and leave at any time.
//!
//! A *meeting* is the games of one set of agents with one seed, with rotated seats. A tournament's schedule follows
//! from its plan; a league chooses each meeting from the results so far. The store commits each game on its own, so
//! that a league can be resumed at any point.
//!
//! `season.rs` chooses the next meeting and is pure; `agents.rs` checks the agents' files for changes; `play.rs`
//! plays a season, as a competition for either executor. `arena-store` defines the tables, and `arena-report` writes the
//! reports.

mod agents;
mod play;
mod report;
mod season;

pub use agents::{AgentError, Change, check_agents, entrant_of, facts_of, prepare_for_workers};
pub use play::{LeagueRun, RulesError, Sandbox, Until, check_rules, check_season};
pub use report::{line, report};
pub use season::Season;
