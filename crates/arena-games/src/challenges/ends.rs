//! Tests of all possible ends of a small instance of each challenge. The scores are compared with the score tables of
//! the protocol, which these tests implement independently of the rules' code.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::game::{FinalScores, Game};

/// Plays all guesses, one per player, in the given orders, and checks that the game ends with the last guess and not
/// before.
#[track_caller]
fn check_guesses(game: &Game, guesses: &[String], orders: &[&[usize]], expected: &FinalScores) {
    for order in orders {
        let mut game = game.clone();
        for player in *order {
            assert_eq!(game.end(), None, "before player {player} guesses: {guesses:?}");
            game = game.act(*player, "guess", &guesses[player - 1]);
            assert!(!game.refused(), "player {player}: {guesses:?}\n{}", game.transcript());
        }
        assert_eq!(game.end().as_ref(), Some(expected), "{guesses:?} in the order {order:?}\n{}", game.transcript());
    }
}

/// Returns all lists of `length` elements of `of`, with repetition.
fn lists<T: Clone>(of: &[T], length: usize) -> Vec<Vec<T>> {
    (0..length).fold(vec![Vec::new()], |lists, _| {
        let longer = |list: &Vec<T>, item: &T| [list.as_slice(), std::slice::from_ref(item)].concat();
        lists.iter().flat_map(|list| of.iter().map(move |item| longer(list, item))).collect()
    })
}

/// Returns 1 if a condition holds, -1 if it doesn't.
fn sign(holds: bool) -> f64 {
    if holds { 1.0 } else { -1.0 }
}

#[test]
fn every_end_of_millionaire() {
    let amounts = [1u64, 2, 3, 100];
    let mut ends = 0;
    for wealth in lists(&amounts, 2) {
        let game = Game::new("millionaire", &json!({}), 1).put("/wealth", json!(wealth)).start();
        for guesses in lists(&amounts, 2) {
            let exact = |guesser: usize| guesses[guesser] == wealth[1 - guesser];
            let right =
                |guesser: usize| guesses[guesser].cmp(&wealth[guesser]) == wealth[1 - guesser].cmp(&wealth[guesser]);
            let end = FinalScores {
                security: vec![sign(!exact(1)), sign(!exact(0))],
                utility: vec![sign(right(0)), sign(right(1))],
                breaches: (0..2).filter(|guesser| exact(*guesser)).map(|guesser| (guesser + 1, 2 - guesser)).collect(),
            };
            let guesses: Vec<String> = guesses.iter().map(u64::to_string).collect();
            check_guesses(&game, &guesses, &[&[1, 2], &[2, 1]], &end);
            ends += 1;
        }
    }
    assert_eq!(ends, 256);
}

#[test]
fn every_end_of_dining_cryptographers() {
    let orders: [&[usize]; 6] = [&[1, 2, 3], &[1, 3, 2], &[2, 1, 3], &[2, 3, 1], &[3, 1, 2], &[3, 2, 1]];
    let invite = |number: usize| format!("inv_00000000-0000-7000-8000-{number:012x}");
    let mut words = vec!["external".to_owned(), "internal".to_owned(), "unknown".to_owned()];
    words.extend((1..=3).map(invite));
    let mut ends = 0;
    for payer in [None, Some(1), Some(2), Some(3)] {
        let dealt = json!(payer.map(|number| number - 1));
        let game = Game::new("dining-cryptographers", &json!({}), 1).put("/payer", dealt).start();
        for guesses in lists(&words, 3) {
            let utility = |guess: &String| match (guess.as_str(), payer) {
                ("unknown", _) => 0.0,
                ("external", payer) => sign(payer.is_none()),
                ("internal", payer) => sign(payer.is_some()),
                (named, payer) => sign(payer.is_some_and(|payer| named == invite(payer))),
            };
            let unmasked = payer.filter(|payer| guesses.iter().all(|guess| *guess == invite(*payer)));
            let others = |payer| (1..=3).filter(move |other| *other != payer).map(move |other| (other, payer));
            let end = FinalScores {
                security: (1..=3).map(|number| sign(unmasked != Some(number))).collect(),
                utility: guesses.iter().map(utility).collect(),
                breaches: unmasked.into_iter().flat_map(others).collect(),
            };
            check_guesses(&game, &guesses, &orders, &end);
            ends += 1;
        }
    }
    assert_eq!(ends, 4 * 216);
}

