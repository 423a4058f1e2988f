//! Files at paths that the user chooses: replays, logs, exports and reports.
//!
//! A regular file appears complete or not at all. Before [`OutputFile::keep`] the data is in an unnamed file,
//! so neither an agent nor another program can open it. Other outputs, such as a device, a pipe or an open
//! descriptor, are written to directly and never replaced.

use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, Seek, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{MetadataExt, PermissionsExt, fchown};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, linkat};

/// Maximum number of symbolic links to follow to a file that doesn't exist yet.
const MAX_LINKS: usize = 40;

/// Maximum number of temporary names to try before giving up.
const MAX_NAMES: u32 = 100;

/// Dropping the value without a call of [`OutputFile::keep`] discards the data and leaves an older file unchanged.
#[derive(Debug)]
pub struct OutputFile {
    file: File,
    /// The destination of a regular file; `None` for an output that is written to directly.
    destination: Option<Destination>,
}

#[derive(Debug)]
struct Destination {
    /// The path with the links at its end resolved.
    path: PathBuf,
    folder: PathBuf,
    mode: u32,
    /// User and group of the file that the output replaces.
    owner: Option<(u32, u32)>,
}

impl OutputFile {
    /// Begins an output file at `path`. A new file gets its mode from the umask; a replacement keeps the mode
    /// of the older file.
    ///
    /// # Errors
    /// If `path` can't be written to.
    pub fn create(path: &Path) -> io::Result<OutputFile> {
        OutputFile::with_mode(path, None)
    }

    /// Begins an output file that only its owner may read.
    ///
    /// # Errors
    /// As [`OutputFile::create`].
    pub fn create_private(path: &Path) -> io::Result<OutputFile> {
        OutputFile::with_mode(path, Some(0o600))
    }

    fn with_mode(path: &Path, mode: Option<u32>) -> io::Result<OutputFile> {
        if let Some(file) = open_direct(path)? {
            return Ok(OutputFile { file, destination: None });
        }
        let (path, found, owner) = match metadata(path)? {
            Some(old) => {
                // The user must have write permission for the file that the output replaces.
                OpenOptions::new().write(true).open(path)?;
                (path.canonicalize()?, old.permissions().mode() & 0o777, Some((old.uid(), old.gid())))
            }
            None => (end_of_links(path)?, 0o666 & !umask(), None),
        };
        path.file_name().ok_or_else(|| io::Error::from(io::ErrorKind::InvalidInput))?;
        let folder = match path.parent() {
            Some(folder) if folder != Path::new("") => folder.to_owned(),
            _ => PathBuf::from("."),
        };
        let file = tempfile::tempfile_in(&folder)?;
        // A private output file belongs to its writer, not to the owner of the older file.
        let owner = owner.filter(|_| mode.is_none());
        Ok(OutputFile { file, destination: Some(Destination { path, folder, mode: mode.unwrap_or(found), owner }) })
    }

    /// Returns true if the output is a regular file. Logs can be written only next to a regular file.
    pub fn is_regular(&self) -> bool {
        self.destination.is_some()
    }

    /// Gives the complete file its path and syncs it to disk. Returns true for a regular file.
    ///
    /// # Errors
    /// If writing or renaming fails; an older file is then unchanged.
    pub fn keep(mut self) -> io::Result<bool> {
        self.file.flush()?;
        let Some(destination) = self.destination.take() else { return Ok(false) };
        if let Some((user, group)) = destination.owner {
            // Only root may change a file's owner, so a failure is ignored.
            let _ = fchown(&self.file, Some(user), Some(group));
        }
        self.file.set_permissions(Permissions::from_mode(destination.mode))?;
        self.file.sync_all()?;
        if !link(&self.file, &destination)? {
            copy(&mut self.file, &destination)?;
        }
        // The error is ignored: file systems that can't sync a folder write its entries to disk by
        // themselves.
        let _ = File::open(&destination.folder).and_then(|folder| folder.sync_all());
        Ok(true)
    }
}

impl Write for OutputFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

