//! `arena uci`: an agent as a chess engine for programs that speak the Universal Chess Interface.
//!
//! An agent can't be interrupted, so `stop` waits for its answer, which its time limit bounds. An agent that fails gets
//! a line `info string`, and starts again with the next search.

use std::io::{self, BufRead, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use arena_match::{Agent, Confinement, MatchError, Solo, private};
use arena_model::{AgentId, AnyGame, Events, GameType, Match, Seat, Seed, Setup, TimeControl, agent_ids};
use serde_json::{Map, Value, json};

use crate::args::UciArgs;
use crate::exit::{Exit, Failure};
use crate::matches::settings::{self, find_game};

/// The least time for an agent, in milliseconds, if the program's clock shows less.
const LEAST_MS: u64 = 1;

/// The time for a search in progress at the end of stdin.
const LAST_SEARCH: Duration = Duration::from_secs(2);

/// The maximum length of a line, in bytes. A position with its moves is far shorter.
const MAX_LINE: usize = 1 << 20;

/// True some time after the end of stdin. A search in progress then ends.
static CALLED_OFF: AtomicBool = AtomicBool::new(false);

/// Answers the lines on stdin until `quit` or their end.
pub fn run(args: &UciArgs) -> Result<(), Failure> {
    let agent = match &args.agent {
        Some(text) => settings::find_agent(text)?,
        None => settings::find_command(&args.command)?,
    };
    let chess = find_game("chess")?;
    let mut confinement = settings::confinement(&args.sandbox)?;
    confinement.private = private(std::slice::from_ref(&agent), &confinement.expose, confinement.mode, &[])
        .map_err(|error| Failure::new(Exit::Usage, error))?;
    let output = Output::default();
    let lines = read_lines(&output);
    let mut engine = Engine { agent, chess, confinement, output, position: PositionSpec::default(), seated: None };
    // The loop ends when the reader has read `quit` or the end of stdin.
    while let Ok(line) = lines.recv() {
        engine.answer(&line, &lines);
    }
    engine.leave();
    Ok(())
}

/// Stdout, which two threads write to, and the state of the search.
#[derive(Clone, Default)]
struct Output {
    is_searching: Arc<AtomicBool>,
    lock: Arc<Mutex<()>>,
}

impl Output {
    fn say(&self, line: &str) {
        let _guard = self.lock.lock().unwrap_or_else(PoisonError::into_inner);
        let mut stdout = io::stdout().lock();
        // If the program has closed the pipe, the end of stdin follows.
        let _ = writeln!(stdout, "{line}").and_then(|()| stdout.flush());
    }
}

/// Reads stdin on a thread of its own, which answers `isready` while the agent thinks.
fn read_lines(output: &Output) -> Receiver<String> {
    let (sender, lines) = channel();
    let output = output.clone();
    thread::spawn(move || {
        let mut stdin = io::stdin().lock();
        let mut line = Vec::new();
        loop {
            line.clear();
            match io::Read::take(&mut stdin, MAX_LINE as u64).read_until(b'\n', &mut line) {
                Ok(1..) => {}
                Ok(0) | Err(_) => break,
            }
            let text = String::from_utf8_lossy(&line).trim().to_owned();
            match text.as_str() {
                "quit" => break,
                "isready" if output.is_searching.load(Ordering::Relaxed) => output.say("readyok"),
                _ => {
                    if sender.send(text).is_err() {
                        break;
                    }
                }
            }
        }
        drop(sender);
        thread::sleep(LAST_SEARCH);
        CALLED_OFF.store(true, Ordering::Relaxed);
    });
    lines
}

/// A position: the initial one and the moves since.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct PositionSpec {
    /// The initial position; `None` for the standard one.
    fen: Option<String>,
    moves: Vec<String>,
}

impl PositionSpec {
    /// Parses what follows `position`.
    fn parse(text: &str) -> Result<PositionSpec, String> {
        let (start, moves) = match text.split_once("moves") {
            Some((start, moves)) => (start.trim(), moves),
            None => (text, ""),
        };
        let fen = match start.split_once(' ') {
            _ if start == "startpos" => None,
            Some(("fen", fen)) => Some(fen.trim().to_owned()),
            _ => return Err("expected `position startpos` or `position fen FEN`, perhaps with `moves`".to_owned()),
        };
        Ok(PositionSpec { fen, moves: moves.split_ascii_whitespace().map(str::to_owned).collect() })
    }
}

/// The agent of the current game.
struct SeatedAgent<'a> {
    solo: Solo<'a>,
    seat: usize,
    /// The last position in which the agent moved.
    position: PositionSpec,
}

