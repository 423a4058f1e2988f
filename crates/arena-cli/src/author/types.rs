//! `arena author types`: TypeScript declarations of the script API, for editors.

use std::fs;
use std::path::Path;

use serde_json::json;

use crate::exit::Failure;
use crate::files::cannot_write;
use crate::output::{Style, print, print_line};

/// The declarations of all modules.
pub const TYPES: &str = include_str!("template/arena.d.ts");

const FILE: &str = "arena.d.ts";

pub fn run(folder: &Path, style: Style) -> Result<(), Failure> {
    let path = folder.join(FILE);
    fs::create_dir_all(folder).and_then(|()| fs::write(&path, TYPES)).map_err(|error| cannot_write(&path, &error))?;
    if style == Style::Json {
        return print_line(&json!({"files": [path]}));
    }
    print(&format!(
        "{} declares all modules that a script can import.\n\n\
         To use it in an editor, put this tsconfig.json beside the folder, where the script is:\n\n{}",
        path.display(),
        include_str!("template/tsconfig.json").trim_end().replace(
            "types/*.d.ts",
            &folder.file_name().map_or(FILE.to_owned(), |name| format!("{}/*.d.ts", name.display()))
        ),
    ))
}
