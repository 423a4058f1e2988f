-- The addresses at which running nodes accept requests that other nodes pass on, with the time of the last sign of life.
-- A crash of the database may empty the table; the nodes fill it again.
CREATE UNLOGGED TABLE peers (
    address TEXT PRIMARY KEY,
    at BIGINT NOT NULL
);
