//! The data folder: its lock, and the permissions of its files.

use std::fs::{self, DirBuilder, File, Permissions, TryLockError};
use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use crate::StoreError;

/// The time for which a start waits for an arena that is stopping in the same folder. A child process that the other
/// arena has just started also holds the lock until the child executes its program.
const WAIT_FOR_LOCK: Duration = Duration::from_secs(1);

/// The name of the file with the process id of the program that uses the folder.
const LOCK: &str = "arena.lock";

/// The lock of this process on a data folder. The system releases it even if the process is killed.
pub struct FolderLock {
    /// The folder itself, so that the removal of a file in it doesn't release the lock.
    _folder: File,
    /// The file that older programs lock, which contains the process id.
    _file: File,
}

impl FolderLock {
    /// Locks a data folder for this process, and creates the folder if necessary.
    ///
    /// # Errors
    /// If the folder can't be used, or another process uses it.
    pub fn take(folder: &Path) -> Result<FolderLock, StoreError> {
        let refuse = |error: std::io::Error| StoreError::Folder {
            folder: folder.display().to_string(),
            reason: error.to_string(),
        };
        // Only its owner may read the folder: it contains seeds and the hidden information of games in progress.
        DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(refuse)?;
        keep_from_writing(folder)?;
        let in_use = || {
            let holder = fs::read_to_string(folder.join(LOCK)).unwrap_or_default();
            let holder = if holder.trim().is_empty() { "unknown" } else { holder.trim() }.to_owned();
            StoreError::InUse { folder: folder.display().to_string(), holder }
        };
        let until = Instant::now() + WAIT_FOR_LOCK;
        let of_folder = File::open(folder).map_err(refuse)?;
        // Some network file systems can't lock folders. The lock of the file is left then.
        if let Ok(false) = lock_until(&of_folder, until) {
            return Err(in_use());
        }
        let mut file = File::options()
            .create(true)
            .truncate(false)
            .write(true)
            .mode(0o600)
            .open(folder.join(LOCK))
            .map_err(refuse)?;
        if !lock_until(&file, until).map_err(refuse)? {
            return Err(in_use());
        }
        file.set_len(0).map_err(refuse)?;
        writeln!(file, "{}", std::process::id()).map_err(refuse)?;
        Ok(FolderLock { _folder: of_folder, _file: file })
    }
}

/// Locks a file or folder. Returns false if another process has the lock until `until`.
fn lock_until(file: &File, until: Instant) -> std::io::Result<bool> {
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(true),
            Err(TryLockError::WouldBlock) if Instant::now() < until => thread::sleep(Duration::from_millis(10)),
            Err(TryLockError::WouldBlock) => return Ok(false),
            Err(TryLockError::Error(error)) => return Err(error),
        }
    }
}

/// Takes the permission to write in a data folder from all but its owner.
///
/// # Errors
/// If the permissions can't be changed, or the folder is a common one such as `/tmp`.
fn keep_from_writing(folder: &Path) -> Result<(), StoreError> {
    const OTHERS: u32 = 0o022;
    const STICKY: u32 = 0o1000;
    let refuse = |why: &dyn std::fmt::Display| StoreError::Folder {
        folder: folder.display().to_string(),
        reason: format!("other users can write in it, {why}; use a new folder inside of it, or run chmod go-w"),
    };
    let found = fs::metadata(folder).map_err(|error| refuse(&error))?;
    let mode = found.permissions().mode() & 0o7777;
    if mode & OTHERS == 0 {
        return Ok(());
    }
    if mode & STICKY != 0 {
        return Err(refuse(&"and it isn't for the arena only"));
    }
    fs::set_permissions(folder, Permissions::from_mode(mode & !OTHERS))
        .map_err(|error| refuse(&format_args!("and this can't be changed: {error}")))?;
    let folder = folder.display();
    tracing::warn!("other users could write in the data folder {folder}; only its owner can now");
    Ok(())
}

/// Makes the files of a store readable by their owner only, and creates the first of them. SQLite gives the others its
/// permissions.
///
/// # Errors
/// If a file can't be created or changed.
pub(super) fn keep_private(file: &Path) -> std::io::Result<()> {
    // No connection is open yet: closing a file drops the locks of this process's connections to it.
    match File::options().write(true).create_new(true).mode(0o600).open(file) {
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
        created => return created.map(drop),
    }
    for end in ["sqlite3", "sqlite3-wal", "sqlite3-shm"] {
        let file = file.with_extension(end);
        match fs::metadata(&file) {
            Ok(found) if found.permissions().mode() & 0o077 != 0 => {
                fs::set_permissions(file, Permissions::from_mode(0o600))?;
            }
            _ => {}
        }
    }
    Ok(())
}
