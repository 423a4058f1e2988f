//! The protocol: JSON objects on lines, read from stdin and answered on stdout. The agent decides the actions.

pub mod foraging;

use std::io::{self, BufRead, Write};

use serde_json::{Map, Value, json};

/// Plays one match. `decide(me, state, config)` receives the agent's id, the state, and the constants of the game, and
/// returns a list of actions.
///
/// # Errors
/// If stdin can't be read or stdout can't be written, because the arena has exited.
pub fn run(name: &str, version: &str, mut decide: impl FnMut(&str, &Value, &Value) -> Vec<Value>) -> io::Result<()> {
    let mut out = io::stdout().lock();
    let (mut me, mut config) = (String::new(), Value::Null);
    for line in io::stdin().lock().split(b'\n') {
        let message = read(&line?);
        if message.contains_key("stop") {
            return Ok(());
        }
        let mut reply = Map::new();
        if message.contains_key("ping") {
            reply.insert("pong".to_owned(), json!("pong"));
        }
        if let Some(id) = message.get("set_agent_id").and_then(Value::as_str) {
            id.clone_into(&mut me);
            config = message.get("config").cloned().unwrap_or_default();
            reply.insert("agent_id".to_owned(), json!(me));
            reply.insert("agent_name".to_owned(), json!(name));
            reply.insert("agent_version".to_owned(), json!(version));
        }
        if let Some(state) = message.get("world_state") {
            reply.insert("agent_id".to_owned(), json!(me));
            reply.insert("actions".to_owned(), json!(decide(&me, state, &config)));
        }
        if !reply.is_empty() {
            // One write and a flush, because the arena doesn't receive an answer in a buffer.
            let line = format!("{}\n", Value::Object(reply));
            out.write_all(line.as_bytes())?;
            out.flush()?;
        }
    }
    Ok(())
}

/// Writes a line to stderr, which is the agent's log. `println!` would write to stdout, which is reserved for the
/// protocol.
pub fn log(line: &str) {
    // The match continues without a log.
    let _ = writeln!(io::stderr(), "{line}");
}

/// Returns the members of a list; none for other values.
pub fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn read(line: &[u8]) -> Map<String, Value> {
    match serde_json::from_slice(line) {
        Ok(Value::Object(message)) => message,
        Ok(_) => Map::new(),
        Err(error) => {
            log(&format!("not JSON: {error}"));
            Map::new()
        }
    }
}
