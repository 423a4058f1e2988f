//! food_catcher: two to four agents on one map bring food to their bases and may rob each other.
//!
//! `foraging` describes the map and the actions. The score is the food in an agent's bases; food that actors carry
//! doesn't count. An agent without a valid reply does nothing in that epoch. The actors and bases of a disqualified
//! agent stay where they are and do nothing: they can be attacked, run into and robbed.
//!
//! The game ends after `n_epochs` epochs, or earlier in two cases in which the ranking can't change any more:
//! - No agent can act: each one is disqualified, or has no actor and no base that can pay for one. Then no score
//!   changes again.
//! - All agents but one are disqualified, or all are. The remaining agent ranks above the others in any case.
//!
//! The game continues if only the leading agent can act, because this agent may still spend its food, attack other
//! agents' bases, or leave food in them. Agents that can't act aren't asked for replies, so the runner waits for the
//! leading agent only.

use std::ops::RangeInclusive;

use arena_model::{Actions, Events, Game, Hosted, OptionsError, Scene, Seat, Setting, Setup, TimeLimits, UpdateMode};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::foraging::descriptions::{ATTACK, DEPOSIT_FOOD, HEAL, MAKE_BASE, MOVE, SPAWN, TAKE_FOOD, options_of_map};
use super::foraging::{
    Action, CONTROLS, Constants, MODULE, World, bots, picture, read_scores, short_options, terminal,
};
use crate::playable::example;
use crate::{Kit, Playable};

/// The catalogue entry, listed in `games.rs`.
pub const PLAYABLE: Playable = Playable::game::<FoodCatcher>(Kit {
    rules: Some(
        "Send your actors to the food, and back to a base with what they carry. Only food in your bases \
         counts at the end. Actors can attack others, and two that collide become one; bases can make new \
         actors.",
    ),
    picture: Some(include_str!("food_catcher.svg")),
    terminal: Some(terminal::draw_shared),
    module: Some(MODULE),
    controls: Some(CONTROLS),
    scores: Some(read_scores),
    bots: Some([&bots::FORAGER, &bots::CARRIER]),
    short: Some(short_options),
    samples: &[
        &[("agent.py", example!("python/food_catcher.py")), ("foraging.py", example!("python/foraging.py"))],
        &[("agent.js", example!("javascript/food_catcher.js")), ("foraging.js", example!("javascript/foraging.js"))],
    ],
    ..Kit::USUAL
});

#[derive(Serialize, Deserialize)]
pub struct FoodCatcher {
    world: World,
    agents: usize,
}

impl Game for FoodCatcher {
    const NAME: &'static str = "food_catcher";
    const DESCRIPTION: &'static str = "Gather food into your bases and defend it against up to three other agents.";
    const MODE: UpdateMode = UpdateMode::Simultaneous;
    const SEATS: RangeInclusive<usize> = 2..=4;
    // In version 1, an actor could leave food only in its own agent's bases, and an actor that made a base survived.
    const RULES_VERSION: u32 = 2;
    const LIMITS: TimeLimits = TimeLimits { step_ms: 200, bank_ms: 2000 };
    type Config = Constants;
    type Action = Action;

    fn new(config: Constants, setup: Setup) -> Result<FoodCatcher, OptionsError> {
        config.check()?;
        let agents = setup.agents.len();
        Ok(FoodCatcher { world: World::new(config, setup.seed, &setup.agents), agents })
    }

    fn config(&self) -> &Constants {
        self.world.constants()
    }

    fn is_asked(&self, seat: Seat) -> bool {
        self.world.can_act(seat.0)
    }

    fn write_state(&self, _seat: Seat, out: &mut Vec<u8>) {
        self.world.write_state(out);
    }

    fn step(&mut self, actions: &Actions<Action>, events: &mut Events) {
        if self.termination().is_some() {
            return;
        }
        let lists: Vec<_> = (0..self.agents).map(|seat| actions.of(Seat(seat))).collect();
        self.world.step(&lists, |seat, index, reason| events.reject(Seat(seat), index, reason));
    }

    fn disqualify(&mut self, seat: Seat) {
        self.world.disqualify(seat.0);
    }

    fn termination(&self) -> Option<&'static str> {
        let mut seats = 0..self.agents;
        let has_ended = self.world.epoch() >= self.world.constants().n_epochs
            || seats.clone().filter(|seat| !self.world.is_disqualified(*seat)).count() <= 1
            || !seats.any(|seat| self.world.can_act(seat));
        has_ended.then_some("GAME_ENDED")
    }

    fn scores(&self) -> Vec<f64> {
        (0..self.agents).map(|seat| self.world.score(seat)).collect()
    }
}

