//! The journal by which nodes on one database follow each other's commits. Its numbers have no gaps and follow the order of commits
//! (docs/decisions/0024).

use std::collections::BTreeSet;
use std::time::Duration;

use arena_model::{Channel, SessionId, Status};
use tokio_postgres::{Client, Error, Row};

use super::connection::{Holder, Sharing};
use crate::StoreError;
use crate::counts::Delta;
use crate::rows::{Columns, to_json};

/// How the public channel is called, among sessions.
const PUBLIC: &str = "invites";

/// The name, among sessions, under which the journal tells that derived tables were made again.
const DERIVED: &str = "derived";

/// Most rows of the journal that are read at a time.
const PAGE: i64 = 1000;

/// What a commit means to other nodes.
#[derive(Debug, Default)]
pub(crate) struct News {
    /// Sessions that have changed, or in which something was said, by their ids; or the public channel.
    pub(crate) changed: BTreeSet<String>,
    /// Likewise, where a message has lost its content.
    pub(crate) hidden: BTreeSet<String>,
    /// Users whose standings have changed, by their numbers.
    pub(crate) users: BTreeSet<i64>,
    /// Whether bans or benchmark models have changed.
    pub(crate) administration: bool,
    /// True if derived tables were made again, so that all of them have to be read anew.
    pub(crate) derived: bool,
}

impl News {
    /// Notes that a channel has grown.
    pub(crate) fn add_channel(&mut self, channel: Channel) {
        self.changed.insert(name_of(channel));
    }

    /// Notes that a session has changed or is gone.
    pub(crate) fn add_session(&mut self, id: SessionId) {
        self.changed.insert(id.to_string());
    }

    /// Notes that a message of a channel has lost its content.
    pub(crate) fn add_hidden(&mut self, channel: Channel) {
        self.hidden.insert(name_of(channel));
    }

    /// Whether there is nothing to tell.
    pub(crate) fn is_empty(&self, delta: &Delta) -> bool {
        let News { changed, hidden, users, administration, derived } = self;
        let counted = delta.sessions.values().any(|n| *n != 0);
        changed.is_empty() && hidden.is_empty() && users.is_empty() && !administration && !derived && !counted
    }
}

fn name_of(channel: Channel) -> String {
    match channel {
        Channel::Chat(id) | Channel::Operator(id) => id.to_string(),
        Channel::Invites => PUBLIC.to_owned(),
    }
}

/// Waits until no other transaction is about to be committed, and keeps others from it until this one is. Returns how long it waited.
pub(crate) async fn take_turn(client: &Client, sharing: &Sharing) -> Result<Duration, Error> {
    let waited_us: i64 = client.query_one(&sharing.take_turn, &[]).await?.try_get(1)?;
    Ok(Duration::from_micros(waited_us.unsigned_abs()))
}

/// Puts down what the transaction has changed. It has its turn.
pub(crate) async fn write(holder: &Holder, sharing: &Sharing, news: &News, delta: &Delta) -> Result<(), Error> {
    let derived = news.derived.then_some(DERIVED);
    let changed: Vec<&str> = news.changed.iter().map(String::as_str).chain(derived).collect();
    let hidden: Vec<&str> = news.hidden.iter().map(String::as_str).collect();
    let users: Vec<i64> = news.users.iter().copied().collect();
    let counted = delta.sessions.iter().filter(|(_, n)| **n != 0);
    let counts: Vec<(i64, &str, &str, i64)> =
        counted.map(|((block, challenge, status), n)| (*block, challenge.as_str(), status.as_str(), *n)).collect();
    let counts = to_json(&counts);
    let row: [&(dyn tokio_postgres::types::ToSql + Sync); 6] =
        [&sharing.node, &changed, &hidden, &users, &counts, &news.administration];
    holder.client.execute(&sharing.insert_journal, &row).await.map(drop)
}

/// A place in the journal: the number and the identity of an entry. No identity where there is no entry yet.
#[derive(Debug, Clone, Default)]
pub(crate) struct Place {
    pub(crate) n: i64,
    pub(crate) mark: Option<String>,
}

/// Reads who has the database, the time there, the entry at a number, the last number, and the journal behind the first number.
pub(crate) fn look() -> String {
    format!(
        "SELECT (SELECT value FROM notes WHERE name = 'holder'), {NOW_MS}, (SELECT mark FROM journal WHERE n = $1),
             (SELECT coalesce(max(n), 0) FROM journal), j.*
         FROM (VALUES (1)) AS once LEFT JOIN (SELECT n, node, changed, hidden, users, counts, administration, mark FROM journal
             WHERE n > $1 ORDER BY n LIMIT {PAGE}) j ON true ORDER BY j.n"
    )
}

