//! The paths that the sandbox must hide from agents: the files and folders that the arena will write, and
//! earlier output of the arena in the agents' folders.
//!
//! Replays and journals contain seeds and the opponents' actions, so an agent that could read them could
//! cheat. If a path can't be hidden, the arena reports an error before the first match.

use std::env;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use arena_sandbox::launcher::{AgentView, is_system, is_wide};

use crate::agent::{Agent, Command};
use crate::process::{Limits, SandboxMode};

/// Maximum number of entries in an agent's folder that are searched for output of the arena. A search of a
/// million entries takes some seconds.
const MAX_ENTRIES: usize = 1_000_000;

/// Minimum number of arena files for hiding a whole folder instead of each file. The folder must contain no
/// other files.
const MANY: usize = 64;

pub const JOURNAL: &str = "tournament.jsonl";

/// First bytes of replays, journals and transcripts of language models, including earlier versions.
const HEADS: [&[u8]; 5] = [
    b"{\"arena_replay\"",
    b"{\"arena_tournament\"",
    b"{\"arena_transcript\"",
    b"{\"api\":\"openai\",\"api_base\"",
    b"{\"api\":\"anthropic\",\"api_base\"",
];

/// The name of a store's database. SQLite's companion files add a suffix to this name. The store's folder
/// also contains keys.
const STORE: &str = "arena.sqlite3";

