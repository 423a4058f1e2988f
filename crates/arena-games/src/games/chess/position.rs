//! Positions of chess: legal moves in the order that agents know, and FEN. The moves themselves come from `cozy-chess`.

use cozy_chess::{BitBoard, Board, Color, FenParseError, File, Move, Piece, Rank, Square};

use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::games::digits::write_number;

/// A position, its counters, those before it that may come again, and what can be played in it.
#[derive(Debug)]
#[cfg_attr(test, derive(Clone))]
pub(super) struct Position {
    /// Its own counters aren't used: the one of quiet plies ends at 100.
    board: Board,
    /// Moves of either side since the last capture or pawn's move.
    quiet_plies: u32,
    /// Starts at 1 and grows after Black's move.
    move_number: u64,
    /// The positions since the last capture or pawn's move, this one included: no earlier one can come again.
    repeatable: Vec<Board>,
    plays: Vec<Play>,
}

/// A legal move, and how it is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Play {
    /// Castling is the king's capture of the rook here.
    step: Move,
    uci: [u8; 5],
    uci_len: u8,
    group: Group,
    /// Orders the moves of a position.
    key: u32,
}

impl Play {
    /// In UCI notation; castling is the king's move.
    pub fn uci(&self) -> &str {
        std::str::from_utf8(&self.uci[..self.uci_len.into()]).expect("files, ranks and pieces are ASCII")
    }
}

/// A position written down: the FENs of those since the last capture or pawn's move, this one last, and the counters.
#[derive(Serialize, Deserialize)]
struct Kept {
    repeatable: Vec<String>,
    quiet_plies: u32,
    move_number: u64,
}

impl Serialize for Position {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let repeatable = self.repeatable.iter().map(ToString::to_string).collect();
        Kept { repeatable, quiet_plies: self.quiet_plies, move_number: self.move_number }.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Position {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Position, D::Error> {
        let Kept { repeatable, quiet_plies, move_number } = Kept::deserialize(deserializer)?;
        let board = |fen: &String| Board::from_fen(fen, false).map_err(|error| D::Error::custom(said(error)));
        let repeatable: Vec<Board> = repeatable.iter().map(board).collect::<Result<_, _>>()?;
        let board = repeatable.last().cloned().ok_or_else(|| D::Error::custom("there is no position"))?;
        let mut position = Position { board, quiet_plies, move_number, repeatable, plays: Vec::new() };
        list(&position.board, &mut position.plays);
        Ok(position)
    }
}

/// The most quiet plies a position may start with: one more and the game is over by the seventy-five moves.
const MAX_QUIET_PLIES: u32 = 149;

/// The greatest number of a first move.
const MAX_MOVE_NUMBER: u64 = 9999;

impl Position {
    /// Reads a FEN of six fields with one space between them.
    pub fn from_fen(fen: &str) -> Result<Position, String> {
        let fields: Vec<&str> = fen.split(' ').collect();
        let [pieces, turn, castling, en_passant, quiet_plies, move_number] = fields[..] else {
            return Err(format!("a FEN has six fields, not {}", fields.len()));
        };
        // Its counters are ours.
        let known = format!("{pieces} {turn} {castling} {en_passant} 0 1");
        let board = Board::from_fen(&known, false).map_err(said)?;
        for colour in [Color::White, Color::Black] {
            let rights = board.castle_rights(colour);
            let is_castling = rights.short.is_some() || rights.long.is_some();
            if is_castling && board.king(colour) != Square::E1.relative_to(colour) {
                return Err(said(FenParseError::InvalidCastlingRights));
            }
        }
        let quiet_plies = whole(quiet_plies).filter(|number| *number <= MAX_QUIET_PLIES.into());
        let move_number = whole(move_number).filter(|number| (1..=MAX_MOVE_NUMBER).contains(number));
        let mut position = Position {
            quiet_plies: quiet_plies.ok_or(format!("the fifth field must be 0 to {MAX_QUIET_PLIES}"))? as u32,
            move_number: move_number.ok_or(format!("the sixth field must be 1 to {MAX_MOVE_NUMBER}"))?,
            repeatable: vec![board.clone()],
            board,
            plays: Vec::new(),
        };
        list(&position.board, &mut position.plays);
        Ok(position)
    }

