//! Programs as baselines: their files, their identity and their sandbox.

use std::env;
use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;

use arena_match::{
    Agent, Channel, Confinement, Launcher, Limits, OutputPath, SandboxMode, absolute_function, fingerprint, private,
};
use serde_json::json;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::BaselineSpec;
use crate::plan::hash_of;
use crate::run_file::is_url;

/// The hidden command that runs the program `arena` as the launcher of an agent.
const LAUNCHER: &str = "launch-agent";

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

/// A program that plays in this invocation of a run.
pub(crate) struct ProgramAgent {
    /// The name in tables.
    pub(crate) name: String,
    pub(crate) agent: Agent,
    pub(crate) confinement: Confinement,
    slots: Arc<ProgramSlots>,
    files: Vec<PathBuf>,
    /// The stamp of the files at the start of this invocation.
    stamp: u64,
}

/// The limit of programs that run at the same time.
#[derive(Debug)]
pub(crate) struct ProgramSlots {
    semaphore: Arc<Semaphore>,
    most: u32,
}

impl ProgramSlots {
    pub(crate) fn new(most: usize) -> ProgramSlots {
        let most = u32::try_from(most.max(1)).unwrap_or(u32::MAX >> 8);
        ProgramSlots { semaphore: Arc::new(Semaphore::new(most as usize)), most }
    }

    /// Waits until as many programs of a game may run, and returns the permit of the game. A game with more programs
    /// than the limit runs alone.
    pub(crate) async fn take(&self, programs: usize) -> Option<Arc<OwnedSemaphorePermit>> {
        let count = u32::try_from(programs).unwrap_or(u32::MAX).min(self.most);
        // All permits of a game are taken at once, since games that wait for each other's permits would never go on.
        Arc::clone(&self.semaphore).acquire_many_owned(count).await.ok().map(Arc::new)
    }
}

impl ProgramAgent {
    /// Finds these baselines, which are programs. `dir` is the folder of the run, which the sandbox hides from them.
    ///
    /// # Errors
    /// The name of a baseline that can't be played, and the reason in one sentence.
    pub(crate) fn find_all(baselines: &[&BaselineSpec], dir: &Path) -> Result<Vec<ProgramAgent>, (String, String)> {
        let processors = thread::available_parallelism().map_or(1, NonZero::get);
        let slots = Arc::new(ProgramSlots::new(processors));
        let mut programs = Vec::new();
        for baseline in baselines {
            let found = ProgramAgent::find(baseline, dir, &slots);
            programs.push(found.map_err(|why| (baseline.name().to_owned(), why))?);
        }
        // Programs can't read each other's files.
        let own: Vec<Vec<PathBuf>> = programs.iter().map(|program| own_paths(&program.agent).to_vec()).collect();
        for (at, program) in programs.iter_mut().enumerate() {
            let others = own.iter().flatten().filter(|path| !own[at].contains(path));
            program.confinement.private.extend(others.cloned());
        }
        Ok(programs)
    }

    fn find(baseline: &BaselineSpec, dir: &Path, slots: &Arc<ProgramSlots>) -> Result<ProgramAgent, String> {
        let agent = find(baseline)?;
        let mode = SandboxMode::On;
        let hidden = private(std::slice::from_ref(&agent), &[], mode, &[OutputPath::Folder(dir)]);
        let confinement = Confinement {
            launcher: Launcher::this_program(LAUNCHER),
            mode,
            limits: Limits::default(),
            expose: Vec::new(),
            private: hidden.map_err(|error| error.to_string())?,
            public_only: false,
        };
        let files = files(baseline, &agent);
        let stamp = stamp(&files)?;
        let name = baseline.name().to_owned();
        Ok(ProgramAgent { name, agent, confinement, slots: Arc::clone(slots), files, stamp })
    }

    pub(crate) fn slots(&self) -> &ProgramSlots {
        &self.slots
    }

    /// Checks that the files are those of the start.
    ///
    /// # Errors
    /// If they have changed, as one sentence.
    pub(crate) fn check_files(&self) -> Result<(), String> {
        match stamp(&self.files) {
            Ok(stamp) if stamp == self.stamp => Ok(()),
            _ => Err(format!("the files of the program {} have changed during the run", self.name)),
        }
    }
}

fn stamp(files: &[PathBuf]) -> Result<u64, String> {
    fingerprint::stamp(files, Path::new(""))
        .map_err(|(path, error)| format!("{} cannot be read: {error}", path.display()))
}

fn own_paths(agent: &Agent) -> &[PathBuf] {
    agent.channel.command().map_or(&[], |command| command.own.as_slice())
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

    #[tokio::test]
    async fn a_game_takes_all_its_permits_at_once() {
        let slots = ProgramSlots::new(2);
        // More programs than permits run alone.
        let all = slots.take(5).await.unwrap();
        assert_eq!(slots.semaphore.available_permits(), 0);
        drop(all);
        let one = slots.take(1).await.unwrap();
        assert_eq!(slots.semaphore.available_permits(), 1);
        let waits = tokio::time::timeout(std::time::Duration::from_millis(20), slots.take(2)).await;
        assert!(waits.is_err());
        drop(one);
        assert!(slots.take(2).await.is_some());
    }
}
