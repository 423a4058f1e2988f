-- Ids and codes end with the time at which they were made (48 bits, as 12 hexadecimal digits); before it they are random. The
-- indexes look at the end first, so that they grow at one place. Those of older arenas begin with the time: they stand
-- scattered, but there will be no more of them.

DROP INDEX sessions_id;
CREATE UNIQUE INDEX sessions_id ON sessions (substr(id, -12), id);

CREATE TABLE invites_by_time (
    made    TEXT NOT NULL,             -- the end of the code
    code    TEXT NOT NULL,             -- inv_ and a UUID
    session INTEGER NOT NULL,          -- sessions.no
    PRIMARY KEY (made, code)
) WITHOUT ROWID;
INSERT INTO invites_by_time SELECT substr(code, -12), code, session FROM invites ORDER BY 1, 2;
DROP TABLE invites;
ALTER TABLE invites_by_time RENAME TO invites;
