#!/usr/bin/env python3
"""Guesses the last number in the other player's chat; after a while, a random one."""

import random
import re

import colosseum

# Number of states to wait for the other player's chat.
PATIENCE = 3

seen = 0
done = False


def decide(me, state, config):
    """Returns actions, from the new messages in the state."""
    global seen, done
    seen += 1
    chat = [message["content"] for message in state["messages"] if message["from"] not in ("operator", state["you"])]
    told = re.findall(r"\d+", " ".join(chat))
    if done or not (told or seen > PATIENCE):
        return []
    done = True
    return [{"action": "guess", "content": told[-1] if told else str(random.randint(1, 10))}]


if __name__ == "__main__":
    colosseum.run("guesser", "1", decide)
