-- A random identity of each entry. With it, a node detects that the database has lost entries, after a failover to a standby or the
-- restoration of a backup.
ALTER TABLE journal ADD COLUMN mark TEXT NOT NULL DEFAULT gen_random_uuid()::text;
