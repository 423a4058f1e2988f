//! Playing: games beside each other, each chosen when a core is free for it, and in the store before the next one is chosen.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Instant;

use arena_match::tournament::{Entrant, FileWatch};
use arena_match::{
    Agent, Confinement, Contest, Launcher, Limits, MatchError, OpenPlace, Place, Plan, SandboxMode, SeatResult,
    agent_ids, hold, private, spread,
};
use arena_model::{GameType, OptionsError, Seed, Setup, Timestamp};
use arena_ratings::AgentIndex;
use arena_ratings::bradley_terry::{Fit, FitError};
use arena_store::{CommitError, League, LeagueAgent, LeagueGame, LeagueRules, LeagueSeat, SqliteStore, StoreError};
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use tokio::runtime::Handle;

use crate::agents::entrant_of;
use crate::season::{Game, Season};

/// How agents' processes are held in, as a league writes it down.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sandbox {
    /// How they are confined.
    pub mode: SandboxMode,
    /// What they may use.
    pub limits: Limits,
    /// What else they may read.
    pub expose: Vec<PathBuf>,
}

/// A league can't be played so. A sentence for whoever asked for it.
#[derive(Debug, thiserror::Error)]
pub enum RulesError {
    /// There is no such game.
    #[error("there is no game `{0}`")]
    Game(String),
    /// It isn't played by so many.
    #[error("{game} is played by {} agents, and not by {seats}", if least == most { most.to_string() } else { format!("{least} to {most}") })]
    Seats {
        /// Its name.
        game: &'static str,
        /// Of its agents.
        least: usize,
        /// Of its agents.
        most: usize,
        /// That were asked for.
        seats: usize,
    },
    /// Nobody can be compared.
    #[error("a league needs games of two agents or more")]
    Alone,
    /// It isn't played with these options.
    #[error(transparent)]
    Options(#[from] OptionsError),
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
    /// What is written of the sandbox can't be read.
    #[error("how its agents are held in can't be read: {0}")]
    Sandbox(#[from] serde_json::Error),
}

/// The game of these rules, if it can be played by them.
///
/// # Errors
/// When it can't; says why.
pub fn check_rules(rules: &LeagueRules) -> Result<&'static GameType, RulesError> {
    let game = arena_games::game(&rules.game).ok_or_else(|| RulesError::Game(rules.game.clone()))?;
    if !game.seats.contains(&rules.seats) {
        let (least, most) = (*game.seats.start(), *game.seats.end());
        return Err(RulesError::Seats { game: game.name, least, most, seats: rules.seats });
    }
    if rules.seats < 2 {
        return Err(RulesError::Alone);
    }
    let seed = Seed::from_number(0);
    game.start(&rules.options, Setup { agents: agent_ids(&seed, rules.seats), seed })?;
    Ok(game)
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

/// How a league is played; nothing that a result depends on.
pub struct How<'a> {
    /// The program that starts agents.
    pub launcher: &'a Launcher,
    /// How many games are played beside each other.
    pub concurrency: usize,
    /// The cores that they are spread over; anywhere, if that is empty.
    pub cores: &'a [usize],
    /// No game is begun once this is raised.
    pub stop: &'a AtomicBool,
    /// Games under way end without a result once this is raised.
    pub called_off: &'a AtomicBool,
    /// The time of day.
    pub clock: &'a (dyn Fn() -> Timestamp + Sync),
    /// The folder of the store, which isn't part of any agent.
    pub data: &'a Path,
}

/// What is told while a league is played.
#[derive(Debug)]
pub enum Event<'a> {
    /// A game is in the store.
    Played(&'a LeagueGame),
    /// The files of an agent were written to, or are gone. It plays no more for now; what it was playing meanwhile doesn't count.
    Changed(&'a LeagueAgent),
}

/// When to begin no further meeting: at the first of these that is reached. A meeting that has begun is played to its end.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Until {
    /// So many games have been played from now on.
    pub games: Option<u64>,
    /// It is so late.
    pub at: Option<Instant>,
    /// The rating of every agent that can play is known to so many Elo, up and down, by the fit of [`Season::fit`].
    pub margin: Option<f64>,
}

/// How playing ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// By [`Until`].
    Reached,
    /// It was stopped, and can be gone on with.
    Stopped,
}