/// The database's time, in milliseconds since the epoch.
pub(crate) const NOW_MS: &str = "(extract(epoch FROM clock_timestamp()) * 1000)::bigint";

/// What a look has found.
pub(crate) struct Look {
    /// Which arena, or which nodes, have the database.
    pub(crate) holder: Option<String>,
    /// The database's time.
    pub(crate) now_ms: i64,
    /// The identity of the entry at the number behind which was looked.
    seen: Option<String>,
    /// The last number.
    last: i64,
    pub(crate) entries: Vec<Entry>,
    /// Whether there may be more behind the last one.
    pub(crate) is_full: bool,
}

/// One row of the journal.
pub(crate) struct Entry {
    pub(crate) n: i64,
    pub(crate) node: String,
    pub(crate) mark: String,
    pub(crate) news: News,
    pub(crate) delta: Delta,
}

impl Look {
    pub(crate) fn read(rows: &[Row]) -> Result<Look, StoreError> {
        let first =
            rows.first().ok_or_else(|| StoreError::Database("a look at the journal found no row".to_owned()))?;
        let mut entries = Vec::new();
        for row in rows {
            let Some(n) = row.integer_or_null(4)? else { continue };
            entries.push(Entry::read(n, row)?);
        }
        let is_full = rows.len() as i64 >= PAGE;
        let text = |column: usize| -> Result<_, StoreError> { Ok(first.text_or_null(column)?.map(str::to_owned)) };
        let (holder, now_ms, seen, last) = (text(0)?, first.integer(1)?, text(2)?, first.integer(3)?);
        Ok(Look { holder, now_ms, seen, last, entries, is_full })
    }

    /// True if the entry at this place, which was read once, is another one now or was never written.
    pub(crate) fn is_rewound(&self, place: &Place) -> bool {
        let was_removed = self.seen.is_none() && self.last > place.n;
        place.mark.is_some() && self.seen != place.mark && !was_removed
    }

    /// True if entries behind this place, or the one at it, have been removed for their age.
    pub(crate) fn is_forgotten(&self, place: &Place) -> bool {
        (place.mark.is_some() && self.seen.is_none())
            || self.entries.first().is_some_and(|first| first.n != place.n + 1)
    }
}

impl Entry {
    fn read(n: i64, row: &Row) -> Result<Entry, StoreError> {
        let damaged = |reason: String| StoreError::Damaged { what: format!("entry {n} of the journal"), reason };
        let names = |column: usize| -> Result<BTreeSet<String>, StoreError> {
            Ok(row.try_get::<_, Vec<String>>(column)?.into_iter().collect())
        };
        let counts: Vec<(i64, String, String, i64)> =
            serde_json::from_str(row.text(9)?).map_err(|error| damaged(error.to_string()))?;
        let mut delta = Delta::default();
        for (block, challenge, status, n) in counts {
            let known = Status::from_wire(&status).ok_or_else(|| damaged(format!("unknown status {status}")))?;
            delta.sessions.insert((block, challenge, known), n);
        }
        let users: Vec<i64> = row.try_get(8)?;
        let (changed, hidden) = (names(6)?, names(7)?);
        let derived = changed.contains(DERIVED);
        let users = users.into_iter().collect();
        let news = News { changed, hidden, users, administration: row.try_get(10)?, derived };
        Ok(Entry { n, node: row.text(5)?.to_owned(), mark: row.text(11)?.to_owned(), news, delta })
    }
}

/// What other nodes have changed, for whoever keeps something of the store in memory.
#[derive(Debug, Default)]
pub struct Changes {
    /// Sessions that have changed, or in which something was said.
    pub sessions: BTreeSet<SessionId>,
    /// Sessions in which a message has lost its content.
    pub hidden: BTreeSet<SessionId>,
    /// Whether the public channel has grown.
    pub public: bool,
    /// Whether a message of the public channel has lost its content.
    pub public_hidden: bool,
    /// Whether bans or benchmark models have changed.
    pub administration: bool,
    /// Whether so much has changed, or so long ago, that nobody knows what: everything may have.
    pub everything: bool,
}

impl Changes {
    /// Whether nothing has changed.
    pub fn is_empty(&self) -> bool {
        let Changes { sessions, hidden, public, public_hidden, administration, everything } = self;
        sessions.is_empty() && hidden.is_empty() && !(*public || *public_hidden || *administration || *everything)
    }

    pub(crate) fn add(&mut self, news: &News) {
        for name in &news.changed {
            match name.parse() {
                Ok(id) => drop(self.sessions.insert(id)),
                Err(_) => self.public |= name == PUBLIC,
            }
        }
        for name in &news.hidden {
            match name.parse() {
                Ok(id) => drop(self.hidden.insert(id)),
                Err(_) => self.public_hidden |= name == PUBLIC,
            }
        }
        self.administration |= news.administration;
    }
}
