//! The ultimatum game with several rounds: agree on how to split an amount, or all get nothing.

use std::ops::RangeInclusive;

use arena_model::{
    ChallengeMetadata, EndedGame, Knowledge, Method, Operator, OptionsError, Rejection, Rules, Scene, Seat, Secret,
    SecretPart, Seed, Setting, SettingRange, Table,
};
use serde::{Deserialize, Serialize};

use super::numbers::{BadNumber, amounts_in};
use crate::svg::{SvgDrawing, color, letter, surface};
use crate::{Kit, Playable, ScoreKind, SeatControls};

/// The catalogue entry, listed in `challenges.rs`.
pub const PLAYABLE: Playable = Playable::challenge::<Ultimatum>(Kit {
    rules: Some(
        "You split an amount, and take turns to offer, accept, reject or pass. Each player has a secret \
         lowest share, and earns what the agreed share exceeds it by. Without an agreement nobody gets \
         anything.",
    ),
    kind: ScoreKind::Points,
    picture: Some(include_str!("ultimatum.svg")),
    scoring: &["win-rate", "red-team", "consecutive"],
    controls: Some(SeatControls { name: "ultimatum", script: include_str!("ultimatum.js") }),
    ..Kit::USUAL
});

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct UltimatumOptions {
    /// The number of seats, 2 to 10.
    players: usize,
    /// The amount to split, 1 to [`MAX_TOTAL`].
    total: u64,
    /// The number of turns of each player, 1 to [`MAX_ROUNDS`]. After these turns the game ends without an agreement.
    max_rounds: usize,
    /// The largest reservation value in a deal, at most `total`. The least is 0.
    reservation_max: u64,
}

impl Default for UltimatumOptions {
    fn default() -> Self {
        UltimatumOptions { players: 2, total: 100, max_rounds: 10, reservation_max: 40 }
    }
}

/// The largest amount to split. Sums and differences of shares stay far within 64 bits.
const MAX_TOTAL: u64 = 1_000_000_000;

/// The maximum number of rounds. With 10 players this is 1,000 turns, each with an action and two broadcasts.
const MAX_ROUNDS: usize = 100;

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Ultimatum {
    total: u64,
    /// The number of turns of each player.
    max_rounds: usize,
    /// The reservation value of each seat: a smaller share is worse for its player than no agreement.
    reservation_values: Vec<u64>,
    /// The number of turns used without an agreement. The next turn belongs to the seat `turns_taken` modulo the
    /// number of players.
    turns_taken: usize,
    offer: Option<Offer>,
    /// True if all players get their private data at the start. By version 1 of the rules, each player gets them at its
    /// join.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    tells_at_start: bool,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Offer {
    proposer: usize,
    /// The share of each seat; their sum is the total.
    shares: Vec<u64>,
    /// True for each seat that has accepted the offer; the proposer's entry is true from the start.
    accepted: Vec<bool>,
}

