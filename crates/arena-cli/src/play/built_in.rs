//! A built-in agent on a seat: a house bot, or one that chooses among valid actions at random.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use arena_house::Bot;
use arena_match::BuiltIn;
use arena_players::http::{Arena, BotPolicy, CallError, HttpSeat, SeatError, play_bot, random_bytes};
use arena_wire::{Session, SessionState};

use crate::exit::{Exit, Failure};
use crate::output::note;

/// The time without news after which a bot doesn't wait for others. People need time to read and type.
const PATIENCE: Duration = Duration::from_secs(120);

pub struct BuiltInPlayer(pub BuiltIn);

impl BuiltInPlayer {
    /// Checks that the agent can play a challenge.
    ///
    /// # Errors
    /// If it can't.
    pub fn check(&self, challenge: &str) -> Result<(), Failure> {
        self.bot(challenge, 0).map(drop)
    }

    /// Checks that the agent can play the session of an invite.
    ///
    /// # Errors
    /// If it can't, or the server is unreachable.
    pub fn check_invite(&self, arena: &Arena, invite: &str) -> Result<(), Failure> {
        match arena.find_invite(invite) {
            Ok(answer) => self.check(&answer.read::<Session>()?.challenge_type),
            // The server refuses an unknown or used invite. The join reports the error.
            Err(CallError::Refused { .. }) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Lets the agent play. Returns the result of the session, or `None` if the agent left before its end.
    ///
    /// # Errors
    /// If the agent can't play the challenge, the server fails, or the play was interrupted.
    pub fn play(&self, seat: &HttpSeat, called_off: &AtomicBool) -> Result<Option<SessionState>, Failure> {
        let mut bot = self.bot(&seat.challenge, u64::from_be_bytes(random_bytes()?))?;
        let policy = BotPolicy { pace: Duration::ZERO, patience: PATIENCE, poll: None, stop: &[called_off] };
        match play_bot(seat, bot.as_mut(), policy)? {
            Some(ending) => {
                let listed = seat.state().ok().flatten().filter(|state| state.status == "ended");
                // The operator's last message contains the scores, but not the players.
                Ok(Some(listed.unwrap_or(ending)))
            }
            None if called_off.load(Ordering::Relaxed) => Err(SeatError::Interrupted.into()),
            None => {
                note(&format!("{} left the session, since nothing happened for a long time", self.0));
                Ok(None)
            }
        }
    }

    fn bot(&self, challenge: &str, random: u64) -> Result<Box<dyn Bot>, Failure> {
        let playable = arena_games::find(challenge).ok_or_else(|| {
            Failure::new(Exit::NoAgent, format_args!("{} plays built-in challenges only, not {challenge}", self.0))
        })?;
        self.0.bot(&playable.game, random).map_err(|error| Failure::new(Exit::NoAgent, error))
    }
}
