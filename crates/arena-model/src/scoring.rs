//! Leaderboards: the strategies that turn finished games into standings.
//!
//! A built-in strategy is a file in `scoring/`, with its module and its entry in [`STRATEGIES`]. It defines the
//! observation of one player in one game; averages, streaks and intervals are shared by all strategies. A player's
//! standing depends only on that player's games in the order in which they ended, so each player's standing can be
//! rebuilt separately.
//!
//! A [`ScriptedStrategy`] is computed elsewhere. It shares only the boards: their names, metrics and orders.

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

/// A method of scoring players over many games.
#[derive(Debug)]
pub struct Strategy {
    /// The strategy's name, such as `win-rate`.
    pub name: &'static str,
    /// The strategy's name for people, such as `Win rate`.
    pub title: &'static str,
    /// The measure in one sentence, for people.
    pub summary: &'static str,
    /// The strategy's metrics, the most important first.
    pub metrics: &'static [Metric],
    /// True if a game counts only if it has at least two players and all of them are identified.
    pub needs_known_players: bool,
    /// Returns the observation of the player on a seat: one number for each metric, in their order. `None` for a
    /// scripted strategy.
    observe: Option<Observe>,
}

type Observe = fn(&GameResult<'_>, Seat) -> Vec<f64>;

/// Strategies have unique names, so equal names with equal metrics are the same strategy.
impl PartialEq for Strategy {
    fn eq(&self, other: &Strategy) -> bool {
        (self.name, self.title, self.summary, self.metrics) == (other.name, other.title, other.summary, other.metrics)
    }
}

impl Strategy {
    /// Creates a strategy whose numbers a script computes.
    pub const fn scripted(
        name: &'static str,
        title: &'static str,
        summary: &'static str,
        metrics: &'static [Metric],
    ) -> Strategy {
        Strategy { name, title, summary, metrics, needs_known_players: false, observe: None }
    }

    /// Returns a player's tally for the numbers that a script has computed, by metric. A metric without a number has
    /// none on the board either.
    pub fn tally(&self, entry: &StrategyEntry) -> Tally {
        let given = |metric: &Metric| Measure::Given(entry.metrics.get(metric.key).copied().unwrap_or(f64::NAN));
        Tally { games: entry.games, measures: self.metrics.iter().map(given).collect() }
    }
}

/// A player's numbers by a scripted strategy, as the script has set them.
#[derive(Debug, Clone, PartialEq)]
pub struct StrategyEntry {
    pub games: u64,
    pub metrics: BTreeMap<String, f64>,
}

/// A scripted strategy's data about one player, or about all.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct StrategyRow {
    /// `None` if the player isn't on the board.
    pub entry: Option<StrategyEntry>,
    /// JSON that only the script reads.
    pub state: Option<String>,
}

/// The rows of a scripted strategy, by board and player. The player "" has the data about all.
pub type StrategyRows = BTreeMap<(String, String), StrategyRow>;

/// A strategy whose numbers a script computes, with the challenge types that it scores.
#[derive(Debug, Clone, PartialEq)]
pub struct ScriptedStrategy {
    pub strategy: &'static Strategy,
    /// `None` for all challenge types.
    pub challenges: Option<BTreeSet<String>>,
}

impl ScriptedStrategy {
    pub fn scores(&self, challenge: &str) -> bool {
        self.challenges.as_ref().is_none_or(|challenges| challenges.contains(challenge))
    }
}

/// A number that a strategy computes for a player.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Metric {
    /// The key in `metrics` of a [`ScoringEntry`], such as `win-rate:utility`.
    pub key: &'static str,
    /// The label shown to people, such as `Utility`.
    pub label: &'static str,
    /// The aggregation over games.
    pub kind: MetricKind,
    /// The number format on pages.
    pub format: MetricFormat,
}

/// The number format of a metric. For every metric, more is better.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum MetricFormat {
    /// A decimal number.
    #[default]
    Number,
    /// A share from 0 to 1, shown as a percentage.
    Percent,
    /// An integer.
    Count,
}

/// The aggregation of a player's games in a metric.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum MetricKind {
    /// The mean of the observations. A game usually gives `low` to `high`; an observation outside widens the range.
    Mean {
        /// The usual minimum of one game.
        low: f64,
        /// The usual maximum of one game.
        high: f64,
    },
    /// The number of latest games in a row with an observation other than 0.
    Streak,
    /// The number that a script has computed.
    Given,
}

/// All strategies for single challenge types, in the order of lists for people.
static STRATEGIES: &[Strategy] = &[average::AVERAGE, win_rate::WIN_RATE, red_team::RED_TEAM, consecutive::CONSECUTIVE];

#[derive(Debug, Clone, PartialEq)]
pub struct GameResult<'s> {
    pub challenge: &'s str,
    pub board: BoardId,
    /// The users by seat; `None` for unidentified players, and for users whose ids are unknown.
    pub users: Vec<Option<&'s UserId>>,
    /// The number of players with a user id, known or not.
    pub identified: usize,
    /// The final score of each seat.
    pub scores: &'s [Score],
    pub attributions: &'s [Attribution],
}

