//! `arena replay show`: a whole replay, one of its epochs, or its playback.

use std::fs::File;
use std::io::{BufReader, ErrorKind, IsTerminal};
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use arena_match::{Disqualified, EpochLine, HeaderLine, Replay, ReplayLine, ResultLine, ResultPart, SeatLine};
use arena_model::MatchOutcome;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::{bad, open};
use crate::args::ShowArgs;
use crate::boards::{AgentEntry, picture, read_states, stage_of_replay};
use crate::exit::{Exit, Failure};
use crate::output::{self, Style, Table, counted, print, printable};
use crate::terminal::{self, Screen, can_draw};
use arena_games::board::row::{Ink, Row, number};
use arena_games::board::{Stage, TerminalSize};

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

/// A summary of a match's events, built line by line.
#[derive(Default)]
struct Story {
    epochs: u64,
    out: Vec<Disqualified>,
    /// The number of faults, by seat.
    faults: Vec<u64>,
    rejections: Vec<u64>,
    banks_ms: Vec<u64>,
    /// The descriptions of the first faults, in order; `more` counts further faults.
    sentences: Vec<String>,
    more: u64,
    states: Vec<Value>,
    /// The states of the last line, before they are parsed.
    last: (Option<Box<RawValue>>, Option<Box<RawValue>>),
}

impl Story {
    fn new(header: &HeaderLine) -> Story {
        let seats = header.agents.len();
        Story { faults: vec![0; seats], rejections: vec![0; seats], ..Story::default() }
    }

    fn add(&mut self, header: &HeaderLine, line: EpochLine) {
        self.epochs = line.epoch;
        let name = |seat: usize| header.agents.get(seat).map_or("nobody", |agent| agent.name.as_str());
        let add_one = |counts: &mut Vec<u64>, seat: usize| {
            if let Some(count) = counts.get_mut(seat) {
                *count += 1;
            }
        };
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
        self.out.extend(line.disqualified);
        self.banks_ms = line.remaining_overage_ms;
        self.last = (line.world_state, line.worlds);
    }

    fn end(&mut self, line: ResultLine) {
        self.last = (line.world_state, line.worlds);
    }

    fn parse(&mut self) {
        let text = |raw: &Option<Box<RawValue>>| raw.as_ref().map(|raw| raw.get().to_owned());
        self.states = read_states(text(&self.last.0).as_deref(), text(&self.last.1).as_deref());
    }

    fn out_of(&self, seat: usize) -> Option<&Disqualified> {
        self.out.iter().find(|out| out.seat == seat)
    }

    fn entries(&self, header: &HeaderLine) -> Vec<AgentEntry> {
        let entry = |(seat, agent): (usize, &SeatLine)| {
            let mut words: Vec<String> = Vec::new();
            words.extend(self.banks_ms.get(seat).map(|bank_ms| format!("bank {bank_ms} ms")));
            for (count, one) in [(self.faults[seat], "fault"), (self.rejections[seat], "rejection")] {
                if count > 0 {
                    words.push(format!("{count} {one}{}", if count == 1 { "" } else { "s" }));
                }
            }
            let verdict = self.out_of(seat).map(|out| format!("{}: {}", out.verdict, out.detail));
            AgentEntry { name: agent.name.clone(), words: words.join(", "), verdict }
        };
        header.agents.iter().enumerate().map(entry).collect()
    }
}

