//! The edge: from a request to values that are known good. What doesn't parse never gets further.

use std::borrow::Cow;
use std::net::{IpAddr, SocketAddr};
use std::ops::Deref;
use std::time::Duration;

use arena_engine::{Administrator, Once};
use arena_model::InviteCode;
use axum::body::Body;
use axum::extract::{FromRequest, FromRequestParts, RawPathParams, Request};
use axum::http::request::Parts;
use axum::http::{Extensions, HeaderMap, StatusCode, Uri, header};
use bytes::Bytes;
use http_body_util::{BodyExt, LengthLimitError, Limited};
use hyper::body::Body as _;
use percent_encoding::percent_decode_str;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::arena::Arena;
use crate::connections::Line;
use crate::error::{ApiError, ApiResult};
use crate::fields::{Said, Terms};
use crate::identity::{Caller, Claim};
use crate::memory::{FREE, Held, busy};
use crate::rates::household;
use crate::settings::LimitSettings;

/// Where a request came from; the connection puts it in.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Peer(pub(crate) SocketAddr);

/// The head of a request, parsed and limited: all of it, where no body counts.
pub(crate) struct Get {
    pub(crate) uri: Uri,
    pub(crate) query: Query,
    pub(crate) headers: HeaderMap,
    /// Where it came from; unknown only in tests that call the router without a socket.
    pub(crate) address: Option<IpAddr>,
    /// The connection that it came by; unknown as the address is.
    pub(crate) line: Option<Line>,
    params: Vec<(String, String)>,
    pub(crate) terms: Terms,
}

/// A request that writes: its head and JSON object, parsed and limited.
pub(crate) struct Post {
    head: Get,
    /// Nothing if there was no body.
    object: Option<Value>,
    /// `from` in the body, in standalone mode.
    from: Option<String>,
    key: Option<String>,
    body: Bytes,
}

/// A request that uploads something: its head, parsed and limited, while its body has still to be read.
pub(crate) struct Upload {
    head: Get,
    key: Option<String>,
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

/// What every body may say in standalone mode. Many requests don't care who asks, or hear it from the query; a name that is none is refused all
/// the same.
#[derive(Deserialize)]
struct Asker {
    from: Option<String>,
}

/// Fields of bodies that name a session, whatever the route: a key is held against all of them.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Sessions {
    challenge_id: Option<String>,
    channel: Option<String>,
}

impl FromRequestParts<Arena> for Get {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, arena: &Arena) -> Result<Self, ApiError> {
        let address = admit(&parts.extensions, arena)?;
        let params = path_params(parts).await?;
        let line = Line::of(&parts.extensions);
        let query = Query::parse(&parts.uri)?;
        let (uri, headers) = (std::mem::take(&mut parts.uri), std::mem::take(&mut parts.headers));
        Ok(Get { uri, query, headers, address, line, params, terms: Terms::of(arena) })
    }
}

impl Get {
    /// A part of the path that the route leaves open.
    pub(crate) fn param(&self, name: &str) -> &str {
        self.params.iter().find(|(key, _)| key == name).map_or("", |(_, value)| value)
    }

    /// The query.
    ///
    /// # Errors
    /// If it can't be read as `T`.
    pub(crate) fn query<T: DeserializeOwned>(&self) -> ApiResult<T> {
        Said::Query(&self.query).read(self.terms)
    }

    /// Who asks about the channel or session of this name.
    ///
    /// # Errors
    /// In authentication mode, if a key came along that isn't for it; see [`Auth::identify`](crate::auth::Auth::identify).
    pub(crate) async fn caller(&self, arena: &Arena, name: &str) -> ApiResult<Caller<'_>> {
        let caller = match &arena.auth {
            None => Caller::named(self.query.identity()),
            Some(auth) => auth.identify(&arena.engine, Claim::new(&self.headers, &self.query).about([name])).await?,
        };
        introduce(arena, self.line.as_ref(), &caller).await?;
        Ok(caller)
    }

    /// False on a connection of the reserve whose caller hasn't shown a seat: nothing there waits.
    pub(crate) fn may_wait(&self) -> bool {
        !self.line.as_ref().is_some_and(|line| line.connection.is_brief())
    }
}

/// Notes on the connection that its caller holds a seat: such connections aren't closed to make room.
async fn introduce(arena: &Arena, line: Option<&Line>, caller: &Caller<'_>) -> ApiResult<()> {
    let Some(line) = line.filter(|line| !line.connection.is_known()) else { return Ok(()) };
    let holds_a_seat = match caller {
        Caller::Nobody => false,
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
        line.connection.know();
    }
    Ok(())
}

