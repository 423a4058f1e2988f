//! The configurations of load balancers in `examples/deploy`, with the real balancers in front of three nodes.

use std::time::{Duration, Instant};

use arena_testkit::{BalancerKind, known_admin_token};

use crate::faults::survive;
use crate::load::under_load;
use crate::nodes::{Cluster, Plan};

/// Plays games behind a balancer while a node is killed and comes back.
fn games_go_on_behind(balancer: BalancerKind) {
    let mut cluster = Cluster::start(Plan { balancer: Some(balancer), ..Plan::THREE });
    clients_are_told_apart(&cluster);
    under_load(&mut cluster, false, |cluster, clock| {
        clock.until_percent(20);
        cluster.kill(0);
        clock.a_moment();
        cluster.start_node(0);
        clock.a_moment();
    });
    cluster.end();
}

/// Plays games behind a balancer that asks the nodes if they are ready, while a node is stopped as planned. No request
/// is lost.
fn no_request_is_lost_behind(balancer: BalancerKind) {
    let open = survive(Plan { balancer: Some(balancer), drain_ms: 2_500, ..Plan::THREE }, |cluster, clock| {
        clock.until_percent(20);
        cluster.stop(1);
        clock.a_moment();
        cluster.start_node(1);
        clock.a_moment();
    });
    assert_eq!(open, 0, "requests with lost answers");
}

/// Checks that the nodes know the clients' addresses, and don't believe addresses that clients invent.
fn clients_are_told_apart(cluster: &Cluster) {
    let token = format!("Bearer {}", known_admin_token().reveal());
    let headers =
        [("Authorization", token.as_str()), ("X-Forwarded-For", "198.51.100.7"), ("Forwarded", "for=198.51.100.7")];
    let source = "127.0.0.2";
    let client = cluster.handles()[0].client().from_address(source.parse().unwrap());
    client.request("POST", "/api/admin/bans", &headers, br#"{"userId": "nobody", "reason": "noise"}"#).ok();
    let audit = cluster.client(1).get_with(known_admin_token().reveal(), "/api/admin/audit").ok();
    assert_eq!(audit["entries"][0]["address"], source, "{audit}");
}

#[test]
fn games_go_on_behind_nginx() {
    games_go_on_behind(BalancerKind::Nginx);
}

#[test]
fn games_go_on_behind_haproxy() {
    games_go_on_behind(BalancerKind::Haproxy);
    no_request_is_lost_behind(BalancerKind::Haproxy);
}

#[test]
fn haproxy_keeps_nodes_with_a_slow_database_and_leaves_a_node_that_hangs() {
    let plan = Plan { balancer: Some(BalancerKind::Haproxy), proxied: true, ..Plan::THREE };
    let mut cluster = Cluster::start(plan);
    let client = cluster.handles()[0].client().patient_for(Duration::from_secs(30));
    let ask = || {
        let begun = Instant::now();
        let answer = client.try_request("GET", "/api/challenges?limit=1", &[], b"");
        (answer.map_or(0, |answer| answer.status), begun.elapsed())
    };
    for node in 0..cluster.len() {
        cluster.proxy(node).delay(Duration::from_millis(100));
    }
    // Longer than two checks.
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_secs(6) {
        assert_eq!(ask().0, 200);
    }
    for node in 0..cluster.len() {
        cluster.proxy(node).delay(Duration::ZERO);
    }
    cluster.freeze(0);
    let begun = Instant::now();
    let mut longest = Duration::ZERO;
    while begun.elapsed() < Duration::from_secs(12) {
        longest = longest.max(ask().1);
        std::thread::sleep(Duration::from_millis(20));
    }
    // Without an end of its waiting requests, a client waits for its own timeout.
    assert!(longest < Duration::from_secs(10), "{longest:?}");
    assert_eq!(ask().0, 200);
    cluster.thaw(0);
    cluster.end();
}

#[test]
fn games_go_on_behind_haproxy_with_headers_of_connections() {
    games_go_on_behind(BalancerKind::HaproxyWithHeaders);
}

#[test]
fn games_go_on_behind_caddy() {
    games_go_on_behind(BalancerKind::Caddy);
    no_request_is_lost_behind(BalancerKind::Caddy);
}
