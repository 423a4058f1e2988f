//! Agents on the road: the files of a tournament's agents are packed, and each is described so that a worker can start it where it is.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use arena_match::archive::{self, PackError};
use arena_match::{Agent, Channel, Command, which};
use arena_tournament::{Entrant, Reach};
use sha2::{Digest, Sha256};

use crate::entrants::fingerprint_of;
use crate::nats::wire::{Traveller, Word};

/// Most bytes of an agent's folder when it is unpacked.
pub const MAX_BYTES: u64 = 64 << 20;

/// What runs scripts; it is found by its name everywhere.
const INTERPRETERS: [&str; 2] = ["python3", "node"];

/// An agent can't be played by workers. A sentence for whoever named it.
#[derive(Debug, thiserror::Error)]
pub enum TravelError {
    /// It is somebody's server.
    #[error("{0} is a server, and workers play agents that are files and folders; play it without --nats-url")]
    Server(String),
    /// What starts it isn't its own, and can't be found by its name.
    #[error("{name} is started by {}, which is neither in its folder nor in PATH, so workers can't start it", program.display())]
    Program {
        /// The agent.
        name: String,
        /// The program.
        program: PathBuf,
    },
    /// A file of it is elsewhere.
    #[error("{name} needs {}, and workers get nothing but its folder {}", file.display(), folder.display())]
    Elsewhere {
        /// The agent.
        name: String,
        /// That isn't in it.
        file: PathBuf,
        /// Its folder.
        folder: PathBuf,
    },
    /// Its folder can't be packed.
    #[error("{name} can't be sent to workers, who get its whole folder {}: {source}; give it a folder of its own", folder.display())]
    Pack {
        /// The agent.
        name: String,
        /// Its folder.
        folder: PathBuf,
        /// Why not.
        source: PackError,
    },
    /// What was packed isn't what a worker would take.
    #[error("{name} can't be sent to workers: {what}")]
    Unpack {
        /// The agent.
        name: String,
        /// Why not.
        what: String,
    },
    /// Its files aren't those that the tournament began with.
    #[error("the files of {0} have changed since the tournament began")]
    Changed(String),
}

/// All agents of a tournament, ready to travel.
#[derive(Debug, Default)]
pub struct Luggage {
    /// By their number in the plan.
    pub travellers: Vec<Traveller>,
    /// The archives, by their SHA-256.
    pub archives: BTreeMap<String, Vec<u8>>,
}

/// Packs the agents of a tournament. `folder` is the tournament's own, which belongs to no agent, `search` the value of `PATH`.
///
/// # Errors
/// When one can't be played by workers.
pub fn pack(entrants: &[Entrant], folder: &Path, search: &str) -> Result<Luggage, TravelError> {
    let mut luggage = Luggage::default();
    // Agents that are files in one folder travel together.
    let mut packed: BTreeMap<PathBuf, (String, tempfile::TempDir)> = BTreeMap::new();
    for entrant in entrants {
        let mut traveller = describe(entrant, search)?;
        let Reach::Command { folder: home, .. } = &entrant.reach else { unreachable!("servers were refused") };
        let is_packed = traveller.archive.take().is_some();
        if is_packed {
            if !packed.contains_key(home) {
                let source = |source| TravelError::Pack { name: entrant.name.clone(), folder: home.clone(), source };
                let bytes = archive::pack(home, folder, MAX_BYTES).map_err(source)?;
                let unpack = |what: String| TravelError::Unpack { name: entrant.name.clone(), what };
                // What a worker would refuse is refused here, before anything is queued.
                let there = tempfile::tempdir().map_err(|error| unpack(error.to_string()))?;
                archive::unpack(&bytes, there.path(), MAX_BYTES).map_err(|error| unpack(error.to_string()))?;
                let sha256 = hex(&Sha256::digest(&bytes));
                luggage.archives.insert(sha256.clone(), bytes);
                packed.insert(home.clone(), (sha256, there));
            }
            let (sha256, there) = &packed[home];
            let arrived =
                Entrant { files: traveller.own.iter().map(|own| there.path().join(own)).collect(), ..entrant.clone() };
            match fingerprint_of(&arrived, Path::new("")) {
                Ok(fingerprint) if fingerprint == entrant.sha256 => {}
                _ => return Err(TravelError::Changed(entrant.name.clone())),
            }
            traveller.archive = Some(sha256.clone());
        }
        luggage.travellers.push(traveller);
    }
    Ok(luggage)
}

