//! From what a request says to the type that a handler asks for. `serde` asks for each field of a type by its name, in the order of their
//! declaration; a refusal names the field, in the words of the wire. Fields that no type declares aren't looked at.
//!
//! The types here are the words that requests are made of.

use std::fmt;
use std::str::FromStr;

use serde::de::value::{BorrowedStrDeserializer, StrDeserializer};
use serde::de::{DeserializeSeed, Error as _, Expected, IntoDeserializer, MapAccess, Unexpected, Visitor};
use serde::{Deserialize, Deserializer, forward_to_deserialize_any};
use serde_json::Value;

use crate::arena::Arena;
use crate::error::{ApiError, ApiResult};
use crate::request::Query;

/// What a request says, or one field of it.
#[derive(Clone, Copy)]
pub(crate) enum Said<'r> {
    Nothing,
    Json(&'r Value),
    /// All that a query asks for. The first of several equal names counts, in forms as well.
    Query(&'r Query),
    Asked(&'r str),
    /// All that a form was filled in with.
    Form(&'r Query),
    Filled(&'r str),
}

/// The settings that say what fields may hold.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Terms {
    /// True if players show keys.
    pub(crate) keys: bool,
    /// Most bytes of a message's content (`limits.message_bytes`).
    pub(crate) content_bytes: usize,
}

impl Terms {
    pub(crate) fn of(arena: &Arena) -> Terms {
        Terms { keys: arena.asks_for_keys(), content_bytes: arena.settings.limits.message_bytes }
    }
}

impl<'r> Said<'r> {
    /// The value of the type that the caller expects: a struct.
    ///
    /// # Errors
    /// Those of the first field that isn't as the type has it.
    pub(crate) fn read<T: Deserialize<'r>>(self, terms: Terms) -> ApiResult<T> {
        T::deserialize(Field { said: self, terms }).map_err(|wrong| wrong.about("the request"))
    }

    fn field(self, name: &str) -> Said<'r> {
        let found = match self {
            Said::Json(value) => value.get(name).map(Said::Json),
            Said::Query(query) => query.get(name).map(Said::Asked),
            Said::Form(form) => form.get(name).map(Said::Filled),
            Said::Nothing | Said::Asked(_) | Said::Filled(_) => None,
        };
        found.unwrap_or(Said::Nothing)
    }
}

/// Why a field isn't taken.
#[derive(Debug, thiserror::Error)]
#[error("{self:?}")]
enum Wrong {
    Missing,
    Invalid(String),
    /// A content of more bytes than these.
    TooLong(usize),
    /// It is a field of this one.
    Told(ApiError),
}

impl Wrong {
    fn about(self, field: &str) -> ApiError {
        match self {
            Wrong::Missing => ApiError::missing(field),
            Wrong::Invalid(what) => ApiError::bad_request("INVALID_FIELD", format!("{field} {what}")),
            Wrong::TooLong(most) => {
                let text = format!("{field} is longer than {most} bytes (limits.message_bytes)");
                ApiError::too_large("MESSAGE_TOO_LARGE", text)
            }
            Wrong::Told(error) => error,
        }
    }
}

impl serde::de::Error for Wrong {
    /// What a field "is", or else what it has to be.
    fn custom<T: fmt::Display>(what: T) -> Wrong {
        let what = what.to_string();
        Wrong::Invalid(if what.starts_with("is ") { what } else { format!("must be {what}") })
    }

    fn unknown_variant(_: &str, known: &'static [&'static str]) -> Wrong {
        Wrong::custom(format_args!("one of {}", known.join(", ")))
    }

    fn missing_field(_: &'static str) -> Wrong {
        Wrong::Missing
    }
}

const AN_OBJECT: &str = "an object";

/// One field, or the fields of a struct.
struct Field<'de> {
    said: Said<'de>,
    terms: Terms,
}

