//! The folder of a league: an open-ended tournament in seasons, which agents may join and leave between games.
//!
//! `arena-tournament` has the league's content ([`League`]) and chooses the pairings. This module keeps the journal,
//! checks the agents' files and limits a run.

use std::path::Path;
use std::time::Instant;

use arena_match::Agent;
use arena_model::{GameType, MatchResult};
use arena_nats::NatsUrl;
use arena_ratings::AgentIndex;
use arena_ratings::bradley_terry::Fit;
use arena_tournament::{
    Entrant, JournalLine, League, LeagueAgent, Membership, Pairing, RemovedLine, SeasonClosedLine, SpreadLine,
    SuspendedLine, TournamentPlan, WorkerPart,
};

use crate::competition::{Competition, Next};
use crate::entrants::{EntrantError, FilesChanged, enter, fingerprint_of};
use crate::executor::RunError;
use crate::journal::{JournalError, JournalFile, parse, read};
use crate::nats::{PrepareError, Prepared, prepare_agents};

/// The number of jobs per slot of the workers that may be on the queue or being played. With more, meetings would be
/// chosen before the results on which they depend.
const JOBS_PER_SLOT: usize = 2;

/// The open folder of a league, whose journal this process has locked.
///
/// Its owner lets an executor play, and changes it between runs: a raised `stop` flag ends a run after the matches under
/// way. A run plays the agents that were in the league at its start.
#[derive(Debug)]
pub struct LeagueFolder {
    league: League,
    file: JournalFile,
    until: Until,
    /// The agents whose turn it is, by number in the season; `None` for all.
    turn: Option<Vec<usize>>,
    /// The last rating fit, with the numbers of games and agents that it uses.
    fit: Option<((usize, usize), Fit)>,
    /// The number of games that were started in this run and not given back.
    begun: u64,
}

/// The limits of a run. The run ends when the first limit is reached, but completes each meeting (the games of one set
/// of agents with one seed) that has begun.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Until {
    /// The largest number of further games.
    pub games: Option<u64>,
    /// The time after which no new meeting begins.
    pub at: Option<Instant>,
    /// The goal for the 95 % rating interval of every agent that can play, as ± Elo.
    pub margin: Option<f64>,
}

/// An agent that has joined a league.
#[derive(Debug, Clone, PartialEq)]
pub struct Joined {
    pub agent: LeagueAgent,
    /// True if the league hasn't had this version before.
    pub is_new: bool,
}

/// A change of an agent that [`LeagueFolder::check_files`] has found.
#[derive(Debug)]
pub enum Change {
    /// Changed files. The agent's later games count for another version of the agent.
    NextVersion { before: Box<LeagueAgent>, now: Box<Joined> },
    /// Missing or unreadable files. The league is played without the agent until a later check finds the files.
    Absent { name: String, reason: String },
}

impl LeagueFolder {
    /// Creates the journal of a league in a folder, and the folder if it doesn't exist. The agents' paths become
    /// absolute.
    ///
    /// # Errors
    /// [`JournalError`] if the plan is invalid, the folder already has a journal, or the journal can't be written.
    pub fn create(folder: &Path, mut plan: TournamentPlan) -> Result<LeagueFolder, JournalError> {
        plan.note_texts();
        plan.agents.iter_mut().for_each(make_path_absolute);
        let league = League::new(plan)?;
        let file = JournalFile::create(folder, &league.plan)?;
        Ok(LeagueFolder::of(league, file))
    }

    /// Opens the league in a folder. Removes an incomplete last line; [`League::cut_off`] is the number of removed
    /// bytes. The rules are checked later, by [`LeagueFolder::check_rules`], since closing a season changes them.
    ///
    /// # Errors
    /// [`JournalError`] if there is no journal, another process has locked it, or it is invalid.
    pub fn open(folder: &Path) -> Result<LeagueFolder, JournalError> {
        let (file, league) = JournalFile::open(folder, |text| parse(folder, text, |text| League::read(text, None)))?;
        Ok(LeagueFolder::of(league, file))
    }

