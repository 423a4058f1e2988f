//! Challenge types: the challenges of an arena, with their options and descriptions.

use std::borrow::Cow;
use std::marker::PhantomData;
use std::ops::RangeInclusive;
use std::sync::Arc;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Number, Value};
use utoipa::ToSchema;

use crate::script::Script;
use crate::{EndedGame, MethodForm, Operator, Rejection, Said, Scene, Secret, Seed, SessionFacts};

/// The description of a challenge type, with the field names of the HTTP API.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ChallengeMetadata {
    /// Display name.
    pub name: String,
    /// A description in one sentence.
    pub description: String,
    /// The number of seats.
    pub players: usize,
    /// The full instructions for an agent that plays.
    pub prompt: String,
    /// The actions of a player.
    pub methods: Vec<Method>,
    /// The color of the challenge's card, such as `green`; clients map the name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub color: Option<String>,
    /// The icon of the challenge's card, such as `dollar`; clients map the name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub icon: Option<String>,
    /// The authors of the challenge.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub authors: Option<Vec<Author>>,
    /// Tags for searching.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tags: Option<Vec<String>>,
    /// The address of a page about the challenge.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
}

/// The description of a challenge type for players and for creators of sessions: `ChallengeInfo` on the wire.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ChallengeInfo<'c> {
    /// The challenge's metadata, for people and agents.
    #[serde(flatten)]
    #[schema(value_type = ChallengeMetadata)]
    pub metadata: Cow<'c, ChallengeMetadata>,
    /// The options that the creator of a session may choose.
    // Other arenas have none.
    #[serde(default)]
    #[schema(value_type = [ChallengeOption], required = true)]
    pub options: Cow<'c, [ChallengeOption]>,
}

impl<'c> ChallengeInfo<'c> {
    /// Returns the description of a challenge type with the arena's options.
    pub fn of_type(challenge: &'c dyn ChallengeType) -> ChallengeInfo<'c> {
        let metadata = Cow::Borrowed(challenge.metadata());
        ChallengeInfo { metadata, options: Cow::Borrowed(challenge.options()) }
    }

    /// Returns the description of a challenge type for a session with these options.
    pub fn of_session(challenge: &'c dyn ChallengeType, options: &Value) -> ChallengeInfo<'c> {
        let mut choices = Cow::Borrowed(challenge.options());
        for (at, choice) in challenge.options().iter().enumerate() {
            if let Some(value) = options.get(&*choice.name).filter(|value| **value != choice.default) {
                choices.to_mut()[at].default = value.clone();
            }
        }
        ChallengeInfo { metadata: challenge.metadata_with(options), options: choices }
    }
}

/// An action of a challenge's players.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Method {
    /// The method's name: `messageType` on the wire.
    pub name: String,
    /// The method's effect and the form of its content.
    pub description: String,
}

/// An option that the creator of a session may choose.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ChallengeOption {
    /// The option's name: a key of `options`.
    pub name: Cow<'static, str>,
    /// The option's purpose.
    pub description: Cow<'static, str>,
    /// The type of a value, as in JSON Schema: `integer`, `number`, `string` or `array`. Options of scripts can also be
    /// `boolean`, `object`, or `null` if any value is allowed.
    #[serde(rename = "type")]
    #[schema(rename = "type")]
    pub kind: Cow<'static, str>,
    /// The value if the creator of the session chooses none. In the description of a session: the session's value.
    pub default: Value,
    /// The least value, if it doesn't depend on other options. For an array, the least value of each item.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<f64>)]
    pub minimum: Option<Number>,
    /// The greatest value, if it doesn't depend on other options. For an array, the greatest value of each item.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<f64>)]
    pub maximum: Option<Number>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Setting {
    pub name: &'static str,
    /// The option's purpose, in one sentence.
    pub about: &'static str,
    /// The type and bounds of the option's value.
    pub range: SettingRange,
}

/// The type and bounds of an option's value.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum SettingRange {
    /// An integer within these bounds.
    Whole(i64, i64),
    /// A number within these bounds.
    Real(f64, f64),
    Text,
    /// A list of integers, each within these bounds.
    Wholes(i64, i64),
}

