//! Checking what workers play: who is asked to play a match again, and what follows from what came of it.

use std::time::Duration;

use arena_tournament::{CheckedLine, GameLine, Line, Pairing, QuarantinedLine};

use super::{Case, Dispatcher, Seen};
use crate::competition::Event;
use crate::executor::RunError;
use crate::journal::Journal;
use crate::nats::audit::is_by_machine;
use crate::nats::names;
use crate::nats::publish::tell;
use crate::nats::referee::{Finding, Play, is_checked, is_same, judge};
use crate::nats::wire::{Identity, Refusal};

/// How long it takes until all workers that are there have been heard of.
const INTRODUCTIONS: Duration = Duration::from_secs(3);

impl<E, T: FnMut(&Journal, Event) -> Result<(), E>> Dispatcher<'_, T> {
    /// Goes on with checking a match, as far as there is somebody to play it.
    pub(super) async fn pursue(&mut self, number: usize) -> Result<(), RunError<E>> {
        let Some(case) = self.cases.get(&number).filter(|case| !case.is_closed) else { return Ok(()) };
        let agents = self
            .journal
            .record()
            .game(number)
            .map(|game| game.result.names().into_iter().map(str::to_owned).collect::<Vec<_>>())
            .unwrap_or_default();
        match judge(&case.plays) {
            Finding::Open { again, others } => {
                let is_dispute = !again.is_empty() || case.plays.len() > 1;
                if is_dispute && self.unlike.contains(&agents) {
                    self.close(number);
                    return Ok(());
                }
                self.ask(number, again, others).await
            }
            Finding::Agreed(worker) => {
                self.close(number);
                let checked = CheckedLine { fixture: number, worker: worker.name, id: worker.id };
                self.journal.append(Line::Checked(checked))?;
                Ok(())
            }
            Finding::Machine(worker) => {
                self.close(number);
                *self.by_machine.entry(worker.name).or_default() += 1;
                Ok(())
            }
            Finding::NotReproducible => {
                self.close(number);
                if self.unlike.insert(agents.clone()) {
                    self.note(format!(
                        "{} don't play alike each time (game {number}), so of their games nothing can be checked but the rules",
                        agents.join(" and ")
                    ))?;
                }
                Ok(())
            }
            Finding::Deviates(worker) => {
                let why = format!("game {number}: it was played otherwise than two other workers have played it");
                // What is kept of it may be what others have played.
                self.quarantine(&worker, why).await
            }
        }
    }

    /// Asks workers to play a match that is in the journal: these again, and so many others, as far as they are there.
    pub(super) async fn ask(&mut self, number: usize, again: Vec<String>, others: usize) -> Result<(), RunError<E>> {
        let Some(case) = self.cases.get(&number) else { return Ok(()) };
        let is_asked = |id: &String| case.asked.contains(id);
        let is_there = |id: &String| self.workers.get(id).is_some_and(|seen| self.is_able(&seen.presence));
        let is_known = |worker: &Identity| {
            case.plays.iter().any(|play| is_same(&play.worker, worker))
                || case
                    .asked
                    .iter()
                    .any(|id| self.workers.get(id).is_some_and(|seen| is_same(&seen.presence.worker, worker)))
        };
        let mut asked: Vec<String> = again.into_iter().filter(|id| !is_asked(id) && is_there(id)).collect();
        let others_asked = case.asked.iter().filter(|id| !case.plays.iter().any(|play| play.worker.id == **id)).count();
        let mut free: Vec<&Seen> = (self.workers.values())
            .filter(|seen| self.is_able(&seen.presence) && !is_known(&seen.presence.worker))
            .collect();
        // Who has least to do, for how much it can do.
        free.sort_by_key(|seen| seen.presence.playing.values().sum::<usize>() * 1000 / seen.presence.slots.max(1));
        let free = free.into_iter().map(|seen| seen.presence.worker.id.clone());
        asked.extend(free.take(others.saturating_sub(others_asked)));
        for id in asked {
            self.publish(number, Some(&id)).await?;
            if let Some(case) = self.cases.get_mut(&number) {
                case.asked.push(id);
            }
        }
        Ok(())
    }

    /// Hands a match to a worker that is believed, whose place another one has taken that isn't.
    pub(super) async fn hand_to_others(&mut self, number: usize) -> Result<(), RunError<E>> {
        if !self.open.contains_key(&number) {
            return Ok(());
        }
        let good = self.workers.values().filter(|seen| self.is_able(&seen.presence));
        let busy = |seen: &&Seen| seen.presence.playing.values().sum::<usize>() * 1000 / seen.presence.slots.max(1);
        let id = good.min_by_key(busy).map(|seen| seen.presence.worker.id.clone());
        self.publish(number, id.as_deref()).await?;
        match id {
            Some(id) => self.reserved.insert(number, id),
            None => self.reserved.remove(&number),
        };
        Ok(())
    }

    /// Believes a worker no more: what it alone has played is played again.
    pub(super) async fn quarantine(&mut self, worker: &Identity, why: String) -> Result<(), RunError<E>> {
        let record = self.journal.record();
        let is_its = |game: &GameLine| {
            let identity = first_play(game).map(|play| play.worker);
            let is_checked = record.checked.iter().any(|checked| checked.fixture == game.number);
            identity.is_some_and(|identity| is_same(&identity, worker)) && !is_checked
        };
        let void = record.void_with(is_its);
        let told = match void.len() {
            0 => "none of its games counted yet".to_owned(),
            1 => "1 game is played again".to_owned(),
            games => format!("{games} games are played again"),
        };
        self.note(format!("the worker {} is quarantined: {why}; {told}", worker.name))?;
        let line = QuarantinedLine {
            worker: worker.name.clone(),
            id: worker.id.clone(),
            why: why.clone(),
            void: void.clone(),
        };
        self.journal.append(Line::Quarantined(line))?;
        self.cases.retain(|number, _| !void.contains(number));
        for case in self.cases.values_mut() {
            case.plays.retain(|play| !is_same(&play.worker, worker));
            case.asked.retain(|id| *id != worker.id);
        }
        self.cases.retain(|_, case| !case.plays.is_empty());
        if !void.is_empty() {
            // Matches of a wave that has come to nothing are played by nobody any more.
            let schedule = &self.journal.record().schedule;
            let is_same_match = |open: &Pairing| schedule.pairing(open.number) == Some(open);
            self.open.retain(|_, open| is_same_match(open));
            self.queue =
                schedule.pending().filter(|fixture| !self.open.contains_key(&fixture.number)).cloned().collect();
        }
        let refusal = Refusal { tournament: self.tournament.clone(), why };
        tell(&self.nats, names::refusal(&worker.id), &refusal).await;
        Ok(())
    }

    /// Takes up the checks that another start of this program has left.
    pub(super) fn recall_checks(&mut self) {
        let record = self.journal.record();
        let open = record.games().filter(|game| {
            let is_done = record.checked.iter().any(|checked| checked.fixture == game.number);
            !is_done && is_checked(&self.seed, game.number, self.how.check)
        });
        let cases = open.filter_map(|game| {
            let plays = vec![first_play(game)?];
            Some((game.number, Case { plays, ..Case::default() }))
        });
        self.cases = cases.collect();
    }

    /// Whether results are still on the way that somebody will give. Who is there is known a moment after the beginning.
    pub(super) fn is_checking(&self) -> bool {
        let is_early = self.began.elapsed() < INTRODUCTIONS;
        self.cases.values().any(|case| !case.is_closed && (is_early || !case.asked.is_empty()))
    }

    pub(super) fn close(&mut self, number: usize) {
        if let Some(case) = self.cases.get_mut(&number) {
            case.is_closed = true;
        }
    }

    /// Says what couldn't be checked.
    pub(super) fn tell_unchecked(&mut self) -> Result<(), RunError<E>> {
        let alone = self.cases.values().filter(|case| !case.is_closed && case.plays.len() < 2).count();
        let disputed: Vec<String> = (self.cases.iter())
            .filter(|(_, case)| !case.is_closed && case.plays.len() > 1)
            .map(|(number, _)| number.to_string())
            .collect();
        if alone > 0 {
            let games = if alone == 1 { "1 game".to_owned() } else { format!("{alone} games") };
            self.note(format!("{games} should have been checked by a second worker, and there was none"))?;
        }
        if !disputed.is_empty() {
            let games = disputed.join(", ");
            self.note(format!(
                "two workers have played these games differently, and there was no third to tell who is to blame: {games}"
            ))?;
        }
        for (worker, games) in std::mem::take(&mut self.by_machine) {
            let games = if games == 1 { "1 game".to_owned() } else { format!("{games} games") };
            self.note(format!(
                "{games} came out differently on another worker than on {worker}, where an agent was late or died; that may be the machine"
            ))?;
        }
        Ok(())
    }
}

/// Who has played a game of the journal, and what came of it.
pub(super) fn first_play(game: &GameLine) -> Option<Play> {
    let part = game.worker.as_ref()?;
    let worker = Identity { id: part.id.clone(), name: part.name.clone() };
    Some(Play { worker, played: part.played.clone(), is_by_machine: is_by_machine(game) })
}
