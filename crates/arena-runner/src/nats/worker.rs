//! The worker process. It takes jobs from the queue, plays them with the match loop of `arena-match`, and publishes the
//! results.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use arena_match::{Confinement, MatchError, MatchPlan, PlayedMatch, SandboxMode, logs, play_match, stay_here};
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
use crate::nats::agents::unpacked;
use crate::nats::audit::unknown_game;
use crate::nats::cache::Cache;
use crate::nats::connect::{Nats, NatsError, connect};
use crate::nats::publish::{notify, publish_outcome};
use crate::nats::wire::{
    Announcement, Job, JobEnd, JobReport, MatchSetup, PlayFailure, PlayedJob, WorkerIdentity, WorkerPresence,
};
use crate::nats::{draw_id, names};

/// The time without a progress message after which the NATS server gives a worker's job to another worker.
const ACK_WAIT: Duration = Duration::from_secs(10);

/// The interval of progress messages for a job under way.
const STILL_PLAYING: Duration = Duration::from_secs(3);

/// The interval of presence messages.
const STILL_THERE: Duration = Duration::from_secs(1);

/// The wait for a job on the shared queue before the worker checks its own queue again. It also limits the delay of a
/// stop.
const LOOK: Duration = Duration::from_millis(500);

/// The wait before a retry.
const PAUSE: Duration = Duration::from_secs(1);

const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// The number of deliveries of a job after which the match counts as unplayable.
const TRIES: i64 = 10;

/// The time after which the NATS server deletes the consumer of a lost worker.
const CONSUMER_KEPT: Duration = Duration::from_secs(300);

/// The settings of a worker.
#[derive(Debug)]
pub struct Worker {
    pub address: NatsUrl,
    /// The worker's name. By default it consists of the host name and the worker's id.
    pub name: Option<String>,
    /// The largest number of concurrent matches, at least 1.
    pub slots: usize,
    /// True if the match loop and its agents run on the same core.
    pub shares_core: bool,
    /// The confinement of agents' processes. Jobs can't change it.
    pub confinement: Confinement,
    /// The search path for programs, as in `PATH`.
    pub search: String,
    /// The names of programs in the search path that agents may be, besides the interpreters of scripts.
    pub programs: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WorkerEvent {
    /// The worker accepts jobs.
    Ready {
        name: String,
        id: String,
        /// The URL of the NATS server, without credentials.
        url: String,
        /// The number of concurrent matches.
        slots: usize,
    },
    /// The worker has played a match and published the result.
    Played {
        /// The id of the tournament.
        tournament: String,
        /// The match's number, from 1.
        fixture: usize,
        /// The agents' names, by seat.
        agents: Vec<String>,
        took: Duration,
    },
    /// A remark for the user, in one sentence.
    Note(String),
}

#[derive(Debug, thiserror::Error)]
pub enum WorkError {
    #[error("cannot start the worker: {0}")]
    System(String),
}

/// Runs a worker until `stop` becomes true. Then the worker finishes the matches under way, or gives them back to the
/// queue if `called_off` is true too. The worker reports failures as remarks, and retries without limit.
///
/// # Errors
/// [`WorkError`] if the worker can't start.
pub fn work(
    worker: Worker,
    stop: &AtomicBool,
    called_off: &Arc<AtomicBool>,
    on_event: impl Fn(WorkerEvent) + Send + Sync + 'static,
) -> Result<(), WorkError> {
    let system = |error: &dyn std::error::Error| WorkError::System(error.to_string());
    let id = draw_id().map_err(|error| system(&error))?;
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let name = worker.name.clone().unwrap_or_else(|| format!("{}-{}", host.trim(), &id[..4]));
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    let runtime = runtime.map_err(|error| system(&error))?;
    let cache = Cache::new().map_err(|error| system(&error))?;
    let running = RunningWorker {
        identity: WorkerIdentity { id, name },
        worker,
        called_off: Arc::clone(called_off),
        is_stopping: AtomicBool::new(false),
        cache,
        playing: Mutex::default(),
        on_event: Box::new(on_event),
    };
    runtime.block_on(Arc::new(running).run(stop));
    // The threads of matches that were called off end on their own.
    runtime.shutdown_timeout(PAUSE);
    Ok(())
}

struct RunningWorker {
    identity: WorkerIdentity,
    worker: Worker,
    called_off: Arc<AtomicBool>,
    /// True if the worker takes no more jobs.
    is_stopping: AtomicBool,
    cache: Cache,
    /// The number of matches under way, by tournament.
    playing: Mutex<BTreeMap<String, usize>>,
    on_event: Box<dyn Fn(WorkerEvent) + Send + Sync>,
}

/// Reports remarks about retries. Drops a remark that equals the previous one.
struct RetryNotes<'s> {
    running: &'s RunningWorker,
    last: Option<String>,
}

