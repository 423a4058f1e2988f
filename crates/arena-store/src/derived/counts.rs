//! The counts of sessions, in the table `session_counts`.

use arena_model::Status;

use crate::StoreError;
use crate::mirror::{Counts, Delta};
use crate::sql::Db;

/// Selects block, type, status and number of sessions. Unlisted sessions have the type
/// [`UNLISTED`](crate::mirror::counts::UNLISTED), which is the empty text.
macro_rules! counted_sessions {
    () => {
        "SELECT no / 256, CASE WHEN unlisted = 0 THEN type ELSE '' END, status, count(*) FROM sessions
         WHERE status IN ('open', 'active', 'ended') GROUP BY 1, 2, 3"
    };
}

/// Counts the differences between the counts of sessions and the stored ones. A stored 0 is like no row.
pub(crate) const WRONG_COUNTS: &str = concat!(
    "WITH counted (block, type, status, n) AS (",
    counted_sessions!(),
    "), stored (block, type, status, n) AS (SELECT block, type, status, n FROM session_counts WHERE n <> 0)
     SELECT (SELECT count(*) FROM (SELECT * FROM counted EXCEPT SELECT * FROM stored) AS missing)
          + (SELECT count(*) FROM (SELECT * FROM stored EXCEPT SELECT * FROM counted) AS wrong)"
);

/// Recomputes the counts of sessions.
pub(crate) const COUNT_SESSIONS: &str =
    concat!("DELETE FROM session_counts; INSERT INTO session_counts (block, type, status, n) ", counted_sessions!());

/// Reads the stored counts, except invalid ones. The second value is true if all are valid.
pub(crate) async fn read_counts(db: &mut Db) -> Result<(Counts, bool), StoreError> {
    let (mut delta, mut possible) = (Delta::default(), true);
    db.each("SELECT block, type, status, n FROM session_counts WHERE n <> 0", &[], |row| {
        let key = || -> Option<_> {
            let status = Status::from_wire(row.text(2).ok()?)?;
            Some(((row.integer(0).ok()?, row.text(1).ok()?.to_owned(), status), row.integer(3).ok()?))
        };
        match key() {
            Some((key, n)) => drop(delta.sessions.insert(key, n)),
            None => possible = false,
        }
        Ok(())
    })
    .await?;
    let mut counts = Counts::default();
    possible &= counts.apply(&delta);
    Ok((counts, possible))
}
