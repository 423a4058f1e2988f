//! Long work whose result all callers share that wait for it at the same time.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::Arc;

use futures_util::FutureExt;
use futures_util::future::{BoxFuture, Shared, WeakShared};
use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Work by key. Callers of a key that arrive while its work runs or waits for a place share the next result. So a result
/// is never older than the arrival of its caller, and no result has to be kept or invalidated.
pub(crate) struct SharedWork<K: Eq + Hash, T> {
    /// The places for work that runs at the same time.
    places: Arc<Semaphore>,
    queues: Mutex<HashMap<K, WorkQueue<T>>>,
}

/// The callers of one key.
struct WorkQueue<T> {
    count: usize,
    /// Held while work of this key runs.
    turn: Arc<tokio::sync::Mutex<()>>,
    /// The work that hasn't begun. Only its callers keep it, so it ends with the last of them.
    next: Option<WeakShared<BoxFuture<'static, T>>>,
}

/// One caller in a queue. Dropping the last one removes the queue.
struct QueuedCaller<'w, K: Eq + Hash, T> {
    work: &'w SharedWork<K, T>,
    key: &'w K,
}

impl<K: Eq + Hash, T> Drop for QueuedCaller<'_, K, T> {
    fn drop(&mut self) {
        let mut queues = self.work.queues.lock();
        let Some(queue) = queues.get_mut(self.key) else { return };
        queue.count -= 1;
        if queue.count == 0 {
            queues.remove(self.key);
        }
    }
}

impl<K, T> SharedWork<K, T>
where
    K: Clone + Eq + Hash + Send + Sync + 'static,
    T: Clone + Send + Sync + 'static,
{
    /// At most `most` keys work at the same time.
    pub(crate) fn new(most: usize) -> SharedWork<K, T> {
        SharedWork { places: Arc::new(Semaphore::new(most)), queues: Mutex::default() }
    }

    /// Returns the result of `work`, or of the equal work of another caller that hadn't begun on arrival. `work` gets its
    /// place, which must be kept until it is done.
    pub(crate) async fn run<F>(
        self: &Arc<Self>,
        key: &K,
        work: impl FnOnce(OwnedSemaphorePermit) -> F + Send + 'static,
    ) -> T
    where
        F: Future<Output = T> + Send + 'static,
    {
        let _caller = self.enter(key);
        self.join(key, work).await
    }

    fn enter<'w>(&'w self, key: &'w K) -> QueuedCaller<'w, K, T> {
        let new = || WorkQueue { count: 0, turn: Arc::default(), next: None };
        self.queues.lock().entry(key.clone()).or_insert_with(new).count += 1;
        QueuedCaller { work: self, key }
    }

    /// Returns the work of the queue that hasn't begun, or adds this one. The caller is in the queue.
    fn join<F>(
        self: &Arc<Self>,
        key: &K,
        work: impl FnOnce(OwnedSemaphorePermit) -> F + Send + 'static,
    ) -> Shared<BoxFuture<'static, T>>
    where
        F: Future<Output = T> + Send + 'static,
    {
        let mut queues = self.queues.lock();
        let queue = queues.get_mut(key).expect("the caller is in the queue");
        if let Some(next) = queue.next.as_ref().and_then(WeakShared::upgrade) {
            return next;
        }
        let (all, own_key, turn) = (Arc::clone(self), key.clone(), Arc::clone(&queue.turn));
        let next = async move {
            let _turn = turn.lock_owned().await;
            let place = Arc::clone(&all.places).acquire_owned().await.expect("the places are never closed");
            if let Some(queue) = all.queues.lock().get_mut(&own_key) {
                queue.next = None;
            }
            work(place).await
        };
        let next = next.boxed().shared();
        queue.next = next.downgrade();
        next
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    /// Work that needs a permit of `gate`, and returns the number of works that have begun, its own included.
    struct Counted {
        work: Arc<SharedWork<&'static str, usize>>,
        begun: Arc<AtomicUsize>,
        gate: Arc<Semaphore>,
    }

    impl Counted {
        fn new(places: usize) -> Counted {
            Counted {
                work: Arc::new(SharedWork::new(places)),
                begun: Arc::default(),
                gate: Arc::new(Semaphore::new(0)),
            }
        }

        /// Returns a caller that has arrived.
        fn arrive(&self, key: &'static str) -> BoxFuture<'static, usize> {
            let Counted { work, begun, gate } = self;
            let (work, begun, gate) = (Arc::clone(work), Arc::clone(begun), Arc::clone(gate));
            let run = async move {
                let wait = move |place| async move {
                    let number = begun.fetch_add(1, Ordering::Relaxed) + 1;
                    gate.acquire().await.expect("an open gate").forget();
                    drop(place);
                    number
                };
                work.run(&key, wait).await
            };
            let mut run = run.boxed();
            assert!((&mut run).now_or_never().is_none(), "the gate is closed");
            run
        }

        fn begun(&self) -> usize {
            self.begun.load(Ordering::Relaxed)
        }
    }

    #[tokio::test]
    async fn callers_that_wait_share_one_result_which_begins_after_their_arrival() {
        let counted = Counted::new(8);
        let first = counted.arrive("a");
        let waiting: Vec<_> = (0..40).map(|_| counted.arrive("a")).collect();
        let other = counted.arrive("b");
        assert_eq!(counted.begun(), 2, "each key has one work at a time");
        counted.gate.add_permits(2);
        assert_eq!((first.await, other.await), (1, 2));
        counted.gate.add_permits(1);
        assert_eq!(futures_util::future::join_all(waiting).await, [3; 40]);
        assert!(counted.work.queues.lock().is_empty());
    }

    #[tokio::test]
    async fn callers_that_leave_keep_neither_places_nor_queues() {
        let counted = Counted::new(1);
        let first = counted.arrive("a");
        let [same, other] = ["a", "b"].map(|key| counted.arrive(key));
        let patient = counted.arrive("b");
        let last = counted.arrive("c");
        drop((same, other));
        assert_eq!(counted.work.queues.lock().len(), 3);
        // Others finish the work that a leaving caller has added.
        counted.gate.add_permits(3);
        assert_eq!((first.await, patient.await, last.await), (1, 2, 3));
        let (left, late) = (counted.arrive("a"), counted.arrive("b"));
        drop(left);
        counted.gate.add_permits(1);
        assert_eq!(late.await, 5);
        assert!(counted.work.queues.lock().is_empty());
    }
}
