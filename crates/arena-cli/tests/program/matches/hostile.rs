//! Agents that misbehave, and agents that are unusual but allowed.

use std::fs;
use std::net::TcpListener;
use std::time::Duration;

use serde_json::json;

use super::MatchFixture;
use super::table::{Row, play_all};

/// A game that ends only with its last epoch. The time limits are long enough for honest agents, also on a busy
/// machine.
const FOOD: &str = "food_catcher --set n_epochs=20 --step-ms 500 --bank-ms 20000";

/// The same game with short time limits.
const SHORT: &str = "food_catcher --set n_epochs=20 --step-ms 300 --bank-ms 4000";

/// A game that is long enough for a flood of output to reach every limit.
const LONG: &str = "food_catcher --set n_epochs=100000 --step-ms 500 --bank-ms 5000";

/// The same game without CPU affinity, so that agents write while the runner reads.
const APART: &str = "food_catcher --set n_epochs=100000 --step-ms 500 --bank-ms 5000 --affinity any";

/// A game of snake on a board on which the snakes survive all epochs.
const SNAKE: &str = "snake --set n_epochs=20 --set grid_width=40 --set grid_height=40 --step-ms 500 --bank-ms 20000";

/// A game with large states.
const LARGE: &str = "snake --set grid_width=64 --set grid_height=64 --step-ms 300 --bank-ms 4000";

const CHESS: &str = "chess --step-ms 500 --bank-ms 20000";

const fn row(
    behavior: &'static str,
    game: &'static str,
    verdict: &'static [&'static str],
    detail: &'static str,
) -> Row {
    Row { behavior, game, verdicts: verdict, detail, within: Duration::from_secs(60) }
}

/// Agents that break the protocol, end early, or use too many resources.
const HOSTILE: &[Row] = &[
    row("silent", FOOD, &["PING_FAIL"], "no answer to the ping within 5000 ms"),
    row("exits_at_once", FOOD, &["STARTUP_FAIL"], "exited with code 0"),
    row("talks_on_stdout", FOOD, &["PING_FAIL"], "Hello, I am an agent."),
    row("no_pong", FOOD, &["PING_FAIL"], "without `pong`"),
    row("pong_of_null", FOOD, &["PING_FAIL"], "without `pong`"),
    row("exits_after_the_ping", FOOD, &["STARTUP_FAIL"], "exited with code 3"),
    row("mute", SHORT, &["TIMEOUT"], "no answer within 4300 ms"),
    row("late", SHORT, &["TIMEOUT"], "no answer within"),
    row("speaks_as_its_opponent", SNAKE, &["AGENT_ID_SPOOFING"], "spoke as"),
    row("makes_up_an_id", FOOD, &["TOO_MANY_ERRORS"], "isn't a player"),
    row("spells_its_id_in_capitals", FOOD, &["TOO_MANY_ERRORS"], "isn't a player"),
    row("has_an_empty_id", FOOD, &["TOO_MANY_ERRORS"], "isn't a player"),
    row("leaves_out_its_id", FOOD, &["MISSING_AGENT_ID"], "11 replies"),
    row("has_a_number_for_an_id", FOOD, &["TOO_MANY_ERRORS"], "isn't a text"),
    row("rubbish", FOOD, &["TOO_MANY_ERRORS"], "isn't JSON"),
    row("sends_a_list", SNAKE, &["TOO_MANY_ERRORS"], "isn't a JSON object"),
    row("invalid_utf8", FOOD, &["TOO_MANY_ERRORS"], "isn't UTF-8"),
    row("not_a_number", FOOD, &["TOO_MANY_ERRORS"], "isn't JSON"),
    row("half_a_line", SHORT, &["TIMEOUT"], "no answer within"),
    row("endless_line", FOOD, &["OUTPUT_LIMIT"], "beyond the limit"),
    row("endless_nesting", FOOD, &["OUTPUT_LIMIT"], "beyond the limit"),
    row("fifty_megabytes", CHESS, &["OUTPUT_LIMIT"], "beyond the limit"),
    row("floods_with_answers", LONG, &["OUTPUT_LIMIT"], "beyond the limit"),
    // Blank lines are no answers, so either limit may be reached first.
    row("floods_with_blank_lines", LONG, &["OUTPUT_LIMIT", "TIMEOUT"], ""),
    row("floods_with_answers", APART, &["OUTPUT_LIMIT"], "beyond the limit"),
    row("floods_stderr", "food_catcher --step-ms 2000 --bank-ms 20000", &["OUTPUT_LIMIT"], "beyond the limit"),
    row("never_reads", LARGE, &["TIMEOUT"], "no answer within"),
    row("closes_stdin", LARGE, &["TIMEOUT"], "no answer within"),
    row("closes_stdout", FOOD, &["CRASHED"], "closed its output"),
    row("exits_with_3", FOOD, &["CRASHED"], "exited with code 3"),
    row("segfaults", FOOD, &["CRASHED"], "signal 11"),
    row("stops_itself", SHORT, &["TIMEOUT"], "no answer within"),
    row("leaves_a_family_behind", FOOD, &["CRASHED"], "exited with code 3"),
    row("eats_memory", "food_catcher --memory 100 --step-ms 5000", &["MEMORY_LIMIT"], "memory"),
    row("eats_memory_in_many_processes", "food_catcher --memory 200 --step-ms 5000", &["MEMORY_LIMIT"], "memory"),
    row("moves_a_king_by_five", CHESS, &["ILLEGAL_MOVE"], "e1e6"),
    row("moves_by_a_number", CHESS, &["ILLEGAL_MOVE"], ""),
    row("moves_by_nonsense", CHESS, &["ILLEGAL_MOVE"], ""),
    row("does_not_move", CHESS, &["ILLEGAL_MOVE"], ""),
    row("acts_wildly", CHESS, &["ILLEGAL_MOVE"], ""),
];

