//! House bots: the opponents that a server offers, and the baselines of evaluations.
//!
//! A [`Bot`] sees the messages that its player may read, and returns its next step. The caller performs the step and
//! keeps the time. This crate is pure: all randomness derives from a number, and a bot has no clock.
//!
//! `talkers` has the bots of the challenges of words, [`psi`] those of `psi`, and `board` the bots of games. Each of the
//! [`CHARACTERS`] plays all challenges of words. The [`FormBot`] plays all scripted challenges that declare forms.
//! `random` has a bot for each built-in challenge that chooses among valid actions at random. [`MatchBot`] seats a bot
//! in a match.

mod board;
mod characters;
mod forms;
mod match_bot;
pub mod psi;
mod random;
mod talkers;
#[cfg(test)]
mod tests;

use arena_model::{ChallengeMetadata, ChallengeType, MethodForm, Seed, SeedRng};
use arena_wire::Message;
use serde_json::Value;

pub use arena_model::Step;
pub use characters::{CHARACTERS, Character};
pub use forms::FormBot;
pub use match_bot::{MatchBot, number_of};

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum Strength {
    /// A bot that a beginner can beat.
    Easy,
    #[default]
    Normal,
}

impl Strength {
    pub fn from_name(name: &str) -> Option<Strength> {
        match name {
            "easy" => Some(Strength::Easy),
            "normal" => Some(Strength::Normal),
            _ => None,
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            Strength::Easy => "easy",
            Strength::Normal => "normal",
        }
    }
}

/// The style of a house bot: what follows `house:` in an agent's name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Style {
    Strength(Strength),
    Character(&'static Character),
}

impl Style {
    pub fn from_name(name: &str) -> Option<Style> {
        let strength = Strength::from_name(name).map(Style::Strength);
        strength.or_else(|| CHARACTERS.iter().find(|character| character.name == name).map(Style::Character))
    }

    /// Returns the style of an agent `house` or `house:NAME`; `None` for other agents.
    pub fn of_agent(agent: &str) -> Option<Style> {
        match agent.strip_prefix("house")? {
            "" => Some(Style::default()),
            name => Style::from_name(name.strip_prefix(':')?),
        }
    }

    /// Returns the names of all house bots as agents, for lists in messages.
    pub fn agents() -> String {
        let characters = CHARACTERS.iter().map(|character| format!("house:{}", character.name));
        ["house".to_owned(), "house:easy".to_owned()].into_iter().chain(characters).collect::<Vec<_>>().join(", ")
    }
}

impl Default for Style {
    fn default() -> Style {
        Style::Strength(Strength::default())
    }
}

impl From<Strength> for Style {
    fn from(strength: Strength) -> Style {
        Style::Strength(strength)
    }
}

/// The data from which a bot chooses its next step. The messages are redacted for the bot's player: a message that it
/// may not read has its parties, but no text.
#[derive(Debug, Clone, Copy)]
pub struct Heard<'h> {
    /// The bot's public name.
    pub me: &'h str,
    /// The messages of the operator channel, in the order of their indexes.
    pub operator: &'h [Message],
    /// The messages of the chat, in the order of their indexes.
    pub chat: &'h [Message],
    /// True if nothing was written for so long that the bot shouldn't wait for others. One call is enough.
    pub is_late: bool,
}