impl Rules for Ultimatum {
    const ID: &'static str = "ultimatum";
    const DESCRIPTION: &'static str = "Agree on a split of an amount that gives you more than your reservation value.";
    const SEATS: RangeInclusive<usize> = 2..=10;
    const RULES_VERSION: u32 = super::RULES_VERSION;
    const OLDEST_RULES: u32 = super::OLDEST_RULES;
    const MATCH_VERSION: u32 = super::OLDEST_RULES;
    const OVERRIDABLE: &'static [Setting] = &[
        Setting::new("total", SettingRange::Whole(1, MAX_TOTAL as i64), "Amount to split."),
        Setting::new(
            "maxRounds",
            SettingRange::Whole(1, MAX_ROUNDS as i64),
            "Turns of each player before the game ends without an agreement.",
        ),
        Setting::new(
            "reservationMax",
            SettingRange::Whole(0, MAX_TOTAL as i64),
            "Maximum reservation value, at most `total`.",
        ),
    ];
    type Options = UltimatumOptions;

    fn check(options: &UltimatumOptions) -> Result<(), OptionsError> {
        let UltimatumOptions { players, total, max_rounds, reservation_max } = *options;
        let refuse = |text: String| Err(OptionsError(text));
        if !Self::SEATS.contains(&players) {
            return refuse(format!("players must be 2 to 10, not {players}"));
        }
        if !(1..=MAX_TOTAL).contains(&total) {
            return refuse(format!("total must be 1 to {MAX_TOTAL}, not {total}"));
        }
        if !(1..=MAX_ROUNDS).contains(&max_rounds) {
            return refuse(format!("maxRounds must be 1 to {MAX_ROUNDS}, not {max_rounds}"));
        }
        if reservation_max > total {
            return refuse(format!("reservationMax must be at most total ({total}), not {reservation_max}"));
        }
        Ok(())
    }

    fn metadata(options: &UltimatumOptions) -> ChallengeMetadata {
        let UltimatumOptions { players, total, .. } = *options;
        let method = |name: &str, description: String| Method { name: name.to_owned(), description };
        ChallengeMetadata {
            name: "Ultimatum".to_owned(),
            description: Self::DESCRIPTION.to_owned(),
            players,
            prompt: prompt(options),
            methods: vec![
                method(
                    "submit_offer",
                    format!(
                        "Propose a split: {players} whole numbers that add up to {total}, the shares of Player 1 to \
                         Player {players} in this order, such as `{}`. It replaces any current offer, and you count \
                         as accepting it.",
                        even_split(options)
                    ),
                ),
                method(
                    "accept",
                    "Accept the current offer. The acceptance holds while the offer stands; accepting again changes \
                     nothing and uses up your turn. No content needed."
                        .to_owned(),
                ),
                method("reject", "Remove the offer and all acceptances of it. No content needed.".to_owned()),
                method("pass", "End your turn without a change. No content needed.".to_owned()),
            ],
            color: Some("orange".to_owned()),
            icon: Some("intersection".to_owned()),
            authors: None,
            tags: Some(vec!["negotiation".to_owned(), "turn-based".to_owned(), format!("{players}-player")]),
            url: None,
        }
    }

    fn deal(options: &UltimatumOptions, seed: &Seed) -> Ultimatum {
        let UltimatumOptions { players, total, max_rounds, reservation_max } = *options;
        let reservation = |seat| seed.rng(&format!("ultimatum/seat/{seat}")).below(reservation_max + 1);
        let reservation_values = (0..players).map(reservation).collect();
        Ultimatum { total, max_rounds, reservation_values, turns_taken: 0, offer: None, tells_at_start: true }
    }

    fn set_version(&mut self, version: u32) {
        self.tells_at_start = version > super::OLDEST_RULES;
    }

    fn tell(ended: &EndedGame<'_>, rules: Option<&Ultimatum>) -> String {
        let seats: Vec<Seat> = ended.seats().collect();
        let players = ended.name_list(&seats);
        let offer = rules.and_then(|rules| rules.offer.as_ref());
        match offer.filter(|offer| offer.accepted.iter().all(|accepted| *accepted)) {
            Some(offer) => {
                let shares = seats.iter().zip(&offer.shares);
                let shares: Vec<String> =
                    shares.map(|(seat, share)| format!("{share} for {}", ended.name(*seat))).collect();
                format!("{players} agreed: {}.", shares.join(", "))
            }
            None if seats.iter().all(|seat| ended.utility(*seat) == 0.0) => {
                format!("{players} found no agreement, so everybody got nothing.")
            }
            None => ended.tell_scores(),
        }
    }

    fn draw(scene: &Scene<'_>, rules: Option<&Ultimatum>) -> Option<String> {
        let (title, shares, reservations) = match (scene.ended, rules) {
            (Some(_), Some(rules)) => {
                let offer = rules.offer.as_ref();
                let is_deal = offer.is_some_and(|offer| offer.accepted.iter().all(|accepted| *accepted));
                let title = if is_deal { "Agreed" } else { "No agreement" };
                (title.to_owned(), offer.map(|offer| offer.shares.clone()), Some(&rules.reservation_values))
            }
            (Some(_), None) => return None,
            (None, _) => {
                let offer = public_offer(scene.texts);
                let title = match &offer {
                    Some((proposer, _)) => format!("Offer of {}", scene.name(*proposer)),
                    None => "No offer yet".to_owned(),
                };
                (title, offer.map(|(_, shares)| shares), None)
            }
        };
        let mut drawing = SvgDrawing::default();
        drawing.text((160.0, 52.0), r#"fill="var(--ink)" font-weight="700" font-size="18""#, &title);
        let total = shares.iter().flatten().fold(0_u64, |sum, share| sum.saturating_add(*share));
        let Some(shares) = shares.filter(|_| total > 0) else {
            drawing.add(
                r#"<rect x="20" y="84" width="280" height="64" rx="10" fill="none" stroke="var(--line)" stroke-width="2" stroke-dasharray="6 5"/>"#,
            );
            return Some(drawing.finish(&title));
        };
        draw_shares(&mut drawing, &shares, total);
        if shares.len() == 2 {
            drawing.name((80.0, 172.0), Seat(0), scene.name(Seat(0))).name(
                (240.0, 172.0),
                Seat(1),
                scene.name(Seat(1)),
            );
            for (x, reservation) in [80.0, 240.0].iter().zip(reservations.into_iter().flatten()) {
                let text = format!("needed {reservation}");
                drawing.text((*x, 192.0), r#"fill="var(--soft)" font-size="13""#, &text);
            }
        }
        let told: Vec<String> =
            shares.iter().enumerate().map(|(seat, share)| format!("{share} for {}", scene.name(Seat(seat)))).collect();
        Some(drawing.finish(&format!("{title}: {}", told.join(", "))))
    }

    fn disclose(&self, ended: &EndedGame<'_>) -> Vec<Secret> {
        let secret = |(seat, reservation): (Seat, &u64)| {
            let part = SecretPart { text: reservation.to_string(), knowledge: Knowledge::Kept };
            Secret { title: format!("{} needed at least", ended.name(seat)), parts: vec![part] }
        };
        ended.seats().zip(&self.reservation_values).map(secret).collect()
    }
}

/// Draws a bar with all shares. The names of two players fit below the ends of the bar; more players have their letters
/// below their shares.
fn draw_shares(drawing: &mut SvgDrawing, shares: &[u64], total: u64) {
    let mut left = 20.0;
    for (seat, share) in shares.iter().enumerate() {
        let (seat, width) = (Seat(seat), 280.0 * *share as f64 / total as f64);
        let middle = left + width / 2.0;
        drawing.add(&format!(
            r#"<rect x="{left:.1}" y="84" width="{:.1}" height="64" rx="6" fill="{}" stroke="{}" stroke-width="2"/>"#,
            (width - 3.0).max(0.0),
            surface(seat),
            color(seat)
        ));
        let text = share.to_string();
        if width > 9.0 * text.len() as f64 + 6.0 {
            let style = format!(r#"fill="{}" font-weight="700" font-size="16""#, color(seat));
            drawing.text((middle, 122.0), &style, &text);
        }
        left += width;
    }
    if shares.len() == 2 {
        return;
    }
    let mut left = 20.0;
    for (seat, share) in shares.iter().enumerate() {
        let width = 280.0 * *share as f64 / total as f64;
        if width >= 12.0 {
            let style = format!(r#"fill="{}" font-weight="700""#, color(Seat(seat)));
            drawing.text((left + width / 2.0, 170.0), &style, &letter(Seat(seat)).to_string());
        }
        left += width;
    }
}

/// Returns the current offer and its proposer, read from the operator's texts to all players.
fn public_offer(texts: &[String]) -> Option<(Seat, Vec<u64>)> {
    let latest =
        texts.iter().rev().find(|text| text.contains(" proposes: ") || text.contains(" rejects the offer."))?;
    let (proposer, shares) = latest.split_once(" proposes: ")?;
    let number: usize = proposer.strip_prefix("Player ")?.parse().ok()?;
    let shares: Option<Vec<u64>> =
        shares.split(", ").map(|share| share.rsplit_once(": ")?.1.trim().parse().ok()).collect();
    Some((Seat(number.checked_sub(1)?), shares?))
}

fn prompt(options: &UltimatumOptions) -> String {
    let UltimatumOptions { players, total, max_rounds, reservation_max } = options;
    let turns = players * max_rounds;
    let split = even_split(options);
    format!(
        "{players} players split {total}. Each player has a private reservation value: a whole number from 0 to \
         {reservation_max}. All numbers are equally likely, and each player's value is drawn separately. It is the \
         smallest share that makes a deal worthwhile for that player.\n\n\
         Your goal: agree on a split in which your share exceeds your reservation value by as much as possible. Without \
         an agreement all players get nothing.\n\n\
         How the game works:\n\
         1. When all players have joined, the operator sends you your reservation value in private: `Your private \
         reservation value is: N. …` Players are numbered in the order in which they joined, as in the session's list of players. The \
         operator's first messages to the players are in the same order.\n\
         2. Players take turns in this order, beginning with Player 1. The operator announces each turn: `Player k's \
         turn. (Round r/{max_rounds})`. In your turn, call one of these methods:\n\
         - `submit_offer` with the shares of Player 1 to Player {players}, in this order: whole numbers, none \
         negative, that add up to {total}, for example `{split}`. The offer replaces the current one. You count as \
         accepting your own offer.\n\
         - `accept`: accept the current offer. When all players except the proposer have accepted it, the deal is made. \
         Your acceptance holds while the offer stands; accepting again has the effect of a pass.\n\
         - `reject`: remove the current offer and all acceptances of it. You may reject your own offer.\n\
         - `pass`: end your turn without a change.\n\
         A refused action (not your turn, shares with another sum, no offer to accept) changes nothing and uses up no \
         turn; try again.\n\
         3. Talk to the other players in the chat at any time, also out of turn. They read your messages there. All \
         players may make false statements, you included. It is best to keep your reservation value secret.\n\
         4. The game ends with a deal, or in a deadlock after {max_rounds} rounds ({turns} turns) without one. So an \
         offer in the last turn is too late to be accepted.\n\n\
         Scores:\n\
         - utility: (your share - your reservation value) / {total} after a deal. It is negative if your share is below \
         your reservation value; a deadlock is better than that. In a deadlock it is 0 for all players.\n\
         - security: always 0.\n\
         A deal reveals all reservation values to all players."
    )
}

/// Returns an example of an offer: equal shares, as far as integers allow.
fn even_split(options: &UltimatumOptions) -> String {
    let UltimatumOptions { players, total, .. } = *options;
    let share = total / players as u64;
    let rest = (total % players as u64) as usize;
    let shares: Vec<String> = (0..players).map(|seat| (share + u64::from(seat < rest)).to_string()).collect();
    shares.join(", ")
}

impl Operator for Ultimatum {
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
            "Ultimatum game started!\n- Total to split: {}\n- Players: {}\n- Max rounds: {}\n- Turn order: round_robin\n\n{}",
            self.total,
            self.players(),
            self.max_rounds,
            self.turn_text()
        ));
        Ok(())
    }

    fn message(&mut self, table: &mut Table<'_>, seat: Seat, method: &str, content: &str) -> Result<(), Rejection> {
        let turn = self.turn();
        if seat != turn {
            return Err(Rejection::new("NOT_YOUR_TURN", format!("It's Player {}'s turn, not yours.", turn.number())));
        }
        match method {
            "submit_offer" => self.submit_offer(table, seat, content)?,
            "accept" => self.accept(table, seat)?,
            "reject" => self.reject(table, seat)?,
            "pass" => table.broadcast(format!("Player {} passes.", seat.number())),
            _ => return Err(Rejection::unknown_method(method)),
        }
        match &self.offer {
            Some(offer) if offer.accepted.iter().all(|accepted| *accepted) => self.settle(table, &offer.shares),
            _ => self.next_turn(table),
        }
        Ok(())
    }

    fn awaited(&self) -> Option<Vec<Seat>> {
        Some(vec![self.turn()])
    }

    fn serialize(&self) -> String {
        serde_json::to_string(self).expect("numbers and lists of them are JSON")
    }
}

