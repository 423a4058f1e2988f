//! The command that plays a tournament again.

use std::fmt::Write;
use std::path::Path;

use arena_model::{Dialect, DrawRule, Limits, ResignRule, SandboxMode, TimeControl};
use arena_tournament::{AgentAddress, Entrant, Format, Record, Stop, TournamentPlan};
use serde_json::Value;

use crate::text::shell_word;

/// Formats the seed as the command line takes it: an integer if it fits in 64 bits, else 64 hexadecimal digits.
pub fn seed(plan: &TournamentPlan) -> String {
    match plan.seed.strip_prefix("0".repeat(48).as_str()).map(|low| u64::from_str_radix(low, 16)) {
        Some(Ok(number)) => number.to_string(),
        _ => plan.seed.clone(),
    }
}

/// Returns the command that plays the tournament again, with the agents at the same paths.
pub fn command(record: &Record) -> String {
    let plan = &record.plan;
    let game = plan.script.as_ref().map_or_else(|| plan.game.clone(), |script| script.folder.display().to_string());
    let mut words = ["arena", "tournament", "run", game.as_str()].map(str::to_owned).to_vec();
    let options = [pairing_options(plan), game_options(plan), time_options(plan), process_options(plan)].concat();
    words.extend(options.into_iter().flat_map(|(option, value)| [option.to_owned(), value]));
    if !plan.paired {
        words.push("--no-pairs".to_owned());
    }
    for command in plan.agents.iter().filter_map(words_of) {
        words.push("--".to_owned());
        words.extend(command);
    }
    let mut line = String::new();
    let mut is_command = false;
    for (at, word) in words.iter().enumerate() {
        // An option and its value share a line, and so do the words of an agent's command.
        let gap = match at {
            0 => "",
            _ if word == "--" || word.starts_with("--") && !is_command => " \\\n    ",
            _ => " ",
        };
        is_command |= word == "--";
        let _ = write!(line, "{gap}{}", shell_word(word));
    }
    line
}

