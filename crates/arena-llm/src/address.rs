//! Addresses of models: a name, and the endpoint after `@`. Pure, except for the environment variable of a key.

use std::fmt;
use std::str::FromStr;

use crate::Api;
use crate::endpoint::{Endpoint, EndpointError, Key};
use crate::presets::{PRESETS, Preset};

/// The address of a model: `NAME@URL`, `NAME@PRESET`, or `NAME` alone for the vendor's endpoint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelAddress {
    /// The model's name at the endpoint.
    pub model: String,
    pub base: String,
    pub api: Api,
    /// The environment variable of the key. The endpoint of a vendor requires it; others use it if it is set.
    pub key_env: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AddressError {
    #[error("`{0}` has no model; give NAME, NAME@URL or NAME@PRESET")]
    NoModel(String),
    #[error("there is no endpoint `{0}`; give a URL or one of {names}", names = preset_names())]
    UnknownPreset(String),
    #[error(transparent)]
    Url(#[from] EndpointError),
}

fn preset_names() -> String {
    PRESETS.map(|preset| preset.name).join(", ")
}

/// Returns the vendor of a model that is named without an endpoint.
fn vendor(model: &str) -> &'static Preset {
    let vendor = if model.starts_with("claude") { "anthropic" } else { "openai" };
    Preset::find(vendor).expect("both vendors have presets")
}

impl FromStr for ModelAddress {
    type Err = AddressError;

    fn from_str(text: &str) -> Result<ModelAddress, AddressError> {
        let schemes = ["@http://", "@https://"];
        let url_at = schemes.iter().filter_map(|scheme| text.rfind(scheme)).max();
        let (model, endpoint) = match url_at {
            Some(at) => (&text[..at], Some(&text[at + 1..])),
            None => text.rsplit_once('@').map_or((text, None), |(model, endpoint)| (model, Some(endpoint))),
        };
        if model.is_empty() {
            return Err(AddressError::NoModel(text.to_owned()));
        }
        let of_preset = |preset: &Preset| ModelAddress {
            model: model.to_owned(),
            base: preset.base.to_owned(),
            api: preset.api,
            key_env: preset.key_env.map(str::to_owned),
        };
        match endpoint {
            None => Ok(of_preset(vendor(model))),
            Some(url) if url_at.is_some() => {
                let base = url.trim_end_matches('/');
                // Vendors have APIs and keys of their own.
                if let Some(preset) = PRESETS.iter().find(|preset| preset.base == base) {
                    return Ok(of_preset(preset));
                }
                let address = ModelAddress { base: base.to_owned(), ..of_preset(vendor(model)) };
                Endpoint::new(address.api, base, None)?;
                Ok(address)
            }
            Some(name) => match Preset::find(name) {
                Some(preset) => Ok(of_preset(preset)),
                None => Err(AddressError::UnknownPreset(name.to_owned())),
            },
        }
    }
}

impl ModelAddress {
    /// Parses an address.
    ///
    /// # Errors
    /// If it has no name, or its endpoint is neither a URL of HTTP nor a preset.
    pub fn parse(text: &str) -> Result<ModelAddress, AddressError> {
        text.parse()
    }

    /// Reads the key of the endpoint from the environment, if there is one.
    ///
    /// # Errors
    /// If the vendor's key isn't set, or the variable contains no key.
    pub fn key(&self) -> Result<Option<Key>, EndpointError> {
        let Some(name) = &self.key_env else { return Ok(None) };
        let is_vendor = self.base.starts_with("https:") && PRESETS.iter().any(|preset| preset.base == self.base);
        match Key::from_env(name, &self.base) {
            Err(EndpointError::NoKey(..)) if !is_vendor => Ok(None),
            key => key.map(Some),
        }
    }

    /// Returns the endpoint, with the key in the environment.
    ///
    /// # Errors
    /// If the key is missing or invalid.
    pub fn endpoint(&self) -> Result<Endpoint, EndpointError> {
        Endpoint::new(self.api, &self.base, self.key()?)
    }
}

impl fmt::Display for ModelAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match PRESETS.iter().find(|preset| preset.base == self.base) {
            Some(preset) if preset == vendor(&self.model) && !self.model.contains('@') => f.write_str(&self.model),
            Some(preset) => write!(f, "{}@{}", self.model, preset.name),
            None => write!(f, "{}@{}", self.model, self.base),
        }
    }
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;

    fn check(text: &str, expected: Expect) {
        let shown = match ModelAddress::parse(text) {
            Err(error) => error.to_string(),
            Ok(address) => {
                // The text that is shown leads to the same address.
                assert_eq!(ModelAddress::parse(&address.to_string()), Ok(address.clone()));
                let ModelAddress { model, base, api, key_env } = &address;
                format!("{model} at {base} ({api}, {}): {address}", key_env.as_deref().unwrap_or("no key"))
            }
        };
        expected.assert_eq(&shown);
    }

    #[test]
    fn an_address_has_a_name_and_an_endpoint() {
        check("gpt-5", expect!["gpt-5 at https://api.openai.com/v1 (chat-completions, OPENAI_API_KEY): gpt-5"]);
        check(
            "claude-x",
            expect!["claude-x at https://api.anthropic.com (anthropic-messages, ANTHROPIC_API_KEY): claude-x"],
        );
        check("m@openai", expect!["m at https://api.openai.com/v1 (chat-completions, OPENAI_API_KEY): m"]);
        check(
            "llama3:8b@ollama",
            expect!["llama3:8b at http://localhost:11434/v1 (chat-completions, no key): llama3:8b@ollama"],
        );
        check("x@llama.cpp", expect!["x at http://localhost:8080/v1 (chat-completions, no key): x@llama.cpp"]);
        check(
            "claude-x@openrouter",
            expect![
                "claude-x at https://openrouter.ai/api/v1 (chat-completions, OPENROUTER_API_KEY): claude-x@openrouter"
            ],
        );
        check(
            "org/m@v1@http://127.0.0.1:80/v1/",
            expect![
                "org/m@v1 at http://127.0.0.1:80/v1 (chat-completions, OPENAI_API_KEY): org/m@v1@http://127.0.0.1:80/v1"
            ],
        );
        check("m@v1@vllm", expect!["m@v1 at http://localhost:8000/v1 (chat-completions, no key): m@v1@vllm"]);
        check("m@2@openai", expect!["m@2 at https://api.openai.com/v1 (chat-completions, OPENAI_API_KEY): m@2@openai"]);
        check(
            "m@https://api.anthropic.com/",
            expect!["m at https://api.anthropic.com (anthropic-messages, ANTHROPIC_API_KEY): m@anthropic"],
        );
        check(
            "claude-x@http://127.0.0.1:1",
            expect![
                "claude-x at http://127.0.0.1:1 (anthropic-messages, ANTHROPIC_API_KEY): claude-x@http://127.0.0.1:1"
            ],
        );
    }

    #[test]
    fn bad_addresses_are_refused_with_advice() {
        check(
            "m@opnai",
            expect![
                "there is no endpoint `opnai`; give a URL or one of openai, anthropic, openrouter, litellm, vllm, ollama, llama.cpp"
            ],
        );
        check("@ollama", expect!["`@ollama` has no model; give NAME, NAME@URL or NAME@PRESET"]);
        check("", expect!["`` has no model; give NAME, NAME@URL or NAME@PRESET"]);
        check("m@http://", expect!["`http:` isn't the URL of an endpoint: it must begin with http:// or https://"]);
        check(
            "m@http://me:secret@a.example",
            expect!["the URL of the endpoint contains a name or password; give the key in an environment variable"],
        );
    }
}
