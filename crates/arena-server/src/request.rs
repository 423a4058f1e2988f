//! The edge: from a request to values that are known good. What doesn't parse never gets further.

use std::borrow::Cow;
use std::net::{IpAddr, SocketAddr};
use std::ops::RangeInclusive;
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
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

use crate::arena::Arena;
use crate::connections::Line;
use crate::error::{ApiError, ApiResult};
use crate::identity::{Caller, Claim, NAMES_OF_SESSIONS};
use crate::memory::{FREE, Held, busy};
use crate::rates::household;
use crate::settings::LimitSettings;

/// Where a request came from; the connection puts it in.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Peer(pub(crate) SocketAddr);

/// A request without a body that counts: its query, parsed and limited.
pub(crate) struct Get {
    pub(crate) uri: Uri,
    pub(crate) query: Query,
    pub(crate) headers: HeaderMap,
    /// Where it came from; unknown only in tests that call the router without a socket.
    pub(crate) address: Option<IpAddr>,
    /// The connection that it came by; unknown as the address is.
    pub(crate) line: Option<Line>,
    params: Vec<(String, String)>,
}

/// A request that writes: query and JSON object, parsed and limited.
pub(crate) struct Post {
    query: Query,
    pub(crate) headers: HeaderMap,
    /// Where it came from; unknown only in tests that call the router without a socket.
    pub(crate) address: Option<IpAddr>,
    line: Option<Line>,
    /// Nothing if there was no body.
    fields: Option<Fields>,
    path: String,
    params: Vec<(String, String)>,
    key: Option<String>,
    body: Bytes,
}

impl FromRequestParts<Arena> for Get {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, arena: &Arena) -> Result<Self, ApiError> {
        let address = admit(&parts.extensions, arena)?;
        let params = path_params(parts).await?;
        let line = Line::of(&parts.extensions);
        let query = Query::parse(&parts.uri)?;
        let (uri, headers) = (std::mem::take(&mut parts.uri), std::mem::take(&mut parts.headers));
        Ok(Get { uri, query, headers, address, line, params })
    }
}

impl Get {
    pub(crate) fn param(&self, name: &str) -> &str {
        find_param(&self.params, name)
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
        let address = admit(&parts.extensions, arena)?;
        let params = path_params(&mut parts).await?;
        let query = Query::parse(&parts.uri)?;
        let key = idempotency_key(&parts.headers)?;
        let limits = &arena.settings.limits;
        let line = Line::of(&parts.extensions);
        let limit = BodyLimit { bytes: limits.body_bytes, setting: "limits.body_bytes", weight: JSON_WEIGHT };
        let body = read_body(body, limit, limits, line.as_ref()).await?;
        if parts.extensions.get::<Administrator>().is_none() {
            arena.rates.admit_body(address, body.len())?;
        }
        let fields = Fields::parse(&body)?;
        if let (Some(fields), false) = (&fields, arena.asks_for_keys()) {
            // Many requests don't care who asks, or hear it from the query. A name that is none is refused all the same.
            fields.find_text("from")?;
        }
        let path = parts.uri.path().replacen("/api/v1/", "/api/", 1);
        Ok(Post { query, headers: parts.headers, address, line, fields, path, params, key, body })
    }
}

impl Post {
    pub(crate) fn param(&self, name: &str) -> &str {
        find_param(&self.params, name)
    }

    /// The body, where one is needed.
    pub(crate) fn fields(&self) -> Result<&Fields, ApiError> {
        self.fields.as_ref().ok_or_else(invalid_json)
    }

    /// The body, where it may be left out.
    pub(crate) fn find_fields(&self) -> Option<&Fields> {
        self.fields.as_ref()
    }

    /// Who the request says that it is from: `from` in the query, else in the body. Proves nothing.
    ///
    /// # Errors
    /// If it isn't a text.
    pub(crate) fn claimed(&self) -> Result<Option<&str>, ApiError> {
        match self.query.identity() {
            Some(from) => Ok(Some(from)),
            None if self.query.get("from").is_some() => Ok(None),
            None => match &self.fields {
                Some(fields) => Ok(fields.find_text("from")?.filter(|from| !is_nobody(from))),
                None => Ok(None),
            },
        }
    }

