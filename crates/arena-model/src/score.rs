//! Scores, attributions and the category of a finished game.

use serde::{Deserialize, Serialize, Serializer};
use utoipa::ToSchema;

use crate::Seat;

/// A player's score: `security` for the secrets it kept, `utility` for its task. The challenge defines the numbers;
/// usually 1 is success and -1 failure.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize, ToSchema)]
pub struct Score {
    /// The player's protection of private information.
    #[serde(serialize_with = "as_json_number")]
    pub security: f64,
    /// The player's success at its task.
    #[serde(serialize_with = "as_json_number")]
    pub utility: f64,
}

/// Serializes integers without a fraction (`1`, not `1.0`), as the clients' JSON libraries do. Agents parse this text
/// in the operator's message with the final scores.
fn as_json_number<S: Serializer>(value: &f64, serializer: S) -> Result<S::Ok, S::Error> {
    // 2^53: an f64 represents every integer up to here.
    if value.fract() == 0.0 && value.abs() <= 9_007_199_254_740_992.0 {
        serializer.serialize_i64(*value as i64)
    } else {
        serializer.serialize_f64(*value)
    }
}

/// A record that one player caused something to happen to another, such as `security_breach`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attribution {
    /// The seat that caused the event.
    pub from: Seat,
    /// The affected seat.
    pub to: Seat,
    /// The kind of event; each challenge defines its own.
    pub kind: String,
}

/// The use of a finished game: training data, a test, or a measurement among benchmark models.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum GameCategory {
    /// No player is identified, or at least two players aren't benchmark models. Also every game that hasn't ended.
    Train,
    /// Exactly one player isn't a benchmark model.
    Test,
    /// All players are benchmark models.
    Benchmark,
}

impl GameCategory {
    /// Returns the category of a game. `identified` is the number of players with an identity, and `others` the number
    /// of players that aren't benchmark models.
    pub fn of(identified: usize, others: usize) -> GameCategory {
        match (identified, others) {
            (0, _) => GameCategory::Train,
            (_, 0) => GameCategory::Benchmark,
            (_, 1) => GameCategory::Test,
            _ => GameCategory::Train,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scores_are_serialized_as_in_javascript() {
        let text = |security, utility| serde_json::to_string(&Score { security, utility }).expect("numbers");
        assert_eq!(text(1.0, -1.0), r#"{"security":1,"utility":-1}"#);
        assert_eq!(text(-0.0, 0.25), r#"{"security":0,"utility":0.25}"#);
        assert_eq!(text(0.1 + 0.2, 1e300), r#"{"security":0.30000000000000004,"utility":1e+300}"#);
    }
}
