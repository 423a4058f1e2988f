//! The statements that write a batch of transitions, one for each table.

use arena_model::{InviteCode, Session, SessionId, Status};
use parking_lot::RwLock;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Error, Row, Statement};

use super::holder::Holder;
use super::statements::{Sharing, Statements};
use crate::errors::Failure;
use crate::mirror::counts::{Counts, Delta, is_count_wrong, is_total_wrong};
use crate::numbers::Numbers;
use crate::plan::counting::Counting;
use crate::plan::{BatchItem, BatchOutcome, BatchPlan, KnownUser, RowsFound, RowsWanted, SharedRows, Update};
use crate::sql::dialect::Table;
use crate::sql::value::{Columns, Value};
use crate::tables::boards::Boards;
use crate::tables::careers::{CareerRow, Careers, read_career};
use crate::tables::messages::Messages;
use crate::tables::sessions::{KnownSession, SessionRow, Sessions, updated};
use crate::tables::text::read_bytes;
use crate::tables::{Answers, Endings, Invites, REMOVED, RemovedSessions, Users, read_answer};
use crate::{NewAnswer, StoreError};

/// Returns the result of a transaction from the results of its statements, of which the last is COMMIT.
pub(crate) fn result_of(statements: impl IntoIterator<Item = Result<(), Error>>) -> Result<(), Failure> {
    let statements: Vec<_> = statements.into_iter().collect();
    let last = statements.len().saturating_sub(1);
    let mut lost = false;
    let mut failure = None;
    for (at, error) in statements.into_iter().enumerate().filter_map(|(at, result)| Some((at, result.err()?))) {
        match error.as_db_error() {
            // The first error aborts the transaction, and COMMIT then rolls the transaction back. The result is unknown
            // only if the connection ends during COMMIT itself.
            Some(said) if at < last || said.severity() == "ERROR" => {
                failure.get_or_insert(error);
            }
            _ => lost = true,
        }
    }
    match failure {
        Some(error) => Err(error.into()),
        None if lost => Err(Failure::Unsure),
        None => Ok(()),
    }
}

/// Writes the changes of counts and totals. Returns a description of a wrong value, if there is one.
pub(crate) async fn add_delta(
    holder: &Holder,
    delta: &Delta,
    mirror: Option<&RwLock<Counts>>,
) -> Result<Option<&'static str>, Error> {
    let Holder { client, statements, .. } = holder;
    let (counts, totals) = (CountRows::of(delta), TotalRows::of(delta));
    let (counts, totals) = tokio::join!(biased;
        add_counts(holder, &counts, mirror),
        add_totals(client, statements, &totals),
    );
    Ok(counts?.or(totals?))
}

/// Adds `rows` to the stored counts of sessions. Returns a description if a count goes out of its range, or if it
/// differs from the count in `mirror`. `mirror` is `None` in a shared database.
async fn add_counts(
    holder: &Holder,
    rows: &CountRows<'_>,
    mirror: Option<&RwLock<Counts>>,
) -> Result<Option<&'static str>, Error> {
    if rows.block.is_empty() {
        return Ok(None);
    }
    let statement = holder.sharing.as_ref().map_or(&holder.statements.add_counts, |sharing| &sharing.add_counts);
    let added = holder.client.query(statement, &[&rows.block, &rows.challenge, &rows.status, &rows.n]).await?;
    let mut suspect = None;
    for row in added {
        let (block, challenge, status, n): (i64, &str, &str, i64) =
            (row.try_get(0)?, row.try_get(1)?, row.try_get(2)?, row.try_get(3)?);
        let same = |at: usize| rows.block[at] == block && rows.challenge[at] == challenge && rows.status[at] == status;
        let change = (0..rows.n.len()).find(|&at| same(at)).map_or(0, |at| rows.n[at]);
        let before =
            mirror.zip(Status::from_wire(status)).map(|(mirror, status)| mirror.read().count(block, challenge, status));
        if is_count_wrong(Some(n), before, change) {
            suspect = Some("a count of sessions");
        }
    }
    Ok(suspect)
}

/// Adds `rows` to the stored totals. Returns a description if a total becomes negative.
async fn add_totals(
    client: &Client,
    statements: &Statements,
    rows: &TotalRows<'_>,
) -> Result<Option<&'static str>, Error> {
    if rows.name.is_empty() {
        return Ok(None);
    }
    let added = client.query(&statements.add_totals, &[&rows.name, &rows.n]).await?;
    let numbers = added.iter().map(|row| row.try_get::<_, i64>(0)).collect::<Result<Vec<_>, _>>()?;
    Ok(numbers.iter().any(|n| is_total_wrong(Some(*n))).then_some("a total"))
}

