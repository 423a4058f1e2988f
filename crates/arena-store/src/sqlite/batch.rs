//! Batches of transitions in SQLite: the statements that read the rows a batch needs, and those that write its plan.

use rusqlite::{Connection, params, params_from_iter};

use crate::StoreError;
use crate::errors::Failure;
use crate::mirror::{Delta, Mirror, is_count_wrong, is_total_wrong};
use crate::numbers::Numbers;
use crate::plan::{BatchItem, BatchOutcome, BatchPlan, Counting, KnownUser, RowsFound, RowsWanted};
use crate::sql::{Columns, Dialect, Table, Value, insert};
use crate::tables::{
    Answers, Boards, Careers, Endings, Invites, KnownSession, Messages, RemovedSessions, SessionRow, Sessions, Users,
    read_answer, read_career, update_sessions, updated,
};

/// The statements of a batch that are derived from the description of the tables.
pub(super) struct Statements {
    insert_sessions: String,
    /// The update statements, without and with the indexed columns.
    update_sessions: [String; 2],
    insert_invites: String,
    insert_messages: String,
    insert_answers: String,
    insert_users: String,
    insert_played: String,
    write_careers: String,
    insert_endings: String,
    enter_boards: String,
    insert_removed: String,
}

impl Statements {
    pub(super) fn new() -> Statements {
        let dialect = Dialect::Sqlite;
        Statements {
            insert_sessions: insert::<Sessions>(dialect, ""),
            update_sessions: [false, true].map(|indexed| update_sessions(dialect, indexed)),
            insert_invites: Invites::insert_sqlite(),
            insert_messages: insert::<Messages>(dialect, ""),
            insert_answers: insert::<Answers>(dialect, ""),
            insert_users: insert::<Users>(dialect, ""),
            insert_played: insert::<Careers>(dialect, ""),
            write_careers: insert::<Careers>(dialect, &dialect.sql(Careers::REPLACE)),
            insert_endings: insert::<Endings>(dialect, ""),
            enter_boards: insert::<Boards>(dialect, "ON CONFLICT DO NOTHING"),
            insert_removed: insert::<RemovedSessions>(dialect, ""),
        }
    }
}

/// Decides transitions and writes them. If `careful` is true, stored answers are looked up first. Otherwise a stored
/// answer violates a constraint. The first attempt isn't careful, because the engine has already looked for an answer.
pub(super) fn write_transitions(
    connection: &Connection,
    statements: &Statements,
    transitions: &[BatchItem<'_>],
    counting: &Counting<'_>,
    numbers: Numbers,
    careful: bool,
) -> Result<BatchOutcome, Failure> {
    let known = read_known(connection, &RowsWanted::of(transitions), careful)?;
    let plan = BatchPlan::of(transitions, known, numbers, counting);
    write_plan(connection, statements, &plan)?;
    Ok(plan.outcome())
}

/// Calls `see` with the first row that a statement finds for each key and its value.
fn find_each<'k, K>(
    connection: &Connection,
    sql: &str,
    keys: impl Iterator<Item = (K, Value<'k>)>,
    mut see: impl FnMut(K, &dyn Columns) -> Result<(), StoreError>,
) -> Result<(), Failure> {
    let mut keys = keys.peekable();
    if keys.peek().is_none() {
        return Ok(());
    }
    let mut statement = connection.prepare_cached(sql)?;
    for (key, value) in keys {
        let mut rows = statement.query([value])?;
        if let Some(row) = rows.next()? {
            see(key, row)?;
        }
    }
    Ok(())
}

fn read_known(connection: &Connection, wanted: &RowsWanted<'_>, careful: bool) -> Result<RowsFound, Failure> {
    let mut known = RowsFound { are_present: true, ..RowsFound::default() };
    if careful {
        let keys = wanted.answers.iter().map(|key| (**key, Value::from(&key[..])));
        find_each(connection, "SELECT request, body FROM answers WHERE key = ?1", keys, |key, row| {
            known.answers.insert(key, read_answer(row, 0)?);
            Ok(())
        })?;
    }
    let sql = "SELECT version, status, wake_at FROM sessions WHERE no = ?1";
    find_each(connection, sql, wanted.sessions.iter().map(|no| (*no, Value::from(*no))), |no, row| {
        known.sessions.extend(KnownSession::read(row, 0)?.map(|session| (no, session)));
        Ok(())
    })?;
    read_players(connection, wanted, &mut known)?;
    read_taken(connection, wanted, &mut known)?;
    Ok(known)
}

/// Reads the careers of the players of sessions that end.
fn read_players(connection: &Connection, wanted: &RowsWanted<'_>, known: &mut RowsFound) -> Result<(), Failure> {
    let sql = "SELECT u.no, c.session, c.standings, (SELECT max(l.n) FROM careers l WHERE l.user = u.no) FROM users u
         LEFT JOIN careers c ON c.user = u.no AND c.n = 0 WHERE u.id = ?1";
    let users = wanted.users.iter().map(|user| (user.as_str(), Value::from(user.as_str())));
    find_each(connection, sql, users, |user, row| {
        let no = row.integer(0)?;
        let last = row.integer_or_null(3)?.unwrap_or(0).max(0);
        let user_known = KnownUser { no, career: read_career(no, row, 1), last, changed: false };
        known.users.insert(user.to_owned(), user_known);
        Ok(())
    })
}

/// Reads the ids and invites of imported sessions that are taken already.
fn read_taken(connection: &Connection, wanted: &RowsWanted<'_>, known: &mut RowsFound) -> Result<(), Failure> {
    let sql = format!("SELECT 1 FROM sessions s WHERE {}", Dialect::Sqlite.by_id());
    find_each(connection, &sql, wanted.ids.iter().map(|id| (*id, Value::from(id.to_string()))), |id, _| {
        known.ids.insert(id);
        Ok(())
    })?;
    let sql = format!("SELECT 1 FROM invites i WHERE {}", Dialect::Sqlite.by_code());
    find_each(connection, &sql, wanted.codes.iter().map(|code| (*code, Value::from(code.to_string()))), |code, _| {
        known.codes.insert(code);
        Ok(())
    })
}

/// Runs a statement with the values of each row.
fn write_each<'v, V>(
    connection: &Connection,
    sql: &str,
    rows: impl IntoIterator<Item = V>,
) -> Result<(), rusqlite::Error>
where
    V: IntoIterator<Item = Value<'v>>,
{
    let mut rows = rows.into_iter().peekable();
    if rows.peek().is_none() {
        return Ok(());
    }
    let mut statement = connection.prepare_cached(sql)?;
    for values in rows {
        statement.execute(params_from_iter(values))?;
    }
    Ok(())
}

