-- The board terms of a session: the version of the rules and, after a space, the SHA-256 of the prompt. Empty if the session counts
-- on no board, because its options differ from the arena's. NULL in sessions older than this column: they count with version 1 of the
-- rules, or with the version of their script, and with an unknown prompt.
ALTER TABLE sessions ADD COLUMN rated TEXT;

-- Boards with counted games. The table is derived from the sessions, and repaired if it disagrees with them.
CREATE TABLE boards (
    id      TEXT PRIMARY KEY,          -- key in `careers.standings`; a hash of the other columns
    type    TEXT NOT NULL,             -- challenge type
    options TEXT NOT NULL,             -- JSON object
    rated   TEXT NOT NULL              -- as sessions.rated
);

DROP VIEW standings;
CREATE VIEW standings AS
    SELECT u.id AS user_id, b.type, t.key AS board, t.value AS tallies
    FROM careers c JOIN users u ON u.no = c.user_no, json_each(c.standings::json) t LEFT JOIN boards b ON b.id = t.key
    WHERE c.n = 0;
