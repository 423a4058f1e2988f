//! Chess between two fast bots: in a session of a real server, where each bot runs under its own `arena play`, in turn
//! with a match between the same bots. The goal is for the additional time of a ply in a session.

use std::collections::BTreeMap;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use arena_wire::Messages;
use serde_json::{Value, json};

use super::matches;
use crate::arguments::Arguments;
use crate::client_pool::alone;
use crate::connection::Connection;
use crate::latency::median;
use crate::psi::{self, ServerKind};
use crate::quick_agent::QUICK_AGENT;
use crate::report::{Goal, Report};
use crate::server::{ArenaFolder, Server};

const NAME: &str = "plies";

/// The number of plies at the start of a game that aren't counted, because they open connections and fill caches.
const WARM_UP: u64 = 8;

/// The number of plies of each measurement in matches. Matches are much faster than sessions.
const MATCH_PLIES: u64 = 2_000;

/// The time limit for a game in a session.
const LIMIT: Duration = Duration::from_secs(120);

/// Options of this scenario.
#[derive(Debug, clap::Args)]
#[group(skip)]
#[command(next_help_heading = "plies")]
pub struct PliesOptions {
    /// Number of chess games in sessions, alternating with matches [default: 20; 3 if quick]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    plies_games: Option<u64>,
}

/// Runs the scenario.
///
/// # Errors
/// If the server doesn't start, or a game isn't played to its end.
pub fn run(arguments: &Arguments, report: &mut Report) -> anyhow::Result<()> {
    let games = arguments.size(arguments.plies.plies_games, 20, 3);
    let chess = arena_games::game("chess").context("unknown game chess")?;
    let folder = ArenaFolder::new(&arguments.arena(), &arguments.work(), None)?;
    let server = folder.start()?;
    let (mut sessions, mut in_matches) = (Vec::new(), Vec::new());
    for number in 1..=games {
        eprintln!("{NAME}: game {number} of {games}");
        in_matches.push(1e3 / matches::rounds(chess, MATCH_PLIES, false)?.rounds_per_s);
        sessions.push(session(arguments, &server)?);
    }
    server.terminate()?;
    let ply = |game: &TimedGame| game.ms_per_ply;
    let (session, game) = (median(sessions.iter().map(ply)), median(in_matches.iter().copied()));
    let slowest = sessions.iter().map(ply).fold(0.0, f64::max);
    let plies: u64 = sessions.iter().map(|game| game.plies).sum();
    report
        .row(NAME, "a ply in a session, median of games", session, "ms")
        .note(format!("slowest game {slowest:.2} ms a ply; {plies} plies in {games} games"));
    report.row(NAME, "a ply in a match, median of games", game, "ms");
    report
        .row(NAME, "what a session adds to a ply", session - game, "ms")
        .goal(Goal::AtMost(2.0))
        .note("two processes of `arena play`, their bots and the server share the cores");
    report.detail(NAME, "games", json!({"sessions": sessions, "matches_ms_per_ply": in_matches}));
    Ok(())
}

/// A game in a session.
#[derive(Debug, serde::Serialize)]
struct TimedGame {
    plies: u64,
    ms_per_ply: f64,
}

/// Plays one game in a session, and computes its pace from the timestamps in the operator's channel. These are from one
/// clock, and reading them after the game doesn't slow the game.
fn session(arguments: &Arguments, server: &Server) -> anyhow::Result<TimedGame> {
    let address = server.address();
    let opened =
        alone(async move { psi::create_of("chess", &mut Connection::open(address).await?, ServerKind::Arena).await })?;
    let program = std::env::current_exe().context("could not find this binary's own path")?;
    let mut players = Vec::new();
    for invite in &opened.invites {
        let mut command = Command::new(arguments.arena());
        command.args(["--url", &format!("http://{address}"), "play", "--json", invite, "--"]);
        command.arg(&program).args([QUICK_AGENT, "chess"]);
        // The output on stderr fits into the pipe, so it can be read after the end.
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        players.push(PlayerProcess(command.spawn().context("`arena play` didn't start")?));
    }
    let until = Instant::now() + LIMIT;
    for player in &mut players {
        player.wait(until)?;
    }
    let id = opened.id;
    let messages = alone(async move {
        let mut connection = Connection::open(address).await?;
        connection.get(&format!("/api/arena/sync?channel={id}")).await?.ok("sync")
    })?;
    pace(&messages)
}

/// Returns the time per ply of a game, from its channel.
fn pace(messages: &[u8]) -> anyhow::Result<TimedGame> {
    let Messages { messages, .. } =
        serde_json::from_slice(messages).context("the channel is not a list of messages")?;
    let mut begun = BTreeMap::new();
    for message in messages.iter().filter(|message| message.from == "operator") {
        let Ok(said) = serde_json::from_str::<Value>(&message.content) else { continue };
        ensure!(said["disqualified"].is_null(), "a bot was disqualified: {}", message.content);
        if let Some(epoch) = said["world_state"]["epoch"].as_u64() {
            begun.entry(epoch).or_insert(message.timestamp.0);
        }
    }
    ensure!(messages.iter().any(|message| message.content.starts_with("Game ended.")), "a game didn't end");
    let first = begun.get(&WARM_UP).context("a game ended during the warm-up")?;
    let (last, end) = begun.last_key_value().context("a game has no states")?;
    ensure!(*last >= 2 * WARM_UP, "a game of {last} plies is too short for a measurement");
    Ok(TimedGame { plies: *last, ms_per_ply: (end - first) as f64 / (last - WARM_UP) as f64 })
}

/// A process of `arena play`, which is killed on drop.
struct PlayerProcess(Child);

impl PlayerProcess {
    fn wait(&mut self, until: Instant) -> anyhow::Result<()> {
        let status = loop {
            match self.0.try_wait().context("could not wait for `arena play`")? {
                Some(status) => break status,
                None => ensure!(Instant::now() < until, "a game took longer than {} s", LIMIT.as_secs()),
            }
            std::thread::sleep(Duration::from_millis(20));
        };
        let mut said = String::new();
        if let Some(stderr) = &mut self.0.stderr {
            std::io::Read::read_to_string(stderr, &mut said).context("could not read the output of `arena play`")?;
        }
        ensure!(status.success(), "`arena play` ended with {status}: {}", said.trim());
        Ok(())
    }
}

impl Drop for PlayerProcess {
    fn drop(&mut self) {
        // After `wait` the process has ended, and these calls do nothing.
        self.0.kill().ok();
        self.0.wait().ok();
    }
}
