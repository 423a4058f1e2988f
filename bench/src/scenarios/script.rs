//! Whole PSI games by the built-in rules, in turn with the same games by a script in the reference server's format; and
//! single calls of that script.

mod calls;

use std::fs;
use std::path::Path;

use anyhow::Context as _;
use serde_json::json;
use tempfile::TempDir;

use crate::arguments::Arguments;
use crate::latency::median;
use crate::player_pool::{Round, Until};
use crate::psi::{SCRIPT, ServerKind, Step, StepLatencies};
use crate::report::{Goal, Report};
use crate::scenarios::games::{latencies_json, round_json};
use crate::server::{ArenaFolder, Server};

const NAME: &str = "script";

/// The script, which is also a test of `arena-script`.
const FILES: [(&str, &str); 2] = [
    ("challenge.json", include_str!("../../../crates/arena-script/tests/challenges/psi/challenge.json")),
    ("index.ts", include_str!("../../../crates/arena-script/tests/challenges/psi/index.ts")),
];

/// The numbers of connections that play. Four keep all cores busy, and are so few that requests don't wait in queues.
/// With 64, games by the built-in rules share more commits.
const CONNECTIONS: [usize; 2] = [4, 64];

/// A folder with the script, removed when dropped.
pub struct ScriptFolder {
    folder: TempDir,
}

impl ScriptFolder {
    /// Creates the folder below `work`.
    ///
    /// # Errors
    /// If the folder can't be written.
    pub fn new(work: &Path) -> anyhow::Result<ScriptFolder> {
        fs::create_dir_all(work).with_context(|| format!("could not create {}", work.display()))?;
        let work = fs::canonicalize(work).context("the folder for temporary data is gone")?;
        let folder = tempfile::tempdir_in(work).context("could not create a folder for the script")?;
        let script = folder.path().join(SCRIPT);
        fs::create_dir(&script).context("could not create the script's folder")?;
        for (name, text) in FILES {
            fs::write(script.join(name), text).with_context(|| format!("could not write {name}"))?;
        }
        Ok(ScriptFolder { folder })
    }

    /// Returns the text of an `arena.toml` that hosts the script.
    pub fn config(&self) -> String {
        format!("[scripts]\nfolders = [{}]\n", json!(self.folder.path()))
    }
}

/// Runs the scenario.
///
/// # Errors
/// If a server doesn't start or ends.
pub fn run(arguments: &Arguments, report: &mut Report) -> anyhow::Result<()> {
    eprintln!("script: single calls");
    calls::run(arguments, report)?;
    let work = arguments.work();
    let script = ScriptFolder::new(&work)?;
    let arena = ArenaFolder::new(&arguments.arena(), &work, Some(&script.config()))?;
    let arena = arena.start()?;
    for connections in CONNECTIONS {
        compare(arguments, report, &arena, connections)?;
    }
    arena.terminate()?;
    Ok(())
}

fn compare(arguments: &Arguments, report: &mut Report, arena: &Server, connections: usize) -> anyhow::Result<()> {
    let player_pool = arguments.player_pool(connections);
    let at = format!("{connections} connections");
    let (length, rounds) = (arguments.round()?, arguments.rounds());
    let warm_up = Until::Elapsed(length / 5);
    let mut faults = player_pool.play(arena, ServerKind::Arena, warm_up)?.faults;
    faults.merge(player_pool.play(arena, ServerKind::Script, warm_up)?.faults);

    let (mut of_rules, mut of_script) = (Vec::new(), Vec::new());
    for number in 1..=rounds {
        eprintln!("script: {at}, round {number} of {rounds}");
        of_rules.push(player_pool.play(arena, ServerKind::Arena, Until::Elapsed(length))?);
        of_script.push(player_pool.play(arena, ServerKind::Script, Until::Elapsed(length))?);
    }
    let games = |rounds: &[Round]| median(rounds.iter().map(|round| round.games as f64 / round.spent.seconds));
    let share = median(of_script.iter().zip(&of_rules).map(|(script, rules)| script.rate() / rules.rate()));
    report
        .row(NAME, format!("{at}: games/s by a script"), games(&of_script), "")
        .note(format!("built in {:.0}", games(&of_rules)));
    report.row(NAME, format!("{at}: share of what is built in"), share * 100.0, "%").goal(Goal::AtLeast(60.0));
    let mut latencies = StepLatencies::default();
    of_script.iter().for_each(|round| latencies.merge(&round.latencies));
    for step in [Step::Create, Step::Join, Step::Guess] {
        report.p99(NAME, &format!("{at}, by a script: {}", step.name()), latencies.of(step).summary());
    }
    for round in of_script.iter().chain(&of_rules) {
        faults.merge(round.faults.clone());
    }
    report.row(NAME, format!("{at}: errors"), faults.count() as f64, "").goal(Goal::AtMost(0.0));
    report.faults(format!("{NAME}, {at}"), &faults);
    let detail = json!({
        "script_rounds": of_script.iter().map(round_json).collect::<Vec<_>>(),
        "built_in_rounds": of_rules.iter().map(round_json).collect::<Vec<_>>(),
        "script_latencies": latencies_json(&latencies),
    });
    report.detail(NAME, at, detail);
    Ok(())
}
