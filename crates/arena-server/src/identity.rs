//! Who makes a request: the one place in which anybody is believed.
//!
//! In standalone mode everybody is who `from` says. In authentication mode `from` counts for nothing: everybody is
//! nobody, until a session key shows which seat they hold in the session that the request is about.

use std::borrow::Cow;

use arena_engine::Engine;
use arena_identity::SessionKey;
use arena_model::{InviteCode, Party, Seat, SessionId, UserId, Viewer};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};

use crate::auth::Auth;
use crate::error::{ApiError, ApiResult};
use crate::request::Query;

/// Who makes a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Caller<'r> {
    /// Nobody in particular: somebody who watches.
    Nobody,
    /// In standalone mode, whoever the request says.
    Named(&'r str),
    /// In authentication mode, whoever holds the key to a seat.
    Seated {
        /// In which session.
        session: SessionId,
        /// At which seat.
        seat: Seat,
        /// The invite that the seat was taken with: the player's name there.
        invite: InviteCode,
    },
}

impl<'r> Caller<'r> {
    /// Who a `from` names in standalone mode.
    pub(crate) fn named(from: Option<&'r str>) -> Caller<'r> {
        from.map_or(Caller::Nobody, Caller::Named)
    }

    /// The caller as one who looks.
    pub(crate) fn viewer(&self) -> Viewer {
        match self {
            Caller::Seated { invite, .. } => Viewer::Player(*invite),
            Caller::Named(name) => match Party::from_wire(name) {
                Party::Player(invite) => Viewer::Player(invite),
                // The operator's own view isn't to be had: it would show what all players told it.
                Party::Operator | Party::Other(_) => Viewer::Nobody,
            },
            Caller::Nobody => Viewer::Nobody,
        }
    }

    /// The caller as one who speaks. The operator speaks for itself, and nobody for it.
    ///
    /// # Errors
    /// If it is nobody, or the operator, or somebody whose name can't be one: a spectator's is stored as it is.
    pub(crate) fn speaker(&self) -> ApiResult<Party> {
        let name = match self {
            Caller::Seated { invite, .. } => return Ok(Party::Player(*invite)),
            Caller::Named(name) => name,
            Caller::Nobody => return Err(ApiError::missing("from")),
        };
        match Party::from_wire(name) {
            Party::Operator => Err(ApiError::bad_request("FORBIDDEN_SENDER", "from can't be operator")),
            Party::Other(name) => match name.parse::<UserId>() {
                Ok(_) => Ok(Party::Other(name)),
                Err(error) => Err(ApiError::bad_request("INVALID_FIELD", format!("from is {error}"))),
            },
            player => Ok(player),
        }
    }

    /// What tells this caller's idempotency keys from those of others.
    pub(crate) fn scope(&self) -> Cow<'r, str> {
        match self {
            Caller::Nobody => Cow::Borrowed(""),
            Caller::Named(name) => Cow::Borrowed(name),
            Caller::Seated { session, seat, .. } => Cow::Owned(format!("seat {} of {session}", seat.0)),
        }
    }
}

/// What a request says in authentication mode: its keys, and the sessions that it names. None of it is believed yet.
#[derive(Debug)]
pub(crate) struct Claim<'r> {
    keys: Vec<&'r str>,
    sessions: Vec<&'r str>,
}

impl<'r> Claim<'r> {
    /// The claim in the head of a request.
    pub(crate) fn new(headers: &'r HeaderMap, query: &'r Query) -> Claim<'r> {
        let bearers = headers.get_all(header::AUTHORIZATION).iter().map(bearer);
        let claim = Claim { keys: bearers.chain(query.all("key")).collect(), sessions: Vec::new() };
        claim.about(["challengeId", "channel"].into_iter().flat_map(|name| query.all(name)))
    }

    /// The claim of a request that names these sessions besides, by their ids or their channels.
    pub(crate) fn about(mut self, names: impl IntoIterator<Item = &'r str>) -> Claim<'r> {
        self.sessions.extend(names.into_iter().map(|name| name.strip_prefix("challenge_").unwrap_or(name)));
        self
    }

    /// The key, if there is one. Two that differ can't both be right, and which is meant isn't ours to guess.
    fn key(&self) -> ApiResult<Option<&'r str>> {
        only(&self.keys).ok_or_else(unauthenticated)
    }

    /// What the request is about. A key is checked against this, so it has to be what is acted on, too.
    fn session(&self) -> ApiResult<Option<&'r str>> {
        let mismatch = || ApiError::bad_request("SESSION_MISMATCH", "query, body and path name different sessions");
        only(&self.sessions).ok_or_else(mismatch)
    }
}

/// The one text that a list holds, however often. `None` if it holds several.
fn only<'r>(texts: &[&'r str]) -> Option<Option<&'r str>> {
    match texts {
        [] => Some(None),
        [first, rest @ ..] => rest.iter().all(|other| other == first).then_some(Some(first)),
    }
}

