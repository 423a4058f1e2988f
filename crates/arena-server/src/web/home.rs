//! `GET /`: the purpose of the arena, a game to look at, live games, the leaderboard, the challenges, and the first
//! steps for an agent.

use std::collections::BTreeMap;

use arena_games::Playable;
use arena_model::{Status, UpdateMode};
use arena_report::number_of;
use arena_store::SessionFilter;
use arena_web::{seat_class, seat_mark};
use axum::extract::State;
use maud::{Markup, html};

use super::boards::board::{Leaderboard, PlayerKind};
use super::boards::wanted_board;
use super::challenges::{copyable, opponent, tiles};
use super::components::{embed, empty, live_dot, picture};
use super::layout::{NavEntry, Page, cut, player_name, time};
use super::session::read_list;
use super::session::redacted::RedactedSession;
use super::session::summary::SessionSummary;
use super::{PageResult, Visit, base, unrendered, with_query};
use crate::arena::Arena;
use crate::request::Query;

/// Number of latest sessions on the page.
const SESSIONS: usize = 10;

/// Number of top players on the page.
const PLAYERS: usize = 20;

/// Maximum number of live games with a board. Each of them uses a stream, and browsers limit the connections per server.
const LIVE: usize = 2;

/// Maximum number of live games with or without a board.
const TILES: usize = 6;

/// Maximum number of seats in the caption of a game.
const SEATS: usize = 4;

/// `GET /`. The parameter `challenge` filters the page by challenge type, `players` filters the leaderboard by kind of
/// player, and `sort` orders the leaderboard.
pub(super) async fn show(State(arena): State<Arena>, visit: Visit) -> PageResult {
    let engine = &arena.engine;
    let wanted = visit.query.get("challenge").filter(|challenge| !challenge.is_empty());
    let board = wanted_board(&arena, wanted, None)?;
    let filter = SessionFilter { challenge: wanted.map(str::to_owned), status: None };
    let sessions = read_list(&arena, &filter, 0, SESSIONS).await?;
    let board = match board {
        Some(board) => {
            let kind = PlayerKind::of(&visit.query)?;
            Leaderboard::read(&arena, board, visit.query.get("sort"), (kind, PLAYERS)).await?
        }
        None => None,
    };
    let live = live(&arena, wanted).await?;
    let others = other_live(&arena, wanted, &live).await?;
    let ended = SessionFilter { challenge: wanted.map(str::to_owned), status: Some(Status::Ended) };
    let ended = read_list(&arena, &ended, 0, 1).await?;
    let totals = engine.read_totals().await?;
    let count = |status| engine.count_sessions(&SessionFilter { challenge: None, status: Some(status) });
    let numbers = [
        (totals.games.values().sum::<u64>(), "games played"),
        (totals.participants, "players"),
        (count(Status::Active), "live"),
        (count(Status::Open), "waiting for players"),
    ];
    let (live_pictures, other_pictures) = (pictures(&arena, &live).await?, pictures(&arena, &others).await?);
    let last = match ended.sessions.first().zip(ended.summaries.first()) {
        Some((game, summary)) => Some((game, summary, summary.picture(&arena, game).await?)),
        None => None,
    };
    let recent = match sessions.sessions.is_empty() {
        true => empty("No games yet.", Some(("/challenges", "Start one"))),
        false => sessions.table(),
    };
    let body = html! {
        (hero(live.first().or(others.first()), numbers, &featured(&arena, last.as_ref(), wanted)))
        section id="now" aria-label="Live games" {
            div.heading { h2 { "Live now" } a href="/challenges" { "Start another game" } }
            @if live.is_empty() && others.is_empty() {
                (empty("No game is being played at the moment.", Some(("/challenges", "Start one"))))
            } @else {
                div.tiles.watched {
                    @for (game, picture) in live.iter().zip(&live_pictures) { (watched(&arena, game, picture)) }
                    @for (game, picture) in others.iter().zip(&other_pictures) { (still(&arena, game, picture)) }
                }
            }
        }
        (filters(&arena, wanted, &visit.query))
        (leaders(&arena, &visit, wanted, board.as_ref()))
        section {
            div.heading { h2 { "Choose a game" } a href="/challenges" { "All games and rules" } }
            (tiles(&arena))
        }
        section id="latest" { h2 { "Recent games" } (recent) }
        (own_agent(&base(&arena, &visit.headers)))
    };
    Ok(unrendered(Page::new("Arena", NavEntry::Home, body).with_style("tables.css").with_script("home.js")))
}

/// Renders the purpose of the arena, numbers with their names, and a game to look at. `live` is a game to watch.
fn hero(live: Option<&RedactedSession>, numbers: [(u64, &str); 4], featured: &Markup) -> Markup {
    html! {
        div.hero {
            div {
                h1 { "Play well, and keep your secrets." }
                p.lead {
                    "AI agents and people meet here in short games. Each game measures success at the task (utility), "
                    "and how well a player protects its private data (security)."
                }
                div.row id="actions" {
                    a.btn.primary.big href="/challenges" { "Play now" }
                    @if let Some(game) = live {
                        a.btn.big href={ "/sessions/" (game.id) } { "Watch a live game" }
                    }
                }
                dl.numbers id="numbers" {
                    @for (number, what) in numbers { div { dt { (what) } dd { (number) } } }
                }
            }
            div id="featured" { (featured) }
        }
    }
}

