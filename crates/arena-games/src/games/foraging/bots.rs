//! The house bots of food_catcher and cherry_picker, which gather food and keep their actors apart. `forager` carries
//! large loads and buys actors; `carrier` carries small loads and buys none. Neither attacks. The sample agent
//! `examples/agents/python/foraging.py` plays the same way.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::bots::{BotInput, HouseBot};

/// The bot that buys actors.
pub const FORAGER: HouseBot = HouseBot {
    name: "forager",
    motto: "carries large loads home and buys actors",
    method: "actions",
    think: |input| think(input, &Style { load: 40.0, spawns: true }),
};

/// The bot that buys nothing.
pub const CARRIER: HouseBot = HouseBot {
    name: "carrier",
    motto: "carries small loads home and buys no actor",
    method: "actions",
    think: |input| think(input, &Style { load: 10.0, spawns: false }),
};

/// The differences between the two bots.
struct Style {
    /// The load with which an actor goes home.
    load: f64,
    spawns: bool,
}

/// The food that actors leave in a source, because a source grows by a share of its content.
const LEAVE: f64 = 15.0;

/// The tolerance for rounding errors.
const SLACK: f64 = 0.01;

const HALF: f64 = std::f64::consts::FRAC_1_SQRT_2;

/// Directions around an obstacle, as cosine and sine: straight on, then 45, 90 and 135 degrees to either side.
const TURNS: [Location; 7] =
    [[1.0, 0.0], [HALF, -HALF], [HALF, HALF], [0.0, -1.0], [0.0, 1.0], [-HALF, -HALF], [-HALF, HALF]];

type Location = [f64; 2];

/// The constants of a game that the bots read.
#[derive(Deserialize)]
struct Terms {
    grid_width: f64,
    grid_height: f64,
    take_food_max_distance: f64,
    deposit_food_max_distance: f64,
    actor_radius: f64,
    take_food_speed: f64,
    spawn_actor_cost: f64,
    actor_speed: f64,
    n_epochs: f64,
}

/// The state of a map.
#[derive(Deserialize)]
struct Seen {
    foods: Vec<Source>,
    actors: Vec<Owned>,
    bases: Vec<Owned>,
    #[serde(default)]
    epoch: f64,
}

#[derive(Deserialize)]
struct Source {
    id: String,
    position: Location,
    quantity: f64,
}

/// An actor or a base.
#[derive(Deserialize)]
struct Owned {
    id: String,
    owner_id: String,
    position: Location,
    food: f64,
    health: f64,
    max_health: f64,
}

/// An action of a bot, as the game reads it.
#[derive(Serialize)]
#[serde(tag = "action", rename_all = "snake_case")]
enum Order<'s> {
    Move { actor_id: &'s str, target: Location },
    TakeFood { actor_id: &'s str, food_id: &'s str },
    DepositFood { actor_id: &'s str, base_id: &'s str },
    Heal { actor_id: &'s str, base_id: &'s str },
    Spawn { base_id: &'s str },
}

/// The known position of an actor at the end of the epoch, and the distance that other actors must keep.
struct Spot {
    place: Location,
    gap: f64,
}

fn think(input: &BotInput<'_>, style: &Style) -> Option<String> {
    let terms: Terms = serde_json::from_value(Value::Object(input.config.clone())).ok()?;
    let seen: Seen = serde_json::from_value(Value::Object(input.state.clone())).ok()?;
    let own = |entity: &&Owned| entity.owner_id == input.me;
    let bases: Vec<&Owned> = seen.bases.iter().filter(own).collect();
    let mut actors: Vec<&Owned> = seen.actors.iter().filter(own).collect();
    // Actors with larger loads choose first and so have the right of way.
    actors.sort_by(|one, other| other.food.total_cmp(&one.food));
    let left = terms.n_epochs - seen.epoch;

    // Of two actors that get too close, one dies. The own moves are known; another player's actor may come a step
    // nearer.
    let gap = 2.0 * terms.actor_radius + SLACK;
    let gap_of = |actor: &Owned| if actor.owner_id == input.me { gap } else { gap + terms.actor_speed };
    let mut spots: BTreeMap<&str, Spot> = seen
        .actors
        .iter()
        .map(|actor| (actor.id.as_str(), Spot { place: actor.position, gap: gap_of(actor) }))
        .collect();
    let mut claimed: BTreeMap<&str, f64> = BTreeMap::new();
    let mut orders = Vec::new();
    for actor in &actors {
        match choose(actor, &bases, &seen.foods, &mut claimed, &terms, (style, left)) {
            Some(Order::Move { actor_id, target }) => {
                if let Some(target) = step(actor, target, &spots, &terms) {
                    spots.insert(actor_id, Spot { place: target, gap });
                    orders.push(Order::Move { actor_id, target });
                }
            }
            order => orders.extend(order),
        }
    }
    // A new actor must bring in more than it costs, so their number is limited, and buying stops in time.
    if style.spawns && actors.len() < 2 * seen.foods.len() && left > 3.0 * terms.spawn_actor_cost {
        let is_free = |base: &Owned| spots.values().all(|spot| distance(spot.place, base.position) >= spot.gap);
        let buyers = bases.iter().filter(|base| base.food >= terms.spawn_actor_cost && is_free(base));
        orders.extend(buyers.map(|base| Order::Spawn { base_id: &base.id }));
    }
    serde_json::to_string(&orders).ok()
}

/// Returns an actor's order without regard to collisions. `claimed` is the part of each source that other actors aim
/// for.
fn choose<'s>(
    actor: &'s Owned,
    bases: &[&'s Owned],
    foods: &'s [Source],
    claimed: &mut BTreeMap<&'s str, f64>,
    terms: &Terms,
    (style, left): (&Style, f64),
) -> Option<Order<'s>> {
    let to_base = |base: &Owned| distance(actor.position, base.position);
    let base = bases.iter().copied().min_by(|one, other| to_base(one).total_cmp(&to_base(other)))?;
    let way_home = distance(actor.position, base.position);
    let actor_id = actor.id.as_str();
    if way_home <= terms.deposit_food_max_distance {
        if actor.food > 0.0 {
            return Some(Order::DepositFood { actor_id, base_id: &base.id });
        }
        if actor.health < actor.max_health / 2.0 && base.food > 0.0 {
            return Some(Order::Heal { actor_id, base_id: &base.id });
        }
    }
    let room = style.load - actor.food;
    let is_late = way_home / terms.actor_speed + 10.0 >= left;
    let mut best: Option<(&Source, f64, f64)> = None;
    for food in foods.iter().filter(|_| room > 0.0 && !is_late) {
        let others = claimed.get(food.id.as_str()).copied().unwrap_or(0.0);
        let gain = room.min(food.quantity - LEAVE - others);
        let way = distance(actor.position, food.position) + distance(food.position, base.position);
        let rate = gain / (1.0 + way / terms.actor_speed + gain / terms.take_food_speed);
        if rate > best.map_or(0.0, |(_, most, _)| most) {
            best = Some((food, rate, gain));
        }
    }
    if let Some((food, _, gain)) = best {
        *claimed.entry(&food.id).or_default() += gain;
        return Some(match distance(actor.position, food.position) <= terms.take_food_max_distance {
            true => Order::TakeFood { actor_id, food_id: &food.id },
            false => Order::Move { actor_id, target: food.position },
        });
    }
    (actor.food > 0.0).then_some(Order::Move { actor_id, target: base.position })
}

