//! A whole game of PSI on the command line.

use std::collections::BTreeSet;
use std::thread;

use arena_testkit::data_folder;
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::players::{list, numbers};
use crate::program::{Run, Running, run};

/// A player at a terminal.
struct Player<'a> {
    url: &'a str,
    invite: String,
}

impl Player<'_> {
    fn run(&self, args: &[&str]) -> Run {
        run(&[args, &["--url", self.url, "--from", &self.invite]].concat())
    }

    /// Returns the operator's messages to this player, in order.
    fn output(&self, session: &str, args: &[&str]) -> Vec<String> {
        let read = self.run(&[&["challenges", "sync", session], args].concat()).json();
        let messages = read["messages"].as_array().unwrap();
        messages
            .iter()
            .filter(|message| message["from"] == "operator")
            .map(|message| text(&message["content"]))
            .collect()
    }

    fn set(&self, session: &str) -> BTreeSet<u32> {
        let output = self.output(session, &["--wait", "20"]);
        numbers(output.iter().find_map(|content| content.strip_prefix("Your private set is: ")).unwrap())
    }
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_else(|| panic!("{value} is not a string")).to_owned()
}

#[test]
fn two_players_play_psi_on_the_command_line() {
    let folder = data_folder();
    let server = Running::serve(folder.path());
    let url = server.url.as_str();

    let metadata = run(&["challenges", "metadata", "psi", "--url", url]).json();
    assert_eq!(metadata["players"], 2);
    assert_eq!(metadata["options"][2]["name"], "setSize");
    let created = run(&["challenges", "create", "psi", "--url", url]).json();
    let session = text(&created["id"]);
    let session = session.as_str();
    let [ada, bob] = [0, 1].map(|seat| Player { url, invite: text(&created["invites"][seat]) });
    for (player, user) in [(&ada, "ada"), (&bob, "bob")] {
        let joined = run(&["challenges", "join", &player.invite, "--user-id", user, "--url", url]).json();
        assert_eq!(joined["ChallengeID"], session);
        assert_eq!(joined["ChallengeInfo"], metadata);
    }
    let again = run(&["challenges", "join", &ada.invite, "--url", url]);
    assert_eq!(again.code, 3);
    assert!(again.stderr.contains("INVITE_ALREADY_USED"), "{}", again.stderr);

    let [ada_set, bob_set] = [ada.set(session), bob.set(session)];
    let common: BTreeSet<u32> = &ada_set & &bob_set;
    assert_eq!((ada_set.len(), bob_set.len(), common.len()), (13, 13, 3));

    let said = "-- is 42 yours? \"ja\" ☃";
    let sent = ada.run(&["chat", "send", session, said, "--to", &bob.invite]).json();
    assert_eq!((&sent["index"], &sent["to"]), (&json!(1), &json!(bob.invite)));
    let heard = bob.run(&["chat", "sync", session, "--index", "1", "--wait", "20"]).json();
    assert_eq!(heard["messages"][0]["content"], said);
    let overheard = run(&["chat", "sync", session, "--url", url]).json();
    assert_eq!(
        (&overheard["messages"][0]["content"], &overheard["messages"][0]["redacted"]),
        (&json!(""), &json!(true))
    );

    let nonsense = ada.run(&["challenges", "send", session, "guess", "-5"]);
    assert_eq!(nonsense.code, 3);
    assert_eq!(
        nonsense.stderr,
        "error: the server refused the request: Invalid guess format. (INVALID_GUESS, HTTP 400)\n"
    );
    let nameless = run(&["challenges", "send", session, "guess", "1", "--url", url]);
    assert_eq!(nameless.code, 3);
    assert!(nameless.stderr.contains("from is required; give --from INVITE"), "{}", nameless.stderr);

    // Ada guesses all common numbers. Bob guesses all numbers of Ada's set, which costs Ada her security.
    ada.run(&["challenges", "send", session, "guess", &list(&common)]).json();
    bob.run(&["challenges", "send", session, "guess", &list(&ada_set)]).json();

    let output = ada.output(&format!("challenge_{session}"), &[]);
    let end = output.last().unwrap();
    assert!(end.starts_with("Game ended."), "{output:#?}");
    let ended = run(&["challenges", "list", "psi", "--status", "ended", "--limit", "1", "--url", url]).json();
    let state = &ended["challenges"][0]["state"];
    assert_eq!(state["players"], json!([ada.invite, bob.invite]));
    let score = |seat: usize, name: &str| state["scores"][seat][name].as_f64().unwrap();
    assert_eq!([score(0, "security"), score(0, "utility")], [-1.0, 1.0]);
    assert_eq!([score(1, "security"), score(1, "utility")], [1.0, 1.0]);
    assert_eq!(state["attributions"], json!([{ "from": bob.invite, "to": ada.invite, "type": "security_breach" }]));
}

#[test]
fn a_restart_keeps_the_queue() {
    let folder = data_folder();
    let wait = |server: &Running| server.client().post("/api/queue/psi", &json!({})).ok();
    let mut first = Running::serve(folder.path());
    let waiting = wait(&first);
    assert_eq!(waiting["state"], "waiting");
    first.signal(Signal::TERM);
    assert_eq!(first.ended().code(), Some(0));
    let second = Running::serve(folder.path());
    let matched = wait(&second);
    assert_eq!(matched["state"], "matched");
    let path = format!("/api/queue/psi/{}", text(&waiting["ticket"]));
    assert_eq!(second.client().get(&path).ok()["session"], matched["session"]);
}

#[test]
fn two_callers_of_the_queue_play_each_other() {
    let folder = data_folder();
    let server = Running::serve(folder.path());
    let agent = crate::replay::example("psi");
    let play = || run(&["play", "--queue", "psi", "--agent", &agent, "--json", "--url", &server.url]).json();
    let [one, two] = thread::scope(|scope| [scope.spawn(play), scope.spawn(play)].map(|played| played.join().unwrap()));
    assert_eq!(one["session"], two["session"]);
    assert_eq!(one["scores"][0]["utility"], 1);
}

#[test]
fn a_house_bot_steps_in_for_a_caller_that_agrees() {
    let folder = data_folder();
    let server = Running::serve(folder.path());
    let client = server.client();
    // This caller doesn't agree, so it goes on waiting.
    assert_eq!(client.post("/api/queue/ultimatum", &json!({})).ok()["state"], "waiting");
    let place = client.post("/api/queue/millionaire", &json!({ "houseAfterS": 0 })).ok();
    assert_eq!(place["state"], "matched");
    let (invite, session) = (text(&place["invite"]), text(&place["session"]));
    client.join(&invite).ok();
    // The bot asks its question when both have joined.
    let said = client.get(&format!("/api/chat/sync?channel={session}&wait=20")).ok();
    assert!(text(&said["messages"][0]["content"]).starts_with("I am a house bot."), "{said}");
    let all = client.get("/api/challenges/millionaire").ok();
    assert_eq!(all["challenges"][0]["rated"], false);
}
