//! The newest checkpoint of a log, with its verified signatures.

use arena_record::KeyHandover;
use arena_record::log::{NoteError, NoteKey, SignedCheckpoint, read_checkpoint};

use super::source::{LogKeyArgs, LogSource, connected_log_keys, log_key};
use crate::exit::{Exit, Failure};
use crate::output::note;

/// The newest checkpoint of a log, with its verified signatures.
#[derive(Debug, Clone)]
pub struct LogHead {
    pub checkpoint: SignedCheckpoint,
    /// The key whose signature was verified; `None` if no key is known.
    pub key: Option<NoteKey>,
    /// The keys that may have signed older checkpoints: the trusted key, and those that handovers connect with it.
    pub keys: Vec<NoteKey>,
    /// The handovers that the log's owner publishes.
    pub handovers: Vec<KeyHandover>,
    /// True if the key was given, false if the log itself publishes it.
    pub is_key_given: bool,
}

impl LogHead {
    /// Reads the newest checkpoint and verifies its signatures.
    ///
    /// # Errors
    /// If a file or key can't be read, a signature or handover is forged, or no trusted key has signed.
    pub fn read(source: &LogSource, keys: &LogKeyArgs) -> Result<LogHead, Failure> {
        let checkpoint = read_checkpoint(&mut |path: &str| source.fetch(path));
        let checkpoint = checkpoint.map_err(|error| source.explain(error))?;
        let given = keys.log_key.as_deref().map(log_key).transpose()?;
        let published = match source.published() {
            // With a given key, only handovers are missing.
            Err(failure) if given.is_some() && failure.exit != Exit::BadReplay => None,
            published => published?,
        };
        let trusted = match (&given, &published) {
            (Some(given), _) => Some(given.key.clone()),
            (None, Some(published)) => published.log_key(&source.name())?,
            (None, None) => None,
        };
        let mut handovers = published.map(|published| published.handovers).unwrap_or_default();
        handovers.extend(given.map(|given| given.handovers).unwrap_or_default());
        let log_keys = trusted.map(|key| connected_log_keys(&key, &handovers)).unwrap_or_default();
        let key = signer_of(&checkpoint, &log_keys).map_err(|error| source.explain(error))?.cloned();
        let is_key_given = keys.log_key.is_some();
        Ok(LogHead { checkpoint, key, keys: log_keys, handovers, is_key_given })
    }

    /// Prints a note if no trusted key was given, because a forged log can publish a key of its own.
    pub fn note_key(&self) {
        match &self.key {
            _ if self.is_key_given => {}
            Some(key) => note(&format!(
                "the log itself publishes the key of its signature, {key}; if you know the arena's key, give --log-key"
            )),
            None => note("the signature of the log's checkpoint was not verified; give --log-key"),
        }
    }
}

/// Returns that one of the keys which has signed a checkpoint; `None` if no keys are given.
///
/// # Errors
/// If none of the keys has signed, or a signature is forged.
pub fn signer_of<'k>(checkpoint: &SignedCheckpoint, keys: &'k [NoteKey]) -> Result<Option<&'k NoteKey>, NoteError> {
    let mut unsigned = None;
    for key in keys {
        match checkpoint.verify(key) {
            Ok(_) => return Ok(Some(key)),
            Err(error @ NoteError::Unsigned(_)) => unsigned = unsigned.or(Some(error)),
            Err(error) => return Err(error),
        }
    }
    unsigned.map_or(Ok(None), Err)
}