fn show_whole(path: &Path, mut replay: Replay<BufReader<File>>, style: Style) -> Result<(), Failure> {
    let header = replay.header.clone();
    let mut story = Story::new(&header);
    let (mut result, mut broken) = (None, None);
    loop {
        match replay.next_line() {
            Ok(Some(ReplayLine::Epoch(line))) => story.add(&header, line),
            Ok(Some(ReplayLine::Result(line))) => {
                result = Some(line.result.clone());
                story.end(line);
            }
            Ok(None) => break,
            // The error about an incomplete replay is reported after the output.
            Err(error) => {
                broken = Some(bad(path, &error));
                break;
            }
        }
    }
    let ended = broken.map_or(Ok(()), Err);
    if style == Style::Json {
        ended?;
        return print(&json!({"header": header, "result": result}).to_string());
    }
    story.parse();
    let stage = stage_of_replay(&header);
    let epochs = counted(story.epochs, "epoch", "epochs");
    let mut text = format!("{}, {epochs}, seed {}\n", header.game, header.seed);
    text += &other_rules(&header);
    if !header.options.is_empty() {
        let options: Vec<String> = header.options.iter().map(|(key, value)| format!("{key}={value}")).collect();
        text += &format!("options: {}\n", options.join(" "));
    }
    let mut table = Table::new(&["seat", "agent", "rank", "score", "faults", "rejections", "disqualified"]);
    for (seat, agent) in header.agents.iter().enumerate() {
        let of_result = |value: &dyn Fn(&ResultPart) -> Option<String>| {
            result.as_ref().and_then(value).unwrap_or_else(|| "-".to_owned())
        };
        table.row([
            seat.to_string(),
            agent.version.as_ref().map_or_else(|| agent.name.clone(), |version| format!("{} {version}", agent.name)),
            of_result(&|result| result.ranks.get(seat).map(usize::to_string)),
            of_result(&|result| result.scores.get(seat).copied().map(number)),
            story.faults[seat].to_string(),
            story.rejections[seat].to_string(),
            // The table contains only the verdict; the details are printed below it.
            story.out_of(seat).map_or_else(String::new, |out| out.verdict.to_string()),
        ]);
    }
    text += &format!("{}\n", table.right([0, 2, 3, 4, 5]));
    if let Some(result) = &result {
        text += &format!("{}\n", format_outcome(&header, &stage, &result.outcome));
    }
    for sentence in &story.sentences {
        text += &format!("{sentence}\n");
    }
    if story.more > 0 {
        text += &format!("and {} more\n", story.more);
    }
    let board = stage.draw(&story.states, page());
    print((printable(&text).into_owned() + &render(&board.rows)).trim_end())?;
    ended
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
    let mut story = Story::new(&header);
    loop {
        let line = match replay.next_line().map_err(|error| bad(path, &error))? {
            Some(ReplayLine::Epoch(line)) => line,
            Some(ReplayLine::Result(_)) | None => {
                let last = story.epochs;
                let sentence = format!("{} has no epoch {epoch}; its last epoch is {last}", path.display());
                return Err(Failure::new(Exit::Usage, sentence));
            }
        };
        if line.epoch < epoch {
            story.add(&header, line);
            continue;
        }
        if line.epoch > epoch {
            let sentence = format!("{} has no epoch {epoch}", path.display());
            return Err(Failure::new(Exit::Usage, sentence));
        }
        if style == Style::Json {
            return output::print_json(replay.text(), style);
        }
        let actions = line.actions.as_ref().map(|actions| actions.get().to_owned());
        (story.sentences, story.more) = (Vec::new(), 0);
        story.add(&header, line);
        story.parse();
        let mut text = String::new();
        let lists: Vec<Option<Vec<Value>>> =
            actions.as_deref().and_then(|actions| serde_json::from_str(actions).ok()).unwrap_or_default();
        for (agent, list) in header.agents.iter().zip(&lists) {
            if let Some(list) = list {
                text += &format!("{}: {}\n", agent.name, format_actions(list));
            }
        }
        if actions.is_none() {
            text += "the match ended before actions were applied in this epoch\n";
        }
        for sentence in &story.sentences {
            text += &format!("{sentence}\n");
        }
        let picture = picture_of(&stage_of_replay(&header), &header, &story, page());
        return print((render(&picture) + &printable(&text)).trim_end());
    }
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
        return Err(Failure::new(Exit::Usage, "--play needs a terminal to draw on"));
    }
    let header = replay.header.clone();
    let stage = stage_of_replay(&header);
    let (mut story, mut screen) = (Story::new(&header), Screen::new());
    let mut drawn: Option<Instant> = None;
    let mut draw = |story: &mut Story| {
        story.parse();
        match screen.draw(&picture_of(&stage, &header, story, terminal::room())) {
            Err(error) if error.kind() != ErrorKind::BrokenPipe => {
                Err(Failure::new(Exit::Internal, format_args!("cannot write to stdout: {error}")))
            }
            _ => Ok(()),
        }
    };
    loop {
        match replay.next_line() {
            Ok(Some(ReplayLine::Epoch(line))) => {
                let is_shown = line.epoch >= from;
                story.add(&header, line);
                if is_shown {
                    if drawn.is_none_or(|drawn| drawn.elapsed() >= REST) {
                        draw(&mut story)?;
                        drawn = Some(Instant::now());
                    }
                    thread::sleep(pace);
                }
            }
            Ok(Some(ReplayLine::Result(_))) if story.epochs < from => {
                let sentence = format!("{} has no epoch {from}; its last epoch is {}", path.display(), story.epochs);
                return Err(Failure::new(Exit::Usage, sentence));
            }
            Ok(Some(ReplayLine::Result(line))) => {
                let outcome = line.result.outcome.clone();
                story.end(line);
                draw(&mut story)?;
                return print(&printable(&format_outcome(&header, &stage, &outcome)));
            }
            Ok(None) => return Ok(()),
            Err(error) => {
                draw(&mut story)?;
                return Err(bad(path, &error));
            }
        }
    }
}

fn picture_of(stage: &Stage, header: &HeaderLine, story: &Story, room: TerminalSize) -> Vec<Row> {
    let mut title = Row::default();
    title.text(Ink::Strong, &header.game).text(Ink::Plain, &format!(", epoch {}", story.epochs));
    picture(stage, title, &story.states, &story.entries(header), room)
}

/// Returns the size for output that is printed once. The terminal's height is no limit, since the terminal scrolls.
fn page() -> TerminalSize {
    match std::io::stdout().is_terminal() {
        true => TerminalSize { columns: terminal::room().columns, rows: PAGE.rows },
        false => PAGE,
    }
}

/// Formats rows as text, cropped to the width of the output. Only output to a terminal has colors.
fn render(rows: &[Row]) -> String {
    let has_colors = std::io::stdout().is_terminal() && terminal::has_colors();
    let columns = match std::io::stdout().is_terminal() {
        true => terminal::room().columns,
        false => usize::MAX,
    };
    let mut text = String::new();
    for row in rows {
        row.write(columns, has_colors, &mut text);
        text.truncate(text.trim_end_matches(' ').len());
        text.push('\n');
    }
    text
}
