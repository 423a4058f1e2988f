//! Agents as the user names them: the search for an agent's program or address, its manifest, and its
//! command. The modules `process` and `http` start agents.

use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use arena_model::{AgentId, Dialect, Limits, SandboxMode, StartLimits, TimeControl};
use serde::Deserialize;

use crate::kinds::BuiltIn;
use crate::process::Spec;
use crate::python;
use crate::reply::short_label;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Agent {
    /// The agent as the user named it: a path, an address, a built-in agent, or a command line. If a folder's manifest names a
    /// server, the server's address follows the path. Results contain this text as `agent_path`.
    pub path: String,
    /// The default name: the name in the manifest, or that of the file or folder. The agent may send another
    /// name.
    pub name: String,
    /// The id in matches, instead of one from the match's seed.
    pub id: Option<AgentId>,
    /// The version in the manifest, if any.
    pub version: Option<String>,
    /// The keys under which the agent receives the state.
    pub dialect: Dialect,
    pub channel: Channel,
    /// The agent's own time control, which replaces the limits of the match.
    pub time_control: Option<TimeControl>,
    /// The agent's own limits of its first answers.
    pub start_limits: StartLimits,
    /// A note for the user about ignored keys of the agent's manifest.
    pub note: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Channel {
    /// A child process that reads messages from stdin and writes answers to stdout.
    Stdio(Command),
    /// The address of an HTTP server that gets a POST request for each message.
    Http(String),
    /// An agent that this program plays itself, perhaps by driving a program.
    BuiltIn(BuiltIn),
}

impl Channel {
    /// Returns the command of the process that the agent runs in the sandbox, if there is one.
    pub fn command(&self) -> Option<&Command> {
        match self {
            Channel::Stdio(command) => Some(command),
            Channel::BuiltIn(agent) => agent.command(),
            Channel::Http(_) => None,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Command {
    /// The program, as an absolute path.
    pub program: PathBuf,
    pub args: Vec<OsString>,
    /// The agent's own folder, which it may read.
    pub folder: PathBuf,
    /// The files and folders of the agent that the user named. Opponents can't see them.
    pub own: Vec<PathBuf>,
}

/// The error for a text that names no usable agent, as shown to the user.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct AgentError(String);

/// The content of `manifest.json` in an agent's folder. Unknown keys are ignored. Several single-file agents
/// may share a folder, so the manifest's name and channel apply only if the agent is the folder itself.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Manifest {
    name: Option<String>,
    version: Option<String>,
    dialect: Option<Dialect>,
    channel: Option<ChannelName>,
    url: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum ChannelName {
    Stdio,
    Http,
}

/// The names of the file that starts a folder's agent, in the order of the search.
const IN_FOLDER: [&str; 3] = ["agent", "agent.py", "agent.js"];

/// The interpreters of files that aren't executable, by suffix.
const INTERPRETERS: [(&str, &str); 3] = [("py", "python3"), ("js", "node"), ("mjs", "node")];

impl Agent {
    /// Finds the agent at a path or an address, a built-in one, or a Python function. `search` is the value of `PATH`, for the
    /// interpreters of scripts.
    ///
    /// # Errors
    /// If there is no agent or it can't be run. The message contains the remedy.
    pub fn find(text: &str, search: &str) -> Result<Agent, AgentError> {
        if text.starts_with("http://") || text.starts_with("https://") {
            let name = text.split_once("://").map_or(text, |(_, rest)| rest).trim_end_matches('/');
            return Ok(Agent::new(text, name, Channel::Http(text.to_owned())));
        }
        let path = Path::new(text);
        // An existing file wins over a built-in agent of the same name.
        if let Some(built_in) = BuiltIn::parse(text, search).filter(|_| !path.exists()) {
            let built_in = built_in.map_err(AgentError)?;
            let (time_control, start_limits) = (built_in.time_control(), built_in.start_limits());
            let agent = Agent::new(text, text, Channel::BuiltIn(built_in));
            return Ok(Agent { time_control, start_limits, ..agent });
        }
        if let Some(found) = python::find(text, search).filter(|_| !path.exists()) {
            return found.map_err(AgentError);
        }
        let path = resolve(text)?;
        let is_folder = path.is_dir();
        let (folder, name) = match is_folder {
            true => (path.clone(), path.file_name()),
            false => (path.parent().unwrap_or(Path::new("/")).to_owned(), path.file_stem()),
        };
        let name = name.map_or_else(|| text.to_owned(), |name| name.to_string_lossy().into_owned());
        let manifest = Manifest::beside(&folder)?;
        let is_http = manifest.channel == Some(ChannelName::Http);
        let channel = match (is_http && is_folder, manifest.url.clone()) {
            (true, Some(url)) => Channel::Http(url),
            (true, None) => {
                return Err(AgentError(format!(
                    "{}: the channel is http, but `url` is missing",
                    folder.join("manifest.json").display()
                )));
            }
            (false, _) => Channel::Stdio(Command::of(text, &path, &folder, is_folder, search)?),
        };
        let note = manifest.unheeded(&folder).filter(|_| !is_folder);
        let path = match &channel {
            Channel::Http(url) => format!("{text} ({url})"),
            Channel::Stdio(_) | Channel::BuiltIn(_) => text.to_owned(),
        };
        let (name, dialect) =
            (manifest.name.filter(|_| is_folder).unwrap_or(name), manifest.dialect.unwrap_or_default());
        Ok(Agent { version: manifest.version, dialect, note, ..Agent::new(path, name, channel) })
    }

    /// Creates an agent without own limits, in the default dialect.
    pub fn new(path: impl Into<String>, name: impl Into<String>, channel: Channel) -> Agent {
        Agent {
            path: path.into(),
            name: name.into(),
            id: None,
            version: None,
            dialect: Dialect::default(),
            channel,
            time_control: None,
            start_limits: StartLimits::default(),
            note: None,
        }
    }

    /// Returns the agent that a command line starts. `words` are a program and its arguments. Agents run in a
    /// scratch folder, so arguments that name a file become absolute paths. The folder of the first such file
    /// is the agent's folder.
    ///
    /// # Errors
    /// If the program doesn't exist.
    pub fn command(words: &[String], search: &str) -> Result<Agent, AgentError> {
        let Some((program, args)) = words.split_first() else {
            return Err(AgentError("a command line for an agent is empty".to_owned()));
        };
        let found = which(program, search)
            .ok_or_else(|| AgentError(format!("there is no program `{program}` to run an agent with")))?;
        let mut folder = None;
        let args: Vec<OsString> = args
            .iter()
            .map(|arg| match Path::new(arg).canonicalize() {
                Ok(path) if !arg.starts_with('-') && path.is_file() => {
                    folder = folder.take().or_else(|| path.parent().map(Path::to_owned));
                    path.into_os_string()
                }
                _ => arg.into(),
            })
            .collect();
        let by_path = program.contains('/').then(|| found.canonicalize().ok()).flatten();
        let files = args.iter().map(PathBuf::from).filter(|path| path.is_absolute() && path.is_file());
        let own = by_path.into_iter().chain(files).collect();
        let script = args.iter().find_map(|arg| Path::new(arg).file_stem().filter(|_| Path::new(arg).is_absolute()));
        let name =
            script.or(found.file_stem()).map_or_else(|| program.clone(), |name| name.to_string_lossy().into_owned());
        let folder = folder.or_else(|| found.parent().map(Path::to_owned)).unwrap_or_else(|| PathBuf::from("/"));
        let manifest = Manifest::beside(&folder)?;
        Ok(Agent {
            note: manifest.unheeded(&folder),
            version: manifest.version,
            dialect: manifest.dialect.unwrap_or_default(),
            ..Agent::new(words.join(" "), name, Channel::Stdio(Command { program: found, args, folder, own }))
        })
    }
}

impl Manifest {
    /// Reads the manifest in a folder, or returns an empty one if there is none.
    fn beside(folder: &Path) -> Result<Manifest, AgentError> {
        let path = folder.join("manifest.json");
        let text = match fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Manifest::default()),
            Err(error) => return Err(AgentError(format!("{} cannot be read: {error}", path.display()))),
        };
        let manifest: Manifest =
            serde_json::from_str(&text).map_err(|error| AgentError(format!("{}: {error}", path.display())))?;
        let short = |text: Option<String>| text.as_deref().and_then(short_label);
        Ok(Manifest { name: short(manifest.name), version: short(manifest.version), ..manifest })
    }

    /// Returns a note on the ignored keys of this manifest, for an agent that is a file in `folder` and not
    /// the folder itself.
    fn unheeded(&self, folder: &Path) -> Option<String> {
        (self.channel == Some(ChannelName::Http)).then(|| {
            format!(
                "{} sets the channel to http, which applies only to the folder as an agent, not to a file in it",
                folder.join("manifest.json").display()
            )
        })
    }
}

impl Command {
    /// Returns the specification of the command's process with these sandbox settings.
    pub(crate) fn spec(&self, expose: &[PathBuf], hidden: Vec<PathBuf>, sandbox: SandboxMode, limits: Limits) -> Spec {
        Spec {
            program: self.program.clone(),
            args: self.args.clone(),
            folder: self.folder.clone(),
            env: Vec::new(),
            expose: expose.to_vec(),
            hidden,
            sandbox,
            limits,
            setup: None,
        }
    }

    /// Returns the command of the program at a path: an executable, a script, or a folder.
    ///
    /// # Errors
    /// As [`Agent::find`].
    pub(crate) fn at(text: &str, search: &str) -> Result<Command, AgentError> {
        let path = resolve(text)?;
        let (is_folder, parent) = (path.is_dir(), path.parent().unwrap_or(Path::new("/")));
        Command::of(text, &path, if is_folder { &path } else { parent }, is_folder, search)
    }

    /// Returns the command of the agent at `path`, which the user named `text`.
    fn of(text: &str, path: &Path, folder: &Path, is_folder: bool, search: &str) -> Result<Command, AgentError> {
        let file = match is_folder {
            false => path.to_owned(),
            true => {
                let found = IN_FOLDER.iter().map(|name| folder.join(name)).find(|path| path.is_file());
                found.ok_or_else(|| {
                    AgentError(format!(
                        "the folder {text} contains no agent: no file `agent`, `agent.py` or `agent.js`"
                    ))
                })?
            }
        };
        let mode = fs::metadata(&file).map_or(0, |metadata| metadata.permissions().mode());
        let ending = file.extension().and_then(|ending| ending.to_str()).unwrap_or_default();
        let interpreter = INTERPRETERS.iter().find(|(known, _)| *known == ending).map(|(_, program)| *program);
        let mut own = vec![path.to_owned()];
        own.extend(is_folder.then(|| file.clone()));
        match (mode & 0o111 != 0, interpreter) {
            (true, _) => Ok(Command { program: file, args: Vec::new(), folder: folder.to_owned(), own }),
            (false, Some(interpreter)) => {
                let program = which(interpreter, search).ok_or_else(|| {
                    AgentError(format!("{text} needs `{interpreter}`, and there is no such program in PATH"))
                })?;
                Ok(Command { program, args: vec![file.into_os_string()], folder: folder.to_owned(), own })
            }
            (false, None) => Err(AgentError(format!("{} isn't executable (run chmod +x)", file.display()))),
        }
    }
}

/// Returns the absolute path of the agent at `text`, without symbolic links.
fn resolve(text: &str) -> Result<PathBuf, AgentError> {
    Path::new(text).canonicalize().map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => AgentError(format!("there is no agent at {text}")),
        _ => AgentError(format!("the agent at {text} cannot be read: {error}")),
    })
}

