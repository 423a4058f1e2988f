//! Plays the games of a run: many at the same time, as tasks of one process.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use arena_llm::{
    ANSWER_SECONDS, Budget, Caps, Client, Endpoint, EndpointError, Key, Pacer, Prices, SeatRules, Timeouts, ToolUse,
};
use arena_model::{ChallengeType, Seed};
use arena_players::{BotKind, BotPlayer, Halt, Player, ProgramAgent, ProgramPlayer};
use parking_lot::Mutex;
use serde_json::Value;
use tokio::sync::Semaphore;
use tokio::task::{Id, JoinSet};
use tokio::time::MissedTickBehavior;

use crate::game::{FinishedGame, GameLabel, open, play};
use crate::harness::Harness;
use crate::model_player::{CallCounts, ModelSeat, Pause, RunContext, SharedModel, seat_model};
use crate::priced::PricedPlayer;
use crate::program;
use crate::progress::{ModelProgress, Progress};
use crate::recorded::{Calls, RecordedCalls};
use crate::run_file::{EndpointAddress, ModelSpec, ToolUseSpec};
use crate::{
    BaselineSpec, EvalAgentKind, EvalFolder, EvalPlan, FolderError, JournalLine, PlannedGame, RunFile, Spent,
    VoidRecord, now,
};

/// The pause between two updates of the progress and two looks at the flag to stop.
const TICK: Duration = Duration::from_millis(200);

/// The time for which a stopping run waits for open calls, which are paid already.
const GRACE: Duration = Duration::from_secs(30);

/// The class of void games that failed for another reason than an endpoint.
const HOST: &str = "host";

/// The key of the cap of the duration.
const WALL_HOURS: &str = "wall_hours";

/// The settings of one invocation of a run. They don't change results.
#[derive(Debug, Clone)]
pub struct RunOptions {
    /// The number of games that are played at the same time. `None` means [`usual_open_games`].
    pub open_games: Option<usize>,
    /// The time for which a failing endpoint is asked again before its model is paused.
    pub patience: Duration,
}

impl Default for RunOptions {
    fn default() -> RunOptions {
        RunOptions { open_games: None, patience: Duration::from_secs(600) }
    }
}

/// Returns the usual number of open games of a run file: the sum of its models' concurrency, from 8 to 1000. More open
/// games would not be faster. If a cap stopped them, much would be spent on games that aren't finished.
pub fn usual_open_games(file: &RunFile) -> usize {
    file.models.iter().map(|model| model.concurrency).fold(0, usize::saturating_add).clamp(8, 1000)
}

/// The end of an invocation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RunEnd {
    Complete,
    /// The user stopped the run.
    Interrupted,
    /// A cap is reached. The text is its key in the table `budget` of the run file.
    Budget(&'static str),
    /// All other games are finished, but games of these models aren't. A game that the rules failed has
    /// the name of its challenge here.
    Paused(Vec<PausedModel>),
}

/// A model whose games wait.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PausedModel {
    pub name: String,
    pub why: String,
    /// True if the model has reached its own cap, false after a fault.
    pub is_capped: bool,
}

#[derive(Debug, thiserror::Error)]
pub enum RunError {
    #[error(transparent)]
    Folder(#[from] FolderError),
    /// A model's endpoint is invalid, or its key is missing.
    #[error("the model {model}: {source}")]
    Endpoint { model: String, source: EndpointError },
    /// A program can't be found, or the run's folder can't be hidden from it.
    #[error("the baseline {name}: {why}")]
    Program {
        /// The name of the baseline.
        name: String,
        why: String,
    },
    /// A model or an agent can't play, or the files of calls can't be written.
    #[error("{0}")]
    Failed(String),
}

/// Plays all games that aren't finished, until they are, or the budget or `stop` ends the run. The folder gets each
/// finished game at once. `progress` is updated five times a second.
///
/// # Errors
/// If the folder can't be written or an endpoint isn't usable. All calls so far are in the folder.
pub async fn run(
    folder: &mut EvalFolder,
    options: &RunOptions,
    progress: &Mutex<Progress>,
    stop: &AtomicBool,
) -> Result<RunEnd, RunError> {
    let mut runner = Runner::new(folder, options)?;
    let end = runner.run(folder, progress, stop).await;
    runner.publish(progress);
    end
}

/// The data that all games of an agent share.
struct SharedAgent {
    name: String,
    kind: SharedKind,
}

enum SharedKind {
    Model(Arc<SharedModel>, Arc<Harness>),
    /// A bot; with prices, its costs are estimated.
    Bot(BotKind, Option<Prices>),
    /// A program; `None` if all its games have been played.
    Program(Option<Arc<ProgramAgent>>),
}

impl SharedAgent {
    fn model(&self) -> Option<&Arc<SharedModel>> {
        if let SharedKind::Model(model, _) = &self.kind { Some(model) } else { None }
    }

