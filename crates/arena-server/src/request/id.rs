//! The ids of requests: in the header `X-Request-Id` of each response, and in the access log.

use std::hash::{BuildHasher, RandomState};
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};

use axum::http::{HeaderMap, HeaderName, HeaderValue};

pub(crate) const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// The maximum length of an id that a proxy has given, in bytes.
const MAX_GIVEN: usize = 64;

/// The id of a request. Ids of several nodes and starts differ.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RequestId(HeaderValue);

impl RequestId {
    /// 16 hexadecimal digits of a keyed hash: a plain number would show how many requests others make.
    pub(crate) fn new() -> RequestId {
        static KEY: LazyLock<RandomState> = LazyLock::new(RandomState::new);
        static NEXT: AtomicU64 = AtomicU64::new(1);
        let id = format!("{:016x}", KEY.hash_one(NEXT.fetch_add(1, Ordering::Relaxed)));
        RequestId(HeaderValue::try_from(id).expect("digits are a valid header"))
    }

    /// A trusted proxy or another node may give an id. Without a valid one, returns a new id.
    pub(crate) fn given(headers: &HeaderMap) -> RequestId {
        let is_allowed = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_.:/+=".contains(byte);
        let given = headers
            .get(REQUEST_ID)
            .filter(|id| (1..=MAX_GIVEN).contains(&id.len()) && id.as_bytes().iter().all(is_allowed));
        given.cloned().map_or_else(RequestId::new, RequestId)
    }

    pub(crate) fn header(&self) -> HeaderValue {
        self.0.clone()
    }

    pub(crate) fn as_str(&self) -> &str {
        self.0.to_str().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn given(text: &'static str) -> String {
        RequestId::given(&HeaderMap::from_iter([(REQUEST_ID, HeaderValue::from_static(text))])).as_str().to_owned()
    }

    #[test]
    fn ids_of_proxies_are_kept_if_they_are_short_and_simple() {
        for id in ["7f3a", "Root=1-67891233-abcdef012345678912345678", "a.b:c/d+e_f"] {
            assert_eq!(given(id), id);
        }
        let long = "a".repeat(65).leak();
        for id in ["", "a b", "\"", long] {
            assert_ne!(given(id), id);
        }
        assert_ne!(RequestId::new(), RequestId::new());
    }
}
