//! `/api/scoring…`: leaderboards. `/api/stats`: numbers of games and participants.

use std::collections::{BTreeMap, BTreeSet};

use arena_model::{Board, GLOBAL_AVERAGE, Metric, MetricFormat, Order, ScoringEntry, UserProfile, strategies};
use arena_store::{BoardFacts, StrategyState};
use axum::extract::State;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::rows;
use super::rows::RowSource;
use crate::answer::{json, to_text};
use crate::arena::Arena;
use crate::error::{ApiError, ApiResult};
use crate::openapi::Part;
use crate::request::Get;

/// The order of a leaderboard.
#[derive(Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
struct Sorted {
    /// The metric to sort by, descending, such as `win-rate:utility`. With the suffix `:low`, by the lower end of its
    /// interval. Default: the lower end of the board's first metric.
    sort: Option<String>,
}

/// A player on a leaderboard.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = LeaderboardEntry)]
pub(super) struct Row {
    player_id: String,
    #[serde(flatten)]
    entry: ScoringEntry,
    #[serde(skip_serializing_if = "Option::is_none")]
    username: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    model: Option<String>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    #[schema(required = false)]
    is_benchmark: bool,
}

impl From<(UserProfile, ScoringEntry)> for Row {
    fn from((profile, entry): (UserProfile, ScoringEntry)) -> Row {
        let text = |text: &arena_model::ProfileText| text.as_str().to_owned();
        Row {
            player_id: profile.user_id.to_string(),
            entry,
            username: profile.username.as_ref().map(text),
            model: profile.model.as_ref().map(text),
            is_benchmark: profile.is_benchmark,
        }
    }
}

/// Returns the global leaderboard.
#[utoipa::path(get, path = "/api/scoring", tag = "scoring", params(Sorted, Part),
    responses((status = 200, body = [Row], description = "The players of the board; all without `limit`.",
            headers(("x-total-count" = u64, description = "Number of players on all pages."),
                ("link" = Option<String>, description = "With `limit`: links to the next, previous, first and last page (RFC 8288)."))),
        (status = 400, description = "`INVALID_SORT`: the board doesn't have the metric.")))]
pub(crate) async fn list_global(State(arena): State<Arena>, request: Get) -> ApiResult {
    let boards = if arena.engine.scoring().has_global() { vec![arena.engine.global_board()] } else { Vec::new() };
    let board = orders(&arena, boards, request.query::<Sorted>()?.sort.as_deref())?.pop();
    rows::list(arena, &request, board.map(|(board, order)| RowSource::Board(board, order))).await
}

/// Selection of a challenge type's boards.
#[derive(Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
struct WantedBoards {
    /// The strategy of the only leaderboard to return. Default: all strategies.
    #[param(example = "average")]
    strategy: Option<String>,
    /// The id of a board. Default: the main board.
    #[param(example = "0123456789abcdef")]
    board: Option<String>,
}

