//! The dispatcher of a tournament or league. It publishes jobs for workers, audits the results and has the competition
//! record them.

mod checks;
mod queue;
mod results;
mod workers;

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use arena_match::{logs, replay_hash, seal_line};
use arena_tournament::{CheckedLine, JournalLine, Pairing};
use async_nats::jetstream::Message;
use futures_util::StreamExt;
use tokio::sync::mpsc;
use tokio::time::{MissedTickBehavior, interval, sleep, timeout};

use checks::{CrossCheck, CrossChecks, is_checked};
use results::read_results;
use workers::WorkerPool;

pub use queue::JobQueue;

use crate::competition::{Competition, Ended, Event, Next};
use crate::executor::RunError;
use crate::journal::REPLAYS;
use crate::nats::audit::audit;
use crate::nats::cache::fetch;
use crate::nats::executor::NatsOptions;
use crate::nats::names;
use crate::nats::publish::{decode, publish, to_json};
use crate::nats::wire::{
    Job, JobAgent, JobEnd, JobReport, MatchSetup, PlayFailure, PlayedJob, WorkerIdentity, WorkerPresence,
};

/// The interval of regular checks.
const TICK: Duration = Duration::from_millis(250);

/// The interval at which the dispatcher announces the competition to workers.
const ANNOUNCED: Duration = Duration::from_secs(2);

/// The largest compressed size of a replay that is stored as an object, in bytes.
const MAX_PACKED: u64 = 256 << 20;

/// The number of false results of one match after which the competition ends.
const MOST_FALSE_RESULTS: u32 = 10;

pub struct Dispatcher<'a, C, T> {
    queue: JobQueue,
    agents: BTreeMap<usize, JobAgent>,
    replays: Option<PathBuf>,
    options: &'a NatsOptions<'a>,
    competition: &'a mut C,
    on_event: T,
    /// The matches with a job on the queue or in play, by number.
    open: BTreeMap<usize, Pairing>,
    checks: CrossChecks,
    pool: WorkerPool,
    /// The numbers of false results, by match number.
    false_results: BTreeMap<usize, u32>,
    /// The reports that have been handled: the ids of job and worker.
    seen: BTreeSet<(String, String)>,
    /// The time of the last report of a job.
    heard_last: Instant,
    /// The time since which no more jobs are published, after a request to stop.
    stopping: Option<Instant>,
    /// The remarks that have been made, so that each is made only once.
    remarks: BTreeSet<String>,
}

impl<'a, C: Competition, E, T: FnMut(&C, Event) -> Result<(), E>> Dispatcher<'a, C, T> {
    pub fn new(
        queue: JobQueue,
        agents: BTreeMap<usize, JobAgent>,
        options: &'a NatsOptions<'a>,
        competition: &'a mut C,
        on_event: T,
    ) -> Self {
        let replays = competition.plan().replays.then(|| competition.folder().join(REPLAYS));
        Dispatcher {
            queue,
            agents,
            replays,
            options,
            competition,
            on_event,
            open: BTreeMap::new(),
            checks: CrossChecks::new(),
            pool: WorkerPool::default(),
            false_results: BTreeMap::new(),
            seen: BTreeSet::new(),
            heard_last: Instant::now(),
            stopping: None,
            remarks: BTreeSet::new(),
        }
    }

    /// Distributes matches to workers until the competition is complete or the run is stopped.
    pub async fn play(mut self, lost: mpsc::UnboundedReceiver<bool>) -> Result<Ended, RunError<E>> {
        let ended = self.play_on(lost).await;
        match ended {
            Ok(Ended::Complete) => self.queue.clean_up().await,
            Ok(Ended::Stopped) => {}
            // After an error, the dispatcher won't read the results of queued jobs, so it removes them.
            Err(_) => {
                let _ = timeout(ANNOUNCED, self.queue.clear()).await;
            }
        }
        let _ = timeout(TICK, self.queue.nats.client.flush()).await;
        ended
    }

