//! Chess engines as agents: `uci:PATH?OPTIONS` drives an engine in the sandbox by the Universal Chess Interface.
//!
//! The match keeps the time. An engine gets a part of its limit as the time for a move, and `stop` shortly before the
//! limit. The driver claims draws, because engines can't.

use std::collections::HashMap;
use std::fmt::Write;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use arena_model::{GameType, StartLimits, TimeControl, TimeLimits};
use percent_encoding::{AsciiSet, CONTROLS, percent_decode_str, utf8_percent_encode};
use serde_json::{Map, Value, json};

use super::{AgentText, BuiltInPlayer, PlayerAnswer, PlayerError, Program, Recipe, SeatStart};
use crate::agent::{Command, which};
use crate::thread_body::Notice;
use crate::uci::{EngineLine, EngineOption, GoLimits, SearchInfo, position_line};

/// The folder of chess engines in Debian, which isn't in the `PATH` of all users.
const GAMES: &str = "/usr/games";

/// The prefix of options that are sent to the engine.
const ENGINE_OPTION: &str = "option.";

/// The maximum number of an engine's options that are kept.
const MAX_OPTIONS: usize = 1000;

/// The characters of paths and values that are written as `%` and two digits in a text.
const ENCODED: &AsciiSet = &CONTROLS.add(b'%').add(b'&').add(b'?');

const START: &str = "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1";

#[derive(Debug)]
struct UciRecipe {
    /// The text with the program's absolute path.
    text: String,
    command: Command,
    /// The engine's options with their values. A button has no value.
    options: Vec<(String, Option<String>)>,
    limits: GoLimits,
    time_control: Option<TimeControl>,
    start_limits: StartLimits,
    /// True if each game gets a new process.
    restarts: bool,
}

/// Parses what follows `uci:`, a program with options.
pub(super) fn read_uci(AgentText { whole, rest, search }: AgentText<'_>) -> Result<Arc<dyn Recipe>, String> {
    let (path, query) = rest.split_once('?').unwrap_or((rest, ""));
    let path = decoded(path)?;
    if path.is_empty() {
        return Err(format!("`{whole}` names no engine; give a program, such as uci:stockfish"));
    }
    let (mut args, mut options, mut limits) = (Vec::new(), Vec::new(), GoLimits::default());
    let (mut time_control, mut start_limits, mut restarts) = (None, StartLimits::default(), false);
    for part in query.split('&').filter(|part| !part.is_empty()) {
        let (key, value) = match part.split_once('=') {
            Some((key, value)) => (decoded(key)?, Some(decoded(value)?)),
            None => (decoded(part)?, None),
        };
        let number = |most: u64| {
            let number = value.as_deref().and_then(|value| value.parse::<u64>().ok());
            let number = number.filter(|number| (1..=most).contains(number));
            number.ok_or_else(|| format!("{whole}: `{key}` needs an integer from 1 to {most}"))
        };
        match (key.strip_prefix(ENGINE_OPTION), key.as_str()) {
            (Some(name), _) if is_line(name) && value.as_deref().is_none_or(is_line) && !name.is_empty() => {
                options.push((name.to_owned(), value));
            }
            (Some(_), _) => return Err(format!("{whole}: the name or value of `{key}` is empty or has a line end")),
            (_, "arg") => args.push(value.ok_or_else(|| format!("{whole}: `arg` needs a value"))?.into()),
            (_, "depth") => limits.depth = Some(number(1000)? as u32),
            (_, "nodes") => limits.nodes = Some(number(1 << 53)?),
            (_, "startup-ms") => start_limits.startup_ms = Some(number(StartLimits::MAX_MS)?),
            (_, "ping-ms") => start_limits.ping_ms = Some(number(StartLimits::MAX_MS)?),
            (_, "restart") => {
                restarts = match value.as_deref() {
                    Some("on") => true,
                    Some("off") => false,
                    _ => return Err(format!("{whole}: `restart` is on or off")),
                }
            }
            (_, key @ ("tc" | "st")) => {
                let text = value.as_deref().unwrap_or_default();
                let text = if key == "st" { format!("st={text}") } else { text.to_owned() };
                let control = text.parse::<TimeControl>().map_err(|error| format!("{whole}: `{key}`: {error}"))?;
                if time_control.replace(control).is_some() {
                    return Err(format!("{whole}: only one of tc and st can be given, and once"));
                }
            }
            _ => {
                return Err(format!(
                    "{whole}: there is no option `{key}`; use option.NAME=VALUE for an option of the engine, or arg, \
                     depth, nodes, tc, st, startup-ms, ping-ms or restart"
                ));
            }
        }
    }
    let mut command = find(&path, search)?;
    command.args.append(&mut args);
    let program = command.own.first().unwrap_or(&command.program).to_str();
    let program = program.ok_or_else(|| format!("{whole}: the path of an engine must be UTF-8"))?;
    let mut text = format!("uci:{}", utf8_percent_encode(program, ENCODED));
    if !query.is_empty() {
        let _ = write!(text, "?{query}");
    }
    Ok(Arc::new(UciRecipe { text, command, options, limits, time_control, start_limits, restarts }))
}

