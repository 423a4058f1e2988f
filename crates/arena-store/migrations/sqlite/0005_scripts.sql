-- Scripts: challenges whose rules are files that anybody can write. A session is played to its end by the version it began with.

CREATE TABLE scripts (
    version TEXT PRIMARY KEY,  -- SHA-256 of source, in hexadecimal digits
    source  TEXT NOT NULL      -- JSON object: files, the texts of all files that it is made of, by their paths
) WITHOUT ROWID;

-- The version of the script that a session is played by; NULL where the challenge is no script.
ALTER TABLE sessions ADD COLUMN script TEXT;
