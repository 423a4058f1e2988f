//! Conversion between agents and their descriptions in a plan, and detection of changes to agents' files.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use arena_match::{Agent, BuiltIn, Channel, Command, fingerprint};
use arena_model::StartLimits;
use arena_tournament::{AgentAddress, Entrant};
use parking_lot::Mutex;

/// An error for an agent that can't enter a competition. The text is shown to the user.
#[derive(Debug, thiserror::Error)]
pub enum EntrantError {
    #[error("agent {0}: paths and arguments of agents in tournaments must be UTF-8")]
    NotUtf8(String),
    #[error("agent {name}: {} cannot be read: {source}", path.display())]
    Files { name: String, path: PathBuf, source: std::io::Error },
}

/// An error for changed files of agents, with the names of these agents.
#[derive(Debug, thiserror::Error)]
#[error("the files of {} have changed or were removed since the tournament began", .0.join(" and "))]
pub struct FilesChanged(pub Vec<String>);

/// Describes an agent for a plan, with the fingerprint of its current files. The fingerprint leaves out the folder
/// `except`, even if it lies within the agent's folder.
///
/// # Errors
/// [`EntrantError`] if the agent's files can't be read, or its paths aren't UTF-8.
pub fn enter(agent: &Agent, except: &Path) -> Result<Entrant, EntrantError> {
    let not_utf8 = || EntrantError::NotUtf8(agent.name.clone());
    let text = |text: &OsString| text.clone().into_string().map_err(|_| not_utf8());
    let (reach, files) = match &agent.channel {
        Channel::Http(url) => (AgentAddress::Url(url.clone()), Vec::new()),
        Channel::BuiltIn(built_in) => {
            let files = built_in.command().map_or(Vec::new(), |command| match &command.own[..] {
                [] => vec![command.program.clone()],
                own => own.to_vec(),
            });
            (AgentAddress::BuiltIn(built_in.to_string()), files)
        }
        Channel::Stdio(Command { program, args, folder, own }) => {
            let reach = AgentAddress::Command {
                program: program.clone(),
                args: args.iter().map(text).collect::<Result<_, _>>()?,
                folder: folder.clone(),
            };
            (reach, files(agent, program, own))
        }
    };
    let paths = files.iter().chain(match &reach {
        AgentAddress::Command { program, folder, .. } => vec![program, folder],
        AgentAddress::Url(_) | AgentAddress::BuiltIn(_) => Vec::new(),
    });
    if paths.into_iter().any(|path| path.to_str().is_none()) {
        return Err(not_utf8());
    }
    let (agent_id, version, dialect) = (agent.id.clone(), agent.version.clone(), agent.dialect);
    let mut entrant = Entrant { agent_id, version, dialect, files, ..Entrant::new(&agent.name, &agent.path, reach) };
    entrant.sha256 = fingerprint_of(&entrant, except)?;
    Ok(entrant)
}

/// Converts a plan's description of an agent into an agent that can be started.
pub fn agent_of(entrant: &Entrant) -> Agent {
    let channel = match &entrant.reach {
        AgentAddress::Url(url) => Channel::Http(url.clone()),
        // A plan of another version may name an unknown agent. The file of that name doesn't exist, so it can't start.
        AgentAddress::BuiltIn(name) => match BuiltIn::parse(name, "") {
            Some(Ok(agent)) => Channel::BuiltIn(agent),
            _ => Channel::Stdio(Command {
                program: PathBuf::from(name),
                args: Vec::new(),
                folder: PathBuf::from("/"),
                own: Vec::new(),
            }),
        },
        AgentAddress::Command { program, args, folder } => Channel::Stdio(Command {
            program: program.clone(),
            args: args.iter().map(OsString::from).collect(),
            folder: folder.clone(),
            own: entrant.files.clone(),
        }),
    };
    let (name, id, version) = (entrant.name.clone(), entrant.agent_id.clone(), entrant.version.clone());
    let (time_control, start_limits) = match &channel {
        Channel::BuiltIn(agent) => (agent.time_control(), agent.start_limits()),
        Channel::Stdio(_) | Channel::Http(_) => (None, StartLimits::default()),
    };
    let (path, dialect) = (entrant.path.clone(), entrant.dialect);
    Agent { path, name, id, version, dialect, channel, time_control, start_limits, note: None }
}

/// Returns the SHA-256 of an agent's current files, without the folder `except`. `None` for a remote agent.
///
/// # Errors
/// [`EntrantError::Files`] if the files can't be read.
pub(crate) fn fingerprint_of(entrant: &Entrant, except: &Path) -> Result<Option<String>, EntrantError> {
    if entrant.files.is_empty() {
        return Ok(None);
    }
    fingerprint::of(&entrant.files, except).map(Some).map_err(|error| unreadable(entrant, error))
}

fn unreadable(entrant: &Entrant, (path, source): (PathBuf, std::io::Error)) -> EntrantError {
    EntrantError::Files { name: entrant.name.clone(), path, source }
}

/// Returns the files that make up an agent: the file or folder that the user named, else those of its command line or
/// function, else its program. An interpreter isn't part of an agent.
fn files(agent: &Agent, program: &Path, own: &[PathBuf]) -> Vec<PathBuf> {
    if let Ok(path) = Path::new(&agent.path).canonicalize() {
        return vec![path];
    }
    if own.is_empty() { vec![program.to_owned()] } else { own.to_vec() }
}

/// A check of agents' files for changes. The executor checks the files before and after each match, so that a match
/// with a changed agent doesn't count.
#[derive(Debug)]
pub(crate) struct FileWatch<'a> {
    entrants: &'a [Entrant],
    except: &'a Path,
    /// For each agent, the stamp of its files when they last had the expected fingerprint. A stamp is cheap to read,
    /// and changes with every write to a file.
    stamps: Mutex<Vec<Option<u64>>>,
}

impl<'a> FileWatch<'a> {
    /// Creates a check of the agents' files against the fingerprints in `entrants`. Fingerprints leave out the folder
    /// `except`.
    pub fn new(entrants: &'a [Entrant], except: &'a Path) -> FileWatch<'a> {
        FileWatch { entrants, except, stamps: Mutex::new(vec![None; entrants.len()]) }
    }

    /// Returns those of `agents` with changed or unreadable files, by number. Rewriting a file with the same content
    /// isn't a change.
    pub fn changed(&self, agents: &[usize]) -> Vec<usize> {
        let mut changed = agents.to_vec();
        changed.retain(|agent| !self.is_unchanged(*agent).unwrap_or(false));
        changed
    }

    fn is_unchanged(&self, agent: usize) -> Result<bool, EntrantError> {
        let entrant = &self.entrants[agent];
        // The stamp is read before the content. If a file is written to while its content is read, the next check finds
        // another stamp and reads the file again.
        let stamp = fingerprint::stamp(&entrant.files, self.except).map_err(|error| unreadable(entrant, error))?;
        if self.stamps.lock()[agent] == Some(stamp) {
            return Ok(true);
        }
        let is_same = fingerprint_of(entrant, self.except)? == entrant.sha256;
        if is_same {
            self.stamps.lock()[agent] = Some(stamp);
        }
        Ok(is_same)
    }
}
