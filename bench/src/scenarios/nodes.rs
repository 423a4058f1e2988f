//! Several nodes on one database: whole games on one, two, three and four nodes, compared with SQLite; and the time of
//! a message from one node to a subscriber on another. The scenario starts its own Postgres and NATS.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use anyhow::Context as _;
use arena_testkit::{NatsServer, Postgres};
use serde_json::json;

use crate::agenda::Agenda;
use crate::arguments::Arguments;
use crate::client_pool::{self, ClientPool};
use crate::connection::Connection;
use crate::cpu_quota::CpuQuota;
use crate::latency::{Latencies, LatencySummary, median};
use crate::player_pool::{Mark, PlayerPool, Round, Until};
use crate::psi::{self, Invited, ServerKind, chat_body};
use crate::report::{Goal, Report};
use crate::scenarios::games::round_json;
use crate::server::{ArenaFolder, Server};
use crate::stream::{EventStream, Postmark};
use crate::usage::Usage;

const NAME: &str = "nodes";

/// The goal: 5 times the games per second of the reference server in memory, which were measured on another machine.
/// The reference server is slower with a database.
const GAMES_PER_SECOND: f64 = 1_050.0;

/// The number of sessions with concurrent chats, each with a subscriber.
const SESSIONS: usize = 16;

/// The number of connections that send messages. It is high enough that no message waits for the previous answer.
const SPEAKERS: usize = 64;

/// Options of this scenario.
#[derive(Debug, clap::Args)]
#[group(skip)]
#[command(next_help_heading = "nodes")]
pub struct NodesOptions {
    /// Number of connections that play
    #[arg(long, value_name = "N", default_value_t = 64)]
    nodes_connections: usize,
    /// Messages per second on one node, with subscribers on another
    #[arg(long, value_name = "N", default_value_t = 1_000, value_parser = clap::value_parser!(u64).range(1..))]
    nodes_rate: u64,
    /// CPU time of each small node, in percent of one core; 0 leaves out the small nodes, which need root
    #[arg(long, value_name = "PERCENT", default_value_t = 10, value_parser = clap::value_parser!(u32).range(0..=100))]
    nodes_quota: u32,
    /// Duration of the chats in seconds [default: 20; 3 if quick]
    #[arg(long, value_name = "S", value_parser = clap::value_parser!(u64).range(1..))]
    nodes_seconds: Option<u64>,
}

