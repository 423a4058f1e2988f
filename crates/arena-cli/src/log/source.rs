//! The place of a log's files: a folder, or a server.

use std::fs::File;
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};

use arena_model::SessionId;
use arena_players::http::{Arena, CallError};
use arena_record::log::{LogError, LogReader, MOST_BUNDLE_BYTES, NoteKey, SignedCheckpoint};
use arena_record::{Hash, KeyHandover, KeyKind, LogProof, RecordPublicKey, connected_keys};
use clap::Args;
use parking_lot::Mutex;
use serde::Deserialize;

use crate::command_line::{Global, base_url};
use crate::exit::{Exit, Failure};
use crate::files::{cannot_read, write_below};

/// The key that must have signed a log's checkpoint.
#[derive(Debug, Args)]
pub struct LogKeyArgs {
    /// Key of the log, as NAME+ID+KEY, or a file with it or with /.well-known/arena.json [default: the published key]
    #[arg(long, value_name = "KEY|FILE")]
    pub log_key: Option<String>,
}

/// The path of the log below a server's address.
const ON_SERVERS: &str = "/log";

/// The arena's keys, below a server's address.
const KEYS: &str = "/.well-known/arena.json";

pub const CHECKPOINT: &str = "checkpoint";

/// The name of a copy of the arena's keys in a log's folder.
pub const KEYS_FILE: &str = "arena.json";

/// The maximum size of the file with the arena's keys, in bytes.
const KEYS_BYTES: u64 = 1 << 20;

pub struct LogSource {
    place: LogPlace,
    /// The failure of the last request, with its exit code.
    failed: Mutex<Option<Failure>>,
    /// The folder that gets a copy of each tile that is read.
    copies: Option<PathBuf>,
}

enum LogPlace {
    Folder(PathBuf),
    Server(Box<Arena>, String),
}

