//! The endpoint of a language model, from the options of the command line.

use arena_llm::{Api, Endpoint, EndpointError, ModelAddress, PRESETS, Preset, ToolUse};

use crate::exit::Failure;
use crate::play::args::ModelArgs;

/// Returns the address of `--model`, or of `--agent model:ADDRESS`.
///
/// # Errors
/// If an address has no name, names an unknown endpoint, or contradicts an option.
pub fn address(args: &ModelArgs, agent: Option<&str>) -> Result<ModelAddress, Failure> {
    let api = args.api.map(Api::from);
    let (model, base) = match agent {
        None => (args.model.clone().unwrap_or_default(), args.api_base.clone()),
        Some(text) if !text.contains('@') => (text.to_owned(), args.api_base.clone()),
        Some(_) if args.api_base.is_some() => {
            let sentence = "--api-base and the endpoint in --agent exclude each other; give only one of them";
            return Err(Failure::usage(sentence));
        }
        Some(text) => {
            let address = ModelAddress::parse(text).map_err(Failure::usage)?;
            if PRESETS.iter().any(|preset| preset.base == address.base) {
                return Ok(ModelAddress { api: api.unwrap_or(address.api), ..address });
            }
            (address.model, Some(address.base))
        }
    };
    if model.is_empty() {
        return Err(Failure::usage("the language model has no name; give --agent model:NAME or --model NAME"));
    }
    let by_name = if model.starts_with("claude") { Api::AnthropicMessages } else { Api::ChatCompletions };
    let api = api.unwrap_or(by_name);
    let vendor = vendor(api);
    let base = base.unwrap_or_else(|| vendor.base.to_owned());
    Ok(ModelAddress { model, base, api, key_env: vendor.key_env.map(str::to_owned) })
}

fn vendor(api: Api) -> &'static Preset {
    let name = if api == Api::AnthropicMessages { "anthropic" } else { "openai" };
    Preset::find(name).expect("both vendors have presets")
}

/// Creates the endpoint at an address, with the key in the environment.
///
/// # Errors
/// If the key is missing or invalid.
pub fn endpoint(address: &ModelAddress, args: &ModelArgs) -> Result<Endpoint, Failure> {
    let endpoint = address.endpoint().map_err(|error| match error {
        EndpointError::NoKey(..) => Failure::usage(format_args!("{error}, or give another endpoint with --api-base")),
        error => Failure::usage(error),
    })?;
    let tool_use = if args.no_tools { ToolUse::Text } else { ToolUse::Native };
    Ok(endpoint.with_tool_use(tool_use))
}

#[cfg(test)]
mod tests {
    use expect_test::expect_file;

    use super::*;
    use crate::play::args::ApiArg;

    #[test]
    fn options_and_addresses_mean_the_same() {
        let model = |name: &str, base: Option<&str>, api| ModelArgs {
            model: Some(name.to_owned()),
            api_base: base.map(str::to_owned),
            api,
            ..ModelArgs::default()
        };
        let none = ModelArgs::default;
        let anthropic = || ModelArgs { api: Some(ApiArg::AnthropicMessages), ..none() };
        let based = || ModelArgs { api_base: Some("http://b/v1".to_owned()), ..none() };
        let rows = [
            (model("m", None, None), None),
            (model("claude-m", None, None), None),
            (model("m", Some("http://a/v1"), Some(ApiArg::Responses)), None),
            (model("a@b", Some("http://a"), Some(ApiArg::AnthropicMessages)), None),
            (none(), Some("m")),
            (none(), Some("m@http://a/v1")),
            (anthropic(), Some("m@http://a")),
            (none(), Some("claude-m@http://a")),
            (none(), Some("m@ollama")),
            (anthropic(), Some("m@ollama")),
            (none(), Some("m@openrouter")),
            (based(), Some("m")),
            (based(), Some("m@ollama")),
            (none(), Some("m@olama")),
            (none(), Some("")),
        ];
        let lines: String = rows
            .into_iter()
            .map(|(args, agent)| match address(&args, agent) {
                Ok(ModelAddress { model, base, api, key_env }) => {
                    format!("{model} at {base} ({api}, {})\n", key_env.as_deref().unwrap_or("no key"))
                }
                Err(failure) => format!("error: {}\n", failure.sentence()),
            })
            .collect();
        expect_file!["address/options_and_addresses_mean_the_same.txt"].assert_eq(&lines);
    }
}
