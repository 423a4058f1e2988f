//! The options of every command, and the parsers of URLs and keys.

use std::ffi::OsStr;
use std::path::PathBuf;

use arena_nats::NatsUrl;
use clap::builder::TypedValueParser;
use clap::error::ErrorKind;
use clap::{Arg, Args, Command, Error};

use crate::output::Style;

/// Options of every command.
#[derive(Debug, Args)]
#[command(next_help_heading = "Global options")]
pub struct Global {
    /// URL of the server.
    #[arg(long, global = true, env = "ARENA_URL", default_value = "http://localhost:3001", value_parser = base_url)]
    pub url: String,
    /// Your player id: the invite that you joined with.
    #[arg(long, global = true, value_name = "INVITE")]
    pub from: Option<String>,
    // Not global: `serve` has an `--auth` flag of its own. Commands that call a server take KeyArgs.
    /// Session key, for servers with authentication.
    #[arg(long, env = "ARENA_AUTH", hide_env_values = true, value_name = "KEY", value_parser = header_text)]
    pub auth: Option<String>,
    /// PEM file of CA certificates to trust instead of the system's.
    #[arg(long, global = true, env = "ARENA_CACERT", value_name = "FILE")]
    pub cacert: Option<PathBuf>,
    /// Print JSON, one object a line.
    #[arg(long, global = true)]
    pub json: bool,
}

/// The `--auth` option after a command. It overrides [`Global::auth`], which stands before the command and also reads
/// the environment variable.
#[derive(Debug, Args)]
#[command(next_help_heading = "Global options")]
pub struct KeyArgs {
    /// Session key, for servers with authentication [env: ARENA_AUTH]
    #[arg(id = "session_key", long = "auth", global = true, value_name = "KEY", value_parser = header_text)]
    pub auth: Option<String>,
}

impl Global {
    /// Returns these options, with the session key of `key` if it contains one.
    pub fn with(self, key: &KeyArgs) -> Global {
        Global { auth: key.auth.clone().or(self.auth), ..self }
    }

    /// Returns the output style.
    pub fn style(&self) -> Style {
        Style::choose(self.json)
    }
}

/// Returns the name of the first option that is given, of names with true if they are.
pub fn first_given(options: &[(&'static str, bool)]) -> Option<&'static str> {
    options.iter().find(|(_, is_given)| *is_given).map(|(name, _)| *name)
}

/// Parses the URL of a server; removes the trailing slash.
pub fn base_url(text: &str) -> Result<String, String> {
    let rest = text.strip_prefix("http://").or_else(|| text.strip_prefix("https://"));
    match rest {
        Some(rest) if !rest.is_empty() && !rest.starts_with('/') && !rest.contains(['?', '#', ' ']) => {
            Ok(text.trim_end_matches('/').to_owned())
        }
        _ => Err("expected http://HOST:PORT or https://HOST".to_owned()),
    }
}

/// Parses a key: text that fits into an HTTP header.
pub fn header_text(text: &str) -> Result<String, String> {
    match !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic()) {
        true => Ok(text.to_owned()),
        false => Err("expected ASCII characters without spaces".to_owned()),
    }
}

/// Parses the URL of a NATS server. Unlike clap's own parsers, its errors don't repeat the value.
#[derive(Debug, Clone, Copy)]
pub struct NatsUrlParser;

impl TypedValueParser for NatsUrlParser {
    type Value = NatsUrl;

    fn parse_ref(&self, command: &Command, arg: Option<&Arg>, value: &OsStr) -> Result<NatsUrl, Error> {
        let arg = arg.map(ToString::to_string).unwrap_or_default();
        let read = value.to_str().unwrap_or_default().parse();
        read.map_err(|error| Error::raw(ErrorKind::ValueValidation, format!("{arg} is {error}\n")).with_cmd(command))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn url_needs_a_scheme_and_loses_its_last_slash() {
        assert_eq!(base_url("http://localhost:1/"), Ok("http://localhost:1".to_owned()));
        assert!(base_url("localhost:1").is_err());
        assert!(base_url("http://").is_err());
        assert!(base_url("http:///x").is_err());
    }
}
