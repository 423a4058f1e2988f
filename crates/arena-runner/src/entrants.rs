//! Agents of competitions: the description that a plan has of them, and changes of their files.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use arena_match::{Agent, Channel, Command, fingerprint};
use arena_tournament::{Entrant, Reach};
use parking_lot::Mutex;

/// An agent can't enter a competition. A sentence about it.
#[derive(Debug, thiserror::Error)]
pub enum EntrantError {
    /// A path or an argument can't be written down.
    #[error("agent {0}: paths and arguments of agents in tournaments have to be UTF-8")]
    NotUtf8(String),
    /// Files can't be read.
    #[error("agent {name}: {}: {source}", path.display())]
    Files {
        /// The agent.
        name: String,
        /// The file or folder.
        path: PathBuf,
        /// The reason.
        source: std::io::Error,
    },
}

/// The files of these agents, by name, aren't what they were.
#[derive(Debug, thiserror::Error)]
#[error("the files of {} have changed since the tournament began (or are gone)", .0.join(" and "))]
pub struct FilesChanged(pub Vec<String>);

/// Describes an agent, with the fingerprint of its files as they are now. `except`: a folder that isn't its own, wherever it is.
///
/// # Errors
/// When its files can't be read, or its paths can't be written down.
pub fn enter(agent: &Agent, except: &Path) -> Result<Entrant, EntrantError> {
    let not_utf8 = || EntrantError::NotUtf8(agent.name.clone());
    let text = |text: &OsString| text.clone().into_string().map_err(|_| not_utf8());
    let (reach, files) = match &agent.channel {
        Channel::Http(url) => (Reach::Url(url.clone()), Vec::new()),
        Channel::Stdio(Command { program, args, folder, .. }) => {
            let reach = Reach::Command {
                program: program.clone(),
                args: args.iter().map(text).collect::<Result<_, _>>()?,
                folder: folder.clone(),
            };
            (reach, files(agent, program, args))
        }
    };
    let paths = files.iter().chain(match &reach {
        Reach::Command { program, folder, .. } => vec![program, folder],
        Reach::Url(_) => Vec::new(),
    });
    if paths.into_iter().any(|path| path.to_str().is_none()) {
        return Err(not_utf8());
    }
    let mut entrant = Entrant {
        name: agent.name.clone(),
        version: agent.version.clone(),
        path: agent.path.clone(),
        dialect: agent.dialect,
        reach,
        files,
        sha256: None,
    };
    entrant.sha256 = fingerprint_of(&entrant, except)?;
    Ok(entrant)
}

/// Returns the agent of a description, to be seated.
pub fn agent_of(entrant: &Entrant) -> Agent {
    let channel = match &entrant.reach {
        Reach::Url(url) => Channel::Http(url.clone()),
        Reach::Command { program, args, folder } => Channel::Stdio(Command {
            program: program.clone(),
            args: args.iter().map(OsString::from).collect(),
            folder: folder.clone(),
            own: entrant.files.clone(),
        }),
    };
    let (name, version) = (entrant.name.clone(), entrant.version.clone());
    Agent { path: entrant.path.clone(), name, version, dialect: entrant.dialect, channel, note: None }
}

/// The SHA-256 of an agent's files as they are now; `None` for a server of somebody's.
///
/// # Errors
/// When they can't be read.
pub(crate) fn fingerprint_of(entrant: &Entrant, except: &Path) -> Result<Option<String>, EntrantError> {
    if entrant.files.is_empty() {
        return Ok(None);
    }
    fingerprint::of(&entrant.files, except).map(Some).map_err(|error| unreadable(entrant, error))
}

fn unreadable(entrant: &Entrant, (path, source): (PathBuf, std::io::Error)) -> EntrantError {
    EntrantError::Files { name: entrant.name.clone(), path, source }
}

/// The files of an agent: the file or folder that the user named, or of a command line the files in it, or else its program. An
/// interpreter isn't part of an agent.
fn files(agent: &Agent, program: &Path, args: &[OsString]) -> Vec<PathBuf> {
    if let Ok(path) = Path::new(&agent.path).canonicalize() {
        return vec![path];
    }
    let named: Vec<PathBuf> = args.iter().map(PathBuf::from).filter(|arg| arg.is_absolute() && arg.is_file()).collect();
    if named.is_empty() { vec![program.to_owned()] } else { named }
}

/// Watches the files of agents. Asked before and after each match, so that no match counts if the version of an agent isn't known.
#[derive(Debug)]
pub(crate) struct FileWatch<'a> {
    entrants: &'a [Entrant],
    except: &'a Path,
    /// By agent: the stamp of its files when they last had the right fingerprint. A stamp changes whenever a file is written to.
    stamps: Mutex<Vec<Option<u64>>>,
}

impl<'a> FileWatch<'a> {
    /// Watches agents whose files should have the fingerprints of their descriptions. `except`: a folder that isn't their own, wherever
    /// it is.
    pub fn new(entrants: &'a [Entrant], except: &'a Path) -> FileWatch<'a> {
        FileWatch { entrants, except, stamps: Mutex::new(vec![None; entrants.len()]) }
    }

    /// Returns those of these agents, by number, whose files have changed or can't be read. Files that were written again with the same
    /// content haven't changed.
    pub fn changed(&self, agents: &[usize]) -> Vec<usize> {
        let mut changed = agents.to_vec();
        changed.retain(|agent| !self.is_unchanged(*agent).unwrap_or(false));
        changed
    }

    fn is_unchanged(&self, agent: usize) -> Result<bool, EntrantError> {
        let entrant = &self.entrants[agent];
        // Taken first: files that are written to while they are read have another stamp the next time.
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
