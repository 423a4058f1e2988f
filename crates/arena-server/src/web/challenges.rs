//! `/challenges`: the hosted challenges; `/challenges/{name}`: one challenge with the ways to play it, its rules,
//! sessions and leaderboards.

pub(super) mod create;
mod options;
pub(super) mod queue;

use std::sync::Arc;

use arena_model::{ChallengeType, Status};
use arena_store::SessionFilter;
use axum::extract::State;
use maud::{Markup, html};
use serde_json::{Map, Value};

use super::boards::board::{Leaderboard, PlayerKind};
use super::boards::measures::board_title;
use super::boards::{path_of, shown_strategies, wanted_board};
use super::components::{btn, empty, picture};
use super::layout::{NavEntry, Page, cut, explained, shown};
use super::session::read_list;
use super::{PageResult, Visit, pager, unrendered};
use crate::answer::to_text;
use crate::arena::Arena;
use crate::error::ApiError;
use crate::house_bots::{House, Strength};
use queue::{find_opponent, waiting_game};

/// Number of sessions per page.
const SESSIONS: usize = 10;

/// Maximum number of games on the home page.
const SHORT_TILES: usize = 8;

/// Number of players per leaderboard.
const PLAYERS: usize = 10;

pub(super) async fn list(State(arena): State<Arena>, _visit: Visit) -> PageResult {
    let body = html! {
        h1 { "Choose a game" }
        p.lead { "Play against a house bot, a friend or your own agent. You need no account." }
        @if arena.engine.challenges().is_empty() {
            (empty("This server hosts no games.", None))
        } @else {
            (tiles(&arena, false))
        }
    };
    Ok(unrendered(Page::new("Play", NavEntry::Challenges, body)))
}

pub(super) fn hosted(arena: &Arena, name: &str) -> PageResult<Arc<dyn ChallengeType>> {
    let challenge = arena.engine.challenges().get(name).cloned();
    Ok(challenge.ok_or_else(ApiError::challenge_not_found)?)
}

pub(super) async fn show(State(arena): State<Arena>, visit: Visit) -> PageResult {
    let name = visit.param("name");
    let challenge = &*hosted(&arena, name)?;
    let metadata = challenge.metadata();
    let path = format!("/challenges/{name}");
    let (offset, limit) = (visit.query.number("offset").unwrap_or(0), SESSIONS);
    let status = visit.query.get("status").and_then(Status::from_wire);
    let sessions =
        read_list(&arena, &SessionFilter { challenge: Some(name.to_owned()), status }, offset, limit).await?;
    let board = match wanted_board(&arena, Some(name), None)? {
        Some(board) => Leaderboard::read(&arena, board, visit.query.get("sort"), (PlayerKind::All, PLAYERS)).await?,
        None => None,
    };
    let strategies = shown_strategies(&arena, name);
    let main = arena.engine.main_board(name);
    let others = arena.engine.list_boards(name).await?.iter().filter(|board| main.as_ref() != Some(&board.id)).count();
    let body = html! {
        (hero(&arena, challenge, waiting_game(&arena, name, metadata.players).await?.as_ref()))
        div.two {
            section id="new" { (new_session(challenge)) }
            (rules(challenge))
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
            div.heading { h2 { "Leaderboard" } a href={ "/leaderboards/" (name) } { "Full leaderboard" } }
            @match &board {
                Some(board) if !board.is_empty() => (board.both(&format!("{}: leaderboard", metadata.name), &path, &visit.query)),
                _ => (empty("No finished games yet.", None))
            }
            @if strategies.len() > 1 {
                p.row { "Other leaderboards:" @for strategy in &strategies[1..] { a href=(path_of(name, strategy)) { (board_title(name, strategy)) } } }
            }
            @if others > 0 {
                p { "Games with earlier options, rules or prompts have separate " a href={ "/api/scoring/" (name) "/boards" } { "boards" } "." }
            }
        }
    };
    Ok(unrendered(
        Page::new(&metadata.name, NavEntry::Challenges, body)
            .with_description(&metadata.description)
            .with_style("tables.css"),
    ))
}

/// Renders the name and description of a challenge with the ways to play it. `waiting` has the visitors that wait.
fn hero(arena: &Arena, challenge: &dyn ChallengeType, waiting: Option<&Markup>) -> Markup {
    let (name, metadata) = (challenge.id(), challenge.metadata());
    html! {
        div.hero {
            div.intro {
                h1 { (metadata.name) }
                p.lead { (shown(&metadata.description)) }
                p.counts { span { (metadata.players) @if metadata.players == 1 { " player" } @else { " players" } } @for tag in metadata.tags.iter().flatten().filter(|tag| !tag.ends_with("-player")) { span { (cut(tag, 40)) } } }
                @if let Some(waiting) = waiting { (waiting) }
                div.row id="actions" {
                    @if let Some(opponents) = opponents(arena, name) { (opponents) }
                    @if let Some(form) = find_opponent(arena, name, metadata.players) { (form) }
                    (btn("#new", "Invite friends"))
                    (btn("#rules", "Rules"))
                }
            }
            div.card.tile { div.pic { (picture(name)) } }
        }
    }
}

/// Returns the rules of a built-in game for people, who play with the page's controls.
pub(super) fn in_short(name: &str) -> Option<&'static str> {
    arena_games::all().find(|playable| playable.id == name)?.kit.rules
}

