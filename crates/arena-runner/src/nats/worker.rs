//! A worker: takes matches off the queue, plays them with the match loop of `arena-match`, and hands in what came of them.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use arena_match::{Confinement, Contest, MatchError, Plan, SandboxMode, hold, logs, stay_here};
use arena_model::Seed;
use arena_nats::NatsUrl;
use arena_tournament::GameLine;
use async_nats::jetstream::consumer::{AckPolicy, PullConsumer, pull};
use async_nats::jetstream::{AckKind, Message};
use flate2::Compression;
use flate2::write::GzEncoder;
use futures_util::StreamExt;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot};
use tokio::time::{interval, sleep, timeout};

use crate::executor::causes;
use crate::nats::agents::arrive;
use crate::nats::audit::unknown_game;
use crate::nats::cache::Cache;
use crate::nats::connect::{Nats, NatsError, connect};
use crate::nats::publish::{publish, publish_outcome, tell};
use crate::nats::wire::{
    Announcement, Identity, Job, JobEnd, JobReport, MatchSetup, Played, Presence, Refusal, Trouble,
};
use crate::nats::{draw_id, names};

/// How long a job is a worker's that gives no sign of life. Another one gets it then.
const ACK_WAIT: Duration = Duration::from_secs(10);

/// How often a worker says that it still plays a job.
const STILL_PLAYING: Duration = Duration::from_secs(3);

/// How often it says that it is there.
const STILL_THERE: Duration = Duration::from_secs(1);

/// How long it waits for a job before it looks for those of its own. Also about how long it takes to see that it shall stop.
const LOOK: Duration = Duration::from_millis(500);

/// How long it waits before it tries again what didn't work.
const PAUSE: Duration = Duration::from_secs(1);

/// The longest that it waits when nothing works.
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// How often a job is handed out before nobody is believed to be able to play it.
const TRIES: i64 = 10;

/// How long a worker's own consumer stays when it is gone.
const CONSUMER_KEPT: Duration = Duration::from_secs(300);

/// How a worker works.
#[derive(Debug)]
pub struct Worker {
    /// Where the queue is.
    pub address: NatsUrl,
    /// What it is called; by default after the machine and its id.
    pub name: Option<String>,
    /// How many matches it plays beside each other, from 1.
    pub slots: usize,
    /// Whether a match and its agents share a core.
    pub shares_core: bool,
    /// What holds agents in. No job has a say in that.
    pub confinement: Confinement,
    /// Where programs are looked for, as in `PATH`.
    pub search: String,
}

/// What a worker has to tell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Heard {
    /// It takes jobs from now on.
    Ready {
        /// What it is called.
        name: String,
        /// Its id.
        id: String,
        /// Where the queue is, without credentials.
        url: String,
        /// How many matches it plays beside each other.
        slots: usize,
    },
    /// It has played a match and handed it in.
    Played {
        /// Whose match it was.
        tournament: String,
        /// The match's number, from 1.
        fixture: usize,
        /// Who played, by seat.
        agents: Vec<String>,
        /// How long it took.
        took: Duration,
    },
    /// A remark: a sentence.
    Note(String),
}

/// A worker can't begin. A sentence.
#[derive(Debug, thiserror::Error)]
pub enum WorkError {
    /// The system failed us.
    #[error("the worker can't be started: {0}")]
    System(String),
}

/// Works until `stop` is raised; then finishes the matches that run, or hands them back when `called_off` is raised too. What doesn't work
/// is told, and tried again for as long as it takes.
///
/// # Errors
/// When it can't even begin.
pub fn work(
    worker: Worker,
    stop: &AtomicBool,
    called_off: &Arc<AtomicBool>,
    heard: impl Fn(Heard) + Send + Sync + 'static,
) -> Result<(), WorkError> {
    let system = |error: &dyn std::error::Error| WorkError::System(error.to_string());
    let id = draw_id().map_err(|error| system(&error))?;
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let name = worker.name.clone().unwrap_or_else(|| format!("{}-{}", host.trim(), &id[..4]));
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    let runtime = runtime.map_err(|error| system(&error))?;
    let cache = Cache::new().map_err(|error| system(&error))?;
    let shop = Shop {
        identity: Identity { id, name },
        worker,
        called_off: Arc::clone(called_off),
        is_stopping: AtomicBool::new(false),
        cache,
        playing: Mutex::default(),
        refused: Mutex::default(),
        heard: Box::new(heard),
    };
    runtime.block_on(Arc::new(shop).run(stop));
    // Threads of matches that were called off end by themselves.
    runtime.shutdown_timeout(PAUSE);
    Ok(())
}

