//! One map: its entities, the rules of an epoch, and the agents' state. The module `foraging` describes the rules.

use std::cmp::Ordering;

use arena_model::{AgentId, IndexedAction, Seed, SeedRng};
use serde::{Deserialize, Serialize};

use super::id::Id;
use super::{Action, Constants, MAX_ACTORS, MAX_BASES};

/// The quantity below which a source vanishes.
const LEAST_FOOD: f64 = 0.1;

/// The quantity up to which a source grows.
const MOST_FOOD: f64 = 50.0;

/// The growth factor of a source in an epoch.
const FOOD_GROWTH: f64 = 1.05;

type Point = [f64; 2];

/// A map and the agents on it, which are numbered from 0.
#[derive(Serialize, Deserialize)]
pub struct World {
    constants: Constants,
    #[serde(with = "kept_seed")]
    seed: Seed,
    /// The random numbers for food sources. The n-th four sources of a map are the same in each game with this seed,
    /// regardless of the actions.
    food_rng: SeedRng,
    /// The random numbers for the ids of actors and bases.
    id_rng: SeedRng,
    /// The number of epochs played.
    epoch: u64,
    owners: Vec<Owner>,
    foods: Vec<Food>,
    actors: Vec<Entity>,
    bases: Vec<Entity>,
    /// The actors and bases that died in the last epoch.
    dead: Vec<Entity>,
}

/// Serialization of a world's seed.
mod kept_seed {
    use arena_model::Seed;
    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serializer};

    pub fn serialize<S: Serializer>(seed: &Seed, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&seed.reveal())
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Seed, D::Error> {
        let text = String::deserialize(deserializer)?;
        Seed::from_revealed(&text).ok_or_else(|| D::Error::custom("invalid seed"))
    }
}

#[derive(Serialize, Deserialize)]
struct Owner {
    id_json: String,
    is_disqualified: bool,
}

#[derive(Serialize, Deserialize)]
struct Food {
    id: Id,
    position: Point,
    quantity: f64,
}

/// An actor or a base.
#[derive(Serialize, Deserialize)]
struct Entity {
    id: Id,
    /// The number of the agent that owns the entity.
    owner: usize,
    position: Point,
    food: f64,
    /// The health. An entity with health 0 is dead, and is removed at the end of the epoch.
    health: f64,
    /// True if the entity has acted in this epoch.
    has_acted: bool,
}

impl Entity {
    fn is_alive(&self) -> bool {
        self.health > 0.0
    }
}

impl World {
    /// Creates the map before the first epoch. Each agent has a base with an actor on it, near a randomly drawn
    /// corner.
    pub fn new(constants: Constants, seed: Seed, agents: &[AgentId]) -> World {
        let mut world = World {
            food_rng: seed.rng("foraging/food"),
            id_rng: seed.rng("foraging/ids"),
            constants,
            seed,
            epoch: 0,
            owners: Vec::new(),
            foods: Vec::new(),
            actors: Vec::new(),
            bases: Vec::new(),
            dead: Vec::new(),
        };
        let [width, height] = world.size();
        let offset = world.constants.base_spawn_border_offset;
        let start = [width * offset, height * offset];
        let mut corners = mirror_images(start, [width, height]);
        shuffle(&mut corners, &mut world.seed.rng("foraging/corners"));
        for (owner, (agent, corner)) in agents.iter().zip(corners).enumerate() {
            let id_json = serde_json::to_string(agent).expect("an agent's id is text");
            world.owners.push(Owner { id_json, is_disqualified: false });
            let base = world.new_entity(owner, corner, 0.0);
            world.bases.push(base);
            let actor = world.new_entity(owner, corner, 0.0);
            world.actors.push(actor);
        }
        world.add_foods();
        world
    }

    pub fn constants(&self) -> &Constants {
        &self.constants
    }

    pub fn epoch(&self) -> u64 {
        self.epoch
    }

    /// Disqualifies an agent. The agent's actors and bases stay on the map without acting, and can still be attacked.
    pub fn disqualify(&mut self, owner: usize) {
        if let Some(owner) = self.owners.get_mut(owner) {
            owner.is_disqualified = true;
        }
    }

