//! Deserialization of requests into the handlers' types. Fields are read by name, in the order of their declaration. An
//! error names the field by its name in the request. Fields that the type doesn't declare are ignored.
//!
//! This file also contains the common field types of requests.

use std::fmt;
use std::str::FromStr;

use serde::de::value::{BorrowedStrDeserializer, StrDeserializer};
use serde::de::{DeserializeSeed, Error as _, Expected, IntoDeserializer, MapAccess, Unexpected, Visitor};
use serde::{Deserialize, Deserializer, forward_to_deserialize_any};
use serde_json::Value;

use super::Query;
use crate::error::{ApiError, ApiResult};

/// The data of a request, or one field of it.
#[derive(Clone, Copy)]
pub(crate) enum Input<'r> {
    Missing,
    Json(&'r Value),
    /// A whole query. The first value of a repeated name counts, in forms as well.
    Query(&'r Query),
    Parameter(&'r str),
    Form(&'r Query),
    FormField(&'r str),
}

/// The server settings that affect the deserialization of fields.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FieldSettings {
    /// True in authentication mode.
    pub(crate) keys: bool,
    /// Maximum size of a message's content in bytes (`limits.message_bytes`).
    pub(crate) content_bytes: usize,
}

impl<'r> Input<'r> {
    /// Deserializes a struct.
    ///
    /// # Errors
    /// The error of the first invalid field.
    pub(crate) fn read<T: Deserialize<'r>>(self, field_settings: FieldSettings) -> ApiResult<T> {
        T::deserialize(Field { input: self, field_settings }).map_err(|wrong| wrong.about("the request"))
    }

    fn field(self, name: &str) -> Input<'r> {
        let found = match self {
            Input::Json(value) => value.get(name).map(Input::Json),
            Input::Query(query) => query.get(name).map(Input::Parameter),
            Input::Form(form) => form.get(name).map(Input::FormField),
            Input::Missing | Input::Parameter(_) | Input::FormField(_) => None,
        };
        found.unwrap_or(Input::Missing)
    }
}

#[derive(Debug, thiserror::Error)]
#[error("{self:?}")]
enum FieldError {
    Missing,
    Invalid(String),
    /// The content is longer than this number of bytes.
    TooLong(usize),
    Nested(ApiError),
}

impl FieldError {
    fn about(self, field: &str) -> ApiError {
        match self {
            FieldError::Missing => ApiError::missing(field),
            FieldError::Invalid(what) => ApiError::bad_request("INVALID_FIELD", format!("{field} {what}")),
            FieldError::TooLong(most) => {
                let text = format!("{field} is longer than {most} bytes (limits.message_bytes)");
                ApiError::too_large("MESSAGE_TOO_LARGE", text)
            }
            FieldError::Nested(error) => error,
        }
    }
}

impl serde::de::Error for FieldError {
    /// Builds the message that follows the field's name. A text that begins with "is " is used unchanged. Any other
    /// text describes the expected value and gets the prefix "must be".
    fn custom<T: fmt::Display>(what: T) -> FieldError {
        let what = what.to_string();
        FieldError::Invalid(if what.starts_with("is ") { what } else { format!("must be {what}") })
    }

    fn invalid_type(_: Unexpected<'_>, expected: &dyn Expected) -> FieldError {
        FieldError::custom(expected)
    }

    fn unknown_variant(_: &str, known: &'static [&'static str]) -> FieldError {
        FieldError::custom(format_args!("one of {}", known.join(", ")))
    }

    fn missing_field(_: &'static str) -> FieldError {
        FieldError::Missing
    }
}

const AN_OBJECT: &str = "an object";

struct Field<'de> {
    input: Input<'de>,
    field_settings: FieldSettings,
}

impl<'de> Field<'de> {
    /// U+0000 is refused in bodies, since the store can't hold it; queries may contain it.
    fn text(&self) -> Result<&'de str, FieldError> {
        let text = match self.input {
            Input::Missing => return Err(FieldError::Missing),
            Input::Parameter(text) => return Ok(text),
            Input::FormField(text) => Some(text),
            Input::Json(value) => value.as_str(),
            Input::Query(_) | Input::Form(_) => None,
        };
        match text {
            Some(text) if text.contains('\0') => {
                Err(FieldError::Invalid("must not contain the character U+0000".to_owned()))
            }
            text => text.ok_or_else(|| FieldError::custom("a string")),
        }
    }
}

