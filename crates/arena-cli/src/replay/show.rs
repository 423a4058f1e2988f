//! `arena replay show`: a whole replay, one of its epochs, or its playback.

use std::fs::File;
use std::io::{BufReader, ErrorKind, IsTerminal};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use arena_games::board::row::{Ink, Row, number};
use arena_games::board::{Stage, TerminalSize};
use arena_match::{Disqualified, EpochLine, HeaderLine, Replay, ReplayLine, ResultLine, ResultPart, SeatLine};
use arena_model::MatchOutcome;
use clap::Args;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::{explain, open};
use crate::exit::Failure;
use crate::output::{self, Style, Table, counted, print, print_line, printable};
use crate::terminal::frame::{AgentEntry, frame, text_of};
use crate::terminal::{self, Screen, can_draw};

/// Options of `arena replay show`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  arena replay show game.jsonl                  the result and the last board
  arena replay show game.jsonl --epoch 12       the board and the actions of an epoch
  arena replay show game.jsonl --play           play it back on the terminal; Ctrl-C stops
  arena replay show game.jsonl --play --pace 500 --epoch 40
  arena replay show game.jsonl --json           print header and result as JSON")]
pub struct ShowArgs {
    /// Replay file.
    pub file: PathBuf,
    /// Epoch to show; with --play, the first one.
    #[arg(long, value_name = "N")]
    pub epoch: Option<u64>,
    /// Play back the epochs on the terminal.
    #[arg(long)]
    pub play: bool,
    /// Time to show each epoch, in milliseconds.
    #[arg(long, value_name = "MS", requires = "play", default_value_t = 100, value_parser = clap::value_parser!(u64).range(0..=60_000))]
    pub pace: u64,
}

/// The maximum number of faults that are described; further faults are only counted.
const SENTENCES: usize = 12;

/// The minimum time between two frames.
const REST: Duration = Duration::from_millis(40);

/// The size of a board if the output isn't a terminal.
const PAGE: TerminalSize = TerminalSize { columns: 100, rows: 60 };

pub fn run(args: &ShowArgs, style: Style) -> Result<(), Failure> {
    let replay = open(&args.file)?;
    match (args.play, args.epoch) {
        (true, from) => play(&args.file, replay, from.unwrap_or(1), Duration::from_millis(args.pace), style),
        (false, Some(epoch)) => show_epoch(&args.file, replay, epoch, style),
        (false, None) => show_whole(&args.file, replay, style),
    }
}

/// The events of a match up to a line of its replay.
#[derive(Default)]
struct MatchEvents {
    epochs: u64,
    disqualified: Vec<Disqualified>,
    /// The number of faults, by seat.
    faults: Vec<u64>,
    rejections: Vec<u64>,
    banks_ms: Vec<u64>,
    /// The descriptions of the first faults, in order; `more` counts further faults.
    sentences: Vec<String>,
    more: u64,
    /// The state after the last line: one of all agents, or one of each.
    state: (Option<Box<RawValue>>, Option<Box<RawValue>>),
}

impl MatchEvents {
    fn new(header: &HeaderLine) -> MatchEvents {
        let seats = header.agents.len();
        MatchEvents { faults: vec![0; seats], rejections: vec![0; seats], ..MatchEvents::default() }
    }

    fn add(&mut self, header: &HeaderLine, line: EpochLine) {
        self.epochs = line.epoch;
        let name = |seat: usize| header.agents.get(seat).map_or("nobody", |agent| agent.name.as_str());
        let add_one =
            |counts: &mut Vec<u64>, seat: usize| counts.get_mut(seat).into_iter().for_each(|count| *count += 1);
        let mut sentences = Vec::new();
        for fault in &line.faults {
            add_one(&mut self.faults, fault.seat);
            sentences.push(format!("{}: fault: {}", name(fault.seat), fault.what));
        }
        for rejected in &line.rejected {
            add_one(&mut self.rejections, rejected.seat);
            let which = rejected.index.map(|index| format!(" {}", index + 1)).unwrap_or_default();
            sentences.push(format!("{}: action{which} rejected: {}", name(rejected.seat), rejected.reason));
        }
        for out in &line.disqualified {
            sentences.push(format!("{}: disqualified, {}: {}", name(out.seat), out.verdict, out.detail));
        }
        for sentence in sentences {
            match self.sentences.len() < SENTENCES {
                true => self.sentences.push(format!("epoch {}: {sentence}", line.epoch)),
                false => self.more += 1,
            }
        }
        self.disqualified.extend(line.disqualified);
        self.banks_ms = line.remaining_overage_ms;
        self.state = (line.world_state, line.worlds);
    }

