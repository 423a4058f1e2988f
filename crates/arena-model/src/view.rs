//! Redaction: the only path from stored data to a viewer.
//!
//! [`Session`] and [`ChatMessage`] can't be serialized. This module makes their serializable forms for a viewer
//! with [`view`], [`game_ended`] and [`redact`]. Before the end of a session they show no secret of another player: no
//! state, identities, scores or unclaimed invites.
//!
//! [`reveal_session`] and [`reveal_message`] show everything at any time, for the administrator's export only. They
//! are separate functions rather than a [`Viewer`], so that no request can select them.

use std::collections::{BTreeMap, BTreeSet};

use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
use serde_json::value::RawValue;
use utoipa::ToSchema;

use crate::{
    Channel, ChatMessage, Ending, GameCategory, InviteCode, Party, Phase, Score, ScriptVersion, Seed, Session, Status,
    Timestamp, UsageReport, UsageTotal, UserId, UserProfile,
};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Viewer {
    /// An anonymous viewer; also any name that isn't a player of the session.
    Nobody,
    /// The player with this public name.
    Player(InviteCode),
    /// A caller that presents this invite, before or after a player has joined with it.
    Holder(InviteCode),
    /// The creator of the session. Only the response to the creation request uses this viewer.
    Creator,
}

/// A session as a viewer may see it: `Challenge` on the wire.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Challenge)]
pub struct SessionView<'s> {
    #[schema(value_type = crate::SessionId)]
    id: String,
    /// The challenge's name for people. The challenge type if this server doesn't host it.
    name: &'s str,
    created_at: Timestamp,
    /// The challenge type, such as `psi`.
    challenge_type: &'s str,
    /// The codes of all seats, in no particular order. A hidden code is `inv_hidden`.
    invites: Vec<String>,
    #[schema(value_type = StateView)]
    state: StateView<'s>,
    /// The state of the rules; `{}` until the end.
    #[schema(value_type = Object)]
    game_state: &'s RawValue,
    game_category: GameCategory,
    /// SHA-256 of the seed, as hexadecimal digits. Absent if the seed isn't known, as in some imported sessions.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(pattern = "^[0-9a-f]{64}$")]
    seed_commitment: Option<String>,
    /// The version of the challenge's script: the SHA-256 of its files. Absent for built-in challenges.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = String, pattern = "^[0-9a-f]{64}$")]
    script_version: Option<ScriptVersion>,
    /// True if the game counts on a board, because its options are this arena's own.
    rated: bool,
    /// True if the session is in no list and no history, and counts nowhere; absent otherwise.
    #[serde(skip_serializing_if = "Option::is_none")]
    unlisted: Option<bool>,
    /// The game's board: see `GET /api/scoring/{type}/boards`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = String, required = false, pattern = "^[0-9a-f]{16}$")]
    board: Option<String>,
    /// The version of the rules of a session that counts; for a script, the hash of its files.
    #[serde(skip_serializing_if = "Option::is_none")]
    rules_version: Option<&'s str>,
    /// SHA-256 of the prompt of a session that counts. Absent if the session is older than boards.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(pattern = "^[0-9a-f]{64}$")]
    prompt_sha256: Option<&'s str>,
    /// The session's options.
    #[schema(value_type = Object)]
    options: &'s serde_json::Value,
    /// The seed of all randomness, as hexadecimal digits; present from the end on.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(pattern = "^[0-9a-f]+$")]
    seed: Option<String>,
}

impl<'s> SessionView<'s> {
    /// Sets the challenge's name for people. By default, the name is the challenge type.
    #[must_use]
    pub fn with_name(self, name: &'s str) -> SessionView<'s> {
        SessionView { name, ..self }
    }

    /// Returns the visible scores by seat.
    pub fn scores(&self) -> &[Score] {
        self.state.scores
    }
}

/// The state of a session.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = ChallengeState)]
struct StateView<'s> {
    #[schema(value_type = Status)]
    status: &'static str,
    /// The time of the end.
    #[serde(skip_serializing_if = "Option::is_none")]
    completed_at: Option<Timestamp>,
    /// Scores by seat. Empty until the end, except in the answer to the creation.
    #[schema(value_type = [Score])]
    scores: &'s [Score],
    /// The invites of the joined players, by seat.
    players: Vec<String>,
    /// Users by invite, in the order of `players`. Empty until the end.
    #[serde(serialize_with = "in_order")]
    #[schema(value_type = BTreeMap<String, UserId>)]
    player_identities: Vec<(String, &'s UserId)>,
    /// The players whose users were deleted after the end, with the commitments to their ids in the session's record.
    /// Present if there are any.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    #[schema(value_type = BTreeMap<String, String>, required = false)]
    deleted_players: BTreeMap<String, String>,
    /// The attributions; present from the end on, if there are any.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(value_type = [AttributionView], required = false)]
    attributions: Vec<AttributionView<'s>>,
    /// The costs that players reported to earlier versions, by seat, unverified. Present from the end on, if there are
    /// any reports.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(value_type = [SeatUsageView], required = false)]
    reported_usage: Vec<SeatUsageView<'s>>,
    /// True if the session was ended because of inactivity.
    #[serde(skip_serializing_if = "Option::is_none")]
    abandoned: Option<bool>,
}

/// The cost that the player at one seat reported.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ReportedUsage)]
struct SeatUsageView<'s> {
    #[serde(flatten)]
    total: &'s UsageTotal,
    /// The first 500 reports; in the administrator's export only.
    #[serde(skip_serializing_if = "Option::is_none")]
    list: Option<&'s [UsageReport]>,
}

