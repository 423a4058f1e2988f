//! Challenge types: what can be played, with which options, described how.

use std::borrow::Cow;
use std::marker::PhantomData;
use std::ops::RangeInclusive;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Number, Value};
use utoipa::ToSchema;

use crate::script::Script;
use crate::{Operator, Rejection, Seed, SessionFacts};

/// What is told about a challenge type, in the words of the wire.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ChallengeMetadata {
    /// Display name.
    pub name: String,
    /// One sentence.
    pub description: String,
    /// Number of seats.
    pub players: usize,
    /// All that an agent needs to know to play.
    pub prompt: String,
    /// The actions that players have.
    pub methods: Vec<Method>,
    /// The name of its card's color, such as `green`; clients map it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub color: Option<String>,
    /// The name of its card's icon, such as `dollar`; clients map it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub icon: Option<String>,
    /// Who made it up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub authors: Option<Vec<Author>>,
    /// Words to find it by.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tags: Option<Vec<String>>,
    /// Where more is to be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
}

/// A challenge type as players and creators of sessions are told of it: the `ChallengeInfo` of the wire.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct ChallengeInfo<'c> {
    /// Its rules, for people and agents.
    #[serde(flatten)]
    #[schema(value_type = ChallengeMetadata)]
    pub metadata: Cow<'c, ChallengeMetadata>,
    /// The options that the creator of a session may choose.
    #[schema(value_type = [ChallengeOption])]
    pub options: Cow<'c, [ChallengeOption]>,
}

impl<'c> ChallengeInfo<'c> {
    /// The challenge type with the arena's options.
    pub fn of_type(challenge: &'c dyn ChallengeType) -> ChallengeInfo<'c> {
        let metadata = Cow::Borrowed(challenge.metadata());
        ChallengeInfo { metadata, options: Cow::Borrowed(challenge.options()) }
    }

    /// The challenge type as a session with these options plays it.
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

/// An action that players of a challenge have.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Method {
    /// Its name: the `messageType` of the wire.
    pub name: String,
    /// What it does and what its content looks like.
    pub description: String,
}

/// An option of a session that whoever creates it may choose.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct ChallengeOption {
    /// Its name: a key of `options`.
    pub name: Cow<'static, str>,
    /// What it is for.
    pub description: Cow<'static, str>,
    /// What a value has to be, in the words of JSON Schema: `integer`, `number`, `string` or `array`; of a script also `boolean`, `object`
    /// or, if it may be anything, `null`.
    #[serde(rename = "type")]
    #[schema(rename = "type")]
    pub kind: &'static str,
    /// Its value unless the creator of the session chooses another; in what is told of a session, its value there.
    pub default: Value,
    /// The least value, where there is one that doesn't depend on other options; of an array, each item's.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<f64>)]
    pub minimum: Option<Number>,
    /// The greatest value, likewise.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<f64>)]
    pub maximum: Option<Number>,
}

/// What rules say of an option that may be chosen.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Setting {
    /// Its name.
    pub name: &'static str,
    /// What it is for, in a sentence.
    pub about: &'static str,
    /// What it can be.
    pub range: SettingRange,
}

/// What the value of an option can be.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum SettingRange {
    /// A whole number, within these bounds.
    Whole(i64, i64),
    /// A number, within these bounds.
    Real(f64, f64),
    /// A text.
    Text,
    /// A list of whole numbers, each within these bounds.
    Wholes(i64, i64),
}

impl Setting {
    /// An option, with what it is for.
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
        ChallengeOption { name: name.into(), description: description.into(), kind, default, minimum, maximum }
    }
}

/// Somebody to be credited with a challenge.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Author {
    /// Name.
    pub name: String,
    /// Home page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
}

/// Options that a challenge can't be played with. The text names the option.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct OptionsError(pub String);

/// A stored state that the rules can't read: the store was changed by hand, or by a newer program.
#[derive(Debug, thiserror::Error)]
#[error("the state of a {challenge} session can't be read")]
pub struct RestoreError {
    /// The challenge type.
    pub challenge: String,
    /// What was wrong with it.
    #[source]
    pub source: serde_json::Error,
}

/// A kind of game that an arena hosts, with the options that this arena gave it.
pub trait ChallengeType: Send + Sync {
    /// Its identifier, such as `psi`.
    fn id(&self) -> &str;

    /// What is told about it.
    fn metadata(&self) -> &ChallengeMetadata;

