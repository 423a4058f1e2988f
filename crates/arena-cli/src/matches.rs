//! `arena match`: matches between agents on this machine, without a server.

pub mod files;
mod live;
pub mod score;
pub mod settings;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use arena_match::{
    Agent, Confinement, MatchError, MatchPlan, OutputFile, OutputPath, PlayedMatch, StartError, Watch, cores, logs,
    play_match, private, spread,
};
use arena_model::{GameType, Seed, TimeLimits};
use arena_record::RecordKey;
use serde_json::{Map, Value};

use crate::args::{Affinity, AgentIds, MatchVerb, RunArgs};
use crate::exit::{Exit, Failure};
use crate::interrupt;
use crate::output::{self, Style, Table, print, print_for_reader};
use crate::sign;
use crate::terminal::can_draw;

pub use settings::LAUNCH;

use live::Live;
use score::TotalScore;
use settings::{confinement, find_agent, find_game};

pub fn run(verb: MatchVerb, style: Style) -> Result<(), Failure> {
    match verb {
        MatchVerb::Run(args) => play(&args, style),
        MatchVerb::Games { game: None } => list_games(style),
        MatchVerb::Games { game: Some(game) } => print_game(&game, style),
    }
}

/// The number of consecutive games that share a seed.
const GAMES_A_PAIR: usize = 2;

/// The common parts of all games of a run.
struct Run {
    game: &'static GameType,
    options: Map<String, Value>,
    seed: Seed,
    limits: TimeLimits,
    agents: Vec<Agent>,
    confinement: Confinement,
    games: usize,
    replay: Option<PathBuf>,
    sign_key: Option<RecordKey>,
}

/// A finished game and its replay, a temporary file without its final name. Both games of a pair share a seed, so the
/// program prints neither result before both games are over.
struct FinishedGame {
    played_match: PlayedMatch,
    replay: Option<(PathBuf, OutputFile)>,
}

impl FinishedGame {
    /// Gives the replay its final name and writes the logs beside it. Returns the game and the path of its replay.
    fn keep(self) -> Result<(PlayedMatch, Option<String>), Failure> {
        let FinishedGame { played_match, replay } = self;
        let Some((path, file)) = replay else { return Ok((played_match, None)) };
        let has_logs = file.is_regular();
        let kept = file.keep().map_err(|error| cannot_write(&path, &error));
        let logged = if has_logs { logs::write(&path, &played_match) } else { Ok(()) };
        kept.and(logged.map_err(|(path, error)| cannot_write(&path, &error)))?;
        Ok((played_match, Some(path.display().to_string())))
    }
}

fn play(args: &RunArgs, style: Style) -> Result<(), Failure> {
    let run = Run::of(args)?;
    files::allow(run.games.min(args.play.concurrency as usize), run.agents.len())?;
    let called_off = interrupt::flag()?;
    let places = match args.play.affinity {
        Affinity::Share => cores(),
        Affinity::Any => Vec::new(),
    };
    let is_live = style == Style::Pretty && !args.no_live && run.games == 1 && can_draw();
    let pace = match (is_live, args.pace) {
        (true, pace) => Some(Duration::from_millis(pace.unwrap_or(0))),
        (false, None) => None,
        (false, Some(_)) => {
            let sentence = "--pace needs a terminal, a single game and no --json";
            return Err(Failure::new(Exit::Usage, sentence));
        }
    };
    let mut score = TotalScore::new(&run.agents);
    let (mut end, mut has_reader) = (Ok(()), true);
    let job = |number| run.hold(number, pace, &called_off);
    let mut waiting: BTreeMap<usize, FinishedGame> = BTreeMap::new();
    spread(run.games, args.play.concurrency as usize, &places, job, |number, held| {
        let played = held.and_then(|held| {
            waiting.insert(number, held);
            let pair: Vec<(usize, FinishedGame)> = match run.pair(number).all(|number| waiting.contains_key(&number)) {
                true => run.pair(number).filter_map(|number| waiting.remove_entry(&number)).collect(),
                false => Vec::new(),
            };
            run.keep_all(pair, &mut score, style)
        });
        match played {
            // After stdout closes, the games in progress are finished, since each may have a replay; no more games
            // start.
            Ok(is_read) => has_reader &= is_read,
            Err(failure) if end.is_ok() => {
                called_off.store(true, Ordering::Relaxed);
                end = Err(failure);
            }
            // Later failures follow from the first one.
            Err(_) => {}
        }
        end.is_ok() && has_reader
    });
    // After an interruption, a finished game may lack the other game of its pair, which won't be played. Such games are
    // printed now.
    let kept = run.keep_all(waiting, &mut score, style);
    end = end.and(kept.map(|_| ()));
    // Finished games are reported after an interruption too.
    if run.games > 1 && style != Style::Json && score.games() > 0 {
        print(&score.to_string())?;
    }
    end
}

