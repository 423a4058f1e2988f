//! The server's secret, made once and kept in the data folder, so that session keys outlive a restart.

use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

use arena_identity::{SecretError, ServerSecret};

/// The file in the data folder.
const FILE: &str = "auth.secret";

/// Longest file that is read, in bytes: far more than a secret, and nothing to fill memory with.
const MAX_BYTES: u64 = 4096;

/// Why a server can't authenticate.
#[derive(Debug, thiserror::Error)]
pub enum AuthError {
    /// The file can't be read or made.
    #[error("the secret {file} can't be used")]
    File {
        /// Which file.
        file: String,
        /// What the system says.
        #[source]
        source: std::io::Error,
    },
    /// Others may have read it, and whoever has can speak for every player.
    #[error(
        "the secret {0} is open to others than its owner: set its mode to 600, or, if somebody may have read it, remove \
         it. A new one is made then, and players who are in the middle of a game can't go on"
    )]
    Exposed(String),
    /// It isn't a secret.
    #[error("the secret {file} is no good")]
    Bad {
        /// Which file.
        file: String,
        /// What is wrong with it.
        #[source]
        source: SecretError,
    },
    /// The system gives no randomness to make one of.
    #[error("no secret could be made: the system gives no random numbers: {0}")]
    Random(getrandom::Error),
    /// The system gives no thread to check signatures on.
    #[error("can't start the thread that checks signatures")]
    Thread(#[source] std::io::Error),
}

/// The secret of a data folder, which only one process uses at a time; a new one if there is none yet.
///
/// # Errors
/// If it can't be read or made, could be read by others, or is too short to be a secret.
pub(crate) fn load_or_make(folder: &Path) -> Result<ServerSecret, AuthError> {
    let path = folder.join(FILE);
    let file = path.display().to_string();
    let refuse = |source| AuthError::File { file: file.clone(), source };
    let text = match File::open(&path) {
        Ok(mut opened) => {
            if opened.metadata().map_err(refuse)?.mode() & 0o077 != 0 {
                return Err(AuthError::Exposed(file));
            }
            read(&mut opened).map_err(refuse)?
        }
        Err(error) if error.kind() == ErrorKind::NotFound => {
            let mut bytes = [0; 32];
            getrandom::fill(&mut bytes).map_err(AuthError::Random)?;
            let text = ServerSecret::text_from_random(bytes);
            write(folder, &text).map_err(refuse)?;
            tracing::info!("made {file}, the secret behind session keys: keep it to yourself, and with the data");
            text
        }
        Err(error) => return Err(refuse(error)),
    };
    ServerSecret::new(text.trim_end().as_bytes()).map_err(|source| AuthError::Bad { file, source })
}

fn read(file: &mut File) -> std::io::Result<String> {
    let mut text = String::new();
    file.take(MAX_BYTES).read_to_string(&mut text)?;
    Ok(text)
}

/// Writes the secret so that it is there as a whole or not at all, also after a power cut, and never readable by others.
fn write(folder: &Path, text: &str) -> std::io::Result<()> {
    let unfinished = folder.join(format!(".{FILE}.new"));
    // Left by a start that was cut off.
    if let Err(error) = fs::remove_file(&unfinished)
        && error.kind() != ErrorKind::NotFound
    {
        return Err(error);
    }
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&unfinished)?;
    writeln!(file, "{text}")?;
    file.sync_all()?;
    fs::rename(&unfinished, folder.join(FILE))?;
    File::open(folder)?.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::Permissions;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_secret_is_made_once_and_is_its_owners_only() {
        let folder = tempfile::tempdir().expect("a folder");
        fs::write(folder.path().join(".auth.secret.new"), "half").expect("a file that a cut-off start has left");
        let made = load_or_make(folder.path()).expect("made");
        let path = folder.path().join(FILE);
        assert_eq!(fs::metadata(&path).expect("is there").mode() & 0o777, 0o600);
        assert_eq!(fs::read_to_string(&path).expect("text").len(), 65);
        assert_eq!(load_or_make(folder.path()).expect("read"), made);
        assert_eq!(fs::read_dir(folder.path()).expect("a folder").count(), 1);

        let other = tempfile::tempdir().expect("a folder");
        assert_ne!(load_or_make(other.path()).expect("made"), made);
    }

    #[track_caller]
    fn check(text: &[u8], mode: u32, expected: &str) {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join(FILE);
        fs::write(&path, text).expect("a file");
        fs::set_permissions(&path, Permissions::from_mode(mode)).expect("a mode");
        let error = load_or_make(folder.path()).map(drop).expect_err("no secret to use");
        let text = error.to_string().replace(&path.display().to_string(), "FILE");
        assert!(text.contains(expected), "{text:?} lacks {expected:?}");
    }

    #[test]
    fn a_secret_that_is_none_is_refused() {
        let good = "x".repeat(64);
        check(good.as_bytes(), 0o640, "FILE is open to others than its owner: set its mode to 600");
        check(good.as_bytes(), 0o604, "FILE is open to others");
        check(good.as_bytes(), 0o622, "FILE is open to others");
        check(b"", 0o600, "FILE is no good");
        check(b"\n\n\n                  \n", 0o600, "FILE is no good");
        check(&[0xff; 64], 0o600, "FILE can't be used");
    }

    #[test]
    fn a_secret_may_be_ones_own() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join(FILE);
        fs::write(&path, "what only we know\n").expect("a file");
        fs::set_permissions(&path, Permissions::from_mode(0o400)).expect("a mode");
        assert_eq!(
            load_or_make(folder.path()).expect("read"),
            ServerSecret::new(b"what only we know").expect("long enough")
        );
    }
}
