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

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use arena_model::{
    Attribution, Board, BoardId, BoardTerms, GameResult, Order, PlayerStandings, Score, Scoring, ScoringEntry, Seat,
    SessionId, UserId,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::log::{Leaf, OutcomeCounts, SessionOutcome};
use crate::{EndKind, EventKind, Parsed, RecordedRules};

/// The player at a seat of a recorded game.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RecordedPlayer {
    /// A player without a user id.
    Unidentified,
    /// A user.
    User(UserId),
    /// A user whose id the record withholds.
    Withheld,
}

/// The part of a record that leaderboards need.
#[derive(Debug, Clone, PartialEq)]
pub struct RecordedGame {
    /// The session.
    pub session: SessionId,
    /// The challenge type.
    pub challenge: String,
    /// All options of the session.
    pub options: Value,
    /// The versions of the rules and of the prompt.
    pub terms: BoardTerms,
    /// The players by seat. Seats that no player took are missing.
    pub players: Vec<RecordedPlayer>,
    /// The result; `None` if the record has no end.
    pub end: Option<RecordedEnd>,
    /// True if the session continues a part of another one.
    pub is_fork: bool,
    /// The sealed hash of the record, in hex.
    pub hash: String,
}

/// The end of a recorded game.
#[derive(Debug, Clone, PartialEq)]
pub struct RecordedEnd {
    /// True if the rules ended the game; false if it was abandoned.
    pub is_completed: bool,
    /// The time in milliseconds.
    pub at: i64,
    /// The scores by seat.
    pub scores: Vec<Score>,
    /// The attributions.
    pub attributions: Vec<Attribution>,
}

impl RecordedGame {
    /// Returns the part of a record that leaderboards need. `prompts` has the SHA-256 of the prompt, in hex, of each
    /// version of a script, because a record names only the script.
    ///
    /// # Errors
    /// If an opened user id or the number of scores is invalid, as one sentence.
    pub fn of(parsed: &Parsed, prompts: &BTreeMap<String, String>) -> Result<RecordedGame, String> {
        let header = &parsed.header;
        let terms = match &header.rules {
            RecordedRules::Builtin { version, prompt } => {
                BoardTerms { rules: version.to_string(), prompt: Some(prompt.to_string()) }
            }
            RecordedRules::Script { script } => {
                let rules = script.to_string();
                BoardTerms { prompt: prompts.get(&rules).cloned(), rules }
            }
        };
        let mut players = Vec::new();
        // The reader has checked that players join in the order of their seats.
        for (seat, event) in parsed.events.iter().filter(|event| event.kind == EventKind::Join).enumerate() {
            players.push(match (event.user, parsed.openings.get(&format!("user/{seat}"))) {
                (None, _) => RecordedPlayer::Unidentified,
                (Some(_), None) => RecordedPlayer::Withheld,
                (Some(_), Some(opening)) => {
                    let user = opening.content.parse::<UserId>();
                    RecordedPlayer::User(user.map_err(|error| format!("the user id of seat {seat} is {error}"))?)
                }
            });
        }
        let end = parsed.end.as_ref().map(|end| RecordedEnd {
            is_completed: end.end == EndKind::Completed,
            at: end.at.0,
            scores: end.scores.clone(),
            attributions: end
                .attributions
                .iter()
                .map(|row| Attribution { from: row.0, to: row.1, kind: row.2.clone() })
                .collect(),
        });
        let seats = header.seats;
        if let Some(scores) = end.as_ref().map(|end| end.scores.len()).filter(|scores| *scores != seats) {
            return Err(format!("the record has {scores} scores for {seats} seats"));
        }
        if players.len() > seats {
            return Err(format!("the record has {} players for {seats} seats", players.len()));
        }
        Ok(RecordedGame {
            session: header.session,
            challenge: header.challenge.clone(),
            options: header.options.clone(),
            terms,
            players,
            end,
            is_fork: header.fork.is_some(),
            hash: parsed.hash.to_string(),
        })
    }
}

