//! `arena match fork`: a recorded match that other agents continue.

use std::fs;
use std::sync::Arc;

use arena_match::{
    Agent, HeaderLine, MatchPast, MatchPlan, OutputFile, OutputPath, Replay, ReplayError, fork_match as play_fork,
    private, verify_by,
};
use arena_model::{GameType, Seed, TimeLimits, hex};
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::args::ForkMatchArgs;
use crate::exit::{Exit, Failure};
use crate::interrupt;
use crate::matches::score::{self, Printed};
use crate::matches::settings::{confinement, find_agent, make_names_unique, print_notes};
use crate::matches::{cannot_write, explain};
use crate::output::{Style, print};
use crate::verify::check::RECORD;
use crate::{scripts, sign};

pub fn fork_match(args: &ForkMatchArgs, style: Style) -> Result<(), Failure> {
    let about = |exit: Exit, why: String| Failure::new(exit, format_args!("{}: {why}", args.file.display()));
    let bytes = fs::read(&args.file).map_err(|error| about(Exit::Usage, format!("cannot be read: {error}")))?;
    if bytes.starts_with(RECORD) {
        let why = "it is the record of a session, not the replay of a match; fork it with `arena session fork`";
        return Err(about(Exit::Usage, why.to_owned()));
    }
    let loaded = args
        .challenges
        .iter()
        .map(|folder| Ok(GameType::of_challenge(Arc::new(scripts::load(folder)?))))
        .collect::<Result<Vec<&'static GameType>, Failure>>()?;
    let find = |header: &HeaderLine| -> Option<&'static GameType> {
        let is_same = |game: &&&'static GameType| {
            game.name == header.game && game.script().is_some_and(|found| Some(found.to_string()) == header.script)
        };
        loaded.iter().find(is_same).copied().or_else(|| arena_games::game(&header.game))
    };
    let bad = |error: ReplayError| {
        let exit = match &error {
            ReplayError::OtherRules { .. } | ReplayError::Future(_) => Exit::OtherRules,
            ReplayError::NoScript { .. } | ReplayError::OtherScript { .. } | ReplayError::Foreign(_) => Exit::Usage,
            _ => Exit::BadReplay,
        };
        about(exit, error.to_string())
    };
    verify_by(&bytes[..], find).map_err(bad)?;
    let mut replay = Replay::open(&bytes[..]).map_err(bad)?;
    let header = replay.header.clone();
    let game = find(&header).ok_or_else(|| about(Exit::Usage, format!("there is no game `{}`", header.game)))?;
    let seed = Seed::from_revealed(&header.seed)
        .ok_or_else(|| about(Exit::BadReplay, "the seed isn't 64 hexadecimal digits".to_owned()))?;
    let limits: TimeLimits = serde_json::from_value(Value::Object(header.config.clone()))
        .map_err(|error| about(Exit::BadReplay, format!("the config has no time limits: {error}")))?;
    // The replay is sound, so it only can't be forked here.
    let past = MatchPast::read(&mut replay, args.at, hex::encode(&Sha256::digest(&bytes)))
        .map_err(|error| about(Exit::Usage, format!("--at {}: {error}", args.at)))?;
    let seats = header.agents.len();
    if args.agents.len() != seats {
        let given = args.agents.len();
        return Err(Failure::new(
            Exit::Usage,
            format_args!("the match has {seats} seats, but {given} agents are given; give --agent for each seat"),
        ));
    }
    let mut agents: Vec<Agent> = args.agents.iter().map(|agent| find_agent(agent)).collect::<Result<_, Failure>>()?;
    print_notes(&agents);
    make_names_unique(&mut agents);
    // The recorded actions contain the ids.
    for (agent, id) in agents.iter_mut().zip(replay.agent_ids().map_err(bad)?) {
        agent.id = Some(id);
    }
    let mut sandbox = confinement(&args.sandbox)?;
    let places: Vec<OutputPath<'_>> = args.out.iter().map(|path| OutputPath::File(path)).collect();
    sandbox.private =
        private(&agents, &sandbox.expose, sandbox.mode, &places).map_err(|error| Failure::new(Exit::Usage, error))?;
    let plan = MatchPlan {
        game,
        options: &header.options,
        seed,
        limits,
        agents: agents.iter().collect(),
        confinement: &sandbox,
        adjudication: None,
    };
    let sign_key = args.sign_key.as_deref().map(sign::read_key).transpose()?;
    let called_off = interrupt::flag()?;
    let mut file = match &args.out {
        Some(path) => Some(OutputFile::create(path).map_err(|error| cannot_write(path, &error))?),
        None => None,
    };
    let out = file.as_mut().map(|file| file as &mut (dyn std::io::Write + Send));
    let played = play_fork(&plan, &past, out, &called_off).map_err(explain)?;
    if let (Some(mut file), Some(path)) = (file, &args.out) {
        if let Some(key) = &sign_key {
            sign::seal(key, path, &mut file, &played)?;
        }
        file.keep().map_err(|error| cannot_write(path, &error))?;
    }
    let path = args.out.as_ref().map(|path| path.display().to_string());
    match style {
        Style::Pretty | Style::Compact => print(&score::describe(&played, &agents, path.as_deref())),
        Style::Json => {
            let printed = Printed::of(None, game, &played, agents.iter(), path).forked_from(past.origin());
            print(&serde_json::to_string(&printed).map_err(|error| Failure::caused(Exit::Internal, &error))?)
        }
    }
}
