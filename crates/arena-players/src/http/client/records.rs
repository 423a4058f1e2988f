//! Requests for files: records of sessions, and the files of a log.

use std::time::Duration;

use super::{Arena, CallError, RETRIES, RawAnswer, is_broken_connection, path, read_answer};

/// The maximum size of a record, in bytes. The largest sessions have a million messages.
const RECORD_BYTES: u64 = 1 << 30;

/// The number of times that a request is repeated because the server limits the rate of requests.
const MOST_PAUSES: usize = 20;

impl Arena {
    /// Gets the record of a session, as this client may see it.
    ///
    /// # Errors
    /// As for every request. A refusal if the session doesn't exist or hasn't ended and the client isn't a player.
    pub fn record(&self, session: &str) -> Result<Vec<u8>, CallError> {
        self.file(&(path(&["api", "sessions"], Some(session)) + "/record"), RECORD_BYTES)
    }

    /// Gets a file of up to `most` bytes. Any web host may serve it, so refusals needn't be JSON.
    ///
    /// # Errors
    /// As for every request. [`CallError::Refused`] with status 404 if there is no such file.
    pub fn file(&self, file: &str, most: u64) -> Result<Vec<u8>, CallError> {
        let url = format!("{}{file}", self.url);
        let mut broken = RETRIES.iter().copied();
        let mut pauses = 0;
        loop {
            let pause: Duration = match self.request_file(&url, most) {
                Ok(Ok(bytes)) => return Ok(bytes),
                Ok(Err(answer)) => match answer.asks_for_a_pause().filter(|_| pauses < MOST_PAUSES) {
                    Some(pause) => {
                        pauses += 1;
                        pause
                    }
                    None => return Err(self.refusal(&url, answer)),
                },
                Err(error) if is_broken_connection(&error) => match broken.next() {
                    Some(pause) => pause,
                    None => return Err(self.explain(&url, self.patience, false, error)),
                },
                Err(error) => return Err(self.explain(&url, self.patience, false, error)),
            };
            std::thread::sleep(pause);
        }
    }

    /// Sends one request. Returns the file, or another response.
    fn request_file(&self, url: &str, most: u64) -> Result<Result<Vec<u8>, RawAnswer>, ureq::Error> {
        // The time limits hold for the start of the response and for each read, since the file may be long.
        let config = self.agent.get(url).config();
        let config = config.timeout_recv_response(Some(self.patience)).timeout_per_read(Some(self.patience));
        let response = self.reading(config.build()).call()?;
        let kind = response.headers().get("content-type").and_then(|kind| kind.to_str().ok()).unwrap_or_default();
        if response.status() != 200 || kind.to_ascii_lowercase().starts_with("text/html") {
            return read_answer(response).map(Err);
        }
        response.into_body().into_with_config().limit(most).read_to_vec().map(Ok)
    }

    fn refusal(&self, url: &str, answer: RawAnswer) -> CallError {
        let status = answer.status;
        match self.judge(url, answer) {
            Err(CallError::NotAnArena { .. }) if status == 404 => {
                CallError::Refused { status, error: format!("there is no file {url}"), code: None }
            }
            Err(error) => error,
            Ok(_) => self.stranger(format!("something that isn't the requested file (HTTP {status})")),
        }
    }
}
