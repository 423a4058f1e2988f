"""Creates `games.pgn` and `reference.json`: games of agents of known strength, and the ratings of published programs for them.

The tests compare the output of `arena rate` with these ratings, and don't run this program. To create both files again, in an
environment with choix 0.4.1 and statsmodels 0.15.0 (both under permissive licenses):

    python reference.py

The games follow from the seed below. The programs:

- choix (`opt_pairwise`): Bradley-Terry of the decided games.
- statsmodels (`GLM`, Poisson): Davidson's model of all games, as a log-linear model (Dittrich, Hatzinger,
  Katzenbeisser, "Modeling the effect of subject-specific covariates in paired comparison studies", 1998): a count for each pair of
  agents, seats and result, with a term for each pair that removes the number of its games. With and without an advantage of White.
"""

import json
import math
import random
from pathlib import Path

import choix
import numpy
import statsmodels.api

HERE = Path(__file__).parent
ELO = 400 / math.log(10)
# Strengths in Elo, the advantage of White, and the frequency of ties.
STRENGTHS = {"Ada": 160, "Boole": 90, "Curry": 60, "Dijkstra": 0, "Erlang": -40, "Floyd": -90, "Gödel": -180}
WHITE = 35
TIES = 0.6
ROUNDS = 9
RESULTS = ["1-0", "1/2-1/2", "0-1"]


def play():
    """Returns all games, as (White, Black, result)."""
    rng = random.Random(20)
    names = list(STRENGTHS)
    games = []
    for _ in range(ROUNDS):
        played = []
        for white in names:
            for black in names:
                if white != black:
                    half = (STRENGTHS[white] - STRENGTHS[black] + WHITE) / ELO / 2
                    odds = [math.exp(half), TIES, math.exp(-half)]
                    played.append((white, black, rng.choices(RESULTS, odds)[0]))
        rng.shuffle(played)
        games += played
    return games


def written(games):
    """Returns the games in Portable Game Notation."""
    tags = '[Event "Reference"]\n[Round "{}"]\n[White "{}"]\n[Black "{}"]\n[Result "{}"]\n\n{}\n\n'
    return "".join(tags.format(n, *game, game[2]) for n, game in enumerate(games, 1))


def centered(strengths):
    """Converts log-odds to Elo with mean 0."""
    strengths = numpy.asarray(strengths) * ELO
    return (strengths - strengths.mean()).tolist()


def davidson(games, names, with_white):
    """Returns strengths and the advantage of White, by a log-linear model."""
    counts = {}
    for white, black, result in games:
        counts[white, black, result] = counts.get((white, black, result), 0) + 1
    pairs = sorted({(white, black) for white, black, _ in counts})
    rows, observed = [], []
    for pair, (white, black) in enumerate(pairs):
        for result in RESULTS:
            row = [0.0] * (len(names) - 1 + 2 + len(pairs))
            sign = {"1-0": 0.5, "1/2-1/2": 0.0, "0-1": -0.5}[result]
            for name, side in ((white, sign), (black, -sign)):
                # The last agent is the reference.
                if name != names[-1]:
                    row[names.index(name)] += side
            row[len(names) - 1] = float(result == "1/2-1/2")
            row[len(names)] = sign
            row[len(names) + 1 + pair] = 1.0
            rows.append(row)
            observed.append(counts.get((white, black, result), 0))
    matrix = numpy.array(rows)
    if not with_white:
        matrix[:, len(names)] = 0.0
    used = matrix.any(axis=0)
    model = statsmodels.api.GLM(observed, matrix[:, used], family=statsmodels.api.families.Poisson())
    found = numpy.zeros(matrix.shape[1])
    found[used] = model.fit(tol=1e-12, maxiter=200).params
    return centered([*found[: len(names) - 1], 0.0]), float(found[len(names)] * ELO)


def main():
    games, names = play(), list(STRENGTHS)
    (HERE / "games.pgn").write_text(written(games), encoding="utf-8")
    decided = [(names.index(white), names.index(black), result) for white, black, result in games if result != "1/2-1/2"]
    won = [(white, black) if result == "1-0" else (black, white) for white, black, result in decided]
    plain, _ = davidson(games, names, False)
    with_white, white = davidson(games, names, True)
    numbers = {
        "choix": dict(zip(names, centered(choix.opt_pairwise(len(names), won, tol=1e-12)))),
        "statsmodels": dict(zip(names, plain)),
        "statsmodels_with_advantage": dict(zip(names, with_white)),
        "statsmodels_advantage": white,
    }
    rounded = json.loads(json.dumps(numbers), parse_float=lambda text: round(float(text), 4))
    (HERE / "reference.json").write_text(json.dumps(rounded, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