/// Agents that start many processes. They are tested only in sandboxes that limit the number of processes.
const BOMBS: &[Row] = &[
    row("forks_without_end", SHORT, &["TIMEOUT", "CRASHED", "MEMORY_LIMIT"], ""),
    row("burns_the_processor", FOOD, &[], ""),
];

/// Agents with unusual behavior that has no penalty.
const ODD: &[Row] = &[
    row("honest", CHESS, &[], ""),
    row("ends_lines_as_on_windows", SNAKE, &[], ""),
    row("begins_with_a_byte_order_mark", SNAKE, &[], ""),
    row("answers_in_two_pieces", SNAKE, &[], ""),
    row("adds_keys", FOOD, &[], ""),
    row("adds_a_megabyte", FOOD, &[], ""),
    row("chatters", FOOD, &[], ""),
    row("thinks_long", "food_catcher --set n_epochs=20 --step-ms 100 --bank-ms 20000", &[], ""),
    row("keeps_its_name_to_itself", SNAKE, &[], ""),
    row("keeps_its_name_to_itself_and_passes", FOOD, &[], ""),
    row("says_its_name_late", SNAKE, &[], ""),
    row("answers_by_a_move_alone", SNAKE, &[], ""),
    row("answers_by_a_move_alone", CHESS, &[], ""),
    row("answers_twice", SNAKE, &[], ""),
    row("counts_epochs_in_its_own_way", CHESS, &[], ""),
    row("spells_its_id_with_escapes", SNAKE, &[], ""),
    row("sends_blank_lines", SNAKE, &[], ""),
    row("has_a_name_that_steers_terminals", FOOD, &[], ""),
    row("acts_wildly", SNAKE, &[], ""),
    row("acts_wildly", FOOD, &[], ""),
    row("acts_wildly", "cherry_picker --set n_epochs=20 --step-ms 500 --bank-ms 20000", &[], ""),
    row("has_no_list_of_actions", FOOD, &[], ""),
    row("has_no_list_of_actions", SNAKE, &[], ""),
    row("floods_stderr_and_plays", FOOD, &[], ""),
    row("has_a_family", FOOD, &[], ""),
    row("ignores_signals", FOOD, &[], ""),
    row("ignores_the_end", FOOD, &[], ""),
    row("fills_the_disk", FOOD, &[], ""),
    row("hides_files", FOOD, &[], ""),
];

