-- The number of bytes that the session's rules wrote since a player's last action, for the setting `unattended_bytes`.
ALTER TABLE sessions ADD COLUMN unattended BIGINT NOT NULL DEFAULT 0;