/// Finds a program by its path, or by its name in the folders of `search`, the value of `PATH`.
pub fn which(program: &str, search: &str) -> Option<PathBuf> {
    let is_program = |path: &PathBuf| {
        fs::metadata(path).is_ok_and(|metadata| metadata.is_file() && metadata.permissions().mode() & 0o111 != 0)
    };
    if program.contains('/') {
        return std::path::absolute(program).ok().filter(is_program);
    }
    search
        .split(':')
        .filter(|folder| folder.starts_with('/'))
        .map(|folder| Path::new(folder).join(program))
        .find(is_program)
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    fn kit() -> tempfile::TempDir {
        let kit = tempfile::tempdir().unwrap();
        let put = |path: &str, text: &str, mode: u32| {
            let path = kit.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(&path, text).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        };
        put("bot", "", 0o755);
        put("bot.py", "", 0o644);
        put("notes.txt", "", 0o644);
        put("native/agent", "", 0o755);
        put("script/agent.py", "", 0o644);
        put("script/manifest.json", r#"{"dialect": "flat", "name": "Script", "version": "2", "author": "x"}"#, 0o644);
        put("far/manifest.json", r#"{"channel": "http", "url": "http://127.0.0.1:9/x"}"#, 0o644);
        put("far/bot", "", 0o755);
        put("nowhere/manifest.json", r#"{"channel": "http"}"#, 0o644);
        put("wrong/agent", "", 0o755);
        put("wrong/manifest.json", r#"{"dialect": "klingon"}"#, 0o644);
        put("empty/readme", "", 0o644);
        put("bin/python3", "", 0o755);
        kit
    }

    /// Returns a line for each name: the agent that it finds, or the error.
    fn found(names: &[&str]) -> String {
        let kit = kit();
        let root = kit.path().canonicalize().unwrap();
        let root = root.to_str().unwrap();
        let line = |name: &&str| {
            let named = if name.contains("://") { (*name).to_owned() } else { format!("{root}/{name}") };
            let found = match Agent::find(&named, &format!("relative:{root}/bin")) {
                Ok(Agent { path, name, version, dialect, channel, note, .. }) => {
                    let path = if path == named { String::new() } else { format!("{path}: ") };
                    let note = note.map(|note| format!("; note: {note}")).unwrap_or_default();
                    format!("{path}{name} {version:?} {dialect:?} {channel:?}{note}")
                }
                Err(error) => format!("error: {error}"),
            };
            format!("{name} => {}\n", found.replace(root, "ROOT"))
        };
        names.iter().map(line).collect()
    }

    #[test]
    fn files_folders_and_addresses_are_agents() {
        // The manifest in `far` applies to its folder, not to the files in it.
        let names = ["bot", "bot.py", "native", "script", "far", "far/bot", "http://127.0.0.1:9/"];
        expect![[r#"
            bot => bot None Both Stdio(Command { program: "ROOT/bot", args: [], folder: "ROOT", own: ["ROOT/bot"] })
            bot.py => bot None Both Stdio(Command { program: "ROOT/bin/python3", args: ["ROOT/bot.py"], folder: "ROOT", own: ["ROOT/bot.py"] })
            native => native None Both Stdio(Command { program: "ROOT/native/agent", args: [], folder: "ROOT/native", own: ["ROOT/native", "ROOT/native/agent"] })
            script => Script Some("2") Flat Stdio(Command { program: "ROOT/bin/python3", args: ["ROOT/script/agent.py"], folder: "ROOT/script", own: ["ROOT/script", "ROOT/script/agent.py"] })
            far => ROOT/far (http://127.0.0.1:9/x): far None Both Http("http://127.0.0.1:9/x")
            far/bot => bot None Both Stdio(Command { program: "ROOT/far/bot", args: [], folder: "ROOT/far", own: ["ROOT/far/bot"] }); note: ROOT/far/manifest.json sets the channel to http, which applies only to the folder as an agent, not to a file in it
            http://127.0.0.1:9/ => 127.0.0.1:9 None Both Http("http://127.0.0.1:9/")
        "#]].assert_eq(&found(&names));
    }

    #[test]
    fn what_is_no_agent_is_told_in_a_sentence() {
        expect![[r#"
            absent => error: there is no agent at ROOT/absent
            notes.txt => error: ROOT/notes.txt isn't executable (run chmod +x)
            empty => error: the folder ROOT/empty contains no agent: no file `agent`, `agent.py` or `agent.js`
            wrong => error: ROOT/wrong/manifest.json: unknown variant `klingon`, expected one of `both`, `spec`, `flat` at line 1 column 21
            nowhere => error: ROOT/nowhere/manifest.json: the channel is http, but `url` is missing
        "#]].assert_eq(&found(&["absent", "notes.txt", "empty", "wrong", "nowhere"]));
    }

    #[test]
    fn a_command_line_is_an_agent() {
        let kit = kit();
        let root = kit.path().canonicalize().unwrap();
        let words = ["python3", "-u", root.join("bot.py").to_str().unwrap(), "--level=3"].map(str::to_owned);
        let search = root.join("bin");
        let agent = Agent::command(&words, search.to_str().unwrap()).unwrap();
        let command = Command {
            program: root.join("bin/python3"),
            args: ["-u".into(), root.join("bot.py").into_os_string(), "--level=3".into()].into(),
            folder: root.clone(),
            own: vec![root.join("bot.py")],
        };
        assert_eq!((agent.name.as_str(), &agent.channel), ("bot", &Channel::Stdio(command)));
        assert_eq!(agent.note, None);
        let words = [root.join("far/bot").to_str().unwrap().to_owned()];
        let agent = Agent::command(&words, "").unwrap();
        assert!(matches!(agent.channel, Channel::Stdio(_)) && agent.note.is_some(), "{:?}", agent.note);
        let error = Agent::command(&["python9".to_owned()], search.to_str().unwrap()).unwrap_err();
        expect!["there is no program `python9` to run an agent with"].assert_eq(&error.to_string());
    }
}