/// Returns the rows with these keys. Skips the query if there are no keys.
async fn find(client: &Client, statement: &Statement, keys: &[Value<'_>]) -> Result<Vec<Row>, Error> {
    if keys.is_empty() { Ok(Vec::new()) } else { client.query(statement, &[&keys]).await }
}

/// Writes transitions in two round trips: one reads and locks the rows that the decisions need, and one writes all
/// rows.
pub(crate) async fn write_batch<'b>(
    holder: &Holder,
    batch: &[BatchItem<'b>],
    counting: &'b Counting<'b>,
    numbers: Numbers,
    mirror: Option<&RwLock<Counts>>,
) -> Result<BatchOutcome, Failure> {
    let client = &holder.client;
    let wanted = RowsWanted::of(batch);
    let begun = !wanted.is_empty() || holder.sharing.is_some();
    let known = match (&holder.sharing, begun) {
        (Some(sharing), _) => read_shared(holder, sharing, &wanted).await,
        (None, true) => read_known(holder, &wanted).await,
        (None, false) => Ok(RowsFound::default()),
    };
    let known = match known {
        Ok(known) => known,
        Err(error) => {
            // If ROLLBACK fails as well, the connection is closed, which ends the transaction.
            let _ = client.batch_execute("ROLLBACK").await;
            return Err(Failure::Failed(error));
        }
    };
    let mut plan = BatchPlan::of(batch, known, numbers, counting);
    match write_plan(holder, &plan, begun, mirror).await {
        Ok(suspect) => {
            plan.effects.suspect = plan.effects.suspect.or(suspect);
            Ok(plan.outcome())
        }
        Err(failure) => {
            // A COMMIT after an error has already rolled back; a ROLLBACK without a transaction does nothing.
            if !matches!(failure, Failure::Unsure) {
                let _ = client.batch_execute("ROLLBACK").await;
            }
            Err(failure)
        }
    }
}

/// Begins a transaction and reads the rows that a batch needs in a shared database.
async fn read_shared(holder: &Holder, sharing: &Sharing, wanted: &RowsWanted<'_>) -> Result<RowsFound, StoreError> {
    let known = read_known(holder, wanted).await?;
    let missing = |known: &RowsFound| wanted.users.iter().find(|id| !known.users.contains_key(id.as_str())).copied();
    if missing(&known).is_none() {
        return Ok(known);
    }
    // Unknown users get their numbers in a separate, short transaction, because a node that numbers users blocks the
    // other nodes until its commit.
    let (client, users) = (&holder.client, users_of(wanted));
    let users: &[&(dyn ToSql + Sync)] = &[&users];
    let (rolled_back, begun, locked, numbered, committed) = tokio::join!(biased;
        client.batch_execute("ROLLBACK"),
        client.batch_execute("BEGIN"),
        client.execute(&sharing.lock_numbers_of_users, &[]),
        client.execute(&sharing.number_users, users),
        client.batch_execute("COMMIT"),
    );
    rolled_back.and(begun).and(locked).and(numbered).and(committed.map(|()| 0))?;
    let known = read_known(holder, wanted).await?;
    match missing(&known) {
        None => Ok(known),
        Some(id) => Err(StoreError::Database(format!("the database assigned no number to user {id}"))),
    }
}

fn users_of<'w>(wanted: &RowsWanted<'w>) -> Vec<Value<'w>> {
    wanted.users.iter().map(|user| Value::prose(user.as_str())).collect()
}

/// Begins a transaction and reads the rows that a batch needs.
async fn read_known(holder: &Holder, wanted: &RowsWanted<'_>) -> Result<RowsFound, StoreError> {
    let Holder { client, statements, sharing, .. } = holder;
    let lock_sessions = sharing.as_ref().map_or(&statements.lock_sessions, |sharing| &sharing.lock_free_sessions);
    let sessions: Vec<Value<'_>> = wanted.sessions.iter().chain(&wanted.present).map(|no| Value::from(*no)).collect();
    let keys: Vec<Value<'_>> = wanted.answers.iter().map(|key| Value::from(&key[..])).collect();
    let users = users_of(wanted);
    let ids: Vec<Value<'_>> = wanted.ids.iter().map(|id| Value::from(id.to_string())).collect();
    let codes: Vec<Value<'_>> = wanted.codes.iter().map(|code| Value::from(code.to_string())).collect();
    let (begun, sessions, of_others, answers, users, ids, codes) = tokio::join!(biased;
        client.batch_execute("BEGIN"),
        find(client, lock_sessions, &sessions),
        async {
            match sharing {
                Some(sharing) => lock_others_out(client, sharing, wanted, &users).await.map(Some),
                None => Ok(None),
            }
        },
        find(client, &statements.find_answers, &keys),
        find(client, &statements.find_careers, &users),
        find(client, &statements.find_ids, &ids),
        find(client, &statements.find_codes, &codes),
    );
    begun?;
    let mut known = RowsFound { shared: of_others?, ..RowsFound::default() };
    for row in sessions? {
        let no = row.integer(0)?;
        known.sessions.extend(KnownSession::read(&row, 1)?.map(|session| (no, session)));
    }
    for row in answers? {
        known.answers.insert(read_bytes(&row, 0)?, read_answer(&row, 1)?);
    }
    for row in users? {
        let no = row.integer(1)?;
        let user = KnownUser { no, career: read_career(no, &row, 2), last: row.integer(4)?, changed: false };
        known.users.insert(row.prose(0)?.into_owned(), user);
    }
    for row in ids? {
        known.ids.extend(row.text(0)?.parse::<SessionId>().ok());
    }
    for row in codes? {
        known.codes.extend(row.text(0)?.parse::<InviteCode>().ok());
    }
    Ok(known)
}

