//! Ladders: for each game a league without an end, which uploaded agents join. The built-in bots play in each.
//!
//! A ladder's folder is that of a league, named as the game; its journal has the agents, games and seasons. An agent's
//! facts name the ladder that it joins. The thread in [`play`] adds agents to journals, and removes those whose folders
//! are removed. Nodes that share the folders follow each other by these files; the lock of a journal belongs to the node
//! that plays the ladder.

mod play;

use std::fs;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::{Duration, Instant};

use arena_match::{CheckPlan, Confinement, Limits, MatchError, OutputPath, SandboxMode, Severity, check, private};
use arena_model::GameType;
use arena_ratings::AgentIndex;
use arena_report::season::{self, Season};
use arena_report::{Curve, Estimate, Picture, TimeAxis, over_time};
use arena_runner::{Journal, JournalError, LeagueFolder, causes};
use arena_tournament::{GameLine, League, LeagueAgent};
use hashlink::LruCache;
use parking_lot::Mutex;
use serde::Deserialize;
use serde_json::Value;

use super::facts::{AgentFacts, Home};
use super::id::AgentId;
use super::{LET_GO_WITHIN, TournamentRefusal, Tournaments, source};

/// Number of seasons cached in memory.
const VIEWS: usize = 32;

/// Name of the file that requests the end of a season from the node that plays the ladder. It has the season's number.
const CLOSE: &str = "close-season";

/// Errors of Python and Node about a missing file.
const MISSING_MODULE: [&str; 2] = ["ModuleNotFoundError", "Cannot find module"];

/// Number of curves in the plot of ratings over time, and of the points on each.
const CURVES: usize = 6;
const POINTS: usize = 16;

/// Seasons by game and number, each with the journal's size at the time of reading.
type ViewCache = LruCache<(&'static str, Option<usize>), (u64, Arc<Ladder>)>;

/// The views of ladders in memory.
pub(super) struct Ladders {
    views: Mutex<ViewCache>,
    current: Mutex<Option<LadderMatch>>,
}

impl Default for Ladders {
    fn default() -> Ladders {
        Ladders { views: Mutex::new(LruCache::new(VIEWS)), current: Mutex::default() }
    }
}

/// The match of a ladder that this node plays now.
#[derive(Clone)]
pub(crate) struct LadderMatch {
    pub(crate) game: &'static str,
    pub(crate) number: usize,
    /// The agents' names, by seat.
    pub(crate) agents: Vec<String>,
}

/// A season of a ladder.
pub(crate) struct Ladder {
    pub(crate) league: League,
    pub(crate) season: Season,
    /// The standings as JSON, as `arena tournament standings --json` prints them.
    pub(crate) json: Value,
    /// The rows of `json`.
    pub(crate) rows: Vec<LadderRow>,
    picture: OnceLock<Option<Picture>>,
}

/// A row of the standings.
#[derive(Deserialize)]
pub(crate) struct LadderRow {
    pub(crate) name: String,
    pub(crate) version: Option<String>,
    pub(crate) generation: u32,
    pub(crate) agent_path: String,
    pub(crate) present: bool,
    /// The reason for a suspension.
    pub(crate) suspended: Option<String>,
    pub(crate) games: u64,
    pub(crate) points: f64,
    pub(crate) elo: Option<RowElo>,
    pub(crate) rank_may_be: Option<RowRanks>,
}

/// The rating of a row, with the bounded ends of its interval.
#[derive(Clone, Copy, Deserialize)]
pub(crate) struct RowElo {
    pub(crate) rating: f64,
    pub(crate) low: Option<f64>,
    pub(crate) high: Option<f64>,
}

#[derive(Clone, Copy, Deserialize)]
pub(crate) struct RowRanks {
    pub(crate) best: usize,
    pub(crate) worst: usize,
}

impl LadderRow {
    /// Returns the agent's id; `None` for a built-in bot.
    pub(crate) fn agent(&self) -> Option<AgentId> {
        self.agent_path.parse().ok()
    }

    pub(crate) fn state(&self) -> &'static str {
        match (self.present, &self.suspended) {
            (false, _) => "gone",
            (true, Some(_)) => "suspended",
            (true, None) => "playing",
        }
    }
}

/// Returns the id of an uploaded agent of a league; `None` for a built-in bot.
fn id_in(agent: &LeagueAgent) -> Option<AgentId> {
    agent.entrant.path.parse().ok()
}

impl Ladder {
    fn of(league: League) -> Ladder {
        let season = Season::of(&league);
        let mut json = season::json(&season);
        let rows: Vec<LadderRow> = Deserialize::deserialize(&json["standings"]).unwrap_or_default();
        for (value, row) in json["standings"].as_array_mut().into_iter().flatten().zip(&rows) {
            if let Some(value) = value.as_object_mut() {
                value.remove("agent_path");
                value.insert("agent_id".to_owned(), row.agent().map(|id| id.to_string()).into());
                value.insert("state".to_owned(), row.state().into());
            }
        }
        Ladder { league, season, json, rows, picture: OnceLock::new() }
    }

