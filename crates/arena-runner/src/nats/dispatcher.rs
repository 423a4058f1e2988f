//! The dispatcher of a tournament: hands its matches to workers, and judges and keeps the results.

mod checks;
mod results;
mod workers;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use arena_match::logs;
use arena_model::Seed;
use arena_tournament::{Line, Pairing};
use async_nats::jetstream::Message;
use async_nats::jetstream::object_store::ObjectStore;
use futures_util::StreamExt;
use tokio::sync::mpsc;
use tokio::time::{MissedTickBehavior, interval, sleep, timeout};

use checks::first_play;
use results::read_results;

use crate::competition::{Ended, Event};
use crate::executor::RunError;
use crate::journal::Journal;
use crate::nats::audit::audit;
use crate::nats::cache::fetch;
use crate::nats::connect::{Nats, NatsError};
use crate::nats::executor::NatsOptions;
use crate::nats::names;
use crate::nats::publish::{decode, publish, tell, to_json};
use crate::nats::referee::{Play, is_checked, is_same};
use crate::nats::wire::{
    Announcement, Identity, Job, JobEnd, JobReport, MatchSetup, Played, Presence, Traveller, Trouble,
};

/// How many matches are on the queue at most, beyond which workers needn't look.
const AHEAD: usize = 256;

/// How often is looked after everything.
const TICK: Duration = Duration::from_millis(250);

/// How often the tournament says that it is there.
const ANNOUNCED: Duration = Duration::from_secs(2);

/// Most bytes of a replay that came as an object, packed.
const MAX_PACKED: u64 = 256 << 20;

/// A match in the journal that is played by others as well.
#[derive(Debug, Default)]
struct Case {
    plays: Vec<Play>,
    /// The ids of workers that were asked to play it, and haven't answered.
    asked: Vec<String>,
    is_closed: bool,
}

/// A worker that was heard of.
#[derive(Debug)]
struct Seen {
    presence: Presence,
    at: Instant,
}

/// Hands the matches of a tournament to workers.
pub struct Dispatcher<'a, T> {
    nats: Nats,
    bucket: ObjectStore,
    tournament: String,
    /// Another one with each start of this program, so that jobs of a start before are told apart.
    run: String,
    /// How many jobs were handed out.
    jobs: u64,
    seed: Seed,
    travellers: Vec<Traveller>,
    replays: Option<PathBuf>,
    how: &'a NatsOptions<'a>,
    journal: &'a mut Journal,
    on_event: T,
    /// Matches that aren't on the queue yet, in order.
    queue: VecDeque<Pairing>,
    /// Matches that are, or are being played.
    open: BTreeMap<usize, Pairing>,
    /// Those of them that one worker alone can take from the queue, by its id.
    reserved: BTreeMap<usize, String>,
    /// Matches that are checked.
    cases: BTreeMap<usize, Case>,
    /// Results that were taken: job and worker.
    seen: BTreeSet<(String, String)>,
    workers: BTreeMap<String, Seen>,
    /// The ids of those that have said that they can't play.
    unable: BTreeSet<String>,
    /// Agents, by match, that don't always play alike.
    unlike: BTreeSet<Vec<String>>,
    /// How many matches came out differently for what may be the machine's fault, by name of the worker.
    by_machine: BTreeMap<String, usize>,
    began: Instant,
    /// When the last result came.
    heard_last: Instant,
    /// Since when there are no workers.
    alone_since: Option<Instant>,
    /// When that was told.
    complained: Option<Instant>,
    /// What was told once and isn't told again.
    remarks: BTreeSet<String>,
}

