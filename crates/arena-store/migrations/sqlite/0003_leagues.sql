-- Leagues: agents that play each other for as long as one likes, in seasons, while agents come and go.
-- Times are milliseconds since the Unix epoch. JSON columns hold what their comment says.

CREATE TABLE leagues (
    no         INTEGER PRIMARY KEY,  -- 1, 2, 3 …; the key that other tables use
    name       TEXT NOT NULL,
    game       TEXT NOT NULL,        -- snake, chess …
    options    TEXT NOT NULL,        -- JSON object: keys of the game's config that differ from the usual
    seats      INTEGER NOT NULL,     -- agents in a game
    paired     INTEGER NOT NULL,     -- 1: a meeting is as many games as seats, with one seed, and seats change; 0: it is one game
    step_ms    INTEGER NOT NULL,     -- what an agent may take for a step,
    bank_ms    INTEGER NOT NULL,     -- and beyond that for all steps of a game together
    sandbox    TEXT NOT NULL,        -- JSON object: how agents' processes are held in
    seed       BLOB NOT NULL,        -- 32 bytes: what the seeds of all meetings come of
    created_at INTEGER NOT NULL
);
CREATE UNIQUE INDEX leagues_name ON leagues (name);

-- A season's ratings come of its own games alone. The one without an end is the present one; there is always exactly one.
CREATE TABLE league_seasons (
    league   INTEGER NOT NULL,       -- leagues.no
    number   INTEGER NOT NULL,       -- 1, 2, 3 …
    began_at INTEGER NOT NULL,
    ended_at INTEGER,
    PRIMARY KEY (league, number)
) WITHOUT ROWID;

-- A row for each version of each agent: another version is another agent to the ratings. At most one version of a name is in the
-- league at a time. No row is ever removed, since games name them.
CREATE TABLE league_agents (
    no         INTEGER PRIMARY KEY,  -- the key that league_seats uses
    league     INTEGER NOT NULL,     -- leagues.no
    name       TEXT NOT NULL,
    generation INTEGER NOT NULL,     -- 1, 2, 3 … of the versions of that name
    version    TEXT,                 -- what its owner or its manifest calls the version
    path       TEXT NOT NULL,        -- as the user named it
    dialect    TEXT NOT NULL,        -- where it looks for the state: both, spec, flat
    reach      TEXT NOT NULL,        -- JSON object: {"command": {"program", "args", "folder"}} or {"url"}
    files      TEXT NOT NULL,        -- JSON list of the files and folders that make it what it is
    sha256     TEXT,                 -- of those files, in hex; null for somebody else's server
    added_at   INTEGER NOT NULL,
    removed_at INTEGER               -- null: it is in the league
);
CREATE UNIQUE INDEX league_agents_generation ON league_agents (league, name, generation);
CREATE UNIQUE INDEX league_agents_present ON league_agents (league, name) WHERE removed_at IS NULL;

-- Games that have ended. Those under way leave no trace, and are played again after a crash.
CREATE TABLE league_games (
    no          INTEGER PRIMARY KEY, -- in the order in which they ended, over all leagues; the key that league_seats uses
    league      INTEGER NOT NULL,    -- leagues.no
    number      INTEGER NOT NULL,    -- 1, 2, 3 … in the league
    season      INTEGER NOT NULL,    -- league_seasons.number
    meeting     INTEGER NOT NULL,    -- in the league; the games of a meeting share its seed
    leg         INTEGER NOT NULL,    -- which game of the meeting, from 1; with each, agents move up by a seat
    seed        BLOB NOT NULL,       -- 32 bytes
    epochs      INTEGER NOT NULL,
    termination TEXT NOT NULL,       -- the game's word for how it ended, such as CHECKMATE, or TAINTED
    winner      TEXT NOT NULL,       -- the side, where the game names sides (WHITE), else the agent's id in the game, or DRAW
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
    rank            INTEGER NOT NULL,  -- from 1 for the best; equal ones are a draw
    score           REAL NOT NULL,     -- the game's
    verdict         TEXT,              -- why it was disqualified, such as TIMEOUT
    detail          TEXT,              -- the same in a sentence
    faults          INTEGER NOT NULL,  -- what else it got wrong in the protocol
    waited_ms       REAL NOT NULL,     -- how long it was waited for in all,
    longest_step_ms REAL NOT NULL,     -- and at most
    PRIMARY KEY (game, seat)
) WITHOUT ROWID;

-- For people: SELECT * FROM league_results WHERE league = '…' AND season = 1
CREATE VIEW league_results AS
    SELECT l.name AS league, g.number, g.season, g.meeting, g.leg, s.seat, a.name AS agent, a.generation, a.version, s.rank, s.score,
           s.verdict, g.termination, strftime('%Y-%m-%dT%H:%M:%fZ', g.ended_at / 1000.0, 'unixepoch') AS ended_at
    FROM league_seats s JOIN league_games g ON g.no = s.game JOIN league_agents a ON a.no = s.agent JOIN leagues l ON l.no = g.league;
