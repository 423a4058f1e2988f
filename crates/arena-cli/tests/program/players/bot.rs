//! Bots of the Colosseum protocol in sessions.

use std::fs;
use std::time::{Duration, Instant};

use arena_testkit::data_folder;
use serde_json::json;

use super::{list, play, psi, result};
use crate::matches::MatchFixture;
use crate::program::{Running, run};

/// A bot for PSI. It sends its set, guesses the common numbers after the other player has sent its set, and tries some
/// invalid actions.
const PSI: &str = r#"#!/usr/bin/python3
import json, re, sys

me, mine, theirs, tried = None, None, None, False

def numbers(text):
    return {int(digits) for digits in re.findall(r"\d+", text)}

for line in sys.stdin:
    message = json.loads(line)
    if "stop" in message:
        print("I was stopped", file=sys.stderr)
        break
    if "ping" in message:
        reply = {"pong": "pong"}
    elif "set_agent_id" in message:
        me = message["set_agent_id"]
        print(sorted(message["config"]), file=sys.stderr)
        reply = {"agent_id": me, "agent_name": "psi"}
    else:
        state, actions = message["world_state"], []
        assert state["you"] == me and state["challenge"] == "psi" and me in state["players"] and len(state["players"]) == 2, state
        assert me in state["agent_ids"] and state["methods"][0]["name"] == "guess" and state["remaining_overage_ms"] == 0
        for said in state["messages"]:
            if said["channel"] == "operator" and said["content"].startswith("Your private set is"):
                mine = numbers(said["content"])
                actions.append({"action": "chat", "content": "mine: " + json.dumps(sorted(mine))})
                actions += [{"action": "guess", "content": "none"}, {"action": "sing"}, {"content": 7}, 7]
            if said["channel"] == "chat" and said["from"] != me:
                theirs = numbers(said["content"])
        for rejected in state["rejected"]:
            print("rejected", rejected["code"], json.dumps(rejected["action"]), file=sys.stderr)
        if mine and theirs:
            actions.append({"action": "guess", "content": sorted(mine & theirs)})
            theirs = None
        reply = {"agent_id": me, "actions": actions}
    print(json.dumps(reply), flush=True)
"#;

