//! The chat of one session for thousands of subscribers on event streams. It is measured at full speed, in turn with
//! the ceiling; at a fixed rate, for latencies; and with very many subscribers, for memory. Every subscriber checks
//! that it receives every message once, in order.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use serde_json::json;

use crate::arguments::Arguments;
use crate::ceiling;
use crate::client_pool::ClientPool;
use crate::connection::Connection;
use crate::latency::{Latencies, LatencySummary, median};
use crate::limits;
use crate::player_pool::{Mark, MeasuredCost};
use crate::psi::{self, Invited, ServerKind, chat_body};
use crate::report::{Goal, Report};
use crate::server::{ArenaFolder, Server};
use crate::stream::{EventStream, Postmark};

const NAME: &str = "fanout";

/// The number of connections that publish at full speed.
const PUBLISHERS: usize = 8;

/// The goal: 3 times the deliveries per second of the reference server, which were measured on another machine.
const DELIVERIES_PER_SECOND: f64 = 210_000.0;

/// Options of this scenario.
#[derive(Debug, clap::Args)]
#[group(skip)]
#[command(next_help_heading = "fanout")]
pub struct FanoutOptions {
    /// Number of subscribers
    #[arg(long, value_name = "N", default_value_t = 1_000)]
    subscribers: usize,
    /// Messages per subscriber at full speed [default: 2000; 300 if quick]
    #[arg(long, value_name = "N")]
    fanout_messages: Option<u64>,
    /// Messages per second in the part with a fixed rate
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u64).range(1..))]
    fanout_rate: u64,
    /// Number of subscribers in the part about memory
    #[arg(long, value_name = "N", default_value_t = 10_000)]
    many_subscribers: usize,
    /// Messages per subscriber in the part about memory [default: 50; 10 if quick]
    #[arg(long, value_name = "N")]
    many_messages: Option<u64>,
}

/// Runs the scenario.
///
/// # Errors
/// If a server doesn't start or refuses, if a message is lost, duplicated or out of order, or if the system doesn't
/// allow that many connections.
pub fn run(arguments: &Arguments, report: &mut Report) -> anyhow::Result<()> {
    let FanoutOptions { subscribers, many_subscribers, .. } = arguments.fanout;
    let messages = arguments.size(arguments.fanout.fanout_messages, 2_000, 300);
    // This is done before the servers start, because they inherit the limit.
    limits::make_room_for(subscribers.max(many_subscribers) as u64)?;
    let threads = arguments.threads();
    let flat_out = Audience { threads, subscribers, messages, pace: PublishingPace::FlatOut };
    if arguments.ceiling {
        let fanout = flat_out.listen(&fresh_ceiling(arguments)?, ServerKind::Ceiling)?;
        report.row(NAME, format!("{subscribers} subscribers, ceiling: deliveries/s"), fanout.rate(), "").note(format!(
            "CPU per delivery: server {:.2} µs, client {:.2} µs",
            fanout.server_us(),
            fanout.client_us()
        ));
        return Ok(());
    }
    let folder = ArenaFolder::new(&arguments.arena(), &arguments.work(), None)?;
    let arena = folder.start()?;
    measure_flat_out(arguments, report, flat_out, &arena)?;
    measure_paced(arguments, report, flat_out, &arena)?;
    arena.terminate()?;
    measure_many(arguments, report, flat_out)
}

/// Measures deliveries at full speed, in turn with the ceiling.
fn measure_flat_out(
    arguments: &Arguments,
    report: &mut Report,
    flat_out: Audience,
    arena: &Server,
) -> anyhow::Result<()> {
    let subscribers = flat_out.subscribers;
    let (mut of_arena, mut of_ceiling) = (Vec::new(), Vec::new());
    for number in 1..=arguments.rounds() {
        eprintln!("fanout: {subscribers} subscribers, round {number} of {}", arguments.rounds());
        of_arena.push(flat_out.listen(arena, ServerKind::Arena)?);
        of_ceiling.push(flat_out.listen(&fresh_ceiling(arguments)?, ServerKind::Ceiling)?);
    }
    let mid = |fanouts: &[Fanout], value: fn(&Fanout) -> f64| median(fanouts.iter().map(value));
    let share = median(of_arena.iter().zip(&of_ceiling).map(|(arena, ceiling)| arena.rate() / ceiling.rate()));
    let at = format!("{subscribers} subscribers, flat out");
    report
        .row(NAME, format!("{at}: deliveries/s"), mid(&of_arena, Fanout::rate), "")
        .goal(Goal::AtLeast(DELIVERIES_PER_SECOND))
        .note("goal: 3 × the peer's 70,000, as observed when the goals were set");
    report
        .row(NAME, format!("{at}: share of the ceiling"), share * 100.0, "%")
        .note(format!("ceiling {:.0} deliveries/s", mid(&of_ceiling, Fanout::rate)));
    report
        .row(NAME, format!("{at}: server CPU per delivery"), mid(&of_arena, Fanout::server_us), "µs")
        .goal(Goal::AtMost(10.0))
        .note(format!(
            "ceiling {:.2} µs; client {:.2} and {:.2} µs",
            mid(&of_ceiling, Fanout::server_us),
            mid(&of_arena, Fanout::client_us),
            mid(&of_ceiling, Fanout::client_us)
        ));
    for (name, fanouts) in [("arena", &of_arena), ("ceiling", &of_ceiling)] {
        let rounds: Vec<_> = fanouts.iter().map(Fanout::json).collect();
        report.detail(NAME, format!("{name}, flat out"), json!(rounds));
    }
    Ok(())
}

