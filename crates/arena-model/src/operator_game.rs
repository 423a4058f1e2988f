//! Challenges as games of the match runner: an [`AnyGame`] whose agents are the players of a session.
//!
//! In each epoch every agent receives the messages that it may see and hasn't received yet, and answers with
//! any number of actions: `{"action": "<method>", "content": …}` calls a method of the challenge, `{"action":
//! "chat", "content": "…", "to": "<player>"?}` sends a chat message. The agents' lists are processed one
//! after the other, in an order drawn for the epoch, so a quick agent has no advantage. Rejected actions are
//! in the agent's next state.
//!
//! The session is the same as on a server, with the same transitions and the same rules of visibility. For
//! challenges with deadlines, each epoch takes one second.
//!
//! If the rules end a match, they also score it. A match stalls after [`MAX_QUIET`] epochs without messages or
//! actions, or after [`MAX_EPOCHS`] epochs, and then ends. The agents that the rules wait for forfeit with
//! `NO_ACTION`. These are the agents that [`Operator::awaited`](crate::Operator::awaited) returns, or else the agents
//! without an accepted action so far; chat doesn't count. If these are none or all of the remaining agents, no
//! agent forfeits, and the match is void unless an agent was disqualified.

use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};
use uuid::Uuid;

use crate::challenge::{Builtin, ChallengeMetadata, ChallengeType, Method, OptionsError, Rules};
use crate::game::{
    Actions, AnyGame, Events, GameType, IndexedAction, Setup, TimeLimits, UpdateMode, Verdict, parse_named,
};
use crate::{
    ActError, Channel, ChatMessage, InviteCode, MemorySession, Rejection, Score, Script, Seat, Seed, SeedRng,
    SessionFacts, SessionId, Timestamp,
};

