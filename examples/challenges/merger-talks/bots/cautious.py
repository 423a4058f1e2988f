#!/usr/bin/env python3
"""Wants half of everything, which reveals none of its preferences, and accepts every offer of equal value."""

import colosseum
from talks import Talks

# Number of states to wait for a better offer.
PATIENCE = 8

talks = Talks()
seen = 0


def decide(me, state, config):
    global seen
    talks.read(state)
    if talks.is_over:
        return talks.guess([])
    seen += 1
    if seen == 1:
        return [{"action": "offer", "content": "5, 5, 5, 5"}]
    if talks.offered() >= 50:
        return [{"action": "accept"}]
    return [{"action": "walk"}] if seen > PATIENCE else []


if __name__ == "__main__":
    colosseum.run("cautious", "1", decide)