/// Finds an engine by its path, or by its name in the folders of `search`.
fn find(path: &str, search: &str) -> Result<Command, String> {
    if path.contains('/') || Path::new(path).exists() {
        return Command::at(path, search).map_err(|error| error.to_string());
    }
    let program = which(path, &format!("{search}:{GAMES}"))
        .ok_or_else(|| format!("there is no engine `{path}` in PATH or {GAMES}; install it, or give its path"))?;
    // A program of the system is no secret of the agent.
    let folder = program.parent().unwrap_or(Path::new("/")).to_owned();
    Ok(Command { program, args: Vec::new(), folder, own: Vec::new() })
}

/// Decodes `%` with two hexadecimal digits.
fn decoded(text: &str) -> Result<String, String> {
    let decoded = percent_decode_str(text).decode_utf8();
    decoded.map(Into::into).map_err(|_| format!("`{text}` isn't UTF-8 after decoding"))
}

fn is_line(text: &str) -> bool {
    !text.contains(char::is_control)
}

impl Recipe for UciRecipe {
    fn text(&self) -> &str {
        &self.text
    }

    fn check(&self, game: &GameType) -> Result<(), String> {
        match game.name {
            "chess" => Ok(()),
            name => Err(format!("{} plays chess, but the game is {name}", self.text)),
        }
    }

    fn command(&self) -> Option<&Command> {
        Some(&self.command)
    }

    fn time_control(&self) -> Option<TimeControl> {
        self.time_control
    }

    fn start_limits(&self) -> StartLimits {
        self.start_limits
    }

    fn stays(&self) -> bool {
        !self.restarts
    }

    fn greet(&self, program: &mut Program, awaited: &Notice) -> Result<Option<String>, PlayerError> {
        match program.name {
            Some(_) => program.discard()?,
            None => program.name = Some(self.start(program, awaited)?),
        }
        awaited.begin("the engine hasn't sent `readyok`");
        program.send("ucinewgame\nisready\n")?;
        while receive(program)? != EngineLine::ReadyOk {}
        awaited.end();
        Ok(program.name.clone())
    }

    fn player(&self, start: SeatStart<'_>) -> Result<Box<dyn BuiltInPlayer>, String> {
        let SeatStart { id, config, limits, program, .. } = start;
        let program = program.ok_or("has no running engine")?;
        let fen = config.get("fen").and_then(Value::as_str).filter(|fen| *fen != START).map(str::to_owned);
        let game = GameHistory { fen, ..GameHistory::default() };
        let (go, stays) = (self.limits.clone(), self.stays());
        Ok(Box::new(UciPlayer { program, stays, id: id.to_owned(), go, limits, game }))
    }
}

impl UciRecipe {
    /// Performs the handshake with an engine that has just started, and sets its options. Returns its name.
    fn start(&self, program: &mut Program, awaited: &Notice) -> Result<String, PlayerError> {
        awaited.begin("the engine hasn't sent `uciok`");
        program.send("uci\n")?;
        let (mut name, mut offered) = (None, Vec::new());
        loop {
            match receive(program)? {
                EngineLine::UciOk => break,
                EngineLine::Name(given) => name = Some(given),
                EngineLine::Option(option) if offered.len() < MAX_OPTIONS => offered.push(option),
                _ => {}
            }
        }
        for (name, value) in &self.options {
            program.send(&set_option(&offered, name, value.as_deref())?)?;
        }
        Ok(name.unwrap_or_else(|| self.text.clone()))
    }
}

/// Asks an engine to end. It is killed if it ignores this.
pub(super) fn quit(program: &mut Program) {
    let _ = program.send("quit\n");
}

/// Returns the line that sets an option, if the engine offers it and accepts the value.
fn set_option(offered: &[EngineOption], name: &str, value: Option<&str>) -> Result<String, String> {
    let Some(option) = offered.iter().find(|option| option.name.eq_ignore_ascii_case(name)) else {
        let names: Vec<&str> = offered.iter().map(|option| option.name.as_str()).take(40).collect();
        return Err(match names.as_slice() {
            [] => format!("has no option `{name}`, as it has no options"),
            names => format!("has no option `{name}`; it has {}", names.join(", ")),
        });
    };
    option.check(value).map_err(|error| format!("cannot be started: its option {} {error}", option.name))?;
    Ok(match value {
        Some(value) => format!("setoption name {} value {value}\n", option.name),
        None => format!("setoption name {}\n", option.name),
    })
}

