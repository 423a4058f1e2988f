//! The live view on a pseudo-terminal, with a small terminal emulator.

use std::fs::{File, OpenOptions};
use std::io::Read;
use std::process::{Child, Command};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use expect_test::{expect, expect_file};
use rustix::process::{Pid, Signal, kill_process};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};

use crate::program::{arena, folder, run};
use crate::replay::{example, scripted};

/// A terminal emulator with the features that the view uses.
#[derive(Default)]
struct Terminal {
    lines: Vec<Vec<char>>,
    row: usize,
    column: usize,
    /// The number of overwritten lines.
    redrawn: usize,
    /// The last value of each terminal mode, by the mode's number.
    modes: std::collections::BTreeMap<String, bool>,
    has_colors: bool,
    widest: usize,
}

impl Terminal {
    fn hear(&mut self, text: &str) {
        let mut chars = text.chars();
        while let Some(char) = chars.next() {
            match char {
                '\r' => self.column = 0,
                '\n' => self.row += 1,
                '\x1b' => {
                    assert_eq!(chars.next(), Some('['));
                    let mut number = String::new();
                    let end = loop {
                        match chars.next().unwrap() {
                            end if end.is_ascii_alphabetic() => break end,
                            char => number.push(char),
                        }
                    };
                    self.obey(&number, end);
                }
                char => {
                    let line = self.line();
                    let column = self.column;
                    let line = &mut self.lines[line];
                    line.resize(line.len().max(column + 1), ' ');
                    line[column] = char;
                    self.column += 1;
                    self.widest = self.widest.max(self.column);
                }
            }
        }
    }

    fn line(&mut self) -> usize {
        let most = self.lines.len().max(self.row + 1);
        self.lines.resize_with(most, Vec::new);
        self.row
    }

    fn obey(&mut self, number: &str, end: char) {
        match end {
            'A' => {
                self.row -= number.parse::<usize>().unwrap();
                self.redrawn += 1;
            }
            'K' => {
                let (line, column) = (self.line(), self.column);
                self.lines[line].truncate(column);
            }
            'J' => self.lines.truncate(self.row),
            'h' | 'l' => {
                self.modes.insert(number.to_owned(), end == 'h');
            }
            'm' => self.has_colors = true,
            other => panic!("ESC[{number}{other}"),
        }
    }

    fn text(&self) -> String {
        self.lines.iter().map(|line| line.iter().collect::<String>().trim_end().to_owned() + "\n").collect()
    }

    #[track_caller]
    fn is_restored(&self) {
        let modes: Vec<(&str, bool)> = self.modes.iter().map(|(mode, is_set)| (mode.as_str(), *is_set)).collect();
        assert_eq!(
            modes,
            [("?25", true), ("?7", true)],
            "the cursor is shown, lines wrap, and there is no other screen"
        );
        assert_eq!(self.column, 0, "{}", self.text());
    }
}

/// A program on its own pseudo-terminal.
struct OnTerminal {
    child: Child,
    /// Receives a message after the first drawing.
    drawn: mpsc::Receiver<()>,
    reader: thread::JoinHandle<Terminal>,
}

fn start(mut command: Command, columns: u16, rows: u16) -> OnTerminal {
    let ours = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&ours).unwrap();
    unlockpt(&ours).unwrap();
    tcsetwinsize(&ours, Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 }).unwrap();
    let name = ptsname(&ours, Vec::new()).unwrap().into_string().unwrap();
    let theirs = || OpenOptions::new().read(true).write(true).open(&name).unwrap();
    let child = command.env("TERM", "xterm").stdin(theirs()).stdout(theirs()).stderr(theirs()).spawn().unwrap();
    // The command has a handle of the terminal, which would keep the terminal open.
    drop(command);
    let (draw, drawn) = mpsc::channel();
    let reader = thread::spawn(move || {
        let (mut file, mut bytes, mut buffer) = (File::from(ours), Vec::new(), [0; 4096]);
        // The loop ends when the program has closed the terminal.
        while let Ok(read @ 1..) = file.read(&mut buffer) {
            bytes.extend_from_slice(&buffer[..read]);
            if bytes.windows(6).any(|word| word == b"epoch ") {
                // The receiver may be gone, because most tests don't wait for the first drawing.
                let _ = draw.send(());
            }
        }
        let mut terminal = Terminal::default();
        terminal.hear(&String::from_utf8(bytes).unwrap());
        terminal
    });
    OnTerminal { child, drawn, reader }
}