    fn end(&mut self, line: ResultLine) {
        self.state = (line.world_state, line.worlds);
    }

    /// Parses the state after the last line: a list of one state, or of one for each seat.
    fn states(&self) -> Vec<Value> {
        let (one, each) = &self.state;
        let each = each.as_ref().and_then(|each| serde_json::from_str(each.get()).ok());
        each.or_else(|| Some(vec![serde_json::from_str(one.as_ref()?.get()).ok()?])).unwrap_or_default()
    }

    fn disqualification(&self, seat: usize) -> Option<&Disqualified> {
        self.disqualified.iter().find(|out| out.seat == seat)
    }

    fn entries(&self, header: &HeaderLine) -> Vec<AgentEntry> {
        let entry = |(seat, agent): (usize, &SeatLine)| {
            let mut details: Vec<String> = Vec::new();
            details.extend(self.banks_ms.get(seat).map(|bank_ms| format!("bank {bank_ms} ms")));
            for (count, noun) in [(self.faults[seat], "fault"), (self.rejections[seat], "rejection")] {
                if count > 0 {
                    details.push(counted(count, noun));
                }
            }
            let verdict = self.disqualification(seat).map(|out| format!("{}: {}", out.verdict, out.detail));
            AgentEntry { name: agent.name.clone(), details: details.join(", "), verdict }
        };
        header.agents.iter().enumerate().map(entry).collect()
    }
}

fn show_whole(path: &Path, mut replay: Replay<BufReader<File>>, style: Style) -> Result<(), Failure> {
    let header = replay.header.clone();
    let mut events = MatchEvents::new(&header);
    let mut result = None;
    // The error about an incomplete replay is reported after the output.
    let ended = loop {
        match replay.next_line() {
            Ok(Some(ReplayLine::Epoch(line))) => events.add(&header, line),
            Ok(Some(ReplayLine::Result(line))) => {
                result = Some(line.result.clone());
                events.end(line);
            }
            Ok(None) => break Ok(()),
            Err(error) => break Err(explain(path, &error)),
        }
    };
    if style == Style::Json {
        ended?;
        return print_line(&json!({"header": header, "result": result}));
    }
    let stage = stage_of(&header);
    let text = describe(&header, &events, result.as_ref(), &stage);
    let board = stage.draw(&events.states(), page());
    print((printable(&text).into_owned() + &render(&board.rows)).trim_end())?;
    ended
}

/// Formats the match, its agents, its result and the first faults.
fn describe(header: &HeaderLine, events: &MatchEvents, result: Option<&ResultPart>, stage: &Stage) -> String {
    let epochs = counted(events.epochs, "epoch");
    let mut text = format!("{}, {epochs}, seed {}\n{}", header.game, header.seed, other_rules(header));
    if !header.options.is_empty() {
        let options: Vec<String> = header.options.iter().map(|(key, value)| format!("{key}={value}")).collect();
        text += &format!("options: {}\n", options.join(" "));
    }
    let mut table = Table::new(&["seat", "agent", "rank", "score", "faults", "rejections", "disqualified"]);
    for (seat, agent) in header.agents.iter().enumerate() {
        let of_result =
            |value: &dyn Fn(&ResultPart) -> Option<String>| result.and_then(value).unwrap_or_else(|| "-".to_owned());
        table.row([
            seat.to_string(),
            agent.version.as_ref().map_or_else(|| agent.name.clone(), |version| format!("{} {version}", agent.name)),
            of_result(&|result| result.ranks.get(seat).map(usize::to_string)),
            of_result(&|result| result.scores.get(seat).copied().map(number)),
            events.faults[seat].to_string(),
            events.rejections[seat].to_string(),
            // The table contains only the verdict; the details are printed below it.
            events.disqualification(seat).map_or_else(String::new, |out| out.verdict.to_string()),
        ]);
    }
    text += &format!("{}\n", table.right([0, 2, 3, 4, 5]));
    text.extend(result.map(|result| format!("{}\n", format_outcome(header, stage, &result.outcome))));
    text.extend(events.sentences.iter().map(|sentence| format!("{sentence}\n")));
    if events.more > 0 {
        text += &format!("and {} more\n", events.more);
    }
    text
}

