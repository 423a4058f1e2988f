//! Deals that are played again: the form that starts one against the same house bots, and both results side by side.
//! Such games count on no board, since their seed is public.

use arena_model::{SessionId, Status, Timestamp, UserId, Viewer};
use arena_report::number_of;
use arena_web::{seat_class, seat_mark};
use maud::{Markup, html};

use super::redacted::RedactedSession;
use super::summary::SessionSummary;
use super::unknown_session;
use crate::arena::Arena;
use crate::house_bots::Strength;
use crate::records::deals::day_of;
use crate::web::PageResult;
use crate::web::components::btn;
use crate::web::layout::player_name;

/// Renders the form for the same deal, with the same opponents and seats. It is empty unless the game has ended, with
/// house bots on all seats but the first or the last. After the deal of a day, a link to its results takes the place.
pub(in crate::web) fn offer(arena: &Arena, session: &RedactedSession) -> Markup {
    if is_of_day(arena, session) {
        let day = day_of(Timestamp(session.created_at));
        return btn(&format!("/daily/{day}"), "How others did");
    }
    let Some((seat, strength)) = opponents(arena, session) else { return html! {} };
    html! {
        form method="post" action={ "/challenges/" (session.challenge_type) } {
            input type="hidden" name="against" value="house";
            input type="hidden" name="strength" value=(strength);
            input type="hidden" name="deal" value=(session.id);
            @if session.unlisted { input type="hidden" name="unlisted" value="true"; }
            button.btn name="seat" value=(seat) { "Play this deal" }
        }
    }
}

/// Returns true if a session had the deal of its day; false before its end.
pub(in crate::web) fn is_of_day(arena: &Arena, session: &RedactedSession) -> bool {
    let seed = session.seed.as_ref().filter(|_| session.unlisted);
    seed.is_some_and(|seed| arena.records.is_of_day(Timestamp(session.created_at), seed))
}

/// Returns the free seat, as in the form, and the strength of the house bots on all others.
fn opponents(arena: &Arena, session: &RedactedSession) -> Option<(&'static str, &'static str)> {
    let house = arena.house.get().filter(|house| house.plays(&session.challenge_type))?;
    // In authentication mode, players sign their joins, so a form can't choose a seat.
    if session.status() != Status::Ended || session.seed.is_none() || arena.is_authenticated_mode() {
        return None;
    }
    let bot = |player: &String| {
        let user = session.state.player_identities.get(player).map(UserId::as_str)?;
        house.find_bot(user).filter(|(challenge, _)| *challenge == session.challenge_type).map(|(_, strength)| strength)
    };
    let bots: Vec<Option<Strength>> = session.state.players.iter().map(bot).collect();
    let (seat, others) = match &bots[..] {
        [None, others @ ..] => ("first", others),
        [others @ .., None] => ("last", others),
        _ => return None,
    };
    let first = (*others.first()?)?;
    let strength = if first == Strength::Easy { "easy" } else { "normal" };
    others.iter().all(|strength| *strength == Some(first)).then_some((seat, strength))
}

/// Renders the mark of a session whose deal was played before and, after its end, the results of both sessions.
pub(in crate::web) async fn compare(
    arena: &Arena,
    session: &RedactedSession,
    summary: &SessionSummary,
) -> PageResult<Markup> {
    let id: SessionId = session.id.parse().map_err(|_| unknown_session())?;
    let before = match arena.engine.find_origin(id).await? {
        None => return Ok(html! { div id="same-deal" {} }),
        Some(origin) => arena.engine.find_session(origin).await?,
    };
    let before = match &before {
        // The earlier session was removed.
        None => None,
        Some(stored) => {
            let before = RedactedSession::by(stored, Viewer::Nobody);
            let profiles = arena.engine.profiles([&**stored]).await?;
            Some((SessionSummary::of(arena, &before, &profiles), before))
        }
    };
    Ok(html! {
        div id="same-deal" {
            section.card.pad {
                h2 { "The same deal" }
                p.soft { "This is a deal that was played before, so the game counts on no leaderboard." }
                @if let Some((first, before)) = &before {
                    @if session.status() == Status::Ended {
                        div.two { (side("Before", before, first)) (side("This game", session, summary)) }
                    } @else {
                        p.small { a href={ "/sessions/" (before.id) } { "The earlier game" } }
                    }
                }
            }
        }
    })
}

/// Renders the result of one of the two sessions.
fn side(name: &str, session: &RedactedSession, summary: &SessionSummary) -> Markup {
    html! {
        div {
            h3 { (name) }
            p { a href={ "/sessions/" (session.id) } { (summary.title()) } }
            ul.seats {
                @for (seat, player) in summary.names.iter().enumerate() {
                    li.seat.{ (seat_class(seat)) } {
                        (seat_mark(seat)) b { (player_name(player, 40)) }
                        @if let Some(score) = session.state.scores.get(seat) { span { (number_of(score.utility).replace('-', "−")) } }
                    }
                }
            }
        }
    }
}
