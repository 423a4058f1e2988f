//! `/api/queue/{name}`: callers that wait for opponents. A caller gets a ticket, polls it, and gets an invite as soon as
//! enough callers wait. Tickets are in the store, so any node answers.

use std::net::IpAddr;
use std::time::Duration;

use arena_engine::{Enqueue, Leaving, Once, QueueState, Ticket};
use arena_model::InviteCode;
use arena_wire::QueuePlace;
use axum::extract::State;
use axum::http::StatusCode;
use serde::{Deserialize, Serialize};
use tokio::time::Instant;
use utoipa::ToSchema;

use super::sync::read_wait;
use crate::answer::{json, to_text};
use crate::arena::Arena;
use crate::error::{ApiError, ApiResult};
use crate::house_bots::Strength;
use crate::limits::SESSION;
use crate::openapi::{CreationKey, Sender};
use crate::request::{Get, Lenient, Post, Whole};

/// Interval at which a waiting request looks for a match.
const LOOK: Duration = Duration::from_millis(500);

/// Number of looks from one poll to the next. A poll also keeps the ticket alive and asks for house bots.
const LOOKS_PER_POLL: u32 = 4;

/// Settings of a wait for opponents.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(example = json!({ "houseAfterS": 20 }))]
struct QueueRequest {
    /// Time in seconds after which house bots may take the missing seats. Such a game is unrated. Default: never.
    #[schema(value_type = Option<u64>, maximum = 3600)]
    house_after_s: Option<Whole<0, 3600>>,
}

/// The wait of a poll.
#[derive(Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
struct WantedState {
    /// Maximum wait for a match, in seconds, up to 50.
    #[param(value_type = Option<f64>, minimum = 0, example = 0)]
    wait: Lenient<f64>,
}

/// The caller has left the queue.
#[derive(Serialize, ToSchema)]
#[schema(example = json!({ "left": true }))]
struct LeftQueue {
    left: bool,
}

/// Waits for opponents.
///
/// The caller gets a ticket. The first callers in the queue get the seats of a new session, as soon as they are enough.
/// A caller gets no opponent while its last poll was more than 15 seconds ago. A ticket that isn't polled for 60
/// seconds is dropped.
#[utoipa::path(post, path = "/api/queue/{name}", tag = "challenges",
    params(("name" = String, Path, description = "The challenge type's id.", example = "psi"), Sender, CreationKey),
    request_body(content = Option<QueueRequest>, description = "Optional."),
    responses((status = 200, body = QueuePlace, description = "The ticket and its state."),
        (status = 400, description = "
            `UNKNOWN_CHALLENGE`: this server doesn't host the challenge type.
            `CHALLENGE_FAILED`: the challenge's script failed."),
        (status = 409, description = "`QUEUE_FULL`: too many callers wait."),
        (status = 429, description = "
            `TOO_MANY_TICKETS`: too many callers wait at this address.
            `TOO_MANY_SESSIONS`: too many sessions of this address haven't ended."),
        (status = 507, description = "`DISK_ALMOST_FULL`: the server's disk is almost full; games that have begun go on.")))]
pub(crate) async fn join_queue(State(arena): State<Arena>, request: Post) -> ApiResult {
    let wanted: Option<QueueRequest> = request.find_body()?;
    let house_after_s = wanted.and_then(|wanted| wanted.house_after_s);
    let name = request.param("name");
    let house_after = house_after_s.map(|Whole(seconds)| Duration::from_secs(seconds));
    let ticket = enqueue(&arena, name, request.address, house_after, request.once_creating()?).await?;
    let state = poll(&arena, name, &ticket, request.address).await?;
    if let QueueState::Matched { session, .. } = state {
        arena.ledger.note_session(request.address, session);
    }
    Ok(show(&ticket, &state))
}

/// Puts a caller into the queue of a challenge. House bots may step in after `house_after`.
///
/// # Errors
/// If a queue is full, or the challenge type is unknown.
pub(crate) async fn enqueue(
    arena: &Arena,
    name: &str,
    address: Option<IpAddr>,
    house_after: Option<Duration>,
    once: Option<Once>,
) -> ApiResult<Ticket> {
    arena.admit_session(address, once).await?;
    let (network, per_network) = arena.rates.tickets_of(address);
    let enqueue = Enqueue { challenge: name.to_owned(), network, per_network, house_after };
    let ticket = arena.engine.enqueue(enqueue, once).await?;
    // Each ticket may lead to a session.
    arena.ledger.charge(address, SESSION);
    Ok(ticket)
}

/// Returns the state of a ticket.
///
/// With `wait`, the response comes when the ticket is matched, or after this time.
#[utoipa::path(get, path = "/api/queue/{name}/{ticket}", tag = "challenges",
    params(("name" = String, Path, description = "The challenge type's id.", example = "psi"),
        ("ticket" = String, Path, description = "The ticket."), WantedState),
    responses((status = 200, body = QueuePlace, description = "The state. A matched ticket has `session` and `invite`."),
        (status = 400, description = "
            `UNKNOWN_CHALLENGE`: this server doesn't host the challenge type.
            `CHALLENGE_FAILED`: the challenge's script failed.
            `INVALID_WAIT`: `wait` isn't a non-negative number."),
        (status = 404, description = "`TICKET_NOT_FOUND`: the ticket doesn't exist, was dropped, or its caller has left.")))]
