//! `GET /`: what this arena hosts, what is being played, and who is good at it.

use arena_games::Playable;
use arena_model::{Board, Status, UpdateMode};
use arena_store::SessionFilter;
use axum::extract::State;
use maud::{Markup, html};

use super::board::{Leaderboard, Who};
use super::challenges::opponent;
use super::layout::{Page, Place, badge, cut};
use super::plots::embed;
use super::seen::Seen;
use super::sessions::read_list;
use super::{PageResult, Query, Visit, answer, base, with_query};
use crate::arena::Arena;
use crate::error::ApiError;

/// Newest sessions on the page.
const SESSIONS: usize = 15;

/// Best players on the page.
pub(super) const PLAYERS: usize = 20;

/// Games that are shown live at a time. Each is a stream, of which browsers have few.
const LIVE: usize = 2;

/// `GET /`. With `challenge`, the sessions and the leaderboard of that type alone; `sort` as on the boards.
pub(super) async fn show(State(arena): State<Arena>, visit: Visit) -> PageResult {
    let engine = &arena.engine;
    let wanted = wanted(&arena, &visit)?;
    let filter = SessionFilter { challenge: wanted.map(str::to_owned), status: None };
    let sessions = read_list(&arena, &filter, 0, SESSIONS).await?;
    let board = match board_of(&arena, wanted) {
        Some(board) => {
            let who = Who::of(&visit.query)?;
            Leaderboard::read(&arena, board, visit.query.get("sort"), (who, PLAYERS)).await?
        }
        None => None,
    };
    let live = live(&arena, wanted).await?;
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
            dl.numbers id="numbers" {
                @for (number, what) in numbers { div { dt { (what) } dd { (number) } } }
            }
        }
        section id="now" aria-label="Games that are being played" {
            @if !live.is_empty() {
                h2 { "Live now" }
                div.watched {
                    @for game in &live { (watched(&arena, game)) }
                }
            }
        }
        section {
            h2 { "Challenges" }
            (challenges(&arena))
        }
        (filters(&arena, wanted, &visit.query))
        section id="leaders" {
            h2 { "Leaderboard" }
            (meaning())
            @match &board {
                Some(board) if board.is_empty() && visit.query.get("players").is_some() => {
                    (players(&visit.query)) p.empty { "Nobody of these is on the board yet." }
                }
                Some(board) if !board.is_empty() => {
                    (players(&visit.query))
                    (board.both("Security and utility", "/", &visit.query))
                    (embed(&base(&arena, &visit.headers), &picture_path(wanted, &visit.query), &path_of(wanted), "Security and utility"))
                }
                _ => p.empty { "No game has been played to its end by players who say who they are, so nobody is on the board yet." }
            }
            @if let Some(wanted) = wanted {
                p { a href={ "/challenges/" (wanted) "#boards" } { "All boards of " (wanted) } }
            }
        }
        section id="latest" {
            h2 { "Latest sessions" }
            @if sessions.sessions.is_empty() {
                p.empty { "Nothing has been played yet. " a href="/challenges" { "Choose a challenge" } " and start a session." }
            } @else {
                (sessions.table())
            }
        }
    };
    Ok(answer(&Page::new("Arena", Place::Home, body).with_script("home.js")))
}

/// Which challenge type a page or picture is to be about; nothing for all.
pub(super) fn wanted<'v>(arena: &Arena, visit: &'v Visit) -> PageResult<Option<&'v str>> {
    let wanted = visit.query.get("challenge").filter(|challenge| !challenge.is_empty());
    match wanted {
        Some(wanted) if !arena.engine.challenges().contains_key(wanted) => {
            Err(ApiError::not_found("CHALLENGE_NOT_FOUND", "Challenge not found").into())
        }
        _ => Ok(wanted),
    }
}

