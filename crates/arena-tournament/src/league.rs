//! The content of a league's journal: the plan, the agents with their versions, and the games of a season.
//! `arena-runner` reads and writes the file.

use std::collections::BTreeMap;

use arena_model::MatchResult;

use crate::journal::{CheckedLine, GameLine, JournalLine, SeasonClosedLine, SpreadLine, WorkerPart};
use crate::plan::{Entrant, PlanError, TournamentPlan};
use crate::record::{InvalidLine, Lines, lines_of, without_place};
use crate::schedule::Pairing;
use crate::schedule::league::Season;
use crate::shape::ShapeError;

/// A league, as recorded in its journal. An agent is identified by its description with the fingerprint of its files: any
/// difference makes another version, which starts without games. An agent that returns unchanged keeps its games.
#[derive(Debug, Clone)]
pub struct League {
    /// The plan, with the version of the rules and the texts of the season.
    pub plan: TournamentPlan,
    /// All versions of agents that the league has had, in the order in which they first joined.
    agents: Vec<LeagueAgent>,
    season: Season,
    /// The index in `agents` of each agent of the season.
    members: Vec<usize>,
    /// The games of the season, in the order in which they ended.
    games: Vec<GameLine>,
    /// The index in `games` of each game, by its number.
    by_number: BTreeMap<usize, usize>,
    /// True if the reader stopped at the end of this season.
    pub is_closed: bool,
    /// The start of execution by NATS workers; `None` if no workers have played.
    pub spread: Option<SpreadLine>,
    /// The second plays of the season's matches by other workers.
    pub checked: Vec<CheckedLine>,
    /// The number of bytes in the incomplete last line, which the reader ignores.
    pub cut_off: usize,
}

#[derive(Debug, Clone, PartialEq)]
pub struct LeagueAgent {
    pub entrant: Entrant,
    /// The number of the version among those with the same name, from 1.
    pub generation: u32,
    pub membership: Membership,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Membership {
    Present,
    /// In the league, but not playing for this reason.
    Suspended(String),
    Gone,
}

impl League {
    /// Creates a league of the plan's agents, without games.
    ///
    /// # Errors
    /// [`PlanError`] if the plan is invalid, or isn't of a league.
    pub fn new(plan: TournamentPlan) -> Result<League, PlanError> {
        plan.check()?;
        if !plan.format.is_open_ended() {
            return Err(ShapeError::OpenEnded.into());
        }
        let entrants = plan.agents.clone();
        let mut league = League {
            season: Season::first(&plan.shape()?),
            plan,
            agents: Vec::new(),
            members: Vec::new(),
            games: Vec::new(),
            by_number: BTreeMap::new(),
            is_closed: false,
            spread: None,
            checked: Vec::new(),
            cut_off: 0,
        };
        entrants.into_iter().for_each(|entrant| league.enter(entrant));
        Ok(league)
    }

    /// Reads a journal, up to the end of the season with the number `season`. `None` for the current season.
    ///
    /// # Errors
    /// [`InvalidLine`] if a line contradicts the earlier ones.
    pub fn read(text: &[u8], season: Option<usize>) -> Result<League, InvalidLine> {
        let Lines { plan, lines, cut_off } = lines_of(text)?;
        let wrong = |line: usize, what: String| InvalidLine { line, what };
        let mut league = League::new(plan).map_err(|error| wrong(1, error.to_string()))?;
        for (number, line) in lines {
            let line: JournalLine = serde_json::from_slice(line).map_err(|error| {
                wrong(number, format!("the line isn't a line of a league's journal: {}", without_place(&error)))
            })?;
            if matches!(line, JournalLine::SeasonClosed(_)) && season == Some(league.season.number()) {
                league.is_closed = true;
                break;
            }
            league.take(line).map_err(|what| wrong(number, what))?;
        }
        league.cut_off = cut_off;
        Ok(league)
    }

