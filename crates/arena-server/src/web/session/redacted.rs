//! Sessions and messages for the pages, parsed from the JSON that `view` and `redact` return for the viewer. So a page
//! can't show anything that the HTTP API hides from the same viewer.

use std::collections::BTreeMap;

use arena_engine::Posted;
use arena_model::{InviteCode, Score, Session, Status, UserId, UserProfile, Viewer, view};
use arena_wire::Message;
use serde::de::Error;
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::answer::to_text;

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct RedactedSession {
    pub(crate) id: String,
    /// Time of creation, in milliseconds since 1970.
    pub(crate) created_at: i64,
    pub(crate) challenge_type: String,
    /// Invite codes by seat. A hidden code is `inv_hidden`.
    pub(crate) invites: Vec<String>,
    pub(crate) state: RedactedState,
    pub(crate) seed_commitment: Option<String>,
    /// True if the game counts on a leaderboard.
    pub(crate) rated: bool,
    /// True if no list shows the session.
    #[serde(default)]
    pub(crate) unlisted: bool,
    pub(crate) options: Value,
    pub(crate) seed: Option<String>,
    /// The state of the rules; `{}` until the end.
    pub(crate) game_state: Box<RawValue>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct RedactedState {
    status: String,
    /// Time of the end, in milliseconds since 1970.
    pub(crate) completed_at: Option<i64>,
    /// Scores by seat; empty until the end.
    pub(crate) scores: Vec<Score>,
    /// Invites of the joined players, by seat.
    pub(crate) players: Vec<String>,
    /// User ids by invite; empty until the end.
    #[serde(deserialize_with = "read_users")]
    pub(crate) player_identities: BTreeMap<String, UserId>,
    #[serde(default)]
    pub(crate) attributions: Vec<Attribution>,
    #[serde(default)]
    pub(crate) abandoned: bool,
}

/// An effect of one player on another, such as a security breach.
#[derive(Debug, Deserialize)]
pub(crate) struct Attribution {
    pub(crate) from: String,
    pub(crate) to: String,
    #[serde(rename = "type")]
    pub(crate) kind: String,
}

/// Deserializes a map of user ids, since `UserId` itself doesn't implement `Deserialize`.
fn read_users<'de, D: Deserializer<'de>>(deserializer: D) -> Result<BTreeMap<String, UserId>, D::Error> {
    let users = BTreeMap::<String, String>::deserialize(deserializer)?;
    let parse = |(invite, user): (String, String)| Ok((invite, user.parse().map_err(D::Error::custom)?));
    users.into_iter().map(parse).collect()
}

impl RedactedSession {
    pub(crate) fn by(session: &Session, viewer: Viewer) -> RedactedSession {
        serde_json::from_str(&to_text(&view(session, viewer))).expect("views have these fields")
    }

    pub(crate) fn status(&self) -> Status {
        Status::from_wire(&self.state.status).expect("views have a valid status")
    }

    /// Returns the seat of a player, from 0.
    pub(crate) fn seat_of(&self, player: &str) -> Option<usize> {
        self.state.players.iter().position(|other| other == player)
    }

    /// Returns a player's user id and display name, once they are public.
    pub(crate) fn name_of<'s>(
        &'s self,
        player: &str,
        profiles: &'s BTreeMap<UserId, UserProfile>,
    ) -> Option<(&'s UserId, &'s str)> {
        let user = self.state.player_identities.get(player)?;
        Some((user, name_of(user, profiles.get(user))))
    }
}

/// Returns the display name of a user: the name in the profile, or the id.
pub(crate) fn name_of<'u>(user: &'u UserId, profile: Option<&'u UserProfile>) -> &'u str {
    profile.and_then(|profile| profile.username.as_ref()).map_or(user.as_str(), |name| name.as_str())
}

/// Returns a message, redacted for a viewer.
pub(crate) fn read_message(posted: &Posted, viewer: Viewer, ended: bool, reveal_chat: bool) -> Message {
    serde_json::from_slice(posted.json(viewer, ended, reveal_chat)).expect("messages have these fields")
}

/// True if the text is an invite code, and not `inv_hidden`.
pub(crate) fn is_invite_code(invite: &str) -> bool {
    invite.parse::<InviteCode>().is_ok()
}
