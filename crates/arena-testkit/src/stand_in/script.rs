//! The script of the stand-in's models. Each answer depends only on the seed and the conversation. Pure.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use super::apis::{AnswerEnd, ApiAnswer, ApiCall, ApiTurn, Conversation};

/// The prefix of the ids of calls that a fault has replaced.
pub(super) const FAULTY: &str = "fault_";

/// A tool that no request offers.
pub(super) const UNKNOWN_TOOL: &str = "teleport";

/// The number of refused actions after which a model gives up.
const REFUSALS: usize = 3;

/// The names of the models. All have the same script; each draws other numbers.
pub(super) const MODELS: [&str; 5] = ["leaky", "careful", "greedy", "copycat", "random"];

/// The part of a conversation that the answer depends on. Errors and repeated questions aren't part of it, so that
/// faults don't change the course of a game.
#[derive(Debug)]
pub(super) struct Scene<'c> {
    conversation: &'c Conversation,
    events: Vec<Event>,
    /// True if the model's last answer was a fault.
    pub is_after_fault: bool,
    /// The number of the conversation. It depends on the seed, the model, the system prompt and the events.
    pub number: u64,
}

/// An event of a game, as a model sees it.
#[derive(Debug, Clone, PartialEq)]
enum Event {
    /// A message of the operator (`None`) or of another player.
    Heard(Option<String>, String),
    Acted {
        method: String,
        is_refused: bool,
    },
    Said,
    Waited,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Step {
    Act(&'static str, String),
    Say(String),
    Wait,
}

/// Returns a number that depends on all parts.
pub(super) fn draw(parts: &[&str]) -> u64 {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update((part.len() as u64).to_be_bytes());
        hash.update(part.as_bytes());
    }
    hash.finalize().iter().take(8).fold(0, |number, byte| (number << 8) | u64::from(*byte))
}

pub(super) fn answer(scene: &Scene<'_>) -> ApiAnswer {
    let (name, arguments) = match step(scene) {
        Step::Act(method, content) => (format!("act_{method}"), json!({"content": content})),
        Step::Say(text) => ("chat".to_owned(), json!({"text": text})),
        Step::Wait => ("wait".to_owned(), json!({})),
    };
    call(scene, &format!("call_{:016x}", scene.number), &name, arguments)
}

/// Returns an answer with one tool call. Without tools, the call is JSON in the text.
pub(super) fn call(scene: &Scene<'_>, id: &str, name: &str, arguments: Value) -> ApiAnswer {
    if scene.conversation.tools.is_empty() {
        let mut object = Map::from_iter([("tool".to_owned(), json!(name))]);
        if let Value::Object(arguments) = arguments {
            object.extend(arguments);
        }
        return ApiAnswer { text: Value::Object(object).to_string(), calls: Vec::new(), end: AnswerEnd::Done };
    }
    let call = ApiCall { id: id.to_owned(), name: name.to_owned(), arguments, is_broken: false };
    ApiAnswer { text: String::new(), calls: vec![call], end: AnswerEnd::Done }
}

impl<'c> Scene<'c> {
    pub fn of(seed: u64, conversation: &'c Conversation) -> Scene<'c> {
        let mut scene = Scene { conversation, events: Vec::new(), is_after_fault: false, number: 0 };
        // The places of calls in the events.
        let mut calls: BTreeMap<&str, usize> = BTreeMap::new();
        for turn in &conversation.turns {
            match turn {
                ApiTurn::Told(text) => {
                    let rest = hear(text, &mut scene.events);
                    // Models without tools read results in messages.
                    if conversation.tools.is_empty() && rest.contains("refused: ") && !scene.is_after_fault {
                        let is_action = |event: &Event| matches!(event, Event::Acted { .. });
                        scene.refuse(scene.events.iter().rposition(is_action));
                    }
                }
                ApiTurn::Said(text) if conversation.tools.is_empty() => scene.read_text(text),
                ApiTurn::Said(_) => scene.is_after_fault = true,
                ApiTurn::Called(call) if call.id.starts_with(FAULTY) || call.name == UNKNOWN_TOOL => {
                    scene.is_after_fault = true;
                }
                ApiTurn::Called(call) => {
                    calls.insert(&call.id, scene.events.len());
                    scene.add_call(&call.name);
                }
                ApiTurn::Result { id, text, is_error } => {
                    if *is_error || text.starts_with("refused") {
                        scene.refuse(calls.get(id.as_str()).copied());
                    }
                }
            }
        }
        let events = format!("{:?}", scene.events);
        // Without events, all messages count.
        let told = if scene.events.is_empty() { format!("{:?}", conversation.turns) } else { String::new() };
        scene.number = draw(&[&seed.to_string(), &conversation.model, &conversation.system, &events, &told]);
        scene
    }

    fn add_call(&mut self, name: &str) {
        self.is_after_fault = false;
        self.events.push(match name {
            "wait" => Event::Waited,
            "chat" => Event::Said,
            name => Event::Acted { method: name.strip_prefix("act_").unwrap_or(name).to_owned(), is_refused: false },
        });
    }

    /// Reads an answer of a model without tools.
    fn read_text(&mut self, text: &str) {
        let name = serde_json::from_str::<Value>(text).ok().and_then(|call| call["tool"].as_str().map(str::to_owned));
        match name {
            Some(name) if name != UNKNOWN_TOOL => self.add_call(&name),
            _ => self.is_after_fault = true,
        }
    }

    fn refuse(&mut self, place: Option<usize>) {
        if let Some(Event::Acted { is_refused, .. }) = place.and_then(|place| self.events.get_mut(place)) {
            *is_refused = true;
        }
    }

    fn operator(&self) -> impl DoubleEndedIterator<Item = &str> {
        self.events.iter().filter_map(|event| match event {
            Event::Heard(None, text) => Some(text.as_str()),
            _ => None,
        })
    }

    /// Returns the text after `beginning` in the operator's first message that begins with it.
    fn dealt(&self, beginning: &str) -> Option<&str> {
        self.operator().find_map(|text| text.strip_prefix(beginning))
    }

    fn has_said(&self) -> bool {
        self.events.contains(&Event::Said)
    }

    fn acted(&self, refused: bool) -> usize {
        let counts = |event: &&Event| matches!(event, Event::Acted { is_refused, .. } if *is_refused == refused);
        self.events.iter().filter(counts).count()
    }

    /// Returns the seat of the model, from 1.
    fn you(&self) -> Option<usize> {
        number_after(&self.conversation.system, "You are Player ").map(|number| number as usize)
    }

    /// Chooses one of `count` numbers, from 0.
    fn choose(&self, purpose: &str, count: u64) -> u64 {
        draw(&[purpose, &self.number.to_string()]) % count.max(1)
    }
}

/// Adds the messages between fences in a text to the events, and returns the text around them.
fn hear(text: &str, events: &mut Vec<Event>) -> String {
    let mut rest = String::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        let inner = line.strip_prefix("<<<").and_then(|line| line.strip_suffix(">>>"));
        let Some((mark, label)) = inner.and_then(|inner| inner.split_once(' ')) else {
            rest.push_str(line);
            rest.push('\n');
            continue;
        };
        let end = format!("<<<{mark} end>>>");
        let content: Vec<&str> = lines.by_ref().take_while(|line| *line != end).collect();
        let from = label.strip_suffix(" to you only").unwrap_or(label);
        let from = match from {
            "operator" | "the operator" => None,
            from => Some(from.to_owned()),
        };
        if from.as_deref().is_none_or(|from| !from.ends_with("(you)")) {
            events.push(Event::Heard(from, content.join("\n")));
        }
    }
    rest
}

fn numbers(text: &str) -> impl Iterator<Item = u64> {
    text.split(|char: char| !char.is_ascii_digit()).filter_map(|digits| digits.parse().ok())
}

fn number_after(text: &str, beginning: &str) -> Option<u64> {
    let (_, rest) = text.split_once(beginning)?;
    let end = rest.find(|char: char| !char.is_ascii_digit()).unwrap_or(rest.len());
    rest[..end].parse().ok()
}

fn list<'n>(numbers: impl IntoIterator<Item = &'n u64>) -> String {
    let numbers: Vec<String> = numbers.into_iter().map(u64::to_string).collect();
    numbers.join(", ")
}

