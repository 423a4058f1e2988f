//! Rotation of the keys in the data folder, and the handovers that earlier rotations have left there.
//!
//! The files of a rotated record key are `record-key` with the new key, `record-key.1` with the old one, and
//! `record-key.handovers` with one JSON line for each rotation. Those of the log key begin with `log-key`.

use std::fs::{self, File};
use std::io::ErrorKind;
use std::path::Path;

use arena_engine::Environment;
use arena_record::{KeyHandover, KeyKind, RecordKey, RecordPublicKey, Sign};
use arena_store::{FolderLock, StoreError};

use super::RecordsError;
use super::keys::{LOG_KEY, RECORD_KEY, key_in, read_key};
use crate::secret::SecretFile;

/// The consequence of a lost file of a rotation, for error messages.
const NO_LOSS: &str = "the next rotation makes another key";

/// The file of the next record key, until the handover to it is stored.
const NEXT_RECORD_KEY: SecretFile =
    SecretFile { file: "record-key.next", what: "the next key that signs records", loss: NO_LOSS };

/// The file of the next log key, until the handover to it is stored.
const NEXT_LOG_KEY: SecretFile =
    SecretFile { file: "log-key.next", what: "the next key that signs checkpoints", loss: NO_LOSS };

/// The file of the record key's handovers.
const RECORD_HANDOVERS: SecretFile =
    SecretFile { file: "record-key.handovers", what: "the handovers of the record key", loss: "they are lost" };

/// The file of the log key's handovers.
const LOG_HANDOVERS: SecretFile =
    SecretFile { file: "log-key.handovers", what: "the handovers of the log key", loss: "they are lost" };

/// An error of the rotation of a key.
#[derive(Debug, thiserror::Error)]
pub enum RotateError {
    /// The data folder has no such key.
    #[error(
        "{folder} has no {file}: a server makes it at its first start, unless the keys are computed from a secret or \
         belong to another program"
    )]
    NoKey {
        /// The data folder.
        folder: String,
        /// The file of the key.
        file: &'static str,
    },
    /// The data folder is in use or unusable.
    #[error(transparent)]
    Folder(#[from] StoreError),
    /// A file with keys or handovers is unusable.
    #[error(transparent)]
    Records(#[from] RecordsError),
    /// A file can't be written.
    #[error("cannot write {file}")]
    Write {
        /// The path.
        file: String,
        /// The system's error.
        #[source]
        source: std::io::Error,
    },
    /// A key doesn't sign.
    #[error("cannot sign the handover: {0}")]
    Sign(String),
}

/// Replaces a key in a data folder that no server uses. The old key signs the handover to the new one, and the other
/// way around. A rotation that was interrupted is completed by the next one: the new key is stored before the handover
/// to it, and the old key stays until both are stored.
///
/// # Errors
/// [`RotateError`] if the folder has no such key or is in use, or a file is unusable.
pub fn rotate_key(folder: &Path, kind: KeyKind) -> Result<KeyHandover, RotateError> {
    let (file, next_file, handovers_file) = match kind {
        KeyKind::Record => (&RECORD_KEY, &NEXT_RECORD_KEY, &RECORD_HANDOVERS),
        KeyKind::Log => (&LOG_KEY, &NEXT_LOG_KEY, &LOG_HANDOVERS),
    };
    let path = folder.join(file.file);
    // The lock would create a missing folder, and the load below a missing key.
    if !path.is_file() {
        return Err(RotateError::NoKey { folder: folder.display().to_string(), file: file.file });
    }
    let _lock = FolderLock::take(folder)?;
    let old = key_in(folder, file)?;
    let new = key_in(folder, next_file)?;
    let mut handovers = load_handovers(folder, kind)?;
    let is_this = |handover: &&KeyHandover| handover.old == old.public_key() && handover.new == new.public_key();
    let known = handovers.iter().find(is_this).copied();
    let handover = match known {
        Some(handover) => handover,
        None => {
            let now = Environment::system().now();
            let handover = KeyHandover::sign(kind, &old, &new, now).map_err(RotateError::Sign)?;
            handovers.push(handover);
            let lines: Vec<String> = handovers.iter().map(to_line).collect();
            let unwritten =
                |source| RotateError::Write { file: folder.join(handovers_file.file).display().to_string(), source };
            handovers_file.write(folder, &lines.join("\n")).map_err(unwritten)?;
            handover
        }
    };
    keep_former(folder, file, &old)?;
    let unwritten = |source| RotateError::Write { file: path.display().to_string(), source };
    fs::rename(folder.join(next_file.file), &path).map_err(unwritten)?;
    File::open(folder).and_then(|folder| folder.sync_all()).map_err(unwritten)?;
    Ok(handover)
}

/// Gives the file of a key a second name, the first unused one of `record-key.1`, `record-key.2` and so on.
fn keep_former(folder: &Path, file: &SecretFile, key: &RecordKey) -> Result<(), RotateError> {
    for number in 1_u32.. {
        let path = folder.join(format!("{}.{number}", file.file));
        let unwritten = |source| RotateError::Write { file: path.display().to_string(), source };
        match fs::hard_link(folder.join(file.file), &path) {
            Ok(()) => break,
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                // An interrupted rotation has kept the key already.
                let kept = read_key(&fs::read_to_string(&path).map_err(unwritten)?);
                if kept.is_ok_and(|kept| kept.public_key() == key.public_key()) {
                    break;
                }
            }
            Err(error) => return Err(unwritten(error)),
        }
    }
    Ok(())
}

