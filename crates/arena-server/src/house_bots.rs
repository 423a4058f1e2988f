//! House bots: bots of the server's operator that take seats when a visitor of a page requests an opponent. The server
//! sends them invites. They play over HTTP like other clients (docs/decisions/0060).

use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Weak};
use std::time::Duration;

use arena_engine::Engine;
pub use arena_house::Strength;
use arena_house::forms_of;
use arena_model::MethodForm;
use axum::http::StatusCode;
use parking_lot::Mutex;

use crate::error::ApiError;
use crate::settings::HouseSettings;

/// The time after which an address with its share of the seats may try again.
const RETRY_AFTER: Duration = Duration::from_secs(60);

pub struct House {
    challenges: BTreeSet<String>,
    /// The engine, whose scripted challenges have a bot if they declare forms; `None` until the server offers the bots.
    engine: Option<Engine>,
    seats: Mutex<Sender<HouseSeat>>,
    /// Maximum number of concurrent seats, and the number of them per address; 0 for no limit per address.
    most: usize,
    most_per_address: usize,
    /// The seats that are taken. Those of dropped seats are gone.
    places: Mutex<Vec<Weak<SeatState>>>,
    model: Option<OfferedModel>,
}

/// The state of a seat that a house bot plays.
#[derive(Debug)]
struct SeatState {
    /// The network of the visitor who plays with the bot; `None` for a visitor without limits.
    address: Option<IpAddr>,
    /// True if another player has made a move.
    has_begun: AtomicBool,
    /// True if the place belongs to others now, so the bot must leave.
    is_taken_back: AtomicBool,
}

/// A language model that may play instead of a house bot.
struct OfferedModel {
    name: String,
    /// True while the budget allows another game.
    has_budget: Arc<AtomicBool>,
}

/// A session's seat for a house bot. After the first move of another player, it counts against the maximum number of
/// concurrent seats until it is dropped. Before, it may be taken back.
#[derive(Debug)]
pub struct HouseSeat {
    pub challenge: String,
    pub invite: String,
    pub strength: Strength,
    /// The position among the session's seats for house bots, from 0.
    pub number: usize,
    /// True if a language model plays the seat instead of a bot.
    pub is_for_model: bool,
    /// The forms of the challenge, from which a bot that doesn't know the rules makes its actions. Empty if the challenge
    /// declares none.
    pub forms: Vec<MethodForm>,
    place: Arc<SeatState>,
}

impl HouseSeat {
    /// Returns the user id of the bot, such as `house-psi` or `house-dining-cryptographers-easy-2`.
    pub fn user(&self) -> String {
        let strength = match self.strength {
            _ if self.is_for_model => "-model",
            Strength::Easy => "-easy",
            Strength::Normal => "",
        };
        let number = if self.number > 0 { format!("-{}", self.number + 1) } else { String::new() };
        format!("house-{}{strength}{number}", self.challenge)
    }

    /// Notes that another player has made a move. The bot may then keep its seat until the end of the game.
    pub fn begin(&self) {
        self.place.has_begun.store(true, Ordering::Relaxed);
    }

    /// Returns the flag that is set when the bot must leave, because others got its seat.
    pub fn taken_back(&self) -> &AtomicBool {
        &self.place.is_taken_back
    }
}

impl House {
    /// The receiver yields each seat that a bot must play, until the server stops.
    pub fn open(
        challenges: impl IntoIterator<Item = String>,
        settings: &HouseSettings,
    ) -> (House, Receiver<HouseSeat>) {
        let (seats, taken) = channel();
        let house = House {
            challenges: challenges.into_iter().collect(),
            engine: None,
            seats: Mutex::new(seats),
            most: settings.seats,
            most_per_address: settings.seats_per_address,
            places: Mutex::default(),
            model: None,
        };
        (house, taken)
    }

