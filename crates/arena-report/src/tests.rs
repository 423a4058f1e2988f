//! Tables and files of tournaments with made-up results.

use arena_model::{MatchOutcome, MatchResult, Moves, Score, SeatResult, Seed, Verdict};
use arena_ratings::{EloModel, Sprt};
use arena_tournament::{AgentAddress, Entrant, Format, GameLine, Record, Shape, Stop, TournamentPlan};
use expect_test::{ExpectFile, expect, expect_file};

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
    let entrant = |name: &&str| {
        let url = format!("http://127.0.0.1/{name}");
        Entrant::new(name, &url, AgentAddress::Url(url.clone()))
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
            verdict: reason.filter(|_| agent == "crash"),
            detail: (agent == "crash").then(|| "exited with code 1".to_owned()),
            agent,
            ..SeatResult::default()
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
fn check(record: &Record, expected: ExpectFile) {
    let games: String = record.games().map(|game| line(record, game) + "\n").collect();
    expected.assert_eq(&format!("{games}{}", markdown(record)));
}

#[test]
fn a_round_robin_with_an_agent_that_crashes() {
    check(
        &record("snake", Format::RoundRobin, &["best", "crash", "even", "equal"], 2, 9),
        expect_file!["tests/a_round_robin_with_an_agent_that_crashes.txt"],
    );
}

#[test]
fn a_knockout_that_was_decided_by_lot() {
    check(
        &record("chess", Format::Knockout, &["even", "good", "equal"], 2, 99),
        expect_file!["tests/a_knockout_that_was_decided_by_lot.txt"],
    );
}

#[test]
fn a_swiss_with_byes() {
    check(
        &record("snake", Format::Swiss, &["a", "bb", "ccc", "dddd", "eeeee"], 2, 99),
        expect_file!["tests/a_swiss_with_byes.txt"],
    );
}

#[test]
fn games_of_three() {
    check(
        &record("snake", Format::RoundRobin, &["a", "bb", "even", "equal"], 3, 99),
        expect_file!["tests/games_of_three.txt"],
    );
}

#[test]
fn nothing_played_yet() {
    check(&record("snake", Format::Gauntlet, &["a", "bb", "ccc"], 2, 0), expect_file!["tests/nothing_played_yet.txt"]);
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
    expect_file!["tests/files_for_other_programs.txt"].assert_eq(&markdown(&record));
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
    expect_file!["tests/the_command_has_all_options.txt"].assert_eq(&command(&record));
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
    expect_file!["tests/a_test_before_its_first_game.txt"].assert_eq(&markdown(&tested(
        &["new", "older"],
        true,
        300,
        0,
    )));
}

#[test]
fn a_test_that_is_decided() {
    let record = tested(&["new", "older"], true, 300, 600);
    expect_file!["tests/a_test_that_is_decided.txt"].assert_eq(&markdown(&record));
    expect![[r#"{"sprt":{"alpha":0.05,"beta":0.05,"counts":{"pentanomial":[0,0,0,0,17]},"difference":{"elo":null,"elo_high":null,"elo_low":null,"likelihood_of_superiority":1.0,"normalised":null,"normalised_error":null,"score":1.0},"elo0":0.0,"elo1":50.0,"games":34,"llr":3.0914752595531536,"lower":-2.9444389791664403,"model":"normalized","upper":2.9444389791664403,"verdict":"accept_h1"}}"#]].assert_eq(&json(&record)["stop"].to_string());
}

#[test]
fn a_test_of_single_games() {
    expect_file!["tests/a_test_of_single_games.txt"].assert_eq(&markdown(&tested(&["even", "equal"], false, 300, 7)));
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
    expect_file!["tests/a_test_that_is_never_decided.txt"].assert_eq(&markdown(&tested(
        &["even", "equal"],
        true,
        10,
        600,
    )));
}

#[test]
fn an_adaptive_tournament_with_an_agent_that_crashes() {
    let names = ["even", "equal", "crash"];
    let (format, stop, seed) = (Format::Adaptive, Some(Stop::Margin(100.0)), Seed::from_number(5));
    let shape = Shape { format, agents: 3, rounds: 300, seats: 2, paired: true, stop, seed };
    let record = record_of("snake", &names, shape, 600);
    expect_file!["tests/an_adaptive_tournament_with_an_agent_that_crashes.txt"].assert_eq(&markdown(&record));
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
