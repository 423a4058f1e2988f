//! A batch of transitions as the statements that write it, one for each table.

use std::borrow::Cow;
use std::time::Duration;

use arena_model::{Channel, ChatMessage, Phase, Session, Status, UserId};
use parking_lot::RwLock;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Error, Row, Statement};

use super::connection::{Holder, Numbers, Sharing, Statements, failed, is_constraint};
use super::journal;
use super::plan::{Done, Known, KnownOfOthers, KnownUser, Plan, Transition, Wanted};
use super::text::{decode, encode};
use crate::counts::{BLOCK, Counts, Delta};
use crate::job::Effects;
use crate::rows::{
    Columns, attributions_text, category_text, channel_number, codes_text, ending_text, players_text, rated_text,
    seed_bytes, to_json, usage_text,
};
use crate::standings::{Career, Counting, read_standings};
use crate::{CommitError, StoreError, StoredAnswer};

/// Why a transaction wasn't committed, or wasn't known to be.
pub(crate) enum Failure {
    /// A place is taken. Nothing has changed.
    Constraint,
    /// The database failed or refused. Nothing has changed.
    Failed(StoreError),
    /// The connection was lost when the commit was on its way.
    Unsure,
}

impl Failure {
    /// What it means that statements of one transaction came to this. The last is its COMMIT.
    pub(crate) fn of(statements: Vec<Result<(), Error>>) -> Result<(), Failure> {
        let last = statements.len().saturating_sub(1);
        let mut lost = false;
        let mut failure = None;
        for (at, error) in statements.into_iter().enumerate().filter_map(|(at, result)| Some((at, result.err()?))) {
            match error.as_db_error() {
                // The transaction is broken from the first refusal on, and a COMMIT rolls it back. Only what ends the
                // connection during the COMMIT itself leaves open what came of it.
                Some(said) if at < last || said.severity() == "ERROR" => {
                    failure.get_or_insert(error);
                }
                _ => lost = true,
            }
        }
        match failure {
            Some(error) if is_constraint(&error) => Err(Failure::Constraint),
            Some(error) => Err(Failure::Failed(failed(&error))),
            None if lost => Err(Failure::Unsure),
            None => Ok(()),
        }
    }
}

/// Writes how counts and totals change. Names what turns out to be wrong.
pub(crate) async fn add_delta(
    holder: &Holder,
    delta: &Delta,
    mirror: Option<&RwLock<Counts>>,
) -> Result<Option<&'static str>, Error> {
    let Holder { client, statements, .. } = holder;
    let (counts, totals) = (CountRows::of(delta), TotalRows::of(delta));
    let (counts, totals) = tokio::join!(biased;
        add_counts(client, statements, &counts, mirror),
        add_totals(client, statements, &totals),
    );
    Ok(counts?.or(totals?))
}

/// Adds to counts. Names them if one comes to what can't be, or isn't what it was in memory where only this arena writes.
async fn add_counts(
    client: &Client,
    statements: &Statements,
    rows: &CountRows<'_>,
    mirror: Option<&RwLock<Counts>>,
) -> Result<Option<&'static str>, Error> {
    if rows.block.is_empty() {
        return Ok(None);
    }
    let added = client.query(&statements.add_counts, &[&rows.block, &rows.challenge, &rows.status, &rows.n]).await?;
    let mut suspect = None;
    for row in added {
        let (block, challenge, status, n): (i64, &str, &str, i64) =
            (row.try_get(0)?, row.try_get(1)?, row.try_get(2)?, row.try_get(3)?);
        let same = |at: usize| rows.block[at] == block && rows.challenge[at] == challenge && rows.status[at] == status;
        let change = (0..rows.n.len()).find(|&at| same(at)).map_or(0, |at| rows.n[at]);
        let before =
            mirror.zip(Status::from_wire(status)).map(|(mirror, status)| mirror.read().count(block, challenge, status));
        if !(0..=BLOCK).contains(&n) || before.is_some_and(|before| before + change != n) {
            suspect = Some("a count of sessions");
        }
    }
    Ok(suspect)
}

/// Adds to totals. Names them if one comes to what can't be.
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
    Ok(numbers.iter().any(|n| *n < 0).then_some("a total"))
}

/// Runs a statement over so many rows, if there are any.
async fn execute<const N: usize>(
    client: &Client,
    statement: &Statement,
    rows: usize,
    columns: [&(dyn ToSql + Sync); N],
) -> Result<(), Error> {
    if rows == 0 { Ok(()) } else { client.execute(statement, &columns).await.map(drop) }
}

