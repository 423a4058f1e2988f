//! Extractors: they parse requests and apply the limits before the handlers run.

mod body;
mod fields;
mod id;
pub(crate) mod names;
mod origin;
mod query;

use std::net::IpAddr;
use std::ops::Deref;

use arena_engine::{Administrator, Once};
use arena_model::InviteCode;
use axum::body::Body;
use axum::extract::rejection::RawPathParamsRejection;
use axum::extract::{FromRequest, FromRequestParts, RawPathParams, Request};
use axum::http::request::Parts;
use axum::http::{Extensions, HeaderMap, Uri, header};
use bytes::Bytes;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::arena::Arena;
use crate::auth::{Caller, Claim};
use crate::error::{ApiError, ApiResult};
use crate::limits::{LimitSettings, RequestConnection, network_of};
pub(crate) use body::{BodyLimit, JSON_WEIGHT, invalid_json, parse_object, read_body};
pub(crate) use fields::{ByKey, ByName, Content, FieldSettings, Filled, Input, Is, Lenient, Whole};
pub(crate) use id::{REQUEST_ID, RequestId};
pub use origin::{AllowedOrigin, NoOrigin};
pub(crate) use origin::{check_host, check_origin};
pub(crate) use query::Query;
use query::is_anonymous;

/// The client's address, which the server adds to the request.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ClientAddress(pub(crate) IpAddr);

/// The parsed head of a request, for routes without a body. The request counts against the rate limit.
pub(crate) struct Get {
    pub(crate) uri: Uri,
    pub(crate) query: Query,
    pub(crate) headers: HeaderMap,
    /// The client's address; unknown only in tests that call the router without a socket.
    pub(crate) address: Option<IpAddr>,
    /// The request's connection; unknown only in tests.
    pub(crate) request_connection: Option<RequestConnection>,
    params: Vec<(String, String)>,
    pub(crate) field_settings: FieldSettings,
    /// The `Idempotency-Key`; `None` on routes without a body, which ignore it.
    key: Option<String>,
}

/// A POST request with its parsed head and JSON object.
pub(crate) struct Post {
    head: Get,
    /// The parsed body; `None` if it is empty.
    object: Option<Value>,
    /// The field `from` of the body; `None` in authentication mode.
    from: Option<String>,
    body: Bytes,
}

/// An upload with its parsed head. The handler reads the body later, after further checks.
pub(crate) struct Upload {
    head: Get,
    body: Body,
}

impl Deref for Post {
    type Target = Get;

    fn deref(&self) -> &Get {
        &self.head
    }
}

impl Deref for Upload {
    type Target = Get;

    fn deref(&self) -> &Get {
        &self.head
    }
}

/// Every body may have `from` in standalone mode. It must be a string, even on routes that ignore it.
#[derive(Deserialize)]
struct SenderField {
    from: Option<String>,
}

/// The body fields that name a session, on any route. A session key must belong to the session that they name.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct SessionFields {
    challenge_id: Option<String>,
    channel: Option<String>,
}

impl FromRequestParts<Arena> for Get {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, arena: &Arena) -> Result<Self, ApiError> {
        let address = admit(&parts.extensions, arena)?;
        let params = path_params(parts).await?;
        let request_connection = RequestConnection::of(&parts.extensions);
        let query = Query::parse(&parts.uri)?;
        let (uri, headers) = (std::mem::take(&mut parts.uri), std::mem::take(&mut parts.headers));
        let field_settings = field_settings(arena);
        Ok(Get { uri, query, headers, address, request_connection, params, field_settings, key: None })
    }
}

impl Get {
    /// Returns a parameter of the path; empty if the route doesn't have it.
    pub(crate) fn param(&self, name: &str) -> &str {
        self.params.iter().find(|(key, _)| key == name).map_or("", |(_, value)| value)
    }

    /// Deserializes the query.
    ///
    /// # Errors
    /// If a parameter is missing or invalid.
    pub(crate) fn query<T: DeserializeOwned>(&self) -> ApiResult<T> {
        Input::Query(&self.query).read(self.field_settings)
    }

