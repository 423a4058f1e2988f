//! Messages to agents. Each message is a JSON object on one line.

use arena_model::{AgentId, Dialect};
use serde_json::{Map, Value, json};

/// Returns the `ping`, the first message to an agent.
pub fn ping() -> Vec<u8> {
    line(&json!({"ping": "ping"}))
}

/// Returns the message `set_agent_id`, with the agent's id and the game's constants.
pub fn set_agent_id(id: &AgentId, config: &Map<String, Value>) -> Vec<u8> {
    line(&json!({"set_agent_id": id, "config": config}))
}

/// The last message to an agent. `is_cheating` is true if the agent was disqualified for cheating.
pub fn stop(is_cheating: bool) -> Vec<u8> {
    line(&json!({"stop": {"reason": if is_cheating { "cheating_detected" } else { "end_of_game" }}}))
}

/// Appends the message with a state to `out`. `members` is the JSON text of the state's members, without
/// braces. `clocks` is the JSON text of the clocks in a match with time controls.
pub fn state(dialect: Dialect, members: &[u8], remaining_overage_ms: u64, clocks: Option<&str>, out: &mut Vec<u8>) {
    let mut digits = itoa::Buffer::new();
    let overage = digits.format(remaining_overage_ms).as_bytes();
    let body = |out: &mut Vec<u8>| {
        out.extend_from_slice(members);
        out.extend_from_slice(br#","remaining_overage_ms":"#);
        out.extend_from_slice(overage);
        if let Some(clocks) = clocks {
            out.extend_from_slice(br#","clocks":"#);
            out.extend_from_slice(clocks.as_bytes());
        }
        out.push(b'}');
    };
    out.push(b'{');
    match dialect {
        Dialect::Spec => {
            out.extend_from_slice(br#""world_state":{"#);
            body(out);
            out.push(b'}');
        }
        Dialect::Flat => body(out),
        Dialect::Both => {
            out.extend_from_slice(br#""world_state":{"#);
            body(out);
            out.push(b',');
            body(out);
        }
    }
    out.push(b'\n');
}

fn line(message: &Value) -> Vec<u8> {
    let mut line = message.to_string().into_bytes();
    line.push(b'\n');
    line
}

#[cfg(test)]
mod tests {
    use arena_model::{Seat, Seed, Setup};
    use expect_test::expect;

    use super::*;

    /// The keys of the protocol and of every state. A game's own keys must differ from them.
    const RESERVED: &str = "ping set_agent_id config world_state stop epoch agent_ids remaining_overage_ms clocks";

    #[test]
    fn no_game_uses_the_keys_of_the_protocol() {
        for game in arena_games::games() {
            let seed = Seed::from_number(1);
            let agents = arena_model::agent_ids(&seed, *game.seats.end());
            let game = game.start(&Map::new(), Setup { seed, agents }).unwrap();
            let mut state = b"{".to_vec();
            game.write_state(Seat(0), &mut state);
            state.push(b'}');
            let state: Map<String, Value> = serde_json::from_slice(&state).unwrap();
            let taken: Vec<&String> = state.keys().filter(|key| RESERVED.split(' ').any(|name| name == *key)).collect();
            assert!(taken.is_empty(), "{}: {taken:?}", game.game_type().name);
        }
    }

    #[test]
    fn messages_are_lines_of_json() {
        let mut actual = Vec::new();
        let id = "a".parse().unwrap();
        let config = Map::from_iter([("n_epochs".to_owned(), json!(3))]);
        for message in [ping(), set_agent_id(&id, &config), stop(false), stop(true)] {
            actual.extend(message);
        }
        for dialect in [Dialect::Both, Dialect::Spec, Dialect::Flat] {
            state(dialect, br#""a":1,"epoch":2"#, 20_000, None, &mut actual);
        }
        state(Dialect::Spec, br#""a":1"#, 7, Some(r#"{"me":{"move_ms":5}}"#), &mut actual);
        expect![[r#"
            {"ping":"ping"}
            {"config":{"n_epochs":3},"set_agent_id":"a"}
            {"stop":{"reason":"end_of_game"}}
            {"stop":{"reason":"cheating_detected"}}
            {"world_state":{"a":1,"epoch":2,"remaining_overage_ms":20000},"a":1,"epoch":2,"remaining_overage_ms":20000}
            {"world_state":{"a":1,"epoch":2,"remaining_overage_ms":20000}}
            {"a":1,"epoch":2,"remaining_overage_ms":20000}
            {"world_state":{"a":1,"remaining_overage_ms":7,"clocks":{"me":{"move_ms":5}}}}
        "#]]
        .assert_eq(&String::from_utf8(actual).unwrap());
    }
}
