//! `/log/…`: the public log of all sessions as files: the checkpoint, tiles and proofs.
//!
//! The paths are those of tlog-tiles (C2SP). Tiles never change, so caches may keep them forever.

use arena_model::SessionId;
use arena_record::log::Tile;
use axum::extract::State;
use axum::http::{HeaderValue, header};
use axum::response::Response;
use serde::Deserialize;

use crate::answer::{json, to_text, with_kind};
use crate::arena::Arena;
use crate::error::{ApiError, ApiResult};
use crate::records::starting;
use crate::request::Get;

/// The cache lifetime of a checkpoint: the sequencer makes at most two in a second.
const FRESH: HeaderValue = HeaderValue::from_static("public, max-age=1");

/// The cache lifetime of a tile, which never changes.
const FOREVER: HeaderValue = HeaderValue::from_static("public, max-age=31536000, immutable");

/// The kind of a session's leaf.
#[derive(Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
struct ProofQuery {
    /// The leaf to prove: `created`, `ended`, `removed` or `excluded`. Default: `ended`.
    #[param(example = "ended")]
    kind: Option<String>,
}

/// The kinds of leaves that belong to a session.
const KINDS: [&str; 4] = ["created", "ended", "removed", "excluded"];

/// Reads the leaves of other nodes, and checks that the server has read the log. Until then, a missing tile or leaf may
/// be in the log.
async fn check_ready(arena: &Arena) -> ApiResult<()> {
    arena.records.follow_log(arena).await;
    if arena.records.published().checkpoint.is_empty() { Err(starting()) } else { Ok(()) }
}

fn cached(mut response: Response, lifetime: HeaderValue) -> Response {
    response.headers_mut().insert(header::CACHE_CONTROL, lifetime);
    response
}

/// Returns the log's last checkpoint: its size and root hash, signed.
#[utoipa::path(get, path = "/log/checkpoint", tag = "records",
    responses((status = 200, body = String, content_type = "text/plain", description = "A signed note in the format tlog-checkpoint."),
        (status = 503, description = "`LOG_NOT_READY`: the server is still reading its log.")))]
pub(crate) async fn find_checkpoint(State(arena): State<Arena>, _request: Get) -> ApiResult {
    check_ready(&arena).await?;
    let checkpoint = arena.records.published().checkpoint.clone();
    Ok(cached(with_kind("text/plain; charset=utf-8", checkpoint), FRESH))
}

/// Returns a tile of the log: hashes, or leaves.
///
/// The path is `L/N` for the hashes of level L, or `entries/N` for leaves. N is a number in groups of three digits,
/// such as `x001/067`. A tile has 256 items; `.p/W` at the end asks for the first W items.
#[utoipa::path(get, path = "/log/tile/{*path}", tag = "records",
    params(("path" = String, Path, description = "The tile's level and number.", example = "entries/000.p/1")),
    responses((status = 200, body = String, content_type = "application/octet-stream", description = "Hashes of 32 bytes, or leaves, each after its length in two bytes."),
        (status = 404, description = "`TILE_NOT_FOUND`: the log doesn't have this tile."),
        (status = 503, description = "
            `STORE_UNAVAILABLE`: the store is unreachable.
            `LOG_NOT_READY`: the server is still reading its log.")))]
pub(crate) async fn find_tile(State(arena): State<Arena>, request: Get) -> ApiResult {
    let missing = || ApiError::not_found("TILE_NOT_FOUND", "the log does not have this tile");
    let tile: Tile = format!("tile/{}", request.param("path")).parse().map_err(|_| missing())?;
    check_ready(&arena).await?;
    let bytes = arena.records.tile(&arena.engine, tile).await?.ok_or_else(missing)?;
    Ok(cached(with_kind("application/octet-stream", bytes), FOREVER))
}

/// Returns the proof that the log contains a session's creation, end or removal.
#[utoipa::path(get, path = "/log/proof/{id}", tag = "records",
    params(("id" = String, Path, description = "The session's id.", example = "018f6b2e-0000-7000-8000-00000000abcd"), ProofQuery),
    responses((status = 200, body = Object, description = "
            `leaf`: the number of the leaf. `size`: the number of leaves. `path`: the inclusion path of RFC 6962, from
            the leaf to the root. `checkpoint`: the signed checkpoint of that size."),
        (status = 400, description = "`INVALID_FIELD`: the kind is unknown."),
        (status = 404, description = "`LEAF_NOT_FOUND`: the log doesn't have this leaf, or not yet."),
        (status = 503, description = "
            `STORE_UNAVAILABLE`: the store is unreachable.
            `LOG_NOT_READY`: the server is still reading its log.")))]
pub(crate) async fn find_proof(State(arena): State<Arena>, request: Get) -> ApiResult {
    let ProofQuery { kind } = request.query()?;
    let kind = kind.as_deref().unwrap_or("ended");
    if !KINDS.contains(&kind) {
        return Err(ApiError::bad_request("INVALID_FIELD", format!("kind must be one of {}", KINDS.join(", "))));
    }
    let missing = || ApiError::not_found("LEAF_NOT_FOUND", "the log does not have this leaf, or not yet");
    let id: SessionId = request.param("id").parse().map_err(|_| missing())?;
    check_ready(&arena).await?;
    let leaf = arena.records.find_leaf(&arena.engine, id, kind).await?.ok_or_else(missing)?;
    let proof = arena.records.prove(&arena.engine, leaf).await?.ok_or_else(missing)?;
    Ok(json(to_text(&proof)))
}