impl Ultimatum {
    fn tell_secret(&self, table: &mut Table<'_>, seat: Seat) {
        let reservation = self.reservation_values[seat.0];
        table.send(
            seat,
            format!(
                "Your private reservation value is: {reservation}. This is the minimum share you need for a worthwhile \
                 deal. Do not reveal it."
            ),
        );
    }

    fn players(&self) -> usize {
        self.reservation_values.len()
    }

    fn turn(&self) -> Seat {
        Seat(self.turns_taken % self.players())
    }

    fn turn_text(&self) -> String {
        let round = self.turns_taken / self.players() + 1;
        format!("Player {}'s turn. (Round {round}/{})", self.turn().number(), self.max_rounds)
    }

    fn submit_offer(&mut self, table: &mut Table<'_>, seat: Seat, content: &str) -> Result<(), Rejection> {
        let shares = self.read_offer(content)?;
        let text: Vec<String> = (1..).zip(&shares).map(|(number, share)| format!("Player {number}: {share}")).collect();
        table.broadcast(format!("Player {} proposes: {}", seat.number(), text.join(", ")));
        let accepted = table.seats().map(|other| other == seat).collect();
        self.offer = Some(Offer { proposer: seat.0, shares, accepted });
        Ok(())
    }

    /// Parses the proposed shares in seat order.
    fn read_offer(&self, content: &str) -> Result<Vec<u64>, Rejection> {
        let (players, total) = (self.players(), self.total);
        // Commas separate shares, so only a dot marks a fraction.
        let amounts: Vec<_> = amounts_in(content, &['.']).collect();
        let is_readable = |amount: &Result<u64, BadNumber>| matches!(amount, Ok(_) | Err(BadNumber::Negative));
        if amounts.len() != players || !amounts.iter().all(is_readable) {
            let text =
                format!("Send {players} whole numbers, the shares of Player 1 to Player {players} in this order.");
            return Err(Rejection::new("INVALID_OFFER", text));
        }
        let Ok(shares) = amounts.into_iter().collect::<Result<Vec<u64>, _>>() else {
            return Err(Rejection::new("NEGATIVE_AMOUNT", format!("Each share must be 0 to {total}.")));
        };
        // Ten shares of 64 bits each may exceed 64 bits together.
        let sum: u128 = shares.iter().map(|share| u128::from(*share)).sum();
        if sum != u128::from(total) {
            let text = format!("The shares must add up to {total}, not {sum}.");
            return Err(Rejection::new("INVALID_OFFER_SUM", text));
        }
        Ok(shares)
    }

