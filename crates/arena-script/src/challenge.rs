//! Scripts as challenge types: the input of a script's call, and the validation of its output.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use arena_model::{
    Attribution, ChallengeMetadata, ChallengeOption, ChallengeType, EndedGame, InviteCode, Method, MethodForm,
    Operator, OptionsError, Rejection, RestoreError, Score, Script, Seat, Seed, SessionFacts, SessionId, Table,
    Timestamp, UserId,
};
use serde::{Deserialize, Serialize};
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Map, Value};

use crate::metadata::{self, ChallengeDescription};
use crate::wire::{Attributed, Done, Failure, OutgoingMessage, Reply, Scored};
use crate::{Folder, Problem, Sandbox, ScriptKind};

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

/// A failed call of a script: not a refusal, but an error that the author must fix.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    pub challenge: String,
    pub session: SessionId,
    /// The call: `create`, `join`, `message guess` or `deadline`.
    pub call: String,
    pub message: String,
    /// The call stack in the author's files, if known: one `at …` line per function.
    pub stack: String,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} failed on {}: {}", self.challenge, self.call, self.message)?;
        if self.stack.is_empty() { Ok(()) } else { write!(f, "\n{}", self.stack) }
    }
}

type Listener = dyn Fn(&Fault) + Send + Sync;

#[derive(Clone)]
pub struct ScriptChallenge {
    rules: Arc<Rules>,
    /// The script's options in new sessions.
    options: Map<String, Value>,
    /// The options that the creator of a session may choose, with this arena's values.
    choices: Vec<ChallengeOption>,
}

struct Rules {
    id: String,
    described: ChallengeDescription,
    script: Script,
    /// The API version, as in [`StoredScript::api`].
    api: u32,
    sandbox: Sandbox,
    listener: Box<Listener>,
}

/// The API version: it changes when calls or the modules that scripts import change their behavior. In version 1, all
/// contexts had the same private seed. Before version 3, a join passed the invite in place of the user id.
const API: u32 = 3;

/// The first version of the API with user ids.
const API_WITH_USERS: u32 = 3;

/// A script as stored. The script's version is the hash of this value, so sessions keep the API with which they began.
#[derive(Serialize, Deserialize)]
struct StoredScript {
    /// The value of [`API`] when the script was loaded. Scripts of version 1 were stored without this member.
    #[serde(default = "first_api", skip_serializing_if = "is_first_api")]
    api: u32,
    files: BTreeMap<String, String>,
}

fn first_api() -> u32 {
    1
}

fn is_first_api(api: &u32) -> bool {
    *api == first_api()
}

impl ScriptChallenge {
    /// Loads the challenge of a folder, and tests it by playing a session up to its start.
    ///
    /// # Errors
    /// All problems of the folder.
    pub fn load(folder: &Folder, sandbox: &Sandbox) -> Result<ScriptChallenge, Vec<Problem>> {
        let challenge = ScriptChallenge::read(folder, sandbox)?;
        challenge.test_start()?;
        Ok(challenge)
    }

    /// Loads the challenge of a folder without the test of [`ScriptChallenge::load`]. A challenge that can't be played
    /// with its default options needs [`ScriptChallenge::with_options`] before a test.
    ///
    /// # Errors
    /// All problems of the folder's files.
    pub fn read(folder: &Folder, sandbox: &Sandbox) -> Result<ScriptChallenge, Vec<Problem>> {
        let described = metadata::read(&folder.files);
        let code = folder.files.iter().filter(|(path, _)| !is_description(path));
        let used =
            sandbox.inspect(ScriptKind::Challenge, &code.map(|(path, text)| (path.clone(), text.clone())).collect());
        let (described, used) = match (described, used) {
            (Ok(described), Ok(used)) => (described, used),
            (described, used) => {
                let problems = described.err().into_iter().chain(used.err());
                return Err(problems.flatten().collect());
            }
        };
        let files: BTreeMap<String, String> = folder
            .files
            .iter()
            .filter(|(path, _)| is_description(path) || used.contains(path))
            .map(|(path, text)| (path.clone(), text.clone()))
            .collect();
        let source = serde_json::to_string(&StoredScript { api: API, files }).expect("texts are JSON");
        Ok(ScriptChallenge::of(&folder.id, described, Script::new(source), API, sandbox))
    }

