//! Games of two in Portable Game Notation. Games of chess whose replays were kept have moves, others their results alone,
//! which is what rating tools read.

use arena_match::tournament::{GameLine, Record};
use arena_match::{ReplayError, export_pgn};
use arena_model::Verdict;

use crate::games::named;
use crate::text::printable;

/// A tournament or a game of it can't be written so.
#[derive(Debug, thiserror::Error)]
pub enum PgnError {
    /// It isn't played by two.
    #[error("PGN is for games of two, and these have {0} seats")]
    Seats(usize),
    /// A replay isn't that of a game of chess.
    #[error("the replay of game {number}: {source}")]
    Replay {
        /// Of the game, from 1.
        number: usize,
        /// What is wrong with it.
        source: ReplayError,
    },
}

/// All games, by number, each as its text with a line end. `replay` finds the replay of a game, if it was kept; it is asked for games
/// of chess, when their turn comes.
///
/// # Errors
/// When the games aren't played by two; and in place of a game whose replay is damaged.
pub fn pgn<'a>(
    record: &'a Record,
    mut replay: impl FnMut(&GameLine) -> Option<Vec<u8>> + 'a,
) -> Result<impl Iterator<Item = Result<String, PgnError>> + 'a, PgnError> {
    if record.plan.seats != 2 {
        return Err(PgnError::Seats(record.plan.seats));
    }
    let is_chess = record.plan.game == "chess";
    Ok(record.games().map(move |game| {
        let replay = if is_chess { replay(game) } else { None };
        let kept = replay.map(|replay| kept(&replay)).transpose();
        let kept = kept.map_err(|source| PgnError::Replay { number: game.fixture, source })?;
        Ok(one(record, game, kept.as_ref()))
    }))
}

/// What a tournament takes over from a game that it kept.
struct Kept {
    /// The tags that tell where the game began, if not as usual: lines, each with its end.
    start: String,
    /// The moves, and how it ended.
    moves: String,
}

/// What the replay of a game tells; all other tags are the tournament's.
fn kept(replay: &[u8]) -> Result<Kept, ReplayError> {
    let mut text = Vec::new();
    export_pgn(replay, &mut text)?;
    let text = String::from_utf8_lossy(&text);
    let (tags, moves) = text.split_once("\n\n").unwrap_or_default();
    let is_start = |tag: &&str| tag.starts_with("[SetUp ") || tag.starts_with("[FEN ");
    let start = tags.lines().filter(is_start).map(|tag| format!("{tag}\n")).collect();
    Ok(Kept { start, moves: moves.trim_end().to_owned() })
}

fn one(record: &Record, game: &GameLine, kept: Option<&Kept>) -> String {
    let (names, result) = named(record, game);
    let termination = match game.outcome.tainted_reason {
        None => "normal",
        Some(Verdict::Timeout) => "time forfeit",
        Some(_) => "rules infraction",
    };
    let number = game.fixture.to_string();
    let round = format!("{}.{number}", game.round);
    let tags = [
        ("Event", format!("{} {}", record.plan.game, record.plan.format)),
        ("Site", "?".to_owned()),
        ("Date", "????.??.??".to_owned()),
        ("Round", round),
        ("White", names[0].to_owned()),
        ("Black", names[1].to_owned()),
        ("Result", result.clone()),
        ("Termination", termination.to_owned()),
        ("Seed", game.seed.clone()),
    ];
    let quoted = |text: &str| printable(text).replace('\n', " ").replace('\\', "\\\\").replace('"', "\\\"");
    let tags: String = tags.iter().map(|(tag, value)| format!("[{tag} \"{}\"]\n", quoted(value))).collect();
    let why = || match game.outcome.tainted_reason {
        Some(reason) => reason.to_string(),
        None => game.outcome.termination.to_string(),
    };
    let (start, end) = match kept {
        Some(kept) => (kept.start.as_str(), kept.moves.clone()),
        None => ("", format!("{{{}}} {result}", why())),
    };
    format!("{tags}{start}\n{end}\n")
}
