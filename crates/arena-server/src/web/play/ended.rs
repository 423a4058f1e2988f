//! The end of a game on a seat's page: the result in the second person, the next game, and what the players knew.

use std::collections::BTreeMap;
use std::net::IpAddr;

use arena_engine::{Create, Once};
use arena_model::{ContentHash, InviteCode, Session, SessionId, Status, UserId, UserProfile, Viewer};
use arena_web::seat_class;
use axum::response::Response;
use maud::{Markup, html};

use super::{take_seat, to_seat};
use crate::answer::to_text;
use crate::arena::Arena;
use crate::error::ApiError;
use crate::web::PageResult;
use crate::web::challenges::opponent;
use crate::web::components::btn;
use crate::web::session::redacted::RedactedSession;
use crate::web::session::summary::SessionSummary;
use crate::web::session::timeline::Timeline;
use crate::web::session::{changed_options, deals, ending, has_drawn_board, knowledge};

/// Renders the result of an ended game for the player at a seat, with the buttons of the next game.
pub(super) async fn panel(
    arena: &Arena,
    session: &RedactedSession,
    (summary, timeline): (&SessionSummary, &Timeline),
    seat: usize,
) -> PageResult<Markup> {
    let headline = headline(session, seat);
    let sentence = summary.tell_player(arena, session, seat).unwrap_or_default();
    let sentence = match timeline.departure() {
        Some(departure) => sentence.replace("left the game", departure),
        None => sentence,
    };
    let next = next_games(arena, session, &summary.names, seat).await?;
    Ok(html! {
        section.card.verdict.{ (seat_class(seat)) } aria-label="Result" {
            div {
                @if let Some(headline) = headline { h2 { (headline) } p.soft { (sentence) } } @else { h2 { (sentence) } }
            }
            (next)
        }
    })
}

/// Renders the picture of an ended challenge, the players' secrets and the scores. A game's board stays on the page.
pub(super) async fn reveal(
    arena: &Arena,
    session: &RedactedSession,
    summary: &SessionSummary,
    profiles: &BTreeMap<UserId, UserProfile>,
) -> PageResult<Markup> {
    if has_drawn_board(session) {
        return Ok(html! {});
    }
    let picture = summary.picture(arena, session).await?;
    Ok(html! {
        div.reveal { div.pic { (picture) } (knowledge(arena, session, summary)) (ending(session, summary, profiles)) }
    })
}

/// Returns the result of a game without secrets in a few words.
fn headline(session: &RedactedSession, seat: usize) -> Option<&'static str> {
    let scores = &session.state.scores;
    let own = scores.get(seat).filter(|_| has_drawn_board(session) && !session.state.abandoned)?.utility;
    let others = scores.iter().enumerate().filter(|(other, _)| *other != seat).map(|(_, score)| score.utility);
    let best = others.fold(f64::NEG_INFINITY, f64::max);
    Some(match own.total_cmp(&best) {
        _ if scores.len() < 2 => "The game is over",
        std::cmp::Ordering::Greater => "You won",
        std::cmp::Ordering::Equal => "A draw",
        std::cmp::Ordering::Less => "You lost",
    })
}

/// Renders the actions after a game: the same game again, or against a house bot, and the replay.
async fn next_games(arena: &Arena, session: &RedactedSession, names: &[String], seat: usize) -> PageResult<Markup> {
    let name = &session.challenge_type;
    let replay = html! {
        (btn(&format!("/sessions/{}/replay", session.id), "Watch the replay"))
        button.btn type="button" data-share={ "/sessions/" (session.id) } aria-live="polite" { "Share" }
    };
    if arena.engine.challenges().get(name).is_none() {
        return Ok(html! { div.row { (replay) } });
    }
    let opponents: Vec<&str> =
        names.iter().enumerate().filter(|(other, _)| *other != seat).map(|(_, name)| name.as_str()).collect();
    let is_bot = |opponent: &&&str| opponent.starts_with(&format!("house-{name}"));
    let has_house = arena.house.get().is_some_and(|house| house.plays(name));
    if has_house && !opponents.is_empty() && opponents.iter().all(|opponent| is_bot(&opponent)) {
        let strength = if opponents.iter().any(|opponent| opponent.contains("-easy")) { "easy" } else { "normal" };
        let again = again(arena, session, seat, Some(strength));
        return Ok(html! { div.row { (again) (deals::offer(arena, session)) (replay) } });
    }
    let is_keyed = arena.is_authenticated_mode();
    let wanted = if is_keyed { None } else { find_rematch(arena, session).await? };
    Ok(html! {
        div.row {
            @if is_keyed {
                // A form can't prove who asks, so the player gets new links to pass on.
                (again(arena, session, seat, None))
            } @else if session.invites.len() > 1 && !opponents.iter().any(|opponent| is_bot(&opponent)) {
                form method="post" data-rematch[wanted.is_none()] {
                    input type="hidden" name="do" value="rematch";
                    button.btn.primary { @if wanted.is_some() { "Accept the rematch" } @else { "Rematch" } }
                }
            } @else {
                (btn(&format!("/challenges/{name}"), "Play again"))
            }
            (replay)
            @if let Some(opponent) = opponent(arena, name) { (opponent) }
        }
        @if wanted.is_some() { p.soft role="status" { "A rematch is waiting for you." } }
    })
}