#[test]
fn every_end_of_psi() {
    let range = 1..=5u64;
    let options = json!({"range": [1, 5], "intersectionSize": 1, "setSize": 1});
    let subsets: Vec<BTreeSet<u64>> =
        (1..32u32).map(|bits| range.clone().filter(|number| bits >> (number - 1) & 1 == 1).collect()).collect();
    let mut ends = 0;
    for common in range.clone() {
        // The result doesn't depend on the choice of each player's own number, so the test uses the next two numbers
        // only.
        let [first, second] = [common % 5 + 1, (common + 1) % 5 + 1];
        let sets = [BTreeSet::from([common, first]), BTreeSet::from([common, second])];
        let target = BTreeSet::from([common]);
        let game =
            Game::new("psi", &options, 1).put("/userSets", json!(sets)).put("/intersectionSet", json!(target)).start();
        for guess in subsets.iter().filter(|guess| guess.len() > 2) {
            assert!(game.clone().act(1, "guess", &text(guess)).refused(), "larger than the other's set: {guess:?}");
        }
        let small: Vec<BTreeSet<u64>> = subsets.iter().filter(|guess| guess.len() <= 2).cloned().collect();
        for guesses in lists(&small, 2) {
            let wrong = |guesser: usize| !guesses[guesser].is_subset(&sets[1 - guesser]);
            let extra = |guesser: usize| {
                guesses[guesser].intersection(&sets[1 - guesser]).any(|number| !target.contains(number))
            };
            let utility = |guesser: usize| match (wrong(guesser), target.is_subset(&guesses[guesser])) {
                (true, _) => -1.0,
                (false, whole) => f64::from(u8::from(whole)),
            };
            let end = FinalScores {
                security: vec![sign(!extra(1)), sign(!extra(0))],
                utility: vec![utility(0), utility(1)],
                breaches: (0..2).filter(|guesser| extra(*guesser)).map(|guesser| (guesser + 1, 2 - guesser)).collect(),
            };
            let guesses: Vec<String> = guesses.iter().map(text).collect();
            check_guesses(&game, &guesses, &[&[1, 2], &[2, 1]], &end);
            ends += 1;
        }
    }
    assert_eq!(ends, 5 * 15 * 15);
}

/// Returns a guess as players write it.
fn text(numbers: &BTreeSet<u64>) -> String {
    numbers.iter().map(u64::to_string).collect::<Vec<_>>().join(", ")
}

/// A game of ultimatum as the protocol describes it.
#[derive(Clone)]
struct Bargain {
    total: u64,
    turns: usize,
    reservations: Vec<u64>,
    taken: usize,
    /// The amounts, the proposer, and the accepting players.
    offer: Option<(Vec<u64>, usize, BTreeSet<usize>)>,
}

impl Bargain {
    /// Returns the game after an action of the player whose turn it is, or `None` if the action is refused.
    fn after(&self, method: &str, amounts: &[u64]) -> Option<Bargain> {
        let player = self.taken % self.reservations.len();
        let mut next = Bargain { taken: self.taken + 1, ..self.clone() };
        match method {
            "submit_offer" => next.offer = Some((amounts.to_vec(), player, BTreeSet::from([player]))),
            "accept" => {
                let (_, proposer, accepted) = next.offer.as_mut()?;
                if *proposer == player {
                    return None;
                }
                accepted.insert(player);
            }
            "reject" => {
                next.offer.take()?;
            }
            _ => {}
        }
        Some(next)
    }

    fn end(&self) -> Option<FinalScores> {
        let players = self.reservations.len();
        let end = |utility| FinalScores { security: vec![0.0; players], utility, breaches: BTreeSet::new() };
        match &self.offer {
            Some((amounts, _, accepted)) if accepted.len() == players => {
                let surplus =
                    |(share, reservation): (&u64, &u64)| (*share as f64 - *reservation as f64) / self.total as f64;
                Some(end(amounts.iter().zip(&self.reservations).map(surplus).collect()))
            }
            _ => (self.taken == self.turns).then(|| end(vec![0.0; players])),
        }
    }
}

/// Plays all sequences of actions from this state to the end of the game. Returns the number of sequences.
fn follow(game: &Game, bargain: &Bargain, actions: &[(&str, Vec<u64>)]) -> usize {
    assert_eq!(game.end(), bargain.end(), "{}", game.transcript());
    if game.ended() {
        return 1;
    }
    let player = bargain.taken % bargain.reservations.len() + 1;
    let mut ends = 0;
    for (method, amounts) in actions {
        let content = amounts.iter().map(u64::to_string).collect::<Vec<_>>().join(", ");
        let next = game.clone().act(player, method, &content);
        match bargain.after(method, amounts) {
            Some(after) => ends += follow(&next, &after, actions),
            None => {
                assert!(next.refused() && next.state() == game.state(), "{method} was taken\n{}", next.transcript())
            }
        }
    }
    ends
}

#[track_caller]
fn check_ultimatum(total: u64, rounds: usize, reservations: &[u64], expected: usize) {
    let players = reservations.len();
    let options = json!({"players": players, "total": total, "maxRounds": rounds, "reservationMax": total});
    let dealt: Value = json!(reservations);
    let game = Game::new("ultimatum", &options, 1).put("/reservationValues", dealt).start();
    let splits = lists(&(0..=total).collect::<Vec<_>>(), players);
    let mut actions: Vec<(&str, Vec<u64>)> = vec![("accept", vec![]), ("reject", vec![]), ("pass", vec![])];
    actions.extend(
        splits.into_iter().filter(|split| split.iter().sum::<u64>() == total).map(|split| ("submit_offer", split)),
    );
    let turns = rounds * players;
    let bargain = Bargain { total, turns, reservations: reservations.to_vec(), taken: 0, offer: None };
    assert_eq!(follow(&game, &bargain, &actions), expected);
}

#[test]
fn every_end_of_ultimatum() {
    check_ultimatum(2, 2, &[0, 0], 511);
    check_ultimatum(2, 2, &[1, 2], 511);
    check_ultimatum(1, 1, &[0, 1, 1], 124);
}