    pub fn is_disqualified(&self, owner: usize) -> bool {
        self.owners.get(owner).is_none_or(|owner| owner.is_disqualified)
    }

    /// Returns true if an agent can act now. An agent without actors can only spawn one. If none of its bases can pay
    /// for an actor, the agent can't act until another agent leaves food in one of its bases.
    pub fn can_act(&self, owner: usize) -> bool {
        let cost = self.constants.spawn_actor_cost;
        !self.is_disqualified(owner)
            && (self.actors.iter().any(|actor| actor.owner == owner)
                || self.bases.iter().any(|base| base.owner == owner && base.food >= cost))
    }

    /// Returns the food in an agent's bases.
    pub fn score(&self, owner: usize) -> f64 {
        self.bases.iter().filter(|base| base.owner == owner).map(|base| base.food).fold(0.0, |sum, food| sum + food)
    }

    /// Plays one epoch with each agent's actions. `reject` is called for each rejected action with the agent, the
    /// position and the reason.
    pub fn step(&mut self, lists: &[&[IndexedAction<Action>]], mut reject: impl FnMut(usize, usize, &'static str)) {
        self.epoch += 1;
        self.dead.clear();
        for entity in self.actors.iter_mut().chain(&mut self.bases) {
            entity.has_acted = false;
        }
        self.grow_foods();
        for owner in self.order(lists) {
            for IndexedAction { index, action } in lists[owner] {
                if let Err(reason) = self.act(owner, action) {
                    reject(owner, *index, reason);
                }
            }
        }
        self.bury();
        self.collide();
    }

    /// The seed and the epoch determine the order, so a list with only rejected actions has no effect.
    fn order(&self, lists: &[&[IndexedAction<Action>]]) -> Vec<usize> {
        let mut order: Vec<usize> = (0..lists.len()).collect();
        if lists.iter().filter(|list| !list.is_empty()).count() > 1 {
            shuffle(&mut order, &mut self.seed.rng(&format!("foraging/order/{}", self.epoch)));
        }
        order
    }

    fn size(&self) -> Point {
        [f64::from(self.constants.grid_width), f64::from(self.constants.grid_height)]
    }

    // Food

    fn grow_foods(&mut self) {
        self.foods.retain(|food| food.quantity >= LEAST_FOOD);
        for food in &mut self.foods {
            food.quantity = (food.quantity * FOOD_GROWTH).min(MOST_FOOD);
        }
        self.add_foods();
    }

    fn add_foods(&mut self) {
        let size = self.size();
        while self.foods.len() < self.constants.max_food_sources {
            let point = [size[0] * self.food_rng.unit(), size[1] * self.food_rng.unit()];
            let quantity = LEAST_FOOD + (MOST_FOOD - LEAST_FOOD) * self.food_rng.unit();
            for position in mirror_images(point, size) {
                let id = self.new_id(|world| &mut world.food_rng);
                self.foods.push(Food { id, position, quantity });
            }
        }
    }

    // Actions

    /// Performs one action, or returns the reason for its rejection and changes nothing.
    fn act(&mut self, owner: usize, action: &Action) -> Result<(), &'static str> {
        if self.owners[owner].is_disqualified {
            return Err("the agent is disqualified");
        }
        let acted = match *action {
            Action::Spawn { base_id } => return self.spawn(owner, base_id),
            Action::Move { actor_id, target } => {
                let actor = self.ready_actor(owner, actor_id)?;
                let (speed, size) = (self.constants.actor_speed, self.size());
                let position = &mut self.actors[actor].position;
                *position = towards(*position, target, speed, size);
                actor
            }
            Action::TakeFood { actor_id, food_id } => {
                let actor = self.ready_actor(owner, actor_id)?;
                self.take_food(actor, food_id)?;
                actor
            }
            Action::DepositFood { actor_id, base_id } => {
                let actor = self.ready_actor(owner, actor_id)?;
                let base = self.base(base_id)?;
                self.check_is_near(actor, base)?;
                if self.actors[actor].food <= 0.0 {
                    return Err("the actor carries no food");
                }
                self.bases[base].food += self.actors[actor].food;
                self.actors[actor].food = 0.0;
                actor
            }
            Action::Heal { actor_id, base_id } => {
                let actor = self.ready_actor(owner, actor_id)?;
                let base = self.own_base(owner, base_id)?;
                self.check_is_near(actor, base)?;
                self.heal(actor, base)?;
                actor
            }
            Action::Attack { actor_id, target } => {
                let actor = self.ready_actor(owner, actor_id)?;
                self.attack(actor, target)?;
                actor
            }
            Action::MakeBase { actor_id } => {
                let actor = self.ready_actor(owner, actor_id)?;
                return self.make_base(actor);
            }
        };
        self.actors[acted].has_acted = true;
        Ok(())
    }

