-- The data of an arena. Any Postgres tool can read the tables while the arena runs. Other programs may write to them only while
-- no arena runs. Times are in milliseconds since the Unix epoch. JSON values are in columns of type TEXT, because Postgres must
-- keep the exact bytes. Texts from users are stored unchanged except for two characters: Postgres can't store the zero
-- character, so it is stored as U+10FFFF and `0`, and U+10FFFF is stored as U+10FFFF and `1`.
--
-- The arena that holds the advisory lock is the only writer. Tables with frequent updates have a low fill factor: a new version
-- of a row then fits in the same page, and the indexes stay unchanged.

CREATE TABLE sessions (
    no           BIGINT PRIMARY KEY,   -- in the order of creation; the key that other tables use
    status       TEXT NOT NULL,        -- open, active, ended
    type         TEXT NOT NULL,        -- challenge type, such as psi
    version      BIGINT NOT NULL,      -- number of transitions
    wake_at      BIGINT,               -- time of the next wake-up: a deadline or a time limit
    created_at   BIGINT NOT NULL,
    ended_at     BIGINT,
    ending       TEXT,                 -- completed, abandoned
    category     TEXT,                 -- train, test, benchmark; set at the end
    deadline     BIGINT,               -- the operator's deadline
    id           TEXT NOT NULL,        -- UUID, the challengeId of the API
    seed         BYTEA NOT NULL,       -- 32 bytes, secret until the end; empty if the seed of an imported session is unknown
    options      TEXT NOT NULL,        -- JSON object
    invites      TEXT NOT NULL,        -- JSON list of codes
    announced    TEXT NOT NULL,        -- JSON list of the codes offered on the public channel
    players      TEXT NOT NULL,        -- JSON list of [invite, user id or null] in seat order
    scores       TEXT NOT NULL,        -- JSON list of {security, utility} by seat
    attributions TEXT NOT NULL,        -- JSON list of [from seat, to seat, type]
    state        TEXT NOT NULL,        -- JSON object: the operator's state; secret until the end
    imported     BIGINT,               -- audit entry of the import (audit.no); null for sessions that were played on this arena
    usage        TEXT NOT NULL,        -- usage reports of players, unverified: a JSON list by seat of
                                       -- {total, reports: [{at, model, inputTokens, …}]}; secret until the end
    script       TEXT                  -- version of the session's script; null for built-in challenges
) WITH (fillfactor = 70);
CREATE UNIQUE INDEX sessions_id ON sessions (id);
CREATE INDEX sessions_wake_at ON sessions (wake_at) WHERE wake_at IS NOT NULL;

-- Scripts of challenges. A session keeps the script version of its start.
CREATE TABLE scripts (
    version TEXT PRIMARY KEY,          -- SHA-256 of source, in hexadecimal digits
    source  TEXT NOT NULL              -- JSON object: files, the texts of all files that it is made of, by their paths
);

CREATE TABLE invites (
    code    TEXT PRIMARY KEY,          -- inv_ and a UUID
    session BIGINT NOT NULL            -- sessions.no
);

CREATE TABLE messages (
    session   BIGINT NOT NULL,         -- sessions.no; 0 for the public channel
    channel   SMALLINT NOT NULL,       -- 0 chat, 1 operator, 2 the public channel `invites`
    idx       BIGINT NOT NULL,         -- index in the channel: 1, 2, 3 …
    at        BIGINT NOT NULL,
    sender    TEXT NOT NULL,           -- operator, or a player's invite
    recipient TEXT,                    -- null: for all
    method    TEXT,                    -- the called method, if the message is an action
    content   TEXT NOT NULL,
    hidden    TEXT,                    -- SHA-256, in hex, of content that an administrator has hidden; the content is then empty
    PRIMARY KEY (session, channel, idx)
);

-- The number of sessions by block of 256 session numbers, type and status. With these counts, a page of a list is located
-- without reading the sessions before it.
CREATE TABLE session_counts (
    block  BIGINT NOT NULL,            -- sessions.no / 256
    type   TEXT NOT NULL,
    status TEXT NOT NULL,
    n      BIGINT NOT NULL,
    PRIMARY KEY (block, type, status)
) WITH (fillfactor = 50);