    /// Who is to move.
    pub fn turn(&self) -> Color {
        self.board.side_to_move()
    }

    /// Whether the side to move is in check.
    pub fn is_check(&self) -> bool {
        !self.board.checkers().is_empty()
    }

    /// Moves of either side since the last capture or pawn's move.
    pub fn quiet_plies(&self) -> u32 {
        self.quiet_plies
    }

    /// The legal moves.
    ///
    /// Their order is that of python-chess, which agents that always play the first one are used to. Squares count from
    /// a1 to h8 along the ranks, and the last comes first: moves of the king, if it is in check; moves of pieces, by
    /// the square they leave, then by the one they reach; castling, the king's side first; captures of pawns, by the
    /// square they leave, then by the one they reach; their single steps and after these their double ones, by the
    /// square they reach; captures en passant, by the square they leave. Promotions are to queen, rook, bishop, knight.
    pub fn plays(&self) -> &[Play] {
        &self.plays
    }

    /// The legal move that is written so.
    pub fn find(&self, uci: &str) -> Option<Play> {
        self.plays.iter().find(|play| play.uci() == uci).copied()
    }

    /// Plays one of [`Position::plays`].
    pub fn play(&mut self, play: &Play) {
        let Move { from, to, .. } = play.step;
        let turn = self.turn();
        let is_capture = self.board.colors(!turn).has(to);
        let is_quiet = !is_capture && !self.board.pieces(Piece::Pawn).has(from);
        self.quiet_plies = if is_quiet { self.quiet_plies + 1 } else { 0 };
        self.move_number += u64::from(turn == Color::Black);
        self.board.play_unchecked(play.step);
        if self.quiet_plies == 0 {
            self.repeatable.clear();
        }
        self.repeatable.push(self.board.clone());
        list(&self.board, &mut self.plays);
    }

    /// How often this position has occurred, in the sense of the laws on repetition.
    pub fn occurrences(&self) -> usize {
        self.repeatable.iter().filter(|board| board.same_position(&self.board)).count()
    }

    /// Whether neither side could mate by any sequence of moves, judged by material alone: bare kings but for a single
    /// knight or bishop, or bishops that all stand on squares of one colour. Blocked positions that can't be won either
    /// aren't found.
    pub fn is_material_insufficient(&self) -> bool {
        let of = |piece| self.board.pieces(piece);
        let others = of(Piece::Pawn) | of(Piece::Rook) | of(Piece::Queen);
        let (knights, bishops) = (of(Piece::Knight), of(Piece::Bishop));
        let is_one_coloured =
            bishops.is_disjoint(BitBoard::DARK_SQUARES) || bishops.is_disjoint(BitBoard::LIGHT_SQUARES);
        others.is_empty() && ((knights | bishops).len() <= 1 || (knights.is_empty() && is_one_coloured))
    }

    /// The FEN. It names the square of an en passant capture only where such a capture is legal.
    pub fn fen(&self) -> String {
        let mut out = Vec::new();
        self.write_fen(&mut out);
        String::from_utf8(out).expect("a FEN is ASCII")
    }

    /// Appends the FEN.
    pub fn write_fen(&self, out: &mut Vec<u8>) {
        self.write_epd(out);
        out.push(b' ');
        write_number(out, self.quiet_plies.into());
        out.push(b' ');
        write_number(out, self.move_number as i64);
    }

