-- How much the session's rules have written since a player last acted: bytes, as [sessions] unattended_bytes counts them.
ALTER TABLE sessions ADD COLUMN unattended INTEGER NOT NULL DEFAULT 0;
