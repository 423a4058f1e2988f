//! The ids of actors, bases and sources of food.

use std::fmt;

use arena_model::SeedRng;
use serde::de::{Deserialize, Deserializer, Error, Unexpected, Visitor};
use serde::ser::{Serialize, Serializer};

const LENGTH: usize = 6;

const CHARACTERS: &[u8; 62] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";

/// The name of an entity on the map: six letters and digits.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Id([u8; LENGTH]);

impl Id {
    pub fn draw(rng: &mut SeedRng) -> Id {
        Id([(); LENGTH].map(|()| CHARACTERS[rng.below(CHARACTERS.len() as u64) as usize]))
    }

    pub fn as_str(&self) -> &str {
        std::str::from_utf8(&self.0).expect("letters and digits are ASCII")
    }

    fn parse(text: &str) -> Option<Id> {
        let bytes: [u8; LENGTH] = text.as_bytes().try_into().ok()?;
        bytes.iter().all(u8::is_ascii_alphanumeric).then_some(Id(bytes))
    }
}

impl fmt::Debug for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Serialize for Id {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl<'de> Deserialize<'de> for Id {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Id, D::Error> {
        struct IdVisitor;

        impl Visitor<'_> for IdVisitor {
            type Value = Id;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an id of 6 letters and digits")
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Id, E> {
                Id::parse(text).ok_or_else(|| E::invalid_value(Unexpected::Str(text), &self))
            }
        }

        deserializer.deserialize_str(IdVisitor)
    }
}