/// The rows that have one of these keys, if there are any keys.
async fn find<T: ToSql + Sync>(client: &Client, statement: &Statement, keys: &Vec<T>) -> Result<Vec<Row>, Error> {
    if keys.is_empty() { Ok(Vec::new()) } else { client.query(statement, &[keys]).await }
}

/// A batch that is durable.
pub(crate) struct Written {
    /// What came of each of its transitions.
    pub(crate) done: Vec<Result<Done, CommitError>>,
    pub(crate) numbers: Numbers,
    pub(crate) effects: Effects,
    /// How long it waited for other nodes' commits.
    pub(crate) waited: Duration,
}

/// Writes transitions, in two round trips: what has to be known first, then everything.
pub(crate) async fn write_batch<'b>(
    holder: &Holder,
    batch: &[Transition<'b>],
    counting: &'b Counting<'b>,
    numbers: Numbers,
    mirror: Option<&RwLock<Counts>>,
) -> Result<Written, Failure> {
    let client = &holder.client;
    let wanted = Wanted::of(batch, holder.sharing.is_some());
    let begun = !wanted.is_empty() || holder.sharing.is_some();
    let known = match (&holder.sharing, begun) {
        (Some(sharing), _) => read_shared(holder, sharing, &wanted).await,
        (None, true) => read_known(holder, &wanted).await,
        (None, false) => Ok(Known::default()),
    };
    let known = match known {
        Ok(known) => known,
        Err(error) => {
            // Where that fails as well, the connection is gone, and the transaction with it.
            let _ = client.batch_execute("ROLLBACK").await;
            return Err(Failure::Failed(error));
        }
    };
    let mut plan = Plan::new(known, numbers, counting);
    let done: Vec<Result<Done, CommitError>> = batch.iter().map(|transition| plan.add(transition)).collect();
    if holder.sharing.is_some() {
        // In one order for all nodes, so that no two wait for each other.
        plan.answers.sort_unstable_by_key(|answer| answer.key);
    }
    match write_plan(holder, &plan, begun, mirror).await {
        Ok((waited, suspect)) => {
            plan.effects.suspect = plan.effects.suspect.or(suspect);
            Ok(Written { done, numbers: plan.numbers, effects: plan.effects, waited })
        }
        Err(failure) => {
            // A COMMIT after a refusal has rolled back already; a ROLLBACK that finds no transaction does nothing.
            if !matches!(failure, Failure::Unsure) {
                let _ = client.batch_execute("ROLLBACK").await;
            }
            Err(failure)
        }
    }
}

/// Begins a transaction and reads what a batch wants to know, where others write too.
async fn read_shared(holder: &Holder, sharing: &Sharing, wanted: &Wanted<'_>) -> Result<Known, StoreError> {
    let known = read_known(holder, wanted).await?;
    if wanted.users.iter().all(|id| known.users.contains_key(&*decode(id))) {
        return Ok(known);
    }
    // Some are new, and get their numbers in a transaction of their own: whoever gives numbers keeps others from it until its commit.
    let client = &holder.client;
    let (rolled_back, begun, locked, numbered, committed) = tokio::join!(biased;
        client.batch_execute("ROLLBACK"),
        client.batch_execute("BEGIN"),
        execute(client, &sharing.lock_numbers_of_users, 1, []),
        execute(client, &sharing.number_users, 1, [&wanted.users]),
        client.batch_execute("COMMIT"),
    );
    rolled_back.and(begun).and(locked).and(numbered).and(committed)?;
    let known = read_known(holder, wanted).await?;
    match wanted.users.iter().find(|id| !known.users.contains_key(&*decode(id))) {
        None => Ok(known),
        Some(id) => Err(StoreError::Database(format!("user {id} got no number"))),
    }
}

