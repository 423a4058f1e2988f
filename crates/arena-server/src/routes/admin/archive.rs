//! `POST /api/admin/archive`, `/api/admin/restore`: moves the messages of ended sessions out of the store and back.

use arena_engine::ArchivedCount;
use arena_model::SessionId;
use axum::extract::State;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::ByAdministrator;
use crate::answer::{json, to_text};
use crate::arena::Arena;
use crate::error::{ApiError, ApiResult};
use crate::request::Post;

/// The sessions that moved to the archive.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct Archived {
    sessions: u64,
    /// The number of their messages, with the inputs that only records contain.
    messages: u64,
    /// The number of sessions that stay in the store: they are too long, damaged, or have changed meanwhile.
    left_out: u64,
}

/// The number of sessions that moved back from the archive.
#[derive(Serialize, ToSchema)]
struct Restored {
    restored: u64,
}

/// The maximum age of sessions in a request.
const MOST_DAYS: u32 = 36_500;

/// The sessions to archive.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(example = json!({ "olderThanDays": 90 }))]
struct ArchiveRequest {
    /// The age of the sessions: the number of days since their end.
    #[schema(maximum = 36500)]
    older_than_days: u32,
}

/// The session to restore; all without it.
#[derive(Deserialize, ToSchema)]
#[schema(example = json!({ "session": "018f6b2e-0000-7000-8000-00000000abcd" }))]
struct RestoreRequest {
    session: Option<String>,
}

/// Moves the messages of sessions that ended some days ago to the archive. All readers still get them.
#[utoipa::path(post, path = "/api/admin/archive", tag = "administration", security(("administratorToken" = [])),
    request_body = ArchiveRequest,
    responses((status = 200, body = Archived, description = "The number of archived sessions, and of those that stay in the store."),
        (status = 409, description = "`NO_ARCHIVE`: nodes that share a database need `retention.folder`."),
        (status = 503, description = "`ARCHIVE_UNAVAILABLE`: a file can't be written.")))]
pub(super) async fn archive(State(arena): State<Arena>, by: ByAdministrator, request: Post) -> ApiResult {
    let ArchiveRequest { older_than_days } = request.body()?;
    if older_than_days > MOST_DAYS {
        let text = format!("olderThanDays is more than {MOST_DAYS}, which are a hundred years");
        return Err(ApiError::bad_request("INVALID_FIELD", text));
    }
    let ArchivedCount { sessions, messages, left_out } = arena.archive(Some(by.0), older_than_days).await?;
    Ok(json(to_text(&Archived { sessions, messages, left_out })))
}

/// Moves the messages of an archived session, or of all, back into the store.
#[utoipa::path(post, path = "/api/admin/restore", tag = "administration", security(("administratorToken" = [])),
    request_body = RestoreRequest,
    responses((status = 200, body = Restored, description = "The number of restored sessions; 0 if the session wasn't archived."),
        (status = 404, description = "`CHALLENGE_NOT_FOUND`: the session doesn't exist."),
        (status = 409, description = "`NO_ARCHIVE`: nodes that share a database need `retention.folder`."),
        (status = 503, description = "`ARCHIVE_UNAVAILABLE`: a file can't be read.")))]
pub(super) async fn restore(State(arena): State<Arena>, by: ByAdministrator, request: Post) -> ApiResult {
    let RestoreRequest { session } = request.body()?;
    let restored = match session {
        Some(session) => {
            let id: SessionId = session.parse().map_err(|_| ApiError::challenge_not_found())?;
            arena.engine.find_session(id).await?.ok_or_else(ApiError::challenge_not_found)?;
            u64::from(arena.engine.restore(by.0, id).await?)
        }
        None => arena.engine.restore_all(by.0).await?,
    };
    Ok(json(to_text(&Restored { restored })))
}
