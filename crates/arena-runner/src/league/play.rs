//! A league as a competition: each pairing is chosen when a match can begin, and each result is in the store before the next choice.

use std::path::{Path, PathBuf};
use std::time::Instant;

use arena_match::{Agent, Confinement, Launcher, Place, SeatedAgent, private};
use arena_model::{GameType, Limits, MatchResult, SandboxMode, Timestamp};
use arena_ratings::AgentIndex;
use arena_ratings::bradley_terry::Fit;
use arena_store::{League, LeagueGame, LeagueRules, SqliteStore, StoreError};
use arena_tournament::{Entrant, Pairing, PlanError, check_game};
use serde::{Deserialize, Serialize};
use tokio::runtime::Handle;

use crate::competition::{Competition, Next, Terms};
use crate::entrants::{FilesChanged, agent_of};
use crate::executor::RunError;
use crate::league::agents::entrant_of;
use crate::league::season::Season;

/// Confinement of agents' processes, in the form that a league stores.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sandbox {
    /// Sandbox mode.
    pub mode: SandboxMode,
    /// Resource limits of each process.
    pub limits: Limits,
    /// Further paths that agents may read.
    pub expose: Vec<PathBuf>,
}

/// A league can't be played so. The sentence is for its owner.
#[derive(Debug, thiserror::Error)]
pub enum RulesError {
    /// The number of agents or the options don't fit the game.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// Nobody can be compared.
    #[error("a league needs games of two agents or more")]
    Alone,
    /// Its present season was begun by other rules than those at hand.
    #[error(
        "season {season} of league {league} is played by version {version} of the rules of {game}, and this program plays by version {found}, \
         so results wouldn't compare; `arena league season {league}` closes it, and the next one is played by the new rules"
    )]
    OtherRules {
        /// Its name.
        league: String,
        /// The present one.
        season: u32,
        /// The name of the game.
        game: String,
        /// By which the season was begun.
        version: u32,
        /// The version at hand.
        found: u32,
    },
    /// The stored confinement can't be read.
    #[error("how its agents are held in can't be read: {0}")]
    Sandbox(#[from] serde_json::Error),
}

/// The game of these rules, if it can be played by them.
///
/// # Errors
/// When it can't; says why.
pub fn check_rules(rules: &LeagueRules) -> Result<&'static GameType, RulesError> {
    let game = check_game(&rules.game, rules.seats, &rules.options)?;
    if rules.seats < 2 { Err(RulesError::Alone) } else { Ok(game) }
}

/// The game of a league, if its present season is played by the version of the rules at hand.
///
/// # Errors
/// As [`check_rules`], or when the version is another one.
pub fn check_season(league: &League) -> Result<&'static GameType, RulesError> {
    let game = check_rules(&league.rules)?;
    match league.rules_version == game.rules_version {
        true => Ok(game),
        false => Err(RulesError::OtherRules {
            league: league.name.clone(),
            season: league.season,
            game: league.rules.game.clone(),
            version: league.rules_version,
            found: game.rules_version,
        }),
    }
}

/// When to begin no further meeting: at the first of these that is reached. A meeting that has begun is played to its end.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Until {
    /// The number of further games.
    pub games: Option<u64>,
    /// The time after which no game begins.
    pub at: Option<Instant>,
    /// The 95 % interval of every agent that can play is within ± this Elo, by [`Season::fit`].
    pub margin: Option<f64>,
}

/// A season that is being played.
pub struct LeagueRun<'a> {
    store: &'a SqliteStore,
    /// Awaits the store's answers. The executor must not run on it.
    runtime: &'a Handle,
    season: Season,
    until: Until,
    /// The time of day.
    clock: &'a (dyn Fn() -> Timestamp + Sync),
    /// The folder of the store, which belongs to no agent.
    data: &'a Path,
    /// The last fit, and the number of games that it is of.
    fit: Option<(usize, Fit)>,
    /// The number of games that were begun and not given back.
    begun: u64,
}

