//! The live view of a match on a terminal.

use arena_match::{Glance, Watch};

/// Draws a match while it is played.
pub struct Live {
    game: &'static str,
}

impl Live {
    /// A view of a match of this game, before its first epoch.
    pub fn new(game: &'static str) -> Live {
        Live { game }
    }
}

impl Watch for Live {
    fn look(&mut self, glance: Glance<'_>) {
        let _ = (self.game, glance.epoch);
    }
}