/// A worker at work.
struct Shop {
    identity: Identity,
    worker: Worker,
    called_off: Arc<AtomicBool>,
    /// Whether no more jobs are taken.
    is_stopping: AtomicBool,
    cache: Cache,
    /// How many matches are played, by tournament.
    playing: Mutex<BTreeMap<String, usize>>,
    /// The tournaments that don't believe us.
    refused: Mutex<BTreeSet<String>>,
    heard: Box<dyn Fn(Heard) + Send + Sync>,
}

/// Remarks that aren't made twice in a row.
struct Remarks<'s> {
    shop: &'s Shop,
    last: Option<String>,
}

impl<'s> Remarks<'s> {
    fn of(shop: &'s Shop) -> Remarks<'s> {
        Remarks { shop, last: None }
    }

    fn tell(&mut self, what: &str) {
        if self.last.as_deref() != Some(what) {
            self.shop.note(&format!("{what}; trying again"));
            self.last = Some(what.to_owned());
        }
    }
}

/// Why a match wasn't played.
enum Unplayed {
    /// It was called off.
    CalledOff,
    /// This worker can't. A sentence.
    Cannot(String),
}

impl Shop {
    async fn run(self: Arc<Shop>, stop: &AtomicBool) {
        let is_on = || !stop.load(Ordering::Relaxed);
        let Some((nats, lost)) = self.connect(stop).await else { return };
        let listeners = [
            tokio::spawn(Arc::clone(&self).tell_presence(nats.clone())),
            tokio::spawn(Arc::clone(&self).hear_refusals(nats.clone())),
            tokio::spawn(Arc::clone(&self).hear_announcements(nats.clone())),
            tokio::spawn(Arc::clone(&self).tell_losses(lost)),
        ];
        let slots = Arc::new(Semaphore::new(self.worker.slots));
        let all = u32::try_from(self.worker.slots).unwrap_or(u32::MAX);
        let mut consumers: Option<[PullConsumer; 2]> = None;
        let mut was_ready = false;
        let mut remarks = Remarks::of(&self);
        while is_on() {
            let permit = timeout(LOOK, Arc::clone(&slots).acquire_owned()).await;
            let Ok(Ok(permit)) = permit else { continue };
            let queues = match &consumers {
                Some(queues) => queues,
                None => match self.consumers(&nats).await {
                    Ok(made) => {
                        if !std::mem::replace(&mut was_ready, true) {
                            (self.heard)(Heard::Ready {
                                name: self.identity.name.clone(),
                                id: self.identity.id.clone(),
                                url: nats.url.clone(),
                                slots: self.worker.slots,
                            });
                        }
                        consumers.insert(made)
                    }
                    Err(error) => {
                        remarks.tell(&error.to_string());
                        sleep(PAUSE).await;
                        continue;
                    }
                },
            };
            match next(queues).await {
                Ok(Some(message)) => {
                    remarks.last = None;
                    tokio::spawn(Arc::clone(&self).handle(nats.clone(), message, permit));
                }
                Ok(None) => remarks.last = None,
                Err(what) => {
                    remarks.tell(&format!("no matches can be taken from {}: {what}", nats.url));
                    consumers = None;
                    sleep(PAUSE).await;
                }
            }
        }
        self.is_stopping.store(true, Ordering::Relaxed);
        // Matches under way are finished, or handed back.
        let _ = slots.acquire_many(all).await;
        listeners.iter().for_each(tokio::task::JoinHandle::abort);
        tell(&nats, names::presence(&self.identity.id), &self.presence(true)).await;
        let _ = nats.js.delete_consumer_from_stream(&names::own_consumer(&self.identity.id), names::JOBS).await;
        let _ = timeout(PAUSE, nats.client.flush()).await;
    }

    /// Connects, however long that takes. Nothing if we shall stop before.
    async fn connect(&self, stop: &AtomicBool) -> Option<(Nats, mpsc::UnboundedReceiver<bool>)> {
        let mut remarks = Remarks::of(self);
        while !stop.load(Ordering::Relaxed) {
            let (told, lost) = mpsc::unbounded_channel();
            match connect(&self.worker.address, &format!("arena worker {}", self.identity.name), told).await {
                Ok(nats) => return Some((nats, lost)),
                Err(error) => remarks.tell(&error.to_string()),
            }
            sleep(PAUSE).await;
        }
        None
    }

