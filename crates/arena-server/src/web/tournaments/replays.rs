//! `/tournaments/{id}/matches/{number}/replay` and `/ladders/{game}/games/{number}/replay`: a match's replay in the viewer
//! of `arena-web`; and the files that the viewer reads: ranges of the replay and its index, and the summary.

use std::io;
use std::path::Path;
use std::sync::Arc;

use arena_report::number_of;
use arena_web::{ViewerUrls, viewer};
use axum::body::Body;
use axum::extract::State;
use axum::http::header;
use axum::http::{HeaderValue, Request};
use axum::response::Response;
use maud::{Markup, html};
use tower_http::services::ServeFile;

use crate::answer::{json, to_text};
use crate::arena::Arena;
use crate::error::ApiError;
use crate::routes::{MatchView, game_of_ladder, id_of_tournament, tournaments_of};
use crate::tournaments::{MatchSource, ShownReplay, TournamentRefusal, Tournaments};
use crate::web::assets::address_of;
use crate::web::layout::{NavEntry, Page, cut};
use crate::web::{GUARDS, PageError, PageResult, Visit, unrendered};

/// Returns the result of a match whose replay is shown.
fn result_of(
    tournaments: &Tournaments,
    source: MatchSource,
    number: usize,
) -> Result<Option<MatchView>, TournamentRefusal> {
    let view = |game| MatchView::of(tournaments, true, game);
    match source {
        MatchSource::Tournament(id) => Ok(tournaments.record(id)?.1.game(number).map(view)),
        MatchSource::Ladder(game) => {
            let ladder = tournaments.ladder_game(game, number)?;
            Ok(ladder.as_ref().and_then(|ladder| ladder.league.game(number)).map(view))
        }
    }
}

/// `GET …/replay`.
pub(crate) async fn show(State(arena): State<Arena>, visit: Visit) -> PageResult {
    let (source, number, replay) = find(&arena, &visit).await?;
    let tournaments = tournaments_of(&arena)?;
    let game = tournaments.read(move |tournaments| result_of(tournaments, source, number)).await?;
    // The agents' names in the tournament, which may differ from those that the agents report.
    let names: Vec<&str> = match &game {
        Some(game) => game.agents.iter().map(String::as_str).collect(),
        None => replay.header.agents.iter().map(|agent| agent.name.as_str()).collect(),
    };
    let path = visit.uri.path().trim_end_matches('/');
    let at = |extension: &str| format!("{path}.{extension}");
    let (file, index, summary) = (at("jsonl"), at("index"), at("json"));
    let assets = address_of("");
    let urls = ViewerUrls { assets: &assets, replay: &file, index: &index, summary: &summary, list: None };
    let body = html! {
        div.card.verdict {
            div {
                p.small.soft {
                    @match source {
                        MatchSource::Tournament(id) => { a href={ "/tournaments/" (id) } { "Tournament" } @if let Some(game) = &game { ", round " (game.round) } }
                        MatchSource::Ladder(name) => { a href={ "/ladders/" (name) } { "Ladder of " (name) } @if let Some(game) = &game { ", season " (game.round) } }
                    }
                    " · Match " (number) ": " @for (seat, name) in names.iter().enumerate() { @if seat > 0 { " – " } (cut(name, 40)) }
                }
                h1 { @match &game { Some(game) => (result(&names, game)), None => { "Match " (number) } } }
            }
            div.row {
                a.btn href=(file) download={ "match-" (number) ".jsonl" } title="For `arena replay`" { "Replay file" }
            }
        }
        noscript { p.error { "The replay viewer needs JavaScript. " code { "arena replay show" } " prints the replay in a terminal." } }
        div data-names=(to_text(&names)) { (viewer(&urls)) }
    };
    let title = format!("Match {number}: {}", names.join(" – "));
    Ok(unrendered(Page::new(&title, NavEntry::Tournaments, body).with_style("viewer.css").with_script("viewer.js")))
}

/// Renders the result of a match as a sentence.
fn result(names: &[&str], game: &MatchView) -> Markup {
    let (first, others): (Vec<usize>, Vec<usize>) =
        (0..names.len()).partition(|seat| game.ranks.get(*seat).is_some_and(|rank| *rank == 1));
    let scores: Vec<String> = first
        .iter()
        .take(1)
        .chain(&others)
        .filter_map(|seat| game.scores.get(*seat).map(|score| number_of(*score)))
        .collect();
    html! {
        @match (&first[..], game.is_void) {
            (_, true) => "The match counts for no agent.",
            ([winner], false) => { (cut(names[*winner], 40)) " won, " (scores.join(" to ")) "." },
            _ => { @for (at, seat) in first.iter().enumerate() { @if at > 0 { " and " } (cut(names[*seat], 40)) } " drew." }
        }
    }
}

/// Finds the replay that the path names, with its tournament or ladder and the match's number.
async fn find(arena: &Arena, visit: &Visit) -> PageResult<(MatchSource, usize, Arc<ShownReplay>)> {
    let source = match visit.param("game") {
        "" => MatchSource::Tournament(id_of_tournament(visit.param("id"))?),
        game => MatchSource::Ladder(game_of_ladder(game)?.name),
    };
    let tournaments = tournaments_of(arena)?;
    let none = || ApiError::not_found("REPLAY_NOT_FOUND", "match not found, or its replay was not kept");
    let number: usize = visit.param("number").parse().map_err(|_| none())?;
    let shown = tournaments.read(move |tournaments| tournaments.shown_replay(source, number)).await?;
    Ok((source, number, shown.ok_or_else(none)?))
}

/// `GET …/replay.jsonl`, or a range of it.
pub(crate) async fn file(State(arena): State<Arena>, visit: Visit) -> PageResult {
    let (_, _, shown) = find(&arena, &visit).await?;
    send(&shown.replay, &visit, "application/x-ndjson").await.map_err(damaged)
}

/// `GET …/replay.index`, or a range of it.
pub(crate) async fn index(State(arena): State<Arena>, visit: Visit) -> PageResult {
    let (_, _, shown) = find(&arena, &visit).await?;
    send(&shown.index, &visit, "application/octet-stream").await.map_err(damaged)
}

/// `GET …/replay.json`: the summary.
pub(crate) async fn summary(State(arena): State<Arena>, visit: Visit) -> PageResult {
    let (_, _, shown) = find(&arena, &visit).await?;
    let mut response = json(to_text(&shown.summary));
    guard(&mut response);
    Ok(response)
}

fn damaged(error: io::Error) -> PageError {
    TournamentRefusal::Damaged(error.to_string()).into()
}

/// Sends a file or the requested range of it.
pub(crate) async fn send(path: &Path, visit: &Visit, kind: &'static str) -> io::Result<Response> {
    let mut request = Request::new(Body::empty());
    for name in [header::RANGE, header::IF_MODIFIED_SINCE, header::IF_RANGE] {
        if let Some(value) = visit.headers.get(&name) {
            request.headers_mut().insert(name, value.clone());
        }
    }
    let mut response = ServeFile::new(path).try_call(request).await?.map(Body::new);
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    guard(&mut response);
    Ok(response)
}

/// Sets the headers for browsers. Browsers must revalidate the file each time, since a match may be removed or a report written again.
fn guard(response: &mut Response) {
    response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    response.headers_mut().extend(GUARDS);
}
