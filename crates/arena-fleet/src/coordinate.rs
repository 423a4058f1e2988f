//! Tournaments by workers, as others see them: prepared, played, and what can be wrong with that.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use arena_match::tournament::{Ended as HowEnded, Journal, JournalError, Plan, PlanError, REPLAYS, SpreadLine};
use arena_model::Seed;
use arena_nats::NatsUrl;
use async_nats::jetstream::object_store::{self, ObjectStore};
use tokio::runtime::Runtime;
use tokio::sync::mpsc;

use crate::agents::{Luggage, TravelError, pack};
use crate::connect::{Nats, NatsError, connect};
use crate::hall::Hall;
use crate::publish::put;
use crate::{draw_id, names};

/// How long what still runs in the background may take to end.
const LAST: Duration = Duration::from_millis(250);

/// How a tournament is played by workers.
#[derive(Debug)]
pub struct Spread<'a> {
    /// The share of matches that are played by two workers, from 0 to 1.
    pub check: f64,
    /// No match is handed out any more once this is raised; those that run are waited for.
    pub stop: &'a AtomicBool,
    /// Nothing is waited for once this is raised.
    pub called_off: &'a AtomicBool,
}

/// What is told of a tournament on its way.
#[derive(Debug)]
pub enum Told<'a> {
    /// The match of this number is in the journal.
    Game(&'a Journal, usize),
    /// A remark: a sentence.
    Note(String),
    /// How many workers there are, and how many matches they play.
    Workers {
        /// That take matches.
        workers: usize,
        /// Of this tournament.
        playing: usize,
    },
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

/// A tournament can't go on.
#[derive(Debug, thiserror::Error)]
pub enum FleetError<E> {
    /// The queue can't be used.
    #[error(transparent)]
    Nats(#[from] NatsError),
    /// It can't be played so.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// A result can't be kept.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// Replays and logs can't be written.
    #[error("{} can't be written: {source}", path.display())]
    Replay {
        /// What.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// No worker can play a match.
    #[error("game {number} can't be played by any worker: {what}")]
    Match {
        /// Which.
        number: usize,
        /// The last sentence of a worker.
        what: String,
    },
    /// The system failed us.
    #[error("{0}")]
    System(String),
    /// The caller's.
    #[error("{0}")]
    Told(E),
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

impl Prepared {
    /// Plays what is left of the tournament by workers. `told` hears of all that happens.
    ///
    /// # Errors
    /// See [`FleetError`]. What was played until then is kept.
    pub fn play<E>(
        self,
        journal: &mut Journal,
        how: &Spread<'_>,
        told: impl FnMut(Told<'_>) -> Result<(), E>,
    ) -> Result<HowEnded, FleetError<E>> {
        let Prepared { runtime, nats, lost, luggage } = self;
        let plan = &journal.record().plan;
        let seed = Seed::from_revealed(&plan.seed).ok_or(PlanError::Seed)?;
        let replays = plan.replays.then(|| journal.folder().join(REPLAYS));
        if let Some(path) = &replays {
            fs::create_dir_all(path).map_err(|source| FleetError::Replay { path: path.clone(), source })?;
        }
        let draw = || draw_id().map_err(|error| FleetError::System(error.to_string()));
        let run = draw()?;
        let tournament = match &journal.record().spread {
            Some(spread) => spread.id.clone(),
            None => {
                let id = draw()?;
                journal.spread(SpreadLine { id: id.clone() })?;
                id
            }
        };
        let ended = runtime.block_on(async {
            let bucket = unload(&nats, &tournament, &luggage).await?;
            let hall =
                Hall::new(nats, bucket, (tournament, run), seed, luggage.travellers, replays, how, journal, told);
            hall.play(lost).await
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