/// The reason why a recorded game doesn't count.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum ExclusionReason {
    /// The record has no end.
    Unfinished,
    /// The game was abandoned.
    Abandoned,
    /// The game continues a part of another game.
    Fork,
    /// A user held two seats.
    SelfPlay,
    /// By the log, the game was created without a board: with other options than the arena's, or unlisted.
    Unrated,
    /// The log doesn't contain the game's end.
    NotInLog,
    /// The arena removed the session, for this reason.
    Removed(String),
    /// The arena excluded the session, for this reason.
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

/// The facts of an arena's log about sessions.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LoggedSessions {
    rated: BTreeMap<SessionId, bool>,
    /// The position of the ending, true if the game was completed, and the hash of the record in hex.
    ended: BTreeMap<SessionId, (u64, bool, String)>,
    /// The hashes of records from before a removal, of sessions that were imported after it.
    former: BTreeMap<SessionId, BTreeSet<String>>,
    /// The position of the first ending of each session.
    first_ended: BTreeMap<SessionId, u64>,
    removed: BTreeMap<SessionId, String>,
    excluded: BTreeMap<SessionId, String>,
    outcomes: BTreeMap<SessionId, SessionOutcome>,
    /// The numbers of games that count by the log, and of those that don't.
    pub counts: OutcomeCounts,
}

impl LoggedSessions {
    /// Reads the lines of all leaves, in order.
    ///
    /// # Errors
    /// If a line isn't a leaf, as one sentence with the leaf's number from 0.
    pub fn read<'l>(leaves: impl IntoIterator<Item = &'l str>) -> Result<LoggedSessions, String> {
        let mut logged = LoggedSessions::default();
        for (number, line) in leaves.into_iter().enumerate() {
            let wrong = |error: &dyn fmt::Display| format!("leaf {number} of the log cannot be read: {error}");
            let leaf = line.parse::<Leaf>().map_err(|error| wrong(&error))?;
            let Some(session) = leaf.session() else { continue };
            if let Some(outcome) = logged.counts.add(&leaf, logged.outcomes.get(&session)) {
                logged.outcomes.insert(session, outcome);
            }
            match leaf {
                Leaf::Created { rated, .. } => {
                    if logged.removed.remove(&session).is_some() {
                        logged.excluded.remove(&session);
                        if let Some((_, _, record)) = logged.ended.remove(&session) {
                            logged.former.entry(session).or_default().insert(record);
                        }
                    }
                    logged.rated.insert(session, rated);
                }
                Leaf::Ended { ending, record, .. } => {
                    let ended = (number as u64, ending == EndKind::Completed, record.to_string());
                    logged.first_ended.entry(session).or_insert(ended.0);
                    if logged.ended.insert(session, ended).is_some() {
                        return Err(wrong(&"the session has ended before"));
                    }
                }
                Leaf::Removed { reason, .. } => drop(logged.removed.insert(session, reason)),
                Leaf::Excluded { reason, .. } => drop(logged.excluded.insert(session, reason)),
                // Leaves about keys have no session.
                _ => {}
            }
        }
        Ok(logged)
    }

    /// Returns the hash of a session's record in hex, if the session has ended.
    pub fn record_of(&self, session: SessionId) -> Option<&str> {
        self.ended.get(&session).map(|(_, _, record)| record.as_str())
    }

    /// Returns the number of rated sessions that have neither ended nor been removed. An arena that never logs the end of
    /// a bad game leaves the session among them.
    pub fn unfinished(&self) -> u64 {
        let is_running = |outcome: &&SessionOutcome| **outcome == SessionOutcome::Running { is_rated: true };
        self.outcomes.values().filter(is_running).count() as u64
    }

    /// Returns true if the result of a session doesn't count by the log.
    fn excludes(&self, session: SessionId) -> bool {
        matches!(self.outcomes.get(&session), Some(SessionOutcome::Excluded(_)))
    }

    /// Returns true if the log had this hash for a session that was removed and imported later.
    fn is_former(&self, session: SessionId, hash: &str) -> bool {
        self.former.get(&session).is_some_and(|hashes| hashes.contains(hash))
    }

    /// Returns the ended, rated sessions whose records are missing in `known`. A removed session has no record. An
    /// abandoned or excluded one that ended has one, which shows that the reason is true.
    fn missing(&self, known: &BTreeSet<SessionId>) -> Vec<SessionId> {
        let is_missing = |(id, _): &(&SessionId, &(u64, bool, String))| {
            !known.contains(*id) && !self.removed.contains_key(*id) && self.rated.get(*id).copied().unwrap_or(true)
        };
        self.ended.iter().filter(is_missing).map(|(id, _)| *id).collect()
    }
}

