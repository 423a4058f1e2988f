//! `/play/{invite}`: the page on which a person joins a session, reads private messages, acts and chats.
//!
//! In standalone mode the page works with forms alone, and scripts add convenience. In authentication mode a script
//! signs the join with a key that stays in the browser, and reads private data with a session key. The server renders
//! public data only.

mod ended;
mod forms;

use std::net::IpAddr;
use std::sync::Arc;

use arena_engine::{Act, Chat, Join};
use arena_model::{ChallengeMetadata, InviteCode, Party, Session, Status, UserId, Viewer};
use arena_report::utc;
use arena_web::{seat_class, seat_mark};
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use maud::{Markup, html};
use serde::Deserialize;

use super::challenges::in_short;
use super::components::{empty, primary};
use super::form::Form;
use super::layout::{NavEntry, Page, explained, player_name};
use super::session::redacted::RedactedSession;
use super::session::summary::SessionSummary;
use super::session::timeline::Timeline;
use super::session::{deal, deals, ending, has_controls, seats_taken, status};
use super::{PageResult, Visit, unrendered};
use crate::answer::to_text;
use crate::arena::Arena;
use crate::auth::unauthenticated;
use crate::error::ApiError;
use crate::request::Content;
use crate::request::names::check_visible;
use forms::{SeatForms, acts, declared_content, join, talk};

/// Parses an invite and finds its session. Returns `None` if no session has the invite.
async fn invited(arena: &Arena, text: &str) -> PageResult<Option<(InviteCode, Arc<Session>)>> {
    let Ok(invite) = text.parse::<InviteCode>() else { return Ok(None) };
    Ok(arena.engine.find_invited(invite).await?.map(|session| (invite, session)))
}

/// Renders the page of an invite that can't be used: a sentence and, as `(address, text)`, the next step.
fn unusable(status: StatusCode, title: &str, sentence: &str, (href, text): (&str, &str)) -> Response {
    let body = html! { section.empty { h1 { (title) } p { (sentence) } (primary(href, text)) } };
    let mut response = unrendered(Page::new(title, NavEntry::Elsewhere, body));
    *response.status_mut() = status;
    response
}

fn unknown_invite() -> Response {
    let sentence = "No game has this invite. The link may be incomplete, or the game was removed. Ask for a new \
        invite, or start a game of your own.";
    unusable(StatusCode::NOT_FOUND, "This invite is not valid", sentence, ("/challenges", "Choose a game"))
}

/// `GET /play/{invite}`.
pub(super) async fn show(State(arena): State<Arena>, visit: Visit) -> PageResult {
    let Some((invite, stored)) = invited(&arena, visit.param("invite")).await? else { return Ok(unknown_invite()) };
    let keys = arena.is_authenticated_mode();
    let is_seated = stored.seat_of(invite).is_some();
    // In standalone mode the invite identifies the player, like `from` in the HTTP API.
    let viewer = if is_seated && !keys { Viewer::Player(invite) } else { Viewer::Nobody };
    let session = RedactedSession::by(&stored, Viewer::Holder(invite));
    let profiles = arena.engine.profiles([&*stored]).await?;
    let challenges = arena.engine.challenges();
    let challenge = challenges.get(&stored.facts.challenge);
    let metadata = challenge.map(|challenge| challenge.metadata_with(&stored.facts.options));
    let metadata = metadata.as_deref();
    let declared = SeatForms {
        own: session.seat_of(&invite.to_string()),
        players: session.state.players.len(),
        forms: challenge.map(|challenge| challenge.forms()).unwrap_or_default(),
    };
    let path = format!("/play/{invite}");
    let summary = SessionSummary::of(&arena, &session, &profiles);
    let timeline = Timeline::read(&arena, (&session, &summary), viewer, &visit).await?;
    let mode = if keys { "authentication" } else { "standalone" };
    let name = metadata.map_or("a game", |metadata| &metadata.name);
    let has_controls = has_controls(&session.challenge_type);
    let own = declared.own;
    let body = html! {
        div.bar {
            (title(&session, &summary, own, name))
            (turn(&session, is_seated, timeline.deadline()))
        }
        p.soft.small role="status" id="connection" {}
        div id="seat" data-invite=(invite) data-mode=(mode) data-seated=(is_seated) {
            (seat(&session, own, &path, keys))
        }
        p.error id="refusal" role="alert" hidden {}
        div id="result" {
            @match own {
                Some(seat) if session.status() == Status::Ended => (ended::panel(&arena, &session, (&summary, &timeline), seat).await?),
                Some(_) => {},
                None if session.status() == Status::Ended => {
                    @if let Some(sentence) = &summary.sentence { p.lead { (sentence) } }
                    (ending(&session, &summary, &profiles))
                }
                None => {},
            }
        }
        div.two.playing-seat data-loading[is_seated && has_controls && session.status() == Status::Active] {
            div.card.pad {
                section.live id="board" hidden aria-label="Board" {}
                section.controls id="controls" hidden aria-label="Controls" {}
                section.row.acts id="acts" {
                    @if let Some(metadata) = metadata.filter(|_| is_seated && session.status() == Status::Active) {
                        @if has_controls { noscript { p.callout { "The controls need JavaScript. You can also enter a move as text." } } }
                        @else { h2 { "Your actions" } }
                        (acts(&path, metadata, &declared, has_controls))
                    }
                    @if let Some(seat) = own.filter(|_| session.status() == Status::Ended) {
                        (ended::reveal(&arena, &session, &summary, &profiles, seat).await?)
                    }
                }
                @if let Some(metadata) = metadata { (rules(&session.challenge_type, metadata, !is_seated)) }
            }
            div.card.pad {
                (timeline.transcript((&session, &summary), Some(&invite.to_string()), &visit, &path))
                @if is_seated { (talk(&path, &session, invite, arena.settings.sessions.reveal_chat)) }
            }
        }
        (deals::compare(&arena, &session, &summary).await?)
        (deal(&arena, &session))
        p { a href={ "/sessions/" (session.id) } { "Public page of this game" } }
    };
    let page = Page::new(&format!("Play {name}"), NavEntry::Elsewhere, body)
        .with_script("play.js")
        .with_script("transcript.js")
        .with_script("record.js");
    let page = page.with_style("session.css").with_style("play.css").with_secrets();
    Ok(unrendered(page))
}

