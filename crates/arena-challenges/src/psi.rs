//! Private Set Intersection: find out which numbers both have, and nothing else about the other's set.

use std::collections::BTreeSet;

use arena_model::{ChallengeMetadata, Method, Operator, OptionsError, Rejection, Rules, Seat, Seed, Table};
use serde::{Deserialize, Serialize};

use crate::numbers::{numbers_in, set_text};

/// Options of `psi`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct PsiOptions {
    /// Number of seats, 2 to 10.
    players: usize,
    /// Smallest and largest number that may be dealt.
    range: [u64; 2],
    /// How many numbers all players have in common.
    intersection_size: usize,
    /// How many numbers each player has besides.
    set_size: usize,
}

impl Default for PsiOptions {
    fn default() -> Self {
        PsiOptions { players: 2, range: [100, 900], intersection_size: 3, set_size: 10 }
    }
}

/// Most numbers in one set. Keeps the message that tells a player its set readable.
const MAX_SET: usize = 10_000;

/// One game of `psi`.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Psi {
    /// The numbers of each seat, the common ones among them.
    user_sets: Vec<BTreeSet<u64>>,
    /// The numbers that are in all sets.
    intersection_set: BTreeSet<u64>,
    /// What each seat has guessed.
    guesses: Vec<Option<BTreeSet<u64>>>,
}

impl Rules for Psi {
    const ID: &'static str = "psi";
    const OVERRIDABLE: &'static [&'static str] = &["range", "intersectionSize", "setSize"];
    type Options = PsiOptions;

    fn check(options: &PsiOptions) -> Result<(), OptionsError> {
        let PsiOptions { players, range: [low, high], intersection_size, set_size } = *options;
        let refuse = |text: String| Err(OptionsError(text));
        if !(2..=10).contains(&players) {
            return refuse(format!("players must be 2 to 10, not {players}"));
        }
        if low >= high || high > u64::from(u32::MAX) {
            return refuse(format!(
                "range must be two numbers, the smaller first, up to {}; not [{low}, {high}]",
                u32::MAX
            ));
        }
        if intersection_size > MAX_SET || set_size > MAX_SET {
            return refuse(format!("setSize and intersectionSize must be at most {MAX_SET}"));
        }
        if intersection_size + set_size == 0 {
            return refuse("setSize and intersectionSize can't both be 0".to_owned());
        }
        let needed = intersection_size + players * set_size;
        let available = high - low + 1;
        if needed as u64 > available {
            return refuse(format!(
                "range has {available} numbers, but intersectionSize + players × setSize needs {needed} different ones"
            ));
        }
        Ok(())
    }

    fn metadata(options: &PsiOptions) -> ChallengeMetadata {
        let PsiOptions { players, range: [low, high], intersection_size, set_size } = options;
        let whole = set_size + intersection_size;
        ChallengeMetadata {
            name: "Private Set Intersection".to_owned(),
            description: "Find the numbers that you and the others have in common, and give away nothing else."
                .to_owned(),
            players: *players,
            prompt: format!(
                "You hold a private set of {whole} different whole numbers between {low} and {high}. So does everybody else at \
                 the table ({players} players in all). {intersection_size} of your numbers are in every player's set; no other \
                 number is in two sets.\n\n\
                 Your aim: find out which numbers you all have in common, and keep the rest of your set to yourself.\n\n\
                 How it goes:\n\
                 1. When you join, the operator tells you your set in private: `Your private set is: {{…}}.`\n\
                 2. Talk to the other players in the chat, as much as you like. Whatever you write there, they read. They may \
                 be honest or not.\n\
                 3. Call the method `guess` once with the numbers that you believe all sets share, for example \
                 `101, 205, 880`. The guess is final. The operator tells you in private how good it was. The game ends when \
                 every player has guessed.\n\n\
                 Scores:\n\
                 - utility 1 if your guess holds all common numbers; 0 if some are missing; -1 if it holds a number that nobody \
                 else has.\n\
                 - security 1 if no other player's guess holds a number of yours that isn't in that player's own set; -1 if \
                 one does. So a player that learns your whole set can cost you your security, and you can cost others \
                 theirs."
            ),
            methods: vec![Method {
                name: "guess".to_owned(),
                description:
                    "Your only guess: the numbers that all players have in common, separated by commas, such as \
                              `101, 205, 880`."
                        .to_owned(),
            }],
            color: Some("#2f6f8f".to_owned()),
            icon: Some("intersect".to_owned()),
            authors: None,
            tags: Some(["privacy", "negotiation", "2-player"].map(str::to_owned).to_vec()),
            url: None,
        }
    }

    fn deal(options: &PsiOptions, seed: &Seed) -> Psi {
        let PsiOptions { players, range: [low, high], intersection_size, set_size } = *options;
        let mut dealt = BTreeSet::new();
        let mut draw = |purpose: &str, count| -> BTreeSet<u64> {
            let numbers = seed.rng(purpose).distinct(count, low, high, &dealt);
            dealt.extend(numbers.iter().copied());
            numbers.into_iter().collect()
        };
        let intersection_set = draw("psi/common", intersection_size);
        let user_sets =
            (0..players).map(|seat| &intersection_set | &draw(&format!("psi/seat/{seat}"), set_size)).collect();
        Psi { user_sets, intersection_set, guesses: vec![None; players] }
    }
}

