//! `arena replay export`: to a file or to stdout. `html` exports folders for web hosts.

use std::io::{self, BufWriter, ErrorKind, Write};
use std::path::Path;

use arena_match::{OutputFile, ReplayError, export_pgn, export_reference};
use clap::ValueEnum;

use super::{explain, html, open_file};
use crate::exit::Failure;
use crate::files::cannot_write;

/// Export formats.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// The reference engine's format: one JSON line for each epoch.
    Reference,
    /// Portable Game Notation, chess only.
    Pgn,
    /// A folder for a web host: the replay with a viewer.
    Html,
}

pub fn run(file: &Path, format: Format, out: Option<&Path>) -> Result<(), Failure> {
    let write = match (format, out) {
        (Format::Reference, _) => |from, to: &mut dyn Write| export_reference(from, to).map(|_| ()),
        (Format::Pgn, _) => |from, to: &mut dyn Write| export_pgn(from, to),
        (Format::Html, Some(folder)) => return html::run(file, folder),
        (Format::Html, None) => return Err(Failure::usage("--format html needs a folder; give --out DIR")),
    };
    let from = open_file(file)?;
    let export = |to: &mut dyn Write| write(from, to);
    let Some(path) = out else {
        return match export(&mut BufWriter::new(io::stdout().lock())) {
            // If the reader closes the pipe, the export ends without an error.
            Err(ReplayError::Write(error)) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
            exported => exported.map_err(|error| explain(file, &error)),
        };
    };
    if is_same(file, path) {
        return Err(Failure::usage("--out names the replay itself; give another file"));
    }
    let cannot = |error: io::Error| cannot_write(path, &error);
    let mut to = BufWriter::new(OutputFile::create(path).map_err(cannot)?);
    export(&mut to).map_err(|error| match error {
        ReplayError::Write(error) => cannot(error),
        error => explain(file, &error),
    })?;
    to.into_inner().map_err(io::Error::from).and_then(OutputFile::keep).map_err(cannot)?;
    Ok(())
}

pub fn is_same(a: &Path, b: &Path) -> bool {
    match (a.canonicalize(), b.canonicalize()) {
        (Ok(a), Ok(b)) => a == b,
        _ => false,
    }
}
