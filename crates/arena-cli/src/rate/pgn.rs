//! Results in Portable Game Notation. The tags name the players and the result. The parser uses moves only to compare
//! games, and skips comments.
//!
//! Source: S. J. Edwards, *Portable Game Notation Specification and Implementation Guide* (1994), sections 3 to 8. The
//! parser accepts the specification's import format: any line ends, several tags on a line, tags without moves, and
//! text that isn't UTF-8.

use std::borrow::Cow;
use std::io::{self, BufRead, Read};

/// The maximum number of bytes per read; longer lines are read in pieces. Tags are far shorter, and moves may be split
/// anywhere.
const PIECE: u64 = 64 << 10;

/// The results that may follow the moves.
const RESULTS: [&str; 4] = ["1-0", "0-1", "1/2-1/2", "*"];

/// The names of the tags that a rating uses.
const TAGS: [&str; 5] = ["White", "Black", "Result", "Seed", "FEN"];

/// The tags of a game that a rating uses.
#[derive(Debug, Default)]
pub struct Tags {
    /// The values of [`TAGS`]; a missing tag is empty.
    values: [Vec<u8>; TAGS.len()],
    /// For each of [`TAGS`]: true if the game has the tag.
    has: [bool; TAGS.len()],
    /// The text after the tags, without spaces and comments.
    moves: Vec<u8>,
}

impl Tags {
    /// Returns the name of White, or of the first player in games without White.
    pub fn white(&self) -> Cow<'_, str> {
        text(&self.values[0])
    }

    /// Returns the name of Black, or of the second player in games without Black.
    pub fn black(&self) -> Cow<'_, str> {
        text(&self.values[1])
    }

    /// Returns the result: `1-0`, `0-1`, `1/2-1/2`, or `*` for an unfinished game.
    pub fn result(&self) -> Cow<'_, str> {
        text(&self.values[2])
    }

    /// Returns the game's seed; empty if the game has none.
    pub fn seed(&self) -> Cow<'_, str> {
        text(&self.values[3])
    }

    /// Returns the starting position (empty for the usual one) and the moves, for comparison with other games; `None` if
    /// the game has no moves.
    pub fn moves(&self) -> Option<(&[u8], &[u8])> {
        let is_end = self.moves.is_empty() || RESULTS.iter().any(|result| result.as_bytes() == self.moves);
        (!is_end).then_some((&self.values[4], &self.moves))
    }

    /// Returns the result after the last move, if it isn't that of the tag.
    pub fn other_result(&self) -> Option<&'static str> {
        let last = RESULTS.into_iter().find(|result| self.moves.ends_with(result.as_bytes()));
        last.filter(|last| !self.values[2].is_empty() && last.as_bytes() != self.values[2])
    }

    fn clear(&mut self) {
        self.has = Default::default();
        self.moves.clear();
        self.values.iter_mut().for_each(Vec::clear);
    }
}

/// The parser's state at the end of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// The file ends outside of tags and comments.
    Whole,
    InTag,
    /// The file ends in a comment. Contains the number, from 1, of the line on which the comment begins.
    InComment(usize),
}

/// Passes the tags of each game to `game`, and returns the state at the end of the file.
///
/// # Errors
/// If the file can't be read, or `game` fails.
pub fn read<E: From<io::Error>>(
    mut from: impl BufRead,
    mut game: impl FnMut(&Tags) -> Result<(), E>,
) -> Result<End, E> {
    let mut scan = Scan::default();
    let mut piece = Vec::new();
    let (mut line, mut begins) = (1, true);
    while from.by_ref().take(PIECE).read_until(b'\n', &mut piece)? > 0 {
        let left = scan.piece(&piece, begins, line, &mut game)?;
        begins = piece.ends_with(b"\n");
        line += usize::from(begins);
        piece.drain(..piece.len() - left);
    }
    // The remaining text is an incomplete tag.
    let is_cut = !piece.is_empty();
    if !is_cut || scan.tags.has[..3] == [true; 3] {
        scan.end_game(&mut game)?;
    }
    Ok(match scan.within {
        Within::Comment(line) => End::InComment(line),
        _ if is_cut => End::InTag,
        _ => End::Whole,
    })
}

/// Returns true if a file that starts with `start` is PGN: a tag follows the byte order mark, comments and blank lines,
/// if any.
pub fn is_pgn(start: &[u8]) -> bool {
    let mut rest = start.strip_prefix(b"\xef\xbb\xbf").unwrap_or(start).trim_ascii_start();
    while let [b'%' | b';', ..] = rest {
        let end = rest.iter().position(|byte| *byte == b'\n').unwrap_or(rest.len());
        rest = rest[end..].trim_ascii_start();
    }
    parse_tag(rest).is_some()
}