struct Engine {
    agent: Agent,
    chess: &'static GameType,
    confinement: Confinement,
    output: Output,
    position: PositionSpec,
    seated: Option<SeatedAgent<'static>>,
}

impl Engine {
    /// Answers a line. `lines` are the following lines, for a search without limits.
    fn answer(&mut self, line: &str, lines: &Receiver<String>) {
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        match word {
            "uci" => {
                self.output.say(&format!("id name {} (arena {})", self.agent.name, env!("CARGO_PKG_VERSION")));
                self.output.say("id author the agent's author");
                self.output.say("uciok");
            }
            "isready" => self.output.say("readyok"),
            "ucinewgame" => self.leave(),
            "position" => match PositionSpec::parse(rest.trim()) {
                Ok(position) => self.position = position,
                Err(error) => self.tell(&error),
            },
            "go" => self.search(rest, lines),
            "setoption" => self.tell("there are no options"),
            _ => {}
        }
    }

    fn tell(&self, what: &str) {
        self.output.say(&format!("info string {}", what.replace(char::is_control, " ")));
    }

    /// Ends the agent of the current game.
    fn leave(&mut self) {
        if let Some(seated) = self.seated.take() {
            seated.solo.finish();
        }
    }

    fn search(&mut self, limits: &str, lines: &Receiver<String>) {
        self.output.is_searching.store(true, Ordering::Relaxed);
        let best = self.best_move(limits).unwrap_or_else(|why| {
            self.tell(&why);
            self.leave();
            "0000".to_owned()
        });
        // The answer to a search without limits waits for `stop`.
        let is_open = limits.split_ascii_whitespace().any(|word| matches!(word, "infinite" | "ponder"));
        while is_open && let Ok(line) = lines.recv() {
            match line.as_str() {
                "stop" | "ponderhit" => break,
                // The reader hadn't seen the search yet.
                "isready" => self.output.say("readyok"),
                _ => {}
            }
        }
        self.output.is_searching.store(false, Ordering::Relaxed);
        self.output.say(&format!("bestmove {best}"));
    }

    /// Asks the agent for its move in the current position. An error is a sentence.
    fn best_move(&mut self, limits: &str) -> Result<String, String> {
        let play = self.replay()?;
        let seat = (0..2).find(|seat| play.is_asked(Seat(*seat))).ok_or("the game is over in this position")?;
        let control = time_control(limits, play.game().side(Seat(seat)) == Some("WHITE"));
        if ["depth", "nodes", "mate", "searchmoves"].iter().any(|key| limits.split(' ').any(|word| word == *key)) {
            self.tell("agents decide by time; depth, nodes, mate and searchmoves are ignored");
        }
        let is_same_game = self.seated.as_ref().is_some_and(|seated| {
            let (before, now) = (&seated.position, &self.position);
            seated.seat == seat && before.fen == now.fen && now.moves.starts_with(&before.moves)
        });
        if !is_same_game {
            self.leave();
        }
        if self.seated.is_none() {
            self.seated = Some(self.seat(&play, seat)?);
        }
        let Some(seated) = &mut self.seated else { return Err("the agent has no seat".to_owned()) };
        seated.position = self.position.clone();
        let limits = self.chess.limits;
        seated.solo.set_time(control.unwrap_or(TimeControl::Move(limits.step_ms + limits.bank_ms)));
        let mut members = b"{".to_vec();
        play.write_state(Seat(seat), &mut members);
        members.push(b'}');
        let state: Map<String, Value> = serde_json::from_slice(&members).map_err(|error| error.to_string())?;
        let actions = seated.solo.show(&state, None).map_err(|error| explained(&error))?;
        if let Some(info) = seated.solo.info().and_then(|info| info_line(&info)) {
            self.output.say(&info);
        }
        if let Some(out) = seated.solo.out() {
            return Err(format!("the agent failed: {}: {}", out.verdict, out.detail));
        }
        let actions: Vec<Value> = actions.and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default();
        let uci = actions.iter().find_map(|action| action.get("move")?.as_str()).ok_or("the agent gave no move")?;
        let legal = state.get("legal_moves").and_then(Value::as_array);
        match legal.is_some_and(|legal| legal.iter().any(|legal| legal == uci)) {
            true => Ok(uci.to_owned()),
            false => Err(format!("the agent's move {uci:?} isn't legal")),
        }
    }

