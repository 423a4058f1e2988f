//! The plan of a tournament: its options, agents and rules together.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use arena_model::{ChallengeType, GameType};
use arena_script::ScriptChallenge;
use arena_tournament::{Openings, ScriptPart, Shape, TournamentPlan};

use super::args::TournamentArgs;
use super::failures::unplayable;
use super::{chess, ending, entrants, workers};
use crate::exit::{Exit, Failure};
use crate::matches::options::{Affinity, PlayArgs};
use crate::matches::settings::{self, confinement, find_game};
use crate::scripts;

/// Makes the plan of the tournament that these options describe, and checks it.
pub fn plan(args: &TournamentArgs, folder: &Path) -> Result<TournamentPlan, Failure> {
    workers::check_run(args)?;
    let (game, script) = match scripts::find(&args.game)? {
        Some(challenge) => {
            let part = script_part(Path::new(&args.game), &challenge)?;
            (GameType::of_challenge(Arc::new(challenge)), Some(part))
        }
        None => (find_game(&args.game)?, None),
    };
    let agents = entrants::find(args, folder)?;
    let shape = shape(args, game, agents.len())?;
    let mut plan = TournamentPlan::new(game, agents, &shape);
    if let Some(script) = script {
        plan.set_rules(script, game);
    }
    let PlayArgs { concurrency, options, sandbox, affinity, .. } = &args.play;
    plan.options = options.iter().cloned().collect();
    plan.limits = args.play.limits(game);
    plan.time_control = args.play.time_control();
    plan.start_limits = args.play.start_limits();
    plan.adjudication = chess::adjudication(args)?;
    if plan.adjudication.is_some() && game.name == "chess" {
        plan.options.insert("agreements".to_owned(), true.into());
    }
    plan.openings = openings(args, game, &plan, &shape)?;
    let confinement = confinement(sandbox)?;
    plan.sandbox = confinement.mode;
    plan.sandbox_limits = confinement.limits;
    let absolute = |path: &PathBuf| path.canonicalize().unwrap_or_else(|_| path.clone());
    plan.expose = confinement.expose.iter().map(absolute).collect();
    plan.replays = args.replays;
    plan.concurrency = *concurrency as usize;
    plan.shares_core = *affinity == Affinity::Share;
    plan.check().map_err(unplayable)?;
    settings::check_players(&plan.options, plan.seats)?;
    ending::note_rounded(args, games_of_pairing(plan.paired, plan.seats));
    Ok(plan)
}

/// Returns who plays whom, and how often.
fn shape(args: &TournamentArgs, game: &GameType, agents: usize) -> Result<Shape, Failure> {
    let (format, paired, stop) = (args.format, !args.no_pairs, ending::stop(args)?);
    let seats = args.seats.map_or_else(|| 2.clamp(*game.seats.start(), *game.seats.end()), |seats| seats as usize);
    let rounds = ending::rounds(args, agents, games_of_pairing(paired, seats), stop)?;
    Ok(Shape { format, agents, rounds, seats, paired, stop, seed: settings::seed_or_random(&args.play.seed)? })
}

fn games_of_pairing(is_paired: bool, seats: usize) -> usize {
    if is_paired { seats } else { 1 }
}

/// Reads the openings that the tournament needs, each of which must be a position of the game.
fn openings(
    args: &TournamentArgs,
    game: &'static GameType,
    plan: &TournamentPlan,
    shape: &Shape,
) -> Result<Option<Openings>, Failure> {
    let meetings = match shape.format.is_open_ended() {
        true => usize::MAX,
        false => shape.rounds.saturating_mul(shape.agents * shape.agents.saturating_sub(1) / 2),
    };
    let check = |fen: &str| {
        if game.name != "chess" {
            // The check of the plan refuses openings then.
            return Ok(());
        }
        let mut options = plan.options.clone();
        options.insert("fen".to_owned(), fen.into());
        settings::try_start(game, &options, shape.seats).map(drop)
    };
    chess::openings(args, meetings, &shape.seed, check)
}

/// Returns the entry in the plan for a challenge in a folder.
fn script_part(folder: &Path, challenge: &ScriptChallenge) -> Result<ScriptPart, Failure> {
    let folder = folder
        .canonicalize()
        .map_err(|error| Failure::usage(format_args!("{} cannot be found: {error}", folder.display())))?;
    let version = challenge.script().map(|script| script.version().to_string()).unwrap_or_default();
    Ok(ScriptPart { folder, version })
}

/// Loads the script with the rules of a tournament, if there is one.
pub fn load_rules(plan: &TournamentPlan) -> Result<Option<&'static GameType>, Failure> {
    let Some(script) = &plan.script else { return Ok(None) };
    let challenge = scripts::load(&script.folder)?;
    let part = script_part(&script.folder, &challenge)?;
    let rules = GameType::of_challenge(Arc::new(challenge));
    // A new version of the script interface also changes the hash of every script; the check of the rules reports that.
    if rules.rules_version == plan.rules_version && part != *script {
        let folder = script.folder.display();
        let sentence = format!(
            "the challenge in {folder} has changed since the tournament began; restore it, or begin a new tournament"
        );
        return Err(Failure::new(Exit::BadTournament, sentence));
    }
    Ok(Some(rules))
}
