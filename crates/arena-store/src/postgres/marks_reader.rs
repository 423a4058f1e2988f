//! The task that reads marks. Callers that wait at the same time share one query, which begins after all of them have
//! come (docs/decisions/0024).

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use arena_model::{Channel, Timestamp};
use tokio::sync::{mpsc, oneshot};

use super::connection::{NOW_MS, Reach, SERVER_START};
use super::readers::PostgresReaders;
use crate::sql::{Columns, Table, Value, columns, count, parameters};
use crate::tables::{Messages, Sessions, read_message, read_session, session_channel};
use crate::{DatabaseUrl, FoundSession, Marks, Nodes, SessionMark, SessionNews, SessionNo, StoreError, StoredSession};

/// The maximum number of callers that share a query.
const MOST_ASKED: usize = 1024;

/// The pause after a failed query. All callers that need its result wait for it.
const RETRY_PAUSE: Duration = Duration::from_millis(100);

/// The maximum numbers of new messages that a read of marks returns, of one channel and of all. Callers read further ones
/// themselves.
const MOST_NEWS: (u64, u64) = (64, 512);

/// A caller that waits for the next query, with its state of sessions.
pub(super) type Asking = (Vec<SessionMark>, oneshot::Sender<Result<Arc<Marks>, StoreError>>);

/// The task that reads marks. All callers that come during a query share the next one.
pub(super) struct MarksReader {
    nodes: Arc<Nodes>,
    /// The id of the group of nodes. A database with another id has been used without this node.
    holder: String,
    database: DatabaseUrl,
    reader: PostgresReaders,
    reach: Reach,
    sql: String,
    /// The number of the last ending in the last query.
    last_ending: i64,
}