impl<'a> LeagueRun<'a> {
    /// A season to be played on. `data`: the folder of the store. `runtime` awaits the store's answers, so no executor may run on it.
    pub fn new(
        store: &'a SqliteStore,
        runtime: &'a Handle,
        season: Season,
        until: Until,
        clock: &'a (dyn Fn() -> Timestamp + Sync),
        data: &'a Path,
    ) -> LeagueRun<'a> {
        LeagueRun { store, runtime, season, until, clock, data, fit: None, begun: 0 }
    }

    /// The season, as the store has it.
    pub fn season(&self) -> &Season {
        &self.season
    }

    /// Begins another meeting, if one is wanted.
    fn meet<E>(&mut self) -> Result<bool, RunError<E>> {
        let Until { games, at, margin } = self.until;
        if games.is_some_and(|games| self.begun >= games) || at.is_some_and(|at| Instant::now() >= at) {
            return Ok(false);
        }
        let fitted = self.season.fitted();
        let fit = match self.fit.take() {
            Some((games, fit)) if games == fitted => fit,
            _ => self.season.fit(fitted)?,
        };
        let is_wanted = |agent: AgentIndex| margin.is_none_or(|margin| margin_of(&fit, agent) > margin);
        let is_meeting = self.season.meet(&fit, is_wanted);
        self.fit = Some((fitted, fit));
        Ok(is_meeting)
    }
}

impl Competition for LeagueRun<'_> {
    fn terms<E>(&mut self, launcher: Launcher) -> Result<Terms, RunError<E>> {
        let game = check_season(self.season.league())?;
        let rules = &self.season.league().rules;
        let Sandbox { mode, limits, expose } =
            serde_json::from_value(rules.sandbox.clone()).map_err(RulesError::Sandbox)?;
        let entrants: Vec<Entrant> = self.season.agents().iter().map(entrant_of).collect::<Result<_, StoreError>>()?;
        let agents: Vec<Agent> = entrants.iter().map(agent_of).collect();
        Ok(Terms {
            game,
            options: rules.options.clone(),
            limits: rules.limits,
            entrants,
            confinement: Confinement {
                launcher,
                mode,
                limits,
                private: private(&agents, &expose, mode, &[Place::Folder(self.data)])?,
                expose,
                public_only: false,
            },
            folder: self.data.to_owned(),
            replays: None,
        })
    }

    fn next<E>(&mut self) -> Result<Next, RunError<E>> {
        let pairing = match self.season.next_leg() {
            Some(pairing) => Some(pairing),
            None if self.meet()? => self.season.next_leg(),
            None => None,
        };
        self.begun += u64::from(pairing.is_some());
        Ok(pairing.map_or(Next::Nothing, Next::Play))
    }

    fn record<E>(&mut self, pairing: &Pairing, result: MatchResult<SeatedAgent>) -> Result<usize, RunError<E>> {
        let game = LeagueGame {
            // The store gives it one.
            number: 0,
            season: self.season.number(),
            meeting: pairing.meeting,
            leg: pairing.leg,
            ended_at: (self.clock)(),
            result: result.with_agents(|seat, _| self.season.agents()[pairing.agents[seat]].no),
        };
        let kept = self.runtime.block_on(self.store.add_league_game(self.season.league().no, game))?;
        let number = usize::try_from(kept.number).unwrap_or(usize::MAX);
        self.season.add(kept)?;
        Ok(number)
    }

    fn give_back(&mut self, pairing: &Pairing) {
        self.season.give_back(pairing);
        self.begun -= 1;
    }

    fn exclude(&mut self, pairing: &Pairing, mut agents: Vec<usize>) -> Result<Vec<usize>, FilesChanged> {
        self.give_back(pairing);
        agents.retain(|agent| self.season.ready().any(|ready| ready == *agent));
        for agent in &agents {
            self.season.excuse(self.season.agents()[*agent].no);
        }
        Ok(agents)
    }

    fn is_complete(&self) -> bool {
        false
    }
}

/// By how much a rating may be wrong, up or down, at the usual confidence; infinite where the games leave it open.
fn margin_of(fit: &Fit, agent: AgentIndex) -> f64 {
    let (rating, interval) = (fit.rating(agent), fit.interval(agent));
    (rating - interval.low).max(interval.high - rating)
}
