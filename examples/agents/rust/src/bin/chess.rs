//! Chess, one ply deep: counts captures and the opponent's recaptures. The arena lists the legal moves, so
//! this agent knows only the attacks of pieces, not the rules of chess.

use std::collections::HashMap;

use example_agents::{list, run};
use serde_json::{Value, json};

/// Pieces as in FEN, from a1 to h8; free squares are `.`.
type Board = [u8; 64];

/// A move in UCI notation, such as `e7e8q`.
struct Move {
    start: usize,
    end: usize,
    promotion: Option<u8>,
}

impl Move {
    fn read(text: &str) -> Option<Move> {
        let square = |name: &[u8]| match name {
            [file @ b'a'..=b'h', rank @ b'1'..=b'8'] => Some(usize::from(rank - b'1') * 8 + usize::from(file - b'a')),
            _ => None,
        };
        let text = text.as_bytes();
        Some(Move { start: square(text.get(..2)?)?, end: square(text.get(2..4)?)?, promotion: text.get(4).copied() })
    }
}

/// Returns the best move. `seen` counts the boards after our own moves, because repeating one leads to a draw by
/// repetition.
fn decide(state: &Value, seen: &mut HashMap<Board, i64>) -> Vec<Value> {
    let board = read_fen(state["fen"].as_str().unwrap_or_default());
    let is_white = state["turn"] == true;
    let mut best: Option<(&str, i64, Board)> = None;
    for text in list(&state["legal_moves"]).iter().filter_map(Value::as_str) {
        let Some(chosen) = Move::read(text) else { continue };
        let (after, gain) = play(&board, &chosen);
        let repeated = seen.get(&after).copied().unwrap_or(0);
        let score = gain + outlook(&after, is_white, chosen.end) - 50 * repeated;
        if best.is_none_or(|(_, best_score, _)| score > best_score) {
            best = Some((text, score, after));
        }
    }
    let Some((text, _, after)) = best else { return Vec::new() };
    *seen.entry(after).or_default() += 1;
    vec![json!({"action": "move", "move": text})]
}

/// Reads the board of a FEN, which lists ranks from the eighth to the first.
fn read_fen(fen: &str) -> Board {
    let mut board = [b'.'; 64];
    for (row, pieces) in fen.split(' ').next().unwrap_or_default().split('/').take(8).enumerate() {
        let mut file = 0;
        for char in pieces.bytes() {
            if char.is_ascii_digit() {
                file += usize::from(char - b'0');
            } else if file < 8 {
                board[(7 - row) * 8 + file] = char;
                file += 1;
            }
        }
    }
    board
}

/// Returns the value of a piece in hundredths of a pawn, like all values here.
fn value(piece: u8) -> i64 {
    match piece.to_ascii_lowercase() {
        b'p' => 100,
        b'n' | b'b' => 300,
        b'r' => 500,
        b'q' => 900,
        b'k' => 10_000,
        _ => 0,
    }
}

/// Returns the board after a legal move, and the move's gain.
fn play(board: &Board, chosen: &Move) -> (Board, i64) {
    let Move { start, end, promotion } = *chosen;
    let mut after = *board;
    let mut piece = std::mem::replace(&mut after[start], b'.');
    let mut gain = value(after[end]);
    let kind = piece.to_ascii_lowercase();
    if kind == b'p' && start % 8 != end % 8 && after[end] == b'.' {
        // En passant: the captured pawn is beside the start.
        after[start / 8 * 8 + end % 8] = b'.';
        gain = value(b'p');
    }
    if kind == b'k' && start.abs_diff(end) == 2 {
        // Castling: the rook jumps over the king.
        let corner = start / 8 * 8 + if end > start { 7 } else { 0 };
        after[usize::midpoint(start, end)] = std::mem::replace(&mut after[corner], b'.');
    }
    if let Some(promotion) = promotion {
        gain += value(promotion) - value(b'p');
        piece = if piece.is_ascii_uppercase() { promotion.to_ascii_uppercase() } else { promotion };
    }
    after[end] = piece;
    (after, gain)
}

/// Rates a board for the side that has just moved a piece to the square `moved`.
fn outlook(board: &Board, is_white: bool, moved: usize) -> i64 {
    let squares = (0..64).filter(|at| board[*at] != b'.');
    let (ours, theirs): (Vec<usize>, Vec<usize>) = squares.partition(|at| board[*at].is_ascii_uppercase() == is_white);
    let (mut score, mut threat) = (0, 0);
    for &at in &ours {
        let (kind, [file, rank]) = (board[at].to_ascii_lowercase(), place(at));
        let attackers = theirs.iter().filter(|start| attacks(board, **start, at)).map(|start| value(board[*start]));
        if let Some(least) = attackers.min().filter(|_| kind != b'k') {
            // A capture of a guarded piece is answered by a recapture.
            let is_guarded = ours.iter().any(|start| attacks(board, *start, at));
            threat = threat.max(value(kind) - if is_guarded { least } else { 0 });
        }
        // Pieces are stronger in the center, pawns when advanced.
        match kind {
            b'p' => score += 3 * if is_white { rank } else { 7 - rank },
            b'k' => {}
            _ => score -= (2 * file - 7).abs() + (2 * rank - 7).abs(),
        }
    }
    let is_check = theirs.iter().any(|at| board[*at].eq_ignore_ascii_case(&b'k') && attacks(board, moved, *at));
    score - threat + if is_check { 20 } else { 0 }
}

/// True if the piece on `start` could capture on `end`.
fn attacks(board: &Board, start: usize, end: usize) -> bool {
    let (from, to) = (place(start), place(end));
    let (dx, dy) = (to[0] - from[0], to[1] - from[1]);
    let (far, near) = (dx.abs().max(dy.abs()), dx.abs().min(dy.abs()));
    let (is_straight, is_diagonal) = (near == 0 && far > 0, near == far && far > 0);
    let slides = match board[start].to_ascii_lowercase() {
        b'p' => return dx.abs() == 1 && dy == if board[start] == b'P' { 1 } else { -1 },
        b'n' => return (far, near) == (2, 1),
        b'k' => return far == 1,
        b'b' => is_diagonal,
        b'r' => is_straight,
        _ => is_straight || is_diagonal,
    };
    let between = |step: i64| ((from[1] + dy / far * step) * 8 + from[0] + dx / far * step) as usize;
    slides && (1..far).all(|step| board[between(step)] == b'.')
}

/// Returns the file and rank of a square, each from 0.
fn place(at: usize) -> [i64; 2] {
    [(at % 8) as i64, (at / 8) as i64]
}

fn main() -> std::io::Result<()> {
    let mut seen = HashMap::new();
    run("chess-rs", "1", |_me, state, _config| decide(state, &mut seen))
}