/// The file with an arena's keys.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PublishedKeys {
    record_key: RecordPublicKey,
    /// The handovers of both keys. Their signatures are valid.
    #[serde(default)]
    pub handovers: Vec<KeyHandover>,
    log: Option<PublishedLogKeys>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct PublishedLogKeys {
    verifier_key: String,
    #[serde(default)]
    record_keys: Vec<PublishedRecordKey>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct PublishedRecordKey {
    record_key: RecordPublicKey,
}

impl PublishedKeys {
    /// Parses the file. The inner error is for a file of another format. `name` is the file's name for sentences.
    ///
    /// # Errors
    /// If a key has not signed a handover in which it stands.
    fn parse(bytes: &[u8], name: &str) -> Result<Result<PublishedKeys, serde_json::Error>, Failure> {
        let published: PublishedKeys = match serde_json::from_slice(bytes) {
            Ok(published) => published,
            Err(error) => return Ok(Err(error)),
        };
        for handover in &published.handovers {
            handover.check().map_err(|error| Failure::new(Exit::BadReplay, format_args!("{name}: {error}")))?;
        }
        Ok(Ok(published))
    }

    /// Returns the log's key, if the arena keeps a log. `name` is the name of the log's place for sentences.
    ///
    /// # Errors
    /// If the key is malformed.
    pub fn log_key(&self, name: &str) -> Result<Option<NoteKey>, Failure> {
        let parse = |log: &PublishedLogKeys| log.verifier_key.parse::<NoteKey>();
        self.log.as_ref().map(parse).transpose().map_err(|error| malformed(name, &error))
    }
}

fn malformed(name: &str, error: &dyn std::fmt::Display) -> Failure {
    Failure::usage(format_args!("the published keys of {name} are malformed: {error}"))
}

/// The record keys that a user trusts.
pub struct GivenRecordKeys {
    /// The keys, oldest first.
    pub keys: Vec<RecordPublicKey>,
    /// The handovers in the same file.
    pub handovers: Vec<KeyHandover>,
    /// True for the file that an arena publishes, of which a newer one may have more keys.
    pub is_published: bool,
}

/// The key of a log that a user trusts.
pub struct GivenLogKey {
    pub key: NoteKey,
    /// The handovers in the same file.
    pub handovers: Vec<KeyHandover>,
}

impl LogSource {
    /// Finds the log at a URL or in a folder; without a text, on the server given with --url.
    ///
    /// # Errors
    /// If the text is neither a URL nor a folder with a log.
    pub fn find(text: Option<&str>, global: &Global) -> Result<LogSource, Failure> {
        let url = match text {
            None => Some(global.url.clone()),
            Some(text) if text.starts_with("http://") || text.starts_with("https://") => {
                let url = base_url(text).map_err(|error| Failure::usage(format_args!("--log: {error}")))?;
                // The address of the log itself is accepted too.
                Some(url.strip_suffix(ON_SERVERS).map_or(url.clone(), str::to_owned))
            }
            Some(_) => None,
        };
        let place = match url {
            Some(url) => LogPlace::Server(Box::new(global.observer_of(&url)?), url),
            None => LogPlace::Folder(find_folder(Path::new(text.unwrap_or_default()))?),
        };
        Ok(LogSource { place, failed: Mutex::new(None), copies: None })
    }

    /// Lets each tile that is read be copied to a folder.
    pub fn copied_to(self, folder: &Path) -> LogSource {
        LogSource { copies: Some(folder.to_owned()), ..self }
    }

    /// Returns true for a server, whose files are the newest. A folder may have an older copy.
    pub fn is_server(&self) -> bool {
        matches!(self.place, LogPlace::Server(..))
    }

    /// Returns the place for sentences.
    pub fn name(&self) -> String {
        match &self.place {
            LogPlace::Folder(folder) => folder.display().to_string(),
            LogPlace::Server(_, url) => format!("{url}{ON_SERVERS}"),
        }
    }

    /// Fetches a file of the log. Returns `None` if there is none.
    ///
    /// # Errors
    /// The reason, in words. [`LogSource::explain`] also returns the exit code.
    pub fn fetch(&self, path: &str) -> Result<Option<Vec<u8>>, String> {
        let fetched = match &self.place {
            LogPlace::Folder(folder) => read_file(&folder.join(path), MOST_BUNDLE_BYTES as u64),
            LogPlace::Server(arena, _) => download(arena, &format!("{ON_SERVERS}/{path}"), MOST_BUNDLE_BYTES as u64),
        };
        let fetched = fetched.and_then(|bytes| {
            if let (Some(folder), Some(bytes)) = (self.copies.as_ref().filter(|_| path != CHECKPOINT), &bytes) {
                write_below(&folder.join(path), bytes)?;
            }
            Ok(bytes)
        });
        fetched.map_err(|failure| {
            let reason = failure.sentence().to_owned();
            *self.failed.lock() = Some(failure);
            reason
        })
    }

    /// Returns the keys that the log's owner publishes, if it does.
    ///
    /// # Errors
    /// If the file with the keys can't be read, is malformed, or has a forged handover.
    pub fn published(&self) -> Result<Option<PublishedKeys>, Failure> {
        let Some(bytes) = self.keys_file()? else { return Ok(None) };
        let parsed = PublishedKeys::parse(&bytes, &format!("the published keys of {}", self.name()))?;
        parsed.map(Some).map_err(|error| malformed(&self.name(), &error))
    }

    /// Returns the bytes of the file with the published keys, if there is one.
    ///
    /// # Errors
    /// If the file can't be read.
    pub fn keys_file(&self) -> Result<Option<Vec<u8>>, Failure> {
        match &self.place {
            LogPlace::Folder(folder) => read_file(&folder.join(KEYS_FILE), KEYS_BYTES),
            LogPlace::Server(arena, _) => download(arena, KEYS, KEYS_BYTES),
        }
    }

    /// Asks a server for the proof of a session's leaf. `kind` is `created` or `ended`. Returns `None` for folders, and
    /// if the server doesn't make proofs or has no such leaf.
    ///
    /// # Errors
    /// If the request fails, or the answer is malformed.
    pub fn find_proof(&self, session: SessionId, kind: &str) -> Result<Option<LogProof>, Failure> {
        let LogPlace::Server(arena, url) = &self.place else { return Ok(None) };
        let proof = download(arena, &format!("{ON_SERVERS}/proof/{session}?kind={kind}"), KEYS_BYTES)?;
        let unexpected = |error| Failure::new(Exit::Unreachable, format_args!("unexpected proof from {url}: {error}"));
        proof.map(|bytes| serde_json::from_slice(&bytes).map_err(unexpected)).transpose()
    }

    /// Reads a leaf, and its path to the root of a log of this size.
    pub fn leaf(&self, index: u64, size: u64, root: &Hash) -> Result<(Vec<u8>, Vec<Hash>), Failure> {
        let mut reader = LogReader::new(size, |path: &str| self.fetch(path));
        reader.leaf(index, root).map_err(|error| self.explain(error))
    }

    pub fn explain(&self, error: impl Into<LogError>) -> Failure {
        let error = error.into();
        if let (LogError::Unavailable { .. }, Some(failure)) = (&error, self.failed.lock().take()) {
            return failure;
        }
        let exit = if error.is_lie() { Exit::BadReplay } else { Exit::Usage };
        Failure::caused(exit, &error).about(&format_args!("log {}", self.name()))
    }
}

/// Downloads a file of up to `most` bytes. Returns `None` if the server has no such file.
fn download(arena: &Arena, path: &str, most: u64) -> Result<Option<Vec<u8>>, Failure> {
    match arena.file(path, most) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(CallError::Refused { status: 404, .. }) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Returns the folder with the log's checkpoint: the given one, or its subfolder `log`.
fn find_folder(folder: &Path) -> Result<PathBuf, Failure> {
    let candidates = [folder.to_owned(), folder.join("log")];
    candidates.into_iter().find(|candidate| candidate.join(CHECKPOINT).is_file()).ok_or_else(|| {
        let sentence = format!("{} has no log: expected a folder with the file checkpoint, or a URL", folder.display());
        Failure::usage(sentence)
    })
}

/// Reads a file of up to `most` bytes. Returns `None` if it doesn't exist.
fn read_file(path: &Path, most: u64) -> Result<Option<Vec<u8>>, Failure> {
    let file = match File::open(path) {
        Ok(file) => file,
        // A path below a file isn't there either: a tile may be missing while its partial form exists.
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => return Ok(None),
        Err(error) => return Err(cannot_read(path, error)),
    };
    let mut bytes = Vec::new();
    file.take(most + 1).read_to_end(&mut bytes).map_err(|error| cannot_read(path, error))?;
    match bytes.len() as u64 > most {
        true => Err(cannot_read(path, format_args!("it is longer than {most} bytes"))),
        false => Ok(Some(bytes)),
    }
}

/// Reads a checkpoint from a file.
///
/// # Errors
/// If the file can't be read, or isn't a signed checkpoint.
pub fn checkpoint_in(path: &Path) -> Result<SignedCheckpoint, Failure> {
    let unreadable = |error: &dyn std::fmt::Display| Failure::usage(format_args!("{}: {error}", path.display()));
    let bytes = read_file(path, MOST_BUNDLE_BYTES as u64)?.ok_or_else(|| unreadable(&"there is no such file"))?;
    let text = String::from_utf8(bytes).map_err(|_| unreadable(&"it isn't UTF-8 text"))?;
    text.parse::<SignedCheckpoint>().map_err(|error| unreadable(&error))
}

/// Returns the record keys for `--key`: a key, or those in a file. The file has a key, or all keys that an arena
/// publishes.
///
/// # Errors
/// If the text is neither a key nor the path of a file with keys.
pub fn record_keys(text: &str) -> Result<GivenRecordKeys, Failure> {
    let Some(published) = published_in(text)? else {
        let keys = vec![key_or_file("--key", text)?];
        return Ok(GivenRecordKeys { keys, handovers: Vec::new(), is_published: false });
    };
    let earlier = published.log.into_iter().flat_map(|log| log.record_keys).map(|key| key.record_key);
    let keys = earlier.chain([published.record_key]).collect();
    Ok(GivenRecordKeys { keys, handovers: published.handovers, is_published: true })
}

/// Returns the log's key for `--log-key`: a key, or the one in a file. The file has the key, or all keys that an arena
/// publishes.
///
/// # Errors
/// If the text is neither a key nor the path of a file with a key.
pub fn log_key(text: &str) -> Result<GivenLogKey, Failure> {
    match published_in(text)? {
        Some(PublishedKeys { log: Some(log), handovers, .. }) => {
            Ok(GivenLogKey { key: key_or_file("--log-key", &log.verifier_key)?, handovers })
        }
        _ => Ok(GivenLogKey { key: key_or_file("--log-key", text)?, handovers: Vec::new() }),
    }
}

/// Returns the key of a log, followed by those that handovers connect with it. All have the same name.
pub fn connected_log_keys(key: &NoteKey, handovers: &[KeyHandover]) -> Vec<NoteKey> {
    let keys = connected_keys(KeyKind::Log, &[*key.public_key()], handovers);
    keys.into_iter().filter_map(|connected| NoteKey::new(key.name(), connected).ok()).collect()
}

/// Reads the file with an arena's keys. Returns `None` if there is no such file, or it has another format.
///
/// # Errors
/// If the file can't be read, or has a forged handover.
fn published_in(path: &str) -> Result<Option<PublishedKeys>, Failure> {
    let Some(bytes) = read_file(Path::new(path), KEYS_BYTES)? else { return Ok(None) };
    Ok(PublishedKeys::parse(&bytes, path)?.ok())
}

/// Parses a key, or the file that contains it.
///
/// # Errors
/// If the text is neither a key nor the path of a file with a key.
fn key_or_file<K: std::str::FromStr<Err: std::fmt::Display>>(option: &str, text: &str) -> Result<K, Failure> {
    let error = match text.parse::<K>() {
        Ok(key) => return Ok(key),
        Err(error) => error,
    };
    let refuse = |error: &dyn std::fmt::Display| Failure::usage(format_args!("{option} {text}: {error}"));
    match read_file(Path::new(text), KEYS_BYTES)? {
        None => Err(refuse(&format_args!("{error}, and there is no such file"))),
        Some(bytes) => String::from_utf8_lossy(&bytes).trim().parse::<K>().map_err(|error| refuse(&error)),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use arena_model::Timestamp;
    use arena_record::{RecordKey, SealSignature};

    use super::*;

    #[test]
    fn a_key_is_given_directly_or_in_a_file() {
        let home = tempfile::tempdir().unwrap();
        let hex = "0123456789abcdef".repeat(4);
        let file = home.path().join("record.key");
        fs::write(&file, format!("{hex}\n")).unwrap();
        let parse = |text: &str| {
            key_or_file::<RecordPublicKey>("--key", text)
                .map(|key| key.to_string())
                .map_err(|failure| (failure.exit, failure.sentence().starts_with("--key ")))
        };
        assert_eq!(parse(&hex), Ok(hex.clone()));
        assert_eq!(parse(file.to_str().unwrap()), Ok(hex.clone()));
        assert_eq!(parse(&hex[1..]), Err((Exit::Usage, true)));
        fs::write(&file, "a word").unwrap();
        assert_eq!(parse(file.to_str().unwrap()), Err((Exit::Usage, true)));
    }

    #[test]
    fn the_keys_that_an_arena_publishes_are_accepted_as_a_file() {
        let home = tempfile::tempdir().unwrap();
        let file = home.path().join("arena.json");
        let path = file.to_str().unwrap();
        let (old, new) = ("01".repeat(32), "02".repeat(32));
        fs::write(&file, format!(r#"{{"release":"0.1.0","recordKey":"{new}"}}"#)).unwrap();
        let shown = |text: &str| record_keys(text).unwrap().keys.iter().map(ToString::to_string).collect::<Vec<_>>();
        assert_eq!(shown(path), std::slice::from_ref(&new));
        assert_eq!(log_key(path).map(drop).unwrap_err().exit, Exit::Usage, "no log, no key");
        let key = RecordPublicKey([3; 32]);
        let key = NoteKey::new("arena.example/log", key).unwrap();
        let log = format!(
            r#"{{"origin":"arena.example/log","verifierKey":"{key}","recordKeys":[{{"leaf":0,"recordKey":"{old}"}}]}}"#
        );
        fs::write(&file, format!(r#"{{"release":"0.1.0","recordKey":"{new}","log":{log}}}"#)).unwrap();
        assert_eq!(shown(path), [old, new]);
        assert_eq!(log_key(path).unwrap().key, key);
        assert_eq!(log_key(&key.to_string()).unwrap().key, key);
    }

    #[test]
    fn forged_handovers_are_false_and_valid_ones_connect_keys() {
        let home = tempfile::tempdir().unwrap();
        let file = home.path().join("arena.json");
        let path = file.to_str().unwrap();
        let [old, new] = [1, 2].map(|seed| RecordKey::from_random([seed; 32]));
        let handovers = [KeyKind::Record, KeyKind::Log].map(|kind| {
            let unsigned = SealSignature([0; 64]);
            let handover = KeyHandover {
                kind,
                old: old.public_key(),
                new: new.public_key(),
                at: Timestamp(1_790_000_000_000),
                signed_by_old: unsigned,
                signed_by_new: unsigned,
            };
            let sign = |key: &RecordKey| SealSignature(key.sign(handover.text().as_bytes()));
            KeyHandover { signed_by_old: sign(&old), signed_by_new: sign(&new), ..handover }
        });
        let note = |key: &RecordKey| NoteKey::new("arena.example", key.public_key()).unwrap();
        let text = serde_json::json!({
            "recordKey": new.public_key(),
            "handovers": handovers,
            "log": { "verifierKey": note(&new).to_string() },
        })
        .to_string();
        fs::write(&file, &text).unwrap();
        assert_eq!(record_keys(path).map(|given| given.handovers).unwrap(), handovers);
        let given = log_key(path).unwrap();
        assert_eq!(connected_log_keys(&given.key, &given.handovers), [note(&new), note(&old)]);
        fs::write(&file, text.replacen("1790000000000", "1790000000001", 1)).unwrap();
        for failure in [record_keys(path).map(drop), log_key(path).map(drop)].map(Result::unwrap_err) {
            assert_eq!(failure.exit, Exit::BadReplay);
            assert!(failure.sentence().contains("no valid signature of the old key"), "{}", failure.sentence());
        }
    }

    #[test]
    fn a_log_is_in_the_folder_or_in_its_subfolder() {
        let home = tempfile::tempdir().unwrap();
        let find = || find_folder(home.path()).ok();
        assert_eq!(find(), None);
        fs::create_dir(home.path().join("log")).unwrap();
        fs::write(home.path().join("log/checkpoint"), "").unwrap();
        assert_eq!(find(), Some(home.path().join("log")));
        fs::write(home.path().join("checkpoint"), "").unwrap();
        assert_eq!(find(), Some(home.path().to_owned()));
    }

    #[test]
    fn missing_files_are_distinguished_from_long_ones() {
        let home = tempfile::tempdir().unwrap();
        let file = home.path().join("000");
        fs::write(&file, [0; 64]).unwrap();
        assert_eq!(read_file(&file, 64).unwrap().map(|bytes| bytes.len()), Some(64));
        assert_eq!(read_file(&file, 63).unwrap_err().exit, Exit::Usage);
        assert_eq!(read_file(&file.join("1"), 64).unwrap(), None);
        assert_eq!(read_file(&home.path().join("001"), 64).unwrap(), None);
    }
}
