//! The one door from what is stored to what somebody may see.
//!
//! [`Session`] and [`ChatMessage`] can't be serialised. What can is made here, by [`view`], [`game_ended`] and
//! [`redact`], from who is looking. Until a session has ended nobody sees another's secret through it: no state of the
//! game, no identities, no scores, no unclaimed invite.
//!
//! [`reveal_session`] and [`reveal_message`] show everything at any time: that is the administrator's export and nothing else's.
//! They are functions of their own rather than one more [`Viewer`], so that nothing that a request says can lead there.

use std::collections::{BTreeMap, BTreeSet};

use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
use serde_json::value::RawValue;
use utoipa::ToSchema;

use crate::{
    Channel, ChatMessage, Ending, GameCategory, InviteCode, Party, Phase, Score, ScriptVersion, Seed, Session, Status,
    Timestamp, UsageReport, UsageTotal, UserId, UserProfile,
};

/// Who is looking.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Viewer {
    /// Nobody in particular; also every name that isn't a player of the session.
    Nobody,
    /// The player with this public name.
    Player(InviteCode),
    /// Somebody who has shown this invite, whether or not a player has joined with it.
    Holder(InviteCode),
    /// Whoever created the session, in the answer to the creation only.
    Creator,
}

/// A session as a viewer may see it: the `Challenge` of the wire.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Challenge)]
pub struct SessionView<'s> {
    #[schema(value_type = crate::SessionId)]
    id: String,
    /// The challenge type, such as `psi`.
    name: &'s str,
    created_at: Timestamp,
    /// The challenge type, such as `psi`.
    challenge_type: &'s str,
    /// The codes of all seats, in no order. One that isn't to be seen is `inv_hidden`.
    invites: Vec<String>,
    #[schema(value_type = StateView)]
    state: StateView<'s>,
    /// The state of the rules; `{}` until the end.
    #[schema(value_type = Object)]
    game_state: &'s RawValue,
    game_category: GameCategory,
    /// SHA-256 of the seed, as hexadecimal digits; not there where the seed isn't known, as of an imported session.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(pattern = "^[0-9a-f]{64}$")]
    seed_commitment: Option<String>,
    /// Which version of the challenge's script it is played by: the SHA-256 of its files; not there where it is no script.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = String, pattern = "^[0-9a-f]{64}$")]
    script_version: Option<ScriptVersion>,
    /// True if the game counts on a board: it is played with the options that this arena has for the challenge.
    rated: bool,
    /// The board that it counts on: see `GET /api/scoring/{type}/boards`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = String, required = false, pattern = "^[0-9a-f]{16}$")]
    board: Option<String>,
    /// The version of the rules, of a session that counts; of a script the hash of its files.
    #[serde(skip_serializing_if = "Option::is_none")]
    rules_version: Option<&'s str>,
    /// SHA-256 of the prompt, of a session that counts; not there if the session is older than boards.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(pattern = "^[0-9a-f]{64}$")]
    prompt_sha256: Option<&'s str>,
    /// The options that the session is played with.
    #[schema(value_type = Object)]
    options: &'s serde_json::Value,
    /// What everything was dealt from, as hexadecimal digits; there from the end on.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(pattern = "^[0-9a-f]+$")]
    seed: Option<String>,
}

impl SessionView<'_> {
    /// The scores by seat, as far as they are shown.
    pub fn scores(&self) -> &[Score] {
        self.state.scores
    }
}

/// How a session stands.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = ChallengeState)]
struct StateView<'s> {
    #[schema(value_type = Status)]
    status: &'static str,
    /// When it ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    completed_at: Option<Timestamp>,
    /// By seat. Empty until the end, but in the answer to whoever created the session.
    #[schema(value_type = [Score])]
    scores: &'s [Score],
    /// The invites of those who have joined, by seat.
    players: Vec<String>,
    /// Users by invite, in the order of `players`. Empty until the end.
    #[serde(serialize_with = "in_order")]
    #[schema(value_type = BTreeMap<String, UserId>)]
    player_identities: Vec<(String, &'s UserId)>,
    /// What players did to each other; there from the end on, if they did anything.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(value_type = [AttributionView], required = false)]
    attributions: Vec<AttributionView<'s>>,
    /// What players say that their play has cost, by seat; nobody verifies it. There from the end on, if anybody has said so.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(value_type = [SeatUsageView], required = false)]
    reported_usage: Vec<SeatUsageView<'s>>,
    /// Whether it was broken off since nobody did anything any more.
    #[serde(skip_serializing_if = "Option::is_none")]
    abandoned: Option<bool>,
}

