//! `/challenges`: the hosted challenges; `/challenges/{name}`: one challenge with the ways to play it, its rules,
//! sessions and leaderboards.

use std::sync::Arc;

use arena_engine::Create;
use arena_model::{Board, ChallengeType, Status, Viewer};
use arena_store::SessionFilter;
use axum::extract::State;
use axum::http::StatusCode;
use maud::{Markup, html};
use serde_json::{Map, Value, json};

use super::board::{Leaderboard, PlayerKind};
use super::components::{btn, empty, picture};
use super::form::Form;
use super::home::challenges;
use super::layout::{NavEntry, Page, badge, cut, explained, shown};
use super::leaderboards::title_of_strategy;
use super::play::to_seat;
use super::seen::{RedactedSession, is_invite_code};
use super::sessions::read_list;
use super::{PageResult, Visit, answer, base, pager};
use crate::answer::to_text;
use crate::arena::Arena;
use crate::error::ApiError;
use crate::house::{House, Places, Strength};

/// Number of sessions per page.
const SESSIONS: usize = 20;

/// Number of players per leaderboard.
const PLAYERS: usize = 10;

/// `GET /challenges`.
pub(super) async fn list(State(arena): State<Arena>, _visit: Visit) -> PageResult {
    let body = html! {
        h1 { "Choose a game" }
        p.lead { "Play against a bot, a friend or your own agent. You need no account." }
        @if arena.engine.challenges().is_empty() {
            (empty("This server hosts no games.", None))
        } @else {
            (challenges(&arena, true))
        }
    };
    Ok(answer(&Page::new("Play", NavEntry::Challenges, body)))
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
        div.hero {
            div.intro {
                h1 { (metadata.name) }
                p.lead { (shown(&metadata.description)) }
                p.counts { span { (metadata.players) @if metadata.players == 1 { " player" } @else { " players" } } @for tag in metadata.tags.iter().flatten() { span { (cut(tag, 40)) } } }
                div.row id="actions" {
                    @if let Some(opponents) = opponents(&arena, name) { (opponents) }
                    (btn("#new", "Invite friends"))
                    (btn("#rules", "Rules"))
                }
            }
            div.card.tile { div.pic { (picture(name)) } }
        }
        div.two {
            section id="new" { (new_session(challenge)) }
            section.card.pad id="rules" {
                h2 { "Rules" }
                p { (shown(&metadata.description)) }
                details {
                    summary { "All rules and moves" }
                    div.prose.rules { (explained(&metadata.prompt)) }
                    h3 { "Moves" }
                    dl.methods {
                        @for method in &metadata.methods { dt { code { (method.name) } } dd { (explained(&method.description)) } }
                    }
                    p.small.soft { "Programs call this game " code { (name) } "." }
                }
            }
        }
        section id="sessions" {
            h2 { "Games" }
            nav.filters aria-label="Games" {
                a href={ (path) "#sessions" } aria-current=[status.is_none().then_some("true")] { "All" }
                @for each in Status::ALL {
                    a href={ (path) "?status=" (each.as_str()) "#sessions" } aria-current=[(status == Some(each)).then_some("true")] { (name_of_status(each)) }
                }
            }
            @if sessions.sessions.is_empty() {
                (empty("No games here yet.", Some(("#new", "Start one"))))
            } @else {
                (sessions.table())
            }
            (pager(&path, &visit.query, (offset, limit, sessions.total)))
        }
        section id="boards" {
            h2 { "Leaderboards" }
            @if boards.is_empty() { (empty("No finished games yet.", None)) }
            @if others > 0 {
                p { "Games with earlier options, rules or prompts have separate " a href={ "/api/scoring/" (name) "/boards" } { "boards" } "." }
            }
            @for (strategy, board) in &boards {
                h3 { a href={ "/leaderboards/" (name) "?strategy=" (strategy) } { (title_of_strategy(strategy)) } }
                (board.both(&format!("{}: {}", metadata.name, title_of_strategy(strategy)), &path, &visit.query))
                p.more { a href={ "/api/scoring/" (name) "?strategy=" (strategy) } { "Full board as JSON" } }
            }
        }
    };
    Ok(answer(&Page::new(&metadata.name, NavEntry::Challenges, body).with_style("tables.css")))
}

