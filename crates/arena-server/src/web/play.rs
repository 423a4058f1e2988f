//! `/play/{invite}`: the page on which a person joins a session, reads private messages, acts and chats.
//!
//! In standalone mode the page works with forms alone, and scripts add convenience. In authentication mode a script
//! signs the join with a key that stays in the browser, and reads private data with a session key. The server renders
//! public data only.

use arena_engine::{Act, Chat, Join};
use arena_model::{ChallengeMetadata, Channel, InviteCode, Method, Party, Session, Status, UserId, Viewer};
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use maud::{Markup, html};
use serde::Deserialize;

use super::form::Form;
use super::layout::{NavEntry, Page, explained};
use super::seen::RedactedSession;
use super::sessions::{Log, board, deal, heading, party_name, result};
use super::{PageResult, Visit, answer};
use crate::arena::Arena;
use crate::error::ApiError;
use crate::fields::Content;
use crate::identity::unauthenticated;

/// Parses an invite and finds its session.
async fn invited(arena: &Arena, text: &str) -> PageResult<(InviteCode, std::sync::Arc<Session>)> {
    let unknown = || ApiError::not_found("INVITE_NOT_FOUND", "invite not found");
    let invite: InviteCode = text.parse().map_err(|_| unknown())?;
    Ok((invite, arena.engine.find_invited(invite).await?.ok_or_else(unknown)?))
}

/// `GET /play/{invite}`.
pub(super) async fn show(State(arena): State<Arena>, visit: Visit) -> PageResult {
    let (invite, session) = invited(&arena, visit.param("invite")).await?;
    let keys = arena.is_authenticated_mode();
    let is_seated = session.seat_of(invite).is_some();
    // In standalone mode the invite identifies the player, like `from` in the HTTP API.
    let viewer = if is_seated && !keys { Viewer::Player(invite) } else { Viewer::Nobody };
    let seen = RedactedSession::by(&session, Viewer::Holder(invite));
    let profiles = arena.engine.profiles([&*session]).await?;
    let id = session.facts.id;
    let challenges = arena.engine.challenges();
    let challenge = challenges.get(&session.facts.challenge);
    let metadata = challenge.map(|challenge| challenge.metadata_with(&session.facts.options));
    let metadata = metadata.as_deref();
    let path = format!("/play/{invite}");
    let log = async |channel, name| Log::read(&arena, channel, viewer, visit.query.number(name)).await;
    let (operator, chat) = (log(Channel::Operator(id), "operator").await?, log(Channel::Chat(id), "chat").await?);
    let mode = if keys { "authentication" } else { "standalone" };
    let body = html! {
        (heading(&seen))
        div id="seat" data-invite=(invite) data-mode=(mode) data-seated=(is_seated) {
            @if is_seated {
                p { "You are " (party_name(&seen, &invite.to_string())) "." }
            } @else if seen.status() == Status::Open {
                (join(&path, keys))
            } @else {
                p.empty { "This seat was not taken." }
            }
        }
        p.error id="refusal" role="alert" hidden {}
        (result(&seen, &profiles, operator.ending()))
        div.stage {
            (board(&seen, operator.deadline()))
            section id="acts" {
                @if let Some(metadata) = metadata.filter(|_| is_seated && seen.status() == Status::Active) {
                    h2 { "Your actions" }
                    @if let Some(hint) = hint(&seen.challenge_type) { p { (hint) } }
                    @if seen.challenge_type == "chess" { (promotion()) }
                    @if seen.challenge_type == "snake" { (steps(&path)) }
                    (acts(&path, metadata, seen.challenge_type == "chess" || seen.challenge_type == "snake"))
                }
            }
        }
        div.channels {
            section aria-labelledby="operator-title" {
                h2 id="operator-title" { "Operator" }
                (operator.list("operator", &seen, &visit, &path))
            }
            section aria-labelledby="chat-title" {
                h2 id="chat-title" { "Chat" }
                (chat.list("chat", &seen, &visit, &path))
                @if is_seated { (talk(&path, &seen, invite)) }
            }
        }
        @if let Some(metadata) = metadata {
            details open[!is_seated] { summary { "Rules" } div.prose.rules { (explained(&metadata.prompt)) } }
        }
        (deal(&seen))
    };
    let name = metadata.map_or("a game", |metadata| &metadata.name);
    Ok(answer(&Page::new(&format!("Play {name}"), NavEntry::Elsewhere, body).with_script("play.js")))
}

/// Renders the form that takes the seat.
fn join(path: &str, keys: bool) -> Markup {
    html! {
        form.card method="post" action=(path) data-do="join" {
            input type="hidden" name="do" value="join";
            h2 { "Join the game" }
            @if keys {
                p { "This server authenticates players. Your browser creates a signing key and keeps it." }
                noscript { p.error { "Signing needs JavaScript." } }
            } @else {
                label for="user" { "Your name on the leaderboard (optional)" }
                input id="user" name="user" maxlength="255" autocomplete="nickname";
            }
            button { "Take the seat" }
        }
    }
}

