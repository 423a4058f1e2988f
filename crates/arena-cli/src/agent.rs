//! `arena agent`: faults of an agent, reported to its author; new agents; and uploads.

mod new;
mod upload;

use std::fmt::Write;

use arena_match::{CheckPlan, CheckReport, Finding, Severity, check, private};
use arena_model::{GameType, Seed};
use arena_report::listed;

use crate::args::{AgentVerb, CheckArgs, Global};
use crate::exit::{Exit, Failure};
use crate::interrupt;
use crate::matches::explain;
use crate::matches::settings::{confinement, find_agent, find_command, find_game, print_notes};
use crate::output::{Style, counted, note, print, printable};

/// The indentation of details.
const INDENT: &str = "        ";

/// The label of the line that the agent sent.
const LINE: &str = "line from the agent";

pub fn run(verb: AgentVerb, global: &Global, style: Style) -> Result<(), Failure> {
    match verb {
        AgentVerb::Check(args) => check_agent(&args, style),
        AgentVerb::New(args) => new::run(&args, style),
        AgentVerb::Upload(args) => upload::run(&args, global, style),
    }
}

fn check_agent(args: &CheckArgs, style: Style) -> Result<(), Failure> {
    let agent = match &args.agent {
        Some(path) => find_agent(path)?,
        None => find_command(&args.command)?,
    };
    print_notes(std::slice::from_ref(&agent));
    let games: Vec<&'static GameType> = match &args.game {
        Some(name) => vec![find_game(name)?],
        None => arena_games::colosseum_games().collect(),
    };
    let called_off = interrupt::flag()?;
    let mut confinement = confinement(&args.sandbox)?;
    confinement.private = private(std::slice::from_ref(&agent), &confinement.expose, confinement.mode, &[])
        .map_err(|error| Failure::new(Exit::Usage, error))?;
    if !confinement.private.is_empty() {
        let hidden: Vec<String> = confinement.private.iter().map(|path| path.display().to_string()).collect();
        note(&format!("these files of the arena in the agent's folder are hidden from it: {}", listed(&hidden)));
    }
    // The seed is fixed, so that a repeated check finds the same faults.
    let plan = CheckPlan { agent: &agent, games: &games, seed: &Seed::from_number(0), confinement: &confinement };
    let checked = check(plan, &called_off).map_err(explain)?;
    match style {
        Style::Json => {
            print(&serde_json::to_string(&checked).map_err(|error| Failure::caused(Exit::Internal, &error))?)?;
        }
        Style::Pretty | Style::Compact => print(printable(&describe(&checked)).trim_end())?,
    }
    if checked.is_fine {
        return Ok(());
    }
    let wrong = checked.findings.iter().filter(|finding| finding.severity == Severity::Wrong).count();
    let faults = counted(wrong as u64, "fault", "faults");
    Err(Failure::new(Exit::FaultyAgent, format_args!("{} has {faults}", checked.agent)))
}

fn describe(checked: &CheckReport) -> String {
    let version = checked.version.as_deref().map(|version| format!(" {version}")).unwrap_or_default();
    let mut text = format!("agent   {} ({}{version})\n", checked.agent, checked.name);
    for finding in &checked.findings {
        add_finding(&mut text, finding);
    }
    for sentence in &checked.fine {
        add(&mut text, format_args!("fine    {sentence}"));
    }
    let others: Vec<String> = (checked.games.iter())
        .filter(|(_, found)| !found.plays)
        .map(|(name, found)| match found.findings.iter().find(|finding| finding.severity == Severity::Wrong) {
            Some(finding) => format!("{name} ({})", finding.what),
            None => format!("{name} (does nothing)"),
        })
        .collect();
    if checked.games.len() > 1 && !others.is_empty() {
        add(&mut text, format_args!("games   not played by the agent: {}", others.join("; ")));
    }
    text
}

fn add_finding(text: &mut String, finding: &Finding) {
    let severity = match finding.severity {
        Severity::Wrong => "wrong ",
        Severity::Advice => "advice",
    };
    let game = finding.game.map(|game| format!("{game}: ")).unwrap_or_default();
    let times = if finding.times > 1 { format!(" ({} times)", finding.times) } else { String::new() };
    add(text, format_args!("{severity}  {game}{}{times}", finding.what));
    let parts = [("message to the agent", &finding.message), (LINE, &finding.line), ("end of the log", &finding.log)];
    for (name, part) in parts {
        // For advice, the output shows only the line that the agent sent.
        let Some(part) = part.as_ref().filter(|_| finding.severity == Severity::Wrong || name == LINE) else {
            continue;
        };
        let part = part.replace('\n', &format!("\n{INDENT}  "));
        add(text, format_args!("{INDENT}{name}: {part}"));
    }
    add(text, format_args!("{INDENT}fix:     {}", finding.advice));
}

fn add(text: &mut String, line: std::fmt::Arguments<'_>) {
    // Writing to a `String` can't fail.
    let _ = writeln!(text, "{line}");
}
