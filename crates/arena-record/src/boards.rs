//! Leaderboards that follow from records alone: the games that count, the games that don't with their reasons, and the
//! standings.
//!
//! The standings are computed by the scoring of [`arena_model`], which a server uses too. A server adds each game when
//! it ends, so the order of the games is the order of their endings: by the log if there is one, or else by time. The
//! games of one player within one millisecond may then be in another order than on the server, which may change the
//! last digit of an average.
//!
//! A server shows players with equal values in the order in which it got to know them. Without other events, this is
//! the order of the ends of their first games, and of the seats within a game.
//!
//! A record doesn't contain profiles. [`LeaderboardProfile`]s add names and the benchmark mark to the rows, and the
//! server's order of players who were known before their first game.

mod exclusions;
mod game;
mod leaderboard;
mod logged;

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use arena_model::{Board, BoardId, BoardTerms, GameResult, Order, PlayerStandings, Scoring, Seat, SessionId, UserId};
use serde_json::Value;

use exclusions::{exclusion, partial_reasons, refutes};
use game::{user_of, withheld};

pub use exclusions::{ExclusionReason, PartialReason};
pub use game::{RecordedEnd, RecordedGame, RecordedPlayer};
pub use leaderboard::{LeaderboardPolicy, LeaderboardProfile, LeaderboardRow};
pub use logged::LoggedSessions;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExcludedGame {
    pub session: SessionId,
    pub reason: ExclusionReason,
}

/// A user's standings, and the position of the user in the order in which an arena gets to know its users.
#[derive(Debug, Clone, Default, PartialEq)]
struct PlayerBook {
    first: usize,
    standings: PlayerStandings,
}

#[derive(Debug, Clone, Default, PartialEq)]
pub struct RebuiltBoards {
    players: BTreeMap<UserId, PlayerBook>,
    /// The boards with games, by challenge type.
    pub boards: BTreeMap<String, BTreeMap<BoardId, BoardFactsOfGames>>,
    /// The number of games that count.
    pub counted: u64,
    /// The number of completed games by challenge type, with those that count on no board.
    pub completed: BTreeMap<String, u64>,
    /// The number of users with an ended game.
    pub participants: u64,
    /// The records of games that don't count, by session.
    pub excluded: Vec<ExcludedGame>,
    /// The number of games that don't count, by reason. With a log, these are all games of the log, with and without
    /// records, and a session that was imported after its removal is another game.
    pub reasons: BTreeMap<String, u64>,
    /// The number of games that count in part, by reason. A game may have several reasons.
    pub partial: BTreeMap<PartialReason, u64>,
    /// The number of seats whose users the records withhold. These users are on no board.
    pub withheld: u64,
    /// The sessions that ended by the log, and whose records are missing.
    pub missing: Vec<SessionId>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct BoardFactsOfGames {
    pub options: Value,
    pub terms: BoardTerms,
    pub games: u64,
}

/// The error of records that contradict each other or the log.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ContradictingRecords {
    #[error("session {session} has two different records")]
    Two { session: SessionId },
    #[error("the record of session {session} isn't the one in the log: its hash is {found}, but the log has {logged}")]
    OtherHash { session: SessionId, found: String, logged: String },
    #[error("the log says that session {session} was {logged}, but its record says that it was {found}")]
    OtherEnding { session: SessionId, found: &'static str, logged: &'static str },
    #[error("the log excludes session {session} for the reason `{reason}`, but its record shows otherwise")]
    FalseExclusion { session: SessionId, reason: String },
}

