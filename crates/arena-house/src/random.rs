//! Bots that choose among valid actions at random, one for each built-in challenge. They are the weakest baseline: they
//! say nothing, and know no more of the rules than an action needs to be accepted.

use arena_model::SeedRng;
use serde_json::{Map, Value, json};

use crate::board::StateInbox;
use crate::talkers::ultimatum::OwnTurn;
use crate::talkers::{dining_cryptographers, millionaire};
use crate::{Bot, Heard, Step, below, psi};

/// An action: the method and the content.
type Action = (&'static str, String);

pub fn find(challenge: &str, rng: SeedRng) -> Option<Box<dyn Bot>> {
    let choose: Option<ChooseFromMessages> = match challenge {
        "psi" => Some(guess_own_numbers),
        "millionaire" => Some(guess_a_wealth),
        "dining-cryptographers" => Some(guess_a_payer),
        "ultimatum" => Some(take_a_turn),
        _ => None,
    };
    if let Some(choose) = choose {
        return Some(Box::new(RandomTalker { choose, rng, acted_at: None }));
    }
    let choose: ChooseInState = match challenge {
        "chess" => move_a_piece,
        "snake" => move_a_snake,
        "food-catcher" | "cherry-picker" => order_actors,
        _ => return None,
    };
    Some(Box::new(RandomMover { choose, rng, config: Map::new(), inbox: StateInbox::default() }))
}

/// A function from the messages to an action; `None` if the bot can't act.
type ChooseFromMessages = fn(&Heard<'_>, &mut SeedRng) -> Option<Action>;

struct RandomTalker {
    choose: ChooseFromMessages,
    rng: SeedRng,
    /// The number of messages at the last action. The bot doesn't act twice without news.
    acted_at: Option<usize>,
}

impl Bot for RandomTalker {
    fn next(&mut self, heard: &Heard<'_>) -> Option<Step> {
        let count = heard.count();
        if self.acted_at == Some(count) && !heard.is_late {
            return None;
        }
        let (method, content) = (self.choose)(heard, &mut self.rng)?;
        self.acted_at = Some(count);
        Some(Step::Act { method: method.to_owned(), content })
    }
}

fn guess_own_numbers(heard: &Heard<'_>, rng: &mut SeedRng) -> Option<Action> {
    let mut own: Vec<u64> = psi::own_set(heard)?.into_iter().collect();
    if own.is_empty() || heard.has_acted() || !heard.has_opponent() {
        return None;
    }
    let count = 1 + below(own.len(), rng);
    let guess: Vec<String> = (0..count).map(|_| own.swap_remove(below(own.len(), rng)).to_string()).collect();
    Some(("guess", guess.join(", ")))
}

fn guess_a_wealth(heard: &Heard<'_>, rng: &mut SeedRng) -> Option<Action> {
    let (least, most) = millionaire::WEALTH.into_inner();
    millionaire::may_guess(heard).then(|| ("guess", (least + rng.below(most - least + 1)).to_string()))
}

/// Guesses one of the words, or a diner.
fn guess_a_payer(heard: &Heard<'_>, rng: &mut SeedRng) -> Option<Action> {
    let mut guesses = vec!["external", "internal", "unknown"];
    guesses.extend(dining_cryptographers::players(heard)?);
    (!heard.has_acted()).then(|| ("guess", guesses[below(guesses.len(), rng)].to_owned()))
}

/// Passes, makes any offer, or answers the current offer.
fn take_a_turn(heard: &Heard<'_>, rng: &mut SeedRng) -> Option<Action> {
    let OwnTurn { number, players, total, offer, .. } = OwnTurn::read(heard)?;
    let mut methods = vec!["pass", "submit_offer"];
    if let Some((proposer, _)) = offer {
        methods.push("reject");
        if proposer != number {
            methods.push("accept");
        }
    }
    let method = methods[below(methods.len(), rng)];
    let content = if method == "submit_offer" { split(total, players, rng) } else { String::new() };
    Some((method, content))
}

/// Splits `total` at random points.
fn split(total: u64, players: usize, rng: &mut SeedRng) -> String {
    let mut points: Vec<u64> = (1..players).map(|_| rng.below(total.saturating_add(1))).collect();
    points.sort_unstable();
    points.push(total);
    let mut start = 0;
    let share = |end: u64| (end - std::mem::replace(&mut start, end)).to_string();
    points.into_iter().map(share).collect::<Vec<_>>().join(", ")
}

/// A state of a game from a player's perspective.
struct GameView<'v> {
    me: &'v str,
    /// The game's constants; empty if the bot hasn't learned them.
    config: &'v Map<String, Value>,
    state: &'v Map<String, Value>,
}

/// A function from a state in which the bot is to move to its action; `None` if the bot finds none.
type ChooseInState = fn(&GameView<'_>, &mut SeedRng) -> Option<Action>;

struct RandomMover {
    choose: ChooseInState,
    rng: SeedRng,
    config: Map<String, Value>,
    inbox: StateInbox,
}

impl Bot for RandomMover {
    fn next(&mut self, heard: &Heard<'_>) -> Option<Step> {
        if let Some(config) = self.inbox.read(heard) {
            self.config = config;
        }
        let state = self.inbox.take_state()?;
        let view = GameView { me: heard.me, config: &self.config, state: &state };
        let (method, content) = (self.choose)(&view, &mut self.rng)?;
        Some(Step::Act { method: method.to_owned(), content })
    }

    fn needs_news_only(&self) -> bool {
        true
    }
}

fn move_a_piece(view: &GameView<'_>, rng: &mut SeedRng) -> Option<Action> {
    let legal: Vec<&str> = view.state.get("legal_moves")?.as_array()?.iter().filter_map(Value::as_str).collect();
    (!legal.is_empty()).then(|| ("move", legal[below(legal.len(), rng)].to_owned()))
}

fn move_a_snake(_view: &GameView<'_>, rng: &mut SeedRng) -> Option<Action> {
    const DIRECTIONS: [&str; 4] = ["UP", "RIGHT", "DOWN", "LEFT"];
    Some(("move", DIRECTIONS[below(DIRECTIONS.len(), rng)].to_owned()))
}

/// The maximum number of actors and of bases of one agent.
const MAX_ACTORS: usize = 32;
const MAX_BASES: usize = 8;

/// Gives each actor one of its possible orders. Every base that can pay for an actor buys one in half of the epochs.
fn order_actors(view: &GameView<'_>, rng: &mut SeedRng) -> Option<Action> {
    let constant = |name: &str| view.config.get(name).and_then(Value::as_f64).unwrap_or(0.0);
    let list = |key: &str| view.state.get(key).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let (foods, actors, bases) = (list("foods"), list("actors"), list("bases"));
    let is_own = |entity: &Value| entity["owner_id"] == view.me;
    let has_food = |entity: &Value, least: f64| entity["food"].as_f64().is_some_and(|food| food > 0.0 && food >= least);
    let own_actors: Vec<&Value> = actors.iter().filter(|actor| is_own(actor)).collect();
    let own_bases: Vec<&Value> = bases.iter().filter(|base| is_own(base)).collect();
    let mut orders = Vec::new();
    for actor in &own_actors {
        let near = |other: &Value, reach: &str| distance(actor, other).is_some_and(|way| way <= constant(reach));
        let id = &actor["id"];
        let target = ["grid_width", "grid_height"].map(|side| (rng.unit() * constant(side) * 100.0).round() / 100.0);
        let mut choices = vec![json!({ "action": "move", "actor_id": id, "target": target })];
        for food in foods.iter().filter(|food| near(food, "take_food_max_distance")) {
            choices.push(json!({ "action": "take_food", "actor_id": id, "food_id": food["id"] }));
        }
        for base in bases.iter().filter(|base| near(base, "deposit_food_max_distance")) {
            if has_food(actor, 0.0) {
                choices.push(json!({ "action": "deposit_food", "actor_id": id, "base_id": base["id"] }));
            }
            if is_own(base) && has_food(base, 0.0) && actor["health"].as_f64() < actor["max_health"].as_f64() {
                choices.push(json!({ "action": "heal", "actor_id": id, "base_id": base["id"] }));
            }
        }
        for enemy in actors.iter().chain(bases).filter(|other| !is_own(other) && near(other, "attack_range")) {
            choices.push(json!({ "action": "attack", "actor_id": id, "target": enemy["id"] }));
        }
        if has_food(actor, constant("make_base_cost")) && own_bases.len() < MAX_BASES {
            choices.push(json!({ "action": "make_base", "actor_id": id }));
        }
        orders.push(choices.swap_remove(below(choices.len(), rng)));
    }
    if own_actors.len() < MAX_ACTORS {
        for base in own_bases.iter().filter(|base| has_food(base, constant("spawn_actor_cost"))) {
            if rng.below(2) == 0 {
                orders.push(json!({ "action": "spawn", "base_id": base["id"] }));
            }
        }
    }
    Some(("actions", Value::from(orders).to_string()))
}

fn distance(one: &Value, other: &Value) -> Option<f64> {
    let axis = |axis: usize| Some(one["position"][axis].as_f64()? - other["position"][axis].as_f64()?);
    let (dx, dy) = (axis(0)?, axis(1)?);
    Some((dx * dx + dy * dy).sqrt())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use arena_model::Seed;

    use super::*;
    use crate::talkers::{messages, say};

    /// Returns the first steps of many bots with different numbers.
    fn steps(challenge: &str, operator: &[&str]) -> BTreeSet<String> {
        let operator = messages(operator);
        let heard = Heard { me: "me", operator: &operator, chat: &[], is_late: false };
        let step = |number| {
            let mut bot = find(challenge, Seed::from_number(number).rng("test")).expect("it is built in");
            let step = bot.next(&heard);
            assert_eq!(bot.next(&heard), None, "without news there is no second step");
            say(step)
        };
        (0..200).map(step).collect()
    }

    #[track_caller]
    fn check(challenge: &str, operator: &[&str], expected: &[&str]) {
        let expected: BTreeSet<String> = expected.iter().map(|step| (*step).to_owned()).collect();
        assert_eq!(steps(challenge, operator), expected);
    }

    #[test]
    fn guesses_are_valid() {
        let dealt = ["operator > me: Your private set is: {101, 205}.", "operator > you: "];
        check("psi", &dealt[..1], &["wait"]);
        check("psi", &dealt, &["guess 101", "guess 205", "guess 101, 205", "guess 205, 101"]);
        let rich = ["operator > me: Your wealth is $30M. Guess", "operator > you: "];
        let guesses = steps("millionaire", &rich);
        assert!(guesses.len() > 50 && !guesses.contains("guess 0") && !guesses.contains("guess 101"), "{guesses:?}");
        let arrived = "operator > all: All diners have arrived: me, ada.\n\nThe bill has been paid.";
        check(
            "dining-cryptographers",
            &[arrived],
            &["guess external", "guess internal", "guess unknown", "guess me", "guess ada"],
        );
        check("dining-cryptographers", &[arrived, "me > operator: (guess) ada"], &["wait"]);
    }

    #[test]
    fn offers_add_up_and_only_other_offers_are_accepted() {
        let start = [
            "operator > you: ",
            "operator > me: Your private reservation value is: 20. This is the minimum share",
            "operator > all: Ultimatum game started!\n- Total to split: 1\n- Players: 2\n- Max rounds: 4",
        ];
        let turn = "operator > all: Player 2's turn. (Round 1/4)";
        let offer = "operator > all: Player 1 proposes: Player 1: 1, Player 2: 0";
        let own = "operator > all: Player 2 proposes: Player 1: 1, Player 2: 0";
        let after = |more: &[&'static str]| [&start[..], more].concat();
        let free = |more: &[&'static str]| [&["pass ", "submit_offer 0, 1", "submit_offer 1, 0"][..], more].concat();
        check("ultimatum", &after(&["operator > all: Player 1's turn. (Round 1/4)"]), &["wait"]);
        check("ultimatum", &after(&[turn]), &free(&[]));
        check("ultimatum", &after(&[own, turn]), &free(&["reject "]));
        check("ultimatum", &after(&[offer, turn]), &free(&["reject ", "accept "]));
    }

    #[test]
    fn moves_are_legal() {
        let chess = r#"operator > all: {"world_state": {"legal_moves": ["e2e4", "g1f3"]}, "asked": ["me"]}"#;
        check("chess", &[chess], &["move e2e4", "move g1f3"]);
        let snake = r#"operator > all: {"world_state": {}, "asked": ["me"]}"#;
        check("snake", &[snake], &["move DOWN", "move LEFT", "move RIGHT", "move UP"]);
        assert!(find("golf", Seed::from_number(0).rng("test")).is_none());
    }

    #[test]
    fn actors_get_only_orders_that_are_possible() {
        let start = r#"operator > me: {"set_agent_id": "me", "config": {"grid_width": 0, "grid_height": 0,
            "take_food_max_distance": 1, "deposit_food_max_distance": 1, "attack_range": 2, "make_base_cost": 10,
            "spawn_actor_cost": 100}}"#;
        let state = r#"operator > all: {"asked": ["me"], "world_state": {
            "foods": [{"id": "near", "position": [1, 0]}, {"id": "far", "position": [1, 1]}],
            "actors": [
                {"id": "a", "owner_id": "me", "position": [0, 0], "food": 0, "health": 5, "max_health": 5},
                {"id": "b", "owner_id": "you", "position": [0, 2], "food": 0, "health": 5, "max_health": 5}],
            "bases": [{"id": "c", "owner_id": "me", "position": [0, 0], "food": 99, "health": 5, "max_health": 5}]}}"#;
        check(
            "food-catcher",
            &[start, state],
            &[
                r#"actions [{"action":"move","actor_id":"a","target":[0.0,0.0]}]"#,
                r#"actions [{"action":"take_food","actor_id":"a","food_id":"near"}]"#,
                r#"actions [{"action":"attack","actor_id":"a","target":"b"}]"#,
            ],
        );
        let rich = state.replace("\"food\": 99", "\"food\": 100");
        let spawned = steps("food-catcher", &[start, &rich]);
        assert!(
            spawned.len() == 6 && spawned.iter().any(|step| step.contains(r#""spawn","base_id":"c""#)),
            "{spawned:?}"
        );
        let loaded = state.replace("\"food\": 0, \"health\": 5", "\"food\": 10, \"health\": 4");
        let orders = steps("cherry-picker", &[start, &loaded]);
        for order in ["deposit_food", "heal", "make_base"] {
            assert!(orders.iter().any(|step| step.contains(order)), "{order}: {orders:?}");
        }
    }
}
