//! Faults of providers, which never change a score, and caps.

use std::net::TcpListener;

use arena_testkit::{StandIn, StandInSpec};

use super::{EvalFixture, RunSpec, command};
use crate::program::run;

#[test]
fn faults_of_a_fifth_of_all_calls_change_no_score() {
    let fixture = EvalFixture::new();
    let stand_in = StandIn::start(StandInSpec { seed: 4, ..StandInSpec::default() });
    let mut spec = RunSpec::new(&["leaky", "careful", "random"], &["psi", "ultimatum"], 2);
    spec.endpoint = stand_in.base().to_owned();
    let file = fixture.write("run.toml", &spec.toml());
    fixture.play(&file, "calm");
    stand_in.set_faults(0.2);
    fixture.play(&file, "stormy");
    assert_eq!(fixture.report("stormy"), fixture.report("calm"));
    let calls = |dir: &str| fixture.lines(dir, "calls.jsonl", "call");
    let retries = calls("stormy").iter().filter(|call| call["retries"].is_array()).count();
    assert!(retries > 5, "there were only {retries} retries");
    // Truncated, refused and invalid answers are calls of their own.
    assert!(calls("stormy").len() > calls("calm").len());
    command(&["verify"], &fixture.path("stormy"));
}

#[test]
fn the_first_failed_attempt_is_printed_with_its_cause() {
    let fixture = EvalFixture::new();
    let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let mut spec = RunSpec::new(&["leaky", "careful"], &["psi"], 1);
    spec.endpoint = format!("http://{closed}/v1");
    let file = fixture.write("run.toml", &spec.toml());
    let dir = fixture.path("run");
    let failed = run(&["eval", "run", &file, "--out", dir.to_str().unwrap(), "--patience", "3"]);
    assert_eq!(failed.code, 17, "{failed:#?}");
    for model in ["leaky", "careful"] {
        let note = format!("note: {model}: http://{closed}/v1: it cannot be connected: ");
        assert_eq!(failed.stderr.matches(&note).count(), 1, "{failed:#?}");
    }
    assert!(failed.stderr.contains("; retrying for 3 s\n"), "{failed:#?}");
}

#[test]
fn the_cost_stays_below_the_cap() {
    let fixture = EvalFixture::new();
    let mut spec = RunSpec::new(&["leaky", "greedy"], &["psi", "ultimatum"], 3);
    let free = fixture.write("free.toml", &spec.toml());
    fixture.play(&free, "free");
    let cost = |dir: &str| -> f64 {
        let calls = fixture.lines(dir, "calls.jsonl", "call");
        calls.iter().map(|call| call["usd"].as_f64().unwrap()).sum()
    };
    let cap = cost("free") / 2.0;
    spec.end = format!("[budget]\nusd = {cap:.9}\n");
    let capped = fixture.write("capped.toml", &spec.toml());
    let dir = fixture.path("capped");
    let stopped = run(&["eval", "run", &capped, "--out", dir.to_str().unwrap()]);
    assert_eq!(stopped.code, 19, "{stopped:#?}");
    assert!(stopped.stderr.contains("cap `usd`"), "{stopped:#?}");
    let spent = cost("capped");
    assert!(spent > 0.0 && spent <= cap, "{spent} of {cap}");
    command(&["status"], &dir);

    // The rest follows after the cap is raised.
    fixture.play(&free, "capped");
    assert_eq!(fixture.report("capped"), fixture.report("free"));
    command(&["verify"], &dir);
}
