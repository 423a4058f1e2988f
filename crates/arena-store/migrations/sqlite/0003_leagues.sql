-- Leagues: open-ended tournaments in seasons, which agents may join and leave.
-- Times are in milliseconds since the Unix epoch. The comment of a JSON column describes its content.

CREATE TABLE leagues (
    no         INTEGER PRIMARY KEY,  -- 1, 2, 3 …; the key that other tables use
    name       TEXT NOT NULL,
    game       TEXT NOT NULL,        -- snake, chess …
    options    TEXT NOT NULL,        -- JSON object: options of the game that differ from the defaults
    seats      INTEGER NOT NULL,     -- number of agents in a game
    paired     INTEGER NOT NULL,     -- 1: a meeting is one game for each seat, with one seed and rotated seats; 0: a meeting is one game
    step_ms    INTEGER NOT NULL,     -- time limit of each step
    bank_ms    INTEGER NOT NULL,     -- time bank of an agent for a whole game
    sandbox    TEXT NOT NULL,        -- JSON object: sandbox of the agents
    seed       BLOB NOT NULL,        -- 32 bytes; the seeds of all meetings are derived from it
    created_at INTEGER NOT NULL
);
CREATE UNIQUE INDEX leagues_name ON leagues (name);

-- The ratings of a season depend only on its own games. Exactly one season of a league has no end: the current season.
CREATE TABLE league_seasons (
    league   INTEGER NOT NULL,       -- leagues.no
    number   INTEGER NOT NULL,       -- 1, 2, 3 …
    began_at INTEGER NOT NULL,
    ended_at INTEGER,
    PRIMARY KEY (league, number)
) WITHOUT ROWID;

-- One row for each version of each agent. Each version has a rating of its own. At most one version with the same name is in
-- the league at a time. Rows are never removed, because games refer to them.
CREATE TABLE league_agents (
    no         INTEGER PRIMARY KEY,  -- the key that league_seats uses
    league     INTEGER NOT NULL,     -- leagues.no
    name       TEXT NOT NULL,
    generation INTEGER NOT NULL,     -- 1, 2, 3 … among the versions with the same name
    version    TEXT,                 -- version as declared by the owner or the manifest
    path       TEXT NOT NULL,        -- as given by the user
    dialect    TEXT NOT NULL,        -- location of the state in messages to the agent: both, spec, flat
    reach      TEXT NOT NULL,        -- JSON object: {"command": {"program", "args", "folder"}} or {"url"}
    files      TEXT NOT NULL,        -- JSON list of the agent's files and folders
    sha256     TEXT,                 -- SHA-256 of the files, in hex; null for an agent on a server
    added_at   INTEGER NOT NULL,
    removed_at INTEGER               -- null: the version is in the league
);
CREATE UNIQUE INDEX league_agents_generation ON league_agents (league, name, generation);
CREATE UNIQUE INDEX league_agents_present ON league_agents (league, name) WHERE removed_at IS NULL;

-- Games that have ended. Running games aren't stored; after a crash they are played again.
CREATE TABLE league_games (
    no          INTEGER PRIMARY KEY, -- in the order of the games' ends, over all leagues; the key that league_seats uses
    league      INTEGER NOT NULL,    -- leagues.no
    number      INTEGER NOT NULL,    -- 1, 2, 3 … in the league
    season      INTEGER NOT NULL,    -- league_seasons.number
    meeting     INTEGER NOT NULL,    -- number of the pairing in the league; its games share one seed
    leg         INTEGER NOT NULL,    -- number of the game in the meeting, from 1; agents rotate by one seat after each game
    seed        BLOB NOT NULL,       -- 32 bytes
    epochs      INTEGER NOT NULL,
    termination TEXT NOT NULL,       -- termination code of the game, such as CHECKMATE, or TAINTED
    winner      TEXT NOT NULL,       -- the side (WHITE) if the game names sides, otherwise the agent's id in the game; or DRAW
    ended_at    INTEGER NOT NULL,
    took_ms     REAL NOT NULL
);
CREATE UNIQUE INDEX league_games_number ON league_games (league, number);
CREATE UNIQUE INDEX league_games_place ON league_games (league, meeting, leg);
CREATE INDEX league_games_season ON league_games (league, season);

CREATE TABLE league_seats (
    game            INTEGER NOT NULL,  -- league_games.no
    seat            INTEGER NOT NULL,  -- from 0
    agent           INTEGER NOT NULL,  -- league_agents.no
    rank            INTEGER NOT NULL,  -- from 1 for the best; equal ranks are a draw
    score           REAL NOT NULL,     -- score in the game
    verdict         TEXT,              -- reason of the disqualification, such as TIMEOUT
    detail          TEXT,              -- detail of the disqualification, in one sentence
    faults          INTEGER NOT NULL,  -- number of faults in the protocol
    waited_ms       REAL NOT NULL,     -- total time that the match waited for the agent
    longest_step_ms REAL NOT NULL,     -- longest single wait
    PRIMARY KEY (game, seat)
) WITHOUT ROWID;

-- For manual queries: SELECT * FROM league_results WHERE league = '…' AND season = 1
CREATE VIEW league_results AS
    SELECT l.name AS league, g.number, g.season, g.meeting, g.leg, s.seat, a.name AS agent, a.generation, a.version, s.rank, s.score,
           s.verdict, g.termination, strftime('%Y-%m-%dT%H:%M:%fZ', g.ended_at / 1000.0, 'unixepoch') AS ended_at
    FROM league_seats s JOIN league_games g ON g.no = s.game JOIN league_agents a ON a.no = s.agent JOIN leagues l ON l.no = g.league;
