//! The tables and files of a tournament, of results that are made up.

use arena_match::tournament::{Entrant, GameLine, Plan, Reach, Record, TimePart};
use arena_match::{Dialect, Outcome};
use arena_model::{Seed, Verdict};
use arena_tournament::{Format, Shape};
use expect_test::{Expect, expect};

use crate::{csv, json, line, markdown};

/// A tournament in which scores follow from the names, of which the first `games` have been played. An agent called `crash` is
/// disqualified in all its games, and games of the agents `even` and `equal` are drawn.
fn record(game: &str, format: Format, names: &[&str], seats: usize, games: usize) -> Record {
    let entrant = |name: &&str| Entrant {
        name: (*name).to_owned(),
        version: None,
        path: format!("http://127.0.0.1/{name}"),
        dialect: Dialect::default(),
        reach: Reach::Url(format!("http://127.0.0.1/{name}")),
        files: Vec::new(),
        sha256: None,
    };
    let seed = Seed::from_number(5);
    let shape = Shape {
        format,
        agents: names.len(),
        rounds: format.usual_rounds(names.len()),
        seats,
        paired: true,
        stop: None,
        seed,
    };
    let game = arena_catalogue::game(game).unwrap();
    let mut record = Record::new(Plan::new(game, names.iter().map(entrant).collect(), &shape)).unwrap();
    for _ in 0..games {
        let next = record.schedule.pending().next().cloned();
        let Some(fixture) = next else { break };
        let agents: Vec<String> = fixture.agents.iter().map(|agent| names[*agent].to_owned()).collect();
        let verdicts: Vec<Option<Verdict>> =
            agents.iter().map(|name| (name == "crash").then_some(Verdict::Crashed)).collect();
        let score = |name: &String| match name.as_str() {
            "crash" => -10.0,
            "even" | "equal" => 2.0,
            name => 10.0 - name.len() as f64,
        };
        let scores: Vec<f64> = agents.iter().map(score).collect();
        let ranks = scores.iter().map(|score| 1 + scores.iter().filter(|other| *other > score).count()).collect();
        let reason = verdicts.iter().flatten().next().copied();
        let detail = |verdict: &Option<Verdict>| verdict.map(|_| "exited with code 1".to_owned());
        let played = GameLine {
            fixture: fixture.number,
            round: fixture.round,
            ranks,
            scores,
            details: verdicts.iter().map(detail).collect(),
            verdicts,
            faults: vec![0; seats],
            seed: fixture.seed.reveal(),
            epochs: 9,
            outcome: Outcome {
                termination: if reason.is_some() { "TAINTED" } else { "GAME_ENDED" }.into(),
                winner: "DRAW".to_owned(),
                result: None,
                tainted_reason: reason,
            },
            time: TimePart::default(),
            agents,
        };
        record.add(played).unwrap();
    }
    record
}

#[track_caller]
fn check(record: &Record, expected: Expect) {
    let games: String = record.games().map(|game| line(record, game) + "\n").collect();
    expected.assert_eq(&format!("{games}{}", markdown(record)));
}