/// Returns the environment variables that make an arena one of several nodes.
pub fn environment(database_url: &str, nats_url: &str) -> [(&'static str, String); 4] {
    // Nodes must have the same secret and token.
    let secret = "0123456789abcdef".repeat(4);
    [
        ("DATABASE_URL", database_url.to_owned()),
        ("NATS_URL", nats_url.to_owned()),
        ("AUTH_SECRET", secret.clone()),
        ("ADMIN_TOKEN", secret),
    ]
}

const SMALL_NODES: usize = 4;

/// The way in which the requests of a game reach the nodes.
#[derive(Debug, Clone, Copy)]
enum Way {
    /// All requests of a game go to one node.
    Kept,
    /// The requests of each game go to all nodes in turn.
    InTurn,
}

/// A number of nodes for games.
struct Setting {
    what: &'static str,
    folders: Vec<ArenaFolder>,
    environment: Vec<(&'static str, String)>,
    /// The CPU time of each node, in percent of one core; `None` if it isn't limited.
    quota: Option<u32>,
    way: Way,
    rounds: Vec<Round>,
    /// The CPU time of the database per game, in microseconds.
    database_us: Vec<f64>,
}

impl Setting {
    /// Starts the nodes. A later start uses the data of the first one.
    fn start(&self) -> anyhow::Result<RunningNodes> {
        let (mut servers, mut quotas) = (Vec::new(), Vec::new());
        for folder in &self.folders {
            let server = folder.start_with(&self.environment)?;
            quotas.extend(self.quota.map(|percent| CpuQuota::limit(server.pid(), percent)).transpose()?);
            servers.push(server);
        }
        Ok(RunningNodes { servers, _quotas: quotas })
    }

    /// Plays a round with nodes that run only for this round.
    fn play(
        &mut self,
        player_pool: PlayerPool,
        length: Duration,
        postgres: &Postgres,
        report: &mut Report,
    ) -> anyhow::Result<()> {
        let nodes = self.start()?;
        let servers: Vec<&Server> = nodes.servers.iter().collect();
        let tables = match self.way {
            Way::Kept => servers.iter().map(|node| vec![*node]).collect(),
            Way::InTurn => vec![[&servers[..], &servers[..]].concat()],
        };
        player_pool.play_at(&tables, ServerKind::Arena, Until::Elapsed(length / 4))?;
        let before = Usage::cpu_of_family(postgres.pid())?;
        let round = player_pool.play_at(&tables, ServerKind::Arena, Until::Elapsed(length))?;
        let used = (Usage::cpu_of_family(postgres.pid())? - before) as f64;
        report.faults(format!("nodes, {}", self.what), &round.faults);
        self.database_us.push(used / round.games.max(1) as f64);
        self.rounds.push(round);
        nodes.terminate()
    }

    fn report(&self, report: &mut Report) {
        let nodes_us = median(self.rounds.iter().map(Round::server_us_per_request));
        let database_us = median(self.database_us.iter().copied());
        let mut latencies = Latencies::default();
        self.rounds.iter().for_each(|round| latencies.merge(&round.latencies.all()));
        let summary = latencies.summary();
        report.row(NAME, format!("{}: games/s", self.what), self.games_per_second(), "").note(format!(
            "CPU: nodes {nodes_us:.1} µs a request, database {database_us:.0} µs a game; p50 {:.2} ms, p99 {:.2} ms",
            summary.p50_us / 1e3,
            summary.p99_us / 1e3
        ));
        let rounds: Vec<_> = self.rounds.iter().map(round_json).collect();
        report.detail(NAME, self.what, json!({ "rounds": rounds, "database_us_per_game": self.database_us }));
    }

    /// Returns the median of the rounds' games per second.
    fn games_per_second(&self) -> f64 {
        median(self.rounds.iter().map(|round| round.games as f64 / round.spent.seconds))
    }

    /// Returns the rate of games in percent of another setting's in the same rounds.
    fn percent_of(&self, other: &Setting) -> f64 {
        median(self.rounds.iter().zip(&other.rounds).map(|(one, other)| one.rate() / other.rate())) * 100.0
    }
}

struct RunningNodes {
    // The processes end before their control groups are removed.
    servers: Vec<Server>,
    _quotas: Vec<CpuQuota>,
}

impl RunningNodes {
    fn terminate(self) -> anyhow::Result<()> {
        let RunningNodes { servers, _quotas } = self;
        servers.into_iter().try_for_each(|server| server.terminate().map(drop))
    }
}

/// Runs the scenario.
///
/// # Errors
/// If a server doesn't start or ends, or if CPU time can't be limited.
pub fn run(arguments: &Arguments, report: &mut Report) -> anyhow::Result<()> {
    let NodesOptions { nodes_connections, nodes_rate, nodes_seconds, .. } = arguments.nodes;
    let (postgres, nats) = (Postgres::start(), NatsServer::start());
    let mut settings = settings(arguments, &postgres, &nats)?;
    let player_pool = arguments.player_pool(nodes_connections);
    let (length, rounds) = (arguments.round()?, arguments.rounds());
    for number in 1..=rounds {
        for setting in &mut settings {
            eprintln!("nodes: {}, round {number} of {rounds}", setting.what);
            setting.play(player_pool, length, &postgres, report)?;
        }
    }
    settings.iter().for_each(|setting| setting.report(report));
    compare(&settings, report);

    let pair = settings[3].start()?;
    let messages = nodes_rate * arguments.size(nodes_seconds, 20, 3);
    for (what, watched) in [("watched at the same node", &pair.servers[0]), ("watched at another", &pair.servers[1])] {
        eprintln!("nodes: {nodes_rate} messages/s, {what}");
        let summary = listen(arguments, &pair.servers[0], watched, nodes_rate, messages)?;
        let row = report.p99(NAME, &format!("{nodes_rate} messages/s, {what}: from intended send to receipt"), summary);
        if what == "watched at another" {
            row.goal(Goal::AtMost(20.0));
        }
    }
    pair.terminate()
}

/// Returns the settings: those without a limit of CPU time, and with `--nodes-quota` three small ones.
fn settings(arguments: &Arguments, postgres: &Postgres, nats: &NatsServer) -> anyhow::Result<Vec<Setting>> {
    let nodes_quota = arguments.nodes.nodes_quota;
    let shared = || environment(&postgres.schema(), &nats.url()).to_vec();
    let setting = |what, nodes: usize, environment: Vec<(&'static str, String)>, quota, way| {
        let folder = |_| ArenaFolder::new(&arguments.arena(), &arguments.work(), None);
        let folders = (0..nodes).map(folder).collect::<anyhow::Result<Vec<_>>>()?;
        anyhow::Ok(Setting { what, folders, environment, quota, way, rounds: Vec::new(), database_us: Vec::new() })
    };
    let mut settings = vec![
        setting("SQLite", 1, Vec::new(), None, Way::Kept)?,
        setting("Postgres, the only node", 1, vec![("DATABASE_URL", postgres.schema())], None, Way::Kept)?,
        setting("one shared node", 1, shared(), None, Way::Kept)?,
        setting("two nodes, each game at one", 2, shared(), None, Way::Kept)?,
        setting("two nodes in turn", 2, shared(), None, Way::InTurn)?,
        setting("three nodes, each game at one", 3, shared(), None, Way::Kept)?,
        setting("three nodes in turn", 3, shared(), None, Way::InTurn)?,
    ];
    if nodes_quota > 0 {
        settings.extend([
            setting("one small node", 1, shared(), Some(nodes_quota), Way::Kept)?,
            setting("four small nodes, each game at one", SMALL_NODES, shared(), Some(nodes_quota), Way::Kept)?,
            setting("four small nodes in turn", SMALL_NODES, shared(), Some(nodes_quota), Way::InTurn)?,
        ]);
    }
    Ok(settings)
}

/// Reports the settings in percent of each other, and the goals.
fn compare(settings: &[Setting], report: &mut Report) {
    let [sqlite, only, one, two, two_in_turn, three, three_in_turn, small_settings @ ..] = settings else {
        unreachable!("there are at least seven settings")
    };
    report
        .row(NAME, "the only node on Postgres: games/s", only.games_per_second(), "")
        .goal(Goal::AtLeast(GAMES_PER_SECOND))
        .note("goal: 5 × the peer's 210 in memory, as observed when the goals were set; with Postgres it is slower");
    let mut compare = |what: &str, setting: &Setting, other: &Setting, goal: Option<f64>| {
        let row = report.row(NAME, what, setting.percent_of(other), "%");
        if let Some(goal) = goal {
            row.goal(Goal::AtLeast(goal));
        }
    };
    compare("the only node on Postgres, of SQLite's games/s", only, sqlite, None);
    compare("one shared node, of the only node's games/s", one, only, Some(85.0));
    compare("two nodes, each game at one, of the only node's games/s", two, only, Some(80.0));
    compare("two nodes in turn, of the only node's games/s", two_in_turn, only, Some(50.0));
    compare("three nodes, each game at one, of the only node's games/s", three, only, None);
    compare("three nodes in turn, of the only node's games/s", three_in_turn, only, Some(45.0));
    if let [small_one, kept, in_turn] = small_settings {
        compare("four small nodes, each game at one, of one's games/s", kept, small_one, Some(300.0));
        compare("four small nodes in turn, of one's games/s", in_turn, small_one, Some(180.0));
    }
    let database_us = settings[2..].iter().map(|setting| median(setting.database_us.iter().copied()));
    report
        .row(
            NAME,
            "CPU of the database in the costliest setting of shared nodes",
            database_us.fold(0.0, f64::max),
            "µs",
        )
        .goal(Goal::AtMost(600.0));
}

/// A sender or a subscriber.
enum NodesClient {
    Speaker(Connection),
    Watcher(Box<EventStream>),
}

/// Sends messages in sessions on one server, and measures their time to subscribers on the other.
fn listen(
    arguments: &Arguments,
    spoken: &Server,
    watched: &Server,
    rate: u64,
    messages: u64,
) -> anyhow::Result<LatencySummary> {
    let (here, there) = (spoken.address(), watched.address());
    let sessions: Vec<Invited> = client_pool::alone(async {
        let mut connection = Connection::open(here).await?;
        let mut sessions = Vec::with_capacity(SESSIONS);
        for _ in 0..SESSIONS {
            sessions.push(psi::begin(&mut connection, ServerKind::Arena).await?);
        }
        Ok(sessions)
    })?;
    // The number is rounded down, so that each session gets the same number of messages.
    let each = messages / SESSIONS as u64;
    let messages = each * SESSIONS as u64;
    let (postmark, spoken_so_far) = (Postmark::new(), Arc::new(AtomicU64::new(0)));
    let agenda = Arc::new(Agenda::default());
    let (speakers, watchers) = (agenda.clone(), sessions.clone());
    let limit = Duration::from_secs(messages / rate + 60);
    let mut metronome = None;
    let finished = ClientPool { threads: arguments.threads(), workers: SESSIONS + SPEAKERS, limit }.run(
        async move |worker| match watchers.get(worker) {
            Some(session) => Ok(NodesClient::Watcher(Box::new(
                EventStream::open(Connection::open(there).await?, &session.id).await?,
            ))),
            None => Ok(NodesClient::Speaker(Connection::open(here).await?)),
        },
        async move |_, guest| {
            let mut latencies = Latencies::default();
            match guest {
                NodesClient::Watcher(mut stream) => {
                    let seen = |event: &[u8], now| {
                        if let Some(age) = postmark.age(event, now) {
                            latencies.record(age);
                        }
                    };
                    stream.read_until(each, seen).await?;
                }
                NodesClient::Speaker(mut connection) => {
                    while let Some(intended) = speakers.next().await {
                        let number = spoken_so_far.fetch_add(1, Ordering::Relaxed);
                        let session = &sessions[number as usize % SESSIONS];
                        let body = chat_body(&session.id, &postmark.content(intended), &session.invites[0]);
                        connection.post("/api/v1/chat/send", body).await?.ok("chat")?;
                    }
                }
            }
            Ok(latencies)
        },
        || {
            // The first mark is taken at the start of the work.
            if metronome.is_none() {
                let agenda = agenda.clone();
                metronome = Some(thread::spawn(move || agenda.fill(rate, messages, SPEAKERS)));
            }
            Mark::take(spoken.pid())
        },
    )?;
    metronome
        .context("the metronome was never started")?
        .join()
        .map_err(|_| anyhow::anyhow!("the metronome panicked"))?;
    let mut latencies = Latencies::default();
    finished.results.iter().for_each(|more| latencies.merge(more));
    Ok(latencies.summary())
}
