//! The house bots of chess, which compare the values of the pieces a few moves ahead. `planner` looks two moves ahead
//! and searches captures further; `grabber` looks at its own move only. Both bots are deterministic and avoid
//! repeated positions, so that their games don't go in circles.

use std::cmp::Reverse;

use cozy_chess::util::parse_uci_move;
use cozy_chess::{Board, Color, GameStatus, Move, Piece, Square};
use serde_json::Value;

use crate::bots::{BotInput, HouseBot};

/// The bot that looks ahead.
pub const PLANNER: HouseBot =
    HouseBot { name: "planner", motto: "looks two moves ahead", method: "move", think: |input| think(input, 2, true) };

/// The bot that doesn't look ahead.
pub const GRABBER: HouseBot = HouseBot {
    name: "grabber",
    motto: "captures everything it can",
    method: "move",
    think: |input| think(input, 1, false),
};

/// Openings of bots with a taste, as moves of both sides.
const OPENINGS: [&str; 7] = [
    "e2e4 e7e5 g1f3 b8c6 f1b5 a7a6",
    "e2e4 e7e5 g1f3 b8c6 f1c4 f8c5",
    "e2e4 c7c5 g1f3 d7d6 d2d4 c5d4",
    "e2e4 e7e6 d2d4 d7d5 b1c3 f8b4",
    "d2d4 d7d5 c2c4 e7e6 b1c3 g8f6",
    "d2d4 g8f6 c2c4 g7g6 b1c3 f8g7",
    "c2c4 e7e5 b1c3 g8f6 g1f3 b8c6",
];

/// The value of a mate: more than the value of all pieces on a board.
const MATE: i32 = 1_000_000;

/// The penalty for returning to an earlier position.
const REPETITION_PENALTY: i32 = 60;

/// The maximum number of moves in an exchange.
const EXCHANGES: u32 = 6;

fn think(input: &BotInput<'_>, plies: u32, settles: bool) -> Option<String> {
    let board = board_of(input.state.get("fen")?.as_str()?)?;
    let past: Vec<u64> = input.past.iter().filter_map(|fen| Some(replies(&board_of(fen)?))).flatten().collect();
    let legal = input.state.get("legal_moves")?.as_array()?.iter().filter_map(Value::as_str);
    if let Some(known) = opening_move(&board, input.taste).filter(|known| legal.clone().any(|uci| uci == *known)) {
        return Some(known.to_owned());
    }
    let rated = legal.filter_map(|uci| {
        let after = played(&board, parse_uci_move(&board, uci).ok()?);
        let again = past.iter().filter(|hash| **hash == after.hash()).count() as i32;
        let worth = -search(&after, plies - 1, settles, -2 * MATE, 2 * MATE) - REPETITION_PENALTY * again;
        // A taste likes some positions better, by at most 15 hundredths of a pawn.
        let mixed = (input.taste ^ after.hash()).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        Some((worth + if input.taste == 0 { 0 } else { (mixed >> 60) as i32 }, uci))
    });
    // Among moves of equal value the bot takes the first in alphabetical order, so that equal states give equal
    // moves.
    rated.max_by_key(|(worth, uci)| (*worth, Reverse(*uci))).map(|(_, uci)| uci.to_owned())
}

/// Returns the move of a taste's opening in a position, if the position is early enough.
fn opening_move(board: &Board, taste: u64) -> Option<&'static str> {
    let ply = 2 * (usize::from(board.fullmove_number()) - 1) + board.side_to_move() as usize;
    // The players of a game follow the same opening, so that their tastes have equal upper halves.
    let opening = OPENINGS[(taste >> 32) as usize % OPENINGS.len()];
    opening.split(' ').nth(ply).filter(|_| taste != 0)
}

fn board_of(fen: &str) -> Option<Board> {
    Board::from_fen(fen, false).ok()
}

/// Returns the hashes of the positions after each legal move. One of them is the position that followed in the game.
fn replies(board: &Board) -> Vec<u64> {
    moves_of(board).into_iter().map(|step| played(board, step).hash()).collect()
}

fn moves_of(board: &Board) -> Vec<Move> {
    let mut all = Vec::new();
    board.generate_moves(|moves| {
        all.extend(moves);
        false
    });
    all
}

fn played(board: &Board, step: Move) -> Board {
    let mut after = board.clone();
    after.play_unchecked(step);
    after
}

/// Returns the value of a position for the side to move, if both sides play the best moves in a search of depth
/// `plies`.
fn search(board: &Board, plies: u32, settles: bool, mut least: i32, most: i32) -> i32 {
    match board.status() {
        // An earlier mate is worse for the side that is mated.
        GameStatus::Won => return -MATE - plies as i32,
        GameStatus::Drawn => return 0,
        GameStatus::Ongoing if plies == 0 && settles => return settle(board, EXCHANGES, least, most),
        GameStatus::Ongoing if plies == 0 => return outlook(board),
        GameStatus::Ongoing => {}
    }
    for step in in_order(board, moves_of(board)) {
        least = least.max(-search(&played(board, step), plies - 1, settles, -most, -least));
        if least >= most {
            break;
        }
    }
    least
}

