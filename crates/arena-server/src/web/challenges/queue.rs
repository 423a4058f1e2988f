//! `/queue/{name}/{ticket}`: the page of a visitor that waits for opponents, and the forms that join and leave a queue.
//!
//! A script waits for the match and opens the seat. Without JavaScript the page reloads at an interval.

use std::sync::Arc;
use std::time::Duration;

use arena_engine::{Leaving, QueueState, Ticket};
use arena_model::{ChallengeMetadata, ChallengeType, InviteCode, Session, Status};
use arena_store::SessionFilter;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use maud::{Markup, html};

use super::create::start_against_house;
use super::hosted;
use crate::arena::Arena;
use crate::error::ApiError;
use crate::routes::{enqueue, poll_ticket};
use crate::web::components::{btn, picture, primary};
use crate::web::form::Form;
use crate::web::layout::{NavEntry, Page};
use crate::web::play::to_seat;
use crate::web::{PageResult, Visit, unrendered};

/// Time after which house bots may step in, in seconds, for visitors that agree.
const HOUSE_AFTER_S: u64 = 30;

/// Interval at which browsers without JavaScript reload the page, in seconds.
const RELOAD_S: u32 = 5;

/// Returns the form that puts the visitor into a challenge's queue; `None` if the challenge has a single player.
pub(crate) fn find_opponent(arena: &Arena, name: &str, players: usize) -> Option<Markup> {
    let has_house = has_house(arena, name);
    let form = html! {
        form.row method="post" action={ "/queue/" (name) } {
            button.btn.primary[!has_house] { @if players > 2 { "Find opponents" } @else { "Find an opponent" } }
            @if has_house {
                label.check {
                    input type="checkbox" name="house" value="yes" checked;
                    span { "A house bot may step in after " (HOUSE_AFTER_S) " seconds" }
                }
            }
        }
    };
    (players > 1).then_some(form)
}

/// Renders the games in which visitors wait for players, each with a button that takes a seat.
pub(crate) async fn waiting_games(arena: &Arena) -> PageResult<Vec<Markup>> {
    let waiting = arena.engine.count_waiting().await?;
    let hosted = arena.engine.challenges();
    let queues = waiting.iter().filter_map(|(id, players)| {
        let (id, challenge) = hosted.get_key_value(id)?;
        Some((
            id,
            challenge,
            html! { p.small { (waiting_text(*players, challenge.metadata().players)) } (join_form(id)) },
        ))
    });
    let open = open_seats(arena, None).await?;
    let open = open.iter().filter_map(|(id, invite)| {
        let (id, challenge) = hosted.get_key_value(id)?;
        Some((id, challenge, html! { p.small { "A seat is open." } (primary(&format!("/play/{invite}"), "Join")) }))
    });
    let tile = |(id, challenge, join): (&String, &Arc<dyn ChallengeType>, Markup)| {
        html! {
            article.card.tile {
                div.pic { (picture(id)) }
                div.cap { h3 { a href={ "/challenges/" (id) } { (challenge.metadata().name) } } (join) }
            }
        }
    };
    Ok(queues.chain(open).map(tile).collect())
}

/// Renders the visitors that wait for a challenge's players, with a button that takes a seat; `None` if none waits.
pub(crate) async fn waiting_game(arena: &Arena, name: &str, seats: usize) -> PageResult<Option<Markup>> {
    let callout = |text: &str, join: &Markup| html! { div.row.callout id="waiting" { span { (text) } (join) } };
    if let Some(players) = arena.engine.count_waiting().await?.get(name) {
        return Ok(Some(callout(&waiting_text(*players, seats), &join_form(name))));
    }
    let open = open_seats(arena, Some(name)).await?;
    Ok(open
        .first()
        .map(|(_, invite)| callout("A seat of a game is open.", &primary(&format!("/play/{invite}"), "Join"))))
}

/// Maximum number of sessions among which open seats are searched.
const SEARCHED: usize = 50;

/// Maximum number of open seats on a page.
const OPEN_SEATS: usize = 4;

