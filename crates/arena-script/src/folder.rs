//! The reader of the folders of scripts.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::metadata::{PROMPT_FILE, is_name};
use crate::{Problem, ScriptKind};

/// The limits of a folder: the number of files, and the sizes of one file and of all files, in bytes.
const FILES: usize = 500;
const FILE_BYTES: u64 = 1 << 20;
const ALL_BYTES: u64 = 4 << 20;

/// The maximum depth of nested folders.
const DEPTH: usize = 8;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Folder {
    /// The challenge's or strategy's id: the folder's name.
    pub id: String,
    /// The texts of `prompt.md` and of `.json`, `.ts` and `.js` files, by path in the folder. The text of a type declaration (`.d.ts`) is
    /// left empty.
    pub(crate) files: BTreeMap<String, String>,
}

impl Folder {
    /// Reads a challenge's folder, as [`Folder::read_of`] does.
    ///
    /// # Errors
    /// As those of [`Folder::read_of`].
    pub fn read(path: &Path) -> Result<Folder, Problem> {
        Folder::read_of(ScriptKind::Challenge, path)
    }

    /// Reads a folder, without links, hidden files and packages (`node_modules`).
    ///
    /// # Errors
    /// If the folder can't be read, lacks the file of its kind, exceeds the limits, or has an invalid name.
    pub fn read_of(kind: ScriptKind, path: &Path) -> Result<Folder, Problem> {
        let whole = path.canonicalize().map_err(|error| Problem::of(".", format!("cannot be read: {error}")))?;
        let id = whole.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        if !is_name(&id) {
            let message =
                format!("{id:?} cannot be the name of a {}; use 1 to 64 letters, digits, `_` and `-`", kind.noun());
            return Err(Problem::of(".", message));
        }
        let mut reader = FolderReader { files: BTreeMap::new(), bytes: 0 };
        reader.read(&whole, "", DEPTH)?;
        if !reader.files.contains_key(kind.file()) {
            let message = format!("is missing; it must contain the {}'s name and description", kind.noun());
            return Err(Problem::of(kind.file(), message));
        }
        Ok(Folder { id, files: reader.files })
    }
}

struct FolderReader {
    files: BTreeMap<String, String>,
    bytes: u64,
}

impl FolderReader {
    fn read(&mut self, folder: &Path, prefix: &str, depth: usize) -> Result<(), Problem> {
        let cannot = |error: io::Error| {
            Problem::of(if prefix.is_empty() { "." } else { prefix }, format!("cannot be read: {error}"))
        };
        for entry in fs::read_dir(folder).map_err(cannot)? {
            let entry = entry.map_err(cannot)?;
            let name = entry.file_name().to_string_lossy().into_owned();
            let (path, kind) = (format!("{prefix}{name}"), entry.file_type().map_err(cannot)?);
            if name.starts_with('.') || name == "node_modules" {
                continue;
            }
            if kind.is_dir() && depth > 0 {
                self.read(&entry.path(), &format!("{path}/"), depth - 1)?;
            }
            let counts = path == PROMPT_FILE || [".json", ".ts", ".js"].iter().any(|ending| name.ends_with(ending));
            if !kind.is_file() || !counts {
                continue;
            }
            if name.ends_with(".d.ts") && self.files.len() < FILES {
                self.files.insert(path, String::new());
                continue;
            }
            let cannot = |error: io::Error| Problem::of(&path, format!("cannot be read: {error}"));
            let bytes = entry.metadata().map_err(cannot)?.len();
            self.bytes += bytes;
            if bytes > FILE_BYTES || self.bytes > ALL_BYTES || self.files.len() >= FILES {
                let message = format!(
                    "exceeds the limits: a script has at most {FILES} files, of {} MiB each and {} MiB in all",
                    FILE_BYTES >> 20,
                    ALL_BYTES >> 20
                );
                return Err(Problem::of(&path, message));
            }
            let text = fs::read_to_string(entry.path()).map_err(cannot)?;
            self.files.insert(path, text);
        }
        Ok(())
    }
}

/// Returns the challenge folders at `path`, as [`find_folders_of`] does.
///
/// # Errors
/// If the folder can't be read.
pub fn find_folders(path: &Path) -> io::Result<Vec<PathBuf>> {
    find_folders_of(ScriptKind::Challenge, path)
}

/// Returns the folders of scripts of a kind at `path`: the folder itself if it has the file of the kind, or else its
/// direct subfolders that have one.
///
/// # Errors
/// If the folder can't be read.
pub fn find_folders_of(kind: ScriptKind, path: &Path) -> io::Result<Vec<PathBuf>> {
    if path.join(kind.file()).is_file() {
        return Ok(vec![path.to_owned()]);
    }
    let mut folders = Vec::new();
    for entry in fs::read_dir(path)? {
        let entry = entry?;
        if entry.path().join(kind.file()).is_file() {
            folders.push(entry.path());
        }
    }
    folders.sort();
    Ok(folders)
}
