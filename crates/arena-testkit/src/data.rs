//! Folders for the data of servers and databases.

use tempfile::{Builder, TempDir};

/// The file system in memory that most Linux systems have.
const MEMORY: &str = "/dev/shm";

/// The free space that [`MEMORY`] must have, in bytes. In containers it often has 64 MiB in all.
const NEEDED_BYTES: u64 = 2 << 30;

/// Creates a folder for the data of a server or a database.
///
/// The folder is in memory if there is room. On a disk, each commit takes some milliseconds, and tests make many
/// thousands of them. Kills of processes have the same effect in memory; no test cuts the power. Agents can't be started
/// from the folder, because their sandbox has a `/dev` of its own.
///
/// # Panics
/// If no folder can be created.
pub fn data_folder() -> TempDir {
    named("arena-")
}

/// Creates a folder as [`data_folder`] does, with this beginning of its name.
pub(crate) fn named(prefix: &str) -> TempDir {
    let in_memory = has_room().then(|| Builder::new().prefix(prefix).tempdir_in(MEMORY));
    match in_memory {
        Some(Ok(folder)) => folder,
        _ => Builder::new().prefix(prefix).tempdir().expect("a temp folder"),
    }
}

fn has_room() -> bool {
    rustix::fs::statvfs(MEMORY).is_ok_and(|found| found.f_bavail.saturating_mul(found.f_frsize) >= NEEDED_BYTES)
}
