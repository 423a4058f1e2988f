//! Tournaments and leagues with workers: real processes and a real NATS server, with kills, restarts and false results. The results
//! must equal those of a tournament on one machine.
#![allow(clippy::unwrap_used, reason = "in tests a failed unwrap is a failed test")]

mod fixture;
mod hostile;
mod league;
mod liar;
#[path = "../program/program.rs"]
#[allow(dead_code, reason = "the other tests of the binary use more of it")]
mod program;
mod refusals;

use std::time::Duration;

use arena_testkit::NatsServer;
use async_nats::jetstream;
use futures_util::StreamExt;
use rustix::process::Signal;

use fixture::{FleetFixture, finish};

#[test]
fn workers_get_the_same_results_as_one_machine() {
    let (fixture, nats) = (FleetFixture::new(), NatsServer::start());
    let agents = [fixture.bot("a", 1, 0.0), fixture.bot("b", 2, 0.0), fixture.bot("c", 3, 0.0)];
    fixture.play_here(&agents, &["--replays", "--rounds", "2"]);
    let parrot = repeat_results(&nats.url());
    let running = fixture.workers(&nats, &["one", "two"]);
    let output = fixture.play_far(&nats, &agents, &["--replays", "--rounds", "2", "--cross-check", "0.5"]);
    assert_eq!(output.code, 0, "{output:#?}");
    parrot.abort();
    // Journal, replays, logs and standings are the same, although each result arrived twice.
    fixture.assert_same();
    for number in 1..=12 {
        for file in ["jsonl", "seat0.log", "seat1.log"] {
            let name = format!("replays/{number}.{file}");
            assert_eq!(fixture.file("far", &name), fixture.file("here", &name), "{name}");
        }
    }
    let journal = fixture.journal("far");
    for name in ["one", "two"] {
        assert!(journal.contains(&format!(r#""worker":{{"name":"{name}""#)), "{name} has played: {journal}");
    }
    assert!(journal.contains(r#"{"type":"checked""#), "{journal}");
    assert_eq!(left_behind(&nats.url()), ["arena_jobs 0", "arena_results 0"]);
    for mut worker in running {
        worker.signal(Signal::TERM);
        assert_eq!(worker.ended().code(), Some(0));
    }
}

#[test]
fn a_worker_that_is_killed_loses_nothing() {
    let (fixture, nats) = (FleetFixture::new(), NatsServer::start_guarded("tok3n"));
    let agents = [fixture.bot("a", 1, 0.1), fixture.bot("b", 2, 0.0)];
    fixture.play_here(&agents, &["--rounds", "3"]);
    let first = fixture.worker(&nats, &["--name", "first", "--concurrency", "2"]);
    let tournament = fixture.start_far(&nats, &agents, &["--rounds", "3", "--cross-check", "0"]);
    fixture.wait_for_games("far", 1);
    first.signal(Signal::KILL);
    let _second = fixture.worker(&nats, &["--name", "second", "--concurrency", "2"]);
    let output = finish(tournament);
    assert_eq!(output.code, 0, "{output:#?}");
    fixture.assert_same();
}

#[test]
fn a_worker_that_is_stopped_finishes_or_returns_its_games() {
    let (fixture, nats) = (FleetFixture::new(), NatsServer::start());
    let agents = [fixture.bot("a", 1, 0.2), fixture.bot("b", 2, 0.0)];
    fixture.play_here(&agents, &["--rounds", "2"]);
    let mut patient = fixture.worker(&nats, &["--name", "patient"]);
    let tournament = fixture.start_far(&nats, &agents, &["--rounds", "2", "--cross-check", "0"]);
    fixture.wait_for_games("far", 1);
    patient.signal(Signal::TERM);
    assert_eq!(patient.ended().code(), Some(0));
    let games = fixture.games("far");
    let mut hasty = fixture.worker(&nats, &["--name", "hasty"]);
    fixture.wait_for_games("far", games + 1);
    // The signals differ, because the kernel merges pending signals of the same kind.
    hasty.signal(Signal::INT);
    hasty.signal(Signal::TERM);
    assert_eq!(hasty.ended().code(), Some(0));
    assert!(hasty.said().contains("returning the games in progress"));
    let _last = fixture.worker(&nats, &["--name", "last", "--concurrency", "2"]);
    let output = finish(tournament);
    assert_eq!(output.code, 0, "{output:#?}");
    for name in ["patient", "hasty"] {
        assert!(output.stderr.contains(&format!("worker {name} has stopped")), "{}", output.stderr);
    }
    fixture.assert_same();
}

#[test]
fn a_server_that_is_restarted_and_a_tournament_that_is_killed_lose_nothing() {
    let (fixture, mut nats) = (FleetFixture::new(), NatsServer::start());
    let agents = [fixture.bot("a", 1, 0.05), fixture.bot("b", 2, 0.0)];
    fixture.play_here(&agents, &["--rounds", "5"]);
    let _workers = fixture.workers(&nats, &["one", "two"]);
    let mut tournament = fixture.start_far(&nats, &agents, &["--rounds", "5", "--cross-check", "0.3"]);
    fixture.wait_for_games("far", 2);
    nats.restart();
    fixture.wait_for_games("far", 4);
    tournament.kill().unwrap();
    tournament.wait().unwrap();
    let output = fixture.resume_far(&nats, &["--cross-check", "0.3"]);
    assert_eq!(output.code, 0, "{output:#?}");
    fixture.assert_same();
}

#[test]
fn a_false_result_does_not_count_and_the_game_is_played_again() {
    let (fixture, nats) = (FleetFixture::new(), NatsServer::start());
    let agents = [fixture.bot("a", 1, 0.0), fixture.bot("b", 2, 0.0)];
    let cheat = fixture.bot("cheat", 7, 0.0);
    fixture.play_here(&agents, &["--rounds", "4"]);
    let liar = liar::start(&nats.url(), "forger", &cheat);
    let tournament = fixture.start_far(&nats, &agents, &["--rounds", "4", "--cross-check", "1"]);
    liar.wait();
    drop(liar);
    let _workers = fixture.workers(&nats, &["one", "two"]);
    let output = finish(tournament);
    assert_eq!(output.code, 0, "{output:#?}");
    let said = &output.stderr;
    assert!(said.contains(" by worker forger doesn't count: the result differs from that of the replay"), "{said}");
    fixture.assert_same();
}

#[test]
fn a_game_whose_results_are_all_false_ends_the_tournament() {
    let (fixture, nats) = (FleetFixture::new(), NatsServer::start());
    let agents = [fixture.bot("a", 1, 0.0), fixture.bot("b", 2, 0.0)];
    let _liar = liar::start(&nats.url(), "forger", &fixture.bot("cheat", 7, 0.0));
    let output = fixture.play_far(&nats, &agents, &[]);
    let reason = "10 results were false, the last one by worker forger: the result differs from that of the replay";
    assert!(output.code == 8 && output.stderr.contains(reason), "{output:#?}");
}

#[test]
fn games_that_two_workers_play_differently_are_listed() {
    let (fixture, nats) = (FleetFixture::new(), NatsServer::start());
    let agents = [fixture.random_bot("dice"), fixture.bot("b", 2, 0.0)];
    let _workers = fixture.workers(&nats, &["one", "two", "three"]);
    let output = fixture.play_far(&nats, &agents, &["--rounds", "2", "--cross-check", "1"]);
    assert_eq!(output.code, 0, "{output:#?}");
    assert!(output.stderr.contains("two workers played these games differently: game "), "{}", output.stderr);
    let report = fixture.standings("far", &["--html"]);
    assert!(report.contains("played game 1 differently"), "{report}");
}

#[test]
fn replays_that_are_larger_than_a_message_arrive() {
    let (fixture, nats) = (FleetFixture::new(), NatsServer::start_with("max_payload: 6000"));
    let agents = [fixture.bot("a", 1, 0.0), fixture.bot("b", 2, 0.0)];
    let long = ["--replays", "--set", "n_epochs=300"];
    fixture.play_here(&agents, &long);
    let _worker = fixture.worker(&nats, &[]);
    let output = fixture.play_far(&nats, &agents, &long);
    assert_eq!(output.code, 0, "{output:#?}");
    for number in 1..=2 {
        let name = format!("replays/{number}.jsonl");
        assert_eq!(fixture.file("far", &name), fixture.file("here", &name));
    }
    assert_eq!(left_behind(&nats.url()), ["arena_jobs 0", "arena_results 0"]);
}

#[test]
fn workers_of_other_versions_get_no_games() {
    let (fixture, nats) = (FleetFixture::new(), NatsServer::start());
    let agents = [fixture.bot("a", 1, 0.0), fixture.bot("b", 2, 0.0)];
    let client = fixture::runtime().block_on(async_nats::connect(nats.url())).unwrap();
    let others = fixture::runtime().spawn(async move {
        let presence =
            r#"{"id":"n","name":"newer","generation":"9_9_9-1","slots":1,"sandbox":"on","playing":{},"leaving":false}"#;
        let tournament = r#"{"tournament":"newest","generation":"9_9_9-1"}"#;
        loop {
            client.publish("arena.fleet.workers.n", presence.into()).await.unwrap();
            client.publish("arena.fleet.tournaments.newest", tournament.into()).await.unwrap();
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    });
    let mut own = fixture.worker(&nats, &[]);
    let output = fixture.play_far(&nats, &agents, &[]);
    others.abort();
    assert_eq!(output.code, 0, "{output:#?}");
    let version = format!("{}-1", env!("CARGO_PKG_VERSION").replace('.', "_"));
    let sentence =
        format!("note: worker newer runs arena 9_9_9-1, but this program is {version}; the worker gets no games");
    assert_eq!(output.stderr.matches(&sentence).count(), 1, "{}", output.stderr);
    own.signal(Signal::TERM);
    own.ended();
    let said = own.said();
    let sentence = format!(
        "note: tournament newest runs arena 9_9_9-1, but this worker is {version}; the worker takes none of its games"
    );
    assert_eq!(said.matches(&sentence).count(), 1, "{said}");
}

#[test]
fn a_worker_without_an_interpreter_leaves_games_to_others() {
    let (fixture, nats) = (FleetFixture::new(), NatsServer::start());
    let agents = [fixture.bot("a", 1, 0.0), fixture.bot("b", 2, 0.0)];
    fixture.play_here(&agents, &[]);
    let client = fixture::runtime().block_on(async_nats::connect(nats.url())).unwrap();
    let mut troubles = fixture::runtime().block_on(client.subscribe("arena.fleet.trouble.>")).unwrap();
    let _poor = fixture.worker_with(&nats, &["--name", "poor"], &[("PATH", "/nowhere")]);
    let tournament = fixture.start_far(&nats, &agents, &[]);
    let trouble =
        fixture::runtime().block_on(async { tokio::time::timeout(Duration::from_secs(60), troubles.next()).await });
    let trouble = String::from_utf8(trouble.unwrap().unwrap().payload.to_vec()).unwrap();
    assert!(trouble.contains("needs the program `python3`, which isn't in PATH"), "{trouble}");
    let _rich = fixture.worker(&nats, &["--name", "rich"]);
    let output = finish(tournament);
    assert_eq!(output.code, 0, "{output:#?}");
    assert!(output.stderr.contains("worker poor cannot play: "), "{}", output.stderr);
    fixture.assert_same();
}

/// Publishes results a second time, as a worker does if an acknowledgment is lost. The last result is excluded, because
/// the streams are cleaned up after it.
fn repeat_results(url: &str) -> tokio::task::AbortHandle {
    let runtime = fixture::runtime();
    let client = runtime.block_on(async_nats::connect(url)).unwrap();
    let mut results = runtime.block_on(client.subscribe("arena.results.>")).unwrap();
    let task = runtime.spawn(async move {
        let mut known = std::collections::BTreeSet::new();
        while let Some(message) = results.next().await {
            if known.len() < 8 && known.insert(message.payload.clone()) {
                client.publish(message.subject, message.payload).await.unwrap();
            }
        }
    });
    task.abort_handle()
}

/// Returns the existing streams, and the number of messages in each. The last messages may take a moment to disappear.
fn left_behind(url: &str) -> Vec<String> {
    fixture::runtime().block_on(async {
        let js = jetstream::new(async_nats::connect(url).await.unwrap());
        let until = tokio::time::Instant::now() + Duration::from_secs(10);
        loop {
            let mut streams = Vec::new();
            let mut infos = js.streams();
            while let Some(info) = infos.next().await {
                let info = info.unwrap();
                streams.push(format!("{} {}", info.config.name, info.state.messages));
            }
            streams.sort();
            let is_clean = streams.iter().all(|stream| stream.ends_with(" 0"));
            if is_clean || tokio::time::Instant::now() > until {
                return streams;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    })
}
