#!/usr/bin/env python3
"""Guesses whatever number the other player has said in the chat; after a while, any."""

import random
import re

import colosseum

# How many states it waits for the other to say something.
PATIENCE = 3

seen = 0
done = False


def decide(me, state, config):
    """What to do, given what was said since the last state: a list of actions."""
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
