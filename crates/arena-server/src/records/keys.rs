//! The keys of records: the record key signs records, the log key signs checkpoints, and the salt secret hides private
//! content in commitments.
//!
//! The keys are in the data folder, or are computed from one secret.

use std::io::ErrorKind;
use std::path::Path;

use arena_identity::{KeyFileError, KeyPair, ServerSecret};
use arena_record::{KeyHandover, KeyKind, RecordKey, SaltSecret};

use super::RecordsError;
use super::handovers::load_handovers;
use crate::auth::{SecretFile, SecretFileError};
use crate::settings::RecordSettings;

const RECORD_KEY: SecretFile = SecretFile {
    file: "record-key",
    what: "the key that signs records",
    loss: "older records lose their seals; to keep them, rename the old file to record-key.1",
};

const LOG_KEY: SecretFile = SecretFile {
    file: "log-key",
    what: "the key that signs the log's checkpoints",
    loss: "verifiers need the new public key",
};

const SALTS: SecretFile = SecretFile {
    file: "record-salts",
    what: "the secret of the salts in records",
    loss: "records of existing games change, so that they differ from the log",
};

pub(super) struct RecordKeys {
    pub(super) salts: SaltSecret,
    pub(super) record: RecordKey,
    /// Record keys that were replaced. They seal the records of their time.
    pub(super) former: Vec<RecordKey>,
    pub(super) log: RecordKey,
    /// The handovers of the record key, then those of the log key, each oldest first.
    pub(super) handovers: Vec<KeyHandover>,
    /// The secret of the keys of sessions' creators. It follows from the salt secret, so all nodes have the same.
    pub(super) creators: ServerSecret,
}

impl RecordKeys {
    /// Loads the keys, or generates them. `shared` is the secret of nodes with a shared database, which need equal
    /// keys. The data folder must exist and be locked.
    ///
    /// # Errors
    /// If a file in the data folder is unusable.
    pub(super) fn load(
        settings: &RecordSettings,
        folder: &Path,
        shared: Option<&ServerSecret>,
    ) -> Result<RecordKeys, RecordsError> {
        let secret = settings.secret.as_ref().or(shared);
        let text = |file: &SecretFile, text_of: fn([u8; 32]) -> String| match secret {
            Some(secret) => {
                let derived = secret.owner_key(&format!("records/{}", file.file));
                Ok(derived.trim_start_matches("o_").to_owned())
            }
            None => file.load_or_make_as(folder, text_of).map(|loaded| loaded.text),
        };
        let bad = |file: &SecretFile, reason: &str| RecordsError::Key {
            file: folder.join(file.file).display().to_string(),
            reason: reason.to_owned(),
        };
        let salt_text = text(&SALTS, ServerSecret::text_from_random)?;
        let no_salts = || bad(&SALTS, "expected 64 lower-case hexadecimal digits");
        let salts = SaltSecret::from_hex(&salt_text).map_err(|_| no_salts())?;
        let creators = ServerSecret::new(salt_text.as_bytes()).map_err(|_| no_salts())?;
        let to_pem = |bytes| KeyPair::from_random(bytes).to_pem();
        let key = |file: &SecretFile| read_key(&text(file, to_pem)?).map_err(|error| bad(file, &error.to_string()));
        let mut handovers = load_handovers(folder, KeyKind::Record)?;
        handovers.extend(load_handovers(folder, KeyKind::Log)?);
        let (record, former, log) = (key(&RECORD_KEY)?, former_keys(folder)?, key(&LOG_KEY)?);
        Ok(RecordKeys { salts, record, former, log, handovers, creators })
    }
}

/// Parses the text of a key file: PEM, which this program writes, the digits of earlier releases, or a key of OpenSSH.
fn read_key(text: &str) -> Result<RecordKey, KeyFileError> {
    KeyPair::from_file_text(text).map(|pair| RecordKey::from_random(pair.to_secret()))
}