impl GameResult<'_> {
    /// Returns `None` unless the session counts: it has a board, ended by its rules, and no user held two seats.
    pub fn of(session: &Session) -> Option<GameResult<'_>> {
        let Phase::Ended { ending: Ending::Completed, .. } = session.phase else { return None };
        let users: Vec<Option<&UserId>> = session.seats.iter().map(|occupant| occupant.user.as_ref()).collect();
        let played_itself = users.iter().enumerate().any(|(seat, user)| user.is_some() && users[..seat].contains(user));
        let board = session.facts.board()?;
        (!played_itself).then_some(GameResult {
            challenge: &session.facts.challenge,
            board,
            users,
            identified: session.seats.iter().filter(|occupant| occupant.is_identified()).count(),
            scores: &session.scores,
            attributions: &session.attributions,
        })
    }

    /// Returns true if there are at least two players and all are identified.
    fn is_between_known(&self) -> bool {
        self.users.len() >= 2 && self.identified == self.users.len()
    }

    /// Returns the number of security breaches for which `who` returns this seat.
    fn breaches(&self, seat: Seat, who: impl Fn(&Attribution) -> Seat) -> f64 {
        self.attributions
            .iter()
            .filter(|attribution| attribution.kind == "security_breach" && who(attribution) == seat)
            .count() as f64
    }
}

/// A strategy's data about one player. Its size doesn't grow with the number of games.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Tally {
    /// The number of counted games.
    pub games: u64,
    /// One measure for each metric of the strategy.
    measures: Vec<Measure>,
}

impl Tally {
    fn new(strategy: &Strategy) -> Tally {
        Tally { games: 0, measures: strategy.metrics.iter().map(|metric| Measure::new(metric.kind)).collect() }
    }

    /// A tally that another version of the program stored may have other measures.
    fn fits(&self, strategy: &Strategy) -> bool {
        let metrics = strategy.metrics;
        self.measures.len() == metrics.len()
            && self.measures.iter().zip(metrics).all(|(measure, metric)| measure.fits(metric.kind))
    }
}

/// A player's tallies on one board, by the strategy's name.
pub type BoardStanding = BTreeMap<String, Tally>;

/// A player's standings by board.
pub type PlayerStandings = BTreeMap<String, BoardStanding>;

/// One player on a leaderboard: `ScoringEntry` on the wire, without the player's id.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ScoringEntry {
    /// The number of counted games.
    pub games_played: u64,
    /// The metrics by key.
    #[schema(value_type = BTreeMap<String, f64>)]
    pub metrics: BTreeMap<&'static str, f64>,
    /// The 95 % interval of the player's true average, by key; averages only.
    #[schema(value_type = BTreeMap<String, [f64; 2]>)]
    pub intervals: BTreeMap<&'static str, [f64; 2]>,
    /// The numbers of games won, drawn and lost, if the mean utility is a mean of 1, 0 and -1; for pages only.
    #[serde(skip)]
    pub outcomes: Option<[u64; 3]>,
}

impl ScoringEntry {
    /// Returns the number by which a board is sorted.
    pub fn sort_key(&self, order: &Order) -> Option<f64> {
        let value = self.metrics.get(order.metric).copied();
        if order.by_low_end { self.intervals.get(order.metric).map(|interval| interval[0]).or(value) } else { value }
    }
}

/// The sort order of a leaderboard, largest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Order {
    pub metric: &'static str,
    /// True to sort by the lower end of the interval, so that a player with a high mean over few games doesn't lead.
    /// A metric without an interval is sorted by its value.
    pub by_low_end: bool,
}

/// The selection of a leaderboard: one strategy on one board, or the global leaderboard.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Board {
    /// The global leaderboard over several challenge types, with one board of each.
    Global(BTreeSet<BoardId>),
    /// The leaderboard of one board by one strategy.
    Of { challenge: String, id: BoardId, strategy: &'static str },
}

#[derive(Debug, Clone, Default, PartialEq)]
pub struct Scoring {
    /// The strategies of challenge types that `by_challenge` doesn't contain, such as challenges that are added while
    /// the arena runs.
    default: Vec<&'static str>,
    /// The names of strategies by challenge type.
    by_challenge: BTreeMap<String, Vec<&'static str>>,
    /// The strategy that the global board averages, if the arena has a global board.
    global_source: Option<&'static str>,
    /// The scripted strategies, which may change while the arena runs.
    scripted: Vec<ScriptedStrategy>,
}

/// The error for a strategy that doesn't exist or can't be used for its purpose.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ScoringError {
    #[error("unknown strategy: {0}; known strategies: {known}", known = names())]
    Unknown(String),
    #[error("unknown global strategy: {0}; the only one is {GLOBAL_AVERAGE}")]
    UnknownGlobal(String),
    #[error("globalSource must be a strategy that averages security and utility; it is {0}")]
    NoSource(String),
}

