//! The histories of users, in the table `careers`.

use std::collections::BTreeMap;

use arena_model::UserId;

use super::standings::{recount, write_career};
use crate::errors::Failure;
use crate::sql::{Db, Value};
use crate::tables::{STANDINGS, users_in};
use crate::writing::Writing;

/// Selects all listed sessions that have ended, with their players, in the order of their endings.
const ENDED_PLAYERS: &str = "SELECT s.no, s.players FROM endings e JOIN sessions s ON s.no = e.session
     WHERE s.unlisted = 0 ORDER BY e.n";

/// Returns the correct history of each user whose stored one is wrong: the ended sessions in the order of their endings.
pub(crate) async fn wrong_histories(db: &mut Db) -> Result<BTreeMap<String, Vec<i64>>, Failure> {
    let mut histories = BTreeMap::<String, Vec<i64>>::new();
    db.each(ENDED_PLAYERS, &[], |row| {
        let no = row.integer(0)?;
        for user in users_in(row.text(1).unwrap_or_default()) {
            histories.entry(user).or_default().push(no);
        }
        Ok(())
    })
    .await?;
    let (mut wrong, mut stored) = (BTreeMap::new(), (String::new(), StoredHistory::default()));
    let mut compare = |user: String, stored: StoredHistory, histories: &mut BTreeMap<String, Vec<i64>>| {
        let sessions = histories.remove(&user).unwrap_or_default();
        // Nothing can repair the history of an invalid id.
        if user.parse::<UserId>().is_ok() && !stored.is(&sessions) {
            wrong.insert(user, sessions);
        }
    };
    let sql = "SELECT u.id, c.n, c.session FROM careers c JOIN users u ON u.no = c.user_no ORDER BY c.user_no, c.n";
    db.each(sql, &[], |row| {
        let (n, session) = (row.integer(1)?, row.integer(2).unwrap_or(-1));
        let user = row.prose(0).unwrap_or_default();
        if user != stored.0 {
            let (user, history) = std::mem::replace(&mut stored, (user.into_owned(), StoredHistory::default()));
            compare(user, history, &mut histories);
        }
        stored.1.add(n, session);
        Ok(())
    })
    .await?;
    compare(stored.0, stored.1, &mut histories);
    // The remaining users have no stored history.
    wrong.extend(histories);
    Ok(wrong)
}

/// A user's history, as `careers` has it.
#[derive(Debug, Default)]
struct StoredHistory {
    sessions: Vec<i64>,
    /// The greatest position in the history.
    last: i64,
    /// The number of sessions that row 0 of the career states.
    stated: i64,
}

impl StoredHistory {
    fn add(&mut self, n: i64, session: i64) {
        if n == 0 {
            self.stated = session;
        } else {
            self.sessions.push(session);
            self.last = self.last.max(n);
        }
    }

    /// True if the history has exactly these sessions, without gaps between its positions.
    fn is(&self, sessions: &[i64]) -> bool {
        let sorted = |sessions: &[i64]| {
            let mut sessions = sessions.to_vec();
            sessions.sort_unstable();
            sessions
        };
        let count = sessions.len() as i64;
        self.last == count && self.stated == count && sorted(&self.sessions) == sorted(sessions)
    }
}

/// Replaces the histories and standings of some users.
pub(crate) async fn mend_histories(
    writing: &mut Writing,
    histories: BTreeMap<String, Vec<i64>>,
) -> Result<(), Failure> {
    let sql = format!(
        "INSERT INTO careers (user_no, n, session)
         SELECT CAST($1 AS bigint), row_number() OVER (ORDER BY e.n), e.session FROM endings e WHERE e.session {}",
        writing.db.dialect().any("$2")
    );
    for (user, sessions) in histories {
        let no = writing.user_no(&user).await?;
        let db = &mut writing.db;
        db.execute("DELETE FROM careers WHERE user_no = $1", &[no.into()]).await?;
        let sessions = Value::List(sessions.into_iter().map(Value::from).collect());
        db.execute(&sql, &[no.into(), sessions]).await?;
        let career = recount(db, &writing.scoring, no).await?;
        write_career(db, no, &career).await?;
    }
    writing.changed.insert(STANDINGS);
    Ok(())
}