    /// Reads the league in a folder without locking it, up to the end of the season with this number. `None` for the
    /// current season. Another process may append at the same time.
    ///
    /// # Errors
    /// [`JournalError`] if there is no journal, or the journal is invalid.
    pub fn load(folder: &Path, season: Option<usize>) -> Result<League, JournalError> {
        read(folder, |text| League::read(text, season))
    }

    fn of(league: League, file: JournalFile) -> LeagueFolder {
        LeagueFolder { league, file, until: Until::default(), turn: None, fit: None, begun: 0 }
    }

    pub fn league(&self) -> &League {
        &self.league
    }

    /// Sets the loaded rules of a league whose rules are a script. `game` must have the version of the plan's script.
    /// Without a script, has no effect.
    pub fn set_rules(&mut self, game: &'static GameType) {
        if let Some(script) = self.league.plan.script.clone() {
            self.league.plan.set_rules(script, game);
        }
    }

    /// Checks that the season was started with this program's version of the rules and texts.
    ///
    /// # Errors
    /// [`JournalError::Plan`] if it was started with others.
    pub fn check_rules(&self) -> Result<(), JournalError> {
        Ok(self.league.plan.check_rules()?)
    }

    /// Sets the number of concurrent matches for this run. Doesn't change the plan in the journal file.
    pub fn set_concurrency(&mut self, concurrency: usize) {
        self.league.plan.concurrency = concurrency;
    }

    /// Sets the limits of the next runs.
    pub fn set_limits(&mut self, until: Until) {
        self.until = until;
    }

    /// Sets the agents, by number in the season, of which each new meeting of the next runs has at least one. `None` for
    /// all agents.
    pub fn set_turn(&mut self, turn: Option<Vec<usize>>) {
        self.turn = turn;
    }

    /// Describes an agent for this league, with the fingerprint of its current files and an absolute path.
    ///
    /// # Errors
    /// [`EntrantError`] if the agent's files can't be read, or its paths aren't UTF-8.
    pub fn describe(&self, agent: &Agent) -> Result<Entrant, EntrantError> {
        let mut entrant = enter(agent, self.file.folder())?;
        make_path_absolute(&mut entrant);
        Ok(entrant)
    }

    /// Adds an agent durably, or lets it return or play again after a suspension. Another version with the same name
    /// leaves. For an unchanged agent that is in the league, nothing is written.
    ///
    /// # Errors
    /// [`JournalError`] if the journal can't be written.
    pub fn add_agent(&mut self, entrant: Entrant) -> Result<Joined, JournalError> {
        let before = self.league.generations_of(&entrant.name);
        let present = self.league.find(&entrant.name).filter(|(_, agent)| agent.entrant == entrant);
        if present.is_none_or(|(_, agent)| agent.membership != Membership::Present) {
            self.append(JournalLine::Added(Box::new(entrant.clone())))?;
        }
        let (_, agent) = self.league.find(&entrant.name).expect("the agent has joined");
        Ok(Joined { agent: agent.clone(), is_new: agent.generation > before })
    }

    /// Removes an agent durably. Its results stay.
    ///
    /// # Errors
    /// [`JournalError`] if the league has no agent of this name, or the journal can't be written.
    pub fn remove(&mut self, name: &str) -> Result<(), JournalError> {
        self.append(JournalLine::Removed(RemovedLine { agent: name.to_owned() }))
    }

    /// Suspends an agent durably: it stays in the league, but doesn't play until it is added again. `reason` is one
    /// sentence.
    ///
    /// # Errors
    /// [`JournalError`] if the league has no agent of this name, or the journal can't be written.
    pub fn suspend(&mut self, name: &str, reason: &str) -> Result<(), JournalError> {
        let (agent, reason) = (name.to_owned(), reason.to_owned());
        self.append(JournalLine::Suspended(SuspendedLine { agent, reason }))
    }

