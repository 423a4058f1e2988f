//! The keys of records: the record key signs records, the log key signs checkpoints, and the salt secret hides private
//! content in commitments.
//!
//! The keys are in the data folder, are computed from one secret, or belong to another program, which signs.

use std::collections::BTreeMap;
use std::io::{ErrorKind, Read, Write};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use arena_identity::{KeyFileError, KeyPair, ServerSecret};
use arena_model::hex;
use arena_record::{Hash, KeyHandover, KeyKind, RecordKey, RecordPublicKey, SaltSecret, Sign};
use parking_lot::Mutex;
use rustix::process::{Pid, Signal, kill_process_group};

use super::RecordsError;
use super::rotation::load_handovers;
use crate::secret::{SecretFile, SecretFileError};
use crate::settings::RecordSettings;

/// The file of the record key in the data folder.
pub(super) const RECORD_KEY: SecretFile = SecretFile {
    file: "record-key",
    what: "the key that signs records",
    loss: "older records lose their seals; to keep them, use `arena admin rotate-key record` instead",
};

/// The file of the log key in the data folder.
pub(super) const LOG_KEY: SecretFile = SecretFile {
    file: "log-key",
    what: "the key that signs the log's checkpoints",
    loss: "verifiers need the new public key",
};

/// The file of the salt secret in the data folder.
const SALTS: SecretFile = SecretFile {
    file: "record-salts",
    what: "the secret of the salts in records",
    loss: "records of existing games change, so that they differ from the log",
};

/// The time limit of a command that signs.
const COMMAND_WITHIN: Duration = Duration::from_secs(10);

/// The time without new attempts after a command that did not answer in time. Each attempt occupies a thread.
const COMMAND_REST: Duration = Duration::from_secs(5);

/// The pause between two checks of a command's end.
const COMMAND_PAUSE: Duration = Duration::from_millis(2);

/// The maximum number of bytes that a command that signs may print.
const COMMAND_BYTES: u64 = 4096;

/// The maximum number of signatures that are kept in memory.
const KEPT_SIGNATURES: usize = 10_000;

/// A signing key that several threads use.
pub(crate) type Signer = Arc<dyn Sign + Send + Sync>;

/// The keys of a server.
pub(super) struct RecordKeys {
    pub(super) salts: SaltSecret,
    pub(super) record: Signer,
    /// Record keys that were replaced. They seal the records of their time.
    pub(super) former: Vec<RecordKey>,
    pub(super) log: Signer,
    /// True if another program signs, which can fail at any time.
    pub(super) is_outside: bool,
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
    /// If a file in the data folder is unusable, or the command that signs fails.
    pub(super) fn load(
        settings: &RecordSettings,
        folder: &Path,
        shared: Option<&ServerSecret>,
    ) -> Result<RecordKeys, RecordsError> {
        let secret = settings.secret.as_ref().or(shared);
        let text = |file: &SecretFile| match secret {
            Some(secret) => {
                let derived = secret.owner_key(&format!("records/{}", file.file));
                Ok(derived.trim_start_matches("o_").to_owned())
            }
            None => file.load_or_make(folder).map(|loaded| loaded.text),
        };
        let bad = |file: &SecretFile| invalid_key(folder, file);
        let salt_text = text(&SALTS)?;
        let salts = SaltSecret::from_hex(&salt_text).map_err(|_| bad(&SALTS))?;
        let creators = ServerSecret::new(salt_text.as_bytes()).map_err(|_| bad(&SALTS))?;
        let key = |file: &SecretFile| -> Result<Signer, RecordsError> {
            match &settings.sign_with {
                Some(command) => Ok(Arc::new(CommandSigner::start(command, file.file, COMMAND_WITHIN)?)),
                None => Ok(Arc::new(read_key(&text(file)?).map_err(|_| bad(file))?)),
            }
        };
        let mut handovers = load_handovers(folder, KeyKind::Record)?;
        handovers.extend(load_handovers(folder, KeyKind::Log)?);
        let (record, former, log) = (key(&RECORD_KEY)?, former_keys(folder)?, key(&LOG_KEY)?);
        let is_outside = settings.sign_with.is_some();
        Ok(RecordKeys { salts, record, former, log, is_outside, handovers, creators })
    }
}

/// Loads a key from the data folder, or generates it.
///
/// # Errors
/// If the file is unusable.
pub(super) fn key_in(folder: &Path, file: &SecretFile) -> Result<RecordKey, RecordsError> {
    read_key(&file.load_or_make(folder)?.text).map_err(|_| invalid_key(folder, file))
}

/// Parses the text of a key file. Besides the digits that this program writes, it may be a key of OpenSSL or OpenSSH.
pub(super) fn read_key(text: &str) -> Result<RecordKey, KeyFileError> {
    KeyPair::from_file_text(text).map(|pair| RecordKey::from_random(pair.to_secret()))
}