impl RebuiltBoards {
    /// Counts all games. Without a log, each record of a rated-looking game counts.
    ///
    /// # Errors
    /// [`ContradictingRecords`] names the first session with two records, with another record than in the log, or with
    /// a false reason for its exclusion in the log.
    pub fn of(
        games: impl IntoIterator<Item = RecordedGame>,
        policy: &LeaderboardPolicy,
        log: Option<&LoggedSessions>,
    ) -> Result<RebuiltBoards, ContradictingRecords> {
        let by_session = one_of_each_session(games, log)?;
        let mut rebuilt = RebuiltBoards::default();
        if let Some(log) = log {
            rebuilt.reasons.clone_from(&log.counts.excluded);
            let ended = by_session.values().filter(|game| game.end.is_some());
            rebuilt.missing = log.missing(&ended.map(|game| game.session).collect());
        }
        let mut order: Vec<&RecordedGame> = by_session.values().collect();
        order.sort_by_key(|game| {
            let logged = log.and_then(|log| log.ended.get(&game.session)).map_or(u64::MAX, |(number, ..)| *number);
            (logged, game.end.as_ref().map_or(i64::MAX, |end| end.at), game.session)
        });
        // The users of a session that was imported again were known since its first end.
        let mut met = order.clone();
        met.sort_by_key(|game| {
            log.and_then(|log| log.first_ended.get(&game.session)).map_or(u64::MAX, |number| *number)
        });
        rebuilt.meet(&met);
        let mut participants: BTreeSet<&UserId> = BTreeSet::new();
        for game in order {
            let exclusion = exclusion(game, policy, log);
            rebuilt.withheld += withheld(game) as u64;
            if is_listed(game, log) {
                participants.extend(game.players.iter().filter_map(user_of));
                if game.end.as_ref().is_some_and(|end| end.is_completed) {
                    *rebuilt.completed.entry(game.challenge.clone()).or_default() += 1;
                }
            }
            if let Some(reason) = log.and_then(|log| log.excluded.get(&game.session)).filter(|why| refutes(game, why)) {
                return Err(ContradictingRecords::FalseExclusion { session: game.session, reason: reason.clone() });
            }
            let Some(reason) = exclusion else {
                rebuilt.count(game, policy);
                continue;
            };
            // The counts of the log have the others.
            if !log.is_some_and(|log| log.excludes(game.session)) {
                *rebuilt.reasons.entry(reason.to_string()).or_default() += 1;
            }
            rebuilt.excluded.push(ExcludedGame { session: game.session, reason });
        }
        rebuilt.participants = participants.len() as u64;
        rebuilt.excluded.sort_by_key(|excluded| excluded.session);
        Ok(rebuilt)
    }

    /// Numbers the users in the order of these games and of their seats. An arena numbers a user when the user's first
    /// game ends. A fork is in no history.
    fn meet(&mut self, games: &[&RecordedGame]) {
        let ended = games.iter().filter(|game| game.end.is_some() && !game.is_fork);
        for user in ended.flat_map(|game| &game.players).filter_map(user_of) {
            let first = self.players.len();
            self.players.entry(user.clone()).or_insert_with(|| PlayerBook { first, standings: PlayerStandings::new() });
        }
    }

    fn count(&mut self, game: &RecordedGame, policy: &LeaderboardPolicy) {
        let Some(end) = &game.end else { return };
        let board = BoardId::of(&game.challenge, &game.options, &game.terms);
        let is_identified = |player: &&RecordedPlayer| !matches!(player, RecordedPlayer::Unidentified);
        let result = GameResult {
            challenge: &game.challenge,
            board: board.clone(),
            users: game.players.iter().map(user_of).collect(),
            identified: game.players.iter().filter(is_identified).count(),
            scores: &end.scores,
            attributions: &end.attributions,
        };
        self.counted += 1;
        for reason in partial_reasons(&result, policy) {
            *self.partial.entry(reason).or_default() += 1;
        }
        let facts = || BoardFactsOfGames { options: game.options.clone(), terms: game.terms.clone(), games: 0 };
        let boards = self.boards.entry(game.challenge.clone()).or_default();
        boards.entry(board.clone()).or_insert_with(facts).games += 1;
        for (seat, player) in game.players.iter().enumerate() {
            if let Some(user) = user_of(player)
                && let Some(book) = self.players.get_mut(user)
            {
                policy.scoring.count(&result, Seat(seat), book.standings.entry(board.to_string()).or_default());
            }
        }
    }

