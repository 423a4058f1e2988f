//! The place of the archive's files: a folder or a bucket.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use bytes::Bytes;
use tokio::task::spawn_blocking;

use super::bucket::Bucket;

/// The place of the archive's files.
pub enum ArchivePlace {
    /// A folder. It is created with the first file.
    Folder(PathBuf),
    /// A bucket of an object store.
    Bucket(Bucket),
}

impl ArchivePlace {
    /// Writes a new file so that it survives a power failure.
    ///
    /// # Errors
    /// With the reason, which contains no credentials. Then there may be a part of the file.
    pub(super) async fn put(&self, key: &str, content: Bytes) -> Result<(), String> {
        match self {
            ArchivePlace::Folder(folder) => {
                let root = folder.clone();
                with_file(folder, key, move |path| write_durably(&root, path, &content)).await
            }
            ArchivePlace::Bucket(bucket) => bucket.put(key, content).await,
        }
    }

    /// Reads a file. Returns `None` if there is none.
    ///
    /// # Errors
    /// With the reason, which contains no credentials.
    pub(super) async fn get(&self, key: &str) -> Result<Option<Bytes>, String> {
        match self {
            ArchivePlace::Folder(folder) => {
                with_file(folder, key, |path| match fs::read(path) {
                    Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
                    content => Ok(Some(content?.into())),
                })
                .await
            }
            ArchivePlace::Bucket(bucket) => bucket.get(key).await,
        }
    }

    /// Removes a file if there is one.
    ///
    /// # Errors
    /// With the reason, which contains no credentials.
    pub(super) async fn delete(&self, key: &str) -> Result<(), String> {
        match self {
            ArchivePlace::Folder(folder) => {
                with_file(folder, key, |path| match fs::remove_file(path) {
                    Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
                    removed => removed,
                })
                .await
            }
            ArchivePlace::Bucket(bucket) => bucket.delete(key).await,
        }
    }
}

/// Runs file operations on another thread, with the path of the file.
async fn with_file<T: Send + 'static>(
    folder: &Path,
    key: &str,
    work: impl FnOnce(&Path) -> io::Result<T> + Send + 'static,
) -> Result<T, String> {
    let path = folder.join(key);
    let done = spawn_blocking(move || work(&path)).await.unwrap_or_else(|panic| Err(panic.into()));
    done.map_err(|error| error.to_string())
}

fn write_durably(root: &Path, path: &Path, content: &[u8]) -> io::Result<()> {
    let folder = path.parent().unwrap_or(root);
    // Private messages are readable by the arena's user only, as in the store.
    DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    file.write_all(content)?;
    file.sync_all()?;
    let parent = root.parent().filter(|parent| *parent != Path::new("")).unwrap_or(root);
    [folder, root, parent].iter().try_for_each(|folder| File::open(folder)?.sync_all())
}
