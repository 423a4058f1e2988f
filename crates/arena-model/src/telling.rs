//! Sentences about the result of an ended session, and remarks on the messages that gave away a secret. All input is
//! public data of the ended session.

use crate::{Attribution, Score, Seat};

/// The public data of an ended session.
#[derive(Debug, Clone, Copy)]
pub struct EndedGame<'e> {
    /// The players' names by seat.
    pub names: &'e [String],
    /// The scores by seat.
    pub scores: &'e [Score],
    pub attributions: &'e [Attribution],
    /// The state of the rules as JSON. `{}` in imported sessions without it.
    pub state: &'e str,
}

/// A player's message in an ended session.
#[derive(Debug, Clone, Copy)]
pub struct Said<'m> {
    pub seat: Seat,
    /// The called method; `None` for chat.
    pub method: Option<&'m str>,
    pub content: &'m str,
}

impl EndedGame<'_> {
    pub fn name(&self, seat: Seat) -> &str {
        self.names.get(seat.0).map_or("a player", String::as_str)
    }

    /// Returns the utility of the player at a seat; 0 without a score.
    pub fn utility(&self, seat: Seat) -> f64 {
        self.scores.get(seat.0).map_or(0.0, |score| score.utility)
    }

    pub fn seats(&self) -> impl Iterator<Item = Seat> + Clone + use<> {
        (0..self.names.len()).map(Seat)
    }

    /// Returns the breaches of security: the player that learned a secret, and the player whose secret it was.
    pub fn breaches(&self) -> impl Iterator<Item = (Seat, Seat)> {
        self.attributions.iter().filter(|each| each.kind == "security_breach").map(|each| (each.from, each.to))
    }

    /// Returns true if the player at a seat learned the secret of another.
    pub fn has_breached(&self, seat: Seat) -> bool {
        self.breaches().any(|(from, _)| from == seat)
    }

    /// Returns the names of the players at these seats: `Ada`, `Ada and Bob`, `Ada, Bob and Grace`.
    pub fn name_list(&self, seats: &[Seat]) -> String {
        let names: Vec<&str> = seats.iter().map(|seat| self.name(*seat)).collect();
        join_words(&names)
    }

    /// Returns one sentence. Players with the same clause share it: `Ada found it; Bob and Grace missed it.`
    pub fn tell_each(&self, seats: impl Iterator<Item = Seat>, clause: impl Fn(Seat) -> String) -> String {
        let mut groups: Vec<(String, Vec<Seat>)> = Vec::new();
        for seat in seats {
            let text = clause(seat);
            match groups.iter_mut().find(|(other, _)| *other == text) {
                Some((_, group)) => group.push(seat),
                None => groups.push((text, vec![seat])),
            }
        }
        let clauses: Vec<String> =
            groups.iter().map(|(text, group)| format!("{} {text}", self.name_list(group))).collect();
        format!("{}.", clauses.join("; "))
    }

    /// Returns the greatest utility, and the seats of the players that have it.
    fn best(&self) -> (f64, Vec<Seat>) {
        let best = self.scores.iter().map(|score| score.utility).fold(f64::NEG_INFINITY, f64::max);
        (best, self.seats().filter(|seat| self.utility(*seat) >= best).collect())
    }

    /// Returns the names of the players with the greatest utility, and this utility as a text. `None` if all players
    /// have the same utility, or there are no scores.
    pub fn winners(&self) -> Option<(String, String)> {
        let (best, first) = self.best();
        let is_won = !self.scores.is_empty() && first.len() < self.names.len();
        is_won.then(|| (self.name_list(&first), in_short(best)))
    }

    /// Returns a sentence about the scores, for challenges without a sentence of their own.
    pub fn tell_scores(&self) -> String {
        let (best, first) = self.best();
        let breaches: Vec<String> = self
            .breaches()
            .map(|(from, to)| format!("{} learned a secret of {}", self.name(from), self.name(to)))
            .collect();
        let result = match first[..] {
            _ if self.scores.is_empty() => "The game ended without scores".to_owned(),
            [winner] => format!("{} did best, with a utility of {}", self.name(winner), in_short(best)),
            _ if first.len() == self.names.len() => {
                let all = if first.len() == 2 { "both" } else { "all" };
                format!("{} {all} got a utility of {}", self.name_list(&first), in_short(best))
            }
            _ => format!("{} did best, with a utility of {} each", self.name_list(&first), in_short(best)),
        };
        let clauses: Vec<String> = std::iter::once(result).chain(breaches).collect();
        format!("{}.", clauses.join("; "))
    }
}

/// Joins words to a list: `a`, `a and b`, `a, b and c`.
pub(crate) fn join_words(words: &[&str]) -> String {
    match words {
        [] => String::new(),
        [only] => (*only).to_owned(),
        [most @ .., last] => format!("{} and {last}", most.join(", ")),
    }
}

/// Formats a number with at most two digits after the point, and with a minus sign.
pub(crate) fn in_short(number: f64) -> String {
    let text = format!("{number:.2}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    if text == "-0" { "0".to_owned() } else { text.replace('-', "−") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(names: &[&str], utilities: &[f64], breaches: &[(usize, usize)], expected: &str) {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let scores: Vec<Score> = utilities.iter().map(|utility| Score { security: 0.0, utility: *utility }).collect();
        let attribute = |(from, to): &(usize, usize)| Attribution {
            from: Seat(*from),
            to: Seat(*to),
            kind: "security_breach".to_owned(),
        };
        let attributions: Vec<Attribution> = breaches.iter().map(attribute).collect();
        let ended = EndedGame { names: &names, scores: &scores, attributions: &attributions, state: "{}" };
        assert_eq!(ended.tell_scores(), expected);
    }

    #[test]
    fn a_result_without_a_sentence_of_its_own_is_told_from_the_scores() {
        check(&["Ada", "Bob"], &[1.0, -1.0], &[], "Ada did best, with a utility of 1.");
        check(&["Ada", "Bob"], &[0.0, 0.0], &[], "Ada and Bob both got a utility of 0.");
        check(&["Ada", "Bob", "Eve"], &[0.5, 0.5, 0.5], &[], "Ada, Bob and Eve all got a utility of 0.5.");
        check(&["Ada", "Bob", "Eve"], &[0.5, 0.5, 0.0], &[], "Ada and Bob did best, with a utility of 0.5 each.");
        check(&["Ada", "Bob"], &[-0.25, -1.0], &[], "Ada did best, with a utility of −0.25.");
        check(
            &["Ada", "Bob"],
            &[1.0, 0.0],
            &[(0, 1)],
            "Ada did best, with a utility of 1; Ada learned a secret of Bob.",
        );
        check(&["Ada", "Bob"], &[], &[], "The game ended without scores.");
    }
}
