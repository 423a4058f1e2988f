//! What can befall an arena: a test for each.

use crate::load::under_load;
use crate::nodes::{Cluster, Plan};

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
fn a_node_alone_loses_its_connection_between_commits_and_their_answers() {
    let mut cluster = Cluster::start(Plan { proxied: true, ..Plan::ALONE });
    under_load(&mut cluster, false, |cluster, clock| {
        for percent in [20, 40, 60, 80] {
            clock.until_percent(percent);
            cluster.proxy(0).cut_a_commit();
        }
    });
    assert!(cluster.proxy(0).cut() > 1, "nothing was cut");
    cluster.end();
}
