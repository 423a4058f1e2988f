//! The options of chess tournaments: openings and adjudication.

use std::fs;
use std::path::Path;

use arena_match::openings::{BookFormat, Opening, read_openings};
use arena_model::{Adjudication, DrawRule, ResignRule, Seed};
use arena_tournament::Openings;

use crate::args::TournamentArgs;
use crate::exit::{Exit, Failure};

/// The maximum number of openings that a tournament takes from a book.
const MAX_OPENINGS: usize = 10_000;

/// The maximum size of a book, in bytes.
const MAX_BOOK: u64 = 256 << 20;

/// The number of plies from a game in PGN.
const PLIES: usize = 8;

/// The values of an option in the form `KEY=VALUE`.
struct Values<'a> {
    option: &'static str,
    pairs: Vec<(&'a str, &'a str)>,
}

impl<'a> Values<'a> {
    /// Splits the values. Each key must be one of `known`, and given once.
    fn of(option: &'static str, texts: &'a [String], known: &[&str]) -> Result<Values<'a>, Failure> {
        let mut pairs: Vec<(&str, &str)> = Vec::new();
        for text in texts {
            let keys = known.join(", ");
            let Some((key, value)) = text.split_once('=') else {
                return Err(usage(format_args!("{option}: expected KEY=VALUE with the keys {keys}, not `{text}`")));
            };
            if !known.contains(&key) {
                return Err(usage(format_args!("{option}: there is no key `{key}`; the keys are {keys}")));
            }
            if pairs.iter().any(|(other, _)| *other == key) {
                return Err(usage(format_args!("{option}: `{key}` is given twice")));
            }
            pairs.push((key, value));
        }
        Ok(Values { option, pairs })
    }

    fn find(&self, key: &str) -> Option<&'a str> {
        self.pairs.iter().find(|(other, _)| *other == key).map(|(_, value)| *value)
    }

    /// Returns a whole number of at least `least`; `usual` if the key is missing.
    fn number(&self, key: &str, least: u32, usual: Option<u32>) -> Result<u32, Failure> {
        let option = self.option;
        match (self.find(key), usual) {
            (None, Some(usual)) => Ok(usual),
            (None, None) => Err(usage(format_args!("{option}: `{key}` is missing"))),
            (Some(text), _) => text.parse().ok().filter(|number| *number >= least).ok_or_else(|| {
                usage(format_args!("{option}: `{key}` must be a whole number from {least}, not `{text}`"))
            }),
        }
    }
}

pub fn adjudication(args: &TournamentArgs) -> Result<Option<Adjudication>, Failure> {
    let draw = match &args.draw[..] {
        [] => None,
        texts => {
            let values = Values::of("--draw", texts, &["movenumber", "movecount", "score"])?;
            Some(DrawRule {
                move_number: values.number("movenumber", 0, Some(40))?.into(),
                move_count: values.number("movecount", 1, Some(8))?,
                score: values.number("score", 0, None)?.into(),
            })
        }
    };
    let resign = match &args.resign[..] {
        [] => None,
        texts => {
            let values = Values::of("--resign", texts, &["movecount", "score", "twosided"])?;
            Some(ResignRule {
                move_count: values.number("movecount", 1, Some(3))?,
                score: values.number("score", 1, None)?.into(),
                two_sided: match values.find("twosided") {
                    None | Some("false") => false,
                    Some("true") => true,
                    Some(text) => {
                        return Err(usage(format_args!("--resign: `twosided` must be true or false, not `{text}`")));
                    }
                },
            })
        }
    };
    Ok((draw.is_some() || resign.is_some()).then_some(Adjudication { draw, resign }))
}

/// Reads the openings in the arguments, at most `meetings`. `check` fails for a position from which no game can start.
pub fn openings(
    args: &TournamentArgs,
    meetings: usize,
    seed: &Seed,
    check: impl Fn(&str) -> Result<(), Failure>,
) -> Result<Option<Openings>, Failure> {
    if args.openings.is_empty() {
        return Ok(None);
    }
    let values = Values::of("--openings", &args.openings, &["file", "format", "order", "plies", "start"])?;
    let file = values.find("file").ok_or_else(|| usage("--openings: `file` is missing, as in file=book.epd"))?;
    let path = Path::new(file);
    let format: BookFormat = match (values.find("format"), path.extension().and_then(|ending| ending.to_str())) {
        (Some(format), _) => format.parse().map_err(|error| usage(format_args!("--openings: {error}")))?,
        (None, Some("pgn")) => BookFormat::Pgn,
        (None, _) => BookFormat::Epd,
    };
    if format == BookFormat::Epd && values.find("plies").is_some() {
        return Err(usage("--openings: `plies` is for books of the format pgn"));
    }
    let plies = values.number("plies", 1, Some(PLIES as u32))? as usize;
    let start = values.number("start", 1, Some(1))? as usize;
    let is_random = match values.find("order") {
        None | Some("sequential") => false,
        Some("random") => true,
        Some(order) => {
            return Err(usage(format_args!("--openings: `order` must be random or sequential, not `{order}`")));
        }
    };
    let unreadable = |why: String| usage(format_args!("the opening book {file} cannot be read: {why}"));
    let size = fs::metadata(path).map_err(|error| unreadable(error.to_string()))?.len();
    if size > MAX_BOOK {
        return Err(unreadable(format!("it has {} MiB, and the limit is {} MiB", size >> 20, MAX_BOOK >> 20)));
    }
    let bytes = fs::read(path).map_err(|error| unreadable(error.to_string()))?;
    // Old books of games have names in Latin-1; the moves are ASCII.
    let text = String::from_utf8_lossy(&bytes);
    let wrong_at = |line: usize, why: &str| usage(format_args!("the opening book {file}:{line} cannot be read: {why}"));
    let mut book = read_openings(&text, format, plies).map_err(|error| wrong_at(error.line, &error.what))?;
    if start > book.len() {
        return Err(unreadable(format!("it has {} openings, and start is {start}", book.len())));
    }
    if is_random {
        // The first places are drawn one by one, each from the rest of the book.
        let mut rng = seed.rng("openings");
        for at in 0..book.len() {
            let other = at + rng.below((book.len() - at) as u64) as usize;
            book.swap(at, other);
        }
    }
    book.rotate_left(start - 1);
    book.truncate(meetings.clamp(1, MAX_OPENINGS));
    for Opening { line, fen } in &book {
        check(fen).map_err(|failure| wrong_at(*line, failure.sentence()))?;
    }
    let absolute = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let words = values.pairs.iter().map(|(key, value)| match *key {
        "file" => format!("file={}", absolute.display()),
        key => format!("{key}={value}"),
    });
    let positions = book.into_iter().map(|opening| opening.fen).collect();
    Ok(Some(Openings { book: words.collect::<Vec<_>>().join(","), positions }))
}

fn usage(sentence: impl std::fmt::Display) -> Failure {
    Failure::new(Exit::Usage, sentence)
}
