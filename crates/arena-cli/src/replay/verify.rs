//! `arena replay verify`: a line for each replay, and a failure at the end if one doesn't match.

use std::path::{Path, PathBuf};

use arena_match::{ReplayError, Verified};
use arena_model::GameType;
use serde_json::{Value, json};

use super::{explain, open_file};
use crate::exit::{Exit, Failure};
use crate::output::{Style, counted, print, print_line, printable};
use crate::scripts::{game_of_replay, games_of, load_all};

pub fn run(files: &[PathBuf], challenges: &[PathBuf], style: Style) -> Result<(), Failure> {
    let scripts = games_of(&load_all(challenges)?);
    let mut wrong = Vec::new();
    for file in files {
        let verified = verify(file, &scripts);
        if style == Style::Json {
            print_line(&to_json(file, &verified))?;
        }
        match verified {
            Ok(verified) if style != Style::Json => print(&printable(&describe(file, &verified)))?,
            Ok(_) => {}
            // With several replays, each fault is printed in the order of the files.
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
        (count, all) if wrong.iter().all(|failure| failure.exit == Exit::OtherRules) => {
            let sentence = format!("{count} of {all} replays belong to other rules than this program's");
            Err(Failure::new(Exit::OtherRules, sentence))
        }
        (wrong, all) => {
            Err(Failure::new(Exit::BadReplay, format_args!("{wrong} of {all} replays failed verification")))
        }
    }
}

fn to_json(file: &Path, verified: &Result<Verified, Failure>) -> Value {
    match verified {
        Ok(Verified { game, epochs, states, has_same_texts, is_chained, sealed_by }) => {
            let mut line = json!({"file": file, "ok": true, "game": game, "epochs": epochs, "states": states});
            line["chain"] = json!(is_chained);
            if let Some(key) = sealed_by {
                line["sealed_by"] = json!(key);
            }
            if !has_same_texts {
                line["other_texts"] = json!(true);
            }
            line
        }
        Err(failure) => {
            // A replay of other rules is neither verified nor refuted.
            let ok = if failure.exit == Exit::OtherRules { Value::Null } else { json!(false) };
            json!({"file": file, "ok": ok, "error": failure.sentence()})
        }
    }
}

fn verify(file: &Path, scripts: &[&'static GameType]) -> Result<Verified, Failure> {
    arena_match::verify_by(open_file(file)?, |header| game_of_replay(header, scripts)).map_err(|error| match error {
        ReplayError::NoScript { .. } => {
            Failure::usage(format_args!("{}: {error}; give its folder with --challenge DIR", file.display()))
        }
        error => explain(file, &error),
    })
}

fn describe(file: &Path, verified: &Verified) -> String {
    let Verified { game, epochs, states, has_same_texts, is_chained: _, sealed_by } = verified;
    format!(
        "{}: {game}, {} and {} verified; the result matches{}{}",
        file.display(),
        counted(*epochs, "epoch"),
        counted(*states, "state"),
        if *has_same_texts {
            ""
        } else {
            "; prompt and methods have other texts in this program, and weren't compared"
        },
        sealed_by.map_or_else(String::new, |key| format!("; sealed by {key}")),
    )
}
