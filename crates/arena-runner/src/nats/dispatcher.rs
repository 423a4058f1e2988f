//! The dispatcher of a tournament or league. It publishes jobs for workers, audits the results and has the competition
//! record them.

mod checks;
mod results;
mod workers;

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use arena_match::{logs, replay_hash, seal_line};
use arena_tournament::{CheckedLine, JournalLine, Pairing};
use async_nats::jetstream::Message;
use async_nats::jetstream::object_store::ObjectStore;
use futures_util::StreamExt;
use tokio::sync::mpsc;
use tokio::time::{MissedTickBehavior, interval, sleep, timeout};

use checks::is_checked;
use results::read_results;

use crate::competition::{Competition, Ended, Event, Next};
use crate::executor::RunError;
use crate::journal::REPLAYS;
use crate::nats::audit::audit;
use crate::nats::cache::fetch;
use crate::nats::connect::{Nats, NatsError};
use crate::nats::executor::NatsOptions;
use crate::nats::names;
use crate::nats::publish::{decode, notify, publish, to_json};
use crate::nats::wire::{
    Announcement, Job, JobAgent, JobEnd, JobReport, MatchSetup, PlayFailure, PlayedJob, WorkerIdentity, WorkerPresence,
};

/// The interval of regular checks.
const TICK: Duration = Duration::from_millis(250);

/// The interval at which the dispatcher announces the competition to workers.
const ANNOUNCED: Duration = Duration::from_secs(2);

/// The largest compressed size of a replay that is stored as an object, in bytes.
const MAX_PACKED: u64 = 256 << 20;

/// The number of false results of one match after which the competition ends.
const MOST_FALSE_RESULTS: u32 = 10;

/// The cross-check of a recorded match: a second worker plays the match, too.
#[derive(Debug)]
struct CrossCheck {
    /// The worker that has played the match.
    worker: WorkerIdentity,
    /// The hash of its replay without times; see [`arena_match::VerifiedResult::played`].
    played: String,
    /// The id of the second worker, while it has a job for this check.
    asked: Option<String>,
}

/// A worker's last presence message, with the time at which it arrived.
#[derive(Debug)]
struct LastPresence {
    presence: WorkerPresence,
    at: Instant,
}

pub struct Dispatcher<'a, C, T> {
    nats: Nats,
    bucket: ObjectStore,
    /// The id of the competition.
    tournament: String,
    /// The id of this run, which distinguishes its jobs from those of earlier runs of the competition.
    run: String,
    /// The number of published jobs.
    jobs: u64,
    agents: BTreeMap<usize, JobAgent>,
    replays: Option<PathBuf>,
    options: &'a NatsOptions<'a>,
    competition: &'a mut C,
    on_event: T,
    /// The matches with a job on the queue or in play, by number.
    open: BTreeMap<usize, Pairing>,
    /// The cross-checks without a second result, by match number.
    checks: BTreeMap<usize, CrossCheck>,
    /// The matches that two workers played differently, as text.
    differences: Vec<String>,
    /// The numbers of false results, by match number.
    false_results: BTreeMap<usize, u32>,
    /// The reports that have been handled: the ids of job and worker.
    seen: BTreeSet<(String, String)>,
    workers: BTreeMap<String, LastPresence>,
    /// The ids of the workers that have reported that they can't play the tournament's matches.
    unable: BTreeSet<String>,
    began: Instant,
    /// The time of the last report of a job.
    heard_last: Instant,
    /// The time since which there have been no workers; `None` if there are workers.
    alone_since: Option<Instant>,
    /// The time of the last remark that there are no workers.
    complained: Option<Instant>,
    /// The remarks that have been made, so that each is made only once.
    remarks: BTreeSet<String>,
}

impl<'a, C: Competition, E, T: FnMut(&C, Event) -> Result<(), E>> Dispatcher<'a, C, T> {
    pub fn new(
        nats: Nats,
        bucket: ObjectStore,
        (tournament, run): (String, String),
        agents: BTreeMap<usize, JobAgent>,
        options: &'a NatsOptions<'a>,
        competition: &'a mut C,
        on_event: T,
    ) -> Self {
        let replays = competition.plan().replays.then(|| competition.folder().join(REPLAYS));
        Dispatcher {
            nats,
            bucket,
            tournament,
            run,
            jobs: 0,
            agents,
            replays,
            options,
            competition,
            on_event,
            open: BTreeMap::new(),
            checks: BTreeMap::new(),
            differences: Vec::new(),
            false_results: BTreeMap::new(),
            seen: BTreeSet::new(),
            workers: BTreeMap::new(),
            unable: BTreeSet::new(),
            began: Instant::now(),
            heard_last: Instant::now(),
            alone_since: None,
            complained: None,
            remarks: BTreeSet::new(),
        }
    }

    /// Distributes matches to workers until the competition is complete or the run is stopped.
    pub async fn play(mut self, lost: mpsc::UnboundedReceiver<bool>) -> Result<Ended, RunError<E>> {
        let ended = self.play_on(lost).await;
        match ended {
            Ok(Ended::Complete) => self.clean_up().await,
            Ok(Ended::Stopped) => {}
            // After an error, the dispatcher won't read the results of queued jobs, so it removes them.
            Err(_) => {
                let _ = timeout(ANNOUNCED, self.clear_queue()).await;
            }
        }
        let _ = timeout(TICK, self.nats.client.flush()).await;
        ended
    }

