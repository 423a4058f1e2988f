//! A folder of signing keys. Each key has the files `USER_ID.pub`, the public key's DER in hexadecimal digits, and
//! `USER_ID.key`, the private key as PKCS#8 in PEM form. Private keys in the format of the reference implementation's
//! command line, DER in hexadecimal digits, are read as well.

use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use arena_identity::{KeyPair, PublicKey};
use serde_json::{Value, json};

use crate::exit::Failure;

/// A folder of keys, which may not exist yet.
#[derive(Debug)]
pub struct Keys {
    folder: PathBuf,
}

/// A key in the folder.
#[derive(Debug, PartialEq, Eq)]
pub struct Stored {
    user: String,
    public: PathBuf,
    private: PathBuf,
}

impl Stored {
    /// Formats the key as JSON: its identity and path under the reference command line's names, its user id, and its
    /// public key.
    pub fn to_json(&self) -> Value {
        let mut shown = json!({
            "userId": self.user,
            "hash": self.user,
            "publicKey": self.public.display().to_string(),
            "privateKey": self.private.display().to_string(),
        });
        // The public key is omitted if its file is missing or damaged.
        if let Some(key) = fs::read_to_string(&self.public).ok().and_then(|text| text.trim().parse::<PublicKey>().ok())
        {
            shown["publicKeyHex"] = json!(key.as_hex());
        }
        shown
    }
}

impl Keys {
    /// Uses the keys in `folder`, which may not exist yet.
    pub fn at(folder: PathBuf) -> Keys {
        Keys { folder }
    }

    /// Returns the user's keys: `~/.arena/keys`.
    pub fn at_home() -> Result<Keys, Failure> {
        let home = std::env::home_dir().filter(|home| home.is_absolute());
        let home = home.ok_or_else(|| Failure::usage("the home folder is unknown; set HOME"))?;
        Ok(Keys::at(home.join(".arena/keys")))
    }

    /// Writes a key, readable by its owner only. Never overwrites a file.
    pub fn store(&self, pair: &KeyPair) -> Result<Stored, Failure> {
        let folder = &self.folder;
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(folder)
            .map_err(|error| cannot("create", folder, &error))?;
        let public = pair.public_key();
        let stored = self.stored(public.user_id().as_str());
        // The private key is written first, since a public key alone is useless.
        write_new(&stored.private, &pair.to_pem())?;
        write_new(&stored.public, &format!("{}\n", public.as_hex()))?;
        Ok(stored)
    }

    /// Lists the keys by user id.
    pub fn list(&self) -> Result<Vec<Stored>, Failure> {
        let read = |error| cannot("read", &self.folder, &error);
        let entries = match fs::read_dir(&self.folder) {
            Ok(entries) => entries,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(read(error)),
        };
        let mut users = Vec::new();
        for entry in entries {
            let name = entry.map_err(read)?.file_name();
            users.extend(
                name.to_str()
                    .and_then(|name| name.strip_suffix(".key"))
                    .filter(|user| is_user_id(user))
                    .map(str::to_owned),
            );
        }
        users.sort_unstable();
        Ok(users.iter().map(|user| self.stored(user)).collect())
    }

    /// `name` is a user id in the folder, or the path of a file. Without a name, reads the only key in the folder.
    pub fn read(&self, name: Option<&str>) -> Result<KeyPair, Failure> {
        let file = match name {
            Some(user) if is_user_id(user) => self.stored(user).private,
            Some(file) => PathBuf::from(file),
            None => self.only()?.private,
        };
        let text = fs::read_to_string(&file).map_err(|error| cannot("read", &file, &error))?;
        KeyPair::from_file_text(&text)
            .map_err(|error| Failure::usage(format_args!("cannot use the key {}: {error}", file.display())))
    }

    fn only(&self) -> Result<Stored, Failure> {
        let folder = self.folder.display();
        let mut keys = self.list()?;
        match keys.len() {
            0 => Err(Failure::usage(format_args!("there is no key in {folder}; create one with `arena identity new`"))),
            1 => Ok(keys.remove(0)),
            _ => {
                let users: String = keys.iter().map(|key| format!("\n  --sign {}", key.user)).collect();
                Err(Failure::usage(format_args!("there are several keys in {folder}; choose one:{users}")))
            }
        }
    }

    fn stored(&self, user: &str) -> Stored {
        let file = |kind: &str| self.folder.join(format!("{user}.{kind}"));
        Stored { user: user.to_owned(), public: file("pub"), private: file("key") }
    }
}

