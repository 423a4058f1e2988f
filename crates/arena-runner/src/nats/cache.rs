//! A worker's cache of unpacked agents.

use std::fs::{self, File, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use arena_match::archive;
use arena_model::hex;
use sha2::{Digest, Sha256};
use tempfile::TempDir;
use tokio::io::AsyncReadExt;
use tokio::sync::Mutex;

use crate::executor::causes;
use crate::nats::agents::MAX_BYTES;
use crate::nats::connect::Nats;
use crate::nats::names;

/// The largest number of unpacked agents in the cache. If an agent is evicted while it plays, its folder stays on disk
/// until the match has ended.
const KEPT: usize = 64;

/// The prefix of the names of workers' folders within the folder for temporary files.
const PREFIX: &str = "arena-worker-";

/// The age from which a worker's folder without a lock counts as abandoned.
const YOUNG: Duration = Duration::from_secs(10);

/// The unpacked agents of a worker, the most recently used last.
#[derive(Debug)]
pub struct Cache {
    folder: TempDir,
    /// The lock of the folder, which the process holds until it ends.
    _lock: File,
    kept: Mutex<Vec<(String, Arc<TempDir>)>>,
}

impl Cache {
    /// Creates an empty cache in a new temporary folder.
    ///
    /// # Errors
    /// If the folder can't be created.
    pub fn new() -> std::io::Result<Cache> {
        remove_abandoned();
        let folder = tempfile::Builder::new().prefix(PREFIX).tempdir()?;
        let lock = File::open(folder.path())?;
        lock.lock()?;
        open(folder.path())?;
        Ok(Cache { folder, _lock: lock, kept: Mutex::new(Vec::new()) })
    }

    /// Returns the folder with the unpacked archive that has this hexadecimal SHA-256, and fetches the archive if
    /// needed. The folder stays on disk as long as the returned reference exists.
    ///
    /// # Errors
    /// The reason, in one sentence, if the archive can't be fetched or unpacked.
    pub async fn get(&self, nats: &Nats, tournament: &str, sha256: &str) -> Result<Arc<TempDir>, String> {
        // One download at a time: concurrent requests are mostly for the same archive.
        let mut kept = self.kept.lock().await;
        if let Some(at) = kept.iter().position(|(known, _)| known == sha256) {
            let found = kept.remove(at);
            let folder = Arc::clone(&found.1);
            kept.push(found);
            return Ok(folder);
        }
        let bytes = fetch(nats, tournament, sha256, MAX_BYTES).await?;
        if hex::encode(&Sha256::digest(&bytes)) != sha256 {
            return Err(format!("the content of the archive {sha256} doesn't have this hash"));
        }
        let folder = tempfile::tempdir_in(self.folder.path()).map_err(|error| error.to_string())?;
        open(folder.path()).map_err(|error| error.to_string())?;
        archive::unpack(&bytes, folder.path(), MAX_BYTES).map_err(|error| error.to_string())?;
        let folder = Arc::new(folder);
        kept.push((sha256.to_owned(), Arc::clone(&folder)));
        if kept.len() > KEPT {
            kept.remove(0);
        }
        Ok(folder)
    }
}

/// Fetches an object from a tournament's bucket. The object may have at most `most` bytes.
///
/// # Errors
/// The reason, in one sentence, if the object can't be fetched.
pub async fn fetch(nats: &Nats, tournament: &str, name: &str, most: u64) -> Result<Vec<u8>, String> {
    let failed = |error: &dyn std::error::Error| format!("cannot fetch the object {name}: {}", causes(error));
    let bucket = nats.js.get_object_store(names::bucket(tournament)).await.map_err(|error| failed(&error))?;
    let object = bucket.get(name).await.map_err(|error| failed(&error))?;
    let mut bytes = Vec::new();
    object.take(most + 1).read_to_end(&mut bytes).await.map_err(|error| failed(&error))?;
    match bytes.len() as u64 > most {
        true => Err(format!("the object {name} is larger than {most} bytes")),
        false => Ok(bytes),
    }
}

/// Removes the folders of workers that were killed, as far as file permissions allow.
fn remove_abandoned() {
    for entry in fs::read_dir(std::env::temp_dir()).into_iter().flatten().filter_map(Result::ok) {
        let is_ours = entry.file_name().to_string_lossy().starts_with(PREFIX);
        let age = entry.metadata().ok().and_then(|data| data.modified().ok()?.elapsed().ok());
        // A worker that has just created its folder may not have locked it yet.
        if !is_ours || age.is_none_or(|age| age < YOUNG) {
            continue;
        }
        if File::open(entry.path()).is_ok_and(|folder| folder.try_lock().is_ok()) {
            // The removal may fail; a folder that is left behind does no harm.
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

/// Makes a folder readable for all users, since agents may run as other users.
fn open(folder: &Path) -> std::io::Result<()> {
    fs::set_permissions(folder, Permissions::from_mode(0o755))
}
