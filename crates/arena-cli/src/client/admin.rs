//! The calls that an administrator makes.

use std::io::{Read, Write};
use std::time::Duration;

use serde_json::json;
use ureq::SendBody;

use crate::args::SubjectArgs;

use super::{Answer, Arena, CallError, RawAnswer, path, read_answer};

/// How long an arena may count, or take in what it was sent: games are counted at some tens of thousands a second.
const LONG: Duration = Duration::from_secs(60 * 60);

/// Bytes of an export that are passed on at a time.
const PIECE: usize = 64 * 1024;

/// Why an export isn't there.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    /// The arena didn't send it, or not all of it.
    #[error(transparent)]
    Call(#[from] CallError),
    /// It can't be written down.
    #[error("the export can't be written: {0}")]
    Write(std::io::Error),
}

impl Arena {
    /// The same arena in the eyes of its administrator.
    pub fn administered(self, token: &str) -> Arena {
        Arena { key: Some(token.to_owned()), administers: true, from: None, ..self }
    }

    /// Says whether a user is a benchmark model.
    pub fn set_benchmark(&self, user: &str, benchmark: bool) -> Result<Answer, CallError> {
        let path = path(&["api", "admin", "users"], Some(user)) + "/benchmark";
        self.post(&path, json!({ "isBenchmark": benchmark }))
    }

    /// Hides a message.
    pub fn hide(&self, channel: &str, index: u64) -> Result<Answer, CallError> {
        self.post("/api/admin/messages/hide", json!({ "channel": channel, "index": index }))
    }

    /// Bans somebody.
    pub fn ban(&self, subject: &SubjectArgs, reason: &str) -> Result<Answer, CallError> {
        let SubjectArgs { user, key, address } = subject;
        let body = json!({ "userId": user, "publicKey": key, "address": address, "reason": reason });
        self.post("/api/admin/bans", body)
    }

    /// Lets somebody in again.
    pub fn lift_ban(&self, subject: &SubjectArgs) -> Result<Answer, CallError> {
        let SubjectArgs { user, key, address } = subject;
        self.post("/api/admin/bans/lift", json!({ "userId": user, "publicKey": key, "address": address }))
    }

    /// Who is banned.
    pub fn bans(&self) -> Result<Answer, CallError> {
        self.get("/api/admin/bans", &[], None)
    }

    /// Removes a session.
    pub fn remove(&self, session: &str) -> Result<Answer, CallError> {
        self.post(&(path(&["api", "admin", "sessions"], Some(session)) + "/remove"), json!({}))
    }

    /// Counts all games anew.
    pub fn recompute(&self) -> Result<Answer, CallError> {
        Arena { patience: LONG, ..self.clone() }.post("/api/admin/recompute", json!({}))
    }

    /// What administrators did.
    pub fn audit(&self, limit: Option<u32>, offset: Option<u64>) -> Result<Answer, CallError> {
        let query =
            [("limit", limit.map(|limit| limit.to_string())), ("offset", offset.map(|offset| offset.to_string()))];
        self.get("/api/admin/audit", &query, None)
    }

    /// Writes everything that the arena holds to `out`; how many lines that is.
    pub fn export(&self, out: &mut dyn Write) -> Result<u64, ExportError> {
        let url = format!("{}/api/admin/export", self.url);
        let explain = |error| self.explain(&url, LONG, false, error);
        // As long as something comes, it may take as long as it takes.
        let request = self.agent.get(&url).config().timeout_recv_response(Some(self.patience)).build();
        let response = request.header("authorization", self.authorization()).call().map_err(explain)?;
        let kind = response.headers().get("content-type").and_then(|kind| kind.to_str().ok()).unwrap_or_default();
        if response.status() != 200 || kind != "application/x-ndjson" {
            let answer = read_answer(response).map_err(explain)?;
            let status = answer.status;
            self.judge(&url, answer)?;
            let what = format!("something that isn't an export (HTTP {status})");
            return Err(CallError::NotAnArena { url: self.url.clone(), what }.into());
        }
        let mut body = response.into_body().into_reader();
        let mut piece = vec![0; PIECE];
        let mut lines = 0;
        loop {
            let read = body.read(&mut piece).map_err(|error| CallError::Unreachable {
                url: self.url.clone(),
                why: format!("the export broke off: {error}"),
            })?;
            if read == 0 {
                return Ok(lines);
            }
            lines += piece[..read].iter().filter(|byte| **byte == b'\n').count() as u64;
            out.write_all(&piece[..read]).map_err(ExportError::Write)?;
        }
    }

    /// Sends `lines` to be taken in. Not sent again if the connection breaks, but it can be.
    pub fn import(&self, lines: &mut dyn Read) -> Result<Answer, CallError> {
        // A wrong token is answered before all is sent, which would look like a broken connection.
        self.bans()?;
        let url = format!("{}/api/admin/import", self.url);
        let explain = |error| self.explain(&url, LONG, true, error);
        let request = self.agent.post(&url).config().timeout_recv_response(Some(LONG)).build();
        let request = request.header("authorization", self.authorization());
        let response = request.send(SendBody::from_reader(lines)).map_err(explain)?;
        let answer: RawAnswer = read_answer(response).map_err(explain)?;
        self.judge(&url, answer)
    }

    fn authorization(&self) -> String {
        format!("Bearer {}", self.key.as_deref().unwrap_or_default())
    }
}
