//! Scripts as challenge types: loading, options, and the test of a new script.

mod operator;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use arena_model::{
    ChallengeMetadata, ChallengeOption, ChallengeType, EndedGame, Method, MethodForm, Operator, OptionsError,
    Rejection, RestoreError, Script, Seed, SessionFacts, SessionId, Timestamp,
};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use crate::metadata::{self, ChallengeDescription};
use crate::wire::{Done, Failure};
use crate::{Folder, Problem, Sandbox, ScriptKind, both};

pub(crate) use operator::cut;
use operator::{Call, CallError, ScriptOperator, SessionState};

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
        let (described, used) = both(described, used)?;
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

    fn create_with(
        &self,
        facts: &SessionFacts,
        lasting: Option<Vec<Box<RawValue>>>,
    ) -> Result<Box<dyn Operator>, Rejection> {
        let mut operator = ScriptOperator::new(&self.rules, facts);
        operator.lasting = lasting;
        operator.run(&Call::Create, &SessionState::at_start(facts.invites.len()), facts.created_at, 0)?;
        Ok(Box::new(operator))
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
        self.create_with(facts, None)
    }

    fn create_lasting(&self, facts: &SessionFacts) -> Result<Box<dyn Operator>, Rejection> {
        self.create_with(facts, Some(Vec::new()))
    }

    fn restore(&self, facts: &SessionFacts, state: &str) -> Result<Box<dyn Operator>, RestoreError> {
        let state = RawValue::from_string(state.to_owned())
            .map_err(|source| RestoreError { challenge: self.rules.id.clone(), source })?;
        let mut operator = ScriptOperator::new(&self.rules, facts);
        operator.state = state;
        Ok(Box::new(operator))
    }
}

fn listed<T: AsRef<str>>(names: impl IntoIterator<Item = T>) -> String {
    let names: Vec<String> = names.into_iter().map(|name| name.as_ref().to_owned()).collect();
    if names.is_empty() { "none".to_owned() } else { names.join(", ") }
}
