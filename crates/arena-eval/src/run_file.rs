//! The run file: a TOML file with the models, baselines and challenges of an evaluation.

mod mistakes;

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::{env, fs};

use arena_house::Style;
use arena_llm::{Api, Caps, PRESETS, Params, Prices};
use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::Cause;

/// The endpoint of scripted models in run files of earlier programs. Their runs can be read, but not continued.
const STAND_IN: &str = "stand-in";

/// The end of the name of a null variant.
pub const AGAIN: &str = " (again)";

/// Returns the name of a model's null variant.
pub(crate) fn name_again(model: &str) -> String {
    format!("{model}{AGAIN}")
}

/// A run file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunFile {
    /// The name of the run.
    pub name: String,
    /// The number of seeds per challenge. Each seed is played in every seat order.
    pub seeds: usize,
    /// The number from which all seeds are derived.
    #[serde(default)]
    pub seed: u64,
    /// False if no model plays against itself.
    #[serde(default = "yes")]
    pub self_play: bool,
    /// The lineups of challenges with more than two seats.
    #[serde(default)]
    pub lineups: Lineups,
    /// The model that also plays under a second name, to measure the noise between equal players.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub null_variant: Option<String>,
    /// The caps of the whole run.
    #[serde(default)]
    pub budget: BudgetSpec,
    /// The endings of a seat that count as results of the model.
    #[serde(default)]
    pub counts: CountSpec,
    /// The models.
    #[serde(default)]
    pub models: Vec<ModelSpec>,
    /// Other agents for comparison.
    #[serde(default)]
    pub baselines: Vec<BaselineSpec>,
    /// The challenges.
    pub challenges: Vec<ChallengeSpec>,
    /// The harnesses by name. `default` exists always.
    #[serde(default)]
    pub harness: BTreeMap<String, HarnessSpec>,
    /// The judges of files of earlier programs. They are ignored.
    #[serde(default, skip_serializing)]
    pub judges: Vec<IgnoredAny>,
    /// The settings of scripted models in files of earlier programs. They are ignored.
    #[serde(default, skip_serializing)]
    pub stand_in: Option<IgnoredAny>,
}

/// The lineups of challenges with more than two seats.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Lineups {
    /// One agent against copies of another one, and the reverse.
    #[default]
    OneAgainstOthers,
    /// All combinations of agents.
    All,
}

/// The caps of a run. Each call reserves its highest possible price before it is sent. `None` means no cap.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BudgetSpec {
    /// The maximum cost in US dollars.
    pub usd: Option<f64>,
    /// The maximum number of tokens, input and output together.
    pub tokens: Option<u64>,
    /// The maximum duration in hours, over all invocations.
    pub wall_hours: Option<f64>,
    /// The maximum cost of one seat of one game, in US dollars.
    pub usd_per_seat: Option<f64>,
}

impl BudgetSpec {
    /// Returns the caps of all calls together.
    pub(crate) fn caps(&self) -> Caps {
        Caps { usd: self.usd, tokens: self.tokens, calls: None }
    }
}

/// The endings of a seat that count as results of the model. The other endings are only shown.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct CountSpec {
    /// True if games with a seat that ended by a truncated answer count.
    pub truncated: bool,
    /// True if games with a seat that ended by a refusal count.
    pub refused: bool,
    /// True if games with a seat that ended by a limit of turns or cost count.
    pub limit: bool,
}

impl CountSpec {
    /// Returns true if a game with a seat that ended by this cause counts. A game counts if the causes of all its seats
    /// do. An agent that stops acting, or a program that crashes, can't avoid a bad score by that.
    pub fn counts(&self, cause: Cause) -> bool {
        match cause {
            Cause::Completed | Cause::Timeout | Cause::Invalid | Cause::Idle | Cause::Crashed => true,
            Cause::Truncated => self.truncated,
            Cause::Refused => self.refused,
            Cause::Limit => self.limit,
        }
    }
}

