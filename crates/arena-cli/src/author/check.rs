//! `arena author check`: faults of a challenge, reported to its author.

use std::fmt::Write as _;
use std::path::Path;
use std::time::Duration;

use arena_check::{CHECKS, CheckPlan, Finding, Severity, check};
use arena_match::{MatchPlan, play_match};
use arena_model::Seed;
use clap::Args;
use clap::builder::PossibleValuesParser;
use indicatif::{ProgressBar, ProgressDrawTarget};
use serde_json::{Map, Value, json};

use super::find::{FoundChallenge, find};
use crate::exit::{Exit, Failure};
use crate::interrupt;
use crate::matches::explain;
use crate::matches::options::{SandboxArgs, option, seed};
use crate::matches::settings::{confinement, find_agent};
use crate::output::{Style, counted, print, print_line, printable};

/// Options of `arena author check`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  arena author check .
  arena author check number-duel --json
  arena author check psi                   a built-in challenge
  arena author check psi --set players=3   with another option
  arena author check . --allow secrecy     report secrecy findings as advice
  arena author check scoring/elo           a scoring strategy: a folder with a scoring.json

Checks: metadata, determinism, restore, messages, secrecy, ending, scores, bots. `✗` is a fault, `!` may be intended, `✓` \
passed. Each executable file in the folder `bots` plays a match against itself, in the sandbox of `arena match run`. \
Checks of a strategy: script, numbers, determinism, restart. The exit code is 15 if there is a fault, else 0.")]
pub struct CheckChallengeArgs {
    /// Challenge: a folder, or the name of a built-in one; or the folder of a strategy.
    #[arg(value_name = "DIR|NAME")]
    pub challenge: String,
    /// Report this check's findings as advice, not as faults; may be repeated.
    #[arg(long, value_name = "CHECK", value_parser = PossibleValuesParser::new(checks()))]
    pub allow: Vec<String>,
    /// Number of random games; of a strategy's games, ten times as many are counted.
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub games: u32,
    /// Random seed: an integer, or 64 hexadecimal digits [default: 0]
    #[arg(long, value_name = "N", value_parser = seed)]
    pub seed: Option<Seed>,
    /// Skip the check `bots`: the matches of the agents in the folder `bots`.
    #[arg(long)]
    pub no_bots: bool,
    /// Set a challenge option; may be repeated.
    #[arg(long = "set", value_name = "KEY=VALUE", value_parser = option)]
    pub options: Vec<(String, Value)>,
    #[command(flatten)]
    pub sandbox: SandboxArgs,
}

/// Lists the checks that --allow accepts.
fn checks() -> Vec<&'static str> {
    CHECKS.iter().map(|(name, _)| *name).chain(["bots"]).collect()
}

/// The indentation of evidence: the width of the mark and the check's name.
const INDENT: &str = "                 ";

/// The name of the check that plays matches of the folder's bots. All other checks are pure.
const BOTS: &str = "bots";

pub fn run(args: &CheckChallengeArgs, style: Style) -> Result<(), Failure> {
    let options: Map<String, Value> = args.options.iter().cloned().collect();
    let found = find(&args.challenge, &options)?;
    let seed = args.seed.clone().unwrap_or_else(|| Seed::from_number(0));
    let plan = CheckPlan { seed: seed.clone(), games: args.games, ..CheckPlan::default() };
    let target = if style == Style::Json { ProgressDrawTarget::hidden() } else { ProgressDrawTarget::stderr() };
    let spinner = ProgressBar::with_draw_target(None, target);
    spinner.enable_steady_tick(Duration::from_millis(200));
    let begins = |check: &'static str| {
        let asked = CHECKS.iter().find(|(name, _)| *name == check).map_or("", |(_, asked)| asked);
        spinner.set_message(format!("{check}: {asked}"));
    };
    let mut findings = check(&found.challenge, &plan, &|| found.last_fault(), &begins);
    let bots = match args.no_bots {
        true => Ok(Vec::new()),
        false => {
            spinner.set_message("bots: can the folder's agents play the challenge?");
            let_bots_play(&found, &seed, args)
        }
    };
    spinner.finish_and_clear();
    findings.extend(bots?);
    for finding in &mut findings {
        let is_allowed = args.allow.iter().any(|check| check == finding.check);
        if finding.severity == Severity::Wrong && is_allowed {
            finding.severity = Severity::Advice;
        }
    }
    let name = found.challenge.id();
    report("challenge", name, &format!("{name}: {}", found.challenge.metadata().name), &findings, style)
}

