//! A worker that submits false results: games in which the other agent has won. It uses the protocol of jobs directly.

use std::fs;
use std::io::Write;
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use arena_match::verified_result;
use async_nats::jetstream::{self, AckKind, consumer::pull};
use flate2::Compression;
use flate2::write::GzEncoder;
use futures_util::StreamExt;
use serde_json::{Value, json};

use crate::fixture::runtime;
use crate::program::run;

/// A worker that submits false results until the value is dropped.
pub struct Liar {
    task: tokio::task::JoinHandle<()>,
    lied: Mutex<Receiver<()>>,
}

impl Liar {
    /// Waits until the worker has submitted a false result.
    pub fn wait(&self) {
        self.lied.lock().unwrap().recv_timeout(Duration::from_secs(60)).unwrap();
    }
}

impl Drop for Liar {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Starts a worker with this name that submits false results. `cheat` is the agent that plays in place of the right
/// agents.
pub fn start(url: &str, name: &str, cheat: &str) -> Liar {
    let (url, name, cheat) = (url.to_owned(), name.to_owned(), cheat.to_owned());
    let (lies, lied) = channel();
    let task = runtime().spawn(async move {
        let client = async_nats::connect(&url).await.unwrap();
        let js = jetstream::new(client.clone());
        let generation = format!("{}-1", env!("CARGO_PKG_VERSION").replace('.', "_"));
        let presence = json!({
            "id": name, "name": name, "generation": generation, "slots": 1, "sandbox": "on", "playing": {}, "leaving": false,
        });
        for (stream, subjects) in [("arena_jobs", "arena.jobs.>"), ("arena_results", "arena.results.>")] {
            let config = jetstream::stream::Config {
                name: stream.to_owned(),
                subjects: vec![subjects.to_owned()],
                retention: jetstream::stream::RetentionPolicy::WorkQueue,
                max_age: Duration::from_secs(7 * 24 * 3600),
                ..Default::default()
            };
            js.get_or_create_stream(config).await.unwrap();
        }
        let usual = pull::Config { ack_wait: Duration::from_secs(10), ..Default::default() };
        let own = pull::Config {
            name: Some(format!("arena_worker_{name}")),
            filter_subject: format!("arena.jobs.{generation}.*.to.{name}"),
            inactive_threshold: Duration::from_secs(300),
            ..usual.clone()
        };
        let shared = pull::Config {
            durable_name: Some(format!("arena_workers_{generation}")),
            filter_subject: format!("arena.jobs.{generation}.*.any"),
            max_deliver: 30,
            max_ack_pending: -1,
            ..usual
        };
        let own = js.create_consumer_on_stream(own, "arena_jobs").await.unwrap();
        let shared = js.create_consumer_on_stream(shared, "arena_jobs").await.unwrap();
        let subject = format!("arena.fleet.workers.{name}");
        let tell = async {
            // Its presence is announced also during a job.
            loop {
                client.publish(subject.clone(), presence.to_string().into()).await.unwrap();
                tokio::time::sleep(Duration::from_millis(500)).await;
            }
        };
        let work = async { loop {
            for consumer in [&own, &shared] {
                let batch = consumer.batch().max_messages(1).expires(Duration::from_millis(100));
                let Ok(mut batch) = batch.messages().await else { continue };
                while let Some(Ok(message)) = batch.next().await {
                    let job: Value = serde_json::from_slice(&message.payload).unwrap();
                    let (name, cheat) = (name.clone(), cheat.clone());
                    let result = format!("arena.results.{}", job["tournament"].as_str().unwrap());
                    let outcome = tokio::task::spawn_blocking(move || outcome(&job, &name, &cheat)).await.unwrap();
                    let Ok(submission) = js.publish(result, outcome.into()).await else { continue };
                    // On a busy machine the server may answer too late. The job then comes again.
                    if submission.await.is_ok() && message.ack_with(AckKind::Ack).await.is_ok() {
                        let _ = lies.send(());
                    }
                }
            }
        } };
        let _: ((), ()) = tokio::join!(tell, work);
    });
    Liar { task, lied: Mutex::new(lied) }
}

/// Returns the worker's submission for a job.
fn outcome(job: &Value, name: &str, cheat: &str) -> Vec<u8> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("replay.jsonl");
    let mut args = vec!["match", "run", "snake", "--json", "--set", "n_epochs=12", "--agent", cheat, "--agent", cheat];
    args.extend(["--seed", job["seed"].as_str().unwrap(), "--replay", path.to_str().unwrap()]);
    let output = run(&args).json();
    let replay = fs::read(&path).unwrap();
    let mut seats = output["scores"].as_array().unwrap().clone();
    seats.sort_by_key(|seat| seat["seat"].as_u64());
    let of_seats = |key: &str| -> Vec<Value> { seats.iter().map(|seat| seat[key].clone()).collect() };
    let head = json!({
        "tournament": job["tournament"],
        "job": job["job"],
        "match_id": job["match_id"],
        "fixture": job["fixture"],
        "worker": {"id": name, "name": name},
        "played": {
            "game": {
                "fixture": job["fixture"],
                "round": job["round"],
                "agents": job["seats"].as_array().unwrap().iter().map(|seat| &seat["name"]).collect::<Vec<_>>(),
                "ranks": of_seats("rank"),
                "scores": [1000.0, 0.0],
                "verdicts": [null, null],
                "details": [null, null],
                "faults": [0, 0],
                "seed": job["seed"],
                "epochs": output["epochs"],
                "outcome": output["outcome"],
                "moves": verified_result(&replay[..]).unwrap().result.moves,
                "time": {"took_ms": 1.0, "waited_ms": [0.0, 0.0], "longest_step_ms": [0.0, 0.0]},
            },
            "replay_bytes": replay.len(),
            "log_bytes": [],
        },
    });
    let mut packed = GzEncoder::new(Vec::new(), Compression::fast());
    packed.write_all(&replay).unwrap();
    [head.to_string().as_bytes(), b"\n", &packed.finish().unwrap()].concat()
}