    fn program(&self) -> Option<&Arc<ProgramAgent>> {
        if let SharedKind::Program(program) = &self.kind { program.as_ref() } else { None }
    }
}

/// The data that all games of a challenge share.
struct SharedChallenge {
    label: String,
    challenge: Arc<dyn ChallengeType>,
    options: Value,
    rules: Arc<SeatRules>,
}

struct GivenUp {
    agent: Option<String>,
    class: String,
    why: String,
}

pub(crate) type PlayResult = Result<FinishedGame, Halt>;

struct Runner {
    context: Arc<RunContext>,
    models: Vec<Arc<SharedModel>>,
    agents: Vec<Arc<SharedAgent>>,
    challenges: Vec<Arc<SharedChallenge>>,
    open_games: usize,
    /// The games that aren't started, in the order of play.
    waiting: VecDeque<PlannedGame>,
    open: JoinSet<PlayResult>,
    /// The open games by task.
    ids: BTreeMap<Id, PlannedGame>,
    given_up: Vec<(PlannedGame, GivenUp)>,
    games: u64,
    finished: u64,
    wall: Wall,
}

/// The duration of a run, over all invocations.
struct Wall {
    cap: Option<Duration>,
    before: Duration,
    began: Instant,
}

impl Wall {
    fn is_over(&self) -> bool {
        self.cap.is_some_and(|cap| self.before + self.began.elapsed() >= cap)
    }
}

impl Runner {
    fn new(folder: &EvalFolder, options: &RunOptions) -> Result<Runner, RunError> {
        let plan = folder.plan();
        let waiting: VecDeque<PlannedGame> =
            plan.games.iter().filter(|game| folder.finished(&game.id).is_none()).cloned().collect();
        // Agents without open games need neither keys nor programs.
        let needed: BTreeSet<usize> = waiting.iter().flat_map(|game| game.seats.iter().copied()).collect();
        let is_needed =
            |model: usize| needed.iter().any(|agent| plan.agents[*agent].kind == EvalAgentKind::Model(model));
        let models = shared_models(&plan.file.models, is_needed)?;
        let agents = shared_agents(plan, &models, &shared_programs(folder, &needed)?)?;
        let calls = folder.calls();
        let by_agent = calls.totals_by_agent();
        let spent_before = plan.file.models.iter().enumerate().map(|(index, spec)| {
            let own = plan.agents.iter().filter(|agent| agent.kind == EvalAgentKind::Model(index));
            let usd: f64 = own.filter_map(|agent| by_agent.get(&agent.name)).map(|spent| spent.usd).sum();
            (spec.usd, usd)
        });
        let context = RunContext {
            client: Client::new(),
            calls: Calls::Store(Arc::clone(calls)),
            budget: Budget::new(plan.file.budget.caps(), calls.totals(), spent_before),
            patience: options.patience,
            usd_per_seat: plan.file.budget.usd_per_seat,
            is_stopping: AtomicBool::new(false),
            counts: CallCounts::default(),
        };
        let cap = plan.file.budget.wall_hours.map(|hours| Duration::from_secs_f64((hours * 3600.0).clamp(0.0, 1e9)));
        let wall = Wall {
            cap,
            before: Duration::from_millis(folder.earlier_ms().max(0).unsigned_abs()),
            began: Instant::now(),
        };
        Ok(Runner {
            context: Arc::new(context),
            agents,
            challenges: shared_challenges(plan),
            open_games: options.open_games.unwrap_or_else(|| usual_open_games(&plan.file)).max(1),
            games: plan.games.len() as u64,
            finished: (plan.games.len() - waiting.len()) as u64,
            waiting,
            open: JoinSet::new(),
            ids: BTreeMap::new(),
            given_up: Vec::new(),
            models,
            wall,
        })
    }