/// Behaviors for tests with weaker sandboxes: those with consequences for processes, memory and files. Lines are judged
/// by the same code in all modes, and the opponent of each row is honest.
const BEHAVIORS: &str = "mute exits_with_3 segfaults stops_itself leaves_a_family_behind eats_memory eats_memory_in_many_processes \
    has_a_family ignores_the_end fills_the_disk hides_files";

/// Returns the rows of [`BEHAVIORS`].
fn some() -> Vec<&'static Row> {
    let rows: Vec<&Row> =
        HOSTILE.iter().chain(ODD).filter(|row| BEHAVIORS.split(' ').any(|name| name == row.behavior)).collect();
    assert_eq!(rows.len(), BEHAVIORS.split(' ').count());
    rows
}

#[test]
fn hostile_agents_are_disqualified_for_the_right_reason_and_leave_nothing() {
    play_all(HOSTILE.iter(), "on");
}

#[test]
fn odd_agents_play_to_the_end() {
    play_all(ODD.iter(), "on");
}

#[test]
fn results_are_the_same_without_namespaces() {
    play_all(some(), "no-namespaces");
}

#[test]
fn agents_leave_nothing_without_a_sandbox() {
    play_all(some(), "off");
}

#[test]
fn an_agent_that_takes_all_processes_and_cpu_hurts_only_itself() {
    for sandbox in ["on", "no-namespaces"] {
        // The matches run in sequence, because without namespaces all agents of a user share one limit on processes.
        BOMBS.iter().for_each(|row| play_all([row], sandbox));
    }
}

#[test]
fn agents_access_only_their_own_resources() {
    let got_at = |sandbox: &str| {
        let fixture = MatchFixture::new();
        let (snoop, honest) = (fixture.agent("snoops"), fixture.agent("honest"));
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        fs::write(fixture.path().join("secret"), "of the user").unwrap();
        let targets = json!({"secret": fixture.file("secret"), "opponent": honest, "port": port});
        fs::write(fixture.path().join("snoops/targets.json"), targets.to_string()).unwrap();
        let options = "match run food_catcher --json --set n_epochs=3 --bank-ms 20000 --sandbox";
        let options: Vec<&str> = options.split(' ').chain([sandbox]).collect();
        // The folder exists before the match, because new files beside an agent aren't visible to the agent.
        fs::create_dir(fixture.path().join("snoops/late")).unwrap();
        let running = fixture.start(&[&options[..], &["--agent", &snoop, "--agent", &honest]].concat());
        fs::write(fixture.path().join("snoops/late/runner.pid"), format!("{}\n", running.pid())).unwrap();
        let result = running.finish().result().unwrap();
        assert_eq!(result["has_tainted_agent"], false, "{sandbox}: {result}");
        let snoop = result["scores"].as_array().unwrap().iter().find(|score| score["seat"] == 0).unwrap();
        snoop["name"].as_str().unwrap().to_owned()
    };
    assert_eq!(got_at("on"), "got:");
    assert_eq!(got_at("no-namespaces"), "got:");
    // Without the sandbox, the same agent succeeds.
    assert_eq!(got_at("off"), "got: secret opponent network signal environ priority affinity");
}

