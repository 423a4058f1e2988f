//! The scratch folder of an agent without namespaces: a real folder, which is removed after the agent's end.

use std::fs::{self, DirBuilder, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt, chown};
use std::path::{Path, PathBuf};

/// A folder that only the agent's user may enter. Dropping it removes the folder and its contents.
pub(super) struct Scratch(PathBuf);

/// Returns the possible paths of the scratch folder. The launcher uses the first free one.
fn names(parent: &Path, launcher: u32) -> impl Iterator<Item = PathBuf> {
    (0..100).map(move |attempt| parent.join(format!("arena-agent-{launcher}-{attempt}")))
}

/// Removes the scratch folders left by a killed launcher with this process id. Folders of other users stay.
pub(crate) fn remove_left_by(launcher: u32, parent: &Path) {
    for path in names(parent, launcher).take_while(|path| path.symlink_metadata().is_ok()) {
        // A folder that can't be removed does no harm.
        let _ = fs::remove_dir_all(path);
    }
}

impl Scratch {
    pub(super) fn make_in(parent: &Path, owner: Option<u32>) -> io::Result<Scratch> {
        for path in names(parent, std::process::id()) {
            // The folder is created with its final mode, and an existing folder is an error. So no other
            // process can prepare or enter the folder first.
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
        Err(io::Error::new(io::ErrorKind::AlreadyExists, "all names for the scratch folder are taken"))
    }

    pub(super) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if fs::remove_dir_all(&self.0).is_err() {
            // The agent, which runs as the same user, may have removed its own access to folders.
            open_up(&self.0);
            // `drop` can't report an error.
            let _ = fs::remove_dir_all(&self.0);
        }
    }
}

/// Gives the owner access to this folder and all folders in it, without following links. All processes of the
/// agent must have ended.
fn open_up(folder: &Path) {
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        let _ = fs::set_permissions(&folder, Permissions::from_mode(0o700));
        let entries = fs::read_dir(&folder).into_iter().flatten().flatten();
        folders.extend(entries.filter(|e| e.file_type().is_ok_and(|kind| kind.is_dir())).map(|entry| entry.path()));
    }
}
