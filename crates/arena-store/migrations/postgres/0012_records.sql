-- Channel 3 of `messages` has the inputs of a session that its messages don't show, such as joins and deadlines, for the session's
-- record. No reader of the arena gets them. idx is the session's version after the input, and method is its kind.

-- The order of a session's messages over all its channels: the order of commits. NULL for messages older than this column. Numbers of
-- messages of different sessions may be committed in another order.
CREATE SEQUENCE message_numbers;
ALTER TABLE messages ADD COLUMN no BIGINT;
ALTER TABLE messages ALTER COLUMN no SET DEFAULT nextval('message_numbers');

-- The commitment to the content of a hidden message: SHA-256, in hex, of the message's salt and its content. NULL for other messages,
-- and for messages that were hidden before the arena kept records.
ALTER TABLE messages ADD COLUMN commitment TEXT;

CREATE OR REPLACE VIEW transcript AS
    SELECT s.id AS session, s.type, CASE m.channel WHEN 0 THEN 'chat' ELSE 'operator' END AS channel, m.idx,
           to_timestamp(m.at / 1000.0) AS at, m.sender, m.recipient, m.content
    FROM messages m JOIN sessions s ON s.no = m.session WHERE m.channel IN (0, 1);

-- The leaves of the arena's log. Rows are never changed or removed. The row `log` of `notes` has the last session, ending and removal
-- that are in the log, as a JSON list.
CREATE TABLE log_leaves (
    n       BIGINT PRIMARY KEY,        -- 0, 1, 2 … without gaps
    session TEXT,                      -- sessions.id, also of removed sessions; null for leaves about the arena
    kind    TEXT NOT NULL,             -- created, ended, removed …
    data    TEXT NOT NULL,             -- the leaf: a JSON object in one line
    hash    BYTEA NOT NULL             -- 32 bytes: the leaf's hash in the Merkle tree
);
CREATE INDEX log_leaves_session ON log_leaves (right(session, 12), session);

-- Removed sessions in the order of their removals. Rows are never removed. In a shared database, nodes add rows during their turn to
-- commit.
CREATE TABLE removed_sessions (
    n      BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    id     TEXT NOT NULL,              -- sessions.id
    at     BIGINT NOT NULL,
    reason TEXT NOT NULL               -- expired, administrator, creator
);
