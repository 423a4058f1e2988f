//! A worker's agents: what was unpacked once serves all later matches, until others have taken its place.

use std::fs::{self, File, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use arena_match::archive;
use sha2::{Digest, Sha256};
use tempfile::TempDir;
use tokio::io::AsyncReadExt;
use tokio::sync::Mutex;

use crate::executor::causes;
use crate::nats::agents::{MAX_BYTES, hex};
use crate::nats::connect::Nats;
use crate::nats::names;

/// How many unpacked agents are kept. One that a match still plays with stays until that has ended.
const KEPT: usize = 64;

/// How the folders of workers are called, below that for temporary files.
const PREFIX: &str = "arena-worker-";

/// How long the folder of a worker that has just started may go without a lock.
const YOUNG: Duration = Duration::from_secs(10);

/// The agents that a worker has unpacked, those that were used last at the end.
#[derive(Debug)]
pub struct Cache {
    folder: TempDir,
    /// The folder, locked until the process ends, however it ends.
    _lock: File,
    kept: Mutex<Vec<(String, Arc<TempDir>)>>,
}

impl Cache {
    /// An empty one, in a folder of its own below that for temporary files.
    ///
    /// # Errors
    /// When that can't be made.
    pub fn new() -> std::io::Result<Cache> {
        remove_abandoned();
        let folder = tempfile::Builder::new().prefix(PREFIX).tempdir()?;
        let lock = File::open(folder.path())?;
        lock.lock()?;
        open(folder.path())?;
        Ok(Cache { folder, _lock: lock, kept: Mutex::new(Vec::new()) })
    }

    /// The folder of the archive with this SHA-256, in hex, which is fetched if need be. It is there as long as it is held.
    ///
    /// # Errors
    /// A sentence.
    pub async fn get(&self, nats: &Nats, tournament: &str, sha256: &str) -> Result<Arc<TempDir>, String> {
        // One at a time: others would most often wait for the same.
        let mut kept = self.kept.lock().await;
        if let Some(at) = kept.iter().position(|(known, _)| known == sha256) {
            let found = kept.remove(at);
            let folder = Arc::clone(&found.1);
            kept.push(found);
            return Ok(folder);
        }
        let bytes = fetch(nats, tournament, sha256, MAX_BYTES).await?;
        if hex(&Sha256::digest(&bytes)) != sha256 {
            return Err(format!("the archive {sha256} arrived with another content"));
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

/// An object of a tournament, of at most so many bytes.
///
/// # Errors
/// A sentence.
pub async fn fetch(nats: &Nats, tournament: &str, name: &str, most: u64) -> Result<Vec<u8>, String> {
    let told = |error: &dyn std::error::Error| format!("the object {name} can't be fetched: {}", causes(error));
    let bucket = nats.js.get_object_store(names::bucket(tournament)).await.map_err(|error| told(&error))?;
    let object = bucket.get(name).await.map_err(|error| told(&error))?;
    let mut bytes = Vec::new();
    object.take(most + 1).read_to_end(&mut bytes).await.map_err(|error| told(&error))?;
    match bytes.len() as u64 > most {
        true => Err(format!("the object {name} is larger than {most} bytes")),
        false => Ok(bytes),
    }
}

/// Removes the folders of workers that were killed, as far as they are ours to remove.
fn remove_abandoned() {
    for entry in fs::read_dir(std::env::temp_dir()).into_iter().flatten().filter_map(Result::ok) {
        let is_ours = entry.file_name().to_string_lossy().starts_with(PREFIX);
        let age = entry.metadata().ok().and_then(|data| data.modified().ok()?.elapsed().ok());
        // One that was made just now may not be locked yet.
        if !is_ours || age.is_none_or(|age| age < YOUNG) {
            continue;
        }
        if File::open(entry.path()).is_ok_and(|folder| folder.try_lock().is_ok()) {
            // What can't be removed is in nobody's way.
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

/// Lets everybody in: agents may run as other users.
fn open(folder: &Path) -> std::io::Result<()> {
    fs::set_permissions(folder, Permissions::from_mode(0o755))
}
