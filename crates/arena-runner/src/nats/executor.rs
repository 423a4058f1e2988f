//! The executor for workers over NATS: packs the agents of a competition, connects, and starts the dispatcher.

use std::fs;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use arena_nats::NatsUrl;
use arena_record::RecordKey;
use arena_tournament::{Entrant, JournalLine, SpreadLine, TournamentPlan};
use async_nats::jetstream::object_store::{self, ObjectStore};
use tokio::runtime::Runtime;
use tokio::sync::mpsc;

use crate::competition::{Competition, Ended, Event};
use crate::executor::{Executor, RunError};
use crate::journal::REPLAYS;
use crate::nats::agents::{PackedAgents, TravelError, pack};
use crate::nats::connect::{Nats, NatsError, connect};
use crate::nats::dispatcher::{Dispatcher, JobQueue};
use crate::nats::publish::put;
use crate::nats::{draw_id, names};

/// The time to wait for background tasks at the end.
const LAST: Duration = Duration::from_millis(250);

/// An executor that distributes a competition's matches to workers.
pub struct NatsExecutor<'a> {
    /// The packed agents and the connection to the NATS server.
    pub prepared: Prepared,
    pub options: NatsOptions<'a>,
}

pub struct NatsOptions<'a> {
    /// The share of matches that two workers play for comparison, from 0 to 1.
    pub check: f64,
    /// A flag: once true, the dispatcher publishes no further jobs and waits for the matches under way.
    pub stop: &'a AtomicBool,
    /// A flag: once true, the run ends without waiting for matches.
    pub called_off: &'a AtomicBool,
    /// The largest size of a replay that is kept, in bytes.
    pub replay_bytes: u64,
    /// The key that signs the replays.
    pub sign_key: Option<&'a RecordKey>,
}