    /// Checks that a line doesn't contradict the earlier lines, but doesn't apply it.
    ///
    /// # Errors
    /// The reason that [`League::take`] would return.
    pub fn check_line(&self, line: &JournalLine) -> Result<(), String> {
        match line {
            JournalLine::Game(game) => self.check_game(game).map(drop),
            JournalLine::Added(_) | JournalLine::SeasonClosed(_) | JournalLine::Spread(_) => Ok(()),
            JournalLine::Removed(removed) => self.find_member(&removed.agent).map(drop),
            JournalLine::Suspended(suspended) => self.find_member(&suspended.agent).map(drop),
            JournalLine::Checked(checked) => match self.game(checked.fixture) {
                Some(_) => Ok(()),
                None => Err(format!("game {} was checked before it was played", checked.fixture)),
            },
            JournalLine::Changed(_) | JournalLine::Quarantined(_) => {
                Err("such lines aren't in the journal of a league".to_owned())
            }
        }
    }

    /// Applies a line of the journal.
    ///
    /// # Errors
    /// The reason that the line contradicts the earlier lines.
    pub fn take(&mut self, line: JournalLine) -> Result<(), String> {
        match line {
            JournalLine::Game(game) => self.add(*game)?,
            JournalLine::Added(entrant) => self.enter(*entrant),
            JournalLine::Removed(removed) => self.leave(self.find_member(&removed.agent)?, Membership::Gone),
            JournalLine::Suspended(suspended) => {
                self.leave(self.find_member(&suspended.agent)?, Membership::Suspended(suspended.reason));
            }
            JournalLine::SeasonClosed(closed) => self.close_season(closed),
            JournalLine::Spread(spread) => self.spread = Some(spread),
            JournalLine::Checked(checked) => {
                self.check_line(&JournalLine::Checked(checked.clone()))?;
                self.checked.push(checked);
            }
            line => self.check_line(&line)?,
        }
        Ok(())
    }

    fn enter(&mut self, entrant: Entrant) {
        let namesake = self.find(&entrant.name).map(|(index, _)| index);
        let known = self.agents.iter().position(|agent| agent.entrant == entrant);
        if let Some(namesake) = namesake.filter(|namesake| Some(*namesake) != known) {
            self.leave(namesake, Membership::Gone);
        }
        let index = known.unwrap_or_else(|| {
            let generation = 1 + self.generations_of(&entrant.name);
            self.agents.push(LeagueAgent { entrant, generation, membership: Membership::Gone });
            self.agents.len() - 1
        });
        self.agents[index].membership = Membership::Present;
        match self.place_of(index) {
            Some(place) => self.season.set_ready(place, true),
            None => {
                self.members.push(index);
                self.season.add_agent();
            }
        }
    }

    /// Takes an agent, given by its index in `agents`, out of play.
    fn leave(&mut self, index: usize, membership: Membership) {
        self.agents[index].membership = membership;
        if let Some(place) = self.place_of(index) {
            self.season.set_ready(place, false);
        }
    }

    fn close_season(&mut self, closed: SeasonClosedLine) {
        (self.plan.rules_version, self.plan.texts) = (closed.rules_version, closed.texts);
        self.season = self.season.following();
        self.members =
            (0..self.agents.len()).filter(|agent| self.agents[*agent].membership != Membership::Gone).collect();
        for index in self.members.clone() {
            let place = self.season.add_agent();
            self.season.set_ready(place, self.agents[index].membership == Membership::Present);
        }
        self.games.clear();
        self.by_number.clear();
        self.checked.clear();
    }

    fn add(&mut self, game: GameLine) -> Result<(), String> {
        let agents = self.check_game(&game)?;
        let ranks = (!game.result.outcome.is_void()).then(|| game.result.ranks());
        self.season.add(game.number, agents, ranks.as_deref());
        self.by_number.insert(game.number, self.games.len());
        self.games.push(game);
        Ok(())
    }

