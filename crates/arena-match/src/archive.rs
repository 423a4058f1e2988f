//! Archives of agents. [`pack`] creates an archive from a folder, and [`unpack`] extracts an upload into an
//! empty folder. Uploads are untrusted: `unpack` checks names, sizes and the number of entries.

use std::collections::HashSet;
use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Component, Path, PathBuf};

use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use tar::{Builder, EntryType, Header};

use crate::fingerprint::entries;

/// A folder counts even if it has no entry of its own and occurs only in paths.
const MAX_ENTRIES: usize = 2_000;

/// The size added to each file or folder for the file system's overhead, in bytes.
const ENTRY_BYTES: u64 = 4096;

const MAX_DEPTH: usize = 16;

/// Maximum length of the name of a file or folder, in bytes.
pub const MAX_NAME: usize = 128;

/// The reason that an upload can't be unpacked, as shown to the uploader.
#[derive(Debug, thiserror::Error)]
pub enum UnpackError {
    #[error("{0}")]
    Refused(String),
    /// The unpacked files exceed this limit, in bytes.
    #[error("the agent is larger than {0} bytes unpacked, including {ENTRY_BYTES} for each file and folder")]
    TooLarge(u64),
    /// The files can't be written to disk.
    #[error(transparent)]
    Write(io::Error),
}

#[derive(Debug, PartialEq, Eq)]
pub struct UnpackedArchive {
    /// The path of the agent's file or folder, relative to the folder that the archive was unpacked into.
    pub agent: PathBuf,
    pub files: usize,
    /// The total size of the files, in bytes.
    pub bytes: u64,
}

/// The reason that a folder can't be packed, as shown to its owner.
#[derive(Debug, thiserror::Error)]
pub enum PackError {
    #[error("{} is neither a file nor a folder", .0.display())]
    Kind(PathBuf),
    /// The folder exceeds this limit, in bytes.
    #[error("the folder has more than {0} bytes, including {ENTRY_BYTES} for each file and folder")]
    TooLarge(u64),
    #[error("the folder has more than {MAX_ENTRIES} files and folders")]
    Entries,
    #[error("{} cannot be read: {source}", path.display())]
    Read { path: PathBuf, source: io::Error },
}

/// Packs the contents of a folder as a tar.gz, without build and version control files and without the folder
/// `except`. The bytes depend only on the names, contents and executable bits of the files.
///
/// # Errors
/// If the folder is larger than [`unpack`] accepts with the same `max_bytes`, contains links or special
/// files, or can't be read.
pub fn pack(folder: &Path, except: &Path, max_bytes: u64) -> Result<Vec<u8>, PackError> {
    let except = except.canonicalize().ok();
    let mut packed = Packing {
        archive: Builder::new(GzEncoder::new(Vec::new(), Compression::fast())),
        root: folder,
        except: except.as_deref(),
        entries: 0,
        left: max_bytes,
        max_bytes,
    };
    packed.add_all_of(folder)?;
    let read = |source: io::Error| PackError::Read { path: folder.to_owned(), source };
    packed.archive.into_inner().and_then(GzEncoder::finish).map_err(read)
}

struct Packing<'p> {
    archive: Builder<GzEncoder<Vec<u8>>>,
    root: &'p Path,
    except: Option<&'p Path>,
    entries: usize,
    /// The remaining size limit, in bytes.
    left: u64,
    max_bytes: u64,
}

