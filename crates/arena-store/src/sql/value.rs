//! Values of parameters and columns, common to both backends.

use std::borrow::Cow;

use rusqlite::types::{ToSqlOutput, ValueRef};
use tokio_postgres::types::private::BytesMut;
use tokio_postgres::types::{IsNull, Type, to_sql_checked};

use super::encoding::{decode, encode};
use crate::StoreError;

#[derive(Debug, Clone)]
pub(crate) enum Value<'v> {
    Integer(Option<i64>),
    Real(f64),
    /// A text that this program creates, such as JSON, an id or a keyword.
    Text(Option<Cow<'v, str>>),
    /// A text from a user. It may contain any character, so Postgres stores it encoded.
    Prose(Option<Cow<'v, str>>),
    Bytes(&'v [u8]),
    /// A list of texts or integers, for a condition from [`Dialect::any`](crate::sql::Dialect::any). For Postgres
    /// also a column of new rows.
    List(Vec<Value<'v>>),
}

impl<'v> Value<'v> {
    pub(crate) fn prose(text: impl Into<Cow<'v, str>>) -> Value<'v> {
        Value::Prose(Some(text.into()))
    }

    fn text_or_null(&self) -> Option<&str> {
        match self {
            Value::Text(text) | Value::Prose(text) => text.as_deref(),
            Value::Integer(_) | Value::Real(_) | Value::Bytes(_) | Value::List(_) => None,
        }
    }

    /// Converts a list to JSON, for SQLite.
    fn json(&self) -> serde_json::Value {
        match self {
            Value::Integer(number) => (*number).into(),
            Value::Real(number) => (*number).into(),
            Value::List(values) => values.iter().map(Value::json).collect(),
            value => value.text_or_null().into(),
        }
    }
}

impl From<i64> for Value<'_> {
    fn from(number: i64) -> Self {
        Value::Integer(Some(number))
    }
}

impl From<Option<i64>> for Value<'_> {
    fn from(number: Option<i64>) -> Self {
        Value::Integer(number)
    }
}

impl From<f64> for Value<'_> {
    fn from(number: f64) -> Self {
        Value::Real(number)
    }
}

impl<'v> From<&'v str> for Value<'v> {
    fn from(text: &'v str) -> Self {
        Value::Text(Some(text.into()))
    }
}

impl From<String> for Value<'_> {
    fn from(text: String) -> Self {
        Value::Text(Some(text.into()))
    }
}

impl<'v> From<Option<&'v str>> for Value<'v> {
    fn from(text: Option<&'v str>) -> Self {
        Value::Text(text.map(Cow::Borrowed))
    }
}

impl From<Option<String>> for Value<'_> {
    fn from(text: Option<String>) -> Self {
        Value::Text(text.map(Cow::Owned))
    }
}

impl<'v> From<&'v [u8]> for Value<'v> {
    fn from(bytes: &'v [u8]) -> Self {
        Value::Bytes(bytes)
    }
}

/// Converts a number of rows or an offset to the databases' type of integers.
pub(crate) fn count(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

impl rusqlite::ToSql for Value<'_> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(match self {
            Value::Integer(number) => number.map_or(ValueRef::Null, ValueRef::Integer),
            Value::Real(number) => ValueRef::Real(*number),
            Value::Text(_) | Value::Prose(_) => {
                self.text_or_null().map_or(ValueRef::Null, |text| ValueRef::Text(text.as_bytes()))
            }
            Value::Bytes(bytes) => ValueRef::Blob(bytes),
            Value::List(_) => return Ok(ToSqlOutput::from(self.json().to_string())),
        }))
    }
}

