//! The file system of an agent with namespaces: a temporary file system with read-only bind mounts of the
//! system's programs, the agent's folder and its interpreter.

use std::ffi::{CStr, CString};
use std::fs::{self, DirBuilder, File, Permissions};
use std::io::{self, Read};
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt, chown, symlink};
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags, openat};
use rustix::mount::{
    MountFlags, MountPropagationFlags, UnmountFlags, mount, mount_bind_recursive, mount_change, mount_remount, unmount,
};
use rustix::process::{chdir, pivot_root};

use super::confine::{DEVICES, ETC, ZERO, has_landlock};
use super::exposure::{Exposure, MAX_ENTRIES, entries, is_system};
use super::{LaunchPlan, Setup};
use crate::process::{ActiveSandbox, StartError};

/// The mount point of the system's root during the setup.
const OLD: &str = "/old";

/// The number of inodes suffices for the agent's folder at two paths, shown entry by entry.
const ROOT_OPTIONS: &CStr = c"mode=755,size=8m,nr_inodes=32768";
const _: () = assert!(2 * MAX_ENTRIES + 4096 <= 32768);

/// Size of the scratch file system without a file size limit, in bytes.
const SCRATCH_BYTES: u64 = 1 << 30;

/// Maximum number of files in the scratch file system. Each uses kernel memory.
const SCRATCH_FILES: u32 = 16384;

/// Builds the file system and makes it this process's root. Returns the scratch folder. `proc_self` is this
/// process's folder in the system's `/proc`.
pub(super) fn build(plan: &LaunchPlan, proc_self: &File, in_force: &mut ActiveSandbox) -> Result<PathBuf, StartError> {
    // Later mounts must not propagate to the system's mount namespace.
    mount_change("/", MountPropagationFlags::REC | MountPropagationFlags::PRIVATE).setup("making mounts private")?;
    enter_new_root().setup("making a new root")?;
    system_programs().setup("showing the system's programs")?;
    settings(plan).setup("writing /etc")?;
    devices().setup("making /dev")?;
    let scratch = scratch(plan).setup("making the scratch folder")?;
    for exposure in &plan.exposures {
        let showing = format!("showing {}", exposure.at.display());
        match exposure.is_own.then(|| entries(&old(&exposure.source))).flatten() {
            Some(entries) => show_each(&entries, exposure).setup(&showing)?,
            None => show(&exposure.source, &exposure.at).setup(&showing)?,
        }
    }
    hide(&plan.hidden).setup("hiding files of others")?;
    if let Err(error) = processes() {
        in_force.missing.push(format!(
            "The system doesn't allow a /proc for the agent ({error}), so the memory limit applies to each \
             process separately."
        ));
    }
    unmount(OLD, UnmountFlags::DETACH).setup("unmounting the system's root")?;
    fs::remove_dir(OLD).setup("removing the mount point of the system's root")?;
    make_read_only(proc_self)?;
    Ok(scratch)
}

fn enter_new_root() -> io::Result<()> {
    // Any folder works as the mount point, because the new file system becomes the root immediately.
    let places = ["/tmp", "/mnt", "/var", "/usr"];
    let place = places.into_iter().map(Path::new).find(|place| place.is_dir()).unwrap_or(Path::new("/dev"));
    let flags = MountFlags::NOSUID | MountFlags::NODEV;
    mount("tmpfs", place, "tmpfs", flags, Some(ROOT_OPTIONS))?;
    let old = place.join("old");
    make_folder(&old)?;
    pivot_root(place, &old)?;
    chdir("/")?;
    Ok(())
}

/// Creates a folder that every user can enter. [`super::init`] has set the umask.
fn make_folder(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o755).create(path)
}

/// Returns the path under [`OLD`], where the system's root is mounted during the setup.
fn old(path: &Path) -> PathBuf {
    Path::new(OLD).join(path.strip_prefix("/").unwrap_or(path))
}

fn system_programs() -> io::Result<()> {
    for entry in fs::read_dir(OLD)?.flatten() {
        let at = Path::new("/").join(entry.file_name());
        if !is_system(&at) {
            continue;
        }
        let kind = entry.file_type()?;
        if kind.is_symlink() {
            symlink(fs::read_link(entry.path())?, &at)?;
        } else if kind.is_dir() {
            make_folder(&at)?;
            mount_bind_recursive(entry.path(), &at)?;
        }
    }
    Ok(())
}