/// Prints findings about a script, under the key `what` in JSON.
///
/// # Errors
/// If one of them is a fault.
pub fn report(what: &str, name: &str, title: &str, findings: &[Finding], style: Style) -> Result<(), Failure> {
    let count = |severity| findings.iter().filter(|finding| finding.severity == severity).count();
    let (wrong, advice, fine) = (count(Severity::Wrong), count(Severity::Advice), count(Severity::Fine));
    match style {
        Style::Json => {
            print_line(&json!({what: name, "is_fine": wrong == 0, "findings": findings}))?;
        }
        Style::Pretty | Style::Compact => {
            let summary = format!("passed: {fine}, advice: {advice}, faults: {wrong}");
            print(&printable(&format!("{title}\n{}{summary}", describe(findings))))?;
        }
    }
    if wrong == 0 {
        return Ok(());
    }
    let faults = counted(wrong, "fault");
    Err(Failure::new(Exit::FaultyChallenge, format_args!("{name} has {faults}")))
}

fn describe(findings: &[Finding]) -> String {
    let mut text = String::new();
    for Finding { check, severity, what, evidence, place } in findings {
        let mark = match severity {
            Severity::Fine => '✓',
            Severity::Advice => '!',
            Severity::Wrong => '✗',
        };
        let place = place.as_ref().map(|place| format!(" ({place})")).unwrap_or_default();
        // Writing to a `String` can't fail.
        let _ = writeln!(text, "{mark} {check:<14} {what}{place}");
        for line in evidence {
            let _ = writeln!(text, "{INDENT}{line}");
        }
    }
    text
}

/// Lets each bot of the folder play a match against itself.
fn let_bots_play(found: &FoundChallenge, seed: &Seed, args: &CheckChallengeArgs) -> Result<Vec<Finding>, Failure> {
    let Some(folder) = &found.folder else { return Ok(Vec::new()) };
    let bots = bots_in(&folder.join("bots"));
    if bots.is_empty() {
        let what = "there are no agents (executable files in the folder bots), so nothing shows that the challenge can be played well";
        return Ok(vec![Finding::advice(BOTS, what)]);
    }
    let called_off = interrupt::flag()?;
    let confinement = confinement(&args.sandbox)?;
    let game = found.game();
    let usual = found.challenge.resolve(&Map::new()).map_err(|error| Failure::caused(Exit::Internal, &error))?;
    let seats = found.challenge.seats(&usual);
    let mut findings = Vec::new();
    for bot in bots {
        let agent = find_agent(&bot)?;
        let plan = MatchPlan {
            game,
            options: &Map::new(),
            seed: seed.clone(),
            limits: game.limits,
            agents: vec![&agent; seats],
            confinement: &confinement,
            adjudication: None,
        };
        let result = play_match(&plan, None, None, &called_off).map_err(explain)?.result;
        let name = &result.seats[0].agent.name;
        let scores: Vec<String> = result.seats.iter().map(|seat| arena_report::number_of(seat.score)).collect();
        let out = result.seats.iter().find(|seat| seat.verdict.is_some());
        let epochs = counted(result.epochs, "epoch");
        findings.push(match (out, result.outcome.termination.as_ref()) {
            (Some(seat), _) => {
                let detail = seat.detail.clone().unwrap_or_default();
                Finding::wrong(BOTS, format!("{name} against itself was disqualified: {detail}"))
            }
            (None, "GAME_ENDED") => {
                Finding::fine(BOTS, format!("{name} against itself: {} after {epochs}", scores.join(" : ")))
            }
            (None, other) => {
                Finding::wrong(BOTS, format!("a match of {name} against itself didn't end: {other} after {epochs}"))
            }
        });
    }
    Ok(findings)
}

/// Lists the executable files of a folder by name.
fn bots_in(folder: &Path) -> Vec<String> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    let is_executable = |path: &Path| {
        let is_file = path.metadata().is_ok_and(|metadata| metadata.is_file());
        is_file && rustix::fs::access(path, rustix::fs::Access::EXEC_OK).is_ok()
    };
    let paths = entries.filter_map(Result::ok).map(|entry| entry.path()).filter(|path| is_executable(path));
    let mut bots: Vec<String> = paths.filter_map(|path| path.to_str().map(str::to_owned)).collect();
    bots.sort();
    bots
}
