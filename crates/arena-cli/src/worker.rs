//! `arena worker`: plays matches for tournaments that run on other machines. `arena-runner` does the work.

use arena_nats::NatsUrl;
use arena_runner::nats::{Worker, WorkerEvent, work};
use clap::Args;
use serde_json::json;

use crate::command_line::NatsUrlParser;
use crate::exit::{Exit, Failure};
use crate::interrupt;
use crate::matches::options::{Affinity, SandboxArgs};
use crate::matches::settings::{confinement, search_path};
use crate::output::{self, Style, print, printable};
use crate::tournament::entrants::check_name;

/// Options of `arena worker`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  arena worker --nats-url nats://hub --concurrency 8
  ARENA_NATS_URL='tls://worker:password@hub' arena worker --concurrency 8
  arena tournament run snake --agent ./a --agent ./b --rounds 500 --nats-url nats://hub    on another machine

The NATS server needs JetStream (`nats-server -js`); docs/workers.md in the repository explains the setup. Other users of the machine can \
read a command line, so set a URL with a password in ARENA_NATS_URL.

Anyone who can write to the NATS server can run programs on this machine, in the sandbox chosen here. Give access only to \
people you trust: with --sandbox off their programs have all of your rights.

Ctrl-C or SIGTERM: the worker takes no more games and finishes those in progress. A second signal returns the games in \
progress to the queue and stops the worker at once. If a worker fails, other workers play its games.")]
pub struct WorkerArgs {
    /// URL of the NATS server with the jobs: nats://host or tls://user:password@host; commas separate servers of a
    /// cluster.
    #[arg(long, value_name = "URL", env = "ARENA_NATS_URL", hide_env_values = true, value_parser = NatsUrlParser)]
    pub nats_url: NatsUrl,
    /// Number of games in parallel.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub concurrency: u32,
    /// Name of the worker. Workers of one name count as one when results are checked [default: machine name and a
    /// number]
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,
    /// CPU placement of a game and its agents.
    #[arg(long, value_enum, default_value_t = Affinity::Share)]
    pub affinity: Affinity,
    /// Program in PATH that jobs may start, besides python3 and node; may be repeated.
    #[arg(long = "program", value_name = "NAME")]
    pub programs: Vec<String>,
    /// Run as root too.
    #[arg(long)]
    pub allow_root: bool,
    /// Sandbox of the agents; a tournament can't change it.
    #[command(flatten)]
    pub sandbox: SandboxArgs,
}

/// Runs the worker until a signal stops it.
pub fn run(args: WorkerArgs, style: Style) -> Result<(), Failure> {
    if let Some(name) = &args.name {
        check_name("a worker's name", name)?;
    }
    if rustix::process::geteuid().is_root() && !args.allow_root {
        let reason = "a worker doesn't run as root, because it starts programs of others; run it as another user, such \
             as examples/deploy/arena-worker.service does, or use --allow-root";
        return Err(Failure::usage(reason));
    }
    let [stop, called_off] = interrupt::flags([
        "finishing the games in progress; press Ctrl-C again to return them to the queue and stop at once",
        "returning the games in progress to the queue; press Ctrl-C again to kill this program",
    ])?;
    let worker = Worker {
        address: args.nats_url,
        name: args.name,
        slots: args.concurrency as usize,
        shares_core: args.affinity == Affinity::Share,
        confinement: confinement(&args.sandbox)?,
        search: search_path(),
        programs: args.programs,
    };
    let on_event = move |event: WorkerEvent| {
        // Errors of stdout are ignored, since the worker continues to play even if stdout has no reader.
        let _ = match (event, style) {
            (WorkerEvent::Note(text), _) => {
                output::note(&text);
                Ok(())
            }
            (event, Style::Json) => print(&as_json(&event).to_string()),
            (event, Style::Pretty | Style::Compact) => print(&printable(&as_text(&event))),
        };
    };
    work(worker, &stop, &called_off, on_event).map_err(|error| Failure::caused(Exit::Internal, &error))
}

fn as_text(event: &WorkerEvent) -> String {
    match event {
        WorkerEvent::Ready { name, url, slots, .. } => {
            let many = if *slots == 1 { "one at a time".to_owned() } else { format!("{slots} in parallel") };
            format!("worker {name} takes games from {url}, {many}")
        }
        WorkerEvent::Played { tournament, fixture, agents, took } => {
            let (agents, seconds) = (agents.join(" - "), took.as_secs_f64());
            format!("tournament {tournament}, game {fixture}: {agents}, {seconds:.1} s")
        }
        WorkerEvent::Note(text) => text.clone(),
    }
}

fn as_json(event: &WorkerEvent) -> serde_json::Value {
    match event {
        WorkerEvent::Ready { name, id, url, slots } => {
            json!({"type": "ready", "name": name, "id": id, "url": url, "concurrency": slots})
        }
        WorkerEvent::Played { tournament, fixture, agents, took } => json!({
            "type": "played",
            "tournament": tournament,
            "fixture": fixture,
            "agents": agents,
            "took_ms": took.as_secs_f64() * 1e3,
        }),
        WorkerEvent::Note(text) => json!({"type": "note", "text": text}),
    }
}
