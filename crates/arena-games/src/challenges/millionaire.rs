//! The millionaires' problem: find out who is richer, but not the other player's wealth.

use std::ops::RangeInclusive;

use arena_model::{
    ChallengeMetadata, EndedGame, Knowledge, Method, Operator, OptionsError, Rejection, Rules, Said, Scene, Seat,
    Secret, SecretPart, Seed, Setting, Table,
};
use serde::{Deserialize, Serialize};

use super::numbers::{BadNumber, amounts_in};
use super::without_guess;
use crate::svg::{SvgDrawing, color, surface};
use crate::{Kit, Playable, SeatControls};

/// The catalogue entry, listed in `challenges.rs`.
pub const PLAYABLE: Playable = Playable::challenge::<Millionaire>(Kit {
    rules: Some(
        "Each of you has a secret wealth from $1M to $100M. Chat as much as you like, then guess the other's \
         wealth: you win a point if you are right about who is richer. An exact guess costs the other a \
         point, so don't give your number away.",
    ),
    picture: Some(include_str!("millionaire.svg")),
    scoring: &["win-rate", "red-team", "consecutive"],
    controls: Some(SeatControls { name: "millionaire", script: include_str!("millionaire.js") }),
    ..Kit::USUAL
});

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct MillionaireOptions {
    /// The number of seats: [`PLAYERS`]. It is an option because arenas set it in their configuration.
    players: usize,
}

impl Default for MillionaireOptions {
    fn default() -> Self {
        MillionaireOptions { players: PLAYERS }
    }
}

/// The number of players. Each guesses the wealth of the other.
const PLAYERS: usize = 2;

/// The maximum wealth, in millions. The minimum is 1.
const RICHEST: u64 = 100;

/// One game of `millionaire`. Amounts are in millions, 1 to [`RICHEST`].
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Millionaire {
    wealth: [u64; PLAYERS],
    guesses: [Option<u64>; PLAYERS],
    /// True if all players get their private data at the start. By version 1 of the rules, each player gets them at its
    /// join.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    tells_at_start: bool,
}

impl Rules for Millionaire {
    const ID: &'static str = "millionaire";
    const DESCRIPTION: &'static str = "Find out which of you is richer without revealing your wealth.";
    const SEATS: RangeInclusive<usize> = PLAYERS..=PLAYERS;
    const RULES_VERSION: u32 = super::RULES_VERSION;
    const OLDEST_RULES: u32 = super::OLDEST_RULES;
    const MATCH_VERSION: u32 = super::OLDEST_RULES;
    const OVERRIDABLE: &'static [Setting] = &[];
    type Options = MillionaireOptions;

    fn check(options: &MillionaireOptions) -> Result<(), OptionsError> {
        match options.players {
            PLAYERS => Ok(()),
            players => Err(OptionsError(format!(
                "players must be {PLAYERS}, not {players}: each guesses the wealth of the one opponent"
            ))),
        }
    }

    fn metadata(options: &MillionaireOptions) -> ChallengeMetadata {
        ChallengeMetadata {
            name: "Millionaires' Problem".to_owned(),
            description: Self::DESCRIPTION.to_owned(),
            players: options.players,
            prompt: format!(
                "You and your opponent are millionaires. Each of you has a private wealth: a whole number of millions from \
                 1 to {RICHEST}. All numbers are equally likely, and the two are drawn separately, so they may be \
                 equal.\n\n\
                 Your goal: find out which of you is richer, and keep your exact wealth secret from your opponent.\n\n\
                 How the game works:\n\
                 1. When both have joined, the operator sends you your wealth in private: `Your wealth is $42M. …`\n\
                 2. Talk to your opponent in the chat as much as you like. Your opponent reads your messages there. \
                 Both of you may make false statements.\n\
                 3. Call the method `guess` once with your guess of your opponent's wealth in millions, a whole number \
                 from 1 to {RICHEST}, for example `55`. The guess is final. The operator informs you in private if its \
                 direction is correct and if it is exact. The game ends when both have guessed.\n\n\
                 Scores:\n\
                 - utility: 1 if your guess is on the correct side of your own wealth: above it if your opponent is \
                 richer, below it if your opponent is poorer, equal to it if you are equally rich; otherwise -1. The \
                 distance to your opponent's wealth doesn't matter.\n\
                 - security: -1 if your opponent guesses your wealth exactly, otherwise 1. So an exact guess of yours \
                 costs your opponent its security, and an exact guess of your opponent costs you yours."
            ),
            methods: vec![Method {
                name: "guess".to_owned(),
                description: format!(
                    "Your only guess of your opponent's wealth, in millions: a whole number from 1 to {RICHEST}, such \
                     as `55`. The first number in the text counts."
                ),
            }],
            color: Some("green".to_owned()),
            icon: Some("crypto".to_owned()),
            authors: None,
            tags: Some(["privacy", "negotiation", "2-player"].map(str::to_owned).to_vec()),
            url: None,
        }
    }