impl<'de> Field<'de> {
    /// A text. What is stored can't hold U+0000; what is only looked for may.
    fn text(&self) -> Result<&'de str, Wrong> {
        let text = match self.said {
            Said::Nothing => return Err(Wrong::Missing),
            Said::Asked(text) => return Ok(text),
            Said::Filled(text) => Some(text),
            Said::Json(value) => value.as_str(),
            Said::Query(_) | Said::Form(_) => None,
        };
        match text {
            Some(text) if text.contains('\0') => Err(Wrong::Invalid("must not hold the character U+0000".to_owned())),
            text => text.ok_or_else(|| Wrong::custom("a string")),
        }
    }
}

impl<'de> Deserializer<'de> for Field<'de> {
    type Error = Wrong;

    /// What isn't a text, or is the text of a number.
    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Wrong> {
        match self.said {
            Said::Json(value) => {
                let expected = (&visitor as &dyn Expected).to_string();
                value.deserialize_any(visitor).map_err(|_| {
                    Wrong::custom(match expected.as_str() {
                        "a boolean" => "true or false",
                        "i64" => "a whole number",
                        "a sequence" => "a list of strings",
                        "a map" => AN_OBJECT,
                        other => other,
                    })
                })
            }
            Said::Asked(text) => match (text.parse::<u64>(), text.parse::<f64>()) {
                // `parse` takes a plus sign as well.
                (Ok(number), _) if !text.starts_with('+') => visitor.visit_u64(number),
                (_, Ok(number)) => visitor.visit_f64(number),
                _ => visitor.visit_borrowed_str(text),
            },
            _ => visitor.visit_borrowed_str(self.text()?),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Wrong> {
        match self.said {
            Said::Nothing => visitor.visit_none(),
            _ => visitor.visit_some(self),
        }
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Wrong> {
        match self.said {
            // An empty map, to `serde_json`.
            Said::Json(Value::Null) => Err(Wrong::custom(AN_OBJECT)),
            _ => self.deserialize_any(visitor),
        }
    }

    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Wrong> {
        visitor.visit_borrowed_str(self.text()?)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Wrong> {
        let text: StrDeserializer<'_, Wrong> = self.text()?.into_deserializer();
        text.deserialize_enum(name, variants, visitor)
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        names: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Wrong> {
        match self.said {
            Said::Json(value) if !value.is_object() => Err(Wrong::custom(AN_OBJECT)),
            _ => visitor.visit_map(Declared { object: self, names: names.iter(), name: "" }),
        }
    }

    /// Those newtypes whose meaning depends on the settings are known by their names.
    fn deserialize_newtype_struct<V: Visitor<'de>>(self, name: &'static str, visitor: V) -> Result<V::Value, Wrong> {
        let Field { said, terms } = self;
        let is_there = match name {
            "ByName" => !terms.keys,
            "ByKey" => terms.keys && !matches!(said, Said::Json(value) if value == ""),
            "Content" if self.text()?.len() > terms.content_bytes => return Err(Wrong::TooLong(terms.content_bytes)),
            _ => true,
        };
        visitor.visit_newtype_struct(Field { said: if is_there { said } else { Said::Nothing }, terms })
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 u8 u16 u32 u64 f32 f64 char str bytes byte_buf unit unit_struct seq tuple tuple_struct identifier ignored_any
    }
}

/// The fields of a struct, one after the other, also those that aren't there.
struct Declared<'de> {
    object: Field<'de>,
    names: std::slice::Iter<'static, &'static str>,
    name: &'static str,
}

impl<'de> MapAccess<'de> for Declared<'de> {
    type Error = Wrong;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, Wrong> {
        let Some(name) = self.names.next() else { return Ok(None) };
        self.name = name;
        seed.deserialize(BorrowedStrDeserializer::new(name)).map(Some)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Wrong> {
        let Field { said, terms } = self.object;
        let field = Field { said: said.field(self.name), terms };
        seed.deserialize(field).map_err(|wrong| Wrong::Told(wrong.about(self.name)))
    }
}

/// The content of a message, as long as the settings allow it.
#[derive(Debug, Deserialize)]
pub(crate) struct Content(pub(crate) String);

/// What counts in standalone mode only: in authentication mode it isn't looked at.
#[derive(Debug, Deserialize)]
pub(crate) struct ByName<T>(pub(crate) Option<T>);

/// What counts in authentication mode only. An empty text is as good as none.
#[derive(Debug, Deserialize)]
pub(crate) struct ByKey<T>(pub(crate) Option<T>);

/// A text that isn't empty: what names something.
#[derive(Debug)]
pub(crate) struct Filled(pub(crate) String);

impl<'de> Deserialize<'de> for Filled {
    fn deserialize<D: Deserializer<'de>>(field: D) -> Result<Filled, D::Error> {
        let text = String::deserialize(field)?;
        if text.is_empty() { Err(D::Error::missing_field("")) } else { Ok(Filled(text)) }
    }
}

/// A text that names a `T`, or "is" something else, as its error says.
#[derive(Debug)]
pub(crate) struct Is<T>(pub(crate) T);

impl<'de, T: FromStr<Err: fmt::Display>> Deserialize<'de> for Is<T> {
    fn deserialize<D: Deserializer<'de>>(field: D) -> Result<Is<T>, D::Error> {
        let text = String::deserialize(field)?;
        text.parse().map(Is).map_err(|error| D::Error::custom(format_args!("is {error}")))
    }
}