/// Writes a whole file. See [`OutputFile::create`] for its mode and owner.
///
/// # Errors
/// If the file can't be written; an older file is then unchanged.
pub fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut out = OutputFile::create(path)?;
    out.write_all(bytes)?;
    out.keep().map(|_| ())
}

/// Opens a device, a pipe or a descriptor without creating, truncating or replacing it. Returns `None` for a
/// regular file and for a path that doesn't exist.
///
/// # Errors
/// If the device, pipe or descriptor can't be opened.
pub fn open_direct(path: &Path) -> io::Result<Option<File>> {
    if let Some(stream) = standard_stream(path) {
        return stream.map(Some);
    }
    let is_special = metadata(path)?.is_some_and(|there| !there.is_file()) || is_descriptor(path);
    is_special.then(|| OpenOptions::new().append(true).open(path)).transpose()
}

/// Returns a duplicate of this process's stdout or stderr if the path leads to one of them. Opening the path
/// again would give a regular file a second write position.
fn standard_stream(path: &Path) -> Option<io::Result<File>> {
    let path = fs::read_link(path).ok().filter(|to| to.starts_with("/proc")).unwrap_or_else(|| path.to_owned());
    let folder = path.parent()?.canonicalize().ok()?;
    if folder != Path::new("/proc/self/fd").canonicalize().ok()? {
        return None;
    }
    let stream = match path.file_name()?.to_str()? {
        "1" => rustix::stdio::stdout(),
        "2" => rustix::stdio::stderr(),
        _ => return None,
    };
    Some(stream.try_clone_to_owned().map(File::from))
}

