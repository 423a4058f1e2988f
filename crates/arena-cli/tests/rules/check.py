"""Compares replays with an independent implementation of the rules: `check.py REPLAY…`. Prints the number of computed states; on
a difference, prints the first one and exits with 1."""

import json
import sys

import chess_rules
import foraging
import snake
from difference import Difference

CHECKS = {
    "cherry_picker": foraging.check,
    "chess": chess_rules.check,
    "food_catcher": foraging.check,
    "snake": snake.check,
}


def main():
    states = {}
    for path in sys.argv[1:]:
        with open(path, encoding="utf-8") as file:
            lines = [json.loads(line) for line in file]
        game = lines[0]["game"]
        try:
            states[game] = states.get(game, 0) + CHECKS[game](lines)
        except Difference as difference:
            print(f"{path}: {difference}")
            sys.exit(1)
    print(json.dumps(states))


if __name__ == "__main__":
    main()
