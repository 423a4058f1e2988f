//! The executor by workers over NATS: packs the agents of a tournament, connects, and starts the dispatcher.

use std::fs;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use arena_model::Seed;
use arena_nats::NatsUrl;
use arena_tournament::{Line, Plan, PlanError, SpreadLine};
use async_nats::jetstream::object_store::{self, ObjectStore};
use tokio::runtime::Runtime;
use tokio::sync::mpsc;

use crate::competition::{Ended, Event};
use crate::executor::{Executor, RunError};
use crate::journal::{Journal, REPLAYS};
use crate::nats::agents::{Luggage, TravelError, pack};
use crate::nats::connect::{Nats, NatsError, connect};
use crate::nats::dispatcher::Dispatcher;
use crate::nats::publish::put;
use crate::nats::{draw_id, names};

/// How long what still runs in the background may take to end.
const LAST: Duration = Duration::from_millis(250);

/// Plays a tournament by workers.
#[derive(Debug)]
pub struct NatsExecutor<'a> {
    /// The tournament's agents, and the connection.
    pub prepared: Prepared,
    /// The options.
    pub options: NatsOptions<'a>,
}

/// The options of a tournament that workers play.
#[derive(Debug)]
pub struct NatsOptions<'a> {
    /// The share of matches that are played by two workers, from 0 to 1.
    pub check: f64,
    /// No match is handed out any more once this is raised; those that run are waited for.
    pub stop: &'a AtomicBool,
    /// Nothing is waited for once this is raised.
    pub called_off: &'a AtomicBool,
}

/// A tournament can't be played by workers. A sentence about it; nothing has been queued.
#[derive(Debug, thiserror::Error)]
pub enum PrepareError {
    /// Workers can't play these rules.
    #[error(
        "the rules of {0} are a folder's files, and workers play games that are built in; play it without --nats-url"
    )]
    Rules(String),
    /// An agent can't be played by workers.
    #[error(transparent)]
    Travel(#[from] TravelError),
    /// The queue can't be used.
    #[error(transparent)]
    Nats(#[from] NatsError),
    /// The system failed us.
    #[error("the tournament can't be spread: {0}")]
    System(String),
}

/// A tournament whose agents are packed, and a server that answers.
#[derive(Debug)]
pub struct Prepared {
    runtime: Runtime,
    nats: Nats,
    lost: mpsc::UnboundedReceiver<bool>,
    luggage: Luggage,
}

/// Packs the agents of a tournament, and connects. `folder` is the tournament's own, `search` the value of `PATH`.
///
/// # Errors
/// When it can't be played by workers.
pub fn prepare(plan: &Plan, folder: &Path, address: &NatsUrl, search: &str) -> Result<Prepared, PrepareError> {
    if plan.script.is_some() {
        return Err(PrepareError::Rules(plan.game.clone()));
    }
    let luggage = pack(&plan.agents, folder, search)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    let runtime = runtime.map_err(|error| PrepareError::System(error.to_string()))?;
    let (told_lost, lost) = mpsc::unbounded_channel();
    let nats = runtime.block_on(connect(address, "arena tournament", told_lost))?;
    Ok(Prepared { runtime, nats, lost, luggage })
}

impl Executor<Journal> for NatsExecutor<'_> {
    fn play<E: Send>(
        self,
        journal: &mut Journal,
        on_event: impl FnMut(&Journal, Event) -> Result<(), E> + Send,
    ) -> Result<Ended, RunError<E>> {
        let NatsExecutor { prepared: Prepared { runtime, nats, lost, luggage }, options } = self;
        let plan = &journal.record().plan;
        let seed = Seed::from_revealed(&plan.seed).ok_or(PlanError::Seed)?;
        let replays = plan.replays.then(|| journal.folder().join(REPLAYS));
        if let Some(path) = &replays {
            fs::create_dir_all(path).map_err(|source| RunError::Write { path: path.clone(), source })?;
        }
        let draw = || draw_id().map_err(|error| RunError::System(error.to_string()));
        let run = draw()?;
        let tournament = match &journal.record().spread {
            Some(spread) => spread.id.clone(),
            None => {
                let id = draw()?;
                journal.append(Line::Spread(SpreadLine { id: id.clone() }))?;
                id
            }
        };
        let ended = runtime.block_on(async {
            let bucket = unload(&nats, &tournament, &luggage).await?;
            let ids = (tournament, run);
            let dispatcher =
                Dispatcher::new(nats, bucket, ids, seed, luggage.travellers, replays, &options, journal, on_event);
            dispatcher.play(lost).await
        });
        runtime.shutdown_timeout(LAST);
        ended
    }
}

/// Puts the agents where workers find them.
async fn unload(nats: &Nats, tournament: &str, luggage: &Luggage) -> Result<ObjectStore, NatsError> {
    let name = names::bucket(tournament);
    let bucket = match nats.js.get_object_store(&name).await {
        Ok(bucket) => bucket,
        Err(_) => {
            let config =
                object_store::Config { bucket: name, max_age: names::OBJECTS_KEPT, ..object_store::Config::default() };
            nats.js.create_object_store(config).await.map_err(|error| nats.failed(&error))?
        }
    };
    for (sha256, bytes) in &luggage.archives {
        let sent = put(nats, &bucket, sha256, bytes).await;
        sent.map_err(|what| NatsError::Failed { url: nats.url.clone(), what })?;
    }
    Ok(bucket)
}
