-- Everything an arena remembers. Open it with any SQLite tool, while the arena runs if you like (it is in WAL mode).
-- Times are milliseconds since the Unix epoch. JSON columns hold what their comment says.

CREATE TABLE sessions (
    no           INTEGER PRIMARY KEY,  -- in the order of creation; the key that other tables use
    status       TEXT NOT NULL,        -- open, active, ended
    type         TEXT NOT NULL,        -- challenge type, such as psi
    version      INTEGER NOT NULL,     -- counts the transitions
    wake_at      INTEGER,              -- when somebody has to look at it unasked
    created_at   INTEGER NOT NULL,
    ended_at     INTEGER,
    ending       TEXT,                 -- completed, abandoned
    category     TEXT,                 -- train, test, benchmark; set at the end
    deadline     INTEGER,              -- when the operator wants to be woken
    id           TEXT NOT NULL,        -- UUID, the challengeId of the API
    seed         BLOB NOT NULL,        -- 32 bytes; secret until the end
    options      TEXT NOT NULL,        -- JSON object
    invites      TEXT NOT NULL,        -- JSON list of codes
    announced    TEXT NOT NULL,        -- JSON list of the codes offered on the public channel
    players      TEXT NOT NULL,        -- JSON list of [invite, user id or null] in seat order
    scores       TEXT NOT NULL,        -- JSON list of {security, utility} by seat
    attributions TEXT NOT NULL,        -- JSON list of [from seat, to seat, type]
    state        TEXT NOT NULL         -- JSON object: what the operator remembers; secret until the end
);
CREATE UNIQUE INDEX sessions_id ON sessions (id);
CREATE INDEX sessions_wake_at ON sessions (wake_at) WHERE wake_at IS NOT NULL;

CREATE TABLE invites (
    code    TEXT PRIMARY KEY,          -- inv_ and a UUID
    session INTEGER NOT NULL           -- sessions.no
) WITHOUT ROWID;

CREATE TABLE messages (
    no        INTEGER PRIMARY KEY,     -- in the order of commit, over all channels
    session   INTEGER NOT NULL,        -- sessions.no; 0 for the public channel
    channel   INTEGER NOT NULL,        -- 0 chat, 1 operator, 2 the public channel `invites`
    idx       INTEGER NOT NULL,        -- place in the channel: 1, 2, 3 …
    at        INTEGER NOT NULL,
    sender    TEXT NOT NULL,           -- operator, or a player's invite
    recipient TEXT,                    -- null: for everybody
    method    TEXT,                    -- the method called, if it records an action
    content   TEXT NOT NULL
);
CREATE UNIQUE INDEX messages_place ON messages (session, channel, idx);

-- How many sessions of a type and status stand in each block of 256 numbers, so that a page of the list is found
-- without walking over those before it.
CREATE TABLE session_counts (
    block  INTEGER NOT NULL,           -- sessions.no / 256
    type   TEXT NOT NULL,
    status TEXT NOT NULL,
    n      INTEGER NOT NULL,
    PRIMARY KEY (block, type, status)
) WITHOUT ROWID;

-- Answers given to writes that carried an Idempotency-Key, kept for a day.
CREATE TABLE answers (
    no      INTEGER PRIMARY KEY,
    key     BLOB NOT NULL UNIQUE,      -- SHA-256 over route, identity and key
    request BLOB NOT NULL,             -- SHA-256 of the request's body
    body    TEXT NOT NULL,
    at      INTEGER NOT NULL
);

-- For people: SELECT * FROM transcript WHERE session = '…'
CREATE VIEW transcript AS
    SELECT s.id AS session, s.type, CASE m.channel WHEN 0 THEN 'chat' ELSE 'operator' END AS channel, m.idx,
           strftime('%Y-%m-%dT%H:%M:%fZ', m.at / 1000.0, 'unixepoch') AS at, m.sender, m.recipient, m.content
    FROM messages m JOIN sessions s ON s.no = m.session;
