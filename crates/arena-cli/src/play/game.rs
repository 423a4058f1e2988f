//! Sentences about the outcomes of games of the Colosseum protocol. Pure.

use arena_players::GameOutcome;
use serde_json::Value;

use crate::output::counted;

/// Formats the outcome as a sentence. `name_of` returns the name of the player with an id.
pub fn outcome_sentence(outcome: &GameOutcome, name_of: impl Fn(&str) -> String) -> String {
    let epochs = counted(outcome.epochs, "epoch");
    let how = match outcome.termination.as_str() {
        "TAINTED" => " because the others are out".to_owned(),
        // The text omits the usual end, since some games have no other end.
        "" | "GAME_ENDED" => String::new(),
        word => format!(", by {}", in_words(word)),
    };
    let winners: Vec<String> = outcome.winners.iter().map(|id| name_of(id)).collect();
    let who = match winners.as_slice() {
        [] => "no winner".to_owned(),
        [winner] if winner.contains("(you)") => format!("{winner} have won"),
        [winner] => format!("{winner} has won"),
        several => format!("a draw between {}", several.join(" and ")),
    };
    let point = |score: &Value| score.as_f64().map_or_else(|| score.to_string(), |score| score.to_string());
    let mut points: Vec<String> =
        outcome.scores.iter().map(|(id, score)| format!("{} {}", name_of(id), point(score))).collect();
    points.sort_unstable();
    let points = if points.is_empty() { String::new() } else { format!("; points: {}", points.join(", ")) };
    format!("the game is over after {epochs}{how}: {who}{points}")
}

/// Converts a code of the protocol to words: `SEVENTYFIVE_MOVES` becomes "seventyfive moves".
fn in_words(word: &str) -> String {
    word.to_lowercase().replace('_', " ")
}

/// Formats a disqualification as a sentence with the player's name, the reason and the details.
pub fn out_sentence(name: &str, reason: &str, detail: &str) -> String {
    let detail = detail.trim();
    match reason {
        "RESIGNED" if detail.is_empty() || detail == "gave up" => format!("{name} gave up"),
        "RESIGNED" => format!("{name} gave up: {detail}"),
        _ if detail.is_empty() => format!("{name} is out ({})", in_words(reason)),
        _ => format!("{name} is out ({}): {detail}", in_words(reason)),
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    #[test]
    fn outcomes_are_sentences() {
        let name = |id: &str| if id == "a" { "Player 1 (you)".to_owned() } else { format!("Player {id}") };
        let lines: String = [
            r#"{"termination": "CHECKMATE", "epochs": 34, "scores": {"a": 1.0, "2": 0.0}, "winners": ["a"]}"#,
            r#"{"termination": "TAINTED", "epochs": 1, "scores": {"a": 0.0, "2": 0.0}, "winners": ["2"]}"#,
            r#"{"termination": "GAME_ENDED", "epochs": 9, "scores": {"2": 7, "3": 7}, "winners": ["2", "3"]}"#,
            r#"{"termination": "SEVENTYFIVE_MOVES", "epochs": 200, "winners": []}"#,
        ]
        .iter()
        .map(|text| outcome_sentence(&serde_json::from_str(text).expect("an outcome"), name) + "\n")
        .chain(
            [("TIMEOUT", "no answer in time"), ("RESIGNED", "gave up"), ("RESIGNED", "it's late"), ("CRASHED", "")]
                .map(|(reason, detail)| out_sentence("Player 2", reason, detail) + "\n"),
        )
        .collect();
        expect![[r#"
            the game is over after 34 epochs, by checkmate: Player 1 (you) have won; points: Player 1 (you) 1, Player 2 0
            the game is over after 1 epoch because the others are out: Player 2 has won; points: Player 1 (you) 0, Player 2 0
            the game is over after 9 epochs: a draw between Player 2 and Player 3; points: Player 2 7, Player 3 7
            the game is over after 200 epochs, by seventyfive moves: no winner
            Player 2 is out (timeout): no answer in time
            Player 2 gave up
            Player 2 gave up: it's late
            Player 2 is out (crashed)
        "#]]
        .assert_eq(&lines);
    }
}
