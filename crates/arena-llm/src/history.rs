//! The history that is sent to a model. If a long game exceeds the token limit, the oldest turns are dropped, except
//! the first turn and the latest state. Pure.

use serde_json::Value;

use crate::conversation::Turn;

/// The estimated number of bytes in a token, until the endpoint has reported a token count. JSON has fewer bytes in a
/// token than prose.
const BYTES_A_TOKEN: f64 = 3.0;

/// The minimum and maximum number of bytes in a token. If an endpoint's count implies another number, the bound
/// applies.
const BELIEVABLE: (f64, f64) = (1.0, 8.0);

/// The fraction of the limit to which a history is shortened. Each shortening invalidates the endpoint's cache, so the
/// history is shortened rarely, by many turns.
const SHARE: f64 = 0.75;

/// The turn in place of dropped turns.
const GAP: &str = "Messages and actions between here and the next turn are omitted to save tokens.";

#[derive(Debug, Clone)]
pub struct History {
    turns: Vec<Turn>,
    /// The estimated sizes of the turns in bytes.
    sizes: Vec<usize>,
    /// The index of the turn with the operator's latest messages.
    state: usize,
    /// True if the history was shortened: the second turn then states that turns are omitted.
    is_shortened: bool,
    /// Maximum number of tokens, of history and rules together.
    limit: u64,
    bytes_a_token: f64,
}

impl History {
    /// Creates an empty history with this limit, in tokens.
    pub fn of(limit: u64) -> History {
        let (turns, sizes) = (Vec::new(), Vec::new());
        History { turns, sizes, state: 0, is_shortened: false, limit, bytes_a_token: BYTES_A_TOKEN }
    }

    /// Returns the turns, oldest first. The first turn is a message to the model.
    pub fn turns(&self) -> &[Turn] {
        &self.turns
    }

    /// Adds a turn. `has_state` is true if the turn contains messages of the operator.
    pub fn push(&mut self, turn: Turn, has_state: bool) {
        if has_state {
            self.state = self.turns.len();
        }
        self.sizes.push(size(&turn));
        self.turns.push(turn);
    }

    /// Updates the estimate from an endpoint's token count for a question of `bytes` bytes.
    pub fn learn(&mut self, bytes: usize, tokens: u64) {
        if tokens > 0 {
            self.bytes_a_token = (bytes as f64 / tokens as f64).clamp(BELIEVABLE.0, BELIEVABLE.1);
        }
    }

    /// Drops the oldest turns if all of them, with `around` bytes of rules and tools, exceed the limit. Returns the
    /// number of dropped turns.
    pub fn shorten(&mut self, around: usize) -> usize {
        let mut bytes = around + self.sizes.iter().sum::<usize>();
        if self.tokens(bytes) <= self.limit as f64 {
            return 0;
        }
        let begin = 1 + usize::from(self.is_shortened);
        // The last answer and the turns after it stay, since the model hasn't seen these turns yet. Results of calls
        // are dropped together with the answer that contains the calls.
        let last_answer = self.turns.iter().rposition(|turn| turn.reply().is_some()).unwrap_or(0);
        let mut end = begin;
        let is_enough = |bytes| self.tokens(bytes) <= self.limit as f64 * SHARE;
        while end < last_answer && (!is_enough(bytes) || matches!(self.turns[end], Turn::Results(_))) {
            bytes -= if end == self.state { 0 } else { self.sizes[end] };
            end += 1;
        }
        let keeps_state = (begin..end).contains(&self.state);
        let left_out = end - begin - usize::from(keeps_state);
        if left_out == 0 {
            return 0;
        }
        let gap = Turn::Told(GAP.to_owned());
        let state = keeps_state.then(|| self.turns[self.state].clone());
        let sizes = [size(&gap)].into_iter().chain(state.as_ref().map(size));
        self.sizes.splice(1..end, sizes);
        self.state = match self.state {
            0 => 0,
            state if state < end => 2,
            state => state + 2 - end,
        };
        self.turns.splice(1..end, [gap].into_iter().chain(state));
        self.is_shortened = true;
        left_out
    }