/// Renders the form that takes the seat, or the reason why it can't be taken. A taken seat needs nothing.
fn seat(session: &RedactedSession, own: Option<usize>, path: &str, keys: bool) -> Markup {
    let challenge_path = format!("/challenges/{}", session.challenge_type);
    html! {
        @if own.is_none() && session.status() == Status::Open {
            (join(path, keys))
        } @else if own.is_none() {
            (empty("The game ended before this seat was taken.", Some((challenge_path.as_str(), "Start a new game"))))
        }
    }
}

/// Renders the title with the players. Data attributes pass the session's data to the scripts, as on the session's own
/// page.
fn title(session: &RedactedSession, summary: &SessionSummary, own: Option<usize>, name: &str) -> Markup {
    let state = &session.state;
    let seats = session.invites.len();
    html! {
        div.intro id="session" data-session=(session.id) data-challenge=(session.challenge_type) data-status=(session.status().as_str())
            data-players=(state.players.join(" ")) data-names=(to_text(&summary.names)) data-options=(session.options) data-seats=(seats) {
            h1 { a href={ "/challenges/" (session.challenge_type) } { (name) } }
            @if own.is_some() {
                ul.seats {
                    @for (seat, name) in summary.names.iter().enumerate() {
                        li.seat.{ (seat_class(seat)) } { (seat_mark(seat)) b { @if own == Some(seat) { "You" } @else { (player_name(name, 24)) } } }
                    }
                }
            } @else {
                p.small { (status(session)) span.soft { " · " (seats_taken(session)) } }
            }
        }
    }
}

/// Renders the banner with the seat's turn and the clock. The script updates the banner.
fn turn(session: &RedactedSession, is_seated: bool, deadline: Option<i64>) -> Markup {
    let deadline = deadline.filter(|_| session.status() == Status::Active);
    let missing = session.invites.len() - session.state.players.len();
    let text = match (session.status(), missing) {
        (Status::Open, 1) => "Waiting for one more player to join",
        (Status::Open, _) => "Waiting for the other players to join",
        _ => "The game is on",
    };
    html! {
        div.turn.wait id="turn" hidden[!is_seated || session.status() == Status::Ended] {
            p role="status" { b id="turn-title" { (text) } " " span id="turn-text" {} }
            time id="clock" hidden[deadline.is_none()] data-deadline=[deadline] data-short {
                @if let Some(deadline) = deadline { "due at " (utc(deadline)[11..].trim_end_matches('Z')) " UTC" }
            }
            a.small.to-chat href="#transcript" { "Chat" }
        }
    }
}

