//! A script as the operator of a session: the input of a script's call, and the validation of its output.

use std::sync::Arc;

use arena_model::{
    Attribution, InviteCode, Operator, Rejection, Score, Seat, Seed, SessionFacts, SessionId, Table, Timestamp, UserId,
};
use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Map, Value};

use super::{API_WITH_USERS, Fault, Rules};
use crate::wire::{Attributed, Done, Failure, OutgoingMessage, Reply, Scored};
use crate::{Limits, ScriptKind};

/// The maximum length of a refusal's code and of its message, in bytes.
const CODE_BYTES: usize = 100;
const MESSAGE_BYTES: usize = 2000;

/// The maximum length of an attribution's type in bytes, and the maximum number of attributions in a session.
const KIND_BYTES: usize = 100;
const ATTRIBUTIONS: usize = 1000;

/// The maximum absolute value of a score, the same as for imports.
const LARGEST_SCORE: f64 = 1e9;

/// The minimum time between a passed deadline and the next one, in milliseconds.
const SOONEST_AGAIN_MS: i64 = 1000;

/// The maximum time until a deadline, in milliseconds: one year.
const LONGEST_MS: i64 = 365 * 24 * 3600 * 1000;

pub(super) struct ScriptOperator {
    rules: Arc<Rules>,
    session: SessionId,
    created_at: Timestamp,
    invites: Vec<InviteCode>,
    options: Value,
    seed: Seed,
    pub(super) state: Box<RawValue>,
    /// The inputs of all calls so far, if the session's calls must share one world.
    pub(super) lasting: Option<Vec<Box<RawValue>>>,
}

pub(super) enum Call<'c> {
    Create,
    Join(InviteCode, Option<&'c UserId>),
    Message { from: InviteCode, method: &'c str, content: &'c str },
    Deadline,
}

impl Call<'_> {
    fn describe(&self) -> String {
        match self {
            Call::Create => "create".to_owned(),
            Call::Join(..) => "join".to_owned(),
            Call::Message { method, .. } => format!("message {method}"),
            Call::Deadline => "deadline".to_owned(),
        }
    }
}

/// The state of a session before a call, with the field names of the wire.
pub(super) struct SessionState {
    status: &'static str,
    scores: Vec<Scored>,
    players: Vec<String>,
    attributions: Vec<Attributed>,
}

impl SessionState {
    pub(super) fn at_start(seats: usize) -> SessionState {
        let nothing = Scored { security: 0.0, utility: 0.0 };
        SessionState { status: "open", scores: vec![nothing; seats], players: Vec::new(), attributions: Vec::new() }
    }

    pub(super) fn after(self, done: &Done, joined: usize) -> SessionState {
        let players = done.players.iter().take(joined).cloned().collect();
        SessionState { scores: done.scores.clone(), players, attributions: done.attributions.clone(), ..self }
    }

    /// Returns the state of a session. `seated` is the number of players whose join the script has
    /// handled.
    fn of(table: &Table<'_>, status: &'static str, seated: usize) -> SessionState {
        let players = table.players();
        let scored = |score: &Score| Scored { security: score.security, utility: score.utility };
        let attributed = |attribution: &Attribution| Attributed {
            from: players[attribution.from.0].to_string(),
            to: players[attribution.to.0].to_string(),
            kind: attribution.kind.clone(),
        };
        SessionState {
            status,
            scores: table.scores().iter().map(scored).collect(),
            players: players.iter().take(seated).map(ToString::to_string).collect(),
            attributions: table.attributions().iter().map(attributed).collect(),
        }
    }
}

/// The JSON input of `session.js`.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Input<'i> {
    kind: &'static str,
    api: u32,
    now: i64,
    random: [u32; 4],
    private_seed: String,
    options: &'i Value,
    challenge: StoredSession<'i>,
    #[serde(skip_serializing_if = "Option::is_none")]
    invite: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    user_id: Option<&'i str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<InputMessage<'i>>,
}

