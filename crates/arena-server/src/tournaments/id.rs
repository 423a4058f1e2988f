//! Ids of agents and tournaments.

use std::cmp::Ordering;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use utoipa::ToSchema;
use uuid::Uuid;

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not an id (a UUID)")]
pub(crate) struct NoId;

/// The time is at the end of an id; in ids of older arenas (UUIDs of version 7) it is at the beginning.
fn time(id: Uuid) -> [u8; 6] {
    let [a, b, c, d, e, f, .., g, h, i, j, k, l] = id.into_bytes();
    if id.get_version_num() == 7 { [a, b, c, d, e, f] } else { [g, h, i, j, k, l] }
}

/// Defines a newtype of a UUID, in lower case, ordered by time.
macro_rules! id {
    ($about:literal, $name:ident) => {
        #[doc = $about]
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, ToSchema)]
        #[schema(value_type = String, format = "uuid", example = "018f6b2e-0000-7000-8000-00000000abcd")]
        pub(crate) struct $name(pub(crate) Uuid);

        impl Ord for $name {
            fn cmp(&self, other: &$name) -> Ordering {
                (time(self.0), self.0).cmp(&(time(other.0), other.0))
            }
        }

        impl PartialOrd for $name {
            fn partial_cmp(&self, other: &$name) -> Option<Ordering> {
                Some(self.cmp(other))
            }
        }

        impl FromStr for $name {
            type Err = NoId;

            fn from_str(text: &str) -> Result<Self, NoId> {
                // An id is valid only in its canonical spelling, since it is the name of a folder.
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

id!("The id of an agent.", AgentId);
id!("The id of a tournament.", TournamentId);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_later_id_is_the_greater_whichever_end_its_time_is_at() {
        let ids = [
            "018f6b2e-0000-7fff-bfff-ffffffffffff",
            "018f6b2e-0001-7000-8000-000000000000",
            "ffffffff-ffff-4fff-bfff-018f6b2e0002",
            "00000000-0000-4000-8000-018f6b2e0003",
            "018f6b2e-0004-7000-8000-000000000000",
        ];
        let ids: Vec<AgentId> = ids.iter().map(|id| id.parse().expect("an id")).collect();
        assert!(ids.is_sorted(), "{ids:?}");
    }
}
