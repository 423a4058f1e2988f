//! Templates of command-line agents: the command, its environment and files, the gateway, and the limits. Pure, except
//! for the file.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Component, Path, PathBuf};

use arena_llm::{Api, ModelAddress, PRESETS, Preset, Prices};
use serde::Deserialize;

/// The templates of known tools, by name.
const SAMPLES: [(&str, &str); 3] = [
    ("claude-code", include_str!("../../../../../examples/cli-agents/claude-code.toml")),
    ("codex", include_str!("../../../../../examples/cli-agents/codex.toml")),
    ("opencode", include_str!("../../../../../examples/cli-agents/opencode.toml")),
];

/// The words in braces that a template may contain. [`FOLDER`](crate::process::FOLDER) is replaced by the launcher.
const PLACEHOLDERS: [&str; 8] =
    ["base_url", "folder", "mcp_config", "mcp_url", "model", "prompt", "prompt_file", "token"];

/// The file with the prompt in the scratch folder.
pub const PROMPT_FILE: &str = "prompt.md";

/// The default limit of output tokens of a call.
const OUTPUT_TOKENS: u64 = 16_384;

/// The maximum size of a template in bytes.
const TEMPLATE_BYTES: u64 = 64 << 10;

#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Template {
    /// The program and its arguments.
    pub command: Vec<String>,
    /// The provider's API that the agent speaks. Without it, the agent has no model of the arena.
    pub gateway: Option<GatewayKind>,
    /// The address of the model, such as `NAME@ENDPOINT`.
    pub model: Option<String>,
    /// Files and folders that the agent may read, besides the program's own folder.
    #[serde(default)]
    pub expose: Vec<PathBuf>,
    /// Environment variables.
    #[serde(default)]
    pub env: BTreeMap<String, String>,
    /// The files in the scratch folder: relative paths, and texts.
    #[serde(default)]
    pub files: BTreeMap<PathBuf, String>,
    /// The limits.
    #[serde(default)]
    pub limits: TemplateLimits,
    /// The prices of the model.
    pub prices: Option<Prices>,
}

/// A provider's API, with its paths.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum GatewayKind {
    /// Chat Completions and Responses.
    OpenAi,
    /// Messages.
    Anthropic,
}

/// The limits of one match.
#[derive(Debug, Clone, Copy, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TemplateLimits {
    /// The time of the match in seconds.
    pub seconds: Option<f64>,
    /// The cost in US dollars.
    pub usd: Option<f64>,
    /// Input and output tokens together.
    pub tokens: Option<u64>,
    /// The output tokens of one call.
    output_tokens: Option<u64>,
}

pub struct Values<'v> {
    pub base_url: &'v str,
    pub mcp_url: &'v str,
    pub model: &'v str,
    pub prompt: &'v str,
    pub token: &'v str,
}

impl Template {
    /// Returns the template in a file, or the sample of this name.
    ///
    /// # Errors
    /// If there is none, or it is invalid: the reason in a sentence.
    pub fn find(name: &str) -> Result<Template, String> {
        let path = Path::new(name);
        let text = match fs::metadata(path) {
            Ok(data) if data.len() > TEMPLATE_BYTES => {
                return Err(format!("the template {name} is larger than {} KiB", TEMPLATE_BYTES >> 10));
            }
            Ok(_) => {
                fs::read_to_string(path).map_err(|error| format!("the template {name} cannot be read: {error}"))?
            }
            Err(_) => {
                let sample = SAMPLES.iter().find(|(sample, _)| *sample == name);
                let names = SAMPLES.map(|(sample, _)| sample).join(", ");
                let missing = || format!("there is no template `{name}`; give the path of a file, or one of {names}");
                sample.map(|(_, text)| (*text).to_owned()).ok_or_else(missing)?
            }
        };
        Template::parse(&text).map_err(|why| format!("the template {name}: {why}"))
    }