    /// Checks a result against the season. Returns the agents' numbers in the season, by seat.
    fn check_game(&self, game: &GameLine) -> Result<Vec<usize>, String> {
        let (number, season) = (game.number, self.season.number());
        if self.game(number).is_some() {
            return Err(format!("game {number} has a result on an earlier line; remove one of the lines"));
        }
        if game.round != season {
            return Err(format!("game {number} is of season {}, but season {season} is under way", game.round));
        }
        let result = &game.result;
        if game.generations.len() != result.seats.len() {
            return Err(format!("game {number} doesn't have the version of each agent"));
        }
        let place = |(name, generation): (&str, &u32)| {
            // Later versions are more likely.
            let found = self.members.iter().rposition(|member| {
                let agent = &self.agents[*member];
                agent.generation == *generation && agent.entrant.name == name
            });
            found.ok_or_else(|| format!("there is no version {generation} of an agent {name} in season {season}"))
        };
        let agents: Vec<usize> =
            result.names().into_iter().zip(&game.generations).map(place).collect::<Result<_, _>>()?;
        let ranks = (!result.outcome.is_void()).then(|| result.ranks());
        self.season.check(number, &agents, &result.seed, ranks.as_deref())?;
        Ok(agents)
    }

    /// Returns the line for the result of a pairing.
    pub fn line_of<A>(&self, pairing: &Pairing, result: MatchResult<A>, worker: Option<WorkerPart>) -> GameLine {
        let agents: Vec<&LeagueAgent> = pairing.agents.iter().map(|agent| self.member(*agent)).collect();
        GameLine {
            number: pairing.number,
            round: pairing.round,
            result: result.with_agents(|seat, _| agents[seat].entrant.name.clone()),
            generations: agents.iter().map(|agent| agent.generation).collect(),
            worker,
        }
    }

    /// Returns all versions of agents that the league has had, in the order in which they first joined.
    pub fn agents(&self) -> &[LeagueAgent] {
        &self.agents
    }

    /// Returns the agents of the season, in the order of their numbers there.
    pub fn members(&self) -> impl Iterator<Item = &LeagueAgent> {
        self.members.iter().map(|index| &self.agents[*index])
    }

    /// Returns the agent with this number in the season, from 0.
    pub fn member(&self, agent: usize) -> &LeagueAgent {
        &self.agents[self.members[agent]]
    }

    /// Returns the present or suspended version of the agent with this name, with its index in [`League::agents`].
    pub fn find(&self, name: &str) -> Option<(usize, &LeagueAgent)> {
        let mut agents = self.agents.iter().enumerate();
        agents.find(|(_, agent)| agent.entrant.name == name && agent.membership != Membership::Gone)
    }

    fn find_member(&self, name: &str) -> Result<usize, String> {
        self.find(name).map(|(index, _)| index).ok_or_else(|| format!("there is no agent {name} in the league"))
    }

    /// Returns the number in the season of an agent, given by its index in [`League::agents`].
    pub fn place_of(&self, index: usize) -> Option<usize> {
        self.members.iter().position(|member| *member == index)
    }

    /// Returns the number of versions that an agent has had.
    pub fn generations_of(&self, name: &str) -> u32 {
        let versions = self.agents.iter().filter(|agent| agent.entrant.name == name);
        versions.map(|agent| agent.generation).max().unwrap_or(0)
    }

    pub fn season(&self) -> &Season {
        &self.season
    }

    /// Returns the season, for the choice of games. The games themselves are added by [`League::take`].
    pub fn season_mut(&mut self) -> &mut Season {
        &mut self.season
    }

    /// Returns the games of the season, in the order in which they ended.
    pub fn games(&self) -> &[GameLine] {
        &self.games
    }

    /// Returns the result of the season's game with this number, if it was played.
    pub fn game(&self, number: usize) -> Option<&GameLine> {
        self.by_number.get(&number).map(|index| &self.games[*index])
    }
}

#[cfg(test)]
mod tests;
