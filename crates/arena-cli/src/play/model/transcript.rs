//! The transcript of a language model's play: a JSON line for each event, with its time. The file is readable by its
//! owner only, since it contains the seat's secrets.

use std::fmt;
use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use arena_engine::Environment;
use arena_match::open_direct;
use arena_players::http::HttpSeat;
use serde_json::{Value, json};

use crate::exit::Failure;
use crate::files::cannot_write;

pub struct Transcript {
    path: Option<PathBuf>,
    file: Option<File>,
}

impl Transcript {
    /// Creates the transcript file at `path`. Without a path, [`Transcript::open`] creates a file later. No file is
    /// ever overwritten.
    ///
    /// # Errors
    /// If the file can't be created, or exists.
    pub fn of(path: Option<&Path>) -> Result<Transcript, Failure> {
        let file = path.map(|path| create(path).map_err(|error| cannot_write(path, &error))).transpose()?;
        Ok(Transcript { path: path.map(Path::to_owned), file })
    }

    /// Creates the file for a seat, unless a file is open already. The name is `play-SESSION-seatN.jsonl`, with a
    /// number appended if that file exists.
    ///
    /// # Errors
    /// If the file can't be created.
    pub fn open(&mut self, seat: &HttpSeat) -> Result<(), Failure> {
        if self.file.is_some() {
            return Ok(());
        }
        // A foreign server's session ids may contain anything.
        let session: String =
            seat.session.chars().filter(|char| char.is_ascii_alphanumeric() || *char == '-').take(64).collect();
        let seat = seat.number().map(|number| format!("-seat{number}")).unwrap_or_default();
        for number in 1.. {
            let again = if number == 1 { String::new() } else { format!("-{number}") };
            let path = PathBuf::from(format!("play-{session}{seat}{again}.jsonl"));
            match create(&path) {
                Ok(file) => {
                    (self.path, self.file) = (Some(path), Some(file));
                    break;
                }
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
                Err(error) => return Err(cannot_write(&path, &error)),
            }
        }
        Ok(())
    }

    pub fn path(&self) -> Option<&Path> {
        self.path.as_deref()
    }

    /// Writes the first line. The sandbox recognizes transcripts by the beginning of this line and hides them from
    /// agents.
    ///
    /// # Errors
    /// If the line can't be written.
    pub fn begin(&mut self, fields: Value) -> Result<(), Failure> {
        self.write("{\"arena_transcript\":1,", "begin", fields)
    }

    /// Writes a line for an event: its kind `what`, the time, and `fields`.
    ///
    /// # Errors
    /// If the line can't be written.
    pub fn note(&mut self, what: &str, fields: Value) -> Result<(), Failure> {
        self.write("{", what, fields)
    }

    /// Writes a line. `head` replaces the opening brace of the JSON object.
    fn write(&mut self, head: &str, what: &str, fields: Value) -> Result<(), Failure> {
        let (Some(path), Some(file)) = (&self.path, &mut self.file) else { return Ok(()) };
        let mut line = json!({"type": what, "time": Environment::system().now().0});
        if let (Some(line), Value::Object(fields)) = (line.as_object_mut(), fields) {
            line.extend(fields);
        }
        let line = line.to_string();
        writeln!(file, "{head}{}", &line[1..]).map_err(|error| cannot_write(path, &error))
    }
}

impl fmt::Display for Transcript {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.path {
            Some(path) => write!(f, "transcript: {}", path.display()),
            None => f.write_str("no transcript"),
        }
    }
}

fn create(path: &Path) -> std::io::Result<File> {
    match open_direct(path)? {
        Some(file) => Ok(file),
        None => OpenOptions::new().write(true).create_new(true).mode(0o600).open(path),
    }
}
