//! SQL for both databases: values and columns, descriptions of tables, connections.

pub(crate) mod db;
pub(crate) mod dialect;
mod encoding;
pub(crate) mod value;