/// Returns all strategies for single challenge types.
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
    /// Creates the scoring of an arena. Each challenge type gets the strategies of `default` and its own. The global
    /// strategy called `global` averages `source`, or the first of `default`.
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
        // A strategy that is named twice is added once, so that each game counts once.
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
            (Some(GLOBAL_AVERAGE), None) => return Err(ScoringError::NoSource("unset".to_owned())),
            (Some(other), _) => return Err(ScoringError::UnknownGlobal(other.to_owned())),
        };
        Ok(Scoring { default, by_challenge, global_source, scripted: Vec::new() })
    }

    /// Replaces the scripted strategies.
    pub fn with_scripted(self, scripted: Vec<ScriptedStrategy>) -> Scoring {
        Scoring { scripted, ..self }
    }

    pub fn scripted(&self) -> &[ScriptedStrategy] {
        &self.scripted
    }

    /// Returns the strategy of this name, built in or scripted.
    pub fn find(&self, name: &str) -> Option<&'static Strategy> {
        let scripted = || self.scripted.iter().map(|scripted| scripted.strategy).find(|known| known.name == name);
        find(name).or_else(scripted)
    }

    /// The arena stores the description beside the standings, and rebuilds them when it has changed. Standings don't
    /// contain scripted strategies.
    pub fn describe(&self) -> String {
        let by_challenge: Vec<String> = self
            .by_challenge
            .iter()
            .map(|(challenge, strategies)| format!("{challenge}: {}", strategies.join(", ")))
            .collect();
        // Older programs had another prefix. Their standings had no boards, so the change of the prefix makes the
        // arena rebuild them.
        format!("by board, all: {}; {}", self.default.join(", "), by_challenge.join("; "))
    }

    pub fn strategies(&self, challenge: &str) -> impl Iterator<Item = &'static Strategy> + use<> {
        let names = self.by_challenge.get(challenge).unwrap_or(&self.default).iter();
        let scripted = self.scripted.iter().filter(|scripted| scripted.scores(challenge));
        let strategies = names.filter_map(|name| find(name)).chain(scripted.map(|scripted| scripted.strategy));
        strategies.collect::<Vec<_>>().into_iter()
    }

    /// Returns the strategy that the global board averages, if there is one.
    pub fn global_source(&self) -> Option<&'static str> {
        self.global_source
    }

    pub fn has_global(&self) -> bool {
        self.global_source.is_some()
    }

    /// Returns the metrics of a board; an empty list if the arena has no such board.
    pub fn metrics(&self, board: &Board) -> &'static [Metric] {
        match board {
            Board::Global(_) if self.has_global() => global_average::METRICS,
            Board::Of { challenge, strategy, .. } => {
                self.strategies(challenge).find(|known| known.name == *strategy).map_or(&[], |known| known.metrics)
            }
            Board::Global(_) => &[],
        }
    }

    /// Returns the sort order of a board. `sort` is a metric's key, or a key with `:low` for the lower end of the
    /// metric's interval. Without `sort`, the order is the lower end of the first metric's interval. Returns `None`
    /// if the board has no such metric.
    pub fn order(&self, board: &Board, sort: Option<&str>) -> Option<Order> {
        let metrics = self.metrics(board);
        let Some(sort) = sort else {
            return metrics.first().map(|metric| Order { metric: metric.key, by_low_end: true });
        };
        let (key, by_low_end) = sort.strip_suffix(":low").map_or((sort, false), |key| (key, true));
        metrics.iter().find(|metric| metric.key == key).map(|metric| Order { metric: metric.key, by_low_end })
    }

    /// Adds one game to the standing of the player at `seat` on the game's board.
    pub fn count(&self, result: &GameResult<'_>, seat: Seat, standing: &mut BoardStanding) {
        let names = self.by_challenge.get(result.challenge).unwrap_or(&self.default);
        for strategy in names
            .iter()
            .filter_map(|name| find(name))
            .filter(|strategy| !strategy.needs_known_players || result.is_between_known())
        {
            let Some(observe) = strategy.observe else { continue };
            let tally = standing.entry(strategy.name.to_owned()).or_insert_with(|| Tally::new(strategy));
            if !tally.fits(strategy) {
                *tally = Tally::new(strategy);
            }
            tally.games += 1;
            for (measure, value) in tally.measures.iter_mut().zip(observe(result, seat)) {
                measure.observe(value);
            }
        }
    }

    /// Returns a player's entry on a board, or `None` if the player isn't on it.
    pub fn entry(&self, board: &Board, standings: &PlayerStandings) -> Option<ScoringEntry> {
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
        metrics: measured()
            .map(|(metric, measure)| (metric.key, measure.value(tally.games)))
            .filter(|(_, value)| !value.is_nan())
            .collect(),
        intervals: measured()
            .filter_map(|(metric, measure)| Some((metric.key, measure.interval(metric.kind, tally.games)?)))
            .collect(),
        outcomes: measured()
            .find(|(metric, _)| metric.key == average::UTILITY)
            .and_then(|(_, measure)| measure.outcomes(tally.games)),
    }
}

#[cfg(test)]
mod tests;