/// Begins a transaction and reads what a batch wants to know.
async fn read_known(holder: &Holder, wanted: &Wanted<'_>) -> Result<Known, StoreError> {
    let Holder { client, statements, sharing, .. } = holder;
    let lock_sessions = sharing.as_ref().map_or(&statements.lock_sessions, |sharing| &sharing.lock_free_sessions);
    let (begun, sessions, of_others, answers, users, ids, codes) = tokio::join!(biased;
        client.batch_execute("BEGIN"),
        find(client, lock_sessions, &wanted.sessions),
        async {
            match sharing {
                Some(sharing) => lock_others_out(client, sharing, wanted).await.map(Some),
                None => Ok(None),
            }
        },
        find(client, &statements.find_answers, &wanted.answers),
        find(client, &statements.find_careers, &wanted.users),
        find(client, &statements.find_ids, &wanted.ids),
        find(client, &statements.find_codes, &wanted.codes),
    );
    begun?;
    let mut known = Known { shared: of_others?, ..Known::default() };
    for row in sessions? {
        let (no, version, status): (i64, i64, &str) = (row.try_get(0)?, row.try_get(1)?, row.try_get(2)?);
        let status = Status::from_wire(status)
            .ok_or_else(|| StoreError::Database(format!("session number {no} has an unknown status {status}")))?;
        known.sessions.insert(no, (version, status));
    }
    for row in answers? {
        known.answers.insert(read_hash(&row, 0)?, read_answer(&row, 1)?);
    }
    for row in users? {
        let no: i64 = row.try_get(1)?;
        let career = match row.try_get::<_, Option<i64>>(2)? {
            Some(played) => Career { played, standings: read_standings(no, row.text_or_null(3)?.unwrap_or_default()) },
            None => Career::default(),
        };
        let id = decode(row.try_get(0)?).into_owned();
        known.users.insert(id, KnownUser { no, career, last: row.try_get(4)?, changed: false });
    }
    for row in ids? {
        known.ids.insert(row.try_get(0)?);
    }
    for row in codes? {
        known.codes.insert(row.try_get(0)?);
    }
    Ok(known)
}

/// Sees to it that nobody else changes what the batch counts, and reads what only the database knows then. The sessions are locked.
async fn lock_others_out(client: &Client, sharing: &Sharing, wanted: &Wanted<'_>) -> Result<KnownOfOthers, StoreError> {
    let (session, channel): (Vec<i64>, Vec<i16>) = wanted.channels.iter().copied().unzip();
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
        find(client, &sharing.lock_users, &wanted.users),
    );
    locked?;
    let mut known = KnownOfOthers::default();
    for row in lens? {
        known.lens.insert((row.try_get(0)?, row.try_get(1)?), row.integer(2)?.unsigned_abs());
    }
    for row in drawn? {
        known.numbers.push_back(row.try_get(0)?);
    }
    Ok(known)
}

fn read_hash(row: &Row, column: usize) -> Result<[u8; 32], StoreError> {
    let bytes: &[u8] = row.try_get(column)?;
    bytes.try_into().map_err(|_| StoreError::Database("a hash isn't 32 bytes".to_owned()))
}

/// An answer: the hash of what it answers, then its body.
pub(crate) fn read_answer(row: &Row, first: usize) -> Result<StoredAnswer, StoreError> {
    Ok(StoredAnswer { request: read_hash(row, first)?, body: row.try_get(first + 1)? })
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

/// What changes of sessions, column by column.
#[derive(Default)]
struct SessionRows {
    no: Vec<i64>,
    status: Vec<&'static str>,
    version: Vec<i64>,
    wake_at: Vec<Option<i64>>,
    ended_at: Vec<Option<i64>>,
    ending: Vec<Option<&'static str>>,
    category: Vec<Option<&'static str>>,
    deadline: Vec<Option<i64>>,
    announced: Vec<String>,
    players: Vec<String>,
    scores: Vec<String>,
    attributions: Vec<String>,
    usage: Vec<String>,
    unattended: Vec<i64>,
}

impl SessionRows {
    fn of<'s>(sessions: impl Iterator<Item = (i64, &'s Session)>) -> SessionRows {
        let mut rows = SessionRows::default();
        for (no, session) in sessions {
            let end = match session.phase {
                Phase::Ended { at, ending, category } => Some((at.0, ending_text(ending), category_text(category))),
                Phase::Open | Phase::Active => None,
            };
            rows.no.push(no);
            rows.status.push(session.status().as_str());
            rows.version.push(session.version.cast_signed());
            rows.wake_at.push(session.wake_at.map(|at| at.0));
            rows.ended_at.push(end.map(|(at, ..)| at));
            rows.ending.push(end.map(|(_, ending, _)| ending));
            rows.category.push(end.map(|(.., category)| category));
            rows.deadline.push(session.deadline.map(|at| at.0));
            rows.announced.push(codes_text(&session.announced));
            rows.players.push(players_text(&session.seats));
            rows.scores.push(to_json(&session.scores));
            rows.attributions.push(attributions_text(&session.attributions));
            rows.usage.push(usage_text(&session.usage));
            rows.unattended.push(session.unattended.cast_signed());
        }
        rows
    }
}

/// A column of what is new about sessions.
fn column<'p, T>(plan: &Plan<'p>, of: impl Fn(&'p Session) -> T) -> Vec<T> {
    plan.created.iter().map(|(_, session, _)| of(session)).collect()
}

