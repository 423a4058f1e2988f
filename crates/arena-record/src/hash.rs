//! Hashes and commitments: byte strings of fixed length, written as lower-case hexadecimal digits.

use std::fmt;
use std::str::FromStr;

use arena_model::{ContentHash, hex};
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use sha2::{Digest, Sha256};

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("expected {digits} lower-case hexadecimal digits")]
pub struct HexError {
    pub digits: usize,
}

/// Decodes exactly `N` bytes from lower-case digits.
pub(crate) fn from_hex<const N: usize>(text: &str) -> Result<[u8; N], HexError> {
    let is_lower = !text.bytes().any(|digit| digit.is_ascii_uppercase());
    hex::decode(text).filter(|_| is_lower).ok_or(HexError { digits: 2 * N })
}

/// The number of digits of the longest type in hexadecimal form, a signature.
pub(crate) const MOST_DIGITS: usize = 128;

/// Returns the digits of bytes in a buffer, without an allocation: records have many hashes.
pub(crate) fn digits<'b>(bytes: &[u8], buffer: &'b mut [u8; MOST_DIGITS]) -> &'b str {
    hex::encode_in(bytes, buffer).expect("no type is longer than a signature")
}

/// Implements the hexadecimal text form of a type that wraps bytes: `Display`, `Debug`, `FromStr` and serde.
macro_rules! hexadecimal {
    ($name:ident) => {
        impl ::std::fmt::Display for $name {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                f.write_str($crate::hash::digits(&self.0, &mut [0; $crate::hash::MOST_DIGITS]))
            }
        }

        impl ::std::fmt::Debug for $name {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                write!(f, "{}({self})", stringify!($name))
            }
        }

        impl ::std::str::FromStr for $name {
            type Err = $crate::HexError;

            fn from_str(text: &str) -> Result<Self, $crate::HexError> {
                $crate::hash::from_hex(text).map($name)
            }
        }

        impl ::serde::Serialize for $name {
            fn serialize<S: ::serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str($crate::hash::digits(&self.0, &mut [0; $crate::hash::MOST_DIGITS]))
            }
        }

        impl<'de> ::serde::Deserialize<'de> for $name {
            fn deserialize<D: ::serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                $crate::hash::as_text::deserialize(deserializer)
            }
        }
    };
}
pub(crate) use hexadecimal;

/// A SHA-256 hash of public bytes, such as a line of a record.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Hash(pub [u8; 32]);

impl Hash {
    pub fn of(bytes: &[u8]) -> Hash {
        Hash(Sha256::digest(bytes).into())
    }
}

hexadecimal!(Hash);

/// A commitment to a content: SHA-256 of a secret salt and the content. It reveals nothing without the salt.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Commitment(pub [u8; 32]);

impl Commitment {
    pub fn of(salt: &[u8; 32], content: &str) -> Commitment {
        Commitment(Sha256::new().chain_update(salt).chain_update(content.as_bytes()).finalize().into())
    }
}

hexadecimal!(Commitment);

/// Stores keep commitments as content hashes, because they don't know records.
impl From<ContentHash> for Commitment {
    fn from(ContentHash(bytes): ContentHash) -> Commitment {
        Commitment(bytes)
    }
}

impl From<Commitment> for ContentHash {
    fn from(Commitment(bytes): Commitment) -> ContentHash {
        ContentHash(bytes)
    }
}

/// The 32 bytes that make a commitment's content impossible to guess.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Salt(pub [u8; 32]);

hexadecimal!(Salt);

/// The serde form of a type as its text.
pub(crate) mod as_text {
    use super::*;

    pub(crate) fn serialize<T: fmt::Display, S: Serializer>(value: &T, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(value)
    }

    pub(crate) fn deserialize<'de, T, D>(deserializer: D) -> Result<T, D::Error>
    where
        T: FromStr<Err: fmt::Display>,
        D: Deserializer<'de>,
    {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(D::Error::custom)
    }
}

/// The serde form of an optional value as its text or `null`.
pub(crate) mod as_text_or_null {
    use super::*;

    pub(crate) fn serialize<T: fmt::Display, S: Serializer>(
        value: &Option<T>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        value.as_ref().map(T::to_string).serialize(serializer)
    }

    pub(crate) fn deserialize<'de, T, D>(deserializer: D) -> Result<Option<T>, D::Error>
    where
        T: FromStr<Err: fmt::Display>,
        D: Deserializer<'de>,
    {
        let text = Option::<String>::deserialize(deserializer)?;
        text.map(|text| text.parse().map_err(D::Error::custom)).transpose()
    }
}

/// The serde form of a list of values as their texts.
pub(crate) mod as_texts {
    use super::*;

    pub(crate) fn serialize<T: fmt::Display, S: Serializer>(values: &[T], serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(values.iter().map(T::to_string))
    }

    pub(crate) fn deserialize<'de, T, D>(deserializer: D) -> Result<Vec<T>, D::Error>
    where
        T: FromStr<Err: fmt::Display>,
        D: Deserializer<'de>,
    {
        let texts = Vec::<String>::deserialize(deserializer)?;
        texts.iter().map(|text| text.parse().map_err(D::Error::custom)).collect()
    }
}
