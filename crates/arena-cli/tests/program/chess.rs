//! Tournaments of chess engines: Stockfish against GNU Chess, adjudication, and openings.
//!
//! `cargo xtask setup engines` installs both engines.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use crate::program::run;

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

const READER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/pgn/engines.py");

/// Returns the first command of a page that begins with these words, as one line.
fn command_of(page: &str, begins: &str) -> String {
    let text = fs::read_to_string(format!("{ROOT}/{page}")).unwrap();
    let lines = text.lines().skip_while(|line| !line.trim_start().starts_with(begins));
    let mut command = String::new();
    for line in lines {
        command += line.trim().trim_end_matches('\\');
        if !line.ends_with('\\') {
            break;
        }
    }
    command
}

#[test]
fn stockfish_and_gnu_chess_play_the_documented_test_and_python_chess_reads_the_games() {
    let home = tempfile::tempdir().unwrap();
    fs::set_permissions(home.path(), fs::Permissions::from_mode(0o755)).unwrap();
    symlink(Path::new(ROOT).join("examples"), home.path().join("examples")).unwrap();
    symlink(env!("CARGO_BIN_EXE_arena"), home.path().join("arena")).unwrap();
    let command = command_of("docs/chess.md", "arena tournament run chess");
    let played = Command::new("sh").args(["-c", &format!("./{command}")]).current_dir(home.path()).output().unwrap();
    let (out, err) = (String::from_utf8_lossy(&played.stdout), String::from_utf8_lossy(&played.stderr));
    assert!(played.status.success(), "{out}{err}");
    assert!(out.contains("H1"), "{out}");
    let folder = home.path().join("engines");
    let exported = run(&["tournament", "standings", folder.to_str().unwrap(), "--pgn"]);
    assert_eq!((exported.code, exported.stderr.as_str()), (0, ""));
    let pgn = home.path().join("all.pgn");
    fs::write(&pgn, &exported.stdout).unwrap();
    let mut read = Command::new(arena_testkit::python(env!("CARGO_TARGET_TMPDIR")));
    let book = format!("{ROOT}/examples/openings/main-lines.epd");
    let read = read.args([READER, pgn.to_str().unwrap(), &book]).output().unwrap();
    assert!(read.status.success(), "{}", String::from_utf8_lossy(&read.stderr));
    let facts: Value = serde_json::from_slice(&read.stdout).unwrap();
    let games = facts["games"].as_u64().unwrap();
    assert!(games >= 4 && games.is_multiple_of(2), "{facts}");
    // Each opening is played twice; after the last one, the first one comes again.
    let openings = fs::read_to_string(&book).unwrap().lines().filter(|line| !line.starts_with('#')).count() as u64;
    assert_eq!(facts["openings"].as_u64().unwrap(), openings.min(games / 2), "{facts}");
    // Stockfish reports a score for each move, GNU Chess for most.
    let (plies, scores) = (facts["plies"].as_u64().unwrap(), facts["scores"].as_u64().unwrap());
    assert!(scores * 10 >= plies * 6, "{facts}");
    assert_eq!(facts["clocks"], facts["plies"], "{facts}");
    // The replays can be verified by the rules.
    let replay = folder.join("replays/1.jsonl");
    let verified = run(&["replay", "verify", replay.to_str().unwrap()]);
    assert_eq!(verified.code, 0, "{verified:#?}");
}

/// Creates an engine that plays a recorded game, whose scores grow by 10 centipawns with each ply for White.
fn stand_in(folder: &Path) -> String {
    fs::set_permissions(folder, fs::Permissions::from_mode(0o755)).unwrap();
    let path = folder.join("plays.py");
    fs::write(&path, include_str!("../hostile/uci.py")).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    format!("uci:{}", path.display())
}

/// Plays a tournament of two engines with these options. Returns the games in its journal, and the journal's head.
fn games(options: &[&str]) -> (Vec<Value>, Value) {
    let home = tempfile::tempdir().unwrap();
    let engine = stand_in(home.path());
    let out = home.path().join("out");
    let agents = [format!("--agent=one={engine}"), format!("--agent=two={engine}")];
    let fixed = ["tournament", "run", "chess", "--seed", "3", "--out", out.to_str().unwrap(), &agents[0], &agents[1]];
    let played = run(&[&fixed[..], options].concat());
    assert_eq!(played.code, 0, "{played:#?}");
    let journal = fs::read_to_string(out.join("tournament.jsonl")).unwrap();
    let mut lines: Vec<Value> = journal.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let head = lines.remove(0);
    (lines, head)
}

