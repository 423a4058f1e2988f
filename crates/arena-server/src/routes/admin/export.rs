//! `GET /api/admin/export`: all data as JSON lines, streamed.
//!
//! Each line is an object with `kind` as its first field: a `user`, a `session` with its private data, or a `message`
//! of the preceding session. No other route returns the private data of all players.

use arena_engine::{EngineError, Export, Exported};
use arena_model::{reveal_message, reveal_session};
use axum::body::Body;
use axum::extract::State;
use bytes::Bytes;
use futures_util::stream;

use super::ByAdministrator;
use crate::answer::{json_lines, to_text};
use crate::arena::Arena;
use crate::error::ApiResult;
use crate::request::Get;

/// Size in bytes at which a piece of the response is sent.
const WRITE_BYTES: usize = 64 * 1024;

/// Exports all data as JSON lines.
///
/// Each line is an object with a `kind`: a `user`, a `session` with its private data, or a `message` of the preceding
/// session.
#[utoipa::path(get, path = "/api/admin/export", tag = "administration", security(("administratorToken" = [])),
    responses((status = 200, description = "JSON lines, or plain bytes for clients that don't accept JSON lines.",
        content((String = "application/x-ndjson"), (String = "application/octet-stream")))))]
pub(super) async fn export(State(arena): State<Arena>, by: ByAdministrator, request: Get) -> ApiResult {
    let export = arena.engine.export(by.0).await?;
    let pages = stream::try_unfold(export, |mut export| async move {
        let page = next_page(&mut export).await.inspect_err(|error| {
            tracing::error!(%error, "an export was cut off because the store cannot be read: {error}");
        })?;
        Ok::<_, EngineError>(page.map(|page| (page, export)))
    });
    Ok(json_lines(&request.headers, Body::from_stream(pages)))
}

/// Reads the next lines of the export; `None` after the last.
async fn next_page(export: &mut Export) -> Result<Option<Bytes>, EngineError> {
    let mut text = String::new();
    while text.len() < WRITE_BYTES {
        let things = export.read().await?;
        if things.is_empty() {
            break;
        }
        for thing in things {
            match thing {
                Exported::User(profile) => write_line(&mut text, "user", &to_text(&profile)),
                Exported::Session(session) => write_line(&mut text, "session", &to_text(&reveal_session(&session))),
                Exported::Message(message) => write_line(&mut text, "message", &to_text(&reveal_message(&message))),
            }
        }
    }
    Ok((!text.is_empty()).then(|| text.into()))
}

/// Writes a non-empty JSON object with `kind` as its first field.
fn write_line(text: &mut String, kind: &str, object: &str) {
    text.push_str(r#"{"kind":""#);
    text.push_str(kind);
    text.push_str(r#"","#);
    text.push_str(object.strip_prefix('{').unwrap_or(object));
    text.push('\n');
}