/// Measures latencies at a fixed rate.
fn measure_paced(arguments: &Arguments, report: &mut Report, flat_out: Audience, arena: &Server) -> anyhow::Result<()> {
    let FanoutOptions { subscribers, fanout_rate, .. } = arguments.fanout;
    eprintln!("fanout: {subscribers} subscribers, {fanout_rate} messages/s");
    let messages = fanout_rate * arguments.size(None, 10, 3);
    let paced = Audience { pace: PublishingPace::PerSecond(fanout_rate), messages, ..flat_out };
    let paced_arena = paced.listen(arena, ServerKind::Arena)?;
    let paced_ceiling = paced.listen(&fresh_ceiling(arguments)?, ServerKind::Ceiling)?;
    // There is no goal for CPU, because each delivery is a separate write, which takes about 10 µs in the kernel.
    let at = format!("{subscribers} subscribers, {fanout_rate} messages/s");
    report.p99(NAME, &format!("{at}: from send to receipt"), paced_arena.latency);
    report.p99(NAME, &format!("{at}: the same, ceiling"), paced_ceiling.latency);
    report
        .row(NAME, format!("{at}: server CPU per delivery"), paced_arena.server_us(), "µs")
        .note(format!("ceiling {:.2} µs", paced_ceiling.server_us()));
    report.detail(NAME, "arena, paced", paced_arena.json());
    report.detail(NAME, "ceiling, paced", paced_ceiling.json());
    Ok(())
}

/// Measures the memory of very many subscribers.
fn measure_many(arguments: &Arguments, report: &mut Report, flat_out: Audience) -> anyhow::Result<()> {
    let many_subscribers = arguments.fanout.many_subscribers;
    let many_messages = arguments.size(arguments.fanout.many_messages, 50, 10);
    eprintln!("fanout: {many_subscribers} subscribers");
    // A new server is used, because an older one would reuse memory that it has reserved before the measurement.
    let folder = ArenaFolder::new(&arguments.arena(), &arguments.work(), None)?;
    let arena = folder.start()?;
    let many = Audience { subscribers: many_subscribers, messages: many_messages, ..flat_out };
    let idle_kib = arena.usage()?.rss_kib;
    let fanout = many.listen(&arena, ServerKind::Arena)?;
    arena.terminate()?;
    let per_subscriber = |rss_kib: u64| rss_kib.saturating_sub(idle_kib) as f64 / many_subscribers as f64;
    let at = format!("{many_subscribers} subscribers");
    report
        .row(NAME, format!("{at}: server memory each, connected"), per_subscriber(fanout.connected_kib), "KiB")
        .goal(Goal::AtMost(16.0))
        .note(format!("after {many_messages} messages each {:.1} KiB", per_subscriber(fanout.ended_kib)));
    report.row(NAME, format!("{at}: deliveries/s"), fanout.rate(), "");
    report.row(NAME, format!("{at}: server CPU per delivery"), fanout.server_us(), "µs");
    // The value is 0, because `listen` fails if a message is lost.
    report.row(NAME, "messages lost, doubled or out of order", 0.0, "").goal(Goal::AtMost(0.0));
    report.detail(NAME, "arena, many subscribers", fanout.json());
    Ok(())
}

/// Starts a ceiling. A ceiling has only one channel, so each measurement needs a new ceiling.
fn fresh_ceiling(arguments: &Arguments) -> anyhow::Result<Server> {
    Server::start_ceiling(&arguments.work())
}

#[derive(Debug, Clone, Copy)]
enum PublishingPace {
    /// At full speed on [`PUBLISHERS`] connections, each of which waits for the answer before its next message.
    FlatOut,
    /// On one connection, at regular intervals.
    PerSecond(u64),
}

