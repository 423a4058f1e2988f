//! The URL of a NATS server, and its printable form without secrets.

use std::fmt;
use std::str::FromStr;

use async_nats::{ConnectOptions, ServerAddr};
use percent_encoding::percent_decode_str;

/// A NATS server's URL: `nats://host:4222`, or `tls://` for an encrypted connection, with a user and password or a
/// token before the host. Several servers of one cluster are separated by commas. The printed form has neither password
/// nor token.
#[derive(Clone, PartialEq, Eq)]
pub struct NatsUrl {
    addresses: Vec<ServerAddr>,
    login: Option<Login>,
}

#[derive(Clone, PartialEq, Eq)]
enum Login {
    User { name: String, password: String },
    Token(String),
}

/// The error for a text that isn't a NATS URL. The error doesn't contain the text, which may include a password.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("not a URL of a NATS server, such as nats://127.0.0.1:4222 or tls://user:password@host: {0}")]
pub struct NatsUrlError(&'static str);

impl FromStr for NatsUrl {
    type Err = NatsUrlError;

    fn from_str(text: &str) -> Result<NatsUrl, NatsUrlError> {
        let malformed = || NatsUrlError("it is malformed");
        let mut all = NatsUrl { addresses: Vec::new(), login: None };
        for text in text.split(',') {
            if !(text.starts_with("nats://") || text.starts_with("tls://")) {
                return Err(NatsUrlError("it doesn't begin with nats:// or tls://"));
            }
            let mut url = text.parse::<ServerAddr>().map_err(|_| malformed())?.into_inner();
            if url.host_str().is_none_or(str::is_empty) {
                return Err(NatsUrlError("it names no host"));
            }
            let decoded = |text: &str| match percent_decode_str(text).decode_utf8() {
                Ok(text) => Ok(text.into_owned()),
                Err(_) => Err(malformed()),
            };
            match (url.username(), url.password()) {
                ("", None) => {}
                (token, None) => all.login = Some(Login::Token(decoded(token)?)),
                (name, Some(password)) => {
                    all.login = Some(Login::User { name: decoded(name)?, password: decoded(password)? });
                }
            }
            // The client would ignore a login in the address.
            url.set_username("").and_then(|()| url.set_password(None)).map_err(|()| malformed())?;
            all.addresses.push(ServerAddr::from_url(url).map_err(|_| malformed())?);
        }
        Ok(all)
    }
}

impl NatsUrl {
    /// Returns the servers, any of which may be used.
    pub fn servers(&self) -> &[ServerAddr] {
        &self.addresses
    }

    pub fn options(&self) -> ConnectOptions {
        match &self.login {
            None => ConnectOptions::new(),
            Some(Login::Token(token)) => ConnectOptions::with_token(token.clone()),
            Some(Login::User { name, password }) => {
                ConnectOptions::with_user_and_password(name.clone(), password.clone())
            }
        }
    }
}

impl fmt::Display for NatsUrl {
    /// Prints the URL without password and token.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, address) in self.addresses.iter().enumerate() {
            let comma = if place > 0 { "," } else { "" };
            write!(f, "{comma}{}://{}:{}", address.scheme(), address.host(), address.port())?;
        }
        Ok(())
    }
}

impl fmt::Debug for NatsUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "NatsUrl({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::{Expect, expect};

    fn check(text: &str, expected: Expect) {
        let shown = match text.parse::<NatsUrl>() {
            Ok(url) => match &url.login {
                None => format!("{url}"),
                Some(Login::Token(token)) => format!("{url} by {token}"),
                Some(Login::User { name, password }) => format!("{url} as {name} by {password}"),
            },
            Err(error) => error.0.to_owned(),
        };
        expected.assert_eq(&shown);
    }

    #[test]
    fn a_url_has_servers_and_a_login() {
        check("nats://127.0.0.1", expect!["nats://127.0.0.1:4222"]);
        check("tls://ada:secret@nats.example:4333", expect!["tls://nats.example:4333 as ada by secret"]);
        check("nats://ada:p%40ss%3Aw%2F@nats.example", expect!["nats://nats.example:4222 as ada by p@ss:w/"]);
        check("nats://secret@nats.example", expect!["nats://nats.example:4222 by secret"]);
        check("nats://a,tls://secret@b:1", expect!["nats://a:4222,tls://b:1 by secret"]);
        check("nats://:secret@a", expect!["nats://a:4222 as  by secret"]);
    }

    #[test]
    fn an_invalid_url_is_refused_without_printing_it() {
        for text in ["", "127.0.0.1:4222", "http://ada:secret@x", "ada:secret@host", "nats://a,"] {
            check(text, expect!["it doesn't begin with nats:// or tls://"]);
        }
        check("nats://", expect!["it names no host"]);
        check("nats://ada:secret@", expect!["it is malformed"]);
        check("nats://ada:%ff@a", expect!["it is malformed"]);
        assert_eq!(format!("{:?}", "nats://ada:secret@a".parse::<NatsUrl>().unwrap()), "NatsUrl(nats://a:4222)");
    }
}
