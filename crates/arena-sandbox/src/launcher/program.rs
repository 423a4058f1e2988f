//! The search for an agent's program, and the reasons that it can't be run.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use crate::process::StartError;

/// The number of bytes of a script's first line that the kernel reads.
const FIRST_LINE: u64 = 256;

/// The first bytes of a binary.
const ELF: &[u8] = b"\x7fELF";

/// The first bytes of a script with a byte order mark.
const MARKED_SCRIPT: &[u8] = b"\xef\xbb\xbf#!";

/// Length of a binary's header, in bytes.
const ELF_HEADER: usize = 64;

/// Finds the program's path, and checks that the system can run the program.
pub(super) fn find(program: &Path, search_path: &OsStr) -> Result<PathBuf, StartError> {
    let name = program.display().to_string();
    let path = if program.as_os_str().as_bytes().contains(&b'/') {
        program.to_owned()
    } else {
        look_up(program.as_os_str(), search_path).ok_or_else(|| StartError::NotFound { program: name.clone() })?
    };
    let metadata = path.metadata().map_err(|error| match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => StartError::NotFound { program: name.clone() },
        _ => StartError::Refused { program: name.clone(), reason: error.to_string() },
    })?;
    if !metadata.is_file() {
        return Err(StartError::NotAFile { program: name });
    }
    if metadata.permissions().mode() & 0o111 == 0 {
        return Err(StartError::NotExecutable { program: name });
    }
    let script = |problem: &str| Err(StartError::Script { program: name.clone(), problem: problem.to_owned() });
    match Head::of(&path) {
        Ok(Head::MarkedScript) => {
            return script("it begins with a byte order mark, which hides its `#!`; save it as UTF-8 without the mark");
        }
        Ok(Head::Script(line)) if line.ends_in_cr => {
            return script(
                "its first line ends with CR LF, and the CR becomes a part of the interpreter's name; save it with line \
                 ends LF",
            );
        }
        Ok(Head::Script(line)) => {
            if let Some(missing) = line.missing(search_path) {
                let interpreter = missing.to_string_lossy().into_owned();
                return Err(StartError::MissingInterpreter { program: name, interpreter });
            }
        }
        Ok(Head::Other) => return Err(StartError::Format { program: name }),
        // A program that can't be read may still be an executable binary.
        Ok(Head::Binary) | Err(_) => {}
    }
    Ok(path)
}

/// Returns the first executable file with this name in the folders of a `PATH`.
pub(super) fn look_up(name: &OsStr, search_path: &OsStr) -> Option<PathBuf> {
    std::env::split_paths(search_path).filter(|folder| folder.is_absolute()).map(|folder| folder.join(name)).find(
        |path| path.metadata().is_ok_and(|metadata| metadata.is_file() && metadata.permissions().mode() & 0o111 != 0),
    )
}

/// Returns true if a binary's header matches the word size and processor of this machine.
fn is_for_this_machine(header: &[u8]) -> bool {
    let mut own = [0; ELF_HEADER];
    let read = File::open("/proc/self/exe").and_then(|mut file| file.read_exact(&mut own));
    // Byte 4 is the word size, bytes 18 and 19 are the processor.
    let kind = |header: &[u8]| (header[4], [header[18], header[19]]);
    header.len() >= ELF_HEADER && (read.is_err() || kind(header) == kind(&own))
}

/// The kind of a program, determined by its first bytes.
pub(super) enum Head {
    Binary,
    Script(FirstLine),
    /// A script with a byte order mark, which the kernel doesn't run.
    MarkedScript,
    Other,
}

/// The interpreter in a script's first line.
pub(super) struct FirstLine {
    pub(super) interpreter: PathBuf,
    /// The program that `env` looks up, if the interpreter is `env`.
    pub(super) by_env: Option<OsString>,
    /// True if a carriage return follows the name of the interpreter, or of the program for `env`.
    ends_in_cr: bool,
}

