//! Authorization for agents, tournaments and sessions as a whole: by the administrator's token, or by the owner's key,
//! which the response to the creation contains. `auth/identity.rs` identifies callers in sessions.

use std::net::{IpAddr, Ipv4Addr};

use arena_engine::Administrator;
use axum::http::{HeaderMap, header};
use serde_json::Value;

use super::admin_token::bearer;
use super::identity::unauthenticated;
use crate::arena::Arena;
use crate::error::ApiResult;
use crate::limits::network_of;

/// The authority of a caller over an agent, a tournament or a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Authority {
    /// The administrator. The audit log records the administrator's actions.
    Administrator(Administrator),
    /// The owner of the agent or tournament, or the creator of the session.
    Owner,
    Anonymous,
}

impl Authority {
    /// Determines the caller's authority. `owns` is true for the key of the owner. Invalid credentials are an error,
    /// not [`Authority::Anonymous`].
    ///
    /// # Errors
    /// 401 if the credentials are invalid.
    pub(crate) fn of(
        arena: &Arena,
        headers: &HeaderMap,
        address: Option<IpAddr>,
        owns: impl Fn(&str) -> bool,
    ) -> ApiResult<Authority> {
        let mut shown = headers.get_all(header::AUTHORIZATION).iter().map(bearer);
        match (shown.next(), shown.next()) {
            (None, _) => Ok(Authority::Anonymous),
            (Some(_), None) if arena.settings.admin_token.as_ref().is_some_and(|token| token.authorizes(headers)) => {
                Ok(Authority::Administrator(administrator_at(address)))
            }
            (Some(key), None) if owns(key) => Ok(Authority::Owner),
            _ => Err(unauthenticated()),
        }
    }

    /// Returns the scope of the caller's `Idempotency-Key`s. Callers without credentials are distinguished by address,
    /// since the response to a repeated request contains the owner's key.
    pub(crate) fn scope(self, address: Option<IpAddr>) -> String {
        match self {
            Authority::Administrator(_) => "administrator".to_owned(),
            Authority::Owner => "owner".to_owned(),
            Authority::Anonymous => address.map(|address| network_of(address).to_string()).unwrap_or_default(),
        }
    }

    /// Returns the authority of a caller with credentials.
    ///
    /// # Errors
    /// 401 without credentials.
    pub(crate) fn require_credentials(self) -> ApiResult<Authority> {
        if self == Authority::Anonymous { Err(unauthenticated()) } else { Ok(self) }
    }

    /// Records an administrator's action in the audit log. The caller performs the action afterward. Owners' actions
    /// are not recorded.
    ///
    /// # Errors
    /// If the store can't write. Then the action must not be performed.
    pub(crate) async fn record_audit(self, arena: &Arena, action: &str, detail: Value) -> ApiResult<()> {
        match self {
            Authority::Administrator(by) => Ok(arena.engine.record_action(by, action, detail).await?),
            Authority::Owner | Authority::Anonymous => Ok(()),
        }
    }
}

/// Returns the administrator at a client's address, which is unknown only in tests that call the router without a socket.
pub(crate) fn administrator_at(address: Option<IpAddr>) -> Administrator {
    Administrator { address: address.unwrap_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strangers_have_keys_of_their_own_and_the_administrator_is_one_everywhere() {
        let [near, far]: [IpAddr; 2] = ["127.0.0.1", "2001:db8::1"].map(|text| text.parse().unwrap());
        assert_ne!(Authority::Anonymous.scope(Some(near)), Authority::Anonymous.scope(Some(far)));
        let at = |address| Authority::Administrator(Administrator { address }).scope(Some(address));
        assert_eq!(at(near), at(far));
        assert_ne!(at(near), Authority::Anonymous.scope(Some(near)));
    }
}