impl FromRequest<Arena> for Post {
    type Rejection = ApiError;

    async fn from_request(request: Request, arena: &Arena) -> Result<Self, ApiError> {
        let (mut parts, body) = request.into_parts();
        let head = Get::from_request_parts(&mut parts, arena).await?;
        let key = idempotency_key(&head.headers)?;
        let limits = &arena.settings.limits;
        let limit = BodyLimit { bytes: limits.body_bytes, setting: "limits.body_bytes", weight: JSON_WEIGHT };
        let body = read_body(body, limit, limits, head.line.as_ref()).await?;
        if parts.extensions.get::<Administrator>().is_none() {
            arena.rates.admit_body(head.address, body.len())?;
        }
        let object = parse_object(&body)?;
        let from = match object.as_ref().filter(|_| !head.terms.keys) {
            Some(object) => Said::Json(object).read::<Asker>(head.terms)?.from,
            None => None,
        };
        Ok(Post { head, object, from, key, body })
    }
}

impl Post {
    /// The body, where one is needed.
    ///
    /// # Errors
    /// If there is none, or it can't be read as `T`.
    pub(crate) fn body<T: DeserializeOwned>(&self) -> ApiResult<T> {
        self.find_body()?.ok_or_else(invalid_json)
    }

    /// The body, where it may be left out.
    ///
    /// # Errors
    /// If there is one that can't be read as `T`.
    pub(crate) fn find_body<T: DeserializeOwned>(&self) -> ApiResult<Option<T>> {
        self.object.as_ref().map(|object| Said::Json(object).read(self.terms)).transpose()
    }

    /// Who the request says that it is from, in standalone mode: `from` in the query, else in the body. Proves nothing.
    pub(crate) fn claimed(&self) -> Option<&str> {
        self.query.get("from").or(self.from.as_deref()).filter(|from| !is_nobody(from))
    }

    /// Who writes to the session that the query or the body names.
    ///
    /// # Errors
    /// In authentication mode, if a key came along that isn't for that session, see [`Auth::identify`](crate::auth::Auth::identify).
    pub(crate) async fn caller(&self, arena: &Arena) -> ApiResult<Caller<'_>> {
        let caller = match &arena.auth {
            None => Caller::named(self.claimed()),
            Some(auth) => {
                let named: Option<Sessions> = self.find_body()?;
                let named = named.iter().flat_map(|named| [&named.challenge_id, &named.channel]);
                let claim = Claim::new(&self.headers, &self.query).about(named.flatten().map(String::as_str));
                auth.identify(&arena.engine, claim).await?
            }
        };
        introduce(arena, self.line.as_ref(), &caller).await?;
        Ok(caller)
    }

    /// What makes the request happen only once, if it carries an `Idempotency-Key`. Keys of different scopes, such as
    /// [`Caller::scope`], are different keys.
    pub(crate) fn once(&self, scope: &str) -> Option<Once> {
        Some(once(&unversioned(self.uri.path()), scope, self.key.as_ref()?, &self.body))
    }

    /// [`Post::once`] for a write of `caller`. Spectators choose their names, so their addresses tell them apart as well.
    pub(crate) fn once_by(&self, caller: &Caller<'_>) -> Option<Once> {
        match caller {
            Caller::Named(name) if name.parse::<InviteCode>().is_err() => self.once(&stranger(name, self.address)),
            player => self.once(&player.scope()),
        }
    }

    /// [`Post::once`] for a write to `subject`, such as an invite, that needs no seat. In standalone mode `from` tells callers apart.
    pub(crate) fn once_about(&self, subject: &str) -> Option<Once> {
        self.once(&format!("about\0{subject}\0{}", self.name_of_stranger()))
    }

    /// [`Post::once`] for a request that creates a session. The stored answer holds the invites, so a caller is given it only with a key that
    /// others can't guess, from the same address and under the same name.
    ///
    /// # Errors
    /// If the key is too short.
    pub(crate) fn once_creating(&self) -> ApiResult<Option<Once>> {
        self.check_unguessable()?;
        Ok(self.once(&stranger(self.name_of_stranger(), self.address)))
    }

    /// Checks that others can't guess the `Idempotency-Key`, if there is one: the answer to a repetition holds something secret.
    ///
    /// # Errors
    /// If it is too short.
    pub(crate) fn check_unguessable(&self) -> ApiResult<()> {
        check_unguessable(self.key.as_deref())
    }

    /// `from` in standalone mode, where it tells apart callers without a seat.
    fn name_of_stranger(&self) -> &str {
        if self.terms.keys { "" } else { self.claimed().unwrap_or_default() }
    }
}