impl Setting {
    pub const fn new(name: &'static str, range: SettingRange, about: &'static str) -> Setting {
        Setting { name, about, range }
    }

    fn describe(&self, default: Value) -> ChallengeOption {
        let Setting { name, about: description, range } = *self;
        let real = |number: f64| match number.fract() == 0.0 {
            true => Some(Number::from(number as i64)),
            false => Number::from_f64(number),
        };
        let (kind, minimum, maximum) = match range {
            SettingRange::Whole(least, most) => ("integer", Some(least.into()), Some(most.into())),
            SettingRange::Real(least, most) => ("number", real(least), real(most)),
            SettingRange::Text => ("string", None, None),
            SettingRange::Wholes(least, most) => ("array", Some(least.into()), Some(most.into())),
        };
        ChallengeOption {
            name: name.into(),
            description: description.into(),
            kind: kind.into(),
            default,
            minimum,
            maximum,
        }
    }
}

/// An author of a challenge.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Author {
    /// The author's name.
    pub name: String,
    /// The author's home page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
}

/// The error for options with which a challenge can't be played. The text names the option.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct OptionsError(pub String);

/// Parses options. The error names the option that can't be parsed.
pub(crate) fn parse_options<O: DeserializeOwned>(options: &Value) -> Result<O, String> {
    O::deserialize(options).map_err(|error| {
        // The parser's error doesn't name the option, so each option is parsed alone.
        let alone = |(name, value): (&String, &Value)| {
            let option = Value::Object(Map::from_iter([(name.clone(), value.clone())]));
            let error = O::deserialize(&option).err()?;
            Some(format!("option `{name}`: {}", in_words(&error.to_string())))
        };
        let named = options.as_object().into_iter().flatten().find_map(alone);
        named.unwrap_or_else(|| in_words(&error.to_string()))
    })
}

/// Replaces the name of a Rust number type in a parser's message by words.
fn in_words(message: &str) -> String {
    let Some((start, expected)) = message.rsplit_once(", expected ") else { return message.to_owned() };
    let words = match expected {
        "u8" | "u16" | "u32" | "u64" | "usize" => "a whole number of at least 0",
        "i64" => "a whole number",
        "f64" => "a number",
        other => other,
    };
    format!("{start}, expected {words}")
}

/// The error for a stored state that the rules can't read: the store was edited by hand or written by a newer program.
#[derive(Debug, thiserror::Error)]
#[error("cannot read the stored state of a {challenge} session")]
pub struct RestoreError {
    pub challenge: String,
    #[source]
    pub source: serde_json::Error,
}

/// A kind of game that an arena offers, with this arena's options.
pub trait ChallengeType: Send + Sync {
    /// Returns the identifier, such as `psi`.
    fn id(&self) -> &str;

    /// Returns the challenge's description.
    fn metadata(&self) -> &ChallengeMetadata;

