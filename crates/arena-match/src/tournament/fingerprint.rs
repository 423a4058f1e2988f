//! Fingerprints: whether the files of an agent are those that they were.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

/// Folders in which programs put what they can make again.
const MADE: [&str; 2] = ["__pycache__", ".git"];

/// The SHA-256 of files and folders, in hex: of their names, whether they can be run, and their content. Leaves out the folder
/// `except`, and what is made by running or keeping an agent.
pub fn of(paths: &[PathBuf], except: &Path) -> Result<String, (PathBuf, io::Error)> {
    let except = except.canonicalize().ok();
    let mut hash = Sha256::new();
    for path in paths {
        add(path, OsStr::new(""), except.as_deref(), &mut hash)?;
    }
    Ok(hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect())
}

/// Adds what is at `path`, under the name that it has for the agent.
fn add(path: &Path, name: &OsStr, except: Option<&Path>, hash: &mut Sha256) -> Result<(), (PathBuf, io::Error)> {
    let wrong = |error: io::Error| (path.to_owned(), error);
    // A text of any length can't be taken for what follows it.
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
        let entries = fs::read_dir(path).and_then(Iterator::collect::<io::Result<Vec<_>>>).map_err(wrong)?;
        let mut entries: Vec<PathBuf> = entries.iter().map(fs::DirEntry::path).collect();
        entries.sort();
        for entry in entries {
            let name = entry.file_name().unwrap_or_default();
            let is_left_out = MADE.iter().any(|made| name == *made) || except.is_some_and(|except| entry == except);
            if !is_left_out {
                add(&entry, name, except, hash)?;
            }
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

/// A hash that can be written to.
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
        let told = || of(std::slice::from_ref(&agent), &agent.join("results")).unwrap();
        put("agent.py", "one");
        put("lib/a", "ab");
        let first = told();
        put("lib/__pycache__/a.pyc", "made");
        put("results/tournament.jsonl", "{}");
        put("agent.py", "one");
        assert_eq!(told(), first);
        let mut others = vec![first];
        let mut differs = |what: &str| {
            let now = told();
            assert!(!others.contains(&now), "{what}");
            others.push(now);
        };
        put("agent.py", "two");
        differs("content");
        put("lib/b", "");
        differs("another file");
        fs::rename(agent.join("lib/b"), agent.join("b")).unwrap();
        differs("another place");
        fs::set_permissions(agent.join("b"), fs::Permissions::from_mode(0o755)).unwrap();
        differs("can be run");
        std::os::unix::fs::symlink("nowhere", agent.join("c")).unwrap();
        differs("a link");
        let (path, error) = of(&[agent.join("absent")], &agent).unwrap_err();
        assert_eq!((path, error.kind()), (agent.join("absent"), io::ErrorKind::NotFound));
    }
}