/// Writes a plan and commits it. `begun` says whether the transaction has begun. Returns how long it waited for other nodes' commits.
async fn write_plan(
    holder: &Holder,
    plan: &Plan<'_>,
    begun: bool,
    mirror: Option<&RwLock<Counts>>,
) -> Result<(Duration, Option<&'static str>), Failure> {
    let Holder { client, statements, sharing, .. } = holder;
    // What changes nothing that others remember isn't told to them.
    let telling = sharing.as_ref().filter(|_| !plan.news.is_empty(&plan.effects.delta));
    let begin = async { if begun { Ok(()) } else { client.batch_execute("BEGIN").await } };

    let created = SessionRows::of(plan.created.iter().map(|(no, session, _)| (*no, *session)));
    let challenge = column(plan, |session| session.facts.challenge.as_str());
    let created_at = column(plan, |session| session.facts.created_at.0);
    let id = column(plan, |session| session.facts.id.to_string());
    let seed = column(plan, |session| seed_bytes(session.facts.seed.as_ref()));
    let options = column(plan, |session| session.facts.options.to_string());
    let invites = column(plan, |session| codes_text(&session.facts.invites));
    let script = column(plan, |session| session.facts.script.map(|script| script.to_string()));
    let state = column(plan, |session| session.state.as_str());
    let rated = column(plan, |session| rated_text(session.facts.rated.as_ref()));
    let imported: Vec<Option<i64>> =
        plan.created.iter().map(|(_, _, import)| import.map(|import| import.0.cast_signed())).collect();

    let updated = SessionRows::of(plan.updated.iter().map(|(no, (_, session))| (*no, *session)));
    let before: Vec<i64> = plan.updated.values().map(|(before, _)| *before).collect();
    let new_state: Vec<&str> = plan.updated.values().map(|(_, session)| session.state.as_str()).collect();

    let (code, code_session): (Vec<String>, Vec<i64>) = plan
        .created
        .iter()
        .flat_map(|(no, session, _)| session.facts.invites.iter().map(|invite| (invite.to_string(), *no)))
        .unzip();
    let messages = MessageRows::of(&plan.messages);
    let key: Vec<&[u8]> = plan.answers.iter().map(|answer| &answer.key[..]).collect();
    let request: Vec<&[u8]> = plan.answers.iter().map(|answer| &answer.request[..]).collect();
    let body: Vec<&str> = plan.answers.iter().map(|answer| answer.body.as_str()).collect();
    let answered_at: Vec<i64> = plan.answers.iter().map(|answer| answer.at.0).collect();

    let user: Vec<i64> = plan.users.iter().map(|(no, _)| *no).collect();
    let user_id: Vec<_> = plan.users.iter().map(|(_, id): &(i64, &UserId)| encode(id.as_str())).collect();
    let player: Vec<i64> = plan.played.iter().map(|(user, ..)| *user).collect();
    let place: Vec<i64> = plan.played.iter().map(|(_, n, _)| *n).collect();
    let game: Vec<i64> = plan.played.iter().map(|(.., session)| *session).collect();
    let career_of: Vec<i64> = plan.careers().map(|(user, _)| user).collect();
    let career_len: Vec<i64> = plan.careers().map(|(_, career)| career.played).collect();
    let standings: Vec<String> = plan.careers().map(|(_, career)| to_json(&career.standings)).collect();
    let (ending, ended): (Vec<i64>, Vec<i64>) = plan.endings.iter().copied().unzip();

    let board: Vec<&str> = plan.boards.keys().map(|board| board.as_str()).collect();
    let [board_type, board_options, board_rated] =
        [0, 1, 2].map(|at| plan.boards.values().map(|row| row[at].as_str()).collect::<Vec<_>>());

    let removed: Vec<i64> = plan.removed.iter().map(|(no, _)| *no).collect();
    let removed_codes: Vec<String> =
        plan.removed.iter().flat_map(|(_, session)| session.facts.invites.iter().map(ToString::to_string)).collect();
    let (counts, totals) = (CountRows::of(&plan.effects.delta), TotalRows::of(&plan.effects.delta));

    // All are on their way before the first is answered. What refuses one of them breaks the transaction, and the COMMIT
    // behind it rolls it back.
    let results = tokio::join!(biased;
        begin,
        execute(client, &statements.insert_sessions, created.no.len(), [
            &created.no, &created.status, &challenge, &created.version, &created.wake_at, &created_at, &created.ended_at,
            &created.ending, &created.category, &created.deadline, &id, &seed, &options, &invites, &created.announced,
            &created.players, &created.scores, &created.attributions, &state, &imported,
            &created.usage, &script, &created.unattended, &rated,
        ]),
        execute(client, &statements.update_sessions, updated.no.len(), [
            &updated.no, &before, &updated.status, &updated.version, &updated.wake_at, &updated.ended_at, &updated.ending,
            &updated.category, &updated.deadline, &updated.announced, &updated.players, &updated.scores,
            &updated.attributions, &new_state, &updated.usage, &updated.unattended,
        ]),
        execute(client, &statements.insert_invites, code.len(), [&code, &code_session]),
        execute(client, &statements.insert_messages, plan.messages.len(), [
            &messages.session, &messages.channel, &messages.index, &messages.at, &messages.sender, &messages.recipient,
            &messages.method, &messages.content, &messages.hidden,
        ]),
        execute(client, &statements.insert_answers, key.len(), [&key, &request, &body, &answered_at]),
        execute(client, &statements.insert_users, user.len(), [&user, &user_id]),
        execute(client, &statements.insert_played, player.len(), [&player, &place, &game]),
        execute(client, &statements.write_careers, career_of.len(), [&career_of, &career_len, &standings]),
        async {
            match sharing {
                None => execute(client, &statements.insert_endings, ending.len(), [&ending, &ended]).await,
                Some(_) => Ok(()),
            }
        },
        execute(client, &statements.enter_boards, board.len(), [&board, &board_type, &board_options, &board_rated]),
        execute(client, &statements.delete_sessions, removed.len(), [&removed]),
        execute(client, &statements.delete_messages, removed.len(), [&removed]),
        execute(client, &statements.delete_invites, removed_codes.len(), [&removed_codes]),
        // Behind this all nodes' commits are one after the other, so little is done there.
        async {
            match telling {
                Some(sharing) => journal::take_turn(client, sharing).await,
                None => Ok(Duration::ZERO),
            }
        },
        async {
            match telling {
                Some(sharing) => execute(client, &sharing.insert_numbered_endings, ended.len(), [&ended]).await,
                None => Ok(()),
            }
        },
        add_counts(client, statements, &counts, mirror),
        add_totals(client, statements, &totals),
        async {
            match telling {
                Some(sharing) => journal::write(holder, sharing, &plan.news, &plan.effects.delta).await,
                None => Ok(()),
            }
        },
        client.batch_execute("COMMIT"),
    );
    let (r0, r1, r2, r3, r4, r5, r6, r7, r8, r9, boards, r10, r11, r12, turn, r14, counted, totalled, r17, commit) =
        results;
    let mut suspect = None;
    let mut noted = |added: Result<Option<&'static str>, Error>| added.map(|found| suspect = suspect.or(found));
    let (r15, r16) = (noted(counted), noted(totalled));
    let (waited, r13) = turn.map_or_else(|error| (Duration::ZERO, Err(error)), |waited| (waited, Ok(())));
    Failure::of(vec![r0, r1, r2, r3, r4, r5, r6, r7, r8, r9, boards, r10, r11, r12, r13, r14, r15, r16, r17, commit])?;
    Ok((waited, suspect))
}

