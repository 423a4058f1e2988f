//! `GET /api/sessions/{id}/record`: the record of a session as its reader may see it. `GET /.well-known/arena.json`:
//! the arena's public keys.

use arena_model::{Phase, Session, SessionId, Viewer};
use arena_record::{KeyHandover, RecordPublicKey, RecordViewer};
use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderValue, StatusCode, header};
use serde::Serialize;
use serde_json::json;
use utoipa::ToSchema;

use crate::answer::{json, json_lines, to_text};
use crate::arena::Arena;
use crate::auth::administrator_at;
use crate::error::{ApiError, ApiResult};
use crate::limits::{AddressBudget, memory};
use crate::openapi::Sender;
use crate::records::RELEASE;
use crate::request::Get;

/// The memory that a record takes while it is written, for each byte of its messages.
const WRITING_WEIGHT: usize = 8;

/// The public keys of an arena, for verifiers.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = ArenaKeys)]
struct ArenaKeys {
    /// The version of the program.
    #[schema(example = "0.1.0")]
    release: &'static str,
    /// The public key that seals new records: Ed25519, in hexadecimal digits.
    record_key: String,
    /// The changes of the record key and of the log key that an earlier release made, each oldest first.
    handovers: Vec<PublishedHandover>,
    /// The log; absent if the server keeps none.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    log: Option<LogKeys>,
}

/// The name and the keys of the log.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct LogKeys {
    /// The name in checkpoints.
    #[schema(example = "arena.example/log")]
    origin: String,
    /// The public key that signs checkpoints: Ed25519, in hexadecimal digits.
    key: String,
    /// The same key with the origin, in the form of signed notes.
    verifier_key: String,
    /// The number of leaves that the last checkpoint covers.
    size: u64,
    /// The record keys of the log's leaves, oldest first.
    record_keys: Vec<LoggedKey>,
}

/// A change of a key, made by an earlier release. Both keys sign the text `arena key handover`, the kind, the old key,
/// the new key and the time, each followed by a line break.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = KeyHandover)]
struct PublishedHandover {
    /// `record` or `log`.
    kind: String,
    /// The replaced public key: Ed25519, in hexadecimal digits.
    old: String,
    /// The new public key.
    new: String,
    /// The time of the change, in milliseconds since 1970.
    at: i64,
    /// The signature by the old key, in hexadecimal digits.
    signed_by_old: String,
    /// The signature by the new key.
    signed_by_new: String,
}

impl From<&KeyHandover> for PublishedHandover {
    fn from(handover: &KeyHandover) -> PublishedHandover {
        PublishedHandover {
            kind: handover.kind.to_string(),
            old: handover.old.to_string(),
            new: handover.new.to_string(),
            at: handover.at.0,
            signed_by_old: handover.signed_by_old.to_string(),
            signed_by_new: handover.signed_by_new.to_string(),
        }
    }
}

/// A record key of the log.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct LoggedKey {
    /// The number of the leaf with the key. The key seals the records of later leaves, up to the next key.
    leaf: u64,
    /// The public key: Ed25519, in hexadecimal digits.
    record_key: String,
}

/// Returns the arena's public keys.
#[utoipa::path(get, path = "/.well-known/arena.json", tag = "records",
    responses((status = 200, body = ArenaKeys, description = "The keys that sign records and checkpoints.")))]
pub(crate) async fn find_keys(State(arena): State<Arena>, _request: Get) -> ApiResult {
    let records = &arena.records;
    let log = arena.settings.records.log.then(|| {
        let log = records.published();
        let key = |(leaf, key): &(u64, RecordPublicKey)| LoggedKey { leaf: *leaf, record_key: key.to_string() };
        LogKeys {
            origin: records.origin.clone(),
            key: records.note_key().public_key().to_string(),
            verifier_key: records.note_key().to_string(),
            size: log.size(),
            record_keys: log.keys.iter().map(key).collect(),
        }
    });
    let handovers = records.handovers().iter().map(PublishedHandover::from).collect();
    let record_key = records.record_key().to_string();
    Ok(json(to_text(&ArenaKeys { release: RELEASE, record_key, handovers, log })))
}

