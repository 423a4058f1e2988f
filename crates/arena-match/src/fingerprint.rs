//! Fingerprints of an agent's files, which detect changes.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use arena_model::hex;
use sha2::{Digest, Sha256};

/// Folders with generated files and version control data.
const MADE: [&str; 2] = ["__pycache__", ".git"];

/// Returns the SHA-256 of files and folders, in hex. It covers names, executable bits and content. The hash
/// excludes the folder `except`, generated files and version control data.
pub fn of(paths: &[PathBuf], except: &Path) -> Result<String, (PathBuf, io::Error)> {
    let except = except.canonicalize().ok();
    let mut hash = Sha256::new();
    for path in paths {
        add(path, OsStr::new(""), except.as_deref(), &mut hash)?;
    }
    Ok(hex::encode(&hash.finalize()))
}

/// Returns a number that changes when files or folders are written, replaced or moved. It may also change
/// without a change of their content. Only directories and metadata are read, so it can be called before and
/// after each match.
pub fn stamp(paths: &[PathBuf], except: &Path) -> Result<u64, (PathBuf, io::Error)> {
    let except = except.canonicalize().ok();
    let mut hash = DefaultHasher::new();
    for path in paths {
        add_stamp(path, except.as_deref(), &mut hash)?;
    }
    Ok(hash.finish())
}

fn add_stamp(path: &Path, except: Option<&Path>, hash: &mut DefaultHasher) -> Result<(), (PathBuf, io::Error)> {
    let data = fs::symlink_metadata(path).map_err(|error| (path.to_owned(), error))?;
    path.hash(hash);
    if data.is_dir() {
        // The folder itself doesn't count: its time also changes with the entries that are left out.
        for entry in entries(path, except)? {
            add_stamp(&entry, except, hash)?;
        }
    } else {
        // The ctime changes with content and permissions, and no program can set it.
        (data.ino(), data.len(), data.ctime(), data.ctime_nsec()).hash(hash);
    }
    Ok(())
}

/// Returns the relevant entries of a folder, in order.
pub fn entries(folder: &Path, except: Option<&Path>) -> Result<Vec<PathBuf>, (PathBuf, io::Error)> {
    let entries = fs::read_dir(folder).and_then(Iterator::collect::<io::Result<Vec<_>>>);
    let entries = entries.map_err(|error| (folder.to_owned(), error))?;
    let mut entries: Vec<PathBuf> = entries.iter().map(fs::DirEntry::path).collect();
    entries.sort();
    entries.retain(|entry| {
        let name = entry.file_name().unwrap_or_default();
        !MADE.iter().any(|made| name == *made) && except.is_none_or(|except| entry != except)
    });
    Ok(entries)
}

/// Adds the file or folder at `path`, under its name relative to the agent.
fn add(path: &Path, name: &OsStr, except: Option<&Path>, hash: &mut Sha256) -> Result<(), (PathBuf, io::Error)> {
    let wrong = |error: io::Error| (path.to_owned(), error);
    // Each text is preceded by its length, so that different lists of texts have different hashes.
    let text = |hash: &mut Sha256, kind: &str, text: &[u8]| {
        hash.update(kind);
        hash.update((text.len() as u64).to_be_bytes());
        hash.update(text);
    };
    let data = fs::symlink_metadata(path).map_err(wrong)?;
    let kind = data.file_type();
    if kind.is_symlink() {
        text(hash, "link", name.as_bytes());
        let target = fs::read_link(path).map_err(wrong)?;
        text(hash, "to", target.as_os_str().as_bytes());
    } else if kind.is_dir() {
        text(hash, "folder", name.as_bytes());
        for entry in entries(path, except)? {
            add(&entry, entry.file_name().unwrap_or_default(), except, hash)?;
        }
        hash.update("end");
    } else if kind.is_file() {
        let can_run = data.permissions().mode() & 0o111 != 0;
        text(hash, if can_run { "program" } else { "file" }, name.as_bytes());
        let mut file = File::open(path).map_err(wrong)?;
        let mut content = Sha256::new();
        io::copy(&mut file, &mut Writer(&mut content)).map_err(wrong)?;
        hash.update(content.finalize());
    } else {
        text(hash, "other", name.as_bytes());
    }
    Ok(())
}

struct Writer<'a>(&'a mut Sha256);

impl io::Write for Writer<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_matters_changes_a_fingerprint_and_nothing_else_does() {
        let folder = tempfile::tempdir().unwrap();
        let agent = folder.path().join("bot");
        let put = |name: &str, content: &str| {
            let path = agent.join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, content).unwrap();
        };
        let paths = std::slice::from_ref(&agent);
        let actual = || of(paths, &agent.join("results")).unwrap();
        let stamp = || stamp(paths, &agent.join("results")).unwrap();
        put("agent.py", "one");
        put("lib/a", "ab");
        let (first, first_stamp) = (actual(), stamp());
        put("lib/__pycache__/a.pyc", "made");
        put("results/tournament.jsonl", "{}");
        assert_eq!(stamp(), first_stamp);
        put("agent.py", "one");
        assert_eq!(actual(), first);
        assert_ne!(stamp(), first_stamp, "a write of the same content");
        let mut others = vec![(first, first_stamp)];
        let mut differs = |what: &str| {
            let now = (actual(), stamp());
            assert!(others.iter().all(|other| other.0 != now.0 && other.1 != now.1), "{what}");
            others.push(now);
        };
        put("agent.py", "two");
        differs("content");
        put("lib/b", "");
        differs("a new file");
        fs::rename(agent.join("lib/b"), agent.join("b")).unwrap();
        differs("a moved file");
        fs::set_permissions(agent.join("b"), fs::Permissions::from_mode(0o755)).unwrap();
        differs("an executable bit");
        std::os::unix::fs::symlink("nowhere", agent.join("c")).unwrap();
        differs("a new link");
        let (path, error) = of(&[agent.join("absent")], &agent).unwrap_err();
        assert_eq!((path, error.kind()), (agent.join("absent"), io::ErrorKind::NotFound));
    }
}