    async fn run(
        &mut self,
        folder: &mut EvalFolder,
        progress: &Mutex<Progress>,
        stop: &AtomicBool,
    ) -> Result<RunEnd, RunError> {
        let mut end = None;
        let mut stops_at: Option<Instant> = None;
        let mut tick = tokio::time::interval(TICK);
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            if end.is_none() {
                self.start_games()?;
            }
            if self.open.is_empty() {
                break;
            }
            let now_ended = tokio::select! {
                Some(joined) = self.open.join_next_with_id() => match joined {
                    Ok((id, played)) => self.conclude(folder, id, played)?,
                    Err(error) => {
                        if let Some(game) = self.ids.remove(&error.id()).filter(|_| !error.is_cancelled()) {
                            let why = "the program failed while it played the game".to_owned();
                            self.given_up.push((game, GivenUp { agent: None, class: HOST.to_owned(), why }));
                        }
                        None
                    }
                },
                _ = tick.tick() => {
                    self.publish(progress);
                    match stop.load(Ordering::Relaxed) {
                        true => Some(RunEnd::Interrupted),
                        false => self.wall.is_over().then_some(RunEnd::Budget(WALL_HOURS)),
                    }
                }
            };
            if end.is_none() && now_ended.is_some() {
                end = now_ended;
                self.context.is_stopping.store(true, Ordering::Relaxed);
                stops_at = Some(Instant::now() + GRACE);
            }
            if stops_at.is_some_and(|at| Instant::now() >= at) {
                self.open.abort_all();
            }
        }
        self.record_void_games(folder)?;
        Ok(end.unwrap_or_else(|| self.describe_end()))
    }

    /// Starts games until enough are open. Games of paused models are given up.
    fn start_games(&mut self) -> Result<(), RunError> {
        while self.open.len() < self.open_games {
            let Some(game) = self.waiting.pop_front() else { break };
            let agents: Vec<Arc<SharedAgent>> =
                game.seats.iter().map(|agent| Arc::clone(&self.agents[*agent])).collect();
            let models = agents.iter().filter_map(|agent| agent.model());
            // A paused model stays paused until the next invocation, which plays the game.
            if models.map(|model| model.check()).any(|check| check.is_err()) {
                continue;
            }
            let challenge = Arc::clone(&self.challenges[game.challenge]);
            let context = Arc::clone(&self.context);
            let (id, seed_number, seed) = (game.id.clone(), game.seed_number, game.seed.clone());
            let task = async move { play_game(&context, &challenge, &agents, id, seed_number, &seed).await };
            let handle = self.open.spawn(task);
            self.ids.insert(handle.id(), game);
        }
        Ok(())
    }

    /// Records a game that isn't open any more. Returns the end of the run if the game's end causes it.
    fn conclude(&mut self, folder: &mut EvalFolder, id: Id, played: PlayResult) -> Result<Option<RunEnd>, RunError> {
        let Some(game) = self.ids.remove(&id) else { return Ok(None) };
        match played {
            Ok(FinishedGame { record, transcript }) => {
                // A recorded game always has its transcript and calls, also after a power cut.
                folder.add_transcript(&transcript)?;
                folder.sync()?;
                folder.record(JournalLine::Game(Box::new(record)))?;
                self.finished += 1;
            }
            Err(Halt::Suspended { agent, class, why }) => {
                self.given_up.push((game, GivenUp { agent: Some(agent), class, why }));
            }
            Err(Halt::Failed(why)) => {
                self.given_up.push((game, GivenUp { agent: None, class: HOST.to_owned(), why }));
            }
            Err(Halt::Stopped) => {}
            Err(Halt::Budget(cap)) => return Ok(Some(RunEnd::Budget(cap))),
            Err(Halt::Broken(why)) => return Err(RunError::Failed(why)),
        }
        Ok(None)
    }

    /// Records the games that were given up, in the order of the plan.
    fn record_void_games(&mut self, folder: &mut EvalFolder) -> Result<(), RunError> {
        let places: BTreeMap<String, usize> =
            folder.plan().games.iter().enumerate().map(|(place, game)| (game.id.clone(), place)).collect();
        self.given_up.sort_by_key(|(game, _)| places.get(&game.id).copied());
        for (game, GivenUp { agent, class, why }) in &self.given_up {
            let (game, agent, class, why) = (game.id.clone(), agent.clone(), class.clone(), why.clone());
            folder.record(JournalLine::Void(VoidRecord { game, agent, class, why, time: now() }))?;
        }
        Ok(())
    }

