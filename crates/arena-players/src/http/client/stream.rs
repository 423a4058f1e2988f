//! A channel as a stream of Server-Sent Events. Callers reconnect after a broken connection.

use std::io::{BufRead, BufReader};
use std::time::Duration;

use serde_json::Value;
use ureq::BodyReader;

use super::{ANSWER, ANSWER_BYTES, Arena, CallError, path, read_answer};

/// The maximum time without data on a stream; servers send a comment every 30 s.
const SILENCE: Duration = Duration::from_secs(75);

/// A channel, read event by event.
pub struct Stream {
    reader: BufReader<BodyReader<'static>>,
    url: String,
}

#[derive(Debug, PartialEq)]
pub struct StreamEvent {
    /// The event's id. A new stream can resume after it. Absent if the server doesn't support resuming.
    pub id: Option<String>,
    pub data: Value,
}

impl Arena {
    /// Follows a channel after the event `after`, or from its start.
    ///
    /// # Errors
    /// As for every request; a response that isn't a stream is [`CallError::NotAnArena`].
    pub fn stream(&self, channel: &str, after: Option<&str>) -> Result<Stream, CallError> {
        let url = format!("{}{}", self.url, path(&["api", "chat", "ws"], Some(channel)));
        let config = self.agent.get(&url).config();
        let mut request = config.timeout_recv_response(Some(ANSWER)).timeout_per_read(Some(SILENCE)).build();
        if let Some(after) = after {
            request = request.header("last-event-id", after);
        }
        let response = self.reading(request).call().map_err(|error| self.explain(&url, ANSWER, false, error))?;
        let kind = response.headers().get("content-type").and_then(|kind| kind.to_str().ok()).unwrap_or_default();
        if response.status().is_success() && kind.starts_with("text/event-stream") {
            let body = response.into_body().into_with_config().limit(ANSWER_BYTES).reader();
            return Ok(Stream { reader: BufReader::new(body), url: self.url.clone() });
        }
        let answer = read_answer(response).map_err(|error| self.explain(&url, ANSWER, false, error))?;
        Err(match self.judge(&url, answer) {
            Ok(_) => self.stranger("no stream of events".to_owned()),
            Err(error) => error,
        })
    }
}

impl Stream {
    /// Reads the next event; `None` at the end of the stream.
    ///
    /// # Errors
    /// If the connection breaks or an event isn't JSON.
    pub fn next_event(&mut self) -> Result<Option<StreamEvent>, CallError> {
        let (mut id, mut data, mut line) = (None, String::new(), String::new());
        loop {
            line.clear();
            let broken = |error: std::io::Error| CallError::Unreachable {
                url: self.url.clone(),
                why: format!("the stream broke: {error}"),
            };
            // If the last line has no line end, its event is incomplete.
            if self.reader.read_line(&mut line).map_err(broken)? == 0 || !line.ends_with('\n') {
                return Ok(None);
            }
            let field = line.trim_end_matches(['\r', '\n']);
            let value = |name: &str| {
                let rest = field.strip_prefix(name)?.strip_prefix(':')?;
                Some(rest.strip_prefix(' ').unwrap_or(rest))
            };
            if let Some(value) = value("data") {
                if !data.is_empty() {
                    data.push('\n');
                }
                data.push_str(value);
            } else if let Some(value) = value("id") {
                id = Some(value.to_owned());
            } else if field.is_empty() && !data.is_empty() {
                let data = serde_json::from_str(&data).map_err(|error| CallError::NotAnArena {
                    url: self.url.clone(),
                    what: format!("an event that isn't JSON ({error})"),
                })?;
                return Ok(Some(StreamEvent { id, data }));
            }
        }
    }
}