impl Packing<'_> {
    fn add_all_of(&mut self, folder: &Path) -> Result<(), PackError> {
        let entries = entries(folder, self.except).map_err(|(path, source)| PackError::Read { path, source })?;
        for path in entries {
            let read = |source: io::Error| PackError::Read { path: path.clone(), source };
            let data = fs::symlink_metadata(&path).map_err(read)?;
            self.entries += 1;
            if self.entries > MAX_ENTRIES {
                return Err(PackError::Entries);
            }
            let size = if data.is_file() { data.len() } else { 0 };
            let left = self.left.checked_sub(size.saturating_add(ENTRY_BYTES));
            self.left = left.ok_or(PackError::TooLarge(self.max_bytes))?;
            let name = path.strip_prefix(self.root).expect("it was found below the root");
            let mut header = Header::new_gnu();
            header.set_size(size);
            let can_run = data.permissions().mode() & 0o111 != 0;
            header.set_mode(if can_run { 0o755 } else { 0o644 });
            if data.is_dir() {
                header.set_entry_type(EntryType::Directory);
                self.archive.append_data(&mut header, name, io::empty()).map_err(read)?;
                self.add_all_of(&path)?;
            } else if data.is_file() {
                header.set_entry_type(EntryType::Regular);
                let file = File::open(&path).map_err(read)?;
                // If the file grows while it is packed, the archive contains only the size in the header. If
                // the file shrinks, [`unpack`] reports the archive as truncated.
                self.archive.append_data(&mut header, name, file.take(size)).map_err(read)?;
            } else {
                return Err(PackError::Kind(path));
            }
        }
        Ok(())
    }
}

fn refused(what: impl Into<String>) -> UnpackError {
    UnpackError::Refused(what.into())
}

/// Unpacks `body`, a tar.gz of files and folders, into the existing empty folder `into`.
///
/// # Errors
/// If `body` isn't such an archive, has paths that lead out of it, or needs more than `max_bytes` on disk.
/// Files that were unpacked before the error stay in `into`.
pub fn unpack(body: &[u8], into: &Path, max_bytes: u64) -> Result<UnpackedArchive, UnpackError> {
    // The limit on all decompressed data, including headers, padding and long names.
    let room = max_bytes.saturating_add(MAX_ENTRIES as u64 * ENTRY_BYTES);
    let mut archive = tar::Archive::new(GzDecoder::new(body).take(room));
    let broken = |error: io::Error| refused(format!("the upload isn't a complete tar.gz: {error}"));
    let mut tree = Tree { root: into, folders: HashSet::new(), entries: 0, left: max_bytes, max_bytes };
    let (mut files, mut bytes) = (0, 0);
    for entry in archive.entries().map_err(broken)? {
        let mut entry = entry.map_err(broken)?;
        tree.count()?;
        let name = String::from_utf8(entry.path_bytes().into_owned())
            .map_err(|_| refused("the archive has a name that isn't UTF-8"))?;
        let kind = entry.header().entry_type();
        // `git archive` begins with a global header, which contains no file.
        if kind == EntryType::XGlobalHeader {
            continue;
        }
        let path = inside(&name)?;
        match kind {
            EntryType::Directory => tree.make_folder(&path, true)?,
            EntryType::Regular | EntryType::Continuous => {
                let size = entry.size();
                tree.charge(size.saturating_add(ENTRY_BYTES))?;
                (files, bytes) = (files + 1, bytes + size);
                if let Some(folder) = path.parent() {
                    tree.make_folder(folder, false)?;
                }
                let is_program = entry.header().mode().is_ok_and(|mode| mode & 0o111 != 0);
                let is_folder = tree.folders.contains(&path);
                let mut file =
                    create(&into.join(&path), is_program).map_err(|error| in_the_way(&path, is_folder, error))?;
                copy(&mut entry, &mut file, size).map_err(|error| match error {
                    UnpackError::Refused(_) => broken(io::ErrorKind::UnexpectedEof.into()),
                    error => error,
                })?;
            }
            kind => {
                return Err(refused(format!(
                    "the archive has {} ({name}); only files and folders are allowed",
                    a(kind)
                )));
            }
        }
    }
    if files == 0 {
        return Err(refused("the archive has no files"));
    }
    let agent = root_of(into).map_err(UnpackError::Write)?;
    Ok(UnpackedArchive { agent, files, bytes })
}

/// The progress of unpacking an archive, and the remaining quota.
struct Tree<'u> {
    root: &'u Path,
    /// The folders created so far, relative to the root.
    folders: HashSet<PathBuf>,
    entries: usize,
    /// The remaining size limit, in bytes.
    left: u64,
    max_bytes: u64,
}