fn receive(program: &mut Program) -> Result<EngineLine, PlayerError> {
    let line = program.receive(None)?;
    Ok(line.map_or(EngineLine::Other, |line| EngineLine::parse(&line)))
}

/// The game as the engine must know it: the moves since a position.
#[derive(Debug, Default)]
struct GameHistory {
    /// The position before the moves; `None` for the standard one.
    fen: Option<String>,
    /// The number of moves before `fen`.
    before: u64,
    moves: Vec<String>,
    /// The occurrences of the positions in which the engine is to move.
    seen: HashMap<String, u32>,
}

impl GameHistory {
    /// Takes over a state. Returns true if a draw can be claimed.
    fn hear(&mut self, state: &Map<String, Value>) -> Result<bool, String> {
        let text = |key: &str| state.get(key).and_then(Value::as_str);
        let fen = text("fen").ok_or("received a state without `fen`")?;
        self.moves.extend(text("last_move").map(str::to_owned));
        let played = state.get("epoch").and_then(Value::as_u64).unwrap_or(1).saturating_sub(1);
        if self.before + self.moves.len() as u64 != played {
            // The earlier moves are unknown, as in a fork.
            (self.fen, self.before) = (Some(fen.to_owned()), played);
            self.moves.clear();
        }
        let occurrences = self.seen.entry(text("epd").unwrap_or(fen).to_owned()).or_default();
        *occurrences += 1;
        let quiet = fen.split(' ').nth(4).and_then(|plies| plies.parse::<u32>().ok()).unwrap_or(0);
        Ok(*occurrences >= 3 || quiet >= 100)
    }
}

struct UciPlayer {
    program: Program,
    stays: bool,
    id: String,
    /// The limits of each search from the agent's text.
    go: GoLimits,
    limits: TimeLimits,
    game: GameHistory,
}

impl BuiltInPlayer for UciPlayer {
    fn actions(&mut self, state: &Map<String, Value>) -> Result<PlayerAnswer, PlayerError> {
        let begun = Instant::now();
        if self.game.hear(state)? {
            return Ok(vec![json!({"action": "claim_draw"})].into());
        }
        self.program.discard()?;
        let bank_ms = state.get("remaining_overage_ms").and_then(Value::as_u64).unwrap_or(0);
        let limit = Duration::from_millis(self.limits.step_ms.saturating_add(bank_ms));
        let go = self.go_line(state);
        let position = position_line(self.game.fen.as_deref(), &self.game.moves);
        // An engine may write more than it was asked for, such as a second `bestmove`, while its opponent thinks. What it
        // wrote before `readyok` doesn't answer `go`.
        self.program.send(&(position + "isready\n"))?;
        while receive(&mut self.program)? != EngineLine::ReadyOk {}
        self.program.send(&go)?;
        let mut info = SearchInfo::default();
        let mut until = Some(begun + limit.saturating_sub(margin(limit) / 2));
        loop {
            let Some(line) = self.program.receive(until)? else {
                // After its limit, the match ends an engine that ignores this.
                self.program.send("stop\n")?;
                until = None;
                continue;
            };
            match EngineLine::parse(&line) {
                EngineLine::BestMove(uci) => {
                    self.game.moves.push(uci.clone());
                    let info = (!info.is_empty()).then(|| json!(info));
                    return Ok(PlayerAnswer { actions: vec![json!({"action": "move", "move": uci})], info });
                }
                EngineLine::Info(later) => info.update(*later),
                _ => {}
            }
        }
    }

    fn stop(mut self: Box<Self>) -> Option<Program> {
        if self.stays {
            return Some(self.program);
        }
        quit(&mut self.program);
        None
    }
}

impl UciPlayer {
    fn go_line(&self, state: &Map<String, Value>) -> String {
        let mut go = self.go.clone();
        self.add_clocks(state, &mut go);
        if go == GoLimits::default() {
            let step = Duration::from_millis(self.limits.step_ms);
            go.move_ms = u64::try_from(step.saturating_sub(margin(step)).as_millis()).ok().map(|ms| ms.max(1));
        }
        go.line()
    }
}

