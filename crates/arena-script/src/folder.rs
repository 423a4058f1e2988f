//! Folders of challenges: which files they have, and what is wrong with them.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::Problem;
use crate::metadata::{self, is_name};

/// Most files of a folder, and most bytes of one and of all.
const FILES: usize = 500;
const FILE_BYTES: u64 = 1 << 20;
const ALL_BYTES: u64 = 4 << 20;

/// How deep folders in folders are looked at.
const DEPTH: usize = 8;

/// A folder that says that it is a challenge, as it was when it was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Folder {
    /// What its challenge is called: its own name.
    pub id: String,
    /// Its texts, by their paths in it: `.json`, `.ts` and `.js`. Declarations of types (`.d.ts`) are there by their names only.
    pub(crate) files: BTreeMap<String, String>,
}

impl Folder {
    /// Reads a folder. Links are not followed, and neither hidden files nor those of packages (`node_modules`) are looked at.
    ///
    /// # Errors
    /// If it can't be read, has no `challenge.json`, is larger than any challenge, or has a name that no challenge can have.
    pub fn read(path: &Path) -> Result<Folder, Problem> {
        let whole = path.canonicalize().map_err(|error| Problem::of(".", format!("can't be read: {error}")))?;
        let id = whole.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        if !is_name(&id) {
            let message = format!("{id:?} can't be the name of a challenge: 1 to 64 letters, digits, `_` and `-`");
            return Err(Problem::of(".", message));
        }
        let mut reader = Reader { files: BTreeMap::new(), bytes: 0 };
        reader.read(&whole, "", DEPTH)?;
        if !reader.files.contains_key(metadata::FILE) {
            return Err(Problem::of(
                metadata::FILE,
                "is missing: it says what the challenge is called and how it is played",
            ));
        }
        Ok(Folder { id, files: reader.files })
    }
}

struct Reader {
    files: BTreeMap<String, String>,
    bytes: u64,
}

impl Reader {
    fn read(&mut self, folder: &Path, prefix: &str, depth: usize) -> Result<(), Problem> {
        let cannot = |error: io::Error| {
            Problem::of(if prefix.is_empty() { "." } else { prefix }, format!("can't be read: {error}"))
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
            let counts = [".json", ".ts", ".js"].iter().any(|ending| name.ends_with(ending));
            if !kind.is_file() || !counts {
                continue;
            }
            if name.ends_with(".d.ts") && self.files.len() < FILES {
                self.files.insert(path, String::new());
                continue;
            }
            let cannot = |error: io::Error| Problem::of(&path, format!("can't be read: {error}"));
            let bytes = entry.metadata().map_err(cannot)?.len();
            self.bytes += bytes;
            if bytes > FILE_BYTES || self.bytes > ALL_BYTES || self.files.len() >= FILES {
                let message = format!(
                    "is too much: a challenge has at most {FILES} files, {} MiB each and {} MiB in all",
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

/// The folders of challenges that `path` means: itself, if it has a `challenge.json`, or those of its folders that have one.
///
/// # Errors
/// If it can't be read.
pub fn find_folders(path: &Path) -> io::Result<Vec<PathBuf>> {
    if path.join(metadata::FILE).is_file() {
        return Ok(vec![path.to_owned()]);
    }
    let mut folders = Vec::new();
    for entry in fs::read_dir(path)? {
        let entry = entry?;
        if entry.path().join(metadata::FILE).is_file() {
            folders.push(entry.path());
        }
    }
    folders.sort();
    Ok(folders)
}
