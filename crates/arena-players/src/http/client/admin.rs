//! Requests of administrators.

use std::io::{Read, Write};
use std::time::Duration;

use serde_json::{Map, Value};
use ureq::SendBody;

use super::{Arena, CallError, Credential, HttpAnswer, RawAnswer, read_answer};

/// Time limit of recomputations and imports. A server processes some tens of thousands of games a second.
const LONG: Duration = Duration::from_secs(60 * 60);

/// Size of a copied piece of an export, in bytes.
const PIECE: usize = 64 * 1024;

#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    /// The server didn't send the whole export.
    #[error(transparent)]
    Call(#[from] CallError),
    #[error("cannot write the export: {0}")]
    Write(std::io::Error),
}

impl Arena {
    pub fn administered(self, token: &str) -> Arena {
        Arena { key: Some(token.to_owned()), credential: Credential::Administrator, from: None, ..self }
    }

    /// Sends a request to any route: a POST with these fields, or a GET.
    pub fn call(&self, path: &str, fields: Option<Map<String, Value>>) -> Result<HttpAnswer, CallError> {
        let arena = Arena { patience: LONG, ..self.clone() };
        match fields {
            Some(fields) => arena.post_all(path, fields),
            None => arena.get(path, &[], None),
        }
    }

    pub fn export(&self, out: &mut dyn Write) -> Result<u64, ExportError> {
        let url = format!("{}/api/admin/export", self.url);
        let explain = |error| self.explain(&url, LONG, false, error);
        // The time limit holds for the start of the response only, since the body may be long.
        let request = self.agent.get(&url).config().timeout_recv_response(Some(self.patience)).build();
        let response = self.authorized(request).call().map_err(explain)?;
        let kind = response.headers().get("content-type").and_then(|kind| kind.to_str().ok()).unwrap_or_default();
        if response.status() != 200 || kind != "application/x-ndjson" {
            let answer = read_answer(response).map_err(explain)?;
            let status = answer.status;
            self.judge(&url, answer)?;
            return Err(self.stranger(format!("something that isn't an export (HTTP {status})")).into());
        }
        let mut body = response.into_body().into_reader();
        let mut piece = vec![0; PIECE];
        let mut lines = 0;
        loop {
            let read = body.read(&mut piece).map_err(|error| CallError::Unreachable {
                url: self.url.clone(),
                why: format!("the connection broke during the export: {error}"),
            })?;
            if read == 0 {
                return Ok(lines);
            }
            lines += piece[..read].iter().filter(|byte| **byte == b'\n').count() as u64;
            out.write_all(&piece[..read]).map_err(ExportError::Write)?;
        }
    }

    /// Imports `lines`. The client doesn't retry after a broken connection, but the caller may repeat the import.
    pub fn import(&self, lines: &mut dyn Read) -> Result<HttpAnswer, CallError> {
        // The token is checked with a small request first. The server refuses a wrong token before it reads the body,
        // which would look like a broken connection.
        self.get("/api/admin/bans", &[], None)?;
        let url = format!("{}/api/admin/import", self.url);
        let explain = |error| self.explain(&url, LONG, true, error);
        let request = self.agent.post(&url).config().timeout_recv_response(Some(LONG)).build();
        let response = self.authorized(request).send(SendBody::from_reader(lines)).map_err(explain)?;
        let answer: RawAnswer = read_answer(response).map_err(explain)?;
        self.judge(&url, answer)
    }
}