#[test]
fn games_end_by_the_scores_of_the_engines() {
    let end = |options: &[&str]| {
        let (games, head) = games(options);
        assert_eq!(head["options"]["agreements"], true);
        assert_eq!(games.len(), 2, "{games:?}");
        (games[0]["outcome"]["termination"].clone(), games[0]["epochs"].clone())
    };
    // Black's scores are -410, -430 and -450 with its 21st to 23rd moves; White's are 420 to 460 with the 22nd to 24th.
    assert_eq!(end(&["--resign", "movecount=3,score=401"]), (json!("RESIGNATION"), json!(46)));
    assert_eq!(end(&["--resign", "movecount=3", "score=401", "twosided=true"]), (json!("RESIGNATION"), json!(48)));
    // The scores of the first two moves of each side are within the limit. Black offers, and White accepts.
    assert_eq!(end(&["--draw", "movenumber=0,movecount=2,score=40"]), (json!("AGREEMENT"), json!(5)));
    for (options, sentence) in [
        (["--resign", "movecount=3"], "--resign: `score` is missing"),
        (["--draw", "score=x"], "--draw: `score` must be a whole number from 0, not `x`"),
        (["--draw", "moves=3"], "--draw: there is no key `moves`; the keys are movenumber, movecount, score"),
        (["--openings", "order=random"], "--openings: `file` is missing"),
        (["--openings", "file=absent.epd"], "the opening book absent.epd cannot be read"),
        (["--tc", "soon"], "expected seconds with an increment"),
    ] {
        let refused =
            run(&[&["tournament", "run", "chess", "--agent=a=house", "--agent=b=random"], &options[..]].concat());
        assert!(refused.code == 2 && refused.stderr.contains(sentence), "{refused:#?}");
    }
    let refused = run(&["tournament", "run", "snake", "--agent=a=house", "--agent=b=random", "--draw", "score=1"]);
    assert!(refused.stderr.contains("openings and adjudication are for chess, not for snake"), "{refused:#?}");
}

#[test]
fn pairs_play_the_openings_of_a_book_in_order_and_the_journal_keeps_them() {
    let home = tempfile::tempdir().unwrap();
    let book = format!("{ROOT}/examples/openings/main-lines.pgn");
    let play = |options: &str| {
        let out = home.path().join(options.replace(['/', ','], "_").chars().rev().take(40).collect::<String>());
        let openings = format!("file={book},{options}");
        let fixed = ["tournament", "run", "chess", "--seed", "3", "--rounds", "3", "--replays", "--agent=a=random"];
        let played =
            run(&[&fixed[..], &["--agent=b=house", "--openings", &openings, "--out", out.to_str().unwrap()]].concat());
        assert_eq!(played.code, 0, "{played:#?}");
        let head = |number: u32| -> Value {
            let text = fs::read_to_string(out.join(format!("replays/{number}.jsonl"))).unwrap();
            serde_json::from_str::<Value>(text.lines().next().unwrap()).unwrap()["options"]["fen"].clone()
        };
        let fens: Vec<String> = (1..=6).map(|number| head(number).as_str().unwrap().to_owned()).collect();
        assert!(fens.chunks(2).all(|pair| pair[0] == pair[1]), "{fens:?}");
        fens.into_iter().step_by(2).collect::<Vec<String>>()
    };
    let epd = fs::read_to_string(format!("{ROOT}/examples/openings/main-lines.epd")).unwrap();
    let known: Vec<String> = epd.lines().map(|line| line.split(' ').take(2).collect::<Vec<_>>().join(" ")).collect();
    let place = |fen: &String| {
        let start: Vec<&str> = fen.split(' ').take(2).collect();
        known.iter().position(|known| *known == start.join(" ")).unwrap()
    };
    let places = |options: &str| play(options).iter().map(place).collect::<Vec<usize>>();
    assert_eq!(places("start=2"), [1, 2, 3]);
    assert_eq!(places("start=24"), [23, 0, 1]);
    let random = places("order=random");
    assert!(random != [0, 1, 2] && random == places("order=random,plies=8"), "{random:?}");
}

#[test]
fn an_opening_that_cannot_be_played_is_named_with_its_place() {
    let home = tempfile::tempdir().unwrap();
    let refused = |name: &str, text: &str| {
        let book = home.path().join(name);
        fs::write(&book, text).unwrap();
        let openings = format!("file={}", book.display());
        let fixed = ["tournament", "run", "chess", "--rounds", "9", "--agent=a=random", "--agent=b=house"];
        let refused = run(&[&fixed[..], &["--openings", &openings]].concat());
        assert_eq!(refused.code, 2, "{refused:#?}");
        refused.stderr.replace(home.path().to_str().unwrap(), "DIR")
    };
    let first = "\u{feff}# A comment\nrnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1\n";
    for (name, text, sentence) in [
        (
            "castling.epd",
            format!("{first}r2qk2r/pppppppp/8/8/8/8/PPPPPPPP/R2KQ2R w KQkq - 0 1\n"),
            "DIR/castling.epd:3 cannot be read: fen: the third field has rights that king and rooks don't have",
        ),
        (
            "mate.epd",
            format!("{first}rnb1kbnr/pppp1ppp/8/4p3/6Pq/5P2/PPPPP2P/RNBQKBNR w KQkq - 1 3\n"),
            "DIR/mate.epd:3 cannot be read: fen: the game has already ended in this position: CHECKMATE",
        ),
        (
            "mate.pgn",
            "1. e4 ± *\n\n1. f3 e5 2. g4 Qh4# 0-1\n".to_owned(),
            "DIR/mate.pgn:3 cannot be read: fen: the game has already ended in this position: CHECKMATE",
        ),
        (
            "variant.pgn",
            "[Variant \"Atomic\"]\n\n1. e4 *\n".to_owned(),
            "DIR/variant.pgn:1 cannot be read: its variant is `Atomic`, but only standard chess can be played",
        ),
    ] {
        let error = refused(name, &text);
        assert!(error.contains(sentence), "{error}");
    }
}
