//! Opening books of chess: positions in EPD or FEN, and the first moves of games in PGN. Pure.
//!
//! Source: S. J. Edwards, *Portable Game Notation Specification and Implementation Guide* (1994), sections 8 and 16.

use std::fmt;
use std::str::FromStr;

use cozy_chess::util::{display_uci_move, parse_uci_move};
use cozy_chess::{Board, File, Move, Piece, Rank, Square};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BookFormat {
    /// One position on each line: EPD, or FEN.
    Epd,
    /// Games with moves.
    Pgn,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Opening {
    /// The line of the book, from 1, on which the position or the game begins.
    pub line: usize,
    pub fen: String,
}

/// The error for an opening that can't be read, as shown to the user.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {what}")]
pub struct OpeningError {
    /// The line of the book, from 1.
    pub line: usize,
    pub what: String,
}

impl FromStr for BookFormat {
    type Err = String;

    fn from_str(text: &str) -> Result<BookFormat, String> {
        match text {
            "epd" => Ok(BookFormat::Epd),
            "pgn" => Ok(BookFormat::Pgn),
            _ => Err(format!("the format of a book is epd or pgn, not `{text}`")),
        }
    }
}

impl fmt::Display for BookFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            BookFormat::Epd => "epd",
            BookFormat::Pgn => "pgn",
        })
    }
}

/// Returns the openings of a book. From a game in PGN, the position after at most `plies` moves of either side.
///
/// # Errors
/// [`OpeningError`] for the first opening that isn't a position, or has an illegal move.
pub fn read_openings(text: &str, format: BookFormat, plies: usize) -> Result<Vec<Opening>, OpeningError> {
    match format {
        BookFormat::Epd => read_epd(text),
        BookFormat::Pgn => read_pgn(text, plies),
    }
}

fn read_epd(text: &str) -> Result<Vec<Opening>, OpeningError> {
    let mut openings = Vec::new();
    let lines = text.trim_start_matches('\u{feff}').lines().map(str::trim).zip(1..);
    for (text, line) in lines.filter(|(text, _)| !text.is_empty() && !text.starts_with('#')) {
        let fields: Vec<&str> = text.split_ascii_whitespace().collect();
        let is_number = |at: usize| fields.get(at).is_some_and(|field| field.parse::<u32>().is_ok());
        let fen = match fields.get(..4) {
            Some(first) if is_number(4) && is_number(5) => format!("{} {} {}", first.join(" "), fields[4], fields[5]),
            Some(first) => format!("{} {}", first.join(" "), counters(text)),
            None => text.to_owned(),
        };
        let board = board(&fen).map_err(|what| OpeningError { line, what })?;
        openings.push(Opening { line, fen: board.to_string() });
    }
    Ok(openings)
}

/// Returns the counters of a FEN from the operations `hmvc` and `fmvn` of an EPD. Texts in quotes are no operations.
fn counters(epd: &str) -> String {
    // The parts outside of quotes. An operation ends at a semicolon.
    let unquoted: Vec<&str> = epd.split('"').step_by(2).collect();
    let unquoted = unquoted.join("\"");
    let value = |name: &str, usual: u32| {
        let mut operations = unquoted.split(';').map(str::split_ascii_whitespace);
        // The first operation follows the four fields of the position.
        let first = operations.next().into_iter().map(|words| words.skip(4).collect::<Vec<&str>>());
        let mut each = first.chain(operations.map(Iterator::collect));
        let value = each.find_map(|words| (words.first() == Some(&name)).then(|| words.get(1)?.parse::<u32>().ok()));
        value.flatten().unwrap_or(usual)
    };
    format!("{} {}", value("hmvc", 0), value("fmvn", 1))
}

fn board(fen: &str) -> Result<Board, String> {
    Board::from_fen(fen, false).map_err(|error| format!("`{fen}` isn't a position: {error}"))
}