    /// Returns the description for a session with these options, which come from [`ChallengeType::resolve`].
    fn metadata_with(&self, options: &Value) -> Cow<'_, ChallengeMetadata> {
        let mut metadata = Cow::Borrowed(self.metadata());
        let players = self.seats(options);
        if players != metadata.players {
            metadata.to_mut().players = players;
        }
        metadata
    }

    /// Returns the options that the creator of a session may choose, with this arena's values.
    fn options(&self) -> &[ChallengeOption] {
        &[]
    }

    /// Returns the options of a match that the match runner plays without a server. The organizer of a match may set
    /// more options than a client that creates a session.
    ///
    /// # Errors
    /// If one of `choices` isn't an option, or the challenge can't be played with it.
    fn arrange(&self, choices: &Map<String, Value>) -> Result<Value, OptionsError> {
        self.resolve(choices)
    }

    /// Returns the options of a new session: the arena's options with the creator's `overrides`.
    ///
    /// # Errors
    /// If an override is unknown, not allowed, or makes the game impossible.
    fn resolve(&self, overrides: &Map<String, Value>) -> Result<Value, OptionsError>;

    /// Returns the number of seats of a session with these options, which come from [`ChallengeType::resolve`].
    fn seats(&self, _options: &Value) -> usize {
        self.metadata().players
    }

    /// Returns the version of the rules, from 1: [`Rules::RULES_VERSION`]. For scripts, [`ChallengeType::script`] is
    /// the version.
    fn rules_version(&self) -> u32 {
        1
    }

    /// Returns this challenge with another version of its rules, or `None` if the program doesn't have that version.
    /// Only [`ChallengeType::create`] needs it: the state of a running session contains its version.
    fn with_rules(&self, _version: u32) -> Option<Arc<dyn ChallengeType>> {
        None
    }

    /// Returns the script, or `None` for a built-in challenge.
    fn script(&self) -> Option<&Script> {
        None
    }

    /// Returns true if the rules get the players' user ids, so that a game can be played again with these ids only.
    fn sees_users(&self) -> bool {
        false
    }

    /// Returns true if a transition may take milliseconds rather than microseconds, so that other tasks shouldn't wait
    /// for it.
    fn is_slow(&self) -> bool {
        false
    }

    /// Creates the rules of a new session. The options come from [`ChallengeType::resolve`]. Equal seeds give equal
    /// deals.
    ///
    /// # Errors
    /// A [`Rejection`] if the rules fail, which is possible for scripts.
    fn create(&self, facts: &SessionFacts) -> Result<Box<dyn Operator>, Rejection>;

    /// Creates the rules of a new session as an operator that stays in memory and is never restored. The checks of
    /// `arena-check` compare this operator with one that is restored before each call.
    ///
    /// # Errors
    /// The same as for [`ChallengeType::create`].
    fn create_lasting(&self, facts: &SessionFacts) -> Result<Box<dyn Operator>, Rejection> {
        self.create(facts)
    }

    /// Restores rules from the output of [`Operator::serialize`].
    ///
    /// # Errors
    /// If `state` isn't an output of [`Operator::serialize`] for this challenge.
    fn restore(&self, facts: &SessionFacts, state: &str) -> Result<Box<dyn Operator>, RestoreError>;

    /// Returns the forms of methods for people, if the challenge declares any. Pages have a text box for other methods.
    fn forms(&self) -> &[MethodForm] {
        &[]
    }

    /// Returns the result of an ended session as a sentence.
    fn tell(&self, ended: &EndedGame<'_>) -> String {
        ended.tell_scores()
    }

    /// Returns a remark for each of these messages of an ended session, if it contained a secret of a player that
    /// another player learned according to the attributions.
    fn remark(&self, _ended: &EndedGame<'_>, said: &[Said<'_>]) -> Vec<Option<String>> {
        vec![None; said.len()]
    }

    /// Draws a session as SVG, in the colors of the page's style sheet. `None` if there is nothing to draw; pages then
    /// show the picture of the challenge type.
    fn draw(&self, _scene: &Scene<'_>) -> Option<String> {
        None
    }

    /// Returns the secrets of an ended session by seat. Empty for challenges without secrets.
    fn disclose(&self, _ended: &EndedGame<'_>) -> Vec<Secret> {
        Vec::new()
    }
}