/// What the player at one seat says that its play has cost.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ReportedUsage)]
struct SeatUsageView<'s> {
    #[serde(flatten)]
    total: &'s UsageTotal,
    /// The first 500 reports one by one; in the administrator's export only.
    #[serde(skip_serializing_if = "Option::is_none")]
    list: Option<&'s [UsageReport]>,
}

/// A record that one player caused something to happen to another.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Attribution)]
struct AttributionView<'s> {
    /// The invite of whoever caused it.
    from: String,
    /// The invite of whom it befell.
    to: String,
    /// What it was, such as `security_breach`.
    #[serde(rename = "type")]
    kind: &'s str,
}

/// What is announced when a session ends, and what late subscribers are told: the `data` of a `game_ended` event.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = GameEnded)]
pub struct GameEndedView<'s> {
    #[serde(flatten)]
    #[schema(value_type = StateView)]
    state: StateView<'s>,
    /// Those of `playerIdentities`, in the same order.
    #[serde(serialize_with = "in_order")]
    #[schema(value_type = BTreeMap<String, UserProfile>)]
    profiles: Vec<(&'s UserId, &'s UserProfile)>,
}

/// Serializes pairs as an object whose keys keep the order of the list. Clients read its values by their position, beside the
/// scores, which are by seat.
fn in_order<S: Serializer, K: Serialize, V: Serialize>(pairs: &[(K, V)], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_map(pairs.iter().map(|(key, value)| (key, value)))
}

/// A session as `viewer` may see it.
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
    let told = if ended { Told::Ending } else { Told::Nothing };
    session_view(session, shows_invite, told, ended || viewer == Viewer::Creator)
}

/// A session with all there is to it, whatever its phase. For the administrator's export only.
pub fn reveal_session(session: &Session) -> SessionView<'_> {
    session_view(session, |_| true, Told::Everything, true)
}

/// What a view of a session tells of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Told {
    /// Nothing that is secret until the end.
    Nothing,
    /// What all may see from the end on.
    Ending,
    /// That, and what would be too long to be shown to everybody.
    Everything,
}

fn session_view(
    session: &Session,
    shows_invite: impl Fn(InviteCode) -> bool,
    told: Told,
    shows_scores: bool,
) -> SessionView<'_> {
    let facts = &*session.facts;
    let invite_text =
        |invite: &InviteCode| if shows_invite(*invite) { invite.to_string() } else { "inv_hidden".to_owned() };
    let is_told = told != Told::Nothing;
    let game_state = if is_told { session.state.as_str() } else { "{}" };
    SessionView {
        id: facts.id.to_string(),
        name: &facts.challenge,
        created_at: facts.created_at,
        challenge_type: &facts.challenge,
        invites: facts.invites.iter().map(invite_text).collect(),
        state: state_view(session, told, shows_scores),
        game_state: serde_json::from_str(game_state).expect("Operator::serialize() gives JSON"),
        game_category: match session.phase {
            Phase::Ended { category, .. } => category,
            Phase::Open | Phase::Active => GameCategory::Train,
        },
        seed_commitment: facts.seed.as_ref().map(Seed::commitment),
        script_version: facts.script,
        rated: facts.rated.is_some(),
        board: facts.board().map(|board| board.to_string()),
        rules_version: facts.rated.as_ref().map(|terms| terms.rules.as_str()),
        prompt_sha256: facts.rated.as_ref().and_then(|terms| terms.prompt.as_deref()),
        options: &facts.options,
        seed: facts.seed.as_ref().filter(|_| is_told).map(Seed::reveal),
    }
}