/// Returns the leaderboards of one challenge type. The main board counts games with the arena's options and the current
/// rules and prompt; `board` selects another one.
#[utoipa::path(get, path = "/api/scoring/{name}", tag = "scoring",
    params(("name" = String, Path, description = "The challenge type's id.", example = "psi"),
        WantedBoards, Sorted, Part),
    responses((status = 200, body = BTreeMap<String, Vec<Row>>,
            description = "Boards by strategy, in the order of the arena's settings; all players without `limit`.",
            headers(("x-total-count" = u64, description = "Number of players on all pages of the longest board."),
                ("link" = Option<String>, description = "With `limit`: links to the next, previous, first and last page (RFC 8288)."))),
        (status = 400, description = "
            `INVALID_SORT`: none of the boards has the metric.
            `UNKNOWN_STRATEGY`: the challenge type isn't scored by the strategy."),
        (status = 404, description = "
            `BOARD_NOT_FOUND`: the challenge type doesn't have the board.
            `CHALLENGE_NOT_FOUND`: this server doesn't host the challenge type.")))]
pub(crate) async fn list_of_type(State(arena): State<Arena>, request: Get) -> ApiResult {
    let challenge = request.param("name");
    if !arena.engine.challenges().contains_key(challenge) {
        return Err(ApiError::not_found("CHALLENGE_NOT_FOUND", "Unknown challenge type"));
    }
    let strategies: Vec<&'static str> =
        arena.engine.scoring().strategies(challenge).map(|strategy| strategy.name).collect();
    let WantedBoards { strategy, board } = request.query()?;
    let wanted = strategy.as_deref();
    let all = match board {
        None => arena.engine.main_boards(challenge),
        Some(id) => {
            let known = arena.engine.list_boards(challenge).await?;
            let found = known.iter().find(|board| board.id.as_str() == id);
            let missing = || ApiError::not_found("BOARD_NOT_FOUND", "Unknown board");
            arena.engine.boards_by_strategy(challenge, &found.ok_or_else(missing)?.id)
        }
    };
    let is_wanted = |board: &Board| match board {
        Board::Of { strategy, .. } => wanted.is_none_or(|wanted| wanted == *strategy),
        Board::Global(_) => false,
    };
    let boards: Vec<Board> = all.into_iter().filter(is_wanted).collect();
    if let (Some(wanted), true) = (wanted, boards.is_empty()) {
        let text = format!(
            "the challenge type {challenge} is not scored by {wanted:?}; its strategies are: {}",
            strategies.join(", ")
        );
        return Err(ApiError::bad_request("UNKNOWN_STRATEGY", text));
    }
    let boards = orders(&arena, boards, request.query::<Sorted>()?.sort.as_deref())?;
    let named = boards.into_iter().filter_map(|(board, order)| match board {
        Board::Of { strategy, .. } => Some((strategy, RowSource::Board(board, order))),
        Board::Global(_) => None,
    });
    rows::lists(arena, &request, named.collect()).await
}

/// A strategy of scoring.
#[derive(Serialize, ToSchema)]
#[schema(as = ScoringStrategy)]
struct StrategyShown {
    /// The strategy's name, such as `win-rate`.
    name: &'static str,
    /// The strategy's scope.
    scope: Scope,
    /// The strategy's metrics, the most important first.
    metrics: Vec<MetricShown>,
    /// The hosted challenge types whose games the strategy counts. For the global strategy: those of its source.
    challenges: Vec<String>,
    /// For the global strategy: the strategy that it averages.
    #[serde(skip_serializing_if = "Option::is_none")]
    source: Option<&'static str>,
    /// For a scripted strategy: the state of its count.
    #[serde(skip_serializing_if = "Option::is_none")]
    count: Option<CountShown>,
}

/// The state of a scripted strategy's count of games.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = ScoringCount)]
pub(super) struct CountShown {
    /// The hash of the script that counts.
    #[serde(skip_serializing_if = "Option::is_none")]
    version: Option<String>,
    /// The number of ended games that the count hasn't processed yet, including those of other challenges.
    behind: u64,
    /// The percentage of the games that a new count has processed. Until its end, the boards show the old numbers.
    #[serde(skip_serializing_if = "Option::is_none")]
    recomputing_percent: Option<u64>,
    /// The reason why the next game can't be counted, with the script's file and line.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

impl From<StrategyState> for CountShown {
    fn from(state: StrategyState) -> CountShown {
        CountShown {
            version: state.newest().map(|run| run.version.clone()),
            behind: state.behind(),
            recomputing_percent: state.percent(),
            error: state.error().map(str::to_owned),
        }
    }
}

/// The scope of a strategy.
#[derive(Clone, Copy, PartialEq, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
#[schema(as = ScoringScope)]
enum Scope {
    /// Players' results in one challenge type.
    Challenge,
    /// Players' results over all challenge types.
    Global,
}

/// A metric of a strategy.
#[derive(Serialize, ToSchema)]
#[schema(as = ScoringMetric)]
struct MetricShown {
    /// The metric's key in `metrics` of a board's entries.
    key: &'static str,
    /// The metric's name for people.
    label: &'static str,
    /// The metric's format on pages.
    format: MetricFormat,
    /// The direction in which values are better.
    direction: Direction,
}

/// The direction in which a metric's values are better.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
#[schema(as = ScoringDirection)]
enum Direction {
    /// Higher values are better.
    Higher,
}

fn shown(metrics: &[Metric]) -> Vec<MetricShown> {
    let metric =
        |&Metric { key, label, format, .. }: &Metric| MetricShown { key, label, format, direction: Direction::Higher };
    metrics.iter().map(metric).collect()
}

/// Lists the scoring strategies with their metrics.
#[utoipa::path(get, path = "/api/scoring/strategies", tag = "scoring",
    responses((status = 200, body = [StrategyShown], description = "
            All strategies that the arena can use, sorted by name, then the global one if there is a global board.")))]
pub(crate) async fn list_strategies(State(arena): State<Arena>, _request: Get) -> ApiResult {
    let (scoring, hosted) = (arena.engine.scoring(), arena.engine.challenges());
    let counted = |name: &str| -> Vec<String> {
        let is_counted = |challenge: &&String| scoring.strategies(challenge).any(|strategy| strategy.name == name);
        hosted.keys().filter(is_counted).cloned().collect()
    };
    let mut strategies: Vec<StrategyShown> = strategies()
        .iter()
        .map(|strategy| StrategyShown {
            name: strategy.name,
            scope: Scope::Challenge,
            metrics: shown(strategy.metrics),
            challenges: counted(strategy.name),
            source: None,
            count: None,
        })
        .collect();
    for scripted in scoring.scripted() {
        strategies.push(StrategyShown {
            name: scripted.strategy.name,
            scope: Scope::Challenge,
            metrics: shown(scripted.strategy.metrics),
            challenges: counted(scripted.strategy.name),
            source: None,
            count: Some(arena.engine.find_strategy(scripted.strategy.name).await?.into()),
        });
    }
    strategies.sort_by_key(|strategy| strategy.name);
    if let Some(source) = scoring.global_source() {
        strategies.push(StrategyShown {
            name: GLOBAL_AVERAGE,
            scope: Scope::Global,
            metrics: shown(scoring.metrics(&arena.engine.global_board())),
            challenges: counted(source),
            source: Some(source),
            count: None,
        });
    }
    Ok(json(to_text(&strategies)))
}

/// Returns the values of `sort` for the global board, or for the boards of all challenge types.
pub(super) fn sorts(arena: &Arena, global: bool) -> Vec<String> {
    let scoring = arena.engine.scoring();
    let boards: Vec<Board> = if global {
        vec![arena.engine.global_board()]
    } else {
        arena.engine.challenges().keys().flat_map(|challenge| arena.engine.main_boards(challenge)).collect()
    };
    let keys: BTreeSet<&str> =
        boards.iter().flat_map(|board| scoring.metrics(board)).map(|metric| metric.key).collect();
    keys.into_iter().flat_map(|key| [key.to_owned(), format!("{key}:low")]).collect()
}

/// A board of a challenge type: the games that count together.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Board)]
struct BoardRow {
    /// The board's id, as the parameter `board` expects it.
    id: String,
    /// True for the main board, which counts games with this arena's current options, rules and prompt.
    main: bool,
    /// The options of the board's games.
    #[schema(value_type = Object)]
    options: serde_json::Value,
    /// The version of the rules of the board's games; for a script, the hash of its files.
    rules_version: String,
    /// SHA-256 of the prompt of the board's games; absent for games from before boards existed.
    #[serde(skip_serializing_if = "Option::is_none")]
    prompt_sha256: Option<String>,
}

/// Lists the boards of one challenge type: the main board, and other boards that have games.
#[utoipa::path(get, path = "/api/scoring/{name}/boards", tag = "scoring",
    params(("name" = String, Path, description = "The challenge type's id.", example = "psi")),
    responses((status = 200, body = [BoardRow], description = "The main board, which may have no games yet, and other boards that have games."),
        (status = 404, description = "`CHALLENGE_NOT_FOUND`: this server doesn't host the challenge type.")))]
pub(crate) async fn list_boards(State(arena): State<Arena>, request: Get) -> ApiResult {
    let challenge = request.param("name");
    if !arena.engine.challenges().contains_key(challenge) {
        return Err(ApiError::not_found("CHALLENGE_NOT_FOUND", "Unknown challenge type"));
    }
    let main = arena.engine.main_board(challenge);
    let row = |board: BoardFacts| BoardRow {
        main: main.as_ref() == Some(&board.id),
        id: board.id.to_string(),
        options: board.options,
        rules_version: board.terms.rules,
        prompt_sha256: board.terms.prompt,
    };
    let mut rows: Vec<BoardRow> = arena.engine.list_boards(challenge).await?.into_iter().map(row).collect();
    rows.sort_by(|a, b| (b.main, &a.id).cmp(&(a.main, &b.id)));
    Ok(json(to_text(&rows)))
}

/// `sort` names a metric of one of the boards; the other boards keep their default order.
pub(crate) fn orders(arena: &Arena, boards: Vec<Board>, sort: Option<&str>) -> ApiResult<Vec<(Board, Order)>> {
    let scoring = arena.engine.scoring();
    let sort = sort.filter(|sort| !sort.is_empty());
    if sort.is_some() && !boards.iter().any(|board| scoring.order(board, sort).is_some()) {
        let keys: Vec<String> = boards
            .iter()
            .flat_map(|board| scoring.metrics(board))
            .map(|metric| format!("{} ({})", metric.key, metric.label))
            .collect();
        let text =
            format!("sort must be one of: {}; the suffix :low sorts by the lower end of the interval", keys.join(", "));
        return Err(ApiError::bad_request("INVALID_SORT", text));
    }
    let order = |board: &Board| scoring.order(board, sort).or_else(|| scoring.order(board, None));
    Ok(boards
        .into_iter()
        .filter_map(|board| Some((order(&board)?, board)))
        .map(|(order, board)| (board, order))
        .collect())
}

/// Numbers of games and participants.
#[derive(Serialize, ToSchema)]
struct Stats {
    /// Numbers by challenge type.
    challenges: BTreeMap<String, Played>,
    global: Global,
}

/// Number of games of one challenge type.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct Played {
    games_played: u64,
}

/// Totals over all challenge types.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct Global {
    participants: u64,
    games_played: u64,
}

/// Returns the numbers of finished games and participants.
#[utoipa::path(get, path = "/api/stats", tag = "scoring",
    responses((status = 200, body = Stats, description = "Numbers of finished games and participants.")))]
pub(crate) async fn find_stats(State(arena): State<Arena>, _request: Get) -> ApiResult {
    let totals = arena.engine.read_totals().await?;
    let hosted = arena.engine.challenges();
    let mut games: BTreeMap<String, u64> = hosted.keys().map(|challenge| (challenge.clone(), 0)).collect();
    games.extend(totals.games);
    let global = Global { participants: totals.participants, games_played: games.values().sum() };
    let challenges = games.into_iter().map(|(challenge, games_played)| (challenge, Played { games_played })).collect();
    Ok(json(to_text(&Stats { challenges, global })))
}
