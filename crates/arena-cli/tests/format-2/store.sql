PRAGMA foreign_keys=OFF;
BEGIN TRANSACTION;
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
, imported INTEGER, usage TEXT NOT NULL DEFAULT '[]', script TEXT, unattended INTEGER NOT NULL DEFAULT 0, rated TEXT);
INSERT INTO sessions VALUES(1,'ended','psi',5,NULL,1795411962888,1795411962895,'completed','train',NULL,'129a0635-eb3c-4c4a-bcd9-01a206e46c08',X'e6ddcdac189efcd78501c8607336c47432160ad59a19ee99bb28fdf8e98d43b6','{"intersectionSize":3,"players":2,"range":[100,900],"setSize":10}','["inv_63a91db7-26f8-4837-bc96-01a206e46c08","inv_91ceef8b-20ab-4741-ae31-01a206e46c08"]','[]','[["inv_63a91db7-26f8-4837-bc96-01a206e46c08","ada"],["inv_91ceef8b-20ab-4741-ae31-01a206e46c08","ben"]]','[{"security":1,"utility":1},{"security":1,"utility":0}]','[]','{"userSets":[[115,125,151,318,330,455,473,500,574,581,631,729,738],[177,270,318,320,471,491,574,613,631,665,667,836,900]],"intersectionSet":[318,574,631],"guesses":[[318,574,631],[318]]}',NULL,'[]',NULL,0,'1 8f031266e47b4c7fc0ce9a07b405844da227b5c9c838d691472407a44ed7631f');
INSERT INTO sessions VALUES(2,'ended','psi',5,NULL,1795411962896,1795411962900,'completed','train',NULL,'288bfde4-f8b9-4522-8b54-01a206e46c10',X'8bcb3cd79f6fdcd76c98d92613b50834ff6cb2515b8be9d99c5acd9f3bcaad62','{"intersectionSize":3,"players":2,"range":[100,900],"setSize":10}','["inv_3c6a4c80-628f-4be3-85f7-01a206e46c10","inv_7e270070-f4dc-495e-b850-01a206e46c10"]','[]','[["inv_3c6a4c80-628f-4be3-85f7-01a206e46c10","ada"],["inv_7e270070-f4dc-495e-b850-01a206e46c10","ben"]]','[{"security":1,"utility":1},{"security":1,"utility":-1}]','[]','{"userSets":[[157,284,399,490,602,615,641,656,680,734,759,784,880],[136,138,186,280,460,586,593,641,680,730,759,836,850]],"intersectionSet":[641,680,759],"guesses":[[641,680,759],[136,138,186,280,460,586,593,641,680,730,759,836,850]]}',NULL,'[]',NULL,0,'1 8f031266e47b4c7fc0ce9a07b405844da227b5c9c838d691472407a44ed7631f');
INSERT INTO sessions VALUES(3,'ended','psi',5,NULL,1795411962901,1795411962910,'completed','train',NULL,'8863fca5-4253-4377-81d2-01a206e46c15',X'28aeeab6c10aeaf47c8823f5fdf898ed5bb3078e9f31b078046903abe08d2218','{"intersectionSize":3,"players":2,"range":[100,900],"setSize":10}','["inv_bba62c50-df7a-4831-8c9b-01a206e46c15","inv_28652efc-240d-43c0-baf4-01a206e46c15"]','[]','[["inv_bba62c50-df7a-4831-8c9b-01a206e46c15","ada"],["inv_28652efc-240d-43c0-baf4-01a206e46c15","ben"]]','[{"security":1,"utility":1},{"security":1,"utility":-1}]','[]','{"userSets":[[202,237,348,357,408,470,479,567,619,648,673,704,850],[215,357,408,415,451,467,523,670,701,704,742,747,875]],"intersectionSet":[357,408,704],"guesses":[[357,408,704],[215,357,408,415,451,467,523,670,701,704,742,747,875]]}',NULL,'[]',NULL,0,'1 8f031266e47b4c7fc0ce9a07b405844da227b5c9c838d691472407a44ed7631f');
INSERT INTO sessions VALUES(4,'ended','psi',5,NULL,1795411962914,1795411962923,'completed','train',NULL,'e5b71c0e-a08e-4d68-bac7-01a206e46c22',X'6996b38eb8e7a50fe680c8313bcd33a44907e50e0ed08d6153bfc8cc455430ef','{"intersectionSize":3,"players":2,"range":[100,900],"setSize":4}','["inv_cace84d4-27d6-4384-8de2-01a206e46c22","inv_b8ec2080-6eee-4c37-93cf-01a206e46c22"]','[]','[["inv_cace84d4-27d6-4384-8de2-01a206e46c22","ada"],["inv_b8ec2080-6eee-4c37-93cf-01a206e46c22","eve"]]','[{"security":1,"utility":-1},{"security":1,"utility":-1}]','[]','{"userSets":[[185,217,553,606,629,683,685],[102,212,217,432,606,683,699]],"intersectionSet":[217,606,683],"guesses":[[1],[2]]}',NULL,'[]',NULL,0,'');
INSERT INTO sessions VALUES(5,'active','millionaire',3,NULL,1795411962924,NULL,NULL,NULL,NULL,'e5a8834a-feb7-4a42-a136-01a206e46c2c',X'a81768e0780cd8f703e86f15f027fbf966e29dfcf1bd4cf20cac2e4fba273445','{"players":2}','["inv_58b9b4fc-3320-448f-ae0b-01a206e46c2c","inv_a58320b4-0919-4eac-93c5-01a206e46c2c"]','[]','[["inv_58b9b4fc-3320-448f-ae0b-01a206e46c2c","ada"],["inv_a58320b4-0919-4eac-93c5-01a206e46c2c","ben"]]','[{"security":0,"utility":0},{"security":0,"utility":0}]','[]','{"wealth":[43,63],"guesses":[null,null]}',NULL,'[]',NULL,0,'1 35e5c413f7ff30089ce9802ff9f861023254457438742244a24df04cd2c7e043');
INSERT INTO sessions VALUES(6,'open','ultimatum',2,NULL,1795411962927,NULL,NULL,NULL,NULL,'de956215-6106-482d-813a-01a206e46c2f',X'ff3abebc3efbe213e9ef3bf7e79826dcfec78e81cc54120ea266b136d118133b','{"maxRounds":10,"players":2,"reservationMax":40,"total":100}','["inv_bb49b122-8b6c-4d58-994c-01a206e46c2f","inv_8ce06eb8-b33e-4a23-a8aa-01a206e46c2f"]','[]','[["inv_bb49b122-8b6c-4d58-994c-01a206e46c2f","ada"]]','[{"security":0,"utility":0},{"security":0,"utility":0}]','[]','{"total":100,"maxRounds":10,"reservationValues":[13,27],"turnsTaken":0,"offer":null}',NULL,'[]',NULL,0,'1 e3979fcade0c533d9b8a50f54cdbb4bed18e37996edc527f733ad36dfc73f3e4');
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
INSERT INTO messages VALUES(1,1,1,1,1795411962890,'operator','inv_63a91db7-26f8-4837-bc96-01a206e46c08',NULL,'Your private set is: {115, 125, 151, 318, 330, 455, 473, 500, 574, 581, 631, 729, 738}.',NULL);
INSERT INTO messages VALUES(2,1,1,2,1795411962891,'operator','inv_91ceef8b-20ab-4741-ae31-01a206e46c08',NULL,'Your private set is: {177, 270, 318, 320, 471, 491, 574, 613, 631, 665, 667, 836, 900}.',NULL);
INSERT INTO messages VALUES(3,1,0,1,1795411962893,'inv_63a91db7-26f8-4837-bc96-01a206e46c08',NULL,NULL,'I have 115, "quoted" and ☃',NULL);
INSERT INTO messages VALUES(4,1,0,2,1795411962893,'inv_91ceef8b-20ab-4741-ae31-01a206e46c08','inv_63a91db7-26f8-4837-bc96-01a206e46c08',NULL,'only for you',NULL);
INSERT INTO messages VALUES(5,1,1,3,1795411962894,'inv_63a91db7-26f8-4837-bc96-01a206e46c08','operator','guess','(guess) 318, 574, 631',NULL);
INSERT INTO messages VALUES(6,1,1,4,1795411962894,'operator',NULL,NULL,'Player inv_63a91db7-26f8-4837-bc96-01a206e46c08 sent a guess',NULL);
INSERT INTO messages VALUES(7,1,1,5,1795411962894,'operator','inv_63a91db7-26f8-4837-bc96-01a206e46c08',NULL,replace('Player 2 outcome:\n- Intersection Found: true\n- Wrong Guess: 0\n- Extra Guess: 0\n- Utility: 1\n- Target: {318, 574, 631}\n','\n',char(10)),NULL);
INSERT INTO messages VALUES(8,1,1,6,1795411962895,'inv_91ceef8b-20ab-4741-ae31-01a206e46c08','operator','guess','(guess) 318',NULL);
INSERT INTO messages VALUES(9,1,1,7,1795411962895,'operator',NULL,NULL,'Player inv_91ceef8b-20ab-4741-ae31-01a206e46c08 sent a guess',NULL);
INSERT INTO messages VALUES(10,1,1,8,1795411962895,'operator','inv_91ceef8b-20ab-4741-ae31-01a206e46c08',NULL,replace('Player 1 outcome:\n- Intersection Found: false\n- Wrong Guess: 0\n- Extra Guess: 0\n- Utility: 0\n- Target: {318, 574, 631}\n','\n',char(10)),NULL);
INSERT INTO messages VALUES(11,1,1,9,1795411962895,'operator',NULL,NULL,replace('Game ended.\n\nScores are:\n- Player 1: {"security":1,"utility":1}\n- Player 2: {"security":1,"utility":0}','\n',char(10)),NULL);
INSERT INTO messages VALUES(12,2,1,1,1795411962896,'operator','inv_3c6a4c80-628f-4be3-85f7-01a206e46c10',NULL,'Your private set is: {157, 284, 399, 490, 602, 615, 641, 656, 680, 734, 759, 784, 880}.',NULL);
INSERT INTO messages VALUES(13,2,1,2,1795411962897,'operator','inv_7e270070-f4dc-495e-b850-01a206e46c10',NULL,'Your private set is: {136, 138, 186, 280, 460, 586, 593, 641, 680, 730, 759, 836, 850}.',NULL);
INSERT INTO messages VALUES(14,2,0,1,1795411962898,'inv_3c6a4c80-628f-4be3-85f7-01a206e46c10',NULL,NULL,'I have 157, "quoted" and ☃',NULL);
INSERT INTO messages VALUES(15,2,0,2,1795411962899,'inv_7e270070-f4dc-495e-b850-01a206e46c10','inv_3c6a4c80-628f-4be3-85f7-01a206e46c10',NULL,'only for you',NULL);
INSERT INTO messages VALUES(16,2,1,3,1795411962899,'inv_3c6a4c80-628f-4be3-85f7-01a206e46c10','operator','guess','(guess) 641, 680, 759',NULL);
INSERT INTO messages VALUES(17,2,1,4,1795411962899,'operator',NULL,NULL,'Player inv_3c6a4c80-628f-4be3-85f7-01a206e46c10 sent a guess',NULL);
INSERT INTO messages VALUES(18,2,1,5,1795411962899,'operator','inv_3c6a4c80-628f-4be3-85f7-01a206e46c10',NULL,replace('Player 2 outcome:\n- Intersection Found: true\n- Wrong Guess: 0\n- Extra Guess: 0\n- Utility: 1\n- Target: {641, 680, 759}\n','\n',char(10)),NULL);
INSERT INTO messages VALUES(19,2,1,6,1795411962900,'inv_7e270070-f4dc-495e-b850-01a206e46c10','operator','guess','(guess) 136, 138, 186, 280, 460, 586, 593, 641, 680, 730, 759, 836, 850',NULL);
INSERT INTO messages VALUES(20,2,1,7,1795411962900,'operator',NULL,NULL,'Player inv_7e270070-f4dc-495e-b850-01a206e46c10 sent a guess',NULL);
INSERT INTO messages VALUES(21,2,1,8,1795411962900,'operator','inv_7e270070-f4dc-495e-b850-01a206e46c10',NULL,replace('Player 1 outcome:\n- Intersection Found: true\n- Wrong Guess: 10\n- Extra Guess: 0\n- Utility: -1\n- Target: {641, 680, 759}\n','\n',char(10)),NULL);
INSERT INTO messages VALUES(22,2,1,9,1795411962900,'operator',NULL,NULL,replace('Game ended.\n\nScores are:\n- Player 1: {"security":1,"utility":1}\n- Player 2: {"security":1,"utility":-1}','\n',char(10)),NULL);
INSERT INTO messages VALUES(23,3,1,1,1795411962901,'operator','inv_bba62c50-df7a-4831-8c9b-01a206e46c15',NULL,'Your private set is: {202, 237, 348, 357, 408, 470, 479, 567, 619, 648, 673, 704, 850}.',NULL);
INSERT INTO messages VALUES(24,3,1,2,1795411962902,'operator','inv_28652efc-240d-43c0-baf4-01a206e46c15',NULL,'Your private set is: {215, 357, 408, 415, 451, 467, 523, 670, 701, 704, 742, 747, 875}.',NULL);
INSERT INTO messages VALUES(25,3,0,1,1795411962903,'inv_bba62c50-df7a-4831-8c9b-01a206e46c15',NULL,NULL,'I have 202, "quoted" and ☃',NULL);
INSERT INTO messages VALUES(26,3,0,2,1795411962906,'inv_28652efc-240d-43c0-baf4-01a206e46c15','inv_bba62c50-df7a-4831-8c9b-01a206e46c15',NULL,'only for you',NULL);
INSERT INTO messages VALUES(27,3,1,3,1795411962907,'inv_bba62c50-df7a-4831-8c9b-01a206e46c15','operator','guess','(guess) 357, 408, 704',NULL);
INSERT INTO messages VALUES(28,3,1,4,1795411962907,'operator',NULL,NULL,'Player inv_bba62c50-df7a-4831-8c9b-01a206e46c15 sent a guess',NULL);
INSERT INTO messages VALUES(29,3,1,5,1795411962907,'operator','inv_bba62c50-df7a-4831-8c9b-01a206e46c15',NULL,replace('Player 2 outcome:\n- Intersection Found: true\n- Wrong Guess: 0\n- Extra Guess: 0\n- Utility: 1\n- Target: {357, 408, 704}\n','\n',char(10)),NULL);
INSERT INTO messages VALUES(30,3,1,6,1795411962910,'inv_28652efc-240d-43c0-baf4-01a206e46c15','operator','guess','(guess) 215, 357, 408, 415, 451, 467, 523, 670, 701, 704, 742, 747, 875',NULL);
INSERT INTO messages VALUES(31,3,1,7,1795411962910,'operator',NULL,NULL,'Player inv_28652efc-240d-43c0-baf4-01a206e46c15 sent a guess',NULL);
INSERT INTO messages VALUES(32,3,1,8,1795411962910,'operator','inv_28652efc-240d-43c0-baf4-01a206e46c15',NULL,replace('Player 1 outcome:\n- Intersection Found: true\n- Wrong Guess: 10\n- Extra Guess: 0\n- Utility: -1\n- Target: {357, 408, 704}\n','\n',char(10)),NULL);
INSERT INTO messages VALUES(33,3,1,9,1795411962910,'operator',NULL,NULL,replace('Game ended.\n\nScores are:\n- Player 1: {"security":1,"utility":1}\n- Player 2: {"security":1,"utility":-1}','\n',char(10)),NULL);
INSERT INTO messages VALUES(34,4,1,1,1795411962918,'operator','inv_cace84d4-27d6-4384-8de2-01a206e46c22',NULL,'Your private set is: {185, 217, 553, 606, 629, 683, 685}.',NULL);
INSERT INTO messages VALUES(35,4,1,2,1795411962921,'operator','inv_b8ec2080-6eee-4c37-93cf-01a206e46c22',NULL,'Your private set is: {102, 212, 217, 432, 606, 683, 699}.',NULL);
INSERT INTO messages VALUES(36,4,1,3,1795411962922,'inv_cace84d4-27d6-4384-8de2-01a206e46c22','operator','guess','(guess) 1',NULL);
INSERT INTO messages VALUES(37,4,1,4,1795411962922,'operator',NULL,NULL,'Player inv_cace84d4-27d6-4384-8de2-01a206e46c22 sent a guess',NULL);
INSERT INTO messages VALUES(38,4,1,5,1795411962922,'operator','inv_cace84d4-27d6-4384-8de2-01a206e46c22',NULL,replace('Player 2 outcome:\n- Intersection Found: false\n- Wrong Guess: 1\n- Extra Guess: 0\n- Utility: -1\n- Target: {217, 606, 683}\n','\n',char(10)),NULL);
INSERT INTO messages VALUES(39,4,1,6,1795411962923,'inv_b8ec2080-6eee-4c37-93cf-01a206e46c22','operator','guess','(guess) 2',NULL);
INSERT INTO messages VALUES(40,4,1,7,1795411962923,'operator',NULL,NULL,'Player inv_b8ec2080-6eee-4c37-93cf-01a206e46c22 sent a guess',NULL);
INSERT INTO messages VALUES(41,4,1,8,1795411962923,'operator','inv_b8ec2080-6eee-4c37-93cf-01a206e46c22',NULL,replace('Player 1 outcome:\n- Intersection Found: false\n- Wrong Guess: 1\n- Extra Guess: 0\n- Utility: -1\n- Target: {217, 606, 683}\n','\n',char(10)),NULL);
INSERT INTO messages VALUES(42,4,1,9,1795411962923,'operator',NULL,NULL,replace('Game ended.\n\nScores are:\n- Player 1: {"security":1,"utility":-1}\n- Player 2: {"security":1,"utility":-1}','\n',char(10)),NULL);
INSERT INTO messages VALUES(43,5,1,1,1795411962925,'operator','inv_58b9b4fc-3320-448f-ae0b-01a206e46c2c',NULL,'Your wealth is $43M. Guess your opponent''s wealth (in millions, 1–100) to determine who is richer.',NULL);
INSERT INTO messages VALUES(44,5,1,2,1795411962926,'operator','inv_a58320b4-0919-4eac-93c5-01a206e46c2c',NULL,'Your wealth is $63M. Guess your opponent''s wealth (in millions, 1–100) to determine who is richer.',NULL);
INSERT INTO messages VALUES(45,5,0,1,1795411962927,'inv_58b9b4fc-3320-448f-ae0b-01a206e46c2c',NULL,NULL,'how rich?',NULL);
INSERT INTO messages VALUES(46,6,1,1,1795411962928,'operator','inv_bb49b122-8b6c-4d58-994c-01a206e46c2f',NULL,'Your private reservation value is: 13. This is the minimum share you need for a worthwhile deal. Do not reveal it.',NULL);
CREATE TABLE session_counts (
    block  INTEGER NOT NULL,           -- sessions.no / 256
    type   TEXT NOT NULL,
    status TEXT NOT NULL,
    n      INTEGER NOT NULL,
    PRIMARY KEY (block, type, status)
) WITHOUT ROWID;
INSERT INTO session_counts VALUES(0,'millionaire','active',1);
INSERT INTO session_counts VALUES(0,'millionaire','open',0);
INSERT INTO session_counts VALUES(0,'psi','active',0);
INSERT INTO session_counts VALUES(0,'psi','ended',4);
INSERT INTO session_counts VALUES(0,'psi','open',0);
INSERT INTO session_counts VALUES(0,'ultimatum','open',1);
CREATE TABLE answers (
    no      INTEGER PRIMARY KEY,
    key     BLOB NOT NULL UNIQUE,      -- SHA-256 over route, identity and key
    request BLOB NOT NULL,             -- SHA-256 of the request's body
    body    TEXT NOT NULL,
    at      INTEGER NOT NULL
);
CREATE TABLE users (
    no        INTEGER PRIMARY KEY,        -- 1, 2, 3 … in the order in which they became known
    id        TEXT NOT NULL,              -- a name of the user's choosing, or the hash of its key
    username  TEXT,
    model     TEXT,
    benchmark INTEGER NOT NULL DEFAULT 0  -- 1: an administrator says that it is a benchmark model
);
INSERT INTO users VALUES(1,'ada',NULL,NULL,0);
INSERT INTO users VALUES(2,'ben',NULL,NULL,0);
INSERT INTO users VALUES(3,'eve',NULL,NULL,0);
CREATE TABLE careers (
    user      INTEGER NOT NULL,           -- users.no
    n         INTEGER NOT NULL,
    session   INTEGER NOT NULL,           -- sessions.no; in row 0 the number of sessions
    standings TEXT,                       -- in row 0: JSON object by challenge type and strategy: games, and for each
                                          -- metric sums or a streak. Rebuilt from the sessions by `arena admin recompute`
    PRIMARY KEY (user, n)
) WITHOUT ROWID;
INSERT INTO careers VALUES(1,0,4,'{"ae436a1c0789a7f0":{"average":{"games":3,"measures":[[3.0,3.0,0.0,1.0],[3.0,3.0,0.0,1.0]]},"consecutive":{"games":3,"measures":[3,3,0]},"red-team":{"games":3,"measures":[[0.0,0.0,0.0,0.0],[3.0,3.0,0.0,1.0]]},"win-rate":{"games":3,"measures":[[3.0,3.0,0.0,1.0],[3.0,3.0,0.0,1.0]]}}}');
INSERT INTO careers VALUES(1,1,1,NULL);
INSERT INTO careers VALUES(1,2,2,NULL);
INSERT INTO careers VALUES(1,3,3,NULL);
INSERT INTO careers VALUES(1,4,4,NULL);
INSERT INTO careers VALUES(2,0,3,'{"ae436a1c0789a7f0":{"average":{"games":3,"measures":[[3.0,3.0,0.0,1.0],[-2.0,2.0,-1.0,0.0]]},"consecutive":{"games":3,"measures":[3,0,0]},"red-team":{"games":3,"measures":[[0.0,0.0,0.0,0.0],[3.0,3.0,0.0,1.0]]},"win-rate":{"games":3,"measures":[[3.0,3.0,0.0,1.0],[0.0,0.0,0.0,0.0]]}}}');
INSERT INTO careers VALUES(2,1,1,NULL);
INSERT INTO careers VALUES(2,2,2,NULL);
INSERT INTO careers VALUES(2,3,3,NULL);
INSERT INTO careers VALUES(3,0,1,'{}');
INSERT INTO careers VALUES(3,1,4,NULL);
CREATE TABLE totals (
    name TEXT PRIMARY KEY,                -- participants, or games: and a challenge type
    n    INTEGER NOT NULL
) WITHOUT ROWID;
INSERT INTO totals VALUES('games:psi',4);
INSERT INTO totals VALUES('participants',3);
CREATE TABLE notes (
    name  TEXT PRIMARY KEY,
    value TEXT NOT NULL
) WITHOUT ROWID;
INSERT INTO notes VALUES('scoring','by board, all: average; cherry-picker: average, win-rate, consecutive; chess: average, win-rate, consecutive; dining-cryptographers: average, win-rate, consecutive; food-catcher: average, win-rate, consecutive; millionaire: average, win-rate, red-team, consecutive; psi: average, win-rate, red-team, consecutive; snake: average, win-rate, consecutive; ultimatum: average, win-rate, red-team, consecutive');
CREATE TABLE bans (
    subject TEXT PRIMARY KEY,             -- user: and an id, or address: and an IP address or a prefix of some
    reason  TEXT NOT NULL,
    at      INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TABLE audit (
    no      INTEGER PRIMARY KEY,          -- 1, 2, 3 …; no row is ever removed
    at      INTEGER NOT NULL,
    address TEXT NOT NULL,                -- where the request came from
    action  TEXT NOT NULL,
    detail  TEXT NOT NULL                 -- JSON object
);
INSERT INTO audit VALUES(1,1795411962954,'127.0.0.1','export','{}');
CREATE TABLE endings (
    n       INTEGER PRIMARY KEY,
    session INTEGER NOT NULL              -- sessions.no; 0 if it has been removed, so that no number is given twice
);
INSERT INTO endings VALUES(1,1);
INSERT INTO endings VALUES(2,2);
INSERT INTO endings VALUES(3,3);
INSERT INTO endings VALUES(4,4);
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
INSERT INTO leagues VALUES(1,'snakes','snake','{"n_epochs":15}',2,1,2000,20000,'{"expose":[],"limits":{"file_size_bytes":67108864,"memory_bytes":1073741824,"open_files":256,"processes":64},"mode":"on"}',X'4b2fb9fd69ddb7134036eef5281401ef68e50bd1e9dce6f569f5dc294aaa5cd0',1795411957418);
CREATE TABLE league_seasons (
    league   INTEGER NOT NULL,       -- leagues.no
    number   INTEGER NOT NULL,       -- 1, 2, 3 …
    began_at INTEGER NOT NULL,
    ended_at INTEGER, rules_version INTEGER NOT NULL DEFAULT 1,
    PRIMARY KEY (league, number)
) WITHOUT ROWID;
INSERT INTO league_seasons VALUES(1,1,1795411957418,NULL,2);
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
INSERT INTO league_agents VALUES(1,1,'one',1,NULL,'/bots/a-snake','both','{"command":{"args":["/bots/a-snake/agent.py"],"folder":"/bots/a-snake","program":"/usr/bin/python3"}}','["/bots/a-snake"]','ca50ef838313583c4ce7b8c2e68f2e9667183d27b11b554fe6633d20548c8c1d',1795411957440,NULL);
INSERT INTO league_agents VALUES(2,1,'two',1,NULL,'/bots/b-snake','both','{"command":{"args":["/bots/b-snake/agent.py"],"folder":"/bots/b-snake","program":"/usr/bin/python3"}}','["/bots/b-snake"]','df1f46a4dc577bbcfcda91357151d3e75bf14059486cde6a7e672e1b1048292a',1795411957444,NULL);
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
INSERT INTO league_games VALUES(1,1,1,1,1,1,X'6e921988bf862769bbf8e9d811c343b55cedc731276561942ee33852f3026d94',15,'GAME_ENDED','DRAW',1795411958337,870.57200000000000269);
INSERT INTO league_games VALUES(2,1,2,1,1,2,X'6e921988bf862769bbf8e9d811c343b55cedc731276561942ee33852f3026d94',15,'GAME_ENDED','DRAW',1795411959086,738.77499999999997727);
INSERT INTO league_games VALUES(3,1,3,1,2,1,X'1a44f3c68b29aa3d8392b428a923c2fee594be541136200e715717073f044803',15,'GAME_ENDED','DRAW',1795411959768,680.70000000000004548);
INSERT INTO league_games VALUES(4,1,4,1,2,2,X'1a44f3c68b29aa3d8392b428a923c2fee594be541136200e715717073f044803',15,'GAME_ENDED','DRAW',1795411960674,899.70699999999999363);
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
INSERT INTO league_seats VALUES(1,0,1,1,2.0,NULL,NULL,0,15.356999999999999317,4.732000000000000206);
INSERT INTO league_seats VALUES(1,1,2,1,2.0,NULL,NULL,0,7.0320000000000000284,4.1829999999999998294);
INSERT INTO league_seats VALUES(2,0,2,1,2.0,NULL,NULL,0,13.166999999999999815,6.4409999999999998365);
INSERT INTO league_seats VALUES(2,1,1,1,2.0,NULL,NULL,0,11.384999999999999787,2.8740000000000001101);
INSERT INTO league_seats VALUES(3,0,1,1,2.0,NULL,NULL,0,8.3629999999999995452,3.232000000000000206);
INSERT INTO league_seats VALUES(3,1,2,1,2.0,NULL,NULL,0,5.6289999999999995594,2.2730000000000001314);
INSERT INTO league_seats VALUES(4,0,2,1,2.0,NULL,NULL,0,12.468999999999999417,5.0750000000000001776);
INSERT INTO league_seats VALUES(4,1,1,1,2.0,NULL,NULL,0,9.8079999999999998294,3.3849999999999997868);
CREATE TABLE scripts (
    version TEXT PRIMARY KEY,  -- SHA-256 of source, in hexadecimal digits
    source  TEXT NOT NULL      -- JSON object: files, the texts of all files that it is made of, by their paths
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS "invites" (
    made    TEXT NOT NULL,             -- the end of the code
    code    TEXT NOT NULL,             -- inv_ and a UUID
    session INTEGER NOT NULL,          -- sessions.no
    PRIMARY KEY (made, code)
) WITHOUT ROWID;
INSERT INTO invites VALUES('01a206e46c08','inv_63a91db7-26f8-4837-bc96-01a206e46c08',1);
INSERT INTO invites VALUES('01a206e46c08','inv_91ceef8b-20ab-4741-ae31-01a206e46c08',1);
INSERT INTO invites VALUES('01a206e46c10','inv_3c6a4c80-628f-4be3-85f7-01a206e46c10',2);
INSERT INTO invites VALUES('01a206e46c10','inv_7e270070-f4dc-495e-b850-01a206e46c10',2);
INSERT INTO invites VALUES('01a206e46c15','inv_28652efc-240d-43c0-baf4-01a206e46c15',3);
INSERT INTO invites VALUES('01a206e46c15','inv_bba62c50-df7a-4831-8c9b-01a206e46c15',3);
INSERT INTO invites VALUES('01a206e46c22','inv_b8ec2080-6eee-4c37-93cf-01a206e46c22',4);
INSERT INTO invites VALUES('01a206e46c22','inv_cace84d4-27d6-4384-8de2-01a206e46c22',4);
INSERT INTO invites VALUES('01a206e46c2c','inv_58b9b4fc-3320-448f-ae0b-01a206e46c2c',5);
INSERT INTO invites VALUES('01a206e46c2c','inv_a58320b4-0919-4eac-93c5-01a206e46c2c',5);
INSERT INTO invites VALUES('01a206e46c2f','inv_8ce06eb8-b33e-4a23-a8aa-01a206e46c2f',6);
INSERT INTO invites VALUES('01a206e46c2f','inv_bb49b122-8b6c-4d58-994c-01a206e46c2f',6);
CREATE TABLE boards (
    id      TEXT PRIMARY KEY,          -- the key of `careers.standings`: a hash of the other columns
    type    TEXT NOT NULL,             -- challenge type
    options TEXT NOT NULL,             -- JSON object
    rated   TEXT NOT NULL              -- as sessions.rated
) WITHOUT ROWID;
INSERT INTO boards VALUES('ae436a1c0789a7f0','psi','{"intersectionSize":3,"players":2,"range":[100,900],"setSize":10}','1 8f031266e47b4c7fc0ce9a07b405844da227b5c9c838d691472407a44ed7631f');
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
CREATE UNIQUE INDEX sessions_id ON sessions (substr(id, -12), id);
CREATE VIEW standings AS
    SELECT u.id AS user, b.type, t.key AS board, t.value AS tallies
    FROM careers c JOIN users u ON u.no = c.user, json_each(c.standings) t LEFT JOIN boards b ON b.id = t.key WHERE c.n = 0;
COMMIT;
PRAGMA user_version = 9;
