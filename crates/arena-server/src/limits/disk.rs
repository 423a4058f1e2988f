//! The reserve of free disk space. New sessions, uploads and tournaments are refused before the disk is full, so that
//! games that have begun can end.

use std::path::Path;

use axum::http::StatusCode;

use crate::error::{ApiError, ApiResult};

/// Returns the space in bytes that is available on the disk of a folder; `None` if the system doesn't say.
pub(crate) fn free_bytes(folder: &Path) -> Option<u64> {
    let found = rustix::fs::statvfs(folder).ok()?;
    Some(found.f_bavail.saturating_mul(found.f_frsize))
}

/// Checks that the disk of a folder has more free space than the reserve, in bytes. 0 means no reserve.
///
/// # Errors
/// 507 if there is less space.
pub(crate) fn check_disk(folder: &Path, reserve: u64) -> ApiResult<()> {
    if reserve == 0 || free_bytes(folder).is_none_or(|free| free > reserve) {
        return Ok(());
    }
    let text = format!(
        "the server's disk has less than {reserve} bytes left, which are kept for games that have begun; try again \
         later (limits.disk_reserve_bytes)"
    );
    Err(ApiError::new(StatusCode::INSUFFICIENT_STORAGE, "DISK_ALMOST_FULL", text))
}
