"""The rules of food_catcher and cherry_picker, implemented again from their description: one epoch at a time, from one recorded
state to the next. Random draws (food, ids, the order of players, ties) are read from the record and must be possible; everything
else is computed."""

import itertools
import math

from difference import Difference, need
from wild import decide, distance

CLOSE = 1e-9
MOST_ACTORS = 32
MOST_BASES = 8


def same(a, b):
    return abs(a - b) <= CLOSE * max(1.0, abs(a), abs(b))


def same_place(a, b):
    return same(a[0], b[0]) and same(a[1], b[1])


class World:
    """The objects on a map, by id."""

    def __init__(self, state, config):
        self.config = config
        self.side = (float(config["grid_width"]), float(config["grid_height"]))
        self.foods = {food["id"]: dict(food) for food in state["foods"]}
        self.actors = {actor["id"]: dict(actor) for actor in state["actors"]}
        self.bases = {base["id"]: dict(base) for base in state["bases"]}
        self.dead = {}
        self.born = []  # new actors and bases, with random ids
        self.acted = set()

    # The sources of food, before the actions.

    def grow(self, after):
        """Updates the sources; new ones are read from `after`, the recorded state after this epoch."""
        least = 0.1
        self.foods = {key: food for key, food in self.foods.items() if food["quantity"] >= least}
        for food in self.foods.values():
            food["quantity"] = min(food["quantity"] * 1.05, 50.0)
        new = [food for food in after["foods"] if food["id"] not in self.foods]
        check_new_food(new, len(self.foods), self.config)
        for food in new:
            self.foods[food["id"]] = dict(food)

    # Actions. Each returns true if it was carried out.

    def act(self, me, action):
        kinds = {
            "move": self.move,
            "take_food": self.take_food,
            "deposit_food": self.deposit_food,
            "heal": self.heal,
            "spawn": self.spawn,
            "attack": self.attack,
            "make_base": self.make_base,
        }
        if not isinstance(action, dict) or not isinstance(action.get("action"), str) or action["action"] not in kinds:
            return False
        own = self.bases if action["action"] == "spawn" else self.actors
        key = action.get("base_id" if own is self.bases else "actor_id")
        thing = own.get(key) if isinstance(key, str) else None
        if thing is None or thing["owner_id"] != me or key in self.acted:
            return False
        if not kinds[action["action"]](thing, action):
            return False
        self.acted.add(key)
        return True

    def move(self, actor, action):
        target = action.get("target")
        if not isinstance(target, list) or len(target) != 2 or not all(is_number(part) for part in target):
            return False
        away = distance(actor["position"], target)
        step = self.config["actor_speed"]
        if away > 1e-4:
            share = min(1.0, step / away)
            moved = [here + (there - here) * share for here, there in zip(actor["position"], target)]
            actor["position"] = [min(max(part, 0.0), side) for part, side in zip(moved, self.side)]
        return True

    def take_food(self, actor, action):
        food = self.foods.get(text(action.get("food_id")))
        if food is None or distance(actor["position"], food["position"]) > self.config["take_food_max_distance"]:
            return False
        amount = min(self.config["take_food_speed"], food["quantity"])
        if amount <= 0:
            return False
        food["quantity"] -= amount
        actor["food"] += amount
        return True

    def at_base(self, actor, action):
        base = self.bases.get(text(action.get("base_id")))
        reach = self.config["deposit_food_max_distance"]
        return base if base is not None and distance(actor["position"], base["position"]) <= reach else None

    def deposit_food(self, actor, action):
        base = self.at_base(actor, action)
        if base is None or actor["food"] <= 0:
            return False
        base["food"] += actor["food"]
        actor["food"] = 0.0
        return True

    def heal(self, actor, action):
        base = self.at_base(actor, action)
        if base is None or base["owner_id"] != actor["owner_id"]:
            return False
        amount = min(actor["max_health"] - actor["health"], base["food"])
        if amount <= 0:
            return False
        actor["health"] += amount
        base["food"] -= amount
        return True

    def spawn(self, base, _action):
        if base["food"] < self.config["spawn_actor_cost"] or self.count("actor", base["owner_id"]) >= MOST_ACTORS:
            return False
        base["food"] -= self.config["spawn_actor_cost"]
        self.be_born("actor", base["owner_id"], base["position"], 0.0, self.config["actor_max_health"])
        return True

    def make_base(self, actor, _action):
        if actor["food"] < self.config["make_base_cost"] or self.count("base", actor["owner_id"]) >= MOST_BASES:
            return False
        rest = actor["food"] - self.config["make_base_cost"]
        self.be_born("base", actor["owner_id"], actor["position"], rest, 50.0)
        del self.actors[actor["id"]]
        return True

    def count(self, kind, owner):
        """Returns a player's objects of a kind, including those of this epoch."""
        home = self.actors if kind == "actor" else self.bases
        new = [thing for thing in self.born if thing["kind"] == kind]
        return sum(thing["owner_id"] == owner for thing in [*home.values(), *new])

    def be_born(self, kind, owner, place, food, health):
        self.born.append({"kind": kind, "owner_id": owner, "position": list(place), "food": food, "health": health})

    def attack(self, actor, action):
        key = text(action.get("target"))
        target = self.bases.get(key) or self.actors.get(key)
        if target is None or target["owner_id"] == actor["owner_id"]:
            return False
        if distance(actor["position"], target["position"]) > self.config["attack_range"]:
            return False
        target["health"] -= self.config["actor_damage"]
        if target["health"] <= 0:
            home = self.bases if key in self.bases else self.actors
            self.dead[key] = home.pop(key)
        return True

    # After the actions.

    def name_the_born(self, after):
        """Gives new objects their ids from the record; `None` for objects that the record doesn't have."""
        known = set(self.actors) | set(self.bases) | set(self.dead)
        for kind, home, recorded in (("actor", self.actors, after["actors"]), ("base", self.bases, after["bases"])):
            dead = [thing for thing in after["dead_entities"] if thing["id"] not in known]
            fresh = [thing for thing in recorded if thing["id"] not in known] + dead
            for thing in [born for born in self.born if born["kind"] == kind]:
                found = next(
                    (
                        other
                        for other in fresh
                        if other["owner_id"] == thing["owner_id"] and same_place(other["position"], thing["position"])
                    ),
                    None,
                )
                need(found is not None, "nothing in the record is the new", kind, thing)
                fresh.remove(found)
                home[found["id"]] = {**thing, "id": found["id"], "max_health": found["max_health"]}
                need(same(found["max_health"], thing["health"]), "the new", kind, "has health", found["max_health"])

    def collide(self, after):
        """Resolves collisions: actors take turns, the one with the least food first, and each actor alive at its turn kills all that
        it touches and takes their food. The order of equals is random: the one that leads to the recorded state."""
        reach = 2 * self.config["actor_radius"]
        touched = {key: [] for key in self.actors}
        for first, second in itertools.combinations(self.actors.values(), 2):
            if distance(first["position"], second["position"]) < reach:
                touched[first["id"]].append(second["id"])
                touched[second["id"]].append(first["id"])
        recorded = {actor["id"]: actor["food"] for actor in after["actors"]}
        food = {key: actor["food"] for key, actor in self.actors.items()}
        left = {}
        # The orders of separate crowds are independent.
        for crowd in crowds(touched):
            wanted = {key: recorded[key] for key in crowd if key in recorded}
            left.update(settle(crowd, food, touched, wanted))
        for key, amount in left.items():
            self.actors[key]["food"] = amount
        for key in food.keys() - left.keys():
            self.dead[key] = self.actors.pop(key)

    def compare(self, after):
        for kind, mine, recorded in (
            ("food", self.foods, after["foods"]),
            ("actor", self.actors, after["actors"]),
            ("base", self.bases, after["bases"]),
        ):
            theirs = {thing["id"]: thing for thing in recorded}
            need(mine.keys() == theirs.keys(), kind, "ids", sorted(mine), "recorded", sorted(theirs))
            for key, thing in mine.items():
                need(
                    same_place(thing["position"], theirs[key]["position"]),
                    kind,
                    key,
                    "is at",
                    thing["position"],
                    "recorded",
                    theirs[key],
                )
                for number in ("quantity",) if kind == "food" else ("food", "health", "max_health"):
                    need(same(thing[number], theirs[key][number]), kind, key, number, thing[number], "recorded", theirs[key])
                if kind != "food":
                    need(thing["owner_id"] == theirs[key]["owner_id"], kind, key, "changed hands")
        dead = {thing["id"] for thing in after["dead_entities"]}
        need(dead == set(self.dead), "dead", sorted(self.dead), "recorded", sorted(dead))


