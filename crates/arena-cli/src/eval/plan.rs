//! `arena eval plan`: the games of a run file, and an estimate of tokens, dollars and hours.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use arena_eval::{BudgetSpec, Estimate, EvalFolder, EvalPlan, EvalRun, PlannedGame, RunEnd, RunOptions, estimate};
use arena_report::shell_word;
use clap::Args;
use serde_json::{Value, json};

use super::amounts::{dollars, duration, of_cap, thousands, tokens};
use super::run::{Purpose, check_keys, file_name, play_games, reasons};
use super::{load, matrix, read_plan, refused, title};
use crate::exit::{Exit, Failure};
use crate::files::temporary_folder;
use crate::output::{Style, note, print, printable};

/// Options of `arena eval plan`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  arena eval plan autumn.toml
  arena eval plan autumn.toml --earlier summer               estimate from an earlier run
  arena eval plan autumn.toml --pilot 2                      play 2 games of each cell first, and estimate from them
  arena eval plan autumn.toml --pilot 2 --pilot-dir autumn   keep these games; `run --out autumn` continues with them
  arena eval plan autumn.toml --json

An estimate needs finished games of the same challenges. Without --earlier and --pilot, the command calls no model. A pilot obeys \
the caps of the run file.")]
pub struct PlanEvalArgs {
    /// Run file.
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// Folder of an earlier run to estimate from; may be repeated.
    #[arg(long, value_name = "DIR", num_args = 1..)]
    pub earlier: Vec<PathBuf>,
    /// Play the first K games of each cell with the models, and estimate from them.
    #[arg(long, value_name = "K", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub pilot: Option<u32>,
    /// Folder for the games of the pilot; a later run continues with them [default: a temporary folder]
    #[arg(long, value_name = "DIR", requires = "pilot")]
    pub pilot_dir: Option<PathBuf>,
}

const PILOT_OPEN_GAMES: usize = 100;

/// The time in which a pilot repeats a failing call.
const PILOT_PATIENCE: Duration = Duration::from_secs(60);

pub fn run(args: &PlanEvalArgs, style: Style) -> Result<(), Failure> {
    let plan = read_plan(&args.file)?;
    let mut earlier: Vec<EvalRun> = args.earlier.iter().map(|dir| load(dir)).collect::<Result<_, _>>()?;
    if style != Style::Json {
        print(&printable(&title(&plan)))?;
        print(&matrix::games(&plan))?;
        print(&printable(&details(&plan)))?;
    }
    if let Some(games) = args.pilot {
        earlier.push(pilot(&args.file, games as usize, args.pilot_dir.as_deref(), style)?);
    }
    let estimate = estimate(&plan, &earlier);
    if style == Style::Json {
        return print(&to_json(&plan, estimate.as_ref()).to_string());
    }
    match estimate {
        Some(estimate) => print(&sentence(&estimate, &plan.file.budget)),
        None if earlier.is_empty() => print(&format!(
            "No estimate: add --earlier DIR with an earlier run, or play one game of each cell first; \
             `arena eval run --out` continues in its folder:\n\
             arena eval plan {} --pilot 1 --pilot-dir {}",
            shell_word(&args.file.display().to_string()),
            shell_word(&file_name(&plan.file.name))
        )),
        None => print("No estimate: the earlier runs have no finished game of these models and challenges."),
    }
}

/// Plays the first games of each cell in a folder of their own, and loads them.
fn pilot(file: &Path, games: usize, dir: Option<&Path>, style: Style) -> Result<EvalRun, Failure> {
    let mut plan = read_plan(file)?;
    plan.games = first_of_cells(plan.games, games);
    let temporary = temporary_folder("arena-pilot-", Exit::CannotWrite)?;
    let dir = dir.unwrap_or(temporary.path());
    check_keys(&plan, dir)?;
    let mut folder = EvalFolder::create_or_open(dir, plan, false).map_err(refused)?;
    let options = RunOptions { open_games: Some(PILOT_OPEN_GAMES), patience: PILOT_PATIENCE };
    let (end, status) = play_games(&mut folder, &options, style, Purpose::Pilot)?;
    drop(folder);
    match end {
        RunEnd::Complete => {}
        RunEnd::Interrupted => {
            return Err(Failure::new(Exit::Interrupted, "stopped the pilot; there is no estimate"));
        }
        RunEnd::Budget(cap) => note(&format!("the pilot reached the cap `{cap}`")),
        RunEnd::Paused(models) => note(&format!("the pilot lacks games of paused models: {}", reasons(&models))),
    }
    let run = load(dir)?;
    if run.games.is_empty() {
        let sentence = format!("the pilot finished none of its {} games; there is no estimate", status.games);
        return Err(Failure::new(Exit::ModelFailed, sentence));
    }
    Ok(run)
}

/// Returns the first `most` games of each cell: of each challenge and combination of agents.
fn first_of_cells(games: Vec<PlannedGame>, most: usize) -> Vec<PlannedGame> {
    let mut counts: BTreeMap<(usize, Vec<usize>), usize> = BTreeMap::new();
    let mut is_first = |game: &PlannedGame| {
        let mut agents = game.seats.clone();
        agents.sort_unstable();
        let count = counts.entry((game.challenge, agents)).or_default();
        *count += 1;
        *count <= most
    };
    games.into_iter().filter(|game| is_first(game)).collect()
}

