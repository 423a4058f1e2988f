-- Callers that wait for opponents. A ticket that was matched or given up has no row here; its result is an entry of `answers` under
-- the same hash.
CREATE TABLE queue (
    ticket   TEXT PRIMARY KEY,         -- SHA-256 of the ticket, in hexadecimal digits
    type     TEXT NOT NULL,            -- challenge type
    network  TEXT NOT NULL,            -- caller's network
    house_ms BIGINT,                   -- time after which house bots may step in; NULL for never
    at       BIGINT NOT NULL,          -- time of joining the queue
    seen_at  BIGINT NOT NULL           -- time of the last poll
);
CREATE INDEX queue_type ON queue (type, at);
CREATE INDEX queue_network ON queue (network);
CREATE INDEX queue_seen ON queue (seen_at);