    /// Parses a template.
    ///
    /// # Errors
    /// The reason in a sentence.
    pub fn parse(text: &str) -> Result<Template, String> {
        let template: Template = toml::from_str(text).map_err(|error| error.to_string().trim().replace('\n', " "))?;
        if template.command.first().is_none_or(String::is_empty) {
            return Err("`command` is empty; give the program and its arguments".to_owned());
        }
        let inside = |path: &Path| path.components().all(|part| matches!(part, Component::Normal(_)));
        if let Some(path) = template.files.keys().find(|path| !inside(path) || path.as_os_str().is_empty()) {
            return Err(format!("the file {} must have a path inside of the scratch folder", path.display()));
        }
        if template.limits.seconds.is_some_and(|seconds| !(0.001..=1e6).contains(&seconds)) {
            return Err("`limits.seconds` must be a number from 0.001 to 1000000".to_owned());
        }
        if template.limits.usd.is_some_and(|usd| !(0.0..=1e6).contains(&usd)) {
            return Err("`limits.usd` must be a number from 0 to 1000000".to_owned());
        }
        if let Some(prices) = &template.prices
            && [prices.input, prices.output, prices.cached.unwrap_or(0.0)]
                .iter()
                .any(|price| !(0.0..=1e6).contains(price))
        {
            return Err("`prices` must be numbers from 0 to 1000000, in US dollars per million tokens".to_owned());
        }
        if template.gateway.is_none() && (template.limits.usd.is_some() || template.limits.tokens.is_some()) {
            return Err("`limits.usd` and `limits.tokens` need `gateway`, which counts the tokens".to_owned());
        }
        let texts = template.command.iter().chain(template.env.values()).chain(template.files.values());
        let unknown: BTreeSet<&str> =
            texts.flat_map(|text| placeholders(text)).filter(|word| !PLACEHOLDERS.contains(word)).collect();
        match unknown.first() {
            Some(word) => {
                Err(format!("`{{{word}}}` is no placeholder; the placeholders are {}", PLACEHOLDERS.join(", ")))
            }
            None => Ok(template),
        }
    }

    /// Checks that a cap in dollars has prices.
    ///
    /// # Errors
    /// The reason in a sentence.
    pub fn check_prices(&self) -> Result<(), String> {
        match self.limits.usd.is_some() && self.prices.is_none() {
            true => Err("a limit in US dollars needs the model's `prices` in the template".to_owned()),
            false => Ok(()),
        }
    }

    pub fn output_tokens(&self) -> u64 {
        self.limits.output_tokens.unwrap_or(OUTPUT_TOKENS)
    }

    /// Replaces the placeholders in a text, except for the scratch folder.
    pub fn fill(&self, text: &str, values: &Values<'_>) -> String {
        let file = |path: &str| format!("{}/{path}", crate::process::FOLDER);
        let config =
            self.files.iter().find(|(_, text)| text.contains("{mcp_url}")).map(|(path, _)| path.to_string_lossy());
        let config = file(&config.unwrap_or_default());
        // A single pass: a value may contain braces.
        let (mut filled, mut rest) = (String::new(), text);
        while let Some((before, after)) = rest.split_once('{') {
            filled += before;
            let word = after.split_once('}').map(|(word, _)| word);
            let value = match word {
                Some("base_url") => Some(values.base_url),
                Some("mcp_config") => Some(config.as_str()),
                Some("mcp_url") => Some(values.mcp_url),
                Some("model") => Some(values.model),
                Some("prompt") => Some(values.prompt),
                Some("token") => Some(values.token),
                _ => None,
            };
            match (value, word) {
                (Some(value), Some(word)) => {
                    filled += value;
                    rest = &after[word.len() + 1..];
                }
                (None, Some("prompt_file")) => {
                    filled += &file(PROMPT_FILE);
                    rest = &after["prompt_file}".len()..];
                }
                _ => {
                    filled.push('{');
                    rest = after;
                }
            }
        }
        filled + rest
    }
}

/// Returns the words of lower-case letters in braces.
fn placeholders(text: &str) -> impl Iterator<Item = &str> {
    text.split('{').skip(1).filter_map(|after| {
        let (word, _) = after.split_once('}')?;
        let is_word = !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_');
        is_word.then_some(word)
    })
}