fn invalid_key(folder: &Path, file: &SecretFile) -> RecordsError {
    RecordsError::Key { file: folder.join(file.file).display().to_string() }
}

/// Loads the record keys that were replaced: the files `record-key.1`, `record-key.2` and so on, which rotations leave.
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
        keys.push(read_key(&text).map_err(|_| RecordsError::Key { file })?);
    }
    Ok(keys)
}

/// A key in another program. `COMMAND KEY public` prints the public key, and `COMMAND KEY sign` prints the signature of
/// the bytes on standard input, both as hexadecimal digits. KEY is `record-key` or `log-key`.
struct CommandSigner {
    words: Vec<String>,
    key: &'static str,
    public: RecordPublicKey,
    /// The time limit of a command.
    limit: Duration,
    /// The last command that did not answer in time: the end of the rest after it, and the error.
    resting: Mutex<Option<(Instant, String)>>,
    /// Signatures by the hash of their text. Anyone may ask for a record many times, and only the first time starts the
    /// command.
    kept: Mutex<BTreeMap<Hash, [u8; 64]>>,
}

impl CommandSigner {
    /// Asks the command for the public key.
    fn start(command: &str, key: &'static str, limit: Duration) -> Result<CommandSigner, RecordsError> {
        let words: Vec<String> = command.split_whitespace().map(str::to_owned).collect();
        let fail = |reason: String| RecordsError::Command { command: command.to_owned(), reason };
        let printed = run(&words, key, "public", b"", limit).map_err(fail)?;
        let public = printed.parse().map_err(|_| {
            fail(format!("expected 64 hexadecimal digits from `{command} {key} public`, got {printed:?}"))
        })?;
        Ok(CommandSigner { words, key, public, limit, resting: Mutex::default(), kept: Mutex::default() })
    }

    /// Runs the command. After a command that did not answer in time, it fails for a while without a new attempt.
    fn ask(&self, text: &[u8]) -> Result<String, String> {
        let resting = self.resting.lock().clone();
        let began = Instant::now();
        if let Some((_, reason)) = resting.filter(|(end, _)| began < *end) {
            return Err(reason);
        }
        let printed = run(&self.words, self.key, "sign", text, self.limit);
        if let Err(reason) = &printed
            && began.elapsed() >= self.limit
        {
            *self.resting.lock() = Some((Instant::now() + COMMAND_REST, reason.clone()));
        }
        printed
    }
}

impl Sign for CommandSigner {
    fn public_key(&self) -> RecordPublicKey {
        self.public
    }

    fn sign(&self, text: &[u8]) -> Result<[u8; 64], String> {
        let name = Hash::of(text);
        let kept = self.kept.lock().get(&name).copied();
        if let Some(signature) = kept {
            return Ok(signature);
        }
        let printed = self.ask(text)?;
        let signature: [u8; 64] = hex::decode(&printed)
            .ok_or_else(|| format!("expected 128 hexadecimal digits as a signature, got {printed:?}"))?;
        // A wrong signature must not be kept or published.
        if !self.public.verifies(text, &signature) {
            return Err(format!("the signature of {} doesn't match its public key", self.key));
        }
        let mut kept = self.kept.lock();
        if kept.len() >= KEPT_SIGNATURES {
            kept.clear();
        }
        kept.insert(name, signature);
        Ok(signature)
    }
}

/// Runs a command that signs. Returns the printed text without the line end. After the time limit, the command and all
/// processes of its group are killed.
fn run(words: &[String], key: &str, action: &str, input: &[u8], limit: Duration) -> Result<String, String> {
    let (program, arguments) = words.split_first().ok_or("the command is empty")?;
    let failed = |error: std::io::Error| format!("cannot run {program}: {error}");
    let until = Instant::now() + limit;
    let mut child = Command::new(program)
        .args(arguments)
        .args([key, action])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::inherit())
        .process_group(0)
        .spawn()
        .map_err(failed)?;
    // The texts to sign are shorter than a pipe's buffer, so this can't block. A program that doesn't read them is
    // found by its output.
    let _ = child.stdin.take().map(|mut stdin| stdin.write_all(input));
    let output = child.stdout.take().ok_or("no output")?;
    let (sender, answer) = mpsc::channel();
    // A process that the command has started may keep the pipe open after its end, so another thread reads.
    thread::spawn(move || {
        let mut printed = String::new();
        // The receiver is gone after the time limit.
        let _ = sender.send(output.take(COMMAND_BYTES).read_to_string(&mut printed).map(|_| printed));
    });
    let printed = answer.recv_timeout(limit).ok();
    let mut status = None;
    while printed.is_some() && status.is_none() && Instant::now() < until {
        status = child.try_wait().map_err(failed)?;
        if status.is_none() {
            thread::sleep(COMMAND_PAUSE);
        }
    }
    let (Some(printed), Some(status)) = (printed, status) else {
        let _ = kill_process_group(Pid::from_child(&child), Signal::KILL);
        let _ = child.wait();
        return Err(format!("{program} did not answer within {} s", limit.as_secs_f64()));
    };
    if !status.success() {
        return Err(format!("{program} failed ({status})"));
    }
    Ok(printed.map_err(failed)?.trim_end().to_owned())
}

