#!/usr/bin/env python3
"""A template for an agent. It follows the protocol and takes no actions."""

import sys

import colosseum


def decide(me, state, config):
    """Returns the actions of this epoch."""
    print(f"{me} sees {sorted(state)} in epoch {state.get('epoch')}", file=sys.stderr)
    # Fill this in. docs/agents.md has the states and actions of each game; an action of snake is
    # {"action": "move", "move": "UP"}
    return []


if __name__ == "__main__":
    colosseum.run("template-py", "1", decide)