impl<'de> Deserializer<'de> for Field<'de> {
    type Error = FieldError;

    /// Deserializes all types of JSON values. The value of a query is a number if it can be parsed as one.
    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, FieldError> {
        match self.input {
            Input::Json(value) => {
                let expected = (&visitor as &dyn Expected).to_string();
                value.deserialize_any(visitor).map_err(|_| {
                    FieldError::custom(match expected.as_str() {
                        "a boolean" => "true or false",
                        "i64" => "a whole number",
                        "a sequence" => "a list of strings",
                        "a map" => AN_OBJECT,
                        other => other,
                    })
                })
            }
            Input::Parameter(text) => match (text.parse::<u64>(), text.parse::<f64>()) {
                // `parse` alone would accept a plus sign.
                (Ok(number), _) if !text.starts_with('+') => visitor.visit_u64(number),
                (_, Ok(number)) => visitor.visit_f64(number),
                _ => visitor.visit_borrowed_str(text),
            },
            _ => visitor.visit_borrowed_str(self.text()?),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, FieldError> {
        match self.input {
            Input::Missing => visitor.visit_none(),
            _ => visitor.visit_some(self),
        }
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, FieldError> {
        match self.input {
            // `serde_json` would accept null as an empty map.
            Input::Json(Value::Null) => Err(FieldError::custom(AN_OBJECT)),
            _ => self.deserialize_any(visitor),
        }
    }

    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, FieldError> {
        visitor.visit_borrowed_str(self.text()?)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, FieldError> {
        let text: StrDeserializer<'_, FieldError> = self.text()?.into_deserializer();
        text.deserialize_enum(name, variants, visitor)
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        names: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, FieldError> {
        match self.input {
            Input::Json(value) if !value.is_object() => Err(FieldError::custom(AN_OBJECT)),
            _ => visitor.visit_map(Declared { object: self, names: names.iter(), name: "" }),
        }
    }

    /// [`ByName`], [`ByKey`] and [`Content`] depend on [`FieldSettings`] and are recognized by name.
    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value, FieldError> {
        let Field { input, field_settings } = self;
        let is_there = match name {
            "ByName" => !field_settings.keys,
            "ByKey" => field_settings.keys && !matches!(input, Input::Json(value) if value == ""),
            "Content" if self.text()?.len() > field_settings.content_bytes => {
                return Err(FieldError::TooLong(field_settings.content_bytes));
            }
            _ => true,
        };
        visitor.visit_newtype_struct(Field { input: if is_there { input } else { Input::Missing }, field_settings })
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 u8 u16 u32 u64 f32 f64 char str bytes byte_buf unit unit_struct seq tuple tuple_struct identifier ignored_any
    }
}

/// The declared fields of a struct in order, including those that the request doesn't have.
struct Declared<'de> {
    object: Field<'de>,
    names: std::slice::Iter<'static, &'static str>,
    name: &'static str,
}

impl<'de> MapAccess<'de> for Declared<'de> {
    type Error = FieldError;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, FieldError> {
        let Some(name) = self.names.next() else { return Ok(None) };
        self.name = name;
        seed.deserialize(BorrowedStrDeserializer::new(name)).map(Some)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, FieldError> {
        let Field { input, field_settings } = self.object;
        let field = Field { input: input.field(self.name), field_settings };
        seed.deserialize(field).map_err(|wrong| FieldError::Nested(wrong.about(self.name)))
    }
}

/// The content of a message, limited by the settings.
#[derive(Debug, Deserialize)]
pub(crate) struct Content(pub(crate) String);

/// A field of standalone mode, ignored in authentication mode.
#[derive(Debug, Deserialize)]
pub(crate) struct ByName<T>(pub(crate) Option<T>);

/// A field of authentication mode, ignored in standalone mode. An empty string counts as missing.
#[derive(Debug, Deserialize)]
pub(crate) struct ByKey<T>(pub(crate) Option<T>);

/// A non-empty string.
#[derive(Debug)]
pub(crate) struct Filled(pub(crate) String);

impl<'de> Deserialize<'de> for Filled {
    fn deserialize<D: Deserializer<'de>>(field: D) -> Result<Filled, D::Error> {
        let text = String::deserialize(field)?;
        if text.is_empty() { Err(D::Error::missing_field("")) } else { Ok(Filled(text)) }
    }
}

/// A string that parses as a `T`. An error message consists of the field's name, "is", and the parser's error.
#[derive(Debug)]
pub(crate) struct Is<T>(pub(crate) T);

impl<'de, T: FromStr<Err: fmt::Display>> Deserialize<'de> for Is<T> {
    fn deserialize<D: Deserializer<'de>>(field: D) -> Result<Is<T>, D::Error> {
        let text = String::deserialize(field)?;
        text.parse().map(Is).map_err(|error| D::Error::custom(format_args!("is {error}")))
    }
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Whole<const LEAST: u64, const MOST: u64 = { u64::MAX }>(pub(crate) u64);

impl<'de, const LEAST: u64, const MOST: u64> Deserialize<'de> for Whole<LEAST, MOST> {
    fn deserialize<D: Deserializer<'de>>(field: D) -> Result<Self, D::Error> {
        field.deserialize_u64(Bounds::<LEAST, MOST>)
    }
}

struct Bounds<const LEAST: u64, const MOST: u64>;

impl<const LEAST: u64, const MOST: u64> Visitor<'_> for Bounds<LEAST, MOST> {
    type Value = Whole<LEAST, MOST>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a whole number from {LEAST} to {MOST}")
    }

    fn visit_u64<E: serde::de::Error>(self, number: u64) -> Result<Self::Value, E> {
        let is_within = (LEAST..=MOST).contains(&number);
        is_within.then_some(Whole(number)).ok_or_else(|| E::invalid_value(Unexpected::Unsigned(number), &self))
    }
}

