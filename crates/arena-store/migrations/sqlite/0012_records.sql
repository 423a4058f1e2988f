-- Channel 3 of `messages` has the inputs of a session that its messages don't show, such as joins and deadlines, for the session's
-- record. No reader of the arena gets them. idx is the session's version after the input, and method is its kind.

-- The commitment to the content of a hidden message: SHA-256, in hex, of the message's salt and its content. NULL for other messages,
-- and for messages that were hidden before the arena kept records.
ALTER TABLE messages ADD COLUMN commitment TEXT;

DROP VIEW transcript;
CREATE VIEW transcript AS
    SELECT s.id AS session, s.type, CASE m.channel WHEN 0 THEN 'chat' ELSE 'operator' END AS channel, m.idx,
           strftime('%Y-%m-%dT%H:%M:%fZ', m.at / 1000.0, 'unixepoch') AS at, m.sender, m.recipient, m.content
    FROM messages m JOIN sessions s ON s.no = m.session WHERE m.channel IN (0, 1);

-- The leaves of the arena's log. Rows are never changed or removed. The row `log` of `notes` has the last session, ending and removal
-- that are in the log, as a JSON list.
CREATE TABLE log_leaves (
    n       INTEGER PRIMARY KEY,       -- 0, 1, 2 … without gaps
    session TEXT,                      -- sessions.id, also of removed sessions; NULL for leaves about the arena
    kind    TEXT NOT NULL,             -- created, ended, removed …
    data    TEXT NOT NULL,             -- the leaf: a JSON object in one line
    hash    BLOB NOT NULL              -- 32 bytes: the leaf's hash in the Merkle tree
);
CREATE INDEX log_leaves_session ON log_leaves (substr(session, -12), session);

-- Removed sessions in the order of their removals. Rows are never removed.
CREATE TABLE removed_sessions (
    n      INTEGER PRIMARY KEY,
    id     TEXT NOT NULL,              -- sessions.id
    at     INTEGER NOT NULL,
    reason TEXT NOT NULL               -- expired, administrator, creator
);
