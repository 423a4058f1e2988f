//! SQL for both databases: values and columns, descriptions of tables, connections.

mod db;
mod dialect;
mod encoding;
mod value;

pub(crate) use self::db::{Db, PooledConnection, at_once, each_of_sqlite, parameters};
pub(crate) use self::dialect::{Column, ColumnWrites, Dialect, INSERTED, Kind, Table, columns, insert, table, tuples};
pub(crate) use self::value::{Columns, Value, count};
