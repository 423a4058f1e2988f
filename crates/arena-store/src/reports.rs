//! Reports of messages: readers ask the administrator to look at a message.

use arena_model::{Channel, SessionId, Timestamp};

use crate::audit::record;
use crate::job::{WriteError, Writing};
use crate::value::{Columns, Value, count};
use crate::{AuditEntry, CommitError, Page, Store, StoreError};

/// The maximum number of reports that an administrator hasn't handled.
const MAX_REPORTS: i64 = 10_000;

/// The maximum number of such reports by one network.
const MAX_REPORTS_BY_NETWORK: i64 = 100;

/// A report of a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredReport {
    /// The message's channel, as the wire names it.
    pub channel: String,
    /// The message's index in its channel.
    pub index: u64,
    /// The network of the reporter.
    pub network: String,
    /// The reporter's words.
    pub reason: String,
    /// The time of the report.
    pub at: Timestamp,
}

/// The reports that an administrator dismisses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReportSelection {
    /// Those of a message.
    Message(ReportedMessage),
    /// Those by a network.
    Network(String),
}

/// The message of reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReportedMessage {
    /// The message's channel.
    pub channel: Channel,
    /// The message's index in its channel.
    pub index: u64,
}

impl Store {
    /// Adds a report. A further report of the same message by the same network replaces the first. Returns false if there
    /// are too many reports, of all networks or of this one.
    ///
    /// # Errors
    /// If the store can't write.
    pub async fn report_message(&self, report: StoredReport) -> Result<bool, CommitError> {
        self.write(report, |report, writing| {
            Box::pin(async move {
                let StoredReport { channel, index, network, reason, at } = report;
                let others = "SELECT count(*) FROM reports WHERE NOT (channel = $1 AND idx = $2 AND network = $3)";
                let of_network = format!("{others} AND network = $3");
                let key = [channel.as_str().into(), count(*index).into(), network.as_str().into()];
                if writing.db.number(others, &key).await? >= MAX_REPORTS
                    || writing.db.number(&of_network, &key).await? >= MAX_REPORTS_BY_NETWORK
                {
                    return Ok(false);
                }
                let sql = "INSERT INTO reports (channel, idx, network, reason, at) VALUES ($1, $2, $3, $4, $5)
                     ON CONFLICT (channel, idx, network) DO UPDATE SET reason = excluded.reason, at = excluded.at";
                let values = [
                    channel.as_str().into(),
                    count(*index).into(),
                    network.as_str().into(),
                    Value::prose(&**reason),
                    at.0.into(),
                ];
                writing.db.execute(sql, &values).await?;
                Ok(true)
            })
        })
        .await
    }

    /// Returns reports, newest first: at most `limit` from `offset` on.
    ///
    /// # Errors
    /// If the store can't be read.
    pub async fn list_reports(&self, offset: u64, limit: usize) -> Result<Page<StoredReport>, StoreError> {
        let total = self.number("SELECT count(*) FROM reports", &[]).await?;
        let sql = "SELECT channel, idx, network, reason, at FROM reports
             ORDER BY at DESC, channel, idx, network LIMIT $1 OFFSET $2";
        let read = |row: &dyn Columns| {
            Ok(StoredReport {
                channel: row.text(0)?.to_owned(),
                index: row.integer(1)?.unsigned_abs(),
                network: row.text(2)?.to_owned(),
                reason: row.prose(3)?.into_owned(),
                at: Timestamp(row.integer(4)?),
            })
        };
        let items = self.list(sql, &[count(limit as u64).into(), count(offset).into()], read).await?;
        Ok(Page { items, total: total.unsigned_abs() })
    }

    /// Removes the selected reports. Returns their number. If there were none, the audit log gets no entry.
    ///
    /// # Errors
    /// If the store can't write.
    pub async fn dismiss_reports(&self, selection: ReportSelection, audit: AuditEntry) -> Result<u64, CommitError> {
        self.write((selection, audit), |(selection, audit), writing| {
            Box::pin(async move {
                let removed = match selection {
                    ReportSelection::Message(message) => forget(writing, message).await?,
                    ReportSelection::Network(network) => {
                        let sql = "DELETE FROM reports WHERE network = $1";
                        writing.db.execute(sql, &[network.as_str().into()]).await?
                    }
                };
                if removed > 0 {
                    record(writing, audit).await?;
                }
                Ok(removed)
            })
        })
        .await
    }
}

/// Removes the reports of a message, and returns their number.
pub(crate) async fn forget(writing: &mut Writing, message: &ReportedMessage) -> Result<u64, WriteError> {
    let sql = "DELETE FROM reports WHERE channel = $1 AND idx = $2";
    Ok(writing.db.execute(sql, &[message.channel.to_string().into(), count(message.index).into()]).await?)
}

/// Removes the reports of a session's messages.
pub(crate) async fn forget_all_of(writing: &mut Writing, session: SessionId) -> Result<(), WriteError> {
    let channels = [Channel::Chat(session), Channel::Operator(session)].map(|channel| channel.to_string().into());
    writing.db.execute("DELETE FROM reports WHERE channel IN ($1, $2)", &channels).await?;
    Ok(())
}
