//! House bots: the opponents that a server offers. A person who requests an opponent on a challenge's page gets one
//! seat; bots get the other seats.
//!
//! A thread with its own HTTP client plays each seat and receives only that seat's data ([`seat`]). A pure function
//! computes a bot's next action from these data: [`bots`] for `psi`, [`talkers`] for the other challenges of words, and
//! [`arena_games::bots`] for games. One bot plays all scripted challenges that declare forms ([`forms`]).

pub mod bots;
mod convention;
mod forms;
mod model;
pub mod psi;
pub mod seat;
pub mod table;
mod talk;
mod talkers;

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use arena_engine::Environment;
use arena_games::bots::HouseBot;
use arena_identity::{KeyPair, ProfileUpdate};
use arena_server::{House, HouseSeat, Server, Strength};

use self::bots::{DemoBot, HOUSE};
use self::forms::FormBot;
pub use self::model::HouseModel;
use self::psi::Patience;
use self::seat::TakenSeat;
use self::table::Manner;
use self::talk::Talker;
use crate::client::{Arena, CallError};
use crate::exit::Failure;

/// The flag that stops the threads of house bots when the server stops.
pub static ENDING: AtomicBool = AtomicBool::new(false);

/// The pause before a bot's action.
const PACE: Duration = Duration::from_millis(500);