/// The state of the parser.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Within {
    /// Outside of comments: tags or moves.
    #[default]
    Text,
    /// A comment in braces that begins on this line.
    Comment(usize),
    /// A comment to the end of the line.
    Rest,
}

#[derive(Debug, Default)]
struct Scan {
    within: Within,
    tags: Tags,
    has_tags: bool,
    /// True if text other than tags has followed the game's tags, so the next tag belongs to another game.
    has_moves: bool,
}

impl Scan {
    /// Parses a line or a piece of one. If the piece ends with an incomplete tag, returns the length of that tag: the
    /// caller passes these bytes again, together with more of the line.
    fn piece<E>(
        &mut self,
        piece: &[u8],
        begins: bool,
        line: usize,
        game: &mut impl FnMut(&Tags) -> Result<(), E>,
    ) -> Result<usize, E> {
        let mut rest = if line == 1 && begins { piece.strip_prefix(b"\xef\xbb\xbf").unwrap_or(piece) } else { piece };
        if begins && self.within == Within::Text && rest.starts_with(b"%") {
            self.within = Within::Rest;
        }
        while !rest.is_empty() {
            match self.within {
                Within::Comment(_) => match rest.iter().position(|byte| *byte == b'}') {
                    None => return Ok(0),
                    Some(end) => {
                        self.within = Within::Text;
                        rest = &rest[end + 1..];
                    }
                },
                Within::Rest => {
                    if rest.ends_with(b"\n") {
                        self.within = Within::Text;
                    }
                    return Ok(0);
                }
                Within::Text => {
                    let end = rest.iter().position(|byte| matches!(byte, b'{' | b';' | b'[')).unwrap_or(rest.len());
                    self.has_moves |= self.has_tags && !rest[..end].trim_ascii().is_empty();
                    if self.has_tags {
                        self.tags.moves.extend(rest[..end].iter().filter(|byte| !byte.is_ascii_whitespace()));
                    }
                    rest = &rest[end..];
                    match rest.first() {
                        None => return Ok(0),
                        Some(b'{') => self.within = Within::Comment(line),
                        Some(b';') => self.within = Within::Rest,
                        Some(_) => match parse_tag(rest) {
                            Some((name, value, behind)) => {
                                self.tag(name, value, game)?;
                                rest = behind;
                                continue;
                            }
                            None if !rest.ends_with(b"\n") && (rest.len() as u64) < PIECE => return Ok(rest.len()),
                            // The bracket doesn't begin a tag.
                            None => self.has_moves |= self.has_tags,
                        },
                    }
                    rest = &rest[1..];
                }
            }
        }
        Ok(0)
    }

    fn tag<E>(&mut self, name: &[u8], value: &[u8], game: &mut impl FnMut(&Tags) -> Result<(), E>) -> Result<(), E> {
        let place = TAGS.iter().position(|tag| tag.as_bytes() == name);
        // A repeated tag begins another game too, since games without moves have no text between their tags.
        if self.has_moves || place.is_some_and(|place| self.tags.has[place]) {
            self.end_game(game)?;
        }
        self.has_tags = true;
        if let Some(place) = place {
            unescape(value, &mut self.tags.values[place]);
            self.tags.has[place] = true;
        }
        Ok(())
    }

    fn end_game<E>(&mut self, game: &mut impl FnMut(&Tags) -> Result<(), E>) -> Result<(), E> {
        if self.has_tags {
            game(&self.tags)?;
        }
        self.tags.clear();
        (self.has_tags, self.has_moves) = (false, false);
        Ok(())
    }
}

/// Parses the tag at the beginning of a text. Returns its name, its raw value and the rest of the text.
fn parse_tag(text: &[u8]) -> Option<(&[u8], &[u8], &[u8])> {
    let text = text.strip_prefix(b"[")?.trim_ascii_start();
    let end = text.iter().position(|byte| !(byte.is_ascii_alphanumeric() || b"_+#=:-".contains(byte)))?;
    let (name, text) = text.split_at(end);
    let text = text.trim_ascii_start().strip_prefix(b"\"")?;
    let mut end = 0;
    while *text.get(end)? != b'"' {
        end += if text[end] == b'\\' { 2 } else { 1 };
    }
    let behind = text[end + 1..].trim_ascii_start();
    (!name.is_empty()).then_some((name, &text[..end], behind.strip_prefix(b"]")?))
}

/// Replaces the two escape sequences of a value, `\"` and `\\`.
fn unescape(value: &[u8], to: &mut Vec<u8>) {
    to.clear();
    let mut bytes = value.iter().copied().peekable();
    while let Some(byte) = bytes.next() {
        let escaped = bytes.next_if(|next| byte == b'\\' && matches!(next, b'"' | b'\\'));
        to.push(escaped.unwrap_or(byte));
    }
}