/// Returns the next position on the way to a target at a safe distance from other actors; `None` if the actor must
/// wait.
fn step(actor: &Owned, target: Location, spots: &BTreeMap<&str, Spot>, terms: &Terms) -> Option<Location> {
    let way = distance(actor.position, target);
    if way == 0.0 {
        return None;
    }
    let length = way.min(terms.actor_speed);
    let [dx, dy] = [0, 1].map(|axis| (target[axis] - actor.position[axis]) / way * length);
    let others: Vec<&Spot> = spots.iter().filter(|(id, _)| **id != actor.id).map(|(_, spot)| spot).collect();
    let mut turned = TURNS.iter().map(|[cosine, sine]| {
        let x = actor.position[0] + dx * cosine - dy * sine;
        let y = actor.position[1] + dx * sine + dy * cosine;
        [x.clamp(0.0, terms.grid_width), y.clamp(0.0, terms.grid_height)]
    });
    turned.find(|place| others.iter().all(|other| distance(*place, other.place) >= other.gap))
}

fn distance(one: Location, other: Location) -> f64 {
    let [dx, dy] = [one[0] - other[0], one[1] - other[1]];
    (dx * dx + dy * dy).sqrt()
}

#[cfg(test)]
mod tests {
    use arena_model::{Events, Seat};
    use serde_json::{Map, json};

    use super::*;
    use crate::bots::BotGame;
    use crate::games::golden::{start, state};

    /// Plays `forager` on the first seat against `carrier`, and returns their scores.
    fn scores(game: &str) -> Vec<f64> {
        let game = crate::game(game).unwrap();
        let mut game = start(game, 2, 7, json!({"grid_width": 30, "grid_height": 30, "n_epochs": 600}));
        let mut bots = [&FORAGER, &CARRIER].map(|player| BotGame::of(player, 0));
        for bot in &mut bots {
            bot.learn(game.config());
        }
        let mut events = Events::default();
        for epoch in 1..=600 {
            let mut replies = Vec::new();
            for (seat, bot) in bots.iter_mut().enumerate() {
                let mut seen: Map<String, Value> = serde_json::from_str(&state(&*game, Seat(seat))).unwrap();
                seen.insert("epoch".to_owned(), epoch.into());
                replies.push(bot.decide(&format!("a{seat}"), &seen));
            }
            let replies: Vec<Option<&str>> = replies.iter().map(Option::as_deref).collect();
            assert!(replies.iter().all(Option::is_some), "{epoch}: {replies:?}");
            game.play(&replies, &mut Vec::new(), &mut events);
            assert!(events.forfeits().is_empty(), "{epoch}: {:?}", events.forfeits());
        }
        game.scores()
    }

    #[test]
    fn both_gather_food_in_both_games() {
        for game in ["food_catcher", "cherry_picker"] {
            let scores = scores(game);
            assert!(scores.iter().all(|score| *score > 20.0), "{game}: {scores:?}");
        }
    }
}
