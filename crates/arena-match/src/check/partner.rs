//! The partner: the opponent of a checked agent. It reads the state as agents do, and does just enough for
//! the game to continue.

use serde_json::{Value, json};

/// Returns a list. `draw` returns a number below its argument.
pub fn actions(me: &str, state: &Value, draw: impl FnOnce(usize) -> usize) -> Value {
    let action = match state {
        // Chess: any legal move.
        _ if state["legal_moves"].is_array() => {
            let moves = state["legal_moves"].as_array().map_or(&[][..], Vec::as_slice);
            (!moves.is_empty()).then(|| moves[draw(moves.len())].clone())
        }
        // Snake: away from walls and snakes.
        _ if state["snakes"][me].is_object() => free_direction(me, state).map(Value::from),
        // In the other games an agent may do nothing.
        _ => None,
    };
    action.map_or_else(|| json!([]), |action| json!([{"action": "move", "move": action}]))
}

fn free_direction(me: &str, state: &Value) -> Option<&'static str> {
    let cell = |value: &Value| Some((value[0].as_i64()?, value[1].as_i64()?));
    let (width, height) = (state["grid"]["width"].as_i64()?, state["grid"]["height"].as_i64()?);
    let head = cell(&state["snakes"][me]["head_position"])?;
    let snakes = state["snakes"].as_object()?.values();
    let taken: Vec<(i64, i64)> =
        snakes.filter_map(|snake| snake["positions"].as_array()).flatten().filter_map(cell).collect();
    let is_free = |(x, y)| (0..width).contains(&x) && (0..height).contains(&y) && !taken.contains(&(x, y));
    let steps = [("UP", (0, -1)), ("RIGHT", (1, 0)), ("DOWN", (0, 1)), ("LEFT", (-1, 0))];
    steps.into_iter().find(|(_, (x, y))| is_free((head.0 + x, head.1 + y))).map(|(name, _)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_partner_moves_where_moves_are_needed() {
        let chess = json!({"legal_moves": ["a2a3", "b2b3"]});
        assert_eq!(actions("me", &chess, |count| count - 1), json!([{"action": "move", "move": "b2b3"}]));
        let snake = json!({
            "grid": {"width": 3, "height": 3},
            "snakes": {
                "me": {"head_position": [0, 0], "positions": [[0, 0], [0, 1]]},
                "you": {"head_position": [2, 0], "positions": [[2, 0], [2, 1]]},
            },
        });
        assert_eq!(actions("me", &snake, |_| 0), json!([{"action": "move", "move": "RIGHT"}]));
        assert_eq!(actions("me", &json!({"foods": []}), |_| 0), json!([]));
    }
}