impl Head {
    pub(super) fn of(path: &Path) -> io::Result<Head> {
        let mut bytes = Vec::new();
        File::open(path)?.take(FIRST_LINE).read_to_end(&mut bytes)?;
        if bytes.starts_with(ELF) {
            return Ok(if is_for_this_machine(&bytes) { Head::Binary } else { Head::Other });
        }
        if bytes.starts_with(MARKED_SCRIPT) {
            return Ok(Head::MarkedScript);
        }
        let Some(line) = bytes.strip_prefix(b"#!") else { return Ok(Head::Other) };
        let line = line.split(|&byte| byte == b'\n').next().unwrap_or(line);
        let mut words = line.split(|byte| byte.is_ascii_whitespace()).filter(|word| !word.is_empty());
        let last = words.clone().next_back();
        // `env -S` splits its arguments at a carriage return, too.
        let splits = words.clone().any(|word| word.starts_with(b"-S") || word.starts_with(b"--split-string"));
        let Some(interpreter) = words.next() else { return Ok(Head::Other) };
        let is_alone = last == Some(interpreter);
        let interpreter = PathBuf::from(OsStr::from_bytes(interpreter));
        let is_env = interpreter.file_name() == Some(OsStr::new("env"));
        // The options and assignments of `env` precede the program.
        let by_env = words.find(|word| !word.starts_with(b"-") && !word.contains(&b'=')).filter(|_| is_env);
        let ends_in_cr = line.ends_with(b"\r") && (is_alone || by_env.is_some() && by_env == last && !splits);
        let by_env = by_env.map(|word| OsStr::from_bytes(word).to_owned());
        Ok(Head::Script(FirstLine { interpreter, by_env, ends_in_cr }))
    }
}

impl FirstLine {
    /// Returns the name of the interpreter, or of the program for `env`, that doesn't exist; `None` if both
    /// exist.
    fn missing(&self, search_path: &OsStr) -> Option<OsString> {
        if !self.interpreter.exists() {
            return Some(self.interpreter.clone().into_os_string());
        }
        self.by_env.clone().filter(|name| {
            let is_path = name.as_bytes().contains(&b'/');
            if is_path { !Path::new(name).exists() } else { look_up(name, search_path).is_none() }
        })
    }
}

/// Returns the reason that the system refused a program that [`find`] accepted.
pub(super) fn explain(program: &Path, dropped_to: Option<u32>, error: &io::Error) -> StartError {
    let name = program.display().to_string();
    match (error.kind(), dropped_to) {
        (io::ErrorKind::PermissionDenied, Some(user_id)) => StartError::NotReadable { path: name, user_id },
        // The program was found before, so its interpreter or loader is missing.
        (io::ErrorKind::NotFound, _) => {
            let interpreter = match Head::of(program) {
                Ok(Head::Script(line)) => line.interpreter.display().to_string(),
                _ => "that its header names".to_owned(),
            };
            StartError::MissingInterpreter { program: name, interpreter }
        }
        _ if error.raw_os_error() == Some(nix::libc::ENOEXEC) => StartError::Format { program: name },
        _ => StartError::Refused { program: name, reason: error.to_string() },
    }
}

/// Checks that the unprivileged user can read the files that the agent needs.
pub(super) fn check_readable(plan: &super::LaunchPlan) -> Result<(), StartError> {
    let Some(user_id) = plan.drop_to else { return Ok(()) };
    let denied = |error: io::Error| error.kind() == io::ErrorKind::PermissionDenied;
    let unreadable = |path: &Path| StartError::NotReadable { path: path.display().to_string(), user_id };
    let whole_folder = plan.exposures.iter().any(|exposure| exposure.at == plan.folder);
    if whole_folder && std::fs::read_dir(&plan.folder).is_err_and(denied) {
        return Err(unreadable(&plan.folder));
    }
    // Without namespaces an interpreter in an unreadable home can't be reached. `env` would report that only
    // on stderr.
    if let Some(exposure) = plan.exposures.iter().find(|exposure| std::fs::metadata(&exposure.at).is_err_and(denied)) {
        return Err(unreadable(&exposure.at));
    }
    // An interpreter that can't read its script would report that only on stderr.
    let is_script = matches!(Head::of(&plan.program), Ok(Head::Script(_)));
    let program_denied = File::open(&plan.program).is_err_and(denied);
    if program_denied && (is_script || std::fs::metadata(&plan.program).is_err_and(denied)) {
        return Err(unreadable(&plan.program));
    }
    for argument in plan.args.iter().map(Path::new).filter(|path| path.starts_with(&plan.folder)) {
        if File::open(argument).is_err_and(denied) {
            return Err(unreadable(argument));
        }
    }
    Ok(())
}
