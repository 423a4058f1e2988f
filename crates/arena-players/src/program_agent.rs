//! Programs that play several games: their sandbox, the check of their files, and the number that run at the same time.

use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;

use arena_match::{Agent, Confinement, Launcher, OutputPath, SandboxMode, fingerprint, private};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The hidden command that runs the program `arena` as the launcher of an agent.
const LAUNCHER: &str = "launch-agent";

/// A program on this machine.
pub struct FoundProgram {
    /// The name in tables.
    pub name: String,
    pub agent: Agent,
    /// The files that make up the program.
    pub files: Vec<PathBuf>,
}

/// A program that can play.
pub struct ProgramAgent {
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
pub struct ProgramSlots {
    semaphore: Arc<Semaphore>,
    most: u32,
}

impl ProgramSlots {
    fn new(most: usize) -> ProgramSlots {
        let most = u32::try_from(most.max(1)).unwrap_or(u32::MAX >> 8);
        ProgramSlots { semaphore: Arc::new(Semaphore::new(most as usize)), most }
    }

    /// Waits until as many programs of a game may run, and returns the permit of the game. A game with more programs
    /// than the limit runs alone.
    pub async fn take(&self, programs: usize) -> Option<Arc<OwnedSemaphorePermit>> {
        let count = u32::try_from(programs).unwrap_or(u32::MAX).min(self.most);
        // All permits of a game are taken at once, since games that wait for each other's permits would never go on.
        Arc::clone(&self.semaphore).acquire_many_owned(count).await.ok().map(Arc::new)
    }
}

impl ProgramAgent {
    /// Prepares the sandbox of these programs. It hides the folder `dir` from them.
    ///
    /// # Errors
    /// The name of a program that can't be played, and the reason in one sentence.
    pub fn prepare_all(found: Vec<FoundProgram>, dir: &Path) -> Result<Vec<ProgramAgent>, (String, String)> {
        let processors = thread::available_parallelism().map_or(1, NonZero::get);
        let slots = Arc::new(ProgramSlots::new(processors));
        let mut programs = Vec::new();
        for found in found {
            let name = found.name.clone();
            programs.push(ProgramAgent::prepare(found, dir, &slots).map_err(|why| (name, why))?);
        }
        // Programs can't read each other's files.
        let own_paths =
            |program: &ProgramAgent| program.agent.channel.command().map_or(Vec::new(), |command| command.own.clone());
        let own: Vec<Vec<PathBuf>> = programs.iter().map(own_paths).collect();
        for (at, program) in programs.iter_mut().enumerate() {
            let others = own.iter().flatten().filter(|path| !own[at].contains(path));
            program.confinement.private.extend(others.cloned());
        }
        Ok(programs)
    }

    fn prepare(found: FoundProgram, dir: &Path, slots: &Arc<ProgramSlots>) -> Result<ProgramAgent, String> {
        let FoundProgram { name, agent, files } = found;
        let mode = SandboxMode::On;
        let hidden = private(std::slice::from_ref(&agent), &[], mode, &[OutputPath::Folder(dir)]);
        let private = hidden.map_err(|error| error.to_string())?;
        let confinement = Confinement { private, ..Confinement::new(Launcher::this_program(LAUNCHER), mode) };
        let stamp = stamp(&files)?;
        Ok(ProgramAgent { name, agent, confinement, slots: Arc::clone(slots), files, stamp })
    }

    pub fn slots(&self) -> &ProgramSlots {
        &self.slots
    }

    /// Checks that the files are those of the start.
    ///
    /// # Errors
    /// If they have changed, as one sentence.
    pub fn check_files(&self) -> Result<(), String> {
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

#[cfg(test)]
mod tests {
    use super::*;

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
