//! Files that commands read and write, and the failures about them.

use std::fmt::Display;
use std::fs::{self, File, FileType};
use std::io::{self, BufRead, BufReader, Write};
use std::path::{Path, PathBuf};

use arena_engine::Environment;
use arena_match::OutputFile;
use arena_report::{shell_word, utc};
use serde_json::json;
use tempfile::TempDir;

use crate::exit::{Exit, Failure};
use crate::output::{Style, counted, print, print_line};

/// The path that stands for stdin or stdout.
const STANDARD: &str = "-";

/// Returns true for the path that stands for stdin or stdout.
pub fn is_standard(path: &Path) -> bool {
    path == Path::new(STANDARD)
}

pub fn cannot_read(path: &Path, why: impl Display) -> Failure {
    Failure::usage(format_args!("{} cannot be read: {why}", path.display()))
}

pub fn cannot_write(path: &Path, error: &io::Error) -> Failure {
    Failure::new(Exit::CannotWrite, format_args!("{} cannot be written: {error}", path.display()))
}

/// Returns the path for sentences; stdin has a name.
pub fn shown_path(path: &Path) -> PathBuf {
    if is_standard(path) { PathBuf::from("stdin") } else { path.to_owned() }
}

/// Opens a file, or stdin for `-`.
///
/// # Errors
/// If the file can't be opened, or is a folder.
pub fn input(path: &Path) -> Result<Box<dyn BufRead>, Failure> {
    if is_standard(path) {
        return Ok(Box::new(BufReader::new(io::stdin())));
    }
    let file = File::open(path).map_err(|error| cannot_read(path, error))?;
    match file.metadata().is_ok_and(|data| data.is_dir()) {
        true => Err(cannot_read(path, io::Error::from(io::ErrorKind::IsADirectory))),
        false => Ok(Box::new(BufReader::new(file))),
    }
}

/// Writes bytes to stdout, or to a file that appears once it is complete. A private file is readable by its owner only.
pub fn write(out: Option<&Path>, bytes: &[u8], is_private: bool, style: Style) -> Result<(), Failure> {
    let Some(path) = out.filter(|path| !is_standard(path)) else {
        let mut stdout = io::stdout().lock();
        return match stdout.write_all(bytes).and_then(|()| stdout.flush()) {
            // If the reader closes the pipe, the output ends without an error.
            Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(Failure::cannot("write to stdout", error)),
            _ => Ok(()),
        };
    };
    let create = if is_private { OutputFile::create_private } else { OutputFile::create };
    let mut file = create(path).map_err(|error| cannot_write(path, &error))?;
    let is_file = file.write_all(bytes).and_then(|()| file.keep()).map_err(|error| cannot_write(path, &error))?;
    // No summary follows to a path such as /dev/stdout, whose reader expects only the bytes.
    if !is_file {
        return Ok(());
    }
    print_written(path, bytes.iter().filter(|byte| **byte == b'\n').count() as u64, style)
}

/// Prints the path and the number of lines of a file that was written.
pub fn print_written(path: &Path, lines: u64, style: Style) -> Result<(), Failure> {
    match style {
        Style::Json => print_line(&json!({ "lines": lines, "file": path.display().to_string() })),
        Style::Pretty | Style::Compact => print(&format!("wrote {} to {}", counted(lines, "line"), path.display())),
    }
}

/// Writes a file, and creates the folders above it.
pub fn write_below(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    let above = path.parent().unwrap_or(path);
    fs::create_dir_all(above).and_then(|()| fs::write(path, bytes)).map_err(|error| cannot_write(path, &error))
}

/// Lists a folder without hidden files, which are drafts or belong to other programs. The names of replays are numbers
/// of matches, so names are sorted as numbers.
pub fn numbered_files(folder: &Path) -> io::Result<Vec<(PathBuf, FileType)>> {
    let number = |path: &Path| path.file_stem().and_then(|stem| stem.to_str()?.parse::<u64>().ok());
    let entries = fs::read_dir(folder)?.collect::<io::Result<Vec<_>>>()?;
    let visible = entries.iter().filter(|entry| !entry.file_name().as_encoded_bytes().starts_with(b"."));
    let mut files = visible.map(|entry| Ok((entry.path(), entry.file_type()?))).collect::<io::Result<Vec<_>>>()?;
    files.sort_by_cached_key(|(path, _)| (number(path), path.clone()));
    Ok(files)
}

/// Creates a folder that is removed when the value is dropped. `exit` is the exit code if this fails.
pub fn temporary_folder(prefix: &str, exit: Exit) -> Result<TempDir, Failure> {
    let folder = tempfile::Builder::new().prefix(prefix).tempdir();
    folder.map_err(|error| Failure::new(exit, format_args!("cannot create a temporary folder: {error}")))
}

/// Returns the default name of the folder of a tournament or an evaluation: `name` and the time.
pub fn dated_folder(name: &str) -> PathBuf {
    let time: String = utc(Environment::system().now().0).chars().filter(char::is_ascii_digit).collect();
    let (day, second) = time.split_at(time.len().min(8));
    PathBuf::from(format!("{name}-{day}-{second}"))
}

/// Returns the command that continues the tournament or the evaluation in a folder. `options` begins with a space.
pub fn resume_line(command: &str, folder: &Path, options: &str) -> String {
    let text = folder.display().to_string();
    let folder = shell_word(&text);
    // No option may follow `--`.
    match text.starts_with('-') {
        true => format!("arena {command} resume{options} -- {folder}"),
        false => format!("arena {command} resume {folder}{options}"),
    }
}
