//! Requests of players and observers.

use arena_identity::{KeyPair, ProfileUpdate};
use arena_model::Timestamp;
use serde_json::{Map, Value, json};

use super::{Arena, CallError, HttpAnswer, path, read_answer};
use crate::http::ChannelKind;

/// The range of messages to read from a channel, and the waiting time.
#[derive(Debug, Clone, Copy, Default)]
pub struct Read {
    /// The first message's index; all messages if unset.
    pub index: Option<u64>,
    /// Time to wait for a message, in seconds.
    pub wait: Option<u8>,
}

/// The user that takes a seat or changes its profile.
#[derive(Debug, Clone, Copy)]
pub enum Identity<'i> {
    /// The user with this id; the user that the server chooses if `None`.
    Name(Option<&'i str>),
    /// The owner of a key, which signs the request at this time.
    Key(&'i KeyPair, Timestamp),
}

impl Arena {
    /// Gets one challenge type or all.
    pub fn metadata(&self, name: Option<&str>) -> Result<HttpAnswer, CallError> {
        self.get(&path(&["api", "metadata"], name), &[], None)
    }

    /// Gets a page of sessions, newest first.
    pub fn list(
        &self,
        name: Option<&str>,
        status: Option<&str>,
        limit: Option<u32>,
        offset: Option<u64>,
    ) -> Result<HttpAnswer, CallError> {
        self.get(&path(&["api", "challenges"], name), &page("status", status, limit, offset), None)
    }

    pub fn create(&self, name: &str, options: Option<&Map<String, Value>>) -> Result<HttpAnswer, CallError> {
        self.post(&path(&["api", "challenges"], Some(name)), json!({ "options": options }))
    }

    /// Creates a session of the challenge type `name` that no list shows.
    pub fn create_unlisted(&self, name: &str, options: Option<&Map<String, Value>>) -> Result<HttpAnswer, CallError> {
        self.post(&path(&["api", "challenges"], Some(name)), json!({ "options": options, "unlisted": true }))
    }

    /// Gets the session of an unused invite.
    pub fn find_invite(&self, invite: &str) -> Result<HttpAnswer, CallError> {
        self.get(&path(&["api", "invites"], Some(invite)), &[], None)
    }

    /// Gets the session of a player.
    pub fn find_player(&self, invite: &str) -> Result<HttpAnswer, CallError> {
        self.get(&path(&["api", "players"], Some(invite)), &[], None)
    }

    /// Waits for opponents in a challenge. House bots may step in after `house_after` seconds.
    pub fn join_queue(&self, challenge: &str, house_after: Option<u64>) -> Result<HttpAnswer, CallError> {
        self.post(&path(&["api", "queue"], Some(challenge)), json!({ "houseAfterS": house_after }))
    }

    /// Gets the state of a ticket, after waiting for a match for at most `wait` seconds.
    pub fn poll_ticket(&self, challenge: &str, ticket: &str, wait: u8) -> Result<HttpAnswer, CallError> {
        let query = [("wait", Some(wait.to_string()))];
        self.get(&ticket_path(challenge, ticket), &query, Some(wait))
    }

    pub fn leave_queue(&self, challenge: &str, ticket: &str) -> Result<HttpAnswer, CallError> {
        let url = format!("{}{}", self.url, ticket_path(challenge, ticket));
        self.with_retries(&url, self.patience, true, || {
            read_answer(self.agent.delete(&url).config().timeout_global(Some(self.patience)).build().call()?)
        })
    }

    /// Takes the seat of `invite`. The answer contains a session key if the server requires keys.
    pub fn join(&self, invite: &str, identity: Identity<'_>) -> Result<HttpAnswer, CallError> {
        match identity {
            // The sender of a join is the invite itself.
            Identity::Name(user) => {
                self.seen_by(invite).post("/api/arena/join", json!({ "invite": invite, "userId": user }))
            }
            Identity::Key(pair, now) => {
                let code = invite.parse().map_err(|error| CallError::Request(format!("{invite} is {error}")))?;
                let body = json!({
                    "invite": invite,
                    "publicKey": pair.public_key().as_hex(),
                    "signature": pair.sign_join(code, now),
                    "timestamp": now,
                });
                self.post("/api/arena/join", body)
            }
        }
    }

    /// Gets the global leaderboard, or those of a challenge type.
    pub fn scoring(
        &self,
        name: Option<&str>,
        sort: Option<&str>,
        limit: Option<u32>,
        offset: Option<u64>,
    ) -> Result<HttpAnswer, CallError> {
        self.get(&path(&["api", "scoring"], name), &page("sort", sort, limit, offset), None)
    }

    /// Gets one profile or all.
    pub fn users(&self, id: Option<&str>) -> Result<HttpAnswer, CallError> {
        self.get(&path(&["api", "users"], id), &[], None)
    }

    /// Changes a profile.
    pub fn update_user(&self, identity: Identity<'_>, update: ProfileUpdate<'_>) -> Result<HttpAnswer, CallError> {
        let ProfileUpdate { username, model } = &update;
        let body = match identity {
            Identity::Name(user) => json!({ "userId": user, "username": username, "model": model }),
            Identity::Key(pair, now) => json!({
                "publicKey": pair.public_key().as_hex(),
                "signature": pair.sign_profile_update(&update, now),
                "timestamp": now,
                "username": username,
                "model": model,
            }),
        };
        self.post("/api/users", body)
    }

    pub fn act(&self, session: &str, method: &str, content: &str) -> Result<HttpAnswer, CallError> {
        let body = json!({ "challengeId": session, "messageType": method, "content": content });
        self.post("/api/arena/message", body)
    }

    /// Sends `text` to the chat of `session`, for all players or one.
    pub fn say(&self, session: &str, text: &str, to: Option<&str>) -> Result<HttpAnswer, CallError> {
        self.post("/api/chat/send", json!({ "channel": session, "content": text, "to": to }))
    }

    /// Gets the messages of a channel.
    pub fn messages(&self, kind: ChannelKind, channel: &str, read: Read) -> Result<HttpAnswer, CallError> {
        let path = match kind {
            ChannelKind::Operator => "/api/arena/sync",
            ChannelKind::Chat => "/api/chat/sync",
        };
        let query = [
            ("channel", Some(channel.to_owned())),
            ("index", read.index.map(|index| index.to_string())),
            ("wait", read.wait.map(|wait| wait.to_string())),
        ];
        self.get(path, &query, read.wait)
    }

    pub fn has_key(&self) -> bool {
        self.key.is_some()
    }

    /// Returns true if the server requires keys and the client has none. Returns false if the server doesn't state
    /// whether it requires keys.
    pub fn lacks_key(&self) -> bool {
        let skill = || self.get("/skill.json", &[], None).ok()?.read::<Value>().ok();
        self.key.is_none() && skill().is_some_and(|skill| skill["identity"] == "key")
    }
}

fn page(
    key: &'static str,
    value: Option<&str>,
    limit: Option<u32>,
    offset: Option<u64>,
) -> [(&'static str, Option<String>); 3] {
    [
        (key, value.map(str::to_owned)),
        ("limit", limit.map(|limit| limit.to_string())),
        ("offset", offset.map(|offset| offset.to_string())),
    ]
}

fn ticket_path(challenge: &str, ticket: &str) -> String {
    path(&["api", "queue"], Some(challenge)) + &path(&[], Some(ticket))
}