/// Returns the non-empty boards by strategy name. `sort` applies to the boards that have the metric.
async fn boards(arena: &Arena, name: &str, sort: Option<&str>) -> PageResult<Vec<(&'static str, Leaderboard)>> {
    let scoring = arena.engine.scoring();
    let of_strategy = |board: Board| match &board {
        Board::Of { strategy, .. } => Some((*strategy, board)),
        Board::Global(_) => None,
    };
    let all: Vec<(&'static str, Board)> = arena.engine.main_boards(name).into_iter().filter_map(of_strategy).collect();
    // The call fails if no board has the metric `sort`.
    crate::routes::orders(arena, all.iter().map(|(_, board)| board.clone()).collect(), sort)?;
    let mut boards = Vec::new();
    for (strategy, board) in all {
        let sort = sort.filter(|sort| scoring.order(&board, Some(sort)).is_some());
        let board = Leaderboard::read(arena, board, sort, (PlayerKind::All, PLAYERS)).await?;
        boards.extend(board.filter(|board| !board.is_empty()).map(|board| (strategy, board)));
    }
    Ok(boards)
}

fn name_of_status(status: Status) -> &'static str {
    match status {
        Status::Open => "Waiting for players",
        Status::Active => "Live",
        Status::Ended => "Ended",
    }
}

/// Returns the form that starts a session with house bots on all seats but one; `None` if the challenge has no house
/// bots.
pub(super) fn opponent(arena: &Arena, name: &str) -> Option<Markup> {
    against_house(arena, name, &html! { button.btn { "Play against a house bot" } })
}

/// Returns the form of [`opponent`] with a button for each strength.
fn opponents(arena: &Arena, name: &str) -> Option<Markup> {
    let turns = short_options(arena, name).and_then(|options| options.get("n_epochs").cloned());
    let buttons = html! {
        button.btn.primary { "Play against a house bot" }
        button.btn name="strength" value="easy" { "Easy opponent" }
        @if let Some(turns) = turns { span.small.soft { "A short game of " (turns) " turns." } }
    };
    against_house(arena, name, &buttons)
}

fn against_house(arena: &Arena, name: &str, buttons: &Markup) -> Option<Markup> {
    arena.house.get().filter(|house| house.plays(name))?;
    Some(html! {
        form.row method="post" action={ "/challenges/" (name) } {
            input type="hidden" name="against" value="house";
            @if let Some(options) = short_options(arena, name) { input type="hidden" name="options" value=(to_text(&options)); }
            (buttons)
        }
    })
}

/// Returns the options of games against house bots that differ from this server's, if its usual games are longer.
fn short_options(arena: &Arena, name: &str) -> Option<Map<String, Value>> {
    let short = arena_games::all().find(|playable| playable.id == name)?.kit.short?;
    let mut options = short().as_object().cloned()?;
    let challenges = arena.engine.challenges();
    let challenge = challenges.get(name)?;
    let usual = |name: &str| challenge.options().iter().find(|option| option.name == name)?.default.as_u64();
    options.retain(|name, value| usual(name) > value.as_u64());
    (!options.is_empty() && challenge.resolve(&options).is_ok()).then_some(options)
}

/// Renders the form that starts a session.
fn new_session(challenge: &dyn ChallengeType) -> Markup {
    let (name, metadata, options) = (challenge.id(), challenge.metadata(), challenge.options());
    html! {
        form.card.pad method="post" action={ "/challenges/" (name) } {
            h2 { "Invite friends" }
            p { "You get one invite for each of the " (metadata.players) " seats. Send them to friends or agents, or take a seat yourself." }
            @if let Some(first) = options.first() {
                details {
                    summary { "Options" }
                    label for="options" { "JSON object with the options to override, such as " code { (json!({ (&*first.name): first.default })) } "." }
                    textarea id="options" name="options" rows="3" spellcheck="false" {}
                    dl {
                        @for option in options {
                            dt { code { (option.name) } }
                            dd {
                                (option.description) " "
                                span.soft {
                                    @if let (Some(least), Some(most)) = (&option.minimum, &option.maximum) { (least) " to " (most) ", default " }
                                    @else { "Default " }
                                    code { (cut(&option.default.to_string(), 80)) } "."
                                }
                            }
                        }
                    }
                }
            }
            button { "Create the invites" }
        }
    }
}

