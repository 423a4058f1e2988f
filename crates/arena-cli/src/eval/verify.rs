//! `arena eval verify`: all finished games, played again from the recorded answers and compared.

use std::path::{Path, PathBuf};

use arena_eval::{CheckedGame, Difference, GameCheck, Verification};
use clap::Args;
use serde_json::{Value, json};

use super::run::failed;
use crate::exit::{Exit, Failure};
use crate::output::{Style, counted, counted_as, note, one_line, print};
use crate::serve::runtime;

/// Options of `arena eval verify`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  arena eval verify autumn
  arena eval verify autumn --json

The command needs no key and no network, starts no agent and changes nothing in the folder, also while a run goes on. It plays \
all games of journal.jsonl again from their seeds and from the answers in calls.jsonl, and compares the results and the \
transcripts. It names each difference with its place in the files, where seats and seeds begin at 0.

A game can't be played again if a call is missing, if a program played whose answers aren't recorded, or if this program has \
other rules or another prompt than the run.

The answers themselves aren't signed: someone who invents answers, and plays the games with them, isn't found. Nor does the \
command show which model gave an answer, or check costs, times and interrupted games. A game whose line was removed is only \
unfinished.

The exit code is 11 if a file contradicts the answers, else 16 if a game can't be played again, and 2 if no game is finished.")]
pub struct VerifyEvalArgs {
    /// Folder of the run.
    #[arg(value_name = "DIR")]
    pub dir: PathBuf,
}

/// The maximum number of differences that are listed for a game.
const MOST_DIFFERENCES: usize = 5;

/// The maximum number of ids in a note.
const MOST_IDS: usize = 10;

/// The maximum length of a value in characters.
const MOST_CHARS: usize = 80;

pub fn run(dir: &Path, style: Style) -> Result<(), Failure> {
    let found = runtime()?.block_on(arena_eval::verify(dir)).map_err(failed)?;
    let count = |is: fn(&GameCheck) -> bool| found.games.iter().filter(|game| is(&game.check)).count();
    let agree = count(|check| *check == GameCheck::Agrees);
    let wrong = count(|check| matches!(check, GameCheck::Contradicts(_)));
    match style {
        Style::Json => print(&to_json(&found, agree).to_string())?,
        Style::Pretty | Style::Compact => describe(&found, agree)?,
    }
    let games = counted(found.games.len(), "game");
    match () {
        () if wrong > 0 || !found.others.is_empty() => {
            let sentence = match wrong {
                0 => "a text of calls.jsonl contradicts its hash".to_owned(),
                _ => format!(
                    "{wrong} of {games} {} the recorded answers",
                    if wrong == 1 { "contradicts" } else { "contradict" }
                ),
            };
            Err(Failure::new(Exit::BadReplay, sentence))
        }
        () if found.games.is_empty() => Err(Failure::usage("there is nothing to verify: no game is finished")),
        () if agree < found.games.len() => {
            let others = found.games.len() - agree;
            Err(Failure::new(Exit::OtherRules, format_args!("{others} of {games} can't be played again")))
        }
        () => Ok(()),
    }
}

fn describe(found: &Verification, agree: usize) -> Result<(), Failure> {
    for CheckedGame { game, check } in &found.games {
        match check {
            GameCheck::Agrees => {}
            GameCheck::Contradicts(differences) => {
                for difference in differences.iter().take(MOST_DIFFERENCES) {
                    print(&one_line(&format!("game {game}: {}", line(difference))))?;
                }
                if let more @ 1.. = differences.len().saturating_sub(MOST_DIFFERENCES) {
                    print(&format!("game {game}: {}", counted(more, "more difference")))?;
                }
            }
            GameCheck::Unchecked(why) => print(&one_line(&format!("game {game}: {why}")))?,
        }
    }
    for difference in &found.others {
        print(&one_line(&line(difference)))?;
    }
    if !found.without_line.is_empty() {
        let games = counted_as(found.without_line.len(), "game has", "games have");
        let ids: Vec<&str> = found.without_line.iter().take(MOST_IDS).map(String::as_str).collect();
        let rest = if found.without_line.len() > MOST_IDS { ", …" } else { "" };
        note(&format!(
            "{games} a transcript, but no line in journal.jsonl: {}{rest}; the line was removed, or the run was stopped \
             at this moment",
            ids.join(", ")
        ));
    }
    let unfinished = match found.unfinished {
        0 => String::new(),
        count => format!("; {count} unfinished"),
    };
    print(&format!("{agree} of {} agree with their answers{unfinished}", counted(found.games.len(), "game")))
}

/// Describes a difference. Long texts begin shortly before the place where they differ.
fn line(difference: &Difference) -> String {
    let Difference { place, recorded, replayed } = difference;
    let common = match (recorded, replayed) {
        (Value::String(old), Value::String(new)) => {
            old.chars().zip(new.chars()).take_while(|(old, new)| old == new).count()
        }
        _ => 0,
    };
    let [recorded, replayed] = [recorded, replayed].map(|value| shown(value, common.saturating_sub(MOST_CHARS / 2)));
    format!("{place}: the file says {recorded}, the answers give {replayed}")
}

fn shown(value: &Value, skipped: usize) -> String {
    let text = match value {
        Value::Null => return "nothing".to_owned(),
        Value::String(text) if skipped > 0 => format!("…{}", text.chars().skip(skipped).collect::<String>()),
        other => other.to_string(),
    };
    match text.char_indices().nth(MOST_CHARS) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

fn to_json(found: &Verification, agree: usize) -> Value {
    let game = |CheckedGame { game, check }: &CheckedGame| match check {
        GameCheck::Agrees => None,
        GameCheck::Contradicts(differences) => Some(json!({"game": game, "agrees": false, "differences": differences})),
        GameCheck::Unchecked(why) => Some(json!({"game": game, "agrees": null, "why": why})),
    };
    json!({
        "games": found.games.len(), "agree": agree, "unfinished": found.unfinished,
        "without_line": found.without_line, "differences": found.others,
        "others": found.games.iter().filter_map(game).collect::<Vec<Value>>(),
    })
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    #[test]
    fn a_difference_shows_the_place_where_long_texts_differ() {
        let difference = |recorded: Value, replayed: Value| {
            line(&Difference { place: "journal.jsonl: told".to_owned(), recorded, replayed })
        };
        expect!["journal.jsonl: told: the file says 1.0, the answers give nothing"]
            .assert_eq(&difference(json!(1.0), Value::Null));
        let long = |end: &str| json!(format!("{}{end}", "0123456789".repeat(10)));
        expect!["journal.jsonl: told: the file says …123456789012345678901234567890123456789 yes, the answers give …123456789012345678901234567890123456789 no"]
            .assert_eq(&difference(long(" yes"), long(" no")));
    }
}
