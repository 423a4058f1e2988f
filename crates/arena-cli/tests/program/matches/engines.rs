//! Chess engines as agents: engines that misbehave, options, clocks, and facts about moves in replays.

use std::fs;
use std::thread;

use serde_json::{Value, json};

use super::{Finished, MatchFixture};

const ENGINES: &str = include_str!("../../hostile/uci.py");

/// The limit on the runner's resident memory in bytes, which is about 50 MiB with ordinary agents in a test build.
const MEMORY_BYTES: u64 = 96 << 20;

/// An engine, and the verdict with a part of the reason; `None` if it plays to the end.
type EngineRow = (&'static str, Option<(&'static str, &'static str)>);

/// The time limit of a move for an engine that exceeds it, in milliseconds. Others must not exceed it on a busy machine.
const SHORT_MS: &str = "3000";

/// The time limit of a move for all other engines.
const LONG_MS: &str = "60000";

const ROWS: [EngineRow; 18] = [
    ("plays", None),
    ("speaks_first", None),
    ("speaks_between_moves", None),
    ("ignores_quit", None),
    ("never_uciok", Some(("PING_FAIL", "within 5000 ms: the engine hasn't sent `uciok`"))),
    ("never_readyok", Some(("PING_FAIL", "within 5000 ms: the engine hasn't sent `readyok`"))),
    ("floods_options", Some(("OUTPUT_LIMIT", "beyond the limit"))),
    ("exits_at_uci", Some(("STARTUP_FAIL", "exited with code 4"))),
    ("exits_at_move_40", Some(("CRASHED", "exited with code 5"))),
    ("floods_info", Some(("OUTPUT_LIMIT", "beyond the limit"))),
    ("endless_info", Some(("OUTPUT_LIMIT", "beyond the limit"))),
    ("never_answers", Some(("TIMEOUT", "no answer within 3000 ms"))),
    ("blocks", Some(("TIMEOUT", "no answer within 3000 ms"))),
    ("moves_illegally", Some(("ILLEGAL_MOVE", "\"e1e5\" is no legal move"))),
    ("finds_no_move", Some(("ILLEGAL_MOVE", "\"(none)\" is no legal move"))),
    ("plays_a_null_move", Some(("ILLEGAL_MOVE", "\"0000\" is no legal move"))),
    ("answers_without_a_move", Some(("ILLEGAL_MOVE", "\"\" is no legal move"))),
    ("plays_on_clocks", None),
];

/// Creates an engine with this behavior in its own folder, and returns the text of its agent.
pub fn engine(fixture: &MatchFixture, behavior: &str) -> String {
    format!("uci:{}", fixture.script(behavior, &format!("{behavior}.py"), ENGINES))
}

/// Plays a game with the engine on the first seat. `limits` are further arguments.
fn play(fixture: &MatchFixture, engine: &str, limits: &[&str]) -> Finished {
    let other = self::engine(fixture, "plays");
    let replay = fixture.file("game.jsonl");
    let game = ["chess", "--set", "n_epochs=100", "--seed", "7", "--replay", &replay];
    fixture.play(&[&game[..], limits, &["--agent", engine, "--agent", &other]].concat())
}

fn seat(result: &Value, number: u64) -> Value {
    let scores = result["scores"].as_array().unwrap();
    scores.iter().find(|score| score["seat"] == number).unwrap().clone()
}

/// Plays a game with the engine of a row, and checks the verdict.
fn judge((behavior, expected): EngineRow) {
    let fixture = MatchFixture::new();
    let engine = engine(&fixture, behavior);
    let step_ms = if expected.is_some_and(|(verdict, _)| verdict == "TIMEOUT") { SHORT_MS } else { LONG_MS };
    let finished = play(&fixture, &engine, &["--step-ms", step_ms, "--bank-ms", "0"]);
    let result = finished.result().unwrap();
    fixture.check_nothing_remains();
    let (own, other) = (seat(&result, 0), seat(&result, 1));
    assert_eq!((&other["tainted"], &other["faults"]), (&json!(false), &json!(0)), "{behavior}: {result}");
    match expected {
        None => {
            assert_eq!((&own["tainted"], &result["epochs"]), (&json!(false), &json!(100)), "{behavior}: {result}");
            assert_eq!(own["name"], format!("Stand-in {behavior}"));
        }
        Some((verdict, detail)) => {
            assert_eq!(own["tainted_reason"], verdict, "{behavior}: {result}");
            let given = own["tainted_detail"].as_str().unwrap();
            assert!(given.contains(detail), "{behavior}: {given}");
            assert_eq!((&own["rank"], &other["rank"]), (&json!(2), &json!(1)), "{behavior}: {result}");
        }
    }
    assert!(finished.peak_bytes < MEMORY_BYTES, "{behavior}: {} KiB", finished.peak_bytes >> 10);
}

#[test]
fn engines_are_judged_like_other_agents_and_leave_nothing() {
    // The games that wait for a time limit are played at the same time, and before the others, which need the processor
    // within their limits.
    let (waiting, others): (Vec<EngineRow>, Vec<EngineRow>) =
        ROWS.into_iter().partition(|(_, expected)| expected.is_some_and(|(_, reason)| reason.contains("within ")));
    thread::scope(|scope| {
        for row in waiting {
            scope.spawn(move || judge(row));
        }
    });
    others.into_iter().for_each(judge);
}

#[test]
fn engines_get_their_options_and_refuse_unknown_ones() {
    let fixture = MatchFixture::new();
    let engine = engine(&fixture, "plays");
    let log = |options: &str| {
        let result = play(&fixture, &format!("{engine}?{options}"), &[]).result().unwrap();
        let log = fs::read_to_string(fixture.file("game.seat0.log")).unwrap_or_default();
        (seat(&result, 0)["tainted_detail"].as_str().unwrap_or_default().to_owned(), log)
    };
    let (detail, text) = log("option.hash=64&option.Style=Sharp&option.Clear%20Hash&depth=3&nodes=9");
    assert_eq!(detail, "");
    let lines: Vec<&str> = text.lines().take(4).collect();
    assert_eq!(
        lines,
        [
            "setoption name Hash value 64",
            "setoption name Style value Sharp",
            "setoption name Clear Hash",
            "go depth 3 nodes 9"
        ]
    );
    assert_eq!(log("option.Threads=2").0, "has no option `Threads`; it has Hash, Style, Clear Hash");
    let (detail, _) = log("option.Hash=0");
    assert_eq!(detail, "cannot be started: its option Hash is an integer from 1 to 1024, not `0`");
    for (options, sentence) in [
        ("ply=3", "there is no option `ply`"),
        ("depth=x", "`depth` needs an integer from 1 to 1000"),
        ("option.=1", "is empty or has a line end"),
        ("option.Hash=1%0A2", "is empty or has a line end"),
        ("tc=now", "`tc`: expected seconds with an increment"),
        ("tc=5&st=1", "only one of tc and st"),
    ] {
        let finished = play(&fixture, &format!("{engine}?{options}"), &[]);
        assert!(finished.run.code != 0 && finished.run.stderr.contains(sentence), "{options}: {finished:?}");
    }
    let finished = play(&fixture, "uci:no_such_engine", &[]);
    assert!(finished.run.stderr.contains("there is no engine `no_such_engine` in PATH"), "{finished:?}");
    let agents = ["--agent", &engine, "--agent", &engine];
    let finished = fixture.play(&[&["snake"][..], &agents].concat());
    assert!(finished.run.stderr.contains("plays chess, but the game is snake"), "{finished:?}");
}

#[test]
fn engines_play_on_clocks_which_the_replay_and_its_pgn_show() {
    let fixture = MatchFixture::new();
    let engine = engine(&fixture, "plays_on_clocks");
    let finished = play(&fixture, &format!("{engine}?tc=40/60%2B0.5"), &["--tc", "20+0.1"]);
    let result = finished.result().unwrap();
    assert_eq!(result["has_tainted_agent"], false, "{result}");
    let log = |seat: u32| fs::read_to_string(fixture.file(&format!("game.seat{seat}.log"))).unwrap();
    let (own, other) = (log(0), log(1));
    // The seed decides the colors.
    let is_white = own.lines().next().unwrap().starts_with("go wtime 60000 btime 20000");
    let first = if is_white { &own } else { &other };
    let expected = if is_white {
        "go wtime 60000 btime 20000 winc 500 binc 100 movestogo 40"
    } else {
        "go wtime 20000 btime 60000 winc 100 binc 500"
    };
    assert_eq!(first.lines().next().unwrap(), expected);
    // After 40 moves the next period begins.
    let to_go: Vec<&str> = own.lines().filter_map(|line| Some(line.split_once("movestogo ")?.1)).collect();
    assert_eq!((to_go[1], to_go[39], to_go[40]), ("39", "1", "40"));
    let replay = fixture.file("game.jsonl");
    let lines: Vec<Value> =
        fs::read_to_string(&replay).unwrap().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines[0]["agents"][0]["time_control"], "40/60+0.5");
    let info = lines[3]["info"].as_array().unwrap().iter().find(|info| !info.is_null()).unwrap();
    assert_eq!(info["depth"], 3, "{}", lines[3]);
    assert_eq!((&info["cp"], &info["pv"]), (&json!(20), &json!(["d2d3"])), "{info}");
    assert!(lines[3]["used_ms"].as_array().unwrap().iter().any(|ms| ms.as_f64().is_some_and(|ms| ms > 0.0)));
    let verified = fixture.start(&["replay", "verify", &replay]).finish();
    assert_eq!(verified.run.code, 0, "{verified:?}");
    let pgn = fixture.start(&["replay", "export", &replay, "--format", "pgn"]).finish().run.stdout;
    assert!(pgn.contains("1. a4 {+0.00/1 0."), "{pgn}");
    assert!(pgn.contains("[%eval 0.00,1] [%clk 0:0"), "{pgn}");
    assert!(pgn.contains("TimeControl \"40/60+0.5\"]") && pgn.contains("TimeControl \"20+0.1\"]"), "{pgn}");
}

