//! The queue of each challenge: a caller gets a ticket, and an invite as soon as enough callers wait. Tickets and their
//! results are in the store, so that each node can match all of them.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use arena_model::{ContentHash, InviteCode, SessionId, Timestamp};
use arena_store::{CommitError, NewAnswer, QueueLimits, QueuedTicket, TicketRefusal};
use serde_json::Map;

use crate::completion::Completion;
use crate::engine::{Inner, new_answer};
use crate::{Create, Engine, EngineError, Once, Written};

/// Time without a poll after which a ticket is dropped.
const STALE_MS: i64 = 60_000;

/// Time without a poll after which a ticket isn't matched until its next poll. It is shorter, because a caller that has
/// gone without leaving the queue would keep an opponent waiting.
const ABSENT_MS: i64 = 15_000;

/// Maximum number of tickets that wait for one challenge.
const PER_CHALLENGE: i64 = 1_000;

/// Maximum number of matches that one request makes. Another node that matches the same tickets costs one attempt.
const ATTEMPTS: usize = 8;

/// A place in a queue. It is a secret, because its holder gets the invite, so `Debug` isn't implemented.
#[derive(Clone, PartialEq, Eq)]
pub struct Ticket(String);

impl Ticket {
    const PREFIX: &str = "tkt_";

    /// Returns the hash under which the store keeps the ticket.
    fn hash(&self) -> [u8; 32] {
        ContentHash::of(&format!("queue\0{}", self.0)).0
    }
}

impl fmt::Display for Ticket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NoTicket;

impl FromStr for Ticket {
    type Err = NoTicket;

    fn from_str(text: &str) -> Result<Ticket, NoTicket> {
        let digits = text.strip_prefix(Ticket::PREFIX).ok_or(NoTicket)?;
        let is_valid = digits.len() == 64 && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
        if is_valid { Ok(Ticket(text.to_owned())) } else { Err(NoTicket) }
    }
}

