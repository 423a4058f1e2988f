//! Kinds of agents that this program plays itself, such as `house:snake`, `random` and `model:NAME@URL`. A kind is a
//! file in this folder and an entry of [`KINDS`].
//!
//! For each match, a thread answers the messages. A kind may name a [`Command`]: the match then starts the command in
//! the sandbox as it starts other agents, and the thread gets the pipes to the process as a [`Program`]. So the kind is
//! a driver, which translates between the messages of matches and the program's own protocol.

mod bots;
mod cli;
mod kept;
mod model;
mod process_body;
mod program;
mod rules;
mod uci;

use std::fmt;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Write};
use std::sync::Arc;
use std::sync::mpsc::Sender;

use arena_house::Bot;
use arena_model::{GameType, StartLimits, TimeControl, TimeLimits};
use serde_json::{Map, Value};

use crate::agent::Command;
use crate::link::{Link, MAX_LINE};
use crate::process::Spec;
use crate::thread_body::{self, Notice, Notices, ThreadBody};
pub(crate) use cli::SeatServices;
pub use kept::KeptEngines;
pub(crate) use kept::{EngineKey, EngineReturn, KeptEngine};
pub(crate) use process_body::DrivenBody;
pub(crate) use program::Program;

struct Kind {
    /// The word before the colon.
    word: &'static str,
    /// The forms of the text, for help.
    forms: &'static [&'static str],
    read: fn(AgentText<'_>) -> Result<Arc<dyn Recipe>, String>,
}

const KINDS: [Kind; 5] = [
    Kind { word: "house", forms: &["house", "house:easy"], read: bots::read_house },
    Kind { word: "random", forms: &["random"], read: bots::read_random },
    Kind { word: "model", forms: &["model:NAME@URL"], read: model::read_model },
    Kind { word: "uci", forms: &["uci:PATH"], read: uci::read_uci },
    Kind { word: "cli", forms: &["cli:TEMPLATE"], read: cli::read_cli },
];

#[derive(Debug, Clone, Copy)]
struct AgentText<'t> {
    whole: &'t str,
    /// The part after the colon.
    rest: &'t str,
    /// The value of `PATH`, for the names of programs.
    search: &'t str,
}

/// An agent of one kind, of which each match gets a player. All errors are sentences.
trait Recipe: fmt::Debug + Send + Sync {
    /// Returns the text of the agent with absolute paths. Journals contain it, and it is parsed again when a tournament
    /// is resumed.
    fn text(&self) -> &str;

    /// Checks that the agent can play a game.
    fn check(&self, game: &GameType) -> Result<(), String>;

    /// Checks that the environment has what the agent needs, such as a key.
    fn check_environment(&self) -> Result<(), String> {
        Ok(())
    }

    /// Creates the bot for one game. Equal numbers `random` give equal play.
    fn bot(&self, _game: &GameType, _random: u64) -> Result<Box<dyn Bot>, String> {
        Err(format!("{} isn't a house bot", self.text()))
    }

    /// Returns the command of the program that the agent drives, if there is one.
    fn command(&self) -> Option<&Command> {
        None
    }

    /// Prepares the services of the arena that the program uses in a match, and completes the program's specification.
    fn prepare(&self, _game: &'static GameType, _spec: &mut Spec) -> Result<Option<SeatServices>, String> {
        Ok(None)
    }

    /// Returns the agent's own time control, if its text has one.
    fn time_control(&self) -> Option<TimeControl> {
        None
    }

    /// Returns the agent's own limits of its first answers.
    fn start_limits(&self) -> StartLimits {
        StartLimits::default()
    }

    /// Returns true if the agent's program can play another match after its first one.
    fn stays(&self) -> bool {
        false
    }

    /// Performs the handshake with the agent's program, at the first ping. Returns the agent's name, or `None` for the
    /// agent's text. The match limits the time, and quotes `awaited` if the time is over.
    fn greet(&self, _program: &mut Program, _awaited: &Notice) -> Result<Option<String>, PlayerError> {
        Ok(None)
    }