/// Locks the users of the batch against changes by other nodes, and reads the numbers and channel lengths that only a
/// shared database has. The caller has locked the sessions.
async fn lock_others_out(
    client: &Client,
    sharing: &Sharing,
    wanted: &RowsWanted<'_>,
    users: &[Value<'_>],
) -> Result<SharedRows, StoreError> {
    let (session, channel): (Vec<Value<'_>>, Vec<Value<'_>>) =
        wanted.channels.iter().map(|(session, channel)| (Value::from(*session), Value::from(*channel))).unzip();
    let (lens, drawn, locked) = tokio::join!(biased;
        async {
            match session.is_empty() {
                true => Ok(Vec::new()),
                false => client.query(&sharing.find_lens, &[&session, &channel]).await,
            }
        },
        async {
            match wanted.new_sessions {
                0 => Ok(Vec::new()),
                n => client.query(&sharing.draw_numbers, &[&n]).await,
            }
        },
        find(client, &sharing.lock_users, users),
    );
    locked?;
    let mut known = SharedRows::default();
    for row in lens? {
        known.lens.insert((row.integer(0)?, i64::from(row.try_get::<_, i16>(1)?)), row.integer(2)?.unsigned_abs());
    }
    for row in drawn? {
        known.numbers.push_back(row.try_get(0)?);
    }
    Ok(known)
}

/// Columns of `session_counts`.
#[derive(Default)]
struct CountRows<'d> {
    block: Vec<i64>,
    challenge: Vec<&'d str>,
    status: Vec<&'static str>,
    n: Vec<i64>,
}

impl CountRows<'_> {
    fn of(delta: &Delta) -> CountRows<'_> {
        let mut rows = CountRows::default();
        for ((block, challenge, status), n) in delta.sessions.iter().filter(|(_, n)| **n != 0) {
            rows.block.push(*block);
            rows.challenge.push(challenge);
            rows.status.push(status.as_str());
            rows.n.push(*n);
        }
        rows
    }
}

/// Columns of `totals`.
struct TotalRows<'d> {
    name: Vec<&'d str>,
    n: Vec<i64>,
}

impl TotalRows<'_> {
    fn of(delta: &Delta) -> TotalRows<'_> {
        let (name, n) = delta.totals.iter().filter(|(_, n)| **n != 0).map(|(name, n)| (name.as_str(), *n)).unzip();
        TotalRows { name, n }
    }
}

/// The rows of a table as one list for each column, for use as a statement's parameters.
struct Lists<'p> {
    columns: Vec<Vec<Value<'p>>>,
}

impl<'p> Lists<'p> {
    fn of<T: Table>(rows: &'p [T::Row<'p>]) -> Lists<'p> {
        let column = |column: usize| rows.iter().map(|row| T::value(row, column)).collect();
        Lists { columns: (0..T::COLUMNS.len()).map(column).collect() }
    }

    fn one(values: impl Iterator<Item = Value<'p>>) -> Lists<'p> {
        Lists { columns: vec![values.collect()] }
    }

    /// Runs a statement on the rows, if there are any.
    async fn execute(&self, client: &Client, statement: &Statement) -> Result<(), Error> {
        if self.columns.iter().all(Vec::is_empty) {
            return Ok(());
        }
        let columns: Vec<&(dyn ToSql + Sync)> =
            self.columns.iter().map(|column| column as &(dyn ToSql + Sync)).collect();
        client.execute(statement, &columns).await.map(drop)
    }
}