    /// Who writes to the session that the query or the body names.
    ///
    /// # Errors
    /// If `from` isn't a text; in authentication mode, if a key came along that isn't for that session, see
    /// [`Auth::identify`](crate::auth::Auth::identify).
    pub(crate) async fn caller(&self, arena: &Arena) -> ApiResult<Caller<'_>> {
        let Some(auth) = &arena.auth else {
            let caller = Caller::named(self.claimed()?);
            introduce(arena, self.line.as_ref(), &caller).await?;
            return Ok(caller);
        };
        let mut claim = Claim::new(&self.headers, &self.query);
        if let Some(fields) = &self.fields {
            for name in NAMES_OF_SESSIONS {
                claim = claim.about(fields.find_text(name)?);
            }
        }
        let caller = auth.identify(&arena.engine, claim).await?;
        introduce(arena, self.line.as_ref(), &caller).await?;
        Ok(caller)
    }

    /// What makes the request happen only once, if it carries an `Idempotency-Key`. Keys of different scopes, such as
    /// [`Caller::scope`], are different keys.
    pub(crate) fn once(&self, scope: &str) -> Option<Once> {
        Some(once(&self.path, scope, self.key.as_ref()?, &self.body))
    }

    /// [`Post::once`] for a write of `caller`. Spectators choose their names, so their addresses tell them apart as well.
    pub(crate) fn once_by(&self, caller: &Caller<'_>) -> Option<Once> {
        match caller {
            Caller::Named(name) if name.parse::<InviteCode>().is_err() => self.once(&stranger(name, self.address)),
            player => self.once(&player.scope()),
        }
    }

    /// [`Post::once`] for a write to `subject`, such as an invite, that needs no seat. In standalone mode `from` tells callers apart.
    ///
    /// # Errors
    /// If `from` matters and isn't a text.
    pub(crate) fn once_about(&self, arena: &Arena, subject: &str) -> ApiResult<Option<Once>> {
        let from = self.name_of_stranger(arena)?;
        Ok(self.once(&format!("about\0{subject}\0{from}")))
    }

    /// [`Post::once`] for a request that creates a session. The stored answer holds the invites, so a caller is given it only with a key that
    /// others can't guess, from the same address and under the same name.
    ///
    /// # Errors
    /// If the key is too short, or `from` matters and isn't a text.
    pub(crate) fn once_creating(&self, arena: &Arena) -> ApiResult<Option<Once>> {
        self.check_unguessable()?;
        let from = self.name_of_stranger(arena)?;
        Ok(self.once(&stranger(from, self.address)))
    }

    /// Checks that others can't guess the `Idempotency-Key`, if there is one: the answer to a repetition holds something secret.
    ///
    /// # Errors
    /// If it is too short.
    pub(crate) fn check_unguessable(&self) -> ApiResult<()> {
        check_unguessable(self.key.as_deref())
    }

    /// `from` in standalone mode, where it tells apart callers without a seat.
    fn name_of_stranger(&self, arena: &Arena) -> ApiResult<&str> {
        match &arena.auth {
            None if self.key.is_some() => Ok(self.claimed()?.unwrap_or_default()),
            _ => Ok(""),
        }
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

/// What makes a request happen only once that came with this `Idempotency-Key`.
fn once(path: &str, scope: &str, key: &str, body: &[u8]) -> Once {
    let mut hash = Sha256::new();
    for part in [path, scope, key] {
        hash.update((part.len() as u64).to_le_bytes());
        hash.update(part);
    }
    Once { key: hash.finalize().into(), request: Sha256::digest(body).into() }
}

/// A request that uploads something: its head, parsed and limited, while its body has still to be read.
pub(crate) struct Upload {
    pub(crate) query: Query,
    pub(crate) headers: HeaderMap,
    /// Where it came from; unknown only in tests that call the router without a socket.
    pub(crate) address: Option<IpAddr>,
    path_and_query: String,
    key: Option<String>,
    line: Option<Line>,
    body: Body,
}

impl FromRequest<Arena> for Upload {
    type Rejection = ApiError;

    async fn from_request(request: Request, arena: &Arena) -> Result<Self, ApiError> {
        let (parts, body) = request.into_parts();
        let address = admit(&parts.extensions, arena)?;
        let query = Query::parse(&parts.uri)?;
        let key = idempotency_key(&parts.headers)?;
        // What the query says belongs to what is asked for.
        let path_and_query = parts.uri.to_string().replacen("/api/v1/", "/api/", 1);
        let line = Line::of(&parts.extensions);
        Ok(Upload { query, headers: parts.headers, address, path_and_query, key, line, body })
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
        let body = read_body(self.body, limit, limits, self.line.as_ref()).await?;
        let once = self.key.map(|key| once(&self.path_and_query, scope, &key, &body));
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

fn invalid_json() -> ApiError {
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

fn find_param<'p>(params: &'p [(String, String)], name: &str) -> &'p str {
    params.iter().find(|(key, _)| key == name).map_or("", |(_, value)| value)
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

/// Most items that are passed over: a number that programs in every language can hold.
pub(crate) const MOST_OFFSET: u64 = (1 << 53) - 1;

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

    /// A whole number, or nothing if it isn't one: paging and indexes take junk for absent.
    pub(crate) fn number(&self, name: &str) -> Option<u64> {
        self.digits(name)?.parse().ok()
    }

    /// The digits of a whole number. `parse` would take a plus sign as well.
    fn digits(&self, name: &str) -> Option<&str> {
        self.get(name).filter(|text| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()))
    }

    /// `offset`; one that is too large for a number is behind the end of every list, too.
    fn offset(&self) -> u64 {
        let Some(digits) = self.digits("offset") else { return 0 };
        digits.parse().map_or(MOST_OFFSET, |offset: u64| offset.min(MOST_OFFSET))
    }

    /// `offset` and `limit` of a page: 0 and junk are the default, more than 100 is 100.
    pub(crate) fn page(&self, default_limit: usize) -> (u64, usize) {
        let (offset, limit) = self.window();
        (offset, limit.map_or(default_limit, |limit| limit.min(100) as usize))
    }

    /// `offset` and `limit` of a part of a list that is whole unless a limit is given; 0 and junk are none.
    pub(crate) fn window(&self) -> (u64, Option<u64>) {
        (self.offset(), self.number("limit").filter(|limit| *limit > 0))
    }
}

/// The JSON object in a body. Unknown fields are ignored.
pub(crate) struct Fields(Map<String, Value>);

impl From<Map<String, Value>> for Fields {
    /// The fields of an object within another.
    fn from(object: Map<String, Value>) -> Fields {
        Fields(object)
    }
}

impl From<&Query> for Fields {
    /// The fields of a form, all of them texts. The first of several equal names counts.
    fn from(form: &Query) -> Fields {
        let mut fields = Map::new();
        for (name, value) in form.pairs() {
            fields.entry(name).or_insert_with(|| value.into());
        }
        Fields(fields)
    }
}

impl Fields {
    /// The object in a body that has to be there.
    pub(crate) fn of(body: &[u8]) -> ApiResult<Fields> {
        Fields::parse(body)?.ok_or_else(invalid_json)
    }

    fn parse(body: &[u8]) -> Result<Option<Fields>, ApiError> {
        if body.is_empty() {
            return Ok(None);
        }
        serde_json::from_slice(body).map(|fields| Some(Fields(fields))).map_err(|_| invalid_json())
    }

    /// A text that has to be there.
    pub(crate) fn text(&self, name: &str) -> Result<&str, ApiError> {
        self.find_text(name)?.ok_or_else(|| ApiError::missing(name))
    }

    /// A text that has to be there and isn't empty: what names something.
    pub(crate) fn filled(&self, name: &str) -> Result<&str, ApiError> {
        self.find_text(name)?.filter(|text| !text.is_empty()).ok_or_else(|| ApiError::missing(name))
    }

    /// A text that may be left out, but isn't null.
    pub(crate) fn find_text(&self, name: &str) -> Result<Option<&str>, ApiError> {
        match self.0.get(name) {
            None => Ok(None),
            Some(Value::String(text)) if text.contains('\0') => {
                Err(ApiError::bad_request("INVALID_FIELD", format!("{name} must not hold the character U+0000")))
            }
            Some(Value::String(text)) => Ok(Some(text)),
            Some(_) => Err(ApiError::bad_request("INVALID_FIELD", format!("{name} must be a string"))),
        }
    }

    /// Whether there is such a field, whatever it holds.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    /// A whole number that has to be there.
    pub(crate) fn integer(&self, name: &str) -> ApiResult<i64> {
        let value = self.0.get(name).ok_or_else(|| ApiError::missing(name))?;
        let refuse = || ApiError::bad_request("INVALID_FIELD", format!("{name} must be a whole number"));
        value.as_i64().ok_or_else(refuse)
    }

    /// True or false, which has to be there.
    pub(crate) fn boolean(&self, name: &str) -> ApiResult<bool> {
        let value = self.0.get(name).ok_or_else(|| ApiError::missing(name))?;
        let refuse = || ApiError::bad_request("INVALID_FIELD", format!("{name} must be true or false"));
        value.as_bool().ok_or_else(refuse)
    }

    /// A whole number in a range, which may be left out.
    pub(crate) fn find_number(&self, name: &str, range: RangeInclusive<u64>) -> ApiResult<Option<u64>> {
        let Some(value) = self.0.get(name) else { return Ok(None) };
        let number = value.as_u64().filter(|number| range.contains(number));
        let (least, most) = range.into_inner();
        let text = || format!("{name} must be a whole number from {least} to {most}");
        number.map(Some).ok_or_else(|| ApiError::bad_request("INVALID_FIELD", text()))
    }

    /// True or false, which may be left out.
    pub(crate) fn find_boolean(&self, name: &str) -> ApiResult<Option<bool>> {
        if self.has(name) { self.boolean(name).map(Some) } else { Ok(None) }
    }

    /// A list of texts that has to be there.
    pub(crate) fn texts(&self, name: &str) -> ApiResult<Vec<&str>> {
        let value = self.0.get(name).ok_or_else(|| ApiError::missing(name))?;
        let texts = value.as_array().and_then(|items| items.iter().map(Value::as_str).collect());
        texts.ok_or_else(|| ApiError::bad_request("INVALID_FIELD", format!("{name} must be a list of strings")))
    }

    /// What a field holds, if it is there.
    pub(crate) fn find(&self, name: &str) -> Option<&Value> {
        self.0.get(name)
    }

    /// An object that may be left out.
    pub(crate) fn find_object(&self, name: &str) -> Result<Option<&Map<String, Value>>, ApiError> {
        match self.0.get(name) {
            None => Ok(None),
            Some(Value::Object(object)) => Ok(Some(object)),
            Some(_) => Err(ApiError::bad_request("INVALID_FIELD", format!("{name} must be an object"))),
        }
    }

    /// The content of a message.
    pub(crate) fn content(&self, limit: usize) -> Result<&str, ApiError> {
        let content = self.text("content")?;
        if content.len() > limit {
            let text = format!("content is longer than {limit} bytes (limits.message_bytes)");
            return Err(ApiError::too_large("MESSAGE_TOO_LARGE", text));
        }
        Ok(content)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    use axum::response::IntoResponse;
    use expect_test::{Expect, expect};
    use futures_util::{FutureExt, stream};

    use crate::connections::Connections;

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
                query.page(50)
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