#[cfg(test)]
mod tests {
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
        for name in names {
            std::fs::write(folder.path().join(&name), "not a key\n").expect("a file");
            let error = RecordKeys::load(&settings, folder.path(), None).map(drop).expect_err("no key");
            assert!(error.to_string().contains(&name), "{error}");
            std::fs::remove_file(folder.path().join(&name)).expect("removed");
        }
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
        let former: Vec<RecordPublicKey> = new.former.iter().map(Sign::public_key).collect();
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

    #[test]
    fn a_command_that_cannot_sign_stops_the_start() {
        let folder = tempfile::tempdir().expect("a folder");
        for (command, expected) in [
            ("", "the command is empty"),
            ("/no/such/program", "cannot run /no/such/program"),
            ("false", "false failed"),
            ("echo", "expected 64 hexadecimal digits from `echo record-key public`, got \"record-key public\""),
        ] {
            let settings = RecordSettings { sign_with: Some(command.to_owned()), ..RecordSettings::default() };
            let error = RecordKeys::load(&settings, folder.path(), None).map(drop).expect_err("no key");
            assert!(error.to_string().contains(expected), "{error}");
        }
    }

    #[test]
    fn a_command_that_hangs_is_killed_with_all_its_processes() {
        let folder = tempfile::tempdir().expect("a folder");
        let script = folder.path().join("sign");
        let pid = folder.path().join("pid");
        // `public` answers. Each `sign` leaves a process that holds the pipe.
        let answer = RecordKey::from_random([7; 32]).public_key();
        let text = format!(
            "#!/bin/sh\nif [ \"$2\" = public ]; then echo {answer}; exit; fi\nsleep 600 &\necho $! >> {}\n",
            pid.display()
        );
        std::fs::write(&script, text).expect("a script");
        let command = format!("sh {}", script.display());
        let limit = Duration::from_millis(500);
        let signer = CommandSigner::start(&command, "log-key", limit).expect("a public key");
        let began = Instant::now();
        let error = signer.sign(b"text").expect_err("no signature");
        assert_eq!(error, "sh did not answer within 0.5 s");
        // The next attempts fail at once for a while.
        assert_eq!(signer.sign(b"another text"), Err(error));
        assert!(began.elapsed() < Duration::from_secs(60), "{:?}", began.elapsed());
        let pids = std::fs::read_to_string(pid).expect("the numbers of processes");
        let [left] = pids.lines().collect::<Vec<_>>()[..] else { panic!("several attempts: {pids:?}") };
        // A killed process stays as a zombie until it is reaped, so its state counts.
        let is_running = || {
            let stat = std::fs::read_to_string(format!("/proc/{left}/stat")).unwrap_or_default();
            stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with('Z') && !rest.starts_with('X'))
        };
        while is_running() {
            assert!(began.elapsed() < Duration::from_secs(60), "process {left} still runs");
            thread::sleep(COMMAND_PAUSE);
        }
    }

    #[test]
    fn one_wrong_answer_is_an_error_and_the_next_answer_counts() {
        let folder = tempfile::tempdir().expect("a folder");
        let key = RecordKey::from_random([7; 32]);
        let answer = folder.path().join("answer");
        let set = |text: &str| std::fs::write(&answer, text).expect("an answer");
        set(&key.public_key().to_string());
        let script = folder.path().join("sign");
        std::fs::write(&script, format!("cat > /dev/null\ncat {}\n", answer.display())).expect("a script");
        let command = format!("sh {}", script.display());
        let signer = CommandSigner::start(&command, "record-key", COMMAND_WITHIN).expect("a public key");
        let signature = key.sign(b"text").expect("a signature");
        let other = key.sign(b"another text").expect("a signature");
        for (printed, expected) in [
            ("", "expected 128 hexadecimal digits as a signature, got \"\""),
            ("a word", "expected 128 hexadecimal digits as a signature, got \"a word\""),
            (hex::encode(&other).as_str(), "the signature of record-key doesn't match its public key"),
        ] {
            set(printed);
            assert_eq!(signer.sign(b"text"), Err(expected.to_owned()));
        }
        set(&hex::encode(&signature));
        assert_eq!(signer.sign(b"text"), Ok(signature));
    }
}
