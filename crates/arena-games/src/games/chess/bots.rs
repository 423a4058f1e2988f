//! Chess: counts pieces a few moves ahead. `planner` looks two moves ahead and thinks exchanges through; `grabber` looks at its own
//! move alone. Neither plays at random, but both shun positions that they have had before, so their games don't go in circles.

use std::cmp::Reverse;

use cozy_chess::util::parse_uci_move;
use cozy_chess::{Board, Color, GameStatus, Move, Piece, Square};
use serde_json::Value;

use crate::bots::{Player, View};

/// The one that looks ahead.
pub const PLANNER: Player =
    Player { name: "planner", motto: "looks two moves ahead", think: |view| think(view, 2, true) };

/// The one that doesn't.
pub const GRABBER: Player =
    Player { name: "grabber", motto: "takes whatever it can", think: |view| think(view, 1, false) };

/// Worth more than all that can be on a board.
const MATE: i32 = 1_000_000;

/// What it costs to come back to a position that one has had.
const AGAIN: i32 = 60;

/// Exchanges are followed for so many moves.
const EXCHANGES: u32 = 6;

fn think(view: &View<'_>, plies: u32, settles: bool) -> Option<String> {
    let board = board_of(view.state.get("fen")?.as_str()?)?;
    let past: Vec<u64> = view.past.iter().filter_map(|fen| Some(replies(&board_of(fen)?))).flatten().collect();
    let legal = view.state.get("legal_moves")?.as_array()?.iter().filter_map(Value::as_str);
    let rated = legal.filter_map(|uci| {
        let after = played(&board, parse_uci_move(&board, uci).ok()?);
        let again = past.iter().filter(|hash| **hash == after.hash()).count() as i32;
        Some((-search(&after, plies - 1, settles, -2 * MATE, 2 * MATE) - AGAIN * again, uci))
    });
    // Of equal moves the first by name, so that equal states lead to equal moves.
    rated.max_by_key(|(worth, uci)| (*worth, Reverse(*uci))).map(|(_, uci)| uci.to_owned())
}

fn board_of(fen: &str) -> Option<Board> {
    Board::from_fen(fen, false).ok()
}

/// The positions to which a position leads: among them is the one that was chosen then.
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

/// How well the side to move stands when both play so many moves as well as they see it.
fn search(board: &Board, plies: u32, settles: bool, mut least: i32, most: i32) -> i32 {
    match board.status() {
        // The sooner, the worse.
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

/// The same, with nothing but captures, which nobody has to make.
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

/// What a move takes. Castling is the king's capture of its own rook here, and taking en passant is worth no look ahead.
fn taken(board: &Board, step: Move) -> Option<Piece> {
    board.piece_on(step.to).filter(|_| board.color_on(step.to) != Some(board.side_to_move()))
}

/// The greatest prey first: the sooner a good move is found, the fewer others need a look.
fn in_order(board: &Board, mut moves: Vec<Move>) -> Vec<Move> {
    moves.sort_by_key(|step| Reverse(taken(board, *step).map_or(0, worth)));
    moves
}

/// In hundredths of a pawn.
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

/// How the side to move stands, by the pieces and where they are.
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

/// Pieces are better in the middle, pawns the further they have come; kings stay at home.
fn place(piece: Piece, color: Color, square: Square) -> i32 {
    let (file, rank) = (square.file() as i32, square.rank().relative_to(color) as i32);
    let off_centre = (2 * file - 7).abs() + (2 * rank - 7).abs();
    match piece {
        Piece::Pawn => 4 * rank + if (2..=5).contains(&file) { 2 * rank } else { 0 },
        Piece::King => -8 * rank,
        Piece::Knight | Piece::Bishop => 14 - 3 * off_centre,
        Piece::Rook | Piece::Queen => -off_centre / 2,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Map, json};

    use super::*;
    use crate::bots::Mind;

    /// What both play here, with the legal moves as the arena lists them.
    fn moves(fen: &str) -> [Option<String>; 2] {
        let board = board_of(fen).unwrap();
        let legal: Vec<String> = moves_of(&board).iter().map(ToString::to_string).collect();
        let state = Map::from_iter([("fen".to_owned(), json!(fen)), ("legal_moves".to_owned(), json!(legal))]);
        [&PLANNER, &GRABBER].map(|player| Mind::of(player).decide("me", &state))
    }

    #[test]
    fn both_mate_in_one() {
        let mate = Some("a1a8".to_owned());
        assert_eq!(moves("6k1/5ppp/8/8/8/8/5PPP/R5K1 w - - 0 1"), [mate.clone(), mate]);
    }

    #[test]
    fn only_the_planner_sees_that_a_pawn_is_guarded() {
        let [planner, grabber] = moves("4k3/2p5/3p4/8/8/8/3Q4/4K3 w - - 0 1");
        assert_eq!(grabber.as_deref(), Some("d2d6"));
        assert_ne!(planner, grabber);
    }

    #[test]
    fn nobody_moves_without_a_move() {
        assert_eq!(moves("7k/5Q2/6K1/8/8/8/8/8 b - - 0 1"), [None, None]);
    }
}