    fn tokens(&self, bytes: usize) -> f64 {
        bytes as f64 / self.bytes_a_token
    }
}

/// Estimates the size of a turn in a request.
fn size(turn: &Turn) -> usize {
    match turn {
        Turn::Told(text) => text.len(),
        Turn::Answered(reply) => json_size(&reply.raw),
        Turn::Results(results) => results.iter().map(|result| result.text.len() + result.id.len()).sum(),
    }
}

/// Estimates the size of a value as JSON text.
fn json_size(value: &Value) -> usize {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => 4,
        Value::String(text) => text.len() + 2,
        Value::Array(items) => 1 + items.iter().map(|item| json_size(item) + 1).sum::<usize>(),
        Value::Object(entries) => {
            1 + entries.iter().map(|(key, value)| key.len() + json_size(value) + 4).sum::<usize>()
        }
    }
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};
    use serde_json::json;

    use super::*;
    use crate::conversation::{CallResult, Reply};

    fn answer(text: &str) -> Turn {
        Turn::Answered(Reply { raw: json!(text), text: text.to_owned(), ..Reply::default() })
    }

    fn result(text: &str) -> Turn {
        Turn::Results(vec![CallResult { id: String::new(), text: text.to_owned(), is_error: false }])
    }

    /// Creates turns of 30 bytes from the letters of `kinds` (`s`tate, `t`old, `a`nswer, `r`esult), shortens the
    /// history, and compares it. Each turn is shown as its letter and index.
    fn check(kinds: &str, limit: u64, expected: Expect) {
        let mut history = History::of(limit);
        for (place, kind) in kinds.chars().enumerate() {
            let text = format!("{kind}{place:-<27}");
            match kind {
                'a' => history.push(answer(&text), false),
                'r' => history.push(result(&format!("{text}--")), false),
                _ => history.push(Turn::Told(format!("{text}--")), kind == 's'),
            }
        }
        let left_out = history.shorten(0);
        let turns: Vec<String> = history.turns().iter().map(shown).collect();
        let again = history.shorten(0);
        expected.assert_eq(&format!(
            "{left_out}: {}; {again}; {}",
            turns.join(" "),
            shown(&history.turns()[history.state])
        ));
    }

    fn shown(turn: &Turn) -> String {
        let text = match turn {
            Turn::Told(text) if text.starts_with("Messages") => return "…".to_owned(),
            Turn::Told(text) => text.clone(),
            Turn::Answered(reply) => reply.text.clone(),
            Turn::Results(results) => results[0].text.clone(),
        };
        text.trim_end_matches('-').to_owned()
    }

    #[test]
    fn the_oldest_turns_are_left_out_but_never_the_first_and_the_latest_state() {
        // Each turn has 10 tokens.
        check("sarsarsarsar", 120, expect!["0: s0 a1 r2 s3 a4 r5 s6 a7 r8 s9 a10 r11; 0; s9"]);
        check("sarsarsarsar", 100, expect!["5: s0 … s6 a7 r8 s9 a10 r11; 0; s9"]);
        check("sarsarsarsar", 10, expect!["8: s0 … s9 a10 r11; 0; s9"]);
        // Every remaining result has its call.
        check("sararararar", 80, expect!["6: s0 … a7 r8 a9 r10; 0; s0"]);
        // The latest state is older than the messages after it.
        check("sarsartartar", 40, expect!["8: s0 … s3 a10 r11; 0; s3"]);
    }

    #[test]
    fn an_endpoints_own_count_is_learned() {
        let mut history = History::of(1000);
        history.learn(2000, 1000);
        assert_eq!(history.bytes_a_token, 2.0);
        history.learn(2000, 1);
        assert_eq!(history.bytes_a_token, 8.0);
        history.learn(2000, 0);
        assert_eq!(history.bytes_a_token, 8.0);
    }
}