/// A part of a game in PGN.
#[derive(Debug, PartialEq, Eq)]
enum Token<'t> {
    Tag(&'t str, String),
    Word(&'t str),
    /// The end of a game, such as `1-0`.
    End,
}

fn read_pgn(text: &str, plies: usize) -> Result<Vec<Opening>, OpeningError> {
    let (mut openings, mut rest) = (Vec::new(), text);
    // The board of the game, the number of moves so far, and the line on which the game has begun.
    let (mut board, mut played, mut begun) = (Board::default(), 0, None);
    // The line of the last token, and the number of bytes that were read.
    let (mut line, mut seen) = (1, 0);
    loop {
        let token = next_token(&mut rest);
        let at = text.len() - rest.len();
        line += text[seen..at].matches('\n').count();
        seen = at;
        let wrong = |what: String| OpeningError { line, what };
        let token = token.map_err(wrong)?;
        // The tags of the next game also end a game without a result.
        let is_end = match &token {
            None | Some(Token::End) => true,
            Some(Token::Tag(..)) => played > 0,
            Some(Token::Word(_)) => false,
        };
        if is_end && let Some(begun) = begun.take() {
            openings.push(Opening { line: begun, fen: board.to_string() });
            (board, played) = (Board::default(), 0);
        }
        match token {
            None => return Ok(openings),
            Some(Token::End) => {}
            Some(Token::Tag(name, value)) => {
                begun.get_or_insert(line);
                if name == "Variant" && !is_standard(&value) {
                    return Err(wrong(format!("its variant is `{value}`, but only standard chess can be played")));
                }
                if name == "FEN" {
                    board = self::board(&value).map_err(wrong)?;
                }
            }
            Some(Token::Word(san)) => {
                begun.get_or_insert(line);
                if played < plies {
                    let play =
                        read_san(&board, san).ok_or_else(|| wrong(format!("`{san}` isn't a legal move in {board}")))?;
                    board.play_unchecked(play);
                    played += 1;
                }
            }
        }
    }
}

/// Returns true if the value of a tag `Variant` names standard chess, perhaps from another position.
fn is_standard(variant: &str) -> bool {
    ["standard", "chess", "normal", "from position"].iter().any(|name| variant.trim().eq_ignore_ascii_case(name))
}

/// Returns true if a word is an annotation, such as `$14`, `!?`, `+-` or `±`. `--` stands for a move in some programs.
fn is_annotation(word: &str) -> bool {
    let is_glyph = |char: char| !char.is_ascii() || matches!(char, '+' | '-' | '=' | '/' | '~' | '#');
    word.starts_with(['$', '!', '?']) || word != "--" && word.chars().all(is_glyph)
}

/// Removes the next token from a text of PGN. Skips comments, variations, move numbers and annotations.
fn next_token<'t>(rest: &mut &'t str) -> Result<Option<Token<'t>>, String> {
    let mut depth = 0_usize;
    loop {
        *rest = rest.trim_start_matches(|char: char| char.is_whitespace() || char == '\u{feff}' || char == '.');
        let text = *rest;
        let Some(first) = text.chars().next() else {
            return if depth == 0 { Ok(None) } else { Err("a variation isn't closed".to_owned()) };
        };
        let skip_past = |end: char, what: &str| match text.find(end) {
            Some(at) => Ok(&text[at + end.len_utf8()..]),
            None => Err(format!("{what} isn't closed")),
        };
        match first {
            '{' => *rest = skip_past('}', "a comment")?,
            ';' | '%' => *rest = text.find('\n').map_or("", |at| &text[at..]),
            '(' => (depth, *rest) = (depth + 1, &text[1..]),
            ')' if depth > 0 => (depth, *rest) = (depth - 1, &text[1..]),
            '[' if depth == 0 => {
                let (tag, after) = read_tag(text)
                    .ok_or_else(|| format!("`{}` isn't a tag", text.lines().next().unwrap_or_default()))?;
                *rest = after;
                return Ok(Some(tag));
            }
            _ => {
                let is_end =
                    |char: char| char.is_whitespace() || matches!(char, '{' | '}' | '(' | ')' | ';' | '[' | ']');
                let length = text.find(is_end).unwrap_or(text.len()).max(first.len_utf8());
                let (word, after) = text.split_at(length);
                *rest = after;
                if depth > 0 {
                    continue;
                }
                if matches!(word, "1-0" | "0-1" | "1/2-1/2" | "*") {
                    return Ok(Some(Token::End));
                }
                // A move may follow its number without a blank: `1.e4`, `1...e5`.
                let digits = word.trim_start_matches(|char: char| char.is_ascii_digit());
                let san = match digits.strip_prefix('.') {
                    Some(san) => san.trim_start_matches('.'),
                    None if digits.is_empty() => "",
                    None => word,
                };
                if !san.is_empty() && !is_annotation(san) {
                    return Ok(Some(Token::Word(san)));
                }
            }
        }
    }
}