/// A session as the reference server stores it. The invites of free seats are left out, because a script must not see
/// them. The players' identities are left out, because a script gets each of them with the join.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct StoredSession<'i> {
    id: String,
    name: &'i str,
    created_at: i64,
    challenge_type: &'i str,
    invites: Vec<String>,
    state: StoredState<'i>,
    game_state: &'i RawValue,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct StoredState<'i> {
    status: &'i str,
    scores: &'i [Scored],
    players: &'i [String],
    player_identities: Map<String, Value>,
    attributions: &'i [Attributed],
}

#[derive(Serialize)]
struct InputMessage<'i> {
    channel: String,
    from: String,
    to: &'static str,
    content: &'i str,
    #[serde(rename = "type")]
    method: &'i str,
    timestamp: i64,
}

/// The reason that a call has no effect.
pub(super) enum CallError {
    Refused(Rejection),
    Failed(Failure),
}

impl ScriptOperator {
    pub(super) fn new(rules: &Arc<Rules>, facts: &SessionFacts) -> ScriptOperator {
        ScriptOperator {
            rules: Arc::clone(rules),
            session: facts.id,
            created_at: facts.created_at,
            invites: facts.invites.clone(),
            options: facts.options.clone(),
            seed: facts.dealt_from().clone(),
            state: to_raw_value(&Map::new()).expect("an empty object is JSON"),
            lasting: None,
        }
    }

    /// Calls the script and checks that its output is within all limits. The caller interprets the output.
    pub(super) fn ask(
        &mut self,
        call: &Call<'_>,
        session_state: &SessionState,
        now: Timestamp,
        transition: u64,
    ) -> Result<Done, CallError> {
        let input = self.input(call, session_state, now, transition);
        let rules = &self.rules;
        let lasting = self.lasting.as_ref().map(|calls| [calls.as_slice(), std::slice::from_ref(&input)].concat());
        let inputs = lasting.clone().unwrap_or_else(|| vec![input]);
        let mut done = match rules.sandbox.call(ScriptKind::Challenge, &rules.script, || rules.files(), inputs) {
            Reply::Done(done) => *done,
            Reply::Refused(refused) => {
                let (code, message) = (cut(refused.code, CODE_BYTES), cut(refused.message, MESSAGE_BYTES));
                return Err(CallError::Refused(Rejection { code, message }));
            }
            Reply::Failed(failure) => return Err(CallError::Failed(failure)),
            Reply::Counted(_) => return Err(CallError::Failed(Failure::of("invalid answer: a strategy's"))),
        };
        check_size(&done, rules.sandbox.limits()).map_err(|message| CallError::Failed(Failure::of(message)))?;
        for line in done.log.drain(..) {
            tracing::debug!(challenge = %rules.id, session = %self.session, "challenge {} says: {line}", rules.id);
        }
        self.lasting = lasting;
        self.state = std::mem::replace(&mut done.game_state, to_raw_value(&()).expect("null is JSON"));
        Ok(done)
    }

    /// Returns the JSON input of a call.
    fn input(&self, call: &Call<'_>, session_state: &SessionState, now: Timestamp, transition: u64) -> Box<RawValue> {
        let has_users = self.rules.api >= API_WITH_USERS;
        let mut rng = self.seed.rng(&format!("script/random/{transition}"));
        let mut invites: Vec<String> = session_state.players.clone();
        invites.resize_with(self.invites.len(), || "inv_hidden".to_owned());
        let (kind, invite, user_id, message) = match call {
            Call::Create => ("create", None, None, None),
            Call::Join(invite, user) => {
                let user_id = user.filter(|_| has_users).map(|user| user.as_str());
                ("join", Some(invite.to_string()), user_id, None)
            }
            Call::Deadline => ("deadline", None, None, None),
            Call::Message { from, method, content } => {
                let message = InputMessage {
                    channel: format!("challenge_{}", self.session),
                    from: from.to_string(),
                    to: "operator",
                    content,
                    method,
                    timestamp: now.0,
                };
                ("message", None, None, Some(message))
            }
        };
        let input = Input {
            kind,
            api: self.rules.api,
            now: now.0,
            random: [(); 4].map(|()| rng.below(1 << 32) as u32),
            private_seed: self.seed.derive("script/private").reveal(),
            options: &self.options,
            challenge: StoredSession {
                id: self.session.to_string(),
                name: if has_users { &self.rules.described.metadata.name } else { &self.rules.id },
                created_at: self.created_at.0,
                challenge_type: &self.rules.id,
                invites,
                state: StoredState {
                    status: session_state.status,
                    scores: &session_state.scores,
                    players: &session_state.players,
                    player_identities: Map::new(),
                    attributions: &session_state.attributions,
                },
                game_state: &self.state,
            },
            invite,
            user_id,
            message,
        };
        to_raw_value(&input).expect("numbers, texts and JSON are JSON")
    }

