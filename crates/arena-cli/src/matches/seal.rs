//! The signature of replays with a key of the user.

use std::fs;
use std::io::Write;
use std::path::Path;

use arena_identity::KeyPair;
use arena_match::{OutputFile, PlayedMatch, seal_line};
use arena_record::RecordKey;

use crate::exit::Failure;
use crate::files::cannot_write;

/// Reads the key of `--sign-key`, a private key file as from `arena identity new`, or the file `record-key` of a server.
///
/// # Errors
/// If the file can't be read or has other content. The error doesn't repeat the content.
pub fn read_key(path: &Path) -> Result<RecordKey, Failure> {
    let wrong = |why: &dyn std::fmt::Display| Failure::usage(format_args!("--sign-key {}: {why}", path.display()));
    let text = fs::read_to_string(path).map_err(|error| wrong(&format_args!("cannot be read: {error}")))?;
    let pair = KeyPair::from_file_text(&text).map_err(|error| wrong(&error))?;
    Ok(RecordKey::from_random(pair.to_secret()))
}

/// Appends the seal to the replay of a match.
///
/// # Errors
/// If the file can't be written.
pub fn seal(key: &RecordKey, path: &Path, file: &mut OutputFile, played: &PlayedMatch) -> Result<(), Failure> {
    let Some(last) = played.replay else { return Ok(()) };
    file.write_all(seal_line(last, key).as_bytes()).map_err(|error| cannot_write(path, &error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_read_and_a_wrong_one_is_not_printed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("key");
        let key = RecordKey::from_random([7; 32]);
        for text in [key.to_hex() + "\n", KeyPair::from_random([7; 32]).to_pem()] {
            fs::write(&path, text).unwrap();
            assert_eq!(read_key(&path).unwrap().public_key(), key.public_key());
        }
        fs::write(&path, "secret").unwrap();
        let failure = read_key(&path).unwrap_err();
        assert!(!failure.sentence().contains("secret") && failure.sentence().contains("identity new"), "{failure:?}");
        assert!(read_key(&folder.path().join("none")).unwrap_err().sentence().contains("cannot be read"));
    }
}
