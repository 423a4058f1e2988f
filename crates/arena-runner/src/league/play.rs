//! The [`Competition`] implementation of leagues. The run chooses each pairing when a match can begin, and stores each
//! result before the next choice.

use std::path::{Path, PathBuf};
use std::time::Instant;

use arena_match::{Agent, Confinement, Launcher, OutputPath, SeatedAgent, private};
use arena_model::{GameType, Limits, MatchResult, SandboxMode, Seed, StartLimits, TimeLimits, Timestamp, hex};
use arena_ratings::AgentIndex;
use arena_ratings::bradley_terry::Fit;
use arena_store::{League, LeagueGame, LeagueRules, Store, StoreError};
use arena_tournament::{CheckedLine, Entrant, GameLine, Pairing, PlanError, check_game};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use tokio::runtime::Handle;
use tokio::task::block_in_place;

use crate::competition::{Competition, CompetitionTerms, Next};
use crate::entrants::{FilesChanged, agent_of};
use crate::executor::RunError;
use crate::league::agents::entrant_of;
use crate::league::season::Season;
use crate::nats::competition::WorkerCompetition;

/// The number of jobs per slot of the workers that may be on the queue or being played. With more, meetings would be
/// chosen before the results on which they depend.
const JOBS_PER_SLOT: usize = 2;

/// The confinement of agents' processes, as stored with a league.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sandbox {
    pub mode: SandboxMode,
    /// The resource limits of each process.
    pub limits: Limits,
    /// Additional paths that agents may read.
    pub expose: Vec<PathBuf>,
}

/// An error for invalid rules of a league. The text is shown to the user.
#[derive(Debug, thiserror::Error)]
pub enum RulesError {
    /// A number of agents or options that the game doesn't support.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// Games of only one agent. Their results don't compare agents.
    #[error("a league needs games of at least 2 agents")]
    Alone,
    #[error(
        "season {season} of league {league} was started with version {version} of the rules of {game}, but this program has version {found}, \
         whose results aren't comparable; close the season with `arena league season {league}` to start one with the current rules"
    )]
    OtherRules {
        league: String,
        /// The number of the current season.
        season: u32,
        game: String,
        /// The version with which the season was started.
        version: u32,
        /// The version of the rules in this program.
        found: u32,
    },
    #[error("the league's sandbox settings cannot be read: {0}")]
    Sandbox(#[from] serde_json::Error),
}

/// Returns the game of a league's rules, after a check that the game supports the number of seats and the options.
///
/// # Errors
/// [`RulesError`] if the game doesn't support the rules.
pub fn check_rules(rules: &LeagueRules) -> Result<&'static GameType, RulesError> {
    let game = check_game(&rules.game, rules.seats, &rules.options)?;
    if rules.seats < 2 { Err(RulesError::Alone) } else { Ok(game) }
}

/// Returns the game of a league's current season.
///
/// # Errors
/// [`RulesError`] as for [`check_rules`], or if this program has another version of the rules.
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

/// The limits of a run. The run ends when the first limit is reached, but completes each meeting (the games of one set
/// of agents with one seed) that has begun.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Until {
    /// The largest number of further games.
    pub games: Option<u64>,
    /// The time after which no new meeting begins.
    pub at: Option<Instant>,
    /// The goal for the 95 % rating interval of every agent that can play, as ± Elo, according to [`Season::fit`].
    pub margin: Option<f64>,
}

/// A run of a season, as a [`Competition`].
pub struct LeagueRun<'a> {
    store: &'a Store,
    /// The runtime on which the run awaits the store.
    runtime: &'a Handle,
    season: Season,
    until: Until,
    clock: &'a (dyn Fn() -> Timestamp + Sync),
    /// The folder of the store. Agents' fingerprints leave it out.
    data: &'a Path,
    /// The last rating fit, with the number of games that it uses.
    fit: Option<(usize, Fit)>,
    /// The number of games that were started in this run and not given back.
    begun: u64,
}

