#!/usr/bin/env python3
"""Announces the lot's value to it, and bids half of that."""

import re

import colosseum


def decide(me, state, config):
    for message in state["messages"]:
        found = re.match(r"The lot is worth (\d+) to you", message["content"])
        if found and message["from"] == "operator":
            worth = int(found[1])
            return [
                {"action": "chat", "content": f"It is worth {worth} to me. And to you?"},
                {"action": "bid", "content": str(worth // 2)},
            ]
    return []


if __name__ == "__main__":
    colosseum.run("chatty", "1", decide)
