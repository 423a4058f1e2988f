//! Requests of administrators.

use std::io::{Read, Write};
use std::time::Duration;

use serde_json::json;
use ureq::SendBody;

use crate::args::SubjectArgs;

use super::{Answer, Arena, CallError, Credential, RawAnswer, path, read_answer};

/// Time limit of recomputations and imports. A server processes some tens of thousands of games a second.
const LONG: Duration = Duration::from_secs(60 * 60);

/// Size of a copied piece of an export, in bytes.
const PIECE: usize = 64 * 1024;

#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    /// The server didn't send the whole export.
    #[error(transparent)]
    Call(#[from] CallError),
    /// The export can't be written.
    #[error("cannot write the export: {0}")]
    Write(std::io::Error),
}

impl Arena {
    /// Returns a client with the administrator's token.
    pub fn administered(self, token: &str) -> Arena {
        Arena { key: Some(token.to_owned()), credential: Credential::Administrator, from: None, ..self }
    }

    /// Marks a user as a benchmark model, or removes the mark.
    pub fn set_benchmark(&self, user: &str, benchmark: bool) -> Result<Answer, CallError> {
        let path = path(&["api", "admin", "users"], Some(user)) + "/benchmark";
        self.post(&path, json!({ "isBenchmark": benchmark }))
    }

    /// Deletes a user.
    pub fn delete_user(&self, user: &str) -> Result<Answer, CallError> {
        self.post(&(path(&["api", "admin", "users"], Some(user)) + "/delete"), json!({}))
    }

    /// Hides a message.
    pub fn hide(&self, channel: &str, index: u64) -> Result<Answer, CallError> {
        self.post("/api/admin/messages/hide", json!({ "channel": channel, "index": index }))
    }

    /// Bans a user, key or address.
    pub fn ban(&self, subject: &SubjectArgs, reason: &str) -> Result<Answer, CallError> {
        let SubjectArgs { user, key, address } = subject;
        let body = json!({ "userId": user, "publicKey": key, "address": address, "reason": reason });
        self.post("/api/admin/bans", body)
    }

    pub fn lift_ban(&self, subject: &SubjectArgs) -> Result<Answer, CallError> {
        let SubjectArgs { user, key, address } = subject;
        self.post("/api/admin/bans/lift", json!({ "userId": user, "publicKey": key, "address": address }))
    }

    /// Gets the bans.
    pub fn bans(&self) -> Result<Answer, CallError> {
        self.get("/api/admin/bans", &[], None)
    }

    pub fn remove(&self, session: &str) -> Result<Answer, CallError> {
        self.post(&(path(&["api", "admin", "sessions"], Some(session)) + "/remove"), json!({}))
    }

    /// Archives the sessions that ended some days ago.
    pub fn archive(&self, older_than_days: u32) -> Result<Answer, CallError> {
        let body = json!({ "olderThanDays": older_than_days });
        Arena { patience: LONG, ..self.clone() }.post("/api/admin/archive", body)
    }

    /// Restores an archived session, or all.
    pub fn restore(&self, session: Option<&str>) -> Result<Answer, CallError> {
        Arena { patience: LONG, ..self.clone() }.post("/api/admin/restore", json!({ "session": session }))
    }

    /// Recomputes the standings from the games.
    pub fn recompute(&self) -> Result<Answer, CallError> {
        Arena { patience: LONG, ..self.clone() }.post("/api/admin/recompute", json!({}))
    }

    /// Gets the log of administrators' actions.
    pub fn audit(&self, limit: Option<u32>, offset: Option<u64>) -> Result<Answer, CallError> {
        self.get("/api/admin/audit", &paging(limit, offset), None)
    }

    /// Gets the budgets of a node.
    pub fn budgets(&self, limit: Option<u32>, offset: Option<u64>) -> Result<Answer, CallError> {
        self.get("/api/admin/budgets", &paging(limit, offset), None)
    }

    /// Writes an export of the server's data to `out`. Returns the number of lines.
    pub fn export(&self, out: &mut dyn Write) -> Result<u64, ExportError> {
        let url = format!("{}/api/admin/export", self.url);
        let explain = |error| self.explain(&url, LONG, false, error);
        // The time limit holds for the start of the response only, since the body may be long.
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
    pub fn import(&self, lines: &mut dyn Read) -> Result<Answer, CallError> {
        // The token is checked with a small request first. The server refuses a wrong token before it reads the body,
        // which would look like a broken connection.
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

fn paging(limit: Option<u32>, offset: Option<u64>) -> [(&'static str, Option<String>); 2] {
    [("limit", limit.map(|limit| limit.to_string())), ("offset", offset.map(|offset| offset.to_string()))]
}
