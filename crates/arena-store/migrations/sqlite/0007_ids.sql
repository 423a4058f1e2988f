-- The last 12 hexadecimal digits of an id or code are the time of its creation (48 bits); the digits before are random. The
-- indexes sort by the last digits first, so that new entries are adjacent. Ids of older arenas begin with the time, so their
-- entries are scattered.

DROP INDEX sessions_id;
CREATE UNIQUE INDEX sessions_id ON sessions (substr(id, -12), id);

CREATE TABLE invites_by_time (
    made    TEXT NOT NULL,             -- the last 12 digits of the code
    code    TEXT NOT NULL,             -- inv_ and a UUID
    session INTEGER NOT NULL,          -- sessions.no
    PRIMARY KEY (made, code)
) WITHOUT ROWID;
INSERT INTO invites_by_time SELECT substr(code, -12), code, session FROM invites ORDER BY 1, 2;
DROP TABLE invites;
ALTER TABLE invites_by_time RENAME TO invites;
