//! `GET /`: a live board or the latest reveal with the way to play, then the games, live games, results of different
//! games, the leaderboard, and the first steps for an agent.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use arena_games::Playable;
use arena_model::{Ending, Phase, Session, Status, UpdateMode};
use arena_store::{Page as Listed, SessionFilter};
use arena_web::{seat_class, seat_mark};
use axum::extract::State;
use maud::{Markup, html};

use super::boards::board::{Leaderboard, PlayerKind};
use super::boards::wanted_board;
use super::challenges::queue::waiting_games;
use super::challenges::{copyable, tiles};
use super::components::{empty, live_dot, picture};
use super::layout::{NavEntry, Page, cut, player_name, time};
use super::session::redacted::RedactedSession;
use super::session::summary::SessionSummary;
use super::session::{SessionTable, read_list};
use super::{PageResult, Visit, base, unrendered};
use crate::arena::Arena;
use crate::records::deals::day_of;

/// Number of results, each of another challenge type.
const RESULTS: usize = 5;

/// Number of latest ended games among which results are searched.
const SEARCHED: usize = 50;

/// Number of top players on the page.
const PLAYERS: usize = 5;

/// Maximum number of live games.
const LIVE: usize = 6;

/// Maximum number of seats in the caption of a game.
const SEATS: usize = 4;

/// `GET /`.
pub(super) async fn show(State(arena): State<Arena>, visit: Visit) -> PageResult {
    let engine = &arena.engine;
    let board = match wanted_board(&arena, None, None)? {
        Some(board) => Leaderboard::read(&arena, board, None, (PlayerKind::All, PLAYERS)).await?,
        None => None,
    };
    let active = SessionFilter { challenge: None, status: Some(Status::Active) };
    let live = read_list(&arena, &active, 0, LIVE).await?.sessions;
    let waiting = waiting_games(&arena).await?;
    let pictures = pictures(&arena, &live).await?;
    let results = results(&arena).await?;
    let featured = match find_moving(&arena).await? {
        Some(game) => moving(&arena, &game).await?,
        None => reveal(&arena, &results).await?,
    };
    let totals = engine.read_totals().await?;
    let count = |status| engine.count_sessions(&SessionFilter { challenge: None, status: Some(status) });
    let numbers = [
        (totals.games.values().sum::<u64>(), "games played"),
        (totals.participants, "players"),
        (count(Status::Active), "live"),
        (count(Status::Open), "waiting for players"),
    ];
    let base = base(&arena, &visit.headers);
    let has_deal = arena.records.published().deals.contains_key(&day_of(engine.now()));
    let body = html! {
        (hero(&base, numbers, has_deal, &featured))
        section {
            div.heading { h2 { "Choose a game" } a href="/challenges" { "All games and rules" } }
            (tiles(&arena, true))
        }
        section id="now" aria-label="Live games" {
            h2 { "Live now" }
            @if live.is_empty() && waiting.is_empty() {
                (empty("No game is being played at the moment.", Some(("/challenges", "Start one"))))
            } @else {
                div.tiles.compact {
                    @for game in &waiting { (game) }
                    @for (game, picture) in live.iter().zip(&pictures) {
                        article.card.tile { div.pic { (picture) } div.cap { (live_caption(&arena, game)) } }
                    }
                }
            }
        }
        section id="latest" { h2 { "Latest results" } (result_list(&results)) }
        section id="leaders" {
            div.heading { h2 { "Leaderboard" } a href="/leaderboards" { "All leaderboards" } }
            @match &board {
                Some(board) if !board.is_empty() => {
                    p {
                        b { "Utility" } " measures success at the task, such as winning the game. " b { "Security" }
                        " measures whether private data stayed private. Both range from −1 to 1; larger is better."
                    }
                    (board.table("/leaderboards", &visit.query))
                }
                _ => (empty("No players yet. Players with a name appear here after their first finished game.", Some(("/challenges", "Play the first game"))))
            }
        }
        (own_agent(&base))
    };
    Ok(unrendered(Page::new("Arena", NavEntry::Home, body).with_style("tables.css").with_script("home.js")))
}

/// Renders the purpose of the arena, the way to play, a sentence for agents, and a game to look at.
fn hero(base: &str, numbers: [(u64, &str); 4], has_deal: bool, featured: &Markup) -> Markup {
    html! {
        div.hero {
            div {
                h1 { "Play well, and keep your secrets." }
                p.lead {
                    "People and AI agents meet here in short games. In some the better player wins; in others you reach "
                    "your goal only if you talk, and every word may give you away."
                }
                div.row id="actions" {
                    a.btn.primary.big href="/challenges" { "Play now" }
                    @if has_deal { a.btn.big href="/daily" { "Deal of the day" } }
                }
                p.small.soft { "Or send your agent. Paste this sentence into it:" }
                (copyable(&format!("Read {base}/skill.md and play a game.")))
                dl.numbers id="numbers" {
                    @for (number, what) in numbers { div { dt { (what) } dd { (number) } } }
                }
            }
            div.watched id="featured" { (featured) }
        }
    }
}

