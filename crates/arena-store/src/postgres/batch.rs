//! The statements that write a batch of transitions, one for each table.

use arena_model::{InviteCode, SessionId, Status};
use parking_lot::RwLock;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Error, Row, Statement};

use super::holder::Holder;
use super::statements::{Sharing, Statements};
use crate::StoreError;
use crate::errors::Failure;
use crate::mirror::{Counts, Delta, is_count_wrong, is_total_wrong};
use crate::numbers::Numbers;
use crate::plan::{BatchItem, BatchOutcome, BatchPlan, Counting, KnownUser, RowsFound, RowsWanted, SharedRows, Update};
use crate::sql::{Columns, Table, Value};
use crate::tables::{
    Answers, Boards, Careers, Endings, Invites, KnownSession, Messages, REMOVED, RemovedSessions, SessionRow, Sessions,
    Users, read_answer, read_bytes, read_career, updated,
};

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
    fn of<T: Table>(rows: &[T::Row<'p>]) -> Lists<'p> {
        let column = |column: usize| rows.iter().map(|row| T::value(row, column)).collect();
        Lists { columns: (0..T::COLUMNS.len()).map(column).collect() }
    }

    fn one(values: impl Iterator<Item = Value<'p>>) -> Lists<'p> {
        Lists { columns: vec![values.collect()] }
    }

    fn is_empty(&self) -> bool {
        self.columns.iter().all(Vec::is_empty)
    }

    /// Runs a statement on the rows, if there are any.
    async fn execute(&self, client: &Client, statement: &Statement) -> Result<(), Error> {
        if self.is_empty() {
            return Ok(());
        }
        let columns: Vec<&(dyn ToSql + Sync)> =
            self.columns.iter().map(|column| column as &(dyn ToSql + Sync)).collect();
        client.execute(statement, &columns).await.map(drop)
    }
}

/// The parameters of the statements that write a plan.
struct PlanLists<'p> {
    created: Lists<'p>,
    changed: Lists<'p>,
    invites: Lists<'p>,
    messages: Lists<'p>,
    answers: Lists<'p>,
    users: Lists<'p>,
    played: Lists<'p>,
    careers: Lists<'p>,
    /// With the numbers of the endings, which a shared database assigns.
    endings: Lists<'p>,
    ended: Lists<'p>,
    boards: Lists<'p>,
    removed: Lists<'p>,
    removed_invites: Lists<'p>,
    removals: Lists<'p>,
    counts: CountRows<'p>,
    totals: TotalRows<'p>,
}

impl<'p> PlanLists<'p> {
    fn of(plan: &'p BatchPlan<'p>) -> PlanLists<'p> {
        let updated_row =
            |(&no, &Update { session, .. }): (&i64, &Update<'p>)| SessionRow { no, session, import: None };
        let rows: Vec<SessionRow<'_>> = plan.updated.iter().map(updated_row).collect();
        let mut changed = Lists::one(plan.updated.keys().map(|no| Value::from(*no)));
        changed.columns.push(plan.updated.values().map(|update| Value::from(update.before)).collect());
        let column = |column: usize| rows.iter().map(|row| Sessions::value(row, column)).collect();
        changed.columns.extend(updated(true).map(column));
        let removed_invites = plan.removed.iter().flat_map(|(_, session)| &session.facts.invites);
        PlanLists {
            created: Lists::of::<Sessions>(&plan.created),
            changed,
            invites: Lists::of::<Invites>(&plan.invites()),
            messages: Lists::of::<Messages>(&plan.messages),
            answers: Lists::of::<Answers>(&plan.answers.values().copied().collect::<Vec<_>>()),
            users: Lists::of::<Users>(&plan.users),
            played: Lists::of::<Careers>(&plan.played),
            careers: Lists::of::<Careers>(&plan.careers().collect::<Vec<_>>()),
            endings: Lists::of::<Endings>(&plan.endings),
            ended: Lists::one(plan.endings.iter().map(|(_, session)| Value::from(*session))),
            boards: Lists::of::<Boards>(&plan.boards.iter().collect::<Vec<_>>()),
            removed: Lists::one(plan.removed.iter().map(|(no, _)| Value::from(*no))),
            removed_invites: Lists::one(removed_invites.map(|invite| Value::from(invite.to_string()))),
            removals: Lists::of::<RemovedSessions>(&plan.removals()),
            counts: CountRows::of(&plan.effects.delta),
            totals: TotalRows::of(&plan.effects.delta),
        }
    }

    /// Adds the endings with their numbers, unless the database is shared.
    async fn insert_endings(&self, holder: &Holder) -> Result<(), Error> {
        match holder.sharing {
            None => self.endings.execute(&holder.client, &holder.statements.insert_endings).await,
            Some(_) => Ok(()),
        }
    }

    /// Adds the endings in a shared database.
    async fn number_endings(&self, holder: &Holder) -> Result<(), Error> {
        match &holder.sharing {
            Some(sharing) => self.ended.execute(&holder.client, &sharing.insert_numbered_endings).await,
            None => Ok(()),
        }
    }

    /// Locks the last number of removals against other nodes, if there are removals to number.
    async fn lock_removals(&self, holder: &Holder) -> Result<(), Error> {
        match &holder.sharing {
            Some(sharing) if !self.removals.is_empty() => {
                holder.client.execute(&sharing.lock_number, &[&REMOVED]).await.map(drop)
            }
            _ => Ok(()),
        }
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
    let Holder { client, statements, .. } = holder;
    let lists = PlanLists::of(plan);
    // The statements are pipelined: all are sent before the first result arrives. If a statement fails, the transaction
    // is aborted, and the final COMMIT rolls it back.
    let results = tokio::join!(biased;
        async { if begun { Ok(()) } else { client.batch_execute("BEGIN").await } },
        lists.created.execute(client, &statements.insert_sessions),
        lists.changed.execute(client, &statements.update_sessions),
        lists.invites.execute(client, &statements.insert_invites),
        lists.messages.execute(client, &statements.insert_messages),
        lists.answers.execute(client, &statements.insert_answers),
        lists.users.execute(client, &statements.insert_users),
        lists.played.execute(client, &statements.insert_played),
        lists.careers.execute(client, &statements.write_careers),
        lists.insert_endings(holder),
        lists.boards.execute(client, &statements.enter_boards),
        lists.removed.execute(client, &statements.delete_sessions),
        lists.removed.execute(client, &statements.delete_messages),
        lists.removed_invites.execute(client, &statements.delete_invites),
        // In a shared database, the following statements wait for the commits of other nodes that number such rows.
        lists.lock_removals(holder),
        lists.removals.execute(client, &statements.insert_removed),
        add_counts(holder, &lists.counts, mirror),
        add_totals(client, statements, &lists.totals),
        lists.number_endings(holder),
        client.batch_execute("COMMIT"),
    );
    let (r0, r1, r2, r3, r4, r5, r6, r7, r8, r9, r10, r11, r12, r13, r14, r15, counted, totaled, r18, commit) = results;
    let mut suspect = None;
    let mut noted = |added: Result<Option<&'static str>, Error>| added.map(|found| suspect = suspect.or(found));
    let (r16, r17) = (noted(counted), noted(totaled));
    result_of([r0, r1, r2, r3, r4, r5, r6, r7, r8, r9, r10, r11, r12, r13, r14, r15, r16, r17, r18, commit])?;
    Ok(suspect)
}