/// Returns a remark if the replay's version of the rules isn't this program's; otherwise an empty text.
fn other_rules(header: &HeaderLine) -> String {
    match arena_games::game(&header.game) {
        Some(game) if header.script.is_none() && game.rules_version != header.rules_version => {
            let (version, found) = (header.rules_version, game.rules_version);
            format!("played by version {version} of the rules; this program has version {found}\n")
        }
        _ => String::new(),
    }
}

fn show_epoch(path: &Path, mut replay: Replay<BufReader<File>>, epoch: u64, style: Style) -> Result<(), Failure> {
    let header = replay.header.clone();
    let mut events = MatchEvents::new(&header);
    let line = loop {
        match replay.next_line().map_err(|error| explain(path, &error))? {
            Some(ReplayLine::Epoch(line)) if line.epoch < epoch => events.add(&header, line),
            Some(ReplayLine::Epoch(line)) if line.epoch == epoch => break line,
            Some(ReplayLine::Epoch(_)) => {
                return Err(Failure::usage(format_args!("{} has no epoch {epoch}", path.display())));
            }
            Some(ReplayLine::Result(_)) | None => return Err(no_epoch(path, epoch, &events)),
        }
    };
    if style == Style::Json {
        return output::print_json(replay.text(), style);
    }
    let actions = line.actions.as_ref().map(|actions| actions.get().to_owned());
    // Only the faults of this epoch are described.
    (events.sentences, events.more) = (Vec::new(), 0);
    events.add(&header, line);
    let mut text = match actions {
        Some(actions) => {
            let lists: Vec<Option<Vec<Value>>> = serde_json::from_str(&actions).unwrap_or_default();
            let lists = header.agents.iter().zip(&lists).filter_map(|(agent, list)| Some((agent, list.as_ref()?)));
            lists.map(|(agent, list)| format!("{}: {}\n", agent.name, format_actions(list))).collect()
        }
        None => "the match ended before actions were applied in this epoch\n".to_owned(),
    };
    text.extend(events.sentences.iter().map(|sentence| format!("{sentence}\n")));
    let frame = frame_of(&stage_of(&header), &header, &events, page());
    print((render(&frame) + &printable(&text)).trim_end())
}

fn no_epoch(path: &Path, epoch: u64, events: &MatchEvents) -> Failure {
    let last = events.epochs;
    Failure::usage(format_args!("{} has no epoch {epoch}; its last epoch is {last}", path.display()))
}

/// Formats the result. A replay records the winner by side or id; the output contains the winner's name.
fn format_outcome(header: &HeaderLine, stage: &Stage, outcome: &MatchOutcome) -> String {
    let winner = header
        .agents
        .iter()
        .zip(&stage.sides)
        .enumerate()
        .find(|(_, (agent, side))| agent.agent_id == outcome.winner || **side == Some(outcome.winner.as_ref()));
    let winner = match winner {
        Some((seat, (agent, _))) => format!("{} wins (seat {seat})", agent.name),
        None if outcome.winner == "DRAW" => "a draw".to_owned(),
        None if outcome.is_void() => "void, not counted".to_owned(),
        None => format!("{} wins", outcome.winner),
    };
    format!("{}: {winner}", outcome.termination)
}