/// How an agent is started where it arrives. It has an archive, of no name yet, if any of it has to travel.
fn describe(entrant: &Entrant, search: &str) -> Result<Traveller, TravelError> {
    let name = || entrant.name.clone();
    let Reach::Command { program, args, folder } = &entrant.reach else {
        return Err(TravelError::Server(name()));
    };
    let below = |path: &Path| match path.strip_prefix(folder) {
        Ok(below) => Ok(below.to_string_lossy().into_owned()),
        Err(_) => Err(TravelError::Elsewhere { name: name(), file: path.to_owned(), folder: folder.clone() }),
    };
    let is_own = |path: &Path| entrant.files.iter().any(|own| path.starts_with(own));
    let file_name = program.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let is_found = which(&file_name, search).as_deref() == Some(program) || INTERPRETERS.contains(&&*file_name);
    // A command line without files of its own is told by its program, which is the agent's only if the user named its path.
    let first = entrant.path.split(' ').next().unwrap_or_default();
    let is_named = first.contains('/') || !is_found || Path::new(&entrant.path).exists();
    let start = match (is_own(program) && is_named, is_found) {
        (true, _) => Word::Own(below(program)?),
        (false, true) => Word::Text(file_name),
        (false, false) => return Err(TravelError::Program { name: name(), program: program.clone() }),
    };
    let arg = |arg: &String| match Path::new(arg).is_absolute() && is_own(Path::new(arg)) {
        true => below(Path::new(arg)).map(Word::Own),
        false => Ok(Word::Text(arg.clone())),
    };
    let args: Vec<Word> = args.iter().map(arg).collect::<Result<_, _>>()?;
    let travels = std::iter::once(&start).chain(&args).any(|word| matches!(word, Word::Own(_)));
    let own =
        if travels { entrant.files.iter().map(|file| below(file)).collect::<Result<_, _>>()? } else { Vec::new() };
    Ok(Traveller {
        name: name(),
        version: entrant.version.clone(),
        path: entrant.path.clone(),
        dialect: entrant.dialect,
        program: start,
        args,
        own,
        archive: travels.then(String::new),
    })
}

/// An agent where it arrived, its archive unpacked in `folder`. `search` is the value of `PATH` there.
///
/// # Errors
/// When there is no such program. A sentence.
pub fn arrive(traveller: &Traveller, folder: Option<&Path>, search: &str) -> Result<Agent, String> {
    let own = |below: &String| match folder {
        Some(folder) if below.is_empty() => Ok(folder.to_owned()),
        Some(folder) if is_below(below) => Ok(folder.join(below)),
        _ => Err(format!("{} is said to have a file {below}, and no archive has it", traveller.name)),
    };
    let program = match &traveller.program {
        Word::Own(below) => own(below)?,
        Word::Text(text) => which(text, search)
            .ok_or_else(|| format!("{} needs `{text}`, and there is no such program in PATH", traveller.name))?,
    };
    let arg = |word: &Word| match word {
        Word::Own(below) => own(below).map(PathBuf::into_os_string),
        Word::Text(text) => Ok(text.into()),
    };
    let command = Command {
        args: traveller.args.iter().map(arg).collect::<Result<_, _>>()?,
        folder: folder.or(program.parent()).unwrap_or(Path::new("/")).to_owned(),
        own: traveller.own.iter().map(own).collect::<Result<_, _>>()?,
        program,
    };
    Ok(Agent {
        path: traveller.path.clone(),
        name: traveller.name.clone(),
        version: traveller.version.clone(),
        dialect: traveller.dialect,
        channel: Channel::Stdio(command),
        note: None,
    })
}

/// Whether a path leads nowhere but down.
fn is_below(path: &str) -> bool {
    Path::new(path).components().all(|part| matches!(part, std::path::Component::Normal(_)))
}

/// Bytes in hexadecimal digits.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use expect_test::{Expect, expect};

    use super::*;
    use crate::entrants::enter;

    /// A folder with agents, and one with interpreters, which is searched.
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
        match pack(std::slice::from_ref(&entrant), Path::new("/nowhere"), search) {
            Err(error) => format!("error: {error}"),
            Ok(luggage) => {
                let traveller = &luggage.travellers[0];
                // Where it arrives it is the same command line, elsewhere.
                let there = tempfile::tempdir().unwrap();
                if let Some(sha256) = &traveller.archive {
                    archive::unpack(&luggage.archives[sha256], there.path(), MAX_BYTES).unwrap();
                }
                let folder = traveller.archive.as_ref().map(|_| there.path());
                let arrived = arrive(traveller, folder, search).unwrap();
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
    fn agents_arrive_as_they_set_out() {
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
    fn what_cannot_travel_is_told_in_a_sentence() {
        check(
            "http://127.0.0.1:9/",
            expect![
                "error: 127.0.0.1:9 is a server, and workers play agents that are files and folders; play it without --nats-url"
            ],
        );
        check(
            "-- python3 ROOT/files/bot.py ROOT/folder/agent",
            expect!["error: bot needs ROOT/folder/agent, and workers get nothing but its folder ROOT/files"],
        );
        check(
            "-- ROOT/folder/agent ROOT/files/bot.py",
            expect![
                "error: bot is started by ROOT/folder/agent, which is neither in its folder nor in PATH, so workers can't start it"
            ],
        );
    }

    #[test]
    fn what_is_said_to_be_elsewhere_is_not_looked_for() {
        let (_kit, root, search) = kit();
        let agent = Agent::find(root.join("files/native").to_str().unwrap(), &search).unwrap();
        let entrant = enter(&agent, Path::new("")).unwrap();
        let luggage = pack(&[entrant], Path::new("/nowhere"), &search).unwrap();
        for path in ["../bin/tool", "/bin/sh", "a/../../b"] {
            let traveller = Traveller { program: Word::Own(path.to_owned()), ..luggage.travellers[0].clone() };
            let told = arrive(&traveller, Some(&root), &search).unwrap_err();
            assert_eq!(told, format!("native is said to have a file {path}, and no archive has it"));
        }
    }
}
