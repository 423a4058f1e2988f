//! `arena challenge types`: what scripts can import, for editors.

use std::fs;
use std::path::Path;

use serde_json::json;

use crate::exit::Failure;
use crate::matches::cannot_write;
use crate::output::{Style, print};

/// The declarations, one file for all modules.
pub const TYPES: &str = include_str!("template/arena.d.ts");

/// What the file is called.
const FILE: &str = "arena.d.ts";

/// Writes them to a folder.
pub fn run(folder: &Path, style: Style) -> Result<(), Failure> {
    let path = folder.join(FILE);
    fs::create_dir_all(folder).and_then(|()| fs::write(&path, TYPES)).map_err(|error| cannot_write(&path, &error))?;
    if style == Style::Json {
        return print(&json!({"files": [path]}).to_string());
    }
    print(&format!(
        "{} has the types of all that a script can import.\n\n\
         Editors take them up by a tsconfig.json beside the script:\n\n{}",
        path.display(),
        include_str!("template/tsconfig.json")
            .trim_end()
            .replace("types/*.d.ts", &format!("{}/*.d.ts", folder.display())),
    ))
}
