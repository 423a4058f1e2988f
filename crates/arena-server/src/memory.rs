//! A bound on the bytes that wait in memory for slow clients: answers that aren't read, and requests that arrive slowly.
//!
//! Each connection may hold [`FREE`] bytes without asking. Bytes beyond that hold a permit until the socket has taken them
//! (docs/decisions/0035).

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::Body;
use axum::response::Response;
use bytes::Bytes;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use http_body_util::BodyExt;
use hyper::body::{Body as _, Frame, SizeHint};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::error::ApiError;

/// Bytes of a piece of an answer, or of a body that arrives, that aren't counted: what every connection may take.
pub(crate) const FREE: usize = 32 * 1024;

/// Room that is taken for the next piece of an answer before it is made. A longer piece takes more.
const PIECE: usize = 64 * 1024;

/// Bytes of a permit: semaphores count units of this size.
const UNIT: usize = 1024;

/// The bytes that may wait in all.
#[derive(Debug)]
pub(crate) struct Memory {
    total: Arc<Semaphore>,
    total_units: u32,
    /// Unset if addresses have no limit of their own.
    share_units: Option<u32>,
    /// The time for which an answer waits for room.
    patience: Duration,
    /// Bytes that wait at the moment.
    held: Arc<AtomicU64>,
}

/// The part of one address. Clones are handles to the same one.
#[derive(Debug, Clone)]
pub(crate) struct Share {
    memory: Arc<Memory>,
    /// Unset for addresses without a limit of their own.
    own: Option<Arc<Semaphore>>,
}

/// Room that is taken until this is dropped.
#[derive(Debug)]
pub(crate) struct Held {
    bytes: usize,
    /// Bytes of the permits: fewer than asked for, if that is more than there can ever be.
    counted: u64,
    _own: Option<OwnedSemaphorePermit>,
    _total: OwnedSemaphorePermit,
    held: Arc<AtomicU64>,
}

impl Drop for Held {
    fn drop(&mut self) {
        self.held.fetch_sub(self.counted, Ordering::Relaxed);
    }
}

/// Bytes with the room that they take.
struct Owned {
    bytes: Bytes,
    _held: Held,
}

impl AsRef<[u8]> for Owned {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Held {
    /// Has `bytes` keep the room until the last handle to them is dropped, which is when the socket has taken them.
    pub(crate) fn with(self, bytes: Bytes) -> Bytes {
        Bytes::from_owner(Owned { bytes, _held: self })
    }

    /// The number of bytes that there is room for.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }
}

fn units(bytes: usize) -> u32 {
    u32::try_from(bytes.div_ceil(UNIT)).unwrap_or(u32::MAX)
}

impl Memory {
    /// Room for `total` bytes, of which an address may take `share`; 0 is no limit. An answer waits for room for `patience`.
    pub(crate) fn new(total: usize, share: usize, patience: Duration) -> Memory {
        // Less would not do for a single message.
        let total_units = units(total.max(PIECE)).min(u32::MAX / 2);
        let share_units = (share > 0).then(|| units(share.max(PIECE)).min(total_units));
        let total = Arc::new(Semaphore::new(total_units as usize));
        Memory { total, total_units, share_units, patience, held: Arc::default() }
    }

    /// The bytes that wait at the moment.
    pub(crate) fn held(&self) -> u64 {
        self.held.load(Ordering::Relaxed)
    }

    /// A new address's part.
    pub(crate) fn share(self: &Arc<Memory>) -> Share {
        let own = self.share_units.map(|units| Arc::new(Semaphore::new(units as usize)));
        Share { memory: Arc::clone(self), own }
    }

    /// The part of an address without a limit of its own.
    pub(crate) fn common(self: &Arc<Memory>) -> Share {
        Share { memory: Arc::clone(self), own: None }
    }
}

impl Share {
    /// The units that bytes take, but no more than can ever be had.
    fn clamp(&self, bytes: usize) -> u32 {
        let own = self.memory.share_units.filter(|_| self.own.is_some());
        units(bytes).min(own.unwrap_or(self.memory.total_units))
    }

    fn held(&self, bytes: usize, own: Option<OwnedSemaphorePermit>, total: OwnedSemaphorePermit) -> Held {
        let counted = total.num_permits() as u64 * UNIT as u64;
        self.memory.held.fetch_add(counted, Ordering::Relaxed);
        Held { bytes, counted, _own: own, _total: total, held: Arc::clone(&self.memory.held) }
    }

