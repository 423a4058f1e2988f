//! Folders of agents and tournaments in the data folder. A folder's name is the id of the agent or tournament. Each
//! folder contains a file of facts. Folders are created atomically, and facts change atomically, even if the power
//! fails.

use std::fs::{self, DirBuilder, File};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;

/// Prefix of unfinished folders.
const UNFINISHED: char = '.';

const FACTS: &str = "facts.json";

/// Creates the parent folder, which only the server's user can read, and removes unfinished folders of at least this age
/// from it.
pub(super) fn prepare(folder: &Path, age: Duration) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        // A time in the future is no age.
        let is_old = |entry: &fs::DirEntry| -> io::Result<bool> {
            Ok(entry.metadata()?.modified()?.elapsed().map_or(age.is_zero(), |since| since >= age))
        };
        if entry.file_name().to_string_lossy().starts_with(UNFINISHED) {
            match is_old(&entry).and_then(|is_old| if is_old { remove_all(&entry.path()) } else { Ok(()) }) {
                // Another node has removed or finished it.
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                done => done?,
            }
        }
    }
    Ok(())
}

pub(super) fn list(folder: &Path) -> io::Result<Vec<PathBuf>> {
    fs::read_dir(folder)?.map(|entry| Ok(entry?.path())).collect()
}

/// An unfinished folder. Dropping it removes the folder, unless [`Draft::finish`] has moved it to its final path.
pub(super) struct Draft {
    path: PathBuf,
    target: PathBuf,
    is_done: bool,
}

impl Draft {
    /// Creates an unfinished folder. Its final path is `name` in `folder`.
    pub(super) fn begin(folder: &Path, name: &str) -> io::Result<Draft> {
        let path = folder.join(format!("{UNFINISHED}{name}"));
        DirBuilder::new().mode(0o755).create(&path)?;
        Ok(Draft { path, target: folder.join(name), is_done: false })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Syncs the contents to disk, which may be slow, so that [`Draft::finish`] is fast afterward.
    pub(super) fn settle(&self) -> io::Result<()> {
        sync(&self.path)
    }

    /// Syncs the contents and moves the folder to its final path.
    pub(super) fn finish(mut self) -> io::Result<()> {
        sync(&self.path)?;
        fs::rename(&self.path, &self.target)?;
        self.is_done = true;
        sync_parent(&self.target)
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        if !self.is_done {
            // The next start removes a folder that remains after an error.
            let _ = fs::remove_dir_all(&self.path);
        }
    }
}

/// Removes a folder: renames it atomically, then deletes it.
pub(super) fn remove(path: &Path) -> io::Result<()> {
    let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else { return Ok(()) };
    let aside = folder.join(format!("{UNFINISHED}{}", name.to_string_lossy()));
    match fs::rename(path, &aside) {
        // The folder may have been removed manually.
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        renamed => renamed?,
    }
    sync_parent(path)?;
    remove_all(&aside)
}

fn remove_all(path: &Path) -> io::Result<()> {
    match fs::metadata(path)?.is_dir() {
        true => fs::remove_dir_all(path),
        false => fs::remove_file(path),
    }
}

/// Replaces the facts of a folder atomically.
pub(super) fn write_facts(folder: &Path, facts: &impl Serialize) -> io::Result<()> {
    let (path, draft) = (folder.join(FACTS), folder.join(format!("{UNFINISHED}{FACTS}")));
    let mut file = File::create(&draft)?;
    file.write_all(&serde_json::to_vec_pretty(facts)?)?;
    file.sync_all()?;
    fs::rename(&draft, &path)?;
    File::open(folder)?.sync_all()
}

pub(super) fn read_facts<T: DeserializeOwned>(folder: &Path) -> io::Result<T> {
    Ok(serde_json::from_slice(&fs::read(folder.join(FACTS))?)?)
}

fn sync(path: &Path) -> io::Result<()> {
    let metadata = fs::symlink_metadata(path)?;
    if metadata.is_dir() {
        for entry in fs::read_dir(path)? {
            sync(&entry?.path())?;
        }
    }
    File::open(path)?.sync_all()
}

fn sync_parent(path: &Path) -> io::Result<()> {
    path.parent().map_or(Ok(()), |folder| File::open(folder)?.sync_all())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_there_as_a_whole_or_not_at_all() {
        let root = tempfile::tempdir().unwrap();
        let folder = root.path().join("agents");
        prepare(&folder, Duration::ZERO).unwrap();
        drop(Draft::begin(&folder, "a").unwrap());
        let draft = Draft::begin(&folder, "b").unwrap();
        write_facts(draft.path(), &1).unwrap();
        assert!(!folder.join("b").exists());
        draft.finish().unwrap();
        // A leftover of a crash.
        std::mem::forget(Draft::begin(&folder, "c").unwrap());
        prepare(&folder, Duration::from_secs(60)).unwrap();
        assert_eq!(list(&folder).unwrap().len(), 2);
        prepare(&folder, Duration::ZERO).unwrap();
        assert_eq!(list(&folder).unwrap(), [folder.join("b")]);
        assert_eq!(read_facts::<u8>(&folder.join("b")).unwrap(), 1);
        remove(&folder.join("b")).unwrap();
        remove(&folder.join("b")).unwrap();
        assert!(list(&folder).unwrap().is_empty());
    }
}
