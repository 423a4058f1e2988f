//! A shell that runs a server, and stops it when the test process ends for any reason.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};

/// The shell's script. It starts the server, and sends it the signal when the pipe to the test process closes. The
/// script then removes the folder, unless the test restarts the server. `$1` is the folder and `$2` the signal; the
/// other arguments are the server's command line.
const SCRIPT: &str = r#"trap '' INT TERM; folder="$1"; signal="$2"; shift 2; "$@" <&- & pid=$!; cat >/dev/null
kill "$signal" $pid; wait $pid
[ -e "$folder/kept" ] || rm -rf "$folder""#;

/// Returns the path of a server's program, which is in the Debian package of the same name. Debian keeps servers in a
/// folder that only root has on the path.
///
/// # Panics
/// If the program isn't installed.
pub(crate) fn system_program(name: &str) -> PathBuf {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::env::split_paths(&path).chain([PathBuf::from("/usr/sbin")]);
    let found = folders.map(|folder| folder.join(name)).find(|program| program.exists());
    found.unwrap_or_else(|| {
        panic!("this test needs {name}: `cargo xtask setup` installs it; by hand it is Debian's package {name}")
    })
}

/// The shell of a running server.
pub(crate) struct Watcher {
    child: Child,
    /// The shell's standard input. Closing it stops the server.
    pipe: ChildStdin,
    folder: PathBuf,
}

impl Watcher {
    /// Starts a server with its files in `folder`. `signal`, such as `-INT`, stops it.
    pub(crate) fn start(server: &Command, signal: &str, folder: &Path, log: File) -> Watcher {
        let mut shell = Command::new("sh");
        shell.args(["-c", SCRIPT, "sh"]).arg(folder).arg(signal).arg(server.get_program()).args(server.get_args());
        let mut child = shell.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(log).spawn().expect("a shell");
        let pipe = child.stdin.take().expect("a pipe");
        Watcher { child, pipe, folder: folder.to_owned() }
    }

    /// Stops the server, and waits for its end. The folder is removed unless `keep` is true.
    pub(crate) fn end(self, keep: bool) {
        let Watcher { mut child, pipe, folder } = self;
        let kept = folder.join("kept");
        if keep {
            fs::write(&kept, "").expect("a file");
        } else {
            let _ = fs::remove_file(&kept);
        }
        drop(pipe);
        let _ = child.wait();
        let _ = fs::remove_file(&kept);
    }
}
