//! The house bot of `ultimatum`. It accepts offers that reach its aim, and otherwise makes an offer that does. `easy`
//! aims at equal shares and accepts a little less. `normal` begins with more, and comes down to equal shares in the last
//! round. Neither goes below its reservation value.

use super::Talker;
use crate::{BotInfo, Heard, Step, Strength};

pub const BOT: Talker = Talker {
    easy: BotInfo { name: "even-splitter", motto: "proposes equal shares" },
    normal: BotInfo { name: "haggler", motto: "begins with a large share for itself and comes down to equal shares" },
    next,
};

/// The share of an equal split that `easy` accepts.
const MODEST: f64 = 0.8;

/// The share of an equal split that `normal` wants on top of it in the first round.
const GREED: f64 = 0.3;

/// The current turn, from the operator's announcement.
struct AnnouncedTurn {
    player: usize,
    round: usize,
    rounds: usize,
}

pub struct OwnTurn {
    /// The bot's number, from 1.
    pub number: usize,
    pub players: usize,
    pub total: u64,
    /// The smallest share that makes a deal worthwhile for the bot.
    reservation: u64,
    round: usize,
    rounds: usize,
    /// The current offer: the proposer's number, and the shares.
    pub offer: Option<(usize, Vec<u64>)>,
}

impl OwnTurn {
    /// Parses the messages. Returns `None` if it isn't the bot's turn.
    pub fn read(heard: &Heard<'_>) -> Option<OwnTurn> {
        let AnnouncedTurn { player, round, rounds } = heard.operator_texts().filter_map(turn_in).last()?;
        // Players are numbered in the order in which they joined, which is the order of the private values.
        let number = heard.recipients().position(|player| player == heard.me)? + 1;
        if player != number {
            return None;
        }
        let value = |prefix: &str| heard.operator_texts().find_map(|text| number_after(text, prefix));
        let reservation = reservation(heard)?;
        let (total, players) = (value("- Total to split: ")?, usize::try_from(value("- Players: ")?).ok()?);
        let mut offer = None;
        for text in heard.operator_texts() {
            if let Some(shares) = offer_in(text) {
                offer = Some(shares);
            } else if text.contains("rejects the offer.") {
                offer = None;
            }
        }
        Some(OwnTurn { number, players, total, reservation, round, rounds, offer })
    }

    pub fn is_last(&self) -> bool {
        self.round == self.rounds
    }
}

/// Returns the smallest share that makes a deal worthwhile for the bot.
pub fn reservation(heard: &Heard<'_>) -> Option<u64> {
    heard.operator_texts().find_map(|text| number_after(text, "Your private reservation value is: "))
}

fn next(heard: &Heard<'_>, strength: Strength, _random: u64) -> Option<Step> {
    let OwnTurn { number, players, total, reservation, round, rounds, offer } = OwnTurn::read(heard)?;
    let least = (reservation + 1).min(total);
    let fair = total as f64 / players as f64;
    let progress = (round - 1) as f64 / (rounds - 1).max(1) as f64;
    let (aim, enough) = match strength {
        Strength::Easy => (fair, fair * MODEST),
        Strength::Normal => {
            let aim = fair * (1.0 + GREED * (1.0 - progress));
            (aim, aim)
        }
    };
    let within = |share: f64| (share.ceil() as u64).clamp(least, total);
    let enough = if round == rounds { least } else { within(enough) };
    let share =
        offer.filter(|(proposer, _)| *proposer != number).and_then(|(_, shares)| shares.get(number - 1).copied());
    let (method, content) = match share.is_some_and(|share| share >= enough) {
        true => ("accept", "yes".to_owned()),
        false => ("submit_offer", split(total, players, number, within(aim))),
    };
    Some(Step::Act { method: method.to_owned(), content })
}

/// Formats an offer with the share `mine` for player `number`, and equal shares for the others.
pub fn split(total: u64, players: usize, number: usize, mine: u64) -> String {
    let others = (players - 1).max(1) as u64;
    let (each, mut rest) = ((total - mine) / others, (total - mine) % others);
    let share = |player: usize| {
        if player == number {
            return mine;
        }
        let more = u64::from(rest > 0);
        rest -= more;
        each + more
    };
    (1..=players).map(share).map(|share| share.to_string()).collect::<Vec<_>>().join(", ")
}