    /// Restores the challenge with the name `id` from its stored `script`.
    ///
    /// # Errors
    /// If this program can't run the stored script, because another program or a version with other checks stored it.
    pub fn revive(id: &str, script: Script, sandbox: &Sandbox) -> Result<ScriptChallenge, Vec<Problem>> {
        let stored: StoredScript = serde_json::from_str(script.source())
            .map_err(|error| vec![Problem::of(id, format!("isn't a stored script: {error}"))])?;
        if !(1..=API).contains(&stored.api) {
            return Err(vec![Problem::of(
                id,
                format!("is a script for version {} of the API; this program has {API}", stored.api),
            )]);
        }
        let described = metadata::read(&stored.files)?;
        Ok(ScriptChallenge::of(id, described, script, stored.api, sandbox))
    }

    fn of(id: &str, described: ChallengeDescription, script: Script, api: u32, sandbox: &Sandbox) -> ScriptChallenge {
        let options = described.options.clone();
        let listener: Box<Listener> = Box::new(|fault| {
            let Fault { challenge, session, call, message, stack } = fault;
            tracing::warn!(%challenge, %session, %call, %stack, "challenge {challenge} failed on {call}: {message}");
        });
        let rules = Rules { id: id.to_owned(), described, script, api, sandbox: sandbox.clone(), listener };
        let choices = rules.described.overridable.clone();
        ScriptChallenge { rules: Arc::new(rules), options, choices }
    }

    /// Sets the options that the arena's owner chose. The script gets them unchanged, including options that
    /// `challenge.json` doesn't mention.
    ///
    /// # Errors
    /// If a value contradicts `challenge.json`.
    pub fn with_options(mut self, options: &Map<String, Value>) -> Result<ScriptChallenge, OptionsError> {
        self.options = self.arranged(options)?;
        for choice in &mut self.choices {
            choice.default = self.options[&*choice.name].clone();
        }
        Ok(self)
    }

    /// Returns an error message for the first option that `challenge.json` doesn't mention, if the file mentions any
    /// options.
    pub fn find_stray(&self, options: &Map<String, Value>) -> Option<String> {
        let known = &self.rules.described.options;
        let stray = options.keys().find(|name| !known.contains_key(*name)).filter(|_| !known.is_empty())?;
        Some(format!("unknown option `{stray}`; known options: {}", listed(known.keys())))
    }

    /// Returns all options, with the values in `options` replacing the defaults.
    fn arranged(&self, options: &Map<String, Value>) -> Result<Map<String, Value>, OptionsError> {
        let mut arranged = self.options.clone();
        for (name, value) in options {
            self.check(name, value)?;
            arranged.insert(name.clone(), value.clone());
        }
        Ok(arranged)
    }

    fn check(&self, name: &str, value: &Value) -> Result<(), OptionsError> {
        let Some(choice) = self.choices.iter().find(|choice| choice.name == name) else { return Ok(()) };
        metadata::check_option(choice, value)
            .map_err(|what| OptionsError(format!("option {name} of {} {what}", self.rules.id)))
    }

    /// Reports faults to `listener` instead of the log.
    pub fn with_listener(self, listener: impl Fn(&Fault) + Send + Sync + 'static) -> ScriptChallenge {
        let Rules { id, described, script, api, sandbox, .. } = &*self.rules;
        let rules = Rules {
            id: id.clone(),
            described: described.clone(),
            script: script.clone(),
            api: *api,
            sandbox: sandbox.clone(),
            listener: Box::new(listener),
        };
        ScriptChallenge { rules: Arc::new(rules), ..self.clone() }
    }

