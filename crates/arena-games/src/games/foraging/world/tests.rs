//! Tests of a map's rules.

use std::collections::BTreeSet;

use expect_test::{expect, expect_file};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

fn agents(count: usize) -> Vec<AgentId> {
    (0..count).map(|number| format!("a{number}").parse().unwrap()).collect()
}

fn id(text: &str) -> Id {
    serde_json::from_value(text.into()).unwrap()
}

/// Returns a map with the default constants and the scene's entities, on which no other food appears.
///
/// Each line is `food Food01 at 1,2 with 30`, `actor Actor1 of 0 at 1,2 with 30` or `base Base01 of 0 at 1,2 with 30`,
/// the last two optionally with `health 20`.
fn world(owners: usize, scene: &str) -> World {
    let constants = Constants { max_food_sources: 0, ..Constants::default() };
    let mut world = World::new(constants, Seed::from_number(1), &agents(owners));
    world.actors.clear();
    world.bases.clear();
    for line in scene.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let words: Vec<&str> = line.split_whitespace().collect();
        let value = |key: &str| words.iter().position(|word| *word == key).map(|at| words[at + 1]);
        let number = |key: &str| value(key).map(|text| text.parse::<f64>().unwrap());
        let (x, y) = value("at").unwrap().split_once(',').unwrap();
        let position = [x.parse().unwrap(), y.parse().unwrap()];
        let (id, held) = (id(words[1]), number("with").unwrap());
        if words[0] == "food" {
            world.foods.push(Food { id, position, quantity: held });
            continue;
        }
        let owner = value("of").unwrap().parse().unwrap();
        let health = number("health").unwrap_or(50.0);
        let entity = Entity { id, owner, position, food: held, health, has_acted: false };
        match words[0] {
            "actor" => world.actors.push(entity),
            "base" => world.bases.push(entity),
            other => panic!("a scene has no {other}"),
        }
    }
    world
}

/// Plays one epoch; `lists` are the JSON texts of the agents' actions. Returns the rejections.
fn play(world: &mut World, lists: &[&str]) -> Vec<String> {
    let offer = |(index, action)| IndexedAction { index, action };
    let lists: Vec<Vec<IndexedAction<Action>>> = lists
        .iter()
        .map(|text| serde_json::from_str::<Vec<Action>>(text).unwrap().into_iter().enumerate().map(offer).collect())
        .collect();
    let lists: Vec<&[IndexedAction<Action>]> = lists.iter().map(Vec::as_slice).collect();
    let mut rejected = Vec::new();
    world.step(&lists, |owner, index, reason| rejected.push((owner, index, reason)));
    rejected.sort_unstable();
    rejected.iter().map(|(owner, index, reason)| format!("rejected {owner} {index}: {reason}")).collect()
}

fn tell(world: &World) -> String {
    let mut described = String::new();
    for food in &world.foods {
        described += &format!("food {:?} at {:?} with {}\n", food.id, food.position, food.quantity);
    }
    for (kind, entities) in [("actor", &world.actors), ("base", &world.bases), ("dead", &world.dead)] {
        for Entity { id, owner, position, food, health, .. } in entities {
            let [x, y] = position;
            described += &format!("{kind} {id:?} of {owner} at {x},{y} with {food} health {health}\n");
        }
    }
    described
}

/// Plays an epoch of each scene of `scenes.txt`: entities and the actions of agent 0. The lines below `---` are the
/// rejections, and the entities after the epoch.
#[test]
fn scenes_have_their_outcomes() {
    let file = expect_file!["scenes.txt"];
    let mut played = Vec::new();
    for block in file.data().split("\n\n") {
        let (given, _) = block.split_once("---\n").unwrap();
        let lines = given.lines().filter(|line| !line.starts_with('#'));
        let (orders, scene): (Vec<&str>, Vec<&str>) = lines.partition(|line| line.starts_with('{'));
        let owners = scene.iter().filter_map(|line| line.split(" of ").nth(1)?[..1].parse::<usize>().ok());
        let owners = 1 + owners.max().unwrap_or(0);
        let mut world = world(owners, &scene.join("\n"));
        let mut lists = vec!["[]"; owners];
        let orders = format!("[{}]", orders.join(","));
        lists[0] = &orders;
        let rejected: String = play(&mut world, &lists).iter().map(|line| format!("{line}\n")).collect();
        played.push(format!("{given}---\n{rejected}{}", tell(&world)));
    }
    file.assert_eq(&played.join("\n"));
}