fn settings(plan: &LaunchPlan) -> io::Result<()> {
    make_folder(Path::new("/etc"))?;
    for name in ETC {
        let at = Path::new("/etc").join(name);
        let source = old(&at);
        let Ok(metadata) = source.symlink_metadata() else { continue };
        if let Some(folder) = at.parent() {
            make_folder(folder)?;
        }
        if metadata.is_symlink() {
            symlink(fs::read_link(&source)?, &at)?;
        } else if metadata.is_dir() {
            make_folder(&at)?;
            mount_bind_recursive(&source, &at)?;
        } else {
            // A copy costs less than a mount. Programs don't need settings that this user can't read.
            let _ = fs::copy(&source, &at);
        }
    }
    let (user, group) = plan.drop_to.map_or((plan.user_id, plan.group_id), |id| (id, id));
    let write = |name: &str, text: String| -> io::Result<()> {
        let at = Path::new("/etc").join(name);
        fs::write(&at, text)?;
        fs::set_permissions(&at, Permissions::from_mode(0o644))
    };
    write("passwd", format!("agent:x:{user}:{group}::/tmp/agent:/bin/sh\n"))?;
    write("group", format!("agent:x:{group}:\n"))?;
    write("hosts", "127.0.0.1 localhost\n::1 localhost\n".to_owned())
}

fn devices() -> io::Result<()> {
    make_folder(Path::new("/dev"))?;
    let zero = has_landlock().then_some(ZERO);
    // Containers may lack some devices.
    for device in DEVICES.into_iter().chain(zero).map(Path::new).filter(|device| old(device).exists()) {
        File::create(device)?;
        mount_bind_recursive(old(device), device)?;
    }
    symlink("/proc/self/fd", "/dev/fd")?;
    for (number, name) in ["stdin", "stdout", "stderr"].into_iter().enumerate() {
        symlink(format!("/proc/self/fd/{number}"), Path::new("/dev").join(name))?;
    }
    // Named shared memory and semaphores are files in this folder, so the size limit of the scratch file
    // system includes them.
    symlink("/tmp/.shm", "/dev/shm")
}

/// Mounts the agent's `/tmp` and returns the scratch folder in it.
fn scratch(plan: &LaunchPlan) -> io::Result<PathBuf> {
    let bytes = plan.limits.file_size_bytes.unwrap_or(SCRATCH_BYTES);
    let options = CString::new(format!("mode=1777,size={bytes},nr_inodes={SCRATCH_FILES}"))?;
    make_folder(Path::new("/tmp"))?;
    mount("tmpfs", "/tmp", "tmpfs", MountFlags::NOSUID | MountFlags::NODEV, Some(options.as_c_str()))?;
    let is_taken = |path: &Path| plan.exposures.iter().any(|exposure| exposure.at.starts_with(path));
    let names = ["agent", "agent-scratch", "arena-agent-scratch"].map(|name| Path::new("/tmp").join(name));
    let scratch = names.into_iter().find(|path| !is_taken(path)).unwrap_or_else(|| "/tmp/.agent".into());
    for folder in [scratch.as_path(), Path::new("/tmp/.shm")] {
        DirBuilder::new().mode(0o700).create(folder)?;
        chown(folder, plan.drop_to, plan.drop_to)?;
    }
    Ok(scratch)
}

/// Bind-mounts a file or folder of the system at this path.
fn show(source: &Path, at: &Path) -> io::Result<()> {
    let source = old(source);
    let is_folder = source.metadata()?.is_dir();
    if let (Ok(there), Ok(wanted)) = (at.metadata(), source.metadata()) {
        // Already mounted with a parent folder.
        if (there.dev(), there.ino()) == (wanted.dev(), wanted.ino()) {
            return Ok(());
        }
    } else if is_folder {
        make_folder(at)?;
    } else {
        make_folder(at.parent().unwrap_or(Path::new("/")))?;
        File::create_new(at)?;
    }
    Ok(mount_bind_recursive(&source, at)?)
}

/// Bind-mounts a folder's present entries.
fn show_each(entries: &[fs::DirEntry], Exposure { at, source, .. }: &Exposure) -> io::Result<()> {
    if at.exists() {
        // Another exposure is mounted at this path already, so no entries can be created in it.
        return show(source, at);
    }
    make_folder(at)?;
    // The folder gets its own mount, so that [`make_read_only`] applies to it.
    mount_bind_recursive(at, at)?;
    show_entries(entries, at, source)?;
    // The mount point gets the folder's owner and permissions. The change of owner fails if the owner has no
    // mapping in the user namespace.
    let metadata = old(source).metadata()?;
    let _ = chown(at, Some(metadata.uid()), Some(metadata.gid()));
    fs::set_permissions(at, metadata.permissions())
}

fn show_entries(entries: &[fs::DirEntry], at: &Path, source: &Path) -> io::Result<()> {
    for entry in entries {
        match show_entry(entry, at, source) {
            // The entry was removed after the folder was read, such as a swap file or a cache.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            shown => shown?,
        }
    }
    Ok(())
}

