//! A season as far as it has been played, and who meets next. Pure: equal games give equal meetings.
//!
//! A meeting that has begun is played to its end before another one begins. Then whoever no game ties to the others yet meets some of
//! them, and after that whoever's rating is least sure meets those against whom a game tells most about it; games under way count as played for that, since how much they tell doesn't depend on who wins.

use std::collections::BTreeMap;

use arena_model::Seed;
use arena_ratings::bradley_terry::{Fit, FitError, FitOptions, Forecast, fit};
use arena_ratings::{AgentIndex, Results};
use arena_store::{League, LeagueAgent, LeagueAgentNo, LeagueGame, Leagues, StoreError};
use arena_tournament::Pairing;

/// A fit is made again when so many times fewer games have been added than it is of.
const FEW: usize = 32;

/// A season of a league: its agents, and what they have played.
#[derive(Debug, Clone)]
pub struct Season {
    league: League,
    number: u32,
    /// All versions that have played in it or can be asked to, in the order of coming.
    agents: Vec<LeagueAgent>,
    /// Which of them can be asked to play.
    is_ready: Vec<bool>,
    games: Vec<LeagueGame>,
    results: Results,
    /// Who is tied to whom by games.
    ties: Ties,
    /// The number of the last meeting in any season.
    last_meeting: u64,
    /// Those that have begun and aren't over.
    meetings: BTreeMap<u64, Meeting>,
}

/// Who is tied to whom by games, by whatever way through third ones.
#[derive(Debug, Clone)]
struct Ties {
    /// Of each agent: the number of its group. Those in one group are tied to each other.
    groups: Vec<usize>,
    /// How many games each agent has.
    games: Vec<usize>,
}

impl Ties {
    fn of(agents: usize) -> Ties {
        Ties { groups: (0..agents).collect(), games: vec![0; agents] }
    }

    /// Takes a game of these agents.
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

/// A meeting under way.
#[derive(Debug, Clone)]
struct Meeting {
    /// The agents by seat in its first leg.
    agents: Vec<usize>,
    legs: Vec<Leg>,
}

/// What has become of a game of a meeting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Leg {
    Waiting,
    UnderWay,
    Played,
}

impl Season {
    /// A season as the store has it. All agents that are in the league are taken as ready to play, if it is the present one.
    ///
    /// # Errors
    /// If the store can't be read, or holds something that can't be.
    pub async fn load(leagues: &Leagues, league: League, number: u32) -> Result<Season, StoreError> {
        let games = leagues.list_games(league.no, number).await?;
        let agents = leagues.list_agents(league.no).await?;
        let last_meeting = leagues.find_last_meeting(league.no).await?;
        Season::new(league, number, agents, games, last_meeting)
    }

