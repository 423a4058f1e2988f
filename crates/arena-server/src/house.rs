//! House bots: bots of the server's operator that take seats when a visitor of a page requests an opponent. The server
//! sends them invites. They play over HTTP like other clients (docs/decisions/0060).

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};

use arena_engine::Engine;
pub use arena_house::Strength;
use arena_model::{ChallengeMetadata, ChallengeType, MethodForm};
use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The house bots of a server.
pub struct House {
    challenges: BTreeSet<String>,
    /// The engine, whose scripted challenges have a bot if they declare forms; `None` until the server offers the bots.
    engine: Option<Engine>,
    seats: Mutex<Sender<HouseSeat>>,
    places: Arc<Semaphore>,
    model: Option<OfferedModel>,
}

/// A language model that may play instead of a house bot.
struct OfferedModel {
    name: String,
    /// True while the budget allows another game.
    has_budget: Arc<AtomicBool>,
}

/// A session's seat for a house bot. It counts against the maximum number of concurrent seats until it is dropped.
#[derive(Debug)]
pub struct HouseSeat {
    /// The session's challenge type.
    pub challenge: String,
    /// The invite of the seat.
    pub invite: String,
    /// The strength of the bot.
    pub strength: Strength,
    /// The position among the session's seats for house bots, from 0.
    pub number: usize,
    /// True if a language model plays the seat instead of a bot.
    pub is_for_model: bool,
    /// The forms of the challenge's methods, if it declares any.
    pub declared: Option<DeclaredForms>,
    _place: OwnedSemaphorePermit,
}

/// The public data of a challenge with forms. A bot that doesn't know the rules makes its actions from them.
#[derive(Debug, Clone)]
pub struct DeclaredForms {
    /// The forms in the order of the challenge's methods.
    pub forms: Vec<MethodForm>,
    /// The challenge's metadata.
    pub metadata: ChallengeMetadata,
}

impl DeclaredForms {
    /// Returns the forms of a challenge; `None` if it declares none.
    fn of(challenge: &dyn ChallengeType) -> Option<DeclaredForms> {
        let (declared, metadata) = (challenge.forms(), challenge.metadata().clone());
        let form = |method: &str| declared.iter().find(|form| form.method == method).cloned();
        let forms: Vec<MethodForm> = metadata.methods.iter().filter_map(|method| form(&method.name)).collect();
        (!forms.is_empty()).then_some(DeclaredForms { forms, metadata })
    }
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
}