    async fn play_on(&mut self, mut lost: mpsc::UnboundedReceiver<bool>) -> Result<Ended, RunError<E>> {
        let JobQueue { nats, tournament, .. } = &self.queue;
        let subscribe = |subject: String| nats.client.subscribe(subject);
        let mut presences = subscribe(names::presence("*")).await.map_err(|error| nats.failed(&error))?;
        let mut troubles = subscribe(names::trouble(tournament)).await.map_err(|error| nats.failed(&error))?;
        // Removes the jobs of an earlier run. Matches without a result are published again.
        self.queue.clear().await?;
        let _ = nats.js.delete_consumer_from_stream(&names::result_consumer(tournament), names::RESULTS).await;
        let (results, mut arrived) = mpsc::channel(64);
        let reader = tokio::spawn(read_results(nats.clone(), tournament.clone(), results));
        let mut ticks = interval(TICK);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut announced = interval(ANNOUNCED);
        announced.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let ended = loop {
            if self.options.called_off.load(Ordering::Relaxed) {
                break Ok(Ended::Stopped);
            }
            if self.options.stop.load(Ordering::Relaxed) && self.stopping.is_none() {
                self.stopping = Some(Instant::now());
                if let Err(error) = self.queue.clear().await {
                    self.note(error.to_string())?;
                }
            }
            match self.stopping {
                Some(since) if self.is_over(since) => break Ok(Ended::Stopped),
                Some(_) => {}
                None => {
                    if self.hand_out().await? && !self.checks.are_expected() {
                        break Ok(Ended::Complete);
                    }
                }
            }
            tokio::select! {
                Some(message) = arrived.recv() => self.take(&message).await?,
                Some(message) = presences.next() => {
                    if let Ok(presence) = serde_json::from_slice::<WorkerPresence>(&message.payload) {
                        self.handle_presence(presence).await?;
                    }
                }
                Some(message) = troubles.next() => {
                    if let Ok(trouble) = serde_json::from_slice::<PlayFailure>(&message.payload) {
                        self.handle_trouble(trouble).await?;
                    }
                }
                Some(is_lost) = lost.recv() => self.handle_connection(is_lost)?,
                _ = announced.tick() => self.queue.announce().await,
                _ = ticks.tick() => self.check_workers().await?,
            }
        };
        reader.abort();
        if let Ok(Ended::Complete) = ended {
            self.report_checks()?;
        }
        ended
    }

    /// Publishes the jobs of open matches again if they are neither on the queue nor being played. A NATS server can
    /// lose its streams.
    async fn find_lost(&mut self) -> Result<(), RunError<E>> {
        if self.queue.has_lost_jobs().await? {
            let numbers: Vec<usize> = self.open.keys().copied().collect();
            for number in numbers {
                self.publish(number, None).await?;
            }
        }
        Ok(())
    }

    /// Publishes jobs until enough matches are open. Returns true if no match is left to play.
    async fn hand_out(&mut self) -> Result<bool, RunError<E>> {
        if self.competition.is_complete() {
            if !self.open.is_empty() {
                // A stop condition has ended the tournament within a wave, so the open matches are dropped.
                self.open.clear();
                self.queue.clear().await?;
            }
            return Ok(true);
        }
        let slots = self.pool.slots();
        while self.open.len() < self.competition.most_open(slots) {
            match self.competition.next()? {
                Next::Play(pairing) => {
                    let number = pairing.number;
                    self.open.insert(number, pairing);
                    self.publish(number, None).await?;
                }
                Next::Wait => break,
                Next::Nothing => return Ok(self.open.is_empty()),
            }
        }
        Ok(false)
    }

    /// Returns everything that a match depends on. `None` for an agent that doesn't take part in this run.
    fn setup(&self, pairing: &Pairing) -> Option<MatchSetup> {
        let seats = pairing.agents.iter().map(|agent| self.agents.get(agent).cloned()).collect::<Option<_>>()?;
        let plan = self.competition.plan();
        let (game, options, seed) = (plan.game.clone(), plan.options.clone(), pairing.seed.reveal());
        Some(MatchSetup { game, options, limits: plan.limits, seed, seats })
    }

    /// Returns the pairing with this number, and everything that its match depends on.
    fn find_match(&self, number: usize) -> Option<(Pairing, MatchSetup)> {
        let pairing = self.competition.pairing(number)?;
        let setup = self.setup(&pairing)?;
        Some((pairing, setup))
    }

    /// Publishes a job for a match: for the given worker, or else for any worker.
    async fn publish(&mut self, number: usize, worker: Option<&str>) -> Result<(), RunError<E>> {
        let Some((pairing, setup)) = self.find_match(number) else { return Ok(()) };
        let id = self.queue.next_id();
        let tournament = &self.queue.tournament;
        let job = Job {
            generation: names::generation(),
            tournament: tournament.clone(),
            job: id,
            match_id: setup.id(tournament, number),
            fixture: number,
            round: pairing.round,
            setup,
            logs: self.replays.is_some(),
        };
        let subject = match worker {
            Some(worker) => names::for_worker(tournament, worker),
            None => names::for_any_worker(tournament),
        };
        let mut is_reported = false;
        // The server may be unreachable for a while, so publishing is retried. The server drops duplicates of a job
        // within two minutes; later duplicates do no harm.
        while let Err(what) = publish(&self.queue.nats, subject.clone(), &job.job, to_json(&job)).await {
            if self.options.stop.load(Ordering::Relaxed) {
                return Ok(());
            }
            if !std::mem::replace(&mut is_reported, true) {
                self.note(format!("cannot queue game {number}: {what}; retrying"))?;
            }
            sleep(TICK).await;
        }
        Ok(())
    }

    /// Handles the report of a job. Acknowledges the message after the result is durable.
    async fn take(&mut self, message: &Message) -> Result<(), RunError<E>> {
        if let Some((outcome, body)) = decode(&message.payload) {
            self.heard_last = Instant::now();
            self.judge_outcome(outcome, body).await?;
        }
        // If the acknowledgment is lost, the report arrives again, and the dispatcher recognizes it as a duplicate.
        let _ = message.ack().await;
        Ok(())
    }

