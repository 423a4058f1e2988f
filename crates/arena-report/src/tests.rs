//! Tables and files of tournaments with made-up results.

use arena_model::Dialect;
use arena_model::{MatchOutcome, MatchResult, Moves, Score, SeatResult, Seed, Verdict};
use arena_ratings::{EloModel, Sprt};
use arena_tournament::{AgentAddress, Entrant, Format, GameLine, Record, Shape, Stop, TournamentPlan};
use expect_test::{Expect, expect};

use crate::{Ratings, command, csv, html, json, line, markdown};

/// Returns a tournament whose first `games` games have been played. Scores follow from the names: an agent named
/// `crash` is disqualified in all its games, and games between the agents `even` and `equal` are drawn.
pub fn record(game: &str, format: Format, names: &[&str], seats: usize, games: usize) -> Record {
    let rounds = format.usual_rounds(names.len());
    let shape =
        Shape { format, agents: names.len(), rounds, seats, paired: true, stop: None, seed: Seed::from_number(5) };
    record_of(game, names, shape, games)
}

/// Returns a tournament of this shape, played as in [`record`].
fn record_of(game: &str, names: &[&str], shape: Shape, games: usize) -> Record {
    let entrant = |name: &&str| Entrant {
        name: (*name).to_owned(),
        agent_id: None,
        version: None,
        path: format!("http://127.0.0.1/{name}"),
        dialect: Dialect::default(),
        reach: AgentAddress::Url(format!("http://127.0.0.1/{name}")),
        files: Vec::new(),
        sha256: None,
    };
    let game = arena_games::game(game).unwrap();
    let mut record = Record::new(TournamentPlan::new(game, names.iter().map(entrant).collect(), &shape)).unwrap();
    for _ in 0..games {
        let next = record.schedule.pending().next().cloned();
        let Some(pairing) = next else { break };
        let agents: Vec<String> = pairing.agents.iter().map(|agent| names[*agent].to_owned()).collect();
        let score = |name: &String| match name.as_str() {
            "crash" => -10.0,
            "even" | "equal" => 2.0,
            name => 10.0 - name.len() as f64,
        };
        let scores: Vec<f64> = agents.iter().map(score).collect();
        let reason = agents.iter().any(|name| name == "crash").then_some(Verdict::Crashed);
        let seats = agents.into_iter().zip(&scores).map(|(agent, score)| SeatResult {
            rank: 1 + scores.iter().filter(|other| *other > score).count(),
            score: *score,
            challenge_score: None,
            verdict: reason.filter(|_| agent == "crash"),
            detail: (agent == "crash").then(|| "exited with code 1".to_owned()),
            faults: 0,
            refused: 0,
            waited_ms: 0.0,
            longest_step_ms: 0.0,
            agent,
        });
        let played = GameLine {
            number: pairing.number,
            round: pairing.round,
            result: MatchResult {
                seats: seats.collect(),
                outcome: MatchOutcome {
                    termination: if reason.is_some() { "TAINTED" } else { "GAME_ENDED" }.into(),
                    winner: "DRAW".to_owned(),
                    result: None,
                    tainted_reason: reason,
                },
                seed: pairing.seed.clone(),
                epochs: 9,
                moves: None,
                took_ms: 0.0,
            },
            generations: Vec::new(),
            worker: None,
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

            | rank | name | Elo | ± | rank range (95 %) | games | wins | losses | draws | points | score % | disqualified |
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

            | rank | name | Elo | ± | rank range (95 %) | rounds survived | games | wins | losses | draws | points | score % |
            |---|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|
            | 1 | good | 1541 | -1503 +∞ | 1-3 | 2 | 2 | 2 | 0 | 0 | 2 | 100.0 |
            | 2 | equal | 0 | 195 | 1-3 | 1 | 10 | 0 | 2 | 8 | 4 | 40.0 |
            | 3 | even | 0 | 197 | 1-3 | 0 | 8 | 0 | 0 | 8 | 4 | 50.0 |

            |  | good | equal | even |
            |---|--:|--:|--:|
            | good | · | 2/2 | · |
            | equal | 0/2 | · | 4/8 |
            | even | · | 4/8 | · |

            - good's Elo lead is 2 games wide: it would end if equal won the next 2 games between them
            - round 1: equal and even also drew every tie-break; equal advanced, because the draw at the start placed it first
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

            | rank | name | Elo | ± | rank range (95 %) | games | wins | losses | draws | byes | points | score % |
            |---|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|
            | 1 | a | 391 | -312 +∞ | 1-4 | 6 | 6 | 0 | 0 | 0 | 6 | 100.0 |
            | 2 | bb | 131 | ∞ | 1-5 | 4 | 2 | 2 | 0 | 1 | 4 | 66.7 |
            | 2 | dddd | -1 | ∞ | 1-5 | 4 | 2 | 2 | 0 | 1 | 4 | 66.7 |
            | 4 | ccc | -128 | ∞ | 1-5 | 6 | 2 | 4 | 0 | 0 | 2 | 33.3 |
            | 4 | eeeee | -393 | -∞ +354 | 2-5 | 4 | 0 | 4 | 0 | 1 | 2 | 33.3 |

            |  | a | bb | dddd | ccc | eeeee |
            |---|--:|--:|--:|--:|--:|
            | a | · | 2/2 | 2/2 | 2/2 | · |
            | bb | 0/2 | · | · | 2/2 | · |
            | dddd | 0/2 | · | · | · | 2/2 |
            | ccc | 0/2 | 0/2 | · | · | 2/2 |
            | eeeee | · | · | 0/2 | 0/2 | · |

            - a's Elo lead is 2 games wide: it would end if bb won the next 2 games between them
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

            | rank | name | Elo | ± | rank range (95 %) | games | wins | losses | draws | points | score % |
            |---|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|
            | 1 | a | 2849 | -1893 +∞ | 1-2 | 9 | 9 | 0 | 0 | 9 | 100.0 |
            | 2 | bb | 1512 | -1107 +∞ | 1-2 | 9 | 3 | 6 | 0 | 6 | 66.7 |
            | 3 | even | 0 | 199 | 3-4 | 9 | 0 | 9 | 0 | 1.5 | 16.7 |
            | 3 | equal | 0 | 199 | 3-4 | 9 | 0 | 9 | 0 | 1.5 | 16.7 |

            |  | a | bb | even | equal |
            |---|--:|--:|--:|--:|
            | a | · | 6/6 | 6/6 | 6/6 |
            | bb | 0/6 | · | 6/6 | 6/6 |
            | even | 0/6 | 0/6 | · | 3/6 |
            | equal | 0/6 | 0/6 | 3/6 | · |

            - a's Elo lead is 3 games wide: it would end if bb won the next 3 games between them
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
fn names_that_begin_like_formulas_are_escaped_in_csv() {
    let record = record("snake", Format::RoundRobin, &["=1+1", "-x", "@a,b", "a-b"], 2, 0);
    expect![[r#"
        rank,name,games,wins,losses,draws,points,score %
        1,'=1+1,0,0,0,0,0,0.0
        1,'-x,0,0,0,0,0,0.0
        1,"'@a,b",0,0,0,0,0,0.0
        1,a-b,0,0,0,0,0,0.0
    "#]]
    .assert_eq(&csv(&record));
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

        | rank | name | Elo | ± | rank range (95 %) | games | wins | losses | draws | points | score % | disqualified |
        |---|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|
        | 1 | a\|b | 271 | -322 +∞ | 1-3 | 4 | 4 | 0 | 0 | 4 | 100.0 | 0 |
        | 2 | say "hi", c | 0 | ∞ | 1-3 | 4 | 2 | 2 | 0 | 2 | 50.0 | 0 |
        | 3 | crash | -271 | -∞ +322 | 1-3 | 4 | 0 | 4 | 0 | 0 | 0.0 | 4 |

        |  | a\|b | say "hi", c | crash |
        |---|--:|--:|--:|
        | a\|b | · | 2/2 | 2/2 |
        | say "hi", c | 0/2 | · | 2/2 |
        | crash | 0/2 | 0/2 | · |

        - a\|b's Elo lead is 2 games wide: it would end if say "hi", c won the next 2 games between them
        - crash was disqualified in 4 of 4 games (4 × CRASHED); the first was game 1: exited with code 1
    "#]]
    .assert_eq(&markdown(&record));
    expect![[r#"
        {"complete":true,"cross_table":[{"against":"say \"hi\", c","games":2,"name":"a|b","points":2.0},
        {"against":"crash","games":2,"name":"a|b","points":2.0},
        {"against":"a|b","games":2,"name":"say \"hi\", c","points":0.0},
        {"against":"crash","games":2,"name":"say \"hi\", c","points":2.0},
        {"against":"a|b","games":2,"name":"crash","points":0.0},
        {"against":"say \"hi\", c","games":2,"name":"crash","points":0.0}],"format":"round-robin","game":"snake","games":6,"games_played":6,"games_repeated":0,"options":{},"paired":true,"remarks":["a|b's Elo lead is 2 games wide: it would end if say \"hi\", c won the next 2 games between them","crash was disqualified in 4 of 4 games (4 × CRASHED); the first was game 1: exited with code 1"],"rounds":1,"rules_version":2,"seats":2,"seed":"0000000000000000000000000000000000000000000000000000000000000005","standings":[{"agent_path":"http://127.0.0.1/a|b","byes":0,"disqualified":{},"draws":0,"elo":{"high":null,"low":-51.428455031441445,"rating":270.7459983873685},"games":4,"group":1,"losses":0,"name":"a|b","place":1,"points":4.0,"rank":1,"rank_may_be":{"best":1,"worst":3},"share":1.0,"version":null,"wins":4},
        {"agent_path":"http://127.0.0.1/say \"hi\", c","byes":0,"disqualified":{},"draws":0,"elo":{"high":null,"low":null,"rating":-5.2083687320741507e-14},"games":4,"group":1,"losses":2,"name":"say \"hi\", c","place":1,"points":2.0,"rank":2,"rank_may_be":{"best":1,"worst":3},"share":0.5,"version":null,"wins":2},
        {"agent_path":"http://127.0.0.1/crash","byes":0,"disqualified":{"CRASHED":4},"draws":0,"elo":{"high":51.428455031441445,"low":null,"rating":-270.74599838736845},"games":4,"group":1,"losses":4,"name":"crash","place":1,"points":0.0,"rank":3,"rank_may_be":{"best":1,"worst":3},"share":0.0,"version":null,"wins":0}]}"#]].assert_eq(&json(&record).to_string().replace("},{", "},\n{"));
}

/// Names that attack HTML, XML and terminals.
pub const HOSTILE: [&str; 4] = [
    "<script>alert(1)</script>",
    "\"><img src=x onerror=alert(1)> &amp; ]]>",
    "a\u{202e}b\u{1b}[2J\u{ffff}\n\u{0}",
    "crash",
];

#[test]
fn a_report_has_no_tags_but_its_own() {
    let page = html(&record("snake", Format::RoundRobin, &HOSTILE, 2, 99));
    let mut tags: Vec<&str> = page
        .split('<')
        .skip(1)
        .map(|rest| {
            rest.split(|char: char| !char.is_ascii_alphanumeric() && char != '/' && char != '!').next().unwrap()
        })
        .filter(|tag| !tag.starts_with('/'))
        .collect();
    tags.sort_unstable();
    tags.dedup();
    expect!["!DOCTYPE bdi body circle code dd desc details div dl dt figcaption figure footer h1 h2 head header html line main meta p polygon polyline pre rect section span style summary svg table tbody td text th thead title tr"].assert_eq(&tags.join(" "));
    let steers = |char: char| char.is_control() && char != '\n' || ('\u{202a}'..='\u{202e}').contains(&char);
    assert_eq!(page.find(steers), None);
    for text in ["&lt;script&gt;alert(1)&lt;/script&gt;", "a\\u{202e}b\\u{1b}[2J", "exited with code 1"] {
        assert!(page.contains(text), "{text}");
    }
    // The page loads nothing: the only address is the XML namespace of SVG.
    assert_eq!(page.replace("http://www.w3.org/2000/svg", "").replace("http://127.0.0.1/", "").find("//"), None);
}

#[test]
fn a_report_shows_progress() {
    for (games, state) in [(0, "0 of 4 games played"), (3, "3 of 4 games played"), (4, "4 of 4 games played")] {
        let page = html(&record("snake", Format::Gauntlet, &["a", "bb", "ccc"], 2, games));
        assert!(page.contains(state), "{state}");
        assert_eq!(page.contains(">complete<"), games == 4);
        assert_eq!(page.contains("<h2>Games</h2>"), games > 0);
    }
}

#[test]
fn the_command_has_all_options() {
    let mut record = record("chess", Format::Swiss, &["a b", "it's", "bot"], 2, 0);
    record.plan.options.insert("max_moves".to_owned(), 40.into());
    record.plan.limits.step_ms = 70;
    record.plan.agents[2].path = "python3 my bot.py --level 3".to_owned();
    record.plan.agents[2].reach = AgentAddress::Command {
        program: "/usr/bin/python3".into(),
        args: ["/bots/my bot.py", "--level", "3"].map(str::to_owned).to_vec(),
        folder: "/bots".into(),
    };
    expect![[r#"
        arena tournament run chess \
            --agent 'a b=http://127.0.0.1/a b' \
            --agent 'it'\''s=http://127.0.0.1/it'\''s' \
            --format swiss \
            --rounds 2 \
            --seats 2 \
            --seed 5 \
            --set max_moves=40 \
            --step-ms 70 \
            -- python3 '/bots/my bot.py' --level 3"#]]
    .assert_eq(&command(&record));
}

#[test]
fn the_command_has_the_stop_condition() {
    let mut record = record("snake", Format::RoundRobin, &["a", "b"], 2, 0);
    let sprt = Sprt::new(0.0, 5.0, 0.05, 0.1, EloModel::Normalized).unwrap();
    record.plan.stop = Some(Stop::Sprt(sprt));
    expect![[r#"
        arena tournament run snake \
            --agent a=http://127.0.0.1/a \
            --agent b=http://127.0.0.1/b \
            --rounds 1 \
            --seats 2 \
            --seed 5 \
            --sprt alpha=0.05,beta=0.1,elo0=0.0,elo1=5.0,model=normalized"#]]
    .assert_eq(&command(&record));
    (record.plan.format, record.plan.rounds, record.plan.stop) = (Format::Adaptive, 40, Some(Stop::Margin(30.0)));
    expect![[r#"
        arena tournament run snake \
            --agent a=http://127.0.0.1/a \
            --agent b=http://127.0.0.1/b \
            --format adaptive \
            --games 80 \
            --seats 2 \
            --seed 5 \
            --until-margin 30"#]]
    .assert_eq(&command(&record));
}

/// Returns an SPRT with at most `rounds` rounds that is interrupted after `games` games.
fn tested(names: &[&str], paired: bool, rounds: usize, games: usize) -> Record {
    let sprt = Sprt::new(0.0, 50.0, 0.05, 0.05, EloModel::Normalized).unwrap();
    let (format, stop, seed) = (Format::RoundRobin, Some(Stop::Sprt(sprt)), Seed::from_number(5));
    record_of("chess", names, Shape { format, agents: 2, rounds, seats: 2, paired, stop, seed }, games)
}

#[test]
fn a_test_before_its_first_game() {
    expect![[r#"
        chess: round-robin of 2 agents, SPRT elo0=0 elo1=50 alpha=0.05 beta=0.05 model=normalized, at most 300 rounds, paired games, seed 5

        0 of 600 games played.

        | rank | name | games | wins | losses | draws | points | score % |
        |---|---|--:|--:|--:|--:|--:|--:|
        | 1 | new | 0 | 0 | 0 | 0 | 0 | 0.0 |
        | 1 | older | 0 | 0 | 0 | 0 | 0 | 0.0 |

        ```
        LLR: 0.00 (-2.94, 2.94) [0.00, 50.00]
        ```

        |  | new | older |
        |---|--:|--:|
        | new | · | · |
        | older | · | · |

    "#]].assert_eq(&markdown(&tested(&["new", "older"], true, 300, 0)));
}

#[test]
fn a_test_that_is_decided() {
    let record = tested(&["new", "older"], true, 300, 600);
    expect![[r#"
        chess: round-robin of 2 agents, SPRT elo0=0 elo1=50 alpha=0.05 beta=0.05 model=normalized, at most 300 rounds, paired games, seed 5

        34 of 34 games played.

        | rank | name | Elo | ± | rank range (95 %) | games | wins | losses | draws | points | score % |
        |---|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|
        | 1 | new | 368 | -92 +∞ | 1 | 34 | 34 | 0 | 0 | 34 | 100.0 |
        | 2 | older | -368 | -∞ +92 | 2 | 34 | 0 | 34 | 0 | 0 | 0.0 |

        ```
        Elo: inf +/- -
        LOS: 100.00 %, DrawRatio: 0.00 %, PairsRatio: inf
        Ptnml(0-2): [0, 0, 0, 0, 17]
        LLR: 3.09 (-2.94, 2.94) [0.00, 50.00]
        ```

        |  | new | older |
        |---|--:|--:|
        | new | · | 34/34 |
        | older | 0/34 | · |

        - SPRT \[0.00, 50.00\]: H1 accepted after 34 games; new is more than 0 normalized Elo stronger than older
        - new's Elo lead is 34 games wide: it would end if older won the next 34 games between them
    "#]].assert_eq(&markdown(&record));
    expect![[r#"{"sprt":{"alpha":0.05,"beta":0.05,"counts":{"pentanomial":[0,0,0,0,17]},"difference":{"elo":null,"elo_high":null,"elo_low":null,"likelihood_of_superiority":1.0,"normalised":null,"normalised_error":null,"score":1.0},"elo0":0.0,"elo1":50.0,"games":34,"llr":3.0914752595531536,"lower":-2.9444389791664403,"model":"normalized","upper":2.9444389791664403,"verdict":"accept_h1"}}"#]].assert_eq(&json(&record)["stop"].to_string());
}

#[test]
fn a_test_of_single_games() {
    expect![[r#"
        chess: round-robin of 2 agents, SPRT elo0=0 elo1=50 alpha=0.05 beta=0.05 model=normalized, at most 300 rounds, single games, seed 5

        7 of 300 games played.

        | rank | name | Elo | ± | rank range (95 %) | games | wins | losses | draws | points | score % |
        |---|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|
        | 1 | even | 0 | 331 | 1-2 | 7 | 0 | 0 | 7 | 3.5 | 50.0 |
        | 1 | equal | 0 | 331 | 1-2 | 7 | 0 | 0 | 7 | 3.5 | 50.0 |

        ```
        Elo: 0.00 +/- 0.00
        LOS: 50.00 %, DrawRatio: 100.00 %
        Games: 7, Wins: 0, Losses: 0, Draws: 7
        LLR: -0.14 (-2.94, 2.94) [0.00, 50.00]
        ```

        |  | even | equal |
        |---|--:|--:|
        | even | · | 3.5/7 |
        | equal | 3.5/7 | · |

    "#]].assert_eq(&markdown(&tested(&["even", "equal"], false, 300, 7)));
}

#[test]
fn all_agents_that_share_first_place_are_named() {
    // A name of eight letters gets the same score as these two names.
    let record = record("snake", Format::RoundRobin, &["even", "equal", "balanced"], 2, 99);
    let lead = Ratings::of(&record).unwrap().lead(&record);
    assert_eq!(lead.as_deref(), Some("no leader in Elo: even, equal and balanced share first place"));
}

#[test]
fn a_test_that_is_never_decided() {
    expect![[r#"
        chess: round-robin of 2 agents, SPRT elo0=0 elo1=50 alpha=0.05 beta=0.05 model=normalized, at most 10 rounds, paired games, seed 5

        20 of 20 games played.

        | rank | name | Elo | ± | rank range (95 %) | games | wins | losses | draws | points | score % |
        |---|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|
        | 1 | even | 0 | 143 | 1-2 | 20 | 0 | 0 | 20 | 10 | 50.0 |
        | 1 | equal | 0 | 143 | 1-2 | 20 | 0 | 0 | 20 | 10 | 50.0 |

        ```
        Elo: 0.00 +/- 0.00
        LOS: 50.00 %, DrawRatio: 100.00 %, PairsRatio: -
        Ptnml(0-2): [0, 0, 10, 0, 0]
        LLR: -0.40 (-2.94, 2.94) [0.00, 50.00]
        ```

        |  | even | equal |
        |---|--:|--:|
        | even | · | 10/20 |
        | equal | 10/20 | · |

        - SPRT \[0.00, 50.00\]: undecided after 20 games, the maximum
        - no leader in Elo: even and equal share first place
    "#]].assert_eq(&markdown(&tested(&["even", "equal"], true, 10, 600)));
}

#[test]
fn an_adaptive_tournament_with_an_agent_that_crashes() {
    let names = ["even", "equal", "crash"];
    let (format, stop, seed) = (Format::Adaptive, Some(Stop::Margin(100.0)), Seed::from_number(5));
    let shape = Shape { format, agents: 3, rounds: 300, seats: 2, paired: true, stop, seed };
    let record = record_of("snake", &names, shape, 600);
    expect![[r#"
        snake: adaptive of 3 agents, until every 95 % interval is within ±100 Elo, at most 600 games, paired games, seed 5

        66 of 66 games played.

        | rank | name | Elo | ± | rank range (95 %) | games | wins | losses | draws | points | score % | disqualified |
        |---|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|
        | 1 | even | 0 | 98 | 1-2 | 48 | 18 | 0 | 30 | 33 | 68.8 | 0 |
        | 1 | equal | 0 | 98 | 1-2 | 48 | 18 | 0 | 30 | 33 | 68.8 | 0 |
        | 3 | crash | -2900 | -∞ +445 | 3 | 36 | 0 | 36 | 0 | 0 | 0.0 | 36 |

        |  | even | equal | crash |
        |---|--:|--:|--:|
        | even | · | 15/30 | 18/18 |
        | equal | 15/30 | · | 18/18 |
        | crash | 0/18 | 0/18 | · |

        - every rating's 95 % interval is within ±100 Elo after 66 games, except those with an open side: crash
        - no leader in Elo: even and equal share first place
        - crash was disqualified in 36 of 36 games (36 × CRASHED); the first was game 1: exited with code 1
    "#]]
    .assert_eq(&markdown(&record));
    expect![[r#"{"margin":100.0,"unsure":["crash"]}"#]].assert_eq(&json(&record)["stop"].to_string());
}

/// Returns the tournament with its games changed by `change`.
fn replayed(record: &Record, change: impl Fn(&mut GameLine)) -> Record {
    let mut again = Record::new(record.plan.clone()).unwrap();
    for game in record.games() {
        let mut game = game.clone();
        change(&mut game);
        again.add(game).unwrap();
    }
    again
}

#[test]
fn repeated_games_are_reported_and_narrow_no_interval() {
    let whole = record("snake", Format::RoundRobin, &["a", "bb", "even", "equal"], 2, 12);
    let names = ["a", "bb", "even", "equal"];
    let shape = Shape {
        format: Format::RoundRobin,
        agents: 4,
        rounds: 3,
        seats: 2,
        paired: true,
        stop: None,
        seed: Seed::from_number(5),
    };
    let thrice = record_of("snake", &names, shape, 36);
    let repeated = replayed(&thrice, |game| game.result.moves = Some(Moves { first: 0, sha256: "0".repeat(64) }));
    let report = json(&repeated);
    let intervals = |report: &serde_json::Value| -> Vec<serde_json::Value> {
        let rows = report["standings"].as_array().unwrap();
        rows.iter().map(|row| serde_json::json!([row["name"], row["elo"], row["rank_may_be"]])).collect()
    };
    assert_eq!(report["games_repeated"], 24);
    assert_eq!(report["standings"][0]["games"], 18);
    assert_eq!(intervals(&report), intervals(&json(&whole)));
    assert_ne!(intervals(&report), intervals(&json(&thrice)));
    let sentence = "24 of 36 games repeat an earlier one move by move (game 13 repeats game ";
    assert!(markdown(&repeated).contains(sentence) && html(&repeated).contains(sentence));
    assert!(report["remarks"].to_string().contains(sentence));
    let last = repeated.games().last().unwrap();
    assert!(line(&repeated, last).contains("}, repeats game "), "{}", line(&repeated, last));
    assert!(!markdown(&thrice).contains("repeat"));
}

#[test]
fn challenges_have_utility_and_security_with_intervals() {
    let plain = record("psi", Format::RoundRobin, &["a", "bb", "even"], 2, 6);
    assert!(!markdown(&plain).contains("utility"));
    let scored = replayed(&plain, |game| {
        let number = game.number;
        let score = |name: &str| match name {
            "a" => Some(Score { utility: 1.0, security: 1.0 }),
            "bb" => Some(Score { utility: 0.5, security: if number == 1 { -1.0 } else { 1.0 } }),
            _ => (number > 2).then_some(Score { utility: -1.0, security: 1.0 }),
        };
        game.result.seats.iter_mut().for_each(|seat| seat.challenge_score = score(&seat.agent));
    });
    let report = json(&scored);
    let row = |name: &str| report["standings"].as_array().unwrap().iter().find(|row| row["name"] == name).unwrap();
    // Each agent has two meetings, and each meeting is one observation.
    let (mean, [low, high]) = arena_model::mean_score(&[1.0, 1.0]).unwrap();
    assert_eq!(row("a")["utility"], serde_json::json!({"mean": mean, "low": low, "high": high}));
    assert!(low < mean && high == 1.0);
    assert_eq!(row("bb")["utility"]["mean"], 0.5);
    assert_eq!(row("even")["utility"]["mean"], -1.0);
    let csv = csv(&scored);
    let header: Vec<&str> = csv.lines().next().unwrap().split(',').collect();
    assert_eq!(
        header[header.len() - 6..],
        ["utility", "utility low", "utility high", "security", "security low", "security high"]
    );
    let of_a: Vec<&str> = csv.lines().find(|line| line.contains(",a,")).unwrap().split(',').collect();
    assert_eq!(of_a[of_a.len() - 6..][..1], ["1"]);
    for text in [markdown(&scored), html(&scored)] {
        assert!(text.contains("utility 95 %") && text.contains("security 95 %"), "{text}");
    }
}
