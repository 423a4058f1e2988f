-- Users with their histories and standings, and the audit log.

-- Users with a profile or an ended game. Rows are never removed.
CREATE TABLE users (
    no        INTEGER PRIMARY KEY,        -- 1, 2, 3 … in the order in which they became known
    id        TEXT NOT NULL,              -- a name chosen by the user, or the hash of the user's key
    username  TEXT,
    model     TEXT,
    benchmark INTEGER NOT NULL DEFAULT 0  -- 1: an administrator has marked the user as a benchmark model
);
CREATE UNIQUE INDEX users_id ON users (id);
CREATE INDEX users_benchmark ON users (id) WHERE benchmark;

-- The career of each user. Row 0 has the standings; rows 1, 2, 3 … are the user's ended sessions in the order of their ends,
-- without gaps, so that a query finds a page by number. The end of a game changes the history and the standings. They are in
-- one table so that both changes are in one page. The views `played` and `standings` show them separately.
CREATE TABLE careers (
    user      INTEGER NOT NULL,           -- users.no
    n         INTEGER NOT NULL,
    session   INTEGER NOT NULL,           -- sessions.no; in row 0 the number of sessions
    standings TEXT,                       -- in row 0: JSON object by board and strategy, with the number of games, and sums
                                          -- or a streak for each metric. `arena admin recompute` recomputes it
    PRIMARY KEY (user, n)
) WITHOUT ROWID;

CREATE VIEW played AS
    SELECT u.id AS user, c.n, s.id AS session, s.type
    FROM careers c JOIN users u ON u.no = c.user JOIN sessions s ON s.no = c.session WHERE c.n > 0;

CREATE VIEW standings AS
    SELECT u.id AS user, t.key AS type, t.value AS tallies
    FROM careers c JOIN users u ON u.no = c.user, json_each(c.standings) t WHERE c.n = 0;

CREATE TABLE totals (
    name TEXT PRIMARY KEY,                -- `participants`, or `games:` and a challenge type
    n    INTEGER NOT NULL
) WITHOUT ROWID;

-- Data about the store itself: `scoring` describes the scoring of the stored standings.
CREATE TABLE notes (
    name  TEXT PRIMARY KEY,
    value TEXT NOT NULL
) WITHOUT ROWID;

CREATE TABLE bans (
    subject TEXT PRIMARY KEY,             -- `user:` and an id, or `address:` and an IP address or range
    reason  TEXT NOT NULL,
    at      INTEGER NOT NULL
) WITHOUT ROWID;

-- The audit log: actions of administrators.
CREATE TABLE audit (
    no      INTEGER PRIMARY KEY,          -- 1, 2, 3 …; no row is ever removed
    at      INTEGER NOT NULL,
    address TEXT NOT NULL,                -- network address of the request
    action  TEXT NOT NULL,
    detail  TEXT NOT NULL                 -- JSON object
);

-- Ended sessions in the order of their ends. They count in this order.
CREATE TABLE endings (
    n       INTEGER PRIMARY KEY,
    session INTEGER NOT NULL              -- sessions.no; 0 if the session was removed, so that `n` isn't reused
);
CREATE INDEX endings_session ON endings (session);

-- The audit entry of the session's import (audit.no); NULL for sessions that were played on this arena. If the seed of an
-- imported session is unknown, the column `seed` is empty.
ALTER TABLE sessions ADD COLUMN imported INTEGER;

-- SHA-256, in hex, of content that an administrator has hidden; the content is then empty.
ALTER TABLE messages ADD COLUMN hidden TEXT;