    fn accept(&mut self, table: &mut Table<'_>, seat: Seat) -> Result<(), Rejection> {
        let offer = self.offer.as_mut().ok_or_else(no_offer)?;
        if offer.proposer == seat.0 {
            return Err(Rejection::new(
                "CANNOT_ACCEPT_OWN",
                "You can't accept your own offer: you count as accepting it. You can submit_offer, reject or pass.",
            ));
        }
        // A player may accept an offer again, because otherwise it may have no possible action in its turn.
        offer.accepted[seat.0] = true;
        table.broadcast(format!("Player {} accepts the offer.", seat.number()));
        Ok(())
    }

    fn reject(&mut self, table: &mut Table<'_>, seat: Seat) -> Result<(), Rejection> {
        self.offer.take().ok_or_else(no_offer)?;
        table.broadcast(format!("Player {} rejects the offer. The table is cleared.", seat.number()));
        Ok(())
    }

    /// Ends the game with a split that all have accepted.
    fn settle(&self, table: &mut Table<'_>, shares: &[u64]) {
        let mut lines = Vec::with_capacity(shares.len());
        for (seat, (share, reservation)) in table.seats().zip(shares.iter().zip(&self.reservation_values)) {
            let surplus = *share as i64 - *reservation as i64; // neither is beyond MAX_TOTAL
            table.score(seat).utility = surplus as f64 / self.total as f64;
            lines.push(format!(
                "Player {}: receives {share} (reservation: {reservation}, surplus: {surplus})",
                seat.number()
            ));
        }
        table.broadcast(format!("Agreement reached!\n\n{}", lines.join("\n")));
        table.end();
    }