/// Parses the tag at the start of a text. Returns it and the rest of the text.
fn read_tag(text: &str) -> Option<(Token<'_>, &str)> {
    let (name, rest) = text.strip_prefix('[')?.split_once('"')?;
    let (mut value, mut chars) = (String::new(), rest.char_indices());
    while let Some((at, char)) = chars.next() {
        match char {
            '\\' => value.extend(chars.next().map(|(_, char)| char)),
            '"' => {
                let after = rest[at + 1..].trim_start().strip_prefix(']')?;
                return Some((Token::Tag(name.trim(), value), after));
            }
            '\n' => return None,
            char => value.push(char),
        }
    }
    None
}

/// Finds the legal move that a text in standard algebraic notation means. Superfluous coordinates, castling with zeros,
/// a promotion without `=`, and UCI notation are accepted.
fn read_san(board: &Board, san: &str) -> Option<Move> {
    let is_glyph = |char: char| !char.is_ascii() || matches!(char, '+' | '#' | '!' | '?' | '-' | '=' | '/' | '~');
    let san = san.trim_end_matches(is_glyph);
    let legal = |play: &Move| board.is_legal(*play);
    let king = board.king(board.side_to_move());
    let rook_file = match san {
        "O-O" | "0-0" => board.castle_rights(board.side_to_move()).short,
        "O-O-O" | "0-0-0" => board.castle_rights(board.side_to_move()).long,
        _ => {
            return find_move(board, san)
                .or_else(|| parse_uci_move(board, san).ok().filter(legal))
                // The king's move is no notation of castling, but some programs write it.
                .filter(|play| display_uci_move(board, *play).to_string().len() >= 4);
        }
    };
    let rook = Square::new(rook_file?, king.rank());
    Some(Move { from: king, to: rook, promotion: None }).filter(legal)
}

