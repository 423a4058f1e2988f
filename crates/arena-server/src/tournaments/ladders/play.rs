//! The thread that plays ladders: one meeting after the other, with rests between them, in turns of the addresses that
//! have uploaded the agents.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::convert::Infallible;
use std::fs;
use std::net::IpAddr;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use arena_match::line_file::LineFileError;
use arena_match::{Agent, Channel, SandboxMode, cores, logs};
use arena_model::GameType;
use arena_runner::{
    Competition, Event, Executor, Journal, JournalError, LeagueFolder, LocalExecutor, RunError, Until, causes, enter,
};
use arena_tournament::{Format, LeagueAgent, Membership, Shape, TournamentPlan};

use super::{AgentFacts, CLOSE, LadderMatch, Tournaments, id_in, seat_of, source};
use crate::tournaments::address_turns::AddressTurns;
use crate::tournaments::plan::free_name;
use crate::tournaments::state::CreatedId;
use crate::tournaments::{AgentId, LOOK, MatchSource};

/// The bots that are on each ladder, if they can play its game.
const BUILT_IN: [&str; 3] = ["house", "house:easy", "random"];

/// Number of games in a season after which an agent plays only as the opponent of others. Its 95 % interval is then about
/// ±35 Elo.
const ENOUGH: usize = 400;

/// Number of disqualifications in a row after which an agent is suspended.
const FAILURES: usize = 10;

/// Number of the latest replays of a ladder that are kept.
const KEPT: usize = 1_000;

/// Time until a ladder is tried again after an error.
const AFTER_ERROR: Duration = Duration::from_secs(60);

struct LadderPlayer<'t> {
    tournaments: &'t Tournaments,
    /// The ladders whose journals this node has locked, by game.
    open: BTreeMap<&'static str, LeagueFolder>,
    /// The ladders with errors, with the time of the next try.
    failed: BTreeMap<&'static str, Instant>,
    turns: AddressTurns,
    rest_until: Instant,
}

impl Tournaments {
    /// Plays ladders until the server stops.
    pub(in crate::tournaments) fn play_ladders(&self) {
        let mut player = LadderPlayer {
            tournaments: self,
            open: BTreeMap::new(),
            failed: BTreeMap::new(),
            turns: AddressTurns::default(),
            rest_until: Instant::now(),
        };
        loop {
            let leads = self.0.engine.leads();
            if !leads {
                // Another node plays them.
                player.open.clear();
            } else if !self.is_shared() || self.try_read_changes() {
                player.update();
            }
            let is_playing = leads && player.play_next();
            let mut state = self.state();
            if state.is_stopping {
                return;
            }
            if !is_playing {
                let rest = player.rest_until.saturating_duration_since(Instant::now());
                self.0.changed.wait_for(&mut state, if rest.is_zero() { LOOK } else { rest.min(LOOK) });
            }
        }
    }

    /// Opens or creates the ladder of a game. Returns `None` if another node plays it.
    fn open_ladder(&self, game: &'static GameType) -> Result<Option<LeagueFolder>, JournalError> {
        let folder = self.ladder_folder(game.name);
        // Opening a journal waits for its lock, which another node may hold for long.
        if matches!(Journal::try_lock(&folder), Ok(None)) {
            return Ok(None);
        }
        let mut league = match LeagueFolder::open(&folder) {
            Ok(league) => league,
            Err(JournalError::Locked(_)) => return Ok(None),
            Err(JournalError::Absent(_)) => LeagueFolder::create(&folder, self.ladder_plan(game))?,
            Err(error) => return Err(error),
        };
        if let Err(error) = league.check_rules() {
            let number = league.close_season()?;
            tracing::info!("season {number} of the ladder of {} begins: {error}", game.name);
        }
        for name in BUILT_IN {
            let bot = Agent::find(name, "")
                .ok()
                .filter(|bot| matches!(&bot.channel, Channel::BuiltIn(built_in) if built_in.check(game).is_ok()));
            if let Some(entrant) = bot.and_then(|bot| enter(&bot, Path::new("")).ok()) {
                league.add_agent(entrant)?;
            }
        }
        Ok(Some(league))
    }

    fn ladder_plan(&self, game: &'static GameType) -> TournamentPlan {
        let settings = &self.0.settings;
        let shape = Shape {
            format: Format::League,
            agents: 0,
            rounds: 0,
            seats: 2.clamp(*game.seats.start(), *game.seats.end()),
            paired: true,
            stop: None,
            seed: self.0.engine.draw_seed(),
        };
        let mut plan = TournamentPlan::new(game, Vec::new(), &shape);
        plan.sandbox = SandboxMode::Required;
        plan.public_only = !settings.private_urls;
        plan.replays = settings.keep_replays;
        plan
    }

