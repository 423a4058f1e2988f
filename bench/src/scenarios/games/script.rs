//! PSI as a script in the reference server's format.

use std::fs;
use std::path::Path;

use anyhow::Context as _;
use serde_json::json;
use tempfile::TempDir;

use crate::psi::SCRIPT;

/// The script, which is also a test of `arena-script`.
const FILES: [(&str, &str); 2] = [
    ("challenge.json", include_str!("../../../../crates/arena-script/tests/challenges/psi/challenge.json")),
    ("index.ts", include_str!("../../../../crates/arena-script/tests/challenges/psi/index.ts")),
];

/// A folder with the script, removed when dropped.
pub struct ScriptFolder {
    folder: TempDir,
}

impl ScriptFolder {
    /// Creates the folder below `work`.
    ///
    /// # Errors
    /// If the folder can't be written.
    pub fn new(work: &Path) -> anyhow::Result<ScriptFolder> {
        fs::create_dir_all(work).with_context(|| format!("could not create {}", work.display()))?;
        let work = fs::canonicalize(work).context("the folder for temporary data is gone")?;
        let folder = tempfile::tempdir_in(work).context("could not create a folder for the script")?;
        let script = folder.path().join(SCRIPT);
        fs::create_dir(&script).context("could not create the script's folder")?;
        for (name, text) in FILES {
            fs::write(script.join(name), text).with_context(|| format!("could not write {name}"))?;
        }
        Ok(ScriptFolder { folder })
    }

    /// Returns the text of an `arena.toml` that hosts the script.
    pub fn config(&self) -> String {
        format!("[scripts]\nfolders = [{}]\n", json!(self.folder.path()))
    }
}
