//! Generated secrets in the data folder, which survive restarts.

use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

use arena_identity::ServerSecret;

/// A secret in a file of the data folder.
pub(crate) struct SecretFile {
    pub(crate) file: &'static str,
    /// The secret's description, for the log.
    pub(crate) what: &'static str,
    /// The consequence of a new secret, for error messages.
    pub(crate) loss: &'static str,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Loaded {
    pub(crate) text: String,
    /// True if the secret was just generated.
    pub(crate) is_new: bool,
}

/// Maximum number of bytes to read from the file, far more than a secret needs.
const MAX_BYTES: u64 = 4096;

#[derive(Debug, thiserror::Error)]
pub enum SecretFileError {
    #[error("cannot read or write the secret file {file}")]
    File {
        file: String,
        #[source]
        source: std::io::Error,
    },
    #[error(
        "the secret file {file} is accessible to other users: set its mode to 600. If it may have been read, \
         remove it; the server then generates a new one, and {loss}"
    )]
    Exposed { file: String, loss: &'static str },
    #[error("cannot generate a secret: the system's random number generator failed: {0}")]
    Random(getrandom::Error),
}

impl SecretFile {
    /// Loads the secret from the data folder, or generates it. The folder must be locked.
    ///
    /// # Errors
    /// If the file can't be read or written, or is accessible to other users.
    pub(crate) fn load_or_make(&self, folder: &Path) -> Result<Loaded, SecretFileError> {
        self.load_or_make_as(folder, ServerSecret::text_from_random)
    }

    /// Like [`SecretFile::load_or_make`], with the text that `text_of` returns for 32 random bytes.
    pub(crate) fn load_or_make_as(
        &self,
        folder: &Path,
        text_of: fn([u8; 32]) -> String,
    ) -> Result<Loaded, SecretFileError> {
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
                let text = text_of(bytes).trim_end().to_owned();
                self.write(folder, &text).map_err(refuse)?;
                let what = self.what;
                tracing::info!("generated {file}, {what}: keep it secret, and back it up with the data");
                Ok(Loaded { text, is_new: true })
            }
            Err(error) => Err(refuse(error)),
        }
    }

    /// Writes the secret atomically and durably, to a file that other users can't read at any time.
    ///
    /// # Errors
    /// The system's error.
    fn write(&self, folder: &Path, text: &str) -> std::io::Result<()> {
        let unfinished = folder.join(format!(".{}.new", self.file));
        // An interrupted start may have left an unfinished file.
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

    const TEST_FILE: SecretFile = SecretFile { file: "test.secret", what: "a secret", loss: "nothing is lost" };

    #[test]
    fn a_secret_is_made_once_and_is_its_owners_only() {
        let folder = tempfile::tempdir().expect("a folder");
        fs::write(folder.path().join(".test.secret.new"), "half").expect("a file that a cut-off start has left");
        let made = TEST_FILE.load_or_make(folder.path()).expect("made");
        let path = folder.path().join(TEST_FILE.file);
        assert_eq!(fs::metadata(&path).expect("is there").mode() & 0o777, 0o600);
        assert_eq!(fs::read_to_string(&path).expect("text").len(), 65);
        assert!(made.is_new);
        let read = TEST_FILE.load_or_make(folder.path()).expect("read");
        assert_eq!(read, Loaded { is_new: false, ..made });
        assert_eq!(fs::read_dir(folder.path()).expect("a folder").count(), 1);

        let other = tempfile::tempdir().expect("a folder");
        assert_ne!(TEST_FILE.load_or_make(other.path()).expect("made").text, read.text);
    }

    #[track_caller]
    fn check(text: &[u8], mode: u32, expected: &str) {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join(TEST_FILE.file);
        fs::write(&path, text).expect("a file");
        fs::set_permissions(&path, Permissions::from_mode(mode)).expect("a mode");
        let error = TEST_FILE.load_or_make(folder.path()).map(drop).expect_err("no secret to use");
        let text = error.to_string().replace(&path.display().to_string(), "FILE");
        assert!(text.contains(expected), "{text:?} lacks {expected:?}");
    }

    #[test]
    fn a_secret_that_others_may_have_read_is_refused() {
        let good = "x".repeat(64);
        check(good.as_bytes(), 0o640, "FILE is accessible to other users: set its mode to 600");
        check(good.as_bytes(), 0o604, "generates a new one, and nothing is lost");
        check(good.as_bytes(), 0o622, "FILE is accessible to other users");
        check(&[0xff; 64], 0o600, "cannot read or write the secret file FILE");
    }

    #[test]
    fn a_secret_may_be_ones_own() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join(TEST_FILE.file);
        fs::write(&path, "what only we know\n").expect("a file");
        fs::set_permissions(&path, Permissions::from_mode(0o400)).expect("a mode");
        let expected = Loaded { text: "what only we know".to_owned(), is_new: false };
        assert_eq!(TEST_FILE.load_or_make(folder.path()).expect("read"), expected);
    }
}
