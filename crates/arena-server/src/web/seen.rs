//! Sessions and messages as a page knows them: read back from the JSON that `view` and `redact` make for whoever looks. So a page
//! can show nothing that the HTTP interface wouldn't tell the same viewer.

use std::collections::BTreeMap;

use arena_engine::Posted;
use arena_model::{InviteCode, Score, Session, Status, UsageTotal, UserId, UserProfile, Viewer, view};
use arena_wire::Message;
use serde::de::Error;
use serde::{Deserialize, Deserializer};
use serde_json::Value;

use crate::answer::to_text;

/// A session, as far as a viewer may see it.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Seen {
    pub(super) id: String,
    /// Milliseconds since 1970.
    pub(super) created_at: i64,
    pub(super) challenge_type: String,
    /// By code; those that aren't to be seen are `inv_hidden`.
    pub(super) invites: Vec<String>,
    pub(super) state: Standing,
    pub(super) seed_commitment: Option<String>,
    /// True if the game counts on a board.
    pub(super) rated: bool,
    pub(super) options: Value,
    pub(super) seed: Option<String>,
}

/// How it stands.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Standing {
    status: String,
    /// Milliseconds since 1970.
    pub(super) completed_at: Option<i64>,
    /// By seat; none until the end.
    pub(super) scores: Vec<Score>,
    /// The invites of those who have joined, by seat.
    pub(super) players: Vec<String>,
    /// Users by invite; none until the end.
    #[serde(deserialize_with = "read_users")]
    pub(super) player_identities: BTreeMap<String, UserId>,
    #[serde(default)]
    pub(super) attributions: Vec<Attribution>,
    /// What players say that their play has cost, by seat, once that is told and if anybody has said so.
    #[serde(default)]
    pub(super) reported_usage: Vec<UsageTotal>,
    #[serde(default)]
    pub(super) abandoned: bool,
}

/// What one player did to another.
#[derive(Debug, Deserialize)]
pub(super) struct Attribution {
    pub(super) from: String,
    pub(super) to: String,
    #[serde(rename = "type")]
    pub(super) kind: String,
}

/// Ids of users, which nothing else is read from JSON for.
fn read_users<'de, D: Deserializer<'de>>(deserializer: D) -> Result<BTreeMap<String, UserId>, D::Error> {
    let users = BTreeMap::<String, String>::deserialize(deserializer)?;
    let parse = |(invite, user): (String, String)| Ok((invite, user.parse().map_err(D::Error::custom)?));
    users.into_iter().map(parse).collect()
}

impl Seen {
    pub(super) fn by(session: &Session, viewer: Viewer) -> Seen {
        serde_json::from_str(&to_text(&view(session, viewer))).expect("views have these fields")
    }

    pub(super) fn status(&self) -> Status {
        Status::from_wire(&self.state.status).expect("views say how a session stands")
    }

    /// Which seat a player holds, from 0.
    pub(super) fn seat_of(&self, player: &str) -> Option<usize> {
        self.state.players.iter().position(|other| other == player)
    }

    /// What a player is called, once that is known: as its profile says, else as it is counted.
    pub(super) fn name_of<'s>(
        &'s self,
        player: &str,
        profiles: &'s BTreeMap<UserId, UserProfile>,
    ) -> Option<(&'s UserId, &'s str)> {
        let user = self.state.player_identities.get(player)?;
        Some((user, name_of(user, profiles.get(user))))
    }
}

/// What somebody is called: as the profile says, else the id.
pub(super) fn name_of<'u>(user: &'u UserId, profile: Option<&'u UserProfile>) -> &'u str {
    profile.and_then(|profile| profile.username.as_ref()).map_or(user.as_str(), |name| name.as_str())
}

/// A message, as far as a viewer may read it.
pub(super) fn heard(posted: &Posted, viewer: Viewer, ended: bool, reveal_chat: bool) -> Message {
    serde_json::from_slice(posted.json(viewer, ended, reveal_chat)).expect("messages have these fields")
}

/// Whether a text is the code of an invite that may be told.
pub(super) fn is_code(invite: &str) -> bool {
    invite.parse::<InviteCode>().is_ok()
}
