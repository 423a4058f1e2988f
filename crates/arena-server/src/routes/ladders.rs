//! `/api/ladders`: the ladders of games, with standings, games, replays, and logs for the owners of agents.

use arena_model::GameType;
use axum::extract::State;
use serde::{Deserialize, Serialize};
use serde_json::json;
use utoipa::ToSchema;

use super::agents::tournaments_of;
use super::tournaments::matches::{MatchPage, MatchView, log_response, no_match, number_of, replay_response};
use crate::answer::{json as answer, to_text};
use crate::arena::Arena;
use crate::auth::{Authority, unauthenticated};
use crate::error::{ApiError, ApiResult};
use crate::openapi::Paging;
use crate::request::{Get, Post, Whole};
use crate::tournaments::{Ladder, LadderMatch, MatchSource, TournamentRefusal, Tournaments, find_game};

/// The ladder of a game.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct LadderSummary {
    #[schema(example = "snake")]
    game: String,
    /// Number of the season, from 1; 0 if no agent has joined yet.
    season: usize,
    /// Number of agents that play, with the built-in ones.
    agents: usize,
    /// Number of games in the season.
    games_played: usize,
}

/// All ladders.
#[derive(Serialize, ToSchema)]
struct LadderList {
    ladders: Vec<LadderSummary>,
}

/// Lists the ladders of all games.
#[utoipa::path(get, path = "/api/ladders", tag = "tournaments",
    responses((status = 200, body = LadderList, description = "One ladder for each game."),
        (status = 500, description = "`TOURNAMENT_DAMAGED`: the data of a ladder can't be read.")))]
pub(crate) async fn list_ladders(State(arena): State<Arena>, _request: Get) -> ApiResult {
    let summary = |tournaments: &Tournaments, game: &'static GameType| {
        let view = tournaments.ladder(game.name, None)?;
        let agents = view.as_ref().map_or(0, |view| view.rows.iter().filter(|row| row.state() == "playing").count());
        let (season, games_played) = view.map_or((0, 0), |view| (view.season.number, view.league.games().len()));
        Ok::<_, TournamentRefusal>(LadderSummary { game: game.name.to_owned(), season, agents, games_played })
    };
    let ladders = tournaments_of(&arena)?
        .read(move |tournaments| arena_games::games().map(|game| summary(tournaments, game)).collect::<Result<_, _>>());
    Ok(answer(to_text(&LadderList { ladders: ladders.await? })))
}

/// The season of a ladder.
#[derive(Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
struct WantedSeason {
    /// The number of the season, from 1. Default: the current one.
    #[param(value_type = Option<u64>, minimum = 1, maximum = 1_000_000)]
    season: Option<Whole<1, 1_000_000>>,
}

/// Returns the standings of a ladder.
///
/// The answer has the fields of `arena tournament standings --json`. Each entry also has `agent_id`, which is null for a
/// house bot, and `state`: `playing`, `suspended` (with the reason in `suspended`) or `gone`. `waiting` has the names of
/// agents that join after the running game, and `playing` the agents of that game.
#[utoipa::path(get, path = "/api/ladders/{game}", tag = "tournaments",
    params(("game" = String, Path, description = "The game.", example = "snake"), WantedSeason),
    responses((status = 200, body = Object, description = "The standings."),
        (status = 400, description = "`INVALID_FIELD`: `season` isn't a whole number from 1."),
        (status = 404, description = "
            `LADDER_NOT_FOUND`: the game doesn't exist, or no agent has joined its ladder.
            `SEASON_NOT_FOUND`: the season doesn't exist."),
        (status = 500, description = "`TOURNAMENT_DAMAGED`: the ladder's data can't be read.")))]