#[test]
fn a_round_robin_with_an_agent_that_crashes() {
    check(
        &record("snake", Format::RoundRobin, &["best", "crash", "even", "equal"], 2, 9),
        expect![[r#"
            Finished game 1 of 12 (crash vs best): 0-1 {TAINTED, CRASHED}
            Finished game 2 of 12 (best vs crash): 1-0 {TAINTED, CRASHED}
            Finished game 3 of 12 (even vs equal): 1/2-1/2 {GAME_ENDED}
            Finished game 4 of 12 (equal vs even): 1/2-1/2 {GAME_ENDED}
            Finished game 5 of 12 (best vs even): 1-0 {GAME_ENDED}
            Finished game 6 of 12 (even vs best): 0-1 {GAME_ENDED}
            Finished game 7 of 12 (equal vs crash): 1-0 {TAINTED, CRASHED}
            Finished game 8 of 12 (crash vs equal): 0-1 {TAINTED, CRASHED}
            Finished game 9 of 12 (equal vs best): 0-1 {GAME_ENDED}
            snake: round-robin of 4 agents, 1 round, paired games, seed 5

            9 of 12 games played.

            | rank | name | Elo | ± | rank may be | games | wins | losses | draws | points | score % | disqualified |
            |---|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|
            | 1 | best | 1096 | -1195 +∞ | 1-4 | 5 | 5 | 0 | 0 | 5 | 100.0 | 0 |
            | 2 | equal | 5 | 193 | 1-4 | 5 | 2 | 1 | 2 | 3 | 60.0 | 0 |
            | 3 | even | -5 | 193 | 1-4 | 4 | 0 | 2 | 2 | 1 | 25.0 | 0 |
            | 4 | crash | -1001 | -∞ +1442 | 1-4 | 4 | 0 | 4 | 0 | 0 | 0.0 | 4 |

            |  | best | equal | even | crash |
            |---|--:|--:|--:|--:|
            | best | · | 1/1 | 2/2 | 2/2 |
            | equal | 0/1 | · | 1/2 | 2/2 |
            | even | 0/2 | 1/2 | · | · |
            | crash | 0/2 | 0/2 | · | · |

            - crash was disqualified in 4 of 4 games (4 × CRASHED); the first was game 1: exited with code 1
        "#]],
    );
}

#[test]
fn a_knockout_that_was_decided_by_lot() {
    check(
        &record("chess", Format::Knockout, &["even", "good", "equal"], 2, 99),
        expect![[r#"
            Finished game 1 of 10 (even vs equal): 1/2-1/2 {GAME_ENDED}
            Finished game 2 of 10 (equal vs even): 1/2-1/2 {GAME_ENDED}
            Finished game 3 of 10 (equal vs even): 1/2-1/2 {GAME_ENDED}
            Finished game 4 of 10 (even vs equal): 1/2-1/2 {GAME_ENDED}
            Finished game 5 of 10 (equal vs even): 1/2-1/2 {GAME_ENDED}
            Finished game 6 of 10 (even vs equal): 1/2-1/2 {GAME_ENDED}
            Finished game 7 of 10 (even vs equal): 1/2-1/2 {GAME_ENDED}
            Finished game 8 of 10 (equal vs even): 1/2-1/2 {GAME_ENDED}
            Finished game 9 of 10 (equal vs good): 0-1 {GAME_ENDED}
            Finished game 10 of 10 (good vs equal): 1-0 {GAME_ENDED}
            chess: knockout of 3 agents, 1 round, paired games, seed 5

            10 of 10 games played.

            | rank | name | Elo | ± | rank may be | rounds survived | games | wins | losses | draws | points | score % |
            |---|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|
            | 1 | good | 1541 | -1503 +∞ | 1-3 | 2 | 2 | 2 | 0 | 0 | 2 | 100.0 |
            | 2 | equal | 0 | 195 | 1-3 | 1 | 10 | 0 | 2 | 8 | 4 | 40.0 |
            | 3 | even | 0 | 197 | 1-3 | 0 | 8 | 0 | 0 | 8 | 4 | 50.0 |

            |  | good | equal | even |
            |---|--:|--:|--:|
            | good | · | 2/2 | · |
            | equal | 0/2 | · | 4/8 |
            | even | · | 4/8 | · |

            - 2 games more, if equal won them all against good, would end the lead of good in Elo
            - round 1: equal and even drew all tie-breaks too; equal went on, since it was drawn first at the start
        "#]],
    );
}

#[test]
fn a_swiss_with_byes() {
    check(
        &record("snake", Format::Swiss, &["a", "bb", "ccc", "dddd", "eeeee"], 2, 99),
        expect![[r#"
            Finished game 1 of 12 (ccc vs bb): 0-1 {GAME_ENDED}
            Finished game 2 of 12 (bb vs ccc): 1-0 {GAME_ENDED}
            Finished game 3 of 12 (dddd vs a): 0-1 {GAME_ENDED}
            Finished game 4 of 12 (a vs dddd): 1-0 {GAME_ENDED}
            Finished game 5 of 12 (bb vs a): 0-1 {GAME_ENDED}
            Finished game 6 of 12 (a vs bb): 1-0 {GAME_ENDED}
            Finished game 7 of 12 (eeeee vs ccc): 0-1 {GAME_ENDED}
            Finished game 8 of 12 (ccc vs eeeee): 1-0 {GAME_ENDED}
            Finished game 9 of 12 (a vs ccc): 1-0 {GAME_ENDED}
            Finished game 10 of 12 (ccc vs a): 0-1 {GAME_ENDED}
            Finished game 11 of 12 (dddd vs eeeee): 1-0 {GAME_ENDED}
            Finished game 12 of 12 (eeeee vs dddd): 0-1 {GAME_ENDED}
            snake: swiss of 5 agents, 3 rounds, paired games, seed 5

            12 of 12 games played.

            | rank | name | Elo | ± | rank may be | games | wins | losses | draws | byes | points | score % |
            |---|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|
            | 1 | a | 391 | -312 +∞ | 1-5 | 6 | 6 | 0 | 0 | 0 | 6 | 100.0 |
            | 2 | bb | 131 | ∞ | 1-5 | 4 | 2 | 2 | 0 | 1 | 4 | 66.7 |
            | 2 | dddd | -1 | ∞ | 1-5 | 4 | 2 | 2 | 0 | 1 | 4 | 66.7 |
            | 4 | ccc | -128 | ∞ | 1-5 | 6 | 2 | 4 | 0 | 0 | 2 | 33.3 |
            | 4 | eeeee | -393 | -∞ +354 | 1-5 | 4 | 0 | 4 | 0 | 1 | 2 | 33.3 |

            |  | a | bb | dddd | ccc | eeeee |
            |---|--:|--:|--:|--:|--:|
            | a | · | 2/2 | 2/2 | 2/2 | · |
            | bb | 0/2 | · | · | 2/2 | · |
            | dddd | 0/2 | · | · | · | 2/2 |
            | ccc | 0/2 | 0/2 | · | · | 2/2 |
            | eeeee | · | · | 0/2 | 0/2 | · |

            - 2 games more, if bb won them all against a, would end the lead of a in Elo
        "#]],
    );
}

#[test]
fn games_of_three() {
    check(
        &record("snake", Format::RoundRobin, &["a", "bb", "even", "equal"], 3, 99),
        expect![[r#"
            Finished game 1 of 12 (bb vs even vs equal): 8 : 2 : 2 {GAME_ENDED}
            Finished game 2 of 12 (even vs equal vs bb): 2 : 2 : 8 {GAME_ENDED}
            Finished game 3 of 12 (equal vs bb vs even): 2 : 8 : 2 {GAME_ENDED}
            Finished game 4 of 12 (even vs a vs bb): 2 : 9 : 8 {GAME_ENDED}
            Finished game 5 of 12 (a vs bb vs even): 9 : 8 : 2 {GAME_ENDED}
            Finished game 6 of 12 (bb vs even vs a): 8 : 2 : 9 {GAME_ENDED}
            Finished game 7 of 12 (bb vs equal vs a): 8 : 2 : 9 {GAME_ENDED}
            Finished game 8 of 12 (equal vs a vs bb): 2 : 9 : 8 {GAME_ENDED}
            Finished game 9 of 12 (a vs bb vs equal): 9 : 8 : 2 {GAME_ENDED}
            Finished game 10 of 12 (equal vs a vs even): 2 : 9 : 2 {GAME_ENDED}
            Finished game 11 of 12 (a vs even vs equal): 9 : 2 : 2 {GAME_ENDED}
            Finished game 12 of 12 (even vs equal vs a): 2 : 2 : 9 {GAME_ENDED}
            snake: round-robin of 4 agents, 1 round, paired games of 3 seats, seed 5

            12 of 12 games played.

            | rank | name | Elo | ± | rank may be | games | wins | losses | draws | points | score % |
            |---|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|
            | 1 | a | 2849 | -1893 +∞ | 1-4 | 9 | 9 | 0 | 0 | 9 | 100.0 |
            | 2 | bb | 1512 | -1107 +∞ | 1-4 | 9 | 3 | 6 | 0 | 6 | 66.7 |
            | 3 | even | 0 | 199 | 1-4 | 9 | 0 | 9 | 0 | 1.5 | 16.7 |
            | 3 | equal | 0 | 199 | 1-4 | 9 | 0 | 9 | 0 | 1.5 | 16.7 |

            |  | a | bb | even | equal |
            |---|--:|--:|--:|--:|
            | a | · | 6/6 | 6/6 | 6/6 |
            | bb | 0/6 | · | 6/6 | 6/6 |
            | even | 0/6 | 0/6 | · | 3/6 |
            | equal | 0/6 | 0/6 | 3/6 | · |

            - 3 games more, if bb won them all against a, would end the lead of a in Elo
        "#]],
    );
}

#[test]
fn nothing_played_yet() {
    check(
        &record("snake", Format::Gauntlet, &["a", "bb", "ccc"], 2, 0),
        expect![[r#"
            snake: gauntlet of 3 agents, 1 round, paired games, seed 5

            0 of 4 games played.

            | rank | name | games | wins | losses | draws | points | score % |
            |---|---|--:|--:|--:|--:|--:|--:|
            | 1 | a | 0 | 0 | 0 | 0 | 0 | 0.0 |
            | 1 | bb | 0 | 0 | 0 | 0 | 0 | 0.0 |
            | 1 | ccc | 0 | 0 | 0 | 0 | 0 | 0.0 |

            |  | a | bb | ccc |
            |---|--:|--:|--:|
            | a | · | · | · |
            | bb | · | · | · |
            | ccc | · | · | · |

        "#]],
    );
}

#[test]
fn files_for_other_programs() {
    let record = record("snake", Format::RoundRobin, &["a|b", "say \"hi\", c", "crash"], 2, 99);
    expect![[r#"
        rank,name,Elo,±,rank may be,games,wins,losses,draws,points,score %,disqualified
        1,a|b,271,-322 +∞,1-3,4,4,0,0,4,100.0,0
        2,"say ""hi"", c",0,∞,1-3,4,2,2,0,2,50.0,0
        3,crash,-271,-∞ +322,1-3,4,0,4,0,0,0.0,4
    "#]]
    .assert_eq(&csv(&record));
    expect![[r#"
        snake: round-robin of 3 agents, 1 round, paired games, seed 5

        6 of 6 games played.

        | rank | name | Elo | ± | rank may be | games | wins | losses | draws | points | score % | disqualified |
        |---|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|
        | 1 | a\|b | 271 | -322 +∞ | 1-3 | 4 | 4 | 0 | 0 | 4 | 100.0 | 0 |
        | 2 | say "hi", c | 0 | ∞ | 1-3 | 4 | 2 | 2 | 0 | 2 | 50.0 | 0 |
        | 3 | crash | -271 | -∞ +322 | 1-3 | 4 | 0 | 4 | 0 | 0 | 0.0 | 4 |

        |  | a\|b | say "hi", c | crash |
        |---|--:|--:|--:|
        | a\|b | · | 2/2 | 2/2 |
        | say "hi", c | 0/2 | · | 2/2 |
        | crash | 0/2 | 0/2 | · |

        - 2 games more, if say "hi", c won them all against a\|b, would end the lead of a\|b in Elo
        - crash was disqualified in 4 of 4 games (4 × CRASHED); the first was game 1: exited with code 1
    "#]]
    .assert_eq(&markdown(&record));
    expect![[r#"
        {"complete":true,"cross_table":[{"against":"say \"hi\", c","games":2,"name":"a|b","points":2.0},
        {"against":"crash","games":2,"name":"a|b","points":2.0},
        {"against":"a|b","games":2,"name":"say \"hi\", c","points":0.0},
        {"against":"crash","games":2,"name":"say \"hi\", c","points":2.0},
        {"against":"a|b","games":2,"name":"crash","points":0.0},
        {"against":"say \"hi\", c","games":2,"name":"crash","points":0.0}],"format":"round-robin","game":"snake","games":6,"games_played":6,"options":{},"paired":true,"remarks":["2 games more, if say \"hi\", c won them all against a|b, would end the lead of a|b in Elo","crash was disqualified in 4 of 4 games (4 × CRASHED); the first was game 1: exited with code 1"],"rounds":1,"seats":2,"seed":"0000000000000000000000000000000000000000000000000000000000000005","standings":[{"agent_path":"http://127.0.0.1/a|b","byes":0,"disqualified":{},"draws":0,"elo":{"high":null,"low":-51.428455031441445,"rating":270.7459983873685},"games":4,"losses":0,"name":"a|b","points":4.0,"rank":1,"rank_may_be":{"best":1,"worst":3},"share":1.0,"version":null,"wins":4},
        {"agent_path":"http://127.0.0.1/say \"hi\", c","byes":0,"disqualified":{},"draws":0,"elo":{"high":null,"low":null,"rating":-5.2083687320741507e-14},"games":4,"losses":2,"name":"say \"hi\", c","points":2.0,"rank":2,"rank_may_be":{"best":1,"worst":3},"share":0.5,"version":null,"wins":2},
        {"agent_path":"http://127.0.0.1/crash","byes":0,"disqualified":{"CRASHED":4},"draws":0,"elo":{"high":51.428455031441445,"low":null,"rating":-270.74599838736845},"games":4,"losses":4,"name":"crash","points":0.0,"rank":3,"rank_may_be":{"best":1,"worst":3},"share":0.0,"version":null,"wins":0}]}"#]].assert_eq(&json(&record).to_string().replace("},{", "},\n{"));
}