    /// Ends the season durably. The next one has the same agents, no games, and this program's rules and texts. Returns
    /// its number.
    ///
    /// # Errors
    /// [`JournalError`] if the rules aren't loaded, or the journal can't be written.
    pub fn close_season(&mut self) -> Result<usize, JournalError> {
        let plan = &self.league.plan;
        let closed = SeasonClosedLine { rules_version: plan.game()?.rules_version, texts: plan.find_texts() };
        self.append(JournalLine::SeasonClosed(closed))?;
        self.fit = None;
        Ok(self.league.season().number())
    }

    /// Checks the files of the agents that play, and records new versions durably. Agents without readable files don't
    /// play until the next check. `search` is the value of `PATH`.
    ///
    /// # Errors
    /// [`JournalError`] if the journal can't be written.
    pub fn check_files(&mut self, search: &str) -> Result<Vec<Change>, JournalError> {
        let mut changes = Vec::new();
        let members: Vec<LeagueAgent> = self.league.members().cloned().collect();
        for (place, before) in members.into_iter().enumerate() {
            if before.membership != Membership::Present {
                continue;
            }
            match reload(&before.entrant, self.file.folder(), search) {
                Ok(None) => self.league.season_mut().set_ready(place, true),
                Ok(Some(entrant)) => {
                    let now = Box::new(self.add_agent(entrant)?);
                    changes.push(Change::NextVersion { before: Box::new(before), now });
                }
                Err(error) => {
                    self.league.season_mut().set_ready(place, false);
                    changes.push(Change::Absent { name: before.entrant.name, reason: describe(&error) });
                }
            }
        }
        Ok(changes)
    }

    /// Packs the agents that can play, and connects to the NATS server. `search` is the value of `PATH`.
    ///
    /// # Errors
    /// [`PrepareError`] if workers can't play the league.
    pub fn prepare(&self, address: &NatsUrl, search: &str) -> Result<Prepared, PrepareError> {
        let league = &self.league;
        let ready: Vec<(usize, &Entrant)> =
            league.season().ready().map(|agent| (agent, &league.member(agent).entrant)).collect();
        prepare_agents(&league.plan, &ready, self.file.folder(), address, search)
    }

    /// Starts another meeting, if the limits permit one. Returns true if a meeting was started.
    fn meet<E>(&mut self) -> Result<bool, RunError<E>> {
        let Until { games, at, margin } = self.until;
        if games.is_some_and(|games| self.begun >= games) || at.is_some_and(|at| Instant::now() >= at) {
            return Ok(false);
        }
        let season = self.league.season_mut();
        let used = (season.fitted(), season.agents());
        let fit = match self.fit.take() {
            Some((before, fit)) if before == used => fit,
            _ => season.fit(used.0)?,
        };
        let turn = &self.turn;
        let is_wanted = |agent: AgentIndex| {
            turn.as_ref().is_none_or(|turn| turn.contains(&agent.0))
                && margin.is_none_or(|margin| margin_of(&fit, agent) > margin)
        };
        let is_meeting = season.meet(&fit, is_wanted);
        self.fit = Some((used, fit));
        Ok(is_meeting)
    }
}

impl Competition for LeagueFolder {
    fn plan(&self) -> &TournamentPlan {
        &self.league.plan
    }

    fn folder(&self) -> &Path {
        self.file.folder()
    }

    fn entrants(&self) -> Vec<&Entrant> {
        self.league.members().map(|agent| &agent.entrant).collect()
    }

    fn begin(&mut self) {
        self.begun = 0;
        self.league.season_mut().give_back_all();
    }

    fn next<E>(&mut self) -> Result<Next, RunError<E>> {
        let pairing = match self.league.season_mut().next_leg() {
            Some(pairing) => Some(pairing),
            None if self.meet()? => self.league.season_mut().next_leg(),
            None => None,
        };
        self.begun += u64::from(pairing.is_some());
        Ok(pairing.map_or(Next::Nothing, Next::Play))
    }

