//! JSON that borrows its texts: a request repeats the whole conversation, and a copy of it would cost as much time as
//! its formatting. Pure.

use std::borrow::Cow;

use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::{Map, Value};

/// A JSON value.
pub enum Part<'q> {
    Text(Cow<'q, str>),
    Whole(i64),
    Count(u64),
    Real(f64),
    Flag(bool),
    Value(&'q Value),
    List(Vec<Part<'q>>),
    /// The entries, sorted by key.
    Object(Vec<(&'q str, Part<'q>)>),
}

impl<'q> Part<'q> {
    /// Creates an object. Its entries are sorted, as [`Value`] sorts them.
    pub fn object(entries: impl IntoIterator<Item = (&'q str, Part<'q>)>) -> Part<'q> {
        let mut entries: Vec<_> = entries.into_iter().collect();
        entries.sort_unstable_by_key(|(key, _)| *key);
        Part::Object(entries)
    }

    /// Creates an object without its empty entries, and with the entries of `extra` in place of entries of the same
    /// name.
    pub fn body<const N: usize>(entries: [(&'q str, Option<Part<'q>>); N], extra: &'q Map<String, Value>) -> Part<'q> {
        let own = entries.into_iter().filter_map(|(key, part)| Some((key, part?)));
        let own = own.filter(|(key, _)| !extra.contains_key(*key));
        Part::object(own.chain(extra.iter().map(|(key, value)| (key.as_str(), Part::Value(value)))))
    }

    /// Creates a list; `None` if it is empty. Endpoints reject some lists if they are empty.
    pub fn list(items: impl IntoIterator<Item = Part<'q>>) -> Option<Part<'q>> {
        let items: Vec<_> = items.into_iter().collect();
        (!items.is_empty()).then_some(Part::List(items))
    }
}

impl<'q> From<&'q str> for Part<'q> {
    fn from(text: &'q str) -> Part<'q> {
        Part::Text(Cow::Borrowed(text))
    }
}

impl<'q> From<&'q String> for Part<'q> {
    fn from(text: &'q String) -> Part<'q> {
        Part::Text(Cow::Borrowed(text))
    }
}

impl Serialize for Part<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Part::Text(text) => serializer.serialize_str(text),
            Part::Whole(number) => serializer.serialize_i64(*number),
            Part::Count(number) => serializer.serialize_u64(*number),
            Part::Real(number) => serializer.serialize_f64(*number),
            Part::Flag(flag) => serializer.serialize_bool(*flag),
            Part::Value(value) => value.serialize(serializer),
            Part::List(items) => serializer.collect_seq(items),
            Part::Object(entries) => {
                let mut map = serializer.serialize_map(Some(entries.len()))?;
                for (key, part) in entries {
                    map.serialize_entry(key, part)?;
                }
                map.end()
            }
        }
    }
}