/// The scope of a caller without a seat. The zero characters keep it apart from every scope of players, and from those that earlier versions have
/// stored.
fn stranger(name: &str, address: Option<IpAddr>) -> String {
    let address = address.map(|address| household(address).to_string()).unwrap_or_default();
    format!("stranger\0{name}\0{address}")
}

/// Fewest characters of an `Idempotency-Key` whose stored answer holds something secret.
pub(crate) const UNGUESSABLE: usize = 16;

fn check_unguessable(key: Option<&str>) -> ApiResult<()> {
    if key.is_none_or(|key| key.len() >= UNGUESSABLE) {
        return Ok(());
    }
    let text = format!(
        "Idempotency-Key must be {UNGUESSABLE} to 255 characters here, since the answer is given to every caller that repeats it: send \
         a key that others can't guess, such as a UUID"
    );
    Err(ApiError::bad_request("INVALID_IDEMPOTENCY_KEY", text))
}

/// The same place under the one name of the interface.
fn unversioned(place: &str) -> String {
    place.replacen("/api/v1/", "/api/", 1)
}

/// What makes a request happen only once that came with this `Idempotency-Key`.
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
        let head = Get::from_request_parts(&mut parts, arena).await?;
        let key = idempotency_key(&head.headers)?;
        Ok(Upload { head, key, body })
    }
}

impl Upload {
    /// [`Post::check_unguessable`], before the body is read.
    ///
    /// # Errors
    /// If the key is too short.
    pub(crate) fn check_unguessable(&self) -> ApiResult<()> {
        check_unguessable(self.key.as_deref())
    }

    /// Its body, and what makes it happen only once: keys of different scopes are different keys. `limit` is in bytes, and
    /// `limited_by` the setting that says so.
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
        let body = read_body(self.body, limit, limits, self.head.line.as_ref()).await?;
        // What the query says belongs to what is asked for.
        let place = unversioned(&self.head.uri.to_string());
        let once = self.key.map(|key| once(&place, scope, &key, &body));
        Ok((body, once))
    }
}

/// Bytes that a byte of JSON takes at most while it is read: `[[],[],…` becomes a value of 32 bytes for each three.
pub(crate) const JSON_WEIGHT: usize = 16;

/// The size that a body may have.
pub(crate) struct BodyLimit<'s> {
    pub(crate) bytes: usize,
    /// The setting that says so.
    pub(crate) setting: &'s str,
    /// Bytes of memory that each byte counts for.
    pub(crate) weight: usize,
}

/// The whole body of a request. What is longer than a connection may always have takes room until the last handle to it is dropped.
///
/// # Errors
/// If it is larger, or takes longer to arrive, than the limits allow, or breaks off, or there is no room for it.
pub(crate) async fn read_body(
    body: Body,
    limit: BodyLimit<'_>,
    limits: &LimitSettings,
    line: Option<&Line>,
) -> Result<Bytes, ApiError> {
    let until = tokio::time::Instant::now() + Duration::from_millis(limits.request_ms);
    // The length that the head says; without one it may be the longest.
    let declared = body.size_hint().exact().and_then(|bytes| usize::try_from(bytes).ok()).unwrap_or(limit.bytes);
    let mut body = std::pin::pin!(Limited::new(body, limit.bytes));
    let mut pieces: Vec<u8> = Vec::with_capacity(declared.min(FREE));
    let mut room: Option<Held> = None;
    loop {
        let frame = match tokio::time::timeout_at(until, body.frame()).await {
            Ok(Some(Ok(frame))) => frame,
            Ok(None) => break,
            Ok(Some(Err(error))) if error.is::<LengthLimitError>() => {
                let text = format!("the request body is larger than {} bytes ({})", limit.bytes, limit.setting);
                return Err(ApiError::too_large("BODY_TOO_LARGE", text));
            }
            Ok(Some(Err(_))) => {
                return Err(ApiError::bad_request("BODY_INCOMPLETE", "the request body ended too soon"));
            }
            Err(_) => {
                let ms = limits.request_ms;
                let text = format!("the request took longer than {ms} ms to arrive (limits.request_ms)");
                return Err(ApiError::new(StatusCode::REQUEST_TIMEOUT, "REQUEST_TIMEOUT", text));
            }
        };
        let Ok(data) = frame.into_data() else { continue };
        let share = line.map(|line| line.connection.share()).filter(|_| room.is_none());
        if let Some(share) = share.filter(|_| pieces.len() + data.len() > FREE) {
            let wanted = share.hold(declared.min(limit.bytes));
            room = Some(tokio::time::timeout_at(until, wanted).await.map_err(|_| busy())?);
            pieces.reserve_exact(declared.min(limit.bytes).saturating_sub(pieces.len()));
        }
        pieces.extend_from_slice(&data);
    }
    // What is read of the body may take many times its bytes. That counts once all of it has come, so that nobody takes room by
    // announcing a body and sending it slowly.
    if let Some(line) = line.filter(|_| limit.weight > 1 && room.is_some()) {
        drop(room.take());
        let wanted = line.connection.share().hold(pieces.len().saturating_mul(limit.weight));
        room = Some(tokio::time::timeout_at(until, wanted).await.map_err(|_| busy())?);
    }
    let body = Bytes::from(pieces);
    Ok(match room {
        Some(room) => room.with(body),
        None => body,
    })
}