/// Returns the newest sessions with a seat that is announced and free: the challenge and the invite of each.
async fn open_seats(arena: &Arena, challenge: Option<&str>) -> PageResult<Vec<(String, InviteCode)>> {
    let filter = SessionFilter { challenge: challenge.map(str::to_owned), status: Some(Status::Open) };
    // The count is in memory.
    if arena.engine.count_sessions(&filter) == 0 {
        return Ok(Vec::new());
    }
    let sessions = arena.engine.list_sessions(&filter, 0, SEARCHED).await?.items;
    let seat = |session: &Session| {
        let invite = session.announced.iter().find(|invite| session.seat_of(**invite).is_none())?;
        Some((session.facts.challenge.clone(), *invite))
    };
    Ok(sessions.iter().filter_map(seat).take(OPEN_SEATS).collect())
}

fn waiting_text(players: u64, seats: usize) -> String {
    match (players, seats) {
        (1, ..=2) => "A player is waiting for an opponent.".to_owned(),
        (1, _) => format!("A player is waiting. The game needs {seats}."),
        _ => format!("{players} players are waiting. The game needs {seats}."),
    }
}

fn join_form(name: &str) -> Markup {
    html! { form method="post" action={ "/queue/" (name) } { button.btn.primary { "Join" } } }
}

fn has_house(arena: &Arena, name: &str) -> bool {
    arena.house.get().is_some_and(|house| house.plays(name))
}

/// `POST /queue/{name}`: puts the visitor into the queue, and redirects to the page that waits.
pub(crate) async fn join(State(arena): State<Arena>, form: Form) -> PageResult {
    let name = form.param("name");
    hosted(&arena, name)?;
    let house_after = match form.fields.get("house") {
        None => None,
        Some("yes") => Some(Duration::from_secs(HOUSE_AFTER_S)),
        Some(_) => return Err(ApiError::bad_request("INVALID_FIELD", "house must be `yes`").into()),
    };
    let ticket = enqueue(&arena, name, form.address, house_after, None).await?;
    Ok(to_place(name, &ticket))
}

/// `GET /queue/{name}/{ticket}`: the visitor's place in the queue. Redirects to the seat when the ticket is matched.
pub(crate) async fn show(State(arena): State<Arena>, visit: Visit) -> PageResult {
    let name = visit.param("name");
    let challenge = hosted(&arena, name)?;
    let metadata = challenge.metadata();
    let Ok(ticket) = visit.param("ticket").parse::<Ticket>() else {
        return Ok(show_end(&arena, name, metadata, false));
    };
    match poll_ticket(&arena, name, &ticket, visit.address).await? {
        Some(QueueState::Matched { invite, .. }) if arena.is_authenticated_mode() => {
            Ok(to_seat(&format!("{invite}#join")))
        }
        Some(QueueState::Matched { invite, .. }) => Ok(show_matched(invite)),
        Some(QueueState::Waiting { house_in }) => Ok(show_waiting(&arena, name, metadata, &ticket, house_in.is_some())),
        None => {
            let has_left = arena.engine.has_left_queue(name, &ticket).await?;
            Ok(show_end(&arena, name, metadata, has_left))
        }
    }
}

