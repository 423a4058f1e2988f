//! The plan of a tournament: all that its matches come of, as the first line of its journal holds it.

use std::fmt;
use std::path::PathBuf;

use arena_model::{Dialect, GameType, Limits, OptionsError, SandboxMode, Seed, Setup, TimeLimits, agent_ids};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::format::Format;
use crate::shape::{Shape, ShapeError};
use crate::stop::Stop;

/// The version of the journal that this code writes and reads.
const VERSION: u32 = 1;

/// A tournament before its first match.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Plan {
    /// The version of the journal.
    arena_tournament: u32,
    /// The name of the game.
    pub game: String,
    /// The version of its rules. Journals from before there were versions have none, and were begun by the first.
    #[serde(default = "first_version")]
    pub rules_version: u32,
    /// Where its rules are, if it is a challenge that isn't built in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub script: Option<ScriptPart>,
    /// These rules, once somebody has loaded them.
    #[serde(skip)]
    rules: Rules,
    /// Keys of its config that differ from the usual.
    pub options: Map<String, Value>,
    /// How long agents may take.
    pub limits: TimeLimits,
    /// Who takes part.
    pub agents: Vec<Entrant>,
    /// Who meets whom.
    pub format: Format,
    /// See [`Shape::rounds`].
    pub rounds: usize,
    /// How many agents a game has.
    pub seats: usize,
    /// Whether meetings are games with one seed on all seats.
    pub paired: bool,
    /// What ends it before all games are played, if anything does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop: Option<Stop>,
    /// What all that is random comes of: 64 hexadecimal digits.
    pub seed: String,
    /// How agents are confined.
    pub sandbox: SandboxMode,
    /// Resource limits of each process.
    pub sandbox_limits: Limits,
    /// Further paths that agents may read.
    pub expose: Vec<PathBuf>,
    /// Whether agents that are servers are asked at public addresses only.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub public_only: bool,
    /// Whether replays and logs are kept.
    pub replays: bool,
    /// How many matches are played beside each other. No result depends on it.
    pub concurrency: usize,
    /// Whether a match and its agents share a core.
    pub shares_core: bool,
}

fn first_version() -> u32 {
    1
}

/// The rules of a tournament that aren't built in: a challenge's script.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScriptPart {
    /// The challenge's folder, as an absolute path.
    pub folder: PathBuf,
    /// The version by which all its games are played: 64 hexadecimal digits.
    pub version: String,
}

/// Rules that were loaded, or not. Which they are is said by what stands beside them.
#[derive(Clone, Default)]
struct Rules(Option<&'static GameType>);

impl fmt::Debug for Rules {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Rules").field(&self.0.map(|game| game.name)).finish()
    }
}

impl PartialEq for Rules {
    fn eq(&self, _other: &Rules) -> bool {
        true
    }
}

/// An agent of a tournament.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Entrant {
    /// What it is called in the tournament; nobody else is.
    pub name: String,
    /// Its version, if its manifest says it.
    pub version: Option<String>,
    /// As the user named it.
    pub path: String,
    /// Where it looks for the state.
    pub dialect: Dialect,
    /// How it is reached.
    pub reach: Reach,
    /// The files and folders that make it what it is.
    pub files: Vec<PathBuf>,
    /// Their SHA-256, in hex. `None` for somebody else's server.
    pub sha256: Option<String>,
}

/// How an agent of a tournament is reached, wherever it is gone on with.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reach {
    /// A process of ours.
    Command {
        /// As an absolute path.
        program: PathBuf,
        /// Its arguments.
        args: Vec<String>,
        /// The agent's own folder.
        folder: PathBuf,
    },
    /// Somebody else's server.
    Url(String),
}

/// A tournament can't be played so. The sentence is for the caller.
#[derive(Debug, thiserror::Error)]
pub enum PlanError {
    /// There is no such game.
    #[error("there is no game `{0}`")]
    Game(String),
    /// Its rules are a script that nobody has loaded.
    #[error("the rules of `{game}` are in {}, and have to be loaded to be played by", folder.display())]
    NotLoaded {
        /// The game.
        game: String,
        /// The challenge's folder.
        folder: PathBuf,
    },
    /// It isn't played by so many.
    #[error("{game} is played by {} agents, and not by {seats}", if least == most { most.to_string() } else { format!("{least} to {most}") })]
    Seats {
        /// Its name.
        game: &'static str,
        /// Of its agents.
        least: usize,
        /// Of its agents.
        most: usize,
        /// That were asked for.
        seats: usize,
    },
    /// It isn't played with these options.
    #[error(transparent)]
    Options(#[from] OptionsError),
    /// There is no such tournament.
    #[error(transparent)]
    Shape(#[from] ShapeError),
    /// Two agents have one name.
    #[error("two agents are called {0}")]
    Name(String),
    /// The seed is none.
    #[error("the seed isn't 64 hexadecimal digits")]
    Seed,
    /// It was begun by other rules than those at hand.
    #[error(
        "it was begun by version {version} of the rules of {game}, and this program plays by version {found}: its games and new ones don't \
         compare, so it can't go on; `arena tournament standings` shows what was played, and a new tournament plays by the new rules"
    )]
    OtherRules {
        /// The game.
        game: String,
        /// By which it was begun.
        version: u32,
        /// The version at hand.
        found: u32,
    },
    /// A later program wrote it.
    #[error("this is a tournament of version {0}, and this program knows version {VERSION}")]
    Version(u32),
}

