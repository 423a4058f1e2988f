//! A season of games over all challenges, whose records are played again.
//!
//! `ARENA_SEASON_GAMES` is the number of games. With `ARENA_SEASON_FOLDER`, the records are also written to that
//! folder, so that another build of the program can verify them.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use super::mutations::{epochs, number};
use super::*;

/// The number of epochs of a game that ends by it.
const EPOCHS: u64 = 10;

#[test]
fn a_season_is_played_again_without_a_difference() {
    let games = number("ARENA_SEASON_GAMES", 200);
    let folder = std::env::var_os("ARENA_SEASON_FOLDER").map(PathBuf::from);
    let challenges: Vec<&str> = arena_games::challenges().collect();
    let (mut took, mut transitions) = (Duration::ZERO, 0);
    for game in 0..games {
        let id = challenges[game % challenges.len()];
        let played = Played::whole(id, &epochs(id, EPOCHS), game as u64);
        // A stranger's record withholds some contents, but no input of the rules.
        let viewer = match game / challenges.len() % 2 {
            0 => RecordViewer::Viewer(Viewer::Nobody, false),
            _ => RecordViewer::Everything,
        };
        let record = played.record_for(viewer);
        let started = Instant::now();
        let parsed = read_text(&record).unwrap_or_else(|error| panic!("{id}, game {game}: {error}"));
        let again = reexecute(&parsed, &*played.challenge).unwrap_or_else(|lie| panic!("{id}, game {game}: {lie}"));
        took += started.elapsed();
        assert_eq!(again.unchecked, None, "{id}, game {game}");
        assert_eq!(again.transitions + 1, played.session.version, "{id}, game {game}");
        assert_eq!(again.session.state, played.session.state, "{id}, game {game}");
        transitions += again.transitions;
        if let Some(folder) = &folder {
            std::fs::write(folder.join(format!("{game:05}.jsonl")), record).expect("the folder exists");
        }
    }
    let per_second = games as f64 / took.as_secs_f64();
    println!("{games} games, {transitions} transitions, {per_second:.0} games/s on one core");
}