/// The newest games with boards that are being played: one of each challenge type, a few in all.
async fn live(arena: &Arena, wanted: Option<&str>) -> PageResult<Vec<Seen>> {
    let mut games = Vec::new();
    let hosted = arena.engine.challenges();
    let mut drawn: Vec<&Playable> = arena_games::all().filter(|playable| playable.kit.module.is_some()).collect();
    // Games in which one player moves at a time are the easiest to follow.
    drawn.sort_by_key(|playable| playable.game.mode != UpdateMode::Alternating);
    let ids = drawn.into_iter().map(|playable| playable.id);
    for challenge in ids.filter(|id| hosted.contains_key(*id) && wanted.is_none_or(|it| it == *id)) {
        let filter = SessionFilter { challenge: Some(challenge.to_owned()), status: Some(Status::Active) };
        games.extend(read_list(arena, &filter, 0, 1).await?.sessions);
        if games.len() == LIVE {
            break;
        }
    }
    Ok(games)
}

/// A game that a script draws while it is played.
fn watched(arena: &Arena, game: &Seen) -> Markup {
    html! {
        article data-session=(game.id) data-challenge=(game.challenge_type) data-players=(game.state.players.join(" ")) data-options=(game.options) {
            h3 { a href={ "/sessions/" (game.id) } { (game.challenge_type) } " " (badge(game.status())) }
            div.live hidden {}
            p.more { a href={ "/sessions/" (game.id) } { "Watch this game" } " · " a href={ "/challenges/" (game.challenge_type) } { "Rules" } }
            @if let Some(opponent) = opponent(arena, &game.challenge_type) { (opponent) }
        }
    }
}

/// What the scores say, for those who see them for the first time.
fn meaning() -> Markup {
    html! {
        p.lead {
            b { "Utility" } " says whether the job was done: the game was won, or what both share was found. " b { "Security" }
            " says whether it was done cleanly: what was private stayed so. Both go from −1 to 1; up and to the right is better."
        }
    }
}

/// Whose places on the board are shown.
fn players(query: &Query) -> Markup {
    html! {
        nav.filters aria-label="Players" {
            @for who in Who::ALL {
                a href=(with_query("/", query, "players", who.name())) aria-current=[(query.get("players").unwrap_or("") == who.name()).then_some("true")] { (who.title()) }
            }
        }
    }
}

/// The board that tells most: over all challenge types, or the first of one.
pub(super) fn board_of(arena: &Arena, challenge: Option<&str>) -> Option<Board> {
    let scoring = arena.engine.scoring();
    match challenge {
        None => scoring.has_global().then(|| arena.engine.global_board()),
        Some(challenge) => arena.engine.main_boards(challenge).into_iter().next(),
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

/// Where the front page is with this filter, and the picture of its leaderboard.
fn path_of(wanted: Option<&str>) -> String {
    wanted.map_or_else(|| "/".to_owned(), |challenge| format!("/?challenge={challenge}"))
}

fn picture_path(wanted: Option<&str>, query: &Query) -> String {
    let parts = [wanted.map(|it| format!("challenge={it}")), query.get("players").map(|it| format!("players={it}"))];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    if parts.is_empty() { "/leaderboard.svg".to_owned() } else { format!("/leaderboard.svg?{}", parts.join("&")) }
}

/// Which challenge type the rest of the page is about.
fn filters(arena: &Arena, wanted: Option<&str>, query: &Query) -> Markup {
    let path = |challenge: &str| {
        // Boards are sorted by measures of their own, so another one begins in its own order.
        let whose = query.get("players").filter(|_| Who::of(query).is_ok()).map(|who| format!("players={who}"));
        let parts: Vec<String> =
            (!challenge.is_empty()).then(|| format!("challenge={challenge}")).into_iter().chain(whose).collect();
        if parts.is_empty() { "/".to_owned() } else { format!("/?{}", parts.join("&")) }
    };
    let link = |challenge: &str, name: &str, is_here: bool| {
        html! { a href=(path(challenge)) aria-current=[is_here.then_some("true")] { (name) } }
    };
    html! {
        nav.filters aria-label="Show" {
            (link("", "All", wanted.is_none()))
            @for id in arena.engine.challenges().keys() {
                (link(id, id, wanted == Some(id)))
            }
        }
    }
}