impl PublishingPace {
    /// Waits until the time of a message, and returns this time. `number` is the number of messages since the start.
    async fn wait(self, start: Instant, number: u64) -> Instant {
        let PublishingPace::PerSecond(rate) = self else { return Instant::now() };
        let intended = start + Duration::from_nanos(1_000_000_000 * number / rate);
        if intended <= Instant::now() {
            // The preceding answer was late, and its delay counts for this message.
            return intended;
        }
        tokio::time::sleep_until(intended.into()).await;
        // Tokio's clock counts whole milliseconds, so the message's time is read from the precise clock after the wait.
        Instant::now()
    }
}

/// The subscribers and their messages.
#[derive(Debug, Clone, Copy)]
struct Audience {
    threads: usize,
    subscribers: usize,
    messages: u64,
    pace: PublishingPace,
}

struct Fanout {
    deliveries: u64,
    spent: MeasuredCost,
    latency: LatencySummary,
    connected_kib: u64,
    ended_kib: u64,
}

impl Fanout {
    fn rate(&self) -> f64 {
        self.deliveries as f64 / self.spent.seconds
    }

    fn server_us(&self) -> f64 {
        self.spent.server_cpu_us / self.deliveries as f64
    }

    fn client_us(&self) -> f64 {
        self.spent.client_cpu_us / self.deliveries as f64
    }

    fn json(&self) -> serde_json::Value {
        json!({
            "deliveries": self.deliveries,
            "seconds": self.spent.seconds,
            "deliveries_per_second": self.rate(),
            "server_us_per_delivery": self.server_us(),
            "client_us_per_delivery": self.client_us(),
            "latency_from_intended_send": self.latency,
            "connected_rss_kib": self.connected_kib,
            "ended_rss_kib": self.ended_kib,
        })
    }
}

/// A worker: a subscriber or a publisher.
enum FanoutClient {
    Listener(Box<EventStream>),
    Talker(Connection),
}

impl Audience {
    /// Subscribes to a new session, publishes, and waits until all subscribers have all messages.
    fn listen(self, server: &Server, server_kind: ServerKind) -> anyhow::Result<Fanout> {
        let Audience { threads, subscribers, messages, pace } = self;
        let address = server.address();
        let Invited { id, invites } = psi::begin_alone(address, server_kind)?;
        let target = match server_kind {
            ServerKind::Arena | ServerKind::Script => "/api/v1/chat/send",
            ServerKind::Ceiling => ceiling::PUBLISH,
        };
        let session = id.clone();
        let is_flat_out = matches!(pace, PublishingPace::FlatOut);
        let talkers = if is_flat_out { PUBLISHERS } else { 1 };
        let (postmark, begun) = (Postmark::new(), Arc::new(AtomicU64::new(0)));
        let client_pool = ClientPool { threads, workers: subscribers + talkers, limit: Duration::from_secs(600) };
        let finished = client_pool.run(
            async move |worker| {
                let connection = Connection::open(address).await?;
                Ok(if worker < subscribers {
                    FanoutClient::Listener(Box::new(EventStream::open(connection, &session).await?))
                } else {
                    FanoutClient::Talker(connection)
                })
            },
            async move |worker, guest| {
                let mut latencies = Latencies::default();
                match guest {
                    FanoutClient::Listener(mut stream) => {
                        let seen = |event: &[u8], now| {
                            // Latencies at full speed are not recorded, because they contain the waiting time in the
                            // publisher's queue.
                            if !is_flat_out && let Some(age) = postmark.age(event, now) {
                                latencies.record(age);
                            }
                        };
                        stream.read_until(messages, seen).await?;
                        // The stream is returned, so that it stays connected until the memory was read.
                        Ok((latencies, Some(stream)))
                    }
                    FanoutClient::Talker(mut connection) => {
                        let start = Instant::now();
                        let from = &invites[worker % 2];
                        loop {
                            let number = begun.fetch_add(1, Ordering::Relaxed);
                            if number >= messages {
                                return Ok((latencies, None));
                            }
                            let intended = pace.wait(start, number).await;
                            let body = chat_body(&id, &postmark.content(intended), from);
                            connection.post(target, body).await?.ok("chat")?;
                        }
                    }
                }
            },
            || Mark::take(server.pid()),
        )?;
        let mut latencies = Latencies::default();
        finished.results.iter().for_each(|(more, _)| latencies.merge(more));
        Ok(Fanout {
            deliveries: subscribers as u64 * messages,
            spent: finished.start.until(&finished.end),
            latency: latencies.summary(),
            connected_kib: finished.start.server().rss_kib,
            ended_kib: finished.end.server().rss_kib,
        })
    }
}