/// Decodes bytes as UTF-8, or else as Latin-1, which the specification requires.
fn text(bytes: &[u8]) -> Cow<'_, str> {
    match std::str::from_utf8(bytes) {
        Ok(text) => Cow::Borrowed(text),
        Err(_) => Cow::Owned(bytes.iter().map(|byte| char::from(*byte)).collect()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the games of a text. Parses it at once and byte by byte, and asserts that both results are equal.
    #[track_caller]
    fn games(pgn: impl AsRef<[u8]>) -> String {
        let list = |from: &mut dyn BufRead| {
            let mut list = String::new();
            let end = read(from, |tags| {
                list += &format!("{} - {}: {}\n", tags.white(), tags.black(), tags.result());
                Ok::<(), io::Error>(())
            });
            list + &format!("{:?}\n", end.unwrap())
        };
        let pgn = pgn.as_ref();
        let whole = list(&mut &*pgn);
        assert_eq!(list(&mut io::BufReader::with_capacity(1, pgn)), whole);
        whole
    }

    #[test]
    fn moves_and_comments_are_skipped() {
        let pgn = b"[Event \"x\"]\n[White \"a\"]\n[Black \"b\"]\n[Result \"1-0\"]\n\n1. e4 {[White \"c\"]\n[Result \"0-1\"]\n} e5 \
            (1... c5 $1) ; [Black \"d\"] {\n2. Qh5 1-0\n\n[White \"b\"]\n[Black \"a\"]\n[Result \"*\"]\n\n*\n";
        assert_eq!(games(pgn), "a - b: 1-0\nb - a: *\nWhole\n");
    }

    #[test]
    fn names_may_be_anything() {
        let pgn = b"[White \"Sven \\\"the\\\\ax\\\" []{;\"]\n[Black \"J\xf6rg\"]\n[Result \"0-1\"]\n\n0-1\n\n\
            [White \"J\xc3\xb6rg\"][ Black  \"\" ] [Result \"1/2-1/2\"]\n1/2-1/2";
        assert_eq!(games(pgn), "Sven \"the\\ax\" []{; - Jörg: 0-1\nJörg - : 1/2-1/2\nWhole\n");
    }

    #[test]
    fn line_ends_marks_and_escaped_lines_make_no_difference() {
        let pgn =
            b"\xef\xbb\xbf[White \"a\"]\r\n[Black \"b\"]\r\n[Result \"1-0\"]\r\n\r\n% [White \"x\"]\r\n1. e4 1-0\r\n";
        assert_eq!(games(pgn), "a - b: 1-0\nWhole\n");
    }

    #[test]
    fn games_need_no_moves_between_them() {
        let pgn = b"[White \"a\"]\n[Black \"b\"]\n[Result \"1-0\"]\n[White \"a\"]\n[Black \"c\"]\n[Result \"0-1\"]\n";
        assert_eq!(games(pgn), "a - b: 1-0\na - c: 0-1\nWhole\n");
    }

    #[test]
    fn a_file_that_ends_early_is_recognized() {
        let game = "[White \"a\"]\n[Black \"b\"]\n[Result \"1-0\"]\n\n1. e4 1-0\n\n";
        for (more, expected) in [
            ("[Whi", "InTag"),
            ("[White \"c\"]\n[Black \"d", "InTag"),
            ("[White \"c\"]\n[Black \"d\"]\n[Result \"0-1\"]\n[WhiteElo \"1", "c - d: 0-1\nInTag"),
            (
                "[White \"c\"]\n[Black \"d\"]\n[Result \"1-0\"]\n1. e4 {never\nclosed\n[White \"e\"]\n",
                "c - d: 1-0\nInComment(10)",
            ),
        ] {
            assert_eq!(games(format!("{game}{more}")), format!("a - b: 1-0\n{expected}\n"), "{more}");
        }
    }

    #[test]
    fn a_line_may_be_longer_than_memory_likes() {
        let mut pgn = b"[White \"a\"]\n[Black \"b\"]\n[Result \"1-0\"]\n\n".to_vec();
        pgn.extend(b"1. e4 {x} ".repeat(100_000));
        pgn.extend(b"{ [White \"c\"] } 1-0 [White \"d\"] [Black \"e\"] [Result \"0-1\"]");
        assert_eq!(games(pgn), "a - b: 1-0\nd - e: 0-1\nWhole\n");
    }

    #[test]
    fn pgn_begins_with_a_tag() {
        for (start, is) in [
            (&b"[Event \"x\"]"[..], true),
            (b"\xef\xbb\xbf\r\n% made by\n; hand\n [White \"a\"]", true),
            (b"[package]\nname = \"x\"", false),
            (b"[1, 2]", false),
            (b"{\"a\": 1}", false),
            (b"", false),
        ] {
            assert_eq!(is_pgn(start), is, "{}", String::from_utf8_lossy(start));
        }
    }
}
