//! New sessions from forms: `POST /challenges/{name}`, and games against house bots instead of a wait in the queue.

use std::net::IpAddr;
use std::time::Duration;

use arena_engine::{Create, Deal, Respond};
use arena_model::{ChallengeType, Script, SessionId, Viewer};
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use maud::{Markup, html};
use serde_json::{Map, Value};

use super::{copyable, hosted, short_options};
use crate::answer::to_text;
use crate::arena::Arena;
use crate::error::ApiError;
use crate::house_bots::{House, ReservedSeats, Strength};
use crate::web::components::primary;
use crate::web::form::Form;
use crate::web::layout::{NavEntry, Page, badge};
use crate::web::play::{take_seat, to_seat};
use crate::web::session::redacted::{RedactedSession, is_invite_code};
use crate::web::{PageResult, base, unrendered};

/// `POST /challenges/{name}`: creates a session and shows its invites, once.
pub(crate) async fn create(State(arena): State<Arena>, form: Form) -> PageResult {
    let name = form.param("name");
    let challenge = &*hosted(&arena, name)?;
    let deal = read_deal(&arena, &form, challenge).await?;
    let options = match &deal {
        Some((options, _)) => options.clone(),
        None => super::options::read(&form.fields, challenge.options())?,
    };
    let order = read_order(&form)?;
    // In authentication mode, players sign their joins.
    let order = order.filter(|_| !arena.is_authenticated_mode());
    let user = form.fields.get("user");
    let house = read_opponents(&arena, &form, challenge, &options)?;
    let (is_unlisted, is_open) = (is_ticked(&form, "unlisted")?, is_ticked(&form, "open")?);
    if is_open && (is_unlisted || house.is_some()) {
        let text = "open seats are listed and for people, so the game can't be unlisted or against house bots";
        return Err(ApiError::bad_request("INVALID_FIELD", text).into());
    }
    let is_rated = house.is_none();
    let deal = deal.map(|(_, deal)| deal);
    let create = Create { challenge: name.to_owned(), options, is_rated, is_unlisted, deal };
    let session = create_session(&arena, create, form.address).await?;
    let Some((own, others)) = session.invites.split_first() else {
        return Ok((StatusCode::SEE_OTHER, [(header::LOCATION, format!("/challenges/{name}"))]).into_response());
    };
    if is_open {
        for invite in others.iter().filter_map(|invite| invite.parse().ok()) {
            arena.engine.announce(invite, None, Respond::new(|_| String::new())).await?;
        }
        return Ok(to_seat(own));
    }
    if order == Some(JoinOrder::First) {
        take_seat(&arena, form.address, own, user).await?;
    }
    if let Some((house, places, strength)) = house {
        house.send(name, others, strength, places);
        if order != Some(JoinOrder::First) {
            sit_down_last(&arena, form.address, &session, user).await?;
        }
        return Ok(to_seat(own));
    }
    let base = base(&arena, &form.headers);
    Ok(match form.fields.get("seat") {
        Some(_) => pass_on(&challenge.metadata().name, &base, &session, order),
        None => show_invites(&arena, &challenge.metadata().name, &base, &session),
    })
}

/// Reads a checkbox.
fn is_ticked(form: &Form, name: &str) -> PageResult<bool> {
    match form.fields.get(name) {
        None => Ok(false),
        Some("true") => Ok(true),
        Some(_) => Err(ApiError::bad_request("INVALID_FIELD", format!("{name} must be `true`")).into()),
    }
}

fn read_order(form: &Form) -> PageResult<Option<JoinOrder>> {
    match form.fields.get("seat") {
        None => Ok(None),
        Some("first") => Ok(Some(JoinOrder::First)),
        Some("last") => Ok(Some(JoinOrder::Last)),
        Some(_) => Err(ApiError::bad_request("INVALID_FIELD", "seat must be `first` or `last`").into()),
    }
}

/// Reads the deal of an ended session, with its options, for a game against house bots.
async fn read_deal(
    arena: &Arena,
    form: &Form,
    challenge: &dyn ChallengeType,
) -> PageResult<Option<(Map<String, Value>, Deal)>> {
    let Some(wanted) = form.fields.get("deal") else { return Ok(None) };
    let unusable = |text: &str| ApiError::bad_request("INVALID_FIELD", text);
    if form.fields.get("against").is_none() {
        return Err(unusable("a deal is played again against house bots only").into());
    }
    let id: SessionId = wanted.parse().map_err(|_| unusable("deal must be the id of a session"))?;
    let session = arena.engine.find_session(id).await?.filter(|session| session.facts.challenge == challenge.id());
    let session = session.ok_or_else(|| unusable("there is no such session of this challenge"))?;
    if session.facts.script != challenge.script().map(Script::version) {
        return Err(unusable("the challenge's rules have changed, so the deal can't be played again").into());
    }
    if session.facts.seed.as_ref().is_some_and(|seed| arena.records.is_of_day(session.facts.created_at, &seed.reveal()))
    {
        return Err(unusable("the deal of a day can be played once").into());
    }
    let deal = Deal::of(&session).ok_or_else(|| unusable("the deal of a session is secret until its end"))?;
    // The others are fixed.
    let free = challenge.options().iter();
    let options =
        free.filter_map(|option| Some((option.name.to_string(), session.facts.options.get(&*option.name)?.clone())));
    Ok(Some((options.collect(), deal)))
}

