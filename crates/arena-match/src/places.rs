//! Places where the arena writes, and files of its that lie in folders of agents: agents find nothing there.
//!
//! A replay or a journal holds seeds and the opponents' actions. With a sandbox these places are hidden in the agent's view of the
//! file system; places that can't be hidden are refused before anything is played.

use std::env;
use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};

use crate::agent::{Agent, Channel, Command};
use crate::launcher::{is_system, is_wide};
use crate::process::SandboxMode;
use crate::tournament;

/// Most entries of one agent's folder that are searched for files of the arena.
const MAX_ENTRIES: usize = 10_000;

/// The beginning of each replay.
const REPLAY: &[u8] = b"{\"arena_replay\"";

/// Names, without numbers at their end, of files that hold a store, in whose folder are its keys and leagues.
const STORE: &str = "arena.sqlite3";

/// A place in which the arena is going to write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place<'a> {
    /// A file, which is written when the agents that could read it are gone.
    File(&'a Path),
    /// A folder with files that are written while agents play.
    Folder(&'a Path),
}

/// A place that can't be kept from an agent. The sentence says which one and what to do.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct OpenPlace(String);

/// Places to hide from these agents, besides their opponents: those in which the arena is going to write, and its files in the folders
/// of the agents.
///
/// # Errors
/// When one of the places can't be hidden from one of the agents.
pub fn private(
    agents: &[Agent],
    expose: &[PathBuf],
    mode: SandboxMode,
    places: &[Place<'_>],
) -> Result<Vec<PathBuf>, OpenPlace> {
    let home = env::home_dir();
    let commands = agents.iter().filter_map(|agent| match &agent.channel {
        Channel::Stdio(command) => Some((agent, command)),
        Channel::Http(_) => None,
    });
    let shown = |command: &Command| {
        let folder = real(&command.folder);
        (!is_wide(&folder, home.as_deref())).then_some(folder)
    };
    let mut hidden = Vec::new();
    for place in places {
        let (Place::File(path) | Place::Folder(path)) = *place;
        let real_path = real(path);
        check(path, &real_path, expose, mode)?;
        for (agent, command) in commands.clone() {
            let folder = shown(command);
            let is_own = command.own.iter().chain([&command.program]).any(|own| real(own) == real_path);
            if is_own || folder.as_ref() == Some(&real_path) {
                return Err(OpenPlace(format!(
                    "{} is the folder, or a file, of the agent {}, which can read what is written there; choose another place",
                    path.display(),
                    agent.name
                )));
            }
            let is_around = command
                .own
                .iter()
                .chain([&command.program, &command.folder])
                .any(|own| real(own).starts_with(&real_path));
            if let Some(exposed) = expose.iter().find(|exposed| is_around && real_path.starts_with(real(exposed))) {
                return Err(OpenPlace(format!(
                    "--expose shows {} to agents, and the agent {} lies in {}, so what is written there can't be hidden; choose another place",
                    exposed.display(),
                    agent.name,
                    path.display()
                )));
            }
            let is_within = folder.as_ref().is_some_and(|folder| real_path.starts_with(folder));
            if mode == SandboxMode::Off && is_within && matches!(place, Place::Folder(_)) {
                return Err(OpenPlace(format!(
                    "{} is in the folder of the agent {}, which can read it without a sandbox; choose a place outside of that folder",
                    path.display(),
                    agent.name
                )));
            }
        }
        hidden.push(real_path);
    }
    let mut folders: Vec<PathBuf> = commands.filter_map(|(_, command)| shown(command)).collect();
    folders.sort();
    folders.dedup();
    hidden.extend(folders.iter().flat_map(|folder| written_before(folder)));
    hidden.extend(own_output().filter(|path| folders.iter().any(|folder| path.starts_with(folder))));
    Ok(hidden)
}

/// The files that our own standard output and error go to: results stand there, with their seeds.
fn own_output() -> impl Iterator<Item = PathBuf> {
    let paths = [1, 2].into_iter().filter_map(|number| fs::read_link(format!("/proc/self/fd/{number}")).ok());
    paths.filter(|path| path.is_file())
}

/// Refuses a place that every agent sees.
fn check(path: &Path, real_path: &Path, expose: &[PathBuf], mode: SandboxMode) -> Result<(), OpenPlace> {
    if let Some(exposed) = expose.iter().find(|exposed| real(exposed) == real_path) {
        return Err(OpenPlace(format!(
            "--expose shows {} to agents, which could read there what is written to {}; choose another place",
            exposed.display(),
            path.display()
        )));
    }
    // A device isn't kept.
    let is_kept = fs::metadata(path).map_or(true, |data| data.is_file() || data.is_dir());
    if mode != SandboxMode::Off && is_kept && is_system(real_path) {
        return Err(OpenPlace(format!(
            "{} is among the programs of the system, which all agents can read; choose another place",
            path.display()
        )));
    }
    Ok(())
}

/// The path without links. What isn't there yet is in a folder that may be.
fn real(path: &Path) -> PathBuf {
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let path = crate::output::end_of_links(&path).unwrap_or(path);
    path.canonicalize().unwrap_or_else(|_| match (path.parent(), path.file_name()) {
        (Some(parent), Some(name)) => real(parent).join(name),
        _ => path,
    })
}

/// Files of the arena in a folder: replays and their logs, tournaments, stores.
fn written_before(root: &Path) -> Vec<PathBuf> {
    let (mut found, mut folders, mut left) = (Vec::new(), vec![root.to_owned()], MAX_ENTRIES);
    while let Some(folder) = folders.pop() {
        let entries: Vec<_> = fs::read_dir(&folder).into_iter().flatten().flatten().take(left).collect();
        left -= entries.len();
        let holds = |name: &str| entries.iter().any(|entry| entry.file_name() == name);
        if folder != root && (holds(tournament::FILE) || holds(STORE)) {
            found.push(folder);
            continue;
        }
        for entry in entries {
            let Ok(kind) = entry.file_type() else { continue };
            let path = entry.path();
            let name = entry.file_name();
            let name = name.to_string_lossy();
            if kind.is_dir() {
                folders.push(path);
            } else if kind.is_file() && (is_log(&name) || name.starts_with(STORE) || is_record(&name, &path)) {
                found.push(path);
            }
        }
    }
    found
}

/// True for `game.seat0.log`, the log of an agent.
fn is_log(name: &str) -> bool {
    let seat = name.strip_suffix(".log").and_then(|name| name.rsplit_once(".seat"));
    seat.is_some_and(|(_, seat)| !seat.is_empty() && seat.bytes().all(|byte| byte.is_ascii_digit()))
}

/// True for a replay, the journal of a tournament, and the transcript of a language model's play.
fn is_record(name: &str, path: &Path) -> bool {
    let mut start = [0; REPLAY.len()];
    name.starts_with(tournament::FILE)
        || name.starts_with("play-") && name.ends_with(".jsonl")
        || name.ends_with(".jsonl")
            && File::open(path).and_then(|mut file| file.read_exact(&mut start)).is_ok()
            && start == *REPLAY
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;

    fn kit() -> (tempfile::TempDir, PathBuf) {
        let kit = tempfile::tempdir().unwrap();
        let root = kit.path().canonicalize().unwrap();
        for (name, text) in [
            ("mine/agent.py", ""),
            ("mine/data.jsonl", "{\"arena\":1}\n"),
            ("mine/old.jsonl", "{\"arena_replay\":1,\"seed\":\"5\"}\n"),
            ("mine/old.seat0.log", "x"),
            ("mine/lib/deep/game.jsonl", "{\"arena_replay\":1}\n"),
            ("mine/lib/a.seat.log", "x"),
            ("mine/cup/tournament.jsonl", "{}\n"),
            ("mine/cup/replays/1.jsonl", "x"),
            ("mine/data/arena.sqlite3", "x"),
            ("mine/data/auth.secret", "x"),
        ] {
            fs::create_dir_all(root.join(name).parent().unwrap()).unwrap();
            fs::write(root.join(name), text).unwrap();
        }
        (kit, root)
    }

    fn agents(root: &Path) -> Vec<Agent> {
        let search = env::var("PATH").unwrap();
        vec![Agent::find(root.join("mine/agent.py").to_str().unwrap(), &search).unwrap()]
    }

    #[test]
    fn what_was_written_into_the_folder_of_an_agent_is_hidden_with_the_places_to_come() {
        let (_kit, root) = kit();
        let place = root.join("mine/new.jsonl");
        let mut hidden =
            private(&agents(&root), &[], SandboxMode::On, &[Place::File(&place), Place::Folder(&root)]).unwrap();
        hidden.sort();
        let names: Vec<_> = hidden.iter().map(|path| path.strip_prefix(&root).unwrap().to_str().unwrap()).collect();
        let expected = ["", "mine/cup", "mine/data", "mine/lib/deep/game.jsonl", "mine/new.jsonl", "mine/old.jsonl"];
        assert_eq!(names, [&expected[..], &["mine/old.seat0.log"]].concat());
    }

    #[track_caller]
    fn refused(place: impl Fn(&Path) -> PathBuf, is_folder: bool, mode: SandboxMode, expected: Expect) {
        let (_kit, root) = kit();
        let path = place(&root);
        let place = if is_folder { Place::Folder(&path) } else { Place::File(&path) };
        let expose = [root.join("mine/lib")];
        let told =
            private(&agents(&root), &expose, mode, &[place]).map_or_else(|error| error.to_string(), |_| String::new());
        expected.assert_eq(&told.replace(root.to_str().unwrap(), "ROOT"));
    }

    #[test]
    fn a_folder_around_an_agent_is_refused_where_it_is_exposed() {
        let (_kit, root) = kit();
        let around = root.parent().unwrap().to_owned();
        let told =
            private(&agents(&root), &[around], SandboxMode::On, &[Place::Folder(&root)]).unwrap_err().to_string();
        assert!(told.starts_with("--expose shows ") && told.contains("the agent agent lies in"), "{told}");
        private(&agents(&root), &[root.join("mine/lib")], SandboxMode::On, &[Place::Folder(&root)]).unwrap();
    }

    #[test]
    fn places_that_cannot_be_hidden_are_refused() {
        let (on, off) = (SandboxMode::On, SandboxMode::Off);
        refused(
            |root| root.join("mine"),
            true,
            on,
            expect![
                "ROOT/mine is the folder, or a file, of the agent agent, which can read what is written there; choose another place"
            ],
        );
        refused(
            |root| root.join("mine/../mine/agent.py"),
            false,
            on,
            expect![
                "ROOT/mine/../mine/agent.py is the folder, or a file, of the agent agent, which can read what is written there; choose another place"
            ],
        );
        refused(
            |root| root.join("mine/lib"),
            true,
            on,
            expect![
                "--expose shows ROOT/mine/lib to agents, which could read there what is written to ROOT/mine/lib; choose another place"
            ],
        );
        refused(
            |_| "/usr/cup".into(),
            true,
            on,
            expect!["/usr/cup is among the programs of the system, which all agents can read; choose another place"],
        );
        refused(|root| root.join("mine/new"), true, on, expect![""]);
        refused(
            |root| root.join("mine/new"),
            true,
            off,
            expect![
                "ROOT/mine/new is in the folder of the agent agent, which can read it without a sandbox; choose a place outside of that folder"
            ],
        );
        // A file gets its name when the agents are gone.
        refused(|root| root.join("mine/new"), false, off, expect![""]);
        refused(|root| root.join("new"), true, off, expect![""]);
        refused(|_| "/dev/null".into(), false, on, expect![""]);
    }
}