/// The arena's settings for leaderboards.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct LeaderboardPolicy {
    /// The strategies of each challenge type.
    pub scoring: Scoring,
    /// The main board of each challenge type.
    pub main: BTreeMap<String, BoardId>,
    /// The sessions that don't count, with reasons.
    pub excluded_sessions: BTreeMap<SessionId, String>,
    /// The users whose games don't count, with reasons.
    pub excluded_users: BTreeMap<UserId, String>,
}

impl LeaderboardPolicy {
    /// Returns the global board over all main boards.
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
    /// The user's id.
    pub user_id: String,
    /// The name.
    pub username: Option<String>,
    /// The model.
    pub model: Option<String>,
    /// True if the user is a benchmark model.
    #[serde(default)]
    pub is_benchmark: bool,
}

/// A player on a rebuilt leaderboard, in the form of a server's answer.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct LeaderboardRow {
    player_id: String,
    #[serde(flatten)]
    entry: ScoringEntry,
    #[serde(skip_serializing_if = "Option::is_none")]
    username: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    model: Option<String>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    is_benchmark: bool,
}

impl LeaderboardRow {
    /// Returns the player's numbers.
    pub fn entry(&self) -> &ScoringEntry {
        &self.entry
    }

    /// Returns the player's name, or else the id.
    pub fn name(&self) -> &str {
        self.username.as_deref().unwrap_or(&self.player_id)
    }
}

/// A game that doesn't count.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExcludedGame {
    /// The session.
    pub session: SessionId,
    /// The reason.
    pub reason: ExclusionReason,
}

/// A user's standings, and the position of the user in the order in which an arena gets to know its users.
#[derive(Debug, Clone, Default, PartialEq)]
struct PlayerBook {
    first: usize,
    standings: PlayerStandings,
}

/// The leaderboards of all games.
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

/// The common settings of the games on a board.
#[derive(Debug, Clone, PartialEq)]
pub struct BoardFactsOfGames {
    /// The options.
    pub options: Value,
    /// The versions of the rules and of the prompt.
    pub terms: BoardTerms,
    /// The number of games.
    pub games: u64,
}

/// The error of records that contradict each other or the log.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ContradictingRecords {
    /// Two records of one session.
    #[error("session {session} has two different records")]
    Two {
        /// The session.
        session: SessionId,
    },
    /// A record with another hash than its leaf in the log.
    #[error("the record of session {session} isn't the one in the log: its hash is {found}, but the log has {logged}")]
    OtherHash {
        /// The session.
        session: SessionId,
        /// The record's hash.
        found: String,
        /// The hash in the log.
        logged: String,
    },
    /// A record with another kind of end than its leaf in the log.
    #[error("the log says that session {session} was {logged}, but its record says that it was {found}")]
    OtherEnding {
        /// The session.
        session: SessionId,
        /// The kind of the end in the record.
        found: &'static str,
        /// The kind of the end in the log.
        logged: &'static str,
    },
    /// A game that the log excludes for a reason that its record refutes.
    #[error("the log excludes session {session} for the reason `{reason}`, but its record shows otherwise")]
    FalseExclusion {
        /// The session.
        session: SessionId,
        /// The reason in the log.
        reason: String,
    },
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
        // A user whose id is withheld is identified, so strategies that need identified players count the game.
        let unknown: Option<UserId> = "withheld".parse().ok();
        let users: Vec<Option<&UserId>> = game
            .players
            .iter()
            .map(|player| match player {
                RecordedPlayer::Unidentified => None,
                RecordedPlayer::User(user) => Some(user),
                RecordedPlayer::Withheld => unknown.as_ref(),
            })
            .collect();
        let result = GameResult {
            challenge: &game.challenge,
            board: board.clone(),
            users,
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

/// Returns the name of a kind of end, as in a record.
fn kind_of_end(is_completed: bool) -> &'static str {
    if is_completed { "completed" } else { "abandoned" }
}

fn user_of(player: &RecordedPlayer) -> Option<&UserId> {
    match player {
        RecordedPlayer::User(user) => Some(user),
        RecordedPlayer::Unidentified | RecordedPlayer::Withheld => None,
    }
}