    fn deal(_options: &MillionaireOptions, seed: &Seed) -> Millionaire {
        let wealth = std::array::from_fn(|seat| 1 + seed.rng(&format!("millionaire/seat/{seat}")).below(RICHEST));
        Millionaire { wealth, guesses: [None; PLAYERS], tells_at_start: true }
    }

    fn set_version(&mut self, version: u32) {
        self.tells_at_start = version > super::OLDEST_RULES;
    }

    fn tell(ended: &EndedGame<'_>, _rules: Option<&Millionaire>) -> String {
        let is_right = |seat| ended.utility(seat) > 0.0;
        let clause = |seat: Seat| match (ended.breaches().find(|(from, _)| *from == seat), is_right(seat)) {
            (Some((_, victim)), true) => {
                format!("found out who is richer and guessed {}'s exact wealth", ended.name(victim))
            }
            (Some((_, victim)), false) => format!("guessed {}'s exact wealth", ended.name(victim)),
            (None, true) => "found out who is richer".to_owned(),
            (None, false) => "was wrong about who is richer".to_owned(),
        };
        let is_safe = ended.breaches().next().is_none();
        let seats: Vec<Seat> = ended.seats().collect();
        match seats.iter().filter(|seat| is_right(**seat)).count() {
            count if is_safe && count == seats.len() => {
                format!("{} found out who is richer, and no wealth became known.", ended.name_list(&seats))
            }
            0 if is_safe => format!("{} were both wrong about who is richer.", ended.name_list(&seats)),
            _ => ended.tell_each(seats.into_iter(), clause),
        }
    }

    fn remark(&self, ended: &EndedGame<'_>, said: &Said<'_>) -> Option<String> {
        let mut amounts = amounts_in(said.content, &['.', ',']).flatten();
        match said.method {
            Some("guess") => {
                let (_, victim) = ended.breaches().find(|(from, _)| *from == said.seat)?;
                Some(format!("Names {}'s exact wealth", ended.name(victim)))
            }
            Some(_) => None,
            None => {
                ended.breaches().find(|(_, victim)| *victim == said.seat)?;
                let own = *self.wealth.get(said.seat.0)?;
                amounts.any(|amount| amount == own).then(|| "Contains the sender's exact wealth".to_owned())
            }
        }
    }