    /// Identifies the caller of a request about the channel or session of this name.
    ///
    /// # Errors
    /// In authentication mode, if the key is invalid for that channel or session; see
    /// [`Auth::identify`](crate::auth::Auth::identify).
    pub(crate) async fn caller(&self, arena: &Arena, name: &str) -> ApiResult<Caller<'_>> {
        let caller = match &arena.auth {
            None => Caller::named(self.query.identity()),
            Some(auth) => auth.identify(&arena.engine, Claim::new(&self.headers, &self.query).about([name])).await?,
        };
        self.mark_player(arena, &caller).await?;
        Ok(caller)
    }

    /// The server doesn't close the connections of seat holders in favor of new ones.
    async fn mark_player(&self, arena: &Arena, caller: &Caller<'_>) -> ApiResult<()> {
        let connection = self.request_connection.as_ref().map(|request_connection| &request_connection.connection);
        let Some(connection) = connection.filter(|connection| !connection.is_known()) else { return Ok(()) };
        let holds_a_seat = match caller {
            Caller::Anonymous => false,
            Caller::Seated { .. } => true,
            Caller::Named(name) => match name.parse::<InviteCode>() {
                Ok(invite) => {
                    let session = arena.engine.find_invited(invite).await?;
                    session.is_some_and(|session| session.seat_of(invite).is_some())
                }
                Err(_) => false,
            },
        };
        if holds_a_seat {
            connection.mark_known();
        }
        Ok(())
    }

    /// Checks that the `Idempotency-Key`, if any, is long enough to be hard to guess. Routes that store a response with
    /// a secret need this check.
    ///
    /// # Errors
    /// If the key is too short.
    pub(crate) fn check_unguessable(&self) -> ApiResult<()> {
        if self.key.as_ref().is_none_or(|key| key.len() >= UNGUESSABLE) {
            return Ok(());
        }
        let text = format!(
            "Idempotency-Key must be {UNGUESSABLE} to 255 characters for this request, since any client that repeats the key gets the \
             response: send a key that is hard to guess, such as a UUID"
        );
        Err(ApiError::bad_request("INVALID_IDEMPOTENCY_KEY", text))
    }

    /// False if the connection is from the reserve and its caller is unknown.
    pub(crate) fn may_wait(&self) -> bool {
        !self.request_connection.as_ref().is_some_and(|request_connection| request_connection.connection.is_brief())
    }
}

impl FromRequest<Arena> for Post {
    type Rejection = ApiError;

    async fn from_request(request: Request, arena: &Arena) -> Result<Self, ApiError> {
        let (mut parts, body) = request.into_parts();
        let mut head = Get::from_request_parts(&mut parts, arena).await?;
        head.key = idempotency_key(&head.headers)?;
        let limits = &arena.settings.limits;
        let limit = BodyLimit { bytes: limits.body_bytes, setting: "limits.body_bytes", weight: JSON_WEIGHT };
        let body = read_body(body, limit, limits, head.request_connection.as_ref()).await?;
        if parts.extensions.get::<Administrator>().is_none() {
            arena.rates.admit_body(head.address, body.len())?;
        }
        let object = parse_object(&body)?;
        let from = match object.as_ref().filter(|_| !head.field_settings.keys) {
            Some(object) => Input::Json(object).read::<SenderField>(head.field_settings)?.from,
            None => None,
        };
        Ok(Post { head, object, from, body })
    }
}

impl Post {
    /// Deserializes a required body.
    ///
    /// # Errors
    /// If the body is missing or invalid.
    pub(crate) fn body<T: DeserializeOwned>(&self) -> ApiResult<T> {
        self.find_body()?.ok_or_else(invalid_json)
    }

    /// Deserializes an optional body.
    ///
    /// # Errors
    /// If the body is invalid.
    pub(crate) fn find_body<T: DeserializeOwned>(&self) -> ApiResult<Option<T>> {
        self.object.as_ref().map(|object| Input::Json(object).read(self.field_settings)).transpose()
    }

    /// Returns the unverified `from` of the query, or else of the body; `None` if it is anonymous.
    pub(crate) fn claimed(&self) -> Option<&str> {
        self.query.get("from").or(self.from.as_deref()).filter(|from| !is_anonymous(from))
    }

