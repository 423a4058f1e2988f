-- Everything an arena remembers. Look at it with any Postgres tool, while the arena runs if you like; write to it only when no
-- arena runs. Times are milliseconds since the Unix epoch. JSON columns hold what their comment says, as text, since the bytes
-- count that the arena wrote. Texts that people wrote stand here as they are, but for the zero character, which Postgres
-- doesn't take: it is U+10FFFF and `0` here, and U+10FFFF itself is U+10FFFF and `1`.
--
-- The only writer is the arena that holds the advisory lock. Rows that are written again and again leave room in their pages,
-- so that their new versions stay there and indexes are left alone.

CREATE TABLE sessions (
    no           BIGINT PRIMARY KEY,   -- in the order of creation; the key that other tables use
    status       TEXT NOT NULL,        -- open, active, ended
    type         TEXT NOT NULL,        -- challenge type, such as psi
    version      BIGINT NOT NULL,      -- counts the transitions
    wake_at      BIGINT,               -- when somebody has to look at it unasked
    created_at   BIGINT NOT NULL,
    ended_at     BIGINT,
    ending       TEXT,                 -- completed, abandoned
    category     TEXT,                 -- train, test, benchmark; set at the end
    deadline     BIGINT,               -- when the operator wants to be woken
    id           TEXT NOT NULL,        -- UUID, the challengeId of the API
    seed         BYTEA NOT NULL,       -- 32 bytes, secret until the end; none if it is an imported session's and unknown
    options      TEXT NOT NULL,        -- JSON object
    invites      TEXT NOT NULL,        -- JSON list of codes
    announced    TEXT NOT NULL,        -- JSON list of the codes offered on the public channel
    players      TEXT NOT NULL,        -- JSON list of [invite, user id or null] in seat order
    scores       TEXT NOT NULL,        -- JSON list of {security, utility} by seat
    attributions TEXT NOT NULL,        -- JSON list of [from seat, to seat, type]
    state        TEXT NOT NULL,        -- JSON object: what the operator remembers; secret until the end
    imported     BIGINT,               -- the import that brought it (audit.no); null for those that were played here
    usage        TEXT NOT NULL,        -- what players say that their play has cost: a JSON list by seat of
                                       -- {total, reports: [{at, model, inputTokens, …}]}. Nobody verifies it; secret until the end
    script       TEXT                  -- the version of the script that it is played by; null where the challenge is no script
) WITH (fillfactor = 70);
CREATE UNIQUE INDEX sessions_id ON sessions (id);
CREATE INDEX sessions_wake_at ON sessions (wake_at) WHERE wake_at IS NOT NULL;

-- Scripts: challenges whose rules are files that anybody can write. A session is played to its end by the version it began with.
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
    idx       BIGINT NOT NULL,         -- place in the channel: 1, 2, 3 …
    at        BIGINT NOT NULL,
    sender    TEXT NOT NULL,           -- operator, or a player's invite
    recipient TEXT,                    -- null: for everybody
    method    TEXT,                    -- the method called, if it records an action
    content   TEXT NOT NULL,
    hidden    TEXT,                    -- SHA-256, in hex, of a content that an administrator has hidden; the content is gone then
    PRIMARY KEY (session, channel, idx)
);

-- How many sessions of a type and status stand in each block of 256 numbers, so that a page of the list is found
-- without walking over those before it.
CREATE TABLE session_counts (
    block  BIGINT NOT NULL,            -- sessions.no / 256
    type   TEXT NOT NULL,
    status TEXT NOT NULL,
    n      BIGINT NOT NULL,
    PRIMARY KEY (block, type, status)
) WITH (fillfactor = 50);

-- Answers given to writes that carried an Idempotency-Key, kept for a day.
CREATE TABLE answers (
    no      BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    key     BYTEA NOT NULL UNIQUE,     -- SHA-256 over route, identity and key
    request BYTEA NOT NULL,            -- SHA-256 of the request's body
    body    TEXT NOT NULL,
    at      BIGINT NOT NULL
);

-- Everybody with an identity who has told something about itself or whose game has ended. None is ever removed.
CREATE TABLE users (
    no        BIGINT PRIMARY KEY,      -- 1, 2, 3 … in the order in which they became known
    id        TEXT NOT NULL,           -- a name of the user's choosing, or the hash of its key
    username  TEXT,
    model     TEXT,
    benchmark BIGINT NOT NULL DEFAULT 0 -- 1: an administrator says that it is a benchmark model
);
CREATE UNIQUE INDEX users_id ON users (id);
CREATE INDEX users_benchmark ON users (id) WHERE benchmark <> 0;

-- What a user has done. Row 0 is what scoring remembers of it; rows 1, 2, 3 … are its ended sessions in their order, without
-- gaps, so that a page is found without walking. The views `played` and `standings` show them apart.
CREATE TABLE careers (
    user_no   BIGINT NOT NULL,         -- users.no
    n         BIGINT NOT NULL,
    session   BIGINT NOT NULL,         -- sessions.no; in row 0 the number of sessions
    standings TEXT,                    -- in row 0: JSON object by challenge type and strategy: games, and for each
                                       -- metric sums or a streak. Rebuilt from the sessions by `arena admin recompute`
    PRIMARY KEY (user_no, n)
) WITH (fillfactor = 70);
CREATE INDEX careers_standings ON careers (user_no) WHERE n = 0;

CREATE TABLE totals (
    name TEXT PRIMARY KEY,             -- participants, or games: and a challenge type
    n    BIGINT NOT NULL
) WITH (fillfactor = 10);

-- What the store remembers of itself: `scoring` is which strategies the standings were counted by, `holder` which start of
-- an arena wrote last.
CREATE TABLE notes (
    name  TEXT PRIMARY KEY,
    value TEXT NOT NULL
);

CREATE TABLE bans (
    subject TEXT PRIMARY KEY,          -- user: and an id, or address: and an IP address or a prefix of some
    reason  TEXT NOT NULL,
    at      BIGINT NOT NULL
);

-- What administrators did.
CREATE TABLE audit (
    no      BIGINT PRIMARY KEY,        -- 1, 2, 3 …; no row is ever removed
    at      BIGINT NOT NULL,
    address TEXT NOT NULL,             -- where the request came from
    action  TEXT NOT NULL,
    detail  TEXT NOT NULL              -- JSON object
);

-- Ended sessions in the order in which they ended, which is the order in which they count.
CREATE TABLE endings (
    n       BIGINT PRIMARY KEY,
    session BIGINT NOT NULL            -- sessions.no; 0 if it has been removed, so that no number is given twice
);
CREATE INDEX endings_session ON endings (session);

-- For people: SELECT * FROM transcript WHERE session = '…'
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