/// Columns of `messages`.
struct MessageRows<'m> {
    session: Vec<i64>,
    channel: Vec<i16>,
    index: Vec<i64>,
    at: Vec<i64>,
    sender: Vec<String>,
    recipient: Vec<Option<String>>,
    method: Vec<Option<Cow<'m, str>>>,
    content: Vec<Cow<'m, str>>,
    hidden: Vec<Option<String>>,
}

impl MessageRows<'_> {
    fn of<'m>(messages: &[(i64, &'m ChatMessage)]) -> MessageRows<'m> {
        let session = |(no, message): &(i64, &ChatMessage)| if message.channel == Channel::Invites { 0 } else { *no };
        let all = || messages.iter().map(|(_, message)| *message);
        let named = |name: &dyn ToString| encode(&name.to_string()).into_owned();
        MessageRows {
            session: messages.iter().map(session).collect(),
            // Three channels fit.
            channel: all().map(|message| channel_number(message.channel) as i16).collect(),
            index: all().map(|message| message.index.cast_signed()).collect(),
            at: all().map(|message| message.at.0).collect(),
            sender: all().map(|message| named(&message.from)).collect(),
            recipient: all().map(|message| message.to.as_ref().map(|to| named(to))).collect(),
            method: all().map(|message| message.method.as_deref().map(encode)).collect(),
            content: all().map(|message| encode(&message.content)).collect(),
            hidden: all().map(|message| message.hidden.as_ref().map(ToString::to_string)).collect(),
        }
    }
}
