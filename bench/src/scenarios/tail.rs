//! Reads of the last messages of a long channel, compared with those of a short channel. The channels take turns, so
//! that the state of the machine is the same. Many readers measure the cost of a read, a single reader its latency.

use std::time::{Duration, Instant};

use anyhow::ensure;
use memchr::memmem;
use serde_json::json;

use crate::arguments::Arguments;
use crate::client_pool;
use crate::connection::Connection;
use crate::latency::{Latencies, LatencySummary, median};
use crate::player_pool::PlayerPool;
use crate::psi::{self, Invited, ServerKind, chat_body};
use crate::report::{Goal, Report};
use crate::server::{ArenaFolder, Server};

const NAME: &str = "tail";

/// The number of messages in the short channel.
const SHORT: u64 = 100;

const READ: u64 = 10;

/// The number of connections that fill a channel.
const FILLERS: usize = 64;

/// The number of concurrent readers. A single reader mostly measures the wakeup of an idle core, which takes about 100
/// µs on a virtual machine and would hide a doubled cost of a read.
const READERS: usize = 16;

/// The number of turns for each channel. On a shared machine, turns of the same channel differ by up to a fifth, but
/// the medians of 30 turns only by a few per cent.
const TURNS: usize = 30;

/// Options of this scenario.
#[derive(Debug, clap::Args)]
#[group(skip)]
#[command(next_help_heading = "tail")]
pub struct TailOptions {
    /// Number of messages in the long channel [default: 100000; 20000 if quick]
    #[arg(long, value_name = "N")]
    messages: Option<u64>,
    /// Reads of each channel in a turn [default: 10000; 2000 if quick]
    #[arg(long, value_name = "N")]
    reads: Option<u64>,
}

/// Runs the scenario.
///
/// # Errors
/// If the server doesn't start, refuses, or doesn't answer with the last messages.
pub fn run(arguments: &Arguments, report: &mut Report) -> anyhow::Result<()> {
    let long = arguments.size(arguments.tail.messages, 100_000, 20_000).max(SHORT);
    let reads = arguments.size(arguments.tail.reads, 10_000, 2_000);
    let folder = ArenaFolder::new(&arguments.arena(), &arguments.work(), None)?;
    let arena = folder.start()?;
    let fillers = arguments.player_pool(FILLERS);
    let short_channel = channel_of(fillers, &arena, SHORT)?;
    let filling = Instant::now();
    let long_channel = channel_of(fillers, &arena, long)?;
    let filled = long as f64 / filling.elapsed().as_secs_f64();
    report
        .row(NAME, format!("chat messages/s in one session, {FILLERS} connections"), filled, "")
        .goal(Goal::AtLeast(10_000.0));

    let channels = [&short_channel, &long_channel];
    let alone = read_alone(&arena, channels, reads)?;
    let readers = arguments.player_pool(READERS);
    let (mut ratios, mut read_us, mut cpu_us) = (Vec::new(), [Vec::new(), Vec::new()], [0.0; 2]);
    for turn in 0..TURNS {
        let mut took = [0.0; 2];
        for which in if turn % 2 == 0 { [0, 1] } else { [1, 0] } {
            let channel = channels[which].clone();
            let spent =
                readers.repeat(&arena, reads, async move |connection, _| channel.read(connection).await.map(drop))?;
            took[which] = spent.seconds * 1e6 / reads as f64;
            read_us[which].push(took[which]);
            // The kernel counts CPU time in steps of 10 ms, so only the sum over all turns is exact enough.
            cpu_us[which] += spent.server_cpu_us / (TURNS as u64 * reads) as f64;
        }
        ratios.push(took[1] / took[0]);
    }
    arena.terminate()?;

    let [short_read, long_read] = read_us.map(median);
    let [short_cpu, long_cpu] = cpu_us;
    report
        .row(NAME, format!("time per read flat out, {long} messages / {SHORT}"), median(ratios.iter().copied()), "")
        .goal(Goal::AtMost(1.10))
        .note(format!("{long_read:.1} and {short_read:.1} µs, {READERS} connections"));
    report
        .row(NAME, "server CPU per read, long channel / short one", long_cpu / short_cpu, "")
        .note(format!("{long_cpu:.1} and {short_cpu:.1} µs"));
    let [short_alone, long_alone] = alone;
    report
        .row(NAME, "median latency of one reader, long / short", long_alone.p50_us / short_alone.p50_us, "")
        .goal(Goal::AtMost(1.10))
        .note(format!("{:.1} and {:.1} µs", long_alone.p50_us, short_alone.p50_us));
    report.p99(NAME, &format!("one reader, last {READ} of {SHORT} messages"), short_alone);
    report.p99(NAME, &format!("one reader, last {READ} of {long} messages"), long_alone);
    let detail = json!({ "messages": long, "short": short_alone, "long": long_alone, "flat_out_ratios": ratios });
    report.detail(NAME, "reads", detail);
    Ok(())
}

/// Measures a single reader of both channels.
fn read_alone(arena: &Server, channels: [&Channel; 2], reads: u64) -> anyhow::Result<[LatencySummary; 2]> {
    client_pool::alone(async {
        let mut connection = Connection::open(arena.address()).await?;
        let mut latencies = [Latencies::default(), Latencies::default()];
        for number in 0..reads + 100 {
            // The second channel of a turn has warmer caches, so the order alternates.
            let order = if number % 2 == 0 { [0, 1] } else { [1, 0] };
            for which in order {
                let latency = channels[which].read(&mut connection).await?;
                // The first hundred reads are a warm-up.
                if number >= 100 {
                    latencies[which].record(latency);
                }
            }
        }
        Ok(latencies.map(|latencies| latencies.summary()))
    })
}

/// A chat channel with a known number of messages.
#[derive(Clone)]
struct Channel {
    target: String,
    last: u64,
}

/// Creates a session of two players with this number of messages.
fn channel_of(fillers: PlayerPool, arena: &Server, messages: u64) -> anyhow::Result<Channel> {
    let Invited { id, invites } = psi::begin_alone(arena.address(), ServerKind::Arena)?;
    let target = format!("/api/v1/chat/sync?channel={id}&index={}&from={}", messages + 1 - READ, invites[0]);
    fillers.repeat(arena, messages, async move |connection, number| {
        let content = format!("message {number:08} of a long talk about sets, in which neither says a number aloud");
        let from = &invites[usize::from(number % 2 == 1)];
        connection.post("/api/v1/chat/send", chat_body(&id, &content, from)).await?.ok("chat").map(drop)
    })?;
    Ok(Channel { target, last: messages })
}

impl Channel {
    /// Reads the last messages, checks them, and returns the latency.
    async fn read(&self, connection: &mut Connection) -> anyhow::Result<Duration> {
        let sent = Instant::now();
        let answer = connection.get(&self.target).await?;
        let latency = sent.elapsed();
        let body = answer.ok("chat sync")?;
        let read = memmem::find_iter(&body, b"\"index\":").count() as u64;
        ensure!(read == READ, "reading the last {READ} messages gave {read}");
        let last = format!("\"index\":{}", self.last);
        ensure!(memmem::find(&body, last.as_bytes()).is_some(), "message {} isn't among the last", self.last);
        Ok(latency)
    }
}
