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
    let mut words = ["arena", "tournament", "run"].map(str::to_owned).to_vec();
    words.push(match &plan.script {
        Some(script) => script.folder.display().to_string(),
        None => plan.game.clone(),
    });
    let mut add = |option: &str, value: String| words.extend([option.to_owned(), value]);
    for agent in plan.agents.iter().filter(|agent| words_of(agent).is_none()) {
        add("--agent", format!("{}={}", agent.name, agent.path));
    }
    if plan.format != Format::RoundRobin {
        add("--format", plan.format.to_string());
    }
    match plan.format.info().is_adaptive {
        true => add("--games", (plan.rounds * if plan.paired { plan.seats } else { 1 }).to_string()),
        false => add("--rounds", plan.rounds.to_string()),
    }
    add("--seats", plan.seats.to_string());
    add("--seed", seed(plan));
    match plan.stop {
        Some(Stop::Margin(margin)) => add("--until-margin", margin.to_string()),
        // The JSON keys in the plan are also the keys of the option.
        Some(Stop::Sprt(sprt)) => {
            if let Ok(Value::Object(parts)) = serde_json::to_value(sprt) {
                let part = |(key, value): (&String, &Value)| {
                    format!("{key}={}", value.as_str().map_or_else(|| value.to_string(), str::to_owned))
                };
                add("--sprt", parts.iter().map(part).collect::<Vec<_>>().join(","));
            }
        }
        None => {}
    }
    // The option `agreements` follows from adjudication.
    let is_implied = |key: &str| key == "agreements" && plan.adjudication.is_some();
    for (key, value) in plan.options.iter().filter(|(key, _)| !is_implied(key)) {
        add("--set", format!("{key}={value}"));
    }
    if let Some(openings) = &plan.openings {
        add("--openings", openings.book.clone());
    }
    if let Some(rule) = plan.adjudication.and_then(|rules| rules.draw) {
        let DrawRule { move_number, move_count, score } = rule;
        add("--draw", format!("movenumber={move_number},movecount={move_count},score={score}"));
    }
    if let Some(rule) = plan.adjudication.and_then(|rules| rules.resign) {
        let ResignRule { move_count, score, two_sided } = rule;
        add("--resign", format!("movecount={move_count},score={score},twosided={two_sided}"));
    }
    match plan.time_control {
        Some(TimeControl::Move(_)) => {
            let text = plan.time_control.map(|control| control.to_string()).unwrap_or_default();
            add("--st", text.trim_start_matches("st=").to_owned());
        }
        Some(control) => add("--tc", control.to_string()),
        None => {}
    }
    let usual = match plan.time_control {
        Some(control) => Some(control.limits()),
        None => plan.game().ok().map(|game| game.limits),
    };
    if usual.is_none_or(|usual| usual.step_ms != plan.limits.step_ms) {
        add("--step-ms", plan.limits.step_ms.to_string());
    }
    if usual.is_none_or(|usual| usual.bank_ms != plan.limits.bank_ms) {
        add("--bank-ms", plan.limits.bank_ms.to_string());
    }
    for (option, ms) in [("--startup-ms", plan.start_limits.startup_ms), ("--ping-ms", plan.start_limits.ping_ms)] {
        if let Some(ms) = ms {
            add(option, ms.to_string());
        }
    }
    match plan.sandbox {
        // Only servers require the sandbox. The command line reports whether the sandbox is in force, so `On` is
        // enough.
        SandboxMode::On | SandboxMode::Required => {}
        SandboxMode::NoNamespaces => add("--sandbox", "no-namespaces".to_owned()),
        SandboxMode::Off => add("--sandbox", "off".to_owned()),
    }
    let memory = plan.sandbox_limits.memory_bytes;
    if let Some(bytes) = memory.filter(|_| memory != Limits::default().memory_bytes) {
        add("--memory", (bytes >> 20).to_string());
    }
    for path in &plan.expose {
        add("--expose", path.display().to_string());
    }
    // The option sets the dialect of all agents, so the command has it only if all agents have the same dialect.
    // Manifests can set different dialects.
    if let Some(first) = plan.agents.first().map(|agent| agent.dialect)
        && first != Dialect::default()
        && plan.agents.iter().all(|agent| agent.dialect == first)
        && let Ok(Value::String(name)) = serde_json::to_value(first)
    {
        add("--dialect", name);
    }
    if plan.agents.iter().any(|agent| agent.agent_id.is_some()) {
        add("--agent-ids", "names".to_owned());
    }
    if !plan.shares_core {
        add("--affinity", "any".to_owned());
    }
    if !plan.paired {
        words.push("--no-pairs".to_owned());
    }
    for agent in &plan.agents {
        if let Some(command) = words_of(agent) {
            words.push("--".to_owned());
            words.extend(command);
        }
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

/// Returns the words of an agent's command line; `None` if the user gave a path or URL.
fn words_of(agent: &Entrant) -> Option<Vec<String>> {
    let AgentAddress::Command { program, args, .. } = &agent.reach else { return None };
    let (first, rest) = agent.path.split_once(' ')?;
    let is_program = Path::new(first).file_name() == program.file_name();
    let file = |arg: &String| Path::new(arg).file_name().map(|name| name.to_string_lossy().into_owned());
    let is_last = args.last().is_some_and(|arg| rest.ends_with(&file(arg).unwrap_or_else(|| arg.clone())));
    (is_program && is_last).then(|| [first.to_owned()].into_iter().chain(args.iter().cloned()).collect())
}
