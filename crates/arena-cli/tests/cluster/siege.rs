//! Everything at once: nodes are attacked, fail and are upgraded while others play.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use arena_testkit::attacks::Target;

use crate::faults::inject_faults;
use crate::load::{length, tell, under_load_for};
use crate::nodes::{Cluster, Plan};

/// The maximum duration of a round. The clients' history of a round is in memory.
const ROUND: Duration = Duration::from_secs(300);

/// The maximum memory of a node, in bytes. Debug builds need more than release builds.
const MEMORY: u64 = 512 * 1024 * 1024;

/// Each honest request must succeed, also those that clients repeat because of a fault. A refusal of an honest player
/// for a limit fails the test, because its client expects none.
#[test]
fn games_end_right_while_nodes_are_attacked_and_fail_and_are_upgraded() {
    let began = Instant::now();
    loop {
        play_a_round(ROUND.min(length()));
        if began.elapsed() >= length() {
            break;
        }
    }
}

fn play_a_round(length: Duration) {
    let plan = Plan { attacked: true, proxied: true, drain_ms: 500, timeout: Duration::from_secs(10), ..Plan::THREE };
    let mut cluster = Cluster::start(plan);
    let (handles, next) = (cluster.handles(), AtomicUsize::new(0));
    let target = Target::new(move || {
        let up = || handles.iter().filter(|handle| handle.up.load(Ordering::Relaxed));
        let node = next.fetch_add(1, Ordering::Relaxed) % up().count().max(1);
        up().nth(node).unwrap_or(&handles[0]).client()
    });
    under_load_for(length, &mut cluster, false, |cluster, clock| {
        target.attack_during(|| {
            inject_faults(cluster, clock, 40, 2);
            cluster.upgrade();
            inject_faults(cluster, clock, 100, 2);
        });
    });
    let mut codes = Vec::new();
    for (code, refused) in target.refusals() {
        if [413, 429, 507].contains(&refused.status) {
            assert!(refused.error.contains("(limits."), "{code}: {refused:?}");
            codes.push(format!("{code} {}", refused.count));
        }
    }
    tell(&format!("refusals of the attacker: {}", codes.join(", ")));
    assert!(!codes.is_empty(), "the attacker was refused nothing");
    for node in 0..cluster.len() {
        let memory = cluster.memory(node);
        assert!(memory < MEMORY, "node {node} has used {memory} bytes");
    }
    cluster.end();
}