def crowds(touched):
    """Returns the groups of actors that touch each other, directly or through others; a single actor is a group as well."""
    unseen = set(touched)
    for start in touched:
        crowd, waiting = [], [start]
        while waiting:
            key = waiting.pop()
            if key in unseen:
                unseen.remove(key)
                crowd.append(key)
                waiting.extend(touched[key])
        if crowd:
            yield crowd


def settle(crowd, food, touched, wanted):
    """Returns the survivors of a crowd with their food, by the order of equals that leads to the wanted result."""
    # The recorded survivors go first: the first attempt is then mostly right.
    turns = sorted(crowd, key=lambda key: (food[key], key not in wanted))
    equals = [list(group) for _, group in itertools.groupby(turns, key=lambda key: food[key])]
    for orders in itertools.product(*map(itertools.permutations, equals)):
        left = {key: food[key] for key in crowd}
        for key in itertools.chain(*orders):
            for other in touched[key] if key in left else []:
                left[key] += left.pop(other, 0.0)
        if left.keys() == wanted.keys() and all(same(left[key], wanted[key]) for key in left):
            return left
    were = {key: (food[key], touched[key]) for key in crowd}
    raise Difference(f"no order of collisions leads from {were} to {wanted}")


def is_number(value):
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)


def text(value):
    return value if isinstance(value, str) else None