    /// Offers a language model as an opponent, by its name, while `has_budget` is true.
    #[must_use]
    pub fn with_model(self, name: String, has_budget: Arc<AtomicBool>) -> House {
        House { model: Some(OfferedModel { name, has_budget }), ..self }
    }

    /// Adds the scripted challenges of this engine that declare forms, including those that are added later.
    pub(crate) fn with_scripts(self, engine: Engine) -> House {
        House { engine: Some(engine), ..self }
    }

    /// Returns the name of the language model that visitors can play against; `None` without one, or without budget.
    pub(crate) fn model(&self) -> Option<&str> {
        let model = self.model.as_ref().filter(|model| model.has_budget.load(Ordering::Relaxed));
        model.map(|model| model.name.as_str())
    }

    pub(crate) fn plays(&self, challenge: &str) -> bool {
        self.challenges.contains(challenge) || self.has_forms(challenge)
    }

    pub(crate) fn has_strengths(&self, challenge: &str) -> bool {
        !self.has_forms(challenge)
    }

    fn has_forms(&self, challenge: &str) -> bool {
        let hosted = self.engine.as_ref().map(Engine::challenges);
        hosted.is_some_and(|hosted| hosted.get(challenge).is_some_and(|challenge| !challenge.forms().is_empty()))
    }

    /// Returns the challenge and the strength of a house bot by its user id; `None` for other users.
    pub(crate) fn find_bot(&self, user: &str) -> Option<(String, Strength)> {
        let user = user.strip_prefix("house-")?;
        let hosted = self.engine.as_ref().map(Engine::challenges);
        let scripts = hosted.iter().flat_map(|hosted| hosted.iter());
        let scripts = scripts.filter(|(_, challenge)| !challenge.forms().is_empty()).map(|(name, _)| name);
        let names: BTreeSet<&String> = self.challenges.iter().chain(scripts).collect();
        // Longer names come first: one challenge's name may begin with another's.
        names.into_iter().rev().find_map(|challenge| {
            let rest = user.strip_prefix(challenge.as_str())?;
            let (strength, number) = match rest.strip_prefix("-easy") {
                Some(number) => (Strength::Easy, number),
                None => (Strength::Normal, rest),
            };
            let is_number = number.strip_prefix('-').is_some_and(|digits| digits.parse::<usize>().is_ok());
            (number.is_empty() || is_number).then(|| (challenge.clone(), strength))
        })
    }

    /// Reserves seats for this number of house bots, for a visitor of a network with limits. If too few are free, takes
    /// back seats without a move of another player: the oldest one of the network that has the most of them, so that
    /// no network keeps others out.
    ///
    /// # Errors
    /// 429 if the network has its share of the seats, 503 if the games of others have the seats.
    pub(crate) fn reserve(&self, bots: usize, address: Option<IpAddr>) -> Result<ReservedSeats, ApiError> {
        let mut places = self.places.lock();
        let mut taken: Vec<Arc<SeatState>> = places.iter().filter_map(Weak::upgrade).collect();
        taken.retain(|place| !place.is_taken_back.load(Ordering::Relaxed));
        let own = taken.iter().filter(|place| address.is_some() && place.address == address).count();
        // A single game may need more seats than the share.
        let most_own = if own == 0 { self.most_per_address.max(self.most / 2) } else { self.most_per_address };
        if self.most_per_address > 0 && address.is_some() && own + bots > most_own {
            let text = format!(
                "house bots play {own} seats with this address, and may play {most_own}; try again when a game has \
                 ended (house.seats_per_address)"
            );
            return Err(
                ApiError::new(StatusCode::TOO_MANY_REQUESTS, "TOO_MANY_HOUSE_SEATS", text).retry_after(RETRY_AFTER)
            );
        }
        let missing = (taken.len() + bots).saturating_sub(self.most);
        let mut waiting: Vec<&Arc<SeatState>> =
            taken.iter().filter(|place| !place.has_begun.load(Ordering::Relaxed)).collect();
        if waiting.len() < missing {
            let text = "all house bots are busy; try again when a game has ended";
            return Err(ApiError::new(StatusCode::SERVICE_UNAVAILABLE, "HOUSE_BUSY", text));
        }
        for _ in 0..missing {
            let share = |place: &SeatState| waiting.iter().filter(|other| other.address == place.address).count();
            let next = (0..waiting.len()).min_by_key(|at| Reverse(share(waiting[*at])));
            let place = waiting.remove(next.expect("enough seats wait"));
            place.is_taken_back.store(true, Ordering::Relaxed);
        }
        let flag = || AtomicBool::new(false);
        let place = || SeatState { address, has_begun: flag(), is_taken_back: flag() };
        let new: Vec<Arc<SeatState>> = (0..bots).map(|_| Arc::new(place())).collect();
        *places = taken.iter().chain(&new).map(Arc::downgrade).collect();
        Ok(ReservedSeats(new))
    }

