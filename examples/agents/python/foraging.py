"""What food_catcher and cherry_picker have in common: actors gather food, carry it home, and keep out of each other's way."""

from math import sqrt

# An actor goes home with this much. Carrying has no limit, but what is carried doesn't count, and can be lost.
LOAD = 40.0

# What is left in a source, since sources grow by a share of what they hold.
LEAVE = 15.0

# A little room for rounding, in everything that is measured.
SLACK = 0.01

# Ways around an obstacle, as cosine and sine: straight on, then 45, 90 and 135 degrees to either side. All try the same side first,
# so two who meet head-on pass each other.
HALF = sqrt(0.5)
TURNS = ((1, 0), (HALF, -HALF), (HALF, HALF), (0, -1), (0, 1), (-HALF, -HALF), (-HALF, HALF))


def forage(me, state, config):
    """Actions for all actors and bases that have something to do, and the actors that haven't."""
    actors = [actor for actor in state["actors"] if actor["owner_id"] == me]
    bases = [base for base in state["bases"] if base["owner_id"] == me]
    # Those who carry most choose first, and so have the right of way.
    actors.sort(key=lambda actor: -actor["food"])
    epochs_left = config["n_epochs"] - state["epoch"] if config["n_epochs"] > 0 else float("inf")
    # Where everybody will be at the end of the epoch, as far as we know, and how far from there nobody else must be: of two actors
    # that get too close, one dies. We know where ours go; the others' may come a step nearer.
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
    # A new actor has to bring in more than it costs, so there is a limit to their number, and a time to stop.
    if len(actors) < 2 * len(state["foods"]) and epochs_left > 3 * config["spawn_actor_cost"]:
        for base in bases:
            is_free = all(distance(place, base["position"]) >= gaps[name] for name, place in places.items())
            if is_free and base["food"] >= config["spawn_actor_cost"]:
                actions.append({"action": "spawn", "base_id": base["id"]})
    return actions, idle


def choose(actor, bases, foods, claimed, config, epochs_left):
    """What an actor would do if it were alone. `claimed` is how much of each source others are after."""
    base = min(bases, key=lambda base: distance(actor["position"], base["position"]), default=None)
    if base is None and actor["food"] >= config["make_base_cost"]:
        return {"action": "make_base", "actor_id": actor["id"]}
    way_home = distance(actor["position"], base["position"]) if base else 0.0
    if base and way_home <= config["deposit_food_max_distance"]:
        if actor["food"] > 0:
            return {"action": "deposit_food", "actor_id": actor["id"], "base_id": base["id"]}
        if actor["health"] < actor["max_health"] / 2 and base["food"] > 0:
            return {"action": "heal", "actor_id": actor["id"], "base_id": base["id"]}
    # Without a base there is nowhere to go, and a new one has to be paid from what one carries.
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
    """Where to go next on the way to a target without coming too close to anybody, or None to wait."""
    (x, y), way = actor["position"], distance(actor["position"], target)
    if way == 0.0:
        return None
    length = min(way, config["actor_speed"])
    dx, dy = (target[0] - x) / way * length, (target[1] - y) / way * length
    # Nobody who is further away can be in the way.
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
    """How far two points are from each other. Rounded as in the other languages, which math.dist is not."""
    dx, dy = a[0] - b[0], a[1] - b[1]
    return sqrt(dx * dx + dy * dy)