/// Renders the rules: in short for people, and folded the text that agents get.
fn rules(challenge: &str, metadata: &ChallengeMetadata, is_open: bool) -> Markup {
    let in_short = in_short(challenge);
    html! {
        section.rule aria-label="Rules" {
            @if is_open { h2 { "Rules" } }
            p.soft.small { (in_short.unwrap_or(&metadata.description)) }
            details open[is_open && in_short.is_none()] {
                summary { @if in_short.is_some() { "Rules for agents" } @else { "All rules" } }
                div.prose.rules { (explained(&metadata.prompt)) }
            }
        }
    }
}

/// The fields of the forms on the play page.
#[derive(Deserialize)]
struct Move {
    #[serde(rename = "do")]
    wanted: String,
    user: Option<String>,
    method: Option<String>,
    to: Option<String>,
    content: Option<Content>,
}

/// `POST /play/{invite}`: joins, acts, chats or plays again, then redirects to the page.
pub(super) async fn act(State(arena): State<Arena>, form: Form) -> PageResult {
    let Some((invite, session)) = invited(&arena, form.param("invite")).await? else { return Ok(unknown_invite()) };
    if arena.is_authenticated_mode() {
        return Err(unauthenticated().into());
    }
    let Move { wanted, user, method, to, content } = form.read()?;
    if wanted == "rematch" {
        return ended::play_again(&arena, &session, invite, form.address).await;
    }
    if wanted == "join" && session.seat_of(invite).is_some() {
        let sentence = "A player has joined with this invite. If it was you, go on playing.";
        let next = format!("/play/{invite}");
        return Ok(unusable(StatusCode::BAD_REQUEST, "This seat is taken", sentence, (&next, "Open the seat")));
    }
    let challenge = session.facts.challenge.clone();
    let (session, from) = (session.facts.id, Party::Player(invite));
    let content = content.map(|Content(content)| content);
    if wanted != "join" {
        arena.admit_writer(form.address, &from)?;
    }
    let respond = arena.ledger.charging(form.address, |_| String::new());
    match wanted.as_str() {
        "join" => {
            take_seat(&arena, form.address, &invite.to_string(), user.as_deref()).await?;
            String::new()
        }
        "act" => {
            let method = method.ok_or_else(|| ApiError::missing("method"))?;
            let content = match content {
                Some(content) => content,
                None => declared_content(&arena, &challenge, &method, &form)?,
            };
            let act = Act { session, from, method: Some(method), content };
            arena.engine.act(act, None, respond).await?
        }
        "chat" => {
            let to = to.as_deref().filter(|to| !to.is_empty()).map(Party::from_wire);
            let content = content.ok_or_else(|| ApiError::missing("content"))?;
            arena.engine.chat(Chat { session, from, to, content }, None, respond).await?
        }
        _ => return Err(ApiError::bad_request("INVALID_FIELD", "do must be one of: join, act, chat, rematch").into()),
    };
    Ok(to_seat(&invite.to_string()))
}

/// Takes the seat of an invite. An empty name counts as none.
pub(super) async fn take_seat(
    arena: &Arena,
    address: Option<IpAddr>,
    invite: &str,
    name: Option<&str>,
) -> PageResult<()> {
    let invite: InviteCode = invite.parse().map_err(|_| ApiError::not_found("INVITE_NOT_FOUND", "invite not found"))?;
    let name = name.map(str::trim).filter(|name| !name.is_empty());
    let user = name.map(|name| name.parse::<UserId>().map_err(|_| invalid_name(name))).transpose()?;
    user.iter().try_for_each(|user| check_visible("the name", user.as_str()))?;
    arena.admit_play(address)?;
    let respond = arena.ledger.charging(address, |_| String::new());
    arena.engine.join(Join { invite, user }, None, respond).await?;
    Ok(())
}

fn invalid_name(name: &str) -> ApiError {
    let most = UserId::MAX_BYTES;
    let fault = match name.len() > most {
        true => format!("the name has {} bytes", name.len()),
        false => "the name contains a control character".to_owned(),
    };
    let text = format!("{fault}; choose a name of at most {most} bytes without control characters");
    ApiError::bad_request("INVALID_FIELD", text)
}

/// Redirects to the seat's page, so that a reload doesn't submit the form again.
pub(super) fn to_seat(invite: &str) -> Response {
    (StatusCode::SEE_OTHER, [(header::LOCATION, format!("/play/{invite}"))]).into_response()
}