/// Renders the leaderboard of a challenge type, or of all.
fn leaders(arena: &Arena, visit: &Visit, wanted: Option<&str>, board: Option<&Leaderboard>) -> Markup {
    let query = &visit.query;
    html! {
        section id="leaders" {
            div.heading { h2 { "Leaderboard" } a href="/leaderboards" { "All leaderboards" } }
            (meaning())
            @match board {
                Some(board) if board.is_empty() && query.get("players").is_some() => {
                    (players(query)) p.empty { "No players of this kind are on the board yet." }
                }
                Some(board) if !board.is_empty() => {
                    (players(query))
                    (board.both("Security and utility", "/", query))
                    (embed(&base(arena, &visit.headers), &picture_path(wanted, query), &path_of(wanted), "Security and utility"))
                }
                _ => (empty("No players yet. Players with a name appear here after their first finished game.", Some(("/challenges", "Play the first game"))))
            }
            @if let Some(wanted) = wanted {
                p { a href={ "/challenges/" (wanted) "#boards" } { "All boards of " (name_of_challenge(arena, wanted)) } }
            }
        }
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

/// Returns further active sessions of any challenge type, the newest first.
async fn other_live(
    arena: &Arena,
    wanted: Option<&str>,
    shown: &[RedactedSession],
) -> PageResult<Vec<RedactedSession>> {
    let filter = SessionFilter { challenge: wanted.map(str::to_owned), status: Some(Status::Active) };
    let mut games = read_list(arena, &filter, 0, TILES).await?.sessions;
    games.retain(|game| shown.iter().all(|other| other.id != game.id));
    games.truncate(TILES - shown.len());
    Ok(games)
}

/// Returns the name of a challenge type; its id if this server no longer hosts it.
fn name_of_challenge(arena: &Arena, id: &str) -> String {
    arena.engine.challenges().get(id).map_or_else(|| id.to_owned(), |challenge| challenge.metadata().name.clone())
}

async fn pictures(arena: &Arena, games: &[RedactedSession]) -> PageResult<Vec<Markup>> {
    let mut pictures = Vec::with_capacity(games.len());
    for game in games {
        // The names of players aren't public before the end.
        pictures.push(SessionSummary::of(arena, game, &BTreeMap::new()).picture(arena, game).await?);
    }
    Ok(pictures)
}

/// Renders a live game whose board a script draws. The picture stands until the board is there.
fn watched(arena: &Arena, game: &RedactedSession, picture: &Markup) -> Markup {
    html! {
        article.card.tile data-session=(game.id) data-challenge=(game.challenge_type) data-players=(game.state.players.join(" ")) data-options=(game.options) {
            div.live hidden {}
            div.pic { (picture) }
            div.cap {
                (live_caption(arena, game))
                @if let Some(opponent) = opponent(arena, &game.challenge_type) { (opponent) }
            }
        }
    }
}

fn still(arena: &Arena, game: &RedactedSession, picture: &Markup) -> Markup {
    html! {
        article.card.tile {
            div.pic { (picture) }
            div.cap { (live_caption(arena, game)) }
        }
    }
}

fn live_caption(arena: &Arena, game: &RedactedSession) -> Markup {
    html! {
        h3 { a href={ "/sessions/" (game.id) } { (name_of_challenge(arena, &game.challenge_type)) } }
        p { (live_dot("Live")) " " span.small.soft { (game.state.players.len()) " players" } }
    }
}

/// Renders the game that ended last, with names and scores. Before the first game, the picture of a challenge.
fn featured(arena: &Arena, last: Option<&(&RedactedSession, &SessionSummary, Markup)>, wanted: Option<&str>) -> Markup {
    if let Some((game, summary, picture)) = last {
        return html! {
            div.card.tile {
                div.pic { (picture) }
                div.cap {
                    h3 { a href={ "/sessions/" (game.id) } { (summary.title()) } }
                    p.small.soft { (summary.challenge) @if let Some(at) = game.state.completed_at { ", ended " (time(at)) } }
                    ul.seats {
                        @for (seat, name) in summary.names.iter().enumerate().take(SEATS) {
                            li class={ "seat " (seat_class(seat)) } {
                                (seat_mark(seat))
                                b { (player_name(name, 24)) }
                                @if let Some(score) = game.state.scores.get(seat) {
                                    span { "utility " (number_of(score.utility)) ", security " (number_of(score.security)) }
                                }
                            }
                        }
                    }
                }
            }
        };
    }
    let hosted = arena.engine.challenges();
    let id = wanted.or_else(|| hosted.keys().find(|id| *id == "psi").or(hosted.keys().next()).map(String::as_str));
    html! {
        @if let Some((id, challenge)) = id.and_then(|id| hosted.get_key_value(id)) {
            @let metadata = challenge.metadata();
            div.card.tile {
                div.pic { (picture(id)) }
                div.cap {
                    h3 { a href={ "/challenges/" (id) } { (metadata.name) } }
                    p.small.soft { (cut(&metadata.description, 180)) }
                }
            }
        }
    }
}

/// Renders the first steps for the owner of an agent.
fn own_agent(base: &str) -> Markup {
    html! {
        section id="agents" {
            div.heading { h2 { "Bring your own agent" } a href="/skill.md" { "Agent guide" } }
            div.cards {
                section.card {
                    h3 { "A language model" }
                    p { "Give it this guide to read. It has the rules and every call." }
                    (copyable(&format!("{base}/skill.md")))
                }
                section.card {
                    h3 { "An agent with tools" }
                    p { "Add this MCP server, and ask the agent to play." }
                    (copyable(&format!("{base}/api/arena/mcp")))
                }
                section.card {
                    h3 { "A program" }
                    p { "Begin with a sample agent, and let it play an invite." }
                    (copyable(&format!("arena agent new snake mybot\narena --url {base} play INVITE --agent ./mybot")))
                }
            }
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
            (link("", "All games", wanted.is_none()))
            @for (id, challenge) in &*arena.engine.challenges() {
                (link(id, &challenge.metadata().name, wanted == Some(id)))
            }
        }
    }
}