/// A record that one player caused something to happen to another.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Attribution)]
struct AttributionView<'s> {
    /// The invite of the player that caused it.
    from: String,
    /// The invite of the affected player.
    to: String,
    /// The kind of event, such as `security_breach`.
    #[serde(rename = "type")]
    kind: &'s str,
}

/// The end of a session: the `data` of a `game_ended` event, for current and later subscribers.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = GameEnded)]
pub struct GameEndedView<'s> {
    #[serde(flatten)]
    #[schema(value_type = StateView)]
    state: StateView<'s>,
    /// The profiles of `playerIdentities`, in the same order.
    #[serde(serialize_with = "in_order")]
    #[schema(value_type = BTreeMap<String, UserProfile>)]
    profiles: Vec<(&'s UserId, &'s UserProfile)>,
}

/// Serializes pairs as an object with the keys in the list's order. The list is in seat order, as the scores are, and
/// clients match the values to the scores by position.
fn in_order<S: Serializer, K: Serialize, V: Serialize>(pairs: &[(K, V)], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_map(pairs.iter().map(|(key, value)| (key, value)))
}

/// Returns a session as `viewer` may see it.
pub fn view(session: &Session, viewer: Viewer) -> SessionView<'_> {
    let ended = session.status() == Status::Ended;
    let shows_invite = |invite: InviteCode| {
        ended
            || session.seat_of(invite).is_some()
            || match viewer {
                Viewer::Creator => true,
                Viewer::Holder(shown) => shown == invite,
                Viewer::Nobody | Viewer::Player(_) => false,
            }
    };
    let detail = if ended { Detail::Public } else { Detail::Hidden };
    session_view(session, shows_invite, detail, ended || viewer == Viewer::Creator)
}

/// Returns a session with all its secrets, in any phase. For the administrator's export only.
pub fn reveal_session(session: &Session) -> SessionView<'_> {
    session_view(session, |_| true, Detail::Export, true)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Detail {
    /// No secrets.
    Hidden,
    /// The public data of an ended session.
    Public,
    /// The public data of an ended session, and the lists that are too long to be public, such as all usage reports.
    Export,
}

fn session_view(
    session: &Session,
    shows_invite: impl Fn(InviteCode) -> bool,
    detail: Detail,
    shows_scores: bool,
) -> SessionView<'_> {
    let facts = &*session.facts;
    let invite_text =
        |invite: &InviteCode| if shows_invite(*invite) { invite.to_string() } else { "inv_hidden".to_owned() };
    let is_shown = detail != Detail::Hidden;
    let game_state = if is_shown { session.state.as_str() } else { "{}" };
    SessionView {
        id: facts.id.to_string(),
        name: &facts.challenge,
        created_at: facts.created_at,
        challenge_type: &facts.challenge,
        invites: facts.invites.iter().map(invite_text).collect(),
        state: state_view(session, detail, shows_scores),
        game_state: serde_json::from_str(game_state).expect("Operator::serialize() gives JSON"),
        game_category: match session.phase {
            Phase::Ended { category, .. } => category,
            Phase::Open | Phase::Active => GameCategory::Train,
        },
        seed_commitment: facts.seed.as_ref().map(Seed::commitment),
        script_version: facts.script,
        rated: facts.rated.is_some(),
        unlisted: facts.is_unlisted.then_some(true),
        board: facts.board().map(|board| board.to_string()),
        rules_version: facts.rated.as_ref().map(|terms| terms.rules.as_str()),
        prompt_sha256: facts.rated.as_ref().and_then(|terms| terms.prompt.as_deref()),
        options: &facts.options,
        seed: facts.seed.as_ref().filter(|_| is_shown).map(Seed::reveal),
    }
}