    /// Plays one meeting of a ladder, in which one of the agents `turn` takes part.
    fn play_meeting(&self, game: &'static str, league: &mut LeagueFolder, turn: Vec<usize>) -> Result<(), String> {
        let shared = &*self.0;
        league.set_turn(Some(turn));
        league.set_limits(Until { games: Some(1), ..Until::default() });
        let executor = LocalExecutor {
            launcher: &shared.launcher,
            concurrency: 1,
            cores: &cores(),
            replay_bytes: shared.settings.replay_bytes,
            stop: &shared.called_off,
            called_off: &shared.called_off,
            sign_key: Some(&shared.sign_key),
        };
        let current = &shared.ladder_views.current;
        let on_event = |league: &LeagueFolder, event| -> Result<(), Infallible> {
            match event {
                Event::Begun(number) => {
                    let seated = league.pairing(number).map(|pairing| pairing.agents).unwrap_or_default();
                    let name = |agent| league.league().member(agent).entrant.name.clone();
                    *current.lock() =
                        Some(LadderMatch { game, number, agents: seated.into_iter().map(name).collect() });
                }
                Event::Played(number) => {
                    *current.lock() = None;
                    self.drop_replay(game, number.saturating_sub(KEPT), league.plan().seats);
                }
                Event::Changed(_) | Event::Note(_) | Event::Workers { .. } => {}
            }
            Ok(())
        };
        let played = executor.play(league, on_event);
        *current.lock() = None;
        match played {
            Ok(_) => suspend_failing(league).map_err(|error| error.to_string()),
            Err(RunError::Match { number, source }) => Err(format!("game {number}: {}", causes(&source))),
            Err(error) => Err(error.to_string()),
        }
    }

    /// Removes the replay and the logs of a game, if there are any.
    fn drop_replay(&self, game: &'static str, number: usize, seats: usize) {
        let replay = self.replay_path(MatchSource::Ladder(game), number);
        // What can't be removed now takes space, but does no other harm.
        let _ = fs::remove_file(&replay);
        for seat in 0..seats {
            let _ = fs::remove_file(logs::path(&replay, seat));
        }
    }
}

