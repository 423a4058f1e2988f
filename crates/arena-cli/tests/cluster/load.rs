//! Load on a cluster during a fault, and the comparison of the clients' history with the final state.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use arena_testkit::TestRng;
use arena_testkit::history::{History, RequestOutcome, WriteOperation};
use serde_json::json;

use crate::call::{Caller, Field};
use crate::games::{self, Manners};
use crate::nodes::Cluster;
use crate::{settle, watch};

/// The number of concurrent games.
const TABLES: usize = 4;

/// The number of clients that chat in one session.
const TALKERS: usize = 3;

/// The number of subscribers of that session.
const WATCHERS: usize = 3;

/// The default duration of load.
const SHORT: Duration = Duration::from_secs(3);

/// Reads a number from an environment variable.
fn number(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{name} is not a number: {text}")))
}

/// Returns the total duration of the load, from `ARENA_FAULT_SECONDS` or else [`SHORT`].
pub fn length() -> Duration {
    number("ARENA_FAULT_SECONDS").map_or(SHORT, Duration::from_secs)
}

/// Returns the generator of random plans, and prints its seed. Another run with this seed makes the same plans, as far
/// as the timing allows.
pub fn rng() -> TestRng {
    let seed = number("ARENA_FAULT_SEED").unwrap_or_else(|| getrandom::u64().expect("the system has randomness"));
    tell(&format!("ARENA_FAULT_SEED={seed}"));
    TestRng(seed)
}

/// Prints a line for readers of the output.
#[expect(clippy::print_stdout, reason = "shown with `--nocapture`, and where a test fails")]
pub fn tell(what: &str) {
    println!("{what}");
}

/// The progress of the load.
pub struct Clock {
    began: Instant,
    length: Duration,
}

impl Clock {
    /// Waits until this percentage of the load's time has passed.
    pub fn until_percent(&self, percent: u32) {
        let at = self.began + self.length * percent / 100;
        thread::sleep(at.saturating_duration_since(Instant::now()));
    }

    /// Waits for this time, regardless of the load's duration.
    pub fn pass(&self, time: Duration) {
        thread::sleep(time);
    }

    /// Waits for a moment, which is longer in a long test.
    pub fn a_moment(&self) {
        self.pass(Duration::from_secs(1).max(self.length / 5));
    }

    /// Returns true if the load lasts long enough for slow faults.
    pub fn is_long(&self) -> bool {
        self.length > Duration::from_secs(20)
    }

    /// Returns true if this percentage of the load's time has passed.
    pub fn is_past(&self, percent: u32) -> bool {
        self.began.elapsed() > self.length * percent / 100
    }
}

/// Runs clients while `fault` happens, and fails if their history contradicts the final state. `fault` must leave all
/// nodes ready, because all are compared. Returns the number of requests without a conclusive answer, which clients
/// have repeated.
pub fn under_load(cluster: &mut Cluster, races: bool, fault: impl FnOnce(&mut Cluster, &Clock)) -> usize {
    under_load_for(length(), cluster, races, fault)
}

