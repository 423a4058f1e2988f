#!/usr/bin/env python3
"""Proposes a place in plain words, and goes to the first proposed place."""

import colosseum
from house import House

house = House()


def decide(me, state, config):
    house.read(state)
    return house.propose(state, in_code=False) + house.go(state)


if __name__ == "__main__":
    colosseum.run("babbler", "1", decide)