pub(crate) fn invalid_json() -> ApiError {
    ApiError::bad_request("INVALID_JSON", "Invalid JSON in request body")
}

/// True if a client names such a media type among those that it takes.
pub(crate) fn accepts(headers: &HeaderMap, kind: &str) -> bool {
    let mut accepted = headers.get_all(header::ACCEPT).iter().filter_map(|value| value.to_str().ok());
    accepted.any(|types| types.contains(kind))
}

/// Where a request came from, if the connection said so.
pub(crate) fn address_of(extensions: &Extensions) -> Option<IpAddr> {
    extensions.get::<Peer>().map(|Peer(address)| address.ip())
}

/// Lets a request in, if its address hasn't made too many; one of the administrator's has been counted at its door.
/// Returns the address.
pub(crate) fn admit(extensions: &Extensions, arena: &Arena) -> Result<Option<IpAddr>, ApiError> {
    let address = address_of(extensions);
    if let Some(address) = address.filter(|_| extensions.get::<Administrator>().is_none()) {
        arena.rates.admit(address)?;
    }
    Ok(address)
}

/// The parts of a path that the route leaves open, by name.
pub(crate) async fn path_params(parts: &mut Parts) -> Result<Vec<(String, String)>, ApiError> {
    let params = RawPathParams::from_request_parts(parts, &())
        .await
        .map_err(|_| ApiError::bad_request("INVALID_PATH", "the path isn't valid UTF-8"))?;
    Ok(params.iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect())
}

fn idempotency_key(headers: &HeaderMap) -> Result<Option<String>, ApiError> {
    let Some(value) = headers.get("idempotency-key") else { return Ok(None) };
    match value.to_str() {
        // `to_str` lets tabs through.
        Ok(key) if (1..=255).contains(&key.len()) && !key.contains('\t') => Ok(Some(key.to_owned())),
        _ => Err(ApiError::bad_request(
            "INVALID_IDEMPOTENCY_KEY",
            "Idempotency-Key must be 1 to 255 printable ASCII characters",
        )),
    }
}

/// `viewer` is how clients say that they are nobody.
fn is_nobody(from: &str) -> bool {
    from.is_empty() || from == "viewer"
}

/// The query of a request. The first of several equal names counts.
#[derive(Clone)]
pub(crate) struct Query(Vec<(String, String)>);

impl Query {
    pub(crate) fn parse(uri: &Uri) -> Result<Query, ApiError> {
        match uri.query() {
            Some(text) => Query::read(text),
            None => Ok(Query(Vec::new())),
        }
    }