/// Parses the last line of a text: `Player 2's turn. (Round 1/10)`.
fn turn_in(text: &str) -> Option<AnnouncedTurn> {
    let (player, rest) = text.lines().last()?.strip_prefix("Player ")?.split_once("'s turn. (Round ")?;
    let (round, rounds) = rest.strip_suffix(')')?.split_once('/')?;
    Some(AnnouncedTurn { player: player.parse().ok()?, round: round.parse().ok()?, rounds: rounds.parse().ok()? })
}

/// Parses the number that follows `prefix` at the start of a line.
pub fn number_after(text: &str, prefix: &str) -> Option<u64> {
    let rest = text.lines().find_map(|line| line.strip_prefix(prefix))?;
    rest.split(|char: char| !char.is_ascii_digit()).next()?.parse().ok()
}

/// Parses an offer, `Player 1 proposes: Player 1: 60, Player 2: 40`: the proposer's number, and the shares.
fn offer_in(text: &str) -> Option<(usize, Vec<u64>)> {
    let (proposer, shares) = text.strip_prefix("Player ")?.split_once(" proposes: ")?;
    let share = |part: &str| part.split_once(": ")?.1.parse().ok();
    Some((proposer.parse().ok()?, shares.split(", ").map(share).collect::<Option<_>>()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::talkers::next;

    const START: [&str; 3] = [
        "operator > you: (redacted)",
        "operator > me: Your private reservation value is: 20. This is the minimum share",
        "operator > all: Ultimatum game started!\n- Total to split: 100\n- Players: 2\n- Max rounds: 4\n\nPlayer 1's turn. (Round 1/4)",
    ];

    #[track_caller]
    fn check(strength: Strength, more: &[&str], expected: &str) {
        let operator: Vec<&str> = START.iter().chain(more).copied().collect();
        assert_eq!(next(&BOT, strength, &operator, &[], false), expected);
    }

    #[test]
    fn it_waits_for_its_turn() {
        check(Strength::Normal, &[], "wait");
        check(Strength::Normal, &["operator > all: Player 1's turn. (Round 2/4)"], "wait");
    }

    #[test]
    fn it_accepts_enough_and_offers_otherwise() {
        let offered = |shares: &str, strength, expected: &str| {
            let offer = format!("operator > all: Player 1 proposes: {shares}");
            check(strength, &[&offer, "operator > all: Player 2's turn. (Round 1/4)"], expected);
        };
        offered("Player 1: 60, Player 2: 40", Strength::Easy, "accept yes");
        offered("Player 1: 60, Player 2: 40", Strength::Normal, "submit_offer 35, 65");
        offered("Player 1: 30, Player 2: 70", Strength::Normal, "accept yes");
        offered("Player 1: 70, Player 2: 30", Strength::Easy, "submit_offer 50, 50");
    }

    #[test]
    fn it_takes_any_gain_in_the_last_round_but_no_loss() {
        let offered = |shares: &str, expected: &str| {
            let offer = format!("operator > all: Player 1 proposes: {shares}");
            check(Strength::Normal, &[&offer, "operator > all: Player 2's turn. (Round 4/4)"], expected);
        };
        offered("Player 1: 79, Player 2: 21", "accept yes");
        offered("Player 1: 81, Player 2: 19", "submit_offer 50, 50");
    }

    #[test]
    fn a_rejected_offer_is_gone() {
        let more = [
            "operator > all: Player 1 proposes: Player 1: 10, Player 2: 90",
            "operator > all: Player 1 rejects the offer. The table is cleared.",
            "operator > all: Player 2's turn. (Round 4/4)",
        ];
        check(Strength::Normal, &more, "submit_offer 50, 50");
    }

    #[test]
    fn shares_add_up() {
        assert_eq!(split(100, 3, 2, 33), "34, 33, 33");
        assert_eq!(split(1, 2, 1, 1), "1, 0");
    }
}
