//! A built-in agent on a seat: a house bot, or one that chooses among valid actions at random.

use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use arena_house::Bot;
use arena_match::BuiltIn;
use serde::Deserialize;

use super::PlayEnd;
use super::news::{Inbox, Next};
use super::seat::PlayerSeat;
use crate::client::{Arena, CallError, random_hex};
use crate::exit::{Exit, Failure};
use crate::house::play::{self, Manner};
use crate::house::seat::TakenSeat;
use crate::output::note;

/// The time without news after which a bot doesn't wait for others. People need time to read and type.
const PATIENCE: Duration = Duration::from_secs(120);

/// After the end of the bot's play: the time to wait for the session's result.
const LAST_NEWS: Duration = Duration::from_secs(20);

pub struct BuiltInPlayer {
    agent: BuiltIn,
}

/// The session of an unused invite.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct InvitedSession {
    challenge_type: String,
}

impl BuiltInPlayer {
    pub fn of(agent: BuiltIn) -> BuiltInPlayer {
        BuiltInPlayer { agent }
    }

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
            Ok(answer) => {
                let session: InvitedSession = answer.read()?;
                self.check(&session.challenge_type)
            }
            // The server refuses an unknown or used invite. The join reports the error.
            Err(CallError::Refused { .. }) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Lets the agent play.
    ///
    /// # Errors
    /// If the agent can't play the challenge, the server fails, or the play was interrupted.
    pub fn play(&self, seat: &PlayerSeat, inbox: &mut Inbox, called_off: &AtomicBool) -> Result<PlayEnd, Failure> {
        let random = u64::from_str_radix(&random_hex()?[..16], 16).unwrap_or_default();
        let mut bot = self.bot(&seat.challenge, random)?;
        let taken = TakenSeat { arena: seat.arena.clone(), session: seat.session.clone(), invite: seat.you.clone() };
        let manner = Manner { pace: Duration::ZERO, patience: PATIENCE, poll: None, stop: &[called_off] };
        play::play(&taken, bot.as_mut(), manner)?;
        let until = Instant::now() + LAST_NEWS;
        loop {
            match inbox.next(Some(until))? {
                Next::Over => return Ok(PlayEnd::ToTheEnd),
                Next::Nothing => {
                    note(&format!("{} left the session, since nothing happened for a long time", self.agent));
                    return Ok(PlayEnd::Left);
                }
                Next::Message(_) | Next::Typed(_) | Next::Leave => {}
            }
        }
    }

    fn bot(&self, challenge: &str, random: u64) -> Result<Box<dyn Bot>, Failure> {
        let playable = arena_games::find(challenge).ok_or_else(|| {
            Failure::new(Exit::NoAgent, format_args!("{} plays built-in challenges only, not {challenge}", self.agent))
        })?;
        self.agent.bot(&playable.game, random).map_err(|error| Failure::new(Exit::NoAgent, error))
    }
}
