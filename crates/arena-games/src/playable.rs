//! An entry of the catalog: a challenge or game, playable under both protocols, with its boards, bots and samples.

use std::sync::Arc;
use std::time::Duration;

use arena_model::{Builtin, ChallengeType, GameOperator, GameType, Hosted, OptionsError, Rules};
use serde_json::{Map, Value};

use crate::board::Draw;
use crate::bots::HouseBot;

/// A built-in challenge or game.
pub struct Playable {
    /// The identifier of the challenge type on a server, such as `food-catcher`.
    pub id: &'static str,
    /// The game type for the match runner, where the game has a name such as `food_catcher`.
    pub game: GameType,
    /// The boards, bots, samples and other parts besides the rules.
    pub kit: Kit,
    make: fn(&Map<String, Value>) -> CreateResult,
}

type CreateResult = Result<Arc<dyn ChallengeType>, OptionsError>;

/// The parts of a challenge or game besides its rules. All are optional.
#[derive(Debug, Clone, Copy)]
pub struct Kit {
    /// The meaning of its scores.
    pub kind: ScoreKind,
    /// The additional scoring strategies of its sessions. A server applies its default strategies to every challenge.
    pub scoring: &'static [&'static str],
    /// The rules in two or three sentences, for people who play with the page's controls.
    pub rules: Option<&'static str>,
    /// The picture for lists and tiles: a static SVG in the colors of the page's style sheet. Pages insert it as markup,
    /// so it has no ids and no inline styles.
    pub picture: Option<&'static str>,
    /// The board for terminals.
    pub terminal: Option<Draw>,
    /// The board for browsers.
    pub module: Option<Module>,
    /// The controls of a seat in browsers.
    pub controls: Option<SeatControls>,
    /// The function that reads the agents' scores from a state, for the score curves of replays.
    pub scores: Option<ReadScores>,
    /// The house bots, which play against guests and each other: the stronger one first.
    pub bots: Option<[&'static HouseBot; 2]>,
    /// The options of the games that people start against house bots, as a JSON object. `None` if the usual games are
    /// short enough for people.
    pub short: Option<fn() -> Value>,
    /// The settings of the sessions that the house bots play for the demo's spectators.
    pub exhibit: Option<Exhibit>,
    /// The sample agents of `arena agent new`, one for each language.
    pub samples: &'static [Sample],
}

/// The meaning of a game's scores, from which pages choose the columns of its leaderboards.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ScoreKind {
    /// Utility, and security, which shows how well a player kept its secrets.
    Secrets,
    /// Utility only: the security is always 0.
    Points,
    /// The result: a utility of 1 for a win, 0 for a draw and -1 for a loss. The security shows no skill.
    Outcome,
}

/// A browser module that draws a game; `boards.js` of `arena-web` defines its exports.
#[derive(Debug, Clone, Copy)]
pub struct Module {
    /// The name without `.js`. Games with the same board share a module.
    pub name: &'static str,
    /// The JavaScript. It may import `./seats.js`.
    pub script: &'static str,
    pub style: &'static str,
}

/// A browser module with a seat's controls; `seat/parts.js` of `arena-web` describes its exports.
#[derive(Debug, Clone, Copy)]
pub struct SeatControls {
    /// The name without `.js`. Challenges with the same controls share a module.
    pub name: &'static str,
    /// The JavaScript. It may import `./parts.js`, `../boards/seats.js`, and its game's board from `../boards`.
    pub script: &'static str,
}

/// A function from a state, as JSON text, and the agents' ids to the agents' scores. It returns `None` if the state
/// can't be read.
pub type ReadScores = fn(&str, &[String]) -> Option<Vec<Option<f64>>>;

/// The settings of a game's sessions for spectators.
#[derive(Debug, Clone, Copy)]
pub struct Exhibit {
    /// The options of a session, as a JSON object.
    pub options: fn() -> Value,
    /// The pause before each answer of a bot.
    pub pace: Duration,
}

/// The files of a sample agent, as names and texts. The first file is the agent, and its extension (`py`, `js`) is
/// the language. The file that implements the protocol comes with every sample.
pub type Sample = &'static [(&'static str, &'static str)];

/// The text of a file in `examples/agents`.
macro_rules! example {
    ($path:literal) => {
        include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/agents/", $path))
    };
}
pub(crate) use example;

impl Kit {
    /// The default kit: two scoring strategies and no other part.
    pub const USUAL: Kit = Kit {
        kind: ScoreKind::Secrets,
        scoring: &["win-rate", "consecutive"],
        rules: None,
        picture: None,
        terminal: None,
        module: None,
        controls: None,
        scores: None,
        bots: None,
        short: None,
        exhibit: None,
        samples: &[],
    };
}

impl Playable {
    /// Creates the entry of a challenge, which the match runner plays through an adapter.
    pub(crate) const fn challenge<R: Rules>(kit: Kit) -> Playable {
        Playable { id: R::ID, game: GameType::of_rules::<R>(), kit, make: make::<R> }
    }

    /// Creates the entry of a game, which sessions play through an adapter.
    pub(crate) const fn game<G: Hosted>(kit: Kit) -> Playable {
        let kit = Kit { kind: ScoreKind::Outcome, ..kit };
        Playable { id: G::CHALLENGE, game: GameType::of::<G>(), kit, make: make::<GameOperator<G>> }
    }

    /// Returns the challenge type with an arena's options for it.
    ///
    /// # Errors
    /// If an option is unknown, has the wrong type, or makes the game impossible.
    pub fn challenge_type(&self, options: &Map<String, Value>) -> Result<Arc<dyn ChallengeType>, OptionsError> {
        (self.make)(options)
    }

    /// Returns the sample agent in the language with files that end in `.extension`.
    pub fn sample(&self, extension: &str) -> Option<Sample> {
        let is_in = |sample: &&Sample| sample[0].0.rsplit_once('.').is_some_and(|(_, ending)| ending == extension);
        self.kit.samples.iter().find(is_in).copied()
    }
}

fn make<R: Rules>(options: &Map<String, Value>) -> CreateResult {
    Builtin::<R>::new(options).map(|challenge| Arc::new(challenge) as Arc<dyn ChallengeType>)
}