    async fn judge_outcome(&mut self, outcome: JobReport, body: &[u8]) -> Result<(), RunError<E>> {
        let JobReport { job, match_id, fixture: number, worker, ended, .. } = outcome;
        let Some((pairing, setup)) = self.find_match(number) else { return Ok(()) };
        // The report is a duplicate, or belongs to another plan or to other versions of the agents.
        if setup.id(&self.queue.tournament, number) != match_id || !self.seen.insert((job, worker.id.clone())) {
            return Ok(());
        }
        let is_kept = self.competition.has_result(number);
        let check = self.checks.open.get_mut(&number).filter(|check| check.worker.id != worker.id);
        if is_kept && check.is_none() {
            return Ok(());
        }
        if let Some(check) = check {
            check.asked.take_if(|asked| *asked == worker.id);
        }
        let played = match ended {
            JobEnd::Played(played) => played,
            JobEnd::Failed(_) if is_kept => {
                self.pool.unable.insert(worker.id);
                return Ok(());
            }
            JobEnd::Failed(what) => return Err(RunError::Unplayable { number, what }),
        };
        let fetched;
        let body = match &played.object {
            None => body,
            Some(object) => {
                fetched = match fetch(&self.queue.nats, &self.queue.tournament, object, MAX_PACKED).await {
                    Ok(bytes) => bytes,
                    Err(what) => {
                        self.note(format!("the replay of game {number} by worker {} is lost: {what}", worker.name))?;
                        return if is_kept || self.stopping.is_some() {
                            Ok(())
                        } else {
                            self.publish(number, None).await
                        };
                    }
                };
                // If the deletion fails, the object is deleted later together with its bucket.
                let _ = self.queue.bucket.delete(object).await;
                &fetched[..]
            }
        };
        self.judge_play(&pairing, &setup, worker, &played, body).await
    }

    async fn judge_play(
        &mut self,
        pairing: &Pairing,
        setup: &MatchSetup,
        worker: WorkerIdentity,
        played: &PlayedJob,
        body: &[u8],
    ) -> Result<(), RunError<E>> {
        let number = pairing.number;
        let audited = audit(setup, (number, pairing.round), &worker, played, body);
        if let Err(why) = &audited {
            self.note_once(format!("the result of game {number} by worker {} doesn't count: {why}", worker.name))?;
        }
        if let Some(check) = self.checks.open.remove(&number) {
            let differs = !audited.is_ok_and(|audited| audited.worker.played == check.played);
            if differs {
                self.checks.differences.push(format!("game {number} ({} and {})", check.worker.name, worker.name));
            }
            let checked = CheckedLine { fixture: number, worker: worker.name, id: worker.id, differs };
            return Ok(self.competition.append(JournalLine::Checked(checked))?);
        }
        let mut audited = match audited {
            Ok(audited) => audited,
            Err(_) if self.stopping.is_some() => return Ok(()),
            Err(why) => {
                let count = self.false_results.entry(number).or_default();
                *count += 1;
                if *count >= MOST_FALSE_RESULTS {
                    let what = format!("{count} results were false, the last one by worker {}: {why}", worker.name);
                    return Err(RunError::Unplayable { number, what });
                }
                return self.publish(number, None).await;
            }
        };
        let played = audited.worker.played.clone();
        if let Some(folder) = &self.replays {
            let path = folder.join(format!("{number}.jsonl"));
            if let Some(key) = self.options.sign_key {
                let line = seal_line(replay_hash(&audited.replay), key);
                audited.replay.extend_from_slice(line.as_bytes());
            }
            let is_kept = audited.replay.len() as u64 <= self.options.replay_bytes;
            let files = is_kept.then(|| (path.clone(), &audited.replay)).into_iter();
            let files = files.chain(audited.logs.iter().enumerate().map(|(seat, log)| (logs::path(&path, seat), log)));
            for (path, bytes) in files {
                arena_match::write(&path, bytes).map_err(|source| RunError::Write { path, source })?;
            }
        }
        self.competition.record(pairing, audited.result, Some(audited.worker))?;
        self.open.remove(&number);
        (self.on_event)(self.competition, Event::Played(number)).map_err(RunError::Caller)?;
        if is_checked(pairing, self.options.check) {
            self.checks.open.insert(number, CrossCheck { worker, played, asked: None });
            if self.stopping.is_none() {
                self.ask_second_worker(number).await?;
            }
        }
        Ok(())
    }

    fn note(&mut self, text: String) -> Result<(), RunError<E>> {
        (self.on_event)(self.competition, Event::Note(text)).map_err(RunError::Caller)
    }

    fn note_once(&mut self, text: String) -> Result<(), RunError<E>> {
        if self.remarks.insert(text.clone()) { self.note(text) } else { Ok(()) }
    }
}
