//! The comparison after the load: every node shows the same state, which matches the clients' history.

use std::thread;
use std::time::{Duration, Instant};

use arena_testkit::history::{FaultKind, FinalState, History, ObservedMessage, WriteOperation, check};
use arena_testkit::{Client, known_admin_token};
use serde_json::json;

use crate::nodes::Cluster;

/// The time limit for leaderboards and counts to include the results of other nodes. It is far longer than needed.
const BEHIND: Duration = Duration::from_secs(10);

/// Fails if the state of any node contradicts the clients' history.
pub fn compare(cluster: &Cluster, history: &History) {
    for node in 0..cluster.len() {
        cluster.until_ready(node);
    }
    let mut played: Vec<&String> = history
        .writes
        .iter()
        .filter_map(|write| match &write.operation {
            WriteOperation::Create { challenge, .. } => Some(challenge),
            _ => None,
        })
        .collect();
    played.sort_unstable();
    played.dedup();
    let mut faults = Vec::new();
    for node in 0..cluster.len() {
        let client = cluster.client(node);
        let mut final_state = stored(&client);
        // Attackers play other challenges, and their sessions aren't in the history.
        final_state.retain_challenges(&played);
        if node + 1 == cluster.len() {
            final_state.mended = mended(&client);
        }
        let until = Instant::now() + BEHIND;
        let found = loop {
            take_counts(&mut final_state, &client, &played);
            let found = check(history, &final_state);
            if found.iter().all(|fault| fault.kind != FaultKind::Miscounted) || Instant::now() > until {
                break found;
            }
            // A node polls the counts of other nodes, and doesn't announce when it has them.
            thread::sleep(Duration::from_millis(100));
        };
        faults.extend(found.into_iter().map(|fault| format!("node {node}: {fault}")));
    }
    let all = faults.len();
    faults.truncate(20);
    assert!(faults.is_empty(), "{all} faults: {faults:#?}");
}

/// Reads sessions and channels from a node's store.
fn stored(client: &Client) -> FinalState {
    let export = client.get_with(known_admin_token().reveal(), "/api/admin/export");
    assert_eq!(export.status, 200, "{}", export.text());
    let mut final_state = FinalState::of_export(export.text());
    let invites = client.get("/api/chat/sync?channel=invites").ok();
    let invites =
        invites["messages"].as_array().expect("messages are a list").iter().map(ObservedMessage::of).collect();
    final_state.channels.insert("invites".to_owned(), invites);
    final_state
}

/// Reads a node's counts, from all routes that show them.
fn take_counts(final_state: &mut FinalState, client: &Client, played: &[&String]) {
    final_state.take_stats(&client.get("/api/stats").ok());
    for challenge in played {
        final_state.take_boards(challenge, &client.get(&format!("/api/scoring/{challenge}?strategy=average")).ok());
    }
    let total = |path: String| client.get(&path).ok()["total"].as_u64().expect("total is a number");
    for status in ["open", "active", "ended"] {
        let of_type = |challenge: &&String| total(format!("/api/challenges/{challenge}?status={status}&limit=1"));
        final_state.listed.insert(status.to_owned(), played.iter().map(of_type).sum());
    }
    let users: Vec<String> = final_state.right_histories().into_keys().collect();
    for user in users {
        let path = format!("/api/users/{}/challenges?limit=1", user.replace(' ', "%20"));
        final_state.histories.insert(user, total(path));
    }
}

/// Returns the players whose standings didn't match their games.
fn mended(client: &Client) -> Vec<String> {
    let counted = client.post_with(known_admin_token().reveal(), "/api/admin/recompute", &json!({})).ok();
    let wrong = counted["wrong"].as_array().expect("a list of users").iter();
    wrong.map(|user| user.as_str().expect("a user").to_owned()).collect()
}
