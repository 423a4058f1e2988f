#!/usr/bin/env python3
"""Food catcher: gathers food; actors without a task attack enemies in range. See foraging.py."""

import colosseum
from foraging import distance, forage


def decide(me, state, config):
    """Returns actions for our actors and bases."""
    actions, idle = forage(me, state, config)
    # A destroyed base loses its food, so bases come first, and the weakest of each kind.
    targets = [base for base in state["bases"] if base["owner_id"] != me]
    targets.sort(key=lambda base: base["health"])
    enemies = [actor for actor in state["actors"] if actor["owner_id"] != me]
    targets += sorted(enemies, key=lambda actor: actor["health"])
    for actor in idle:
        for target in targets:
            if distance(actor["position"], target["position"]) <= config["attack_range"]:
                actions.append({"action": "attack", "actor_id": actor["id"], "target": target["id"]})
                break
    return actions


if __name__ == "__main__":
    colosseum.run("food-catcher-py", "1", decide)
