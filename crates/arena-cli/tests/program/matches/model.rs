//! Language models as agents of matches and tournaments. All requests stay on this machine.

use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use arena_testkit::{ModelAnswer, ModelConversation, ModelEndpoint};
use serde_json::{Value, json};

use super::MatchFixture;
use crate::program::{Run, arena, finished, run_with};

/// The endpoint's key, which must not appear in outputs.
const KEY: &str = "sk-test-0123456789";

fn call(tool: &'static str, arguments: Value) -> ModelAnswer {
    ModelAnswer::Calls(vec![(tool, arguments.to_string())])
}

/// A model for PSI that makes an invalid call first, then guesses, then waits.
fn clumsy(seen: &ModelConversation) -> ModelAnswer {
    match seen.answers {
        0 => call("act_sing", json!({})),
        1 => call("act_guess", json!({"content": "1"})),
        _ => call("wait", json!({})),
    }
}

fn agent(endpoint: &ModelEndpoint) -> String {
    format!("model:m-1@{}", endpoint.base())
}

/// Runs the binary with the key in the environment, and checks that the key isn't printed.
#[track_caller]
fn run(args: &[&str]) -> Run {
    let run = run_with(args, &[("OPENAI_API_KEY", KEY)]);
    assert!(!format!("{run:?}").contains(KEY), "{run:#?}");
    run
}

#[test]
fn a_model_plays_a_match_against_a_house_bot() {
    let fixture = MatchFixture::new();
    let endpoint = ModelEndpoint::listen(KEY, |seen| {
        assert!(seen.answers != 1 || seen.text().contains("there is no tool act_sing"), "{}", seen.text());
        clumsy(seen)
    });
    let (agent, replay) = (agent(&endpoint), fixture.file("game.jsonl"));
    let args = ["match", "run", "psi", "--json", "--agent", &agent, "--agent", "house", "--step-ms", "20000"];
    let result = run(&[&args[..], &["--replay", &replay]].concat()).json();
    endpoint.is_content();
    for seat in result["scores"].as_array().unwrap() {
        assert_eq!(seat["tainted"], false, "{result}");
    }
    assert!(result.to_string().contains("model:m-1@"), "{result}");
    assert!(!fs::read_to_string(&replay).unwrap().contains(KEY));
    // A replay contains the model's actions, so it can be verified without the model.
    let verified = run(&["replay", "verify", &replay]);
    assert_eq!(verified.code, 0, "{verified:#?}");
}

#[test]
fn a_fault_of_the_endpoint_is_no_loss_but_a_late_answer_is() {
    let fixture = MatchFixture::new();
    let replay = fixture.file("game.jsonl");
    let play = |endpoint: &ModelEndpoint, limits: &[&str]| {
        let agent = agent(endpoint);
        let args = ["match", "run", "psi", "--json", "--agent", &agent, "--agent", "house", "--bank-ms", "0"];
        run(&[&args[..], &["--replay", &replay], limits].concat())
    };
    for (status, sentence, step_ms) in
        [(402, "no credit", "20000"), (401, "bad key", "20000"), (503, "overloaded", "1500")]
    {
        let endpoint = ModelEndpoint::listen(KEY, move |_| ModelAnswer::Status(status, "", sentence));
        let failed = play(&endpoint, &["--step-ms", step_ms]);
        assert_eq!((failed.code, failed.stdout.as_str()), (14, ""), "{failed:#?}");
        let expected = format!("error: the language model {} failed: ", agent(&endpoint));
        assert!(failed.stderr.starts_with(&expected) && failed.stderr.contains(sentence), "{failed:#?}");
        assert!(!fs::exists(&replay).unwrap(), "a game without a result leaves no replay");
    }
    let endpoint = ModelEndpoint::listen(KEY, |_| ModelAnswer::Nothing);
    let result = play(&endpoint, &["--step-ms", "500"]).json();
    let late = result["scores"].as_array().unwrap().iter().find(|seat| seat["seat"] == 0).unwrap();
    assert_eq!((&late["tainted"], &late["tainted_reason"]), (&json!(true), &json!("TIMEOUT")), "{result}");
}

#[test]
fn a_tournament_stops_at_a_fault_of_the_endpoint_and_continues() {
    let fixture = MatchFixture::new();
    let is_broken = Arc::new(AtomicBool::new(true));
    let flag = Arc::clone(&is_broken);
    let endpoint = ModelEndpoint::listen(KEY, move |seen| match flag.load(Ordering::Relaxed) && seen.asked >= 4 {
        true => ModelAnswer::Status(402, "", "no credit"),
        false => clumsy(seen),
    });
    let (agent, cup) = (format!("strong={}", agent(&endpoint)), fixture.file("cup"));
    let args = ["tournament", "run", "psi", "--agent", &agent, "--agent", "house", "--rounds", "4", "--out", &cup];
    let stopped = run(&[&args[..], &["--step-ms", "20000"]].concat());
    assert_eq!(stopped.code, 14, "{stopped:#?}");
    assert!(stopped.stderr.contains("no credit; the game doesn't count; to resume: arena tournament resume "));
    let journal = || fs::read_to_string(fixture.path().join("cup/tournament.jsonl")).unwrap();
    let before = journal();
    is_broken.store(false, Ordering::Relaxed);
    let resumed = run(&["tournament", "resume", &cup]);
    assert_eq!(resumed.code, 0, "{resumed:#?}");
    let after = journal();
    assert!(after.starts_with(&before) && after.lines().count() > before.lines().count(), "{before}\n{after}");
    assert!(!after.contains(KEY) && !after.contains("TIMEOUT") && !after.contains("CRASHED"), "{after}");
    endpoint.is_content();
}

#[test]
fn a_model_of_a_vendor_needs_its_key() {
    let args = ["match", "run", "psi", "--agent", "model:gpt-x", "--agent", "house"];
    let refused = finished(arena(&args).env_remove("OPENAI_API_KEY").output().unwrap());
    expect_test::expect![[r#"
        error: OPENAI_API_KEY isn't set; set it to the key of https://api.openai.com/v1
    "#]]
    .assert_eq(&refused.stderr);
    assert_eq!(refused.code, 2);
    let refused = run(&["match", "run", "psi", "--agent", "model:m@olama", "--agent", "house"]);
    assert!(refused.code == 8 && refused.stderr.contains("there is no endpoint `olama`"), "{refused:#?}");
}