impl UciPlayer {
    /// Adds the clocks of both players, if the agent has a clock. An opponent without a clock gets the agent's own.
    fn add_clocks(&self, state: &Map<String, Value>, go: &mut GoLimits) {
        let Some(clocks) = state.get("clocks").and_then(Value::as_object) else { return };
        let read = |clock: &Value| {
            let number = |key: &str| clock.get(key).and_then(Value::as_u64);
            Some((number("remaining_ms")?, number("increment_ms").unwrap_or(0), number("moves_to_go")))
        };
        let Some((own, increment, moves)) = clocks.get(&self.id).and_then(read) else { return };
        let other = clocks.iter().find(|(id, _)| **id != self.id).and_then(|(_, clock)| read(clock));
        let (other, other_increment, _) = other.unwrap_or((own, increment, None));
        let is_white = state.get("color").and_then(Value::as_str) == Some("WHITE");
        let in_order = |own: u64, other: u64| if is_white { [own, other] } else { [other, own] };
        go.clocks_ms = Some(in_order(own, other));
        go.increments_ms = in_order(increment, other_increment);
        go.moves_to_go = moves.and_then(|moves| moves.try_into().ok());
    }
}

/// Returns the part of a limit that is left for the way of the answer.
fn margin(limit: Duration) -> Duration {
    (limit / 10).min(Duration::from_millis(50))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn read(text: &str, search: &str) -> Result<Arc<dyn Recipe>, String> {
        read_uci(AgentText { whole: text, rest: text.strip_prefix("uci:").unwrap(), search })
    }

    #[test]
    fn the_text_of_an_engine_has_its_absolute_path_and_can_be_parsed_again() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        fs::create_dir(root.join("a?b")).unwrap();
        let engine = root.join("a?b/engine");
        fs::write(&engine, "").unwrap();
        fs::set_permissions(&engine, fs::Permissions::from_mode(0o755)).unwrap();
        let root = root.to_str().unwrap();
        let text = format!("uci:{root}/a%3Fb/../a%3Fb/engine?option.Hash=64&arg=-x&st=0.5");
        let recipe = read(&text, "").unwrap();
        assert_eq!(recipe.text(), format!("uci:{root}/a%3Fb/engine?option.Hash=64&arg=-x&st=0.5"));
        assert_eq!(read(recipe.text(), "").unwrap().text(), recipe.text());
        let command = recipe.command().unwrap();
        assert_eq!((&command.program, &command.args[..]), (&engine, &["-x".into()][..]));
        assert_eq!(command.own, std::slice::from_ref(&engine));
        assert_eq!(recipe.time_control(), Some(TimeControl::Move(500)));
        // A program of the system is found by its name, and isn't hidden from opponents.
        let found = read("uci:engine?depth=3", &format!("{root}/a?b")).unwrap();
        assert_eq!(found.text(), format!("uci:{root}/a%3Fb/engine?depth=3"));
        assert_eq!(found.command().unwrap().own, Vec::<std::path::PathBuf>::new());
        assert!(read("uci:", "").unwrap_err().contains("names no engine"));
        assert!(read("uci:engine?depth=0", "").unwrap_err().contains("`depth` needs an integer from 1 to 1000"));
    }

    #[test]
    fn the_moves_of_a_game_are_known_from_its_states() {
        let state = |epoch: u64, last: &str, epd: &str, quiet: u32| -> Map<String, Value> {
            let last = if last.is_empty() { Value::Null } else { last.into() };
            let fen = format!("{epd} {quiet} 1");
            let Value::Object(state) = json!({"epoch": epoch, "last_move": last, "epd": epd, "fen": fen}) else {
                unreachable!()
            };
            state
        };
        let mut game = GameHistory::default();
        assert_eq!(game.hear(&state(1, "", "a w - -", 0)), Ok(false));
        game.moves.push("g1f3".to_owned());
        assert_eq!(game.hear(&state(3, "g8f6", "b w - -", 2)), Ok(false));
        assert_eq!((game.fen.as_deref(), game.moves.join(" ").as_str()), (None, "g1f3 g8f6"));
        // The third time, and after fifty moves of each side, a draw can be claimed.
        for (epoch, claimable) in [(5, false), (7, true)] {
            game.moves.push("x".to_owned());
            assert_eq!(game.hear(&state(epoch, "y", "b w - -", 4)), Ok(claimable), "{epoch}");
        }
        game.moves.push("x".to_owned());
        assert_eq!(game.hear(&state(9, "y", "c w - -", 100)), Ok(true));
        // In a fork, the earlier moves are unknown.
        let mut game = GameHistory::default();
        assert_eq!(game.hear(&state(21, "e7e5", "d w - -", 0)), Ok(false));
        assert_eq!((game.fen.as_deref(), game.moves.len()), (Some("d w - - 0 1"), 0));
        game.moves.push("d2d4".to_owned());
        assert_eq!(game.hear(&state(23, "e5d4", "e w - -", 0)), Ok(false));
        assert_eq!((game.fen.as_deref(), game.moves.join(" ").as_str()), (Some("d w - - 0 1"), "d2d4 e5d4"));
    }
}
