//! Well-known endpoints. Pure.

use crate::Api;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Preset {
    /// The name in addresses, after `@`.
    pub name: &'static str,
    pub base: &'static str,
    pub api: Api,
    /// The environment variable of the key, if the endpoint requires one.
    pub key_env: Option<&'static str>,
}

/// The well-known endpoints: vendors first, then servers on this machine at their usual ports.
pub static PRESETS: [Preset; 7] = [
    preset("openai", "https://api.openai.com/v1", Api::ChatCompletions, Some("OPENAI_API_KEY")),
    preset("anthropic", "https://api.anthropic.com", Api::AnthropicMessages, Some("ANTHROPIC_API_KEY")),
    preset("openrouter", "https://openrouter.ai/api/v1", Api::ChatCompletions, Some("OPENROUTER_API_KEY")),
    preset("litellm", "http://localhost:4000/v1", Api::ChatCompletions, Some("LITELLM_API_KEY")),
    preset("vllm", "http://localhost:8000/v1", Api::ChatCompletions, None),
    preset("ollama", "http://localhost:11434/v1", Api::ChatCompletions, None),
    preset("llama.cpp", "http://localhost:8080/v1", Api::ChatCompletions, None),
];

const fn preset(name: &'static str, base: &'static str, api: Api, key_env: Option<&'static str>) -> Preset {
    Preset { name, base, api, key_env }
}

impl Preset {
    pub fn find(name: &str) -> Option<&'static Preset> {
        PRESETS.iter().find(|preset| preset.name == name)
    }
}
