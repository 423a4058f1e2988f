//! An entry of the catalogue: a challenge or game, playable under both protocols, with all that comes with it.

use std::sync::Arc;
use std::time::Duration;

use arena_model::{Builtin, ChallengeType, GameOperator, GameType, Hosted, OperatorGame, OptionsError, Rules};
use serde_json::{Map, Value};

use crate::board::Draw;
use crate::bots::Player;

/// A built-in challenge or game.
pub struct Playable {
    /// The identifier of its challenge type on a server, such as `food-catcher`.
    pub id: &'static str,
    /// Its form in the match runner, with its name there, such as `food_catcher`.
    pub game: GameType,
    /// The parts beside its rules.
    pub kit: Kit,
    make: fn(&Map<String, Value>) -> Made,
}

/// A challenge type, or what is wrong with the options for it.
type Made = Result<Arc<dyn ChallengeType>, OptionsError>;

/// The parts of a challenge or game beside its rules. All are optional.
#[derive(Debug, Clone, Copy)]
pub struct Kit {
    /// The scoring strategies of its sessions, beside those that a server applies to every challenge.
    pub scoring: &'static [&'static str],
    /// Its board in a terminal.
    pub terminal: Option<Draw>,
    /// Its board in a browser.
    pub module: Option<Module>,
    /// The reader of the scores that its states contain, for the curves of replays.
    pub scores: Option<ReadScores>,
    /// The house bots that play it, against guests and each other.
    pub bots: Option<[&'static Player; 2]>,
    /// The sessions in which the house bots play it for spectators of the demo.
    pub exhibit: Option<Exhibit>,
    /// The sample agents of `arena agent new`, one for each language.
    pub samples: &'static [Sample],
}

/// A module for browsers that draws a game; `boards.js` of `arena-web` says what it exports.
#[derive(Debug, Clone, Copy)]
pub struct Module {
    /// Its name without `.js`. Games with the same board share one.
    pub name: &'static str,
    /// The JavaScript. It may import `./seats.js`.
    pub script: &'static str,
    /// The style of what it draws.
    pub style: &'static str,
}

/// A function from a state, as JSON text, and the ids of agents to a score of each; `None` if the state can't be read.
pub type ReadScores = fn(&str, &[String]) -> Option<Vec<Option<f64>>>;

/// The sessions of a game for spectators.
#[derive(Debug, Clone, Copy)]
pub struct Exhibit {
    /// The options of a session, as a JSON object.
    pub options: fn() -> Value,
    /// The time that a bot waits before it answers.
    pub pace: Duration,
}

/// The files of a sample agent, as names and texts; the file of the protocol comes with every one. The first file is the agent,
/// and its ending (`py`, `js`) tells the language.
pub type Sample = &'static [(&'static str, &'static str)];

/// The text of a file in `examples/agents`.
macro_rules! example {
    ($path:literal) => {
        include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/agents/", $path))
    };
}
pub(crate) use example;

impl Kit {
    /// The defaults.
    pub const USUAL: Kit = Kit {
        scoring: &["win-rate", "consecutive"],
        terminal: None,
        module: None,
        scores: None,
        bots: None,
        exhibit: None,
        samples: &[],
    };
}

impl Playable {
    /// The entry of a challenge, which the match runner plays through an adapter.
    pub(crate) const fn challenge<R: Rules>(kit: Kit) -> Playable {
        Playable { id: R::ID, game: GameType::of::<OperatorGame<R>>(), kit, make: make::<R> }
    }

    /// The entry of a game, which sessions play through an adapter.
    pub(crate) const fn game<G: Hosted>(kit: Kit) -> Playable {
        Playable { id: G::CHALLENGE, game: GameType::of::<G>(), kit, make: make::<GameOperator<G>> }
    }

    /// Its challenge type with an arena's options for it.
    ///
    /// # Errors
    /// If an option is unknown, mistyped, or makes the game impossible.
    pub fn challenge_type(&self, options: &Map<String, Value>) -> Result<Arc<dyn ChallengeType>, OptionsError> {
        (self.make)(options)
    }

    /// Its sample agent in the language whose files end in `.extension`.
    pub fn sample(&self, extension: &str) -> Option<Sample> {
        let is_in = |sample: &&Sample| sample[0].0.rsplit_once('.').is_some_and(|(_, ending)| ending == extension);
        self.kit.samples.iter().find(is_in).copied()
    }
}

fn make<R: Rules>(options: &Map<String, Value>) -> Made {
    Builtin::<R>::new(options).map(|challenge| Arc::new(challenge) as Arc<dyn ChallengeType>)
}
