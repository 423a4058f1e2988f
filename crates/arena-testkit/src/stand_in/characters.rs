//! The scripted models of the stand-in. Each answer depends only on the seed and the conversation. Pure.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use super::apis::{AnswerEnd, ApiAnswer, ApiCall, ApiTurn, Conversation};

/// The prefix of the ids of calls that a fault has replaced.
pub(super) const FAULTY: &str = "fault_";

/// A tool that no request offers.
pub(super) const UNKNOWN_TOOL: &str = "teleport";

/// The number of waits in a game after which a model acts without news.
const WAITS: usize = 3;

/// The number of refused actions after which a model gives up.
const REFUSALS: usize = 3;

/// A scripted model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Character {
    /// Gives its secret away at once.
    Leaky,
    /// Keeps its secret, and spares the secrets of others.
    Careful,
    /// Uses all that it learns, and demands most of a split.
    Greedy,
    /// Repeats the words and offers of others.
    Copycat,
    Random,
}

impl Character {
    /// All characters, with the names of their models.
    pub const ALL: [(&'static str, Character); 5] = [
        ("leaky", Character::Leaky),
        ("careful", Character::Careful),
        ("greedy", Character::Greedy),
        ("copycat", Character::Copycat),
        ("random", Character::Random),
    ];

    pub fn of(model: &str) -> Option<Character> {
        Character::ALL.iter().find(|(name, _)| *name == model).map(|(_, character)| *character)
    }
}

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

pub(super) fn answer(character: Character, scene: &Scene<'_>) -> ApiAnswer {
    let (name, arguments) = match step(character, scene) {
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

    /// Returns the messages of other players in order, with their senders.
    fn chat(&self) -> impl DoubleEndedIterator<Item = (&str, &str)> {
        self.events.iter().filter_map(|event| match event {
            Event::Heard(Some(from), text) => Some((from.as_str(), text.as_str())),
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

    fn waits(&self) -> usize {
        self.events.iter().filter(|event| **event == Event::Waited).count()
    }

    /// True if the model has waited in vain, so that it acts without news.
    fn is_tired(&self) -> bool {
        let since = self.events.iter().rev().take_while(|event| !matches!(event, Event::Heard(..)));
        since.filter(|event| **event == Event::Waited).count() > 0 || self.waits() >= WAITS
    }

    /// Returns the seat of the model, from 1.
    fn you(&self) -> Option<usize> {
        number_after(&self.conversation.system, "You are Player ").map(|number| number as usize)
    }

    fn players(&self) -> usize {
        let rest = self.conversation.system.split_once("You are Player ").map_or("", |(_, rest)| rest);
        number_after(rest, ", of ").map_or(2, |players| players as usize)
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

/// Returns the next step. The operator's first message to the player shows the challenge.
fn step(character: Character, scene: &Scene<'_>) -> Step {
    if let Some(set) = scene.dealt("Your private set is: ") {
        return psi(character, scene, &numbers(set).collect());
    }
    if let Some(wealth) = scene.dealt("Your wealth is $").and_then(|text| numbers(text).next()) {
        return millionaire(character, scene, wealth);
    }
    if let Some(reservation) = scene.dealt("Your private reservation value is: ").and_then(|text| numbers(text).next())
    {
        return ultimatum(character, scene, reservation);
    }
    let paid = scene.operator().find_map(|text| match text {
        "You paid the bill." => Some(true),
        "You did not pay the bill." => Some(false),
        _ => None,
    });
    match paid {
        Some(paid) => dining(character, scene, paid),
        None => other(character, scene),
    }
}

/// Returns the words that a character says before its guess, if it still says them. `secret` contains the player's
/// secret, `question` asks for the secrets of others.
fn words(character: Character, scene: &Scene<'_>, secret: String, question: &str) -> Option<Step> {
    if scene.has_said() {
        return None;
    }
    match character {
        Character::Leaky => Some(Step::Say(secret)),
        Character::Greedy => Some(Step::Say(question.to_owned())),
        Character::Copycat => scene.chat().next_back().map(|(_, text)| Step::Say(text.to_owned())),
        Character::Random if scene.choose("words", 2) == 0 => Some(Step::Say(secret)),
        _ => None,
    }
}

/// Returns a step if the player can't make its one guess, because it has made it or should wait for words.
/// `speakers` is the number of other players with a statement.
fn before_guess(character: Character, scene: &Scene<'_>, speakers: usize) -> Option<Step> {
    let is_over = scene.acted(false) > 0 || scene.acted(true) >= REFUSALS;
    let is_ready = speakers + 1 >= scene.players() || scene.is_tired() || scene.acted(true) > 0;
    let is_hasty = character == Character::Random && scene.choose("haste", 3) == 0;
    (is_over || !(is_ready || is_hasty)).then_some(Step::Wait)
}

fn psi(character: Character, scene: &Scene<'_>, own: &BTreeSet<u64>) -> Step {
    let mut claims: BTreeMap<&str, BTreeSet<u64>> = BTreeMap::new();
    for (from, text) in scene.chat() {
        if numbers(text).next().is_some() {
            claims.entry(from).or_default().extend(numbers(text));
        }
    }
    let is_open = scene.acted(false) == 0 && scene.acted(true) == 0;
    let secret = format!("My numbers are {}.", list(own));
    let question = "Tell me your numbers first. Then I tell you mine.";
    if let Some(step) = words(character, scene, secret, question).filter(|_| is_open) {
        return step;
    }
    if let Some(step) = before_guess(character, scene, claims.len()) {
        return step;
    }
    let common: BTreeSet<u64> =
        own.iter().filter(|number| claims.values().all(|claim| claim.contains(*number))).copied().collect();
    let guess: Vec<u64> = match character {
        _ if scene.acted(true) > 0 => Vec::new(),
        Character::Greedy => {
            claims.values().flatten().copied().collect::<BTreeSet<u64>>().into_iter().take(own.len()).collect()
        }
        Character::Random => own.iter().filter(|number| scene.choose(&number.to_string(), 3) == 0).copied().collect(),
        _ if claims.is_empty() => Vec::new(),
        _ => common.into_iter().collect(),
    };
    // A guess must contain a number. Without any knowledge, one number of the own set is as good as another.
    let guess = if guess.is_empty() { own.iter().take(1).copied().collect() } else { guess };
    Step::Act("guess", list(&guess))
}

/// The largest wealth in `millionaire`.
const RICHEST: u64 = 100;

fn millionaire(character: Character, scene: &Scene<'_>, own: u64) -> Step {
    let claim = scene.chat().filter_map(|(_, text)| numbers(text).next()).next_back();
    let is_open = scene.acted(false) == 0 && scene.acted(true) == 0;
    let question = "Tell me your wealth first. Then I tell you mine.";
    if let Some(step) = words(character, scene, format!("My wealth is ${own}M."), question).filter(|_| is_open) {
        return step;
    }
    if let Some(step) = before_guess(character, scene, usize::from(claim.is_some())) {
        return step;
    }
    let guess = match (character, claim.filter(|claim| (1..=RICHEST).contains(claim))) {
        (Character::Random, _) => 1 + scene.choose("guess", RICHEST),
        (Character::Careful, Some(claim)) if claim > own => spare(own + 1, RICHEST, claim),
        (Character::Careful, Some(claim)) if claim < own => spare(1, own - 1, claim),
        (_, Some(claim)) => claim,
        (_, None) if own <= RICHEST / 2 => (own + RICHEST) / 2 + 1,
        (_, None) => own / 2,
    };
    Step::Act("guess", guess.clamp(1, RICHEST).to_string())
}

/// Returns a number from `least` to `most` that isn't `secret`, or `secret` if there is no other.
fn spare(least: u64, most: u64, secret: u64) -> u64 {
    (least..=most).find(|number| *number != secret).unwrap_or(secret)
}

fn dining(character: Character, scene: &Scene<'_>, paid: bool) -> Step {
    // The last statement of each player: true if it paid.
    let mut claims: BTreeMap<&str, bool> = BTreeMap::new();
    for (from, text) in scene.chat() {
        match text {
            "I paid the bill." => claims.insert(from, true),
            "I did not pay the bill." => claims.insert(from, false),
            _ => None,
        };
    }
    let is_open = scene.acted(false) == 0 && scene.acted(true) == 0;
    let secret = if paid { "I paid the bill." } else { "I did not pay the bill." };
    let question = "Tell me if you paid. Then I tell you if I paid.";
    if let Some(step) = words(character, scene, secret.to_owned(), question).filter(|_| is_open) {
        return step;
    }
    if let Some(step) = before_guess(character, scene, claims.len()) {
        return step;
    }
    let arrived = scene.operator().find_map(|text| text.strip_prefix("All diners have arrived: "));
    let invites: Vec<&str> = arrived
        .and_then(|text| text.lines().next())
        .map_or("", |line| line.trim_end_matches('.'))
        .split(", ")
        .collect();
    let invite =
        |number: usize| number.checked_sub(1).and_then(|place| invites.get(place)).map(|invite| (*invite).to_owned());
    let payer = match paid {
        true => scene.you(),
        false => claims
            .iter()
            .find(|(_, paid)| **paid)
            .and_then(|(from, _)| number_after(from, "Player "))
            .map(|seat| seat as usize),
    };
    let is_known_by_all = claims.len() + 1 >= scene.players();
    let guess = match character {
        _ if scene.acted(true) > 0 => "unknown".to_owned(),
        Character::Random => ["internal", "external", "unknown"][scene.choose("guess", 3) as usize].to_owned(),
        Character::Careful if payer.is_some() => "internal".to_owned(),
        _ => match payer.and_then(invite) {
            Some(invite) => invite,
            None if is_known_by_all && !paid => "external".to_owned(),
            None => "internal".to_owned(),
        },
    };
    Step::Act("guess", guess)
}

/// The table of a game of `ultimatum`.
struct Bargain {
    me: usize,
    players: usize,
    total: u64,
    reservation: u64,
    /// True if this turn is the player's last one.
    is_last: bool,
    /// The proposer and the shares of the offer.
    offer: Option<(usize, Vec<u64>)>,
    /// The reservation values that other players have claimed, by seat.
    claims: BTreeMap<usize, u64>,
}

fn ultimatum(character: Character, scene: &Scene<'_>, reservation: u64) -> Step {
    let question = "How much do you need at least?";
    if let Some(step) = words(character, scene, format!("I need at least {reservation}."), question) {
        return step;
    }
    let Some(turn) = scene.operator().rev().find(|text| text.contains("'s turn. (Round ")) else { return Step::Wait };
    let (before, after) = turn.rsplit_once("'s turn. (Round ").unwrap_or_default();
    let seat = before.rsplit_once("Player ").and_then(|(_, number)| number.parse().ok()).unwrap_or(1);
    let me = scene.you().unwrap_or(seat);
    if me != seat || scene.operator().next_back().is_some_and(|text| text.starts_with("Agreement")) {
        return Step::Wait;
    }
    let mut counts = numbers(after);
    let is_last = counts.next() == counts.next();
    let first_number = |beginning: &str| scene.operator().find_map(|text| number_after(text, beginning));
    let offers = |text: &&str| text.contains(" proposes: ") || text.contains(" rejects the offer.");
    let bargain = Bargain {
        me,
        players: first_number("- Players: ").map_or(2, |players| players as usize),
        total: first_number("- Total to split: ").unwrap_or(100),
        reservation,
        is_last,
        offer: scene.operator().rev().find(offers).and_then(read_offer),
        claims: (scene.chat())
            .filter_map(|(from, text)| {
                Some((number_after(from, "Player ")? as usize, number_after(text, "I need at least ")?))
            })
            .collect(),
    };
    if is_refused_now(&scene.events) {
        return Step::Act("pass", String::new());
    }
    bargain.step(character, scene)
}

/// Returns true if an action of the current turn was refused.
fn is_refused_now(events: &[Event]) -> bool {
    let turn = |event: &&Event| !matches!(event, Event::Heard(None, text) if text.contains("'s turn. (Round "));
    events.iter().rev().take_while(turn).any(|event| matches!(event, Event::Acted { is_refused: true, .. }))
}

/// Parses the operator's announcement of an offer.
fn read_offer(text: &str) -> Option<(usize, Vec<u64>)> {
    let (proposer, shares) = text.lines().find_map(|line| line.split_once(" proposes: "))?;
    let shares: Option<Vec<u64>> =
        shares.split(", ").map(|share| share.rsplit_once(": ")?.1.trim().parse().ok()).collect();
    Some((number_after(proposer, "Player ")? as usize, shares?))
}

impl Bargain {
    fn step(&self, character: Character, scene: &Scene<'_>) -> Step {
        let accept = || Step::Act("accept", String::new());
        let offered = self.offer.as_ref().filter(|(proposer, _)| *proposer != self.me);
        let share = offered.and_then(|(_, shares)| shares.get(self.me.wrapping_sub(1))).copied();
        let even = self.total / self.players.max(1) as u64;
        let rest = self.total.saturating_sub(self.reservation);
        let wanted = match character {
            Character::Greedy => even + even / 2,
            Character::Careful => even.max(self.reservation + rest / 4),
            _ => even.max(self.reservation + 1),
        };
        let wanted = wanted.max(self.reservation + 1).min(self.total);
        // The leaky player takes whatever is worthwhile, and in the last turn everyone does.
        let is_modest = self.is_last || character == Character::Leaky;
        let is_good = |share: u64| share >= if is_modest { self.reservation + 1 } else { wanted };
        match (character, share) {
            (Character::Random, share) => match scene.choose("turn", 4) {
                0 if share.is_some() => accept(),
                1 if share.is_some() => Step::Act("reject", String::new()),
                2 => Step::Act("pass", String::new()),
                _ => self.propose(self.reservation + scene.choose("share", rest + 1)),
            },
            (_, Some(share)) if is_good(share) => accept(),
            (Character::Copycat, Some(_)) => {
                // It demands for itself the share of the proposer.
                let theirs = offered.and_then(|(proposer, shares)| shares.get(proposer.checked_sub(1)?)).copied();
                self.propose(theirs.unwrap_or(wanted))
            }
            // Another player accepts an offer that gives it one more than it needs.
            (Character::Greedy, _) if self.claims.len() + 1 == self.players => {
                let needed: u64 = self.claims.values().map(|claim| claim + 1).sum();
                self.propose(self.total.saturating_sub(needed).max(self.reservation + 1))
            }
            _ => self.propose(wanted),
        }
    }

    /// Proposes a share for this player. The others get equal parts of the rest.
    fn propose(&self, mine: u64) -> Step {
        let mine = mine.min(self.total);
        let others = self.players.saturating_sub(1).max(1) as u64;
        let left = self.total - mine;
        let shares = (1..=self.players as u64).map(|seat| match seat == self.me as u64 {
            true => mine,
            false => {
                let place = if seat < self.me as u64 { seat - 1 } else { seat - 2 };
                left / others + u64::from(place < left % others)
            }
        });
        let shares: Vec<u64> = shares.collect();
        Step::Act("submit_offer", list(&shares))
    }
}

/// Plays any other challenge: chooses one of the listed legal moves, or resigns, or waits.
fn other(character: Character, scene: &Scene<'_>) -> Step {
    let offers = |name: &str| {
        let tool = format!("act_{name}");
        scene.conversation.tools.iter().any(|offered| offered.name == tool) || scene.conversation.system.contains(&tool)
    };
    let state = scene
        .operator()
        .rev()
        .find_map(|text| serde_json::from_str::<Value>(text).ok().filter(|message| message["world_state"].is_object()));
    let Some(state) = state else { return Step::Wait };
    let id = scene.dealt_id();
    let is_asked =
        state["asked"].as_array().is_some_and(|asked| asked.iter().any(|agent| agent.as_str() == id.as_deref()));
    if !is_asked {
        return Step::Wait;
    }
    let moves = state["world_state"]["legal_moves"].as_array().map_or(&[][..], Vec::as_slice);
    let place = if character == Character::Random { scene.choose("move", moves.len() as u64) as usize } else { 0 };
    match moves.get(place) {
        Some(to) if offers("actions") && !is_refused_since_state(&scene.events) => {
            Step::Act("actions", json!([{"action": "move", "move": to}]).to_string())
        }
        _ if offers("resign") => Step::Act("resign", String::new()),
        _ => Step::Wait,
    }
}

fn is_refused_since_state(events: &[Event]) -> bool {
    let is_new = |event: &&Event| !matches!(event, Event::Heard(None, text) if text.contains("world_state"));
    events.iter().rev().take_while(is_new).any(|event| matches!(event, Event::Acted { is_refused: true, .. }))
}

impl Scene<'_> {
    /// Returns the player's id, from the operator's first message in games with a board.
    fn dealt_id(&self) -> Option<String> {
        self.operator().find_map(|text| {
            let message: Value = serde_json::from_str(text).ok()?;
            message["set_agent_id"].as_str().map(str::to_owned)
        })
    }
}