#[derive(Debug, Clone)]
pub struct Enqueue {
    pub challenge: String,
    /// The caller's network, which counts against `per_network`.
    pub network: String,
    /// Maximum number of tickets of this network; `None` for no limit.
    pub per_network: Option<i64>,
    /// Time after which house bots may step in; `None` if the caller doesn't want them.
    pub house_after: Option<Duration>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum QueueState {
    Waiting {
        /// The time until house bots may step in, zero if they may; `None` if the caller doesn't want them.
        house_in: Option<Duration>,
    },
    Matched {
        session: SessionId,
        invite: InviteCode,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Leaving {
    Left,
    TooLate,
    Unknown,
}

#[derive(Clone, Copy)]
enum TicketResult {
    Left,
    Seat(SessionId, InviteCode),
}

impl TicketResult {
    fn read(body: &str) -> Option<TicketResult> {
        if body.is_empty() {
            return Some(TicketResult::Left);
        }
        let (session, invite) = body.split_once(' ')?;
        Some(TicketResult::Seat(session.parse().ok()?, invite.parse().ok()?))
    }

    fn answer(self, hash: [u8; 32], now: Timestamp) -> NewAnswer {
        let body = match self {
            TicketResult::Left => String::new(),
            TicketResult::Seat(session, invite) => format!("{session} {invite}"),
        };
        new_answer(Once { key: hash, request: hash }, &body, now)
    }

    fn state(self) -> Option<QueueState> {
        match self {
            TicketResult::Left => None,
            TicketResult::Seat(session, invite) => Some(QueueState::Matched { session, invite }),
        }
    }
}

impl Engine {
    /// Puts a caller into the queue of a challenge, and matches the waiting callers. A repeated request returns the same
    /// ticket.
    ///
    /// # Errors
    /// If the type is unknown, the queue is full, the network has too many tickets, or the store can't be read or
    /// written.
    pub async fn enqueue(&self, request: Enqueue, once: Option<Once>) -> Result<Ticket, EngineError> {
        let Enqueue { challenge, network, per_network, house_after } = request;
        self.inner.catalogue.find(&challenge)?;
        if let Some(known) = self.known_ticket(once).await? {
            return Ok(known);
        }
        let ticket = Ticket(format!("{}{}", Ticket::PREFIX, self.draw_seed().reveal()));
        let now = self.now();
        let house_ms = house_after.map(|after| i64::try_from(after.as_millis()).unwrap_or(i64::MAX));
        let queued = QueuedTicket { hash: ticket.hash(), challenge: challenge.clone(), network, house_ms, at: now };
        let answer = once.map(|once| new_answer(once, &ticket.0, now));
        let limits = QueueLimits { per_challenge: PER_CHALLENGE, per_network };
        match self.inner.store.add_ticket(queued, answer, limits, stale(now)).await {
            Ok(Ok(())) => {}
            Ok(Err(TicketRefusal::QueueFull)) => return Err(EngineError::QueueFull),
            Ok(Err(TicketRefusal::NetworkFull { limit })) => return Err(EngineError::TooManyTickets { limit }),
            // The same request was repeated in the meantime.
            Err(CommitError::Conflict) => return self.known_ticket(once).await?.ok_or(EngineError::Contended),
            Err(error) => return Err(failed(error)),
        }
        self.match_waiting(&challenge).await?;
        Ok(ticket)
    }

    /// Returns the number of tickets of each network that has some.
    ///
    /// # Errors
    /// If the store can't be read.
    pub async fn count_tickets(&self) -> Result<Vec<(String, u64)>, EngineError> {
        Ok(self.inner.store.count_tickets(stale(self.now())).await?)
    }

    /// Returns the number of callers that wait for opponents, for each challenge that has some.
    ///
    /// # Errors
    /// If the store can't be read.
    pub async fn count_waiting(&self) -> Result<BTreeMap<String, u64>, EngineError> {
        Ok(self.inner.store.count_waiting(present_since(self.now())).await?.into_iter().collect())
    }

    async fn known_ticket(&self, once: Option<Once>) -> Result<Option<Ticket>, EngineError> {
        Ok(self.inner.answered(once).await?.map(Ticket))
    }

    /// Records a poll of a ticket, matches the waiting callers, and returns the ticket's state. Returns `None` if the
    /// challenge's queue has no such ticket.
    ///
    /// # Errors
    /// If the store can't be read or written.
    pub async fn poll_ticket(&self, challenge: &str, ticket: &Ticket) -> Result<Option<QueueState>, EngineError> {
        if let Some(result) = self.result_of(challenge, ticket).await? {
            return Ok(result.state());
        }
        let now = self.now();
        let seen = self.inner.store.see_ticket(ticket.hash(), now, stale(now)).await.map_err(failed)?;
        let Some(queued) = seen.filter(|queued| queued.challenge == challenge) else {
            // The ticket may have been matched since the first look.
            return self.find_match(challenge, ticket).await;
        };
        self.match_waiting(challenge).await?;
        if let Some(result) = self.result_of(challenge, ticket).await? {
            return Ok(result.state());
        }
        let waited = now.0 - queued.at.0;
        let house_in = queued.house_ms.map(|after| u64::try_from(after.saturating_sub(waited)).unwrap_or(0));
        Ok(Some(QueueState::Waiting { house_in: house_in.map(Duration::from_millis) }))
    }

    /// True if the ticket is void because its caller has left the queue.
    ///
    /// # Errors
    /// If the store can't be read.
    pub async fn has_left_queue(&self, challenge: &str, ticket: &Ticket) -> Result<bool, EngineError> {
        Ok(matches!(self.result_of(challenge, ticket).await?, Some(TicketResult::Left)))
    }

    /// Returns the seat of a matched ticket; `None` while it waits. This is a cheap look between two polls.
    ///
    /// # Errors
    /// If the store can't be read.
    pub async fn find_match(&self, challenge: &str, ticket: &Ticket) -> Result<Option<QueueState>, EngineError> {
        Ok(self.result_of(challenge, ticket).await?.and_then(TicketResult::state))
    }

    /// Takes a caller out of the queue of a challenge.
    ///
    /// # Errors
    /// If the store can't be read or written.
    pub async fn leave_queue(&self, challenge: &str, ticket: &Ticket) -> Result<Leaving, EngineError> {
        let answer = TicketResult::Left.answer(ticket.hash(), self.now());
        if self.inner.store.leave_queue(challenge.to_owned(), answer).await.map_err(failed)? {
            return Ok(Leaving::Left);
        }
        Ok(match self.result_of(challenge, ticket).await? {
            Some(TicketResult::Seat(..)) => Leaving::TooLate,
            Some(TicketResult::Left) => Leaving::Left,
            None => Leaving::Unknown,
        })
    }

    /// Creates an unrated session for a waiting caller, and for others who accept house bots. Returns the invites that
    /// are left for house bots, at most `bots`; `None` if the caller doesn't wait any longer, or if more bots are needed.
    ///
    /// # Errors
    /// If the store can't be read or written.
    pub async fn match_with_house(
        &self,
        challenge: &str,
        ticket: &Ticket,
        bots: usize,
    ) -> Result<Option<Vec<InviteCode>>, EngineError> {
        let (inner, challenge, hash) = (Arc::clone(&self.inner), challenge.to_owned(), ticket.hash());
        Completion::new(async move {
            let _matching = inner.matching.lock().await;
            let seats = inner.seats_of(&challenge)?;
            let since = present_since(inner.environment.now());
            let tickets = inner.store.list_tickets(&challenge, since, true, seats.saturating_sub(1)).await?;
            if !tickets.iter().any(|queued| queued.hash == hash) || seats > tickets.len() + bots {
                return Ok(None);
            }
            inner.match_tickets(&challenge, &tickets, false).await
        })
        .await
    }

    /// Creates sessions for the waiting callers. The work goes on if the caller's connection ends.
    async fn match_waiting(&self, challenge: &str) -> Result<(), EngineError> {
        let (inner, challenge) = (Arc::clone(&self.inner), challenge.to_owned());
        Completion::new(async move {
            let _matching = inner.matching.lock().await;
            let seats = inner.seats_of(&challenge)?;
            for _ in 0..ATTEMPTS {
                let since = present_since(inner.environment.now());
                let tickets = inner.store.list_tickets(&challenge, since, false, seats).await?;
                if tickets.len() < seats {
                    break;
                }
                inner.match_tickets(&challenge, &tickets, inner.limits.proven_players).await?;
            }
            Ok(())
        })
        .await
    }

    async fn result_of(&self, challenge: &str, ticket: &Ticket) -> Result<Option<TicketResult>, EngineError> {
        let stored = self.inner.store.find_answer(&ticket.hash()).await?;
        let result = stored.and_then(|stored| TicketResult::read(&stored.body));
        let Some(TicketResult::Seat(session, _)) = result else { return Ok(result) };
        // A removed session has no type.
        let session = self.find_session(session).await?;
        Ok(result.filter(|_| session.is_none_or(|session| session.facts.challenge == challenge)))
    }
}

impl Inner {
    fn seats_of(&self, challenge: &str) -> Result<usize, EngineError> {
        let challenge = self.catalogue.find(challenge)?;
        Ok(challenge.seats(&challenge.resolve(&Map::new())?))
    }

    /// Creates a session whose first seats belong to these tickets. The commit stores the tickets' results as well.
    /// Returns the other invites; `None` if a ticket has a result already, for example because its caller has left.
    async fn match_tickets(
        &self,
        challenge: &str,
        tickets: &[QueuedTicket],
        is_rated: bool,
    ) -> Result<Option<Vec<InviteCode>>, EngineError> {
        let create =
            Create { challenge: challenge.to_owned(), options: Map::new(), is_rated, is_unlisted: false, deal: None };
        let hashes: Vec<[u8; 32]> = tickets.iter().map(|queued| queued.hash).collect();
        let format = |written: &Written<'_>, now| {
            let facts = &written.session.facts;
            let seated = hashes.iter().zip(&facts.invites);
            let answer =
                |(hash, invite): (&[u8; 32], &InviteCode)| TicketResult::Seat(facts.id, *invite).answer(*hash, now);
            let answers = seated.map(answer).collect();
            (facts.invites.iter().skip(hashes.len()).copied().collect(), answers)
        };
        // No caller pays for a match, since it has several.
        let left: Option<Vec<InviteCode>> = self.open(create, None, format).await?.ok();
        let mut done = Vec::new();
        for hash in hashes {
            if left.is_some() || self.store.find_answer(&hash).await?.is_some() {
                done.push(hash);
            }
        }
        self.store.forget_tickets(done).await.map_err(failed)?;
        Ok(left)
    }
}

fn stale(now: Timestamp) -> Timestamp {
    Timestamp(now.0 - STALE_MS)
}

fn present_since(now: Timestamp) -> Timestamp {
    Timestamp(now.0 - ABSENT_MS)
}

fn failed(error: CommitError) -> EngineError {
    match error {
        CommitError::Unavailable(error) => error.into(),
        CommitError::Conflict | CommitError::Answered(_) => EngineError::Contended,
    }
}