#[test]
fn agents_that_share_a_folder_do_not_see_each_other() {
    let got_at = |sandbox: &str, is_same: bool| {
        let fixture = MatchFixture::new();
        let snoop = fixture.script("both", "snoops.py", super::KIT);
        let other = fixture.script("both", "other.py", super::KIT);
        let opponent = if is_same { snoop.clone() } else { other.clone() };
        fs::create_dir(fixture.path().join("both/late")).unwrap();
        fs::write(fixture.path().join("both/late/runner.pid"), "1\n").unwrap();
        fs::write(fixture.path().join("both/beside"), "").unwrap();
        let targets = json!({"secret": fixture.file("both/beside"), "opponent": other, "port": 1});
        fs::write(fixture.path().join("both/targets.json"), targets.to_string()).unwrap();
        let game = ["food_catcher", "--set", "n_epochs=3", "--bank-ms", "20000", "--sandbox", sandbox];
        let result = fixture.play(&[&game[..], &["--agent", &snoop, "--agent", &opponent]].concat()).result().unwrap();
        assert_eq!(result["has_tainted_agent"], false, "{sandbox}: {result}");
        let snoop = result["scores"].as_array().unwrap().iter().find(|score| score["seat"] == 0).unwrap();
        let name = snoop["name"].as_str().unwrap().to_owned();
        (name.contains("secret"), name.contains("opponent"))
    };
    for sandbox in ["on", "no-namespaces"] {
        assert_eq!(got_at(sandbox, false), (true, false), "{sandbox}");
        // If the agent plays against itself, the other agent's file belongs to no opponent and stays visible.
        assert_eq!(got_at(sandbox, true), (true, true), "{sandbox}");
    }
}

#[test]
fn a_match_continues_without_disqualified_agents() {
    let fixture = MatchFixture::new();
    let agents = ["honest", "speaks_as_its_opponent", "ends_lines_as_on_windows", "exits_with_3", "sends_blank_lines"];
    let paths = agents.map(|behavior| fixture.agent(behavior));
    let mut args: Vec<&str> = SNAKE.split(' ').collect();
    args.extend(paths.iter().flat_map(|path| ["--agent", path]));
    let result = fixture.play(&args).result().unwrap();
    fixture.check_nothing_remains();
    let output: Vec<(u64, Option<&str>)> = (0..5_u64)
        .map(|number| result["scores"].as_array().unwrap().iter().find(|score| score["seat"] == number).unwrap())
        .map(|score| (score["rank"].as_u64().unwrap(), score["tainted_reason"].as_str()))
        .collect();
    assert_eq!((output[1], output[3]), ((4, Some("AGENT_ID_SPOOFING")), (4, Some("CRASHED"))), "{result}");
    for number in [0, 2, 4] {
        assert!(output[number].0 <= 3 && output[number].1.is_none(), "{result}");
    }
    // The match ends with its last epoch, although agents were eliminated.
    assert_eq!((&result["outcome"]["termination"], &result["epochs"]), (&json!("GAME_ENDED"), &json!(20)), "{result}");
}

#[test]
fn a_match_without_remaining_agents_is_a_draw() {
    let fixture = MatchFixture::new();
    let (one, other) = (fixture.agent("exits_with_3"), fixture.agent("segfaults"));
    let mut args: Vec<&str> = FOOD.split(' ').collect();
    args.extend(["--agent", &one, "--agent", &other]);
    let result = fixture.play(&args).result().unwrap();
    assert_eq!(result["outcome"]["winner"], "DRAW", "{result}");
    assert!(result["scores"].as_array().unwrap().iter().all(|score| score["tainted_reason"] == "CRASHED"), "{result}");
}

#[test]
fn disqualified_agents_are_notified_before_their_end() {
    for (behavior, verdict, reason) in [
        ("cheats_and_says_good_bye", "AGENT_ID_SPOOFING", "cheating_detected"),
        ("errs_and_says_good_bye", "TOO_MANY_ERRORS", "end_of_game"),
    ] {
        let fixture = MatchFixture::new();
        let (agent, honest) = (fixture.agent(behavior), fixture.agent("honest"));
        let replay = fixture.file("game.jsonl");
        let mut args: Vec<&str> = FOOD.split(' ').collect();
        args.extend(["--replay", &replay, "--agent", &agent, "--agent", &honest]);
        let finished = fixture.play(&args);
        assert_eq!(finished.result().unwrap()["outcome"]["tainted_reason"], verdict);
        let log = fs::read_to_string(fixture.file("game.seat0.log")).unwrap();
        assert!(log.ends_with(&format!("told to stop: {reason}\n")), "{log}");
        fixture.check_nothing_remains();
    }
}

