BEGIN TRANSACTION;
CREATE TABLE answers (
    no      INTEGER PRIMARY KEY,
    key     BLOB NOT NULL UNIQUE,      -- SHA-256 over route, identity and key
    request BLOB NOT NULL,             -- SHA-256 of the request's body
    body    TEXT NOT NULL,
    at      INTEGER NOT NULL
);
CREATE TABLE audit (
    no      INTEGER PRIMARY KEY,          -- 1, 2, 3 …; no row is ever removed
    at      INTEGER NOT NULL,
    address TEXT NOT NULL,                -- where the request came from
    action  TEXT NOT NULL,
    detail  TEXT NOT NULL                 -- JSON object
);
CREATE TABLE bans (
    subject TEXT PRIMARY KEY,             -- user: and an id, or address: and an IP address or a prefix of some
    reason  TEXT NOT NULL,
    at      INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TABLE careers (
    user      INTEGER NOT NULL,           -- users.no
    n         INTEGER NOT NULL,
    session   INTEGER NOT NULL,           -- sessions.no; in row 0 the number of sessions
    standings TEXT,                       -- in row 0: JSON object by challenge type and strategy: games, and for each
                                          -- metric sums or a streak. Rebuilt from the sessions by `arena admin recompute`
    PRIMARY KEY (user, n)
) WITHOUT ROWID;
CREATE TABLE endings (
    n       INTEGER PRIMARY KEY,
    session INTEGER NOT NULL              -- sessions.no; 0 if it has been removed, so that no number is given twice
);
CREATE TABLE invites (
    code    TEXT PRIMARY KEY,          -- inv_ and a UUID
    session INTEGER NOT NULL           -- sessions.no
) WITHOUT ROWID;
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
INSERT INTO "league_agents" VALUES(1,1,'eater',1,NULL,'/tmp/arena-bots/eater.py','both','{"command":{"args":[],"folder":"/tmp/arena-bots","program":"/tmp/arena-bots/eater.py"}}','["/tmp/arena-bots/eater.py"]','47f2259ed19bb7d9a7836f75d91f9bb3d5b0c7b93250c425b326be57d4548fda',1795396712639,NULL);
INSERT INTO "league_agents" VALUES(2,1,'still',1,NULL,'/tmp/arena-bots/still.py','both','{"command":{"args":[],"folder":"/tmp/arena-bots","program":"/tmp/arena-bots/still.py"}}','["/tmp/arena-bots/still.py"]','8b2d2de842cc55b0c30c255f3aae87659e6e5aa8d2efa5b909b4cdc712a3972a',1795396712654,NULL);
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
INSERT INTO "league_games" VALUES(1,1,1,1,1,1,X'2BDD025AB335CA2B183D67FF58A1B4FD56DA6C607E591567B6669E628534D39A',43,'GAME_ENDED','DRAW',1795396713562,862.195);
INSERT INTO "league_games" VALUES(2,1,2,1,1,2,X'2BDD025AB335CA2B183D67FF58A1B4FD56DA6C607E591567B6669E628534D39A',28,'GAME_ENDED','DRAW',1795396714406,823.9);
INSERT INTO "league_games" VALUES(3,1,3,1,2,1,X'8A50C3A64FABED87E4BF0D907F3FAAB2CC02D5C3557D1EFEA8D50EC16402DC35',15,'GAME_ENDED','DRAW',1795396714990,579.702);
INSERT INTO "league_games" VALUES(4,1,4,1,2,2,X'8A50C3A64FABED87E4BF0D907F3FAAB2CC02D5C3557D1EFEA8D50EC16402DC35',18,'GAME_ENDED','DRAW',1795396715561,558.322);
CREATE TABLE league_seasons (
    league   INTEGER NOT NULL,       -- leagues.no
    number   INTEGER NOT NULL,       -- 1, 2, 3 …
    began_at INTEGER NOT NULL,
    ended_at INTEGER,
    PRIMARY KEY (league, number)
) WITHOUT ROWID;
INSERT INTO "league_seasons" VALUES(1,1,1795396712602,NULL);
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
INSERT INTO "league_seats" VALUES(1,0,2,1,-1.0,NULL,NULL,0,3.144,1.983);
INSERT INTO "league_seats" VALUES(1,1,1,1,-1.0,NULL,NULL,0,25.552,12.174);
INSERT INTO "league_seats" VALUES(2,0,1,1,-1.0,NULL,NULL,0,0.86,0.088);
INSERT INTO "league_seats" VALUES(2,1,2,1,-1.0,NULL,NULL,0,0.318,0.137);
INSERT INTO "league_seats" VALUES(3,0,1,1,-1.0,NULL,NULL,0,0.674,0.197);
INSERT INTO "league_seats" VALUES(3,1,2,1,-1.0,NULL,NULL,0,0.192,0.1);
INSERT INTO "league_seats" VALUES(4,0,2,1,-1.0,NULL,NULL,0,0.065,0.065);
INSERT INTO "league_seats" VALUES(4,1,1,1,-1.0,NULL,NULL,0,4.429,3.968);
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
INSERT INTO "leagues" VALUES(1,'snakes','snake','{"grid_height":6,"grid_width":6}',2,1,2000,20000,'{"expose":[],"limits":{"file_size_bytes":67108864,"memory_bytes":1073741824,"open_files":256,"processes":64},"mode":"on"}',X'FB31DD6EC2A603ADD34E0B425CC2CA82FF24D2B04308BB3AB6470CA22BB61EF7',1795396712602);
CREATE TABLE messages (
    no        INTEGER PRIMARY KEY,     -- in the order of commit, over all channels
    session   INTEGER NOT NULL,        -- sessions.no; 0 for the public channel
    channel   INTEGER NOT NULL,        -- 0 chat, 1 operator, 2 the public channel `invites`
    idx       INTEGER NOT NULL,        -- place in the channel: 1, 2, 3 …
    at        INTEGER NOT NULL,
    sender    TEXT NOT NULL,           -- operator, or a player's invite
    recipient TEXT,                    -- null: for everybody
    method    TEXT,                    -- the method called, if it records an action
    content   TEXT NOT NULL
, hidden TEXT);
CREATE TABLE notes (
    name  TEXT PRIMARY KEY,
    value TEXT NOT NULL
) WITHOUT ROWID;
CREATE TABLE scripts (
    version TEXT PRIMARY KEY,  -- SHA-256 of source, in hexadecimal digits
    source  TEXT NOT NULL      -- JSON object: files, the texts of all files that it is made of, by their paths
) WITHOUT ROWID;
CREATE TABLE session_counts (
    block  INTEGER NOT NULL,           -- sessions.no / 256
    type   TEXT NOT NULL,
    status TEXT NOT NULL,
    n      INTEGER NOT NULL,
    PRIMARY KEY (block, type, status)
) WITHOUT ROWID;
CREATE TABLE sessions (
    no           INTEGER PRIMARY KEY,  -- in the order of creation; the key that other tables use
    status       TEXT NOT NULL,        -- open, active, ended
    type         TEXT NOT NULL,        -- challenge type, such as psi
    version      INTEGER NOT NULL,     -- counts the transitions
    wake_at      INTEGER,              -- when somebody has to look at it unasked
    created_at   INTEGER NOT NULL,
    ended_at     INTEGER,
    ending       TEXT,                 -- completed, abandoned
    category     TEXT,                 -- train, test, benchmark; set at the end
    deadline     INTEGER,              -- when the operator wants to be woken
    id           TEXT NOT NULL,        -- UUID, the challengeId of the API
    seed         BLOB NOT NULL,        -- 32 bytes; secret until the end
    options      TEXT NOT NULL,        -- JSON object
    invites      TEXT NOT NULL,        -- JSON list of codes
    announced    TEXT NOT NULL,        -- JSON list of the codes offered on the public channel
    players      TEXT NOT NULL,        -- JSON list of [invite, user id or null] in seat order
    scores       TEXT NOT NULL,        -- JSON list of {security, utility} by seat
    attributions TEXT NOT NULL,        -- JSON list of [from seat, to seat, type]
    state        TEXT NOT NULL         -- JSON object: what the operator remembers; secret until the end
, imported INTEGER, usage TEXT NOT NULL DEFAULT '[]', script TEXT, unattended INTEGER NOT NULL DEFAULT 0);
CREATE TABLE totals (
    name TEXT PRIMARY KEY,                -- participants, or games: and a challenge type
    n    INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TABLE users (
    no        INTEGER PRIMARY KEY,        -- 1, 2, 3 … in the order in which they became known
    id        TEXT NOT NULL,              -- a name of the user's choosing, or the hash of its key
    username  TEXT,
    model     TEXT,
    benchmark INTEGER NOT NULL DEFAULT 0  -- 1: an administrator says that it is a benchmark model
);
CREATE UNIQUE INDEX sessions_id ON sessions (id);
CREATE INDEX sessions_wake_at ON sessions (wake_at) WHERE wake_at IS NOT NULL;
CREATE UNIQUE INDEX messages_place ON messages (session, channel, idx);
CREATE VIEW transcript AS
    SELECT s.id AS session, s.type, CASE m.channel WHEN 0 THEN 'chat' ELSE 'operator' END AS channel, m.idx,
           strftime('%Y-%m-%dT%H:%M:%fZ', m.at / 1000.0, 'unixepoch') AS at, m.sender, m.recipient, m.content
    FROM messages m JOIN sessions s ON s.no = m.session;
CREATE UNIQUE INDEX users_id ON users (id);
CREATE INDEX users_benchmark ON users (id) WHERE benchmark;
CREATE VIEW played AS
    SELECT u.id AS user, c.n, s.id AS session, s.type
    FROM careers c JOIN users u ON u.no = c.user JOIN sessions s ON s.no = c.session WHERE c.n > 0;
CREATE VIEW standings AS
    SELECT u.id AS user, t.key AS type, t.value AS tallies
    FROM careers c JOIN users u ON u.no = c.user, json_each(c.standings) t WHERE c.n = 0;
CREATE INDEX endings_session ON endings (session);
CREATE UNIQUE INDEX leagues_name ON leagues (name);
CREATE UNIQUE INDEX league_agents_generation ON league_agents (league, name, generation);
CREATE UNIQUE INDEX league_agents_present ON league_agents (league, name) WHERE removed_at IS NULL;
CREATE UNIQUE INDEX league_games_number ON league_games (league, number);
CREATE UNIQUE INDEX league_games_place ON league_games (league, meeting, leg);
CREATE INDEX league_games_season ON league_games (league, season);
CREATE VIEW league_results AS
    SELECT l.name AS league, g.number, g.season, g.meeting, g.leg, s.seat, a.name AS agent, a.generation, a.version, s.rank, s.score,
           s.verdict, g.termination, strftime('%Y-%m-%dT%H:%M:%fZ', g.ended_at / 1000.0, 'unixepoch') AS ended_at
    FROM league_seats s JOIN league_games g ON g.no = s.game JOIN league_agents a ON a.no = s.agent JOIN leagues l ON l.no = g.league;
COMMIT;
PRAGMA user_version = 6;