/// Loads the record keys that were replaced: the files `record-key.1`, `record-key.2` and so on.
fn former_keys(folder: &Path) -> Result<Vec<RecordKey>, RecordsError> {
    let mut keys = Vec::new();
    for number in 1.. {
        let path = folder.join(format!("{}.{number}", RECORD_KEY.file));
        let file = path.display().to_string();
        let text = match std::fs::read_to_string(&path) {
            Err(error) if error.kind() == ErrorKind::NotFound => break,
            Err(source) => return Err(SecretFileError::File { file, source }.into()),
            Ok(text) => text,
        };
        keys.push(read_key(&text).map_err(|error| RecordsError::Key { file, reason: error.to_string() })?);
    }
    Ok(keys)
}

#[cfg(test)]
mod tests {
    use arena_record::RecordPublicKey;

    use super::*;

    fn secret(text: &str) -> ServerSecret {
        ServerSecret::new(text.as_bytes()).expect("long enough")
    }

    #[test]
    fn keys_survive_a_restart_and_are_three_different_files() {
        let folder = tempfile::tempdir().expect("a folder");
        let settings = RecordSettings::default();
        let load = || RecordKeys::load(&settings, folder.path(), None).expect("keys");
        let (first, second) = (load(), load());
        assert_eq!(first.record.public_key(), second.record.public_key());
        assert_eq!(first.log.public_key(), second.log.public_key());
        assert_ne!(first.record.public_key(), first.log.public_key());
        let mut names: Vec<String> = std::fs::read_dir(folder.path())
            .expect("a folder")
            .map(|entry| entry.expect("an entry").file_name().into_string().expect("a name"))
            .collect();
        names.sort_unstable();
        assert_eq!(names, ["log-key", "record-key", "record-salts"]);
        let public = "-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n";
        for name in names {
            let path = folder.path().join(&name);
            let is_key = name.ends_with("-key");
            let made = std::fs::read_to_string(&path).expect("a key");
            assert_eq!(made.starts_with("-----BEGIN PRIVATE KEY-----\n"), is_key, "{name}");
            std::fs::write(&path, public).expect("a file");
            let error = RecordKeys::load(&settings, folder.path(), None).map(drop).expect_err("no key").to_string();
            let reason = if is_key { "this is a public key" } else { "expected 64 lower-case hexadecimal digits" };
            assert!(error.contains(&name) && error.contains(reason), "{error}");
            std::fs::write(&path, made).expect("a file");
        }
        // Earlier releases wrote hexadecimal digits.
        std::fs::write(folder.path().join("record-key"), first.record.to_hex() + "\n").expect("a file");
        assert_eq!(load().record.public_key(), first.record.public_key());
    }

    #[test]
    fn a_renamed_record_key_still_seals_older_records() {
        let folder = tempfile::tempdir().expect("a folder");
        let settings = RecordSettings::default();
        let load = || RecordKeys::load(&settings, folder.path(), None).expect("keys");
        let old = load();
        assert!(old.former.is_empty());
        std::fs::rename(folder.path().join("record-key"), folder.path().join("record-key.1")).expect("renamed");
        let new = load();
        assert_ne!(new.record.public_key(), old.record.public_key());
        let former: Vec<RecordPublicKey> = new.former.iter().map(RecordKey::public_key).collect();
        assert_eq!(former, [old.record.public_key()]);
    }

    #[test]
    fn one_secret_gives_all_nodes_the_same_keys_and_no_files() {
        let folder = tempfile::tempdir().expect("a folder");
        let load = |own: Option<&str>, shared: Option<&str>| {
            let settings = RecordSettings { secret: own.map(secret), ..RecordSettings::default() };
            let keys = RecordKeys::load(&settings, folder.path(), shared.map(secret).as_ref()).expect("keys");
            (keys.record.public_key().to_string(), keys.log.public_key().to_string())
        };
        let [a, b] = ["the secret of one arena", "the secret of another"];
        assert_eq!(load(Some(a), None), load(Some(a), None));
        assert_eq!(load(Some(a), Some(b)), load(None, Some(a)));
        assert_ne!(load(Some(a), None), load(Some(b), None));
        assert_eq!(std::fs::read_dir(folder.path()).expect("a folder").count(), 0);
    }
}
