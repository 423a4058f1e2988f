//! URLs that may contain a password.

use std::ffi::OsStr;

use arena_nats::NatsUrl;
use clap::builder::TypedValueParser;
use clap::error::ErrorKind;
use clap::{Arg, Command, Error};

/// Parses the URL of a NATS server. Unlike clap's own parsers, its errors don't repeat the value.
#[derive(Debug, Clone, Copy)]
pub struct UrlParser;

impl TypedValueParser for UrlParser {
    type Value = NatsUrl;

    fn parse_ref(&self, command: &Command, arg: Option<&Arg>, value: &OsStr) -> Result<NatsUrl, Error> {
        let arg = arg.map(ToString::to_string).unwrap_or_default();
        let read = value.to_str().unwrap_or_default().parse();
        read.map_err(|error| Error::raw(ErrorKind::ValueValidation, format!("{arg} is {error}\n")).with_cmd(command))
    }
}