/// Returns true if a text has the form of a user id: 64 lower-case hexadecimal digits.
fn is_user_id(text: &str) -> bool {
    text.len() == 64 && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

fn write_new(path: &Path, text: &str) -> Result<(), Failure> {
    let open = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
    open.and_then(|mut file| {
        file.write_all(text.as_bytes())?;
        file.sync_all()
    })
    .map_err(|error| cannot("write", path, &error))
}

fn cannot(what: &str, path: &Path, error: &std::io::Error) -> Failure {
    Failure::usage(format_args!("cannot {what} {}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exit::Exit;
    use expect_test::expect;
    use std::os::unix::fs::PermissionsExt;

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & 0o777
    }

    #[test]
    fn a_key_is_for_its_owner_only_and_never_overwritten() {
        let folder = tempfile::tempdir().unwrap();
        let keys = Keys::at(folder.path().join("a/b"));
        let pair = KeyPair::from_random([1; 32]);
        let stored = keys.store(&pair).unwrap();
        assert_eq!(
            (mode(&folder.path().join("a/b")), mode(&stored.private), mode(&stored.public)),
            (0o700, 0o600, 0o600)
        );
        assert_eq!(fs::read_to_string(&stored.private).unwrap(), pair.to_pem());
        assert_eq!(fs::read_to_string(&stored.public).unwrap(), pair.public_key().as_hex().to_owned() + "\n");
        assert!(stored.private.ends_with(format!("{}.key", pair.public_key().user_id())));

        fs::write(&stored.private, "mine\n").unwrap();
        assert_eq!(keys.store(&pair).unwrap_err().exit, Exit::Usage);
        assert_eq!(fs::read_to_string(&stored.private).unwrap(), "mine\n");
    }

    #[test]
    fn a_key_is_found_by_its_user_or_its_file_or_by_being_alone() {
        let folder = tempfile::tempdir().unwrap();
        let keys = Keys::at(folder.path().to_owned());
        let [one, two] = [1, 2].map(|seed| KeyPair::from_random([seed; 32]));
        let user = |pair: &KeyPair| pair.public_key().user_id().to_string();
        let found = |name: Option<&str>| {
            let found = keys.read(name).map_or_else(|failure| format!("{failure:?}"), |pair| user(&pair));
            let line = format!("{}: {found}\n", name.unwrap_or("no name"));
            let line = line.replace(&folder.path().display().to_string(), "DIR");
            line.replace(&user(&one), "ONE").replace(&user(&two), "TWO")
        };
        let mut transcript = found(None);
        let stored = keys.store(&one).unwrap();
        fs::write(folder.path().join("notes.key"), "not a key").unwrap();
        fs::write(folder.path().join(format!("{}.pub", "0".repeat(64))), "half a key").unwrap();
        transcript += &found(None);
        keys.store(&two).unwrap();
        let (own, unknown) = (user(&one), "f".repeat(64));
        let (private, public) = (stored.private.to_str(), stored.public.to_str());
        let names = [None, Some(&*own), private, public, Some(&*unknown), Some("no-such-file")];
        transcript.extend(names.map(found));
        assert_eq!(keys.list().unwrap().len(), 2);
        // Keys of older programs are read.
        let older = folder.path().join("older.key");
        fs::write(&older, two.to_pkcs8_hex() + "\n").unwrap();
        transcript += &found(older.to_str());
        expect![[r#"
            no name: Failure { exit: Usage, sentence: "there is no key in DIR; create one with `arena identity new`" }
            no name: ONE
            no name: Failure { exit: Usage, sentence: "there are several keys in DIR; choose one:\n  --sign ONE\n  --sign TWO" }
            ONE: ONE
            DIR/ONE.key: ONE
            DIR/ONE.pub: Failure { exit: Usage, sentence: "cannot use the key DIR/ONE.pub: this is a public key; give the file of the private key" }
            ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff: Failure { exit: Usage, sentence: "cannot read DIR/ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff.key: No such file or directory (os error 2)" }
            no-such-file: Failure { exit: Usage, sentence: "cannot read no-such-file: No such file or directory (os error 2)" }
            DIR/older.key: TWO
        "#]].assert_eq(&transcript);
        assert_eq!(stored.to_json()["publicKeyHex"], one.public_key().as_hex());
    }

    #[test]
    fn a_folder_that_is_not_there_has_no_keys() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(Keys::at(folder.path().join("none")).list().unwrap(), []);
    }
}
