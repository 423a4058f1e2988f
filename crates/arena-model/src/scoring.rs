//! Leaderboards: what a finished game adds to each player's standing, and what a standing says.
//!
//! A strategy is a file in `scoring/`, with its module and its place in [`STRATEGIES`]. It says what to observe of one player in one game;
//! averaging, counting streaks and intervals are the same for all. A player's standing depends on that player's own
//! games alone, in the order in which they ended, so it can be rebuilt for each player apart.

mod average;
mod consecutive;
mod global_average;
mod measure;
mod red_team;
mod win_rate;

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::{Attribution, BoardId, Ending, Phase, Score, Seat, Session, UserId};
use measure::Measure;

pub use average::mean_score;
pub use global_average::GLOBAL_AVERAGE;

/// A way to score players over many games.
#[derive(Debug)]
pub struct Strategy {
    /// Its name, such as `win-rate`.
    pub name: &'static str,
    /// The numbers that it tells of a player, the most telling first.
    pub metrics: &'static [Metric],
    /// True if it counts only games of two players or more, all of them known.
    needs_known_players: bool,
    /// Its observation of the player on a seat: a number for each of its metrics, in their order.
    observe: fn(&GameResult<'_>, Seat) -> Vec<f64>,
}

/// One number that a strategy tells of a player.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Metric {
    /// Key in `metrics` of a [`ScoringEntry`], such as `win-rate:utility`.
    pub key: &'static str,
    /// For people, such as `Utility`.
    pub label: &'static str,
    /// How games come together in it.
    pub kind: MetricKind,
    /// Its form on pages.
    pub format: MetricFormat,
}

/// The form in which a metric is shown. Of all of them, more is better.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum MetricFormat {
    /// A number with a fraction.
    Number,
    /// A share from 0 to 1, shown in percent.
    Percent,
    /// A whole number.
    Count,
}

/// How the games of a player come together in a metric.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum MetricKind {
    /// The mean of what was observed. A game is expected to give `low` to `high`; one that gives more widens that.
    Mean {
        /// Least that a game is expected to give.
        low: f64,
        /// Most that a game is expected to give.
        high: f64,
    },
    /// How many games in a row, up to the latest, gave something other than 0.
    Streak,
}

/// All strategies that count games of one challenge type, in the order of every list.
static STRATEGIES: &[Strategy] = &[average::AVERAGE, win_rate::WIN_RATE, red_team::RED_TEAM, consecutive::CONSECUTIVE];

/// A finished game as scoring sees it.
#[derive(Debug, Clone, PartialEq)]
pub struct GameResult<'s> {
    /// The challenge type.
    pub challenge: &'s str,
    /// The board that it counts on.
    pub board: BoardId,
    /// Who sat where, as far as known.
    pub users: Vec<Option<&'s UserId>>,
    /// The final score of each seat.
    pub scores: &'s [Score],
    /// What players did to each other.
    pub attributions: &'s [Attribution],
}

impl GameResult<'_> {
    /// The result of a session that counts: it has a board, came to its end by its rules, and nobody held two of its seats.
    pub fn of(session: &Session) -> Option<GameResult<'_>> {
        let Phase::Ended { ending: Ending::Completed, .. } = session.phase else { return None };
        let users: Vec<Option<&UserId>> = session.seats.iter().map(|occupant| occupant.user.as_ref()).collect();
        let played_itself = users.iter().enumerate().any(|(seat, user)| user.is_some() && users[..seat].contains(user));
        let board = session.facts.board()?;
        (!played_itself).then_some(GameResult {
            challenge: &session.facts.challenge,
            board,
            users,
            scores: &session.scores,
            attributions: &session.attributions,
        })
    }

    /// Whether there are two players or more and all of them are known.
    fn is_between_known(&self) -> bool {
        self.users.len() >= 2 && self.users.iter().all(Option::is_some)
    }

    /// How often a breach of security was recorded for which `who` picks the seat in question.
    fn breaches(&self, seat: Seat, who: impl Fn(&Attribution) -> Seat) -> f64 {
        self.attributions
            .iter()
            .filter(|attribution| attribution.kind == "security_breach" && who(attribution) == seat)
            .count() as f64
    }
}

/// What a strategy remembers of one player. Bounded, however many games there were.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Tally {
    /// Games that the strategy has counted.
    pub games: u64,
    /// One for each metric of the strategy.
    measures: Vec<Measure>,
}

impl Tally {
    fn new(strategy: &Strategy) -> Tally {
        Tally { games: 0, measures: strategy.metrics.iter().map(|metric| Measure::new(metric.kind)).collect() }
    }

