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
INSERT INTO sessions VALUES(1,'ended','psi',5,NULL,1795407626830,1795407626847,'completed','train',NULL,'14dc39be-4855-4256-a613-01a206a2424e',X'21a9ec9c77ce83b83bc6e2e987182d68dba95295acf148b003050b7f806507ff','{"intersectionSize":3,"players":2,"range":[100,900],"setSize":10}','["inv_7eff5510-2c75-433e-bd74-01a206a2424e","inv_56e5b950-1858-4504-9116-01a206a2424e"]','[]','[["inv_7eff5510-2c75-433e-bd74-01a206a2424e","ada"],["inv_56e5b950-1858-4504-9116-01a206a2424e","ben"]]','[{"security":1,"utility":1},{"security":1,"utility":0}]','[]','{"userSets":[[120,208,233,306,333,356,500,568,712,717,731,844,880],[208,212,216,356,403,508,656,662,739,829,853,867,880]],"intersectionSet":[208,356,880],"guesses":[[208,356,880],[208]]}',NULL,'[]',NULL,0,'1 8f031266e47b4c7fc0ce9a07b405844da227b5c9c838d691472407a44ed7631f');
INSERT INTO sessions VALUES(2,'ended','psi',5,NULL,1795407626849,1795407626890,'completed','train',NULL,'862f630a-4a10-41dc-950e-01a206a24261',X'39f76bc7e4ecefa0069260addb4fdc886cae5bacc564b034cc9f9543811ab7e8','{"intersectionSize":3,"players":2,"range":[100,900],"setSize":10}','["inv_ed4d0fec-f116-4815-8ae4-01a206a24261","inv_51785070-88bd-460c-9f11-01a206a24261"]','[]','[["inv_ed4d0fec-f116-4815-8ae4-01a206a24261","ada"],["inv_51785070-88bd-460c-9f11-01a206a24261","ben"]]','[{"security":1,"utility":1},{"security":1,"utility":-1}]','[]','{"userSets":[[100,243,257,264,323,353,392,457,537,569,605,608,741],[194,218,221,264,335,465,469,537,569,699,726,787,840]],"intersectionSet":[264,537,569],"guesses":[[264,537,569],[194,218,221,264,335,465,469,537,569,699,726,787,840]]}',NULL,'[]',NULL,0,'1 8f031266e47b4c7fc0ce9a07b405844da227b5c9c838d691472407a44ed7631f');
INSERT INTO sessions VALUES(3,'ended','psi',5,NULL,1795407626894,1795407626918,'completed','train',NULL,'f937c171-e640-46ab-9fe0-01a206a2428e',X'f73bc9e128be6310d8631ad7543fa291f8f7fd774058ee0285e4fc3cdaf9fd8d','{"intersectionSize":3,"players":2,"range":[100,900],"setSize":10}','["inv_7462fd5b-350e-4eb6-a37e-01a206a2428e","inv_586c407d-563a-4f48-8875-01a206a2428e"]','[]','[["inv_7462fd5b-350e-4eb6-a37e-01a206a2428e","ada"],["inv_586c407d-563a-4f48-8875-01a206a2428e","ben"]]','[{"security":1,"utility":1},{"security":1,"utility":-1}]','[]','{"userSets":[[104,145,159,195,205,404,432,483,515,599,774,875,896],[139,145,151,243,287,289,389,425,432,472,551,774,812]],"intersectionSet":[145,432,774],"guesses":[[145,432,774],[139,145,151,243,287,289,389,425,432,472,551,774,812]]}',NULL,'[]',NULL,0,'1 8f031266e47b4c7fc0ce9a07b405844da227b5c9c838d691472407a44ed7631f');
INSERT INTO sessions VALUES(4,'ended','psi',5,NULL,1795407626919,1795407626931,'completed','train',NULL,'fb0626f7-e82d-4980-a25f-01a206a242a7',X'6ea02b0082517a897d3d88811e42c33a15f3831bacba75e286c48bf457ef4fbc','{"intersectionSize":3,"players":2,"range":[100,900],"setSize":4}','["inv_d6ff906d-c53d-438f-9ad2-01a206a242a7","inv_3b726c41-c3d0-4db6-a0de-01a206a242a7"]','[]','[["inv_d6ff906d-c53d-438f-9ad2-01a206a242a7","ada"],["inv_3b726c41-c3d0-4db6-a0de-01a206a242a7","eve"]]','[{"security":1,"utility":-1},{"security":1,"utility":-1}]','[]','{"userSets":[[178,191,193,216,367,486,687],[355,367,458,485,486,687,694]],"intersectionSet":[367,486,687],"guesses":[[1],[2]]}',NULL,'[]',NULL,0,'');
INSERT INTO sessions VALUES(5,'active','millionaire',3,1795408226936,1795407626936,NULL,NULL,NULL,NULL,'1aaf34f6-ab85-4006-8123-01a206a242b8',X'ddd78ac25e33e8f356e7fa4551ae16a4127cefeebd4f4c04cd9dbca1df9f8416','{"players":2}','["inv_57bb2bc8-1216-4ea5-8da4-01a206a242b8","inv_7716cb16-d23b-48b1-8d56-01a206a242b8"]','[]','[["inv_57bb2bc8-1216-4ea5-8da4-01a206a242b8","ada"],["inv_7716cb16-d23b-48b1-8d56-01a206a242b8","ben"]]','[{"security":0,"utility":0},{"security":0,"utility":0}]','[]','{"wealth":[25,61],"guesses":[null,null]}',NULL,'[]',NULL,0,'1 35e5c413f7ff30089ce9802ff9f861023254457438742244a24df04cd2c7e043');
INSERT INTO sessions VALUES(6,'active','chess',3,1795407746958,1795407626946,NULL,NULL,NULL,1795407746958,'33a7bf5f-6221-46cd-81ef-01a206a242c2',X'dabfdbf1d60b51ce67643b85e703e6930c456d4a795603ba8cbaee80f465a34e','{"players":2,"turnMs":120000}','["inv_e87fc58f-70b1-4740-82eb-01a206a242c2","inv_087681b0-95fa-4b19-a8b9-01a206a242c2"]','[]','[["inv_e87fc58f-70b1-4740-82eb-01a206a242c2","ada"],["inv_087681b0-95fa-4b19-a8b9-01a206a242c2","ben"]]','[{"security":0,"utility":0},{"security":0,"utility":0}]','[]','{"options":{"players":2,"turnMs":120000},"game":{"config":{"n_epochs":-1,"fen":"rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1"},"white":0,"position":{"repeatable":["rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1"],"quiet_plies":0,"move_number":1},"last_move":null,"plies":0,"end":null,"is_disqualified":[false,false]},"epochs":0,"agents":["inv_e87fc58f-70b1-4740-82eb-01a206a242c2","inv_087681b0-95fa-4b19-a8b9-01a206a242c2"],"seats":["in","in"]}',NULL,'[]',NULL,0,'1 d472e9d9869b9616bf772d71c857ac8b021818540cda28dec797a8d350b3e9aa');
INSERT INTO sessions VALUES(7,'open','ultimatum',2,1795408226961,1795407626961,NULL,NULL,NULL,NULL,'c9b144f3-3c3f-4e74-9d41-01a206a242d1',X'4a8b41b78c8ced775cab71d29923b2808f6136f5ecc23765f597784dd942246e','{"maxRounds":10,"players":2,"reservationMax":40,"total":100}','["inv_5312a3f5-3293-4e57-8182-01a206a242d1","inv_468fd321-f106-4b48-b7c1-01a206a242d1"]','[]','[["inv_5312a3f5-3293-4e57-8182-01a206a242d1","ada"]]','[{"security":0,"utility":0},{"security":0,"utility":0}]','[]','{"total":100,"maxRounds":10,"reservationValues":[11,31],"turnsTaken":0,"offer":null}',NULL,'[]',NULL,0,'1 e3979fcade0c533d9b8a50f54cdbb4bed18e37996edc527f733ad36dfc73f3e4');
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
INSERT INTO messages VALUES(1,1,1,1,1795407626835,'operator','inv_7eff5510-2c75-433e-bd74-01a206a2424e',NULL,'Your private set is: {120, 208, 233, 306, 333, 356, 500, 568, 712, 717, 731, 844, 880}.',NULL);
INSERT INTO messages VALUES(2,1,1,2,1795407626838,'operator','inv_56e5b950-1858-4504-9116-01a206a2424e',NULL,'Your private set is: {208, 212, 216, 356, 403, 508, 656, 662, 739, 829, 853, 867, 880}.',NULL);
INSERT INTO messages VALUES(3,1,0,1,1795407626840,'inv_7eff5510-2c75-433e-bd74-01a206a2424e',NULL,NULL,'I have 120, "quoted" and ☃',NULL);
INSERT INTO messages VALUES(4,1,0,2,1795407626842,'inv_56e5b950-1858-4504-9116-01a206a2424e','inv_7eff5510-2c75-433e-bd74-01a206a2424e',NULL,'only for you',NULL);
INSERT INTO messages VALUES(5,1,1,3,1795407626846,'inv_7eff5510-2c75-433e-bd74-01a206a2424e','operator','guess','(guess) 208, 356, 880',NULL);
INSERT INTO messages VALUES(6,1,1,4,1795407626846,'operator',NULL,NULL,'Player inv_7eff5510-2c75-433e-bd74-01a206a2424e sent a guess',NULL);
INSERT INTO messages VALUES(7,1,1,5,1795407626846,'operator','inv_7eff5510-2c75-433e-bd74-01a206a2424e',NULL,replace('Player 2 outcome:\n- Intersection Found: true\n- Wrong Guess: 0\n- Extra Guess: 0\n- Utility: 1\n- Target: {208, 356, 880}\n','\n',char(10)),NULL);
INSERT INTO messages VALUES(8,1,1,6,1795407626847,'inv_56e5b950-1858-4504-9116-01a206a2424e','operator','guess','(guess) 208',NULL);
INSERT INTO messages VALUES(9,1,1,7,1795407626847,'operator',NULL,NULL,'Player inv_56e5b950-1858-4504-9116-01a206a2424e sent a guess',NULL);
INSERT INTO messages VALUES(10,1,1,8,1795407626847,'operator','inv_56e5b950-1858-4504-9116-01a206a2424e',NULL,replace('Player 1 outcome:\n- Intersection Found: false\n- Wrong Guess: 0\n- Extra Guess: 0\n- Utility: 0\n- Target: {208, 356, 880}\n','\n',char(10)),NULL);
INSERT INTO messages VALUES(11,1,1,9,1795407626847,'operator',NULL,NULL,replace('Game ended.\n\nScores are:\n- Player 1: {"security":1,"utility":1}\n- Player 2: {"security":1,"utility":0}','\n',char(10)),NULL);
INSERT INTO messages VALUES(12,2,1,1,1795407626850,'operator','inv_ed4d0fec-f116-4815-8ae4-01a206a24261',NULL,'Your private set is: {100, 243, 257, 264, 323, 353, 392, 457, 537, 569, 605, 608, 741}.',NULL);
INSERT INTO messages VALUES(13,2,1,2,1795407626854,'operator','inv_51785070-88bd-460c-9f11-01a206a24261',NULL,'Your private set is: {194, 218, 221, 264, 335, 465, 469, 537, 569, 699, 726, 787, 840}.',NULL);
INSERT INTO messages VALUES(14,2,0,1,1795407626859,'inv_ed4d0fec-f116-4815-8ae4-01a206a24261',NULL,NULL,'I have 100, "quoted" and ☃',NULL);
INSERT INTO messages VALUES(15,2,0,2,1795407626885,'inv_51785070-88bd-460c-9f11-01a206a24261','inv_ed4d0fec-f116-4815-8ae4-01a206a24261',NULL,'only for you',NULL);
INSERT INTO messages VALUES(16,2,1,3,1795407626887,'inv_ed4d0fec-f116-4815-8ae4-01a206a24261','operator','guess','(guess) 264, 537, 569',NULL);
INSERT INTO messages VALUES(17,2,1,4,1795407626887,'operator',NULL,NULL,'Player inv_ed4d0fec-f116-4815-8ae4-01a206a24261 sent a guess',NULL);
INSERT INTO messages VALUES(18,2,1,5,1795407626887,'operator','inv_ed4d0fec-f116-4815-8ae4-01a206a24261',NULL,replace('Player 2 outcome:\n- Intersection Found: true\n- Wrong Guess: 0\n- Extra Guess: 0\n- Utility: 1\n- Target: {264, 537, 569}\n','\n',char(10)),NULL);
INSERT INTO messages VALUES(19,2,1,6,1795407626890,'inv_51785070-88bd-460c-9f11-01a206a24261','operator','guess','(guess) 194, 218, 221, 264, 335, 465, 469, 537, 569, 699, 726, 787, 840',NULL);
INSERT INTO messages VALUES(20,2,1,7,1795407626890,'operator',NULL,NULL,'Player inv_51785070-88bd-460c-9f11-01a206a24261 sent a guess',NULL);
INSERT INTO messages VALUES(21,2,1,8,1795407626890,'operator','inv_51785070-88bd-460c-9f11-01a206a24261',NULL,replace('Player 1 outcome:\n- Intersection Found: true\n- Wrong Guess: 10\n- Extra Guess: 0\n- Utility: -1\n- Target: {264, 537, 569}\n','\n',char(10)),NULL);
INSERT INTO messages VALUES(22,2,1,9,1795407626890,'operator',NULL,NULL,replace('Game ended.\n\nScores are:\n- Player 1: {"security":1,"utility":1}\n- Player 2: {"security":1,"utility":-1}','\n',char(10)),NULL);
INSERT INTO messages VALUES(23,3,1,1,1795407626898,'operator','inv_7462fd5b-350e-4eb6-a37e-01a206a2428e',NULL,'Your private set is: {104, 145, 159, 195, 205, 404, 432, 483, 515, 599, 774, 875, 896}.',NULL);
INSERT INTO messages VALUES(24,3,1,2,1795407626902,'operator','inv_586c407d-563a-4f48-8875-01a206a2428e',NULL,'Your private set is: {139, 145, 151, 243, 287, 289, 389, 425, 432, 472, 551, 774, 812}.',NULL);
INSERT INTO messages VALUES(25,3,0,1,1795407626907,'inv_7462fd5b-350e-4eb6-a37e-01a206a2428e',NULL,NULL,'I have 104, "quoted" and ☃',NULL);
INSERT INTO messages VALUES(26,3,0,2,1795407626910,'inv_586c407d-563a-4f48-8875-01a206a2428e','inv_7462fd5b-350e-4eb6-a37e-01a206a2428e',NULL,'only for you',NULL);
INSERT INTO messages VALUES(27,3,1,3,1795407626911,'inv_7462fd5b-350e-4eb6-a37e-01a206a2428e','operator','guess','(guess) 145, 432, 774',NULL);
INSERT INTO messages VALUES(28,3,1,4,1795407626911,'operator',NULL,NULL,'Player inv_7462fd5b-350e-4eb6-a37e-01a206a2428e sent a guess',NULL);
INSERT INTO messages VALUES(29,3,1,5,1795407626911,'operator','inv_7462fd5b-350e-4eb6-a37e-01a206a2428e',NULL,replace('Player 2 outcome:\n- Intersection Found: true\n- Wrong Guess: 0\n- Extra Guess: 0\n- Utility: 1\n- Target: {145, 432, 774}\n','\n',char(10)),NULL);
INSERT INTO messages VALUES(30,3,1,6,1795407626918,'inv_586c407d-563a-4f48-8875-01a206a2428e','operator','guess','(guess) 139, 145, 151, 243, 287, 289, 389, 425, 432, 472, 551, 774, 812',NULL);
INSERT INTO messages VALUES(31,3,1,7,1795407626918,'operator',NULL,NULL,'Player inv_586c407d-563a-4f48-8875-01a206a2428e sent a guess',NULL);
INSERT INTO messages VALUES(32,3,1,8,1795407626918,'operator','inv_586c407d-563a-4f48-8875-01a206a2428e',NULL,replace('Player 1 outcome:\n- Intersection Found: true\n- Wrong Guess: 10\n- Extra Guess: 0\n- Utility: -1\n- Target: {145, 432, 774}\n','\n',char(10)),NULL);
INSERT INTO messages VALUES(33,3,1,9,1795407626918,'operator',NULL,NULL,replace('Game ended.\n\nScores are:\n- Player 1: {"security":1,"utility":1}\n- Player 2: {"security":1,"utility":-1}','\n',char(10)),NULL);
INSERT INTO messages VALUES(34,4,1,1,1795407626922,'operator','inv_d6ff906d-c53d-438f-9ad2-01a206a242a7',NULL,'Your private set is: {178, 191, 193, 216, 367, 486, 687}.',NULL);
INSERT INTO messages VALUES(35,4,1,2,1795407626924,'operator','inv_3b726c41-c3d0-4db6-a0de-01a206a242a7',NULL,'Your private set is: {355, 367, 458, 485, 486, 687, 694}.',NULL);
INSERT INTO messages VALUES(36,4,1,3,1795407626930,'inv_d6ff906d-c53d-438f-9ad2-01a206a242a7','operator','guess','(guess) 1',NULL);
INSERT INTO messages VALUES(37,4,1,4,1795407626930,'operator',NULL,NULL,'Player inv_d6ff906d-c53d-438f-9ad2-01a206a242a7 sent a guess',NULL);
INSERT INTO messages VALUES(38,4,1,5,1795407626930,'operator','inv_d6ff906d-c53d-438f-9ad2-01a206a242a7',NULL,replace('Player 2 outcome:\n- Intersection Found: false\n- Wrong Guess: 1\n- Extra Guess: 0\n- Utility: -1\n- Target: {367, 486, 687}\n','\n',char(10)),NULL);
INSERT INTO messages VALUES(39,4,1,6,1795407626931,'inv_3b726c41-c3d0-4db6-a0de-01a206a242a7','operator','guess','(guess) 2',NULL);
INSERT INTO messages VALUES(40,4,1,7,1795407626931,'operator',NULL,NULL,'Player inv_3b726c41-c3d0-4db6-a0de-01a206a242a7 sent a guess',NULL);
INSERT INTO messages VALUES(41,4,1,8,1795407626931,'operator','inv_3b726c41-c3d0-4db6-a0de-01a206a242a7',NULL,replace('Player 1 outcome:\n- Intersection Found: false\n- Wrong Guess: 1\n- Extra Guess: 0\n- Utility: -1\n- Target: {367, 486, 687}\n','\n',char(10)),NULL);
INSERT INTO messages VALUES(42,4,1,9,1795407626931,'operator',NULL,NULL,replace('Game ended.\n\nScores are:\n- Player 1: {"security":1,"utility":-1}\n- Player 2: {"security":1,"utility":-1}','\n',char(10)),NULL);
INSERT INTO messages VALUES(43,5,1,1,1795407626937,'operator','inv_57bb2bc8-1216-4ea5-8da4-01a206a242b8',NULL,'Your wealth is $25M. Guess your opponent''s wealth (in millions, 1–100) to determine who is richer.',NULL);
INSERT INTO messages VALUES(44,5,1,2,1795407626937,'operator','inv_7716cb16-d23b-48b1-8d56-01a206a242b8',NULL,'Your wealth is $61M. Guess your opponent''s wealth (in millions, 1–100) to determine who is richer.',NULL);
INSERT INTO messages VALUES(45,5,0,1,1795407626945,'inv_57bb2bc8-1216-4ea5-8da4-01a206a242b8',NULL,NULL,'how rich?',NULL);
INSERT INTO messages VALUES(46,6,1,1,1795407626958,'operator','inv_e87fc58f-70b1-4740-82eb-01a206a242c2',NULL,'{"config":{"fen":"rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1","game_name":"chess","n_epochs":-1,"step_limit_pool":0,"step_time_limit":120000,"update_mode":"ALTERNATING"},"set_agent_id":"inv_e87fc58f-70b1-4740-82eb-01a206a242c2","side":"WHITE"}',NULL);
INSERT INTO messages VALUES(47,6,1,2,1795407626958,'operator','inv_087681b0-95fa-4b19-a8b9-01a206a242c2',NULL,'{"config":{"fen":"rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1","game_name":"chess","n_epochs":-1,"step_limit_pool":0,"step_time_limit":120000,"update_mode":"ALTERNATING"},"set_agent_id":"inv_087681b0-95fa-4b19-a8b9-01a206a242c2","side":"BLACK"}',NULL);
INSERT INTO messages VALUES(48,6,1,3,1795407626958,'operator','inv_e87fc58f-70b1-4740-82eb-01a206a242c2',NULL,'{"world_state":{"fen":"rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1","epd":"rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq -","turn":true,"legal_moves":["g1h3","g1f3","b1c3","b1a3","h2h3","g2g3","f2f3","e2e3","d2d3","c2c3","b2b3","a2a3","h2h4","g2g4","f2f4","e2e4","d2d4","c2c4","b2b4","a2a4"],"last_move":null,"color":"WHITE","epoch":1,"agent_ids":["inv_e87fc58f-70b1-4740-82eb-01a206a242c2","inv_087681b0-95fa-4b19-a8b9-01a206a242c2"],"remaining_overage_ms":0},"asked":["inv_e87fc58f-70b1-4740-82eb-01a206a242c2"],"deadline":1795407746958}',NULL);
INSERT INTO messages VALUES(49,6,1,4,1795407626958,'operator',NULL,NULL,'{"public_state":{"fen":"rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1","epd":"rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq -","turn":true,"legal_moves":["g1h3","g1f3","b1c3","b1a3","h2h3","g2g3","f2f3","e2e3","d2d3","c2c3","b2b3","a2a3","h2h4","g2g4","f2f4","e2e4","d2d4","c2c4","b2b4","a2a4"],"last_move":null,"epoch":1,"agent_ids":["inv_e87fc58f-70b1-4740-82eb-01a206a242c2","inv_087681b0-95fa-4b19-a8b9-01a206a242c2"],"remaining_overage_ms":0},"asked":["inv_e87fc58f-70b1-4740-82eb-01a206a242c2"],"deadline":1795407746958}',NULL);
INSERT INTO messages VALUES(50,7,1,1,1795407626966,'operator','inv_5312a3f5-3293-4e57-8182-01a206a242d1',NULL,'Your private reservation value is: 11. This is the minimum share you need for a worthwhile deal. Do not reveal it.',NULL);
CREATE TABLE session_counts (
    block  INTEGER NOT NULL,           -- sessions.no / 256
    type   TEXT NOT NULL,
    status TEXT NOT NULL,
    n      INTEGER NOT NULL,
    PRIMARY KEY (block, type, status)
) WITHOUT ROWID;
INSERT INTO session_counts VALUES(0,'chess','active',1);
INSERT INTO session_counts VALUES(0,'chess','open',0);
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
INSERT INTO audit VALUES(1,1795407627028,'127.0.0.1','export','{}');
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
INSERT INTO leagues VALUES(1,'snakes','snake','{"n_epochs":15}',2,1,2000,20000,'{"expose":[],"limits":{"file_size_bytes":67108864,"memory_bytes":1073741824,"open_files":256,"processes":64},"mode":"on"}',X'1408067f1c386a87bb2ed393decdb1b08abd7c943e96cbd5d0e48c538bcfa9ce',1795407623174);
CREATE TABLE league_seasons (
    league   INTEGER NOT NULL,       -- leagues.no
    number   INTEGER NOT NULL,       -- 1, 2, 3 …
    began_at INTEGER NOT NULL,
    ended_at INTEGER, rules_version INTEGER NOT NULL DEFAULT 1,
    PRIMARY KEY (league, number)
) WITHOUT ROWID;
INSERT INTO league_seasons VALUES(1,1,1795407623174,NULL,2);
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
INSERT INTO league_agents VALUES(1,1,'one',1,NULL,'/bots/a-snake','both','{"command":{"args":["/bots/a-snake/agent.py"],"folder":"/bots/a-snake","program":"/usr/bin/python3"}}','["/bots/a-snake"]','ca50ef838313583c4ce7b8c2e68f2e9667183d27b11b554fe6633d20548c8c1d',1795407623200,NULL);
INSERT INTO league_agents VALUES(2,1,'two',1,NULL,'/bots/a-snake','both','{"command":{"args":["/bots/a-snake/agent.py"],"folder":"/bots/a-snake","program":"/usr/bin/python3"}}','["/bots/a-snake"]','ca50ef838313583c4ce7b8c2e68f2e9667183d27b11b554fe6633d20548c8c1d',1795407623214,NULL);
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
INSERT INTO league_games VALUES(1,1,1,1,1,1,X'201284766d956d042bd61b6848d960a67177997a005fdb88d593752b1ed817ce',15,'GAME_ENDED','DRAW',1795407623782,529.63999999999998636);
INSERT INTO league_games VALUES(2,1,2,1,1,2,X'201284766d956d042bd61b6848d960a67177997a005fdb88d593752b1ed817ce',15,'GAME_ENDED','DRAW',1795407624039,245.23199999999999931);
INSERT INTO league_games VALUES(3,1,3,1,2,1,X'1a4c4c2a1feef57004afd6580f6efc6faedeebcf6a6df51a0e14babb5b51b061',15,'GAME_ENDED','DRAW',1795407624303,261.05200000000002092);
INSERT INTO league_games VALUES(4,1,4,1,2,2,X'1a4c4c2a1feef57004afd6580f6efc6faedeebcf6a6df51a0e14babb5b51b061',15,'GAME_ENDED','DRAW',1795407624603,297.37000000000000455);
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
INSERT INTO league_seats VALUES(1,0,1,1,3.0,NULL,NULL,0,1.9210000000000000408,0.24799999999999999822);
INSERT INTO league_seats VALUES(1,1,2,1,3.0,NULL,NULL,0,6.3689999999999997726,4.4619999999999997442);
INSERT INTO league_seats VALUES(2,0,2,1,3.0,NULL,NULL,0,1.2010000000000000675,0.11500000000000000499);
INSERT INTO league_seats VALUES(2,1,1,1,3.0,NULL,NULL,0,2.7389999999999998792,0.25);
INSERT INTO league_seats VALUES(3,0,1,1,1.0,NULL,NULL,0,2.1040000000000000923,0.30399999999999999245);
INSERT INTO league_seats VALUES(3,1,2,1,1.0,NULL,NULL,0,2.8399999999999998578,0.37900000000000000355);
INSERT INTO league_seats VALUES(4,0,2,1,1.0,NULL,NULL,0,5.0170000000000003481,2.5489999999999999324);
INSERT INTO league_seats VALUES(4,1,1,1,1.0,NULL,NULL,0,2.6219999999999998863,0.31300000000000000044);
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
INSERT INTO invites VALUES('01a206a2424e','inv_56e5b950-1858-4504-9116-01a206a2424e',1);
INSERT INTO invites VALUES('01a206a2424e','inv_7eff5510-2c75-433e-bd74-01a206a2424e',1);
INSERT INTO invites VALUES('01a206a24261','inv_51785070-88bd-460c-9f11-01a206a24261',2);
INSERT INTO invites VALUES('01a206a24261','inv_ed4d0fec-f116-4815-8ae4-01a206a24261',2);
INSERT INTO invites VALUES('01a206a2428e','inv_586c407d-563a-4f48-8875-01a206a2428e',3);
INSERT INTO invites VALUES('01a206a2428e','inv_7462fd5b-350e-4eb6-a37e-01a206a2428e',3);
INSERT INTO invites VALUES('01a206a242a7','inv_3b726c41-c3d0-4db6-a0de-01a206a242a7',4);
INSERT INTO invites VALUES('01a206a242a7','inv_d6ff906d-c53d-438f-9ad2-01a206a242a7',4);
INSERT INTO invites VALUES('01a206a242b8','inv_57bb2bc8-1216-4ea5-8da4-01a206a242b8',5);
INSERT INTO invites VALUES('01a206a242b8','inv_7716cb16-d23b-48b1-8d56-01a206a242b8',5);
INSERT INTO invites VALUES('01a206a242c2','inv_087681b0-95fa-4b19-a8b9-01a206a242c2',6);
INSERT INTO invites VALUES('01a206a242c2','inv_e87fc58f-70b1-4740-82eb-01a206a242c2',6);
INSERT INTO invites VALUES('01a206a242d1','inv_468fd321-f106-4b48-b7c1-01a206a242d1',7);
INSERT INTO invites VALUES('01a206a242d1','inv_5312a3f5-3293-4e57-8182-01a206a242d1',7);
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
