//! An agent to start from. It does nothing yet, properly.

use example_agents::{log, run};
use serde_json::Value;

/// What to do in this epoch, as a list of actions.
fn decide(me: &str, state: &Value, _config: &Value) -> Vec<Value> {
    log(&format!("{me} sees a state of {} bytes in epoch {}", state.to_string().len(), state["epoch"]));
    // Fill this in. docs/agents.md has the states and the actions of each game; one of snake is
    // json!({"action": "move", "move": "UP"})
    Vec::new()
}

fn main() -> std::io::Result<()> {
    run("template-rs", "1", decide)
}