/// A field that accepts invalid values during deserialization. The handler treats them as missing, or rejects them with
/// an error code of its own.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Lenient<T> {
    Missing,
    Invalid,
    Valid(T),
}

impl<T> Lenient<T> {
    /// Returns the value; `None` if it is missing or invalid.
    pub(crate) fn known(self) -> Option<T> {
        match self {
            Lenient::Valid(known) => Some(known),
            Lenient::Missing | Lenient::Invalid => None,
        }
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Lenient<T> {
    fn deserialize<D: Deserializer<'de>>(field: D) -> Result<Lenient<T>, D::Error> {
        Ok(match Option::deserialize(field) {
            Ok(None) => Lenient::Missing,
            Ok(Some(known)) => Lenient::Valid(known),
            Err(_) => Lenient::Invalid,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// A test request with one field of each kind.
    #[derive(Debug, Deserialize)]
    #[serde(rename_all = "camelCase")]
    #[expect(dead_code, reason = "the fields are read only by Debug")]
    struct Request {
        challenge_id: Filled,
        content: Content,
        user: ByName<Is<arena_model::UserId>>,
        timestamp: ByKey<i64>,
        count: Option<Whole<1, 9>>,
        agents: Option<Vec<String>>,
        options: Option<serde_json::Map<String, Value>>,
        paired: Option<bool>,
        mode: Option<Mode>,
        limit: Lenient<Whole<1>>,
        limits: Option<Limits>,
    }

    #[derive(Debug, Deserialize)]
    #[serde(rename_all = "lowercase")]
    enum Mode {
        Fast,
        Slow,
    }

    #[derive(Debug, Deserialize)]
    #[expect(dead_code, reason = "the fields are read only by Debug")]
    struct Limits {
        ms: i64,
    }

    /// Applies `changes` to a valid request and compares its error with `expected`. An empty error means success.
    #[track_caller]
    fn check(keys: bool, changes: Value, expected: &str) {
        let mut request = json!({ "challengeId": "s", "content": "hi", "unknown": null });
        for (name, value) in changes.as_object().expect("fields") {
            request[name] = value.clone();
        }
        let read = Input::Json(&request).read::<Request>(FieldSettings { keys, content_bytes: 3 });
        let message = read.map_or_else(|error| error.message().to_owned(), |_| String::new());
        assert_eq!(message, expected, "{request}");
    }

    #[test]
    fn a_refusal_names_the_first_field_that_is_wrong_in_the_order_of_declaration() {
        let request = json!({ "content": 1, "count": 0 });
        let error = Input::Json(&request).read::<Request>(FieldSettings { keys: false, content_bytes: 3 }).unwrap_err();
        assert_eq!(error.message(), "challengeId is required");
        check(
            false,
            json!({ "count": 10, "content": "long" }),
            "content is longer than 3 bytes (limits.message_bytes)",
        );
        check(false, json!({ "challengeId": "" }), "challengeId is required");
        check(false, json!({ "content": null }), "content must be a string");
        check(false, json!({ "content": "\0" }), "content must not contain the character U+0000");
        for count in [json!(0), json!(10), json!(-1), json!(1.5), json!("1"), json!(null), json!([])] {
            check(false, json!({ "count": count }), "count must be a whole number from 1 to 9");
        }
        check(false, json!({ "agents": ["a", 1] }), "agents must be a list of strings");
        check(false, json!({ "options": [] }), "options must be an object");
        check(false, json!({ "options": null }), "options must be an object");
        check(false, json!({ "paired": 1 }), "paired must be true or false");
        check(false, json!({ "mode": "x" }), "mode must be one of fast, slow");
        check(false, json!({ "mode": 1 }), "mode must be a string");
        check(false, json!({ "limits": 1 }), "limits must be an object");
        check(false, json!({ "limits": { "ms": 1.5 } }), "ms must be a whole number");
        check(false, json!({ "limits": {} }), "ms is required");
        check(false, json!({ "limit": null }), "");
        check(false, json!({ "count": 9, "agents": ["a\0"], "options": { "a": "\0" }, "mode": "slow" }), "");
    }

    #[test]
    fn fields_of_the_other_mode_are_not_looked_at() {
        let user = "user is not a user id (1 to 255 bytes without control characters)";
        check(false, json!({ "user": "", "timestamp": {} }), user);
        check(true, json!({ "user": "", "timestamp": {} }), "timestamp must be a whole number");
        check(true, json!({ "user": "", "timestamp": "" }), "");
    }
}
