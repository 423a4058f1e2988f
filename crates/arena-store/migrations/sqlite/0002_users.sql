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

-- The ended sessions of each user: its first is 1, and there are no gaps, so that a page is found without walking.
CREATE TABLE played (
    user    INTEGER NOT NULL,             -- users.no
    n       INTEGER NOT NULL,
    session INTEGER NOT NULL,             -- sessions.no
    PRIMARY KEY (user, n)
) WITHOUT ROWID;

-- What scoring remembers of a user in one challenge type. Rebuilt from `played` by `arena admin recompute`.
CREATE TABLE standings (
    user    INTEGER NOT NULL,             -- users.no
    type    TEXT NOT NULL,                -- challenge type
    tallies TEXT NOT NULL,                -- JSON object by strategy: games, and for each metric sums or a streak
    PRIMARY KEY (user, type)
) WITHOUT ROWID;

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
    subject TEXT PRIMARY KEY,             -- user: and an id, or address: and an IP address
    reason  TEXT NOT NULL,
    at      INTEGER NOT NULL
) WITHOUT ROWID;

-- What administrators did.
CREATE TABLE audit (
    no      INTEGER PRIMARY KEY,
    at      INTEGER NOT NULL,
    address TEXT NOT NULL,                -- where the request came from
    action  TEXT NOT NULL,
    detail  TEXT NOT NULL                 -- JSON object
);

-- SHA-256, in hex, of the content that an administrator has hidden; the content itself is gone then.
ALTER TABLE messages ADD COLUMN hidden TEXT;