impl MarksReader {
    pub(super) fn new(
        nodes: &Arc<Nodes>,
        holder: &str,
        database: &DatabaseUrl,
        reach: &Reach,
    ) -> Result<MarksReader, StoreError> {
        // A session is read whole only if it exceeds the caller's mark: a null finds no row. With limits, the plan can only
        // be to find each row by its key.
        let last = "LEFT JOIN LATERAL (SELECT idx, at FROM messages WHERE session = m.no AND channel =";
        let sql = format!(
            "SELECT f.*, (SELECT value FROM notes WHERE name = 'holder'), {NOW_MS}, {SERVER_START},
                 (SELECT idx FROM messages WHERE session = 0 AND channel = 2 ORDER BY idx DESC LIMIT 1),
                 (SELECT n FROM endings ORDER BY n DESC LIMIT 1),
                 (SELECT string_agg(kind || ' ' || n, ' ') FROM changes)
             FROM (VALUES (1)) AS once LEFT JOIN
                 (SELECT {}, m.no, m.version, m.edits, coalesce(chat.idx, 0), coalesce(operator.idx, 0),
                      coalesce(chat.idx, a.chat_len, 0), coalesce(operator.idx, a.operator_len, 0),
                      coalesce(chat.at, a.chat_at, 0), coalesce(operator.at, a.operator_at, 0)
                  FROM unnest($1::int8[], $2::int8[], $3::int8[], $4::int8[], $5::int8[])
                      AS w (no, version, edits, chat, operator)
                  CROSS JOIN LATERAL (SELECT no, version, edits FROM sessions WHERE no = w.no LIMIT 1) m
                  {last} 0 ORDER BY idx DESC LIMIT 1) chat ON true
                  {last} 1 ORDER BY idx DESC LIMIT 1) operator ON true
                  LEFT JOIN LATERAL (SELECT * FROM sessions WHERE no = CASE WHEN m.version > w.version OR m.edits > w.edits
                      OR chat.idx > w.chat OR operator.idx > w.operator THEN m.no END LIMIT 1) s ON true
                  LEFT JOIN LATERAL (SELECT * FROM archives WHERE session = s.no LIMIT 1) a ON true) f ON true",
            columns::<Sessions>("s."),
        );
        Ok(MarksReader {
            nodes: Arc::clone(nodes),
            holder: holder.to_owned(),
            database: database.clone(),
            reader: PostgresReaders::for_marks(database, reach)?,
            reach: reach.clone(),
            sql,
            last_ending: 0,
        })
    }

    pub(super) async fn run(mut self, mut waiting: mpsc::UnboundedReceiver<Asking>) {
        let mut asked = Vec::new();
        while waiting.recv_many(&mut asked, MOST_ASKED).await > 0 {
            let mut wanted = BTreeMap::new();
            for mark in asked.iter().flat_map(|(known, _)| known) {
                wanted.entry(mark.no).or_insert(*mark);
            }
            let found = self.read(&wanted).await.map(Arc::new);
            if found.is_err() {
                // A pause protects a database that is starting up from repeated queries.
                tokio::time::sleep(RETRY_PAUSE).await;
            }
            for (_, reply) in asked.drain(..) {
                // A failure to send means that the caller has stopped waiting.
                let _ = reply.send(found.clone());
            }
        }
    }

    async fn read(&mut self, wanted: &BTreeMap<SessionNo, SessionMark>) -> Result<Marks, StoreError> {
        const SESSION: usize = Sessions::COLUMNS.len();
        const NODE: usize = SESSION + 9;
        let list =
            |of: fn(&SessionMark) -> u64| Value::List(wanted.values().map(|mark| count(of(mark)).into()).collect());
        let no = Value::List(wanted.keys().map(|no| no.0.into()).collect());
        let values = [
            no,
            list(|mark| mark.version),
            list(|mark| mark.edits),
            list(|mark| mark.chat_len),
            list(|mark| mark.operator_len),
        ];
        let sent = Instant::now();
        let rows = self.reader.query(&self.sql, &parameters(&values)).await?;
        let first = rows.first().ok_or_else(|| StoreError::Database("a query returned no row".to_owned()))?;
        self.nodes.clock.read(sent, Instant::now(), first.integer(NODE + 1)?);
        if first.text_or_null(NODE)? != Some(&*self.holder) {
            let error = StoreError::Superseded { database: self.database.to_string() };
            *self.reach.ended.write() = Some(error.clone());
            return Err(error);
        }
        self.nodes.checks.fetch_add(1, Ordering::Relaxed);
        let is_new_server = self.nodes.is_new_server(first.text(NODE + 2)?);
        let public_len = first.integer_or_null(NODE + 3)?.unwrap_or_default().unsigned_abs();
        let endings = first.integer_or_null(NODE + 4)?.unwrap_or_default();
        let mut marks = Marks { public_len, endings, ..Marks::default() };
        let mut words = first.text_or_null(NODE + 5)?.unwrap_or_default().split(' ');
        while let (Some(kind), Some(n)) = (words.next(), words.next()) {
            let damaged = |error| StoreError::damaged("the table changes", error);
            marks.changes.insert(kind.to_owned(), n.parse().map_err(damaged)?);
        }
        // A backup that was restored under a running arena has fewer endings.
        let has_fewer = std::mem::replace(&mut self.last_ending, endings) > endings;
        if is_new_server || has_fewer {
            self.reach.losses.fetch_add(1, Ordering::SeqCst);
        }
        for row in rows.iter().filter(|row| !matches!(row.integer_or_null(SESSION), Ok(None))) {
            let number = |column: usize| Ok::<_, StoreError>(row.integer(SESSION + column)?.unsigned_abs());
            let no = SessionNo(row.integer(SESSION)?);
            let [version, edits, chat_len, operator_len] = [number(1)?, number(2)?, number(3)?, number(4)?];
            let mark = SessionMark { no, version, edits, chat_len, operator_len };
            // Whoever needs a damaged row reads it again, and gets the error.
            let news = match row.integer_or_null(0)?.and_then(|_| read_session(row).ok()) {
                None => None,
                Some((_, session)) => {
                    let last = row.integer(SESSION + 7)?.max(row.integer(SESSION + 8)?);
                    let last_activity = session.facts.created_at.max(Timestamp(last));
                    let (chat_len, operator_len) = (number(5)?, number(6)?);
                    let stored = StoredSession { no, session, chat_len, operator_len, last_activity, edits };
                    Some(SessionNews { stored, messages: [Vec::new(), Vec::new()] })
                }
            };
            marks.sessions.insert(no, FoundSession { mark, news });
        }
        self.read_messages(wanted, &mut marks).await?;
        Ok(marks)
    }

    /// Reads the new messages of the sessions with news.
    async fn read_messages(
        &self,
        wanted: &BTreeMap<SessionNo, SessionMark>,
        marks: &mut Marks,
    ) -> Result<(), StoreError> {
        let (mut columns_of, mut all): ([Vec<Value<'_>>; 4], u64) = Default::default();
        for (no, FoundSession { mark, .. }) in marks.sessions.iter().filter(|(_, found)| found.news.is_some()) {
            let Some(known) = wanted.get(no) else { continue };
            for (channel, after, last) in
                [(0, known.chat_len, mark.chat_len), (1, known.operator_len, mark.operator_len)]
            {
                let new = last.saturating_sub(after);
                if (1..=MOST_NEWS.0).contains(&new) && all + new <= MOST_NEWS.1 {
                    all += new;
                    let row = [no.0, channel, count(after), count(last)];
                    columns_of.iter_mut().zip(row).for_each(|(column, value)| column.push(value.into()));
                }
            }
        }
        if all == 0 {
            return Ok(());
        }
        let sql = format!(
            "SELECT {} FROM unnest($1::int8[], $2::int8[], $3::int8[], $4::int8[]) AS w (session, channel, after, last)
             JOIN messages m ON m.session = w.session AND m.channel = w.channel::int2 AND m.idx > w.after AND m.idx <= w.last
             ORDER BY m.session, m.channel, m.idx",
            columns::<Messages>("m.")
        );
        for row in self.reader.query(&sql, &parameters(&columns_of.map(Value::List))).await? {
            let no = SessionNo(row.integer(Messages::Session as usize)?);
            let news = marks.sessions.get_mut(&no).and_then(|found| found.news.as_mut());
            let Some(SessionNews { stored, messages }) = news else { continue };
            let channel = session_channel(row.integer(Messages::Channel as usize)?, stored.session.facts.id)?;
            let place = usize::from(matches!(channel, Channel::Operator(_)));
            // Without one message, the others don't follow the known ones, so that readers get the error.
            messages[place].extend(read_message(&row, channel).ok());
        }
        Ok(())
    }
}
