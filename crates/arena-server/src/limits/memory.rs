//! The limit on the memory that responses and request bodies of slow clients occupy.
//!
//! Each connection may hold [`FREE`] bytes without a permit. Bytes beyond that hold a permit until they are written to
//! the socket (docs/decisions/0035).

use std::collections::HashMap;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::Body;
use axum::response::Response;
use bytes::Bytes;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use http_body_util::BodyExt;
use hyper::body::{Body as _, Frame, SizeHint};
use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::error::ApiError;

/// Maximum size in bytes of a response piece or request body that needs no permit.
pub(crate) const FREE: usize = 32 * 1024;

/// Size in bytes of the reservation for a piece of a response, made before the piece is produced. A longer piece gets a
/// reservation of its own size.
const PIECE: usize = 64 * 1024;

/// Unit of the semaphores, in bytes.
const UNIT: usize = 1024;

#[derive(Debug)]
pub(crate) struct Memory {
    total: Arc<Semaphore>,
    total_units: u32,
    /// Budget of each address, in units; `None` means no limit per address.
    share_units: Option<u32>,
    /// The permits of each address, as long as they are in use.
    shares: Mutex<HashMap<IpAddr, Weak<Semaphore>>>,
    /// Maximum time for which a response waits for memory.
    patience: Duration,
    /// Number of bytes that are currently reserved.
    held: Arc<AtomicU64>,
}

/// The budget of one address. Clones share it.
#[derive(Debug, Clone)]
pub(crate) struct AddressBudget {
    memory: Arc<Memory>,
    /// The address's permits; `None` for addresses without a limit.
    own: Option<Arc<Semaphore>>,
}

/// Reserved memory, released on drop.
#[derive(Debug)]
pub(crate) struct Reservation {
    bytes: usize,
    /// Number of bytes that the server's permits cover: `bytes` rounded up to whole units, at most all of them.
    counted: u64,
    _own: Option<OwnedSemaphorePermit>,
    _total: OwnedSemaphorePermit,
    held: Arc<AtomicU64>,
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.held.fetch_sub(self.counted, Ordering::Relaxed);
    }
}

/// Bytes that keep their reservation until they are dropped.
struct Owned {
    bytes: Bytes,
    _held: Reservation,
}

impl AsRef<[u8]> for Owned {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Reservation {
    /// Attaches the reservation to `bytes`, until the last handle to them is dropped after the write to the socket.
    pub(crate) fn with(self, bytes: Bytes) -> Bytes {
        Bytes::from_owner(Owned { bytes, _held: self })
    }

    fn bytes(&self) -> usize {
        self.bytes
    }
}

fn units(bytes: usize) -> u32 {
    u32::try_from(bytes.div_ceil(UNIT)).unwrap_or(u32::MAX)
}

impl Memory {
    /// Of `total` bytes, with `budget` bytes per address; 0 means no limit. Responses wait up to `patience`.
    pub(crate) fn new(total: usize, budget: usize, patience: Duration) -> Memory {
        // A smaller budget would not suffice for a single message.
        let total_units = units(total.max(PIECE)).min(u32::MAX / 2);
        let share_units = (budget > 0).then(|| units(budget.max(PIECE)).min(total_units));
        let total = Arc::new(Semaphore::new(total_units as usize));
        Memory { total, total_units, share_units, shares: Mutex::default(), patience, held: Arc::default() }
    }

    /// Returns the number of bytes that are currently reserved.
    pub(crate) fn held(&self) -> u64 {
        self.held.load(Ordering::Relaxed)
    }

    pub(crate) fn budget_of(self: &Arc<Memory>, address: IpAddr) -> AddressBudget {
        let own = self.share_units.map(|units| {
            let mut shares = self.shares.lock();
            shares.get(&address).and_then(Weak::upgrade).unwrap_or_else(|| {
                let own = Arc::new(Semaphore::new(units as usize));
                shares.insert(address, Arc::downgrade(&own));
                own
            })
        });
        AddressBudget { memory: Arc::clone(self), own }
    }

    /// Returns the size of the budget, and the size of each address's budget if there is a limit per address, in bytes.
    pub(crate) fn limits(&self) -> (u64, Option<u64>) {
        let bytes = |units: u32| u64::from(units) * UNIT as u64;
        (bytes(self.total_units), self.share_units.map(bytes))
    }

