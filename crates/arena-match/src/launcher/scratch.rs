//! The scratch folder of an agent without namespaces: a real one, which is removed when the agent is over.

use std::fs::{self, DirBuilder, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt, chown};
use std::path::{Path, PathBuf};

/// A folder that only the agent's user may enter. Dropping it removes it and all that is in it.
pub(super) struct Scratch(PathBuf);

/// The names that the folder may have, the first free one of which it gets.
fn names(parent: &Path, launcher: u32) -> impl Iterator<Item = PathBuf> {
    (0..100).map(move |attempt| parent.join(format!("arena-agent-{launcher}-{attempt}")))
}

/// Removes what a launcher with this process id left that was killed itself. Folders of others stay.
pub(crate) fn remove_left_by(launcher: u32, parent: &Path) {
    for path in names(parent, launcher).take_while(|path| path.symlink_metadata().is_ok()) {
        // What its owner has closed to itself or belongs to others stays, and is in nobody's way.
        let _ = fs::remove_dir_all(path);
    }
}

impl Scratch {
    pub(super) fn make_in(parent: &Path, owner: Option<u32>) -> io::Result<Scratch> {
        for path in names(parent, std::process::id()) {
            // The mode is given as it is made and an existing one is refused, so nobody can prepare or enter it before.
            match DirBuilder::new().mode(0o700).create(&path) {
                Ok(()) => {
                    let scratch = Scratch(path);
                    chown(scratch.path(), owner, owner)?;
                    return Ok(scratch);
                }
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
        }
        Err(io::Error::new(io::ErrorKind::AlreadyExists, "all names for it are taken"))
    }

    pub(super) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if fs::remove_dir_all(&self.0).is_err() {
            // An agent may have closed folders to itself, and to us who are the same user.
            open_up(&self.0);
            // Nobody is left who could be told.
            let _ = fs::remove_dir_all(&self.0);
        }
    }
}

/// Lets the owner into all folders below this one. Links aren't followed. Called when no process of the agent is left.
fn open_up(folder: &Path) {
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        let _ = fs::set_permissions(&folder, Permissions::from_mode(0o700));
        let entries = fs::read_dir(&folder).into_iter().flatten().flatten();
        folders.extend(entries.filter(|e| e.file_type().is_ok_and(|kind| kind.is_dir())).map(|entry| entry.path()));
    }
}