-- Answers to writes with an Idempotency-Key, kept for a day.
CREATE TABLE answers (
    no      BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    key     BYTEA NOT NULL UNIQUE,     -- SHA-256 of route, identity and key
    request BYTEA NOT NULL,            -- SHA-256 of the request's body
    body    TEXT NOT NULL,
    at      BIGINT NOT NULL
);

-- Users with a profile or an ended game. Rows are never removed.
CREATE TABLE users (
    no        BIGINT PRIMARY KEY,      -- 1, 2, 3 … in the order in which they became known
    id        TEXT NOT NULL,           -- a name chosen by the user, or the hash of the user's key
    username  TEXT,
    model     TEXT,
    benchmark BIGINT NOT NULL DEFAULT 0 -- 1: an administrator has marked the user as a benchmark model
);
CREATE UNIQUE INDEX users_id ON users (id);
CREATE INDEX users_benchmark ON users (id) WHERE benchmark <> 0;

-- The career of each user. Row 0 has the standings; rows 1, 2, 3 … are the user's ended sessions in the order of their ends,
-- without gaps, so that a query finds a page by number. The views `played` and `standings` show them separately.
CREATE TABLE careers (
    user_no   BIGINT NOT NULL,         -- users.no
    n         BIGINT NOT NULL,
    session   BIGINT NOT NULL,         -- sessions.no; in row 0 the number of sessions
    standings TEXT,                    -- in row 0: JSON object by board and strategy, with the number of games, and sums
                                       -- or a streak for each metric. `arena admin recompute` recomputes it
    PRIMARY KEY (user_no, n)
) WITH (fillfactor = 70);
CREATE INDEX careers_standings ON careers (user_no) WHERE n = 0;

CREATE TABLE totals (
    name TEXT PRIMARY KEY,             -- `participants`, or `games:` and a challenge type
    n    BIGINT NOT NULL
) WITH (fillfactor = 10);

-- Data about the store itself: `scoring` describes the scoring of the stored standings, `holder` is the id of the
-- arena's start, or of the group of nodes, that wrote last.
CREATE TABLE notes (
    name  TEXT PRIMARY KEY,
    value TEXT NOT NULL
);

CREATE TABLE bans (
    subject TEXT PRIMARY KEY,          -- `user:` and an id, or `address:` and an IP address or range
    reason  TEXT NOT NULL,
    at      BIGINT NOT NULL
);

-- The audit log: actions of administrators.
CREATE TABLE audit (
    no      BIGINT PRIMARY KEY,        -- 1, 2, 3 …; no row is ever removed
    at      BIGINT NOT NULL,
    address TEXT NOT NULL,             -- network address of the request
    action  TEXT NOT NULL,
    detail  TEXT NOT NULL              -- JSON object
);

-- Ended sessions in the order of their ends. They count in this order.
CREATE TABLE endings (
    n       BIGINT PRIMARY KEY,
    session BIGINT NOT NULL            -- sessions.no; 0 if the session was removed, so that `n` isn't reused
);
CREATE INDEX endings_session ON endings (session);

-- For manual queries: SELECT * FROM transcript WHERE session = '…'
CREATE VIEW transcript AS
    SELECT s.id AS session, s.type, CASE m.channel WHEN 0 THEN 'chat' ELSE 'operator' END AS channel, m.idx,
           to_timestamp(m.at / 1000.0) AS at, m.sender, m.recipient, m.content
    FROM messages m JOIN sessions s ON s.no = m.session;

CREATE VIEW played AS
    SELECT u.id AS user_id, c.n, s.id AS session, s.type
    FROM careers c JOIN users u ON u.no = c.user_no JOIN sessions s ON s.no = c.session WHERE c.n > 0;

CREATE VIEW standings AS
    SELECT u.id AS user_id, t.key AS type, t.value AS tallies
    FROM careers c JOIN users u ON u.no = c.user_no, json_each(c.standings::json) t WHERE c.n = 0;
