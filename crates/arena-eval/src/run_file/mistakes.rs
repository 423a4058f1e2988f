//! The checks of a run file. Each mistake is a sentence with the key and the remedy.

use std::collections::BTreeSet;

use arena_house::Style;
use arena_llm::{Endpoint, Prices};
use serde_json::Value;

use super::{
    BaselineSpec, BudgetSpec, DEFAULT_HARNESS, HarnessSpec, ModelSpec, RANDOM, RunFile, RunFileError, STAND_IN,
    name_again,
};

/// The longest name of a run, agent or challenge, in characters.
const LONGEST_NAME: usize = 80;

const MOST_SEEDS: usize = 1_000_000;

/// The smallest limit of a conversation, in tokens. The rules alone need more than that.
const LEAST_HISTORY: u64 = 1000;

/// The longest time limit of an answer in seconds: a day.
const MOST_ANSWER_SECONDS: u64 = 86_400;

/// Parameters that would write a secret into the files of a run.
const SECRETS: [&str; 4] = ["api_key", "apikey", "authorization", "x-api-key"];

/// Returns a mistake from the function unless the condition holds.
macro_rules! require {
    ($condition:expr, $($mistake:tt)+) => {
        if !$condition {
            return Err(format!($($mistake)+));
        }
    };
}

impl RunFile {
    /// Checks all values that can be checked without other files.
    ///
    /// # Errors
    /// The first mistake, without the name of the file.
    pub fn check(&self) -> Result<(), RunFileError> {
        let check_model =
            |model: &ModelSpec| self.check_model(model).map_err(|mistake| format!("model `{}`: {mistake}", model.name));
        self.check_run()
            .and_then(|()| self.check_names())
            .and_then(|()| self.harness.iter().try_for_each(|(name, harness)| check_harness(name, harness)))
            .and_then(|()| self.models.iter().try_for_each(check_model))
            .map_err(RunFileError)
    }

    fn check_run(&self) -> Result<(), String> {
        check_name("name", &self.name)?;
        require!((1..=MOST_SEEDS).contains(&self.seeds), "seeds must be 1 to {MOST_SEEDS}, not {}", self.seeds);
        let BudgetSpec { usd, tokens, wall_hours, usd_per_seat } = self.budget;
        check_cap("budget.usd", usd)?;
        check_cap("budget.tokens", tokens.map(|tokens| tokens as f64))?;
        check_cap("budget.wall_hours", wall_hours)?;
        check_cap("budget.usd_per_seat", usd_per_seat)?;
        let has_agents = !self.models.is_empty() || !self.baselines.is_empty();
        require!(has_agents, "there are no models; add a [[models]] table with name, model and endpoint");
        require!(!self.challenges.is_empty(), "there are no challenges; add a [[challenges]] table with a name");
        for challenge in &self.challenges {
            require!(
                !challenge.name.is_empty(),
                "a challenge has an empty name; use a built-in challenge or the path of a folder"
            );
            challenge.label.iter().try_for_each(|label| check_name("challenges.label", label))?;
        }
        Ok(())
    }

    fn check_names(&self) -> Result<(), String> {
        let mut taken: BTreeSet<String> = self.null_variant.as_deref().map(name_again).into_iter().collect();
        let models = self.models.iter().map(|model| ("model", model.name.as_str()));
        for (kind, name) in models.chain(self.baselines.iter().map(|baseline| ("baseline", baseline.name()))) {
            check_name(&format!("{kind}s.name"), name)?;
            require!(
                taken.insert(name.to_owned()),
                "{kind} `{name}`: the name is used twice; give each model and baseline its own"
            );
        }
        if let Some(name) = &self.null_variant {
            let names: Vec<&str> = self.models.iter().map(|model| model.name.as_str()).collect();
            require!(
                names.contains(&name.as_str()),
                "null_variant: there is no model `{name}`; the models are {}",
                names.join(", ")
            );
        }
        self.baselines.iter().try_for_each(BaselineSpec::check).map_err(|mistake| format!("baselines: {mistake}"))
    }

    fn check_model(&self, model: &ModelSpec) -> Result<(), String> {
        let ModelSpec { harness: name, concurrency, answer_seconds, params, .. } = model;
        self.check_endpoint(model)?;
        require!(*concurrency > 0, "concurrency must be at least 1");
        if let Some(seconds) = answer_seconds {
            require!(
                (1..=MOST_ANSWER_SECONDS).contains(seconds),
                "answer_seconds must be 1 to {MOST_ANSWER_SECONDS}, not {seconds}"
            );
        }
        let harness = self.harness.get(name);
        if harness.is_none() && name != DEFAULT_HARNESS {
            let mut names: Vec<&str> = self.harness.keys().map(String::as_str).collect();
            if !names.contains(&DEFAULT_HARNESS) {
                names.insert(0, DEFAULT_HARNESS);
            }
            return Err(format!("there is no harness `{name}`; the harnesses are {}", names.join(", ")));
        }
        if let Some((retry, most)) = harness.and_then(|harness| harness.truncated_retry).zip(params.output_limit()) {
            require!(
                retry > most,
                "truncated_retry of harness `{name}` is {retry}; it must exceed params.max_tokens, which is {most}"
            );
        }
        Ok(())
    }

