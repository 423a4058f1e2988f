//! Tests of a map's rules. Each test has the entities, the agents' actions, and the expected entities after one
//! epoch.

use std::collections::BTreeSet;

use expect_test::{Expect, expect};
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

/// Compares the rejections and the entities of a scene after an epoch in which only agent 0 gives orders.
#[track_caller]
fn check(scene: &str, orders: &str, expected: Expect) {
    let owners = scene.split(" of ").skip(1).map(|rest| 1 + rest[..1].parse::<usize>().unwrap()).max().unwrap_or(1);
    let mut world = world(owners, scene);
    let mut lists = vec!["[]"; owners];
    lists[0] = orders;
    let rejected: String = play(&mut world, &lists).iter().map(|line| format!("{line}\n")).collect();
    expected.assert_eq(&(rejected + &tell(&world)));
}

#[test]
fn actors_perform_their_actions() {
    check(
        "food  Food01 at 10.5,10 with 4
         food  Food02 at 20,20 with 50
         actor Taker1 of 0 at 10,10 with 0
         actor Taker2 of 0 at 20,21 with 0
         actor Giver1 of 0 at 6,6.125 with 30
         actor Mover1 of 0 at 30,30 with 0
         actor Mover2 of 0 at 35,35 with 0
         base  Base01 of 0 at 6,6 with 0
         base  Base02 of 0 at 8,8 with 100",
        r#"[
            {"action":"take_food","actor_id":"Taker1","food_id":"Food01"},
            {"action":"take_food","actor_id":"Taker2","food_id":"Food02"},
            {"action":"deposit_food","actor_id":"Giver1","base_id":"Base01"},
            {"action":"move","actor_id":"Mover1","target":[33,34]},
            {"action":"move","actor_id":"Mover2","target":[35.5,35]},
            {"action":"spawn","base_id":"Base02"}
        ]"#,
        expect![[r#"
            food Food01 at [10.5, 10.0] with 0
            food Food02 at [20.0, 20.0] with 45
            actor Taker1 of 0 at 10,10 with 4.2 health 50
            actor Taker2 of 0 at 20,21 with 5 health 50
            actor Giver1 of 0 at 6,6.125 with 0 health 50
            actor Mover1 of 0 at 30.6,30.8 with 0 health 50
            actor Mover2 of 0 at 35.5,35 with 0 health 50
            actor Bugw9u of 0 at 8,8 with 0 health 50
            base Base01 of 0 at 6,6 with 30 health 50
            base Base02 of 0 at 8,8 with 0 health 50
        "#]],
    );
}

#[test]
fn food_turns_into_health_as_far_as_both_go() {
    check(
        "actor Actor1 of 0 at 6,6 with 0 health 10
         actor Actor2 of 0 at 9,9 with 0 health 49.7
         actor Actor3 of 0 at 9,10 with 0
         base  Base01 of 0 at 6,6.1 with 15
         base  Base02 of 0 at 9,9 with 15
         base  Base03 of 0 at 9,10 with 15",
        r#"[
            {"action":"heal","actor_id":"Actor1","base_id":"Base01"},
            {"action":"heal","actor_id":"Actor2","base_id":"Base02"},
            {"action":"heal","actor_id":"Actor3","base_id":"Base03"}
        ]"#,
        expect![[r#"
            rejected 0 2: the actor has all its health
            actor Actor1 of 0 at 6,6 with 0 health 25
            actor Actor2 of 0 at 9,9 with 0 health 50
            actor Actor3 of 0 at 9,10 with 0 health 50
            base Base01 of 0 at 6,6.1 with 0 health 50
            base Base02 of 0 at 9,9 with 14.700000000000003 health 50
            base Base03 of 0 at 9,10 with 15 health 50
        "#]],
    );
}

#[test]
fn an_agent_acts_with_its_own_entities_only() {
    check(
        "food  Food01 at 10.5,10 with 40
         actor Enemy1 of 1 at 10,10 with 600 health 40
         base  Enemyb of 1 at 10,10 with 200
         actor Actor1 of 0 at 10,9 with 30 health 20
         base  Base01 of 0 at 10,9 with 0",
        r#"[
            {"action":"move","actor_id":"Enemy1","target":[33,34]},
            {"action":"take_food","actor_id":"Enemy1","food_id":"Food01"},
            {"action":"deposit_food","actor_id":"Enemy1","base_id":"Base01"},
            {"action":"heal","actor_id":"Enemy1","base_id":"Enemyb"},
            {"action":"attack","actor_id":"Enemy1","target":"Enemyb"},
            {"action":"make_base","actor_id":"Enemy1"},
            {"action":"spawn","base_id":"Enemyb"},
            {"action":"heal","actor_id":"Actor1","base_id":"Enemyb"},
            {"action":"attack","actor_id":"Actor1","target":"Base01"},
            {"action":"attack","actor_id":"Actor1","target":"Actor1"}
        ]"#,
        expect![[r#"
            rejected 0 0: the actor is another agent's
            rejected 0 1: the actor is another agent's
            rejected 0 2: the actor is another agent's
            rejected 0 3: the actor is another agent's
            rejected 0 4: the actor is another agent's
            rejected 0 5: the actor is another agent's
            rejected 0 6: the base is another agent's
            rejected 0 7: the base is another agent's
            rejected 0 8: the target is the agent's own
            rejected 0 9: the target is the agent's own
            food Food01 at [10.5, 10.0] with 42
            actor Enemy1 of 1 at 10,10 with 600 health 40
            actor Actor1 of 0 at 10,9 with 30 health 20
            base Enemyb of 1 at 10,10 with 200 health 50
            base Base01 of 0 at 10,9 with 0 health 50
        "#]],
    );
}

#[test]
fn an_actor_performs_its_first_possible_action_only() {
    check(
        "actor Actor1 of 0 at 10,10 with 0
         actor Actor2 of 0 at 10,15 with 0
         base  Base01 of 0 at 30,30 with 500
         base  Enemyb of 1 at 10,18 with 0",
        r#"[
            {"action":"attack","actor_id":"Actor1","target":"Enemyb"},
            {"action":"move","actor_id":"Actor1","target":[0,10]},
            {"action":"move","actor_id":"Actor1","target":[0,10]},
            {"action":"attack","actor_id":"Actor2","target":"Enemyb"},
            {"action":"attack","actor_id":"Actor2","target":"Enemyb"},
            {"action":"spawn","base_id":"Base01"},
            {"action":"spawn","base_id":"Base01"}
        ]"#,
        expect![[r#"
            rejected 0 0: the target is too far away
            rejected 0 2: the actor has acted in this epoch
            rejected 0 4: the actor has acted in this epoch
            rejected 0 6: the base has acted in this epoch
            actor Actor1 of 0 at 9,10 with 0 health 50
            actor Actor2 of 0 at 10,15 with 0 health 50
            actor R7pBPd of 0 at 30,30 with 0 health 50
            base Base01 of 0 at 30,30 with 400 health 50
            base Enemyb of 1 at 10,18 with 0 health 45
        "#]],
    );
}

#[test]
fn missing_and_distant_targets_are_rejected() {
    check(
        "food  Food01 at 11.01,10 with 40
         food  Food02 at 10,10.5 with 0.1
         actor Actor1 of 0 at 10,10 with 499.9
         actor Actor2 of 0 at 20,20 with 0 health 49
         base  Base01 of 0 at 10,10.16 with 99.9
         base  Base02 of 0 at 20,20 with 0
         actor Enemy1 of 1 at 15.01,10 with 0",
        r#"[
            {"action":"move","actor_id":"Nobody","target":[0,10]},
            {"action":"spawn","base_id":"Nobody"},
            {"action":"spawn","base_id":"Actor1"},
            {"action":"make_base","actor_id":"Nobody"},
            {"action":"make_base","actor_id":"Base01"},
            {"action":"make_base","actor_id":"Actor1"},
            {"action":"spawn","base_id":"Base01"},
            {"action":"attack","actor_id":"Actor1","target":"Nobody"},
            {"action":"attack","actor_id":"Actor1","target":"Food01"},
            {"action":"attack","actor_id":"Actor1","target":"Enemy1"},
            {"action":"take_food","actor_id":"Actor1","food_id":"Food01"},
            {"action":"take_food","actor_id":"Actor1","food_id":"Enemy1"},
            {"action":"deposit_food","actor_id":"Actor1","base_id":"Nobody"},
            {"action":"deposit_food","actor_id":"Actor1","base_id":"Base01"},
            {"action":"heal","actor_id":"Actor1","base_id":"Base01"},
            {"action":"heal","actor_id":"Actor2","base_id":"Base02"},
            {"action":"deposit_food","actor_id":"Actor2","base_id":"Base02"}
        ]"#,
        expect![[r#"
            rejected 0 0: there is no such actor
            rejected 0 1: there is no such base
            rejected 0 2: there is no such base
            rejected 0 3: there is no such actor
            rejected 0 4: there is no such actor
            rejected 0 5: the actor carries too little food for a base
            rejected 0 6: the base has too little food for an actor
            rejected 0 7: there is no such actor or base to attack
            rejected 0 8: there is no such actor or base to attack
            rejected 0 9: the target is too far away
            rejected 0 10: the food is too far away
            rejected 0 11: there is no such source of food
            rejected 0 12: there is no such base
            rejected 0 13: the base is too far away
            rejected 0 14: the base is too far away
            rejected 0 15: the base has no food
            rejected 0 16: the actor carries no food
            food Food01 at [11.01, 10.0] with 42
            food Food02 at [10.0, 10.5] with 0.10500000000000001
            actor Actor1 of 0 at 10,10 with 499.9 health 50
            actor Actor2 of 0 at 20,20 with 0 health 49
            actor Enemy1 of 1 at 15.01,10 with 0 health 50
            base Base01 of 0 at 10,10.16 with 99.9 health 50
            base Base02 of 0 at 20,20 with 0 health 50
        "#]],
    );
}

#[test]
fn food_can_be_left_in_any_base_that_stands_and_is_its_owners() {
    check(
        "actor Actor1 of 0 at 10,10 with 30
         actor Actor2 of 0 at 20,20 with 30
         actor Actor3 of 0 at 30,30 with 30
         actor Enemy1 of 1 at 31,30 with 0
         base  Base01 of 0 at 10,9 with 0
         base  Enemyb of 1 at 10,10.1 with 200
         base  Enemyc of 1 at 20,20.2 with 0
         base  Enemyd of 1 at 30,30 with 7 health 5",
        r#"[
            {"action":"deposit_food","actor_id":"Actor1","base_id":"Enemyb"},
            {"action":"deposit_food","actor_id":"Actor2","base_id":"Enemyc"},
            {"action":"attack","actor_id":"Actor2","target":"Base01"},
            {"action":"deposit_food","actor_id":"Actor3","base_id":"Nobase"}
        ]"#,
        expect![[r#"
            rejected 0 1: the base is too far away
            rejected 0 2: the target is the agent's own
            rejected 0 3: there is no such base
            actor Actor1 of 0 at 10,10 with 0 health 50
            actor Actor2 of 0 at 20,20 with 30 health 50
            actor Actor3 of 0 at 30,30 with 30 health 50
            actor Enemy1 of 1 at 31,30 with 0 health 50
            base Base01 of 0 at 10,9 with 0 health 50
            base Enemyb of 1 at 10,10.1 with 230 health 50
            base Enemyc of 1 at 20,20.2 with 0 health 50
            base Enemyd of 1 at 30,30 with 7 health 5
        "#]],
    );
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
fn an_actor_that_makes_a_base_becomes_it_and_the_rest_of_its_food_is_there() {
    check(
        "actor Actor1 of 0 at 10,10 with 530.5 health 1
         actor Actor2 of 0 at 20,20 with 499.9
         actor Enemy1 of 1 at 12,10 with 0
         base  Enemyb of 1 at 10,10 with 0",
        r#"[
            {"action":"make_base","actor_id":"Actor1"},
            {"action":"deposit_food","actor_id":"Actor1","base_id":"Enemyb"},
            {"action":"make_base","actor_id":"Actor2"}
        ]"#,
        expect![[r#"
            rejected 0 1: there is no such actor
            rejected 0 2: the actor carries too little food for a base
            actor Actor2 of 0 at 20,20 with 499.9 health 50
            actor Enemy1 of 1 at 12,10 with 0 health 50
            base Enemyb of 1 at 10,10 with 0 health 50
            base R7pBPd of 0 at 10,10 with 30.5 health 50
        "#]],
    );
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
fn positions_stay_on_the_map_whatever_the_target() {
    check(
        "actor Actor1 of 0 at 10,0.5 with 0
         actor Actor2 of 0 at 39.5,20 with 0
         actor Actor3 of 0 at 20,20 with 0
         actor Actor4 of 0 at 30,30 with 0
         actor Actor5 of 0 at 0.5,0.5 with 0
         actor Actor6 of 0 at 25,25 with 0
         actor Actor7 of 0 at 5,5 with 0",
        r#"[
            {"action":"move","actor_id":"Actor1","target":[10,-5]},
            {"action":"move","actor_id":"Actor2","target":[42.5,24]},
            {"action":"move","actor_id":"Actor3","target":[1.7976931348623157e308,-1.7976931348623157e308]},
            {"action":"move","actor_id":"Actor4","target":[1e200,30]},
            {"action":"move","actor_id":"Actor5","target":[-0.0,-0.0]},
            {"action":"move","actor_id":"Actor6","target":[25,25]},
            {"action":"move","actor_id":"Actor7","target":[5e-324,5]}
        ]"#,
        expect![[r#"
            actor Actor1 of 0 at 10,0 with 0 health 50
            actor Actor2 of 0 at 40,20.8 with 0 health 50
            actor Actor3 of 0 at 20.707106781186546,19.292893218813454 with 0 health 50
            actor Actor4 of 0 at 31,30 with 0 health 50
            actor Actor5 of 0 at 0,0 with 0 health 50
            actor Actor6 of 0 at 25,25 with 0 health 50
            actor Actor7 of 0 at 4,5 with 0 health 50
        "#]],
    );
}

#[test]
fn the_actor_with_the_smaller_load_survives_a_collision_and_gets_the_food() {
    check(
        "actor Light1 of 0 at 10,10 with 10
         actor Heavy1 of 1 at 10.8,10 with 30
         actor Apart1 of 1 at 10,10.9 with 5",
        "[]",
        expect![[r#"
            actor Light1 of 0 at 10,10 with 40 health 50
            actor Apart1 of 1 at 10,10.9 with 5 health 50
            dead Heavy1 of 1 at 10.8,10 with 0 health 0
        "#]],
    );
}

// Three actors touch each other. Dead actors kill no others, and no food is lost.
#[test]
fn the_dead_do_not_collide() {
    check(
        "actor Actor1 of 0 at 10,10 with 30
         actor Actor2 of 1 at 10.1,10 with 10
         actor Actor3 of 2 at 10.2,10 with 50",
        "[]",
        expect![[r#"
            actor Actor2 of 1 at 10.1,10 with 90 health 50
            dead Actor1 of 0 at 10,10 with 0 health 0
            dead Actor3 of 2 at 10.2,10 with 0 health 0
        "#]],
    );
}

// The actor in the middle dies, so no actor kills the third.
#[test]
fn each_death_in_a_collision_has_a_survivor_beside_it() {
    check(
        "actor Actor3 of 2 at 11.6,10 with 50
         actor Actor2 of 1 at 10.8,10 with 30
         actor Actor1 of 0 at 10,10 with 10",
        "[]",
        expect![[r#"
            actor Actor3 of 2 at 11.6,10 with 50 health 50
            actor Actor1 of 0 at 10,10 with 40 health 50
            dead Actor2 of 1 at 10.8,10 with 0 health 0
        "#]],
    );
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
fn nothing_is_done_with_the_dead() {
    check(
        "actor Actor1 of 0 at 10,10 with 0
         actor Actor2 of 0 at 10,12 with 0
         base  Enemyb of 1 at 12,10 with 500 health 5",
        r#"[{"action":"attack","actor_id":"Actor1","target":"Enemyb"},
                {"action":"attack","actor_id":"Actor2","target":"Enemyb"}]"#,
        expect![[r#"
            rejected 0 1: the target has died
            actor Actor1 of 0 at 10,10 with 0 health 50
            actor Actor2 of 0 at 10,12 with 0 health 50
            dead Enemyb of 1 at 12,10 with 500 health 0
        "#]],
    );
}

#[test]
fn food_grows_up_to_a_limit_and_crumbs_vanish() {
    check(
        "food Food01 at 1,1 with 0.0999
         food Food02 at 2,2 with 0.1
         food Food03 at 3,3 with 20
         food Food04 at 4,4 with 49",
        "[]",
        expect![[r#"
            food Food02 at [2.0, 2.0] with 0.10500000000000001
            food Food03 at [3.0, 3.0] with 21
            food Food04 at [4.0, 4.0] with 50
        "#]],
    );
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
