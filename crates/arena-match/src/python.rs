//! Python functions as agents: `py:bots/greedy.py:agent`, and `py:package.module:agent` for a module of a package.
//!
//! Such an agent is a process: Python with the program `arena_agents/functions.py` of `clients/python`, which is part
//! of this binary. The program is an argument, so the agent needs no file besides the function's.

use std::path::{Path, PathBuf};

use arena_model::Dialect;

use crate::agent::{Agent, Channel, Command, which};

/// The beginning of the name of a Python function.
const PREFIX: &str = "py:";

/// Loads a function and plays with it. Arguments: the file, the module, the function and the agent's name.
const PROGRAM: &str = include_str!("../../../clients/python/src/arena_agents/functions.py");

#[derive(Debug, PartialEq, Eq)]
struct FunctionName<'a> {
    /// The path of a file that ends in `.py`, or a folder and a module, such as `bots/package.module`.
    path: &'a str,
    /// The function; empty if the last callable of the file plays.
    function: &'a str,
}

impl FunctionName<'_> {
    fn parse(text: &str) -> Option<FunctionName<'_>> {
        let rest = text.strip_prefix(PREFIX)?;
        let (path, function) = rest.rsplit_once(':').unwrap_or((rest, ""));
        Some(FunctionName { path, function })
    }
}

/// Returns `None` if the text doesn't begin with `py:`. `search` is the value of `PATH`.
pub fn find(text: &str, search: &str) -> Option<Result<Agent, String>> {
    FunctionName::parse(text).map(|name| name.find(text, search))
}

/// Returns `None` if the text doesn't begin with `py:`. `base` is the folder for relative paths.
pub fn absolute(text: &str, base: &Path) -> Option<String> {
    let name = FunctionName::parse(text)?;
    let path = base.join(name.path);
    let path = std::path::absolute(&path).unwrap_or(path);
    let function = if name.function.is_empty() { String::new() } else { format!(":{}", name.function) };
    Some(format!("{PREFIX}{}{function}", path.display()))
}

impl FunctionName<'_> {
    fn find(&self, text: &str, search: &str) -> Result<Agent, String> {
        let is_identifier = |part: &str| {
            part.chars().all(|char| char.is_alphanumeric() || char == '_')
                && !part.starts_with(|char: char| char.is_ascii_digit())
        };
        if self.path.is_empty() || !self.function.split('.').all(is_identifier) {
            return Err(format!("`{text}` names no Python function; write py:FILE.py:FUNCTION or py:MODULE:FUNCTION"));
        }
        let source = Source::find(Path::new(self.path))?;
        let program = which("python3", search)
            .ok_or_else(|| format!("{text} needs `python3`, and there is no such program in PATH"))?;
        let stem = source.module.rsplit('.').next().filter(|module| !module.is_empty()).map(str::to_owned);
        let stem = stem.or_else(|| Some(source.file.file_stem()?.to_string_lossy().into_owned())).unwrap_or_default();
        let name = match self.function {
            "" | "agent" => stem,
            function => format!("{stem}.{function}"),
        };
        let args = ["-c".into(), PROGRAM.into(), source.file.into_os_string(), source.module.into()];
        let args = args.into_iter().chain([self.function.into(), name.clone().into()]).collect();
        let command = Command { program, args, folder: source.folder, own: vec![source.own] };
        // The program reads the state once.
        Ok(Agent { dialect: Dialect::Spec, ..Agent::new(text, name, Channel::Stdio(command)) })
    }
}

/// The place of a function's code.
#[derive(Debug)]
struct Source {
    file: PathBuf,
    /// The name under which Python imports the file; empty for a file outside of packages.
    module: String,
    /// The folder from which the function's modules are imported.
    folder: PathBuf,
    /// The file, or the folder of the package.
    own: PathBuf,
}

impl Source {
    fn find(path: &Path) -> Result<Source, String> {
        let absent = |path: &Path| format!("there is no Python file {}", path.display());
        let parent = |path: &Path| path.parent().unwrap_or(Path::new("/")).to_owned();
        if path.extension().is_some_and(|ending| ending == "py") {
            let file = path.canonicalize().ok().filter(|file| file.is_file()).ok_or_else(|| absent(path))?;
            return Ok(Source { module: String::new(), folder: parent(&file), own: file.clone(), file });
        }
        let folder = path.parent().filter(|folder| *folder != Path::new("")).unwrap_or(Path::new("."));
        let module = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let place = folder.join(module.replace('.', "/"));
        let (plain, package) = (place.with_added_extension("py"), place.join("__init__.py"));
        let file =
            [&package, &plain].into_iter().find_map(|file| file.canonicalize().ok().filter(|file| file.is_file()));
        let file =
            file.ok_or_else(|| format!("{}, nor {}, for the module `{module}`", absent(&plain), package.display()))?;
        let folder = folder.canonicalize().map_err(|error| format!("{}: {error}", folder.display()))?;
        let first = module.split('.').next().unwrap_or_default();
        let own = if folder.join(first).is_dir() && file.starts_with(folder.join(first)) {
            folder.join(first)
        } else {
            file.clone()
        };
        Ok(Source { file, module, folder, own })
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use expect_test::expect_file;

    use super::*;

    /// Creates a folder with Python files.
    fn kit() -> tempfile::TempDir {
        let kit = tempfile::tempdir().unwrap();
        for file in ["bot.py", "pack/__init__.py", "pack/mod.py", "plain/mod.py", "notes.txt"] {
            let path = kit.path().join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "").unwrap();
        }
        fs::create_dir(kit.path().join("bin")).unwrap();
        let python = kit.path().join("bin/python3");
        fs::write(&python, "").unwrap();
        fs::set_permissions(python, fs::Permissions::from_mode(0o755)).unwrap();
        kit
    }

    /// Returns a line for each name: the agent that it finds, or the error.
    fn found(names: &[&str]) -> String {
        let kit = kit();
        let root = kit.path().canonicalize().unwrap();
        let root = root.to_str().unwrap();
        let line = |named: &&str| {
            let found = match find(&format!("py:{root}/{named}"), &format!("{root}/bin")).unwrap() {
                Ok(Agent { name, channel: Channel::Stdio(command), .. }) => {
                    assert_eq!(command.args[1], PROGRAM);
                    format!("{name}: {:?} in {:?}, own {:?}", &command.args[2..], command.folder, command.own)
                }
                Ok(agent) => panic!("{agent:?}"),
                Err(error) => format!("error: {error}"),
            };
            format!("{named} => {}\n", found.replace(root, "ROOT"))
        };
        names.iter().map(line).collect()
    }

    #[test]
    fn files_and_modules_have_functions() {
        let names = [
            "bot.py",
            "bot.py:agent",
            "bot.py:Team.left",
            "bot:agent",
            "pack:agent",
            "pack.mod:agent",
            "plain.mod:play",
            "absent.py:agent",
            "pack.absent:agent",
            "bot.py:not a name",
        ];
        expect_file!["python/files_and_modules_have_functions.txt"].assert_eq(&found(&names));
        assert!(find("bot.py", "").is_none());
    }

    #[test]
    fn relative_names_become_absolute() {
        let absolute = |text: &str| absolute(text, Path::new("/base"));
        assert_eq!(absolute("py:bots/a.py:f").as_deref(), Some("py:/base/bots/a.py:f"));
        assert_eq!(absolute("py:pack.mod").as_deref(), Some("py:/base/pack.mod"));
        assert_eq!(absolute("./a.py"), None);
    }
}
