//! The bot for all scripted challenges that declare forms. It knows no rules: it fills the forms with random valid
//! values, in the order of the methods, until the operator accepts an action.
//!
//! Texts are taken from the examples in a method's description, and from the lines of the operator's private messages
//! that look like an example.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use arena_model::{FieldValues, MethodForm, Seed, SeedRng};
use arena_server::DeclaredForms;
use arena_wire::{Message, Messages};
use serde::Deserialize;

use super::PACE;
use super::seat::{TakenSeat, WAIT_S};
use super::talk::extend;
use crate::client::{CallError, Read};

/// The pause between two tries in a turn.
const RETRY_PACE: Duration = Duration::from_millis(200);

/// The maximum number of tries with one method in a turn, and with all methods that have several tries.
const TRIES_PER_METHOD: usize = 3;
const TRIES: usize = 12;

/// The time without a new message after which the bot takes another turn. The time doubles with each such turn.
const NUDGE: Duration = Duration::from_secs(15);

/// The time without a new message after which the bot leaves the session.
const IDLE_TIMEOUT: Duration = Duration::from_secs(15 * 60);

/// The maximum number of accepted actions in a game, for challenges in which bots could answer each other forever.
const MAX_ACTIONS: usize = 100;

/// The number of sessions in which the bot searches for its own.
const SEARCHED_SESSIONS: u32 = 100;

/// The texts for fields without an example.
const WORDS: [&str; 3] = ["yes", "no", "hello"];

/// The difference of the bounds of a number with at most one bound.
const SPAN: i64 = 100;

/// The bot of one challenge.
#[derive(Debug)]
pub struct FormBot {
    challenge: String,
    declared: DeclaredForms,
}

/// The data from which the bot chooses values.
#[derive(Debug)]
struct FormFacts<'f> {
    /// The operator's private messages to the bot.
    told: &'f [&'f str],
    /// The number of players.
    players: usize,
    /// The bot's seat, from 0, if known.
    own: Option<usize>,
}

/// A page of the list of sessions.
#[derive(Deserialize)]
struct RecentSessions {
    challenges: Vec<RecentSession>,
}

#[derive(Deserialize)]
struct RecentSession {
    id: String,
    state: RecentState,
}

#[derive(Deserialize)]
struct RecentState {
    status: String,
    players: Vec<String>,
}

impl FormBot {
    /// The description of the strategy, for people.
    pub const MOTTO: &str = "fills the forms of a challenge with random values, without knowing the rules";

    /// Creates the bot for a challenge.
    pub fn new(challenge: &str, declared: DeclaredForms) -> FormBot {
        FormBot { challenge: challenge.to_owned(), declared }
    }

    /// Plays a seat until the game is over or `stop` is set. The bot takes a turn when the operator has written
    /// something that isn't a result of its own action, or nothing for some time.
    pub fn play(&self, seat: &TakenSeat, stop: &AtomicBool) -> Result<(), CallError> {
        let read =
            |read: Read| -> Result<Messages, CallError> { seat.arena.operator_messages(&seat.session, read)?.read() };
        let mut rng = Seed::from_number(0).rng(&seat.invite);
        let (mut messages, mut players) = (Vec::<Message>::new(), None);
        let (mut is_due, mut actions) = (true, 0);
        let (mut news_at, mut turn_at, mut nudge) = (Instant::now(), Instant::now(), NUDGE);
        while !stop.load(Ordering::Relaxed) && news_at.elapsed() < IDLE_TIMEOUT && actions < MAX_ACTIONS {
            let known = messages.len();
            extend(&mut messages, read, WAIT_S)?;
            if messages.iter().any(is_end) {
                return Ok(());
            }
            if messages.len() > known {
                (is_due, news_at, nudge) = (true, Instant::now(), NUDGE);
            } else if turn_at.elapsed() >= nudge {
                (is_due, nudge) = (true, nudge * 2);
            }
            if !is_due {
                continue;
            }
            if players.is_none() {
                players = self.find_players(seat)?;
            }
            // The game hasn't begun.
            let Some(players) = &players else { continue };
            thread::sleep(PACE);
            is_due = false;
            if self.take_turn(seat, players, &messages, &mut rng)? {
                actions += 1;
                // The response to the own action is no reason for another one, unlike an action of another player.
                let known = messages.len();
                extend(&mut messages, read, 0)?;
                is_due =
                    messages[known..].iter().any(|message| message.from != "operator" && message.from != seat.invite);
            }
            turn_at = Instant::now();
        }
        Ok(())
    }