impl Hosted for FoodCatcher {
    const CHALLENGE: &'static str = "food-catcher";
    const TITLE: &'static str = "Food catcher";
    const PROMPT: &'static str = "\
All players share a map. Each player has a base near a corner, and an actor on it. Actors gather food from sources and bring it to \
bases. Your points are the food in your bases after `n_epochs` epochs; food that actors carry doesn't count. The most points win. \
`config` contains the values of all constants that are named below.

The state:
- `foods`: the sources, with `id`, `position` [x, y] and `quantity`. They grow by 5% per epoch, up to 50, and vanish below 0.1. While \
there are fewer than `max_food_sources`, four new ones appear at mirrored positions.
- `actors`, `bases`: those of all players, with `id`, `owner_id`, `position`, `food`, `health`, `max_health`.
- `dead_entities`: the actors and bases that died in the last epoch.

Each actor and each base acts once per epoch: its first possible action counts. Actors that are closer than twice `actor_radius` at \
the end of an epoch collide, even if they have the same owner: the actor that carries less survives and gets the other's food; if \
both carry the same, the survivor is drawn at random. The food of actors and bases that die from attacks is lost. Each player has at \
most 32 actors and 8 bases.";
    const ACTIONS: &'static [(&'static str, &'static str)] =
        &[MOVE, TAKE_FOOD, DEPOSIT_FOOD, HEAL, SPAWN, ATTACK, MAKE_BASE];
    const OVERRIDABLE: &'static [Setting] = &options_of_map(4);
    const CARD: (&'static str, &'static str) = ("orange", "basket");

    fn draw(scene: &Scene<'_>, states: &[Value]) -> Option<String> {
        picture::draw(scene, states, 40.0)
    }
}

#[cfg(test)]
mod tests {
    use arena_model::{AnyGame, GameType};
    use expect_test::{Expect, expect, expect_file};
    use proptest::prelude::*;
    use serde_json::{Map, Value, json};

    use super::*;
    use crate::games::foraging::{any_reply, check_replies, forage, raid};
    use crate::games::golden::{start, state, transcript};

    static FOOD_CATCHER: GameType = GameType::of::<FoodCatcher>();

    /// Returns options with short distances and fast actors, so that actors reach their targets within few epochs.
    fn fast(n_epochs: u64) -> Value {
        json!({
            "grid_width": 20, "grid_height": 16, "max_food_sources": 8, "actor_speed": 4, "take_food_speed": 25,
            "spawn_actor_cost": 30, "make_base_cost": 25, "actor_damage": 4, "n_epochs": n_epochs
        })
    }

    /// Replies: seat 0 forages, seat 1 forages but spawns nothing, seat 2 raids; the last two are sometimes silent.
    fn reply(epoch: u64, seat: Seat, state: &Value) -> Option<String> {
        let agent = format!("a{}", seat.0);
        let actions = match seat.0 {
            0 => forage(&agent, state, 30.0, 25.0),
            1 if epoch.is_multiple_of(5) => return None,
            1 => forage(&agent, state, 1e9, 1e9),
            _ if epoch.is_multiple_of(7) => return None,
            _ => raid(&agent, state, 5.0),
        };
        Some(Value::from(actions).to_string())
    }

    fn played(seed: u64, n_epochs: u64) -> (Box<dyn AnyGame>, String) {
        let mut game = start(&FOOD_CATCHER, 3, seed, fast(n_epochs));
        let mut calls = 0;
        let actual = transcript(&mut *game, 3, n_epochs + 1, |seat, state| {
            calls += 1;
            reply(calls / 3, seat, state)
        });
        (game, actual)
    }

    #[test]
    fn games_match_their_golden_transcripts() {
        expect_file!["../../golden/food_catcher.txt"].assert_eq(&played(2, 36).1);
    }

    #[test]
    fn equal_seeds_and_replies_make_equal_games() {
        for seed in 0..5 {
            assert_eq!(played(seed, 60).1, played(seed, 60).1);
        }
        assert_ne!(played(0, 2).1, played(1, 2).1);
    }

    #[test]
    fn games_with_the_usual_constants_are_played_to_their_end() {
        let mut game = start(&FOOD_CATCHER, 2, 1, json!({"n_epochs": 400}));
        transcript(&mut *game, 2, 1000, |seat, state| {
            Some(Value::from(forage(&format!("a{}", seat.0), state, 300.0, 1e9)).to_string())
        });
        assert_eq!(game.termination(), Some("GAME_ENDED"));
        assert!(game.scores().iter().all(|score| *score > 100.0), "{:?}", game.scores());
    }

    #[test]
    fn agents_see_the_same_and_looking_changes_nothing() {
        let (game, _) = played(2, 20);
        let seen = state(&*game, Seat(0));
        assert!((0..3).all(|seat| state(&*game, Seat(seat)) == seen));
        let keys: Map<String, Value> = serde_json::from_str(&seen).unwrap();
        assert_eq!(keys.keys().collect::<Vec<_>>(), ["actors", "bases", "dead_entities", "foods"]);
    }