    /// Returns the index of an agent's actor if it can act.
    fn ready_actor(&self, owner: usize, id: Id) -> Result<usize, &'static str> {
        let at = find(&self.actors, id).ok_or("there is no such actor")?;
        let actor = &self.actors[at];
        match () {
            () if actor.owner != owner => Err("the actor is another agent's"),
            () if !actor.is_alive() => Err("the actor has died"),
            () if actor.has_acted => Err("the actor has acted in this epoch"),
            () => Ok(at),
        }
    }

    /// Returns the index of a base if it exists.
    fn base(&self, id: Id) -> Result<usize, &'static str> {
        let at = find(&self.bases, id).ok_or("there is no such base")?;
        match self.bases[at].is_alive() {
            true => Ok(at),
            false => Err("the base has been destroyed"),
        }
    }

    /// Returns the index of an agent's base if it exists.
    fn own_base(&self, owner: usize, id: Id) -> Result<usize, &'static str> {
        let at = find(&self.bases, id).ok_or("there is no such base")?;
        match self.bases[at].owner == owner {
            true => self.base(id),
            false => Err("the base is another agent's"),
        }
    }

    /// Returns an error if an actor is too far from a base to deposit food or to be healed there.
    fn check_is_near(&self, actor: usize, base: usize) -> Result<(), &'static str> {
        let reach = self.constants.deposit_food_max_distance;
        match is_within(self.actors[actor].position, self.bases[base].position, reach) {
            true => Ok(()),
            false => Err("the base is too far away"),
        }
    }

    fn take_food(&mut self, actor: usize, food_id: Id) -> Result<(), &'static str> {
        let actor = &mut self.actors[actor];
        let food = self.foods.iter_mut().find(|food| food.id == food_id).ok_or("there is no such source of food")?;
        if !is_within(actor.position, food.position, self.constants.take_food_max_distance) {
            return Err("the food is too far away");
        }
        if food.quantity <= 0.0 {
            return Err("the food has all been taken");
        }
        let taken = food.quantity.min(self.constants.take_food_speed);
        food.quantity -= taken;
        actor.food += taken;
        Ok(())
    }

    fn heal(&mut self, actor: usize, base: usize) -> Result<(), &'static str> {
        let (actor, base) = (&mut self.actors[actor], &mut self.bases[base]);
        let missing = self.constants.actor_max_health - actor.health;
        if missing <= 0.0 {
            return Err("the actor has all its health");
        }
        if base.food <= 0.0 {
            return Err("the base has no food");
        }
        let healed = missing.min(base.food);
        base.food -= healed;
        // The sum of health and missing health could exceed the maximum because of rounding.
        actor.health = if healed < missing { actor.health + healed } else { self.constants.actor_max_health };
        Ok(())
    }

    fn attack(&mut self, actor: usize, target: Id) -> Result<(), &'static str> {
        let (owner, position) = (self.actors[actor].owner, self.actors[actor].position);
        let mut entities = self.bases.iter_mut().chain(&mut self.actors);
        let victim = entities.find(|entity| entity.id == target).ok_or("there is no such actor or base to attack")?;
        if victim.owner == owner {
            return Err("the target is the agent's own");
        }
        if !victim.is_alive() {
            return Err("the target has died");
        }
        if !is_within(position, victim.position, self.constants.attack_range) {
            return Err("the target is too far away");
        }
        victim.health = (victim.health - self.constants.actor_damage).max(0.0);
        Ok(())
    }

    fn make_base(&mut self, actor: usize) -> Result<(), &'static str> {
        let Entity { owner, position, food, .. } = self.actors[actor];
        let cost = self.constants.make_base_cost;
        if food < cost {
            return Err("the actor carries too little food for a base");
        }
        if self.bases.iter().filter(|base| base.owner == owner).count() >= MAX_BASES {
            return Err("the agent has as many bases as it can have");
        }
        self.actors.remove(actor);
        let base = self.new_entity(owner, position, food - cost);
        self.bases.push(base);
        Ok(())
    }

    fn spawn(&mut self, owner: usize, base_id: Id) -> Result<(), &'static str> {
        let base = self.own_base(owner, base_id)?;
        let cost = self.constants.spawn_actor_cost;
        if self.bases[base].has_acted {
            return Err("the base has acted in this epoch");
        }
        if self.bases[base].food < cost {
            return Err("the base has too little food for an actor");
        }
        if self.actors.iter().filter(|actor| actor.owner == owner).count() >= MAX_ACTORS {
            return Err("the agent has as many actors as it can have");
        }
        self.bases[base].food -= cost;
        self.bases[base].has_acted = true;
        let actor = self.new_entity(owner, self.bases[base].position, 0.0);
        self.actors.push(actor);
        Ok(())
    }

    /// Creates an actor or a base, which acts from the next epoch on.
    fn new_entity(&mut self, owner: usize, position: Point, food: f64) -> Entity {
        let id = self.new_id(|world| &mut world.id_rng);
        Entity { id, owner, position, food, health: self.constants.actor_max_health, has_acted: true }
    }

    /// Draws an id that no entity of the map has.
    fn new_id(&mut self, rng: impl Fn(&mut World) -> &mut SeedRng) -> Id {
        loop {
            let id = Id::draw(rng(self));
            let mut entities = self.actors.iter().chain(&self.bases).chain(&self.dead);
            if !entities.any(|entity| entity.id == id) && !self.foods.iter().any(|food| food.id == id) {
                return id;
            }
        }
    }

    // Deaths

    /// Removes the dead actors and bases from the map.
    fn bury(&mut self) {
        let World { actors, bases, dead, .. } = self;
        dead.extend(actors.extract_if(.., |actor| !actor.is_alive()));
        dead.extend(bases.extract_if(.., |base| !base.is_alive()));
    }

    fn collide(&mut self) {
        let reach = 2.0 * self.constants.actor_radius;
        let mut touching = Vec::new();
        for (at, actor) in self.actors.iter().enumerate() {
            for (other_at, other) in self.actors.iter().enumerate().skip(at + 1) {
                if is_nearer(actor.position, other.position, reach) {
                    touching.push((at, other_at));
                }
            }
        }
        if touching.is_empty() {
            return;
        }
        let mut rng = self.seed.rng(&format!("foraging/collisions/{}", self.epoch));
        let mut turns: Vec<(f64, f64, usize)> =
            self.actors.iter().enumerate().map(|(at, actor)| (actor.food, rng.unit(), at)).collect();
        let least_first = |one: &f64, other: &f64| one.partial_cmp(other).unwrap_or(Ordering::Equal);
        turns.sort_by(|one, other| {
            least_first(&one.0, &other.0).then(least_first(&one.1, &other.1)).then(one.2.cmp(&other.2))
        });
        for (_, _, survivor) in turns {
            if !self.actors[survivor].is_alive() {
                continue;
            }
            for &(one, other) in &touching {
                let victim = match survivor {
                    at if at == one => other,
                    at if at == other => one,
                    _ => continue,
                };
                if self.actors[victim].is_alive() {
                    self.actors[survivor].food += self.actors[victim].food;
                    self.actors[victim].food = 0.0;
                    self.actors[victim].health = 0.0;
                }
            }
        }
        self.bury();
    }

    // The state

    /// Appends the agents' state: the members of a JSON object.
    pub fn write_state(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(b"\"foods\":[");
        for (place, food) in self.foods.iter().enumerate() {
            out.extend_from_slice(if place > 0 { b",{\"position\":" } else { b"{\"position\":" });
            write_point(food.position, out);
            out.extend_from_slice(b",\"quantity\":");
            write_number(food.quantity, out);
            out.extend_from_slice(b",\"id\":\"");
            out.extend_from_slice(food.id.as_str().as_bytes());
            out.extend_from_slice(b"\"}");
        }
        out.extend_from_slice(b"],\"actors\":");
        self.write_entities(&self.actors, out);
        out.extend_from_slice(b",\"bases\":");
        self.write_entities(&self.bases, out);
        out.extend_from_slice(b",\"dead_entities\":");
        self.write_entities(&self.dead, out);
    }

    fn write_entities(&self, entities: &[Entity], out: &mut Vec<u8>) {
        out.push(b'[');
        for (place, entity) in entities.iter().enumerate() {
            out.extend_from_slice(if place > 0 { b",{\"position\":" } else { b"{\"position\":" });
            write_point(entity.position, out);
            out.extend_from_slice(b",\"id\":\"");
            out.extend_from_slice(entity.id.as_str().as_bytes());
            out.extend_from_slice(b"\",\"owner_id\":");
            out.extend_from_slice(self.owners[entity.owner].id_json.as_bytes());
            out.extend_from_slice(b",\"food\":");
            write_number(entity.food, out);
            out.extend_from_slice(b",\"health\":");
            write_number(entity.health, out);
            out.extend_from_slice(b",\"max_health\":");
            write_number(self.constants.actor_max_health, out);
            out.push(b'}');
        }
        out.push(b']');
    }
}

