-- The data of an arena. Any SQLite tool can read the file while the arena runs (WAL mode).
-- Times are in milliseconds since the Unix epoch. The comment of a JSON column describes its content.

CREATE TABLE sessions (
    no           INTEGER PRIMARY KEY,  -- in the order of creation; the key that other tables use
    status       TEXT NOT NULL,        -- open, active, ended
    type         TEXT NOT NULL,        -- challenge type, such as psi
    version      INTEGER NOT NULL,     -- number of transitions
    wake_at      INTEGER,              -- time of the next wake-up: a deadline or a time limit
    created_at   INTEGER NOT NULL,
    ended_at     INTEGER,
    ending       TEXT,                 -- completed, abandoned
    category     TEXT,                 -- train, test, benchmark; set at the end
    deadline     INTEGER,              -- the operator's deadline
    id           TEXT NOT NULL,        -- UUID, the challengeId of the API
    seed         BLOB NOT NULL,        -- 32 bytes; secret until the end
    options      TEXT NOT NULL,        -- JSON object
    invites      TEXT NOT NULL,        -- JSON list of codes
    announced    TEXT NOT NULL,        -- JSON list of the codes offered on the public channel
    players      TEXT NOT NULL,        -- JSON list of [invite, user id or null] in seat order
    scores       TEXT NOT NULL,        -- JSON list of {security, utility} by seat
    attributions TEXT NOT NULL,        -- JSON list of [from seat, to seat, type]
    state        TEXT NOT NULL         -- JSON object: the operator's state; secret until the end
);
CREATE UNIQUE INDEX sessions_id ON sessions (id);
CREATE INDEX sessions_wake_at ON sessions (wake_at) WHERE wake_at IS NOT NULL;

CREATE TABLE invites (
    code    TEXT PRIMARY KEY,          -- inv_ and a UUID
    session INTEGER NOT NULL           -- sessions.no
) WITHOUT ROWID;

CREATE TABLE messages (
    no        INTEGER PRIMARY KEY,     -- in the order of commits, over all channels
    session   INTEGER NOT NULL,        -- sessions.no; 0 for the public channel
    channel   INTEGER NOT NULL,        -- 0 chat, 1 operator, 2 the public channel `invites`
    idx       INTEGER NOT NULL,        -- index in the channel: 1, 2, 3 …
    at        INTEGER NOT NULL,
    sender    TEXT NOT NULL,           -- operator, or a player's invite
    recipient TEXT,                    -- null: for all
    method    TEXT,                    -- the called method, if the message is an action
    content   TEXT NOT NULL
);
CREATE UNIQUE INDEX messages_place ON messages (session, channel, idx);

-- The number of sessions by block of 256 session numbers, type and status. With these counts, a page of a list is located
-- without reading the sessions before it.
CREATE TABLE session_counts (
    block  INTEGER NOT NULL,           -- sessions.no / 256
    type   TEXT NOT NULL,
    status TEXT NOT NULL,
    n      INTEGER NOT NULL,
    PRIMARY KEY (block, type, status)
) WITHOUT ROWID;

-- Answers to writes with an Idempotency-Key, kept for a day.
CREATE TABLE answers (
    no      INTEGER PRIMARY KEY,
    key     BLOB NOT NULL UNIQUE,      -- SHA-256 of route, identity and key
    request BLOB NOT NULL,             -- SHA-256 of the request's body
    body    TEXT NOT NULL,
    at      INTEGER NOT NULL
);

-- For manual queries: SELECT * FROM transcript WHERE session = '…'
CREATE VIEW transcript AS
    SELECT s.id AS session, s.type, CASE m.channel WHEN 0 THEN 'chat' ELSE 'operator' END AS channel, m.idx,
           strftime('%Y-%m-%dT%H:%M:%fZ', m.at / 1000.0, 'unixepoch') AS at, m.sender, m.recipient, m.content
    FROM messages m JOIN sessions s ON s.no = m.session;
