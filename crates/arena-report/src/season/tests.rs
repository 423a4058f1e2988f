//! Reports of made-up seasons.

use arena_model::Verdict;
use expect_test::{Expect, expect};

use super::*;

fn agent(name: &str, generation: u32, version: Option<&str>, is_present: bool) -> SeasonAgent {
    let membership = if is_present { Membership::Present } else { Membership::Gone };
    let (version, path) = (version.map(str::to_owned), format!("/bots/{name}"));
    SeasonAgent {
        name: name.to_owned(),
        generation,
        version,
        path,
        membership,
        disqualifications: Disqualifications::default(),
    }
}

/// Returns a season of these agents. Each entry of `beaten` is winner, loser and number of games.
fn season(agents: Vec<SeasonAgent>, beaten: &[(usize, usize, u64)]) -> Season {
    let mut results = Results::new(agents.len());
    for (one, two, times) in beaten {
        for number in 0..*times {
            results.push(&[(AgentIndex(*one), 1), (AgentIndex(*two), 2)], Some(number / 2)).unwrap();
        }
    }
    Season {
        game: "snake".to_owned(),
        options: Map::new(),
        seats: 2,
        paired: true,
        number: 2,
        is_closed: false,
        agents,
        results,
    }
}

#[track_caller]
fn check(season: &Season, expected: Expect) {
    expected.assert_eq(&markdown(season));
}

#[test]
fn versions_are_ranked_by_rating() {
    let mut agents = vec![
        agent("a", 1, Some("1.0"), false),
        agent("b|c", 1, None, true),
        agent("a", 2, Some("1.1"), true),
        agent("late", 1, None, true),
    ];
    agents[1].disqualifications = Disqualifications {
        verdicts: [(Verdict::Crashed, 2)].into(),
        first: Some((3, "exited with code 1".to_owned())),
    };
    let season = season(agents, &[(0, 1, 6), (1, 0, 2), (2, 0, 7), (0, 2, 3), (2, 1, 9), (1, 2, 1)]);
    check(
        &season,
        expect![[r#"
        snake: league, paired games, season 2

        28 games played, season open.

        | rank | name | version | Elo | ± | rank range (95 %) | games | wins | losses | draws | points | score % | disqualified | state |
        |---|---|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|
        | 1= | a | 1.1 | 157 | 234 | 1-3 | 20 | 16 | 4 | 0 | 16 | 80.0 | 0 |  |
        | 1= | a | 1.0 | 14 | 104 | 1-3 | 18 | 9 | 9 | 0 | 9 | 50.0 | 0 | gone |
        | 1= | b\|c | \#1 | -171 | 283 | 1-3 | 18 | 3 | 15 | 0 | 3 | 16.7 | 2 |  |
        |  | late | \#1 |  |  |  | 0 | 0 | 0 | 0 | 0 | 0.0 | 0 |  |

        |  | a 1.1 | a 1.0 | b\|c | late |
        |---|--:|--:|--:|--:|
        | a 1.1 | · | 7/10 | 9/10 | · |
        | a 1.0 | 3/10 | · | 6/8 | · |
        | b\|c | 1/10 | 2/8 | · | · |
        | late | · | · | · | · |

        - a 1.1's Elo lead is 6 games wide: it would end if a 1.0 won the next 6 games between them
        - b\|c was disqualified in 2 of 18 games (2 × CRASHED); the first was game 3: exited with code 1
    "#]],
    );
    expect![[r#"
        rank,name,version,Elo,±,rank may be,games,wins,losses,draws,points,score %,disqualified,state
        1=,a,1.1,157,234,1-3,20,16,4,0,16,80.0,0,
        1=,a,1.0,14,104,1-3,18,9,9,0,9,50.0,0,gone
        1=,b|c,#1,-171,283,1-3,18,3,15,0,3,16.7,2,
        ,late,#1,,,,0,0,0,0,0,0.0,0,
    "#]]
    .assert_eq(&csv(&season));
    expect![[r#"
        {"closed":false,"cross_table":[{"against":"b|c","games":8,"label":"a 1.0","points":6.0},
        {"against":"a 1.1","games":10,"label":"a 1.0","points":3.0},
        {"against":"a 1.0","games":8,"label":"b|c","points":2.0},
        {"against":"a 1.1","games":10,"label":"b|c","points":1.0},
        {"against":"a 1.0","games":10,"label":"a 1.1","points":7.0},
        {"against":"b|c","games":10,"label":"a 1.1","points":9.0}],"format":"league","game":"snake","games_played":28,"options":{},"paired":true,"remarks":["a 1.1's Elo lead is 6 games wide: it would end if a 1.0 won the next 6 games between them","b|c was disqualified in 2 of 18 games (2 × CRASHED); the first was game 3: exited with code 1"],"season":2,"seats":2,"standings":[{"agent_path":"/bots/a","disqualified":{},"draws":0,"elo":{"high":391.72199522777436,"low":-77.2429766588661,"rating":157.23950928445413},"games":20,"generation":2,"group":1,"label":"a 1.1","losses":4,"name":"a","points":16.0,"present":true,"rank":1,"rank_may_be":{"best":1,"worst":3},"share":0.8,"version":"1.1","wins":16},
        {"agent_path":"/bots/a","disqualified":{},"draws":0,"elo":{"high":117.80674659930584,"low":-90.68915048277434,"rating":13.558798058265754},"games":18,"generation":1,"group":1,"label":"a 1.0","losses":9,"name":"a","points":9.0,"present":false,"rank":1,"rank_may_be":{"best":1,"worst":3},"share":0.5,"version":"1.0","wins":9},
        {"agent_path":"/bots/b|c","disqualified":{"CRASHED":2},"draws":0,"elo":{"high":112.65327339917027,"low":-454.24988808461,"rating":-170.79830734271988},"games":18,"generation":1,"group":1,"label":"b|c","losses":15,"name":"b|c","points":3.0,"present":true,"rank":1,"rank_may_be":{"best":1,"worst":3},"share":0.16666666666666666,"version":null,"wins":3},
        {"agent_path":"/bots/late","disqualified":{},"draws":0,"games":0,"generation":1,"label":"late","losses":0,"name":"late","points":0.0,"present":true,"rank":null,"share":0.0,"version":null,"wins":0}]}"#]].assert_eq(&json(&season).to_string().replace("},{", "},\n{"));
}

#[test]
fn no_ratings_before_the_first_game() {
    let season = season(vec![agent("a", 1, None, true), agent("b", 1, None, true)], &[]);
    check(
        &season,
        expect![[r#"
        snake: league, paired games, season 2

        0 games played, season open.

        | rank | name | games | wins | losses | draws | points | score % |
        |---|---|--:|--:|--:|--:|--:|--:|
        |  | a | 0 | 0 | 0 | 0 | 0 | 0.0 |
        |  | b | 0 | 0 | 0 | 0 | 0 | 0.0 |

        |  | a | b |
        |---|--:|--:|
        | a | · | · |
        | b | · | · |

    "#]],
    );
}

#[test]
fn labels_of_versions_are_unique() {
    let agents = [
        agent("a", 1, Some("1.0"), false),
        agent("a", 2, Some("1.0"), false),
        agent("a", 3, None, false),
        agent("a", 4, Some("2.0"), true),
        agent("b", 1, Some("1.0"), true),
    ];
    assert_eq!(labels(&agents), ["a 1.0 #1", "a 1.0 #2", "a #3", "a 2.0", "b"]);
}