impl Run {
    fn of(args: &RunArgs) -> Result<Run, Failure> {
        let game = find_game(&args.game)?;
        let mut agents: Vec<Agent> = args.agents.iter().map(|agent| find_agent(agent)).collect::<Result<_, _>>()?;
        for words in args.commands.split(|word| word == "--").filter(|words| !words.is_empty()) {
            agents.push(settings::find_command(words)?);
        }
        for agent in &mut agents {
            agent.dialect = args.play.dialect.unwrap_or(agent.dialect);
            agent.time_control = agent.time_control.or(args.play.time_control());
            agent.start_limits = agent.start_limits.or(args.play.start_limits());
        }
        settings::print_notes(&agents);
        settings::make_names_unique(&mut agents);
        if args.play.agent_ids == AgentIds::Names {
            settings::make_names_ids(&mut agents)?;
        }
        let options: Map<String, Value> = args.play.options.iter().cloned().collect();
        settings::try_start(game, &options, agents.len())?;
        let limits = args.play.limits(game);
        let seed = match &args.play.seed {
            Some(seed) => seed.clone(),
            None => settings::draw_seed()?,
        };
        let sign_key = args.sign_key.as_deref().map(sign::read_key).transpose()?;
        let games = args.games as usize;
        let mut confinement = confinement(&args.play.sandbox)?;
        let logs: Vec<PathBuf> = match &args.replay {
            Some(path) if games == 1 => (0..agents.len()).map(|seat| logs::path(path, seat)).collect(),
            _ => Vec::new(),
        };
        let replay = args.replay.as_ref().map(|path| match games {
            1 => OutputPath::File(path),
            _ => OutputPath::Folder(path),
        });
        // The key is no output, but agents mustn't read it either.
        let key = args.sign_key.as_deref().map(OutputPath::File);
        let places: Vec<OutputPath<'_>> =
            replay.into_iter().chain(key).chain(logs.iter().map(|path| OutputPath::File(path))).collect();
        confinement.private = private(&agents, &confinement.expose, confinement.mode, &places)
            .map_err(|error| Failure::new(Exit::Usage, error))?;
        if let Some(folder) = args.replay.as_ref().filter(|_| games > 1) {
            fs::create_dir_all(folder).map_err(|error| cannot_write(folder, &error))?;
        }
        Ok(Run { game, options, seed, limits, agents, confinement, games, replay: args.replay.clone(), sign_key })
    }

    /// Plays a game (numbered from 0). Two consecutive games share a seed, and the agents swap seats. With a `pace`,
    /// the terminal shows the game live, and each epoch for at least this time.
    fn hold(
        &self,
        number: usize,
        pace: Option<Duration>,
        called_off: &Arc<AtomicBool>,
    ) -> Result<FinishedGame, Failure> {
        let seed = match self.games {
            1 => self.seed.clone(),
            _ => self.seed.derive(&format!("game pair {}", number / GAMES_A_PAIR)),
        };
        let mut agents: Vec<&Agent> = self.agents.iter().collect();
        let seats = agents.len();
        agents.rotate_left(number % seats);
        let plan = MatchPlan {
            game: self.game,
            options: &self.options,
            seed,
            limits: self.limits,
            agents,
            confinement: &self.confinement,
            adjudication: None,
        };
        let replay = self.replay_path(number);
        let create = |path: PathBuf| match OutputFile::create(&path) {
            Ok(file) => Ok((path, file)),
            Err(error) => Err(cannot_write(&path, &error)),
        };
        let mut replay = replay.map(create).transpose()?;
        let out = replay.as_mut().map(|(_, file)| file as &mut (dyn std::io::Write + Send));
        let mut live = match pace {
            Some(pace) => {
                let stage = settings::stage(&plan)?;
                Some(Live::new(stage, pace, called_off.clone()))
            }
            None => None,
        };
        let watch = live.as_mut().map(|live| live as &mut dyn Watch);
        let held = play_match(&plan, out, watch, called_off);
        // The last frame precedes all other output.
        drop(live);
        let played_match = held.map_err(explain)?;
        if let (Some(key), Some((path, file))) = (&self.sign_key, &mut replay) {
            sign::seal(key, path, file, &played_match)?;
        }
        Ok(FinishedGame { played_match, replay })
    }

