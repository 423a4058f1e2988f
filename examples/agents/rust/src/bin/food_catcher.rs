//! Food catcher: gathers food; actors without a task attack enemies in range. See `foraging.rs`.

use example_agents::foraging::{Entity, distance, entities, forage, number};
use example_agents::run;
use serde_json::{Value, json};

/// Returns actions for our actors and bases.
fn decide(me: &str, state: &Value, config: &Value) -> Vec<Value> {
    let (mut actions, idle) = forage(me, state, config);
    // A destroyed base loses its food, so bases come first, and the weakest of each kind.
    let enemies = |of: &'static str| {
        let mut enemies: Vec<Entity<'_>> =
            entities(&state[of]).into_iter().filter(|entity| entity.owner_id != me).collect();
        enemies.sort_by(|a, b| a.health.total_cmp(&b.health));
        enemies
    };
    let targets = [enemies("bases"), enemies("actors")].concat();
    let range = number(config, "attack_range");
    for actor in idle {
        if let Some(target) = targets.iter().find(|target| distance(actor.position, target.position) <= range) {
            actions.push(json!({"action": "attack", "actor_id": actor.id, "target": target.id}));
        }
    }
    actions
}

fn main() -> std::io::Result<()> {
    run("food-catcher-rs", "1", decide)
}