/// First bytes of SQLite's files: the database, its write-ahead log in either byte order, the index of that
/// log, and the rollback journal.
const SQLITE: [&[u8]; 5] = [
    b"SQLite format 3\0",
    b"\x37\x7f\x06\x82",
    b"\x37\x7f\x06\x83",
    b"\x18\xe2\x2d\x00",
    b"\xd9\xd5\x05\xf9\x20\xa1\x63\xd7",
];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OutputPath<'a> {
    /// A file that the arena writes after the agents that could read it have ended.
    File(&'a Path),
    /// A folder into which the arena writes while agents play.
    Folder(&'a Path),
}

/// The error for an output path that can't be hidden from an agent, as shown to the user.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ExposedOutput(String);

/// Returns the paths to hide from these agents: the arena's output paths, and its earlier output in the agents'
/// folders. Opponents' files aren't included.
///
/// # Errors
/// If a path can't be hidden from an agent.
pub fn private(
    agents: &[Agent],
    expose: &[PathBuf],
    mode: SandboxMode,
    outputs: &[OutputPath<'_>],
) -> Result<Vec<PathBuf>, ExposedOutput> {
    let home = env::home_dir();
    let commands = agents.iter().filter_map(|agent| Some((agent, agent.channel.command()?)));
    let shown = |command: &Command| {
        let folder = real(&command.folder);
        (!is_wide(&folder, home.as_deref())).then_some(folder)
    };
    own_apart(agents, outputs)?;
    let mut hidden = Vec::new();
    for output in outputs {
        let (OutputPath::File(path) | OutputPath::Folder(path)) = *output;
        let real_path = real(path);
        check(path, &real_path, expose, mode)?;
        for (agent, command) in commands.clone() {
            let folder = shown(command);
            let is_within = folder.as_ref().is_some_and(|folder| real_path.starts_with(folder));
            if mode == SandboxMode::Off && is_within && matches!(output, OutputPath::Folder(_)) {
                return Err(ExposedOutput(format!(
                    "{} is in the folder of the agent {}, which can read this path without a sandbox; choose an output path outside of that folder",
                    path.display(),
                    agent.name
                )));
            }
        }
        hidden.push(real_path);
    }
    if mode == SandboxMode::Off {
        return Ok(hidden);
    }
    let mut folders: Vec<PathBuf> = commands.clone().filter_map(|(_, command)| shown(command)).collect();
    folders.sort();
    folders.dedup();
    let count = hidden.len();
    for folder in &folders {
        hidden.extend(written_before(folder, MAX_ENTRIES)?);
    }
    hidden.extend(own_output().filter(|path| folders.iter().any(|folder| path.starts_with(folder))));
    let (to_come, found) = hidden.split_at(count);
    for (agent, command) in commands {
        let spec = command.spec(expose, Vec::new(), mode, Limits::default());
        let Some(view) = AgentView::of(&spec) else { continue };
        let in_place = to_come.iter().find_map(|path| Some((path, view.needed_in(path).next()?)));
        // An agent may read arena output that the user passes to it as an argument or exposes.
        let in_found =
            || found.iter().find_map(|path| Some((path, view.needed_in(path).find(|needed| *needed != path)?)));
        if let Some((path, needed)) = in_place.or_else(in_found) {
            return Err(ExposedOutput(format!(
                "{} cannot be hidden from the agent {}, which needs {} in it; choose another output path, or move the needed file",
                path.display(),
                agent.name,
                needed.display()
            )));
        }
    }
    Ok(hidden)
}

/// Checks that no output path is an agent's folder or one of its files. All executors use this check.
///
/// # Errors
/// If an output path belongs to an agent.
pub fn own_apart(agents: &[Agent], outputs: &[OutputPath<'_>]) -> Result<(), ExposedOutput> {
    let home = env::home_dir();
    for output in outputs {
        let (OutputPath::File(path) | OutputPath::Folder(path)) = *output;
        let real_path = real(path);
        for agent in agents {
            let Some(command) = agent.channel.command() else { continue };
            let folder = Some(real(&command.folder)).filter(|folder| !is_wide(folder, home.as_deref()));
            if folder.iter().chain(&command.own).chain([&command.program]).any(|own| real(own) == real_path) {
                return Err(ExposedOutput(format!(
                    "{} is the folder or a file of the agent {}, which could read the output; choose another output path",
                    path.display(),
                    agent.name
                )));
            }
        }
    }
    Ok(())
}

/// Returns the files that this process's stdout and stderr are redirected to. Such a file contains results
/// with their seeds.
fn own_output() -> impl Iterator<Item = PathBuf> {
    let paths = [1, 2].into_iter().filter_map(|number| fs::read_link(format!("/proc/self/fd/{number}")).ok());
    paths.filter(|path| path.is_file())
}

/// Checks that an output path isn't one that every agent sees.
fn check(path: &Path, real_path: &Path, expose: &[PathBuf], mode: SandboxMode) -> Result<(), ExposedOutput> {
    if let Some(exposed) = expose.iter().find(|exposed| real(exposed) == real_path) {
        return Err(ExposedOutput(format!(
            "--expose shows {} to agents, which could read the output in {}; choose another output path",
            exposed.display(),
            path.display()
        )));
    }
    // Agents can't read back output to a device.
    let is_kept = fs::metadata(path).map_or(true, |data| data.is_file() || data.is_dir());
    if mode != SandboxMode::Off && is_kept && is_system(real_path) {
        return Err(ExposedOutput(format!(
            "{} is in a system folder, which all agents can read; choose another output path",
            path.display()
        )));
    }
    Ok(())
}

/// Resolves the symbolic links in a path. If the path doesn't exist, resolves those in its parent.
fn real(path: &Path) -> PathBuf {
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let path = crate::output::end_of_links(&path).unwrap_or(path);
    path.canonicalize().unwrap_or_else(|_| match (path.parent(), path.file_name()) {
        (Some(parent), Some(name)) => real(parent).join(name),
        _ => path,
    })
}

/// Finds earlier output of the arena in a folder: replays, logs, tournament journals, stores and transcripts.
fn written_before(root: &Path, most: usize) -> Result<Vec<PathBuf>, ExposedOutput> {
    let (mut found, mut folders, mut left) = (Vec::new(), vec![root.to_owned()], most);
    while let Some(folder) = folders.pop() {
        let entries: Vec<_> = fs::read_dir(&folder).into_iter().flatten().flatten().take(left + 1).collect();
        left = left.checked_sub(entries.len()).ok_or_else(|| {
            ExposedOutput(format!(
                "the agent's folder {} has more than {most} entries, too many to search for files of the arena; give the agent a folder of its own",
                root.display()
            ))
        })?;
        let holds =
            |name: &str| entries.iter().any(|entry| entry.file_name() == name) && is_record(name, &folder.join(name));
        if folder != root && (holds(JOURNAL) || holds(STORE)) {
            found.push(folder);
            continue;
        }
        let (all, before) = (entries.len(), found.len());
        for entry in entries {
            let Ok(kind) = entry.file_type() else { continue };
            let path = entry.path();
            let name = entry.file_name();
            let name = name.to_string_lossy();
            if kind.is_dir() {
                folders.push(path);
            } else if kind.is_file() && (is_log(&name) || is_record(&name, &path)) {
                found.push(path);
            }
        }
        // Hiding thousands of paths one by one would slow down the start of an agent.
        if folder != root && all >= MANY && found.len() - before == all {
            found.truncate(before);
            found.push(folder);
        }
    }
    Ok(found)
}

/// Returns true for the log of an agent, such as `game.seat0.log`.
fn is_log(name: &str) -> bool {
    let seat = name.strip_suffix(".log").and_then(|name| name.rsplit_once(".seat"));
    seat.is_some_and(|(_, seat)| !seat.is_empty() && seat.bytes().all(|byte| byte.is_ascii_digit()))
}

/// Returns true for a replay, a tournament's journal, a language model's transcript, or a file of a store.
/// Both the file name and the first bytes must match, because an agent's own data may have any name.
fn is_record(name: &str, path: &Path) -> bool {
    let is_store = name.starts_with(STORE);
    let is_ours = is_store || name.starts_with(JOURNAL) || name.starts_with("play-") && name.ends_with(".jsonl");
    if !is_ours && !name.ends_with(".jsonl") {
        return false;
    }
    match start(path) {
        // An empty file with one of the arena's names may be output that the arena is about to write.
        Ok(found) if found.is_empty() => is_ours,
        Ok(found) if is_store => {
            is_sqlite(&found) || is_sqlite(&start(&path.with_file_name(STORE)).unwrap_or_default())
        }
        Ok(found) => HEADS.iter().any(|head| found.starts_with(head)),
        Err(_) => is_ours,
    }
}

fn is_sqlite(start: &[u8]) -> bool {
    SQLITE.iter().any(|magic| start.starts_with(magic))
}

/// Reads the first bytes of a file, which show its kind.
fn start(path: &Path) -> io::Result<Vec<u8>> {
    let mut start = Vec::new();
    File::open(path)?.take(64).read_to_end(&mut start)?;
    Ok(start)
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
            ("mine/cup/tournament.jsonl", "{\"arena_tournament\":1}\n"),
            ("mine/cup/replays/1.jsonl", "x"),
            ("mine/data/arena.sqlite3", "SQLite format 3\0x"),
            ("mine/data/auth.secret", "x"),
            ("mine/play-a.jsonl", "{\"arena_transcript\":1,\"api\":\"openai\"}\n"),
            ("mine/talk.jsonl", "{\"api\":\"anthropic\",\"api_base\":\"x\"}\n"),
            ("mine/play-empty.jsonl", ""),
            ("mine/empty.jsonl", ""),
            ("mine/arena.sqlite3-wal", "\x37\x7f\x06\x02"),
            // The agent's own data.
            ("mine/play-book.jsonl", "{\"opening\":\"e4\"}\n"),
            ("mine/lib/tournament.jsonl", "{\"won\":3}\n"),
            ("mine/lib/tournament.jsonl.old", "won 3\n"),
            ("mine/lib/arena.sqlite3", "a map of the arena"),
            ("mine/lib/arena.sqlite3-shm", "x"),
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
            private(&agents(&root), &[], SandboxMode::On, &[OutputPath::File(&place), OutputPath::Folder(&root)])
                .unwrap();
        hidden.sort();
        let names: Vec<_> = hidden.iter().map(|path| path.strip_prefix(&root).unwrap().to_str().unwrap()).collect();
        let expected = ["", "mine/cup", "mine/data", "mine/lib/deep/game.jsonl", "mine/new.jsonl", "mine/old.jsonl"];
        let more = ["mine/old.seat0.log", "mine/play-a.jsonl", "mine/play-empty.jsonl", "mine/talk.jsonl"];
        assert_eq!(names, [&expected[..], &more].concat());
    }

    #[test]
    fn companions_of_a_store_are_known_by_it_or_by_themselves() {
        let (_kit, root) = kit();
        let lib = root.join("mine/lib");
        let wal = lib.join("arena.sqlite3-wal");
        fs::write(&wal, b"\x37\x7f\x06\x82 pages").unwrap();
        assert_eq!(written_before(&lib, 100).unwrap(), [wal, lib.join("deep/game.jsonl")]);
        fs::write(lib.join("arena.sqlite3"), b"SQLite format 3\0 pages").unwrap();
        let mut found = written_before(&lib, 100).unwrap();
        found.sort();
        let names = ["arena.sqlite3", "arena.sqlite3-shm", "arena.sqlite3-wal", "deep/game.jsonl"];
        assert_eq!(found, names.map(|name| lib.join(name)));
    }

    #[test]
    fn a_folder_full_of_replays_is_hidden_as_a_whole() {
        let (_kit, root) = kit();
        let folder = root.join("mine/lib/deep");
        let fill = |numbers: std::ops::Range<usize>| {
            for number in numbers {
                fs::write(folder.join(format!("{number}.jsonl")), "{\"arena_replay\":1}\n").unwrap();
            }
        };
        fill(1..MANY - 1);
        assert_eq!(written_before(&root.join("mine/lib"), 1000).unwrap().len(), MANY - 1);
        fill(MANY - 1..MANY);
        assert_eq!(written_before(&root.join("mine/lib"), 1000).unwrap(), std::slice::from_ref(&folder));
        assert_eq!(written_before(&folder, 1000).unwrap().len(), MANY);
        fs::write(folder.join("weights"), "").unwrap();
        assert_eq!(written_before(&root.join("mine/lib"), 1000).unwrap().len(), MANY);
    }

    #[test]
    fn a_folder_with_too_many_entries_to_search_is_refused() {
        let (_kit, root) = kit();
        let folder = root.join("mine/lib");
        // Six files, and a folder with one more.
        assert_eq!(written_before(&folder, 7).unwrap(), [folder.join("deep/game.jsonl")]);
        let actual = written_before(&folder, 6).unwrap_err().to_string();
        expect![[
            r#"the agent's folder ROOT/mine/lib has more than 6 entries, too many to search for files of the arena; give the agent a folder of its own"#
        ]]
        .assert_eq(&actual.replace(root.to_str().unwrap(), "ROOT"));
    }

    /// Checks the error for an output folder and an agent with its interpreter at the path `at`. The interpreter is a
    /// link or a copy of `/bin/sh`. An empty text means no error.
    #[track_caller]
    fn with_interpreter(at: &str, is_link: bool, folder: &str, expected: Expect) {
        let (_kit, root) = kit();
        let interpreter = root.join(at);
        fs::create_dir_all(interpreter.parent().unwrap()).unwrap();
        match is_link {
            true => std::os::unix::fs::symlink("/bin/sh", &interpreter).unwrap(),
            false => fs::copy("/bin/sh", &interpreter).map(|_| ()).unwrap(),
        }
        let words = [interpreter, root.join("mine/agent.py")].map(|path| path.to_str().unwrap().to_owned());
        let agents = [Agent::command(&words, "").unwrap()];
        let actual = private(&agents, &[], SandboxMode::On, &[OutputPath::Folder(&root.join(folder))]);
        let actual = actual.map_or_else(|error| error.to_string(), |_| String::new());
        expected.assert_eq(&actual.replace(root.to_str().unwrap(), "ROOT"));
    }

    #[test]
    fn an_interpreter_that_lies_where_the_arena_writes_is_refused_if_the_agent_sees_that_place() {
        for is_link in [false, true] {
            with_interpreter(
                "mine/new/venv/bin/python",
                is_link,
                "mine/new",
                expect![
                    "ROOT/mine/new cannot be hidden from the agent agent, which needs ROOT/mine/new/venv/bin/python in it; choose another output path, or move the needed file"
                ],
            );
            // The output folder is the interpreter's own folder.
            with_interpreter(
                "new/bin/python",
                is_link,
                "new",
                expect![
                    "ROOT/new cannot be hidden from the agent agent, which needs ROOT/new/bin/python in it; choose another output path, or move the needed file"
                ],
            );
            // An old tournament.
            with_interpreter(
                "mine/cup/venv/bin/python",
                is_link,
                "new",
                expect![
                    "ROOT/mine/cup cannot be hidden from the agent agent, which needs ROOT/mine/cup/venv/bin/python in it; choose another output path, or move the needed file"
                ],
            );
            // The agent sees the interpreter's folder and nothing around it.
            with_interpreter("new/venv/bin/python", is_link, "new", expect![""]);
            with_interpreter("mine/venv/bin/python", is_link, "mine/new", expect![""]);
        }
    }

    /// Returns the error for an output path in a folder with agents, or nothing if agents cannot read that path.
    fn refused(place: &str, is_folder: bool, mode: SandboxMode) -> String {
        let (_kit, root) = kit();
        let path = root.join(place);
        let place = if is_folder { OutputPath::Folder(&path) } else { OutputPath::File(&path) };
        let private = private(&agents(&root), &[root.join("mine/lib")], mode, &[place]);
        private.map_or_else(|error| error.to_string(), |_| String::new()).replace(root.to_str().unwrap(), "ROOT")
    }

    #[test]
    fn a_folder_around_an_agent_is_refused_where_it_is_exposed() {
        let (_kit, root) = kit();
        let around = root.join("around");
        fs::create_dir(&around).unwrap();
        fs::rename(root.join("mine"), around.join("mine")).unwrap();
        let actual = |expose: PathBuf| {
            let actual = private(&agents(&around), &[expose], SandboxMode::On, &[OutputPath::Folder(&around)]);
            actual.map_or_else(|error| error.to_string(), |_| String::new()).replace(root.to_str().unwrap(), "ROOT")
        };
        expect![
            "ROOT/around cannot be hidden from the agent agent, which needs ROOT/around/mine/agent.py in it; choose another output path, or move the needed file"
        ]
        .assert_eq(&actual(root.clone()));
        assert_eq!(actual(around.join("mine/lib")), "");
    }

    #[test]
    fn places_that_cannot_be_hidden_are_refused() {
        let mut transcript = String::new();
        for (place, is_folder, mode) in [
            ("mine", true, SandboxMode::On),
            ("mine/../mine/agent.py", false, SandboxMode::On),
            ("mine/lib", true, SandboxMode::On),
            ("/usr/cup", true, SandboxMode::On),
            ("mine/new", true, SandboxMode::On),
            ("mine/new", true, SandboxMode::Off),
            // An output file gets its name after the agents have ended.
            ("mine/new", false, SandboxMode::Off),
            ("new", true, SandboxMode::Off),
            ("/dev/null", false, SandboxMode::On),
        ] {
            let kind = if is_folder { "folder" } else { "file" };
            transcript += &format!("{kind} {place} {mode:?}: {}\n", refused(place, is_folder, mode));
        }
        expect![[r#"
            folder mine On: ROOT/mine is the folder or a file of the agent agent, which could read the output; choose another output path
            file mine/../mine/agent.py On: ROOT/mine/../mine/agent.py is the folder or a file of the agent agent, which could read the output; choose another output path
            folder mine/lib On: --expose shows ROOT/mine/lib to agents, which could read the output in ROOT/mine/lib; choose another output path
            folder /usr/cup On: /usr/cup is in a system folder, which all agents can read; choose another output path
            folder mine/new On: 
            folder mine/new Off: ROOT/mine/new is in the folder of the agent agent, which can read this path without a sandbox; choose an output path outside of that folder
            file mine/new Off: 
            folder new Off: 
            file /dev/null On: 
        "#]].assert_eq(&transcript);
    }
}
