-- Usage reports of players, unverified: a JSON list by seat of {total, reports: [{at, model, inputTokens, …}]}; secret until the
-- end. The column may be long, so it comes after the columns that are read more often.
ALTER TABLE sessions ADD COLUMN usage TEXT NOT NULL DEFAULT '[]';