impl<'a> LeagueRun<'a> {
    /// `data` is the folder of the store. The run awaits the store on `runtime`, which must have several threads.
    pub fn new(
        store: &'a Store,
        runtime: &'a Handle,
        season: Season,
        until: Until,
        clock: &'a (dyn Fn() -> Timestamp + Sync),
        data: &'a Path,
    ) -> LeagueRun<'a> {
        LeagueRun { store, runtime, season, until, clock, data, fit: None, begun: 0 }
    }

    pub fn season(&self) -> &Season {
        &self.season
    }

    /// Returns the number of a match: its place among the games of all meetings, from 1. Users see the number that the
    /// store assigns at the match's end.
    fn number_of(&self, meeting: u64, leg: usize) -> usize {
        let before = usize::try_from(meeting.saturating_sub(1)).unwrap_or(usize::MAX);
        before.saturating_mul(self.season.legs()).saturating_add(leg)
    }

    /// Returns the meeting and the leg of the match with this number; `None` for 0.
    fn place_of(&self, number: usize) -> Option<(u64, usize)> {
        let (before, legs) = (number.checked_sub(1)?, self.season.legs());
        Some(((before / legs) as u64 + 1, before % legs + 1))
    }

    /// Awaits the store, also within a runtime.
    fn wait<T>(&self, answer: impl Future<Output = T>) -> T {
        block_in_place(|| self.runtime.block_on(answer))
    }

    /// Stores a result and adds it to the season. Returns the number of the stored game.
    fn store_game<A, E>(&mut self, pairing: &Pairing, result: MatchResult<A>) -> Result<u64, RunError<E>> {
        let game = LeagueGame {
            // The store assigns the number.
            number: 0,
            season: self.season.number(),
            meeting: pairing.meeting,
            leg: pairing.leg,
            ended_at: (self.clock)(),
            result: result.with_agents(|seat, _| self.season.agents()[pairing.agents[seat]].no),
        };
        let kept = self.wait(self.store.add_league_game(self.season.league().no, game))?;
        let number = kept.number;
        self.season.add(kept)?;
        Ok(number)
    }

    /// Starts another meeting, if the limits permit one. Returns true if a meeting was started.
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
    fn terms<E>(&mut self, launcher: Launcher) -> Result<CompetitionTerms, RunError<E>> {
        let game = check_season(self.season.league())?;
        let rules = &self.season.league().rules;
        let Sandbox { mode, limits, expose } =
            serde_json::from_value(rules.sandbox.clone()).map_err(RulesError::Sandbox)?;
        let entrants: Vec<Entrant> = self.season.agents().iter().map(entrant_of).collect::<Result<_, StoreError>>()?;
        let agents: Vec<Agent> = entrants.iter().map(agent_of).collect();
        Ok(CompetitionTerms {
            game,
            options: rules.options.clone(),
            limits: rules.limits,
            time_control: None,
            start_limits: StartLimits::default(),
            openings: Vec::new(),
            adjudication: None,
            entrants,
            confinement: Confinement {
                launcher,
                mode,
                limits,
                private: private(&agents, &expose, mode, &[OutputPath::Folder(self.data)])?,
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
        let numbered = |pairing: Pairing| Pairing { number: self.number_of(pairing.meeting, pairing.leg), ..pairing };
        Ok(pairing.map_or(Next::Nothing, |pairing| Next::Play(numbered(pairing))))
    }

    fn record<E>(&mut self, pairing: &Pairing, result: MatchResult<SeatedAgent>) -> Result<usize, RunError<E>> {
        let number = self.store_game(pairing, result)?;
        Ok(usize::try_from(number).unwrap_or(usize::MAX))
    }

    fn give_back(&mut self, pairing: &Pairing) {
        self.season.give_back(pairing);
        self.begun -= 1;
    }

    fn exclude(&mut self, pairing: &Pairing, mut agents: Vec<usize>) -> Result<Vec<usize>, FilesChanged> {
        self.give_back(pairing);
        agents.retain(|agent| self.season.ready().any(|ready| ready == *agent));
        for agent in &agents {
            self.season.exclude(self.season.agents()[*agent].no);
        }
        Ok(agents)
    }

    fn is_complete(&self) -> bool {
        false
    }
}

impl WorkerCompetition for LeagueRun<'_> {
    fn shared_id<E>(&mut self) -> Result<String, RunError<E>> {
        // Nothing about the league's seed follows from a derived one.
        let Seed(bytes) = self.season.league().seed.derive("workers");
        Ok(hex::encode(&bytes[..8]))
    }

    fn replays(&self) -> Option<PathBuf> {
        None
    }

    fn most_open(&self, slots: usize) -> usize {
        slots.max(1) * JOBS_PER_SLOT
    }

    fn conditions(&self) -> (&str, &Map<String, Value>, TimeLimits) {
        let rules = &self.season.league().rules;
        (&rules.game, &rules.options, rules.limits)
    }

    fn pairing(&self, number: usize) -> Option<Pairing> {
        let (meeting, leg) = self.place_of(number)?;
        self.season.pairing(meeting, leg).map(|pairing| Pairing { number, ..pairing })
    }

    fn match_name(&self, number: usize) -> String {
        let Some((meeting, leg)) = self.place_of(number) else { return format!("game {number}") };
        let mut games = self.season.games().iter().rev();
        match games.find(|game| (game.meeting, game.leg) == (meeting, leg)) {
            Some(game) => format!("game {}", game.number),
            None => format!("game {leg} of pairing {meeting}"),
        }
    }

    fn has_result(&self, number: usize) -> bool {
        self.place_of(number).is_some_and(|(meeting, leg)| self.season.has_played(meeting, leg))
    }

    fn record_game<E>(&mut self, pairing: &Pairing, game: GameLine) -> Result<usize, RunError<E>> {
        // A worker may have played the game for an earlier run.
        self.begun += u64::from(self.season.is_waiting(pairing.meeting, pairing.leg));
        let stored = self.store_game(pairing, game.result)?;
        Ok(usize::try_from(stored).unwrap_or(usize::MAX))
    }

    fn record_check<E>(&mut self, _checked: CheckedLine) -> Result<(), RunError<E>> {
        Ok(())
    }
}

/// Returns the larger distance from an agent's rating to an end of its 95 % interval, in Elo; infinite if the interval
/// is unbounded.
fn margin_of(fit: &Fit, agent: AgentIndex) -> f64 {
    let (rating, interval) = (fit.rating(agent), fit.interval(agent));
    (rating - interval.low).max(interval.high - rating)
}
