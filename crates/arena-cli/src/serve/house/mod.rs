//! House bots: the opponents that a server offers. A person who requests an opponent on a challenge's page gets one
//! seat; bots get the other seats.
//!
//! A thread with its own HTTP client plays each seat and receives only that seat's data. The bots are in `arena-house`;
//! one loop plays all of them ([`play_bot`]).

mod model;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use arena_engine::Environment;
use arena_house::{Bot, FormBot, Heard, Step};
use arena_identity::{KeyPair, ProfileUpdate};
use arena_model::MethodForm;
use arena_players::http::{Arena, BotPolicy, CallError, HttpSeat, Identity, play_bot, random_bytes, wait_for_start};
use arena_server::{House, HouseSeat, HouseSettings, Server, Strength};
use arena_wire::Message;

use crate::exit::{Exit, Failure};

pub use self::model::HouseModel;

/// The flag that stops the threads of house bots when the server stops.
pub static ENDING: AtomicBool = AtomicBool::new(false);

/// The pause before a bot's step.
const PACE: Duration = Duration::from_millis(500);

/// The time without news after which a bot stops waiting for others. People need time to read and type.
const PATIENCE: Duration = Duration::from_secs(120);

/// The time without news after which the bot of `psi` stops waiting for the opponent's numbers.
const PSI_PATIENCE: Duration = Duration::from_secs(300);

/// The time without news after which the bot of forms takes another turn, since it doesn't know if it is its turn.
const FORM_PATIENCE: Duration = Duration::from_secs(15);

/// A bot that plays with visitors.
enum Opponent {
    Builtin(String, Strength),
    /// The bot of a scripted challenge, which fills its forms.
    Filler(Vec<MethodForm>),
}

impl Opponent {
    fn find(challenge: &str, strength: Strength) -> Option<Opponent> {
        arena_house::info(challenge, strength).map(|_| Opponent::Builtin(challenge.to_owned(), strength))
    }

    /// Returns the description of the bot's strategy.
    fn motto(&self) -> &'static str {
        match self {
            Opponent::Builtin(challenge, strength) => {
                arena_house::info(challenge, *strength).map_or("plays", |info| info.motto)
            }
            Opponent::Filler(_) => FormBot::INFO.motto,
        }
    }

    fn play(self, seat: &HttpSeat, of_house: &HouseSeat) -> Result<(), CallError> {
        let stop = [&ENDING, of_house.taken_back()];
        let random = u64::from_be_bytes(random_bytes()?);
        let (mut bot, pace, patience): (Box<dyn Bot>, Duration, Duration) = match self {
            Opponent::Builtin(challenge, strength) => {
                let Some(bot) = arena_house::bot(&challenge, strength, random) else { return Ok(()) };
                let patience = if challenge == "psi" { PSI_PATIENCE } else { PATIENCE };
                (bot, pace_of(&challenge), patience)
            }
            Opponent::Filler(forms) => {
                let bot = FormBot::new(seat.metadata.clone(), forms, random);
                let bot = match wait_for_start(seat, &stop)? {
                    Some(number) => bot.with_seat(number),
                    None => bot,
                };
                (Box::new(bot), PACE, FORM_PATIENCE)
            }
        };
        let mut bot = SeatedBot { bot: bot.as_mut(), seat: of_house };
        play_bot(seat, &mut bot, BotPolicy { pace, patience, poll: None, stop: &stop }).map(drop)
    }
}

/// A bot that notes on its seat when another player has made a move. The operator channel has the players' moves.
struct SeatedBot<'a> {
    bot: &'a mut dyn Bot,
    seat: &'a HouseSeat,
}

impl Bot for SeatedBot<'_> {
    fn next(&mut self, heard: &Heard<'_>) -> Option<Step> {
        let is_other = |message: &Message| message.from != heard.me && message.from != "operator";
        if heard.operator.iter().any(is_other) {
            self.seat.begin();
        }
        self.bot.next(heard)
    }

    fn refused(&mut self, step: &Step) {
        self.bot.refused(step);
    }

    fn needs_news_only(&self) -> bool {
        self.bot.needs_news_only()
    }
}

/// Returns the pause before a step in a built-in challenge. There is none in games with lists of actions, which have
/// thousands of epochs.
fn pace_of(challenge: &str) -> Duration {
    let bots = arena_games::all().find(|playable| playable.id == challenge).and_then(|playable| playable.kit.bots);
    if bots.is_some_and(|[bot, _]| bot.method == "actions") { Duration::ZERO } else { PACE }
}