    /// Creates the player of a match.
    fn player(&self, start: SeatStart<'_>) -> Result<Box<dyn BuiltInPlayer>, String>;
}

struct SeatStart<'s> {
    game: &'static GameType,
    id: &'s str,
    /// The game's constants.
    config: &'s Value,
    limits: TimeLimits,
    /// The places for the player's reports to the match.
    notices: &'s Notices,
    /// The running program, if [`Recipe::command`] names one.
    program: Option<Program>,
    /// The services of [`Recipe::prepare`].
    services: Option<SeatServices>,
}

/// A built-in agent in one match.
trait BuiltInPlayer {
    /// Returns the answer to a state. An error ends the agent.
    fn actions(&mut self, state: &Map<String, Value>) -> Result<PlayerAnswer, PlayerError>;

    /// Ends the play. Returns the program of an agent that stays, and asks other programs to end.
    fn stop(self: Box<Self>) -> Option<Program> {
        None
    }
}

#[derive(Debug, Default)]
struct PlayerAnswer {
    actions: Vec<Value>,
    /// Facts for the replay, such as the score of an engine.
    info: Option<Value>,
}

impl From<Vec<Value>> for PlayerAnswer {
    fn from(actions: Vec<Value>) -> PlayerAnswer {
        PlayerAnswer { actions, info: None }
    }
}

#[derive(Debug, PartialEq, Eq)]
enum PlayerError {
    /// The program has closed its input or output. The match asks the process for the reason.
    ProgramEnded,
    /// The program wrote more than [`program::MAX_OUTPUT`] for one answer.
    Flood,
    /// A description in words that follow the agent's name.
    Other(String),
}

impl From<String> for PlayerError {
    fn from(sentence: String) -> PlayerError {
        PlayerError::Other(sentence)
    }
}

#[derive(Debug, Clone)]
pub struct BuiltIn {
    recipe: Arc<dyn Recipe>,
}

impl BuiltIn {
    /// Returns `None` if the text names no kind of agent. `search` is the value of `PATH`, for the names of programs.
    pub fn parse(text: &str, search: &str) -> Option<Result<BuiltIn, String>> {
        let (word, rest) = text.split_once(':').unwrap_or((text, ""));
        if word == "a2a" {
            return Some(Err(
                "agents of Agent2Agent were removed; give the URL of a server that speaks the arena's protocol"
                    .to_owned(),
            ));
        }
        let kind = KINDS.iter().find(|kind| kind.word == word)?;
        Some((kind.read)(AgentText { whole: text, rest, search }).map(|recipe| BuiltIn { recipe }))
    }

    /// Returns the forms of the text of all kinds, such as `uci:PATH`.
    pub fn forms() -> impl Iterator<Item = &'static str> {
        KINDS.iter().flat_map(|kind| kind.forms).copied()
    }

    /// Checks that the agent can play a game.
    ///
    /// # Errors
    /// The reason in a sentence.
    pub fn check(&self, game: &GameType) -> Result<(), String> {
        self.recipe.check(game)
    }

    /// Checks that the environment has the key of a language model.
    ///
    /// # Errors
    /// The reason in a sentence, with the name of the variable.
    pub fn check_environment(&self) -> Result<(), String> {
        self.recipe.check_environment()
    }

    /// Creates the bot for one game. Equal numbers `random` give equal play.
    ///
    /// # Errors
    /// If the agent can't play the game or isn't a bot: the reason in a sentence.
    pub fn bot(&self, game: &GameType, random: u64) -> Result<Box<dyn Bot>, String> {
        self.recipe.bot(game, random)
    }

    pub fn time_control(&self) -> Option<TimeControl> {
        self.recipe.time_control()
    }

    /// Returns the agent's own limits of its first answers.
    pub fn start_limits(&self) -> StartLimits {
        self.recipe.start_limits()
    }

    /// Returns true if the agent's program can play another match after its first one.
    pub(crate) fn stays(&self) -> bool {
        self.recipe.stays()
    }

    pub fn command(&self) -> Option<&Command> {
        self.recipe.command()
    }

    /// Prepares the services of the program in a match, and completes its specification.
    ///
    /// # Errors
    /// The reason in a sentence.
    pub(crate) fn prepare(&self, game: &'static GameType, spec: &mut Spec) -> Result<Option<SeatServices>, String> {
        self.recipe.prepare(game, spec)
    }
}

