//! `arena worker`: plays matches for tournaments that run on other machines. `arena-runner` does the work.

use arena_runner::nats::{Worker, WorkerEvent, work};
use serde_json::json;

use crate::args::{Affinity, WorkerArgs};
use crate::exit::{Exit, Failure};
use crate::interrupt;
use crate::matches::settings::{confinement, search_path};
use crate::output::{self, Style, print, printable};
use crate::tournament::entrants::check_name;

/// Runs the worker until a signal stops it.
pub fn run(args: WorkerArgs, style: Style) -> Result<(), Failure> {
    if let Some(name) = &args.name {
        check_name("a worker's name", name)?;
    }
    if rustix::process::geteuid().is_root() && !args.allow_root {
        let reason = "a worker doesn't run as root, because it starts programs of others; run it as another user, such \
             as examples/deploy/arena-worker.service does, or use --allow-root";
        return Err(Failure::new(Exit::Usage, reason));
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