    /// Returns the players' public names in the order of their seats; `None` while the session waits for players. The
    /// list is empty if the session isn't among the latest ones.
    fn find_players(&self, seat: &TakenSeat) -> Result<Option<Vec<String>>, CallError> {
        let page = seat.arena.list(Some(&self.challenge), None, Some(SEARCHED_SESSIONS), None)?;
        let RecentSessions { challenges } = page.read()?;
        let own = challenges.into_iter().find(|session| session.id == seat.session).map(|session| session.state);
        Ok(match own {
            Some(state) if state.status == "open" => None,
            Some(state) => Some(state.players),
            None => Some(Vec::new()),
        })
    }

    /// Tries actions until one is accepted. Returns false if all are refused.
    fn take_turn(
        &self,
        seat: &TakenSeat,
        players: &[String],
        messages: &[Message],
        rng: &mut SeedRng,
    ) -> Result<bool, CallError> {
        let is_private = |message: &&Message| {
            message.from == "operator" && message.to.as_deref() == Some(seat.invite.as_str()) && !message.redacted
        };
        let told: Vec<&str> = messages.iter().filter(is_private).map(|message| message.content.as_str()).collect();
        let facts = FormFacts {
            told: &told,
            players: players.len().max(self.declared.metadata.players),
            own: players.iter().position(|player| *player == seat.invite),
        };
        for (method, content) in self.tries(&facts, rng) {
            match seat.arena.act(&seat.session, method, &content) {
                Ok(_) => return Ok(true),
                Err(CallError::Refused { .. }) => thread::sleep(RETRY_PACE),
                Err(error) => return Err(error),
            }
        }
        Ok(false)
    }

    /// Returns the actions of a turn: methods and contents, in the order of the tries.
    fn tries(&self, facts: &FormFacts<'_>, rng: &mut SeedRng) -> Vec<(&str, String)> {
        let DeclaredForms { forms, metadata } = &self.declared;
        let most = (TRIES / forms.len().max(1)).clamp(1, TRIES_PER_METHOD);
        let mut tries = Vec::new();
        for form in forms.iter().filter(|form| form.method != "resign") {
            let description = metadata.methods.iter().find(|method| method.name == form.method);
            let texts = match &form.fields[..] {
                [_] => texts(description.map_or("", |method| &method.description), facts.told, rng),
                _ => words(rng),
            };
            for attempt in 0..most {
                let Some(content) = fill(form, facts, &texts, attempt, rng) else { continue };
                let action = (form.method.as_str(), content);
                if !tries.contains(&action) {
                    tries.push(action);
                }
            }
        }
        tries
    }
}

fn is_end(message: &Message) -> bool {
    message.from == "operator" && message.content.starts_with("Game ended.")
}

/// Fills a form. Every second attempt leaves out the optional fields. Returns `None` if a needed field has no value.
fn fill(
    form: &MethodForm,
    facts: &FormFacts<'_>,
    texts: &[String],
    attempt: usize,
    rng: &mut SeedRng,
) -> Option<String> {
    let mut values: Vec<(&str, String)> = Vec::new();
    for field in &form.fields {
        if attempt % 2 == 1 && !form.content.needs(&field.name) {
            continue;
        }
        let value = match &field.values {
            FieldValues::Number { min, max } => Some(number(*min, *max, rng).to_string()),
            FieldValues::Text { max } => {
                let most = max.map_or(usize::MAX, |max| usize::try_from(max).unwrap_or(usize::MAX));
                texts.get(attempt % texts.len().max(1)).map(|text| text.chars().take(most).collect())
            }
            FieldValues::Choice(choices) => pick(choices.clone(), &values, rng),
            FieldValues::Seat => {
                let others = (0..facts.players).filter(|seat| facts.own != Some(*seat));
                pick(others.map(|seat| (seat + 1).to_string()).collect(), &values, rng)
            }
        };
        values.extend(value.map(|value| (field.name.as_str(), value)));
    }
    let value = |name: &str| values.iter().find(|(field, _)| *field == name).map(|(_, value)| value.as_str());
    form.content.fill(&value).ok()
}

