//! Agents in Python that speak the protocol of matches.

/// Returns the code of an agent. It runs the statements `before` at its start, and answers each `state` with the value of
/// the expression `actions`. `me` is its id.
pub fn python_bot(before: &str, actions: &str) -> String {
    format!(
        r#"import json, sys, time
{before}
for line in sys.stdin:
    message = json.loads(line)
    state = message.get("world_state")
    if "ping" in message:
        reply = {{"pong": "pong"}}
    elif "set_agent_id" in message:
        me = message["set_agent_id"]
        reply = {{"agent_id": me}}
    elif state:
        reply = {{"agent_id": me, "actions": {actions}}}
    else:
        break
    print(json.dumps(reply), flush=True)
"#
    )
}

/// Returns the code of a deterministic snake agent, whose moves depend on a salt. It takes `pause` seconds for a step.
pub fn snake_bot(before: &str, salt: u32, pause: f64) -> String {
    let turn = format!(r#"["UP", "RIGHT", "DOWN", "LEFT"][(state["epoch"] // {salt} + {salt}) % 4]"#);
    python_bot(before, &format!(r#"[time.sleep({pause}), {{"action": "move", "move": {turn}}}][1:]"#))
}
