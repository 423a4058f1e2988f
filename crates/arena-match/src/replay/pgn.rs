//! The export of chess games in Portable Game Notation, for chess programs.
//!
//! Source: S. J. Edwards, *Portable Game Notation Specification and Implementation Guide* (1994), sections 8 and 9.

use std::io::{BufRead, Write};

use arena_model::{Seat, Seed, Setup, TimeControl, Verdict};
use cozy_chess::{Board, Piece, Square};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::read::{EpochLine, HeaderLine, Replay, ReplayError, ReplayLine, ResultPart};

/// The maximum length of a line of moves.
const COLUMNS: usize = 80;

const START: &str = "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1";

/// The position of a chess game, as in a state.
#[derive(Deserialize)]
struct Position {
    fen: String,
    legal_moves: Vec<String>,
    last_move: Option<String>,
}

/// Writes a game of chess.
///
/// # Errors
/// If the replay can't be read or is of another game, or the game can't be written.
pub fn export_pgn(from: impl BufRead, to: &mut dyn Write) -> Result<(), ReplayError> {
    let mut replay = Replay::open(from)?;
    if replay.header.game != "chess" {
        return Err(ReplayError::OtherGame(replay.header.game));
    }
    let white = white(&replay)?;
    let mut start: Option<String> = None;
    let mut now: Option<Position> = None;
    let mut words: Vec<String> = Vec::new();
    let mut note: Option<MoveNote> = None;
    let result = loop {
        let (state, result, next_note) = match replay.next_line()? {
            Some(ReplayLine::Epoch(mut epoch)) => {
                let state = epoch.world_state.take();
                (state, None, Some(MoveNote::of(&replay.header, epoch)))
            }
            Some(ReplayLine::Result(result)) => (result.world_state, Some(result.result), None),
            None => return Err(ReplayError::CutOff { epoch: 0 }),
        };
        let wrong = |what: String| ReplayError::Line { line: replay.line(), what };
        if let Some(next) = state {
            let next = position(&next).map_err(wrong)?;
            if let Some(before) = now.filter(|before| before.fen != next.fen) {
                add_move(&before, &next, &mut words).map_err(wrong)?;
                let is_white = before.fen.split(' ').nth(1) == Some("w");
                let seat = if is_white { white } else { 1 - white };
                words.extend(note.and_then(|note| note.comment(seat, is_white, next_note.as_ref())));
            }
            note = next_note;
            start.get_or_insert_with(|| next.fen.clone());
            now = Some(next);
        }
        if let Some(result) = result {
            break result;
        }
    };
    let output = write(&replay, white, start.as_deref(), &words, &result);
    to.write_all(output.as_bytes()).and_then(|()| to.flush()).map_err(ReplayError::Write)
}

/// The facts about the move of an epoch, by seat.
struct MoveNote {
    info: Vec<Option<Map<String, Value>>>,
    used_ms: Vec<Option<f64>>,
    /// The time banks before the move.
    banks_ms: Vec<u64>,
    controls: Vec<Option<TimeControl>>,
}

impl MoveNote {
    fn of(header: &HeaderLine, epoch: EpochLine) -> MoveNote {
        let controls = header.agents.iter().map(|agent| agent.time_control).collect();
        MoveNote { info: epoch.info, used_ms: epoch.used_ms, banks_ms: epoch.remaining_overage_ms, controls }
    }

    /// Returns the comment on the move of a seat, such as `{+0.31/12 0.42s [%eval 0.31,12] [%clk 0:00:09.68]}`. The first
    /// score is the player's, as chess programs write it; `%eval` is White's. `next` is the note on the next epoch.
    fn comment(self, seat: usize, is_white: bool, next: Option<&MoveNote>) -> Option<String> {
        let info = self.info.into_iter().nth(seat).flatten().unwrap_or_default();
        let number = |key: &str| info.get(key).and_then(Value::as_i64);
        let depth = number("depth").unwrap_or(0);
        let used_ms = self.used_ms.get(seat).copied().flatten();
        let mut parts = Vec::new();
        // A negative zero of mates means that the player is mated.
        let score = match (number("mate"), number("cp")) {
            (Some(mate), _) => Some(format!("{}M{}", if mate > 0 { '+' } else { '-' }, mate.unsigned_abs())),
            (None, Some(cp)) => Some(format!("{}{}", if cp < 0 { '-' } else { '+' }, pawns(cp.unsigned_abs()))),
            (None, None) => None,
        };
        parts.extend(score.map(|score| format!("{score}/{depth}")));
        parts.extend(used_ms.map(|ms| format!("{:.3}s", ms / 1000.0)));
        let for_white = |value: i64| if is_white { value } else { value.saturating_neg() };
        let sign = |value: i64| if value < 0 { "-" } else { "" };
        match (number("mate").filter(|mate| *mate != 0), number("cp")) {
            (Some(mate), _) => parts.push(format!("[%eval #{},{depth}]", for_white(mate))),
            (None, Some(cp)) => {
                let cp = for_white(cp);
                parts.push(format!("[%eval {}{},{depth}]", sign(cp), pawns(cp.unsigned_abs())));
            }
            (None, None) => {}
        }
        if let Some(TimeControl::Clock { increment_ms, .. }) = self.controls.get(seat).copied().flatten() {
            let left = self
                .banks_ms
                .get(seat)
                .zip(used_ms)
                .map(|(bank, used)| bank.saturating_sub(used as u64) + increment_ms);
            let left = next.and_then(|next| next.banks_ms.get(seat)).copied().or(left);
            parts.extend(left.map(|ms| {
                let (hours, minutes, seconds) = (ms / 3_600_000, ms / 60_000 % 60, ms / 1000 % 60);
                format!("[%clk {hours}:{minutes:02}:{seconds:02}.{}]", ms / 100 % 10)
            }));
        }
        (!parts.is_empty()).then(|| format!("{{{}}}", parts.join(" ")))
    }
}