#[test]
fn a_bot_plays_psi_to_the_end() {
    let (folder, fixture) = (data_folder(), MatchFixture::new());
    let server = Running::serve(folder.path());
    let [one, two] = psi(&server.url);
    let (agent, log) = (fixture.script("psi", "psi.py", PSI), fixture.file("bot.log"));
    let mut ada = play(&server.url, &[&two]);
    ada.has_joined();
    let bot = play(&server.url, &[&one, "--agent", &agent, "--log", &log, "--json"]);
    let mine = ada.is_dealt();
    let output = super::numbers(ada.hears("mine: ").split_once("mine: ").unwrap().1);
    ada.types(&list(&mine));
    ada.types(&format!("/guess {}", list(&(&mine & &output))));
    let result = result(&bot.ends());
    for seat in 0..2 {
        assert_eq!(result["scores"][seat]["utility"], 1, "{result}");
    }
    let log = fs::read_to_string(&log).unwrap();
    expect_test::expect![[r#"
        ['challenge', 'players', 'step_limit_pool', 'step_time_limit']
        rejected INVALID_GUESS {"action": "guess", "content": "none"}
        rejected UNKNOWN_METHOD {"action": "sing", "content": ""}
        rejected INVALID_ACTION {"action": "", "content": "{\"content\":7}"}
        rejected INVALID_ACTION {"action": "", "content": "7"}
        I was stopped
    "#]]
    .assert_eq(&log);
}

/// Hostile behaviors, options of `arena play`, and the expected reports.
const HOSTILE: [(&str, &[&str], &str); 8] = [
    ("exits_at_once", &[], "STARTUP_FAIL: exited with code 0"),
    ("talks_on_stdout", &[], "PING_FAIL: answered the ping, but the line isn't JSON"),
    ("exits_after_the_ping", &[], "STARTUP_FAIL: exited with code 3"),
    ("mute", &["--step-ms", "200"], "TIMEOUT: no answer within 200 ms"),
    ("endless_line", &[], "OUTPUT_LIMIT"),
    ("closes_stdout", &[], "CRASHED: closed its output"),
    ("never_reads", &["--step-ms", "200"], "TIMEOUT"),
    ("eats_memory", &["--memory", "100"], "MEMORY_LIMIT"),
];

#[test]
fn hostile_bots_lose_their_seat_and_do_not_affect_others() {
    let (folder, fixture) = (data_folder(), MatchFixture::new());
    let server = Running::serve(folder.path());
    for (behavior, options, verdict) in HOSTILE {
        let [one, two] = psi(&server.url);
        let agent = fixture.agent(behavior);
        let begun = Instant::now();
        let mut bob = play(&server.url, &[&two]);
        bob.has_joined();
        let bot = play(&server.url, &[&[one.as_str(), "--agent", &agent], options].concat()).ends();
        assert_eq!((bot.code, bot.stdout.as_str()), (12, ""), "{behavior}: {bot:#?}");
        assert!(bot.stderr.contains("is out: ") && bot.stderr.contains(verdict), "{behavior}: {bot:#?}");
        assert!(begun.elapsed() < Duration::from_secs(30), "{behavior}");
        // Another program may resume the seat.
        bob.is_dealt();
        bob.types("/guess 1");
        let mut ada = play(&server.url, &["--from", &one]);
        ada.types("/guess 1");
        assert_eq!((ada.ends().code, bob.ends().code), (0, 0), "{behavior}");
    }
}

// Actions with an unknown id are ignored and count as faults. Use of another player's id is cheating.
#[test]
fn bots_with_wrong_ids_are_judged_as_in_a_match() {
    let (folder, fixture) = (data_folder(), MatchFixture::new());
    let server = Running::serve(folder.path());
    for (behavior, verdict) in
        [("makes_up_an_id", "TOO_MANY_ERRORS: 11 faults"), ("speaks_as_its_opponent", "AGENT_ID_SPOOFING: spoke as")]
    {
        let [one, two] = game(&server.url, "food-catcher", r#"{"n_epochs": 30}"#);
        let honest = play(&server.url, &[&two, "--agent", &crate::replay::example("food_catcher"), "--json"]);
        let bot = play(&server.url, &[&one, "--agent", &fixture.agent(behavior)]).ends();
        assert_eq!((bot.code, bot.stdout.as_str()), (12, ""), "{behavior}: {bot:#?}");
        assert!(bot.stderr.contains(verdict), "{behavior}: {bot:#?}");
        // Seats are assigned in the order of joining.
        let ended = result(&honest.ends());
        let seat = ended["seat"].as_u64().unwrap() as usize;
        assert_eq!(ended["scores"][seat]["utility"], 1, "{behavior}: {ended}");
    }
}

#[test]
fn a_bot_that_repeats_refused_actions_gets_a_limited_number_of_requests() {
    let (folder, fixture) = (data_folder(), MatchFixture::new());
    let server = Running::serve(folder.path());
    let [one, two] = psi(&server.url);
    // The bot sends a message with every answer, and malformed guesses.
    let stubborn = r#"
import json, sys
me = None
for line in sys.stdin:
    message = json.loads(line)
    me = message.get("set_agent_id", me)
    reply = {"pong": 1} if "ping" in message else {"agent_id": me}
    if "world_state" in message:
        print("asked", file=sys.stderr)
        reply["actions"] = [{"action": "guess", "content": "none"}, {"action": "chat", "content": "again"}]
    print(json.dumps(reply), flush=True)
"#;
    let (agent, log) = (fixture.script("stubborn", "stubborn.py", stubborn), fixture.file("bot.log"));
    let bot = play(&server.url, &[&one, "--log", &log, "--", "python3", &agent]);
    let mut ada = play(&server.url, &[&two]);
    for _ in 0..11 {
        ada.hears("again");
    }
    bot.signal(rustix::process::Signal::INT);
    let bot = bot.ends();
    assert_eq!(bot.code, 130, "{bot:#?}");
    assert!(bot.stderr.contains("interrupted; the seat stays yours"), "{bot:#?}");
    // The bot gets a request after its own deal, and one request after each of ten refused actions.
    let asked = fs::read_to_string(&log).unwrap().matches("asked").count();
    assert_eq!(asked, 11);
    assert_eq!(run(&["challenges", "metadata", "--url", &server.url]).code, 0);
}

/// Creates a session of a game with these options, and returns its invites.
fn game(url: &str, name: &str, options: &str) -> [String; 2] {
    let created = run(&["challenges", "create", name, "--options", options, "--url", url]).json();
    [0, 1].map(|seat| created["invites"][seat].as_str().unwrap().to_owned())
}

#[test]
fn bots_play_games_on_a_server_as_in_a_match() {
    let folder = data_folder();
    let server = Running::serve(folder.path());
    for (name, options) in [("snake", r#"{"n_epochs": 30}"#), ("food-catcher", r#"{"n_epochs": 20}"#)] {
        let agent = crate::replay::example(&name.replace('-', "_"));
        let bots =
            game(&server.url, name, options).map(|invite| play(&server.url, &[&invite, "--agent", &agent, "--json"]));
        for bot in bots {
            let result = result(&bot.ends());
            assert_eq!(
                (&result["abandoned"], &result["scores"][0]["security"]),
                (&json!(false), &json!(0)),
                "{result}"
            );
        }
    }
}

#[test]
fn a_bot_whose_move_is_refused_resigns_and_a_person_wins() {
    let (folder, fixture) = (data_folder(), MatchFixture::new());
    let server = Running::serve(folder.path());
    let [one, two] = game(&server.url, "chess", "{}");
    let bot = play(&server.url, &[&one, "--agent", &fixture.agent("moves_a_king_by_five")]);
    let mut ada = play(&server.url, &[&two]);
    // White moves first.
    if ada.hears("the game begins; you play ").contains("WHITE") {
        ada.hears("1  R N B Q K B N R");
        ada.types("/move e2e5");
        ada.hears("refused: This action cannot be played");
        ada.types("/move e2e4");
    }
    ada.hears(" gave up: the arena refused its actions");
    ada.hears("because the others are out: ");
    let ada = ada.ends();
    assert_eq!(ada.code, 0, "{ada:#?}");
    let bot = bot.ends();
    assert_eq!(bot.code, 12, "{bot:#?}");
    assert!(bot.stderr.contains("is out, and resigned: the arena refused its actions: "), "{bot:#?}");
    assert!(bot.stderr.contains("ILLEGAL_MOVE"), "{bot:#?}");
}

#[test]
fn a_bot_that_resumes_its_seat_continues_the_game() {
    let folder = data_folder();
    let server = Running::serve(folder.path());
    let [one, two] = game(&server.url, "chess", r#"{"n_epochs": 8}"#);
    let agent = crate::replay::example("chess");
    let bot = play(&server.url, &[&one, "--agent", &agent]);
    let mut ada = play(&server.url, &[&two]);
    // The bot is killed after its move, while Ada thinks.
    if ada.hears("the game begins; you play ").contains("WHITE") {
        ada.hears(", your move");
        ada.types("/move e2e4");
    }
    ada.hears(", your move");
    drop(bot);
    let bot = play(&server.url, &["--from", &one, "--agent", &agent, "--json"]);
    let mut rest = play(&server.url, &["--from", &two, "--agent", &agent, "--json"]);
    rest.types_no_more();
    drop(ada);
    for bot in [bot, rest] {
        let scores = &result(&bot.ends())["scores"];
        assert_eq!(scores[0]["utility"], 0, "the game is a draw after eight plies");
    }
}
