//! `arena replay verify`: a line for each replay, and a failure at the end if any doesn't hold.

use std::path::{Path, PathBuf};

use arena_match::Verified;
use serde_json::json;

use super::{bad, open_file};
use crate::exit::{Exit, Failure};
use crate::output::{Style, print, printable};

pub fn run(files: &[PathBuf], style: Style) -> Result<(), Failure> {
    let mut wrong = Vec::new();
    for file in files {
        let verified = verify(file);
        if style == Style::Json {
            print(&match &verified {
                Ok(Verified { game, epochs, states }) => {
                    json!({"file": file, "ok": true, "game": game, "epochs": epochs, "states": states}).to_string()
                }
                Err(failure) => json!({"file": file, "ok": false, "error": failure.sentence()}).to_string(),
            })?;
        }
        match verified {
            Ok(verified) if style != Style::Json => print(&printable(&tell(file, &verified)))?,
            Ok(_) => {}
            // What is wrong with one of several is told in its place.
            Err(failure) => {
                if files.len() > 1 && style != Style::Json {
                    print(&printable(failure.sentence()))?;
                }
                wrong.push(failure);
            }
        }
    }
    match (wrong.len(), files.len()) {
        (0, _) => Ok(()),
        (1, 1) => Err(wrong.remove(0)),
        (wrong, all) => Err(Failure::new(Exit::BadReplay, format_args!("{wrong} of {all} replays don't hold"))),
    }
}

fn verify(file: &Path) -> Result<Verified, Failure> {
    arena_match::verify(open_file(file)?).map_err(|error| bad(file, &error))
}

fn tell(file: &Path, verified: &Verified) -> String {
    let Verified { game, epochs, states } = verified;
    let counted = |count: &u64, one: &str| format!("{count} {one}{}", if *count == 1 { "" } else { "s" });
    format!(
        "{}: {game}, {} and {} played again: all is as recorded, and so is the result",
        file.display(),
        counted(epochs, "epoch"),
        counted(states, "state")
    )
}
