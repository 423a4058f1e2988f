//! `/api/tournaments/{id}/matches`: match results, replays, and logs for the owners of agents.

use arena_model::{MatchResult, SeatResult, Verdict};
use arena_tournament::{GameLine, Record};
use axum::body::Body;
use axum::extract::State;
use axum::response::Response;
use futures_util::stream;
use serde::Serialize;
use utoipa::ToSchema;

use super::id_of;
use crate::answer::{json, json_lines, to_text, with_kind};
use crate::arena::Arena;
use crate::auth::Authority;
use crate::error::{ApiError, ApiResult};
use crate::openapi::Paging;
use crate::request::Get;
use crate::routes::agents::tournaments_of;
use crate::tournaments::{AgentId, MatchSource, ReplayReader, TournamentRefusal, TournamentSnapshot, Tournaments};

/// The result of a match. Each list has one item per seat.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Match)]
pub(crate) struct MatchView {
    /// The match's number in the order of play, from 1.
    pub(crate) number: usize,
    /// The round, or the season of a ladder, from 1.
    pub(crate) round: usize,
    /// The agents' names.
    pub(crate) agents: Vec<String>,
    /// Ranks, with 1 for the best. Equal ranks are a draw.
    pub(crate) ranks: Vec<usize>,
    /// The game's scores.
    pub(crate) scores: Vec<f64>,
    /// Causes of disqualification; null for agents that were not disqualified.
    #[schema(value_type = Vec<Option<String>>)]
    pub(crate) verdicts: Vec<Option<&'static str>>,
    /// Descriptions of the disqualifications.
    pub(crate) details: Vec<Option<String>>,
    /// Numbers of protocol violations without disqualification.
    faults: Vec<u32>,
    pub(crate) epochs: u64,
    /// The termination cause.
    #[schema(example = "GAME_ENDED")]
    pub(crate) termination: String,
    /// True if the match doesn't count; otherwise absent.
    #[serde(rename = "void", skip_serializing_if = "std::ops::Not::not")]
    #[schema(value_type = Option<bool>)]
    pub(crate) is_void: bool,
    /// Time from the start of the agents to their end, in milliseconds.
    took_ms: f64,
    /// Total waiting time for each agent, in milliseconds.
    waited_ms: Vec<f64>,
    /// Longest waiting time for each agent in a step, in milliseconds.
    longest_step_ms: Vec<f64>,
    /// The match's random seed, in hexadecimal digits; present once the tournament is over.
    #[serde(skip_serializing_if = "Option::is_none")]
    seed: Option<String>,
    /// The numbers of the agents' versions; present for a game of a ladder.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    pub(crate) generations: Vec<u32>,
    /// The path of the replay; present for a game of a ladder whose replay may be shown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) replay: Option<String>,
}

impl MatchView {
    /// Makes the view of a match. Its seed is shown if the tournament is over.
    pub(crate) fn of(tournaments: &Tournaments, is_over: bool, game: &GameLine) -> MatchView {
        let MatchResult { seats, outcome, seed, epochs, took_ms, .. } = &game.result;
        let detail =
            |seat: &SeatResult| seat.detail.as_ref().map(|text| tournaments.redaction().redacted(text).into_owned());
        MatchView {
            number: game.number,
            round: game.round,
            agents: seats.iter().map(|seat| seat.agent.clone()).collect(),
            ranks: game.result.ranks(),
            scores: game.result.scores(),
            verdicts: seats.iter().map(|seat| seat.verdict.map(Verdict::name)).collect(),
            details: seats.iter().map(detail).collect(),
            faults: seats.iter().map(|seat| seat.faults).collect(),
            epochs: *epochs,
            termination: outcome.termination.to_string(),
            is_void: outcome.is_void(),
            took_ms: *took_ms,
            waited_ms: seats.iter().map(|seat| seat.waited_ms).collect(),
            longest_step_ms: seats.iter().map(|seat| seat.longest_step_ms).collect(),
            seed: is_over.then(|| seed.reveal()),
            generations: game.generations.clone(),
            replay: None,
        }
    }
}

/// A page of matches.
#[derive(Serialize, ToSchema)]
pub(crate) struct MatchPage {
    pub(crate) matches: Vec<MatchView>,
    /// Number of matches on all pages.
    pub(crate) total: usize,
    /// Maximum number of matches per page.
    #[schema(minimum = 1, maximum = 100)]
    pub(crate) limit: usize,
    /// Number of matches skipped.
    pub(crate) offset: u64,
}

