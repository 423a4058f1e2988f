#!/usr/bin/env python3
"""Proposes a place in code, and goes to the first proposed place."""

import colosseum
from house import House

house = House()


def decide(me, state, config):
    house.read(state)
    return house.propose(state, in_code=True) + house.go(state)


if __name__ == "__main__":
    colosseum.run("keeper", "1", decide)
