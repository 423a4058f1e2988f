//! The recorded epochs with which a forked match begins.

use std::io::BufRead;

use arena_model::{Disqualified, Rejected, Seat as SeatNumber};
use serde_json::value::RawValue;

use super::{MatchError, MatchRun};
use crate::replay::{Replay, ReplayError, ReplayFork, ReplayLine};

/// The recorded epochs of a match up to one epoch.
#[derive(Debug)]
pub struct MatchPast {
    origin: ReplayFork,
    epochs: Vec<PastEpoch>,
}

/// A recorded epoch.
#[derive(Debug)]
struct PastEpoch {
    /// The accepted actions by seat, as JSON.
    actions: Vec<Option<String>>,
    disqualified: Vec<Disqualified>,
    rejected: Vec<Rejected>,
}

impl MatchPast {
    /// Reads the epochs up to number `until` from a replay that [`verify`](crate::verify) accepts. `of` is the SHA-256
    /// of the replay, in hex.
    ///
    /// # Errors
    /// If the replay can't be read or has fewer epochs, or if an agent was disqualified before the first epoch.
    pub fn read<R: BufRead>(replay: &mut Replay<R>, until: u64, of: String) -> Result<MatchPast, ReplayError> {
        let mut epochs = Vec::new();
        while (epochs.len() as u64) < until {
            let wrong = |line: usize, what: String| ReplayError::Line { line, what };
            let number = replay.line() + 1;
            let Some(ReplayLine::Epoch(line)) = replay.next_line()? else {
                return Err(wrong(number, format!("the match ended after {} epochs", epochs.len())));
            };
            if line.epoch == 0 {
                match line.disqualified.first() {
                    None => continue,
                    Some(_) => {
                        return Err(wrong(number, "an agent was disqualified before the first epoch".to_owned()));
                    }
                }
            }
            let actions = line.actions.as_deref().map_or("[]", RawValue::get);
            let lists: Vec<Option<&RawValue>> =
                serde_json::from_str(actions).map_err(|error| wrong(number, error.to_string()))?;
            epochs.push(PastEpoch {
                actions: lists.into_iter().map(|list| list.map(|list| list.get().to_owned())).collect(),
                disqualified: line.disqualified,
                rejected: line.rejected,
            });
        }
        Ok(MatchPast { origin: ReplayFork { of, at: until }, epochs })
    }

    /// Returns the original replay and the number of epochs.
    pub fn origin(&self) -> &ReplayFork {
        &self.origin
    }
}

impl MatchRun<'_> {
    /// Plays the recorded actions of the past.
    pub(super) fn play_past(&mut self, past: &MatchPast) -> Result<(), MatchError> {
        // The states of challenges contain only the messages since the last one, so an agent needs all of them.
        let is_shown = self.play.game().metadata().is_some();
        self.check_agents()?;
        for epoch in &past.epochs {
            self.play_past_epoch(epoch, is_shown)?;
        }
        Ok(())
    }

    fn play_past_epoch(&mut self, past: &PastEpoch, is_shown: bool) -> Result<(), MatchError> {
        let epoch = self.play.epochs() + 1;
        self.write_states();
        if is_shown {
            self.talk.show(None)?;
            self.check_agents()?;
        } else {
            self.talk.drop_states();
        }
        for out in past.disqualified.iter().filter(|out| !out.verdict.is_of_the_game()) {
            // The replay was verified, so the seat exists.
            if let Some(seat) = self.talk.seats.get_mut(out.seat) {
                seat.out.get_or_insert_with(|| out.clone());
                self.play.disqualify(out.clone());
            }
        }
        let replies: Vec<Option<&str>> = past.actions.iter().map(Option::as_deref).collect();
        self.taken.clear();
        let taken = &mut self.taken;
        let is_played = self.play.play(|game, events| game.play(&replies, taken, events));
        self.end_epoch(epoch, is_played, Some((&past.disqualified[..], &past.rejected[..])))
    }

    /// Fails if an agent is out that the match still contains: the past would be another one.
    fn check_agents(&self) -> Result<(), MatchError> {
        let seats = self.talk.seats.iter();
        let failed = seats.filter_map(|seat| Some((seat, seat.out.as_ref()?))).find(|(seat, _)| {
            // An agent that failed in the handshake is out of the match already.
            self.play.epochs() == 0 || self.play.is_in(SeatNumber(seat.number))
        });
        match failed {
            None => Ok(()),
            Some((seat, out)) => Err(MatchError::Past(format!("{} failed: {}", seat.name, out.detail))),
        }
    }
}
