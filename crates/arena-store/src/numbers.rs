//! Numbers of rows, in the order in which the rows were added.

/// Internal numbers are small and follow the order of creation. The default is before all sessions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct SessionNo(pub(crate) i64);

/// The position of an ended session in the order of endings. Later endings have greater numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct EndingNo(pub(crate) i64);

/// The number of an audit entry. Numbers are 1, 2, 3 … in the order of commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct AuditNo(pub u64);

/// The last assigned row numbers. New rows get the next numbers. A shared database assigns the numbers instead.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Numbers {
    pub(crate) session: i64,
    pub(crate) user: i64,
    pub(crate) ending: i64,
}

impl Numbers {
    /// Selects the columns of [`Numbers`], in the order of its fields.
    pub(crate) const LAST: &str =
        "SELECT (SELECT coalesce(max(no), 0) FROM sessions), (SELECT coalesce(max(no), 0) FROM users),
         (SELECT coalesce(max(n), 0) FROM endings)";

    /// Replaces the numbers with those from the database. The last number of an ending never decreases, so that the
    /// number of a deleted ending isn't reused.
    pub(crate) fn read_again(&mut self, numbers: Numbers) {
        *self = Numbers { ending: numbers.ending.max(self.ending), ..numbers };
    }
}