    fn record<A>(
        &mut self,
        pairing: &Pairing,
        result: MatchResult<A>,
        worker: Option<WorkerPart>,
    ) -> Result<(), JournalError> {
        // A worker may have played the game for an earlier run.
        self.begun += u64::from(self.league.season().is_waiting(pairing.number));
        let line = self.league.line_of(pairing, result, worker);
        self.append(JournalLine::Game(Box::new(line)))
    }

    fn give_back(&mut self, pairing: &Pairing) {
        self.league.season_mut().give_back(pairing);
        self.begun -= 1;
    }

    fn exclude(&mut self, pairing: &Pairing, mut agents: Vec<usize>) -> Result<Vec<usize>, FilesChanged> {
        self.give_back(pairing);
        agents.retain(|agent| self.league.season().ready().any(|ready| ready == *agent));
        for agent in &agents {
            self.league.season_mut().set_ready(*agent, false);
        }
        Ok(agents)
    }

    fn is_complete(&self) -> bool {
        false
    }

    fn pairing(&self, number: usize) -> Option<Pairing> {
        self.league.season().pairing(number)
    }

    fn has_result(&self, number: usize) -> bool {
        self.league.game(number).is_some()
    }

    fn most_open(&self, slots: usize) -> usize {
        slots.max(1) * JOBS_PER_SLOT
    }

    fn spread(&self) -> Option<&SpreadLine> {
        self.league.spread.as_ref()
    }

    fn append(&mut self, line: JournalLine) -> Result<(), JournalError> {
        self.league.check_line(&line).map_err(|what| self.file.contradiction(what))?;
        self.file.write(&line)?;
        self.league.take(line).map_err(|what| self.file.contradiction(what))
    }
}

/// Makes the path of an agent absolute, so that the league can be resumed from any folder.
fn make_path_absolute(entrant: &mut Entrant) {
    // A path that isn't UTF-8 can't be in the journal. `enter` has refused it.
    if let Some(path) =
        Path::new(&entrant.path).canonicalize().ok().and_then(|path| path.into_os_string().into_string().ok())
    {
        entrant.path = path;
    }
}

/// The reason that an agent's files can't be read again.
enum ReloadError {
    Files(EntrantError),
    NotFound(arena_match::AgentError),
}

fn describe(error: &ReloadError) -> String {
    match error {
        ReloadError::Files(EntrantError::Files { path, source, .. }) => {
            format!("{} cannot be read: {source}", path.display())
        }
        ReloadError::Files(error) => error.to_string(),
        ReloadError::NotFound(error) => error.to_string(),
    }
}

/// Reads an agent's files again, and returns the agent's new description if they have changed; otherwise `None`.
fn reload(entrant: &Entrant, folder: &Path, search: &str) -> Result<Option<Entrant>, ReloadError> {
    let sha256 = fingerprint_of(entrant, folder).map_err(ReloadError::Files)?;
    if sha256 == entrant.sha256 {
        return Ok(None);
    }
    // If the user named the agent by its path, its manifest may have a new command and version. If the user gave a
    // command line with a version, the version belonged to the old files, so it is dropped.
    if entrant.files.first().is_some_and(|file| file == Path::new(&entrant.path)) {
        let mut found = Agent::find(&entrant.path, search).map_err(ReloadError::NotFound)?;
        found.name.clone_from(&entrant.name);
        (found.dialect, found.id) = (entrant.dialect, entrant.agent_id.clone());
        return enter(&found, folder).map(Some).map_err(ReloadError::Files);
    }
    Ok(Some(Entrant { version: None, sha256, ..entrant.clone() }))
}

/// Returns the larger distance from an agent's rating to an end of its 95 % interval, in Elo; infinite if the interval
/// is unbounded.
fn margin_of(fit: &Fit, agent: AgentIndex) -> f64 {
    let (rating, interval) = (fit.rating(agent), fit.interval(agent));
    (rating - interval.low).max(interval.high - rating)
}

#[cfg(test)]
mod tests;
