//! Names of streams, subjects, consumers and buckets. All begin with `arena`, so that other programs can share the NATS
//! server.

use std::time::Duration;

/// The version of the messages between tournaments and workers.
const PROTOCOL: u32 = 1;

/// The stream of jobs: a work queue, from which the server removes acknowledged jobs.
pub const JOBS: &str = "arena_jobs";

pub const JOB_SUBJECTS: &str = "arena.jobs.>";

/// A stream. The server removes a result after the dispatcher has written it to the journal and acknowledged it.
pub const RESULTS: &str = "arena_results";

pub const RESULT_SUBJECTS: &str = "arena.results.>";

/// The time after which the server deletes the jobs and results of an interrupted tournament.
pub const KEPT: Duration = Duration::from_secs(7 * 24 * 3600);

/// The time after which the server deletes the agents and replays of a tournament that never ended.
pub const OBJECTS_KEPT: Duration = Duration::from_secs(30 * 24 * 3600);

/// Returns the generation: the versions of the program and of its messages, as part of a subject. A tournament and its
/// workers must have the same generation, since another version may have other rules.
pub fn generation() -> String {
    format!("{}-{PROTOCOL}", env!("CARGO_PKG_VERSION").replace('.', "_"))
}

/// Returns the subject of a tournament's jobs that any worker may take.
pub fn for_any_worker(tournament: &str) -> String {
    format!("arena.jobs.{}.{tournament}.any", generation())
}

/// Returns the subject of a tournament's jobs that are reserved for one worker.
pub fn for_worker(tournament: &str, worker: &str) -> String {
    format!("arena.jobs.{}.{tournament}.to.{worker}", generation())
}

/// Returns the subjects of all jobs of a tournament.
pub fn jobs_of(tournament: &str) -> String {
    format!("arena.jobs.{}.{tournament}.>", generation())
}

/// Returns the name of the consumer that all workers share.
pub fn shared_consumer() -> String {
    format!("arena_workers_{}", generation())
}

/// Returns the name of the consumer for the jobs that are reserved for one worker.
pub fn own_consumer(worker: &str) -> String {
    format!("arena_worker_{worker}")
}

pub fn results_of(tournament: &str) -> String {
    format!("arena.results.{tournament}")
}

pub fn result_consumer(tournament: &str) -> String {
    format!("arena_results_{tournament}")
}

/// Returns the name of the object store bucket that contains a tournament's agents and large replays.
pub fn bucket(tournament: &str) -> String {
    format!("arena_{tournament}")
}

pub fn presence(worker: &str) -> String {
    format!("arena.fleet.workers.{worker}")
}

pub fn announcement(tournament: &str) -> String {
    format!("arena.fleet.tournaments.{tournament}")
}

/// Returns the subject of workers' reports that they can't play a tournament's matches.
pub fn trouble(tournament: &str) -> String {
    format!("arena.fleet.trouble.{tournament}")
}