impl LadderPlayer<'_> {
    /// Opens the ladders that this node can play, and brings their agents and seasons up to date.
    fn update(&mut self) {
        for game in arena_games::games() {
            let agents = self.tournaments.ladder_agents(game.name);
            let is_there = !agents.is_empty() || self.tournaments.ladder_folder(game.name).exists();
            if !is_there || self.failed.get(game.name).is_some_and(|until| Instant::now() < *until) {
                continue;
            }
            if let Err(error) = self.update_ladder(game, &agents) {
                self.fail(game.name, &error.to_string());
            }
        }
    }

    fn fail(&mut self, game: &'static str, error: &str) {
        tracing::warn!("the ladder of {game} rests for {} s: {error}", AFTER_ERROR.as_secs());
        self.failed.insert(game, Instant::now() + AFTER_ERROR);
        self.open.remove(game);
    }

    fn update_ladder(&mut self, game: &'static GameType, agents: &[Arc<AgentFacts>]) -> Result<(), JournalError> {
        let league = match self.open.entry(game.name) {
            Entry::Occupied(open) => open.into_mut(),
            Entry::Vacant(place) => match self.tournaments.open_ladder(game)? {
                Some(league) => place.insert(league),
                None => return Ok(()),
            },
        };
        for facts in agents {
            let known = league.league().agents();
            let is_of = |id: AgentId| move |agent: &&LeagueAgent| id_in(agent) == Some(id);
            if known.iter().any(|agent| is_of(facts.id)(&agent)) {
                continue;
            }
            let replaced = facts.ladder.as_ref().and_then(|entry| entry.replaces);
            let name = match replaced.and_then(|id| known.iter().find(is_of(id))) {
                Some(before) => before.entrant.name.clone(),
                None => free_name(&facts.name, |name| known.iter().any(|agent| agent.entrant.name == name)),
            };
            let folder = self.tournaments.0.agents.join(facts.id.to_string());
            // The files may be removed at this moment.
            let Ok(entrant) = source::enter(facts, &folder, &name) else { continue };
            league.add_agent(entrant)?;
            tracing::info!(agent = %facts.id, "{name} joined the ladder of {}", game.name);
        }
        // The files of earlier versions aren't needed any more, unless an unfinished tournament needs them.
        for facts in agents {
            let is_earlier =
                |agent: &LeagueAgent| id_in(agent) == Some(facts.id) && agent.membership == Membership::Gone;
            if league.league().agents().iter().any(is_earlier)
                && let Err(error) = self.tournaments.remove_agent(facts.id)
            {
                tracing::debug!(agent = %facts.id, %error, "kept the earlier version of an agent: {error}");
            }
        }
        let is_gone = |id: AgentId| !agents.iter().any(|facts| facts.id == id);
        let gone: Vec<String> = (league.league().agents().iter())
            .filter(|agent| agent.membership != Membership::Gone && id_in(agent).is_some_and(is_gone))
            .map(|agent| agent.entrant.name.clone())
            .collect();
        for name in gone {
            league.remove(&name)?;
            tracing::info!("{name} left the ladder of {}", game.name);
        }
        let request = league.folder().join(CLOSE);
        if let Ok(number) = fs::read_to_string(&request) {
            // The request may be older than the season's end, if the server was killed in between.
            if number.parse() == Ok(league.league().season().number()) {
                league.close_season()?;
            }
            fs::remove_file(&request).map_err(|source| LineFileError::Write { path: request, source })?;
        }
        Ok(())
    }

    /// Plays a meeting, unless the ladders rest. Returns false if none was played.
    fn play_next(&mut self) -> bool {
        if Instant::now() < self.rest_until {
            return false;
        }
        let Some((game, turn)) = self.choose() else { return false };
        let Some(league) = self.open.get_mut(game) else { return false };
        let (began, before) = (Instant::now(), league.league().games().len());
        let played = catch_unwind(AssertUnwindSafe(|| self.tournaments.play_meeting(game, league, turn)));
        let is_idle = league.league().games().len() == before;
        let share = self.tournaments.0.settings.ladder_share;
        let rest = began.elapsed().mul_f64((1.0 - share) / share.max(f64::EPSILON));
        // Without an opponent there is no meeting.
        self.rest_until = Instant::now() + if is_idle { LOOK } else { rest };
        match played {
            Ok(Ok(())) => {}
            Ok(Err(error)) => self.fail(game, &error),
            Err(_) => self.fail(game, "internal error of the server"),
        }
        true
    }

    /// Chooses the ladder of the next meeting, and the agents of which one takes part: agents of one address that need
    /// games, and built-in bots without a game. `None` if all agents have enough games.
    fn choose(&mut self) -> Option<(&'static str, Vec<usize>)> {
        struct Candidate {
            id: AgentId,
            game: &'static str,
            games: usize,
            agent: usize,
        }
        let (mut candidates, mut new_bots): (Vec<Candidate>, Vec<(&str, usize)>) = (Vec::new(), Vec::new());
        for (game, league) in &self.open {
            let season = league.league().season();
            for agent in season.ready() {
                let games = season.games_of(agent);
                match id_in(league.league().member(agent)) {
                    Some(id) if games < ENOUGH => candidates.push(Candidate { id, game, games, agent }),
                    None if games == 0 => new_bots.push((game, agent)),
                    Some(_) | None => {}
                }
            }
        }
        let makers: Vec<Option<IpAddr>> = {
            let state = self.tournaments.state();
            candidates.iter().map(|one| state.makers.get(&CreatedId::Agent(one.id)).copied()).collect()
        };
        let maker = makers[self.turns.give(&makers)?];
        let of_maker = || candidates.iter().zip(&makers).filter(|(_, of)| **of == maker).map(|(one, _)| one);
        let game = of_maker().min_by_key(|one| one.games)?.game;
        let new_bots = new_bots.into_iter().filter(|(of, _)| *of == game).map(|(_, agent)| agent);
        Some((game, of_maker().filter(|one| one.game == game).map(|one| one.agent).chain(new_bots).collect()))
    }
}

/// Suspends the agents that failed in each of their last games. A move against the rules isn't a failure.
fn suspend_failing(league: &mut LeagueFolder) -> Result<(), JournalError> {
    let content = league.league();
    let failing = |agent: usize| {
        let member = content.member(agent);
        id_in(member)?;
        let own = content.games().iter().rev().filter_map(|game| Some((game, seat_of(game, member)?)));
        let faults: Vec<_> =
            own.take(FAILURES).map(|(game, seat)| (game.number, game.result.seats[seat].verdict)).collect();
        let (number, last) = *faults.first()?;
        let is_failing = faults.len() == FAILURES
            && faults.iter().all(|(_, verdict)| verdict.is_some_and(|verdict| !verdict.is_of_the_game()));
        let reason = format!(
            "it was disqualified in {FAILURES} games in a row, last in game {number}: {}; upload a new version",
            last?.in_words()
        );
        is_failing.then(|| (member.entrant.name.clone(), reason))
    };
    let failing: Vec<(String, String)> = content.season().ready().filter_map(failing).collect();
    for (name, reason) in failing {
        tracing::info!("{name} is suspended: {reason}");
        league.suspend(&name, &reason)?;
    }
    Ok(())
}
