//! Sessions as clients read them, joins, and tickets of queues.

use arena_model::{ChallengeInfo, SessionId};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

// The server writes more fields: those of `SessionView` in arena-model.
/// A session, as far as clients read it.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Session {
    /// The session's id.
    pub id: String,
    /// The challenge type, such as `psi`.
    pub challenge_type: String,
    /// The codes of all seats. A hidden code is `inv_hidden`.
    #[serde(default)]
    pub invites: Vec<String>,
    /// The state.
    pub state: SessionState,
}

/// The state of a session, as far as clients read it. The end of a session is announced in this form too.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(default)]
pub struct SessionState {
    /// `open`, `active` or `ended`.
    pub status: String,
    /// The public names of the joined players, by seat.
    pub players: Vec<String>,
    /// The scores by seat, from the end on. Other arenas may have other metrics.
    pub scores: Vec<Value>,
    /// True if the server closed the session because no player acted.
    pub abandoned: bool,
}

/// A page of a list of sessions, as far as clients read it.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct SessionPage {
    /// The sessions, newest first.
    pub challenges: Vec<Session>,
}

/// The session that the player joined.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Joined<'j> {
    #[serde(rename = "ChallengeID")]
    #[schema(value_type = SessionId)]
    pub session: String,
    #[serde(rename = "ChallengeInfo")]
    #[schema(value_type = ChallengeInfo)]
    pub info: ChallengeInfo<'j>,
    /// With `--auth`: the session key, which identifies the player's requests.
    #[serde(rename = "sessionKey", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = String, required = false, pattern = "^s_[0-9]+\\.[0-9a-f]{64}$")]
    pub key: Option<String>,
}

/// A place in a queue.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = TicketView)]
pub struct QueuePlace {
    /// The ticket, a secret of the caller.
    #[schema(pattern = "^tkt_[0-9a-f]{64}$")]
    pub ticket: String,
    /// `waiting` or `matched`.
    pub state: String,
    /// The session of a matched ticket.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<SessionId>)]
    pub session: Option<String>,
    /// The invite of the caller's seat in the session.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub invite: Option<String>,
}

#[cfg(test)]
mod tests {
    use arena_model::{
        Ending, GameCategory, InviteCode, Occupant, Phase, Score, SessionFacts, SessionId, Timestamp, Viewer,
        game_ended, view,
    };
    use serde_json::json;
    use uuid::Uuid;

    use super::*;

    #[test]
    fn the_servers_sessions_can_be_parsed() {
        let invite = InviteCode(Uuid::from_u128(1));
        let facts = SessionFacts::bare(SessionId(Uuid::from_u128(7)), "psi", Timestamp(5));
        let session = arena_model::Session {
            phase: Phase::Ended { at: Timestamp(6), ending: Ending::Abandoned, category: GameCategory::Train },
            seats: vec![Occupant { invite, user: None, deleted: None }],
            scores: vec![Score { security: 1.0, utility: 0.5 }],
            ..arena_model::Session::blank(SessionFacts { invites: vec![invite], ..facts }, "{}".to_owned())
        };
        let written = serde_json::to_value(view(&session, Viewer::Nobody)).expect("JSON");
        let read: Session = serde_json::from_value(written).expect("a session");
        let state = SessionState {
            status: "ended".to_owned(),
            players: vec![invite.to_string()],
            scores: vec![json!({ "security": 1, "utility": 0.5 })],
            abandoned: true,
        };
        let expected = Session {
            id: session.facts.id.to_string(),
            challenge_type: "psi".to_owned(),
            invites: vec![invite.to_string()],
            state: state.clone(),
        };
        assert_eq!(read, expected);
        let profiles = Default::default();
        let end = serde_json::to_value(game_ended(&session, &profiles).expect("an ended session")).expect("JSON");
        assert_eq!(serde_json::from_value::<SessionState>(end).expect("a state"), state);
    }

    #[test]
    fn joins_of_other_arenas_may_lack_fields() {
        let info = json!({ "name": "PSI", "description": "", "players": 2, "prompt": "", "methods": [] });
        let joined: Joined<'_> =
            serde_json::from_value(json!({ "ChallengeID": "s", "ChallengeInfo": info, "more": 1 })).expect("a join");
        assert_eq!((joined.session.as_str(), joined.info.metadata.players, joined.key), ("s", 2, None));
        assert!(joined.info.options.is_empty());
    }
}