/// The state of a challenge for one agent: the members of its `world_state`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChallengeState {
    /// The challenge type, such as `psi`.
    pub challenge: String,
    /// The instructions for players.
    pub prompt: String,
    /// The methods that actions may name, besides `chat`.
    pub methods: Vec<Method>,
    /// The agent's public name.
    pub you: String,
    /// The names of all players, by seat; `None` if unknown.
    pub players: Vec<Option<String>>,
    /// The messages since the agent's last state that this seat may see.
    pub messages: Vec<SeenMessage>,
    /// The rejected actions of the last answer.
    pub rejected: Vec<RefusedAction>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SeenMessage {
    /// The channel: `operator` or `chat`.
    pub channel: String,
    /// The position in the channel, from 1.
    pub index: u64,
    /// The sender: a player's name, or `operator`.
    pub from: String,
    /// The recipient, or `None` for all players.
    pub to: Option<String>,
    pub content: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RefusedAction {
    /// The action, unchanged.
    pub action: ChallengeAction,
    /// The error code, such as `INVALID_GUESS`.
    pub code: String,
    pub error: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChallengeAction {
    /// A method of the challenge, or `chat`.
    pub action: String,
    /// The content: a string, or any JSON, which is stored as its text.
    #[serde(default, deserialize_with = "as_text")]
    pub content: String,
    /// The recipient of a chat message, or `None` for all players.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
}

fn as_text<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    Ok(match Value::deserialize(deserializer)? {
        Value::String(text) => text,
        Value::Null => String::new(),
        value => value.to_string(),
    })
}

/// The action that sends a chat message.
const CHAT: &str = "chat";

/// The number of epochs after which a match ends.
const MAX_EPOCHS: u64 = 1000;

/// The number of consecutive epochs without messages or actions after which a match ends.
const MAX_QUIET: u64 = 10;

/// The duration of an epoch for deadlines, in milliseconds.
const EPOCH_MS: i64 = 1000;

/// Starts a built-in challenge as a game.
pub(crate) fn start<R: Rules>(
    game_type: &'static GameType,
    options: &Map<String, Value>,
    setup: Setup,
) -> Result<Box<dyn AnyGame>, OptionsError> {
    let options: R::Options = parse_named(R::ID, options)?;
    let Ok(Value::Object(mut options)) = serde_json::to_value(options) else {
        return Err(OptionsError(format!("the options of {} aren't a JSON object", R::ID)));
    };
    options.insert("players".to_owned(), setup.agents.len().into());
    let challenge = Arc::new(Builtin::<R>::new(&options)?);
    let options = challenge.resolve(&Map::new())?;
    Ok(Box::new(ChallengeGame::new(game_type, challenge, options, setup)?))
}

/// The version of the rules that this module adds to all challenges. The rules version of a challenge's matches is
/// [`Rules::MATCH_VERSION`] plus this number, so a change of either raises it.
///
/// Version 1: if a match stalls, the agents that the rules wait for forfeit. Before version 1, such a match was a
/// draw.
pub(crate) const MATCH_RULES: u32 = 1;

/// The update mode and time limits of all challenges.
pub(crate) const MODE: UpdateMode = UpdateMode::Simultaneous;
pub(crate) const LIMITS: TimeLimits = TimeLimits { step_ms: 5_000, bank_ms: 60_000 };

pub(crate) struct ChallengeGame {
    game_type: &'static GameType,
    session: MemorySession,
    /// The number of messages that all agents have received.
    shown: usize,
    /// The rejected actions of the last epoch, by seat.
    refused: Vec<Vec<RefusedAction>>,
    is_out: Vec<bool>,
    /// True for each seat with an accepted action.
    has_acted: Vec<bool>,
    epochs: u64,
    /// The number of consecutive epochs without messages or actions.
    quiet: u64,
}

impl ChallengeGame {
    /// Opens a session with these agents. `options` are the output of [`ChallengeType::resolve`].
    pub(crate) fn new(
        game_type: &'static GameType,
        challenge: Arc<dyn ChallengeType>,
        options: Value,
        setup: Setup,
    ) -> Result<ChallengeGame, OptionsError> {
        let seats = setup.agents.len();
        let mut names = setup.seed.rng("operator game/names");
        let id = SessionId(draw_id(&mut names));
        let facts = SessionFacts {
            script: challenge.script().map(Script::version),
            seed: Some(setup.seed),
            options,
            invites: (0..seats).map(|_| InviteCode(draw_id(&mut names))).collect(),
            ..SessionFacts::bare(id, challenge.id(), Timestamp(0))
        };
        Ok(ChallengeGame {
            game_type,
            session: MemorySession::seated(challenge, facts).map_err(|error| OptionsError(error.to_string()))?,
            shown: 0,
            refused: vec![Vec::new(); seats],
            is_out: vec![false; seats],
            has_acted: vec![false; seats],
            epochs: 0,
            quiet: 0,
        })
    }

    /// Plays one epoch. See [`Game::step`](crate::Game::step).
    fn step(&mut self, actions: &Actions<ChallengeAction>, events: &mut Events) {
        if self.termination().is_some() {
            return;
        }
        let said = self.session.messages().len();
        self.shown = said;
        self.refused.iter_mut().for_each(Vec::clear);
        self.epochs += 1;
        for seat in self.draw_order() {
            for IndexedAction { index, action } in actions.of(seat) {
                if let Err(Rejection { code, message }) = self.act(seat, action) {
                    events.reject(seat, *index, format!("{code}: {message}"));
                    self.refused[seat.0].push(RefusedAction { action: action.clone(), code, error: message });
                }
            }
        }
        if self.session.session().deadline.is_some_and(|deadline| deadline <= self.now()) {
            // If the rules can't read their state, the deadline stays.
            let _ = self.session.wake_at(self.now());
        }
        let is_quiet = self.session.messages()[said..].iter().all(|message| message.channel.is_inputs());
        self.quiet = if is_quiet { self.quiet + 1 } else { 0 };
        for seat in self.forfeiting() {
            events.forfeit(seat, Verdict::NoAction, "the game waited for it, and it did nothing");
        }
    }

    /// Returns the seats that forfeit because the match has stalled.
    fn forfeiting(&self) -> Vec<Seat> {
        if !self.has_stalled() {
            return Vec::new();
        }
        let session = self.session.session();
        let operator = self.session.challenge().restore(&session.facts, &session.state);
        let awaited = operator.ok().and_then(|operator| operator.awaited());
        let left: Vec<Seat> = (0..self.is_out.len()).map(Seat).filter(|seat| !self.is_out[seat.0]).collect();
        let is_awaited = |seat: &Seat| match &awaited {
            Some(awaited) => awaited.contains(seat),
            None => !self.has_acted[seat.0],
        };
        let silent: Vec<Seat> = left.iter().copied().filter(is_awaited).collect();
        if silent.len() == left.len() { Vec::new() } else { silent }
    }

    /// Returns true if the match has ended, but not by its rules.
    fn has_stalled(&self) -> bool {
        !self.session.is_over() && self.termination().is_some()
    }

    fn now(&self) -> Timestamp {
        Timestamp(0).plus_ms(self.epochs as i64 * EPOCH_MS)
    }

    fn seed(&self) -> &Seed {
        self.session.session().facts.seed.as_ref().expect("the session was opened with a seed")
    }

    fn draw_order(&self) -> Vec<Seat> {
        let mut order: Vec<Seat> = (0..self.is_out.len()).map(Seat).collect();
        let mut rng = self.seed().rng(&format!("operator game/order/{}", self.epochs));
        for place in (1..order.len()).rev() {
            order.swap(place, rng.below(place as u64 + 1) as usize);
        }
        order
    }

    fn act(&mut self, seat: Seat, action: &ChallengeAction) -> Result<(), Rejection> {
        let ChallengeAction { action, content, to } = action;
        if action == CHAT {
            let said = self.session.say(seat, content, to.as_deref());
            return said.map_err(|error| Rejection::new("INVALID_CHAT", error.to_string()));
        }
        match self.session.act_at(self.now(), seat, action, content) {
            Ok(()) => {
                self.has_acted[seat.0] = true;
                Ok(())
            }
            Err(ActError::Rejected(rejection)) => Err(rejection),
            Err(error) => Err(Rejection::new("REFUSED", error.to_string())),
        }
    }

    fn state(&self, seat: Seat) -> ChallengeState {
        let challenge = self.session.challenge();
        let metadata = challenge.metadata();
        let new = self.session.messages()[self.shown..].iter();
        let seen = new.filter(|message| self.session.is_readable(message, seat));
        ChallengeState {
            challenge: challenge.id().to_owned(),
            prompt: metadata.prompt.clone(),
            methods: metadata.methods.clone(),
            you: self.session.names()[seat.0].clone(),
            players: self.session.names().iter().cloned().map(Some).collect(),
            messages: seen.map(SeenMessage::of).collect(),
            rejected: self.refused[seat.0].clone(),
        }
    }
}

impl AnyGame for ChallengeGame {
    fn game_type(&self) -> &'static GameType {
        self.game_type
    }

    fn config(&self) -> Map<String, Value> {
        self.session.session().facts.options.as_object().cloned().unwrap_or_default()
    }

    fn is_asked(&self, seat: Seat) -> bool {
        self.termination().is_none() && self.is_out.get(seat.0).is_some_and(|is_out| !is_out)
    }

    fn write_state(&self, seat: Seat, out: &mut Vec<u8>) {
        let state = serde_json::to_vec(&self.state(seat)).expect("a state is plain data");
        out.extend_from_slice(&state[1..state.len() - 1]);
    }

    fn play(&mut self, replies: &[Option<&str>], taken: &mut Vec<u8>, events: &mut Events) {
        let mut actions = Actions::<ChallengeAction>::none(self.is_out.len());
        actions.play(replies, taken, events, |actions, events| self.step(actions, events));
    }

    fn disqualify(&mut self, seat: Seat) {
        if let Some(is_out) = self.is_out.get_mut(seat.0) {
            *is_out = true;
        }
    }

    fn termination(&self) -> Option<&'static str> {
        let ends = [
            (self.session.is_over(), "GAME_ENDED"),
            (self.quiet >= MAX_QUIET, "NOBODY_ACTED"),
            (self.epochs >= MAX_EPOCHS, "MAX_EPOCHS"),
        ];
        ends.into_iter().find(|(has_ended, _)| *has_ended).map(|(_, name)| name)
    }

    /// Returns the sum of utility and security of each seat; 0 before the end. A stalled match keeps the
    /// scores that the rules have set so far.
    fn scores(&self) -> Vec<f64> {
        let is_settled = self.termination().is_some() && !self.is_void();
        let score = |score: &Score| if is_settled { score.utility + score.security } else { 0.0 };
        self.session.session().scores.iter().map(score).collect()
    }

    fn is_void(&self) -> bool {
        self.has_stalled() && !self.is_out.contains(&true)
    }

    /// Returns utility and security by seat, after the end of a match that isn't void.
    fn challenge_scores(&self) -> Option<Vec<Score>> {
        (self.termination().is_some() && !self.is_void()).then(|| self.session.session().scores.clone())
    }

    fn side(&self, _seat: Seat) -> Option<&'static str> {
        None
    }

    fn metadata(&self) -> Option<&ChallengeMetadata> {
        Some(self.session.challenge().metadata())
    }
}

impl SeenMessage {
    /// Converts a message that the seat may see.
    fn of(message: &ChatMessage) -> SeenMessage {
        SeenMessage {
            channel: match message.channel {
                Channel::Operator(_) => "operator",
                Channel::Chat(_) | Channel::Invites | Channel::Inputs(_) => CHAT,
            }
            .to_owned(),
            index: message.index,
            from: message.from.to_string(),
            to: message.to.as_ref().map(ToString::to_string),
            content: message.content.clone(),
        }
    }
}

fn draw_id(rng: &mut SeedRng) -> Uuid {
    let bytes = [(); 16].map(|()| rng.below(256) as u8);
    uuid::Builder::from_random_bytes(bytes).into_uuid()
}
