//! The handovers that earlier releases left in the data folder: `record-key.handovers` and `log-key.handovers` have one
//! JSON line for each rotation of a key. Verifiers that know the key of one side accept that of the other.

use std::fs;
use std::io::ErrorKind;
use std::path::Path;

use arena_record::{KeyHandover, KeyKind, RecordPublicKey};

use super::RecordsError;

/// Loads the handovers of a key, oldest first, and checks their signatures. Without the file, there are none.
///
/// # Errors
/// If the file can't be read, or contains anything but valid handovers of this key.
pub(super) fn load_handovers(folder: &Path, kind: KeyKind) -> Result<Vec<KeyHandover>, RecordsError> {
    let path = folder.join(format!("{kind}-key.handovers"));
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

#[cfg(test)]
mod tests {
    use std::fs::Permissions;
    use std::os::unix::fs::PermissionsExt;

    use super::super::keys::RecordKeys;
    use super::*;
    use crate::settings::RecordSettings;

    /// The data folder of an earlier release, whose keys were rotated.
    const FORMER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../arena-cli/tests/format-3/data");

    const FILES: [&str; 7] = [
        "log-key",
        "log-key.1",
        "log-key.handovers",
        "record-key",
        "record-key.1",
        "record-key.handovers",
        "record-salts",
    ];

    #[test]
    fn rotated_keys_of_an_earlier_release_are_loaded_and_forged_handovers_are_refused() {
        let folder = tempfile::tempdir().expect("a folder");
        let folder = folder.path();
        for file in FILES {
            fs::copy(Path::new(FORMER).join(file), folder.join(file)).expect("copied");
            // A clone has no private files.
            fs::set_permissions(folder.join(file), Permissions::from_mode(0o600)).expect("a mode");
        }
        let load = || RecordKeys::load(&RecordSettings::default(), folder, None);
        let keys = load().expect("keys");
        let record = keys.handovers.iter().find(|handover| handover.kind == KeyKind::Record).expect("a handover");
        let log = keys.handovers.iter().find(|handover| handover.kind == KeyKind::Log).expect("a handover");
        assert_eq!((record.new, log.new), (keys.record.public_key(), keys.log.public_key()));
        assert_eq!(keys.former.first().map(arena_record::RecordKey::public_key), Some(record.old));
        assert_eq!(first_key(&keys.handovers, log.new), log.old);
        assert_eq!(first_key(&keys.handovers, log.old), log.old);

        let path = folder.join("record-key.handovers");
        let text = fs::read_to_string(&path).expect("handovers");
        for forged in [text.replacen("\"at\":1", "\"at\":2", 1), text.replacen("record", "log", 1), "{}\n".to_owned()] {
            assert_ne!(forged, text);
            fs::write(&path, forged).expect("written");
            let refused = load().map(drop).expect_err("a forged handover");
            assert!(refused.to_string().contains("record-key.handovers"), "{refused}");
        }
    }
}
