//! cherry_picker: each agent forages alone on a map of its own. All maps start equal, and the agent with the most
//! food wins.
//!
//! `foraging` describes the map and the actions; there are no opponents to attack. All agents of a match start on the
//! same map, drawn once from the seed, with the same ids; only `owner_id` names each map's own agent. Later sources of
//! food are also the same, in the same order, though they may appear at different times. So equal actions always give
//! equal maps.
//!
//! A map advances even if its agent sends no valid reply: the epoch then has no actions, and the food grows. So an
//! agent can't stop its map.
//!
//! The score is the food in the agent's bases. The game ends after `n_epochs` epochs, or once no agent can act. An
//! agent can't act if it is disqualified, or if its last actor became a base and it can't pay for another actor. If
//! all agents but one are disqualified, the last agent plays on for its score.

use std::ops::RangeInclusive;

use arena_model::{Actions, Events, Game, Hosted, OptionsError, Scene, Seat, Setting, Setup, TimeLimits, UpdateMode};
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value};

use super::foraging::descriptions::{DEPOSIT_FOOD, HEAL, MAKE_BASE, MOVE, SPAWN, TAKE_FOOD, options_of_map};
use super::foraging::{
    Action, CONTROLS, Constants, MODULE, World, bots, picture, read_scores, short_options, terminal,
};
use crate::playable::example;
use crate::{Kit, Playable};

/// The catalogue entry, listed in `games.rs`.
pub const PLAYABLE: Playable = Playable::game::<CherryPicker>(Kit {
    rules: Some(
        "Each player has an equal map. Send your actors to the food, and back to a base with what they carry. \
         Only food in your bases counts at the end; keep your actors apart, since two that collide become \
         one.",
    ),
    picture: Some(include_str!("cherry_picker.svg")),
    terminal: Some(terminal::draw_worlds),
    module: Some(MODULE),
    controls: Some(CONTROLS),
    scores: Some(read_scores),
    bots: Some([&bots::FORAGER, &bots::CARRIER]),
    short: Some(short_options),
    samples: &[
        &[("agent.py", example!("python/cherry_picker.py")), ("foraging.py", example!("python/foraging.py"))],
        &[("agent.js", example!("javascript/cherry_picker.js")), ("foraging.js", example!("javascript/foraging.js"))],
    ],
    ..Kit::USUAL
});

/// The constants of cherry_picker: those of food_catcher, on a map of 75 by 75 with 15 sources.
pub struct CherryPickerConfig(Constants);

impl Serialize for CherryPickerConfig {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for CherryPickerConfig {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<CherryPickerConfig, D::Error> {
        let mut given: Map<String, Value> = Map::deserialize(deserializer)?;
        for (key, usual) in [("grid_width", 75), ("grid_height", 75), ("max_food_sources", 15)] {
            given.entry(key).or_insert(usual.into());
        }
        serde_json::from_value(Value::Object(given)).map(CherryPickerConfig).map_err(Error::custom)
    }
}

#[derive(Serialize, Deserialize)]
pub struct CherryPicker {
    config: CherryPickerConfig,
    /// The maps by seat, with one agent each.
    worlds: Vec<World>,
}

impl Game for CherryPicker {
    const NAME: &'static str = "cherry_picker";
    const DESCRIPTION: &'static str = "Gather food into your bases, on a map of your own.";
    const MODE: UpdateMode = UpdateMode::Isolated;
    const SEATS: RangeInclusive<usize> = 1..=8;
    // In version 1, an actor that made a base survived.
    const RULES_VERSION: u32 = 2;
    const LIMITS: TimeLimits = TimeLimits { step_ms: 200, bank_ms: 2000 };
    type Config = CherryPickerConfig;
    type Action = Action;

    fn new(config: CherryPickerConfig, setup: Setup) -> Result<CherryPicker, OptionsError> {
        config.0.check()?;
        let world = |agent| World::new(config.0.clone(), setup.seed.clone(), std::slice::from_ref(agent));
        let worlds = setup.agents.iter().map(world).collect();
        Ok(CherryPicker { config, worlds })
    }

    fn config(&self) -> &CherryPickerConfig {
        &self.config
    }

    fn is_asked(&self, seat: Seat) -> bool {
        self.worlds.get(seat.0).is_some_and(|world| world.can_act(0))
    }

