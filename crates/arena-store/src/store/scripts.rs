//! Scripts: the source of each version that a session has used.

use arena_model::{Script, ScriptVersion};

use crate::{CommitError, Store, StoreError};

impl Store {
    /// Stores a script if it is new; on return it is durable.
    ///
    /// # Errors
    /// If the store can't write.
    pub async fn keep_script(&self, script: &Script) -> Result<(), CommitError> {
        let script = (script.version().to_string(), script.source().to_owned());
        self.write(script, |(version, source), writing| {
            Box::pin(async move {
                let sql = "INSERT INTO scripts (version, source) VALUES ($1, $2) ON CONFLICT DO NOTHING";
                Ok(writing.db.execute(sql, &[(&**version).into(), (&**source).into()]).await.map(drop)?)
            })
        })
        .await
    }

    /// Removes the scripts that no session uses, and returns their number. A script is stored before its first session,
    /// so callers must call this before the arena creates sessions. In a shared store this removes nothing, because
    /// other nodes may be creating sessions.
    ///
    /// # Errors
    /// If the store can't write.
    pub async fn forget_scripts(&self) -> Result<u64, CommitError> {
        if self.nodes().is_some() {
            return Ok(0);
        }
        self.write((), |(), writing| {
            Box::pin(async move {
                let sql =
                    "DELETE FROM scripts WHERE version NOT IN (SELECT script FROM sessions WHERE script IS NOT NULL)";
                Ok(writing.db.execute(sql, &[]).await?)
            })
        })
        .await
    }

    /// Returns the script of this version, if it is stored.
    ///
    /// # Errors
    /// If the store can't be read, or the stored script has another version.
    pub async fn find_script(&self, version: ScriptVersion) -> Result<Option<Script>, StoreError> {
        let sql = "SELECT source FROM scripts WHERE version = $1";
        let source = self.find(sql, &[version.to_string().into()], |row| Ok(row.text(0)?.to_owned())).await?;
        let Some(script) = source.map(Script::new) else { return Ok(None) };
        if script.version() == version {
            Ok(Some(script))
        } else {
            Err(StoreError::Damaged {
                what: format!("script {version}"),
                reason: "its source has another version".to_owned(),
            })
        }
    }
}
