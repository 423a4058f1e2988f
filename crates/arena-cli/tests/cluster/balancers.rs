//! The configurations of load balancers in `examples/deploy`, with the real balancers in front of three nodes.

use std::time::{Duration, Instant};

use arena_testkit::{BalancerKind, known_admin_token};

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
    // After the load, because the history doesn't have these sessions.
    named_nodes_get_their_requests(&cluster);
    cluster.end();
}

/// Plays games behind a balancer that asks the nodes if they are ready, while a node is stopped as planned. No request
/// is lost.
fn no_request_is_lost_behind(balancer: BalancerKind) {
    let mut cluster = Cluster::start(Plan { balancer: Some(balancer), drain_ms: 2_500, ..Plan::THREE });
    let open = under_load(&mut cluster, false, |cluster, clock| {
        clock.until_percent(20);
        cluster.stop(1);
        clock.a_moment();
        cluster.start_node(1);
        clock.a_moment();
    });
    assert_eq!(open, 0, "requests with lost answers");
    cluster.end();
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

/// Checks that a request with the name of its session's node goes to that node, so that no node passes it on.
fn named_nodes_get_their_requests(cluster: &Cluster) {
    let passed_on =
        || (0..cluster.len()).map(|node| cluster.client(node).counter("arena_requests_passed_on_total")).sum::<u64>();
    let client = cluster.handles()[0].client();
    let read = |path: &str, name: &str| {
        let answer = client.request("GET", path, &[("Arena-Node", name)], b"");
        assert_eq!(answer.status, 200, "{}", answer.text());
        answer.header("arena-node").map(str::to_owned)
    };
    let paths = [(); 6].map(|()| format!("/api/chat/sync?channel={}", client.create("psi").0));
    // The test polls, because nodes don't tell clients that they know each other.
    let until = Instant::now() + Duration::from_secs(30);
    loop {
        // A node that has just started doesn't know the others yet, and then it names none.
        let names = paths.each_ref().map(|path| read(path, ""));
        let before = passed_on();
        let stays = |(path, name): (&String, &Option<String>)| {
            name.as_deref().is_some_and(|known| (0..4).all(|_| read(path, known) == *name))
        };
        if paths.iter().zip(&names).all(stays) && before > 0 && passed_on() == before {
            break;
        }
        assert!(Instant::now() < until, "{names:?}: {} requests were passed on", passed_on() - before);
    }
    read(&paths[0], "a node that doesn't exist");
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
fn haproxy_keeps_nodes_with_a_slow_database() {
    let plan = Plan { balancer: Some(BalancerKind::Haproxy), proxied: true, ..Plan::THREE };
    let cluster = Cluster::start(plan);
    let client = cluster.handles()[0].client().patient_for(Duration::from_secs(30));
    for node in 0..cluster.len() {
        cluster.proxy(node).delay(Duration::from_millis(100));
    }
    // Longer than two checks.
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_secs(6) {
        assert_eq!(client.get("/api/challenges?limit=1").status, 200);
    }
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
