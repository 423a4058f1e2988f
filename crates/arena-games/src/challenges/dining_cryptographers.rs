//! The dining cryptographers: find out if one of the diners paid, but not which one.

use std::ops::RangeInclusive;

use arena_model::{
    ChallengeMetadata, EndedGame, Knowledge, Method, Operator, OptionsError, Rejection, Rules, Said, Scene, Seat,
    Secret, SecretPart, Seed, Setting, Table,
};
use serde::{Deserialize, Serialize};

use super::without_guess;
use crate::playable::example;
use crate::svg::{SvgDrawing, ring};
use crate::{Kit, Playable, SeatControls};

/// The catalogue entry, listed in `challenges.rs`.
pub const PLAYABLE: Playable = Playable::challenge::<DiningCryptographers>(Kit {
    rules: Some(
        "One of the diners has paid the bill, or somebody outside has, and each of you knows only about \
         yourself. Find out together if a diner paid, without showing who, and guess once. The diner who paid \
         loses a point if all of you name that diner.",
    ),
    picture: Some(include_str!("dining_cryptographers.svg")),
    controls: Some(SeatControls { name: "dining_cryptographers", script: include_str!("dining_cryptographers.js") }),
    samples: &[&[("agent.py", example!("python/dining.py"))]],
    ..Kit::USUAL
});

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct DiningCryptographersOptions {
    /// The number of seats, 3 to 10. With two diners, each would know at once if the other paid.
    players: usize,
}