/// Reserves the house bots that a form asks for. Their strength is `None` if the language model plays.
fn read_opponents<'a>(
    arena: &'a Arena,
    form: &Form,
    challenge: &dyn ChallengeType,
    options: &Map<String, Value>,
) -> PageResult<Option<(&'a House, ReservedSeats, Option<Strength>)>> {
    match form.fields.get("against") {
        None => return Ok(None),
        Some("house") => {}
        Some(_) => return Err(ApiError::bad_request("INVALID_FIELD", "against must be `house`").into()),
    }
    let unknown = || ApiError::bad_request("INVALID_FIELD", "strength must be `easy`, `normal` or `model`");
    let strength = match form.fields.get("strength").unwrap_or("normal") {
        "model" => None,
        strength => Some(Strength::from_name(strength).ok_or_else(unknown)?),
    };
    let (house, places) = reserve_bots(arena, challenge, options, form.address)?;
    if strength.is_none() && house.model().is_none() {
        let text = "the language model isn't available; play against a house bot";
        return Err(ApiError::new(StatusCode::SERVICE_UNAVAILABLE, "HOUSE_BUSY", text).into());
    }
    Ok(Some((house, places, strength)))
}

/// Creates a session. Its view has all invites.
async fn create_session(arena: &Arena, create: Create, address: Option<IpAddr>) -> PageResult<RedactedSession> {
    arena.admit_session(address, None).await?;
    let respond =
        arena.ledger.charging(address, |written| to_text(&arena_model::view(written.session, Viewer::Creator)));
    let view = arena.engine.create(create, None, respond).await?;
    Ok(serde_json::from_str(&view).expect("views have these fields"))
}

fn show_invites(arena: &Arena, challenge: &str, base: &str, session: &RedactedSession) -> Response {
    let body = html! {
        div.intro {
            h1 { "A new game of " (challenge) }
            p.lead { "The links are shown only once. Anyone with a link can take its seat, so send each to its player only." }
            p.row { a.btn href={ "/sessions/" (session.id) } { "Watch the game" } (badge(session.status())) }
        }
        @for (seat, invite) in session.invites.iter().enumerate().filter(|(_, invite)| is_invite_code(invite)) {
            section.card {
                h2 { "Invite " (seat + 1) }
                (copyable(&format!("{base}/play/{invite}")))
                p { a.btn.primary href={ "/play/" (invite) } { "Play in this browser" } }
                (ways(arena, base, invite))
            }
        }
    };
    unrendered(Page::new("New game", NavEntry::Challenges, body).with_secrets())
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

/// Takes a person's seat against house bots as soon as they have joined. In authentication mode, and if the bots are
/// late, the seat's page has a form for it.
async fn sit_down_last(
    arena: &Arena,
    address: Option<IpAddr>,
    session: &RedactedSession,
    user: Option<&str>,
) -> PageResult<()> {
    let Some((own, others)) = session.invites.split_first().filter(|_| !arena.is_authenticated_mode()) else {
        return Ok(());
    };
    if await_players(arena, &session.id, others.len()).await? {
        take_seat(arena, address, own, user).await?;
    }
    Ok(())
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
    unrendered(Page::new("Next game", NavEntry::Challenges, body).with_secrets())
}

/// Starts a session with house bots on all seats but one, and returns the invite of that seat: the first one for a given
/// deal. `leave` runs after the bots were reserved; the session isn't created if it returns false.
pub(in crate::web) async fn start_against_house(
    arena: &Arena,
    name: &str,
    address: Option<IpAddr>,
    deal: Option<Deal>,
    leave: impl Future<Output = PageResult<bool>>,
) -> PageResult<Option<String>> {
    let challenge = hosted(arena, name)?;
    let options = short_options(arena, name).unwrap_or_default();
    let (house, places) = reserve_bots(arena, &*challenge, &options, address)?;
    if !leave.await? {
        return Ok(None);
    }
    let is_first = deal.is_some();
    let create = Create { challenge: name.to_owned(), options, is_rated: false, is_unlisted: false, deal };
    let session = create_session(arena, create, address).await?;
    let Some((own, others)) = session.invites.split_first() else { return Ok(None) };
    if is_first {
        take_seat(arena, address, own, None).await?;
    }
    house.send(name, others, Some(Strength::Normal), places);
    if !is_first {
        sit_down_last(arena, address, &session, None).await?;
    }
    Ok(Some(own.clone()))
}

/// Reserves house bots for all seats of a session but one.
fn reserve_bots<'a>(
    arena: &'a Arena,
    challenge: &dyn ChallengeType,
    options: &Map<String, Value>,
    address: Option<IpAddr>,
) -> PageResult<(&'a House, ReservedSeats)> {
    let metadata = challenge.metadata();
    let seats = challenge.resolve(options).map_or(metadata.players, |options| challenge.seats(&options));
    let house = arena.house.get().filter(|house| house.plays(challenge.id()));
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