    /// Calls the script like [`ScriptOperator::ask`], and reports faults.
    pub(super) fn run(
        &mut self,
        call: &Call<'_>,
        session_state: &SessionState,
        now: Timestamp,
        transition: u64,
    ) -> Result<Done, Rejection> {
        self.ask(call, session_state, now, transition).map_err(|wrong| match wrong {
            CallError::Refused(rejection) => rejection,
            CallError::Failed(failure) => self.fail(call, failure),
        })
    }

    /// Reports a fault to the arena's owner, and returns the refusal for the player.
    fn fail(&self, call: &Call<'_>, Failure { message, stack }: Failure) -> Rejection {
        let challenge = self.rules.id.clone();
        let (message, stack) = (cut(message, MESSAGE_BYTES), cut(stack, MESSAGE_BYTES));
        (self.rules.listener)(&Fault { challenge, session: self.session, call: call.describe(), message, stack });
        Rejection::new(
            Rejection::FAILED,
            "The challenge failed, and nothing has changed. The arena's owner gets the reason.",
        )
    }

    /// Runs one call and applies its output to the table.
    fn play(&mut self, table: &mut Table<'_>, call: &Call<'_>, session_state: &SessionState) -> Result<(), Rejection> {
        let done = self.run(call, session_state, table.now(), table.transition())?;
        self.put(table, call, done).map_err(|message| self.fail(call, Failure::of(message)))
    }

    /// Applies a script's output to the table, or returns an error for invalid output.
    fn put(&self, table: &mut Table<'_>, call: &Call<'_>, done: Done) -> Result<(), String> {
        check_scores(&done.scores, table.size())?;
        let attributions = attributions_of(table, done.attributions)?;
        check_status(table, done.status.as_deref())?;
        let mut posts = Vec::with_capacity(done.messages.len());
        for OutgoingMessage { channel, content, to } in done.messages {
            posts.push((channel == "chat", content, to.map(|name| seat_of(table, &name)).transpose()?));
        }
        // After a passed deadline, the next deadline is at least this much later. Otherwise a script could keep an
        // arena busy without any action of a player.
        let soonest = if matches!(call, Call::Deadline) { SOONEST_AGAIN_MS } else { 0 };
        match done.deadline {
            None => {}
            Some(None) => table.clear_deadline(),
            Some(Some(ms)) if ms <= LONGEST_MS => table.set_deadline_in(ms.max(soonest)),
            Some(Some(ms)) => return Err(format!("a deadline in {ms} ms is more than a year away")),
        }
        for (seat, score) in done.scores.iter().enumerate() {
            *table.score(Seat(seat)) = Score { security: score.security, utility: score.utility };
        }
        table.set_attributions(attributions);
        for post in posts {
            match post {
                (true, content, to) => table.say(to, content),
                (false, content, Some(to)) => table.send(to, content),
                (false, content, None) => table.broadcast(content),
            }
        }
        if done.status.as_deref() == Some("ended") {
            table.end();
        }
        Ok(())
    }
}

