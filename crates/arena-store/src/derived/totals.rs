//! The totals, in the table `totals`.

use std::collections::BTreeMap;

use crate::errors::Failure;
use crate::plan::{PARTICIPANTS, games_of};
use crate::sql::{Columns, Db};

pub(crate) const TOTALS: &str = "SELECT name, n FROM totals";

/// Reads the name and the value of a total. A value that isn't an integer is read as -1, which no total can be.
pub(crate) fn read_total(row: &dyn Columns) -> (String, i64) {
    (row.text(0).unwrap_or_default().to_owned(), row.integer(1).unwrap_or(-1))
}

/// Counts the totals by name, from the listed sessions that have ended and their players.
pub(crate) async fn count_totals(db: &mut Db) -> Result<BTreeMap<String, i64>, Failure> {
    let sql = "SELECT s.type, count(*) FROM endings e JOIN sessions s ON s.no = e.session
         WHERE s.ending = 'completed' AND s.unlisted = 0 GROUP BY s.type";
    let games = db.list(sql, &[], |row| Ok((games_of(row.text(0).unwrap_or_default()), row.integer(1)?))).await?;
    let mut totals: BTreeMap<String, i64> = games.into_iter().collect();
    let participants = db.number("SELECT count(*) FROM careers WHERE n = 1", &[]).await?;
    totals.insert(PARTICIPANTS.to_owned(), participants);
    Ok(totals)
}

/// Returns the differences between the correct totals and the stored ones, by name.
pub(crate) async fn missing_totals(db: &mut Db) -> Result<BTreeMap<String, i64>, Failure> {
    db.read_whole_tables().await?;
    let mut missing = count_totals(db).await?;
    for (name, n) in db.list(TOTALS, &[], |row| Ok(read_total(row))).await? {
        let missing = missing.entry(name).or_default();
        *missing = missing.saturating_sub(n);
    }
    missing.retain(|_, n| *n != 0);
    Ok(missing)
}