    /// Returns the end of a run without open games that nothing else has ended.
    fn describe_end(&self) -> RunEnd {
        let pause = |model: &Arc<SharedModel>| {
            let Pause { class, why } = model.paused.lock().clone()?;
            Some(PausedModel { name: model.name.clone(), why, is_capped: class.is_none() })
        };
        let mut reasons: Vec<PausedModel> = self.models.iter().filter_map(pause).collect();
        for (game, GivenUp { agent, why, .. }) in &self.given_up {
            // A null variant has the name of its model here.
            let of_agent = |name: &String| self.agents.iter().find(|agent| agent.name == *name)?.model();
            let name = match agent {
                Some(name) => of_agent(name).map_or(name, |model| &model.name),
                None => &self.challenges[game.challenge].label,
            };
            if !reasons.iter().any(|other| other.name == *name) {
                reasons.push(PausedModel { name: name.clone(), why: why.clone(), is_capped: false });
            }
        }
        if reasons.is_empty() || self.finished == self.games { RunEnd::Complete } else { RunEnd::Paused(reasons) }
    }

    fn publish(&self, progress: &Mutex<Progress>) {
        let counts = &self.context.counts;
        let (sent, cached) = (counts.sent.load(Ordering::Relaxed), counts.cached.load(Ordering::Relaxed));
        let models = self.models.iter().map(|model| ModelProgress {
            name: model.name.clone(),
            calls: model.sent.load(Ordering::Relaxed),
            limit: model.pacer.limit(),
            paused: model.paused.lock().as_ref().map(|pause| pause.why.clone()),
            failing: model.failing.lock().clone(),
        });
        let current = Progress {
            games: self.games,
            finished: self.finished,
            open: self.open.len() as u64,
            void: self.given_up.len() as u64,
            calls: sent + cached,
            cached,
            retries: counts.retries.load(Ordering::Relaxed),
            spent: self.context.budget.spent(),
            models: models.collect(),
            began: self.wall.began,
        };
        *progress.lock() = current;
    }
}

/// The games of a recorded run, which are played again from its calls. Nothing is sent or written, and games with
/// programs can't be played.
pub(crate) struct Replayer {
    context: Arc<RunContext>,
    agents: Vec<Arc<SharedAgent>>,
    challenges: Vec<Arc<SharedChallenge>>,
}

impl Replayer {
    pub(crate) fn new(plan: &EvalPlan, calls: &Arc<RecordedCalls>) -> Result<Replayer, RunError> {
        let context = RunContext {
            client: Client::new(),
            calls: Calls::Recorded(Arc::clone(calls)),
            budget: Budget::new(Caps::default(), Spent::default(), std::iter::empty()),
            patience: Duration::ZERO,
            usd_per_seat: plan.file.budget.usd_per_seat,
            is_stopping: AtomicBool::new(false),
            counts: CallCounts::default(),
        };
        let models = shared_models(&plan.file.models, |_| false)?;
        let agents = shared_agents(plan, &models, &BTreeMap::new())?;
        Ok(Replayer { context: Arc::new(context), agents, challenges: shared_challenges(plan) })
    }

    pub(crate) async fn play(&self, game: &PlannedGame) -> PlayResult {
        let agents: Vec<Arc<SharedAgent>> = game.seats.iter().map(|agent| Arc::clone(&self.agents[*agent])).collect();
        let challenge = &self.challenges[game.challenge];
        play_game(&self.context, challenge, &agents, game.id.clone(), game.seed_number, &game.seed).await
    }
}

fn shared_challenges(plan: &EvalPlan) -> Vec<Arc<SharedChallenge>> {
    let shared = plan.challenges.iter().map(|planned| {
        let metadata = planned.challenge.metadata_with(&planned.options);
        Arc::new(SharedChallenge {
            label: planned.label.clone(),
            challenge: Arc::clone(&planned.challenge),
            options: planned.options.clone(),
            rules: Arc::new(SeatRules::of(&metadata)),
        })
    });
    shared.collect()
}

/// Returns the models of a run file. `is_needed` returns true for a model with open games.
fn shared_models(specs: &[ModelSpec], is_needed: impl Fn(usize) -> bool) -> Result<Vec<Arc<SharedModel>>, RunError> {
    // Models behind one gateway have separate limits: a busy model must not slow down the others.
    let mut pacers: BTreeMap<(&str, &str), Arc<Pacer>> = BTreeMap::new();
    let addresses: Vec<EndpointAddress> =
        specs.iter().map(ModelSpec::address).collect::<Result<_, _>>().map_err(RunError::Failed)?;
    let mut models = Vec::new();
    for (index, (spec, address)) in specs.iter().zip(&addresses).enumerate() {
        let endpoint = connect(address, spec, is_needed(index))
            .map_err(|source| RunError::Endpoint { model: spec.name.clone(), source })?;
        let pacer = pacers
            .entry((address.base.as_str(), spec.model.as_str()))
            .or_insert_with(|| Pacer::new(most_calls(specs, &addresses, index)));
        models.push(Arc::new(SharedModel {
            index,
            name: spec.name.clone(),
            model: spec.model.clone(),
            endpoint,
            address: address.base.clone(),
            params: spec.params.clone(),
            prices: spec.usd_per_million,
            pacer: Arc::clone(pacer),
            slots: Semaphore::new(spec.concurrency.max(1)),
            paused: Mutex::new(None),
            failing: Mutex::new(None),
            sent: Default::default(),
            rejected: Default::default(),
        }));
    }
    Ok(models)
}

