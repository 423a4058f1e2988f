//! The CPU time of sessions until all seats are taken, with the smallest and the largest value of each option that a
//! client may choose. The limits of the options must also limit the CPU time.

use anyhow::Context as _;
use serde_json::{Map, Value, json};

use crate::arguments::Arguments;
use crate::client_pool;
use crate::connection::Connection;
use crate::report::{Goal, Report};
use crate::server::{ArenaFolder, Server};

const NAME: &str = "options";

/// The limit on CPU time per session, in milliseconds.
const GOAL_MS: f64 = 20.0;

/// Returns combinations of options that are extreme only together.
fn together(challenge: &str) -> Vec<Value> {
    match challenge {
        "psi" => vec![
            json!({ "range": [1, 3000], "setSize": 1000, "intersectionSize": 1000 }),
            json!({ "range": [0, u32::MAX], "setSize": 1000, "intersectionSize": 1000 }),
        ],
        "snake" => vec![
            json!({ "players": 8, "grid_width": 64, "grid_height": 64, "food_sources_to_spawn": 1000, "min_food_sources": 1000 }),
            json!({ "players": 8, "grid_width": 11, "grid_height": 3 }),
        ],
        _ => Vec::new(),
    }
}

/// Runs the scenario.
///
/// # Errors
/// If the server doesn't start.
pub fn run(arguments: &Arguments, report: &mut Report) -> anyhow::Result<()> {
    let folder = ArenaFolder::new(&arguments.arena(), &arguments.work(), None)?;
    let arena = folder.start()?;
    let sessions = if arguments.quick { 10 } else { 100 };
    let metadata: Map<String, Value> = client_pool::alone(async {
        let mut connection = Connection::open(arena.address()).await?;
        Ok(serde_json::from_slice(&connection.get("/api/metadata").await?.ok("metadata")?)?)
    })?;
    for (challenge, about) in &metadata {
        eprintln!("{NAME}: {challenge}");
        let mut choices = vec![json!({})];
        for option in about["options"].as_array().into_iter().flatten() {
            let name = option["name"].as_str().context("an option in the metadata has no name")?;
            let bounds = ["minimum", "maximum"].map(|bound| option[bound].clone());
            choices.extend(bounds.into_iter().filter(Value::is_number).map(|value| json!({ name: value })));
        }
        choices.extend(together(challenge));
        let mut measured = Vec::new();
        for options in choices {
            // An extreme value may be invalid with the defaults of the other options.
            if let Some(ms) = cost(&arena, challenge, &options, sessions)? {
                measured.push((ms, options));
            }
        }
        measured.sort_by(|(one, _), (other, _)| other.total_cmp(one));
        let (worst, options) = measured.first().context("no session could be created")?;
        report
            .row(NAME, format!("{challenge}: CPU of the costliest session"), *worst, "ms")
            .goal(Goal::AtMost(GOAL_MS))
            .note(format!("{options}; of {} choices", measured.len()));
        report.detail(NAME, challenge, json!(measured));
    }
    arena.terminate()?;
    Ok(())
}

/// Returns the server's CPU time per session until all seats are taken, in milliseconds. Returns `None` if the server
/// refuses the options.
fn cost(arena: &Server, challenge: &str, options: &Value, sessions: usize) -> anyhow::Result<Option<f64>> {
    client_pool::alone(async {
        let mut connection = Connection::open(arena.address()).await?;
        let before = arena.usage()?;
        for _ in 0..sessions {
            let body = json!({ "options": options }).to_string();
            let answer = connection.post(&format!("/api/challenges/{challenge}"), body).await?;
            if answer.status == hyper::StatusCode::BAD_REQUEST {
                return Ok(None);
            }
            let session: Value = serde_json::from_slice(&answer.ok("create")?)?;
            for invite in session["invites"].as_array().into_iter().flatten() {
                let body = json!({ "invite": invite }).to_string();
                connection.post("/api/arena/join", body).await?.ok("join")?;
            }
        }
        let spent = arena.usage()?.cpu_us.saturating_sub(before.cpu_us);
        Ok(Some(spent as f64 / sessions as f64 / 1e3))
    })
}
