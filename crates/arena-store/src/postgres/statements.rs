//! The statements that the writing connection prepares, and the keys of advisory locks.

use tokio_postgres::{Client, Statement};

use crate::StoreError;
use crate::sql::{Dialect, insert};
use crate::tables::{
    Answers, Boards, Careers, Endings, Invites, Messages, RemovedSessions, Sessions, Users, update_sessions,
};
use crate::writing::Locks;

/// The advisory lock of arenas, held exclusively or shared. Its key is this number with the hash of the schema's
/// name, so that arenas in two schemas of a database are independent.
pub(super) const LOCK: i32 = 0x4152_454E;

/// The lock that a node holds during its start.
pub(super) const START_LOCK: i32 = LOCK + 1;

/// The lock that a node holds from the moment when it assigns numbers to users until its commit.
const USERS_LOCK: i32 = LOCK + 2;

/// The lock of the node that writes the log, until its connection ends.
const LEADER_LOCK: i32 = LOCK + 3;

macro_rules! statements {
    ($(#[$about:meta])* $all:ident: $($(#[$doc:meta])* $name:ident: $sql:expr;)*) => {
        $(#[$about])*
        pub(crate) struct $all {
            $($(#[$doc])* pub(crate) $name: Statement,)*
        }

        impl $all {
            pub(crate) async fn prepare(client: &Client) -> Result<$all, StoreError> {
                // All statements are prepared in one round trip.
                let ($($name,)*) = tokio::try_join!(biased; $(async { client.prepare(&$sql).await },)*)?;
                Ok($all { $($name,)* })
            }
        }
    };
}

statements! {
    /// The additional statements of batches in a shared database, prepared once for each connection.
    Sharing:
    /// Reads and locks these sessions, except those that another node is changing. A decision about such a session is
    /// outdated anyway, and this node doesn't wait for a node that stalls.
    lock_free_sessions: "SELECT no, version, status, wake_at FROM sessions WHERE no = ANY($1) ORDER BY no
         FOR UPDATE SKIP LOCKED";
    /// Reads the lengths of these channels. Their sessions are locked, so that no other node adds messages. A channel
    /// without messages may be one of an archived session.
    find_lens: "SELECT w.session, w.channel, m.idx FROM unnest($1::int8[], $2::int2[]) AS w (session, channel)
         CROSS JOIN LATERAL (SELECT coalesce((SELECT idx FROM messages
             WHERE messages.session = w.session AND messages.channel = w.channel ORDER BY idx DESC LIMIT 1),
             (SELECT CASE w.channel WHEN 0 THEN a.chat_len WHEN 1 THEN a.operator_len END FROM archives a
             WHERE a.session = w.session)) AS idx) m WHERE m.idx IS NOT NULL";
    /// Locks the careers of these users until the end of the transaction. All nodes lock in the same order, so that
    /// two nodes can't deadlock.
    lock_users: "SELECT no FROM users WHERE id = ANY($1) ORDER BY no FOR NO KEY UPDATE";
    /// Draws numbers for new sessions.
    draw_numbers: "SELECT nextval('session_numbers') FROM generate_series(1, $1::int8)";
    lock_numbers_of_users: format!("SELECT pg_advisory_xact_lock({USERS_LOCK}, hashtext(current_schema()))");
    /// Assigns numbers to those of these users that have none.
    number_users: "INSERT INTO users (no, id)
         SELECT (SELECT coalesce(max(no), 0) FROM users) + row_number() OVER (ORDER BY w.place), w.id
         FROM unnest($1::text[]) WITH ORDINALITY AS w (id, place)
         WHERE NOT EXISTS (SELECT FROM users known WHERE known.id = w.id)";
    /// Locks a number until the end of the transaction.
    lock_number: "SELECT n FROM numbers WHERE kind = $1 FOR UPDATE";
    note_change: "INSERT INTO changes AS c (kind, n) VALUES ($1, 1) ON CONFLICT (kind) DO UPDATE SET n = c.n + 1";
    /// Adds to counts, with the number of this change. The number stays locked until the commit, so that a node that has
    /// read a number has read all smaller ones.
    add_counts: "WITH last AS (UPDATE numbers SET n = n + 1 WHERE kind = 'counts' RETURNING n)
         INSERT INTO session_counts AS c (block, type, status, n, changed)
         SELECT w.*, last.n FROM last CROSS JOIN unnest($1::int8[], $2::text[], $3::text[], $4::int8[]) AS w (block, type, status, n)
         ON CONFLICT (block, type, status) DO UPDATE SET n = c.n + excluded.n, changed = excluded.changed
         RETURNING block, type, status, n";
    /// Numbers endings in the order of commits, without gaps.
    insert_numbered_endings: "WITH last AS (UPDATE numbers SET n = n + cardinality($1::int8[]) WHERE kind = 'endings' RETURNING n)
         INSERT INTO endings (n, session)
         SELECT last.n - cardinality($1::int8[]) + w.place, w.session
         FROM last CROSS JOIN unnest($1::int8[]) WITH ORDINALITY AS w (session, place)";
    try_to_lead: format!("SELECT pg_try_advisory_lock({LEADER_LOCK}, hashtext(current_schema()))");
}

impl Sharing {
    pub(crate) fn locks(&self) -> Locks {
        Locks {
            lock_number: self.lock_number.clone(),
            lock_users: self.lock_users.clone(),
            lock_numbers_of_users: self.lock_numbers_of_users.clone(),
            number_users: self.number_users.clone(),
        }
    }
}

/// Finds each invite with the index, regardless of the planner's estimate of the table's size.
const DELETE_INVITES: &str = "DELETE FROM invites WHERE ctid = ANY (ARRAY(
         SELECT f.ctid FROM unnest($1::text[]) AS w (code) CROSS JOIN LATERAL
         (SELECT ctid FROM invites i WHERE i.made = right(w.code, 12) AND i.code = w.code LIMIT 1) f))";

statements! {
    /// The statements of batches, prepared once for each connection.
    Statements:
    /// Finds the answers stored under these keys.
    find_answers: "SELECT key, request, body FROM answers WHERE key = ANY($1)";
    /// Reads and locks these sessions until the end of the transaction.
    lock_sessions: "SELECT no, version, status, wake_at FROM sessions WHERE no = ANY($1) ORDER BY no FOR UPDATE";
    /// Reads the careers of these users.
    find_careers: "SELECT u.id, u.no, c.session, c.standings,
             (SELECT coalesce(max(last.n), 0) FROM careers last WHERE last.user_no = u.no) FROM users u
         LEFT JOIN careers c ON c.user_no = u.no AND c.n = 0 WHERE u.id = ANY($1)";
    /// Returns the ids in the list that belong to stored sessions.
    find_ids: "SELECT f.id FROM unnest($1::text[]) AS w (id) CROSS JOIN LATERAL
         (SELECT id FROM sessions s WHERE right(s.id, 12) = right(w.id, 12) AND s.id = w.id LIMIT 1) f";
    /// Returns the invites in the list that belong to stored sessions.
    find_codes: "SELECT f.code FROM unnest($1::text[]) AS w (code) CROSS JOIN LATERAL
         (SELECT code FROM invites i WHERE i.made = right(w.code, 12) AND i.code = w.code LIMIT 1) f";
    insert_sessions: insert::<Sessions>(Dialect::Postgres, "");
    update_sessions: update_sessions(Dialect::Postgres, true);
    insert_invites: insert::<Invites>(Dialect::Postgres, "");
    insert_messages: insert::<Messages>(Dialect::Postgres, "");
    insert_answers: insert::<Answers>(Dialect::Postgres, "");
    insert_users: insert::<Users>(Dialect::Postgres, "");
    insert_played: insert::<Careers>(Dialect::Postgres, "");
    write_careers: insert::<Careers>(Dialect::Postgres, Careers::REPLACE);
    /// Adds boards. All nodes insert in the same order, so that two nodes can't deadlock.
    enter_boards: insert::<Boards>(Dialect::Postgres, "ORDER BY 1 ON CONFLICT DO NOTHING");
    insert_endings: insert::<Endings>(Dialect::Postgres, "");
    delete_sessions: "DELETE FROM sessions WHERE no = ANY($1)";
    delete_messages: "DELETE FROM messages WHERE session = ANY($1)";
    delete_invites: DELETE_INVITES;
    insert_removed: insert::<RemovedSessions>(Dialect::Postgres, "");
    add_counts: "INSERT INTO session_counts AS c (block, type, status, n)
         SELECT * FROM unnest($1::int8[], $2::text[], $3::text[], $4::int8[])
         ON CONFLICT (block, type, status) DO UPDATE SET n = c.n + excluded.n RETURNING block, type, status, n";
    add_totals: "INSERT INTO totals AS t (name, n) SELECT * FROM unnest($1::text[], $2::int8[])
         ON CONFLICT (name) DO UPDATE SET n = t.n + excluded.n RETURNING n";
}
