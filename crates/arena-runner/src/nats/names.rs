//! What streams, subjects and buckets are called. All begin with `arena`, so that others can use the same NATS server.

use std::time::Duration;

/// The version of what tournaments and workers say to each other.
const PROTOCOL: u32 = 1;

/// The stream of jobs: a work queue, from which a job goes when it has been played.
pub const JOBS: &str = "arena_jobs";

/// All subjects of jobs.
pub const JOB_SUBJECTS: &str = "arena.jobs.>";

/// The stream of results, from which one goes when it is in the tournament's journal.
pub const RESULTS: &str = "arena_results";

/// All subjects of results.
pub const RESULT_SUBJECTS: &str = "arena.results.>";

/// How long jobs and results are kept that nobody comes for: of tournaments that were broken off and never gone on with.
pub const KEPT: Duration = Duration::from_secs(7 * 24 * 3600);

/// How long agents and replays are kept of tournaments that never ended.
pub const OBJECTS_KEPT: Duration = Duration::from_secs(30 * 24 * 3600);

/// The version of the program and of what it says to workers, as part of a subject. Only those of the same play with each other: the
/// same rules have to come to the same.
pub fn generation() -> String {
    format!("{}-{PROTOCOL}", env!("CARGO_PKG_VERSION").replace('.', "_"))
}

/// The subject of jobs for whoever is free.
pub fn for_anybody(tournament: &str) -> String {
    format!("arena.jobs.{}.{tournament}.any", generation())
}

/// The subject of jobs for this worker.
pub fn for_worker(tournament: &str, worker: &str) -> String {
    format!("arena.jobs.{}.{tournament}.to.{worker}", generation())
}

/// All jobs of a tournament.
pub fn jobs_of(tournament: &str) -> String {
    format!("arena.jobs.{}.{tournament}.>", generation())
}

/// The consumer that all workers share.
pub fn shared_consumer() -> String {
    format!("arena_workers_{}", generation())
}

/// The consumer of a worker's own jobs.
pub fn own_consumer(worker: &str) -> String {
    format!("arena_worker_{worker}")
}

/// The subject of a tournament's results.
pub fn results_of(tournament: &str) -> String {
    format!("arena.results.{tournament}")
}

/// The consumer of a tournament's results.
pub fn result_consumer(tournament: &str) -> String {
    format!("arena_results_{tournament}")
}

/// The bucket of a tournament's agents and large replays.
pub fn bucket(tournament: &str) -> String {
    format!("arena_{tournament}")
}

/// Where a worker says that it is there, and what it plays.
pub fn presence(worker: &str) -> String {
    format!("arena.fleet.workers.{worker}")
}

/// Where a tournament says that it is being played.
pub fn announcement(tournament: &str) -> String {
    format!("arena.fleet.tournaments.{tournament}")
}

/// Where workers say what keeps them from playing a tournament's matches.
pub fn trouble(tournament: &str) -> String {
    format!("arena.fleet.trouble.{tournament}")
}

/// Where a worker is told that a tournament believes it no more.
pub fn refusal(worker: &str) -> String {
    format!("arena.fleet.refused.{worker}")
}
