//! Columns with JSON, with values that have a text form, and with hashes.

use std::str::FromStr;

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::StoreError;
use crate::sql::Columns;

pub(crate) fn to_json(value: &impl Serialize) -> String {
    serde_json::to_string(value).expect("lists of texts and numbers are JSON")
}

pub(crate) fn json<T: DeserializeOwned>(text: &str) -> Result<T, String> {
    serde_json::from_str(text).map_err(|error| error.to_string())
}

pub(crate) fn parse<T: FromStr<Err: ToString>>(text: &str) -> Result<T, String> {
    text.parse().map_err(|error: T::Err| error.to_string())
}

/// Reads 32 bytes: a hash or a seed.
pub(crate) fn read_bytes(row: &dyn Columns, column: usize) -> Result<[u8; 32], StoreError> {
    row.bytes(column)?.try_into().map_err(|_| StoreError::Database(format!("column {column} of a row isn't 32 bytes")))
}
