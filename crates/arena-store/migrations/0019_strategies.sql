-- Counts of all ended games by scripted scoring strategies. The newest count of a strategy is the current one; until it has
-- reached the last ending, leaderboards show the one before.
CREATE TABLE IF NOT EXISTS strategy_runs (
    id       BIGINT PRIMARY KEY,
    strategy TEXT NOT NULL,   -- name
    version  TEXT NOT NULL,   -- hash of the script
    place    BIGINT NOT NULL, -- endings.n of the last counted game
    shown    BIGINT NOT NULL, -- 1 for the count on leaderboards
    stale    BIGINT NOT NULL, -- 1 if a counted game was removed, or a user deleted, or an administrator wants a new count
    error    TEXT             -- reason why the next game can't be counted
);

-- Data of a count about a player on a board; for the player '' about all.
CREATE TABLE IF NOT EXISTS strategy_rows (
    run     BIGINT NOT NULL, -- strategy_runs.id
    board   TEXT NOT NULL,   -- boards.id
    player  TEXT NOT NULL,   -- users.id
    games   BIGINT,          -- NULL if the player isn't on the board
    metrics TEXT,            -- JSON: numbers by key
    state   TEXT,            -- JSON of the script
    PRIMARY KEY (run, board, player)
);
CREATE INDEX IF NOT EXISTS strategy_rows_player ON strategy_rows (player);
