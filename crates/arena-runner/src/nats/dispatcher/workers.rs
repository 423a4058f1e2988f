//! The workers of a tournament, as far as they are heard of: who is there, who has gone, and what that means for what they played.

use std::time::{Duration, Instant};

use super::{Dispatcher, Seen};
use crate::competition::Event;
use crate::executor::RunError;
use crate::journal::Journal;
use crate::nats::names;
use crate::nats::wire::{Identity, Presence};

/// How long a worker is thought to be there after its last sign of life.
const GONE_AFTER: Duration = Duration::from_secs(10);

/// How long workers are waited for before that is told, and then between such remarks.
const LONELY: (Duration, Duration) = (Duration::from_secs(3), Duration::from_secs(60));

/// After how long without any result it is looked whether matches were lost.
const QUIET: Duration = Duration::from_secs(20);

/// How long is waited for results that are on the way, after the last worker has ended its match.
const LAST_RESULTS: Duration = Duration::from_millis(1500);

impl<E, T: FnMut(&Journal, Event) -> Result<(), E>> Dispatcher<'_, T> {
    /// Looks after what nobody tells us: workers that are gone, and matches that were lost.
    pub(super) async fn look_after(&mut self, is_stopping: bool, is_lost: bool) -> Result<(), RunError<E>> {
        let gone: Vec<String> = (self.workers.iter())
            .filter(|(_, seen)| seen.at.elapsed() > GONE_AFTER && !is_lost)
            .map(|(id, _)| id.clone())
            .collect();
        for id in gone {
            let seen = self.workers.remove(&id);
            let name = seen.map(|seen| seen.presence.worker.name).unwrap_or_default();
            self.note(format!("the worker {name} isn't heard of any more; its games are handed out again"))?;
            self.forget(&id).await?;
        }
        let open: Vec<usize> =
            self.cases.iter().filter(|(_, case)| !case.is_closed).map(|(number, _)| *number).collect();
        if !is_stopping {
            for number in open {
                self.pursue(number).await?;
            }
        }
        let playing = self.workers.values().map(|seen| self.playing(&seen.presence)).sum();
        let workers = self.workers.values().filter(|seen| self.is_welcome(&seen.presence)).count();
        (self.on_event)(self.journal, Event::Workers { workers, playing }).map_err(RunError::Caller)?;
        let since = *self.alone_since.get_or_insert_with(Instant::now);
        if workers > 0 {
            (self.alone_since, self.complained) = (None, None);
        } else if since.elapsed() > LONELY.0 && self.complained.is_none_or(|at| at.elapsed() > LONELY.1) && !is_stopping
        {
            self.complained = Some(Instant::now());
            let url = self.nats.url.clone();
            self.note(format!(
                "no worker takes matches from {url}; waiting for one: arena worker --nats-url {url} (Ctrl-C stops, and `resume` goes on)"
            ))?;
        }
        if self.heard_last.elapsed() > QUIET && !is_stopping && !is_lost && playing == 0 && !self.open.is_empty() {
            self.heard_last = Instant::now();
            self.find_lost().await?;
        }
        Ok(())
    }

    /// A worker says that it is there.
    pub(super) async fn meet(&mut self, presence: Presence) -> Result<(), RunError<E>> {
        let (id, name) = (presence.worker.id.clone(), presence.worker.name.clone());
        if presence.generation != names::generation() {
            let (theirs, ours) = (&presence.generation, names::generation());
            return self
                .note_once(format!("the worker {name} is of arena {theirs}, and this is {ours}; it gets no games"));
        }
        if self.is_quarantined(&presence.worker) {
            self.workers.remove(&id);
            return self
                .note_once(format!("the worker {name} is quarantined in this tournament; its games don't count"));
        }
        let is_new = !self.workers.contains_key(&id);
        if presence.leaving {
            self.workers.remove(&id);
            if !is_new {
                self.note(format!("the worker {name} has stopped"))?;
            }
            return self.forget(&id).await;
        }
        let text = match presence.sandbox.as_str() {
            "on" => format!("the worker {name} is there, with room for {}", presence.slots),
            mode => format!("the worker {name} is there, with room for {} and --sandbox {mode}", presence.slots),
        };
        self.workers.insert(id, Seen { presence, at: Instant::now() });
        if is_new { self.note(text) } else { Ok(()) }
    }

    /// What a worker alone could have played that is gone is played by others.
    pub(super) async fn forget(&mut self, id: &str) -> Result<(), RunError<E>> {
        for case in self.cases.values_mut() {
            case.asked.retain(|asked| asked != id);
        }
        if let Ok(stream) = self.nats.js.get_stream(names::JOBS).await {
            // Whatever is left there expires.
            let _ = stream.purge().filter(names::for_worker(&self.tournament, id)).await;
        }
        let its: Vec<usize> =
            self.reserved.iter().filter(|(_, worker)| *worker == id).map(|(number, _)| *number).collect();
        for number in its {
            self.reserved.remove(&number);
            self.hand_to_others(number).await?;
        }
        Ok(())
    }

    /// Nobody has been heard while the connection was lost, and nobody is gone for that.
    pub(super) fn greet_again(&mut self) {
        self.workers.values_mut().for_each(|seen| seen.at = Instant::now());
    }

    /// Whether nobody plays any more, as far as was told since then.
    pub(super) fn is_over(&self, since: Instant) -> bool {
        let news = self.workers.values().all(|seen| seen.at > since && self.playing(&seen.presence) == 0);
        let quiet = since.elapsed().min(self.heard_last.elapsed()) > LAST_RESULTS;
        news && quiet
    }

    pub(super) fn playing(&self, presence: &Presence) -> usize {
        presence.playing.get(&self.tournament).copied().unwrap_or(0)
    }

    pub(super) fn is_welcome(&self, presence: &Presence) -> bool {
        !self.is_quarantined(&presence.worker)
    }

    /// Whether a worker may be given what it alone can take.
    pub(super) fn is_able(&self, presence: &Presence) -> bool {
        self.is_welcome(presence) && !self.unable.contains(&presence.worker.id)
    }

    pub(super) fn is_quarantined(&self, worker: &Identity) -> bool {
        let lines = &self.journal.record().quarantined;
        lines.iter().any(|line| line.id == worker.id || line.worker == worker.name)
    }
}
