//! Two-seat games as Portable Game Notation (PGN). Chess games with a kept replay include the moves. All other games
//! have only the result, which is enough for rating tools.

use arena_model::Verdict;
use arena_tournament::{GameLine, Record};

use crate::games::of_game;
use arena_model::printable;

/// An error for games with more than two seats, which PGN can't represent.
#[derive(Debug, thiserror::Error)]
#[error("cannot write PGN: PGN needs games with 2 seats, but this tournament's games have {seats}")]
pub struct PgnError {
    pub seats: usize,
}

#[derive(Debug)]
pub struct PgnGame<E> {
    /// The PGN text, with a final line end.
    pub text: String,
    /// The reason that the text has no moves, if reading the replay failed.
    pub missing: Option<MovesMissing<E>>,
}

/// An error for a kept replay that can't be read.
#[derive(Debug, thiserror::Error)]
#[error("game {number} is written without its moves: {source}")]
pub struct MovesMissing<E> {
    /// The game's number, from 1.
    pub number: usize,
    pub source: E,
}

/// Returns all games in the order of their numbers. `replay` returns a game's replay as PGN, or `None` if the replay
/// wasn't kept. It is called for chess games only. If `replay` fails, [`PgnGame`] has the game's result without moves,
/// and the error.
///
/// # Errors
/// [`PgnError`] if the games don't have two seats.
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

/// The parts of a replay's PGN that are copied to the tournament's PGN.
struct ReplayMoves {
    date: String,
    /// The tag lines of time controls, and of a start position that isn't that of chess, each with its line end.
    start: String,
    /// The moves and the result.
    moves: String,
}

/// Extracts the start position and the moves from a replay's PGN. The tournament provides all other tags.
fn kept(replay: &str) -> ReplayMoves {
    let (tags, moves) = replay.split_once("\n\n").unwrap_or_default();
    let is_start = |tag: &&str| {
        ["[SetUp ", "[FEN ", "[TimeControl ", "[WhiteTimeControl ", "[BlackTimeControl "]
            .iter()
            .any(|start| tag.starts_with(start))
    };
    let start = tags.lines().filter(is_start).map(|tag| format!("{tag}\n")).collect();
    let date = tags.lines().find_map(|tag| tag.strip_prefix("[Date \"")?.strip_suffix("\"]"));
    let date = date.unwrap_or("????.??.??").to_owned();
    ReplayMoves { date, start, moves: moves.trim_end().to_owned() }
}

fn one(record: &Record, game: &GameLine, kept: Option<&ReplayMoves>) -> String {
    let (names, result) = of_game(record, game);
    let outcome = &game.result.outcome;
    let termination = match outcome.tainted_reason {
        None if outcome.termination == "DRAW_ON_TIME" => "time forfeit",
        None => "normal",
        Some(Verdict::Timeout) => "time forfeit",
        Some(_) => "rules infraction",
    };
    let number = game.number.to_string();
    let round = format!("{}.{number}", game.round);
    let tags = [
        ("Event", format!("{} {}", record.plan.game, record.plan.format)),
        ("Site", "?".to_owned()),
        ("Date", kept.map_or("????.??.??", |kept| kept.date.as_str()).to_owned()),
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
