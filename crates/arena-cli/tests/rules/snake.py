"""The rules of snake, implemented again from their description: one epoch at a time, from one recorded state to the next. The
random starts of snakes and positions of food are read from the record and must be possible."""

import itertools

from difference import Difference, need
from wild import decide

STEPS = {"UP": (0, -1), "RIGHT": (1, 0), "DOWN": (0, 1), "LEFT": (-1, 0)}
ARROWS = {(0, -1): "^", (1, 0): ">", (0, 1): "V", (-1, 0): "<"}


def wanted_move(answer):
    """Returns the first move and its direction, or `(None, None)`."""
    for action in answer:
        if isinstance(action, dict) and action.get("action") == "move":
            word = action.get("move")
            if isinstance(word, str) and word.upper() in STEPS:
                return {"action": "move", "move": word.upper()}, STEPS[word.upper()]
    return None, None


def in_grid(cell, config):
    return 0 <= cell[0] < config["grid_width"] and 0 <= cell[1] < config["grid_height"]


def cells_of(state):
    return [tuple(cell) for snake in state["snakes"].values() if snake["alive"] for cell in snake["positions"]]


def check_food(before, after, taken, config):
    """Checks new food: on free cells, only if too little is left, and no more than needed. `before` is the food without the eaten."""
    new = [food for food in after if food not in before]
    need(len(set(after)) == len(after), "food twice in", after)
    need(all(food in after for food in before), "food went from", before, "to", after)
    free = config["grid_width"] * config["grid_height"] - len(set(taken)) - len(before)
    most = 0
    if len(before) < config["min_food_sources"]:
        most = min(config["food_sources_to_spawn"] - len(before), free)
    need(len(new) == most, "new food", new, "beside", before, "with free cells", free)
    for food in new:
        need(in_grid(food, config) and food not in taken, "new food at", food)


def check_grid(state, config):
    """Returns the board as text, one string per row."""
    rows = [[" "] * config["grid_width"] for _ in range(config["grid_height"])]
    for x, y in state["foods"]:
        rows[y][x] = "@"
    for snake in state["snakes"].values():
        if not snake["alive"]:
            continue
        body = snake["positions"]
        for at, (x, y) in enumerate(body):
            if at == 0:
                rows[y][x] = "C"
            elif at == len(body) - 1:
                rows[y][x] = "S"
            else:
                rows[y][x] = ARROWS[(x - body[at + 1][0], y - body[at + 1][1])]  # the direction of its last step
    text = ["".join(row) for row in rows]
    need(text == state["grid"]["grid_string"], "the board", text, "recorded", state["grid"]["grid_string"])
    need(
        (state["grid"]["width"], state["grid"]["height"]) == (config["grid_width"], config["grid_height"]), "grid", state["grid"]
    )


def check_start(state, config):
    cells = {}
    for me, snake in state["snakes"].items():
        need(snake["alive"] and len(snake["positions"]) == 2, me, "begins as", snake)
        (x, y), tail = snake["positions"]
        need(snake["head_position"] == [x, y] and tail == [x - 1, y], me, "begins as", snake)
        for cell in snake["positions"]:
            need(in_grid(cell, config), me, "begins outside")
            cells[tuple(cell)] = me
    need(len(cells) == 2 * len(state["snakes"]), "snakes begin on each other")
    for (x, y), me in cells.items():
        for step in STEPS.values():
            need(cells.get((x + step[0], y + step[1]), me) == me, me, "begins beside another")
    check_food([], [tuple(food) for food in state["foods"]], list(cells), {**config, "min_food_sources": 1})
    need(all(score == 0 for score in state["score"].values()), "scores", state["score"])


def step(before, line, ids, config, growing):
    """Returns the snakes after an epoch: alive or not, their cells, and if they have eaten."""
    snakes, heads = {}, {}
    for seat, me in enumerate(ids):
        snake = before["snakes"][me]
        body = [tuple(cell) for cell in snake["positions"]]
        recorded = line["actions"][seat]
        if not snake["alive"]:
            need(recorded is None, me, "is dead and was asked")
            snakes[me] = (False, body)
            continue
        need(recorded is not None, me, "wasn't asked")
        action, way = wanted_move(decide("snake", me, before, config))
        need(recorded == ([] if action is None else [action]), me, "moved", action, "recorded", recorded)
        if way is None:
            way = (body[0][0] - body[1][0], body[0][1] - body[1][1])
        head = (body[0][0] + way[0], body[0][1] + way[1])
        snakes[me] = (True, [head, *(body if me in growing else body[:-1])])
        heads[me] = head
    outside = {me for me, head in heads.items() if not in_grid(head, config)}
    board = {}
    for me, (alive, body) in snakes.items():
        if alive and me not in outside:
            for cell in body:
                board[cell] = board.get(cell, 0) + 1
    dead = outside | {me for me, head in heads.items() if me not in outside and board[head] > 1}
    foods = [tuple(food) for food in before["foods"]]
    eaten = {me: head for me, head in heads.items() if me not in dead and head in foods}
    score = {me: before["score"][me] + (me in eaten) - (me in dead) for me in ids}
    snakes = {me: (alive and me not in dead, body) for me, (alive, body) in snakes.items()}
    return snakes, score, set(eaten), [food for food in foods if food not in eaten.values()]


def settled(state, epochs_left):
    """Returns true if the ranking can no longer change."""
    ranges = []
    for me, snake in state["snakes"].items():
        score, alive = state["score"][me], snake["alive"]
        ranges.append((score - alive, score + alive * epochs_left, alive))
    pairs = itertools.combinations(ranges, 2)
    return all(first[0] > second[1] or second[0] > first[1] for first, second in pairs if first[2] or second[2])


def check(lines):
    """Checks a replay. Returns the number of computed states."""
    header, *epochs, last = lines
    config, ids = header["config"], [agent["agent_id"] for agent in header["agents"]]
    check_start(epochs[0]["world_state"], config)
    growing = set()
    for at, (line, after) in enumerate(zip(epochs, [*epochs[1:], last])):
        before, behind = line["world_state"], after["world_state"]
        try:
            need(before["epoch"] == at + 1 and before["agent_ids"] == ids, "epoch or ids of", before)
            need(not settled(before, config["n_epochs"] - at), "goes on, though the ranking is settled")
            snakes, score, growing, foods = step(before, line, ids, config, growing)
            for me, (alive, body) in snakes.items():
                recorded = behind["snakes"][me]
                found = (recorded["alive"], [tuple(cell) for cell in recorded["positions"]])
                need(found == (alive, body), me, "is", (alive, body), "recorded", found)
                need(tuple(recorded["head_position"]) == body[0], me, "has its head at", recorded["head_position"])
            need(behind["score"] == score, "scores", score, "recorded", behind["score"])
            check_food(foods, [tuple(food) for food in behind["foods"]], cells_of(behind), config)
            check_grid(behind, config)
        except Difference as difference:
            raise Difference(f"epoch {line['epoch']}: {difference}") from None
    end, result = last["world_state"], last["result"]
    need(result["scores"] == [end["score"][me] for me in ids], "scores", end["score"], result)
    need(result["epochs"] == len(epochs), "epochs", len(epochs), result)
    need(settled(end, config["n_epochs"] - len(epochs)) or len(epochs) == config["n_epochs"], "ended at", len(epochs))
    ranks = [1 + sum(other > score for other in result["scores"]) for score in result["scores"]]
    need(result["ranks"] == ranks, "ranks", ranks, result)
    return len(epochs)
