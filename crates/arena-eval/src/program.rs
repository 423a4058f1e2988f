//! Programs as baselines: their files and their identity.

use std::env;
use std::path::{Path, PathBuf};

use arena_match::{Agent, Channel, absolute_function, fingerprint};
use arena_players::{FoundProgram, ProgramAgent};
use serde_json::json;

use crate::BaselineSpec;
use crate::hash::hash_of;
use crate::run_file::is_url;

/// Makes the paths of a program absolute. `base` is the folder for relative paths.
pub(crate) fn resolve(baseline: &mut BaselineSpec, base: &Path) {
    let absolute = |word: &str| {
        let path = base.join(word);
        std::path::absolute(&path).unwrap_or(path).to_string_lossy().into_owned()
    };
    if let Some(function) = absolute_function(&baseline.agent, base) {
        baseline.agent = function;
    } else if !baseline.agent.is_empty() && !is_url(&baseline.agent) {
        baseline.agent = absolute(&baseline.agent);
    }
    for (place, word) in baseline.command.iter_mut().enumerate() {
        // A program without a slash is found in PATH.
        let is_path = match place {
            0 => word.contains('/'),
            _ => !word.starts_with('-') && base.join(&*word).is_file(),
        };
        if is_path {
            *word = absolute(word);
        }
    }
}

/// Returns the identity of a program: the SHA-256 over its files and arguments, in hexadecimal. For an agent at a URL,
/// the hash covers the URL.
///
/// # Errors
/// If the program or a file is missing, as one sentence.
pub(crate) fn identity(baseline: &BaselineSpec) -> Result<String, String> {
    let agent = find(baseline)?;
    let files = files(baseline, &agent);
    let sha256 = match files.is_empty() {
        true => None,
        false => Some(
            fingerprint::of(&files, Path::new(""))
                .map_err(|(path, error)| format!("{} cannot be read: {error}", path.display()))?,
        ),
    };
    // The place of the files doesn't matter.
    let function = baseline.agent.rsplit_once(':').filter(|_| is_function(baseline)).map(|(_, name)| name.to_owned());
    let words: Vec<String> = baseline
        .command
        .iter()
        .map(|word| match Path::new(word).file_name() {
            Some(name) if Path::new(word).is_absolute() => name.to_string_lossy().into_owned(),
            _ => word.clone(),
        })
        .chain(function)
        .collect();
    let url = is_url(&baseline.agent).then_some(&baseline.agent);
    Ok(hash_of(&json!({ "kind": "program", "files": sha256, "command": words, "url": url })))
}

fn find(baseline: &BaselineSpec) -> Result<Agent, String> {
    let search = env::var("PATH").unwrap_or_default();
    let found = match &baseline.command[..] {
        [] => Agent::find(&baseline.agent, &search),
        words => Agent::command(words, &search),
    };
    found.map_err(|error| error.to_string())
}

fn is_function(baseline: &BaselineSpec) -> bool {
    absolute_function(&baseline.agent, Path::new("")).is_some()
}

/// Returns the files that make up a program: the file or folder in the run file, else the files in the command line,
/// else the program itself. An interpreter isn't part of it.
fn files(baseline: &BaselineSpec, agent: &Agent) -> Vec<PathBuf> {
    let Channel::Stdio(command) = &agent.channel else { return Vec::new() };
    if is_function(baseline) {
        return command.own.clone();
    }
    if baseline.command.is_empty() {
        let path = Path::new(&baseline.agent);
        return vec![path.canonicalize().unwrap_or_else(|_| path.to_owned())];
    }
    let args = command.args.iter().map(PathBuf::from);
    let named: Vec<PathBuf> = args.filter(|arg| arg.is_absolute() && arg.is_file()).collect();
    if named.is_empty() { vec![command.program.clone()] } else { named }
}

/// Finds these baselines, which are programs. `dir` is the folder of the run, which the sandbox hides from them.
///
/// # Errors
/// The name of a baseline that can't be played, and the reason in one sentence.
pub(crate) fn find_all(baselines: &[&BaselineSpec], dir: &Path) -> Result<Vec<ProgramAgent>, (String, String)> {
    let mut found = Vec::new();
    for baseline in baselines {
        let name = baseline.name().to_owned();
        let agent = find(baseline).map_err(|why| (name.clone(), why))?;
        found.push(FoundProgram { name, files: files(baseline, &agent), agent });
    }
    ProgramAgent::prepare_all(found, dir)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn baseline(agent: &str, command: &[&str]) -> BaselineSpec {
        let command = command.iter().map(|word| (*word).to_owned()).collect();
        BaselineSpec { agent: agent.to_owned(), command, name: None, usd_per_million: None }
    }

    #[test]
    fn paths_are_relative_to_the_run_file() {
        let folder = tempfile::tempdir().unwrap();
        let base = folder.path();
        fs::write(base.join("bot.py"), "").unwrap();
        let path = |name: &str| base.join(name).to_str().unwrap().to_owned();
        let mut program = baseline("./bots/a", &[]);
        resolve(&mut program, base);
        assert_eq!(program.agent, path("bots/a"));
        let mut url = baseline("http://127.0.0.1:1/", &[]);
        resolve(&mut url, base);
        assert_eq!(url, baseline("http://127.0.0.1:1/", &[]));
        let mut command = baseline("", &["python3", "-u", "bot.py", "other.py", "--level=3"]);
        resolve(&mut command, base);
        assert_eq!(command.command, ["python3", "-u", &path("bot.py"), "other.py", "--level=3"]);
        let mut own = baseline("", &["./bot", "x"]);
        resolve(&mut own, base);
        assert_eq!(own.command, [path("bot"), "x".to_owned()]);
    }

    #[test]
    fn the_identity_covers_files_and_arguments_but_not_their_place() {
        let (one, two) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let write = |folder: &Path, text: &str| fs::write(folder.join("bot.py"), text).unwrap();
        write(one.path(), "1");
        write(two.path(), "1");
        let identity_in = |base: &Path, level: &str| {
            let mut baseline = baseline("", &["sh", "bot.py", level]);
            resolve(&mut baseline, base);
            identity(&baseline).unwrap()
        };
        let first = identity_in(one.path(), "3");
        assert_eq!(identity_in(two.path(), "3"), first);
        assert_ne!(identity_in(two.path(), "4"), first);
        write(two.path(), "2");
        assert_ne!(identity_in(two.path(), "3"), first);
        let url = |url: &str| identity(&baseline(url, &[])).unwrap();
        assert_ne!(url("http://127.0.0.1:1/"), url("http://127.0.0.1:2/"));
        assert!(identity(&baseline("/nowhere/bot", &[])).unwrap_err().contains("there is no agent at /nowhere/bot"));
    }
}
