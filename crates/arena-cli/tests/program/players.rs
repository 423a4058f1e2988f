//! `arena play` for people who write and read lines, for bots, and for language models.

mod bot;
mod built_in;
mod model;
mod one_arena;
mod person;

use std::collections::BTreeSet;
use std::io::Write;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::program::{Run, arena, piped, run};

/// The time limit for any step.
const TIMEOUT: Duration = Duration::from_secs(60);

/// A running `arena play`, which is killed on drop.
struct Playing {
    child: Child,
    input: Option<ChildStdin>,
    lines: mpsc::Receiver<String>,
    said: String,
    stderr: Option<thread::JoinHandle<String>>,
}

impl Playing {
    fn start(mut command: Command) -> Playing {
        command.stdin(Stdio::piped());
        let (mut child, lines, stderr) = piped(command);
        Playing { input: child.stdin.take(), child, lines, said: String::new(), stderr: Some(stderr) }
    }

    fn types(&mut self, line: &str) {
        writeln!(self.input.as_mut().unwrap(), "{line}").unwrap();
    }

    /// Ends the input.
    fn types_no_more(&mut self) {
        self.input = None;
    }

    /// Reads up to a line that contains this text.
    #[track_caller]
    fn hears(&mut self, words: &str) -> String {
        let until = Instant::now() + TIMEOUT;
        loop {
            let Ok(line) = self.lines.recv_timeout(until.saturating_duration_since(Instant::now())) else {
                let _ = self.child.kill();
                panic!("no line contains {words:?}:\n{}\n{}", self.said, self.stderr.take().unwrap().join().unwrap());
            };
            self.said += &line;
            self.said.push('\n');
            if line.contains(words) {
                return line;
            }
        }
    }

    /// Reads up to the rules, which a player sees when it has joined.
    #[track_caller]
    fn has_joined(&mut self) {
        self.hears("How the game works:");
    }

    /// Reads up to the line with the player's set. Earlier lines with the rules mention sets without numbers.
    #[track_caller]
    fn is_dealt(&mut self) -> BTreeSet<u32> {
        loop {
            let set = set(&self.hears("Your private set is: {"));
            if !set.is_empty() {
                return set;
            }
        }
    }

    #[track_caller]
    fn ends(mut self) -> Run {
        let until = Instant::now() + TIMEOUT;
        let status = loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                break status;
            }
            if Instant::now() > until {
                let _ = self.child.kill();
                panic!("the program doesn't end:\n{}\n{}", self.said, self.stderr.take().unwrap().join().unwrap());
            }
            // The standard library has no wait for a child with a timeout, so the test polls.
            thread::sleep(Duration::from_millis(5));
        };
        let stderr = self.stderr.take().unwrap().join().unwrap();
        while let Ok(line) = self.lines.recv() {
            self.said += &line;
            self.said.push('\n');
        }
        Run { code: status.code().unwrap_or(-1), stdout: std::mem::take(&mut self.said), stderr }
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_raw(self.child.id().try_into().unwrap()).unwrap(), signal).unwrap();
    }
}

impl Drop for Playing {
    fn drop(&mut self) {
        // The process may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Starts `arena play` at a server with these arguments.
fn play(url: &str, args: &[&str]) -> Playing {
    Playing::start(arena(&[&["play", "--url", url], args].concat()))
}

/// Creates a session of PSI and returns its invites.
fn psi(url: &str) -> [String; 2] {
    let created = run(&["challenges", "create", "psi", "--url", url]).json();
    [0, 1].map(|seat| created["invites"][seat].as_str().unwrap().to_owned())
}

pub fn numbers(text: &str) -> BTreeSet<u32> {
    text.split(|char: char| !char.is_ascii_digit()).filter_map(|digits| digits.parse().ok()).collect()
}

pub fn list(numbers: &BTreeSet<u32>) -> String {
    numbers.iter().map(u32::to_string).collect::<Vec<_>>().join(", ")
}

/// Returns a player's set from the line that contains it.
fn set(line: &str) -> BTreeSet<u32> {
    numbers(line.split_once("Your private set is: ").unwrap().1.split_once('}').unwrap().0)
}

/// Returns the last line of a run with --json.
#[track_caller]
fn result(run: &Run) -> Value {
    assert_eq!(run.code, 0, "{run:#?}");
    serde_json::from_str(run.stdout.lines().last().unwrap()).unwrap()
}