    /// Tests the challenge: seats all players in a session, and compares the script's behavior with `challenge.json`.
    ///
    /// # Errors
    /// The problems that the test found.
    pub fn test_start(&self) -> Result<(), Vec<Problem>> {
        let script = self.file();
        let id = |number: usize| format!("00000000-0000-7000-8000-{number:012}");
        let players = self.metadata().players;
        let invites = (1..=players).map(|number| format!("inv_{}", id(number)).parse().expect("an invite"));
        let facts = SessionFacts {
            seed: Some(Seed::from_number(0)),
            options: Value::Object(self.options.clone()),
            invites: invites.collect(),
            ..SessionFacts::bare(id(0).parse().expect("a session's id"), &self.rules.id, Timestamp(0))
        };
        let mut session = ScriptOperator::new(&self.rules, &facts);
        let mut session_state = SessionState::at_start(players);
        for joined in 0..=players {
            let call = match joined {
                0 => Call::Create,
                number => Call::Join(facts.invites[number - 1], None),
            };
            let asked = match joined {
                0 => "the test call of create".to_owned(),
                number => format!("the test call of join for player {number} of the {players} in challenge.json"),
            };
            let done = match session.ask(&call, &session_state, Timestamp(0), joined as u64) {
                Ok(done) => done,
                Err(CallError::Refused(rejection)) => {
                    let message = format!("{asked} is refused: {} ({})", rejection.message, rejection.code);
                    return Err(vec![Problem::of(&script, message)]);
                }
                Err(CallError::Failed(Failure { message, stack })) => {
                    let stack = if stack.is_empty() { String::new() } else { format!("\n{stack}") };
                    return Err(vec![Problem::of(&script, format!("{asked} fails: {message}{stack}"))]);
                }
            };
            if joined == players {
                return self.compare(&done).map_err(|message| vec![Problem::of(&script, message)]);
            }
            session_state = session_state.after(&done, joined);
        }
        Ok(())
    }

    fn compare(&self, done: &Done) -> Result<(), String> {
        let ChallengeMetadata { players, methods, .. } = self.metadata();
        if done.status.as_deref() == Some("open") {
            return Err(format!(
                "when all {players} players of challenge.json have joined, state.status is still \"open\": does the script expect more players?"
            ));
        }
        let Some(handles) = &done.handles else { return Ok(()) };
        if let Some(Method { name, .. }) = methods.iter().find(|method| !handles.contains(&method.name)) {
            return Err(format!(
                "challenge.json has the method `{name}`, but the script doesn't call handle(\"{name}\", …)"
            ));
        }
        match handles.iter().find(|name| !methods.iter().any(|method| method.name == **name)) {
            Some(name) => Err(format!(
                "the script handles `{name}`, but challenge.json has no such method, so players cannot call it"
            )),
            None => Ok(()),
        }
    }

    /// Returns the file for which problems of the whole script are reported.
    fn file(&self) -> String {
        if self.rules.files().contains_key("index.ts") { "index.ts".to_owned() } else { "index.js".to_owned() }
    }
}

/// Returns true for the files that describe the challenge to players.
fn is_description(path: &str) -> bool {
    path == metadata::FILE || path == metadata::PROMPT_FILE
}

impl Rules {
    /// Returns the script's files, without the description.
    fn files(&self) -> BTreeMap<String, String> {
        let stored: StoredScript = serde_json::from_str(self.script.source()).expect("it has been read before");
        let mut files = stored.files;
        files.retain(|path, _| !is_description(path));
        files
    }
}

impl ChallengeType for ScriptChallenge {
    fn id(&self) -> &str {
        &self.rules.id
    }

    fn metadata(&self) -> &ChallengeMetadata {
        &self.rules.described.metadata
    }

    fn options(&self) -> &[ChallengeOption] {
        &self.choices
    }

    fn arrange(&self, choices: &Map<String, Value>) -> Result<Value, OptionsError> {
        match self.find_stray(choices) {
            Some(stray) => Err(OptionsError(stray)),
            None => self.arranged(choices).map(Value::Object),
        }
    }

    fn resolve(&self, overrides: &Map<String, Value>) -> Result<Value, OptionsError> {
        if let Some(name) = overrides.keys().find(|name| self.choices.iter().all(|choice| choice.name != name.as_str()))
        {
            let (id, allowed) = (&self.rules.id, listed(self.choices.iter().map(|choice| &choice.name)));
            return Err(OptionsError(format!("option {name} cannot be set for a session of {id}; allowed: {allowed}")));
        }
        self.arrange(overrides)
    }

    fn rules_version(&self) -> u32 {
        self.rules.api
    }