/// Lists the finished matches of a tournament by number.
#[utoipa::path(get, path = "/api/tournaments/{id}/matches", tag = "tournaments",
    params(("id" = String, Path, description = "The tournament's id.", example = "018f6b2e-0000-7000-8000-00000000abcd"), Paging),
    responses((status = 200, body = MatchPage, description = "A page, of 50 by default."),
        (status = 404, description = "`TOURNAMENT_NOT_FOUND`: the tournament doesn't exist."),
        (status = 500, description = "`TOURNAMENT_DAMAGED`: the tournament's data can't be read.")))]
pub(crate) async fn list_matches(State(arena): State<Arena>, request: Get) -> ApiResult {
    let id = id_of(request.param("id"))?;
    let (offset, limit) = request.query::<Paging>()?.page(50);
    let page = tournaments_of(&arena)?.read(move |tournaments| {
        let (snapshot, record) = tournaments.record(id)?;
        let passed = usize::try_from(offset).unwrap_or(usize::MAX);
        let games = record.games().skip(passed).take(limit);
        let matches = games.map(|game| MatchView::of(tournaments, snapshot.is_over(), game)).collect();
        Ok::<_, TournamentRefusal>(to_text(&MatchPage { matches, total: record.games().count(), limit, offset }))
    });
    Ok(json(page.await?))
}

/// Returns one match.
#[utoipa::path(get, path = "/api/tournaments/{id}/matches/{number}", tag = "tournaments",
    params(("id" = String, Path, description = "The tournament's id.", example = "018f6b2e-0000-7000-8000-00000000abcd"),
        ("number" = String, Path, description = "The match's number, from 1.", example = "1")),
    responses((status = 200, body = MatchView, description = "The match's result."),
        (status = 404, description = "
            `TOURNAMENT_NOT_FOUND`: the tournament doesn't exist.
            `MATCH_NOT_FOUND`: the match doesn't exist or is not finished."),
        (status = 500, description = "`TOURNAMENT_DAMAGED`: the tournament's data can't be read.")))]
pub(crate) async fn find_match(State(arena): State<Arena>, request: Get) -> ApiResult {
    let (id, number) = (id_of(request.param("id"))?, number_of(request.param("number")));
    let text = tournaments_of(&arena)?.read(move |tournaments| {
        let (snapshot, record) = tournaments.record(id)?;
        let game = number.and_then(|number| record.game(number));
        Ok::<_, TournamentRefusal>(game.map(|game| to_text(&MatchView::of(tournaments, snapshot.is_over(), game))))
    });
    Ok(json(text.await?.ok_or_else(no_match)?))
}

/// Returns the replay of a match as JSON lines.
///
/// Replays are available once the tournament is over, since the games of a pairing share a seed.
#[utoipa::path(get, path = "/api/tournaments/{id}/matches/{number}/replay", tag = "tournaments",
    params(("id" = String, Path, description = "The tournament's id.", example = "018f6b2e-0000-7000-8000-00000000abcd"),
        ("number" = String, Path, description = "The match's number, from 1.", example = "1")),
    responses((status = 200, description = "The replay for `arena replay`, as JSON lines, or as plain bytes for clients that don't accept JSON lines.",
            content((String = "application/x-ndjson"), (String = "application/octet-stream"))),
        (status = 404, description = "
            `TOURNAMENT_NOT_FOUND`: the tournament doesn't exist.
            `MATCH_NOT_FOUND`: the match doesn't exist.
            `REPLAY_NOT_FOUND`: the replay was not kept."),
        (status = 409, description = "`TOURNAMENT_NOT_OVER`: the replay is available once the tournament is over."),
        (status = 500, description = "`TOURNAMENT_DAMAGED`: the tournament's data can't be read.")))]
pub(crate) async fn show_replay(State(arena): State<Arena>, request: Get) -> ApiResult {
    let (id, number) = (id_of(request.param("id"))?, number_of(request.param("number")));
    let found = tournaments_of(&arena)?.read(move |tournaments| {
        let (_, record) = tournaments.record(id)?;
        match number.filter(|number| record.game(*number).is_some()) {
            Some(number) => Ok(Some(tournaments.open_replay(MatchSource::Tournament(id), number)?)),
            None => Ok::<_, TournamentRefusal>(None),
        }
    });
    let not_kept = || ApiError::not_found("REPLAY_NOT_FOUND", "the replay was not kept");
    let replay = found.await?.ok_or_else(no_match)?.ok_or_else(not_kept)?;
    Ok(replay_response(&request, replay))
}

