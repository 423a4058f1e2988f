//! The folder of the archive's files.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use bytes::Bytes;
use tokio::task::spawn_blocking;

/// A folder, which is created with the first file.
pub(super) struct ArchiveFolder(pub(super) PathBuf);

impl ArchiveFolder {
    /// Writes a new file so that it survives a power failure.
    ///
    /// # Errors
    /// With the reason. Then there may be a part of the file.
    pub(super) async fn put(&self, key: &str, content: Bytes) -> Result<(), String> {
        let root = self.0.clone();
        self.with_file(key, move |path| write_durably(&root, path, &content)).await
    }

    /// Reads a file. Returns `None` if there is none.
    ///
    /// # Errors
    /// With the reason.
    pub(super) async fn get(&self, key: &str) -> Result<Option<Bytes>, String> {
        self.with_file(key, |path| match fs::read(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            content => Ok(Some(content?.into())),
        })
        .await
    }

    /// Removes a file if there is one.
    ///
    /// # Errors
    /// With the reason.
    pub(super) async fn delete(&self, key: &str) -> Result<(), String> {
        self.with_file(key, |path| match fs::remove_file(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            removed => removed,
        })
        .await
    }

    /// Runs file operations on another thread, with the path of the file.
    async fn with_file<T: Send + 'static>(
        &self,
        key: &str,
        work: impl FnOnce(&Path) -> io::Result<T> + Send + 'static,
    ) -> Result<T, String> {
        let path = self.0.join(key);
        let done = spawn_blocking(move || work(&path)).await.unwrap_or_else(|panic| Err(panic.into()));
        done.map_err(|error| error.to_string())
    }
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
