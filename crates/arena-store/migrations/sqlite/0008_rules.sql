-- The version of the game's rules for all games of a season. Older seasons have version 1.
ALTER TABLE league_seasons ADD COLUMN rules_version INTEGER NOT NULL DEFAULT 1;