/// Finds the programs among the `needed` agents. Returns them by baseline.
fn shared_programs(
    folder: &EvalFolder,
    needed: &BTreeSet<usize>,
) -> Result<BTreeMap<usize, Arc<ProgramAgent>>, RunError> {
    let plan = folder.plan();
    let baseline = |agent: &usize| match plan.agents[*agent].kind {
        EvalAgentKind::Program(baseline) => Some(baseline),
        _ => None,
    };
    let needed: BTreeSet<usize> = needed.iter().filter_map(baseline).collect();
    let baselines: Vec<&BaselineSpec> = needed.iter().map(|at| &plan.file.baselines[*at]).collect();
    let programs =
        program::find_all(&baselines, folder.dir()).map_err(|(name, why)| RunError::Program { name, why })?;
    Ok(needed.into_iter().zip(programs.into_iter().map(Arc::new)).collect())
}

/// Returns the agents of a plan. `programs` has the programs with open games, by baseline.
fn shared_agents(
    plan: &EvalPlan,
    models: &[Arc<SharedModel>],
    programs: &BTreeMap<usize, Arc<ProgramAgent>>,
) -> Result<Vec<Arc<SharedAgent>>, RunError> {
    let harnesses: BTreeMap<&String, Arc<Harness>> =
        plan.harnesses.iter().map(|(name, harness)| (name, Arc::new(harness.clone()))).collect();
    plan.agents
        .iter()
        .map(|agent| {
            let kind = match agent.kind {
                EvalAgentKind::Model(index) => {
                    let harness = plan.file.models.get(index).and_then(|spec| harnesses.get(&spec.harness));
                    let found = models.get(index).zip(harness);
                    let missing = || RunError::Failed(format!("the model {} has no harness", agent.name));
                    let (model, harness) = found.ok_or_else(missing)?;
                    SharedKind::Model(Arc::clone(model), Arc::clone(harness))
                }
                EvalAgentKind::Bot(bot) => {
                    let baseline = plan.file.baselines.iter().find(|baseline| baseline.name() == agent.name);
                    SharedKind::Bot(bot, baseline.and_then(|baseline| baseline.usd_per_million))
                }
                EvalAgentKind::Program(baseline) => SharedKind::Program(programs.get(&baseline).cloned()),
            };
            Ok(Arc::new(SharedAgent { name: agent.name.clone(), kind }))
        })
        .collect()
}

/// Plays one game from its start.
async fn play_game(
    context: &Arc<RunContext>,
    challenge: &SharedChallenge,
    agents: &[Arc<SharedAgent>],
    id: String,
    seed_number: usize,
    seed: &Seed,
) -> PlayResult {
    let names: Vec<String> = agents.iter().map(|agent| agent.name.clone()).collect();
    let SharedChallenge { label, challenge, options, rules } = challenge;
    let programs: Vec<&Arc<ProgramAgent>> = agents.iter().filter_map(|agent| agent.program()).collect();
    let permit = match programs.first() {
        Some(program) => program.slots().take(programs.len()).await,
        None => None,
    };
    if context.is_stopping.load(Ordering::Relaxed) {
        return Err(Halt::Stopped);
    }
    let session = open(challenge, options, agents.len(), seed)?;
    let mut players: Vec<Box<dyn Player>> = Vec::new();
    for (seat, agent) in agents.iter().enumerate() {
        players.push(match &agent.kind {
            SharedKind::Model(model, harness) => {
                let at = ModelSeat { agent: agent.name.clone(), game: id.clone(), seat, seed: seed.clone() };
                Box::new(seat_model(context, model, harness, rules, &session, at))
            }
            SharedKind::Bot(bot, prices) => {
                let seed = seed.derive(&format!("eval/bot/{seat}"));
                let bot = BotPlayer::new(*bot, &**challenge, options, &seed).map_err(Halt::Failed)?;
                match prices {
                    Some(prices) => Box::new(PricedPlayer::new(bot, *prices)),
                    None => Box::new(bot),
                }
            }
            SharedKind::Program(program) => {
                let Some((program, permit)) = program.as_ref().zip(permit.as_ref()) else {
                    return Err(Halt::Failed(format!("the program {} wasn't found", agent.name)));
                };
                let metadata = challenge.metadata_with(options).into_owned();
                Box::new(ProgramPlayer::new(program, permit, challenge.id(), metadata))
            }
        });
    }
    let label = GameLabel { game: id, challenge: label.clone(), seed: seed_number, agents: names };
    let finished = play(&label, session, players).await?;
    // A game of changed files doesn't count.
    programs.iter().try_for_each(|program| program.check_files()).map_err(Halt::Failed)?;
    Ok(finished)
}

