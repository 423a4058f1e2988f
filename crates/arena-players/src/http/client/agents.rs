//! Uploads of agents.

use std::time::Duration;

use super::{Arena, CallError, Credential, HttpAnswer, random_hex, read_answer};

/// Time limit of an upload. The server may play some moves with the agent before it answers.
const UPLOAD: Duration = Duration::from_secs(180);

impl Arena {
    /// Returns the client of an agent's owner, with the owner's key or the administrator's token.
    pub fn uploading(self, key: Option<&str>) -> Arena {
        Arena { key: key.map(str::to_owned), credential: Credential::Owner, from: None, ..self }
    }

    /// Uploads the files of an agent.
    pub fn upload(&self, query: &[(&str, Option<&str>)], body: &[u8]) -> Result<HttpAnswer, CallError> {
        let url = format!("{}/api/agents", self.url);
        let once = random_hex()?;
        self.with_retries(&url, UPLOAD, true, || {
            let mut request = self.agent.post(&url).config().timeout_global(Some(UPLOAD)).build();
            for (name, value) in query {
                if let Some(value) = value {
                    request = request.query(*name, *value);
                }
            }
            let request = request.header("idempotency-key", &once).header("content-type", "application/octet-stream");
            read_answer(self.authorized(request).send(body)?)
        })
    }
}
