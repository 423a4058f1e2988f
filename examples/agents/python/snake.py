#!/usr/bin/env python3
"""Snake: goes to the nearest food from which it can still reach its own tail, which it can follow forever."""

from collections import deque

import colosseum

MOVES = {"UP": (0, -1), "RIGHT": (1, 0), "DOWN": (0, 1), "LEFT": (-1, 0)}

# Number of cells that a search visits beyond the snake's length, so that a step takes milliseconds on any grid.
LOOK = 1000

# Food eaten up to the previous epoch.
eaten = 0


def decide(me, state, config):
    """Returns the most promising move."""
    global eaten
    snakes = {name: snake for name, snake in state["snakes"].items() if snake["alive"]}
    if me not in snakes:
        return []
    width, height = state["grid"]["width"], state["grid"]["height"]
    foods = {tuple(food) for food in state["foods"]}
    # Other snakes' tails count as occupied: most of them move on, but the tail of a snake that has just eaten stays.
    taken = {tuple(cell) for snake in snakes.values() for cell in snake["positions"]}
    heads = [snake["head_position"] for name, snake in snakes.items() if name != me]
    length, tail = len(snakes[me]["positions"]), tuple(snakes[me]["positions"][-1])
    x, y = snakes[me]["head_position"]
    before, eaten = eaten, state["score"].get(me, 0)
    if eaten == before:
        taken.discard(tail)

    def is_free(cell):
        return 0 <= cell[0] < width and 0 <= cell[1] < height and cell not in taken

    best, best_outlook = None, None
    for move, (dx, dy) in MOVES.items():
        cell = (x + dx, y + dy)
        if not is_free(cell):
            continue
        is_way_out, room, distance = explore(cell, is_free, foods, length, tail)
        # If another head is one step away, both snakes could die.
        is_contested = any(steps(cell, head) == 1 for head in heads)
        outlook = (is_way_out, min(room, length), not is_contested, -distance, room)
        if best is None or outlook > best_outlook:
            best, best_outlook = move, outlook
    return [{"action": "move", "move": best}] if best else []


def explore(start, is_free, foods, length, tail):
    """Searches from a cell for a path to our tail, the number of reachable free cells, and the distance to food. Stops when
    the result is known."""
    distances = {start: 0}
    queue = deque([start])
    nearest, is_way_out = None, start == tail
    while queue and len(distances) < LOOK + length and not (nearest is not None and is_way_out):
        cell = queue.popleft()
        if nearest is None and cell in foods:
            nearest = distances[cell]
        for dx, dy in MOVES.values():
            after = (cell[0] + dx, cell[1] + dy)
            # A tail that stays in this step also stays in the next one if we eat again.
            stays = cell == start and start in foods and not is_free(tail)
            is_way_out = is_way_out or (after == tail and not stays)
            if after not in distances and is_free(after):
                distances[after] = distances[cell] + 1
                queue.append(after)
    if nearest is None:
        # Without food in the search: the direct distance, plus a constant, so that food in the search counts as nearer.
        nearest = LOOK + min((steps(start, food) for food in foods), default=0)
    return is_way_out, length if is_way_out else len(distances), nearest


def steps(a, b):
    """Returns the distance of two cells on an empty grid, in moves."""
    return abs(a[0] - b[0]) + abs(a[1] - b[1])


if __name__ == "__main__":
    colosseum.run("snake-py", "1", decide)