fn state_view(session: &Session, detail: Detail, shows_scores: bool) -> StateView<'_> {
    let player = |seat: crate::Seat| session.seats[seat.0].invite.to_string();
    let (completed_at, ending) = match session.phase {
        Phase::Ended { at, ending, .. } => (Some(at), Some(ending)),
        Phase::Open | Phase::Active => (None, None),
    };
    let is_shown = detail != Detail::Hidden;
    let identities = session.seats.iter().filter(|_| is_shown);
    let attributions = session.attributions.iter().filter(|_| is_shown);
    let usage = session.usage.iter().filter(|_| is_shown);
    StateView {
        status: session.status().as_str(),
        completed_at,
        // The response to the creation request has one zero score per seat, because clients expect it.
        scores: if shows_scores { &session.scores } else { &[] },
        players: session.seats.iter().map(|occupant| occupant.invite.to_string()).collect(),
        player_identities: identities
            .filter_map(|occupant| Some((occupant.invite.to_string(), occupant.user.as_ref()?)))
            .collect(),
        deleted_players: session
            .seats
            .iter()
            .filter(|_| is_shown)
            .filter_map(|occupant| Some((occupant.invite.to_string(), occupant.deleted?.to_string())))
            .collect(),
        attributions: attributions
            .map(|attribution| AttributionView {
                from: player(attribution.from),
                to: player(attribution.to),
                kind: &attribution.kind,
            })
            .collect(),
        reported_usage: usage
            .map(|usage| SeatUsageView {
                total: &usage.total,
                list: (detail == Detail::Export).then_some(usage.reports.as_slice()),
            })
            .collect(),
        abandoned: (ending == Some(Ending::Abandoned)).then_some(true),
    }
}

/// Returns the `game_ended` event of an ended session, or `None` for a session that hasn't ended. `profiles` has the
/// profiles of the users that [`identities`] returns.
pub fn game_ended<'s>(session: &'s Session, profiles: &'s BTreeMap<UserId, UserProfile>) -> Option<GameEndedView<'s>> {
    if session.status() != Status::Ended {
        return None;
    }
    let state = state_view(session, Detail::Public, true);
    let mut known: Vec<(&UserId, &UserProfile)> = Vec::new();
    for (_, user) in &state.player_identities {
        // One user may hold several seats, but an object has each key once.
        if let Some(found) =
            profiles.get_key_value(*user).filter(|(user, _)| known.iter().all(|(other, _)| other != user))
        {
            known.push(found);
        }
    }
    Some(GameEndedView { state, profiles: known })
}

/// Returns the identified users of those sessions that have ended. Their identities are public.
pub fn identities<'s>(sessions: impl IntoIterator<Item = &'s Session>) -> BTreeSet<&'s UserId> {
    let ended = sessions.into_iter().filter(|session| session.status() == Status::Ended);
    ended.flat_map(|session| &session.seats).filter_map(|occupant| occupant.user.as_ref()).collect()
}

/// A message as a viewer may see it: `ChatMessage` on the wire.
#[derive(Debug)]
pub struct MessageView<'m> {
    message: &'m ChatMessage,
    readable: bool,
}

impl MessageView<'_> {
    pub fn is_readable(&self) -> bool {
        self.readable
    }
}

/// Returns a message as `viewer` may see it. `ended` is true if the message's session has ended.
///
/// A private message is visible to its sender and recipient. On the operator channel all messages become public at the
/// end of the session. Private chat stays private unless `reveal_chat` is set. A redacted message keeps its index,
/// parties and time, and loses its text and method, which may be the secret.
///
/// A message that an administrator has hidden has no text. Viewers who may read the message get the text's hash
/// instead. Other viewers get no hash, because a short secret can be guessed from its hash.
///
/// A message of [`Channel::Inputs`] is never readable.
pub fn redact(message: &ChatMessage, viewer: Viewer, ended: bool, reveal_chat: bool) -> MessageView<'_> {
    let is_public = ended && (reveal_chat || matches!(message.channel, Channel::Operator(_)));
    let concerned = |party: &Party| matches!((party, viewer), (Party::Player(a), Viewer::Player(b)) if *a == b);
    let readable = match &message.to {
        _ if message.channel.is_inputs() => false,
        None => true,
        Some(to) => is_public || concerned(to) || concerned(&message.from),
    };
    MessageView { message, readable }
}