pub(crate) async fn find_ticket(State(arena): State<Arena>, request: Get) -> ApiResult {
    let WantedState { wait } = request.query()?;
    let wait = read_wait(wait)?.filter(|_| request.may_wait());
    let (name, ticket) = (request.param("name"), ticket_of(&request)?);
    let mut state = poll(&arena, name, &ticket, request.address).await?;
    let Some(wait) = wait else { return Ok(show(&ticket, &state)) };
    let deadline = Instant::now() + wait;
    let stopping = arena.stopping();
    tokio::pin!(stopping);
    let mut looks = 0;
    while matches!(state, QueueState::Waiting { .. }) && Instant::now() < deadline {
        tokio::select! {
            () = tokio::time::sleep_until(deadline.min(Instant::now() + LOOK)) => {}
            () = &mut stopping => break,
        }
        looks += 1;
        let is_last = Instant::now() >= deadline;
        if is_last || looks % LOOKS_PER_POLL == 0 {
            state = poll(&arena, name, &ticket, request.address).await?;
        } else if let Some(matched) = arena.engine.find_match(name, &ticket).await? {
            state = matched;
        }
    }
    Ok(show(&ticket, &state))
}

/// Leaves a queue.
#[utoipa::path(delete, path = "/api/queue/{name}/{ticket}", tag = "challenges",
    params(("name" = String, Path, description = "The challenge type's id.", example = "psi"),
        ("ticket" = String, Path, description = "The ticket.")),
    responses((status = 200, body = LeftQueue, description = "The caller has left, and the ticket is void."),
        (status = 404, description = "`TICKET_NOT_FOUND`: the ticket doesn't exist or was dropped."),
        (status = 409, description = "`ALREADY_MATCHED`: the ticket has an invite.")))]
pub(crate) async fn leave_queue(State(arena): State<Arena>, request: Get) -> ApiResult {
    match arena.engine.leave_queue(request.param("name"), &ticket_of(&request)?).await? {
        Leaving::Left => Ok(json(to_text(&LeftQueue { left: true }))),
        Leaving::TooLate => {
            let text = "the ticket has an invite already; its session waits for the caller";
            Err(ApiError::new(StatusCode::CONFLICT, "ALREADY_MATCHED", text))
        }
        Leaving::Unknown => Err(unknown()),
    }
}

async fn poll(arena: &Arena, name: &str, ticket: &Ticket, address: Option<IpAddr>) -> ApiResult<QueueState> {
    poll_ticket(arena, name, ticket, address).await?.ok_or_else(unknown)
}

/// Polls a ticket. If house bots are due and enough are free, they take the missing seats. Returns `None` if the ticket
/// doesn't exist, was dropped, or its caller has left.
pub(crate) async fn poll_ticket(
    arena: &Arena,
    name: &str,
    ticket: &Ticket,
    address: Option<IpAddr>,
) -> ApiResult<Option<QueueState>> {
    let Some(state) = arena.engine.poll_ticket(name, ticket).await? else { return Ok(None) };
    if state != (QueueState::Waiting { house_in: Some(Duration::ZERO) }) {
        return Ok(Some(state));
    }
    let house = arena.house.get().filter(|house| house.plays(name));
    let challenges = arena.engine.challenges();
    let bots = challenges.get(name).map_or(0, |challenge| challenge.metadata().players.saturating_sub(1));
    let address = arena.ledger.limited(address);
    let Some((house, places)) = house.and_then(|house| Some((house, house.reserve(bots, address).ok()?))) else {
        return Ok(Some(state));
    };
    if let Some(invites) = arena.engine.match_with_house(name, ticket, bots).await? {
        let invites: Vec<String> = invites.iter().map(InviteCode::to_string).collect();
        house.send(name, &invites, Some(Strength::Normal), places);
    }
    Ok(Some(arena.engine.find_match(name, ticket).await?.unwrap_or(state)))
}

fn ticket_of(request: &Get) -> ApiResult<Ticket> {
    request.param("ticket").parse().map_err(|_| unknown())
}

fn unknown() -> ApiError {
    ApiError::not_found(
        "TICKET_NOT_FOUND",
        "this ticket doesn't wait: it was dropped after 60 seconds without a poll, or its caller has left",
    )
}

fn show(ticket: &Ticket, state: &QueueState) -> axum::response::Response {
    let (state, session, invite) = match state {
        QueueState::Waiting { .. } => ("waiting", None, None),
        QueueState::Matched { session, invite } => ("matched", Some(session.to_string()), Some(invite.to_string())),
    };
    json(to_text(&QueuePlace { ticket: ticket.to_string(), state: state.to_owned(), session, invite }))
}
