//! `arena agent check`: faults of an agent, reported to its author.

use arena_match::{CheckPlan, CheckReport, Finding, Severity, check};
use arena_model::{GameType, Seed};
use arena_report::listed;
use clap::Args;

use crate::exit::{Exit, Failure};
use crate::interrupt;
use crate::matches::explain;
use crate::matches::options::SandboxArgs;
use crate::matches::settings::{confine, find_agent, find_command, find_game, print_notes};
use crate::output::{Style, counted, note, print, print_line, printable};

/// Options of `arena agent check`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  arena agent check ./bot                     in all games; it must play at least one
  arena agent check ./bot --game snake        it must play this game
  arena agent check http://127.0.0.1:8000/ --game chess
  arena agent check --game food_catcher -- python3 bot.py --level 3
  arena agent check ./bot --json

The agent is started several times, in the same sandbox as in a match. The runs send usual states, unknown keys, and the \
state in each place of the message where it may be, and then ask the agent to stop. `wrong` loses matches, `advice` \
doesn't, and `fine` lists the checks that passed. The exit code is 12 if something is wrong, else 0.")]
pub struct CheckArgs {
    /// Agent: a file, a folder, a URL or `py:FILE.py:FUNCTION`.
    #[arg(value_name = "PATH", required_unless_present = "command", conflicts_with = "command")]
    pub agent: Option<String>,
    /// Game that the agent must play [default: any one]
    #[arg(long, value_name = "GAME")]
    pub game: Option<String>,
    /// Agent as a command line.
    #[arg(last = true, value_name = "COMMAND", allow_hyphen_values = true)]
    pub command: Vec<String>,
    #[command(flatten)]
    pub sandbox: SandboxArgs,
}

/// The indentation of details.
const INDENT: &str = "        ";

/// The label of the line that the agent sent.
const LINE: &str = "line from the agent";

pub fn run(args: &CheckArgs, style: Style) -> Result<(), Failure> {
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
    let confinement = confine(&args.sandbox, std::slice::from_ref(&agent), &[])?;
    if !confinement.private.is_empty() {
        let hidden: Vec<String> = confinement.private.iter().map(|path| path.display().to_string()).collect();
        note(&format!("these files of the arena in the agent's folder are hidden from it: {}", listed(&hidden)));
    }
    // The seed is fixed, so that a repeated check finds the same faults.
    let plan = CheckPlan { agent: &agent, games: &games, seed: &Seed::from_number(0), confinement: &confinement };
    let checked = check(plan, &called_off).map_err(explain)?;
    match style {
        Style::Json => print_line(&checked)?,
        Style::Pretty | Style::Compact => print(printable(&describe(&checked)).trim_end())?,
    }
    if checked.is_fine {
        return Ok(());
    }
    let faults = checked.findings.iter().filter(|finding| finding.severity == Severity::Wrong).count();
    Err(Failure::new(Exit::FaultyAgent, format_args!("{} has {}", checked.agent, counted(faults, "fault"))))
}

fn describe(checked: &CheckReport) -> String {
    let version = checked.version.as_deref().map(|version| format!(" {version}")).unwrap_or_default();
    let mut text = format!("agent   {} ({}{version})\n", checked.agent, checked.name);
    text.extend(checked.findings.iter().map(describe_finding));
    text.extend(checked.fine.iter().map(|sentence| format!("fine    {sentence}\n")));
    let others: Vec<String> = (checked.games.iter())
        .filter(|(_, found)| !found.plays)
        .map(|(name, found)| match found.findings.iter().find(|finding| finding.severity == Severity::Wrong) {
            Some(finding) => format!("{name} ({})", finding.what),
            None => format!("{name} (does nothing)"),
        })
        .collect();
    if checked.games.len() > 1 && !others.is_empty() {
        text += &format!("games   not played by the agent: {}\n", others.join("; "));
    }
    text
}

fn describe_finding(finding: &Finding) -> String {
    let severity = match finding.severity {
        Severity::Wrong => "wrong ",
        Severity::Advice => "advice",
    };
    let game = finding.game.map(|game| format!("{game}: ")).unwrap_or_default();
    let times = if finding.times > 1 { format!(" ({} times)", finding.times) } else { String::new() };
    let mut text = format!("{severity}  {game}{}{times}\n", finding.what);
    let parts = [("message to the agent", &finding.message), (LINE, &finding.line), ("end of the log", &finding.log)];
    for (name, part) in parts {
        // For advice, the output shows only the line that the agent sent.
        if let Some(part) = part.as_ref().filter(|_| finding.severity == Severity::Wrong || name == LINE) {
            text += &format!("{INDENT}{name}: {}\n", part.replace('\n', &format!("\n{INDENT}  ")));
        }
    }
    text + &format!("{INDENT}fix:     {}\n", finding.advice)
}