/// `POST /challenges/{name}`: creates a session and shows its invites, once.
pub(super) async fn create(State(arena): State<Arena>, form: Form) -> PageResult {
    let name = form.param("name");
    let challenge = hosted(&arena, name)?;
    let metadata = challenge.metadata();
    let options = match form.fields.get("options").map(str::trim).filter(|text| !text.is_empty()) {
        None => Default::default(),
        Some(text) => serde_json::from_str(text).map_err(|error| {
            ApiError::bad_request("INVALID_OPTIONS", format!("options must be a JSON object: {error}"))
        })?,
    };
    let house = match form.fields.get("against") {
        None => None,
        Some("house") => {
            let seats = challenge.resolve(&options).map_or(metadata.players, |options| challenge.seats(&options));
            let strength = Strength::from_name(form.fields.get("strength").unwrap_or("normal"));
            let unknown = || ApiError::bad_request("INVALID_FIELD", "strength must be `easy` or `normal`");
            let (house, places) = reserve_bots(&arena, name, seats)?;
            Some((house, places, strength.ok_or_else(unknown)?))
        }
        Some(_) => return Err(ApiError::bad_request("INVALID_FIELD", "against must be `house`").into()),
    };
    let create = Create { challenge: name.to_owned(), options, is_rated: house.is_none() };
    let respond =
        Box::new(|written: &arena_engine::Written<'_>| to_text(&arena_model::view(written.session, Viewer::Creator)));
    let view = arena.engine.create(create, None, respond).await?;
    let session: RedactedSession = serde_json::from_str(&view).expect("views have these fields");
    if let (Some((house, places, strength)), Some((own, others))) = (house, session.invites.split_first()) {
        house.send(name, others, strength, places);
        return Ok(to_seat(own));
    }
    let base = base(&arena, &form.headers);
    let body = html! {
        div.intro {
            h1 { "A new game of " (metadata.name) }
            p.lead { "The invites are shown only once. Anyone with an invite can take its seat, so send each to its player only." }
            p.row { a.btn href={ "/sessions/" (session.id) } { "Watch the game" } (badge(session.status())) }
        }
        @for (seat, invite) in session.invites.iter().enumerate().filter(|(_, invite)| is_invite_code(invite)) {
            section.card {
                h2 { "Invite " (seat + 1) }
                (copyable(invite))
                p { a.btn.primary href={ "/play/" (invite) } { "Play in this browser" } }
                (ways(&arena, &base, invite))
            }
        }
    };
    Ok(answer(&Page::new("New game", NavEntry::Challenges, body)))
}

/// Reserves house bots for all seats of a session but one.
fn reserve_bots<'a>(arena: &'a Arena, name: &str, seats: usize) -> PageResult<(&'a House, Places)> {
    let house = arena.house.get().filter(|house| house.plays(name));
    let house =
        house.ok_or_else(|| ApiError::not_found("NO_OPPONENT", "this server has no house bot for this challenge"))?;
    let busy = || {
        let text = "all house bots are busy; try again when a game has ended";
        ApiError::new(StatusCode::SERVICE_UNAVAILABLE, "HOUSE_BUSY", text)
    };
    let places = house.reserve(seats.saturating_sub(1)).ok_or_else(busy)?;
    Ok((house, places))
}

/// Renders instructions for playing with an invite outside the browser: on the command line, over HTTP or over MCP.
fn ways(arena: &Arena, base: &str, invite: &str) -> Markup {
    let curl = format!("curl -d '{{\"invite\": \"{invite}\", \"userId\": \"ada\"}}' {base}/api/arena/join");
    html! {
        details {
            summary { "Command line, HTTP or MCP" }
            p { "Command line, with a guided game:" }
            (copyable(&format!("arena --url {base} play {invite}")))
            @if arena.is_authenticated_mode() {
                p { "HTTP: this server requires signed joins; see the " a href="/skill.md" { "agent guide" } "." }
            } @else {
                p { "HTTP:" }
                (copyable(&curl))
            }
            p { "MCP: add this server to your agent, and give the invite to the agent." }
            (copyable(&format!("{base}/api/arena/mcp")))
        }
    }
}

/// Renders a text in a box, to which a script adds a copy button.
pub(super) fn copyable(text: &str) -> Markup {
    html! { pre.copy { code { (text) } } }
}
