//! Harnesses: the system prompt of a model, and the policy of its conversation. Pure.

use arena_llm::prompt::{self, Fence, Seating};
use arena_llm::{MAX_INVALID, MAX_REFUSED, SeatPolicy};
use arena_model::Method;
use serde_json::{Value, json};

use crate::hash::hash_of;
use crate::run_file::HarnessSpec;

/// The default of [`Harness::history_tokens`].
const HISTORY_TOKENS: u64 = 60_000;

/// The default of [`Harness::max_turns`].
const MAX_TURNS: u32 = 200;

/// The placeholders of a prompt file.
const PLACEHOLDERS: [&str; 3] = ["rules", "state", "methods"];

/// The prompt and the policy of a conversation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Harness {
    /// The system prompt with the placeholders `{rules}`, `{state}` and `{methods}`. [`Harness::system`] fills them in.
    pub prompt: String,
    pub is_built_in: bool,
    /// The maximum size of a request in tokens. The oldest turns are left out first.
    pub history_tokens: u64,
    /// The maximum number of answers of a seat in a game.
    pub max_turns: u32,
    /// The number of consecutive invalid answers after which a seat ends.
    pub max_invalid: u32,
    /// The number of consecutive refusals after which a seat ends.
    pub max_refused: u32,
    /// The limit of output tokens for one more try after a truncated answer.
    pub truncated_retry: Option<u64>,
    /// The maximum time from the first byte of an answer to its end, in seconds.
    pub turn_seconds: Option<u64>,
    /// The SHA-256 over the prompt and the policy, in hexadecimal.
    pub sha256: String,
}

impl Harness {
    /// Creates a harness. `text` is the content of the prompt file; `None` means the built-in prompt.
    ///
    /// # Errors
    /// If the text has no `{rules}` or an unknown placeholder, as one sentence.
    pub fn of(spec: &HarnessSpec, text: Option<&str>) -> Result<Harness, String> {
        if let Some(text) = text {
            check_prompt(text)?;
        }
        let mut harness = Harness {
            prompt: text.map_or_else(built_in_prompt, str::to_owned),
            is_built_in: text.is_none(),
            history_tokens: spec.history_tokens.unwrap_or(HISTORY_TOKENS),
            max_turns: spec.max_turns.unwrap_or(MAX_TURNS),
            max_invalid: spec.max_invalid.unwrap_or(MAX_INVALID),
            max_refused: spec.max_refused.unwrap_or(MAX_REFUSED),
            truncated_retry: spec.truncated_retry,
            turn_seconds: spec.turn_seconds,
            sha256: String::new(),
        };
        harness.sha256 = harness.hash();
        Ok(harness)
    }

    pub(crate) fn policy(&self) -> SeatPolicy {
        SeatPolicy {
            history_tokens: self.history_tokens,
            max_invalid: self.max_invalid,
            max_refused: self.max_refused,
            max_truncated: 1 + u32::from(self.truncated_retry.is_some()),
        }
    }

    /// Returns the system prompt of a seat.
    pub fn system(&self, seating: &Seating<'_>, fence: &Fence) -> String {
        if self.is_built_in {
            return prompt::system(seating, fence);
        }
        fill(&self.prompt, |name| match name {
            "rules" => Some(seating.rules.trim().to_owned()),
            "methods" => Some(list_methods(seating.methods)),
            "state" => Some(describe_seat(seating, fence.mark())),
            _ => None,
        })
    }

    fn hash(&self) -> String {
        // The tools are part of each request, so other texts in them are another harness.
        let tools: Vec<Value> = prompt::tools(&[sample_method()])
            .iter()
            .map(|tool| json!([tool.name, tool.description, tool.parameters]))
            .collect();
        hash_of(&json!({
            "prompt": self.prompt,
            "tools": tools,
            "history_tokens": self.history_tokens,
            "max_turns": self.max_turns,
            "max_invalid": self.max_invalid,
            "max_refused": self.max_refused,
            "truncated_retry": self.truncated_retry,
            "turn_seconds": self.turn_seconds,
        }))
    }
}

/// Returns the built-in prompt with placeholders instead of a game's values.
fn built_in_prompt() -> String {
    let names = ["{id}".to_owned()];
    let methods = [sample_method()];
    let seating = Seating {
        challenge: "{challenge}",
        rules: "{rules}",
        methods: &methods,
        players: 2,
        names: &names,
        you: "{id}",
    };
    prompt::system(&seating, &Fence::of("{mark}"))
}

fn sample_method() -> Method {
    Method { name: "method".to_owned(), description: "{description}".to_owned() }
}

fn list_methods(methods: &[Method]) -> String {
    let lines: Vec<String> =
        methods.iter().map(|method| format!("- {}: {}", method.name, method.description)).collect();
    lines.join("\n")
}

/// Returns the text of `{state}`: the seat, and the form of messages.
fn describe_seat(seating: &Seating<'_>, mark: &str) -> String {
    let you = seating.name_of(seating.you).replace(" (you)", "");
    let (players, id) = (seating.players, seating.you);
    format!(
        "You are {you}, of {players} players; where ids are used, yours is {id}. Messages of others come between a \
         line <<<{mark} SENDER>>> and a line <<<{mark} end>>>. Only lines with the code {mark} begin and end messages; \
         never repeat the code."
    )
}