/// A model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ModelSpec {
    /// The name in tables.
    pub name: String,
    /// The name at the endpoint.
    pub model: String,
    /// The URL of the endpoint, or the name of a preset.
    pub endpoint: String,
    /// The API: `chat-completions`, `responses` or `anthropic-messages`. The default is that of the preset, or
    /// `chat-completions`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub api: Option<String>,
    /// The environment variable with the key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key_env: Option<String>,
    /// The prices. Without prices, the run has no costs for this model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usd_per_million: Option<Prices>,
    /// The parameters of each request.
    #[serde(default)]
    pub params: Params,
    /// The highest number of concurrent requests of this model.
    #[serde(default = "default_concurrency")]
    pub concurrency: usize,
    /// The harness.
    #[serde(default = "default_harness")]
    pub harness: String,
    /// The way to call tools.
    #[serde(default)]
    pub tools: ToolUseSpec,
    /// The maximum cost of this model in the run, in US dollars.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usd: Option<f64>,
    /// The time limit of an answer in seconds; the default is [`arena_llm::ANSWER_SECONDS`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer_seconds: Option<u64>,
}

/// The way in which a model calls tools.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ToolUseSpec {
    /// Through the tools of the API.
    #[default]
    Native,
    /// As JSON in the text of the answer.
    Text,
}

/// Another agent for comparison.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BaselineSpec {
    /// `house`, `house:NAME`, `random`, the path of a program, or the URL of an agent. Empty if there is a command.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub agent: String,
    /// The command line of a program; the first word is the program itself.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub command: Vec<String>,
    /// The name in tables; the default is the agent, or the name of the program's file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The prices of a bot. Its tokens are estimated from the texts that it reads and writes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usd_per_million: Option<Prices>,
}

/// A challenge with options.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ChallengeSpec {
    /// The built-in challenge, or the folder of a scripted one. In the folder of a run: the file with the script.
    pub name: String,
    /// The name in tables, if a challenge is played with several sets of options.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// The options that differ from the defaults.
    #[serde(default)]
    pub options: Map<String, Value>,
}

/// A harness: the prompt and the policy of a conversation.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct HarnessSpec {
    /// The file with the system prompt, with the placeholders `{rules}`, `{state}` and `{methods}`. The default is a
    /// built-in prompt.
    pub prompt: Option<PathBuf>,
    /// The maximum size of a request in tokens. The oldest turns are left out first.
    pub history_tokens: Option<u64>,
    /// The maximum number of answers of a seat in a game.
    pub max_turns: Option<u32>,
    /// The number of consecutive invalid answers after which a seat ends.
    pub max_invalid: Option<u32>,
    /// The number of consecutive refusals after which a seat ends.
    pub max_refused: Option<u32>,
    /// The limit of output tokens for one more try after a truncated answer.
    pub truncated_retry: Option<u64>,
    /// The maximum time from the first byte of an answer to its end, in seconds. A slower answer counts as a timeout.
    pub turn_seconds: Option<u64>,
}

/// The error of a run file. The text names the key and the remedy.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct RunFileError(pub String);

/// The address of an endpoint. The values of presets are filled in.
#[derive(Debug, Clone, PartialEq)]
pub struct EndpointAddress {
    /// The URL before the path of the API.
    pub base: String,
    /// The API.
    pub api: Api,
    /// The environment variable with the key, if the endpoint needs one.
    pub key_env: Option<String>,
}

impl EndpointAddress {
    fn of(endpoint: &str, api: Option<&str>, key_env: Option<&str>) -> Result<EndpointAddress, String> {
        let api =
            match api {
                None => None,
                Some(name) => Some(name.parse::<Api>().map_err(|_| {
                    format!("unknown api `{name}`; use chat-completions, responses or anthropic-messages")
                })?),
            };
        let key_env = key_env.map(str::to_owned);
        if let Some(preset) = PRESETS.iter().find(|preset| preset.name == endpoint) {
            return Ok(EndpointAddress {
                base: preset.base.trim_end_matches('/').to_owned(),
                api: api.unwrap_or(preset.api),
                key_env: key_env.or_else(|| preset.key_env.map(str::to_owned)),
            });
        }
        let api = api.unwrap_or(Api::ChatCompletions);
        if endpoint == STAND_IN {
            return Ok(EndpointAddress { base: STAND_IN.to_owned(), api, key_env: None });
        }
        let Some(rest) = endpoint.strip_prefix("https://").or_else(|| endpoint.strip_prefix("http://")) else {
            let presets: Vec<&str> = PRESETS.iter().map(|preset| preset.name).collect();
            return Err(format!(
                "endpoint `{endpoint}` is neither a URL nor a preset; use https://… or one of {}",
                presets.join(", ")
            ));
        };
        let has_password = rest.split('/').next().is_some_and(|host| host.contains('@'));
        let query = rest.split_once('?').map_or("", |(_, query)| query).to_ascii_lowercase();
        // The error doesn't repeat the URL, since it contains a secret.
        if has_password || ["key=", "token=", "secret="].iter().any(|name| query.contains(name)) {
            return Err(
                "the URL of the endpoint contains a password or key; name the variable with the key in key_env"
                    .to_owned(),
            );
        }
        Ok(EndpointAddress { base: endpoint.trim_end_matches('/').to_owned(), api, key_env })
    }
}

