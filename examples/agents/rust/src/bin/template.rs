//! A template for an agent. It follows the protocol and takes no actions.

use example_agents::{log, run};
use serde_json::Value;

/// Returns the actions of this epoch.
fn decide(me: &str, state: &Value, _config: &Value) -> Vec<Value> {
    log(&format!("{me} sees a state of {} bytes in epoch {}", state.to_string().len(), state["epoch"]));
    // Fill this in. docs/agents.md has the states and actions of each game; an action of snake is
    // json!({"action": "move", "move": "UP"})
    Vec::new()
}

fn main() -> std::io::Result<()> {
    run("template-rs", "1", decide)
}