    /// Whether it is a tally of this strategy: stored ones may come from a program that knew it differently.
    fn fits(&self, strategy: &Strategy) -> bool {
        let metrics = strategy.metrics;
        self.measures.len() == metrics.len()
            && self.measures.iter().zip(metrics).all(|(measure, metric)| measure.fits(metric.kind))
    }
}

/// A player's record on one board: a [`Tally`] by the name of each strategy.
pub type Standing = BTreeMap<String, Tally>;

/// A player's record: a [`Standing`] by board.
pub type Standings = BTreeMap<String, Standing>;

/// One player on a leaderboard: the `ScoringEntry` of the wire, without whom it is about.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ScoringEntry {
    /// Games counted.
    pub games_played: u64,
    /// By key.
    #[schema(value_type = BTreeMap<String, f64>)]
    pub metrics: BTreeMap<&'static str, f64>,
    /// By key of an average: where the player's true average lies, with 95 % confidence.
    #[schema(value_type = BTreeMap<String, [f64; 2]>)]
    pub intervals: BTreeMap<&'static str, [f64; 2]>,
}

impl ScoringEntry {
    /// The number that a board is sorted by.
    pub fn sort_key(&self, order: &Order) -> Option<f64> {
        let value = self.metrics.get(order.metric).copied();
        if order.by_low_end { self.intervals.get(order.metric).map(|interval| interval[0]).or(value) } else { value }
    }
}

/// What a leaderboard is sorted by, the largest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Order {
    /// The metric's key.
    pub metric: &'static str,
    /// By the lower end of its interval, so that few games don't beat many; a metric without one counts as it is.
    pub by_low_end: bool,
}

/// A leaderboard: a strategy's for one board, or the global one.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Board {
    /// Over several challenge types: one board of each.
    Global(BTreeSet<BoardId>),
    /// Of one board, by one strategy.
    Of {
        /// The challenge type.
        challenge: String,
        /// The games that count on it.
        id: BoardId,
        /// The strategy's name.
        strategy: &'static str,
    },
}

/// Which strategies count which games, in one arena.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Scoring {
    /// The strategies of challenge types that have none of their own, such as folders that were added while the arena runs.
    default: Vec<&'static str>,
    /// Names of strategies by challenge type.
    by_challenge: BTreeMap<String, Vec<&'static str>>,
    /// The strategy over whose metrics the global average is taken, if the arena has a global board.
    global_source: Option<&'static str>,
}

/// A strategy that doesn't exist, or can't be where it was put.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ScoringError {
    /// There is no such strategy.
    #[error("no such strategy: {0}; there are: {known}", known = names())]
    Unknown(String),
    /// There is no such global strategy.
    #[error("no such global strategy: {0}; there is: {GLOBAL_AVERAGE}")]
    UnknownGlobal(String),
    /// A global average needs something to average.
    #[error("globalSource: {0} doesn't give each player a security and a utility")]
    NoSource(String),
}

/// All strategies that can count games of a challenge type.
pub fn strategies() -> &'static [Strategy] {
    STRATEGIES
}

fn names() -> String {
    STRATEGIES.iter().map(|strategy| strategy.name).collect::<Vec<_>>().join(", ")
}

fn find(name: &str) -> Option<&'static Strategy> {
    STRATEGIES.iter().find(|strategy| strategy.name == name)
}