impl<'a, E, T: FnMut(&Journal, Event) -> Result<(), E>> Dispatcher<'a, T> {
    #[expect(clippy::too_many_arguments, reason = "all that there is at the beginning")]
    pub fn new(
        nats: Nats,
        bucket: ObjectStore,
        (tournament, run): (String, String),
        seed: Seed,
        travellers: Vec<Traveller>,
        replays: Option<PathBuf>,
        how: &'a NatsOptions<'a>,
        journal: &'a mut Journal,
        on_event: T,
    ) -> Self {
        Dispatcher {
            nats,
            bucket,
            tournament,
            run,
            jobs: 0,
            seed,
            travellers,
            replays,
            how,
            journal,
            on_event,
            queue: VecDeque::new(),
            open: BTreeMap::new(),
            reserved: BTreeMap::new(),
            cases: BTreeMap::new(),
            seen: BTreeSet::new(),
            workers: BTreeMap::new(),
            unable: BTreeSet::new(),
            unlike: BTreeSet::new(),
            by_machine: BTreeMap::new(),
            began: Instant::now(),
            heard_last: Instant::now(),
            alone_since: None,
            complained: None,
            remarks: BTreeSet::new(),
        }
    }

    /// Plays until all is done, or somebody stops it.
    pub async fn play(mut self, lost: mpsc::UnboundedReceiver<bool>) -> Result<Ended, RunError<E>> {
        let ended = self.play_on(lost).await;
        match ended {
            Ok(Ended::Complete) => self.clean_up().await,
            Ok(Ended::Stopped) => {}
            // Nobody waits for what is queued any more.
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
        // What another start of this program has queued is queued again, as far as it is still to be played.
        self.clear_queue().await?;
        let _ = nats.js.delete_consumer_from_stream(&names::result_consumer(&self.tournament), names::RESULTS).await;
        let (results, mut arrived) = mpsc::channel(64);
        let reader = tokio::spawn(read_results(nats.clone(), self.tournament.clone(), results));
        self.recall_checks();
        let mut ticks = interval(TICK);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut announced = interval(ANNOUNCED);
        announced.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut was_lost = false;
        let mut stopping: Option<Instant> = None;
        let ended = loop {
            if self.how.called_off.load(Ordering::Relaxed) {
                break Ok(Ended::Stopped);
            }
            if self.how.stop.load(Ordering::Relaxed) && stopping.is_none() {
                stopping = Some(Instant::now());
                if let Err(error) = self.clear_queue().await {
                    self.note(error.to_string())?;
                }
            }
            match stopping {
                Some(since) if self.is_over(since) => break Ok(Ended::Stopped),
                Some(_) => {}
                None => {
                    self.hand_out().await?;
                    if self.journal.record().schedule.is_complete() && !self.is_checking() {
                        break Ok(Ended::Complete);
                    }
                }
            }
            tokio::select! {
                Some(message) = arrived.recv() => self.take(&message, stopping.is_some()).await?,
                Some(message) = presences.next() => {
                    if let Ok(presence) = serde_json::from_slice::<Presence>(&message.payload) {
                        self.meet(presence).await?;
                    }
                }
                Some(message) = troubles.next() => {
                    if let Ok(trouble) = serde_json::from_slice::<Trouble>(&message.payload) {
                        let text = format!("the worker {} can't play: {}", trouble.worker.name, trouble.what);
                        self.note_once(text)?;
                        // Checks are given to those who can play. What is on the queue it may try again.
                        if self.unable.insert(trouble.worker.id.clone()) {
                            self.forget(&trouble.worker.id).await?;
                        }
                    }
                }
                Some(is_lost) = lost.recv() => {
                    match (was_lost, is_lost) {
                        (false, true) => self.note("the connection to NATS is lost; trying to get it back".to_owned())?,
                        (true, false) => {
                            self.note("the connection to NATS is back".to_owned())?;
                            self.greet_again();
                        }
                        _ => {}
                    }
                    was_lost = is_lost;
                }
                _ = announced.tick() => {
                    let announcement = Announcement { tournament: self.tournament.clone(), generation: names::generation() };
                    tell(&self.nats, names::announcement(&self.tournament), &announcement).await;
                }
                _ = ticks.tick() => self.look_after(stopping.is_some(), was_lost).await?,
            }
        };
        reader.abort();
        if let Ok(Ended::Complete) = ended {
            self.tell_unchecked()?;
        }
        ended
    }

    /// Hands matches out again that are neither on the queue nor played by anybody: a server may have lost what it had.
    async fn find_lost(&mut self) -> Result<(), RunError<E>> {
        let Ok(stream) = self.nats.js.get_stream(names::JOBS).await else {
            // The server has lost the stream itself.
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

    /// Fills the queue with what comes next.
    async fn hand_out(&mut self) -> Result<(), RunError<E>> {
        let schedule = &self.journal.record().schedule;
        if self.queue.is_empty() && self.open.is_empty() && !schedule.is_complete() {
            // Wave after wave: what comes next may depend on all that came before.
            self.queue = schedule.pending().cloned().collect();
        }
        if schedule.is_complete() && !self.open.is_empty() {
            // What ends a tournament ends it within a wave too.
            self.open.clear();
            self.queue.clear();
            self.clear_queue().await?;
        }
        while self.open.len() < AHEAD {
            let Some(fixture) = self.queue.pop_front() else { break };
            let number = fixture.number;
            self.open.insert(number, fixture);
            self.publish(number, None).await?;
        }
        Ok(())
    }

    /// All that a match comes of.
    fn setup(&self, fixture: &Pairing) -> MatchSetup {
        let plan = &self.journal.record().plan;
        MatchSetup {
            game: plan.game.clone(),
            options: plan.options.clone(),
            limits: plan.limits,
            seed: fixture.seed.reveal(),
            seats: fixture.agents.iter().map(|agent| self.travellers[*agent].clone()).collect(),
        }
    }

    /// Puts a match on the queue: for anybody, or for one worker.
    async fn publish(&mut self, number: usize, worker: Option<&str>) -> Result<(), RunError<E>> {
        let Some(fixture) = self.journal.record().schedule.pairing(number).cloned() else { return Ok(()) };
        let setup = self.setup(&fixture);
        self.jobs += 1;
        let job = Job {
            generation: names::generation(),
            tournament: self.tournament.clone(),
            job: format!("{}-{}", self.run, self.jobs),
            match_id: setup.id(&self.tournament, number),
            fixture: number,
            round: fixture.round,
            setup,
            logs: self.replays.is_some(),
        };
        let subject = match worker {
            Some(worker) => names::for_worker(&self.tournament, worker),
            None => names::for_anybody(&self.tournament),
        };
        let mut told = false;
        // The server may be away for a while. The same job twice within two minutes counts once, and later no harm is done.
        while let Err(what) = publish(&self.nats, subject.clone(), &job.job, to_json(&job)).await {
            if self.how.stop.load(Ordering::Relaxed) {
                return Ok(());
            }
            if !std::mem::replace(&mut told, true) {
                self.note(format!("game {number} can't be handed out yet: {what}; trying again"))?;
            }
            sleep(TICK).await;
        }
        Ok(())
    }

    /// Takes what came of a job, and lets the server forget it when it is on the disk.
    async fn take(&mut self, message: &Message, is_stopping: bool) -> Result<(), RunError<E>> {
        if let Some((outcome, body)) = decode(&message.payload) {
            self.heard_last = Instant::now();
            self.judge_outcome(outcome, body, is_stopping).await?;
        }
        // If that gets lost, it comes again and is known then.
        let _ = message.ack().await;
        Ok(())
    }

    async fn judge_outcome(&mut self, outcome: JobReport, body: &[u8], is_stopping: bool) -> Result<(), RunError<E>> {
        let JobReport { job, match_id, fixture: number, worker, ended, .. } = outcome;
        let Some(fixture) = self.journal.record().schedule.pairing(number).cloned() else { return Ok(()) };
        let setup = self.setup(&fixture);
        // Of another plan, or of agents as they were before.
        if setup.id(&self.tournament, number) != match_id || !self.seen.insert((job, worker.id.clone())) {
            return Ok(());
        }
        if let Some(case) = self.cases.get_mut(&number) {
            case.asked.retain(|asked| *asked != worker.id);
        }
        let is_kept = self.journal.record().game(number).is_some();
        if self.is_quarantined(&worker) {
            return if is_kept || is_stopping { Ok(()) } else { self.hand_to_others(number).await };
        }
        let played = match ended {
            JobEnd::Played(played) => played,
            JobEnd::Failed(_) if is_kept => {
                self.unable.insert(worker.id);
                return Ok(());
            }
            JobEnd::Failed(what) => return Err(RunError::Unplayable { number, what }),
        };
        let fetched;
        let body = match &played.object {
            None => body,
            Some(object) => {
                fetched = match fetch(&self.nats, &self.tournament, object, MAX_PACKED).await {
                    Ok(bytes) => bytes,
                    Err(what) => {
                        self.note(format!(
                            "what the worker {} recorded of game {number} is lost: {what}",
                            worker.name
                        ))?;
                        return if is_kept || is_stopping { Ok(()) } else { self.publish(number, None).await };
                    }
                };
                // It isn't needed any more, and goes with the bucket at the latest.
                let _ = self.bucket.delete(object).await;
                &fetched[..]
            }
        };
        self.judge_play(&fixture, &setup, worker, &played, body, is_kept, is_stopping).await
    }

    #[expect(clippy::too_many_arguments, reason = "what came, and what is known of it")]
    async fn judge_play(
        &mut self,
        fixture: &Pairing,
        setup: &MatchSetup,
        worker: Identity,
        played: &Played,
        body: &[u8],
        is_kept: bool,
        is_stopping: bool,
    ) -> Result<(), RunError<E>> {
        let number = fixture.number;
        let audited = match audit(setup, (number, fixture.round), &worker, played, body) {
            Ok(audited) => audited,
            Err(why) => {
                self.quarantine(&worker, why).await?;
                return if is_kept || is_stopping { Ok(()) } else { self.hand_to_others(number).await };
            }
        };
        let part = audited.game.worker.clone().expect("an audit says who played");
        let play = Play { worker, played: part.played, is_by_machine: audited.is_by_machine() };
        if is_kept {
            // A second result of the same worker's for a game that nobody checks is one that was handed out twice.
            let first = self.journal.record().game(number).and_then(first_play);
            let is_news = first.as_ref().is_some_and(|first| !is_same(&first.worker, &play.worker));
            if is_news && !self.cases.contains_key(&number) {
                self.cases.insert(number, Case { plays: first.into_iter().collect(), ..Case::default() });
            }
            if let Some(case) = self.cases.get_mut(&number) {
                case.plays.push(play);
            }
            return if is_stopping { Ok(()) } else { self.pursue(number).await };
        }
        if let Some(folder) = &self.replays {
            let path = folder.join(format!("{number}.jsonl"));
            let files = std::iter::once((path.clone(), &audited.replay));
            let files = files.chain(audited.logs.iter().enumerate().map(|(seat, log)| (logs::path(&path, seat), log)));
            for (path, bytes) in files {
                arena_match::write(&path, bytes).map_err(|source| RunError::Write { path, source })?;
            }
        }
        self.journal.append(Line::Game(Box::new(audited.game)))?;
        self.open.remove(&number);
        self.reserved.remove(&number);
        (self.on_event)(self.journal, Event::Played(number)).map_err(RunError::Caller)?;
        if is_checked(&self.seed, number, self.how.check) {
            self.cases.insert(number, Case { plays: vec![play], ..Case::default() });
            if !is_stopping {
                self.pursue(number).await?;
            }
        }
        Ok(())
    }

    /// Takes what is on the queue off it. What is being played comes back all the same.
    async fn clear_queue(&self) -> Result<(), NatsError> {
        let stream = self.nats.js.get_stream(names::JOBS).await.map_err(|error| self.nats.failed(&error))?;
        let purged = stream.purge().filter(names::jobs_of(&self.tournament)).await;
        purged.map(|_| ()).map_err(|error| self.nats.failed(&error))
    }

    /// Leaves nothing of the tournament behind. What can't be taken away expires.
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
        (self.on_event)(self.journal, Event::Note(text)).map_err(RunError::Caller)
    }

    fn note_once(&mut self, text: String) -> Result<(), RunError<E>> {
        if self.remarks.insert(text.clone()) { self.note(text) } else { Ok(()) }
    }
}
