//! The file of a replay: while the match is on it stands beside its place under another name, and takes its place when it is whole.
//!
//! So a match that comes to no result leaves an older replay as it was, and nobody takes half a replay for a whole one. A half of one
//! holds the seed, which agents that are still playing shall not know; until the end only its owner can read it.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// A replay that is being written. Dropped before it was [kept](Recording::keep), it leaves nothing.
#[derive(Debug)]
pub struct Recording {
    file: File,
    /// Where it is meanwhile, and where it belongs; `None` for what isn't a file and is written to directly.
    places: Option<Places>,
}

#[derive(Debug)]
struct Places {
    partial: PathBuf,
    whole: PathBuf,
    /// Who may read it, once it is whole.
    mode: u32,
}

impl Recording {
    /// Begins a replay that is to stand at `path`. A device, a pipe or an open file descriptor is written to as it is.
    pub fn create(path: &Path) -> io::Result<Recording> {
        let old = match fs::metadata(path) {
            Ok(old) => Some(old),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(error),
        };
        if old.as_ref().is_some_and(|old| !old.is_file()) || is_descriptor(path) {
            return Ok(Recording { file: File::create(path)?, places: None });
        }
        let (whole, mode) = match old {
            Some(old) => {
                // What may not be written to shall not be replaced either; and a link leads to what is replaced.
                OpenOptions::new().write(true).open(path)?;
                (path.canonicalize()?, old.permissions().mode() & 0o777)
            }
            None => (path.to_owned(), 0o666 & !umask()),
        };
        let name = whole.file_name().ok_or_else(|| io::Error::from(io::ErrorKind::InvalidInput))?;
        let mut hidden = OsString::from(".");
        hidden.push(name);
        hidden.push(format!(".partial-{}", std::process::id()));
        let partial = whole.with_file_name(hidden);
        // Only a process that had the same number can have left one.
        let _ = fs::remove_file(&partial);
        let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&partial)?;
        Ok(Recording { file, places: Some(Places { partial, whole, mode }) })
    }

    /// Where to write.
    pub fn file(&mut self) -> &mut File {
        &mut self.file
    }

    /// Puts the replay, which is whole now, into its place. Tells whether that is a file, so that others may stand beside it.
    pub fn keep(mut self) -> io::Result<bool> {
        let Some(places) = self.places.take() else { return Ok(false) };
        let kept = self
            .file
            .set_permissions(Permissions::from_mode(places.mode))
            .and_then(|()| fs::rename(&places.partial, &places.whole));
        if kept.is_err() {
            self.places = Some(places);
        }
        kept.map(|()| true)
    }
}

impl Drop for Recording {
    fn drop(&mut self) {
        if let Some(places) = &self.places {
            // If that fails, what is left has a name that tells what it is.
            let _ = fs::remove_file(&places.partial);
        }
    }
}

/// Whether the path leads to what some process has open: `/dev/stdout`, `/dev/fd/3`. Nothing can stand beside or instead of that.
fn is_descriptor(path: &Path) -> bool {
    let folder = match path.parent() {
        Some(folder) if folder != Path::new("") => folder,
        _ => Path::new("."),
    };
    folder.canonicalize().is_ok_and(|folder| folder.starts_with("/proc"))
        || fs::read_link(path).is_ok_and(|to| to.starts_with("/proc"))
}

/// Who may not read what this process creates. To ask the system is to set it, for all threads; so it is read.
fn umask() -> u32 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let digits = status.lines().find_map(|line| line.strip_prefix("Umask:"));
    digits.and_then(|digits| u32::from_str_radix(digits.trim(), 8).ok()).unwrap_or(0o077)
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let mut names: Vec<String> =
            fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn a_replay_takes_its_place_when_it_is_whole() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("game.jsonl");
        let partial = format!(".game.jsonl.partial-{}", std::process::id());
        for text in ["one", "two"] {
            let before = fs::read(&path).ok();
            let mut recording = Recording::create(&path).unwrap();
            recording.file().write_all(text.as_bytes()).unwrap();
            assert_eq!(fs::read(&path).ok(), before);
            let mode = fs::metadata(folder.path().join(&partial)).unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o600);
            assert!(recording.keep().unwrap());
            assert_eq!((fs::read_to_string(&path).unwrap().as_str(), names(folder.path()).len()), (text, 1));
            assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o666 & !umask());
        }
    }

    #[test]
    fn what_came_to_nothing_leaves_an_older_replay_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("game.jsonl");
        fs::write(&path, "old").unwrap();
        fs::set_permissions(&path, Permissions::from_mode(0o640)).unwrap();
        let mut recording = Recording::create(&path).unwrap();
        recording.file().write_all(b"new").unwrap();
        drop(recording);
        assert_eq!(
            (fs::read_to_string(&path).unwrap().as_str(), names(folder.path())),
            ("old", vec!["game.jsonl".into()])
        );
        Recording::create(&path).unwrap().keep().unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o640);
    }

    #[test]
    fn a_link_stays_and_what_it_leads_to_is_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let (path, link) = (folder.path().join("game.jsonl"), folder.path().join("latest"));
        fs::write(&path, "old").unwrap();
        std::os::unix::fs::symlink("game.jsonl", &link).unwrap();
        let mut recording = Recording::create(&link).unwrap();
        recording.file().write_all(b"new").unwrap();
        assert!(recording.keep().unwrap());
        assert_eq!(
            (fs::read_to_string(&path).unwrap().as_str(), names(folder.path())),
            ("new", vec!["game.jsonl".into(), "latest".into()])
        );
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    }

    #[test]
    fn devices_and_descriptors_are_written_to_directly() {
        for path in ["/dev/null", "/proc/self/fd/1", "/dev/fd/1"] {
            let mut recording = Recording::create(Path::new(path)).unwrap();
            recording.file().write_all(b"").unwrap();
            assert!(!recording.keep().unwrap(), "{path}");
        }
        let folder = tempfile::tempdir().unwrap();
        assert!(Recording::create(folder.path()).is_err());
        assert!(Recording::create(&folder.path().join("no/folder")).is_err());
        assert_eq!(names(folder.path()), Vec::<String>::new());
    }
}