impl<'s> RetryNotes<'s> {
    fn of(running: &'s RunningWorker) -> RetryNotes<'s> {
        RetryNotes { running, last: None }
    }

    fn report(&mut self, what: &str) {
        if self.last.as_deref() != Some(what) {
            self.running.note(&format!("{what}; retrying"));
            self.last = Some(what.to_owned());
        }
    }
}

enum UnplayedReason {
    CalledOff,
    /// This worker can't play the match. Contains the reason, in one sentence.
    Cannot(String),
}

impl RunningWorker {
    async fn run(self: Arc<RunningWorker>, stop: &AtomicBool) {
        let is_on = || !stop.load(Ordering::Relaxed);
        let Some((nats, lost)) = self.connect(stop).await else { return };
        let listeners = [
            tokio::spawn(Arc::clone(&self).publish_presence(nats.clone())),
            tokio::spawn(Arc::clone(&self).receive_announcements(nats.clone())),
            tokio::spawn(Arc::clone(&self).report_losses(lost)),
        ];
        let slots = Arc::new(Semaphore::new(self.worker.slots));
        let all = u32::try_from(self.worker.slots).unwrap_or(u32::MAX);
        let mut consumers: Option<[PullConsumer; 2]> = None;
        let mut was_ready = false;
        let mut remarks = RetryNotes::of(&self);
        while is_on() {
            let permit = timeout(LOOK, Arc::clone(&slots).acquire_owned()).await;
            let Ok(Ok(permit)) = permit else { continue };
            let queues = match &consumers {
                Some(queues) => queues,
                None => match self.consumers(&nats).await {
                    Ok(made) => {
                        if !std::mem::replace(&mut was_ready, true) {
                            (self.on_event)(WorkerEvent::Ready {
                                name: self.identity.name.clone(),
                                id: self.identity.id.clone(),
                                url: nats.url.clone(),
                                slots: self.worker.slots,
                            });
                        }
                        consumers.insert(made)
                    }
                    Err(error) => {
                        remarks.report(&error.to_string());
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
                    remarks.report(&format!("cannot take jobs from {}: {what}", nats.url));
                    consumers = None;
                    sleep(PAUSE).await;
                }
            }
        }
        self.is_stopping.store(true, Ordering::Relaxed);
        // Waits until all matches under way are finished or given back.
        let _ = slots.acquire_many(all).await;
        listeners.iter().for_each(tokio::task::JoinHandle::abort);
        notify(&nats, names::presence(&self.identity.id), &self.presence(true)).await;
        let _ = nats.js.delete_consumer_from_stream(&names::own_consumer(&self.identity.id), names::JOBS).await;
        let _ = timeout(PAUSE, nats.client.flush()).await;
    }

    /// Connects to the NATS server, with unlimited retries. `None` if the worker is stopped before a connection
    /// succeeds.
    async fn connect(&self, stop: &AtomicBool) -> Option<(Nats, mpsc::UnboundedReceiver<bool>)> {
        let mut remarks = RetryNotes::of(self);
        while !stop.load(Ordering::Relaxed) {
            let (lost_sender, lost) = mpsc::unbounded_channel();
            match connect(&self.worker.address, &format!("arena worker {}", self.identity.name), lost_sender).await {
                Ok(nats) => return Some((nats, lost)),
                Err(error) => remarks.report(&error.to_string()),
            }
            sleep(PAUSE).await;
        }
        None
    }

    /// Creates the consumers of the worker's own queue and of the shared queue.
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
            filter_subject: names::for_any_worker("*"),
            // Workers count deliveries and report unplayable jobs. The server's limit applies to jobs that kill every
            // worker before it can report.
            max_deliver: 3 * TRIES,
            // Unlimited, since the number of workers isn't known.
            max_ack_pending: -1,
            ..usual
        };
        let make = |config| async move {
            let made = nats.js.create_consumer_on_stream(config, names::JOBS).await;
            made.map_err(|error| nats.failed(&error))
        };
        Ok([make(own).await?, make(shared).await?])
    }

    /// Handles a job from the queue: plays the match and publishes the result, or returns the job to the queue.
    async fn handle(self: Arc<RunningWorker>, nats: Nats, message: Message, permit: OwnedSemaphorePermit) {
        let Some(job) = Job::parse(&message.payload) else {
            self.note("dropped an invalid job");
            let _ = message.ack_with(AckKind::Term).await;
            return;
        };
        *self.playing().entry(job.tournament.clone()).or_default() += 1;
        notify(&nats, names::presence(&self.identity.id), &self.presence(false)).await;
        let alive = KeepAlive::keep(&message);
        let pause = self.play_and_publish(&nats, &message, &job).await;
        drop(alive);
        {
            let mut playing = self.playing();
            let count = playing.entry(job.tournament.clone()).or_default();
            *count -= 1;
            if *count == 0 {
                playing.remove(&job.tournament);
            }
        }
        notify(&nats, names::presence(&self.identity.id), &self.presence(false)).await;
        if let Some(pause) = pause {
            // While this worker pauses, workers that can play take the jobs.
            let until = Instant::now() + pause;
            while Instant::now() < until && !self.is_stopping.load(Ordering::Relaxed) {
                sleep(LOOK).await;
            }
        }
        drop(permit);
    }