impl Plan {
    /// A plan with these agents and this shape, and with what is usual for the game.
    pub fn new(game: &GameType, agents: Vec<Entrant>, shape: &Shape) -> Plan {
        Plan {
            arena_tournament: VERSION,
            game: game.name.to_owned(),
            rules_version: game.rules_version,
            script: None,
            rules: Rules::default(),
            options: Map::new(),
            limits: game.limits,
            agents,
            format: shape.format,
            rounds: shape.rounds,
            seats: shape.seats,
            paired: shape.paired,
            stop: shape.stop,
            seed: shape.seed.reveal(),
            sandbox: SandboxMode::default(),
            sandbox_limits: Limits::default(),
            expose: Vec::new(),
            public_only: false,
            replays: false,
            concurrency: 1,
            shares_core: true,
        }
    }

    /// Whether it can be played.
    ///
    /// # Errors
    /// When it can't; says why.
    pub fn check(&self) -> Result<(), PlanError> {
        if self.arena_tournament != VERSION {
            return Err(PlanError::Version(self.arena_tournament));
        }
        // What was played by a script can be looked at without it; it was checked when the tournament began.
        let game = match self.game() {
            Ok(game) => Some(game),
            Err(PlanError::NotLoaded { .. }) => None,
            Err(error) => return Err(error),
        };
        // Fewer than two agents are too few for any game, which the shape says.
        if let Some(game) = game.filter(|_| self.agents.len() >= 2) {
            check_seats(game, self.seats)?;
        }
        self.shape()?.check()?;
        for (number, agent) in self.agents.iter().enumerate() {
            if self.agents[..number].iter().any(|other| other.name == agent.name) {
                return Err(PlanError::Name(agent.name.clone()));
            }
        }
        game.map_or(Ok(()), |game| check_options(game, self.seats, &self.options))
    }

    /// Refuses to play by other rules than those by which it was begun. Rules that nobody has loaded are let pass.
    ///
    /// # Errors
    /// When the version of the rules at hand is another one.
    pub fn check_rules(&self) -> Result<(), PlanError> {
        match self.game() {
            Ok(game) if game.rules_version != self.rules_version => Err(PlanError::OtherRules {
                game: self.game.clone(),
                version: self.rules_version,
                found: game.rules_version,
            }),
            _ => Ok(()),
        }
    }

    /// The game.
    ///
    /// # Errors
    /// When there is none of this name, or its rules are a script that nobody has loaded (see [`Plan::set_rules`]).
    pub fn game(&self) -> Result<&'static GameType, PlanError> {
        match (&self.script, self.rules.0) {
            (None, _) => arena_games::game(&self.game).ok_or_else(|| PlanError::Game(self.game.clone())),
            (Some(_), Some(game)) => Ok(game),
            (Some(ScriptPart { folder, .. }), None) => {
                Err(PlanError::NotLoaded { game: self.game.clone(), folder: folder.clone() })
            }
        }
    }

    /// Plays by rules that aren't built in: those of a script, which `game` was made of.
    pub fn set_rules(&mut self, script: ScriptPart, game: &'static GameType) {
        self.script = Some(script);
        self.rules = Rules(Some(game));
    }

    /// What its schedule is made of.
    ///
    /// # Errors
    /// When the seed is none.
    pub fn shape(&self) -> Result<Shape, PlanError> {
        Ok(Shape {
            format: self.format,
            agents: self.agents.len(),
            rounds: self.rounds,
            seats: self.seats,
            paired: self.paired,
            stop: self.stop,
            seed: Seed::from_revealed(&self.seed).ok_or(PlanError::Seed)?,
        })
    }
}

/// Finds a built-in game that can be played by so many agents with these options.
///
/// # Errors
/// When there is none, or it can't be played so.
pub fn check_game(name: &str, seats: usize, options: &Map<String, Value>) -> Result<&'static GameType, PlanError> {
    let game = find_game(name)?;
    check_seats(game, seats)?;
    check_options(game, seats, options)?;
    Ok(game)
}

fn find_game(name: &str) -> Result<&'static GameType, PlanError> {
    arena_games::game(name).ok_or_else(|| PlanError::Game(name.to_owned()))
}

fn check_seats(game: &GameType, seats: usize) -> Result<(), PlanError> {
    let (least, most) = (*game.seats.start(), *game.seats.end());
    match game.seats.contains(&seats) {
        true => Ok(()),
        false => Err(PlanError::Seats { game: game.name, least, most, seats }),
    }
}

fn check_options(game: &'static GameType, seats: usize, options: &Map<String, Value>) -> Result<(), PlanError> {
    let seed = Seed::from_number(0);
    game.start(options, Setup { agents: agent_ids(&seed, seats), seed })?;
    Ok(())
}
