//! The options of sessions that play games.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value};

use crate::Seed;
use crate::challenge::{OptionsError, Setting, SettingRange};
use crate::game::{AgentId, Game, Setup};

/// The options of a session that plays a game: the number of players, the time for an answer, and the game's config.
pub struct GameOptions<G: Game> {
    pub(super) players: usize,
    pub(super) turn_ms: u64,
    pub(super) config: Map<String, Value>,
    pub(super) game: std::marker::PhantomData<fn() -> G>,
}

/// The default time for an answer, in milliseconds. The default is long because language models answer slowly.
const TURN_MS: u64 = 120_000;

/// The bounds of the time for an answer, in milliseconds: one second to one week.
pub(super) const TURNS_MS: std::ops::RangeInclusive<u64> = 1_000..=7 * 24 * 3_600_000;

/// The time option of all hosted games.
pub const TURN_MS_SETTING: Setting = Setting::new(
    "turnMs",
    SettingRange::Whole(*TURNS_MS.start() as i64, *TURNS_MS.end() as i64),
    "Time limit for an answer, in milliseconds; a player without an answer is out.",
);

impl<G: Game> Default for GameOptions<G> {
    fn default() -> GameOptions<G> {
        let players = 2.clamp(*G::SEATS.start(), *G::SEATS.end());
        GameOptions { players, turn_ms: TURN_MS, config: Map::new(), game: std::marker::PhantomData }
    }
}

impl<G: Game> Serialize for GameOptions<G> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut all = self.config.clone();
        all.insert("players".to_owned(), self.players.into());
        all.insert("turnMs".to_owned(), self.turn_ms.into());
        all.serialize(serializer)
    }
}

impl<'de, G: Game> Deserialize<'de> for GameOptions<G> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<GameOptions<G>, D::Error> {
        /// Removes an integer from the options and returns it.
        fn take<E: serde::de::Error>(options: &mut Map<String, Value>, key: &str, usual: u64) -> Result<u64, E> {
            match options.remove(key) {
                None => Ok(usual),
                Some(value) => value
                    .as_u64()
                    .ok_or_else(|| E::custom(format!("expected a whole number of at least 0, not {value}"))),
            }
        }
        let mut config = Map::deserialize(deserializer)?;
        let usual = GameOptions::<G>::default();
        let players = take(&mut config, "players", usual.players as u64)? as usize;
        let turn_ms = take(&mut config, "turnMs", usual.turn_ms)?;
        Ok(GameOptions { players, turn_ms, config, game: usual.game })
    }
}

impl<G: Game> GameOptions<G> {
    /// Starts the game with these options. The agents' ids are the players' names.
    pub(super) fn start(&self, seed: Seed, agents: Vec<AgentId>) -> Result<G, OptionsError> {
        G::new(crate::game::config::<G>(&self.config)?, Setup { seed, agents })
    }
}
