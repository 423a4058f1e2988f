//! Agents on the seats of a fork.

use arena_house::Style;
use arena_llm::ModelAddress;
use arena_llm::prompt::Fence;
use arena_model::{MemorySession, Seat, Seed};
use arena_players::http::random_hex;
use arena_players::{BotKind, BotPlayer, GameEnd, Halt, ModelPlayer, PlayPolicy, PlayedGame, Player, play};

use crate::exit::{Exit, Failure};

/// The time after which a fork without actions ends as abandoned: the default of a server.
const IDLE_MS: i64 = 30 * 60 * 1000;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ForkAgent {
    Bot(BotKind),
    Model(ModelAddress),
}

impl ForkAgent {
    /// Parses the name of an agent.
    ///
    /// # Errors
    /// A usage error with the names that exist.
    pub fn parse(text: &str) -> Result<ForkAgent, Failure> {
        match text.split_once(':').unwrap_or((text, "")) {
            ("house", _) => match Style::of_agent(text) {
                Some(style) => Ok(ForkAgent::Bot(BotKind::House(style))),
                None => {
                    let agents = Style::agents();
                    Err(Failure::usage(format_args!("there is no house bot `{text}`; use one of {agents}")))
                }
            },
            ("random", "") => Ok(ForkAgent::Bot(BotKind::Random)),
            ("model", address) => ModelAddress::parse(address).map(ForkAgent::Model).map_err(Failure::usage),
            _ => Err(Failure::usage(format_args!(
                "`{text}` cannot play in a fork; use house, house:easy, random or model:NAME@URL"
            ))),
        }
    }

    /// Creates the player of a seat. `seed` determines the choices of a bot.
    ///
    /// # Errors
    /// If there is no bot for the challenge, or the model's key is missing.
    pub fn player(&self, session: &MemorySession, seat: Seat, seed: &Seed) -> Result<Box<dyn Player>, Failure> {
        match self {
            ForkAgent::Model(address) => {
                let player = ModelPlayer::connect(address, session, seat, Fence::of_random(&random_hex()?));
                Ok(Box::new(player.map_err(Failure::usage)?))
            }
            ForkAgent::Bot(kind) => {
                let seed = seed.derive(&format!("fork/bot/{}", seat.0));
                let options = &session.session().facts.options;
                let bot = BotPlayer::new(*kind, &**session.challenge(), options, &seed);
                Ok(Box::new(bot.map_err(Failure::usage)?))
            }
        }
    }
}

/// Plays a session on to its end.
///
/// # Errors
/// If a player or the rules fail.
pub fn play_on(session: MemorySession, players: Vec<Box<dyn Player>>) -> Result<MemorySession, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| Failure::cannot("start the runtime", error))?;
    let played = runtime.block_on(play(session, players, &PlayPolicy::IN_TURN)).map_err(failure_of)?;
    let PlayedGame { mut session, end, .. } = played;
    // A session with a deadline isn't abandoned by inactivity, so the fork stays unfinished.
    if end == GameEnd::Stalled && session.session().deadline.is_none() {
        session.abandon(IDLE_MS).map_err(|error| failure_of(Halt::Failed(error.to_string())))?;
    }
    Ok(session)
}

fn failure_of(halt: Halt) -> Failure {
    let cannot_go_on = |exit, why: &str| Failure::new(exit, format_args!("the fork cannot go on: {why}"));
    match halt {
        Halt::Suspended { agent, why, .. } => {
            Failure::new(Exit::ModelFailed, format_args!("the language model {agent} failed: {why}"))
        }
        Halt::Failed(why) => cannot_go_on(Exit::FaultyChallenge, &why),
        Halt::Broken(why) => cannot_go_on(Exit::Internal, &why),
        Halt::Budget(_) | Halt::Stopped => cannot_go_on(Exit::Internal, "it was stopped"),
    }
}

#[cfg(test)]
mod tests {
    use arena_house::{Strength, Style};

    use super::*;

    #[test]
    fn agents_have_names() {
        let model = ModelAddress::parse("m@ollama").unwrap();
        for (text, expected) in [
            ("house", Ok(ForkAgent::Bot(BotKind::House(Style::default())))),
            ("house:easy", Ok(ForkAgent::Bot(BotKind::House(Strength::Easy.into())))),
            ("random", Ok(ForkAgent::Bot(BotKind::Random))),
            ("model:m@ollama", Ok(ForkAgent::Model(model))),
            ("house:strong", Err("there is no house bot `house:strong`")),
            ("random:5", Err("`random:5` cannot play in a fork")),
            ("./bot", Err("`./bot` cannot play in a fork")),
            ("model:", Err("`` has no model")),
        ] {
            match (ForkAgent::parse(text), expected) {
                (Ok(agent), Ok(expected)) => assert_eq!(agent, expected, "{text}"),
                (Err(error), Err(part)) => assert!(error.sentence().contains(part), "{text}: {}", error.sentence()),
                (found, _) => panic!("{text}: {found:?}"),
            }
        }
    }
}
