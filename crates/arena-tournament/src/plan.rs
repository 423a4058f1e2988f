//! The plan of a tournament: everything that the tournament's matches depend on. The plan is the first line of the
//! journal.

use std::fmt;
use std::path::PathBuf;

use arena_model::{
    Adjudication, AgentId, Dialect, GameType, Limits, OptionsError, SandboxMode, Seed, Setup, StartLimits, TimeControl,
    TimeLimits, agent_ids,
};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::format::Format;
use crate::shape::{Shape, ShapeError};
use crate::stop::Stop;

/// The version of the journal format that this code writes and reads.
const VERSION: u32 = 1;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TournamentPlan {
    /// The version of the journal format.
    arena_tournament: u32,
    pub game: String,
    /// Journals from before the introduction of rule versions lack this field and use version 1.
    #[serde(default = "first_version")]
    pub rules_version: u32,
    /// The script with the rules, if the game is a challenge that isn't built in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub script: Option<ScriptPart>,
    /// The SHA-256 of the challenge's prompt and methods, in hexadecimal. `None` for a game without these texts, for a
    /// script, whose version covers them, and in journals from before the introduction of this field.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub texts: Option<String>,
    /// The loaded rules of the script.
    #[serde(skip)]
    rules: Rules,
    /// The game's options that differ from the defaults.
    pub options: Map<String, Value>,
    pub limits: TimeLimits,
    /// The time control of the agents without one of their own. `None` for the time limits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_control: Option<TimeControl>,
    /// The limits of the first answers of agents without limits of their own.
    #[serde(default, skip_serializing_if = "StartLimits::is_usual")]
    pub start_limits: StartLimits,
    /// The initial positions of chess games.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub openings: Option<Openings>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub adjudication: Option<Adjudication>,
    pub agents: Vec<Entrant>,
    pub format: Format,
    /// The number of rounds. See [`Shape::rounds`].
    pub rounds: usize,
    /// The number of agents in a game.
    pub seats: usize,
    /// True if each set of agents plays one game per seat rotation with the same seed. See [`Shape::paired`].
    pub paired: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop: Option<Stop>,
    /// The seed of all random decisions: 64 hexadecimal digits.
    pub seed: String,
    pub sandbox: SandboxMode,
    /// The resource limits of each process.
    pub sandbox_limits: Limits,
    /// Additional paths that agents may read.
    pub expose: Vec<PathBuf>,
    /// True if remote agents must have public addresses.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub public_only: bool,
    /// True if the runner keeps replays and logs.
    pub replays: bool,
    /// The number of concurrent matches. Results don't depend on this number.
    pub concurrency: usize,
    /// True if the match loop and its agents run on the same core.
    pub shares_core: bool,
}

fn first_version() -> u32 {
    1
}

/// The initial positions of a tournament's games.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Openings {
    /// The value of the option that chose them, with the absolute path of the book.
    pub book: String,
    /// The positions as FEN, by meeting. After the last one, the first one follows.
    pub positions: Vec<String>,
}

/// The challenge script with the rules of a tournament.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScriptPart {
    /// The challenge's folder, as an absolute path.
    pub folder: PathBuf,
    /// The version of the script that all games of the tournament use: 64 hexadecimal digits.
    pub version: String,
}

/// The loaded rules of a script, if any. Equality ignores them, since [`ScriptPart`] identifies the rules.
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

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Entrant {
    /// The agent's name, which is unique in the tournament.
    pub name: String,
    /// The id in matches, instead of one from the match's seed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<AgentId>,
    /// The version in the agent's manifest.
    pub version: Option<String>,
    /// The path or URL, as the user typed it.
    pub path: String,
    pub dialect: Dialect,
    pub reach: AgentAddress,
    pub files: Vec<PathBuf>,
    /// The SHA-256 of the files, in hexadecimal. `None` for a remote agent.
    pub sha256: Option<String>,
}

impl Entrant {
    /// Returns an agent with this name and path, without files.
    pub fn new(name: &str, path: &str, reach: AgentAddress) -> Entrant {
        Entrant {
            name: name.to_owned(),
            agent_id: None,
            version: None,
            path: path.to_owned(),
            dialect: Dialect::default(),
            reach,
            files: Vec::new(),
            sha256: None,
        }
    }
}

/// The command, URL or built-in name of an agent. Paths are absolute, so that the tournament can be resumed from any folder.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AgentAddress {
    /// A local process.
    Command {
        /// The program's absolute path.
        program: PathBuf,
        args: Vec<String>,
        folder: PathBuf,
    },
    Url(String),
    /// The name of an agent that the arena plays itself.
    BuiltIn(String),
}

