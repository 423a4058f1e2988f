-- The games of a season are played by one version of the game's rules. Seasons from before there were versions were played by the first.
ALTER TABLE league_seasons ADD COLUMN rules_version INTEGER NOT NULL DEFAULT 1;
