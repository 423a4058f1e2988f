//! Cherry picker: gathers food in a world of its own. See `foraging.rs`.

use example_agents::{foraging, run};
use serde_json::Value;

/// Returns actions for our actors and bases.
fn decide(me: &str, state: &Value, config: &Value) -> Vec<Value> {
    let (actions, _) = foraging::forage(me, state, config);
    actions
}

fn main() -> std::io::Result<()> {
    run("cherry-picker-rs", "1", decide)
}