fn metadata(path: &Path) -> io::Result<Option<fs::Metadata>> {
    match fs::metadata(path) {
        Ok(there) => Ok(Some(there)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// Returns true if the path leads to a descriptor of some process, such as `/dev/stdout` or `/dev/fd/3`.
fn is_descriptor(path: &Path) -> bool {
    let folder = match path.parent() {
        Some(folder) if folder != Path::new("") => folder,
        _ => Path::new("."),
    };
    folder.canonicalize().is_ok_and(|folder| folder.starts_with("/proc"))
        || fs::read_link(path).is_ok_and(|to| to.starts_with("/proc"))
}

/// Resolves the symbolic links at the end of a path. The file at the end may not exist yet.
pub(crate) fn end_of_links(path: &Path) -> io::Result<PathBuf> {
    let mut path = path.to_owned();
    for _ in 0..MAX_LINKS {
        let Ok(target) = fs::read_link(&path) else { return Ok(path) };
        path = path.parent().unwrap_or(Path::new("")).join(target);
    }
    Err(io::Error::from(io::ErrorKind::InvalidInput))
}

/// Links an unnamed file to its path. Returns false if the file system doesn't support this.
fn link(file: &File, destination: &Destination) -> io::Result<bool> {
    let own = format!("/proc/self/fd/{}", file.as_raw_fd());
    let to = |path: &Path| linkat(CWD, own.as_str(), CWD, path, AtFlags::SYMLINK_FOLLOW).map_err(io::Error::from);
    match to(&destination.path) {
        Ok(()) => return Ok(true),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
        Err(_) => return Ok(false),
    }
    for number in 0..MAX_NAMES {
        let beside = destination.folder.join(format!(".arena-{}-{number}.partial", std::process::id()));
        match to(&beside) {
            Ok(()) => {
                let replaced = replace(&beside, &destination.path);
                if replaced.is_err() {
                    let _ = fs::remove_file(&beside);
                }
                return replaced.map(|()| true);
            }
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(_) => return Ok(false),
        }
    }
    Err(io::Error::from(io::ErrorKind::AlreadyExists))
}

/// Copies the data to a named temporary file and renames it.
fn copy(file: &mut File, destination: &Destination) -> io::Result<()> {
    let mut named = tempfile::Builder::new().prefix(".arena-").suffix(".partial").tempfile_in(&destination.folder)?;
    file.rewind()?;
    io::copy(file, named.as_file_mut())?;
    if let Some((user, group)) = destination.owner {
        let _ = fchown(named.as_file(), Some(user), Some(group));
    }
    named.as_file().set_permissions(Permissions::from_mode(destination.mode))?;
    named.as_file().sync_all()?;
    let named = named.into_temp_path();
    replace(&named, &destination.path)?;
    // `replace` has renamed the file, so its temporary name needs no removal.
    let _ = named.keep();
    Ok(())
}

/// Renames a file. The target must be a regular file or not exist.
fn replace(from: &Path, to: &Path) -> io::Result<()> {
    match fs::symlink_metadata(to) {
        Ok(there) if !there.is_file() => Err(io::Error::other("the destination is no longer a regular file")),
        _ => fs::rename(from, to),
    }
}

/// Returns the umask from `/proc`. The system call `umask` would change the umask for all threads.
fn umask() -> u32 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let digits = status.lines().find_map(|line| line.strip_prefix("Umask:"));
    digits.and_then(|digits| u32::from_str_radix(digits.trim(), 8).ok()).unwrap_or(0o077)
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::os::unix::fs::{FileTypeExt, symlink};
    use std::thread;

    use rustix::fs::{FileType, Mode, makedev, mknodat};

    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let mut names: Vec<String> =
            fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn a_private_output_belongs_to_its_writer() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("export.jsonl");
        fs::write(&path, "old").unwrap();
        // Only root can change a file's owner. Other users own the file already.
        let is_root = rustix::process::geteuid().is_root();
        assert_eq!(std::os::unix::fs::chown(&path, Some(12345), Some(12345)).is_ok(), is_root);
        let mut out = OutputFile::create_private(&path).unwrap();
        out.write_all(b"new").unwrap();
        out.keep().unwrap();
        let data = fs::metadata(&path).unwrap();
        assert_eq!((data.uid(), data.mode() & 0o777), (rustix::process::geteuid().as_raw(), 0o600));
        assert_eq!(fs::read(&path).unwrap(), b"new");
    }

    #[test]
    fn a_file_is_there_when_it_is_whole_and_has_no_name_before() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("game.jsonl");
        for text in ["one", "two"] {
            let before = (names(folder.path()), fs::read(&path).ok());
            let mut out = OutputFile::create(&path).unwrap();
            out.write_all(text.as_bytes()).unwrap();
            assert_eq!((names(folder.path()), fs::read(&path).ok()), before);
            assert!(out.is_regular() && out.keep().unwrap());
            assert_eq!((fs::read_to_string(&path).unwrap().as_str(), names(folder.path()).len()), (text, 1));
            assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o666 & !umask());
        }
        let private = folder.path().join("export");
        OutputFile::create_private(&private).unwrap().keep().unwrap();
        assert_eq!(fs::metadata(&private).unwrap().permissions().mode() & 0o777, 0o600);
    }

    #[test]
    fn an_output_that_is_dropped_leaves_an_older_file_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("game.jsonl");
        fs::write(&path, "old").unwrap();
        fs::set_permissions(&path, Permissions::from_mode(0o640)).unwrap();
        let mut out = OutputFile::create(&path).unwrap();
        out.write_all(b"new").unwrap();
        drop(out);
        assert_eq!((fs::read_to_string(&path).unwrap().as_str(), names(folder.path()).len()), ("old", 1));
        OutputFile::create(&path).unwrap().keep().unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o640);
    }

    #[test]
    fn a_file_system_without_unnamed_files_gets_a_copy() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("game.jsonl");
        for text in ["one", "two"] {
            // A file whose name was removed can't be linked to a new name.
            let (mut file, named) = tempfile::NamedTempFile::new_in(folder.path()).unwrap().into_parts();
            named.close().unwrap();
            file.write_all(text.as_bytes()).unwrap();
            let destination =
                Destination { path: path.clone(), folder: folder.path().to_owned(), mode: 0o604, owner: None };
            OutputFile { file, destination: Some(destination) }.keep().unwrap();
            assert_eq!((fs::read_to_string(&path).unwrap().as_str(), names(folder.path()).len()), (text, 1));
            assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o604);
        }
    }

    #[test]
    fn a_link_stays_and_its_target_is_written() {
        let folder = tempfile::tempdir().unwrap();
        let (path, link, chain) =
            (folder.path().join("game.jsonl"), folder.path().join("latest"), folder.path().join("chain"));
        symlink("game.jsonl", &link).unwrap();
        symlink("latest", &chain).unwrap();
        // The link's target doesn't exist before the first write.
        for text in ["new", "newer"] {
            write(&chain, text.as_bytes()).unwrap();
            assert_eq!(fs::read_to_string(&path).unwrap(), text);
            assert_eq!(names(folder.path()), ["chain", "game.jsonl", "latest"]);
            assert!([&link, &chain].iter().all(|link| fs::symlink_metadata(link).unwrap().is_symlink()));
        }
        symlink("loop", folder.path().join("loop")).unwrap();
        assert!(OutputFile::create(&folder.path().join("loop")).is_err());
    }

    #[test]
    fn a_named_pipe_and_a_descriptor_are_written_to_directly() {
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("pipe");
        mknodat(CWD, &pipe, FileType::Fifo, Mode::RWXU, 0).unwrap();
        let text = thread::scope(|scope| {
            let reader = scope.spawn(|| {
                let mut text = String::new();
                File::open(&pipe).unwrap().read_to_string(&mut text).unwrap();
                text
            });
            let mut out = OutputFile::create(&pipe).unwrap();
            out.write_all(b"through").unwrap();
            assert!(!out.is_regular() && !out.keep().unwrap());
            reader.join().unwrap()
        });
        assert_eq!(text, "through");
        assert!(fs::symlink_metadata(&pipe).unwrap().file_type().is_fifo());
        // Opening a descriptor of a regular file doesn't truncate the file.
        let path = folder.path().join("log");
        fs::write(&path, "before ").unwrap();
        let open = OpenOptions::new().append(true).open(&path).unwrap();
        for descriptors in ["/dev/fd", "/proc/self/fd"] {
            write(&Path::new(descriptors).join(open.as_raw_fd().to_string()), b"after ").unwrap();
        }
        assert_eq!(fs::read_to_string(&path).unwrap(), "before after after ");
        assert_eq!(names(folder.path()), ["log", "pipe"]);
    }

    /// As root, a failing test could replace the machine's devices. The test therefore creates a device in
    /// its own folder if it runs as root.
    #[test]
    fn a_device_and_a_link_to_one_stay_devices() {
        let folder = tempfile::tempdir().unwrap();
        let device = if rustix::process::geteuid().is_root() {
            let device = folder.path().join("null");
            mknodat(CWD, &device, FileType::CharacterDevice, Mode::RUSR | Mode::WUSR, makedev(1, 3)).unwrap();
            device
        } else {
            PathBuf::from("/dev/null")
        };
        let link = folder.path().join("link");
        symlink(&device, &link).unwrap();
        let before = fs::symlink_metadata(&device).unwrap();
        let names_before = names(folder.path());
        for path in [&device, &link] {
            for create in [OutputFile::create, OutputFile::create_private] {
                let mut out = create(path).unwrap();
                out.write_all(b"nothing").unwrap();
                assert!(!out.is_regular() && !out.keep().unwrap());
            }
        }
        let after = fs::symlink_metadata(&device).unwrap();
        assert!(after.file_type().is_char_device());
        assert_eq!((after.ino(), after.mode()), (before.ino(), before.mode()));
        assert_eq!(names(folder.path()), names_before);
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    }

    #[test]
    fn a_place_that_became_a_device_meanwhile_is_not_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out");
        let out = OutputFile::create(&path).unwrap();
        mknodat(CWD, &path, FileType::Fifo, Mode::RWXU, 0).unwrap();
        assert!(out.keep().is_err());
        assert!(fs::symlink_metadata(&path).unwrap().file_type().is_fifo());
        assert_eq!(names(folder.path()), ["out"]);
    }

    #[test]
    fn folders_and_places_without_a_folder_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        assert!(OutputFile::create(folder.path()).is_err());
        assert!(OutputFile::create(&folder.path().join("no/folder")).is_err());
        assert_eq!(names(folder.path()), Vec::<String>::new());
    }
}