    /// Plays the moves of the current position.
    fn replay(&self) -> Result<Match, String> {
        let seed = Seed::from_number(0);
        let agents = agent_ids(&seed, 2);
        let options: Map<String, Value> =
            self.position.fen.iter().map(|fen| ("fen".to_owned(), fen.as_str().into())).collect();
        let game: Box<dyn AnyGame> =
            self.chess.start(&options, Setup { seed, agents: agents.clone() }).map_err(|error| error.to_string())?;
        let mut play = Match::new(game, agents);
        for uci in &self.position.moves {
            let action = json!([{"action": "move", "move": uci}]).to_string();
            let replies = [0, 1].map(|seat| play.is_asked(Seat(seat)).then_some(action.as_str()));
            let mut is_legal = false;
            play.play(|game, events: &mut Events| {
                game.play(&replies, &mut Vec::new(), events);
                is_legal = events.forfeits().is_empty();
            });
            if !is_legal {
                return Err(format!("{uci} isn't a legal move in the position"));
            }
        }
        Ok(play)
    }

    fn seat(&self, play: &Match, seat: usize) -> Result<SeatedAgent<'static>, String> {
        let id: AgentId = play.agents()[seat].clone();
        let limits = self.chess.limits;
        let mut solo = Solo::start(&self.agent, Some(self.chess), id, &self.confinement, limits, &CALLED_OFF)
            .map_err(|error| explained(&error))?;
        solo.introduce(&play.config(limits)).map_err(|error| explained(&error))?;
        Ok(SeatedAgent { solo, seat, position: PositionSpec::default() })
    }
}

fn explained(error: &MatchError) -> String {
    format!("the agent can't be played: {error}")
}

/// Returns the time control in the parameters of `go`, if they limit the time.
fn time_control(limits: &str, is_white: bool) -> Option<TimeControl> {
    let words: Vec<&str> = limits.split_ascii_whitespace().collect();
    let number = |key: &str| {
        let at = words.iter().position(|word| *word == key)?;
        // A clock may be negative, if the program lets a late player continue.
        words.get(at + 1)?.parse::<i64>().ok().map(|ms| u64::try_from(ms).unwrap_or(0).max(LEAST_MS))
    };
    if let Some(ms) = number("movetime") {
        return Some(TimeControl::Move(ms));
    }
    let (time, increment) = if is_white { ("wtime", "winc") } else { ("btime", "binc") };
    let moves = words.iter().position(|word| *word == "movestogo").and_then(|at| words.get(at + 1)?.parse().ok());
    number(time).map(|base_ms| TimeControl::Clock {
        base_ms,
        increment_ms: number(increment).unwrap_or(0),
        moves: moves.unwrap_or(0),
    })
}

/// Returns the line `info` with the score in an agent's facts.
fn info_line(info: &str) -> Option<String> {
    let info: Map<String, Value> = serde_json::from_str(info).ok()?;
    let number = |key: &str| info.get(key).and_then(Value::as_i64);
    let score = match (number("mate"), number("cp")) {
        (Some(mate), _) => format!("mate {mate}"),
        (None, cp) => format!("cp {}", cp?),
    };
    let part = |key: &str| number(key).map(|value| format!(" {key} {value}")).unwrap_or_default();
    Some(format!("info{} score {score}{}{}", part("depth"), part("nodes"), part("time")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_and_limits_are_read() {
        let parse = |text: &str| PositionSpec::parse(text);
        assert_eq!(parse("startpos"), Ok(PositionSpec::default()));
        let moves = vec!["e2e4".to_owned(), "e7e5".to_owned()];
        assert_eq!(parse("startpos moves e2e4  e7e5"), Ok(PositionSpec { fen: None, moves: moves.clone() }));
        let fen = "8/8/8/4k3/8/8/4P3/4K3 w - - 0 1".to_owned();
        assert_eq!(parse(&format!("fen {fen} moves e2e4 e7e5")), Ok(PositionSpec { fen: Some(fen), moves }));
        assert!(parse("middlegame").is_err());
        let clock = |base_ms, increment_ms, moves| Some(TimeControl::Clock { base_ms, increment_ms, moves });
        assert_eq!(time_control("wtime 900 btime 800 winc 10 binc 20", true), clock(900, 10, 0));
        assert_eq!(time_control("wtime 900 btime 800 winc 10 binc 20 movestogo 3", false), clock(800, 20, 3));
        assert_eq!(time_control("wtime -900 btime 1", true), clock(1, 0, 0));
        assert_eq!(time_control("movetime 70", true), Some(TimeControl::Move(70)));
        assert_eq!(time_control("infinite", true), None);
    }

    #[test]
    fn scores_of_agents_are_lines() {
        assert_eq!(info_line(r#"{"depth":3,"cp":-20}"#).unwrap(), "info depth 3 score cp -20");
        assert_eq!(info_line(r#"{"mate":2,"nodes":9}"#).unwrap(), "info score mate 2 nodes 9");
        assert_eq!(info_line(r#"{"depth":3}"#), None);
    }
}
