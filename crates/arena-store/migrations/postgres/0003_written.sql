-- How much of limits.session_bytes the session's transitions have taken; 0 where they were before that was counted.
ALTER TABLE sessions ADD COLUMN written BIGINT NOT NULL DEFAULT 0;