/// Returns the seeds, the seats and the caps of a plan in sentences.
fn details(plan: &EvalPlan) -> String {
    let file = &plan.file;
    let challenges: Vec<String> = plan
        .challenges
        .iter()
        .enumerate()
        .map(|(index, challenge)| {
            let games = plan.games.iter().filter(|game| game.challenge == index).count();
            format!("{} ({} seats, {} games)", challenge.label, challenge.seats, thousands(games as u64))
        })
        .collect();
    let budget = &file.budget;
    let caps: Vec<String> = [
        budget.usd.map(|usd| format!("{} USD", dollars(usd))),
        budget.tokens.map(|most| format!("{} tokens", tokens(most))),
        budget.wall_hours.map(|hours| duration(hours * 3600.0)),
        budget.usd_per_seat.map(|usd| format!("{} USD for a seat of a game", dollars(usd))),
    ]
    .into_iter()
    .flatten()
    .collect();
    let caps = if caps.is_empty() { "none".to_owned() } else { caps.join(", ") };
    let seeds = file.seeds;
    format!("challenges: {}\nseeds: {seeds} for each challenge\ncaps: {caps}", challenges.join(", "))
}

fn sentence(estimate: &Estimate, budget: &BudgetSpec) -> String {
    let usd = match estimate.usd {
        Some(usd) => format!("{} USD", of_cap(dollars(usd), budget.usd.map(dollars))),
        None if estimate.calls == 0 => "no cost".to_owned(),
        None => "unknown cost, since the run file has no prices".to_owned(),
    };
    let used = estimate.input_tokens + estimate.output_tokens;
    let mut text = format!(
        "Estimate: {} games, {} calls, {} tokens ({} input, {} output), {usd}, {}\nBasis: {}",
        thousands(estimate.games),
        thousands(estimate.calls),
        of_cap(tokens(used), budget.tokens.map(tokens)),
        tokens(estimate.input_tokens),
        tokens(estimate.output_tokens),
        duration(estimate.hours * 3600.0),
        printable(&estimate.basis)
    );
    for (cap, is_over) in [
        ("usd", budget.usd.zip(estimate.usd).is_some_and(|(cap, usd)| usd > cap)),
        ("tokens", budget.tokens.is_some_and(|cap| used > cap)),
        ("wall_hours", budget.wall_hours.is_some_and(|cap| estimate.hours > cap)),
    ] {
        if is_over {
            text += &format!("\nThe estimate is above the cap `{cap}`: the run would stop early.");
        }
    }
    text
}

fn to_json(plan: &EvalPlan, estimate: Option<&Estimate>) -> Value {
    let games = |challenge: usize| plan.games.iter().filter(|game| game.challenge == challenge).count();
    let challenges: Vec<Value> = plan
        .challenges
        .iter()
        .enumerate()
        .map(|(index, challenge)| json!({"name": challenge.label, "seats": challenge.seats, "games": games(index)}))
        .collect();
    let agents: Vec<&str> = plan.agents.iter().map(|agent| agent.name.as_str()).collect();
    let estimate = estimate.map(|estimate| {
        json!({
            "games": estimate.games, "calls": estimate.calls, "input_tokens": estimate.input_tokens,
            "output_tokens": estimate.output_tokens, "usd": estimate.usd, "hours": estimate.hours, "basis": estimate.basis,
        })
    });
    json!({
        "name": plan.file.name, "seeds": plan.file.seeds, "agents": agents, "challenges": challenges,
        "games": plan.games.len(), "estimate": estimate,
    })
}

#[cfg(test)]
mod tests {
    use arena_model::Seed;
    use expect_test::expect;

    use super::*;

    #[test]
    fn a_pilot_plays_the_first_games_of_each_cell() {
        let game = |id: &str, challenge, seats: &[usize]| PlannedGame {
            id: id.to_owned(),
            challenge,
            seed_number: 0,
            seed: Seed([0; 32]),
            seats: seats.to_vec(),
        };
        let games = vec![
            game("a", 0, &[0, 1]),
            // The same agents on other seats.
            game("b", 0, &[1, 0]),
            game("c", 0, &[0, 0]),
            game("d", 1, &[0, 1]),
            game("e", 0, &[0, 1]),
        ];
        let ids = |most| first_of_cells(games.clone(), most).into_iter().map(|game| game.id).collect::<String>();
        assert_eq!([1, 2, 3].map(ids), ["acd", "abcd", "abcde"]);
    }

    #[test]
    fn an_estimate_is_compared_with_the_caps() {
        let estimate = Estimate {
            games: 1200,
            calls: 15_000,
            input_tokens: 40_000_000,
            output_tokens: 2_500_000,
            usd: Some(62.5),
            hours: 1.5,
            basis: "8 games of 1 earlier run".to_owned(),
        };
        let free = Estimate { usd: None, ..estimate.clone() };
        let bots = Estimate { calls: 0, input_tokens: 0, output_tokens: 0, ..free.clone() };
        let budget = BudgetSpec { usd: Some(50.0), tokens: Some(100_000_000), ..BudgetSpec::default() };
        let unlimited = BudgetSpec::default();
        let cases = [(&estimate, &budget), (&free, &unlimited), (&bots, &unlimited)];
        let sentences = cases.map(|(estimate, budget)| sentence(estimate, budget));
        expect![[r#"
            Estimate: 1,200 games, 15,000 calls, 42.5 million of 100.0 million tokens (40.0 million input, 2,500,000 output), 62.50 of 50.00 USD, 1 h 30 min
            Basis: 8 games of 1 earlier run
            The estimate is above the cap `usd`: the run would stop early.
            Estimate: 1,200 games, 15,000 calls, 42.5 million tokens (40.0 million input, 2,500,000 output), unknown cost, since the run file has no prices, 1 h 30 min
            Basis: 8 games of 1 earlier run
            Estimate: 1,200 games, 0 calls, 0 tokens (0 input, 0 output), no cost, 1 h 30 min
            Basis: 8 games of 1 earlier run"#]]
        .assert_eq(&sentences.join("\n"));
    }
}
