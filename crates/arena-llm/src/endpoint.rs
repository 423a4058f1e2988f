//! The endpoint of a language model: URL, API, key and timeouts.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use hyper::Uri;
use hyper::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, USER_AGENT};

use crate::habits::Habits;
use crate::{Api, ToolUse};

/// The replacement of a key in texts.
const NO_KEY: &str = "[key]";

/// The usual time limit of an answer, in seconds. Answers aren't streamed, so a model that thinks for minutes is silent
/// for minutes. A request that is given up too early is paid, and paid again.
pub const ANSWER_SECONDS: u64 = 900;

#[derive(Debug, Clone)]
pub struct Endpoint {
    api: Api,
    base: String,
    uri: Uri,
    headers: HeaderMap,
    key: Option<Key>,
    tool_use: ToolUse,
    timeouts: Timeouts,
    /// The forms that the endpoint has asked for. Clones share them.
    habits: Arc<Habits>,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EndpointError {
    #[error("`{0}` isn't the URL of an endpoint: {1}")]
    Url(String, &'static str),
    #[error("the URL of the endpoint contains a name or password; give the key in an environment variable")]
    Secret,
    /// A missing key: its environment variable, and the endpoint's base URL.
    #[error("{0} isn't set; set it to the key of {1}")]
    NoKey(String, String),
    /// The key has characters that no key has. The text names the key's environment variable.
    #[error("{0} isn't a valid key: it contains spaces or non-ASCII characters")]
    BadKey(String),
}

/// The key of an endpoint. It is never printed.
#[derive(Clone, PartialEq, Eq)]
pub struct Key {
    text: String,
    /// The environment variable.
    name: Option<String>,
}

/// The longest times that parts of a request may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timeouts {
    /// From the start to the connection.
    pub connect: Duration,
    /// From the connection to the first byte of the answer. Models may think for minutes.
    pub first_byte: Duration,
    /// From the start to the end of the answer.
    pub whole: Duration,
}

impl Default for Timeouts {
    fn default() -> Timeouts {
        Timeouts {
            connect: Duration::from_secs(15),
            first_byte: Duration::from_secs(ANSWER_SECONDS),
            whole: Duration::from_secs(ANSWER_SECONDS),
        }
    }
}

impl Timeouts {
    /// Returns the usual times, with this time for an answer.
    pub fn of_answer(answer: Duration) -> Timeouts {
        Timeouts { first_byte: answer, whole: answer, ..Timeouts::default() }
    }
}

impl Key {
    /// Creates a key.
    ///
    /// # Errors
    /// If the text is empty, or contains spaces or non-ASCII characters.
    pub fn new(text: &str) -> Result<Key, EndpointError> {
        Key { text: text.to_owned(), name: None }.checked()
    }

    /// Reads the key of the endpoint at `base` in an environment variable.
    ///
    /// # Errors
    /// If the variable isn't set or empty, or isn't a key.
    pub fn from_env(name: &str, base: &str) -> Result<Key, EndpointError> {
        let value = std::env::var_os(name).filter(|value| !value.is_empty());
        let text = value.ok_or_else(|| EndpointError::NoKey(name.to_owned(), base.to_owned()))?;
        let text = text.into_string().map_err(|_| EndpointError::BadKey(name.to_owned()))?;
        Key { text, name: Some(name.to_owned()) }.checked()
    }