/// A player of one seat in one session.
pub trait Bot: Send {
    /// Returns the next step, or `None` while the bot waits for others. The caller performs it before the next call.
    fn next(&mut self, heard: &Heard<'_>) -> Option<Step>;

    /// Informs the bot that its last step was refused and changed nothing. The bot doesn't repeat the step before the
    /// next message, unless it is late.
    fn refused(&mut self, _step: &Step) {}

    /// Returns true if the bot needs each message of the operator only once and no chat. The caller may then pass new
    /// messages only, since the states of a long game are large.
    fn needs_news_only(&self) -> bool {
        false
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BotInfo {
    /// The name, unique among the bots of a challenge.
    pub name: &'static str,
    /// The strategy, which follows "a house bot that".
    pub motto: &'static str,
}

pub fn info(challenge: &str, strength: Strength) -> Option<BotInfo> {
    if challenge == "psi" {
        return Some(psi::info(strength));
    }
    if let Some(talker) = talkers::find(challenge) {
        return Some(talker.info(strength));
    }
    board::find(challenge, strength).map(|player| BotInfo { name: player.name, motto: player.motto })
}

/// Creates the bot of a built-in challenge for one game. Equal numbers `random` give equal play. Returns `None` if the
/// challenge isn't built in, or isn't one of a character.
pub fn bot(challenge: &str, style: impl Into<Style>, random: u64) -> Option<Box<dyn Bot>> {
    let strength = match style.into() {
        Style::Strength(strength) => strength,
        Style::Character(character) => return characters::player(challenge, character),
    };
    if challenge == "psi" {
        return Some(psi::player(strength, random));
    }
    if let Some(talker) = talkers::find(challenge) {
        return Some(talker.player(strength, random));
    }
    board::find(challenge, strength).map(|player| board::board_bot(player, 0))
}

/// Creates the bot of a built-in challenge as [`bot`] does. Its games of chess depend on `random` too.
pub fn varied_bot(challenge: &str, strength: Strength, random: u64) -> Option<Box<dyn Bot>> {
    let board = board::find(challenge, strength).map(|player| board::board_bot(player, random));
    board.or_else(|| bot(challenge, strength, random))
}

/// Creates the bot of any challenge for one game: that of [`bot`], or for scripts the one that fills forms. `options`
/// are the session's. Returns `None` if there is no such bot.
pub fn house_bot(challenge: &dyn ChallengeType, options: &Value, style: Style, random: u64) -> Option<Box<dyn Bot>> {
    let own = if challenge.script().is_none() { bot(challenge.id(), style, random) } else { None };
    let forms = Some(challenge.forms()).filter(|forms| !forms.is_empty() && matches!(style, Style::Strength(_)));
    own.or_else(|| Some(form_bot(challenge.metadata_with(options).into_owned(), forms?.to_vec(), random)))
}

/// Creates the bot that fills a challenge's forms, for one game. Equal numbers `random` give equal play.
pub fn form_bot(metadata: ChallengeMetadata, forms: Vec<MethodForm>, random: u64) -> Box<dyn Bot> {
    Box::new(FormBot::new(metadata, forms, random))
}

/// Creates a bot that chooses among valid actions at random, for one game. Equal numbers `random` give equal play.
/// Returns `None` if the challenge is neither built in nor declares forms.
pub fn random_bot(challenge: &dyn ChallengeType, random: u64) -> Option<Box<dyn Bot>> {
    if challenge.script().is_none()
        && let Some(bot) = random::find(challenge.id(), Seed::from_number(random).rng("house/random"))
    {
        return Some(bot);
    }
    let forms = forms_of(challenge);
    (!forms.is_empty()).then(|| form_bot(challenge.metadata().clone(), forms, random))
}

/// Returns the forms of a challenge's methods, in the order of the methods.
pub fn forms_of(challenge: &dyn ChallengeType) -> Vec<MethodForm> {
    let form = |method: &str| challenge.forms().iter().find(|form| form.method == method).cloned();
    challenge.metadata().methods.iter().filter_map(|method| form(&method.name)).collect()
}

/// The memory of a refusal, for bots whose next step depends on the messages alone.
#[derive(Debug, Default)]
struct RefusalGuard {
    is_refused: bool,
    /// The number of messages at the last step.
    count: usize,
}

impl RefusalGuard {
    /// Returns true if the last step was refused, and nothing has changed since.
    fn blocks(&mut self, heard: &Heard<'_>) -> bool {
        let count = heard.operator.len() + heard.chat.len();
        let is_blocked = self.is_refused && self.count == count && !heard.is_late;
        *self = RefusalGuard { is_refused: is_blocked, count };
        is_blocked
    }

    fn record(&mut self) {
        self.is_refused = true;
    }
}

/// Returns the words of a text, in lower case.
fn words_of(text: &str) -> Vec<String> {
    let text = text.to_lowercase().replace('’', "'");
    let words = text.split(|char: char| !char.is_alphanumeric() && char != '\'');
    words.filter(|word| !word.is_empty()).map(str::to_owned).collect()
}

/// Draws an index below `count`, which isn't 0.
fn below(count: usize, rng: &mut SeedRng) -> usize {
    usize::try_from(rng.below(count as u64)).unwrap_or_default()
}

/// The operator's answer to an action before the start of a session.
const NOT_RUNNING: &str = "ERR_GAME_NOT_RUNNING";

impl<'h> Heard<'h> {
    /// Returns the operator's texts that the bot may read, in order.
    fn operator_texts(&self) -> impl Iterator<Item = &'h str> + use<'h> {
        let from_operator = self.operator.iter().filter(|message| message.from == "operator");
        from_operator.map(|message| message.content.as_str())
    }

    /// Returns the recipients of the operator's private messages, in order. The messages themselves may be redacted.
    fn recipients(&self) -> impl Iterator<Item = &'h str> + use<'h> {
        self.operator.iter().filter(|message| message.from == "operator").filter_map(|message| message.to.as_deref())
    }

    /// Returns true if another player has joined, which the operator's private message to it shows.
    fn has_opponent(&self) -> bool {
        self.recipients().any(|player| player != self.me)
    }

    fn has_acted(&self) -> bool {
        self.operator.iter().any(|message| message.from == self.me)
    }

    /// Returns true if the bot has sent a chat message to all players.
    fn has_spoken(&self) -> bool {
        self.chat.iter().any(|message| message.from == self.me && message.to.is_none())
    }

    /// Returns true if another player has guessed, in challenges in which the operator announces guesses.
    fn has_opponent_guessed(&self) -> bool {
        self.operator_texts().any(|text| text.ends_with("sent a guess") && !text.contains(self.me))
    }

    /// Returns the number of messages of the operator channel that aren't the result of an action before the start.
    fn count(&self) -> usize {
        self.operator.iter().filter(|message| !message.content.starts_with(NOT_RUNNING)).count()
    }
}
