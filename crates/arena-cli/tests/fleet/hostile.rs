//! Hostile jobs, which a user publishes who may write to the NATS server, and a worker that runs as root.

use std::fs;
use std::process::Command;
use std::time::Duration;

use arena_testkit::NatsServer;
use async_nats::{Client, jetstream};
use futures_util::StreamExt;
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::fixture::{FleetFixture, runtime};

/// Returns an agent of a job that starts a program of the worker's machine.
fn agent(program: &str, args: &[&str]) -> Value {
    let args: Vec<Value> = args.iter().map(|arg| json!({ "text": arg })).collect();
    json!({
        "name": "mallory", "version": null, "path": program, "dialect": "both", "program": { "text": program },
        "args": args, "own": [], "archive": null,
    })
}

/// Returns the subject of jobs for any worker. `word` is the tournament in the subject.
fn subject(word: &str) -> String {
    format!("arena.jobs.{}.{word}.any", generation())
}

fn generation() -> String {
    format!("{}-1", env!("CARGO_PKG_VERSION").replace('.', "_"))
}

/// Publishes a job with this agent at all seats.
async fn publish(client: &Client, word: &str, tournament: &str, agent: &Value, seats: usize) {
    let job = json!({
        "generation": generation(), "tournament": tournament, "job": "job-1", "match_id": "match", "fixture": 1, "round": 1,
        "game": "snake", "options": {}, "limits": { "step_time_limit": 1000, "step_limit_pool": 0 },
        "seed": "0".repeat(64), "seats": vec![agent; seats], "logs": false,
    });
    let js = jetstream::new(client.clone());
    js.publish(subject(word), job.to_string().into()).await.unwrap().await.unwrap();
}

/// Publishes a job with this agent at all seats, and returns the worker's complaint.
async fn complaint_about(client: &Client, tournament: &str, agent: Value, seats: usize) -> String {
    let mut complaints = client.subscribe(format!("arena.fleet.trouble.{tournament}")).await.unwrap();
    client.flush().await.unwrap();
    publish(client, tournament, tournament, &agent, seats).await;
    let complaint = tokio::time::timeout(Duration::from_secs(60), complaints.next()).await.unwrap().unwrap();
    // Otherwise the worker tries the job again.
    let jobs = jetstream::new(client.clone()).get_stream("arena_jobs").await.unwrap();
    jobs.purge().filter(subject(tournament)).await.unwrap();
    let complaint: Value = serde_json::from_slice(&complaint.payload).unwrap();
    complaint["what"].as_str().unwrap().to_owned()
}

#[test]
fn hostile_jobs_start_no_programs_of_the_machine_and_name_none_of_its_files() {
    let (fixture, nats) = (FleetFixture::new(), NatsServer::start());
    let (program, written) = (fixture.path("program"), fixture.path("written"));
    fs::write(&program, format!("#!/bin/sh\ntouch {}\n", written.display())).unwrap();
    fs::set_permissions(&program, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let program = program.to_str().unwrap();
    // Without the sandbox, a program that starts leaves its file.
    let mut worker = fixture.worker(&nats, &["--sandbox", "off", "--concurrency", "4", "--program", "tac"]);
    runtime().block_on(async {
        let client = async_nats::connect(nats.url()).await.unwrap();
        for (number, program) in ["sh", "../../bin/sh", program, "http://169.254.169.254/"].into_iter().enumerate() {
            let complaint = complaint_about(&client, &format!("program{number}"), agent(program, &[]), 2).await;
            let expected = format!(
                "mallory needs the program `{program}`, which this worker doesn't allow; to allow it, start the worker with \
                 --program"
            );
            assert_eq!(complaint, expected);
        }
        for program in ["python3", "tac"] {
            let complaint = complaint_about(&client, program, agent(program, &["/etc/passwd"]), 2).await;
            assert_eq!(complaint, "mallory names /etc/passwd, a path of the worker's machine");
        }
        let mut outside = agent("python3", &[]);
        outside["args"] = json!([{ "own": "../../etc/passwd" }]);
        let complaint = complaint_about(&client, "outside", outside, 2).await;
        assert_eq!(complaint, "mallory names the file ../../etc/passwd, which is outside of its archive");
        let mut large = agent("python3", &[]);
        large["archive"] = "0".repeat(64).into();
        let complaint = complaint_about(&client, "crowd", large, 1000).await;
        assert_eq!(complaint, "snake cannot be played by 1000 agents");

        // Ids with the syntax of NATS, and the name of an archive that isn't a hash.
        publish(&client, "words", "a 0\r\n\r\nPUB arena.results.b", &agent("tac", &[]), 2).await;
        publish(&client, "words", "arena.results", &agent("tac", &[]), 2).await;
        let mut archive = agent("tac", &[]);
        archive["archive"] = "../others".into();
        publish(&client, "words", "words", &archive, 2).await;
        let jobs = jetstream::new(client).get_stream("arena_jobs").await.unwrap();
        while jobs.get_info().await.unwrap().state.messages > 0 {
            // The worker doesn't announce that it drops a job, so the test polls.
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    });
    assert!(!fixture.path("written").exists());
    worker.signal(Signal::TERM);
    assert_eq!(worker.ended().code(), Some(0));
    let said = worker.said();
    assert_eq!(said.matches("dropped an invalid job").count(), 3, "{said}");
}

#[test]
fn a_worker_does_not_run_as_root() {
    // In a namespace of its own, the program runs as root even if the test doesn't.
    let mut unshare = Command::new("unshare");
    unshare.args([
        "--user",
        "--map-root-user",
        env!("CARGO_BIN_EXE_arena"),
        "worker",
        "--nats-url",
        "nats://127.0.0.1",
    ]);
    let output = unshare.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.starts_with("error: a worker doesn't run as root, because it starts programs of others"), "{said}");
}
