-- Ids and codes end with the time at which they were made (48 bits, as 12 hexadecimal digits); before it they are random. The
-- indexes look at the end first, so that they grow at one place. Those of older arenas begin with the time: they stand
-- scattered, but there will be no more of them.

DROP INDEX sessions_id;
CREATE UNIQUE INDEX sessions_id ON sessions (right(id, 12), id);

ALTER TABLE invites DROP CONSTRAINT invites_pkey;
ALTER TABLE invites ADD COLUMN made TEXT GENERATED ALWAYS AS (right(code, 12)) STORED;
ALTER TABLE invites ADD PRIMARY KEY (made, code);