/// A league can't go on.
#[derive(Debug, thiserror::Error)]
pub enum PlayError<E> {
    /// It can't be played so.
    #[error(transparent)]
    Rules(#[from] RulesError),
    /// What the store has of it can't be.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A result can't be kept.
    #[error(transparent)]
    Keep(#[from] CommitError),
    /// There are too many agents to choose from.
    #[error(transparent)]
    Fit(#[from] FitError),
    /// A place that is written to can't be kept from an agent.
    #[error(transparent)]
    Open(#[from] OpenPlace),
    /// A game came to no result.
    #[error(transparent)]
    Match(#[from] MatchError),
    /// The caller's.
    #[error("{0}")]
    Told(E),
}

/// Plays a season on, until it is told to stop. `told` is told what happens, and of each game when it is in the store. The season is as the store
/// has it when this returns. `runtime` is where the store's answers are awaited; this must not be called on it.
///
/// # Errors
/// See [`PlayError`]. Games that are under way then are finished and kept.
pub fn play<E: Send>(
    store: &SqliteStore,
    runtime: &Handle,
    season: &mut Season,
    how: &How<'_>,
    until: Until,
    mut told: impl FnMut(&Season, Event<'_>) -> Result<(), E>,
) -> Result<Ended, PlayError<E>> {
    let rules = season.league().rules.clone();
    let game = check_season(season.league())?;
    let sandbox: Sandbox = serde_json::from_value(rules.sandbox.clone()).map_err(RulesError::Sandbox)?;
    let entrants: Vec<Entrant> = season.agents().iter().map(entrant_of).collect::<Result<_, _>>()?;
    let room = Room {
        store,
        runtime,
        how,
        game,
        rules: &rules,
        agents: entrants.iter().map(Entrant::agent).collect(),
        files: FileWatch::new(&entrants, how.data),
        confinement: Confinement {
            launcher: how.launcher.clone(),
            mode: sandbox.mode,
            limits: sandbox.limits,
            private: private_of(&entrants, &sandbox, how.data)?,
            expose: sandbox.expose,
            public_only: false,
        },
        until,
        season: Mutex::new(season),
        fit: Mutex::new(None),
        begun: AtomicUsize::new(0),
    };
    let (mut failed, mut ended) = (None, Ended::Reached);
    let job = |_| room.play_next();
    // More than can be played; `spread` counts on from there at the end.
    let games = usize::MAX / 2;
    spread(games, how.concurrency, how.cores, job, |_, played| {
        let kept = match played {
            Ok(Played::Kept(game)) => told(&room.season.lock(), Event::Played(&game)).map_err(PlayError::Told),
            Ok(Played::Changed(agents)) => {
                let season = room.season.lock();
                let all = agents.iter().try_for_each(|agent| told(&season, Event::Changed(&season.agents()[*agent])));
                all.map_err(PlayError::Told)
            }
            Ok(Played::Nothing) => return false,
            Ok(Played::Stopped) => {
                ended = Ended::Stopped;
                return false;
            }
            Err(error) => Err(error.into()),
        };
        if let Err(error) = kept {
            // What comes after the first failure is most often its consequence.
            failed.get_or_insert(error);
        }
        failed.is_none()
    });
    failed.map_or(Ok(ended), Err)
}

/// Places that are hidden from the agents: the folder of the store, and files of the arena in theirs.
fn private_of(entrants: &[Entrant], sandbox: &Sandbox, data: &Path) -> Result<Vec<PathBuf>, OpenPlace> {
    let agents: Vec<Agent> = entrants.iter().map(Entrant::agent).collect();
    private(&agents, &sandbox.expose, sandbox.mode, &[Place::Folder(data)])
}

/// What all games of a run have in common.
struct Room<'a> {
    store: &'a SqliteStore,
    runtime: &'a Handle,
    how: &'a How<'a>,
    game: &'static GameType,
    rules: &'a LeagueRules,
    /// Those of the season, in its order.
    agents: Vec<Agent>,
    files: FileWatch<'a>,
    confinement: Confinement,
    until: Until,
    season: Mutex<&'a mut Season>,
    /// The last fit, and of how many games it is.
    fit: Mutex<Option<(usize, Fit)>>,
    /// How many games have been begun and not given back.
    begun: AtomicUsize,
}

/// What came of asking for a game.
enum Played {
    /// It was played and is in the store.
    Kept(Box<LeagueGame>),
    /// These agents aren't what they were, which wasn't known before.
    Changed(Vec<usize>),
    /// No further game is wanted, or can be played.
    Nothing,
    /// No further game may be begun, or this one was called off.
    Stopped,
}

/// Why a game isn't in the store.
enum RoomError {
    Store(StoreError),
    Keep(CommitError),
    Fit(FitError),
    Match(MatchError),
}

impl<E> From<RoomError> for PlayError<E> {
    fn from(error: RoomError) -> PlayError<E> {
        match error {
            RoomError::Store(error) => PlayError::Store(error),
            RoomError::Keep(error) => PlayError::Keep(error),
            RoomError::Fit(error) => PlayError::Fit(error),
            RoomError::Match(error) => PlayError::Match(error),
        }
    }
}

impl Room<'_> {
    /// Chooses a game, plays it and keeps it, on the calling thread. All that, so that whoever chooses the next one on this thread
    /// knows of this one.
    fn play_next(&self) -> Result<Played, RoomError> {
        let is_stopped = || self.how.stop.load(Ordering::Relaxed) || self.how.called_off.load(Ordering::Relaxed);
        if is_stopped() {
            return Ok(Played::Stopped);
        }
        let Some(game) = self.choose().map_err(RoomError::Fit)? else { return Ok(Played::Nothing) };
        let changed = self.files.changed(&game.agents);
        if !changed.is_empty() {
            return Ok(Played::Changed(self.excuse(&game, changed)));
        }
        let began = Instant::now();
        let contest = match self.hold(&game) {
            Ok(contest) => contest,
            Err(error) => {
                self.give_back(&mut self.season.lock(), &game);
                return match error {
                    MatchError::CalledOff => Ok(Played::Stopped),
                    // Ctrl-C reaches all processes of the terminal, and so also one that is just being started.
                    MatchError::Start(_) if is_stopped() => Ok(Played::Stopped),
                    error => Err(RoomError::Match(error)),
                };
            }
        };
        // Nobody knows which of its versions played this.
        let changed = self.files.changed(&game.agents);
        if !changed.is_empty() {
            return Ok(Played::Changed(self.excuse(&game, changed)));
        }
        let took_ms = (began.elapsed().as_secs_f64() * 1e6).round() / 1e3;
        let (league, played) = {
            let season = self.season.lock();
            (season.league().no, self.told(&season, game, &contest, took_ms))
        };
        let kept = self.runtime.block_on(self.store.add_league_game(league, played)).map_err(RoomError::Keep)?;
        self.season.lock().add(kept.clone()).map_err(RoomError::Store)?;
        Ok(Played::Kept(Box::new(kept)))
    }

    fn choose(&self) -> Result<Option<Game>, FitError> {
        let mut season = self.season.lock();
        if let Some(game) = season.next_leg() {
            self.begun.fetch_add(1, Ordering::Relaxed);
            return Ok(Some(game));
        }
        let Until { games, at, margin } = self.until;
        let is_over = games.is_some_and(|games| self.begun.load(Ordering::Relaxed) as u64 >= games)
            || at.is_some_and(|at| Instant::now() >= at);
        if is_over {
            return Ok(None);
        }
        let mut last = self.fit.lock();
        let fit = match last.take() {
            Some((games, fit)) if games == season.fitted() => fit,
            _ => season.fit(season.fitted())?,
        };
        let is_wanted = |agent: AgentIndex| margin.is_none_or(|margin| margin_of(&fit, agent) > margin);
        let is_meeting = season.meet(&fit, is_wanted);
        *last = Some((season.fitted(), fit));
        if !is_meeting {
            return Ok(None);
        }
        self.begun.fetch_add(1, Ordering::Relaxed);
        Ok(season.next_leg())
    }

    /// Asks agents for no more games, and gives this one back. Those of whom that wasn't known before.
    fn excuse(&self, game: &Game, mut agents: Vec<usize>) -> Vec<usize> {
        let mut season = self.season.lock();
        self.give_back(&mut season, game);
        agents.retain(|agent| season.ready().any(|ready| ready == *agent));
        for agent in &agents {
            let no = season.agents()[*agent].no;
            season.excuse(no);
        }
        agents
    }

    fn give_back(&self, season: &mut Season, game: &Game) {
        season.give_back(game);
        self.begun.fetch_sub(1, Ordering::Relaxed);
    }

    fn hold(&self, game: &Game) -> Result<Contest, MatchError> {
        let plan = Plan {
            game: self.game,
            options: &self.rules.options,
            seed: game.seed.clone(),
            limits: self.rules.limits,
            agents: game.agents.iter().map(|agent| &self.agents[*agent]).collect(),
            confinement: &self.confinement,
        };
        hold(&plan, None, None, self.how.called_off)
    }

    /// What the store keeps of a game.
    fn told(&self, season: &Season, game: Game, contest: &Contest, took_ms: f64) -> LeagueGame {
        let result = &contest.result;
        let mut seats: Vec<&SeatResult> = result.scores.iter().collect();
        seats.sort_by_key(|seat| seat.seat);
        let seats = seats.into_iter().map(|seat| LeagueSeat {
            agent: season.agents()[game.agents[seat.seat]].no,
            rank: seat.rank,
            score: seat.score,
            verdict: seat.tainted_reason,
            detail: seat.tainted_detail.clone(),
            faults: seat.faults,
            waited_ms: seat.time_used_ms,
            longest_step_ms: seat.longest_step_ms,
        });
        LeagueGame {
            // The store gives it one.
            number: 0,
            season: season.number(),
            meeting: game.meeting,
            leg: game.leg,
            seed: game.seed,
            epochs: result.epochs,
            termination: result.outcome.termination.to_string(),
            winner: result.outcome.winner.clone(),
            ended_at: (self.how.clock)(),
            took_ms,
            seats: seats.collect(),
        }
    }
}

/// By how much a rating may be wrong, up or down, at the usual confidence; infinite where the games leave it open.
fn margin_of(fit: &Fit, agent: AgentIndex) -> f64 {
    let (rating, interval) = (fit.rating(agent), fit.interval(agent));
    (rating - interval.low).max(interval.high - rating)
}