/// An error for a competition that workers can't play. No job has been published.
#[derive(Debug, thiserror::Error)]
pub enum PrepareError {
    #[error("workers play only built-in games, but {0} is a script; leave out --nats-url")]
    Rules(String),
    #[error("workers don't support {0}, which this tournament has; leave out --nats-url")]
    LocalOnly(&'static str),
    /// An agent that workers can't play.
    #[error(transparent)]
    Travel(#[from] TravelError),
    #[error(transparent)]
    Nats(#[from] NatsError),
    #[error("cannot start the dispatcher: {0}")]
    System(String),
}

/// A competition's packed agents, with a connection to the NATS server.
#[derive(Debug)]
pub struct Prepared {
    runtime: Runtime,
    nats: Nats,
    lost: mpsc::UnboundedReceiver<bool>,
    packed: PackedAgents,
}

/// Packs the agents of a tournament, and connects to the NATS server. `folder` is the tournament's folder, and `search`
/// the value of `PATH`.
///
/// # Errors
/// [`PrepareError`] if workers can't play the tournament.
pub fn prepare(
    plan: &TournamentPlan,
    folder: &Path,
    address: &NatsUrl,
    search: &str,
) -> Result<Prepared, PrepareError> {
    prepare_agents(plan, &plan.agents.iter().enumerate().collect::<Vec<_>>(), folder, address, search)
}

/// Packs these agents, given with their numbers in the competition, and connects to the NATS server. The other
/// arguments are those of [`prepare`].
///
/// # Errors
/// [`PrepareError`] if workers can't play the agents.
pub(crate) fn prepare_agents(
    plan: &TournamentPlan,
    entrants: &[(usize, &Entrant)],
    folder: &Path,
    address: &NatsUrl,
    search: &str,
) -> Result<Prepared, PrepareError> {
    if plan.script.is_some() {
        return Err(PrepareError::Rules(plan.game.clone()));
    }
    let local_only = [
        ("time controls", plan.time_control.is_some()),
        ("limits of first answers", !plan.start_limits.is_usual()),
        ("openings", plan.openings.is_some()),
        ("adjudication", plan.adjudication.is_some()),
    ];
    if let Some((what, _)) = local_only.into_iter().find(|(_, is_set)| *is_set) {
        return Err(PrepareError::LocalOnly(what));
    }
    let packed = pack(entrants, folder, search)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    let runtime = runtime.map_err(|error| PrepareError::System(error.to_string()))?;
    let (lost_sender, lost) = mpsc::unbounded_channel();
    let nats = runtime.block_on(connect(address, "arena dispatcher", lost_sender))?;
    Ok(Prepared { runtime, nats, lost, packed })
}

impl<C: Competition + Send> Executor<C> for NatsExecutor<'_> {
    fn play<E: Send>(
        self,
        competition: &mut C,
        on_event: impl FnMut(&C, Event) -> Result<(), E> + Send,
    ) -> Result<Ended, RunError<E>> {
        let NatsExecutor { prepared: Prepared { runtime, nats, lost, packed }, options } = self;
        if competition.plan().replays {
            let path = competition.folder().join(REPLAYS);
            fs::create_dir_all(&path).map_err(|source| RunError::Write { path, source })?;
        }
        let run = draw_id().map_err(|error| RunError::System(error.to_string()))?;
        let id = id_of(competition)?;
        competition.begin();
        let ended = runtime.block_on(async {
            let bucket = upload(&nats, &id, &packed).await?;
            let queue = JobQueue::new(nats, bucket, id, run);
            Dispatcher::new(queue, packed.agents, &options, competition, on_event).play(lost).await
        });
        runtime.shutdown_timeout(LAST);
        ended
    }
}

/// Returns the competition's id on the NATS server: letters, digits and hyphens. The id is the same in all runs.
fn id_of<E>(competition: &mut impl Competition) -> Result<String, RunError<E>> {
    if let Some(spread) = competition.spread() {
        return Ok(spread.id.clone());
    }
    let id = draw_id().map_err(|error| RunError::System(error.to_string()))?;
    competition.append(JournalLine::Spread(SpreadLine { id: id.clone() }))?;
    Ok(id)
}

/// Uploads the agents' archives to the competition's bucket.
async fn upload(nats: &Nats, tournament: &str, packed: &PackedAgents) -> Result<ObjectStore, NatsError> {
    let name = names::bucket(tournament);
    let bucket = match nats.js.get_object_store(&name).await {
        Ok(bucket) => bucket,
        Err(_) => {
            let config =
                object_store::Config { bucket: name, max_age: names::OBJECTS_KEPT, ..object_store::Config::default() };
            nats.js.create_object_store(config).await.map_err(|error| nats.failed(&error))?
        }
    };
    for (sha256, bytes) in &packed.archives {
        let sent = put(nats, &bucket, sha256, bytes).await;
        sent.map_err(|what| NatsError::Failed { url: nats.url.clone(), what })?;
    }
    Ok(bucket)
}

#[cfg(test)]
mod tests {
    use arena_model::{Seed, TimeControl};
    use arena_tournament::{Format, Shape};

    use super::*;

    #[test]
    fn a_plan_with_terms_of_this_machine_is_refused() {
        let shape = Shape {
            format: Format::RoundRobin,
            agents: 2,
            rounds: 1,
            seats: 2,
            paired: true,
            stop: None,
            seed: Seed::from_number(5),
        };
        let plan = |change: fn(&mut TournamentPlan)| {
            let mut plan = TournamentPlan::new(arena_games::game("chess").unwrap(), Vec::new(), &shape);
            change(&mut plan);
            plan
        };
        let cases = [
            (plan(|plan| plan.time_control = TimeControl::of_move("1")), "time controls"),
            (plan(|plan| plan.start_limits.startup_ms = Some(1)), "limits of first answers"),
        ];
        for (plan, what) in cases {
            let refused = prepare(&plan, Path::new("/nonexistent"), &"nats://127.0.0.1:9".parse().unwrap(), "");
            assert!(matches!(refused, Err(PrepareError::LocalOnly(found)) if found == what), "{refused:?}");
        }
    }
}
