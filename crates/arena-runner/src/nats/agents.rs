//! Packing of a competition's agents into archives for workers, and conversion of unpacked agents on a worker.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use arena_match::archive::{self, PackError};
use arena_match::{Agent, Channel, Command, which};
use arena_model::hex;
use arena_tournament::{AgentAddress, Entrant};
use sha2::{Digest, Sha256};

use crate::entrants::fingerprint_of;
use crate::nats::wire::{CommandWord, JobAgent};

/// The largest unpacked size of an agent's folder, in bytes.
pub const MAX_BYTES: u64 = 64 << 20;

/// Interpreters of scripts. Workers find these programs by name in `PATH`. Jobs may start no other programs of a
/// worker's machine, except those that the worker's command line names.
const INTERPRETERS: [&str; 2] = ["python3", "node"];

/// An error for an agent that workers can't play. The text is shown to the user.
#[derive(Debug, thiserror::Error)]
pub enum TravelError {
    /// A remote agent.
    #[error("{0} isn't a local file or folder, but workers play only such agents; leave out --nats-url")]
    Server(String),
    #[error("workers cannot start {name}: its program {} is neither in its folder nor in PATH", program.display())]
    Program { name: String, program: PathBuf },
    #[error("{name} needs {}, but workers get only its folder {}", file.display(), folder.display())]
    Elsewhere { name: String, file: PathBuf, folder: PathBuf },
    #[error("cannot pack {name} with its whole folder {}: {source}; give the agent a folder of its own", folder.display())]
    Pack { name: String, folder: PathBuf, source: PackError },
    #[error("cannot pack {name}: {what}")]
    Unpack { name: String, what: String },
    #[error("the files of {0} have changed since the start")]
    Changed(String),
}

#[derive(Debug, Default)]
pub struct PackedAgents {
    /// The agents, by their number in the competition.
    pub agents: BTreeMap<usize, JobAgent>,
    /// The archives, by their SHA-256.
    pub archives: BTreeMap<String, Vec<u8>>,
}

/// Packs agents, given with their numbers in the competition. `folder` is the competition's folder, which archives leave
/// out. `search` is the value of `PATH`.
///
/// # Errors
/// [`TravelError`] if workers can't play an agent.
pub fn pack(entrants: &[(usize, &Entrant)], folder: &Path, search: &str) -> Result<PackedAgents, TravelError> {
    let mut packed = PackedAgents::default();
    // Agents in the same folder share an archive.
    let mut by_folder: BTreeMap<PathBuf, (String, tempfile::TempDir)> = BTreeMap::new();
    for &(number, entrant) in entrants {
        let mut agent = describe(entrant, search)?;
        let AgentAddress::Command { folder: home, .. } = &entrant.reach else {
            unreachable!("remote agents were refused")
        };
        let is_packed = agent.archive.take().is_some();
        if is_packed {
            if !by_folder.contains_key(home) {
                let source = |source| TravelError::Pack { name: entrant.name.clone(), folder: home.clone(), source };
                let bytes = archive::pack(home, folder, MAX_BYTES).map_err(source)?;
                let unpack = |what: String| TravelError::Unpack { name: entrant.name.clone(), what };
                // Unpacks the archive as a worker would, to detect errors before any job is published.
                let there = tempfile::tempdir().map_err(|error| unpack(error.to_string()))?;
                archive::unpack(&bytes, there.path(), MAX_BYTES).map_err(|error| unpack(error.to_string()))?;
                let sha256 = hex::encode(&Sha256::digest(&bytes));
                packed.archives.insert(sha256.clone(), bytes);
                by_folder.insert(home.clone(), (sha256, there));
            }
            let (sha256, there) = &by_folder[home];
            let arrived =
                Entrant { files: agent.own.iter().map(|own| there.path().join(own)).collect(), ..entrant.clone() };
            match fingerprint_of(&arrived, Path::new("")) {
                Ok(fingerprint) if fingerprint == entrant.sha256 => {}
                _ => return Err(TravelError::Changed(entrant.name.clone())),
            }
            agent.archive = Some(sha256.clone());
        }
        packed.agents.insert(number, agent);
    }
    Ok(packed)
}