    /// Sends the seats of these invites to the house bots, as many as are reserved. Without a strength, the language
    /// model gets the first seat.
    pub(crate) fn send(
        &self,
        challenge: &str,
        invites: &[String],
        strength: Option<Strength>,
        ReservedSeats(mut places): ReservedSeats,
    ) {
        let hosted = self.engine.as_ref().map(Engine::challenges);
        let hosted = hosted.as_ref().and_then(|hosted| hosted.get(challenge));
        let forms = hosted.map(|challenge| forms_of(challenge.as_ref())).unwrap_or_default();
        // The bot that fills forms has one strength, so its user id needs none.
        let bot_strength = strength.filter(|_| forms.is_empty()).unwrap_or(Strength::Normal);
        let seats = self.seats.lock();
        for (number, invite) in invites.iter().enumerate() {
            let Some(place) = places.pop() else { return };
            let (challenge, invite, forms) = (challenge.to_owned(), invite.clone(), forms.clone());
            let is_for_model = strength.is_none() && number == 0;
            // Sending fails only if the receiver was dropped, which means that the server is stopping.
            let seat = HouseSeat { challenge, invite, strength: bot_strength, number, is_for_model, forms, place };
            let _ = seats.send(seat);
        }
    }
}

/// A reservation of house bots: the state of each seat.
#[derive(Debug)]
pub(crate) struct ReservedSeats(Vec<Arc<SeatState>>);

#[cfg(test)]
mod tests {
    use super::*;

    fn open(challenges: &[&str], seats: usize) -> (House, Receiver<HouseSeat>) {
        let settings = HouseSettings { seats, ..HouseSettings::default() };
        House::open(challenges.iter().map(|challenge| (*challenge).to_owned()), &settings)
    }

    #[test]
    fn places_are_free_again_when_seats_are_let_go() {
        let (house, seats) = open(&["chess"], 2);
        assert!(house.plays("chess") && !house.plays("golf"));
        let places = house.reserve(2, None).expect("both are free");
        house.send("chess", &["inv_1".to_owned(), "inv_2".to_owned()], Some(Strength::Easy), places);
        let taken: Vec<HouseSeat> = seats.try_iter().collect();
        assert_eq!(taken.iter().map(|seat| seat.invite.as_str()).collect::<Vec<_>>(), ["inv_1", "inv_2"]);
        taken.iter().for_each(HouseSeat::begin);
        assert!(house.reserve(1, None).is_err());
        drop(taken);
        assert!(house.reserve(2, None).is_ok());
    }