/// Renders the form of another game with the same options: against house bots of a strength, also with swapped seats, or
/// with new invites.
fn again(arena: &Arena, session: &RedactedSession, seat: usize, strength: Option<&str>) -> Markup {
    let options = changed_options(arena, session);
    let own = session.state.players.get(seat);
    let user = own.and_then(|own| session.state.player_identities.get(own)).filter(|_| !arena.is_authenticated_mode());
    let [same, swapped] = if seat == 0 { ["first", "last"] } else { ["last", "first"] };
    html! {
        form.row method="post" action={ "/challenges/" (session.challenge_type) } {
            @if let Some(strength) = strength {
                input type="hidden" name="against" value="house";
                input type="hidden" name="strength" value=(strength);
            }
            @if !options.is_empty() { input type="hidden" name="options" value=(to_text(&options)); }
            @if session.unlisted { input type="hidden" name="unlisted" value="true"; }
            @if let Some(user) = user { input type="hidden" name="user" value=(user.as_str()); }
            button.btn.primary name="seat" value=(same) { "Play again" }
            @if session.invites.len() == 2 && !arena.is_authenticated_mode() { button.btn name="seat" value=(swapped) { "Swap seats" } }
        }
    }
}

/// The request of a session's rematch. All players make the same one, so the first creates the session, and the others
/// get the stored answer: the session with its invites.
fn rematch_of(session: SessionId) -> Once {
    let hash = ContentHash::of(&format!("rematch\0{session}")).0;
    Once { key: hash, request: hash }
}

/// Returns the session's rematch, if a player has asked for one and it waits for players.
async fn find_rematch(arena: &Arena, session: &RedactedSession) -> PageResult<Option<SessionId>> {
    let Ok(id) = session.id.parse::<SessionId>() else { return Ok(None) };
    let Some(answer) = arena.engine.find_answer(Some(rematch_of(id))).await? else { return Ok(None) };
    let rematch: RedactedSession = serde_json::from_str(&answer).expect("views have these fields");
    let Ok(id) = rematch.id.parse::<SessionId>() else { return Ok(None) };
    let found = arena.engine.find_session(id).await?;
    Ok(found.filter(|session| session.status() == Status::Open).map(|_| id))
}

/// Takes the player to the rematch of an ended session, which the first player who asks for it creates.
pub(super) async fn play_again(
    arena: &Arena,
    stored: &Session,
    invite: InviteCode,
    address: Option<IpAddr>,
) -> PageResult<Response> {
    let Some(seat) = stored.seat_of(invite).filter(|_| stored.status() == Status::Ended) else {
        return Err(ApiError::bad_request("INVALID_FIELD", "a rematch follows a game that has ended").into());
    };
    let session = RedactedSession::by(stored, Viewer::Nobody);
    let create = Create {
        challenge: stored.facts.challenge.clone(),
        options: changed_options(arena, &session),
        is_rated: true,
        is_unlisted: stored.facts.is_unlisted,
        deal: None,
    };
    arena.admit_session(address, None).await?;
    let respond =
        arena.ledger.charging(address, |written| to_text(&arena_model::view(written.session, Viewer::Creator)));
    let view = arena.engine.create(create, Some(rematch_of(stored.facts.id)), respond).await?;
    let rematch: RedactedSession = serde_json::from_str(&view).expect("views have these fields");
    let own = rematch.invites.get(seat.0).ok_or_else(|| ApiError::not_found("INVITE_NOT_FOUND", "invite not found"))?;
    let is_free = match own.parse::<InviteCode>() {
        Ok(code) => arena.engine.find_invited(code).await?.is_some_and(|session| session.seat_of(code).is_none()),
        Err(_) => false,
    };
    if is_free {
        let user = session.state.player_identities.get(&invite.to_string());
        take_seat(arena, address, own, user.map(UserId::as_str)).await?;
    }
    Ok(to_seat(own))
}
