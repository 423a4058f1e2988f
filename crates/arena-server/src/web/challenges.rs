//! `/challenges`: the hosted challenges; `/challenges/{name}`: one challenge with the ways to play it, its rules,
//! sessions and leaderboards.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use arena_engine::Create;
use arena_model::{Board, ChallengeType, SessionId, Status, Viewer};
use arena_store::SessionFilter;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use maud::{Markup, html};
use serde_json::{Map, Value, json};

use super::board::{Leaderboard, PlayerKind};
use super::components::{btn, empty, picture, primary};
use super::form::Form;
use super::home::challenges;
use super::layout::{NavEntry, Page, badge, cut, explained, shown};
use super::leaderboards::title_of_strategy;
use super::play::{take_seat, to_seat};
use super::queue::find_opponent;
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

pub(super) async fn list(State(arena): State<Arena>, _visit: Visit) -> PageResult {
    let body = html! {
        h1 { "Choose a game" }
        p.lead { "Play against a bot, a friend or your own agent. You need no account." }
        @if arena.engine.challenges().is_empty() {
            (empty("This server hosts no games.", None))
        } @else {
            (challenges(&arena))
        }
    };
    Ok(answer(Page::new("Play", NavEntry::Challenges, body)))
}

pub(super) fn hosted(arena: &Arena, name: &str) -> PageResult<Arc<dyn ChallengeType>> {
    let challenge = arena.engine.challenges().get(name).cloned();
    Ok(challenge.ok_or_else(|| ApiError::not_found("CHALLENGE_NOT_FOUND", "Challenge not found"))?)
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
    let boards = boards(&arena, name, visit.query.get("sort")).await?;
    let main = arena.engine.main_board(name);
    let others = arena.engine.list_boards(name).await?.iter().filter(|board| main.as_ref() != Some(&board.id)).count();
    let body = html! {
        div.hero {
            div.intro {
                h1 { (metadata.name) }
                p.lead { (shown(&metadata.description)) }
                p.counts { span { (metadata.players) @if metadata.players == 1 { " player" } @else { " players" } } @for tag in metadata.tags.iter().flatten().filter(|tag| !tag.ends_with("-player")) { span { (cut(tag, 40)) } } }
                div.row id="actions" {
                    @if let Some(opponents) = opponents(&arena, name) { (opponents) }
                    @if let Some(form) = find_opponent(&arena, name, metadata.players) { (form) }
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
                h3 { a href={ "/leaderboards/" (name) "?strategy=" (strategy) } { (title_of_strategy(&arena, strategy)) } }
                (board.both(&format!("{}: {}", metadata.name, title_of_strategy(&arena, strategy)), &path, &visit.query))
                p.more { a href={ "/api/scoring/" (name) "?strategy=" (strategy) } { "Full board as JSON" } }
            }
        }
    };
    Ok(answer(Page::new(&metadata.name, NavEntry::Challenges, body).with_style("tables.css")))
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

/// Returns the form that starts a session with house bots on all seats but one; `None` without house bots.
pub(super) fn opponent(arena: &Arena, name: &str) -> Option<Markup> {
    against_house(arena, name, &html! { button.btn { "Play against a house bot" } })
}

/// Returns the buttons of a challenge's tile: a game against a house bot, and the queue.
pub(super) fn starts(arena: &Arena, name: &str, players: usize) -> Option<Markup> {
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
    let button = html! { button.btn.primary name="strength" value=(strength) { "Play against this bot" } };
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
            p {
                label.check {
                    input type="checkbox" name="unlisted" value="true";
                    span { "Unlisted: in no list, no history and no score" }
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
    let order = match form.fields.get("seat") {
        None => None,
        Some("first") => Some(JoinOrder::First),
        Some("last") => Some(JoinOrder::Last),
        Some(_) => return Err(ApiError::bad_request("INVALID_FIELD", "seat must be `first` or `last`").into()),
    };
    // In authentication mode, players sign their joins.
    let order = order.filter(|_| !arena.is_authenticated_mode());
    let user = form.fields.get("user");
    let house = match form.fields.get("against") {
        None => None,
        Some("house") => {
            let seats = challenge.resolve(&options).map_or(metadata.players, |options| challenge.seats(&options));
            let unknown = || ApiError::bad_request("INVALID_FIELD", "strength must be `easy`, `normal` or `model`");
            let strength = match form.fields.get("strength").unwrap_or("normal") {
                "model" => None,
                strength => Some(Strength::from_name(strength).ok_or_else(unknown)?),
            };
            let (house, places) = reserve_bots(&arena, name, seats, form.address)?;
            if strength.is_none() && house.model().is_none() {
                let text = "the language model isn't available; play against a house bot";
                return Err(ApiError::new(StatusCode::SERVICE_UNAVAILABLE, "HOUSE_BUSY", text).into());
            }
            Some((house, places, strength))
        }
        Some(_) => return Err(ApiError::bad_request("INVALID_FIELD", "against must be `house`").into()),
    };
    let is_unlisted = match form.fields.get("unlisted") {
        None => false,
        Some("true") => true,
        Some(_) => return Err(ApiError::bad_request("INVALID_FIELD", "unlisted must be `true`").into()),
    };
    arena.admit_session(form.address, None).await?;
    let create = Create { challenge: name.to_owned(), options, is_rated: house.is_none(), is_unlisted };
    let respond =
        arena.ledger.charging(form.address, |written| to_text(&arena_model::view(written.session, Viewer::Creator)));
    let view = arena.engine.create(create, None, respond).await?;
    let session: RedactedSession = serde_json::from_str(&view).expect("views have these fields");
    let Some((own, others)) = session.invites.split_first() else { return Ok(to_challenge(name)) };
    if order == Some(JoinOrder::First) {
        take_seat(&arena, form.address, own, user).await?;
    }
    if let Some((house, places, strength)) = house {
        match strength {
            Some(strength) => house.send(name, others, strength, places),
            None => house.send_to_model(name, others, places),
        }
        if order == Some(JoinOrder::Last) && await_players(&arena, &session.id, others.len()).await? {
            take_seat(&arena, form.address, own, user).await?;
        }
        return Ok(to_seat(own));
    }
    let base = base(&arena, &form.headers);
    if form.fields.get("seat").is_some() {
        return Ok(pass_on(&metadata.name, &base, &session, order));
    }
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
    Ok(answer(Page::new("New game", NavEntry::Challenges, body)))
}

/// The place of a person among the players who join a new session. Seats are assigned in the order of joins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum JoinOrder {
    First,
    Last,
}

/// The interval at which a new session is read until the house bots have joined, and the maximum number of reads.
const BOTS_INTERVAL: Duration = Duration::from_millis(50);
const BOTS_READS: usize = 60;

/// Waits until the session has this number of players. Returns false after three seconds without them.
async fn await_players(arena: &Arena, session: &str, players: usize) -> PageResult<bool> {
    let Ok(id) = session.parse::<SessionId>() else { return Ok(false) };
    for _ in 0..BOTS_READS {
        if arena.engine.find_session(id).await?.is_some_and(|session| session.seats.len() >= players) {
            return Ok(true);
        }
        tokio::time::sleep(BOTS_INTERVAL).await;
    }
    Ok(false)
}

fn to_challenge(name: &str) -> Response {
    (StatusCode::SEE_OTHER, [(header::LOCATION, format!("/challenges/{name}"))]).into_response()
}

/// Renders the next game with the same people: the invites to pass on, and the way to the own seat.
fn pass_on(challenge: &str, base: &str, session: &RedactedSession, order: Option<JoinOrder>) -> Response {
    let own = session.invites.first().map_or("", String::as_str);
    let others: Vec<&String> = session.invites.iter().skip(1).collect();
    let body = html! {
        div.intro {
            h1 { "The next game of " (challenge) }
            p.lead {
                @if others.len() == 1 { "Send this link to the other player." } @else { "Send one of these links to each of the other players." }
                " It is shown only once."
            }
            @if order == Some(JoinOrder::Last) {
                p.soft { "Seats are assigned in the order in which players join. Join after the others to keep this order of seats." }
            }
        }
        section.card.pad {
            @for invite in others { (copyable(&format!("{base}/play/{invite}"))) }
            p { (primary(&format!("/play/{own}"), if order == Some(JoinOrder::First) { "To your seat" } else { "Take your seat" })) }
        }
    };
    answer(Page::new("Next game", NavEntry::Challenges, body))
}

/// Starts a session with house bots on all seats but one, and returns the invite of that seat. `leave` runs after the
/// bots were reserved; the session isn't created if it returns false.
pub(super) async fn start_against_house(
    arena: &Arena,
    name: &str,
    address: Option<IpAddr>,
    leave: impl Future<Output = PageResult<bool>>,
) -> PageResult<Option<String>> {
    let challenge = hosted(arena, name)?;
    let options = short_options(arena, name).unwrap_or_default();
    let seats = challenge.resolve(&options).map_or(challenge.metadata().players, |options| challenge.seats(&options));
    let (house, places) = reserve_bots(arena, name, seats, address)?;
    if !leave.await? {
        return Ok(None);
    }
    arena.admit_session(address, None).await?;
    let create = Create { challenge: name.to_owned(), options, is_rated: false, is_unlisted: false };
    let respond =
        arena.ledger.charging(address, |written| to_text(&arena_model::view(written.session, Viewer::Creator)));
    let view = arena.engine.create(create, None, respond).await?;
    let session: RedactedSession = serde_json::from_str(&view).expect("views have these fields");
    let Some((own, others)) = session.invites.split_first() else { return Ok(None) };
    house.send(name, others, Strength::Normal, places);
    Ok(Some(own.clone()))
}

/// Reserves house bots for all seats of a session but one.
fn reserve_bots<'a>(
    arena: &'a Arena,
    name: &str,
    seats: usize,
    address: Option<IpAddr>,
) -> PageResult<(&'a House, Places)> {
    let house = arena.house.get().filter(|house| house.plays(name));
    let house =
        house.ok_or_else(|| ApiError::not_found("NO_OPPONENT", "this server has no house bot for this challenge"))?;
    let places = house.reserve(seats.saturating_sub(1), arena.ledger.limited(address))?;
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