fn state_view(session: &Session, told: Told, shows_scores: bool) -> StateView<'_> {
    let player = |seat: crate::Seat| session.seats[seat.0].invite.to_string();
    let (completed_at, ending) = match session.phase {
        Phase::Ended { at, ending, .. } => (Some(at), Some(ending)),
        Phase::Open | Phase::Active => (None, None),
    };
    let is_told = told != Told::Nothing;
    let identities = session.seats.iter().filter(|_| is_told);
    let attributions = session.attributions.iter().filter(|_| is_told);
    let usage = session.usage.iter().filter(|_| is_told);
    StateView {
        status: session.status().as_str(),
        completed_at,
        // In the answer to its creation a session's scores are zeros, one per seat, as clients expect them.
        scores: if shows_scores { &session.scores } else { &[] },
        players: session.seats.iter().map(|occupant| occupant.invite.to_string()).collect(),
        player_identities: identities
            .filter_map(|occupant| Some((occupant.invite.to_string(), occupant.user.as_ref()?)))
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
                list: (told == Told::Everything).then_some(usage.reports.as_slice()),
            })
            .collect(),
        abandoned: (ending == Some(Ending::Abandoned)).then_some(true),
    }
}

/// What is announced of a session that has ended; `None` while it hasn't. `profiles` are those of [`identities`].
pub fn game_ended<'s>(session: &'s Session, profiles: &'s BTreeMap<UserId, UserProfile>) -> Option<GameEndedView<'s>> {
    if session.status() != Status::Ended {
        return None;
    }
    let state = state_view(session, Told::Ending, true);
    let mut known: Vec<(&UserId, &UserProfile)> = Vec::new();
    for (_, user) in &state.player_identities {
        // One user may hold several seats; an object has each key once.
        if let Some(found) =
            profiles.get_key_value(*user).filter(|(user, _)| known.iter().all(|(other, _)| other != user))
        {
            known.push(found);
        }
    }
    Some(GameEndedView { state, profiles: known })
}

/// Everybody whose identity is visible in these sessions.
pub fn identities<'s>(sessions: impl IntoIterator<Item = &'s Session>) -> BTreeSet<&'s UserId> {
    let ended = sessions.into_iter().filter(|session| session.status() == Status::Ended);
    ended.flat_map(|session| &session.seats).filter_map(|occupant| occupant.user.as_ref()).collect()
}

/// A message as a viewer may see it: the `ChatMessage` of the wire.
#[derive(Debug)]
pub struct MessageView<'m> {
    message: &'m ChatMessage,
    readable: bool,
}

impl MessageView<'_> {
    /// Whether the viewer may read the message. There are only these two views of one.
    pub fn is_readable(&self) -> bool {
        self.readable
    }
}

/// A message as `viewer` may see it. `ended` says whether its session has ended.
///
/// A message to somebody is for that party and its sender alone. On the operator channel all is told once the session
/// has ended; what players told each other in private stays theirs, unless `reveal_chat` says otherwise. A redacted
/// message keeps its place, its parties and its time, and loses its text and its method, which may be the secret.
///
/// A message that an administrator has hidden has no text for anybody. Whoever may read it gets the hash of the text
/// instead; to others it looks like any message that they may not read, since a hash gives a short secret away.
pub fn redact(message: &ChatMessage, viewer: Viewer, ended: bool, reveal_chat: bool) -> MessageView<'_> {
    let told = ended && (reveal_chat || matches!(message.channel, Channel::Operator(_)));
    let concerned = |party: &Party| matches!((party, viewer), (Party::Player(a), Viewer::Player(b)) if *a == b);
    let readable = match &message.to {
        None => true,
        Some(to) => told || concerned(to) || concerned(&message.from),
    };
    MessageView { message, readable }
}

/// A message with all there is to it. For the administrator's export only.
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

/// Serialises what can be displayed, without a `String` in between.
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
        let channel =
            prop_oneof![Just(Channel::Chat(session)), Just(Channel::Operator(session)), Just(Channel::Invites)];
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
        fn a_message_to_somebody_is_read_by_its_two_parties_and_by_all_once_it_may_be(
            message in message(), viewer in viewer(), ended in any::<bool>(), reveal_chat in any::<bool>(),
        ) {
            let is = |party: &Party| matches!((party, viewer), (Party::Player(a), Viewer::Player(b)) if *a == b);
            let operators = matches!(message.channel, Channel::Operator(_));
            let expected = match &message.to {
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

        // To who may not read it, nothing tells a hidden message from others.
        #[test]
        fn who_may_not_read_a_message_can_not_tell_whether_it_is_hidden(
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