    /// A query, or a form that was sent as one.
    pub(crate) fn read(text: &str) -> Result<Query, ApiError> {
        let decode = |text: &str| -> Result<String, ApiError> {
            let text = if text.contains('+') { Cow::Owned(text.replace('+', " ")) } else { Cow::Borrowed(text) };
            let text = percent_decode_str(&text).decode_utf8();
            Ok(text.map_err(|_| ApiError::bad_request("INVALID_QUERY", "the query isn't valid UTF-8"))?.into_owned())
        };
        let pairs = text.split('&').filter(|pair| !pair.is_empty());
        pairs
            .map(|pair| {
                let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
                Ok((decode(name)?, decode(value)?))
            })
            .collect::<Result<_, _>>()
            .map(Query)
    }

    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    /// All names and values, in order.
    pub(crate) fn pairs(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// Every value of that name.
    pub(crate) fn all(&self, name: &str) -> impl Iterator<Item = &str> {
        self.0.iter().filter(move |(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    fn identity(&self) -> Option<&str> {
        self.get("from").filter(|from| !is_nobody(from))
    }

    /// A whole number, or nothing if it isn't one: pages take junk for absent. `parse` would take a plus sign as well.
    pub(crate) fn number(&self, name: &str) -> Option<u64> {
        self.get(name).filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()))?.parse().ok()
    }
}

/// The JSON object in a body, if there is a body.
pub(crate) fn parse_object(body: &[u8]) -> ApiResult<Option<Value>> {
    if body.is_empty() {
        return Ok(None);
    }
    serde_json::from_slice(body).map(|object| Some(Value::Object(object))).map_err(|_| invalid_json())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    use axum::response::IntoResponse;
    use expect_test::{Expect, expect};
    use futures_util::{FutureExt, stream};

    use crate::connections::Connections;
    use crate::openapi::Paging;

    #[tokio::test]
    async fn a_body_takes_room_once_more_of_it_has_come_than_is_free_and_for_its_weight_when_it_is_whole() {
        const KIB: usize = 1024;
        let limits = LimitSettings::default();
        let connections = Arc::new(Connections::new(&limits, 9));
        let entered = connections.enter(std::net::Ipv4Addr::LOCALHOST.into()).expect("there is room");
        let line = Line { connection: Arc::clone(&entered.connection), is_direct: true };
        let held = || connections.memory().held() / KIB as u64;
        let (send, sent) = tokio::sync::mpsc::unbounded_channel::<Bytes>();
        let pieces = stream::unfold(sent, async |mut sent| {
            sent.recv().await.map(|piece| (Ok::<_, std::convert::Infallible>(piece), sent))
        });
        let limit = BodyLimit { bytes: 100 * KIB, setting: "limits.body_bytes", weight: JSON_WEIGHT };
        let mut read = Box::pin(read_body(Body::from_stream(pieces), limit, &limits, Some(&line)));
        let mut taken = Vec::new();
        for _ in 0..4 {
            send.send(Bytes::from(vec![b' '; 16 * KIB])).expect("it is read");
            assert!((&mut read).now_or_never().is_none(), "the body goes on");
            taken.push(held());
        }
        // What is free isn't counted; then the body may become as long as any.
        assert_eq!(taken, [0, 0, 100, 100]);
        drop(send);
        let body = read.await.expect("a body");
        assert_eq!((body.len(), held()), (64 * KIB, (64 * JSON_WEIGHT) as u64));
        let part = body.slice(1..2);
        drop(body);
        assert_eq!(held(), (64 * JSON_WEIGHT) as u64, "as long as any of it is in use");
        drop(part);
        assert_eq!(held(), 0);
    }

    #[tokio::test]
    async fn a_body_that_finds_no_room_is_refused_when_its_time_is_over() {
        let limits = LimitSettings { waiting_bytes: 64 * 1024, request_ms: 50, ..LimitSettings::default() };
        let connections = Arc::new(Connections::new(&limits, 9));
        let entered = connections.enter(std::net::Ipv4Addr::LOCALHOST.into()).expect("there is room");
        let line = Line { connection: Arc::clone(&entered.connection), is_direct: true };
        let all = line.connection.share().try_hold(64 * 1024).expect("there is room");
        let read = async || {
            let limit = BodyLimit { bytes: 1024 * 1024, setting: "limits.body_bytes", weight: 1 };
            read_body(Body::from(vec![b' '; FREE + 1]), limit, &limits, Some(&line)).await
        };
        let refused = read().await.expect_err("there is no room");
        assert_eq!(refused.into_response().status(), StatusCode::SERVICE_UNAVAILABLE);
        drop(all);
        assert_eq!(read().await.expect("there is room").len(), FREE + 1);
    }

    fn check(query: &str, expected: Expect) {
        let uri: Uri = format!("/x?{query}").parse().expect("a URI");
        let text = match Query::parse(&uri) {
            Ok(query) => format!(
                "{:?} from={:?} index={:?} page={:?}",
                query.0,
                query.identity(),
                query.number("index"),
                Said::Query(&query)
                    .read::<Paging>(Terms { keys: false, content_bytes: 0 })
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
                r#"ApiError { status: 400, code: "INVALID_QUERY", message: "the query isn't valid UTF-8", retry_after: None }"#
            ]],
        );
        check("&&a&=b", expect![[r#"[("a", ""), ("", "b")] from=None index=None page=(0, 50)"#]]);
    }
}
