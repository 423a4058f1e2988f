//! Names of agents and of tournaments.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use utoipa::ToSchema;
use uuid::Uuid;

/// A text that isn't an id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not an id (a UUID)")]
pub(crate) struct NoId;

/// A newtype of a UUID, written in lower case, the later the greater.
macro_rules! id {
    ($about:literal, $name:ident) => {
        #[doc = $about]
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, ToSchema)]
        #[schema(value_type = String, format = "uuid", example = "018f6b2e-0000-7000-8000-00000000abcd")]
        pub(crate) struct $name(pub(crate) Uuid);

        impl FromStr for $name {
            type Err = NoId;

            fn from_str(text: &str) -> Result<Self, NoId> {
                // One id has one spelling: it names folders.
                let id = Uuid::try_parse(text).map_err(|_| NoId)?;
                if id.hyphenated().to_string() == text { Ok($name(id)) } else { Err(NoId) }
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.hyphenated().fmt(f)
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
            }
        }
    };
}

id!("An agent that this server keeps.", AgentId);
id!("A tournament that this server plays or has played.", TournamentId);