#[test]
fn food_given_to_an_agent_that_can_not_act_lets_it_act_again() {
    let scene = "actor Actor1 of 0 at 10,10 with 30\n base Base01 of 1 at 10,10 with 80";
    let mut world = world(2, scene);
    assert!(!world.can_act(1));
    play(&mut world, &[r#"[{"action":"deposit_food","actor_id":"Actor1","base_id":"Base01"}]"#, "[]"]);
    assert!(world.can_act(1));
    assert_eq!((world.score(0), world.score(1)), (0.0, 110.0));
}

#[test]
fn an_agent_without_actors_is_out_unless_its_bases_can_pay_for_one() {
    for (food, is_in) in [(599.0, false), (600.0, true)] {
        let mut world = world(1, &format!("actor Actor1 of 0 at 10,10 with {food}"));
        play(&mut world, &[r#"[{"action":"make_base","actor_id":"Actor1"}]"#]);
        assert_eq!((world.actors.len(), world.can_act(0)), (0, is_in));
        assert_eq!(world.score(0), food - 500.0);
    }
}

#[test]
fn of_two_with_equal_loads_one_survives_by_lot() {
    let (mut survived, epochs) = ([0, 0], 400);
    for epoch in 0..epochs {
        let mut world = world(2, "actor Actor1 of 0 at 10,10 with 7\n actor Actor2 of 1 at 10,10 with 7");
        world.epoch = epoch;
        play(&mut world, &["[]", "[]"]);
        assert_eq!((world.actors.len(), world.actors[0].food), (1, 14.0));
        survived[world.actors[0].owner] += 1;
    }
    // The standard deviation is ten; the range is six standard deviations in either direction.
    assert!(survived.iter().all(|wins| (140..=260).contains(wins)), "{survived:?}");
}

#[test]
fn the_dead_are_listed_for_one_epoch() {
    let mut world = world(
        2,
        "actor Actor1 of 0 at 10,10 with 0
         actor Actor2 of 0 at 10,12 with 0
         actor Enemy1 of 1 at 12,10 with 9 health 5
         base  Enemyb of 1 at 12,12 with 90 health 2
         actor Enemy2 of 1 at 30,30 with 1
         actor Enemy3 of 1 at 30,30 with 2",
    );
    let attacks = r#"[{"action":"attack","actor_id":"Actor1","target":"Enemy1"},
                      {"action":"attack","actor_id":"Actor2","target":"Enemyb"}]"#;
    assert!(play(&mut world, &[attacks, "[]"]).is_empty());
    expect![[r#"
        actor Actor1 of 0 at 10,10 with 0 health 50
        actor Actor2 of 0 at 10,12 with 0 health 50
        actor Enemy2 of 1 at 30,30 with 3 health 50
        dead Enemy1 of 1 at 12,10 with 9 health 0
        dead Enemyb of 1 at 12,12 with 90 health 0
        dead Enemy3 of 1 at 30,30 with 0 health 0
    "#]]
    .assert_eq(&tell(&world));
    play(&mut world, &["[]", "[]"]);
    expect![[r#"
        actor Actor1 of 0 at 10,10 with 0 health 50
        actor Actor2 of 0 at 10,12 with 0 health 50
        actor Enemy2 of 1 at 30,30 with 3 health 50
    "#]]
    .assert_eq(&tell(&world));
}

// Two actors attack each other with deadly effect. The actor whose list is processed first survives, because the other
// one is dead before its turn.
#[test]
fn a_dead_actor_does_nothing_more_in_its_epoch() {
    let mut first = [0, 0];
    for epoch in 0..400 {
        let mut world = world(
            2,
            "actor Actor1 of 0 at 10,10 with 0 health 5
             actor Actor2 of 1 at 12,10 with 0 health 5",
        );
        world.epoch = epoch;
        let rejected = play(
            &mut world,
            &[
                r#"[{"action":"attack","actor_id":"Actor1","target":"Actor2"}]"#,
                r#"[{"action":"attack","actor_id":"Actor2","target":"Actor1"}]"#,
            ],
        );
        let survivor = world.actors[0].owner;
        assert_eq!((world.actors.len(), world.dead.len()), (1, 1));
        assert_eq!(rejected, [format!("rejected {} 0: the actor has died", 1 - survivor)]);
        first[survivor] += 1;
    }
    assert!(first.iter().all(|times| (140..=260).contains(times)), "{first:?}");
}

#[test]
fn a_base_that_has_been_destroyed_spawns_nothing() {
    let mut described = BTreeSet::new();
    for epoch in 0..40 {
        let mut world = world(
            2,
            "actor Actor1 of 0 at 10,10 with 0
             base  Enemyb of 1 at 12,10 with 100 health 5",
        );
        world.epoch = epoch;
        let rejected = play(
            &mut world,
            &[
                r#"[{"action":"attack","actor_id":"Actor1","target":"Enemyb"}]"#,
                r#"[{"action":"spawn","base_id":"Enemyb"}]"#,
            ],
        );
        described.insert((world.actors.len(), world.dead[0].food as u64, rejected));
    }
    let rejected = "rejected 1 0: the base has been destroyed".to_owned();
    assert_eq!(described, BTreeSet::from([(1, 100, vec![rejected]), (2, 0, vec![])]));
}

#[test]
fn a_new_actor_acts_from_the_next_epoch_on() {
    let scene = || world(1, "base Base01 of 0 at 10,10 with 100");
    let mut foreseen = scene();
    play(&mut foreseen, &[r#"[{"action":"spawn","base_id":"Base01"}]"#]);
    let id = foreseen.actors[0].id;
    let spawn_and_move =
        format!(r#"[{{"action":"spawn","base_id":"Base01"}},{{"action":"move","actor_id":"{id:?}","target":[0,0]}}]"#);
    let mut world = scene();
    assert_eq!(play(&mut world, &[&spawn_and_move]), ["rejected 0 1: the actor has acted in this epoch"]);
    assert_eq!(play(&mut world, &[&spawn_and_move]), ["rejected 0 0: the base has too little food for an actor"]);
}

#[test]
fn sources_come_in_mirrored_fours_of_equal_quantity() {
    let mut world = World::new(Constants::default(), Seed::from_number(5), &agents(4));
    let check_fours = |world: &World| {
        for four in world.foods.chunks(4) {
            let [x, y] = four[0].position;
            assert_eq!([four[1].position, four[2].position], [[40.0 - x, y], [x, 40.0 - y]]);
            assert_eq!(four[3].position, [40.0 - x, 40.0 - y]);
            assert!(four.iter().all(|food| food.quantity == four[0].quantity));
        }
    };
    assert_eq!(world.foods.len(), 12);
    check_fours(&world);
    world.foods.drain(4..8).for_each(drop);
    play(&mut world, &["[]"; 4]);
    assert_eq!(world.foods.len(), 12);
    check_fours(&world);
}

#[test]
fn all_seats_start_alike() {
    for seed in 0..50 {
        let world = World::new(Constants::default(), Seed::from_number(seed), &agents(4));
        let view = |base: &Entity| {
            let mut seen: Vec<(i64, i64)> = world
                .foods
                .iter()
                .map(|food| (squared_distance(base.position, food.position), food.quantity))
                .map(|(distance, quantity)| ((distance * 1e6).round() as i64, (quantity * 1e6) as i64))
                .collect();
            seen.sort_unstable();
            seen
        };
        assert!(world.bases.iter().all(|base| view(base) == view(&world.bases[0])));
        let mut corners: Vec<[i64; 2]> = world.bases.iter().map(|base| base.position.map(|n| n as i64)).collect();
        assert!(world.bases.iter().zip(&world.actors).all(|(base, actor)| base.position == actor.position));
        corners.sort_unstable();
        assert_eq!(corners, [[6, 6], [6, 34], [34, 6], [34, 34]]);
    }
}

#[test]
fn there_is_an_end_to_actors_and_bases() {
    let mut world = world(1, "base Base01 of 0 at 10,10 with 100000");
    world.constants.actor_radius = 0.0;
    world.constants.make_base_cost = 0.0;
    let order = |world: &World| {
        let make_base = world.actors.first().map(|actor| json!({"action": "make_base", "actor_id": actor.id}));
        let all: Vec<Value> = make_base.into_iter().chain([json!({"action": "spawn", "base_id": "Base01"})]).collect();
        json!(all).to_string()
    };
    for _ in 0..50 {
        let all = order(&world);
        play(&mut world, &[&all]);
    }
    assert_eq!((world.actors.len(), world.bases.len()), (MAX_ACTORS, MAX_BASES));
    let all = order(&world);
    assert_eq!(
        play(&mut world, &[&all]),
        [
            "rejected 0 0: the agent has as many bases as it can have",
            "rejected 0 1: the agent has as many actors as it can have",
        ]
    );
}

#[test]
fn the_largest_state_fits_into_a_pipe() {
    let long: Vec<AgentId> =
        (0..4).map(|number| format!("{number}a4b6f08-7f0e-4c39-9a54-3d2b1c0e9f88").parse().unwrap()).collect();
    let constants = Constants { max_food_sources: 64, ..Constants::default() };
    let mut world = World::new(constants, Seed::from_number(1), &long);
    let third = [100.0 / 3.0; 2];
    for owner in 0..4 {
        for _ in 1..MAX_ACTORS {
            let actor = world.new_entity(owner, third, 100.0 / 3.0);
            world.actors.push(actor);
        }
        for _ in 1..MAX_BASES {
            let base = world.new_entity(owner, third, 100.0 / 3.0);
            world.bases.push(base);
        }
    }
    let mut state = Vec::new();
    world.write_state(&mut state);
    assert!(state.len() < 48 << 10, "{}", state.len());
}

#[test]
fn a_disqualified_agent_does_nothing_and_its_things_stay() {
    let mut world = world(
        2,
        "actor Actor1 of 0 at 10,10 with 20
         base  Base01 of 0 at 20,20 with 200
         actor Enemy1 of 1 at 12,10 with 0",
    );
    world.disqualify(0);
    let rejected = play(
        &mut world,
        &[
            r#"[{"action":"move","actor_id":"Actor1","target":[0,10]},{"action":"spawn","base_id":"Base01"}]"#,
            r#"[{"action":"attack","actor_id":"Enemy1","target":"Actor1"}]"#,
        ],
    );
    assert_eq!(rejected, ["rejected 0 0: the agent is disqualified", "rejected 0 1: the agent is disqualified"]);
    expect![[r#"
        actor Actor1 of 0 at 10,10 with 20 health 45
        actor Enemy1 of 1 at 12,10 with 0 health 50
        base Base01 of 0 at 20,20 with 200 health 50
    "#]]
    .assert_eq(&tell(&world));
    assert!(!world.can_act(0) && world.can_act(1));
}

#[test]
fn an_agent_without_an_actor_that_can_not_pay_for_one_is_out() {
    let can_act = |scene: &str| world(1, scene).can_act(0);
    assert!(can_act("actor Actor1 of 0 at 1,1 with 0"));
    assert!(can_act("base Base01 of 0 at 1,1 with 100"));
    assert!(!can_act("base Base01 of 0 at 1,1 with 99.9\n base Base02 of 0 at 1,1 with 99.9"));
    assert!(!can_act(""));
}

/// A crowded scene: positions in steps of a quarter, so that many entities are within reach of each other.
fn crowd() -> impl Strategy<Value = Vec<(bool, usize, u8, u8, u16, u8)>> {
    prop::collection::vec((any::<bool>(), 0..3usize, 0..40u8, 0..40u8, 0..700u16, 1..50u8), 1..24)
}

/// A random action: the kind, the acting entity, the target entity, and the target position.
type Sketch = (u8, usize, usize, f64, f64);

/// Random actions by and on the existing entities, named by their index.
fn any_actions() -> impl Strategy<Value = Vec<Vec<Sketch>>> {
    let action = (0..7u8, 0..64usize, 0..64usize, prop::num::f64::NORMAL, -10.0..50.0f64);
    prop::collection::vec(prop::collection::vec(action, 0..30), 3)
}

fn crowded(crowd: &[(bool, usize, u8, u8, u16, u8)]) -> World {
    let mut scene = String::new();
    for (place, (is_actor, owner, x, y, food, health)) in crowd.iter().enumerate() {
        let kind = if *is_actor { "actor" } else { "base" };
        let (x, y) = (f64::from(*x) / 4.0, f64::from(*y) / 4.0);
        scene += &format!("{kind} Thing{} of {owner} at {x},{y} with {food} health {health}\n", letter(place));
        if place % 4 == 0 {
            scene += &format!("food Foods{} at {x},{y} with {}\n", letter(place), health);
        }
    }
    world(3, &scene)
}

fn letter(place: usize) -> char {
    char::from(b'a' + (place % 26) as u8)
}

fn actions_of(lists: &[Vec<Sketch>]) -> Vec<Vec<IndexedAction<Action>>> {
    let action = |(kind, one, other, x, y): &(u8, usize, usize, f64, f64)| {
        let thing = |place: &usize| id(&format!("Thing{}", letter(*place)));
        let (actor_id, base_id) = (thing(one), thing(other));
        match kind {
            0 => Action::Move { actor_id, target: [*x, *y] },
            1 => Action::TakeFood { actor_id, food_id: id(&format!("Foods{}", letter(*other / 4 * 4))) },
            2 => Action::DepositFood { actor_id, base_id },
            3 => Action::Heal { actor_id, base_id },
            4 => Action::Spawn { base_id },
            5 => Action::Attack { actor_id, target: base_id },
            _ => Action::MakeBase { actor_id },
        }
    };
    let offer = |(index, action)| IndexedAction { index, action };
    lists.iter().map(|list| list.iter().map(action).enumerate().map(offer).collect()).collect()
}

fn step(world: &mut World, lists: &[Vec<IndexedAction<Action>>]) -> Vec<(usize, usize)> {
    let mut rejected = Vec::new();
    let lists: Vec<&[IndexedAction<Action>]> = lists.iter().map(Vec::as_slice).collect();
    world.step(&lists, |owner, index, _| rejected.push((owner, index)));
    rejected
}

fn state(world: &World) -> String {
    let mut state = b"{".to_vec();
    world.write_state(&mut state);
    state.push(b'}');
    String::from_utf8(state).unwrap()
}

fn entities(world: &World) -> impl Iterator<Item = &Entity> {
    world.actors.iter().chain(&world.bases)
}

/// Returns all food on the map.
fn total(world: &World) -> f64 {
    entities(world).map(|entity| entity.food).sum::<f64>() + world.foods.iter().map(|food| food.quantity).sum::<f64>()
}

proptest! {
    #[test]
    fn food_comes_from_growth_alone_and_all_stay_on_the_map(scene in crowd(), lists in any_actions()) {
        let mut world = crowded(&scene);
        let grown: f64 = world.foods.iter().map(|food| (food.quantity * FOOD_GROWTH).min(MOST_FOOD) - food.quantity).sum();
        let before = total(&world);
        step(&mut world, &actions_of(&lists));
        prop_assert!(total(&world) <= before + grown + 1e-6);
        for entity in entities(&world) {
            prop_assert!(entity.position.iter().all(|side| (0.0..=40.0).contains(side)));
            prop_assert!(entity.food >= 0.0 && entity.food.is_finite());
            prop_assert!(entity.health > 0.0 && entity.health <= 50.0);
        }
        prop_assert!(world.dead.iter().all(|entity| entity.health == 0.0));
        let state = state(&world);
        prop_assert!(serde_json::from_str::<Value>(&state).is_ok());
        prop_assert!(!state.contains("-0.0"));
    }

    #[test]
    fn no_surviving_actors_touch(scene in crowd(), lists in any_actions()) {
        let mut world = crowded(&scene);
        step(&mut world, &actions_of(&lists));
        for (at, one) in world.actors.iter().enumerate() {
            for other in &world.actors[at + 1..] {
                prop_assert!(!is_nearer(one.position, other.position, 0.9));
            }
        }
    }

    // Agent 0 acts alone.
    #[test]
    fn others_entities_change_by_attacks_collisions_and_gifts_only(scene in crowd(), lists in any_actions()) {
        let mut world = crowded(&scene);
        step(&mut world, &[vec![], vec![], vec![]]);
        let before: Vec<(Id, Point, f64, f64)> = entities(&world)
            .filter(|entity| entity.owner != 0)
            .map(|entity| (entity.id, entity.position, entity.food, entity.health))
            .collect();
        let mut lists = actions_of(&lists);
        lists[1].clear();
        lists[2].clear();
        let attacked: Vec<Id> = lists[0]
            .iter()
            .filter_map(|offer| match offer.action {
                Action::Attack { target, .. } => Some(target),
                _ => None,
            })
            .collect();
        let given: Vec<Id> = lists[0]
            .iter()
            .filter_map(|offer| match offer.action {
                Action::DepositFood { base_id, .. } => Some(base_id),
                _ => None,
            })
            .collect();
        step(&mut world, &lists);
        for (id, position, food, health) in before {
            match entities(&world).find(|entity| entity.id == id) {
                Some(entity) => {
                    prop_assert_eq!(entity.position, position);
                    prop_assert!(entity.food >= food);
                    prop_assert!(entity.health == health || attacked.contains(&id));
                    let ran_into = world.dead.iter().any(|dead| dead.owner == 0);
                    prop_assert!(entity.food == food || ran_into || given.contains(&id));
                }
                None => prop_assert!(world.dead.iter().any(|dead| dead.id == id)),
            }
        }
        prop_assert!(entities(&world).filter(|entity| entity.owner != 0).count() <= scene.len());
    }

    // Rejected actions change nothing: without them, the result is the same.
    #[test]
    fn rejected_actions_have_no_effect(scene in crowd(), lists in any_actions()) {
        let (mut world, mut again) = (crowded(&scene), crowded(&scene));
        let mut lists = actions_of(&lists);
        let rejected = step(&mut world, &lists);
        for (owner, list) in lists.iter_mut().enumerate() {
            list.retain(|offer| !rejected.contains(&(owner, offer.index)));
        }
        prop_assert!(step(&mut again, &lists).is_empty());
        prop_assert_eq!(state(&world), state(&again));
        for list in &lists {
            let mut doers: Vec<String> = list
                .iter()
                .map(|offer| match &offer.action {
                    Action::Spawn { base_id } => format!("{base_id:?}"),
                    other => serde_json::to_value(other).unwrap()["actor_id"].to_string(),
                })
                .collect();
            let all = doers.len();
            doers.sort();
            doers.dedup();
            prop_assert_eq!(doers.len(), all);
        }
    }

    // The order of entities in the list doesn't matter, unless loads are equal.
    #[test]
    fn collisions_do_not_depend_on_the_order_of_the_list(scene in crowd(), by in 0..24usize) {
        let mut scene = scene;
        for (place, thing) in scene.iter_mut().enumerate() {
            thing.4 = thing.4 / 24 * 24 + place as u16;
        }
        let (mut world, mut turned) = (crowded(&scene), crowded(&scene));
        let by = by % turned.actors.len().max(1);
        turned.actors.rotate_left(by);
        let described = |world: &mut World| {
            step(world, &[vec![], vec![], vec![]]);
            let mut described: Vec<String> = tell(world).lines().map(str::to_owned).collect();
            described.sort();
            described
        };
        prop_assert_eq!(described(&mut world), described(&mut turned));
    }
}
