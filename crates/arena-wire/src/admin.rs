//! The server's answers to administrators.

use std::collections::BTreeMap;

use arena_model::{Timestamp, UserId};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

/// All bans.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct Bans {
    pub bans: Vec<Ban>,
}

/// A ban of a user, or of an address or range of addresses: it has either `userId` or `address`.
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

/// The hidden message.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Hidden {
    pub channel: String,
    pub index: u64,
    /// SHA-256 of the message's text, as hexadecimal digits.
    pub content_sha256: String,
}

/// The sessions that moved to the archive.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Archived {
    pub sessions: u64,
    /// The number of their messages, with the inputs that only records contain.
    pub messages: u64,
    /// The number of sessions that stay in the store: they are too long, damaged, or have changed meanwhile.
    pub left_out: u64,
}

/// The number of sessions that moved back from the archive.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct Restored {
    pub restored: u64,
}

/// The result of a recount.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct Counted {
    pub users: u64,
    pub games: u64,
    /// Users whose standings were wrong.
    #[schema(value_type = Vec<UserId>)]
    pub wrong: Vec<String>,
}

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

/// A page of the audit.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct AuditPage {
    pub entries: Vec<AuditEntry>,
    /// The number of entries on all pages.
    pub total: u64,
    /// The maximum number of entries on a page.
    #[schema(minimum = 1, maximum = 100)]
    pub limit: usize,
    /// The number of entries before this page.
    pub offset: u64,
}

/// An administrator's action.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct AuditEntry {
    /// The entry's number, from 1.
    pub no: u64,
    pub at: Timestamp,
    pub address: String,
    pub action: String,
    /// The object of the action.
    #[schema(value_type = Object)]
    pub detail: Value,
}

/// The budgets of a node, and the addresses that use most of them.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct Budgets {
    pub budgets: Vec<Budget>,
    pub addresses: Vec<AddressUse>,
    /// The number of addresses that use anything, including those that aren't listed.
    pub total: u64,
}

/// A resource of a node, and its limits.
///
/// `storedBytes` are those of the last day. `computingMs` is the time that rules and matches have computed, less the
/// time that the limit has granted since.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Budget {
    pub name: String,
    pub used: u64,
    /// The limit for all addresses together, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<u64>,
    /// The setting of the limit.
    pub setting: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub of_address: Option<AddressLimit>,
}

/// The limit of a budget for each address.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct AddressLimit {
    pub limit: u64,
    /// The setting of the limit.
    pub setting: String,
}

/// The resources that one address uses. An IPv6 address stands for its /64 network.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct AddressUse {
    pub address: String,
    /// The amounts that the address uses, by the name of their budget. Of `waitingBytes`, addresses without a limit, such
    /// as this machine, have none.
    pub used: BTreeMap<String, u64>,
    /// The requests and connections of the address that were refused within a day because of a limit.
    pub refusals: u64,
}
