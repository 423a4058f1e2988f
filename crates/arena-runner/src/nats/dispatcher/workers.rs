//! The worker pool of a competition. Tracks which workers are present, lost, or unable to play.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use super::Dispatcher;
use crate::competition::{Competition, Event};
use crate::executor::RunError;
use crate::nats::names;
use crate::nats::wire::{PlayFailure, WorkerPresence};

/// The time without a presence message after which a worker counts as lost.
const GONE_AFTER: Duration = Duration::from_secs(10);

/// The time without workers before the first remark that there are none, and the time between further remarks.
const LONELY: (Duration, Duration) = (Duration::from_secs(3), Duration::from_secs(60));

/// The time without results after which the dispatcher searches for lost jobs.
const QUIET: Duration = Duration::from_secs(20);

/// The time to wait for results in transit after all workers have ended their matches.
const LAST_RESULTS: Duration = Duration::from_millis(1500);

/// A worker's last presence message, with the time at which it arrived.
#[derive(Debug)]
struct LastPresence {
    presence: WorkerPresence,
    at: Instant,
}

#[derive(Debug, Default)]
pub(super) struct WorkerPool {
    workers: BTreeMap<String, LastPresence>,
    /// The ids of the workers that have reported that they can't play the tournament's matches.
    pub(super) unable: BTreeSet<String>,
    /// True while the connection to NATS is lost, so that no worker can respond.
    is_lost: bool,
    /// The time since which there have been no workers; `None` if there are workers.
    alone_since: Option<Instant>,
    /// The time of the last remark that there are no workers.
    complained: Option<Instant>,
}

impl WorkerPool {
    pub(super) fn slots(&self) -> usize {
        self.workers.values().map(|seen| seen.presence.slots).sum()
    }

    /// Returns the number of the tournament's matches that workers play.
    fn playing(&self, tournament: &str) -> usize {
        self.workers.values().map(|seen| seen.presence.playing.get(tournament).copied().unwrap_or(0)).sum()
    }

    /// Finds the least busy worker, apart from this one, that can play the tournament's matches.
    pub(super) fn find_other(&self, worker: &str) -> Option<&String> {
        let others = self.workers.iter().filter(|(id, _)| *id != worker && !self.unable.contains(*id));
        let busy =
            |seen: &LastPresence| seen.presence.playing.values().sum::<usize>() * 1000 / seen.presence.slots.max(1);
        others.min_by_key(|(_, seen)| busy(seen)).map(|(id, _)| id)
    }

    /// Removes the workers that don't respond.
    fn take_gone(&mut self) -> Vec<(String, LastPresence)> {
        let is_lost = self.is_lost;
        self.workers.extract_if(.., |_, seen| seen.at.elapsed() > GONE_AFTER && !is_lost).collect()
    }

    /// Returns true if it is time for a remark that there are no workers.
    fn must_complain(&mut self) -> bool {
        let since = *self.alone_since.get_or_insert_with(Instant::now);
        if !self.workers.is_empty() {
            (self.alone_since, self.complained) = (None, None);
            return false;
        }
        let must = since.elapsed() > LONELY.0 && self.complained.is_none_or(|at| at.elapsed() > LONELY.1);
        if must {
            self.complained = Some(Instant::now());
        }
        must
    }
}

impl<C: Competition, E, T: FnMut(&C, Event) -> Result<(), E>> Dispatcher<'_, C, T> {
    /// Detects lost workers and lost jobs, and gives matches to second workers.
    pub(super) async fn check_workers(&mut self) -> Result<(), RunError<E>> {
        for (id, seen) in self.pool.take_gone() {
            self.note(format!("worker {} doesn't respond; its games are queued again", seen.presence.worker.name))?;
            self.forget(&id).await?;
        }
        if self.stopping.is_none() {
            let open: Vec<usize> = self.checks.open.keys().copied().collect();
            for number in open {
                self.ask_second_worker(number).await?;
            }
        }
        let (workers, playing) = (self.pool.workers.len(), self.pool.playing(&self.queue.tournament));
        (self.on_event)(self.competition, Event::Workers { workers, playing }).map_err(RunError::Caller)?;
        if self.stopping.is_none() && self.pool.must_complain() {
            let url = self.queue.nats.url.clone();
            self.note(format!(
                "no workers at {url}; start one with `arena worker --nats-url {url}` (Ctrl-C stops this run; it can be resumed)"
            ))?;
        }
        let is_quiet = self.heard_last.elapsed() > QUIET && self.stopping.is_none() && !self.pool.is_lost;
        if is_quiet && playing == 0 && !self.open.is_empty() {
            self.heard_last = Instant::now();
            self.find_lost().await?;
        }
        Ok(())
    }

    pub(super) async fn handle_presence(&mut self, presence: WorkerPresence) -> Result<(), RunError<E>> {
        let (id, name) = (presence.worker.id.clone(), presence.worker.name.clone());
        if presence.generation != names::generation() {
            let (theirs, ours) = (&presence.generation, names::generation());
            return self.note_once(format!(
                "worker {name} runs arena {theirs}, but this program is {ours}; the worker gets no games"
            ));
        }
        let is_new = !self.pool.workers.contains_key(&id);
        if presence.leaving {
            self.pool.workers.remove(&id);
            if !is_new {
                self.note(format!("worker {name} has stopped"))?;
            }
            return self.forget(&id).await;
        }
        let slots = if presence.slots == 1 { "1 slot".to_owned() } else { format!("{} slots", presence.slots) };
        let text = match presence.sandbox.as_str() {
            "on" => format!("worker {name} has joined with {slots}"),
            mode => format!("worker {name} has joined with {slots} and --sandbox {mode}"),
        };
        self.pool.workers.insert(id, LastPresence { presence, at: Instant::now() });
        if is_new { self.note(text) } else { Ok(()) }
    }

    /// Handles the message of a worker that can't play the tournament's matches. It isn't asked as a second worker any
    /// more, but may still take jobs from the shared queue.
    pub(super) async fn handle_trouble(
        &mut self,
        PlayFailure { worker, what, .. }: PlayFailure,
    ) -> Result<(), RunError<E>> {
        self.note_once(format!("worker {} cannot play: {what}", worker.name))?;
        if self.pool.unable.insert(worker.id.clone()) {
            self.forget(&worker.id).await?;
        }
        Ok(())
    }

    pub(super) fn handle_connection(&mut self, is_lost: bool) -> Result<(), RunError<E>> {
        match (std::mem::replace(&mut self.pool.is_lost, is_lost), is_lost) {
            (false, true) => self.note("lost the connection to NATS; reconnecting".to_owned()),
            (true, false) => {
                // No presence messages could arrive.
                self.pool.workers.values_mut().for_each(|seen| seen.at = Instant::now());
                self.note("reconnected to NATS".to_owned())
            }
            _ => Ok(()),
        }
    }

    /// Removes a lost worker from checks, with the jobs that only it may take.
    pub(super) async fn forget(&mut self, id: &str) -> Result<(), RunError<E>> {
        for check in self.checks.open.values_mut() {
            check.asked.take_if(|asked| asked == id);
        }
        self.queue.clear_worker(id).await;
        Ok(())
    }

    /// Returns true if all workers have reported since `since` that they play no match of this tournament, and no
    /// results are in transit.
    pub(super) fn is_over(&self, since: Instant) -> bool {
        let has_news = self.pool.workers.values().all(|seen| seen.at > since);
        let is_quiet = since.elapsed().min(self.heard_last.elapsed()) > LAST_RESULTS;
        has_news && self.pool.playing(&self.queue.tournament) == 0 && is_quiet
    }
}
