-- Nodes compare their memory with the versions of rows. Nobody reads a journal of changes or passes requests on any more.
DROP TABLE journal;
DROP TABLE peers;
DROP SEQUENCE ending_numbers;

-- Numbers that grow with each rare change of a kind. Nodes read all of them often.
CREATE TABLE changes (
    kind TEXT PRIMARY KEY,
    n    BIGINT NOT NULL
) WITH (fillfactor = 10);
INSERT INTO changes (kind, n) VALUES
    ('administration', 0), -- bans and benchmark models
    ('public', 0),         -- hidden messages of the public channel
    ('recounts', 0),       -- session_counts was written anew
    ('standings', 0);      -- standings have changed without an ending

-- The last number of a kind. A transaction that numbers rows holds it until its commit, so numbers follow the order of commits.
-- They change often, so that nodes don't read them.
CREATE TABLE numbers (
    kind TEXT PRIMARY KEY,
    n    BIGINT NOT NULL
) WITH (fillfactor = 10);
INSERT INTO numbers (kind, n) VALUES
    ('audit', 0),          -- only locked
    ('removed', 0),        -- only locked
    ('counts', 0),         -- session_counts.changed
    ('endings', 0);        -- endings.n

-- The number of changes of the session that leave its version: hidden messages, deleted users.
ALTER TABLE sessions ADD COLUMN edits BIGINT NOT NULL DEFAULT 0;

-- The number of the last change of a shared database's count.
ALTER TABLE session_counts ADD COLUMN changed BIGINT NOT NULL DEFAULT 0;
CREATE INDEX session_counts_changed ON session_counts (changed);
