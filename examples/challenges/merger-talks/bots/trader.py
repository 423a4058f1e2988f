#!/usr/bin/env python3
"""Trades: demands everything, and gives way step by step on its least important issues. Guesses that the other does the same."""

import colosseum
from talks import ISSUES, Talks

# Demanded points, offer by offer; it accepts the same value.
WANTED = [90, 85, 80, 75, 70, 66, 62, 58, 54, 50]

# Number of states to wait after the last offer.
PATIENCE = 3

talks = Talks()
asked = 0


def decide(me, state, config):
    global asked
    talks.read(state)
    if talks.is_over:
        return talks.guess(order_of(talks.wanted))
    wanted = WANTED[min(asked, len(WANTED) - 1)]
    if talks.offered() >= wanted:
        return [{"action": "accept"}]
    if asked > len(WANTED) + PATIENCE:
        return [{"action": "walk"}]
    if asked >= len(WANTED):
        asked += 1
        return []
    asked += 1
    return [{"action": "offer", "content": ", ".join(map(str, offer(wanted)))}]


def offer(wanted):
    """Returns shares worth at least this many points to us, with the smallest shares of the least important issues."""
    parts = [10, 10, 10, 10]
    for issue in sorted(range(4), key=lambda issue: talks.worth[issue]):
        while parts[issue] > 0 and talks.points(parts) - talks.worth[issue] / 10 >= wanted:
            parts[issue] -= 1
    return parts


def order_of(offers):
    """Guesses the other's order of the issues from its demands; no guess if they are ambiguous."""
    sums = [sum(parts) for parts in zip(*offers)]
    if len(set(sums)) < len(ISSUES):
        return []
    return [ISSUES[issue] for issue in sorted(range(4), key=lambda issue: -sums[issue])]


if __name__ == "__main__":
    colosseum.run("trader", "1", decide)
