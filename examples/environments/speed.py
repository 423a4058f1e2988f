"""Measures the epochs of snake per second and core: two seats with random moves, all boards, and new matches.

python examples/environments/speed.py [SECONDS]
"""

from __future__ import annotations

import sys
import time

import numpy as np

from arena_agents import env


def measure(seconds: float) -> float:
    """Returns the number of epochs per second."""
    zoo = env.parallel("snake")
    # Random numbers drawn one by one would take longer than an epoch.
    moves = np.random.default_rng(1).integers(4, size=(10_000, 2)).tolist()
    zoo.reset(seed=1)
    steps = 0
    began = time.perf_counter()
    while time.perf_counter() - began < seconds:
        for pair in moves[:1000]:
            if not zoo.agents:
                zoo.reset()
            zoo.step(dict(zip(zoo.agents, pair, strict=False)))
        steps += 1000
    return steps / (time.perf_counter() - began)


if __name__ == "__main__":
    print(f"{measure(float((sys.argv[1:] or ['5'])[0])):,.0f} epochs of snake per second")
