//! Descriptions of tables, and the SQL statements that both backends derive from them.

use std::borrow::Cow;

use super::value::Value;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Integer,
    Small,
    Text,
    Bytes,
}

impl Kind {
    /// Returns the Postgres array type for a list of values of this type.
    pub(crate) fn list(self) -> &'static str {
        match self {
            Kind::Integer => "int8[]",
            Kind::Small => "int2[]",
            Kind::Text => "text[]",
            Kind::Bytes => "bytea[]",
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ColumnWrites {
    /// Only the insertion of the row.
    Once,
    /// The insertion, and every update of the row.
    Updated,
    /// The insertion, and updates that change the column. The column has an index, and SQLite rewrites an index
    /// whenever an update names its column.
    Indexed,
}

#[derive(Debug)]
pub(crate) struct Column {
    pub(crate) name: &'static str,
    pub(crate) kind: Kind,
    pub(crate) written: ColumnWrites,
}

/// The description of a table that commits write.
pub(crate) trait Table {
    const NAME: &'static str;
    const COLUMNS: &'static [Column];
    /// The data from which a row is written.
    type Row<'r>;

    fn value<'r>(row: &Self::Row<'r>, column: usize) -> Value<'r>;

    fn values<'r>(row: &Self::Row<'r>) -> impl Iterator<Item = Value<'r>> {
        (0..Self::COLUMNS.len()).map(|column| Self::value(row, column))
    }
}

/// Describes a table: `Variant "column" Kind ColumnWrites => value;`. The value expressions refer to the row by the
/// name before its type.
macro_rules! table {
    ($(#[$about:meta])* $table:ident $name:literal, $row:ident: $of:ty, $lifetime:lifetime {
        $($(#[$doc:meta])* $variant:ident $column:literal $kind:ident $written:ident => $value:expr;)*
    }) => {
        $(#[$about])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(crate) enum $table {
            $($(#[$doc])* $variant,)*
        }

        impl $crate::sql::Table for $table {
            const NAME: &'static str = $name;
            const COLUMNS: &'static [$crate::sql::Column] = &[$($crate::sql::Column {
                name: $column,
                kind: $crate::sql::Kind::$kind,
                written: $crate::sql::ColumnWrites::$written,
            },)*];
            type Row<$lifetime> = $of;

            #[inline]
            fn value<$lifetime>($row: &Self::Row<$lifetime>, column: usize) -> $crate::sql::Value<$lifetime> {
                $(if column == $table::$variant as usize {
                    return $crate::sql::Value::from($value);
                })*
                $crate::sql::Value::Integer(None)
            }
        }
    };
}

pub(crate) use table;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Dialect {
    Sqlite,
    Postgres,
}

impl Dialect {
    /// Returns a column's name. `user` is a keyword in Postgres, so the column has another name there.
    pub(crate) fn column(self, name: &'static str) -> &'static str {
        match (self, name) {
            (Dialect::Sqlite, "user_no") => "user",
            _ => name,
        }
    }

    /// Adapts a statement whose two versions differ only in the names of columns.
    pub(crate) fn sql(self, sql: &str) -> Cow<'_, str> {
        match self {
            Dialect::Sqlite if sql.contains("user_no") => Cow::Owned(sql.replace("user_no", "user")),
            Dialect::Sqlite | Dialect::Postgres => Cow::Borrowed(sql),
        }
    }

    /// Returns the end of a condition that requires a column's value to be in the list `parameter`, such as `$1`.
    pub(crate) fn any(self, parameter: &str) -> String {
        match self {
            Dialect::Sqlite => format!("IN (SELECT value FROM json_each({parameter}))"),
            Dialect::Postgres => format!("= ANY({parameter})"),
        }
    }

    /// Returns the suffix of a SELECT that locks its row for a later update.
    pub(crate) fn for_update(self) -> &'static str {
        match self {
            Dialect::Sqlite => "",
            Dialect::Postgres => " FOR UPDATE",
        }
    }

    /// Returns the condition that finds sessions by a list of ids, `$2`, with an index. `$1` is the list of the ids' last
    /// twelve characters.
    pub(crate) fn by_ids(self) -> String {
        let end = match self {
            Dialect::Sqlite => "substr(s.id, -12)",
            Dialect::Postgres => "right(s.id, 12)",
        };
        format!("{end} {} AND s.id {}", self.any("$1"), self.any("$2"))
    }

    /// Returns the condition that finds a session by its id, `$1`, with an index.
    pub(crate) fn by_id(self) -> &'static str {
        match self {
            Dialect::Sqlite => "substr(s.id, -12) = substr($1, -12) AND s.id = $1",
            Dialect::Postgres => "right(s.id, 12) = right($1, 12) AND s.id = $1",
        }
    }

    /// Returns the condition that finds an invite by its code, `$1`, with an index.
    pub(crate) fn by_code(self) -> &'static str {
        match self {
            Dialect::Sqlite => "i.made = substr($1, -12) AND i.code = $1",
            Dialect::Postgres => "i.made = right($1, 12) AND i.code = $1",
        }
    }
}

/// Lists the columns of a table in the order of its description, each with a prefix such as `s.`.
pub(crate) fn columns<T: Table>(prefix: &str) -> String {
    let mut columns = String::with_capacity(T::COLUMNS.len() * 16);
    for column in T::COLUMNS {
        let separator = if columns.is_empty() { "" } else { ", " };
        columns.extend([separator, prefix, column.name]);
    }
    columns
}

/// Builds the statement that inserts rows. In SQLite the parameters are the values of one row; in Postgres they are
/// lists, one for each column. `conflict` is the clause after the values.
pub(crate) fn insert<T: Table>(dialect: Dialect, conflict: &str) -> String {
    let name = T::NAME;
    let columns: Vec<&str> = T::COLUMNS.iter().map(|column| dialect.column(column.name)).collect();
    let columns = columns.join(", ");
    let values: Vec<String> = (1..)
        .zip(T::COLUMNS)
        .map(|(at, Column { kind, .. })| match dialect {
            Dialect::Sqlite => format!("?{at}"),
            Dialect::Postgres => format!("${at}::{}", kind.list()),
        })
        .collect();
    let values = values.join(", ");
    match dialect {
        Dialect::Sqlite => format!("INSERT INTO {name} ({columns}) VALUES ({values}) {conflict}"),
        Dialect::Postgres => format!("INSERT INTO {name} ({columns}) SELECT * FROM unnest({values}) {conflict}"),
    }
}

/// The number of rows that a statement with [`tuples`] inserts at once.
pub(crate) const INSERTED: usize = 100;

/// Returns the parameters of rows that are inserted by one statement of both databases: `($1, $2), ($3, $4)`.
pub(crate) fn tuples(rows: usize, columns: usize) -> String {
    let tuple = |row: usize| {
        let parameters: Vec<String> = (1..=columns).map(|column| format!("${}", row * columns + column)).collect();
        format!("({})", parameters.join(", "))
    };
    (0..rows).map(tuple).collect::<Vec<_>>().join(", ")
}