    fn with_rules(&self, version: u32) -> Option<Arc<dyn ChallengeType>> {
        let stored: StoredScript = serde_json::from_str(self.rules.script.source()).ok()?;
        let source = serde_json::to_string(&StoredScript { api: version, ..stored }).expect("texts are JSON");
        let other = ScriptChallenge::revive(&self.rules.id, Script::new(source), &self.rules.sandbox).ok()?;
        Some(Arc::new(ScriptChallenge { options: self.options.clone(), choices: self.choices.clone(), ..other }))
    }

    fn script(&self) -> Option<&Script> {
        Some(&self.rules.script)
    }

    fn sees_users(&self) -> bool {
        self.rules.api >= API_WITH_USERS
    }

    fn is_slow(&self) -> bool {
        true
    }

    fn forms(&self) -> &[MethodForm] {
        &self.rules.described.ui.forms
    }

    fn tell(&self, ended: &EndedGame<'_>) -> String {
        self.rules.described.ui.tell(ended).unwrap_or_else(|| ended.tell_scores())
    }

    fn create(&self, facts: &SessionFacts) -> Result<Box<dyn Operator>, Rejection> {
        let mut operator = ScriptOperator::new(&self.rules, facts);
        let session_state = SessionState::at_start(facts.invites.len());
        operator.run(&Call::Create, &session_state, facts.created_at, 0)?;
        Ok(Box::new(operator))
    }

    fn create_lasting(&self, facts: &SessionFacts) -> Result<Box<dyn Operator>, Rejection> {
        let mut operator = ScriptOperator { lasting: Some(Vec::new()), ..ScriptOperator::new(&self.rules, facts) };
        operator.run(&Call::Create, &SessionState::at_start(facts.invites.len()), facts.created_at, 0)?;
        Ok(Box::new(operator))
    }

    fn restore(&self, facts: &SessionFacts, state: &str) -> Result<Box<dyn Operator>, RestoreError> {
        let state = RawValue::from_string(state.to_owned())
            .map_err(|source| RestoreError { challenge: self.rules.id.clone(), source })?;
        Ok(Box::new(ScriptOperator { state, ..ScriptOperator::new(&self.rules, facts) }))
    }
}

fn listed<T: AsRef<str>>(names: impl IntoIterator<Item = T>) -> String {
    let names: Vec<String> = names.into_iter().map(|name| name.as_ref().to_owned()).collect();
    if names.is_empty() { "none".to_owned() } else { names.join(", ") }
}

struct ScriptOperator {
    rules: Arc<Rules>,
    session: SessionId,
    created_at: Timestamp,
    invites: Vec<InviteCode>,
    options: Value,
    seed: Seed,
    state: Box<RawValue>,
    /// The inputs of all calls so far, if the session's calls must share one world.
    lasting: Option<Vec<Box<RawValue>>>,
}

enum Call<'c> {
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
struct SessionState {
    status: &'static str,
    scores: Vec<Scored>,
    players: Vec<String>,
    attributions: Vec<Attributed>,
}

impl SessionState {
    fn at_start(seats: usize) -> SessionState {
        let nothing = Scored { security: 0.0, utility: 0.0 };
        SessionState { status: "open", scores: vec![nothing; seats], players: Vec::new(), attributions: Vec::new() }
    }

