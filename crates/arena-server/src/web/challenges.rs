//! `/challenges`: what can be played here; `/challenges/{name}`: its rules, its sessions, its boards, and a new session.

use std::sync::Arc;

use arena_engine::Create;
use arena_model::{Board, ChallengeType, Status, Viewer};
use arena_store::SessionFilter;
use axum::extract::State;
use axum::http::StatusCode;
use maud::{Markup, html};
use serde_json::json;

use super::board::{Leaderboard, Who};
use super::form::Form;
use super::home::challenges;
use super::layout::{Page, Place, badge, cut, explained, shown};
use super::play::to_seat;
use super::seen::{Seen, is_code};
use super::sessions::read_list;
use super::{PageResult, Visit, answer, base, pager};
use crate::answer::to_text;
use crate::arena::Arena;
use crate::error::ApiError;
use crate::house::{House, Places};

/// Sessions on a page.
const SESSIONS: usize = 20;

/// Players on each board.
const PLAYERS: usize = 10;

/// `GET /challenges`.
pub(super) async fn list(State(arena): State<Arena>, _visit: Visit) -> PageResult {
    let body = html! {
        h1 { "Challenges" }
        p.lead { "What agents and people can play here. Each has its rules, its sessions and its leaderboards." }
        @if arena.engine.challenges().is_empty() {
            p.empty { "No challenge is played on this server." }
        } @else {
            (challenges(&arena))
        }
    };
    Ok(answer(&Page::new("Challenges", Place::Challenges, body)))
}

fn hosted(arena: &Arena, name: &str) -> PageResult<Arc<dyn ChallengeType>> {
    let challenge = arena.engine.challenges().get(name).cloned();
    Ok(challenge.ok_or_else(|| ApiError::not_found("CHALLENGE_NOT_FOUND", "Challenge not found"))?)
}

/// `GET /challenges/{name}`.
pub(super) async fn show(State(arena): State<Arena>, visit: Visit) -> PageResult {
    let name = visit.param("name");
    let challenge = &*hosted(&arena, name)?;
    let metadata = challenge.metadata();
    let path = format!("/challenges/{name}");
    let (offset, limit) = (visit.query.number("offset").unwrap_or(0), SESSIONS);
    let status = visit.query.get("status").and_then(Status::from_wire);
    let sessions =
        read_list(&arena, &SessionFilter { challenge: Some(name.to_owned()), status }, offset, limit).await?;
    let boards = boards(&arena, name, visit.query.get("sort")).await?;
    let main = arena.engine.main_board(name);
    let others = arena.engine.list_boards(name).await?.iter().filter(|board| main.as_ref() != Some(&board.id)).count();
    let body = html! {
        div.intro {
            h1 { (metadata.name) " " code { (name) } }
            p.lead { (shown(&metadata.description)) }
            p.counts { span { (metadata.players) " players" } @for tag in metadata.tags.iter().flatten() { span { (cut(tag, 40)) } } }
        }
        @if let Some(opponent) = opponent(&arena, name) {
            section.card.inviting {
                h2 { "Play it yourself" }
                p { "A bot of the house takes the other side, and you play in this browser." }
                (opponent)
            }
        }
        section { (new_session(challenge)) }
        section {
            h2 { "Rules" }
            div.prose.rules { (explained(&metadata.prompt)) }
            h3 { "Methods" }
            dl.methods {
                @for method in &metadata.methods { dt { code { (method.name) } } dd { (explained(&method.description)) } }
            }
        }
        section id="sessions" {
            h2 { "Sessions" }
            nav.filters aria-label="Sessions" {
                a href={ (path) "#sessions" } aria-current=[status.is_none().then_some("true")] { "All" }
                @for each in Status::ALL {
                    a href={ (path) "?status=" (each.as_str()) "#sessions" } aria-current=[(status == Some(each)).then_some("true")] { (each.as_str()) }
                }
            }
            @if sessions.sessions.is_empty() {
                p.empty { "No such sessions." }
            } @else {
                (sessions.table())
            }
            (pager(&path, &visit.query, (offset, limit, sessions.total)))
        }
        section id="boards" {
            h2 { "Leaderboards" }
            @if boards.is_empty() { p.empty { "Nobody has played this to its end yet." } }
            @if others > 0 {
                p { "Games with earlier options, rules or prompts keep their own " a href={ "/api/scoring/" (name) "/boards" } { "boards" } "." }
            }
            @for (strategy, board) in &boards {
                h3 { (strategy) }
                (board.both(&format!("{name}: {strategy}"), &path, &visit.query))
                p.more { a href={ "/api/scoring/" (name) "?strategy=" (strategy) } { "All of it, as data" } }
            }
        }
    };
    Ok(answer(&Page::new(&metadata.name, Place::Challenges, body)))
}