    /// Identifies the caller of a write to the session that the query or the body names.
    ///
    /// # Errors
    /// In authentication mode, if the key is invalid for that session; see
    /// [`Auth::identify`](crate::auth::Auth::identify).
    pub(crate) async fn caller(&self, arena: &Arena) -> ApiResult<Caller<'_>> {
        let caller = match &arena.auth {
            None => Caller::named(self.claimed()),
            Some(auth) => {
                let named: Option<SessionFields> = self.find_body()?;
                let named = named.iter().flat_map(|named| [&named.challenge_id, &named.channel]);
                let claim = Claim::new(&self.headers, &self.query).about(named.flatten().map(String::as_str));
                auth.identify(&arena.engine, claim).await?
            }
        };
        self.mark_player(arena, &caller).await?;
        Ok(caller)
    }

    /// Returns the idempotency token of the request, if it has an `Idempotency-Key`. Equal keys in different scopes,
    /// such as [`Caller::scope`], are independent.
    pub(crate) fn once(&self, scope: &str) -> Option<Once> {
        Some(once(self.uri.path(), scope, self.key.as_ref()?, &self.body))
    }

    /// For a write by `caller`. Spectators may use any name, so their scope includes the address.
    pub(crate) fn once_by(&self, caller: &Caller<'_>) -> Option<Once> {
        match caller {
            Caller::Named(name) if name.parse::<InviteCode>().is_err() => {
                self.once(&anonymous_scope(name, self.address))
            }
            player => self.once(&player.scope()),
        }
    }

    /// Returns the idempotency token for a write to `subject`, such as an invite, by a caller that needs no seat. In
    /// standalone mode the scope includes `from`.
    pub(crate) fn once_about(&self, subject: &str) -> Option<Once> {
        self.once(&format!("about\0{subject}\0{}", self.anonymous_name()))
    }

    /// Returns the idempotency token for a request that creates a session. The stored response contains the invites. So
    /// the key must be hard to guess, and the scope includes the caller's address and name.
    ///
    /// # Errors
    /// If the key is too short.
    pub(crate) fn once_creating(&self) -> ApiResult<Option<Once>> {
        self.check_unguessable()?;
        Ok(self.once(&anonymous_scope(self.anonymous_name(), self.address)))
    }

    /// Returns `from`, which distinguishes callers without a seat in standalone mode; empty in authentication mode.
    fn anonymous_name(&self) -> &str {
        if self.field_settings.keys { "" } else { self.claimed().unwrap_or_default() }
    }
}

/// Returns the idempotency scope of a caller without a seat. The zero characters distinguish it from the scopes of
/// players and from those of earlier versions.
fn anonymous_scope(name: &str, address: Option<IpAddr>) -> String {
    let address = address.map(|address| network_of(address).to_string()).unwrap_or_default();
    format!("stranger\0{name}\0{address}")
}

/// Minimum length in bytes of an `Idempotency-Key` if the stored response contains a secret.
pub(crate) const UNGUESSABLE: usize = 16;

fn once(path: &str, scope: &str, key: &str, body: &[u8]) -> Once {
    let mut hash = Sha256::new();
    for part in [path, scope, key] {
        hash.update((part.len() as u64).to_le_bytes());
        hash.update(part);
    }
    Once { key: hash.finalize().into(), request: Sha256::digest(body).into() }
}

impl FromRequest<Arena> for Upload {
    type Rejection = ApiError;

    async fn from_request(request: Request, arena: &Arena) -> Result<Self, ApiError> {
        let (mut parts, body) = request.into_parts();
        let mut head = Get::from_request_parts(&mut parts, arena).await?;
        head.key = idempotency_key(&head.headers)?;
        Ok(Upload { head, body })
    }
}

impl Upload {
    /// Reads the body, of at most `limit` bytes; `limited_by` is the name of that limit's setting. Returns the body and
    /// the idempotency token in `scope`.
    ///
    /// # Errors
    /// See [`read_body`].
    pub(crate) async fn read(
        self,
        limit: usize,
        limited_by: &str,
        limits: &LimitSettings,
        scope: &str,
    ) -> ApiResult<(Bytes, Option<Once>)> {
        let limit = BodyLimit { bytes: limit, setting: limited_by, weight: 1 };
        let body = read_body(self.body, limit, limits, self.head.request_connection.as_ref()).await?;
        // Unlike `Post`, the token covers the query, since it contains the names of the agent and the file.
        let place = self.head.uri.to_string();
        let once = self.head.key.map(|key| once(&place, scope, &key, &body));
        Ok((body, once))
    }
}

