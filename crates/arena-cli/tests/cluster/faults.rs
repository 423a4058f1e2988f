//! Faults of nodes, database, network and clocks, with one test for each fault. After each fault, every acknowledged
//! write must exist exactly once.

use std::thread;
use std::time::{Duration, Instant};

use arena_engine::Environment;
use arena_testkit::{Client, Player};
use serde_json::{Value, json};

use crate::load::{Clock, rng, tell, under_load};
use crate::nodes::{Cluster, Plan, Sharing};
use crate::proxy::SILENCE;

/// Returns the duration of an outage, which is longer than a client's timeout. In a long test, it is also longer than
/// the timeouts between Postgres and nodes.
fn gone(clock: &Clock) -> Duration {
    if clock.is_long() { Duration::from_secs(30) } else { Duration::from_secs(3) }
}

/// Plays on a new cluster while `fault` happens. Returns the number of requests without a conclusive answer.
pub fn survive(plan: Plan, fault: impl FnOnce(&mut Cluster, &Clock)) -> usize {
    let mut cluster = Cluster::start(plan);
    let open = under_load(&mut cluster, false, fault);
    cluster.end();
    open
}

#[test]
fn a_node_alone_is_killed_and_started_again() {
    survive(Plan::ALONE, |cluster, clock| {
        for percent in [30, 60] {
            clock.until_percent(percent);
            cluster.kill(0);
            cluster.start_node(0);
        }
    });
}

#[test]
fn one_of_three_nodes_is_killed_and_comes_back() {
    survive(Plan::THREE, |cluster, clock| {
        for (node, percent) in [(0, 20), (2, 50)] {
            clock.until_percent(percent);
            cluster.kill(node);
            clock.until_percent(percent + 20);
            cluster.start_node(node);
        }
    });
}

#[test]
fn a_suspended_node_does_no_harm_when_it_continues() {
    survive(Plan::THREE, |cluster, clock| {
        clock.a_moment();
        cluster.freeze(1);
        // For a moment, clients still send requests to the suspended node. It reads them when it continues, after other
        // nodes have handled the repeated requests.
        clock.a_moment();
        cluster.is_up(1, false);
        clock.pass(gone(clock));
        cluster.thaw(1);
        clock.a_moment();
    });
}

#[test]
fn all_nodes_are_replaced_one_after_the_other_and_no_request_fails() {
    let open = survive(Plan { drain_ms: 500, timeout: Duration::from_secs(30), ..Plan::THREE }, |cluster, clock| {
        for node in 0..cluster.len() {
            clock.until_percent(u32::try_from(node).unwrap() * 30 + 10);
            cluster.stop(node);
            cluster.start_node(node);
        }
    });
    assert_eq!(open, 0, "requests with lost answers");
}

#[test]
fn the_database_crashes_and_comes_back() {
    survive(Plan::THREE, |cluster, clock| {
        for percent in [20, 60] {
            clock.until_percent(percent);
            cluster.postgres().crash();
            cluster.postgres().start_again();
        }
    });
}

#[test]
fn the_database_is_stopped_for_a_while() {
    survive(Plan::THREE, |cluster, clock| {
        clock.a_moment();
        cluster.postgres().crash();
        clock.pass(gone(clock));
        cluster.postgres().start_again();
        for node in 0..cluster.len() {
            cluster.until_ready(node);
        }
        clock.a_moment();
    });
}

#[test]
fn a_standby_takes_over_from_a_killed_primary() {
    // The test runs with one node that has exclusive use of the database, and with two that share it.
    for plan in [Plan::ALONE, Plan { nodes: 2, ..Plan::THREE }] {
        survive(Plan { standby: true, ..plan }, |cluster, clock| {
            clock.until_percent(40);
            cluster.fail_over();
            let promoted = Instant::now();
            for node in 0..cluster.len() {
                cluster.until_ready(node);
            }
            tell(&format!("all nodes use the standby after {:?}", promoted.elapsed()));
            clock.a_moment();
        });
    }
}

#[test]
fn nats_is_restarted_and_is_stopped_for_a_while() {
    survive(Plan::THREE, |cluster, clock| {
        clock.until_percent(25);
        cluster.nats().restart();
        clock.until_percent(50);
        cluster.nats().stop();
        clock.pass(Duration::from_secs(1));
        cluster.nats().start_again();
        clock.a_moment();
    });
}

#[test]
fn connections_are_cut_between_commits_and_their_answers() {
    // The test runs with nodes that poll for changes, and with one node that has exclusive use of the database.
    for plan in [Plan { sharing: Sharing::Polling, ..Plan::THREE }, Plan::ALONE] {
        let mut cluster = Cluster::start(Plan { proxied: true, ..plan });
        under_load(&mut cluster, false, |cluster, clock| {
            for percent in (10..90).step_by(10) {
                clock.until_percent(percent);
                cluster.proxy(percent as usize / 10 % cluster.len()).cut_a_commit();
            }
        });
        let cut: usize = (0..cluster.len()).map(|node| cluster.proxy(node).done()).sum();
        assert!(cut > 2, "only {cut} commits were cut");
        cluster.end();
    }
}