    async fn play_on(&mut self, mut lost: mpsc::UnboundedReceiver<bool>) -> Result<Ended, RunError<E>> {
        let nats = self.nats.clone();
        let subscribe = |subject: String| {
            let client = nats.client.clone();
            async move { client.subscribe(subject).await }
        };
        let mut presences = subscribe(names::presence("*")).await.map_err(|error| nats.failed(&error))?;
        let mut troubles = subscribe(names::trouble(&self.tournament)).await.map_err(|error| nats.failed(&error))?;
        // Removes the jobs of an earlier run. Matches without a result are published again.
        self.clear_queue().await?;
        let _ = nats.js.delete_consumer_from_stream(&names::result_consumer(&self.tournament), names::RESULTS).await;
        let (results, mut arrived) = mpsc::channel(64);
        let reader = tokio::spawn(read_results(nats.clone(), self.tournament.clone(), results));
        let mut ticks = interval(TICK);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut announced = interval(ANNOUNCED);
        announced.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut was_lost = false;
        let mut stopping: Option<Instant> = None;
        let ended = loop {
            if self.options.called_off.load(Ordering::Relaxed) {
                break Ok(Ended::Stopped);
            }
            if self.options.stop.load(Ordering::Relaxed) && stopping.is_none() {
                stopping = Some(Instant::now());
                if let Err(error) = self.clear_queue().await {
                    self.note(error.to_string())?;
                }
            }
            match stopping {
                Some(since) if self.is_over(since) => break Ok(Ended::Stopped),
                Some(_) => {}
                None => {
                    if self.hand_out().await? && !self.is_checking() {
                        break Ok(Ended::Complete);
                    }
                }
            }
            tokio::select! {
                Some(message) = arrived.recv() => self.take(&message, stopping.is_some()).await?,
                Some(message) = presences.next() => {
                    if let Ok(presence) = serde_json::from_slice::<WorkerPresence>(&message.payload) {
                        self.handle_presence(presence).await?;
                    }
                }
                Some(message) = troubles.next() => {
                    if let Ok(trouble) = serde_json::from_slice::<PlayFailure>(&message.payload) {
                        let text = format!("worker {} cannot play: {}", trouble.worker.name, trouble.what);
                        self.note_once(text)?;
                        // From now on, it isn't asked as a second worker. It may still take jobs from the shared queue.
                        if self.unable.insert(trouble.worker.id.clone()) {
                            self.forget(&trouble.worker.id).await?;
                        }
                    }
                }
                Some(is_lost) = lost.recv() => {
                    match (was_lost, is_lost) {
                        (false, true) => self.note("lost the connection to NATS; reconnecting".to_owned())?,
                        (true, false) => {
                            self.note("reconnected to NATS".to_owned())?;
                            self.refresh_presences();
                        }
                        _ => {}
                    }
                    was_lost = is_lost;
                }
                _ = announced.tick() => {
                    let announcement = Announcement { tournament: self.tournament.clone(), generation: names::generation() };
                    notify(&self.nats, names::announcement(&self.tournament), &announcement).await;
                }
                _ = ticks.tick() => self.check_workers(stopping.is_some(), was_lost).await?,
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
        let Ok(stream) = self.nats.js.get_stream(names::JOBS).await else {
            // The server has lost the stream.
            self.nats.make_streams().await?;
            return self.hand_out_again().await;
        };
        let Ok(mut subjects) = stream.info_with_subjects(names::jobs_of(&self.tournament)).await else { return Ok(()) };
        match subjects.next().await {
            None => self.hand_out_again().await,
            Some(_) => Ok(()),
        }
    }

    async fn hand_out_again(&mut self) -> Result<(), RunError<E>> {
        let numbers: Vec<usize> = self.open.keys().copied().collect();
        for number in numbers {
            self.publish(number, None).await?;
        }
        Ok(())
    }

    /// Publishes jobs until enough matches are open. Returns true if no match is left to play.
    async fn hand_out(&mut self) -> Result<bool, RunError<E>> {
        if self.competition.is_complete() {
            if !self.open.is_empty() {
                // A stop condition has ended the tournament within a wave, so the open matches are dropped.
                self.open.clear();
                self.clear_queue().await?;
            }
            return Ok(true);
        }
        let slots: usize = self.workers.values().map(|seen| seen.presence.slots).sum();
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
        self.jobs += 1;
        let job = Job {
            generation: names::generation(),
            tournament: self.tournament.clone(),
            job: format!("{}-{}", self.run, self.jobs),
            match_id: setup.id(&self.tournament, number),
            fixture: number,
            round: pairing.round,
            setup,
            logs: self.replays.is_some(),
        };
        let subject = match worker {
            Some(worker) => names::for_worker(&self.tournament, worker),
            None => names::for_any_worker(&self.tournament),
        };
        let mut is_reported = false;
        // The server may be unreachable for a while, so publishing is retried. The server drops duplicates of a job
        // within two minutes; later duplicates do no harm.
        while let Err(what) = publish(&self.nats, subject.clone(), &job.job, to_json(&job)).await {
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
    async fn take(&mut self, message: &Message, is_stopping: bool) -> Result<(), RunError<E>> {
        if let Some((outcome, body)) = decode(&message.payload) {
            self.heard_last = Instant::now();
            self.judge_outcome(outcome, body, is_stopping).await?;
        }
        // If the acknowledgment is lost, the report arrives again, and the dispatcher recognizes it as a duplicate.
        let _ = message.ack().await;
        Ok(())
    }

    async fn judge_outcome(&mut self, outcome: JobReport, body: &[u8], is_stopping: bool) -> Result<(), RunError<E>> {
        let JobReport { job, match_id, fixture: number, worker, ended, .. } = outcome;
        let Some((pairing, setup)) = self.find_match(number) else { return Ok(()) };
        // The report is a duplicate, or belongs to another plan or to other versions of the agents.
        if setup.id(&self.tournament, number) != match_id || !self.seen.insert((job, worker.id.clone())) {
            return Ok(());
        }
        let is_kept = self.competition.has_result(number);
        let check = self.checks.get_mut(&number).filter(|check| check.worker.id != worker.id);
        if is_kept && check.is_none() {
            return Ok(());
        }
        if let Some(check) = check {
            check.asked.take_if(|asked| *asked == worker.id);
        }
        let played = match ended {
            JobEnd::Played(played) => played,
            JobEnd::Failed(_) if is_kept => {
                self.unable.insert(worker.id);
                return Ok(());
            }
            JobEnd::Failed(what) => {
                return Err(RunError::Unplayable { number, what });
            }
        };
        let fetched;
        let body = match &played.object {
            None => body,
            Some(object) => {
                fetched = match fetch(&self.nats, &self.tournament, object, MAX_PACKED).await {
                    Ok(bytes) => bytes,
                    Err(what) => {
                        self.note(format!("the replay of game {number} by worker {} is lost: {what}", worker.name))?;
                        return if is_kept || is_stopping { Ok(()) } else { self.publish(number, None).await };
                    }
                };
                // If the deletion fails, the object is deleted later together with its bucket.
                let _ = self.bucket.delete(object).await;
                &fetched[..]
            }
        };
        self.judge_play(&pairing, &setup, worker, &played, body, is_stopping).await
    }

    async fn judge_play(
        &mut self,
        pairing: &Pairing,
        setup: &MatchSetup,
        worker: WorkerIdentity,
        played: &PlayedJob,
        body: &[u8],
        is_stopping: bool,
    ) -> Result<(), RunError<E>> {
        let number = pairing.number;
        let audited = audit(setup, (number, pairing.round), &worker, played, body);
        if let Err(why) = &audited {
            self.note_once(format!("the result of game {number} by worker {} doesn't count: {why}", worker.name))?;
        }
        if let Some(check) = self.checks.remove(&number) {
            let differs = !audited.is_ok_and(|audited| audited.worker.played == check.played);
            if differs {
                self.differences.push(format!("game {number} ({} and {})", check.worker.name, worker.name));
            }
            let checked = CheckedLine { fixture: number, worker: worker.name, id: worker.id, differs };
            return Ok(self.competition.append(JournalLine::Checked(checked))?);
        }
        let mut audited = match audited {
            Ok(audited) => audited,
            Err(_) if is_stopping => return Ok(()),
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
            self.checks.insert(number, CrossCheck { worker, played, asked: None });
            if !is_stopping {
                self.ask_second_worker(number).await?;
            }
        }
        Ok(())
    }

    /// Removes the competition's jobs from the queue. Workers still report the results of matches under way.
    async fn clear_queue(&self) -> Result<(), NatsError> {
        let stream = self.nats.js.get_stream(names::JOBS).await.map_err(|error| self.nats.failed(&error))?;
        let purged = stream.purge().filter(names::jobs_of(&self.tournament)).await;
        purged.map(|_| ()).map_err(|error| self.nats.failed(&error))
    }

    /// Removes all of the competition's data from the server. If the removal fails, the server deletes the data when it
    /// expires.
    async fn clean_up(&self) {
        let _ = self.clear_queue().await;
        let _ =
            self.nats.js.delete_consumer_from_stream(&names::result_consumer(&self.tournament), names::RESULTS).await;
        if let Ok(stream) = self.nats.js.get_stream(names::RESULTS).await {
            let _ = stream.purge().filter(names::results_of(&self.tournament)).await;
        }
        let _ = self.nats.js.delete_object_store(names::bucket(&self.tournament)).await;
    }

    fn note(&mut self, text: String) -> Result<(), RunError<E>> {
        (self.on_event)(self.competition, Event::Note(text)).map_err(RunError::Caller)
    }

    fn note_once(&mut self, text: String) -> Result<(), RunError<E>> {
        if self.remarks.insert(text.clone()) { self.note(text) } else { Ok(()) }
    }
}
