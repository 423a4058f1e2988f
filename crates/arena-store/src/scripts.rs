//! Scripts: the source of each version that a session was ever played by.

use arena_model::{Script, ScriptVersion};
use rusqlite::{OptionalExtension, params};

use crate::{CommitError, SqliteStore, StoreError};

/// Removes the scripts that no session is played by.
pub(crate) const FORGET: &str =
    "DELETE FROM scripts WHERE version NOT IN (SELECT script FROM sessions WHERE script IS NOT NULL)";

impl SqliteStore {
    pub(crate) async fn keep_script(&self, script: &Script) -> Result<(), CommitError> {
        let (version, source) = (script.version().to_string(), script.source().to_owned());
        self.writer
            .write(move |writing| {
                let sql = "INSERT INTO scripts (version, source) VALUES (?1, ?2) ON CONFLICT DO NOTHING";
                Ok(writing.connection.prepare_cached(sql)?.execute(params![version, source]).map(drop)?)
            })
            .await
    }

    pub(crate) async fn forget_scripts(&self) -> Result<u64, CommitError> {
        self.writer.write(move |writing| Ok(writing.connection.execute(FORGET, [])? as u64)).await
    }

    pub(crate) async fn find_script(&self, version: ScriptVersion) -> Result<Option<Script>, StoreError> {
        let found: Option<String> = self.read(|connection| {
            let sql = "SELECT source FROM scripts WHERE version = ?1";
            Ok(connection.prepare_cached(sql)?.query_row([version.to_string()], |row| row.get(0)).optional()?)
        })?;
        found.map(|source| read_script(version, source)).transpose()
    }
}

/// A script from its source, which has to be the one of this version.
pub(crate) fn read_script(version: ScriptVersion, source: String) -> Result<Script, StoreError> {
    let script = Script::new(source);
    if script.version() == version {
        Ok(script)
    } else {
        Err(StoreError::damaged(version, "its source has another version"))
    }
}