/// Returns the response that reads a replay while it is written.
pub(crate) fn replay_response(request: &Get, replay: ReplayReader) -> Response {
    json_lines(&request.headers, Body::from_stream(stream::try_unfold(replay, next_piece)))
}

/// Reads the next lines of a replay; `None` after the last.
async fn next_piece(mut replay: ReplayReader) -> std::io::Result<Option<(String, ReplayReader)>> {
    let read = tokio::task::spawn_blocking(move || (replay.next_lines(), replay)).await;
    let (lines, replay) = read.map_err(std::io::Error::other)?;
    Ok(lines?.map(|lines| (lines, replay)))
}

/// Returns an agent's stderr and protocol violations in a match, for its owner.
#[utoipa::path(get, path = "/api/tournaments/{id}/matches/{number}/logs/{seat}", tag = "tournaments",
    security(("administratorToken" = []), ("ownerKey" = [])),
    params(("id" = String, Path, description = "The tournament's id.", example = "018f6b2e-0000-7000-8000-00000000abcd"),
        ("number" = String, Path, description = "The match's number, from 1.", example = "1"),
        ("seat" = String, Path, description = "The agent's seat, from 0.", example = "0")),
    responses((status = 200, body = String, content_type = "text/plain", description = "The beginning and the end of the log."),
        (status = 404, description = "
            `TOURNAMENT_NOT_FOUND`: the tournament doesn't exist.
            `MATCH_NOT_FOUND`: the match or seat doesn't exist, or the match is not finished.
            `LOG_NOT_FOUND`: the log was not kept."),
        (status = 500, description = "`TOURNAMENT_DAMAGED`: the tournament's data can't be read.")))]
pub(crate) async fn show_log(State(arena): State<Arena>, request: Get) -> ApiResult {
    let tournaments = tournaments_of(&arena)?;
    let id = id_of(request.param("id"));
    let (number, seat) = (number_of(request.param("number")), request.param("seat").parse::<usize>().ok());
    // The check of the owner's key needs the agent. Errors of this lookup are returned after the check, so that other
    // callers can't find out which logs exist.
    let agent = match (&id, number, seat) {
        (Ok(id), Some(number), Some(seat)) => {
            let id = *id;
            let found = tournaments.read(move |tournaments| {
                let (snapshot, record) = tournaments.record(id)?;
                Ok::<_, TournamentRefusal>(
                    agent_at(&snapshot, &record, number, seat).map(|agent| (agent, number, seat)),
                )
            });
            found.await
        }
        _ => Ok(None),
    };
    let owns = |key: &str| {
        agent.as_ref().is_ok_and(|found| found.is_some_and(|(agent, ..)| tournaments.owns_agent(key, agent)))
    };
    Authority::of(&arena, &request.headers, request.address, owns)?.require_credentials()?;
    let id = id?;
    let (_, number, seat) = agent?.ok_or_else(no_match)?;
    log_response(tournaments, MatchSource::Tournament(id), number, seat).await
}

/// Returns the response with the log of an agent in a match.
///
/// # Errors
/// 404 if there is no log.
pub(crate) async fn log_response(
    tournaments: &Tournaments,
    source: MatchSource,
    number: usize,
    seat: usize,
) -> ApiResult {
    let read = move |tournaments: &Tournaments| tournaments.read_log(&tournaments.replay_path(source, number), seat);
    let text = tournaments.read(read).await;
    let text = text.ok_or_else(|| ApiError::not_found("LOG_NOT_FOUND", "the log was not kept"))?;
    // A browser must not run an agent's output: `nosniff` on all responses keeps it plain text.
    Ok(with_kind("text/plain; charset=utf-8", text))
}

/// Returns the id of the agent at a seat of a finished match.
fn agent_at(snapshot: &TournamentSnapshot, record: &Record, number: usize, seat: usize) -> Option<AgentId> {
    let name = &record.game(number)?.result.seats.get(seat)?.agent;
    snapshot.entry.facts.agents.iter().find(|agent| agent.name == *name).map(|agent| agent.id)
}

pub(crate) fn number_of(text: &str) -> Option<usize> {
    text.parse().ok().filter(|number| *number > 0)
}

pub(crate) fn no_match() -> ApiError {
    ApiError::not_found("MATCH_NOT_FOUND", "match not found, or not finished")
}
