//! Agents that this program plays itself, such as `house:snake`, `random` and `model:NAME@URL`. A kind of agent is a
//! file in this folder and an entry of [`KINDS`].

mod bots;
mod model;

use std::fmt;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Write};
use std::sync::Arc;

use arena_house::Bot;
use arena_model::{GameType, TimeLimits};
use serde_json::{Map, Value};

use crate::link::Link;
use crate::thread_body::{self, Outage, ThreadBody};

/// A function that parses the whole name of a built-in agent, and the part after the colon.
type ReadRecipe = fn(&str, &str) -> Result<Arc<dyn Recipe>, String>;

/// A kind of built-in agent.
struct Kind {
    /// The word before the colon.
    word: &'static str,
    /// Parses the whole text and the part after the colon.
    read: ReadRecipe,
}

/// The kinds of built-in agents.
const KINDS: [Kind; 3] = [
    Kind { word: "house", read: bots::read_house },
    Kind { word: "random", read: bots::read_random },
    Kind { word: "model", read: model::read_model },
];

/// An agent of one kind, of which each match gets a player. All errors are sentences.
trait Recipe: fmt::Debug + Send + Sync {
    /// Checks that the agent can play a game.
    fn check(&self, game: &GameType) -> Result<(), String>;

    /// Checks that the environment has what the agent needs, such as a key.
    fn check_environment(&self) -> Result<(), String> {
        Ok(())
    }

    /// Creates the bot for one game. Equal numbers `random` give equal play.
    fn bot(&self, game: &GameType, random: u64) -> Result<Box<dyn Bot>, String>;

    /// Creates the player of a match.
    fn player(&self, start: SeatStart<'_>) -> Result<Box<dyn BuiltInPlayer>, String>;
}

/// The start of a match for one agent.
struct SeatStart<'s> {
    game: &'static GameType,
    /// The agent's id.
    id: &'s str,
    /// The game's constants.
    config: &'s Value,
    limits: TimeLimits,
    /// The place for failures that aren't the agent's fault.
    outage: &'s Outage,
}

/// A built-in agent in one match.
trait BuiltInPlayer {
    /// Returns the actions in a state. An error ends the agent; it is a description in words that follow the agent's
    /// name.
    fn actions(&mut self, state: &Map<String, Value>) -> Result<Vec<Value>, String>;
}

/// A built-in agent.
#[derive(Debug, Clone)]
pub struct BuiltIn {
    text: String,
    recipe: Arc<dyn Recipe>,
}

impl BuiltIn {
    /// Parses the name of a built-in agent. Returns `None` if the text names no kind of built-in agent.
    pub fn parse(text: &str) -> Option<Result<BuiltIn, String>> {
        let (word, rest) = text.split_once(':').unwrap_or((text, ""));
        let kind = KINDS.iter().find(|kind| kind.word == word)?;
        Some((kind.read)(text, rest).map(|recipe| BuiltIn { text: text.to_owned(), recipe }))
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
}

// The text determines the agent.
impl PartialEq for BuiltIn {
    fn eq(&self, other: &BuiltIn) -> bool {
        self.text == other.text
    }
}

impl Eq for BuiltIn {}

impl fmt::Display for BuiltIn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// Starts the thread of a built-in agent for a match of `game` with these time limits.
///
/// # Errors
/// If the agent can't play the game, or the thread can't be started.
pub fn start(agent: &BuiltIn, game: &'static GameType, limits: TimeLimits) -> io::Result<(Link, ThreadBody)> {
    agent.check(game).map_err(io::Error::other)?;
    let (agent, outage) = (agent.clone(), Outage::default());
    let failures = outage.clone();
    thread_body::start("built-in agent", outage, move |messages, answers| {
        let start =
            |id: &str, config: &Value| agent.recipe.player(SeatStart { game, id, config, limits, outage: &failures });
        answer_all(&agent.text, start, messages, answers)
    })
}

/// Answers messages until the match closes its pipe. `start` creates the player from the agent's id and the config.
fn answer_all(
    name: &str,
    start: impl Fn(&str, &Value) -> Result<Box<dyn BuiltInPlayer>, String>,
    messages: File,
    answers: &mut File,
) -> Result<(), String> {
    let mut seated: Option<(String, Box<dyn BuiltInPlayer>)> = None;
    for message in BufReader::new(messages).lines() {
        let Ok(message) = message else { return Ok(()) };
        let message: Map<String, Value> =
            serde_json::from_str(&message).map_err(|error| format!("received no JSON object: {error}"))?;
        let mut reply = Map::new();
        if message.contains_key("stop") {
            return Ok(());
        }
        if message.contains_key("ping") {
            reply.insert("pong".to_owned(), "pong".into());
        }
        if let Some(id) = message.get("set_agent_id").and_then(Value::as_str) {
            let config = message.get("config").cloned().unwrap_or_default();
            seated = Some((id.to_owned(), start(id, &config)?));
            reply.insert("agent_id".to_owned(), id.into());
            reply.insert("agent_name".to_owned(), name.into());
        }
        if let (Some(state), Some((id, player))) = (state_in(&message), &mut seated) {
            let actions = player.actions(state)?;
            reply.insert("agent_id".to_owned(), id.as_str().into());
            reply.insert("actions".to_owned(), actions.into());
        }
        let mut line = Value::Object(reply).to_string().into_bytes();
        line.push(b'\n');
        if answers.write_all(&line).is_err() {
            return Ok(());
        }
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
        let agent = BuiltIn::parse(text).unwrap();
        let checked = agent.and_then(|agent| agent.check(arena_games::game(game).unwrap()).map(|()| agent.to_string()));
        expected.assert_eq(&checked.unwrap_or_else(|error| format!("error: {error}")));
    }

    #[test]
    fn built_in_agents_have_names() {
        check("house", "snake", expect!["house"]);
        check("house:snake", "snake", expect!["house:snake"]);
        check("house:food_catcher:easy", "food_catcher", expect!["house:food_catcher:easy"]);
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
        assert!(BuiltIn::parse("./house").is_none());
    }

    #[test]
    fn every_game_has_both_bots() {
        for game in arena_games::games() {
            for text in ["house", "house:easy", "random"] {
                let agent = BuiltIn::parse(text).unwrap().unwrap();
                assert_eq!(agent.check(game), Ok(()), "{} {text}", game.name);
            }
        }
    }

    #[test]
    fn a_language_model_is_no_bot_and_needs_no_key_of_a_local_endpoint() {
        let agent = BuiltIn::parse("model:m@ollama").unwrap().unwrap();
        let error = agent.bot(arena_games::game("psi").unwrap(), 1).err().unwrap();
        expect!["model:m@ollama is a language model, not a bot"].assert_eq(&error);
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