    /// Takes room, if there is enough at once.
    pub(crate) fn try_hold(&self, bytes: usize) -> Option<Held> {
        let units = self.clamp(bytes);
        let own = match &self.own {
            Some(own) => Some(Arc::clone(own).try_acquire_many_owned(units).ok()?),
            None => None,
        };
        let total = Arc::clone(&self.memory.total).try_acquire_many_owned(units).ok()?;
        Some(self.held(bytes, own, total))
    }

    /// Takes room, as soon as there is enough. All callers take the address's before the total, so they can't wait for each other.
    pub(crate) async fn hold(&self, bytes: usize) -> Held {
        let units = self.clamp(bytes);
        let open = "semaphores of memory are never closed";
        let own = match &self.own {
            Some(own) => Some(Arc::clone(own).acquire_many_owned(units).await.expect(open)),
            None => None,
        };
        let total = Arc::clone(&self.memory.total).acquire_many_owned(units).await.expect(open);
        self.held(bytes, own, total)
    }

    /// [`Share::hold`] for an answer.
    ///
    /// # Errors
    /// If there is no room for as long as a client may read nothing.
    pub(crate) async fn hold_patiently(&self, bytes: usize) -> Result<Held, NoRoom> {
        tokio::time::timeout(self.memory.patience, self.hold(bytes)).await.map_err(|_| NoRoom)
    }
}

/// There was no room for the next piece of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("too many bytes wait to be sent")]
pub(crate) struct NoRoom;

/// The refusal where there is no room.
pub(crate) fn busy() -> ApiError {
    let text = "too many bytes wait to be sent to this address or in all (limits.waiting_bytes); read the answers, and try again";
    ApiError::busy(text)
}

/// Marks an answer whose body takes its room by itself.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Counted;

/// Has an answer take room for what of it waits in memory. An answer that is complete, large, and for which there is no room becomes a refusal
/// if `may_refuse`; the answer to a write goes out uncounted, since the write has been done.
pub(crate) fn count(response: Response, share: &Share, may_refuse: bool) -> Response {
    let is_small = response.body().size_hint().exact().is_some_and(|bytes| bytes <= FREE as u64);
    if is_small || response.extensions().get::<Counted>().is_some() {
        return response;
    }
    let (parts, mut body) = response.into_parts();
    // A piece that is ready now is in memory already. The rest is made as it is asked for.
    let first = match body.frame().now_or_never() {
        Some(Some(Ok(frame))) if frame.data_ref().is_some_and(|data| data.len() > FREE) => {
            let bytes = frame.data_ref().map_or(0, Bytes::len);
            match share.try_hold(bytes) {
                Some(held) => Some(Ok(frame.map_data(|data| held.with(data)))),
                None if may_refuse => return axum::response::IntoResponse::into_response(busy()),
                None => Some(Ok(frame)),
            }
        }
        Some(Some(first)) => Some(first),
        Some(None) => return Response::from_parts(parts, Body::empty()),
        None => None,
    };
    Response::from_parts(parts, Body::new(CountedBody { first, body, share: share.clone(), room: Room::None }))
}

/// A body whose pieces take room before they are made.
struct CountedBody {
    first: Option<Result<Frame<Bytes>, axum::Error>>,
    body: Body,
    share: Share,
    room: Room,
}

enum Room {
    None,
    Wanted(BoxFuture<'static, Result<Held, NoRoom>>),
    Taken(Held),
    /// A piece that is longer than the room for it waits for more.
    Longer(Option<Bytes>, BoxFuture<'static, Result<Held, NoRoom>>),
}

impl CountedBody {
    fn want(&self, bytes: usize) -> BoxFuture<'static, Result<Held, NoRoom>> {
        let share = self.share.clone();
        async move { share.hold_patiently(bytes).await }.boxed()
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
            match &mut self.room {
                Room::None => self.room = Room::Wanted(self.want(PIECE)),
                Room::Wanted(wanted) => {
                    let held = std::task::ready!(wanted.poll_unpin(context)).map_err(axum::Error::new)?;
                    self.room = Room::Taken(held);
                }
                Room::Longer(data, wanted) => {
                    let held = std::task::ready!(wanted.poll_unpin(context)).map_err(axum::Error::new)?;
                    let data = data.take().unwrap_or_default();
                    self.room = Room::None;
                    return Poll::Ready(Some(Ok(Frame::data(held.with(data)))));
                }
                Room::Taken(_) => {
                    let frame = std::task::ready!(Pin::new(&mut self.body).poll_frame(context));
                    let Room::Taken(held) = std::mem::replace(&mut self.room, Room::None) else {
                        unreachable!("the room was there a moment ago")
                    };
                    let Some(Ok(frame)) = frame else { return Poll::Ready(frame) };
                    return match frame.into_data() {
                        Ok(data) if data.len() <= held.bytes() => {
                            Poll::Ready(Some(Ok(Frame::data(if data.len() > FREE { held.with(data) } else { data }))))
                        }
                        Ok(data) => {
                            drop(held);
                            let wanted = self.want(data.len());
                            self.room = Room::Longer(Some(data), wanted);
                            continue;
                        }
                        Err(frame) => Poll::Ready(Some(Ok(frame))),
                    };
                }
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.first.is_none() && matches!(self.room, Room::None) && self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        // The piece that was taken out of the body counts as well.
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
        let [greedy, other] = [memory.share(), memory.share()];
        let held: Vec<Held> = (0..16).map_while(|_| greedy.try_hold(MIB / 8)).collect();
        assert_eq!((held.len(), memory.held()), (8, MIB as u64));
        assert!(other.try_hold(MIB).is_some() && memory.common().try_hold(3 * MIB).is_some());
        assert!(memory.common().try_hold(4 * MIB).is_none());
        drop(held);
        assert_eq!(memory.held(), 0);
        // A piece that is larger than a share takes all of it, rather than wait for ever.
        let all = greedy.try_hold(100 * MIB).expect("there is room");
        assert!(greedy.try_hold(1).is_none());
        drop(all);
        assert!(greedy.try_hold(1).is_some());
    }

    #[test]
    fn a_share_of_0_is_no_limit_of_an_address() {
        let memory = Arc::new(Memory::new(4 * MIB, 0, Duration::MAX));
        let share = memory.share();
        let held: Vec<Held> = (0..64).map_while(|_| share.try_hold(MIB / 8)).collect();
        assert_eq!((held.len(), memory.held()), (32, 4 * MIB as u64), "the total holds");
        drop(held);
        assert_eq!(share.try_hold(100 * MIB).map(|_| ()), Some(()));
    }

    #[tokio::test]
    async fn bytes_keep_their_room_until_the_last_handle_is_gone() {
        let memory = Arc::new(Memory::new(MIB, MIB, Duration::MAX));
        let share = memory.share();
        let bytes = share.hold(MIB).await.with(Bytes::from(vec![7; MIB]));
        let piece = bytes.slice(10..20);
        drop(bytes);
        assert!(share.try_hold(1).is_none());
        assert!(share.hold(1).now_or_never().is_none());
        drop(piece);
        assert!(share.try_hold(MIB).is_some());
    }

    #[tokio::test]
    async fn answers_that_are_complete_are_refused_and_others_wait() {
        let memory = Arc::new(Memory::new(MIB, MIB, Duration::MAX));
        let share = memory.share();
        let all = share.hold(MIB).await;
        let small = count(crate::answer::json("x".repeat(FREE)), &share, true);
        assert_eq!(text_of(small.into_body()).await.concat().len(), FREE);
        let written = count(crate::answer::json("x".repeat(FREE + 1)), &share, false);
        assert_eq!(written.status(), axum::http::StatusCode::OK, "what was done is told");
        let refused = count(crate::answer::json("x".repeat(FREE + 1)), &share, true);
        assert_eq!(refused.status(), axum::http::StatusCode::SERVICE_UNAVAILABLE);
        let pieces = || {
            let pieces =
                [10, FREE + 1, 2 * PIECE, 5].map(|bytes| Ok::<_, std::io::Error>(Bytes::from(vec![b'x'; bytes])));
            Body::from_stream(futures_util::stream::iter(pieces))
        };
        let mut waits = Box::pin(text_of(count(Response::new(pieces()), &share, true).into_body()));
        assert!((&mut waits).now_or_never().is_none());
        drop(all);
        let told = waits.await;
        assert_eq!(told.iter().map(Bytes::len).collect::<Vec<_>>(), [10, FREE + 1, 2 * PIECE, 5]);
        // The short pieces aren't counted.
        assert_eq!(memory.held(), 3 * PIECE as u64);
        drop(told);
        assert_eq!(memory.held(), 0);
    }
}
