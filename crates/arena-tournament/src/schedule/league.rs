//! League format: an open-ended competition in seasons. The choice of the next meeting is pure: equal games give equal
//! meetings.
//!
//! A *meeting* is the games (*legs*) between the same agents with one seed; the agents have different seats in each
//! leg. The legs of a meeting that has begun are played before another meeting begins. At first, new meetings are
//! chosen so that games connect all agents, directly or through others. After that, the agent with the widest interval
//! plays the opponents against which a game is most informative. Games under way count as played, since their
//! information doesn't depend on the result.
//!
//! Other formats choose their pairings again when a journal is read. A league doesn't: the number of a recorded game
//! gives its meeting and leg. Therefore games that end in another order don't contradict the choice.

use std::collections::BTreeMap;

use arena_model::Seed;
use arena_ratings::bradley_terry::{Fit, FitError, FitOptions, Forecast, fit};
use arena_ratings::{AgentIndex, Results};

use super::{Pairing, RecordError, are_ranks};
use crate::format::FormatInfo;
use crate::shape::Shape;

pub const LEAGUE: FormatInfo = FormatInfo {
    name: "league",
    help: "Open-ended: agents join and leave, and the most uncertain rating plays next",
    rounds: "games",
    is_adaptive: true,
    is_of_pairs: false,
    usual_rounds: |_| 0,
    meetings: |_| None,
    check: |_| Ok(()),
    start: None,
};

/// The divisor for the number of games between rating fits: a new fit follows when there are 1/32 more games.
const FEW: usize = 32;

/// A season of a league: its games, and the choice of the next meeting. Agents are numbered in the order in which they
/// joined the season, from 0.
#[derive(Debug, Clone)]
pub struct Season {
    number: usize,
    seats: usize,
    /// The number of games in a meeting.
    legs: usize,
    seed: Seed,
    /// True for each agent that can play.
    is_ready: Vec<bool>,
    /// The meeting of each recorded game, with the agents by seat in the first leg.
    games: Vec<(u64, Vec<usize>)>,
    results: Results,
    connections: Connections,
    /// The number of the last meeting. Meetings are numbered across all seasons.
    last_meeting: u64,
    meetings: BTreeMap<u64, Meeting>,
}

/// Two agents are connected if they share a game, or a chain of shared games links them.
#[derive(Debug, Clone, Default)]
struct Connections {
    /// The number of each agent's group. Agents of a group are connected.
    groups: Vec<usize>,
    /// The number of games of each agent.
    games: Vec<usize>,
}

impl Connections {
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
    /// Creates the first season of a league with this shape, without agents.
    pub(crate) fn first(shape: &Shape) -> Season {
        Season {
            number: 1,
            seats: shape.seats,
            legs: shape.games_a_meeting(),
            seed: shape.seed.clone(),
            is_ready: Vec::new(),
            games: Vec::new(),
            results: Results::new(0),
            connections: Connections::default(),
            last_meeting: 0,
            meetings: BTreeMap::new(),
        }
    }

    /// Creates the season after this one, without agents. Meetings under way don't continue.
    pub(crate) fn following(&self) -> Season {
        Season {
            number: self.number + 1,
            is_ready: Vec::new(),
            games: Vec::new(),
            results: Results::new(0),
            connections: Connections::default(),
            meetings: BTreeMap::new(),
            ..self.clone()
        }
    }

    /// Returns the season's number, from 1.
    pub fn number(&self) -> usize {
        self.number
    }

    /// Returns the results, as input for ratings. Void games are left out.
    pub fn results(&self) -> &Results {
        &self.results
    }

    /// Returns the number of agents, which include those that can't play.
    pub fn agents(&self) -> usize {
        self.is_ready.len()
    }

    /// Returns the number of rated games of an agent.
    pub fn games_of(&self, agent: usize) -> usize {
        self.connections.games[agent]
    }

