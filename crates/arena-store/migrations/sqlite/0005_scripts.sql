-- Scripts of challenges. A session keeps the script version of its start.

CREATE TABLE scripts (
    version TEXT PRIMARY KEY,  -- SHA-256 of source, in hexadecimal digits
    source  TEXT NOT NULL      -- JSON object: files, the texts of all files that it is made of, by their paths
) WITHOUT ROWID;

-- The version of the session's script; NULL for built-in challenges.
ALTER TABLE sessions ADD COLUMN script TEXT;
