//! The reasons why games don't count, or count in part.

use std::fmt;

use arena_model::{GameResult, UserId};

use super::game::{user_of, withheld};
use super::{LeaderboardPolicy, LoggedSessions, RecordedGame};
use crate::log::SessionOutcome;

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum ExclusionReason {
    /// The record has no end.
    Unfinished,
    Abandoned,
    /// The game continues a part of another game.
    Fork,
    /// A user held two seats.
    SelfPlay,
    /// By the log, the game was created without a board: with other options than the arena's, or unlisted.
    Unrated,
    /// The log doesn't contain the game's end.
    NotInLog,
    Removed(String),
    Excluded(String),
    /// The policy excludes the session or one of its players, for this reason.
    Policy(String),
}

/// The reasons that the log also has are those of [`SessionOutcome`], so that their numbers can be compared.
impl fmt::Display for ExclusionReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ExclusionReason::Unfinished => f.write_str("unfinished"),
            ExclusionReason::Abandoned => f.write_str(SessionOutcome::ABANDONED),
            ExclusionReason::Fork => f.write_str("fork"),
            ExclusionReason::SelfPlay => f.write_str(SessionOutcome::SELF_PLAY),
            ExclusionReason::Unrated => f.write_str(SessionOutcome::UNRATED),
            ExclusionReason::NotInLog => f.write_str("end not in the log"),
            ExclusionReason::Removed(reason) => f.write_str(&SessionOutcome::removed(reason)),
            ExclusionReason::Excluded(reason) => f.write_str(reason),
            ExclusionReason::Policy(reason) => write!(f, "policy: {reason}"),
        }
    }
}

/// The reason why a game counts on some leaderboards only, or for some players only.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum PartialReason {
    /// No player has a user id, so the game counts for nobody.
    NoUser,
    /// A player has no user id, so the game doesn't count on leaderboards that need all players' user ids.
    MissingUser,
    /// The game counts on another board than the main one: it has other rules, options or instructions.
    OtherBoard,
}

impl fmt::Display for PartialReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            PartialReason::NoUser => "no player with a user id",
            PartialReason::MissingUser => "a player without a user id",
            PartialReason::OtherBoard => "another board than the main one",
        })
    }
}

/// Returns the reason why a game doesn't count, or `None` if it counts.
pub(super) fn exclusion(
    game: &RecordedGame,
    policy: &LeaderboardPolicy,
    log: Option<&LoggedSessions>,
) -> Option<ExclusionReason> {
    let Some(end) = &game.end else { return Some(ExclusionReason::Unfinished) };
    if game.is_fork {
        return Some(ExclusionReason::Fork);
    }
    let session = &game.session;
    if let Some(log) = log {
        if let Some(reason) = log.removed.get(session) {
            return Some(ExclusionReason::Removed(reason.clone()));
        }
        if let Some(reason) = log.excluded.get(session) {
            return Some(ExclusionReason::Excluded(reason.clone()));
        }
        if !log.ended.contains_key(session) {
            return Some(ExclusionReason::NotInLog);
        }
        if log.rated.get(session) == Some(&false) {
            return Some(ExclusionReason::Unrated);
        }
    }
    if !end.is_completed {
        return Some(ExclusionReason::Abandoned);
    }
    let users: Vec<&UserId> = game.players.iter().filter_map(user_of).collect();
    if has_double(&users) {
        return Some(ExclusionReason::SelfPlay);
    }
    let of_user = || users.iter().find_map(|user| policy.excluded_users.get(*user));
    let reason = policy.excluded_sessions.get(session).or_else(of_user);
    reason.map(|reason| ExclusionReason::Policy(reason.clone()))
}

fn has_double(users: &[&UserId]) -> bool {
    users.iter().enumerate().any(|(at, user)| users[..at].contains(user))
}

/// Returns true if a record shows that the log's reason for the exclusion of its game is false. An arena can't drop a bad
/// result this way. Withheld users leave the reason open.
pub(super) fn refutes(game: &RecordedGame, reason: &str) -> bool {
    let users: Vec<&UserId> = game.players.iter().filter_map(user_of).collect();
    match reason {
        SessionOutcome::SELF_PLAY => withheld(game) == 0 && !has_double(&users),
        SessionOutcome::BAN | SessionOutcome::ABANDONED => game.end.as_ref().is_some_and(|end| end.is_completed),
        _ => false,
    }
}

pub(super) fn partial_reasons(result: &GameResult<'_>, policy: &LeaderboardPolicy) -> Vec<PartialReason> {
    let mut reasons = Vec::new();
    if result.identified == 0 {
        reasons.push(PartialReason::NoUser);
    } else if result.identified < result.users.len() {
        reasons.push(PartialReason::MissingUser);
    }
    if policy.main.get(result.challenge) != Some(&result.board) {
        reasons.push(PartialReason::OtherBoard);
    }
    reasons
}