fn show_entry(entry: &fs::DirEntry, at: &Path, source: &Path) -> io::Result<()> {
    let (kind, name) = (entry.file_type()?, entry.file_name());
    if kind.is_symlink() {
        symlink(fs::read_link(entry.path())?, at.join(name))
    } else if kind.is_dir() || kind.is_file() {
        show(&source.join(&name), &at.join(&name))
    } else {
        Ok(())
    }
}

/// Mounts an inaccessible file or folder over each of these paths.
fn hide(paths: &[PathBuf]) -> io::Result<()> {
    if paths.is_empty() {
        return Ok(());
    }
    let (file, folder) = (Path::new("/.file"), Path::new("/.folder"));
    File::create_new(file)?.set_permissions(Permissions::from_mode(0o000))?;
    DirBuilder::new().mode(0o000).create(folder)?;
    for path in paths {
        match path.metadata() {
            Ok(metadata) => mount_bind_recursive(if metadata.is_dir() { folder } else { file }, path)?,
            // The path is in a hidden folder or was removed.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
    }
    // The mounts stay valid after their sources are unlinked.
    fs::remove_file(file)?;
    fs::remove_dir(folder)
}

fn processes() -> io::Result<()> {
    make_folder(Path::new("/proc"))?;
    let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
    // `subset=pid` leaves out information on the machine. Kernels before 5.8 don't support it.
    mount("proc", "/proc", "proc", flags, Some(c"subset=pid"))
        .or_else(|_| mount("proc", "/proc", "proc", flags, None))?;
    Ok(())
}

/// Remounts everything but `/tmp` and `/proc` read-only. Each mount keeps its other restrictions.
fn make_read_only(proc_self: &File) -> Result<(), StartError> {
    let table = openat(proc_self, "mountinfo", OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty());
    let mut text = Vec::new();
    File::from(table.setup("listing mounts")?).read_to_end(&mut text).setup("listing mounts")?;
    for line in text.split(|&byte| byte == b'\n') {
        let mut words = line.split(|&byte| byte == b' ').skip(4);
        let (Some(at), Some(options)) = (words.next(), words.next()) else { continue };
        let at = unescape(at);
        if at == Path::new("/tmp") || at == Path::new("/proc") {
            continue;
        }
        let mut flags = MountFlags::BIND | MountFlags::RDONLY | MountFlags::NOSUID;
        if !at.starts_with("/dev") {
            flags |= MountFlags::NODEV;
        }
        for option in options.split(|&byte| byte == b',') {
            flags |= match option {
                b"nodev" => MountFlags::NODEV,
                b"noexec" => MountFlags::NOEXEC,
                b"noatime" => MountFlags::NOATIME,
                b"nodiratime" => MountFlags::NODIRATIME,
                b"relatime" => MountFlags::RELATIME,
                _ => MountFlags::empty(),
            };
        }
        mount_remount(&at, flags, c"").setup(&format!("making {} read-only", at.display()))?;
    }
    Ok(())
}

/// Decodes a path in which the kernel wrote spaces and some other characters as octal escapes.
fn unescape(word: &[u8]) -> PathBuf {
    let mut bytes = Vec::with_capacity(word.len());
    let mut rest = word;
    while let Some((&byte, after)) = rest.split_first() {
        let escaped = (byte == b'\\').then(|| after.get(..3)).flatten();
        let number = escaped.and_then(|digits| u8::from_str_radix(std::str::from_utf8(digits).ok()?, 8).ok());
        match number {
            Some(number) => {
                bytes.push(number);
                rest = &after[3..];
            }
            None => {
                bytes.push(byte);
                rest = after;
            }
        }
    }
    PathBuf::from(std::ffi::OsString::from_vec(bytes))
}

#[cfg(test)]
mod tests {
    use std::os::unix::ffi::OsStrExt;

    use super::*;

    #[test]
    fn entries_that_vanish_while_they_are_shown_stop_nothing() {
        let (folder, shown) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let names = ["gone", "gone.swp", "stays", "sub"];
        for name in ["gone", "stays"] {
            symlink("target", folder.path().join(name)).unwrap();
        }
        fs::write(folder.path().join("gone.swp"), "").unwrap();
        fs::create_dir(folder.path().join("sub")).unwrap();
        let entries = entries(folder.path()).unwrap();
        assert_eq!(entries.len(), names.len());
        fs::remove_file(folder.path().join("gone")).unwrap();
        fs::remove_file(folder.path().join("gone.swp")).unwrap();
        fs::remove_dir(folder.path().join("sub")).unwrap();
        show_entries(&entries, shown.path(), folder.path()).unwrap();
        let left: Vec<_> = fs::read_dir(shown.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(left, ["stays"]);
    }

    #[test]
    fn paths_of_mounts_come_back_as_they_were() {
        assert_eq!(unescape(br"/a\040b\134c\\d"), Path::new(r"/a b\c\\d"));
        assert_eq!(unescape(br"/end\04").as_os_str().as_bytes(), br"/end\04");
    }
}