/// Returns a message without redaction. For the administrator's export only.
pub fn reveal_message(message: &ChatMessage) -> MessageView<'_> {
    MessageView { message, readable: true }
}

impl Serialize for MessageView<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let MessageView { message, readable } = *self;
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("channel", &Text(&message.channel))?;
        map.serialize_entry("from", &Text(&message.from))?;
        if let Some(to) = &message.to {
            map.serialize_entry("to", &Text(to))?;
        }
        map.serialize_entry("content", if readable { message.content.as_str() } else { "" })?;
        map.serialize_entry("index", &message.index)?;
        map.serialize_entry("timestamp", &message.at)?;
        if !readable || message.hidden.is_some() {
            map.serialize_entry("redacted", &true)?;
        }
        if let Some(hash) = message.hidden.as_ref().filter(|_| readable) {
            map.serialize_entry("contentSha256", &Text(hash))?;
        }
        if let Some(method) = message.method.as_ref().filter(|_| readable) {
            map.serialize_entry("type", method)?;
        }
        map.end()
    }
}

/// Serializes a displayable value without an intermediate `String`.
struct Text<'t, T>(&'t T);

impl<T: std::fmt::Display> Serialize for Text<'_, T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ContentHash, SessionId};
    use proptest::prelude::*;

    fn invite(n: u8) -> InviteCode {
        InviteCode(uuid::Uuid::from_u128(u128::from(n)))
    }

    fn party() -> impl Strategy<Value = Party> {
        prop_oneof![
            Just(Party::Operator),
            (0u8..4).prop_map(|n| Party::Player(invite(n))),
            Just(Party::Other("somebody".into())),
        ]
    }

    fn message() -> impl Strategy<Value = ChatMessage> {
        let session = SessionId(uuid::Uuid::from_u128(7));
        let channel = prop_oneof![
            Just(Channel::Chat(session)),
            Just(Channel::Operator(session)),
            Just(Channel::Invites),
            Just(Channel::Inputs(session)),
        ];
        (channel, party(), prop::option::of(party()), any::<bool>()).prop_map(|(channel, from, to, hidden)| {
            ChatMessage {
                channel,
                index: 1,
                from,
                to,
                content: if hidden { "" } else { "THE SECRET" }.to_owned(),
                method: Some("THE METHOD".to_owned()),
                at: Timestamp(5),
                hidden: hidden.then(|| ContentHash::of("THE SECRET")),
            }
        })
    }

    fn viewer() -> impl Strategy<Value = Viewer> {
        prop_oneof![
            Just(Viewer::Nobody),
            Just(Viewer::Creator),
            (0u8..4).prop_map(|n| Viewer::Player(invite(n))),
            (0u8..4).prop_map(|n| Viewer::Holder(invite(n))),
        ]
    }

    proptest! {
        #[test]
        fn a_private_message_is_readable_for_its_two_parties_until_it_is_public(
            message in message(), viewer in viewer(), ended in any::<bool>(), reveal_chat in any::<bool>(),
        ) {
            let is = |party: &Party| matches!((party, viewer), (Party::Player(a), Viewer::Player(b)) if *a == b);
            let operators = matches!(message.channel, Channel::Operator(_));
            let expected = match &message.to {
                _ if matches!(message.channel, Channel::Inputs(_)) => false,
                None => true,
                Some(to) => is(to) || is(&message.from) || (ended && (operators || reveal_chat)),
            };
            let view = redact(&message, viewer, ended, reveal_chat);
            let text = serde_json::to_string(&view).expect("JSON");
            let hidden = message.hidden.is_some();
            let hash = ContentHash::of("THE SECRET").to_string();
            prop_assert_eq!(text.contains("THE SECRET"), expected && !hidden);
            prop_assert_eq!(text.contains(&hash), expected && hidden);
            prop_assert_eq!(text.contains("THE METHOD"), expected);
            prop_assert_eq!(text.contains(r#""redacted":true"#), !expected || hidden);
            prop_assert_eq!(view.is_readable(), expected);
        }

        #[test]
        fn a_viewer_without_access_can_not_tell_if_a_message_is_hidden(
            message in message(), viewer in viewer(), ended in any::<bool>(), reveal_chat in any::<bool>(),
        ) {
            let text = |message: &ChatMessage| {
                let view = redact(message, viewer, ended, reveal_chat);
                (!view.is_readable()).then(|| serde_json::to_string(&view).expect("JSON"))
            };
            let plain = ChatMessage { hidden: None, content: "THE SECRET".to_owned(), ..message.clone() };
            prop_assert_eq!(text(&message), text(&plain));
        }
    }
}
