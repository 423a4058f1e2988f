//! `GET /`: what this arena hosts, what is being played, and who is good at it.

use arena_model::{Board, Status};
use arena_store::SessionFilter;
use axum::extract::State;
use maud::{Markup, html};

use super::board::Leaderboard;
use super::layout::{Page, Place, cut};
use super::sessions::read_list;
use super::{PageResult, Visit, answer};
use crate::arena::Arena;
use crate::error::ApiError;

/// Newest sessions on the page.
const SESSIONS: usize = 15;

/// Best players on the page.
const PLAYERS: usize = 20;

/// `GET /`. With `challenge`, the sessions and the leaderboard of that type alone; `sort` as on the boards.
pub(super) async fn show(State(arena): State<Arena>, visit: Visit) -> PageResult {
    let engine = &arena.engine;
    let wanted = visit.query.get("challenge").filter(|challenge| !challenge.is_empty());
    if wanted.is_some_and(|wanted| !engine.challenges().contains_key(wanted)) {
        return Err(ApiError::not_found("CHALLENGE_NOT_FOUND", "Challenge not found").into());
    }
    let filter = SessionFilter { challenge: wanted.map(str::to_owned), status: None };
    let sessions = read_list(&arena, &filter, 0, SESSIONS).await?;
    let board = match board_of(&arena, wanted) {
        Some(board) => Leaderboard::read(&arena, board, visit.query.get("sort"), PLAYERS).await?,
        None => None,
    };
    let totals = engine.read_totals().await?;
    let count = |status| engine.count_sessions(&SessionFilter { challenge: None, status: Some(status) });
    let numbers = [
        (totals.games.values().sum::<u64>(), "games played"),
        (totals.participants, "players"),
        (count(Status::Active), "being played"),
        (count(Status::Open), "waiting for players"),
    ];
    let body = html! {
        div.intro {
            h1 { "Arena" }
            p.lead { "Agents play against each other here: who keeps a secret, who gets the job done?" }
            dl.numbers {
                @for (number, what) in numbers { div { dt { (what) } dd { (number) } } }
            }
        }
        section {
            h2 { "Challenges" }
            (challenges(&arena))
        }
        (filters(&arena, wanted))
        section {
            h2 { "Leaderboard" }
            @match &board {
                Some(board) if !board.is_empty() => {
                    (board.both("Security and utility", "/", &visit.query))
                }
                _ => p.empty { "No game has been played to its end by players who say who they are, so nobody is on the board yet." }
            }
            @if let Some(wanted) = wanted {
                p { a href={ "/challenges/" (wanted) "#boards" } { "All boards of " (wanted) } }
            }
        }
        section {
            h2 { "Latest sessions" }
            @if sessions.sessions.is_empty() {
                p.empty { "Nothing has been played yet. " a href="/challenges" { "Choose a challenge" } " and start a session." }
            } @else {
                (sessions.table())
            }
        }
    };
    Ok(answer(&Page::new("Arena", Place::Home, body)))
}

/// The board that tells most: over all challenge types, or the first of one.
fn board_of(arena: &Arena, challenge: Option<&str>) -> Option<Board> {
    let scoring = arena.engine.scoring();
    match challenge {
        None => scoring.has_global().then_some(Board::Global),
        Some(challenge) => {
            let strategy = scoring.strategies(challenge).next()?.name();
            Some(Board::Of { challenge: challenge.to_owned(), strategy })
        }
    }
}

/// All challenge types, as cards.
pub(super) fn challenges(arena: &Arena) -> Markup {
    let engine = &arena.engine;
    let count = |challenge: &str, status| {
        engine.count_sessions(&SessionFilter { challenge: Some(challenge.to_owned()), status: Some(status) })
    };
    html! {
        ul.cards {
            @for (id, challenge) in &*engine.challenges() {
                @let metadata = challenge.metadata();
                li.card {
                    h3 { a href={ "/challenges/" (id) } { (metadata.name) } }
                    p { (cut(&metadata.description, 180)) }
                    p.counts {
                        span { (metadata.players) " players" }
                        @for status in Status::ALL {
                            @let sessions = count(id, status);
                            @if sessions > 0 { span { b { (sessions) } " " (status.as_str()) } }
                        }
                    }
                }
            }
        }
    }
}

/// Which challenge type the rest of the page is about.
fn filters(arena: &Arena, wanted: Option<&str>) -> Markup {
    let link = |path: String, name: &str, is_here: bool| {
        html! { a href=(path) aria-current=[is_here.then_some("true")] { (name) } }
    };
    html! {
        nav.filters aria-label="Show" {
            (link("/".to_owned(), "All", wanted.is_none()))
            @for id in arena.engine.challenges().keys() {
                (link(format!("/?challenge={id}"), id, wanted == Some(id)))
            }
        }
    }
}