// The text determines the agent.
impl PartialEq for BuiltIn {
    fn eq(&self, other: &BuiltIn) -> bool {
        self.recipe.text() == other.recipe.text()
    }
}

impl Eq for BuiltIn {}

impl fmt::Display for BuiltIn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.recipe.text())
    }
}

/// The means of a built-in agent in a match.
#[derive(Debug, Default)]
pub(crate) struct Means {
    /// The pipes to the process of [`BuiltIn::command`].
    pub(crate) program: Option<Program>,
    /// The receiver of the pipes after the match, if the program stays.
    pub(crate) give_back: Option<Sender<Program>>,
    /// The services of [`BuiltIn::prepare`].
    pub(crate) services: Option<SeatServices>,
}

/// Starts the thread of a built-in agent for a match of `game` with these time limits.
///
/// # Errors
/// If the agent can't play the game, or the thread can't be started.
pub(crate) fn start(
    agent: &BuiltIn,
    game: &'static GameType,
    limits: TimeLimits,
    means: Means,
) -> io::Result<(Link, ThreadBody)> {
    agent.check(game).map_err(io::Error::other)?;
    let notices = Notices::default();
    let seating = Seating { recipe: agent.recipe.clone(), game, limits, notices: notices.clone(), means, name: None };
    thread_body::start("built-in agent", notices, move |messages, answers| {
        match answer_all(seating, messages, answers) {
            Ok(()) | Err(PlayerError::ProgramEnded) => Ok(()),
            Err(PlayerError::Other(sentence)) => Err(sentence),
            Err(PlayerError::Flood) => {
                // A line that is too long: the match detects it, and names the agent's fault.
                let _ = answers.write_all(&vec![b' '; MAX_LINE + 2]);
                Ok(())
            }
        }
    })
}

/// A built-in agent that has no player yet.
struct Seating {
    recipe: Arc<dyn Recipe>,
    game: &'static GameType,
    limits: TimeLimits,
    notices: Notices,
    means: Means,
    /// The name from the handshake.
    name: Option<String>,
}

impl Seating {
    fn greet(&mut self) -> Result<(), PlayerError> {
        if let Some(program) = &mut self.means.program {
            self.name = self.recipe.greet(program, &self.notices.awaited)?;
        }
        Ok(())
    }

    fn player(&mut self, id: &str, config: &Value) -> Result<Box<dyn BuiltInPlayer>, String> {
        let Seating { game, limits, ref notices, .. } = *self;
        let (program, services) = (self.means.program.take(), self.means.services.take());
        self.recipe.player(SeatStart { game, id, config, limits, notices, program, services })
    }
}

/// Answers messages until the match closes its pipe.
fn answer_all(mut seating: Seating, messages: File, answers: &mut File) -> Result<(), PlayerError> {
    let mut seated: Option<(String, Box<dyn BuiltInPlayer>)> = None;
    for message in BufReader::new(messages).lines() {
        let Ok(message) = message else { break };
        let message: Map<String, Value> =
            serde_json::from_str(&message).map_err(|error| format!("received no JSON object: {error}"))?;
        let mut reply = Map::new();
        if message.contains_key("stop") {
            break;
        }
        if message.contains_key("ping") {
            seating.greet()?;
            reply.insert("pong".to_owned(), "pong".into());
        }
        if let Some(id) = message.get("set_agent_id").and_then(Value::as_str) {
            let config = message.get("config").cloned().unwrap_or_default();
            seated = Some((id.to_owned(), seating.player(id, &config)?));
            reply.insert("agent_id".to_owned(), id.into());
            reply.insert("agent_name".to_owned(), seating.name.as_deref().unwrap_or(seating.recipe.text()).into());
        }
        if let (Some(state), Some((id, player))) = (state_in(&message), &mut seated) {
            let PlayerAnswer { actions, info } = player.actions(state)?;
            reply.insert("agent_id".to_owned(), id.as_str().into());
            reply.insert("actions".to_owned(), actions.into());
            if let Some(info) = info {
                reply.insert("info".to_owned(), info);
            }
        }
        let mut line = Value::Object(reply).to_string().into_bytes();
        line.push(b'\n');
        if answers.write_all(&line).is_err() {
            break;
        }
    }
    let program = match seated {
        Some((_, player)) => player.stop(),
        None => seating.means.program,
    };
    if let (Some(program), Some(give_back)) = (program, seating.means.give_back) {
        // After a failed match, nothing waits for the program.
        let _ = give_back.send(program);
    }
    Ok(())
}

