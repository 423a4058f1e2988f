-- Several arenas, the nodes, share one database. Nodes hold the advisory lock in shared mode. An arena with exclusive use of the
-- database holds the lock exclusively; it doesn't use the journal and the sequences. The first node sets the sequences at its start.

-- The change journal: the changes of each commit of a node, for the other nodes. Entries are numbered in the order of the commits,
-- without gaps, because a node holds a lock from the numbering to the commit. Entries are removed after ten minutes.
CREATE TABLE journal (
    n              BIGINT PRIMARY KEY,
    at             BIGINT NOT NULL,
    node           TEXT NOT NULL,      -- id of the node that committed
    changed        TEXT[] NOT NULL,    -- ids of sessions that have changed or have new messages, and `invites`
    hidden         TEXT[] NOT NULL,    -- ids of sessions in which a message was hidden, and `invites`
    users          BIGINT[] NOT NULL,  -- users whose standings have changed (users.no)
    counts         TEXT NOT NULL,      -- changes of session_counts: JSON list of [block, type, status, difference]
    administration BOOLEAN NOT NULL    -- true if bans or benchmark models have changed
);

CREATE SEQUENCE session_numbers;
CREATE SEQUENCE ending_numbers;