/// An error for an invalid plan. The text is shown to the user.
#[derive(Debug, thiserror::Error)]
pub enum PlanError {
    #[error("there is no game `{0}`")]
    Game(String),
    #[error("the rules of `{game}` in {} aren't loaded", folder.display())]
    NotLoaded { game: String, folder: PathBuf },
    #[error("{game} is played by {} agents, not by {seats}", if least == most { most.to_string() } else { format!("{least} to {most}") })]
    Seats {
        game: &'static str,
        least: usize,
        most: usize,
        /// The requested number.
        seats: usize,
    },
    #[error(transparent)]
    Options(#[from] OptionsError),
    #[error(transparent)]
    Shape(#[from] ShapeError),
    #[error("two agents are named {0}; names must be unique")]
    Name(String),
    #[error("the seed isn't 64 hexadecimal digits")]
    Seed,
    #[error(
        "the {what} was started with version {version} of the rules of {game}, but this program has version {found}, whose games aren't \
         comparable; see `arena tournament standings` for its results, or {instead}"
    )]
    OtherRules {
        what: &'static str,
        game: String,
        /// The version with which the tournament was started.
        version: u32,
        /// The version of the rules in this program.
        found: u32,
        /// The way to games by this program's rules.
        instead: &'static str,
    },
    #[error(
        "the {what} was started with another prompt or other methods of {game} than this program's, so its games aren't comparable; see \
         `arena tournament standings` for its results, or {instead}"
    )]
    OtherTexts { what: &'static str, game: String, instead: &'static str },
    #[error("openings and adjudication are for chess, not for {0}")]
    NotChess(String),
    #[error("the journal has version {0}, but this program reads version {VERSION}")]
    Version(u32),
}

impl TournamentPlan {
    /// Creates a plan with these agents and this shape, and with the defaults of the game.
    pub fn new(game: &GameType, agents: Vec<Entrant>, shape: &Shape) -> TournamentPlan {
        TournamentPlan {
            arena_tournament: VERSION,
            game: game.name.to_owned(),
            rules_version: game.rules_version,
            script: None,
            texts: None,
            rules: Rules::default(),
            options: Map::new(),
            limits: game.limits,
            time_control: None,
            start_limits: StartLimits::default(),
            openings: None,
            adjudication: None,
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

    /// Checks that the plan can be played.
    ///
    /// # Errors
    /// [`PlanError`] if the plan can't be played.
    pub fn check(&self) -> Result<(), PlanError> {
        if self.arena_tournament != VERSION {
            return Err(PlanError::Version(self.arena_tournament));
        }
        // Results of a script can be shown without loading it; the options were checked at the start of the tournament.
        let game = match self.game() {
            Ok(game) => Some(game),
            Err(PlanError::NotLoaded { .. }) => None,
            Err(error) => return Err(error),
        };
        // For fewer than two agents, `Shape::check` has a clearer error than `check_seats`.
        if let Some(game) = game.filter(|_| self.agents.len() >= 2 || self.format.is_open_ended()) {
            check_seats(game, self.seats)?;
        }
        if (self.adjudication.is_some() || self.openings.is_some()) && self.game != "chess" {
            return Err(PlanError::NotChess(self.game.clone()));
        }
        self.shape()?.check()?;
        for (number, agent) in self.agents.iter().enumerate() {
            if self.agents[..number].iter().any(|other| other.name == agent.name) {
                return Err(PlanError::Name(agent.name.clone()));
            }
        }
        game.map_or(Ok(()), |game| check_options(game, self.seats, &self.options))
    }

    /// Records the texts of the tournament's challenge in this program. Done at the start of a tournament.
    pub fn note_texts(&mut self) {
        self.texts = self.find_texts();
    }

    /// Returns the hash of the challenge's texts in this program. See [`TournamentPlan::texts`].
    pub fn find_texts(&self) -> Option<String> {
        let game = self.game().ok().filter(|_| self.script.is_none())?;
        game.texts_sha256(&self.options, self.seats)
    }

    /// Checks that the tournament was started with this program's version of the rules, and with its texts. A script
    /// that isn't loaded passes the check, and so does a plan without a hash of the texts.
    ///
    /// # Errors
    /// [`PlanError::OtherRules`] if the version differs, [`PlanError::OtherTexts`] if the texts differ.
    pub fn check_rules(&self) -> Result<(), PlanError> {
        let (what, instead) = match self.format.is_open_ended() {
            true => ("season", "close the season with `arena tournament season`"),
            false => ("tournament", "start a new tournament"),
        };
        match self.game() {
            Ok(game) if game.rules_version != self.rules_version => Err(PlanError::OtherRules {
                what,
                game: self.game.clone(),
                version: self.rules_version,
                found: game.rules_version,
                instead,
            }),
            Ok(_) if self.texts.is_some() && self.texts != self.find_texts() => {
                Err(PlanError::OtherTexts { what, game: self.game.clone(), instead })
            }
            _ => Ok(()),
        }
    }

    /// Returns the game.
    ///
    /// # Errors
    /// [`PlanError`] if no game has this name, or the game's script isn't loaded (see [`TournamentPlan::set_rules`]).
    pub fn game(&self) -> Result<&'static GameType, PlanError> {
        match (&self.script, self.rules.0) {
            (None, _) => arena_games::game(&self.game).ok_or_else(|| PlanError::Game(self.game.clone())),
            (Some(_), Some(game)) => Ok(game),
            (Some(ScriptPart { folder, .. }), None) => {
                Err(PlanError::NotLoaded { game: self.game.clone(), folder: folder.clone() })
            }
        }
    }

    /// Sets the rules to those of a script. `game` is the game type that was created from this script.
    pub fn set_rules(&mut self, script: ScriptPart, game: &'static GameType) {
        self.script = Some(script);
        self.rules = Rules(Some(game));
    }

    /// Returns the input of the schedule.
    ///
    /// # Errors
    /// [`PlanError::Seed`] if the seed is invalid.
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
