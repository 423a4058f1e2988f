#!/usr/bin/env python3
"""Asks for the lot's value to the other bidder and believes the answer: bids a little more than half of it, and guesses it."""

import re

import colosseum

# Number of states to wait for an answer.
PATIENCE = 3

worth = None
waited = 0
done = False


def decide(me, state, config):
    global worth, waited, done
    actions, told = [], None
    for message in state["messages"]:
        content = message["content"]
        if message["from"] == "operator":
            found = re.match(r"The lot is worth (\d+) to you", content)
            if found:
                worth = int(found[1])
                actions.append({"action": "chat", "content": "What is it worth to you? I won't bid on what I don't need."})
        elif message["from"] != state["you"]:
            found = re.search(r"\d+", content)
            told = min(int(found[0]), 100) if found else told
    waited += 1
    if worth is not None and not done and (told is not None or waited > PATIENCE):
        done = True
        half = worth // 2
        bid = half if told is None else min(worth - 1, told // 2 + 1)
        actions.append({"action": "bid", "content": str(bid) if told is None else f"{bid}, {told}"})
    return actions


if __name__ == "__main__":
    colosseum.run("nosy", "1", decide)
