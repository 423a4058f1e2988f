//! What can befall an arena: a test for each. After each of them, all that clients were told is there, once.

use std::time::{Duration, Instant};

use arena_testkit::{Client, Player};
use serde_json::{Value, json};

use crate::games::now;
use crate::load::under_load;
use crate::nodes::{Cluster, Plan, Sharing};

/// How long something stands still or is gone: longer than clients wait, and than nodes try before they say that it is away.
const GONE: Duration = Duration::from_secs(5);

#[test]
fn a_node_alone_is_killed_and_started_again() {
    let mut cluster = Cluster::start(Plan::ALONE);
    under_load(&mut cluster, false, |cluster, clock| {
        for percent in [30, 60] {
            clock.until_percent(percent);
            cluster.kill(0);
            cluster.start_node(0);
        }
    });
    cluster.end();
}

#[test]
fn one_of_three_nodes_is_killed_and_comes_back() {
    let mut cluster = Cluster::start(Plan::THREE);
    under_load(&mut cluster, false, |cluster, clock| {
        for (node, percent) in [(0, 20), (2, 50)] {
            clock.until_percent(percent);
            cluster.kill(node);
            clock.until_percent(percent + 20);
            cluster.start_node(node);
        }
    });
    cluster.end();
}

#[test]
fn a_node_that_stood_still_does_no_harm_when_it_goes_on() {
    let mut cluster = Cluster::start(Plan::THREE);
    under_load(&mut cluster, false, |cluster, clock| {
        clock.a_moment();
        cluster.freeze(1);
        // For a while clients go on sending it requests, which it finds when it goes on, long after they were made elsewhere.
        clock.a_moment();
        cluster.is_up(1, false);
        clock.at_least(GONE);
        cluster.thaw(1);
        clock.a_moment();
    });
    cluster.end();
}

#[test]
fn all_nodes_are_replaced_one_after_the_other() {
    let mut cluster = Cluster::start(Plan::THREE);
    under_load(&mut cluster, false, |cluster, clock| {
        for node in 0..cluster.len() {
            clock.until_percent(u32::try_from(node).unwrap() * 30 + 10);
            cluster.stop(node);
            cluster.start_node(node);
        }
    });
    cluster.end();
}

#[test]
fn the_database_crashes_and_comes_back() {
    let mut cluster = Cluster::start(Plan::THREE);
    under_load(&mut cluster, false, |cluster, clock| {
        for percent in [20, 60] {
            clock.until_percent(percent);
            cluster.postgres().crash();
            cluster.postgres().start_again();
        }
    });
    cluster.end();
}

#[test]
fn the_database_is_gone_for_a_while() {
    let mut cluster = Cluster::start(Plan::THREE);
    under_load(&mut cluster, false, |cluster, clock| {
        clock.a_moment();
        cluster.postgres().crash();
        clock.at_least(GONE);
        cluster.postgres().start_again();
        for node in 0..cluster.len() {
            cluster.until_ready(node);
        }
        clock.a_moment();
    });
    cluster.end();
}

#[test]
fn nats_is_started_again_and_is_gone_for_a_while() {
    let mut cluster = Cluster::start(Plan::THREE);
    under_load(&mut cluster, false, |cluster, clock| {
        clock.until_percent(25);
        cluster.nats().restart();
        clock.until_percent(50);
        cluster.nats().stop();
        clock.at_least(Duration::from_secs(2));
        cluster.nats().start_again();
        clock.a_moment();
    });
    cluster.end();
}

#[test]
fn connections_are_cut_between_commits_and_their_answers() {
    // Without NATS, so that this way is under load as well; and with one node that has the database for itself.
    for plan in [Plan { sharing: Sharing::Polling, ..Plan::THREE }, Plan::ALONE] {
        let mut cluster = Cluster::start(Plan { proxied: true, ..plan });
        under_load(&mut cluster, false, |cluster, clock| {
            for percent in (10..90).step_by(10) {
                clock.until_percent(percent);
                cluster.proxy(percent as usize / 10 % cluster.len()).cut_a_commit();
            }
        });
        let cut: usize = (0..cluster.len()).map(|node| cluster.proxy(node).cut()).sum();
        assert!(cut > 2, "only {cut} commits were cut off");
        cluster.end();
    }
}

#[test]
fn of_the_same_move_at_two_nodes_one_is_taken() {
    let mut cluster = Cluster::start(Plan::THREE);
    under_load(&mut cluster, true, |_, _| {});
    cluster.end();
}

#[test]
fn clocks_that_are_ten_minutes_apart_are_nobodys_business() {
    let mut cluster = Cluster::start(Plan { auth: true, clocks_off_s: &[600, -600], ..Plan::THREE });
    under_load(&mut cluster, false, |_, _| {});
    for node in 0..cluster.len() {
        a_deadline_passes_once(&cluster, node);
    }
    cluster.end();
}

/// A game of chess that begins at `node` and in which nobody moves: all nodes tell that the time is up, when it is, and once.
fn a_deadline_passes_once(cluster: &Cluster, node: usize) {
    const TURN: Duration = Duration::from_secs(2);
    let begins = cluster.client(node);
    let created = begins.post("/api/challenges/chess", &json!({ "options": { "turnMs": 2_000 } })).ok();
    let session = created["id"].as_str().unwrap();
    for (seat, invite) in (1..).zip(created["invites"].as_array().unwrap()) {
        let joined = begins.post("/api/arena/join", &Player::new(seat).signed_join(invite.as_str().unwrap(), now()));
        assert_eq!(joined.status, 200, "{}", joined.text());
    }
    let (began, began_at) = (Instant::now(), now());
    let asker = cluster.client((node + 1) % cluster.len());
    let log = loop {
        let log = asker.get(&format!("/api/arena/sync?channel={session}&index=4&wait=20")).ok();
        if !log["messages"].as_array().unwrap().is_empty() {
            break log;
        }
        assert!(began.elapsed() < 10 * TURN, "the deadline doesn't pass");
    };
    let late = began.elapsed().saturating_sub(TURN);
    assert!(began.elapsed() >= TURN - Duration::from_millis(500) && late < GONE, "after {:?}: {log}", began.elapsed());
    let whole = |client: &Client| -> Vec<Value> {
        let log = client.get(&format!("/api/arena/sync?channel={session}")).ok();
        log["messages"].as_array().unwrap().clone()
    };
    let logs: Vec<Vec<Value>> = (0..cluster.len()).map(|node| whole(&cluster.client(node))).collect();
    assert!(logs.iter().all(|log| *log == logs[0]), "{logs:#?}");
    let times =
        |text: &str| logs[0].iter().filter(|message| message["content"].as_str().unwrap().contains(text)).count();
    assert_eq!((times("\"disqualified\""), times("Game ended.")), (1, 1), "{logs:#?}");
    let stamps: Vec<i64> = logs[0].iter().map(|message| message["timestamp"].as_i64().unwrap()).collect();
    let off = |stamp: &i64| (stamp - began_at.0).unsigned_abs();
    assert!(stamps.iter().all(|stamp| off(stamp) < 30_000), "stamped {stamps:?}, and it is {}", began_at.0);
}