/// Returns the record of a session.
///
/// A record is a file of JSON lines: a header, one line for each event, the end, the private contents that the caller
/// may see, a signature, and the proof that the log contains the end. Contents that the caller may not see are
/// commitments. Before the end of the session, only its players and the administrator get its record. The
/// administrator's token as bearer token gives all contents.
#[utoipa::path(get, path = "/api/sessions/{id}/record", tag = "records", security(("sessionKey" = [])),
    params(("id" = String, Path, description = "The session's id.", example = "018f6b2e-0000-7000-8000-00000000abcd"), Sender),
    responses((status = 200, description = "JSON lines, or plain bytes for clients that don't accept JSON lines.",
            content((String = "application/x-ndjson"), (String = "application/octet-stream"))),
        (status = 403, description = "`SESSION_NOT_ENDED`: the session hasn't ended, and the caller isn't one of its players."),
        (status = 404, description = "`CHALLENGE_NOT_FOUND`: the session doesn't exist."),
        (status = 422, description = "`RECORD_TOO_LONG`: the session's messages have more than 128 MiB."),
        (status = 500, description = "`SESSION_DAMAGED`: the session's stored data can't be read."),
        (status = 503, description = "`LOG_NOT_READY`: the server is still reading its log.")))]
pub(crate) async fn find_record(State(arena): State<Arena>, request: Get) -> ApiResult {
    let text = request.param("id").to_owned();
    let token = arena.settings.admin_token.as_ref();
    let is_administrator = token.is_some_and(|token| token.authorizes(&request.headers));
    let caller = if is_administrator { None } else { Some(request.caller(&arena, &text).await?) };
    let id: SessionId = text.parse().map_err(|_| ApiError::challenge_not_found())?;
    let session = arena.engine.find_session(id).await?.ok_or_else(ApiError::challenge_not_found)?;
    let viewer = match caller {
        None => {
            let by = administrator_at(request.address);
            arena.engine.record_action(by, "record", json!({ "session": id.to_string() })).await?;
            RecordViewer::Everything
        }
        Some(caller) => {
            let viewer = caller.viewer();
            if !has_ended(&session) && !is_player(&session, viewer) {
                let text = "the session has not ended, so only its players get its record";
                return Err(ApiError::new(StatusCode::FORBIDDEN, "SESSION_NOT_ENDED", text));
            }
            RecordViewer::Viewer(viewer, arena.settings.sessions.reveal_chat)
        }
    };
    arena.records.follow_log(&arena).await;
    let (limits, address) = (arena.clone(), request.address);
    let budget = request.request_connection.as_ref().map(|request_connection| request_connection.budget.clone());
    let admit = move |bytes: usize| {
        limits.ledger.admit_read(address)?;
        let held =
            |budget: &AddressBudget| budget.try_hold(bytes.saturating_mul(WRITING_WEIGHT)).ok_or_else(memory::busy);
        budget.as_ref().map(held).transpose()
    };
    arena.ledger.admit_read(address)?;
    let record = arena
        .records
        .write(&arena.engine, id, viewer, address, admit)
        .await?
        .ok_or_else(ApiError::challenge_not_found)?;
    arena.ledger.charge_read(address, record.text_bytes)?;
    let mut response = json_lines(&request.headers, Body::from(record.lines));
    let name = HeaderValue::from_str(&format!("attachment; filename=\"{id}.record.jsonl\""));
    response.headers_mut().insert(header::CONTENT_DISPOSITION, name.expect("an id has header characters only"));
    Ok(response)
}

fn has_ended(session: &Session) -> bool {
    matches!(session.phase, Phase::Ended { .. })
}

fn is_player(session: &Session, viewer: Viewer) -> bool {
    matches!(viewer, Viewer::Player(invite) if session.seat_of(invite).is_some())
}