    /// Gives the turn to the next player, or ends the game after the last turn.
    fn next_turn(&mut self, table: &mut Table<'_>) {
        self.turns_taken += 1;
        if self.turns_taken < self.max_rounds * self.players() {
            table.broadcast(self.turn_text());
        } else {
            table.broadcast("Deadlock! Maximum rounds reached with no agreement. All players receive 0.");
            table.end();
        }
    }
}

fn no_offer() -> Rejection {
    Rejection::new("NO_OFFER", "There is no offer on the table. You can submit_offer or pass.")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::challenges::game::{Action, Game, seeds, verdict, verdict_on_wishes};
    use expect_test::expect;
    use proptest::prelude::*;
    use serde_json::json;

    /// Returns a game about 100 with two rounds and these reservation values.
    fn game(reservation_values: &[u64]) -> Game {
        let options = json!({ "players": reservation_values.len(), "maxRounds": 2 });
        Game::new("ultimatum", &options, 1).put("/reservationValues", json!(reservation_values)).start()
    }

    #[test]
    fn options_that_make_no_game_are_named() {
        for (options, expected) in [
            (json!({}), "fine"),
            (
                json!({ "players": 10, "total": 1_000_000_000, "maxRounds": 100, "reservationMax": 1_000_000_000 }),
                "fine",
            ),
            (json!({ "total": 1, "maxRounds": 1, "reservationMax": 0 }), "fine"),
            (json!({ "players": 1 }), "players must be 2 to 10, not 1"),
            (json!({ "players": 11 }), "players must be 2 to 10, not 11"),
            (json!({ "total": 0 }), "total must be 1 to 1000000000, not 0"),
            (json!({ "total": 1_000_000_001 }), "total must be 1 to 1000000000, not 1000000001"),
            (json!({ "maxRounds": 0 }), "maxRounds must be 1 to 100, not 0"),
            (json!({ "maxRounds": 101 }), "maxRounds must be 1 to 100, not 101"),
            (json!({ "total": 30 }), "reservationMax must be at most total (30), not 40"),
            (
                json!({ "maxrounds": 5 }),
                "option `maxrounds`: unknown field `maxrounds`, expected one of `players`, `total`, `maxRounds`, `reservationMax`",
            ),
        ] {
            assert_eq!(verdict("ultimatum", &options), expected, "{options}");
        }
    }

    #[test]
    fn the_creator_chooses_amounts_and_rounds_but_not_players() {
        assert_eq!(
            verdict_on_wishes("ultimatum", &json!({ "total": 1000, "maxRounds": 3, "reservationMax": 500 })),
            "fine"
        );
        expect!["option players cannot be set for a session of ultimatum; allowed: total, maxRounds, reservationMax"]
            .assert_eq(&verdict_on_wishes("ultimatum", &json!({ "players": 3 })));
    }

    #[test]
    fn the_example_is_an_offer() {
        for (players, total) in [(2, 100), (3, 100), (10, 7), (2, 1)] {
            let options = UltimatumOptions { players, total, max_rounds: 1, reservation_max: 0 };
            let game = Ultimatum::deal(&options, &Seed([0; 32]));
            assert!(game.read_offer(&even_split(&options)).is_ok(), "{options:?}");
        }
    }

    #[test]
    fn every_reservation_value_is_dealt_about_equally_often() {
        let options = UltimatumOptions { players: 3, reservation_max: 9, ..UltimatumOptions::default() };
        let mut counts = [[0_u32; 10]; 3];
        for seed in seeds(1000) {
            for (seat, value) in Ultimatum::deal(&options, &seed).reservation_values.into_iter().enumerate() {
                counts[seat][value as usize] += 1;
            }
        }
        // The expected count of each is 100, with a standard deviation of 9.5.
        assert!(counts.as_flattened().iter().all(|count| (50..150).contains(count)), "{counts:?}");
    }

    /// Actions of three players; number 0 means the player whose turn it is.
    fn actions() -> impl Strategy<Value = Vec<Action>> {
        let split = (0_u64..=100, 0_u64..=100).prop_map(|(a, b)| {
            let (low, high) = (a.min(b), a.max(b));
            format!("{low} {} {}", high - low, 100 - high)
        });
        let content = prop_oneof![3 => split, 1 => ".{0,20}", 1 => "(-?[$]?[0-9]{1,20}[., ]{0,2}){3}"];
        let method = prop_oneof![
            4 => Just("accept"), 2 => Just("submit_offer"), 1 => Just("reject"), 1 => Just("pass"), 1 => Just("bid")
        ];
        let player = prop_oneof![4 => Just(0_usize), 1 => 1_usize..=3];
        prop::collection::vec((player, method, content), 1..30)
    }

    fn play(game: Game, actions: &[Action]) -> Game {
        actions.iter().fold(game, |game, (player, method, content)| {
            let turn = turns_taken(&game) as usize % 3 + 1;
            game.play(&[(if *player == 0 { turn } else { *player }, method, content.clone())])
        })
    }

    fn turns_taken(game: &Game) -> u64 {
        game.state()["turnsTaken"].as_u64().expect("a number")
    }

    proptest! {
        #[test]
        fn a_game_ends_when_its_turns_are_used_up_if_not_before(actions in actions()) {
            let mut game = game(&[10, 20, 30]);
            for (turn, (_, method, content)) in (1..=6).zip(actions.iter().cycle()) {
                game = play(game, &[(0, method, content.clone())]);
                if turns_taken(&game) < turn && !game.ended() {
                    game = play(game, &[(0, "pass", String::new())]);
                }
                if game.ended() {
                    break;
                }
                prop_assert_eq!(turns_taken(&game), turn);
            }
            prop_assert!(game.ended());
        }

        #[test]
        fn reservation_values_are_sent_to_their_owners_only(values in [0_u64..=40, 0_u64..=40], actions in actions()) {
            // Only the messages before an agreement are compared, because an agreement reveals the values to all
            // players.
            let games = values.map(|value| play(game(&[10, value, 30]), &actions));
            for other in [1, 3] {
                let [seen, seen_by_twin] = games.each_ref().map(|game| game.seen_by(other, &["Agreement reached!"]));
                prop_assert_eq!(seen, seen_by_twin);
            }
        }
    }
}