/// Returns the state in a message of any dialect.
fn state_in(message: &Map<String, Value>) -> Option<&Map<String, Value>> {
    match message.get("world_state") {
        Some(state) => state.as_object(),
        None => message.contains_key("epoch").then_some(message),
    }
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;

    #[track_caller]
    fn check(text: &str, game: &str, expected: Expect) {
        let agent = BuiltIn::parse(text, "").unwrap();
        let checked = agent.and_then(|agent| agent.check(arena_games::game(game).unwrap()).map(|()| agent.to_string()));
        expected.assert_eq(&checked.unwrap_or_else(|error| format!("error: {error}")));
    }

    #[test]
    fn built_in_agents_have_names() {
        check("house", "snake", expect!["house"]);
        check("house:snake", "snake", expect!["house:snake"]);
        check("house:food_catcher:easy", "food_catcher", expect!["house:food_catcher:easy"]);
        check("house:leaky", "snake", expect!["error: house:leaky cannot play snake"]);
        check("house:psi:leaky", "psi", expect!["house:psi:leaky"]);
        check("house:chess", "snake", expect!["error: house:chess plays chess, but the game is snake"]);
        check("house:poker", "snake", expect!["error: there is no game `poker` for house:poker"]);
        check("random", "psi", expect!["random"]);
        check("random:5", "psi", expect!["error: `random` has no options, so `random:5` names no agent"]);
        check("model:m@ollama", "chess", expect!["model:m@ollama"]);
        check("model:m:8b@http://127.0.0.1:1/v1", "psi", expect!["model:m:8b@http://127.0.0.1:1/v1"]);
        check("model:", "psi", expect!["error: `` has no model; give NAME, NAME@URL or NAME@PRESET"]);
        check(
            "model:m@http://me:secret@a.example",
            "psi",
            expect![
                "error: the URL of the endpoint contains a name or password; give the key in an environment variable"
            ],
        );
        assert!(BuiltIn::parse("./house", "").is_none());
    }

    #[test]
    fn every_game_has_both_bots() {
        for game in arena_games::games() {
            for text in ["house", "house:easy", "random"] {
                let agent = BuiltIn::parse(text, "").unwrap().unwrap();
                assert_eq!(agent.check(game), Ok(()), "{} {text}", game.name);
            }
        }
    }

    #[test]
    fn a_language_model_is_no_bot_and_needs_no_key_of_a_local_endpoint() {
        let agent = BuiltIn::parse("model:m@ollama", "").unwrap().unwrap();
        let error = agent.bot(arena_games::game("psi").unwrap(), 1).err().unwrap();
        expect!["model:m@ollama is a language model, not a house bot"].assert_eq(&error);
        assert_eq!(agent.check_environment(), Ok(()));
    }

    #[test]
    fn states_of_all_dialects_are_found() {
        let state = |text: &str| {
            let message: Map<String, Value> = serde_json::from_str(text).unwrap();
            state_in(&message).map(|state| state["epoch"].clone())
        };
        assert_eq!(state(r#"{"world_state":{"epoch":2}}"#), Some(2.into()));
        assert_eq!(state(r#"{"world_state":{"epoch":2},"epoch":2}"#), Some(2.into()));
        assert_eq!(state(r#"{"epoch":3,"ping":"ping"}"#), Some(3.into()));
        assert_eq!(state(r#"{"ping":"ping"}"#), None);
    }
}