    /// Returns the number of reserved bytes of each address that has some.
    pub(crate) fn held_by_address(&self) -> Vec<(IpAddr, u64)> {
        let Some(units) = self.share_units else { return Vec::new() };
        let shares = self.shares.lock();
        let held = shares.iter().filter_map(|(address, own)| {
            let held = (units as usize).saturating_sub(own.upgrade()?.available_permits());
            Some((*address, (held * UNIT) as u64))
        });
        held.filter(|(_, bytes)| *bytes > 0).collect()
    }

    /// Drops the budgets that no connection uses and from which no memory is reserved.
    pub(crate) fn forget_idle(&self) {
        // A reservation has a reference to its semaphore.
        self.shares.lock().retain(|_, own| own.strong_count() > 0);
    }

    /// Creates the budget of an address that has no limit of its own.
    pub(crate) fn common(self: &Arc<Memory>) -> AddressBudget {
        AddressBudget { memory: Arc::clone(self), own: None }
    }
}

impl AddressBudget {
    /// Converts a number of bytes to units of the address's permits and of the server's, each at most all of them.
    fn clamp(&self, bytes: usize) -> (u32, u32) {
        let units = units(bytes);
        (units.min(self.memory.share_units.unwrap_or(u32::MAX)), units.min(self.memory.total_units))
    }

    fn held(&self, bytes: usize, own: Option<OwnedSemaphorePermit>, total: OwnedSemaphorePermit) -> Reservation {
        let counted = total.num_permits() as u64 * UNIT as u64;
        self.memory.held.fetch_add(counted, Ordering::Relaxed);
        Reservation { bytes, counted, _own: own, _total: total, held: Arc::clone(&self.memory.held) }
    }

    /// Reserves memory if it is available at once.
    pub(crate) fn try_hold(&self, bytes: usize) -> Option<Reservation> {
        let (own_units, total_units) = self.clamp(bytes);
        let own = match &self.own {
            Some(own) => Some(Arc::clone(own).try_acquire_many_owned(own_units).ok()?),
            None => None,
        };
        let total = Arc::clone(&self.memory.total).try_acquire_many_owned(total_units).ok()?;
        Some(self.held(bytes, own, total))
    }

    /// All callers acquire the permit of the address before that of the server, which prevents deadlocks.
    pub(crate) async fn hold(&self, bytes: usize) -> Reservation {
        let (own_units, total_units) = self.clamp(bytes);
        let open = "semaphores of memory are never closed";
        let own = match &self.own {
            Some(own) => Some(Arc::clone(own).acquire_many_owned(own_units).await.expect(open)),
            None => None,
        };
        let total = Arc::clone(&self.memory.total).acquire_many_owned(total_units).await.expect(open);
        self.held(bytes, own, total)
    }