impl Tree<'_> {
    fn count(&mut self) -> Result<(), UnpackError> {
        self.entries += 1;
        if self.entries > MAX_ENTRIES {
            let text = format!(
                "the archive has more than {MAX_ENTRIES} entries, including the folders in their \
                         paths; leave out what the agent doesn't need, such as tests and caches"
            );
            return Err(refused(text));
        }
        Ok(())
    }

    fn charge(&mut self, bytes: u64) -> Result<(), UnpackError> {
        self.left = self.left.checked_sub(bytes).ok_or(UnpackError::TooLarge(self.max_bytes))?;
        Ok(())
    }

    /// Creates the parents too. If `is_entry` is true, the caller has already counted the folder as an entry.
    fn make_folder(&mut self, path: &Path, is_entry: bool) -> Result<(), UnpackError> {
        let mut folder = PathBuf::new();
        for part in path.components() {
            folder.push(part);
            if self.folders.contains(&folder) {
                continue;
            }
            if !(is_entry && folder == path) {
                self.count()?;
            }
            self.charge(ENTRY_BYTES)?;
            fs::create_dir(self.root.join(&folder)).map_err(|error| in_the_way(&folder, true, error))?;
            self.folders.insert(folder.clone());
        }
        Ok(())
    }
}

/// Returns the path of the entry `name`. Rejects a path that leads out of the archive.
fn inside(name: &str) -> Result<PathBuf, UnpackError> {
    let mut path = PathBuf::new();
    for component in Path::new(name).components() {
        match component {
            Component::Normal(part) if part.len() <= MAX_NAME => path.push(part),
            Component::Normal(_) => {
                return Err(refused(format!("the archive has a name of more than {MAX_NAME} bytes")));
            }
            Component::CurDir => {}
            Component::ParentDir | Component::RootDir | Component::Prefix(_) => {
                return Err(refused(format!("the archive has a path that leads out of it: {name}")));
            }
        }
    }
    if path.components().count() > MAX_DEPTH || name.chars().any(char::is_control) {
        return Err(refused(format!(
            "the archive has more than {MAX_DEPTH} nested folders, or a name with control characters"
        )));
    }
    Ok(path)
}

/// Creates a file that every user may read, because agents run as other users.
///
/// # Errors
/// If the file exists or can't be created.
pub fn create(path: &Path, is_program: bool) -> io::Result<File> {
    let mode = if is_program { 0o755 } else { 0o644 };
    let file = OpenOptions::new().write(true).create_new(true).mode(mode).open(path)?;
    // The umask may have removed permissions.
    file.set_permissions(Permissions::from_mode(mode))?;
    Ok(file)
}

/// Returns the error for a file or folder that cannot be created. `is_other_kind` is true if an existing entry at
/// `path` would be of the other kind.
fn in_the_way(path: &Path, is_other_kind: bool, error: io::Error) -> UnpackError {
    match error.kind() {
        io::ErrorKind::AlreadyExists | io::ErrorKind::NotADirectory | io::ErrorKind::IsADirectory => {
            refused(match is_other_kind {
                true => format!("the archive has {} both as a file and as a folder", path.display()),
                false => format!("the archive has {} twice", path.display()),
            })
        }
        _ => UnpackError::Write(error),
    }
}

/// Copies the content of an entry. Fails if the entry is truncated.
fn copy(from: &mut impl Read, to: &mut File, size: u64) -> Result<(), UnpackError> {
    let mut buffer = [0; 16 * 1024];
    let mut copied = 0;
    loop {
        let read = from.read(&mut buffer).map_err(|_| refused(""))?;
        if read == 0 {
            return if copied == size { Ok(()) } else { Err(refused("")) };
        }
        copied += read as u64;
        to.write_all(&buffer[..read]).map_err(UnpackError::Write)?;
    }
}

