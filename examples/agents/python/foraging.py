"""Shared code of food_catcher and cherry_picker: actors gather food, carry it home, and avoid collisions."""

from math import sqrt

# The load with which an actor goes home. Loads are unlimited, but they don't count and can be lost.
LOAD = 40.0

# The food that actors leave in a source, because a source grows by a share of its content.
LEAVE = 15.0

# Tolerance for rounding errors.
SLACK = 0.01

# Directions around an obstacle, as cosine and sine: straight on, then 45, 90 and 135 degrees to either side. All actors try the
# same side first, so two that meet head-on pass each other.
HALF = sqrt(0.5)
TURNS = ((1, 0), (HALF, -HALF), (HALF, HALF), (0, -1), (0, 1), (-HALF, -HALF), (-HALF, HALF))


def forage(me, state, config):
    """Returns actions for all actors and bases with a task, and the actors without one."""
    actors = [actor for actor in state["actors"] if actor["owner_id"] == me]
    bases = [base for base in state["bases"] if base["owner_id"] == me]
    # Actors with larger loads choose first and so have the right of way.
    actors.sort(key=lambda actor: -actor["food"])
    epochs_left = config["n_epochs"] - state["epoch"] if config["n_epochs"] > 0 else float("inf")
    # Known positions at the end of the epoch, and the distance that other actors must keep: of two actors
    # that get too close, one dies. Our own moves are known; an opponent's actor may come a step nearer.
    gap = 2 * config["actor_radius"] + SLACK
    gaps = {actor["id"]: gap if actor["owner_id"] == me else gap + config["actor_speed"] for actor in state["actors"]}
    places = {actor["id"]: actor["position"] for actor in state["actors"]}
    claimed = {}
    actions, idle = [], []
    for actor in actors:
        action = choose(actor, bases, state["foods"], claimed, config, epochs_left)
        if action and action["action"] == "move":
            place = step(actor, action["target"], places, gaps, config)
            action = {**action, "target": place} if place else None
            places[actor["id"]] = place or actor["position"]
        if action:
            actions.append(action)
        else:
            idle.append(actor)
    # A new actor must bring in more than it costs, so their number is limited, and spawning stops in time.
    if len(actors) < 2 * len(state["foods"]) and epochs_left > 3 * config["spawn_actor_cost"]:
        for base in bases:
            is_free = all(distance(place, base["position"]) >= gaps[name] for name, place in places.items())
            if is_free and base["food"] >= config["spawn_actor_cost"]:
                actions.append({"action": "spawn", "base_id": base["id"]})
    return actions, idle


def choose(actor, bases, foods, claimed, config, epochs_left):
    """Returns an actor's action without regard to collisions. `claimed` is the part of each source that other actors aim for."""
    base = min(bases, key=lambda base: distance(actor["position"], base["position"]), default=None)
    if base is None and actor["food"] >= config["make_base_cost"]:
        return {"action": "make_base", "actor_id": actor["id"]}
    way_home = distance(actor["position"], base["position"]) if base else 0.0
    if base and way_home <= config["deposit_food_max_distance"]:
        if actor["food"] > 0:
            return {"action": "deposit_food", "actor_id": actor["id"], "base_id": base["id"]}
        if actor["health"] < actor["max_health"] / 2 and base["food"] > 0:
            return {"action": "heal", "actor_id": actor["id"], "base_id": base["id"]}
    # Without a base there is no home, and a new base is paid from the actor's load.
    room = (LOAD if base else config["make_base_cost"]) - actor["food"]
    is_late = base and way_home / config["actor_speed"] + 10 >= epochs_left
    best, best_rate, best_gain = None, 0.0, 0.0
    for food in foods if room > 0 and not is_late else []:
        gain = min(room, food["quantity"] - LEAVE - claimed.get(food["id"], 0.0))
        way = distance(actor["position"], food["position"])
        way_back = distance(food["position"], base["position"]) if base else 0.0
        rate = gain / (1 + (way + way_back) / config["actor_speed"] + gain / config["take_food_speed"])
        if rate > best_rate:
            best, best_rate, best_gain = food, rate, gain
    if best:
        claimed[best["id"]] = claimed.get(best["id"], 0.0) + best_gain
        if distance(actor["position"], best["position"]) <= config["take_food_max_distance"]:
            return {"action": "take_food", "actor_id": actor["id"], "food_id": best["id"]}
        return {"action": "move", "actor_id": actor["id"], "target": best["position"]}
    if base and actor["food"] > 0:
        return {"action": "move", "actor_id": actor["id"], "target": base["position"]}
    return None


def step(actor, target, places, gaps, config):
    """Returns the next position on the way to a target at a safe distance from others, or None to wait."""
    (x, y), way = actor["position"], distance(actor["position"], target)
    if way == 0.0:
        return None
    length = min(way, config["actor_speed"])
    dx, dy = (target[0] - x) / way * length, (target[1] - y) / way * length
    # Actors further away can't be in the way.
    others = [
        (place, gaps[name])
        for name, place in places.items()
        if name != actor["id"] and distance(place, actor["position"]) < gaps[name] + length
    ]
    for cosine, sine in TURNS:
        place = [
            min(max(x + dx * cosine - dy * sine, 0.0), config["grid_width"]),
            min(max(y + dx * sine + dy * cosine, 0.0), config["grid_height"]),
        ]
        if all(distance(place, other) >= gap for other, gap in others):
            return place
    return None


def distance(a, b):
    """Returns the distance of two points. Rounded as in the other languages; math.dist rounds differently."""
    dx, dy = a[0] - b[0], a[1] - b[1]
    return sqrt(dx * dx + dy * dy)