def check_new_food(new, left, config):
    """Checks new sources: groups of four, mirrored, with equal food, only when there are too few, and no more than needed."""
    most = config["max_food_sources"]
    fours = 0 if left >= most else -(-(most - left) // 4)
    need(len(new) == 4 * fours, len(new), "new sources beside", left)
    width, height = config["grid_width"], config["grid_height"]
    for four in (new[at : at + 4] for at in range(0, len(new), 4)):
        x, y = four[0]["position"]
        need(0 <= x <= width and 0 <= y <= height, "a source beyond the map", four[0])
        places = sorted([[x, y], [width - x, y], [x, height - y], [width - x, height - y]])
        for place, food in zip(places, sorted(four, key=lambda food: food["position"])):
            need(same_place(place, food["position"]), "not mirrored:", four)
            need(same(food["quantity"], four[0]["quantity"]), "unequal food:", four)
            need(0.1 <= food["quantity"] <= 50.0, "food out of its range:", food)


def check_start(state, config, owners):
    """Checks the first state: for each owner a base in a corner, and an actor on it."""
    check_new_food(state["foods"], 0, config)
    width, height, offset = config["grid_width"], config["grid_height"], config["base_spawn_border_offset"]
    corners = [[w * width, h * height] for w in (offset, 1 - offset) for h in (offset, 1 - offset)]
    need(sorted(base["owner_id"] for base in state["bases"]) == sorted(owners), "bases of", state["bases"])
    need(len(state["actors"]) == len(owners), "actors", state["actors"])
    taken = []
    for base in state["bases"]:
        corner = next((corner for corner in corners if same_place(corner, base["position"])), None)
        need(corner is not None and corner not in taken, "a base at", base["position"])
        taken.append(corner)
        need(base["food"] == 0 and base["health"] == 50, "a base begins with", base)
        actor = next((actor for actor in state["actors"] if actor["owner_id"] == base["owner_id"]), None)
        need(actor is not None and same_place(actor["position"], base["position"]), "no actor on", base)
        need(actor["food"] == 0 and actor["health"] == config["actor_max_health"], "an actor begins with", actor)


def can_act(state, config, me):
    """Returns true if this player can still act."""
    return any(actor["owner_id"] == me for actor in state["actors"]) or any(
        base["owner_id"] == me and base["food"] >= config["spawn_actor_cost"] for base in state["bases"]
    )


def known_keys(action):
    keys = {
        "move": ["actor_id", "target"],
        "take_food": ["actor_id", "food_id"],
        "deposit_food": ["actor_id", "base_id"],
        "heal": ["actor_id", "base_id"],
        "spawn": ["base_id"],
        "attack": ["actor_id", "target"],
        "make_base": ["actor_id"],
    }[action["action"]]
    return {key: action[key] for key in ["action", *keys]}


def check_epoch(game, before, after, recorded, config, owners):
    """Checks an epoch of one world. `recorded` has the actions by owner; `None` for owners that weren't asked."""
    wanted = {me: decide(game, me, before, config) for me in owners if recorded[me] is not None}
    for me in owners:
        need((me in wanted) or not can_act(before, config, me), me, "can act and wasn't asked")
    complaints = []
    for order in itertools.permutations(wanted):
        world = World(before, config)
        try:
            world.grow(after)
            for me in order:
                taken = [known_keys(action) for action in wanted[me] if world.act(me, action)]
                need(taken == recorded[me], me, "took", taken, "recorded", recorded[me], "of", wanted[me])
            world.name_the_born(after)
            world.collide(after)
            world.compare(after)
            return
        except Difference as difference:
            complaints.append(str(difference))
    raise Difference("; or ".join(complaints[:2]))


def check(lines):
    """Checks a replay. Returns the number of computed states."""
    header, *epochs, last = lines
    game, config = header["game"], header["config"]
    owners = [agent["agent_id"] for agent in header["agents"]]
    states = 0
    for line, after in zip(epochs, [*epochs[1:], last]):
        try:
            for group in [owners] if game == "food_catcher" else [[me] for me in owners]:
                before, behind = (pick(frame, game, owners, group[0]) for frame in (line, after))
                if line["epoch"] == 1:
                    check_start(before, config, group)
                if not before or not behind:
                    # A world is not recorded while no player is asked.
                    need(line["actions"][owners.index(group[0])] is None or not behind, group[0], "was asked about nothing")
                    continue
                recorded = {me: line["actions"][owners.index(me)] for me in group}
                check_epoch(game, before, behind, recorded, config, group)
                states += 1
        except Difference as difference:
            raise Difference(f"epoch {line['epoch']}: {difference}") from None
    end = {me: pick(last, game, owners, me) for me in owners}
    computed = [sum(base["food"] for base in end[me]["bases"] if base["owner_id"] == me) for me in owners]
    need(all(same(a, b) for a, b in zip(computed, last["result"]["scores"])), "scores", computed, last["result"])
    need(last["result"]["epochs"] == len(epochs), "epochs", len(epochs), last["result"])
    if len(epochs) < config["n_epochs"]:
        still = [me for me in owners if can_act(end[me], config, me)]
        need(not still, "ended at", len(epochs), "though there is more to do for", still)
    return states


def pick(line, game, owners, me):
    """Returns the objects on a player's map."""
    return line["world_state"] if game == "food_catcher" else line["worlds"][owners.index(me)]