    fn checked(self) -> Result<Key, EndpointError> {
        match !self.text.is_empty() && self.text.bytes().all(|byte| byte.is_ascii_graphic()) {
            true => Ok(self),
            false => Err(EndpointError::BadKey(self.name.unwrap_or_else(|| "the key".to_owned()))),
        }
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key(..)")
    }
}

impl Endpoint {
    /// Creates the endpoint at `base`: the URL before `/chat/completions`, `/responses` or `/v1/messages`, or with it.
    /// A base of the Messages API may end in `/v1`, as bases of the other APIs do.
    ///
    /// # Errors
    /// If the base isn't a URL of HTTP, or contains a name or password.
    pub fn new(api: Api, base: &str, key: Option<Key>) -> Result<Endpoint, EndpointError> {
        let refused = |why| EndpointError::Url(base.to_owned(), why);
        if !base.starts_with("http://") && !base.starts_with("https://") {
            return Err(refused("it must begin with http:// or https://"));
        }
        let (path, query) = match base.split_once('?') {
            Some((path, query)) => (path, Some(query)),
            None => (base, None),
        };
        let format = api.format();
        let path = path.trim_end_matches('/');
        // Documents of providers often give the whole URL.
        let is_whole = |api: &Api| path.strip_suffix(api.format().path);
        let path = Api::ALL.iter().find_map(is_whole).unwrap_or(path).trim_end_matches('/');
        let version = format.path.starts_with("/v1/").then(|| path.strip_suffix("/v1")).flatten();
        let mut url = version.unwrap_or(path).to_owned() + format.path;
        if let Some(query) = query {
            url = url + "?" + query;
        }
        let uri: Uri = url.parse().map_err(|_| refused("it cannot be parsed"))?;
        if uri.host().is_none_or(str::is_empty) {
            return Err(refused("it has no host"));
        }
        if uri.authority().is_some_and(|authority| authority.as_str().contains('@')) {
            // The URL is printed and recorded, so it must not contain a secret.
            return Err(EndpointError::Secret);
        }
        if !uri.authority().is_some_and(|at| at.as_str() == at.host() || at.port_u16() > Some(0)) {
            return Err(refused("its port isn't a number from 1 to 65535"));
        }
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(USER_AGENT, HeaderValue::from_static(concat!("arena/", env!("CARGO_PKG_VERSION"))));
        if let Some((name, value)) = format.header {
            headers.insert(HeaderName::from_static(name), HeaderValue::from_static(value));
        }
        if let Some(key) = &key {
            let (name, before) = format.key_header;
            let value = HeaderValue::from_str(&format!("{before}{}", key.text));
            let mut value = value.map_err(|_| EndpointError::BadKey("the key".to_owned()))?;
            value.set_sensitive(true);
            headers.insert(HeaderName::from_static(name), value);
        }
        let base = base.trim_end_matches('/').to_owned();
        let (tool_use, timeouts) = (ToolUse::Native, Timeouts::default());
        Ok(Endpoint { api, base, uri, headers, key, tool_use, timeouts, habits: Arc::default() })
    }

    pub fn with_tool_use(self, tool_use: ToolUse) -> Endpoint {
        Endpoint { tool_use, ..self }
    }

    pub fn with_timeouts(self, timeouts: Timeouts) -> Endpoint {
        Endpoint { timeouts, ..self }
    }

    pub fn api(&self) -> Api {
        self.api
    }

    /// Returns the base URL, as given, but without `/` at its end.
    pub fn base(&self) -> &str {
        &self.base
    }

    pub fn tool_use(&self) -> ToolUse {
        self.tool_use
    }

    pub fn timeouts(&self) -> Timeouts {
        self.timeouts
    }

    /// Returns the forms of requests that the endpoint accepts.
    pub(crate) fn habits(&self) -> &Habits {
        &self.habits
    }

    /// Returns the URL of requests.
    pub(crate) fn uri(&self) -> &Uri {
        &self.uri
    }

    /// Returns the headers of each request, with the key.
    pub(crate) fn headers(&self) -> &HeaderMap {
        &self.headers
    }

    /// Describes the key without its text.
    pub(crate) fn key_described(&self) -> Option<String> {
        let key = self.key.as_ref()?;
        Some(key.name.as_ref().map_or_else(|| "the key".to_owned(), |name| format!("the key in {name}")))
    }

    /// Removes the key from a text, since endpoints often quote the key in errors.
    pub(crate) fn without_key(&self, text: String) -> String {
        match &self.key {
            Some(key) if text.contains(&key.text) => text.replace(&key.text, NO_KEY),
            _ => text,
        }
    }