/// Checks the placeholders of a prompt.
///
/// # Errors
/// If `{rules}` is missing or a placeholder is unknown, as one sentence.
fn check_prompt(text: &str) -> Result<(), String> {
    let (mut unknown, mut is_complete) = (None, false);
    fill(text, |name| {
        is_complete |= name == "rules";
        if !PLACEHOLDERS.contains(&name) && unknown.is_none() {
            unknown = Some(name.to_owned());
        }
        None
    });
    if let Some(name) = unknown {
        let known: Vec<String> = PLACEHOLDERS.iter().map(|name| format!("{{{name}}}")).collect();
        return Err(format!(
            "unknown placeholder {{{name}}}; the placeholders are {}, and {{{{{name}}}}} stands for the text \
             {{{name}}}",
            known.join(", ")
        ));
    }
    if is_complete { Ok(()) } else { Err("the placeholder {rules} is missing".to_owned()) }
}

/// Replaces each `{name}` by its value, in one pass: values can't contain placeholders. `{{name}}` becomes `{name}`.
/// A name without a value and all other braces stay.
pub(crate) fn fill(text: &str, mut value: impl FnMut(&str) -> Option<String>) -> String {
    let mut filled = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('{') {
        filled += &rest[..at];
        rest = &rest[at..];
        let is_doubled = rest.starts_with("{{");
        let (open, close) = if is_doubled { ("{{", "}}") } else { ("{", "}") };
        let inner = &rest[open.len()..];
        let length = inner.bytes().take_while(|byte| byte.is_ascii_lowercase() || *byte == b'_').count();
        let name = &inner[..length];
        if length == 0 || !inner[length..].starts_with(close) {
            filled += "{";
            rest = &rest[1..];
            continue;
        }
        let whole = open.len() + length + close.len();
        match is_doubled {
            true => filled += &rest[1..whole - 1],
            false => match value(name) {
                Some(value) => filled += &value,
                None => filled += &rest[..whole],
            },
        }
        rest = &rest[whole..];
    }
    filled + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn placeholders_are_replaced_once() {
        let value = |name: &str| match name {
            "rules" => Some("{state} {rules}".to_owned()),
            "state" => Some("S".to_owned()),
            _ => None,
        };
        for (text, filled) in [
            ("", ""),
            ("no placeholder", "no placeholder"),
            ("{rules}|{state}", "{state} {rules}|S"),
            ("{{rules}}", "{rules}"),
            (r#"{"guess": {"a": 1}} {state}"#, r#"{"guess": {"a": 1}} S"#),
            ("{{state}", "{S"),
            ("{", "{"),
            ("{other} {}", "{other} {}"),
            ("ä{state}ä", "äSä"),
        ] {
            assert_eq!(fill(text, value), filled, "{text}");
        }
    }

    #[test]
    fn a_prompt_needs_its_placeholders() {
        let check = |text| check_prompt(text).err().unwrap_or_default();
        for (text, error) in [
            ("{rules} {state} {methods}", ""),
            ("{rules} {{guess}}", ""),
            ("Play.", "the placeholder {rules} is missing"),
            ("{{rules}}", "the placeholder {rules} is missing"),
            (
                "{rules} {guess}",
                "unknown placeholder {guess}; the placeholders are {rules}, {state}, {methods}, and {{guess}} stands \
                 for the text {guess}",
            ),
        ] {
            assert_eq!(check(text), error, "{text}");
        }
    }

    #[test]
    fn the_hash_depends_on_the_prompt_and_the_policy() {
        let hash = |spec: &HarnessSpec, text: Option<&str>| Harness::of(spec, text).unwrap().sha256;
        let default = HarnessSpec::default();
        let same = HarnessSpec { max_turns: Some(MAX_TURNS), ..HarnessSpec::default() };
        assert_eq!(hash(&default, None), hash(&same, None), "the default by name");
        let hashes = [
            hash(&default, None),
            hash(&default, Some("{rules}")),
            hash(&default, Some("{rules}.")),
            hash(&HarnessSpec { max_turns: Some(39), ..HarnessSpec::default() }, None),
            hash(&HarnessSpec { truncated_retry: Some(4000), ..HarnessSpec::default() }, None),
        ];
        for (at, one) in hashes.iter().enumerate() {
            assert!(!hashes[..at].contains(one), "{at}");
        }
    }

    #[test]
    fn a_prompt_file_describes_the_seat() {
        let methods = [Method { name: "guess".to_owned(), description: "Guess a number.".to_owned() }];
        let names = ["ann".to_owned(), "bob".to_owned()];
        let seating = Seating {
            challenge: "psi",
            rules: " Be {state}. ",
            methods: &methods,
            players: 2,
            names: &names,
            you: "bob",
        };
        let harness = Harness::of(&HarnessSpec::default(), Some("{rules}\n{methods}\n{state}")).unwrap();
        let system = harness.system(&seating, &Fence::of("c0de"));
        assert!(
            system.starts_with("Be {state}.\n- guess: Guess a number.\nYou are Player 2, of 2 players"),
            "{system}"
        );
        assert!(system.contains("yours is bob") && system.contains("<<<c0de end>>>"), "{system}");
        let built_in = Harness::of(&HarnessSpec::default(), None).unwrap();
        assert_eq!(built_in.system(&seating, &Fence::of("c0de")), prompt::system(&seating, &Fence::of("c0de")));
    }
}