#[test]
fn an_engine_without_a_clock_and_one_with_a_clock_for_the_whole_game() {
    let fixture = MatchFixture::new();
    let engine = engine(&fixture, "plays");
    let finished = play(&fixture, &format!("{engine}?nodes=9"), &["--tc", "inf"]);
    let result = finished.result().unwrap();
    assert_eq!(result["has_tainted_agent"], false, "{result}");
    let log = fs::read_to_string(fixture.file("game.seat0.log")).unwrap();
    assert!(log.lines().all(|line| line == "go nodes 9"), "{log}");
    let finished = play(&fixture, &format!("{engine}?tc=0/20%2B0.1"), &["--tc", "0/10+0.1"]);
    assert_eq!(finished.result().unwrap()["has_tainted_agent"], false, "{finished:?}");
    let logs = [0, 1].map(|seat| fs::read_to_string(fixture.file(&format!("game.seat{seat}.log"))).unwrap());
    // The seed decides the colors.
    let is_first = |log: &String| log.starts_with("go wtime 20000 btime 10000 winc 100 binc 100\n");
    let is_second = |log: &String| log.starts_with("go wtime 10000 btime 20000 winc 100 binc 100\n");
    assert!(is_first(&logs[0]) || is_second(&logs[1]), "{logs:?}");
}

