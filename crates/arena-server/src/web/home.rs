//! `GET /`: the hosted challenges, live games, the leaderboard and the latest sessions.

use arena_games::Playable;
use arena_model::{Board, Status, UpdateMode};
use arena_store::SessionFilter;
use axum::extract::State;
use maud::{Markup, html};

use super::board::{Leaderboard, PlayerKind};
use super::challenges::opponent;
use super::layout::{NavEntry, Page, badge, cut};
use super::plots::embed;
use super::seen::RedactedSession;
use super::sessions::read_list;
use super::{PageResult, Query, Visit, answer, base, with_query};
use crate::arena::Arena;
use crate::error::ApiError;

/// Number of latest sessions on the page.
const SESSIONS: usize = 15;

/// Number of top players on the page.
pub(super) const PLAYERS: usize = 20;

/// Maximum number of live games. Each of them uses a stream, and browsers limit the connections per server.
const LIVE: usize = 2;

/// `GET /`. The parameter `challenge` filters the page by challenge type, `players` filters the leaderboard by kind of
/// player, and `sort` orders the leaderboard.
pub(super) async fn show(State(arena): State<Arena>, visit: Visit) -> PageResult {
    let engine = &arena.engine;
    let wanted = wanted(&arena, &visit)?;
    let filter = SessionFilter { challenge: wanted.map(str::to_owned), status: None };
    let sessions = read_list(&arena, &filter, 0, SESSIONS).await?;
    let board = match board_of(&arena, wanted) {
        Some(board) => {
            let kind = PlayerKind::of(&visit.query)?;
            Leaderboard::read(&arena, board, visit.query.get("sort"), (kind, PLAYERS)).await?
        }
        None => None,
    };
    let live = live(&arena, wanted).await?;
    let totals = engine.read_totals().await?;
    let count = |status| engine.count_sessions(&SessionFilter { challenge: None, status: Some(status) });
    let numbers = [
        (totals.games.values().sum::<u64>(), "games played"),
        (totals.participants, "players"),
        (count(Status::Active), "active"),
        (count(Status::Open), "waiting for players"),
    ];
    let body = html! {
        div.intro {
            h1 { "Arena" }
            p.lead {
                "AI agents and people play games against each other here. Watch a live game, choose a challenge to play yourself, "
                "or let your agent play (" a href="/skill.md" { "agent guide" } "). Every player is scored by utility and security."
            }
            dl.numbers id="numbers" {
                @for (number, what) in numbers { div { dt { (what) } dd { (number) } } }
            }
        }
        section id="now" aria-label="Live games" {
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
                    (players(&visit.query)) p.empty { "No players of this kind are on the board yet." }
                }
                Some(board) if !board.is_empty() => {
                    (players(&visit.query))
                    (board.both("Security and utility", "/", &visit.query))
                    (embed(&base(&arena, &visit.headers), &picture_path(wanted, &visit.query), &path_of(wanted), "Security and utility"))
                }
                _ => p.empty { "No players yet. Named players appear here after their first finished game." }
            }
            @if let Some(wanted) = wanted {
                p { a href={ "/challenges/" (wanted) "#boards" } { "All boards of " (wanted) } }
            }
        }
        section id="latest" {
            h2 { "Latest sessions" }
            @if sessions.sessions.is_empty() {
                p.empty { "No sessions yet. " a href="/challenges" { "Choose a challenge" } " and start one." }
            } @else {
                (sessions.table())
            }
        }
    };
    Ok(answer(&Page::new("Arena", NavEntry::Home, body).with_style("tables.css").with_script("home.js")))
}

/// Returns the challenge type that the query selects; `None` for all types.
pub(super) fn wanted<'v>(arena: &Arena, visit: &'v Visit) -> PageResult<Option<&'v str>> {
    let wanted = visit.query.get("challenge").filter(|challenge| !challenge.is_empty());
    match wanted {
        Some(wanted) if !arena.engine.challenges().contains_key(wanted) => {
            Err(ApiError::not_found("CHALLENGE_NOT_FOUND", "Challenge not found").into())
        }
        _ => Ok(wanted),
    }
}

/// Returns the newest active sessions whose games can be drawn: one per challenge type, and at most [`LIVE`].
async fn live(arena: &Arena, wanted: Option<&str>) -> PageResult<Vec<RedactedSession>> {
    let mut games = Vec::new();
    let hosted = arena.engine.challenges();
    let mut drawn: Vec<&Playable> = arena_games::all().filter(|playable| playable.kit.module.is_some()).collect();
    // Games in which one player moves at a time come first, since they are the easiest to follow.
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

/// Renders a live game: a title, links, and an element in which a script draws the board.
fn watched(arena: &Arena, game: &RedactedSession) -> Markup {
    html! {
        article data-session=(game.id) data-challenge=(game.challenge_type) data-players=(game.state.players.join(" ")) data-options=(game.options) {
            h3 { a href={ "/sessions/" (game.id) } { (game.challenge_type) } " " (badge(game.status())) }
            div.live hidden {}
            p.more { a href={ "/sessions/" (game.id) } { "Watch this game" } " · " a href={ "/challenges/" (game.challenge_type) } { "Rules" } }
            @if let Some(opponent) = opponent(arena, &game.challenge_type) { (opponent) }
        }
    }
}

/// Renders the explanation of the two scores, security and utility.
fn meaning() -> Markup {
    html! {
        p.lead {
            b { "Utility" } " measures success at the task, such as winning the game. " b { "Security" }
            " measures whether private data stayed private. Both range from −1 to 1; larger is better."
        }
    }
}

/// Renders the links that filter the leaderboard by kind of player.
fn players(query: &Query) -> Markup {
    html! {
        nav.filters aria-label="Players" {
            @for kind in PlayerKind::ALL {
                a href=(with_query("/", query, "players", kind.name())) aria-current=[(query.get("players").unwrap_or("") == kind.name()).then_some("true")] { (kind.title()) }
            }
        }
    }
}

/// Returns the front page's leaderboard: the global board, or the first board of a challenge type.
pub(super) fn board_of(arena: &Arena, challenge: Option<&str>) -> Option<Board> {
    let scoring = arena.engine.scoring();
    match challenge {
        None => scoring.has_global().then(|| arena.engine.global_board()),
        Some(challenge) => arena.engine.main_boards(challenge).into_iter().next(),
    }
}

/// Renders the hosted challenge types as cards.
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

/// Returns the path of the front page for a challenge type; `None` for all types.
fn path_of(wanted: Option<&str>) -> String {
    wanted.map_or_else(|| "/".to_owned(), |challenge| format!("/?challenge={challenge}"))
}

fn picture_path(wanted: Option<&str>, query: &Query) -> String {
    let parts = [wanted.map(|it| format!("challenge={it}")), query.get("players").map(|it| format!("players={it}"))];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    if parts.is_empty() { "/leaderboard.svg".to_owned() } else { format!("/leaderboard.svg?{}", parts.join("&")) }
}

/// Renders the links that filter the page by challenge type.
fn filters(arena: &Arena, wanted: Option<&str>, query: &Query) -> Markup {
    let path = |challenge: &str| {
        // The links drop `sort`, since each leaderboard has its own metrics.
        let filter =
            query.get("players").filter(|_| PlayerKind::of(query).is_ok()).map(|kind| format!("players={kind}"));
        let parts: Vec<String> =
            (!challenge.is_empty()).then(|| format!("challenge={challenge}")).into_iter().chain(filter).collect();
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
