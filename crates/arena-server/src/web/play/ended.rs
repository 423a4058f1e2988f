//! The end of a game on a seat's page: the result in the second person, the next game, and what the players knew.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;

use arena_engine::{Create, Once};
use arena_model::{ContentHash, InviteCode, Session, SessionId, Status, UserId, UserProfile, Viewer};
use arena_web::seat_class;
use axum::response::Response;
use maud::{Markup, html};

use super::{take_seat, to_seat};
use crate::answer::to_text;
use crate::arena::Arena;
use crate::error::ApiError;
use crate::house_bots::Strength;
use crate::web::PageResult;
use crate::web::boards::measures::{kind_of, verdict};
use crate::web::challenges::{in_short, opponent};
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
    let utilities: Vec<f64> = session.state.scores.iter().map(|score| score.utility).collect();
    let score = session.state.scores.get(seat).filter(|_| !session.state.abandoned);
    let headline = match score {
        Some(_) if has_drawn_board(session) => Some(headline(&utilities, seat)),
        // The scores of other challenges may mean other things.
        Some(score) if in_short(&session.challenge_type).is_some() => verdict(kind_of(&session.challenge_type), *score),
        _ => None,
    };
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

/// Renders the picture of an ended challenge, the players' secrets and the scores, for the player at a seat. A game's
/// board stays on the page.
pub(super) async fn reveal(
    arena: &Arena,
    session: &RedactedSession,
    summary: &SessionSummary,
    profiles: &BTreeMap<UserId, UserProfile>,
    seat: usize,
) -> PageResult<Markup> {
    if has_drawn_board(session) {
        return Ok(html! {});
    }
    let summary = &summary.addressing(seat);
    let picture = summary.picture(arena, session).await?;
    Ok(html! {
        div.reveal { div.pic { (picture) } (knowledge(arena, session, summary)) (ending(session, summary, profiles)) }
    })
}

/// Returns the result of a game without secrets in a few words, for the player at a seat.
fn headline(utilities: &[f64], seat: usize) -> &'static str {
    let own = utilities[seat];
    let others = utilities.iter().enumerate().filter(|(other, _)| *other != seat);
    let best = others.map(|(_, utility)| *utility).fold(f64::NEG_INFINITY, f64::max);
    match own.total_cmp(&best) {
        _ if utilities.len() < 2 => "The game is over",
        Ordering::Greater => "You won",
        Ordering::Less => "You lost",
        // All players are out.
        Ordering::Equal if own < 0.0 => "You lost",
        Ordering::Equal if utilities.iter().all(|utility| *utility == own) => "A draw",
        Ordering::Equal => "You shared the first place",
    }
}

/// Renders the actions after a game: the same game again, or against a house bot, and the replay.
async fn next_games(arena: &Arena, session: &RedactedSession, names: &[String], seat: usize) -> PageResult<Markup> {
    let name = &session.challenge_type;
    let replay = html! {
        (btn(&format!("/sessions/{}/replay", session.id), "Watch the replay"))
        // The page of the game shows the deal.
        @if !deals::is_of_day(arena, session) {
            button.btn type="button" data-share={ "/sessions/" (session.id) } aria-live="polite" { "Share" }
        }
    };
    if arena.engine.challenges().get(name).is_none() {
        return Ok(html! { div.row { (replay) } });
    }
    let opponents = names.iter().enumerate().filter(|(other, _)| *other != seat);
    let bots: Vec<Option<&str>> = opponents.map(|(_, opponent)| strength_of(arena, name, opponent)).collect();
    if let Some(Some(strength)) = bots.first()
        && bots.iter().all(Option::is_some)
    {
        let again = again(arena, session, seat, Some(strength));
        return Ok(html! { div.row { (again) (deals::offer(arena, session)) (replay) } });
    }
    let is_keyed = arena.is_authenticated_mode();
    let wanted = match session.id.parse() {
        Ok(id) if !is_keyed => rematch_of(arena, id).await?.1.filter(|rematch| rematch.status() == Status::Open),
        _ => None,
    };
    Ok(html! {
        div.row {
            @if is_keyed {
                // A form can't prove who asks, so the player gets new links to pass on.
                (again(arena, session, seat, None))
            } @else if session.invites.len() > 1 && bots.iter().all(Option::is_none) {
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

/// Returns the strength of a house bot of the challenge by its name; `None` for other players.
fn strength_of(arena: &Arena, challenge: &str, name: &str) -> Option<&'static str> {
    let house = arena.house.get().filter(|house| house.plays(challenge))?;
    if name.starts_with(&format!("house-{challenge}-model")) && house.model().is_some() {
        return Some("model");
    }
    let (_, strength) = house.find_bot(name).filter(|(of, _)| of == challenge)?;
    Some(if strength == Strength::Easy { "easy" } else { "normal" })
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

/// Returns the request of a session's rematch, and the rematch that it has created. All players make the same request, so
/// the first creates the session, and the others get the stored answer: the session with its invites. A rematch that
/// was removed, because not all players came, is followed by another one.
async fn rematch_of(arena: &Arena, session: SessionId) -> PageResult<(Once, Option<Arc<Session>>)> {
    let mut name = session.to_string();
    loop {
        let hash = ContentHash::of(&format!("rematch\0{name}")).0;
        let once = Once { key: hash, request: hash };
        let Some(answer) = arena.engine.find_answer(Some(once)).await? else { return Ok((once, None)) };
        let rematch: RedactedSession = serde_json::from_str(&answer).expect("views have these fields");
        let id: SessionId = rematch.id.parse().expect("views have an id");
        if let Some(found) = arena.engine.find_session(id).await? {
            return Ok((once, Some(found)));
        }
        name = rematch.id;
    }
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
    let (once, _) = rematch_of(arena, stored.facts.id).await?;
    arena.admit_session(address, Some(once)).await?;
    let respond =
        arena.ledger.charging(address, |written| to_text(&arena_model::view(written.session, Viewer::Creator)));
    let view = arena.engine.create(create, Some(once), respond).await?;
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

#[cfg(test)]
mod tests {
    use super::headline;

    #[test]
    fn a_result_is_told_in_a_few_words() {
        for (utilities, seat, expected) in [
            (&[1.0, -1.0][..], 0, "You won"),
            (&[1.0, -1.0], 1, "You lost"),
            (&[0.0, 0.0], 1, "A draw"),
            (&[-1.0, -1.0], 0, "You lost"),
            (&[0.5, 0.5, -1.0], 1, "You shared the first place"),
            (&[0.5, 0.5, -1.0], 2, "You lost"),
            (&[0.3], 0, "The game is over"),
        ] {
            assert_eq!(headline(utilities, seat), expected, "{utilities:?}, {seat}");
        }
    }
}