    fn write_state(&self, seat: Seat, out: &mut Vec<u8>) {
        self.worlds[seat.0].write_state(out);
    }

    fn step(&mut self, actions: &Actions<Action>, events: &mut Events) {
        if self.termination().is_some() {
            return;
        }
        for (seat, world) in self.worlds.iter_mut().enumerate() {
            let seat = Seat(seat);
            world.step(&[actions.of(seat)], |_, index, reason| events.reject(seat, index, reason));
        }
    }

    fn disqualify(&mut self, seat: Seat) {
        if let Some(world) = self.worlds.get_mut(seat.0) {
            world.disqualify(0);
        }
    }

    fn termination(&self) -> Option<&'static str> {
        let has_ended = self.worlds.iter().all(|world| {
            // All worlds have the same age.
            world.epoch() >= self.config.0.n_epochs || !world.can_act(0)
        });
        has_ended.then_some("GAME_ENDED")
    }

    fn scores(&self) -> Vec<f64> {
        self.worlds.iter().map(|world| world.score(0)).collect()
    }
}

impl Hosted for CherryPicker {
    const CHALLENGE: &'static str = "cherry-picker";
    const TITLE: &'static str = "Cherry picker";
    const PROMPT: &'static str = "\
Each player has a map of its own, with a base and an actor on it. All maps are equal at the start. Actors gather food from sources \
and bring it to bases. Your points are the food in your bases after `n_epochs` epochs; food that actors carry doesn't count. The \
most points win. `config` contains the values of all constants that are named below.

The state:
- `foods`: the sources, with `id`, `position` [x, y] and `quantity`. They grow by 5% per epoch, up to 50, and vanish below 0.1. While \
there are fewer than `max_food_sources`, four new ones appear at mirrored positions.
- `actors`, `bases`: with `id`, `owner_id`, `position`, `food`, `health`, `max_health`.
- `dead_entities`: the actors that died in the last epoch.

Each actor and each base acts once per epoch: its first possible action counts. Actors that are closer than twice `actor_radius` at \
the end of an epoch collide: the actor that carries less survives and gets the other's food; if both carry the same, the survivor is \
drawn at random. Each player has at most 32 actors and 8 bases.";
    const ACTIONS: &'static [(&'static str, &'static str)] = &[MOVE, TAKE_FOOD, DEPOSIT_FOOD, HEAL, SPAWN, MAKE_BASE];
    const OVERRIDABLE: &'static [Setting] = &options_of_map(8);
    const CARD: (&'static str, &'static str) = ("red", "cherry");

    fn draw(scene: &Scene<'_>, states: &[Value]) -> Option<String> {
        picture::draw(scene, states, 75.0)
    }
}

#[cfg(test)]
mod tests {
    use arena_model::GameType;
    use expect_test::{expect, expect_file};
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use crate::games::foraging::{any_reply, check_replies, forage};
    use crate::games::golden::{start, state, transcript};

    static CHERRY_PICKER: GameType = GameType::of::<CherryPicker>();

    /// Returns options with short distances and fast actors, so that actors reach their targets within few epochs.
    fn fast(n_epochs: u64) -> Value {
        json!({
            "grid_width": 20, "grid_height": 16, "max_food_sources": 6, "actor_speed": 4, "take_food_speed": 25,
            "spawn_actor_cost": 30, "make_base_cost": 25, "n_epochs": n_epochs
        })
    }

    #[test]
    fn games_match_their_golden_transcripts() {
        let mut game = start(&CHERRY_PICKER, 2, 4, fast(20));
        let actual = transcript(&mut *game, 2, 100, |seat, state| match seat.0 {
            0 => Some(Value::from(forage("a0", state, 30.0, 25.0)).to_string()),
            _ => Some(Value::from(forage("a1", state, 1e9, 1e9)).to_string()),
        });
        expect_file!["../../golden/cherry_picker.txt"].assert_eq(&actual);
    }