/// Returns the agent's path in the unpacked folder. If the folder contains only one subfolder, as after `tar
/// czf bot.tgz bot`, that is the agent; otherwise the folder itself is.
fn root_of(folder: &Path) -> io::Result<PathBuf> {
    let mut entries = fs::read_dir(folder)?;
    let (first, second) = (entries.next().transpose()?, entries.next());
    match (first, second) {
        (Some(only), None) if only.file_type()?.is_dir() => Ok(PathBuf::from(only.file_name())),
        _ => Ok(PathBuf::new()),
    }
}

/// Returns the name of an entry's kind with its article, such as `a link`, for an error message.
fn a(kind: EntryType) -> &'static str {
    match kind {
        EntryType::Symlink | EntryType::Link => "a link",
        EntryType::Char | EntryType::Block => "a device",
        EntryType::Fifo => "a pipe",
        EntryType::GNUSparse => "a sparse file",
        _ => "something that is neither a file nor a folder",
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;
    use expect_test::expect;

    fn add(tar: &mut Builder<GzEncoder<Vec<u8>>>, kind: EntryType, name: &str, mode: u32, content: &[u8]) {
        let mut header = Header::new_gnu();
        header.as_gnu_mut().unwrap().name[..name.len()].copy_from_slice(name.as_bytes());
        header.set_entry_type(kind);
        header.set_size(content.len() as u64);
        header.set_mode(mode);
        if kind == EntryType::Symlink || kind == EntryType::Link {
            header.set_link_name("/etc/passwd").unwrap();
        }
        header.set_cksum();
        tar.append(&header, content).unwrap();
    }

    fn packed(entries: &[(EntryType, &str, u32, &[u8])]) -> Vec<u8> {
        let mut tar = Builder::new(GzEncoder::new(Vec::new(), Compression::fast()));
        for (kind, name, mode, content) in entries {
            add(&mut tar, *kind, name, *mode, content);
        }
        tar.into_inner().unwrap().finish().unwrap()
    }

    /// Checks the result of unpacking an upload, with the list of its files.
    #[track_caller]
    fn check(body: &[u8], expected: &str) {
        let root = tempfile::tempdir().unwrap();
        let into = root.path().join("files");
        fs::create_dir(&into).unwrap();
        let listing = match unpack(body, &into, 100_000) {
            Ok(UnpackedArchive { agent, files, bytes }) => {
                let mut listing = format!("{:?}: {files} files, {bytes} bytes\n", agent.display().to_string());
                list(&into, &into, &mut listing);
                listing
            }
            Err(error) => format!("{error}\n"),
        };
        assert_eq!(listing.trim_end(), expected);
        assert_eq!(fs::read_dir(root.path()).unwrap().count(), 1, "a file was created outside of the folder");
    }

    fn list(root: &Path, folder: &Path, listing: &mut String) {
        let mut paths: Vec<PathBuf> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
        paths.sort();
        for path in paths {
            if path.is_dir() {
                list(root, &path, listing);
            } else {
                let mode = fs::metadata(&path).unwrap().permissions().mode() & 0o777;
                *listing += &format!("{} {mode:o}\n", path.strip_prefix(root).unwrap().display());
            }
        }
    }

    const FILE: EntryType = EntryType::Regular;

    #[test]
    fn files_and_folders_are_unpacked() {
        let folder = packed(&[
            (EntryType::XGlobalHeader, "pax_global_header", 0o644, b"14 comment=ab\n"),
            (EntryType::Directory, "bot/", 0o700, b""),
            (FILE, "./bot/agent", 0o4700, b"#!/bin/sh"),
            (FILE, "bot/lib/a", 0o600, b"a"),
        ]);
        check(&folder, "\"bot\": 2 files, 10 bytes\nbot/agent 755\nbot/lib/a 644");
        check(
            &packed(&[(FILE, "agent.py", 0o644, b"1"), (FILE, "lib/a", 0o644, b"2")]),
            "\"\": 2 files, 2 bytes\nagent.py 644\nlib/a 644",
        );
    }

    #[test]
    fn what_leads_elsewhere_or_is_no_file_is_refused() {
        let entry = |kind, name| packed(&[(FILE, "agent.py", 0o644, b"1"), (kind, name, 0o644, b"")]);
        check(&entry(FILE, "../x"), "the archive has a path that leads out of it: ../x");
        check(&entry(FILE, "a/../../x"), "the archive has a path that leads out of it: a/../../x");
        check(&entry(FILE, "/tmp/x"), "the archive has a path that leads out of it: /tmp/x");
        for kind in [EntryType::Symlink, EntryType::Link] {
            check(&entry(kind, "x"), "the archive has a link (x); only files and folders are allowed");
        }
        check(&entry(EntryType::Block, "x"), "the archive has a device (x); only files and folders are allowed");
        check(&entry(EntryType::Fifo, "x"), "the archive has a pipe (x); only files and folders are allowed");
        check(&entry(FILE, "agent.py"), "the archive has agent.py twice");
        check(&entry(FILE, "agent.py/x"), "the archive has agent.py both as a file and as a folder");
        for name in ["agent.py", "agent.py/", "agent.py/b/"] {
            let root = tempfile::tempdir().unwrap();
            let refusal = unpack(&entry(EntryType::Directory, name), root.path(), 100_000).unwrap_err();
            assert!(matches!(refusal, UnpackError::Refused(_)), "{refusal:?}");
            assert_eq!(refusal.to_string(), "the archive has agent.py both as a file and as a folder");
        }
        check(
            &packed(&[(EntryType::Directory, "bot/", 0o755, b""), (FILE, "bot", 0o644, b"x")]),
            "the archive has bot both as a file and as a folder",
        );
    }

    #[test]
    fn bombs_do_not_go_off() {
        check(
            &packed(&[(FILE, "agent", 0o755, &[0; 95_905])]),
            "the agent is larger than 100000 bytes unpacked, including 4096 for each file and folder",
        );
        // Folders count too, including parents without an entry.
        let nested = |count: usize, depth: usize| -> Vec<String> {
            (0..count).map(|number| format!("{number}/{}", "d/".repeat(depth - 1))).collect()
        };
        let folders = |names: &[String]| {
            let folders = names.iter().map(|name| (EntryType::Directory, &**name, 0o755, &b""[..]));
            packed(&folders.chain([(FILE, "agent", 0o755, &b"1"[..])]).collect::<Vec<_>>())
        };
        check(&folders(&nested(1, 16)), "\"\": 1 files, 1 bytes\nagent 755");
        check(
            &folders(&nested(2, 15)),
            "the agent is larger than 100000 bytes unpacked, including 4096 for each file and folder",
        );
        let root = tempfile::tempdir().unwrap();
        let refusal = unpack(&folders(&nested(200, 11)), root.path(), 1 << 30).unwrap_err();
        expect!["the archive has more than 2000 entries, including the folders in their paths; leave out what the agent doesn't need, such as tests and caches"]
            .assert_eq(&refusal.to_string());
        let mut tar = Builder::new(GzEncoder::new(Vec::new(), Compression::fast()));
        add(&mut tar, EntryType::GNULongName, "././@LongLink", 0o644, &vec![b'a'; 64 << 20]);
        let name = tar.into_inner().unwrap().finish().unwrap();
        assert!(name.len() < 1 << 20);
        check(&name, "the upload isn't a complete tar.gz: unexpected EOF during skip");
        let many: Vec<_> = (0..2001).map(|_| (EntryType::Directory, "a/", 0o755, &b""[..])).collect();
        check(
            &packed(&many),
            "the archive has more than 2000 entries, including the folders in their paths; leave out what the agent doesn't need, such as tests and caches",
        );
        let whole = packed(&[(FILE, "agent", 0o755, &[7; 5_000])]);
        check(&whole[..whole.len() / 2], "the upload isn't a complete tar.gz: incomplete deflate stream");
        check(&[0x1f, 0x8b, 0, 0], "the upload isn't a complete tar.gz: unexpected end of file");
    }
}
