//! Tests of frames: each compares the text of a frame for given states.

use arena_games::board::row::Ink;
use expect_test::{expect, expect_file};
use serde_json::{Value, json};

use super::{AgentEntry, Row, Stage, TerminalSize, frame};

const ROOM: TerminalSize = TerminalSize { columns: 80, rows: 24 };

fn stage(game: &str, config: Value, sides: [Option<&'static str>; 2]) -> Stage {
    let Value::Object(config) = config else { panic!("a config is an object") };
    Stage { game: game.to_owned(), config, ids: vec!["a1".to_owned(), "b2".to_owned()], sides: sides.to_vec() }
}

fn view(stage: &Stage, states: &[Value], room: TerminalSize) -> String {
    let entry =
        |name: &str, details: &str| AgentEntry { name: name.to_owned(), details: details.to_owned(), verdict: None };
    let mut entries = vec![entry("ada", "bank 2 s"), entry("bob\u{1b}[2J", "bank 1 s")];
    entries[1].verdict = Some("TIMEOUT: too late".to_owned());
    let mut title = Row::default();
    title.text(Ink::Strong, &stage.game);
    let rows = frame(stage, title, states, &entries, room);
    let text: Vec<String> = rows.iter().map(Row::plain).collect();
    text.join("\n") + "\n"
}

fn snakes() -> Value {
    json!({
        "score": {"a1": 3, "b2": -1},
        "snakes": {
            "a1": {"alive": true, "head_position": [1, 1], "positions": [[1, 1], [1, 2], [2, 2]]},
            "b2": {"alive": false, "head_position": [4, 0], "positions": [[4, 0], [-1, 9]]},
        },
        "foods": [[0, 3], [5, 3]],
        "grid": {"width": 6, "height": 4, "grid_string": []},
    })
}

#[test]
fn snake() {
    let seen = view(&stage("snake", json!({}), [None; 2]), &[snakes()], ROOM);
    expect![[r#"
        snake
        A ada            3  length 3  bank 2 s
        B bob\u{1b}[2J  -1  dead      bank 1 s  TIMEOUT: too late
        ╭─────────────╮
        │ · · · · x · │
        │ · A · · · · │
        │ · a a · · · │
        │ * · · · · * │
        ╰─────────────╯
    "#]]
    .assert_eq(&seen);
}

#[test]
fn chess() {
    let stage = stage("chess", json!({}), [Some("BLACK"), Some("WHITE")]);
    let state = |fen: &str, turn: bool, last: Value| json!({"fen": fen, "turn": turn, "last_move": last, "legal_moves": ["a2a3"]});
    let start = state("rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1", true, Value::Null);
    let seen = view(&stage, &[Value::Null, start], ROOM);
    expect_file!["tests/chess.txt"].assert_eq(&seen);
    let next = state("rnbqkbnr/pppppppp/8/8/4P3/8/PPPP1PPP/RNBQKBNR b KQkq - 0 1", false, json!("e2e4"));
    let seen = view(&stage, &[next, Value::Null], ROOM);
    expect_file!["tests/chess_2.txt"].assert_eq(&seen);
}

fn world(x: f64) -> Value {
    let thing = |owner: &str, x: f64, y: f64, food: f64| json!({"position": [x, y], "owner_id": owner, "food": food, "health": 50.0});
    json!({
        "foods": [
            {"position": [0.0, 0.0], "quantity": 50.0},
            {"position": [39.99, 39.99], "quantity": 20.0},
            {"position": [20.0, 20.0], "quantity": 1.0},
        ],
        "actors": [thing("a1", x, 6.0, 12.5), thing("b2", 34.0, 33.0, 0.0), thing("nobody", 1.0, 1.0, 0.0)],
        "bases": [thing("a1", 6.0, 6.0, 100.0), thing("b2", 34.0, 34.0, 7.0)],
        "dead_entities": [thing("a1", 12.0, 12.0, 0.0)],
    })
}

#[test]
fn food_catcher() {
    let stage = stage("food_catcher", json!({"grid_width": 40, "grid_height": 40}), [None; 2]);
    let seen = view(&stage, &[world(10.0)], ROOM);
    expect_file!["tests/food_catcher.txt"].assert_eq(&seen);
    // Scaled down to a small terminal.
    let seen = view(&stage, &[world(10.0)], TerminalSize { columns: 24, rows: 11 });
    expect_file!["tests/food_catcher_2.txt"].assert_eq(&seen);
}

#[test]
fn cherry_picker() {
    let stage = stage("cherry_picker", json!({"grid_width": 75.0, "grid_height": 75.0}), [None; 2]);
    let seen = view(&stage, &[world(10.0), world(20.0)], TerminalSize { columns: 60, rows: 16 });
    expect_file!["tests/cherry_picker.txt"].assert_eq(&seen);
    // The terminal is too narrow for both boards, and then shows only one, since the other agent is out.
    let seen = view(&stage, &[world(10.0), world(20.0)], TerminalSize { columns: 30, rows: 12 });
    expect_file!["tests/cherry_picker_2.txt"].assert_eq(&seen);
    let seen = view(&stage, &[Value::Null, world(20.0)], TerminalSize { columns: 30, rows: 12 });
    expect_file!["tests/cherry_picker_3.txt"].assert_eq(&seen);
}

#[test]
fn states_of_strangers_are_drawn_as_far_as_they_make_sense() {
    let everything =
        [json!(null), json!([]), json!({}), json!("x"), json!({"fen": "9/x9999999/////////", "last_move": "é→"})];
    let wild = json!({
        "grid": {"width": 1e300, "height": -1}, "snakes": [], "foods": {"a": 1}, "actors": [[], {"position": [1e300, -1e300]}],
        "bases": [{"position": ["x"], "owner_id": "a1", "food": "much"}], "fen": 7, "turn": "w", "last_move": "zzzz",
    });
    let huge = json!({"grid": {"width": u64::MAX, "height": u64::MAX}, "snakes": {"a1": {"alive": true, "positions": [[-1, 2], [1e30]]}}});
    for game in ["snake", "chess", "food_catcher", "cherry_picker", "ludo"] {
        for size in [json!(40), json!(1e308), json!(0), json!(-5), json!("x")] {
            let stage = stage(game, json!({"grid_width": size, "grid_height": size}), [Some("WHITE"), Some("WHITE")]);
            for state in everything.iter().chain([&wild, &huge]) {
                for room in [ROOM, TerminalSize { columns: 0, rows: 0 }, TerminalSize { columns: 1, rows: 3 }] {
                    for states in [vec![], vec![state.clone()], vec![state.clone(); 5]] {
                        stage.draw(&states, room);
                    }
                }
            }
        }
    }
}