/// Returns the instructions for playing on the board; `None` for challenges that aren't played on the board.
fn hint(challenge: &str) -> Option<&'static str> {
    match challenge {
        "chess" => Some("Select one of your pieces on the board, then its target square."),
        "snake" => Some(
            "Steer your snake with the arrow keys or these buttons. All snakes move at once, when every player has chosen.",
        ),
        _ => None,
    }
}

/// Renders the selector of the promotion piece, for pawns moved on the board.
fn promotion() -> Markup {
    html! {
        p.choice {
            label for="promotion" { "Promote pawns to" }
            select id="promotion" { @for (letter, piece) in [("q", "queen"), ("r", "rook"), ("b", "bishop"), ("n", "knight")] { option value=(letter) { (piece) } } }
        }
    }
}

/// Renders a button for each direction of a snake.
fn steps(path: &str) -> Markup {
    html! {
        form.steps method="post" action=(path) data-do="act" data-method="move" {
            input type="hidden" name="do" value="act";
            input type="hidden" name="method" value="move";
            @for (step, name, sign) in [("LEFT", "Left", "←"), ("UP", "Up", "↑"), ("DOWN", "Down", "↓"), ("RIGHT", "Right", "→")] {
                button name="content" value=(step) aria-label=(name) { (sign) }
                " "
            }
        }
    }
}

/// Renders a form for each method. The form for resignation is collapsed, so that a player doesn't resign by accident.
/// For games that are played on the board, the form for moves as text is collapsed too.
fn acts(path: &str, metadata: &ChallengeMetadata, is_on_board: bool) -> Markup {
    let is_in_words = |method: &Method| is_on_board && ["move", "actions"].contains(&method.name.as_str());
    let is_final = |method: &Method| method.name == "resign";
    let usual = |method: &&Method| !is_in_words(method) && !is_final(method);
    let apart = |summary: &str, methods: Vec<&Method>| {
        html! {
            @if !methods.is_empty() {
                details { summary { (summary) } div.cards { @for method in methods { (act_form(path, method)) } } }
            }
        }
    };
    html! {
        div.cards { @for method in metadata.methods.iter().filter(usual) { (act_form(path, method)) } }
        (apart("Enter a move as text", metadata.methods.iter().filter(|method| is_in_words(method)).collect()))
        (apart("Resign", metadata.methods.iter().filter(|method| is_final(method)).collect()))
    }
}

fn act_form(path: &str, method: &Method) -> Markup {
    let id = format!("act-{}", method.name);
    html! {
        form.card method="post" action=(path) data-do="act" data-method=(method.name) {
            input type="hidden" name="do" value="act";
            input type="hidden" name="method" value=(method.name);
            label for=(id) { b { (method.name) } " – " (explained(&method.description)) }
            textarea id=(id) name="content" rows="1" {}
            button { (method.name) }
        }
    }
}

/// Renders the chat form.
fn talk(path: &str, session: &RedactedSession, own: InviteCode) -> Markup {
    let own = own.to_string();
    html! {
        form method="post" action=(path) data-do="chat" {
            input type="hidden" name="do" value="chat";
            label for="chat-content" { "Message" }
            textarea id="chat-content" name="content" rows="2" required {}
            label for="chat-to" { "To" }
            select id="chat-to" name="to" {
                option value="" { "everyone" }
                @for (seat, player) in session.state.players.iter().enumerate().filter(|(_, player)| **player != own) {
                    option value=(player) { "Player " (seat + 1) " only" }
                }
            }
            button { "Send" }
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

/// `POST /play/{invite}`: joins, acts or chats, then redirects to the page.
pub(super) async fn act(State(arena): State<Arena>, form: Form) -> PageResult {
    let (invite, session) = invited(&arena, form.param("invite")).await?;
    if arena.is_authenticated_mode() {
        return Err(unauthenticated().into());
    }
    let Move { wanted, user, method, to, content } = form.read()?;
    let (session, from) = (session.facts.id, Party::Player(invite));
    let content = || content.map(|Content(content)| content).ok_or_else(|| ApiError::missing("content"));
    if wanted != "join" {
        arena.rates.admit_writer(form.address, &from)?;
    }
    let respond = Box::new(|_: &arena_engine::Written<'_>| String::new());
    match wanted.as_str() {
        "join" => {
            let user = user.as_deref().map(str::trim).filter(|user| !user.is_empty());
            let user = user.map(|user| user.parse::<UserId>().map_err(|_| invalid_name(user))).transpose()?;
            arena.engine.join(Join { invite, user }, None, respond).await?
        }
        "act" => {
            let method = Some(method.ok_or_else(|| ApiError::missing("method"))?);
            let act = Act { session, from, method, content: content()? };
            arena.engine.act(act, None, respond).await?
        }
        "chat" => {
            let to = to.as_deref().filter(|to| !to.is_empty()).map(Party::from_wire);
            arena.engine.chat(Chat { session, from, to, content: content()? }, None, respond).await?
        }
        _ => return Err(ApiError::bad_request("INVALID_FIELD", "do must be one of: join, act, chat").into()),
    };
    Ok(to_seat(&invite.to_string()))
}

/// Returns the error for a name that is not a user id.
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