fn pawns(centipawns: u64) -> String {
    format!("{}.{:02}", centipawns / 100, centipawns % 100)
}

/// Returns the seat with the white pieces, which follows from the seed.
fn white<R: BufRead>(replay: &Replay<R>) -> Result<usize, ReplayError> {
    let header = &replay.header;
    let wrong = |what: String| ReplayError::Line { line: 1, what };
    let game = arena_games::game(&header.game).ok_or_else(|| wrong("this program has no game `chess`".to_owned()))?;
    let seed =
        Seed::from_revealed(&header.seed).ok_or_else(|| wrong("the seed isn't 64 hexadecimal digits".to_owned()))?;
    let agents = replay.agent_ids()?;
    let game = game.start(&header.options, Setup { seed, agents }).map_err(|error| wrong(error.to_string()))?;
    Ok(if game.side(Seat(0)) == Some("WHITE") { 0 } else { 1 })
}

fn position(state: &RawValue) -> Result<Position, String> {
    serde_json::from_str(state.get()).map_err(|error| format!("the state isn't a chess position: {error}"))
}

/// Returns the board of a position, without the counters of its FEN. The board accepts at most 100 plies
/// without capture or pawn move, but a game may have 150.
fn board(fen: &str) -> Result<Board, String> {
    let fields: Vec<&str> = fen.split(' ').take(4).collect();
    let known = format!("{} 0 1", fields.join(" "));
    Board::from_fen(&known, false).map_err(|error| format!("the position {fen} cannot be read: {error}"))
}

/// Adds the move between two positions to `words`. Adds the move number first where PGN needs one.
fn add_move(before: &Position, after: &Position, words: &mut Vec<String>) -> Result<(), String> {
    let uci = after.last_move.as_deref().ok_or("the position has changed without a move")?;
    let san = san(&board(&before.fen)?, &before.legal_moves, uci)
        .ok_or_else(|| format!("{uci} isn't a legal move in the position before"))?;
    let mut fields = before.fen.split(' ').skip(1);
    let (is_white, number) = (fields.next() == Some("w"), fields.nth(3).unwrap_or("1"));
    match (is_white, words.is_empty()) {
        (true, _) => words.push(format!("{number}.")),
        (false, true) => words.push(format!("{number}...")),
        (false, false) => {}
    }
    let sign = match (board(&after.fen)?.checkers().is_empty(), after.legal_moves.is_empty()) {
        (true, _) => "",
        (false, false) => "+",
        (false, true) => "#",
    };
    words.push(san + sign);
    Ok(())
}

/// Returns a move in standard algebraic notation, without the check sign, or `None` if the move isn't legal.
fn san(board: &Board, legal: &[String], uci: &str) -> Option<String> {
    if !legal.iter().any(|other| other == uci) {
        return None;
    }
    let (from, to, promotion) = (uci.get(0..2)?, uci.get(2..4)?, uci.get(4..)?);
    let piece = board.piece_on(from.parse().ok()?)?;
    if piece == Piece::King && matches!((from, to), ("e1", "g1") | ("e8", "g8")) {
        return Some("O-O".to_owned());
    }
    if piece == Piece::King && matches!((from, to), ("e1", "c1") | ("e8", "c8")) {
        return Some("O-O-O".to_owned());
    }
    let is_capture = board.piece_on(to.parse::<Square>().ok()?).is_some();
    let takes = if is_capture { "x" } else { "" };
    if piece == Piece::Pawn {
        // A pawn's move to another file is always a capture, perhaps en passant.
        let takes = if from[..1] == to[..1] { String::new() } else { format!("{}x", &from[..1]) };
        let promotion = if promotion.is_empty() { String::new() } else { format!("={}", promotion.to_uppercase()) };
        return Some(format!("{takes}{to}{promotion}"));
    }
    // Other pieces of the same kind with a move to the same square.
    let others: Vec<&str> = legal
        .iter()
        .filter(|other| other.get(2..4) == Some(to))
        .filter_map(|other| other.get(0..2))
        .filter(|other| *other != from && other.parse().ok().and_then(|square| board.piece_on(square)) == Some(piece))
        .collect();
    let shares = |part: std::ops::Range<usize>| others.iter().any(|other| other[part.clone()] == from[part.clone()]);
    let which = match (others.is_empty(), shares(0..1), shares(1..2)) {
        (true, _, _) => "",
        (false, false, _) => &from[..1],
        (false, true, false) => &from[1..],
        (false, true, true) => from,
    };
    let letter = piece.to_string().to_uppercase();
    Some(format!("{letter}{which}{takes}{to}"))
}

