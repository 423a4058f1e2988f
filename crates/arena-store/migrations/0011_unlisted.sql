-- 1 for a session that is in no list and no history, and in none of their counts.
ALTER TABLE sessions ADD COLUMN unlisted BIGINT NOT NULL DEFAULT 0;
