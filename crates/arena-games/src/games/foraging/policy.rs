//! Simple agents for tests, which read the state as agents do.

use arena_model::{AnyGame, Events, Seat};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::games::golden::state;

/// Returns the actions of an agent that carries food to its bases in loads of 20. The agent spawns an actor as soon
/// as a base can pay. All its actors but the last may become bases where no base is near.
pub fn forage(agent: &str, state: &Value, spawn_actor_cost: f64, make_base_cost: f64) -> Vec<Value> {
    let mut actions = Vec::new();
    let bases = own(agent, &state["bases"]);
    for base in &bases {
        if number(&base["food"]) >= spawn_actor_cost {
            actions.push(json!({"action": "spawn", "base_id": base["id"]}));
        }
    }
    let mut left = own(agent, &state["actors"]).len();
    for actor in own(agent, &state["actors"]) {
        let id = &actor["id"];
        let base = nearest(actor, bases.iter().copied());
        let food = nearest(actor, list(&state["foods"]).filter(|food| number(&food["quantity"]) > 0.5));
        actions.push(match (base, food) {
            _ if number(&actor["food"]) >= make_base_cost && left > 1 && base.is_none_or(|(away, _)| away > 4.0) => {
                left -= 1;
                json!({"action": "make_base", "actor_id": id})
            }
            (Some((away, base)), _) if number(&actor["food"]) >= 20.0 => match away <= 0.15 {
                true => json!({"action": "deposit_food", "actor_id": id, "base_id": base["id"]}),
                false => json!({"action": "move", "actor_id": id, "target": base["position"]}),
            },
            (Some((away, base)), _) if away <= 0.15 && number(&actor["health"]) < number(&actor["max_health"]) => {
                json!({"action": "heal", "actor_id": id, "base_id": base["id"]})
            }
            (_, Some((away, food))) => match away <= 1.0 {
                true => json!({"action": "take_food", "actor_id": id, "food_id": food["id"]}),
                false => json!({"action": "move", "actor_id": id, "target": food["position"]}),
            },
            _ => continue,
        });
    }
    actions
}

/// Returns the actions of a raiding agent: each of its actors attacks the nearest actor or base of another agent.
pub fn raid(agent: &str, state: &Value, attack_range: f64) -> Vec<Value> {
    let others = || list(&state["actors"]).chain(list(&state["bases"])).filter(|entity| entity["owner_id"] != agent);
    let go = |actor: &Value| {
        let (away, victim) = nearest(actor, others())?;
        Some(match away <= attack_range {
            true => json!({"action": "attack", "actor_id": actor["id"], "target": victim["id"]}),
            false => json!({"action": "move", "actor_id": actor["id"], "target": victim["position"]}),
        })
    };
    own(agent, &state["actors"]).into_iter().filter_map(go).collect()
}

fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().unwrap().iter()
}

fn own<'a>(agent: &str, entities: &'a Value) -> Vec<&'a Value> {
    list(entities).filter(|entity| entity["owner_id"] == agent).collect()
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap()
}

fn nearest<'a>(from: &Value, places: impl Iterator<Item = &'a Value>) -> Option<(f64, &'a Value)> {
    let away = |place: &Value| {
        let side = |axis: usize| number(&place["position"][axis]) - number(&from["position"][axis]);
        (side(0) * side(0) + side(1) * side(1)).sqrt()
    };
    places.map(|place| (away(place), place)).min_by(|one, other| one.0.total_cmp(&other.0))
}

/// Replies of all kinds: JSON unrelated to the game, and nearly valid actions. `ID` is a placeholder for an id.
pub fn any_reply() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        Just(json!(null)),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        ".{0,8}".prop_map(Value::from),
        Just(json!("ID")),
    ];
    let value = leaf.prop_recursive(3, 16, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map("[a-z_]{0,8}", inner, 0..4)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    });
    let action = prop_oneof![
        Just("move"),
        Just("take_food"),
        Just("deposit_food"),
        Just("heal"),
        Just("spawn"),
        Just("attack"),
        Just("make_base"),
    ];
    let id = || prop_oneof![9 => Just(json!("ID")), 1 => value.clone()];
    let target = prop_oneof![
        3 => (any::<f64>(), any::<f64>()).prop_map(|(x, y)| json!([x, y])),
        3 => (0..40, 0..40).prop_map(|(x, y)| json!([x, y])),
        3 => Just(json!("ID")),
        1 => value.clone(),
    ];
    let action = (action, id(), id(), id(), target).prop_map(|(action, actor_id, base_id, food_id, target)| {
        json!({"action": action, "actor_id": actor_id, "base_id": base_id, "food_id": food_id, "target": target})
    });
    let list = prop::collection::vec(prop_oneof![4 => action, 1 => value.clone()], 0..12).prop_map(Value::from);
    prop_oneof![9 => list, 1 => value].prop_map(|reply| reply.to_string())
}

/// Plays the replies in one game and only their accepted actions in an equal game, and checks that the games stay
/// equal. Each `"ID"` in a reply is replaced by an id of the state.
pub fn check_replies(mut game: Box<dyn AnyGame>, mut again: Box<dyn AnyGame>, epochs: &[Vec<Option<String>>]) {
    let (mut events, mut no_events) = (Events::default(), Events::default());
    let mut turn = 0;
    for replies in epochs {
        let seats = replies.len();
        let replies: Vec<Option<String>> = (0..seats)
            .map(|seat| {
                let seen: Value = serde_json::from_str(&state(&*game, Seat(seat))).unwrap();
                let things = ["actors", "bases", "foods"].into_iter().flat_map(|key| list(&seen[key]));
                let ids: Vec<String> = things.map(|thing| thing["id"].to_string()).collect();
                let reply = replies[seat].as_ref()?;
                let mut parts = reply.split("\"ID\"");
                let first = parts.next().unwrap_or_default().to_owned();
                Some(parts.fold(first, |text, part| {
                    turn += 7;
                    text + &ids[turn % ids.len()] + part
                }))
            })
            .collect();
        let replies: Vec<Option<&str>> = replies.iter().map(Option::as_deref).collect();
        let mut taken = Vec::new();
        game.play(&replies, &mut taken, &mut events);
        let mut retaken = Vec::new();
        let lists: Vec<Value> = serde_json::from_slice(&taken).unwrap();
        let lists: Vec<Option<String>> = lists.iter().map(|list| list.is_array().then(|| list.to_string())).collect();
        let lists: Vec<Option<&str>> = lists.iter().map(Option::as_deref).collect();
        again.play(&lists, &mut retaken, &mut no_events);
        assert_eq!(String::from_utf8(taken).unwrap(), String::from_utf8(retaken).unwrap());
        assert!(no_events.rejections().is_empty(), "{no_events:?}");
        for seat in (0..seats).map(Seat) {
            let seen = state(&*game, seat);
            assert_eq!(seen, state(&*again, seat));
            assert_eq!(seen, state(&*game, seat), "reading the state changes nothing");
        }
        assert_eq!(game.scores(), again.scores());
        assert_eq!(game.termination(), again.termination());
    }
}