/// A whole number within bounds.
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

/// A field that is taken even if it isn't a `T`: some count as left out then, others are refused with a code of their own.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Lenient<T> {
    LeftOut,
    Junk,
    Is(T),
}

impl<T> Lenient<T> {
    /// The value, where junk counts as left out.
    pub(crate) fn known(self) -> Option<T> {
        match self {
            Lenient::Is(known) => Some(known),
            Lenient::LeftOut | Lenient::Junk => None,
        }
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Lenient<T> {
    fn deserialize<D: Deserializer<'de>>(field: D) -> Result<Lenient<T>, D::Error> {
        Ok(match Option::deserialize(field) {
            Ok(None) => Lenient::LeftOut,
            Ok(Some(known)) => Lenient::Is(known),
            Err(_) => Lenient::Junk,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// One field of each kind.
    #[derive(Debug, Deserialize)]
    #[serde(rename_all = "camelCase")]
    #[expect(dead_code, reason = "it is only printed")]
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
    #[expect(dead_code, reason = "it is only printed")]
    struct Limits {
        ms: i64,
    }

    /// The refusal of a good request with `changes`, or nothing.
    #[track_caller]
    fn check(keys: bool, changes: Value, expected: &str) {
        let mut request = json!({ "challengeId": "s", "content": "hi", "unknown": null });
        for (name, value) in changes.as_object().expect("fields") {
            request[name] = value.clone();
        }
        let read = Said::Json(&request).read::<Request>(Terms { keys, content_bytes: 3 });
        let told = read.map_or_else(|error| error.message().to_owned(), |_| String::new());
        assert_eq!(told, expected, "{request}");
    }

    #[test]
    fn a_refusal_names_the_first_field_that_is_wrong_in_the_order_of_declaration() {
        let request = json!({ "content": 1, "count": 0 });
        let error = Said::Json(&request).read::<Request>(Terms { keys: false, content_bytes: 3 }).unwrap_err();
        assert_eq!(error.message(), "challengeId is required");
        check(
            false,
            json!({ "count": 10, "content": "long" }),
            "content is longer than 3 bytes (limits.message_bytes)",
        );
        check(false, json!({ "challengeId": "" }), "challengeId is required");
        check(false, json!({ "content": null }), "content must be a string");
        check(false, json!({ "content": "\0" }), "content must not hold the character U+0000");
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