#[test]
fn an_engine_that_exceeds_its_clock_against_a_lone_king_draws() {
    let fixture = MatchFixture::new();
    let engine = engine(&fixture, "blocks");
    let replay = fixture.file("game.jsonl");
    let lone_king = "8/8/3rk3/8/8/2K5/8/8 b - - 0 1";
    let game = ["chess", "--set", &format!("fen={lone_king}"), "--tc", "0.6", "--replay", &replay];
    let result = fixture.play(&[&game[..], &["--agent", &engine, "--agent", &engine]].concat()).result().unwrap();
    fixture.check_nothing_remains();
    assert_eq!(
        (&result["outcome"]["termination"], &result["has_tainted_agent"]),
        (&json!("DRAW_ON_TIME"), &json!(false)),
        "{result}"
    );
    assert_eq!((&seat(&result, 0)["rank"], &seat(&result, 1)["rank"]), (&json!(1), &json!(1)), "{result}");
    let verified = fixture.start(&["replay", "verify", &replay]).finish();
    assert_eq!(verified.run.code, 0, "{verified:?}");
    let pgn = fixture.start(&["replay", "export", &replay, "--format", "pgn"]).finish().run.stdout;
    assert!(pgn.contains("[Result \"1/2-1/2\"]") && pgn.contains("[Termination \"time forfeit\"]"), "{pgn}");
}

#[test]
fn an_engine_that_exceeds_its_clock_loses_on_time() {
    let fixture = MatchFixture::new();
    let engine = engine(&fixture, "blocks");
    let result = play(&fixture, &engine, &["--tc", "0.6"]).result().unwrap();
    let own = seat(&result, 0);
    assert_eq!(own["tainted_reason"], "TIMEOUT", "{result}");
    assert_eq!(own["tainted_detail"], "no answer within 600 ms, its time under the control 0.6");
}