/// Loads the handovers of a key, oldest first, and checks their signatures. Without the file, there are none.
///
/// # Errors
/// If the file can't be read, or contains anything but valid handovers of this key.
pub(super) fn load_handovers(folder: &Path, kind: KeyKind) -> Result<Vec<KeyHandover>, RecordsError> {
    let file = match kind {
        KeyKind::Record => RECORD_HANDOVERS.file,
        KeyKind::Log => LOG_HANDOVERS.file,
    };
    let path = folder.join(file);
    let invalid = |reason: String| RecordsError::Handovers { file: path.display().to_string(), reason };
    let text = match fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(invalid(error.to_string())),
    };
    let parse = |line: &str| {
        let handover: KeyHandover = serde_json::from_str(line).map_err(|error| invalid(error.to_string()))?;
        handover.check().map_err(|error| invalid(error.to_string()))?;
        if handover.kind == kind { Ok(handover) } else { Err(invalid(format!("expected the kind {kind}"))) }
    };
    text.lines().map(parse).collect()
}

/// Returns the handovers that lead from one key to another of the same kind, in their order. Returns none if they don't
/// connect the keys.
pub(super) fn handovers_between(
    handovers: &[KeyHandover],
    from: RecordPublicKey,
    to: RecordPublicKey,
) -> Vec<KeyHandover> {
    let mut found = Vec::new();
    let mut key = to;
    // Each key is new once, so the way back has no branches.
    while key != from {
        let Some(handover) = handovers.iter().find(|handover| handover.new == key) else { return Vec::new() };
        if found.len() == handovers.len() {
            return Vec::new();
        }
        found.push(*handover);
        key = handover.old;
    }
    found.reverse();
    found
}

/// Returns the first of the keys that handovers connect with this one.
pub(super) fn first_key(handovers: &[KeyHandover], key: RecordPublicKey) -> RecordPublicKey {
    let mut first = key;
    // The number of steps is limited, because a damaged file could contain a circle.
    for _ in handovers {
        match handovers.iter().find(|handover| handover.new == first) {
            Some(handover) => first = handover.old,
            None => break,
        }
    }
    first
}

