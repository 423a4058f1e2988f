//! The worker pool of a competition. Tracks which workers are present, lost, or unable to play.

use std::time::{Duration, Instant};

use super::{Dispatcher, LastPresence};
use crate::competition::{Competition, Event};
use crate::executor::RunError;
use crate::nats::names;
use crate::nats::wire::WorkerPresence;

/// The time without a presence message after which a worker counts as lost.
const GONE_AFTER: Duration = Duration::from_secs(10);

/// The time without workers before the first remark that there are none, and the time between further remarks.
const LONELY: (Duration, Duration) = (Duration::from_secs(3), Duration::from_secs(60));

/// The time without results after which the dispatcher searches for lost jobs.
const QUIET: Duration = Duration::from_secs(20);

/// The time to wait for results in transit after all workers have ended their matches.
const LAST_RESULTS: Duration = Duration::from_millis(1500);

impl<C: Competition, E, T: FnMut(&C, Event) -> Result<(), E>> Dispatcher<'_, C, T> {
    /// Detects lost workers and lost jobs, and gives matches to second workers.
    pub(super) async fn check_workers(&mut self, is_stopping: bool, is_lost: bool) -> Result<(), RunError<E>> {
        let gone: Vec<String> = (self.workers.iter())
            .filter(|(_, seen)| seen.at.elapsed() > GONE_AFTER && !is_lost)
            .map(|(id, _)| id.clone())
            .collect();
        for id in gone {
            let seen = self.workers.remove(&id);
            let name = seen.map(|seen| seen.presence.worker.name).unwrap_or_default();
            self.note(format!("worker {name} doesn't respond; its games are queued again"))?;
            self.forget(&id).await?;
        }
        if !is_stopping {
            let open: Vec<usize> = self.checks.keys().copied().collect();
            for number in open {
                self.ask_second_worker(number).await?;
            }
        }
        let playing = self.workers.values().map(|seen| self.playing(&seen.presence)).sum();
        let workers = self.workers.len();
        (self.on_event)(self.competition, Event::Workers { workers, playing }).map_err(RunError::Caller)?;
        let since = *self.alone_since.get_or_insert_with(Instant::now);
        if workers > 0 {
            (self.alone_since, self.complained) = (None, None);
        } else if since.elapsed() > LONELY.0 && self.complained.is_none_or(|at| at.elapsed() > LONELY.1) && !is_stopping
        {
            self.complained = Some(Instant::now());
            let url = self.nats.url.clone();
            self.note(format!(
                "no workers at {url}; start one with `arena worker --nats-url {url}` (Ctrl-C stops this run; it can be resumed)"
            ))?;
        }
        if self.heard_last.elapsed() > QUIET && !is_stopping && !is_lost && playing == 0 && !self.open.is_empty() {
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
        let is_new = !self.workers.contains_key(&id);
        if presence.leaving {
            self.workers.remove(&id);
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
        self.workers.insert(id, LastPresence { presence, at: Instant::now() });
        if is_new { self.note(text) } else { Ok(()) }
    }

    /// Removes a lost worker from checks, with the jobs that only it may take.
    pub(super) async fn forget(&mut self, id: &str) -> Result<(), RunError<E>> {
        for check in self.checks.values_mut() {
            check.asked.take_if(|asked| asked == id);
        }
        if let Ok(stream) = self.nats.js.get_stream(names::JOBS).await {
            // If the purge fails, the jobs expire.
            let _ = stream.purge().filter(names::for_worker(&self.tournament, id)).await;
        }
        Ok(())
    }

    /// Sets the times of all last presence messages to now. Called after a lost connection, during which no messages
    /// could arrive.
    pub(super) fn refresh_presences(&mut self) {
        self.workers.values_mut().for_each(|seen| seen.at = Instant::now());
    }

    /// Returns true if all workers have reported since `since` that they play no match of this tournament, and no
    /// results are in transit.
    pub(super) fn is_over(&self, since: Instant) -> bool {
        let news = self.workers.values().all(|seen| seen.at > since && self.playing(&seen.presence) == 0);
        let quiet = since.elapsed().min(self.heard_last.elapsed()) > LAST_RESULTS;
        news && quiet
    }

    pub(super) fn playing(&self, presence: &WorkerPresence) -> usize {
        presence.playing.get(&self.tournament).copied().unwrap_or(0)
    }
}
