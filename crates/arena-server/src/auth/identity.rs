//! Identification of callers in sessions. No other module accepts an identity from a request.
//!
//! In standalone mode `from` identifies the caller. In authentication mode `from` is ignored: callers are anonymous
//! unless a session key proves their seat in the session of the request.

use std::borrow::Cow;

use arena_engine::Engine;
use arena_identity::SessionKey;
use arena_model::{InviteCode, Party, Seat, SessionId, UserId, Viewer};
use axum::http::{HeaderMap, StatusCode, header};

use super::Auth;
use super::admin_token::bearer;
use crate::error::{ApiError, ApiResult};
use crate::request::Query;
use crate::request::names::check_visible;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Caller<'r> {
    Anonymous,
    /// The name in `from`, in standalone mode.
    Named(&'r str),
    /// The holder of a session key, in authentication mode.
    Seated {
        session: SessionId,
        seat: Seat,
        /// The invite of the seat, which is the player's name.
        invite: InviteCode,
    },
}

impl<'r> Caller<'r> {
    /// Returns the caller that `from` names in standalone mode.
    pub(crate) fn named(from: Option<&'r str>) -> Caller<'r> {
        from.map_or(Caller::Anonymous, Caller::Named)
    }

    pub(crate) fn viewer(&self) -> Viewer {
        match self {
            Caller::Seated { invite, .. } => Viewer::Player(*invite),
            Caller::Named(name) => match Party::from_wire(name) {
                Party::Player(invite) => Viewer::Player(invite),
                // The operator's view contains all private messages.
                Party::Operator | Party::Other(_) => Viewer::Nobody,
            },
            Caller::Anonymous => Viewer::Nobody,
        }
    }

    /// Returns the caller as a sender. The name `operator` is not allowed.
    ///
    /// # Errors
    /// If the caller is anonymous or `operator`, or if a spectator's name is invalid.
    pub(crate) fn speaker(&self) -> ApiResult<Party> {
        let name = match self {
            Caller::Seated { invite, .. } => return Ok(Party::Player(*invite)),
            Caller::Named(name) => name,
            Caller::Anonymous => return Err(ApiError::missing("from")),
        };
        match Party::from_wire(name) {
            Party::Operator => Err(ApiError::bad_request("FORBIDDEN_SENDER", "from cannot be operator")),
            Party::Other(name) => match name.parse::<UserId>() {
                Ok(user) => check_visible("from", user.as_str()).map(|()| Party::Other(name)),
                Err(error) => Err(ApiError::bad_request("INVALID_FIELD", format!("from is {error}"))),
            },
            player => Ok(player),
        }
    }

    /// Returns the scope of the caller's idempotency keys.
    pub(crate) fn scope(&self) -> Cow<'r, str> {
        match self {
            Caller::Anonymous => Cow::Borrowed(""),
            Caller::Named(name) => Cow::Borrowed(name),
            Caller::Seated { session, seat, .. } => Cow::Owned(format!("seat {} of {session}", seat.0)),
        }
    }
}

/// The unverified keys and session names of a request, in authentication mode.
#[derive(Debug)]
pub(crate) struct Claim<'r> {
    keys: Vec<&'r str>,
    sessions: Vec<&'r str>,
}

impl<'r> Claim<'r> {
    /// Collects the claim from the head of a request.
    pub(crate) fn new(headers: &'r HeaderMap, query: &'r Query) -> Claim<'r> {
        let bearers = headers.get_all(header::AUTHORIZATION).iter().map(bearer);
        let claim = Claim { keys: bearers.chain(query.all("key")).collect(), sessions: Vec::new() };
        claim.about(["challengeId", "channel"].into_iter().flat_map(|name| query.all(name)))
    }

    /// Adds the sessions that the request names, by id or by channel.
    pub(crate) fn about(mut self, names: impl IntoIterator<Item = &'r str>) -> Claim<'r> {
        self.sessions.extend(names.into_iter().map(|name| name.strip_prefix("challenge_").unwrap_or(name)));
        self
    }

    /// Returns the request's key, if any. Several different keys are an error.
    fn key(&self) -> ApiResult<Option<&'r str>> {
        only(&self.keys).ok_or_else(unauthenticated)
    }

    /// Returns the session that the request names, if any. Several different sessions are an error, since the key is
    /// checked against one session and the handler must act on that session.
    fn session(&self) -> ApiResult<Option<&'r str>> {
        let mismatch = || ApiError::bad_request("SESSION_MISMATCH", "query, body and path name different sessions");
        only(&self.sessions).ok_or_else(mismatch)
    }
}

/// Returns the text that all items of a list have in common: `None` if they differ, `Some(None)` if the list is empty.
fn only<'r>(texts: &[&'r str]) -> Option<Option<&'r str>> {
    match texts {
        [] => Some(None),
        [first, rest @ ..] => rest.iter().all(|other| other == first).then_some(Some(first)),
    }
}

pub(crate) fn unauthenticated() -> ApiError {
    ApiError::new(StatusCode::UNAUTHORIZED, "AUTHENTICATION_REQUIRED", "Authentication required")
}

impl Auth {
    /// Identifies the caller of a request.
    ///
    /// # Errors
    /// 400 if the request names several sessions; 401 if its key is invalid for a taken seat of the session; the
    /// engine's error if the session can't be read.
    pub(crate) async fn identify(&self, engine: &Engine, claim: Claim<'_>) -> ApiResult<Caller<'static>> {
        let named = claim.session()?;
        // The public channel belongs to no session, so a key is ignored.
        if named == Some("invites") {
            return Ok(Caller::Anonymous);
        }
        let Some(key) = claim.key()? else { return Ok(Caller::Anonymous) };
        let key: SessionKey = key.parse().map_err(|_| unauthenticated())?;
        let id: SessionId = named.and_then(|named| named.parse().ok()).ok_or_else(unauthenticated)?;
        // The key is checked before the session is read, so that a forged key causes no read of the store.
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
        assert_eq!(Caller::Anonymous.viewer(), Viewer::Nobody);
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
        // A malformed key counts as an invalid key.
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
