-- The last 12 hexadecimal digits of an id or code are the time of its creation (48 bits); the digits before are random. The
-- indexes sort by the last digits first, so that new entries are adjacent. Ids of older arenas begin with the time, so their
-- entries are scattered.

DROP INDEX sessions_id;
CREATE UNIQUE INDEX sessions_id ON sessions (right(id, 12), id);

ALTER TABLE invites DROP CONSTRAINT invites_pkey;
ALTER TABLE invites ADD COLUMN made TEXT GENERATED ALWAYS AS (right(code, 12)) STORED;
ALTER TABLE invites ADD PRIMARY KEY (made, code);