/// Draws a number within the bounds. A missing bound is near the other bound, or near 0.
fn number(min: Option<i64>, max: Option<i64>, rng: &mut SeedRng) -> i64 {
    let low = min.unwrap_or_else(|| max.map_or(0, |max| if max < 0 { max.saturating_sub(SPAN) } else { 0 }));
    let high = max.unwrap_or_else(|| low.saturating_add(SPAN));
    low.saturating_add_unsigned(rng.below(high.abs_diff(low).saturating_add(1)))
}

/// Draws a text that no other field of the form has, if there is one: forms often ask for an order of things.
fn pick(from: Vec<String>, values: &[(&str, String)], rng: &mut SeedRng) -> Option<String> {
    let is_free = |text: &String| values.iter().all(|(_, value)| value != text);
    let free: Vec<String> = from.iter().filter(|text| is_free(text)).cloned().collect();
    let mut from = if free.is_empty() { from } else { free };
    (!from.is_empty()).then(|| from.swap_remove(below(from.len(), rng)))
}

/// Returns the texts for the text field of a method, in the order of the tries: first lines of the operator's private
/// messages that look like an example, then the examples, from a random one on.
fn texts(description: &str, told: &[&str], rng: &mut SeedRng) -> Vec<String> {
    let examples = description.split('`').skip(1).step_by(2).filter(|example| !example.trim().is_empty());
    let mut examples: Vec<String> = examples.map(str::to_owned).collect();
    if examples.is_empty() {
        return words(rng);
    }
    let mut texts = Vec::new();
    for example in &examples {
        let lines = told.iter().flat_map(|text| text.lines()).map(str::trim);
        let lines: Vec<&str> = lines.filter(|line| shape(line) == shape(example)).collect();
        if !lines.is_empty() {
            texts.push(lines.join("\n"));
        }
    }
    let start = below(examples.len(), rng);
    examples.rotate_left(start);
    texts.extend(examples);
    texts
}

fn words(rng: &mut SeedRng) -> Vec<String> {
    let mut words = WORDS.map(str::to_owned);
    words.rotate_left(below(WORDS.len(), rng));
    words.into()
}

/// Draws an index below `count`, which isn't 0.
fn below(count: usize, rng: &mut SeedRng) -> usize {
    usize::try_from(rng.below(count as u64)).unwrap_or_default()
}

