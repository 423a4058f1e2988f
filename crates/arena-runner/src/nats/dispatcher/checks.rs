//! Cross-checks of workers' results. The dispatcher has other workers play the same match, and quarantines workers with
//! deviating results.

use std::time::Duration;

use arena_tournament::{CheckedLine, GameLine};

use super::{Dispatcher, LastPresence, MatchCheck};
use crate::competition::Event;
use crate::executor::RunError;
use crate::nats::audit::is_by_machine;
use crate::nats::competition::{WorkerCompetition, player_of};
use crate::nats::names;
use crate::nats::publish::notify;
use crate::nats::referee::{Finding, Play, is_checked, is_same, judge};
use crate::nats::wire::{QuarantineNotice, WorkerIdentity};

/// The time after the start within which all running workers announce their presence.
const INTRODUCTIONS: Duration = Duration::from_secs(3);

impl<C: WorkerCompetition, E, T: FnMut(&C, Event) -> Result<(), E>> Dispatcher<'_, C, T> {
    /// Continues the open check of a match: requests more plays, or acts on the referee's finding.
    pub(super) async fn continue_check(&mut self, number: usize) -> Result<(), RunError<E>> {
        let Some(check) = self.checks.get(&number).filter(|check| !check.is_closed) else { return Ok(()) };
        let name = self.competition.match_name(number);
        let agents = self
            .competition
            .game(number)
            .map(|game| game.result.names().into_iter().map(str::to_owned).collect::<Vec<_>>())
            .unwrap_or_default();
        match judge(&check.plays) {
            Finding::Open { again, others } => {
                let is_dispute = !again.is_empty() || check.plays.len() > 1;
                if is_dispute && self.unlike.contains(&agents) {
                    self.close(number);
                    return Ok(());
                }
                self.ask(number, again, others).await
            }
            Finding::Agreed(worker) => {
                self.close(number);
                let checked = CheckedLine { fixture: number, worker: worker.name, id: worker.id };
                self.competition.confirm(checked)
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
                        "{} don't play deterministically ({name}), so their games are only checked against the rules",
                        agents.join(" and ")
                    ))?;
                }
                Ok(())
            }
            Finding::Deviates(worker) => {
                let why = format!("{name}: its result differs from that of two other workers");
                // The recorded result may come from a confirmed worker; the quarantine then doesn't remove it.
                self.quarantine(&worker, why).await
            }
        }
    }

    /// Requests plays of a recorded match: from the workers in `again`, and from `others` further
    /// workers. Skips workers that aren't available.
    pub(super) async fn ask(&mut self, number: usize, again: Vec<String>, others: usize) -> Result<(), RunError<E>> {
        let Some(check) = self.checks.get(&number) else { return Ok(()) };
        let is_asked = |id: &String| check.asked.contains(id);
        let is_there = |id: &String| self.workers.get(id).is_some_and(|seen| self.is_able(&seen.presence));
        let is_known = |worker: &WorkerIdentity| {
            check.plays.iter().any(|play| is_same(&play.worker, worker))
                || check
                    .asked
                    .iter()
                    .any(|id| self.workers.get(id).is_some_and(|seen| is_same(&seen.presence.worker, worker)))
        };
        let mut asked: Vec<String> = again.into_iter().filter(|id| !is_asked(id) && is_there(id)).collect();
        let others_asked =
            check.asked.iter().filter(|id| !check.plays.iter().any(|play| play.worker.id == **id)).count();
        let mut free: Vec<&LastPresence> = (self.workers.values())
            .filter(|seen| self.is_able(&seen.presence) && !is_known(&seen.presence.worker))
            .collect();
        // Workers with the smallest share of busy slots come first.
        free.sort_by_key(|seen| seen.presence.playing.values().sum::<usize>() * 1000 / seen.presence.slots.max(1));
        let free = free.into_iter().map(|seen| seen.presence.worker.id.clone());
        asked.extend(free.take(others.saturating_sub(others_asked)));
        for id in asked {
            self.publish(number, Some(&id)).await?;
            if let Some(check) = self.checks.get_mut(&number) {
                check.asked.push(id);
            }
        }
        Ok(())
    }

    /// Reserves an open match for a trusted worker, after an untrusted worker has reported a result.
    pub(super) async fn hand_to_others(&mut self, number: usize) -> Result<(), RunError<E>> {
        if !self.open.contains_key(&number) {
            return Ok(());
        }
        let good = self.workers.values().filter(|seen| self.is_able(&seen.presence));
        let busy =
            |seen: &&LastPresence| seen.presence.playing.values().sum::<usize>() * 1000 / seen.presence.slots.max(1);
        let id = good.min_by_key(busy).map(|seen| seen.presence.worker.id.clone());
        self.publish(number, id.as_deref()).await?;
        match id {
            Some(id) => self.reserved.insert(number, id),
            None => self.reserved.remove(&number),
        };
        Ok(())
    }

    /// Quarantines a worker. The matches that only this worker has played, and those that depend on them, are played
    /// again.
    pub(super) async fn quarantine(&mut self, worker: &WorkerIdentity, why: String) -> Result<(), RunError<E>> {
        let void = self.competition.quarantine(worker, &why)?;
        let consequence = match void.len() {
            0 => "none of its games counted yet".to_owned(),
            1 => "1 game is played again".to_owned(),
            games => format!("{games} games are played again"),
        };
        self.note(format!("worker {} is quarantined: {why}; {consequence}", worker.name))?;
        self.checks.retain(|number, _| !void.contains(number));
        for check in self.checks.values_mut() {
            check.plays.retain(|play| !is_same(&play.worker, worker));
            check.asked.retain(|id| *id != worker.id);
        }
        self.checks.retain(|_, check| !check.plays.is_empty());
        // Open matches that the competition no longer contains are dropped.
        let competition = &*self.competition;
        self.open.retain(|number, open| competition.pairing(*number).is_some_and(|pairing| pairing == *open));
        let refusal = QuarantineNotice { tournament: self.tournament.clone(), why };
        notify(&self.nats, names::refusal(&worker.id), &refusal).await;
        Ok(())
    }

    /// Restores the checks that earlier runs of this tournament left open.
    pub(super) fn recall_checks(&mut self) {
        let open = self.competition.unconfirmed().into_iter();
        let open = open.filter(|game| is_checked(&self.seed, game.number, self.options.check));
        let checks = open.filter_map(|game| {
            let plays = vec![first_play(game)?];
            Some((game.number, MatchCheck { plays, ..MatchCheck::default() }))
        });
        self.checks = checks.collect();
    }

    /// Returns true if the dispatcher still expects results of checks. In the first seconds all open checks count,
    /// because some workers may not have announced their presence yet.
    pub(super) fn is_checking(&self) -> bool {
        let is_early = self.began.elapsed() < INTRODUCTIONS;
        self.checks.values().any(|check| !check.is_closed && (is_early || !check.asked.is_empty()))
    }

    pub(super) fn close(&mut self, number: usize) {
        if let Some(check) = self.checks.get_mut(&number) {
            check.is_closed = true;
        }
    }

    /// Adds remarks on the matches with checks still open at the end, and on deviations that a worker's machine may
    /// have caused.
    pub(super) fn report_unchecked(&mut self) -> Result<(), RunError<E>> {
        let alone = self.checks.values().filter(|check| !check.is_closed && check.plays.len() < 2).count();
        let disputed: Vec<String> = (self.checks.iter())
            .filter(|(_, check)| !check.is_closed && check.plays.len() > 1)
            .map(|(number, _)| self.competition.match_name(*number))
            .collect();
        if alone > 0 {
            let games = if alone == 1 { "1 game".to_owned() } else { format!("{alone} games") };
            self.note(format!("{games} couldn't be checked, because there was no second worker"))?;
        }
        if !disputed.is_empty() {
            let games = disputed.join(", ");
            self.note(format!("two workers disagree, and there was no third worker to decide: {games}"))?;
        }
        for (worker, games) in std::mem::take(&mut self.by_machine) {
            let games = if games == 1 { "1 game".to_owned() } else { format!("{games} games") };
            self.note(format!(
                "{games} had another result on worker {worker} than on a second one: an agent timed out or died, perhaps because of the machine"
            ))?;
        }
        Ok(())
    }
}

/// Converts a recorded game into a [`Play`]; `None` if no worker played the game.
pub(super) fn first_play(game: &GameLine) -> Option<Play> {
    let (part, worker) = (game.worker.as_ref()?, player_of(game)?);
    Some(Play { worker, played: part.played.clone(), is_by_machine: is_by_machine(game) })
}