/// The rules of a built-in challenge; [`Builtin`] makes a [`ChallengeType`] from them.
pub trait Rules: Operator + Serialize + DeserializeOwned + Sized + 'static {
    /// The identifier, such as `psi`.
    const ID: &'static str;

    /// A description in one sentence.
    const DESCRIPTION: &'static str;

    /// The allowed numbers of players.
    const SEATS: RangeInclusive<usize>;

    /// The version of the rules, from 1. A change that can alter a deal, a score or an end must raise it, because
    /// sessions of different versions count on different boards.
    const RULES_VERSION: u32 = 1;

    /// The oldest version of the rules that the program still plays.
    const OLDEST_RULES: u32 = Self::RULES_VERSION;

    /// The version of the rules in matches. All agents of a match join at once, so a change of the messages before the
    /// start of a game need not raise it.
    const MATCH_VERSION: u32 = Self::RULES_VERSION;

    /// The options that the creator of a session may choose. Only the arena's configuration sets the other options.
    const OVERRIDABLE: &'static [Setting];

    /// The options with their defaults. Deserialization should deny unknown fields.
    type Options: Default + Serialize + DeserializeOwned + Send + Sync;

    /// Returns an error if the game can't be played with these options.
    ///
    /// # Errors
    /// The text names the option and the problem.
    fn check(options: &Self::Options) -> Result<(), OptionsError>;

    /// Returns the challenge's description with these options.
    fn metadata(options: &Self::Options) -> ChallengeMetadata;

    /// Returns the values of all options by name, defaults included.
    fn values(options: &Self::Options) -> Map<String, Value> {
        match serde_json::to_value(options) {
            Ok(Value::Object(values)) => values,
            other => unreachable!("options are a JSON object: {other:?}"),
        }
    }

    /// Deals a new game. The options have been checked.
    fn deal(options: &Self::Options, seed: &Seed) -> Self;

    /// Changes a new game to a version from [`Rules::OLDEST_RULES`] to [`Rules::RULES_VERSION`].
    fn set_version(&mut self, _version: u32) {}

    /// Returns the result of an ended session as a sentence. `rules` has the final state, if the session has kept it.
    fn tell(ended: &EndedGame<'_>, _rules: Option<&Self>) -> String {
        ended.tell_scores()
    }

    /// Returns a remark on a message of an ended session, if it contained a secret of a player that another player
    /// learned according to the attributions.
    fn remark(&self, _ended: &EndedGame<'_>, _said: &Said<'_>) -> Option<String> {
        None
    }

    /// Draws a session as SVG. `rules` has the final state, if the session has ended and kept it. The picture has no
    /// ids and no inline styles, and escapes the players' names.
    fn draw(_scene: &Scene<'_>, _rules: Option<&Self>) -> Option<String> {
        None
    }

    /// Returns the secrets of an ended session by seat.
    fn disclose(&self, _ended: &EndedGame<'_>) -> Vec<Secret> {
        Vec::new()
    }
}

/// The [`ChallengeType`] of a built-in challenge with the rules `R`.
pub struct Builtin<R: Rules> {
    options: Map<String, Value>,
    choices: Vec<ChallengeOption>,
    metadata: ChallengeMetadata,
    version: u32,
    rules: PhantomData<fn() -> R>,
}

impl<R: Rules> Builtin<R> {
    /// Creates the challenge type with an arena's options. Each missing option has its default.
    ///
    /// # Errors
    /// If an option is unknown, has the wrong type, or makes the game impossible.
    pub fn new(options: &Map<String, Value>) -> Result<Self, OptionsError> {
        let options = Self::parse(&Value::Object(options.clone()))?;
        let metadata = R::metadata(&options);
        let values = R::values(&options);
        let value = |name: &str| values.get(name).cloned().unwrap_or_default();
        let choices = R::OVERRIDABLE.iter().map(|setting| setting.describe(value(setting.name))).collect();
        match serde_json::to_value(&options) {
            Ok(Value::Object(options)) => {
                Ok(Builtin { options, choices, metadata, version: R::RULES_VERSION, rules: PhantomData })
            }
            _ => Err(OptionsError(format!("the options of {} aren't a JSON object", R::ID))),
        }
    }

    fn parse(options: &Value) -> Result<R::Options, OptionsError> {
        let options = parse_options(options).map_err(OptionsError)?;
        R::check(&options)?;
        Ok(options)
    }
}

impl<R: Rules> ChallengeType for Builtin<R> {
    fn id(&self) -> &str {
        R::ID
    }

    fn metadata(&self) -> &ChallengeMetadata {
        &self.metadata
    }