impl ModelSpec {
    /// Returns the address of the model's endpoint.
    ///
    /// # Errors
    /// If the endpoint or the API is unknown, as one sentence.
    pub fn address(&self) -> Result<EndpointAddress, String> {
        EndpointAddress::of(&self.endpoint, self.api.as_deref(), self.key_env.as_deref())
    }
}

impl RunFile {
    /// Reads and checks a run file. Prompts and challenges are checked by [`EvalPlan::of`](crate::EvalPlan::of).
    ///
    /// # Errors
    /// If the file can't be read or contains a mistake.
    pub fn read(path: &Path) -> Result<RunFile, RunFileError> {
        let name = path.display();
        let text = fs::read_to_string(path).map_err(|error| RunFileError(format!("{name} cannot be read: {error}")))?;
        RunFile::parse(&text, &name.to_string())
    }

    /// Parses and checks the text of a run file. Errors begin with `source`, the name of the file.
    ///
    /// # Errors
    /// The first mistake.
    pub fn parse(text: &str, source: &str) -> Result<RunFile, RunFileError> {
        let file: RunFile = toml::from_str(text).map_err(|error| {
            let line = error.span().map(|span| 1 + text.get(..span.start).unwrap_or(text).matches('\n').count());
            let place = line.map_or_else(String::new, |line| format!(", line {line}"));
            RunFileError(format!("{source}{place}: {}", error.message().trim().replace('\n', "; ")))
        })?;
        file.check().map_err(|RunFileError(mistake)| RunFileError(format!("{source}: {mistake}")))?;
        Ok(file)
    }

    /// Returns true if the file names the scripted models of earlier programs.
    pub fn has_stand_in(&self) -> bool {
        self.stand_in.is_some() || self.models.iter().any(|model| model.endpoint == STAND_IN)
    }

    /// Returns the file as TOML.
    ///
    /// # Errors
    /// If a number exceeds the range of TOML.
    pub fn to_toml(&self) -> Result<String, RunFileError> {
        toml::to_string(self).map_err(|error| RunFileError(format!("the run file cannot be written as TOML: {error}")))
    }

    /// Checks that the environment has the keys of all models.
    ///
    /// # Errors
    /// The first variable that is missing.
    pub fn check_keys(&self) -> Result<(), RunFileError> {
        for model in &self.models {
            let address =
                model.address().map_err(|mistake| RunFileError(format!("model `{}`: {mistake}", model.name)))?;
            let Some(variable) = address.key_env else { continue };
            if env::var_os(&variable).is_none_or(|value| value.is_empty()) {
                return Err(RunFileError(format!(
                    "model `{}`: the environment variable {variable} is not set; set it to the key of {}",
                    model.name, address.base
                )));
            }
        }
        Ok(())
    }
}

impl BaselineSpec {
    /// Returns the name in tables.
    pub fn name(&self) -> &str {
        if let Some(name) = &self.name {
            return name;
        }
        let file = match &self.command[..] {
            [] if !self.is_program() || is_url(&self.agent) => return &self.agent,
            [] => &self.agent,
            // An interpreter's first argument that isn't an option is the script.
            [program, args @ ..] => args.iter().find(|arg| !arg.starts_with('-')).unwrap_or(program),
        };
        Path::new(file).file_stem().and_then(OsStr::to_str).unwrap_or(file)
    }

    /// Returns true for programs and URLs, and false for the bots of this program.
    pub fn is_program(&self) -> bool {
        !self.command.is_empty() || !(self.agent == RANDOM || Style::of_agent(&self.agent).is_some())
    }
}

pub(crate) fn is_url(agent: &str) -> bool {
    agent.starts_with("http://") || agent.starts_with("https://")
}