/// Runs clients for another duration than [`under_load`].
pub fn under_load_for(
    length: Duration,
    cluster: &mut Cluster,
    races: bool,
    fault: impl FnOnce(&mut Cluster, &Clock),
) -> usize {
    let mut rng = rng();
    let manners = Manners { auth: cluster.auth(), races };
    let field = Field::new(cluster.handles(), cluster.timeout());
    let (hall, invites) = open_hall(&field, &mut rng, manners);
    let heard = AtomicU64::new(u64::MAX);
    let began = Instant::now();
    thread::scope(|scope| {
        let players: Vec<_> = (0..TABLES)
            .map(|_| {
                let (field, mut rng) = (&field, rng.fork());
                scope.spawn(move || games::play_on(field, &mut rng, manners))
            })
            .collect();
        let talkers: Vec<_> = (0..TALKERS)
            .map(|talker| {
                let (field, rng, hall, seat) = (&field, rng.fork(), &hall, &invites[talker % 2]);
                scope.spawn(move || talk(field, rng, hall, seat))
            })
            .collect();
        for _ in 0..WATCHERS {
            let (caller, hall, heard) = (Caller::new(&field, rng.fork()), hall.clone(), &heard);
            scope.spawn(move || watch::until_long(caller, hall, heard));
        }

        // A panic is caught, so that the clients are stopped after a failure as well.
        let failed = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            let clock = Clock { began, length };
            fault(cluster, &clock);
            clock.until_percent(100);
        }));
        field.closing.store(true, Ordering::SeqCst);
        let others: Vec<bool> = players.into_iter().chain(talkers).map(|client| client.join().is_ok()).collect();
        let length = Caller::new(&field, rng.fork()).read(&hall, "viewer", 1, false).len();
        heard.store(length as u64 + 1, Ordering::SeqCst);
        // The subscribers wait until they have received this number of messages.
        let (invite, key) = &invites[0];
        let mut last = Caller { key: key.clone(), ..Caller::new(&field, rng.fork()) };
        games::say(&mut last, &hall, invite, None, true);
        if let Err(failed) = failed {
            std::panic::resume_unwind(failed);
        }
        assert!(others.into_iter().all(|ended| ended), "a client has failed");
    });
    let loaded = began.elapsed();
    let (history, open) = field.close();
    tell(&account(&history, &open, loaded));
    settle::compare(cluster, &history);
    open.into_values().sum()
}

/// Creates a session in which both players have joined and can chat.
fn open_hall(field: &Field, rng: &mut TestRng, manners: Manners) -> (String, Vec<(String, Option<String>)>) {
    let mut caller = Caller::new(field, rng.fork());
    let (hall, invites) = games::open(&mut caller, "psi", &json!({ "range": [100, field.number()] }));
    let seats = invites.into_iter().zip(0..).map(|(invite, user)| {
        let key =
            games::join(&mut caller, &invite, user, Manners { races: false, ..manners }).expect("the seat is free");
        (invite, key)
    });
    (hall, seats.collect())
}

/// Chats until the field is closing. Most messages are repeated until they are acknowledged.
fn talk(field: &Field, rng: TestRng, hall: &str, (invite, key): &(String, Option<String>)) {
    let mut caller = Caller { key: key.clone(), ..Caller::new(field, rng) };
    let mut next = 1;
    while !field.is_closing() {
        let insists = caller.rng.chance(80);
        games::say(&mut caller, hall, invite, None, insists);
        if caller.rng.chance(30) {
            // The read may go to any node, where the acknowledged message must be visible.
            let messages = caller.read(hall, invite, next, false);
            next = messages.last().map_or(next, |message| message.index + 1);
        }
    }
}

/// Returns a summary of the operations, and of the delays until subscribers received messages.
fn account(history: &History, open: &BTreeMap<String, usize>, loaded: Duration) -> String {
    let attempts = history.writes.iter().map(|write| write.attempts.len()).sum::<usize>();
    let said = history.writes.iter().filter_map(|write| {
        let WriteOperation::Say { session, content, .. } = &write.operation else { return None };
        let taken = write.attempts.iter().find(|attempt| matches!(attempt.outcome, RequestOutcome::Accepted(_)))?;
        Some(((session, content), taken))
    });
    let said: BTreeMap<_, _> = said.collect();
    // The delays are from the request to one node to the arrival from another.
    let mut delays: Vec<Duration> = Vec::new();
    for subscription in &history.subscriptions {
        for delivery in &subscription.deliveries {
            let content = delivery.message.content.as_ref();
            let taken = content.and_then(|content| said.get(&(&subscription.channel, content)));
            delays.extend(
                taken.filter(|taken| taken.node != delivery.node).map(|taken| delivery.at.saturating_sub(taken.sent)),
            );
        }
    }
    delays.sort_unstable();
    let percentile = |percent: usize| delays.get(delays.len() * percent / 100).copied().unwrap_or_default();
    format!(
        "{:.1} s: {} writes ({attempts} attempts, inconclusive: {open:?}), {} reads, {} streams; {} messages received from another \
         node after {:?} (median), {:?} (90 %), {:?} (99 %)",
        loaded.as_secs_f64(),
        history.writes.len(),
        history.reads.len(),
        history.subscriptions.len(),
        delays.len(),
        percentile(50),
        percentile(90),
        percentile(99),
    )
}