    #[test]
    fn a_game_ends_when_all_but_one_are_disqualified() {
        let mut game = start(&FOOD_CATCHER, 3, 1, json!({}));
        game.disqualify(Seat(1));
        assert_eq!((game.termination(), game.is_asked(Seat(1)), game.is_asked(Seat(2))), (None, false, true));
        game.disqualify(Seat(0));
        assert_eq!(game.termination(), Some("GAME_ENDED"));
    }

    // Seat 1 attacks until its only opponent can't act. Seat 1 could still spend its lead, so the game continues.
    #[test]
    fn an_agent_that_can_not_act_is_not_asked() {
        let options = json!({"attack_range": 100, "actor_damage": 50, "n_epochs": 1000});
        let mut game = start(&FOOD_CATCHER, 2, 1, options);
        let mut asked = [0, 0];
        transcript(&mut *game, 2, 1000, |seat, state| {
            asked[seat.0] += 1;
            (seat.0 == 1).then(|| Value::from(raid("a1", state, 100.0)).to_string())
        });
        assert_eq!(asked[1], 1000);
        assert!(asked[0] < 5, "{asked:?}");
    }

    // All actors meet in the middle, and one survives. When its owner is disqualified, the two remaining agents can't
    // act.
    #[test]
    fn a_game_ends_when_no_agent_can_act() {
        let mut game = start(&FOOD_CATCHER, 3, 1, json!({"actor_speed": 100}));
        transcript(&mut *game, 3, 2, |seat, state| {
            let actors = state["actors"].as_array()?;
            let own = actors.iter().find(|actor| actor["owner_id"] == format!("a{}", seat.0))?;
            Some(json!([{"action": "move", "actor_id": own["id"], "target": [20, 20]}]).to_string())
        });
        let left: Vec<Seat> = (0..3).map(Seat).filter(|seat| game.is_asked(*seat)).collect();
        assert_eq!((left.len(), game.termination()), (1, None));
        game.disqualify(left[0]);
        assert_eq!(game.termination(), Some("GAME_ENDED"));
    }

    #[test]
    fn constants_out_of_their_range_are_refused() {
        let check = |options: Value, expected: Expect| {
            let options: Map<String, Value> = serde_json::from_value(options).unwrap();
            let agents = ["a", "b"].map(|id| id.parse().unwrap()).to_vec();
            let refused = FOOD_CATCHER.start(&options, Setup { seed: arena_model::Seed::from_number(1), agents }).err();
            expected.assert_eq(&refused.map(|error| error.to_string()).unwrap_or_default());
        };
        check(json!({"grid_width": 9}), expect!["grid_width must be 10 to 1000, not 9"]);
        check(
            json!({"grid_height": -1}),
            expect![
                "food_catcher, option `grid_height`: invalid value: integer `-1`, expected a whole number of at least 0"
            ],
        );
        check(json!({"max_food_sources": 65}), expect!["max_food_sources must be 1 to 64, not 65"]);
        check(json!({"actor_radius": 5}), expect!["actor_radius must be 0 to 0.9, not 5"]);
        check(
            json!({"actor_speed": "fast"}),
            expect![[r#"food_catcher, option `actor_speed`: invalid type: string "fast", expected a number"#]],
        );
        check(json!({"actor_max_health": 0.5}), expect!["actor_max_health must be 1 to 1000000, not 0.5"]);
        check(json!({"base_spawn_border_offset": 0.5}), expect!["base_spawn_border_offset must be 0 to 0.4, not 0.5"]);
        check(json!({"n_epochs": 0}), expect!["n_epochs must be 1 to 1000000, not 0"]);
        check(
            json!({"gravity": 9.81}),
            expect![
                "food_catcher, option `gravity`: unknown field `gravity`, expected one of `grid_width`, `grid_height`, `max_food_sources`, `take_food_max_distance`, `deposit_food_max_distance`, `actor_radius`, `attack_range`, `take_food_speed`, `spawn_actor_cost`, `make_base_cost`, `base_spawn_border_offset`, `actor_speed`, `actor_damage`, `actor_max_health`, `n_epochs`"
            ],
        );
    }

    #[test]
    fn the_usual_constants_are_those_that_agents_know() {
        expect_file!["food_catcher/the_usual_constants_are_those_that_agents_know.txt"]
            .assert_eq(&serde_json::to_string_pretty(&Constants::default()).unwrap());
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn no_reply_stops_a_game(
            seed in 0..100u64,
            epochs in prop::collection::vec(prop::collection::vec(prop::option::weighted(0.9, any_reply()), 3), 1..8),
        ) {
            let game = || start(&FOOD_CATCHER, 3, seed, fast(100));
            check_replies(game(), game(), &epochs);
        }
    }
}