/// If the agent has files of its own, `archive` is `Some` with an empty hash, since the archive doesn't exist yet.
fn describe(entrant: &Entrant, search: &str) -> Result<JobAgent, TravelError> {
    let name = || entrant.name.clone();
    let AgentAddress::Command { program, args, folder } = &entrant.reach else {
        return Err(TravelError::Server(name()));
    };
    let below = |path: &Path| match path.strip_prefix(folder) {
        Ok(below) => Ok(below.to_string_lossy().into_owned()),
        Err(_) => Err(TravelError::Elsewhere { name: name(), file: path.to_owned(), folder: folder.clone() }),
    };
    let is_own = |path: &Path| entrant.files.iter().any(|own| path.starts_with(own));
    let file_name = program.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let is_found = which(&file_name, search).as_deref() == Some(program) || INTERPRETERS.contains(&&*file_name);
    // If the command line names no files of the agent, the program is part of the agent only if the user typed the
    // program's path.
    let first = entrant.path.split(' ').next().unwrap_or_default();
    let is_named = first.contains('/') || !is_found || Path::new(&entrant.path).exists();
    let start = match (is_own(program) && is_named, is_found) {
        (true, _) => CommandWord::Own(below(program)?),
        (false, true) => CommandWord::Text(file_name),
        (false, false) => return Err(TravelError::Program { name: name(), program: program.clone() }),
    };
    let arg = |arg: &String| match Path::new(arg).is_absolute() {
        true => below(Path::new(arg)).map(CommandWord::Own),
        false => Ok(CommandWord::Text(arg.clone())),
    };
    let args: Vec<CommandWord> = args.iter().map(arg).collect::<Result<_, _>>()?;
    let travels = std::iter::once(&start).chain(&args).any(|word| matches!(word, CommandWord::Own(_)));
    let own =
        if travels { entrant.files.iter().map(|file| below(file)).collect::<Result<_, _>>()? } else { Vec::new() };
    Ok(JobAgent {
        name: name(),
        agent_id: entrant.agent_id.clone(),
        version: entrant.version.clone(),
        path: entrant.path.clone(),
        dialect: entrant.dialect,
        program: start,
        args,
        own,
        archive: travels.then(String::new),
    })
}

/// Converts a job's agent into an agent that the worker can start. `folder` contains the unpacked archive, `search` is
/// the worker's `PATH`, and `programs` are the names of the programs in it that agents may be, besides interpreters.
///
/// # Errors
/// The reason, in one sentence, if the worker can't start the agent or doesn't allow it.
pub fn unpacked(agent: &JobAgent, folder: Option<&Path>, search: &str, programs: &[String]) -> Result<Agent, String> {
    let own = |below: &String| match folder {
        Some(folder) if below.is_empty() => Ok(folder.to_owned()),
        Some(folder) if is_below(below) => Ok(folder.join(below)),
        _ => Err(format!("{} names the file {below}, which is outside of its archive", agent.name)),
    };
    let program = match &agent.program {
        CommandWord::Own(below) => own(below)?,
        CommandWord::Text(text) if !INTERPRETERS.contains(&text.as_str()) && !programs.contains(text) => {
            return Err(format!(
                "{} needs the program `{text}`, which this worker doesn't allow; to allow it, start the worker with \
                 --program",
                agent.name
            ));
        }
        CommandWord::Text(text) => which(text, search)
            .ok_or_else(|| format!("{} needs the program `{text}`, which isn't in PATH", agent.name))?,
    };
    let arg = |word: &CommandWord| match word {
        CommandWord::Own(below) => own(below).map(PathBuf::into_os_string),
        CommandWord::Text(text) if text.starts_with('/') => {
            Err(format!("{} names {text}, a path of the worker's machine", agent.name))
        }
        CommandWord::Text(text) => Ok(text.into()),
    };
    let command = Command {
        args: agent.args.iter().map(arg).collect::<Result<_, _>>()?,
        folder: folder.or(program.parent()).unwrap_or(Path::new("/")).to_owned(),
        own: agent.own.iter().map(own).collect::<Result<_, _>>()?,
        program,
    };
    Ok(Agent {
        id: agent.agent_id.clone(),
        version: agent.version.clone(),
        dialect: agent.dialect,
        ..Agent::new(&agent.path, &agent.name, Channel::Stdio(command))
    })
}