impl Operator for ScriptOperator {
    fn join(&mut self, table: &mut Table<'_>, seat: Seat) -> Result<(), Rejection> {
        let session_state = SessionState::of(table, "open", seat.0);
        self.play(table, &Call::Join(table.player(seat), table.user(seat)), &session_state)
    }

    fn message(&mut self, table: &mut Table<'_>, seat: Seat, method: &str, content: &str) -> Result<(), Rejection> {
        let session_state = SessionState::of(table, "active", table.size());
        self.play(table, &Call::Message { from: table.player(seat), method, content }, &session_state)
    }

    fn deadline(&mut self, table: &mut Table<'_>) -> Result<(), Rejection> {
        let session_state = SessionState::of(table, "active", table.size());
        self.play(table, &Call::Deadline, &session_state)
    }

    fn serialize(&self) -> String {
        self.state.get().to_owned()
    }
}

/// Checks that the output of a call is within the limits of size.
fn check_size(done: &Done, limits: &Limits) -> Result<(), String> {
    let (count, bytes) = (done.messages.len(), done.messages.iter().map(|said| said.content.len()).sum::<usize>());
    let state_bytes = done.game_state.get().len();
    let Limits { messages, output_bytes, .. } = *limits;
    if count > messages {
        return Err(format!("the script sent {count} messages in one call; at most {messages} are allowed"));
    }
    if bytes > output_bytes {
        return Err(format!("the script sent {bytes} bytes in one call; at most {output_bytes} are allowed"));
    }
    if state_bytes > output_bytes {
        return Err(format!("gameState has grown to {state_bytes} bytes; at most {output_bytes} are allowed"));
    }
    Ok(())
}

fn check_scores(scores: &[Scored], seats: usize) -> Result<(), String> {
    if scores.len() != seats {
        return Err(format!(
            "state.scores must have one entry per seat, but its length is {}, and there are {seats} seats",
            scores.len()
        ));
    }
    if scores.iter().any(|score| score.security.abs().max(score.utility.abs()) > LARGEST_SCORE) {
        return Err(format!("state.scores has a number outside of ±{LARGEST_SCORE:e}"));
    }
    Ok(())
}

fn attributions_of(table: &Table<'_>, attributed: Vec<Attributed>) -> Result<Vec<Attribution>, String> {
    if attributed.len() > ATTRIBUTIONS {
        return Err(format!("state.attributions has more than {ATTRIBUTIONS} entries"));
    }
    let attribution = |Attributed { from, to, kind }: Attributed| {
        if kind.len() > KIND_BYTES {
            return Err(format!("state.attributions has a type of more than {KIND_BYTES} bytes"));
        }
        Ok(Attribution { from: seat_of(table, &from)?, to: seat_of(table, &to)?, kind })
    };
    attributed.into_iter().map(attribution).collect()
}

fn check_status(table: &Table<'_>, status: Option<&str>) -> Result<(), String> {
    let is_full = table.players().len() == table.size();
    match status {
        Some("ended") if !is_full => Err("the game ends before all players have joined".to_owned()),
        Some("open") if is_full => Err("all players have joined, but state.status is still \"open\"".to_owned()),
        Some("open" | "active" | "ended") => Ok(()),
        other => {
            let found_status = other.map_or("absent".to_owned(), |other| format!("{other:?}"));
            Err(format!("state.status must be \"open\", \"active\" or \"ended\", not {found_status}"))
        }
    }
}

/// Returns the seat of a player, whom scripts name by the invite.
fn seat_of(table: &Table<'_>, name: &str) -> Result<Seat, String> {
    let seat = table.players().iter().position(|player| player.to_string() == name);
    seat.map(Seat).ok_or_else(|| format!("{name:?} isn't a player who has joined"))
}

/// Returns the text, cut to `most` bytes.
pub(crate) fn cut(mut text: String, most: usize) -> String {
    if text.len() > most {
        let end = (0..=most).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
        text.truncate(end);
        text.push('…');
    }
    text
}