    /// Returns the bytes of an answer without the key; `None` if they don't contain it.
    pub(crate) fn answer_without_key(&self, answer: &[u8]) -> Option<Vec<u8>> {
        let key = self.key.as_ref()?;
        let text = std::str::from_utf8(answer).ok()?;
        text.contains(&key.text).then(|| text.replace(&key.text, NO_KEY).into_bytes())
    }
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;

    fn check(api: Api, base: &str, expected: Expect) {
        let endpoint = Endpoint::new(api, base, None);
        expected
            .assert_eq(&endpoint.map_or_else(|error| error.to_string(), |it| format!("{} {}", it.base(), it.uri())));
    }

    #[test]
    fn requests_go_to_the_apis_path() {
        let [chat, responses, anthropic] = Api::ALL;
        check(
            chat,
            "https://api.openai.com/v1",
            expect!["https://api.openai.com/v1 https://api.openai.com/v1/chat/completions"],
        );
        check(chat, "http://127.0.0.1:8000/", expect!["http://127.0.0.1:8000 http://127.0.0.1:8000/chat/completions"]);
        check(responses, "http://[::1]:80/v1//", expect!["http://[::1]:80/v1 http://[::1]:80/v1/responses"]);
        check(anthropic, "https://a.example", expect!["https://a.example https://a.example/v1/messages"]);
        check(anthropic, "https://a.example/v1/", expect!["https://a.example/v1 https://a.example/v1/messages"]);
        // The path of the API may be there already.
        let whole = "https://a.example/v1/chat/completions";
        check(chat, whole, expect!["https://a.example/v1/chat/completions https://a.example/v1/chat/completions"]);
        check(
            chat,
            "https://a.example/d/chat/completions/?v=1",
            expect!["https://a.example/d/chat/completions/?v=1 https://a.example/d/chat/completions?v=1"],
        );
        let whole = "https://a.example/v1/responses";
        check(responses, whole, expect!["https://a.example/v1/responses https://a.example/v1/responses"]);
        let whole = "https://a.example/v1/messages";
        check(anthropic, whole, expect!["https://a.example/v1/messages https://a.example/v1/messages"]);
        check(
            chat,
            "https://a.example/d?v=1",
            expect!["https://a.example/d?v=1 https://a.example/d/chat/completions?v=1"],
        );
        check(
            chat,
            "a.example",
            expect!["`a.example` isn't the URL of an endpoint: it must begin with http:// or https://"],
        );
        check(
            chat,
            "ftp://a.example",
            expect!["`ftp://a.example` isn't the URL of an endpoint: it must begin with http:// or https://"],
        );
        check(chat, "http://a b", expect!["`http://a b` isn't the URL of an endpoint: it cannot be parsed"]);
        check(
            chat,
            "https://user:secret@a.example/v1",
            expect!["the URL of the endpoint contains a name or password; give the key in an environment variable"],
        );
    }

    #[test]
    fn keys_are_never_printed() {
        let key = Key::new("sk-123").unwrap();
        for api in Api::ALL {
            let endpoint = Endpoint::new(api, "http://127.0.0.1:1", Some(key.clone())).unwrap();
            assert!(!format!("{endpoint:?} {key:?}").contains("sk-123"));
            assert_eq!(endpoint.without_key("bad sk-123, sk-123".to_owned()), "bad [key], [key]");
            assert_eq!(endpoint.answer_without_key(b"{\"a\":\"sk-123\"}").unwrap(), b"{\"a\":\"[key]\"}");
            assert_eq!(endpoint.answer_without_key(b"{}"), None);
        }
        for bad in ["", "a b", "ключ", "a\n"] {
            assert_eq!(Key::new(bad), Err(EndpointError::BadKey("the key".to_owned())), "{bad:?}");
        }
        let missing = Key::from_env("ARENA_LLM_TEST_HAS_NO_SUCH_KEY", "http://a").unwrap_err();
        assert_eq!(missing.to_string(), "ARENA_LLM_TEST_HAS_NO_SUCH_KEY isn't set; set it to the key of http://a");
    }
}