    fn metadata_with(&self, options: &Value) -> Cow<'_, ChallengeMetadata> {
        if options.as_object() == Some(&self.options) {
            return Cow::Borrowed(&self.metadata);
        }
        // A session of an older arena may have options that no longer exist.
        Self::parse(options).map_or(Cow::Borrowed(&self.metadata), |options| Cow::Owned(R::metadata(&options)))
    }

    fn options(&self) -> &[ChallengeOption] {
        &self.choices
    }

    fn rules_version(&self) -> u32 {
        self.version
    }

    fn with_rules(&self, version: u32) -> Option<Arc<dyn ChallengeType>> {
        let is_known = (R::OLDEST_RULES..=R::RULES_VERSION).contains(&version);
        let same = is_known.then(|| Self::new(&self.options).expect("the options were checked"));
        same.map(|same| Arc::new(Builtin { version, ..same }) as Arc<dyn ChallengeType>)
    }

    fn resolve(&self, overrides: &Map<String, Value>) -> Result<Value, OptionsError> {
        let mut options = self.options.clone();
        for (name, value) in overrides {
            if !R::OVERRIDABLE.iter().any(|setting| setting.name == name) {
                let names: Vec<&str> = R::OVERRIDABLE.iter().map(|setting| setting.name).collect();
                let allowed = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
                return Err(OptionsError(format!(
                    "option {name} cannot be set for a session of {}; allowed: {allowed}",
                    R::ID
                )));
            }
            options.insert(name.clone(), value.clone());
        }
        let options = Value::Object(options);
        if !overrides.is_empty() {
            Self::parse(&options)?;
        }
        // The arena's configuration may exceed the published bounds. Clients may not, because any client can create
        // sessions.
        for setting in R::OVERRIDABLE {
            let (Some(value), SettingRange::Whole(least, most)) = (overrides.get(setting.name), setting.range) else {
                continue;
            };
            let hosted = self.options.get(setting.name).and_then(Value::as_i64).unwrap_or(most);
            if value.as_i64().is_none_or(|value| value > most.max(hosted)) {
                let name = setting.name;
                return Err(OptionsError(format!(
                    "{name} must be {least} to {} for a session, not {value}",
                    most.max(hosted)
                )));
            }
        }
        Ok(options)
    }

    fn seats(&self, options: &Value) -> usize {
        match R::OVERRIDABLE.iter().any(|setting| setting.name == "players") {
            true => R::metadata(&R::Options::deserialize(options).expect("resolve() made these options")).players,
            false => self.metadata.players,
        }
    }

    fn create(&self, facts: &SessionFacts) -> Result<Box<dyn Operator>, Rejection> {
        let options = R::Options::deserialize(&facts.options).expect("resolve() made these options");
        let mut rules = R::deal(&options, facts.dealt_from());
        rules.set_version(self.version);
        Ok(Box::new(rules))
    }

    fn restore(&self, _facts: &SessionFacts, state: &str) -> Result<Box<dyn Operator>, RestoreError> {
        let rules: R =
            serde_json::from_str(state).map_err(|source| RestoreError { challenge: R::ID.to_owned(), source })?;
        Ok(Box::new(rules))
    }

    fn tell(&self, ended: &EndedGame<'_>) -> String {
        R::tell(ended, serde_json::from_str(ended.state).ok().as_ref())
    }

    fn remark(&self, ended: &EndedGame<'_>, said: &[Said<'_>]) -> Vec<Option<String>> {
        let rules: Option<R> = serde_json::from_str(ended.state).ok().filter(|_| !ended.attributions.is_empty());
        said.iter().map(|said| rules.as_ref()?.remark(ended, said)).collect()
    }

    fn draw(&self, scene: &Scene<'_>) -> Option<String> {
        let rules: Option<R> = scene.ended.and_then(|ended| serde_json::from_str(ended.state).ok());
        R::draw(scene, rules.as_ref())
    }

    fn disclose(&self, ended: &EndedGame<'_>) -> Vec<Secret> {
        let rules: Option<R> = serde_json::from_str(ended.state).ok();
        rules.map_or_else(Vec::new, |rules| rules.disclose(ended))
    }
}
