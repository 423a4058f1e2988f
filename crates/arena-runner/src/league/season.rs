//! A season with its games, and the choice of the next meeting. The choice is pure: equal games give equal meetings.
//!
//! A *meeting* is the games (*legs*) between the same agents with one seed; the agents have different seats in each
//! leg. The legs of a meeting that has begun are played before another meeting begins. At first, new meetings are
//! chosen so that games connect all agents, directly or through others. After that, the agent with the widest interval
//! plays the opponents against which a game is most informative. Games under way count as played, since their
//! information doesn't depend on the result.

use std::collections::BTreeMap;

use arena_model::Seed;
use arena_ratings::bradley_terry::{Fit, FitError, FitOptions, Forecast, fit};
use arena_ratings::{AgentIndex, Results};
use arena_store::{League, LeagueAgent, LeagueAgentNo, LeagueGame, Leagues, StoreError};
use arena_tournament::Pairing;

/// The divisor for the number of games between rating fits: a new fit follows when there are 1/32 more games.
const FEW: usize = 32;

#[derive(Debug, Clone)]
pub struct Season {
    league: League,
    number: u32,
    /// All versions of agents that have played or can play in the season, in the order of entry.
    agents: Vec<LeagueAgent>,
    /// For each entry of `agents`, true if it can play.
    is_ready: Vec<bool>,
    games: Vec<LeagueGame>,
    results: Results,
    connections: Connections,
    /// The number of the last meeting. Meetings are numbered across all seasons.
    last_meeting: u64,
    meetings: BTreeMap<u64, Meeting>,
}

/// Two agents are connected if they share a game, or a chain of shared games links them.
#[derive(Debug, Clone)]
struct Connections {
    /// The number of each agent's group. Agents of a group are connected.
    groups: Vec<usize>,
    /// The number of games of each agent.
    games: Vec<usize>,
}

impl Connections {
    fn of(agents: usize) -> Connections {
        Connections { groups: (0..agents).collect(), games: vec![0; agents] }
    }

    fn add(&mut self, seated: &[usize]) {
        for &agent in seated {
            self.games[agent] += 1;
            let (one, two) = (self.groups[agent], self.groups[seated[0]]);
            if one != two {
                self.groups.iter_mut().filter(|group| **group == one).for_each(|group| *group = two);
            }
        }
    }
}

#[derive(Debug, Clone)]
struct Meeting {
    /// The agents, by seat in the first leg.
    agents: Vec<usize>,
    legs: Vec<Leg>,
}

/// The state of a game of a meeting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Leg {
    Waiting,
    UnderWay,
    Played,
}

impl Season {
    /// Loads a season from the store. In the current season, all agents in the league can play; in a closed season,
    /// none can.
    ///
    /// # Errors
    /// [`StoreError`] if the store can't be read, or is damaged.
    pub async fn load(leagues: &Leagues, league: League, number: u32) -> Result<Season, StoreError> {
        let games = leagues.list_games(league.no, number).await?;
        let agents = leagues.list_agents(league.no).await?;
        let last_meeting = leagues.find_last_meeting(league.no).await?;
        Season::new(league, number, agents, games, last_meeting)
    }

    /// Creates a season with this number. `agents` contains all agents that the league has ever had.
    ///
    /// # Errors
    /// [`StoreError::Damaged`] if a game is invalid.
    pub fn new(
        league: League,
        number: u32,
        agents: Vec<LeagueAgent>,
        games: Vec<LeagueGame>,
        last_meeting: u64,
    ) -> Result<Season, StoreError> {
        let is_present = number == league.season;
        let has_played =
            |agent: &LeagueAgent| games.iter().flat_map(|game| &game.result.seats).any(|seat| seat.agent == agent.no);
        let is_in = |agent: &LeagueAgent| is_present && agent.removed_at.is_none();
        let agents: Vec<LeagueAgent> = agents.into_iter().filter(|agent| is_in(agent) || has_played(agent)).collect();
        let is_ready = agents.iter().map(is_in).collect();
        let (results, connections) = (Results::new(agents.len()), Connections::of(agents.len()));
        let mut season = Season {
            league,
            number,
            agents,
            is_ready,
            games: Vec::with_capacity(games.len()),
            results,
            connections,
            last_meeting,
            meetings: BTreeMap::new(),
        };
        for game in games {
            season.add(game)?;
        }
        Ok(season)
    }

