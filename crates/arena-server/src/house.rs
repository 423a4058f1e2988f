//! House bots: bots of the server's operator that take seats when a visitor of a page requests an opponent. The server
//! sends them invites. They play over HTTP like other clients (docs/decisions/0060).

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};

use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The strength of a house bot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Strength {
    /// A bot that a beginner can beat.
    Easy,
    /// The usual strength.
    #[default]
    Normal,
}

impl Strength {
    /// Parses `easy` or `normal`.
    pub(crate) fn from_name(name: &str) -> Option<Strength> {
        match name {
            "easy" => Some(Strength::Easy),
            "normal" => Some(Strength::Normal),
            _ => None,
        }
    }
}

/// The house bots of a server.
pub struct House {
    challenges: BTreeSet<String>,
    seats: Mutex<Sender<HouseSeat>>,
    places: Arc<Semaphore>,
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
    _place: OwnedSemaphorePermit,
}

impl HouseSeat {
    /// Returns the user id of the bot, such as `house-psi` or `house-dining-cryptographers-easy-2`.
    pub fn user(&self) -> String {
        let strength = if self.strength == Strength::Easy { "-easy" } else { "" };
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
        (House { challenges, seats: Mutex::new(seats), places: Arc::new(Semaphore::new(places)) }, taken)
    }

    /// True if a house bot plays this challenge.
    pub(crate) fn plays(&self, challenge: &str) -> bool {
        self.challenges.contains(challenge)
    }

    /// Returns the challenge and the strength of a house bot by its user id; `None` for other users.
    pub(crate) fn find_bot(&self, user: &str) -> Option<(&str, Strength)> {
        let user = user.strip_prefix("house-")?;
        // Longer names come first: one challenge's name may begin with another's.
        self.challenges.iter().rev().find_map(|challenge| {
            let rest = user.strip_prefix(challenge.as_str())?;
            let (strength, number) = match rest.strip_prefix("-easy") {
                Some(number) => (Strength::Easy, number),
                None => (Strength::Normal, rest),
            };
            let is_number = number.strip_prefix('-').is_some_and(|digits| digits.parse::<usize>().is_ok());
            (number.is_empty() || is_number).then_some((challenge.as_str(), strength))
        })
    }

    /// Reserves seats for this number of house bots. Returns `None` if fewer are free.
    pub(crate) fn reserve(&self, bots: usize) -> Option<Places> {
        let bots = u32::try_from(bots).ok()?;
        Arc::clone(&self.places).try_acquire_many_owned(bots).ok().map(Places)
    }

    /// Sends the seats of these invites to the house bots, as many as are reserved.
    pub(crate) fn send(&self, challenge: &str, invites: &[String], strength: Strength, Places(mut places): Places) {
        let seats = self.seats.lock();
        for (number, invite) in invites.iter().enumerate() {
            let Some(place) = places.split(1) else { return };
            let (challenge, invite) = (challenge.to_owned(), invite.clone());
            // Sending fails only if the receiver was dropped, which means that the server is stopping.
            let _ = seats.send(HouseSeat { challenge, invite, strength, number, _place: place });
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
    fn bots_are_found_by_their_user_ids() {
        let (house, seats) = House::open(["chess".to_owned(), "chess-960".to_owned()], 4);
        for (challenge, strength) in [("chess", Strength::Easy), ("chess-960", Strength::Normal)] {
            let places = house.reserve(2).expect("two are free");
            house.send(challenge, &["inv_1".to_owned(), "inv_2".to_owned()], strength, places);
            for seat in seats.try_iter() {
                assert_eq!(house.find_bot(&seat.user()), Some((challenge, strength)), "{}", seat.user());
            }
        }
        for other in ["ada", "house-golf", "house-chess-", "house-chess-easy-x", "chess"] {
            assert_eq!(house.find_bot(other), None, "{other}");
        }
    }
}