    fn after(self, done: &Done, joined: usize) -> SessionState {
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
enum CallError {
    Refused(Rejection),
    Failed(Failure),
}

impl ScriptOperator {
    fn new(rules: &Arc<Rules>, facts: &SessionFacts) -> ScriptOperator {
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
    fn ask(
        &mut self,
        call: &Call<'_>,
        session_state: &SessionState,
        now: Timestamp,
        transition: u64,
    ) -> Result<Done, CallError> {
        let failed = |message: String| CallError::Failed(Failure { message, ..Failure::default() });
        let mut rng = self.seed.rng(&format!("script/random/{transition}"));
        let hidden = || "inv_hidden".to_owned();
        let mut invites: Vec<String> = session_state.players.clone();
        invites.resize_with(self.invites.len(), hidden);
        let (kind, invite, message) = match call {
            Call::Create => ("create", None, None),
            Call::Join(invite, _) => ("join", Some(invite.to_string()), None),
            Call::Deadline => ("deadline", None, None),
            Call::Message { from, method, content } => {
                let message = InputMessage {
                    channel: format!("challenge_{}", self.session),
                    from: from.to_string(),
                    to: "operator",
                    content,
                    method,
                    timestamp: now.0,
                };
                ("message", None, Some(message))
            }
        };
        let user_id = match call {
            Call::Join(_, Some(user)) if self.rules.api >= API_WITH_USERS => Some(user.as_str()),
            _ => None,
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
                name: if self.rules.api < API_WITH_USERS {
                    &self.rules.id
                } else {
                    &self.rules.described.metadata.name
                },
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
        let input = to_raw_value(&input).expect("numbers, texts and JSON are JSON");
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
            Reply::Counted(_) => return Err(failed("invalid answer: a strategy's".to_owned())),
        };
        let limits = rules.sandbox.limits();
        let (count, bytes) = (done.messages.len(), done.messages.iter().map(|said| said.content.len()).sum::<usize>());
        if count > limits.messages {
            return Err(failed(format!(
                "the script sent {count} messages in one call; at most {} are allowed",
                limits.messages
            )));
        }
        if bytes > limits.output_bytes {
            return Err(failed(format!(
                "the script sent {bytes} bytes in one call; at most {} are allowed",
                limits.output_bytes
            )));
        }
        let bytes = done.game_state.get().len();
        if bytes > limits.output_bytes {
            return Err(failed(format!(
                "gameState has grown to {bytes} bytes; at most {} are allowed",
                limits.output_bytes
            )));
        }
        for line in done.log.drain(..) {
            tracing::debug!(challenge = %rules.id, session = %self.session, "challenge {} says: {line}", rules.id);
        }
        self.lasting = lasting;
        self.state = std::mem::replace(&mut done.game_state, to_raw_value(&()).expect("null is JSON"));
        Ok(done)
    }

    /// Calls the script like [`ScriptOperator::ask`], and reports faults.
    fn run(
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
        self.put(table, call, done).map_err(|message| self.fail(call, Failure { message, ..Failure::default() }))
    }

    /// Applies a script's output to the table, or returns an error for invalid output.
    fn put(&self, table: &mut Table<'_>, call: &Call<'_>, done: Done) -> Result<(), String> {
        let seat_of = |name: &str| {
            let seat = table.players().iter().position(|player| player.to_string() == name);
            seat.map(Seat).ok_or_else(|| format!("{name:?} isn't a player who has joined"))
        };
        if done.scores.len() != table.size() {
            return Err(format!(
                "state.scores must have one entry per seat, but its length is {}, and there are {} seats",
                done.scores.len(),
                table.size()
            ));
        }
        if done.scores.iter().any(|score| score.security.abs().max(score.utility.abs()) > LARGEST_SCORE) {
            return Err(format!("state.scores has a number outside of ±{LARGEST_SCORE:e}"));
        }
        if done.attributions.len() > ATTRIBUTIONS {
            return Err(format!("state.attributions has more than {ATTRIBUTIONS} entries"));
        }
        let mut attributions = Vec::with_capacity(done.attributions.len());
        for Attributed { from, to, kind } in done.attributions {
            if kind.len() > KIND_BYTES {
                return Err(format!("state.attributions has a type of more than {KIND_BYTES} bytes"));
            }
            attributions.push(Attribution { from: seat_of(&from)?, to: seat_of(&to)?, kind });
        }
        let is_full = table.players().len() == table.size();
        match done.status.as_deref() {
            Some("ended") if !is_full => return Err("the game ends before all players have joined".to_owned()),
            Some("open") if is_full => {
                return Err("all players have joined, but state.status is still \"open\"".to_owned());
            }
            Some("open" | "active" | "ended") => {}
            other => {
                let found_status = other.map_or("absent".to_owned(), |other| format!("{other:?}"));
                return Err(format!("state.status must be \"open\", \"active\" or \"ended\", not {found_status}"));
            }
        }
        let mut posts = Vec::with_capacity(done.messages.len());
        for OutgoingMessage { channel, content, to } in done.messages {
            posts.push((channel == "chat", content, to.as_deref().map(seat_of).transpose()?));
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

/// Returns the text, cut to `most` bytes.
pub(crate) fn cut(mut text: String, most: usize) -> String {
    if text.len() > most {
        let end = (0..=most).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
        text.truncate(end);
        text.push('…');
    }
    text
}
