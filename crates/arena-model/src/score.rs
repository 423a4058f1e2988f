//! Scores, attributions and the category of a finished game.

use serde::{Deserialize, Serialize, Serializer};
use utoipa::ToSchema;

use crate::Seat;

/// How well one player did: `security` for what it kept to itself, `utility` for what it achieved.
/// What the numbers mean is the challenge's; mostly 1 is success and -1 failure.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize, ToSchema)]
pub struct Score {
    /// How well the player protected what is private.
    #[serde(serialize_with = "as_json_number")]
    pub security: f64,
    /// How well the player did its task.
    #[serde(serialize_with = "as_json_number")]
    pub utility: f64,
}

/// Whole numbers are written without a fraction (`1`, not `1.0`), as every JSON writer of the field's clients does:
/// the text of scores is part of an operator message that agents parse.
fn as_json_number<S: Serializer>(value: &f64, serializer: S) -> Result<S::Ok, S::Error> {
    // 2^53: up to here an f64 holds every whole number.
    if value.fract() == 0.0 && value.abs() <= 9_007_199_254_740_992.0 {
        serializer.serialize_i64(*value as i64)
    } else {
        serializer.serialize_f64(*value)
    }
}

/// A record that one player caused something to happen to another, such as `security_breach`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attribution {
    /// Who caused it.
    pub from: Seat,
    /// Whom it befell.
    pub to: Seat,
    /// What it was; the set is the challenge's.
    pub kind: String,
}

/// What a finished game is good for: training data, a test, or a measurement among benchmark models.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum GameCategory {
    /// Nobody is known, or two or more players aren't benchmark models. Also every game that hasn't ended.
    Train,
    /// Exactly one player isn't a benchmark model.
    Test,
    /// All players are benchmark models.
    Benchmark,
}

impl GameCategory {
    /// The category of a game in which `identified` players had an identity and `others` of the players aren't
    /// benchmark models.
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
    fn scores_are_written_as_javascript_writes_them() {
        let text = |security, utility| serde_json::to_string(&Score { security, utility }).expect("numbers");
        assert_eq!(text(1.0, -1.0), r#"{"security":1,"utility":-1}"#);
        assert_eq!(text(-0.0, 0.25), r#"{"security":0,"utility":0.25}"#);
        assert_eq!(text(0.1 + 0.2, 1e300), r#"{"security":0.30000000000000004,"utility":1e+300}"#);
    }
}