fn find(entities: &[Entity], id: Id) -> Option<usize> {
    entities.iter().position(|entity| entity.id == id)
}

fn write_point([x, y]: Point, out: &mut Vec<u8>) {
    out.push(b'[');
    write_number(x, out);
    out.push(b',');
    write_number(y, out);
    out.push(b']');
}

/// Writes the shortest decimal number that parses to this double.
fn write_number(number: f64, out: &mut Vec<u8>) {
    serde_json::to_writer(out, &number).expect("memory takes all");
}

/// Returns a point and its mirror images: left and right, up and down, and both.
fn mirror_images([x, y]: Point, [width, height]: Point) -> [Point; 4] {
    [[x, y], [width - x, y], [x, height - y], [width - x, height - y]]
}

/// Shuffles a list; all orders are equally likely.
fn shuffle<T>(things: &mut [T], rng: &mut SeedRng) {
    for last in (1..things.len()).rev() {
        things.swap(last, rng.below(last as u64 + 1) as usize);
    }
}

fn squared_distance([x, y]: Point, [other_x, other_y]: Point) -> f64 {
    (x - other_x) * (x - other_x) + (y - other_y) * (y - other_y)
}

fn is_within(one: Point, other: Point, reach: f64) -> bool {
    squared_distance(one, other) <= reach * reach
}

fn is_nearer(one: Point, other: Point, reach: f64) -> bool {
    squared_distance(one, other) < reach * reach
}

/// Returns the end of a straight step from a point on the map towards any other point, limited to the map.
fn towards(from: Point, target: Point, speed: f64, size: Point) -> Point {
    let way = [target[0] - from[0], target[1] - from[1]];
    // The distance is scaled before squaring, because the square of a coordinate like 1e200 is infinite.
    let scale = way[0].abs().max(way[1].abs());
    if scale <= 0.0 {
        return from;
    }
    let direction = [way[0] / scale, way[1] / scale];
    let length = (direction[0] * direction[0] + direction[1] * direction[1]).sqrt();
    let reached = match scale * length <= speed {
        true => target,
        false => [from[0] + speed * (direction[0] / length), from[1] + speed * (direction[1] / length)],
    };
    // Adding 0.0 turns -0.0 into 0.0.
    [reached[0].clamp(0.0, size[0]) + 0.0, reached[1].clamp(0.0, size[1]) + 0.0]
}

#[cfg(test)]
mod tests;