    /// Our own queue and the shared one.
    async fn consumers(&self, nats: &Nats) -> Result<[PullConsumer; 2], NatsError> {
        nats.make_streams().await?;
        let usual = pull::Config { ack_policy: AckPolicy::Explicit, ack_wait: ACK_WAIT, ..pull::Config::default() };
        let own = pull::Config {
            name: Some(names::own_consumer(&self.identity.id)),
            filter_subject: names::for_worker("*", &self.identity.id),
            inactive_threshold: CONSUMER_KEPT,
            ..usual.clone()
        };
        let shared = pull::Config {
            durable_name: Some(names::shared_consumer()),
            filter_subject: names::for_anybody("*"),
            // Tries are counted by workers, who tell the tournament; this is for jobs that end every worker before it can.
            max_deliver: 3 * TRIES,
            // As many as there are workers.
            max_ack_pending: -1,
            ..usual
        };
        let make = |config| async move {
            let made = nats.js.create_consumer_on_stream(config, names::JOBS).await;
            made.map_err(|error| nats.failed(&error))
        };
        Ok([make(own).await?, make(shared).await?])
    }

    /// Plays a job, and hands in what came of it.
    async fn handle(self: Arc<Shop>, nats: Nats, message: Message, permit: OwnedSemaphorePermit) {
        let Ok(job) = serde_json::from_slice::<Job>(&message.payload) else {
            self.note("a job that can't be read was thrown away");
            let _ = message.ack_with(AckKind::Term).await;
            return;
        };
        if self.refused().contains(&job.tournament) {
            // For somebody else; not at once, lest it come back as fast. It goes behind the others, and isn't counted as a try.
            sleep(PAUSE).await;
            let again =
                format!("{}-{}-{}", job.job, self.identity.id, message.info().map_or(0, |info| info.stream_sequence));
            match publish(&nats, message.subject.to_string(), &again, message.payload.to_vec()).await {
                Ok(()) => _ = message.ack().await,
                Err(_) => _ = message.ack_with(AckKind::Nak(Some(PAUSE))).await,
            }
            return;
        }
        *self.playing().entry(job.tournament.clone()).or_default() += 1;
        tell(&nats, names::presence(&self.identity.id), &self.presence(false)).await;
        let alive = Alive::keep(&message);
        let pause = self.play_and_tell(&nats, &message, &job).await;
        drop(alive);
        {
            let mut playing = self.playing();
            let count = playing.entry(job.tournament.clone()).or_default();
            *count -= 1;
            if *count == 0 {
                playing.remove(&job.tournament);
            }
        }
        tell(&nats, names::presence(&self.identity.id), &self.presence(false)).await;
        if let Some(pause) = pause {
            // Whoever can't play mustn't take one job after the other from those who can.
            let until = Instant::now() + pause;
            while Instant::now() < until && !self.is_stopping.load(Ordering::Relaxed) {
                sleep(LOOK).await;
            }
        }
        drop(permit);
    }

    /// Does what [`Shop::handle`] is for. Gives how long to pause if this worker can't play.
    async fn play_and_tell(&self, nats: &Nats, message: &Message, job: &Job) -> Option<Duration> {
        let tries = message.info().map_or(1, |info| info.delivered);
        let began = Instant::now();
        let played = if tries > TRIES {
            Err(Unplayed::Cannot(format!("it was handed out {} times, and no worker came to its end", tries - 1)))
        } else {
            self.play(nats, job).await
        };
        let (ended, recorded) = match played {
            Ok((played, recorded)) => (JobEnd::Played(Box::new(played)), recorded),
            Err(Unplayed::CalledOff) => {
                let _ = message.ack_with(AckKind::Nak(None)).await;
                return None;
            }
            Err(Unplayed::Cannot(what)) if tries >= TRIES => (JobEnd::Failed(what), Vec::new()),
            Err(Unplayed::Cannot(what)) => {
                self.note(&format!("game {} can't be played here: {what}", job.fixture));
                tell(
                    nats,
                    names::trouble(&job.tournament),
                    &Trouble { worker: self.identity.clone(), what: what.clone() },
                )
                .await;
                let pause = LONGEST_PAUSE.min(PAUSE * 2_u32.saturating_pow(u32::try_from(tries - 1).unwrap_or(0)));
                let _ = message.ack_with(AckKind::Nak(Some(PAUSE))).await;
                return Some(pause);
            }
        };
        let agents = job.setup.seats.iter().map(|seat| seat.name.clone()).collect();
        let outcome = JobReport {
            tournament: job.tournament.clone(),
            job: job.job.clone(),
            match_id: job.match_id.clone(),
            fixture: job.fixture,
            worker: self.identity.clone(),
            ended,
        };
        let mut remarks = Remarks::of(self);
        while let Err(what) = publish_outcome(nats, &outcome, &recorded).await {
            remarks.tell(&format!("the result of game {} can't be handed in: {what}", job.fixture));
            if self.called_off.load(Ordering::Relaxed) {
                return None;
            }
            sleep(PAUSE).await;
        }
        // Only now: until here another one could have played it.
        let _ = message.ack().await;
        (self.heard)(Heard::Played {
            tournament: job.tournament.clone(),
            fixture: job.fixture,
            agents,
            took: began.elapsed(),
        });
        None
    }

