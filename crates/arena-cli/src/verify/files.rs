//! The files that `arena verify` checks: those given, and those found in folders.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use arena_match::JOURNAL;

use crate::exit::Failure;

pub const STDIN: &str = "-";

#[derive(Debug, Default, PartialEq, Eq)]
pub struct FilesToCheck {
    /// The paths: as given, and those in folders by name. [`STDIN`] occurs at most once.
    pub files: Vec<PathBuf>,
    /// The number of files in folders that are neither records nor replays by their names.
    pub skipped: u64,
}

impl FilesToCheck {
    /// Finds the files at `paths`.
    ///
    /// # Errors
    /// If a folder can't be read, or stdin is given twice. A given file that can't be read is reported when it is
    /// checked, so that it doesn't keep the others from being checked.
    pub fn find(paths: &[PathBuf]) -> Result<FilesToCheck, Failure> {
        let mut found = FilesToCheck::default();
        for path in paths {
            if path.is_dir() {
                found.add_folder(path).map_err(|(path, error)| {
                    Failure::usage(format_args!("{} cannot be read: {error}", path.display()))
                })?;
            } else if path == Path::new(STDIN) && found.files.contains(path) {
                return Err(Failure::usage("stdin can be read only once; give - once"));
            } else {
                found.files.push(path.clone());
            }
        }
        Ok(found)
    }

    fn add_folder(&mut self, folder: &Path) -> Result<(), (PathBuf, io::Error)> {
        let unreadable = |error| (folder.to_owned(), error);
        let mut entries = fs::read_dir(folder).and_then(Iterator::collect::<io::Result<Vec<_>>>).map_err(unreadable)?;
        entries.sort_unstable_by_key(fs::DirEntry::file_name);
        for entry in entries {
            let (name, path) = (entry.file_name(), entry.path());
            // Hidden files are drafts, or belong to other programs.
            if name.as_encoded_bytes().starts_with(b".") {
                continue;
            }
            // The type is the entry's own, so links to folders are not followed: they could lead back.
            let kind = entry.file_type().map_err(unreadable)?;
            if kind.is_dir() {
                self.add_folder(&path)?;
            } else if !path.is_file() {
                continue;
            } else if path.extension().is_some_and(|extension| extension == "jsonl") && name != JOURNAL {
                self.files.push(path);
            } else {
                self.skipped += 1;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exit::Exit;

    #[test]
    fn folders_are_searched_for_json_lines_in_the_order_of_names() {
        let home = tempfile::tempdir().unwrap();
        for name in ["b/2.jsonl", "b/1.jsonl", "a.jsonl", "b/notes.txt", ".draft.jsonl", "b/log/tile.jsonl/0"] {
            let path = home.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "").unwrap();
        }
        fs::write(home.path().join(JOURNAL), "").unwrap();
        std::os::unix::fs::symlink(home.path(), home.path().join("b/loop")).unwrap();
        let given = home.path().join("b/notes.txt");
        let found = FilesToCheck::find(&[home.path().to_owned(), given.clone(), "missing".into()]).unwrap();
        let expected =
            ["a.jsonl", "b/1.jsonl", "b/2.jsonl"].map(|name| home.path().join(name)).into_iter().chain([given]);
        assert_eq!(found.files, expected.chain(["missing".into()]).collect::<Vec<_>>());
        assert_eq!(found.skipped, 3, "a note, a file in a folder with a misleading name, and the journal");
    }

    #[test]
    fn stdin_is_read_once() {
        let find = |paths: &[&str]| FilesToCheck::find(&paths.iter().map(PathBuf::from).collect::<Vec<_>>());
        assert_eq!(find(&["-"]).unwrap().files, [PathBuf::from("-")]);
        assert_eq!(find(&["-", "-"]).unwrap_err().exit, Exit::Usage);
    }
}