/// The key in an `Authorization` header. In another form than `Bearer KEY` it is no key, and so a wrong one: who sends
/// it means to be somebody, and shall hear that it failed.
pub(crate) fn bearer(value: &HeaderValue) -> &str {
    let credentials = value.to_str().ok().and_then(|text| text.split_once(' '));
    match credentials {
        Some((scheme, key)) if scheme.eq_ignore_ascii_case("bearer") => key.trim_matches(' '),
        _ => "",
    }
}

pub(crate) fn unauthenticated() -> ApiError {
    ApiError::new(StatusCode::UNAUTHORIZED, "AUTHENTICATION_REQUIRED", "Authentication required")
}

impl Auth {
    /// Finds out who makes a request.
    ///
    /// # Errors
    /// 400 if it names several sessions; 401 if it brings a key that isn't to a taken seat of the session it names; what
    /// the engine says if the session can't be read.
    pub(crate) async fn identify(&self, engine: &Engine, claim: Claim<'_>) -> ApiResult<Caller<'static>> {
        let named = claim.session()?;
        // The public channel is no session's. Like lists, it is for everybody, and keys don't count there.
        if named == Some("invites") {
            return Ok(Caller::Nobody);
        }
        let Some(key) = claim.key()? else { return Ok(Caller::Nobody) };
        let key: SessionKey = key.parse().map_err(|_| unauthenticated())?;
        let id: SessionId = named.and_then(|named| named.parse().ok()).ok_or_else(unauthenticated)?;
        // Before the session is looked for, so that a forged key costs no reading.
        if !self.secret.issued(&key, id) {
            return Err(unauthenticated());
        }
        let session = engine.find_session(id).await?.ok_or_else(unauthenticated)?;
        let occupant = session.seats.get(key.seat().0).ok_or_else(unauthenticated)?;
        Ok(Caller::Seated { session: id, seat: key.seat(), invite: occupant.invite })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::{Expect, expect};

    #[test]
    fn the_operators_view_is_not_to_be_had() {
        for name in ["operator", "ada"] {
            assert_eq!(Caller::Named(name).viewer(), Viewer::Nobody);
        }
        assert_eq!(Caller::Nobody.viewer(), Viewer::Nobody);
    }

    #[track_caller]
    fn check(headers: &[&str], query: &str, names: &[&'static str], expected: Expect) {
        let mut map = HeaderMap::new();
        for value in headers {
            map.append(header::AUTHORIZATION, value.parse().expect("a header"));
        }
        let query = Query::parse(&format!("/x?{query}").parse().expect("a URI")).expect("a query");
        let claim = Claim::new(&map, &query).about(names.iter().copied());
        let show = |result: ApiResult<Option<&str>>| match result {
            Ok(Some(text)) => format!("{text:?}"),
            Ok(None) => "none".to_owned(),
            Err(error) => format!("{error:?}").split('"').nth(1).expect("a code").to_owned(),
        };
        expected.assert_eq(&format!("key {}, session {}", show(claim.key()), show(claim.session())));
    }

    #[test]
    fn keys_may_come_by_either_way_and_must_agree() {
        check(&[], "", &[], expect!["key none, session none"]);
        check(&["Bearer k"], "", &["x"], expect![[r#"key "k", session "x""#]]);
        check(&["bEARER   k  "], "", &[], expect![[r#"key "k", session none"#]]);
        check(&[], "key=k", &[], expect![[r#"key "k", session none"#]]);
        check(&["Bearer k"], "key=k", &[], expect![[r#"key "k", session none"#]]);
        check(&["Bearer k"], "key=l", &[], expect!["key AUTHENTICATION_REQUIRED, session none"]);
        check(&["Bearer k", "Bearer l"], "", &[], expect!["key AUTHENTICATION_REQUIRED, session none"]);
        check(&[], "key=k&key=l", &[], expect!["key AUTHENTICATION_REQUIRED, session none"]);
        // What is there and is no key is a wrong one.
        check(&["Basic azpr"], "", &[], expect![[r#"key "", session none"#]]);
        check(&["k"], "", &[], expect![[r#"key "", session none"#]]);
        check(&["Bearer"], "", &[], expect![[r#"key "", session none"#]]);
        check(&[], "key=", &[], expect![[r#"key "", session none"#]]);
        check(&["Basic azpr"], "key=k", &[], expect!["key AUTHENTICATION_REQUIRED, session none"]);
    }

    #[test]
    fn a_session_may_be_named_often_but_not_with_others() {
        check(&[], "channel=challenge_x", &["x"], expect![[r#"key none, session "x""#]]);
        check(&[], "challengeId=x&channel=x", &["challenge_x"], expect![[r#"key none, session "x""#]]);
        check(&[], "channel=y", &["x"], expect!["key none, session SESSION_MISMATCH"]);
        check(&[], "challengeId=y", &["x"], expect!["key none, session SESSION_MISMATCH"]);
        check(&[], "channel=x&channel=y", &["x"], expect!["key none, session SESSION_MISMATCH"]);
        check(&[], "channel=", &["x"], expect!["key none, session SESSION_MISMATCH"]);
        check(&[], "", &["x", "y"], expect!["key none, session SESSION_MISMATCH"]);
        check(&[], "", &["challenge_challenge_x", "x"], expect!["key none, session SESSION_MISMATCH"]);
    }
}
