//! The leaderboards of `arena board rebuild` in the form of a server's answers, and as tables.

use std::collections::BTreeMap;

use arena_model::{Board, BoardId};
use arena_record::boards::{LeaderboardPolicy, LeaderboardProfile, LeaderboardRow, RebuiltBoards};
use serde::Serialize;

use crate::output::{Table, counted, counted_as};

/// The leaderboards in the form of a server's answers.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct AllBoards {
    /// The answer of `/api/scoring`.
    global: Vec<LeaderboardRow>,
    /// The answers of `/api/scoring/{name}`, by challenge type.
    challenges: BTreeMap<String, ChallengeBoards>,
    /// The answers of `/api/scoring/{name}?board={id}` for boards that aren't the main board, by challenge type.
    others: BTreeMap<String, BTreeMap<String, ChallengeBoards>>,
    /// The answer of `/api/stats`.
    stats: AllStats,
    /// The number of games that count.
    games: u64,
    /// The records of games that don't count.
    excluded: Vec<ExclusionLine>,
    /// The number of games that don't count, by reason. With a log, its leaderboard pages have the same numbers.
    reasons: BTreeMap<String, u64>,
    /// The number of games that count in part, by reason.
    partial: BTreeMap<String, u64>,
    /// The sessions that the log contains, and that have no record.
    missing: Vec<String>,
    /// The number of seats whose users are withheld.
    withheld: u64,
    /// The number of records without a signature, if no log confirms them.
    pub unsealed: u64,
    /// The number of rated sessions that have neither ended nor been removed by the log.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unfinished: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub log: Option<CheckpointLine>,
}

/// The checkpoint of the log with which the leaderboards were computed.
#[derive(Debug, Serialize)]
pub struct CheckpointLine {
    pub origin: String,
    pub size: u64,
    pub root: String,
}

/// The leaderboards of one board by strategy, in the order of the settings.
#[derive(Debug)]
struct ChallengeBoards(Vec<(&'static str, Vec<LeaderboardRow>)>);

impl Serialize for ChallengeBoards {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(strategy, rows)| (strategy, rows)))
    }
}

#[derive(Debug, Serialize)]
struct AllStats {
    challenges: BTreeMap<String, GamesPlayed>,
    global: GlobalStats,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct GamesPlayed {
    games_played: u64,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct GlobalStats {
    participants: u64,
    games_played: u64,
}

#[derive(Debug, Serialize)]
struct ExclusionLine {
    session: String,
    reason: String,
}

impl AllBoards {
    pub fn of(rebuilt: &RebuiltBoards, policy: &LeaderboardPolicy, profiles: &[LeaderboardProfile]) -> AllBoards {
        let rows = |board: &Board| match policy.scoring.order(board, None) {
            Some(order) => rebuilt.rows(&policy.scoring, board, &order, profiles),
            None => Vec::new(),
        };
        let boards_of = |challenge: &str, id: &BoardId| {
            let boards = policy.boards_of(challenge, id);
            let named = boards.iter().filter_map(|board| match board {
                Board::Of { strategy, .. } => Some((*strategy, rows(board))),
                Board::Global(_) => None,
            });
            ChallengeBoards(named.collect())
        };
        let mut others: BTreeMap<String, BTreeMap<String, ChallengeBoards>> = BTreeMap::new();
        for (challenge, boards) in &rebuilt.boards {
            for id in boards.keys().filter(|id| policy.main.get(challenge) != Some(*id)) {
                others.entry(challenge.clone()).or_default().insert(id.to_string(), boards_of(challenge, id));
            }
        }
        let mut played: BTreeMap<String, u64> = policy.main.keys().map(|challenge| (challenge.clone(), 0)).collect();
        played.extend(rebuilt.completed.iter().map(|(challenge, games)| (challenge.clone(), *games)));
        let global = GlobalStats { participants: rebuilt.participants, games_played: played.values().sum() };
        AllBoards {
            global: rows(&policy.global_board()),
            challenges: policy.main.iter().map(|(name, id)| (name.clone(), boards_of(name, id))).collect(),
            others,
            stats: AllStats {
                challenges: played
                    .into_iter()
                    .map(|(name, games_played)| (name, GamesPlayed { games_played }))
                    .collect(),
                global,
            },
            games: rebuilt.counted,
            excluded: rebuilt
                .excluded
                .iter()
                .map(|game| ExclusionLine { session: game.session.to_string(), reason: game.reason.to_string() })
                .collect(),
            missing: rebuilt.missing.iter().map(ToString::to_string).collect(),
            reasons: rebuilt.reasons.clone(),
            partial: rebuilt.partial.iter().map(|(reason, games)| (reason.to_string(), *games)).collect(),
            withheld: rebuilt.withheld,
            unsealed: 0,
            unfinished: None,
            log: None,
        }
    }

    /// Returns the leaderboards as tables, with the number of games and the reasons for exclusions.
    pub fn describe(&self) -> String {
        let mut parts = Vec::new();
        if !self.global.is_empty() {
            parts.push(format!("all challenges\n{}", table(&self.global)));
        }
        for (challenge, boards) in &self.challenges {
            for (strategy, rows) in boards.0.iter().filter(|(_, rows)| !rows.is_empty()) {
                parts.push(format!("{challenge}, {strategy}\n{}", table(rows)));
            }
        }
        let listed = |reasons: &BTreeMap<String, u64>| {
            reasons.iter().map(|(reason, games)| format!("\n  {reason} ×{games}")).collect::<String>()
        };
        let count: u64 = self.reasons.values().sum();
        let mut end = format!("games: {} counted, {count} excluded{}", self.games, listed(&self.reasons));
        if !self.partial.is_empty() {
            end += &format!("\ngames that count in part:{}", listed(&self.partial));
        }
        if self.withheld > 0 {
            let seats = counted_as(self.withheld, "seat has", "seats have");
            end += &format!("\n{seats} a withheld user, who is on no leaderboard");
        }
        if !self.missing.is_empty() {
            let games = counted(self.missing.len(), "game");
            end += &format!("\n{games} of the log without a record: {}", self.missing.join(", "));
        }
        if let Some(unfinished) = self.unfinished.filter(|unfinished| *unfinished > 0) {
            let games = counted(unfinished, "game");
            end += &format!("\n{games} of the log without an end: still running, or their ends are missing");
        }
        if let Some(CheckpointLine { origin, size, root }) = &self.log {
            end += &format!("\nlog {origin}, {size} leaves, root {root}");
        }
        parts.push(end);
        parts.join("\n\n")
    }
}

fn table(rows: &[LeaderboardRow]) -> String {
    let mut keys: Vec<&str> = Vec::new();
    for key in rows.iter().flat_map(|row| row.entry().metrics.keys()) {
        if !keys.contains(key) {
            keys.push(key);
        }
    }
    let mut header = vec!["place", "player", "games"];
    // The part of a key before the colon is the leaderboard's name.
    header.extend(keys.iter().map(|key| key.split_once(':').map_or(*key, |(_, metric)| metric)));
    let mut table = Table::new(&header);
    for (place, row) in rows.iter().enumerate() {
        let entry = row.entry();
        let mut cells = vec![(place + 1).to_string(), row.name().to_owned(), entry.games_played.to_string()];
        cells.extend(keys.iter().map(|key| match (entry.metrics.get(key), entry.intervals.get(key)) {
            (Some(value), Some([low, high])) => format!("{value:.2} [{low:.2}, {high:.2}]"),
            (Some(value), None) => value.to_string(),
            (None, _) => String::new(),
        }));
        table.row(cells);
    }
    table.right([0].into_iter().chain(2..header.len())).to_string()
}
