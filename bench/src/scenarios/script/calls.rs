//! Single calls of a script: the duration of each call as measured in the engine's process, the worker's CPU time, and
//! the worker's memory per challenge type.

use std::fs;
use std::time::Instant;

use anyhow::{Context as _, anyhow, bail, ensure};
use arena_model::{
    After, ChallengeType, Phase, Seed, Session, SessionFacts, SessionPolicy, Timestamp, Transition, act, join, open,
};
use arena_script::{Folder, Limits, Problem, Sandbox, ScriptChallenge};
use serde::Deserialize;
use serde_json::{Map, json};

use super::{FILES, NAME};
use crate::arguments::Arguments;
use crate::latency::Latencies;
use crate::psi::SCRIPT;
use crate::report::{Goal, Report};
use crate::usage::Usage;

/// The number of games before the measurement. These games start the worker and read all files.
const WARM_UP: u64 = 50;

/// The number of challenge types in one worker.
const TYPES: u64 = 10;

/// Runs the scenario.
///
/// # Errors
/// If the script misbehaves.
pub fn run(arguments: &Arguments, report: &mut Report) -> anyhow::Result<()> {
    let games = arguments.size(None, 2000, 200);
    // The path is made absolute, because workers start in another folder.
    let arena = fs::canonicalize(arguments.arena()).context("the arena's binary doesn't exist")?;
    let sandbox = Sandbox::new(arena, ["run-scripts".into()], Limits::default());
    let mut types = Vec::new();
    let mut rss_kib = Vec::new();
    for number in 1..=TYPES {
        let one = load(number, &sandbox)?;
        // A worker keeps the challenge types that it has run.
        play(&one, number, &mut Latencies::default())?;
        types.push(one);
        rss_kib.push(Usage::of(only_child()?)?.rss_kib);
    }
    let (challenge, worker) = (&types[0], only_child()?);
    for number in 0..WARM_UP {
        play(challenge, number, &mut Latencies::default())?;
    }
    let mut latencies = Latencies::default();
    let before = Usage::of(worker)?;
    for number in 0..games {
        play(challenge, number, &mut latencies)?;
    }
    let spent = Usage::of(worker)?;
    let summary = latencies.summary();
    report.p99(NAME, "a call alone, as the engine sees it", summary).goal(Goal::AtMost(1.0));
    let cpu_ms = (spent.cpu_us - before.cpu_us) as f64 / 1e3 / summary.count as f64;
    report
        .row(NAME, "a call alone: CPU of the worker", cpu_ms, "ms")
        .note(format!("mean of {} calls, one at a time", summary.count));
    let each = rss_kib[rss_kib.len() - 1].saturating_sub(rss_kib[0]) as f64 / (TYPES - 1) as f64 / 1024.0;
    report.row(NAME, "memory of another challenge type", each, "MiB").goal(Goal::AtMost(4.0)).note(format!(
        "a worker with one type uses {} KiB, with two {}, with {TYPES} {}, after {games} more games {}",
        rss_kib[0],
        rss_kib[1],
        rss_kib[rss_kib.len() - 1],
        spent.rss_kib,
    ));
    let detail = json!({"latencies": summary, "cpu_ms": cpu_ms, "rss_kib_by_types": rss_kib});
    report.detail(NAME, "calls", detail);
    Ok(())
}

/// Loads PSI as a script. Each `number` gives another version of the script.
fn load(number: u64, sandbox: &Sandbox) -> anyhow::Result<ScriptChallenge> {
    let temp = tempfile::tempdir().context("could not create a folder for the script")?;
    let path = temp.path().join(SCRIPT);
    fs::create_dir(&path).context("could not create the script's folder")?;
    for (name, text) in FILES {
        let comment = if name.ends_with(".ts") { format!("// {number}\n") } else { String::new() };
        fs::write(path.join(name), comment + text).with_context(|| format!("could not write {name}"))?;
    }
    let told = |problems: Vec<Problem>| anyhow!("the script can't be played: {problems:?}");
    let folder = Folder::read(&path).map_err(|problem| told(vec![problem]))?;
    ScriptChallenge::load(&folder, sandbox).map_err(told)
}

/// Plays a game from its creation to its end, and times each call.
fn play(challenge: &ScriptChallenge, number: u64, latencies: &mut Latencies) -> anyhow::Result<()> {
    let policy = SessionPolicy::UNBOUNDED;
    let now = Timestamp(1_700_000_000_000);
    let id = |last: u64| format!("00000000-0000-7000-8000-{last:012}");
    let facts = SessionFacts {
        id: id(number).parse()?,
        challenge: challenge.id().to_owned(),
        script: None,
        created_at: now,
        seed: Some(Seed::from_number(number)),
        options: challenge.resolve(&Map::new()).map_err(|error| anyhow!("{error}"))?,
        rated: None,
        is_unlisted: false,
        invites: (1..=2).map(|seat| format!("inv_{}", id(seat)).parse()).collect::<Result<_, _>>()?,
    };
    let invites = facts.invites.clone();
    let start = Instant::now();
    let mut session = open(facts, challenge, policy.inactivity).map_err(|refused| anyhow!("{refused}"))?;
    latencies.record(start.elapsed());
    for invite in &invites {
        let start = Instant::now();
        let joined = join(&session, challenge, &policy, *invite, None, now)?;
        latencies.record(start.elapsed());
        session = after(joined)?;
    }
    let dealt: Dealt = serde_json::from_str(&session.state).context("the script's state has an unexpected format")?;
    let guess = dealt.intersection_set.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    for invite in &invites {
        let start = Instant::now();
        let guessed = act(&session, challenge, &policy, *invite, Some("guess"), &guess, now)?;
        latencies.record(start.elapsed());
        session = after(guessed)?;
    }
    ensure!(matches!(session.phase, Phase::Ended { .. }), "the game has not ended: {:?}", session.phase);
    Ok(())
}

/// The state of the script.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Dealt {
    intersection_set: Vec<u32>,
}

fn after(transition: Transition) -> anyhow::Result<Session> {
    match transition.after {
        After::Changed(session) => Ok(*session),
        other => bail!("the transition has no session: {other:?}"),
    }
}

/// Returns the process id of the only child, the worker.
fn only_child() -> anyhow::Result<u32> {
    let mut children = Vec::new();
    for task in fs::read_dir("/proc/self/task").context("could not read /proc/self/task")? {
        let listed =
            fs::read_to_string(task?.path().join("children")).context("could not read the list of children")?;
        children.extend(listed.split_whitespace().map(str::parse::<u32>).collect::<Result<Vec<_>, _>>()?);
    }
    match children[..] {
        [worker] => Ok(worker),
        _ => bail!("expected one worker process, found {children:?}"),
    }
}
