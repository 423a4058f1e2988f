-- Several arenas, the nodes, on one database. They hold the advisory lock together; an arena that has the database for itself
-- holds it alone, and neither writes the journal nor takes numbers from the sequences: they are set right when the first node starts.

-- What each commit of a node has changed, for the others to follow. Numbered in the order of the commits, without gaps: a lock that
-- is held until the commit sees to that. Rows are removed after ten minutes.
CREATE TABLE journal (
    n              BIGINT PRIMARY KEY,
    at             BIGINT NOT NULL,
    node           TEXT NOT NULL,      -- whose commit
    changed        TEXT[] NOT NULL,    -- ids of sessions that have changed or in which something was said, and `invites`
    hidden         TEXT[] NOT NULL,    -- likewise, where a message has lost its content
    users          BIGINT[] NOT NULL,  -- users.no of those whose standings have changed
    counts         TEXT NOT NULL,      -- how session_counts have changed: JSON list of [block, type, status, n]
    administration BOOLEAN NOT NULL    -- whether bans or benchmark models have changed
);

CREATE SEQUENCE session_numbers;
CREATE SEQUENCE ending_numbers;
