//! PGN of chess tournaments, which python-chess must be able to read with all moves and results.

use std::fs;
use std::process::Command;

use serde_json::Value;

use crate::program::run;

const TESTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/pgn");

#[test]
fn every_game_of_a_chess_tournament_is_exported_and_read_back() {
    let home = tempfile::tempdir().unwrap();
    let path = |name: &str| home.path().join(name).to_str().unwrap().to_owned();
    let agents = ["a", "b", "c"].map(|name| format!("--agent={name}={TESTS}/random_bot.py"));
    let out = path("out");
    let played = run(&[
        &["tournament", "run", "chess", "--seed", "7", "--rounds", "3", "--replays", "--out", &out][..],
        &agents.each_ref().map(String::as_str),
    ]
    .concat());
    assert_eq!(played.code, 0, "{played:#?}");

    let exported = run(&["tournament", "standings", &out, "--pgn"]);
    assert_eq!((exported.code, exported.stderr.as_str()), (0, ""));
    let pgn = path("all.pgn");
    fs::write(&pgn, &exported.stdout).unwrap();
    let mut read = Command::new(arena_testkit::python(env!("CARGO_TARGET_TMPDIR")));
    let read = read.arg(format!("{TESTS}/read.py")).args([&out, &pgn]).output().unwrap();
    assert!(read.status.success(), "{}", String::from_utf8_lossy(&read.stderr));
    let outcome: Value = serde_json::from_slice(&read.stdout).unwrap();
    assert_eq!(outcome["games"], 18);
    // `quiet` is the largest halfmove clock in all games.
    assert!(outcome["quiet"].as_u64().unwrap() > 100, "{outcome}");

    // If two replays are damaged, the export lacks the moves of two games and nothing else.
    let replay = |number: usize| home.path().join(format!("out/replays/{number}.jsonl"));
    let text = fs::read_to_string(replay(3)).unwrap();
    fs::write(replay(3), &text[..text.len() / 2]).unwrap();
    fs::write(replay(9), "no replay").unwrap();
    let damaged = run(&["tournament", "standings", &out, "--pgn"]);
    assert_eq!(damaged.code, 11, "{}", damaged.stderr);
    let notes: Vec<&str> = damaged.stderr.lines().collect();
    assert!(notes[0].starts_with("note: game 3 is written without its moves: "), "{notes:#?}");
    assert!(notes[1].starts_with("note: game 9 is written without its moves: "), "{notes:#?}");
    assert_eq!(notes[2..], ["error: wrote 18 games, 2 of them without moves because their replays are unreadable"]);
    let games = |text: &str| -> Vec<String> { text.split("[Event ").skip(1).map(str::to_owned).collect() };
    let (whole, rest) = (games(&exported.stdout), games(&damaged.stdout));
    assert_eq!(rest.len(), 18);
    let differing: Vec<usize> = (0..18).filter(|at| whole[*at] != rest[*at]).map(|at| at + 1).collect();
    assert_eq!(differing, [3, 9]);
    let result = |game: &str| game.lines().find(|line| line.starts_with("[Result ")).map(str::to_owned);
    assert!((0..18).all(|at| result(&whole[at]) == result(&rest[at])));
}