    /// Plays a job: what came of it, and what was recorded, packed.
    async fn play(&self, nats: &Nats, job: &Job) -> Result<(Played, Vec<u8>), Unplayed> {
        let cannot = Unplayed::Cannot;
        if job.generation != names::generation() {
            let own = names::generation();
            return Err(cannot(format!("it is of arena {}, and this worker is {own}", job.generation)));
        }
        let game = arena_games::game(&job.setup.game).ok_or_else(|| cannot(unknown_game(&job.setup)))?;
        let seed = Seed::from_revealed(&job.setup.seed);
        let seed = seed.ok_or_else(|| cannot("its seed isn't 64 hexadecimal digits".to_owned()))?;
        let mut folders = Vec::new();
        let mut agents = Vec::new();
        for traveller in &job.setup.seats {
            let folder = match &traveller.archive {
                Some(sha256) => Some(self.cache.get(nats, &job.tournament, sha256).await.map_err(cannot)?),
                None => None,
            };
            let path = folder.as_deref().map(tempfile::TempDir::path);
            agents.push(arrive(traveller, path, &self.worker.search).map_err(cannot)?);
            // They mustn't go before the match has ended.
            folders.push(folder);
        }
        let (setup, fixture, round, logs) = (job.setup.clone(), job.fixture, job.round, job.logs);
        let (confinement, called_off) = (self.worker.confinement.clone(), Arc::clone(&self.called_off));
        let (done, played) = oneshot::channel();
        let shares_core = self.worker.shares_core;
        // The loop is blocking.
        let thread = std::thread::Builder::new().name(format!("game {fixture}"));
        let started = thread.spawn(move || {
            if shares_core {
                stay_here();
            }
            let plan = Plan {
                game,
                options: &setup.options,
                seed,
                limits: setup.limits,
                agents: agents.iter().collect(),
                confinement: &confinement,
            };
            // Nobody waits for it any more when the worker has ended.
            let _ = done.send(record(&plan, &setup, (fixture, round), logs, &called_off));
            drop(folders);
        });
        started.map_err(|error| cannot(error.to_string()))?;
        match played.await {
            Ok(Ok(played)) => Ok(played),
            Ok(Err(MatchError::CalledOff)) => Err(Unplayed::CalledOff),
            // A signal of the terminal's reaches processes as well that are just being started.
            Ok(Err(_)) if self.called_off.load(Ordering::Relaxed) => Err(Unplayed::CalledOff),
            Ok(Err(error)) => Err(cannot(causes(&error))),
            Err(_) => Err(cannot("the program is at fault".to_owned())),
        }
    }

    async fn tell_presence(self: Arc<Shop>, nats: Nats) {
        let mut ticks = interval(STILL_THERE);
        loop {
            ticks.tick().await;
            tell(&nats, names::presence(&self.identity.id), &self.presence(false)).await;
        }
    }

    async fn hear_refusals(self: Arc<Shop>, nats: Nats) {
        let Ok(mut messages) = nats.client.subscribe(names::refusal(&self.identity.id)).await else { return };
        while let Some(message) = messages.next().await {
            let Ok(Refusal { tournament, why }) = serde_json::from_slice(&message.payload) else { continue };
            if self.refused().insert(tournament.clone()) {
                self.note(&format!("tournament {tournament} doesn't believe this worker any more: {why}"));
            }
        }
    }

