-- SHA-256 of an archive's file, in hexadecimal digits; NULL if an older program archived the session.
ALTER TABLE archives ADD COLUMN sha256 TEXT;

-- Files of the archive that no session has: files that are being written, and files to remove.
CREATE TABLE archive_files (
    file TEXT PRIMARY KEY, -- path of the file in the archive's folder
    at   BIGINT NOT NULL   -- time at which its writing began; 0 if the file is to be removed
);