    /// True if the replay of a game may be shown: the games of a meeting share a seed.
    pub(crate) fn shows_replay(&self, number: usize) -> bool {
        let season = self.league.season();
        let is_open = season.pairing(number).is_some_and(|pairing| season.is_unfinished(pairing.meeting));
        self.league.game(number).is_some() && (self.league.is_closed || !is_open)
    }

    /// Returns the id of the agent at a seat of a game; `None` for a built-in bot.
    pub(crate) fn agent_at(&self, number: usize, seat: usize) -> Option<AgentId> {
        let game = self.league.game(number)?;
        let (name, generation) = (&game.result.seats.get(seat)?.agent, game.generations.get(seat)?);
        let mut versions = self.league.agents().iter();
        id_in(versions.find(|agent| agent.entrant.name == *name && agent.generation == *generation)?)
    }

    /// Draws the ratings of the best agents over the games of the season, from each agent's first game on.
    pub(crate) fn picture(&self) -> Option<&Picture> {
        self.picture.get_or_init(|| self.draw()).as_ref()
    }

    fn draw(&self) -> Option<Picture> {
        let season = self.league.season();
        let games = season.results().len();
        let step = games.div_ceil(POINTS).max(1);
        // Each agent with the number of games up to its first.
        let best: Vec<(AgentIndex, usize)> = (self.rows.iter().take(CURVES))
            .filter_map(|row| {
                let is_row = |agent: &LeagueAgent| agent.entrant.name == row.name && agent.generation == row.generation;
                let agent = AgentIndex(self.league.members().position(is_row)?);
                let plays = |game: arena_ratings::Game<'_>| game.seats.iter().any(|seat| seat.agent == agent);
                Some((agent, 1 + season.results().games().position(plays)?))
            })
            .collect();
        let name = |agent: &AgentIndex| self.league.member(agent.0).entrant.name.clone();
        let mut curves: Vec<Curve> =
            best.iter().map(|(agent, _)| Curve { name: name(agent), values: Vec::new() }).collect();
        for end in (1..=games / step).map(|point| point * step) {
            let fit = season.fit(end).ok()?;
            for ((agent, _), curve) in best.iter().zip(&mut curves).filter(|((_, first), _)| *first <= end) {
                let (value, interval) = (fit.rating(*agent), fit.interval(*agent));
                if value.is_finite() {
                    curve.values.push(Estimate { value, interval });
                }
            }
        }
        let unit = format!("× {step} games since the first");
        over_time(&TimeAxis { title: "Elo over time, with 95 % interval", x: &unit }, &curves)
    }
}

impl Tournaments {
    /// True if this server plays ladders.
    pub(crate) fn has_ladders(&self) -> bool {
        self.0.settings.ladder_share > 0.0 && self.0.settings.nats_url.is_none()
    }

    pub(super) fn ladder_folder(&self, game: &str) -> PathBuf {
        self.0.ladders.join(game)
    }

    /// Returns the match that this node plays now in the ladder of a game.
    pub(crate) fn ladder_match(&self, game: &str) -> Option<LadderMatch> {
        self.0.ladder_views.current.lock().clone().filter(|current| current.game == game)
    }

    /// Returns a season of a game's ladder, `None` for the current one. Returns `None` if no agent has joined yet.
    ///
    /// # Errors
    /// If there is no such season, or the journal can't be read.
    pub(crate) fn ladder(
        &self,
        game: &'static str,
        season: Option<usize>,
    ) -> Result<Option<Arc<Ladder>>, TournamentRefusal> {
        let folder = self.ladder_folder(game);
        let Ok(bytes) = Journal::size(&folder) else { return Ok(None) };
        let views = &self.0.ladder_views.views;
        let known = views.lock().get(&(game, season)).filter(|(at, _)| *at == bytes).map(|(_, view)| Arc::clone(view));
        if known.is_some() {
            return Ok(known);
        }
        let league = match LeagueFolder::load(&folder, season) {
            Ok(league) => league,
            Err(JournalError::Absent(_)) => return Ok(None),
            Err(error) => return Err(TournamentRefusal::Damaged(error.to_string())),
        };
        if let Some(season) = season.filter(|season| *season != league.season().number()) {
            return Err(TournamentRefusal::NoSeason { game, season });
        }
        let view = Arc::new(Ladder::of(league));
        views.lock().insert((game, season), (bytes, Arc::clone(&view)));
        Ok(Some(view))
    }

    /// Finds a recorded game of a ladder in any season.
    ///
    /// # Errors
    /// If the journal can't be read.
    pub(crate) fn ladder_game(
        &self,
        game: &'static str,
        number: usize,
    ) -> Result<Option<Arc<Ladder>>, TournamentRefusal> {
        let Some(current) = self.ladder(game, None)? else { return Ok(None) };
        let has_it = |view: &Arc<Ladder>| view.league.game(number).is_some();
        if has_it(&current) {
            return Ok(Some(current));
        }
        for season in (1..current.season.number).rev() {
            if let Some(view) = self.ladder(game, Some(season))?.filter(has_it) {
                return Ok(Some(view));
            }
        }
        Ok(None)
    }