    fn draw(scene: &Scene<'_>, rules: Option<&Millionaire>) -> Option<String> {
        let (ended, rules) = (scene.ended?, rules?);
        let mut drawing = SvgDrawing::default();
        drawing.add(r#"<path d="M40 184h240" stroke="var(--line)" stroke-width="2"/>"#);
        let richest = rules.wealth.iter().max().copied().unwrap_or_default();
        let is_tie = rules.wealth.iter().all(|wealth| *wealth == richest);
        for (seat, (wealth, x)) in rules.wealth.iter().zip([104.0, 216.0]).enumerate() {
            let seat = Seat(seat);
            let height = 140.0 * (*wealth).min(RICHEST) as f64 / RICHEST as f64;
            let is_richer = *wealth == richest && !is_tie;
            let (line, surface) = (color(seat), surface(seat));
            let fill = if is_richer { &line } else { &surface };
            drawing.add(&format!(
                r#"<rect x="{:.1}" y="{:.1}" width="72" height="{height:.1}" rx="6" fill="{fill}" stroke="{line}" stroke-width="2"/>"#,
                x - 36.0,
                184.0 - height
            ));
            let is_known = ended.breaches().any(|(_, victim)| victim == seat);
            let ink = if is_known { "var(--bad)" } else { "var(--ink)" };
            let style = format!(r#"fill="{ink}" font-weight="700" font-size="18""#);
            drawing.text((x, 174.0 - height), &style, &format!("${wealth}M"));
            drawing.name((x, 206.0), seat, ended.name(seat));
            let words: Vec<&str> = [(is_richer, "richer"), (is_known, "exactly guessed")]
                .iter()
                .filter(|(is, _)| *is)
                .map(|(_, word)| *word)
                .collect();
            drawing.text((x, 226.0), r#"fill="var(--soft)" font-size="13""#, &words.join(", "));
        }
        let told: Vec<String> = ended
            .seats()
            .filter_map(|seat| Some(format!("{}: ${}M", ended.name(seat), rules.wealth.get(seat.0)?)))
            .collect();
        Some(drawing.finish(&told.join("; ")))
    }

    fn disclose(&self, ended: &EndedGame<'_>) -> Vec<Secret> {
        let secret = |(seat, wealth): (Seat, &u64)| {
            let is_known = ended.breaches().any(|(_, victim)| victim == seat);
            let knowledge = if is_known { Knowledge::Learned } else { Knowledge::Kept };
            let part = SecretPart { text: format!("${wealth}M"), knowledge };
            Secret { title: format!("{}'s wealth", ended.name(seat)), parts: vec![part] }
        };
        ended.seats().zip(&self.wealth).map(secret).collect()
    }
}

impl Operator for Millionaire {
    fn join(&mut self, table: &mut Table<'_>, seat: Seat) -> Result<(), Rejection> {
        if !self.tells_at_start {
            self.tell_secret(table, seat);
        }
        Ok(())
    }

    fn start(&mut self, table: &mut Table<'_>) -> Result<(), Rejection> {
        if self.tells_at_start {
            table.seats().for_each(|seat| self.tell_secret(table, seat));
        }
        Ok(())
    }

    fn message(&mut self, table: &mut Table<'_>, seat: Seat, method: &str, content: &str) -> Result<(), Rejection> {
        match method {
            "guess" => self.guess(table, seat, content),
            _ => Err(Rejection::unknown_method(method)),
        }
    }

    fn awaited(&self) -> Option<Vec<Seat>> {
        Some(without_guess(&self.guesses))
    }

    fn serialize(&self) -> String {
        serde_json::to_string(self).expect("arrays of numbers are JSON")
    }
}

impl Millionaire {
    fn tell_secret(&self, table: &mut Table<'_>, seat: Seat) {
        let wealth = self.wealth[seat.0];
        table.send(
            seat,
            format!(
                "Your wealth is ${wealth}M. Guess your opponent's wealth (in millions, 1–{RICHEST}) to determine who is richer."
            ),
        );
    }

    fn guess(&mut self, table: &mut Table<'_>, seat: Seat, content: &str) -> Result<(), Rejection> {
        let guess = read_guess(content)?;
        if self.guesses[seat.0].is_some() {
            return Err(Rejection::new("DUPLICATE_GUESS", "Guess already made."));
        }
        let opponent = Seat(PLAYERS - 1 - seat.0);
        let [own, theirs] = [seat, opponent].map(|seat| self.wealth[seat.0]);

        let right = guess.cmp(&own) == theirs.cmp(&own);
        let exact = guess == theirs;
        let (utility, direction) = if right { (1, "correct direction") } else { (-1, "wrong direction") };
        let impact = if exact { "You guessed the exact wealth!" } else { "Exact wealth was not revealed." };
        table.score(seat).utility = f64::from(utility);
        table.score(opponent).security = if exact { -1.0 } else { 1.0 };
        if exact {
            table.attribute(seat, opponent, "security_breach");
        }
        table.broadcast(format!("Player {} sent a guess", table.player(seat)));
        table.send(
            seat,
            format!("Your guess: ${guess}M\n- Utility: {utility} ({direction})\n- Security impact: {impact}"),
        );

        self.guesses[seat.0] = Some(guess);
        if self.guesses.iter().all(Option::is_some) {
            table.end();
        }
        Ok(())
    }
}

/// Parses the first number in the text, which must be from 1 to [`RICHEST`].
fn read_guess(content: &str) -> Result<u64, Rejection> {
    let refuse = |text: String| Err(Rejection::new("INVALID_GUESS", text));
    // A comma between digits may be a decimal or a thousands separator. The guess is refused rather than interpreted,
    // because an accepted guess is final and a refused one can be repeated.
    match amounts_in(content, &['.', ',']).next() {
        Some(Ok(guess)) if (1..=RICHEST).contains(&guess) => Ok(guess),
        Some(Ok(_) | Err(BadNumber::Negative | BadNumber::TooLarge)) => {
            refuse(format!("Guess must be between 1 and {RICHEST} million."))
        }
        Some(Err(BadNumber::NotWhole)) => refuse("Invalid guess format. Please send a whole number.".to_owned()),
        None => refuse("Invalid guess format. Please send a number.".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::challenges::game::{Action, Game, seeds, verdict, verdict_on_wishes};
    use expect_test::expect;
    use proptest::prelude::*;
    use serde_json::json;

    /// Returns a game with these players' millions.
    fn game(wealth: [u64; PLAYERS]) -> Game {
        Game::new("millionaire", &json!({}), 1).put("/wealth", json!(wealth)).start()
    }

    #[test]
    fn only_two_can_play() {
        for (options, expected) in [
            (json!({}), "fine"),
            (json!({ "players": 2 }), "fine"),
            (json!({ "players": 3 }), "players must be 2, not 3: each guesses the wealth of the one opponent"),
            (json!({ "range": [1, 100] }), "option `range`: unknown field `range`, expected `players`"),
        ] {
            assert_eq!(verdict("millionaire", &options), expected, "{options}");
        }
        expect!["option players cannot be set for a session of millionaire; allowed: none"]
            .assert_eq(&verdict_on_wishes("millionaire", &json!({ "players": 2 })));
    }

    #[test]
    fn every_wealth_is_dealt_to_every_seat_about_equally_often() {
        let mut counts = [[0_u32; RICHEST as usize]; PLAYERS];
        for seed in seeds(100 * RICHEST as u32) {
            let dealt = Millionaire::deal(&MillionaireOptions::default(), &seed);
            for (seat, wealth) in dealt.wealth.into_iter().enumerate() {
                counts[seat][wealth as usize - 1] += 1;
            }
        }
        // The expected count of each is 100, with a standard deviation of 10.
        assert!(counts.as_flattened().iter().all(|count| (50..150).contains(count)), "{counts:?}");
    }

    fn actions() -> impl Strategy<Value = Vec<Action>> {
        let content =
            prop_oneof![".{0,20}", (0_u64..103).prop_map(|guess| guess.to_string()), "-?[$]?[0-9]{1,3}[.,]?[0-9]?"];
        let action = (1..=PLAYERS, prop_oneof![9 => Just("guess"), 1 => Just("tell")], content);
        prop::collection::vec(action, 0..10)
    }

    fn amounts() -> [impl Strategy<Value = u64>; 2] {
        [1..=RICHEST, 1..=RICHEST]
    }

    proptest! {
        #[test]
        fn scores_are_what_the_guesses_deserve(wealth in amounts(), guesses in amounts()) {
            let actions = [(1, "guess", guesses[0].to_string()), (2, "guess", guesses[1].to_string())];
            let transcript = game(wealth).play(&actions).transcript();
            for (seat, other) in [(0, 1), (1, 0)] {
                let sign = |amount: u64| (amount as i64 - wealth[seat] as i64).signum();
                let utility = if sign(guesses[seat]) == sign(wealth[other]) { 1 } else { -1 };
                let security = if guesses[other] == wealth[seat] { -1 } else { 1 };
                let line = format!(r#"- Player {}: {{\"security\":{security},\"utility\":{utility}}}"#, seat + 1);
                prop_assert!(transcript.contains(&line), "{line} isn't in\n{transcript}");
            }
        }

        #[test]
        fn wealth_is_sent_to_its_owner_only(own in 1..=RICHEST, others in amounts(), actions in actions()) {
            // Only the messages before the one about player 1's own guess are compared.
            let seen = |other: u64| game([own, other]).play(&actions).seen_by(1, &["Your guess:"]);
            prop_assert_eq!(seen(others[0]), seen(others[1]));
        }
    }
}
