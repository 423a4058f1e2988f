//! What the administrator is answered.

use arena_model::{Timestamp, UserId};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

/// All bans.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct Bans {
    pub bans: Vec<Ban>,
}

/// A ban of a user, or of everybody at an address or in a range of addresses: either `userId` or `address` is there.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Ban {
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<UserId>)]
    pub user_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub address: Option<String>,
    pub reason: String,
    pub at: Timestamp,
}

/// The message was hidden.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Hidden {
    pub channel: String,
    pub index: u64,
    /// SHA-256 of what it said, as hexadecimal digits.
    pub content_sha256: String,
}

/// What was counted.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct Counted {
    pub users: u64,
    pub games: u64,
    /// Users whose standings were wrong.
    #[schema(value_type = Vec<UserId>)]
    pub wrong: Vec<String>,
}

/// What was taken in.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ImportReport {
    pub users: u64,
    pub sessions: u64,
    pub messages: u64,
    pub skipped: Vec<SkippedLine>,
    /// Lines that weren't taken, also those that aren't listed.
    pub skipped_total: u64,
}

/// A line that wasn't taken, and why.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct SkippedLine {
    pub line: u64,
    pub reason: String,
}

/// A page of what administrators did.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct AuditPage {
    pub entries: Vec<AuditEntry>,
    /// Entries on all pages.
    pub total: u64,
    /// Most entries on a page.
    #[schema(minimum = 1, maximum = 100)]
    pub limit: usize,
    /// Entries passed over.
    pub offset: u64,
}

/// What an administrator did.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct AuditEntry {
    /// Its number, from 1.
    pub no: u64,
    pub at: Timestamp,
    pub address: String,
    pub action: String,
    /// What it was done to.
    #[schema(value_type = Object)]
    pub detail: Value,
}