    /// The description of a session with these options, which come from [`ChallengeType::resolve`].
    fn metadata_with(&self, options: &Value) -> Cow<'_, ChallengeMetadata> {
        let mut metadata = Cow::Borrowed(self.metadata());
        let players = self.seats(options);
        if players != metadata.players {
            metadata.to_mut().players = players;
        }
        metadata
    }

    /// The options that whoever creates a session may choose, with what they are here.
    fn options(&self) -> &[ChallengeOption] {
        &[]
    }

    /// The options of a game by whoever runs it, who may choose more of them than the guests of an arena.
    ///
    /// # Errors
    /// If one of `choices` isn't an option, or can't be played with.
    fn arrange(&self, choices: &Map<String, Value>) -> Result<Value, OptionsError> {
        self.resolve(choices)
    }

    /// The options of a new session: the arena's, with `overrides` of whoever creates it.
    ///
    /// # Errors
    /// If an override is unknown, not to be overridden, or makes the game impossible.
    fn resolve(&self, overrides: &Map<String, Value>) -> Result<Value, OptionsError>;

    /// How many seats a session with these options has, which come from [`ChallengeType::resolve`].
    fn seats(&self, _options: &Value) -> usize {
        self.metadata().players
    }

    /// The version of the rules, from 1: [`Rules::RULES_VERSION`]. A script's rules are told apart by
    /// [`ChallengeType::script`] instead.
    fn rules_version(&self) -> u32 {
        1
    }

    /// Which script it is, if it is one; `None` of what is built in.
    fn script(&self) -> Option<&Script> {
        None
    }

    /// Whether a transition may take so long that others shouldn't have to wait behind it: milliseconds, rather than microseconds.
    fn is_slow(&self) -> bool {
        false
    }

    /// The rules of a new session. Its options come from [`ChallengeType::resolve`]; equal seeds deal equally.
    ///
    /// # Errors
    /// A [`Rejection`] if the rules fail, which those of scripts may.
    fn create(&self, facts: &SessionFacts) -> Result<Box<dyn Operator>, Rejection>;

    /// The rules of a new session that are never restored, but keep in memory what they have from call to call. Checks compare them with
    /// those that are restored before each call.
    ///
    /// # Errors
    /// As [`ChallengeType::create`].
    fn create_lasting(&self, facts: &SessionFacts) -> Result<Box<dyn Operator>, Rejection> {
        self.create(facts)
    }

    /// The rules as [`Operator::serialize`] left them.
    ///
    /// # Errors
    /// If they didn't leave them so.
    fn restore(&self, facts: &SessionFacts, state: &str) -> Result<Box<dyn Operator>, RestoreError>;
}

/// What a built-in challenge has to say about itself; [`Builtin`] makes a [`ChallengeType`] of it.
pub trait Rules: Operator + Serialize + DeserializeOwned + Sized + 'static {
    /// Identifier, such as `psi`.
    const ID: &'static str;

    /// One sentence.
    const DESCRIPTION: &'static str;

    /// How many players it can have.
    const SEATS: RangeInclusive<usize>;

    /// The version of the rules, from 1. A change that can alter a deal, a score or an end raises it, so that sessions by
    /// the old rules and by the new ones are told apart.
    const RULES_VERSION: u32 = 1;

    /// Options that whoever creates a session may choose. The others are the arena's to set.
    const OVERRIDABLE: &'static [Setting];

    /// The options, with their defaults. Unknown ones should be denied.
    type Options: Default + Serialize + DeserializeOwned + Send + Sync;

    /// Refuses options that the game can't be played with.
    ///
    /// # Errors
    /// Names the option and what is wrong with it.
    fn check(options: &Self::Options) -> Result<(), OptionsError>;

    /// What is told about the challenge when it is played with these options.
    fn metadata(options: &Self::Options) -> ChallengeMetadata;

    /// The values of all options, by name, those that were left out included.
    fn values(options: &Self::Options) -> Map<String, Value> {
        match serde_json::to_value(options) {
            Ok(Value::Object(values)) => values,
            other => unreachable!("options are a JSON object: {other:?}"),
        }
    }

    /// A new game. The options have been checked.
    fn deal(options: &Self::Options, seed: &Seed) -> Self;
}

/// A [`ChallengeType`] made of [`Rules`].
pub struct Builtin<R: Rules> {
    options: Map<String, Value>,
    choices: Vec<ChallengeOption>,
    metadata: ChallengeMetadata,
    rules: PhantomData<fn() -> R>,
}

impl<R: Rules> Builtin<R> {
    /// The challenge type with an arena's options; those left out have their defaults.
    ///
    /// # Errors
    /// If an option is unknown, mistyped, or makes the game impossible.
    pub fn new(options: &Map<String, Value>) -> Result<Self, OptionsError> {
        let options = Self::parse(&Value::Object(options.clone()))?;
        let metadata = R::metadata(&options);
        let values = R::values(&options);
        let value = |name: &str| values.get(name).cloned().unwrap_or_default();
        let choices = R::OVERRIDABLE.iter().map(|setting| setting.describe(value(setting.name))).collect();
        match serde_json::to_value(&options) {
            Ok(Value::Object(options)) => Ok(Builtin { options, choices, metadata, rules: PhantomData }),
            _ => Err(OptionsError(format!("the options of {} aren't a JSON object", R::ID))),
        }
    }

    fn parse(options: &Value) -> Result<R::Options, OptionsError> {
        let options = R::Options::deserialize(options).map_err(|error| OptionsError(error.to_string()))?;
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
        // A session of an older arena may have options that there are none of any more.
        Self::parse(options).map_or(Cow::Borrowed(&self.metadata), |options| Cow::Owned(R::metadata(&options)))
    }

    fn options(&self) -> &[ChallengeOption] {
        &self.choices
    }

    fn rules_version(&self) -> u32 {
        R::RULES_VERSION
    }

    fn resolve(&self, overrides: &Map<String, Value>) -> Result<Value, OptionsError> {
        let mut options = self.options.clone();
        for (name, value) in overrides {
            if !R::OVERRIDABLE.iter().any(|setting| setting.name == name) {
                let names: Vec<&str> = R::OVERRIDABLE.iter().map(|setting| setting.name).collect();
                let allowed = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
                return Err(OptionsError(format!(
                    "option {name} can't be set for a session of {}; allowed: {allowed}",
                    R::ID
                )));
            }
            options.insert(name.clone(), value.clone());
        }
        let options = Value::Object(options);
        if !overrides.is_empty() {
            Self::parse(&options)?;
        }
        // Strangers may create sessions, so the published bounds hold for these, also where the arena's settings may go further.
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
        Ok(Box::new(R::deal(&options, facts.dealt_from())))
    }

    fn restore(&self, _facts: &SessionFacts, state: &str) -> Result<Box<dyn Operator>, RestoreError> {
        let rules: R =
            serde_json::from_str(state).map_err(|source| RestoreError { challenge: R::ID.to_owned(), source })?;
        Ok(Box::new(rules))
    }
}