    fn check_endpoint(&self, spec: &ModelSpec) -> Result<(), String> {
        let ModelSpec { model, key_env, params, usd_per_million: prices, usd, .. } = spec;
        require!(!model.is_empty(), "model is empty; it is the name of the model at the endpoint");
        let address = spec.address()?;
        if address.base == STAND_IN {
            return Ok(());
        }
        // The URL is checked before a folder is created for the run.
        Endpoint::new(address.api, &address.base, None).map_err(|error| error.to_string())?;
        let is_variable = |name: &str| {
            name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
                && name.bytes().next().is_some_and(|byte| !byte.is_ascii_digit())
        };
        // The error doesn't repeat the value, since it may be a key.
        require!(
            key_env.as_deref().is_none_or(is_variable),
            "key_env must be the name of an environment variable, not the key itself"
        );
        if let Some(name) = params.extra.keys().find(|name| SECRETS.contains(&name.to_ascii_lowercase().as_str())) {
            return Err(format!("params.{name} would write a key into the files of the run; use key_env"));
        }
        if let Some(name) = ["stream", "n", "best_of"].iter().find(|name| !is_usual(params.extra.get(**name))) {
            return Err(format!("params.{name} must be left out: each request asks for one answer, as a whole"));
        }
        require!(params.output_limit() != Some(0), "params.max_tokens must be at least 1");
        check_cap("usd", *usd)?;
        prices.as_ref().map_or(Ok(()), check_prices)?;
        let BudgetSpec { usd: run_usd, tokens, usd_per_seat, .. } = self.budget;
        let dollars = [("budget.usd", run_usd), ("budget.usd_per_seat", usd_per_seat), ("usd", *usd)];
        let dollars = dollars.into_iter().find_map(|(key, cap)| cap.map(|_| key));
        if let Some(key) = dollars {
            require!(
                prices.is_some(),
                "{key} is a cap in dollars, but the prices are missing; add usd_per_million = {{ input = …, output = … }}"
            );
        }
        if let Some(key) = dollars.or(tokens.map(|_| "budget.tokens")) {
            require!(
                params.output_limit().is_some(),
                "{key} caps the run, but an answer has no limit; add max_tokens to params, so that calls can be \
                 reserved before they are sent"
            );
        }
        Ok(())
    }
}

impl BaselineSpec {
    fn check(&self) -> Result<(), String> {
        let BaselineSpec { agent, command, usd_per_million: prices, .. } = self;
        require!(!agent.is_empty() || !command.is_empty(), "a baseline has no agent; add agent or command");
        require!(agent.is_empty() || command.is_empty(), "`{agent}` has both agent and command; remove one of them");
        require!(!command.iter().any(String::is_empty), "a word of a command is empty");
        require!(!agent.starts_with("model:"), "`{agent}` is a language model; add a [[models]] table for it");
        // Other words are more likely misspelled bots than files.
        if self.is_program() && command.is_empty() && !agent.contains(['/', '.']) && !agent.starts_with("py:") {
            let agents = Style::agents();
            return Err(format!(
                "unknown agent `{agent}`; the agents are {agents}, {RANDOM}, or a program such as ./{agent}"
            ));
        }
        let Some(prices) = prices else { return Ok(()) };
        require!(!self.is_program(), "`{}` is a program; usd_per_million is for models and house bots", self.name());
        check_prices(prices)
    }
}

/// Returns true for a number of answers, or a choice of streaming, that changes nothing.
fn is_usual(value: Option<&Value>) -> bool {
    value.is_none_or(|value| value.is_null() || *value == false || value.as_f64() == Some(1.0))
}

fn check_name(key: &str, name: &str) -> Result<(), String> {
    require!(!name.trim().is_empty(), "{key} is empty");
    require!(
        !name.chars().any(char::is_control) && name.trim() == name,
        "{key} {name:?} begins or ends with a space, or contains a control character"
    );
    let length = name.chars().count();
    require!(length <= LONGEST_NAME, "{key} has {length} characters; the maximum is {LONGEST_NAME}");
    Ok(())
}

fn check_prices(Prices { input, cached, output }: &Prices) -> Result<(), String> {
    for (key, price) in [("input", Some(*input)), ("cached", *cached), ("output", Some(*output))] {
        let price = price.unwrap_or_default();
        require!(price.is_finite() && price >= 0.0, "usd_per_million.{key} must be a price of at least 0, not {price}");
    }
    if let Some(cached) = cached.filter(|cached| cached > input) {
        return Err(format!(
            "usd_per_million.cached is {cached}, more than the price of other input, {input}; are they swapped?"
        ));
    }
    Ok(())
}

fn check_cap(key: &str, cap: Option<f64>) -> Result<(), String> {
    let Some(cap) = cap else { return Ok(()) };
    require!(cap.is_finite() && cap > 0.0, "{key} must be more than 0, not {cap}; leave it out for no cap");
    Ok(())
}

fn check_harness(name: &str, harness: &HarnessSpec) -> Result<(), String> {
    let least = [
        ("history_tokens", harness.history_tokens, LEAST_HISTORY),
        ("max_turns", harness.max_turns.map(u64::from), 1),
        ("max_invalid", harness.max_invalid.map(u64::from), 1),
        ("max_refused", harness.max_refused.map(u64::from), 1),
        ("truncated_retry", harness.truncated_retry, 1),
        ("turn_seconds", harness.turn_seconds, 1),
    ];
    for (key, value, least) in least {
        let value = value.unwrap_or(least);
        require!(value >= least, "harness.{name}.{key} must be at least {least}, not {value}");
    }
    Ok(())
}
