//! Games of two in Portable Game Notation. Games of chess whose replays were kept have moves, others their results alone,
//! which is what rating tools read.

use arena_model::Verdict;
use arena_tournament::{GameLine, Record};

use crate::games::of_game;
use arena_model::printable;

/// The games can't be written in PGN: it is a notation for games of two.
#[derive(Debug, thiserror::Error)]
#[error("PGN is for games of two, and these have {seats} seats")]
pub struct PgnError {
    /// The seats of a game of this tournament.
    pub seats: usize,
}

/// A game in PGN.
#[derive(Debug)]
pub struct PgnGame<E> {
    /// The game's text, with a line end.
    pub text: String,
    /// The error on account of which the text has the game's result, but not its moves.
    pub missing: Option<MovesMissing<E>>,
}

/// A replay was kept, and its moves can't be had.
#[derive(Debug, thiserror::Error)]
#[error("game {number} is written without its moves: {source}")]
pub struct MovesMissing<E> {
    /// The game's number, from 1.
    pub number: usize,
    /// The fault of its replay.
    pub source: E,
}

/// All games, by number: those whose replays can't be read, too, with their results alone. `replay` returns the replay of a game in
/// PGN, or `None` if it wasn't kept; it is called for games of chess, one at a time.
///
/// # Errors
/// When the games aren't played by two.
pub fn pgn<'a, E>(
    record: &'a Record,
    mut replay: impl FnMut(&GameLine) -> Result<Option<String>, E> + 'a,
) -> Result<impl Iterator<Item = PgnGame<E>>, PgnError> {
    if record.plan.seats != 2 {
        return Err(PgnError { seats: record.plan.seats });
    }
    let is_chess = record.plan.game == "chess";
    Ok(record.games().map(move |game| {
        let replay = if is_chess { replay(game) } else { Ok(None) };
        match replay {
            Ok(replay) => PgnGame { text: one(record, game, replay.as_deref().map(kept).as_ref()), missing: None },
            Err(source) => {
                let missing = MovesMissing { number: game.number, source };
                PgnGame { text: one(record, game, None), missing: Some(missing) }
            }
        }
    }))
}

/// What a tournament takes over from a game that it kept.
struct Kept {
    /// The tags that tell where the game began, if not as usual: lines, each with its end.
    start: String,
    /// The moves, and how it ended.
    moves: String,
}

/// Takes these parts out of a replay in PGN; all other tags are the tournament's.
fn kept(replay: &str) -> Kept {
    let (tags, moves) = replay.split_once("\n\n").unwrap_or_default();
    let is_start = |tag: &&str| tag.starts_with("[SetUp ") || tag.starts_with("[FEN ");
    let start = tags.lines().filter(is_start).map(|tag| format!("{tag}\n")).collect();
    Kept { start, moves: moves.trim_end().to_owned() }
}

fn one(record: &Record, game: &GameLine, kept: Option<&Kept>) -> String {
    let (names, result) = of_game(record, game);
    let outcome = &game.result.outcome;
    let termination = match outcome.tainted_reason {
        None => "normal",
        Some(Verdict::Timeout) => "time forfeit",
        Some(_) => "rules infraction",
    };
    let number = game.number.to_string();
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
        ("Seed", game.result.seed.reveal()),
    ];
    let quoted = |text: &str| printable(text).replace('\n', " ").replace('\\', "\\\\").replace('"', "\\\"");
    let tags: String = tags.iter().map(|(tag, value)| format!("[{tag} \"{}\"]\n", quoted(value))).collect();
    let why = || match outcome.tainted_reason {
        Some(reason) => reason.to_string(),
        None => outcome.termination.to_string(),
    };
    let (start, end) = match kept {
        Some(kept) => (kept.start.as_str(), kept.moves.clone()),
        None => ("", format!("{{{}}} {result}", why())),
    };
    format!("{tags}{start}\n{end}\n")
}