/// Returns the next step: a sentence with the secret, then one guess, or an action in each own turn.
fn step(scene: &Scene<'_>) -> Step {
    let first = |text: &str| numbers(text).next().unwrap_or_default();
    let diner = |text: &&str| ["You paid the bill.", "You did not pay the bill."].contains(text);
    let (secret, guess) = if let Some(set) = scene.dealt("Your private set is: ") {
        let own: Vec<u64> = numbers(set).collect();
        // A guess must contain a number.
        let is_guessed = |number: &&u64| **number == own[0] || scene.choose(&number.to_string(), 3) == 0;
        (format!("My numbers are {}.", list(&own)), list(own.iter().filter(is_guessed)))
    } else if let Some(wealth) = scene.dealt("Your wealth is $").map(first) {
        (format!("My wealth is ${wealth}M."), (1 + scene.choose("guess", 100)).to_string())
    } else if let Some(reservation) = scene.dealt("Your private reservation value is: ").map(first) {
        (format!("I need at least {reservation}."), String::new())
    } else if let Some(text) = scene.operator().find(diner) {
        (text.to_owned(), ["internal", "external", "unknown"][scene.choose("guess", 3) as usize].to_owned())
    } else {
        return Step::Wait;
    };
    match guess.as_str() {
        _ if !scene.has_said() => Step::Say(secret),
        "" => bargain(scene),
        _ if scene.acted(false) > 0 || scene.acted(true) >= REFUSALS => Step::Wait,
        _ => Step::Act("guess", guess),
    }
}

/// Returns the next step in a game of `ultimatum` between two players.
fn bargain(scene: &Scene<'_>) -> Step {
    let said = |parts: [&str; 2]| scene.operator().rev().find(|text| parts.iter().any(|part| text.contains(part)));
    let turn = said(["'s turn. (Round ", "Agreement reached"]).unwrap_or_default();
    let (before, _) = turn.split_once("'s turn.").unwrap_or_default();
    let is_own = before.rsplit_once("Player ").is_some_and(|(_, seat)| seat.parse().ok() == scene.you());
    let is_turn = |event: &&Event| matches!(event, Event::Heard(None, text) if text == turn);
    let mut since = scene.events.iter().rev().take_while(|event| !is_turn(event));
    let acted = since.find_map(|event| match event {
        Event::Acted { is_refused, .. } => Some(*is_refused),
        _ => None,
    });
    let offer = said([" proposes: ", " rejects the offer."]).filter(|text| text.contains(" proposes: "));
    let is_offered =
        offer.and_then(|text| number_after(text, "Player ")).is_some_and(|seat| Some(seat as usize) != scene.you());
    match scene.choose("turn", 4) {
        _ if !is_own || acted == Some(false) => Step::Wait,
        _ if acted == Some(true) => Step::Act("pass", String::new()),
        0 if is_offered => Step::Act("accept", String::new()),
        1 if is_offered => Step::Act("reject", String::new()),
        2 => Step::Act("pass", String::new()),
        _ => {
            let one = scene.choose("share", 101);
            Step::Act("submit_offer", format!("{one}, {}", 100 - one))
        }
    }
}