/// Searches like [`search`], but captures only. A side may also choose not to capture.
fn settle(board: &Board, exchanges: u32, least: i32, most: i32) -> i32 {
    let mut least = least.max(outlook(board));
    if exchanges == 0 || least >= most {
        return least;
    }
    let captures = moves_of(board).into_iter().filter(|step| taken(board, *step).is_some()).collect();
    for step in in_order(board, captures) {
        least = least.max(-settle(&played(board, step), exchanges - 1, -most, -least));
        if least >= most {
            break;
        }
    }
    least
}

/// Castling counts as the king's capture of its own rook here; en passant captures aren't searched.
fn taken(board: &Board, step: Move) -> Option<Piece> {
    board.piece_on(step.to).filter(|_| board.color_on(step.to) != Some(board.side_to_move()))
}

/// Sorts moves by the value of the captured piece, the highest first. The search skips more moves if it finds a good
/// one early.
fn in_order(board: &Board, mut moves: Vec<Move>) -> Vec<Move> {
    moves.sort_by_key(|step| Reverse(taken(board, *step).map_or(0, worth)));
    moves
}

/// Returns the value of a piece in hundredths of a pawn.
fn worth(piece: Piece) -> i32 {
    match piece {
        Piece::Pawn => 100,
        Piece::Knight => 310,
        Piece::Bishop => 320,
        Piece::Rook => 500,
        Piece::Queen => 900,
        Piece::King => 0,
    }
}

/// Returns the value of a position for the side to move, by the pieces and their squares.
fn outlook(board: &Board) -> i32 {
    let side = |color| -> i32 {
        Square::ALL
            .iter()
            .filter(|square| board.color_on(**square) == Some(color))
            .filter_map(|square| {
                Some(worth(board.piece_on(*square)?) + place(board.piece_on(*square)?, color, *square))
            })
            .sum()
    };
    side(board.side_to_move()) - side(!board.side_to_move())
}

/// The value of the square: pieces are worth more in the center, pawns after advancing, and kings on their first rank.
fn place(piece: Piece, color: Color, square: Square) -> i32 {
    let (file, rank) = (square.file() as i32, square.rank().relative_to(color) as i32);
    let off_center = (2 * file - 7).abs() + (2 * rank - 7).abs();
    match piece {
        Piece::Pawn => 4 * rank + if (2..=5).contains(&file) { 2 * rank } else { 0 },
        Piece::King => -8 * rank,
        Piece::Knight | Piece::Bishop => 14 - 3 * off_center,
        Piece::Rook | Piece::Queen => -off_center / 2,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use serde_json::{Map, json};

    use super::*;
    use crate::bots::BotGame;

    /// Returns both bots' moves by a taste, given the legal moves as the arena lists them.
    fn moves(fen: &str, taste: u64) -> [Option<String>; 2] {
        let board = board_of(fen).unwrap();
        let legal: Vec<String> = moves_of(&board).iter().map(ToString::to_string).collect();
        let state = Map::from_iter([("fen".to_owned(), json!(fen)), ("legal_moves".to_owned(), json!(legal))]);
        [&PLANNER, &GRABBER].map(|player| BotGame::of(player, taste).decide("me", &state))
    }

    #[test]
    fn tastes_begin_with_openings_and_differ_in_quiet_positions_only() {
        for opening in OPENINGS {
            let play = |board: Board, uci: &str| played(&board, parse_uci_move(&board, uci).unwrap());
            assert!(opening.split(' ').fold(Board::default(), play).fullmove_number() > 3, "{opening}");
        }
        let moves = |fen| (1..=16).map(|taste| moves(fen, taste << 32)).collect::<BTreeSet<_>>();
        assert_eq!(moves("rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1").len(), 3);
        assert!(moves("r1bqkb1r/pppp1ppp/2n2n2/4p3/4P3/2N2N2/PPPP1PPP/R1BQKB1R w KQkq - 0 9").len() > 1);
        assert_eq!(moves("6k1/5ppp/8/8/8/8/5PPP/R5K1 w - - 0 9").len(), 1);
    }

    #[test]
    fn both_mate_in_one() {
        let mate = Some("a1a8".to_owned());
        assert_eq!(moves("6k1/5ppp/8/8/8/8/5PPP/R5K1 w - - 0 1", 0), [mate.clone(), mate]);
    }

    #[test]
    fn only_the_planner_sees_that_a_pawn_is_guarded() {
        let [planner, grabber] = moves("4k3/2p5/3p4/8/8/8/3Q4/4K3 w - - 0 1", 0);
        assert_eq!(grabber.as_deref(), Some("d2d6"));
        assert_ne!(planner, grabber);
    }

    #[test]
    fn an_actor_without_a_move_stays() {
        assert_eq!(moves("7k/5Q2/6K1/8/8/8/8/8 b - - 0 1", 0), [None, None]);
    }
}