/// The agent with random valid actions.
pub(crate) const RANDOM: &str = "random";

/// The name of the harness that exists always.
pub(crate) const DEFAULT_HARNESS: &str = "default";

fn yes() -> bool {
    true
}

fn default_concurrency() -> usize {
    32
}

fn default_harness() -> String {
    DEFAULT_HARNESS.to_owned()
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    const FILE: &str = r#"name = "test"
seeds = 2
[[models]]
name = "small"
model = "provider/small-1"
endpoint = "https://api.example/v1/"
params = { max_tokens = 2000, top_k = 5 }
usd_per_million = { input = 1, output = 2 }
[[challenges]]
name = "psi"
"#;

    fn error(text: &str) -> String {
        RunFile::parse(text, "run.toml").err().map(|error| error.to_string()).unwrap_or_default()
    }

    #[test]
    fn a_file_has_defaults_and_survives_toml() {
        let text = format!(
            "{FILE}options = {{ setSize = 7, ranges = [1, 2] }}\n[harness.default]\nmax_turns = 3\n[budget]\nusd = 5\n\
             [[baselines]]\nagent = \"house:leaky\"\nusd_per_million = {{ input = 1, output = 2 }}\n"
        );
        let file = RunFile::parse(&text, "run.toml").unwrap();
        let model = &file.models[0];
        assert_eq!((file.seed, file.self_play, file.lineups), (0, true, Lineups::OneAgainstOthers));
        assert_eq!((model.concurrency, model.harness.as_str(), model.tools), (32, "default", ToolUseSpec::Native));
        assert_eq!(model.params.extra["top_k"], 5);
        assert_eq!(file.budget.usd, Some(5.0));
        assert_eq!(RunFile::parse(&file.to_toml().unwrap(), "run.toml").unwrap(), file);
        let json = serde_json::to_string(&file).unwrap();
        assert_eq!(serde_json::from_str::<RunFile>(&json).unwrap(), file);
    }

    #[test]
    fn an_endpoint_is_a_url_or_a_preset() {
        let of = |endpoint, api, key_env| {
            EndpointAddress::of(endpoint, api, key_env).map(|EndpointAddress { base, api, key_env }| {
                format!("{base} {api} {}", key_env.as_deref().unwrap_or("-"))
            })
        };
        let url = "https://api.example/v1/";
        assert_eq!(of(url, None, Some("KEY")).unwrap(), "https://api.example/v1 chat-completions KEY");
        assert_eq!(of(url, Some("responses"), None).unwrap(), "https://api.example/v1 responses -");
        for preset in PRESETS.iter() {
            let address = EndpointAddress::of(preset.name, None, None).unwrap();
            assert_eq!((address.api, address.key_env.as_deref()), (preset.api, preset.key_env), "{}", preset.name);
            assert!(address.base.starts_with("http"), "{}", preset.name);
        }
    }

    #[test]
    fn each_mistake_is_one_sentence() {
        let model = |line: &str| FILE.replace("[[challenges]]", &format!("{line}\n[[challenges]]"));
        let changed = |from: &str, to: &str| FILE.replace(from, to);
        let second = format!("{FILE}[[models]]\nname = \"small\"\nmodel = \"m\"\nendpoint = \"ollama\"\n");
        assert_eq!(error(&format!("{}[budget]\nusd = 9\n", changed("max_tokens", "max_completion_tokens"))), "");
        let mut errors = vec![
            // The parser's own sentences may change with its version, so only parts are compared.
            (error("name = "), "run.toml, line 1: ".to_owned()),
            (error("name = \"x\"\nseeds = 1"), "missing field `challenges`".to_owned()),
            (
                error("name = \"x\"\nseeds = 1\nsandbox = true\nchallenges = []"),
                "run.toml, line 3: unknown field `sandbox`, expected one of `name`, `seeds`, ".to_owned(),
            ),
            (
                error("name = \"x\"\nseeds = 1\nchallenges = []"),
                "run.toml: there are no models; add a [[models]] table with name, model and endpoint".to_owned(),
            ),
            (error(&model("tools = \"mcp\"")), "unknown variant `mcp`, expected `native` or `text`".to_owned()),
            (error(&changed("input = 1", "inputs = 1")), "unknown field `inputs`".to_owned()),
            (
                error(&format!("{}[budget]\nusd = 1\n", changed("usd_per_million = { input = 1, output = 2 }", ""))),
                "run.toml: model `small`: budget.usd is a cap in dollars, but the prices are missing; add usd_per_million \
                 = { input = …, output = … }"
                    .to_owned(),
            ),
            (
                error(&format!("{}[budget]\ntokens = 9\n", changed("max_tokens = 2000, ", ""))),
                "run.toml: model `small`: budget.tokens caps the run, but an answer has no limit; add max_tokens to \
                 params, so that calls can be reserved before they are sent"
                    .to_owned(),
            ),
        ];
        let twice = "the name is used twice; give each model and baseline its own";
        let prices = "usd_per_million = { input = 1, output = 2 }";
        for (more, expected) in [
            (&second[FILE.len()..], &*format!("model `small`: {twice}")),
            ("[[baselines]]\nagent = \"random\"\nname = \"small\"", &format!("baseline `small`: {twice}")),
            (
                "[[baselines]]\nagent = \"stockfish\"",
                "baselines: unknown agent `stockfish`; the agents are house, house:easy, house:leaky, ",
            ),
            (
                "[[baselines]]\nagent = \"house\"\nusd_per_million = { input = -1, output = 2 }",
                "baselines: usd_per_million.input must be a price of at least 0, not -1",
            ),
            (
                &format!("[[baselines]]\nagent = \"./b\"\n{prices}"),
                "baselines: `b` is a program; usd_per_million is for models and house bots",
            ),
            ("[[baselines]]\nname = \"x\"", "baselines: a baseline has no agent; add agent or command"),
            (
                "[[baselines]]\nname = \"x\"\nagent = \"./bot\"\ncommand = [\"./bot\"]",
                "baselines: `./bot` has both agent and command; remove one of them",
            ),
            (
                "[[baselines]]\nagent = \"model:m@ollama\"",
                "baselines: `model:m@ollama` is a language model; add a [[models]] table for it",
            ),
            ("[budget]\nusd = 0", "budget.usd must be more than 0, not 0; leave it out for no cap"),
            ("[budget]\nwall_hours = -1", "budget.wall_hours must be more than 0, not -1; leave it out for no cap"),
            ("[harness.default]\nmax_turns = 0", "harness.default.max_turns must be at least 1, not 0"),
            ("[harness.default]\nhistory_tokens = 10", "harness.default.history_tokens must be at least 1000, not 10"),
            (
                "[harness.default]\ntruncated_retry = 2000",
                "model `small`: truncated_retry of harness `default` is 2000; it must exceed params.max_tokens, which is \
                 2000",
            ),
        ] {
            errors.push((error(&format!("{FILE}{more}\n")), format!("run.toml: {expected}")));
        }
        errors.push((error(&format!("{FILE}[budget]\neuros = 1\n")), "unknown field `euros`".to_owned()));
        for (seeds, expected) in [
            ("seeds = -1", "invalid value: integer `-1`"),
            ("seeds = 2\nlineups = \"some\"", "unknown variant `some`, expected `one-against-others` or `all`"),
            ("seeds = 0", "run.toml: seeds must be 1 to 1000000, not 0"),
            (
                "seeds = 2\nnull_variant = \"large\"",
                "run.toml: null_variant: there is no model `large`; the models are small",
            ),
        ] {
            errors.push((error(&changed("seeds = 2", seeds)), expected.to_owned()));
        }
        errors.push((error(&changed("name = \"test\"", "name = \" \"")), "run.toml: name is empty".to_owned()));
        let in_model = |text: &str, expected: &str| (error(text), format!("run.toml: model `small`: {expected}"));
        for (line, expected) in [
            ("answer_seconds = 0", "answer_seconds must be 1 to 86400, not 0"),
            ("concurrency = 0", "concurrency must be at least 1"),
            ("harness = \"terse\"", "there is no harness `terse`; the harnesses are default"),
            ("api = \"rest\"", "unknown api `rest`; use chat-completions, responses or anthropic-messages"),
            ("key_env = \"sk-1234\"", "key_env must be the name of an environment variable, not the key itself"),
            ("usd = -1", "usd must be more than 0, not -1; leave it out for no cap"),
        ] {
            errors.push(in_model(&model(line), expected));
        }
        let secret = "the URL of the endpoint contains a password or key; name the variable with the key in key_env";
        for (url, expected) in [
            ("opnai", "endpoint `opnai` is neither a URL nor a preset; use https://… or one of "),
            ("https://user:secret@api.example/v1", secret),
            ("https://api.example/v1?api_key=secret", secret),
            ("https://", "`https:` isn't the URL of an endpoint: "),
            ("http://127.0.0.1:/v1", "`http://127.0.0.1:/v1` isn't the URL of an endpoint: its port isn't a number"),
            ("http://[::1]:0/v1", "`http://[::1]:0/v1` isn't the URL of an endpoint: its port isn't a number"),
            ("http://api example/v1", "`http://api example/v1` isn't the URL of an endpoint: it cannot be parsed"),
        ] {
            errors.push(in_model(&changed("https://api.example/v1/", url), expected));
        }
        for (from, to, expected) in [
            (
                "top_k = 5",
                "api_key = \"secret\"",
                "params.api_key would write a key into the files of the run; use key_env",
            ),
            (
                "top_k = 5",
                "stream = true",
                "params.stream must be left out: each request asks for one answer, as a whole",
            ),
            ("top_k = 5", "n = 4.0", "params.n must be left out: "),
            ("input = 1", "input = -1", "usd_per_million.input must be a price of at least 0, not -1"),
            (
                "input = 1",
                "input = 1, cached = 3",
                "usd_per_million.cached is 3, more than the price of other input, 1; are they swapped?",
            ),
        ] {
            errors.push(in_model(&changed(from, to), expected));
        }
        for (error, expected) in errors {
            assert!(error.starts_with("run.toml") && error.contains(&expected), "{error}\nshould contain\n{expected}");
            assert!(!error.contains("secret") && !error.contains("1234") && !error.contains('\n'), "{error}");
        }
    }

    #[test]
    fn files_of_earlier_programs_with_scripted_models_can_be_read() {
        let file = |text: &str| RunFile::parse(text, "run.toml").unwrap();
        assert!(!file(FILE).has_stand_in());
        let old = file(&FILE.replace("https://api.example/v1/", "stand-in"));
        assert!(old.has_stand_in() && file(&old.to_toml().unwrap()).has_stand_in());
        assert!(file(&format!("{FILE}[stand_in]\nseed = 2\n")).has_stand_in());
    }

    #[test]
    fn programs_are_named_after_their_files() {
        let name = |lines: &str| {
            let file = RunFile::parse(&format!("{FILE}[[baselines]]\n{lines}\n"), "run.toml").unwrap();
            assert_eq!(RunFile::parse(&file.to_toml().unwrap(), "run.toml").unwrap(), file);
            let baseline = &file.baselines[0];
            (baseline.name().to_owned(), baseline.is_program())
        };
        assert_eq!(name("agent = \"house:easy\""), ("house:easy".to_owned(), false));
        assert_eq!(name("agent = \"bots/clever.py\""), ("clever".to_owned(), true));
        assert_eq!(name("agent = \"py:bots/clever.py:play\""), ("clever".to_owned(), true));
        assert_eq!(name("agent = \"py:clever\""), ("py:clever".to_owned(), true));
        assert_eq!(name("agent = \"./bots/\""), ("bots".to_owned(), true));
        assert_eq!(name("agent = \"http://127.0.0.1:80/x.y\""), ("http://127.0.0.1:80/x.y".to_owned(), true));
        assert_eq!(name("command = [\"python3\", \"-u\", \"bot.py\", \"--level=3\"]"), ("bot".to_owned(), true));
        assert_eq!(name("command = [\"./bot\", \"--level=3\"]"), ("bot".to_owned(), true));
        assert_eq!(name("agent = \"./bot\"\nname = \"mine\""), ("mine".to_owned(), true));
    }

    #[test]
    fn keys_are_needed_when_a_run_starts() {
        let file = RunFile::parse(FILE, "run.toml").unwrap();
        assert!(file.check_keys().is_ok(), "no key is needed");
        let text = FILE.replace("[[challenges]]", "key_env = \"ARENA_EVAL_ABSENT_KEY\"\n[[challenges]]");
        let file = RunFile::parse(&text, "run.toml").unwrap();
        expect!["model `small`: the environment variable ARENA_EVAL_ABSENT_KEY is not set; set it to the key of https://api.example/v1"]
            .assert_eq(&file.check_keys().unwrap_err().to_string());
    }
}