    /// If this worker can't play the match, returns the time for which it should pause.
    async fn play_and_publish(&self, nats: &Nats, message: &Message, job: &Job) -> Option<Duration> {
        let tries = message.info().map_or(1, |info| info.delivered);
        let began = Instant::now();
        let played = if tries > TRIES {
            Err(UnplayedReason::Cannot(format!("the job was delivered {} times, and no worker finished it", tries - 1)))
        } else {
            self.play(nats, job).await
        };
        let (ended, recorded) = match played {
            Ok((played, recorded)) => (JobEnd::Played(Box::new(played)), recorded),
            Err(UnplayedReason::CalledOff) => {
                let _ = message.ack_with(AckKind::Nak(None)).await;
                return None;
            }
            Err(UnplayedReason::Cannot(what)) if tries >= TRIES => (JobEnd::Failed(what), Vec::new()),
            Err(UnplayedReason::Cannot(what)) => {
                self.note(&format!("cannot play game {}: {what}", job.fixture));
                notify(
                    nats,
                    names::trouble(&job.tournament),
                    &PlayFailure { worker: self.identity.clone(), what: what.clone() },
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
        let mut remarks = RetryNotes::of(self);
        while let Err(what) = publish_outcome(nats, &outcome, &recorded).await {
            remarks.report(&format!("cannot publish the result of game {}: {what}", job.fixture));
            if self.called_off.load(Ordering::Relaxed) {
                return None;
            }
            sleep(PAUSE).await;
        }
        // The acknowledgment comes last, so that another worker gets the job if this one dies.
        let _ = message.ack().await;
        (self.on_event)(WorkerEvent::Played {
            tournament: job.tournament.clone(),
            fixture: job.fixture,
            agents,
            took: began.elapsed(),
        });
        None
    }

    /// Plays the match of a job. Returns the result and the compressed replay.
    async fn play(&self, nats: &Nats, job: &Job) -> Result<(PlayedJob, Vec<u8>), UnplayedReason> {
        let cannot = UnplayedReason::Cannot;
        if job.generation != names::generation() {
            let own = names::generation();
            return Err(cannot(format!("the job is from arena {}, but this worker is {own}", job.generation)));
        }
        let game = arena_games::game(&job.setup.game).ok_or_else(|| cannot(unknown_game(&job.setup)))?;
        // The check comes before the agents are fetched, so that their number and size are bounded.
        let seats = job.setup.seats.len();
        if !game.seats.contains(&seats) {
            return Err(cannot(format!("{} cannot be played by {seats} agents", game.name)));
        }
        let seed = Seed::from_revealed(&job.setup.seed);
        let seed = seed.ok_or_else(|| cannot("the job's seed isn't 64 hexadecimal digits".to_owned()))?;
        let mut folders = Vec::new();
        let mut agents = Vec::new();
        for agent in &job.setup.seats {
            let folder = match &agent.archive {
                Some(sha256) => Some(self.cache.get(nats, &job.tournament, sha256).await.map_err(cannot)?),
                None => None,
            };
            let path = folder.as_deref().map(tempfile::TempDir::path);
            agents.push(unpacked(agent, path, &self.worker.search, &self.worker.programs).map_err(cannot)?);
            // The references keep the agents' folders on disk until the match has ended.
            folders.push(folder);
        }
        let (setup, fixture, round, logs) = (job.setup.clone(), job.fixture, job.round, job.logs);
        let (confinement, called_off) = (self.worker.confinement.clone(), Arc::clone(&self.called_off));
        let (done, played) = oneshot::channel();
        let shares_core = self.worker.shares_core;
        // The match loop blocks, so it has its own thread.
        let thread = std::thread::Builder::new().name(format!("game {fixture}"));
        let started = thread.spawn(move || {
            if shares_core {
                stay_here();
            }
            let plan = MatchPlan {
                game,
                options: &setup.options,
                seed,
                limits: setup.limits,
                agents: agents.iter().collect(),
                confinement: &confinement,
                adjudication: None,
            };
            // Sending fails if the worker has ended, which does no harm.
            let _ = done.send(record(&plan, &setup, (fixture, round), logs, &called_off));
            drop(folders);
        });
        started.map_err(|error| cannot(error.to_string()))?;
        match played.await {
            Ok(Ok(played)) => Ok(played),
            Ok(Err(MatchError::CalledOff)) => Err(UnplayedReason::CalledOff),
            // A signal from the terminal, such as Ctrl-C, also reaches agents that are being started.
            Ok(Err(_)) if self.called_off.load(Ordering::Relaxed) => Err(UnplayedReason::CalledOff),
            Ok(Err(error)) => Err(cannot(causes(&error))),
            Err(_) => Err(cannot("the thread of the match panicked".to_owned())),
        }
    }

    async fn publish_presence(self: Arc<RunningWorker>, nats: Nats) {
        let mut ticks = interval(STILL_THERE);
        loop {
            ticks.tick().await;
            notify(&nats, names::presence(&self.identity.id), &self.presence(false)).await;
        }
    }

    async fn receive_announcements(self: Arc<RunningWorker>, nats: Nats) {
        let Ok(mut messages) = nats.client.subscribe(names::announcement("*")).await else { return };
        let own = names::generation();
        let mut reported = BTreeSet::new();
        while let Some(message) = messages.next().await {
            let Ok(Announcement { tournament, generation }) = serde_json::from_slice(&message.payload) else {
                continue;
            };
            if generation != own && reported.insert(tournament.clone()) {
                self.note(&format!(
                    "tournament {tournament} runs arena {generation}, but this worker is {own}; the worker takes none of its games"
                ));
            }
        }
    }

    async fn report_losses(self: Arc<RunningWorker>, mut lost: mpsc::UnboundedReceiver<bool>) {
        let mut was_lost = false;
        while let Some(is_lost) = lost.recv().await {
            match (was_lost, is_lost) {
                (false, true) => self.note("lost the connection to NATS; reconnecting"),
                (true, false) => self.note("reconnected to NATS"),
                _ => {}
            }
            was_lost = is_lost;
        }
    }

    fn presence(&self, leaving: bool) -> WorkerPresence {
        WorkerPresence {
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
        (self.on_event)(WorkerEvent::Note(text.to_owned()));
    }

    // No operation on this collection can panic halfway, so a poisoned lock is safe to use.
    fn playing(&self) -> std::sync::MutexGuard<'_, BTreeMap<String, usize>> {
        self.playing.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the next job, first from the worker's own queue, then from the shared queue. `None` if no job arrives within
/// the wait.
async fn next([own, shared]: &[PullConsumer; 2]) -> Result<Option<Message>, String> {
    let mut mine = own.fetch().max_messages(1).messages().await.map_err(|error| causes(&error))?;
    if let Some(message) = timeout(PAUSE, mine.next()).await.unwrap_or_default() {
        return message.map(Some).map_err(|error| error.to_string());
    }
    let mut any = shared.batch().max_messages(1).expires(LOOK).messages().await.map_err(|error| causes(&error))?;
    let message = timeout(LOOK + 5 * PAUSE, any.next()).await.unwrap_or_default();
    message.transpose().map_err(|error| error.to_string())
}

/// Plays a match on the calling thread. Returns the result and the compressed replay.
fn record(
    plan: &MatchPlan<'_>,
    setup: &MatchSetup,
    (fixture, round): (usize, usize),
    wants_logs: bool,
    called_off: &AtomicBool,
) -> Result<(PlayedJob, Vec<u8>), MatchError> {
    let mut replay = Vec::new();
    let played_match: PlayedMatch = play_match(plan, Some(&mut replay), None, called_off)?;
    let result = played_match.result.with_agents(|seat, _| setup.seats[seat].name.clone());
    let game = GameLine { number: fixture, round, result, generations: Vec::new(), worker: None };
    let mut log_bytes = Vec::new();
    let mut packed = GzEncoder::new(Vec::new(), Compression::fast());
    packed.write_all(&replay)?;
    for log in played_match.logs.iter().filter(|_| wants_logs) {
        let mut text = Vec::new();
        logs::write_log(log, &mut text)?;
        packed.write_all(&text)?;
        log_bytes.push(text.len() as u64);
    }
    let played = PlayedJob { game, replay_bytes: replay.len() as u64, log_bytes, object: None };
    Ok((played, packed.finish()?))
}

/// A guard that sends progress messages for a job until the guard is dropped, so that the server doesn't give the job
/// to another worker.
struct KeepAlive(tokio::task::JoinHandle<()>);

impl KeepAlive {
    fn keep(message: &Message) -> KeepAlive {
        let (_, acker) = message.clone().split();
        KeepAlive(tokio::spawn(async move {
            let mut ticks = interval(STILL_PLAYING);
            loop {
                ticks.tick().await;
                let _ = acker.ack_with(AckKind::Progress).await;
            }
        }))
    }
}

impl Drop for KeepAlive {
    fn drop(&mut self) {
        self.0.abort();
    }
}