/// Returns the highest number of concurrent calls of a model: the highest of all entries of the run file with its name
/// at the same endpoint.
fn most_calls(specs: &[ModelSpec], addresses: &[EndpointAddress], index: usize) -> usize {
    let key = |index: usize| (addresses[index].base.as_str(), specs[index].model.as_str());
    let same = (0..specs.len()).filter(|other| key(*other) == key(index));
    same.map(|other| specs[other].concurrency).max().unwrap_or(1).max(1)
}

/// Creates the endpoint of a model. Without `has_key`, the endpoint has no key and must not be called.
///
/// # Errors
/// If the URL is invalid or the key is missing.
fn connect(address: &EndpointAddress, spec: &ModelSpec, has_key: bool) -> Result<Endpoint, EndpointError> {
    let key = address.key_env.as_deref().filter(|_| has_key);
    let key = key.map(|name| Key::from_env(name, &address.base)).transpose()?;
    let tool_use = match spec.tools {
        ToolUseSpec::Native => ToolUse::Native,
        ToolUseSpec::Text => ToolUse::Text,
    };
    let endpoint = Endpoint::new(address.api, &address.base, key)?.with_tool_use(tool_use);
    let answer = Duration::from_secs(spec.answer_seconds.unwrap_or(ANSWER_SECONDS));
    Ok(endpoint.with_timeouts(Timeouts::of_answer(answer)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(models: &[(&str, &str, usize)]) -> RunFile {
        let mut text = "name = \"test\"\nseeds = 1\n[[challenges]]\nname = \"psi\"\n".to_owned();
        for (number, (model, endpoint, concurrency)) in models.iter().enumerate() {
            text += &format!(
                "[[models]]\nname = \"{number}\"\nmodel = \"{model}\"\nendpoint = \"{endpoint}\"\n\
                 concurrency = {concurrency}\n"
            );
        }
        RunFile::parse(&text, "run.toml").unwrap()
    }

    #[test]
    fn the_usual_number_of_open_games_is_that_of_calls() {
        for (concurrency, expected) in [([1, 2], 8), ([32, 16], 48), ([900, 900], 1000)] {
            let models: Vec<_> = concurrency.iter().map(|most| ("m", "ollama", *most)).collect();
            assert_eq!(usual_open_games(&file(&models)), expected, "{concurrency:?}");
        }
    }

    #[test]
    fn an_answer_has_the_time_of_its_model() {
        for (line, seconds) in [("", 900), ("answer_seconds = 1800", 1800)] {
            let spec = format!("name = \"m\"\nmodel = \"m\"\nendpoint = \"http://a.example/v1\"\n{line}");
            let spec: ModelSpec = toml::from_str(&spec).unwrap();
            let times = connect(&spec.address().unwrap(), &spec, false).unwrap().timeouts();
            assert_eq!([times.first_byte, times.whole], [Duration::from_secs(seconds); 2]);
        }
    }

    #[test]
    fn models_behind_one_gateway_have_their_own_limits() {
        let file = file(&[
            ("small", "http://gateway/v1", 4),
            ("large", "http://gateway/v1/", 9),
            ("small", "http://gateway/v1/", 6),
            ("small", "http://other/v1", 2),
        ]);
        let addresses: Vec<EndpointAddress> = file.models.iter().map(|spec| spec.address().unwrap()).collect();
        let most: Vec<usize> = (0..4).map(|index| most_calls(&file.models, &addresses, index)).collect();
        assert_eq!(most, [6, 9, 6, 2]);
    }
}