    // Agents 0 and 2 act alike, agent 1 is silent in every third epoch, agent 3 is always silent.
    #[test]
    fn equal_actions_make_equal_maps_for_ever() {
        let mut game = start(&CHERRY_PICKER, 4, 1, fast(300));
        let mut seen: Vec<Vec<String>> = vec![Vec::new(); 4];
        let mut sources: Vec<Vec<String>> = vec![Vec::new(); 4];
        transcript(&mut *game, 4, 1000, |seat, state| {
            let agent = format!("a{}", seat.0);
            seen[seat.0].push(state.to_string().replace(&agent, "owner"));
            for food in state["foods"].as_array().unwrap() {
                let id = food["id"].as_str().unwrap().to_owned();
                if !sources[seat.0].contains(&id) {
                    sources[seat.0].push(id);
                }
            }
            let is_silent = seat.0 == 3 || seat.0 == 1 && seen[1].len().is_multiple_of(3);
            (!is_silent).then(|| Value::from(forage(&agent, state, 30.0, 25.0)).to_string())
        });
        assert_eq!(seen[0], seen[2]);
        assert_ne!(seen[0], seen[1]);
        assert!((0..4).all(|seat| seen[seat][0] == seen[0][0] && seen[seat].len() == 300));
        // On the map of an agent that eats less, fewer sources appear, but they are the same ones.
        let (most, fewer) = (&sources[0], &sources[1]);
        let common = most.len().min(fewer.len());
        assert!(common > 12 && most[..common] == fewer[..common]);
        // Without replies, food still grows to the limit.
        let last: Value = serde_json::from_str(&state(&*game, Seat(3))).unwrap();
        assert!(last["foods"].as_array().unwrap().iter().all(|food| food["quantity"] == 50.0));
        assert_eq!(game.scores()[3], 0.0);
        assert!(game.scores()[0] > 0.0 && game.scores()[0] == game.scores()[2]);
    }

    #[test]
    fn a_lone_agent_plays_to_the_end_with_the_usual_constants() {
        let mut game = start(&CHERRY_PICKER, 1, 1, json!({"n_epochs": 500}));
        assert_eq!(state(&*game, Seat(0)).matches("quantity").count(), 16);
        transcript(&mut *game, 1, 1000, |_, state| Some(Value::from(forage("a0", state, 200.0, 1e9)).to_string()));
        assert_eq!(game.termination(), Some("GAME_ENDED"));
        assert!(game.scores()[0] > 100.0, "{:?}", game.scores());
    }

    #[test]
    fn a_disqualified_agent_is_not_asked_and_the_last_one_plays_on() {
        let mut game = start(&CHERRY_PICKER, 2, 1, json!({}));
        game.disqualify(Seat(0));
        assert_eq!((game.is_asked(Seat(0)), game.is_asked(Seat(1)), game.termination()), (false, true, None));
        game.disqualify(Seat(1));
        assert_eq!(game.termination(), Some("GAME_ENDED"));
    }

    #[test]
    fn its_usual_constants_are_its_own_and_can_be_set() {
        let config = start(&CHERRY_PICKER, 1, 1, json!({"grid_width": 30})).config();
        assert_eq!([&config["grid_width"], &config["grid_height"], &config["max_food_sources"]], [30, 75, 15]);
        let refused = |options: Value| {
            let agents = vec!["a".parse().unwrap()];
            let setup = Setup { seed: arena_model::Seed::from_number(1), agents };
            CHERRY_PICKER.start(options.as_object().unwrap(), setup).err().unwrap().to_string()
        };
        expect!["grid_width must be 10 to 1000, not 3"].assert_eq(&refused(json!({"grid_width": 3})));
        expect!["cherry_picker, option `grid`: unknown field `grid`, expected one of `grid_width`, `grid_height`, `max_food_sources`, `take_food_max_distance`, `deposit_food_max_distance`, `actor_radius`, `attack_range`, `take_food_speed`, `spawn_actor_cost`, `make_base_cost`, `base_spawn_border_offset`, `actor_speed`, `actor_damage`, `actor_max_health`, `n_epochs`"].assert_eq(&refused(json!({"grid": 3})));
        expect![[
            r#"cherry_picker, option `grid_width`: invalid type: string "wide", expected a whole number of at least 0"#
        ]]
        .assert_eq(&refused(json!({"grid_width": "wide"})));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn no_reply_stops_a_game(
            seed in 0..100u64,
            epochs in prop::collection::vec(prop::collection::vec(prop::option::weighted(0.9, any_reply()), 2), 1..8),
        ) {
            let game = || start(&CHERRY_PICKER, 2, seed, fast(100));
            check_replies(game(), game(), &epochs);
        }
    }
}