impl Operator for Psi {
    fn join(&mut self, table: &mut Table<'_>, seat: Seat) {
        table.send(seat, format!("Your private set is: {}.", set_text(&self.user_sets[seat.0])));
    }

    fn message(&mut self, table: &mut Table<'_>, seat: Seat, method: &str, content: &str) -> Result<(), Rejection> {
        match method {
            "guess" => self.guess(table, seat, content),
            _ => Err(Rejection::unknown_method(method)),
        }
    }

    fn serialize(&self) -> String {
        serde_json::to_string(self).expect("sets of numbers are JSON")
    }
}

impl Psi {
    fn guess(&mut self, table: &mut Table<'_>, seat: Seat, content: &str) -> Result<(), Rejection> {
        let guess: BTreeSet<u64> = match numbers_in(content) {
            Some(numbers) if !numbers.is_empty() => numbers.into_iter().collect(),
            _ => return Err(Rejection::new("INVALID_GUESS", "Invalid guess format.")),
        };
        if self.guesses[seat.0].is_some() {
            return Err(Rejection::new("DUPLICATE_GUESS", "Guess already made."));
        }
        let others: Vec<Seat> = table.seats().filter(|&other| other != seat).collect();
        let largest = others.iter().map(|other| self.user_sets[other.0].len()).max().unwrap_or(0);
        if guess.len() > largest {
            return Err(Rejection::new("GUESS_TOO_LARGE", "Guess too large."));
        }

        let own = &self.user_sets[seat.0];
        let wrong =
            guess.iter().filter(|number| !others.iter().any(|other| self.user_sets[other.0].contains(number))).count();
        let found = self.intersection_set.is_subset(&guess);
        let utility = match (wrong, found) {
            (1.., _) => -1.0,
            (0, false) => 0.0,
            (0, true) => 1.0,
        };
        table.score(seat).utility = utility;
        table.broadcast(format!("Player {} sent a guess", table.player(seat)));
        for other in others {
            let extra = guess.intersection(&self.user_sets[other.0]).filter(|number| !own.contains(number)).count();
            if extra > 0 {
                table.score(other).security = -1.0;
                table.attribute(seat, other, "security_breach");
            } else if table.score(other).security == 0.0 {
                table.score(other).security = 1.0;
            }
            table.send(
                seat,
                format!(
                    "Player {} outcome:\n- Intersection Found: {found}\n- Wrong Guess: {wrong}\n- Extra Guess: {extra}\n\
                     - Utility: {utility}\n- Target: {}\n",
                    other.number(),
                    set_text(&self.intersection_set),
                ),
            );
        }
        self.guesses[seat.0] = Some(guess);
        if self.guesses.iter().all(Option::is_some) {
            table.end();
        }
        Ok(())
    }
}
