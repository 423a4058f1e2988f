"""Trains a small policy that beats the house bot at snake, with numpy alone, in half a minute.

The policy scores the four steps by a linear function of six features, and takes the best one. The cross-entropy method
finds the weights: it draws policies around a mean, plays each against the house bot, and moves the mean to the best.

    python examples/environments/train_snake.py

`--seed` makes other games and policies; equal seeds give equal weights.
"""

from __future__ import annotations

import argparse
import time
from functools import cache
from typing import Any

import numpy as np

from arena_agents import env

Board = np.ndarray[Any, np.dtype[np.uint8]]
Weights = np.ndarray[Any, np.dtype[np.float64]]

#: The values of cells: food, and the heads of the policy's snake and of its opponent.
FOOD, OWN_HEAD, OTHER_HEAD = 1, 2, 5

#: UP, RIGHT, DOWN and LEFT, in the order of the actions.
STEPS = ((0, -1), (1, 0), (0, 1), (-1, 0))

#: The number of games of each policy in one generation, and the number of policies.
GAMES, POLICIES, ELITE = 4, 24, 6


@cache
def neighbors(height: int, width: int) -> list[list[int]]:
    """Returns the cell in each direction from each cell, or -1 outside of the grid."""
    cells = [(x, y) for y in range(height) for x in range(width)]
    return [
        [(y + dy) * width + x + dx if 0 <= x + dx < width and 0 <= y + dy < height else -1 for dx, dy in STEPS]
        for x, y in cells
    ]


def distances(start: int, taken: list[bool], near: list[list[int]]) -> list[int]:
    """Returns the number of steps from a cell to each free cell, or 999."""
    found = [999] * len(taken)
    found[start] = 0
    ring = [start]
    steps = 0
    while ring:
        steps += 1
        outer = []
        for cell in ring:
            for next_cell in near[cell]:
                if next_cell >= 0 and found[next_cell] == 999 and not taken[next_cell]:
                    found[next_cell] = steps
                    outer.append(next_cell)
        ring = outer
    return found


def features(board: Board) -> list[list[float]]:
    """Returns the features of the four steps."""
    near = neighbors(*board.shape)
    cells = board.ravel().tolist()
    head = cells.index(OWN_HEAD) if OWN_HEAD in cells else 0
    rival = cells.index(OTHER_HEAD) if OTHER_HEAD in cells else -1
    taken = [cell > FOOD for cell in cells]
    foods = [place for place, cell in enumerate(cells) if cell == FOOD]
    length = sum(OWN_HEAD <= cell < OTHER_HEAD for cell in cells)
    theirs = distances(rival, taken, near) if rival >= 0 else [999] * len(cells)
    rows = []
    for step in range(4):
        cell = near[head][step]
        if cell < 0 or taken[cell]:
            rows.append([1.0, 0, 0, 0, 0, 0])
            continue
        ours = distances(cell, taken, near)
        room = sum(way < 999 for way in ours)
        territory = sum(own < other for own, other in zip(ours, theirs, strict=True))
        food = min((ours[place] for place in foods), default=999)
        safe_food = min((ours[place] for place in foods if ours[place] < theirs[place]), default=999)
        rows.append(
            [
                0.0,
                min(room / (length + 2), 2.0),
                float(theirs[cell] == 1),
                1 / (1 + food),
                1 / (1 + safe_food),
                territory / len(cells),
            ]
        )
    return rows


def decide(weights: Weights, board: Board) -> int:
    """Returns the best step."""
    return int(np.argmax(np.array(features(board)) @ weights))


def play(weights: Weights, game: env.GymEnv, seed: int) -> float:
    """Plays a game, and returns the score less the opponent's."""
    board, info = game.reset(seed=seed)
    is_over = False
    while not is_over:
        board, _, is_over, _, info = game.step(decide(weights, board))
    own, other = info["scores"]
    return float(own - other)


def train(generations: int, seed: int, epochs: int = 120, opponent: str = "house") -> Weights:
    """Returns the weights of a trained policy."""
    random = np.random.default_rng(seed)
    game = env.single("snake", opponents=opponent, n_epochs=epochs)
    mean, spread = np.zeros(6), np.full(6, 2.0)
    for generation in range(generations):
        policies = random.normal(mean, spread, (POLICIES, 6))
        seeds = random.integers(2**32, size=GAMES)
        values = np.array([np.mean([play(one, game, int(seed)) for seed in seeds]) for one in policies])
        best = policies[np.argsort(values)[-ELITE:]]
        mean, spread = best.mean(axis=0), best.std(axis=0) + 0.1
        print(f"generation {generation + 1}: mean {values.mean():+.2f}, best {values.max():+.2f}", flush=True)
    return mean


def evaluate(weights: Weights, games: int, opponent: str = "house", epochs: int = 200) -> tuple[int, int, int]:
    """Plays games with seeds that training doesn't use, and returns the numbers of wins, draws and losses."""
    game = env.single("snake", opponents=opponent, n_epochs=epochs)
    values = [play(weights, game, 2**40 + seed) for seed in range(games)]
    return sum(value > 0 for value in values), sum(value == 0 for value in values), sum(value < 0 for value in values)


def main() -> None:
    """Trains and evaluates."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=1, help="random seed [default: 1]")
    parser.add_argument("--generations", type=int, default=8, help="number of generations [default: 8]")
    parser.add_argument("--games", type=int, default=100, help="number of games of the evaluation [default: 100]")
    args = parser.parse_args()
    began = time.monotonic()
    weights = train(args.generations, args.seed)
    print(f"weights {np.round(weights, 2).tolist()} after {time.monotonic() - began:.0f} s")
    wins, draws, losses = evaluate(weights, args.games)
    print(f"against house: {wins} wins, {draws} draws, {losses} losses")


if __name__ == "__main__":
    main()