impl OnTerminal {
    #[track_caller]
    fn end(mut self, code: i32) -> Terminal {
        let status = self.child.wait().unwrap();
        let terminal = self.reader.join().unwrap();
        assert_eq!(status.code(), Some(code), "{}", terminal.text());
        terminal
    }
}

/// Returns a command that plays a match of two snakes for at most 12 epochs.
fn snakes(folder: &std::path::Path, more: &[&str]) -> Command {
    let agents = ["LEFT", "RIGHT"].map(|way| {
        let turn = format!(r#"[{{"action": "move", "move": "{way}"}}]"#);
        scripted(folder, way, &[&turn, r#"[{"action": "move", "move": "UP"}]"#])
    });
    let mut args = vec!["match", "run", "snake", "--seed", "7", "--set", "n_epochs=12", "--step-ms", "20000"];
    args.extend(agents.iter().flat_map(|agent| ["--agent", agent]));
    args.extend(more);
    arena(&args)
}

#[test]
fn a_match_is_drawn_in_place_and_the_terminal_is_restored() {
    let folder = folder();
    let terminal = start(snakes(folder.path(), &["--pace", "200"]), 100, 30).end(0);
    terminal.is_restored();
    assert!(terminal.redrawn >= 3, "{}", terminal.redrawn);
    assert!(terminal.has_colors);
    // The used times of the agents are removed.
    let text = terminal.text();
    let lines: Vec<&str> = text.lines().take(15).map(|line| line.split("  used ").next().unwrap()).collect();
    expect_file!["live/a_match_is_drawn_in_place_and_the_terminal_is_restored.txt"].assert_eq(&lines.join("\n"));
    assert!(text.contains("GAME_ENDED"), "{text}");
}

#[test]
fn a_small_terminal_without_colors_shows_a_plain_truncated_view() {
    let folder = folder();
    let mut command = snakes(folder.path(), &["--pace", "20"]);
    command.env("NO_COLOR", "1");
    let terminal = start(command, 20, 6).end(0);
    assert!(!terminal.has_colors);
    let text = terminal.text();
    expect![[r#"
        snake, epoch 9
        A LEFT   -1  dead  u
        B RIGHT  -1  dead  u
        ╭───────────────────
        │ · · · · · · · · ·"#]]
    .assert_eq(&text.lines().take(5).collect::<Vec<_>>().join("\n"));
}

#[test]
fn a_canceled_match_leaves_its_last_picture_and_one_sentence() {
    let folder = folder();
    let running = start(snakes(folder.path(), &["--pace", "500"]), 100, 30);
    running.drawn.recv_timeout(Duration::from_secs(60)).unwrap();
    let pid = Pid::from_raw(running.child.id().try_into().unwrap()).unwrap();
    let asked = Instant::now();
    kill_process(pid, Signal::INT).unwrap();
    let terminal = running.end(130);
    assert!(asked.elapsed() < Duration::from_secs(60));
    terminal.is_restored();
    let text = terminal.text();
    let last: Vec<&str> = text.lines().rev().take(3).collect();
    expect![[r#"
        [
            "error: the match was called off",
            "note: stopping; press Ctrl-C again to stop at once",
            "╰─────────────────────╯",
        ]
    "#]]
    .assert_eq(&format!("{last:#?}\n"));
}

#[test]
fn only_single_matches_on_a_terminal_are_drawn() {
    let folder = folder();
    let several = start(snakes(folder.path(), &["--games", "2"]), 100, 30).end(0);
    assert_eq!((several.redrawn, several.modes.len()), (0, 0), "{}", several.text());
    let agent = example("snake");
    let paced = ["match", "run", "snake", "--agent", &agent, "--agent", &agent, "--pace", "1"];
    let run = run(&paced);
    assert_eq!(run.code, 2);
    expect![[r#"
        error: --pace needs a terminal, a single game and no --json
    "#]]
    .assert_eq(&run.stderr);
}

#[test]
fn a_replay_is_played_on_a_terminal() {
    let folder = folder();
    let replay = folder.path().join("game.jsonl").to_str().unwrap().to_owned();
    let recorded = snakes(folder.path(), &["--replay", &replay]).output().unwrap();
    assert!(recorded.status.success());
    let terminal = start(arena(&["replay", "show", &replay, "--play", "--pace", "50"]), 100, 30).end(0);
    terminal.is_restored();
    assert!(terminal.redrawn >= 5, "{}", terminal.redrawn);
    expect_file!["live/a_replay_is_played_on_a_terminal.txt"].assert_eq(&terminal.text());
}
