//! Folders of what is kept beside the store: one for each agent and each tournament, named by its id, with a file of facts. A folder is
//! there as a whole or not at all, and so is each state of its facts, also after a power cut.

use std::fs::{self, DirBuilder, File};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde::de::DeserializeOwned;

/// What folders that aren't whole begin with.
const UNFINISHED: char = '.';

/// The name of the file of facts.
const FACTS: &str = "facts.json";

/// Makes the folder of all folders, which nobody else may look into, and removes what was left unfinished in it.
pub(super) fn prepare(folder: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_name().to_string_lossy().starts_with(UNFINISHED) {
            remove_all(&entry.path())?;
        }
    }
    Ok(())
}

/// The folders in it.
pub(super) fn list(folder: &Path) -> io::Result<Vec<PathBuf>> {
    fs::read_dir(folder)?.map(|entry| Ok(entry?.path())).collect()
}

/// A folder that is being made. Dropped unfinished, it is gone.
pub(super) struct Draft {
    path: PathBuf,
    target: PathBuf,
    is_done: bool,
}

impl Draft {
    /// Begins the folder `name` in `folder`.
    pub(super) fn begin(folder: &Path, name: &str) -> io::Result<Draft> {
        let path = folder.join(format!("{UNFINISHED}{name}"));
        DirBuilder::new().mode(0o755).create(&path)?;
        Ok(Draft { path, target: folder.join(name), is_done: false })
    }

    /// Where it is for now.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Brings what is in it to the disk, which may take a while; then [`Draft::finish`] has little left to wait for.
    pub(super) fn settle(&self) -> io::Result<()> {
        sync(&self.path)
    }

    /// Puts it into its place, with all that is in it on the disk.
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
            // The next start removes what can't be removed now.
            let _ = fs::remove_dir_all(&self.path);
        }
    }
}

/// Removes a folder: out of sight at once, and then for good.
pub(super) fn remove(path: &Path) -> io::Result<()> {
    let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else { return Ok(()) };
    let aside = folder.join(format!("{UNFINISHED}{}", name.to_string_lossy()));
    match fs::rename(path, &aside) {
        // It may have been taken away by hand.
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

/// Writes the facts of a folder, in place of those that were there.
pub(super) fn write_facts(folder: &Path, facts: &impl Serialize) -> io::Result<()> {
    let (path, draft) = (folder.join(FACTS), folder.join(format!("{UNFINISHED}{FACTS}")));
    let mut file = File::create(&draft)?;
    file.write_all(&serde_json::to_vec_pretty(facts)?)?;
    file.sync_all()?;
    fs::rename(&draft, &path)?;
    File::open(folder)?.sync_all()
}

/// Reads the facts of a folder.
pub(super) fn read_facts<T: DeserializeOwned>(folder: &Path) -> io::Result<T> {
    Ok(serde_json::from_slice(&fs::read(folder.join(FACTS))?)?)
}

/// Brings a folder and all in it to the disk.
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
        prepare(&folder).unwrap();
        drop(Draft::begin(&folder, "a").unwrap());
        let draft = Draft::begin(&folder, "b").unwrap();
        write_facts(draft.path(), &1).unwrap();
        assert!(!folder.join("b").exists());
        draft.finish().unwrap();
        // One that a crash left.
        std::mem::forget(Draft::begin(&folder, "c").unwrap());
        prepare(&folder).unwrap();
        assert_eq!(list(&folder).unwrap(), [folder.join("b")]);
        assert_eq!(read_facts::<u8>(&folder.join("b")).unwrap(), 1);
        remove(&folder.join("b")).unwrap();
        remove(&folder.join("b")).unwrap();
        assert!(list(&folder).unwrap().is_empty());
    }
}