    /// Adds an agent that can play, and returns its number.
    pub(crate) fn add_agent(&mut self) -> usize {
        self.is_ready.push(true);
        self.connections.groups.push(self.connections.groups.len());
        self.connections.games.push(0);
        self.results.add_agent().0
    }

    /// Permits an agent to play further games, or excludes it from them.
    pub fn set_ready(&mut self, agent: usize, is_ready: bool) {
        self.is_ready[agent] = is_ready;
    }

    /// Returns the agents that can play.
    pub fn ready(&self) -> impl Iterator<Item = usize> + '_ {
        (0..self.is_ready.len()).filter(|agent| self.is_ready[*agent])
    }

    /// Returns true if games of this meeting are missing.
    pub fn is_unfinished(&self, meeting: u64) -> bool {
        self.meetings.contains_key(&meeting)
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
        let mut results = Results::new(self.agents());
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
        agents.rotate_left((leg - 1) % self.seats);
        let before = usize::try_from(meeting - 1).unwrap_or(usize::MAX);
        let number = before.saturating_mul(self.legs).saturating_add(leg);
        Pairing { number, round: self.number, meeting, leg, agents, seed: self.meeting_seed(meeting) }
    }

    /// Returns the meeting and the leg of the game with this number; `None` for 0.
    fn place_of(&self, number: usize) -> Option<(u64, usize)> {
        let before = number.checked_sub(1)?;
        Some(((before / self.legs) as u64 + 1, before % self.legs + 1))
    }

    /// Returns the pairing with this number if its meeting has begun in this season.
    pub fn pairing(&self, number: usize) -> Option<Pairing> {
        let (meeting, leg) = self.place_of(number)?;
        let agents = match self.meetings.get(&meeting) {
            Some(meeting) => &meeting.agents,
            // The last games are the most likely ones.
            None => &self.games.iter().rev().find(|(of, _)| *of == meeting)?.1,
        };
        Some(self.pairing_of(meeting, agents.clone(), leg))
    }

    /// Starts another meeting with at least one agent for which `is_wanted` returns true. `fit` must be the fit of the
    /// first [`Season::fitted`] games; later games are taken into account by their expected information, without their
    /// results. Returns false if there is no such meeting.
    pub fn meet(&mut self, fit: &Fit, is_wanted: impl Fn(AgentIndex) -> bool) -> bool {
        let mut all = Forecast::new(fit, self.seats, self.legs);
        let mut last = 0;
        for (meeting, agents) in &self.games[self.fitted()..] {
            // Each later meeting is taken into account once. The games of a meeting are mostly consecutive.
            if *meeting != last && !self.meetings.contains_key(meeting) {
                last = *meeting;
                all.take(&agents.iter().copied().map(AgentIndex).collect::<Vec<_>>());
            }
        }
        let mut chosen = Vec::new();
        // Agents without a connection come first, since their ratings can't be compared with the others. If such an agent
        // isn't wanted itself, it meets wanted ones.
        if let Some((isolated, others)) = self.isolated() {
            let is_own = is_wanted(AgentIndex(isolated));
            let may_meet = |agent| others.contains(&agent) && (is_own || is_wanted(AgentIndex(agent)));
            let mut forecast = all.clone().among(|agent| agent.0 == isolated || may_meet(agent.0));
            chosen = forecast.next(|agent, _| agent.0 == isolated);
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
        let mut rng = self.meeting_seed(self.last_meeting).rng("seats");
        for place in (1..agents.len()).rev() {
            agents.swap(place, rng.below(place as u64 + 1) as usize);
        }
        self.meetings.insert(self.last_meeting, Meeting { agents, legs: vec![Leg::Waiting; self.legs] });
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
        let needed = self.seats.saturating_sub(1);
        let others = if games[isolated] == 0 && new.len() >= needed { new } else { others };
        // If there are too few such opponents for all seats, agents of the isolated agent's own group fill the rest.
        let own = self.ready().filter(|other| groups[*other] == groups[isolated] && *other != isolated);
        let room = needed.saturating_sub(others.len());
        Some((isolated, others.iter().copied().chain(own.take(room)).collect()))
    }

    /// Returns true if the game with this number is of a meeting that has begun, and is neither under way nor played.
    pub fn is_waiting(&self, number: usize) -> bool {
        let place = self.place_of(number);
        let leg = place.and_then(|(meeting, leg)| self.meetings.get(&meeting)?.legs.get(leg - 1).copied());
        leg == Some(Leg::Waiting)
    }

    /// Takes back a game that ended without a result, so that it is played again.
    pub fn give_back(&mut self, game: &Pairing) {
        self.set_leg(game.meeting, game.leg, Leg::Waiting);
    }

    /// Takes back all games under way. Workers may not have finished the games of the last run.
    pub fn give_back_all(&mut self) {
        let legs = self.meetings.values_mut().flat_map(|meeting| &mut meeting.legs);
        legs.filter(|leg| **leg == Leg::UnderWay).for_each(|leg| *leg = Leg::Waiting);
    }

    /// Checks a result, but doesn't record it. `agents` are the agents by seat, and `ranks` are `None` for a void game.
    /// The caller guarantees that no game with this number is recorded.
    pub(crate) fn check(
        &self,
        number: usize,
        agents: &[usize],
        seed: &Seed,
        ranks: Option<&[usize]>,
    ) -> Result<(), String> {
        let (meeting, leg) = self.place_of(number).ok_or("games are numbered from 1")?;
        let seats = self.seats;
        if agents.len() != seats {
            return Err(format!("game {number} has {} seats, but games of this league have {seats}", agents.len()));
        }
        if agents.iter().enumerate().any(|(seat, agent)| agents[..seat].contains(agent)) {
            return Err(format!("an agent has two seats in game {number}"));
        }
        if *seed != self.meeting_seed(meeting) {
            return Err(format!("game {number} has another seed in this league"));
        }
        let begun = self.meetings.get(&meeting);
        if begun.is_some_and(|begun| self.pairing_of(meeting, begun.agents.clone(), leg).agents != agents) {
            return Err(format!("game {number} is between other agents than the games with the same seed"));
        }
        match ranks.filter(|&ranks| !are_ranks(ranks, seats)) {
            Some(ranks) => Err(RecordError::Ranks { number, seats, ranks: ranks.to_vec() }.to_string()),
            None => Ok(()),
        }
    }

    /// Records a checked result.
    pub(crate) fn add(&mut self, number: usize, mut agents: Vec<usize>, ranks: Option<&[usize]>) {
        let Some((meeting, leg)) = self.place_of(number) else { return };
        // A void game is no evidence for ratings, and doesn't connect agents.
        if let Some(ranks) = ranks {
            let ranks = ranks.iter().map(|rank| u32::try_from(*rank).unwrap_or(u32::MAX));
            let seats: Vec<(AgentIndex, u32)> = agents.iter().copied().map(AgentIndex).zip(ranks).collect();
            // Games of a meeting share a seed.
            let pair = (self.legs > 1).then_some(meeting);
            self.results.push(&seats, pair).expect("the result was checked");
            self.connections.add(&agents);
        }
        agents.rotate_right((leg - 1) % self.seats);
        self.last_meeting = self.last_meeting.max(meeting);
        let legs = vec![Leg::Waiting; self.legs];
        self.meetings.entry(meeting).or_insert_with(|| Meeting { agents: agents.clone(), legs });
        self.set_leg(meeting, leg, Leg::Played);
        self.games.push((meeting, agents));
    }

    fn set_leg(&mut self, meeting: u64, leg: usize, becomes: Leg) {
        let Some(known) = self.meetings.get_mut(&meeting) else { return };
        known.legs[leg - 1] = becomes;
        if known.legs.iter().all(|leg| *leg == Leg::Played) {
            self.meetings.remove(&meeting);
        }
    }

    /// Returns the seed that the games of a meeting share.
    fn meeting_seed(&self, meeting: u64) -> Seed {
        self.seed.derive(&format!("meeting {meeting}"))
    }
}

#[cfg(test)]
mod tests;