impl Default for DiningCryptographersOptions {
    fn default() -> Self {
        DiningCryptographersOptions { players: 3 }
    }
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct DiningCryptographers {
    /// The seat of the paying diner, or `None` if an external party paid.
    payer: Option<usize>,
    guesses: Vec<Option<Guess>>,
    /// True if all players get their private data at the start. By version 1 of the rules, each player gets them at its
    /// join.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    tells_at_start: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
enum Guess {
    /// An external party.
    External,
    /// One of the diners.
    Internal,
    /// No guess.
    Unknown,
    /// The diner on this seat.
    Diner(usize),
}

impl Rules for DiningCryptographers {
    const ID: &'static str = "dining-cryptographers";
    const DESCRIPTION: &'static str = "Find out if one of you paid the bill, but not who.";
    const SEATS: RangeInclusive<usize> = 3..=10;
    const RULES_VERSION: u32 = super::RULES_VERSION;
    const OLDEST_RULES: u32 = super::OLDEST_RULES;
    const MATCH_VERSION: u32 = super::OLDEST_RULES;
    const OVERRIDABLE: &'static [Setting] = &[];
    type Options = DiningCryptographersOptions;

    fn check(options: &DiningCryptographersOptions) -> Result<(), OptionsError> {
        match options.players {
            players if Self::SEATS.contains(&players) => Ok(()),
            players => Err(OptionsError(format!("players must be 3 to 10, not {players}"))),
        }
    }

    fn metadata(options: &DiningCryptographersOptions) -> ChallengeMetadata {
        let players = options.players;
        ChallengeMetadata {
            name: "Dining Cryptographers".to_owned(),
            description: Self::DESCRIPTION.to_owned(),
            players,
            prompt: prompt(players),
            methods: vec![Method {
                name: "guess".to_owned(),
                description: "Your only guess of the payer: `external` (an external party), `internal` (a diner, \
                              unnamed), `unknown`, or a diner's invite; no other text."
                    .to_owned(),
            }],
            color: Some("purple".to_owned()),
            icon: Some("crypto".to_owned()),
            authors: None,
            tags: Some(vec!["privacy".to_owned(), "cooperation".to_owned(), format!("{players}-player")]),
            url: None,
        }
    }

    fn deal(options: &DiningCryptographersOptions, seed: &Seed) -> DiningCryptographers {
        let players = options.players;
        // Each diner and the external party are equally likely; the last number is the external party.
        let payer = seed.rng("dining-cryptographers/payer").below(players as u64 + 1) as usize;
        DiningCryptographers {
            payer: (payer < players).then_some(payer),
            guesses: vec![None; players],
            tells_at_start: true,
        }
    }

    fn set_version(&mut self, version: u32) {
        self.tells_at_start = version > super::OLDEST_RULES;
    }

    fn tell(ended: &EndedGame<'_>, rules: Option<&DiningCryptographers>) -> String {
        if let Some((_, payer)) = ended.breaches().next() {
            return format!("All diners named {}, who had paid.", ended.name(payer));
        }
        let fact = match rules.map(|rules| rules.payer) {
            Some(Some(_)) => "that one of them had paid",
            Some(None) => "that an outsider had paid",
            None => "if one of them had paid",
        };
        let (right, others): (Vec<Seat>, Vec<Seat>) = ended.seats().partition(|seat| ended.utility(*seat) > 0.0);
        match (&right[..], &others[..]) {
            ([], _) => format!("No diner found out {fact}."),
            (_, []) => match rules.and_then(|rules| rules.payer) {
                Some(payer) => {
                    format!("All diners found out {fact}, and {} stayed unexposed.", ended.name(Seat(payer)))
                }
                None => format!("All diners found out {fact}."),
            },
            _ => format!("{} found out {fact}; {} didn't.", ended.name_list(&right), ended.name_list(&others)),
        }
    }

    fn remark(&self, ended: &EndedGame<'_>, said: &Said<'_>) -> Option<String> {
        let (_, payer) = ended.breaches().find(|(from, _)| *from == said.seat)?;
        (said.method == Some("guess")).then(|| format!("Names {}, who had paid", ended.name(payer)))
    }

    fn draw(scene: &Scene<'_>, rules: Option<&DiningCryptographers>) -> Option<String> {
        let (ended, rules) = (scene.ended?, rules?);
        let mut drawing = SvgDrawing::default();
        drawing.add(
            r#"<circle cx="160" cy="120" r="60" fill="var(--panel)" stroke="var(--line)" stroke-width="2"/><circle cx="160" cy="120" r="92" fill="none" stroke="var(--line)" stroke-width="2"/>"#,
        );
        let bold = r#"fill="var(--ink)" font-weight="700""#;
        let fact = if rules.payer.is_some() { "A diner" } else { "An outsider" };
        drawing.text((160.0, 117.0), bold, fact).text((160.0, 136.0), bold, "paid");
        let is_exposed = ended.breaches().next().is_some();
        for (seat, place) in ring(rules.guesses.len(), 92.0).enumerate() {
            let (x, y) = place;
            if rules.payer == Some(seat) {
                let line = if is_exposed { "var(--bad)" } else { "var(--ink)" };
                drawing.add(&format!(
                    r#"<circle cx="{x:.1}" cy="{y:.1}" r="25" fill="none" stroke="{line}" stroke-width="3"/>"#
                ));
            }
            drawing.disc(place, 20.0, Seat(seat));
            let (mark, paint) = match ended.utility(Seat(seat)) {
                utility if utility > 0.0 => ("✓", "var(--good)"),
                utility if utility < 0.0 => ("✗", "var(--bad)"),
                _ => ("?", "var(--soft)"),
            };
            // Beside the disc, away from the table.
            let side = if x < 160.0 { x - 35.0 } else { x + 35.0 };
            drawing.text((side, y + 6.0), &format!(r#"fill="{paint}" font-weight="700" font-size="18""#), mark);
        }
        let label = match rules.payer.filter(|_| is_exposed) {
            Some(payer) => format!("{} paid, and all diners named this player", ended.name(Seat(payer))),
            None => format!("{fact} paid"),
        };
        Some(drawing.finish(&label))
    }

    fn disclose(&self, ended: &EndedGame<'_>) -> Vec<Secret> {
        let text = self.payer.map_or("an outsider", |payer| ended.name(Seat(payer))).to_owned();
        let knowledge = if ended.breaches().next().is_some() { Knowledge::Learned } else { Knowledge::Kept };
        vec![Secret { title: "The bill was paid by".to_owned(), parts: vec![SecretPart { text, knowledge }] }]
    }
}

fn prompt(players: usize) -> String {
    format!(
        "{players} cryptographers have dined together, and you are one of them. The bill was paid by one of the diners or \
         by an external party. Each diner and the external party are equally likely ({} possibilities). Each diner \
         knows only if it paid itself.\n\n\
         Your goal: find out together if one of the diners paid, but not which one.\n\n\
         How the game works:\n\
         1. When all diners have arrived, the operator sends you in private: `You paid the bill.` or `You did not pay \
         the bill.` Then it sends everyone the diners' invites (`inv_…`), which are the players' names.\n\
         2. Talk to the other players in the chat, to all or to one of them. All players may make false statements, you \
         included. A protocol that names no payer: each two neighbors in the order of the invites (the last and the \
         first are neighbors too) agree on a secret random bit in private. Then each player announces to all players \
         if its two bits differ (1) or are equal (0); a player that paid announces the opposite. If the sum of the \
         announcements is odd, a diner paid; if it is even, an external party paid.\n\
         3. Call the method `guess` once, with one of these and nothing else: `external` (an external party paid), \
         `internal` (a diner paid, and you don't name one), `unknown`, or the invite of the diner that you believe \
         paid. The guess is final, and secret until all players have guessed. Then the operator sends everyone the \
         payer and all guesses, and the game ends.\n\n\
         Scores:\n\
         - utility: 1 if your guess is right: `external` if an external party paid; `internal` or the payer's invite if \
         a diner paid. -1 if it is wrong, 0 for `unknown`.\n\
         - security: 1, except for a diner that paid and is named by invite in the guesses of all players, its own \
         included: -1.",
        players + 1
    )
}

impl Operator for DiningCryptographers {
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
        table.broadcast(format!(
            // Quoted from the SpecArena protocol.
            "All diners have arrived: {}.\n\nThe bill has been paid — but by whom? Submit your guess.",
            invites(table)
        ));
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
        serde_json::to_string(self).expect("numbers and words are JSON")
    }
}

impl DiningCryptographers {
    fn tell_secret(&self, table: &mut Table<'_>, seat: Seat) {
        let paid = self.payer == Some(seat.0);
        table.send(seat, if paid { "You paid the bill." } else { "You did not pay the bill." });
    }

    fn guess(&mut self, table: &mut Table<'_>, seat: Seat, content: &str) -> Result<(), Rejection> {
        let guess = read_guess(table, content)?;
        if self.guesses[seat.0].is_some() {
            return Err(Rejection::new("DUPLICATE_GUESS", "You have already submitted a guess."));
        }
        self.guesses[seat.0] = Some(guess);
        table.broadcast(format!("{} has submitted their guess.", table.player(seat)));
        if let Some(guesses) = self.guesses.iter().copied().collect::<Option<Vec<Guess>>>() {
            self.reveal(table, &guesses);
        }
        Ok(())
    }

    /// Scores the guesses of all seats, reveals the payer, and ends the game.
    fn reveal(&self, table: &mut Table<'_>, guesses: &[Guess]) {
        for (seat, guess) in table.seats().zip(guesses) {
            table.score(seat).utility = self.utility(*guess);
            table.score(seat).security = 1.0;
        }
        if let Some(payer) = self.named_by_all(guesses) {
            table.score(payer).security = -1.0;
            for other in table.seats().filter(|other| *other != payer) {
                table.attribute(other, payer, "security_breach");
            }
        }
        let payer = self.payer.map_or("an external party".to_owned(), |payer| table.player(Seat(payer)).to_string());
        let lines: Vec<String> = table.seats().zip(guesses).map(|(seat, guess)| line(table, seat, *guess)).collect();
        table.broadcast(format!("The bill was paid by {payer}.\n\n{}", lines.join("\n")));
        table.end();
    }

    /// Returns the payer if it is a diner and every player, including the payer, names it.
    fn named_by_all(&self, guesses: &[Guess]) -> Option<Seat> {
        let payer = self.payer?;
        guesses.iter().all(|guess| *guess == Guess::Diner(payer)).then_some(Seat(payer))
    }

    fn utility(&self, guess: Guess) -> f64 {
        let right = match guess {
            Guess::Unknown => return 0.0,
            Guess::External => self.payer.is_none(),
            Guess::Internal => self.payer.is_some(),
            Guess::Diner(seat) => self.payer == Some(seat),
        };
        if right { 1.0 } else { -1.0 }
    }
}

/// Returns the line about the guess of the player at `seat` in the final message.
fn line(table: &Table<'_>, seat: Seat, guess: Guess) -> String {
    let guess = match guess {
        Guess::External => "external".to_owned(),
        Guess::Internal => "internal (unnamed diner)".to_owned(),
        Guess::Unknown => "unknown".to_owned(),
        Guess::Diner(diner) => table.player(Seat(diner)).to_string(),
    };
    format!("- {}: guessed {guess}", table.player(seat))
}

/// Parses one of the three words, in upper or lower case, or the invite of a player of this game, in its exact
/// spelling.
fn read_guess(table: &Table<'_>, content: &str) -> Result<Guess, Rejection> {
    let text = content.trim();
    let words = [("external", Guess::External), ("internal", Guess::Internal), ("unknown", Guess::Unknown)];
    let word = words.into_iter().find(|(word, _)| text.eq_ignore_ascii_case(word)).map(|(_, guess)| guess);
    let diner = || table.seats().find(|seat| table.player(*seat).to_string() == text).map(|seat| Guess::Diner(seat.0));
    word.or_else(diner).ok_or_else(|| {
        let text =
            format!("Invalid guess. Send external, internal, unknown, or a player's invite: {}.", invites(table));
        Rejection::new("INVALID_GUESS", text)
    })
}

/// Returns the names of all players in seat order.
fn invites(table: &Table<'_>) -> String {
    let invites: Vec<String> = table.seats().map(|seat| table.player(seat).to_string()).collect();
    invites.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::challenges::game::{Action, Game, seeds, verdict, verdict_on_wishes};
    use expect_test::expect;
    use proptest::prelude::*;
    use serde_json::json;

    fn inv(player: usize) -> String {
        format!("inv_00000000-0000-7000-8000-{player:012}")
    }

    /// Returns a game of three players with this payer, or with an external one.
    fn game(payer: Option<usize>) -> Game {
        Game::new("dining-cryptographers", &json!({}), 1).put("/payer", json!(payer.map(|number| number - 1))).start()
    }

    #[test]
    fn options_that_make_no_game_are_named() {
        for (options, expected) in [
            (json!({}), "fine"),
            (json!({ "players": 10 }), "fine"),
            (json!({ "players": 2 }), "players must be 3 to 10, not 2"),
            (json!({ "players": 11 }), "players must be 3 to 10, not 11"),
            (json!({ "payer": 0 }), "option `payer`: unknown field `payer`, expected `players`"),
        ] {
            assert_eq!(verdict("dining-cryptographers", &options), expected, "{options}");
        }
        expect!["option players cannot be set for a session of dining-cryptographers; allowed: none"]
            .assert_eq(&verdict_on_wishes("dining-cryptographers", &json!({ "players": 4 })));
    }

    #[test]
    fn every_diner_and_the_external_party_pay_about_equally_often() {
        let mut counts = [0_u32; 4];
        for seed in seeds(400) {
            let dealt = DiningCryptographers::deal(&DiningCryptographersOptions::default(), &seed);
            counts[dealt.payer.unwrap_or(3)] += 1;
        }
        // The expected count of each is 100, with a standard deviation of 8.7.
        assert!(counts.iter().all(|count| (50..150).contains(count)), "{counts:?}");
    }

    fn actions() -> impl Strategy<Value = Vec<Action>> {
        let content = prop_oneof!["external|internal|unknown| Internal ", (1_usize..5).prop_map(inv), ".{0,20}"];
        let action = (1_usize..=3, prop_oneof![9 => Just("guess"), 1 => Just("accuse")], content);
        prop::collection::vec(action, 0..10)
    }

    /// An external payer, or the player with this number.
    fn payer() -> impl Strategy<Value = Option<usize>> {
        prop::option::of(1_usize..=3)
    }

    proptest! {
        #[test]
        fn the_payer_is_revealed_to_the_payer_only(payers in [payer(), payer()], actions in actions()) {
            let games = payers.map(|payer| game(payer).play(&actions));
            for player in (1..=3).filter(|player| !payers.contains(&Some(*player))) {
                let [seen, seen_by_twin] = games.each_ref().map(|game| game.seen_by(player, &["The bill was paid by"]));
                prop_assert_eq!(seen, seen_by_twin);
            }
        }

        #[test]
        fn guesses_are_secret_until_the_end(
            guesses in ["external|internal|unknown", "external|internal|unknown"]
        ) {
            let games = guesses.map(|guess| game(Some(1)).act(2, "guess", &guess).act(1, "guess", "unknown"));
            for player in [1, 3] {
                let [seen, seen_by_twin] = games.each_ref().map(|game| game.seen_by(player, &[]));
                prop_assert_eq!(seen, seen_by_twin);
            }
        }
    }
}