pub(crate) async fn find_ladder(State(arena): State<Arena>, request: Get) -> ApiResult {
    let game = game_of(request.param("game"))?.name;
    let season = request.query::<WantedSeason>()?.season.map(|Whole(season)| season as usize);
    let text = tournaments_of(&arena)?.read(move |tournaments| {
        let view = tournaments.ladder(game, season)?;
        let is_current = view.as_ref().is_none_or(|view| !view.season.is_closed);
        let waiting = if is_current { tournaments.waiting_for_ladder(game, view.as_deref()) } else { Vec::new() };
        let mut json = match (&view, waiting.is_empty()) {
            (Some(view), _) => view.json.clone(),
            (None, false) => json!({ "game": game, "season": 1, "games_played": 0, "standings": [] }),
            (None, true) => return Err(TournamentRefusal::NoLadder(game)),
        };
        json["waiting"] = waiting.into();
        let playing = tournaments.ladder_match(game).filter(|_| is_current);
        json["playing"] =
            playing.map(|LadderMatch { number, agents, .. }| json!({ "number": number, "agents": agents })).into();
        Ok::<_, TournamentRefusal>(tournaments.redaction().redacted(&json.to_string()).into_owned())
    });
    Ok(answer(text.await?))
}

/// Ends the season of a ladder.
///
/// The next season begins after the running game, with the same agents and without games. The season stays readable.
#[utoipa::path(post, path = "/api/ladders/{game}/season", tag = "tournaments", security(("administratorToken" = [])),
    params(("game" = String, Path, description = "The game.", example = "snake")),
    request_body(content = Option<Object>, description = "Ignored."),
    responses((status = 200, body = SeasonEnd, description = "The season, and true if it has ended already."),
        (status = 404, description = "`LADDER_NOT_FOUND`: the game doesn't exist, or no agent has joined its ladder."),
        (status = 500, description = "`TOURNAMENT_DAMAGED`: the ladder's data can't be read.")))]
pub(crate) async fn close_season(State(arena): State<Arena>, request: Post) -> ApiResult {
    let tournaments = tournaments_of(&arena)?;
    let by = Authority::of(&arena, &request.headers, request.address, |_| false)?;
    if by == Authority::Anonymous {
        return Err(unauthenticated());
    }
    let game = game_of(request.param("game"))?.name;
    by.record_audit(&arena, "close season", json!({ "game": game })).await?;
    let (season, closed) = tournaments.run_blocking(move |tournaments| tournaments.close_season(game)).await?;
    Ok(answer(to_text(&SeasonEnd { season, closed })))
}

/// The end of a season.
#[derive(Serialize, ToSchema)]
struct SeasonEnd {
    season: usize,
    /// False if the season ends after the running game.
    closed: bool,
}

/// Lists the games of a ladder's season, newest first.
#[utoipa::path(get, path = "/api/ladders/{game}/games", tag = "tournaments",
    params(("game" = String, Path, description = "The game.", example = "snake"), WantedSeason, Paging),
    responses((status = 200, body = MatchPage, description = "A page, of 50 by default."),
        (status = 400, description = "`INVALID_FIELD`: `season` isn't a whole number from 1."),
        (status = 404, description = "
            `LADDER_NOT_FOUND`: the game doesn't exist, or no agent has joined its ladder.
            `SEASON_NOT_FOUND`: the season doesn't exist."),
        (status = 500, description = "`TOURNAMENT_DAMAGED`: the ladder's data can't be read.")))]
pub(crate) async fn list_ladder_games(State(arena): State<Arena>, request: Get) -> ApiResult {
    let game = game_of(request.param("game"))?.name;
    let season = request.query::<WantedSeason>()?.season.map(|Whole(season)| season as usize);
    let (offset, limit) = request.query::<Paging>()?.page(50);
    let text = tournaments_of(&arena)?.read(move |tournaments| {
        let view = tournaments.ladder(game, season)?.ok_or(TournamentRefusal::NoLadder(game))?;
        let matches = page(tournaments, game, &view, "/api", (offset, limit));
        Ok::<_, TournamentRefusal>(to_text(&MatchPage { matches, total: view.league.games().len(), limit, offset }))
    });
    Ok(answer(text.await?))
}

/// Returns a page of a season's games, newest first, with links to replays below `root`.
pub(crate) fn page(
    tournaments: &Tournaments,
    game: &'static str,
    view: &Ladder,
    root: &str,
    (offset, limit): (u64, usize),
) -> Vec<MatchView> {
    let passed = usize::try_from(offset).unwrap_or(usize::MAX);
    let games = view.league.games().iter().rev().skip(passed).take(limit);
    let link = |number: usize| format!("{root}/ladders/{game}/games/{number}/replay");
    games
        .map(|line| {
            let is_shown = view.shows_replay(line.number);
            let is_kept = is_shown && tournaments.replay_path(MatchSource::Ladder(game), line.number).exists();
            let mut game = MatchView::of(tournaments, is_shown, line);
            game.replay = is_kept.then(|| link(line.number));
            game
        })
        .collect()
}