impl House {
    /// Creates the house bots for these challenges, with at most `places` concurrent seats. The receiver yields each
    /// seat that a bot must play, until the server stops.
    pub fn open(challenges: impl IntoIterator<Item = String>, places: usize) -> (House, Receiver<HouseSeat>) {
        let (seats, taken) = channel();
        let challenges = challenges.into_iter().collect();
        let places = Arc::new(Semaphore::new(places));
        (House { challenges, engine: None, seats: Mutex::new(seats), places, model: None }, taken)
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

    /// Returns the name of the language model that visitors can play against; `None` if there is none, or if its budget
    /// is used up.
    pub(crate) fn model(&self) -> Option<&str> {
        let model = self.model.as_ref().filter(|model| model.has_budget.load(Ordering::Relaxed));
        model.map(|model| model.name.as_str())
    }

    /// True if a house bot plays this challenge.
    pub(crate) fn plays(&self, challenge: &str) -> bool {
        self.challenges.contains(challenge) || self.has_forms(challenge)
    }

    /// True if the house bots of this challenge have several strengths.
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

    /// Reserves seats for this number of house bots. Returns `None` if fewer are free.
    pub(crate) fn reserve(&self, bots: usize) -> Option<Places> {
        let bots = u32::try_from(bots).ok()?;
        Arc::clone(&self.places).try_acquire_many_owned(bots).ok().map(Places)
    }

    /// Sends the seats of these invites to the house bots, as many as are reserved.
    pub(crate) fn send(&self, challenge: &str, invites: &[String], strength: Strength, places: Places) {
        self.send_with(challenge, invites, (strength, false), places);
    }

    /// Sends the first seat of these invites to the language model, and the others to house bots.
    pub(crate) fn send_to_model(&self, challenge: &str, invites: &[String], places: Places) {
        self.send_with(challenge, invites, (Strength::Normal, true), places);
    }

    fn send_with(
        &self,
        challenge: &str,
        invites: &[String],
        (strength, wants_model): (Strength, bool),
        Places(mut places): Places,
    ) {
        let hosted = self.engine.as_ref().map(Engine::challenges);
        let declared = hosted.as_ref().and_then(|hosted| DeclaredForms::of(hosted.get(challenge)?.as_ref()));
        // The bot that fills forms has one strength, so its user id needs none.
        let strength = if declared.is_some() { Strength::Normal } else { strength };
        let seats = self.seats.lock();
        for (number, invite) in invites.iter().enumerate() {
            let Some(place) = places.split(1) else { return };
            let (challenge, invite, declared) = (challenge.to_owned(), invite.clone(), declared.clone());
            let is_for_model = wants_model && number == 0;
            // Sending fails only if the receiver was dropped, which means that the server is stopping.
            let seat = HouseSeat { challenge, invite, strength, number, is_for_model, declared, _place: place };
            let _ = seats.send(seat);
        }
    }
}

/// A reservation of house bots: one permit for each seat.
pub(crate) struct Places(OwnedSemaphorePermit);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_free_again_when_seats_are_let_go() {
        let (house, seats) = House::open(["chess".to_owned()], 2);
        assert!(house.plays("chess") && !house.plays("golf"));
        let places = house.reserve(2).expect("both are free");
        assert!(house.reserve(1).is_none());
        house.send("chess", &["inv_1".to_owned(), "inv_2".to_owned()], Strength::Easy, places);
        let taken: Vec<HouseSeat> = seats.try_iter().collect();
        assert_eq!(taken.iter().map(|seat| seat.invite.as_str()).collect::<Vec<_>>(), ["inv_1", "inv_2"]);
        assert!(house.reserve(1).is_none());
        drop(taken);
        assert!(house.reserve(2).is_some());
    }

    #[test]
    fn a_model_is_offered_within_its_budget_and_gets_one_seat() {
        let (house, seats) = House::open(["psi".to_owned()], 2);
        assert_eq!(house.model(), None);
        let has_budget = Arc::new(AtomicBool::new(true));
        let house = house.with_model("thinker-2".to_owned(), Arc::clone(&has_budget));
        assert_eq!(house.model(), Some("thinker-2"));
        let places = house.reserve(2).expect("two are free");
        house.send_to_model("psi", &["inv_1".to_owned(), "inv_2".to_owned()], places);
        let users: Vec<String> = seats.try_iter().map(|seat| seat.user()).collect();
        assert_eq!(users, ["house-psi-model", "house-psi-2"]);
        has_budget.store(false, Ordering::Relaxed);
        assert_eq!(house.model(), None);
    }

    #[test]
    fn bots_are_found_by_their_user_ids() {
        let (house, seats) = House::open(["chess".to_owned(), "chess-960".to_owned()], 4);
        for (challenge, strength) in [("chess", Strength::Easy), ("chess-960", Strength::Normal)] {
            let places = house.reserve(2).expect("two are free");
            house.send(challenge, &["inv_1".to_owned(), "inv_2".to_owned()], strength, places);
            for seat in seats.try_iter() {
                assert_eq!(house.find_bot(&seat.user()), Some((challenge.to_owned(), strength)), "{}", seat.user());
            }
        }
        for other in ["ada", "house-golf", "house-chess-", "house-chess-easy-x", "chess"] {
            assert_eq!(house.find_bot(other), None, "{other}");
        }
    }
}