    /// Returns the rows of a board in descending order. `profiles` are an arena's users in its own order; users that it
    /// doesn't contain follow in the order in which their first games ended.
    pub fn rows(
        &self,
        scoring: &Scoring,
        board: &Board,
        order: &Order,
        profiles: &[LeaderboardProfile],
    ) -> Vec<LeaderboardRow> {
        let known: BTreeMap<&str, (usize, &LeaderboardProfile)> =
            profiles.iter().enumerate().map(|(at, profile)| (profile.user_id.as_str(), (at, profile))).collect();
        let mut rows: Vec<(f64, usize, LeaderboardRow)> = Vec::new();
        for (user, book) in &self.players {
            let Some(entry) = scoring.entry(board, &book.standings) else { continue };
            let Some(value) = entry.sort_key(order) else { continue };
            let profile = known.get(user.as_str());
            let place = profile.map_or(profiles.len() + book.first, |(at, _)| *at);
            let profile = profile.map(|(_, profile)| *profile);
            let row = LeaderboardRow {
                player_id: user.to_string(),
                entry,
                username: profile.and_then(|profile| profile.username.clone()),
                model: profile.and_then(|profile| profile.model.clone()),
                is_benchmark: profile.is_some_and(|profile| profile.is_benchmark),
            };
            // -0.0 and 0.0 are equal on a server.
            rows.push((value + 0.0, place, row));
        }
        rows.sort_by(|(a, first, _), (b, second, _)| b.total_cmp(a).then(first.cmp(second)));
        rows.into_iter().map(|(_, _, row)| row).collect()
    }
}

/// Returns the record of each session with the most openings.
fn one_of_each_session(
    games: impl IntoIterator<Item = RecordedGame>,
    log: Option<&LoggedSessions>,
) -> Result<BTreeMap<SessionId, RecordedGame>, ContradictingRecords> {
    let mut by_session: BTreeMap<SessionId, RecordedGame> = BTreeMap::new();
    for game in games {
        let session = game.session;
        // The record of the import replaces it.
        if log.is_some_and(|log| log.is_former(session, &game.hash)) {
            continue;
        }
        // A record from during the game has the hash of an event, and contradicts no other record.
        let Some(is_completed) = game.end.as_ref().map(|end| end.is_completed) else {
            by_session.entry(session).or_insert(game);
            continue;
        };
        if let Some((_, logged_completed, logged)) = log.and_then(|log| log.ended.get(&session)) {
            if *logged != game.hash {
                let (found, logged) = (game.hash, logged.clone());
                return Err(ContradictingRecords::OtherHash { session, found, logged });
            }
            if *logged_completed != is_completed {
                let (found, logged) = (kind_of_end(is_completed), kind_of_end(*logged_completed));
                return Err(ContradictingRecords::OtherEnding { session, found, logged });
            }
        }
        match by_session.get(&session).filter(|other| other.end.is_some()) {
            Some(other) if other.hash != game.hash => return Err(ContradictingRecords::Two { session }),
            // A copy with more openings adds users to one with fewer.
            Some(other) if withheld(other) <= withheld(&game) => {}
            _ => drop(by_session.insert(session, game)),
        }
    }
    Ok(by_session)
}

fn kind_of_end(is_completed: bool) -> &'static str {
    if is_completed { "completed" } else { "abandoned" }
}

/// Returns true if an arena counts an ended game in its totals. By the log, the arena counts neither removed sessions nor
/// those that were unlisted before their end, which have no leaf of it.
fn is_listed(game: &RecordedGame, log: Option<&LoggedSessions>) -> bool {
    let session = &game.session;
    let is_in = |log: &LoggedSessions| log.ended.contains_key(session) && !log.removed.contains_key(session);
    game.end.is_some() && !game.is_fork && log.is_none_or(is_in)
}