/// Formats actions for people: the action and its arguments.
fn format_actions(list: &[Value]) -> String {
    let format_action = |action: &Value| {
        let Some(members) = action.as_object() else { return action.to_string() };
        let text = |value: &Value| match value {
            Value::String(text) => text.clone(),
            Value::Array(list) => {
                let rounded = |value: &Value| value.as_f64().map_or_else(|| value.to_string(), number);
                format!("[{}]", list.iter().map(rounded).collect::<Vec<_>>().join(", "))
            }
            value => value.to_string(),
        };
        let name = members.get("action").map(text).unwrap_or_default();
        let rest = members.iter().filter(|(key, _)| *key != "action");
        let rest: Vec<String> = rest.map(|(key, value)| format!("{key} {}", text(value))).collect();
        // For an action with the member `move`, the output is only the move.
        match members.get("move").and_then(Value::as_str).filter(|_| rest.len() == 1) {
            Some(to) => to.to_owned(),
            None if rest.is_empty() => name,
            None => format!("{name} ({})", rest.join(", ")),
        }
    };
    match list.is_empty() {
        true => "nothing".to_owned(),
        false => list.iter().map(format_action).collect::<Vec<_>>().join("; "),
    }
}

fn play(
    path: &Path,
    mut replay: Replay<BufReader<File>>,
    from: u64,
    pace: Duration,
    style: Style,
) -> Result<(), Failure> {
    if style == Style::Json || !std::io::stdout().is_terminal() || !can_draw() {
        return Err(Failure::usage("--play needs a terminal to draw on"));
    }
    let header = replay.header.clone();
    let stage = stage_of(&header);
    let (mut events, mut screen) = (MatchEvents::new(&header), Screen::new());
    let mut drawn: Option<Instant> = None;
    let mut draw = |events: &MatchEvents| match screen.draw(&frame_of(&stage, &header, events, terminal::size())) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(Failure::cannot("write to stdout", error)),
        _ => Ok(()),
    };
    loop {
        match replay.next_line() {
            Ok(Some(ReplayLine::Epoch(line))) => {
                let is_shown = line.epoch >= from;
                events.add(&header, line);
                if is_shown {
                    if drawn.is_none_or(|drawn| drawn.elapsed() >= REST) {
                        draw(&events)?;
                        drawn = Some(Instant::now());
                    }
                    thread::sleep(pace);
                }
            }
            Ok(Some(ReplayLine::Result(_))) if events.epochs < from => return Err(no_epoch(path, from, &events)),
            Ok(Some(ReplayLine::Result(line))) => {
                let outcome = line.result.outcome.clone();
                events.end(line);
                draw(&events)?;
                return print(&printable(&format_outcome(&header, &stage, &outcome)));
            }
            Ok(None) => return Ok(()),
            Err(error) => {
                draw(&events)?;
                return Err(explain(path, &error));
            }
        }
    }
}

/// Returns the constant data of a replay that the board needs. The sides follow from the replay's seed; they stay
/// unknown if this program's rules can't start a game with that seed.
fn stage_of(header: &HeaderLine) -> Stage {
    let ids: Vec<String> = header.agents.iter().map(|agent| agent.agent_id.clone()).collect();
    Stage { game: header.game.clone(), config: header.config.clone(), ids, sides: header.sides() }
}

fn frame_of(stage: &Stage, header: &HeaderLine, events: &MatchEvents, size: TerminalSize) -> Vec<Row> {
    let mut title = Row::default();
    title.text(Ink::Strong, &header.game).text(Ink::Plain, &format!(", epoch {}", events.epochs));
    frame(stage, title, &events.states(), &events.entries(header), size)
}

/// Returns the size for output that is printed once. The terminal's height is no limit, since the terminal scrolls.
fn page() -> TerminalSize {
    match std::io::stdout().is_terminal() {
        true => TerminalSize { columns: terminal::size().columns, rows: PAGE.rows },
        false => PAGE,
    }
}

/// Formats rows as text. A terminal crops them to its width.
fn render(rows: &[Row]) -> String {
    let is_terminal = std::io::stdout().is_terminal();
    text_of(rows, if is_terminal { terminal::size().columns } else { usize::MAX })
}