    /// Returns the numbers of the games with the same seed as this one.
    fn pair(&self, number: usize) -> std::ops::Range<usize> {
        let first = number - number % GAMES_A_PAIR;
        first..self.games.min(first + GAMES_A_PAIR)
    }

    /// Gives replays their final names, writes the logs, and prints the results. Returns true while the output has a
    /// reader. A failure affects only its own game: the function processes all games and then returns the first
    /// failure.
    fn keep_all(
        &self,
        games: impl IntoIterator<Item = (usize, FinishedGame)>,
        score: &mut TotalScore,
        style: Style,
    ) -> Result<bool, Failure> {
        let mut kept = Ok(true);
        for (number, held) in games {
            let printed = held
                .keep()
                .and_then(|(played_match, replay)| self.print_finished(number, &played_match, replay, score, style));
            kept = match (kept, printed) {
                (Ok(before), Ok(now)) => Ok(before && now),
                (Err(first), _) | (Ok(_), Err(first)) => Err(first),
            };
        }
        kept
    }

    fn replay_path(&self, number: usize) -> Option<PathBuf> {
        let path = self.replay.as_ref()?;
        Some(if self.games == 1 { path.clone() } else { path.join(format!("{}.jsonl", number + 1)) })
    }

    /// Prints the result of a game. Returns true while the output has a reader.
    fn print_finished(
        &self,
        number: usize,
        played_match: &PlayedMatch,
        replay_file: Option<String>,
        score: &mut TotalScore,
        style: Style,
    ) -> Result<bool, Failure> {
        let result = &played_match.result;
        score.add(number % self.agents.len(), played_match);
        match style {
            Style::Pretty | Style::Compact if self.games == 1 => {
                print_for_reader(&score::describe(played_match, &self.agents, replay_file.as_deref()))
            }
            Style::Pretty | Style::Compact => print_for_reader(&score::line(number + 1, result)),
            Style::Json => {
                let shift = number % self.agents.len();
                let number = (self.games > 1).then_some(number + 1);
                let seats = self.agents.len();
                let agents = (0..seats).map(|seat| &self.agents[(shift + seat) % seats]);
                let json = score::Printed::of(number, self.game, played_match, agents, replay_file);
                let json = serde_json::to_string(&json);
                print_for_reader(&json.map_err(|error| Failure::caused(Exit::Internal, &error))?)
            }
        }
    }
}

pub fn explain(error: MatchError) -> Failure {
    let exit = match error {
        MatchError::Options(_) => Exit::Usage,
        MatchError::Start(StartError::NoSandbox { .. } | StartError::Setup { .. }) => Exit::NoSandbox,
        MatchError::Start(_) => Exit::Internal,
        MatchError::Replay(_) => Exit::CannotWrite,
        MatchError::System(_) => Exit::Internal,
        MatchError::Outage(_) => Exit::ModelFailed,
        MatchError::CalledOff => Exit::Interrupted,
    };
    match error {
        MatchError::Start(StartError::NoSandbox { .. }) => {
            Failure::new(exit, format_args!("{error} (--sandbox off runs agents without a sandbox)"))
        }
        error => Failure::caused(exit, &error),
    }
}

pub fn cannot_write(path: &Path, error: &std::io::Error) -> Failure {
    Failure::new(Exit::CannotWrite, format_args!("{} cannot be written: {error}", path.display()))
}

fn list_games(style: Style) -> Result<(), Failure> {
    let mut table = Table::new(&["game", "agents", "turns", "step ms", "bank ms", ""]);
    let mut list = Vec::new();
    for game in arena_games::games() {
        let mode = serde_json::to_value(game.mode).unwrap_or_default();
        let seats = format!("{} to {}", game.seats.start(), game.seats.end());
        let seats = if game.seats.start() == game.seats.end() { game.seats.start().to_string() } else { seats };
        table.row([
            game.name.to_owned(),
            seats,
            mode.as_str().unwrap_or_default().to_lowercase(),
            game.limits.step_ms.to_string(),
            game.limits.bank_ms.to_string(),
            game.description.to_owned(),
        ]);
        list.push(settings::facts(game)?);
    }
    match style {
        Style::Pretty | Style::Compact => print(&table.right([3, 4]).to_string()),
        Style::Json => output::print_json(&Value::Array(list).to_string(), style),
    }
}

fn print_game(name: &str, style: Style) -> Result<(), Failure> {
    output::print_json(&settings::facts(find_game(name)?)?.to_string(), style)
}