    /// The season of this number, of a league that has ever had these agents.
    ///
    /// # Errors
    /// If a game can't be one: it names nobody known, or its ranks are none.
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
        let (results, ties) = (Results::new(agents.len()), Ties::of(agents.len()));
        let mut season = Season {
            league,
            number,
            agents,
            is_ready,
            games: Vec::with_capacity(games.len()),
            results,
            ties,
            last_meeting,
            meetings: BTreeMap::new(),
        };
        for game in games {
            season.add(game)?;
        }
        Ok(season)
    }

    /// The league.
    pub fn league(&self) -> &League {
        &self.league
    }

    /// Its number, from 1.
    pub fn number(&self) -> u32 {
        self.number
    }

    /// All versions of agents that have played in it or are in the league, in the order of coming.
    pub fn agents(&self) -> &[LeagueAgent] {
        &self.agents
    }

    /// The games that have been played, in the order in which they ended.
    pub fn games(&self) -> &[LeagueGame] {
        &self.games
    }

    /// The same, to be rated: agents by their place in [`Season::agents`].
    pub fn results(&self) -> &Results {
        &self.results
    }

    /// The place of an agent in [`Season::agents`].
    pub fn place(&self, agent: LeagueAgentNo) -> Option<usize> {
        self.agents.iter().position(|known| known.no == agent)
    }

    /// Asks an agent for no more games.
    pub fn excuse(&mut self, agent: LeagueAgentNo) {
        if let Some(place) = self.place(agent) {
            self.is_ready[place] = false;
        }
    }

    /// The agents that can be asked to play: their places.
    pub fn ready(&self) -> impl Iterator<Item = usize> + '_ {
        (0..self.agents.len()).filter(|place| self.is_ready[*place])
    }

    /// The meetings that have begun and aren't over: who plays, and how many of their games are missing.
    pub fn unfinished(&self) -> impl Iterator<Item = (u64, &[usize], usize)> {
        self.meetings.iter().map(|(number, meeting)| {
            let missing = meeting.legs.iter().filter(|leg| **leg != Leg::Played).count();
            (*number, meeting.agents.as_slice(), missing)
        })
    }

    /// How many games a meeting has.
    pub fn legs(&self) -> usize {
        if self.league.rules.paired { self.league.rules.seats } else { 1 }
    }

    /// How many of the first games a fit is made of, by which meetings are chosen: all while there are few, and later all but the last
    /// few of a hundred, so that fits don't cost more and more. It follows from the number of games, so that it is the same
    /// wherever a season was broken off.
    pub fn fitted(&self) -> usize {
        let grown = |games: usize| games + (games / FEW).max(1);
        let mut games = 0;
        while grown(games) <= self.games.len() {
            games = grown(games);
        }
        games
    }

    /// How strong the first so many results say that the agents are.
    ///
    /// # Errors
    /// If there are too many agents.
    pub fn fit(&self, games: usize) -> Result<Fit, FitError> {
        let mut results = Results::new(self.agents.len());
        for game in self.results.games().take(games) {
            let seats: Vec<(AgentIndex, u32)> = game.seats.iter().map(|seat| (seat.agent, seat.rank)).collect();
            results.push(&seats, game.pair).expect("results take again what they took before");
        }
        fit(&results, &FitOptions::default())
    }

    /// A game of a meeting that has begun, which is under way from now on. None if all are under way or played, or need agents that
    /// can't be asked.
    pub fn next_leg(&mut self) -> Option<Pairing> {
        let is_ready = &self.is_ready;
        let (number, meeting) = self.meetings.iter_mut().find(|(_, meeting)| {
            meeting.legs.contains(&Leg::Waiting) && meeting.agents.iter().all(|agent| is_ready[*agent])
        })?;
        let leg = meeting.legs.iter().position(|leg| *leg == Leg::Waiting)?;
        meeting.legs[leg] = Leg::UnderWay;
        let mut agents = meeting.agents.clone();
        agents.rotate_left(leg);
        let seed = meeting_seed(&self.league, *number);
        Some(Pairing { number: 0, round: self.number as usize, meeting: *number, leg: leg + 1, agents, seed })
    }

    /// Begins another meeting, of which one agent at least is wanted. `fit` is that of the first [`Season::fitted`] games; those after
    /// them count as played, whoever won. Whether there is one to begin.
    pub fn meet(&mut self, fit: &Fit, is_wanted: impl Fn(AgentIndex) -> bool) -> bool {
        let seats = self.league.rules.seats;
        let mut all = Forecast::new(fit, seats, self.legs());
        let mut last = 0;
        for game in &self.games[self.fitted()..] {
            // The other games of a meeting follow the first, unless others are played beside it.
            if game.meeting != last && !self.meetings.contains_key(&game.meeting) {
                last = game.meeting;
                let agents = game.result.seats.iter().filter_map(|seat| self.place(seat.agent));
                all.take(&agents.map(AgentIndex).collect::<Vec<_>>());
            }
        }
        let mut chosen = Vec::new();
        // Ratings of agents that nothing ties to each other can't be compared, whatever their intervals say: that comes first.
        if let Some((stranger, others)) = self.stranger() {
            let may_play = |agent: AgentIndex| agent.0 == stranger || others.contains(&agent.0);
            chosen = all.clone().among(may_play).next(|agent, _| agent.0 == stranger && is_wanted(agent));
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
        // Whoever is chosen first mustn't always sit first.
        let mut rng = meeting_seed(&self.league, self.last_meeting).rng("seats");
        for place in (1..agents.len()).rev() {
            agents.swap(place, rng.below(place as u64 + 1) as usize);
        }
        self.meetings.insert(self.last_meeting, Meeting { agents, legs: vec![Leg::Waiting; self.legs()] });
        true
    }

    /// Somebody whom no game ties to the others, by whatever way through third ones, and whom it could meet to change that. The one with
    /// the fewest games; meetings under way count.
    fn stranger(&self) -> Option<(usize, Vec<usize>)> {
        let Ties { groups, games } = {
            let mut ties = self.ties.clone();
            self.meetings.values().for_each(|meeting| ties.add(&meeting.agents));
            ties
        };
        let stranger = self.ready().min_by_key(|agent| games[*agent])?;
        let others: Vec<usize> = self.ready().filter(|other| groups[*other] != groups[stranger]).collect();
        if others.is_empty() {
            return None;
        }
        // Those who are new meet each other, so that games beside each other aren't all of the same one.
        let new: Vec<usize> = others.iter().copied().filter(|other| games[*other] == 0).collect();
        let others = if games[stranger] == 0 && new.len() >= self.league.rules.seats - 1 { new } else { others };
        // A table that they don't fill has room for its own group.
        let needed = self.league.rules.seats.saturating_sub(1);
        let own = self.ready().filter(|other| groups[*other] == groups[stranger] && *other != stranger);
        let room = needed.saturating_sub(others.len());
        Some((stranger, others.iter().copied().chain(own.take(room)).collect()))
    }

    /// Gives a game back that came to nothing, to be played again.
    pub fn give_back(&mut self, game: &Pairing) {
        self.set_leg(game.meeting, game.leg, Leg::Waiting);
    }

    /// Takes a game that has been played and kept.
    ///
    /// # Errors
    /// If it can't be one: it names nobody known, or its ranks are none.
    pub fn add(&mut self, game: LeagueGame) -> Result<(), StoreError> {
        let damaged = |reason: String| StoreError::Damaged {
            what: format!("game {} of league {}", game.number, self.league.name),
            reason,
        };
        let mut agents = Vec::with_capacity(game.result.seats.len());
        for seat in &game.result.seats {
            agents
                .push(self.place(seat.agent).ok_or_else(|| damaged("it names an agent that isn't there".to_owned()))?);
        }
        let legs = self.legs();
        if agents.len() != self.league.rules.seats || !(1..=legs).contains(&game.leg) {
            return Err(damaged("it has other seats or legs than games of its league".to_owned()));
        }
        let ranks = game.result.seats.iter().map(|seat| u32::try_from(seat.rank).unwrap_or(u32::MAX));
        let seats: Vec<(AgentIndex, u32)> = agents.iter().copied().map(AgentIndex).zip(ranks).collect();
        // Games of a meeting share their luck.
        let pair = self.league.rules.paired.then_some(game.meeting);
        // A void game tells nothing of its agents.
        if !game.result.outcome.is_void() {
            self.results.push(&seats, pair).map_err(|error| damaged(error.to_string()))?;
            self.ties.add(&agents);
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

/// What the games of a meeting have as seed.
fn meeting_seed(league: &League, meeting: u64) -> Seed {
    league.seed.derive(&format!("meeting {meeting}"))
}

#[cfg(test)]
mod tests;