/// Returns the newest active session whose board a script can draw. Games in which one player moves at a time come
/// first, since they are the easiest to follow.
async fn find_moving(arena: &Arena) -> PageResult<Option<RedactedSession>> {
    let hosted = arena.engine.challenges();
    let mut drawn: Vec<&Playable> = arena_games::all().filter(|playable| playable.kit.module.is_some()).collect();
    drawn.sort_by_key(|playable| playable.game.mode != UpdateMode::Alternating);
    for playable in drawn.into_iter().filter(|playable| hosted.contains_key(playable.id)) {
        let filter = SessionFilter { challenge: Some(playable.id.to_owned()), status: Some(Status::Active) };
        let found = read_list(arena, &filter, 0, 1).await?.sessions.pop();
        if found.is_some() {
            return Ok(found);
        }
    }
    Ok(None)
}

/// Returns the latest games that ended by their rules, one of each challenge type, the latest begun first.
async fn results(arena: &Arena) -> PageResult<SessionTable> {
    let mut seen = BTreeSet::new();
    let is_complete = |game: &Session| matches!(game.phase, Phase::Ended { ending: Ending::Completed, .. });
    let ended = SessionFilter { challenge: None, status: Some(Status::Ended) };
    let mut games = arena.engine.list_sessions(&ended, 0, SEARCHED).await?.items;
    games.retain(|game| is_complete(game) && seen.insert(game.facts.challenge.clone()));
    // Games of others may have ended before those of a busy challenge.
    for challenge in arena.engine.challenges().keys().filter(|id| !seen.contains(*id)) {
        let ended = SessionFilter { challenge: Some(challenge.clone()), status: Some(Status::Ended) };
        if games.len() >= RESULTS || arena.engine.count_sessions(&ended) == 0 {
            continue;
        }
        games.extend(arena.engine.list_sessions(&ended, 0, 1).await?.items.into_iter().filter(is_complete));
    }
    games.sort_by_key(|game| Reverse(game.facts.created_at.0));
    games.truncate(RESULTS);
    let total = games.len() as u64;
    SessionTable::of(arena, Listed { items: games, total }).await
}

/// Renders results as sentences, each with the picture of its challenge.
fn result_list(results: &SessionTable) -> Markup {
    html! {
        @if results.sessions.is_empty() {
            (empty("No games yet.", Some(("/challenges", "Start one"))))
        } @else {
            div.tiles.compact {
                @for (game, summary) in results.sessions.iter().zip(&results.summaries) {
                    article.card.tile {
                        div.pic { (picture(&game.challenge_type)) }
                        div.cap {
                            h3 { a href={ "/sessions/" (game.id) } { (summary.title()) } }
                            p.small.soft { (summary.challenge) @if let Some(at) = game.state.completed_at { ", " (time(at)) } }
                        }
                    }
                }
            }
        }
    }
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
async fn moving(arena: &Arena, game: &RedactedSession) -> PageResult<Markup> {
    let picture = SessionSummary::of(arena, game, &BTreeMap::new()).picture(arena, game).await?;
    Ok(html! {
        article.card.tile data-session=(game.id) data-challenge=(game.challenge_type) data-players=(game.state.players.join(" ")) data-options=(game.options) {
            div.live hidden {}
            div.pic { (picture) }
            div.cap { (live_caption(arena, game)) }
        }
    })
}

fn live_caption(arena: &Arena, game: &RedactedSession) -> Markup {
    html! {
        h3 { a href={ "/sessions/" (game.id) } { (name_of_challenge(arena, &game.challenge_type)) } }
        p { (live_dot("Live")) " " span.small.soft { (game.state.players.len()) " players" } }
    }
}

/// Renders the latest result in which a player learned a secret, or else the latest result. Before the first game, the
/// picture of a challenge.
async fn reveal(arena: &Arena, results: &SessionTable) -> PageResult<Markup> {
    let games = || results.sessions.iter().zip(&results.summaries);
    let is_reveal = |game: &RedactedSession| game.state.attributions.iter().any(|it| it.kind == "security_breach");
    if let Some((game, summary)) = games().find(|(game, _)| is_reveal(game)).or_else(|| games().next()) {
        let picture = summary.picture(arena, game).await?;
        return Ok(html! {
            div.card.tile {
                div.pic { (picture) }
                div.cap {
                    h3 { a href={ "/sessions/" (game.id) } { (summary.title()) } }
                    p.small.soft { (summary.challenge) @if let Some(at) = game.state.completed_at { ", ended " (time(at)) } }
                    ul.seats {
                        @for (seat, name) in summary.names.iter().enumerate().take(SEATS) {
                            li class={ "seat " (seat_class(seat)) } { (seat_mark(seat)) b { (player_name(name, 24)) } }
                        }
                    }
                }
            }
        });
    }
    let hosted = arena.engine.challenges();
    let first = hosted.get_key_value("psi").or_else(|| hosted.iter().next());
    Ok(html! {
        @if let Some((id, challenge)) = first {
            @let metadata = challenge.metadata();
            div.card.tile {
                div.pic { (picture(id)) }
                div.cap {
                    h3 { a href={ "/challenges/" (id) } { (metadata.name) } }
                    p.small.soft { (cut(&metadata.description, 180)) }
                }
            }
        }
    })
}

/// Renders the first steps for the owner of an agent.
fn own_agent(base: &str) -> Markup {
    html! {
        section id="agents" {
            div.heading { h2 { "Bring your own agent" } a href="/skill.md" { "Agent guide" } }
            div.cards {
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