    async fn hear_announcements(self: Arc<Shop>, nats: Nats) {
        let Ok(mut messages) = nats.client.subscribe(names::announcement("*")).await else { return };
        let own = names::generation();
        let mut told = BTreeSet::new();
        while let Some(message) = messages.next().await {
            let Ok(Announcement { tournament, generation }) = serde_json::from_slice(&message.payload) else {
                continue;
            };
            if generation != own && told.insert(tournament.clone()) {
                self.note(&format!(
                    "tournament {tournament} is of arena {generation}; this worker is {own} and takes none of its games"
                ));
            }
        }
    }

    async fn tell_losses(self: Arc<Shop>, mut lost: mpsc::UnboundedReceiver<bool>) {
        let mut was_lost = false;
        while let Some(is_lost) = lost.recv().await {
            match (was_lost, is_lost) {
                (false, true) => self.note("the connection to NATS is lost; trying to get it back"),
                (true, false) => self.note("the connection to NATS is back"),
                _ => {}
            }
            was_lost = is_lost;
        }
    }

    fn presence(&self, leaving: bool) -> Presence {
        Presence {
            worker: self.identity.clone(),
            generation: names::generation(),
            slots: self.worker.slots,
            sandbox: match self.worker.confinement.mode {
                SandboxMode::On | SandboxMode::Required => "on",
                SandboxMode::NoNamespaces => "no-namespaces",
                SandboxMode::Off => "off",
            }
            .to_owned(),
            playing: self.playing().clone(),
            leaving,
        }
    }

    fn note(&self, text: &str) {
        (self.heard)(Heard::Note(text.to_owned()));
    }

    // Nothing that panics leaves half of these.
    fn playing(&self) -> std::sync::MutexGuard<'_, BTreeMap<String, usize>> {
        self.playing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn refused(&self) -> std::sync::MutexGuard<'_, BTreeSet<String>> {
        self.refused.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The next job: one of our own, or else one for anybody. Nothing if there is none for a while.
async fn next([own, shared]: &[PullConsumer; 2]) -> Result<Option<Message>, String> {
    let mut mine = own.fetch().max_messages(1).messages().await.map_err(|error| causes(&error))?;
    if let Some(message) = timeout(PAUSE, mine.next()).await.unwrap_or_default() {
        return message.map(Some).map_err(|error| error.to_string());
    }
    let mut any = shared.batch().max_messages(1).expires(LOOK).messages().await.map_err(|error| causes(&error))?;
    let message = timeout(LOOK + 5 * PAUSE, any.next()).await.unwrap_or_default();
    message.transpose().map_err(|error| error.to_string())
}

/// Plays a match on the calling thread: what came of it, and what was recorded, packed.
fn record(
    plan: &Plan<'_>,
    setup: &MatchSetup,
    (fixture, round): (usize, usize),
    wants_logs: bool,
    called_off: &AtomicBool,
) -> Result<(Played, Vec<u8>), MatchError> {
    let mut replay = Vec::new();
    let contest: Contest = hold(plan, Some(&mut replay), None, called_off)?;
    let result = contest.result.with_agents(|seat, _| setup.seats[seat].name.clone());
    let game = GameLine { number: fixture, round, result, worker: None };
    let mut log_bytes = Vec::new();
    let mut packed = GzEncoder::new(Vec::new(), Compression::fast());
    packed.write_all(&replay)?;
    for log in contest.logs.iter().filter(|_| wants_logs) {
        let mut text = Vec::new();
        logs::write_log(log, &mut text)?;
        packed.write_all(&text)?;
        log_bytes.push(text.len() as u64);
    }
    let played = Played { game, replay_bytes: replay.len() as u64, log_bytes, object: None };
    Ok((played, packed.finish()?))
}

/// As long as it is there, the server is told that a job is being played.
struct Alive(tokio::task::JoinHandle<()>);

impl Alive {
    fn keep(message: &Message) -> Alive {
        let (_, acker) = message.clone().split();
        Alive(tokio::spawn(async move {
            let mut ticks = interval(STILL_PLAYING);
            loop {
                ticks.tick().await;
                let _ = acker.ack_with(AckKind::Progress).await;
            }
        }))
    }
}

impl Drop for Alive {
    fn drop(&mut self) {
        self.0.abort();
    }
}