fn withheld(game: &RecordedGame) -> usize {
    game.players.iter().filter(|player| **player == RecordedPlayer::Withheld).count()
}

/// Returns true if an arena counts an ended game in its totals. By the log, the arena counts neither removed sessions nor
/// those that were unlisted before their end, which have no leaf of it.
fn is_listed(game: &RecordedGame, log: Option<&LoggedSessions>) -> bool {
    let session = &game.session;
    let is_in = |log: &LoggedSessions| log.ended.contains_key(session) && !log.removed.contains_key(session);
    game.end.is_some() && !game.is_fork && log.is_none_or(is_in)
}

/// Returns the reason why a game doesn't count, or `None` if it counts.
fn exclusion(game: &RecordedGame, policy: &LeaderboardPolicy, log: Option<&LoggedSessions>) -> Option<ExclusionReason> {
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
fn refutes(game: &RecordedGame, reason: &str) -> bool {
    let users: Vec<&UserId> = game.players.iter().filter_map(user_of).collect();
    match reason {
        SessionOutcome::SELF_PLAY => withheld(game) == 0 && !has_double(&users),
        SessionOutcome::BAN | SessionOutcome::ABANDONED => game.end.as_ref().is_some_and(|end| end.is_completed),
        _ => false,
    }
}

/// Returns the reasons why a game counts only in part.
fn partial_reasons(result: &GameResult<'_>, policy: &LeaderboardPolicy) -> Vec<PartialReason> {
    let named = result.users.iter().flatten().count();
    let mut reasons = Vec::new();
    if named == 0 {
        reasons.push(PartialReason::NoUser);
    } else if named < result.users.len() {
        reasons.push(PartialReason::MissingUser);
    }
    if policy.main.get(result.challenge) != Some(&result.board) {
        reasons.push(PartialReason::OtherBoard);
    }
    reasons
}

#[cfg(test)]
mod tests {
    use arena_model::{GLOBAL_AVERAGE, strategies};
    use serde_json::json;

    use super::*;

    fn id(number: u64) -> SessionId {
        format!("018f6b2e-0000-7000-8000-{number:012x}").parse().unwrap()
    }

    fn user(name: &str) -> UserId {
        name.parse().unwrap()
    }

    fn terms() -> BoardTerms {
        BoardTerms { rules: "1".to_owned(), prompt: Some("a".repeat(64)) }
    }

    /// A game of two players with these utilities. An empty name is an unidentified player, `?` a withheld one.
    fn game(number: u64, players: [&str; 2], utilities: [f64; 2]) -> RecordedGame {
        let player = |name: &str| match name {
            "" => RecordedPlayer::Unidentified,
            "?" => RecordedPlayer::Withheld,
            name => RecordedPlayer::User(user(name)),
        };
        let score = |utility| Score { security: 1.0, utility };
        RecordedGame {
            session: id(number),
            challenge: "psi".to_owned(),
            options: json!({"setSize": 5}),
            terms: terms(),
            players: players.map(player).to_vec(),
            end: Some(RecordedEnd {
                is_completed: true,
                at: number as i64 * 100,
                scores: utilities.map(score).to_vec(),
                attributions: Vec::new(),
            }),
            is_fork: false,
            hash: format!("{number:064x}"),
        }
    }

    fn policy() -> LeaderboardPolicy {
        let names = ["average".to_owned(), "win-rate".to_owned()];
        LeaderboardPolicy {
            scoring: Scoring::new(&names, [], Some(GLOBAL_AVERAGE), None).unwrap(),
            main: BTreeMap::from([("psi".to_owned(), BoardId::of("psi", &json!({"setSize": 5}), &terms()))]),
            ..LeaderboardPolicy::default()
        }
    }

    fn leaf(kind: &str, number: u64, more: &str) -> String {
        format!(r#"{{"leaf":"{kind}","session":"{}",{more},"at":1}}"#, id(number))
    }

    fn created(number: u64, rated: bool) -> String {
        leaf("created", number, &format!(r#""challenge":"psi","seedCommitment":null,"rated":{rated}"#))
    }

    fn ended(number: u64) -> String {
        leaf("ended", number, &format!(r#""ending":"completed","record":"{number:064x}""#))
    }

    fn logged(leaves: &[String]) -> LoggedSessions {
        LoggedSessions::read(leaves.iter().map(String::as_str)).unwrap()
    }

    /// Returns user, games and mean utility of each row of the board by averages.
    fn rows(rebuilt: &RebuiltBoards, policy: &LeaderboardPolicy, sort: &str) -> Vec<(String, u64, f64)> {
        let board = &policy.boards_of("psi", &policy.main["psi"])[0];
        let order = policy.scoring.order(board, Some(sort)).unwrap();
        let rows = rebuilt.rows(&policy.scoring, board, &order, &[]);
        rows.into_iter()
            .map(|row| (row.player_id, row.entry.games_played, row.entry.metrics["average:utility"]))
            .collect()
    }

    #[test]
    fn averages_are_the_means_of_the_games_that_count() {
        let games = [
            game(1, ["ada", "bob"], [1.0, 0.0]),
            game(2, ["bob", "ada"], [0.5, 0.0]),
            game(3, ["cyn", ""], [0.5, 1.0]),
            game(4, ["ada", "?"], [0.5, 1.0]),
        ];
        let policy = policy();
        let rebuilt = RebuiltBoards::of(games, &policy, None).unwrap();
        // Computed by hand. Equal values are in the order in which the first games ended.
        let expected = [("ada", 3, 0.5), ("cyn", 1, 0.5), ("bob", 2, 0.25)];
        let expected: Vec<(String, u64, f64)> =
            expected.map(|(name, games, mean)| (name.to_owned(), games, mean)).into();
        assert_eq!(rows(&rebuilt, &policy, "average:utility"), expected);
        assert_eq!((rebuilt.counted, rebuilt.participants, rebuilt.withheld), (4, 3, 1));
        assert_eq!(rebuilt.completed, BTreeMap::from([("psi".to_owned(), 4)]));
        assert!(rebuilt.excluded.is_empty() && rebuilt.missing.is_empty());
    }

    #[test]
    fn the_order_of_the_records_makes_no_difference() {
        let games: Vec<RecordedGame> =
            (1..40).map(|number| game(number, ["ada", "bob"], [1.0 / number as f64, 0.1 * number as f64])).collect();
        let policy = policy();
        let expected = RebuiltBoards::of(games.clone(), &policy, None).unwrap();
        let reversed = RebuiltBoards::of(games.into_iter().rev(), &policy, None).unwrap();
        assert_eq!(expected, reversed);
    }

    #[test]
    fn each_excluded_game_has_its_reason() {
        let mut policy = policy();
        policy.excluded_sessions.insert(id(1), "a broken provider".to_owned());
        policy.excluded_users.insert(user("eve"), "banned".to_owned());
        let log = logged(&[
            created(1, true),
            ended(1),
            created(2, true),
            ended(2),
            created(3, true),
            ended(3),
            leaf("removed", 3, r#""reason":"spam""#),
            created(4, true),
            ended(4),
            leaf("excluded", 4, r#""reason":"a host failed""#),
            created(5, false),
            ended(5),
            created(7, true),
            ended(7),
            created(8, true),
            leaf("ended", 8, &format!(r#""ending":"abandoned","record":"{:064x}""#, 8)),
            created(9, true),
            created(10, true),
            ended(10),
            created(11, true),
            ended(11),
            created(12, true),
            ended(12),
            format!(r#"{{"leaf":"key","recordKey":"{}","at":1}}"#, "ab".repeat(32)),
        ]);
        let ada_bob = |number| game(number, ["ada", "bob"], [1.0, 0.0]);
        let mut games: Vec<RecordedGame> = (1..=10).map(ada_bob).collect();
        games[1].players[0] = RecordedPlayer::User(user("eve"));
        games[6].players[1] = RecordedPlayer::User(user("ada"));
        games[7].end.as_mut().unwrap().is_completed = false;
        games[8].end = None;
        games[9].is_fork = true;
        games.push(ada_bob(11));
        let reasons = |log: Option<&LoggedSessions>| -> String {
            let rebuilt = RebuiltBoards::of(games.clone(), &policy, log).unwrap();
            let line = |excluded: &ExcludedGame| {
                let session = excluded.session.to_string();
                format!("{} {}\n", &session[session.len() - 2..], excluded.reason)
            };
            let lines: String = rebuilt.excluded.iter().map(line).collect();
            let games: u64 = rebuilt.reasons.values().sum();
            format!("{lines}{} counted, {games} excluded, {} missing", rebuilt.counted, rebuilt.missing.len())
        };
        expect_test::expect![[r#"
            01 policy: a broken provider
            02 policy: banned
            03 removed: spam
            04 a host failed
            05 unrated
            06 end not in the log
            07 self-play
            08 abandoned
            09 unfinished
            0a fork
            1 counted, 10 excluded, 1 missing"#]]
        .assert_eq(&reasons(Some(&log)));
        expect_test::expect![[r#"
            01 policy: a broken provider
            02 policy: banned
            07 self-play
            08 abandoned
            09 unfinished
            0a fork
            5 counted, 6 excluded, 0 missing"#]]
        .assert_eq(&reasons(None));
    }

    #[test]
    fn contradicting_records_are_named() {
        let policy = policy();
        let one = game(1, ["ada", "bob"], [1.0, 0.0]);
        let other = RecordedGame { hash: "f".repeat(64), ..one.clone() };
        let two = RebuiltBoards::of([one.clone(), other.clone()], &policy, None).unwrap_err();
        assert_eq!(two, ContradictingRecords::Two { session: id(1) });
        let log = logged(&[created(1, true), ended(1)]);
        assert!(matches!(RebuiltBoards::of([other], &policy, Some(&log)), Err(ContradictingRecords::OtherHash { .. })));
        let mut abandoned = one.clone();
        abandoned.end.as_mut().unwrap().is_completed = false;
        let error = RebuiltBoards::of([abandoned], &policy, Some(&log)).unwrap_err();
        let expected = ContradictingRecords::OtherEnding { session: id(1), found: "abandoned", logged: "completed" };
        assert_eq!(error, expected);
        // A record from during the game has another hash, and isn't a second game.
        let during = |hash: &str| RecordedGame { hash: hash.repeat(64), end: None, ..one.clone() };
        for games in [[during("d"), one.clone(), during("e")], [during("e"), during("d"), one.clone()]] {
            for log in [None, Some(&log)] {
                let rebuilt = RebuiltBoards::of(games.clone(), &policy, log).unwrap();
                assert_eq!((rebuilt.counted, rebuilt.excluded.len(), rebuilt.missing.len()), (1, 0, 0));
            }
        }
        let rebuilt = RebuiltBoards::of([during("d")], &policy, Some(&log)).unwrap();
        assert_eq!((rebuilt.counted, rebuilt.missing), (0, vec![id(1)]));
        // An abandoned game has a record, which shows that it was abandoned.
        let ended = leaf("ended", 2, &format!(r#""ending":"abandoned","record":"{:064x}""#, 2));
        let rebuilt = RebuiltBoards::of([], &policy, Some(&logged(&[created(2, true), ended]))).unwrap();
        assert_eq!(rebuilt.missing, [id(2)]);
        // The same record with fewer openings isn't a second game.
        let hidden = RecordedGame { players: vec![RecordedPlayer::Withheld; 2], ..one.clone() };
        for copies in [[one.clone(), hidden.clone()], [hidden, one]] {
            let rebuilt = RebuiltBoards::of(copies, &policy, Some(&log)).unwrap();
            assert_eq!((rebuilt.counted, rebuilt.withheld, rebuilt.participants), (1, 0, 2));
        }
    }

    #[test]
    fn equal_players_are_in_the_order_of_the_ends_of_their_first_games() {
        let policy = policy();
        // Game 1 was created first and ends last. By the log, game 3 ended before game 2.
        let mut games = [
            game(1, ["ada", "bob"], [0.5, 0.5]),
            game(2, ["cyn", "dan"], [0.5, 0.5]),
            game(3, ["eve", "dan"], [0.5, 0.5]),
        ];
        games[0].end.as_mut().unwrap().at = 1000;
        let names = |log: Option<&LoggedSessions>| -> Vec<String> {
            let rebuilt = RebuiltBoards::of(games.clone(), &policy, log).unwrap();
            rows(&rebuilt, &policy, "average:utility").into_iter().map(|(name, ..)| name).collect()
        };
        assert_eq!(names(None), ["cyn", "dan", "eve", "ada", "bob"]);
        let creations = (1..4).map(|number| created(number, true));
        let log = logged(&creations.chain([3, 2, 1].map(ended)).collect::<Vec<_>>());
        assert_eq!(names(Some(&log)), ["eve", "dan", "cyn", "ada", "bob"]);
    }

    #[test]
    fn a_false_reason_of_an_exclusion_is_an_error() {
        let policy = policy();
        let (distinct, own) = (game(1, ["ada", "bob"], [1.0, 0.0]), game(1, ["ada", "ada"], [1.0, 0.0]));
        let hidden = game(1, ["ada", "?"], [1.0, 0.0]);
        let mut abandoned = distinct.clone();
        abandoned.end.as_mut().unwrap().is_completed = false;
        for (game, reason, is_false) in [
            (&distinct, "self-play", true),
            (&own, "self-play", false),
            (&hidden, "self-play", false),
            (&distinct, "ban", true),
            (&abandoned, "ban", false),
            (&distinct, "a host failed", false),
        ] {
            let end = kind_of_end(game.end.as_ref().unwrap().is_completed);
            let end = leaf("ended", 1, &format!(r#""ending":"{end}","record":"{:064x}""#, 1));
            let log = logged(&[created(1, true), end, leaf("excluded", 1, &format!(r#""reason":"{reason}""#))]);
            let without = RebuiltBoards::of([], &policy, Some(&log)).unwrap();
            assert_eq!(without.missing, [id(1)], "{reason}");
            let expected = ContradictingRecords::FalseExclusion { session: id(1), reason: reason.to_owned() };
            match RebuiltBoards::of([game.clone()], &policy, Some(&log)) {
                Ok(rebuilt) => {
                    assert!(!is_false, "{reason}");
                    assert_eq!(rebuilt.reasons, BTreeMap::from([(reason.to_owned(), 1)]));
                }
                Err(error) => assert_eq!((error, is_false), (expected, true)),
            }
        }
    }

    #[test]
    fn games_that_count_in_part_are_counted_by_reason() {
        let mut games = [
            game(1, ["ada", "bob"], [1.0, 0.0]),
            game(2, ["ada", ""], [1.0, 0.0]),
            game(3, ["", ""], [1.0, 0.0]),
            game(4, ["ada", "?"], [1.0, 0.0]),
            game(5, ["", "ada"], [1.0, 0.0]),
        ];
        games[4].options = json!({"setSize": 6});
        let rebuilt = RebuiltBoards::of(games, &policy(), None).unwrap();
        let partial: Vec<String> = rebuilt.partial.iter().map(|(reason, games)| format!("{reason} ×{games}")).collect();
        let expected =
            ["no player with a user id ×1", "a player without a user id ×2", "another board than the main one ×1"];
        assert_eq!((rebuilt.counted, partial), (5, expected.map(str::to_owned).to_vec()));
        assert!(rebuilt.reasons.is_empty());
    }

    #[test]
    fn a_session_that_was_imported_after_its_removal_counts_once() {
        let policy = policy();
        let former = game(1, ["ada", "bob"], [1.0, 0.0]);
        let imported = RecordedGame { hash: "f".repeat(64), ..former.clone() };
        let removed = leaf("removed", 1, r#""reason":"administrator""#);
        let again = leaf("ended", 1, &format!(r#""ending":"completed","record":"{}""#, imported.hash));
        let leaves = [created(1, true), ended(1), removed.clone(), created(1, true), again, removed];
        let counted = |leaves: &[String], games: &[&RecordedGame]| {
            let rebuilt = RebuiltBoards::of(games.iter().copied().cloned(), &policy, Some(&logged(leaves))).unwrap();
            (rebuilt.counted, rebuilt.excluded.len(), rebuilt.missing.len())
        };
        assert_eq!(counted(&leaves[..2], &[&former]), (1, 0, 0));
        assert_eq!(counted(&leaves[..3], &[&former]), (0, 1, 0));
        assert_eq!(counted(&leaves[..5], &[&former, &imported]), (1, 0, 0));
        assert_eq!(counted(&leaves[..5], &[&former]), (0, 0, 1));
        assert_eq!(counted(&leaves[..], &[&former, &imported]), (0, 1, 0));
    }

    #[test]
    fn an_unlisted_game_is_in_no_total() {
        let policy = policy();
        let log = logged(&[created(1, true), leaf("excluded", 1, r#""reason":"unlisted""#)]);
        let rebuilt = RebuiltBoards::of([game(1, ["ada", "bob"], [1.0, 0.0])], &policy, Some(&log)).unwrap();
        let reasons: Vec<String> = rebuilt.excluded.iter().map(|game| game.reason.to_string()).collect();
        assert_eq!(reasons, ["unlisted"]);
        assert_eq!((rebuilt.counted, rebuilt.participants, rebuilt.completed.len()), (0, 0, 0));
        assert!(rebuilt.missing.is_empty());
        let open = [created(1, true), created(2, true), created(3, false), ended(2)];
        assert_eq!((log.unfinished(), logged(&open).unfinished()), (0, 1));
    }

    #[test]
    fn empty_seats_have_no_players() {
        // A session from another arena may have ended with an empty seat. Its two players are known.
        let mut game = game(1, ["ada", "bob"], [1.0, 0.0]);
        game.end.as_mut().unwrap().scores.push(Score { security: 0.0, utility: 0.0 });
        let policy = policy();
        let rebuilt = RebuiltBoards::of([game], &policy, None).unwrap();
        let expected = [("ada".to_owned(), 1, 1.0), ("bob".to_owned(), 1, 0.0)];
        assert_eq!(rows(&rebuilt, &policy, "average:utility"), expected);
    }

    #[test]
    fn unreadable_leaves_are_named() {
        for (leaves, part) in [
            (vec!["{}".to_owned()], "leaf 0"),
            (
                vec![created(1, true), r#"{"leaf":"ended","session":"x","ending":"completed","record":""}"#.to_owned()],
                "leaf 1",
            ),
            (vec![ended(1), ended(1)], "has ended before"),
        ] {
            let error = LoggedSessions::read(leaves.iter().map(String::as_str)).unwrap_err();
            assert!(error.contains(part), "{error}");
        }
    }

    #[test]
    fn profiles_decide_the_order_of_equal_players_and_are_shown() {
        let games = [game(1, ["ada", "bob"], [0.5, 0.5])];
        let policy = policy();
        let rebuilt = RebuiltBoards::of(games, &policy, None).unwrap();
        let board = policy.global_board();
        let order = policy.scoring.order(&board, None).unwrap();
        let text = |profiles: &str| {
            let profiles: Vec<LeaderboardProfile> = serde_json::from_str(profiles).unwrap();
            let rows = rebuilt.rows(&policy.scoring, &board, &order, &profiles);
            let line = |row: &LeaderboardRow| {
                let json = serde_json::to_value(row).unwrap();
                format!("{} {} {} {}", json["playerId"], json["username"], json["model"], json["isBenchmark"])
            };
            rows.iter().map(line).collect::<Vec<_>>().join("; ")
        };
        assert_eq!(text("[]"), r#""ada" null null null; "bob" null null null"#);
        let profiles = r#"[{"userId":"bob","username":"Bob","isBenchmark":true},{"userId":"ada","model":"m"}]"#;
        assert_eq!(text(profiles), r#""bob" "Bob" null true; "ada" null "m" null"#);
    }

    #[test]
    fn every_strategy_can_be_rebuilt() {
        let names: Vec<String> = strategies().iter().map(|strategy| strategy.name.to_owned()).collect();
        let policy = LeaderboardPolicy { scoring: Scoring::new(&names, [], None, None).unwrap(), ..policy() };
        let rebuilt = RebuiltBoards::of([game(1, ["ada", "bob"], [1.0, 0.0])], &policy, None).unwrap();
        let boards = policy.boards_of("psi", &policy.main["psi"]);
        assert_eq!(boards.len(), names.len());
        for board in &boards {
            let order = policy.scoring.order(board, None).unwrap();
            assert_eq!(rebuilt.rows(&policy.scoring, board, &order, &[]).len(), 2, "{board:?}");
        }
        assert!(policy.scoring.order(&policy.global_board(), None).is_none());
    }
}
