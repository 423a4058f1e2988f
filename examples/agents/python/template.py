#!/usr/bin/env python3
"""An agent to start from. It does nothing yet, properly."""

import sys

import colosseum


def decide(me, state, config):
    """What to do in this epoch, as a list of actions."""
    print(f"{me} sees {sorted(state)} in epoch {state.get('epoch')}", file=sys.stderr)
    # Fill this in. docs/agents.md has the states and the actions of each game; one of snake is
    # {"action": "move", "move": "UP"}
    return []


if __name__ == "__main__":
    colosseum.run("template-py", "1", decide)