/// Returns the replay of a ladder's game as JSON lines.
///
/// The games of a pairing share a seed, so replays are available after the last one. The latest 1000 are kept.
#[utoipa::path(get, path = "/api/ladders/{game}/games/{number}/replay", tag = "tournaments",
    params(("game" = String, Path, description = "The game.", example = "snake"),
        ("number" = String, Path, description = "The number of the ladder's game, from 1.", example = "1")),
    responses((status = 200, description = "The replay for `arena replay`, as JSON lines, or as plain bytes for clients that don't accept JSON lines.",
            content((String = "application/x-ndjson"), (String = "application/octet-stream"))),
        (status = 404, description = "
            `LADDER_NOT_FOUND`: the game doesn't exist.
            `REPLAY_NOT_FOUND`: there is no such replay, or it isn't available yet."),
        (status = 500, description = "`TOURNAMENT_DAMAGED`: the ladder's data can't be read.")))]
pub(crate) async fn show_ladder_replay(State(arena): State<Arena>, request: Get) -> ApiResult {
    let game = game_of(request.param("game"))?.name;
    let number = number_of(request.param("number")).unwrap_or(0);
    let source = MatchSource::Ladder(game);
    let opened = tournaments_of(&arena)?.read(move |tournaments| tournaments.open_replay(source, number)).await?;
    let none = || ApiError::not_found("REPLAY_NOT_FOUND", "the replay wasn't kept, or isn't available yet");
    Ok(replay_response(&request, opened.ok_or_else(none)?))
}

/// Returns an agent's stderr and protocol violations in a ladder's game, for its owner.
#[utoipa::path(get, path = "/api/ladders/{game}/games/{number}/logs/{seat}", tag = "tournaments",
    security(("administratorToken" = []), ("ownerKey" = [])),
    params(("game" = String, Path, description = "The game.", example = "snake"),
        ("number" = String, Path, description = "The number of the ladder's game, from 1.", example = "1"),
        ("seat" = String, Path, description = "The agent's seat, from 0.", example = "0")),
    responses((status = 200, body = String, content_type = "text/plain", description = "The beginning and the end of the log."),
        (status = 404, description = "
            `LADDER_NOT_FOUND`: the game doesn't exist.
            `MATCH_NOT_FOUND`: the game or seat doesn't exist, or the game is not finished.
            `LOG_NOT_FOUND`: the log was not kept."),
        (status = 500, description = "`TOURNAMENT_DAMAGED`: the ladder's data can't be read.")))]
pub(crate) async fn show_ladder_log(State(arena): State<Arena>, request: Get) -> ApiResult {
    let tournaments = tournaments_of(&arena)?;
    let game = game_of(request.param("game"))?.name;
    let number = number_of(request.param("number")).unwrap_or(0);
    let seat = request.param("seat").parse().unwrap_or(usize::MAX);
    let found = tournaments.read(move |tournaments| tournaments.ladder_game(game, number)).await;
    let agent = found.as_ref().ok().and_then(|view| view.as_ref()?.agent_at(number, seat));
    let owns = |key: &str| agent.is_some_and(|agent| tournaments.owns_agent(key, agent));
    Authority::of(&arena, &request.headers, request.address, owns)?.require_credentials()?;
    let view = found?.ok_or_else(no_match)?;
    let seats = view.league.game(number).map_or(0, |line| line.result.seats.len());
    if seat >= seats {
        return Err(no_match());
    }
    log_response(tournaments, MatchSource::Ladder(game), number, seat).await
}

/// Returns the game of a path.
pub(crate) fn game_of(text: &str) -> ApiResult<&'static GameType> {
    find_game(text).map_err(|refusal| ApiError::not_found("LADDER_NOT_FOUND", refusal.to_string()))
}
