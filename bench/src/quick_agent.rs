//! The agent of measured matches, which is this binary in another mode and uses little CPU time. The agent reads a line
//! with one system call, writes a line with one system call, and takes its answer from a prepared list. The remaining
//! time is that of the pipe and the runner.

use std::ffi::OsString;
use std::io::BufRead as _;
use std::process::ExitCode;

use anyhow::{Context as _, bail};
use cozy_chess::util::{display_uci_move, parse_uci_move};
use cozy_chess::{Board, Move};
use memchr::{memchr, memmem};
use rustix::stdio::{stdin, stdout};
use serde_json::{Value, json};

/// The argument that makes this binary an agent.
pub const QUICK_AGENT: &str = "quick-agent";

/// The length of the longest message to an agent, in bytes.
const BUFFER: usize = 1 << 20;

/// Plays as the arguments say. `echo BYTES` answers every message with this number of bytes, `mute EPOCHS` stops
/// answering after this number of states, `uci` plays chess by the Universal Chess Interface, and the name of a game plays
/// this game.
pub fn run(args: impl Iterator<Item = OsString>) -> ExitCode {
    let args: Vec<String> = args.map(|arg| arg.to_string_lossy().into_owned()).collect();
    match play(&args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("quick-agent: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn play(args: &[String]) -> anyhow::Result<()> {
    let number = || {
        args.get(1)
            .context("the second argument is missing; give a number")?
            .parse::<usize>()
            .context("the second argument is not a number")
    };
    match args.first().map(String::as_str) {
        Some("echo") => echo(number()?),
        Some("uci") => play_engine(),
        Some("mute") => converse(&mut Moves::new("snake", Some(number()?))),
        Some(game) => converse(&mut Moves::new(game, None)),
        None => bail!("the first argument is missing; give the name of a game"),
    }
}

/// Plays as a chess engine that answers at once, with legal moves that don't soon repeat the position.
fn play_engine() -> anyhow::Result<()> {
    let (mut board, mut known, mut output) = (Board::default(), String::new(), String::new());
    let mut played = 0_usize;
    for line in std::io::stdin().lock().lines() {
        let line = line?;
        if line == "uci" {
            output = "id name quick\nuciok\n".to_owned();
        } else if line == "isready" {
            output = "readyok\n".to_owned();
        } else if line == "quit" {
            return Ok(());
        } else if let Some(position) = line.strip_prefix("position startpos") {
            let (from, moves) = match position.strip_prefix(known.as_str()) {
                Some(later) => (board, later),
                None => (Board::default(), position),
            };
            board = from;
            for uci in moves.split(' ').filter(|word| !word.is_empty() && *word != "moves") {
                let play = parse_uci_move(&board, uci).map_err(|error| anyhow::anyhow!("{uci}: {error}"))?;
                board.play_unchecked(play);
            }
            known = position.to_owned();
        } else if line.starts_with("go") {
            let mut moves: Vec<Move> = Vec::with_capacity(64);
            board.generate_moves(|group| {
                moves.extend(group);
                false
            });
            played += 1;
            let chosen = moves.get(played * 7919 % moves.len().max(1)).context("no legal move")?;
            let uci = display_uci_move(&board, *chosen);
            output = format!("info depth 1 score cp 0 nodes {played} pv {uci}\nbestmove {uci}\n");
        }
        if !output.is_empty() {
            rustix::io::write(stdout(), output.as_bytes())?;
            output.clear();
        }
    }
    Ok(())
}

fn echo(bytes: usize) -> anyhow::Result<()> {
    let mut line = vec![b'x'; bytes.max(1)];
    if let Some(last) = line.last_mut() {
        *last = b'\n';
    }
    let mut buffer = vec![0; BUFFER];
    while read_line(&mut buffer)?.is_some() {
        rustix::io::write(stdout(), &line)?;
    }
    Ok(())
}

/// Reads a complete line and returns its length. A runner never sends a second message before the answer to the first.
fn read_line(buffer: &mut [u8]) -> anyhow::Result<Option<usize>> {
    let mut end = 0;
    loop {
        let read = rustix::io::read(stdin(), &mut buffer[end..])?;
        if read == 0 {
            return Ok(None);
        }
        if let Some(at) = memchr(b'\n', &buffer[end..end + read]) {
            return Ok(Some(end + at));
        }
        end += read;
    }
}

fn converse(moves: &mut Moves) -> anyhow::Result<()> {
    let mut buffer = vec![0; BUFFER];
    while let Some(end) = read_line(&mut buffer)? {
        let line = &buffer[..end];
        let answer: &[u8] = if line.starts_with(b"{\"ping\"") {
            b"{\"pong\":\"pong\"}\n"
        } else if line.starts_with(b"{\"stop\"") {
            return Ok(());
        } else if memmem::find(&line[..line.len().min(16 << 10)], b"\"set_agent_id\"").is_some() {
            let message: Value = serde_json::from_slice(line)?;
            moves.id = message["set_agent_id"].as_str().context("the first message has no set_agent_id")?.to_owned();
            moves.hello = format!("{}\n", json!({ "agent_id": moves.id })).into_bytes();
            &moves.hello
        } else {
            moves.next(line)?
        };
        if !answer.is_empty() {
            rustix::io::write(stdout(), answer)?;
        }
    }
    Ok(())
}

/// The answers of an agent. In most games these are a few lines, which are prepared at the first state and repeated. In
/// chess, each line depends on the state.
struct Moves {
    game: String,
    id: String,
    hello: Vec<u8>,
    lines: Vec<Vec<u8>>,
    played: usize,
    /// The number of states after which the agent stops answering; `None` means never.
    mute_after: Option<usize>,
}

impl Moves {
    fn new(game: &str, mute_after: Option<usize>) -> Moves {
        let (id, hello, lines) = (String::new(), Vec::new(), Vec::new());
        Moves { game: game.to_owned(), id, hello, lines, played: 0, mute_after }
    }

    fn next(&mut self, line: &[u8]) -> anyhow::Result<&[u8]> {
        self.played += 1;
        if self.mute_after.is_some_and(|most| self.played > most) {
            return Ok(b"");
        }
        if self.game == "chess" {
            // The index of the move changes, because always playing the first move would soon repeat the position. The
            // move is cut out of the text instead of parsing the message.
            let key = b"\"legal_moves\":[";
            let from = memmem::find(line, key).context("the state has no legal_moves")? + key.len();
            let until = from + memchr(b']', &line[from..]).context("the list of legal_moves has no end")?;
            let list = std::str::from_utf8(&line[from..until])?;
            let count = list.bytes().filter(|byte| *byte == b',').count() + 1;
            let chosen = list.split(',').nth(self.played * 7919 % count).unwrap_or_default().trim_matches('"');
            self.lines = vec![self.line(&json!([{ "action": "move", "move": chosen }]))];
        } else if self.lines.is_empty() {
            let message: Value = serde_json::from_slice(line)?;
            let actions = match self.game.as_str() {
                "snake" => circle(&message["world_state"]["snakes"][&self.id]["head_position"]),
                "food_catcher" | "cherry_picker" => to_and_fro(&message["world_state"]["actors"], &self.id)?,
                other => bail!("the quick agent doesn't support the game {other}"),
            };
            self.lines = actions.iter().map(|actions| self.line(actions)).collect();
        }
        Ok(&self.lines[self.played % self.lines.len()])
    }

    fn line(&self, actions: &Value) -> Vec<u8> {
        format!("{}\n", json!({ "agent_id": self.id, "actions": actions })).into_bytes()
    }
}

/// Returns four moves that lead a snake back to its position, inside the default grid.
fn circle(head: &Value) -> Vec<Value> {
    let inner = |axis: usize| head[axis].as_i64().unwrap_or(0) < 5;
    let (to, fro) = if inner(0) { ("RIGHT", "LEFT") } else { ("LEFT", "RIGHT") };
    let (up, down) = if inner(1) { ("DOWN", "UP") } else { ("UP", "DOWN") };
    [to, up, fro, down].map(|step| json!([{ "action": "move", "move": step }])).to_vec()
}

/// Returns two moves, back and forth, that an actor makes in turn.
fn to_and_fro(actors: &Value, id: &str) -> anyhow::Result<Vec<Value>> {
    let own = actors.as_array().into_iter().flatten().find(|actor| actor["owner_id"] == id);
    let own = own.context("the state has no actor of this agent")?;
    let (x, y) = (own["position"][0].as_f64().unwrap_or(0.0), own["position"][1].as_f64().unwrap_or(0.0));
    let step = |dx: f64| json!([{ "action": "move", "actor_id": own["id"], "target": [x + dx, y] }]);
    Ok(vec![step(0.5), step(-0.5)])
}