fn rules(challenge: &dyn ChallengeType) -> Markup {
    let metadata = challenge.metadata();
    html! {
        section.card.pad id="rules" {
            h2 { "Rules" }
            p { (in_short(challenge.id()).unwrap_or(&metadata.description)) }
            details {
                summary { "All rules and moves" }
                div.prose.rules { (explained(&metadata.prompt)) }
                h3 { "Moves" }
                dl.methods {
                    @for method in &metadata.methods { dt { code { (method.name) } } dd { (explained(&method.description)) } }
                }
                p.small.soft { "Programs call this game " code { (challenge.id()) } "." }
            }
        }
    }
}

fn name_of_status(status: Status) -> &'static str {
    match status {
        Status::Open => "Waiting for players",
        Status::Active => "Live",
        Status::Ended => "Ended",
    }
}

/// Returns the form that starts a session with house bots on all seats but one; `None` without house bots.
pub(super) fn opponent(arena: &Arena, name: &str) -> Option<Markup> {
    against_house(arena, name, &html! { button.btn { "Play against a house bot" } })
}

/// Renders the hosted challenge types as tiles with buttons that start a game. Those of the home page are short, with the
/// main button only.
pub(super) fn tiles(arena: &Arena, is_short: bool) -> Markup {
    let engine = &arena.engine;
    let count = |challenge: &str, status| {
        engine.count_sessions(&SessionFilter { challenge: Some(challenge.to_owned()), status: Some(status) })
    };
    let (most, length) = if is_short { (SHORT_TILES, 90) } else { (usize::MAX, 180) };
    html! {
        ul.tiles.short[is_short] {
            @for (id, challenge) in engine.challenges().iter().take(most) {
                @let metadata = challenge.metadata();
                li.card.tile {
                    div.pic { (picture(id)) }
                    div.cap {
                        h3 { a href={ "/challenges/" (id) } { (metadata.name) } }
                        p.small { (cut(&metadata.description, length)) }
                        p.counts.small {
                            span { (metadata.players) @if metadata.players == 1 { " player" } @else { " players" } }
                            @let (live, open) = (count(id, Status::Active), count(id, Status::Open));
                            @if live > 0 { span { b { (live) } " live" } }
                            @if open > 0 { span { b { (open) } " waiting for players" } }
                        }
                        @if is_short { @if let Some(start) = against_house(arena, id, &html! { button.btn { "Play a house bot" } }) { (start) } }
                        @else if let Some(starts) = starts(arena, id, metadata.players) { (starts) }
                    }
                }
            }
        }
    }
}

/// Returns the buttons of a challenge's tile: a game against a house bot, and the queue.
fn starts(arena: &Arena, name: &str, players: usize) -> Option<Markup> {
    let queue = (players > 1).then(|| format!("/queue/{name}"));
    let buttons = html! {
        button.btn { "Play against a house bot" }
        @if let Some(queue) = &queue { button.btn formaction=(queue) { "Find an opponent" } }
    };
    let alone = |queue: String| html! { form.row method="post" action=(queue) { button.btn { "Find an opponent" } } };
    against_house(arena, name, &buttons).or_else(|| queue.map(alone))
}

/// Returns the form of [`opponent`] with a button for each strength.
fn opponents(arena: &Arena, name: &str) -> Option<Markup> {
    let turns = short_options(arena, name).and_then(|options| options.get("n_epochs").cloned());
    let model = arena.house.get().and_then(House::model);
    let has_strengths = arena.house.get().is_some_and(|house| house.has_strengths(name));
    let buttons = html! {
        button.btn.primary { "Play against a house bot" }
        @if has_strengths { button.btn name="strength" value="easy" { "Easy opponent" } }
        @if let Some(model) = model { button.btn name="strength" value="model" { "Play against " (shown(model)) } }
        @if let Some(turns) = turns { span.small.soft { "A short game of " (turns) " turns." } }
    };
    against_house(arena, name, &buttons)
}

/// Returns the form that starts a game against a house bot; `None` if the user is no house bot.
pub(super) fn against_user(arena: &Arena, user: &str) -> Option<Markup> {
    let (challenge, strength) = arena.house.get()?.find_bot(user)?;
    let strength = if strength == Strength::Easy { "easy" } else { "normal" };
    let button = html! { button.btn.primary name="strength" value=(strength) { "Play against this house bot" } };
    against_house(arena, &challenge, &button)
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

fn new_session(challenge: &dyn ChallengeType) -> Markup {
    let (name, metadata, choices) = (challenge.id(), challenge.metadata(), challenge.options());
    html! {
        form.card.pad method="post" action={ "/challenges/" (name) } {
            h2 { "Invite friends" }
            p { "You get one invite for each of the " (metadata.players) " seats. Send them to friends or agents, or take a seat yourself." }
            @if !choices.is_empty() {
                details {
                    summary { "Options" }
                    (options::fields(choices))
                    p.small.soft { "A game with other options is unrated." }
                }
            }
            p {
                label.check {
                    input type="checkbox" name="open" value="true";
                    span { "Open: the other seats are on the home page, for anyone" }
                }
                label.check {
                    input type="checkbox" name="unlisted" value="true";
                    span { "Unlisted: in no list, no history and no score" }
                }
            }
            button { "Create the invites" }
        }
    }
}

/// Renders a text in a box, to which a script adds a copy button.
pub(super) fn copyable(text: &str) -> Markup {
    html! { pre.copy { code { (text) } } }
}
