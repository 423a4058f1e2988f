//! The options of chess tournaments: openings and adjudication.

use std::fmt::Display;
use std::fs;
use std::path::Path;

use arena_match::openings::{BookFormat, Opening, read_openings};
use arena_model::{Adjudication, DrawRule, ResignRule, Seed};
use arena_tournament::Openings;

use super::args::TournamentArgs;
use crate::exit::Failure;

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
                return Err(Failure::usage(format_args!(
                    "{option}: expected KEY=VALUE with the keys {keys}, not `{text}`"
                )));
            };
            if !known.contains(&key) {
                return Err(Failure::usage(format_args!("{option}: there is no key `{key}`; the keys are {keys}")));
            }
            if pairs.iter().any(|(other, _)| *other == key) {
                return Err(Failure::usage(format_args!("{option}: `{key}` is given twice")));
            }
            pairs.push((key, value));
        }
        Ok(Values { option, pairs })
    }

    fn find(&self, key: &str) -> Option<&'a str> {
        self.pairs.iter().find(|(other, _)| *other == key).map(|(_, value)| *value)
    }

    /// Returns true for the value `yes`, and false for `no` or without the key.
    fn is(&self, key: &str, yes: &str, no: &str) -> Result<bool, Failure> {
        match self.find(key) {
            None => Ok(false),
            Some(text) if text == yes || text == no => Ok(text == yes),
            Some(text) => {
                let option = self.option;
                Err(Failure::usage(format_args!("{option}: `{key}` must be {yes} or {no}, not `{text}`")))
            }
        }
    }

    /// Returns a whole number of at least `least`; `usual` if the key is missing.
    fn number(&self, key: &str, least: u32, usual: Option<u32>) -> Result<u32, Failure> {
        let option = self.option;
        match (self.find(key), usual) {
            (None, Some(usual)) => Ok(usual),
            (None, None) => Err(Failure::usage(format_args!("{option}: `{key}` is missing"))),
            (Some(text), _) => text.parse().ok().filter(|number| *number >= least).ok_or_else(|| {
                Failure::usage(format_args!("{option}: `{key}` must be a whole number from {least}, not `{text}`"))
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
                two_sided: values.is("twosided", "true", "false")?,
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
    let book = Book::of(&args.openings)?;
    let mut openings = book.read(seed)?;
    openings.truncate(meetings.clamp(1, MAX_OPENINGS));
    for Opening { line, fen } in &openings {
        check(fen).map_err(|failure| book.unreadable_at(*line, failure.sentence()))?;
    }
    let path = Path::new(book.file);
    let absolute = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let words = book.values.pairs.iter().map(|(key, value)| match *key {
        "file" => format!("file={}", absolute.display()),
        key => format!("{key}={value}"),
    });
    let positions = openings.into_iter().map(|opening| opening.fen).collect();
    Ok(Some(Openings { book: words.collect::<Vec<_>>().join(","), positions }))
}

/// An opening book and its use, from the values of `--openings`.
struct Book<'a> {
    values: Values<'a>,
    file: &'a str,
    format: BookFormat,
    plies: usize,
    /// The number of the first opening, from 1.
    start: usize,
    is_random: bool,
}

impl<'a> Book<'a> {
    fn of(texts: &'a [String]) -> Result<Book<'a>, Failure> {
        let values = Values::of("--openings", texts, &["file", "format", "order", "plies", "start"])?;
        let file =
            values.find("file").ok_or_else(|| Failure::usage("--openings: `file` is missing, as in file=book.epd"))?;
        let extension = Path::new(file).extension().and_then(|extension| extension.to_str());
        let format: BookFormat = match (values.find("format"), extension) {
            (Some(format), _) => format.parse().map_err(|error| Failure::usage(format_args!("--openings: {error}")))?,
            (None, Some("pgn")) => BookFormat::Pgn,
            (None, _) => BookFormat::Epd,
        };
        if format == BookFormat::Epd && values.find("plies").is_some() {
            return Err(Failure::usage("--openings: `plies` is for books of the format pgn"));
        }
        let plies = values.number("plies", 1, Some(PLIES as u32))? as usize;
        let start = values.number("start", 1, Some(1))? as usize;
        let is_random = values.is("order", "random", "sequential")?;
        Ok(Book { values, file, format, plies, start, is_random })
    }

    /// Reads all openings, in the order in which they are played.
    fn read(&self, seed: &Seed) -> Result<Vec<Opening>, Failure> {
        let size = fs::metadata(self.file).map_err(|error| self.unreadable(error))?.len();
        if size > MAX_BOOK {
            let (size, most) = (size >> 20, MAX_BOOK >> 20);
            return Err(self.unreadable(format_args!("it has {size} MiB, and the limit is {most} MiB")));
        }
        let bytes = fs::read(self.file).map_err(|error| self.unreadable(error))?;
        // Old books of games have names in Latin-1; the moves are ASCII.
        let text = String::from_utf8_lossy(&bytes);
        let mut openings = read_openings(&text, self.format, self.plies)
            .map_err(|error| self.unreadable_at(error.line, &error.what))?;
        let (count, start) = (openings.len(), self.start);
        if start > count {
            return Err(self.unreadable(format_args!("it has {count} openings, and start is {start}")));
        }
        if self.is_random {
            // The first places are drawn one by one, each from the rest of the book.
            let mut rng = seed.rng("openings");
            for at in 0..count {
                openings.swap(at, at + rng.below((count - at) as u64) as usize);
            }
        }
        openings.rotate_left(start - 1);
        Ok(openings)
    }

    fn unreadable(&self, why: impl Display) -> Failure {
        Failure::usage(format_args!("the opening book {} cannot be read: {why}", self.file))
    }

    fn unreadable_at(&self, line: usize, why: &str) -> Failure {
        Failure::usage(format_args!("the opening book {}:{line} cannot be read: {why}", self.file))
    }
}
