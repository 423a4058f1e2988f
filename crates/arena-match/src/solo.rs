//! One local agent in a match that a server plays. The agent gets messages, and its answers are validated, as
//! in a local match. The caller supplies the states and ids.

use std::borrow::Cow;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use arena_model::{AgentId, Disqualified, GameType, TimeLimits};
use serde_json::{Map, Value};

use crate::agent::Agent;
use crate::conversation::{Conversation, Player};
use crate::match_plan::{Confinement, OwnerLog, start_one};
use crate::play::MatchError;

/// A local agent in a server's match. After its disqualification, the agent gets no further states. Dropping
/// the value ends the agent's processes.
pub struct Solo<'a> {
    talk: Conversation<'a>,
    limits: TimeLimits,
}

impl<'a> Solo<'a> {
    /// Starts an agent under an id, for a game if the agent must know it, and sends it the ping. An agent that doesn't start or answers without a
    /// pong is disqualified.
    ///
    /// # Errors
    /// If the agent can't be started, or a request to it fails, for a reason that isn't the agent's fault.
    pub fn start(
        agent: &Agent,
        game: Option<&'static GameType>,
        id: AgentId,
        confinement: &Confinement,
        limits: TimeLimits,
        called_off: &'a AtomicBool,
    ) -> Result<Solo<'a>, MatchError> {
        let player = Player::new(agent, 0, id, limits, start_one(agent, game, confinement, limits))?;
        let mut talk = Conversation::new(vec![player], limits, called_off);
        talk.ping()?;
        Ok(Solo { talk, limits })
    }

    /// Sends the agent its id and the config.
    ///
    /// # Errors
    /// As [`Solo::start`].
    pub fn introduce(&mut self, config: &Map<String, Value>) -> Result<(), MatchError> {
        self.talk.introduce(config)
    }

    /// Sends the agent a state. Returns the text of the actions in its reply, or `None` if the reply is invalid or the
    /// agent is disqualified. The reply is validated against the players in the state's `agent_ids`. `by` is the
    /// caller's deadline. It applies if it is earlier than the deadline of the agent's time limits.
    ///
    /// # Errors
    /// As [`Solo::start`].
    pub fn show(&mut self, state: &Map<String, Value>, by: Option<Instant>) -> Result<Option<String>, MatchError> {
        let seat = &mut self.talk.seats[0];
        if let Some(ids) = state.get("agent_ids").and_then(Value::as_array) {
            seat.meet(ids.iter().filter_map(Value::as_str));
        }
        let own = seat.step(self.limits) + seat.bank;
        let patience = by.map_or(own, |by| by.saturating_duration_since(Instant::now()).min(own));
        let mut text = serde_json::to_vec(state).expect("a map of texts is JSON");
        // Remove the braces, because the message adds its own.
        text.pop();
        self.talk.write_state(0, &text[1..]);
        let (_, mut replies) = self.talk.show(Some(patience))?;
        Ok(replies.remove(0).map(Cow::into_owned))
    }

    /// Returns the agent's disqualification, or `None` if the agent still plays.
    pub fn out(&self) -> Option<&Disqualified> {
        self.talk.seats[0].out.as_ref()
    }

    /// Returns the name that the agent sent, or else the name of its file.
    pub fn name(&self) -> &str {
        &self.talk.seats[0].name
    }

    /// Sends `stop`, waits until the agent has ended, and returns the log for its owner.
    pub fn finish(mut self) -> OwnerLog {
        self.talk.stop();
        self.talk.finish().remove(0)
    }
}