impl Scoring {
    /// The scoring of an arena: for each challenge type the strategies of `default` and its own, and over all of them
    /// the global strategy called `global`, which averages `source`, or else the first of `default`.
    ///
    /// # Errors
    /// [`ScoringError`] names the strategy that doesn't exist or doesn't fit.
    pub fn new<'a>(
        default: &[String],
        challenges: impl IntoIterator<Item = (&'a str, &'a [String])>,
        global: Option<&str>,
        source: Option<&str>,
    ) -> Result<Scoring, ScoringError> {
        let name_of =
            |name: &String| find(name).map(|strategy| strategy.name).ok_or_else(|| ScoringError::Unknown(name.clone()));
        // Each once, however often it is named: a game counts once.
        let add = |mut strategies: Vec<&'static str>, names: &[String]| -> Result<Vec<&'static str>, ScoringError> {
            for name in names {
                let name = name_of(name)?;
                if !strategies.contains(&name) {
                    strategies.push(name);
                }
            }
            Ok(strategies)
        };
        let default = add(Vec::new(), default)?;
        let mut by_challenge = BTreeMap::new();
        for (challenge, own) in challenges {
            by_challenge.insert(challenge.to_owned(), add(default.clone(), own)?);
        }
        let global_source = match (global, source.or(default.first().copied())) {
            (None, _) => None,
            (Some(GLOBAL_AVERAGE), Some(source)) => Some(global_average::source(source)?),
            (Some(GLOBAL_AVERAGE), None) => return Err(ScoringError::NoSource("nothing".to_owned())),
            (Some(other), _) => return Err(ScoringError::UnknownGlobal(other.to_owned())),
        };
        Ok(Scoring { default, by_challenge, global_source })
    }

    /// Scoring in a few words, the same for the same scoring: stored beside the standings that were made by it.
    pub fn describe(&self) -> String {
        let by_challenge: Vec<String> = self
            .by_challenge
            .iter()
            .map(|(challenge, strategies)| format!("{challenge}: {}", strategies.join(", ")))
            .collect();
        // Standings of programs that kept them by challenge type are counted anew.
        format!("by board, all: {}; {}", self.default.join(", "), by_challenge.join("; "))
    }

    /// The strategies that count games of a challenge type.
    pub fn strategies(&self, challenge: &str) -> impl Iterator<Item = &'static Strategy> + use<> {
        let names = self.by_challenge.get(challenge).unwrap_or(&self.default).clone();
        names.into_iter().filter_map(find)
    }

    /// The strategy whose metrics the global board averages, if there is one.
    pub fn global_source(&self) -> Option<&'static str> {
        self.global_source
    }

    /// Whether there is a global board.
    pub fn has_global(&self) -> bool {
        self.global_source.is_some()
    }

    /// The metrics of a board; none if the arena has no such board.
    pub fn metrics(&self, board: &Board) -> &'static [Metric] {
        match board {
            Board::Global(_) if self.has_global() => global_average::METRICS,
            Board::Of { challenge, strategy, .. } => {
                self.strategies(challenge).find(|known| known.name == *strategy).map_or(&[], |known| known.metrics)
            }
            Board::Global(_) => &[],
        }
    }

    /// What a board is sorted by: its first metric, by the lower end of its interval, unless `sort` says otherwise. That
    /// is a metric's key, or a key and `:low`. `None` if the board has no such metric.
    pub fn order(&self, board: &Board, sort: Option<&str>) -> Option<Order> {
        let metrics = self.metrics(board);
        let Some(sort) = sort else {
            return metrics.first().map(|metric| Order { metric: metric.key, by_low_end: true });
        };
        let (key, by_low_end) = sort.strip_suffix(":low").map_or((sort, false), |key| (key, true));
        metrics.iter().find(|metric| metric.key == key).map(|metric| Order { metric: metric.key, by_low_end })
    }

    /// Adds one game to the standing of the player at `seat` on the game's board.
    pub fn count(&self, result: &GameResult<'_>, seat: Seat, standing: &mut Standing) {
        for strategy in self
            .strategies(result.challenge)
            .filter(|strategy| !strategy.needs_known_players || result.is_between_known())
        {
            let tally = standing.entry(strategy.name.to_owned()).or_insert_with(|| Tally::new(strategy));
            if !tally.fits(strategy) {
                *tally = Tally::new(strategy);
            }
            tally.games += 1;
            for (measure, value) in tally.measures.iter_mut().zip((strategy.observe)(result, seat)) {
                measure.observe(value);
            }
        }
    }

    /// A player's entry on a board; `None` if the player isn't on it.
    pub fn entry(&self, board: &Board, standings: &Standings) -> Option<ScoringEntry> {
        match board {
            Board::Global(boards) => global_average::entry_of(self.global_source?, boards, standings),
            Board::Of { challenge, id, strategy } => {
                let strategy = self.strategies(challenge).find(|known| known.name == *strategy)?;
                let tally = standings.get(id.as_str())?.get(strategy.name).filter(|tally| tally.fits(strategy))?;
                Some(entry(strategy, tally))
            }
        }
    }
}

fn entry(strategy: &Strategy, tally: &Tally) -> ScoringEntry {
    let measured = || strategy.metrics.iter().zip(&tally.measures);
    ScoringEntry {
        games_played: tally.games,
        metrics: measured().map(|(metric, measure)| (metric.key, measure.value(tally.games))).collect(),
        intervals: measured()
            .filter_map(|(metric, measure)| Some((metric.key, measure.interval(metric.kind, tally.games)?)))
            .collect(),
    }
}

#[cfg(test)]
mod tests;
