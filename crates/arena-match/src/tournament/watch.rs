//! Whether the files of agents are still what they should be: asked before and after each game, so that no game counts of which nobody
//! knows which version played it.

use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::plan::{Entrant, PlanError};

/// Watches over the files of agents.
#[derive(Debug)]
pub struct FileWatch<'a> {
    entrants: &'a [Entrant],
    except: &'a Path,
    /// Of each agent's files, when they were last known to be what they should be.
    stamps: Mutex<Vec<Option<u64>>>,
}

impl<'a> FileWatch<'a> {
    /// Watches over agents, whose files should have the fingerprints that are written of them. `except`: a folder that isn't their own,
    /// wherever it is.
    pub fn new(entrants: &'a [Entrant], except: &'a Path) -> FileWatch<'a> {
        FileWatch { entrants, except, stamps: Mutex::new(vec![None; entrants.len()]) }
    }

    /// Those of these agents, by their index, whose files have changed or can't be read. What was written again as it was hasn't changed.
    pub fn changed(&self, agents: &[usize]) -> Vec<usize> {
        let mut changed = agents.to_vec();
        changed.retain(|agent| !self.is_unchanged(*agent).unwrap_or(false));
        changed
    }

    fn is_unchanged(&self, agent: usize) -> Result<bool, PlanError> {
        let entrant = &self.entrants[agent];
        // Taken first: what is written to while it is read has another one the next time.
        let stamp = Some(entrant.stamp(self.except)?);
        if self.stamps()[agent] == stamp {
            return Ok(true);
        }
        let is_same = entrant.fingerprint(self.except)? == entrant.sha256;
        if is_same {
            self.stamps()[agent] = stamp;
        }
        Ok(is_same)
    }

    fn stamps(&self) -> MutexGuard<'_, Vec<Option<u64>>> {
        // A stamp is there or not; nothing that panics leaves half of one.
        self.stamps.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
