//! `arena replay verify`: a line for each replay, and a failure at the end if one doesn't match.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use arena_match::{HeaderLine, ReplayError, Verified};
use arena_model::{ChallengeType, GameType};
use serde_json::json;

use super::{bad, open_file};
use crate::exit::{Exit, Failure};
use crate::output::{Style, print, printable};
use crate::scripts;

pub fn run(files: &[PathBuf], challenges: &[PathBuf], style: Style) -> Result<(), Failure> {
    let load = |folder: &PathBuf| Ok(scripts::games_of(&(Arc::new(scripts::load(folder)?) as Arc<dyn ChallengeType>)));
    let scripts = challenges.iter().map(load).collect::<Result<Vec<_>, Failure>>()?.concat();
    let mut wrong = Vec::new();
    for file in files {
        let verified = verify(file, &scripts);
        if style == Style::Json {
            print(&match &verified {
                Ok(Verified { game, epochs, states, has_same_texts, is_chained, sealed_by }) => {
                    let mut line = json!({"file": file, "ok": true, "game": game, "epochs": epochs, "states": states});
                    line["chain"] = json!(is_chained);
                    if let Some(key) = sealed_by {
                        line["sealed_by"] = json!(key);
                    }
                    if !has_same_texts {
                        line["other_texts"] = json!(true);
                    }
                    line.to_string()
                }
                // The replay belongs to other rules, so it is neither verified nor refuted.
                Err(failure) if failure.exit == Exit::OtherRules => {
                    json!({"file": file, "ok": null, "error": failure.sentence()}).to_string()
                }
                Err(failure) => json!({"file": file, "ok": false, "error": failure.sentence()}).to_string(),
            })?;
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

fn verify(file: &Path, scripts: &[&'static GameType]) -> Result<Verified, Failure> {
    let find = |header: &HeaderLine| {
        // Of several versions of a challenge, the version that the replay names comes first.
        let is_same = |game: &&&GameType| game.script().is_some_and(|found| Some(found.to_string()) == header.script);
        let mut named = scripts.iter().filter(|game| game.name == header.game);
        named.clone().find(is_same).or_else(|| named.next()).copied().or_else(|| arena_games::game(&header.game))
    };
    arena_match::verify_by(open_file(file)?, find).map_err(|error| match error {
        ReplayError::NoScript { .. } => {
            Failure::new(Exit::Usage, format_args!("{}: {error}; give its folder with --challenge DIR", file.display()))
        }
        error => bad(file, &error),
    })
}

fn describe(file: &Path, verified: &Verified) -> String {
    let Verified { game, epochs, states, has_same_texts, is_chained: _, sealed_by } = verified;
    let counted = |count: &u64, one: &str| format!("{count} {one}{}", if *count == 1 { "" } else { "s" });
    format!(
        "{}: {game}, {} and {} verified; the result matches{}{}",
        file.display(),
        counted(epochs, "epoch"),
        counted(states, "state"),
        if *has_same_texts {
            ""
        } else {
            "; prompt and methods have other texts in this program, and weren't compared"
        },
        sealed_by.map_or_else(String::new, |key| format!("; sealed by {key}")),
    )
}