/// Returns true if a path has only normal components, so that it can't lead out of its base folder.
fn is_below(path: &str) -> bool {
    Path::new(path).components().all(|part| matches!(part, std::path::Component::Normal(_)))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use expect_test::{Expect, expect};

    use super::*;
    use crate::entrants::enter;

    /// Creates a folder with agents, and a folder with interpreters for the search path.
    fn kit() -> (tempfile::TempDir, PathBuf, String) {
        let kit = tempfile::tempdir().unwrap();
        let root = kit.path().canonicalize().unwrap();
        let put = |path: &str, mode: u32| {
            let path = root.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(&path, path.file_name().unwrap().as_encoded_bytes()).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        };
        put("files/bot.py", 0o644);
        put("files/native", 0o755);
        put("files/help.py", 0o644);
        put("folder/agent", 0o755);
        put("bin/python3", 0o755);
        put("bin/tool", 0o755);
        let search = root.join("bin").to_str().unwrap().to_owned();
        (kit, root, search)
    }

    fn describe_agent(agent: &Agent, search: &str) -> String {
        let entrant = enter(agent, Path::new("")).unwrap();
        match pack(&[(0, &entrant)], Path::new("/nowhere"), search) {
            Err(error) => format!("error: {error}"),
            Ok(packed) => {
                let agent = &packed.agents[&0];
                // On the worker, the agent has the same command line, but with other paths.
                let there = tempfile::tempdir().unwrap();
                if let Some(sha256) = &agent.archive {
                    archive::unpack(&packed.archives[sha256], there.path(), MAX_BYTES).unwrap();
                }
                let folder = agent.archive.as_ref().map(|_| there.path());
                let arrived = unpacked(agent, folder, search, &["tool".to_owned()]).unwrap();
                let Channel::Stdio(command) = arrived.channel else { panic!("a server") };
                let mut files: Vec<String> = fs::read_dir(there.path())
                    .unwrap()
                    .map(|entry| entry.unwrap().file_name().into_string().unwrap())
                    .collect();
                files.sort();
                format!("{:?} {:?}, own {:?}, files {}", command.program, command.args, command.own, files.join(" "))
                    .replace(there.path().to_str().unwrap(), "THERE")
            }
        }
    }

    #[track_caller]
    fn check(words: &str, expected: Expect) {
        let (_kit, root, search) = kit();
        let named = words.replace("ROOT", root.to_str().unwrap());
        let agent = match named.split_once("-- ") {
            Some((_, line)) => {
                Agent::command(&line.split(' ').map(str::to_owned).collect::<Vec<_>>(), &search).unwrap()
            }
            None => Agent::find(&named, &search).unwrap(),
        };
        expected.assert_eq(&describe_agent(&agent, &search).replace(root.to_str().unwrap(), "ROOT"));
    }

    #[test]
    fn unpacked_agents_have_the_same_command() {
        check(
            "ROOT/files/bot.py",
            expect![[r#""ROOT/bin/python3" ["THERE/bot.py"], own ["THERE/bot.py"], files bot.py help.py native"#]],
        );
        check(
            "ROOT/files/native",
            expect![[r#""THERE/native" [], own ["THERE/native"], files bot.py help.py native"#]],
        );
        check("ROOT/folder", expect![[r#""THERE/agent" [], own ["THERE"], files agent"#]]);
        check(
            "-- python3 ROOT/files/bot.py --level 3",
            expect![[
                r#""ROOT/bin/python3" ["THERE/bot.py", "--level", "3"], own ["THERE/bot.py"], files bot.py help.py native"#
            ]],
        );
        check(
            "-- ROOT/files/native --level 3",
            expect![[r#""THERE/native" ["--level", "3"], own ["THERE/native"], files bot.py help.py native"#]],
        );
        check("-- tool --level 3", expect![[r#""ROOT/bin/tool" ["--level", "3"], own [], files "#]]);
    }

    #[test]
    fn agents_that_workers_cannot_play_are_errors() {
        check(
            "http://127.0.0.1:9/",
            expect![
                "error: 127.0.0.1:9 isn't a local file or folder, but workers play only such agents; leave out --nats-url"
            ],
        );
        check(
            "-- python3 ROOT/files/bot.py ROOT/folder/agent",
            expect!["error: bot needs ROOT/folder/agent, but workers get only its folder ROOT/files"],
        );
        check(
            "-- python3 ROOT/files/bot.py ROOT/bin",
            expect!["error: bot needs ROOT/bin, but workers get only its folder ROOT/files"],
        );
        check(
            "-- ROOT/folder/agent ROOT/files/bot.py",
            expect!["error: bot needs ROOT/folder/agent, but workers get only its folder ROOT/files"],
        );
    }

    #[test]
    fn files_outside_the_archive_are_refused() {
        let (_kit, root, search) = kit();
        let agent = Agent::find(root.join("files/native").to_str().unwrap(), &search).unwrap();
        let entrant = enter(&agent, Path::new("")).unwrap();
        let packed = pack(&[(0, &entrant)], Path::new("/nowhere"), &search).unwrap();
        for path in ["../bin/tool", "/bin/sh", "a/../../b"] {
            let agent = JobAgent { program: CommandWord::Own(path.to_owned()), ..packed.agents[&0].clone() };
            let error = unpacked(&agent, Some(&root), &search, &[]).unwrap_err();
            assert_eq!(error, format!("native names the file {path}, which is outside of its archive"));
        }
        let agent = JobAgent { args: vec![CommandWord::Text("/etc/passwd".to_owned())], ..packed.agents[&0].clone() };
        let error = unpacked(&agent, Some(&root), &search, &[]).unwrap_err();
        assert_eq!(error, "native names /etc/passwd, a path of the worker's machine");
    }

    #[test]
    fn programs_of_the_machine_need_permission() {
        let (_kit, root, search) = kit();
        let agent = |program: &str| JobAgent {
            name: "bot".to_owned(),
            agent_id: None,
            version: None,
            path: program.to_owned(),
            dialect: arena_match::Dialect::default(),
            program: CommandWord::Text(program.to_owned()),
            args: Vec::new(),
            own: Vec::new(),
            archive: None,
        };
        let sh = root.join("bin/tool");
        for program in ["tool", "../bin/tool", sh.to_str().unwrap(), "http://127.0.0.1/"] {
            let error = unpacked(&agent(program), None, &search, &["other".to_owned()]).unwrap_err();
            assert!(error.contains("which this worker doesn't allow"), "{error}");
        }
        unpacked(&agent("tool"), None, &search, &["tool".to_owned()]).unwrap();
        unpacked(&agent("python3"), None, &search, &[]).unwrap();
    }
}
