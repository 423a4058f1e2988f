//! The last messages of a long channel against those of a short one: the same request in turn, so that both see the same
//! machine.

use std::time::{Duration, Instant};

use anyhow::ensure;
use memchr::memmem;
use serde_json::json;

use crate::arguments::Arguments;
use crate::connection::Connection;
use crate::crew;
use crate::crowd::{Crowd, Mark};
use crate::latency::Latencies;
use crate::psi::{self, Invited, Opposite, chat_body};
use crate::report::{Goal, Report};
use crate::server::{ArenaFolder, Server};

const NAME: &str = "tail";

/// Messages of the short channel.
const SHORT: u64 = 100;

/// Messages that are read.
const READ: u64 = 10;

/// Connections that fill a channel.
const FILLERS: usize = 64;

/// Turns that each channel takes when CPU time is compared. The kernel counts it in steps of 10 ms, so a turn must be long,
/// and many of them even out what else the machine does.
const TURNS: u64 = 4;

/// Sizes of this scenario.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "tail")]
pub struct Options {
    /// Messages of the long channel [default: 100000; 20000 if quick]
    #[arg(long, value_name = "N")]
    messages: Option<u64>,
    /// Reads of each channel [default: 20000; 3000 if quick]
    #[arg(long, value_name = "N")]
    reads: Option<u64>,
}

/// Measures.
///
/// # Errors
/// If the server doesn't come up, refuses, or answers with other messages than the last.
pub fn run(arguments: &Arguments, report: &mut Report) -> anyhow::Result<()> {
    let long = arguments.size(arguments.tail.messages, 100_000, 20_000).max(SHORT);
    let reads = arguments.size(arguments.tail.reads, 20_000, 3_000);
    let folder = ArenaFolder::new(&arguments.arena(), &arguments.work(), None)?;
    let arena = folder.start()?;
    let fillers = arguments.crowd(FILLERS);
    let short_channel = channel_of(fillers, &arena, SHORT)?;
    let filling = Instant::now();
    let long_channel = channel_of(fillers, &arena, long)?;
    let filled = long as f64 / filling.elapsed().as_secs_f64();
    report.row(NAME, format!("chat messages/s while filling, {FILLERS} connections"), filled, "");

    let channels = [&short_channel, &long_channel];
    let (latencies, [short_cpu, long_cpu]) = crew::alone(async {
        let mut connection = Connection::open(arena.address()).await?;
        let mut latencies = [Latencies::default(), Latencies::default()];
        for number in 0..reads + 100 {
            // Whoever comes second finds warmer caches; so they take turns at that too.
            let order = if number % 2 == 0 { [0, 1] } else { [1, 0] };
            for which in order {
                let latency = channels[which].read(&mut connection).await?;
                // The first hundred warm up.
                if number >= 100 {
                    latencies[which].record(latency);
                }
            }
        }
        let mut cpu_us = [0.0; 2];
        for _ in 0..TURNS {
            for which in [0, 1] {
                let start = Mark::take(arena.pid())?;
                for _ in 0..reads {
                    channels[which].read(&mut connection).await?;
                }
                cpu_us[which] += start.until(&Mark::take(arena.pid())?).server_cpu_us / (TURNS * reads) as f64;
            }
        }
        Ok((latencies, cpu_us))
    })?;
    arena.terminate()?;

    let [short_summary, long_summary] = latencies.map(|latencies| latencies.summary());
    report.p99(NAME, &format!("last {READ} of {SHORT} messages"), short_summary);
    report.p99(NAME, &format!("last {READ} of {long} messages"), long_summary);
    report
        .row(NAME, "median of the long channel / of the short one", long_summary.p50_us / short_summary.p50_us, "")
        .goal(Goal::AtMost(1.10))
        .note(format!("{:.1} and {:.1} µs", long_summary.p50_us, short_summary.p50_us));
    report
        .row(NAME, "server CPU per read, long channel / short one", long_cpu / short_cpu, "")
        .note(format!("{long_cpu:.1} and {short_cpu:.1} µs"));
    report.detail(NAME, "latencies", json!({ "short": short_summary, "long": long_summary, "messages": long }));
    Ok(())
}

/// A chat channel with a known number of messages.
struct Channel {
    target: String,
    last: u64,
}

/// Makes a session of two players and lets them say so many things.
fn channel_of(fillers: Crowd, arena: &Server, messages: u64) -> anyhow::Result<Channel> {
    let address = arena.address();
    let Invited { id, invites } = crew::alone(async {
        let mut connection = Connection::open(address).await?;
        let invited = psi::create(&mut connection, Opposite::Arena).await?;
        for invite in &invited.invites {
            psi::join(&mut connection, invite).await?;
        }
        Ok(invited)
    })?;
    let target = format!("/api/chat/sync?channel={id}&index={}&from={}", messages + 1 - READ, invites[0]);
    fillers.repeat(arena, messages, async move |connection, number| {
        let content = format!("message {number:08} of a long talk about sets, in which neither says a number aloud");
        let from = &invites[usize::from(number % 2 == 1)];
        connection.post("/api/chat/send", chat_body(&id, &content, from)).await?.ok("chat").map(drop)
    })?;
    Ok(Channel { target, last: messages })
}

impl Channel {
    /// Reads the last messages and checks that they are these: how long the answer took.
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