/// Returns the page of a ticket that waits. `accepts_house` is true if house bots may step in.
fn show_waiting(
    arena: &Arena,
    name: &str,
    metadata: &ChallengeMetadata,
    ticket: &Ticket,
    accepts_house: bool,
) -> Response {
    let players = metadata.players;
    let heading = if players > 2 { "Waiting for opponents" } else { "Waiting for an opponent" };
    let body = html! {
        div.hero {
            div id="queue" {
                h1 { (heading) }
                p.lead {
                    "You are in the queue for " a href={ "/challenges/" (name) } { (metadata.name) } ". "
                    @if players > 2 { "The game begins when " (players) " players are here." }
                    @else { "The game begins when another player comes." }
                }
                @if accepts_house && has_house(arena, name) {
                    p {
                        "After " (HOUSE_AFTER_S) " seconds, you play against a house bot as soon as one is free. Such a game "
                        "is unrated."
                    }
                }
                @if !arena.is_authenticated_mode() {
                    p.scripted {
                        label for="user" { "Your name on the leaderboard (optional)" }
                        input id="user" maxlength="255" autocomplete="nickname";
                    }
                }
                p.soft id="connection" role="status" {}
                form.row id="actions" method="post" action={ "/queue/" (name) "/" (ticket) } {
                    @if !accepts_house && has_house(arena, name) {
                        button.btn.primary name="do" value="house" { "Play against a house bot instead" }
                    }
                    button.btn name="do" value="leave" { "Leave the queue" }
                }
                p.small.soft { "Keep this page open. The server keeps your place for a minute without it." }
                noscript { p.small.soft { "This page reloads every " (RELOAD_S) " seconds." } }
            }
            div.card.tile { div.pic { (picture(name)) } }
        }
    };
    unrendered(
        Page::new(heading, NavEntry::Challenges, body).with_script("queue.js").with_reload(RELOAD_S).with_secrets(),
    )
}

/// Returns the page of a matched ticket. Its script takes the seat at once under the name that the visitor has typed.
fn show_matched(invite: InviteCode) -> Response {
    let body = html! {
        div id="queue" data-invite=(invite) {
            h1 { "Your opponent is here" }
            input id="user" type="hidden";
            p.soft id="connection" role="status" {}
            p { (primary(&format!("/play/{invite}"), "To your seat")) }
        }
    };
    unrendered(Page::new("Your opponent is here", NavEntry::Challenges, body).with_script("queue.js").with_secrets())
}

/// Returns the page of a ticket that doesn't wait: its caller has left, or the server doesn't know the ticket.
fn show_end(arena: &Arena, name: &str, metadata: &ChallengeMetadata, has_left: bool) -> Response {
    let heading = if has_left { "You left the queue" } else { "You are not in this queue" };
    let body = html! {
        div.hero {
            div id="queue" {
                h1 { (heading) }
                p.lead {
                    @if has_left { "The server no longer looks for opponents for you." }
                    @else {
                        "The server keeps a place for a minute after its page was closed. This place was dropped, or its "
                        "address is mistyped."
                    }
                }
                div.row id="actions" {
                    @if let Some(form) = find_opponent(arena, name, metadata.players) { (form) }
                    (btn(&format!("/challenges/{name}"), &format!("Back to {}", metadata.name)))
                }
            }
            div.card.tile { div.pic { (picture(name)) } }
        }
    };
    let mut response = unrendered(Page::new(heading, NavEntry::Challenges, body));
    if !has_left {
        *response.status_mut() = StatusCode::NOT_FOUND;
    }
    response
}

/// `POST /queue/{name}/{ticket}`: leaves the queue, or plays against house bots instead.
pub(crate) async fn act(State(arena): State<Arena>, form: Form) -> PageResult {
    let name = form.param("name");
    hosted(&arena, name)?;
    let wants_house = match form.fields.get("do") {
        Some("leave") => false,
        Some("house") => true,
        _ => return Err(ApiError::bad_request("INVALID_FIELD", "do must be one of: leave, house").into()),
    };
    let unknown = || ApiError::not_found("TICKET_NOT_FOUND", "this place in the queue doesn't exist");
    let ticket = form.param("ticket").parse::<Ticket>().map_err(|_| unknown())?;
    let leave = async { Ok(arena.engine.leave_queue(name, &ticket).await? == Leaving::Left) };
    if wants_house {
        if let Some(invite) = start_against_house(&arena, name, form.address, None, leave).await? {
            return Ok(to_seat(&invite));
        }
    } else {
        leave.await?;
    }
    // The page of the ticket shows the result, also if the ticket was matched or dropped in the meantime.
    Ok(to_place(name, &ticket))
}

/// Redirects to the page of a ticket, so that a reload doesn't submit the form again.
fn to_place(name: &str, ticket: &Ticket) -> Response {
    (StatusCode::SEE_OTHER, [(header::LOCATION, format!("/queue/{name}/{ticket}"))]).into_response()
}