    /// Appends the first four fields of the FEN.
    pub fn write_epd(&self, out: &mut Vec<u8>) {
        for rank in (0..8).rev().map(Rank::index) {
            if rank != Rank::Eighth {
                out.push(b'/');
            }
            let mut empty = 0;
            for file in File::ALL {
                let square = Square::new(file, rank);
                let Some((piece, colour)) = self.board.piece_on(square).zip(self.board.color_on(square)) else {
                    empty += 1;
                    continue;
                };
                if empty > 0 {
                    out.push(b'0' + std::mem::take(&mut empty));
                }
                out.push(match colour {
                    Color::White => letter(piece).to_ascii_uppercase(),
                    Color::Black => letter(piece),
                });
            }
            if empty > 0 {
                out.push(b'0' + empty);
            }
        }
        out.extend_from_slice(match self.turn() {
            Color::White => b" w ",
            Color::Black => b" b ",
        });
        let (white, black) = (self.board.castle_rights(Color::White), self.board.castle_rights(Color::Black));
        let rights = [(white.short, b'K'), (white.long, b'Q'), (black.short, b'k'), (black.long, b'q')];
        let before = out.len();
        out.extend(rights.into_iter().filter(|(right, _)| right.is_some()).map(|(_, letter)| letter));
        if out.len() == before {
            out.push(b'-');
        }
        out.push(b' ');
        match self.plays.iter().rfind(|play| play.group == Group::EnPassant) {
            Some(play) => write_square(play.step.to, out),
            None => out.push(b'-'),
        }
    }
}

/// Groups of moves, in their order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Group {
    KingInCheck,
    Piece,
    Castling,
    PawnCapture,
    PawnStep,
    PawnLeap,
    EnPassant,
}

/// Replaces `plays` by the legal moves, in the order of [`Position::plays`].
fn list(board: &Board, plays: &mut Vec<Play>) {
    let (own, is_check) = (board.colors(board.side_to_move()), !board.checkers().is_empty());
    plays.clear();
    board.generate_moves(|moves| {
        for step in moves {
            let Move { from, to, promotion } = step;
            let mut shown = to;
            let group = match moves.piece {
                Piece::King if is_check => Group::KingInCheck,
                Piece::King if own.has(to) => {
                    let file = if to.file() > from.file() { File::G } else { File::C };
                    shown = Square::new(file, from.rank());
                    Group::Castling
                }
                Piece::Pawn if from.file() != to.file() => match board.occupied().has(to) {
                    true => Group::PawnCapture,
                    false => Group::EnPassant,
                },
                Piece::Pawn if (from as u8).abs_diff(to as u8) == 16 => Group::PawnLeap,
                Piece::Pawn => Group::PawnStep,
                _ => Group::Piece,
            };
            let is_by_goal = matches!(group, Group::PawnStep | Group::PawnLeap);
            let first = if is_by_goal { shown } else { from };
            let last_first = |square: Square| 63 - square as u32;
            let choice = match promotion {
                Some(Piece::Rook) => 1,
                Some(Piece::Bishop) => 2,
                Some(Piece::Knight) => 3,
                _ => 0,
            };
            let key = (group as u32) << 24 | last_first(first) << 16 | last_first(shown) << 8 | choice;
            let ([a, b], [c, d]) = (name(from), name(shown));
            let (e, uci_len) = promotion.map_or((0, 4), |piece| (letter(piece), 5));
            plays.push(Play { step, uci: [a, b, c, d, e], uci_len, group, key });
        }
        false
    });
    plays.sort_unstable_by_key(|play| play.key);
}

/// What is wrong with a FEN.
fn said(error: FenParseError) -> String {
    match error {
        FenParseError::InvalidBoard => "its pieces can't stand like this".to_owned(),
        FenParseError::InvalidSideToMove => "the second field must be w or b".to_owned(),
        FenParseError::InvalidCastlingRights => "the third field has rights that king and rooks don't have".to_owned(),
        FenParseError::InvalidEnPassant => {
            "the fourth field must be - or the square that a pawn has leapt over".to_owned()
        }
        other => other.to_string(),
    }
}

/// A number as FEN writes it.
fn whole(text: &str) -> Option<u64> {
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok())?
}

fn letter(piece: Piece) -> u8 {
    match piece {
        Piece::Pawn => b'p',
        Piece::Knight => b'n',
        Piece::Bishop => b'b',
        Piece::Rook => b'r',
        Piece::Queen => b'q',
        Piece::King => b'k',
    }
}

fn name(square: Square) -> [u8; 2] {
    [b'a' + square.file() as u8, b'1' + square.rank() as u8]
}

fn write_square(square: Square, out: &mut Vec<u8>) {
    out.extend_from_slice(&name(square));
}