#[test]
fn a_connection_that_falls_silent_in_a_transaction_blocks_the_others_only_briefly() {
    let mut cluster = Cluster::start(Plan { proxied: true, ..Plan::THREE });
    under_load(&mut cluster, false, |cluster, clock| {
        clock.a_moment();
        cluster.proxy(0).silence_a_transaction();
        clock.a_moment();
        cluster.is_up(0, false);
        // Postgres releases the locks of the silent connection after five seconds. Then the other nodes continue.
        clock.pass(SILENCE + Duration::from_secs(1));
        cluster.until_ready(0);
        cluster.is_up(0, true);
        clock.a_moment();
    });
    assert_eq!(cluster.proxy(0).done(), 1, "no connection was silenced");
    cluster.end();
}

#[test]
fn one_of_two_equal_moves_on_two_nodes_is_accepted() {
    let mut cluster = Cluster::start(Plan::THREE);
    under_load(&mut cluster, true, |_, _| {});
    cluster.end();
}

#[test]
fn wrong_and_jumping_clocks_do_no_harm() {
    let mut cluster = Cluster::start(Plan { auth: true, clocks_off_s: &[600, -600, 0], ..Plan::THREE });
    under_load(&mut cluster, false, |cluster, clock| {
        clock.until_percent(30);
        cluster.set_clock(2, 3600);
    });
    let clients: Vec<Client> = (0..cluster.len()).map(|node| cluster.client(node)).collect();
    thread::scope(|scope| {
        for node in 0..clients.len() {
            let clients = &clients;
            scope.spawn(move || a_deadline_passes_once(clients, node));
        }
    });
    cluster.end();
}

#[test]
fn random_faults_in_sequence_do_no_harm() {
    survive(Plan { proxied: true, ..Plan::THREE }, |cluster, clock| inject_faults(cluster, clock, 100, 4));
}

/// Injects random faults in sequence, at least `least`, until this percentage of the load's time has passed.
pub fn inject_faults(cluster: &mut Cluster, clock: &Clock, percent: u32, least: usize) {
    let mut rng = rng();
    let mut fates: Vec<String> = Vec::new();
    while fates.len() < least || !clock.is_past(percent) {
        let node = rng.below(cluster.len() as u64) as usize;
        let (fate, moment) = (rng.below(6), Duration::from_millis(rng.below(1_000)));
        let output = ["killed", "stopped", "frozen", "cut off", "database crashed", "NATS gone"][fate as usize];
        fates.push(format!("{output} {node}"));
        match fate {
            0 => cluster.kill(node),
            1 => cluster.stop(node),
            2 => cluster.freeze(node),
            3 => cluster.proxy(node).cut_a_commit(),
            4 => cluster.postgres().crash(),
            _ => cluster.nats().stop(),
        }
        clock.pass(moment);
        match fate {
            0 | 1 => cluster.start_node(node),
            2 => cluster.thaw(node),
            3 => {}
            4 => cluster.postgres().start_again(),
            _ => cluster.nats().start_again(),
        }
        clock.pass(moment);
    }
    tell(&fates.join(", "));
}

/// Creates a game of chess without moves on a node, the server of `clients[node]`. Checks that all nodes report the
/// missed deadline in time, and only once.
fn a_deadline_passes_once(clients: &[Client], node: usize) {
    const TURN: Duration = Duration::from_secs(2);
    let begins = clients[node];
    let created = begins.post("/api/challenges/chess", &json!({ "options": { "turnMs": 2_000 } })).ok();
    let session = created["id"].as_str().unwrap();
    let now = || Environment::system().now();
    let (began, began_at) = (Instant::now(), now());
    for (seat, invite) in (1..).zip(created["invites"].as_array().unwrap()) {
        let joined = begins.post("/api/arena/join", &Player::new(seat).signed_join(invite.as_str().unwrap(), now()));
        assert_eq!(joined.status, 200, "{}", joined.text());
    }
    let asker = clients[(node + 1) % clients.len()];
    let log = loop {
        let log = asker.get(&format!("/api/arena/sync?channel={session}&index=5&wait=20")).ok();
        if !log["messages"].as_array().unwrap().is_empty() {
            break log;
        }
        assert!(began.elapsed() < 10 * TURN, "the deadline doesn't pass");
    };
    let late = began.elapsed().saturating_sub(TURN);
    assert!(
        began.elapsed() >= TURN - Duration::from_millis(500) && late < 5 * TURN,
        "after {:?}: {log}",
        began.elapsed()
    );
    let whole = |client: &Client| -> Vec<Value> {
        let log = client.get(&format!("/api/arena/sync?channel={session}")).ok();
        log["messages"].as_array().unwrap().clone()
    };
    let logs: Vec<Vec<Value>> = clients.iter().map(whole).collect();
    assert!(logs.iter().all(|log| *log == logs[0]), "{logs:#?}");
    let times =
        |text: &str| logs[0].iter().filter(|message| message["content"].as_str().unwrap().contains(text)).count();
    assert_eq!((times("\"disqualified\""), times("Game ended.")), (1, 1), "{logs:#?}");
    let stamps: Vec<i64> = logs[0].iter().map(|message| message["timestamp"].as_i64().unwrap()).collect();
    let off = |stamp: &i64| (stamp - began_at.0).unsigned_abs();
    assert!(
        stamps.iter().all(|stamp| off(stamp) < 30_000),
        "timestamps are {stamps:?}, but the time is {}",
        began_at.0
    );
}
