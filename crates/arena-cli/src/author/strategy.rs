//! `arena author new --scoring` and `arena author check` for scoring strategies.

use std::collections::BTreeSet;
use std::path::Path;

use arena_check::Finding;
use arena_model::{Seed, StrategyRows};
use arena_script::{Folder, GameToCount, Limits, Sandbox, ScriptKind, ScriptStrategy, StrategyFault};
use serde_json::json;

use super::check::{CheckChallengeArgs, report};
use super::new::{name_of, title, write};
use super::types::TYPES;
use crate::command_line::first_given;
use crate::exit::Failure;
use crate::files::cannot_write;
use crate::output::{Style, counted, print, print_line};
use crate::scripts::worker;

const FILES: [(&str, &str); 4] = [
    ("scoring.json", include_str!("template-scoring/scoring.json")),
    ("index.ts", include_str!("template-scoring/index.ts")),
    ("tsconfig.json", include_str!("template/tsconfig.json")),
    ("types/arena.d.ts", TYPES),
];

/// The number of random games for each game of `--games`. Counting is much faster than playing.
const GAMES: u64 = 10;

/// Creates a folder with a strategy that works.
pub fn create(folder: &Path, style: Style) -> Result<(), Failure> {
    let name = name_of(folder)?;
    if arena_model::strategies().iter().any(|strategy| strategy.name == name) || name == arena_model::GLOBAL_AVERAGE {
        return Err(Failure::usage(format_args!("{name} is a built-in strategy; give another name")));
    }
    for (path, text) in FILES {
        // Only these files of the template contain placeholders.
        let text = match path {
            "scoring.json" | "index.ts" => text.replace("NAME", &title(&name)).replace("ID", &name),
            _ => text.to_owned(),
        };
        let path = folder.join(path);
        write(&path, &text, false).map_err(|error| cannot_write(&path, &error))?;
    }
    let files = FILES.map(|(path, _)| path);
    if style == Style::Json {
        return print_line(&json!({"folder": folder, "files": files}));
    }
    let shown = folder.display();
    let parent = folder.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    print(&format!(
        "{shown} is a scoring strategy: {}\n\n\
         scoring.json describes it and its metrics to people, and index.ts computes them.\n\n  \
         arena author check {shown}\n  \
         arena serve --scoring {}",
        files.join(", "),
        parent.display(),
    ))
}

/// Returns true for the path of a strategy's folder.
pub fn is_folder(name: &str) -> bool {
    Path::new(name).join(ScriptKind::Strategy.file()).is_file()
}

/// Finds faults of a strategy by counting random games.
pub fn check(args: &CheckChallengeArgs, style: Style) -> Result<(), Failure> {
    let of_challenges =
        [("--allow", !args.allow.is_empty()), ("--no-bots", args.no_bots), ("--set", !args.options.is_empty())];
    if let Some(option) = first_given(&of_challenges) {
        return Err(Failure::usage(format!("{option} is for challenges; {} is a scoring strategy", args.challenge)));
    }
    let path = Path::new(&args.challenge);
    let program = worker()?;
    let load = |folder: &Folder| ScriptStrategy::load(folder, &Sandbox::new(program.clone(), Limits::default()));
    let folder = Folder::read_of(ScriptKind::Strategy, path).map_err(|problem| vec![problem]);
    let loaded = folder.and_then(|folder| Ok((load(&folder)?, load(&folder)?, folder.id)));
    let (strategy, other, name) = match loaded {
        Ok(loaded) => loaded,
        Err(problems) => {
            let findings: Vec<Finding> =
                problems.iter().map(|problem| Finding::wrong("script", problem.to_string())).collect();
            return report("strategy", &args.challenge, &args.challenge, &findings, style);
        }
    };
    let seed = args.seed.clone().unwrap_or_else(|| Seed::from_number(0));
    let challenges = strategy.scripted.challenges.iter().flatten().next();
    let challenge = challenges.map_or("psi", String::as_str);
    let number = u64::from(args.games) * GAMES;
    let games: Vec<GameToCount> = (0..number).map(|number| GameToCount::invent(number, challenge, &seed)).collect();
    let findings = findings(&strategy, &other, &games);
    report("strategy", &name, &format!("{name}: {}", strategy.scripted.strategy.title), &findings, style)
}

fn findings(strategy: &ScriptStrategy, other: &ScriptStrategy, games: &[GameToCount]) -> Vec<Finding> {
    let all: Vec<&GameToCount> = games.iter().collect();
    let number = counted(games.len(), "random game");
    let mut findings = vec![Finding::fine("script", "the script and scoring.json can be used")];
    let once = match count(strategy, &[all.as_slice()]) {
        Ok(rows) => rows,
        Err(fault) => {
            let StrategyFault { place, message, game } = fault;
            let evidence = game.map(|game| format!("a random game: {game}"));
            findings.push(Finding { place, ..Finding::wrong("numbers", message) }.shown_by(evidence));
            return findings;
        }
    };
    let players: BTreeSet<&String> =
        once.iter().filter(|(_, row)| row.entry.is_some()).map(|((_, player), _)| player).collect();
    findings.push(match players.len() {
        0 => {
            Finding::advice("numbers", format!("no player is on the board after {number}: store.set was never called"))
        }
        players => Finding::fine("numbers", format!("{number} give finite numbers of {players} players")),
    });
    findings.push(match count(other, &[all.as_slice()]).as_ref() == Ok(&once) {
        true => Finding::fine("determinism", "the same games give the same numbers"),
        false => Finding::wrong("determinism", "the same games give other numbers the second time"),
    });
    let singles: Vec<&[&GameToCount]> = all.chunks(1).collect();
    findings.push(match count(other, &singles).as_ref() == Ok(&once) {
        true => Finding::fine("restart", "a restart between games changes nothing"),
        false => Finding::wrong(
            "restart",
            "a restart between games changes the numbers: data in variables of the module is lost; keep it with store.setState",
        ),
    });
    findings
}

/// Counts games in parts, each of them in a world of its own.
fn count(strategy: &ScriptStrategy, parts: &[&[&GameToCount]]) -> Result<StrategyRows, StrategyFault> {
    let mut rows = StrategyRows::new();
    for games in parts {
        let mut rest = *games;
        while !rest.is_empty() {
            let batch = strategy.update(rest, &mut rows);
            if let Some(fault) = batch.fault {
                return Err(fault);
            }
            rest = &rest[batch.counted..];
        }
    }
    Ok(rows)
}