    #[test]
    fn an_address_gets_its_share_and_seats_without_a_move_are_taken_back() {
        let settings = HouseSettings { seats: 8, seats_per_address: 3, ..HouseSettings::default() };
        let (house, seats) = House::open(["chess".to_owned()], &settings);
        let [ada, bob, eve] =
            ["192.0.2.1", "192.0.2.2", "192.0.2.3"].map(|address| Some(address.parse().expect("an address")));
        let play = |bots: usize, address| -> Result<Vec<HouseSeat>, String> {
            let places = house.reserve(bots, address).map_err(|refusal| format!("{refusal:?}"))?;
            let invites: Vec<String> = (0..bots).map(|n| format!("inv_{n}")).collect();
            house.send("chess", &invites, Some(Strength::Easy), places);
            Ok(seats.try_iter().collect())
        };
        let is_refused = |played: Result<Vec<HouseSeat>, String>, code: &str| {
            let refusal = played.expect_err("too many");
            assert!(refusal.contains(code), "{refusal}");
        };
        let taken_back = |seats: &[HouseSeat]| -> Vec<bool> {
            seats.iter().map(|seat| seat.taken_back().load(Ordering::Relaxed)).collect()
        };
        let of_ada: Vec<HouseSeat> = (0..3).flat_map(|_| play(1, ada).expect("a seat")).collect();
        is_refused(play(1, ada), "TOO_MANY_HOUSE_SEATS");
        // One game may be larger than the share, up to half of all seats.
        is_refused(play(5, bob), "TOO_MANY_HOUSE_SEATS");
        let of_bob = play(4, bob).expect("half of the seats");
        let local = play(1, None).expect("a seat");
        // All seats are taken and wait. The address with the most loses one, and the oldest of equals.
        let of_eve = play(2, eve).expect("a seat of bob, and one of ada");
        assert_eq!(
            (taken_back(&of_ada), taken_back(&of_bob)),
            (vec![true, false, false], vec![false, false, false, true])
        );
        of_ada[1].begin();
        of_bob[2].begin();
        let _second = play(2, None).expect("a seat of bob, and one of eve");
        assert_eq!((taken_back(&of_bob), taken_back(&of_eve)), (vec![false, true, false, true], vec![false, true]));
        // A game that needs more seats than wait takes none.
        is_refused(play(7, None), "HOUSE_BUSY");
        assert_eq!((taken_back(&of_ada), taken_back(&local)), (vec![true, false, false], vec![false]));
        let _third = play(6, None).expect("all seats that wait");
        assert_eq!((taken_back(&of_ada), taken_back(&of_eve)), (vec![true, false, true], vec![true, true]));
        assert_eq!((taken_back(&of_bob), taken_back(&local)), (vec![true, true, false, true], vec![true]));
    }

    #[test]
    fn a_model_is_offered_within_its_budget_and_gets_one_seat() {
        let (house, seats) = open(&["psi"], 2);
        assert_eq!(house.model(), None);
        let has_budget = Arc::new(AtomicBool::new(true));
        let house = house.with_model("thinker-2".to_owned(), Arc::clone(&has_budget));
        assert_eq!(house.model(), Some("thinker-2"));
        let places = house.reserve(2, None).expect("two are free");
        house.send("psi", &["inv_1".to_owned(), "inv_2".to_owned()], None, places);
        let users: Vec<String> = seats.try_iter().map(|seat| seat.user()).collect();
        assert_eq!(users, ["house-psi-model", "house-psi-2"]);
        has_budget.store(false, Ordering::Relaxed);
        assert_eq!(house.model(), None);
    }

    #[test]
    fn bots_are_found_by_their_user_ids() {
        let (house, seats) = open(&["chess", "chess-960"], 4);
        for (challenge, strength) in [("chess", Strength::Easy), ("chess-960", Strength::Normal)] {
            let places = house.reserve(2, None).expect("two are free");
            house.send(challenge, &["inv_1".to_owned(), "inv_2".to_owned()], Some(strength), places);
            for seat in seats.try_iter() {
                assert_eq!(house.find_bot(&seat.user()), Some((challenge.to_owned(), strength)), "{}", seat.user());
            }
        }
        for other in ["ada", "house-golf", "house-chess-", "house-chess-easy-x", "chess"] {
            assert_eq!(house.find_bot(other), None, "{other}");
        }
    }
}
