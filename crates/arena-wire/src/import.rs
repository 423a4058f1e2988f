//! The server's answer to an import.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// The result of an import.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ImportReport {
    pub users: u64,
    pub sessions: u64,
    pub messages: u64,
    pub skipped: Vec<SkippedLine>,
    /// The number of skipped lines, including those that aren't listed.
    pub skipped_total: u64,
}

/// A skipped line and the reason.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct SkippedLine {
    pub line: u64,
    pub reason: String,
}