/// The boards that somebody is on, by the names of their strategies. `sort` is for the one that has such a metric.
async fn boards(arena: &Arena, name: &str, sort: Option<&str>) -> PageResult<Vec<(&'static str, Leaderboard)>> {
    let scoring = arena.engine.scoring();
    let of_strategy = |board: Board| match &board {
        Board::Of { strategy, .. } => Some((*strategy, board)),
        Board::Global(_) => None,
    };
    let all: Vec<(&'static str, Board)> = arena.engine.main_boards(name).into_iter().filter_map(of_strategy).collect();
    // Says so if none of them has it.
    crate::routes::orders(arena, all.iter().map(|(_, board)| board.clone()).collect(), sort)?;
    let mut boards = Vec::new();
    for (strategy, board) in all {
        let sort = sort.filter(|sort| scoring.order(&board, Some(sort)).is_some());
        let board = Leaderboard::read(arena, board, sort, (Who::All, PLAYERS)).await?;
        boards.extend(board.filter(|board| !board.is_empty()).map(|board| (strategy, board)));
    }
    Ok(boards)
}

/// The form that starts a session in which bots of the house sit at all seats but one, where there are such bots.
pub(super) fn opponent(arena: &Arena, name: &str) -> Option<Markup> {
    arena.house.get().filter(|house| house.plays(name))?;
    Some(html! {
        form method="post" action={ "/challenges/" (name) } {
            input type="hidden" name="against" value="house";
            button { "Play against a house bot" }
        }
    })
}

/// The form that starts a session.
fn new_session(challenge: &dyn ChallengeType) -> Markup {
    let (name, metadata, options) = (challenge.id(), challenge.metadata(), challenge.options());
    html! {
        form.card method="post" action={ "/challenges/" (name) } {
            h2 { "New session" }
            p { "You get an invite for each of the " (metadata.players) " seats, and hand them out: to agents, to other people, or to yourself." }
            @if let Some(first) = options.first() {
                details {
                    summary { "Options" }
                    label for="options" { "A JSON object with those that shall differ from this server's, such as " code { (json!({ (&*first.name): first.default })) } "." }
                    textarea id="options" name="options" rows="3" spellcheck="false" {}
                    dl {
                        @for option in options {
                            dt { code { (option.name) } }
                            dd {
                                (option.description) " "
                                span.soft {
                                    @if let (Some(least), Some(most)) = (&option.minimum, &option.maximum) { (least) " to " (most) ", else " }
                                    @else { "Else " }
                                    code { (cut(&option.default.to_string(), 80)) } "."
                                }
                            }
                        }
                    }
                }
            }
            button { "Start a session" }
        }
    }
}

/// `POST /challenges/{name}`: a session, and its invites, this once.
pub(super) async fn create(State(arena): State<Arena>, form: Form) -> PageResult {
    let name = form.param("name");
    let challenge = hosted(&arena, name)?;
    let metadata = challenge.metadata();
    let options = match form.fields.get("options").map(str::trim).filter(|text| !text.is_empty()) {
        None => Default::default(),
        Some(text) => serde_json::from_str(text).map_err(|error| {
            ApiError::bad_request("INVALID_OPTIONS", format!("the options aren't a JSON object: {error}"))
        })?,
    };
    let house = match form.fields.get("against") {
        None => None,
        Some("house") => {
            let seats = challenge.resolve(&options).map_or(metadata.players, |options| challenge.seats(&options));
            Some(kept(&arena, name, seats)?)
        }
        Some(_) => return Err(ApiError::bad_request("INVALID_FIELD", "against must be: house").into()),
    };
    let create = Create { challenge: name.to_owned(), options };
    let respond =
        Box::new(|written: &arena_engine::Written<'_>| to_text(&arena_model::view(written.session, Viewer::Creator)));
    let told = arena.engine.create(create, None, respond).await?;
    let session: Seen = serde_json::from_str(&told).expect("views have these fields");
    if let (Some((house, places)), Some((own, others))) = (house, session.invites.split_first()) {
        house.send(name, others, places);
        return Ok(to_seat(own));
    }
    let base = base(&arena, &form.headers);
    let body = html! {
        div.intro {
            h1 { "A new session of " (metadata.name) }
            p.lead { "Its invites are shown this once. Whoever has one can take the seat, so hand each to its player alone." }
            p { a href={ "/sessions/" (session.id) } { "Watch the session" } " " (badge(session.status())) }
        }
        @for (seat, invite) in session.invites.iter().enumerate().filter(|(_, invite)| is_code(invite)) {
            section.card {
                h2 { "Invite " (seat + 1) }
                (copyable(invite))
                p { a href={ "/play/" (invite) } { "Play with it in this browser" } }
                (ways(&arena, &base, invite))
            }
        }
    };
    Ok(answer(&Page::new("New session", Place::Challenges, body)))
}

/// The house, with places for all seats of a session but one.
fn kept<'a>(arena: &'a Arena, name: &str, seats: usize) -> PageResult<(&'a House, Places)> {
    let house = arena.house.get().filter(|house| house.plays(name));
    let house = house.ok_or_else(|| ApiError::not_found("NO_OPPONENT", "this server has no bots that play this"))?;
    let busy = || {
        let text = "all bots of the house are playing; try again when a game is over";
        ApiError::new(StatusCode::SERVICE_UNAVAILABLE, "HOUSE_BUSY", text)
    };
    let places = house.reserve(seats.saturating_sub(1)).ok_or_else(busy)?;
    Ok((house, places))
}

/// How somebody plays with an invite.
fn ways(arena: &Arena, base: &str, invite: &str) -> Markup {
    let curl = format!("curl -d '{{\"invite\": \"{invite}\", \"userId\": \"ada\"}}' {base}/api/arena/join");
    html! {
        details {
            summary { "Or from the command line, with HTTP, with MCP" }
            p { "The command line, which leads through the game:" }
            (copyable(&format!("arena --url {base} play {invite}")))
            @if arena.asks_for_keys() {
                p { "HTTP: joins are signed here; " a href="/skill.md" { "how agents play" } " says how." }
            } @else {
                p { "HTTP:" }
                (copyable(&curl))
            }
            p { "MCP: add this server to an agent, and tell it the invite." }
            (copyable(&format!("{base}/api/arena/mcp")))
        }
    }
}

/// A text to be copied; a script puts a button beside it.
fn copyable(text: &str) -> Markup {
    html! { pre.copy { code { (text) } } }
}
