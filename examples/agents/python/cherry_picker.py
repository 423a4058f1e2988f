#!/usr/bin/env python3
"""Cherry picker: gathers food in a world of its own. See foraging.py."""

import colosseum
from foraging import forage


def decide(me, state, config):
    """Returns actions for our actors and bases."""
    actions, _ = forage(me, state, config)
    return actions


if __name__ == "__main__":
    colosseum.run("cherry-picker-py", "1", decide)
