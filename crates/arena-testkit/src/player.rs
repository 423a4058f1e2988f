//! Players with keys, for servers that require signatures.

use arena_identity::{KeyPair, ProfileUpdate, ServerSecret};
use arena_model::Timestamp;
use arena_server::AdminToken;
use ed25519_dalek::{Signer, SigningKey};
use serde_json::{Value, json};

use crate::client::{Answer, Client, EventStream};

/// A player that can sign.
pub struct Player {
    pair: KeyPair,
    /// The same key as in `pair`. `KeyPair` signs only the arena's own statements, this type any text.
    raw: SigningKey,
}

impl Player {
    /// Returns a player with a key from `seed`.
    pub fn new(seed: u8) -> Player {
        Player { pair: KeyPair::from_random([seed; 32]), raw: SigningKey::from_bytes(&[seed; 32]) }
    }

    /// Returns the player's public key as on the wire.
    pub fn public_key(&self) -> String {
        self.pair.public_key().as_hex().to_owned()
    }

    /// Returns the user id, which is derived from the public key.
    pub fn user_id(&self) -> String {
        self.pair.public_key().user_id().to_string()
    }

    /// Returns the body of a signed join.
    ///
    /// # Panics
    /// If `invite` is malformed.
    pub fn signed_join(&self, invite: &str, at: Timestamp) -> Value {
        let code = invite.parse().expect("an invite");
        let signature = self.pair.sign_join(code, at);
        json!({ "invite": invite, "publicKey": self.public_key(), "signature": signature, "timestamp": at.0 })
    }

    /// Returns the body of a signed change of the profile. If `bound` is true, the signature covers this change. If
    /// false, the signature covers only the time, as in the reference's clients, so it is valid for any change.
    pub fn signed_profile(&self, change: &Value, bound: bool, at: Timestamp) -> Value {
        let update = ProfileUpdate { username: change["username"].as_str(), model: change["model"].as_str() };
        let signature = match bound {
            true => self.pair.sign_profile_update(&update, at),
            false => self.raw.sign(format!("arena:v1:user-update:{}", at.0).as_bytes()).to_string().to_lowercase(),
        };
        let mut body = change.clone();
        body["publicKey"] = json!(self.public_key());
        body["signature"] = json!(signature);
        body["timestamp"] = json!(at.0);
        body
    }

    /// Joins with `invite` and returns the session key from the server.
    #[track_caller]
    pub fn join(&self, client: &Client, invite: &str, at: Timestamp) -> String {
        let joined = client.post("/api/arena/join", &self.signed_join(invite, at)).ok();
        joined["sessionKey"].as_str().expect("a session key").to_owned()
    }
}

impl Client {
    /// Sends a GET request with a key in the header.
    pub fn get_with(&self, key: &str, path: &str) -> Answer {
        self.request("GET", path, &[("Authorization", &format!("Bearer {key}"))], b"")
    }

    pub fn stream_as(&self, key: &str, path: &str) -> EventStream {
        self.stream_with(path, Some(("Authorization", &format!("Bearer {key}"))))
    }

    pub fn post_with(&self, key: &str, path: &str, body: &Value) -> Answer {
        let authorization = format!("Bearer {key}");
        self.request("POST", path, &[("Authorization", &authorization)], body.to_string().as_bytes())
    }
}

pub fn known_admin_token() -> AdminToken {
    "everybody-knows-this-token".parse().expect("long enough")
}

pub fn known_secret() -> ServerSecret {
    ServerSecret::new(b"everybody knows this").expect("long enough")
}
