//! Chess engines that stay alive between the games of a tournament.

use std::collections::BTreeSet;
use std::fs;
use std::thread;

use rustix::process::Signal;
use serde_json::Value;

use super::engines::engine;
use super::{Finished, MatchFixture};

/// A process: its id, and the time of its start.
type ProcessKey = (u64, u64);

/// Plays a tournament of these agents, given as `NAME=TEXT`, with short games.
fn play(fixture: &MatchFixture, agents: &[&str], more: &[&str]) -> Finished {
    let _ = fs::remove_dir_all(fixture.file("out"));
    let agents: Vec<String> = agents.iter().map(|agent| format!("--agent={agent}")).collect();
    let agents: Vec<&str> = agents.iter().map(String::as_str).collect();
    let out = fixture.file("out");
    let fixed = ["tournament", "run", "chess", "--seed", "3", "--set", "n_epochs=20", "--replays", "--out", &out];
    fixture.start(&[&fixed[..], &agents, more].concat()).finish()
}

/// Returns the lines of a file of the tournament as JSON.
fn lines(fixture: &MatchFixture, file: &str) -> Vec<Value> {
    let text = fs::read_to_string(fixture.file(&format!("out/{file}"))).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Returns the processes of an agent in the games of a tournament, in the order of the games in the journal.
fn processes(fixture: &MatchFixture, name: &str) -> Vec<ProcessKey> {
    let journal = lines(fixture, "tournament.jsonl");
    let mut found = Vec::new();
    for game in journal.iter().filter(|line| line.get("outcome").is_some()) {
        let replay = lines(fixture, &format!("replays/{}.jsonl", game["fixture"]));
        let agents = replay[0]["agents"].as_array().unwrap();
        let Some(seat) = agents.iter().position(|agent| agent["name"] == format!("Stand-in {name}")) else { continue };
        let infos = replay.iter().map(|line| &line["info"][seat]).filter(|info| !info.is_null());
        let key = |info: &Value| (info["time"].as_u64().unwrap(), info["nodes"].as_u64().unwrap());
        let keys: BTreeSet<ProcessKey> = infos.map(key).collect();
        assert_eq!(keys.len(), 1, "{game}");
        found.extend(keys);
    }
    found
}

#[test]
fn an_engine_is_the_same_process_in_all_games_of_a_tournament() {
    for sandbox in ["on", "no-namespaces", "off"] {
        let fixture = MatchFixture::new();
        let (one, two) = (engine(&fixture, "plays"), engine(&fixture, "ignores_quit"));
        let three = engine(&fixture, "speaks_between_moves");
        let agents = [format!("a={one}"), format!("b={two}"), format!("c={three}")];
        let finished = play(&fixture, &agents.each_ref().map(String::as_str), &["--sandbox", sandbox, "--rounds", "2"]);
        assert_eq!(finished.run.code, 0, "{finished:?}");
        fixture.check_nothing_remains();
        for name in ["plays", "ignores_quit", "speaks_between_moves"] {
            let found = processes(&fixture, name);
            assert_eq!((found.len(), BTreeSet::from_iter(&found).len()), (8, 1), "{sandbox} {name}: {found:?}");
        }
        // The log of a game has the lines of this game only.
        let log = fs::read_to_string(fixture.file("out/replays/3.seat0.log")).unwrap();
        assert!(log.lines().filter(|line| line.starts_with("go")).count() <= 10, "{log}");
    }
}

#[test]
fn an_engine_is_started_again_after_a_fault_or_if_it_asks_for_it() {
    let fixture = MatchFixture::new();
    let (plays, exits) = (engine(&fixture, "plays"), engine(&fixture, "exits_in_second_game"));
    let finished = play(
        &fixture,
        &[&format!("a={plays}?restart=on"), &format!("b={exits}")],
        &["--sandbox", "off", "--rounds", "2"],
    );
    assert_eq!(finished.run.code, 0, "{finished:?}");
    fixture.check_nothing_remains();
    let found = processes(&fixture, "plays");
    assert_eq!((found.len(), BTreeSet::from_iter(&found).len()), (4, 4), "{found:?}");
    let found = processes(&fixture, "exits_in_second_game");
    assert_eq!((found[0], found[2]), (found[1], found[3]));
    assert_ne!(found[1], found[2]);
    let journal = lines(&fixture, "tournament.jsonl");
    let games = journal.iter().filter(|line| line.get("outcome").is_some());
    let reasons: Vec<Option<&str>> = games.map(|game| game["outcome"]["tainted_reason"].as_str()).collect();
    assert_eq!(reasons, [None, Some("CRASHED"), None, Some("CRASHED")]);
}

#[test]
fn the_first_answers_have_time_limits_of_their_own() {
    let detail = |agents: [&str; 2], more: &[&str]| {
        let fixture = MatchFixture::new();
        let agents = agents.map(|agent| {
            let (behavior, options) = agent.split_once('?').unwrap_or((agent, ""));
            format!("{behavior}={}?{options}", engine(&fixture, behavior))
        });
        let finished = play(&fixture, &agents.each_ref().map(String::as_str), more);
        assert_eq!(finished.run.code, 0, "{finished:?}");
        fixture.check_nothing_remains();
        let journal = lines(&fixture, "tournament.jsonl");
        let details = journal.iter().filter_map(|line| line["details"].as_array()).flatten();
        let details: Vec<&str> = details.filter_map(Value::as_str).collect();
        details.join("; ")
    };
    let late = |ms: u32| format!("no answer to the ping within {ms} ms: the engine hasn't sent `readyok`");
    thread::scope(|scope| {
        // Each of the two options is enough for an engine that loads its network when it starts.
        for option in ["--startup-ms", "--ping-ms"] {
            scope.spawn(move || assert_eq!(detail(["plays", "slow_ready"], &[option, "60000"]), "", "{option}"));
        }
        scope.spawn(|| assert_eq!(detail(["plays", "slow_ready?ping-ms=60000&restart=on"], &[]), ""));
    });
    let short = detail(["plays", "slow_ready?startup-ms=900"], &["--startup-ms", "60000"]);
    assert_eq!(short, [late(900), late(900)].join("; "));
    // Only the second game has a limit of its own.
    assert_eq!(detail(["plays", "slow_second_ready"], &["--ping-ms", "400"]), late(400));
}

#[test]
fn a_signal_to_the_runner_also_ends_engines_between_games() {
    for signal in [Signal::INT, Signal::KILL] {
        let fixture = MatchFixture::new();
        let (plays, blocks) = (engine(&fixture, "plays"), engine(&fixture, "blocks"));
        let (other, out) = (engine(&fixture, "ignores_quit"), fixture.file("out"));
        let agents = [format!("--agent=a={plays}"), format!("--agent=b={other}"), format!("--agent=c={blocks}")];
        let fixed = "tournament run chess --set n_epochs=20 --step-ms 86400000 --seed 2 --concurrency 1 --out";
        let fixed: Vec<&str> = fixed.split(' ').chain([out.as_str()]).collect();
        let running = fixture.start(&[&fixed[..], &agents.each_ref().map(String::as_str)].concat());
        // With this seed, the first two play first. One of them waits while the other plays against the third, which
        // never answers.
        fixture.wait_for_processes(3);
        running.signal(signal);
        if signal == Signal::INT {
            // The first signal lets the game end. Equal signals may arrive as one.
            running.signal(Signal::TERM);
        }
        let finished = running.finish();
        assert_ne!(finished.run.code, 0, "{finished:?}");
        fixture.check_nothing_remains_soon();
    }
}