/// Writes a plan and commits it. `begun` is true if the transaction has begun already. Returns a description
/// of a wrong value, if there is one.
async fn write_plan(
    holder: &Holder,
    plan: &BatchPlan<'_>,
    begun: bool,
    mirror: Option<&RwLock<Counts>>,
) -> Result<Option<&'static str>, Failure> {
    let Holder { client, statements, sharing, .. } = holder;
    let begin = async { if begun { Ok(()) } else { client.batch_execute("BEGIN").await } };

    let created = Lists::of::<Sessions>(&plan.created);
    let rows: Vec<SessionRow<'_>> =
        plan.updated.iter().map(|(&no, &Update { session, .. })| SessionRow { no, session, import: None }).collect();
    let mut changed = Lists::one(plan.updated.keys().map(|no| Value::from(*no)));
    changed.columns.push(plan.updated.values().map(|update| Value::from(update.before)).collect());
    changed.columns.extend(updated(true).map(|column| rows.iter().map(|row| Sessions::value(row, column)).collect()));

    let invites_of =
        |no: i64, session: &Session| session.facts.invites.iter().map(move |invite| (no, *invite)).collect::<Vec<_>>();
    let invites: Vec<_> = plan.created.iter().flat_map(|row| invites_of(row.no, row.session)).collect();
    let invites = Lists::of::<Invites>(&invites);
    let messages = Lists::of::<Messages>(&plan.messages);
    let answers: Vec<&NewAnswer> = plan.answers.values().copied().collect();
    let answers = Lists::of::<Answers>(&answers);
    let users = Lists::of::<Users>(&plan.users);
    let played = Lists::of::<Careers>(&plan.played);
    let careers: Vec<CareerRow<'_>> = plan.careers().collect();
    let careers = Lists::of::<Careers>(&careers);
    let endings = Lists::of::<Endings>(&plan.endings);
    // In a shared database, the database numbers the endings.
    let ended = Lists::one(plan.endings.iter().map(|(_, session)| Value::from(*session)));
    let boards: Vec<_> = plan.boards.iter().collect();
    let boards = Lists::of::<Boards>(&boards);
    let removed = Lists::one(plan.removed.iter().map(|(no, _)| Value::from(*no)));
    let removed_invites = plan.removed.iter().flat_map(|(no, session)| invites_of(*no, session));
    let removed_invites = Lists::one(removed_invites.map(|(_, invite)| Value::from(invite.to_string())));
    let removals = plan.removals();
    let removals = Lists::of::<RemovedSessions>(&removals);
    let (counts, totals) = (CountRows::of(&plan.effects.delta), TotalRows::of(&plan.effects.delta));

    // The statements are pipelined: all are sent before the first result arrives. If a statement fails, the transaction
    // is aborted, and the final COMMIT rolls it back.
    let results = tokio::join!(biased;
        begin,
        created.execute(client, &statements.insert_sessions),
        changed.execute(client, &statements.update_sessions),
        invites.execute(client, &statements.insert_invites),
        messages.execute(client, &statements.insert_messages),
        answers.execute(client, &statements.insert_answers),
        users.execute(client, &statements.insert_users),
        played.execute(client, &statements.insert_played),
        careers.execute(client, &statements.write_careers),
        async {
            match sharing {
                None => endings.execute(client, &statements.insert_endings).await,
                Some(_) => Ok(()),
            }
        },
        boards.execute(client, &statements.enter_boards),
        removed.execute(client, &statements.delete_sessions),
        removed.execute(client, &statements.delete_messages),
        removed_invites.execute(client, &statements.delete_invites),
        // In a shared database, the following statements wait for the commits of other nodes that number such rows.
        async {
            match sharing {
                Some(sharing) if !plan.removed.is_empty() => client.execute(&sharing.lock_number, &[&REMOVED]).await.map(drop),
                _ => Ok(()),
            }
        },
        removals.execute(client, &statements.insert_removed),
        add_counts(holder, &counts, mirror),
        add_totals(client, statements, &totals),
        async {
            match sharing {
                Some(sharing) => ended.execute(client, &sharing.insert_numbered_endings).await,
                None => Ok(()),
            }
        },
        client.batch_execute("COMMIT"),
    );
    let (r0, r1, r2, r3, r4, r5, r6, r7, r8, r9, r10, r11, r12, r13, r14, r15, counted, totaled, r18, commit) = results;
    let mut suspect = None;
    let mut noted = |added: Result<Option<&'static str>, Error>| added.map(|found| suspect = suspect.or(found));
    let (r16, r17) = (noted(counted), noted(totaled));
    result_of([r0, r1, r2, r3, r4, r5, r6, r7, r8, r9, r10, r11, r12, r13, r14, r15, r16, r17, r18, commit])?;
    Ok(suspect)
}
