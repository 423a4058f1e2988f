//! House bots: the host's bots take a seat when a page asks for an opponent. The server knows their challenges and hands out invites;
//! they play from outside, over HTTP (docs/decisions/0060).

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};

use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// What a server offers to those who look for an opponent.
pub struct House {
    challenges: BTreeSet<String>,
    seats: Mutex<Sender<HouseSeat>>,
    places: Arc<Semaphore>,
}

/// A seat that a bot of the house is to take. It counts as taken up until this is dropped.
#[derive(Debug)]
pub struct HouseSeat {
    /// The type of the session.
    pub challenge: String,
    /// The invite of the seat.
    pub invite: String,
    _place: OwnedSemaphorePermit,
}

impl House {
    /// A house with bots for these challenges, which play at most `places` seats at a time; and the seats that they are to take, one
    /// after the other, until the server is gone.
    pub fn open(challenges: impl IntoIterator<Item = String>, places: usize) -> (House, Receiver<HouseSeat>) {
        let (seats, taken) = channel();
        let challenges = challenges.into_iter().collect();
        (House { challenges, seats: Mutex::new(seats), places: Arc::new(Semaphore::new(places)) }, taken)
    }

    /// Whether there are bots for a challenge.
    pub(crate) fn plays(&self, challenge: &str) -> bool {
        self.challenges.contains(challenge)
    }

    /// Keeps places for so many bots, if they are free.
    pub(crate) fn reserve(&self, bots: usize) -> Option<Places> {
        let bots = u32::try_from(bots).ok()?;
        Arc::clone(&self.places).try_acquire_many_owned(bots).ok().map(Places)
    }

    /// Sends a bot to the seat of each invite, as far as places were kept.
    pub(crate) fn send(&self, challenge: &str, invites: &[String], Places(mut places): Places) {
        let seats = self.seats.lock();
        for invite in invites {
            let Some(place) = places.split(1) else { return };
            // Where nobody listens any more, the server is about to stop.
            let _ = seats.send(HouseSeat { challenge: challenge.to_owned(), invite: invite.clone(), _place: place });
        }
    }
}

/// Places that are kept.
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
        house.send("chess", &["inv_1".to_owned(), "inv_2".to_owned()], places);
        let taken: Vec<HouseSeat> = seats.try_iter().collect();
        assert_eq!(taken.iter().map(|seat| seat.invite.as_str()).collect::<Vec<_>>(), ["inv_1", "inv_2"]);
        assert!(house.reserve(1).is_none());
        drop(taken);
        assert!(house.reserve(2).is_some());
    }
}