impl tokio_postgres::types::ToSql for Value<'_> {
    fn to_sql(&self, ty: &Type, out: &mut BytesMut) -> Result<IsNull, Box<dyn std::error::Error + Sync + Send>> {
        match self {
            Value::Integer(None) | Value::Text(None) | Value::Prose(None) => Ok(IsNull::Yes),
            Value::Integer(Some(number)) if *ty == Type::INT2 => i16::try_from(*number)?.to_sql(ty, out),
            Value::Integer(Some(number)) => number.to_sql(ty, out),
            Value::Real(number) => number.to_sql(ty, out),
            Value::Text(Some(text)) => text.as_ref().to_sql(ty, out),
            Value::Prose(Some(text)) => encode(text).as_ref().to_sql(ty, out),
            Value::Bytes(bytes) => bytes.to_sql(ty, out),
            Value::List(values) => values.to_sql(ty, out),
        }
    }

    fn accepts(ty: &Type) -> bool {
        const SINGLE: [Type; 5] = [Type::INT2, Type::INT8, Type::FLOAT8, Type::TEXT, Type::BYTEA];
        const LISTS: [Type; 3] = [Type::INT8_ARRAY, Type::TEXT_ARRAY, Type::BYTEA_ARRAY];
        SINGLE.contains(ty) || LISTS.contains(ty)
    }

    to_sql_checked!();
}

/// A row of a result, from either database. A column is identified by its position in the statement, from 0. For whole
/// rows of a table, the positions are the variants of the table's description in `tables/`.
pub(crate) trait Columns {
    fn integer(&self, column: usize) -> Result<i64, StoreError> {
        self.integer_or_null(column)?.ok_or_else(|| missing("an integer", column))
    }

    fn integer_or_null(&self, column: usize) -> Result<Option<i64>, StoreError>;

    fn real(&self, column: usize) -> Result<f64, StoreError>;

    /// Returns a text that this program created.
    fn text(&self, column: usize) -> Result<&str, StoreError> {
        self.text_or_null(column)?.ok_or_else(|| missing("a text", column))
    }

    fn text_or_null(&self, column: usize) -> Result<Option<&str>, StoreError>;

    fn bytes(&self, column: usize) -> Result<&[u8], StoreError>;

    /// Returns a text from a user, decoded.
    fn prose(&self, column: usize) -> Result<Cow<'_, str>, StoreError> {
        self.prose_or_null(column)?.ok_or_else(|| missing("a text", column))
    }

    fn prose_or_null(&self, column: usize) -> Result<Option<Cow<'_, str>>, StoreError>;
}

fn missing(wanted: &str, column: usize) -> StoreError {
    StoreError::Database(format!("column {column} of a row is not {wanted}"))
}

impl Columns for rusqlite::Row<'_> {
    fn integer_or_null(&self, column: usize) -> Result<Option<i64>, StoreError> {
        Ok(self.get(column)?)
    }

    fn real(&self, column: usize) -> Result<f64, StoreError> {
        Ok(self.get(column)?)
    }

    fn text_or_null(&self, column: usize) -> Result<Option<&str>, StoreError> {
        Ok(self.get_ref(column)?.as_str_or_null().map_err(rusqlite::Error::from)?)
    }

    fn bytes(&self, column: usize) -> Result<&[u8], StoreError> {
        Ok(self.get_ref(column)?.as_blob().map_err(rusqlite::Error::from)?)
    }

    fn prose_or_null(&self, column: usize) -> Result<Option<Cow<'_, str>>, StoreError> {
        Ok(self.text_or_null(column)?.map(Cow::Borrowed))
    }
}

impl Columns for tokio_postgres::Row {
    fn integer_or_null(&self, column: usize) -> Result<Option<i64>, StoreError> {
        // Channels have two bytes.
        if self.columns().get(column).is_some_and(|column| *column.type_() == Type::INT2) {
            return Ok(self.try_get::<_, Option<i16>>(column)?.map(i64::from));
        }
        Ok(self.try_get(column)?)
    }

    fn real(&self, column: usize) -> Result<f64, StoreError> {
        Ok(self.try_get(column)?)
    }

    fn text_or_null(&self, column: usize) -> Result<Option<&str>, StoreError> {
        Ok(self.try_get(column)?)
    }

    fn bytes(&self, column: usize) -> Result<&[u8], StoreError> {
        Ok(self.try_get(column)?)
    }

    fn prose_or_null(&self, column: usize) -> Result<Option<Cow<'_, str>>, StoreError> {
        Ok(self.text_or_null(column)?.map(decode))
    }
}
