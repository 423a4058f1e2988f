-- Users, what they played, and what scoring remembers of it; what administrators did.

-- Everybody with an identity who has told something about itself or whose game has ended. None is ever removed.
CREATE TABLE users (
    no        INTEGER PRIMARY KEY,        -- 1, 2, 3 … in the order in which they became known
    id        TEXT NOT NULL,              -- a name of the user's choosing, or the hash of its key
    username  TEXT,
    model     TEXT,
    benchmark INTEGER NOT NULL DEFAULT 0  -- 1: an administrator says that it is a benchmark model
);
CREATE UNIQUE INDEX users_id ON users (id);
CREATE INDEX users_benchmark ON users (id) WHERE benchmark;

-- What a user has done. Row 0 is what scoring remembers of it; rows 1, 2, 3 … are its ended sessions in their order, without
-- gaps, so that a page is found without walking. In one table, since the end of a game changes both: it is one page then.
-- The views `played` and `standings` show them apart.
CREATE TABLE careers (
    user      INTEGER NOT NULL,           -- users.no
    n         INTEGER NOT NULL,
    session   INTEGER NOT NULL,           -- sessions.no; in row 0 the number of sessions
    standings TEXT,                       -- in row 0: JSON object by challenge type and strategy: games, and for each
                                          -- metric sums or a streak. Rebuilt from the sessions by `arena admin recompute`
    PRIMARY KEY (user, n)
) WITHOUT ROWID;

CREATE VIEW played AS
    SELECT u.id AS user, c.n, s.id AS session, s.type
    FROM careers c JOIN users u ON u.no = c.user JOIN sessions s ON s.no = c.session WHERE c.n > 0;

CREATE VIEW standings AS
    SELECT u.id AS user, t.key AS type, t.value AS tallies
    FROM careers c JOIN users u ON u.no = c.user, json_each(c.standings) t WHERE c.n = 0;

CREATE TABLE totals (
    name TEXT PRIMARY KEY,                -- participants, or games: and a challenge type
    n    INTEGER NOT NULL
) WITHOUT ROWID;

-- What the store remembers of itself: `scoring` is which strategies the standings were counted by.
CREATE TABLE notes (
    name  TEXT PRIMARY KEY,
    value TEXT NOT NULL
) WITHOUT ROWID;

CREATE TABLE bans (
    subject TEXT PRIMARY KEY,             -- user: and an id, or address: and an IP address or a prefix of some
    reason  TEXT NOT NULL,
    at      INTEGER NOT NULL
) WITHOUT ROWID;

-- What administrators did.
CREATE TABLE audit (
    no      INTEGER PRIMARY KEY,          -- 1, 2, 3 …; no row is ever removed
    at      INTEGER NOT NULL,
    address TEXT NOT NULL,                -- where the request came from
    action  TEXT NOT NULL,
    detail  TEXT NOT NULL                 -- JSON object
);

-- Ended sessions in the order in which they ended, which is the order in which they count.
CREATE TABLE endings (
    n       INTEGER PRIMARY KEY,
    session INTEGER NOT NULL              -- sessions.no; 0 if it has been removed, so that no number is given twice
);
CREATE INDEX endings_session ON endings (session);

-- The import that brought a session (audit.no); null for those that were played here. The seed of an imported session
-- may be unknown: no bytes then.
ALTER TABLE sessions ADD COLUMN imported INTEGER;

-- SHA-256, in hex, of the content that an administrator has hidden; the content itself is gone then.
ALTER TABLE messages ADD COLUMN hidden TEXT;
