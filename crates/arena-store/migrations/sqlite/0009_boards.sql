-- The terms on which a session counts: the version of the rules and, behind a space, the SHA-256 of the prompt. Empty if it counts on
-- no board, since its options aren't the arena's own. NULL in sessions that are older than boards: they count by the first rules, or
-- by the version of their script, after a prompt that nobody noted.
ALTER TABLE sessions ADD COLUMN rated TEXT;

-- Boards on which games have counted. Made of the sessions, and made again if it disagrees with them.
CREATE TABLE boards (
    id      TEXT PRIMARY KEY,          -- the key of `careers.standings`: a hash of the other columns
    type    TEXT NOT NULL,             -- challenge type
    options TEXT NOT NULL,             -- JSON object
    rated   TEXT NOT NULL              -- as sessions.rated
) WITHOUT ROWID;

DROP VIEW standings;
CREATE VIEW standings AS
    SELECT u.id AS user, b.type, t.key AS board, t.value AS tallies
    FROM careers c JOIN users u ON u.no = c.user, json_each(c.standings) t LEFT JOIN boards b ON b.id = t.key WHERE c.n = 0;
