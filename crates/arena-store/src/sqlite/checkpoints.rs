//! Checkpoints of the write-ahead log. A checkpoint copies pages of the log to the database file, and a copied log
//! begins anew. A checkpoint of a long log takes some hundred milliseconds, so a thread of its own does most of the
//! work while the writer commits.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use rusqlite::Connection;
use rusqlite::hooks::Wal;

use super::connection::{BUSY_TIMEOUT, open_writable};
use crate::StoreError;

/// The number of pages (4 KiB each) in the log at which the thread copies them.
const COPY_AT_PAGES: u32 = 16_384;

/// The further pages at which the writer waits for the thread, which bounds the log if the thread is slower.
const WAIT_AT_PAGES: u32 = 7 * COPY_AT_PAGES;

/// The time for which the writer waits for readers of the log, so that the log can begin anew. Most reads take less
/// than 1 ms. With a longer read, the log grows until the next checkpoint.
const WAIT_FOR_READERS: Duration = Duration::from_millis(10);

pub(super) struct Checkpoints {
    /// The number of pages in the log after the last commit.
    pages: Arc<AtomicU32>,
    begin_at: u32,
    copying: bool,
    due: Option<Sender<()>>,
    done: Receiver<()>,
    thread: Option<JoinHandle<()>>,
}

impl Checkpoints {
    /// Starts the thread for the log of the writer's connection.
    pub(super) fn start(writer: &mut Connection, file: &Path) -> Result<Checkpoints, StoreError> {
        let pages = Arc::new(AtomicU32::new(0));
        let counter = Arc::clone(&pages);
        // This hook replaces SQLite's own one, which runs a checkpoint in the committing connection.
        let count = move |_: &mut Wal, pages: i32| {
            counter.store(pages.unsigned_abs(), Ordering::Relaxed);
            Ok(())
        };
        writer.wal_hook(Some(count))?;
        let connection = open_writable(file)?;
        let (due, is_due) = channel();
        let (finish, done) = channel();
        let thread = std::thread::Builder::new()
            .name("arena-checkpoint".to_owned())
            .spawn(move || {
                while is_due.recv().is_ok() {
                    if let Err(error) = checkpoint(&connection, "PASSIVE") {
                        tracing::warn!(%error, "a checkpoint of the write-ahead log failed: {error}");
                    }
                    if finish.send(()).is_err() {
                        break;
                    }
                }
            })
            .map_err(|error| StoreError::Database(format!("cannot start the thread for checkpoints: {error}")))?;
        let (due, thread) = (Some(due), Some(thread));
        Ok(Checkpoints { pages, begin_at: COPY_AT_PAGES, copying: false, due, done, thread })
    }

    pub(super) fn pages(&self) -> u32 {
        self.pages.load(Ordering::Relaxed)
    }

    /// Begins or ends a checkpoint if it is time. The writer calls this after each commit.
    pub(super) fn advance(&mut self, writer: &Connection) {
        let pages = self.pages();
        if !self.copying {
            if pages < self.begin_at {
                return;
            }
            self.copying = self.due.as_ref().is_some_and(|due| due.send(()).is_ok());
        }
        // If the thread has ended after a panic, its channels are closed, and the writer copies all pages.
        let must_wait = pages >= self.begin_at.saturating_add(WAIT_AT_PAGES);
        let answer = if must_wait { self.done.recv().map_err(TryRecvError::from) } else { self.done.try_recv() };
        let is_done = answer != Err(TryRecvError::Empty);
        if is_done {
            self.copying = false;
            let restarted = self.restart_log(writer).unwrap_or_else(|error| {
                tracing::warn!(%error, "a checkpoint of the write-ahead log failed: {error}");
                false
            });
            self.begin_at = if restarted { COPY_AT_PAGES } else { pages + COPY_AT_PAGES };
        }
    }

    /// Copies the pages that were written during the thread's work, which are few. The next commit then begins the log
    /// anew. Returns false if a reader prevents this.
    fn restart_log(&self, writer: &Connection) -> Result<bool, rusqlite::Error> {
        writer.busy_timeout(WAIT_FOR_READERS)?;
        let is_blocked = checkpoint(writer, "RESTART");
        writer.busy_timeout(BUSY_TIMEOUT)?;
        Ok(!is_blocked?)
    }

    pub(super) fn stop(&mut self) {
        self.due = None;
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            tracing::error!("the thread for checkpoints panicked");
        }
    }
}

/// Runs a checkpoint. Returns true if another connection prevented it from copying the whole log.
pub(super) fn checkpoint(connection: &Connection, mode: &str) -> Result<bool, rusqlite::Error> {
    connection.query_row(&format!("PRAGMA wal_checkpoint({mode})"), [], |row| Ok(row.get::<_, i64>(0)? != 0))
}