fn to_line(handover: &KeyHandover) -> String {
    serde_json::to_string(handover).expect("a handover is JSON")
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt;

    use super::*;
    use crate::settings::RecordSettings;

    fn load(folder: &Path) -> super::super::keys::RecordKeys {
        super::super::keys::RecordKeys::load(&RecordSettings::default(), folder, None).expect("keys")
    }

    fn names(folder: &Path) -> Vec<String> {
        let mut names: Vec<String> = fs::read_dir(folder)
            .expect("a folder")
            .map(|entry| entry.expect("an entry").file_name().into_string().expect("a name"))
            .collect();
        names.sort_unstable();
        names
    }

    #[test]
    fn a_rotation_keeps_the_old_key_and_hands_over_to_the_new_one() {
        let folder = tempfile::tempdir().expect("a folder");
        let folder = folder.path();
        let before = load(folder);
        let first = rotate_key(folder, KeyKind::Record).expect("rotated");
        let second = rotate_key(folder, KeyKind::Record).expect("rotated");
        let log = rotate_key(folder, KeyKind::Log).expect("rotated");
        let after = load(folder);
        assert_eq!((first.old, first.new), (before.record.public_key(), second.old));
        assert_eq!((second.new, log.new), (after.record.public_key(), after.log.public_key()));
        assert_eq!(log.old, before.log.public_key());
        let former: Vec<RecordPublicKey> = after.former.iter().map(Sign::public_key).collect();
        assert_eq!(former, [first.old, second.old]);
        assert_eq!(after.handovers, [first, second, log]);
        assert!(after.handovers.iter().all(|handover| handover.check().is_ok()));
        let expected = [
            "arena.lock",
            "log-key",
            "log-key.1",
            "log-key.handovers",
            "record-key",
            "record-key.1",
            "record-key.2",
            "record-key.handovers",
            "record-salts",
        ];
        assert_eq!(names(folder), expected);
        for file in ["record-key", "record-key.1", "log-key"] {
            assert_eq!(fs::metadata(folder.join(file)).expect("a file").mode() & 0o777, 0o600, "{file}");
        }
        let between = |from: RecordPublicKey, to: RecordPublicKey| handovers_between(&after.handovers, from, to);
        assert_eq!(between(first.old, second.new), [first, second]);
        assert_eq!(between(second.old, second.new), [second]);
        assert!(between(second.new, first.old).is_empty());
        assert!(between(log.new, log.new).is_empty());
        assert_eq!(first_key(&after.handovers, second.new), first.old);
        assert_eq!(first_key(&after.handovers, log.old), log.old);
    }

    #[test]
    fn an_interrupted_rotation_is_completed_by_the_next_one() {
        let folder = tempfile::tempdir().expect("a folder");
        let folder = folder.path();
        let old = load(folder).record.public_key();
        // All files are written, but the old key has not been replaced.
        let secret = fs::read_to_string(folder.join("record-key")).expect("a key");
        let done = rotate_key(folder, KeyKind::Record).expect("rotated");
        fs::rename(folder.join("record-key"), folder.join("record-key.next")).expect("renamed");
        fs::hard_link(folder.join("record-key.1"), folder.join("record-key")).expect("linked");
        assert_eq!(load(folder).record.public_key(), old, "the old key signs until the end of the rotation");
        assert_eq!(rotate_key(folder, KeyKind::Record).expect("rotated"), done);
        assert_eq!(load(folder).record.public_key(), done.new);
        assert_eq!(fs::read_to_string(folder.join("record-key.1")).expect("a key"), secret);
        assert!(!names(folder).contains(&"record-key.2".to_owned()));
        // Only the new key is written.
        let next = RecordKey::from_random([9; 32]);
        NEXT_RECORD_KEY.write(folder, &next.to_hex()).expect("written");
        let handover = rotate_key(folder, KeyKind::Record).expect("rotated");
        assert_eq!((handover.old, handover.new), (done.new, next.public_key()));
    }

    #[test]
    fn missing_keys_and_forged_handovers_are_refused() {
        let folder = tempfile::tempdir().expect("a folder");
        let folder = folder.path();
        let missing = rotate_key(&folder.join("none"), KeyKind::Log).expect_err("no key");
        assert!(missing.to_string().contains("has no log-key"), "{missing}");
        assert!(!folder.join("none").exists());
        load(folder);
        rotate_key(folder, KeyKind::Record).expect("rotated");
        let path = folder.join("record-key.handovers");
        let text = fs::read_to_string(&path).expect("handovers");
        for forged in [text.replacen("\"at\":1", "\"at\":2", 1), text.replacen("record", "log", 1), "{}\n".to_owned()] {
            assert_ne!(forged, text);
            fs::write(&path, forged).expect("written");
            let refused = rotate_key(folder, KeyKind::Record).expect_err("a forged handover");
            assert!(refused.to_string().contains("record-key.handovers"), "{refused}");
            let settings = RecordSettings::default();
            assert!(super::super::keys::RecordKeys::load(&settings, folder, None).is_err());
        }
    }
}
