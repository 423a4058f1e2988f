//! Secrets that a server makes once and keeps in its data folder, so that they outlive a restart.

use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

use arena_identity::ServerSecret;

/// A secret that is kept in a file of the data folder.
pub(crate) struct Kept {
    /// The file's name.
    pub(crate) file: &'static str,
    /// What it is, for the log.
    pub(crate) what: &'static str,
    /// What is lost with it.
    pub(crate) loss: &'static str,
}

/// A secret as text, and where it comes from.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Loaded {
    pub(crate) text: String,
    /// Whether it was made just now.
    pub(crate) is_new: bool,
}

/// Longest file that is read, in bytes: far more than a secret, and nothing to fill memory with.
const MAX_BYTES: u64 = 4096;

/// Why a secret that is kept in a file can't be used.
#[derive(Debug, thiserror::Error)]
pub enum SecretFileError {
    /// The file can't be read or made.
    #[error("the secret {file} can't be used")]
    File {
        /// Which file.
        file: String,
        /// What the system says.
        #[source]
        source: std::io::Error,
    },
    /// Others may have read it.
    #[error(
        "the secret {file} is open to others than its owner: set its mode to 600, or, if somebody may have read it, remove \
         it. A new one is made then, and {loss}"
    )]
    Exposed {
        /// Which file.
        file: String,
        /// What is lost with it.
        loss: &'static str,
    },
    /// The system gives no randomness to make one of.
    #[error("no secret could be made: the system gives no random numbers: {0}")]
    Random(getrandom::Error),
}

impl Kept {
    /// The secret of a data folder, which only one process uses at a time; a new one if there is none yet.
    ///
    /// # Errors
    /// If it can't be read or made, or could be read by others.
    pub(crate) fn load_or_make(&self, folder: &Path) -> Result<Loaded, SecretFileError> {
        let path = folder.join(self.file);
        let file = path.display().to_string();
        let refuse = |source| SecretFileError::File { file: file.clone(), source };
        match File::open(&path) {
            Ok(mut opened) => {
                if opened.metadata().map_err(refuse)?.mode() & 0o077 != 0 {
                    return Err(SecretFileError::Exposed { file, loss: self.loss });
                }
                let text = read(&mut opened).map_err(refuse)?.trim_end().to_owned();
                Ok(Loaded { text, is_new: false })
            }
            Err(error) if error.kind() == ErrorKind::NotFound => {
                let mut bytes = [0; 32];
                getrandom::fill(&mut bytes).map_err(SecretFileError::Random)?;
                let text = ServerSecret::text_from_random(bytes);
                self.write(folder, &text).map_err(refuse)?;
                let what = self.what;
                tracing::info!("made {file}, {what}: keep it to yourself, and with the data");
                Ok(Loaded { text, is_new: true })
            }
            Err(error) => Err(refuse(error)),
        }
    }

    /// Writes the secret so that it is there as a whole or not at all, also after a power cut, and never readable by others.
    fn write(&self, folder: &Path, text: &str) -> std::io::Result<()> {
        let unfinished = folder.join(format!(".{}.new", self.file));
        // Left by a start that was cut off.
        if let Err(error) = fs::remove_file(&unfinished)
            && error.kind() != ErrorKind::NotFound
        {
            return Err(error);
        }
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&unfinished)?;
        writeln!(file, "{text}")?;
        file.sync_all()?;
        fs::rename(&unfinished, folder.join(self.file))?;
        File::open(folder)?.sync_all()
    }
}

fn read(file: &mut File) -> std::io::Result<String> {
    let mut text = String::new();
    file.take(MAX_BYTES).read_to_string(&mut text)?;
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::Permissions;
    use std::os::unix::fs::PermissionsExt;

    const KEPT: Kept = Kept { file: "test.secret", what: "a secret", loss: "nothing is lost" };

    #[test]
    fn a_secret_is_made_once_and_is_its_owners_only() {
        let folder = tempfile::tempdir().expect("a folder");
        fs::write(folder.path().join(".test.secret.new"), "half").expect("a file that a cut-off start has left");
        let made = KEPT.load_or_make(folder.path()).expect("made");
        let path = folder.path().join(KEPT.file);
        assert_eq!(fs::metadata(&path).expect("is there").mode() & 0o777, 0o600);
        assert_eq!(fs::read_to_string(&path).expect("text").len(), 65);
        assert!(made.is_new);
        let read = KEPT.load_or_make(folder.path()).expect("read");
        assert_eq!(read, Loaded { is_new: false, ..made });
        assert_eq!(fs::read_dir(folder.path()).expect("a folder").count(), 1);

        let other = tempfile::tempdir().expect("a folder");
        assert_ne!(KEPT.load_or_make(other.path()).expect("made").text, read.text);
    }

    #[track_caller]
    fn check(text: &[u8], mode: u32, expected: &str) {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join(KEPT.file);
        fs::write(&path, text).expect("a file");
        fs::set_permissions(&path, Permissions::from_mode(mode)).expect("a mode");
        let error = KEPT.load_or_make(folder.path()).map(drop).expect_err("no secret to use");
        let text = error.to_string().replace(&path.display().to_string(), "FILE");
        assert!(text.contains(expected), "{text:?} lacks {expected:?}");
    }

    #[test]
    fn a_secret_that_others_may_have_read_is_refused() {
        let good = "x".repeat(64);
        check(good.as_bytes(), 0o640, "FILE is open to others than its owner: set its mode to 600");
        check(good.as_bytes(), 0o604, "A new one is made then, and nothing is lost");
        check(good.as_bytes(), 0o622, "FILE is open to others");
        check(&[0xff; 64], 0o600, "FILE can't be used");
    }

    #[test]
    fn a_secret_may_be_ones_own() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join(KEPT.file);
        fs::write(&path, "what only we know\n").expect("a file");
        fs::set_permissions(&path, Permissions::from_mode(0o400)).expect("a mode");
        let expected = Loaded { text: "what only we know".to_owned(), is_new: false };
        assert_eq!(KEPT.load_or_make(folder.path()).expect("read"), expected);
    }
}