    /// Returns the agents that join the ladder of a game, in the order of their uploads.
    pub(crate) fn ladder_agents(&self, game: &str) -> Vec<Arc<AgentFacts>> {
        let joins = |facts: &&Arc<AgentFacts>| facts.ladder.as_ref().is_some_and(|entry| entry.game == game);
        self.state().agents.values().filter(joins).cloned().collect()
    }

    /// Returns the names of the agents that wait until the ladder's player adds them, after the running match.
    pub(crate) fn waiting_for_ladder(&self, game: &str, view: Option<&Ladder>) -> Vec<String> {
        let has =
            |id: AgentId| view.is_some_and(|view| view.league.agents().iter().any(|agent| id_in(agent) == Some(id)));
        self.ladder_agents(game).iter().filter(|facts| !has(facts.id)).map(|facts| facts.name.clone()).collect()
    }

    /// Ends the season of a ladder, after the running match. Waits for at most [`LET_GO_WITHIN`]. Returns the number of
    /// the season, and true if it has ended.
    ///
    /// # Errors
    /// If there is no such ladder, or its folder can't be read or written.
    pub(crate) fn close_season(&self, game: &'static str) -> Result<(usize, bool), TournamentRefusal> {
        let season = || Ok::<_, TournamentRefusal>(self.ladder(game, None)?.map(|view| view.season.number));
        let number = season()?.ok_or(TournamentRefusal::NoLadder(game))?;
        fs::write(self.ladder_folder(game).join(CLOSE), number.to_string())?;
        self.0.changed.notify_all();
        let until = Instant::now() + LET_GO_WITHIN;
        while season()? == Some(number) {
            if Instant::now() > until {
                return Ok((number, false));
            }
            thread::sleep(Duration::from_millis(20));
        }
        Ok((number, true))
    }

    /// Checks that an uploaded agent starts and plays a game. `folder` is the agent's folder. The time counts against the
    /// limits of `maker`.
    ///
    /// # Errors
    /// The agent's first fault, with its repair.
    pub(super) fn check_plays(
        &self,
        facts: &AgentFacts,
        folder: &Path,
        game: &str,
        maker: Option<IpAddr>,
    ) -> Result<(), TournamentRefusal> {
        let shared = &*self.0;
        let game = find_game(game)?;
        let agent = source::agent_of(facts, folder)?;
        let refuse = |text: String| {
            let text = self.redaction().redacted(&text).replace(&format!("agents/.{}/", facts.id), "");
            Err(TournamentRefusal::Agent(format!("the agent cannot join the ladder of {}: {text}", game.name)))
        };
        // An agent from which the ladder's files can't be hidden would end the games of all agents.
        let outputs = self.ladder_folder(game.name);
        let private =
            private(std::slice::from_ref(&agent), &[], SandboxMode::Required, &[OutputPath::Folder(&outputs)]);
        let private = match private {
            Ok(private) => private,
            Err(error) => return refuse(error.to_string()),
        };
        let confinement = Confinement {
            launcher: shared.launcher.clone(),
            mode: SandboxMode::Required,
            limits: Limits::default(),
            expose: Vec::new(),
            private,
            public_only: !shared.settings.private_urls,
        };
        let _one = shared.checking.lock();
        let began = Instant::now();
        let plan =
            CheckPlan { agent: &agent, games: &[game], seed: &shared.engine.draw_seed(), confinement: &confinement };
        let checked = check(plan, &shared.called_off);
        shared.ledger.charge_matches(maker, began.elapsed());
        let report = match checked {
            Ok(report) => report,
            Err(MatchError::CalledOff) => return Err(TournamentRefusal::Busy),
            Err(error) => return refuse(causes(&error)),
        };
        let wrong = report.findings.iter().find(|finding| finding.severity == Severity::Wrong);
        match wrong.filter(|_| !report.is_fine) {
            None => Ok(()),
            Some(finding) => {
                let log = finding.log.as_deref().unwrap_or_default();
                let is_alone = matches!(facts.home, Home::Files { files: 1, .. });
                let advice = match is_alone && MISSING_MODULE.iter().any(|error| log.contains(error)) {
                    true => {
                        "it needs another file: upload its folder with `arena agent upload`, or put all into one file"
                    }
                    false => &finding.advice,
                };
                let log = if log.is_empty() { String::new() } else { format!("; its stderr ends: {log}") };
                refuse(format!("its check found a fault: {}; {advice}{log}", finding.what))
            }
        }
    }
}

/// Returns the game with this name.
///
/// # Errors
/// If there is none.
pub(crate) fn find_game(name: &str) -> Result<&'static GameType, TournamentRefusal> {
    arena_games::game(name).ok_or_else(|| TournamentRefusal::NoGame(name.to_owned()))
}

/// Returns the seat of a version of an agent in a game.
fn seat_of(game: &GameLine, agent: &LeagueAgent) -> Option<usize> {
    let mut seats = game.result.seats.iter().zip(&game.generations);
    seats.position(|(seat, generation)| seat.agent == agent.entrant.name && *generation == agent.generation)
}