/// Returns a text with `a` for each word and `0` for each number: `K2: 85` becomes `a0: 0`.
fn shape(text: &str) -> String {
    let mut shape = String::new();
    for char in text.chars() {
        let kind = match char {
            char if char.is_alphabetic() => 'a',
            char if char.is_numeric() => '0',
            char => char,
        };
        if !(matches!(kind, 'a' | '0') && shape.ends_with(kind)) {
            shape.push(kind);
        }
    }
    shape
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use arena_model::{ChallengeMetadata, ContentTemplate, FormField, Method};

    use super::*;

    /// Creates the bot of a challenge with the method `act`.
    fn bot(description: &str, fields: &[(&str, FieldValues)], content: &str) -> FormBot {
        let field = |(name, values): &(&str, FieldValues)| FormField {
            name: (*name).to_owned(),
            label: (*name).to_owned(),
            values: values.clone(),
        };
        let form = |method: &str| MethodForm {
            method: method.to_owned(),
            label: None,
            fields: fields.iter().map(field).collect(),
            content: ContentTemplate::parse(content).unwrap(),
        };
        let metadata = ChallengeMetadata {
            name: "Test".to_owned(),
            description: String::new(),
            players: 3,
            prompt: String::new(),
            methods: vec![Method { name: "act".to_owned(), description: description.to_owned() }],
            color: None,
            icon: None,
            authors: None,
            tags: None,
            url: None,
        };
        FormBot::new("test", DeclaredForms { forms: vec![form("act"), form("resign")], metadata })
    }

    /// Returns the contents of the first turns of many bots on the second of three seats.
    fn contents(bot: &FormBot, told: &[&str]) -> BTreeSet<String> {
        let facts = FormFacts { told, players: 3, own: Some(1) };
        let tries = |number| bot.tries(&facts, &mut Seed::from_number(number).rng("invite"));
        let tries: Vec<(&str, String)> = (0..200).flat_map(tries).collect();
        tries
            .into_iter()
            .map(|(method, content)| {
                assert_eq!(method, "act");
                content
            })
            .collect()
    }

    #[track_caller]
    fn check(bot: &FormBot, told: &[&str], expected: &[&str]) {
        let expected: BTreeSet<String> = expected.iter().map(|content| (*content).to_owned()).collect();
        assert_eq!(contents(bot, told), expected);
    }

    #[test]
    fn values_are_valid() {
        let number = |min, max| FieldValues::Number { min, max };
        check(&bot("", &[("n", number(Some(-1), Some(1)))], "{n}"), &[], &["-1", "0", "1"]);
        check(&bot("", &[("n", number(Some(i64::MAX), None))], "{n}"), &[], &["9223372036854775807"]);
        for (content, bounds) in [(number(None, Some(-5)), -105..=-5), (number(None, None), 0..=100)] {
            let drawn = contents(&bot("", &[("n", content)], "{n}"), &[]);
            assert!(drawn.iter().all(|drawn| bounds.contains(&drawn.parse::<i64>().unwrap())), "{drawn:?}");
        }
        let whole = contents(&bot("", &[("n", number(Some(i64::MIN), Some(i64::MAX)))], "{n}"), &[]);
        assert!(whole.len() > 100);
        check(&bot("", &[("to", FieldValues::Seat)], "to {to}"), &[], &["to 1", "to 3"]);
        check(&bot("", &[], "pass"), &[], &["pass"]);
    }

    #[test]
    fn fields_differ_and_optional_fields_may_be_missing() {
        let choice = || FieldValues::Choice(vec!["a".to_owned(), "b".to_owned()]);
        check(&bot("", &[("x", choice()), ("y", choice())], "{x}[, {y}]"), &[], &["a", "b", "a, b", "b, a"]);
        check(&bot("", &[("x", FieldValues::Seat), ("y", FieldValues::Seat)], "{x}{y}"), &[], &["13", "31"]);
    }

    #[test]
    fn texts_are_examples_or_lines_of_the_operator() {
        let text = |max| [("text", FieldValues::Text { max })];
        let example = "Invoices, such as `L2, L5`, or `none`.";
        check(&bot(example, &text(None), "{text}"), &[], &["L2, L5", "none"]);
        let told = ["Your code is red-12.\nYou have:\nK1: 800\nK2: 7\nGood luck."];
        let report = bot("Lines such as `K2: 85`.", &text(None), "{text}");
        check(&report, &told, &["K1: 800\nK2: 7", "K2: 85"]);
        let mut rng = Seed::from_number(0).rng("invite");
        let facts = FormFacts { told: &told, players: 2, own: None };
        assert_eq!(report.tries(&facts, &mut rng)[0].1, "K1: 800\nK2: 7");
        check(&bot("", &text(Some(2)), "{text}"), &[], &["ye", "no", "he"]);
    }

    #[test]
    fn the_same_invite_gives_the_same_values() {
        let bot = bot("", &[("n", FieldValues::Number { min: None, max: None })], "{n}");
        let facts = FormFacts { told: &[], players: 2, own: None };
        let draw = |invite: &str| bot.tries(&facts, &mut Seed::from_number(0).rng(invite));
        assert_eq!(draw("inv_1"), draw("inv_1"));
        assert_ne!(draw("inv_1"), draw("inv_2"));
    }
}
