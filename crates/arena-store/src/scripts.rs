//! Scripts: the source of each version that a session was ever played by.

use arena_model::{Script, ScriptVersion};
use rusqlite::{OptionalExtension, params};

use crate::{CommitError, Store, StoreError};

impl Store {
    /// Keeps a script, if it isn't kept yet; on return it is durable.
    ///
    /// # Errors
    /// If the store can't write.
    pub async fn keep_script(&self, script: &Script) -> Result<(), CommitError> {
        let (version, source) = (script.version().to_string(), script.source().to_owned());
        self.writer
            .write(move |writing| {
                let sql = "INSERT INTO scripts (version, source) VALUES (?1, ?2) ON CONFLICT DO NOTHING";
                Ok(writing.connection.prepare_cached(sql)?.execute(params![version, source]).map(drop)?)
            })
            .await
    }

    /// The script of this version, if it was kept.
    ///
    /// # Errors
    /// If the store can't be read, or the script isn't what it was.
    pub async fn find_script(&self, version: ScriptVersion) -> Result<Option<Script>, StoreError> {
        let found: Option<String> = self.read(|connection| {
            let sql = "SELECT source FROM scripts WHERE version = ?1";
            Ok(connection.prepare_cached(sql)?.query_row([version.to_string()], |row| row.get(0)).optional()?)
        })?;
        match found.map(Script::new) {
            Some(script) if script.version() != version => {
                Err(StoreError::damaged(version, "its source has another version"))
            }
            found => Ok(found),
        }
    }
}