#[test]
fn faults_and_refused_actions_are_summarized() {
    let fixture = MatchFixture::new();
    let (north, rubbish) = (fixture.agent("moves_north"), fixture.agent("rubbish"));
    let game = ["match", "run", "snake", "--set", "n_epochs=5", "--set", "grid_width=40", "--seed", "5", "--no-live"];
    let lines = [
        format!(
            "moves_north: 5 of 5 answers with refused actions, first: invalid value: string \"NORTH\", expected UP, RIGHT, \
             DOWN or LEFT; try `arena agent check {north}`"
        ),
        "rubbish: 5 of 5 answers unusable, first: `certainly not JSON`: the line isn't JSON".to_owned(),
    ];
    for games in ["1", "2"] {
        let agents = ["--agent", &north, "--agent", &rubbish, "--games", games];
        let output = fixture.start(&[&game[..], &agents].concat()).finish().run.stdout;
        for line in &lines {
            let line = if games == "2" { line.replace("5 of 5", "10 of 10") } else { line.clone() };
            assert!(output.contains(&line), "{line}\n{output}");
        }
    }
    let replay = fixture.file("game.jsonl");
    let agents = ["--agent", &north, "--agent", &rubbish, "--replay", &replay, "--json"];
    let result = fixture.start(&[&game[..], &agents].concat()).finish().result().unwrap();
    let seat = |number: u64| result["scores"].as_array().unwrap().iter().find(|seat| seat["seat"] == number).unwrap();
    assert_eq!(
        (&seat(0)["answers"], &seat(0)["refused_answers"], &seat(0)["faults"]),
        (&json!(5), &json!(5), &json!(0))
    );
    assert!(seat(0)["first_error"].as_str().unwrap().contains("NORTH"), "{result}");
    assert_eq!(
        (&seat(1)["answers"], &seat(1)["refused_answers"], &seat(1)["faults"]),
        (&json!(5), &json!(0), &json!(5))
    );
    let log = fs::read_to_string(fixture.file("game.seat0.log")).unwrap();
    assert!(log.starts_with("arena: 5 of 5 answers have refused actions: invalid value"), "{log}");
    let out = fixture.file("tournament");
    // With most seeds, no snake dies in the five epochs.
    let mut args = vec!["tournament", "run", "snake", "--set", "n_epochs=5", "--set", "grid_width=40", "--out", &out];
    args.extend(["--agent", &north, "--agent", &rubbish, "--seed", "5"]);
    let finished = fixture.start(&args).finish();
    assert!(finished.run.stdout.contains("unusable answers"), "{finished:?}");
    let csv = fixture.start(&["tournament", "standings", &out, "--csv"]).finish().run.stdout;
    let cells: Vec<&str> = csv.lines().map(|line| line.rsplit(',').next().unwrap()).collect();
    assert_eq!(cells, ["unusable answers", "10", "10"], "{csv}");
}

#[test]
fn names_and_stderr_of_agents_cannot_control_a_terminal() {
    let fixture = MatchFixture::new();
    let (named, chatty) = (fixture.agent("has_a_name_that_steers_terminals"), fixture.agent("chatters_and_exits"));
    let agents = ["--agent", &named, "--agent", &chatty];
    let replay = fixture.file("game.jsonl");
    let finished =
        fixture.start(&[&["match", "run", "food_catcher", "--replay", &replay], &agents[..]].concat()).finish();
    let output = &finished.run.stdout;
    assert_eq!(finished.run.code, 0, "{finished:?}");
    assert!(output.contains("thinking about it"), "{output}");
    let steers = |char: char| (char.is_control() && char != '\n') || ('\u{202a}'..='\u{202e}').contains(&char);
    assert_eq!(output.find(steers), None, "{output:?}");
}