fn insert_each<'r, T: Table>(
    connection: &Connection,
    sql: &str,
    rows: impl IntoIterator<Item = &'r T::Row<'r>>,
) -> Result<(), rusqlite::Error>
where
    T::Row<'r>: 'r,
{
    write_each(connection, sql, rows.into_iter().map(T::values))
}

fn write_plan(connection: &Connection, sql: &Statements, plan: &BatchPlan<'_>) -> Result<(), rusqlite::Error> {
    insert_each::<Sessions>(connection, &sql.insert_sessions, &plan.created)?;
    for (&no, update) in &plan.updated {
        let row = SessionRow { no, session: update.session, import: None };
        let indexed = update.wake_at != update.session.wake_at.map(|at| at.0);
        let keys = [Value::from(no), Value::from(update.before)];
        let values = keys.into_iter().chain(updated(indexed).map(|column| Sessions::value(&row, column)));
        write_each(connection, &sql.update_sessions[usize::from(indexed)], [values])?;
    }
    insert_each::<Invites>(connection, &sql.insert_invites, &plan.invites())?;
    insert_each::<Messages>(connection, &sql.insert_messages, &plan.messages)?;
    insert_each::<Answers>(connection, &sql.insert_answers, plan.answers.values())?;
    insert_each::<Users>(connection, &sql.insert_users, &plan.users)?;
    insert_each::<Careers>(connection, &sql.insert_played, &plan.played)?;
    let careers: Vec<_> = plan.careers().collect();
    insert_each::<Careers>(connection, &sql.write_careers, &careers)?;
    insert_each::<Endings>(connection, &sql.insert_endings, &plan.endings)?;
    let boards: Vec<_> = plan.boards.iter().collect();
    insert_each::<Boards>(connection, &sql.enter_boards, &boards)?;
    insert_each::<RemovedSessions>(connection, &sql.insert_removed, &plan.removals())?;
    // These expired before they began, so other tables have nothing of them.
    for (no, session) in &plan.removed {
        write_each(connection, "DELETE FROM sessions WHERE no = ?1", [[Value::from(*no)]])?;
        write_each(connection, "DELETE FROM messages WHERE session = ?1", [[Value::from(*no)]])?;
        let codes = session.facts.invites.iter().map(|invite| [Value::from(invite.to_string())]);
        write_each(connection, "DELETE FROM invites WHERE made = substr(?1, -12) AND code = ?1", codes)?;
    }
    Ok(())
}

/// Adds to counts and totals. Returns a description of a value that is impossible or differs from the mirror.
pub(super) fn write_delta(
    connection: &Connection,
    delta: &Delta,
    mirror: &Mirror,
) -> Result<Option<&'static str>, rusqlite::Error> {
    let mut suspect = None;
    let counts = mirror.counts.read();
    for ((block, challenge, status), n) in delta.sessions.iter().filter(|(_, n)| **n != 0) {
        let after: Option<i64> = connection
            .prepare_cached(
                "INSERT INTO session_counts (block, type, status, n) VALUES (?1, ?2, ?3, ?4)
                 ON CONFLICT DO UPDATE SET n = n + excluded.n RETURNING n",
            )?
            .query_row(params![block, challenge, status.as_str(), n], |row| row.get_ref(0).map(|n| n.as_i64().ok()))?;
        if is_count_wrong(after, Some(counts.count(*block, challenge, *status)), *n) {
            suspect = Some("a count of sessions");
        }
    }
    for (name, n) in delta.totals.iter().filter(|(_, n)| **n != 0) {
        let after: Option<i64> = connection
            .prepare_cached(
                "INSERT INTO totals (name, n) VALUES (?1, ?2) ON CONFLICT DO UPDATE SET n = n + excluded.n RETURNING n",
            )?
            .query_row(params![name, n], |row| row.get_ref(0).map(|n| n.as_i64().ok()))?;
        if is_total_wrong(after) {
            suspect = suspect.or(Some("a total"));
        }
    }
    Ok(suspect)
}
