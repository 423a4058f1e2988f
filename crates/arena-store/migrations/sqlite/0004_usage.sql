-- What players say that their play has cost: a JSON list by seat of {total, reports: [{at, model, inputTokens, …}]}. Nobody verifies it;
-- secret until the end. Behind those that are read more often, since it may be long.
ALTER TABLE sessions ADD COLUMN usage TEXT NOT NULL DEFAULT '[]';
