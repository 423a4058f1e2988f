"""Computes the standings of a tournament independently, from its journal and replays, in plain Python.

    recount.py FOLDER

Ranks come from the scores in the replays, and are compared with the journal's. Points, wins, draws and losses are counted. Elo
is updated game by game (start 1200, K 24, changes rounded to integers, halves to even). Bradley-Terry with ties (Davidson's
model with Jeffreys' prior) is maximized by Newton's method with numerical derivatives. Games of the same agents with the same
start, moves and scores count once in Bradley-Terry. Prints a JSON object.
"""

import json
import math
import sys
from pathlib import Path

folder = Path(sys.argv[1])


def lines(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def replayed(number):
    """Returns the header, the epochs and the result of a game's replay."""
    header, *epochs, end = lines(folder / "replays" / f"{number}.jsonl")
    return header, epochs, end["result"]


def ranked(scores, out):
    """Returns ranks from 1; eliminated players are last."""
    keys = [(not is_out, score) for score, is_out in zip(scores, out)]
    return [1 + sum(other > key for other in keys) for key in keys]


def course(game, header, epochs, result):
    """Returns a key that equal games share."""
    agents, ids = game["agents"], [agent["agent_id"] for agent in header["agents"]]
    start = next(({key: epoch.get(key) for key in ("world_state", "worlds")} for epoch in epochs if epoch["epoch"] == 1), None)
    actions = [epoch.get("actions") for epoch in epochs]
    order = list(range(len(agents)))
    if header["game"] == "chess":
        white = next((seat for taken in actions if taken for seat, moves in enumerate(taken) if moves), 0)
        order = [white, 1 - white]
        start["world_state"].pop("color", None)
    text = json.dumps([start, [taken and [taken[seat] for seat in order] for taken in actions]])
    for place, seat in enumerate(order):
        text = text.replace(ids[seat], f"player {place}")
    if header["game"] == "chess":
        # The ids are in seat order.
        text = text.replace('["player 1", "player 0"]', '["player 0", "player 1"]')
    outs = [(order.index(out["seat"]), out["verdict"]) for epoch in epochs for out in epoch.get("disqualified", [])]
    return (tuple(agents[seat] for seat in order), text, str(outs), tuple(result["scores"][seat] for seat in order))


plan, *journal = lines(folder / "tournament.jsonl")
names = [agent["name"] for agent in plan["agents"]]
tallies = {name: {"games": 0, "wins": 0, "draws": 0, "losses": 0, "points": 0.0, "elo": 1200} for name in names}
seen, repeats, compared, results = set(), 0, [], []

for game in sorted(journal, key=lambda line: line["fixture"]):
    # A void game counts for no agent.
    if game["outcome"]["winner"] == "VOID":
        continue
    header, epochs, result = replayed(game["fixture"])
    out = [False] * len(game["agents"])
    for epoch in epochs:
        for disqualified in epoch.get("disqualified", []):
            out[disqualified["seat"]] = True
    ranks = ranked(result["scores"], out)
    assert [agent["name"] for agent in header["agents"]] == game["agents"], f"game {game['fixture']}: other agents"
    assert ranks == game["ranks"] == result["ranks"], f"game {game['fixture']}: {ranks} {game['ranks']} {result['ranks']}"
    assert header["seed"] == game["seed"] and result["scores"] == game["scores"], f"game {game['fixture']}"
    results.append((game["agents"], ranks))
    key = course(game, header, epochs, result)
    repeats += key in seen
    if key not in seen:
        compared.append((game["agents"], ranks))
    seen.add(key)

for agents, ranks in results:
    others = len(agents) - 1
    before = {agent: tallies[agent]["elo"] for agent in agents}
    for agent, rank in zip(agents, ranks):
        tally, points, change = tallies[agent], 0.0, 0.0
        for other, other_rank in zip(agents, ranks):
            if other != agent:
                score = 1.0 if rank < other_rank else 0.5 if rank == other_rank else 0.0
                points += score / others
                change += 24 / others * (score - 1 / (1 + 10 ** ((before[other] - before[agent]) / 400)))
        tally["games"] += 1
        tally["points"] += points
        tally["elo"] += round(change)
        kind = "losses" if rank > 1 else "wins" if ranks.count(1) == 1 else "draws"
        tally[kind] += 1

# Comparisons of two agents: the weights of the first agent's wins, ties and losses.
pairs = {}
for agents, ranks in compared:
    for one in range(len(agents)):
        for two in range(one + 1, len(agents)):
            a, b = sorted([one, two], key=lambda seat: names.index(agents[seat]))
            place = 0 if ranks[a] < ranks[b] else 1 if ranks[a] == ranks[b] else 2
            counts = pairs.setdefault((names.index(agents[a]), names.index(agents[b])), [0.0, 0.0, 0.0])
            counts[place] += 1 / (len(agents) - 1)
has_ties = any(counts[1] > 0 for counts in pairs.values())


def shares(parameters, a, b):
    strength = [0.0, *parameters[: len(names) - 1]]
    half = (strength[a] - strength[b]) / 2
    terms = [math.exp(half), math.exp(parameters[-1]) if has_ties else 0.0, math.exp(-half)]
    return [term / sum(terms) for term in terms]


def log_determinant(matrix):
    rows, total = [row[:] for row in matrix], 0.0
    for at in range(len(rows)):
        pivot = rows[at][at]
        total += math.log(pivot)
        for row in range(at + 1, len(rows)):
            factor = rows[row][at] / pivot
            rows[row] = [value - factor * above for value, above in zip(rows[row], rows[at])]
    return total


def height(parameters):
    """Returns the log-likelihood plus half the log-determinant of the information."""
    size, total = len(parameters), 0.0
    information = [[0.0] * size for _ in range(size)]
    for (a, b), counts in pairs.items():
        odds = shares(parameters, a, b)
        total += sum(count * math.log(share) for count, share in zip(counts, odds) if count)
        # The statistics of each outcome, by parameter: half the sign of the difference, and 1 for a tie.
        observed = []
        for sign, tie in ((0.5, 0.0), (0.0, 1.0), (-0.5, 0.0)):
            one = [0.0] * size
            for agent, direction in ((a, 1), (b, -1)):
                if agent > 0:
                    one[agent - 1] = sign * direction
            if has_ties:
                one[-1] = tie
            observed.append(one)
        mean = [sum(share * one[at] for share, one in zip(odds, observed)) for at in range(size)]
        for share, one in zip(odds, observed):
            for row in range(size):
                for column in range(size):
                    product = (one[row] - mean[row]) * (one[column] - mean[column])
                    information[row][column] += sum(counts) * share * product
    return total + log_determinant(information) / 2


def solve(matrix, right):
    rows = [row[:] + [value] for row, value in zip(matrix, right)]
    for at in range(len(rows)):
        best = max(range(at, len(rows)), key=lambda row: abs(rows[row][at]))
        rows[at], rows[best] = rows[best], rows[at]
        for row in range(len(rows)):
            if row != at:
                factor = rows[row][at] / rows[at][at]
                rows[row] = [value - factor * above for value, above in zip(rows[row], rows[at])]
    return [rows[at][-1] / rows[at][at] for at in range(len(rows))]


def moved(parameters, steps):
    changed = parameters[:]
    for at, step in steps:
        changed[at] += step
    return changed


parameters, width = [0.0] * (len(names) - 1 + has_ties), 1e-3
for _ in range(200):
    here, every = height(parameters), range(len(parameters))
    gradient = [(height(moved(parameters, [(at, width)])) - height(moved(parameters, [(at, -width)]))) / (2 * width) for at in every]
    hessian = [
        [
            sum(
                sign * height(moved(parameters, [(row, x), (column, y)]))
                for sign, x, y in ((1, width, width), (-1, width, -width), (-1, -width, width), (1, -width, -width))
            )
            / (4 * width * width)
            for column in every
        ]
        for row in every
    ]
    step = [-value for value in solve(hessian, gradient)]
    # Newton's step needs a concave function, and may be too long: fall back to the gradient, then shorten the step.
    if sum(a * b for a, b in zip(step, gradient)) < 0:
        step = gradient
    share = 1.0
    while height(moved(parameters, [(at, share * value) for at, value in enumerate(step)])) < here and share > 1e-9:
        share /= 2
    parameters = moved(parameters, [(at, share * value) for at, value in enumerate(step)])
    if max(abs(share * value) for value in step) < 1e-9:
        break

strengths = [0.0, *parameters[: len(names) - 1]]
for name, strength in zip(names, strengths):
    tallies[name]["above_first"] = 400 / math.log(10) * strength
print(json.dumps({"agents": tallies, "games": len(results), "repeats": repeats}))