/// Finds the only legal move of the piece, to the square, and from the coordinates in a text such as `Nbxd2` or `e8=Q`.
fn find_move(board: &Board, san: &str) -> Option<Move> {
    let (piece, rest) = match san.chars().next()? {
        'N' => (Piece::Knight, &san[1..]),
        'B' => (Piece::Bishop, &san[1..]),
        'R' => (Piece::Rook, &san[1..]),
        'Q' => (Piece::Queen, &san[1..]),
        'K' => (Piece::King, &san[1..]),
        _ => (Piece::Pawn, san),
    };
    let (rest, promotion) = match rest.chars().last()? {
        'N' => (&rest[..rest.len() - 1], Some(Piece::Knight)),
        'B' => (&rest[..rest.len() - 1], Some(Piece::Bishop)),
        'R' => (&rest[..rest.len() - 1], Some(Piece::Rook)),
        'Q' => (&rest[..rest.len() - 1], Some(Piece::Queen)),
        _ => (rest, None),
    };
    let rest = rest.trim_end_matches('=');
    let to: Square = rest.get(rest.len().checked_sub(2)?..)?.parse().ok()?;
    let (mut file, mut rank): (Option<File>, Option<Rank>) = (None, None);
    for char in rest[..rest.len() - 2].chars() {
        match char {
            'x' | '-' | ':' => {}
            'a'..='h' if file.is_none() => file = char.to_string().parse().ok(),
            '1'..='8' if rank.is_none() => rank = char.to_string().parse().ok(),
            _ => return None,
        }
    }
    let mut found = Vec::new();
    let own = board.colors(board.side_to_move());
    board.generate_moves(|moves| {
        let fits = moves.piece == piece
            && file.is_none_or(|file| moves.from.file() == file)
            && rank.is_none_or(|rank| moves.from.rank() == rank);
        // A king's move to an own rook is castling.
        found.extend(
            moves.into_iter().filter(|play| fits && play.to == to && play.promotion == promotion && !own.has(play.to)),
        );
        false
    });
    match found[..] {
        [play] => Some(play),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;

    #[track_caller]
    fn check(text: &str, format: BookFormat, plies: usize, expected: Expect) {
        let shown = match read_openings(text, format, plies) {
            Ok(openings) => openings.iter().map(|opening| opening.fen.as_str()).collect::<Vec<&str>>().join("\n"),
            Err(error) => format!("error: {error}"),
        };
        expected.assert_eq(&shown);
    }

    #[test]
    fn positions_of_a_book_in_epd_or_fen() {
        check(
            "rnbqkbnr/pppppppp/8/8/4P3/8/PPPP1PPP/RNBQKBNR b KQkq - hmvc 3; fmvn 7; id \"x\";\r\n\r\n\
             8/8/8/4k3/8/8/4P3/4K3 w - - 12 34\n8/8/8/4k3/8/8/4P3/4K3 b - -\n",
            BookFormat::Epd,
            0,
            expect![[r#"
                rnbqkbnr/pppppppp/8/8/4P3/8/PPPP1PPP/RNBQKBNR b KQkq - 3 7
                8/8/8/4k3/8/8/4P3/4K3 w - - 12 34
                8/8/8/4k3/8/8/4P3/4K3 b - - 0 1"#]],
        );
        check(
            "\n8/8 w - -\n",
            BookFormat::Epd,
            0,
            expect!["error: line 2: `8/8 w - - 0 1` isn't a position: The board is invalid."],
        );
        check(
            "\u{feff}# Book of lines\n8/8/8/4k3/8/8/4P3/4K3 w - - id \"x hmvc 9; y\"; hmvc 2; fmvn 3;\n  # hmvc 5\n",
            BookFormat::Epd,
            0,
            expect!["8/8/8/4k3/8/8/4P3/4K3 w - - 2 3"],
        );
        check("hello", BookFormat::Epd, 0, expect!["error: line 1: `hello` isn't a position: The board is invalid."]);
    }

    const GAMES: &str = r#"
[Event "a \"quoted\" name"]
[Result "1-0"]

1.e4 e5 2. Nf3 {a comment with 1-0 and (brackets)} Nc6 (2... d6 3. d4 (3. Bc4)) 3. Bb5 $14 a6!? ; the rest
4. O-O 1-0

[FEN "r3k2r/1P6/8/8/8/8/8/R3K2R w KQkq - 0 1"]
[SetUp "1"]

1. b8=Q+ Kd7 2. O-O-O+ *

[Event "no moves"]

1/2-1/2
1. d4 d5
"#;

    #[test]
    fn positions_after_the_first_moves_of_games() {
        check(
            GAMES,
            BookFormat::Pgn,
            6,
            expect![[r#"
                r1bqkbnr/1ppp1ppp/p1n5/1B2p3/4P3/5N2/PPPP1PPP/RNBQK2R w KQkq - 0 4
                rQ5r/3k4/8/8/8/8/8/2KR3R b - - 2 2
                rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1
                rnbqkbnr/ppp1pppp/8/3p4/3P4/8/PPP1PPPP/RNBQKBNR w KQkq d6 0 2"#]],
        );
        check(
            "1. e4 e5 2. Nf6 *",
            BookFormat::Pgn,
            8,
            expect![
                "error: line 1: `Nf6` isn't a legal move in rnbqkbnr/pppp1ppp/8/4p3/4P3/8/PPPP1PPP/RNBQKBNR w KQkq e6 0 2"
            ],
        );
        check(
            "1. e4 ± e5 ∓ 2. Nf3 +- Nc6 -+ 3. Bb5 += a6 =/∞ 4. Ba4± Nf6+/- *",
            BookFormat::Pgn,
            8,
            expect!["r1bqkb1r/1ppp1ppp/p1n2n2/4p3/B3P3/5N2/PPPP1PPP/RNBQK2R w KQkq - 2 5"],
        );
        check(
            "1. e4 -- 2. d4 *",
            BookFormat::Pgn,
            8,
            expect![
                "error: line 1: `--` isn't a legal move in rnbqkbnr/pppppppp/8/8/4P3/8/PPPP1PPP/RNBQKBNR b KQkq e3 0 1"
            ],
        );
        check(
            "[Event \"x\"]\n\n1. e4 *\n\n[Event \"y\"]\n\n1. e4 {two\nlines} e5\n2. Nf6 *\n",
            BookFormat::Pgn,
            8,
            expect![
                "error: line 9: `Nf6` isn't a legal move in rnbqkbnr/pppp1ppp/8/4p3/4P3/8/PPPP1PPP/RNBQKBNR w KQkq e6 0 2"
            ],
        );
        check("1. e4 *\n\n1. e4\n{open", BookFormat::Pgn, 8, expect!["error: line 4: a comment isn't closed"]);
        let games = read_openings(GAMES, BookFormat::Pgn, 6).expect("games");
        assert_eq!(games.iter().map(|game| game.line).collect::<Vec<usize>>(), [2, 8, 13, 16]);
        let of_variant = |name: &str| format!("1. e4 *\n[Variant \"{name}\"]\n1. d4 *\n");
        check(
            &of_variant("Chess960"),
            BookFormat::Pgn,
            8,
            expect!["error: line 2: its variant is `Chess960`, but only standard chess can be played"],
        );
        check(
            &of_variant("Standard"),
            BookFormat::Pgn,
            8,
            expect![[r#"
                rnbqkbnr/pppppppp/8/8/4P3/8/PPPP1PPP/RNBQKBNR b KQkq e3 0 1
                rnbqkbnr/pppppppp/8/8/3P4/8/PPP1PPPP/RNBQKBNR b KQkq d3 0 1"#]],
        );
        check("[Event \"x", BookFormat::Pgn, 8, expect![[r#"error: line 1: `[Event "x` isn't a tag"#]]);
        check("1. e4 {open", BookFormat::Pgn, 8, expect!["error: line 1: a comment isn't closed"]);
        check("1. e4 (e5", BookFormat::Pgn, 8, expect!["error: line 1: a variation isn't closed"]);
        check(
            ") ( ] }",
            BookFormat::Pgn,
            8,
            expect![
                "error: line 1: `)` isn't a legal move in rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1"
            ],
        );
    }

    #[test]
    fn notation_is_read_as_programs_write_it() {
        let find = |fen: &str, san: &str| {
            let board = Board::from_fen(fen, false).unwrap();
            read_san(&board, san).map(|play| display_uci_move(&board, play).to_string()).unwrap_or_default()
        };
        let knights = "4k3/8/8/8/8/1N3N2/8/4K3 w - - 0 1";
        for (fen, san, uci) in [
            (knights, "Nbd2", "b3d2"),
            (knights, "Nf3d2", "f3d2"),
            (knights, "Nd2", ""),
            (knights, "Kd2", "e1d2"),
            (knights, "f3d2", "f3d2"),
            ("4k3/8/8/8/8/8/8/R3K2R w KQ - 0 1", "0-0-0", "e1c1"),
            ("4k3/8/8/8/8/8/8/R3K2R w KQ - 0 1", "O-O+", "e1g1"),
            ("4k3/8/8/8/8/8/8/R3K2R w - - 0 1", "O-O", ""),
            ("4k3/8/8/8/8/8/8/R3K2R w KQ - 0 1", "e1g1", "e1g1"),
            ("4k3/8/8/8/8/8/8/R3K2R w KQ - 0 1", "Kh1", ""),
            ("3rk3/4P3/8/8/8/8/8/4K3 w - - 0 1", "exd8N", "e7d8n"),
            ("3rk3/4P3/8/8/8/8/8/4K3 w - - 0 1", "exd8=Q#", "e7d8q"),
            ("3rk3/4P3/8/8/8/8/8/4K3 w - - 0 1", "exd8", ""),
            ("4k3/8/8/3pP3/8/8/8/4K3 w - d6 0 1", "exd6", "e5d6"),
            ("4k3/8/8/3pP3/8/8/8/4K3 w - d6 0 1", "\u{e9}4", ""),
            ("4k3/8/8/3pP3/8/8/8/4K3 w - d6 0 1", "N", ""),
            ("4k3/8/8/3pP3/8/8/8/4K3 w - d6 0 1", "K\u{e9}\u{e9}", ""),
        ] {
            assert_eq!(find(fen, san), uci, "{san}");
        }
    }
}