/// A bot that plays with visitors.
enum Opponent {
    /// A bot for `psi`.
    Guesser(&'static DemoBot),
    /// A bot for another challenge of words.
    Talker(&'static Talker, Strength),
    /// A bot for a board game, which moves.
    Player(&'static HouseBot),
    /// The bot for scripted challenges, which fills their forms.
    Filler(Box<FormBot>),
}

impl Opponent {
    /// Returns the opponent for a challenge, or `None` if there is none.
    fn find(challenge: &str, strength: Strength) -> Option<Opponent> {
        if challenge == "psi" {
            // Only bots that send no digests, since people can't compute hashes by hand.
            let name = match strength {
                Strength::Easy => "open-book",
                Strength::Normal => "cautious",
            };
            return HOUSE.iter().find(|bot| bot.name == name).map(Opponent::Guesser);
        }
        if let Some(talker) = talkers::find(challenge) {
            return Some(Opponent::Talker(talker, strength));
        }
        let [normal, easy] = arena_games::all().find(|playable| playable.id == challenge)?.kit.bots?;
        Some(Opponent::Player(if strength == Strength::Easy { easy } else { normal }))
    }

    /// Returns the description of the bot's strategy.
    fn motto(&self) -> &'static str {
        match *self {
            Opponent::Guesser(bot) => bot.motto,
            Opponent::Talker(talker, strength) => talker.mottos[usize::from(strength == Strength::Normal)],
            Opponent::Player(player) => player.motto,
            Opponent::Filler(_) => FormBot::MOTTO,
        }
    }

    fn play(&self, seat: &TakenSeat) -> Result<(), CallError> {
        match *self {
            Opponent::Guesser(bot) => psi::play(seat, bot, Patience::WITH_PEOPLE, &ENDING),
            Opponent::Talker(talker, strength) => talk::play(seat, talker, strength, &ENDING),
            Opponent::Player(player) => {
                // Games with lists of actions have thousands of epochs.
                let pace = if player.method == "actions" { Duration::ZERO } else { PACE };
                table::play(seat, player, Manner { pace, stop: &ENDING })
            }
            Opponent::Filler(ref bot) => bot.play(seat, &ENDING),
        }
    }
}

/// Returns the ids of the built-in challenges that have opponents.
fn challenges() -> impl Iterator<Item = String> {
    arena_games::challenges()
        .filter(|challenge| Opponent::find(challenge, Strength::Normal).is_some())
        .map(str::to_owned)
}

/// Returns the address on which this machine reaches a server that listens on `address`.
fn reachable(address: SocketAddr) -> SocketAddr {
    let ip = match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        ip => ip,
    };
    SocketAddr::new(ip, address.port())
}

/// The bots' identities on a server.
struct Identities {
    /// True if the server has authentication mode.
    signs: bool,
    /// The bots with a published profile. In authentication mode each has a key, which lasts as long as the program.
    known: BTreeMap<String, Option<KeyPair>>,
}

impl Identities {
    /// Takes a seat under the bot's name. The bot's first seat publishes its profile, which shows that it is a bot.
    fn take(&mut self, arena: &Arena, seat: &HouseSeat, motto: &str) -> Result<TakenSeat, CallError> {
        let name = seat.user();
        if !self.known.contains_key(&name) {
            let model = format!("a house bot that {motto}");
            let update = ProfileUpdate { username: Some(&name), model: Some(&model) };
            let pair = if self.signs { Some(new_pair()?) } else { None };
            match &pair {
                Some(pair) => arena.update_user_signed(pair, update, Environment::system().now())?,
                None => arena.update_user(Some(&name), update)?,
            };
            self.known.insert(name.clone(), pair);
        }
        match self.known.get(&name).and_then(Option::as_ref) {
            Some(pair) => TakenSeat::take_signed(arena, &seat.invite, pair),
            None => TakenSeat::take(arena, &seat.invite, &name),
        }
    }
}

fn new_pair() -> Result<KeyPair, CallError> {
    let mut bytes = [0; 32];
    let no_bytes = |error| CallError::Request(format!("cannot get random bytes from the system: {error}"));
    getrandom::fill(&mut bytes).map_err(no_bytes)?;
    Ok(KeyPair::from_random(bytes))
}

/// Starts the thread that plays the seats of house bots on a server, and offers the bots on the server's pages.
/// `signs` is true if the server has authentication mode. At most `seats` bots play at the same time. `model` plays
/// with visitors who choose it.
///
/// # Errors
/// If no thread can be started.
pub fn open(server: &Server, signs: bool, seats: usize, model: Option<HouseModel>) -> std::io::Result<()> {
    let arena = Arena::at(&format!("http://{}", reachable(server.address())));
    let (house, requested) = House::open(challenges(), seats);
    let model = model.map(Arc::new);
    let house = match &model {
        Some(model) => house.with_model(model.name().to_owned(), model.has_budget()),
        None => house,
    };
    thread::Builder::new().name("house".to_owned()).spawn(move || {
        let mut identities = Identities { signs, known: BTreeMap::new() };
        // The loop ends when the server drops the sender.
        for seat in requested {
            let started = start(&arena, &mut identities, seat, model.as_ref());
            if let Err(error) = started.or_else(|error| unless_stopped(error, &ENDING)) {
                Failure::from(error).print();
            }
        }
    })?;
    server.offer(house);
    Ok(())
}

/// Takes a seat and starts the thread that plays it.
fn start(
    arena: &Arena,
    identities: &mut Identities,
    mut seat: HouseSeat,
    model: Option<&Arc<HouseModel>>,
) -> Result<(), CallError> {
    let opponent = match seat.declared.take() {
        Some(declared) => Some(Opponent::Filler(Box::new(FormBot::new(&seat.challenge, declared)))),
        None => Opponent::find(&seat.challenge, seat.strength),
    };
    let Some(opponent) = opponent else { return Ok(()) };
    let model = model.filter(|model| seat.is_for_model && model.reserve()).map(Arc::clone);
    seat.is_for_model = model.is_some();
    let motto = match &model {
        Some(model) => format!("asks the language model {}", model.name()),
        None => opponent.motto().to_owned(),
    };
    let taken = identities.take(&arena.own_connection(), &seat, &motto).inspect_err(|_| {
        if let Some(model) = &model {
            model.release(0.0);
        }
    })?;
    let started = thread::Builder::new().name(seat.user()).spawn(move || {
        if let Some(model) = model {
            model.play(&taken);
            // If the model has failed, the bot goes on. If the session has ended, the bot leaves at once.
        }
        let played = opponent.play(&taken).or_else(|error| unless_stopped(error, &ENDING));
        if let Err(error) = played {
            Failure::from(error).print();
        }
        // The seat counts against the maximum until the game is over.
        drop(seat);
    });
    if let Err(error) = started {
        tracing::warn!(%error, "cannot start a thread for a house bot: {error}");
    }
    Ok(())
}

/// Returns the error, or `Ok` if `stop` is set: requests fail while the server stops.
pub fn unless_stopped(error: CallError, stop: &AtomicBool) -> Result<(), CallError> {
    if stop.load(Ordering::Relaxed) { Ok(()) } else { Err(error) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_challenge_has_opponents_of_both_strengths() {
        for challenge in arena_games::challenges() {
            let mottos = [Strength::Easy, Strength::Normal]
                .map(|strength| Opponent::find(challenge, strength).expect("an opponent").motto());
            assert_ne!(mottos[0], mottos[1], "{challenge}");
        }
        assert!(Opponent::find("golf", Strength::Normal).is_none());
    }

    #[test]
    fn a_server_on_all_addresses_is_reached_on_loopback() {
        let reach = |address: &str| reachable(address.parse().unwrap()).to_string();
        assert_eq!(reach("0.0.0.0:80"), "127.0.0.1:80");
        assert_eq!(reach("[::]:80"), "[::1]:80");
        assert_eq!(reach("10.0.0.7:80"), "10.0.0.7:80");
    }
}
