#!/usr/bin/env python3
"""Bids half of the lot's value and says nothing: the best reply to a bidder who does the same."""

import re

import colosseum


def decide(me, state, config):
    for message in state["messages"]:
        found = re.match(r"The lot is worth (\d+) to you", message["content"])
        if found and message["from"] == "operator":
            return [{"action": "bid", "content": str(int(found[1]) // 2)}]
    return []


if __name__ == "__main__":
    colosseum.run("half", "1", decide)
