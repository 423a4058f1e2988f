"""A bot with reproducible answers: they depend on its id, the state and the constants only.

Half of its actions are sensible, so that games progress; the rest tries everything that the rules forbid. The checkers import
`decide`, which gives them all requested actions of each epoch, including refused ones.
"""

import json
import math
import random
import sys

JUNK = [
    {"action": "dance"},
    {"action": 7},
    {"move": "UP"},
    {},
    "move",
    None,
    3,
    ["move"],
]


def distance(a, b):
    x, y = float(a[0]) - b[0], float(a[1]) - b[1]
    return math.sqrt(x * x + y * y)


def snake(me, state, config, rng):
    mine = state["snakes"].get(me)
    if mine is None or not mine["alive"]:
        return []
    if rng.random() < 0.02:
        return rng.choice([[], [rng.choice(JUNK)], [{"action": "move", "move": 3}], [{"action": "move", "move": "AWAY"}]])
    head = mine["head_position"]
    width, height = state["grid"]["width"], state["grid"]["height"]
    steps = {"UP": (0, -1), "RIGHT": (1, 0), "DOWN": (0, 1), "LEFT": (-1, 0)}
    if rng.random() < 0.003:
        return [{"action": "move", "move": rng.choice(list(steps))}]
    taken = {tuple(cell) for other in state["snakes"].values() if other["alive"] for cell in other["positions"][:-1]}
    goal = min(state["foods"], key=lambda food: abs(food[0] - head[0]) + abs(food[1] - head[1]), default=[0, 0])

    def cost(word):
        x, y = head[0] + steps[word][0], head[1] + steps[word][1]
        around = [(x + dx, y + dy) for dx, dy in [(0, 0), *steps.values()]]
        free = [(a, b) not in taken and 0 <= a < width and 0 <= b < height for a, b in around]
        return (not free[0], sum(free) < 3, abs(goal[0] - x) + abs(goal[1] - y), rng.random())

    word = min(steps, key=cost)
    answer = [{"action": "move", "move": rng.choice([word, word.lower(), word.title()])}]
    if rng.random() < 0.05:
        answer.insert(0, rng.choice(JUNK))
    if rng.random() < 0.05:
        answer.append({"action": "move", "move": rng.choice(list(steps))})
    return answer


def chess(me, state, config, rng):
    answer = [{"action": "move", "move": rng.choice(state["legal_moves"])}]
    if rng.random() < 0.3:
        answer.insert(rng.randrange(2), {"action": "claim_draw"})
    if rng.random() < 0.05:
        answer.insert(0, rng.choice(JUNK))
    return answer


def wild_target(rng, config):
    side = config["grid_width"]
    return rng.choice(
        [
            [rng.uniform(0, side), rng.uniform(0, side)],
            [rng.uniform(-50, 100), rng.uniform(-50, 100)],
            [rng.randrange(side), rng.randrange(side)],
            [0, 0],
            [1e150, -1e150],
            [1, 2, 3],
            [1],
            [],
            None,
            "home",
            ["1", "2"],
            [None, 2],
            {"x": 1, "y": 2},
            5,
        ]
    )


def foraging(me, state, config, rng):
    actors, bases, foods = state["actors"], state["bases"], state["foods"]
    mine = [actor for actor in actors if actor["owner_id"] == me]
    homes = [base for base in bases if base["owner_id"] == me]
    everything = [thing["id"] for thing in actors + bases + foods] + ["nobody", "", me]
    answer = []
    for base in homes:
        few = len(mine) < 6 or rng.random() < 0.1
        if (base["food"] >= config["spawn_actor_cost"] and few) or rng.random() < 0.02:
            answer.append({"action": "spawn", "base_id": base["id"]})
    for actor in mine:
        here = actor["position"]
        actions = []
        purpose = rng.random()
        enemies = [thing for thing in actors + bases if thing["owner_id"] != me]
        if actor["food"] >= config["make_base_cost"] and purpose < 0.5:
            actions.append({"action": "make_base", "actor_id": actor["id"]})
        elif purpose < 0.12 and enemies:
            target = min(enemies, key=lambda thing: distance(here, thing["position"]))
            actions.append({"action": "attack", "actor_id": actor["id"], "target": target["id"]})
        elif purpose < 0.17:
            actions.append({"action": "move", "actor_id": actor["id"], "target": wild_target(rng, config)})
        elif purpose < 0.2 and enemies:
            target = rng.choice(enemies)
            actions.append({"action": "move", "actor_id": actor["id"], "target": target["position"]})
        elif actor["food"] >= rng.choice([5, 20, 60]) and bases:
            home = min(bases, key=lambda base: (base["owner_id"] != me and rng.random() < 0.9, distance(here, base["position"])))
            act = "deposit_food"
            if actor["health"] < actor["max_health"] and rng.random() < 0.3:
                act = "heal"
            if distance(here, home["position"]) <= config["deposit_food_max_distance"]:
                actions.append({"action": act, "actor_id": actor["id"], "base_id": home["id"]})
            else:
                actions.append({"action": "move", "actor_id": actor["id"], "target": home["position"]})
        elif foods:
            food = min(foods, key=lambda food: distance(here, food["position"]))
            if distance(here, food["position"]) <= config["take_food_max_distance"]:
                actions.append({"action": "take_food", "actor_id": actor["id"], "food_id": food["id"]})
            else:
                actions.append({"action": "move", "actor_id": actor["id"], "target": food["position"], "why": "hungry"})
        # Additional actions, before or after, that the actor can't carry out.
        if rng.random() < 0.15:
            other = rng.choice(
                [
                    {"action": "move", "actor_id": actor["id"], "target": wild_target(rng, config)},
                    {"action": "move", "actor_id": rng.choice(everything), "target": [1.5, 2.5]},
                    {"action": "move", "actor_id": 5, "target": [1.5, 2.5]},
                    {"action": "move", "actor_id": actor["id"]},
                    {"action": "take_food", "actor_id": rng.choice(everything), "food_id": rng.choice(everything)},
                    {"action": "deposit_food", "actor_id": rng.choice(everything), "base_id": rng.choice(everything)},
                    {"action": "deposit_food", "actor_id": actor["id"], "base_id": rng.choice(everything)},
                    {"action": "heal", "actor_id": actor["id"], "base_id": rng.choice(everything)},
                    {"action": "attack", "actor_id": actor["id"], "target": rng.choice(everything)},
                    {"action": "make_base", "actor_id": rng.choice(everything)},
                    {"action": "make_base", "actor_id": actor["id"]},
                    {"action": "spawn", "base_id": rng.choice(everything)},
                    rng.choice(JUNK),
                ]
            )
            actions.insert(rng.randrange(2), other)
        answer += actions
    if rng.random() < 0.05:
        rng.shuffle(answer)
    return answer[:60]


GAMES = {"chess": chess, "snake": snake, "food_catcher": foraging, "cherry_picker": foraging}


def decide(game, me, state, config):
    return GAMES[game](me, state, config, random.Random(f"{me} {state['epoch']}"))


def main(game):
    me, config = None, None
    for line in sys.stdin:
        message = json.loads(line)
        if "set_agent_id" in message:
            me, config = message["set_agent_id"], message["config"]
            reply = {"agent_id": me}
        elif "world_state" in message:
            reply = {"agent_id": me, "actions": decide(game, me, message["world_state"], config)}
        elif "stop" in message:
            return
        else:
            reply = {"pong": "pong"}
        print(json.dumps(reply), flush=True)