    pub fn league(&self) -> &League {
        &self.league
    }

    /// Returns the season's number, from 1.
    pub fn number(&self) -> u32 {
        self.number
    }

    /// Returns all versions of agents that have played in the season or are in the league, in the order of entry.
    pub fn agents(&self) -> &[LeagueAgent] {
        &self.agents
    }

    /// Returns the games, in the order in which they ended.
    pub fn games(&self) -> &[LeagueGame] {
        &self.games
    }

    /// Returns the results, as input for ratings. An agent's number is its index in [`Season::agents`].
    pub fn results(&self) -> &Results {
        &self.results
    }

    /// Returns the index of an agent in [`Season::agents`].
    pub fn index_of(&self, agent: LeagueAgentNo) -> Option<usize> {
        self.agents.iter().position(|known| known.no == agent)
    }

    /// Excludes an agent from further games.
    pub fn exclude(&mut self, agent: LeagueAgentNo) {
        if let Some(place) = self.index_of(agent) {
            self.is_ready[place] = false;
        }
    }

    /// Returns the indexes of the agents that can play.
    pub fn ready(&self) -> impl Iterator<Item = usize> + '_ {
        (0..self.agents.len()).filter(|place| self.is_ready[*place])
    }

    /// Returns the meetings under way: number, agents and number of missing games.
    pub fn unfinished(&self) -> impl Iterator<Item = (u64, &[usize], usize)> {
        self.meetings.iter().map(|(number, meeting)| {
            let missing = meeting.legs.iter().filter(|leg| **leg != Leg::Played).count();
            (*number, meeting.agents.as_slice(), missing)
        })
    }

    /// Returns the number of games in a meeting.
    pub fn legs(&self) -> usize {
        if self.league.rules.paired { self.league.rules.seats } else { 1 }
    }

    /// Returns the number of games in the rating fit from which meetings are chosen. The fit uses all games while there
    /// are few, and later omits the newest few percent, so that a new fit is rarely needed. The number depends only on
    /// the number of games, so an interruption of the run doesn't change the choice.
    pub fn fitted(&self) -> usize {
        let grown = |games: usize| games + (games / FEW).max(1);
        let mut games = 0;
        while grown(games) <= self.games.len() {
            games = grown(games);
        }
        games
    }

    /// Fits Bradley–Terry strengths to the first `games` results.
    ///
    /// # Errors
    /// [`FitError`] if there are too many agents.
    pub fn fit(&self, games: usize) -> Result<Fit, FitError> {
        let mut results = Results::new(self.agents.len());
        for game in self.results.games().take(games) {
            let seats: Vec<(AgentIndex, u32)> = game.seats.iter().map(|seat| (seat.agent, seat.rank)).collect();
            results.push(&seats, game.pair).expect("these results were valid before");
        }
        fit(&results, &FitOptions::default())
    }

    /// Returns the next leg of a meeting under way, and marks this leg as under way. `None` if every leg is under way,
    /// has been played, or needs an agent that can't play.
    pub fn next_leg(&mut self) -> Option<Pairing> {
        let is_ready = &self.is_ready;
        let (number, meeting) = self.meetings.iter_mut().find(|(_, meeting)| {
            meeting.legs.contains(&Leg::Waiting) && meeting.agents.iter().all(|agent| is_ready[*agent])
        })?;
        let leg = meeting.legs.iter().position(|leg| *leg == Leg::Waiting)?;
        meeting.legs[leg] = Leg::UnderWay;
        let (number, agents) = (*number, meeting.agents.clone());
        Some(self.pairing_of(number, agents, leg + 1))
    }

    /// Returns the pairing of a leg. `agents` are the agents of the meeting, by seat in the first leg.
    fn pairing_of(&self, meeting: u64, mut agents: Vec<usize>, leg: usize) -> Pairing {
        agents.rotate_left(leg - 1);
        let seed = meeting_seed(&self.league, meeting);
        Pairing { number: 0, round: self.number as usize, meeting, leg, agents, seed }
    }

    /// Returns the pairing of a leg, from 1, of a meeting that has begun; `None` if there is no such meeting in the
    /// season.
    pub fn pairing(&self, meeting: u64, leg: usize) -> Option<Pairing> {
        let agents = match self.meetings.get(&meeting) {
            Some(meeting) => meeting.agents.clone(),
            // The last games are the most likely ones.
            None => self.first_seats(self.games.iter().rev().find(|game| game.meeting == meeting)?)?,
        };
        (1..=self.legs()).contains(&leg).then(|| self.pairing_of(meeting, agents, leg))
    }

    /// Returns true if a game with this meeting and leg is stored.
    pub fn has_played(&self, meeting: u64, leg: usize) -> bool {
        match self.meetings.get(&meeting) {
            Some(meeting) => meeting.legs.get(leg - 1) == Some(&Leg::Played),
            None => self.games.iter().rev().any(|game| (game.meeting, game.leg) == (meeting, leg)),
        }
    }

    /// Returns the agents of a stored game's meeting, by seat in the first leg; `None` if the season has no such agent.
    fn first_seats(&self, game: &LeagueGame) -> Option<Vec<usize>> {
        let agents: Option<Vec<usize>> = game.result.seats.iter().map(|seat| self.index_of(seat.agent)).collect();
        agents.map(|mut agents| {
            agents.rotate_right(game.leg - 1);
            agents
        })
    }

    /// Starts another meeting with at least one agent for which `is_wanted` returns true. `fit` must be the fit of the
    /// first [`Season::fitted`] games; later games are taken into account by their expected information, without their
    /// results. Returns false if there is no such meeting.
    pub fn meet(&mut self, fit: &Fit, is_wanted: impl Fn(AgentIndex) -> bool) -> bool {
        let seats = self.league.rules.seats;
        let mut all = Forecast::new(fit, seats, self.legs());
        let mut last = 0;
        for game in &self.games[self.fitted()..] {
            // Each later meeting is taken into account once. The games of a meeting are mostly consecutive.
            if game.meeting != last && !self.meetings.contains_key(&game.meeting) {
                last = game.meeting;
                let agents = game.result.seats.iter().filter_map(|seat| self.index_of(seat.agent));
                all.take(&agents.map(AgentIndex).collect::<Vec<_>>());
            }
        }
        let mut chosen = Vec::new();
        // Agents without a connection come first, since their ratings can't be compared with the others.
        if let Some((isolated, others)) = self.isolated() {
            let may_play = |agent: AgentIndex| agent.0 == isolated || others.contains(&agent.0);
            chosen = all.clone().among(may_play).next(|agent, _| agent.0 == isolated && is_wanted(agent));
        }
        if chosen.is_empty() {
            let mut forecast = all.among(|agent| self.is_ready[agent.0]);
            for meeting in self.meetings.values().filter(|meeting| meeting.legs.contains(&Leg::UnderWay)) {
                let agents: Vec<AgentIndex> = meeting.agents.iter().copied().map(AgentIndex).collect();
                forecast.take(&agents);
            }
            chosen = forecast.next(|agent, _| is_wanted(agent));
        }
        if chosen.is_empty() {
            return false;
        }
        self.last_meeting += 1;
        let mut agents: Vec<usize> = chosen.into_iter().map(|agent| agent.0).collect();
        // The seats are shuffled, so that the agent that was chosen first isn't always on the first seat.
        let mut rng = meeting_seed(&self.league, self.last_meeting).rng("seats");
        for place in (1..agents.len()).rev() {
            agents.swap(place, rng.below(place as u64 + 1) as usize);
        }
        self.meetings.insert(self.last_meeting, Meeting { agents, legs: vec![Leg::Waiting; self.legs()] });
        true
    }

    /// Returns the agent with the fewest games, with the opponents that would connect it to more agents. Meetings under
    /// way count as games. `None` if games connect all agents.
    fn isolated(&self) -> Option<(usize, Vec<usize>)> {
        let Connections { groups, games } = {
            let mut connections = self.connections.clone();
            self.meetings.values().for_each(|meeting| connections.add(&meeting.agents));
            connections
        };
        let isolated = self.ready().min_by_key(|agent| games[*agent])?;
        let others: Vec<usize> = self.ready().filter(|other| groups[*other] != groups[isolated]).collect();
        if others.is_empty() {
            return None;
        }
        // New agents play each other, so that concurrent games don't all wait for the same opponent.
        let new: Vec<usize> = others.iter().copied().filter(|other| games[*other] == 0).collect();
        let others = if games[isolated] == 0 && new.len() >= self.league.rules.seats - 1 { new } else { others };
        // If there are too few such opponents for all seats, agents of the isolated agent's own group fill the rest.
        let needed = self.league.rules.seats.saturating_sub(1);
        let own = self.ready().filter(|other| groups[*other] == groups[isolated] && *other != isolated);
        let room = needed.saturating_sub(others.len());
        Some((isolated, others.iter().copied().chain(own.take(room)).collect()))
    }

    /// Returns true if a game of a known meeting is neither under way nor played.
    pub fn is_waiting(&self, meeting: u64, leg: usize) -> bool {
        self.meetings.get(&meeting).is_some_and(|known| known.legs[leg - 1] == Leg::Waiting)
    }

    /// Takes back a game that ended without a result, so that it is played again.
    pub fn give_back(&mut self, game: &Pairing) {
        self.set_leg(game.meeting, game.leg, Leg::Waiting);
    }

    /// Adds a stored game.
    ///
    /// # Errors
    /// [`StoreError::Damaged`] if the game is invalid: an unknown agent, or wrong seats, legs or ranks.
    pub fn add(&mut self, game: LeagueGame) -> Result<(), StoreError> {
        let damaged = |reason: String| StoreError::Damaged {
            what: format!("game {} of league {}", game.number, self.league.name),
            reason,
        };
        let mut agents = Vec::with_capacity(game.result.seats.len());
        for seat in &game.result.seats {
            agents.push(self.index_of(seat.agent).ok_or_else(|| damaged("it names an unknown agent".to_owned()))?);
        }
        let legs = self.legs();
        if agents.len() != self.league.rules.seats || !(1..=legs).contains(&game.leg) {
            return Err(damaged("its seats or legs don't fit the league".to_owned()));
        }
        let ranks = game.result.seats.iter().map(|seat| u32::try_from(seat.rank).unwrap_or(u32::MAX));
        let seats: Vec<(AgentIndex, u32)> = agents.iter().copied().map(AgentIndex).zip(ranks).collect();
        // Games of a meeting share a seed.
        let pair = self.league.rules.paired.then_some(game.meeting);
        // A void game is no evidence for ratings, and doesn't connect agents.
        if !game.result.outcome.is_void() {
            self.results.push(&seats, pair).map_err(|error| damaged(error.to_string()))?;
            self.connections.add(&agents);
        }
        agents.rotate_right(game.leg - 1);
        self.meetings.entry(game.meeting).or_insert_with(|| Meeting { agents, legs: vec![Leg::Waiting; legs] });
        self.set_leg(game.meeting, game.leg, Leg::Played);
        self.games.push(game);
        Ok(())
    }

    fn set_leg(&mut self, meeting: u64, leg: usize, becomes: Leg) {
        let Some(known) = self.meetings.get_mut(&meeting) else { return };
        known.legs[leg - 1] = becomes;
        if known.legs.iter().all(|leg| *leg == Leg::Played) {
            self.meetings.remove(&meeting);
        }
    }
}

/// Returns the seed that the games of a meeting share.
fn meeting_seed(league: &League, meeting: u64) -> Seed {
    league.seed.derive(&format!("meeting {meeting}"))
}

#[cfg(test)]
mod tests;
