//! The bot for all scripted challenges that declare forms. It knows no rules: it fills the forms with random valid
//! values, in the order of the methods, until the operator accepts an action.
//!
//! Texts are taken from the examples in a method's description, and from the lines of the operator's private messages
//! that look like an example.

use std::collections::VecDeque;

use arena_model::{ChallengeMetadata, FieldValues, MethodForm, Seed, SeedRng, Timestamp};

use crate::{Bot, BotInfo, Heard, NOT_RUNNING, Step, below};

/// The maximum number of tries with one method in a turn, and with all methods that have several tries.
const TRIES_PER_METHOD: usize = 3;
const TRIES: usize = 12;

/// The maximum number of accepted actions in a game, for challenges in which bots could answer each other forever.
const MAX_ACTIONS: usize = 100;

/// The texts for fields without an example.
const WORDS: [&str; 3] = ["yes", "no", "hello"];

/// The difference of the bounds of a number with at most one bound.
const SPAN: i64 = 100;

/// The bot of scripted challenges in one game. It takes a turn when the operator or another player has written
/// something that isn't a result of its own action, or when it is late.
pub struct FormBot {
    metadata: ChallengeMetadata,
    forms: Vec<MethodForm>,
    rng: SeedRng,
    /// The bot's seat, from 0, if the caller knows it.
    seat: Option<usize>,
    /// The index of the last message of the operator channel.
    last: u64,
    /// The time of the bot's last action, while only results of this action follow it.
    acted_at: Option<Timestamp>,
    is_due: bool,
    /// The remaining tries of the turn: methods and contents.
    tries: VecDeque<(String, String)>,
    /// True if the last try wasn't refused so far.
    is_pending: bool,
    /// The number of accepted actions.
    actions: usize,
}

#[derive(Debug)]
struct FormFacts<'f> {
    /// The operator's private messages to the bot.
    told: &'f [&'f str],
    players: usize,
    /// The bot's seat, from 0, if known.
    own: Option<usize>,
}

impl FormBot {
    pub const INFO: BotInfo = BotInfo {
        name: "form-filler",
        motto: "fills the forms of a challenge with random values, without knowing the rules",
    };

    /// Creates the bot for one game. Equal numbers `random` give equal play.
    pub fn new(metadata: ChallengeMetadata, forms: Vec<MethodForm>, random: u64) -> FormBot {
        FormBot {
            metadata,
            forms,
            rng: Seed::from_number(random).rng("house/forms"),
            seat: None,
            last: 0,
            acted_at: None,
            is_due: true,
            tries: VecDeque::new(),
            is_pending: false,
            actions: 0,
        }
    }

    /// Informs the bot of its seat, from 0. Otherwise the bot derives it from the operator's private messages.
    #[must_use]
    pub fn with_seat(self, seat: usize) -> FormBot {
        FormBot { seat: Some(seat), ..self }
    }

    /// Reads the new messages, and decides if the bot should take a turn.
    fn read(&mut self, heard: &Heard<'_>) {
        let last = self.last;
        for message in heard.operator.iter().filter(|message| message.index > last) {
            self.last = message.index;
            if message.from == heard.me {
                self.acted_at = Some(message.timestamp);
                continue;
            }
            // The messages of one transition have the same time. A player alone gets its next task as a result.
            let is_result =
                message.from == "operator" && self.metadata.players > 1 && self.acted_at == Some(message.timestamp);
            if is_result || message.content.starts_with(NOT_RUNNING) {
                continue;
            }
            self.acted_at = None;
            self.is_due = true;
        }
    }

    /// Draws the actions of a turn, in the order of the tries.
    fn draw(&mut self, heard: &Heard<'_>) -> VecDeque<(String, String)> {
        let is_private = |message: &&arena_wire::Message| {
            message.from == "operator" && message.to.as_deref() == Some(heard.me) && !message.redacted
        };
        let told: Vec<&str> =
            heard.operator.iter().filter(is_private).map(|message| message.content.as_str()).collect();
        let players = self.metadata.players;
        let own = self.seat.or_else(|| seat_of(heard, players));
        let facts = FormFacts { told: &told, players, own };
        let tries = tries(&self.metadata, &self.forms, &facts, &mut self.rng);
        tries.into_iter().map(|(method, content)| (method.to_owned(), content)).collect()
    }
}

