//! `arena match run`: one or more matches, with their replays and results.

use std::collections::BTreeMap;
use std::fs;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use arena_match::{
    Agent, Confinement, MatchPlan, OutputFile, OutputPath, PlayedMatch, Watch, cores, logs, play_match, spread,
};
use arena_model::{GameType, Seed, TimeLimits};
use arena_record::RecordKey;
use clap::Args;
use serde_json::{Map, Value};

use super::live::Live;
use super::options::{Affinity, AgentIds, PlayArgs, agent_help, game_help, games};
use super::score::{self, TotalScore};
use super::{explain, open_files, seal, settings};
use crate::exit::{Exit, Failure};
use crate::files::cannot_write;
use crate::interrupt;
use crate::output::{Style, print, print_for_reader};
use crate::terminal::can_draw;

/// Options of `arena match run`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  arena match run snake --agent ./a --agent ./b
  arena match run chess --agent ./a --agent ./b --seed 7 --replay game.jsonl
  arena match run food_catcher --agent ./a --agent http://127.0.0.1:8000/ --json
  arena match run snake --agent ./a -- python3 bot.py --level 3    the second agent is a command line
  arena match run snake --agent ./a --agent house --agent random --agent house:easy    built-in agents
  arena match run psi --agent model:llama3@ollama --agent house --step-ms 120000    a language model
  arena match run chess --agent ./a --agent 'uci:stockfish?option.UCI_LimitStrength=true' --tc 60+1    a chess engine
  arena match run snake --agent ./a --agent ./b --pace 200    slow enough to watch
  arena match run snake --agent ./a --agent ./b --games 100 --concurrency 2
  arena match run snake --agent ./a --agent ./b --set n_epochs=200 --set grid_width=20