fn write<R>(replay: &Replay<R>, white: usize, start: Option<&str>, words: &[String], result: &ResultPart) -> String {
    let header = &replay.header;
    let name = |seat: usize| header.agents.get(seat).map_or("?", |agent| agent.name.as_str());
    let score = result.outcome.result.as_deref().unwrap_or("*");
    let termination = match result.outcome.tainted_reason {
        None if result.outcome.termination == "DRAW_ON_TIME" => "time forfeit",
        None => "normal",
        Some(Verdict::Timeout) => "time forfeit",
        Some(_) => "rules infraction",
    };
    let mut tags = vec![
        ("Event", "arena match"),
        ("Site", "?"),
        ("Date", "????.??.??"),
        ("Round", "-"),
        ("White", name(white)),
        ("Black", name(1 - white)),
        ("Result", score),
        ("Termination", termination),
    ];
    if let Some(start) = start.filter(|start| *start != START) {
        tags.extend([("SetUp", "1"), ("FEN", start)]);
    }
    let control = |seat: usize| header.agents.get(seat)?.time_control.map(TimeControl::pgn);
    let controls = (control(white), control(1 - white));
    match &controls {
        (Some(white), Some(black)) if white == black => tags.push(("TimeControl", white)),
        (white, black) => {
            tags.extend(white.as_deref().map(|control| ("WhiteTimeControl", control)));
            tags.extend(black.as_deref().map(|control| ("BlackTimeControl", control)));
        }
    }
    tags.push(("Seed", &header.seed));
    let end = match result.outcome.tainted_reason {
        Some(reason) => format!("{{{reason}}}"),
        None => format!("{{{}}}", result.outcome.termination),
    };
    lines(&tags, words, &end, score)
}

/// A game of chess that was played in a session.
#[derive(Debug)]
pub struct SessionGame<'g> {
    /// The players' names, White's first.
    pub names: [&'g str; 2],
    /// The date, such as `2026.11.23`.
    pub date: &'g str,
    /// The public states in their order, with the last one after the last move.
    pub states: &'g [Box<RawValue>],
    /// The result in PGN: `1-0`, `0-1`, `1/2-1/2`, or `*` until the end.
    pub result: &'g str,
    /// The cause of the end, such as `CHECKMATE`.
    pub termination: &'g str,
}

/// Returns a game of a session as PGN.
///
/// # Errors
/// If a state isn't a chess position, or two consecutive states aren't one move apart. The text is the reason.
pub fn session_pgn(game: &SessionGame<'_>) -> Result<String, String> {
    let positions = game.states.iter().map(|state| position(state)).collect::<Result<Vec<Position>, String>>()?;
    let mut words = Vec::new();
    for pair in positions.windows(2).filter(|pair| pair[0].fen != pair[1].fen) {
        add_move(&pair[0], &pair[1], &mut words)?;
    }
    let [white, black] = game.names;
    let mut tags = vec![
        ("Event", "arena session"),
        ("Site", "?"),
        ("Date", game.date),
        ("Round", "-"),
        ("White", white),
        ("Black", black),
        ("Result", game.result),
    ];
    if let Some(start) = positions.first().map(|position| position.fen.as_str()).filter(|start| *start != START) {
        tags.extend([("SetUp", "1"), ("FEN", start)]);
    }
    Ok(lines(&tags, &words, &format!("{{{}}}", game.termination), game.result))
}

/// Formats a game: its tags, and its moves in lines of at most [`COLUMNS`] characters.
fn lines(tags: &[(&str, &str)], words: &[String], end: &str, score: &str) -> String {
    let mut text: String = tags.iter().map(|(tag, value)| format!("[{tag} \"{}\"]\n", escaped(value))).collect();
    text.push('\n');
    let mut column = 0;
    for word in words.iter().map(String::as_str).chain([end, score]) {
        if column > 0 && column + 1 + word.len() >= COLUMNS {
            text.push('\n');
            column = 0;
        }
        if column > 0 {
            text.push(' ');
            column += 1;
        }
        text.push_str(word);
        column += word.len();
    }
    text + "\n\n"
}

/// Returns a text with quotation marks and backslashes escaped.
fn escaped(text: &str) -> String {
    let plain: String = text.chars().map(|char| if char.is_control() { ' ' } else { char }).collect();
    plain.replace('\\', "\\\\").replace('"', "\\\"")
}
