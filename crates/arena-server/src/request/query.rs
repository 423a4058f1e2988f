//! The query of a request, or the fields of a URL-encoded form.

use std::borrow::Cow;

use axum::http::Uri;
use percent_encoding::percent_decode_str;

use crate::error::ApiError;

/// The query of a request. The first value of a repeated name counts.
#[derive(Clone)]
pub(crate) struct Query(Vec<(String, String)>);

impl Query {
    pub(crate) fn parse(uri: &Uri) -> Result<Query, ApiError> {
        match uri.query() {
            Some(text) => Query::read(text),
            None => Ok(Query(Vec::new())),
        }
    }

    /// Parses a query or a URL-encoded form.
    pub(crate) fn read(text: &str) -> Result<Query, ApiError> {
        let decode = |text: &str| -> Result<String, ApiError> {
            let text = if text.contains('+') { Cow::Owned(text.replace('+', " ")) } else { Cow::Borrowed(text) };
            let text = percent_decode_str(&text).decode_utf8();
            Ok(text.map_err(|_| ApiError::bad_request("INVALID_QUERY", "the query is not valid UTF-8"))?.into_owned())
        };
        let pairs = text.split('&').filter(|pair| !pair.is_empty());
        pairs
            .map(|pair| {
                let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
                Ok((decode(name)?, decode(value)?))
            })
            .collect::<Result<_, _>>()
            .map(Query)
    }

    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    /// Returns all names and values, in order.
    pub(crate) fn pairs(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }

    pub(crate) fn all(&self, name: &str) -> impl Iterator<Item = &str> {
        self.0.iter().filter(move |(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    /// Returns the caller in `from`; `None` for anonymous callers.
    pub(crate) fn identity(&self) -> Option<&str> {
        self.get("from").filter(|from| !is_anonymous(from))
    }

    /// Returns a parameter as a number; `None` if it is missing or invalid. `parse` alone would accept a plus sign.
    pub(crate) fn number(&self, name: &str) -> Option<u64> {
        self.get(name).filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()))?.parse().ok()
    }
}

/// True for an empty `from`, and for `viewer`, which anonymous clients send.
pub(crate) fn is_anonymous(from: &str) -> bool {
    from.is_empty() || from == "viewer"
}