/// Options with their values.
type Options = Vec<(&'static str, String)>;

/// Returns the options for the agents, pairings and seed, and the condition that ends the tournament.
fn pairing_options(plan: &TournamentPlan) -> Options {
    let paths = plan.agents.iter().filter(|agent| words_of(agent).is_none());
    let mut options: Options = paths.map(|agent| ("--agent", format!("{}={}", agent.name, agent.path))).collect();
    if plan.format != Format::RoundRobin {
        options.push(("--format", plan.format.to_string()));
    }
    options.push(match plan.format.info().is_adaptive {
        true => ("--games", (plan.rounds * if plan.paired { plan.seats } else { 1 }).to_string()),
        false => ("--rounds", plan.rounds.to_string()),
    });
    options.extend([("--seats", plan.seats.to_string()), ("--seed", seed(plan))]);
    match plan.stop {
        Some(Stop::Margin(margin)) => options.push(("--until-margin", margin.to_string())),
        // The JSON keys in the plan are also the keys of the option.
        Some(Stop::Sprt(sprt)) => {
            if let Ok(Value::Object(parts)) = serde_json::to_value(sprt) {
                let part = |(key, value): (&String, &Value)| {
                    format!("{key}={}", value.as_str().map_or_else(|| value.to_string(), str::to_owned))
                };
                options.push(("--sprt", parts.iter().map(part).collect::<Vec<_>>().join(",")));
            }
        }
        None => {}
    }
    options
}

/// Returns the options for the game, its start positions and adjudication.
fn game_options(plan: &TournamentPlan) -> Options {
    // The option `agreements` follows from adjudication.
    let is_implied = |key: &str| key == "agreements" && plan.adjudication.is_some();
    let set = plan.options.iter().filter(|(key, _)| !is_implied(key));
    let mut options: Options = set.map(|(key, value)| ("--set", format!("{key}={value}"))).collect();
    options.extend(plan.openings.iter().map(|openings| ("--openings", openings.book.clone())));
    if let Some(DrawRule { move_number, move_count, score }) = plan.adjudication.and_then(|rules| rules.draw) {
        options.push(("--draw", format!("movenumber={move_number},movecount={move_count},score={score}")));
    }
    if let Some(ResignRule { move_count, score, two_sided }) = plan.adjudication.and_then(|rules| rules.resign) {
        options.push(("--resign", format!("movecount={move_count},score={score},twosided={two_sided}")));
    }
    options
}

/// Returns the options for the agents' time, without those that the game or the time control implies.
fn time_options(plan: &TournamentPlan) -> Options {
    let mut options = Options::new();
    if let Some(control) = plan.time_control {
        let text = control.to_string();
        options.push(match control {
            TimeControl::Move(_) => ("--st", text.trim_start_matches("st=").to_owned()),
            _ => ("--tc", text),
        });
    }
    let usual = match plan.time_control {
        Some(control) => Some(control.limits()),
        None => plan.game().ok().map(|game| game.limits),
    };
    if usual.is_none_or(|usual| usual.step_ms != plan.limits.step_ms) {
        options.push(("--step-ms", plan.limits.step_ms.to_string()));
    }
    if usual.is_none_or(|usual| usual.bank_ms != plan.limits.bank_ms) {
        options.push(("--bank-ms", plan.limits.bank_ms.to_string()));
    }
    options.extend(plan.start_limits.startup_ms.map(|ms| ("--startup-ms", ms.to_string())));
    options.extend(plan.start_limits.ping_ms.map(|ms| ("--ping-ms", ms.to_string())));
    options
}

/// Returns the options for the agents' processes and their protocol.
fn process_options(plan: &TournamentPlan) -> Options {
    let mut options = Options::new();
    match plan.sandbox {
        // Only servers require the sandbox. The command line reports whether the sandbox is in force, so `On` is
        // enough.
        SandboxMode::On | SandboxMode::Required => {}
        SandboxMode::NoNamespaces => options.push(("--sandbox", "no-namespaces".to_owned())),
        SandboxMode::Off => options.push(("--sandbox", "off".to_owned())),
    }
    let memory = plan.sandbox_limits.memory_bytes;
    if let Some(bytes) = memory.filter(|_| memory != Limits::default().memory_bytes) {
        options.push(("--memory", (bytes >> 20).to_string()));
    }
    options.extend(plan.expose.iter().map(|path| ("--expose", path.display().to_string())));
    // The option sets the dialect of all agents, so the command has it only if all agents have the same dialect.
    // Manifests can set different dialects.
    if let Some(first) = plan.agents.first().map(|agent| agent.dialect)
        && first != Dialect::default()
        && plan.agents.iter().all(|agent| agent.dialect == first)
        && let Ok(Value::String(name)) = serde_json::to_value(first)
    {
        options.push(("--dialect", name));
    }
    if plan.agents.iter().any(|agent| agent.agent_id.is_some()) {
        options.push(("--agent-ids", "names".to_owned()));
    }
    if !plan.shares_core {
        options.push(("--affinity", "any".to_owned()));
    }
    options
}

/// Returns the words of an agent's command line; `None` if the user gave a path or URL.
fn words_of(agent: &Entrant) -> Option<Vec<String>> {
    let AgentAddress::Command { program, args, .. } = &agent.reach else { return None };
    let (first, rest) = agent.path.split_once(' ')?;
    let is_program = Path::new(first).file_name() == program.file_name();
    let file = |arg: &String| Path::new(arg).file_name().map(|name| name.to_string_lossy().into_owned());
    let is_last = args.last().is_some_and(|arg| rest.ends_with(&file(arg).unwrap_or_else(|| arg.clone())));
    (is_program && is_last).then(|| [first.to_owned()].into_iter().chain(args.iter().cloned()).collect())
}