An agent is an executable, a folder that contains agent, agent.py or agent.js, a URL, a Python function (`py:FILE.py:FUNCTION`), `house` (or `house:easy`, \
`house:GAME`), `random`, a language model (`model:NAME`, `model:NAME@URL`), a chess engine (`uci:PATH`), a command-line agent (`cli:TEMPLATE`), or a command line after `--` (put `--` before each command line). A manifest.json beside an agent may set {\"dialect\": \"spec\"}. docs/agents.md in the repository explains \
how to write an agent; `arena agent check` finds its faults.

With --games, each game gets a seed derived from --seed. Games 1 and 2, 3 and 4 and so on share a seed, and the agents swap \
seats. The agents' stderr is kept next to the replay, one file for each agent.

--sign-key appends a seal, which `arena verify --key` checks. `arena identity new` makes a key.")]
pub struct RunArgs {
    /// The game, a challenge, or the folder of a scripted challenge.
    #[arg(help = game_help("; a challenge, such as psi; or the folder of a scripted challenge"))]
    pub game: String,
    /// Agent for the next free seat.
    #[arg(long = "agent", value_name = "PATH", help = agent_help("Agent for the next free seat", ""))]
    pub agents: Vec<String>,
    /// Further agents as command lines, with `--` before each of them.
    #[arg(last = true, value_name = "COMMAND", allow_hyphen_values = true)]
    pub commands: Vec<String>,
    /// Replay file; with several games, a folder for 1.jsonl, 2.jsonl and so on.
    #[arg(long, value_name = "FILE")]
    pub replay: Option<PathBuf>,
    /// File with the Ed25519 private key that signs the replay.
    #[arg(long, value_name = "FILE", requires = "replay")]
    pub sign_key: Option<PathBuf>,
    /// Number of games; the agents swap seats.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = games::<u32>)]
    pub games: u32,
    /// Don't draw the game on the terminal.
    #[arg(long)]
    pub no_live: bool,
    /// Minimum time to show each epoch, in milliseconds.
    #[arg(long, value_name = "MS", conflicts_with = "no_live", value_parser = clap::value_parser!(u64).range(0..=60_000))]
    pub pace: Option<u64>,
    /// Options of every match.
    #[command(flatten)]
    pub play: PlayArgs,
}

/// The number of consecutive games that share a seed.
const GAMES_A_PAIR: usize = 2;

/// The common parts of all games of a run.
struct MatchRun {
    game: &'static GameType,
    options: Map<String, Value>,
    seed: Seed,
    limits: TimeLimits,
    agents: Vec<Agent>,
    confinement: Confinement,
    games: usize,
    replay: Option<PathBuf>,
    sign_key: Option<RecordKey>,
    style: Style,
}

/// A finished game and its replay, a temporary file without its final name. Both games of a pair share a seed, so the
/// program prints neither result before both games are over.
struct FinishedGame {
    played: PlayedMatch,
    replay: Option<(PathBuf, OutputFile)>,
}

impl FinishedGame {
    /// Gives the replay its final name and writes the logs beside it. Returns the game and the path of its replay.
    fn keep(self) -> Result<(PlayedMatch, Option<String>), Failure> {
        let FinishedGame { played, replay } = self;
        let Some((path, file)) = replay else { return Ok((played, None)) };
        let has_logs = file.is_regular();
        let kept = file.keep().map_err(|error| cannot_write(&path, &error));
        let logged = if has_logs { logs::write(&path, &played) } else { Ok(()) };
        kept.and(logged.map_err(|(path, error)| cannot_write(&path, &error)))?;
        Ok((played, Some(path.display().to_string())))
    }
}

pub fn run(args: &RunArgs, style: Style) -> Result<(), Failure> {
    let run = MatchRun::of(args, style)?;
    open_files::allow(run.games.min(args.play.concurrency as usize), run.agents.len())?;
    let called_off = interrupt::flag()?;
    let cores = match args.play.affinity {
        Affinity::Share => cores(),
        Affinity::Any => Vec::new(),
    };
    let is_live = style == Style::Pretty && !args.no_live && run.games == 1 && can_draw();
    let pace = match (is_live, args.pace) {
        (true, pace) => Some(Duration::from_millis(pace.unwrap_or(0))),
        (false, None) => None,
        (false, Some(_)) => return Err(Failure::usage("--pace needs a terminal, a single game and no --json")),
    };
    let mut score = TotalScore::new(&run.agents);
    let (mut end, mut has_reader) = (Ok(()), true);
    let job = |number| run.play(number, pace, &called_off);
    let mut waiting: BTreeMap<usize, FinishedGame> = BTreeMap::new();
    spread(run.games, args.play.concurrency as usize, &cores, job, |number, finished| {
        let printed = finished.and_then(|game| {
            waiting.insert(number, game);
            let pair: Vec<(usize, FinishedGame)> = match run.pair(number).all(|number| waiting.contains_key(&number)) {
                true => run.pair(number).filter_map(|number| waiting.remove_entry(&number)).collect(),
                false => Vec::new(),
            };
            run.keep_all(pair, &mut score)
        });
        match printed {
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
    let kept = run.keep_all(waiting, &mut score);
    end = end.and(kept.map(|_| ()));
    // Finished games are reported after an interruption too.
    if run.games > 1 && style != Style::Json && score.games() > 0 {
        print(&score.to_string())?;
    }
    end
}

impl MatchRun {
    fn of(args: &RunArgs, style: Style) -> Result<MatchRun, Failure> {
        let game = settings::find_game(&args.game)?;
        let mut agents = settings::find_agents(&args.agents, &args.commands)?;
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
        let seed = settings::seed_or_random(&args.play.seed)?;
        let sign_key = args.sign_key.as_deref().map(seal::read_key).transpose()?;
        let games = args.games as usize;
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
        let outputs: Vec<OutputPath<'_>> =
            replay.into_iter().chain(key).chain(logs.iter().map(|path| OutputPath::File(path))).collect();
        let confinement = settings::confine(&args.play.sandbox, &agents, &outputs)?;
        if let Some(folder) = args.replay.as_ref().filter(|_| games > 1) {
            fs::create_dir_all(folder).map_err(|error| cannot_write(folder, &error))?;
        }
        let replay = args.replay.clone();
        Ok(MatchRun { game, options, seed, limits, agents, confinement, games, replay, sign_key, style })
    }

    /// Plays a game (numbered from 0). Two consecutive games share a seed, and the agents swap seats. With a `pace`,
    /// the terminal shows the game live, and each epoch for at least this time.
    fn play(
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
        let create = |path: PathBuf| match OutputFile::create(&path) {
            Ok(file) => Ok((path, file)),
            Err(error) => Err(cannot_write(&path, &error)),
        };
        let mut replay = self.replay_path(number).map(create).transpose()?;
        let out = replay.as_mut().map(|(_, file)| file as &mut (dyn std::io::Write + Send));
        let view = |pace| Ok::<_, Failure>(Live::new(settings::stage(&plan)?, pace, called_off.clone()));
        let mut live = pace.map(view).transpose()?;
        let watch = live.as_mut().map(|live| live as &mut dyn Watch);
        let played = play_match(&plan, out, watch, called_off);
        // The last frame precedes all other output.
        drop(live);
        let played = played.map_err(explain)?;
        if let (Some(key), Some((path, file))) = (&self.sign_key, &mut replay) {
            seal::seal(key, path, file, &played)?;
        }
        Ok(FinishedGame { played, replay })
    }

    /// Returns the numbers of the games with the same seed as this one.
    fn pair(&self, number: usize) -> Range<usize> {
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
    ) -> Result<bool, Failure> {
        let mut kept = Ok(true);
        for (number, game) in games {
            let printed = game.keep().and_then(|(played, replay)| self.print(number, &played, replay, score));
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
    fn print(
        &self,
        number: usize,
        played: &PlayedMatch,
        replay_file: Option<String>,
        score: &mut TotalScore,
    ) -> Result<bool, Failure> {
        let seats = self.agents.len();
        let shift = number % seats;
        score.add(shift, played);
        match self.style {
            Style::Pretty | Style::Compact if self.games == 1 => {
                print_for_reader(&score::describe(played, &self.agents, replay_file.as_deref()))
            }
            Style::Pretty | Style::Compact => print_for_reader(&score::line(number + 1, &played.result)),
            Style::Json => {
                let number = (self.games > 1).then_some(number + 1);
                let agents = (0..seats).map(|seat| &self.agents[(shift + seat) % seats]);
                let json = score::Printed::of(number, self.game, played, agents, replay_file);
                let json = serde_json::to_string(&json);
                print_for_reader(&json.map_err(|error| Failure::caused(Exit::Internal, &error))?)
            }
        }
    }
}
