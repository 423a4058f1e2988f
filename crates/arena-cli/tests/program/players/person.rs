//! People in sessions, whose input and output are pipes.

use std::collections::BTreeSet;
use std::net::TcpListener;

use arena_testkit::data_folder;
use expect_test::expect;
use rustix::process::Signal;
use serde_json::json;

use super::{list, play, psi, result};
use crate::program::{Running, run, run_with};

#[test]
fn two_people_play_psi_to_the_end() {
    let folder = data_folder();
    let server = Running::serve(folder.path());
    let invites = psi(&server.url);
    let mut ada = play(&server.url, &[&invites[0], "--user-id", "ada"]);
    ada.has_joined();
    let mut bob = play(&server.url, &[&invites[1], "--json"]);
    let (ada_set, bob_set) = (ada.is_dealt(), bob.is_dealt());
    let common: BTreeSet<u32> = &ada_set & &bob_set;

    ada.types("hello, all\u{1b}[2J");
    assert!(bob.hears("hello").contains("\\u001b[2J"));
    bob.types("hello, Ada\u{1b}[2J");
    assert_eq!(ada.hears("hello, Ada"), "Player 2: hello, Ada\\u{1b}[2J");
    ada.types("@2 between us");
    assert_eq!(ada.hears("between us"), "Player 1 (you) to Player 2: between us");
    bob.types("/to 1 of course");
    assert_eq!(ada.hears("of course"), "Player 2 to Player 1 (you): of course");

    ada.types("@7 who?");
    assert_eq!(ada.hears("refused"), "refused: there is no player 7");
    ada.types("/gess 1");
    assert_eq!(ada.hears("refused"), "refused: there is no /gess; /help lists the commands");
    ada.types("/guess none");
    assert_eq!(ada.hears("refused"), "refused: Invalid guess format. (INVALID_GUESS)");
    bob.types("/guess none");
    assert_eq!(bob.hears("refused"), r#"{"refused":{"code":"INVALID_GUESS","error":"Invalid guess format."}}"#);

    ada.types(&format!("/guess {}", list(&common)));
    ada.hears("Intersection Found: true");
    ada.types_no_more();
    ada.hears("no more input");
    bob.types(&format!("/guess {}", list(&ada_set)));
    let bob = bob.ends();
    let result = result(&bob);
    assert_eq!(result["players"], json!(invites));
    assert_eq!((&result["seat"], &result["you"], &result["challenge"]), (&json!(1), &json!(invites[1]), &json!("psi")));
    assert_eq!(result["scores"], json!([{"security": -1, "utility": 1}, {"security": 1, "utility": 1}]));
    let ada = ada.ends();
    assert_eq!(ada.code, 0, "{ada:#?}");
    let table: Vec<&str> = ada.stdout.lines().rev().take(6).collect::<Vec<_>>().into_iter().rev().collect();
    expect![[r#"
        ┌─────────────────────────────────────┐
        │                  security   utility │
        ╞═════════════════════════════════════╡
        │ Player 1 (you)         -1         1 │
        │ Player 2                1         1 │
        └─────────────────────────────────────┘"#]]
    .assert_eq(&table.join("\n"));
    assert!(!ada.stdout.contains('\u{1b}'), "{}", ada.stdout);
    let scores = run(&["users", "get", "ada", "--url", &server.url]);
    assert_eq!(scores.code, 0, "a player who joins with --user-id has scores: {scores:#?}");
}

#[test]
fn players_wait_for_a_server_that_is_killed_and_restarted() {
    let folder = data_folder();
    let data = folder.path().to_str().unwrap();
    let mut server = Running::serve(folder.path());
    let url = server.url.clone();
    let [one, two] = psi(&url);
    let mut ada = play(&url, &[&one]);
    ada.has_joined();
    let mut bob = play(&url, &[&two]);
    let (ada_set, bob_set) = (ada.is_dealt(), bob.is_dealt());
    let common = &ada_set & &bob_set;
    ada.types("before");
    bob.hears("Player 1: before");

    server.signal(Signal::KILL);
    server.ended();
    // No player reads when these are sent; they are carried out exactly once.
    ada.types("in between");
    ada.types(&format!("/guess {}", list(&common)));
    let _server = Running::start(&["serve", "--listen", url.strip_prefix("http://").unwrap(), "--data", data]);
    bob.hears("sent a guess");
    bob.types("after");
    ada.hears("Player 2: after");
    bob.types(&format!("/guess {}", list(&common)));
    let (ada, bob) = (ada.ends(), bob.ends());
    for run in [&ada, &bob] {
        assert_eq!(run.code, 0, "{run:#?}");
        for said in ["before", "in between", "after"] {
            assert_eq!(run.stdout.lines().filter(|line| line.ends_with(&format!(": {said}"))).count(), 1, "{run:#?}");
        }
        assert_eq!(run.stdout.matches("Game ended.").count(), 1, "{run:#?}");
    }
}

#[test]
fn a_seat_can_be_left_and_resumed() {
    let folder = data_folder();
    let server = Running::serve(folder.path());
    let [one, two] = psi(&server.url);
    let mut ada = play(&server.url, &[&one]);
    ada.types("is anybody there?");
    ada.hears("is anybody there?");
    ada.types("/quit");
    let left = ada.ends();
    assert_eq!(left.code, 0, "{left:#?}");
    let back = format!(
        "you left; the seat stays yours and the session continues without you. To return: arena play --from {one}"
    );
    assert!(left.stdout.contains(&back), "{left:#?}");

    let used = run(&["play", &one, "--url", &server.url]);
    assert_eq!((used.code, used.stdout.as_str()), (3, ""));
    let advice = format!("if you used it, return to your seat with: arena play --from {one}");
    assert!(used.stderr.contains("INVITE_ALREADY_USED") && used.stderr.contains(&advice), "{used:#?}");

    let mut ada = play(&server.url, &["--from", &one, "--json"]);
    ada.hears("is anybody there?");
    let mut bob = play(&server.url, &[&two]);
    bob.types("/guess 1");
    bob.hears("Player 2 (you): (guess) 1");
    ada.types("/guess 1");
    assert_eq!(result(&ada.ends())["seat"], 0);
    assert_eq!(bob.ends().code, 0);
    // A session that has ended can still be read.
    let late = play(&server.url, &["--from", &one, "--json"]).ends();
    assert_eq!(result(&late)["scores"][0]["utility"], -1);
}

#[test]
fn the_holder_of_a_key_plays_on_a_server_with_authentication() {
    let (folder, home) = (data_folder(), data_folder());
    let server =
        Running::start(&["serve", "--auth", "--listen", "127.0.0.1:0", "--data", folder.path().to_str().unwrap()]);
    let key = run(&["identity", "new", "--out", home.path().to_str().unwrap()]).json();
    let key = key["privateKey"].as_str().unwrap();
    let [one, two] = psi(&server.url);
    let mut bob = play(&server.url, &[&one, "--sign", key]);
    bob.has_joined();
    bob.types("hello");
    bob.hears("hello");
    bob.types("/quit");
    let left = bob.ends();
    let auth = left.stderr.split_once("--auth ").unwrap().1.trim();
    let unsigned = run(&["play", &two, "--url", &server.url]);
    assert_eq!(unsigned.code, 3);
    assert!(unsigned.stderr.contains("sign the request with --sign"), "{unsigned:#?}");
    let mut again = play(&server.url, &["--from", &one, "--auth", auth, "--json"]);
    again.hears("hello");
    again.signal(Signal::INT);
    let called_off = again.ends();
    assert_eq!(called_off.code, 130, "{called_off:#?}");
}

#[test]
fn unplayable_seats_are_reported_in_a_sentence() {
    let folder = data_folder();
    let server = Running::serve(folder.path());
    let check = |args: &[&str], environment: &[(&str, &str)], expected: &str| {
        let run = run_with(&[&["play", "--url", &server.url], args].concat(), environment);
        assert_eq!(run.stdout, "");
        assert_eq!(format!("{} {}", run.code, run.stderr), format!("{expected}\n"));
    };
    check(
        &["inv_none"],
        &[],
        "3 error: the server refused the request: Challenge not found for invite: inv_none (INVITE_NOT_FOUND, HTTP 400)",
    );
    check(
        &["--from", "inv_none"],
        &[],
        r#"3 error: no session has the player inv_none; to take a new seat, use "arena play inv_none" without --from"#,
    );
    check(&[], &[], "2 error: no seat given; give an invite, --queue CHALLENGE, or --from INVITE to return to a seat");
    check(
        &["inv_none", "--from", "inv_none"],
        &[],
        "2 error: an invite takes a new seat and --from returns to yours; give only one of them",
    );
    check(&["inv_none", "--agent", "no-such-agent"], &[], "8 error: there is no agent at no-such-agent");
    check(
        &["inv_none", "--model", "m"],
        &[("OPENAI_API_KEY", "")],
        "2 error: OPENAI_API_KEY isn't set; set it to the key of https://api.openai.com/v1, or give another endpoint with --api-base",
    );
    check(
        &["inv_none", "--model", "m"],
        &[("OPENAI_API_KEY", "a b")],
        "2 error: OPENAI_API_KEY isn't a valid key: it contains spaces or non-ASCII characters",
    );
    check(
        &["inv_none", "--model", "claude-x", "--seed", "1"],
        &[("ANTHROPIC_API_KEY", "k")],
        "2 error: --seed isn't supported by --api anthropic-messages; remove it",
    );
    for args in [
        &["inv_none", "--memory", "5"][..],
        &["inv_none", "--max-turns", "5"],
        &["inv_none", "--model", "m", "--max-cost", "1"],
        &["inv_none", "--model", "m", "--agent", "a"],
        &["inv_none", "--agent", "a", "--", "b"],
        &["inv_none", "--model", "m", "--price-in", "-1", "--price-out", "1"],
    ] {
        let run = run(&[&["play"], args].concat());
        assert_eq!((run.code, run.stdout.as_str()), (2, ""), "{args:?}: {}", run.stderr);
    }
    // The listener is dropped, so nothing listens on its port.
    let nowhere = format!("http://{}", TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap());
    let nobody = run(&["play", "inv_none", "--url", &nowhere]);
    assert_eq!(nobody.code, 4);
    assert!(nobody.stderr.contains("connection refused; check --url"), "{nobody:#?}");
}