impl Bot for FormBot {
    fn next(&mut self, heard: &Heard<'_>) -> Option<Step> {
        self.read(heard);
        self.is_due |= heard.is_late;
        if std::mem::take(&mut self.is_pending) {
            self.actions += 1;
            self.tries.clear();
        }
        if self.actions >= MAX_ACTIONS {
            return None;
        }
        if self.tries.is_empty() {
            if !std::mem::take(&mut self.is_due) {
                return None;
            }
            self.tries = self.draw(heard);
        }
        let (method, content) = self.tries.pop_front()?;
        self.is_pending = true;
        Some(Step::Act { method, content })
    }

    fn refused(&mut self, _step: &Step) {
        self.is_pending = false;
    }
}

/// Returns the bot's seat if the operator has sent a private message to each player: most operators do so in the order
/// of the seats. Returns `None` otherwise.
fn seat_of(heard: &Heard<'_>, players: usize) -> Option<usize> {
    let mut names: Vec<&str> = Vec::new();
    for name in heard.recipients() {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    if names.len() == players { names.iter().position(|name| *name == heard.me) } else { None }
}

/// Returns the actions of a turn: methods and contents, in the order of the tries.
fn tries<'f>(
    metadata: &ChallengeMetadata,
    forms: &'f [MethodForm],
    facts: &FormFacts<'_>,
    rng: &mut SeedRng,
) -> Vec<(&'f str, String)> {
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

    use arena_model::{ContentTemplate, FormField, Method};

    use super::*;
    use crate::talkers::{messages, say};

    /// A challenge with the method `act`.
    struct Form {
        metadata: ChallengeMetadata,
        forms: Vec<MethodForm>,
    }

    fn form(description: &str, fields: &[(&str, FieldValues)], content: &str) -> Form {
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
            players: 3,
            methods: vec![Method { name: "act".to_owned(), description: description.to_owned() }],
            ..ChallengeMetadata::default()
        };
        Form { metadata, forms: vec![form("act"), form("resign")] }
    }

    impl Form {
        fn tries(&self, facts: &FormFacts<'_>, rng: &mut SeedRng) -> Vec<(&str, String)> {
            tries(&self.metadata, &self.forms, facts, rng)
        }

        fn bot(self, random: u64) -> FormBot {
            FormBot::new(self.metadata, self.forms, random)
        }
    }

    /// Returns the contents of the first turns of many bots on the second of three seats.
    fn contents(bot: &Form, told: &[&str]) -> BTreeSet<String> {
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
    fn check(bot: &Form, told: &[&str], expected: &[&str]) {
        let expected: BTreeSet<String> = expected.iter().map(|content| (*content).to_owned()).collect();
        assert_eq!(contents(bot, told), expected);
    }

    #[test]
    fn values_are_valid() {
        let number = |min, max| FieldValues::Number { min, max };
        check(&form("", &[("n", number(Some(-1), Some(1)))], "{n}"), &[], &["-1", "0", "1"]);
        check(&form("", &[("n", number(Some(i64::MAX), None))], "{n}"), &[], &["9223372036854775807"]);
        for (content, bounds) in [(number(None, Some(-5)), -105..=-5), (number(None, None), 0..=100)] {
            let drawn = contents(&form("", &[("n", content)], "{n}"), &[]);
            assert!(drawn.iter().all(|drawn| bounds.contains(&drawn.parse::<i64>().unwrap())), "{drawn:?}");
        }
        let whole = contents(&form("", &[("n", number(Some(i64::MIN), Some(i64::MAX)))], "{n}"), &[]);
        assert!(whole.len() > 100);
        check(&form("", &[("to", FieldValues::Seat)], "to {to}"), &[], &["to 1", "to 3"]);
        check(&form("", &[], "pass"), &[], &["pass"]);
    }

    #[test]
    fn fields_differ_and_optional_fields_may_be_missing() {
        let choice = || FieldValues::Choice(vec!["a".to_owned(), "b".to_owned()]);
        check(&form("", &[("x", choice()), ("y", choice())], "{x}[, {y}]"), &[], &["a", "b", "a, b", "b, a"]);
        check(&form("", &[("x", FieldValues::Seat), ("y", FieldValues::Seat)], "{x}{y}"), &[], &["13", "31"]);
    }

    #[test]
    fn texts_are_examples_or_lines_of_the_operator() {
        let text = |max| [("text", FieldValues::Text { max })];
        let example = "Invoices, such as `L2, L5`, or `none`.";
        check(&form(example, &text(None), "{text}"), &[], &["L2, L5", "none"]);
        let told = ["Your code is red-12.\nYou have:\nK1: 800\nK2: 7\nGood luck."];
        let report = form("Lines such as `K2: 85`.", &text(None), "{text}");
        check(&report, &told, &["K1: 800\nK2: 7", "K2: 85"]);
        let mut rng = Seed::from_number(0).rng("invite");
        let facts = FormFacts { told: &told, players: 2, own: None };
        assert_eq!(report.tries(&facts, &mut rng)[0].1, "K1: 800\nK2: 7");
        check(&form("", &text(Some(2)), "{text}"), &[], &["ye", "no", "he"]);
    }

    /// Returns the bot's next step after these messages on the operator channel, in one line. All have the same time.
    fn next(bot: &mut FormBot, operator: &[&str], is_late: bool) -> String {
        say(bot.next(&Heard { me: "me", operator: &messages(operator), chat: &[], is_late }))
    }

    #[test]
    fn the_same_number_gives_the_same_values() {
        let step = |random| {
            let form = form("", &[("n", FieldValues::Number { min: None, max: None })], "{n}");
            next(&mut form.bot(random), &[], false)
        };
        assert_eq!(step(1), step(1));
        assert!((2..20).any(|random| step(random) != step(1)));
    }

    #[test]
    fn a_turn_follows_news_or_a_long_time_without_it() {
        let mut bot = form("", &[], "pass").bot(0);
        let mut all = vec!["operator > all: Go."];
        assert_eq!(next(&mut bot, &all, false), "act pass");
        // The message that follows is the result of the own action.
        all.extend(["me > operator: (act) pass", "operator > all: You passed."]);
        assert_eq!(next(&mut bot, &all, false), "wait");
        assert_eq!(next(&mut bot, &all, true), "act pass");
        assert_eq!(next(&mut bot, &all, false), "wait");
        all.extend(["you > operator: ", "operator > all: Your opponent passed."]);
        assert_eq!(next(&mut bot, &all, false), "act pass");
        // After a refusal without another try, the bot waits for news.
        bot.refused(&Step::Act { method: "act".to_owned(), content: "pass".to_owned() });
        assert_eq!(next(&mut bot, &all, false), "wait");
        all.push("operator > all: Time is up.");
        assert_eq!(next(&mut bot, &all, false), "act pass");
        all.push("operator > me: ERR_GAME_NOT_RUNNING: Game not running.");
        assert_eq!(next(&mut bot, &all, false), "wait");
    }

    #[test]
    fn a_refused_try_is_followed_by_another_one() {
        let choices = FieldValues::Choice(["a", "b", "c", "d"].map(str::to_owned).to_vec());
        let mut bot = form("", &[("x", choices)], "{x}").bot(0);
        let mut tried = BTreeSet::new();
        loop {
            let step = next(&mut bot, &["operator > all: Go."], false);
            if step == "wait" {
                break;
            }
            assert!(tried.insert(step));
            bot.refused(&Step::Act { method: String::new(), content: String::new() });
        }
        assert!((1..=TRIES_PER_METHOD).contains(&tried.len()), "{tried:?}");
    }

    #[test]
    fn seats_are_numbered_by_private_messages() {
        let seat =
            |lines: &[&str]| seat_of(&Heard { me: "me", operator: &messages(lines), chat: &[], is_late: false }, 2);
        assert_eq!(seat(&["operator > you: ", "operator > me: Hello.", "operator > you: "]), Some(1));
        assert_eq!(seat(&["operator > me: Hello."]), None);
    }
}
