//! Bans. The engine keeps all bans in memory, because every request checks them and they are few.

use std::collections::HashMap;
use std::net::IpAddr;

use arena_model::{Party, Session, UserId};
use arena_store::{AddressRange, Ban, BanSubject};
use parking_lot::RwLock;

use crate::request::EngineError;

#[derive(Default)]
pub(crate) struct Bans(RwLock<BanTable>);

#[derive(Default)]
struct BanTable {
    users: HashMap<UserId, String>,
    addresses: Vec<(AddressRange, String)>,
}

#[derive(Clone)]
pub(crate) enum Actor {
    /// A party without an identified user: the holder of an invite, or the clock.
    Unidentified,
    /// A joining player, with its user id if the request contains one.
    Joiner(Option<UserId>),
    Speaker(Party),
}

impl Actor {
    /// Returns the actor's user, if known. A spectator's name counts as its user id.
    fn user(&self, session: &Session) -> Option<UserId> {
        match self {
            Actor::Unidentified => None,
            Actor::Joiner(user) => user.clone(),
            Actor::Speaker(Party::Player(invite)) => {
                session.seat_of(*invite).and_then(|seat| session.seats[seat.0].user.clone())
            }
            Actor::Speaker(Party::Other(name)) => name.parse().ok(),
            Actor::Speaker(Party::Operator) => None,
        }
    }
}

impl Bans {
    pub(crate) fn of(bans: Vec<Ban>) -> Bans {
        let all = Bans::default();
        for ban in bans {
            all.add(&ban);
        }
        all
    }

    pub(crate) fn replace(&self, bans: Vec<Ban>) {
        let new = Bans::of(bans).0.into_inner();
        *self.0.write() = new;
    }

    pub(crate) fn add(&self, ban: &Ban) {
        let mut table = self.0.write();
        let reason = ban.reason.clone();
        match &ban.subject {
            BanSubject::User(user) => drop(table.users.insert(user.clone(), reason)),
            BanSubject::Addresses(range) => {
                table.addresses.retain(|(other, _)| other != range);
                table.addresses.push((*range, reason));
            }
        }
    }

    pub(crate) fn lift(&self, subject: &BanSubject) {
        let mut table = self.0.write();
        match subject {
            BanSubject::User(user) => drop(table.users.remove(user)),
            BanSubject::Addresses(range) => table.addresses.retain(|(other, _)| other != range),
        }
    }

    /// Checks that an actor's user isn't banned. Every transition of an existing session goes through this check.
    pub(crate) fn admit(&self, actor: &Actor, session: &Session) -> Result<(), EngineError> {
        // Most arenas have no banned users. The lookup of the actor's user is then unnecessary.
        if self.0.read().users.is_empty() {
            return Ok(());
        }
        actor.user(session).map_or(Ok(()), |user| self.admit_user(&user))
    }

    pub(crate) fn admit_user(&self, user: &UserId) -> Result<(), EngineError> {
        self.0.read().users.get(user).map_or(Ok(()), |reason| Err(EngineError::Banned { reason: reason.clone() }))
    }

    pub(crate) fn admit_address(&self, address: IpAddr) -> Result<(), EngineError> {
        let table = self.0.read();
        match table.addresses.iter().find(|(range, _)| range.contains(address)) {
            Some((_, reason)) => Err(EngineError::Banned { reason: reason.clone() }),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arena_model::Timestamp;

    fn ban(subject: BanSubject, reason: &str) -> Ban {
        Ban { subject, reason: reason.to_owned(), at: Timestamp(0) }
    }

    fn addresses(range: &str) -> BanSubject {
        BanSubject::Addresses(range.parse().expect("a range"))
    }

    #[test]
    fn a_ban_holds_until_it_is_lifted() {
        let bans = Bans::of(vec![ban(addresses("192.0.2.0/24"), "noise")]);
        let refusal =
            |address: &str| bans.admit_address(address.parse().expect("an address")).map_err(|error| error.to_string());
        assert_eq!(refusal("::ffff:192.0.2.9"), Err("banned from this arena: noise".to_owned()));
        assert_eq!(refusal("192.0.3.9"), Ok(()));
        bans.add(&ban(addresses("192.0.2.0/24"), "more noise"));
        assert_eq!(refusal("192.0.2.9"), Err("banned from this arena: more noise".to_owned()));
        bans.lift(&addresses("192.0.2.9"));
        assert!(refusal("192.0.2.9").is_err(), "another ban was lifted");
        bans.lift(&addresses("192.0.2.0/24"));
        assert_eq!(refusal("192.0.2.9"), Ok(()));

        let ada: UserId = "ada".parse().expect("an id");
        bans.add(&ban(BanSubject::User(ada.clone()), "cheats"));
        assert!(bans.admit_user(&ada).is_err());
        bans.lift(&BanSubject::User(ada.clone()));
        assert!(bans.admit_user(&ada).is_ok());
    }
}
