//! The settings and the rows of leaderboards.

use std::collections::BTreeMap;

use arena_model::{Board, BoardId, Scoring, ScoringEntry, SessionId, UserId};
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Default, PartialEq)]
pub struct LeaderboardPolicy {
    pub scoring: Scoring,
    /// The main board of each challenge type.
    pub main: BTreeMap<String, BoardId>,
    /// The sessions that don't count, with reasons.
    pub excluded_sessions: BTreeMap<SessionId, String>,
    /// The users whose games don't count, with reasons.
    pub excluded_users: BTreeMap<UserId, String>,
}

impl LeaderboardPolicy {
    pub fn global_board(&self) -> Board {
        Board::Global(self.main.values().cloned().collect())
    }

    /// Returns the leaderboards of a challenge type on a board, in the order of the strategies.
    pub fn boards_of(&self, challenge: &str, id: &BoardId) -> Vec<Board> {
        let board = |strategy| Board::Of { challenge: challenge.to_owned(), id: id.clone(), strategy };
        self.scoring.strategies(challenge).map(|strategy| board(strategy.name)).collect()
    }
}

/// The data of a user that a leaderboard shows beside the standing.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LeaderboardProfile {
    pub user_id: String,
    pub username: Option<String>,
    pub model: Option<String>,
    #[serde(default)]
    pub is_benchmark: bool,
}

/// A player on a rebuilt leaderboard, in the form of a server's answer.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct LeaderboardRow {
    pub(super) player_id: String,
    #[serde(flatten)]
    pub(super) entry: ScoringEntry,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) username: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) model: Option<String>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(super) is_benchmark: bool,
}

impl LeaderboardRow {
    pub fn entry(&self) -> &ScoringEntry {
        &self.entry
    }

    /// Returns the player's name, or else the id.
    pub fn name(&self) -> &str {
        self.username.as_deref().unwrap_or(&self.player_id)
    }
}