impl GatewayKind {
    /// Parses the address of a model at an endpoint with this API.
    ///
    /// # Errors
    /// If the address is invalid, or names an endpoint with another API.
    pub fn address(self, text: &str) -> Result<ModelAddress, String> {
        let mut address = ModelAddress::parse(text).map_err(|error| error.to_string())?;
        let is_anthropic = |api: Api| api == Api::AnthropicMessages;
        let wants_anthropic = self == GatewayKind::Anthropic;
        if is_anthropic(address.api) != wants_anthropic {
            if let Some(preset) = PRESETS.iter().find(|preset| preset.base == address.base) {
                let own = if wants_anthropic { "anthropic" } else { "openai" };
                return Err(format!(
                    "the template speaks the API of {own}, but {text} is at {}, which doesn't; give NAME@URL",
                    preset.name
                ));
            }
            let vendor = Preset::find(if wants_anthropic { "anthropic" } else { "openai" });
            let vendor = vendor.ok_or("the vendor has no preset")?;
            (address.api, address.key_env) = (vendor.api, vendor.key_env.map(str::to_owned));
        }
        Ok(address)
    }

    /// Returns the URL that a client of the provider needs for a gateway on this port.
    pub fn base_url(self, port: u16) -> String {
        match self {
            GatewayKind::OpenAi => format!("http://127.0.0.1:{port}/v1"),
            GatewayKind::Anthropic => format!("http://127.0.0.1:{port}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;

    #[track_caller]
    fn check(text: &str, expected: Expect) {
        expected.assert_eq(&Template::parse(text).map_or_else(|why| why, |template| format!("{:?}", template.command)));
    }

    #[test]
    fn bad_templates_are_refused_with_reasons() {
        check("command = ['x', '{prompt}']", expect![[r#"["x", "{prompt}"]"#]]);
        check("command = []", expect!["`command` is empty; give the program and its arguments"]);
        check(
            "command = ['x', '{promt}']",
            expect![
                "`{promt}` is no placeholder; the placeholders are base_url, folder, mcp_config, mcp_url, model, prompt, prompt_file, token"
            ],
        );
        check(
            "command = ['x']\nfiles = {'../a' = ''}",
            expect!["the file ../a must have a path inside of the scratch folder"],
        );
        check(
            "command = ['x']\nlimits = {usd = 1}",
            expect!["`limits.usd` and `limits.tokens` need `gateway`, which counts the tokens"],
        );
        check(
            "command = ['x']\nlimits = {seconds = 0}",
            expect!["`limits.seconds` must be a number from 0.001 to 1000000"],
        );
        assert!(Template::parse("command = ['x']\ncomand = 1").unwrap_err().contains("unknown field `comand`"));
        let missing = Template::find("claude").unwrap_err();
        expect!["there is no template `claude`; give the path of a file, or one of claude-code, codex, opencode"]
            .assert_eq(&missing);
    }

    #[test]
    fn samples_are_valid_and_filled_in_one_pass() {
        let values =
            Values { base_url: "http://b", mcp_url: "http://m", model: "{token}", prompt: "{model}", token: "t" };
        for (name, _) in SAMPLES {
            let template = Template::find(name).unwrap();
            assert!(template.gateway.is_some() && template.command.iter().any(|arg| arg == "{prompt}"));
            let files: Vec<String> = template.files.values().map(|text| template.fill(text, &values)).collect();
            assert!(files.iter().any(|text| text.contains("\"http://m\"")), "{files:?}");
        }
        let claude = Template::find("claude-code").unwrap();
        let filled = claude.fill("{prompt} {model} {x} {mcp_config} {prompt_file} {folder} {", &values);
        assert_eq!(filled, "{model} {token} {x} {folder}/mcp.json {folder}/prompt.md {folder} {");
    }

    #[test]
    fn addresses_fit_the_templates_api() {
        let show = |kind: GatewayKind, text: &str| match kind.address(text) {
            Ok(address) => format!("{} {} {}", address.base, address.api, address.key_env.unwrap_or_default()),
            Err(why) => why,
        };
        expect!["http://127.0.0.1:1 anthropic-messages ANTHROPIC_API_KEY"]
            .assert_eq(&show(GatewayKind::Anthropic, "m@http://127.0.0.1:1"));
        expect!["https://api.openai.com/v1 chat-completions OPENAI_API_KEY"]
            .assert_eq(&show(GatewayKind::OpenAi, "gpt-5"));
        expect!["the template speaks the API of anthropic, but gpt-5 is at openai, which doesn't; give NAME@URL"]
            .assert_eq(&show(GatewayKind::Anthropic, "gpt-5"));
    }
}
