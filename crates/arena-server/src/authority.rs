//! Who may do what with agents and tournaments: the administrator, and whoever shows the key that was told when something was made.
//! In sessions, identity.rs says who is who.

use std::net::{IpAddr, Ipv4Addr};

use arena_engine::Administrator;
use axum::http::{HeaderMap, header};
use serde_json::Value;

use crate::arena::Arena;
use crate::error::ApiResult;
use crate::identity::{bearer, unauthenticated};
use crate::rates::household;

/// Who asks for something to be made, changed or told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Authority {
    /// What is done is taken down in the audit.
    Administrator(Administrator),
    /// Of the thing in question.
    Owner,
    /// Shows nothing.
    Nobody,
}

impl Authority {
    /// Who asks, where an owner's key counts if `owns` says so. Whoever shows something means to be somebody, and hears if it is wrong.
    ///
    /// # Errors
    /// 401 if something is shown that opens nothing here.
    pub(crate) fn of(
        arena: &Arena,
        headers: &HeaderMap,
        address: Option<IpAddr>,
        owns: impl Fn(&str) -> bool,
    ) -> ApiResult<Authority> {
        let mut shown = headers.get_all(header::AUTHORIZATION).iter().map(bearer);
        match (shown.next(), shown.next()) {
            (None, _) => Ok(Authority::Nobody),
            (Some(_), None) if arena.settings.admin_token.as_ref().is_some_and(|token| token.opens(headers)) => {
                // Unknown only in tests that call the router without a socket.
                let address = address.unwrap_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED));
                Ok(Authority::Administrator(Administrator { address }))
            }
            (Some(key), None) if owns(key) => Ok(Authority::Owner),
            _ => Err(unauthenticated()),
        }
    }

    /// Tells callers apart whose `Idempotency-Key` is the same: who repeats a request is told the owner's key once more. Who shows nothing
    /// is known by the address.
    pub(crate) fn scope(self, address: Option<IpAddr>) -> String {
        match self {
            Authority::Administrator(_) => "administrator".to_owned(),
            Authority::Owner => "owner".to_owned(),
            Authority::Nobody => address.map(|address| household(address).to_string()).unwrap_or_default(),
        }
    }

    /// Lets everybody pass but those who show nothing.
    ///
    /// # Errors
    /// 401 to them.
    pub(crate) fn is_somebody(self) -> ApiResult<Authority> {
        if self == Authority::Nobody { Err(unauthenticated()) } else { Ok(self) }
    }

    /// Takes down what an administrator is about to do. Owners may do what they like with what is theirs.
    ///
    /// # Errors
    /// If the store can't write; then it isn't to be done.
    pub(crate) async fn take_down(self, arena: &Arena, action: &str, detail: Value) -> ApiResult<()> {
        match self {
            Authority::Administrator(by) => Ok(arena.engine.take_down(by, action, detail).await?),
            Authority::Owner | Authority::Nobody => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strangers_have_keys_of_their_own_and_the_administrator_is_one_everywhere() {
        let [near, far]: [IpAddr; 2] = ["127.0.0.1", "2001:db8::1"].map(|text| text.parse().unwrap());
        assert_ne!(Authority::Nobody.scope(Some(near)), Authority::Nobody.scope(Some(far)));
        let at = |address| Authority::Administrator(Administrator { address }).scope(Some(address));
        assert_eq!(at(near), at(far));
        assert_ne!(at(near), Authority::Nobody.scope(Some(near)));
    }
}