fn challenges() -> impl Iterator<Item = String> {
    arena_games::challenges()
        .filter(|challenge| Opponent::find(challenge, Strength::Normal).is_some())
        .map(str::to_owned)
}

struct Identities {
    /// True if the server has authentication mode.
    signs: bool,
    /// The bots with a published profile. In authentication mode each has a key, which lasts as long as the program.
    known: BTreeMap<String, Option<KeyPair>>,
}

impl Identities {
    /// Takes a seat under the bot's name. The bot's first seat publishes its profile, which shows that it is a bot.
    fn take(&mut self, arena: &Arena, seat: &HouseSeat, motto: &str) -> Result<HttpSeat, CallError> {
        let name = seat.user();
        if !self.known.contains_key(&name) {
            let model = format!("a house bot that {motto}");
            let update = ProfileUpdate { username: Some(&name), model: Some(&model) };
            let pair = if self.signs { Some(KeyPair::from_random(random_bytes()?)) } else { None };
            arena.update_user(identity_of(&name, pair.as_ref()), update)?;
            self.known.insert(name.clone(), pair);
        }
        let pair = self.known.get(&name).and_then(Option::as_ref);
        HttpSeat::take(arena, &seat.invite, identity_of(&name, pair))
    }
}

fn identity_of<'i>(name: &'i str, pair: Option<&'i KeyPair>) -> Identity<'i> {
    match pair {
        Some(pair) => Identity::Key(pair, Environment::system().now()),
        None => Identity::Name(Some(name)),
    }
}

/// Starts the thread that plays the seats of house bots on a server, and offers the bots on the server's pages.
/// `signs` is true if the server has authentication mode. `model` plays with visitors who choose it.
///
/// # Errors
/// If the thread can't be started, or the server has no address for the bots.
pub async fn open(
    server: &mut Server,
    signs: bool,
    settings: &HouseSettings,
    model: Option<HouseModel>,
) -> Result<(), Failure> {
    let (house, requested) = House::open(challenges(), settings);
    let model = model.map(Arc::new);
    let house = match &model {
        Some(model) => house.with_model(model.name().to_owned(), model.has_budget()),
        None => house,
    };
    let no_address = |error| Failure::new(Exit::CannotListen, format_args!("cannot listen for house bots: {error}"));
    let arena = Arena::at(&format!("http://{}", server.offer(house).await.map_err(no_address)?));
    let play_seats = move || {
        let mut identities = Identities { signs, known: BTreeMap::new() };
        // The loop ends when the server drops the sender.
        for seat in requested {
            let started = start(&arena, &mut identities, seat, model.as_ref());
            if let Err(error) = started.or_else(|error| unless_stopped(error, &ENDING)) {
                Failure::from(error).print();
            }
        }
    };
    let started = thread::Builder::new().name("house".to_owned()).spawn(play_seats);
    started.map(drop).map_err(|error| Failure::cannot("start a thread", error))
}

fn start(
    arena: &Arena,
    identities: &mut Identities,
    mut seat: HouseSeat,
    model: Option<&Arc<HouseModel>>,
) -> Result<(), CallError> {
    let forms = std::mem::take(&mut seat.forms);
    let opponent = match forms.is_empty() {
        false => Some(Opponent::Filler(forms)),
        true => Opponent::find(&seat.challenge, seat.strength),
    };
    let Some(opponent) = opponent else { return Ok(()) };
    let game = model.filter(|_| seat.is_for_model).and_then(HouseModel::reserve);
    seat.is_for_model = game.is_some();
    let motto = match &game {
        Some(game) => format!("asks the language model {}", game.model().name()),
        None => opponent.motto().to_owned(),
    };
    let taken = identities.take(&arena.own_connection(), &seat, &motto)?;
    let started = thread::Builder::new().name(seat.user()).spawn(move || {
        if let Some(game) = game {
            // The model's game costs money, so its seat isn't taken back.
            seat.begin();
            game.play(&taken);
            // If the model has failed, the bot goes on. If the session has ended, the bot leaves at once.
        }
        let played = opponent.play(&taken, &seat).or_else(|error| unless_stopped(error, &ENDING));
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
}
