//! The plan of a tournament from a request. Planning writes nothing; it only reads the agents' files for fingerprints.

use std::path::Path;
use std::sync::Arc;

use arena_match::SandboxMode;
use arena_model::{GameType, Seed, TimeLimits, Timestamp};
use arena_tournament::{Format, Shape, TournamentPlan};
use serde_json::{Map, Value};

use super::facts::{AgentFacts, Entered, OnceFacts, TournamentFacts};
use super::id::{AgentId, TournamentId};
use super::refusal::TournamentRefusal;
use super::settings::TournamentSettings;
use super::source;

/// A requested tournament. The defaults of missing values depend on the game and the format.
pub(crate) struct NewTournament {
    pub(crate) name: Option<String>,
    pub(crate) game: &'static GameType,
    pub(crate) options: Map<String, Value>,
    pub(crate) limits: TimeLimits,
    /// Ids of the agents, all different.
    pub(crate) agents: Vec<AgentId>,
    pub(crate) format: Format,
    pub(crate) rounds: Option<usize>,
    pub(crate) seats: Option<usize>,
    pub(crate) paired: bool,
    pub(crate) seed: Option<Seed>,
}

/// Builds the plan of a tournament of these agents. `folder` contains the agents' folders.
///
/// # Errors
/// If the request is invalid, or has more agents or games than the settings allow.
pub(super) fn plan(
    request: &NewTournament,
    agents: &[Arc<AgentFacts>],
    seed: Seed,
    settings: &TournamentSettings,
    folder: &Path,
) -> Result<TournamentPlan, TournamentRefusal> {
    let TournamentSettings { max_agents, max_games, .. } = *settings;
    if agents.len() > max_agents {
        let text =
            format!("a tournament may have at most {max_agents} agents (tournaments.max_agents), not {}", agents.len());
        return Err(TournamentRefusal::Plan(text));
    }
    if request.format.is_open_ended() {
        let text = format!("the format {} has no end, so a server cannot play it as a tournament", request.format);
        return Err(TournamentRefusal::Plan(text));
    }
    let game = request.game;
    let shape = Shape {
        format: request.format,
        agents: agents.len(),
        rounds: request.rounds.unwrap_or_else(|| request.format.usual_rounds(agents.len())),
        seats: request.seats.unwrap_or_else(|| 2.clamp(*game.seats.start(), *game.seats.end())),
        paired: request.paired,
        stop: None,
        seed,
    };
    // These checks come before the allocations whose size depends on the plan.
    shape.check().map_err(|error| TournamentRefusal::Plan(error.to_string()))?;
    let games = shape.games().unwrap_or(u64::MAX);
    if games > max_games {
        let text = format!("a tournament may have at most {max_games} games (tournaments.max_games), not {games}");
        return Err(TournamentRefusal::Plan(text));
    }
    let entrants = names(agents).into_iter().zip(agents);
    let entrants = entrants.map(|(name, agent)| source::enter(agent, &folder.join(agent.id.to_string()), &name));
    let mut plan = TournamentPlan::new(game, entrants.collect::<Result<_, _>>()?, &shape);
    plan.options.clone_from(&request.options);
    plan.limits = request.limits;
    plan.sandbox = SandboxMode::Required;
    plan.public_only = !settings.private_urls;
    plan.replays = settings.keep_replays;
    plan.concurrency = settings.concurrency.get().into();
    plan.check().map_err(|error| TournamentRefusal::Plan(error.to_string()))?;
    Ok(plan)
}

/// Returns unique names for the agents, such as `bot` and `bot #2`.
fn names(agents: &[Arc<AgentFacts>]) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for agent in agents {
        names.push(free_name(&agent.name, |name| names.iter().any(|other| other == name)));
    }
    names
}

/// Returns the name, or the name with a number if it is taken.
pub(super) fn free_name(name: &str, is_taken: impl Fn(&str) -> bool) -> String {
    let numbered = (2..).map(|number| format!("{name} #{number}"));
    let mut names = std::iter::once(name.to_owned()).chain(numbered);
    names.find(|name| !is_taken(name)).expect("numbers don't end")
}

pub(super) fn facts(
    id: TournamentId,
    request: NewTournament,
    agents: &[Arc<AgentFacts>],
    plan: &TournamentPlan,
    seed_nonce: String,
    (Timestamp(created_at), once): (Timestamp, Option<OnceFacts>),
) -> TournamentFacts {
    let entered = agents.iter().zip(&plan.agents).map(|(agent, entrant)| Entered {
        id: agent.id,
        name: entrant.name.clone(),
        version: entrant.version.clone(),
    });
    TournamentFacts {
        id,
        name: request.name,
        created_at,
        game: plan.game.clone(),
        options: plan.options.clone(),
        limits: plan.limits,
        format: plan.format,
        rounds: plan.rounds,
        seats: plan.seats,
        paired: plan.paired,
        seed: plan.seed.clone(),
        seed_nonce,
        agents: entered.collect(),
        once,
        ended: None,
    }
}