/// Returns the client's address; `None` only in tests that call the router without a socket.
pub(crate) fn address_of(extensions: &Extensions) -> Option<IpAddr> {
    extensions.get::<ClientAddress>().map(|ClientAddress(address)| *address)
}

/// Returns the settings for the fields of all requests.
pub(crate) fn field_settings(arena: &Arena) -> FieldSettings {
    FieldSettings { keys: arena.is_authenticated_mode(), content_bytes: arena.settings.limits.message_bytes }
}

/// Counts a request against the rate limit of its address and returns the address. A request with an [`Administrator`]
/// was counted by the token check and is skipped.
pub(crate) fn admit(extensions: &Extensions, arena: &Arena) -> Result<Option<IpAddr>, ApiError> {
    let address = address_of(extensions);
    if let Some(address) = address.filter(|_| extensions.get::<Administrator>().is_none()) {
        arena.rates.admit(address)?;
    }
    Ok(address)
}

pub(crate) async fn path_params(parts: &mut Parts) -> Result<Vec<(String, String)>, ApiError> {
    match RawPathParams::from_request_parts(parts, &()).await {
        Ok(params) => Ok(params.iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect()),
        // The request didn't pass the router, so its route has no parameters.
        Err(RawPathParamsRejection::MissingPathParams(_)) => Ok(Vec::new()),
        Err(_) => Err(ApiError::bad_request("INVALID_PATH", "the path is not valid UTF-8")),
    }
}

/// True if the content type is JSON.
pub(crate) fn is_json(headers: &HeaderMap) -> bool {
    let kind = headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    kind.split(';').next().unwrap_or_default().trim().eq_ignore_ascii_case("application/json")
}

fn idempotency_key(headers: &HeaderMap) -> Result<Option<String>, ApiError> {
    let Some(value) = headers.get("idempotency-key") else { return Ok(None) };
    match value.to_str() {
        // `to_str` accepts tabs, which are not printable.
        Ok(key) if (1..=255).contains(&key.len()) && !key.contains('\t') => Ok(Some(key.to_owned())),
        _ => Err(ApiError::bad_request(
            "INVALID_IDEMPOTENCY_KEY",
            "Idempotency-Key must be 1 to 255 printable ASCII characters",
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::{Expect, expect};

    use crate::openapi::Paging;

    fn check(query: &str, expected: Expect) {
        let uri: Uri = format!("/x?{query}").parse().expect("a URI");
        let text = match Query::parse(&uri) {
            Ok(query) => format!(
                "{:?} from={:?} index={:?} page={:?}",
                query.pairs().collect::<Vec<_>>(),
                query.identity(),
                query.number("index"),
                Input::Query(&query)
                    .read::<Paging>(FieldSettings { keys: false, content_bytes: 0 })
                    .map_or((0, 0), |paging| paging.page(50))
            ),
            Err(error) => format!("{error:?}"),
        };
        expected.assert_eq(&text);
    }

    #[test]
    fn queries_are_read_strictly_and_numbers_leniently() {
        check(
            "from=a+b%20c&index=7",
            expect![[r#"[("from", "a b c"), ("index", "7")] from=Some("a b c") index=Some(7) page=(0, 50)"#]],
        );
        check(
            "from=viewer&index=-1",
            expect![[r#"[("from", "viewer"), ("index", "-1")] from=None index=None page=(0, 50)"#]],
        );
        check(
            "index=NaN&limit=0&offset=-4",
            expect![[r#"[("index", "NaN"), ("limit", "0"), ("offset", "-4")] from=None index=None page=(0, 50)"#]],
        );
        check(
            "index=%2B1&limit=1e3",
            expect![[r#"[("index", "+1"), ("limit", "1e3")] from=None index=None page=(0, 50)"#]],
        );
        check(
            "limit=1000&offset=99999999999999999999",
            expect![[
                r#"[("limit", "1000"), ("offset", "99999999999999999999")] from=None index=None page=(9007199254740991, 100)"#
            ]],
        );
        check(
            "from=%ff",
            expect![[
                r#"ApiError { status: 400, code: "INVALID_QUERY", message: "the query is not valid UTF-8", retry_after: None }"#
            ]],
        );
        check("&&a&=b", expect![[r#"[("a", ""), ("", "b")] from=None index=None page=(0, 50)"#]]);
    }
}