    /// Reserves memory for a response as [`AddressBudget::hold`] does, with a timeout.
    ///
    /// # Errors
    /// If there is no memory within `limits.stalled_ms`.
    pub(crate) async fn hold_with_timeout(&self, bytes: usize) -> Result<Reservation, NoMemory> {
        tokio::time::timeout(self.memory.patience, self.hold(bytes)).await.map_err(|_| NoMemory)
    }
}

/// The error of a response that got no memory for its next piece.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("too much memory is held for slow clients")]
pub(crate) struct NoMemory;

/// Returns the error response for a request or response that got no memory.
pub(crate) fn busy() -> ApiError {
    let text =
        "too much memory is held for slow clients (limits.waiting_bytes); read the pending responses and try again";
    ApiError::busy(text)
}

/// Reserves memory for a piece of a response, if it is available at once. `earlier` is used if it suffices. Returns
/// `None` without memory, and `Some(None)` if the piece needs no reservation: it is short, or no connection gets it.
pub(crate) fn reserve(
    budget: Option<&AddressBudget>,
    earlier: Option<Reservation>,
    bytes: usize,
) -> Option<Option<Reservation>> {
    if let Some(enough) = earlier.filter(|earlier| earlier.bytes() >= bytes) {
        return Some(Some(enough));
    }
    match budget {
        Some(budget) if bytes > FREE => budget.try_hold(bytes).map(Some),
        _ => Some(None),
    }
}

/// Attaches a reservation, if there is one, to a text.
pub(crate) fn with_reservation(text: Vec<u8>, reservation: Option<Reservation>) -> Bytes {
    match reservation {
        Some(reservation) => reservation.with(text.into()),
        None => text.into(),
    }
}

/// A response extension: the body reserves its memory itself.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ReservesMemory;

/// Counts a response's bytes against the memory budget. If there is no memory for a large complete response, the result
/// depends on `may_refuse`. If it is true, an error replaces the response. If it is false, the response reports a write
/// that is already done, so the server sends it uncounted.
pub(crate) fn count(response: Response, budget: &AddressBudget, may_refuse: bool) -> Response {
    let is_small = response.body().size_hint().exact().is_some_and(|bytes| bytes <= FREE as u64);
    if is_small || response.extensions().get::<ReservesMemory>().is_some() {
        return response;
    }
    let (parts, mut body) = response.into_parts();
    // A first piece that is ready already occupies memory. Later pieces are produced on demand.
    let first = match body.frame().now_or_never() {
        Some(Some(Ok(frame))) if frame.data_ref().is_some_and(|data| data.len() > FREE) => {
            let bytes = frame.data_ref().map_or(0, Bytes::len);
            match budget.try_hold(bytes) {
                Some(held) => Some(Ok(frame.map_data(|data| held.with(data)))),
                None if may_refuse => return axum::response::IntoResponse::into_response(busy()),
                None => Some(Ok(frame)),
            }
        }
        Some(Some(first)) => Some(first),
        Some(None) => return Response::from_parts(parts, Body::empty()),
        None => None,
    };
    Response::from_parts(
        parts,
        Body::new(CountedBody { first, body, budget: budget.clone(), reservation: ReservationState::None }),
    )
}

/// A body that reserves memory for each piece before it is produced.
struct CountedBody {
    first: Option<Result<Frame<Bytes>, axum::Error>>,
    body: Body,
    budget: AddressBudget,
    reservation: ReservationState,
}

enum ReservationState {
    None,
    Wanted(BoxFuture<'static, Result<Reservation, NoMemory>>),
    Taken(Reservation),
    /// A piece that is larger than its reservation and waits for more memory.
    Longer(Option<Bytes>, BoxFuture<'static, Result<Reservation, NoMemory>>),
}

impl CountedBody {
    fn want(&self, bytes: usize) -> BoxFuture<'static, Result<Reservation, NoMemory>> {
        let budget = self.budget.clone();
        async move { budget.hold_with_timeout(bytes).await }.boxed()
    }
}

impl hyper::body::Body for CountedBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        if let Some(first) = self.first.take() {
            return Poll::Ready(Some(first));
        }
        loop {
            match &mut self.reservation {
                ReservationState::None => self.reservation = ReservationState::Wanted(self.want(PIECE)),
                ReservationState::Wanted(wanted) => {
                    let held = std::task::ready!(wanted.poll_unpin(context)).map_err(axum::Error::new)?;
                    self.reservation = ReservationState::Taken(held);
                }
                ReservationState::Longer(data, wanted) => {
                    let held = std::task::ready!(wanted.poll_unpin(context)).map_err(axum::Error::new)?;
                    let data = data.take().unwrap_or_default();
                    self.reservation = ReservationState::None;
                    return Poll::Ready(Some(Ok(Frame::data(held.with(data)))));
                }
                ReservationState::Taken(_) => {
                    let frame = std::task::ready!(Pin::new(&mut self.body).poll_frame(context));
                    let ReservationState::Taken(held) =
                        std::mem::replace(&mut self.reservation, ReservationState::None)
                    else {
                        unreachable!("the match arm requires `ReservationState::Taken`")
                    };
                    let Some(Ok(frame)) = frame else { return Poll::Ready(frame) };
                    return match frame.into_data() {
                        Ok(data) if data.len() <= held.bytes() => {
                            Poll::Ready(Some(Ok(Frame::data(if data.len() > FREE { held.with(data) } else { data }))))
                        }
                        Ok(data) => {
                            drop(held);
                            let wanted = self.want(data.len());
                            self.reservation = ReservationState::Longer(Some(data), wanted);
                            continue;
                        }
                        Err(frame) => Poll::Ready(Some(Ok(frame))),
                    };
                }
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.first.is_none() && matches!(self.reservation, ReservationState::None) && self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        // The hint includes the first piece, which was already taken out of the body.
        let taken = self.first.as_ref().and_then(|first| first.as_ref().ok()).and_then(Frame::data_ref);
        let taken = taken.map_or(0, Bytes::len) as u64;
        let mut hint = self.body.size_hint();
        match hint.exact() {
            Some(rest) => hint.set_exact(rest + taken),
            None => hint.set_lower(hint.lower() + taken),
        }
        hint
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: usize = 1024 * 1024;

    async fn text_of(body: Body) -> Vec<Bytes> {
        let mut body = body;
        let mut pieces = Vec::new();
        while let Some(frame) = body.frame().await {
            pieces.extend(frame.expect("a frame").into_data());
        }
        pieces
    }

    #[test]
    fn an_address_takes_its_share_and_leaves_the_rest_to_others() {
        let memory = Arc::new(Memory::new(4 * MIB, MIB, Duration::MAX));
        let [greedy, other] = [1, 2].map(|last| memory.budget_of(IpAddr::from([192, 0, 2, last])));
        let held: Vec<Reservation> = (0..16).map_while(|_| greedy.try_hold(MIB / 8)).collect();
        assert_eq!((held.len(), memory.held()), (8, MIB as u64));
        assert_eq!(memory.held_by_address(), [(IpAddr::from([192, 0, 2, 1]), MIB as u64)]);
        assert!(other.try_hold(MIB).is_some() && memory.common().try_hold(3 * MIB).is_some());
        assert!(memory.common().try_hold(4 * MIB).is_none());
        drop(held);
        assert_eq!((memory.held(), memory.held_by_address()), (0, Vec::new()));
        // A piece larger than a budget takes all of it instead of waiting forever.
        let large = greedy.try_hold(3 * MIB).expect("there is room");
        assert!(greedy.try_hold(1).is_none() && memory.held() == 3 * MIB as u64);
        assert!(other.try_hold(MIB).is_some() && other.try_hold(2 * MIB).is_none());
        drop(large);
        drop(greedy.try_hold(100 * MIB).expect("there is room"));
        assert!(greedy.try_hold(1).is_some());
    }

    #[test]
    fn a_share_of_0_is_no_limit_of_an_address() {
        let memory = Arc::new(Memory::new(4 * MIB, 0, Duration::MAX));
        let budget = memory.budget_of(IpAddr::from([192, 0, 2, 1]));
        let held: Vec<Reservation> = (0..64).map_while(|_| budget.try_hold(MIB / 8)).collect();
        assert_eq!((held.len(), memory.held()), (32, 4 * MIB as u64), "the total holds");
        drop(held);
        assert_eq!(budget.try_hold(100 * MIB).map(|_| ()), Some(()));
    }

    #[tokio::test]
    async fn bytes_keep_their_room_until_the_last_handle_is_gone() {
        let memory = Arc::new(Memory::new(MIB, MIB, Duration::MAX));
        let budget = memory.budget_of(IpAddr::from([192, 0, 2, 1]));
        let bytes = budget.hold(MIB).await.with(Bytes::from(vec![7; MIB]));
        let piece = bytes.slice(10..20);
        drop(bytes);
        assert!(budget.try_hold(1).is_none());
        assert!(budget.hold(1).now_or_never().is_none());
        drop(piece);
        assert!(budget.try_hold(MIB).is_some());
    }

    #[tokio::test]
    async fn answers_that_are_complete_are_refused_and_others_wait() {
        let memory = Arc::new(Memory::new(MIB, MIB, Duration::MAX));
        let budget = memory.budget_of(IpAddr::from([192, 0, 2, 1]));
        let all = budget.hold(MIB).await;
        let whole = |bytes: usize| Response::new(Body::from("x".repeat(bytes)));
        let small = count(whole(FREE), &budget, true);
        assert_eq!(text_of(small.into_body()).await.concat().len(), FREE);
        let written = count(whole(FREE + 1), &budget, false);
        assert_eq!(written.status(), axum::http::StatusCode::OK, "the response of a write is sent");
        let refused = count(whole(FREE + 1), &budget, true);
        assert_eq!(refused.status(), axum::http::StatusCode::SERVICE_UNAVAILABLE);
        let pieces = || {
            let pieces =
                [10, FREE + 1, 2 * PIECE, 5].map(|bytes| Ok::<_, std::io::Error>(Bytes::from(vec![b'x'; bytes])));
            Body::from_stream(futures_util::stream::iter(pieces))
        };
        let mut waits = Box::pin(text_of(count(Response::new(pieces()), &budget, true).into_body()));
        assert!((&mut waits).now_or_never().is_none());
        drop(all);
        let bodies = waits.await;
        assert_eq!(bodies.iter().map(Bytes::len).collect::<Vec<_>>(), [10, FREE + 1, 2 * PIECE, 5]);
        // The short pieces aren't counted.
        assert_eq!(memory.held(), 3 * PIECE as u64);
        drop(bodies);
        assert_eq!(memory.held(), 0);
    }
}
